/* test_num.c - numbers to text and back, in any locale. */

#include <float.h>
#include <locale.h>

#include "tests/unit_test.h"
#include "base/rng.h"

TEST(reads_numbers)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0.0},          {" 12 ", 12.0},     {"-1.5", -1.5}, {"+2", 2.0},     {"1e-5", 1e-5}, {"3E7", 3e7},
        {"90_000_000", 9e7}, {"1_0.2_5", 10.25}, {".5", 0.5},    {"5.", 5.0},     {"20M", 2e7},   {"64k", 64e3},
        {"1.5G", 1.5e9},     {"2.3M", 2300000},  {"0.1", 0.1},   {"1e-400", 0.0}, {"\t7\r", 7.0}, {"4.35k", 4350},
    };
    static const char *const bad[] = {"",   " ",     "abc",  "1,5",  "0x10", "1e",   "1e+",   "--1", "1 2",
                                      "_1", "1_",    "1__0", "nan",  "inf",  "-inf", "1e999", "1kk", "k",
                                      ".",  "1.5.2", "1e3k", "1_.5", "1m",   "e5",   "+",     "1e1_"};

    for (size_t i = 0; i < COUNT(good); i++) {
        double value = -77.0;
        if (!num_parse_f64(good[i].text, &value) || value != good[i].value)
            fail_msg("\"%s\" read as %.17g", good[i].text, value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        double value = -77.0;
        if (num_parse_f64(bad[i], &value) || value != -77.0)
            fail_msg("\"%s\" was read as %.17g", bad[i], value);
    }
}

TEST(reads_a_long_number_or_refuses_it)
{
    char text[400];
    double value;

    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(num_parse_f64(text, &value));
    text[1] = '.';
    text[60] = '\0';
    assert_true(num_parse_f64(text, &value));
    assert_true(value == 10.0 / 9.0);
}

TEST(reads_non_finite_only_when_asked)
{
    double value = 0.0;

    assert_true(num_parse_f64_any("nan", &value) && isnan(value));
    assert_true(num_parse_f64_any("inf", &value) && value == HUGE_VAL);
    assert_true(num_parse_f64_any("-inf", &value) && value == -HUGE_VAL);
    assert_true(num_parse_f64_any("1.5", &value) && value == 1.5);
    assert_false(num_parse_f64_any("infinite", &value));
}

TEST(reads_integers)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"-12", -12},
                {"3e7", 30000000},
                {"20M", 20000000},
                {"1.5k", 1500},
                {"1_000_000", 1000000},
                {"9007199254740993", 9007199254740993},
                {"9007199254740993e0", 9007199254740993},
                {"9.007199254740993E+15", 9007199254740993},
                {"9007199254.740993M", 9007199254740993},
                {"92233720368547758.07e2", INT64_MAX},
                {"-9.223372036854775808e18", INT64_MIN},
                {"1000e-3", 1},
                {"4.0", 4},
                {"5.", 5},
                {"-0.0", 0},
                {"0e99999999999999999999", 0},
                {"0.000e-99999999999999999999", 0},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    static const char *const bad[] = {"1.5",
                                      "1e-1",
                                      "9223372036854775808",
                                      "1e19",
                                      "9223372036854775807k",
                                      "",
                                      "x",
                                      "1,0",
                                      "1.00000000000000000001",
                                      "1e99999999999999999999",
                                      "1e-99999999999999999999",
                                      "9223372036854775807.5",
                                      "9.223372036854775808e18",
                                      "10000000000000000.1"};

    for (size_t i = 0; i < COUNT(good); i++) {
        int64_t value = -77;
        if (!num_parse_i64(good[i].text, &value) || value != good[i].value)
            fail_msg("\"%s\" read as %lld", good[i].text, (long long)value);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t value = -77;
        if (num_parse_i64(bad[i], &value) || value != -77)
            fail_msg("\"%s\" was read as %lld", bad[i], (long long)value);
    }
}

