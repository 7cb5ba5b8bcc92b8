/* env.cuh - batches of games of the CUDA backend (private to kernels/cuda). Whatever includes this is compiled with
 * -fmad=false (env_game.cuh). */
#ifndef KERNELS_CUDA_ENV_CUH
#define KERNELS_CUDA_ENV_CUH

#include "kernels/cuda/common.h"

#include "kernels/cuda/play/env_game.cuh"

/* A batch of games of the CUDA backend: base.device is cuda_device. */
struct cuda_env {
    struct kern_env base; /* first: see kern_priv.h */
    const struct env_device *game; /* kernels of a game on the device; NULL: the host has it */
    const struct env_def *def; /* borrowed */
    struct env_shape shape;
    size_t n_envs, n_agents; /* n_agents of all instances */
    struct rng root;
    void *settings; /* (def->options.settings_size) host memory, owned */
    void *states; /* (n_envs) instances, device, owned; in stream order */
    struct env_log *logs; /* (n_envs) device, owned */
    /* (CUDA_ENV_LOG_PARTS + 1) device, owned: partial sums, and the sum for kern_env_take_log */
    struct env_log *log_parts;
    struct cuda_env_host *host; /* a game stepped on the host, owned; see env_host.cu */
};

#define CUDA_ENV_LOG_PARTS 64

static inline struct cuda_env *cuda_env_of(const struct kern_env *env)
{
    return (struct cuda_env *)env;
}

/* The game's number in enum rollout_game; a library's is the only one of its kernels, 0; ROLLOUT_GAMES: rollouts in one
 * launch do not play it. rollout.cu */
int cuda_rollout_game(const struct cuda_env *env);

/* ---- games stepped on the host: env_host.cu ---- */
enum status cuda_env_host_create(struct kern *kern, struct cuda_env *env, const void *settings, struct error *err);
void cuda_env_host_destroy(struct kern *kern, struct cuda_env *env); /* one that was never made is fine */
void cuda_env_host_reset(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16);
/* A part of a step; io as for the whole. What it gives may be looked at after the wait. */
void cuda_env_host_begin(struct kern *k, struct cuda_env *env, const struct kern_env_io *io, size_t part, bool bf16);
void cuda_env_host_wait(struct kern *k, struct cuda_env *env, size_t part);
void cuda_env_host_observe(struct kern *k, struct cuda_env *env, void *obs, uint8_t *mask, bool bf16);
void cuda_env_host_logs(struct kern *k, struct cuda_env *env); /* moves them into env->logs */
struct env_batch *cuda_env_host_batch(struct cuda_env *env); /* after kern_sync */

#endif
