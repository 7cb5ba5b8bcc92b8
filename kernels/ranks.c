/* ranks.c - see ranks.h: where the threads of several devices meet.
 * Invariant: a round ends when all ranks of the process have arrived or when the ranks are aborted, and then never
 * again begins. */
#include "base/base.h"
#include "kernels/ranks_priv.h"

#include <stdatomic.h>
#include <sys/socket.h>

struct kern_ranks {
    size_t n; /* of all processes */
    struct kern_span span;
    _Atomic int awaited; /* kern_ranks_awaited */
    struct error why; /* of the one that trades, before it aborts */
    pthread_mutex_t lock; /* guards arrived and round; never held together with another */
    pthread_cond_t changed;
    size_t arrived;
    uint64_t round;
    atomic_bool aborted;
    _Atomic uint64_t waiting_ns[KERN_RANKS_MAX]; /* since when; 0: not */
    struct kern_exchange given[KERN_RANKS_MAX];
    unsigned char id[KERN_RANKS_ID_MAX];
};

enum status kern_ranks_create(struct kern_ranks **ret_ranks, size_t n, const struct kern_span *span, struct error *err)
{
    struct kern_ranks *ranks;

    *ret_ranks = NULL;
    if (n < 1 || n > KERN_RANKS_MAX)
        return FAIL(err, ST_CONFIG, "%zu devices cannot train together; 1 to %d can", n, KERN_RANKS_MAX);
    ranks = mem_alloc(sizeof *ranks);
    ranks->n = n;
    ranks->span = span != NULL ? *span : (struct kern_span){.n = n};
    atomic_init(&ranks->awaited, -1);
    pthread_mutex_init(&ranks->lock, NULL);
    pthread_cond_init(&ranks->changed, NULL);
    *ret_ranks = ranks;
    return ST_OK;
}

void kern_ranks_destroy(struct kern_ranks *ranks)
{
    if (ranks == NULL)
        return;
    pthread_cond_destroy(&ranks->changed);
    pthread_mutex_destroy(&ranks->lock);
    mem_free(ranks);
}

size_t kern_ranks_count(const struct kern_ranks *ranks)
{
    return ranks->n;
}

enum status kern_ranks_join(struct kern *kern, struct kern_ranks *ranks, size_t rank, struct error *err)
{
    enum status rc = ST_OK;

    if (kern->ranks != NULL)
        return FAIL(err, ST_BUSY, "%s trains with other devices already; one training of several devices at a time",
                    kern->name);
    kern->ranks = ranks;
    kern->rank = rank;
    if (kern->device->ranks_join != NULL)
        rc = kern->device->ranks_join(kern, err);
    else if (!kern_ranks_meet(ranks, rank))
        rc = FAIL(err, ST_DEVICE, "device %zu of the training: another one failed to start", rank);
    if (rc != ST_OK)
        kern->ranks = NULL;
    return rc;
}

void kern_ranks_leave(struct kern *kern)
{
    if (kern->ranks != NULL && kern->device->ranks_leave != NULL)
        kern->device->ranks_leave(kern);
    kern->ranks = NULL;
}

void kern_ranks_abort(struct kern_ranks *ranks)
{
    pthread_mutex_lock(&ranks->lock);
    if (!atomic_exchange(&ranks->aborted, true))
        for (size_t i = 0; i < ranks->span.n_links; i++) /* the other processes' ranks are let go, too */
            (void)shutdown(ranks->span.links[i].fd, SHUT_RDWR);
    pthread_cond_broadcast(&ranks->changed);
    pthread_mutex_unlock(&ranks->lock);
}

bool kern_ranks_aborted(const struct kern_ranks *ranks)
{
    return atomic_load(&ranks->aborted);
}

bool kern_ranks_meet(struct kern_ranks *ranks, size_t rank)
{
    uint64_t round;

    kern_ranks_wait(ranks, rank, true);
    pthread_mutex_lock(&ranks->lock);
    round = ranks->round;
    if (++ranks->arrived == ranks->span.n) {
        ranks->arrived = 0;
        ranks->round++;
        pthread_cond_broadcast(&ranks->changed);
    }
    while (ranks->round == round && !atomic_load(&ranks->aborted))
        pthread_cond_wait(&ranks->changed, &ranks->lock);
    bool met = ranks->round != round;
    pthread_mutex_unlock(&ranks->lock);
    kern_ranks_wait(ranks, rank, false);
    return met && !atomic_load(&ranks->aborted);
}

void kern_ranks_wait(struct kern_ranks *ranks, size_t rank, bool waiting)
{
    atomic_store(&ranks->waiting_ns[rank], waiting ? clock_mono_ns() : 0);
}

double kern_ranks_waited_s(const struct kern_ranks *ranks, size_t rank)
{
    uint64_t since = atomic_load(&ranks->waiting_ns[rank]), now = clock_mono_ns();

    return since > 0 && now > since ? 1e-9 * (double)(now - since) : 0.0;
}

struct kern_exchange *kern_ranks_given(struct kern_ranks *ranks)
{
    return ranks->given;
}

unsigned char *kern_ranks_id(struct kern_ranks *ranks)
{
    return ranks->id;
}

const struct kern_span *kern_ranks_span(const struct kern_ranks *ranks)
{
    return &ranks->span;
}

const char *kern_ranks_why(const struct kern_ranks *ranks)
{
    return ranks->why.text;
}

int kern_ranks_awaited(const struct kern_ranks *ranks)
{
    return atomic_load(&ranks->awaited);
}

void kern_ranks_await(struct kern_ranks *ranks, int link)
{
    atomic_store(&ranks->awaited, link);
}

void kern_ranks_trade(struct kern_ranks *ranks, size_t rank)
{
    if (rank != ranks->span.first)
        return;
    kern_ranks_wait(ranks, rank, true);
    if (!atomic_load(&ranks->aborted) && span_exchange(ranks, &ranks->why) != ST_OK)
        kern_ranks_abort(ranks);
    kern_ranks_await(ranks, -1);
    kern_ranks_wait(ranks, rank, false);
}

bool kern_ranks_share_id(struct kern_ranks *ranks, size_t rank)
{
    if (!kern_ranks_meet(ranks, rank))
        return false;
    kern_ranks_wait(ranks, rank, true);
    if (rank == ranks->span.first && span_share_id(ranks, NULL) != ST_OK)
        kern_ranks_abort(ranks);
    kern_ranks_wait(ranks, rank, false);
    return kern_ranks_meet(ranks, rank);
}
