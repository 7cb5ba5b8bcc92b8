/* pool.h - fork-join over an index range on our own threads.
 * The caller is worker 0 and takes part. Helpers spin shortly, then sleep: the many short jobs of a rollout cost
 * microseconds each. Work is split statically, worker w of n always gets the same part, and therefore the same seed and
 * number of threads give the same bytes. One job at a time; a pool belongs to one caller thread. */
#pragma once

#include <signal.h>
#include <stddef.h>

#include "base/status.h"

struct pool;

/* Called once per worker with its part [from, to) of the range (possibly empty). */
typedef void pool_fn(void *ctx, size_t worker, size_t from, size_t to);

/* n_threads >= 1 counts the caller; 0: one for each core that the process may use. ST_NOMEM: the system starts no more
 * threads. */
enum status pool_create(struct pool **ret_pool, size_t n_threads, struct error *err) MUST_USE;
void pool_destroy(struct pool *pool); /* NULL is fine; joins the helpers */

size_t pool_size(const struct pool *pool); /* workers, the caller included; NULL pool: 1 */

/* Runs fn over [0, n), parts cut at multiples of grain (>= 1), and returns when all parts are done.
 * A NULL pool runs everything in the caller. Never allocates. */
void pool_run(struct pool *pool, size_t n, size_t grain, pool_fn *fn, void *ctx);

/* The part of [0, n) that worker w of n_workers gets: the same rule as pool_run. */
void pool_part(size_t n, size_t grain, size_t worker, size_t n_workers, size_t *ret_from, size_t *ret_to);

/* Signals belong to the program's own threads: what this thread starts until it sets *ret_old again has all of them
 * blocked, except those of a wrong instruction, which kill a thread that blocks them without a word. */
void pool_block_signals(sigset_t *ret_old);
