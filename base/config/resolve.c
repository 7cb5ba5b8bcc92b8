/* resolve.c - checks every entry against the tables, finds the name that a misspelt one probably meant, and fills
 * settings structs. All unknown names are reported at once; values are checked in the order of setting, and the first
 * wrong one is reported. */
#include "base/config/config_priv.h"

/* Up to CONFIG_KEY_MAX bytes: the known key nearest to a misspelt one, or "" if nothing is near. A key in the right
 * section counts as nearer than the same word in another one. */
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

/* "; did you mean train.gamma?" or other advice, for a key that no table knows. */
static void key_hint(const struct config *config, const char *key, char *buf, size_t size)
{
    char near[CONFIG_KEY_MAX];

    config_nearest(config, key, near);
    if (near[0] != '\0')
        snprintf(buf, size, "; did you mean %s?", near);
    else
        snprintf(buf, size, "; --help lists the known keys");
}

/* A section that no table has; false: known, or a sweep's. */
static bool unknown_section(const struct config *config, const char *key, char *buf, size_t size)
{
    const char *near = NULL;
    size_t best = SIZE_MAX;

    if (config_has_section(config, key))
        return false;
    if (strncmp(key, SWEEP_PREFIX, strlen(SWEEP_PREFIX)) == 0) {
        snprintf(buf, size, "[%s] names no parameter; write [sweep.SECTION.KEY]", key);
        return true;
    }
    for (size_t t = 0; t < config->n_tables; t++) {
        size_t distance = word_distance(key, config->tables[t]->section);
        if (distance < best && word_is_near(key, distance)) {
            best = distance;
            near = config->tables[t]->section;
        }
    }
    snprintf(buf, size,
             near != NULL ? "unknown section [%s]; did you mean [%s]?"
                          : "unknown section [%s]; --help lists the known ones",
             key, near);
    return true;
}

bool config_unknown(const struct config *config, size_t i, char *buf, size_t size)
{
    const struct config_entry *entry = &config->entries[i];
    bool is_section = entry->value == NULL;
    char param[CONFIG_KEY_MAX], hint[2 * CONFIG_KEY_MAX];
    const char *field;

    if (config_split_sweep(entry->key, !is_section, param, &field)) {
        if (config_find_opt(config, param) == NULL) {
            key_hint(config, param, hint, sizeof hint);
            snprintf(buf, size, is_section ? "[%s] sweeps unknown key %s%s" : "%s sweeps unknown key %s%s", entry->key,
                     param, hint);
            return true;
        }
        if (is_section || !config_unknown_sweep_field(field, hint, sizeof hint))
            return false;
    } else if (is_section) {
        return unknown_section(config, entry->key, buf, size);
    } else {
        if (config_find_opt(config, entry->key) != NULL)
            return false;
        key_hint(config, entry->key, hint, sizeof hint);
    }
    snprintf(buf, size, "unknown key %s%s", entry->key, hint);
    return true;
}

/* Problems that are reported at once: a config of another program has dozens. */
struct problems {
    char text[ERROR_TEXT_MAX];
    size_t n, used, shown;
};

static void add_problem(struct problems *p, const char *text)
{
    p->n++;
    if (p->used + strlen(text) + 64 < sizeof p->text) {
        p->used += (size_t)snprintf(p->text + p->used, sizeof p->text - p->used, "%s%s", p->n > 1 ? "\n  " : "", text);
        p->shown++;
    }
}

/* what: "names are unknown" */
static enum status report_problems(struct problems *p, const char *what, struct error *err)
{
    if (p->n == 0)
        return ST_OK;
    if (p->n == 1)
        return FAIL(err, ST_CONFIG, "%s", p->text);
    if (p->shown < p->n)
        snprintf(p->text + p->used, sizeof p->text - p->used, "\n  and %zu more", p->n - p->shown);
    return FAIL(err, ST_CONFIG, "%zu %s:\n  %s", p->n, what, p->text);
}

static enum status check_known(const struct config *config, struct error *err)
{
    char text[ERROR_TEXT_MAX], what[4 * CONFIG_KEY_MAX];
    struct problems problems = {.n = 0};

    for (size_t i = 0; i < config->n_entries; i++) {
        const struct config_entry *entry = &config->entries[i];
        bool in_unknown_section = false; /* its section's line is in the list already */
        if (!config_unknown(config, i, what, sizeof what))
            continue;
        for (size_t k = i; entry->value != NULL && k-- > 0 && !in_unknown_section;) {
            const struct config_entry *line = &config->entries[k];
            size_t len = strlen(line->key);
            in_unknown_section = line->value == NULL && line->text == entry->text &&
                                 strncmp(entry->key, line->key, len) == 0 && entry->key[len] == '.' &&
                                 config_unknown(config, k, (char[4 * CONFIG_KEY_MAX]){0}, 4 * CONFIG_KEY_MAX);
        }
        if (in_unknown_section)
            continue;
        snprintf(text, sizeof text, "%s: %s", entry->origin, what);
        add_problem(&problems, text);
    }
    return report_problems(&problems, "names are unknown", err);
}

static enum status resolve_entry(struct config *config, const struct config_entry *entry, struct error *err)
{
    char param[CONFIG_KEY_MAX];
    const char *field;

    if (config_split_sweep(entry->key, entry->value != NULL, param, &field))
        return config_add_param(config, param, entry, err);
    if (entry->value == NULL)
        return ST_OK;
    return config_check_value(config_find_opt(config, entry->key), entry->key, entry->value, entry->origin, err);
}

enum status config_resolve(struct config *config, struct error *err)
{
    struct problems problems = {.n = 0};

    config->resolved = false;
    config->n_params = 0;
    TRY(check_known(config, err));
    for (size_t i = 0; i < config->n_entries; i++) {
        struct error one = {0};
        if (resolve_entry(config, &config->entries[i], &one) != ST_OK)
            add_problem(&problems, one.text);
    }
    for (size_t at = 0; at < config->n_params;) {
        struct error one = {0};
        if (config_fill_params(config, &at, &one) != ST_OK)
            add_problem(&problems, one.text);
    }
    TRY(report_problems(&problems, "values or ranges are not possible", err));
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
        snprintf(key, sizeof key, "%s.%s", table->section, table->defs[i].key);
        const struct config_entry *entry = config_winner(config, key);
        if (!fill_field(&table->defs[i], entry != NULL ? entry->value : config_default(&table->defs[i]), settings))
            return FAIL(err, ST_INTERNAL, "%s has a value that was never checked; is its table added?", key);
    }
    return ST_OK;
}
