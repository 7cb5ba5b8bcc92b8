/* search_widen.h - the ranges of a study that is resumed. */
#ifndef STUDY_SEARCH_WIDEN_H
#define STUDY_SEARCH_WIDEN_H

#include <stdbool.h>

#include "base/status.h"

struct search;
struct strbuf;

/* Makes stored as wide as want, bound both; *ret_wider: something changed. What is narrower or another space is an ST_CONFIG that
 * says where, and stored is then not to be used. */
enum status search_widen(struct search *stored, const struct search *want, bool *ret_wider, struct error *err) MUST_USE;
/* Its [sweep.SECTION.KEY] sections. */
void search_to_ini(const struct search *search, struct strbuf *out);

#endif
