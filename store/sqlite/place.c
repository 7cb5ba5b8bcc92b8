/* place.c - a store whose file goes away while it is open, and copies of an open store.
 *
 * A process that has a file open keeps it when its name is removed, moved or given to another file: SQLite continues to
 * write to a file without a name. The writer therefore checks at times that the names of its three files (the store,
 * its log, the log's shared memory) and of its lock still lead to the open files. A file that is copied over the store
 * keeps its name; it shows in time and size, which only folding the log changes. Copies are made by SQLite's backup of
 * the open connection, which also reads a file without a name. A copy is written beside its name and gets the name when
 * it is whole. */
#include "store/store_priv.h"

#include "base/os/file.h"

#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define COPY_TRIES 100 /* for a step that meets a lock, 50 ms apart */
#define COPY_WAIT_US 50000

static const char *const suffixes[] = {"", "-wal", "-shm"};

/* Checks one file; a log that did not exist when the store was opened is noted when it appears. */
static enum status look(struct store *store, size_t i, struct error *err)
{
    struct store_mark *mark = &store->marks[i];
    char path[PATH_MAX + 8];
    struct stat st;

    snprintf(path, sizeof path, "%.*s%s", PATH_MAX, store->file, suffixes[i]);
    if (stat(path, &st) != 0) {
        if (mark->ino == 0 || (errno != ENOENT && errno != ENOTDIR && errno != ESTALE))
            return ST_OK; /* a file that cannot be seen at the moment is not gone */
        return FAIL(err, ST_IO, "%s was removed or moved while the store was in use", path);
    }
    if (mark->ino == 0)
        *mark = (struct store_mark){.dev = st.st_dev, .ino = st.st_ino};
    else if (mark->ino != st.st_ino || mark->dev != st.st_dev)
        return FAIL(err, ST_IO, "%s was replaced by another file while the store was in use", path);
    return ST_OK;
}

static atomic_bool warned; /* one for the process, as SQLite's log is */

/* Called by SQLite in any thread. Failures of calls are reported where the call was made. */
static void on_sqlite_log(void *ctx, int code, const char *text)
{
    (void)ctx;
    if ((code & 0xff) == SQLITE_WARNING && code != SQLITE_WARNING_AUTOINDEX)
        atomic_store(&warned, true);
    log_debug("SQLite: %s (%d)", text, code);
}

void store_sqlite_log(void)
{
    (void)sqlite3_config(SQLITE_CONFIG_LOG, on_sqlite_log, NULL);
}

bool store_sqlite_warned(void)
{
    return atomic_exchange(&warned, false);
}

static bool changed_by_others(const struct store *store)
{
    struct stat st;

    return stat(store->file, &st) == 0 && (st.st_size != store->size || st.st_mtim.tv_sec != store->written.tv_sec ||
                                           st.st_mtim.tv_nsec != store->written.tv_nsec);
}

static void note_change(struct store *store)
{
    struct stat st;

    if (stat(store->file, &st) != 0)
        return;
    store->size = st.st_size;
    store->written = st.st_mtim;
}

enum status store_place_mark(struct store *store, struct error *err)
{
    int moved = 0;

    note_change(store);
    for (size_t i = 0; i < COUNT(suffixes); i++)
        TRY(look(store, i, err));
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0)
        return FAIL(err, ST_IO, "%s was removed or replaced while it was being opened; try again", store->path);
    return ST_OK;
}

void store_fold_now(struct store *store)
{
    if (!store->folds || store->overwritten || !sqlite3_get_autocommit(store->db))
        return;
    store->touched = store->touched || (store->size > 0 && changed_by_others(store));
    if (store->touched)
        return;
    (void)sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    note_change(store);
}

static enum status count_trials(struct store *store, int64_t *ret_n)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = sqlite3_prepare_v2(store->db, "SELECT count(*) FROM trial", -1, &stmt, NULL) == SQLITE_OK &&
              sqlite3_step(stmt) == SQLITE_ROW;

    *ret_n = ok ? sqlite3_column_int64(stmt, 0) : -1;
    sqlite3_finalize(stmt);
    return ok ? ST_OK : ST_CORRUPT;
}

static bool is_whole(struct store *store)
{
    sqlite3_stmt *stmt = NULL;
    bool ok = sqlite3_prepare_v2(store->db, "PRAGMA quick_check(1)", -1, &stmt, NULL) == SQLITE_OK &&
              sqlite3_step(stmt) == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") == 0;

    sqlite3_finalize(stmt);
    return ok;
}

