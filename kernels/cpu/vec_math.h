/* vec_math.h - exp, log, sigmoid and tanh in f32 without branches or tables, so that a loop over them becomes vector
 * code. Errors against the exact value are within about 2 units in the last place (tests/kernels/test_vec_math.c);
 * infinities, NaN, zero and gradual underflow come out as libm's do, except where a comment says otherwise. */
#pragma once

#include <stdint.h>
#include <string.h>

#define VEC_FN static inline __attribute__((always_inline))

VEC_FN float vec_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

VEC_FN uint32_t vec_to_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* e^x = 2^n e^r with |r| <= ln(2)/2: returns e^r, *ret_t holds n in its low bits (see VEC_MAGIC). The polynomial meets
 * (e^r - 1 - r) / r^2 at Chebyshev nodes, off by 1e-8. */
#define VEC_MAGIC 12582912.0f /* 1.5 * 2^23: adding it rounds to a whole number, kept in the low bits */
VEC_FN float vec_exp_parts(float x, float *ret_t)
{
    float t = x * 1.44269504f + VEC_MAGIC;
    float n = t - VEC_MAGIC;
    float r = (x - n * 0.693145752f) - n * 1.42860677e-6f; /* ln 2 in two parts, the first exact when times n */
    float p = 0.00139262131f;
    p = p * r + 0.00836320315f;
    p = p * r + 0.0416665561f;
    p = p * r + 0.166665763f;
    p = p * r + 0.5f;
    p = (p * r) * r + r;
    *ret_t = t;
    return p + 1.0f;
}

/* 2^n is applied in two halves, so that the ends of the range round once. */
VEC_FN float vec_exp(float x)
{
    float t, p;
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    p = vec_exp_parts(x, &t);
    int32_t e = (int32_t)(vec_to_bits(t) - vec_to_bits(VEC_MAGIC));
    int32_t half = e >> 1;
    return p * vec_from_bits((uint32_t)(half + 127) << 23) * vec_from_bits((uint32_t)(e - half + 127) << 23);
}

/* For x in [-87, 87], where neither e^x nor its inverse is subnormal (slow) or infinite; beyond, the value at that
 * end. */
VEC_FN float vec_exp_inner(float x)
{
    float t, p;
    x = x > 87.0f ? 87.0f : x;
    x = x < -87.0f ? -87.0f : x;
    p = vec_exp_parts(x, &t);
    return p * vec_from_bits((vec_to_bits(t) << 23) + 0x3f800000u); /* n is all that the shift leaves of t */
}

/* log x = e ln 2 + log m with m in [sqrt(1/2), sqrt(2)); log m by the odd series in s = (m - 1) / (m + 1). */
VEC_FN float vec_log(float x)
{
    int is_tiny = x < 1.17549435e-38f;
    uint32_t bits = vec_to_bits(is_tiny ? x * 16777216.0f : x);
    uint32_t shifted = bits - 0x3f3504f3u; /* sqrt(1/2): the exponent steps there */
    int32_t e = (int32_t)shifted >> 23;
    float m = vec_from_bits((shifted & 0x007fffffu) + 0x3f3504f3u);
    float f = m - 1.0f;
    float s = f / (2.0f + f);
    float z = s * s;
    float p = 0.24279078841f;
    p = p * z + 0.28498786688f;
    p = p * z + 0.40000972152f;
    p = p * z + 0.66666662693f;
    float half = 0.5f * f * f;
    float ef = (float)e - (is_tiny ? 24.0f : 0.0f);
    float y = ef * 0.693145752f + (f - (half - (s * (half + p * z) + ef * 1.42860677e-6f)));
    y = x == 0.0f ? -__builtin_inff() : y;
    y = x < 0.0f ? __builtin_nanf("") : y;
    y = x == __builtin_inff() ? x : y;
    return x != x ? x : y;
}

/* 1 / (1 + e^-x); below -87 it stays at 1.6e-38, the value there. */
VEC_FN float vec_sigmoid(float x)
{
    return 1.0f / (1.0f + vec_exp_inner(-x));
}

/* Odd polynomial near zero, 1 - 2 / (e^2|x| + 1) elsewhere. */
VEC_FN float vec_tanh(float x)
{
    float a = __builtin_fabsf(x);
    float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = (p * z) * a + a;
    float far = 1.0f - 2.0f / (vec_exp_inner(2.0f * a) + 1.0f);
    float y = __builtin_copysignf(a < 0.625f ? near : far, x);
    return x != x ? x : y;
}
