/* test_request.c - what comes in over HTTP: paths, queries, Host, Origin, cookies, tokens, encodings, entity tags. */

#include "tests/check.h"
#include "web/serve/answer_cache.h"
#include "web/text/put.h"
#include "web/serve/request.h"

static void refused(const char *raw, enum status want, const char *says)
{
    struct target t;
    struct error err = {0};
    enum status rc = target_parse(&t, raw, &err);

    if (rc != want || strstr(err.text, says) == NULL)
        fail_msg("'%.60s': %s: %s", raw, status_name(rc), err.text);
    assert_null(t.text);
}

static struct target parsed(const char *raw)
{
    struct target t;
    struct error err = {0};

    if (target_parse(&t, raw, &err) != ST_OK)
        fail_msg("'%s': %s", raw, err.text);
    return t;
}

TEST(paths)
{
    struct target t = parsed("/");

    assert_int_equal(t.n_segments, 0);
    target_free(&t);
    t = parsed("/api/v1/studies/a%20b%2Fc+d/trials");
    assert_int_equal(t.n_segments, 5);
    assert_string_equal(t.segments[3], "a b/c+d");
    assert_string_equal(t.segments[4], "trials");
    target_free(&t);
    t = parsed("/%C3%A9?q=%C3%A9");
    assert_string_equal(t.segments[0], "\xc3\xa9");
    assert_string_equal(target_query(&t, "q"), "\xc3\xa9");
    target_free(&t);
    refused("", ST_USAGE, "begin with");
    refused("a", ST_USAGE, "begin with");
    refused("*", ST_USAGE, "begin with");
    refused("//", ST_USAGE, "empty");
    refused("/a/", ST_USAGE, "ends with");
    refused("/a//b", ST_USAGE, "empty");
    refused("/..", ST_USAGE, "'..'");
    refused("/a/%2e%2e/b", ST_USAGE, "'..'");
    refused("/.", ST_USAGE, "'.'");
    refused("/%", ST_USAGE, "escape");
    refused("/%4", ST_USAGE, "escape");
    refused("/%gg", ST_USAGE, "escape");
    refused("/%00", ST_USAGE, "control");
    refused("/%0a", ST_USAGE, "control");
    refused("/\x7f", ST_USAGE, "control");
    refused("/%ff", ST_USAGE, "UTF-8");
    refused("/%c3", ST_USAGE, "UTF-8");
    refused("/%ed%a0%80", ST_USAGE, "UTF-8");
    refused("/1/2/3/4/5/6/7/8/9", ST_USAGE, "parts");
}

TEST(long_target)
{
    char raw[TARGET_MAX_BYTES + 2];

    memset(raw, 'a', sizeof raw);
    raw[0] = '/';
    raw[TARGET_MAX_BYTES] = '\0';
    struct target t = parsed(raw);
    assert_int_equal(strlen(t.segments[0]), TARGET_MAX_BYTES - 1);
    target_free(&t);
    raw[TARGET_MAX_BYTES] = 'a';
    raw[TARGET_MAX_BYTES + 1] = '\0';
    refused(raw, ST_LIMIT, "4096");
}

