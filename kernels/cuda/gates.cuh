/* gates.cuh - the sigmoids of a recurrent cell's gates (private to kernels/cuda; part of what `trawl env build`
 * compiles for a GPU, so it includes nothing of the backend's). */
#ifndef KERNELS_CUDA_GATES_CUH
#define KERNELS_CUDA_GATES_CUH

#include "kernels/cuda/ptx.cuh"

/* 1 + e^-x, where e^-x stops at 2^40; NaN stays NaN. */
static __device__ __forceinline__ float num_sigmoid_inverse(float x)
{
    return 1.0f + ptx_exp2(ptx_min_40(-1.44269504f * x));
}

/* The sigmoids 1 / (1 + e^-x) of a cell's three gates. They share one reciprocal, because the special function unit is
 * what bounds a cell; the end at 2^40 keeps the product of three finite, and the sigmoid there is 9.1e-13. Off by at
 * most 5e-7 (test_cuda_sigmoid.c). */
static __device__ __forceinline__ void num_sigmoids(float *a, float *b, float *c)
{
    float ea = num_sigmoid_inverse(*a), eb = num_sigmoid_inverse(*b), ec = num_sigmoid_inverse(*c);
    float bc = eb * ec, r = ptx_reciprocal(ea * bc), ra = r * ea;

    *a = r * bc;
    *b = ra * ec;
    *c = ra * eb;
}

#endif
