/* test_store.c - what goes in comes out, and trials change state only where they may. */
#include "store_test.h"

#include <sqlite3.h>

STORE_TEST(studies_round_trip)
{
    struct study found, *list;
    size_t n;

    assert_string_equal(store_path(store), place->path);
    struct study a = study_make(store, "breakout small"),
                 b = study_make(store, "w\xc3\xa4hlt \"quoted\"; DROP TABLE study");
    assert_true(a.id != b.id && a.created_ms > 1700000000000);
    OK(store_study_find(store, b.name, &found, err));
    assert_int_equal(found.id, b.id);
    assert_string_equal(found.name, b.name);
    assert_string_equal(found.config, b.config);
    assert_string_equal(found.space, b.space);
    assert_string_equal(found.method, b.method);
    assert_string_equal(found.metric, b.metric);
    assert_string_equal(found.program, b.program);
    assert_true(found.maximize);
    assert_int_equal(found.seed, 7);
    assert_int_equal(found.limits.trials_max, 24);
    assert_true(found.limits.budget_s == 3600.0);
    assert_int_equal(found.created_ms, b.created_ms);
    study_free(&found);
    study_free(&found); /* twice is fine */

    FAILS(store_study_create(store, &a, err), ST_EXISTS, "--resume breakout small");
    FAILS(store_study_find(store, "breakot small", &found, err), ST_NOTFOUND, "did you mean 'breakout small'");
    FAILS(store_study_find(store, "zzzzzzzzzz", &found, err), ST_NOTFOUND, "it has: ");
    a.limits.trials_max = 100;
    OK(store_study_set_limits(store, &a, err));
    struct study nobody = {.id = 99};
    FAILS(store_study_set_limits(store, &nobody, err), ST_NOTFOUND, "99");
    OK(store_study_list(store, &list, &n, err));
    assert_int_equal(n, 2);
    assert_int_equal(list[0].limits.trials_max, 100);
    assert_string_equal(list[1].name, b.name);
    study_list_free(list, n);
}

STORE_TEST(trial_round_trip)
{
    struct trial t, *list;
    size_t n;
    char *path;

    struct study study = study_make(store, "s"), other = study_make(store, "o");
    struct trial a = trial_make(store, study.id), b = trial_make(store, study.id), c = trial_make(store, other.id);
    assert_int_equal(a.number, 0);
    assert_int_equal(b.number, 1);
    assert_int_equal(c.number, 0);

    OK(store_trial_find(store, study.id, 1, &t, err));
    assert_int_equal(t.id, b.id);
    assert_int_equal(t.state, TRIAL_QUEUED);
    assert_int_equal(t.attempt, 0);
    assert_true(isnan(t.score) && isnan(t.perf) && isnan(t.cost_s) && isnan(t.device_s));
    assert_null(t.device);
    assert_null(t.reason);
    assert_true(t.started_ms == 0 && t.finished_ms == 0 && t.created_ms == b.created_ms);
    trial_free(&t);

    struct trial said = c; /* with its texts */
    said.predicted =
        (struct prediction){.known = true, .score = -0.25, .score_sd = 0.5, .log_cost = 3, .log_cost_sd = 1};
    OK(store_trial_create(store, &said, err));
    OK(store_trial_find(store, other.id, 1, &t, err));
    assert_true(t.predicted.known && t.predicted.score == -0.25 && t.predicted.score_sd == 0.5);
    assert_true(t.predicted.log_cost == 3 && t.predicted.log_cost_sd == 1);
    trial_free(&t);
    OK(store_trial_find(store, study.id, 1, &t, err));
    assert_false(t.predicted.known);
    trial_free(&t);

    OK(store_trial_start(store, b.id, "cpu:2", NULL, err));
    struct trial_result result = result_make(0.1 + 0.2, INFINITY);
    FAILS(store_trials_finish(store, &(struct trial_end){b.id, &result, NULL}, 1, err), ST_NUMERIC, "finite");
    result.cost_s = 1.5;
    result.perf = INFINITY;
    result.device_s = NAN;
    result.checkpoint_path = "runs/1.ckpt";
    OK(store_trials_finish(store, &(struct trial_end){b.id, &result, "{\"event\":\"finish\"}"}, 1, err));
    OK(store_trial_list(store, study.id, &list, &n, err));
    assert_int_equal(n, 2);
    t = list[1];
    assert_int_equal(t.state, TRIAL_DONE);
    assert_string_equal(t.params, b.params);
    assert_string_equal(t.config, b.config);
    assert_string_equal(t.origin, "sobol");
    assert_string_equal(t.device, "cpu:2");
    assert_true(t.score == 0.1 + 0.2 && t.cost_s == 1.5 && isinf(t.perf) && isnan(t.device_s));
    assert_int_equal(t.env_steps, 4096);
    assert_int_equal(t.seed, 11);
    assert_int_equal(t.attempt, 1);
    assert_true(t.started_ms >= t.created_ms && t.finished_ms >= t.started_ms);
    trial_list_free(list, n);
    OK(store_checkpoint_path(store, b.id, &path, err));
    assert_string_equal(path, "runs/1.ckpt");
    mem_free(path);
    OK(store_checkpoint_path(store, a.id, &path, err));
    assert_null(path);
    FAILS(store_trial_find(store, study.id, 2, &t, err), ST_NOTFOUND, "no trial 2");
    OK(store_check(store, err));
}

