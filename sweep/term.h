/* term.h - a block of lines redrawn in place on the program's stderr, sizes and colours of the terminal. State of the process; one
 * thread draws. */
#pragma once

#include "base/base.h"

FILE *term_err(void); /* where the program's own lines go: stderr, unless that is for games (game_output.h) */
void term_set_err(FILE *file); /* and the log's; NULL: stderr again. Borrowed */
int term_width(int fd); /* columns of the terminal fd; 80 when unknown */
bool term_begin(void); /* false: stderr is not a terminal that can redraw; log lines are then plain */
void term_draw(const char *text); /* lines; cut to the terminal's width */
void term_print(const char *line); /* a line of another process, above the block if there is one */
void term_end(void); /* leaves the last block on the screen, shows the cursor */
void term_emergency(void); /* async-signal-safe: shows the cursor */
/* "[####------]" of width cells. */
const char *term_bar(double fraction, int width, char buf[80]);

struct term_style {
    int width, height; /* of the terminal */
    bool color, unicode;
};
void term_style_take(struct term_style *ret_style); /* of stderr: size, NO_COLOR, the locale's character set */

enum term_color { COLOR_NONE, COLOR_DIM, COLOR_GOOD, COLOR_BEST, COLOR_BAD, COLOR_HEAD };
const char *term_paint(const struct term_style *style, enum term_color color); /* escape sequence or "" */
