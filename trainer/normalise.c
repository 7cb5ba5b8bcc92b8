/* normalise.c - observations and rewards brought to a common scale by running means and deviations.
 * policy.norm_obs: every observation that a game gives is added to the sums and then normalised in place, by the mean
 * and deviation as they were when the rollout began; policies, updates and checkpoints see nothing else. Of
 * observations that are bytes in part it is the other part.
 * train.scale_reward: after a rollout its rewards are divided by the deviation of discounted sums of rewards, so that
 * values and advantages are of the same size in every game.
 * Invariant: what an observation is normalised by changes between rollouts alone, so that ratios of a rollout are 1 at
 * first, and a run that resumes sees the observation that it stopped at as it was. */
#include "trainer/trainer_priv.h"

void normalise_plan(struct trainer *t)
{
    struct normaliser *n = &t->norm_of;
    struct plan *plan = &t->plan;

    n->n_numbers = t->policy.n_floats > 0 ? t->policy.n_floats : t->policy.frame_size;
    if (t->policy.set.norm_obs) {
        plan_add(plan, &n->obs_sums, "sums of observations", sizeof(double), n->n_numbers, 3, 1);
        plan_add(plan, &n->obs_scale, "scales of observations", sizeof(float), n->n_numbers, 2, 1);
        if (t->n_ranks > 1)
            plan_add(plan, &n->obs_parts, "sums of observations of ranks", sizeof(double), t->n_ranks, n->n_numbers, 3);
    }
    if (t->set.scale_reward) {
        plan_add(plan, &n->reward_sums, "sums of rewards", sizeof(double), 3, 1, 1);
        plan_add(plan, &n->reward_scale, "scale of rewards", sizeof(float), 2, 1, 1);
        plan_add(plan, &n->carry, "discounted rewards", sizeof(float), t->n_agents, 1, 1);
        plan_add(plan, &n->discounted, "discounted rewards", sizeof(float), t->horizon, t->n_agents, 1);
        if (t->n_ranks > 1)
            plan_add(plan, &n->reward_parts, "sums of rewards of ranks", sizeof(double), t->n_ranks, 3, 1);
    }
}

/* What this rank has added of D columns: its row of parts; the sums themselves where it is alone. */
static double *sums_to_add(const struct trainer *t, double *sums, double *parts, size_t D)
{
    return parts == NULL ? sums : parts + t->rank * 3 * D;
}

/* Every rank joins the parts of all in the same order, so that all have the same bytes. */
static void join(struct trainer *t, double *sums, double *parts, size_t D)
{
    if (parts == NULL)
        return;
    t->ops->exchange(t->kern, &(struct kern_exchange){.rows = parts, .row_bytes = 3 * D * sizeof *parts});
    t->ops->norm_join(t->kern, &(struct kern_norm){.D = D, .sums = sums, .parts = parts, .n_parts = t->n_ranks});
}

void normalise_join(struct trainer *t)
{
    join(t, t->norm_of.obs_sums, t->norm_of.obs_parts, t->norm_of.n_numbers);
}

void normalise_forget(struct trainer *t)
{
    struct normaliser *n = &t->norm_of;

    if (n->obs_parts != NULL)
        t->ops->zero(t->kern, n->obs_parts, t->n_ranks * 3 * n->n_numbers * sizeof *n->obs_parts);
}

/* Where observations are normalised; obs NULL: for norm_freeze. */
static struct kern_norm obs_norm(struct trainer *t, void *obs, size_t n)
{
    const struct normaliser *of = &t->norm_of;
    size_t number = t->shape.u8 ? sizeof(float) : t->ops->act_size, row = t->policy.frame_bytes / number;
    void *numbers = obs != NULL ? (char *)obs + (row - of->n_numbers) * number : NULL;

    return (struct kern_norm){
        .n = n, .D = of->n_numbers, .row = row, .x = numbers, .sums = of->obs_sums, .scale = of->obs_scale};
}

void normalise_freeze(struct trainer *t)
{
    if (!t->policy.set.norm_obs)
        return;
    const struct kern_norm norm = obs_norm(t, NULL, 0);
    t->ops->norm_freeze(t->kern, &norm);
}

void normalise_add(struct trainer *t, void *obs, size_t n)
{
    if (!t->policy.set.norm_obs)
        return;
    struct kern_norm norm = obs_norm(t, obs, n);
    norm.sums = sums_to_add(t, norm.sums, t->norm_of.obs_parts, norm.D);
    t->ops->norm_add(t->kern, &norm);
}

void normalise_apply(struct trainer *t, void *obs, size_t n)
{
    if (!t->policy.set.norm_obs)
        return;
    const struct kern_norm norm = obs_norm(t, obs, n);
    t->ops->norm_apply(t->kern, &norm);
}

void normalise_rewards(struct trainer *t)
{
    const struct normaliser *n = &t->norm_of;
    struct kern_reward_scale r = {.part = n->reward_parts == NULL ? KERN_REWARD_ALL : KERN_REWARD_ADD,
                                  .T = t->horizon,
                                  .N = t->n_agents,
                                  .rewards = t->roll.rewards,
                                  .terms = t->roll.terms,
                                  .truncs = t->roll.truncs,
                                  .hyper = t->hyper,
                                  .carry = n->carry,
                                  .discounted = n->discounted,
                                  .sums = sums_to_add(t, n->reward_sums, n->reward_parts, 1),
                                  .scale = n->reward_scale};

    if (!t->set.scale_reward)
        return;
    t->ops->reward_scale(t->kern, &r);
    if (n->reward_parts == NULL)
        return;
    join(t, n->reward_sums, n->reward_parts, 1);
    r.part = KERN_REWARD_APPLY;
    r.sums = n->reward_sums;
    t->ops->reward_scale(t->kern, &r);
}
