/* rerun_show.c - the result of a rerun beside the stored one, as text and as JSON.
 * Invariant: values that depend on the clock (cost, train.max_seconds) are compared but never called different. */
#include "sweep/rerun/rerun_show.h"

#include "base/text/duration.h"
#include "base/text/json.h"
#include "study/view/checkpoint_label.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/cli.h"
#include "study/findings/seed_stats.h"
#include "sweep/rerun/rerun_train.h"
#include "sweep/term.h"

/* ---- one run with the stored seed ---- */

static bool has_result(const struct rerun *r)
{
    return isfinite(r->trial.score);
}

static bool score_equal(const struct rerun *r)
{
    return r->runs[0].score == r->trial.score;
}

static bool device_equal(const struct rerun *r)
{
    return r->trial.device != NULL && strcmp(r->trial.device, r->runs[0].device) == 0;
}

static bool is_same(const struct rerun *r)
{
    return score_equal(r) && r->runs[0].env_steps == r->trial.env_steps && r->params_equal != 0;
}

/* The build that made the stored result. */
static const char *stored_program(const struct rerun *r)
{
    return r->trial.program != NULL ? r->trial.program : r->study.program;
}

static bool units_equal(const struct rerun *r)
{
    return r->trial.kernels == NULL || strcmp(r->trial.kernels, r->runs[0].vector_units) == 0;
}

/* What else may differ when the bytes do. */
static const char *why_different(const struct rerun *r, char buf[160])
{
    int64_t from;

    if (trial_extends(&r->trial, &from)) {
        snprintf(buf, 160,
                 "it extends trial %lld from its checkpoint, and what is annealed is annealed otherwise in a run from "
                 "the start",
                 (long long)from);
        return buf;
    }
    if (strstr(stored_program(r), CHECKPOINT_THEN) != NULL)
        return "it was resumed by another build or on another device on its way";
    if (!units_equal(r))
        return "this CPU has other vector units, so the same bytes cannot come out";
    if (!device_equal(r))
        return "it ran on another device";
    if (strcmp(stored_program(r), program_text) != 0)
        return "the program is another one since";
    if (r->setup->train.max_seconds > 0)
        return "train.max_seconds ends it by the clock";
    return "same device, program and seed: this should not be; please report it with the store";
}

static void print_compared(const struct rerun *r)
{
    const struct rerun_result *a = &r->runs[0];
    char cost[32], old_cost[32];

    printf("trial %lld of %s again, seed %lld\n", (long long)r->trial.number, r->study.name, (long long)a->seed);
    printf("%-10s %18s %18s\n", "", "stored", "now");
    printf("%-10s %18.10g %18.10g   %s\n", r->study.metric, r->trial.score, a->score,
           !has_result(r)   ? "nothing stored to compare with"
           : score_equal(r) ? "equal"
                            : "DIFFERENT");
    printf("%-10s %18lld %18lld   %s\n", "steps", (long long)r->trial.env_steps, (long long)a->env_steps,
           r->trial.env_steps == a->env_steps ? "equal" : "DIFFERENT");
    printf("%-10s %18s %18s\n", "cost",
           study_cost_text(r->cost_kind, study_trial_cost(r->cost_kind, &r->trial), old_cost),
           study_cost_text(r->cost_kind, rerun_cost(r, a), cost));
    if (r->cost_kind == SEARCH_COST_STEPS)
        printf("%-10s %18s %18s\n", "time", isfinite(r->trial.cost_s) ? format_seconds(r->trial.cost_s, old_cost) : "-",
               format_seconds(a->cost_s, cost));
    if (r->params_equal >= 0)
        printf("%-10s %18s %18s   %s\n", "weights", "checkpoint", "", r->params_equal ? "equal" : "DIFFERENT");
    printf("device stored: %s\ndevice now:    %s\n", r->trial.device != NULL ? r->trial.device : "-", a->device);
    if (!units_equal(r))
        printf("vector units:  %s stored, %s now: the same bytes cannot come out here\n", r->trial.kernels,
               a->vector_units);
    if (strcmp(stored_program(r), program_text) != 0)
        printf("program:       %s stored, %s now\n", stored_program(r), program_text);
    if (r->output != NULL)
        printf("checkpoint %s; `trawl eval %s` plays it\n", r->output, SHELL_WORD(r->output));
}

