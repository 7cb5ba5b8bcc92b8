/* kern_priv.h - what a backend gives to kern.c (private to kernels/).
 *
 * A backend is one struct kern_device: the functions that kern_open, kern_alloc, kern_env_create and so on call, beside
 * its table of operations. kern.c picks the backend; it knows nothing of threads or streams.
 *   cpu/   cpu_device, always there
 *   cuda/  cuda_device, in builds with the CUDA toolkit; probe.cu answers `trawl doctor`
 * A backend keeps its own data in kern->impl. */
#pragma once

#include "kernels/kernels.h"

/* Muon's scratch: sides are padded to a multiple of KERN_MUON_PAD, X X^T comes in KERN_MUON_SPLITS parts. */
#define KERN_MUON_PAD 64
#define KERN_MUON_SPLITS 4

/* The operations by name, in the order of the table, so that a backend writes the declarations of its implementations
 * and its table in a line each. ACT(name) has an implementation for each activation type, ONE(name) a single one. */
#define KERN_EACH_OP(ACT, ONE)                                                                                         \
    ACT(linear_forward)                                                                                                \
    ACT(linear_backward)                                                                                               \
    ACT(heads_forward)                                                                                                 \
    ACT(heads_backward)                                                                                                \
    ACT(conv_forward)                                                                                                  \
    ACT(conv_backward)                                                                                                 \
    ACT(mingru_step)                                                                                                   \
    ACT(mingru_forward)                                                                                                \
    ACT(mingru_backward)                                                                                               \
    ACT(lstm_step)                                                                                                     \
    ACT(lstm_forward)                                                                                                  \
    ACT(lstm_backward)                                                                                                 \
    ACT(env_reset)                                                                                                     \
    ACT(env_begin)                                                                                                     \
    ONE(env_wait)                                                                                                      \
    ACT(env_observe)                                                                                                   \
    ONE(env_log_take)                                                                                                  \
    ONE(sample)                                                                                                        \
    ONE(frames_stack)                                                                                                  \
    ONE(step_post)                                                                                                     \
    ACT(norm_add)                                                                                                      \
    ONE(norm_freeze)                                                                                                   \
    ACT(norm_apply)                                                                                                    \
    ONE(norm_join)                                                                                                     \
    ONE(reward_scale)                                                                                                  \
    ACT(novelty)                                                                                                       \
    ONE(advantage)                                                                                                     \
    ONE(mean_std)                                                                                                      \
    ONE(mean_std_join)                                                                                                 \
    ONE(segments_shuffle)                                                                                              \
    ONE(segments_priority)                                                                                             \
    ONE(segments_pick)                                                                                                 \
    ONE(segments_keep)                                                                                                 \
    ONE(rng_advance)                                                                                                   \
    ONE(gather)                                                                                                        \
    ONE(ppo_loss)                                                                                                      \
    ONE(minibatch_stats)                                                                                               \
    ONE(grad_norm)                                                                                                     \
    ONE(adam)                                                                                                          \
    ACT(muon)                                                                                                          \
    ONE(optimiser_tick)                                                                                                \
    ONE(exchange)                                                                                                      \
    ONE(zero)                                                                                                          \
    ONE(zero_rows)                                                                                                     \
    ONE(copy)                                                                                                          \
    ONE(sum_rows)                                                                                                      \
    ONE(pack_rows)                                                                                                     \
    ONE(unpack_rows)                                                                                                   \
    ONE(mark)
/* The type of an implementation. */
#define KERN_OP_TYPE(name) __typeof__(*((const struct kern_ops *)0)->name)

/* The time since *from_s is the part of this name; *from_s: now. */
void kern_part_end(struct kern *kern, const char *name, double *from_s);

extern const struct kern_device cpu_device;

/* Only in builds with the CUDA toolkit. cuda/probe.cu: true when a device answers; text is its description, or the
 * reason why none does. */
bool cuda_probe(char *ret_text, size_t size);
/* cuda/blas_lt.cu, where large layers are expected: a thread opens cuBLASLt while the driver is busy with the card. The
 * driver's own library is opened before: each would hold the loader's lock for the other. */
void cuda_open_ahead(void);
int cuda_count(void);
size_t cuda_facts(struct kern_fact *ret_facts, size_t n_max); /* cuda/facts.cu */
void cuda_nccl_fact(char *ret_text, size_t size); /* cuda/nccl.cu: is NCCL found, of which version, and what for */
extern const struct kern_device cuda_device; /* cuda/device.cu */
extern const char cuda_env_device_text[]; /* made by envs/plugin/make_header.py */
