/* study.c - studies: created once, found by name, listed, counted. study_state.c has the later changes. */
#include "store/store_priv.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/words.h"

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
    sqlite3_stmt *stmt;
    enum status rc;
    int step;

    if (study->name == NULL || study->name[0] == '\0')
        return FAIL(err, ST_USAGE, "the study has no name; give one with --name");
    int64_t now_ms = clock_utc_ms();
    TRY(store_sql(store, SQL_STUDY_INSERT, &stmt, err));
    TRY(store_begin_synced(store, what, err));
    store_bind_text(stmt, 1, study->name);
    store_bind_text(stmt, 2, study->config);
    store_bind_text(stmt, 3, study->space);
    store_bind_text(stmt, 4, study->method);
    store_bind_text(stmt, 5, study->metric);
    store_bind_text(stmt, 6, study->maximize ? "maximize" : "minimize");
    sqlite3_bind_int64(stmt, 7, study->seed);
    store_bind_text(stmt, 8, study->program);
    sqlite3_bind_int64(stmt, 9, now_ms);
    sqlite3_bind_int64(stmt, 10, study->limits.priority > 0 ? study->limits.priority : 1);
    store_bind_limits(stmt, 11, study);
    step = sqlite3_step(stmt);
    if (step == SQLITE_CONSTRAINT_UNIQUE)
        rc = FAIL(err, ST_EXISTS, "%s already has a study '%s'; continue it with --resume %s or choose another --name",
                  store->path, study->name, study->name);
    else
        rc = step == SQLITE_DONE ? ST_OK : store_sql_fail(store, step, what, err);
    sqlite3_reset(stmt);
    int64_t id = sqlite3_last_insert_rowid(store->db);
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
static enum status read_study(struct store *store, sqlite3_stmt *stmt, struct study *study, struct error *err)
{
    *study = (struct study){0};
    if (store_row_sound(stmt) == STORE_DAMAGED) {
        char what[300];
        const char *name = (const char *)sqlite3_column_text(stmt, 1);
        snprintf(what, sizeof what, "study '%.200s' (id %lld)", name != NULL ? name : "",
                 (long long)sqlite3_column_int64(stmt, 0));
        return store_damaged(store, what, err);
    }
    study->id = sqlite3_column_int64(stmt, 0);
    study->name = store_column_text(stmt, 1);
    study->config = store_column_text(stmt, 2);
    study->space = store_column_text(stmt, 3);
    study->method = store_column_text(stmt, 4);
    study->metric = store_column_text(stmt, 5);
    study->program = store_column_text(stmt, 10);
    study->end_rule = store_column_text(stmt, 13);
    study->end_text = store_column_text(stmt, 14);
    const char *direction = (const char *)sqlite3_column_text(stmt, 6);
    study->maximize = direction == NULL || strcmp(direction, "minimize") != 0;
    study->seed = sqlite3_column_int64(stmt, 7);
    study->limits.trials_max = sqlite3_column_int64(stmt, 8);
    study->limits.budget_s = sqlite3_column_double(stmt, 9);
    study->created_ms = sqlite3_column_int64(stmt, 11);
    study->state = study_state_parse((const char *)sqlite3_column_text(stmt, 12));
    study->limits.priority = sqlite3_column_int64(stmt, 15);
    study->limits.wall_max_s = sqlite3_column_double(stmt, 16);
    study->limits.device_max_s = sqlite3_column_double(stmt, 17);
    study->limits.has_target = sqlite3_column_type(stmt, 18) != SQLITE_NULL;
    study->limits.target_score = sqlite3_column_double(stmt, 18);
    study->limits.gain_min = sqlite3_column_double(stmt, 19);
    study->wall_used_s = sqlite3_column_double(stmt, 20);
    study->lost_s = sqlite3_column_double(stmt, 21);
    study->note = store_column_text(stmt, 22);
    study->tags = store_column_text(stmt, 23);
    study->trashed_ms = sqlite3_column_int64(stmt, 24); /* NULL reads as 0 */
    return ST_OK;
}

static enum status study_missing(struct store *store, const char *name, struct error *err)
{
    char nearest[2 * WORD_MAX] = "", names[512] = "";
    size_t best = SIZE_MAX, n = 0, used = 0;
    int step;
    sqlite3_stmt *stmt;

    TRY(store_sql(store, SQL_STUDY_NAMES, &stmt, err));
    for (;;) {
        TRY(store_sql_step(store, stmt, &step, "listing the studies", err));
        if (step != SQLITE_ROW)
            break;
        const char *found = (const char *)sqlite3_column_text(stmt, 0);
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
    sqlite3_reset(stmt);
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
    sqlite3_stmt *stmt;
    enum status rc;
    int step;

    *ret_study = (struct study){0};
    TRY(store_sql(store, SQL_STUDY_FIND, &stmt, err));
    store_bind_text(stmt, 1, name);
    TRY(store_sql_step(store, stmt, &step, "reading the study", err));
    rc = step == SQLITE_ROW ? read_study(store, stmt, ret_study, err) : ST_NOTFOUND;
    sqlite3_reset(stmt);
    return rc == ST_NOTFOUND ? study_missing(store, name, err) : rc;
}

static enum status list(struct store *store, enum store_sql sql, struct study **ret_studies, size_t *ret_n,
                        struct error *err)
{
    struct study *studies = NULL;
    size_t n = 0, cap = 0;
    enum status rc = ST_OK;
    int step;
    sqlite3_stmt *stmt;

    *ret_studies = NULL;
    *ret_n = 0;
    TRY(store_sql(store, sql, &stmt, err));
    while ((rc = store_sql_step(store, stmt, &step, "listing the studies", err)) == ST_OK && step == SQLITE_ROW) {
        MEM_ROOM(studies, n, cap);
        rc = read_study(store, stmt, &studies[n], err);
        if (rc != ST_OK)
            break;
        n++;
    }
    sqlite3_reset(stmt);
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
    sqlite3_stmt *stmt;

    *ret_counts = counts;
    TRY(store_sql(store, SQL_TRIAL_LIST_FROM, &stmt, err));
    sqlite3_bind_int64(stmt, 1, study->id);
    sqlite3_bind_int64(stmt, 2, 0);
    for (int64_t number = 0;; number++) {
        enum trial_state state;
        rc = store_sql_step(store, stmt, &step, "counting the trials", err);
        if (rc != ST_OK || step != SQLITE_ROW)
            break;
        rc = store_trial_row_check(store, stmt, study->id, number, &state, err);
        if (rc != ST_OK)
            break;
        double score = store_column_f64(stmt, 10), cost_s = store_column_f64(stmt, 12);
        counts.n[state]++;
        counts.cost_s += isnan(cost_s) ? 0 : cost_s;
        bool is_dropped = sqlite3_column_type(stmt, 32) != SQLITE_NULL;
        if (state == TRIAL_DONE && !is_dropped &&
            !(study->maximize ? score <= counts.best_score : score >= counts.best_score))
            counts.best_score = score;
    }
    sqlite3_reset(stmt);
    if (rc == ST_OK)
        *ret_counts = counts;
    return rc;
}