/* Another process has written into the file: a program that folds the log (a database browser, which is harmless), or a
 * copy of another file over it? Opening the file shows it. */
static enum status look_inside(struct store *store, struct error *err)
{
    struct store *fresh = NULL;
    struct error why = {0};
    int64_t n_ours = 0, n_fresh = -1;
    enum status rc = store_open_reader(&fresh, store->path, &why);

    THEN(rc, count_trials(fresh, &n_fresh));
    if (rc == ST_OK && !is_whole(fresh)) /* another file's pages below those of our log */
        n_fresh = -1;
    store_close(fresh);
    if (rc == ST_BUSY)
        return ST_OK; /* checked again next time */
    THEN(rc, count_trials(store, &n_ours));
    if (rc == ST_OK && n_ours == n_fresh) {
        store->touched = false;
        note_change(store);
        return ST_OK;
    }
    store->overwritten = true;
    return FAIL(err, ST_IO, "%s was overwritten while the store was in use", store->path);
}

enum status store_place_check(struct store *store, bool *ret_lock_again, struct error *err)
{
    *ret_lock_again = false;
    if (store->pg != NULL) { /* connects again, where the connection is lost; a write reports what else is wrong */
        enum status rc = store_exec(store, "SELECT 1", "looking at the database", err);
        if (rc != ST_OK && rc != ST_BUSY)
            error_clear(err);
        return rc == ST_BUSY ? rc : ST_OK;
    }
    for (size_t i = 0; i < COUNT(suffixes); i++)
        TRY(look(store, i, err));
    if (store->touched || changed_by_others(store))
        TRY(look_inside(store, err));
    return store_lock_keep(store, ret_lock_again, err);
}

/* The first bytes as they are on the disk, read by SQLite's own descriptor: opening and closing another one would drop
 * its locks. */
static enum status check_head(struct store *store, struct error *err)
{
    static const char magic[16] = "SQLite format 3";
    sqlite3_file *file = NULL;
    char head[sizeof magic];

    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file == NULL ||
        file->pMethods == NULL)
        return ST_OK;
    if (file->pMethods->xRead(file, head, sizeof head, 0) != SQLITE_OK || memcmp(head, magic, sizeof magic) != 0)
        return FAIL(err, ST_CORRUPT, "%s is no longer a store: it was written over while it was in use; restore a copy",
                    store->path);
    return ST_OK;
}

enum status store_reader_check(struct store *store, struct error *err)
{
    char path[PATH_MAX + 8];
    struct stat log;
    int moved = 0;

    if (store->pg != NULL)
        return ST_OK;
    snprintf(path, sizeof path, "%.*s-wal", PATH_MAX, store->file);
    if (store->immutable && stat(path, &log) == 0 && log.st_size > 0)
        return FAIL(err, ST_IO, "%s is being written now", store->path);
    for (size_t i = 0; i < COUNT(suffixes); i++)
        TRY(look(store, i, err));
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK && moved != 0)
        return FAIL(err, ST_IO, "%s was removed or replaced while the store was in use", store->path);
    return check_head(store, err);
}

void store_place_close(struct store *store)
{
    char path[PATH_MAX + 8];

    pg_close(store->pg);
    if (store->overwritten) /* the file at the path is another one: our log does not belong to it */
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_close(store->db);
    for (size_t i = 1; store->overwritten && i < COUNT(suffixes); i++) {
        snprintf(path, sizeof path, "%.*s%s", PATH_MAX, store->file, suffixes[i]);
        unlink(path);
    }
}

const char *store_network_fs(const char *path)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } kinds[] = {{0x6969, "NFS"},      {0x517b, "SMB"},        {0xff534d42, "SMB"},    {0xfe534d42, "SMB"},
                 {0x5346414f, "AFS"},  {0x01021997, "9P"},     {0x0bd00bd0, "Lustre"}, {0x00c36400, "Ceph"},
                 {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}, {0x7461636f, "OCFS2"},  {0x01161970, "GFS2"}};
    char real[PATH_MAX], dir[PATH_MAX];
    const char *file = store_real_path(path, real);
    struct statfs fs;

    if (store_is_address(path))
        return NULL;
    file_folder(file, dir, sizeof dir);
    for (size_t i = 0; statfs(dir, &fs) == 0 && i < COUNT(kinds); i++)
        if (((unsigned long)fs.f_type & 0xffffffff) == kinds[i].magic)
            return kinds[i].name;
    return NULL;
}

