/* import_row.c - a trial of a file, whichever program wrote it, as the body of a request that adds it.
 * Invariant: a value that is not understood is an error with its row, never left out. */
#include "sweep/cmd/study/import_row.h"

#include "base/hash.h"
#include "study/exchange/puffer_log.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"

#include <strings.h>

static char plain(char c)
{
    return c == '/' ? '.' : c == '-' ? '_' : c;
}

/* "train/learning-rate" is "train.learning_rate": trackers and PufferLib write either. */
static bool same_name(const char *column, const char *key)
{
    while (*column != '\0' && plain(*column) == plain(*key)) {
        column++;
        key++;
    }
    return *column == *key;
}

static const cJSON *cell(const cJSON *row, const char *name)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, row) if (same_name(item->string, name)) return item;
    return NULL;
}

const char *import_row_text(const cJSON *row, const char *column)
{
    const cJSON *item = cell(row, column);

    return cJSON_IsString(item) && item->valuestring[0] != '\0' ? item->valuestring : NULL;
}

bool import_row_is_branch(const cJSON *row, int64_t *ret_number)
{
    static const char word[] = TRIAL_BRANCH " ";
    const char *origin = import_row_text(row, "origin");

    return origin != NULL && strncmp(origin, word, sizeof word - 1) == 0 &&
           num_parse_i64(origin + sizeof word - 1, ret_number);
}

/* What trackers write where there is nothing. */
static bool is_blank(const cJSON *item)
{
    return !cJSON_IsString(item) || item->valuestring[0] == '\0' || strcmp(item->valuestring, "-") == 0 ||
           strcasecmp(item->valuestring, "null") == 0 || strcasecmp(item->valuestring, "none") == 0;
}

/* NaN or an infinity, in Python's words and JavaScript's. */
static bool is_not_finite(const char *text)
{
    text += text[0] == '-' || text[0] == '+';
    return strcasecmp(text, "nan") == 0 || strcasecmp(text, "inf") == 0 || strcasecmp(text, "infinity") == 0;
}

/* *ret_value is left when the cell is empty or missing; a number that is not finite is NaN. */
static enum status number(const cJSON *row, const char *name, double *ret_value, struct error *err)
{
    const cJSON *item = cell(row, name);

    if (cJSON_IsNumber(item))
        *ret_value = item->valuedouble;
    else if (is_blank(item))
        return ST_OK;
    else if (is_not_finite(item->valuestring))
        *ret_value = NAN;
    else if (!num_parse_f64(item->valuestring, ret_value))
        return FAIL(err, ST_CORRUPT, "%s is '%.60s', a number is needed", name, item->valuestring);
    return ST_OK;
}

/* The first of the columns that has a number; NaN: none. names: up to n, or to the first NULL. */
static enum status first_number(const cJSON *row, const char *const *names, size_t n, double *ret_value,
                                struct error *err)
{
    *ret_value = NAN;
    for (size_t i = 0; i < n && names[i] != NULL && isnan(*ret_value); i++)
        TRY(number(row, names[i], ret_value, err));
    return ST_OK;
}

static const char *state_text(const cJSON *row)
{
    const char *word = import_row_text(row, "state");

    return word != NULL ? word : import_row_text(row, "State");
}

/* In the words of Trawl, W&B and Optuna. *ret_word NULL: no result. */
static enum status state(const cJSON *row, const char **ret_word, struct error *err)
{
    static const char *const words[][2] = {{"done", "done"},      {"finished", "done"}, {"completed", "done"},
                                           {"complete", "done"},  {"failed", "failed"}, {"crashed", "failed"},
                                           {"killed", "failed"},  {"fail", "failed"},   {"stopped", "stopped"},
                                           {"pruned", "stopped"}, {"queued", NULL},     {"running", NULL},
                                           {"lost", NULL},        {"waiting", NULL},    {"pending", NULL},
                                           {"preempted", NULL},   {"preempting", NULL}};
    const char *word = state_text(row);

