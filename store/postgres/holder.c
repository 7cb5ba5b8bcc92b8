/* holder.c - which controller has a study. A file has one controller, which has all studies; in PostgreSQL each study
 * has a lock of its own, so that several controllers share a database.
 * Invariant: whoever changes a study as its controller holds its lock, from before it reads the study's rows. */
#include "store/store_priv.h"

#define LOCKS                                                                                                          \
    "SELECT l.objid::bigint FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.granted AND l.classid "             \
    "= " PG_STUDY_KEY                                                                                                  \
    " AND l.objsubid = 2 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"

static const char what[] = "looking for controllers";

/* The ids, and names (NULL is fine), of the rows that a query gives. */
static enum status query(struct store *store, const char *sql, const char *name, struct held_study **ret, size_t *ret_n,
                         struct error *err)
{
    size_t cap = 0;
    struct db_stmt stmt = {0};
    enum status rc = store_sql_prepare(store, sql, &stmt, err);

    *ret = NULL;
    *ret_n = 0;
    if (rc == ST_OK && name != NULL)
        db_bind(&stmt, 1, val_text(name));
    while (store_sql_next(store, &stmt, what, &rc, err)) {
        MEM_ROOM(*ret, *ret_n, cap);
        struct held_study *study = &(*ret)[(*ret_n)++];
        study->id = db_i64(&stmt, 0);
        snprintf(study->name, sizeof study->name, "%s", db_text(&stmt, 1));
    }
    store_sql_finalize(&stmt);
    if (rc != ST_OK) {
        mem_free(*ret);
        *ret = NULL;
        *ret_n = 0;
    }
    return rc;
}

static bool has_locks(const struct store *store)
{
    return store->pg != NULL && store->controls;
}

enum status store_study_hold(struct store *store, const char *name, int64_t *ret_id, struct error *err)
{
    struct held_study *found = NULL;
    size_t n = 0;

    *ret_id = 0;
    if (!has_locks(store))
        return ST_OK;
    TRY(query(store, "SELECT id, name FROM study WHERE name = ?1", name, &found, &n, err));
    enum status rc = n > 0 ? pg_lock_study(store, found[0].id, err) : ST_OK;
    *ret_id = n > 0 && rc == ST_OK ? found[0].id : 0;
    mem_free(found);
    return rc;
}

void store_study_let_go(struct store *store, int64_t study_id)
{
    if (has_locks(store))
        pg_unlock_study(store, study_id);
}

bool store_study_is_others(struct store *store, const char *name)
{
    struct held_study *found = NULL;
    struct error ignored = {0};
    size_t n = 0;

    if (!has_locks(store) ||
        query(store, "SELECT id, name FROM study WHERE name = ?1 AND id IN (" LOCKS " AND l.pid <> pg_backend_pid())",
              name, &found, &n, &ignored) != ST_OK)
        return false;
    mem_free(found);
    return n > 0;
}

enum status store_studies_held(struct store *store, bool held, struct held_study **ret, size_t *ret_n,
                               struct error *err)
{
    *ret = NULL;
    *ret_n = 0;
    if (store->pg == NULL)
        return ST_OK;
    return query(store,
                 held
                     ? "SELECT id, name FROM study WHERE trashed_ms IS NULL AND id IN (" LOCKS ") ORDER BY id"
                     : "SELECT id, name FROM study WHERE trashed_ms IS NULL AND state = 'running' AND id NOT IN (" LOCKS
                       ") ORDER BY id",
                 NULL, ret, ret_n, err);
}

bool store_is_held(const char *path, const char *study, int64_t *ret_pid)
{
    char who[1];

    return store_is_address(path)
               ? pg_is_held(path, study != NULL ? PG_HELD_STORE | PG_HELD_STUDY : PG_HELD_STORE, study, who, 0, ret_pid)
               : store_file_is_held(path, ret_pid);
}

bool store_has_writer(struct store *store)
{
    int64_t pid;

    return store->pg != NULL ? pg_has_holder(store) : store_file_is_held(store->path, &pid);
}
