/* plot.h - the front in a terminal. */
#ifndef SWEEP_SHOW_PLOT_H
#define SWEEP_SHOW_PLOT_H

struct board_style;
struct strbuf;
struct study_view;

/* Score over log cost, rows lines and one axis of two lines: dominated trials small, the front with its stairs, the best. */
void plot_front(const struct study_view *view, const struct board_style *style, int rows, struct strbuf *out);

#endif
