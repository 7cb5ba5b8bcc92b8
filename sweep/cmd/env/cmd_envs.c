/* cmd_envs.c - `trawl envs`: the games with observation, actions and options, read from the registry. */
#include "base/config/config.h"
#include "base/config/opt.h"
#include "base/text/json.h"
#include "envs/env.h"
#include "envs/envs.h"
#include "envs/plugin/describe.h"
#include "envs/plugin/library.h"
#include "sweep/cmd/commands.h"

/* Shape of a game by its default settings. */
static enum status default_shape(const struct env_def *env, struct env_shape *ret_shape, struct error *err)
{
    MEM_LOCAL void *settings = NULL;

    *ret_shape = (struct env_shape){0};
    TRY(env_default_settings(env, &settings, err));
    return env_def_check(env, settings, 1, ret_shape, err);
}

static cJSON *option_json(const struct opt_def *o)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "key", o->key);
    json_add_str(json, "type", config_type_word(o));
    json_add_str(json, "default", o->def);
    json_add_str(json, "unit", o->unit);
    json_add_str(json, "help", o->help);
    if (o->type == OPT_INT || o->type == OPT_FLOAT) {
        json_add_f64(json, "min", o->min);
        json_add_f64(json, "max", o->max);
    }
    if (o->type == OPT_ENUM)
        json_add_str(json, "choices", o->choices);
    json_add_bool(json, "sweepable", o->scale != OPT_FIXED);
    return json;
}

static cJSON *env_json(const struct env_def *env, const struct env_shape *shape)
{
    cJSON *json = cJSON_CreateObject(), *heads, *ranges, *options, *defaults;

    json_add_str(json, "name", env->name);
    json_add_str(json, "summary", env->about->summary);
    json_add_i64(json, "obs_size", shape->obs_size);
    json_add_i64(json, "obs_bytes", (int64_t)env_row_bytes(shape));
    json_add_i64(json, "agents", shape->n_agents);
    json_add_bool(json, "mask", shape->has_mask);
    heads = cJSON_AddArrayToObject(json, "actions");
    ranges = cJSON_AddArrayToObject(json, "action_ranges");
    for (int i = 0; i < shape->n_heads; i++) {
        const float range[] = {shape->low[i], shape->high[i]};
        cJSON_AddItemToArray(heads, cJSON_CreateNumber(shape->head_sizes[i]));
        cJSON_AddItemToArray(ranges, shape->head_sizes[i] > 0 ? cJSON_CreateNull() : cJSON_CreateFloatArray(range, 2));
    }
    options = cJSON_AddArrayToObject(json, "options");
    for (size_t i = 0; i < env->options.n_defs; i++)
        cJSON_AddItemToArray(options, option_json(&env->options.defs[i]));
    defaults = cJSON_AddObjectToObject(json, "defaults");
    for (size_t i = 0; i < env->about->n_defaults; i++)
        json_add_str(defaults, env->about->defaults[i].key, env->about->defaults[i].value);
    return json;
}

static void print_env(const struct env_def *env, const struct env_shape *shape, bool options)
{
    printf("%-10s %s\n", env->name, env->about->summary);
    printf("           observation %d", shape->obs_size);
    if (shape->u8 && shape->n_floats > 0)
        printf(" (%d bytes, %d numbers)", shape->obs_size - shape->n_floats, shape->n_floats);
    else if (shape->u8)
        printf(" bytes");
    printf(", actions ");
    for (int i = 0; i < shape->n_heads; i++)
        if (shape->head_sizes[i] > 0)
            printf("%s%d", i > 0 ? " x " : "", shape->head_sizes[i]);
        else
            printf("%s%g..%g", i > 0 ? " x " : "", (double)shape->low[i], (double)shape->high[i]);
    if (shape->n_agents > 1)
        printf(", %d agents", shape->n_agents);
    printf("\n");
    if (!options) {
        printf("           options");
        for (size_t i = 0; i < env->options.n_defs; i++)
            printf("%s env.%s = %s", i > 0 ? "," : "", env->options.defs[i].key, env->options.defs[i].def);
        printf("%s\n", env->options.n_defs == 0 ? ": none" : "");
        return;
    }
    for (size_t i = 0; i < env->options.n_defs; i++) {
        const struct opt_def *o = &env->options.defs[i];
        printf("           --env.%-18s %s", o->key, o->help);
        if (o->type == OPT_INT || o->type == OPT_FLOAT)
            printf(" (%g to %g, default %s)\n", o->min, o->max, o->def);
        else if (o->type == OPT_ENUM)
            printf(" (%s, default %s)\n", o->choices, o->def);
        else
            printf(" (default %s)\n", o->def);
    }
    for (size_t i = 0; i < env->about->n_defaults; i++)
        printf("           sets %s = %s unless the config does\n", env->about->defaults[i].key,
               env->about->defaults[i].value);
}

static enum status print_one(const struct env_def *env, bool options, cJSON *list, struct error *err)
{
    struct env_shape shape;

    TRY(default_shape(env, &shape, err));
    if (list != NULL)
        cJSON_AddItemToArray(list, env_json(env, &shape));
    else
        print_env(env, &shape, options);
    return ST_OK;
}

/* name: NULL: every built-in game. */
static enum status print_games(const char *name, bool json, struct error *err)
{
    cJSON *list = json ? cJSON_CreateArray() : NULL;
    const struct env_def *env;
    enum status rc = ST_OK;

    if (name != NULL && (rc = env_open(name, &env, err)) == ST_OK)
        rc = print_one(env, true, list, err);
    for (size_t i = 0; name == NULL && rc == ST_OK && i < env_count(); i++)
        rc = print_one(env_at(i), false, list, err);
    if (rc == ST_OK && json) {
        cli_print_json(list);
        return ST_OK;
    }
    cJSON_Delete(list);
    return rc;
}

enum status cmd_envs(int argc, char **argv, struct error *err)
{
    bool json = false;
    const struct cli_opt opts[] = {
        {"json", 0, CLI_FLAG, &json, NULL, "print a JSON array"},
    };
    const struct cli cli = {
        .name = "envs",
        .synopsis = "trawl envs [ENV] [--json]",
        .about = "Lists the games that policies can be trained on; with a game's name, or the path of its library, all "
                 "its options.",
        .examples = "  trawl envs breakout\n"
                    "  trawl envs ./my_game.so\n"
                    "  trawl envs --json",
        CLI_OPTS(opts),
        CLI_WORDS(0, 1, "a game's name, or the path of its library"),
    };

    CLI_PARSE(cli, words);
    return print_games(words.n == 1 ? words.v[0] : NULL, json, err);
}
