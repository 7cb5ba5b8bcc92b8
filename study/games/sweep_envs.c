/* sweep_envs.c - the list of games of sweep.envs. */
#include "study/games/sweep_envs.h"

enum status sweep_envs_add(struct sweep_envs *envs, const char *name, size_t n, const char *origin, struct error *err)
{
    char *copy = mem_alloc(n + 1);

    memcpy(copy, name, n);
    if (envs->n < SWEEP_ENVS_MAX && sweep_envs_find(envs, copy) == envs->n) {
        envs->names[envs->n++] = copy;
        return ST_OK;
    }
    enum status rc = envs->n == SWEEP_ENVS_MAX
                         ? FAIL(err, ST_CONFIG, "%s: sweep.envs names more than %d games", origin, SWEEP_ENVS_MAX)
                         : FAIL(err, ST_CONFIG, "%s: sweep.envs names %s twice; drop one", origin, copy);
    mem_free(copy);
    return rc;
}

enum status sweep_envs_parse(const char *text, const char *origin, struct sweep_envs *ret, struct error *err)
{
    enum status rc = ST_OK;

    *ret = (struct sweep_envs){0};
    while (rc == ST_OK && *text != '\0') {
        size_t n = strcspn(text, ", \t");
        if (n > 0)
            rc = sweep_envs_add(ret, text, n, origin, err);
        text += n + (text[n] != '\0');
    }
    if (rc == ST_OK && ret->n == 1)
        rc = FAIL(err, ST_CONFIG, "%s: sweep.envs names one game, %s; name two or more, or set env.name alone", origin,
                  ret->names[0]);
    if (rc != ST_OK)
        sweep_envs_free(ret);
    return rc;
}

void sweep_envs_copy(struct sweep_envs *ret, const struct sweep_envs *envs)
{
    ret->n = envs->n;
    for (size_t k = 0; k < envs->n; k++)
        ret->names[k] = mem_strdup(envs->names[k]);
}

void sweep_envs_free(struct sweep_envs *envs)
{
    for (size_t k = 0; k < envs->n; k++)
        mem_free(envs->names[k]);
    *envs = (struct sweep_envs){0};
}

size_t sweep_envs_find(const struct sweep_envs *envs, const char *name)
{
    size_t k = 0;

    while (k < envs->n && strcmp(envs->names[k], name) != 0)
        k++;
    return k;
}

bool sweep_envs_equal(const struct sweep_envs *a, const struct sweep_envs *b)
{
    size_t k = 0;

    while (k < a->n && sweep_envs_find(b, a->names[k]) < b->n)
        k++;
    return k == a->n && a->n == b->n;
}
