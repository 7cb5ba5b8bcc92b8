/* pool.c - fork-join with helpers that spin shortly, then sleep on a futex.
 *
 * A job is published by writing its fields, offering a part to each helper (`offer`) and then raising `ticket`. The
 * thread that takes an offer first does the part: its helper, or the caller, which takes the parts that no helper has
 * begun when its own part is done. On a busy machine a job therefore waits for helpers that run and not for helpers
 * that wait for a core. Parts and their numbers do not depend on the thread, and neither do the bytes. The caller
 * returns when pending is 0.
 * Invariants: (1) pending counts the parts of helpers that are not done; (2) a thread reads the fields only after it
 * took an offer of this job, and they do not change before that part is done; an offer names its job, and a late helper
 * finds it taken; (3) a sleeper announces itself (sleepers, caller_sleeps) before it sleeps on the word it watches,
 * and a thread that changes that word reads the announcement afterwards, all sequentially consistent: no wake-up is
 * lost; (4) the kernel compares the word once more before it puts a thread to sleep. */
#include "base/os/pool.h"

#include "base/os/machine.h"
#include "base/mem.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>

#define POOL_THREADS_MAX 1024
#define POOL_SPINS 400 /* pauses of 20 to 70 ns: longer than the gap between the jobs of a rollout */
#define POOL_SPINS_STEP 20
#define POOL_SPINS_RETRY 64
#define POOL_UNWOKEN_MAX 63
#define POOL_WAKERS 8
#define POOL_LONG_S 30e-6 /* in a part of this length a sleeper has time to wake up and take another part */

struct spinner {
    int now, max; /* max 0: never spins */
    unsigned n_failed;
};

/* Whether waking sleepers pays for the jobs of one function, which are of similar length. */
struct waker {
    pool_fn *fn;
    unsigned n_unwoken, unwoken_max; /* jobs for which sleepers are left asleep */
    double began_s; /* start of a job for which sleepers were left asleep; 0: none */
};

struct helper {
    struct pool *pool;
    size_t worker;
    pthread_t thread;
    _Alignas(MEM_ALIGN)
        atomic_uint offer; /* the ticket of the job while its part is free; the ticket inverted once it is taken */
};

struct pool {
    size_t n_workers;
    size_t n_started; /* helpers whose thread exists */
    struct helper *helpers; /* (n_workers - 1), owned */
    int spins_max; /* 0 when there are more workers than cores: spinning would hold up the others */

    /* the job: written by the caller while pending is 0 */
    size_t n, grain;
    pool_fn *fn;
    void *ctx;

    _Alignas(MEM_ALIGN) atomic_uint ticket; /* one more for every job */
    atomic_uint sleepers;
    atomic_bool leave; /* helpers end */
    _Alignas(MEM_ALIGN) atomic_uint pending;
    atomic_uint caller_sleeps;
    struct spinner caller_spins;
    struct waker wakers[POOL_WAKERS]; /* the caller's alone */
    size_t next_waker;
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

/* Spins no longer than has paid lately: each spin without success halves the time (other threads want the cores), each
 * success lengthens it, and every POOL_SPINS_RETRY failures the full time is tried. */
static bool spin(atomic_uint *word, unsigned value, struct spinner *s)
{
    for (int i = 0; i < s->now; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != value) {
            s->now = s->now + POOL_SPINS_STEP < s->max ? s->now + POOL_SPINS_STEP : s->max;
            return true;
        }
        relax();
    }
    s->now = ++s->n_failed % POOL_SPINS_RETRY == 0 ? s->max : s->now / 2;
    return false;
}

/* Returns once *word differs from value; sleeper_count shows the other side that a wake-up is needed. */
static void wait_change(atomic_uint *word, unsigned value, atomic_uint *sleeper_count, struct spinner *s)
{
    if (spin(word, value, s))
        return;
    atomic_fetch_add(sleeper_count, 1);
    while (atomic_load(word) == value)
        futex_wait(word, value);
    atomic_fetch_sub(sleeper_count, 1);
}

/* Does the helper's part of job `ticket` here, unless somebody has taken it. */
static bool take_part(struct helper *helper, unsigned ticket)
{
    struct pool *pool = helper->pool;
    unsigned offered = ticket;
    size_t from, to;

    if (atomic_load_explicit(&helper->offer, memory_order_relaxed) != ticket ||
        !atomic_compare_exchange_strong(&helper->offer, &offered, ~ticket))
        return false;
    pool_part(pool->n, pool->grain, helper->worker, pool->n_workers, &from, &to);
    pool->fn(pool->ctx, helper->worker, from, to);
    return true;
}

static void *helper_main(void *arg)
{
    struct helper *helper = arg;
    struct pool *pool = helper->pool;
    struct spinner s = {.now = pool->spins_max, .max = pool->spins_max};

    for (unsigned seen = 0;;) {
        wait_change(&pool->ticket, seen, &pool->sleepers, &s);
        seen = atomic_load(&pool->ticket);
        if (atomic_load(&pool->leave))
            return NULL;
        if (take_part(helper, seen) && atomic_fetch_sub(&pool->pending, 1) == 1 &&
            atomic_load(&pool->caller_sleeps) != 0)
            futex_wake(&pool->pending, 1);
    }
}

