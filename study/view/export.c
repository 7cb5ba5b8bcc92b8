/* export.c - which trial a rule picks, and its config as a file: for `trawl export` and for the pages, the same
 * bytes. */
#include "study/view/export.h"

#include "base/os/file.h"
#include "base/text/duration.h"
#include "base/text/json.h"
#include "study/program/program_command.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"

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

/* A front without a bend offers its best where its knee is asked for. */
static void pick_by_models(const struct study_view *v, enum gp_rule rule, double value, struct gp_picked *ret)
{
    struct gp_history history = v->history;

    history.n = v->advice.n;
    *ret = gp_pick(&v->advice, &history, rule, value);
    if (rule == GP_KNEE && ret->i >= history.n) {
        *ret = gp_pick(&v->advice, &history, GP_BEST, 0);
        ret->supported = false;
        ret->note = "the front has no bend, so this is the best";
    }
    ret->i = ret->i < history.n ? ret->i : v->n;
}

enum status export_pick(const struct study_view *v, const char *rule, struct gp_picked *ret, struct error *err)
{
    const char *name = v->study.name;
    enum gp_rule kind;
    double value;
    int64_t number;

    *ret = (struct gp_picked){.i = v->n, .supported = true};
    if (strcmp(rule, "best-run") == 0)
        ret->i = study_view_best_run(v);
    else if (strncmp(rule, "trial=", 6) == 0 && num_parse_i64(rule + 6, &number))
        TRY(study_view_find(v, number, &ret->i, err));
    else if (read_rule(rule, v->study.maximize, &kind, &value))
        pick_by_models(v, kind, value, ret);
    else
        return FAIL(err, ST_USAGE,
                    "--pick '%s' is not known; use best, best-run, knee, 'cost<=SECONDS', 'score%s=X' or trial=N", rule,
                    v->study.maximize ? ">" : "<");
    if (ret->i >= v->n && ret->note != NULL && study_view_best_run(v) < v->n)
        return FAIL(err, ST_NOTFOUND, "no trial of %s fits '%s': %s; --pick best always gives one", name, rule,
                    ret->note);
    if (ret->i < v->n && study_view_breaks_limit(v, ret->i)) {
        ret->supported = false;
        ret->note = "infeasible: it breaks a limit of the study, so that no rule but its number picks it";
    }
    if (ret->i >= v->n && v->search.outcomes.n_limits > 0 && study_view_count(v, TRIAL_DONE) > 0)
        return FAIL(err, ST_NOTFOUND,
                    "no trial of %s that keeps all limits fits '%s'; `trawl show %s` says which limits they break",
                    name, rule, name);
    if (ret->i >= v->n)
        return FAIL(err, ST_NOTFOUND, "no finished trial of %s fits '%s'; `trawl show %s` lists them", name, rule,
                    name);
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
        n += snprintf(buf + n, size - (size_t)n, " +- %s", num_format_short(t->score_se, se));
    n += snprintf(buf + n, size - (size_t)n, " over %lld episodes", (long long)t->eval_episodes);
    if (t->eval_unfinished > 0)
        snprintf(buf + n, size - (size_t)n, ", of which %lld did not end", (long long)t->eval_unfinished);
}

/* Of a study of several games: which of them the trial, and the file, is of. */
static void add_games(const struct search *search, const char *env, struct strbuf *out)
{
    if (search->envs.n > 0) {
        strbuf_add(out, "; of the mean over");
        for (size_t k = 0; k < search->envs.n; k++)
            strbuf_addf(out, "%s %s", k > 0 ? "," : "", search->envs.names[k]);
        strbuf_addf(out, "; this file is for %s, the trials with equal values are for the others\n", env);
    }
}

