/* test_lease.c - leases: who has a trial, what its result becomes, and what silence costs. */
#include "store_test.h"

#include <sqlite3.h>

#include "base/rng.h"
#include "store/store_priv.h"

static struct lease give(struct store *store, int64_t trial_id, const char *client, const char *token)
{
    struct lease lease = {.trial_id = trial_id, .until_ms = 60000};

    snprintf(lease.client, sizeof lease.client, "%s", client);
    snprintf(lease.token, sizeof lease.token, "%s", token);
    OK(store_lease_give(store, &lease, err));
    return lease;
}

static struct trial find(struct store *store, int64_t study_id, int64_t number)
{
    struct trial trial;

    OK(store_trial_find(store, study_id, number, &trial, err));
    return trial;
}

static void expect(struct store *store, int64_t study_id, int64_t number, enum trial_state state, int64_t attempt)
{
    AT_END(trial_free) struct trial t = find(store, study_id, number);

    assert_int_equal(t.state, state);
    assert_int_equal(t.attempt, attempt);
}

STORE_TEST(a_trial_has_one_client)
{
    struct lease *open;
    size_t n;

    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id), other = trial_make(store, study.id);
    struct lease a = give(store, t.id, "a", "token-a"), b = {.trial_id = t.id, .client = "b", .token = "token-b"};
    assert_true(a.attempt == 1 && a.state == LEASE_OPEN && a.given_ms > 0);
    expect(store, study.id, 0, TRIAL_RUNNING, 1);
    FAILS(store_lease_give(store, &b, err), ST_EXISTS, "not in the queue");
    expect(store, study.id, 0, TRIAL_RUNNING, 1);
    (void)give(store, other.id, "a", "token-c"); /* one client may have two trials */
    OK(store_lease_list_open(store, study.id, &open, &n, err));
    assert_true(n == 2 && open[0].number == 0 && open[1].number == 1);
    assert_string_equal(open[0].client, "a");
    assert_true(open[0].seq == -1 && open[0].result == NULL && open[0].until_ms == 60000);
    lease_list_free(open, n);
    FAILS(store_lease_find(store, "token-x", &b, err), ST_NOTFOUND, "no such lease");
}

PLACE_TEST(a_result_is_the_trials_once)
{
    struct trial_result result = result_make(0.5, 2), other = result_make(0.75, 2), wrong = result_make((double)NAN, 1);
    STORE *store;
    struct lease found;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id);
    struct lease a = give(store, t.id, "a", "token-a");
    FAILS(store_lease_finish(store, a.id, &wrong, "{}", NULL, err), ST_NUMERIC, "finite score");
    expect(store, study.id, 0, TRIAL_RUNNING, 1); /* and the lease is open as before: */
    OK(store_lease_finish(store, a.id, &result, "{\"score\":0.5}", "{\"row\":1}", err));
    FAILS(store_lease_finish(store, a.id, &other, "{\"score\":0.75}", "{\"row\":2}", err), ST_EXISTS, "ended");
    FAILS(store_lease_finish_late(store, a.id, "{}", err), ST_EXISTS, "ended");
    store_close(store);
    OK(store_open_writer(&store, place->path, err));
    t = find(store, study.id, 0);
    assert_true(t.state == TRIAL_DONE && t.score == 0.5 && t.cost_s == 2);
    trial_free(&t);
    OK(store_lease_find(store, "token-a", &found, err));
    assert_true(found.state == LEASE_REPORTED && found.ended_ms > 0 && found.number == 0 && found.study_id == study.id);
    assert_string_equal(found.result, "{\"score\":0.5}");
    lease_free(&found);
    int64_t n_rows;
    OK(store_outbox_count(store, study.id, NULL, &n_rows, err));
    assert_int_equal(n_rows, 1);
}

