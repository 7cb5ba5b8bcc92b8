/* heads.h - the policy's last layer in bf16 on tensor cores, forward (heads_mma.cu); the rest is in heads.cu. */
#ifndef KERNELS_CUDA_HEADS_H
#define KERNELS_CUDA_HEADS_H

#include "kernels/cuda/number.h"

/* False: nothing was done, the shape is not one of its own. */
bool heads_forward_mma(struct kern *k, const struct kern_heads_layer *l);

#endif