static cJSON *compared_json(const struct rerun *r)
{
    const struct rerun_result *a = &r->runs[0];
    cJSON *json = cJSON_CreateObject(), *old = cJSON_AddObjectToObject(json, "stored"),
          *now = cJSON_AddObjectToObject(json, "now");

    json_add_f64(old, "score", r->trial.score);
    json_add_f64(old, "cost_s", r->trial.cost_s);
    json_add_i64(old, "env_steps", r->trial.env_steps);
    json_add_str(old, "device", r->trial.device);
    json_add_str(old, "program", stored_program(r));
    json_add_f64(old, "score_se", r->trial.score_se);
    json_add_str(old, "vector_units", r->trial.kernels);
    json_add_f64(now, "score_se", a->score_se);
    json_add_str(now, "vector_units", a->vector_units);
    json_add_f64(now, "score", a->score);
    json_add_f64(now, "cost_s", a->cost_s);
    json_add_i64(now, "env_steps", a->env_steps);
    json_add_str(now, "device", a->device);
    json_add_str(now, "program", program_text);
    json_add_str(json, "study", r->study.name);
    json_add_i64(json, "trial", r->trial.number);
    json_add_i64(json, "seed", a->seed);
    json_add_str(json, "metric", r->study.metric);
    json_add_str(json, "checkpoint", r->output);
    json_add(json, "same", has_result(r) ? cJSON_CreateBool(is_same(r)) : cJSON_CreateNull());
    json_add(json, "weights_equal", r->params_equal >= 0 ? cJSON_CreateBool(r->params_equal) : cJSON_CreateNull());
    return json;
}

enum status rerun_print_compared(const struct rerun *r, struct error *err)
{
    char why[160];

    if (r->json)
        cli_print_json(compared_json(r));
    else
        print_compared(r);
    if (!has_result(r) || is_same(r))
        return ST_OK;
    return FAIL(err, ST_NUMERIC, "trial %lld of %s did not come out the same: %s", (long long)r->trial.number,
                r->study.name, why_different(r, why));
}

/* ---- many seeds ---- */

struct spread {
    struct seed_stats score, cost, cost_s; /* cost: as the study counts it */
    size_t n_scores; /* runs that ended with a score */
    size_t above; /* of them, better than the stored one */
};

static void measure_spread(const struct rerun *r, struct spread *ret_spread)
{
    double *scores = mem_array(3 * r->n, sizeof *scores), *costs = scores + r->n, *seconds = costs + r->n;

    *ret_spread = (struct spread){0};
    for (size_t i = 0; i < r->n; i++) {
        double score = r->runs[i].score;
        costs[i] = rerun_cost(r, &r->runs[i]);
        seconds[i] = r->runs[i].cost_s;
        if (!isfinite(score))
            continue;
        scores[ret_spread->n_scores++] = score;
        ret_spread->above += study_better(&r->study, score, r->trial.score);
    }
    seed_stats(scores, ret_spread->n_scores, &ret_spread->score);
    seed_stats(costs, r->n, &ret_spread->cost);
    seed_stats(seconds, r->n, &ret_spread->cost_s);
    mem_free(scores);
}

/* Where the stored score sits among further runs, in words. */
static const char *verdict(const struct rerun *r, const struct spread *s)
{
    const struct seed_stats *q = &s->score;
    bool better = study_better(&r->study, r->trial.score, q->mean);

    if (!has_result(r) || q->n < 2)
        return "unknown";
    if (r->trial.score >= q->next_lo && r->trial.score <= q->next_hi)
        return "usual";
    return better ? "lucky" : "unlucky";
}

static void print_verdict(const struct rerun *r, const struct spread *s)
{
    const char *word = verdict(r, s);

    if (!has_result(r))
        printf("the stored trial has no %s to compare with\n", r->study.metric);
    else if (strcmp(word, "unknown") == 0)
        printf("stored %.6g; at least two seeds show how usual that is\n", r->trial.score);
    else
        printf("stored %.6g: %zu of %zu runs are better; %s\n", r->trial.score, s->above, s->n_scores,
               strcmp(word, "usual") == 0 ? "within what another seed gives"
               : strcmp(word, "lucky") == 0
                   ? "better than 95 % of seeds would give: count on the mean, not on this run"
                   : "worse than 95 % of seeds would give: the config is better than its trial");
}

static const char *cell(double value, int digits, char buf[NUM_TEXT_MAX])
{
    if (isfinite(value))
        snprintf(buf, NUM_TEXT_MAX, "%.*g", digits, value);
    else
        strcpy(buf, "-"); /* one run has no spread, and none no mean */
    return buf;
}

static void print_stats(const char *name, const struct seed_stats *q)
{
    char mean[NUM_TEXT_MAX], sd[NUM_TEXT_MAX], lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX], min[NUM_TEXT_MAX], max[NUM_TEXT_MAX];

    printf("%-13s %10s %10s  %10s to %-10s %10s %10s\n", name, cell(q->mean, 5, mean), cell(q->sd, 3, sd),
           cell(q->mean_lo, 5, lo), cell(q->mean_hi, 5, hi), cell(q->min, 5, min), cell(q->max, 5, max));
}

