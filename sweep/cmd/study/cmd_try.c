/* cmd_try.c - `trawl try`: the next trial of a study is one whose values a person gives. */
#include "base/text/json.h"
#include "study/view/export.h"
#include "study/view/study_view.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/ask/ask_points.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/command/control_send.h"

/* "--train.x V" and "--lr=V": every long option that is not the command's own. They are taken out of argv. */
static enum status take_values(const struct cli *cli, int *argc, char **argv, cJSON *given, struct error *err)
{
    int n = 1;

    for (int i = 1; i < *argc; i++) {
        size_t length = strncmp(argv[i], "--", 2) == 0 ? strcspn(argv[i] + 2, "=") : 0;
        char key[SPACE_KEY_MAX];
        bool is_own = length == 0 || length >= sizeof key || strcmp(argv[i], "--help") == 0;
        for (size_t k = 0; !is_own && k < cli->n_opts; k++)
            is_own = strlen(cli->opts[k].name) == length && strncmp(argv[i] + 2, cli->opts[k].name, length) == 0;
        if (is_own) {
            argv[n++] = argv[i];
            continue;
        }
        snprintf(key, sizeof key, "%.*s", (int)length, argv[i] + 2);
        for (char *at = strchr(key, '.') != NULL ? key : ""; *at != '\0'; at++)
            *at = *at == '-' ? '_' : *at; /* as config_take_args does */
        const char *value = argv[i][2 + length] == '=' ? argv[i] + 3 + length : i + 1 < *argc ? argv[++i] : NULL;
        double number;
        if (value == NULL)
            return FAIL(err, ST_USAGE, "try: --%s needs a value", key);
        if (json_get(given, key) != NULL)
            return FAIL(err, ST_USAGE, "try: --%s is given twice", key);
        if (num_parse_f64(value, &number))
            json_add_f64(given, key, number);
        else
            json_add_str(given, key, value);
    }
    *argc = n;
    return ST_OK;
}

static bool is_given(const cJSON *params, const char *key)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, params)
    {
        if (words_same_name(key, item->string, strlen(item->string)))
            return true;
    }
    return false;
}

/* The values of trial i for all that is not given. */
static void add_base(const struct study_view *v, size_t i, cJSON *params)
{
    cJSON *item;

    MEM_LOCAL char *text = search_params_json(&v->search, v->x[i]);
    JSON_LOCAL cJSON *base = cJSON_Parse(text);
    while ((item = cJSON_DetachItemFromArray(base, 0)) != NULL) {
        const char *name = search_param_name(item->string);
        if (is_given(params, item->string) || is_given(params, name))
            cJSON_Delete(item);
        else
            cJSON_AddItemToObject(params, name, item);
    }
}

/* Where parameter k has an effect: "opt is sgd or muon". */
static void add_condition(const struct search *s, size_t k, struct strbuf *out)
{
    const struct space_param *p = &s->space.params[k], *of = &s->space.params[p->parent];
    double min = fmax(p->parent_min, of->min);
    char lo[32], hi[32];
    size_t n = 0;

    strbuf_addf(out, "%s is ", search_param_name(of->key));
    for (size_t c = 0; c < of->n_choices; c++)
        if (p->parent_choices >> c & 1)
            strbuf_addf(out, "%s%s", n++ > 0 ? " or " : "", s->choices[p->parent][c]);
    if (of->scale == SPACE_CATEGORICAL)
        return;
    search_show(s, p->parent, of->is_int ? ceil(min) : min, lo, sizeof lo);
    search_show(s, p->parent, fmin(p->parent_max, of->max), hi, sizeof hi);
    strbuf_addf(out, "from %s to %s", lo, hi);
}

/* A parameter that has no effect beside the others would make this the base again (NULL: the start values), unless
 * another value makes a difference. Values that cannot be read are left to the controller's answer. */
static enum status check_effect(const struct search *s, const cJSON *given, const cJSON *params, const double *base,
                                struct error *err)
{
    double x[SPACE_MAX_DIM];
    struct error why = {0};
    size_t inert = s->space.dim;
    const cJSON *item;
    STRBUF(text, 1000);

