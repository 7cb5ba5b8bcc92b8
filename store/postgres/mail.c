/* mail.c - requests to the controller of a store in PostgreSQL, from whatever machine: a row with the request, in which
 * the controller writes its answer.
 *
 * Invariants: (1) a request is marked as taken before it is carried out: a controller that dies in between leaves it,
 * and its successor does not carry it out again; (2) a client that waits no more removes its request first. */
#include "store/store_priv.h"

#define LOOK_S 0.5 /* without a hint */

static const char what[] = "asking the controller";

/* The oldest request to this connection: to the holder of the lock of the study that it names; where nobody holds that,
 * or it names none, to the daemon. */
static const char oldest_sql[] =
    "WITH held AS (SELECT l.pid, l.classid::bigint AS key, l.objid::bigint AS id FROM pg_locks AS l"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2"
    " AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))"
    "SELECT min(m.id) FROM mail AS m"
    " LEFT JOIN study AS s ON s.name = m.request::json->>'study'"
    " LEFT JOIN held AS h ON h.key = " PG_STUDY_KEY " AND h.id = s.id"
    " WHERE NOT m.taken AND m.at > now() - interval '1 minute' AND CASE WHEN h.pid IS NULL"
    " THEN EXISTS (SELECT 1 FROM held AS d WHERE d.key = " PG_LOCK_KEY " AND d.id = 1 AND d.pid = pg_backend_pid())"
    " ELSE h.pid = pg_backend_pid() END";

/* Runs a statement with an id; *ret_text: its first column (mem_free), NULL: no row, or NULL. */
static enum status run(struct store *store, const char *sql, int64_t id, const char *text, char **ret_text,
                       struct error *err)
{
    struct db_stmt stmt = {0};
    int step = DB_DONE;
    enum status rc = store_sql_prepare(store, sql, &stmt, err);

    *ret_text = NULL;
    if (rc == ST_OK) {
        db_bind(&stmt, 1, val_i64(id));
        db_bind(&stmt, 2, val_text(text));
        rc = store_sql_step(store, &stmt, &step, what, err);
    }
    if (rc == ST_OK && step == DB_ROW)
        *ret_text = db_copy_text(&stmt, 0);
    store_sql_finalize(&stmt);
    return rc;
}

/* The same in a transaction. */
static enum status run_committed(struct store *store, const char *sql, int64_t id, const char *text, char **ret_text,
                                 struct error *err)
{
    TRY(store_begin(store, what, err));
    return store_end(store, run(store, sql, id, text, ret_text, err), what, err);
}

static enum status put(struct store *store, const char *request, int64_t *ret_id, struct error *err)
{
    struct db_stmt stmt = {0};
    int step = DB_DONE;

    TRY(store_begin(store, what, err));
    enum status rc = store_sql_prepare(store, "INSERT INTO mail (request) VALUES (?1) RETURNING id", &stmt, err);
    if (rc == ST_OK) {
        db_bind(&stmt, 1, val_text(request));
        rc = store_sql_step(store, &stmt, &step, what, err);
    }
    if (rc == ST_OK && step == DB_ROW)
        *ret_id = db_i64(&stmt, 0);
    store_sql_finalize(&stmt);
    store_hint(store, STORE_HINT_MAIL);
    return store_end(store, rc, what, err);
}

static enum status wait_for(struct store *store, int64_t id, double patience_s, bool (*cancel)(void), char **ret_answer,
                            struct error *err)
{
    double begin_s = clock_mono_s();
    enum status rc = ST_OK;

    while (rc == ST_OK && *ret_answer == NULL && clock_mono_s() - begin_s < patience_s && !cancel()) {
        (void)store_hint_wait(store, STORE_HINT_ANSWERS, LOOK_S);
        rc = run(store, "SELECT answer FROM mail WHERE id = ?1", id, NULL, ret_answer, err);
    }
    return rc;
}

enum status store_mail_call(const char *path, const char *study, const char *request, double patience_s,
                            bool (*cancel)(void), char **ret_answer, bool *ret_reached, struct error *err)
{
    struct store *store = NULL;
    MEM_LOCAL char *last = NULL;
    int64_t id = 0, pid;
    enum status rc = store_open_second(&store, path, err);

    *ret_answer = NULL;
    *ret_reached = false;
    if (rc == ST_OK && !store_is_held(path, study, &pid))
        rc = FAIL(err, ST_NOTFOUND, "no controller of %s is running", path);
    THEN(rc, store_listen(store, STORE_HINT_ANSWERS, err));
    THEN(rc, put(store, request, &id, err));
    *ret_reached = rc == ST_OK;
    THEN(rc, wait_for(store, id, patience_s, cancel, ret_answer, err));
    THEN(rc, run_committed(store, "DELETE FROM mail WHERE id = ?1 RETURNING answer", id, NULL, &last, err));
    if (*ret_answer == NULL) {
        *ret_answer = last; /* it came at the last moment */
        last = NULL;
    }
    store_close(store);
    if (rc == ST_OK && *ret_answer == NULL)
        rc = FAIL(err, cancel() ? ST_INTERRUPTED : ST_IO, "%s: the controller gives no answer: it is silent", path);
    return rc;
}

enum status store_mail_take(struct store *store, int64_t *ret_id, char **ret_request, struct error *err)
{
    struct db_stmt stmt = {0};
    int step = DB_DONE;

    *ret_id = 0;
    *ret_request = NULL;
    if (store->pg == NULL)
        return ST_OK;
    enum status rc = store_sql_prepare(store, oldest_sql, &stmt, err);
    THEN(rc, store_sql_step(store, &stmt, &step, what, err));
    if (rc == ST_OK && step == DB_ROW)
        *ret_id = db_i64(&stmt, 0);
    store_sql_finalize(&stmt);
    if (rc != ST_OK || *ret_id == 0)
        return rc;
    return run_committed(store, "UPDATE mail SET taken = true WHERE id = ?1 RETURNING request", *ret_id, NULL,
                         ret_request, err);
}

enum status store_mail_answer(struct store *store, int64_t id, const char *answer, struct error *err)
{
    char *none = NULL;

    TRY(store_begin(store, what, err));
    enum status rc = run(store, "UPDATE mail SET answer = ?2 WHERE id = ?1", id, answer, &none, err);
    store_hint(store, STORE_HINT_ANSWERS);
    TRY(store_end(store, rc, what, err));
    return store_exec(store, "DELETE FROM mail WHERE at < now() - interval '5 minutes'", what, err);
}
