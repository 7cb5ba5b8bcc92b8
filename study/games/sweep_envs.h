/* sweep_envs.h - the games that each configuration of a study is trained on (sweep.envs). A list owns its names
 * (sweep_envs_free, also of a zeroed one). Plain functions. */
#pragma once

#include "base/base.h"

#define SWEEP_ENVS_MAX 16

struct sweep_envs {
    size_t n; /* 0: the config's own game alone; else 2 or more */
    char *names[SWEEP_ENVS_MAX];
};
/* "pong, breakout". Empty: none. ST_CONFIG, which begins with origin: one game, too many, or one twice. */
enum status sweep_envs_parse(const char *text, const char *origin, struct sweep_envs *ret_envs,
                             struct error *err) MUST_USE;
enum status sweep_envs_add(struct sweep_envs *envs, const char *name, size_t n, const char *origin,
                           struct error *err) MUST_USE; /* n bytes of name */
void sweep_envs_copy(struct sweep_envs *ret_envs, const struct sweep_envs *envs);
bool sweep_envs_equal(const struct sweep_envs *a, const struct sweep_envs *b); /* in any order */
void sweep_envs_free(struct sweep_envs *envs);
size_t sweep_envs_find(const struct sweep_envs *envs, const char *name); /* n: none of them */
