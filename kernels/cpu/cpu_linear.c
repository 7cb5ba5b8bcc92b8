/* cpu_linear.c - linear layers: OpenBLAS on blocks of tokens small enough that what follows finds them in the L2 cache.
 * Every worker calls sgemm for its own part: tokens for y and dx, output rows for dw. So no partial dw has to be kept
 * or added up, and the order of each sum depends on nothing but sizes and thread count. An input that is not plain f32
 * (struct kern_source) is widened a tile at a time, into memory of the worker's own. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#include "kernels/cpu/vec_math.h"

#include <cblas.h>

#define FORWARD_BLOCK 512 /* tokens of one sgemm forward */
#define BACKWARD_BLOCK 512 /* tokens of one worker between two meetings backward */
#define TOKEN_GRAIN 16
#define WIDE_COLUMNS 256 /* of BACKWARD_BLOCK tokens that are widened at a time */
#define ROW_GRAIN 16

void cpu_gemm(bool a_t, bool b_t, size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, const float *b,
              size_t ldb, float beta, float *c, size_t ldc)
{
    cblas_sgemm(CblasRowMajor, a_t ? CblasTrans : CblasNoTrans, b_t ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
                (blasint)k, alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

struct linear {
    const struct kern_linear *l;
    size_t chunk, n_chunk; /* backward: first token and number of tokens between two meetings */
};

void cpu_bias_act(float *y, const float *b, size_t rows, size_t N, enum kern_act act)
{
    for (size_t i = 0; b != NULL && i < rows; i++)
#pragma omp simd
        for (size_t j = 0; j < N; j++)
            y[i * N + j] += b[j];
    if (act == KERN_ACT_RELU) {
#pragma omp simd
        for (size_t i = 0; i < rows * N; i++)
            y[i] = y[i] < 0.0f ? 0.0f : y[i]; /* NaN stays NaN */
    } else if (act == KERN_ACT_TANH) {
#pragma omp simd
        for (size_t i = 0; i < rows * N; i++)
            y[i] = vec_tanh(y[i]);
    }
}

/* ---- inputs that are widened ---- */

void cpu_widen(float *to, const struct kern_source *source, const void *x, size_t rows, size_t from, size_t n)
{
    const size_t row_bytes = cpu_source_row_bytes(source), at = source->first + from;
    const size_t n_bytes = source->bytes ? source->row - source->n_floats : 0, all = source->row - n_bytes;
    const size_t narrow = n_bytes <= at ? 0 : n_bytes - at < n ? n_bytes - at : n; /* of the n, how many are bytes */
    const float scale = source->scale;

    for (size_t i = 0; i < rows; i++, to += n) {
        const uint8_t *row = (const uint8_t *)x + i * row_bytes, *bytes = row + at;
        const float *floats = (const float *)(const void *)(row + row_bytes) - all; /* from number n_bytes on */
#pragma omp simd
        for (size_t j = 0; j < narrow; j++)
            to[j] = (float)bytes[j] * scale;
        if (narrow < n)
            memcpy(to + narrow, floats + (at + narrow - n_bytes), (n - narrow) * sizeof *to);
    }
}

size_t cpu_wide_bytes(const struct kern *k)
{
    return k->n_threads * BACKWARD_BLOCK * WIDE_COLUMNS * sizeof(float);
}

static float *tile_of(const struct kern_linear *l, size_t worker)
{
    return (float *)l->from.wide + worker * BACKWARD_BLOCK * WIDE_COLUMNS;
}

/* Row `at` of x. */
static const void *row_of(const struct kern_linear *l, size_t at)
{
    return (const char *)l->x + at * (l->from.row > 0 ? cpu_source_row_bytes(&l->from) : l->K * sizeof(float));
}

#define EACH_TILE(l, from, n)                                                                                          \
    for (size_t from = 0, n; n = (l)->K - from < WIDE_COLUMNS ? (l)->K - from : WIDE_COLUMNS, from < (l)->K; from += n)

/* ---- forward ---- */

/* y (rows, N) = x w^T of the rows from `at` on; or adds it. */
static void forward_rows(const struct kern_linear *l, size_t worker, size_t at, size_t rows, float *y)
{
    float beta = l->add_y ? 1.0f : 0.0f, *tile = tile_of(l, worker);
    const float *w = (const float *)l->w;

    if (l->from.row == 0) {
        cpu_gemm(false, true, rows, l->N, l->K, 1.0f, (const float *)row_of(l, at), l->K, w, l->K, beta, y, l->N);
        return;
    }
    EACH_TILE(l, from, n)
    {
        cpu_widen(tile, &l->from, row_of(l, at), rows, from, n);
        cpu_gemm(false, true, rows, l->N, n, 1.0f, tile, n, w + from, l->K, from > 0 ? 1.0f : beta, y, l->N);
    }
}

static void forward_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_linear *l = (const struct kern_linear *)ctx;

    for (size_t at = from; at < to; at += FORWARD_BLOCK) {
        size_t rows = to - at < FORWARD_BLOCK ? to - at : FORWARD_BLOCK;
        float *y = (float *)l->y + at * l->N;
        forward_rows(l, worker, at, rows, y);
        cpu_bias_act(y, l->b, rows, l->N, l->act);
    }
}

void cpu_linear_forward(struct kern *k, const struct kern_linear *l)
{
    cpu_run(k, l->M, TOKEN_GRAIN, forward_part, l);
}

void cpu_act_gradient(float *dy, const float *y, size_t n, enum kern_act act)
{
    if (act == KERN_ACT_RELU) {
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    } else if (act == KERN_ACT_TANH) {
#pragma omp simd
        for (size_t i = 0; i < n; i++)
            dy[i] *= 1.0f - y[i] * y[i];
    }
}

/* Tokens [from, to) of the chunk: dy before the activation, and dx. */
static void backward_tokens(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct linear *job = (const struct linear *)ctx;
    const struct kern_linear *l = job->l;
    size_t at = job->chunk + from, rows = to - from;
    float *dy = (float *)l->dy + at * l->N;

    (void)worker;
    if (rows == 0)
        return;
    if (l->act != KERN_ACT_NONE)
        cpu_act_gradient(dy, (const float *)l->y + at * l->N, rows * l->N, l->act);
    if (l->dx != NULL)
        cpu_gemm(false, false, rows, l->K, l->N, 1.0f, dy, l->N, l->w, l->K, l->add_dx ? 1.0f : 0.0f,
                 (float *)l->dx + at * l->K, l->K);
}

/* Rows [from, to) of dw and db: adds what the chunk's tokens give, or starts with it. */
static void backward_rows(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct linear *job = (const struct linear *)ctx;
    const struct kern_linear *l = job->l;
    const float *dy = (const float *)l->dy + job->chunk * l->N;
    bool starts = job->chunk == 0 && !l->add_dw;

    if (from == to)
        return;
    if (l->from.row == 0)
        cpu_gemm(true, false, to - from, l->K, job->n_chunk, 1.0f, dy + from, l->N,
                 (const float *)row_of(l, job->chunk), l->K, starts ? 0.0f : 1.0f, l->dw + from * l->K, l->K);
    for (size_t at = 0; l->from.row > 0 && at < job->n_chunk; at += BACKWARD_BLOCK) {
        size_t rows = job->n_chunk - at < BACKWARD_BLOCK ? job->n_chunk - at : BACKWARD_BLOCK;
        EACH_TILE(l, col, n)
        {
            float *tile = tile_of(l, worker);
            cpu_widen(tile, &l->from, row_of(l, job->chunk + at), rows, col, n);
            cpu_gemm(true, false, to - from, n, rows, 1.0f, dy + at * l->N + from, l->N, tile, n,
                     starts && at == 0 ? 0.0f : 1.0f, l->dw + from * l->K + col, l->K);
        }
    }
    if (l->db == NULL)
        return;
    for (size_t j = from; starts && j < to; j++)
        l->db[j] = 0.0f;
    for (size_t i = 0; i < job->n_chunk; i++)
#pragma omp simd
        for (size_t j = from; j < to; j++)
            l->db[j] += dy[i * l->N + j];
}

void cpu_linear_backward(struct kern *k, const struct kern_linear *l)
{
    struct linear job = {.l = l};
    size_t step = BACKWARD_BLOCK * k->n_threads;

    for (; job.chunk < l->M; job.chunk += step) {
        job.n_chunk = l->M - job.chunk < step ? l->M - job.chunk : step;
        cpu_run(k, job.n_chunk, TOKEN_GRAIN, backward_tokens, &job);
        cpu_run(k, l->N, ROW_GRAIN, backward_rows, &job);
    }
}

/* ---- the last layer: one without an activation, of which backward only reads dy ---- */

static struct kern_linear linear_of(const struct kern_heads_layer *l)
{
    return (struct kern_linear){.M = l->M,
                                .N = l->O,
                                .K = l->H,
                                .x = l->x,
                                .w = l->w,
                                .b = l->b,
                                .y = l->out,
                                .dy = (void *)(uintptr_t)l->dout,
                                .dx = l->dx,
                                .dw = l->dw,
                                .db = l->db,
                                .add_dw = l->add_dw};
}

void cpu_heads_forward(struct kern *k, const struct kern_heads_layer *l)
{
    struct kern_linear linear = linear_of(l);
    cpu_linear_forward(k, &linear);
}

void cpu_heads_backward(struct kern *k, const struct kern_heads_layer *l)
{
    struct kern_linear linear = linear_of(l);
    cpu_linear_backward(k, &linear);
}
