/* test_pool.c - every index is done exactly once by the worker that pool_part names, however small the job. */
#include "base/os/pool.h"

#include <stdatomic.h>

#include "tests/unit_test.h"

#define N_MAX 1000
#define WORKERS_MAX 9

struct job {
    size_t n, grain, n_workers;
    size_t owner[N_MAX]; /* worker + 1 that did the index */
    atomic_int calls[WORKERS_MAX]; /* of each worker */
    atomic_int wrong;
};

static void mark(void *ctx, size_t worker, size_t from, size_t to)
{
    struct job *job = ctx;
    size_t want_from, want_to;

    pool_part(job->n, job->grain, worker, job->n_workers, &want_from, &want_to);
    if (from != want_from || to != want_to)
        atomic_fetch_add(&job->wrong, 1);
    atomic_fetch_add(&job->calls[worker], 1);
    for (size_t i = from; i < to; i++) {
        if (job->owner[i] != 0)
            atomic_fetch_add(&job->wrong, 1);
        job->owner[i] = worker + 1;
    }
}

static void run_and_check(struct pool *pool, size_t n, size_t grain)
{
    static struct job job;

    memset(&job, 0, sizeof job);
    job.n = n;
    job.grain = grain;
    job.n_workers = pool_size(pool);
    pool_run(pool, n, grain, mark, &job);
    assert_int_equal(atomic_load(&job.wrong), 0);
    for (size_t i = 0; i < n; i++) {
        assert_int_not_equal(job.owner[i], 0);
        if (i > 0 && i % grain != 0)
            assert_int_equal(job.owner[i], job.owner[i - 1]); /* parts are cut at the grain only */
        if (i > 0)
            assert_true(job.owner[i] >= job.owner[i - 1]);
    }
    for (size_t w = 0; w < job.n_workers; w++)
        assert_int_equal(atomic_load(&job.calls[w]), 1);
}

TEST(covers_every_index_once)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 999, 1000}, grains[] = {1, 2, 16, 64, 5000};

    for (size_t threads = 1; threads <= WORKERS_MAX; threads++) {
        struct pool *pool;
        assert_int_equal(pool_create(&pool, threads, NULL), ST_OK);
        assert_int_equal(pool_size(pool), threads);
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t g = 0; g < COUNT(grains); g++)
                run_and_check(pool, sizes[s], grains[g]);
        pool_destroy(pool);
    }
}

TEST(no_pool_runs_in_the_caller)
{
    assert_int_equal(pool_size(NULL), 1);
    run_and_check(NULL, 10, 4);
    run_and_check(NULL, 0, 1);
    pool_destroy(NULL);
}

TEST(parts_are_even)
{
    for (size_t n = 0; n < 200; n++) {
        for (size_t workers = 1; workers < 12; workers++) {
            size_t next = 0, smallest = SIZE_MAX, largest = 0;
            for (size_t w = 0; w < workers; w++) {
                size_t from, to;
                pool_part(n, 1, w, workers, &from, &to);
                assert_int_equal(from, next);
                next = to;
                smallest = to - from < smallest ? to - from : smallest;
                largest = to - from > largest ? to - from : largest;
            }
            assert_int_equal(next, n);
            assert_true(largest - smallest <= 1);
        }
    }
}

struct sums {
    uint64_t by_worker[WORKERS_MAX][8]; /* a cache line each */
    uint64_t base;
};

static void add_range(void *ctx, size_t worker, size_t from, size_t to)
{
    struct sums *sums = ctx;

    for (size_t i = from; i < to; i++)
        sums->by_worker[worker][0] += sums->base + i;
}

/* A job's writes are seen by the caller afterwards, and what the caller wrote before by the workers. */
TEST(many_short_jobs_in_a_row)
{
    static const size_t threads[] = {2, 3, 8};

    for (size_t t = 0; t < COUNT(threads); t++) {
        struct sums sums = {0};
        struct pool *pool;
        uint64_t want = 0, got = 0;
        assert_int_equal(pool_create(&pool, threads[t], NULL), ST_OK);
        for (uint64_t job = 0; job < 5000; job++) {
            sums.base = job;
            pool_run(pool, 5, 1, add_range, &sums);
            want += 5 * job + 10;
        }
        for (size_t w = 0; w < threads[t]; w++)
            got += sums.by_worker[w][0];
        assert_true(got == want);
        pool_destroy(pool);
    }
}

/* Between these jobs the helpers, and in them the caller, have long gone to sleep. */
static void nap(void *ctx, size_t worker, size_t from, size_t to)
{
    (void)ctx;
    (void)from;
    (void)to;
    if (worker != 0)
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

TEST(wakes_sleepers_on_both_sides)
{
    struct pool *pool;

    assert_int_equal(pool_create(&pool, 3, NULL), ST_OK);
    for (int i = 0; i < 10; i++) {
        pool_run(pool, 3, 1, nap, NULL);
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        run_and_check(pool, 100, 1);
    }
    pool_destroy(pool);
}

struct hands {
    pthread_t caller, who[WORKERS_MAX]; /* who, other than the caller, did the part of each worker; 0: nobody yet */
    atomic_int n_strangers; /* parts that a third thread did */
};

static void note_hand(void *ctx, size_t worker, size_t from, size_t to)
{
    struct hands *h = ctx;
    pthread_t self = pthread_self();

    (void)from, (void)to;
    if (pthread_equal(self, h->caller))
        return;
    if (h->who[worker] == 0)
        h->who[worker] = self;
    if (!pthread_equal(self, h->who[worker]))
        atomic_fetch_add(&h->n_strangers, 1);
}

/* What is in a part's scratch is one thread's at a time: its helper's, or the caller's, who takes what nobody has
 * begun. */
TEST(a_part_is_its_helpers_or_the_callers)
{
    struct hands h = {.caller = pthread_self()};
    struct timespec pause = {.tv_nsec = 1000000};
    struct pool *pool;

    assert_int_equal(pool_create(&pool, WORKERS_MAX, NULL), ST_OK);
    for (int i = 0; i < 3000; i++) {
        pool_run(pool, N_MAX, 1, note_hand, &h);
        if (i % 100 == 0) /* they sleep now, and the next job meets them asleep */
            nanosleep(&pause, NULL);
    }
    run_and_check(pool, N_MAX, 7);
    pool_destroy(pool);
    assert_int_equal(atomic_load(&h.n_strangers), 0);
}

TEST(starts_and_stops_without_work)
{
    struct pool *pool;

    for (size_t i = 0; i < 50; i++) {
        assert_int_equal(pool_create(&pool, i % 5, NULL), ST_OK); /* 0: one per core */
        assert_true(pool_size(pool) >= 1);
        pool_destroy(pool);
    }
    assert_int_equal(pool_create(&pool, 1000000, NULL), ST_LIMIT);
    assert_null(pool);
}

TEST_PROGRAM("pool")
