/* write.c - the config as ini, command line or JSON, and the tables as help and reference.
 * Tables of one section are written under one header, at the place of the first one. ini and command line describe one
 * training and leave out the sweep's own section. */
#include "base/config/config_priv.h"

#include "base/text/json.h"

static bool same_section(const struct config *config, size_t a, size_t b)
{
    return strcmp(config->tables[a]->section, config->tables[b]->section) == 0;
}

/* First table of its section? */
static bool opens_section(const struct config *config, size_t t)
{
    for (size_t i = 0; i < t; i++)
        if (same_section(config, i, t))
            return false;
    return true;
}

static bool is_sweep(const struct config *config, size_t t)
{
    return strcmp(config->tables[t]->section, "sweep") == 0;
}

/* Text of the merged value (OPT_STR_MAX bytes). False when only_changed and a reader gets the value without it: it is
 * the table's default and the env sets no other. */
static bool take_value(const struct config *config, const struct opt_table *table, const struct opt_def *opt,
                       bool only_changed, char *value)
{
    char key[CONFIG_KEY_MAX], def[OPT_STR_MAX];

    snprintf(key, sizeof key, "%s.%s", table->section, opt->key);
    const struct config_entry *entry = config_winner(config, key);
    config_value_text(opt, entry != NULL ? entry->value : config_default(opt), value);
    config_value_text(opt, config_default(opt), def);
    if (!only_changed || strcmp(value, def) != 0)
        return true;
    for (size_t i = 0; i < config->n_entries; i++)
        if (config->entries[i].layer == CONFIG_ENV && strcmp(config->entries[i].key, key) == 0)
            return true;
    return false;
}

static bool needs_quotes(const char *value)
{
    size_t n = strlen(value);
    return n == 0 || strpbrk(value, ";#\"'") != NULL || value[0] == ' ' || value[n - 1] == ' ';
}

static void add_ini_value(struct strbuf *out, const struct opt_def *opt, const char *value)
{
    if (opt->type != OPT_STR || !needs_quotes(value)) {
        strbuf_add(out, value);
        return;
    }
    strbuf_add(out, "\"");
    for (const char *at = value; *at != '\0'; at++)
        strbuf_add(out, *at == '"' ? "\"\"" : (char[2]){*at, '\0'});
    strbuf_add(out, "\"");
}

static void add_comment(struct strbuf *out, const struct opt_def *opt)
{
    size_t len;

    strbuf_addf(out, "; %s", opt->help);
    if (opt->unit != NULL && opt->unit[0] != '\0')
        strbuf_addf(out, " (%s)", opt->unit);
    if (opt->type == OPT_ENUM) {
        const char *word;
        for (size_t i = 0; (word = config_choice(opt->choices, i, &len)) != NULL; i++)
            strbuf_addf(out, "%s%.*s", i == 0 ? " One of " : ", ", (int)len, word);
    }
    strbuf_add(out, "\n");
}

static const char *written(const struct opt_def *opt)
{
    return opt->written != NULL ? opt->written : opt->key;
}

static void write_ini_table(const struct config *config, const struct opt_table *table, bool changed_only,
                            bool commented, bool *has_header, struct strbuf *out)
{
    char value[OPT_STR_MAX];

    for (size_t i = 0; i < table->n_defs; i++) {
        const struct opt_def *opt = &table->defs[i];
        if (!take_value(config, table, opt, changed_only, value))
            continue;
        if (!*has_header)
            strbuf_addf(out, "%s[%s]\n", out->len > 0 ? "\n" : "", table->section);
        *has_header = true;
        if (commented)
            add_comment(out, opt);
        strbuf_addf(out, "%s = ", written(opt));
        add_ini_value(out, opt, value);
        strbuf_add(out, "\n");
    }
}

enum status config_write_section(const struct config *config, const char *section, struct strbuf *out,
                                 struct error *err)
{
    bool has_header = false;

    for (size_t t = 0; t < config->n_tables; t++)
        if (strcmp(config->tables[t]->section, section) == 0)
            write_ini_table(config, config->tables[t], false, false, &has_header, out);
    return strbuf_status(out, "the ini file", err);
}

