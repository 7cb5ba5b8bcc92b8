/* study_state.c - changes to a study after it was created: limits, state, priority, time spent.
 *
 *   running <-> paused      by people
 *   running, paused -> ended -> running      by a stop rule, which is kept, and by larger limits
 *
 * Invariants: (1) an ended study has the rule that ended it; a running one has none; (2) each call is one
 * transaction. */
#include "store/store_priv.h"

#include "base/os/clock.h"
#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const state_names[STUDY_STATES] = {"running", "paused", "ended"};

const char *study_state_name(enum study_state state)
{
    return (unsigned)state < STUDY_STATES ? state_names[state] : "unknown";
}

enum study_state study_state_parse(const char *word)
{
    int state = 0;

    while (state < STUDY_STATES && (word == NULL || strcmp(word, state_names[state]) != 0))
        state++;
    return (enum study_state)state;
}

void store_bind_limits(struct db_stmt *stmt, int at, const struct study *study)
{
    db_bind_i64(stmt, at, study->limits.trials_max);
    db_bind_f64(stmt, at + 1, study->limits.budget_s);
    db_bind_f64(stmt, at + 2, study->limits.wall_max_s);
    db_bind_f64(stmt, at + 3, study->limits.device_max_s);
    db_bind_f64(stmt, at + 4,
                study->limits.has_target ? study->limits.target_score : (double)NAN); /* NaN is kept as NULL */
    db_bind_f64(stmt, at + 5, study->limits.gain_min);
}

/* Runs an UPDATE of one study, whose values are bound except the id. */
static enum status update(struct store *store, struct db_stmt *stmt, int64_t study_id, const char *what,
                          struct error *err)
{
    enum status rc;

    TRY(store_begin_synced(store, what, err));
    db_bind_i64(stmt, 1, study_id);
    rc = store_row_check(store, SQL_STUDY_ROW, study_id, err);
    if (rc == ST_OK)
        rc = store_sql_run(store, stmt, what, err);
    if (rc == ST_OK && db_changes(stmt) == 0)
        rc = FAIL(err, ST_NOTFOUND, "%s has no study with id %lld", store->path, (long long)study_id);
    if (rc == ST_OK)
        rc = store_row_seal(store, SQL_STUDY_ROW, study_id, err);
    return store_end(store, rc, what, err);
}

enum status store_study_set_limits(struct store *store, const struct study *study, struct error *err)
{
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_STUDY_LIMITS, &stmt, err));
    store_bind_limits(stmt, 2, study);
    return update(store, stmt, study->id, "setting the study's limits", err);
}

enum status store_study_set_state(struct store *store, int64_t study_id, enum study_state state, const char *rule,
                                  const char *text, struct error *err)
{
    struct db_stmt *stmt;

    if ((unsigned)state >= STUDY_STATES || (state == STUDY_ENDED && rule == NULL))
        return FAIL(err, ST_INTERNAL, "%s: a study cannot be %s%s", store->path, study_state_name(state),
                    rule == NULL ? " without a rule" : "");
    TRY(store_sql(store, SQL_STUDY_STATE, &stmt, err));
    db_bind_text(stmt, 2, study_state_name(state));
    db_bind_text(stmt, 3, state == STUDY_RUNNING ? NULL : rule);
    db_bind_text(stmt, 4, state == STUDY_RUNNING ? NULL : text);
    return update(store, stmt, study_id, "setting the study's state", err);
}

enum status store_study_set_space(struct store *store, int64_t study_id, const char *space, struct error *err)
{
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_STUDY_SPACE, &stmt, err));
    db_bind_text(stmt, 2, space);
    return update(store, stmt, study_id, "setting the study's space", err);
}

enum status store_study_set_priority(struct store *store, int64_t study_id, int64_t priority, struct error *err)
{
    struct db_stmt *stmt;

    if (priority < 1 || priority > STUDY_PRIORITY_MAX)
        return FAIL(err, ST_USAGE, "a priority of %lld is not possible, 1 to %d are", (long long)priority,
                    STUDY_PRIORITY_MAX);
    TRY(store_sql(store, SQL_STUDY_PRIORITY, &stmt, err));
    db_bind_i64(stmt, 2, priority);
    return update(store, stmt, study_id, "setting the study's priority", err);
}

enum status store_study_add_wall(struct store *store, int64_t study_id, double seconds, double lost_s,
                                 struct error *err)
{
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_STUDY_WALL, &stmt, err));
    db_bind_f64(stmt, 2, isfinite(seconds) && seconds > 0 ? seconds : 0);
    db_bind_f64(stmt, 3, isfinite(lost_s) && lost_s > 0 ? lost_s : 0);
    return update(store, stmt, study_id, "counting the study's time", err);
}

/* trashed_ms 0: not in the trash. */
static enum status set_name(struct store *store, int64_t study_id, const char *name, int64_t trashed_ms,
                            struct error *err)
{
    struct study other;
    struct db_stmt *stmt;

    if (store_study_find(store, name, &other, NULL) == ST_OK) {
        bool is_other = other.id != study_id;
        study_free(&other);
        if (is_other)
            return FAIL(err, ST_EXISTS, "%s already has a study '%s'; choose another name", store->path, name);
    }
    TRY(store_sql(store, SQL_STUDY_RENAME, &stmt, err));
    db_bind_text(stmt, 2, name);
    if (trashed_ms != 0)
        db_bind_i64(stmt, 3, trashed_ms);
    return update(store, stmt, study_id, "naming the study", err);
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
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_STUDY_REMARK, &stmt, err));
    db_bind_text(stmt, 2, note);
    db_bind_text(stmt, 3, tags);
    return update(store, stmt, study_id, "writing a remark", err);
}

enum status store_study_delete(struct store *store, const struct study *study, struct error *err)
{
    struct db_stmt *stmt;

    if (study->trashed_ms == 0)
        return FAIL(err, ST_EXISTS, "%s: the study %s is not in the trash; `trawl rm` puts it there", store->path,
                    study->name);
    TRY(store_sql(store, SQL_STUDY_DELETE, &stmt, err));
    return update(store, stmt, study->id, "removing the study", err);
}
