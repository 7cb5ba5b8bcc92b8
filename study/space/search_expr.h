/* search_expr.h - an expression (base/config/expr.h) whose names are options and parameters: those that a space
 * searches have the values of a point, all others those of the config. For sweep.require and for `when` of a range.
 * A struct search_expr is owned by its maker (search_expr_free) and borrows the config; any thread may ask it. */
#pragma once

#include "base/base.h"

struct search;
struct search_expr;
struct setup;
struct space_param;

/* An unknown name, or a word that the option compared with it can never be, is ST_CONFIG with origin and the remedy.
 * search is bound, and its order must not change while the expression lives. */
enum status search_expr_bind(struct search_expr **ret_expr, const char *text, const char *origin,
                             const struct search *search, const struct setup *setup, struct error *err) MUST_USE;
void search_expr_free(struct search_expr *expr); /* NULL is fine */
bool search_expr_holds(const struct search_expr *expr, const struct search *search, const double *x);

enum search_effect { EFFECT_ALWAYS, EFFECT_NEVER, EFFECT_SOMETIMES };
/* When does parameter i have an effect, by its `when`? SOMETIMES: depending on one other parameter, which is noted in
 * p. */
enum status search_expr_when(const struct search *search, const struct setup *setup, size_t i, const char *when,
                             const char *origin, struct space_param *p, enum search_effect *ret_effect,
                             struct error *err) MUST_USE;
