/* config.c - the list of entries, the merge by layer, and the command line.
 * Invariants: (1) only config_edit changes an entry after it was added; (2) `resolved` is true only while every entry
 * has been checked against the present tables. */
#include "base/config/config_priv.h"

#include <ctype.h>

struct config *config_create(void)
{
    return mem_alloc(sizeof(struct config));
}

void config_destroy(struct config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->n_entries; i++) {
        mem_free(config->entries[i].written);
        mem_free(config->entries[i].value);
        mem_free(config->entries[i].origin);
    }
    mem_free(config->params);
    mem_free(config->entries);
    mem_free(config->tables);
    mem_free(config);
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
    MEM_ROOM(config->tables, config->n_tables, config->cap_tables);
    config->tables[config->n_tables++] = table;
    config->resolved = false;
    return ST_OK;
}

void config_clear_tables(struct config *config)
{
    config->n_tables = 0;
    config->resolved = false;
}

enum status config_add_entry(struct config *config, enum config_layer layer, const char *key, const char *value,
                             const char *origin, struct error *err)
{
    if (config->n_entries >= CONFIG_ENTRIES_MAX)
        return FAIL(err, ST_CONFIG, "%s: more than %d entries; is this a config?", origin, CONFIG_ENTRIES_MAX);
    MEM_ROOM(config->entries, config->n_entries, config->cap_entries);
    struct config_entry *entry = &config->entries[config->n_entries];
    if (!config_spell_key(key, entry->key))
        return FAIL(err, ST_CONFIG, "%s: the name %.40s... is longer than %d bytes", origin, key, CONFIG_KEY_MAX - 1);
    entry->layer = layer;
    entry->text = layer == CONFIG_FILE ? config->n_texts : 0;
    entry->written = mem_strdup(key);
    entry->value = value != NULL ? mem_strdup(value) : NULL;
    entry->origin = mem_strdup(origin);
    config->n_entries++;
    config->resolved = false;
    return ST_OK;
}

enum status config_set(struct config *config, enum config_layer layer, const char *key, const char *value,
                       const char *origin, struct error *err)
{
    const char *dot = strchr(key, '.');

    if (dot == NULL || dot == key || key[strlen(key) - 1] == '.')
        return FAIL(err, ST_CONFIG, "%s: \"%.80s\" is not a key; write section.key", origin, key);
    return config_add_entry(config, layer, key, value, origin, err);
}

size_t config_n_items(const struct config *config)
{
    return config->n_entries;
}

struct config_item config_item(const struct config *config, size_t i)
{
    const struct config_entry *e = &config->entries[i];

    return (struct config_item){.key = e->key,
                                .written = e->written,
                                .value = e->value,
                                .origin = e->origin,
                                .layer = e->layer,
                                .text = e->text};
}

enum status config_edit(struct config *config, size_t i, const char *key, const char *value, struct error *err)
{
    struct config_entry *entry = &config->entries[i];

    if (key != NULL && !config_spell_key(key, entry->key))
        return FAIL(err, ST_CONFIG, "%s: the name %.40s... is longer than %d bytes", entry->origin, key,
                    CONFIG_KEY_MAX - 1);
    if (value != NULL) {
        char *text = mem_strdup(value); /* value may be the old text */
        mem_free(entry->value);
        entry->value = text;
    }
    config->resolved = false;
    return ST_OK;
}

void config_remove(struct config *config, size_t i)
{
    mem_free(config->entries[i].written);
    mem_free(config->entries[i].value);
    mem_free(config->entries[i].origin);
    config->n_entries--;
    memmove(&config->entries[i], &config->entries[i + 1], (config->n_entries - i) * sizeof *config->entries);
    config->resolved = false;
}

/* Is this word "--section.key" or "--section.key=value"? */
static bool is_config_arg(const char *word)
{
    if (strncmp(word, "--", 2) != 0)
        return false;
    const char *dot = strchr(word, '.');
    const char *equals = strchr(word, '=');
    return dot != NULL && (equals == NULL || dot < equals);
}

enum status config_take_args(struct config *config, int *argc, char **argv, struct error *err)
{
    int kept = 0;

    for (int i = 0; i < *argc; i++) {
        char key[CONFIG_KEY_MAX];
        const char *equals, *value;
        if (strcmp(argv[i], "--") == 0) { /* what follows is not an option */
            while (i < *argc)
                argv[kept++] = argv[i++];
            break;
        }
        if (!is_config_arg(argv[i])) {
            argv[kept++] = argv[i];
            continue;
        }
        equals = strchr(argv[i], '=');
        size_t n = equals != NULL ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2;
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

const struct config_entry *config_winner(const struct config *config, const char *key)
{
    const struct config_entry *best = NULL;

    for (size_t i = 0; i < config->n_entries; i++) {
        const struct config_entry *entry = &config->entries[i];
        if (entry->value != NULL && (best == NULL || entry->layer >= best->layer) && strcmp(entry->key, key) == 0)
            best = entry;
    }
    return best;
}

/* The winner and the option of a key as people write it; either may be NULL. */
static void look_up(const struct config *config, const char *key, const struct config_entry **ret_entry,
                    const struct opt_def **ret_opt)
{
    char spelt[CONFIG_KEY_MAX];

    *ret_entry = NULL;
    *ret_opt = NULL;
    if (!config_spell_key(key, spelt))
        return;
    *ret_entry = config_winner(config, spelt);
    *ret_opt = config_find_opt(config, spelt);
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

bool config_find_named(const struct config *config, const char *name, char *ret_key)
{
    size_t n_found = 0;

    for (size_t t = 0; t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        for (size_t i = 0; i < table->n_defs; i++) {
            if (!words_same_name(name, table->defs[i].key, strlen(table->defs[i].key)))
                continue;
            snprintf(ret_key, CONFIG_KEY_MAX, "%s.%s", table->section, table->defs[i].key);
            n_found++;
        }
    }
    return n_found == 1;
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
