/* pg_lock.c - one controller for each study of a store in PostgreSQL, one daemon for those that have none, and others
 * that wait to take their places.
 *
 * A lock is an advisory one of the controller's session: of the store for the daemon, and of each study that it or
 * another controller serves. The server gives it free when the session ends: at once when
 * the process dies, within 5 s when its machine vanishes (the keepalives that pg.c sets). A standby takes over when the
 * lock was free for STORE_FREE_S: after a restart of the server its controller is back sooner, and keeps its trials. */
#include "store/postgres/pg_priv.h"
#include "store/store_priv.h"

#include "base/hash.h"

#include <signal.h>

#define LOOK_US 500000
#define OLD_SESSION_TRIES 50 /* to end a session that this controller lost */
#define OLD_SESSION_US 100000
#define GONE_TRIES 10 /* for the end of one that was closed, or whose process is gone */

/* Locks of this database that other sessions hold. */
#define HOLDER_SQL                                                                                                     \
    "SELECT a.application_name, a.pid FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid "                 \
    "WHERE l.locktype = 'advisory' AND l.granted AND l.pid <> pg_backend_pid() AND l.objsubid = 2 AND l.database = "   \
    "(SELECT oid FROM pg_database WHERE datname = current_database()) AND "
#define OF_STORE "(l.classid = " PG_LOCK_KEY " AND l.objid = 1)"
#define OF_STUDIES "l.classid = " PG_STUDY_KEY

void pg_name_self(char who[PG_WHO_MAX])
{
    char host[32] = "";

    (void)gethostname(host, sizeof host - 1);
    for (char *c = host; *c != '\0'; c++) /* it stands in SQL */
        if (*c == '\'' || *c == '\\')
            *c = '_';
    /* The last word distinguishes this connection from others of the process. */
    snprintf(who, PG_WHO_MAX, "trawl %ld %.31s %x", (long)getpid(), host, (unsigned)(clock_mono_ns() >> 10));
}

/* The session that a query of locks finds: its application_name, "" when there is none; false: the server did not
 * answer. */
static bool find_session(PGconn *conn, const char *sql, char who[PG_WHO_MAX], int *ret_backend)
{
    PGresult *res = pq.exec(conn, sql);
    bool ok = pq.resultStatus(res) == PGRES_TUPLES_OK, held = ok && pq.ntuples(res) > 0;

    snprintf(who, PG_WHO_MAX, "%s", held ? pq.getvalue(res, 0, 0) : "");
    *ret_backend = held ? atoi(pq.getvalue(res, 0, 1)) : 0;
    pq.clear(res);
    return ok;
}

/* The holder of one of these locks, as find_session has it. */
static bool holder(PGconn *conn, unsigned locks, const char *study, char who[PG_WHO_MAX], int *ret_backend)
{
    char *name = (locks & PG_HELD_STUDY) != 0 ? pq.escapeLiteral(conn, study, strlen(study)) : NULL;
    char sql[1200];

    if (locks & PG_HELD_ANY)
        snprintf(sql, sizeof sql, HOLDER_SQL "(" OF_STORE " OR " OF_STUDIES ")");
    else if (locks & PG_HELD_STUDY)
        snprintf(sql, sizeof sql,
                 HOLDER_SQL "(%s OR (" OF_STUDIES " AND l.objid = (SELECT id FROM trawl.study WHERE name = %.300s)))",
                 (locks & PG_HELD_STORE) != 0 ? OF_STORE : "false", name != NULL ? name : "''");
    else
        snprintf(sql, sizeof sql, HOLDER_SQL OF_STORE);
    pq.freemem(name);
    return find_session(conn, sql, who, ret_backend);
}

/* "process 12 on HOST". *ret_pid: 0 unless the process is on this machine. */
static void describe(const char *who, char *buf, size_t size, int64_t *ret_pid)
{
    char host[PG_WHO_MAX] = "", here[PG_WHO_MAX] = "";
    long pid = 0;

    (void)gethostname(here, sizeof here - 1);
    if (sscanf(who, "trawl %ld %63s", &pid, host) == 2)
        snprintf(buf, size, "process %ld on %s", pid, host);
    else
        snprintf(buf, size, "session %s", who);
    *ret_pid = strncmp(host, here, 31) == 0 ? pid : 0;
}

/* Whether a session is of this process, which has closed it, or of one that is gone: the server gives its locks free a
 * moment later. */
