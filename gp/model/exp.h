/* exp.h - e^x for loops over rows: a plain function that a compiler turns into vectors, where libm's is a call for each
 * row. Half of a proposal's time was exponentials. */
#pragma once

#include "base/base.h"

#define EXP_LEAST (-700.0) /* below it e^x counts as 0: nothing adds up with it, and denormal numbers are slow */

/* e^x for x <= 0, within 2 units of the last place: e^x = 2^n e^r with |r| <= ln(2) / 2, and e^r by its series. */
static inline double exp_of_negative(double x)
{
    const double shift = 0x1.8p52; /* added, it rounds to a whole number, which the lowest bits then hold */
    double t = x * 0x1.71547652b82fep0 + shift, n = t - shift; /* 1 / ln 2 */
    double r = x - n * 0x1.62e42fefa0000p-1 - n * 0x1.cf79abc9e3b3ap-40; /* ln 2 in two parts */
    double e = 1.0 / 6227020800.0, scale;
    uint64_t bits;
    e = e * r + 1.0 / 479001600.0;
    e = e * r + 1.0 / 39916800.0;
    e = e * r + 1.0 / 3628800.0;
    e = e * r + 1.0 / 362880.0;
    e = e * r + 1.0 / 40320.0;
    e = e * r + 1.0 / 5040.0;
    e = e * r + 1.0 / 720.0;
    e = e * r + 1.0 / 120.0;
    e = e * r + 1.0 / 24.0;
    e = e * r + 1.0 / 6.0;
    e = e * r + 0.5;
    e = e * r + 1.0;
    e = e * r + 1.0;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits << 52) + ((uint64_t)1023 << 52);
    memcpy(&scale, &bits, sizeof scale);
    return x < EXP_LEAST ? 0.0 : e * scale;
}
