/* ranks_span.c - what the processes of one training give each other: the first of each process's ranks sends for all of
 * them to rank 0's process, which adds in the order of the ranks, as threads of one process do (cpu/cpu_exchange.c),
 * and sends the sum to all. So the bytes do not depend on how ranks are spread.
 * Invariant: every process takes part in the same exchanges in the same order; one that does not is noticed by its
 * sizes. */
#include "kernels/ranks_priv.h"

#include "base/os/link.h"

struct sizes {
    uint64_t n, row_bytes;
};

static char *row_at(const struct kern_exchange *e, size_t rank)
{
    return (char *)e->rows + rank * e->row_bytes;
}

static void add(float *sum, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += x[i];
}

/* What the ranks at the other end of a link send, added to sum; room: (n). */
static enum status take_in(const struct kern_link *l, const struct kern_exchange *own, float *room, struct error *err)
{
    struct sizes sizes;

    TRY(link_receive(l->fd, &sizes, sizeof sizes, err));
    if (sizes.n != own->n || sizes.row_bytes != own->row_bytes)
        return FAIL(err, ST_CORRUPT, "the processes of a training are at different exchanges");
    for (size_t r = 0; r < l->n && own->n > 0; r++) {
        TRY(link_receive(l->fd, room, own->n * sizeof *room, err));
        add(own->sum, room, own->n);
    }
    return own->row_bytes > 0 ? link_receive(l->fd, row_at(own, l->first), l->n * own->row_bytes, err) : ST_OK;
}

/* Of rank 0's process. */
static enum status lead(struct kern_ranks *ranks, float *room, struct error *err)
{
    const struct kern_span *span = kern_ranks_span(ranks);
    const struct kern_exchange *given = kern_ranks_given(ranks), *own = &given[0];

    for (size_t r = 1; r < span->n; r++)
        add(own->sum, given[r].sum, own->n);
    for (size_t i = 0; i < span->n_links; i++) {
        kern_ranks_await(ranks, (int)i);
        TRY(take_in(&span->links[i], own, room, err));
    }
    for (size_t i = 0; i < span->n_links; i++) {
        kern_ranks_await(ranks, (int)i);
        TRY(link_send(span->links[i].fd, own->sum, own->n * sizeof *own->sum, err));
        TRY(link_send(span->links[i].fd, own->rows, kern_ranks_count(ranks) * own->row_bytes, err));
    }
    return ST_OK;
}

static enum status follow(struct kern_ranks *ranks, struct error *err)
{
    const struct kern_span *span = kern_ranks_span(ranks);
    const struct kern_exchange *given = kern_ranks_given(ranks), *own = &given[span->first];
    const struct sizes sizes = {own->n, own->row_bytes};
    int fd = span->links[0].fd;

    kern_ranks_await(ranks, 0);
    TRY(link_send(fd, &sizes, sizeof sizes, err));
    for (size_t r = 0; r < span->n; r++)
        TRY(link_send(fd, given[span->first + r].sum, own->n * sizeof *own->sum, err));
    TRY(link_send(fd, row_at(own, span->first), span->n * own->row_bytes, err));
    TRY(link_receive(fd, own->sum, own->n * sizeof *own->sum, err));
    return link_receive(fd, own->rows, kern_ranks_count(ranks) * own->row_bytes, err);
}

enum status span_exchange(struct kern_ranks *ranks, struct error *err)
{
    const struct kern_span *span = kern_ranks_span(ranks);
    const struct kern_exchange *given = kern_ranks_given(ranks), *own = &given[span->first];
    MEM_LOCAL float *room = span->first == 0 ? mem_array(own->n + 1, sizeof *room) : NULL;
    size_t end = span->first + span->n;

    for (size_t r = span->first + 1; r < end && own->row_bytes > 0; r++)
        memcpy(row_at(own, r), row_at(&given[r], r), own->row_bytes);
    enum status rc = span->first == 0 ? lead(ranks, room, err) : follow(ranks, err);
    for (size_t r = span->first + 1; r < end && rc == ST_OK; r++) {
        if (own->n > 0)
            memcpy(given[r].sum, own->sum, own->n * sizeof *own->sum);
        if (own->row_bytes > 0)
            memcpy(given[r].rows, own->rows, kern_ranks_count(ranks) * own->row_bytes);
    }
    return rc;
}

enum status span_share_id(struct kern_ranks *ranks, struct error *err)
{
    const struct kern_span *span = kern_ranks_span(ranks);
    unsigned char *id = kern_ranks_id(ranks);

    for (size_t i = 0; i < span->n_links; i++)
        TRY(span->first == 0 ? link_send(span->links[i].fd, id, KERN_RANKS_ID_MAX, err)
                             : link_receive(span->links[i].fd, id, KERN_RANKS_ID_MAX, err));
    return ST_OK;
}
