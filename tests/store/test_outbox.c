/* test_outbox.c - rows that wait for trackers: nothing is removed that somebody lacks, positions and removal go
 * together. */
#include "store_test.h"

static int64_t waiting(struct store *store, int64_t study_id, const char *tracker)
{
    int64_t n = -1;
    OK(store_outbox_count(store, study_id, tracker, &n, err));
    return n;
}

/* Acknowledges rows of a run up to id. */
static void ack(struct store *store, int64_t study_id, const char *tracker, int64_t trial_id, int64_t id)
{
    AT_END(tracker_position_free) struct tracker_position p = {0};
    OK(store_tracker_position(store, study_id, tracker, trial_id, &p, err));
    p.acked_id = p.claimed_id = id;
    OK(store_tracker_commit(store, study_id, tracker, trial_id, &p, err));
}

STORE_TEST(rows_wait_for_the_slowest)
{
    STORE *second;
    struct outbox_list list;
    struct outbox_run *runs;
    char key[TRACKER_KEY_MAX], again[TRACKER_KEY_MAX], **names;
    int64_t last;
    size_t n;

    struct study study = study_make(store, "s");
    struct trial t = trial_make(store, study.id);
    OK(store_tracker_register(store, study.id, "wandb", key, err));
    OK(store_tracker_register(store, study.id, "mlflow", again, err));
    assert_string_equal(key, again);
    OK(store_tracker_register(store, study.id, "wandb", again, err));
    assert_string_equal(key, again);
    OK(store_open_second(&second, place->path, err));
    OK(store_trial_start(store, t.id, "cpu", NULL, err));
    OK(store_outbox_add(store, study.id, 0, "{\"n\":0}", err));
    for (int i = 1; i <= 5; i++) {
        char json[32];
        snprintf(json, sizeof json, "{\"n\":%d}", i);
        OK(metrics_add(store, t.id, NULL, 0, json, err));
    }
    OK(store_outbox_runs(second, study.id, 0, &runs, &n, &last, err));
    assert_true(n == 2 && runs[0].trial_id == 0 && runs[0].number == -1 && runs[1].trial_id == t.id && last == 6);
    mem_free(runs);
    OK(store_outbox_runs(second, study.id, 4, &runs, &n, &last, err));
    assert_true(n == 1 && runs[0].first_id == 5 && runs[0].last_id == 6 && last == 6);
    mem_free(runs);
    OK(store_outbox_read(second, study.id, t.id, 2, 5, 100, 1000, &list, err));
    assert_true(list.n == 3 && list.rows[0].id == 3 && list.rows[2].id == 5);
    assert_string_equal(list.rows[0].payload, "{\"n\":2}");
    outbox_list_free(&list);
    OK(store_outbox_read(second, study.id, t.id, 0, 100, 100, 8, &list, err)); /* one row is always given */
    assert_int_equal(list.n, 1);
    outbox_list_free(&list);

    ack(second, study.id, "wandb", t.id, 5);
    assert_true(waiting(store, study.id, NULL) == 6 && waiting(store, study.id, "wandb") == 2);
    ack(second, study.id, "mlflow", t.id, 3);
    assert_true(waiting(store, study.id, NULL) == 4 && waiting(store, study.id, "mlflow") == 4);
    OK(store_tracker_forget(second, study.id, "mlflow", err)); /* then wandb alone is waited for */
    assert_true(waiting(store, study.id, NULL) == 2);
    FAILS(store_tracker_forget(second, study.id, "mlflow", err), ST_NOTFOUND, "mlflow");
    OK(store_tracker_names(second, study.id, &names, &n, err));
    assert_true(n == 1 && strcmp(names[0], "wandb") == 0);
    store_names_free(names, n);
}

PLACE_TEST(positions_come_back)
{
    STORE *store;
    struct tracker_position p;
    char key[TRACKER_KEY_MAX];

    OK(store_open_writer(&store, place->path, err));
    struct study study = study_make(store, "s");
    OK(store_tracker_register(store, study.id, "wandb", key, err));
    assert_true(strlen(key) == 8 && key[0] >= 'a' && key[0] <= 'z');
    OK(store_tracker_position(store, study.id, "wandb", 9, &p, err));
    assert_true(p.acked_id == 0 && p.last_step == -1 && p.refused == NULL);
    assert_string_equal(p.state, "{}");
    tracker_position_free(&p);
    p = (struct tracker_position){.acked_id = 3,
                                  .claimed_id = 7,
                                  .thin_ms = 2000,
                                  .last_step = 1000000,
                                  .sent_rows = 4,
                                  .ended = true,
                                  .state = mem_strdup("{\"lines\":4}"),
                                  .refused = mem_strdup("gone")};
    OK(store_tracker_commit(store, study.id, "wandb", 9, &p, err));
    FAILS(store_tracker_commit(store, study.id, "other", 9, &p, err), ST_NOTFOUND, "other");
    tracker_position_free(&p);
    store_close(store);
    OK(store_open_writer(&store, place->path, err));
    OK(store_tracker_position(store, study.id, "wandb", 9, &p, err));
    assert_true(p.acked_id == 3 && p.claimed_id == 7 && p.thin_ms == 2000 && p.last_step == 1000000 &&
                p.sent_rows == 4);
    assert_true(p.ended && strcmp(p.state, "{\"lines\":4}") == 0 && strcmp(p.refused, "gone") == 0);
    tracker_position_free(&p);
}

TEST_PROGRAM("outbox")
