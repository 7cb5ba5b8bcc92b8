/* mingru_layer.h - a small MinGRU layer over a sequence in bf16, and the product of its gates, in one kernel each way. */
#ifndef KERNELS_CUDA_MINGRU_LAYER_H
#define KERNELS_CUDA_MINGRU_LAYER_H

#include "kernels/cuda/common.h"

/* Has it a product, and is it such a layer? Its shape decides, not its number of segments (products.h). */
bool mingru_layer_fits(const struct kern_mingru *l);
/* All of mingru_forward and mingru_backward. */
void mingru_layer_forward(struct kern *k, const struct kern_mingru *l);
void mingru_layer_backward(struct kern *k, const struct kern_mingru *l);

#endif
