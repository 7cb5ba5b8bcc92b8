/* opt.h - option tables: one row per option drives parsing, range checks, --help, the generated reference,
 * config dumps and the list of parameters that a sweep can search. A module declares its settings struct and one
 * static table beside it; nothing else in the program knows its fields. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPT_STR_MAX 1024 /* bytes of an OPT_STR field, NUL included */

enum opt_type {
    OPT_BOOL, /* field: bool;    text true|false|1|0|yes|no|on|off */
    OPT_INT, /* field: int64_t; text 12, 1_000_000, 3e7 (whole), 20M, 64k (k, M, G = 1e3, 1e6, 1e9) */
    OPT_FLOAT, /* field: double;  same, with fractions; NaN and Inf are refused */
    OPT_STR, /* field: char[OPT_STR_MAX] */
    OPT_ENUM, /* field: int, index into choices */
};

/* The scale on which a sweep searches the option unless its section names another; OPT_FIXED: never swept. */
enum opt_scale { OPT_FIXED, OPT_LINEAR, OPT_LOG, OPT_LOGIT, OPT_POW2, OPT_CATEGORICAL };

struct opt_def {
    const char *key; /* within its section: "learning_rate" */
    const char *written; /* the key as files hold it, "Learning-Rate"; NULL: the key itself */
    enum opt_type type;
    size_t offset; /* of the field in the settings struct */
    const char *def; /* default, as text */
    double min, max; /* allowed, inclusive; numbers only */
    enum opt_scale scale;
    double sweep_min, sweep_max; /* the range of a sweep whose section gives no min/max */
    double sweep_factor; /* above 1: that range is from 1/factor to factor times the config's own value; for sizes */
    const char *choices; /* OPT_ENUM: "adam|muon" */
    const char *also; /* OPT_ENUM: other words for a choice, "gpu=cuda|nvidia=cuda"; NULL: none */
    const char *unit; /* "steps", "1/update", "" */
    const char *help; /* one sentence, present tense */
    /* The conditions under which the option has an effect, NULL: always. "train.optimizer = adam|muon" (any of these)
     * or "train.prio_alpha > 0", joined all by " and " or all by " or ". */
    const char *depends;
};

struct opt_table {
    const char *section; /* "train"; several tables may share one ("env": common and per game) */
    const char *title; /* "Training", for --help and the reference */
    const struct opt_def *defs;
    size_t n_defs;
    size_t settings_size;
};

/* Rows. S: settings struct, f: field (its name is the key); last the help, and after it initialisers of further
 * members: .depends = "...", .sweep_factor = 8. */
#define OPT_ROW_BOOL(S, f, def_, ...)                                                                                  \
    {                                                                                                                  \
        .key = #f, .type = OPT_BOOL, .offset = offsetof(S, f), .def = def_, .scale = OPT_CATEGORICAL, .unit = "",      \
        .help = __VA_ARGS__                                                                                            \
    }
#define OPT_ROW_INT(S, f, def_, lo, hi, scale_, slo, shi, unit_, ...)                                                  \
    {                                                                                                                  \
        .key = #f, .type = OPT_INT, .offset = offsetof(S, f), .def = def_, .min = lo, .max = hi, .scale = scale_,      \
        .sweep_min = slo, .sweep_max = shi, .unit = unit_, .help = __VA_ARGS__                                         \
    }
#define OPT_ROW_FLOAT(S, f, def_, lo, hi, scale_, slo, shi, unit_, ...)                                                \
    {                                                                                                                  \
        .key = #f, .type = OPT_FLOAT, .offset = offsetof(S, f), .def = def_, .min = lo, .max = hi, .scale = scale_,    \
        .sweep_min = slo, .sweep_max = shi, .unit = unit_, .help = __VA_ARGS__                                         \
    }
#define OPT_ROW_STR(S, f, def_, ...)                                                                                   \
    {                                                                                                                  \
        .key = #f, .type = OPT_STR, .offset = offsetof(S, f), .def = def_, .scale = OPT_FIXED, .unit = "",             \
        .help = __VA_ARGS__                                                                                            \
    }
#define OPT_ROW_ENUM(S, f, def_, choices_, scale_, ...)                                                                \
    {                                                                                                                  \
        .key = #f, .type = OPT_ENUM, .offset = offsetof(S, f), .def = def_, .scale = scale_, .choices = choices_,      \
        .unit = "", .help = __VA_ARGS__                                                                                \
    }