STORE_TEST(silence_puts_back_once_then_loses)
{
    struct trial_result result = result_make(0.5, 2);
    enum trial_state after;
    struct lease *all;
    size_t n;

    struct study study = study_make(store, "s");
    AT_END(trial_free) struct trial t = trial_make(store, study.id);
    struct lease a = give(store, t.id, "a", "token-a");
    const struct metric_point point = {10, 0.5, "score", 0.25};
    const struct metric_report report = {.trial_id = t.id, .points = &point, .n = 1};
    OK(store_lease_extend(store, a.id, 1000, 1, &report, err));
    OK(store_lease_end(store, a.id, LEASE_EXPIRED, &after, err));
    assert_int_equal(after, TRIAL_QUEUED);
    expect(store, study.id, 0, TRIAL_QUEUED, 1);
    FAILS(store_lease_end(store, a.id, LEASE_EXPIRED, &after, err), ST_EXISTS, "ended");
    FAILS(store_lease_extend(store, a.id, 1000, 2, NULL, err), ST_EXISTS, "ended");
    /* Given back is not silence: it counts neither way. */
    struct lease b = give(store, t.id, "b", "token-b");
    OK(store_lease_end(store, b.id, LEASE_RETURNED, &after, err));
    assert_int_equal(after, TRIAL_QUEUED);
    struct lease c = give(store, t.id, "c", "token-c");
    struct curve_point *points;
    OK(store_curve(store, t.id, "score", &points, &n, err)); /* of the attempt that is lost */
    assert_int_equal(n, 0);
    mem_free(points);
    OK(store_lease_end(store, c.id, LEASE_EXPIRED, &after, err));
    assert_int_equal(after, TRIAL_LOST);
    t = find(store, study.id, 0);
    assert_true(t.state == TRIAL_LOST && t.attempt == 3 && t.losses == 1 && t.finished_ms > 0);
    assert_string_equal(t.reason, "two clients had it, one after the other, and fell silent");
    /* Late results are kept with their leases, and change nothing. */
    OK(store_lease_finish_late(store, a.id, "{\"score\":1}", err));
    FAILS(store_lease_finish_late(store, a.id, "{\"score\":2}", err), ST_EXISTS, "result already");
    OK(store_lease_finish_late(store, b.id, "{\"score\":3}", err));
    FAILS(store_lease_finish(store, c.id, &result, "{}", NULL, err), ST_EXISTS, "ended");
    struct lease d = {.trial_id = t.id, .client = "d", .token = "token-d"};
    FAILS(store_lease_give(store, &d, err), ST_EXISTS, "not in the queue");
    expect(store, study.id, 0, TRIAL_LOST, 3);
    OK(store_lease_list(store, t.id, &all, &n, err));
    assert_int_equal(n, 3);
    assert_true(all[0].state == LEASE_EXPIRED && all[1].state == LEASE_RETURNED && all[2].state == LEASE_EXPIRED);
    assert_true(strcmp(all[0].result, "{\"score\":1}") == 0 && strcmp(all[1].result, "{\"score\":3}") == 0);
    assert_null(all[2].result);
    assert_true(all[0].seq == 1 && all[2].attempt == 3);
    lease_list_free(all, n);
}

/* Whoever needs 7 s between two looks at silent nodes seems to have stood still in each. */
STORE_TEST(slow_looks_do_not_spare_a_silent_node_for_ever)
{
    struct lease lease = {.client = "n/cpu", .token = NODE_TOKEN "1"};
    int64_t n_expired = 0;
    int n_looks = 0;

    struct study study = study_make(store, "s");
    (void)trial_make(store, study.id);
    OK(store_lease_claim(store, study.id, -1, &lease, err));
    for (; n_expired == 0 && n_looks < 100; n_looks++) {
        store->looked_s = clock_boot_s() - 7;
        OK(store_leases_expire(store, &n_expired, err));
    }
    assert_int_equal(n_expired, 1);
    assert_true(n_looks > 3); /* it had time to report */
    expect(store, study.id, 0, TRIAL_QUEUED, 1);
}

