/* pool.c - fork-join with helpers that spin shortly, yield a few times, then sleep on a futex.
 *
 * A job is published by writing its fields and then raising `ticket`; a helper that sees a new ticket owns its part
 * until it lowers `pending`. The caller returns when pending is 0, so the fields never change under a reader.
 * Invariants: (1) pending counts the helpers that have not finished the current job; (2) a sleeper announces itself
 * (sleepers, caller_sleeps) before it sleeps on the word it watches, and whoever changes that word looks at the
 * announcement afterwards, all sequentially consistent: no wake-up is lost; (3) the kernel compares the word once
 * more before it puts anybody to sleep. */
#include "base/pool.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/mem.h"

#define POOL_THREADS_MAX 1024
#define POOL_SPINS 400 /* pauses of 20 to 70 ns: longer than the gap between the jobs of a rollout */
#define POOL_SPINS_STEP 20
#define POOL_SPINS_RETRY 64
#define POOL_YIELDS 8

struct spinner {
    int now, max; /* max 0: never spins */
    unsigned in_vain;
};

struct helper {
    struct pool *pool;
    size_t worker;
    pthread_t thread;
};

struct pool {
    size_t n_workers;
    size_t n_started; /* helpers whose thread exists */
    struct helper *helpers; /* (n_workers - 1), owned */
    int spins_max; /* 0 when there are more workers than cores: spinning would hold up the others */

    /* the job: written by the caller while pending is 0 */
    size_t n, grain;
    pool_fn *fn; /* NULL: helpers leave */
    void *ctx;

    _Alignas(MEM_ALIGN) atomic_uint ticket; /* one more for every job */
    atomic_uint sleepers;
    _Alignas(MEM_ALIGN) atomic_uint pending;
    atomic_uint caller_sleeps;
    struct spinner caller_spins;
};

static void futex_wait(atomic_uint *word, unsigned value)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word, int n)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins no longer than has paid lately: each spin in vain halves it (the cores are wanted elsewhere), each success
 * lengthens it, and now and then it is tried in full again. */
static bool spin(atomic_uint *word, unsigned value, struct spinner *s)
{
    for (int i = 0; i < s->now; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value) {
            s->now = s->now + POOL_SPINS_STEP < s->max ? s->now + POOL_SPINS_STEP : s->max;
            return true;
        }
        relax();
    }
    s->now = ++s->in_vain % POOL_SPINS_RETRY == 0 ? s->max : s->now / 2;
    return false;
}

/* Returns once *word differs from value; sleeper_count tells the other side that a wake-up is needed. */
static void wait_change(atomic_uint *word, unsigned value, atomic_uint *sleeper_count, struct spinner *s)
{
    if (spin(word, value, s))
        return;
    for (int i = 0; i < POOL_YIELDS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value)
            return;
        sched_yield();
    }
    atomic_fetch_add(sleeper_count, 1);
    while (atomic_load(word) == value)
        futex_wait(word, value);
    atomic_fetch_sub(sleeper_count, 1);
}

static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    struct pool *pool = helper->pool;
    struct spinner s = {.now = pool->spins_max, .max = pool->spins_max};

    for (unsigned seen = 0;; seen++) {
        size_t from, to;
        wait_change(&pool->ticket, seen, &pool->sleepers, &s);
        if (pool->fn == NULL)
            return NULL;
        pool_part(pool->n, pool->grain, helper->worker, pool->n_workers, &from, &to);
        pool->fn(pool->ctx, helper->worker, from, to);
        if (atomic_fetch_sub(&pool->pending, 1) == 1 && atomic_load(&pool->caller_sleeps) != 0)
            futex_wake(&pool->pending, 1);
    }
}

static void publish(struct pool *pool, size_t n, size_t grain, pool_fn *fn, void *ctx)
{
    pool->n = n;
    pool->grain = grain;
    pool->fn = fn;
    pool->ctx = ctx;
    atomic_store_explicit(&pool->pending, (unsigned)pool->n_started, memory_order_relaxed);
    atomic_fetch_add(&pool->ticket, 1);
    if (atomic_load(&pool->sleepers) != 0)
        futex_wake(&pool->ticket, INT_MAX);
}

