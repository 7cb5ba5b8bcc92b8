/* warm_bench.c - trial after trial in one process, as a sweep's worker runs them: what a start costs, whether memory
 * grows, and how long a training takes until its policy is good.
 *
 * usage: build/bench/warm_bench growth CONFIG TRIALS [--section.key value ...]
 *        build/bench/warm_bench score CONFIG SEEDS [--section.key value ...]
 *        build/bench/warm_bench curve CONFIG SEEDS [--section.key value ...]
 * growth  a start is making the trainer and its first iteration, less what a later iteration takes; every tenth trial
 *         has another width. score: for each seed from train.seed on, seconds from handing over a setup to the end of
 *         training, and the perf of 1024 episodes afterwards, played outside of the time. curve: perf over steps and
 *         seconds at CURVE_POINTS places. One JSON object. */

#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/worker/session.h"

#define EPISODES 1024
#define CURVE_POINTS 60
#define GROWTH_FROM 20 /* by then every shape has been seen */

struct warm {
    struct setup *setup;
    struct session session;
    int64_t n;
    double *ms, *perf; /* (n) */
};

static long resident_kb(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long all = 0, resident = 0;

    if (file != NULL) {
        if (fscanf(file, "%ld %ld", &all, &resident) != 2)
            resident = 0;
        fclose(file);
    }
    return resident * 4;
}

static void end_trial(struct warm *w)
{
    trainer_destroy(w->session.trainer);
    w->session.trainer = NULL;
}

static enum status growth(struct warm *w, struct error *err)
{
    const struct train_settings *train = &w->setup->train;
    int64_t *width = &w->setup->policy.hidden_size, first_width = *width, known = 0;
    double all_s = clock_mono_s(), first_ms = 0.0, new_ms = 0.0;
    long host_kb = 0;
    size_t device = 0;

    for (int64_t i = 0; i < w->n; i++) {
        struct train_result result;
        double begin_s = clock_mono_s(), start_ms, one_s;

        w->setup->train.seed = i;
        if (i > 0 && i % 10 == 0)
            *width = *width == first_width ? first_width / 2 : first_width;
        TRY(session_open(&w->session, w->setup, err));
        TRY(trainer_iterate(w->session.trainer, err));
        TRY(trainer_sync(w->session.trainer, err));
        start_ms = 1e3 * (clock_mono_s() - begin_s);
        TRY(trainer_run(w->session.trainer, NULL, &result, err));
        one_s = result.cost_s * (double)(train->total_agents * train->horizon) / (double)result.env_steps;
        start_ms -= 1e3 * one_s;
        end_trial(w);
        if (i == 0)
            first_ms = start_ms;
        else if (i == 10)
            new_ms = start_ms;
        else
            w->ms[known++] = start_ms;
        if (i == GROWTH_FROM) {
            host_kb = resident_kb();
            device = kern_memory_bytes(w->session.kern);
        }
    }
    num_sort(w->ms, (size_t)known);
    printf("\"trials\": %lld, \"steps_each\": %lld, \"seconds\": %.3f, \"start_ms\": {\"first\": %.2f, \"new_shape\": "
           "%.2f, \"known_median\": %.2f, \"known_max\": %.2f}",
           (long long)w->n, (long long)train->total_timesteps, clock_mono_s() - all_s, first_ms, new_ms,
           known > 0 ? w->ms[known / 2] : 0.0, known > 0 ? w->ms[known - 1] : 0.0);
    if (w->n > GROWTH_FROM + 1)
        printf(", \"grown_since_trial_%d\": {\"host_kb\": %ld, \"device_bytes\": %lld}", GROWTH_FROM,
               resident_kb() - host_kb, (long long)device - (long long)kern_memory_bytes(w->session.kern));
    return ST_OK;
}

static enum status score(struct warm *w, struct error *err)
{
    struct eval_settings eval = {.episodes = EPISODES, .agents = EPISODES, .seed = 1, .max_steps = 1000000};
    int64_t n_good = 0, first_seed = w->setup->train.seed;

