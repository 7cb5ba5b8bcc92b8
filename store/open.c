/* open.c - a connection's life: the file is checked before SQLite opens it, locked (writer), opened, set up.
 *
 * Invariants: (1) a file of another program is never changed; (2) the writer holds PATH.lock from before the first
 * access until after the last; (3) readers open read-only and never wait for the writer (WAL).
 *
 * The log is folded back into the file at 250 pages, 1 MB, rather than at SQLite's 1000: on a small disk the log would
 * take the space that the file needs. Only the writer folds (a checkpoint); second connections and readers do not:
 * before 3.51.3 SQLite loses pages when one connection writes while another ends its second checkpoint in a row (the
 * WAL-reset bug). */
#include "store/store_priv.h"

#include "base/os/file.h"

#include <sys/stat.h>

#define CHECK_AT_OPEN_MAX_BYTES (256ll << 20)
#define FOLD_PAGES 250
#define TABLES_TRIES 50 /* while another controller makes the tables */
#define TABLES_US 100000

/* Is there nothing or an empty file at the store's path (*ret_empty), a file, or something to refuse? The file is not
 * opened here: closing it would drop SQLite's locks for another connection of this process. SQLite itself checks that
 * it is an SQLite file, which it reads before it writes. */
static enum status check_file(const struct store *store, bool *ret_empty, struct error *err)
{
    struct stat st;

    *ret_empty = true;
    TRY(store_address_check(store->path, err));
    if (stat(store->file, &st) != 0) {
        if (errno == ENOENT)
            return ST_OK;
        return FAIL(err, ST_IO, "%s cannot be opened (%s); give --store a path that you may read", store->path,
                    strerror(errno));
    }
    if (!S_ISREG(st.st_mode))
        return FAIL(err, ST_IO, "%s is not a file%s; give another path to --store", store->path,
                    S_ISDIR(st.st_mode) ? " but a directory" : "");
    if (st.st_nlink > 1)
        return FAIL(
            err, ST_IO,
            "%s has %ld names (hard links), and its log with the last writes is beside only one of them: two "
            "programs could write it at a time. Remove the others, or work on a copy ('trawl backup' makes one)",
            store->path, (long)st.st_nlink);
    if (access(store->file, R_OK) != 0)
        return FAIL(err, ST_IO, "%s cannot be opened (%s); give --store a path that you may read", store->path,
                    strerror(errno));
    *ret_empty = st.st_size == 0;
    return ST_OK;
}

static struct store *store_new(const char *path, bool writer)
{
    char real[PATH_MAX];
    const char *file = store_is_address(path) ? path : store_real_path(path, real);
    size_t size = strlen(file) + sizeof ".lock";
    struct store *store = mem_alloc(sizeof *store);

    store->writer = writer;
    store->lock_fd = -1;
    store->guard_fd = -1;
    store->path = mem_strdup(path);
    store->file = mem_strdup(file);
    store->lock_path = mem_alloc(size);
    snprintf(store->lock_path, size, "%s.lock", file);
    return store;
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int n_pages)
{
    (void)db, (void)name;
    if (n_pages >= FOLD_PAGES)
        store_fold_now(ctx);
    return SQLITE_OK;
}

/* Settings of this connection; none of them writes to the file. */
static enum status set_up(struct store *store, struct error *err)
{
    char text[96];

    sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
    sqlite3_extended_result_codes(store->db, 1);
    sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    TRY(store_exec(store,
                   "PRAGMA foreign_keys = ON; PRAGMA cell_size_check = ON;"
                   "PRAGMA temp_store = MEMORY; PRAGMA synchronous = NORMAL;",
                   "opening the store", err));
    snprintf(text, sizeof text, "PRAGMA journal_size_limit = %d; PRAGMA wal_autocheckpoint = 0", STORE_LOG_MAX_BYTES);
    TRY(store_exec(store, text, "opening the store", err));
    if (store->folds)
        sqlite3_wal_hook(store->db, on_commit, store);
    return ST_OK;
}

static enum status set_wal(struct store *store, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(store->db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
    enum status status = ST_OK;

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW) {
        status = store_sql_fail(store, rc, "opening the store", err);
    } else {
        const char *mode = (const char *)sqlite3_column_text(stmt, 0);
        if (mode == NULL || strcmp(mode, "wal") != 0)
            status = FAIL(err, ST_IO,
                          "%s: this file system cannot share memory, which the store's write-ahead log needs; put it "
                          "on a local disk",
                          store->path);
    }
    sqlite3_finalize(stmt);
    return status;
}

