/* tracker.c - the trackers of a study and each tracker's position in each run.
 *
 * Invariants: (1) a position only moves forward; (2) position and removal of rows are one transaction: a copy of the
 * store at any instant holds either the row or a position past it. */
#include "store/store_priv.h"

#include "base/rng.h"

#include <sys/random.h>

#define KEY_CHARS 8

/* 8 base-36 characters, about 41 bits: no two studies of a project will have the same key. */
static void make_key(char ret_key[TRACKER_KEY_MAX])
{
    static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
    uint64_t bits = 0;

    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != (ssize_t)sizeof bits)
        bits = clock_mono_ns() ^ ((uint64_t)getpid() << 40) ^ (uint64_t)clock_utc_ms();
    struct rng rng = rng_seed(bits);
    ret_key[0] = digits[10 + rng_below(&rng, 26)]; /* a letter first: some trackers want a name */
    for (int i = 1; i < KEY_CHARS; i++)
        ret_key[i] = digits[rng_below(&rng, 36)];
    ret_key[KEY_CHARS] = '\0';
}

/* The study's key, from any of its trackers; "" when it has none. */
static enum status find_key(struct store *store, int64_t study_id, const char *tracker, char ret_key[TRACKER_KEY_MAX],
                            bool *ret_registered, struct error *err)
{
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    ret_key[0] = '\0';
    *ret_registered = false;
    TRY(store_sql(store, SQL_TRACKER_LIST, VALUES(val_i64(study_id)), &stmt, err));
    while (store_sql_next(store, stmt, "reading the trackers", &rc, err)) {
        const char *name = db_text(stmt, 0), *key = db_text(stmt, 1);
        snprintf(ret_key, TRACKER_KEY_MAX, "%s", key != NULL ? key : "");
        *ret_registered = *ret_registered || (name != NULL && strcmp(name, tracker) == 0);
    }
    return rc;
}

enum status store_tracker_register(struct store *store, int64_t study_id, const char *tracker,
                                   char ret_key[TRACKER_KEY_MAX], struct error *err)
{
    static const char what[] = "adding a tracker";
    bool registered;

    TRY(store_begin(store, what, err));
    enum status rc = find_key(store, study_id, tracker, ret_key, &registered, err);
    if (rc == ST_OK && !registered) {
        if (ret_key[0] == '\0')
            make_key(ret_key);
        rc = store_sql_run(store, SQL_TRACKER_INSERT, VALUES(val_i64(study_id), val_text(tracker), val_text(ret_key)),
                           what, err);
    }
    return store_end(store, rc, what, err);
}

enum status store_tracker_forget(struct store *store, int64_t study_id, const char *tracker, struct error *err)
{
    static const char what[] = "forgetting a tracker";
    int64_t n = 0;

    TRY(store_begin_synced(store, what, err));
    enum status rc =
        store_sql_change(store, SQL_TRACKER_DELETE, VALUES(val_i64(study_id), val_text(tracker)), what, &n, err);
    if (rc == ST_OK && n == 0)
        rc = FAIL(err, ST_NOTFOUND, "%s: the study has no tracker '%s'", store->path, tracker);
    THEN(rc, store_sql_run(store, SQL_OUTBOX_TRIM_ALL, VALUES(val_i64(study_id)), what, err));
    return store_end(store, rc, what, err);
}

void store_names_free(char **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        mem_free(names[i]);
    mem_free(names);
}

enum status store_tracker_names(struct store *store, int64_t study_id, char ***ret_names, size_t *ret_n,
                                struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_names = NULL;
    *ret_n = 0;
    TRY(store_sql(store, SQL_TRACKER_LIST, VALUES(val_i64(study_id)), &stmt, err));
    while (store_sql_next(store, stmt, "reading the trackers", &rc, err)) {
        MEM_ROOM(*ret_names, *ret_n, cap);
        (*ret_names)[(*ret_n)++] = db_copy_text(stmt, 0);
    }
    if (rc != ST_OK) {
        store_names_free(*ret_names, *ret_n);
        *ret_names = NULL;
        *ret_n = 0;
    }
    return rc;
}

void tracker_position_free(struct tracker_position *position)
{
    if (position == NULL)
        return;
    mem_free(position->state);
    mem_free(position->refused);
    *position = (struct tracker_position){0};
}

enum status store_tracker_position(struct store *store, int64_t study_id, const char *tracker, int64_t trial_id,
                                   struct tracker_position *ret_position, struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    *ret_position = (struct tracker_position){.last_step = -1};
    TRY(store_sql_row(store, SQL_POSITION_FIND, VALUES(val_i64(study_id), val_text(tracker), val_i64(trial_id)),
                      "reading a tracker's position", &stmt, &there, err));
    if (there) {
        ret_position->acked_id = db_i64(stmt, 0);
        ret_position->claimed_id = db_i64(stmt, 1);
        ret_position->thin_ms = db_i64(stmt, 2);
        ret_position->last_step = db_i64(stmt, 3);
        ret_position->sent_rows = db_i64(stmt, 4);
        ret_position->ended = db_i64(stmt, 5) != 0;
        ret_position->state = db_copy_text(stmt, 6);
        ret_position->refused = db_copy_text(stmt, 7);
    } else {
        ret_position->state = mem_strdup("{}");
    }
    db_reset(stmt);
    return ST_OK;
}

static enum status set_position(struct store *store, int64_t study_id, const char *tracker, int64_t trial_id,
                                const struct tracker_position *p, struct error *err)
{
    int64_t n = 0;

    TRY(store_sql_change(store, SQL_POSITION_SET,
                         VALUES(val_i64(study_id), val_text(tracker), val_i64(trial_id), val_i64(p->acked_id),
                                val_i64(p->claimed_id), val_i64(p->thin_ms), val_i64(p->last_step),
                                val_i64(p->sent_rows), val_i64(p->ended), val_text(p->state), val_text(p->refused)),
                         "recording a tracker's position", &n, err));
    if (n == 0)
        return FAIL(err, ST_NOTFOUND, "%s: the study no longer has a tracker '%s'", store->path, tracker);
    return ST_OK;
}

enum status store_tracker_commit(struct store *store, int64_t study_id, const char *tracker, int64_t trial_id,
                                 const struct tracker_position *position, struct error *err)
{
    static const char what[] = "recording a tracker's position";

    TRY(store_begin(store, what, err));
    enum status rc = set_position(store, study_id, tracker, trial_id, position, err);
    THEN(rc, store_sql_run(store, SQL_OUTBOX_TRIM, VALUES(val_i64(study_id), val_i64(trial_id)), what, err));
    return store_end(store, rc, what, err);
}
