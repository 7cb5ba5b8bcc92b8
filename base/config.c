/* config.c - the list of entries, the merge by layer, the checks against the tables, and filling settings.
 * Invariants: (1) an entry never changes once added, but by config_respell; (2) `resolved` is true only while every entry has been checked
 * against the tables and aliases of this moment. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/config_priv.h"
#include "base/mem.h"
#include "base/num.h"

#define SWEEP_PREFIX "sweep."

enum status config_create(struct config **ret_config, struct error *err)
{
    *ret_config = mem_alloc(sizeof **ret_config);
    return *ret_config != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for the config");
}

static void clear_warnings(struct config *config)
{
    for (size_t i = 0; i < config->n_warnings; i++)
        mem_free(config->warnings[i]);
    config->n_warnings = 0;
}

void config_destroy(struct config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->n_entries; i++) {
        mem_free(config->entries[i].value);
        mem_free(config->entries[i].origin);
    }
    clear_warnings(config);
    mem_free(config->warnings);
    mem_free(config->params);
    mem_free(config->entries);
    mem_free(config->aliases);
    mem_free(config->tables);
    mem_free(config);
}

bool config_grow(void *array_ptr, size_t n, size_t *cap, size_t size)
{
    size_t new_cap = *cap == 0 ? 16 : *cap * 2;
    void *old, *grown;

    if (n < *cap)
        return true;
    memcpy(&old, array_ptr, sizeof old); /* array_ptr is the address of a pointer of any type */
    grown = mem_grow(old, n, new_cap, size);
    if (grown == NULL)
        return false;
    memcpy(array_ptr, &grown, sizeof grown);
    *cap = new_cap;
    return true;
}

bool config_spell_key(const char *key, char *ret_key)
{
    size_t n = strlen(key);

    if (n >= CONFIG_KEY_MAX)
        return false;
    for (size_t i = 0; i <= n; i++)
        ret_key[i] = key[i] == '-' ? '_' : (char)tolower((unsigned char)key[i]);
    return true;
}

enum status config_add_table(struct config *config, const struct opt_table *table, struct error *err)
{
    char key[2 * CONFIG_KEY_MAX];

    for (size_t i = 0; i < table->n_defs; i++) {
        int n = snprintf(key, sizeof key, "%s.%s", table->section, table->defs[i].key);
        if (n < 0 || n >= CONFIG_KEY_MAX)
            return FAIL(err, ST_INTERNAL, "option %s has too long a name", key);
        if (config_find_opt(config, key) != NULL)
            return FAIL(err, ST_INTERNAL, "option %s is in two tables", key);
        TRY(config_check_value(&table->defs[i], key, config_default(&table->defs[i]), "option table", err));
    }
    if (!config_grow(&config->tables, config->n_tables, &config->cap_tables, sizeof *config->tables))
        return FAIL(err, ST_NOMEM, "out of memory for the config");
    config->tables[config->n_tables++] = table;
    config->resolved = false;
    return ST_OK;
}

enum status config_add_aliases(struct config *config, const struct config_alias *aliases, size_t n, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        if (!config_grow(&config->aliases, config->n_aliases, &config->cap_aliases, sizeof *config->aliases))
            return FAIL(err, ST_NOMEM, "out of memory for the config");
        config->aliases[config->n_aliases++] = aliases[i];
    }
    config->resolved = false;
    return ST_OK;
}

