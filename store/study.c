/* study.c - studies: created once, found by name, listed, counted. study_state.c has the later changes. */
#include "store/store_priv.h"

#include "base/os/clock.h"
#include "base/mem.h"
#include "base/text/words.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void study_free(struct study *study)
{
    if (study == NULL)
        return;
    mem_free(study->name);
    mem_free(study->config);
    mem_free(study->space);
    mem_free(study->method);
    mem_free(study->metric);
    mem_free(study->program);
    mem_free(study->end_rule);
    mem_free(study->end_text);
    mem_free(study->note);
    mem_free(study->tags);
    *study = (struct study){0};
}

void study_list_free(struct study *studies, size_t n)
{
    for (size_t i = 0; i < n; i++)
        study_free(&studies[i]);
    mem_free(studies);
}

enum status store_study_create(struct store *store, struct study *study, struct error *err)
{
    static const char what[] = "adding the study";
    struct error why = {0};
    struct db_stmt *stmt;
    enum status rc;
    int64_t id = 0;

    if (study->name == NULL || study->name[0] == '\0')
        return FAIL(err, ST_USAGE, "the study has no name; give one with --name");
    int64_t now_ms = clock_utc_ms();
    TRY(store_sql(store, SQL_STUDY_INSERT, &stmt, err));
    TRY(store_begin_synced(store, what, err));
    db_bind_text(stmt, 1, study->name);
    db_bind_text(stmt, 2, study->config);
    db_bind_text(stmt, 3, study->space);
    db_bind_text(stmt, 4, study->method);
    db_bind_text(stmt, 5, study->metric);
    db_bind_text(stmt, 6, study->maximize ? "maximize" : "minimize");
    db_bind_i64(stmt, 7, study->seed);
    db_bind_text(stmt, 8, study->program);
    db_bind_i64(stmt, 9, now_ms);
    db_bind_i64(stmt, 10, study->limits.priority > 0 ? study->limits.priority : 1);
    store_bind_limits(stmt, 11, study);
    rc = store_sql_insert(store, stmt, what, &id, &why);
    if (rc == ST_EXISTS)
        rc = FAIL(err, ST_EXISTS, "%s already has a study '%s'; continue it with --resume %s or choose another --name",
                  store->path, study->name, study->name);
    else if (rc != ST_OK)
        error_set(err, rc, "%s", why.text);
    if (rc == ST_OK)
        rc = store_row_seal(store, SQL_STUDY_ROW, id, err);
    TRY(store_end(store, rc, what, err));
    study->id = id;
    study->created_ms = now_ms;
    study->state = STUDY_RUNNING;
    study->limits.priority = study->limits.priority > 0 ? study->limits.priority : 1;
    return ST_OK;
}

/* study is overwritten; whole or empty afterwards. */
static enum status read_study(struct store *store, struct db_stmt *stmt, struct study *study, struct error *err)
{
    *study = (struct study){0};
    if (store_row_sound(stmt) == STORE_DAMAGED) {
        char what[300];
        const char *name = db_text(stmt, 1);
        snprintf(what, sizeof what, "study '%.200s' (id %lld)", name != NULL ? name : "", (long long)db_i64(stmt, 0));
        return store_damaged(store, what, err);
    }
    study->id = db_i64(stmt, 0);
    study->name = db_copy_text(stmt, 1);
    study->config = db_copy_text(stmt, 2);
    study->space = db_copy_text(stmt, 3);
    study->method = db_copy_text(stmt, 4);
    study->metric = db_copy_text(stmt, 5);
    study->program = db_copy_text(stmt, 10);
    study->end_rule = db_copy_text(stmt, 13);
    study->end_text = db_copy_text(stmt, 14);
    const char *direction = db_text(stmt, 6);
    study->maximize = direction == NULL || strcmp(direction, "minimize") != 0;
    study->seed = db_i64(stmt, 7);
    study->limits.trials_max = db_i64(stmt, 8);
    study->limits.budget_s = db_f64(stmt, 9);
    study->created_ms = db_i64(stmt, 11);
    study->state = study_state_parse(db_text(stmt, 12));
    study->limits.priority = db_i64(stmt, 15);
    study->limits.wall_max_s = db_f64(stmt, 16);
    study->limits.device_max_s = db_f64(stmt, 17);
    study->limits.has_target = db_type(stmt, 18) != DB_NULL;
    study->limits.target_score = db_f64(stmt, 18);
    study->limits.gain_min = db_f64(stmt, 19);
    study->wall_used_s = db_f64(stmt, 20);
    study->lost_s = db_f64(stmt, 21);
    study->note = db_copy_text(stmt, 22);
    study->tags = db_copy_text(stmt, 23);
    study->trashed_ms = db_i64(stmt, 24); /* NULL reads as 0 */
    return ST_OK;
}