    *ret_word = "done";
    for (size_t i = 0; word != NULL && i < COUNT(words); i++)
        if (strcasecmp(word, words[i][0]) == 0) {
            *ret_word = words[i][1];
            return ST_OK;
        }
    return word == NULL
               ? ST_OK
               : FAIL(err, ST_CORRUPT,
                      "the state '%.40s' is not known; done, failed, stopped, and the words of W&B and Optuna are",
                      word);
}

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot != NULL ? dot + 1 : key;
}

/* A column of parameter k: by its key, by one of PufferLib's names for it, or by the last part of the key where no
 * other parameter ends so. */
static const cJSON *param_cell(const struct search *s, size_t k, const cJSON *row)
{
    const char *key = s->space.params[k].key;
    const cJSON *item = cell(row, key);
    const char *name;
    size_t n_same = 0;

    for (size_t i = 0; item == NULL && (name = puffer_name(key, i)) != NULL; i++)
        item = cell(row, name);
    for (size_t i = 0; i < s->space.dim; i++)
        n_same += strcmp(last_part(s->space.params[i].key), last_part(key)) == 0;
    return item != NULL || n_same > 1 ? item : cell(row, last_part(key));
}

/* Python's True is our true. */
static cJSON *choice_json(const struct search *s, size_t k, const cJSON *item)
{
    for (size_t c = 0; cJSON_IsString(item) && c < s->space.params[k].n_choices; c++)
        if (strcasecmp(s->choices[k][c], item->valuestring) == 0)
            return cJSON_CreateString(s->choices[k][c]);
    return cJSON_Duplicate(item, true);
}

static enum status add_params(const struct study_view *v, const cJSON *row, cJSON *body, struct error *err)
{
    const struct search *s = &v->search;
    const cJSON *given = json_get(row, "params");
    cJSON *params = cJSON_AddObjectToObject(body, "params");
    const cJSON *from = cJSON_IsObject(given) ? given : row;
    double value;

    for (size_t k = 0; k < s->space.dim; k++) {
        const char *key = s->space.params[k].key;
        const cJSON *item = param_cell(s, k, from);
        bool is_text = cJSON_IsString(item) && item->valuestring[0] != '\0';
        if (item == NULL)
            return FAIL(err, ST_USAGE, "there is no value of %s, which the study searches", key);
        if (s->space.params[k].scale == SPACE_CATEGORICAL && (is_text || cJSON_IsNumber(item) || cJSON_IsBool(item)))
            json_add(params, key, choice_json(s, k, item));
        else if (cJSON_IsNumber(item))
            json_add_f64(params, key, item->valuedouble);
        else if (is_text && num_parse_f64(item->valuestring, &value))
            json_add_f64(params, key, value);
        else if (is_text)
            return FAIL(err, ST_CORRUPT, "%s is '%.60s', a number is needed", key, item->valuestring);
    }
    return ST_OK;
}

/* The columns that exports of ours, W&B's tables and PufferLib's logs have for each; a person's choice is the only
 * one. */
static enum status read_results(const struct study_view *v, const cJSON *row, const struct import_columns *c,
                                double *ret_score, double *ret_cost, double *ret_step, struct error *err)
{
    char env[200], environment[200];
    const char *const scores[] = {"score", v->study.metric, env, environment};
    static const char *const costs[][5] = {[SEARCH_COST_WALL] = {"cost", "cost_s", "uptime", "Runtime"},
                                           [SEARCH_COST_DEVICE] = {"cost", "device_s"},
                                           [SEARCH_COST_STEPS] = {"cost", "env_steps", "agent_steps", "global_step"},
                                           [SEARCH_COST_OWN] = {"cost", "device_s"}};
    static const char *const steps[] = {"env_steps", "step", "agent_steps", "global_step"};

    snprintf(env, sizeof env, "env/%.150s", v->study.metric);
    snprintf(environment, sizeof environment, "environment/%.150s", v->study.metric);
    TRY(c->score != NULL ? first_number(row, &c->score, 1, ret_score, err)
                         : first_number(row, scores, 4, ret_score, err));
    TRY(c->cost != NULL ? first_number(row, &c->cost, 1, ret_cost, err)
                        : first_number(row, costs[v->search.cost], 5, ret_cost, err));
    return first_number(row, steps, 4, ret_step, err);
}

