/* common.h - what the files of the CUDA backend share: its data, its error state, element types, its operations.
 * Launchers enqueue on the device's stream and return: they never allocate and never wait, so that whatever they do can
 * be recorded as a graph. A failure is sticky: the first one is kept in struct cuda and named by the next kern_sync.
 * Reductions have a fixed order (no atomics on floats): same seed, same bytes on the same card. */
#ifndef KERNELS_CUDA_COMMON_H
#define KERNELS_CUDA_COMMON_H

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "base/mem.h"
#include "kernels/kern_priv.h"
#ifdef __cplusplus
}
#endif

#define CUDA_WORKSPACE_BYTES ((size_t)32 << 20) /* of cuBLAS; what NVIDIA advises for Hopper */
#define CUDA_PARTIALS_BYTES ((size_t)1 << 20) /* partial sums of one reduction at a time, in stream order */
#define CUDA_TICKETS 16

struct cuda {
    int ordinal, n_sm;
    bool has_clusters; /* blocks that read each other's shared memory: from compute capability 9.0 on */
    size_t shared_max; /* bytes of shared memory that a block may ask for */
    size_t n_threads; /* for games that are stepped on the host; 0: one for each core */
    cudaStream_t stream;
    cudaMemPool_t pool; /* the device's own; keeps what is freed for the next trial */
    cublasHandle_t blas; /* bound to stream and workspace */
    cublasLtHandle_t lt;
    void *workspace; /* (CUDA_WORKSPACE_BYTES) device */
    void *partials; /* (CUDA_PARTIALS_BYTES) device */
    /* (CUDA_TICKETS) device, 0 between operations: blocks draw one when they are done, and who draws the last one
     * finishes the operation (atomicInc to gridDim - 1 brings it back to 0). */
    unsigned *tickets;
    struct cuda_matmuls *matmuls; /* matmul.cu: cuBLASLt's choice for each shape seen so far */
    struct cuda_convs *convs; /* conv.cu: cuDNN and its choices; NULL until the first convolution */
    bool recording;
    double patience_s; /* how long the device may finish nothing */
    char failed[256]; /* the first failure: what failed and why; empty: none */
};

static inline struct cuda *cuda_of(const struct kern *k)
{
    return (struct cuda *)k->impl;
}

/* ---- failures ---- */
#ifdef __cplusplus
extern "C" {
#endif
void cuda_fail(struct kern *k, const char *what, const char *why); /* keeps the first */
/* After a launch: `cuda_launched(k, "sample")`. */
static inline void cuda_launched(struct kern *k, const char *what)
{
    cudaError_t code = cudaGetLastError();
    if (code != cudaSuccess)
        cuda_fail(k, what, cudaGetErrorString(code));
}
static inline void cuda_check(struct kern *k, cudaError_t code, const char *what)
{
    if (code != cudaSuccess)
        cuda_fail(k, what, cudaGetErrorString(code));
}
/* Lets a kernel have all the shared memory of a block. Always the same number, as other trials of the process launch
 * the same kernels from other threads: one's smaller number must not come between another's and its launch. */
static inline void cuda_shared_allow(struct kern *k, const void *kernel, const char *what)
{
    cudaFuncAttributes made;
    cuda_check(k, cudaFuncGetAttributes(&made, kernel), what);
    cuda_check(k,
               cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)(cuda_of(k)->shared_max - made.sharedSizeBytes)),
               what);
}
static inline void cuda_check_blas(struct kern *k, cublasStatus_t code, const char *what)
{
    if (code != CUBLAS_STATUS_SUCCESS)
        cuda_fail(k, what, cublasGetStatusString(code));
}

/* cuBLASLt's choices: matmul.cu, used through matmul.h */
void cuda_convs_destroy(struct cuda_convs *convs); /* NULL is fine */
struct cuda_matmuls *cuda_matmuls_create(void);
void cuda_matmuls_destroy(struct cuda_matmuls *m);

/* ---- operations: those with activations once for each type, the others once ---- */
#define CUDA_ACT_OPS(T)                                                                                                \
    void cuda_weights_cast_##T(struct kern *k, void *w, const float *params, size_t n);                                \
    void cuda_linear_forward_##T(struct kern *k, void *y, const void *x, const void *w, const void *b, size_t M,       \
                                 size_t N, size_t K, enum kern_act act);                                               \
    void cuda_linear_backward_##T(struct kern *k, void *dx, float *dw, float *db, void *dy, const void *y,             \
                                  const void *x, const void *w, size_t M, size_t N, size_t K, enum kern_act act,       \
                                  bool add_dx, bool add_dw);                                                           \
    void cuda_heads_forward_##T(struct kern *k, float *out, const void *x, const float *w, const float *b, size_t M,   \
                                size_t O, size_t H);                                                                   \
    void cuda_heads_backward_##T(struct kern *k, void *dx, float *dw, float *db, const float *dout, const void *x,     \
                                 const float *w, size_t M, size_t O, size_t H, bool add_dw);                           \
    void cuda_conv_forward_##T(struct kern *k, void *y, const void *x, const void *w, const void *b, void *scratch,    \
                               const struct kern_conv *conv, size_t M, enum kern_act act);                             \
    void cuda_conv_backward_##T(struct kern *k, void *dx, float *dw, float *db, void *dy, const void *y,               \
                                const void *x, const void *w, void *scratch, const struct kern_conv *conv, size_t M,   \
                                enum kern_act act, bool add_dw);                                                       \
    void cuda_mingru_step_##T(struct kern *k, void *out, float *h, const void *gates, const void *x,                   \
                              const uint8_t *reset, size_t N, size_t H);                                               \
    void cuda_mingru_forward_##T(struct kern *k, void *out, void *h, const void *gates, const void *x,                 \
                                 const float *h0, const uint8_t *reset, size_t T, size_t B, size_t H);                 \
    void cuda_mingru_backward_##T(struct kern *k, void *dx, void *dgates, const void *dout, const void *h,             \
                                  const void *gates, const void *x, const float *h0, const uint8_t *reset, size_t T,   \
                                  size_t B, size_t H);                                                                 \
    void cuda_lstm_step_##T(struct kern *k, void *out, float *state, void *gates, const void *w_hh,                    \
                            const uint8_t *reset, size_t N, size_t H);                                                 \
    void cuda_lstm_forward_##T(struct kern *k, void *out, void *h_prev, void *c_prev, void *gates, float *state,       \
                               const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H);                  \
    void cuda_lstm_backward_##T(struct kern *k, void *gates, float *dstate, const void *dout, const void *c_prev,      \
                                const void *w_hh, const uint8_t *reset, size_t T, size_t B, size_t H);                 \
    void cuda_env_reset_##T(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask);                           \
    void cuda_env_step_##T(struct kern *k, struct kern_env *env, const struct kern_env_io *io);                        \
    void cuda_env_observe_##T(struct kern *k, struct kern_env *env, void *obs, uint8_t *mask);                         \
    bool cuda_rollout_##T(struct kern *k, const struct kern_rollout *r);
