/* test_store_state.c - states, limits and priorities of studies, and what a file of the first release becomes. */
#include "store_test.h"

#include <sqlite3.h>

#include "schema_v1.h"

static struct study find(struct store *store, const char *name)
{
    struct study study;

    OK(store_study_find(store, name, &study, err));
    return study;
}

STORE_TEST(a_new_study_runs)
{
    study_make(store, "s");
    AT_END(study_free) struct study s = find(store, "s");
    assert_int_equal(s.state, STUDY_RUNNING);
    assert_int_equal(s.limits.priority, 1);
    assert_null(s.end_rule);
    assert_null(s.end_text);
    assert_false(s.limits.has_target);
    assert_true(s.limits.wall_max_s == 0 && s.limits.device_max_s == 0 && s.limits.gain_min == 0 && s.wall_used_s == 0);
}

STORE_TEST(limits_round_trip)
{
    struct study made = {.name = "s",
                         .config = "",
                         .space = "{}",
                         .method = "sobol",
                         .metric = "score",
                         .program = "p",
                         .limits.wall_max_s = 60,
                         .limits.device_max_s = 1.5,
                         .limits.has_target = true,
                         .limits.target_score = 0,
                         .limits.gain_min = 0.25,
                         .limits.priority = 7};

    OK(store_study_create(store, &made, err));
    struct study s = find(store, "s");
    assert_true(s.limits.wall_max_s == 60 && s.limits.device_max_s == 1.5 && s.limits.gain_min == 0.25);
    assert_true(s.limits.has_target && s.limits.target_score == 0); /* 0 is a target like any other */
    assert_int_equal(s.limits.priority, 7);
    s.limits.has_target = false;
    s.limits.trials_max = 9;
    s.limits.wall_max_s = 0;
    OK(store_study_set_limits(store, &s, err));
    study_free(&s);
    s = find(store, "s");
    assert_false(s.limits.has_target);
    assert_true(s.limits.trials_max == 9 && s.limits.wall_max_s == 0 && s.limits.device_max_s == 1.5);
    study_free(&s);
}

STORE_TEST(states_keep_their_rule)
{
    struct study made = study_make(store, "s");
    OK(store_study_set_state(store, made.id, STUDY_ENDED, "target", "perf 0.9 reached", err));
    struct study s = find(store, "s");
    assert_int_equal(s.state, STUDY_ENDED);
    assert_string_equal(s.end_rule, "target");
    assert_string_equal(s.end_text, "perf 0.9 reached");
    study_free(&s);
    OK(store_study_set_state(store, made.id, STUDY_RUNNING, "x", "y", err));
    s = find(store, "s");
    assert_int_equal(s.state, STUDY_RUNNING);
    assert_null(s.end_rule);
    assert_null(s.end_text);
    study_free(&s);
    OK(store_study_set_state(store, made.id, STUDY_PAUSED, "user", NULL, err));
    s = find(store, "s");
    assert_int_equal(s.state, STUDY_PAUSED);
    assert_string_equal(s.end_rule, "user");
    study_free(&s);
    FAILS(store_study_set_state(store, made.id, STUDY_ENDED, NULL, "why", err), ST_INTERNAL, "rule");
    FAILS(store_study_set_state(store, made.id, STUDY_STATES, "a", "b", err), ST_INTERNAL, "unknown");
    FAILS(store_study_set_state(store, 99, STUDY_PAUSED, NULL, NULL, err), ST_NOTFOUND, "99");
}

STORE_TEST(priority_and_time)
{
    struct study made = study_make(store, "s");
    OK(store_study_set_priority(store, made.id, 100, err));
    FAILS(store_study_set_priority(store, made.id, 0, err), ST_USAGE, "1 to 100");
    FAILS(store_study_set_priority(store, made.id, 101, err), ST_USAGE, "1 to 100");
    FAILS(store_study_set_priority(store, 99, 2, err), ST_NOTFOUND, "99");
    OK(store_study_add_wall(store, made.id, 1.5, 7, err));
    OK(store_study_add_wall(store, made.id, 2.25, 4.5, err));
    OK(store_study_add_wall(store, made.id, -5, 4.5, err)); /* time does not go back, nor is it unknown */
    struct study s = find(store, "s");
    assert_true(s.lost_s == 4.5); /* as it was said last, no sum */
    study_free(&s);
    OK(store_study_add_wall(store, made.id, (double)NAN, (double)NAN, err));
    s = find(store, "s");
    assert_true(s.lost_s == 0);
    assert_int_equal(s.limits.priority, 100);
    assert_true(s.wall_used_s == 3.75);
    study_free(&s);
}

struct other {
    sqlite3 *db;
    int n_calls, n_patience; /* calls after which it lets go, or the owner gives up */
    bool lets_go;
};