/* Numbers in the order given; of a batch that cannot be stored nothing is. */
STORE_TEST(a_batch_of_trials_is_stored_whole)
{
    struct study study = study_make(store, "batch");
    struct trial batch[3], *list = NULL;
    size_t n = 0;

    for (int i = 0; i < 3; i++)
        batch[i] = (struct trial){.study_id = study.id,
                                  .params = (char *)"{}",
                                  .config = (char *)"[env]\nname = cartpole\n",
                                  .origin = (char *)(i == 1 ? "second" : "sobol"),
                                  .seed = 40 + i};
    OK(store_trials_create(store, batch, 3, err));
    for (int i = 0; i < 3; i++)
        assert_int_equal(batch[i].number, i);
    batch[2].study_id = 12345; /* there is none */
    batch[0].id = batch[1].id = -1;
    assert_int_not_equal(store_trials_create(store, batch, 3, NULL), ST_OK);
    assert_true(batch[0].id == -1 && batch[1].id == -1 && batch[0].number == 0);
    OK(store_trial_list(store, study.id, &list, &n, err));
    assert_int_equal(n, 3);
    assert_string_equal(list[1].origin, "second");
    assert_int_equal(list[2].seed, 42);
    trial_list_free(list, n);
}

STORE_TEST(metrics_keep_nan_and_inf)
{
    struct curve_point *curve;
    size_t n;
    const struct metric_point points[] = {
        {200, 2.0, "loss", NAN}, {100, 1.0, "loss", 0.5}, {300, 3.0, "loss", -INFINITY}, {100, 1.0, "train/lr", 1e-3}};
    const struct metric_point last = {400, 4.0, "loss", INFINITY}, again = {100, 1.5, "loss", 0.25};

    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id);
    FAILS(metrics_add(store, t.id, points, 4, NULL, err), ST_EXISTS, "queued");
    OK(store_trial_start(store, t.id, "cpu", NULL, err));
    OK(metrics_add(store, t.id, points, 4, "{}", err));
    OK(metrics_add(store, t.id, &again, 1, NULL, err));
    OK(metrics_add(store, t.id, NULL, 0, NULL, err));
    struct trial_result result = result_make(1, 1);
    result.points = &last;
    result.n_points = 1;
    OK(store_trials_finish(store, &(struct trial_end){t.id, &result, NULL}, 1, err));
    FAILS(metrics_add(store, t.id, points, 4, NULL, err), ST_EXISTS, "done");
    FAILS(metrics_add(store, 77, points, 4, NULL, err), ST_NOTFOUND, "77");

    OK(store_curve(store, t.id, "loss", &curve, &n, err));
    assert_int_equal(n, 4);
    assert_true(curve[0].env_steps == 100 && curve[0].value == 0.25 && curve[0].wall_s == 1.5);
    assert_true(curve[1].env_steps == 200 && isnan(curve[1].value));
    assert_true(curve[2].value == -INFINITY && curve[3].value == INFINITY);
    mem_free(curve);
    OK(store_curve(store, t.id, "unheard of", &curve, &n, err));
    assert_true(curve == NULL && n == 0);
}