enum status config_write_ini(const struct config *config, bool changed_only, bool commented, struct strbuf *out,
                             struct error *err)
{
    for (size_t t = 0; t < config->n_tables; t++) {
        bool has_header = false;
        if (is_sweep(config, t) || !opens_section(config, t))
            continue;
        for (size_t i = t; i < config->n_tables; i++)
            if (same_section(config, t, i))
                write_ini_table(config, config->tables[i], changed_only, commented, &has_header, out);
    }
    return strbuf_status(out, "the ini file", err);
}

enum status config_write_args(const struct config *config, bool changed_only, struct strbuf *out, struct error *err)
{
    char value[OPT_STR_MAX];
    bool first = true;

    for (size_t t = 0; t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        for (size_t i = 0; i < table->n_defs && !is_sweep(config, t); i++) {
            if (!take_value(config, table, &table->defs[i], changed_only, value))
                continue;
            strbuf_addf(out, "%s--%s.%s=", first ? "" : " ", table->section, written(&table->defs[i]));
            strbuf_add_shell(out, value);
            first = false;
        }
    }
    return strbuf_status(out, "the command line", err);
}

void config_add_json_text(cJSON *section, const char *key, const char *text)
{
    size_t sign = text[0] == '-', digits = strspn(text + sign, "0123456789");
    bool plain = digits > 0 && (digits == 1 || text[sign] != '0') && strspn(text, "0123456789+-.eE") == strlen(text);
    bool is_whole = text[sign + digits] == '\0';
    double number;
    int64_t whole;

    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        json_add_bool(section, key, text[0] == 't');
    else if (plain && is_whole && num_parse_i64(text, &whole))
        json_add_i64(section, key, whole);
    else if (plain && !is_whole && num_parse_f64(text, &number))
        json_add_f64(section, key, number);
    else
        json_add_str(section, key, text);
}

static void add_json_value(cJSON *section, const struct opt_def *opt, const char *value)
{
    double number = 0.0;
    int64_t whole;

    if (opt->type == OPT_INT && num_parse_i64(value, &whole))
        json_add_i64(section, opt->key, whole);
    else if (opt->type == OPT_STR || opt->type == OPT_ENUM || config_parse_value(opt, value, &number, NULL) != ST_OK)
        json_add_str(section, opt->key, value);
    else if (opt->type == OPT_BOOL)
        json_add_bool(section, opt->key, number != 0.0);
    else
        json_add_f64(section, opt->key, number);
}

cJSON *config_to_json(const struct config *config)
{
    cJSON *root = cJSON_CreateObject();
    char value[OPT_STR_MAX];

    for (size_t t = 0; t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        cJSON *section = json_get(root, table->section);
        if (section == NULL)
            section = cJSON_AddObjectToObject(root, table->section);
        for (size_t i = 0; i < table->n_defs; i++) {
            (void)take_value(config, table, &table->defs[i], false, value);
            add_json_value(section, &table->defs[i], value);
        }
    }
    return root;
}

/* "adam, muon" */
static void add_choices(struct strbuf *out, const struct opt_def *opt)
{
    const char *word;
    size_t len;

    for (size_t i = 0; (word = config_choice(opt->choices, i, &len)) != NULL; i++)
        strbuf_addf(out, "%s%.*s", i == 0 ? "" : ", ", (int)len, word);
}

/* "0 to 1", "adam, muon", "true or false"; the words of the range column. */
static void add_range(struct strbuf *out, const struct opt_def *opt)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];

    switch (opt->type) {
    case OPT_BOOL:
        strbuf_add(out, "true or false");
        return;
    case OPT_STR:
        strbuf_addf(out, "text up to %d bytes", OPT_STR_MAX - 1);
        return;
    case OPT_ENUM:
        add_choices(out, opt);
        return;
    case OPT_INT:
    case OPT_FLOAT:
        num_format_f64(opt->min, lo);
        num_format_f64(opt->max, hi);
        if (isinf(opt->max))
            strbuf_addf(out, "%s and above", lo);
        else
            strbuf_addf(out, "%s to %s", lo, hi);
        return;
    }
}

