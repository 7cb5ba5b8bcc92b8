/* test_json.c - limits, non-finite numbers and exact numbers of the JSON helpers. */
#include "base/text/json.h"

#include "tests/unit_test.h"
#include "base/rng.h"

/* Prints, parses again, and hands the copy out. */
static cJSON *through_text(cJSON *json)
{
    MEM_LOCAL char *text = json_print(json, false);
    cJSON *copy = NULL;

    assert_non_null(text);
    assert_int_equal(json_parse(text, strlen(text), &copy, NULL), ST_OK);
    cJSON_Delete(json);
    return copy;
}

TEST(keeps_every_bit_of_a_double)
{
    static const double edges[] = {0.1, 1.0 / 3.0, 1e300, 5e-324, -2.5, 9007199254740991.0, 1e15, 123456789.123456789};
    struct rng r = rng_seed(5);

    for (int i = 0; i < 2000; i++) {
        cJSON *json = cJSON_CreateObject();
        double value, back = -77.0;
        uint64_t bits = rng_u64(&r);
        memcpy(&value, &bits, sizeof value);
        if ((size_t)i < COUNT(edges))
            value = edges[i];
        else if (!isfinite(value) || i % 2)
            value = rng_f64(&r);
        json_add_f64(json, "x", value);
        assert_true(json_get_f64(json, "x", &back) && back == value); /* before printing, too */
        json = through_text(through_text(json)); /* also what was parsed and is printed again */
        assert_true(json_get_f64(json, "x", &back) && back == value);
        cJSON_Delete(json);
    }
}

TEST(non_finite_numbers_are_words)
{
    static const double values[] = {NAN, INFINITY, -INFINITY};
    static const char *const words[] = {"nan", "inf", "-inf"};

    for (size_t i = 0; i < 3; i++) {
        cJSON *json = cJSON_CreateObject();
        double back = 0.0;
        json_add_f64_any(json, "x", values[i]);
        json = through_text(json);
        assert_string_equal(json_get_str(json, "x"), words[i]);
        assert_true(json_get_f64(json, "x", &back));
        assert_true(isnan(values[i]) ? isnan(back) : back == values[i]);
        cJSON_Delete(json);
        json = cJSON_CreateObject(); /* for people and programs outside: unknown is null */
        json_add_f64(json, "x", values[i]);
        json = through_text(json);
        assert_true(isnan(values[i]) ? cJSON_IsNull(json->child) : strcmp(json_get_str(json, "x"), words[i]) == 0);
        cJSON_Delete(json);
    }
}

TEST(integers_are_exact)
{
    static const int64_t values[] = {0,
                                     -1,
                                     INT32_MAX,
                                     INT64_C(3000000000),
                                     INT64_C(999999999999999),
                                     INT64_C(1000000000000001),
                                     INT64_C(9007199254740991),
                                     INT64_C(9007199254740993),
                                     INT64_MAX,
                                     INT64_MIN};

    for (size_t i = 0; i < COUNT(values); i++) {
        cJSON *json = cJSON_CreateObject();
        int64_t back = -77;
        json_add_i64(json, "n", values[i]);
        assert_true(json_get_i64(json, "n", &back) && back == values[i]);
        json = through_text(json);
        assert_true(json_get_i64(json, "n", &back) && back == values[i]);
        cJSON_Delete(json);
    }
}

TEST(getters_refuse_other_types)
{
    const char *text = "{\"s\": \"12\", \"f\": 1.5, \"b\": true, \"z\": null, \"huge\": 1e999, \"a\": [1]}";
    double f = -7.0;
    int64_t i = -7;
    bool b = false;
    JSON_LOCAL cJSON *json = NULL;

    assert_int_equal(json_parse(text, strlen(text), &json, NULL), ST_OK);
    assert_false(json_get_f64(json, "s", &f));
    assert_false(json_get_f64(json, "huge", &f));
    assert_false(json_get_f64(json, "b", &f));
    assert_false(json_get_f64(json, "none", &f));
    assert_false(json_get_f64(NULL, "s", &f));
    assert_false(json_get_i64(json, "s", &i));
    assert_false(json_get_i64(json, "f", &i));
    assert_false(json_get_i64(json, "huge", &i));
    assert_false(json_get_bool(json, "s", &b));
    assert_null(json_get_str(json, "z"));
    assert_null(json_get_str(json, "f"));
    assert_true(f == -7.0 && i == -7 && !b);
    assert_true(json_get_bool(json, "b", &b) && b);
}

