/* request.c - requests taken apart and judged.
 * Invariants: (1) what is not wholly understood is refused, never guessed; (2) segments are compared with names and
 * never become a path of the file system; (3) nothing here keeps a pointer to what it was given. */
#include "web/serve/request.h"

#include <strings.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes [from, to) in place and ends it with NUL; false: a bad escape, a control character, invalid UTF-8. */
static bool decode(char *from, const char *to, bool plus_is_space)
{
    char *out = from;
    const char *in = from;

    while (in < to) {
        char c = *in++;
        if (c == '%') {
            int hi = in < to ? hex_value(in[0]) : -1, lo = in + 1 < to ? hex_value(in[1]) : -1;
            if (hi < 0 || lo < 0)
                return false;
            c = (char)(hi * 16 + lo);
            in += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        if ((unsigned char)c < 0x20 || c == 0x7f)
            return false;
        *out++ = c;
    }
    *out = '\0';
    for (size_t n = (size_t)(out - from), i = 0, len; i < n; i += len) {
        len = utf8_length(from + i, n - i);
        if (len == 0)
            return false;
    }
    return true;
}

static enum status add_segment(struct target *t, char *from, char *to, struct error *err)
{
    if (t->n_segments == TARGET_MAX_SEGMENTS)
        return FAIL(err, ST_USAGE, "the path has more than %d parts", TARGET_MAX_SEGMENTS);
    if (from == to)
        return FAIL(err, ST_USAGE, "the path has an empty part; write single slashes and none at its end");
    if (!decode(from, to, false))
        return FAIL(err, ST_USAGE, "the path holds a bad %%-escape, a control character or text that is not UTF-8");
    if (strcmp(from, ".") == 0 || strcmp(from, "..") == 0)
        return FAIL(err, ST_USAGE, "the path holds '%s', which leads nowhere here", from);
    /* A study may be called "a/b": an escaped slash stays in its segment, which is compared as a whole. */
    t->segments[t->n_segments++] = from;
    return ST_OK;
}

static enum status add_query(struct target *t, char *from, char *to, struct error *err)
{
    char *equal = memchr(from, '=', (size_t)(to - from));
    char *value = equal != NULL ? equal + 1 : to;

    if (from == to)
        return ST_OK; /* "?a=1&" is common */
    if (t->n_query == TARGET_MAX_QUERY)
        return FAIL(err, ST_USAGE, "more than %d parameters", TARGET_MAX_QUERY);
    if (!decode(value, to, true) || !decode(from, equal != NULL ? equal : to, true))
        return FAIL(err, ST_USAGE, "a parameter holds a bad %%-escape, a control character or text that is not UTF-8");
    if (target_query(t, from) != NULL)
        return FAIL(err, ST_USAGE, "the parameter '%s' is given twice", from);
    t->query[t->n_query].key = from;
    t->query[t->n_query].value = equal != NULL ? value : "";
    t->n_query++;
    return ST_OK;
}

static enum status split(struct target *t, struct error *err)
{
    char *at = t->text, *end = at + strlen(at), *question = strchr(at, '?');
    char *path_end = question != NULL ? question : end;

    if (*at != '/')
        return FAIL(err, ST_USAGE, "the path does not begin with '/'");
    at++;
    while (at < path_end) {
        char *slash = memchr(at, '/', (size_t)(path_end - at));
        char *to = slash != NULL ? slash : path_end;
        TRY(add_segment(t, at, to, err));
        if (slash != NULL && slash + 1 == path_end)
            return FAIL(err, ST_USAGE, "the path ends with '/'");
        at = slash != NULL ? slash + 1 : path_end;
    }
    at = question != NULL ? question + 1 : end;
    while (at < end) {
        char *ampersand = memchr(at, '&', (size_t)(end - at));
        char *to = ampersand != NULL ? ampersand : end;
        TRY(add_query(t, at, to, err));
        at = ampersand != NULL ? ampersand + 1 : end;
    }
    return ST_OK;
}

enum status target_parse(struct target *ret_target, const char *raw, struct error *err)
{
    struct target t = {0};

    *ret_target = t;
    if (strlen(raw) > TARGET_MAX_BYTES)
        return FAIL(err, ST_LIMIT, "the address has more than %d bytes", TARGET_MAX_BYTES);
    t.text = mem_alloc(strlen(raw) + 2); /* a byte more: the last value's NUL */
    memcpy(t.text, raw, strlen(raw));
    enum status rc = split(&t, err);
    if (rc != ST_OK) {
        mem_free(t.text);
        return rc;
    }
    *ret_target = t;
    return ST_OK;
}

void target_free(struct target *target)
{
    mem_free(target->text);
    *target = (struct target){0};
}

const char *target_query(const struct target *target, const char *key)
{
    for (size_t i = 0; i < target->n_query; i++)
        if (strcmp(target->query[i].key, key) == 0)
            return target->query[i].value;
    return NULL;
}

enum status target_i64(const struct target *target, const char *key, int64_t min, int64_t max, int64_t *ret_value,
                       struct error *err)
{
    const char *text = target_query(target, key);
    int64_t value;

    if (text == NULL)
        return ST_OK;
    if (!num_parse_i64(text, &value) || value < min || value > max)
        return FAIL(err, ST_USAGE, "%s is '%.40s'; a whole number from %lld to %lld is needed", key, text,
                    (long long)min, (long long)max);
    *ret_value = value;
    return ST_OK;
}

enum status target_f64(const struct target *target, const char *key, double *ret_value, struct error *err)
{
    const char *text = target_query(target, key);
    double value;

    if (text == NULL)
        return ST_OK;
    if (!num_parse_f64(text, &value))
        return FAIL(err, ST_USAGE, "%s is '%.40s'; a number is needed", key, text);
    *ret_value = value;
    return ST_OK;
}

enum status target_bool(const struct target *target, const char *key, bool *ret_value, struct error *err)
{
    const char *text = target_query(target, key);

    if (text == NULL)
        return ST_OK;
    if (strcmp(text, "1") == 0 || strcmp(text, "true") == 0)
        *ret_value = true;
    else if (strcmp(text, "0") == 0 || strcmp(text, "false") == 0)
        *ret_value = false;
    else
        return FAIL(err, ST_USAGE, "%s is '%.40s'; 1 or 0 is needed", key, text);
    return ST_OK;
}

bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = list; *at != '\0';) {
        size_t len = strcspn(at, ",");
        if (len == n && strncmp(at, word, n) == 0)
            return true;
        at += len + (at[len] == ',');
    }
    return false;
}

