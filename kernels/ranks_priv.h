/* ranks_priv.h - what a backend needs of struct kern_ranks (private to kernels/). */
#pragma once

#include "kernels/kernels.h"

#define KERN_RANKS_ID_MAX 128 /* bytes of NCCL's id */

/* Waits until all ranks are here; false: they were aborted. All that a rank wrote before is seen by all others
 * after. */
bool kern_ranks_meet(struct kern_ranks *ranks, size_t rank);
/* The rank is waiting from now on; false: it has ended its wait. A rank that kern_ranks_meet holds is waiting too. */
void kern_ranks_wait(struct kern_ranks *ranks, size_t rank, bool waiting);
/* The first of this process's ranks, and how many it has. */
const struct kern_span *kern_ranks_span(const struct kern_ranks *ranks);
/* By every rank of the process, between two meetings: the exchange of `given` with all other processes, for all of its
 * ranks. A failure aborts the ranks. */
void kern_ranks_trade(struct kern_ranks *ranks, size_t rank);
/* kern_ranks_meet of all processes' ranks, after which each has the id that rank 0 left. */
bool kern_ranks_share_id(struct kern_ranks *ranks, size_t rank);
/* ranks_span.c, for those two: by one thread of the process. */
enum status span_exchange(struct kern_ranks *ranks, struct error *err) MUST_USE;
enum status span_share_id(struct kern_ranks *ranks, struct error *err) MUST_USE;
void kern_ranks_await(struct kern_ranks *ranks, int link); /* as kern_ranks_awaited has it from now on */
/* Where the ranks leave what the others read after kern_ranks_meet: what each exchanges, and rank 0's id. */
struct kern_exchange *kern_ranks_given(struct kern_ranks *ranks); /* (n) */
unsigned char *kern_ranks_id(struct kern_ranks *ranks); /* (KERN_RANKS_ID_MAX) */
