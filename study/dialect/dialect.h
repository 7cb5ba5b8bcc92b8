/* dialect.h - configs of PufferLib 3.0 and 4.0, read so that they train here what they train there. Its names and words
 * become ours; a setting that cannot be trained here is an error; one that has no effect on training is dropped, with
 * the reason. A config whose game is named in base.env_name is PufferLib's as a whole: what its files leave out has the
 * defaults of that version. One that names its game in [env] is ours, with words of PufferLib's. One message lists
 * every change.
 *
 * Life: dialect_begin once all sources are loaded (the version, the game's name) -> the caller adds the game's table
 * and defaults -> dialect_translate -> config_resolve -> dialect_report -> dialect_end. One thread; the config is
 * borrowed. */
#pragma once

#include "base/config/config.h"

/* Bits: a row may belong to both versions. */
enum dialect_version { DIALECT_NONE = 0, DIALECT_3 = 1, DIALECT_4 = 2, DIALECT_BOTH = 3 };

enum dialect_how {
    DIALECT_AS, /* read under our name `to` */
    DIALECT_DROP, /* no effect on what is trained here */
    DIALECT_ONLY, /* `to` lists the values, "a|b", that match what is trained here: these are dropped, others refused */
    DIALECT_DIFFERS, /* as ONLY, but another value is dropped with a warning: `why` is what is trained here */
    DIALECT_CODE, /* dialect_map.c does it; `why` has the reason */
};

struct dialect_row {
    const char *key; /* "vec.total_agents"; "selfplay.*": all that begin so and have no row of their own above it */
    enum dialect_version of; /* the version that has this name: a vote for it; both or none: no vote */
    enum dialect_how how;
    const char *to;
    const char *why; /* the reason of DROP, ONLY and DIFFERS; what CODE does */
};
extern const struct dialect_row dialect_rows[];
extern const size_t dialect_n_rows;

/* Options of PufferLib's games that are fixed in ours, all DIALECT_ONLY or DIALECT_CODE. */
struct dialect_game_row {
    const char *game, *key; /* "breakout", "width" */
    const char *only; /* NULL: by dialect_map.c */
};
extern const struct dialect_game_row dialect_game_rows[];
extern const size_t dialect_n_game_rows;

/* PufferLib's words for our values, in any case; key is our name. */
struct dialect_value {
    const char *key, *from, *to;
};
extern const struct dialect_value dialect_values[];
extern const size_t dialect_n_values;

/* A version's default where no file sets the key, under its name or ours; v3, v4: NULL: that version has no such
 * key. */
struct dialect_default {
    const char *game; /* NULL: any */
    const char *key, *v3, *v4;
};
extern const struct dialect_default dialect_defaults[];
extern const size_t dialect_n_defaults;

/* A version's sweep where no file has one. */
struct dialect_sweep {
    const char *key; /* "train.learning_rate" */
    enum dialect_version of;
    const char *distribution, *min, *max;
};
extern const struct dialect_sweep dialect_sweeps[];
extern const size_t dialect_n_sweeps;

#define DIALECT_ROWS_MAX 128

struct dialect {
    enum dialect_version version; /* NONE, 3 or 4 */
    char why[CONFIG_KEY_MAX + 300]; /* "base.env_name at x.ini:2": how it was recognised */
    bool has_env_name; /* the game stands in base.env_name: a whole config of PufferLib's */
    bool has_defaults; /* what the files leave out has the version's defaults */
    size_t n_defaults; /* set by the version alone */
    bool seen[DIALECT_ROWS_MAX]; /* row i stood in a file or on the command line and had an effect or was dropped */
    struct strbuf mapped, changed, differs, refused; /* lists for the message; the last is the error */
    size_t n_refused;
};

/* dialect must be zeroed or ended; call dialect_end in any case. */
enum status dialect_begin(struct dialect *dialect, struct config *config, struct error *err) MUST_USE;
enum status dialect_translate(struct dialect *dialect, struct config *config, const char *game,
                              struct error *err) MUST_USE;
enum status dialect_report(const struct dialect *dialect, struct error *err) MUST_USE; /* logs the message, if any */
void dialect_end(struct dialect *dialect);

/* Is default.ini among the files, or merged into one? Then a parameter that it does not sweep was taken out on purpose
 * and is not swept. Its settings of Protein are in no file of a game. */
bool dialect_has_default_ini(const struct config *config);
/* Adds the sweep of row s, with less weight than the files. */
enum status dialect_default_sweep(struct dialect *dialect, struct config *config, const struct dialect_sweep *s,
                                  struct error *err) MUST_USE;
/* dialect_map.c: translates what needs more than a row, before the rows. */
enum status dialect_map(struct dialect *dialect, struct config *config, const char *game, struct error *err) MUST_USE;

/* Shared by the two. */
bool dialect_row_has(const struct dialect_row *row, const char *key);
#define DIALECT_NOT_SET SIZE_MAX
bool dialect_is_set(const struct config *config, const char *key); /* by a file or the command line */
enum status dialect_default(struct dialect *dialect, struct config *config, const char *key, const char *value,
                            struct error *err) MUST_USE; /* below files, above the game's defaults */
size_t dialect_find(const struct config *config, const char *key); /* the winning item, DIALECT_NOT_SET: none */
const char *dialect_get(const struct config *config, const char *key); /* its text, or NULL */
bool dialect_same_value(const char *value, const char *list); /* one of "a|b": as a word in any case, or as a number */
void dialect_refuse(struct dialect *dialect, const struct config_item *item, const char *why);
/* The error that lists what was refused. */
enum status dialect_fail(struct dialect *dialect, const struct config *config, struct error *err) MUST_USE;
void dialect_note(struct strbuf *list, const char *fmt, ...) PRINTF_LIKE(2, 3); /* appends, with a comma in between */
const char *dialect_version_text(enum dialect_version version); /* "PufferLib 4.0" */