static bool while_locked(void *ctx, const char *path, double waited_s)
{
    struct other *o = ctx;

    assert_non_null(path);
    assert_true(waited_s >= 0);
    if (++o->n_calls < o->n_patience)
        return true;
    if (o->lets_go)
        assert_int_equal(sqlite3_exec(o->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    return o->lets_go;
}

/* Another program holds the write lock: its owner says how long is waited, and nothing is written twice or half. */
FILE_TEST(another_programs_lock_is_waited_for)
{
    struct other o = {.n_patience = 7};
    struct trial t = {.params = "{}", .config = "", .origin = "sobol"};
    struct study_counts counts;
    STORE *store;

    OK(store_open_writer(&store, place->path, err));
    struct study made = study_make(store, "s");
    t.study_id = made.id;
    assert_int_equal(sqlite3_open(place->path, &o.db), SQLITE_OK);
    store_on_locked(store, while_locked, &o);
    assert_int_equal(sqlite3_exec(o.db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    FAILS(store_trial_create(store, &t, err), ST_BUSY, "another program kept the file locked");
    assert_int_equal(o.n_calls, 7);
    o.n_calls = 0;
    o.lets_go = true;
    OK(store_trial_create(store, &t, err));
    assert_int_equal(o.n_calls, 7);
    OK(store_study_counts(store, &made, &counts, err));
    assert_int_equal(counts.n[TRIAL_QUEUED], 1);
    sqlite3_close(o.db);
}

PLACE_TEST(the_holder_is_known)
{
    struct store *store;
    int64_t pid = -1;

    assert_false(store_is_held(place->path, NULL, &pid));
    assert_int_equal(pid, 0);
    OK(store_open_writer(&store, place->path, err));
    assert_true(store_is_held(place->path, NULL, &pid));
    assert_int_equal(pid, getpid());
    store_close(store);
    assert_false(store_is_held(place->path, NULL, &pid));
}

/* Two names of one file are one store: two writers would each think to be alone. */
FILE_TEST(a_link_to_a_store_has_its_lock)
{
    struct store *store, *second;
    char name[160];
    int64_t pid;

    snprintf(name, sizeof name, "%s/link", place->dir);
    OK(store_open_writer(&store, place->path, err));
    assert_int_equal(symlink(place->path, name), 0);
    assert_true(store_is_held(name, NULL, &pid));
    FAILS(store_open_writer(&second, name, err), ST_BUSY, "in use by another sweep");
    store_close(store);
    OK(store_open_writer(&second, name, err));
    assert_true(store_is_held(place->path, NULL, &pid));
    FAILS(store_open_writer(&store, place->path, err), ST_BUSY, "in use by another sweep");
    store_close(second);
    unlink(name);
}

static void exec(sqlite3 *db, const char *sql)
{
    char *text = NULL;

    if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
        fail_msg("%s: %s", sql, text);
}

/* A file as the first release wrote it: three studies, one at its number of trials, one at its budget. */
static void make_v1(const char *path)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    exec(db, "PRAGMA journal_mode = WAL");
    exec(db, schema_v1);
    exec(db, schema_v1_pragmas);
    exec(db, "INSERT INTO study VALUES"
             " (1, 'open', 'sobol', 'score', 'maximize', 1, 3, 0, '{}', '', 'trawl 0.1.0', 1),"
             " (2, 'full', 'sobol', 'score', 'maximize', 1, 2, 0, '{}', '', 'trawl 0.1.0', 2),"
             " (3, 'spent', 'sobol', 'score', 'minimize', 1, 0, 10, '{}', '', 'trawl 0.1.0', 3)");
    exec(db, "INSERT INTO trial (id, study_id, number, state, params, score, cost_s, seed, attempt, origin, "
             "created_ms, config) VALUES (1, 1, 0, 'done', '{\"a\":1}', 0.5, 2, 1, 1, 'sobol', 1, 'c'), (2, 1, 1, "
             "'running', '{}', NULL, NULL, 2, 1, 'sobol', 1, 'c'), (3, 2, 0, 'done', '{}', 1, 2, 1, 1, 'sobol', 1, "
             "'c'), (4, 2, 1, 'failed', '{}', NULL, 2, 1, 1, 'sobol', 1, 'c'), (5, 3, 0, 'done', '{}', 1, 11, 1, 1, "
             "'sobol', 1, 'c')");
    exec(db, "INSERT INTO metric_name VALUES (1, 'score'); INSERT INTO metric VALUES (1, 1, 100, 0.5, 0.25)");
    exec(db, "INSERT INTO outbox (trial_id, payload, created_ms) VALUES (1, '{}', 1)");
    sqlite3_close(db);
}

FILE_TEST(a_file_of_the_first_release_goes_on)
{
    STORE *store;
    struct trial *trials;
    struct curve_point *points;
    size_t n;
    int64_t n_recovered;

    make_v1(place->path);
    FAILS(store_open_reader(&store, place->path, err), ST_VERSION, "brings it up to date");
    OK(store_open_writer(&store, place->path, err));
    struct study s = find(store, "open");
    assert_int_equal(s.state, STUDY_PAUSED);
    assert_int_equal(s.limits.priority, 1);
    assert_false(s.limits.has_target);
    assert_int_equal(s.limits.trials_max, 3);
    study_free(&s);
    s = find(store, "full");
    assert_int_equal(s.state, STUDY_ENDED);
    assert_string_equal(s.end_rule, "trials");
    study_free(&s);
    s = find(store, "spent");
    assert_int_equal(s.state, STUDY_ENDED);
    assert_string_equal(s.end_rule, "budget");
    study_free(&s);
    OK(store_trial_list(store, 1, &trials, &n, err));
    assert_int_equal(n, 2);
    assert_true(trials[0].state == TRIAL_DONE && trials[0].score == 0.5 && trials[0].cost_s == 2);
    assert_int_equal(trials[1].state, TRIAL_RUNNING);
    trial_list_free(trials, n);
    OK(store_curve(store, 1, "score", &points, &n, err));
    assert_true(n == 1 && points[0].value == 0.25);
    mem_free(points);
    OK(store_trials_recover(store, 1, true, &n_recovered, err));
    assert_int_equal(n_recovered, 1);
    struct trial t = trial_make(store, 1);
    assert_int_equal(t.number, 2);
    OK(store_check(store, err));
    store_close(store);
    OK(store_open_reader(&store, place->path, err)); /* once is enough */
}

int main(void)
{
    return place_run_cases("store-state");
}
