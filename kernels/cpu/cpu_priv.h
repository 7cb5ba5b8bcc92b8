/* cpu_priv.h - what the files of the CPU backend share: its data, its threads and its operations.
 * Threads: the caller and the pool's helpers, split statically; OpenBLAS itself is held to one thread for each
 * caller. */
#ifndef KERNELS_CPU_PRIV_H
#define KERNELS_CPU_PRIV_H

#include "kernels/kern_priv.h"

#include "base/pool.h"

#ifdef __SSE2__
#include <xmmintrin.h>
#endif

#define CPU_PARTIALS 16 /* f64 sums of one worker: two cache lines, so that workers do not share one */

struct cpu {
    struct pool *pool; /* owned; NULL in a lane, which is one thread */
    double *partials; /* (n_threads, CPU_PARTIALS), owned; a lane borrows its row */
    struct cpu_lane *lanes; /* (n_threads), owned; NULL in a lane */
    struct error failed; /* what a game's step failed with since the last cpu_sync */
};

struct cpu_lane {
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

static inline void cpu_run(const struct kern *k, size_t n, size_t grain, pool_fn *fn, void *ctx)
{
    struct cpu_job job = {.fn = fn, .ctx = ctx};
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

size_t cpu_conv_scratch_bytes(const struct kern *k, const struct kern_conv *conv);

/* Operations, one prototype for each row of struct kern_ops. */
void cpu_linear_forward(struct kern *k, void *y, const void *x, const void *w, const void *b, size_t M, size_t N,
                        size_t K, enum kern_act act);
void cpu_linear_backward(struct kern *k, void *dx, float *dw, float *db, void *dy, const void *y, const void *x,
                         const void *w, size_t M, size_t N, size_t K, enum kern_act act, bool add_dx, bool add_dw);
void cpu_heads_forward(struct kern *k, float *out, const void *x, const float *w, const float *b, size_t M, size_t O,
                       size_t H);
void cpu_heads_backward(struct kern *k, void *dx, float *dw, float *db, const float *dout, const void *x,
                        const float *w, size_t M, size_t O, size_t H, bool add_dw);
void cpu_conv_forward(struct kern *k, void *y, const void *x, const void *w, const void *b, void *scratch,
                      const struct kern_conv *conv, size_t M, enum kern_act act);
void cpu_conv_backward(struct kern *k, void *dx, float *dw, float *db, void *dy, const void *y, const void *x,
                       const void *w, void *scratch, const struct kern_conv *conv, size_t M, enum kern_act act,
                       bool add_dw);
void cpu_mingru_step(struct kern *k, void *out, float *h, const void *gates, const void *x, const uint8_t *reset,
                     size_t N, size_t H);
void cpu_mingru_forward(struct kern *k, void *out, void *h, const void *gates, const void *x, const float *h0,
                        const uint8_t *reset, size_t T, size_t B, size_t H);
void cpu_mingru_backward(struct kern *k, void *dx, void *dgates, const void *dout, const void *h, const void *gates,
                         const void *x, const float *h0, const uint8_t *reset, size_t T, size_t B, size_t H);
void cpu_lstm_step(struct kern *k, void *out, float *state, void *gates, const void *w_hh, const uint8_t *reset,
                   size_t N, size_t H);
void cpu_lstm_forward(struct kern *k, void *out, void *h_prev, void *c_prev, void *gates, float *state,
                      const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H);
void cpu_lstm_backward(struct kern *k, void *gates, float *dstate, const void *dout, const void *c_prev,
                       const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H);
void cpu_sample(struct kern *k, int32_t *actions, float *logp, float *value, const float *out, const uint8_t *mask,
                const struct kern_heads *heads, struct rng *rng, bool greedy, size_t N);
void cpu_step_post(struct kern *k, float *rewards, uint8_t *reset, const uint8_t *terms, const uint8_t *truncs,
                   const struct kern_hyper *hyper, size_t N);
void cpu_advantage(struct kern *k, float *adv, float *ret, const float *rewards, const float *values, const float *boot,
                   const uint8_t *terms, const uint8_t *truncs, const float *log_ratio, const struct kern_hyper *hyper,
                   size_t T, size_t N);
void cpu_mean_std(struct kern *k, float *mean_std, const float *x, size_t n);
void cpu_segments_shuffle(struct kern *k, int32_t *perm, const struct rng *rng, size_t N);
void cpu_segments_priority(struct kern *k, float *prob, const float *adv, const struct kern_hyper *hyper, size_t T,
                           size_t N);
void cpu_segments_pick(struct kern *k, int32_t *idx, float *weight, const float *prob, struct rng *rng,
                       const struct kern_hyper *hyper, size_t N, size_t B);
void cpu_rng_advance(struct kern *k, struct rng *rng, uint64_t n);
void cpu_gather(struct kern *k, const struct kern_gather *items, size_t n_items, const int32_t *idx, size_t N,
                size_t B);
void cpu_segments_keep(struct kern *k, float *log_ratio, const float *out, const int32_t *actions,
                       const float *old_logp, const uint8_t *mask, const struct kern_heads *heads, const int32_t *idx,
                       bool has_before, size_t N, size_t T, size_t B);
void cpu_ppo_loss(struct kern *k, float *dout, struct kern_stats *part, const float *out, const int32_t *actions,
                  const float *old_logp, const float *adv, const float *ret, const float *old_value,
                  const float *weight, const float *mean_std, const uint8_t *mask, const struct kern_heads *heads,
                  const struct kern_hyper *hyper, size_t T, size_t B, size_t B_all);
void cpu_minibatch_stats(struct kern *k, struct kern_stats *stats, struct kern_stats *parts, size_t n_parts,
                         const struct kern_hyper *hyper);
void cpu_grad_norm(struct kern *k, float *norm, struct kern_stats *stats, const float *g, size_t n);
void cpu_adam(struct kern *k, float *w, float *m, float *v, const float *g, const float *norm,
              const struct kern_stats *stats, const int64_t *step, const struct kern_hyper *hyper, size_t n);
void cpu_muon(struct kern *k, float *w, float *m, const float *g, const float *norm, void *scratch,
              const struct kern_stats *stats, const struct kern_hyper *hyper, const struct kern_tensor *tensors,
              size_t n_tensors);
void cpu_optimiser_tick(struct kern *k, int64_t *step, const float *norm, const struct kern_stats *stats);
void cpu_zero(struct kern *k, void *p, size_t bytes);
void cpu_copy(struct kern *k, void *dst, const void *src, size_t bytes);
void cpu_sum_rows(struct kern *k, float *x, size_t rows, size_t n);
void cpu_pack_rows(struct kern *k, void *dst, int64_t *n_packed, const void *src, const uint8_t *flag, size_t row_bytes,
                   size_t N);
void cpu_unpack_rows(struct kern *k, void *dst, const void *src, const uint8_t *flag, size_t row_bytes, size_t N);

#endif