static enum status study_missing(struct store *store, const char *name, struct error *err)
{
    char nearest[2 * WORD_MAX] = "", names[512] = "";
    size_t best = SIZE_MAX, n = 0, used = 0;
    int step;
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_STUDY_NAMES, &stmt, err));
    for (;;) {
        TRY(store_sql_step(store, stmt, &step, "listing the studies", err));
        if (step != DB_ROW)
            break;
        const char *found = db_text(stmt, 0);
        if (found == NULL)
            continue;
        size_t distance = word_distance(name, found);
        if (distance < best) {
            best = distance;
            snprintf(nearest, sizeof nearest, "%s", found);
        }
        if (n < 8 && used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", n > 0 ? ", " : "", found);
        n++;
    }
    db_reset(stmt);
    if (n == 0)
        return FAIL(err, ST_NOTFOUND, "%s has no study '%s', and no other; start one with 'trawl sweep'", store->path,
                    name);
    if (word_is_near(name, best))
        return FAIL(err, ST_NOTFOUND, "%s has no study '%s'; did you mean '%s'? It has: %s%s", store->path, name,
                    nearest, names, n > 8 ? ", ..." : "");
    return FAIL(err, ST_NOTFOUND, "%s has no study '%s'; it has: %s%s", store->path, name, names, n > 8 ? ", ..." : "");
}

enum status store_study_find(struct store *store, const char *name, struct study *ret_study, struct error *err)
{
    struct db_stmt *stmt;
    enum status rc;
    int step;

    *ret_study = (struct study){0};
    TRY(store_sql(store, SQL_STUDY_FIND, &stmt, err));
    db_bind_text(stmt, 1, name);
    TRY(store_sql_step(store, stmt, &step, "reading the study", err));
    rc = step == DB_ROW ? read_study(store, stmt, ret_study, err) : ST_NOTFOUND;
    db_reset(stmt);
    return rc == ST_NOTFOUND ? study_missing(store, name, err) : rc;
}

static enum status list(struct store *store, enum store_sql sql, struct study **ret_studies, size_t *ret_n,
                        struct error *err)
{
    struct study *studies = NULL;
    size_t n = 0, cap = 0;
    enum status rc = ST_OK;
    int step;
    struct db_stmt *stmt;

    *ret_studies = NULL;
    *ret_n = 0;
    TRY(store_sql(store, sql, &stmt, err));
    while ((rc = store_sql_step(store, stmt, &step, "listing the studies", err)) == ST_OK && step == DB_ROW) {
        MEM_ROOM(studies, n, cap);
        rc = read_study(store, stmt, &studies[n], err);
        if (rc != ST_OK)
            break;
        n++;
    }
    db_reset(stmt);
    if (rc != ST_OK) {
        study_list_free(studies, n);
        return rc;
    }
    *ret_studies = studies;
    *ret_n = n;
    return ST_OK;
}

enum status store_study_list(struct store *store, struct study **ret_studies, size_t *ret_n, struct error *err)
{
    return list(store, SQL_STUDY_LIST, ret_studies, ret_n, err);
}

enum status store_trash_list(struct store *store, struct study **ret_studies, size_t *ret_n, struct error *err)
{
    return list(store, SQL_STUDY_TRASH_LIST, ret_studies, ret_n, err);
}

/* Counts rows, not entries of their index, which has no checksum. */
enum status store_study_counts(struct store *store, const struct study *study, struct study_counts *ret_counts,
                               struct error *err)
{
    struct study_counts counts = {.best_score = NAN};
    enum status rc;
    int step;
    struct db_stmt *stmt;

    *ret_counts = counts;
    TRY(store_sql(store, SQL_TRIAL_LIST_FROM, &stmt, err));
    db_bind_i64(stmt, 1, study->id);
    db_bind_i64(stmt, 2, 0);
    for (int64_t number = 0;; number++) {
        enum trial_state state;
        rc = store_sql_step(store, stmt, &step, "counting the trials", err);
        if (rc != ST_OK || step != DB_ROW)
            break;
        rc = store_trial_row_check(store, stmt, study->id, number, &state, err);
        if (rc != ST_OK)
            break;
        double score = db_f64_or_nan(stmt, 10), cost_s = db_f64_or_nan(stmt, 12);
        counts.n[state]++;
        const char *origin = db_text(stmt, 6);
        bool is_branch = origin != NULL && strncmp(origin, TRIAL_BRANCH " ", sizeof TRIAL_BRANCH) == 0;
        counts.branches += is_branch;
        counts.cost_s += isnan(cost_s) || is_branch ? 0 : cost_s;
        bool is_dropped = db_type(stmt, 32) != DB_NULL;
        if (state == TRIAL_DONE && !is_dropped &&
            !(study->maximize ? score <= counts.best_score : score >= counts.best_score))
            counts.best_score = score;
    }
    db_reset(stmt);
    if (rc == ST_OK)
        *ret_counts = counts;
    return rc;
}
