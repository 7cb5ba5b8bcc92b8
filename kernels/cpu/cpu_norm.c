/* cpu_norm.c - running mean and variance of columns, by the formulas of Chan, Golub and LeVeque for joining the sums of
 * two sets: those of the rows before, and those of the rows that come. A column is added in the order of its rows. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#define COLUMN_GRAIN 1
#define ROW_GRAIN 64
#define NORM_LIMIT 10.0f
#define NORM_EPS 1e-8

/* Joins the sums (count, mean, squares) with those of n further rows. */
static void sums_join(double sums[3], double n, double mean, double squares)
{
    double all = sums[0] + n, apart = mean - sums[1];

    sums[2] += squares + apart * apart * (sums[0] * n / all);
    sums[1] += apart * (n / all);
    sums[0] = all;
}

static void add_columns(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_norm *norm = (const struct kern_norm *)ctx;
    const float *x = (const float *)norm->x;
    size_t n = norm->n, row = norm->row > 0 ? norm->row : norm->D;

    (void)worker;
    for (size_t i = 0; i < n; i++) /* row by row: the same bytes for rows that come in several calls */
        for (size_t d = from; d < to; d++)
            sums_join(norm->sums + 3 * d, 1.0, (double)x[i * row + d], 0.0);
}

void cpu_norm_add(struct kern *k, const struct kern_norm *norm)
{
    cpu_run(k, norm->D, COLUMN_GRAIN, add_columns, norm);
}

void cpu_norm_freeze(struct kern *k, const struct kern_norm *norm)
{
    (void)k;
    for (size_t d = 0; d < norm->D; d++) {
        const double *sums = norm->sums + 3 * d;
        norm->scale[2 * d] = (float)sums[1];
        norm->scale[2 * d + 1] = sums[0] > 0.0 ? (float)(1.0 / sqrt(sums[2] / sums[0] + NORM_EPS)) : 1.0f;
    }
}

void cpu_norm_join(struct kern *k, const struct kern_norm *norm)
{
    (void)k;
    for (size_t i = 0; i < norm->n_parts * norm->D; i++) {
        const double *part = norm->parts + 3 * i;
        if (part[0] > 0.0)
            sums_join(norm->sums + 3 * (i % norm->D), part[0], part[1], part[2]);
    }
    memset(norm->parts, 0, 3 * norm->n_parts * norm->D * sizeof *norm->parts);
}

/* Comparisons with NaN are false: it stays, to be found by the search for it. */
static float limited(float x)
{
    return x > NORM_LIMIT ? NORM_LIMIT : x < -NORM_LIMIT ? -NORM_LIMIT : x;
}

static void apply_rows(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_norm *norm = (const struct kern_norm *)ctx;
    float *x = (float *)norm->x;
    size_t row = norm->row > 0 ? norm->row : norm->D;

    (void)worker;
    for (size_t i = from; i < to; i++)
        for (size_t d = 0; d < norm->D; d++)
            x[i * row + d] = limited((x[i * row + d] - norm->scale[2 * d]) * norm->scale[2 * d + 1]);
}

void cpu_norm_apply(struct kern *k, const struct kern_norm *norm)
{
    cpu_run(k, norm->n, ROW_GRAIN, apply_rows, norm);
}

void cpu_reward_scale(struct kern *k, const struct kern_reward_scale *r)
{
    float gamma = r->hyper->gamma;
    const struct kern_norm norm = {.n = r->T * r->N, .D = 1, .x = r->discounted, .sums = r->sums, .scale = r->scale};

    for (size_t t = 0; t < r->T && r->part != KERN_REWARD_APPLY; t++)
        for (size_t i = 0, at = t * r->N; i < r->N; i++, at++) {
            float sum = gamma * r->carry[i] + r->rewards[at];
            r->discounted[at] = sum;
            r->carry[i] = r->terms[at] | r->truncs[at] ? 0.0f : sum;
        }
    if (r->part != KERN_REWARD_APPLY)
        cpu_norm_add(k, &norm);
    if (r->part == KERN_REWARD_ADD)
        return;
    cpu_norm_freeze(k, &norm);
    for (size_t i = 0; i < r->T * r->N; i++)
        r->rewards[i] = limited(r->rewards[i] * r->scale[1]);
}
