/* export.c - which trial a rule picks, and its config as a file: for `trawl export` and for the pages, the same bytes. */
#include "sweep/export.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"

/* The best by score among done trials that pass; better: the cheapest of them instead. */
static size_t pick_among(const struct gp_trial *rows, size_t n, double cost_max, double score_min, bool cheapest)
{
    size_t best = n;

    for (size_t i = 0; i < n; i++) {
        const struct gp_trial *t = &rows[i];
        bool wins;
        if (t->state != GP_TRIAL_DONE || t->cost > cost_max || t->score < score_min)
            continue;
        if (best == n)
            wins = true;
        else if (cheapest)
            wins = t->cost < rows[best].cost;
        else
            wins = t->score > rows[best].score || (t->score == rows[best].score && t->cost < rows[best].cost);
        if (wins)
            best = i;
    }
    return best;
}

/* The trial that the models would take, by what is sure of it; n: too little is known. */
static enum status recommend(const struct study *study, const struct trial *trials, const struct gp_trial *rows,
                             size_t n, size_t *ret_i, struct error *err)
{
    struct search search;
    double *x = NULL;
    struct gp_trial *own = NULL;

    *ret_i = n;
    TRY(search_from_json(study->space, &search, err));
    size_t dim = search.space.dim;
    enum status rc = ST_OK;
    x = mem_array2(n + 1, dim, sizeof *x);
    own = mem_array(n + 1, sizeof *own);
    if (x == NULL || own == NULL)
        rc = FAIL(err, ST_NOMEM, "out of memory for %zu trials", n);
    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        rc = search_point(&search, trials[i].params, x + i * dim, err);
        own[i] = rows[i];
        own[i].x = x + i * dim;
    }
    if (rc == ST_OK)
        rc = gp_recommend(&search.space, &(struct gp_history){.n = n, .trials = own}, ret_i, err);
    mem_free(x);
    mem_free(own);
    search_free(&search);
    return rc;
}

/* "cost<=12" -> the number after prefix. */
static bool parse_after(const char *text, const char *prefix, double *ret_value)
{
    size_t n = strlen(prefix);

    return strncmp(text, prefix, n) == 0 && (num_parse_f64(text + n, ret_value) || parse_seconds(text + n, ret_value));
}

enum status export_pick(const struct study *study, const struct trial *trials, const struct gp_trial *rows, size_t n,
                        const char *rule, size_t *ret_i, struct error *err)
{
    double value;
    int64_t number;
    bool maximize = study->maximize;

    *ret_i = n;
    if (strcmp(rule, "best") == 0) {
        TRY(recommend(study, trials, rows, n, ret_i, err));
        if (*ret_i >= n)
            *ret_i = pick_among(rows, n, INFINITY, -INFINITY, false);
    } else if (strcmp(rule, "best-run") == 0) {
        *ret_i = pick_among(rows, n, INFINITY, -INFINITY, false);
    } else if (strcmp(rule, "knee") == 0) {
        TRY(pareto_knee(&(struct gp_history){.n = n, .trials = rows}, ret_i, err));
        if (*ret_i >= n)
            return FAIL(err, ST_NOTFOUND, "export: the front of %s has no knee; take best, or 'cost<=SECONDS'",
                        study->name);
    } else if (parse_after(rule, "cost<=", &value)) {
        *ret_i = pick_among(rows, n, value, -INFINITY, false);
    } else if (parse_after(rule, maximize ? "score>=" : "score<=", &value)) {
        *ret_i = pick_among(rows, n, INFINITY, maximize ? value : -value, true);
    } else if (strncmp(rule, "trial=", 6) == 0 && num_parse_i64(rule + 6, &number)) {
        for (size_t i = 0; i < n; i++)
            if (trials[i].number == number)
                *ret_i = i;
        if (*ret_i == n)
            return FAIL(err, ST_NOTFOUND, "export: the study %s has no trial %lld, its trials are 0 to %zu",
                        study->name, (long long)number, n > 0 ? n - 1 : 0);
    } else {
        return FAIL(
            err, ST_USAGE,
            "export: --pick '%s' is not known; use best, best-run, knee, 'cost<=SECONDS', 'score%s=X' or trial=N", rule,
            maximize ? ">" : "<");
    }
    if (*ret_i >= n)
        return FAIL(err, ST_NOTFOUND, "export: no finished trial of %s fits '%s'; `trawl show %s` lists them",
                    study->name, rule, study->name);
    return ST_OK;
}

