/* term.h - a block of lines redrawn in place on a terminal. */
#ifndef SWEEP_TERM_H
#define SWEEP_TERM_H

#include <stdbool.h>

int term_width(int fd); /* columns of the terminal that fd is; 80 when it does not say */
int term_height(int fd); /* lines; 24 when it does not say */
bool term_begin(void); /* false: stderr is no terminal that can; log lines then go out plainly */
void term_draw(const char *text); /* lines; cut to the terminal's width */
void term_print(const char *line); /* a line of another process, above the block if there is one */
void term_end(void); /* leaves the last block standing, shows the cursor */
void term_emergency(void); /* async-signal-safe: shows the cursor */
/* "[####------]" of width cells. */
const char *term_bar(double fraction, int width, char buf[80]);

#endif
