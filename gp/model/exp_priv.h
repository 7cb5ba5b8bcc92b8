/* exp_priv.h - an exp that vectorises, because the C library's does not. Private to gp/. */
#ifndef GP_EXP_PRIV_H
#define GP_EXP_PRIV_H

#include <stdint.h>
#include <string.h>

/* exp(x) for x <= 0 to about 2 ulp: x = k ln2 + r, |r| <= ln2 / 2, a Taylor polynomial in r, and 2^k by its bits.
 * Below -700 it stays at exp(-700). */
static inline double exp_nonpositive(double x)
{
    const double round_bits = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to a whole number in the low bits */
    x = x < -700.0 ? -700.0 : x;
    double shifted = x * 1.4426950408889634 + round_bits;
    double k = shifted - round_bits;
    double r = (x - k * 0x1.62e42fefa3800p-1) - k * 0x1.ef35793c76730p-45;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    double power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 52) + ((uint64_t)1023 << 52);
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

#endif
