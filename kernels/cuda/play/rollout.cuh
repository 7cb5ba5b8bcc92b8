/* rollout.cuh - how a rollout in one launch is laid out (private to kernels/cuda and its tests). */
#ifndef KERNELS_CUDA_ROLLOUT_CUH
#define KERNELS_CUDA_ROLLOUT_CUH

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/kernels.h"

/* The rollout operation of bf16 with the tile chosen by the caller: blocks of 8 agents that a group of warps takes at a
 * time (1, 2, 4) and groups of a CTA; 0: chosen here. Which is chosen changes the time and no byte of the result. */
bool cuda_rollout_tiled(struct kern *k, const struct kern_rollout *r, int n_blocks, int n_groups);

#ifdef __cplusplus
}
#endif
#endif