static enum status check_by(struct store *store, const char *pragma, const char *prefix, struct error *err)
{
    sqlite3_stmt *stmt = NULL;
    enum status status = ST_OK;
    int rc = sqlite3_prepare_v2(store->db, pragma, -1, &stmt, NULL);

    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        status = store_sql_fail(store, rc, "checking the store", err);
    else if (text != NULL && strcmp(text, "ok") != 0)
        status = FAIL(err, ST_CORRUPT,
                      "%s is damaged (%s%s); restore a copy, or save what is readable with 'sqlite3 %s .recover | "
                      "sqlite3 saved.db'",
                      store->path, prefix, text, store->path);
    sqlite3_finalize(stmt);
    return status;
}

enum status store_check(struct store *store, struct error *err)
{
    if (store->pg != NULL)
        return ST_OK; /* the server checks owners at each write */
    TRY(check_by(store, "PRAGMA integrity_check(1)", "", err));
    return check_by(store, "PRAGMA foreign_key_check", "a row without its owner in table ", err);
}

/* A sweep of hours should not be added to a damaged file. Reading the whole file takes about a second per GB. */
static enum status check_if_small(struct store *store, struct error *err)
{
    struct stat st;

    if (stat(store->file, &st) != 0 || st.st_size > CHECK_AT_OPEN_MAX_BYTES)
        return ST_OK;
    return check_by(store, "PRAGMA integrity_check(1)", "", err);
}

/* Rows have checksums, but indexes have none: an index that lost an entry hides a row. Takes as long as reading these
 * tables, which is without learning curves. */
static enum status check_indexes(struct store *store, struct error *err)
{
    static const char *const tables[] = {"study", "trial", "metric_name", "curve_sum"};
    char pragma[64];

    for (size_t i = 0; i < COUNT(tables); i++) {
        snprintf(pragma, sizeof pragma, "PRAGMA integrity_check('%s')", tables[i]);
        TRY(check_by(store, pragma, "", err));
    }
    return check_by(store, "PRAGMA foreign_key_check('trial')", "a row without its study in table ", err);
}

/* WAL mode is set only after the schema was found to be a store's, since setting it writes. */
static enum status open_checked(struct store *store, bool empty, struct error *err)
{
    int flags = store->writer ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    int rc = sqlite3_open_v2(store->file, &store->db, flags | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK)
        return store_sql_fail(store, rc, "opening the store", err);
    TRY(set_up(store, err));
    if (store->writer && empty)
        TRY(set_wal(store, err));
    TRY(store_schema_open(store, err));
    if (empty)
        return ST_OK;
    if (!store->blind)
        TRY(check_indexes(store, err));
    if (!store->writer)
        return ST_OK;
    TRY(check_if_small(store, err));
    return set_wal(store, err);
}

/* What opening came to: the store is the caller's, or closed. */
static enum status opened(struct store *store, enum status rc, struct store **ret_store)
{
    *ret_store = rc == ST_OK ? store : NULL;
    store->looked_s = clock_boot_s();
    if (rc != ST_OK)
        store_close(store);
    return rc;
}

static enum status open_address(struct store **ret_store, const char *path, enum pg_role role, struct error *err)
{
    struct store *store = store_new(path, role != PG_READER);

    store->second = role == PG_SECOND || role == PG_STUDIES;
    store->controls = role == PG_CONTROLLER || role == PG_STUDIES;
    enum status rc = pg_open(store, role, err);
    THEN(rc, store_schema_open(store, err));
    return opened(store, rc, ret_store);
}

enum status store_open_writer(struct store **ret_store, const char *path, struct error *err)
{
    if (store_is_address(path))
        return open_address(ret_store, path, PG_CONTROLLER, err);
    struct store *store = store_new(path, true);
    bool empty;

    enum status rc = check_file(store, &empty, err);
    THEN(rc, store_lock_take(store, err));
    if (rc == ST_OK) /* again: its owner may have just made it */
        rc = check_file(store, &empty, err);
    if (rc == ST_OK) {
        store->folds = true;
        rc = open_checked(store, empty, err);
    }
    THEN(rc, store_place_mark(store, err));
    return opened(store, rc, ret_store);
}

enum status store_open_controller(struct store **ret_store, const char *path, struct error *err)
{
    struct error why = {0};
    enum status rc;

    if (!store_is_address(path))
        return store_open_writer(ret_store, path, err);
    for (int i = 0;; i++) {
        error_clear(&why);
        rc = open_address(ret_store, path, PG_STUDIES, &why);
        if (rc != ST_NOTFOUND && rc != ST_VERSION)
            break;
        error_clear(&why); /* it is new, or of an older version: whoever has the lock of the store makes its tables */
        rc = store_open_writer(ret_store, path, &why);
        if (rc == ST_OK)
            store_close(*ret_store);
        else if (rc != ST_BUSY || i == TABLES_TRIES)
            break;
        else
            usleep(TABLES_US);
    }
    return rc == ST_OK ? ST_OK : error_set(err, rc, "%s", why.text);
}

