/* field.c - what a factored model says of many points at once, and how that narrows as points join it at their expected
 * outputs. A point's row is M k, M = L^-1 of the covariance K = L L^T of the rows: what the rows explain of the point
 * is the square of it, of two points together the product of theirs. A point that joins adds one element to the row of
 * every other, which is worked out when the other is next asked about.
 * Invariant: points that join move no mean, and only narrow. */
#include "gp/model/model_priv.h"

#include <cblas.h>

void field_init(struct field *f, const struct model *model, const double *u, size_t n_points, size_t max_joined)
{
    size_t n = model->n;
    *f = (struct field){.model = model, .u = u, .n_points = n_points, .width = n + max_joined};
    f->row = mem_array2(n_points, f->width, sizeof *f->row);
    f->mean = mem_array2(n_points, 2, sizeof *f->mean);
    f->var = f->mean + n_points;
    f->caught_up = mem_array(n_points, sizeof *f->caught_up);
    f->joined = mem_array(max_joined, sizeof *f->joined);
    f->spread = mem_array(max_joined, sizeof *f->spread);
    for (size_t p = 0; p < n_points; p++) {
        double *row = f->row + p * f->width;
        cov_row(&model->cov, model->x, model->ld, n, u + p * model->dim, row, NULL);
        f->mean[p] = model_trend(model, u + p * model->dim, 1) + cblas_ddot((int)n, row, 1, model->alpha, 1);
    }
    cblas_dtrmm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, (int)n_points, (int)n, 1.0,
                model->inverse, (int)model->ld, f->row, (int)f->width);
    for (size_t p = 0; p < n_points; p++) {
        const double *row = f->row + p * f->width;
        f->var[p] = cov_variance(&model->cov, u + p * model->dim, 1) - cblas_ddot((int)n, row, 1, row, 1);
    }
}

void field_free(struct field *f)
{
    mem_free(f->row);
    mem_free(f->mean);
    mem_free(f->caught_up);
    mem_free(f->joined);
    mem_free(f->spread);
    *f = (struct field){0};
}

double field_sd(struct field *f, size_t p)
{
    const struct model *m = f->model;
    double *row = f->row + p * f->width, cov;
    for (; f->caught_up[p] < f->n_joined; f->caught_up[p]++) {
        size_t k = f->caught_up[p], other = f->joined[k], n = m->n + k;
        cov_row(&m->cov, f->u + other * m->dim, 1, 1, f->u + p * m->dim, &cov, NULL);
        row[n] = (cov - cblas_ddot((int)n, row, 1, f->row + other * f->width, 1)) / f->spread[k];
        f->var[p] -= row[n] * row[n];
    }
    return sqrt(fmax(f->var[p], MODEL_SD_MIN * MODEL_SD_MIN));
}

void field_join(struct field *f, size_t p)
{
    double sd = field_sd(f, p);
    f->joined[f->n_joined] = p;
    f->spread[f->n_joined++] = sqrt(sd * sd + f->model->noise);
}
