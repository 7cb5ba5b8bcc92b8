/* cache.c - trainers that were destroyed, kept whole for the next ones of the same shape.
 * Shape is everything that sizes memory or is baked into recorded operations; what is left (seed, learning rate,
 * lengths, what lies in struct kern_hyper) is set again by trainer.c, together with weights, streams and games.
 * Invariants: (1) a kept trainer has collected what it issued; (2) its device is the one it was made on. */
#include "trainer/trainer_priv.h"

#define CACHE_MAX 4

struct trainer_cache {
    struct trainer *kept[CACHE_MAX]; /* owned; the oldest first */
    size_t n;
    size_t bytes, max_bytes; /* of what is kept; max 0: no limit but the device's */
    bool (*wait)(void *ctx);
    void *wait_ctx;
};

struct trainer_cache *trainer_cache_create(void)
{
    return mem_alloc(sizeof(struct trainer_cache));
}

void trainer_cache_share(struct trainer_cache *cache, size_t max_bytes, bool (*wait)(void *ctx), void *ctx)
{
    cache->max_bytes = max_bytes;
    cache->wait = wait;
    cache->wait_ctx = ctx;
}

bool trainer_cache_wait(struct trainer_cache *cache)
{
    return cache->wait != NULL && cache->wait(cache->wait_ctx);
}

void trainer_cache_clear(struct trainer_cache *cache)
{
    while (trainer_cache_drop_oldest(cache))
        ;
}

void trainer_cache_destroy(struct trainer_cache *cache)
{
    if (cache == NULL)
        return;
    trainer_cache_clear(cache);
    mem_free(cache);
}

static struct trainer *cache_remove(struct trainer_cache *cache, size_t i)
{
    struct trainer *t = cache->kept[i];

    cache->n--;
    cache->bytes -= t->plan.total;
    memmove(cache->kept + i, cache->kept + i + 1, (cache->n - i) * sizeof *cache->kept);
    return t;
}

bool trainer_cache_drop_oldest(struct trainer_cache *cache)
{
    if (cache->n == 0)
        return false;
    trainer_free(cache_remove(cache, 0));
    return true;
}

static bool same_shape(const struct trainer *a, const struct trainer *b)
{
    return a->kern == b->kern && a->ops == b->ops && a->def == b->def && a->n_agents == b->n_agents &&
           a->horizon == b->horizon && a->n_segments == b->n_segments && a->set.shuffle == b->set.shuffle &&
           a->set.optimizer == b->set.optimizer && a->set.vtrace == b->set.vtrace &&
           a->set.norm_adv == b->set.norm_adv && a->set.scale_reward == b->set.scale_reward &&
           (a->set.prio_alpha > 0.0) == (b->set.prio_alpha > 0.0) &&
           (a->set.e3b_coef > 0.0) == (b->set.e3b_coef > 0.0) && a->set.graphs == b->set.graphs &&
           a->set.population == b->set.population &&
           memcmp(&a->policy.set, &b->policy.set, sizeof a->policy.set) == 0 &&
           memcmp(a->env_settings, b->env_settings, a->def->options.settings_size) == 0;
}

struct trainer *trainer_cache_take(struct trainer_cache *cache, const struct trainer *want)
{
    for (size_t i = cache->n; i-- > 0;)
        if (same_shape(cache->kept[i], want))
            return cache_remove(cache, i);
    return NULL;
}

bool trainer_cache_give(struct trainer_cache *cache, struct trainer *t)
{
    if (t->def->outside_s != NULL) /* its processes end with a training: the next one gets fresh ones */
        return false;
    if (kern_is_lost(t->kern) || kern_sync(t->kern, NULL) != ST_OK)
        return false;
    if (cache->max_bytes > 0 && t->plan.total > cache->max_bytes)
        return false;
    while (cache->n == CACHE_MAX || (cache->max_bytes > 0 && cache->bytes + t->plan.total > cache->max_bytes))
        trainer_cache_drop_oldest(cache);
    cache->kept[cache->n++] = t;
    cache->bytes += t->plan.total;
    return true;
}
