/* optim.h - when an optimiser's step does nothing, and how gradients are clipped: of Adam and Muon alike. */
#ifndef KERNELS_CUDA_OPTIM_H
#define KERNELS_CUDA_OPTIM_H

#include "kernels/cuda/common.h"

static __device__ __forceinline__ bool optim_is_off(const float *norm, const struct kern_stats *stats)
{
    return !isfinite(*norm) || stats->stop != 0;
}

static __device__ __forceinline__ float optim_clip(const float *norm, const struct kern_hyper *hyper)
{
    float scale = hyper->max_grad_norm / (*norm + 1e-6f);
    return hyper->max_grad_norm > 0.0f && scale < 1.0f ? scale : 1.0f;
}

#endif
