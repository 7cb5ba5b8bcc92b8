/* status_block.h - the block that a terminal shows of a running study, also of one that a daemon runs. Borrows all that
 * it is given for the call; one thread. */
#pragma once

struct strbuf;
struct study_view;
struct sweep_status;
struct term_style;

struct status_block {
    const struct study_view *view;
    const char *env;
    const struct sweep_status *status;
    double left_s; /* NaN: unknown */
};
/* At most style->height - 1 lines. */
void status_block_write(const struct status_block *block, const struct term_style *style, struct strbuf *out);
