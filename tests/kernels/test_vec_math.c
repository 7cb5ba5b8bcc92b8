/* test_vec_math.c - the vector functions against libm in f64, over every kind of f32. */
#include "tests/kernels/kern_test.h"

#include "kernels/cpu/vec_math.h"

#define STRIDE 1013u /* a prime: all exponents, mantissas of all kinds */

/* Error in units of the last place of the f32 nearest to want. */
static double ulps(float got, double want)
{
    float near = (float)want;
    if (isnan(want) || isinf(near))
        return isnan(want) ? (isnan(got) ? 0.0 : INFINITY) : (got == near ? 0.0 : INFINITY);
    double unit = fabs(near) < 0x1p-126f ? 0x1p-149 : exp2(floor(log2(fabs((double)near))) - 23.0);
    return fabs((double)got - want) / unit;
}

typedef float vec_fn(float x);
typedef double ref_fn(double x);

static float run_exp(float x)
{
    return vec_exp(x);
}
static float run_log(float x)
{
    return vec_log(x);
}
static float run_sigmoid(float x)
{
    return vec_sigmoid(x);
}
static float run_tanh(float x)
{
    return vec_tanh(x);
}

static void sweep(const char *name, vec_fn *fn, ref_fn *ref, double allowed, float from)
{
    double worst = 0.0;
    float at = 0.0f;
    for (uint64_t bits = 0; bits < (1ull << 32); bits += STRIDE) {
        float x = vec_from_bits((uint32_t)bits);
        if (x < from)
            continue;
        double e = ulps(fn(x), ref((double)x));
        if (e > worst) {
            worst = e;
            at = x;
        }
    }
    if (worst > allowed)
        fail_msg("%s(%.9g) is off by %.3g ulp, allowed %.3g", name, (double)at, worst, allowed);
}

TEST(exp_is_exact_to_two_ulp)
{
    sweep("exp", run_exp, exp, 1.6, -INFINITY);
}

TEST(log_is_exact_to_two_ulp)
{
    sweep("log", run_log, log, 2.0, -INFINITY);
}

TEST(sigmoid_is_exact_to_three_ulp)
{
    sweep("sigmoid", run_sigmoid, sigmoid_f64, 2.8, -87.0f);
    for (float x = -87.0f; x > -1e30f; x *= 1.01f) /* below the normal range only the size counts */
        assert_true(run_sigmoid(x) >= 0.0f && run_sigmoid(x) <= 2e-38f);
}

TEST(tanh_is_exact_to_two_ulp)
{
    sweep("tanh", run_tanh, tanh, 2.2, -INFINITY);
}

TEST(extremes)
{
    assert_true(run_exp(INFINITY) == INFINITY && run_exp(-INFINITY) == 0.0f && run_exp(0.0f) == 1.0f);
    assert_true(run_exp(88.72f) < INFINITY && run_exp(88.73f) == INFINITY && run_exp(-103.0f) > 0.0f);
    assert_true(isnan(run_exp(NAN)) && isnan(run_log(NAN)) && isnan(run_sigmoid(NAN)) && isnan(run_tanh(NAN)));
    assert_true(run_log(0.0f) == -INFINITY && run_log(-0.0f) == -INFINITY && run_log(INFINITY) == INFINITY);
    assert_true(isnan(run_log(-1.0f)) && isnan(run_log(-INFINITY)) && run_log(1.0f) == 0.0f);
    assert_true(run_sigmoid(INFINITY) == 1.0f && run_sigmoid(-INFINITY) < 1e-37f && run_sigmoid(0.0f) == 0.5f);
    assert_true(run_tanh(INFINITY) == 1.0f && run_tanh(-INFINITY) == -1.0f);
    assert_true(run_tanh(0.0f) == 0.0f && signbit(run_tanh(-0.0f)));
}

TEST_PROGRAM("vec_math")