enum status config_add_entry(struct config *config, enum config_layer layer, const char *key, const char *value,
                             const char *origin, struct error *err)
{
    struct config_entry *entry;

    if (config->n_entries >= CONFIG_ENTRIES_MAX)
        return FAIL(err, ST_CONFIG, "%s: more than %d entries; is this a config?", origin, CONFIG_ENTRIES_MAX);
    if (!config_grow(&config->entries, config->n_entries, &config->cap_entries, sizeof *config->entries))
        return FAIL(err, ST_NOMEM, "%s: out of memory for the config", origin);
    entry = &config->entries[config->n_entries];
    if (!config_spell_key(key, entry->key))
        return FAIL(err, ST_CONFIG, "%s: the name %.40s... is longer than %d bytes", origin, key, CONFIG_KEY_MAX - 1);
    entry->layer = layer;
    entry->value = value != NULL ? mem_strdup(value) : NULL;
    entry->origin = mem_strdup(origin);
    if ((value != NULL && entry->value == NULL) || entry->origin == NULL) {
        mem_free(entry->value);
        mem_free(entry->origin);
        return FAIL(err, ST_NOMEM, "%s: out of memory for the config", origin);
    }
    config->n_entries++;
    config->resolved = false;
    return ST_OK;
}

enum status config_set(struct config *config, enum config_layer layer, const char *key, const char *value,
                       const char *origin, struct error *err)
{
    const char *dot = strchr(key, '.');

    if (dot == NULL || dot == key || key[strlen(key) - 1] == '.')
        return FAIL(err, ST_CONFIG, "%s: \"%.80s\" is no key; write section.key", origin, key);
    return config_add_entry(config, layer, key, value, origin, err);
}

enum status config_respell(struct config *config, const char *key, const char *from, const char *to, struct error *err)
{
    char canonical[CONFIG_KEY_MAX];

    for (size_t i = 0; i < config->n_entries; i++) {
        struct config_entry *entry = &config->entries[i];
        char *text;
        if (entry->value == NULL || strcasecmp(entry->value, from) != 0 || !config_canonical(config, entry->key, canonical) ||
            strcmp(canonical, key) != 0)
            continue;
        text = mem_strdup(to);
        if (text == NULL)
            return FAIL(err, ST_NOMEM, "%s: out of memory for the config", entry->origin);
        mem_free(entry->value);
        entry->value = text;
        config->resolved = false;
    }
    return ST_OK;
}

/* Is this word "--section.key" or "--section.key=value"? */
static bool is_config_arg(const char *word)
{
    const char *dot, *equals;

    if (strncmp(word, "--", 2) != 0)
        return false;
    dot = strchr(word, '.');
    equals = strchr(word, '=');
    return dot != NULL && (equals == NULL || dot < equals);
}

enum status config_take_args(struct config *config, int *argc, char **argv, struct error *err)
{
    int kept = 0;

    for (int i = 0; i < *argc; i++) {
        char key[CONFIG_KEY_MAX];
        const char *equals, *value;
        size_t n;
        if (strcmp(argv[i], "--") == 0) { /* what follows is no option */
            while (i < *argc)
                argv[kept++] = argv[i++];
            break;
        }
        if (!is_config_arg(argv[i])) {
            argv[kept++] = argv[i];
            continue;
        }
        equals = strchr(argv[i], '=');
        n = equals != NULL ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2;
        if (n >= sizeof key)
            return FAIL(err, ST_USAGE, "command line: the name %.40s... is longer than %d bytes", argv[i],
                        CONFIG_KEY_MAX - 1);
        memcpy(key, argv[i] + 2, n);
        key[n] = '\0';
        if (equals != NULL)
            value = equals + 1;
        else if (i + 1 < *argc && strncmp(argv[i + 1], "--", 2) != 0)
            value = argv[++i];
        else
            return FAIL(err, ST_USAGE, "command line: --%s needs a value; write --%s VALUE", key, key);
        TRY(config_set(config, CONFIG_COMMAND, key, value, "command line", err));
    }
    *argc = kept;
    argv[kept] = NULL;
    return ST_OK;
}

