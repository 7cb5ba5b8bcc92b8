/* duration.h - durations that people type ("90", "2h"), and durations as short texts.
 * Any thread; the text is written into the caller's buf and returned. */
#pragma once

#include "base/base.h"

/* "90", "90s", "30m", "2h", "1.5d" -> seconds > 0. */
bool parse_seconds(const char *text, double *ret_s);
/* Three digits or two units: "35.1 ms", "4.24 s", "3m 05s", "1h", "2d 03h"; "?": unknown. */
const char *format_seconds(double s, char buf[32]);
