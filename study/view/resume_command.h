/* resume_command.h - the command that continues a study, from any directory. Pure. */
#pragma once

struct strbuf;
struct study_view;

/* Adds "trawl sweep --resume NAME --store PATH" with twice the limit that ended the study, or that its trials have
 * reached; other limits are still good. Options may follow. store_path: NULL: none is named. */
void study_resume_command(const struct study_view *view, const char *store_path, struct strbuf *out);