TEST(queries)
{
    struct target t = parsed("/x?a=1&b=x+y%26z&c&d=&=e&");
    int64_t n = 7;
    double x = 7;
    bool yes = false;
    struct error why = {0};

    assert_string_equal(target_query(&t, "a"), "1");
    assert_string_equal(target_query(&t, "b"), "x y&z");
    assert_string_equal(target_query(&t, "c"), "");
    assert_string_equal(target_query(&t, "d"), "");
    assert_string_equal(target_query(&t, ""), "e");
    assert_null(target_query(&t, "f"));
    OK(target_i64(&t, "f", 0, 9, &n, err));
    assert_int_equal(n, 7);
    OK(target_i64(&t, "a", 0, 9, &n, err));
    assert_int_equal(n, 1);
    assert_int_equal(target_i64(&t, "a", 2, 9, &n, &why), ST_USAGE);
    assert_int_equal(target_i64(&t, "b", 0, 9, &n, NULL), ST_USAGE);
    assert_int_equal(target_f64(&t, "a", &x, NULL), ST_OK);
    assert_true(x == 1.0);
    assert_int_equal(target_f64(&t, "d", &x, NULL), ST_USAGE);
    assert_int_equal(target_bool(&t, "a", &yes, NULL), ST_OK);
    assert_true(yes);
    assert_int_equal(target_bool(&t, "c", &yes, NULL), ST_USAGE);
    target_free(&t);
    refused("/x?a=1&a=2", ST_USAGE, "twice");
    refused("/x?a=%zz", ST_USAGE, "escape");
    refused("/x?%00=1", ST_USAGE, "control");
    refused("/x?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17", ST_USAGE, "more than 16");
    t = parsed("/x?nan=nan&inf=inf&hex=0x10");
    assert_int_equal(target_f64(&t, "nan", &x, NULL), ST_USAGE);
    assert_int_equal(target_f64(&t, "inf", &x, NULL), ST_USAGE);
    assert_int_equal(target_f64(&t, "hex", &x, NULL), ST_USAGE);
    target_free(&t);
}

TEST(hosts)
{
    static const char *const ours[] = {"trawl.example"};
    static const char *const good[] = {"localhost", "LocalHost:8080", "127.0.0.1",     "127.0.0.1:1",
                                       "[::1]",     "[::1]:65535",    "trawl.example", "TRAWL.EXAMPLE:443"};
    static const char *const bad[] = {"",
                                      "evil.example",
                                      "localhost.evil",
                                      "evil.localhost",
                                      "localhost:",
                                      "localhost:x",
                                      "localhost:80x",
                                      "localhost:123456",
                                      ":80",
                                      "[::1",
                                      "[::1]x",
                                      "127.0.0.11",
                                      "127.0.0.1.x",
                                      "trawl.example.",
                                      "localhost@x"};

    for (size_t i = 0; i < COUNT(good); i++)
        if (!host_is_allowed(good[i], ours, 1))
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (host_is_allowed(bad[i], ours, 1))
            fail_msg("%s was allowed", bad[i]);
    assert_false(host_is_allowed(NULL, ours, 1));
    assert_false(host_is_allowed("trawl.example", ours, 0));
}

TEST(origins)
{
    assert_true(origin_is_own("http://localhost:8080", NULL, "localhost:8080"));
    assert_true(origin_is_own("https://trawl.example", "same-origin", "trawl.example"));
    assert_true(origin_is_own(NULL, "same-origin", "localhost"));
    assert_false(origin_is_own(NULL, NULL, "localhost"));
    assert_false(origin_is_own("null", NULL, "localhost"));
    assert_false(origin_is_own("http://localhost", NULL, "localhost:8080"));
    assert_false(origin_is_own("http://localhost:8080.evil", NULL, "localhost:8080"));
    assert_false(origin_is_own("http://evil", NULL, "localhost:8080"));
    assert_false(origin_is_own("file://localhost:8080", NULL, "localhost:8080"));
    assert_false(origin_is_own("http://localhost:8080", "cross-site", "localhost:8080"));
    assert_false(origin_is_own("http://localhost:8080", "same-site", "localhost:8080"));
    assert_false(origin_is_own("http://localhost:8080", "none", "localhost:8080"));
    assert_false(origin_is_own("http://x", NULL, NULL));
}

TEST(cookies_and_tokens)
{
    char value[8] = "";

    assert_true(cookie_find("a=1; trawl_80=secret; b=2", "trawl_80", value, sizeof value));
    assert_string_equal(value, "secret");
    assert_true(cookie_find("trawl_80=", "trawl_80", value, sizeof value));
    assert_string_equal(value, "");
    assert_false(cookie_find("xtrawl_80=secret", "trawl_80", value, sizeof value));
    assert_false(cookie_find("trawl_8=1", "trawl_80", value, sizeof value));
    assert_false(cookie_find("trawl_80", "trawl_80", value, sizeof value));
    assert_false(cookie_find("trawl_80=12345678", "trawl_80", value, sizeof value)); /* too long is none, not cut */
    assert_false(cookie_find(NULL, "trawl_80", value, sizeof value));
    assert_true(token_equal("abc", "abc"));
    assert_false(token_equal("abc", "abd"));
    assert_false(token_equal("abc", "ab"));
    assert_false(token_equal("abc", "abcabc"));
    assert_false(token_equal("abc", ""));
    assert_false(token_equal("", "a"));
}

