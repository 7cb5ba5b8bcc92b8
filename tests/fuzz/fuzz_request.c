/* fuzz_request.c - any bytes as address and headers of a request: refused with a message, or taken apart into texts
 * without control characters that cannot leave their place. Built and run like fuzz_config.c. */

#include "web/serve/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_text(const char *text)
{
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    static const char *const names[] = {"trawl.example"};
    char text[8192], value[16];
    struct target t;
    struct error err = {0};
    int64_t i = 0;
    double x = 0;
    bool yes = false;

    if (n >= sizeof text)
        return 0;
    memcpy(text, bytes, n);
    text[n] = '\0';
    if (target_parse(&t, text, &err) != ST_OK) {
        if (err.text[0] == '\0' || t.text != NULL)
            abort();
    } else {
        for (size_t k = 0; k < t.n_segments; k++) {
            check_text(t.segments[k]);
            if (strcmp(t.segments[k], "..") == 0 || t.segments[k][0] == '\0')
                abort();
        }
        for (size_t k = 0; k < t.n_query; k++) {
            check_text(t.query[k].key);
            check_text(t.query[k].value);
            (void)!target_i64(&t, t.query[k].key, 0, 100, &i, NULL);
            (void)!target_f64(&t, t.query[k].key, &x, NULL);
            (void)!target_bool(&t, t.query[k].key, &yes, NULL);
            if (i < 0 || i > 100)
                abort();
        }
        target_free(&t);
    }
    (void)host_is_allowed(text, names, 1);
    (void)origin_is_own(text, NULL, text);
    (void)origin_is_own("http://localhost", text, "localhost");
    (void)accepts_gzip(text);
    (void)etag_matches(text, "\"0123456789abcdef\"");
    if (cookie_find(text, "trawl_80", value, sizeof value) && strlen(value) >= sizeof value)
        abort();
    if (token_equal("0123456789abcdef", text) != (strcmp("0123456789abcdef", text) == 0))
        abort();
    return 0;
}