STORE_TEST(a_finished_trial_never_changes)
{
    struct trial before, after;
    int64_t n;
    const enum trial_state ends[] = {TRIAL_DONE, TRIAL_STOPPED, TRIAL_FAILED};

    struct study study = study_make(store, "s");
    for (int i = 0; i < 3; i++) {
        struct trial t = trial_make(store, study.id);
        struct trial_result result = result_make(2.0, 3.0), changed;
        result.state = ends[i];
        result.perf = NAN;
        result.reason = ends[i] == TRIAL_DONE ? NULL : "why";
        OK(store_trial_start(store, t.id, "cpu", NULL, err));
        OK(store_trials_finish(store, &(struct trial_end){t.id, &result, NULL}, 1, err));
        OK(store_trial_find(store, study.id, i, &before, err));
        OK(store_trials_finish(store, &(struct trial_end){t.id, &result, NULL}, 1,
                               err)); /* the same news twice is fine */
        changed = result;
        changed.score = 2.5;
        FAILS(store_trials_finish(store, &(struct trial_end){t.id, &changed, NULL}, 1, err), ST_EXISTS, "dropped");
        changed = result;
        changed.reason = "another";
        FAILS(store_trials_finish(store, &(struct trial_end){t.id, &changed, NULL}, 1, err), ST_EXISTS, "dropped");
        changed = result;
        changed.state = TRIAL_LOST;
        FAILS(store_trials_finish(store, &(struct trial_end){t.id, &changed, NULL}, 1, err), ST_EXISTS, "dropped");
        FAILS(store_trial_start(store, t.id, "cpu", NULL, err), ST_EXISTS, trial_state_name(ends[i]));
        OK(store_trials_recover(store, study.id, true, &n, err));
        assert_int_equal(n, 0);
        OK(store_trial_find(store, study.id, i, &after, err));
        assert_true(after.state == before.state && after.score == before.score &&
                    after.finished_ms == before.finished_ms && after.attempt == 1);
        trial_free(&before);
        trial_free(&after);
    }
    /* Nor behind the program's back. */
    assert_false(place_do(place, "UPDATE trial SET score = 9 WHERE number = 0"));

    /* Of several that end together, all do or none. */
    struct trial t = trial_make(store, study.id);
    struct trial_result result = {.state = TRIAL_RUNNING}, good = result_make(0.5, 1.0);
    struct trial_end both[] = {{t.id, &good, "{}"}, {trial_make(store, study.id).id, &result, NULL}};
    FAILS(store_trials_finish(store, both, 2, err), ST_INTERNAL, "running");
    OK(store_trial_find(store, study.id, t.number, &after, err));
    assert_int_equal(after.state, TRIAL_QUEUED);
    trial_free(&after);
    both[1].result = &good;
    OK(store_trials_finish(store, both, 2, err));
    OK(store_trial_find(store, study.id, t.number + 1, &after, err));
    assert_int_equal(after.state, TRIAL_DONE);
    trial_free(&after);
    FAILS(store_trial_start(store, 12345, "cpu", NULL, err), ST_NOTFOUND, "12345");
}

PLACE_TEST(recovery_requeues_or_loses)
{
    STORE *store;
    struct trial t;
    struct curve_point *curve;
    struct study_counts counts;
    size_t n_points;
    int64_t n;
    const struct metric_point point = {10, 0.1, "loss", 1.0};

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s"), other = study_make(store, "o");
    struct trial a = trial_make(store, study.id), b = trial_make(store, study.id), c = trial_make(store, other.id);
    OK(store_trial_start(store, a.id, "cpu", NULL, err));
    OK(store_trial_start(store, c.id, "cpu", NULL, err));
    FAILS(store_trial_start(store, a.id, "cpu", NULL, err), ST_EXISTS, "running");
    OK(metrics_add(store, a.id, &point, 1, NULL, err));
    store_close(store);

    OK(store_open_writer(&store, place->path, err));
    OK(store_trials_recover(store, study.id, true, &n, err));
    assert_int_equal(n, 1);
    OK(store_trial_find(store, study.id, 0, &t, err));
    assert_true(t.state == TRIAL_QUEUED && t.attempt == 1 && t.started_ms == 0 && t.device == NULL);
    trial_free(&t);
    OK(store_trial_start(store, a.id, "cpu", NULL, err)); /* the second attempt starts with an empty curve */
    OK(store_curve(store, a.id, "loss", &curve, &n_points, err));
    assert_int_equal(n_points, 0);
    OK(store_trials_recover(store, study.id, false, &n, err));
    assert_int_equal(n, 1);
    OK(store_trial_find(store, study.id, 0, &t, err));
    assert_true(t.state == TRIAL_LOST && t.attempt == 2 && t.reason != NULL && t.finished_ms > 0);
    trial_free(&t);
    OK(store_trial_start(store, a.id, "cpu", NULL, err));
    OK(store_trial_find(store, study.id, 0, &t, err));
    assert_true(t.state == TRIAL_RUNNING && t.attempt == 3 && t.reason == NULL && t.finished_ms == 0);
    trial_free(&t);
    struct trial_result result = {
        .state = TRIAL_FAILED, .score = NAN, .perf = NAN, .cost_s = 2, .device_s = NAN, .reason = "never started"};
    OK(store_trials_finish(store, &(struct trial_end){b.id, &result, NULL}, 1, err)); /* straight from the queue */
    OK(store_study_counts(store, &study, &counts, err));
    assert_true(counts.n[TRIAL_RUNNING] == 1 && counts.n[TRIAL_FAILED] == 1 && counts.n[TRIAL_QUEUED] == 0);
    assert_true(isnan(counts.best_score) && counts.cost_s == 2.0);
    OK(store_study_counts(store, &other, &counts, err));
    assert_int_equal(counts.n[TRIAL_RUNNING], 1); /* the other study was left alone */
}

