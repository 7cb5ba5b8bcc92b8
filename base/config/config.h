/* config.h - one resolved config out of defaults < the env's defaults < file < command line, with the origin of
 * every value kept for messages.
 *
 * Life: create -> tables -> load file, args (entries are only collected) -> config_peek("env.name") lets the caller
 * add that env's table and defaults -> config_resolve checks every entry against the tables: unknown keys (nearest
 * match named, file and line, all of them at once), types, ranges -> config_fill copies one table's values into its
 * settings struct.
 *
 * Keys are "section.key", lower case, '-' read as '_'. The ini dialect: [section], key = value, ';' or '#' comments
 * (also after a value and a space), '_' in numbers, texts in '' or "" (a quote inside is doubled);
 * [sweep.SECTION.KEY] holds the search range of one parameter. */
#pragma once

#include "base/base.h"
#include "base/config/opt.h"

struct config;
struct strbuf;

#define CONFIG_FILE_MAX_BYTES (1 << 20)
#define CONFIG_LINE_MAX_BYTES (1 << 16) /* of a value in a file */
#define CONFIG_KEY_MAX 96

enum config_layer { CONFIG_DEFAULT, CONFIG_ENV, CONFIG_FILE, CONFIG_COMMAND };

/* One entry as it was set. A reader of another dialect looks at entries and changes them before config_resolve. */
struct config_item {
    const char *key; /* "vec.total_agents", lower case; for a section line the section's name */
    const char *written; /* the same in the writer's own spelling */
    const char *value; /* NULL: a section line */
    const char *origin; /* "x.ini:12" */
    enum config_layer layer;
    size_t text; /* number of its file, from 1; 0: none */
};

struct config *config_create(void) MUST_USE;
void config_destroy(struct config *config);

/* The table is borrowed and must outlive the config. */
enum status config_add_table(struct config *config, const struct opt_table *table, struct error *err) MUST_USE;
void config_clear_tables(struct config *config); /* for other options than those at hand; entries stay */

/* Items in the order of setting, their texts borrowed until the next change. An edit keeps what is NULL; a removal
 * moves the later ones up. */
size_t config_n_items(const struct config *config);
struct config_item config_item(const struct config *config, size_t i);
enum status config_edit(struct config *config, size_t i, const char *key, const char *value,
                        struct error *err) MUST_USE;
void config_remove(struct config *config, size_t i);
/* Is item i a name that no table knows? Then buf has a message with advice: "unknown key x.y; did you mean x.z?" */
bool config_unknown(const struct config *config, size_t i, char *buf, size_t size);
/* "sweep.train.gamma.min" -> "train.gamma", "min"; has_field false: "sweep.train.gamma" -> "train.gamma" (ret_param has
 * CONFIG_KEY_MAX bytes). False when the key is not of that form. */
bool config_split_sweep(const char *key, bool has_field, char *ret_param, const char **ret_field);

/* Collects. origin is shown in messages: "breakout's default", "command line". */
enum status config_set(struct config *config, enum config_layer layer, const char *key, const char *value,
                       const char *origin, struct error *err) MUST_USE;
/* Among several files the later one wins, key by key. A missing file, one with NUL bytes or larger than
 * CONFIG_FILE_MAX_BYTES, a value beyond CONFIG_LINE_MAX_BYTES, a repeated section or key and a line that is not ini syntax are
 * each ST_IO or ST_CONFIG with "path:line: ...". name is shown instead of a path for text. */
enum status config_load_file(struct config *config, const char *path, struct error *err) MUST_USE;
enum status config_load_text(struct config *config, const char *name, const char *text, struct error *err) MUST_USE;
/* Takes every "--section.key value" and "--section.key=value" out of argv (in place, order kept); leaves words without
 * a dot in their option name alone. */
enum status config_take_args(struct config *config, int *argc, char **argv, struct error *err) MUST_USE;

/* The text of an entry before or after config_resolve, highest layer first; NULL when nobody set it and no table
 * knows it. Borrowed until the next change. */
const char *config_peek(const struct config *config, const char *key);
/* "breakout.ini:12", "command line", "default"; "" when unknown. */
const char *config_origin(const struct config *config, const char *key);

enum status config_resolve(struct config *config, struct error *err) MUST_USE;

/* After config_resolve. settings points to a struct of table->settings_size bytes, filled completely. */
enum status config_fill(const struct config *config, const struct opt_table *table, void *settings,
                        struct error *err) MUST_USE;

/* The option of the config that is meant by a name without its section ("learning-rate"); ret_key: (CONFIG_KEY_MAX) its
 * full key. False: there is none, or there are several. */
bool config_find_named(const struct config *config, const char *name, char *ret_key);
/* The option of a full key ("train.learning_rate"), NULL if unknown. */
const struct opt_def *config_find_opt(const struct config *config, const char *key);

