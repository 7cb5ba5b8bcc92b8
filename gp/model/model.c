/* model.c - a Gaussian process on the unit cube with a length per dimension, and noise; outputs standardised, repeats
 * merged into rows, hyper-parameters by the maximum of the posterior. Of two kinds: Matern-5/2 about a line in the
 * continuous coordinates, which is found by ridge regression and taken out before; or smooth, with slopes in the
 * covariance. Penalties of the hyper-parameters, with t = 1/length^2: a/t + a t for each length, s - ln s for the
 * variance s, and b noise - c ln noise, as in Optuna's GPSampler with a tenth of its b; they hold lengths from running
 * to 0 (a fit to noise) much harder than a log-normal prior does, and measured better (bench/notes/controller.md).
 * Invariants: (1) predictions (model_predict.c) need model_factor after the last change of rows or theta; (2) square
 * arrays are row-major lower triangles; (3) sizes of arrays do not change the arithmetic. */
#include "gp/model/model_priv.h"

#include "gp/gp_priv.h"

#include <cblas.h>
#include <lapack.h>

#define LENGTH_MIN 0.02
#define LENGTH_MAX 50.0
#define LENGTH_PENALTY 0.1
#define NOISE_RATE 3.0
#define NOISE_SHAPE 0.1
#define NOISE_START 0.01
#define TREND_RIDGE 1.0 /* counts as this many rows of slope 0 */
#define JITTER_FIRST 1e-10
#define JITTER_LAST 1e-4

void model_init(struct model *m, const struct space *space, size_t n_max)
{
    *m = (struct model){.dim = space->dim, .cov.dim = space->dim, .n_max = n_max, .ld = (n_max + 7) / 8 * 8};
    for (size_t i = 0; i < space->dim; i++)
        m->cov.categorical[i] = space_param_is_unordered(&space->params[i]);
    m->x = mem_array2(m->dim, m->ld, sizeof *m->x);
    double **const columns[] = {&m->y,    &m->share,   &m->alpha,     &m->row_k,    &m->row_h,    &m->row_v,
                                &m->runs, &m->runs_ss, &m->noise_min, &m->noise_at, &m->noise_ss, &m->noise_n};
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        *columns[i] = mem_array(m->ld, sizeof **columns[i]);
    m->k = mem_array2(n_max, m->ld, sizeof *m->k);
    m->h = mem_array2(n_max, m->ld, sizeof *m->h);
    m->inverse = mem_array2(m->ld, m->ld, sizeof *m->inverse);
    m->lanes = mem_array2(m->ld, TRIANGLE_LANES, sizeof *m->lanes);
}

void model_free(struct model *m)
{
    double *const blocks[] = {m->x,       m->y,         m->share,    m->alpha,    m->row_k,  m->row_h,
                              m->row_v,   m->k,         m->h,        m->inverse,  m->lanes,  m->runs,
                              m->runs_ss, m->noise_min, m->noise_at, m->noise_ss, m->noise_n};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        mem_free(blocks[i]);
    memset(m, 0, sizeof *m);
}

/* Mean and spread of the outputs; computed on values scaled by the largest, so that nothing overflows. */
static void standardise(struct model *m, const struct model_data *data)
{
    double largest = 0.0, mean = 0.0, var = 0.0, n = (double)data->n;
    for (size_t j = 0; j < data->n; j++)
        largest = fmax(largest, fabs(data->mean[j]));
    if (largest == 0.0)
        largest = 1.0;
    for (size_t j = 0; j < data->n; j++)
        mean += data->mean[j] / largest / n;
    for (size_t j = 0; j < data->n; j++)
        var += (data->mean[j] / largest - mean) * (data->mean[j] / largest - mean) / n;
    double sd = sqrt(var);
    m->constant = !(sd > 1e-13);
    m->y_mean = mean * largest;
    m->y_sd = m->constant ? 1.0 : sd * largest;
    m->repeat_df = m->repeat_ss = 0.0;
    for (size_t j = 0; j < data->n; j++) {
        m->y[j] = m->constant ? 0.0 : (data->mean[j] / largest - mean) / sd;
        m->share[j] = 1.0 / data->repeats[j];
        m->runs[j] = data->repeats[j];
        m->runs_ss[j] = data->ss[j] / m->y_sd / m->y_sd;
        m->noise_min[j] = data->noise_min && !m->constant ? data->noise_min[j] / m->y_sd / m->y_sd : 0.0;
        m->repeat_df += fmax(data->repeats[j] - 1.0, 0.0);
        m->repeat_ss += data->ss[j] / m->y_sd / m->y_sd;
    }
}

double model_trend(const struct model *m, const double *u, size_t stride)
{
    double sum = m->trend[m->dim];
    for (size_t i = 0; i < m->dim; i++)
        sum += m->trend[i] * (u[i * stride] - 0.5);
    return sum;
}

