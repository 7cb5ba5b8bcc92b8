/* cmd_rerun.c - `trawl rerun`: trains a trial's stored config again, with its own seed to see the same bytes, or with
 * fresh seeds to see how much of its score was luck.
 * Invariants: (1) the store is only read; (2) a rerun ends at the env steps that the stored trial came to; (3) what the
 * clock decides (cost, train.max_seconds) is compared but never called different. */
#include "sweep/control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "kernels/kernels.h"
#include "sweep/rerun.h"

#define SEEDS_MAX 1000

/* One training of the config. */
struct again {
    int64_t seed, env_steps;
    double score, perf, cost_s;
    char device[256];
};

struct rerun_cmd {
    const char *store_path, *output;
    int64_t number, n_seeds; /* n_seeds 0: the stored seed, compared */
    bool json, quiet;
    struct study study;
    struct trial trial;
    char *checkpoint; /* of the trial, if the store knows one that is still there */
    struct setup *setup;
    struct run run;
    struct train_metrics last;
    struct again *runs; /* (max(n_seeds, 1)) */
    size_t n;
    int params_equal; /* to the stored checkpoint's: 1 yes, 0 no, -1 unknown */
};

static bool on_metrics(void *ctx, const struct train_metrics *m)
{
    struct rerun_cmd *r = ctx;

    r->last = *m;
    return true;
}

/* A trial that was stopped on its way is repeated up to there. */
static bool should_stop(void *ctx)
{
    struct rerun_cmd *r = ctx;
    struct train_metrics now;

    if (signals_stop())
        return true;
    if (r->trial.state != TRIAL_STOPPED || r->trial.env_steps <= 0)
        return false;
    trainer_get_metrics(r->run.trainer, &now);
    return now.env_steps >= r->trial.env_steps;
}

/* The study's metric at the end of a run, as the worker computes it. */
static double final_score(struct rerun_cmd *r, const struct train_result *result)
{
    r->last.score = result->score;
    r->last.perf = result->perf;
    r->last.ep_return = result->ep_return;
    r->last.ep_length = result->ep_length;
    r->last.steps_per_s = result->steps_per_s;
    for (size_t i = 0; i < train_n_metric_defs; i++)
        if (strcmp(train_metric_defs[i].name, r->study.metric) == 0)
            return train_metric_value(&r->last, i);
    return NAN;
}

/* Are the weights those of the stored checkpoint? Loads it over the trainer's, so this comes last. */
static enum status compare_params(struct rerun_cmd *r, struct error *err)
{
    size_t n = trainer_n_params(r->run.trainer);
    float *ours = mem_array(n, sizeof *ours), *theirs = mem_array(n, sizeof *theirs);
    struct error why = {0};
    enum status rc = ours != NULL && theirs != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for %zu weights", n);

    if (rc == ST_OK)
        rc = trainer_get_params(r->run.trainer, ours, err);
    if (rc == ST_OK && trainer_load(r->run.trainer, r->checkpoint, &why) != ST_OK)
        log_warn("the weights cannot be compared: %s", why.text);
    else if (rc == ST_OK && (rc = trainer_get_params(r->run.trainer, theirs, err)) == ST_OK)
        r->params_equal = memcmp(ours, theirs, n * sizeof *ours) == 0;
    mem_free(ours);
    mem_free(theirs);
    return rc;
}

static enum status save(struct rerun_cmd *r, const struct setup *setup, struct error *err)
{
    char *text = NULL;
    enum status rc = setup_to_ini(setup, &text, err);

    if (rc == ST_OK)
        rc = trainer_save(r->run.trainer, r->output, text, err);
    mem_free(text);
    return rc;
}

static enum status train_once(struct rerun_cmd *r, int64_t seed, struct again *ret_again, struct error *err)
{
    struct train_callbacks callbacks = {.ctx = r, .on_metrics = on_metrics, .should_stop = should_stop};
    struct setup_override override = {.key = "train.seed"};
    struct train_result result;
    struct setup *setup = NULL;
    enum status rc;

