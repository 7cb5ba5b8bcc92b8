/* trial_check.h - can a trial have these values? Decided by the trainer's limits and by sweep.require, before it is
 * proposed. A check is used by one thread at a time. */
#pragma once

#include "base/base.h"

struct opt_def;
struct search;
struct setup;
struct strbuf;

struct trial_check;
/* Copies the setup's settings. search (may be NULL; borrowed, bound): the space of trial_check_point. */
struct trial_check *trial_check_create(const struct setup *setup, const struct search *search);
/* From now on sweep.require of the setup (borrowed) must hold too; wrong: ST_CONFIG. */
enum status trial_check_require(struct trial_check *check, const struct setup *setup, struct error *err) MUST_USE;
void trial_check_destroy(struct trial_check *check); /* NULL is fine */
void trial_check_reset(struct trial_check *check); /* to the setup's values */
/* An option of env, policy or train; bool: not 0, choice: its index. */
void trial_check_set(struct trial_check *check, const struct opt_def *opt, double value);
enum status trial_check_ask(const struct trial_check *check, struct error *err) MUST_USE; /* the trainer's reason */
enum status trial_check_point(struct trial_check *check, const double *x, struct error *err) MUST_USE;
bool trial_check_allows(void *check, const double *x); /* as suggest_settings.allowed */
/* Adds the values of lists with which no point was found that can be run: "env.agents = 3 (why)",
 * with semicolons. search is bound. */
void trial_check_unused(const struct search *search, const struct setup *setup, struct strbuf *out);
