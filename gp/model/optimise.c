/* optimise.c - L-BFGS inside a box: variables that sit on a bound and push outwards are held for one step, the rest
 * move along the two-loop direction, and the path is bent at the bounds. Backtracking until Armijo's rule holds.
 * Invariants: x stays in the box; the value returned is the lowest seen; no allocation. */
#include "gp/model/model_priv.h"

#define MEMORY 8 /* pairs of moves and changes of the gradient */
#define ARMIJO 1e-4
#define GRADIENT_TOLERANCE 1e-5
#define VALUE_TOLERANCE 1e-7
#define FIRST_STEP 0.2 /* length of the first move in the largest coordinate */

struct optimise_memory {
    int n, head;
    double s[MEMORY][OPTIMISE_MAX_DIM], y[MEMORY][OPTIMISE_MAX_DIM], rho[MEMORY];
};

struct optimise {
    int evals; /* so far */
    double f, g[OPTIMISE_MAX_DIM]; /* at x */
    struct optimise_memory memory;
};

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static bool held(double x, double lo, double hi, double g)
{
    return (x <= lo && g > 0.0) || (x >= hi && g < 0.0);
}

/* direction = -H g on the free variables. */
static void direction(const struct optimise_memory *m, const double *g, const bool *fixed, size_t dim, double *d)
{
    double a[MEMORY];
    for (size_t i = 0; i < dim; i++)
        d[i] = fixed[i] ? 0.0 : -g[i];
    for (int k = 1; k <= m->n; k++) {
        int at = (m->head - k + MEMORY) % MEMORY;
        a[at] = m->rho[at] * dot(m->s[at], d, dim);
        for (size_t i = 0; i < dim; i++)
            d[i] -= a[at] * m->y[at][i];
    }
    if (m->n > 0) {
        int last = (m->head - 1 + MEMORY) % MEMORY;
        double scale = 1.0 / (m->rho[last] * dot(m->y[last], m->y[last], dim));
        for (size_t i = 0; i < dim; i++)
            d[i] *= scale;
    }
    for (int k = m->n; k >= 1; k--) {
        int at = (m->head - k + MEMORY) % MEMORY;
        double b = m->rho[at] * dot(m->y[at], d, dim);
        for (size_t i = 0; i < dim; i++)
            d[i] += (a[at] - b) * m->s[at][i];
    }
    for (size_t i = 0; i < dim; i++)
        if (fixed[i])
            d[i] = 0.0;
}

static void remember(struct optimise_memory *m, const double *s, const double *y, size_t dim)
{
    double sy = dot(s, y, dim);
    if (!(sy > 1e-10 * sqrt(dot(s, s, dim) * dot(y, y, dim))))
        return; /* curvature not positive: the pair would spoil the matrix */
    memcpy(m->s[m->head], s, dim * sizeof *s);
    memcpy(m->y[m->head], y, dim * sizeof *y);
    m->rho[m->head] = 1.0 / sy;
    m->head = (m->head + 1) % MEMORY;
    if (m->n < MEMORY)
        m->n++;
}

/* One iteration; false: it is the last. */
static bool iterate(struct optimise *o, optimise_fn *fn, void *ctx, size_t dim, const double *lo, const double *hi,
                    int max_evals, double *x)
{
    double *g = o->g, d[OPTIMISE_MAX_DIM], x_new[OPTIMISE_MAX_DIM], g_new[OPTIMISE_MAX_DIM];
    bool fixed[OPTIMISE_MAX_DIM];
    double largest = 0.0, slope, step = 1.0, f_new = INFINITY;
    for (size_t i = 0; i < dim; i++) {
        fixed[i] = held(x[i], lo[i], hi[i], g[i]) || lo[i] == hi[i];
        largest = fixed[i] ? largest : fmax(largest, fabs(g[i]));
    }
    if (!(largest > GRADIENT_TOLERANCE))
        return false;
    direction(&o->memory, g, fixed, dim, d);
    slope = dot(g, d, dim);
    if (!(slope < 0.0)) { /* start again from steepest descent */
        o->memory.n = 0;
        direction(&o->memory, g, fixed, dim, d);
        slope = dot(g, d, dim);
    }
    if (o->memory.n == 0)
        step = fmin(1.0, FIRST_STEP / largest);
    for (; o->evals < max_evals; step *= 0.3) {
        double moved = 0.0; /* first-order change along the bent path */
        for (size_t i = 0; i < dim; i++) {
            x_new[i] = fmin(fmax(x[i] + step * d[i], lo[i]), hi[i]);
            moved += g[i] * (x_new[i] - x[i]);
        }
        f_new = fn(ctx, x_new, g_new);
        o->evals++;
        if (f_new <= o->f + ARMIJO * moved)
            break;
        f_new = INFINITY;
        if (step < 1e-10)
            return false;
    }
    if (!(f_new <= o->f))
        return false;
    double gain = o->f - f_new;
    for (size_t i = 0; i < dim; i++) {
        d[i] = x_new[i] - x[i];
        double y = g_new[i] - g[i];
        g[i] = g_new[i];
        g_new[i] = y;
    }
    remember(&o->memory, d, g_new, dim);
    memcpy(x, x_new, dim * sizeof *x);
    o->f = f_new;
    return !(gain < VALUE_TOLERANCE * (1.0 + fabs(f_new)));
}

double optimise_box(optimise_fn *fn, void *ctx, size_t dim, const double *lo, const double *hi, int max_evals,
                    double *x)
{
    struct optimise o = {.evals = 1};
    for (size_t i = 0; i < dim; i++)
        x[i] = fmin(fmax(x[i], lo[i]), hi[i]);
    o.f = fn(ctx, x, o.g);
    bool more = isfinite(o.f);
    while (more && o.evals < max_evals)
        more = iterate(&o, fn, ctx, dim, lo, hi, max_evals, x);
    return o.f;
}
