/* test_track_util.c - texts that the MLflow, Trackio and webhook clients share: exact JSON, flat configs, logins, keys. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "web/track/mlflow.h"
#include "web/track/track_util.h"

static void json_keeps_numbers_and_texts(void **state)
{
    static const char text[] =
        "{\"a\":[1,-0.30000000000000004,5e-324,\"nan\",\"inf\",\"-inf\"],\"b\":\"line\\n\\\"q\\\" \\\\ "
        "\xc3\xa9 nan\",\"c\":{\"d\":true,\"e\":null}}";
    static const char want[] = "{\"a\":[1,-0.30000000000000004,5e-324,\"NaN\",\"Infinity\",\"-Infinity\"],"
                               "\"b\":\"line\\n\\\"q\\\" \\\\ \xc3\xa9 nan\",\"c\":{\"d\":true,\"e\":null}}";
    cJSON *json = NULL;
    struct strbuf sb;

    (void)state;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), ST_OK);
    strbuf_init(&sb, 4096);
    track_json_value(&sb, json);
    assert_string_equal(sb.text, want);
    strbuf_free(&sb);
    cJSON_Delete(json);
}

static void collect(void *ctx, const char *key, const char *value)
{
    strbuf_addf(ctx, "%s=%s;", key, value);
}

static void configs_become_flat(void **state)
{
    static const char text[] =
        "{\"train\":{\"gamma\":0.9865809427553069,\"core\":\"lstm\",\"deep\":{\"x\":[1,\"nan\"]}},\"on\":true}";
    cJSON *json = NULL;
    struct strbuf sb;

    (void)state;
    assert_int_equal(json_parse(text, strlen(text), &json, NULL), ST_OK);
    strbuf_init(&sb, 4096);
    track_flatten(json, collect, &sb);
    assert_string_equal(sb.text, "train.gamma=0.9865809427553069;train.core=lstm;train.deep.x=[1,\"NaN\"];on=true;");
    strbuf_free(&sb);
    cJSON_Delete(json);
}

static void logins_leave_the_address(void **state)
{
    char url[256], user[TRACK_SECRET_MAX], password[TRACK_SECRET_MAX], header[TRACK_SECRET_MAX * 3], host[64];
    struct error err = {0};

    (void)state;
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

static void keys_stay_different(void **state)
{
    static const char *const cases[][2] = {
        {"train/lr", "train/lr"}, {"a b.c-d_e", "a b.c-d_e"}, {"a(b)", "a_x28_b_x29_"}, {"/a", "_x2f_a"},
        {"a/", "a_x2f_"},         {"a//b", "a/_x2f_b"},       {"..", "_x2e_."},         {"./a", "_x2e_/a"},
        {"a/../b", "a/_x2e_./b"}, {"a..b", "a..b"},           {".hidden", ".hidden"},   {"\xc3\xa9", "_xc3__xa9_"}};
    struct strbuf sb;

    (void)state;
    strbuf_init(&sb, 1024);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        strbuf_clear(&sb);
        mlflow_key(&sb, cases[i][0]);
        assert_string_equal(sb.text, cases[i][1]);
    }
    strbuf_free(&sb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_keeps_numbers_and_texts),
        cmocka_unit_test(configs_become_flat),
        cmocka_unit_test(logins_leave_the_address),
        cmocka_unit_test(keys_stay_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
