/* store_test.h - a directory of its own for each test, and the shortest way to a study and trials in it. */
#ifndef TESTS_STORE_TEST_H
#define TESTS_STORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store.h"

struct place {
    char dir[64];
    char path[96]; /* dir/s.db */
};

static inline int place_make(void **state)
{
    struct place *place = calloc(1, sizeof *place);
    snprintf(place->dir, sizeof place->dir, "/tmp/trawl-store-XXXXXX");
    if (mkdtemp(place->dir) == NULL)
        return -1;
    snprintf(place->path, sizeof place->path, "%s/s.db", place->dir);
    *state = place;
    return 0;
}

static inline int place_remove(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    struct place *place = *state;
    char path[192];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", place->dir, names[i]);
        unlink(path);
    }
    rmdir(place->dir);
    free(place);
    return 0;
}

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        struct error err_ = {ST_OK, ""};                                                                               \
        struct error *err = &err_;                                                                                     \
        enum status rc_ = (call);                                                                                      \
        if (rc_ != ST_OK)                                                                                              \
            fail_msg("%s: %s: %s", #call, status_name(rc_), err_.text);                                                \
    } while (0)

/* The call fails with that status and a message that holds the word. */
#define REFUSED(call, want, word)                                                                                      \
    do {                                                                                                               \
        struct error err_ = {ST_OK, ""};                                                                               \
        struct error *err = &err_;                                                                                     \
        enum status rc_ = (call);                                                                                      \
        if (rc_ != (want) || err_.status != (want) || strstr(err_.text, word) == NULL)                                 \
            fail_msg("%s: %s: %s", #call, status_name(rc_), err_.text);                                                \
    } while (0)

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

#endif
