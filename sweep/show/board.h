/* board.h - what a person sees of a sweep. */
#ifndef SWEEP_SHOW_BOARD_H
#define SWEEP_SHOW_BOARD_H

#include <stdbool.h>

struct strbuf;
struct study_view;
struct sweep_status;

struct board_style {
    int width, height; /* of the terminal */
    bool color, unicode;
};
void board_style_take(struct board_style *ret_style); /* of stderr: size, NO_COLOR, the locale's character set */

enum board_color { COLOR_NONE, COLOR_DIM, COLOR_GOOD, COLOR_BEST, COLOR_BAD, COLOR_HEAD };
const char *board_paint(const struct board_style *style, enum board_color color); /* escape sequence or "" */

struct board {
    const struct study_view *view;
    const char *env;
    const struct sweep_status *status;
    double left_s; /* NaN: unknown */
};
/* At most style->height - 1 lines. */
void board_write(const struct board *board, const struct board_style *style, struct strbuf *out);

#endif