/* Text reads back to the same bits, and no text with fewer digits does. */
static void check_shortest(double value)
{
    char text[NUM_TEXT_MAX], shorter[NUM_TEXT_MAX];
    double back;
    int digits = 0;

    num_format_f64(value, text);
    if (!num_parse_f64(text, &back) || memcmp(&back, &value, sizeof back) != 0)
        fail_msg("%.17g was written as %s", value, text);
    for (const char *at = text; *at != '\0' && *at != 'e'; at++)
        digits += *at >= '0' && *at <= '9';
    for (int n = 1; n < digits && n < 17; n++) {
        snprintf(shorter, sizeof shorter, "%.*g", n, value);
        if (strtod(shorter, NULL) == value && strlen(shorter) < strlen(text))
            fail_msg("%s was written, %s is enough", text, shorter);
    }
}

TEST(round_trips)
{
    static const double edges[] = {0.0,
                                   -0.0,
                                   0.1,
                                   1.0 / 3.0,
                                   1e22,
                                   1e23,
                                   5e-324,
                                   DBL_MIN,
                                   DBL_MAX,
                                   -DBL_MAX,
                                   DBL_EPSILON,
                                   4503599627370497.5,
                                   123456789012345678.0,
                                   0.3};
    struct rng r = rng_seed(11);

    for (size_t i = 0; i < COUNT(edges); i++)
        check_shortest(edges[i]);
    for (int i = 0; i < 3000; i++) {
        uint64_t bits = rng_u64(&r);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value))
            check_shortest(value);
    }
}

TEST(writes_words_for_non_finite)
{
    char text[NUM_TEXT_MAX];

    assert_string_equal(num_format_f64(NAN, text), "nan");
    assert_string_equal(num_format_f64(-NAN, text), "nan");
    assert_string_equal(num_format_f64(INFINITY, text), "inf");
    assert_string_equal(num_format_f64(-INFINITY, text), "-inf");
}

TEST(writes_short_texts)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0"},          {12345678, "12.35M"},    {999, "999"},   {999.96, "1k"}, {1234, "1.234k"},
                 {-1.5e9, "-1.5G"}, {0.01234567, "0.01235"}, {999960, "1M"}, {1e15, "1e+15"}};
    char text[NUM_TEXT_MAX];

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_string_equal(num_format_short(cases[i].value, text), cases[i].text);
}

/* The name of a locale with a decimal comma, switched on; NULL if there is none. When none is installed, one is made
 * from the C library's sources in a folder of our own. */
static const char *comma_locale(char *folder)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "nl_NL.UTF-8", "de_DE", "fr_FR"};
    char command[256];

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT(names); i++)
            if (setlocale(LC_ALL, names[i]) != NULL && strcmp(localeconv()->decimal_point, ",") == 0)
                return names[i];
        if (round > 0 || mkdtemp(folder) == NULL)
            break;
        snprintf(command, sizeof command, "localedef --no-archive -i de_DE -f ISO-8859-1 %s/de_DE >/dev/null 2>&1",
                 folder);
        if (system(command) != 0)
            break;
        setenv("LOCPATH", folder, 1);
    }
    return NULL;
}

static void remove_locale(const char *folder)
{
    char command[256];

    if (access(folder, F_OK) == 0) {
        snprintf(command, sizeof command, "rm -r %s", folder);
        assert_int_equal(system(command), 0);
    }
}

/* A library that we link may call setlocale; numbers must not care. */
TEST(ignores_a_comma_locale)
{
    char folder[] = "/tmp/trawl-test-locale-XXXXXX", text[NUM_TEXT_MAX];
    const char *found = comma_locale(folder);
    double value = 0.0;

    remove_locale(folder);
    if (found == NULL) {
        setlocale(LC_ALL, "C");
        print_message("# no locale with a decimal comma is installed and none can be made: skipped\n");
        skip();
    }
    snprintf(text, sizeof text, "%g", 1.5);
    assert_string_equal(text, "1,5"); /* the locale is really on */
    assert_string_equal(num_format_f64(1.5, text), "1.5");
    assert_string_equal(num_format_short(1234567, text), "1.235M");
    assert_true(num_parse_f64("1.5", &value) && value == 1.5);
    assert_false(num_parse_f64("1,5", &value));
    snprintf(text, sizeof text, "%g", 1.5);
    assert_string_equal(text, "1,5"); /* and still is: ours is put back */
    setlocale(LC_ALL, "C");
}

TEST_PROGRAM("num")
