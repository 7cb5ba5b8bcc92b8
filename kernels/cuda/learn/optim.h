/* optim.h - when an optimiser's step does nothing, and how gradients are clipped: of Adam and Muon alike; Adam of one
 * number. */
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

/* ---- Adam ---- */

struct adam_rates {
    float scale, beta1, beta2, rate, inv_sqrt2, eps, keep;
};

static __device__ __forceinline__ void adam_one(float *w, float *m, float *v, float g, const struct adam_rates *a)
{
    g *= a->scale;
    *m = a->beta1 * *m + (1.0f - a->beta1) * g;
    *v = a->beta2 * *v + (1.0f - a->beta2) * g * g;
    *w = *w * a->keep - a->rate * *m / (sqrtf(*v) * a->inv_sqrt2 + a->eps);
}

/* 1 - beta^t as f32 keeps it: relative to itself, however near beta^t is to 1 */
static __device__ __forceinline__ float bias_correction(float beta, int64_t t)
{
    return -expm1f((float)t * logf(beta));
}

/* Of the t-th step, the first being 1. */
static __device__ __forceinline__ struct adam_rates adam_rates_of(const float *norm, const struct kern_hyper *hyper,
                                                                  int64_t t)
{
    struct adam_rates a = {.scale = optim_clip(norm, hyper), .beta1 = hyper->beta1, .beta2 = hyper->beta2};

    a.rate = hyper->lr / bias_correction(a.beta1, t);
    a.inv_sqrt2 = 1.0f / sqrtf(bias_correction(a.beta2, t));
    a.eps = hyper->eps;
    a.keep = 1.0f - hyper->lr * hyper->weight_decay;
    return a;
}

#endif