/* The line through the outputs by ridge regression on centred coordinates; y becomes what is left. */
static void detrend(struct model *m)
{
    size_t n = m->dim + 1;
    double a[(SPACE_MAX_DIM + 1) * (SPACE_MAX_DIM + 1)] = {0}, z[SPACE_MAX_DIM + 1];
    lapack_int size = (lapack_int)n, info;
    memset(m->trend, 0, sizeof m->trend);
    if (m->constant || m->cov.smooth)
        return;
    for (size_t j = 0; j < m->n; j++) {
        for (size_t i = 0; i < m->dim; i++)
            z[i] = m->cov.categorical[i] ? 0.0 : m->x[i * m->ld + j] - 0.5;
        z[m->dim] = 1.0;
        for (size_t p = 0; p < n; p++) {
            m->trend[p] += z[p] * m->y[j];
            for (size_t q = 0; q <= p; q++)
                a[p * n + q] += z[p] * z[q];
        }
    }
    for (size_t i = 0; i < m->dim; i++)
        a[i * n + i] += TREND_RIDGE;
    LAPACK_dposv("U", &size, &(lapack_int){1}, a, &size, m->trend, &size, &info);
    if (info != 0)
        memset(m->trend, 0, sizeof m->trend); /* it is positive definite; NaN alone could get here */
    for (size_t j = 0; j < m->n; j++)
        m->y[j] -= model_trend(m, m->x + j, m->ld);
}

void model_set_data(struct model *m, const struct model_data *data)
{
    m->n = data->n;
    m->n_noise = 0;
    for (size_t i = 0; i < m->dim; i++)
        for (size_t j = 0; j < data->n; j++)
            m->x[i * m->ld + j] = data->u[j * m->dim + i];
    m->cov.smooth = data->smooth;
    standardise(m, data);
    detrend(m);
    for (size_t i = 0; i <= m->dim; i++)
        m->theta[i] = 0.0; /* lengths and variance 1, where the penalties are least */
    m->theta[m->dim + 1] = log(NOISE_START);
}

static void apply_theta(struct model *m, const double *theta)
{
    for (size_t i = 0; i < m->dim; i++)
        m->cov.inv_sq[i] = exp(-2.0 * theta[i]);
    m->cov.variance = exp(theta[m->dim]);
    m->noise = MODEL_NOISE_FLOOR + exp(theta[m->dim + 1]);
}

void model_solve(struct model *m, double *x)
{
    triangle_solve(m->inverse, m->ld, m->n, x, m->row_v);
}

/* K + noise into k and L^-1 into inverse, climbing the jitter ladder; false when the last rung fails. */
static bool factor(struct model *m, bool derivatives)
{
    size_t n = m->n, ld = m->ld;
    for (size_t i = 0; i < n; i++) {
        double point[SPACE_MAX_DIM];
        for (size_t c = 0; c < m->dim; c++)
            point[c] = m->x[c * ld + i];
        cov_row(&m->cov, m->x, ld, i + 1, point, m->k + i * ld, derivatives ? m->h + i * ld : NULL);
        m->k[i * ld + i] += m->noise * m->share[i];
    }
    double scale = m->cov.variance + m->noise;
    for (double jitter = 0.0; jitter <= JITTER_LAST * 1.5; jitter = jitter > 0.0 ? 10.0 * jitter : JITTER_FIRST)
        if (triangle_factor(m->inverse, ld, n, m->k, jitter * scale, m->row_v)) {
            m->jitter = jitter * scale;
            memcpy(m->alpha, m->y, n * sizeof *m->alpha);
            model_solve(m, m->alpha);
            return true;
        }
    return false;
}

/* The penalties and their gradient, added. */
static double add_prior(const struct model *m, const double *theta, double *g)
{
    double sum = 0.0, scale = exp(theta[m->dim]), noise = exp(theta[m->dim + 1]);
    for (size_t i = 0; i < m->dim; i++) {
        double t = exp(-2.0 * theta[i]);
        sum += LENGTH_PENALTY * (t + 1.0 / t);
        g[i] += 2.0 * LENGTH_PENALTY * (1.0 / t - t);
    }
    g[m->dim] += scale - 1.0;
    g[m->dim + 1] += NOISE_RATE * noise - NOISE_SHAPE;
    return sum + scale - theta[m->dim] + NOISE_RATE * noise - NOISE_SHAPE * theta[m->dim + 1];
}

