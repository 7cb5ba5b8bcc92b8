/* common.h - what the files of the CUDA backend share: its data, its error state, element types, its operations.
 * Launchers enqueue on the device's stream and return: they never allocate and never wait, so that all they do can
 * be recorded as a graph. A failure is sticky: the first one is kept in struct cuda and named by the next kern_sync.
 * Reductions have a fixed order (no atomics on floats): same seed, same bytes on the same card. */
#ifndef KERNELS_CUDA_COMMON_H
#define KERNELS_CUDA_COMMON_H

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

#define CUDA_WORKSPACE_BYTES ((size_t)32 << 20) /* of cuBLASLt; what NVIDIA advises for Hopper */
#define CUDA_PARTIALS_BYTES ((size_t)4 << 20) /* partial sums of one reduction at a time, in stream order */
#define CUDA_WIDE_BYTES                                                                                                \
    ((size_t)32 << 20) /* of struct kern_source: stays in the L2 cache until a product has read it */
#define CUDA_TICKETS 16

#define CUDA_KERNELS_MAX 64

/* What kern_aside exchanges with the fields of these names. */
struct cuda_beside {
    cudaStream_t stream;
    void *partials;
    unsigned *tickets;
};

struct cuda {
    int ordinal, n_sm;
    bool has_clusters; /* blocks that read each other's shared memory: from compute capability 9.0 on */
    size_t shared_max; /* bytes of shared memory that a block may ask for */
    size_t n_threads; /* for games that are stepped on the host; 0: one for each core */
    cudaStream_t stream;
    cudaMemPool_t pool; /* the device's own; keeps what is freed for the next trial */
    char card[KERN_NAME_MAX]; /* without its limits */
    struct cuda_lt *lt; /* blas_lt.cu; shared by all lanes */
    void *workspace; /* (CUDA_WORKSPACE_BYTES) device */
    void *partials; /* (CUDA_PARTIALS_BYTES) device */
    /* (CUDA_TICKETS) device, 0 between operations: blocks draw one when they are done, and the block with the last one
     * finishes the operation (atomicInc to gridDim - 1 brings it back to 0). */
    unsigned *tickets;
    struct cuda_matmuls *matmuls; /* matmul.cu: cuBLASLt's choice for each shape seen so far */
    struct cuda_convs *convs; /* conv.cu: cuDNN and its choices; NULL until the first convolution */
    struct ncclComm *nccl; /* nccl.cu: what joins it with other devices; NULL: it is alone */
    const void *kernels[CUDA_KERNELS_MAX]; /* that were prepared for their launches */
    size_t n_kernels;
    bool recording;
    double patience_s; /* how long the device may finish nothing */
    char failed[256]; /* the first failure: what failed and why; empty: none */
    cudaStream_t solo; /* solo.cu: of the lowest priority; NULL before its first launch */
    struct cuda_beside beside;
    cudaEvent_t forked, joined;
    bool is_aside;
    int made_for; /* the compute capability that the code which runs was made for, 90 */
    bool unchained; /* the next launch follows more than a kernel of its own stream */
    bool has_joined; /* nothing has been put aside since the last join; false before the first */
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
void cuda_launched(struct kern *k, const char *what);
static inline void cuda_check(struct kern *k, cudaError_t code, const char *what)
{
    if (code != cudaSuccess)
        cuda_fail(k, what, cudaGetErrorString(code));
}
/* Once for each kernel of a device, at its first launch: lets it have all the shared memory of a block. Always the same
 * number, as other trials of the process launch the same kernels from other threads: one's smaller number must not come
 * between another's and its launch. */
void cuda_kernel_prepare(struct kern *k, const void *kernel, const char *what);
/* blas_lt.cu: at the first call for a device a thread asks for the limits of the card and then, if `ahead`, opens
 * cuBLASLt, while the caller opens the device; later calls find that done. Never freed. */
struct cuda_lt *cuda_lt_start(int ordinal, bool ahead);
const char *cuda_lt_limits(struct cuda_lt *lt); /* waits for them */
void cuda_lt_wait(struct cuda_lt *lt, bool lost); /* for the thread, unless the device is lost: it may hang then */

/* nccl.cu: of struct kern_device */
enum status cuda_ranks_join(struct kern *kern, struct error *err);
void cuda_ranks_leave(struct kern *kern);

/* cuBLASLt's choices: matmul.cu, used through matmul.h */
void cuda_convs_destroy(struct cuda_convs *convs); /* NULL is fine */
struct cuda_matmuls *cuda_matmuls_create(void);
void cuda_matmuls_destroy(struct cuda_matmuls *m); /* NULL is fine; leaves what it chose to later processes */

/* The memory of a slot (device.cu): pinned, the same address on the device. It is taken once the device sets the flag,
 * a word of it, which is cleared here. */
void *cuda_slot_memory(struct kern_slot *slot);
void cuda_slot_expect(struct kern_slot *slot, volatile uint64_t *flag);

/* ---- the implementations of the table's rows ---- */
#define CUDA_OP_ACT(name) KERN_OP_TYPE(name) cuda_##name##_f32, cuda_##name##_bf16;
#define CUDA_OP(name) KERN_OP_TYPE(name) cuda_##name;
CUDA_OP_ACT(weights_cast)
CUDA_OP_ACT(rollout)
CUDA_OP_ACT(solo)
KERN_EACH_OP(CUDA_OP_ACT, CUDA_OP)
#undef CUDA_OP_ACT
#undef CUDA_OP

/* ---- games: env.cu; the rest of struct kern_device ---- */
enum status cuda_env_create(struct kern *kern, struct kern_env **ret_env, const struct env_def *def,
                            const void *settings, size_t n_envs, struct rng root, struct error *err);
enum status cuda_env_restart(struct kern *kern, struct kern_env *env, struct rng root, struct error *err);
void cuda_env_destroy(struct kern *kern, struct kern_env *env);
double cuda_env_outside_s(const struct kern_env *env);
enum status cuda_env_take_numbers(struct kern *kern, struct kern_env *env, double *ret_sums, double *ret_episodes,
                                  struct error *err);
enum status cuda_env_take_log(struct kern *kern, struct kern_env *env, struct env_log *ret_log, struct error *err);
size_t cuda_env_state_bytes(const struct kern_env *env);
enum status cuda_env_save(struct kern *kern, struct kern_env *env, void *bytes, struct error *err);
enum status cuda_env_load(struct kern *kern, struct kern_env *env, const void *bytes, struct error *err);

#ifdef __cplusplus
}

/* Launches a kernel that begins with ptx_chained(): its blocks are placed when those of the kernel before have ended,
 * and wait in place until what that one wrote can be seen. */
template <typename... P, typename... A>
static inline void cuda_chain(struct kern *k, const char *what, void (*kernel)(P...), dim3 grid, dim3 block,
                              size_t bytes, A... args)
{
    struct cuda *cuda = cuda_of(k);
    cudaLaunchAttribute chained = {};
    cudaLaunchConfig_t config = {};

    chained.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    chained.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = bytes;
    config.stream = cuda->stream;
    config.attrs = &chained;
    config.numAttrs = cuda->made_for >= 90 && !cuda->unchained;
    cuda->unchained = false;
    cuda_check(k, cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...), what);
}
#endif
#endif
