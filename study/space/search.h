/* search.h - the space that a config asks to search. A struct search owns its choices (search_free, also of a zeroed
 * one); options are borrowed from the tables. Reading is free for any thread. An impossible range is ST_CONFIG. */
#pragma once

#include "gp/gp.h"
#include "study/games/sweep_envs.h"
#include "study/setup/outcomes.h"

struct opt_def;
struct setup;

#define SEARCH_MAX_CHOICES 64 /* bits of space_param.parent_choices */

enum search_cost {
    SEARCH_COST_WALL,
    SEARCH_COST_DEVICE,
    SEARCH_COST_STEPS,
    SEARCH_COST_OWN
}; /* choices of sweep.cost */

struct search {
    struct space space;
    char from[128]; /* study of the same store whose trials are evidence for this one; "": none */
    struct sweep_envs envs; /* games that each configuration is trained on */
    enum search_cost cost; /* what the study counts as the cost of a trial */
    struct outcomes outcomes; /* what else counts: limits and a third objective */
    char *choices[SPACE_MAX_DIM][SEARCH_MAX_CHOICES]; /* texts of categorical parameters, owned */
    const struct opt_def *opts[SPACE_MAX_DIM]; /* NULL until search_bind */
};

void search_free(struct search *search); /* what it owns, and leaves it zeroed; NULL is fine */
struct search *search_create(void); /* zeroed: too large for a stack */
void search_destroy(struct search *search); /* NULL is fine */
static inline void search_destroy_at(struct search **search) /* for AT_END */
{
    search_destroy(*search);
}
/* Read from the [sweep.SECTION.KEY] sections of a finished setup; a search without parameters is an error with an
 * example. */
enum status search_from_setup(const struct setup *setup, struct search *ret_search, struct error *err) MUST_USE;
/* {"params": [{"key", "scale", "int", "min", "max", "init"?, "choices"?, "when"?}], "cost"?, "from"?, "limits"?,
 * "objective"?}; caller: mem_free. */
char *search_to_json(const struct search *search);
enum status search_from_json(const char *text, struct search *ret_search, struct error *err) MUST_USE;
/* Finds the option of every parameter, so that values can be written as texts. */
enum status search_bind(struct search *search, const struct setup *setup, struct error *err) MUST_USE;
/* {"train.learning_rate": 0.01, "train.optimizer": "muon"}; caller: mem_free. */
char *search_params_json(const struct search *search, const double *x);
#define SEARCH_ENV_KEY "env"
/* The same with the game, {"env": "pong", ...}: what a trial keeps. */
char *search_run_json(const struct search *search, const double *x, size_t env);
size_t search_n_games(const char *space_json); /* of a stored space (NULL: none); 1 where there is no list */
/* Which of envs a trial with these params (NULL: none) trains; 0 where there is one game. */
size_t search_env(const struct search *search, const char *params_json);
/* A program's parameter as its users and clients name it, "lr" for the key "param.lr"; other keys are their own names.
 * Borrowed from key. */
const char *search_param_name(const char *key);
/* Which parameter, by key or name, however those are spelt ("Learning-Rate"); dim: none. */
size_t search_find(const struct search *search, const char *name);
/* The same of a name that a user gave at `where`; none is ST_USAGE. */
enum status search_find_given(const struct search *search, const char *where, const char *name, size_t *ret_i,
                              struct error *err) MUST_USE;
/* ST_CORRUPT: values that params_json (NULL: none) does not hold are NaN. */
enum status search_point(const struct search *search, const char *params_json, double *ret_x,
                         struct error *err) MUST_USE;
/* The number of a value's text; a stored study has a program's parameters as texts. */
bool search_read_number(const struct opt_def *opt, const char *text, double *ret_number);
/* Text of parameter i for the config (bound searches only) and for people. */
void search_value_text(const struct search *search, size_t i, double value, char *buf, size_t size);
void search_show(const struct search *search, size_t i, double value, char *buf, size_t size);

/* The config's own values as a point of a bound search; false: one of them is not in the space, or another start was
 * asked. */
bool search_config_point(const struct search *search, const struct setup *setup, double *ret_x);
