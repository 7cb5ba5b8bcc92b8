/* expr.h - small expressions about the values of a trial: "train.minibatch_size <= train.total_agents * train.horizon",
 * "policy.core == lstm and policy.num_layers > 1". Numbers, names, words, + - * / %, == != < <= > >=, and, or, not,
 * brackets. A struct expr owns its texts (expr_free) and never changes; any thread may evaluate it.
 *
 * A name is a variable when the caller knows it, else a word like `lstm`, which can only be compared for equality with
 * a variable. */
#pragma once

#include "base/base.h"

#define EXPR_MAX_NAMES 64

struct expr;

/* What a variable holds. A value with a text is compared by it (case does not count), unless both sides are numbers. */
struct expr_value {
    const char *text; /* "lstm"; NULL: a number alone */
    double number; /* NaN: the text is not a number */
};

/* What a name is, as the caller of expr_check knows: nothing (a word), a variable, or a variable that is true or
 * false. */
enum expr_kind { EXPR_WORD, EXPR_VARIABLE, EXPR_TRUTH };

/* origin is where text stands, "x.ini:7": messages begin with it. Anything that is not a whole expression is ST_CONFIG. */
enum status expr_parse(struct expr **ret_expr, const char *text, const char *origin, struct error *err) MUST_USE;
void expr_free(struct expr *expr); /* NULL is fine */

size_t expr_n_names(const struct expr *expr);
const char *expr_name(const struct expr *expr, size_t i); /* as written: "train.horizon", "lstm"; each once */
/* Is every word compared with a variable, and does every name that stands for a truth have one (kinds: of each name)?
 * Else ST_CONFIG, which names it. */
enum status expr_check(const struct expr *expr, const enum expr_kind *kinds, struct error *err) MUST_USE;
/* The k-th comparison of name *ret_variable with the word *ret_word, of an expression that was checked; false: there
 * are no more. */
bool expr_word(const struct expr *expr, const enum expr_kind *kinds, size_t k, size_t *ret_variable, size_t *ret_word);

/* values: of each name (words: their own text). Division by zero makes a comparison false. */
bool expr_holds(const struct expr *expr, const struct expr_value *values);
/* Where it holds as name i changes and the others keep their values, when the expression compares that name alone with
 * what does not depend on it ("lr > 0.1 and lr < 1"): *ret_min to *ret_max, both included. False: it is of another
 * form. */
bool expr_interval(const struct expr *expr, const struct expr_value *values, size_t i, double *ret_min,
                   double *ret_max);
