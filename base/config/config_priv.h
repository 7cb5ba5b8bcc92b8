/* config_priv.h - types and helpers that the files of config share.
 * All settings form one list of entries in the order of setting; nothing is merged before a value is asked for. The
 * winner of a key is its entry of the highest layer, among equals the last one. */
#pragma once

#include "base/config/config.h"

#define SWEEP_PREFIX "sweep."
#define CONFIG_ENTRIES_MAX 4096 /* of a real config: about 100 */

struct config_entry {
    char key[CONFIG_KEY_MAX]; /* as set, in lower case and with '_'; a [section] line: its name */
    char *written; /* owned: the key in the writer's own spelling */
    char *value; /* owned; NULL for a [section] line */
    char *origin; /* owned */
    enum config_layer layer;
    size_t text; /* number of its file, from 1; 0: none */
};

struct config {
    const struct opt_table **tables; /* (n_tables) borrowed */
    size_t n_tables, cap_tables;
    struct config_entry *entries; /* (n_entries) owned */
    size_t n_entries, cap_entries;
    struct config_sweep_param *params; /* (n_params) texts point into entries */
    size_t n_params, cap_params;
    size_t n_texts; /* loaded so far */
    bool resolved; /* every entry was checked since the last change */
};

/* Adds an entry; value NULL: a [section] line. key needs no certain spelling. */
enum status config_add_entry(struct config *config, enum config_layer layer, const char *key, const char *value,
                             const char *origin, struct error *err) MUST_USE;

/* Lower case, '-' to '_'; false when it does not fit. */
bool config_spell_key(const char *key, char *ret_key);

/* The winner of a key, NULL if nobody set it. */
const struct config_entry *config_winner(const struct config *config, const char *key);

bool config_has_section(const struct config *config, const char *section); /* by a table */

/* Sweep sections, by config_resolve: finds all parameters, whose keys are known, then fills and checks each. */
enum status config_add_param(struct config *config, const char *key, const struct config_entry *entry,
                             struct error *err) MUST_USE;
bool config_unknown_sweep_field(const char *field, char *buf, size_t size); /* true: with a hint in buf */
/* Fills the parameters from *at on, and ends after the first that cannot be; *at is then the next one. */
enum status config_fill_params(struct config *config, size_t *at, struct error *err) MUST_USE;

/* The value of an option as text in our own spelling ("90_000_000" -> "90000000"); buf OPT_STR_MAX bytes. */
void config_value_text(const struct opt_def *opt, const char *value, char *buf);
/* The word at index i of choices "a|b|c", NULL after the last; its length in *ret_len. */
const char *config_choice(const char *choices, size_t i, size_t *ret_len);
const char *config_default(const struct opt_def *opt); /* never NULL */