/* "0.93 +- 0.004 over 256 episodes"; of a trial that was not evaluated the value alone. */
static void score_text(const struct trial *t, char *buf, size_t size)
{
    char score[NUM_TEXT_MAX], se[NUM_TEXT_MAX];
    int n = snprintf(buf, size, "%s", num_format_f64(t->score, score));

    if (t->eval_episodes == 0)
        return;
    if (isfinite(t->score_se))
        n += snprintf(buf + n, size - (size_t)n, " +- %s", num_format_f64(t->score_se, se));
    n += snprintf(buf + n, size - (size_t)n, " over %lld episodes", (long long)t->eval_episodes);
    if (t->eval_unfinished > 0)
        snprintf(buf + n, size - (size_t)n, ", of which %lld did not end", (long long)t->eval_unfinished);
}

static void header(const struct study *study, const struct trial *t, const char *rule, char *buf, size_t size)
{
    char score[160], cost[NUM_TEXT_MAX], whole[NUM_TEXT_MAX] = "";
    int n;

    score_text(t, score, sizeof score);
    n = snprintf(
        buf, size,
        "; trial %lld of the study %s, picked by %.60s\n; %s %s, %lld env steps, seed %lld\n; cost %s s in a warm "
        "worker",
        (long long)t->number, study->name, rule, study->metric, score, (long long)t->env_steps, (long long)t->seed,
        num_format_f64(t->cost_s, cost));
    if (isfinite(t->start_s))
        n += snprintf(buf + n, size - (size_t)n, ", %s s from process start",
                      num_format_f64(t->start_s + t->cost_s, whole));
    snprintf(buf + n, size - (size_t)n, "\n; made by %s on %s%s%s\n; `trawl train` runs this file as it is\n",
             t->program != NULL ? t->program : study->program, t->device != NULL ? t->device : "an unknown device",
             t->kernels != NULL ? ", vector units " : "", t->kernels != NULL ? t->kernels : "");
}

static enum status build_json(const struct study *study, const struct trial *t, const struct setup *setup,
                              struct strbuf *out, struct error *err)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "study", study->name) && json_add_i64(json, "trial", t->number) &&
              json_add_f64(json, "score", t->score) && json_add_f64(json, "cost_s", t->cost_s) &&
              json_add_f64(json, "score_se", t->score_se) && json_add_f64(json, "start_s", t->start_s) &&
              json_add_str(json, "program", t->program != NULL ? t->program : study->program) &&
              json_add_str(json, "device", t->device) && json_add_str(json, "vector_units", t->kernels) &&
              json_add_i64(json, "env_steps", t->env_steps) && json_add_i64(json, "seed", t->seed) &&
              json_add(json, "config", config_to_json(setup->config));
    char *text = ok ? json_print(json, true) : NULL;

    cJSON_Delete(json);
    if (text == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the trial's JSON");
    strbuf_add(out, text);
    strbuf_add(out, "\n");
    mem_free(text);
    return ST_OK;
}

enum status export_build(const struct study *study, const struct trial *trial, const char *rule,
                         enum export_format format, struct strbuf *out, struct error *err)
{
    struct setup *setup = NULL;
    char head[1536];
    enum status rc = trial_setup(trial, &setup, err);

    if (rc != ST_OK)
        return rc;
    switch (format) {
    case EXPORT_INI:
        header(study, trial, rule, head, sizeof head);
        strbuf_add(out, head);
        rc = config_write_ini(setup->config, false, false, out, err);
        break;
    case EXPORT_JSON:
        rc = build_json(study, trial, setup, out, err);
        break;
    case EXPORT_ARGS:
        strbuf_addf(out, "trawl train %s ", setup->env->name);
        rc = config_write_args(setup->config, true, out, err);
        strbuf_add(out, "\n");
        break;
    }
    setup_destroy(setup);
    return rc == ST_OK ? strbuf_status(out, "the trial's config", err) : rc;
}

enum status export_find_format(const char *name, const char *path, enum export_format *ret_format, struct error *err)
{
    static const char *const names[] = {[EXPORT_INI] = "ini", [EXPORT_JSON] = "json", [EXPORT_ARGS] = "args"};
    size_t n = path != NULL ? strlen(path) : 0;

    *ret_format = name == NULL && n > 5 && strcmp(path + n - 5, ".json") == 0 ? EXPORT_JSON : EXPORT_INI;
    for (size_t i = 0; name != NULL && i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0) {
            *ret_format = (enum export_format)i;
            return ST_OK;
        }
    return name == NULL ? ST_OK : FAIL(err, ST_USAGE, "export: --format is '%s'; ini, json and args are known", name);
}
