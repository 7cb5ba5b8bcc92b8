/* program_settings.c - [sweep] command and the parameters of the program that it starts.
 * Invariant: every row of a program's table has a default that its own type allows. */
#include "study/program/program_settings.h"

#include "base/config/config.h"
#include "envs/envs.h"

#include <ctype.h>

#define COMMAND_KEY "sweep.command"
#define PARAM_PREFIX PROGRAM_SECTION "."
#define CHOICES_MAX_BYTES (1u << 20)

static const struct opt_def program_defs[] = {
    OPT_ROW_STR(struct program_settings, command, "",
                "Starts this program for each trial instead of Trawl's own trainer: `python train.py {argv}`; "
                "docs/own-trainer.md."),
    OPT_ROW_STR(struct program_settings, directory, "",
                "Starts the program in this folder; empty: that of the config file."),
    OPT_ROW_STR(struct program_settings, trial_time, "0",
                "Ends a program that has run this long, and counts the trial as failed: 90s, 30m, 2h; 0: no limit."),
    OPT_ROW_FLOAT(
        struct program_settings, grace_s, "5", 0, 15, OPT_FIXED, 0, 0, "s",
        "Waits this long between SIGTERM and SIGKILL when a program is stopped; at most 6 s when Trawl itself "
        "ends."),
    OPT_ROW_INT(struct program_settings, trial_seed, "0", 0, 4294967295.0, OPT_FIXED, 0, 0, "",
                "Sets {seed} and TRAWL_SEED in a single run; a sweep gives each trial its own."),
    OPT_ROW_STR(struct program_settings, trial_env, "",
                "Sets {env} and TRAWL_ENV in a single run; a sweep with sweep.envs gives each trial its own."),
};
const struct opt_table program_opt_table = {
    .section = "sweep",
    .title = "Any program as the trainer",
    .defs = program_defs,
    .n_defs = COUNT(program_defs),
    .settings_size = sizeof(struct program_settings),
};

const struct env_def program_env = {
    .name = "program",
    .options = {.section = "env", .title = "Program"},
};

/* ---- the parameters ---- */

static bool has_command(const struct config *config)
{
    const char *command = config_peek(config, COMMAND_KEY);

    return command != NULL && command[0] != '\0' && strcmp(command, PROGRAM_NONE) != 0;
}

static bool is_set_to(const struct config *config, const char *key, const char *value)
{
    const char *text = config_peek(config, key);

    return text != NULL && (value == NULL ? text[0] != '\0' : strcmp(text, value) == 0);
}

bool program_is_outside(const struct config *config)
{
    return !has_command(config) &&
           (is_set_to(config, COMMAND_KEY, PROGRAM_NONE) ||
            (is_set_to(config, "sweep.devices", "none") && !is_set_to(config, "env.name", NULL) &&
             !is_set_to(config, "base.env_name", NULL)));
}

bool program_is_named(const struct config *config)
{
    return has_command(config) || program_is_outside(config);
}

enum status program_refuse_trainer(const struct config *config, struct error *err)
{
    static const char *const sections[] = {"env", "policy", "train"};

    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        for (size_t k = 0; k < COUNT(sections); k++) {
            size_t n = strlen(sections[k]);
            if (strncmp(item.key, sections[k], n) == 0 && (item.key[n] == '.' || item.key[n] == '\0'))
                return FAIL(err, ST_CONFIG,
                            "%s: %s belongs to Trawl's own trainer, but sweep.command starts another program; drop it, "
                            "or write the program's fixed values under [" PROGRAM_SECTION "]",
                            item.origin, item.key);
        }
    }
    return ST_OK;
}

void program_params_free(struct program_params *p)
{
    MEM_LOCAL struct opt_def *defs = (struct opt_def *)p->table.defs; /* ours */

    for (size_t i = 0; i < p->table.n_defs; i++) {
        mem_free((char *)defs[i].key);
        mem_free((char *)defs[i].written);
        mem_free((char *)defs[i].def);
        mem_free((char *)defs[i].choices);
    }
    *p = (struct program_params){0};
}

static struct opt_def *find(const struct program_params *p, const char *key)
{
    for (size_t i = 0; i < p->table.n_defs; i++)
        if (strcmp(p->table.defs[i].key, key) == 0)
            return (struct opt_def *)&p->table.defs[i];
    return NULL;
}

static enum status check_name(const char *name, const char *origin, struct error *err)
{
    static const char *const taken[] = {"argv", "config", "dir", "study", "trial", "seed"};

    if (name[0] == '\0' || name[0] == '-' ||
        strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != strlen(name))
        return FAIL(err, ST_CONFIG,
                    "%s: '%.80s' is not a name for a parameter; letters, digits, '_', '-' and '.' make one", origin,
                    name);
    for (size_t i = 0; i < COUNT(taken); i++)
        if (strcmp(name, taken[i]) == 0)
            return FAIL(err, ST_CONFIG,
                        "%s: no parameter can be called %s: {%s} has a meaning of its own in sweep.command (docs/"
                        "own-trainer.md); give the program `--%s {%s}` there",
                        origin, name, name, name, name);
    return ST_OK;
}

