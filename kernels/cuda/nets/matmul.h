/* matmul.h - one matrix product through cuBLASLt, row-major, and numbers of either activation type. */
#ifndef KERNELS_CUDA_MATMUL_H
#define KERNELS_CUDA_MATMUL_H

#include "kernels/cuda/common.h"

/* c (m, n) = alpha op(a) op(b) + beta add, then + bias (n). op(a) is (m, k), op(b) is (k, n); a transposed one lies in
 * memory as (k, m) or (n, k). a and b are bf16 or f32 together, sums f32 (no TF32), c of its own type, add and bias of
 * c's. A batch has `batch` of each matrix, `stride` numbers from one to the next. */
struct cuda_matmul {
    void *c;
    const void *a, *b, *bias; /* bias NULL: none */
    size_t m, n, k;
    bool a_t, b_t;
    bool in_bf16, out_bf16;
    float alpha; /* 0: 1 */
    float beta;
    const void *add; /* (m, n); NULL: c */
    size_t batch, stride; /* batch 0: one */
};
void cuda_matmul_run(struct kern *k, const struct cuda_matmul *p);

#endif
