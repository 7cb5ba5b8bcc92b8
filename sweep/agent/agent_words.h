/* agent_words.h - the words of an agent's command for one trial. Plain functions. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct program_place;

/* words (n) with {argv}, {NAME}, {trial}, {seed} and the rest filled in from the answer of ask, as those of
 * sweep.command are (docs/own-trainer.md). NULL-terminated; caller: program_argv_free. */
enum status agent_words(const char *const *words, size_t n, const cJSON *answer, const struct program_place *place,
                        char ***ret_argv, struct error *err) MUST_USE;
