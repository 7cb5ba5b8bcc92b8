/* csv.h - a table as text, RFC 4180: commas, quotes, a header line. Any thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

/* An array with an object for each line after the header: texts by column. The caller deletes it. ST_CORRUPT names the
 * line: another number of fields than the header has, a quote that does not end, a duplicate column. */
enum status csv_parse(const char *text, size_t n, cJSON **ret_rows, struct error *err) MUST_USE;
