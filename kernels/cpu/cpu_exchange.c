/* cpu_exchange.c - ranks on the CPU: threads of one process that read each other's memory; with other processes one of
 * them trades for all (ranks_span.c). Each rank adds a part of the sum, in the order of the ranks, and writes it to all
 * of them, so every rank has the same bytes.
 * Invariant: nobody reads what another still writes: ranks meet before and after. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"
#include "kernels/ranks_priv.h"

/* In pieces that stay in the cache while all ranks' are added. */
#define PIECE 1024

static void sum_part(const struct kern_exchange *given, size_t n_ranks, size_t from, size_t to)
{
    float sum[PIECE];

    for (size_t at = from; at < to; at += PIECE) {
        size_t n = to - at < PIECE ? to - at : PIECE;
        memcpy(sum, given[0].sum + at, n * sizeof *sum);
        for (size_t r = 1; r < n_ranks; r++) {
            const float *x = given[r].sum + at;
            for (size_t i = 0; i < n; i++)
                sum[i] += x[i];
        }
        for (size_t r = 0; r < n_ranks; r++)
            memcpy(given[r].sum + at, sum, n * sizeof *sum);
    }
}

void cpu_exchange(struct kern *k, const struct kern_exchange *e)
{
    struct kern_ranks *ranks = k->ranks;
    struct kern_exchange *given = kern_ranks_given(ranks);
    size_t n_ranks = kern_ranks_count(ranks), from, to;

    given[k->rank] = *e;
    if (!kern_ranks_meet(ranks, k->rank))
        return;
    if (kern_ranks_span(ranks)->n_links > 0) {
        kern_ranks_trade(ranks, k->rank);
        (void)kern_ranks_meet(ranks, k->rank);
        return;
    }
    if (e->n > 0) {
        pool_part(e->n, 1, k->rank, n_ranks, &from, &to);
        sum_part(given, n_ranks, from, to);
    }
    for (size_t r = 0; r < n_ranks && e->row_bytes > 0; r++)
        if (r != k->rank)
            memcpy((char *)e->rows + r * e->row_bytes, (const char *)given[r].rows + r * e->row_bytes, e->row_bytes);
    (void)kern_ranks_meet(ranks, k->rank);
}
