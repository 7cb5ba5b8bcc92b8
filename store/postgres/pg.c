/* pg.c - the connection to PostgreSQL: sessions, transactions, and what happens when the server goes away.
 *
 * Invariants: (1) a statement outside of a transaction, and the begin of one, are repeated on a new connection: neither
 * loses anything; (2) a transaction whose connection was lost before its commit is void, and the call that it belongs
 * to fails: store_wait_for_space has it repeated; (3) a commit whose answer was lost is looked up by the token that it
 * wrote; (4) a controller's session writes only while it holds the advisory lock, which ends with the session.
 *
 * The server notices within 5 s that the machine of a session has vanished (keepalives), and gives its lock free. */
#include "store/postgres/pg_priv.h"
#include "store/store_priv.h"

#define PATIENCE_S 10 /* for a server, where the store's owner does not wait */
#define FIRST_PAUSE_US 100000
#define LAST_PAUSE_US 1000000
#define CONNECTING "connecting"

/* Of each session. The keepalives are the server's, of this connection. */
static const char session_sql[] =
    "SET search_path = trawl; SET standard_conforming_strings = on; SET lock_timeout = '10s';"
    "SET default_transaction_isolation = 'read committed';"
    "SET tcp_keepalives_idle = 2; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3;"
    "SET tcp_user_timeout = 5000;";

static void on_notice(void *ctx, const char *text)
{
    (void)ctx;
    log_debug("PostgreSQL: %.*s", (int)strcspn(text, "\n"), text);
}

PGconn *pg_connect(const char *address, const char *who)
{
    /* What stands in the address overrides what stands before it. */
    const char *const keys[] = {"connect_timeout",  "keepalives_idle",  "keepalives_interval",
                                "keepalives_count", "tcp_user_timeout", "dbname",
                                "application_name", "client_encoding",  NULL};
    const char *const values[] = {"5", "5", "2", "3", "10000", address, who, "UTF8", NULL};
    PGconn *conn = pq.connectdbParams(keys, values, 1);

    pq.setNoticeProcessor(conn, on_notice, NULL);
    return conn;
}

/* One line, without the server's "FATAL:  " in front. */
static const char *conn_text(const PGconn *conn, char *buf, size_t size)
{
    const char *text = pq.errorMessage(conn), *fatal;

    while ((fatal = strstr(text, "FATAL:  ")) != NULL)
        text = fatal + strlen("FATAL:  ");
    snprintf(buf, size, "%.*s", (int)strcspn(text, "\n"), text);
    return buf[0] != '\0' ? buf : "the connection was closed";
}

static enum status fail_by_state(struct store *store, const char *state, const char *text, const char *what,
                                 struct error *err)
{
    if (strcmp(state, "53100") == 0) {
        store->full = true;
        return FAIL(err, ST_IO, "%s: %s: the database's disk is full, nothing was half-written; free some space there",
                    store->path, what);
    }
    if (strncmp(state, "57P0", 4) == 0 || strcmp(state, "53300") == 0 || strcmp(state, "40P01") == 0 ||
        strcmp(state, "40001") == 0) { /* it shuts down or starts, has too many clients, or broke a deadlock */
        store->away = true;
        return FAIL(err, ST_IO, "%s: %s: the database did not finish it (%s); try again", store->path, what, text);
    }
    if (strcmp(state, "55P03") == 0)
        return FAIL(err, ST_BUSY, "%s: %s: another program kept rows locked for 10 s (%s); close it and try again",
                    store->path, what, text);
    if (strcmp(state, "23505") == 0)
        return FAIL(err, ST_EXISTS, "%s: %s: it already exists (%s)", store->path, what, text);
    if (strcmp(state, "42P01") == 0 || strcmp(state, "42703") == 0)
        return FAIL(err, ST_CORRUPT, "%s: the tables are not those of a Trawl store (%s); restore a copy", store->path,
                    text);
    if (strcmp(state, "42501") == 0 || strcmp(state, "25006") == 0)
        return FAIL(err, ST_IO, "%s: %s: %s; the database's user needs the right to do that", store->path, what, text);
    if (strncmp(state, "XX", 2) == 0)
        return FAIL(err, ST_CORRUPT, "%s: %s: the database is damaged (%s); restore a copy", store->path, what, text);
    return FAIL(err, ST_INTERNAL, "%s: %s: %s (SQLSTATE %s)", store->path, what, text, state);
}

