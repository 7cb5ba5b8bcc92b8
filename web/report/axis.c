/* axis.c - from values to places and round numbers for ticks.
 *
 * An axis works on the scale that the search uses (linear, log, log2, logit). Log axes tick at 1-2-5 (time: at what a
 * clock shows), and a log axis over less than a factor of about three ticks at linear round numbers instead. */
#include "web/report/report_priv.h"

#include "base/text/duration.h"

#define CANDIDATES_MAX 512

static double to_scale(enum space_scale scale, double value)
{
    switch (scale) {
    case SPACE_LOG:
    case SPACE_POW2:
        return log(fmax(value, 1e-300));
    case SPACE_LOGIT:
        value = fmin(fmax(value, 1e-12), 1.0 - 1e-12);
        return log(value / (1.0 - value));
    default:
        return fmin(fmax(value, -1e300), 1e300) * 0.5; /* half: the span of any two doubles is finite */
    }
}

double axis_at(const struct axis *axis, double value)
{
    double lo = to_scale(axis->scale, axis->lo), hi = to_scale(axis->scale, axis->hi);
    double u = (to_scale(axis->scale, value) - lo) / (hi - lo);

    u = !(u >= 0.0) ? 0.0 : u > 1.0 ? 1.0 : u;
    return axis->from + u * (axis->to - axis->from);
}

static void widen(struct axis *axis)
{
    if (axis->scale == SPACE_LOG || axis->scale == SPACE_POW2) {
        double factor = axis->hi > axis->lo * 1.0001 ? pow(axis->hi / axis->lo, 0.04) : 1.6;
        if (!isfinite(factor))
            factor = 10.0;
        axis->lo = fmax(axis->lo / factor, 1e-300);
        axis->hi = fmin(axis->hi * factor, 1e300);
    } else if (axis->scale != SPACE_LOGIT) {
        double span = axis->hi * 0.5 - axis->lo * 0.5, size = fmax(fabs(axis->lo), fabs(axis->hi));
        double margin = span > size * 1e-9 ? span * 0.1 : size > 0.0 ? size * 0.1 : 0.5;
        axis->lo = fmax(axis->lo - margin, -1e300);
        axis->hi = fmin(axis->hi + margin, 1e300);
    }
    if (!(axis->hi > axis->lo)) { /* logit's equal ends, or numbers too large to widen */
        axis->lo -= fmax(fabs(axis->lo) * 1e-6, 1e-9);
        axis->hi += fmax(fabs(axis->hi) * 1e-6, 1e-9);
    }
}

static void tick_label(const struct axis *axis, double value, double step, char buf[HUMAN_TEXT_MAX])
{
    double size = fmax(fabs(axis->lo), fabs(axis->hi));

    if (axis->is_time) {
        format_seconds(value, buf);
    } else if (step > 0.0 && size < 1e5 && step >= 1e-6) {
        int decimals = (int)fmax(0.0, ceil(-log10(step) - 1e-9));
        text_fixed(value, decimals, buf);
    } else {
        text_number(value, buf);
    }
}

static void add_tick(struct axis *axis, double value, double step)
{
    if (axis->n_ticks == AXIS_MAX_TICKS || !(value >= axis->lo && value <= axis->hi))
        return;
    tick_label(axis, value, step, axis->labels[axis->n_ticks]);
    axis->ticks[axis->n_ticks++] = value;
}

/* The smallest round step of at least raw: 1, 2, 5 times a power of ten, or what a clock shows. */
static double round_step(double raw, bool is_time)
{
    static const double clock[] = {15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400};
    double power = pow(10.0, floor(log10(raw)));

    for (size_t i = 0; is_time && raw > 10.0 && i < COUNT(clock); i++)
        if (clock[i] >= raw)
            return clock[i];
    return raw <= power ? power : raw <= 2.0 * power ? 2.0 * power : raw <= 5.0 * power ? 5.0 * power : 10.0 * power;
}

static void linear_ticks(struct axis *axis, size_t n_wanted)
{
    double step = round_step((axis->hi * 0.5 - axis->lo * 0.5) * 2.0 / (double)n_wanted, axis->is_time);
    double first = ceil(axis->lo / step);

    if (!isfinite(step) || step <= 0.0 || !isfinite(first))
        return;
    for (size_t i = 0; i <= n_wanted + 1; i++)
        add_tick(axis, (first + (double)i) * step, step);
    if (axis->n_ticks < 2 && n_wanted < AXIS_MAX_TICKS / 2) { /* a round step may be too wide for the range */
        axis->n_ticks = 0;
        linear_ticks(axis, 2 * n_wanted);
    }
}

