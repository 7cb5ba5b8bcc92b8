/* study_state.c - changes to a study after it was created: limits, state, priority, time spent.
 *
 *   running <-> paused      by people
 *   running, paused -> ended -> running      by a stop rule, which is kept, and by larger limits
 *
 * Invariants: (1) an ended study has the rule that ended it; a running one has none; (2) each call is one
 * transaction. */
#include "store/store_priv.h"

static const char *const state_names[STUDY_STATES] = {"running", "paused", "ended"};

const char *study_state_name(enum study_state state)
{
    return (unsigned)state < STUDY_STATES ? state_names[state] : "unknown";
}

enum study_state study_state_parse(const char *word)
{
    return (enum study_state)word_index(state_names, STUDY_STATES, word);
}

/* Runs an UPDATE of the study ?1. */
static enum status update(struct store *store, enum store_sql id, struct db_values values, const char *what,
                          struct error *err)
{
    int64_t study_id = values.v[0].i64, n = 0;

    TRY(store_begin_synced(store, what, err));
    enum status rc = store_row_check(store, SQL_STUDY_ROW, study_id, err);
    THEN(rc, store_sql_change(store, id, values, what, &n, err));
    if (rc == ST_OK && n == 0)
        rc = FAIL(err, ST_NOTFOUND, "%s has no study with id %lld", store->path, (long long)study_id);
    THEN(rc, store_row_seal(store, SQL_STUDY_ROW, study_id, err));
    return store_end(store, rc, what, err);
}

enum status store_study_set_limits(struct store *store, const struct study *study, struct error *err)
{
    return update(store, SQL_STUDY_LIMITS, VALUES(val_i64(study->id), LIMIT_VALUES(&study->limits)),
                  "setting the study's limits", err);
}

enum status store_study_set_state(struct store *store, int64_t study_id, enum study_state state, const char *rule,
                                  const char *text, struct error *err)
{
    bool runs = state == STUDY_RUNNING;

    if ((unsigned)state >= STUDY_STATES || (state == STUDY_ENDED && rule == NULL))
        return FAIL(err, ST_INTERNAL, "%s: a study cannot be %s%s", store->path, study_state_name(state),
                    rule == NULL ? " without a rule" : "");
    return update(store, SQL_STUDY_STATE,
                  VALUES(val_i64(study_id), val_text(study_state_name(state)), val_text(runs ? NULL : rule),
                         val_text(runs ? NULL : text)),
                  "setting the study's state", err);
}

enum status store_study_set_space(struct store *store, int64_t study_id, const char *space, struct error *err)
{
    return update(store, SQL_STUDY_SPACE, VALUES(val_i64(study_id), val_text(space)), "setting the study's space", err);
}

enum status store_study_set_priority(struct store *store, int64_t study_id, int64_t priority, struct error *err)
{
    if (priority < 1 || priority > STUDY_PRIORITY_MAX)
        return FAIL(err, ST_USAGE, "a priority of %lld is not allowed, 1 to %d are", (long long)priority,
                    STUDY_PRIORITY_MAX);
    return update(store, SQL_STUDY_PRIORITY, VALUES(val_i64(study_id), val_i64(priority)),
                  "setting the study's priority", err);
}

enum status store_study_add_wall(struct store *store, int64_t study_id, double seconds, double lost_s,
                                 struct error *err)
{
    return update(store, SQL_STUDY_WALL,
                  VALUES(val_i64(study_id), val_f64(isfinite(seconds) && seconds > 0 ? seconds : 0),
                         val_f64(isfinite(lost_s) && lost_s > 0 ? lost_s : 0)),
                  "counting the study's time", err);
}

/* trashed_ms 0: not in the trash. */
static enum status set_name(struct store *store, int64_t study_id, const char *name, int64_t trashed_ms,
                            struct error *err)
{
    struct study other;

    if (store_study_find(store, name, &other, NULL) == ST_OK) {
        bool is_other = other.id != study_id;
        study_free(&other);
        if (is_other)
            return FAIL(err, ST_EXISTS, "%s already has a study '%s'; choose another name", store->path, name);
    }
    return update(store, SQL_STUDY_RENAME,
                  VALUES(val_i64(study_id), val_text(name), trashed_ms != 0 ? val_i64(trashed_ms) : val_text(NULL)),
                  "naming the study", err);
}

enum status store_study_rename(struct store *store, int64_t study_id, const char *name, struct error *err)
{
    return set_name(store, study_id, name, 0, err);
}

enum status store_study_trash(struct store *store, const struct study *study, struct error *err)
{
    char name[160];

    snprintf(name, sizeof name, "%.120s~%lld", study->name, (long long)study->id);
    return set_name(store, study->id, name, clock_utc_ms(), err);
}

enum status store_study_remark(struct store *store, int64_t study_id, const char *note, const char *tags,
                               struct error *err)
{
    return update(store, SQL_STUDY_REMARK, VALUES(val_i64(study_id), val_text(note), val_text(tags)),
                  "writing a remark", err);
}

enum status store_study_delete(struct store *store, const struct study *study, struct error *err)
{
    if (study->trashed_ms == 0)
        return FAIL(err, ST_EXISTS, "%s: the study %s is not in the trash; `trawl rm` puts it there", store->path,
                    study->name);
    return update(store, SQL_STUDY_DELETE, VALUES(val_i64(study->id)), "removing the study", err);
}
