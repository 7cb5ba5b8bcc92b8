/* duration.c - durations as people type them, and as short texts. */
#include "base/duration.h"

#include "base/num.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
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

const char *format_seconds(double s, char buf[32])
{
    long long whole = isfinite(s) && s >= 0 && s < 1e15 ? (long long)(s + 0.5) : -1;

    if (whole < 0)
        snprintf(buf, 32, "?");
    else if (s < 0.9995)
        snprintf(buf, 32, "%.0f ms", s * 1e3);
    else if (s < 100)
        snprintf(buf, 32, s < 9.95 ? "%.1f s" : "%.0f s", s);
    else if (whole < 3600)
        snprintf(buf, 32, "%lldm %02llds", whole / 60, whole % 60);
    else if (whole < 86400)
        snprintf(buf, 32, "%lldh %02lldm", whole / 3600, whole % 3600 / 60);
    else
        snprintf(buf, 32, "%lldd %02lldh", whole / 86400, whole % 86400 / 3600);
    return buf;
}