    snprintf(override.value, sizeof override.value, "%lld", (long long)seed);
    memset(&r->last, 0, sizeof r->last);
    TRY(setup_derive(r->setup, &override, 1, "rerun", &setup, err));
    rc = run_open(&r->run, setup, err);
    if (rc == ST_OK)
        rc = trainer_run(r->run.trainer, &callbacks, &result, err);
    if (rc == ST_OK && signals_stop())
        rc = ST_INTERRUPTED;
    if (rc == ST_OK) {
        *ret_again = (struct again){.seed = seed,
                                    .env_steps = result.env_steps,
                                    .score = final_score(r, &result),
                                    .perf = result.perf,
                                    .cost_s = result.cost_s};
        snprintf(ret_again->device, sizeof ret_again->device, "%s", kern_device_name(r->run.kern));
    }
    if (rc == ST_OK && r->output != NULL)
        rc = save(r, setup, err);
    if (rc == ST_OK && r->n_seeds == 0 && r->checkpoint != NULL)
        rc = compare_params(r, err);
    setup_destroy(setup);
    return rc;
}

/* Not the stored seed: that run was picked for its score, and would make the mean look better than it is. */
static int64_t fresh_seed(const struct rerun_cmd *r, size_t i)
{
    return (int64_t)(rng_split(rng_seed((uint64_t)r->trial.seed), (uint64_t)i).key & 0x7fffffff);
}

static void tell_progress(const struct rerun_cmd *r, const struct again *again)
{
    char cost[32];

    if (!r->quiet && r->n_seeds > 0)
        fprintf(stderr, "%zu/%lld  seed %lld  %s %.6g  cost %s\n", r->n, (long long)r->n_seeds, (long long)again->seed,
                r->study.metric, again->score, format_seconds(again->cost_s, cost));
}

static enum status train_all(struct rerun_cmd *r, struct error *err)
{
    size_t want = r->n_seeds > 0 ? (size_t)r->n_seeds : 1;