    printf("\"runs\": [");
    for (int64_t i = 0; i < w->n; i++) {
        struct eval_result r;
        struct train_result result;
        double begin_s = clock_mono_s();

        w->setup->train.seed = first_seed + i;
        TRY(session_open(&w->session, w->setup, err));
        TRY(trainer_run(w->session.trainer, NULL, &result, err));
        w->ms[i] = 1e3 * (clock_mono_s() - begin_s);
        TRY(trainer_eval(w->session.trainer, &eval, &r, err));
        end_trial(w);
        w->perf[i] = r.perf;
        n_good += r.perf >= 0.95;
        printf("%s{\"seed\": %lld, \"s\": %.3f, \"perf\": %.4f, \"env_steps\": %lld}", i > 0 ? ", " : "",
               (long long)w->setup->train.seed, w->ms[i] * 1e-3, r.perf, (long long)result.env_steps);
    }
    num_sort(w->ms, (size_t)w->n);
    num_sort(w->perf, (size_t)w->n);
    printf("], \"s_median\": %.3f, \"s_max\": %.3f, \"perf_median\": %.4f, \"perf_min\": %.4f, \"reached_0.95\": %lld",
           w->ms[w->n / 2] * 1e-3, w->ms[w->n - 1] * 1e-3, w->perf[w->n / 2], w->perf[0], (long long)n_good);
    return ST_OK;
}

/* One training's curve: perf over the episodes that ended since the last point. */
struct curve {
    int64_t steps_each; /* between two points */
    int n;
    double episodes, perf; /* since the last point; perf summed up over them */
    double steps[CURVE_POINTS], seconds[CURVE_POINTS], perfs[CURVE_POINTS];
};

static bool curve_take(void *ctx, const struct train_metrics *m)
{
    struct curve *c = (struct curve *)ctx;

    if (m->episodes > 0.0) {
        c->episodes += m->episodes;
        c->perf += m->episodes * m->perf;
    }
    if (c->n == CURVE_POINTS || c->episodes == 0.0 || m->env_steps < (c->n + 1) * c->steps_each)
        return true;
    c->steps[c->n] = (double)m->env_steps;
    c->seconds[c->n] = m->wall_s;
    c->perfs[c->n++] = c->perf / c->episodes;
    c->episodes = c->perf = 0.0;
    return true;
}

static void curve_print(const char *name, const double *x, int n)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < n; i++)
        printf("%s%.9g", i > 0 ? ", " : "", x[i]);
    printf("]");
}

static enum status curve(struct warm *w, struct error *err)
{
    w->setup->train.log_interval_s = 0.0; /* after every rollout */
    printf("\"runs\": [");
    for (int64_t i = 0; i < w->n; i++) {
        struct curve c = {.steps_each = w->setup->train.total_timesteps / CURVE_POINTS};
        struct train_callbacks callbacks = {.ctx = &c, .on_metrics = curve_take};
        struct train_result result;

        w->setup->train.seed = i + 1;
        TRY(session_open(&w->session, w->setup, err));
        TRY(trainer_run(w->session.trainer, &callbacks, &result, err));
        end_trial(w);
        printf("%s{\"seed\": %lld, \"cost_s\": %.3f, \"perf\": %.4f", i > 0 ? ", " : "", (long long)i + 1,
               result.cost_s, result.window.perf);
        curve_print("steps", c.steps, c.n);
        curve_print("seconds", c.seconds, c.n);
        curve_print("curve", c.perfs, c.n);
        printf("}");
    }
    printf("], \"precision\": \"%s\"", kern_ops(w->session.kern)->act_size == 2 ? "bf16" : "f32");
    return ST_OK;
}

static enum status warm_main(struct warm *w, int argc, char **argv, struct error *err)
{
    double open_s = clock_mono_s();

    TRY(setup_create(&w->setup, err));
    TRY(config_take_args(w->setup->config, &argc, argv, err));
    if (argc != 4 || (w->n = atoll(argv[3])) < 1)
        return FAIL(err, ST_USAGE, "usage: warm_bench growth|score|curve CONFIG COUNT [--section.key value ...]");
    w->ms = mem_array((size_t)w->n, sizeof *w->ms);
    w->perf = mem_array((size_t)w->n, sizeof *w->perf);
    TRY(setup_load(w->setup, argv[2], err));
    TRY(setup_finish(w->setup, err));
    TRY(session_open_device(&w->session, w->setup, err));
    printf("{\"bench\": \"warm %s\", \"config\": \"%s\", \"program\": \"%s\", \"device\": \"%s\", \"open_s\": %.3f, ",
           argv[1], argv[2], program_text, kern_device_name(w->session.kern), clock_mono_s() - open_s);
    TRY(strcmp(argv[1], "score") == 0 ? score(w, err) : strcmp(argv[1], "curve") == 0 ? curve(w, err) : growth(w, err));
    printf("}\n");
    return ST_OK;
}

int main(int argc, char **argv)
{
    struct warm w = {0};
    struct error err = {0};
    enum status rc = warm_main(&w, argc, argv, &err);

    if (rc != ST_OK)
        fprintf(stderr, "\nwarm_bench: %s\n", err.text);
    session_close(&w.session);
    setup_destroy(w.setup);
    mem_free(w.ms);
    mem_free(w.perf);
    return status_exit_code(rc);
}