/* No connection, or one that broke. A server that answers and refuses does so with a text of its own. */
static enum status fail_to_connect(struct store *store, const char *what, struct error *err)
{
    const PGconn *conn = store->pg->conn;
    const char *name = pq.db(conn) != NULL ? pq.db(conn) : "", *host = pq.host(conn), *port = pq.port(conn);
    char buf[400], missing[128];
    const char *text = conn_text(conn, buf, sizeof buf);

    snprintf(missing, sizeof missing, "database \"%.80s\" does not exist", name);
    if (strstr(text, missing) != NULL)
        return FAIL(err, ST_IO, "%s: %s; make it with 'createdb%s%s%s%s -E UTF8 -T template0 %s'", store->path, text,
                    host != NULL && host[0] != '\0' ? " -h " : "", host != NULL ? host : "",
                    port != NULL && port[0] != '\0' ? " -p " : "", port != NULL ? port : "", SHELL_WORD(name));
    if (strstr(pq.errorMessage(conn), "FATAL:  ") != NULL && strcmp(what, CONNECTING) == 0)
        return FAIL(err, ST_IO,
                    "%s: the server refuses the connection (%s); check user, password and database, or try "
                    "again",
                    store->path, text);
    return FAIL(err, ST_IO, "%s: %s: the database does not answer (%s); check that it runs and try again", store->path,
                what, text);
}

enum status pg_fail(struct store *store, PGresult *res, const char *what, struct error *err)
{
    struct pg *pg = store->pg;
    const char *state = res != NULL ? pq.resultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *text = res != NULL ? pq.resultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

    if (pq.status(pg->conn) != CONNECTION_OK || state == NULL) {
        pg->lost = pg->in_transaction;
        store->away = true;
        return fail_to_connect(store, what, err);
    }
    return fail_by_state(store, state, text != NULL ? text : "", what, err);
}

/* ---- sessions ---- */

/* Runs a text outside of prepared statements; *ret_value: the last result's only value, "" when it has none. */
static enum status simple(struct store *store, const char *sql, char *ret_value, size_t size, const char *what,
                          struct error *err)
{
    PGresult *res = pq.exec(store->pg->conn, sql);
    ExecStatusType got = pq.resultStatus(res);
    enum status rc = got == PGRES_COMMAND_OK || got == PGRES_TUPLES_OK ? ST_OK : pg_fail(store, res, what, err);

    if (ret_value != NULL)
        snprintf(ret_value, size, "%s", got == PGRES_TUPLES_OK && pq.ntuples(res) > 0 ? pq.getvalue(res, 0, 0) : "");
    pq.clear(res);
    return rc;
}

static enum status listen_now(struct store *store, struct error *err)
{
    char sql[PG_HINTS_SQL_MAX];

    pg_hints_to_sql(store->pg->listens, "LISTEN", sql);
    store->pg->came |= store->pg->listens; /* what came before now was missed */
    return simple(store, sql, NULL, 0, "listening for changes", err);
}

/* Makes a fresh connection ready: settings, role, lock. */
static enum status set_up(struct store *store, struct error *err)
{
    struct pg *pg = store->pg;

    pg->generation++;
    pg->n_queued = 0;
    if (pq.status(pg->conn) != CONNECTION_OK)
        return pg_fail(store, NULL, CONNECTING, err);
    if (pq.serverVersion(pg->conn) < 130000)
        return FAIL(err, ST_VERSION, "%s: PostgreSQL 13 or newer is needed, this one is %d", store->path,
                    pq.serverVersion(pg->conn) / 10000);
    if (strcmp(pq.parameterStatus(pg->conn, "server_encoding"), "UTF8") != 0)
        return FAIL(err, ST_USAGE,
                    "%s: the database's encoding is %s, and UTF8 is needed: make one with "
                    "'createdb -E UTF8 -T template0 NAME'",
                    store->path, pq.parameterStatus(pg->conn, "server_encoding"));
    enum status rc = simple(store, session_sql, NULL, 0, CONNECTING, err);
    if (rc == ST_OK && pg->listens != 0)
        rc = listen_now(store, err);
    if (rc == ST_OK && pg->role == PG_READER)
        rc = simple(store, "SET default_transaction_read_only = on", NULL, 0, CONNECTING, err);
    return rc == ST_OK && pg->role >= PG_STUDIES ? pg_lock(store, err) : rc;
}

