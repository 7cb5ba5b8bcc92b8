/* heads.h - the policy's last layer in bf16 on tensor cores; what it does not take is left to heads.cu. */
#ifndef KERNELS_CUDA_HEADS_H
#define KERNELS_CUDA_HEADS_H

#include "kernels/cuda/number.h"

/* False: nothing was done, the shape is not one of theirs. */
bool heads_forward_mma(struct kern *k, float *out, const bf16 *x, const float *w, const float *b, size_t M, size_t O,
                       size_t H);
bool heads_backward_mma(struct kern *k, bf16 *dx, float *dw, float *db, const float *dout, const bf16 *x,
                        const float *w, size_t M, size_t O, size_t H, bool add_dw);

/* dw (n) and db (n_db) = the rows of partials (rows, n + n_db) added up in a fixed order; or are added to. */
void heads_add_partials(struct kern *k, float *dw, float *db, const float *partials, size_t rows, size_t n, size_t n_db,
                        bool add);

#endif