/* Does the row have a score that is not a number to go by? "" and a missing one are none. */
static bool has_odd_score(const struct study_view *v, const cJSON *row, const struct import_columns *c)
{
    char env[200];
    const char *const names[] = {c->score != NULL ? c->score : "score", v->study.metric, env};

    snprintf(env, sizeof env, "env/%.150s", v->study.metric);
    for (size_t i = 0; i < (c->score != NULL ? 1 : 3); i++) {
        const cJSON *item = cell(row, names[i]);
        double value;
        if (cJSON_IsNumber(item) && fabs(item->valuedouble) > STUDY_SCORE_MAX)
            return true;
        if (!is_blank(item) && (is_not_finite(item->valuestring) ||
                                (num_parse_f64(item->valuestring, &value) && fabs(value) > STUDY_SCORE_MAX)))
            return true;
    }
    return false;
}

/* Those that a store or JSON lines have of the trial; else columns "outcome.NAME", as `trawl report` writes them, or
 * "NAME". */
static enum status add_outcomes(const struct study_view *v, const cJSON *row, cJSON *body, struct error *err)
{
    const char *needed[OUTCOMES_MAX];
    size_t n = outcomes_needed(&v->search.outcomes, needed);
    const cJSON *own = json_get(row, "outcomes");
    cJSON *metrics = n > 0 ? cJSON_AddObjectToObject(body, "metrics") : NULL;
    char column[OUTCOME_METRIC_MAX + 16];
    double value;

    for (size_t i = 0; i < n; i++) {
        snprintf(column, sizeof column, OUTCOME_COLUMN "%s", needed[i]);
        TRY(first_number(own, &needed[i], 1, &value, err));
        if (isnan(value))
            TRY(first_number(row, (const char *const[]){column, needed[i]}, 2, &value, err));
        if (isfinite(value))
            json_add_f64(metrics, needed[i], value);
    }
    return ST_OK;
}

static enum status add_results(const struct study_view *v, const cJSON *row, const struct import_columns *c,
                               bool is_done, cJSON *body, struct error *err)
{
    double score, cost, step, seed = 0, se = NAN, episodes = 0;

    if (c->score != NULL && is_done && cell(row, c->score) == NULL)
        return FAIL(err, ST_USAGE, "there is no column '%.60s' (--score)", c->score);
    TRY(read_results(v, row, c, &score, &cost, &step, err));
    TRY(number(row, "seed", &seed, err));
    TRY(number(row, "score_se", &se, err));
    TRY(number(row, "eval_episodes", &episodes, err));
    TRY(add_outcomes(v, row, body, err));
    if (isfinite(score))
        json_add_f64(body, "score", score);
    if (isfinite(cost))
        json_add_f64(body, "cost", cost);
    if (step >= 0 && step < 9e15)
        json_add_i64(body, "step", (int64_t)step);
    if (seed > -9e15 && seed < 9e15)
        json_add_i64(body, "seed", (int64_t)seed);
    if (isfinite(se) && episodes >= 1 && episodes < 9e15) {
        json_add_f64(body, "score_se", se);
        json_add_i64(body, "eval_episodes", (int64_t)episodes);
    }
    return ST_OK;
}

/* Of the same row the same, so that a file that is imported twice adds its trials once. */
static void add_key(cJSON *body)
{
    char key[40];
    MEM_LOCAL char *text = json_print(body, false);

    snprintf(key, sizeof key, "import-%016llx", (unsigned long long)hash_text(text));
    json_add_str(body, "key", key);
}

/* ---- the game ---- */

/* PufferLib names several in one text. NULL: the row names none. */
static const char *row_games(const cJSON *row)
{
    static const char *const names[] = {"env", "env_name", "base.env_name", "env.name"};

    for (size_t i = 0; i < COUNT(names); i++) {
        const cJSON *item = cell(row, names[i]);
        if (!is_blank(item))
            return item->valuestring;
    }
    return NULL;
}