enum status pg_open(struct store *store, enum pg_role role, struct error *err)
{
    struct pg *pg;

    TRY(pg_address_check(store->path, err));
    pg = store->pg = mem_alloc(sizeof *pg);
    pg->role = role;
    pg_name_self(pg->who);
    pg->conn = pg_connect(store->path, pg->who);
    return set_up(store, err);
}

void pg_close(struct pg *pg)
{
    if (pg == NULL)
        return;
    pq.finish(pg->conn);
    mem_free(pg->studies);
    mem_free(pg);
}

/* Waits between two attempts; false: no more of them. */
static bool wait_for_server(struct store *store, double since_s, useconds_t *pause_us)
{
    bool again =
        store->wait != NULL ? store->wait(store->wait_ctx, store->path, false) : clock_mono_s() - since_s < PATIENCE_S;

    if (again && store->wait == NULL)
        usleep(*pause_us);
    *pause_us = *pause_us * 2 < LAST_PAUSE_US ? *pause_us * 2 : LAST_PAUSE_US;
    return again;
}

static enum status connect_again(struct store *store, struct error *err)
{
    struct pg *pg = store->pg;
    double since_s = clock_mono_s();
    useconds_t pause_us = FIRST_PAUSE_US;
    struct error why = {0};
    enum status rc;
    bool waited = false;

    log_debug("%s: connecting again", store->path);
    store->given_up = false;
    for (;;) {
        pq.finish(pg->conn);
        pg->conn = pg_connect(store->path, pg->who);
        error_clear(&why);
        store->away = false;
        rc = set_up(store, &why);
        if (rc == ST_OK || !store->away)
            break;
        waited = waited || store->wait != NULL;
        if (!wait_for_server(store, since_s, &pause_us)) {
            store->given_up = true;
            break;
        }
    }
    if (waited && rc == ST_OK)
        (void)store->wait(store->wait_ctx, store->path, true);
    if (rc == ST_BUSY)
        store->taken = true;
    store_names_clear(store);
    return rc == ST_OK ? ST_OK : error_set(err, rc, "%s", why.text);
}

enum status pg_ready(struct store *store, const char *what, struct error *err)
{
    struct pg *pg = store->pg;

    if (pg->lost) {
        store->away = true;
        return FAIL(err, ST_IO, "%s: %s: the connection to the database was lost; try again", store->path, what);
    }
    return pq.status(pg->conn) == CONNECTION_OK ? ST_OK : connect_again(store, err);
}

/* ---- transactions ---- */

/* simple() outside of a transaction: once more when the connection turns out to be lost. */
static enum status simple_again(struct store *store, const char *sql, char *ret_value, size_t size, const char *what,
                                struct error *err)
{
    struct error why = {0};

    for (;;) {
        TRY(pg_ready(store, what, err));
        store->away = false;
        enum status rc = simple(store, sql, ret_value, size, what, &why);
        if (rc == ST_OK || pq.status(store->pg->conn) == CONNECTION_OK)
            return rc == ST_OK ? ST_OK : error_set(err, rc, "%s", why.text);
        error_clear(&why);
    }
}

enum status pg_exec(struct store *store, const char *sql, const char *what, struct error *err)
{
    TRY(pg_drain(store, what, err));
    return store->pg->in_transaction ? simple(store, sql, NULL, 0, what, err)
                                     : simple_again(store, sql, NULL, 0, what, err);
}

enum status pg_begin(struct store *store, bool writes, bool synced, const char *what, struct error *err)
{
    struct pg *pg = store->pg;
    char sql[400];