CUDA_ACT_OPS(f32)
CUDA_ACT_OPS(bf16)
void cuda_sample(struct kern *k, int32_t *actions, float *logp, float *value, const float *out, const uint8_t *mask,
                 const struct kern_heads *heads, struct rng *rng, bool greedy, size_t N);
void cuda_step_post(struct kern *k, float *rewards, uint8_t *reset, const uint8_t *terms, const uint8_t *truncs,
                    const struct kern_hyper *hyper, size_t N);
void cuda_advantage(struct kern *k, float *adv, float *ret, const float *rewards, const float *values,
                    const float *boot, const uint8_t *terms, const uint8_t *truncs, const float *log_ratio,
                    const struct kern_hyper *hyper, size_t T, size_t N);
void cuda_mean_std(struct kern *k, float *mean_std, const float *x, size_t n);
void cuda_segments_shuffle(struct kern *k, int32_t *perm, const struct rng *rng, size_t N);
void cuda_segments_priority(struct kern *k, float *prob, const float *adv, const struct kern_hyper *hyper, size_t T,
                            size_t N);
void cuda_segments_pick(struct kern *k, int32_t *idx, float *weight, const float *prob, struct rng *rng,
                        const struct kern_hyper *hyper, size_t N, size_t B);
void cuda_rng_advance(struct kern *k, struct rng *rng, uint64_t n);
void cuda_gather(struct kern *k, const struct kern_gather *items, size_t n_items, const int32_t *idx, size_t N,
                 size_t B);
void cuda_segments_keep(struct kern *k, float *log_ratio, const float *out, const int32_t *actions,
                        const float *old_logp, const uint8_t *mask, const struct kern_heads *heads, const int32_t *idx,
                        bool has_before, size_t N, size_t T, size_t B);
void cuda_ppo_loss(struct kern *k, float *dout, struct kern_stats *part, const float *out, const int32_t *actions,
                   const float *old_logp, const float *adv, const float *ret, const float *old_value,
                   const float *weight, const float *mean_std, const uint8_t *mask, const struct kern_heads *heads,
                   const struct kern_hyper *hyper, size_t T, size_t B, size_t B_all);
void cuda_minibatch_stats(struct kern *k, struct kern_stats *stats, struct kern_stats *parts, size_t n_parts,
                          const struct kern_hyper *hyper);
void cuda_grad_norm(struct kern *k, float *norm, struct kern_stats *stats, const float *g, size_t n);
void cuda_adam(struct kern *k, float *w, float *m, float *v, const float *g, const float *norm,
               const struct kern_stats *stats, const int64_t *step, const struct kern_hyper *hyper, size_t n);
void cuda_muon(struct kern *k, float *w, float *m, const float *g, const float *norm, void *scratch,
               const struct kern_stats *stats, const struct kern_hyper *hyper, const struct kern_tensor *tensors,
               size_t n_tensors);
void cuda_optimiser_tick(struct kern *k, int64_t *step, const float *norm, const struct kern_stats *stats);
void cuda_zero(struct kern *k, void *p, size_t bytes);
void cuda_copy(struct kern *k, void *dst, const void *src, size_t bytes);
void cuda_sum_rows(struct kern *k, float *x, size_t rows, size_t n);
void cuda_pack_rows(struct kern *k, void *dst, int64_t *n_packed, const void *src, const uint8_t *flag,
                    size_t row_bytes, size_t N);
void cuda_env_log_take(struct kern *k, struct kern_env *env, struct env_log *log);
void cuda_unpack_rows(struct kern *k, void *dst, const void *src, const uint8_t *flag, size_t row_bytes, size_t N);

/* ---- games: env.cu; the rest of struct kern_device ---- */
enum status cuda_env_create(struct kern *kern, struct kern_env **ret_env, const struct env_def *def,
                            const void *settings, size_t n_envs, struct rng root, struct error *err);
enum status cuda_env_restart(struct kern *kern, struct kern_env *env, struct rng root, struct error *err);
void cuda_env_destroy(struct kern *kern, struct kern_env *env);
enum status cuda_env_take_log(struct kern *kern, struct kern_env *env, struct env_log *ret_log, struct error *err);
size_t cuda_env_state_bytes(const struct kern_env *env);
enum status cuda_env_save(struct kern *kern, struct kern_env *env, void *bytes, struct error *err);
enum status cuda_env_load(struct kern *kern, struct kern_env *env, const void *bytes, struct error *err);

#ifdef __cplusplus
}
#endif
#endif