static const char *own_game(const struct study_view *v, const char *name)
{
    const struct sweep_envs *envs = &v->search.envs;
    size_t i = sweep_envs_find(envs, name);

    if (i < envs->n)
        return envs->names[i];
    return envs->n == 0 && strcasecmp(v->setup->env->name, name) == 0 ? v->setup->env->name : NULL;
}

/* The study's name of the game; NULL: it trains on none of them. */
static const char *find_game(const struct study_view *v, const char *games)
{
    char *text = mem_strdup(games), *rest = text, *word;
    const char *found = own_game(v, games);

    while (found == NULL && (word = strsep(&rest, " ,")) != NULL)
        found = own_game(v, strncmp(word, "puffer_", 7) == 0 ? word + 7 : word);
    mem_free(text);
    return found;
}

bool import_row_is_elsewhere(const struct study_view *v, const cJSON *row)
{
    const char *games = row_games(row);
    /* Another program has no names for libraries, Gymnasium's environments and what a program trains on. */
    bool has_names = v->search.envs.n > 0 || env_find(v->setup->env->name) == v->setup->env;

    return has_names && games != NULL && find_game(v, games) == NULL;
}

static bool same_result(const struct study_view *v, const struct trial *t, const cJSON *body)
{
    const char *state = json_get_str(body, "state");
    double score, cost;

    if (state == NULL || strcmp(state, trial_state_name(t->state)) != 0)
        return false;
    if (!json_get_f64(body, "score", &score))
        return isnan(t->score);
    return t->score == score && json_get_f64(body, "cost", &cost) && study_view_trial_cost(v, t) == cost;
}

/* Where the clock is the cost, two runs of one seed differ in it. */
bool import_row_is_there(const struct study_view *v, const cJSON *body, int64_t *ret_number)
{
    MEM_LOCAL char *params = json_print(json_get(body, "params"), false);
    double x[SPACE_MAX_DIM];
    struct error why = {0};
    int64_t seed;
    bool found = false;

    if (json_get_i64(body, "seed", &seed) && search_point(&v->search, params, x, &why) == ST_OK)
        for (size_t i = 0; i < v->n && !found; i++) {
            const struct trial *t = &v->trials[i];
            found =
                t->seed == seed && same_result(v, t, body) && memcmp(x, v->x[i], v->search.space.dim * sizeof *x) == 0;
            *ret_number = found ? t->number : -1;
        }
    return found;
}

enum status import_row_body(const struct study_view *v, const cJSON *row, const struct import_columns *columns,
                            cJSON **ret_body, struct error *err)
{
    const char *word = NULL, *reason = import_row_text(row, "reason");
    char why[96];

    *ret_body = NULL;
    TRY(state(row, &word, err));
    if (word == NULL)
        return ST_OK;
    if (strcmp(word, "done") == 0 && has_odd_score(v, row, columns)) {
        word = "failed";
        reason = "its score is not a finite number, or too large";
    }
    cJSON *body = cJSON_CreateObject();
    json_add_str(body, "state", word);
    enum status rc = add_params(v, row, body, err);
    THEN(rc, add_results(v, row, columns, strcmp(word, "done") == 0, body, err));
    if (rc != ST_OK) {
        cJSON_Delete(body);
        return rc;
    }
    if (reason != NULL)
        json_add_str(body, "reason", reason);
    if (v->search.envs.n > 0 && row_games(row) != NULL)
        json_add_str(body, "env", find_game(v, row_games(row)));
    json_add_str(body, "client", "import");
    add_key(body);
    if (reason == NULL && strcmp(word, "done") != 0) { /* not in the key: a row that already exists stays one */
        snprintf(why, sizeof why, "%.40s in the file that was imported, without a reason", state_text(row));
        json_add_str(body, "reason", why);
    }
    *ret_body = body;
    return ST_OK;
}
