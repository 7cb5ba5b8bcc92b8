/* report_test.h - a made-up study with as many trials as asked for, and with its view. */
#pragma once

#include "base/rng.h"
#include "study/view/promise.h"
#include "study/view/study_view.h"
#include "tests/check.h"
#include "web/report/report.h"

#define SAMPLE_DIM 5

struct sample {
    struct study_view view;
    const char *store_path; /* that reports name */
    char (*params)[256];
};

/* Score grows with cost and has a best learning rate; every tenth trial fails, every fifteenth is stopped. */
static inline void sample_trial(struct sample *s, size_t i, struct rng *rng)
{
    static const char *const optimizers[] = {"adam", "muon"};
    double *x = s->view.x[i], u[SAMPLE_DIM];
    struct trial *t = &s->view.trials[i];
    for (int k = 0; k < SAMPLE_DIM; k++)
        u[k] = rng_f64(rng);
    space_from_unit(&s->view.search.space, u, x);
    snprintf(s->params[i], sizeof s->params[i],
             "{\"train.learning_rate\":%.17g,\"train.total_steps\":%.0f,\"train.gamma\":%.17g,\"policy.hidden\":%.0f,"
             "\"train.optimizer\":\"%s\"}",
             x[0], x[1], x[2], x[3], optimizers[(int)x[4]]);
    double cost = x[1] / 1e5 * (0.5 + x[3] / 128.0) * (0.9 + 0.2 * rng_f64(rng));
    double score =
        (1.0 - exp(-x[1] / 4e5)) * exp(-0.6 * pow(log10(x[0]) + 2.2, 2.0)) * (0.85 + 0.15 * u[3]) + 0.03 * rng_f64(rng);
    *t = (struct trial){.id = (int64_t)i + 1,
                        .study_id = 1,
                        .number = (int64_t)i,
                        .state = TRIAL_DONE,
                        .params = s->params[i],
                        .config = (char *)"",
                        .origin = (char *)(i == 0   ? "default"
                                           : i < 10 ? "sobol"
                                                    : "ehvi"),
                        .seed = 1,
                        .attempt = 1,
                        .device = (char *)"cpu",
                        .score = score,
                        .perf = score,
                        .cost_s = cost,
                        .device_s = NAN,
                        .env_steps = (int64_t)x[1],
                        .created_ms = 1767225600000 + (int64_t)i * 20000,
                        .started_ms = 1767225600000 + (int64_t)i * 20000,
                        .finished_ms = 1767225600000 + (int64_t)i * 20000 + 18000};
    if (i % 10 == 7) {
        t->state = TRIAL_FAILED;
        t->score = t->perf = NAN;
        t->reason = (char *)(i % 20 == 7 ? "policy.encoder.weight is NaN after update 12 (step 98304)"
                                         : "the worker died of signal 9");
    } else if (i % 15 == 11) {
        t->state = TRIAL_STOPPED;
        t->cost_s *= 0.3;
        t->reason = (char *)"unlikely to reach the front";
    }
}

/* After the trials were made or changed: history, front and reference. */
static inline void sample_judge(struct sample *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct trial *t = &s->view.trials[i];
        enum gp_trial_state state = t->state == TRIAL_DONE                                  ? GP_TRIAL_DONE
                                    : t->state == TRIAL_STOPPED                             ? GP_TRIAL_STOPPED
                                    : t->state == TRIAL_QUEUED || t->state == TRIAL_RUNNING ? GP_TRIAL_PENDING
                                                                                            : GP_TRIAL_FAILED;
        s->view.gp[i] = (struct gp_trial){.x = s->view.x[i],
                                          .state = state,
                                          .score = s->view.study.maximize ? t->score : -t->score,
                                          .cost = t->cost_s};
    }
    s->view.history = (struct gp_history){.n = n, .trials = s->view.gp};
    pareto_front(&s->view.history, NULL, s->view.on_front);
    pareto_reference(&s->view.history, &s->view.ref);
}

static inline struct sample *sample_make(size_t n)
{
    static const struct space space = {
        SAMPLE_DIM,
        {{.key = "train.learning_rate", .scale = SPACE_LOG, .min = 1e-4, .max = 0.1},
         {.key = "train.total_steps", .scale = SPACE_LOG, .is_int = true, .min = 1e5, .max = 5e6},
         {.key = "train.gamma", .scale = SPACE_LOGIT, .min = 0.8, .max = 0.9999},
         {.key = "policy.hidden", .scale = SPACE_POW2, .min = 16, .max = 512},
         {.key = "train.optimizer", .scale = SPACE_CATEGORICAL, .min = 0, .max = 1, .n_choices = 2}}};
    struct sample *s = calloc(1, sizeof *s);
    struct rng rng = rng_seed(3);
    s->view.study = (struct study){.id = 1,
                                   .name = (char *)"breakout",
                                   .config = (char *)"",
                                   .space = (char *)"{}",
                                   .method = (char *)"pareto",
                                   .metric = (char *)"score",
                                   .maximize = true,
                                   .seed = 42,
                                   .limits.trials_max = (int64_t)n,
                                   .program = (char *)"trawl 0.1.0 (test)",
                                   .created_ms = 1767225600000};
    s->view.search.space = space;
    s->view.search.choices[4][0] = (char *)"adam"; /* not owned here */
    s->view.search.choices[4][1] = (char *)"muon";
    study_view_reserve(&s->view, n + 1);
    s->view.n = n;
    for (size_t i = 0; i < n; i++)
        s->view.x[i] = i == 0 ? calloc(n, SAMPLE_DIM * sizeof(double)) : s->view.x[i - 1] + SAMPLE_DIM;
    s->params = calloc(n + 1, sizeof *s->params);
    s->store_path = "trawl.db";
    for (size_t i = 0; i < n; i++)
        sample_trial(s, i, &rng);
    sample_judge(s, n);
    return s;
}

static inline void sample_free(struct sample *s)
{
    if (s->view.n > 0)
        free(s->view.x[0]);
    mem_free(s->view.trials);
    mem_free(s->view.gp);
    mem_free(s->view.x);
    mem_free(s->view.on_front);
    mem_free(s->view.env);
    mem_free(s->view.front_run);
    gp_insight_free(&s->view.advice);
    free(s->params);
    free(s);
}

/* One that is freed at the end of the block that declares it. */
#define SAMPLE __attribute__((cleanup(sample_drop))) struct sample

static inline void sample_drop(struct sample **s)
{
    sample_free(*s);
}
