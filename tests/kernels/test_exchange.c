/* test_exchange.c - ranks on the CPU give each other sums and rows; mean and deviation of parts; whoever waits is let
 * go. */
#include "tests/kernels/kern_test.h"

#include "tests/check.h"

#define RANKS 3

struct rank {
    pthread_t thread;
    struct kern_ranks *ranks;
    struct kern *kern;
    size_t index, n, rounds;
    float *x; /* (n) */
    int32_t rows[RANKS][5];
    bool exchanges;
};

static void *rank_main(void *arg)
{
    struct rank *r = arg;
    OK(kern_ranks_join(r->kern, r->ranks, r->index, err));
    for (size_t round = 0; round < r->rounds && r->exchanges; round++)
        kern_ops(r->kern)->exchange(
            r->kern, &(struct kern_exchange){.sum = r->x, .n = r->n, .rows = r->rows, .row_bytes = sizeof r->rows[0]});
    return NULL;
}

static void ranks_begin(struct rank *r, size_t n, size_t rounds)
{
    struct rng rng = rng_seed(n);
    struct kern_ranks *ranks;
    OK(kern_ranks_create(&ranks, RANKS, NULL, err));
    for (size_t i = 0; i < RANKS; i++) {
        r[i] = (struct rank){.ranks = ranks, .kern = test_kern(1), .index = i, .n = n, .rounds = rounds};
        r[i].x = test_normal(&rng, n, 1.0f);
        r[i].exchanges = true;
        memset(r[i].rows, 0xee, sizeof r[i].rows);
        for (int32_t j = 0; j < 5; j++)
            r[i].rows[i][j] = (int32_t)i * 100 + j;
    }
}

static void ranks_run(struct rank *r)
{
    for (size_t i = 0; i < RANKS; i++)
        assert_int_equal(pthread_create(&r[i].thread, NULL, rank_main, &r[i]), 0);
}

static void ranks_join(struct rank *r)
{
    for (size_t i = 0; i < RANKS; i++)
        pthread_join(r[i].thread, NULL);
}

static void ranks_end(struct rank *r)
{
    for (size_t i = 0; i < RANKS; i++) {
        kern_ranks_leave(r[i].kern);
        kern_close(r[i].kern);
    }
    kern_ranks_destroy(r[0].ranks);
}

/* Sums in the order of the ranks, to the bit, and everyone's rows; sizes that the ranks cannot share evenly, and
 * none. */
TEST(sums_and_rows)
{
    static const size_t sizes[] = {1, 2, 3, 1000, 5003};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        size_t n = sizes[s];
        struct rank r[RANKS];
        float *want = NEW(float, n);
        ranks_begin(r, n, 1);
        for (size_t i = 0; i < n; i++)
            want[i] = (r[0].x[i] + r[1].x[i]) + r[2].x[i];
        ranks_run(r);
        ranks_join(r);
        for (size_t i = 0; i < RANKS; i++) {
            assert_memory_equal(r[i].x, want, n * sizeof *want);
            for (size_t j = 0; j < RANKS * 5; j++)
                assert_int_equal(r[i].rows[j / 5][j % 5], j / 5 * 100 + j % 5);
        }
        ranks_end(r);
    }
}

/* Many rounds: a rank that is ahead does not overtake. Each round multiplies by the number of ranks. */
TEST(many_rounds)
{
    struct rank r[RANKS];
    double want = 3.0;
    ranks_begin(r, 2, 20);
    for (size_t i = 0; i < RANKS; i++)
        r[i].x[0] = 1.0f, r[i].x[1] = (float)i;
    ranks_run(r);
    ranks_join(r);
    for (size_t round = 1; round < 20; round++)
        want *= 3.0;
    for (size_t i = 0; i < RANKS; i++)
        assert_true(r[i].x[0] == (float)want && r[i].x[1] == (float)want);
    ranks_end(r);
}

/* One rank never arrives: the others wait, which shows, until they are let go. */
TEST(waiting_ranks_are_let_go)
{
    struct rank r[RANKS];
    ranks_begin(r, 10, 1);
    r[1].exchanges = false;
    ranks_run(r);
    while (!(kern_ranks_waited_s(r[0].ranks, 0) > 0.01 && kern_ranks_waited_s(r[0].ranks, 2) > 0.01))
        usleep(1000);
    assert_true(kern_ranks_waited_s(r[0].ranks, 1) == 0.0);
    kern_ranks_abort(r[0].ranks);
    ranks_join(r);
    ranks_end(r);
}

/* Of sets of one size, by each one's mean and deviation: those of all their numbers. */
TEST(mean_and_deviation_of_parts)
{
    enum { PARTS = 4, N = 100 };
    struct rng rng = rng_seed(8);
    float *x = test_normal(&rng, PARTS * N, 2.0f), parts[2 * PARTS], got[2];
    KERN *k = test_kern(1);
    long double mean = 0, squares = 0;
    for (size_t i = 0; i < PARTS * N; i++) {
        x[i] += (float)(i / N) * 3.0f;
        mean += (long double)x[i] / (PARTS * N);
    }
    for (size_t i = 0; i < PARTS * N; i++)
        squares += (x[i] - mean) * (x[i] - mean);
    for (size_t p = 0; p < PARTS; p++)
        kern_ops(k)->mean_std(k, parts + 2 * p, x + p * N, N);
    kern_ops(k)->mean_std_join(k, got, parts, PARTS);
    check_number("mean", (double)got[0], (double)mean, 1e-6);
    check_number("deviation", (double)got[1], (double)sqrtl(squares / (PARTS * N)), 1e-6);
}

TEST_PROGRAM("exchange")
