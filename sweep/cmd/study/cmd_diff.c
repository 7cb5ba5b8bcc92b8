/* cmd_diff.c - `trawl diff`: what two trials of a study differ in, and what came of it. */
#include "base/text/json.h"
#include "study/view/study_view.h"
#include "sweep/cmd/commands.h"
#include "web/api/trial_config.h"

static enum status find(const struct study_view *v, const char *word, size_t *ret_i, struct error *err)
{
    int64_t number;

    if (!num_parse_i64(word, &number) || number < 0)
        return FAIL(err, ST_USAGE, "diff: '%s' is not a trial number; `trawl show %s` lists them", word, v->study.name);
    return study_view_find(v, number, ret_i, err);
}

/* Rows of trial_config_rows whose values differ; takes rows. */
static cJSON *differences(cJSON *rows)
{
    cJSON *out = cJSON_CreateArray(), *row;

    while ((row = cJSON_DetachItemFromArray(rows, 0)) != NULL) {
        const char *a = json_get_str(row, "value"), *b = json_get_str(row, "against");
        if (strcmp(a != NULL ? a : "", b != NULL ? b : "") != 0) {
            cJSON *item = cJSON_CreateObject();
            json_add_str(item, "key", json_get_str(row, "key"));
            json_add_str(item, "a", a);
            json_add_str(item, "b", b);
            cJSON_AddItemToArray(out, item);
        }
        cJSON_Delete(row);
    }
    cJSON_Delete(rows);
    return out;
}

static cJSON *result_json(const struct study_view *v, size_t i)
{
    const struct trial *t = &v->trials[i];
    cJSON *json = cJSON_CreateObject();

    json_add_i64(json, "trial", t->number);
    json_add_str(json, "state", trial_state_name(t->state));
    json_add_str(json, "origin", t->origin);
    json_add_f64(json, "score", t->score);
    json_add_f64(json, "score_se", t->score_se);
    json_add_f64(json, "cost", study_view_trial_cost(v, t));
    json_add_i64(json, "env_steps", t->env_steps);
    json_add_bool(json, "on_front", v->on_front[i]);
    return json;
}

static void print_line(const char *what, const char *a, const char *b)
{
    printf("%-32s %18s %18s\n", what, a != NULL ? a : "-", b != NULL ? b : "-");
}

static void print_diff(const struct study_view *v, size_t a, size_t b, const cJSON *rows)
{
    const struct trial *ta = &v->trials[a], *tb = &v->trials[b];
    char x[NUM_TEXT_MAX], y[NUM_TEXT_MAX];
    const cJSON *row;

    snprintf(x, sizeof x, "trial %lld", (long long)ta->number);
    snprintf(y, sizeof y, "trial %lld", (long long)tb->number);
    print_line("", x, y);
    print_line("state", trial_state_name(ta->state), trial_state_name(tb->state));
    print_line("origin", ta->origin, tb->origin);
    snprintf(x, sizeof x, isfinite(ta->score) ? "%.4g" : "-", ta->score);
    snprintf(y, sizeof y, isfinite(tb->score) ? "%.4g" : "-", tb->score);
    print_line(v->study.metric, x, y);
    print_line("cost", study_view_cost_text(v, study_view_trial_cost(v, ta), x),
               study_view_cost_text(v, study_view_trial_cost(v, tb), y));
    print_line("on the front", v->on_front[a] ? "yes" : "no", v->on_front[b] ? "yes" : "no");
    cJSON_ArrayForEach(row, rows) print_line(json_get_str(row, "key"), json_get_str(row, "a"), json_get_str(row, "b"));
    if (rows->child == NULL)
        printf("their configs are the same\n");
}

static enum status diff(struct study_view *v, const char *const *words, bool as_json, struct error *err)
{
    size_t a = 0, b = 0;
    cJSON *rows = NULL;

    TRY(find(v, words[1], &a, err));
    TRY(find(v, words[2], &b, err));
    TRY(study_view_advise(v, err));
    TRY(trial_config_rows(&v->trials[a], &v->trials[b], &rows, err));
    rows = differences(rows);
    if (as_json) {
        cJSON *json = cJSON_CreateObject();
        json_add_str(json, "study", v->study.name);
        json_add_str(json, "metric", v->study.metric);
        json_add_str(json, "cost_unit", study_cost_unit(v->search.cost));
        json_add(json, "a", result_json(v, a));
        json_add(json, "b", result_json(v, b));
        json_add(json, "differences", rows);
        cli_print_json(json);
        return ST_OK;
    }
    print_diff(v, a, b, rows);
    cJSON_Delete(rows);
    return ST_OK;
}

enum status cmd_diff(int argc, char **argv, struct error *err)
{
    const char *path = "trawl.db";
    bool json = false;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &path, "FILE", "the store (trawl.db)"},
        {"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "diff",
        .synopsis = "trawl diff NAME A B [--store FILE] [--json]",
        .about = "Shows the values in which the configs of two trials of a study differ, with their scores and costs.",
        .examples = "  trawl diff first 3 17 --store my.db\n"
                    "  trawl diff first 3 17 --json",
        CLI_OPTS(opts),
        CLI_WORDS(3, 3, "a study's name, or one of two trials"),
    };

    CLI_PARSE(cli, words);
    STUDY_VIEW(v);
    TRY(study_view_open(path, words.v[0], v, err));
    return diff(v, words.v, json, err);
}