TEST(encodings_and_tags)
{
    assert_true(accepts_gzip("gzip"));
    assert_true(accepts_gzip("br, GZIP;q=0.5"));
    assert_true(accepts_gzip("*"));
    assert_true(accepts_gzip("deflate,gzip, br"));
    assert_false(accepts_gzip(NULL));
    assert_false(accepts_gzip(""));
    assert_false(accepts_gzip("identity"));
    assert_false(accepts_gzip("gzip;q=0"));
    assert_false(accepts_gzip("gzip;q=0.0, br"));
    assert_false(accepts_gzip("gzipx, xgzip"));
    assert_true(etag_matches("\"a\"", "\"a\""));
    assert_true(etag_matches("\"b\", W/\"a\"", "\"a\""));
    assert_true(etag_matches("*", "\"a\""));
    assert_false(etag_matches("\"ab\"", "\"a\""));
    assert_false(etag_matches("", "\"a\""));
    assert_false(etag_matches(NULL, "\"a\""));
    assert_true(list_has("a,bc", "bc"));
    assert_false(list_has("a,bc", "b"));
    assert_false(list_has("", "a"));
}

/* Script in a text cannot end a page's script, whatever a page does with our JSON. */
TEST(json_texts)
{
    STRBUF(out, 4096);

    put_str(&out, "</script>\"\\\n\x01&\xff\xc3\xa9");
    assert_string_equal(out.text, "\"\\u003c/script\\u003e\\\"\\\\\\n\\u0001\\u0026\xef\xbf\xbd\xc3\xa9\"");
    strbuf_clear(&out);
    put_json_text(&out, "{\"a\":\"<b>\"}");
    assert_string_equal(out.text, "{\"a\":\"\\u003cb\\u003e\"}");
    strbuf_clear(&out);
    put_f64(&out, 0.1);
    put_f64(&out, -3.0);
    put_f64(&out, (double)__builtin_inf());
    put_f64(&out, (double)__builtin_nan(""));
    put_json(&out, "%lld", (long long)INT64_MAX);
    assert_string_equal(out.text, "0.1-3\"inf\"null\"9223372036854775807\"");
    strbuf_clear(&out);
    const char *volatile none = NULL; /* an absent text is not a crash in any of the languages */
    put_json(&out, "[%s]", none);
    put_xml(&out, "[%s]", none);
    put_tex(&out, "[%s]", none);
    assert_string_equal(out.text, "[null][][]");
}

/* The longest unused answers leave; one that is held lives on. */
TEST(cache)
{
    struct cache cache;
    struct strbuf text;
    char key[32];

    cache_init(&cache);
    for (int i = 0; i < 300; i++) { /* more than there is room for */
        strbuf_init(&text, 1 << 20);
        for (int k = 0; k < 2000; k++)
            strbuf_addf(&text, "answer %d\n", i);
        struct answer *a = answer_create(200, "text/plain");
        assert_int_equal(answer_finish(a, &text, NULL), ST_OK);
        assert_non_null(a->gzip);
        assert_true(a->etag[0] == '"');
        a->version = 5;
        snprintf(key, sizeof key, "/%d", i);
        cache_keep(&cache, key, a);
        answer_release(a);
        strbuf_free(&text);
    }
    assert_null(cache_find(&cache, "/0", 5)); /* the oldest has left */
    assert_null(cache_find(&cache, "/299", 6)); /* of another version */
    struct answer *found = cache_find(&cache, "/299", 5);
    assert_non_null(found);
    assert_memory_equal(found->bytes, "answer 299\n", 11);
    cache_free(&cache);
    assert_memory_equal(found->bytes, "answer 299\n", 11); /* who holds it keeps it */
    answer_release(found);
}

TEST_PROGRAM("request")