double model_objective(void *ctx, const double *theta, double *ret_gradient)
{
    struct model *m = ctx;
    size_t n = m->n, ld = m->ld, dim = m->dim;
    apply_theta(m, theta);
    if (!factor(m, true))
        return INFINITY;
    double value = 0.5 * cblas_ddot((int)n, m->y, 1, m->alpha, 1), fit = 2.0 * value;
    for (size_t i = 0; i < n; i++)
        value -= log(m->inverse[i * ld + i]);
    triangle_gram(m->inverse, ld, n, m->k);

    /* With G = K^-1 - alpha alpha^T: dvalue/dp = 1/2 sum_ij G_ij dK_ij/dp. */
    double g_noise = 0.0, g_extra = 0.0;
    memset(ret_gradient, 0, (dim + 2) * sizeof *ret_gradient);
    for (size_t i = 0; i < n; i++) {
        double *inverse = m->k + i * ld, *h = m->h + i * ld, a = m->alpha[i];
        double diagonal = inverse[i] - a * a;
        g_noise += 0.5 * diagonal * m->share[i];
        g_extra += 0.5 * diagonal * (m->noise * m->share[i] + m->jitter);
        for (size_t j = 0; j < i; j++)
            h[j] *= inverse[j] - a * m->alpha[j];
        for (size_t c = 0; c < dim; c++)
            ret_gradient[c] += m->cov.inv_sq[c] * cov_weighted_sq(&m->cov, c, m->x + c * ld, i, m->x[c * ld + i], h);
    }
    ret_gradient[dim] = 0.5 * ((double)n - fit) - g_extra; /* sum_ij G_ij K_ij = n - y^T alpha */
    value += 0.5 * m->repeat_df * log(m->noise) + 0.5 * m->repeat_ss / m->noise;
    g_noise += 0.5 * m->repeat_df / m->noise - 0.5 * m->repeat_ss / (m->noise * m->noise);
    ret_gradient[dim + 1] = g_noise * exp(theta[dim + 1]);
    return value + add_prior(m, theta, ret_gradient);
}

/* Fitting looks at every stride-th row when there are many; rows and outputs change places for the time. */
static void thin(struct model *m, size_t stride, bool back)
{
    size_t kept = (m->n + stride - 1) / stride;
    for (size_t step = 0; step < kept; step++) {
        size_t to = back ? kept - 1 - step : step, from = to * stride;
        for (size_t c = 0; c <= m->dim + 1; c++) {
            double *v = c < m->dim ? m->x + c * m->ld : c == m->dim ? m->y : m->share;
            double swap = v[to];
            v[to] = v[from];
            v[from] = swap;
        }
    }
}

static void fit_in_box(struct model *m, int max_evals, size_t max_rows, double noise_lo, double noise_hi)
{
    double lo[OPTIMISE_MAX_DIM], hi[OPTIMISE_MAX_DIM];
    if (m->constant)
        return;
    for (size_t i = 0; i < m->dim; i++) {
        lo[i] = log(LENGTH_MIN);
        hi[i] = log(LENGTH_MAX);
    }
    lo[m->dim] = -5.0;
    hi[m->dim] = 5.0;
    lo[m->dim + 1] = noise_lo;
    hi[m->dim + 1] = noise_hi;
    size_t n = m->n, stride = (n + max_rows - 1) / max_rows;
    if (stride > 1)
        thin(m, stride, false);
    m->n = (n + stride - 1) / stride;
    (void)optimise_box(model_objective, m, m->dim + 2, lo, hi, max_evals, m->theta);
    m->n = n;
    if (stride > 1)
        thin(m, stride, true);
}

void model_fit(struct model *m, int max_evals, size_t max_rows)
{
    fit_in_box(m, max_evals, max_rows, log(MODEL_NOISE_FLOOR), 1.0);
}

void model_fit_at_noise(struct model *m, double noise, int max_evals, size_t max_rows)
{
    double at = log(fmax(noise - MODEL_NOISE_FLOOR, MODEL_NOISE_FLOOR));
    m->theta[m->dim + 1] = at;
    fit_in_box(m, max_evals, max_rows, at, at);
}

double model_evidence(const struct model *m)
{
    double sum = -0.5 * cblas_ddot((int)m->n, m->y, 1, m->alpha, 1), unused[OPTIMISE_MAX_DIM] = {0};
    double noise = exp(m->theta[m->dim + 1]);
    for (size_t j = 0; j < m->n; j++) {
        double v = m->noise * m->share[j] * m->runs[j]; /* of one run */
        sum += log(m->inverse[j * m->ld + j]) - 0.5 * fmax(m->runs[j] - 1.0, 0.0) * log(v) - 0.5 * m->runs_ss[j] / v;
    }
    return sum - add_prior(m, m->theta, unused) + NOISE_RATE * noise - NOISE_SHAPE * m->theta[m->dim + 1];
}

enum status model_factor(struct model *m, struct error *err)
{
    apply_theta(m, m->theta);
    if (!factor(m, false))
        return FAIL(err, ST_NUMERIC, "the covariance of %zu points does not factor, even with jitter %g", m->n,
                    JITTER_LAST);
    return ST_OK;
}
