/* value.c - texts of option values: parsing, ranges and our own spelling. */
#include "base/config/config_priv.h"

#include <ctype.h>
#include <strings.h>

#define SHOWN_MAX 80 /* bytes of a wrong value that a message shows */

const char *config_default(const struct opt_def *opt)
{
    return opt->def != NULL ? opt->def : "";
}

const char *config_choice(const char *choices, size_t i, size_t *ret_len)
{
    for (const char *at = choices; at != NULL && *at != '\0'; i--) {
        *ret_len = strcspn(at, "|");
        if (i == 0)
            return at;
        at += *ret_len;
        if (*at == '|')
            at++;
    }
    return NULL;
}

static bool parse_bool(const char *value, double *ret_number)
{
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};

    for (size_t i = 0; i < COUNT(words); i++) {
        if (strcasecmp(value, words[i]) == 0) {
            *ret_number = (double)(i % 2);
            return true;
        }
    }
    return false;
}

static bool find_choice(const struct opt_def *opt, const char *value, size_t n, double *ret_number)
{
    const char *word;
    size_t len;

    for (size_t i = 0; (word = config_choice(opt->choices, i, &len)) != NULL; i++) {
        if (n == len && strncasecmp(value, word, len) == 0) {
            *ret_number = (double)i;
            return true;
        }
    }
    return false;
}

static bool parse_enum(const struct opt_def *opt, const char *value, double *ret_number)
{
    size_t n = strlen(value), len;
    const char *also;

    if (find_choice(opt, value, n, ret_number))
        return true;
    for (size_t i = 0; opt->also != NULL && (also = config_choice(opt->also, i, &len)) != NULL; i++)
        if (n < len && also[n] == '=' && strncasecmp(also, value, n) == 0)
            return find_choice(opt, also + n + 1, len - n - 1, ret_number);
    return false;
}

static bool parse_number(const struct opt_def *opt, const char *value, double *ret_number)
{
    int64_t whole;

    switch (opt->type) {
    case OPT_BOOL:
        return parse_bool(value, ret_number);
    case OPT_INT:
        if (!num_parse_i64(value, &whole))
            return false;
        *ret_number = (double)whole;
        return true;
    case OPT_FLOAT:
        return num_parse_f64(value, ret_number);
    case OPT_ENUM:
        return parse_enum(opt, value, ret_number);
    case OPT_STR:
        break;
    }
    return false;
}

enum status config_parse_value(const struct opt_def *opt, const char *value, double *ret_number, struct error *err)
{
    if (!parse_number(opt, value, ret_number))
        return FAIL(err, ST_CONFIG, "%s: \"%.*s\" is not a value for it", opt->key, SHOWN_MAX, value);
    return ST_OK;
}

static enum status fail_enum(const struct opt_def *opt, const char *key, const char *value, const char *origin,
                             struct error *err)
{
    char list[256] = "", near[WORD_MAX] = "", given[WORD_MAX];
    size_t best = SIZE_MAX, len, used = 0;
    const char *word;

    snprintf(given, sizeof given, "%s", value);
    for (size_t i = 0; (word = config_choice(opt->choices, i, &len)) != NULL; i++) {
        char one[WORD_MAX];
        snprintf(one, sizeof one, "%.*s", (int)len, word);
        size_t distance = word_distance(given, one);
        if (distance < best && word_is_near(given, distance)) {
            best = distance;
            memcpy(near, one, sizeof near);
        }
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", one);
    }
    if (near[0] != '\0')
        return FAIL(err, ST_CONFIG, "%s: %s is \"%.*s\", allowed is one of %s; did you mean %s? (%s)", origin, key,
                    SHOWN_MAX, value, list, near, opt->help);
    return FAIL(err, ST_CONFIG, "%s: %s is \"%.*s\", allowed is one of %s (%s)", origin, key, SHOWN_MAX, value, list,
                opt->help);
}

static enum status fail_parse(const struct opt_def *opt, const char *key, const char *value, const char *origin,
                              struct error *err)
{
    const char *needed = opt->type == OPT_BOOL ? "true or false is needed" : "a number is needed";
    double number;

