/* describe.c - a game's table as JSON and back, and the child process that describes a library's. */
#include "envs/plugin/describe.h"

#include "base/config/config.h"
#include "envs/envs.h"
#include "envs/plugin/child.h"

#define SETTINGS_MAX (1u << 20)

enum status env_default_settings(const struct env_def *def, void **ret_settings, struct error *err)
{
    struct config *config = config_create();
    void *settings = mem_alloc(def->options.settings_size);
    enum status rc = config_add_table(config, &def->options, err);

    THEN(rc, config_resolve(config, err));
    THEN(rc, config_fill(config, &def->options, settings, err));
    config_destroy(config);
    if (rc != ST_OK) {
        (void)error_prefix(err, "game %s", def->name);
        mem_free(settings);
        settings = NULL;
    }
    *ret_settings = settings;
    return rc;
}

/* ---- to JSON ---- */

static cJSON *row_json(const struct opt_def *o)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "key", o->key);
    json_add_i64(json, "type", (int64_t)o->type);
    json_add_i64(json, "offset", (int64_t)o->offset);
    json_add_str(json, "def", o->def);
    json_add_f64(json, "min", o->min);
    json_add_f64(json, "max", o->max);
    json_add_i64(json, "scale", (int64_t)o->scale);
    json_add_f64(json, "sweep_min", o->sweep_min);
    json_add_f64(json, "sweep_max", o->sweep_max);
    json_add_f64(json, "sweep_factor", o->sweep_factor);
    json_add_str(json, "choices", o->choices);
    json_add_str(json, "also", o->also);
    json_add_str(json, "unit", o->unit);
    json_add_str(json, "help", o->help);
    json_add_str(json, "depends", o->depends);
    return json;
}

static cJSON *shape_json(const struct env_shape *s)
{
    cJSON *json = cJSON_CreateObject(), *heads = cJSON_CreateArray();

    json_add_i64(json, "obs_size", s->obs_size);
    json_add_i64(json, "n_agents", s->n_agents);
    for (int h = 0; h < s->n_heads; h++) {
        cJSON *head = cJSON_CreateObject();
        json_add_i64(head, "size", s->head_sizes[h]);
        json_add_f64(head, "low", (double)s->low[h]);
        json_add_f64(head, "high", (double)s->high[h]);
        cJSON_AddItemToArray(heads, head);
    }
    json_add(json, "heads", heads);
    json_add_bool(json, "has_mask", s->has_mask);
    json_add_i64(json, "channels", s->channels);
    json_add_i64(json, "height", s->height);
    json_add_i64(json, "width", s->width);
    json_add_bool(json, "may_truncate", s->may_truncate);
    json_add_bool(json, "agents_end", s->agents_end);
    json_add_bool(json, "u8", s->u8);
    json_add_f64(json, "byte_scale", (double)s->byte_scale);
    json_add_i64(json, "n_floats", s->n_floats);
    return json;
}

enum status env_describe(const struct env_def *def, const void *settings, cJSON **ret_json, struct error *err)
{
    struct env_shape shape = {0};

    TRY(env_def_check(def, settings, 1, &shape, err));
    cJSON *json = cJSON_CreateObject();
    cJSON *rows = cJSON_CreateArray();
    cJSON *defaults = cJSON_CreateArray();
    cJSON *numbers = cJSON_CreateArray();
    json_add_str(json, "name", def->name);
    json_add_str(json, "summary", def->about->summary);
    json_add_i64(json, "settings_size", (int64_t)def->options.settings_size);
    json_add_i64(json, "state_size", (int64_t)def->state_size);
    json_add_i64(json, "track_at", (int64_t)def->track_at);
    json_add_str(json, "title", def->options.title);
    for (size_t i = 0; i < def->options.n_defs; i++)
        cJSON_AddItemToArray(rows, row_json(&def->options.defs[i]));
    json_add(json, "options", rows);
    for (size_t i = 0; i < def->about->n_defaults; i++) {
        cJSON *pair = cJSON_CreateObject();
        json_add_str(pair, "key", def->about->defaults[i].key);
        json_add_str(pair, "value", def->about->defaults[i].value);
        cJSON_AddItemToArray(defaults, pair);
    }
    json_add(json, "defaults", defaults);
    json_add(json, "shape", shape_json(&shape));
    for (size_t i = 0; i < def->n_numbers; i++)
        cJSON_AddItemToArray(numbers, cJSON_CreateString(def->number_names[i]));
    json_add(json, "numbers", numbers);
    *ret_json = json;
    return ST_OK;
}

/* ---- from JSON ---- */

static const char *kept_str(const cJSON *json, const char *key)
{
    const char *text = json_get_str(json, key);
    return text != NULL ? mem_strdup(text) : NULL;
}

static int64_t int_of(const cJSON *json, const char *key)
{
    int64_t value = json_i64_or(json, key, 0);
    return value;
}

static double f64_of(const cJSON *json, const char *key)
{
    double value = json_f64_or(json, key, 0);
    return value;
}

static bool bool_of(const cJSON *json, const char *key)
{
    bool value = json_bool_or(json, key, false);
    return value;
}