/* A row for the name, a text until a type is known. key: in our spelling. */
static enum status note(struct program_params *p, const char *key, const char *written, const char *origin,
                        struct error *err)
{
    struct opt_def *defs = (struct opt_def *)p->table.defs;

    if (find(p, key) != NULL)
        return ST_OK;
    TRY(check_name(written, origin, err));
    MEM_ROOM(defs, p->table.n_defs, p->cap);
    p->table.defs = defs;
    defs[p->table.n_defs++] = (struct opt_def){
        .key = mem_strdup(key),
        .written = mem_strdup(written),
        .type = OPT_STR,
        .min = -INFINITY,
        .max = INFINITY,
        .def = mem_strdup(""),
        .scale = OPT_FIXED,
        .unit = "",
        .help = "A parameter of the program.",
    };
    return ST_OK;
}

static const char *without_prefix(const char *name)
{
    return strncmp(name, PARAM_PREFIX, strlen(PARAM_PREFIX)) == 0 ? name + strlen(PARAM_PREFIX) : name;
}

/* "sweep.lr" of a section line or "sweep.lr.min" of a value: spelt "sweep.param.lr" and "sweep.param.lr.min" from now
 * on. */
static enum status take_range_item(struct program_params *p, struct config *config, size_t i, struct error *err)
{
    struct config_item item = config_item(config, i);
    const char *rest = without_prefix(item.key + strlen("sweep.")), *dot = strrchr(rest, '.');
    const char *written = without_prefix(item.written + strlen("sweep."));
    char key[2 * CONFIG_KEY_MAX], name[CONFIG_KEY_MAX], as_written[CONFIG_KEY_MAX];
    size_t n = item.value == NULL ? strlen(rest) : (size_t)(dot - rest);

    snprintf(name, sizeof name, "%.*s", (int)n, rest);
    snprintf(as_written, sizeof as_written, "%.*s", (int)n, written);
    TRY(note(p, name, as_written, item.origin, err));
    snprintf(key, sizeof key, "sweep." PARAM_PREFIX "%s", rest);
    return config_edit(config, i, key, NULL, err);
}

static const char *field_of(const struct config *config, const struct opt_def *def, const char *field, char *ret_key)
{
    snprintf(ret_key, 2 * CONFIG_KEY_MAX, "sweep." PARAM_PREFIX "%s.%s", def->key, field);
    return config_peek(config, ret_key);
}

/* "adam, sgd" as "adam|sgd". */
static enum status take_choices(struct opt_def *def, const char *values, const char *origin, struct error *err)
{
    STRBUF(list, CHOICES_MAX_BYTES);

    for (const char *at = values;; at++) {
        at += strspn(at, " \t");
        size_t n = strcspn(at, ",");
        while (n > 0 && isblank((unsigned char)at[n - 1]))
            n--;
        if (n == 0 || strcspn(at, " \t|") < n)
            return FAIL(err, ST_CONFIG,
                        "%s: the values of %s are \"%.80s\"; write values = a, b, c, each without blanks and '|'",
                        origin, def->key, values);
        strbuf_addf(&list, "%s%.*s", list.len > 0 ? "|" : "", (int)n, at);
        at += strcspn(at, ",");
        if (*at == '\0')
            break;
    }
    TRY(strbuf_status(&list, "a list of values", err));
    def->choices = strbuf_take(&list);
    def->help = "The `values` of its section [sweep.NAME] list them."; /* a wrong one's error ends with it */
    return ST_OK;
}

/* Where a range starts when neither mean nor [param] says: in its middle, on its own scale. */
static void middle(const struct config *config, struct opt_def *def)
{
    char key[2 * CONFIG_KEY_MAX], text[NUM_TEXT_MAX];
    const char *lo = field_of(config, def, "min", key), *hi = field_of(config, def, "max", key);
    const char *how = field_of(config, def, "distribution", key), *scale = field_of(config, def, "scale", key);
    const char *step = field_of(config, def, "step", key);
    double min, max, x, grid;

    how = how != NULL ? how : scale != NULL ? scale : "";
    if (lo == NULL || hi == NULL || !num_parse_f64(lo, &min) || !num_parse_f64(hi, &max) || !isfinite(min) ||
        !isfinite(max))
        return; /* refused later, with its line */
    bool is_log = (strstr(how, "log") != NULL || strstr(how, "pow2") != NULL) && min > 0 && max > 0;
    x = is_log ? sqrt(min) * sqrt(max) : min / 2 + max / 2;
    if (strcmp(how, "pow2") == 0 || strcmp(how, "uniform_pow2") == 0)
        x = exp2(rint(log2(x)));
    if (step != NULL && num_parse_f64(step, &grid) && grid > 0)
        x = min + rint((x - min) / grid) * grid;
    if (def->type == OPT_INT)
        x = rint(x);
    mem_free((char *)def->def);
    if (def->type == OPT_INT && fabs(x) < 0x1p63)
        snprintf(text, sizeof text, "%lld", (long long)x);
    else
        snprintf(text, sizeof text, "%.6g", x); /* short, for people, where that is still inside */
    if (step != NULL || !num_parse_f64(text, &grid) || grid < min || grid > max)
        num_format_f64(x, text);
    def->def = mem_strdup(text);
}