/* Did opening fail because the log's shared memory could not be made: no right to write there, or a full disk? A store
 * that a controller has open has its shared memory already. */
static bool lacks_shared_memory(const struct store *store)
{
    int code = store->db != NULL ? sqlite3_extended_errcode(store->db) : SQLITE_OK;

    switch (code & 0xff) {
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_FULL:
        return true;
    case SQLITE_IOERR:
        return code == SQLITE_IOERR_SHMOPEN || code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMMAP;
    default:
        return false;
    }
}

/* Why a store that is there cannot be opened for writing, where the system says it: a read-only mount, no right. */
static void name_unwritable(const char *path, struct error *err)
{
    char folder[PATH_MAX];

    file_folder(path, folder, sizeof folder);
    if (!file_exists(path) || (access(path, W_OK) == 0 && access(folder, W_OK | X_OK) == 0))
        return;
    int why = errno;
    error_clear(err);
    (void)!FAIL(err, ST_IO, "%s cannot be written, and this has to write into it: %s", path, strerror(why));
}

enum status store_open_second(struct store **ret_store, const char *path, struct error *err)
{
    if (store_is_address(path))
        return open_address(ret_store, path, PG_SECOND, err);
    struct store *store = store_new(path, true);
    int code = sqlite3_open_v2(store->file, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    enum status rc = code == SQLITE_OK ? ST_OK : store_sql_fail(store, code, "opening the store", err);

    THEN(rc, set_up(store, err));
    THEN(rc, store_schema_open(store, err));
    if (rc != ST_OK && lacks_shared_memory(store))
        name_unwritable(path, err);
    return opened(store, rc, ret_store);
}

/* In a directory that cannot be written, the log's shared memory has no place. When no log is left, no process writes
 * the store, and it can be read as it is. */
static enum status open_immutable(struct store *store, struct error *err)
{
    char path[PATH_MAX + 8];
    struct stat log;

    sqlite3_close(store->db);
    store->db = NULL;
    snprintf(path, sizeof path, "%.*s-wal", PATH_MAX, store->file);
    if (stat(path, &log) == 0 && log.st_size > 0) /* readers may leave an empty log */
        return FAIL(
            err, ST_IO,
            "%s has an unfinished log beside it, which cannot be read: the directory cannot be written, or the disk is "
            "full; free some space, or copy the store with its -wal file to where you may write",
            store->path);
    STRBUF(uri, 4 * PATH_MAX);
    strbuf_add(&uri, store->file[0] == '/' ? "file://" : "file:");
    for (const char *c = store->file; *c != '\0'; c++)
        strbuf_addf(&uri, strchr("?#%", *c) != NULL ? "%%%02X" : "%c", (unsigned char)*c);
    strbuf_add(&uri, "?immutable=1");
    int rc = sqlite3_open_v2(uri.text, &store->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc != SQLITE_OK)
        return store_sql_fail(store, rc, "opening the store", err);
    store->immutable = true;
    TRY(set_up(store, err));
    TRY(store_schema_open(store, err));
    return store->blind ? ST_OK : check_indexes(store, err);
}

enum status store_open_blind(struct store **ret_store, const char *path, bool blind, struct error *err)
{
    if (store_is_address(path))
        return open_address(ret_store, path, PG_READER, err);
    struct error first = {ST_OK, ""};
    struct store *store = store_new(path, false);
    bool empty;

    store->blind = blind;
    enum status rc = check_file(store, &empty, err);
    if (rc == ST_OK && empty)
        rc = access(path, F_OK) == 0
                 ? FAIL(err, ST_NOTFOUND,
                        "%s is empty, no study was ever written to it; check --store or start with 'trawl sweep'", path)
                 : FAIL(err, ST_IO,
                        "there is no store at %s; check --store, or start one with 'trawl sweep CONFIG --store %s'",
                        path, SHELL_WORD(path));
    if (rc == ST_OK) {
        rc = open_checked(store, false, &first);
        if (rc == ST_IO && lacks_shared_memory(store))
            rc = open_immutable(store, err);
        else if (rc != ST_OK)
            error_set(err, rc, "%s", first.text);
    }
    return opened(store, rc, ret_store);
}

enum status store_open_reader(struct store **ret_store, const char *path, struct error *err)
{
    return store_open_blind(ret_store, path, false, err);
}

void store_close(struct store *store)
{
    if (store == NULL)
        return;
    for (int i = 0; i < SQL_COUNT; i++)
        store_sql_finalize(&store->stmts[i]);
    store_place_close(store);
    store_lock_drop(store);
    store_names_clear(store);
    mem_free(store->sums.v);
    mem_free(store->path);
    mem_free(store->file);
    mem_free(store->lock_path);
    mem_free(store);
}

const char *store_path(const struct store *store)
{
    return store->path;
}
