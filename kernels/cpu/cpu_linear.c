/* cpu_linear.c - linear layers: OpenBLAS on blocks of tokens small enough that what follows finds them in the L2 cache.
 * Every worker calls sgemm for its own part: tokens for y and dx, output rows for dw. So no partial dw has to be kept
 * or added up, and the order of each sum depends on nothing but sizes and thread count. */
#include "kernels/cpu/cpu_priv.h"

#include "kernels/cpu/vec_math.h"

#include <cblas.h>

#define FORWARD_BLOCK 512 /* tokens of one sgemm forward */
#define BACKWARD_BLOCK 512 /* tokens of one worker between two meetings backward */
#define TOKEN_GRAIN 16
#define ROW_GRAIN 16

void cpu_gemm(bool a_t, bool b_t, size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, const float *b,
              size_t ldb, float beta, float *c, size_t ldc)
{
    cblas_sgemm(CblasRowMajor, a_t ? CblasTrans : CblasNoTrans, b_t ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n,
                (blasint)k, alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

struct linear {
    float *y; /* (M, N), forward */
    const float *y_done; /* (M, N), backward: what forward gave */
    float *dx; /* (M, K) or NULL */
    float *dw, *db; /* (N, K), (N) or NULL */
    float *dy; /* (M, N) */
    const float *x, *w, *b; /* (M, K), (N, K), (N) or NULL */
    size_t N, K;
    enum kern_act act;
    bool add_dx, add_dw;
    size_t chunk, n_chunk; /* first token and number of tokens between two meetings (backward) */
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

static void forward_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct linear *l = (const struct linear *)ctx;

    (void)worker;
    for (size_t at = from; at < to; at += FORWARD_BLOCK) {
        size_t rows = to - at < FORWARD_BLOCK ? to - at : FORWARD_BLOCK;
        float *y = l->y + at * l->N;
        cpu_gemm(false, true, rows, l->N, l->K, 1.0f, l->x + at * l->K, l->K, l->w, l->K, 0.0f, y, l->N);
        cpu_bias_act(y, l->b, rows, l->N, l->act);
    }
}

void cpu_linear_forward(struct kern *k, void *y, const void *x, const void *w, const void *b, size_t M, size_t N,
                        size_t K, enum kern_act act)
{
    struct linear l = {.y = y, .x = x, .w = w, .b = b, .N = N, .K = K, .act = act};
    cpu_run(k, M, TOKEN_GRAIN, forward_part, &l);
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
    const struct linear *l = (const struct linear *)ctx;
    size_t at = l->chunk + from, rows = to - from;

    (void)worker;
    if (rows == 0)
        return;
    if (l->act != KERN_ACT_NONE)
        cpu_act_gradient(l->dy + at * l->N, l->y_done + at * l->N, rows * l->N, l->act);
    if (l->dx != NULL)
        cpu_gemm(false, false, rows, l->K, l->N, 1.0f, l->dy + at * l->N, l->N, l->w, l->K, l->add_dx ? 1.0f : 0.0f,
                 l->dx + at * l->K, l->K);
}

/* Rows [from, to) of dw and db: adds what the chunk's tokens give, or starts with it. */
static void backward_rows(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct linear *l = (const struct linear *)ctx;
    const float *dy = l->dy + l->chunk * l->N;

    (void)worker;
    if (from == to)
        return;
    cpu_gemm(true, false, to - from, l->K, l->n_chunk, 1.0f, dy + from, l->N, l->x + l->chunk * l->K, l->K,
             l->chunk == 0 && !l->add_dw ? 0.0f : 1.0f, l->dw + from * l->K, l->K);
    if (l->db == NULL)
        return;
    for (size_t j = from; l->chunk == 0 && !l->add_dw && j < to; j++)
        l->db[j] = 0.0f;
    for (size_t i = 0; i < l->n_chunk; i++)
#pragma omp simd
        for (size_t j = from; j < to; j++)
            l->db[j] += dy[i * l->N + j];
}

void cpu_linear_backward(struct kern *k, void *dx, float *dw, float *db, void *dy, const void *y, const void *x,
                         const void *w, size_t M, size_t N, size_t K, enum kern_act act, bool add_dx, bool add_dw)
{
    struct linear l = {.y_done = y,
                       .dx = dx,
                       .dw = dw,
                       .db = db,
                       .dy = dy,
                       .x = x,
                       .w = w,
                       .N = N,
                       .K = K,
                       .act = act,
                       .add_dx = add_dx,
                       .add_dw = add_dw};
    size_t step = BACKWARD_BLOCK * k->n_threads;

    for (l.chunk = 0; l.chunk < M; l.chunk += step) {
        l.n_chunk = M - l.chunk < step ? M - l.chunk : step;
        cpu_run(k, l.n_chunk, TOKEN_GRAIN, backward_tokens, &l);
        cpu_run(k, N, ROW_GRAIN, backward_rows, &l);
    }
}

void cpu_heads_forward(struct kern *k, float *out, const void *x, const float *w, const float *b, size_t M, size_t O,
                       size_t H)
{
    cpu_linear_forward(k, out, x, w, b, M, O, H, KERN_ACT_NONE);
}

void cpu_heads_backward(struct kern *k, void *dx, float *dw, float *db, const float *dout, const void *x,
                        const float *w, size_t M, size_t O, size_t H, bool add_dw)
{
    /* without an activation dy is only read */
    cpu_linear_backward(k, dx, dw, db, (void *)(uintptr_t)dout, NULL, x, w, M, O, H, KERN_ACT_NONE, false, add_dw);
}
