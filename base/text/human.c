/* human.c - numbers, times and durations as text for people; nothing here depends on the locale. */
#include "base/text/human.h"

const char *text_fixed(double value, int decimals, char buf[HUMAN_TEXT_MAX])
{
    static const double powers[] = {1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9};

    if (!(fabs(value) * powers[decimals] < 9e15)) {
        num_format_f64(value, buf);
        return buf;
    }
    long long scaled = llround(fabs(value) * powers[decimals]), unit = (long long)powers[decimals];
    const char *sign = value < 0.0 && scaled != 0 ? "-" : "";
    if (decimals == 0)
        snprintf(buf, HUMAN_TEXT_MAX, "%s%lld", sign, scaled);
    else
        snprintf(buf, HUMAN_TEXT_MAX, "%s%lld.%0*lld", sign, scaled / unit, decimals, scaled % unit);
    return buf;
}

const char *text_number(double value, char buf[HUMAN_TEXT_MAX])
{
    if (isnan(value))
        return strcpy(buf, "\xe2\x80\x93"); /* an en dash */
    if (fabs(value) >= 1e-3 && fabs(value) < 1e5) {
        int decimals = fabs(value) >= 1000.0  ? 0
                       : fabs(value) >= 100.0 ? 1
                       : fabs(value) >= 10.0  ? 2
                       : fabs(value) >= 1.0   ? 3
                       : fabs(value) >= 0.1   ? 4
                       : fabs(value) >= 0.01  ? 5
                                              : 6;
        text_fixed(value, decimals, buf);
        if (strchr(buf, '.') != NULL) {
            size_t n = strlen(buf);
            while (buf[n - 1] == '0')
                buf[--n] = '\0';
            if (buf[n - 1] == '.')
                buf[n - 1] = '\0';
        }
        return buf;
    }
    num_format_short(value, buf);
    return buf;
}

const char *text_time(int64_t utc_ms, char buf[HUMAN_TEXT_MAX])
{
    time_t seconds = (time_t)(utc_ms / 1000);
    struct tm tm;

    if (utc_ms <= 0 || gmtime_r(&seconds, &tm) == NULL)
        return strcpy(buf, "\xe2\x80\x93");
    snprintf(buf, HUMAN_TEXT_MAX, "%04d-%02d-%02d %02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
             tm.tm_hour, tm.tm_min);
    return buf;
}
