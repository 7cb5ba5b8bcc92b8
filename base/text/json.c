/* json.c - limits, exact numbers and our allocator for cJSON.
 * Printing is done here: cJSON prints 15 digits whenever those are within one epsilon, which loses the last bits of a
 * double, and formats a number up to three times. */
#include "base/text/json.h"

#include "base/mem.h"
#include "base/text/num.h"
#include "base/text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EXACT_I64_MAX (INT64_C(1) << 53)

/* Runs before main: every block of cJSON comes from mem_alloc and returns to mem_free. */
__attribute__((constructor)) static void use_our_allocator(void)
{
    cJSON_Hooks hooks = {.malloc_fn = mem_alloc, .free_fn = mem_free};
    cJSON_InitHooks(&hooks);
}

void json_delete_at(cJSON **json)
{
    cJSON_Delete(*json);
}

/* Depth, encoding and control characters, before cJSON recurses into the text. */
static enum status scan(const char *text, size_t n, struct error *err)
{
    bool in_string = false;
    size_t depth = 0;

    for (size_t i = 0; i < n;) {
        size_t len = utf8_length(text + i, n - i);
        char c = text[i];
        if (len == 0)
            return FAIL(err, ST_CORRUPT, "JSON: byte %zu is not UTF-8", i);
        if ((unsigned char)c < 0x20 && (in_string || (c != '\n' && c != '\r' && c != '\t')))
            return FAIL(err, ST_CORRUPT, "JSON: byte %zu is a control character", i);
        i += len;
        if (in_string) {
            if (c == '"')
                in_string = false;
            else if (c == '\\' && n - i >= 5 && memcmp(text + i, "u0000", 5) == 0)
                return FAIL(err, ST_CORRUPT, "JSON: byte %zu is \\u0000, which no text may hold", i - 1);
            else if (c == '\\' && i < n && (unsigned char)text[i] >= 0x20 && (unsigned char)text[i] < 0x80)
                i++;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > JSON_MAX_DEPTH)
                return FAIL(err, ST_CORRUPT, "JSON: byte %zu opens level %zu, the limit is %d", i - 1, depth,
                            JSON_MAX_DEPTH);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return ST_OK;
}

enum status json_parse(const char *text, size_t n, cJSON **ret_json, struct error *err)
{
    const char *end = text;