PLACE_TEST(a_report_extends)
{
    const struct metric_point points[] = {{10, 0.5, "score", 0.25}, {10, 0.5, "loss", 2}};
    STORE *store;
    struct lease found;
    struct curve_point *curve;
    enum trial_state after;
    size_t n;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id);
    struct lease a = give(store, t.id, "a", "token-a");
    const struct metric_report report = {.trial_id = t.id, .points = points, .n = 2};
    OK(store_lease_extend(store, a.id, 70000, 4, &report, err));
    OK(store_lease_extend(store, a.id, 90000, 3, NULL, err)); /* the number never falls */
    store_close(store);
    OK(store_open_writer(&store, place->path, err));
    OK(store_lease_find(store, "token-a", &found, err));
    assert_true(found.until_ms == 90000 && found.seq == 4 && found.state == LEASE_OPEN);
    lease_free(&found);
    OK(store_curve(store, t.id, "loss", &curve, &n, err));
    assert_true(n == 1 && curve[0].value == 2 && curve[0].env_steps == 10);
    mem_free(curve);
    OK(store_lease_end(store, a.id, LEASE_RETURNED, &after, err));
    const struct metric_report late = {.trial_id = t.id, .points = points, .n = 1};
    FAILS(store_lease_extend(store, a.id, 99000, 9, &late, err), ST_EXISTS, "ended");
    OK(store_lease_find(store, "token-a", &found, err));
    assert_true(found.until_ms == 90000 && found.seq == 4);
    lease_free(&found);
}

/* A controller that starts queues what its own workers ran, and leaves the clients theirs. */
STORE_TEST(a_restart_leaves_leases_alone)
{
    int64_t n;

    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id), own = trial_make(store, study.id);
    struct lease a = give(store, t.id, "a", "token-a");
    OK(store_trial_start(store, own.id, "cpu", NULL, err));
    OK(store_trials_recover(store, study.id, true, &n, err));
    assert_int_equal(n, 1);
    expect(store, study.id, 0, TRIAL_RUNNING, 1);
    expect(store, study.id, 1, TRIAL_QUEUED, 1);
    enum trial_state after;
    OK(store_lease_end(store, a.id, LEASE_EXPIRED, &after, err));
    OK(store_trial_start(store, t.id, "cpu", NULL, err)); /* put back, a worker of the controller may take it */
    OK(store_trials_recover(store, study.id, true, &n, err));
    assert_int_equal(n, 1);
}

STORE_TEST(a_trial_from_elsewhere_is_added_once)
{
    struct trial_result result = result_make(0.5, 2), wrong = result_make((double)NAN, 2);
    struct trial made = {.params = "{}", .config = "[train]\n", .origin = "added", .seed = 3, .propose_s = (double)NAN};

    struct study study = study_make(store, "s");
    (void)trial_make(store, study.id);
    made.study_id = study.id;
    FAILS(store_trial_add(store, &made, &wrong, "c", "key", "{}", NULL, err), ST_NUMERIC, "finite score");
    OK(store_trial_add(store, &made, &result, "c", "key", "{}", NULL, err));
    assert_int_equal(made.number, 1); /* the refused one has left no gap */
    FAILS(store_trial_add(store, &made, &result, "c", "key", "{}", NULL, err), ST_EXISTS, "already");
    expect(store, study.id, 1, TRIAL_DONE, 0);
    FAILS(store_trial_find(store, study.id, 2, &made, err), ST_NOTFOUND, "no trial 2");
}

