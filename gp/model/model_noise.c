/* model_noise.c - noise that depends on the expected output. Runs of one config scatter most where learning is half
 * done and hardly where it is complete, so that one level of noise for all makes lucky runs look sure and sure ones
 * doubtful. The variance of one run where the output m is expected is a kernel average over the rows,
 *     v(m) = (sum_j w_j(m) S_j + PRIOR v0(m)) / (sum_j w_j(m) r_j + PRIOR),  w_j = exp(-(m - m_j)^2 / (2 h^2)),
 * with r_j runs in row j, m_j what the other rows let expect there, and S_j the sum of squares that their noise is
 * expected to have, given the data (the E-step of EM: squared deviations within the row, and r_j times the square of
 * the row's expected noise and its variance). v0 is the same of a wider kernel, whose own v0 is the one level of noise
 * that was fitted. Of a point that has a row, v leaves that row out, counts as MODEL_NOISE_RUNS runs, and is put
 * together with the r own runs of squared deviations S:
 *     (MODEL_NOISE_RUNS v + S) / (MODEL_NOISE_RUNS + r - 1).
 * Invariant: a function of rows and theta alone. */
#include "gp/model/exp.h"
#include "gp/model/model_priv.h"

#define ROWS_MIN 32 /* below it there is one level of noise */
#define ROUNDS 3 /* of EM */
#define WIDTH_WIDE 0.5 /* in standard deviations of the outputs */
#define WIDTH_NARROW 0.15
#define PRIOR 1.0 /* what the wider kernel gives counts as this many runs */

/* v(at) of all rows but own. */
static double average(const struct model *m, double at, size_t own)
{
    const double wide = -0.5 / (WIDTH_WIDE * WIDTH_WIDE), narrow = -0.5 / (WIDTH_NARROW * WIDTH_NARROW);
    double ss_wide = 0.0, n_wide = 0.0, ss = 0.0, n = 0.0;
#pragma omp simd reduction(+ : ss_wide, n_wide, ss, n)
    for (size_t j = 0; j < m->n_noise; j++) {
        double d = at - m->noise_at[j], sq = d * d, use = j == own ? 0.0 : 1.0;
        double v = use * exp_of_negative(wide * sq), w = use * exp_of_negative(narrow * sq);
        ss_wide += v * m->noise_ss[j];
        n_wide += v * m->noise_n[j];
        ss += w * m->noise_ss[j];
        n += w * m->noise_n[j];
    }
    double v0 = (ss_wide + PRIOR * m->noise) / (n_wide + PRIOR);
    return (ss + PRIOR * v0) / (n + PRIOR);
}

double model_noise(const struct model *m, double mean, size_t own, double *ret_freedom)
{
    double freedom = MODEL_NOISE_RUNS, v = average(m, own < m->n_noise ? m->noise_at[own] : mean, own);
    if (own < m->n_noise && m->runs[own] > 1.0) {
        v = (freedom * v + m->runs_ss[own]) / (freedom + m->runs[own] - 1.0);
        freedom += m->runs[own] - 1.0;
    }
    if (ret_freedom)
        *ret_freedom = freedom;
    return fmax(v, own < m->n_noise ? fmax(m->noise_min[own], MODEL_NOISE_FLOOR) : MODEL_NOISE_FLOOR);
}

/* The diagonal of K^-1. */
static const double *precisions(const struct model *m)
{
    double *precision = m->row_v;
    memset(precision, 0, m->n * sizeof *precision);
    for (size_t i = 0; i < m->n; i++)
        for (size_t j = 0; j <= i; j++)
            precision[j] += m->inverse[i * m->ld + j] * m->inverse[i * m->ld + j];
    return precision;
}

double model_explained(const struct model *m)
{
    double mean = 0.0, missed = 0.0, all = 0.0, runs = 0.0;
    const double *precision = precisions(m);
    for (size_t j = 0; j < m->n; j++) {
        runs += m->runs[j];
        mean += m->runs[j] * (m->y[j] + model_trend(m, m->x + j, m->ld));
    }
    for (size_t j = 0; j < m->n; j++) {
        double by_model = m->alpha[j] / precision[j]; /* Rasmussen and Williams, formula 5.12 */
        double by_mean = (m->y[j] + model_trend(m, m->x + j, m->ld) - mean / runs) * runs /
                         fmax(runs - m->runs[j], MODEL_NOISE_FLOOR);
        missed += m->runs[j] * by_model * by_model;
        all += m->runs[j] * by_mean * by_mean;
    }
    return all > 0.0 ? 1.0 - missed / all : 0.0;
}

/* The noise of each row that the factored model expects. */
static void expect(struct model *m)
{
    const double *precision = precisions(m);
    for (size_t j = 0; j < m->n; j++) {
        double noise = m->noise * m->share[j];
        double mean = noise * m->alpha[j], var = fmax(noise - noise * noise * precision[j], 0.0);
        m->noise_at[j] = m->y[j] + model_trend(m, m->x + j, m->ld) - m->alpha[j] / precision[j]; /* without row j */
        m->noise_ss[j] = m->runs_ss[j] + m->runs[j] * (mean * mean + var);
        m->noise_n[j] = m->runs[j];
    }
    m->n_noise = m->n;
}

enum status model_learn_noise(struct model *m, struct error *err)
{
    if (m->constant || m->n < ROWS_MIN)
        return ST_OK;
    for (int round = 0; round < ROUNDS; round++) {
        expect(m);
        for (size_t j = 0; j < m->n; j++)
            m->share[j] = model_noise(m, m->noise_at[j], j, NULL) / m->noise / m->runs[j];
        TRY(model_factor(m, err));
    }
    return ST_OK;
}