bool config_split_sweep(const char *key, bool has_field, char *ret_param, const char **ret_field)
{
    const char *param = key + strlen(SWEEP_PREFIX), *dot, *end;

    if (strncmp(key, SWEEP_PREFIX, strlen(SWEEP_PREFIX)) != 0)
        return false;
    end = key + strlen(key);
    dot = strchr(param, '.');
    if (dot == NULL)
        return false;
    if (has_field) {
        end = strrchr(param, '.');
        if (end == dot)
            return false;
        *ret_field = end + 1;
    }
    snprintf(ret_param, CONFIG_KEY_MAX, "%.*s", (int)(end - param), param);
    return true;
}

/* false: ignored. A key without an alias is its own. */
static bool follow_alias(const struct config *config, const char *key, char *ret_key)
{
    for (size_t i = 0; i < config->n_aliases; i++) {
        if (strcmp(config->aliases[i].from, key) == 0) {
            snprintf(ret_key, CONFIG_KEY_MAX, "%s", config->aliases[i].to != NULL ? config->aliases[i].to : key);
            return config->aliases[i].to != NULL;
        }
    }
    snprintf(ret_key, CONFIG_KEY_MAX, "%s", key);
    return true;
}

bool config_canonical(const struct config *config, const char *key, char *ret_key)
{
    char param[CONFIG_KEY_MAX], followed[CONFIG_KEY_MAX], whole[2 * CONFIG_KEY_MAX];
    const char *field = "";
    bool used, has_field = config_split_sweep(key, true, param, &field);

    if (!has_field)
        return follow_alias(config, key, ret_key);
    used = follow_alias(config, param, followed);
    snprintf(whole, sizeof whole, SWEEP_PREFIX "%s.%s", followed, field);
    snprintf(ret_key, CONFIG_KEY_MAX, "%.*s", CONFIG_KEY_MAX - 1, whole);
    return used;
}

const struct config_entry *config_winner(const struct config *config, const char *canonical)
{
    const struct config_entry *best = NULL;
    char key[CONFIG_KEY_MAX];

    for (size_t i = 0; i < config->n_entries; i++) {
        const struct config_entry *entry = &config->entries[i];
        if (entry->value == NULL || (best != NULL && entry->layer < best->layer))
            continue;
        (void)config_canonical(config, entry->key, key);
        if (strcmp(key, canonical) == 0)
            best = entry;
    }
    return best;
}

/* The winner and the option of a key as people write it; either may be NULL. */
static void look_up(const struct config *config, const char *key, const struct config_entry **ret_entry,
                    const struct opt_def **ret_opt)
{
    char spelt[CONFIG_KEY_MAX], canonical[CONFIG_KEY_MAX];

    *ret_entry = NULL;
    *ret_opt = NULL;
    if (!config_spell_key(key, spelt))
        return;
    (void)config_canonical(config, spelt, canonical);
    *ret_entry = config_winner(config, canonical);
    *ret_opt = config_find_opt(config, canonical);
}

const char *config_peek(const struct config *config, const char *key)
{
    const struct config_entry *entry;
    const struct opt_def *opt;

    look_up(config, key, &entry, &opt);
    return entry != NULL ? entry->value : opt != NULL ? config_default(opt) : NULL;
}

const char *config_origin(const struct config *config, const char *key)
{
    const struct config_entry *entry;
    const struct opt_def *opt;

    look_up(config, key, &entry, &opt);
    return entry != NULL ? entry->origin : opt != NULL ? "default" : "";
}

const struct opt_def *config_find_opt(const struct config *config, const char *key)
{
    const char *dot = strchr(key, '.');
    size_t n = dot != NULL ? (size_t)(dot - key) : 0;

    for (size_t t = 0; dot != NULL && t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        if (strlen(table->section) != n || strncmp(table->section, key, n) != 0)
            continue;
        for (size_t i = 0; i < table->n_defs; i++)
            if (strcmp(table->defs[i].key, dot + 1) == 0)
                return &table->defs[i];
    }
    return NULL;
}

bool config_has_section(const struct config *config, const char *section)
{
    for (size_t t = 0; t < config->n_tables; t++)
        if (strcmp(config->tables[t]->section, section) == 0)
            return true;
    return false;
}

