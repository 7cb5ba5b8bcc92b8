/* cpu_priv.h - what the files of the CPU backend share: its data, its threads and its operations.
 * Threads: the caller and the pool's helpers, split statically; OpenBLAS itself is held to one thread for each
 * caller. */
#pragma once

#include "kernels/kern_priv.h"

#include "base/os/pool.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define CPU_PARTIALS 16 /* f64 sums of one worker: two cache lines, so that workers do not share one */

struct cpu {
    struct pool *pool; /* owned; NULL in a shard, which is one thread */
    double *partials; /* (n_threads, CPU_PARTIALS), owned; a shard borrows its row */
    struct cpu_shard *shards; /* (n_threads), owned; NULL in a shard */
    struct error failed; /* what a game's step failed with since the last cpu_sync */
};

struct cpu_shard {
    struct kern kern; /* its impl is the cpu below */
    struct cpu cpu;
};

static inline struct cpu *cpu_of(const struct kern *k)
{
    return (struct cpu *)k->impl;
}

/* Numbers below 2^-126 count as zero while an operation computes: the momentum of dead units decays into them, and
 * arithmetic on them is a hundred times slower. The thread's own mode comes back with cpu_flush_end. */
#ifdef __SSE2__
#define CPU_FLUSH_BITS 0x8040u /* flush-to-zero, denormals-are-zero */
static inline unsigned cpu_flush_begin(void)
{
    unsigned old = _mm_getcsr();
    _mm_setcsr(old | CPU_FLUSH_BITS);
    return old;
}
static inline void cpu_flush_end(unsigned old)
{
    _mm_setcsr(old);
}
#else
static inline unsigned cpu_flush_begin(void)
{
    return 0;
}
static inline void cpu_flush_end(unsigned old)
{
    (void)old;
}
#endif

struct cpu_job {
    pool_fn *fn;
    void *ctx;
};

static inline void cpu_job_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct cpu_job *job = (const struct cpu_job *)ctx;
    unsigned old = cpu_flush_begin();
    job->fn(job->ctx, worker, from, to);
    cpu_flush_end(old);
}

/* fn only reads ctx. */
static inline void cpu_run(const struct kern *k, size_t n, size_t grain, pool_fn *fn, const void *ctx)
{
    struct cpu_job job = {.fn = fn, .ctx = (void *)(uintptr_t)ctx};
    pool_run(cpu_of(k)->pool, n, grain, cpu_job_part, &job);
}

/* Sum over workers, in their order, of partial number i. */
static inline double cpu_partial_sum(const struct kern *k, size_t i)
{
    const struct cpu *cpu = cpu_of(k);
    double sum = 0.0;
    for (size_t w = 0; w < pool_size(cpu->pool); w++)
        sum += cpu->partials[w * CPU_PARTIALS + i];
    return sum;
}

/* blas_core.c: the name of the kernels that OpenBLAS runs on ("SkylakeX"). */
const char *cpu_blas_core(void);

/* c (m, n) = alpha a (m, k) b (k, n) + beta c by the calling thread alone; a_t, b_t: the operand is stored
 * transposed. */
void cpu_gemm(bool a_t, bool b_t, size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, const float *b,
              size_t ldb, float beta, float *c, size_t ldc);

/* cpu_linear.c. y (rows, N) = act(y + b), b NULL: none; dy *= act'(y) over n numbers, the activation's output y. */
void cpu_bias_act(float *y, const float *b, size_t rows, size_t N, enum kern_act act);
void cpu_act_gradient(float *dy, const float *y, size_t n, enum kern_act act);

/* Bytes from one row of a source's x to the next; row > 0. */
static inline size_t cpu_source_row_bytes(const struct kern_source *source)
{
    return source->bytes ? env_mixed_bytes(source->row, source->n_floats) : source->row * sizeof(float);
}
/* A part of a first layer's input (struct kern_source) in f32: rows from x, numbers [from, from + n) of each, into
 * to (rows, n). */
void cpu_widen(float *to, const struct kern_source *source, const void *x, size_t rows, size_t from, size_t n);
size_t cpu_wide_bytes(const struct kern *k);

size_t cpu_conv_scratch_bytes(const struct kern *k, const struct kern_conv *conv);

/* The implementations of the table's rows. */
#define CPU_OP(name) KERN_OP_TYPE(name) cpu_##name;
KERN_EACH_OP(CPU_OP, CPU_OP)
#undef CPU_OP
