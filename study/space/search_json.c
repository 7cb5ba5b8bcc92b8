/* search_json.c - a search space and its points as JSON, in the store and in listings. */
#include "base/text/json.h"
#include "study/space/search.h"

static const char *const scale_names[] = {
    [SPACE_LINEAR] = "linear",           [SPACE_LOG] = "log", [SPACE_LOGIT] = "logit", [SPACE_POW2] = "pow2",
    [SPACE_CATEGORICAL] = "categorical",
};
static const char *const cost_names[] = {[SEARCH_COST_WALL] = "wall",
                                         [SEARCH_COST_DEVICE] = "device",
                                         [SEARCH_COST_STEPS] = "env_steps",
                                         [SEARCH_COST_OWN] = "own"};

/* {"key": parent, "choices": [...]} or {"key": parent, "min": x}: while it has an effect. */
static void add_when(cJSON *param, const struct search *s, const struct space_param *p)
{
    const struct space_param *parent = &s->space.params[p->parent];

    if (!p->is_conditional)
        return;
    cJSON *json = cJSON_AddObjectToObject(param, "when");
    json_add_str(json, "key", parent->key);
    if (parent->scale != SPACE_CATEGORICAL) {
        if (isfinite(p->parent_min))
            json_add_f64(json, "min", p->parent_min);
        if (isfinite(p->parent_max))
            json_add_f64(json, "max", p->parent_max);
        return;
    }
    cJSON *choices = cJSON_AddArrayToObject(json, "choices");
    for (size_t k = 0; k < parent->n_choices; k++)
        if (p->parent_choices >> k & 1)
            cJSON_AddItemToArray(choices, cJSON_CreateString(s->choices[p->parent][k]));
}

static cJSON *param_json(const struct search *s, size_t i)
{
    const struct space_param *p = &s->space.params[i];
    cJSON *json = cJSON_CreateObject(), *choices;

    json_add_str(json, "key", p->key);
    json_add_str(json, "scale", scale_names[p->scale]);
    json_add_bool(json, "int", p->is_int);
    json_add_f64(json, "min", p->min);
    json_add_f64(json, "max", p->max);
    if (p->has_init)
        json_add_f64(json, "init", p->init);
    if (p->step > 0.0)
        json_add_f64(json, "step", p->step);
    if (p->is_ordered)
        json_add_bool(json, "ordered", true);
    if (p->scale == SPACE_CATEGORICAL) {
        choices = cJSON_AddArrayToObject(json, "choices");
        for (size_t k = 0; k < p->n_choices; k++)
            cJSON_AddItemToArray(choices, cJSON_CreateString(s->choices[i][k]));
    }
    add_when(json, s, p);
    return json;
}

static char *print_and_delete(cJSON *json)
{
    char *text = json_print(json, false);

    cJSON_Delete(json);
    return text;
}

char *search_to_json(const struct search *search)
{
    cJSON *json = cJSON_CreateObject(), *params = cJSON_AddArrayToObject(json, "params");

    for (size_t i = 0; i < search->space.dim; i++)
        cJSON_AddItemToArray(params, param_json(search, i));
    if (search->cost != SEARCH_COST_WALL)
        json_add_str(json, "cost", cost_names[search->cost]);
    if (search->from[0] != '\0')
        json_add_str(json, "from", search->from);
    outcomes_add_json(&search->outcomes, json);
    if (search->envs.n > 0) {
        cJSON *envs = cJSON_AddArrayToObject(json, "envs");
        for (size_t k = 0; k < search->envs.n; k++)
            cJSON_AddItemToArray(envs, cJSON_CreateString(search->envs.names[k]));
    }
    return print_and_delete(json);
}

static enum status read_param(const cJSON *json, struct search *s, size_t i, struct error *err)
{
    struct space_param *p = &s->space.params[i];
    const char *key = json_get_str(json, "key"), *scale = json_get_str(json, "scale");
    const cJSON *choices = json_get(json, "choices"), *choice;
    size_t k = word_index(scale_names, COUNT(scale_names), scale);

