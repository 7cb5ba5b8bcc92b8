/* board.h - what a person sees of a sweep: the live block on a terminal, lines in a pipe, the summary at the end. The same
 * for a sweep of this process and for one that a daemon runs. */
#ifndef SWEEP_BOARD_H
#define SWEEP_BOARD_H

#include "base/strbuf.h"
#include "sweep/live.h"

struct board_style {
    int width, height; /* of the terminal */
    bool color, unicode;
};
void board_style_take(struct board_style *ret_style); /* of stderr: size, NO_COLOR, the locale's character set */

enum board_color { COLOR_NONE, COLOR_DIM, COLOR_GOOD, COLOR_BEST, COLOR_BAD, COLOR_HEAD };
const char *board_paint(const struct board_style *style, enum board_color color); /* escape sequence or "" */

/* ---- plot.c ---- */

/* Score over log cost, rows lines and one axis of two lines: dominated trials small, the front with its stairs, the best. */
void plot_front(const struct study_view *view, const struct board_style *style, int rows, struct strbuf *out);

/* ---- board.c ---- */

struct board {
    const struct study_view *view;
    const char *env;
    const struct sweep_status *status;
    double left_s; /* NaN: unknown */
};
/* At most style->height - 1 lines. */
void board_write(const struct board *board, const struct board_style *style, struct strbuf *out);

#endif
