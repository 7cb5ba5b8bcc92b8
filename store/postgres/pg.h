/* pg.h - a store in PostgreSQL: one connection by libpq, its statements, the controller's lock.
 *
 * Where Trawl was built without libpq, pg_none.c refuses the address. The tables stand in the schema `trawl` of the
 * database. Nothing here is used by two threads at a time. */
#pragma once

#include "base/base.h"

/* A build without libpq has no function that needs a connection, and never gets to a call of one. */
#ifdef STORE_WITHOUT_LIBPQ
#define PG_ONLY __attribute__((weak))
#else
#define PG_ONLY
#endif

struct store; /* the owner of a connection: store_priv.h */
struct pg; /* a connection */
struct pg_stmt; /* a prepared statement with its values and its rows */

/* Types of values. Their numbers are SQLite's: the checksums of rows contain them. */
enum db_type { DB_I64 = 1, DB_F64 = 2, DB_TEXT = 3, DB_BLOB = 4, DB_NULL = 5 };
struct db_value {
    enum db_type type;
    int64_t i64;
    double f64;
    const char *bytes; /* (n) of a text or blob, borrowed; a text ends with NUL */
    size_t n;
};

/* What a connection may do. A controller holds the store's lock, for as long as its session lives; that of single
 * studies holds theirs. */
enum pg_role { PG_READER, PG_SECOND, PG_STUDIES, PG_CONTROLLER };
#define PG_LOCK_KEY "1414676823" /* STORE_APP_ID; with 1 the key of the daemon's advisory lock in the database */
#define PG_STUDY_KEY "1414676824" /* with a study's id the key of the lock of its controller */

/* -- pg.c: the connection; store->pg -- */
/* Connects, without a look at the tables. ST_BUSY: another controller has the lock. Fails at once where no server
 * answers. */
enum status pg_open(struct store *store, enum pg_role role, struct error *err) MUST_USE;
void pg_close(struct pg *pg); /* NULL is fine */
/* Texts in SQL that are PostgreSQL's own, without values. */
PG_ONLY enum status pg_exec(struct store *store, const char *sql, const char *what, struct error *err) MUST_USE;
/* Connects again when the connection was lost, waiting for the server as long as the store's owner likes, else ten
 * seconds. ST_BUSY: another controller has the lock now. */
PG_ONLY enum status pg_begin(struct store *store, bool writes, bool synced, const char *what,
                             struct error *err) MUST_USE;
/* A connection that is lost in the middle of a commit: the server is asked, as soon as it answers, what became of
 * it. */
PG_ONLY enum status pg_commit(struct store *store, const char *what, struct error *err) MUST_USE;
PG_ONLY void pg_rollback(struct store *store);
PG_ONLY bool pg_in_transaction(const struct pg *pg);
/* Rises when another transaction may have committed. */
PG_ONLY enum status pg_data_version(struct store *store, int64_t *ret_version, struct error *err) MUST_USE;

/* -- pg_hint.c: hints are bits, 1 << enum store_hint -- */
PG_ONLY int pg_hint_fd(const struct pg *pg); /* -1: no connection listens */
PG_ONLY unsigned pg_hints_take(struct pg *pg, unsigned hints); /* of these, those that came */
PG_ONLY unsigned pg_hint_wait(struct pg *pg, unsigned hints, double seconds);
/* Also on later connections. */
PG_ONLY enum status pg_listen(struct store *store, unsigned hints, struct error *err) MUST_USE;
PG_ONLY void pg_unlisten(struct pg *pg);
PG_ONLY void pg_send_hint(struct pg *pg, unsigned hint); /* with the commit of the open transaction */

/* -- pg_stmt.c -- */
/* The text is SQLite's; see pg_translate. The server sees it at the first step. */
PG_ONLY void pg_prepare(struct store *store, const char *sql, struct pg_stmt **ret_stmt);
PG_ONLY void pg_finalize(struct pg_stmt *stmt);
PG_ONLY void pg_reset(struct pg_stmt *stmt); /* forgets rows; values stay */
PG_ONLY void pg_clear(struct pg_stmt *stmt); /* forgets both */
PG_ONLY void pg_bind(struct pg_stmt *stmt, int at, struct db_value value); /* bytes are copied */
/* All rows come with the first step. A statement outside of a transaction is repeated on a new connection. */
PG_ONLY enum status pg_step(struct store *store, struct pg_stmt *stmt, bool *ret_row, const char *what,
                            struct error *err) MUST_USE;
/* Sends a statement of the open transaction without waiting for its end: its failure is that of a later call. */
PG_ONLY enum status pg_queue(struct store *store, struct pg_stmt *stmt, const char *what, struct error *err) MUST_USE;
PG_ONLY struct db_value pg_value(const struct pg_stmt *stmt, int at);
PG_ONLY int pg_n_columns(const struct pg_stmt *stmt);
PG_ONLY const char *pg_column_name(const struct pg_stmt *stmt, int at);
PG_ONLY int64_t pg_changes(const struct pg_stmt *stmt);

/* -- pg_text.c -- */
/* SQLite's SQL in PostgreSQL's words: ?1 is $1, INTEGER is bigint, ... ; mem_free. */
char *pg_translate(const char *sql);
/* The text as PostgreSQL takes it: NULL when it is that already, else a copy with ? for bytes that are not UTF-8. */
char *pg_clean(const char *text);

/* -- pg_lock.c -- */
enum status pg_library_open(struct error *err) MUST_USE;
/* ST_USAGE for an address that libpq does not understand, or that has a password. */
enum status pg_address_check(const char *address, struct error *err) MUST_USE;
/* "HOST-DATABASE-HASH", which names the files of a store on this machine; the same for each way to write an address. */
void pg_address_name(const char *address, char *buf, size_t size);
/* Which locks of another session are looked for. */
enum pg_held { PG_HELD_STORE = 1, PG_HELD_STUDY = 2, PG_HELD_ANY = 4 };
/* Has a controller one of these locks? study: the name for PG_HELD_STUDY. *ret_who: "process 12 on HOST". False too
 * when the server does not answer. */
bool pg_is_held(const char *address, unsigned locks, const char *study, char *ret_who, size_t size, int64_t *ret_pid);
PG_ONLY bool pg_has_holder(struct store *store); /* of any lock, of an open store */
PG_ONLY enum status pg_lock_study(struct store *store, int64_t study_id, struct error *err) MUST_USE;
PG_ONLY void pg_unlock_study(struct store *store, int64_t study_id);
/* Waits until the lock (study NULL: of the store) was free for long enough that its last holder will not come back, or
 * cancel returns true. */
enum status pg_stand_by(const char *address, const char *study, bool (*cancel)(void), struct error *err) MUST_USE;