/* Round values of a log axis, rising; level 0 are the roundest. */
static size_t log_candidates(const struct axis *axis, double values[CANDIDATES_MAX], int levels[CANDIDATES_MAX])
{
    static const struct {
        double value;
        int level;
    } clock[] = {{60, 0},   {120, 1},   {300, 1},   {600, 0},   {1200, 1},   {1800, 1},   {3600, 0},
                 {7200, 1}, {18000, 1}, {43200, 0}, {86400, 1}, {172800, 1}, {432000, 1}, {864000, 0}};
    static const double digits[] = {1.0, 2.0, 5.0};
    size_t n = 0;

    for (int power = (int)floor(log10(axis->lo)); power <= (int)ceil(log10(axis->hi)); power++) {
        for (int d = 0; d < 3; d++) {
            double value = digits[d] * pow(10.0, power);
            bool by_clock = axis->is_time && value > 30.0 && value < 1e6;
            if (!by_clock && value >= axis->lo && value <= axis->hi && n < CANDIDATES_MAX) {
                levels[n] = d == 0 ? 0 : 1;
                values[n++] = value;
            }
        }
    }
    for (size_t i = 0; axis->is_time && i < COUNT(clock); i++) {
        if (clock[i].value < axis->lo || clock[i].value > axis->hi || n == CANDIDATES_MAX)
            continue;
        levels[n] = clock[i].level;
        values[n++] = clock[i].value;
    }
    return n;
}

static void log_ticks(struct axis *axis, size_t n_wanted)
{
    double values[CANDIDATES_MAX];
    int levels[CANDIDATES_MAX];
    size_t n = log_candidates(axis, values, levels), n_round = 0, every;

    for (size_t i = 0; i < n; i++)
        n_round += levels[i] == 0;
    if (n < 3) {
        linear_ticks(axis, n_wanted);
        return;
    }
    bool only_round = n > n_wanted && n_round >= 3;
    size_t left = only_round ? n_round : n;
    every = (left + n_wanted - 1) / n_wanted;
    for (size_t i = 0, k = 0; i < n; i++) {
        if (only_round && levels[i] != 0)
            continue;
        if (k++ % every == 0)
            add_tick(axis, values[i], 0.0);
    }
}

static void pow2_ticks(struct axis *axis, size_t n_wanted)
{
    int from = (int)ceil(log2(axis->lo) - 1e-9), to = (int)floor(log2(axis->hi) + 1e-9);
    int every = (to - from) / (int)n_wanted + 1;

    for (int power = from; power <= to; power += every)
        add_tick(axis, ldexp(1.0, power), 0.0);
}

/* 0.9, 0.99, 0.999: as many nines as the range spans, and the same near 0. */
static void logit_ticks(struct axis *axis, size_t n_wanted)
{
    static const double values[] = {0.001, 0.01, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9999};
    size_t n = 0, k = 0;

    for (size_t i = 0; i < COUNT(values); i++)
        n += values[i] >= axis->lo && values[i] <= axis->hi;
    if (n < 2) {
        linear_ticks(axis, n_wanted);
        return;
    }
    size_t every = (n + n_wanted - 1) / n_wanted;
    for (size_t i = 0; i < COUNT(values); i++)
        if (values[i] >= axis->lo && values[i] <= axis->hi && k++ % every == 0)
            add_tick(axis, values[i], 0.0);
}

void axis_init(struct axis *axis, enum space_scale scale, bool is_time, double lo, double hi, double from, double to,
               size_t n_ticks)
{
    *axis = (struct axis){.scale = scale, .is_time = is_time, .lo = lo, .hi = hi, .from = from, .to = to};
    widen(axis);
    switch (scale) {
    case SPACE_LOG:
        log_ticks(axis, n_ticks);
        break;
    case SPACE_POW2:
        pow2_ticks(axis, n_ticks);
        break;
    case SPACE_LOGIT:
        logit_ticks(axis, n_ticks);
        break;
    default:
        linear_ticks(axis, n_ticks);
    }
}
