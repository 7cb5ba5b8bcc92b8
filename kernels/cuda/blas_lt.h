/* blas_lt.h - cuBLASLt, opened at run time. It is a library of half a gigabyte, whose relocation alone takes 50 ms and
 * whose first products 0.2 s: small layers do without it (nets/products.h), and where others are expected a thread opens
 * it while the device is opened. A machine without the library can do all else. lt->Matmul(...) is cublasLtMatmul. */
#ifndef KERNELS_CUDA_BLAS_LT_H
#define KERNELS_CUDA_BLAS_LT_H

#include <cublasLt.h>

#include "kernels/cuda/common.h"

#define BLAS_LT_EACH(F)                                                                                                \
    F(Create)                                                                                                          \
    F(Destroy)                                                                                                         \
    F(GetStatusString)                                                                                                 \
    F(GetVersion)                                                                                                      \
    F(Matmul)                                                                                                          \
    F(MatmulAlgoGetHeuristic)                                                                                          \
    F(MatmulDescInit_internal)                                                                                         \
    F(MatmulDescSetAttribute)                                                                                          \
    F(MatmulPreferenceInit_internal)                                                                                   \
    F(MatmulPreferenceSetAttribute)                                                                                    \
    F(MatrixLayoutInit_internal)                                                                                       \
    F(MatrixLayoutSetAttribute)

struct blas_lt {
    cublasLtHandle_t handle;
#define BLAS_LT_FIELD(name) __typeof__(&cublasLt##name) name;
    BLAS_LT_EACH(BLAS_LT_FIELD)
#undef BLAS_LT_FIELD
};

#ifdef __cplusplus
extern "C" {
#endif
/* The library's functions, without a handle; false: there is no such library, why has the reason. It stays open. */
bool blas_lt_load(struct blas_lt *lt, char *why, size_t size);
#ifdef __cplusplus
}
#endif
#endif
