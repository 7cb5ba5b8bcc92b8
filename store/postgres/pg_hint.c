/* pg_hint.c - NOTIFY and LISTEN: a connection that has written wakes those that wait for it.
 *
 * Hints are sent with the commit of what they are about, and may be lost with a connection: whoever listens also looks
 * at times without one. A connection made again listens again. */
#include "store/postgres/pg_priv.h"
#include "store/store_priv.h"

#include <poll.h>

static const char *const channels[STORE_HINTS] = {"trawl_trials", "trawl_results", "trawl_mail", "trawl_answers"};

void pg_hints_to_sql(unsigned hints, const char *verb, char sql[PG_HINTS_SQL_MAX])
{
    size_t n = 0;

    sql[0] = '\0';
    for (int k = 0; k < STORE_HINTS; k++)
        if (hints & 1u << k)
            n += (size_t)snprintf(sql + n, PG_HINTS_SQL_MAX - n, "%s %s;", verb, channels[k]);
}

/* What has come on the socket, or with the answer of a statement. */
static void read_hints(struct pg *pg)
{
    PGnotify *note;

    while ((note = pq.notifies(pg->conn)) != NULL) {
        for (int k = 0; k < STORE_HINTS; k++)
            if (strcmp(note->relname, channels[k]) == 0)
                pg->came |= 1u << k;
        pq.freemem(note);
    }
}

int pg_hint_fd(const struct pg *pg)
{
    return pg->listens != 0 && pg->n_queued == 0 && pq.status(pg->conn) == CONNECTION_OK ? pq.socket(pg->conn) : -1;
}

unsigned pg_hints_take(struct pg *pg, unsigned hints)
{
    unsigned came;

    if (pg_hint_fd(pg) >= 0 && pq.consumeInput(pg->conn) == 1)
        read_hints(pg);
    came = pg->came & hints;
    pg->came &= ~hints;
    return came;
}

unsigned pg_hint_wait(struct pg *pg, unsigned hints, double seconds)
{
    double end_s = clock_mono_s() + seconds, left_s = seconds;
    unsigned came = pg_hints_take(pg, hints);

    while (came == 0 && left_s > 0) {
        struct pollfd fd = {.fd = pg_hint_fd(pg), .events = POLLIN}; /* none: poll waits for the time alone */
        if (poll(&fd, 1, (int)(1000 * left_s) + 1) < 0) /* a signal */
            break;
        came = pg_hints_take(pg, hints);
        left_s = end_s - clock_mono_s();
    }
    return came;
}
