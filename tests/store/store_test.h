/* store_test.h - a directory of its own for each test, and the shortest way to a study and trials in it.
 *
 * With TRAWL_TEST_STORE, which postgres.py sets, the store of each test is that database, emptied by
 * TRAWL_TEST_CLEAR. */
#pragma once

#include "store/store.h"
#include "tests/check.h"

#include <sqlite3.h>

struct place {
    char dir[TEMP_FOLDER_MAX];
    char path[96]; /* dir/s.db, or the address of a database */
};

/* One that is closed at the end of the block that declares it. */
#define STORE __attribute__((cleanup(store_drop))) struct store

static inline void store_drop(struct store **store)
{
    store_close(*store);
}

/* Tests that look into the file itself are only run on one. */
static inline bool place_is_file(void)
{
    return getenv("TRAWL_TEST_STORE") == NULL;
}

static inline int place_make(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    temp_folder_make(place->dir);
    snprintf(place->path, sizeof place->path, "%s/s.db", place->dir);
    if (!place_is_file()) {
        snprintf(place->path, sizeof place->path, "%s", getenv("TRAWL_TEST_STORE"));
        if (system(getenv("TRAWL_TEST_CLEAR")) != 0)
            return -1;
    }
    *state = place;
    return 0;
}

static inline int place_remove(void **state)
{
    struct place *place = *state;
    temp_folder_remove(place->dir);
    free(place);
    return 0;
}

/* The first value of a statement that another program runs, -1: none; false: it failed. */
static inline bool place_run(struct place *place, const char *sql, int *ret_value)
{
    char line[1000], file[80], out[100] = "";
    sqlite3_stmt *stmt = NULL;
    sqlite3 *db = NULL;
    bool ok;

    *ret_value = -1;
    if (!place_is_file()) {
        snprintf(file, sizeof file, "%s/sql", place->dir);
        snprintf(line, sizeof line, "%s -f %s 2>/dev/null", getenv("TRAWL_TEST_PSQL"), file);
        FILE *text = fopen(file, "w"), *psql;
        if (text == NULL || fprintf(text, "SET search_path = trawl;\n%s", sql) < 0 || fclose(text) != 0 ||
            (psql = popen(line, "r")) == NULL)
            return false;
        if (fgets(out, sizeof out, psql) != NULL)
            *ret_value = atoi(out);
        ok = pclose(psql) == 0;
        unlink(file);
        return ok;
    }
    ok = sqlite3_open(place->path, &db) == SQLITE_OK && sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK;
    if (ok && sqlite3_step(stmt) == SQLITE_ROW)
        *ret_value = sqlite3_column_int(stmt, 0);
    ok = sqlite3_finalize(stmt) == SQLITE_OK && ok;
    sqlite3_close(db);
    return ok;
}

static inline bool place_do(struct place *place, const char *sql)
{
    int value;

    return place_run(place, sql, &value);
}

/* The number of rows of "TABLE WHERE ...". */
static inline int place_count(struct place *place, const char *from)
{
    char sql[500];
    int n = -1;

    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", from);
    assert_true(place_run(place, sql, &n));
    return n;
}

/* The set-up of a case about files, which a database has none of. */
static inline int place_of_file_make(void **state)
{
    return place_make(state);
}

/* A case with a place of its own; one about files alone; one with a store that is open there for writing, and closed
 * after it. */
#define PLACE_TEST(name) TEST_ON(name, struct place *place, place_make, place_remove)
#define FILE_TEST(name) TEST_ON(name, struct place *place, place_of_file_make, place_remove)
#define STORE_TEST(name)                                                                                               \
    static void in_store_##name(struct place *place, struct store *store);                                             \
    PLACE_TEST(name)                                                                                                   \
    {                                                                                                                  \
        struct store *store;                                                                                           \
        OK(store_open_writer(&store, place->path, err));                                                               \
        in_store_##name(place, store);                                                                                 \
        store_close(store);                                                                                            \
    }                                                                                                                  \
    static void in_store_##name(__attribute__((unused)) struct place *place, struct store *store)

/* All cases; on a database without those about files. */
static inline int place_run_cases(const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < n_unit_tests; i++)
        if (place_is_file() || unit_tests[i].setup_func != place_of_file_make)
            unit_tests[n++] = unit_tests[i];
    n_unit_tests = n;
    return run_cases(name, NULL, NULL);
}

static inline struct study study_make(struct store *store, const char *name)
{
    struct study study = {.name = (char *)name,
                          .config = "[train]\nseed = 1\n",
                          .space = "{}",
                          .method = "sobol",
                          .metric = "score",
                          .maximize = true,
                          .seed = 7,
                          .limits.trials_max = 24,
                          .limits.budget_s = 3600.0,
                          .program = "trawl 0.1.0 (test)"};
    OK(store_study_create(store, &study, err));
    return study; /* its strings are literals: never study_free it */
}

static inline struct trial trial_make(struct store *store, int64_t study_id)
{
    struct trial trial = {.study_id = study_id,
                          .params = "{\"train.learning_rate\":0.01}",
                          .config = "[train]\n",
                          .origin = "sobol",
                          .seed = 11};
    OK(store_trial_create(store, &trial, err));
    return trial;
}

/* One report. */
static inline enum status metrics_add(struct store *store, int64_t trial_id, const struct metric_point *points,
                                      size_t n, const char *outbox_json, struct error *err)
{
    const struct metric_report report = {.trial_id = trial_id, .points = points, .n = n, .outbox_json = outbox_json};

    return store_reports_add(store, &report, 1, err);
}

static inline struct trial_result result_make(double score, double cost_s)
{
    return (struct trial_result){
        .state = TRIAL_DONE, .score = score, .perf = 0.5, .cost_s = cost_s, .device_s = 0.25, .env_steps = 4096};
}