    if (writes)
        snprintf(sql, sizeof sql,
                 "BEGIN; SET LOCAL synchronous_commit = %s; INSERT INTO session (who, token) VALUES ('%s', %llu) ON "
                 "CONFLICT (who) DO UPDATE SET token = excluded.token, at = now()",
                 synced ? "on" : "off", pg->who, (unsigned long long)++pg->token);
    else
        snprintf(sql, sizeof sql, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    TRY(simple_again(store, sql, NULL, 0, what, err));
    pg->in_transaction = true;
    pg->sends = 0;
    pg->writes = writes;
    pg->lost = false;
    store->away = false;
    return ST_OK;
}

/* What became of the transaction whose commit was not answered? It wrote its token into this connection's row, which is
 * locked until it has ended. Its number alone (pg_xact_status) would not do: after a crash another may have the
 * same. */
static enum status look_up(struct store *store, const char *what, struct error *err)
{
    char sql[160], token[32], mine[32];

    snprintf(sql, sizeof sql, "SELECT token FROM session WHERE who = '%s' FOR UPDATE", store->pg->who);
    TRY(simple_again(store, sql, token, sizeof token, what, err));
    snprintf(mine, sizeof mine, "%llu", (unsigned long long)store->pg->token);
    if (strcmp(token, mine) == 0)
        return ST_OK;
    store->away = true;
    return FAIL(err, ST_IO, "%s: %s: the connection to the database was lost before it was done; try again",
                store->path, what);
}

enum status pg_commit(struct store *store, const char *what, struct error *err)
{
    struct pg *pg = store->pg;
    struct error why = {0};
    char sql[PG_HINTS_SQL_MAX + sizeof "COMMIT"];

    TRY(pg_ready(store, what, err));
    TRY(pg_drain(store, what, err));
    pg_hints_to_sql(pg->sends, "NOTIFY", sql);
    strcat(sql, "COMMIT");
    PGresult *res = pq.exec(pg->conn, sql);
    enum status rc = pq.resultStatus(res) != PGRES_COMMAND_OK ? pg_fail(store, res, what, &why)
                     : strcmp(pq.cmdStatus(res), "COMMIT") != 0
                         ? FAIL(&why, ST_INTERNAL, "%s: %s: a statement of it had failed", store->path, what)
                         : ST_OK;
    pq.clear(res);
    if (pq.transactionStatus(pg->conn) == PQTRANS_INERROR) /* the hint failed, since a statement had */
        pq.clear(pq.exec(pg->conn, "ROLLBACK"));
    pg->in_transaction = pg->lost = false;
    if (rc == ST_OK)
        return ST_OK;
    if (pq.status(pg->conn) != CONNECTION_OK && pg->writes)
        return look_up(store, what, err);
    return error_set(err, rc, "%s", why.text);
}

void pg_rollback(struct store *store)
{
    struct pg *pg = store->pg;

    if (pg->in_transaction && pq.status(pg->conn) == CONNECTION_OK) {
        if (pg_drain(store, "", NULL) != ST_OK)
            log_debug("%s: what was queued of a transaction had failed", store->path);
        pq.clear(pq.exec(pg->conn, "ROLLBACK"));
    }
    pg->in_transaction = pg->lost = false;
}

enum status pg_listen(struct store *store, unsigned hints, struct error *err)
{
    store->pg->listens |= hints;
    TRY(pg_ready(store, "listening for changes", err));
    return listen_now(store, err);
}

void pg_unlisten(struct pg *pg)
{
    pg->listens = pg->came = 0;
    if (pq.status(pg->conn) == CONNECTION_OK && !pg->in_transaction)
        pq.clear(pq.exec(pg->conn, "UNLISTEN *"));
}

void pg_send_hint(struct pg *pg, unsigned hint)
{
    pg->sends |= hint;
}

bool pg_in_transaction(const struct pg *pg)
{
    return pg->in_transaction;
}

/* The server's snapshot differs when any transaction that wrote has begun or ended in between, also one of another
 * database: a change may be seen where there is none, never the reverse, and no write pays for it. */
enum status pg_data_version(struct store *store, int64_t *ret_version, struct error *err)
{
    struct pg *pg = store->pg;
    char now[sizeof pg->snapshot];

    TRY(simple_again(store, "SELECT pg_current_snapshot()", now, sizeof now, "looking for changes", err));
    if (strcmp(now, pg->snapshot) != 0)
        pg->version++;
    memcpy(pg->snapshot, now, sizeof now);
    *ret_version = pg->version;
    return ST_OK;
}