    if (opt->type == OPT_ENUM)
        return fail_enum(opt, key, value, origin, err);
    if (opt->type == OPT_INT && num_parse_f64(value, &number))
        return FAIL(err, ST_CONFIG, "%s: %s is %.*s, a whole number is needed%s", origin, key, SHOWN_MAX, value,
                    fabs(number) >= 0x1p63 ? " (and one below 9.2e18)" : "");
    if (opt->type != OPT_BOOL && strchr(value, ',') != NULL)
        needed = "a number is needed (its decimal mark is a point)";
    return FAIL(err, ST_CONFIG, "%s: %s is \"%.*s\", %s", origin, key, SHOWN_MAX, value, needed);
}

static enum status check_text(const char *key, const char *value, const char *origin, struct error *err)
{
    if (strlen(value) >= OPT_STR_MAX)
        return FAIL(err, ST_CONFIG, "%s: %s has %zu bytes, at most %d are allowed", origin, key, strlen(value),
                    OPT_STR_MAX - 1);
    for (const char *at = value; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            return FAIL(err, ST_CONFIG, "%s: %s holds a control character; keep it to one line of text", origin, key);
    return ST_OK;
}

/* Beyond 2^53 a double is too coarse to compare whole numbers by. */
static bool in_range(const struct opt_def *opt, const char *value, double number)
{
    int64_t whole;

    if (!(number >= opt->min && number <= opt->max))
        return false;
    if (opt->type != OPT_INT || !num_parse_i64(value, &whole))
        return true;
    return !(opt->max < 0x1p63 && whole > (int64_t)opt->max) && !(opt->min >= -0x1p63 && whole < (int64_t)opt->min);
}

enum status config_check_value(const struct opt_def *opt, const char *key, const char *value, const char *origin,
                               struct error *err)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];
    double number;

    if (opt->type == OPT_STR)
        return check_text(key, value, origin, err);
    if (!parse_number(opt, value, &number))
        return fail_parse(opt, key, value, origin, err);
    if (opt->type == OPT_BOOL || opt->type == OPT_ENUM || in_range(opt, value, number))
        return ST_OK;
    num_format_f64(opt->min, lo);
    num_format_f64(opt->max, hi);
    if (isinf(opt->max))
        return FAIL(err, ST_CONFIG, "%s: %s is %.*s, allowed is %s and above", origin, key, SHOWN_MAX, value, lo);
    if (isinf(opt->min))
        return FAIL(err, ST_CONFIG, "%s: %s is %.*s, allowed is up to %s", origin, key, SHOWN_MAX, value, hi);
    return FAIL(err, ST_CONFIG, "%s: %s is %.*s, allowed is %s to %s", origin, key, SHOWN_MAX, value, lo, hi);
}

void config_format_value(const struct opt_def *opt, double number, char *buf, size_t size)
{
    char text[NUM_TEXT_MAX];
    const char *word;
    size_t len;

    switch (opt->type) {
    case OPT_BOOL:
        snprintf(buf, size, "%s", number != 0.0 ? "true" : "false");
        return;
    case OPT_INT:
        if (fabs(number) < 0x1p63) {
            snprintf(buf, size, "%lld", (long long)rint(number));
            return;
        }
        break;
    case OPT_ENUM:
        word = number >= 0.0 ? config_choice(opt->choices, (size_t)number, &len) : NULL;
        if (word != NULL) {
            snprintf(buf, size, "%.*s", (int)len, word);
            return;
        }
        break;
    case OPT_FLOAT:
    case OPT_STR:
        break;
    }
    snprintf(buf, size, "%s", num_format_f64(number, text));
}

void config_value_text(const struct opt_def *opt, const char *value, char *buf)
{
    double number;
    int64_t whole;

    if (opt->type == OPT_INT && num_parse_i64(value, &whole))
        snprintf(buf, OPT_STR_MAX, "%lld", (long long)whole); /* a double would lose digits beyond 2^53 */
    else if (parse_number(opt, value, &number))
        config_format_value(opt, number, buf, OPT_STR_MAX);
    else
        snprintf(buf, OPT_STR_MAX, "%s", value);
}
