/* test_rng.c - Philox against Random123's published vectors, and streams that are what rng.h promises. */
#include "base/rng.h"

#include "tests/unit_test.h"

#define DRAWS 20000

TEST(known_answers)
{
    static const struct {
        uint64_t key, lo, hi;
        uint32_t out[4];
    } vectors[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    for (size_t i = 0; i < COUNT(vectors); i++) {
        struct rng_block b = rng_philox(vectors[i].key, vectors[i].lo, vectors[i].hi);
        for (int j = 0; j < 4; j++)
            assert_int_equal(b.v[j], vectors[i].out[j]);
    }
}

TEST(a_stream_is_its_key_and_counter)
{
    struct rng a = rng_seed(7), saved;
    uint64_t first[8];

    for (int i = 0; i < 3; i++)
        rng_u32(&a);
    saved = a;
    for (int i = 0; i < 8; i++)
        first[i] = rng_u64(&a);
    for (int i = 0; i < 8; i++)
        assert_true(rng_u64(&saved) == first[i]);
    assert_true(saved.key == a.key && saved.counter == a.counter);
}

TEST(uniform_moments)
{
    struct rng r = rng_seed(1);
    double sum = 0.0, squares = 0.0;

    for (int i = 0; i < DRAWS; i++) {
        double u = i % 2 ? rng_f64(&r) : (double)rng_f32(&r);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        squares += u * u;
    }
    /* five standard errors of the mean and of the mean square */
    assert_true(fabs(sum / DRAWS - 0.5) < 5.0 * sqrt(1.0 / 12.0 / DRAWS));
    assert_true(fabs(squares / DRAWS - 1.0 / 3.0) < 5.0 * sqrt(4.0 / 45.0 / DRAWS));
}

TEST(below_hits_every_value_evenly)
{
    enum { SIDES = 7 };
    struct rng r = rng_seed(2);
    int count[SIDES] = {0};
    double chi2 = 0.0;

    for (int i = 0; i < DRAWS; i++) {
        uint32_t v = rng_below(&r, SIDES);
        assert_true(v < SIDES);
        count[v]++;
    }
    for (int i = 0; i < SIDES; i++) {
        double off = count[i] - (double)DRAWS / SIDES;
        chi2 += off * off / ((double)DRAWS / SIDES);
    }
    assert_true(chi2 < 27.9); /* 6 degrees of freedom, p = 1e-4 */
    assert_int_equal(rng_below(&r, 1), 0);
}

/* Correlation of two streams over DRAWS draws; about N(0, 1 / DRAWS) when independent. */
static double correlation(struct rng a, struct rng b)
{
    double sum = 0.0;

    for (int i = 0; i < DRAWS; i++)
        sum += (rng_f64(&a) - 0.5) * (rng_f64(&b) - 0.5);
    return sum / DRAWS * 12.0;
}

TEST(children_are_independent)
{
    struct rng parent = rng_seed(3);
    struct rng zero = rng_split(parent, 0), one = rng_split(parent, 1), again = rng_split(parent, 1);
    double limit = 5.0 / sqrt(DRAWS);

    assert_true(one.key == again.key && one.counter == again.counter);
    assert_int_equal(parent.counter, 0); /* a split draws nothing */
    assert_true(fabs(correlation(zero, one)) < limit);
    assert_true(fabs(correlation(parent, one)) < limit);
    assert_true(fabs(correlation(rng_seed(4), rng_seed(5))) < limit);
    assert_true(fabs(correlation(rng_split(zero, 1), rng_split(one, 0))) < limit);
    assert_true(fabs(correlation(one, again)) > 0.9); /* the measure sees equal streams */
}

TEST_PROGRAM("rng")
