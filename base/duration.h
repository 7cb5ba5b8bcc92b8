/* duration.h - durations that people type ("90", "2h"), and durations as short texts for a terminal.
 * Any thread; the text is written into the caller's buf and returned. */
#ifndef BASE_DURATION_H
#define BASE_DURATION_H

#include <stdbool.h>

/* "90", "90s", "30m", "2h", "1.5d" -> seconds > 0. */
bool parse_seconds(const char *text, double *ret_s);
/* "35 ms", "4.2 s", "3m 05s", "1h 02m", "2d 03h". */
const char *format_seconds(double s, char buf[32]);

#endif
