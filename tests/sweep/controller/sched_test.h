/* sched_test.h - shared by the tests of the scheduler: a place with a store, studies and devices. A program of these
 * tests is its own worker: started as `... worker` it becomes the one of fake_worker.c. */
#pragma once

#include <signal.h>

#include "tests/check.h"
#include "fake_worker.h"
#include "study/setup/setup.h"
#include "sweep/launch/devices.h"
#include "sweep/controller/sched_study.h"

static const char sched_config[] = "[env]\nname = squared\nn = 1\n"
                                   "[policy]\ncore = none\nhidden_size = 8\n"
                                   "[train]\ntotal_agents = 16\nhorizon = 16\nminibatch_size = 256\nthreads = 1\n"
                                   "device = cpu\n"
                                   "[sweep]\nmethod = %s\nseed = 5\n%s"
                                   "[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.1\n"
                                   "[sweep.train.gamma]\nmin = 0.8\nmax = 0.99\n";

struct place {
    char folder[TEMP_FOLDER_MAX], path[96];
    struct store *store;
    struct devices *devices;
    struct scheduler *sched;
    struct sched_study *runs[4];
    size_t n_runs;
    struct trial *stored; /* (n_stored) what load_stored found last; owned */
    size_t n_stored;
    int64_t n_ended, stop_at; /* trials that ended; scheduler_stop after that number, 0: never */
    bool stop_quarantined; /* once the first worker's device is left alone */
    bool stop_beside; /* not before another trial runs, however slowly its worker began */
    int woken; /* times the watched pipe was read */
    size_t most_queued; /* trials of one study, while another began */
    const char *says; /* bytes to write to it, one after every 10 trials */
    int step; /* of wake_beside_a_node */
    double looked_s; /* the scheduler's last look at the store, when the callback last ran */
    int said; /* bytes or pairs of commands written to it */
    size_t slept_at; /* trial whose proposal was being made when the program stood still */
    char starts[1024]; /* (n_starts) 'a' or 'b': whose trials began, in turn */
    size_t n_starts, part_at[3];
    int pipe[2];
};

static inline void quiet(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level, (void)line;
}

static inline int set_up(void **state)
{
    struct place *p = mem_alloc(sizeof *p);

    assert_non_null(p);
    temp_folder_make(p->folder);
    snprintf(p->path, sizeof p->path, "%s/s.db", p->folder);
    p->devices = mem_alloc(sizeof *p->devices);
    assert_non_null(p->devices);
    p->pipe[0] = p->pipe[1] = -1;
    log_set_sink(quiet, NULL);
    OK(store_open_writer(&p->store, p->path, err));
    *state = p;
    return 0;
}

/* Ends the scheduler and the studies, as the end of the program does. */
static inline void let_go(struct place *p)
{
    scheduler_destroy(p->sched);
    p->sched = NULL;
    for (size_t i = 0; i < p->n_runs; i++)
        sched_study_destroy(p->runs[i]);
    p->n_runs = 0;
}

static inline int tear_down(void **state)
{
    MEM_LOCAL struct place *p = *state;

    let_go(p);
    trial_list_free(p->stored, p->n_stored);
    store_close(p->store);
    for (int i = 0; i < 2; i++)
        if (p->pipe[i] >= 0)
            close(p->pipe[i]);
    temp_folder_remove(p->folder);
    mem_free(p->devices);
    return 0;
}

static inline void create_study_with(struct place *p, const char *name, const char *method, int64_t trials,
                                     int64_t priority, const char *more)
{
    char text[1024];
    struct setup *setup = NULL;
    struct search search = {0};
    struct study study = {.name = (char *)name,
                          .method = (char *)method,
                          .metric = (char *)"perf",
                          .maximize = true,
                          .seed = 5,
                          .limits.trials_max = trials,
                          .limits.priority = priority,
                          .program = (char *)"test"};

    snprintf(text, sizeof text, sched_config, method, more);
    OK(setup_create(&setup, err));
    OK(config_load_text(setup->config, "test", text, err));
    OK(setup_finish(setup, err));
    OK(search_from_setup(setup, &search, err));
    study.space = search_to_json(&search);
    OK(setup_to_ini(setup, &study.config, err));
    OK(store_study_create(p->store, &study, err));
    mem_free(study.space);
    mem_free(study.config);
    search_free(&search);
    setup_destroy(setup);
}

static inline void create_study(struct place *p, const char *name, const char *method, int64_t trials, int64_t priority)
{
    create_study_with(p, name, method, trials, priority, "");
}

static inline void add_device(struct place *p, const char *name, int lanes)
{
    struct device_spec *spec = &p->devices->v[p->devices->n++];

    *spec = (struct device_spec){.lanes = lanes};
    snprintf(spec->name, sizeof spec->name, "%s", name);
    snprintf(spec->label, sizeof spec->label, "d%zu", p->devices->n - 1);
}

static inline void on_trial_end(void *ctx, const struct sched_study *ss, const struct trial *trial)
{
    struct place *p = ctx;

    (void)trial;
    p->n_ended++;
    if (p->stop_quarantined && p->sched->workers.v[0].health.quarantined)
        scheduler_stop(p->sched);
    if (p->stop_at > 0 && p->n_ended >= p->stop_at &&
        (!p->stop_beside || study_view_count(&ss->view, TRIAL_RUNNING) > 0))
        scheduler_stop(p->sched);
}

static inline struct sched_study *serve(struct place *p, const char *name)
{
    struct sched_study *ss = NULL;

    if (p->sched == NULL) {
        OK(scheduler_create(&p->sched, p->devices, err));
        p->sched->listener = (struct sched_listener){.ctx = p, .on_trial_end = on_trial_end};
        p->sched->hang_timeout_s = 0;
    }
    OK(sched_study_open(&ss, p->store, name, err));
    OK(scheduler_add(p->sched, ss, err));
    p->runs[p->n_runs++] = ss;
    return ss;
}

/* A study of Sobol points, run to its end. */
static inline const struct sched_study *run_sobol(struct place *p, const char *name, int64_t trials)
{
    create_study(p, name, "sobol", trials, 1);
    const struct sched_study *ss = serve(p, name);
    OK(scheduler_run(p->sched, err));
    return ss;
}

/* The trials as the store has them. */
static inline const struct trial *load_stored(struct place *p, const struct sched_study *ss)
{
    trial_list_free(p->stored, p->n_stored);
    p->stored = NULL;
    OK(store_trial_list(p->store, ss->view.study.id, &p->stored, &p->n_stored, err));
    assert_int_equal(p->n_stored, ss->view.n);
    return p->stored;
}

#define SCHED_TEST(name) TEST_ON(name, struct place *p, set_up, tear_down)

#define SCHED_PROGRAM(name)                                                                                            \
    int main(int argc, char **argv)                                                                                    \
    {                                                                                                                  \
        if (argc == 2 && strcmp(argv[1], "worker") == 0)                                                               \
            return fake_worker_main();                                                                                 \
        signal(SIGPIPE, SIG_IGN); /* as in the program */                                                              \
        return run_cases(name, NULL, NULL);                                                                            \
    }
