/* products.h - the products of a small linear layer in bf16 on tensor cores, without a library: a training whose layers
 * are all small never opens cuBLASLt, whose first products take 0.2 s. Forward and the gradient of the input are in
 * products.cu, the gradient of the weights in products_gradient.cu. */
#ifndef KERNELS_CUDA_PRODUCTS_H
#define KERNELS_CUDA_PRODUCTS_H

#include "kernels/cuda/common.h"

#define PRODUCTS_K_MAX KERN_SMALL_LAYER
#define PRODUCTS_N_MAX 384

/* Is it such a layer? Its shape decides, not its number of rows, and every buffer of a training is aligned: a trial's
 * products are the same ones in a sweep, a rerun and alone. The order of the sums in dw and db follows from the card's
 * number of multiprocessors: bytes are those of one model of card. */
bool products_fit(const struct kern_linear *l);
/* Rows [at, at + rows) of y, with bias and activation, from x, which is those rows (rows, K) bf16. */
void products_forward(struct kern *k, const struct kern_linear *l, const void *x, size_t at, size_t rows);
/* Those rows of dy are multiplied by act'(y), in place; dw and db are their sums (add: are added to). */
void products_weight_gradient(struct kern *k, const struct kern_linear *l, const void *x, size_t at, size_t rows,
                              bool add);
/* dw (N, K) and db (N; NULL: none) = the sums over the stripes of partials: (n_stripes, n_rows, n_cols) for dw, padded
 * to whole blocks, then (n_stripes, n_rows) for db. */
void products_add_stripes(struct kern *k, float *dw, float *db, const float *partials, unsigned n_stripes, unsigned N,
                          unsigned K, unsigned n_rows, unsigned n_cols, bool add);
/* dx, after that. */
void products_input_gradient(struct kern *k, const struct kern_linear *l);

#endif