/* Many clients at random: whatever they do, a trial has at most one client and at most one counted result. */
PLACE_TEST(random_clients_double_nothing)
{
    enum { TRIALS = 12, STEPS = 600 };
    struct store *store;
    struct rng rng = rng_seed(5);
    char tokens[STEPS][16];
    int64_t ids[STEPS], trials[TRIALS];
    int n_leases = 0, n_results = 0, n_refused = 0;
    struct store_verdict verdict;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    for (int i = 0; i < TRIALS; i++)
        trials[i] = trial_make(store, study.id).id;
    for (int step = 0; step < STEPS; step++) {
        struct trial_result result = result_make(step, 1);
        struct lease lease = {.trial_id = trials[rng_u32(&rng) % TRIALS], .client = "c"};
        enum trial_state after;
        int what = (int)(rng_u32(&rng) % 8), k = n_leases > 0 ? (int)(rng_u32(&rng) % (unsigned)n_leases) : -1;
        enum status rc = ST_OK;
        if (what < 3 || k < 0) {
            snprintf(tokens[n_leases], sizeof tokens[0], "t%d", n_leases);
            snprintf(lease.token, sizeof lease.token, "%s", tokens[n_leases]);
            rc = store_lease_give(store, &lease, NULL);
            if (rc == ST_OK)
                ids[n_leases++] = lease.id;
        } else if (what == 3) {
            rc = store_lease_finish(store, ids[k], &result, "{}", NULL, NULL);
            n_results += rc == ST_OK;
        } else if (what == 4) {
            rc = store_lease_finish_late(store, ids[k], "{}", NULL);
        } else {
            rc = store_lease_end(store, ids[k], what < 7 ? LEASE_RETURNED : LEASE_EXPIRED, &after, NULL);
        }
        assert_true(rc == ST_OK || rc == ST_EXISTS);
        n_refused += rc == ST_EXISTS;
    }
    assert_true(n_results >= 3 && n_refused > 50); /* the walk has met both */
    assert_int_equal(place_count(place, "trial WHERE state = 'done'"), n_results);
    assert_int_equal(place_count(place, "lease WHERE state = 'reported'"), n_results);
    assert_int_equal(place_count(place, "trial AS t WHERE state = 'running' AND 1 <> (SELECT count(*) FROM lease WHERE "
                                        "trial_id = t.id AND state = 'open')"),
                     0);
    assert_int_equal(place_count(place,
                                 "trial AS t WHERE state <> 'running' AND EXISTS (SELECT 1 FROM lease WHERE trial_id "
                                 "= t.id AND state = 'open')"),
                     0);
    assert_int_equal(place_count(place,
                                 "trial AS t WHERE state = 'lost' AND 2 > (SELECT count(*) FROM lease WHERE trial_id "
                                 "= t.id AND state = 'expired')"),
                     0);
    assert_int_equal(place_count(place,
                                 "trial AS t WHERE state <> 'lost' AND 2 <= (SELECT count(*) FROM lease WHERE trial_id "
                                 "= t.id AND state = 'expired')"),
                     0);
    store_close(store);
    OK(store_verify(place->path, &verdict, NULL, NULL, err));
    assert_true(verdict.n_damaged == 0 && verdict.leases.n == n_leases && verdict.leases.n_unchecked == 0);
}

/* Back to version 11, where the branches stood in the column of the result until there was one. */
static const char *const file_before_12[] = {
    "ALTER TABLE node DROP COLUMN meets", "DROP TABLE lease",
    "CREATE TABLE lease (id INTEGER PRIMARY KEY, trial_id INTEGER, attempt INTEGER, client TEXT, token TEXT, state "
    "TEXT, "
    "given_ms INTEGER, until_ms INTEGER, ended_ms INTEGER, seq INTEGER, told TEXT, checksum INTEGER, stop TEXT)",
    "PRAGMA user_version = 11", NULL};
static const char *const database_before_12[] = {
    "ALTER TABLE node DROP COLUMN meets",
    "ALTER TABLE lease DROP CONSTRAINT lease_state_check",
    "ALTER TABLE lease DROP COLUMN branches",
    "ALTER TABLE lease RENAME COLUMN result TO told",
    "ALTER TABLE lease ADD CONSTRAINT lease_state_check CHECK (state IN ('open', 'told', 'expired', 'returned'))",
    "UPDATE store SET version = 11",
    NULL};
static const char leases_before_12[] =
    "INSERT INTO lease (trial_id, attempt, client, token, state, given_ms, until_ms, ended_ms, seq, told, checksum, "
    "stop) "
    "VALUES (1, 1, 'a', 't1', 'told', 1, 2, 3, 4, '{\"score\":0.5,\"branches\":[{\"score\":1.50}]}', 9, NULL), "
    "(1, 2, 'a', 't2', 'returned', 1, 2, 3, 4, '{\"branches\":[1]}', 9, NULL), "
    "(1, 3, 'a', 't3', 'expired', 1, 2, 3, 4, NULL, NULL, 'why'), "
    "(1, 4, 'a', 't4', 'expired', 1, 2, 3, 4, '{\"score\":2}', 9, NULL)";

