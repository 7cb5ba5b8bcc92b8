/* linear.h - what a layer does beside its product, for layers of other kinds (conv.cu): numbers of either
 * activation type, bf16 where is_bf16. */
#ifndef KERNELS_CUDA_LINEAR_H
#define KERNELS_CUDA_LINEAR_H

#include "kernels/cuda/common.h"

/* y (n) = act(y) */
void cuda_layer_act(struct kern *k, void *y, size_t n, enum kern_act act, bool is_bf16);
/* dy (M, N) *= act'(y), db (N) f32 = its column sums (add: adds to db). Uses the workspace. */
void cuda_layer_gradient(struct kern *k, void *dy, const void *y, float *db, size_t M, size_t N, enum kern_act act,
                         bool add, bool is_bf16);

#endif