static void print_spread(const struct rerun *r, const struct spread *s)
{
    char iqm[NUM_TEXT_MAX], lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];
    int64_t first = -1, last = -1;

    printf("trial %lld of %s with %zu fresh seed%s on %s\n", (long long)r->trial.number, r->study.name, r->n,
           r->n == 1 ? "" : "s", r->runs[0].device);
    printf("%-13s %10s %10s  %24s %10s %10s\n", "", "mean", "sd", "95 % interval of the mean", "min", "max");
    print_stats(r->study.metric, &s->score);
    print_stats(r->cost_kind == SEARCH_COST_OWN     ? "cost"
                : r->cost_kind == SEARCH_COST_STEPS ? "cost (steps)"
                                                    : "cost (s)",
                &s->cost);
    if (r->cost_kind == SEARCH_COST_STEPS)
        print_stats("time (s)", &s->cost_s);
    if (s->n_scores < r->n)
        printf("%zu run%s ended without a score\n", r->n - s->n_scores, r->n - s->n_scores == 1 ? "" : "s");
    printf("%-13s %10s %10s  %10s to %-10s\n", "interquartile", cell(s->score.iqm, 5, iqm), "",
           cell(s->score.iqm_lo, 5, lo), cell(s->score.iqm_hi, 5, hi));
    print_verdict(r, s);
    for (size_t i = 0; i < r->n; i++) {
        first = first < 0 ? r->stored[i] : first;
        last = r->stored[i] >= 0 ? r->stored[i] : last;
    }
    if (r->n_stored > 0)
        printf("%zu run%s now in the store, as trials %lld to %lld\n", r->n_stored, r->n_stored == 1 ? " is" : "s are",
               (long long)first, (long long)last);
}

static cJSON *stats_json(const struct seed_stats *q)
{
    cJSON *json = cJSON_CreateObject();

    json_add_i64(json, "n", (int64_t)q->n);
    json_add_f64(json, "mean", q->mean);
    json_add_f64(json, "sd", q->sd);
    json_add_f64(json, "mean_lo", q->mean_lo);
    json_add_f64(json, "mean_hi", q->mean_hi);
    json_add_f64(json, "next_lo", q->next_lo);
    json_add_f64(json, "next_hi", q->next_hi);
    json_add_f64(json, "min", q->min);
    json_add_f64(json, "max", q->max);
    json_add_f64(json, "iqm", q->iqm);
    json_add_f64(json, "iqm_lo", q->iqm_lo);
    json_add_f64(json, "iqm_hi", q->iqm_hi);
    return json;
}

static cJSON *runs_json(const struct rerun *r)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < r->n; i++) {
        const struct rerun_result *a = &r->runs[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(array, row);
        json_add_i64(row, "seed", a->seed);
        json_add_f64(row, "score", a->score);
        json_add_f64(row, "perf", a->perf);
        json_add_f64(row, "cost_s", a->cost_s);
        json_add_i64(row, "env_steps", a->env_steps);
        if (r->stored[i] >= 0)
            json_add_i64(row, "trial", r->stored[i]);
    }
    return array;
}

static cJSON *spread_json(const struct rerun *r, const struct spread *s)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "study", r->study.name);
    json_add_i64(json, "trial", r->trial.number);
    json_add_str(json, "metric", r->study.metric);
    json_add_str(json, "device", r->n > 0 ? r->runs[0].device : NULL);
    json_add_f64(json, "stored_score", r->trial.score);
    json_add_f64(json, "stored_cost_s", r->trial.cost_s);
    json_add(json, "score", stats_json(&s->score));
    json_add(json, "cost_s", stats_json(&s->cost_s));
    json_add(json, "cost", stats_json(&s->cost));
    json_add_str(json, "cost_unit", study_cost_unit(r->cost_kind));
    json_add_i64(json, "better", (int64_t)s->above);
    json_add_str(json, "verdict", verdict(r, s));
    json_add(json, "runs", runs_json(r));
    return json;
}

void rerun_print_progress(const struct rerun *r)
{
    const struct rerun_result *a = &r->runs[r->n - 1];
    char cost[32];

    if (!r->quiet && r->n_seeds > 0)
        fprintf(term_err(), "%zu/%lld  seed %lld  %s %.6g  cost %s\n", r->n, (long long)r->n_seeds, (long long)a->seed,
                r->study.metric, a->score, study_cost_text(r->cost_kind, rerun_cost(r, a), cost));
}

void rerun_print_spread(const struct rerun *r)
{
    struct spread spread;

    measure_spread(r, &spread);
    if (r->json)
        cli_print_json(spread_json(r, &spread));
    else
        print_spread(r, &spread);
}