/* "policy.core = mlp or lstm": a bar would end the table's cell. */
static void add_depends(struct strbuf *out, const struct opt_def *opt, const char *before, const char *after)
{
    if (opt->depends == NULL)
        return;
    strbuf_add(out, before);
    for (const char *at = opt->depends, *end; *at != '\0'; at = end + (*end != '\0')) {
        end = at + strcspn(at, "|");
        strbuf_addf(out, "%.*s%s", (int)(end - at), at, *end != '\0' ? " or " : "");
    }
    strbuf_add(out, after);
}

const char *config_type_word(const struct opt_def *opt)
{
    static const char *const words[] = {"bool", "int", "float", "text", "choice"};
    return words[opt->type];
}

enum status config_write_help(const struct config *config, const char *section, struct strbuf *out, struct error *err)
{
    for (size_t t = 0; t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        if (section != NULL && strncmp(table->section, section, strlen(section)) != 0)
            continue;
        strbuf_addf(out, "%s%s:\n", out->len > 0 ? "\n" : "", table->title);
        for (size_t i = 0; i < table->n_defs; i++) {
            const struct opt_def *opt = &table->defs[i];
            char name[2 * CONFIG_KEY_MAX];
            snprintf(name, sizeof name, "--%s.%s", table->section, opt->key);
            for (char *at = name; *at != '\0'; at++)
                if (*at == '_')
                    *at = '-';
            strbuf_addf(out, "  %-30s %s\n%33s[%s; ", name, opt->help, "",
                        config_default(opt)[0] ? config_default(opt) : "empty");
            add_range(out, opt);
            if (opt->unit != NULL && opt->unit[0] != '\0')
                strbuf_addf(out, "; %s", opt->unit);
            add_depends(out, opt, "; only with ", "");
            strbuf_add(out, "]\n");
        }
    }
    return strbuf_status(out, "the help text", err);
}

const char *config_scale_word(enum opt_scale scale)
{
    static const char *const words[] = {"", "linear", "log", "logit", "pow2", "categorical"};
    return words[scale];
}

static void add_sweep_cell(struct strbuf *out, const struct opt_def *opt)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];

    strbuf_add(out, config_scale_word(opt->scale));
    if (opt->sweep_factor > 1.0)
        strbuf_addf(out, " 1/%g to %g times the config's own", opt->sweep_factor, opt->sweep_factor);
    else if (opt->scale != OPT_FIXED && opt->scale != OPT_CATEGORICAL)
        strbuf_addf(out, " %s to %s", num_format_f64(opt->sweep_min, lo), num_format_f64(opt->sweep_max, hi));
}

enum status config_write_reference(const struct config *config, struct strbuf *out, struct error *err)
{
    for (size_t t = 0; t < config->n_tables; t++) {
        const struct opt_table *table = config->tables[t];
        strbuf_addf(out, "%s## %s: `[%s]`\n\n", out->len > 0 ? "\n" : "", table->title, table->section);
        strbuf_add(out, "| key | type | default | allowed | unit | swept | meaning |\n|---|---|---|---|---|---|---|\n");
        for (size_t i = 0; i < table->n_defs; i++) {
            const struct opt_def *opt = &table->defs[i];
            const char *def = config_default(opt);
            strbuf_addf(out, "| `%s.%s` | %s | ", table->section, opt->key, config_type_word(opt));
            strbuf_addf(out, "%s%s%s | ", def[0] != 0 ? "`" : "", def, def[0] != 0 ? "`" : "");
            add_range(out, opt);
            strbuf_addf(out, " | %s | ", opt->unit != NULL ? opt->unit : "");
            add_sweep_cell(out, opt);
            strbuf_addf(out, " | %s", opt->help);
            add_depends(out, opt, " Only with `", "`.");
            strbuf_add(out, " |\n");
        }
    }
    return strbuf_status(out, "the option reference", err);
}
