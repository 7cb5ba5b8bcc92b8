/* plot.h - draws the front of a study as characters. Pure, but for the strbuf that it appends to. */
#pragma once

struct term_style;
struct strbuf;
struct study_view;

/* Score over log cost, rows lines and one axis of two lines: dominated trials small, the front with its stairs, the
 * best. */
void plot_front(const struct study_view *view, const struct term_style *style, int rows, struct strbuf *out);