static enum status take_type(const struct config *config, struct opt_def *def, struct error *err)
{
    static const char *const words[] = {"float", "int", "categorical", "bool"};
    char key[2 * CONFIG_KEY_MAX], values_key[2 * CONFIG_KEY_MAX];
    const char *type = field_of(config, def, "type", key), *values, *mean, *near;

    if (type == NULL)
        return ST_OK;
    near = word_nearest(type, words, COUNT(words));
    if (near == NULL || strcmp(near, type) != 0)
        return FAIL(err, ST_CONFIG, "%s: the type of %s is \"%.40s\"; float, int, categorical and bool are known",
                    config_origin(config, key), def->key, type);
    values = field_of(config, def, "values", values_key);
    def->type = strcmp(type, "float") == 0  ? OPT_FLOAT
                : strcmp(type, "int") == 0  ? OPT_INT
                : strcmp(type, "bool") == 0 ? OPT_BOOL
                                            : OPT_ENUM;
    def->scale = def->type == OPT_FLOAT || def->type == OPT_INT ? OPT_LINEAR : OPT_CATEGORICAL;
    def->min = -INFINITY;
    def->max = INFINITY;
    if (def->type == OPT_ENUM && values == NULL)
        return FAIL(err, ST_CONFIG, "%s: %s is categorical; write values = a, b, c", config_origin(config, key),
                    def->key);
    if (def->type == OPT_ENUM)
        TRY(take_choices(def, values, config_origin(config, values_key), err));
    mem_free((char *)def->def);
    def->def = mem_strdup(def->type == OPT_BOOL ? "false" : "0");
    if (def->type == OPT_FLOAT || def->type == OPT_INT)
        middle(config, def);
    mean = field_of(config, def, "mean", key);
    if (def->type == OPT_ENUM || (values != NULL && mean == NULL)) { /* the first of the list */
        size_t n = strcspn(values, ",");
        while (n > 0 && isblank((unsigned char)values[n - 1]))
            n--;
        mem_free((char *)def->def);
        def->def = memcpy(mem_alloc(n + 1), values, n);
    }
    if (mean != NULL && config_check_value(def, def->key, mean, "", NULL) == ST_OK) {
        mem_free((char *)def->def);
        def->def = mem_strdup(mean);
    }
    (void)field_of(config, def, values != NULL ? "values" : "type", key);
    return config_check_value(def, def->key, def->def, config_origin(config, key), err);
}

static enum status check_typed(const struct program_params *p, const struct config *config, struct error *err)
{
    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        if (item.value != NULL || strncmp(item.key, "sweep." PARAM_PREFIX, strlen("sweep." PARAM_PREFIX)) != 0)
            continue;
        const struct opt_def *def = find(p, item.key + strlen("sweep." PARAM_PREFIX));
        if (def != NULL && def->type == OPT_STR)
            return FAIL(err, ST_CONFIG,
                        "%s: [sweep.%s] has no type; write type = float, int, categorical or bool (a parameter of the "
                        "program that sweep.command starts has no other description)",
                        item.origin, def->written);
    }
    return ST_OK;
}

/* Names in the items of the command line, or in all others. */
static enum status take_names(struct program_params *p, struct config *config, bool command_line, struct error *err)
{
    for (size_t i = 0; i < config_n_items(config); i++) {
        struct config_item item = config_item(config, i);
        bool is_range =
            strncmp(item.key, "sweep.", 6) == 0 && (item.value == NULL || strchr(item.key + 6, '.') != NULL);
        if ((item.layer == CONFIG_COMMAND) != command_line)
            continue;
        if (is_range)
            TRY(take_range_item(p, config, i, err));
        else if (item.value != NULL && strncmp(item.key, PARAM_PREFIX, strlen(PARAM_PREFIX)) == 0)
            TRY(note(p, without_prefix(item.key), without_prefix(item.written), item.origin, err));
    }
    return ST_OK;
}

enum status program_params_make(struct program_params *p, struct config *config, struct error *err)
{
    program_params_free(p);
    p->table = (struct opt_table){.section = PROGRAM_SECTION, .title = "The program's parameters"};
    TRY(take_names(p, config, false, err)); /* a name is spelt as in the file, however the command line spells it */
    TRY(take_names(p, config, true, err));
    for (size_t i = 0; i < p->table.n_defs; i++)
        TRY(take_type(config, (struct opt_def *)&p->table.defs[i], err));
    return check_typed(p, config, err);
}