/* Signals belong to the program's own threads: helpers start with all of them blocked. */
static enum status start_helpers(struct pool *pool, struct error *err)
{
    sigset_t all, old;
    int rc = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (rc == 0 && pool->n_started + 1 < pool->n_workers) {
        struct helper *helper = &pool->helpers[pool->n_started];
        helper->pool = pool;
        helper->worker = pool->n_started + 1;
        rc = pthread_create(&helper->thread, NULL, helper_main, helper);
        if (rc == 0) {
            (void)pthread_setname_np(helper->thread, "trawl-pool");
            pool->n_started++;
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc != 0)
        return FAIL(err, ST_NOMEM, "cannot start thread %zu of %zu: %s; use fewer threads", pool->n_started + 2,
                    pool->n_workers, strerror(rc));
    return ST_OK;
}

enum status pool_create(struct pool **ret_pool, size_t n_threads, struct error *err)
{
    size_t cores = machine_cores();
    struct pool *pool;
    enum status rc;

    *ret_pool = NULL;
    if (n_threads == 0)
        n_threads = cores < POOL_THREADS_MAX ? cores : POOL_THREADS_MAX;
    if (n_threads > POOL_THREADS_MAX)
        return FAIL(err, ST_LIMIT, "%zu threads asked for, at most %d are possible", n_threads, POOL_THREADS_MAX);
    pool = mem_alloc(sizeof *pool);
    if (pool == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a pool of %zu threads", n_threads);
    pool->n_workers = n_threads;
    pool->spins_max = n_threads <= cores ? POOL_SPINS : 0;
    pool->caller_spins = (struct spinner){.now = pool->spins_max, .max = pool->spins_max};
    pool->helpers = mem_array(n_threads, sizeof *pool->helpers);
    if (pool->helpers == NULL) {
        rc = FAIL(err, ST_NOMEM, "out of memory for a pool of %zu threads", n_threads);
        goto fail;
    }
    rc = start_helpers(pool, err);
    if (rc != ST_OK)
        goto fail;
    *ret_pool = pool;
    return ST_OK;

fail:
    pool_destroy(pool);
    return rc;
}

void pool_destroy(struct pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->n_started > 0)
        publish(pool, 0, 1, NULL, NULL);
    for (size_t i = 0; i < pool->n_started; i++)
        pthread_join(pool->helpers[i].thread, NULL);
    mem_free(pool->helpers);
    mem_free(pool);
}

size_t pool_size(const struct pool *pool)
{
    return pool == NULL ? 1 : pool->n_workers;
}

void pool_part(size_t n, size_t grain, size_t worker, size_t n_workers, size_t *ret_from, size_t *ret_to)
{
    size_t units = n / grain + (n % grain != 0);
    size_t each = units / n_workers, extra = units % n_workers; /* the first `extra` workers get one unit more */
    size_t first = worker * each + (worker < extra ? worker : extra);
    size_t last = first + each + (worker < extra);

    *ret_from = first >= units ? n : first * grain;
    *ret_to = last >= units ? n : last * grain;
}

void pool_run(struct pool *pool, size_t n, size_t grain, pool_fn *fn, void *ctx)
{
    size_t from, to;
    unsigned left;

    if (grain == 0)
        grain = 1;
    if (pool == NULL || pool->n_workers == 1) {
        fn(ctx, 0, 0, n);
        return;
    }
    publish(pool, n, grain, fn, ctx);
    pool_part(n, grain, 0, pool->n_workers, &from, &to);
    fn(ctx, 0, from, to);
    while ((left = atomic_load_explicit(&pool->pending, memory_order_acquire)) != 0)
        wait_change(&pool->pending, left, &pool->caller_sleeps, &pool->caller_spins);
}
