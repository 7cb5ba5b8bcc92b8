/* cpu_plain.c - moving numbers: zero, copy, sums of rows, gather of minibatch rows, packing and unpacking of flagged
 * rows. */
#include "kernels/cpu/cpu_priv.h"

#include <string.h>

#define TIME_GRAIN 1
#define FLOAT_GRAIN 1024

void cpu_zero(struct kern *k, void *p, size_t bytes)
{
    (void)k;
    memset(p, 0, bytes);
}

void cpu_copy(struct kern *k, void *dst, const void *src, size_t bytes)
{
    (void)k;
    memcpy(dst, src, bytes);
}

struct sum_rows {
    float *x;
    size_t rows, n;
};

static void sum_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct sum_rows *s = (const struct sum_rows *)ctx;

    (void)worker;
    for (size_t r = 1; r < s->rows; r++)
#pragma omp simd
        for (size_t i = from; i < to; i++)
            s->x[i] += s->x[r * s->n + i];
}

void cpu_sum_rows(struct kern *k, float *x, size_t rows, size_t n)
{
    struct sum_rows s = {.x = x, .rows = rows, .n = n};
    cpu_run(k, n, FLOAT_GRAIN, sum_part, &s);
}

struct gather {
    char *dst;
    const char *src;
    const int32_t *idx;
    size_t row_bytes, N, B;
};

/* Times [from, to): dst (T, B, row_bytes) = src (T, N, row_bytes)[:, idx] */
static void gather_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct gather *g = (const struct gather *)ctx;

    (void)worker;
    for (size_t t = from; t < to; t++) {
        char *dst = g->dst + t * g->B * g->row_bytes;
        const char *src = g->src + t * g->N * g->row_bytes;
        if (g->row_bytes == 1) {
            for (size_t b = 0; b < g->B; b++)
                dst[b] = src[g->idx[b]];
        } else if (g->row_bytes == 4) {
            for (size_t b = 0; b < g->B; b++)
                memcpy(dst + b * 4, src + (size_t)g->idx[b] * 4, 4);
        } else {
            for (size_t b = 0; b < g->B; b++)
                memcpy(dst + b * g->row_bytes, src + (size_t)g->idx[b] * g->row_bytes, g->row_bytes);
        }
    }
}

void cpu_gather(struct kern *k, const struct kern_gather *items, size_t n_items, const int32_t *idx, size_t N, size_t B)
{
    for (size_t i = 0; i < n_items; i++) {
        struct gather g = {.dst = (char *)items[i].dst,
                           .src = (const char *)items[i].src,
                           .idx = idx,
                           .row_bytes = items[i].row_bytes,
                           .N = N,
                           .B = B};
        cpu_run(k, items[i].T, TIME_GRAIN, gather_part, &g);
    }
}

void cpu_pack_rows(struct kern *k, void *dst, int64_t *n_packed, const void *src, const uint8_t *flag, size_t row_bytes,
                   size_t N)
{
    char *to = (char *)dst;
    const char *from = (const char *)src;
    int64_t n = 0;

    (void)k;
    for (size_t i = 0; i < N; i++)
        if (flag[i] != 0)
            memcpy(to + (size_t)n++ * row_bytes, from + i * row_bytes, row_bytes);
    *n_packed = n;
}

void cpu_unpack_rows(struct kern *k, void *dst, const void *src, const uint8_t *flag, size_t row_bytes, size_t N)
{
    char *to = (char *)dst;
    const char *from = (const char *)src;
    size_t n = 0;

    (void)k;
    for (size_t i = 0; i < N; i++)
        if (flag[i] != 0)
            memcpy(to + i * row_bytes, from + n++ * row_bytes, row_bytes);
}
