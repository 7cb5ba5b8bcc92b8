/* test_expr.c - expressions: what they mean, what is refused with which words, and that no text breaks the parser. */
#include "base/config/expr.h"
#include "base/rng.h"

#include "tests/unit_test.h"

static const char *const names[] = {"a", "b", "train.horizon", "core", "on"};
static const struct expr_value given[] = {{NULL, 3}, {NULL, 0.5}, {NULL, 64}, {"LSTM", NAN}, {"true", NAN}};

/* The value of each name of e by the table above; other names are words. */
static void fill(const struct expr *e, struct expr_value *values, enum expr_kind *kinds)
{
    for (size_t i = 0; i < expr_n_names(e); i++) {
        values[i] = (struct expr_value){expr_name(e, i), NAN};
        kinds[i] = EXPR_WORD;
        for (size_t k = 0; k < COUNT(names); k++)
            if (strcmp(names[k], expr_name(e, i)) == 0) {
                values[i] = given[k];
                kinds[i] = strcmp(names[k], "on") == 0 ? EXPR_TRUTH : EXPR_VARIABLE;
            }
    }
}

static bool holds(const char *text)
{
    struct expr_value values[EXPR_MAX_NAMES];
    enum expr_kind kinds[EXPR_MAX_NAMES];
    struct error err = {0};
    struct expr *e = NULL;

    if (expr_parse(&e, text, "x.ini:1", &err) != ST_OK)
        fail_msg("%s", err.text);
    fill(e, values, kinds);
    if (expr_check(e, kinds, &err) != ST_OK)
        fail_msg("%s", err.text);
    bool result = expr_holds(e, values);
    expr_free(e);
    return result;
}

TEST(meaning)
{
    static const char *const true_ones[] = {
        "a == 3",
        "a + b * 2 == 4", /* * before + */
        "(a + b) * 2 == 7",
        "a - 1 - 1 == 1", /* from the left */
        "12 / a / 2 == 2",
        "-a < -2",
        "2 - -a == 5",
        "a<=3 and a>=3 and not a != 3",
        "a == 9 or a == 3 and b < 1", /* and before or */
        "not (a == 3 and b == 1)",
        "a * train.horizon == 192",
        "train.horizon >= 6.4e1",
        "train.horizon < 1k and b > 1e-3",
        "core == lstm", /* case does not count */
        "lstm == core",
        "core != mlp",
        "on",
        "on and a > 1",
        "on == true",
        "not on == false",
        "1/3 < 0.34",
        "train.horizon % 16 == 0",
        "a % 2 == 1 and (a + 4) % 2 == 1",
        "2 * a % 4 == 2" /* as strong as *, from the left */,
        "1.5 % 1 == b",
    };
    static const char *const false_ones[] = {
        "a == 4",
        "a < 3",
        "a + b == 4",
        "core == mlp",
        "core != lstm",
        "not on",
        "a / (b - 0.5) > 0" /* by zero */,
        "a / (b - 0.5) != 1",
        "train.horizon % 48 == 0",
        "a % (b - 0.5) == 0" /* by zero */,
        "core == a",
        "core > 1" /* a text is not a number */,
    };

    for (size_t i = 0; i < COUNT(true_ones); i++)
        if (!holds(true_ones[i]))
            fail_msg("%s does not hold", true_ones[i]);
    for (size_t i = 0; i < COUNT(false_ones); i++)
        if (holds(false_ones[i]))
            fail_msg("%s holds", false_ones[i]);
}

TEST(refused)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "missing at its end"},
        {"   ", "missing at its end"},
        {"a", "neither true nor false"},
        {"a +", "missing at its end"},
        {"a + b", "compares nothing"},
        {"a = 3", "write =="},
        {"a == = 3", "instead of \"= 3\""},
        {"a < b < 1", "join them with and"},
        {"a == 3 b", "\"b\" is left over"},
        {"(a == 3", "a ')' is missing"},
        {"a == 3)", "left over"},
        {"(a == 3) + 1 == 2", "a comparison is not a number"},
        {"(a == 3) == (b == 1)", "a comparison is not a number"},
        {"a + 1 and b > 1", "and needs a comparison"},
        {"a > 1 or 3", "or needs a comparison"},
        {"not 3", "not needs a comparison"},
        {"1.2.3 < a", "1.2.3 is not a number"},
        {"0x10 < a", "0x10 is not a number"},
        {"a & b", "left over"},
        {"a == lstm", ""}, /* a word beside a number: for the caller, who knows what a can be */
        {"lstm > a", "lstm is neither an option"},
        {"a + lstm > 3", "lstm is neither an option"},
        {"mlp == lstm", "mlp is neither an option"},
        {"a > 1 and lstm", "lstm is neither an option"},
        {"lstm", "lstm is neither an option"},
        {"a and on", "a is neither"},
        {"not a", "a is neither"},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct expr_value values[EXPR_MAX_NAMES];
        enum expr_kind kinds[EXPR_MAX_NAMES];
        struct error err = {0};
        struct expr *e = NULL;
        enum status rc = expr_parse(&e, cases[i].text, "x.ini:7", &err);
        if (rc == ST_OK) {
            fill(e, values, kinds);
            rc = expr_check(e, kinds, &err);
        }
        if (cases[i].says[0] == '\0') {
            assert_int_equal(rc, ST_OK);
        } else {
            assert_int_equal(rc, ST_CONFIG);
            if (strncmp(err.text, "x.ini:7: ", 9) != 0 || strstr(err.text, cases[i].says) == NULL)
                fail_msg("\"%s\": %s; wanted: %s", cases[i].text, err.text, cases[i].says);
        }
        expr_free(e);
    }
}