    if (key == NULL || scale == NULL || strlen(key) >= sizeof p->key || !json_get_bool(json, "int", &p->is_int) ||
        !json_get_f64(json, "min", &p->min) || !json_get_f64(json, "max", &p->max))
        return FAIL(err, ST_CORRUPT, "the store's search space: parameter %zu is not whole", i);
    if (k == COUNT(scale_names))
        return FAIL(err, ST_VERSION, "the store's search space: %s has the scale '%s', unknown to this version", key,
                    scale);
    p->scale = (enum space_scale)k;
    snprintf(p->key, sizeof p->key, "%s", key);
    p->has_init = json_get_f64(json, "init", &p->init);
    (void)json_get_f64(json, "step", &p->step);
    p->is_ordered = cJSON_IsTrue(json_get(json, "ordered"));
    if (p->scale != SPACE_CATEGORICAL)
        return ST_OK;
    cJSON_ArrayForEach(choice, choices)
    {
        if (!cJSON_IsString(choice) || p->n_choices == SEARCH_MAX_CHOICES)
            return FAIL(err, ST_CORRUPT, "the store's search space: choices of %s are not whole", key);
        s->choices[i][p->n_choices++] = mem_strdup(choice->valuestring);
    }
    return p->n_choices >= 2 ? ST_OK : FAIL(err, ST_CORRUPT, "the store's search space: %s has too few choices", key);
}

/* Conditions, once all parameters are known. */
static enum status read_when(const cJSON *json, struct search *s, size_t i, struct error *err)
{
    struct space_param *p = &s->space.params[i];
    const cJSON *when = json_get(json, "when"), *choice;
    const char *key = json_get_str(when, "key");
    size_t j = key != NULL ? search_find(s, key) : s->space.dim;

    if (when == NULL)
        return ST_OK;
    if (j == s->space.dim)
        return FAIL(err, ST_CORRUPT, "the store's search space: %s depends on what is not searched", p->key);
    p->is_conditional = true;
    p->parent = j;
    p->parent_min = -INFINITY;
    p->parent_max = INFINITY;
    if (s->space.params[j].scale != SPACE_CATEGORICAL)
        return json_get_f64(when, "min", &p->parent_min) + json_get_f64(when, "max", &p->parent_max) > 0
                   ? ST_OK
                   : FAIL(err, ST_CORRUPT, "the store's search space: the condition of %s is not whole", p->key);
    cJSON_ArrayForEach(choice, json_get(when, "choices"))
    {
        for (size_t k = 0; k < s->space.params[j].n_choices; k++)
            if (cJSON_IsString(choice) && strcmp(choice->valuestring, s->choices[j][k]) == 0)
                p->parent_choices |= UINT64_C(1) << k;
    }
    return ST_OK;
}

/* Studies from before there was a choice have none: wall. */
static enum status read_cost(const cJSON *json, enum search_cost *ret_cost, struct error *err)
{
    const char *name = json_get_str(json, "cost");
    size_t k = name != NULL ? word_index(cost_names, COUNT(cost_names), name) : SEARCH_COST_WALL;

    if (k == COUNT(cost_names))
        return FAIL(err, ST_VERSION, "the store's search space: the cost '%s' is unknown to this version", name);
    *ret_cost = (enum search_cost)k;
    return ST_OK;
}

static enum status read_envs(const cJSON *json, struct search *s, struct error *err)
{
    const cJSON *env;

    cJSON_ArrayForEach(env, json_get(json, "envs"))
    {
        if (!cJSON_IsString(env))
            return FAIL(err, ST_CORRUPT, "the store's search space: its games are not whole");
        TRY(sweep_envs_add(&s->envs, env->valuestring, strlen(env->valuestring), "the store's search space", err));
    }
    return ST_OK;
}

enum status search_from_json(const char *text, struct search *ret_search, struct error *err)
{
    cJSON *json = NULL;
    const cJSON *params, *param;
    struct error at = {0};

