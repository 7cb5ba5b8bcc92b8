/* widen.h - the part of a first layer's input that its product takes at a time (struct kern_source). */
#ifndef KERNELS_CUDA_WIDEN_H
#define KERNELS_CUDA_WIDEN_H

#include "kernels/cuda/common.h"

/* Rows of n numbers that are widened at a time; SIZE_MAX where x is taken as it is. Fails where not even one fits. */
size_t cuda_wide_rows(struct kern *k, const struct kern_source *source, size_t n, bool is_bf16);
/* Rows [at, at + rows) of x as (rows, n) numbers: in source->wide, or where they lie. */
const void *cuda_widen(struct kern *k, const struct kern_source *source, const void *x, size_t at, size_t rows,
                       size_t n, bool is_bf16);

#endif
