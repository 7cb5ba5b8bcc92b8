/* num.h - numbers to text and back, always with a decimal point whatever the locale says; sorting. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NUM_TEXT_MAX 32

/* The whole text must be one number (surrounding blanks are fine). '_' between digits and the suffixes k, M, G (1e3,
 * 1e6, 1e9) are read; "nan" and "inf" parse only in num_parse_f64_any. An incomplete number, "1,5", "" and "0x10" are
 * false. */
bool num_parse_f64(const char *text, double *ret_value);
bool num_parse_f64_any(const char *text, double *ret_value);
bool num_parse_i64(const char *text, int64_t *ret_value); /* "3e7" and "20M" are whole, "1.5" is not */

/* Shortest text that reads back to the same double; nan, inf, -inf spelt so. Returns buf. */
const char *num_format_f64(double value, char buf[NUM_TEXT_MAX]);
/* For people: 4 significant digits with k/M/G. "12.3M". */
const char *num_format_short(double value, char buf[NUM_TEXT_MAX]);

void num_sort(double *values, size_t n); /* ascending; without NaN */
