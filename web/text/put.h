/* put.h - JSON and markup written straight into a text: a list of 10,000 trials needs no tree.
 * The formats are printf's, which the compiler checks; each value is written as the language has it, so that no name of
 * a study can become markup. A failed append breaks the strbuf; strbuf_status reports it once, at the writer's end. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct strbuf;

/* JSON. In the format ' stands for ": put_json(out, "{'study':%s,'cost':%g}", name, cost).
 *   %s    a string with its quotes, invalid UTF-8 replaced, '<' escaped; NULL: null
 *   %g    a number; NaN: null, infinite ones: "inf", "-inf"
 *   %lld  a whole number; beyond 2^53: a string.  %zu, %d: smaller ones.  %i: true or false */
void put_json(struct strbuf *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
void put_str(struct strbuf *out, const char *text); /* as %s */
void put_f64(struct strbuf *out, double value); /* as %g */
/* A JSON text with '<', '>' and '&', which can only stand in its strings, as escapes. */
void put_json_text(struct strbuf *out, const char *text);

/* HTML and XML, attributes in quotes too.
 *   %s    text, escaped, invalid UTF-8 replaced; NULL: ""
 *   %g    a place in a drawing, to one decimal.  %e: a number as people read it (text_number)
 *   %lld, %zu, %d as usual */
void put_xml(struct strbuf *out, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* LaTeX: %s text, escaped, NULL: ""; %e a number, in math mode; "--": unknown.
 *   %lld, %zu, %d as usual */
void put_tex(struct strbuf *out, const char *fmt, ...) PRINTF_LIKE(2, 3);
