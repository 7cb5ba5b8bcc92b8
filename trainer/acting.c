/* acting.c - see acting.h. */
#include "trainer/acting.h"

static void acting_plan(struct acting *a, size_t n_games)
{
    struct trainer *t = a->t;
    struct plan *plan = &a->plan;
    size_t n = a->n, L = t->policy.recurrent ? t->policy.n_layers : 0;

    plan_add(plan, &a->obs, "observations of play", t->ops->act_size, n, t->policy.obs_size, 1);
    plan_add(plan, &a->h, "states of play", sizeof(float), L, n, t->policy.state_size);
    plan_add(plan, &a->rewards, "rewards of play", sizeof(float), n, 1, 1);
    plan_add(plan, &a->logp, "log-probabilities of play", sizeof(float), n, 1, 1);
    plan_add(plan, &a->value, "values of play", sizeof(float), n, 1, 1);
    plan_add(plan, &a->actions, "actions of play", sizeof(int32_t), n, (size_t)t->shape.n_heads, 1);
    if (t->shape.has_mask)
        plan_add(plan, &a->mask, "masks of play", 1, n, t->policy.n_logits, 1);
    plan_add(plan, &a->terms, "terminations of play", 1, n, 1, 1);
    plan_add(plan, &a->truncs, "truncations of play", 1, n, 1, 1);
    plan_add(plan, &a->reset, "resets of play", 1, n, 1, 1);
    plan_add(plan, &a->rng, "random stream of play", sizeof(struct rng), 1, 1, 1);
    plan_add(plan, NULL, "games of play", t->def->state_size + sizeof(struct env_log), n_games, 1, 1);
    policy_plan_step(&t->policy, &a->step, plan, n);
}

enum status acting_open(struct acting *a, struct trainer *t, size_t n_games, int64_t seed, const char *lower,
                        struct error *err)
{
    struct rng root = rng_split(rng_split(t->root, STREAM_EVAL), (uint64_t)seed),
               sample = rng_split(root, STREAM_SAMPLE);

    a->t = t;
    a->n = n_games * (size_t)t->shape.n_agents;
    acting_plan(a, n_games);
    TRY(plan_check(&a->plan, t->kern, lower, err));
    TRY(plan_alloc(&a->plan, t->kern, err));
    TRY(kern_env_create(t->kern, &a->games, t->def, t->env_settings, n_games, rng_split(root, STREAM_ENV), err));
    t->ops->env_reset(t->kern, a->games, a->obs, a->mask);
    return kern_upload(t->kern, a->rng, &sample, sizeof sample, err);
}

void acting_close(struct acting *a)
{
    if (a->t == NULL)
        return;
    kern_env_destroy(a->t->kern, a->games);
    plan_free(&a->plan, a->t->kern);
}

void acting_step(struct acting *a, bool greedy)
{
    struct trainer *t = a->t;
    struct policy_weights w = trainer_weights(t);
    struct kern_env_io io = {
        .actions = a->actions,
        .rewards = a->rewards,
        .terms = a->terms,
        .truncs = a->truncs,
        .obs = a->obs,
        .mask = a->mask,
    };

    policy_forward_step(&t->policy, t->kern, &a->step, &w, a->obs, a->h, a->n, a->reset, a->n);
    t->ops->sample(t->kern, a->actions, a->logp, a->value, a->step.out, a->mask, &t->policy.heads, a->rng, greedy,
                   a->n);
    t->ops->env_step(t->kern, a->games, &io);
}

void acting_go_on(struct acting *a)
{
    a->t->ops->step_post(a->t->kern, a->rewards, a->reset, a->terms, a->truncs, a->t->hyper, a->n);
}