static bool may_be_ending(const char *who)
{
    char text[PG_WHO_MAX + 32];
    int64_t pid;

    describe(who, text, sizeof text, &pid);
    return pid == getpid() || (pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

static enum status take(struct store *store, const char *key, int64_t id, bool *ret_took, struct error *err)
{
    char sql[96];

    snprintf(sql, sizeof sql, "SELECT pg_try_advisory_lock(%s, %lld)", key, (long long)id);
    PGresult *res = pq.exec(store->pg->conn, sql);
    bool ok = pq.resultStatus(res) == PGRES_TUPLES_OK;
    enum status rc = ok ? ST_OK : pg_fail(store, res, "taking the controller's lock", err);

    *ret_took = ok && pq.getvalue(res, 0, 0)[0] == 't';
    pq.clear(res);
    return rc;
}

static enum status lock_one(struct store *store, const char *key, int64_t id, struct error *err)
{
    struct pg *pg = store->pg;
    char who[PG_WHO_MAX] = "", text[PG_WHO_MAX + 32], sql[700];
    bool took = false, is_store = strcmp(key, PG_LOCK_KEY) == 0;
    int backend;
    int64_t pid;

    for (int i = 0; i < OLD_SESSION_TRIES; i++) {
        TRY(take(store, key, id, &took, err));
        if (took)
            return ST_OK;
        snprintf(sql, sizeof sql, HOLDER_SQL "l.classid = %s AND l.objid = %lld", key, (long long)id);
        if (!find_session(pg->conn, sql, who, &backend))
            break;
        bool is_other = strcmp(who, pg->who) != 0 && who[0] != '\0';
        if (is_other && (i >= GONE_TRIES || !may_be_ending(who)))
            break;
        /* A session of this very connection, which the server has not missed yet. */
        snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d)", backend);
        if (!is_other && backend != 0)
            pq.clear(pq.exec(pg->conn, sql));
        usleep(OLD_SESSION_US);
    }
    describe(who, text, sizeof text, &pid);
    return FAIL(err, ST_BUSY,
                "%s%s is in use by another sweep or daemon (%s); wait for it, stop it, or give another %s. "
                "%s waits and takes over when it ends; reading commands work meanwhile",
                store->path, is_store ? "" : ": the study", text, is_store ? "database to --store" : "name to --name",
                is_store ? "`trawl daemon`" : "`trawl sweep --standby --resume`");
}

enum status pg_lock(struct store *store, struct error *err)
{
    if (store->pg->role == PG_CONTROLLER)
        TRY(lock_one(store, PG_LOCK_KEY, 1, err));
    for (size_t i = 0; i < store->pg->n_studies; i++)
        TRY(lock_one(store, PG_STUDY_KEY, store->pg->studies[i], err));
    return ST_OK;
}

static size_t find_study(const struct pg *pg, int64_t study_id)
{
    size_t i = 0;

    while (i < pg->n_studies && pg->studies[i] != study_id)
        i++;
    return i;
}

enum status pg_lock_study(struct store *store, int64_t study_id, struct error *err)
{
    struct pg *pg = store->pg;

    if (find_study(pg, study_id) < pg->n_studies)
        return ST_OK;
    TRY(pg_ready(store, "taking a study's lock", err));
    TRY(lock_one(store, PG_STUDY_KEY, study_id, err));
    MEM_ROOM(pg->studies, pg->n_studies, pg->cap_studies);
    pg->studies[pg->n_studies++] = study_id;
    return ST_OK;
}

void pg_unlock_study(struct store *store, int64_t study_id)
{
    struct pg *pg = store->pg;
    size_t i = find_study(pg, study_id);
    char sql[96];

    if (i == pg->n_studies)
        return;
    pg->studies[i] = pg->studies[--pg->n_studies];
    snprintf(sql, sizeof sql, "SELECT pg_advisory_unlock(" PG_STUDY_KEY ", %lld)", (long long)study_id);
    if (pq.status(pg->conn) == CONNECTION_OK) /* else it has ended with the session */
        pq.clear(pq.exec(pg->conn, sql));
}

bool pg_is_held(const char *address, unsigned locks, const char *study, char *ret_who, size_t size, int64_t *ret_pid)
{
    char who[PG_WHO_MAX] = "";
    int backend;

    *ret_pid = 0;
    if (size > 0)
        ret_who[0] = '\0';
    if (pq_open(NULL) != ST_OK)
        return false;
    PGconn *conn = pg_connect(address, "trawl looks");
    bool held = pq.status(conn) == CONNECTION_OK &&
                holder(conn, study != NULL ? locks : locks & ~(unsigned)PG_HELD_STUDY, study, who, &backend) &&
                who[0] != '\0';
    if (held)
        describe(who, ret_who, size, ret_pid);
    pq.finish(conn);
    return held;
}

bool pg_has_holder(struct store *store)
{
    char who[PG_WHO_MAX] = "";
    int backend;

    return pg_ready(store, "looking for the controller", NULL) == ST_OK &&
           holder(store->pg->conn, PG_HELD_ANY, NULL, who, &backend) && who[0] != '\0';
}

enum status pg_stand_by(const char *address, const char *study, bool (*cancel)(void), struct error *err)
{
    TRY(pq_open(err));

    PGconn *conn = pg_connect(address, "trawl stands by");
    double free_s = 0; /* since when the lock is seen free; 0: it is not */
    char who[PG_WHO_MAX];
    int backend;

    while (!cancel() && (free_s == 0 || clock_mono_s() - free_s < STORE_FREE_S)) {
        if (pq.status(conn) != CONNECTION_OK) {
            pq.finish(conn);
            conn = pg_connect(address, "trawl stands by");
            free_s = 0;
        } else if (!holder(conn, study != NULL ? PG_HELD_STUDY : PG_HELD_STORE, study, who, &backend) ||
                   who[0] != '\0') {
            free_s = 0;
        } else if (free_s == 0) {
            free_s = clock_mono_s();
        }
        usleep(LOOK_US);
    }
    pq.finish(conn);
    return cancel() ? FAIL(err, ST_INTERRUPTED, "asked to stop while another controller had the %s",
                           study != NULL ? "study" : "store")
                    : ST_OK;
}

enum status pg_library_open(struct error *err)
{
    return pq_open(err);
}

/* ---- addresses ---- */

static const char *option(const PQconninfoOption *options, const char *key)
{
    for (; options != NULL && options->keyword != NULL; options++)
        if (strcmp(options->keyword, key) == 0 && options->val != NULL && options->val[0] != '\0')
            return options->val;
    return NULL;
}

enum status pg_address_check(const char *address, struct error *err)
{
    TRY(pq_open(err));

    PQconninfoOption *options = pq.conninfoParse(address, NULL);
    bool secret = option(options, "password") != NULL || option(options, "sslpassword") != NULL;

    pq.conninfoFree(options);
    if (options == NULL) /* neither the address nor libpq's message is shown: they may hold a password */
        return FAIL(err, ST_USAGE,
                    "the store's address is none that PostgreSQL understands; it has the form "
                    "postgresql://[USER@]HOST[:PORT]/DATABASE, or postgresql:///DATABASE?host=/FOLDER/OF/THE/SOCKET");
    if (secret)
        return FAIL(
            err, ST_USAGE,
            "the store's address has a password, which ps, logs and pages would show; leave it out and put it "
            "into ~/.pgpass (HOST:PORT:DATABASE:USER:PASSWORD, mode 600) or another file that PGPASSFILE names, "
            "or name a service (postgresql://?service=NAME)");
    return ST_OK;
}

void pg_address_name(const char *address, char *buf, size_t size)
{
    static const char *const keys[] = {"service", "host", "hostaddr", "port", "dbname"};

    snprintf(buf, size, "none");
    if (pq_open(NULL) != ST_OK)
        return;

    PQconninfoOption *given = pq.conninfoParse(address, NULL), *defaults = pq.conndefaults();
    const char *host = option(given, "host"), *db = option(given, "dbname");
    uint64_t hash = HASH_START;

    for (size_t i = 0; i < COUNT(keys); i++) {
        const char *value = option(given, keys[i]);
        if (value == NULL)
            value = option(defaults, keys[i]);
        if (value != NULL)
            hash = hash_bytes(hash, value, strlen(value));
        hash = hash_bytes(hash, "\xff", 1);
    }
    snprintf(buf, size, "%.40s-%.40s-%08x", host != NULL && host[0] != '/' ? host : "local",
             db != NULL ? db : "default", (unsigned)(hash ^ hash >> 32));
    for (char *c = buf; *c != '\0'; c++)
        if (strchr("/ %?:@", *c) != NULL)
            *c = '_';
    pq.conninfoFree(given);
    pq.conninfoFree(defaults);
}
