/* registry.c - the built-in games: the list is made by the build, of the names in envs/meson.build. */
#include "base/base.h"
#include "envs/envs.h"

#include "generated/games.h"

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

const char *env_hint(const char *name, char *buf)
{
    const char *names[COUNT(env_table)], *near;

    for (size_t i = 0; i < COUNT(env_table); i++)
        names[i] = env_table[i]->name;
    near = word_nearest(name, names, COUNT(env_table));
    if (near != NULL)
        snprintf(buf, ENV_HINT_MAX, "; did you mean '%s'? `trawl envs` lists all", near);
    else if (strchr(name, ':') != NULL || strstr(name, "-v") != NULL || word_ends_in(name, ".py"))
        snprintf(buf, ENV_HINT_MAX,
                 "; one of Gymnasium is named as gym:CartPole-v1, one of your own as gym:my_module:MyEnv");
    else
        snprintf(buf, ENV_HINT_MAX, "; `trawl envs` lists all");
    return buf;
}
