/* ranks_priv.h - what a backend needs of struct kern_ranks (private to kernels/). */
#pragma once

#include "kernels/kernels.h"

#define KERN_RANKS_ID_MAX 128 /* bytes of NCCL's id */

/* Waits until all ranks are here; false: they were aborted. All that a rank wrote before is seen by all others after. */
bool kern_ranks_meet(struct kern_ranks *ranks, size_t rank);
/* The rank is waiting from now on; false: it has ended its wait. A rank that kern_ranks_meet holds is waiting too. */
void kern_ranks_wait(struct kern_ranks *ranks, size_t rank, bool waiting);
/* Where the ranks leave what the others read after kern_ranks_meet: what each exchanges, and rank 0's id. */
struct kern_exchange *kern_ranks_given(struct kern_ranks *ranks); /* (n) */
unsigned char *kern_ranks_id(struct kern_ranks *ranks); /* (KERN_RANKS_ID_MAX) */
