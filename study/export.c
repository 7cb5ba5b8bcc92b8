/* export.c - which trial a rule picks, and its config as a file: for `trawl export` and for the pages, the same
 * bytes. */
#include "study/export.h"

#include "base/config/config.h"
#include "base/duration.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "store/store.h"
#include "study/setup.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

size_t best_run(const struct gp_history *history)
{
    size_t best = history->n;

    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i], *b = &history->trials[best < history->n ? best : i];
        if (t->state == GP_TRIAL_DONE &&
            (best == history->n || t->score > b->score || (t->score == b->score && t->cost < b->cost)))
            best = i;
    }
    return best;
}

/* "cost<=12" -> the number after prefix. */
static bool parse_after(const char *text, const char *prefix, double *ret_value)
{
    size_t n = strlen(prefix);

    return strncmp(text, prefix, n) == 0 && (num_parse_f64(text + n, ret_value) || parse_seconds(text + n, ret_value));
}

/* What gp_pick is asked for; false: the rule is not one of its. */
static bool read_rule(const char *text, bool maximize, enum gp_rule *ret_rule, double *ret_value)
{
    *ret_value = 0;
    *ret_rule = GP_BEST;
    if (strcmp(text, "best") == 0)
        return true;
    *ret_rule = GP_KNEE;
    if (strcmp(text, "knee") == 0)
        return true;
    *ret_rule = GP_COST_MAX;
    if (parse_after(text, "cost<=", ret_value))
        return true;
    *ret_rule = GP_SCORE_MIN;
    if (!parse_after(text, maximize ? "score>=" : "score<=", ret_value))
        return false;
    *ret_value = maximize ? *ret_value : -*ret_value;
    return true;
}

static enum status pick_trial(const struct study *study, int64_t number, struct gp_picked *ret, struct error *err)
{
    size_t n = ret->i;

    if (number < 0 || (uint64_t)number >= n)
        return FAIL(err, ST_NOTFOUND, "export: the study %s has no trial %lld, its trials are 0 to %zu", study->name,
                    (long long)number, n > 0 ? n - 1 : 0);
    ret->i = (size_t)number;
    return ST_OK;
}

/* A front without a bend offers its best where its knee is asked for. */
static enum status pick_by_models(const struct gp_insight *advice, const struct gp_history *history, enum gp_rule rule,
                                  double value, struct gp_picked *ret, struct error *err)
{
    TRY(gp_pick(advice, history, rule, value, ret, err));
    if (rule != GP_KNEE || ret->i < history->n)
        return ST_OK;
    TRY(gp_pick(advice, history, GP_BEST, 0, ret, err));
    ret->supported = false;
    ret->note = "the front has no bend, so this is the best";
    return ST_OK;
}

enum status export_pick(const struct study *study, const struct gp_insight *advice, const struct gp_history *history,
                        const char *rule, struct gp_picked *ret, struct error *err)
{
    enum gp_rule kind;
    double value;
    int64_t number;

    *ret = (struct gp_picked){.i = history->n, .supported = true};
    if (strcmp(rule, "best-run") == 0)
        ret->i = best_run(history);
    else if (strncmp(rule, "trial=", 6) == 0 && num_parse_i64(rule + 6, &number))
        TRY(pick_trial(study, number, ret, err));
    else if (read_rule(rule, study->maximize, &kind, &value))
        TRY(pick_by_models(advice, history, kind, value, ret, err));
    else
        return FAIL(
            err, ST_USAGE,
            "export: --pick '%s' is not known; use best, best-run, knee, 'cost<=SECONDS', 'score%s=X' or trial=N", rule,
            study->maximize ? ">" : "<");
    if (ret->i >= history->n && ret->note != NULL && best_run(history) < history->n)
        return FAIL(err, ST_NOTFOUND, "export: no trial of %s fits '%s': %s; --pick best always gives one", study->name,
                    rule, ret->note);
    if (ret->i >= history->n)
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

void export_promise(const struct study *study, const struct gp_insight *advice, const struct gp_history *history,
                    const struct trial *trial, size_t i, struct promise *ret)
{
    promise_make(advice->beliefs != NULL && i < advice->n ? &advice->beliefs[i] : NULL, &history->trials[i], trial,
                 study->maximize, ret);
}

/* What the config promises, and how sure that is, as comments. */
static void header(const struct study *study, const struct trial *t, const struct export_reason *why,
                   struct strbuf *out)
{
    const struct promise *p = &why->promise;
    char score[160], number[NUM_TEXT_MAX], text[PROMISE_TEXT_MAX];

    strbuf_addf(out, "; trial %lld of the study %s, picked by %.60s\n", (long long)t->number, study->name, why->rule);
    if (why->note != NULL)
        strbuf_addf(out, "; %s\n", why->note);
    if (p->is_known)
        strbuf_addf(out, "; promise: %s %s\n; the interval is of the mean of %d runs under fresh seeds\n",
                    study->metric, promise_text(p, text), GP_PROMISE_SEEDS);
    if (p->n_seeds < 2)
        strbuf_addf(out,
                    "; unconfirmed, seen once: `trawl rerun %s --trial %lld --seeds %d` runs it under fresh seeds\n",
                    study->name, (long long)t->number, GP_PROMISE_SEEDS);
    score_text(t, score, sizeof score);
    strbuf_addf(out, "; its run: %s %s, %lld env steps, seed %lld\n; cost %s s in a warm worker", study->metric, score,
                (long long)t->env_steps, (long long)t->seed, num_format_f64(t->cost_s, number));
    if (isfinite(t->start_s))
        strbuf_addf(out, ", %s s from process start", num_format_f64(t->start_s + t->cost_s, number));
    if (isfinite(t->eval_s))
        strbuf_addf(out, "; its evaluation %s s", num_format_f64(t->eval_s, number));
    strbuf_addf(out, "\n; made by %s on %s%s%s\n", t->program != NULL ? t->program : study->program,
                t->device != NULL ? t->device : "an unknown device", t->kernels != NULL ? ", vector units " : "",
                t->kernels != NULL ? t->kernels : "");
    strbuf_add(out, "; `trawl train` runs this file as it is\n");
}

static bool add_promise(cJSON *json, const struct promise *p)
{
    return json_add_i64(json, "n_seeds", (int64_t)p->n_seeds) &&
           (!p->is_known || (json_add_f64(json, "score_mean", p->score) && json_add_f64(json, "score_lo", p->lo) &&
                             json_add_f64(json, "score_hi", p->hi) && json_add_f64(json, "cost_mean", p->cost)));
}

static enum status build_json(const struct study *study, const struct trial *t, const struct setup *setup,
                              const struct promise *promise, struct strbuf *out, struct error *err)
{
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "study", study->name) && json_add_i64(json, "trial", t->number) &&
              json_add_f64(json, "score", t->score) && add_promise(json, promise) &&
              json_add_f64(json, "cost_s", t->cost_s) && json_add_f64(json, "score_se", t->score_se) &&
              json_add_f64(json, "start_s", t->start_s) &&
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

enum status export_build(const struct study *study, const struct trial *trial, const struct export_reason *why,
                         enum export_format format, struct strbuf *out, struct error *err)
{
    struct setup *setup = NULL;
    enum status rc = trial_setup(trial, &setup, err);

    if (rc != ST_OK)
        return rc;
    switch (format) {
    case EXPORT_INI:
        header(study, trial, why, out);
        rc = config_write_ini(setup->config, false, false, out, err);
        break;
    case EXPORT_JSON:
        rc = build_json(study, trial, setup, &why->promise, out, err);
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
