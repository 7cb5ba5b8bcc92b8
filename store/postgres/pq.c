/* pq.c - see pq.h. */
#include "store/postgres/pq.h"

struct pq_calls pq;

enum status pq_open(struct error *err)
{
    static struct late_library libpq = {"libpq.so.5", "libpq5", PQ_EACH(LATE_NAME), &pq, false, NULL};

    return late_open(&libpq, err);
}