    memset(ret_search, 0, sizeof *ret_search);
    enum status rc = json_parse(text, strlen(text), &json, err);
    if (rc != ST_OK)
        return rc;
    rc = read_cost(json, &ret_search->cost, err);
    THEN(rc, outcomes_read_json(json, &ret_search->outcomes, err));
    if (json_get_str(json, "from") != NULL)
        snprintf(ret_search->from, sizeof ret_search->from, "%s", json_get_str(json, "from"));
    params = json_get(json, "params");
    cJSON_ArrayForEach(param, params)
    {
        if (rc != ST_OK)
            break;
        if (ret_search->space.dim == SPACE_MAX_DIM)
            rc = FAIL(err, ST_CORRUPT, "the store's search space has more than %d parameters", SPACE_MAX_DIM);
        else
            rc = read_param(param, ret_search, ret_search->space.dim, err);
        if (rc != ST_OK)
            break;
        ret_search->space.dim++;
    }
    THEN(rc, read_envs(json, ret_search, err));
    for (size_t i = 0; rc == ST_OK && i < ret_search->space.dim; i++)
        rc = read_when(cJSON_GetArrayItem(params, (int)i), ret_search, i, err);
    if (rc == ST_OK && ret_search->space.dim > 0 && space_check(&ret_search->space, &at) != ST_OK)
        rc = FAIL(err, ST_CORRUPT, "the store's search space: %s", at.text);
    if (rc == ST_OK && ret_search->space.dim == 0)
        rc = FAIL(
            err, ST_CORRUPT,
            "nothing was searched: the store holds reports of `trawl train` to the trackers, which `trawl sync` sends");
    cJSON_Delete(json);
    if (rc != ST_OK)
        search_free(ret_search);
    return rc;
}

char *search_params_json(const struct search *search, const double *x)
{
    return search_run_json(search, x, search->envs.n);
}

char *search_run_json(const struct search *search, const double *x, size_t env)
{
    cJSON *json = cJSON_CreateObject();

    if (env < search->envs.n)
        json_add_str(json, SEARCH_ENV_KEY, search->envs.names[env]);
    for (size_t i = 0; i < search->space.dim; i++) {
        const struct space_param *p = &search->space.params[i];
        if (p->scale == SPACE_CATEGORICAL)
            json_add_str(json, p->key, search->choices[i][(size_t)x[i]]);
        else
            json_add_f64(json, p->key, x[i]);
    }
    return print_and_delete(json);
}

static bool read_value(const struct search *search, size_t i, const cJSON *json, double *ret)
{
    const struct space_param *p = &search->space.params[i];
    const char *text = json_get_str(json, p->key);

    if (p->scale != SPACE_CATEGORICAL)
        return json_get_f64(json, p->key, ret) && isfinite(*ret);
    for (size_t k = 0; text != NULL && k < p->n_choices; k++)
        if (strcmp(search->choices[i][k], text) == 0) {
            *ret = (double)k;
            return true;
        }
    return false;
}

enum status search_point(const struct search *search, const char *params_json, double *ret_x, struct error *err)
{
    const char *text = params_json != NULL ? params_json : "null";
    JSON_LOCAL cJSON *json = NULL;
    enum status rc = json_parse(text, strlen(text), &json, err);

    for (size_t i = 0; i < search->space.dim; i++) {
        if (json != NULL && read_value(search, i, json, &ret_x[i]))
            continue;
        ret_x[i] = NAN;
        THEN(rc, FAIL(err, ST_CORRUPT, "a trial's parameters in the store have no usable value of %s",
                      search->space.params[i].key));
    }
    return rc;
}

size_t search_env(const struct search *search, const char *params_json)
{
    JSON_LOCAL cJSON *json = NULL;
    size_t env = 0;

    if (search->envs.n == 0 || params_json == NULL ||
        json_parse(params_json, strlen(params_json), &json, NULL) != ST_OK)
        return 0;
    const char *name = json_get_str(json, SEARCH_ENV_KEY);
    if (name != NULL)
        env = sweep_envs_find(&search->envs, name);
    return env < search->envs.n ? env : 0;
}

size_t search_n_games(const char *space_json)
{
    JSON_LOCAL cJSON *json = NULL;

    if (space_json == NULL || json_parse(space_json, strlen(space_json), &json, NULL) != ST_OK)
        return 1;
    int n = cJSON_GetArraySize(json_get(json, "envs"));
    return n > 0 ? (size_t)n : 1;
}