    r->runs = mem_array(want, sizeof *r->runs);
    if (r->runs == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for %zu runs", want);
    signals_catch();
    while (r->n < want) {
        TRY(train_once(r, r->n_seeds > 0 ? fresh_seed(r, r->n) : r->trial.seed, &r->runs[r->n], err));
        r->n++;
        tell_progress(r, &r->runs[r->n - 1]);
    }
    return ST_OK;
}

/* ---- one run with the stored seed ---- */

static bool has_result(const struct rerun_cmd *r)
{
    return isfinite(r->trial.score);
}

static bool score_equal(const struct rerun_cmd *r)
{
    return r->runs[0].score == r->trial.score;
}

static bool device_equal(const struct rerun_cmd *r)
{
    return r->trial.device != NULL && strcmp(r->trial.device, r->runs[0].device) == 0;
}

static bool is_same(const struct rerun_cmd *r)
{
    return score_equal(r) && r->runs[0].env_steps == r->trial.env_steps && r->params_equal != 0;
}

/* What else may differ when the bytes do. */
static const char *why_different(const struct rerun_cmd *r)
{
    if (!device_equal(r))
        return "it ran on another device";
    if (strcmp(r->study.program, program_text) != 0)
        return "the program is another one since";
    if (r->setup->train.max_seconds > 0)
        return "train.max_seconds ends it by the clock";
    return "same device, program and seed: this should not be; please report it with the store";
}

static void print_compared(const struct rerun_cmd *r)
{
    const struct again *a = &r->runs[0];
    char cost[32], old_cost[32];

    printf("trial %lld of %s again, seed %lld\n", (long long)r->trial.number, r->study.name, (long long)a->seed);
    printf("%-10s %18s %18s\n", "", "stored", "now");
    printf("%-10s %18.10g %18.10g   %s\n", r->study.metric, r->trial.score, a->score,
           !has_result(r)   ? "nothing stored to compare with"
           : score_equal(r) ? "equal"
                            : "DIFFERENT");
    printf("%-10s %18lld %18lld   %s\n", "steps", (long long)r->trial.env_steps, (long long)a->env_steps,
           r->trial.env_steps == a->env_steps ? "equal" : "DIFFERENT");
    printf("%-10s %18s %18s\n", "cost", isfinite(r->trial.cost_s) ? format_seconds(r->trial.cost_s, old_cost) : "-",
           format_seconds(a->cost_s, cost));
    if (r->params_equal >= 0)
        printf("%-10s %18s %18s   %s\n", "weights", "checkpoint", "", r->params_equal ? "equal" : "DIFFERENT");
    printf("device stored: %s\ndevice now:    %s\n", r->trial.device != NULL ? r->trial.device : "-", a->device);
    if (r->output != NULL)
        printf("checkpoint %s; `trawl eval %s` plays it\n", r->output, r->output);
}

static cJSON *compared_json(const struct rerun_cmd *r)
{
    const struct again *a = &r->runs[0];
    cJSON *json = cJSON_CreateObject(), *old = cJSON_CreateObject(), *now = cJSON_CreateObject();
    bool ok =
        json != NULL && old != NULL && now != NULL && json_add_f64(old, "score", r->trial.score) &&
        json_add_f64(old, "cost_s", r->trial.cost_s) && json_add_i64(old, "env_steps", r->trial.env_steps) &&
        json_add_str(old, "device", r->trial.device) && json_add_str(old, "program", r->study.program) &&
        json_add_f64(now, "score", a->score) && json_add_f64(now, "cost_s", a->cost_s) &&
        json_add_i64(now, "env_steps", a->env_steps) && json_add_str(now, "device", a->device) &&
        json_add_str(now, "program", program_text) && json_add_str(json, "study", r->study.name) &&
        json_add_i64(json, "trial", r->trial.number) && json_add_i64(json, "seed", a->seed) &&
        json_add_str(json, "metric", r->study.metric) && json_add_str(json, "checkpoint", r->output) &&
        json_add(json, "same", has_result(r) ? cJSON_CreateBool(is_same(r)) : cJSON_CreateNull()) &&
        json_add(json, "weights_equal", r->params_equal >= 0 ? cJSON_CreateBool(r->params_equal) : cJSON_CreateNull());

    if (!ok) {
        cJSON_Delete(old);
        cJSON_Delete(now);
        cJSON_Delete(json);
        return NULL;
    }
    if (!json_add(json, "stored", old)) {
        cJSON_Delete(now);
        cJSON_Delete(json);
        return NULL;
    }
    if (!json_add(json, "now", now)) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static enum status tell_compared(const struct rerun_cmd *r, struct error *err)
{
    if (r->json)
        TRY(cli_print_json(compared_json(r), err));
    else
        print_compared(r);
    if (!has_result(r) || is_same(r))
        return ST_OK;
    return FAIL(err, ST_NUMERIC, "trial %lld of %s did not come out the same: %s", (long long)r->trial.number,
                r->study.name, why_different(r));
}

/* ---- many seeds ---- */

struct spread {
    struct rerun_stats score, cost;
    size_t n_scores; /* runs that ended with a score */
    size_t above; /* of them, better than the stored one */
};

static enum status measure_spread(const struct rerun_cmd *r, struct spread *ret_spread, struct error *err)
{
    double *scores = mem_array(r->n + 1, sizeof *scores), *costs = mem_array(r->n + 1, sizeof *costs);
    enum status rc = ST_OK;

    *ret_spread = (struct spread){0};
    if (scores == NULL || costs == NULL) {
        rc = FAIL(err, ST_NOMEM, "out of memory for %zu runs", r->n);
    } else {
        for (size_t i = 0; i < r->n; i++) {
            double score = r->runs[i].score;
            costs[i] = r->runs[i].cost_s;
            if (!isfinite(score))
                continue;
            scores[ret_spread->n_scores++] = score;
            ret_spread->above += r->study.maximize ? score > r->trial.score : score < r->trial.score;
        }
        rerun_stats(scores, ret_spread->n_scores, &ret_spread->score);
        rerun_stats(costs, r->n, &ret_spread->cost);
    }
    mem_free(scores);
    mem_free(costs);
    return rc;
}

/* Where the stored score sits among further runs, in words. */
static const char *verdict(const struct rerun_cmd *r, const struct spread *s)
{
    const struct rerun_stats *q = &s->score;
    bool better = r->study.maximize ? r->trial.score > q->mean : r->trial.score < q->mean;

    if (!has_result(r) || q->n < 2)
        return "unknown";
    if (r->trial.score >= q->next_lo && r->trial.score <= q->next_hi)
        return "usual";
    return better ? "lucky" : "unlucky";
}

static void print_verdict(const struct rerun_cmd *r, const struct spread *s)
{
    const char *word = verdict(r, s);

    if (!has_result(r))
        printf("the stored trial has no %s to compare with\n", r->study.metric);
    else if (strcmp(word, "unknown") == 0)
        printf("stored %.6g; two seeds at least tell how usual that is\n", r->trial.score);
    else
        printf("stored %.6g: %zu of %zu runs are better; %s\n", r->trial.score, s->above, s->n_scores,
               strcmp(word, "usual") == 0 ? "within what another seed gives"
               : strcmp(word, "lucky") == 0
                   ? "better than 95 % of seeds would give: count on the mean, not on this run"
                   : "worse than 95 % of seeds would give: the config is better than its trial");
}

static void print_stats(const char *name, const struct rerun_stats *q)
{
    printf("%-10s %10.5g %10.3g  %10.5g to %-10.5g %10.5g %10.5g\n", name, q->mean, q->sd, q->mean_lo, q->mean_hi,
           q->min, q->max);
}

static void print_spread(const struct rerun_cmd *r, const struct spread *s)
{
    printf("trial %lld of %s with %zu fresh seed%s on %s\n", (long long)r->trial.number, r->study.name, r->n,
           r->n == 1 ? "" : "s", r->runs[0].device);
    printf("%-10s %10s %10s  %24s %10s %10s\n", "", "mean", "sd", "95 % interval of the mean", "least", "most");
    print_stats(r->study.metric, &s->score);
    print_stats("cost (s)", &s->cost);
    if (s->n_scores < r->n)
        printf("%zu run%s ended without a score\n", r->n - s->n_scores, r->n - s->n_scores == 1 ? "" : "s");
    print_verdict(r, s);
}

static cJSON *stats_json(const struct rerun_stats *q)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_i64(json, "n", (int64_t)q->n) && json_add_f64(json, "mean", q->mean) &&
              json_add_f64(json, "sd", q->sd) && json_add_f64(json, "mean_lo", q->mean_lo) &&
              json_add_f64(json, "mean_hi", q->mean_hi) && json_add_f64(json, "next_lo", q->next_lo) &&
              json_add_f64(json, "next_hi", q->next_hi) && json_add_f64(json, "min", q->min) &&
              json_add_f64(json, "max", q->max);

    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static cJSON *runs_json(const struct rerun_cmd *r)
{
    cJSON *array = cJSON_CreateArray();
    bool ok = array != NULL;

    for (size_t i = 0; ok && i < r->n; i++) {
        const struct again *a = &r->runs[i];
        cJSON *row = cJSON_CreateObject();
        ok = row != NULL && cJSON_AddItemToArray(array, row) && json_add_i64(row, "seed", a->seed) &&
             json_add_f64(row, "score", a->score) && json_add_f64(row, "perf", a->perf) &&
             json_add_f64(row, "cost_s", a->cost_s) && json_add_i64(row, "env_steps", a->env_steps);
    }
    if (!ok) {
        cJSON_Delete(array);
        return NULL;
    }
    return array;
}

static cJSON *spread_json(const struct rerun_cmd *r, const struct spread *s)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "study", r->study.name) &&
              json_add_i64(json, "trial", r->trial.number) && json_add_str(json, "metric", r->study.metric) &&
              json_add_str(json, "device", r->n > 0 ? r->runs[0].device : NULL) &&
              json_add_f64(json, "stored_score", r->trial.score) &&
              json_add_f64(json, "stored_cost_s", r->trial.cost_s) && json_add(json, "score", stats_json(&s->score)) &&
              json_add(json, "cost_s", stats_json(&s->cost)) && json_add_i64(json, "better", (int64_t)s->above) &&
              json_add_str(json, "verdict", verdict(r, s)) && json_add(json, "runs", runs_json(r));

    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static enum status tell_spread(const struct rerun_cmd *r, struct error *err)
{
    struct spread spread;

    TRY(measure_spread(r, &spread, err));
    if (r->json)
        return cli_print_json(spread_json(r, &spread), err);
    print_spread(r, &spread);
    return ST_OK;
}

/* ---- the command ---- */

/* A CPU run's bytes depend on its number of threads. Where the config leaves that to the machine, the stored device
 * tells how many there were: "Intel(R) Xeon(R) ... (2 threads, SkylakeX)". */
static enum status keep_threads(struct rerun_cmd *r, struct error *err)
{
    const char *at = r->trial.device != NULL ? strrchr(r->trial.device, '(') : NULL;
    struct setup_override override = {.key = "train.threads"};
    struct setup *setup = NULL;
    unsigned n;