/* What the config promises, and how sure that is, as comments. */
static void header(const struct study *study, const struct trial *t, const struct export_reason *why,
                   const struct setup *setup, struct strbuf *out)
{
    const bool is_program = setup_is_program(setup);
    const struct promise *p = &why->promise;
    char score[160], number[NUM_TEXT_MAX], text[PROMISE_TEXT_MAX];
    AT_END(search_destroy_at) struct search *search = search_create();
    int64_t extended;

    if (study->space != NULL && search_from_json(study->space, search, NULL) != ST_OK)
        search->cost = SEARCH_COST_WALL; /* of another version */
    strbuf_addf(out, "; trial %lld of the study %s, picked by %.60s\n", (long long)t->number, study->name, why->rule);
    if (why->note != NULL)
        strbuf_addf(out, "; %s\n", why->note);
    if (p->is_known)
        strbuf_addf(out, "; promise: %s %s\n; the interval is of the mean of %d runs under fresh seeds\n",
                    study->metric, promise_text(p, text), GP_PROMISE_SEEDS);
    if (p->n_seeds < 2) {
        strbuf_addf(out, "; unconfirmed, seen once: `trawl rerun %s --store ", study->name);
        strbuf_add_shell(out, why->store_path);
        strbuf_addf(out, " --trial %lld --seeds %d` runs it under fresh seeds\n", (long long)t->number,
                    GP_PROMISE_SEEDS);
    }
    if (trial_extends(t, &extended))
        strbuf_addf(
            out, "; it extends trial %lld from its checkpoint: a run of this file is from the start and may differ\n",
            (long long)extended);
    add_games(search, is_program ? setup->program.trial_env : setup->env->name, out);
    score_text(t, score, sizeof score);
    strbuf_addf(out, "; its run: %s %s, %lld %s, seed %lld\n; cost ", study->metric, score, (long long)t->env_steps,
                is_program ? "steps" : "env steps", (long long)t->seed);
    if (search->cost != SEARCH_COST_WALL)
        strbuf_addf(out, "%s; ", study_cost_text(search->cost, study_trial_cost(search->cost, t), text));
    strbuf_addf(out, "%s s%s", num_format_short(t->cost_s, number), is_program ? "" : " in a warm worker");
    if (isfinite(t->start_s))
        strbuf_addf(out, ", %s s from process start", num_format_short(t->start_s + t->cost_s, number));
    if (isfinite(t->eval_s))
        strbuf_addf(out, "; its evaluation %s s", num_format_short(t->eval_s, number));
    strbuf_addf(out, "\n; made by %s on %s%s%s\n", t->program != NULL ? t->program : study->program,
                t->device != NULL ? t->device : "an unknown device", t->kernels != NULL ? ", vector units " : "",
                t->kernels != NULL ? t->kernels : "");
    strbuf_add(out, is_program ? "; `trawl train` runs the program once with these values\n"
                               : "; `trawl train` runs this file as it is\n");
}

static void add_promise(cJSON *json, const struct promise *p)
{
    json_add_i64(json, "n_seeds", (int64_t)p->n_seeds);
    if (!p->is_known)
        return;
    json_add_f64(json, "score_mean", p->score);
    json_add_f64(json, "score_lo", p->lo);
    json_add_f64(json, "score_hi", p->hi);
    json_add_f64(json, "cost_mean", p->cost);
}

static void build_json(const struct study *study, const struct trial *t, const struct setup *setup,
                       const struct promise *promise, struct strbuf *out)
{
    JSON_LOCAL cJSON *json = cJSON_CreateObject();

    json_add_str(json, "study", study->name);
    json_add_i64(json, "trial", t->number);
    json_add_f64(json, "score", t->score);
    add_promise(json, promise);
    json_add_f64(json, "cost_s", t->cost_s);
    json_add_f64(json, "score_se", t->score_se);
    json_add_f64(json, "start_s", t->start_s);
    json_add_str(json, "program", t->program != NULL ? t->program : study->program);
    json_add_str(json, "device", t->device);
    json_add_str(json, "vector_units", t->kernels);
    json_add_i64(json, "env_steps", t->env_steps);
    json_add_i64(json, "seed", t->seed);
    json_add(json, "config", setup_to_json(setup));
    MEM_LOCAL char *text = json_print(json, true);
    strbuf_add(out, text);
    strbuf_add(out, "\n");
}

/* The command, and which of its numbers is the score. */
static enum status write_program(const struct study *study, const struct setup *setup, struct strbuf *out,
                                 struct error *err)
{
    TRY(config_write_section(setup->config, program_opt_table.section, out, err));
    if (strcmp(study->metric, PROGRAM_METRIC) != 0)
        strbuf_addf(out, "metric = %s\n", study->metric);
    return ST_OK;
}

