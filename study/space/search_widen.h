/* search_widen.h - wider ranges for a study that is resumed, and a search as ini text. Changes the stored search; one
 * thread. */
#pragma once

#include "base/base.h"

struct search;
struct strbuf;

/* Makes stored as wide as want, bound both; *ret_wider: something changed. A narrower or different space is ST_CONFIG
 * with the place, and stored must then not be used. */
enum status search_widen(struct search *stored, const struct search *want, bool *ret_wider, struct error *err) MUST_USE;
/* Appends its [sweep.SECTION.KEY] sections. */
void search_to_ini(const struct search *search, struct strbuf *out);