STORE_TEST(counts_follow_the_direction)
{
    struct study_counts counts;

    struct study up = study_make(store, "up"), down = up;
    down.name = "down";
    down.maximize = false;
    OK(store_study_create(store, &down, err));
    for (int i = 0; i < 6; i++) {
        struct study *study = i % 2 == 0 ? &up : &down;
        struct trial t = trial_make(store, study->id);
        struct trial_result result = result_make(i - 2.5, 1.0);
        OK(store_trial_start(store, t.id, "cpu", NULL, err));
        OK(store_trials_finish(store, &(struct trial_end){t.id, &result, NULL}, 1, err));
    }
    OK(store_study_counts(store, &up, &counts, err));
    assert_true(counts.n[TRIAL_DONE] == 3 && counts.best_score == 1.5 && counts.cost_s == 3.0);
    OK(store_study_counts(store, &down, &counts, err));
    assert_true(counts.n[TRIAL_DONE] == 3 && counts.best_score == -1.5);
    AT_END(study_free) struct study found = {0};
    OK(store_study_find(store, "down", &found, err));
    assert_false(found.maximize);
}

/* Reports that came at once are one transaction: all of them, or none; names that went with a rollback are not taken
 * for there. */
STORE_TEST(reports_are_stored_together)
{
    struct curve_point *points = NULL;
    struct outbox_list rows = {0};
    size_t n = 0;

    struct study study = study_make(store, "s");
    struct trial a = trial_make(store, study.id), b = trial_make(store, study.id), idle = trial_make(store, study.id);
    OK(store_trial_start(store, a.id, "cpu", NULL, err));
    OK(store_trial_start(store, b.id, "cpu", NULL, err));
    struct metric_point at_1[] = {{.env_steps = 1, .wall_s = 1, .name = "score", .value = 0.5},
                                  {.env_steps = 1, .wall_s = 1, .name = "loss", .value = NAN}};
    struct metric_point at_2 = {.env_steps = 2, .wall_s = 2, .name = "score", .value = 0.75};
    struct metric_report reports[] = {{.trial_id = a.id, .points = at_1, .n = 2, .outbox_json = "{\"a\":1}"},
                                      {.trial_id = idle.id, .points = at_1, .n = 2, .outbox_json = "{\"i\":1}"},
                                      {.trial_id = a.id, .points = &at_2, .n = 1, .outbox_json = "{\"a\":2}"}};
    FAILS(store_reports_add(store, reports, 3, err), ST_EXISTS, "queued");
    OK(store_curve(store, a.id, "score", &points, &n, err));
    assert_int_equal(n, 0);
    mem_free(points);
    reports[1].trial_id = b.id;
    OK(store_reports_add(store, reports, 3, err));
    OK(store_curve(store, a.id, "score", &points, &n, err));
    assert_true(n == 2 && points[0].value == 0.5 && points[1].value == 0.75);
    mem_free(points);
    OK(store_curve(store, b.id, "loss", &points, &n, err));
    assert_true(n == 1 && isnan(points[0].value));
    mem_free(points);
    OK(store_outbox_read(store, study.id, a.id, 0, INT64_MAX, 10, 1000, &rows, err));
    assert_int_equal(rows.n, 2);
    assert_string_equal(rows.rows[1].payload, "{\"a\":2}");
    outbox_list_free(&rows);
    OK(store_check(store, err));
}