    *ret_json = NULL;
    if (n > JSON_MAX_BYTES)
        return FAIL(err, ST_CORRUPT, "JSON: %zu bytes, the limit is %u", n, JSON_MAX_BYTES);
    TRY(scan(text, n, err));
    cJSON *json = cJSON_ParseWithLengthOpts(text, n, &end, false);
    if (json == NULL)
        return FAIL(err, ST_CORRUPT, "JSON: byte %zu of %zu is not what belongs there", (size_t)(end - text), n);
    while (end < text + n && (*end == ' ' || *end == '\t' || *end == '\r' || *end == '\n'))
        end++;
    if (end != text + n) {
        cJSON_Delete(json);
        return FAIL(err, ST_CORRUPT, "JSON: byte %zu: something follows the value", (size_t)(end - text));
    }
    *ret_json = json;
    return ST_OK;
}

void json_write_str(struct strbuf *sb, const char *text)
{
    static const char named[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";

    strbuf_add(sb, "\"");
    for (size_t n; *text != '\0'; text += n) {
        n = 0;
        while ((unsigned char)text[n] >= 0x20 && text[n] != '"' && text[n] != '\\')
            n++;
        strbuf_add_n(sb, text, n);
        if (text[n] == '\0')
            break;
        const char *short_form = strchr(named, text[n]);
        if (short_form != NULL)
            strbuf_addf(sb, "\\%c", letters[short_form - named]);
        else
            strbuf_addf(sb, "\\u%04x", (unsigned)text[n]);
        n++;
    }
    strbuf_add(sb, "\"");
}

static void write_break(struct strbuf *sb, int depth)
{
    strbuf_add(sb, "\n");
    for (int i = 0; i < depth; i++)
        strbuf_add(sb, "\t");
}

/* depth: tabs in front of a member, one more for each level; negative: no line breaks. */
static void write_value(struct strbuf *sb, const cJSON *json, int depth)
{
    char number[NUM_TEXT_MAX];
    const cJSON *item;
    bool is_object = cJSON_IsObject(json), breaks = is_object && depth >= 0 && json->child != NULL;

    if (cJSON_IsNumber(json)) {
        strbuf_add(sb, isfinite(json->valuedouble) ? num_format_f64(json->valuedouble, number) : "null");
    } else if (cJSON_IsString(json)) {
        json_write_str(sb, json->valuestring);
    } else if (cJSON_IsRaw(json)) {
        strbuf_add(sb, json->valuestring);
    } else if (is_object || cJSON_IsArray(json)) {
        strbuf_add(sb, is_object ? "{" : "[");
        cJSON_ArrayForEach(item, json)
        {
            if (item != json->child)
                strbuf_add(sb, breaks || depth < 0 ? "," : ", ");
            if (breaks)
                write_break(sb, depth + 1);
            if (is_object) {
                json_write_str(sb, item->string);
                strbuf_add(sb, breaks ? ": " : ":");
            }
            write_value(sb, item, depth < 0 ? depth : depth + 1);
        }
        if (breaks)
            write_break(sb, depth);
        strbuf_add(sb, is_object ? "}" : "]");
    } else {
        strbuf_add(sb, cJSON_IsTrue(json) ? "true" : cJSON_IsFalse(json) ? "false" : "null");
    }
}

char *json_print(const cJSON *json, bool pretty)
{
    struct strbuf sb;

    strbuf_init(&sb, SIZE_MAX / 2);
    write_value(&sb, json, pretty ? 0 : -1);
    return strbuf_take(&sb);
}

void json_add(cJSON *object, const char *key, cJSON *value)
{
    cJSON_AddItemToObject(object, key, value);
}

void json_add_f64(cJSON *object, const char *key, double value)
{
    if (isnan(value))
        json_add(object, key, cJSON_CreateNull());
    else
        json_add_f64_any(object, key, value);
}

void json_add_f64_any(cJSON *object, const char *key, double value)
{
    char text[NUM_TEXT_MAX];

    json_add(object, key,
             isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateString(num_format_f64(value, text)));
}

void json_add_i64(cJSON *object, const char *key, int64_t value)
{
    char text[NUM_TEXT_MAX];

    snprintf(text, sizeof text, "%lld", (long long)value);
    if (value > EXACT_I64_MAX || value < -EXACT_I64_MAX)
        json_add(object, key, cJSON_CreateString(text));
    else if (value < INT64_C(1000000000000000) && value > -INT64_C(1000000000000000)) /* 15 digits: no exponent */
        json_add(object, key, cJSON_CreateNumber((double)value));
    else
        json_add(object, key, cJSON_CreateRaw(text));
}

/* Bytes that are not UTF-8 (a path may hold any byte) become '?': our own output always parses. */
void json_add_str(cJSON *object, const char *key, const char *value)
{
    MEM_LOCAL char *clean = value != NULL ? mem_strdup(value) : NULL;

    for (size_t i = 0, len, n = clean != NULL ? strlen(clean) : 0; i < n; i += len) {
        len = utf8_length(clean + i, n - i);
        if (len == 0) {
            clean[i] = '?';
            len = 1;
        }
    }
    json_add(object, key, clean != NULL ? cJSON_CreateString(clean) : cJSON_CreateNull());
}

void json_add_bool(cJSON *object, const char *key, bool value)
{
    json_add(object, key, cJSON_CreateBool(value));
}

static bool item_number(const cJSON *item, double *ret_value)
{
    if (cJSON_IsRaw(item)) /* from json_add_i64 */
        return num_parse_f64(item->valuestring, ret_value);
    if (!cJSON_IsNumber(item) || !isfinite(item->valuedouble))
        return false; /* 1e999 in a foreign text: Trawl writes no such number */
    *ret_value = item->valuedouble;
    return true;
}

bool json_get_f64(const cJSON *object, const char *key, double *ret_value)
{
    const cJSON *item = json_get(object, key);
    double finite;

    if (cJSON_IsString(item)) /* only the words; a string of digits stays a string */
        return !num_parse_f64(item->valuestring, &finite) && num_parse_f64_any(item->valuestring, ret_value);
    return item_number(item, ret_value);
}

bool json_get_i64(const cJSON *object, const char *key, int64_t *ret_value)
{
    const cJSON *item = json_get(object, key);
    double value;

    if (cJSON_IsString(item)) { /* only an integer that no double holds; other digits in quotes stay a text */
        int64_t large;
        if (item->valuestring[strspn(item->valuestring, "-0123456789")] != '\0' ||
            !num_parse_i64(item->valuestring, &large) || (large <= EXACT_I64_MAX && large >= -EXACT_I64_MAX))
            return false;
        *ret_value = large;
        return true;
    }
    if (!item_number(item, &value) || fabs(value) > (double)EXACT_I64_MAX || value != floor(value))
        return false;
    *ret_value = (int64_t)value;
    return true;
}

bool json_get_bool(const cJSON *object, const char *key, bool *ret_value)
{
    const cJSON *item = json_get(object, key);

    if (!cJSON_IsBool(item))
        return false;
    *ret_value = cJSON_IsTrue(item);
    return true;
}

const char *json_get_str(const cJSON *object, const char *key)
{
    return cJSON_GetStringValue(json_get(object, key));
}

double json_f64_or(const cJSON *object, const char *key, double other)
{
    (void)json_get_f64(object, key, &other);
    return other;
}

int64_t json_i64_or(const cJSON *object, const char *key, int64_t other)
{
    (void)json_get_i64(object, key, &other);
    return other;
}

bool json_bool_or(const cJSON *object, const char *key, bool other)
{
    (void)json_get_bool(object, key, &other);
    return other;
}

enum status json_take_i64(const cJSON *json, const char *key, int64_t *ret_value, struct error *err)
{
    if (json_get(json, key) == NULL || json_get_i64(json, key, ret_value))
        return ST_OK;
    return FAIL(err, ST_USAGE, "%s is not a whole number that fits; a number is written without quotes", key);
}

enum status json_take_f64(const cJSON *json, const char *key, double *ret_value, struct error *err)
{
    if (json_get(json, key) == NULL || json_get_f64(json, key, ret_value))
        return ST_OK;
    return FAIL(err, ST_USAGE, "%s is not a number; a number is written without quotes", key);
}

enum status json_take_bool(const cJSON *json, const char *key, bool *ret_value, struct error *err)
{
    if (json_get(json, key) == NULL || json_get_bool(json, key, ret_value))
        return ST_OK;
    return FAIL(err, ST_USAGE, "%s is neither true nor false", key);
}