/* The name in "name", "name:80", "[::1]:80"; 0 when it has no such form. */
static size_t host_name_length(const char *host)
{
    size_t n;

    if (host[0] == '[') {
        n = strcspn(host, "]");
        if (host[n] != ']')
            return 0;
        n++;
    } else {
        n = strcspn(host, ":");
    }
    const char *port = host + n;
    if (*port == '\0')
        return n;
    if (*port != ':' || strlen(port) > 6 || port[1] == '\0' || port[1 + strspn(port + 1, "0123456789")] != '\0')
        return 0;
    return n;
}

bool host_is_allowed(const char *host, const char *const *names, size_t n_names)
{
    static const char *const loopback[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t n = host != NULL ? host_name_length(host) : 0;

    if (n == 0)
        return false;
    for (size_t i = 0; i < COUNT(loopback); i++)
        if (strlen(loopback[i]) == n && strncasecmp(host, loopback[i], n) == 0)
            return true;
    for (size_t i = 0; i < n_names; i++)
        if (strlen(names[i]) == n && strncasecmp(host, names[i], n) == 0)
            return true;
    return false;
}

bool origin_is_own(const char *origin, const char *fetch_site, const char *host)
{
    if (host == NULL || (fetch_site != NULL && strcmp(fetch_site, "same-origin") != 0))
        return false;
    if (origin == NULL)
        return fetch_site != NULL; /* a browser sends one of both at least; others send Origin by hand */
    const char *rest = strncmp(origin, "http://", 7) == 0    ? origin + 7
                       : strncmp(origin, "https://", 8) == 0 ? origin + 8
                                                             : NULL;
    return rest != NULL && strcasecmp(rest, host) == 0;
}

bool cookie_find(const char *header, const char *name, char *ret_value, size_t size)
{
    size_t n = strlen(name);

    for (const char *at = header; at != NULL && *at != '\0';) {
        at += strspn(at, " \t;");
        size_t len = strcspn(at, ";");
        if (len > n && strncmp(at, name, n) == 0 && at[n] == '=') {
            len -= n + 1;
            if (len >= size)
                return false;
            memcpy(ret_value, at + n + 1, len);
            ret_value[len] = '\0';
            return true;
        }
        at += len;
    }
    return false;
}

bool token_equal(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    volatile unsigned char difference = na != nb;

    for (size_t i = 0; i < na; i++)
        difference |= (unsigned char)(a[i] ^ b[nb > 0 ? i % nb : 0]);
    return difference == 0;
}

bool accepts_gzip(const char *header)
{
    for (const char *at = header; at != NULL && *at != '\0';) {
        size_t len = strcspn(at, ","), name;
        at += strspn(at, " \t");
        len = strcspn(at, ",");
        name = strcspn(at, ",; \t");
        if ((name == 4 && strncasecmp(at, "gzip", 4) == 0) || (name == 1 && *at == '*')) {
            const char *q = memchr(at, '=', len);
            return q == NULL || strspn(q + 1, "0.") != strcspn(q + 1, ",; \t");
        }
        at += len + (at[len] == ',');
    }
    return false;
}

bool etag_matches(const char *header, const char *etag)
{
    size_t n = strlen(etag);

    for (const char *at = header; at != NULL && *at != '\0';) {
        at += strspn(at, " \t,");
        if (*at == '*')
            return true;
        if (strncmp(at, "W/", 2) == 0)
            at += 2;
        size_t len = strcspn(at, ", \t");
        if (len == n && strncmp(at, etag, n) == 0)
            return true;
        at += len;
    }
    return false;
}
