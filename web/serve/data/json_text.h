/* json_text.h - JSON written straight into a text, for lists too long for a tree of cJSON.
 * A failed append breaks the strbuf; strbuf_status reports it once, at the writer's end. */
#ifndef WEB_SERVE_JSON_TEXT_H
#define WEB_SERVE_JSON_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text/json.h"

struct strbuf;

void put_str(struct strbuf *out, const char *text); /* quoted; NULL: null; invalid UTF-8 replaced; '<' escaped */
/* A JSON text with '<', '>' and '&', which can only stand in its strings, as escapes. */
void put_json_text(struct strbuf *out, const char *text);
void put_f64(struct strbuf *out, double value); /* NaN: null; infinite: "inf", "-inf" */
void put_i64(struct strbuf *out, int64_t value); /* beyond 2^53: a string */
void put_time(struct strbuf *out, int64_t ms); /* 0: null */
void put_key(struct strbuf *out,
             const char *key); /* "key": with a comma before it unless it is the first of its object */
void add_number(cJSON *object, const char *key, double value); /* json_add_f64 with NaN as null */

#endif
