/* trial_config.c - a trial's config, value by value, beside the defaults of its game and beside another trial's. */
#include "web/api/trial_config.h"

#include "store/store.h"
#include "study/setup/setup.h"

/* The config of a bare `trawl train GAME`; of a program, which has none, empty. Caller deletes. */
static enum status default_config(const char *env, cJSON **ret_json, struct error *err)
{
    AT_END(setup_destroy_at) struct setup *setup = NULL, *plain = NULL;

    if (strcmp(env, program_env.name) == 0) {
        *ret_json = cJSON_CreateObject();
        return ST_OK;
    }
    TRY(setup_create(&setup, err));
    TRY(setup_load(setup, env, err));
    TRY(setup_finish(setup, err));
    TRY(setup_derive(setup, NULL, 0, "default", &plain, err));
    *ret_json = config_to_json(plain->config);
    return ST_OK;
}

/* ret_env: the game's name, NULL: not asked for. */
static enum status trial_config(const struct trial *trial, cJSON **ret_json, char *ret_env, size_t size,
                                struct error *err)
{
    AT_END(setup_destroy_at) struct setup *setup = NULL;

    TRY(trial_setup(trial, &setup, err));
    *ret_json = config_to_json(setup->config);
    if (ret_env != NULL)
        snprintf(ret_env, size, "%s", setup->env->name);
    return ST_OK;
}

/* A value of config_to_json as the text that a config file would hold. */
static void add_text(cJSON *row, const char *key, const cJSON *value)
{
    char buf[NUM_TEXT_MAX];

    json_add_str(row, key,
                 cJSON_IsString(value) || cJSON_IsRaw(value) ? value->valuestring
                 : cJSON_IsBool(value)                       ? (cJSON_IsTrue(value) ? "true" : "false")
                 : cJSON_IsNumber(value)                     ? num_format_f64(value->valuedouble, buf)
                                                             : NULL);
}

static const cJSON *value_of(const cJSON *config, const char *section, const char *key)
{
    return json_get(json_get(config, section), key);
}

struct configs {
    cJSON *own, *plain, *against, *params; /* against: NULL: none */
};

static void configs_free(struct configs *c)
{
    cJSON_Delete(c->own);
    cJSON_Delete(c->plain);
    cJSON_Delete(c->against);
    cJSON_Delete(c->params);
}

static cJSON *row_json(const struct configs *c, const char *section, const cJSON *value)
{
    char key[CONFIG_KEY_MAX];
    const cJSON *usual = value_of(c->plain, section, value->string);
    bool differs = usual == NULL || !cJSON_Compare(usual, value, true);
    cJSON *row = cJSON_CreateObject();

    snprintf(key, sizeof key, "%s.%s", section, value->string);
    json_add_str(row, "key", key);
    add_text(row, "value", value);
    add_text(row, "default", usual);
    json_add_str(row, "origin", json_get(c->params, key) != NULL ? "searched" : differs ? "set" : "default");
    json_add_bool(row, "differs", differs);
    if (c->against != NULL)
        add_text(row, "against", value_of(c->against, section, value->string));
    return row;
}

enum status trial_config_rows(const struct trial *trial, const struct trial *against, cJSON **ret_rows,
                              struct error *err)
{
    AT_END(configs_free) struct configs c = {0};
    const cJSON *section, *value;
    char env[64] = "";

    *ret_rows = NULL;
    TRY(trial_config(trial, &c.own, env, sizeof env, err));
    TRY(default_config(env, &c.plain, err));
    if (against != NULL)
        TRY(trial_config(against, &c.against, NULL, 0, err));
    if (trial->params != NULL)
        TRY(json_parse(trial->params, strlen(trial->params), &c.params, err));
    *ret_rows = cJSON_CreateArray();
    cJSON_ArrayForEach(section, c.own)
    {
        cJSON_ArrayForEach(value, section) cJSON_AddItemToArray(*ret_rows, row_json(&c, section->string, value));
    }
    return ST_OK;
}