/* People open the file with the sqlite3 shell; the outbox waits for the trackers. */
FILE_TEST(tables_are_readable)
{
    STORE *store;
    sqlite3 *db;
    sqlite3_stmt *stmt;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id);
    struct trial_result result = result_make(0.75, 1.25);
    OK(store_trial_start(store, t.id, "cpu", NULL, err));
    OK(metrics_add(store, t.id, NULL, 0, "{\"n\":1}", err));
    OK(store_trials_finish(store, &(struct trial_end){t.id, &result, "{\"n\":2}"}, 1, err));
    FAILS(metrics_add(store, t.id, NULL, 0, "{", err), ST_EXISTS, "done");
    assert_int_equal(sqlite3_open_v2(place->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT number, state, json_extract(params, '$.\"train.learning_rate\"'), score, cost_s, "
                           "env_steps, seed, reason FROM trial",
                           -1, &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 1), "done");
    assert_true(sqlite3_column_double(stmt, 2) == 0.01 && sqlite3_column_double(stmt, 3) == 0.75);
    sqlite3_finalize(stmt);
    assert_int_equal(
        sqlite3_prepare_v2(db, "SELECT group_concat(payload, ' ') FROM (SELECT payload FROM outbox ORDER BY id)", -1,
                           &stmt, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_string_equal((const char *)sqlite3_column_text(stmt, 0), "{\"n\":1} {\"n\":2}");
    sqlite3_finalize(stmt);
    sqlite3_close(db);
}

FILE_TEST(ten_thousand_trials)
{
    STORE *store;
    struct trial *list;
    struct study_counts counts;
    size_t n;
    sqlite3 *db;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    assert_int_equal(sqlite3_open(place->path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(
            db,
            "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999) "
            "INSERT INTO trial (study_id, number, state, params, score, cost_s, seed, origin, created_ms, config) "
            "SELECT 1, i, 'done', '{\"a\":1}', i, 2.0, i, 'sobol', 1, hex(zeroblob(800)) FROM n",
            NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(db);
    OK(store_trial_list(store, study.id, &list, &n, err));
    assert_int_equal(n, 10000);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(list[i].number, i);
    trial_list_free(list, n);
    OK(store_study_counts(store, &study, &counts, err));
    assert_true(counts.n[TRIAL_DONE] == 10000 && counts.best_score == 9999 && counts.cost_s == 20000);
    struct trial t = trial_make(store, study.id);
    assert_int_equal(t.number, 10000);
}

PLACE_TEST(an_extended_trial_begins_where_the_other_ended)
{
    const struct metric_point points[] = {{1024, 0.1, "loss", 0.5}, {4096, 0.4, "loss", 0.25}, {5000, 0.5, "loss", 9}};
    struct store *store;
    struct store_verdict verdict;
    struct trial found = {0}, longer;
    struct curve_point *curve;
    char *path;
    size_t n;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    struct trial first = trial_make(store, study.id);
    OK(store_trial_start(store, first.id, "cpu", NULL, err));
    OK(metrics_add(store, first.id, points, 3, NULL, err));
    const struct trial_result result = result_make(1, 1);
    OK(store_trials_finish(store, &(struct trial_end){first.id, &result, NULL}, 1, err));
    longer = first;
    longer.dropped = (char *)"longer";
    OK(store_trial_extend(store, &longer, first.id, 4096, "/b.ckpt", err));
    assert_true(longer.id != first.id && longer.number == 1);
    OK(store_trial_find(store, study.id, 1, &found, err));
    assert_int_equal(found.state, TRIAL_QUEUED);
    assert_string_equal(found.dropped, "longer");
    trial_free(&found);
    OK(store_trial_resume(store, longer.id, "cpu", NULL, err)); /* keeps both */
    OK(store_curve(store, longer.id, "loss", &curve, &n, err));
    assert_int_equal(n, 2);
    assert_true(curve[1].env_steps == 4096 && curve[1].value == 0.25 && curve[1].wall_s == 0.4);
    mem_free(curve);
    OK(store_checkpoint_path(store, longer.id, &path, err));
    assert_string_equal(path, "/b.ckpt");
    mem_free(path);
    OK(store_curve(store, first.id, "loss", &curve, &n, err));
    assert_int_equal(n, 3);
    mem_free(curve);
    OK(metrics_add(store, longer.id, &(struct metric_point){8192, 0.9, "loss", 0.125}, 1, NULL, err));
    store_close(store);
    OK(store_verify(place->path, &verdict, NULL, NULL, err));
    assert_true(verdict.n_damaged == 0 && verdict.curves.n_unchecked == 0 && verdict.points == 6);
}

int main(void)
{
    return place_run_cases("store");
}