/* Checks a value against the option's type and range as config_resolve would; origin goes into the message. */
enum status config_check_value(const struct opt_def *opt, const char *key, const char *value, const char *origin,
                               struct error *err) MUST_USE;
/* The number that a text means as value of a numeric, bool or enum option (enum: index). */
enum status config_parse_value(const struct opt_def *opt, const char *value, double *ret_number,
                               struct error *err) MUST_USE;
/* Text that parses back to that number for that option ("true", "muon", "0.0031", "20000000"). */
void config_format_value(const struct opt_def *opt, double number, char *buf, size_t size);
const char *config_type_word(const struct opt_def *opt); /* "bool", "int", "float", "text", "choice" */
const char *config_scale_word(enum opt_scale scale); /* "linear", "log", "logit", "pow2", "categorical"; fixed: "" */

/* One condition of a row's `depends`; points into its text. */
struct config_condition {
    const char *text; /* (len) "train.optimizer = adam|muon" or "train.prio_alpha > 0" */
    size_t len;
    char key[CONFIG_KEY_MAX]; /* the option that it compares */
    bool is_above;
    double above; /* is_above: the value must be more than this */
    const char *values; /* (values_len) else: it must be one of these, "adam|muon" */
    size_t values_len;
};
/* *at: a row's depends (may be NULL), then the rest of it; false: no condition is left. */
bool config_condition_next(const char **at, struct config_condition *ret_condition);
bool config_depends_on_any(const struct opt_def *opt); /* true: one condition is enough; false: all must hold */
/* Has the option an effect under the values of this config? */
bool config_has_effect(const struct config *config, const struct opt_def *opt);
/* Does the condition hold where its option has this value? */
bool config_condition_holds(const struct config_condition *condition, const struct opt_def *opt, const char *value);

/* One [sweep.SECTION.KEY] section, checked and filled by config_resolve. Distributions are called "uniform",
 * "int_uniform", "uniform_pow2", "log_normal", "logit_normal", or ours: "linear", "int", "pow2", "log", "logit",
 * "categorical". */
struct config_sweep_param {
    char key[CONFIG_KEY_MAX]; /* "train.learning_rate" */
    const struct opt_def *opt; /* its option, never NULL */
    enum opt_scale scale; /* by its distribution, else the option's; never OPT_FIXED; OPT_CATEGORICAL: no range */
    bool is_int; /* a range of whole numbers */
    double min, max; /* a range inside the option's, min < max unless fixed */
    bool usual_min,
        usual_max; /* the section does not set the bound: it is usual for the option and the config's value */
    const char *fixed; /* NULL, or the only value, from freeze, min = max or values = one: not searched */
    const char *values; /* categorical: "a, b", each checked; NULL: all values of a bool or enum */
    const char *mean; /* the first value: a number in the range, up to rounding; categorical: not checked; or NULL */
    const char *type; /* float, int, categorical or bool, as the option is; NULL: not given */
    double step; /* range: values are min, min + step, ...; 0: any */
    bool ordered; /* categorical: neighbours in the list are alike */
    const char *when; /* it has an effect only while this expression (base/config/expr.h) holds; NULL: always */
    const char *when_origin;
    const char *origin; /* of the section, "pong.ini:31" */
};
size_t config_n_sweep_params(const struct config *config);
const struct config_sweep_param *config_sweep_param(const struct config *config, size_t i);

/* Writers; buffers grow by strbuf's rules. Only values that differ from the tables' defaults are written when
 * changed_only. Sections come in table order. Comments give unit and help when commented.
 * ini and args leave out [sweep] and [sweep.*]: they describe one training (config_write_section has any one
 * section whole). */
enum status config_write_ini(const struct config *config, bool changed_only, bool commented, struct strbuf *out,
                             struct error *err) MUST_USE;
enum status config_write_section(const struct config *config, const char *section, struct strbuf *out,
                                 struct error *err) MUST_USE;
enum status config_write_args(const struct config *config, bool changed_only, struct strbuf *out,
                              struct error *err) MUST_USE;
struct cJSON;
/* {"train": {"learning_rate": 0.01, ...}, ...}; never NULL; the caller deletes it. */
struct cJSON *config_to_json(const struct config *config);
/* Adds a text of any type to an object: "40" as 40 and "true" as true; "007", "1k" and "x1" as texts. */
void config_add_json_text(struct cJSON *object, const char *key, const char *text);

/* Help text of all tables of a section prefix (NULL: all), for --help; and the Markdown reference of the docs. */
enum status config_write_help(const struct config *config, const char *section, struct strbuf *out,
                              struct error *err) MUST_USE;
enum status config_write_reference(const struct config *config, struct strbuf *out, struct error *err) MUST_USE;
