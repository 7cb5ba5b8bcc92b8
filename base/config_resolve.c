/* config_resolve.c - checks every entry against the tables, finds what a misspelt name was meant to be, and fills
 * settings structs. Entries are checked in the order they were set, so the first wrong line of a file is the one told. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/config_priv.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/words.h"

/* Is there an alias of that section ("vec" of "vec.total_agents")? */
static bool has_alias_section(const struct config *config, const char *section)
{
    size_t n = strlen(section);

    for (size_t i = 0; i < config->n_aliases; i++)
        if (strncmp(config->aliases[i].from, section, n) == 0 && config->aliases[i].from[n] == '.')
            return true;
    return false;
}

/* Up to CONFIG_KEY_MAX bytes: the known key nearest to a misspelt one, or "" if nothing is near. A key in the right section
 * counts as nearer than the same word in another one. */
static void config_nearest(const struct config *config, const char *key, char *ret_key)
{
    char section[CONFIG_KEY_MAX];
    const char *dot = strchr(key, '.'), *word = dot != NULL ? dot + 1 : key;
    size_t best = SIZE_MAX;

    ret_key[0] = '\0';
    snprintf(section, sizeof section, "%.*s", dot != NULL ? (int)(dot - key) : 0, key);
    for (size_t t = 0; t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        size_t apart = word_distance(section, table->section);
        for (size_t i = 0; i < table->n_defs; i++) {
            size_t distance = word_distance(word, table->defs[i].key);
            size_t score = 4 * distance + (apart < 3 ? apart : 3);
            if (score < best && word_is_near(word, distance)) {
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

static enum status add_warning(struct config *config, struct error *err, const char *ignored, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

static enum status add_warning(struct config *config, struct error *err, const char *ignored, const char *fmt, ...)
{
    struct config_warning *warning;
    char text[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (!config_grow(&config->warnings, config->n_warnings, &config->cap_warnings, sizeof *config->warnings))
        return FAIL(err, ST_NOMEM, "out of memory for the config");
    warning = &config->warnings[config->n_warnings];
    snprintf(warning->ignored, sizeof warning->ignored, "%s", ignored);
    warning->text = mem_strdup(text);
    if (warning->text == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the config");
    config->n_warnings++;
    return ST_OK;
}

/* An entry that has no effect: a key, or a whole section. */
static enum status warn_ignored(struct config *config, const struct config_entry *entry, struct error *err)
{
    char name[CONFIG_KEY_MAX + 2];

    snprintf(name, sizeof name, entry->value == NULL ? "[%s]" : "%s", entry->key);
    return add_warning(config, err, name, "%s: %s has no effect here and is ignored", entry->origin, name);
}

size_t config_n_warnings(const struct config *config)
{
    return config->n_warnings;
}

const char *config_warning(const struct config *config, size_t i)
{
    return config->warnings[i].text;
}

const char *config_ignored(const struct config *config, size_t i)
{
    return config->warnings[i].ignored[0] != '\0' ? config->warnings[i].ignored : NULL;
}

static enum status resolve_section(struct config *config, const struct config_entry *entry, struct error *err)
{
    char param[CONFIG_KEY_MAX], followed[CONFIG_KEY_MAX];
    const char *near = NULL;
    size_t best = SIZE_MAX;

    if (config_split_sweep(entry->key, false, param, NULL)) {
        if (!config_follow_alias(config, param, followed))
            return warn_ignored(config, entry, err);
        return config_add_param(config, followed, entry, err);
    }
    if (config_has_section(config, entry->key) || has_alias_section(config, entry->key))
        return ST_OK;
    if (strncmp(entry->key, SWEEP_PREFIX, strlen(SWEEP_PREFIX)) == 0)
        return FAIL(err, ST_CONFIG, "%s: [%s] names no parameter; write [sweep.SECTION.KEY]", entry->origin,
                    entry->key);
    for (size_t t = 0; t < config->n_tables; t++) {
        size_t distance = word_distance(entry->key, config->tables[t]->section);
        if (distance < best && word_is_near(entry->key, distance)) {
            best = distance;
            near = config->tables[t]->section;
        }
    }
    if (near != NULL)
        return FAIL(err, ST_CONFIG, "%s: unknown section [%s]; did you mean [%s]?", entry->origin, entry->key, near);
    return FAIL(err, ST_CONFIG, "%s: unknown section [%s]; --help lists the known ones", entry->origin, entry->key);
}

/* A file that sets one option by two names to two values contradicts itself; of two files the later one wins. */
static enum status check_twice(const struct config *config, size_t at, const char *canonical, struct error *err)
{
    const struct config_entry *entry = &config->entries[at];

    if (entry->layer != CONFIG_FILE)
        return ST_OK;
    for (size_t i = 0; i < at; i++) {
        const struct config_entry *other = &config->entries[i];
        if (other->layer != CONFIG_FILE || other->text != entry->text || other->value == NULL ||
            strcmp(other->key, entry->key) == 0 || strcmp(other->value, entry->value) == 0)
            continue;
        if (strcmp(other->canonical, canonical) == 0)
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
        return warn_ignored(config, entry, err);
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
        TRY(add_warning(config, err, "", "%s: %s is read as %s", entry->origin, entry->key, canonical));
    return config_check_value(opt, entry->key, entry->value, entry->origin, err);
}

enum status config_resolve(struct config *config, struct error *err)
{
    config->resolved = false;
    config->n_params = 0;
    config_clear_warnings(config);
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