void store_let_go(struct store *store)
{
    store->writer = store->folds = false;
    store->taken = true;
}

void store_fold(struct store *store)
{
    char path[PATH_MAX + 8];
    struct stat st;

    if (!store->folds)
        return;
    snprintf(path, sizeof path, "%.*s-wal", PATH_MAX, store->file);
    if (stat(path, &st) == 0 && st.st_size > STORE_LOG_MAX_BYTES)
        store_fold_now(store);
}

/* -- copies -- */

static enum status copy_pages(struct store *store, sqlite3 *to, const char *path, struct error *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", store->db, "main");
    int rc = backup != NULL ? SQLITE_OK : sqlite3_errcode(to);

    for (int i = 0; backup != NULL && i < COPY_TRIES; i++) {
        rc = sqlite3_backup_step(backup, -1); /* all at once: one state of the store, also while others write */
        if (rc != SQLITE_BUSY && rc != SQLITE_LOCKED)
            break;
        usleep(COPY_WAIT_US);
    }
    if (backup != NULL) {
        int end = sqlite3_backup_finish(backup);
        rc = rc == SQLITE_DONE ? end : rc;
    }
    if (rc == SQLITE_OK) /* a single file, which can be read in any place */
        rc = sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        return ST_OK;
    return FAIL(err, (rc & 0xff) == SQLITE_CORRUPT ? ST_CORRUPT : ST_IO, "%s could not be copied to %s: %s",
                store->path, path, sqlite3_errstr(rc));
}

/* Never replaces an existing file. */
static enum status give_name(const char *part, const char *path, struct error *err)
{
    if (link(part, path) == 0)
        return ST_OK;
    if (errno != EEXIST && access(path, F_OK) != 0 && rename(part, path) == 0) /* a file system without hard links */
        return ST_OK;
    return FAIL(err, errno == EEXIST ? ST_EXISTS : ST_IO, "%s: %s; name another file", path, strerror(errno));
}

static enum status copy_file(struct store *store, const char *part, const char *path, struct error *err)
{
    sqlite3 *to = NULL;
    int code = sqlite3_open_v2(part, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    enum status rc = code == SQLITE_OK ? copy_pages(store, to, path, err)
                                       : FAIL(err, ST_IO, "%s cannot be written: %s", part, sqlite3_errmsg(to));

    if (sqlite3_close(to) != SQLITE_OK && rc == ST_OK)
        rc = FAIL(err, ST_IO, "%s could not be written to its end", part);
    return rc;
}

/* Of a database: its rows in a file of SQLite. */
static enum status copy_rows(struct store *store, const char *part, struct error *err)
{
    struct store_copied copied;
    AT_END(store_close_at) struct store *to = NULL;

    TRY(store_open_writer(&to, part, err));
    return store_copy_rows(store, to, &copied, err);
}

enum status store_copy(struct store *store, const char *path, struct error *err)
{
    size_t size = strlen(path) + sizeof ".part";
    MEM_LOCAL char *part = mem_alloc(size);

    snprintf(part, size, "%s.part", path);
    (void)unlink(part); /* left by a copy that was killed */
    enum status rc = store->pg != NULL ? copy_rows(store, part, err) : copy_file(store, part, path, err);
    THEN(rc, give_name(part, path, err));
    (void)unlink(part);
    return rc;
}

enum status store_rescue(struct store *store, char **ret_path, struct error *err)
{
    char dir[PATH_MAX], path[PATH_MAX + 64], when[32] = "";
    const char *tmp = getenv("TMPDIR");
    const char *dirs[] = {dir, ".", tmp != NULL && tmp[0] == '/' ? tmp : "/tmp"};
    enum status rc = ST_IO;
    time_t now = time(NULL);
    struct tm tm;

    *ret_path = NULL;
    file_folder(store->file, dir, sizeof dir);
    if (gmtime_r(&now, &tm) != NULL)
        strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
    for (size_t i = 0; i < COUNT(dirs) && rc != ST_OK; i++) {
        error_clear(err);
        snprintf(path, sizeof path, "%.*s/trawl-rescue-%s.db", PATH_MAX - 1, dirs[i], when);
        rc = store_copy(store, path, err);
    }
    if (rc == ST_OK)
        *ret_path = mem_strdup(path);
    return rc;
}
