/* make_study.c - writes a made-up study into a store, by the store's own functions, for tests and measurements of the
 * pages:
 *   make_study STORE NAME TRIALS [RUNNING]
 * Same arguments, same trials (times apart). Score grows with cost and has a best learning rate; every tenth trial
 * fails, every fifteenth is stopped; the last RUNNING trials are left running. Each trial has its whole config and a
 * learning curve. */

#include "base/rng.h"
#include "store/store.h"
#include "study/space/search.h"
#include "study/setup/setup.h"
#include "study/version.h"

#define CURVE 12 /* points */

static const char sweep_config[] = "[env]\nname = squared\n[train]\ndevice = cpu\n[sweep]\nmetric = perf\nseed = 3\n"
                                   "[sweep.train.total_timesteps]\nmin = 250000\nmax = 3000000\n"
                                   "[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.03\n"
                                   "[sweep.train.gamma]\nmin = 0.95\nmax = 0.9999\n"
                                   "[sweep.train.optimizer]\nvalues = adam, muon\n"
                                   "[sweep.policy.hidden_size]\nmin = 16\nmax = 128\n";

struct maker {
    struct setup *setup;
    struct search search;
    struct store *store;
    struct study study;
};

static enum status open_study(struct maker *m, const char *path, const char *name, int64_t trials, struct error *err)
{
    TRY(setup_create(&m->setup, err));
    TRY(config_load_text(m->setup->config, "made-up study", sweep_config, err));
    TRY(setup_finish(m->setup, err));
    TRY(search_from_setup(m->setup, &m->search, err));
    TRY(search_bind(&m->search, m->setup, err));
    m->study = (struct study){.name = mem_strdup(name),
                              .method = mem_strdup("pareto"),
                              .metric = mem_strdup("perf"),
                              .maximize = true,
                              .seed = 3,
                              .limits.trials_max = trials,
                              .program = mem_strdup(program_text)};
    TRY(setup_to_ini(m->setup, &m->study.config, err));
    m->study.space = search_to_json(&m->search);
    TRY(store_open_writer(&m->store, path, err));
    return store_study_create(m->store, &m->study, err);
}

static enum status make_config(struct maker *m, const double *x, char **ret_text, struct error *err)
{
    struct setup_override overrides[SPACE_MAX_DIM];
    struct setup *setup = NULL;

    for (size_t k = 0; k < m->search.space.dim; k++) {
        overrides[k].key = m->search.space.params[k].key;
        search_value_text(&m->search, k, x[k], overrides[k].value, sizeof overrides[k].value);
    }
    TRY(setup_derive(m->setup, overrides, m->search.space.dim, "made up", &setup, err));
    enum status rc = setup_to_ini(setup, ret_text, err);
    setup_destroy(setup);
    return rc;
}

static double value_of(const struct maker *m, const double *x, const char *key)
{
    for (size_t k = 0; k < m->search.space.dim; k++)
        if (strcmp(m->search.space.params[k].key, key) == 0)
            return x[k];
    return NAN;
}

/* Created and started; the curve of a run that ends at score after steps and cost_s. */
static enum status begin_trial(struct maker *m, int64_t number, const double *x, double score, double cost_s,
                               double steps, struct trial *ret_trial, struct error *err)
{
    static const char *const names[] = {"perf", "score", "train/policy_loss", "steps_per_s"};
    struct metric_point points[CURVE * 4];
    char slot[16];

    *ret_trial = (struct trial){.study_id = m->study.id,
                                .origin = mem_strdup(number == 0   ? "default"
                                                     : number < 10 ? "sobol"
                                                                   : "ehvi"),
                                .seed = 100 + number};
    ret_trial->params = search_params_json(&m->search, x);
    TRY(make_config(m, x, &ret_trial->config, err));
    TRY(store_trial_create(m->store, ret_trial, err));
    snprintf(slot, sizeof slot, "cpu/%d", (int)(number % 2));
    TRY(store_trial_start(m->store, ret_trial->id, "cpu (2 threads)", slot, err));
    for (int i = 0; i < CURVE; i++) {
        double part = (i + 1.0) / CURVE;
        double values[] = {score * (1 - exp(-4 * part)), 2 * score * part - 1, 0.3 * exp(-part), 1e5};
        for (int k = 0; k < 4; k++)
            points[i * 4 + k] = (struct metric_point){(int64_t)(steps * part), cost_s * part, names[k], values[k]};
    }
    const struct metric_report report = {.trial_id = ret_trial->id, .points = points, .n = CURVE * 4};
    return store_reports_add(m->store, &report, 1, err);
}

static enum status make_trial(struct maker *m, int64_t number, bool running, struct rng *rng, struct error *err)
{
    double u[SPACE_MAX_DIM], x[SPACE_MAX_DIM], steps, score, cost_s;
    AT_END(trial_free) struct trial trial = {0};

    for (size_t k = 0; k < m->search.space.dim; k++)
        u[k] = rng_f64(rng);
    space_from_unit(&m->search.space, u, x);
    steps = value_of(m, x, "train.total_timesteps");
    cost_s = steps / 1e5 * (0.5 + value_of(m, x, "policy.hidden_size") / 128.0) * (0.9 + 0.2 * rng_f64(rng));
    score =
        (1.0 - exp(-steps / 8e5)) * exp(-0.6 * pow(log10(value_of(m, x, "train.learning_rate")) + 2.2, 2.0)) * 0.95 +
        0.03 * rng_f64(rng);
    enum status rc = begin_trial(m, number, x, score, cost_s, steps, &trial, err);
    struct trial_result result = (struct trial_result){.state = TRIAL_DONE,
                                                       .score = score,
                                                       .perf = score,
                                                       .cost_s = cost_s,
                                                       .device_s = cost_s,
                                                       .env_steps = (int64_t)steps,
                                                       .cost_method = "wall"};
    if (number % 10 == 7) {
        result.state = TRIAL_FAILED;
        result.score = result.perf = NAN;
        result.reason = number % 20 == 7 ? "policy.encoder.weight is NaN after update 12 (step 98304)"
                                         : "the worker died of signal 9";
        result.log_tail = "worker: iteration 11\nworker: <b>iteration 12</b>\n";
    } else if (number % 15 == 11) {
        result.state = TRIAL_STOPPED;
        result.cost_s *= 0.3;
        result.reason = "unlikely to reach the front";
    }
    if (rc == ST_OK && !running)
        rc = store_trials_finish(m->store, &(struct trial_end){trial.id, &result, NULL}, 1, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct maker *m = mem_alloc(sizeof *m);
    int64_t trials = 0, running = 0;
    struct rng rng = rng_seed(5);
    struct error err = {0};

    if (argc < 4 || argc > 5 || !num_parse_i64(argv[3], &trials) || (argc == 5 && !num_parse_i64(argv[4], &running))) {
        fprintf(stderr, "usage: make_study STORE NAME TRIALS [RUNNING]\n");
        return 2;
    }
    enum status rc = open_study(m, argv[1], argv[2], trials, &err);
    for (int64_t i = 0; i < trials && rc == ST_OK; i++)
        rc = make_trial(m, i, i >= trials - running, &rng, &err);
    if (rc != ST_OK)
        fprintf(stderr, "make_study: %s\n", err.text);
    store_close(m->store);
    study_free(&m->study);
    search_free(&m->search);
    setup_destroy(m->setup);
    mem_free(m);
    return status_exit_code(rc);
}
