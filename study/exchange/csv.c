/* csv.c - reads CSV. */
#include "study/exchange/csv.h"

#define COLUMNS_MAX 4096

struct reader {
    const char *at, *end;
    size_t line; /* from 1 */
    struct strbuf field;
};

/* The next field, into r->field; *ret_last: the line ends with it. */
static enum status next_field(struct reader *r, bool *ret_last, struct error *err)
{
    size_t from = r->line;

    strbuf_clear(&r->field);
    if (r->at < r->end && *r->at == '"') {
        for (r->at++;; r->at++) {
            if (r->at == r->end)
                return FAIL(err, ST_CORRUPT, "line %zu: a field begins with a quote that does not end", from);
            if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"'))
                break;
            r->at += *r->at == '"'; /* a doubled quote is one */
            r->line += *r->at == '\n';
            strbuf_add_n(&r->field, r->at, 1);
        }
        r->at++;
    }
    while (r->at < r->end && *r->at != ',' && *r->at != '\n' && *r->at != '\r')
        strbuf_add_n(&r->field, r->at++, 1);
    *ret_last = r->at == r->end || *r->at != ',';
    if (r->at < r->end && *r->at == '\r')
        r->at++;
    if (r->at < r->end && (*r->at == ',' || *r->at == '\n')) {
        r->line += *r->at == '\n';
        r->at++;
    }
    return strbuf_status(&r->field, "a field of the table", err);
}

static enum status read_header(struct reader *r, cJSON *names, struct error *err)
{
    bool last = false;

    while (!last) {
        const cJSON *item;
        TRY(next_field(r, &last, err));
        cJSON_ArrayForEach(item, names) if (strcmp(item->valuestring, r->field.text) == 0) return FAIL(
            err, ST_CORRUPT, "line 1: the column '%.60s' is there twice", r->field.text);
        if (cJSON_GetArraySize(names) >= COLUMNS_MAX)
            return FAIL(err, ST_CORRUPT, "line 1: more than %d columns", COLUMNS_MAX);
        cJSON_AddItemToArray(names, cJSON_CreateString(r->field.text));
    }
    return ST_OK;
}

/* Spreadsheets and exports put an apostrophe before a text that would be a formula. */
static const char *without_mark(const char *text)
{
    return text[0] == '\'' && text[1] != '\0' && strchr("=+-@\t\r", text[1]) != NULL ? text + 1 : text;
}

static enum status read_row(struct reader *r, const cJSON *names, cJSON *row, struct error *err)
{
    const cJSON *name = names->child;
    size_t from = r->line;
    bool last = false;

    while (!last) {
        TRY(next_field(r, &last, err));
        if (name == NULL || (last && name->next != NULL))
            return FAIL(err, ST_CORRUPT, "line %zu: %s fields than the header's %d", from,
                        name == NULL ? "more" : "fewer", cJSON_GetArraySize(names));
        json_add_str(row, name->valuestring, without_mark(r->field.text));
        name = name->next;
    }
    return ST_OK;
}

enum status csv_parse(const char *text, size_t n, cJSON **ret_rows, struct error *err)
{
    struct reader r = {.at = text, .end = text + n, .line = 1};
    cJSON *rows = cJSON_CreateArray();
    JSON_LOCAL cJSON *names = cJSON_CreateArray();

    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) /* a mark of UTF-8 */
        r.at += 3;
    strbuf_init(&r.field, JSON_MAX_BYTES);
    enum status rc = read_header(&r, names, err);
    while (rc == ST_OK && r.at < r.end) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(rows, row);
        rc = read_row(&r, names, row, err);
    }
    strbuf_free(&r.field);
    if (rc != ST_OK)
        cJSON_Delete(rows);
    else
        *ret_rows = rows;
    return rc;
}
