/* duration.c - durations as people type them, and as short texts. */
#include "base/text/duration.h"

bool parse_seconds(const char *text, double *ret_s)
{
    static const struct {
        char unit;
        double s;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char number[64];
    size_t n = strlen(text);
    double factor = 1, value;

    if (n == 0 || n >= sizeof number)
        return false;
    memcpy(number, text, n + 1);
    for (size_t i = 0; i < COUNT(units); i++)
        if (number[n - 1] == units[i].unit) {
            factor = units[i].s;
            number[n - 1] = '\0';
            break;
        }
    if (!num_parse_f64(number, &value) || !(value > 0) || !(value * factor < 1e10))
        return false;
    *ret_s = value * factor;
    return true;
}

/* "3m 05s"; "3m" where the smaller unit is 0. */
static void write_parts(char buf[32], long long large, char large_unit, long long small, char small_unit)
{
    if (small == 0)
        snprintf(buf, 32, "%lld%c", large, large_unit);
    else
        snprintf(buf, 32, "%lld%c %02lld%c", large, large_unit, small, small_unit);
}

const char *format_seconds(double s, char buf[32])
{
    long long whole = isfinite(s) && s >= 0 && s < 1e15 ? (long long)(s + 0.5) : -1;

    if (whole < 0)
        snprintf(buf, 32, "?");
    else if (s > 0 && s < 0.9995)
        snprintf(buf, 32, "%.3g ms", s * 1e3);
    else if (s < 99.95)
        snprintf(buf, 32, "%.3g s", s);
    else if (whole < 3600)
        write_parts(buf, whole / 60, 'm', whole % 60, 's');
    else if (whole < 86400)
        write_parts(buf, whole / 3600, 'h', whole % 3600 / 60, 'm');
    else
        write_parts(buf, whole / 86400, 'd', whole % 86400 / 3600, 'h');
    return buf;
}
