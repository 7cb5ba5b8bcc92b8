/* json.h - cJSON with limits and with NaN and Inf handled on purpose.
 * cJSON prints non-finite numbers as null and loses them; json_add_f64 writes "inf" and "-inf" as strings, and an
 * unknown number, NaN, as null. Between processes and in a store, where null is an absent number, json_add_f64_any
 * writes "nan"; json_get_f64 reads numbers and these words. Integers beyond 2^53 are written as strings the same
 * way. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cJSON.h>

#include "base/status.h"
#include "base/text/strbuf.h"

/* Of a local cJSON *: it is deleted when its block ends. */
#define JSON_LOCAL AT_END(json_delete_at)
void json_delete_at(cJSON **json);

#define JSON_MAX_BYTES (64u << 20)
#define JSON_MAX_DEPTH 64

/* The whole text must be one value. A text that is too deep or too long, trailing bytes, invalid UTF-8 and \u0000 (C's
 * strings would end there) are ST_CORRUPT with the position. */
enum status json_parse(const char *text, size_t n, cJSON **ret_json, struct error *err) MUST_USE;
/* text as a JSON string, with its quotes. */
void json_write_str(struct strbuf *sb, const char *text);
char *json_print(const cJSON *json, bool pretty); /* never NULL; caller: mem_free */

/* Adders to an object, which never fail. */
void json_add_f64(cJSON *object, const char *key, double value);
void json_add_f64_any(cJSON *object, const char *key, double value);
void json_add_i64(cJSON *object, const char *key, int64_t value);
void json_add_str(cJSON *object, const char *key, const char *value); /* NULL value: null */
void json_add_bool(cJSON *object, const char *key, bool value);
void json_add(cJSON *object, const char *key, cJSON *value); /* takes value; NULL value: adds nothing */

static inline cJSON *json_get(const cJSON *object, const char *key) /* borrowed; NULL: it has none, or is none */
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* Getters: false when the member is absent or of another type; *ret_value is then unchanged. Digits in quotes are a
 * text, except integers beyond 2^53. */
bool json_get_f64(const cJSON *object, const char *key, double *ret_value);
bool json_get_i64(const cJSON *object, const char *key, int64_t *ret_value);
bool json_get_bool(const cJSON *object, const char *key, bool *ret_value);
const char *json_get_str(const cJSON *object, const char *key); /* borrowed; NULL when absent */
/* The same as values, and `other` where a getter is false. */
double json_f64_or(const cJSON *object, const char *key, double other);
int64_t json_i64_or(const cJSON *object, const char *key, int64_t other);
bool json_bool_or(const cJSON *object, const char *key, bool other);

/* A value of a request: an absent one leaves *ret_value unchanged, anything but a number (or a bool) is ST_USAGE. */
enum status json_take_i64(const cJSON *json, const char *key, int64_t *ret_value, struct error *err) MUST_USE;
enum status json_take_f64(const cJSON *json, const char *key, double *ret_value, struct error *err) MUST_USE;
enum status json_take_bool(const cJSON *json, const char *key, bool *ret_value, struct error *err) MUST_USE;
