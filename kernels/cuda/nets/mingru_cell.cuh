/* mingru_cell.cuh - one unit of the MinGRU at one step, and its gradient (private to kernels/cuda).
 *   z = sigmoid(g), c = a + 1/2 or sigmoid(a), h = hp + z (c - hp), s = sigmoid(p), out = x + s (h - x)
 * hp is the state before the step: 0 where reset is 1. */
#ifndef KERNELS_CUDA_MINGRU_CELL_CUH
#define KERNELS_CUDA_MINGRU_CELL_CUH

#include "kernels/cuda/gates.cuh"

/* The cell: h is carried from the state before the step; returns out. */
static __device__ __forceinline__ float mingru_cell(float a, float g, float p, float x, float *h)
{
    float low = a, z = g, s = p;

    num_sigmoids(&low, &z, &s);
    *h += z * ((a >= 0.0f ? a + 0.5f : low) - *h);
    return x + s * (*h - x);
}

struct mingru_gates {
    float a, g, p;
};

/* The gradient of the gates. h, hp: the states after and before the step. *carry: the gradient of h from later steps,
 * then that of hp. *ret_highway: the part of the gradient of x that does not go through the gates. */
static __device__ __forceinline__ mingru_gates mingru_cell_gradient(const mingru_gates &of, float x, float dout,
                                                                    float h, float hp, bool reset, float *carry,
                                                                    float *ret_highway)
{
    float prev = reset ? 0.0f : hp;
    float z = of.g, s = of.p, low = of.a;
    num_sigmoids(&low, &z, &s);
    float c = of.a >= 0.0f ? of.a + 0.5f : low;
    float slope = of.a >= 0.0f ? 1.0f : low * (1.0f - low);
    float dh = dout * s + *carry;

    *ret_highway = dout * (1.0f - s);
    *carry = reset ? 0.0f : dh * (1.0f - z);
    return {dh * z * slope, dh * (c - prev) * z * (1.0f - z), dout * (h - x) * s * (1.0f - s)};
}

#endif