static struct opt_def row_of(const cJSON *json)
{
    return (struct opt_def){
        .key = kept_str(json, "key"),
        .type = (enum opt_type)int_of(json, "type"),
        .offset = (size_t)int_of(json, "offset"),
        .def = kept_str(json, "def"),
        .min = f64_of(json, "min"),
        .max = f64_of(json, "max"),
        .scale = (enum opt_scale)int_of(json, "scale"),
        .sweep_min = f64_of(json, "sweep_min"),
        .sweep_max = f64_of(json, "sweep_max"),
        .sweep_factor = f64_of(json, "sweep_factor"),
        .choices = kept_str(json, "choices"),
        .also = kept_str(json, "also"),
        .unit = kept_str(json, "unit"),
        .help = kept_str(json, "help"),
        .depends = kept_str(json, "depends"),
    };
}

void env_described_shape(const cJSON *description, struct env_shape *s)
{
    const cJSON *json = json_get(description, "shape"), *head;

    *s = (struct env_shape){
        .obs_size = (int)int_of(json, "obs_size"),
        .n_agents = (int)int_of(json, "n_agents"),
        .has_mask = bool_of(json, "has_mask"),
        .channels = (int)int_of(json, "channels"),
        .height = (int)int_of(json, "height"),
        .width = (int)int_of(json, "width"),
        .may_truncate = bool_of(json, "may_truncate"),
        .agents_end = bool_of(json, "agents_end"),
        .u8 = bool_of(json, "u8"),
        .byte_scale = (float)f64_of(json, "byte_scale"),
        .n_floats = (int)int_of(json, "n_floats"),
    };
    cJSON_ArrayForEach(head, json_get(json, "heads")) if (s->n_heads < ENV_MAX_HEADS)
    {
        s->head_sizes[s->n_heads] = (int)int_of(head, "size");
        s->low[s->n_heads] = (float)f64_of(head, "low");
        s->high[s->n_heads++] = (float)f64_of(head, "high");
    }
}

enum status env_described(const cJSON *json, struct env_def *ret_def, struct env_shape *ret_shape, struct error *err)
{
    const cJSON *rows = json_get(json, "options"), *defaults = json_get(json, "defaults"), *item;
    const cJSON *numbers = json_get(json, "numbers");
    size_t n_rows = (size_t)cJSON_GetArraySize(rows), n_defaults = (size_t)cJSON_GetArraySize(defaults);
    struct opt_def *defs = mem_array(n_rows + 1, sizeof *defs);
    struct env_default *kept = mem_array(n_defaults + 1, sizeof *kept);
    struct env_about *about = mem_alloc(sizeof *about);
    const char **names = mem_array(ENV_MAX_NUMBERS, sizeof *names);

    *ret_def = (struct env_def){
        .api_version = ENV_API_VERSION,
        .def_bytes = sizeof(struct env_def),
        .name = kept_str(json, "name"),
        .about = about,
        .options = {.section = "env",
                    .title = kept_str(json, "title"),
                    .defs = defs,
                    .settings_size = (size_t)int_of(json, "settings_size")},
        .state_size = (size_t)int_of(json, "state_size"),
        .track_at = (size_t)int_of(json, "track_at"),
        .number_names = names,
    };
    cJSON_ArrayForEach(item, numbers) if (ret_def->n_numbers < ENV_MAX_NUMBERS && cJSON_IsString(item))
        names[ret_def->n_numbers++] = mem_strdup(item->valuestring);
    cJSON_ArrayForEach(item, rows) defs[ret_def->options.n_defs++] = row_of(item);
    cJSON_ArrayForEach(item, defaults) kept[about->n_defaults++] =
        (struct env_default){kept_str(item, "key"), kept_str(item, "value")};
    about->summary = kept_str(json, "summary");
    about->defaults = kept;
    env_described_shape(json, ret_shape);
    if (ret_def->name == NULL || about->summary == NULL || ret_shape->n_agents < 1)
        return FAIL(err, ST_CORRUPT, "the description of the game is not whole");
    return ST_OK;
}

/* ---- the child ---- */

static char *settings_hex(const void *settings, size_t size)
{
    char *text = mem_alloc(2 * size + 1);

    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", ((const unsigned char *)settings)[i]);
    return text;
}

enum status env_settings_from_hex(const char *hex, size_t settings_size, void **ret_settings, struct error *err)
{
    unsigned char *bytes;
    size_t n = strlen(hex);

    if (n != 2 * settings_size || n > 2 * SETTINGS_MAX || strspn(hex, "0123456789abcdef") != n)
        return FAIL(err, ST_USAGE, "--settings has %zu characters; the game's settings are %zu bytes, two digits each",
                    n, settings_size);
    bytes = mem_alloc(settings_size);
    for (size_t i = 0; i < settings_size; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    *ret_settings = bytes;
    return ST_OK;
}

enum status env_describe_in_child(const char *path, const void *settings, size_t settings_size, cJSON **ret_json,
                                  struct error *err)
{
    char *hex = settings != NULL ? settings_hex(settings, settings_size) : NULL;
    char *argv[] = {"trawl", "env", "describe", (char *)path, hex != NULL ? "--settings" : NULL, hex, NULL};
    struct child child;
    enum status rc = child_start(&child, argv, err);

    mem_free(hex);
    TRY(rc);
    if (child_text(&child, ENV_DESCRIBE_TIMEOUT_S) != NULL)
        rc = json_parse(child.answer.text, child.answer.len, ret_json, err) == ST_OK
                 ? ST_OK
                 : error_prefix(err, "%s: its description is not whole", path);
    else
        rc = child_fail(&child, path, "describe itself", ENV_DESCRIBE_TIMEOUT_S, err);
    child_end(&child);
    return rc;
}
