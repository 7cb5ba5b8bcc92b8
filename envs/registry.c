/* registry.c - the built-in games: the list is made by the build, of the names in envs/meson.build. */
#include "envs/envs.h"

#include <string.h>

#include "base/words.h"
#include "generated/games.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define ENV_ROW(game) &game##_def,
static const struct env_def *const env_table[] = {ENV_GAMES(ENV_ROW)};

size_t env_count(void)
{
    return COUNT(env_table);
}

const struct env_def *env_at(size_t i)
{
    return env_table[i];
}

const struct env_def *env_find(const char *name)
{
    for (size_t i = 0; i < COUNT(env_table); i++)
        if (strcmp(env_table[i]->name, name) == 0)
            return env_table[i];
    return NULL;
}

const char *env_nearest(const char *name)
{
    size_t best = 0, best_distance = SIZE_MAX;
    for (size_t i = 0; i < COUNT(env_table); i++) {
        size_t distance = word_distance(name, env_table[i]->name);
        if (distance < best_distance) {
            best = i;
            best_distance = distance;
        }
    }
    return env_table[best]->name;
}
