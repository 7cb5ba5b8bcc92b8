/* space.c - the search space: checks, and the maps between natural values and the unit cube that the model sees.
 * Invariants: (1) from_unit gives only values that a trial can have: inside the bounds, whole, powers of two, choices;
 * (2) a parameter with n values cuts [0, 1] into n bins and to_unit gives the middle of a value's bin (on a log scale,
 * the middle of its neighbours' rounding limits), so that uniform u draws each value of a linear range equally often
 * and from_unit(to_unit(x)) == x for it; (3) to_unit clamps what lies outside; (4) whatever goes in, an inactive
 * parameter comes out as its one value. */
#include "gp/gp_priv.h"

static double clamp(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

static bool is_discrete(const struct space_param *p)
{
    return p->is_int || p->step > 0.0 || p->scale == SPACE_POW2 || p->scale == SPACE_CATEGORICAL;
}

bool space_param_is_unordered(const struct space_param *p)
{
    return p->scale == SPACE_CATEGORICAL && !p->is_ordered;
}

/* min + k * step, as the decimal number that a person would write: 0.3 and not 0.30000000000000004. */
static double step_value(const struct space_param *p, double k)
{
    for (double unit = 1.0; unit <= 1e9; unit *= 10.0) {
        double min = p->min * unit, step = p->step * unit;
        if (fabs(min) < 0x1p53 && fabs(min - rint(min)) < 1e-6 && fabs(step - rint(step)) < 1e-6)
            return (rint(min) + k * rint(step)) / unit;
    }
    return p->min + k * p->step;
}

/* First and last whole number (of the value, the exponent, the choice or the steps) of a discrete parameter. */
static void whole_range(const struct space_param *p, double *ret_lo, double *ret_hi)
{
    switch (p->scale) {
    case SPACE_CATEGORICAL:
        *ret_lo = 0.0;
        *ret_hi = (double)p->n_choices - 1.0;
        return;
    case SPACE_POW2:
        *ret_lo = ceil(log2(p->min));
        *ret_hi = floor(log2(p->max));
        if (p->is_int && *ret_lo < 0.0)
            *ret_lo = 0.0;
        return;
    default:
        if (p->step > 0.0) {
            *ret_lo = 0.0;
            *ret_hi = floor((p->max - p->min) / p->step + 1e-9);
            return;
        }
        *ret_lo = ceil(p->min);
        *ret_hi = floor(p->max);
    }
}

static double logit(double x)
{
    return log(x) - log1p(-x);
}

double space_param_size(const struct space_param *p)
{
    double lo, hi;
    if (!is_discrete(p))
        return INFINITY;
    whole_range(p, &lo, &hi);
    return hi - lo + 1.0;
}

double space_param_value(const struct space_param *p, double k)
{
    double lo, hi;
    whole_range(p, &lo, &hi);
    double whole = clamp(lo + k, lo, hi);
    return p->step > 0.0 ? step_value(p, whole) : p->scale == SPACE_POW2 ? exp2(whole) : whole;
}

double space_param_to_unit(const struct space_param *p, double x)
{
    double lo = p->min, hi = p->max, u;
    if (is_discrete(p)) {
        whole_range(p, &lo, &hi);
        double whole = rint(p->step > 0.0 ? (x - p->min) / p->step : p->scale == SPACE_POW2 ? log2(x) : x);
        whole = clamp(whole, lo, hi); /* log2 of 0 or less is -inf or NaN */
        if (isnan(whole))
            whole = lo;
        if (p->scale == SPACE_LOG)
            u = log(whole / (lo - 0.5)) / log((hi + 0.5) / (lo - 0.5));
        else
            u = (whole - lo + 0.5) / (hi - lo + 1.0);
        return clamp(u, 0.0, 1.0);
    }
    x = clamp(x, lo, hi);
    if (p->scale == SPACE_LOG)
        u = log(x / lo) / log(hi / lo);
    else if (p->scale == SPACE_LOGIT)
        u = (logit(x) - logit(lo)) / (logit(hi) - logit(lo));
    else
        u = (x - lo) / (hi - lo);
    return clamp(u, 0.0, 1.0);
}

double space_param_from_unit(const struct space_param *p, double u)
{
    double lo = p->min, hi = p->max, x;
    u = clamp(u, 0.0, 1.0);
    if (is_discrete(p)) {
        whole_range(p, &lo, &hi);
        if (p->scale == SPACE_LOG)
            x = rint((lo - 0.5) * exp(u * log((hi + 0.5) / (lo - 0.5))));
        else
            x = lo + floor(u * (hi - lo + 1.0));
        x = clamp(x, lo, hi);
        return p->step > 0.0 ? step_value(p, x) : p->scale == SPACE_POW2 ? exp2(x) : x;
    }
    if (p->scale == SPACE_LOG) {
        x = lo * exp(u * log(hi / lo));
    } else if (p->scale == SPACE_LOGIT) {
        double t = logit(lo) + u * (logit(hi) - logit(lo));
        x = t < 0.0 ? exp(t) / (1.0 + exp(t)) : 1.0 / (1.0 + exp(-t));
    } else {
        x = lo + u * (hi - lo);
    }
    return clamp(x, lo, hi);
}

static double snap_param(const struct space_param *p, double x)
{
    return is_discrete(p) ? space_param_from_unit(p, space_param_to_unit(p, x)) : clamp(x, p->min, p->max);
}

/* The one value of an inactive parameter. */
static double idle_value(const struct space_param *p)
{
    return p->has_init ? snap_param(p, p->init) : space_param_from_unit(p, 0.5);
}

static bool parent_allows(const struct space *space, const struct space_param *p, double parent_value)
{
    const struct space_param *parent = &space->params[p->parent];
    double v = snap_param(parent, parent_value);
    if (parent->scale == SPACE_CATEGORICAL)
        return v < 64.0 && (p->parent_choices >> (unsigned)v & 1) != 0;
    return v >= p->parent_min && v <= p->parent_max;
}

bool space_is_active(const struct space *space, size_t i, const double *x)
{
    for (; space->params[i].is_conditional; i = space->params[i].parent)
        if (!parent_allows(space, &space->params[i], x[space->params[i].parent]))
            return false;
    return true;
}

bool space_is_conditional(const struct space *space)
{
    for (size_t i = 0; i < space->dim; i++)
        if (space->params[i].is_conditional)
            return true;
    return false;
}

/* The value of an inactive parent has no effect, so the order is free. */
static void idle(const struct space *space, double *x)
{
    bool active[SPACE_MAX_DIM];
    for (size_t i = 0; i < space->dim; i++)
        active[i] = space_is_active(space, i, x);
    for (size_t i = 0; i < space->dim; i++)
        if (!active[i])
            x[i] = idle_value(&space->params[i]);
}

void space_to_unit(const struct space *space, const double *x, double *ret_u)
{
    for (size_t i = 0; i < space->dim; i++) {
        const struct space_param *p = &space->params[i];
        bool on = !p->is_conditional || space_is_active(space, i, x);
        ret_u[i] = space_param_to_unit(p, on ? x[i] : idle_value(p));
    }
}

void space_from_unit(const struct space *space, const double *u, double *ret_x)
{
    for (size_t i = 0; i < space->dim; i++)
        ret_x[i] = space_param_from_unit(&space->params[i], u[i]);
    if (space_is_conditional(space))
        idle(space, ret_x);
}

void space_idle_unit(const struct space *space, double *u)
{
    double x[SPACE_MAX_DIM];
    for (size_t i = 0; i < space->dim; i++) /* parents alone matter; a copy, since to_unit of from_unit may round */
        x[i] = space_param_from_unit(&space->params[i], u[i]);
    for (size_t i = 0; i < space->dim; i++)
        if (space->params[i].is_conditional && !space_is_active(space, i, x))
            u[i] = space_param_to_unit(&space->params[i], idle_value(&space->params[i]));
}

void space_snap(const struct space *space, double *x)
{
    for (size_t i = 0; i < space->dim; i++)
        x[i] = snap_param(&space->params[i], x[i]);
    if (space_is_conditional(space))
        idle(space, x);
}

double space_unit_distance(const struct space_param *p, double a, double b)
{
    switch (p->scale) {
    case SPACE_LOG:
    case SPACE_POW2:
        return log(b / a) / log(p->max / p->min);
    case SPACE_LOGIT:
        return (logit(b) - logit(a)) / (logit(p->max) - logit(p->min));
    default:
        return (b - a) / (p->max - p->min);
    }
}

#define PARENT_VALUES 4096 /* of a parent that are counted one by one; with more, a space is never used up */

static double size_below(const struct space *space, size_t i);

/* Distinct values of all parameters below i when it has this value. */
static double size_at(const struct space *space, size_t i, double value)
{
    double size = 1.0;
    for (size_t c = 0; c < space->dim; c++)
        if (space->params[c].is_conditional && space->params[c].parent == i &&
            parent_allows(space, &space->params[c], value))
            size *= size_below(space, c);
    return size;
}

static double size_below(const struct space *space, size_t i)
{
    double n = space_param_size(&space->params[i]), sum = 0.0;
    bool has_child = false;
    for (size_t c = 0; c < space->dim; c++)
        has_child = has_child || (space->params[c].is_conditional && space->params[c].parent == i);
    if (!isfinite(n) || !has_child)
        return n;
    if (n > PARENT_VALUES)
        return INFINITY;
    for (size_t k = 0; k < (size_t)n; k++)
        sum += size_at(space, i, space_param_value(&space->params[i], (double)k));
    return sum;
}

double space_size(const struct space *space)
{
    double size = 1.0;
    for (size_t i = 0; i < space->dim; i++)
        if (!space->params[i].is_conditional)
            size *= size_below(space, i);
    return size;
}

static enum status check_scale(const struct space_param *p, struct error *err)
{
    switch (p->scale) {
    case SPACE_LINEAR:
        return ST_OK;
    case SPACE_LOG:
        if (!(p->min > 0.0))
            return FAIL(err, ST_CONFIG, "%s: min is %g, a log range needs min > 0; try %g, or a linear range", p->key,
                        p->min, p->is_int ? 1.0 : p->max * 1e-3);
        return ST_OK;
    case SPACE_LOGIT:
        if (p->is_int)
            return FAIL(err, ST_CONFIG, "%s: a logit range has no whole numbers in it; make it linear or log", p->key);
        if (!(p->min > 0.0))
            return FAIL(err, ST_CONFIG, "%s: min is %g, a logit range needs 0 < min; try 0.001", p->key, p->min);
        if (!(p->max < 1.0))
            return FAIL(err, ST_CONFIG, "%s: max is %g, a logit range needs max < 1; try 0.999", p->key, p->max);
        return ST_OK;
    case SPACE_POW2:
        if (!(p->min > 0.0))
            return FAIL(err, ST_CONFIG, "%s: min is %g, a range of powers of two needs min > 0; try 1", p->key, p->min);
        return ST_OK;
    default:
        return FAIL(err, ST_INTERNAL, "%s: unknown scale %d", p->key, (int)p->scale);
    }
}

static enum status check_param(const struct space_param *p, struct error *err)
{
    if (p->has_init && !isfinite(p->init))
        return FAIL(err, ST_CONFIG, "%s: start value %g is not a finite number", p->key, p->init);
    if (p->scale == SPACE_CATEGORICAL) {
        if (p->n_choices < 2)
            return FAIL(err, ST_CONFIG,
                        "%s: a sweep needs 2 choices or more, found %zu; add one or set the value in its own section",
                        p->key, p->n_choices);
        return ST_OK;
    }
    if (!isfinite(p->min) || !isfinite(p->max))
        return FAIL(err, ST_CONFIG, "%s: bounds are %g and %g; both must be finite numbers", p->key, p->min, p->max);
    if (p->min > p->max)
        return FAIL(err, ST_CONFIG, "%s: min %g is above max %g; swap them", p->key, p->min, p->max);
    if (p->min == p->max)
        return FAIL(
            err, ST_CONFIG,
            "%s: min and max are both %g, nothing to search; widen the range or set the value in its own section",
            p->key, p->min);
    TRY(check_scale(p, err));
    double size = space_param_size(p);
    if (size < 1.0 && p->scale == SPACE_POW2)
        return FAIL(err, ST_CONFIG, "%s: no power of two between %g and %g; widen the range", p->key, p->min, p->max);
    if (size < 1.0)
        return FAIL(err, ST_CONFIG, "%s: no whole number between %g and %g; widen the range", p->key, p->min, p->max);
    if (size < 2.0)
        return FAIL(err, ST_CONFIG,
                    "%s: only %g lies between %g and %g, nothing to search; widen the range or set the value in its "
                    "own section",
                    p->key, space_param_value(p, 0.0), p->min, p->max);
    return ST_OK;
}

static enum status check_parent(const struct space *space, size_t i, struct error *err)
{
    const struct space_param *p = &space->params[i];
    size_t at = i;
    if (p->parent >= space->dim)
        return FAIL(err, ST_INTERNAL, "%s: depends on parameter %zu of %zu", p->key, p->parent, space->dim);
    for (size_t steps = 0; space->params[at].is_conditional; steps++) {
        at = space->params[at].parent;
        if (at >= space->dim || steps > space->dim)
            return FAIL(err, ST_INTERNAL, "%s: depends on itself by way of %s", p->key, space->params[p->parent].key);
    }
    return ST_OK;
}

enum status space_check(const struct space *space, struct error *err)
{
    if (space->dim == 0)
        return FAIL(err, ST_CONFIG, "the search space is empty; add a [sweep.SECTION.KEY] section with min and max");
    if (space->dim > SPACE_MAX_DIM)
        return FAIL(err, ST_LIMIT, "the search space has %zu parameters, at most %d fit; drop some", space->dim,
                    SPACE_MAX_DIM);
    for (size_t i = 0; i < space->dim; i++) {
        TRY(check_param(&space->params[i], err));
        for (size_t j = 0; j < i; j++)
            if (strncmp(space->params[i].key, space->params[j].key, SPACE_KEY_MAX) == 0)
                return FAIL(err, ST_CONFIG, "%s: searched twice; keep one of its sections", space->params[i].key);
    }
    for (size_t i = 0; i < space->dim; i++)
        if (space->params[i].is_conditional)
            TRY(check_parent(space, i, err));
    return ST_OK;
}

size_t space_steps_param(const struct space *space)
{
    static const char *const names[] = {"total_timesteps", "total_steps", "steps", "epoch"};
    for (size_t i = 0; i < space->dim; i++) {
        const char *dot = strrchr(space->params[i].key, '.'), *name = dot != NULL ? dot + 1 : space->params[i].key;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcmp(name, names[k]) == 0) /* env.max_steps is another thing */
                return i;
    }
    return space->dim;
}
