/* cmd_export.c - `trawl export`: one trial's whole config, so that `trawl train` repeats it with the same seed.
 * Invariant: what is written trains unchanged; it is never half of a file. */
#include "sweep/control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/num.h"

enum export_format { EXPORT_INI, EXPORT_JSON, EXPORT_ARGS };

/* The best by score among done trials that pass; better: the cheapest of them instead. */
static size_t pick_among(const struct study_view *v, double cost_max, double score_min, bool cheapest)
{
    size_t best = v->n;

    for (size_t i = 0; i < v->n; i++) {
        const struct gp_trial *t = &v->gp[i];
        bool wins;
        if (t->state != GP_TRIAL_DONE || t->cost > cost_max || t->score < score_min)
            continue;
        if (best == v->n)
            wins = true;
        else if (cheapest)
            wins = t->cost < v->gp[best].cost;
        else
            wins = t->score > v->gp[best].score || (t->score == v->gp[best].score && t->cost < v->gp[best].cost);
        if (wins)
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

static enum status pick(const struct study_view *v, const char *rule, size_t *ret_i, struct error *err)
{
    double value;
    int64_t number;
    bool maximize = v->study.maximize;

    *ret_i = v->n;
    if (strcmp(rule, "best") == 0) {
        *ret_i = pick_among(v, INFINITY, -INFINITY, false);
    } else if (strcmp(rule, "knee") == 0) {
        *ret_i = pareto_knee(&v->history);
    } else if (parse_after(rule, "cost<=", &value)) {
        *ret_i = pick_among(v, value, -INFINITY, false);
    } else if (parse_after(rule, maximize ? "score>=" : "score<=", &value)) {
        *ret_i = pick_among(v, INFINITY, maximize ? value : -value, true);
    } else if (strncmp(rule, "trial=", 6) == 0 && num_parse_i64(rule + 6, &number)) {
        for (size_t i = 0; i < v->n; i++)
            if (v->trials[i].number == number)
                *ret_i = i;
        if (*ret_i == v->n)
            return FAIL(err, ST_NOTFOUND, "export: the study %s has no trial %lld, its trials are 0 to %zu",
                        v->study.name, (long long)number, v->n > 0 ? v->n - 1 : 0);
    } else {
        return FAIL(err, ST_USAGE,
                    "export: --pick '%s' is not known; use best, knee, 'cost<=SECONDS', 'score%s=X' or trial=N", rule,
                    maximize ? ">" : "<");
    }
    if (*ret_i >= v->n)
        return FAIL(err, ST_NOTFOUND, "export: no finished trial of %s fits '%s'; `trawl show %s` lists them",
                    v->study.name, rule, v->study.name);
    return ST_OK;
}

static void header(const struct study_view *v, size_t i, const char *rule, char *buf, size_t size)
{
    const struct trial *t = &v->trials[i];
    char score[NUM_TEXT_MAX], cost[NUM_TEXT_MAX];

    snprintf(
        buf, size,
        "; trial %lld of the study %s, picked by %.60s\n; %s %s, cost %s s, seed %lld, %s\n; `trawl train` runs this "
        "file as it is\n",
        (long long)t->number, v->study.name, rule, v->study.metric, num_format_f64(t->score, score),
        num_format_f64(t->cost_s, cost), (long long)t->seed, v->study.program);
}

static enum status build_json(const struct study_view *v, size_t i, const struct setup *setup, struct strbuf *out,
                              struct error *err)
{
    const struct trial *t = &v->trials[i];
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "study", v->study.name) && json_add_i64(json, "trial", t->number) &&
              json_add_f64(json, "score", t->score) && json_add_f64(json, "cost_s", t->cost_s) &&
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

static enum status build(const struct study_view *v, size_t i, const char *rule, enum export_format format,
                         struct strbuf *out, struct error *err)
{
    struct setup *setup = NULL;
    char head[512];
    enum status rc = trial_setup(&v->trials[i], &setup, err);

    if (rc != ST_OK)
        return rc;
    switch (format) {
    case EXPORT_INI:
        header(v, i, rule, head, sizeof head);
        strbuf_add(out, head);
        rc = config_write_ini(setup->config, false, false, out, err);
        break;
    case EXPORT_JSON:
        rc = build_json(v, i, setup, out, err);
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

static enum status find_format(const char *name, const char *path, enum export_format *ret_format, struct error *err)
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

static enum status export_trial(struct store *store, const char *study, const char *rule, enum export_format format,
                                const char *path, struct error *err)
{
    struct study_view view = {0};
    struct strbuf out;
    size_t i = 0;
    enum status rc = study_view_load(store, study, &view, err);

    strbuf_init(&out, OUTPUT_MAX_BYTES);
    if (rc == ST_OK)
        rc = pick(&view, rule, &i, err);
    if (rc == ST_OK)
        rc = build(&view, i, rule, format, &out, err);
    if (rc == ST_OK && path != NULL)
        rc = file_write_all(path, out.text, out.len, err);
    else if (rc == ST_OK)
        fwrite(out.text, 1, out.len, stdout);
    if (rc == ST_OK && path != NULL)
        fprintf(stderr, "wrote trial %lld of %s (%s %.4g, cost %.4g s) to %s\n", (long long)view.trials[i].number,
                study, view.study.metric, view.trials[i].score, view.trials[i].cost_s, path);
    strbuf_free(&out);
    study_view_free(&view);
    return rc;
}

enum status cmd_export(int argc, char **argv, struct error *err)
{
    const char *store_path = "trawl.db", *path = NULL, *format_name = NULL, *rule = "best";
    struct cli_words words;
    struct store *store = NULL;
    enum export_format format = EXPORT_INI;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_TEXT, &store_path, "FILE", "the store (trawl.db)"},
        {"pick", 'p', CLI_TEXT, &rule, "RULE", "best, knee, 'cost<=SECONDS', 'score>=X' or trial=N (best)"},
        {"output", 'o', CLI_TEXT, &path, "FILE", "where to write (stdout)"},
        {"format", 'f', CLI_TEXT, &format_name, "FORMAT",
         "ini, args (a command line) or json (for other programs) (ini)"},
    };
    const struct cli cli = {
        .name = "export",
        .synopsis = "trawl export NAME [--pick RULE] [--format ini|json|args] [-o FILE] [--store FILE]",
        .about =
            "Writes the whole config of one trial; `trawl train` runs it unchanged, with the trial's seed. The rules:\n"
            "  best           the best score\n"
            "  knee           where the front bends: dear enough to be good, cheap enough to be worth it\n"
            "  cost<=SECONDS  the best score at no more than this cost (also 30m, 2h)\n"
            "  score>=X       the cheapest at least this good (score<=X when the study minimizes)\n"
            "  trial=N        this one",
        .examples = "  trawl export first --store my.db --pick best -o best.ini && trawl train best.ini\n"
                    "  trawl export first --store my.db --pick 'cost<=30' --format args",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .min_words = 1,
        .max_words = 1,
        .words_text = "a study's name (`trawl ls` lists them)",
    };
    enum status rc;

    TRY(cli_parse(&cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    TRY(find_format(format_name, path, &format, err));
    if (path != NULL)
        TRY(check_writable(path, err));
    rc = store_open_reader(&store, store_path, err);
    if (rc == ST_OK)
        rc = export_trial(store, words.v[0], rule, format, path, err);
    store_close(store);
    return rc;
}