/* As a shell takes it. */
static enum status write_command(const struct setup *setup, const struct trial *t, struct strbuf *out,
                                 struct error *err)
{
    const char *env = setup->program.trial_env;
    const struct program_place place = {.config = "config.ini",
                                        .dir = ".",
                                        .study = "",
                                        .env = env,
                                        .trial = t->number,
                                        .seed = setup->program.trial_seed};
    char **argv = NULL;

    TRY(program_argv(setup->config, &setup->params, &place, &argv, err));
    strbuf_add(out, "cd ");
    strbuf_add_shell(out, setup->program.directory);
    strbuf_addf(out, " && TRAWL_SEED=%lld", (long long)setup->program.trial_seed);
    if (env[0] != '\0') {
        strbuf_add(out, " TRAWL_ENV=");
        strbuf_add_shell(out, env);
    }
    for (size_t i = 0; argv[i] != NULL; i++) {
        strbuf_add(out, " ");
        strbuf_add_shell(out, argv[i]);
    }
    strbuf_add(out, "\n");
    program_argv_free(argv);
    return ST_OK;
}

enum status export_build(const struct study *study, const struct trial *trial, const struct export_reason *why,
                         enum export_format format, struct strbuf *out, struct error *err)
{
    struct setup *setup = NULL;
    enum status rc = ST_OK;

    TRY(trial_setup(trial, &setup, err));
    switch (format) {
    case EXPORT_INI:
        header(study, trial, why, setup, out);
        rc = config_write_ini(setup->config, false, false, out, err);
        if (rc == ST_OK && setup_is_program(setup))
            rc = write_program(study, setup, out, err);
        break;
    case EXPORT_JSON:
        build_json(study, trial, setup, &why->promise, out);
        break;
    case EXPORT_ARGS:
        if (setup_is_program(setup)) {
            rc = write_command(setup, trial, out, err);
            break;
        }
        strbuf_addf(out, "trawl train %s ", setup->env->name);
        rc = config_write_args(setup->config, true, out, err);
        strbuf_add(out, "\n");
        break;
    default:
        rc = FAIL(err, ST_INTERNAL, "that format is of all trials");
    }
    setup_destroy(setup);
    return rc == ST_OK ? strbuf_status(out, "the trial's config", err) : rc;
}

enum status export_find_format(const char *name, const char *path, enum export_format *ret_format, struct error *err)
{
    static const char *const names[] = {
        [EXPORT_INI] = "ini",     [EXPORT_JSON] = "json",     [EXPORT_ARGS] = "args",    [EXPORT_CSV] = "csv",
        [EXPORT_JSONL] = "jsonl", [EXPORT_OPTUNA] = "optuna", [EXPORT_CURVES] = "curves"};
    static const enum export_format by_suffix[] = {EXPORT_INI, EXPORT_JSON, EXPORT_CSV, EXPORT_JSONL};
    const char *dot = path != NULL ? strrchr(file_name(path), '.') : NULL;

    *ret_format = EXPORT_INI;
    if (name == NULL && dot != NULL && dot != file_name(path)) {
        for (size_t i = 0; i < COUNT(by_suffix); i++)
            if (strcmp(names[by_suffix[i]], dot + 1) == 0) {
                *ret_format = by_suffix[i];
                return ST_OK;
            }
        return FAIL(err, ST_USAGE,
                    "%s: no format is known by %s; .ini, .json, .csv and .jsonl are (of a policy .onnx, .safetensors "
                    "and .h), for any other name give --format",
                    path, dot);
    }
    for (size_t i = 0; name != NULL && i < COUNT(names); i++)
        if (strcmp(names[i], name) == 0) {
            *ret_format = (enum export_format)i;
            return ST_OK;
        }
    return name == NULL ? ST_OK
                        : FAIL(err, ST_USAGE,
                               "--format is '%s'; ini, json and args of one trial, csv, jsonl, optuna and curves "
                               "of all are known",
                               name);
}
