/* evaluate.h - the evaluation at the end of a run in this process, and its result as text and JSON. One thread. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct env_def;
struct eval_result;
struct eval_settings;
struct trainer;

/* trainer_eval with a line of progress on stderr every few seconds (not when quiet); a signal stops it. */
enum status evaluate(struct trainer *trainer, const struct eval_settings *settings, bool quiet,
                     struct eval_result *ret_result, struct error *err) MUST_USE;
/* score, score_se, ..., episodes, unfinished, max_steps, eval_s; then the game's own numbers */
void evaluate_add_json(cJSON *json, const struct env_def *env, const struct eval_result *result);
const char *evaluate_perf_text(double perf, char buf[32]); /* NaN: "unknown" */
void evaluate_print(const struct env_def *env, const struct eval_result *result); /* lines to stdout */
