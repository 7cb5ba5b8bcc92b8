/* ranks.h - several devices that train one policy together, each with a share of the games: the ranks 0 to n - 1 of one
 * struct kern_ranks, one thread each. Included by kernels.h. They give each other sums and rows by kern_ops->exchange.
 * On the CPU threads meet in memory, on GPUs NCCL does it (cuda/nccl.cu). Ranks of several processes, maybe on several
 * hosts, have a struct kern_ranks in each, joined by connections (ranks_span.c); on GPUs these carry NCCL's id
 * alone. */
#pragma once

#include "kernels/kernels.h"

#define KERN_RANKS_MAX 64

#define KERN_HOSTS_MAX 16 /* processes of one training */

struct kern_ranks; /* any thread, but for create and destroy */

/* The ranks [first, first + n) of a process, and its connections: of the process with rank 0 to each other one, by
 * their ranks, of another one to that. */
struct kern_link {
    int fd; /* borrowed */
    size_t first, n; /* the ranks at its other end */
};
struct kern_span {
    size_t first, n, n_links;
    struct kern_link links[KERN_HOSTS_MAX];
};

/* n ranks in all; span NULL: this process has them all. */
enum status kern_ranks_create(struct kern_ranks **ret_ranks, size_t n, const struct kern_span *span,
                              struct error *err) MUST_USE;
void kern_ranks_destroy(struct kern_ranks *ranks); /* when every rank has left; NULL is fine */
size_t kern_ranks_count(const struct kern_ranks *ranks);

/* By the thread that uses kern; waits for all ranks, whose devices are of one kind. ranks is borrowed until
 * kern_ranks_leave. ST_BUSY: kern has joined others already; ST_DEVICE. After a failure the ranks are to be aborted. */
enum status kern_ranks_join(struct kern *kern, struct kern_ranks *ranks, size_t rank, struct error *err) MUST_USE;
/* All ranks, each by its own thread, when nothing recorded uses exchange any more; fine also when it has not joined. */
void kern_ranks_leave(struct kern *kern);

/* Whoever waits for others returns, now and from now on: training cannot be continued. */
void kern_ranks_abort(struct kern_ranks *ranks);
bool kern_ranks_aborted(const struct kern_ranks *ranks);
/* For how long the rank has been waiting, for others or for its own device; 0: it is not. */
double kern_ranks_waited_s(const struct kern_ranks *ranks, size_t rank);
/* Why an exchange with another process failed; "": none did. After the ranks were aborted. */
const char *kern_ranks_why(const struct kern_ranks *ranks);
/* The link whose other end an exchange waits for; -1: none. */
int kern_ranks_awaited(const struct kern_ranks *ranks);
