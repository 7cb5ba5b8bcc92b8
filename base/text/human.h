/* human.h - numbers and times as text for people, always with a decimal point whatever the locale says.
 * Each text is written into the caller's buf and returned; nothing fails. */
#pragma once

#include "base/base.h"

#define HUMAN_TEXT_MAX 64 /* bytes of a text; each is returned in buf */

/* value to a fixed number of decimals. */
const char *text_fixed(double value, int decimals, char buf[HUMAN_TEXT_MAX]);
const char *text_number(double value, char buf[HUMAN_TEXT_MAX]); /* 4 significant digits, "-" when unknown */
const char *text_time(int64_t utc_ms, char buf[HUMAN_TEXT_MAX]); /* "2026-01-31 18:05 UTC" */