/* Is there an alias of that section ("vec" of "vec.total_agents")? */
static bool has_alias_section(const struct config *config, const char *section)
{
    size_t n = strlen(section);

    for (size_t i = 0; i < config->n_aliases; i++)
        if (strncmp(config->aliases[i].from, section, n) == 0 && config->aliases[i].from[n] == '.')
            return true;
    return false;
}

/* A key in the right section counts as nearer than the same word in another one. */
void config_nearest(const struct config *config, const char *key, char *ret_key)
{
    char section[CONFIG_KEY_MAX];
    const char *dot = strchr(key, '.'), *word = dot != NULL ? dot + 1 : key;
    size_t best = SIZE_MAX;

    ret_key[0] = '\0';
    snprintf(section, sizeof section, "%.*s", dot != NULL ? (int)(dot - key) : 0, key);
    for (size_t t = 0; t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        size_t apart = config_distance(section, table->section);
        for (size_t i = 0; i < table->n_defs; i++) {
            size_t distance = config_distance(word, table->defs[i].key);
            size_t score = 4 * distance + (apart < 3 ? apart : 3);
            if (score < best && config_is_near(word, distance)) {
                best = score;
                snprintf(ret_key, CONFIG_KEY_MAX, "%s.%s", table->section, table->defs[i].key);
            }
        }
    }
}

void config_hint(const struct config *config, const char *key, char *buf, size_t size)
{
    char near[CONFIG_KEY_MAX];

    config_nearest(config, key, near);
    if (near[0] != '\0')
        snprintf(buf, size, "; did you mean %s?", near);
    else
        snprintf(buf, size, "; --help lists the known keys");
}