    if (r->setup->train.threads != 0 || at == NULL || sscanf(at, "(%u thread", &n) != 1 || n == 0)
        return ST_OK;
    snprintf(override.value, sizeof override.value, "%u", n);
    TRY(setup_derive(r->setup, &override, 1, "stored device", &setup, err));
    setup_destroy(r->setup);
    r->setup = setup;
    return ST_OK;
}

static enum status load(struct rerun_cmd *r, const char *name, struct error *err)
{
    struct store *store = NULL;
    enum status rc = store_open_reader(&store, r->store_path, err);

    if (rc == ST_OK)
        rc = store_study_find(store, name, &r->study, err);
    if (rc == ST_OK)
        rc = store_trial_find(store, r->study.id, r->number, &r->trial, err);
    if (rc == ST_OK)
        rc = store_checkpoint_path(store, r->trial.id, &r->checkpoint, err);
    store_close(store);
    if (rc == ST_OK)
        rc = trial_setup(&r->trial, &r->setup, err);
    if (rc == ST_OK)
        rc = keep_threads(r, err);
    return rc;
}

static enum status rerun(struct rerun_cmd *r, const char *name, struct error *err)
{
    enum status rc;

    TRY(load(r, name, err));
    if (r->checkpoint != NULL && !file_exists(r->checkpoint)) {
        log_warn("the trial's checkpoint %s is gone, so its weights are not compared", r->checkpoint);
        mem_free(r->checkpoint);
        r->checkpoint = NULL;
    }
    rc = train_all(r, err);
    if (rc == ST_OK && r->n_seeds == 0)
        return tell_compared(r, err);
    if (r->n > 0 && (rc == ST_OK || rc == ST_INTERRUPTED)) /* what was trained is worth telling */
        TRY(tell_spread(r, err));
    if (rc == ST_INTERRUPTED)
        return FAIL(err, rc, "interrupted after %zu of %lld runs", r->n, (long long)(r->n_seeds > 0 ? r->n_seeds : 1));
    return rc;
}

static enum status check_usage(const struct rerun_cmd *r, struct error *err)
{
    if (r->number < 0)
        return FAIL(err, ST_USAGE, "rerun: which trial? --trial N; `trawl show NAME` lists them");
    if (r->n_seeds > SEEDS_MAX)
        return FAIL(err, ST_USAGE, "rerun: --seeds is %lld, 1 to %d are possible", (long long)r->n_seeds, SEEDS_MAX);
    if (r->n_seeds > 0 && r->output != NULL)
        return FAIL(err, ST_USAGE, "rerun: -o saves the run with the stored seed; leave --seeds out");
    return r->output != NULL ? check_writable(r->output, err) : ST_OK;
}

enum status cmd_rerun(int argc, char **argv, struct error *err)
{
    struct rerun_cmd r = {.store_path = "trawl.db", .number = -1, .params_equal = -1};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_TEXT, &r.store_path, "FILE", "the store (trawl.db)"},
        {"trial", 't', CLI_INT, &r.number, "N", "the trial's number, as `trawl show` lists it"},
        {"seeds", 0, CLI_INT, &r.n_seeds, "K", "train K times with fresh seeds and tell mean and spread"},
        {"checkpoint", 'o', CLI_TEXT, &r.output, "FILE", "save the trained policy here (not with --seeds)"},
        {"json", 0, CLI_FLAG, &r.json, NULL, "print one JSON object"},
        {"quiet", 'q', CLI_FLAG, &r.quiet, NULL, "show no progress"},
    };
    const struct cli cli = {
        .name = "rerun",
        .synopsis = "trawl rerun NAME --trial N [--seeds K] [-o FILE] [--store FILE] [--json]",
        .about =
            "Trains the config of a trial again. Without --seeds: with the trial's own seed, and compares score, "
            "steps\n"
            "and (where a checkpoint was kept) weights with the stored ones; on the same device and program they are\n"
            "equal to the bit, and the exit code is 1 when they are not. With --seeds K: K times with fresh seeds, "
            "for\n"
            "the mean of score and cost with its 95 % interval, and how usual the stored score is. A trial that was\n"
            "picked as the best of many was often a lucky one.",
        .examples = "  trawl rerun first --trial 17 --store my.db\n"
                    "  trawl rerun first --trial 17 --store my.db --seeds 10",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .min_words = 1,
        .max_words = 1,
        .words_text = "a study's name (`trawl ls` lists them)",
    };
    enum status rc = cli_parse(&cli, argc, argv, &words, err);

    if (rc != ST_OK || words.help)
        return rc;
    rc = check_usage(&r, err);
    if (rc == ST_OK)
        rc = rerun(&r, words.v[0], err);
    run_close(&r.run);
    setup_destroy(r.setup);
    mem_free(r.runs);
    mem_free(r.checkpoint);
    trial_free(&r.trial);
    study_free(&r.study);
    return rc;
}