/* The record of jobs of this function; an empty one for a new function. */
static struct waker *waker_of(struct pool *pool, pool_fn *fn)
{
    for (size_t i = 0; i < POOL_WAKERS; i++)
        if (pool->wakers[i].fn == fn)
            return &pool->wakers[i];
    struct waker *w = &pool->wakers[pool->next_waker++ % POOL_WAKERS];
    *w = (struct waker){.fn = fn};
    return w;
}

/* Sleepers are woken for a job, unless they came too late for the last jobs of its kind: those were done before a
 * sleeper could begin, or other threads want the cores and would be displaced for nothing. */
static bool wake_sleepers(struct pool *pool, struct waker *w)
{
    if (atomic_load(&pool->sleepers) == 0)
        return false;
    if (w->n_unwoken > 0) {
        w->n_unwoken--;
        w->began_s = clock_mono_s();
        return false;
    }
    futex_wake(&pool->ticket, INT_MAX);
    return true;
}

/* late: the woken helpers came too late. */
static void learn_wake(struct waker *w, bool late)
{
    w->unwoken_max = !late ? 0 : w->unwoken_max < POOL_UNWOKEN_MAX ? 2 * w->unwoken_max + 1 : POOL_UNWOKEN_MAX;
    w->n_unwoken = w->unwoken_max;
}

/* The caller's part is done while others sleep: wakes them where the part was long enough for them to help. */
static void wake_after_all(struct pool *pool, struct waker *w)
{
    if (w->began_s > 0 && clock_mono_s() - w->began_s > POOL_LONG_S) {
        futex_wake(&pool->ticket, INT_MAX);
        w->n_unwoken = w->unwoken_max = 0;
    }
    w->began_s = 0;
}

/* The next job, of fn over [0, n). *ret_woken: sleepers were woken for it. */
static unsigned publish(struct pool *pool, size_t n, size_t grain, pool_fn *fn, void *ctx, struct waker *w,
                        bool *ret_woken)
{
    unsigned ticket = atomic_load_explicit(&pool->ticket, memory_order_relaxed) + 1;

    pool->n = n;
    pool->grain = grain;
    pool->fn = fn;
    pool->ctx = ctx;
    atomic_store_explicit(&pool->pending, (unsigned)pool->n_started, memory_order_relaxed);
    for (size_t i = 0; i < pool->n_started; i++)
        atomic_store_explicit(&pool->helpers[i].offer, ticket, memory_order_release);
    atomic_store(&pool->ticket, ticket);
    *ret_woken = wake_sleepers(pool, w);
    return ticket;
}

void pool_block_signals(sigset_t *ret_old)
{
    static const int wrong[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    sigset_t all;

    sigfillset(&all);
    for (size_t i = 0; i < COUNT(wrong); i++)
        sigdelset(&all, wrong[i]);
    pthread_sigmask(SIG_SETMASK, &all, ret_old);
}

static enum status start_helpers(struct pool *pool, struct error *err)
{
    sigset_t old;
    int rc = 0;

    pool_block_signals(&old);
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

    *ret_pool = NULL;
    if (n_threads == 0)
        n_threads = cores < POOL_THREADS_MAX ? cores : POOL_THREADS_MAX;
    if (n_threads > POOL_THREADS_MAX)
        return FAIL(err, ST_LIMIT, "%zu threads asked for, at most %d are allowed", n_threads, POOL_THREADS_MAX);
    pool = mem_alloc(sizeof *pool);
    pool->n_workers = n_threads;
    pool->spins_max = n_threads <= cores ? POOL_SPINS : 0;
    pool->caller_spins = (struct spinner){.now = pool->spins_max, .max = pool->spins_max};
    pool->helpers = mem_array(n_threads, sizeof *pool->helpers);
    enum status rc = start_helpers(pool, err);
    if (rc != ST_OK) {
        pool_destroy(pool);
        return rc;
    }
    *ret_pool = pool;
    return ST_OK;
}

void pool_destroy(struct pool *pool)
{
    if (pool == NULL)
        return;
    atomic_store(&pool->leave, true);
    atomic_fetch_add(&pool->ticket, 1);
    futex_wake(&pool->ticket, INT_MAX);
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
    unsigned left, ticket;
    size_t n_late = 0;
    bool woken;

    if (grain == 0)
        grain = 1;
    if (pool == NULL || pool->n_workers == 1) {
        fn(ctx, 0, 0, n);
        return;
    }
    struct waker *w = waker_of(pool, fn);
    ticket = publish(pool, n, grain, fn, ctx, w, &woken);
    pool_part(n, grain, 0, pool->n_workers, &from, &to);
    fn(ctx, 0, from, to);
    if (!woken)
        wake_after_all(pool, w);
    for (size_t i = pool->n_started; i-- > 0;) /* parts that no helper has begun */
        if (take_part(&pool->helpers[i], ticket)) {
            atomic_fetch_sub(&pool->pending, 1);
            n_late++;
        }
    if (woken)
        learn_wake(w, n_late == pool->n_started);
    while ((left = atomic_load_explicit(&pool->pending, memory_order_acquire)) != 0)
        wait_change(&pool->pending, left, &pool->caller_sleeps, &pool->caller_spins);
}