TEST(refuses_broken_text)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "{\"a\":1,}",
                                      "[1] x",
                                      "{}{}",
                                      "nul",
                                      "\"\xff\"",
                                      "\"\xc0\x80\"",
                                      "\"\xed\xa0\x80\"",
                                      "\"a\nb\"",
                                      "{\"a\" 1}",
                                      "\x01",
                                      "\"abc",
                                      "\"stop\\u0000x\"",
                                      "{\"a\\u0000\": 1}"};

    for (size_t i = 0; i < COUNT(bad); i++) {
        struct error err = {0};
        cJSON *json;
        if (json_parse(bad[i], strlen(bad[i]), &json, &err) != ST_CORRUPT)
            fail_msg("\"%s\" was read", bad[i]);
        assert_null(json);
        assert_non_null(strstr(err.text, "byte"));
    }
    cJSON *json;
    assert_int_equal(json_parse("\"a\\\\u0000\"", 10, &json, NULL), ST_OK); /* a backslash, then letters */
    assert_string_equal(cJSON_GetStringValue(json), "a\\u0000");
    cJSON_Delete(json);
    assert_int_equal(json_parse("1\0 2", 4, &(cJSON *){NULL}, NULL), ST_CORRUPT);
}

TEST(depth_is_limited_outside_strings)
{
    char text[3 * JSON_MAX_DEPTH];
    struct error err = {0};
    cJSON *json;

    for (size_t depth = JSON_MAX_DEPTH; depth <= JSON_MAX_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(json_parse(text, 2 * depth, &json, &err), depth <= JSON_MAX_DEPTH ? ST_OK : ST_CORRUPT);
        cJSON_Delete(json);
    }
    assert_non_null(strstr(err.text, "64"));
    memset(text, '[', sizeof text);
    text[0] = '"';
    memcpy(text + 1, "\\\"", 2);
    text[sizeof text - 1] = '"';
    assert_int_equal(json_parse(text, sizeof text, &json, NULL), ST_OK);
    cJSON_Delete(json);
}

TEST(size_is_limited)
{
    cJSON *json;

    assert_int_equal(json_parse("1", (size_t)JSON_MAX_BYTES + 1, &json, NULL), ST_CORRUPT); /* before reading any */
    assert_null(json);
}

TEST(strings_come_out_as_utf8)
{
    JSON_LOCAL cJSON *json = cJSON_CreateObject();

    json_add_str(json, "a", "gr\xc3\xbc\xc3\x9f \"\\\n");
    json_add_str(json, "b", "bad \xff\xc3");
    json_add_str(json, "c", NULL);
    json = through_text(json);
    assert_string_equal(json_get_str(json, "a"), "gr\xc3\xbc\xc3\x9f \"\\\n");
    assert_string_equal(json_get_str(json, "b"), "bad ??");
    assert_true(cJSON_IsNull(json_get(json, "c")));
}

/* Without line breaks as with them: what is read back is the same to the bit. */
TEST(both_ways_to_print_are_read_alike)
{
    static const double values[] = {0,
                                    -0.0,
                                    1,
                                    -7,
                                    0.1,
                                    0.1 + 0.2,
                                    1e15,
                                    1e15 + 2,
                                    123456789012345.0,
                                    9007199254740993.0,
                                    5e-324,
                                    1.7976931348623157e308,
                                    1e21,
                                    -1.5e-7,
                                    1.0 / 3};
    struct error none = {0};
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "list");

    for (size_t i = 0; i < COUNT(values); i++)
        assert_true(cJSON_AddItemToArray(list, cJSON_CreateNumber(values[i])));
    json_add_str(json, "text \"\\ \n\t\b\f\r \x01 \xc3\xa9", "\"\\ \n\t\b\f\r \x01 \xc3\xa9");
    json_add_f64_any(json, "nan", NAN);
    json_add_f64(json, "third", 1.0 / 3);
    json_add_bool(json, "yes", true);
    json_add_str(json, "none", NULL);
    for (int pretty = 0; pretty < 2; pretty++) {
        char *text = json_print(json, pretty != 0);
        cJSON *back = NULL;
        assert_non_null(text);
        assert_int_equal(json_parse(text, strlen(text), &back, &none), ST_OK);
        const cJSON *got = json_get(back, "list");
        for (size_t i = 0; i < COUNT(values); i++) {
            double value = cJSON_GetArrayItem(got, (int)i)->valuedouble;
            assert_true(value == values[i]);
        }
        assert_string_equal(json_get_str(back, "text \"\\ \n\t\b\f\r \x01 \xc3\xa9"), "\"\\ \n\t\b\f\r \x01 \xc3\xa9");
        assert_string_equal(json_get_str(back, "nan"), "nan");
        double third = 0;
        assert_true(json_get_f64(back, "third", &third) && third == 1.0 / 3);
        cJSON_Delete(back);
        mem_free(text);
    }
    cJSON_Delete(json);
}

TEST_PROGRAM("json")