    if (ask_points_read(s, params, x, &why) != ST_OK)
        return ST_OK;
    cJSON_ArrayForEach(item, given)
    {
        size_t k = search_find(s, item->string);
        bool is_active = space_is_active(&s->space, k, x);
        if (is_active && (base == NULL || x[k] != base[k]))
            return ST_OK;
        if (!is_active)
            inert = k;
    }
    if (inert == s->space.dim)
        return ST_OK;
    for (size_t k = inert; s->space.params[k].is_conditional; k = s->space.params[k].parent) {
        strbuf_add(&text, k != inert ? " and " : "");
        add_condition(s, k, &text);
    }
    return FAIL(err, ST_USAGE, "try: %s has an effect only where %s; give that too: no value given changes the config",
                search_param_name(s->space.params[inert].key), text.text);
}

/* Without a trial to start from, the study's start values stand for what is not given. */
static enum status complete(const char *store_path, const char *study, int64_t trial, cJSON *params, struct error *err)
{
    STUDY_VIEW(v);
    struct gp_picked picked;
    char rule[40] = "best";

    TRY(study_view_open(store_path, study, v, err));
    TRY(study_view_advise(v, err));
    if (trial >= 0)
        snprintf(rule, sizeof rule, "trial=%lld", (long long)trial);
    bool has_base = trial >= 0 || study_view_best_run(v) < v->n;
    JSON_LOCAL cJSON *given = cJSON_Duplicate(params, true);
    if (has_base) {
        TRY(export_pick(v, rule, &picked, err));
        add_base(v, picked.i, params);
    }
    return check_effect(&v->search, given, params, has_base ? v->x[picked.i] : NULL, err);
}

static enum status send_try(const char *store_path, const char *study, int64_t trial, cJSON *params, bool json,
                            struct error *err)
{
    struct control_command command = {.kind = CONTROL_TRY, .trial = -1};
    enum status rc = ST_OK;

    if (params->child == NULL && trial < 0)
        return FAIL(err, ST_USAGE, "try: give values as --section.key V, or --trial N to repeat those of a trial");
    if (strlen(study) >= sizeof command.study)
        return FAIL(err, ST_USAGE, "try: no study has a name that long");
    snprintf(command.study, sizeof command.study, "%s", study);
    TRY(complete(store_path, study, trial, params, err));
    MEM_LOCAL char *text = json_print(params, false);
    if (strlen(text) >= sizeof command.text)
        rc = FAIL(err, ST_USAGE, "try: the values take %zu bytes; up to %d are allowed", strlen(text),
                  CONTROL_TEXT_MAX - 1);
    snprintf(command.text, sizeof command.text, "%s", text);
    return rc == ST_OK ? control_send(store_path, &command, json, err) : rc;
}

enum status cmd_try(int argc, char **argv, struct error *err)
{
    const char *store_path = "trawl.db";
    int64_t trial = -1;
    bool json = false;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &store_path, "FILE", "the store (trawl.db)"},
        {"trial", 0, CLI_INT, &trial, "N", "trial that supplies the other values (the recommended one)"},
        {"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "try",
        .synopsis = "trawl try NAME --section.key V ... [--trial N] [--store FILE] [--json]",
        .about =
            "Queues a config of your own as the next trial of a study, whose limit of trials rises by one; a study\n"
            "that had ended there continues. Values are given for parameters that the study searches, within "
            "their\nranges. The others are those of the recommended trial, or of --trial.",
        .examples = "  trawl try first --train.learning-rate 0.003 --store my.db\n"
                    "  trawl try first --trial 17 --train.gamma 0.99 --store my.db",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a study's name (`trawl ls` lists them)"),
    };
    JSON_LOCAL cJSON *params = cJSON_CreateObject();

    TRY(take_values(&cli, &argc, argv, params, err));
    CLI_PARSE(cli, words);
    return send_try(store_path, words.v[0], trial, params, json, err);
}
