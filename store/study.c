/* study.c - studies: created once, found by name, listed, counted. study_state.c has the later changes. */
#include "store/store_priv.h"

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
    int64_t id = 0, priority = study->limits.priority > 0 ? study->limits.priority : 1;

    if (study->name == NULL || study->name[0] == '\0')
        return FAIL(err, ST_USAGE, "the study has no name; give one with --name");
    int64_t now_ms = clock_utc_ms();
    TRY(store_begin_synced(store, what, err));
    enum status rc = store_sql_i64(
        store, SQL_STUDY_INSERT,
        VALUES(val_text(study->name), val_text(study->config), val_text(study->space), val_text(study->method),
               val_text(study->metric), val_text(study->maximize ? "maximize" : "minimize"), val_i64(study->seed),
               val_text(study->program), val_i64(now_ms), val_i64(priority), LIMIT_VALUES(&study->limits)),
        what, &id, &why);
    if (rc == ST_EXISTS)
        rc = FAIL(err, ST_EXISTS, "%s already has a study '%s'; continue it with --resume %s or choose another --name",
                  store->path, study->name, study->name);
    else if (rc != ST_OK)
        error_set(err, rc, "%s", why.text);
    THEN(rc, store_row_seal(store, SQL_STUDY_ROW, id, err));
    TRY(store_end(store, rc, what, err));
    study->id = id;
    study->created_ms = now_ms;
    study->state = STUDY_RUNNING;
    study->limits.priority = priority;
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
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    TRY(store_sql(store, SQL_STUDY_NAMES, NO_VALUES, &stmt, err));
    while (store_sql_next(store, stmt, "listing the studies", &rc, err)) {
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
    TRY(rc);
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
    bool there;

    *ret_study = (struct study){0};
    TRY(store_sql_row(store, SQL_STUDY_FIND, VALUES(val_text(name)), "reading the study", &stmt, &there, err));
    enum status rc = there ? read_study(store, stmt, ret_study, err) : ST_NOTFOUND;
    db_reset(stmt);
    return rc == ST_NOTFOUND ? study_missing(store, name, err) : rc;
}

static enum status list(struct store *store, enum store_sql sql, struct study **ret_studies, size_t *ret_n,
                        struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_studies = NULL;
    *ret_n = 0;
    TRY(store_sql(store, sql, NO_VALUES, &stmt, err));
    while (store_sql_next(store, stmt, "listing the studies", &rc, err)) {
        MEM_ROOM(*ret_studies, *ret_n, cap);
        rc = read_study(store, stmt, &(*ret_studies)[*ret_n], err);
        *ret_n += rc == ST_OK;
    }
    if (rc != ST_OK) {
        study_list_free(*ret_studies, *ret_n);
        *ret_studies = NULL;
        *ret_n = 0;
    }
    return rc;
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
    enum status rc = ST_OK;
    int64_t number = 0;
    struct db_stmt *stmt;

    *ret_counts = counts;
    TRY(store_sql(store, SQL_TRIAL_LIST_FROM, VALUES(val_i64(study->id), val_i64(0)), &stmt, err));
    while (store_sql_next(store, stmt, "counting the trials", &rc, err)) {
        enum trial_state state;
        rc = store_trial_row_check(store, stmt, study->id, number++, &state, err);
        if (rc != ST_OK)
            continue;
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
    if (rc == ST_OK)
        *ret_counts = counts;
    return rc;
}
