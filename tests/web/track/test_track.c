/* test_track.c - the parts of the trackers that touch no network: waiting times, addresses, netrc, the rows of the
 * outbox that a tracker gets, and texts that the clients share. */
#include <sys/stat.h>

#include "tests/check.h"
#include "base/rng.h"
#include "web/http/http.h"
#include "web/track/mlflow.h"
#include "web/track/track.h"
#include "web/track/track_util.h"
#include "web/track/upload_priv.h"

TEST(retry_after_in_both_forms)
{
    double s = -1;

    assert_true(http_retry_after("120", 0, &s) && s == 120);
    assert_true(http_retry_after("0", 0, &s) && s == 0);
    assert_true(http_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", 1445412400, &s) && s == 80); /* 1445412480 */
    assert_true(http_retry_after("Wed, 21 Oct 2015 07:28:00 GMT", 1445412500, &s) && s == 0);
    assert_false(http_retry_after("soon", 0, &s));
    assert_false(http_retry_after("-1", 0, &s));
    assert_false(http_retry_after("", 0, &s));
}

TEST(backoff_is_bounded_and_spread)
{
    struct rng rng = rng_seed(3);

    for (int attempt = 0; attempt < 100; attempt++) {
        double cap = attempt < 6 ? (double)(1 << attempt) : 60, low = 1e9, high = 0;
        for (int i = 0; i < 200; i++) {
            double s = http_backoff_s(&rng, attempt, 0);
            assert_true(s >= 0 && s <= cap);
            low = s < low ? s : low;
            high = s > high ? s : high;
            assert_true(http_backoff_s(&rng, attempt, 7) >= 7);
        }
        assert_true(low < cap * 0.1 && high > cap * 0.9); /* the whole range is used */
    }
}

TEST(addresses)
{
    char buf[512];

    assert_string_equal(http_url_shown("https://u:secret@h.example:8/p/q?token=secret#x", buf, sizeof buf),
                        "https://h.example:8/p/q");
    assert_null(strstr(http_url_shown("https://u:sec ret@", buf, sizeof buf), "sec"));
    assert_null(strstr(http_url_shown("/login?next=secret", buf, sizeof buf), "secret"));
    assert_true(http_url_has_secret("https://u:p@h"));
    assert_true(http_url_has_secret("https://h/p?write_token=x"));
    assert_false(http_url_has_secret("https://h:8080/p?page=1"));
    OK(http_url_check("https://h:1/base//", "x", buf, sizeof buf, err));
    assert_string_equal(buf, "https://h:1/base");
    static const char *const bad[] = {"", "h", "ftp://h", "http://", "file:///etc/passwd", "http://h/a b"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        FAILS(http_url_check(bad[i], "track.wandb_url", buf, sizeof buf, err), ST_CONFIG, "track.wandb_url");
    }
}

TEST(netrc_is_read_by_host_and_port)
{
    TEMP_FOLDER(dir);
    char path[64], login[64], password[64];

    snprintf(path, sizeof path, "%s/netrc", dir);
    FILE *file = fopen(path, "w");
    fputs("# machine c login x password wrong\nmachine a.example login ann password one\n"
          "machine a.example:8080\n login \"ann b\"\n\tpassword \"t\\\"wo\"\nmacdef init\nmachine c password macro\n\n"
          "machine c password three login cy\ndefault login any password every\n",
          file);
    fclose(file);
    chmod(path, 0600);
    setenv("NETRC", path, 1);
    assert_true(netrc_find("a.example", login, sizeof login, password, sizeof password));
    assert_true(strcmp(login, "ann") == 0 && strcmp(password, "one") == 0);
    assert_true(netrc_find("a.example:8080", login, sizeof login, password, sizeof password));
    assert_true(strcmp(login, "ann b") == 0 && strcmp(password, "t\"wo") == 0);
    assert_true(netrc_find("C", login, sizeof login, password, sizeof password));
    assert_true(strcmp(login, "cy") == 0 && strcmp(password, "three") == 0);
    assert_false(netrc_find("d", login, sizeof login, password, sizeof password)); /* never another's login */
    unlink(path);
    assert_false(netrc_find("a.example", login, sizeof login, password, sizeof password));
    unsetenv("NETRC");
}

/* n metrics rows 300 ms apart; every 7th has a value that others lack, every 11th tells an old step again. */
static void make_rows(struct outbox_list *list, size_t from, size_t n)
{
    *list = (struct outbox_list){.rows = mem_array(n, sizeof *list->rows), .n = n};
    for (size_t i = 0; i < n; i++) {
        size_t k = from + i;
        char text[160];
        if (k == 0)
            snprintf(text, sizeof text, "{\"type\":\"start\"}");
        else
            snprintf(text, sizeof text, "{\"type\":\"metrics\",\"env_steps\":%zu,\"values\":{\"score\":%zu%s}}",
                     k % 11 == 10 ? k * 10 - 50 : k * 10, k, k % 7 == 0 ? ",\"rare\":1" : "");
        list->rows[i] = (struct outbox_row){
            .id = (int64_t)k + 1, .created_ms = 1000000 + (int64_t)k * 300, .payload = mem_strdup(text)};
    }
}

/* The rows [from, n) of make_rows as a tracker gets them. */
static void make_batch(struct batch *b, size_t from, size_t n, int64_t last_step, int64_t thin_ms)
{
    struct outbox_list list;

    make_rows(&list, from, n - from);
    batch_read(b, &list);
    batch_choose(b, last_step, thin_ms);
}

TEST(steps_only_rise)
{
    AT_END(batch_free) struct batch b = {0};
    int64_t last = -1;

    make_batch(&b, 0, 100, -1, 0);
    assert_int_equal(b.n, 100 - 9);
    assert_int_equal(b.rows[0].type, TRACK_ROW_START);
    for (size_t i = 1; i < b.n; i++) {
        assert_true(b.rows[i].env_steps > last);
        last = b.rows[i].env_steps;
        assert_int_equal(b.steps_after[i], last);
    }
}

/* Whatever part of a claimed range was acknowledged, what is sent of the rest is what would have been sent of it. */
TEST(a_rest_is_thinned_as_the_whole)
{
    struct batch whole, rest;

    make_batch(&whole, 0, 100, -1, 2000);
    assert_true(whole.n < 50);
    assert_int_equal(whole.rows[whole.n - 1].env_steps, 990); /* the last row is always sent */
    for (size_t cut = 1; cut < whole.n; cut++) {
        size_t from = (size_t)whole.rows[cut].id - 1; /* acknowledged: all rows before it */
        make_batch(&rest, from, 100, whole.steps_after[cut - 1], 2000);
        assert_int_equal(rest.n, whole.n - cut);
        for (size_t i = 0; i < rest.n; i++)
            assert_int_equal(rest.rows[i].id, whole.rows[cut + i].id);
        batch_free(&rest);
    }
    batch_free(&whole);
}

TEST(thinning_keeps_every_last_value)
{
    AT_END(batch_free) struct batch b = {0};
    bool rare = false;

    make_batch(&b, 0, 40, -1, 3600000);
    for (size_t i = 0; i < b.n; i++)
        rare = rare || (b.rows[i].env_steps == 350 && strstr(b.list.rows[35].payload, "rare") != NULL);
    assert_true(rare); /* of row 35, the last that has it */
    assert_true(b.n == 3 || b.n == 4); /* start, the rare one, the last; one more when a bucket ends between */
}

TEST(of_files_the_newest_counts)
{
    static const char *const texts[] = {"{\"type\":\"file\",\"name\":\"a\"}", "{\"type\":\"file\",\"name\":\"b\"}",
                                        "{\"type\":\"strange\"}", "{\"type\":\"file\",\"name\":\"a\"}"};
    struct outbox_list list = {.rows = mem_array(4, sizeof *list.rows), .n = 4};
    AT_END(batch_free) struct batch b = {0};

    for (size_t i = 0; i < 4; i++)
        list.rows[i] = (struct outbox_row){.id = (int64_t)i + 1, .payload = mem_strdup(texts[i])};
    batch_read(&b, &list);
    batch_choose(&b, -1, 0);
    assert_true(b.n == 2 && b.rows[0].id == 2 && b.rows[1].id == 4);
}

/* The start of an attempt from zero is a batch of its own, whatever the place of its keys in the text. */
TEST(an_attempt_from_zero_is_alone)
{
    static const char *const texts[] = {
        "{\"type\":\"metrics\",\"env_steps\":1,\"values\":{}}", "{\"type\":\"start\",\"attempt\":2}",
        "{\"attempt\":3,\"anew\": true,\"type\":\"start\"}", "{\"type\":\"metrics\",\"env_steps\":2,\"values\":{}}"};
    static const struct {
        size_t from, n;
    } cuts[] = {{0, 2}, {1, 1}, {2, 1}, {3, 1}};

    for (size_t c = 0; c < COUNT(cuts); c++) {
        size_t n = 4 - cuts[c].from;
        struct outbox_list list = {.rows = mem_array(n, sizeof *list.rows), .n = n};
        struct batch b;
        for (size_t i = 0; i < n; i++)
            list.rows[i] = (struct outbox_row){.id = (int64_t)i + 1, .payload = mem_strdup(texts[cuts[c].from + i])};
        batch_read(&b, &list);
        assert_int_equal(batch_cut_at_attempt(&b), cuts[c].n);
        assert_int_equal(b.n, cuts[c].n);
        assert_true(batch_starts_over(&b.rows[0]) == (cuts[c].from == 2));
        batch_free(&b);
    }
}

/* -- texts: exact JSON, flat configs, logins, keys -- */

TEST(json_keeps_numbers_and_texts)
{
    static const char text[] =
        "{\"a\":[1,-0.30000000000000004,5e-324,\"nan\",\"inf\",\"-inf\"],\"b\":\"line\\n\\\"q\\\" \\\\ "
        "\xc3\xa9 nan\",\"c\":{\"d\":true,\"e\":null}}";
    static const char want[] = "{\"a\":[1,-0.30000000000000004,5e-324,\"NaN\",\"Infinity\",\"-Infinity\"],"
                               "\"b\":\"line\\n\\\"q\\\" \\\\ \xc3\xa9 nan\",\"c\":{\"d\":true,\"e\":null}}";
    JSON_LOCAL cJSON *json = NULL;

    assert_int_equal(json_parse(text, strlen(text), &json, NULL), ST_OK);
    STRBUF(sb, 4096);
    track_json_value(&sb, json);
    assert_string_equal(sb.text, want);
}

static void collect(void *ctx, const char *key, const char *value)
{
    strbuf_addf(ctx, "%s=%s;", key, value);
}

TEST(configs_become_flat)
{
    static const char text[] =
        "{\"train\":{\"gamma\":0.9865809427553069,\"core\":\"lstm\",\"deep\":{\"x\":[1,\"nan\"]}},\"on\":true}";
    JSON_LOCAL cJSON *json = NULL;

    assert_int_equal(json_parse(text, strlen(text), &json, NULL), ST_OK);
    STRBUF(sb, 4096);
    track_flatten(json, collect, &sb);
    assert_string_equal(sb.text, "train.gamma=0.9865809427553069;train.core=lstm;train.deep.x=[1,\"NaN\"];on=true;");
}

TEST(logins_leave_the_address)
{
    char url[256], user[TRACK_SECRET_MAX], password[TRACK_SECRET_MAX], header[TRACK_SECRET_MAX * 3], host[64];
    struct error err = {0};

    assert_int_equal(track_url_login("https://ann%40home:p%3Aw@host:81/ml/", "X", url, sizeof url, user, password,
                                     sizeof user, NULL),
                     ST_OK);
    assert_string_equal(url, "https://host:81/ml");
    assert_string_equal(user, "ann@home");
    assert_string_equal(password, "p:w");
    track_url_host(url, true, host, sizeof host);
    assert_string_equal(host, "host:81");
    track_url_host(url, false, host, sizeof host);
    assert_string_equal(host, "host");
    assert_int_equal(track_url_login("http://host", "X", url, sizeof url, user, password, sizeof user, NULL), ST_OK);
    assert_string_equal(user, "");
    assert_int_equal(
        track_url_login("http://ann:canary@[", "X_URL", url, sizeof url, user, password, sizeof user, &err), ST_CONFIG);
    assert_non_null(strstr(err.text, "X_URL"));
    assert_null(strstr(err.text, "canary"));
    track_basic_auth(header, sizeof header, "Aladdin", "open sesame"); /* RFC 7617 */
    assert_string_equal(header, "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

TEST(keys_stay_different)
{
    static const char *const cases[][2] = {
        {"train/lr", "train/lr"}, {"a b.c-d_e", "a b.c-d_e"}, {"a(b)", "a_x28_b_x29_"}, {"/a", "_x2f_a"},
        {"a/", "a_x2f_"},         {"a//b", "a/_x2f_b"},       {"..", "_x2e_."},         {"./a", "_x2e_/a"},
        {"a/../b", "a/_x2e_./b"}, {"a..b", "a..b"},           {".hidden", ".hidden"},   {"\xc3\xa9", "_xc3__xa9_"}};
    STRBUF(sb, 1024);

    for (size_t i = 0; i < COUNT(cases); i++) {
        strbuf_clear(&sb);
        mlflow_key(&sb, cases[i][0]);
        assert_string_equal(sb.text, cases[i][1]);
    }
}

TEST_PROGRAM("track")
