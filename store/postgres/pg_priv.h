/* pg_priv.h - shared by the files of store/postgres/: the connection. */
#pragma once

#include "store/postgres/pg.h"

#include "store/postgres/pq.h"

#define PG_HINTS_SQL_MAX 128
#define PG_WHO_MAX 64 /* of an application_name, with its end */

struct pg {
    PGconn *conn;
    enum pg_role role;
    char who[PG_WHO_MAX]; /* the session's application_name: "trawl PID HOST" */
    unsigned generation; /* connections made so far: a statement of an earlier one is prepared again */
    unsigned n_prepared; /* names statements */
    bool in_transaction;
    bool lost; /* the connection was lost within the open transaction, which is void */
    bool writes; /* the open transaction does */
    uint64_t token; /* of the last transaction that writes, in the table session */
    size_t n_queued; /* statements whose results are not read yet */
    unsigned listens, sends, came; /* hints, as bits: those asked for, those of the open transaction, those that came */
    int64_t *studies; /* (n_studies) whose locks this connection holds */
    size_t n_studies, cap_studies;
    char snapshot[512]; /* at the last look: pg_data_version */
    int64_t version;
};

/* A failed result as a status; res: NULL, the connection has the reason. Notes a lost connection. */
enum status pg_fail(struct store *store, PGresult *res, const char *what, struct error *err);
/* Is there a connection, or was there none to lose within a transaction? Connects again where that loses nothing. */
enum status pg_ready(struct store *store, const char *what, struct error *err) MUST_USE;
/* Reads the results of queued statements. */
enum status pg_drain(struct store *store, const char *what, struct error *err) MUST_USE;
/* A session for short questions; NULL: no server answers. PQfinish. */
PGconn *pg_connect(const char *address, const char *who);
/* The locks that this connection is to hold, of the store and of studies: ST_BUSY names another holder. */
enum status pg_lock(struct store *store, struct error *err) MUST_USE;
/* "LISTEN a;LISTEN b;" */
void pg_hints_to_sql(unsigned hints, const char *verb, char sql[PG_HINTS_SQL_MAX]);
void pg_name_self(char who[PG_WHO_MAX]);