enum status config_warn(struct config *config, struct error *err, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (!config_grow(&config->warnings, config->n_warnings, &config->cap_warnings, sizeof *config->warnings))
        return FAIL(err, ST_NOMEM, "out of memory for the config");
    config->warnings[config->n_warnings] = mem_strdup(text);
    if (config->warnings[config->n_warnings] == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the config");
    config->n_warnings++;
    return ST_OK;
}

size_t config_n_warnings(const struct config *config)
{
    return config->n_warnings;
}

const char *config_warning(const struct config *config, size_t i)
{
    return config->warnings[i];
}

static enum status resolve_section(struct config *config, const struct config_entry *entry, struct error *err)
{
    char param[CONFIG_KEY_MAX], followed[CONFIG_KEY_MAX];
    const char *near = NULL;
    size_t best = SIZE_MAX;

    if (config_split_sweep(entry->key, false, param, NULL)) {
        if (!follow_alias(config, param, followed))
            return config_warn(config, err, "%s: [%s] has no effect here and is ignored", entry->origin, entry->key);
        return config_add_param(config, followed, entry, err);
    }
    if (config_has_section(config, entry->key) || has_alias_section(config, entry->key))
        return ST_OK;
    if (strncmp(entry->key, SWEEP_PREFIX, strlen(SWEEP_PREFIX)) == 0)
        return FAIL(err, ST_CONFIG, "%s: [%s] names no parameter; write [sweep.SECTION.KEY]", entry->origin,
                    entry->key);
    for (size_t t = 0; t < config->n_tables; t++) {
        size_t distance = config_distance(entry->key, config->tables[t]->section);
        if (distance < best && config_is_near(entry->key, distance)) {
            best = distance;
            near = config->tables[t]->section;
        }
    }
    if (near != NULL)
        return FAIL(err, ST_CONFIG, "%s: unknown section [%s]; did you mean [%s]?", entry->origin, entry->key, near);
    return FAIL(err, ST_CONFIG, "%s: unknown section [%s]; --help lists the known ones", entry->origin, entry->key);
}

/* A file that sets one option by two names to two values contradicts itself. */
static enum status check_twice(const struct config *config, size_t at, const char *canonical, struct error *err)
{
    const struct config_entry *entry = &config->entries[at];
    char key[CONFIG_KEY_MAX];

    if (entry->layer != CONFIG_FILE)
        return ST_OK;
    for (size_t i = 0; i < at; i++) {
        const struct config_entry *other = &config->entries[i];
        if (other->layer != CONFIG_FILE || other->value == NULL || strcmp(other->key, entry->key) == 0 ||
            strcmp(other->value, entry->value) == 0)
            continue;
        (void)config_canonical(config, other->key, key);
        if (strcmp(key, canonical) == 0)
            return FAIL(err, ST_CONFIG, "%s: %s sets what %s at %s has set; keep one of them", entry->origin,
                        entry->key, other->key, other->origin);
    }
    return ST_OK;
}

static enum status resolve_value(struct config *config, size_t at, struct error *err)
{
    const struct config_entry *entry = &config->entries[at];
    char canonical[CONFIG_KEY_MAX], param[CONFIG_KEY_MAX], hint[2 * CONFIG_KEY_MAX];
    const struct opt_def *opt;
    const char *field;

    if (!config_canonical(config, entry->key, canonical))
        return config_warn(config, err, "%s: %s has no effect here and is ignored", entry->origin, entry->key);
    TRY(check_twice(config, at, canonical, err));
    if (config_split_sweep(canonical, true, param, &field)) {
        TRY(config_add_param(config, param, entry, err));
        return config_check_sweep_field(field, entry, err);
    }
    opt = config_find_opt(config, canonical);
    if (opt == NULL) {
        config_hint(config, canonical, hint, sizeof hint);
        return FAIL(err, ST_CONFIG, "%s: unknown key %s%s", entry->origin, entry->key, hint);
    }
    if (strcmp(canonical, entry->key) != 0)
        TRY(config_warn(config, err, "%s: %s is read as %s", entry->origin, entry->key, canonical));
    return config_check_value(opt, entry->key, entry->value, entry->origin, err);
}

enum status config_resolve(struct config *config, struct error *err)
{
    config->resolved = false;
    config->n_params = 0;
    clear_warnings(config);
    for (size_t i = 0; i < config->n_entries; i++) {
        if (config->entries[i].value == NULL)
            TRY(resolve_section(config, &config->entries[i], err));
        else
            TRY(resolve_value(config, i, err));
    }
    TRY(config_fill_params(config, err));
    config->resolved = true;
    return ST_OK;
}

static bool fill_field(const struct opt_def *opt, const char *value, unsigned char *settings)
{
    void *field = settings + opt->offset;
    double number = 0.0;

    if (opt->type == OPT_STR)
        return snprintf(field, OPT_STR_MAX, "%s", value) < OPT_STR_MAX;
    if (opt->type == OPT_INT)
        return num_parse_i64(value, field);
    if (config_parse_value(opt, value, &number, NULL) != ST_OK)
        return false;
    if (opt->type == OPT_BOOL)
        *(bool *)field = number != 0.0;
    else if (opt->type == OPT_ENUM)
        *(int *)field = (int)number;
    else
        *(double *)field = number;
    return true;
}

enum status config_fill(const struct config *config, const struct opt_table *table, void *settings, struct error *err)
{
    char key[CONFIG_KEY_MAX];

    if (!config->resolved)
        return FAIL(err, ST_INTERNAL, "config_fill before config_resolve");
    memset(settings, 0, table->settings_size);
    for (size_t i = 0; i < table->n_defs; i++) {
        const struct config_entry *entry;
        snprintf(key, sizeof key, "%s.%s", table->section, table->defs[i].key);
        entry = config_winner(config, key);
        if (!fill_field(&table->defs[i], entry != NULL ? entry->value : config_default(&table->defs[i]), settings))
            return FAIL(err, ST_INTERNAL, "%s has a value that was never checked; is its table added?", key);
    }
    return ST_OK;
}
