/* novelty.c - train.e3b_coef: a bonus on the reward for observations that are new in their episode (docs/ppo.md). The
 * bonus of a whole rollout is added after it was played, to rewards as the updates see them; scores are the game's own.
 * The features are random and fixed: what counts as new does not move while the policy learns. */
#include "trainer/trainer_priv.h"

void novelty_plan(struct trainer *t)
{
    const size_t F = KERN_NOVELTY_FEATURES;

    if (!(t->set.e3b_coef > 0.0))
        return;
    plan_add(&t->plan, &t->novelty.projection, "features of novelty", sizeof(float), t->policy.obs_size + 1, F, 1);
    plan_add(&t->plan, &t->novelty.known, "covariances of novelty", sizeof(float), t->n_agents, F, F);
}

enum status novelty_start(struct trainer *t, struct error *err)
{
    struct rng rng = rng_split(t->root, STREAM_NOVELTY);
    size_t n = t->policy.obs_size * KERN_NOVELTY_FEATURES;

    if (!(t->set.e3b_coef > 0.0))
        return ST_OK;
    MEM_LOCAL float *projection = mem_array(n + KERN_NOVELTY_FEATURES, sizeof *projection);
    for (size_t i = 0; i < n; i++)
        projection[i] = (float)(rng_normal(&rng) / t->set.e3b_scale);
    for (size_t i = 0; i < KERN_NOVELTY_FEATURES; i++)
        projection[n + i] = (float)(2.0 * M_PI * rng_f64(&rng));
    TRY(kern_upload(t->kern, t->novelty.projection, projection, (n + KERN_NOVELTY_FEATURES) * sizeof *projection, err));
    return kern_sync(t->kern, err); /* the upload may still read from here */
}

void novelty_add(struct trainer *t)
{
    if (t->set.e3b_coef > 0.0)
        t->ops->novelty(t->kern, &(struct kern_novelty){.T = t->horizon,
                                                        .N = t->n_agents,
                                                        .D = t->policy.obs_size,
                                                        .obs = t->roll.obs,
                                                        .from = policy_obs_source(&t->policy),
                                                        .reset = t->roll.reset,
                                                        .projection = t->novelty.projection,
                                                        .hyper = t->hyper,
                                                        .known = t->novelty.known,
                                                        .rewards = t->roll.rewards});
}