TEST(limits)
{
    char text[20000];
    struct expr *e = NULL;
    struct error err = {0};

    memset(text, '(', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(expr_parse(&e, text, "x", &err), ST_CONFIG);
    memset(text, '-', sizeof text - 1);
    assert_int_equal(expr_parse(&e, text, "x", NULL), ST_CONFIG);
    memset(text, 'a', sizeof text - 1);
    assert_int_equal(expr_parse(&e, text, "x", NULL), ST_CONFIG);
    memset(text, '1', sizeof text - 1);
    assert_int_equal(expr_parse(&e, text, "x", NULL), ST_CONFIG);
    text[0] = '\0';
    for (int i = 0; i < 300; i++)
        strcat(text, "a+");
    strcat(text, "1 > 2");
    assert_int_equal(expr_parse(&e, text, "x", NULL), ST_CONFIG);
    text[0] = '\0';
    for (int i = 0; i < 1500; i++)
        strcat(text, "not ");
    strcat(text, "a > 2");
    assert_int_equal(expr_parse(&e, text, "x", NULL), ST_CONFIG);
    text[0] = '\0';
    for (int i = 0; i < 70; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "n%d < 1 and ", i);
    strcat(text, "a > 2");
    assert_int_equal(expr_parse(&e, text, "x", NULL), ST_CONFIG);
}

/* Whatever the text, it is refused with words or has a truth. */
TEST(random_texts)
{
    static const char *const parts[] = {"a",  "b", "core", "lstm", "1",   "2.5", "(",   ")", "+",  "-", "*",  "/", "%",
                                        "==", "<", ">=",   "!=",   "and", "or",  "not", " ", "1e", "=", "\t", "."};
    struct rng rng = rng_seed(17);
    int n_fine = 0;

    for (int round = 0; round < 200000; round++) {
        struct expr_value values[EXPR_MAX_NAMES];
        enum expr_kind kinds[EXPR_MAX_NAMES];
        char text[200] = "";
        struct error err = {0};
        struct expr *e = NULL;
        for (uint32_t n = 1 + rng_below(&rng, 9); n > 0; n--) {
            strcat(text, parts[rng_below(&rng, COUNT(parts))]);
            strcat(text, rng_below(&rng, 2) ? " " : "");
        }
        enum status rc = expr_parse(&e, text, "x", &err);
        if (rc == ST_OK) {
            fill(e, values, kinds);
            rc = expr_check(e, kinds, &err);
            (void)expr_holds(e, values);
        }
        n_fine += rc == ST_OK;
        assert_true(rc == ST_OK || (rc == ST_CONFIG && err.text[0] != '\0'));
        expr_free(e);
    }
    assert_true(n_fine > 200);
}

static void interval_is(const char *text, double min, double max)
{
    struct expr_value values[EXPR_MAX_NAMES];
    enum expr_kind kinds[EXPR_MAX_NAMES];
    struct expr *e = NULL;
    double lo, hi;
    size_t at = 0;

    assert_int_equal(expr_parse(&e, text, "x", NULL), ST_OK);
    fill(e, values, kinds);
    while (strcmp(expr_name(e, at), "a") != 0)
        at++;
    if (isnan(min)) {
        assert_false(expr_interval(e, values, at, &lo, &hi));
    } else {
        assert_true(expr_interval(e, values, at, &lo, &hi));
        if (lo != min || hi != max)
            fail_msg("%s: %g to %g, wanted %g to %g", text, lo, hi, min, max);
    }
    expr_free(e);
}

TEST(intervals)
{
    interval_is("a >= 2", 2, INFINITY);
    interval_is("a > 2", nextafter(2, INFINITY), INFINITY);
    interval_is("2 > a", -INFINITY, nextafter(2, 0));
    interval_is("a == 2 * train.horizon", 128, 128);
    interval_is("a >= 1 and a <= b + 5", 1, 5.5);
    interval_is("5 <= a and a <= 4", 5, 4); /* never */
    interval_is("a != 2", NAN, NAN);
    interval_is("2 * a > 2", NAN, NAN);
    interval_is("a > 2 or a < 1", NAN, NAN);
    interval_is("a > a", NAN, NAN);
    interval_is("a > lstm", NAN, NAN);
}

TEST_PROGRAM("expr")