PLACE_TEST(leases_of_older_stores_get_their_new_names)
{
    struct store *store;
    struct lease *all;
    struct store_verdict verdict;
    size_t n;

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id);
    assert_int_equal(t.id, 1);
    store_close(store);
    for (const char *const *sql = place_is_file() ? file_before_12 : database_before_12; *sql != NULL; sql++)
        assert_true(place_do(place, *sql));
    assert_true(place_do(place, leases_before_12));
    OK(store_open_writer(&store, place->path, err));
    OK(store_lease_list(store, t.id, &all, &n, err));
    assert_int_equal(n, 4);
    assert_true(all[0].state == LEASE_REPORTED && all[1].state == LEASE_RETURNED && all[2].state == LEASE_EXPIRED);
    assert_string_equal(all[0].result, "{\"score\":0.5,\"branches\":[{\"score\":1.50}]}");
    assert_string_equal(all[0].branches, "[{\"score\":1.50}]");
    assert_null(all[1].result);
    assert_string_equal(all[1].branches, "[1]");
    assert_true(all[2].result == NULL && all[2].branches == NULL && all[3].branches == NULL);
    assert_string_equal(all[3].result, "{\"score\":2}");
    lease_list_free(all, n);
    struct lease a = give(store, t.id, "a", "t5");
    assert_int_equal(a.id, 5);
    OK(store_lease_put_branches(store, a.id, "[2]", err));
    struct trial_result result = result_make(0.5, 2);
    OK(store_lease_finish(store, a.id, &result, "{}", NULL, err));
    FAILS(store_lease_put_branches(store, a.id, "[3]", err), ST_EXISTS, "result already");
    store_close(store);
    OK(store_verify(place->path, &verdict, NULL, NULL, err));
    assert_true(verdict.n_damaged == 0 && verdict.leases.n == 5 && verdict.leases.n_unchecked == 4);
}

PLACE_TEST(damage_is_found)
{
    struct store_verdict verdict;
    struct lease found;
    STORE *store;
    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    struct lease a = give(store, trial_make(store, study.id).id, "a", "token-a");
    store_close(store);
    assert_true(place_do(place, "UPDATE lease SET client = 'b'"));
    OK(store_verify(place->path, &verdict, NULL, NULL, err));
    assert_int_equal(verdict.n_damaged, 1);
    OK(store_open_writer(&store, place->path, err));
    FAILS(store_lease_find(store, "token-a", &found, err), ST_CORRUPT, "lease of the trial");
    FAILS(store_lease_extend(store, a.id, 1, 1, NULL, err), ST_CORRUPT, "lease with id"); /* never sealed */
}

/* A hint comes with the commit, also on a connection that was made again; a file has none. */
PLACE_TEST(a_queued_trial_is_hinted_at)
{
    STORE *writer, *listener;

    OK(store_open_writer(&writer, place->path, err));
    struct study study = study_make(writer, "s");
    OK(store_open_second(&listener, place->path, err));
    OK(store_listen(listener, STORE_HINT_TRIALS, err));
    assert_true((store_hint_fd(listener) >= 0) == !place_is_file());
    (void)store_hint_take(listener, STORE_HINT_TRIALS); /* it looks when it begins to listen */
    assert_false(store_hint_wait(listener, STORE_HINT_TRIALS, 0.01));
    struct trial t = trial_make(writer, study.id);
    assert_true(store_hint_wait(listener, STORE_HINT_TRIALS, place_is_file() ? 0.01 : 60) == !place_is_file());
    assert_false(store_hint_take(listener, STORE_HINT_TRIALS)); /* once */
    struct lease taken = {.trial_id = t.id, .client = "b", .token = "token-b"};
    FAILS(store_lease_give(writer, &(struct lease){.trial_id = t.id + 1, .client = "b", .token = "token-c"}, err),
          ST_EXISTS, "not in the queue"); /* nothing was written: no hint */
    assert_false(store_hint_wait(listener, STORE_HINT_TRIALS, 0.01));
    OK(store_lease_give(writer, &taken, err));
    assert_false(store_hint_wait(listener, STORE_HINT_TRIALS, 0.01)); /* it is about something else */
    if (!place_is_file()) {
        int64_t version;
        assert_true(place_do(place,
                             "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                             " AND query LIKE '%LISTEN%'"));
        OK(store_data_version(listener, &version, err)); /* connects again */
        assert_true(store_hint_take(listener, STORE_HINT_TRIALS)); /* what came meanwhile was missed */
        (void)trial_make(writer, study.id);
        assert_true(store_hint_wait(listener, STORE_HINT_TRIALS, 60));
    }
}

TEST_PROGRAM("lease")
