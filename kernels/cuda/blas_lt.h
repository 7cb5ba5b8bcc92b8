/* blas_lt.h - cuBLASLt, opened at run time. It is a library of half a gigabyte, whose relocation alone takes 50 ms and
 * whose first products 0.2 s: small layers do without it (nets/products.h), and where others are expected a thread
 * opens it while the device is opened. A machine without the library can do all else. blas_lt.Matmul(...) is
 * cublasLtMatmul. */
#ifndef KERNELS_CUDA_BLAS_LT_H
#define KERNELS_CUDA_BLAS_LT_H

#include <cublasLt.h>

#include "kernels/cuda/common.h"

extern "C" {
#include "base/os/late.h"
}

#define BLAS_LT_EACH(F)                                                                                                \
    F(cublasLt, Create)                                                                                                \
    F(cublasLt, GetStatusString)                                                                                       \
    F(cublasLt, GetVersion)                                                                                            \
    F(cublasLt, Matmul)                                                                                                \
    F(cublasLt, MatmulAlgoGetHeuristic)                                                                                \
    F(cublasLt, MatmulDescInit_internal)                                                                               \
    F(cublasLt, MatmulDescSetAttribute)                                                                                \
    F(cublasLt, MatmulPreferenceInit_internal)                                                                         \
    F(cublasLt, MatmulPreferenceSetAttribute)                                                                          \
    F(cublasLt, MatrixLayoutInit_internal)                                                                             \
    F(cublasLt, MatrixLayoutSetAttribute)

struct blas_lt {
    BLAS_LT_EACH(LATE_CALL)
};

extern struct blas_lt blas_lt;

enum status blas_lt_open(struct error *err) MUST_USE;
/* The device's handle, made when it is first asked for, which opens cuBLASLt or waits for that; NULL: a failure, which
 * is kept. */
cublasLtHandle_t blas_lt_of(struct kern *k);

#endif
