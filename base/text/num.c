/* num.c - numbers by one grammar and in the C locale, whatever the caller's locale is.
 * A text is first checked and cleaned by our grammar: hex, "1,5" and the like never reach the library. Its suffix
 * becomes a decimal exponent ("2.3M" is exactly 2.3e6), and then strtod turns the digits into a double. */
#include "base/text/num.h"

#include "base/mem.h"

#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLEAN_MAX 128 /* longer numbers are not ours */
#define EXPONENT_MAX 1000 /* beyond it 128 digits are 0 or no int64_t */

/* A number's text by the grammar, without '_', blanks and suffix. */
struct clean {
    char text[CLEAN_MAX]; /* as strtod reads it; the suffix appended as an exponent */
};

/* The thread's locale becomes "C" until locale_leave; glibc hands out a static object for it. */
static locale_t locale_enter(locale_t *ret_old)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    *ret_old = c != (locale_t)0 ? uselocale(c) : (locale_t)0;
    return c;
}

static void locale_leave(locale_t c, locale_t old)
{
    if (c != (locale_t)0) {
        uselocale(old);
        freelocale(c);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies digits without the '_' between two of them; returns the number of digits, or -1 when they do not fit. */
static int take_digits(const char **at, struct clean *out, size_t *len)
{
    int n = 0;
    while (is_digit(**at) || (**at == '_' && n > 0 && is_digit((*at)[1]))) {
        if (**at != '_') {
            if (*len + 8 > sizeof out->text)
                return -1;
            out->text[(*len)++] = **at;
            n++;
        }
        (*at)++;
    }
    return n;
}

static int suffix_exponent(char c)
{
    return c == 'k' || c == 'K' ? 3 : c == 'M' ? 6 : c == 'G' ? 9 : 0;
}

static bool clean_number(const char *text, struct clean *out)
{
    const char *at = text;
    size_t len = 0;
    int before, after = 0;

    while (is_blank(*at))
        at++;
    if (*at == '+' || *at == '-')
        out->text[len++] = *at++;
    before = take_digits(&at, out, &len);
    if (*at == '.') {
        out->text[len++] = *at++;
        after = take_digits(&at, out, &len);
    }
    if (before < 0 || after < 0 || before + after == 0)
        return false;
    if (*at == 'e' || *at == 'E') {
        out->text[len++] = *at++;
        if (*at == '+' || *at == '-')
            out->text[len++] = *at++;
        if (take_digits(&at, out, &len) <= 0)
            return false;
    } else if (suffix_exponent(*at) != 0) {
        out->text[len++] = 'e';
        out->text[len++] = (char)('0' + suffix_exponent(*at++));
    }
    out->text[len] = '\0';
    while (is_blank(*at))
        at++;
    return *at == '\0';
}

static double clean_to_f64(const struct clean *number)
{
    locale_t old, c = locale_enter(&old);
    double value = strtod(number->text, NULL);
    locale_leave(c, old);
    return value;
}

bool num_parse_f64(const char *text, double *ret_value)
{
    struct clean number;

    if (!clean_number(text, &number))
        return false;
    double value = clean_to_f64(&number);
    if (!isfinite(value))
        return false;
    *ret_value = value;
    return true;
}

bool num_parse_f64_any(const char *text, double *ret_value)
{
    static const struct {
        const char *text;
        double value;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"+inf", INFINITY}, {"-inf", -INFINITY}};

    for (size_t i = 0; i < COUNT(words); i++) {
        if (strcmp(text, words[i].text) == 0) {
            *ret_value = words[i].value;
            return true;
        }
    }
    return num_parse_f64(text, ret_value);
}

/* The digits without the decimal point, and the power of ten that they are to be multiplied by; false: a fraction. */
static bool split_whole(const struct clean *number, char *ret_digits, long *ret_exponent)
{
    const char *at = number->text;
    long exponent = 0;
    size_t n = 0;

    for (; *at != '\0' && *at != 'e' && *at != 'E'; at++) {
        if (*at != '.')
            ret_digits[n++] = *at;
        exponent -= memchr(number->text, '.', (size_t)(at - number->text)) != NULL;
    }
    if (*at != '\0') {
        long written = strtol(at + 1, NULL, 10); /* saturates */
        exponent += written > EXPONENT_MAX ? EXPONENT_MAX : written < -EXPONENT_MAX ? -EXPONENT_MAX : written;
    }
    while (n > 1 && ret_digits[n - 1] == '0' && exponent < 0) {
        n--;
        exponent++;
    }
    ret_digits[n] = '\0';
    *ret_exponent = exponent;
    return exponent >= 0 || strspn(ret_digits, "+-0") == n;
}

bool num_parse_i64(const char *text, int64_t *ret_value)
{
    char digits[CLEAN_MAX];
    struct clean number;
    long long value;
    long exponent;

    if (!clean_number(text, &number) || !split_whole(&number, digits, &exponent))
        return false;
    errno = 0;
    value = strtoll(digits, NULL, 10);
    if (errno != 0)
        return false;
    for (; value != 0 && exponent > 0; exponent--)
        if (__builtin_mul_overflow(value, 10LL, &value))
            return false;
    *ret_value = value;
    return true;
}

const char *num_format_f64(double value, char buf[NUM_TEXT_MAX])
{
    char text[NUM_TEXT_MAX];
    locale_t old, c;

    if (!isfinite(value)) {
        const char *word = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
        return memcpy(buf, word, strlen(word) + 1);
    }
    if (value == floor(value) && fabs(value) < 1e15) { /* no point, and no exponent yet */
        snprintf(buf, NUM_TEXT_MAX, "%.0f", value);
        return buf;
    }
    c = locale_enter(&old);
    /* 15 digits survive text -> double -> text: no shorter text is missed. Subnormals hold fewer digits. */
    for (int digits = fabs(value) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    locale_leave(c, old);
    return memcpy(buf, text, strlen(text) + 1);
}

const char *num_format_short(double value, char buf[NUM_TEXT_MAX])
{
    static const struct {
        double from, unit;
        const char *suffix;
    } scales[] = {{999.95e9, 1e0, ""}, {999.95e6, 1e9, "G"}, {999.95e3, 1e6, "M"}, {999.95, 1e3, "k"}, {0.0, 1e0, ""}};
    double size = fabs(value);
    size_t i = 0;
    locale_t old, c;

    if (!isfinite(value))
        return num_format_f64(value, buf);
    while (size < scales[i].from)
        i++;
    c = locale_enter(&old);
    snprintf(buf, NUM_TEXT_MAX, "%.4g%s", value / scales[i].unit, scales[i].suffix);
    locale_leave(c, old);
    return buf;
}

static int by_value(const void *va, const void *vb)
{
    const double *a = va, *b = vb;

    return *a < *b ? -1 : *a > *b;
}

void num_sort(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
}
