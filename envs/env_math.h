/* env_math.h - sine, cosine, division and rounding for games, the same bits on host and device. (public: used by the
 * game headers) libm and CUDA round the last bit differently, and a cart-pole doubles such a difference every nine
 * steps. These polynomials use only IEEE + and *, so wherever contraction to fused multiply-add is off
 * (envs/meson.build says so for the host, -fmad=false for nvcc) every compiler gives the same result. */
#ifndef ENVS_ENV_MATH_H
#define ENVS_ENV_MATH_H

#include "envs/env.h"

#define ENV_PI 3.14159265358979323846

/* a / b, rounded as IEEE says, for operands and quotients that are 0 or far from the ends of the range of f32. The
 * compiler's division on the device asks first whether they are, and takes a branch that holds up the divisions beside
 * it; these are its own steps for when they are: a reciprocal refined once, a quotient corrected twice. */
ENV_FN float env_div(float a, float b)
{
#ifdef __CUDA_ARCH__
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
    r = fmaf(r, fmaf(-b, r, 1.0f), r);
    float q = a * r;
    q = fmaf(fmaf(-b, q, a), r, q);
    return fmaf(fmaf(-b, q, a), r, q);
#else
    return a / b;
#endif
}

/* The same for a b that the compiler knows. */
ENV_FN float env_div_const(float a, float b)
{
#ifdef __CUDA_ARCH__
    const float r = 1.0f / b;
    float q = a * r;
    q = fmaf(fmaf(-b, q, a), r, q);
    return fmaf(fmaf(-b, q, a), r, q);
#else
    return a / b;
#endif
}

/* Largest whole number <= value, smallest >= value; |value| is small. */
ENV_FN int env_floor(float value)
{
#ifdef __CUDA_ARCH__
    return __float2int_rd(value);
#else
    int whole = (int)value;
    return whole - ((float)whole > value);
#endif
}

ENV_FN int env_ceil(float value)
{
#ifdef __CUDA_ARCH__
    return __float2int_ru(value);
#else
    return -env_floor(-value);
#endif
}

/* |x| <= pi/4 (no range reduction); error below 0.6 units in the last place. */
ENV_FN void env_sincos(double x, double *ret_sin, double *ret_cos)
{
    /* Taylor series up to x^17; the first term left out is below 2^-56 of the result. */
    const double s3 = -1.0 / 6, s5 = 1.0 / 120, s7 = -1.0 / 5040, s9 = 1.0 / 362880, s11 = -1.0 / 39916800;
    const double s13 = 1.0 / 6227020800, s15 = -1.0 / 1307674368000, s17 = 1.0 / 355687428096000;
    const double c4 = 1.0 / 24, c6 = -1.0 / 720, c8 = 1.0 / 40320, c10 = -1.0 / 3628800, c12 = 1.0 / 479001600;
    const double c14 = -1.0 / 87178291200, c16 = 1.0 / 20922789888000;
    double z = x * x, z2 = z * z, z4 = z2 * z2;

    /* Pairs, then pairs of pairs: shorter dependency chains than Horner's rule. */
    double s_low = (s3 + s5 * z) + (s7 + s9 * z) * z2;
    double s_high = (s11 + s13 * z) + (s15 + s17 * z) * z2;
    *ret_sin = x + x * z * (s_low + s_high * z4);

    double c_low = (c4 + c6 * z) + (c8 + c10 * z) * z2;
    double c_high = (c12 + c14 * z) + c16 * z2;
    double half = 0.5 * z, w = 1.0 - half;
    *ret_cos = w + (((1.0 - w) - half) + z2 * (c_low + c_high * z4)); /* 1 - w - half: what w lost by rounding */
}

/* Largest whole number <= value, |value| < 2^62. */
ENV_FN double env_floor_f64(double value)
{
    double whole = (double)(int64_t)value;
    return whole > value ? whole - 1.0 : whole;
}

/* |x| < 1e6: pi/2 in three parts is taken off as often as it fits, the first two parts exactly. */
ENV_FN void env_sincos_any(double x, double *ret_sin, double *ret_cos)
{
    const double part_1 = 0x1.921fb544p+0, part_2 = 0x1.0b4611a6p-34, part_3 = 0x1.3198a2e037073p-69;
    double n = env_floor_f64(x * (2.0 / ENV_PI) + 0.5), sine, cosine;
    int quarter = (int)((int64_t)n & 3);

    env_sincos(((x - n * part_1) - n * part_2) - n * part_3, &sine, &cosine);
    *ret_sin = quarter == 0 ? sine : quarter == 1 ? cosine : quarter == 2 ? -sine : -cosine;
    *ret_cos = quarter == 0 ? cosine : quarter == 1 ? -sine : quarter == 2 ? -cosine : sine;
}

/* NaN becomes `high`. */
ENV_FN double env_clamp(double value, double low, double high)
{
    return value < high ? (value > low ? value : low) : high;
}

#endif
