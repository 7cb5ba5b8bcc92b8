/* cpu_plain.c - moving numbers: zero, copy, sums of rows, gather of minibatch rows, packing and unpacking of flagged
 * rows, stacking of frames. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#define TIME_GRAIN 1
#define FLOAT_GRAIN 1024

void cpu_zero(struct kern *k, void *p, size_t bytes)
{
    (void)k;
    memset(p, 0, bytes);
}

void cpu_zero_rows(struct kern *k, void *p, size_t bytes, size_t stride, size_t n)
{
    (void)k;
    for (size_t i = 0; i < n; i++)
        memset((char *)p + i * stride, 0, bytes);
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
    const struct kern_gather *of;
    const struct kern_gather_item *item;
};

/* Times [from, to) of one item. */
static void gather_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct gather *job = (const struct gather *)ctx;
    const struct kern_gather *g = job->of;
    size_t row_bytes = job->item->row_bytes;

    (void)worker;
    for (size_t t = from; t < to; t++) {
        char *dst = (char *)job->item->dst + t * g->B * row_bytes;
        const char *src = (const char *)job->item->src + t * g->N * row_bytes;
        if (row_bytes == 1) {
            for (size_t b = 0; b < g->B; b++)
                dst[b] = src[g->idx[b]];
        } else if (row_bytes == 4) {
            for (size_t b = 0; b < g->B; b++)
                memcpy(dst + b * 4, src + (size_t)g->idx[b] * 4, 4);
        } else {
            for (size_t b = 0; b < g->B; b++)
                memcpy(dst + b * row_bytes, src + (size_t)g->idx[b] * row_bytes, row_bytes);
        }
    }
}

void cpu_gather(struct kern *k, const struct kern_gather *g)
{
    for (size_t i = 0; i < g->n_items; i++) {
        struct gather job = {.of = g, .item = &g->items[i]};
        cpu_run(k, g->items[i].T, TIME_GRAIN, gather_part, &job);
    }
}

void cpu_pack_rows(struct kern *k, const struct kern_pack *p)
{
    char *to = (char *)p->dst;
    const char *from = (const char *)p->src;
    int64_t n = 0;

    (void)k;
    for (size_t i = 0; i < p->N; i++)
        if (p->flag[i] != 0)
            memcpy(to + (size_t)n++ * p->row_bytes, from + i * p->row_bytes, p->row_bytes);
    *p->n_packed = n;
}

void cpu_unpack_rows(struct kern *k, const struct kern_pack *p)
{
    char *to = (char *)p->dst;
    const char *from = (const char *)p->src;
    size_t n = 0;

    (void)k;
    for (size_t i = 0; i < p->N; i++)
        if (p->flag[i] != 0)
            memcpy(to + i * p->row_bytes, from + n++ * p->row_bytes, p->row_bytes);
}

/* A piece of `bytes` bytes of a frame, and the k of them in dst, of which the first makes place for it. */
static void frames_piece(char *dst, const char *old, const char *frame, size_t bytes, size_t k)
{
    for (size_t t = 0; old == NULL && t + 1 < k; t++)
        memcpy(dst + t * bytes, frame, bytes);
    if (old != NULL)
        memmove(dst, old + bytes, (k - 1) * bytes);
    memcpy(dst + (k - 1) * bytes, frame, bytes);
}

static void frames_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct kern_frames *f = (const struct kern_frames *)ctx;
    size_t pixel = f->channels * f->number_bytes, list = f->list * f->number_bytes, all = f->pixels * pixel + list;
    size_t frame_row = f->frame_row > 0 ? f->frame_row : all, row = f->row > 0 ? f->row : f->k * all;

    (void)worker;
    for (size_t i = from; i < to; i++) {
        bool begins = f->old == NULL || (f->reset != NULL && f->reset[i] != 0);
        const char *frame = (const char *)f->frame + i * frame_row;
        const char *old = begins ? NULL : (const char *)f->old + i * row;
        char *dst = (char *)f->dst + i * row;

        if (f->only != NULL && f->only[i] == 0)
            continue;
        for (size_t p = 0; p < f->pixels; p++)
            frames_piece(dst + p * f->k * pixel, old != NULL ? old + p * f->k * pixel : NULL, frame + p * pixel, pixel,
                         f->k);
        if (list > 0)
            frames_piece(dst + f->k * (all - list), old != NULL ? old + f->k * (all - list) : NULL,
                         frame + (all - list), list, f->k);
    }
}

void cpu_frames_stack(struct kern *k, const struct kern_frames *f)
{
    cpu_run(k, f->N, TIME_GRAIN, frames_part, f);
}
