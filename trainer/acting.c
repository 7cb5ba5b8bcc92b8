/* acting.c - see acting.h. */
#include "trainer/acting.h"

static void acting_plan(struct acting *a, size_t n_games)
{
    struct trainer *t = a->t;
    struct plan *plan = &a->plan;
    size_t n = a->n, T = a->n_kept, slots = T > 1 ? T + 1 : 1, L = t->policy.recurrent ? t->policy.n_layers : 0;

    plan_add(plan, &a->obs, "observations of play", t->policy.row_bytes, slots * n, 1, 1);
    if (t->policy.n_frames > 1)
        plan_add(plan, &a->frame, "frames of play", t->policy.frame_bytes, n, 1, 1);
    plan_add(plan, &a->h, "states of play", sizeof(float), L, n, t->policy.state_size);
    plan_add(plan, &a->rewards, "rewards of play", sizeof(float), T, n, 1);
    plan_add(plan, &a->logp, "log-probabilities of play", sizeof(float), T, n, 1);
    plan_add(plan, &a->value, "values of play", sizeof(float), slots, n, 1);
    if (T > 1)
        plan_add(plan, &a->boot, "bootstraps of play", sizeof(float), T, n, 1);
    plan_add(plan, &a->actions, "actions of play", sizeof(int32_t), T, n, (size_t)t->shape.n_heads);
    if (t->policy.heads.n_reals > 0)
        plan_add(plan, &a->reals, "numbers of play", sizeof(float), n, (size_t)t->shape.n_heads, 1);
    if (t->shape.has_mask)
        plan_add(plan, &a->mask, "masks of play", slots, n, t->policy.n_logits, 1);
    plan_add(plan, &a->terms, "terminations of play", T, n, 1, 1);
    plan_add(plan, &a->truncs, "truncations of play", T, n, 1, 1);
    plan_add(plan, &a->reset, "resets of play", slots, n, 1, 1);
    plan_add(plan, &a->rng, "random stream of play", sizeof(struct rng), 1, 1, 1);
    plan_add(plan, NULL, "games of play", t->def->state_size + sizeof(struct env_log), n_games, 1, 1);
    policy_plan_step(&t->policy, &a->step, plan, n);
}

static void acting_shape(struct acting *a, struct trainer *t, size_t n_games, bool at_once)
{
    a->t = t;
    a->n = n_games * (size_t)t->shape.n_agents;
    a->n_kept = at_once && !t->direct ? ACTING_STEPS : 1;
    acting_plan(a, n_games);
}

size_t acting_bytes(struct trainer *t, size_t n_games)
{
    struct acting a = {0};

    acting_shape(&a, t, n_games, true);
    return a.plan.total;
}

enum status acting_open(struct acting *a, struct trainer *t, size_t n_games, int64_t seed, bool at_once,
                        const char *lower, struct error *err)
{
    struct rng root = rng_split(rng_split(t->root, STREAM_EVAL), (uint64_t)seed),
               sample = rng_split(root, STREAM_SAMPLE);

    acting_shape(a, t, n_games, at_once);
    TRY(plan_check(&a->plan, t->kern, lower, err));
    TRY(plan_alloc(&a->plan, t->kern, err));
    TRY(kern_env_create(t->kern, &a->games, t->def, t->env_settings, n_games, rng_split(root, STREAM_ENV), err));
    void *first = a->frame != NULL ? a->frame : a->obs;
    t->ops->env_reset(t->kern, a->games, first, a->mask);
    normalise_apply(t, first, a->n);
    frames_stack(t, a->obs, NULL, first, NULL, NULL, a->n);
    return kern_upload(t->kern, a->rng, &sample, sizeof sample, err);
}

void acting_close(struct acting *a)
{
    if (a->t == NULL)
        return;
    kern_graph_destroy(a->t->kern, a->graph);
    kern_env_destroy(a->t->kern, a->games);
    plan_free(&a->plan, a->t->kern);
}

/* The decision of slot s; what it leads to goes to slot `next`. */
static void act(struct acting *a, size_t s, size_t next, bool greedy)
{
    struct trainer *t = a->t;
    struct policy_weights w = trainer_weights(t);
    size_t n = a->n, A = t->policy.n_logits;
    int32_t *actions = a->actions + s * n * (size_t)t->shape.n_heads;
    void *obs = policy_obs_at(&t->policy, a->obs, s * n), *to = policy_obs_at(&t->policy, a->obs, next * n);
    struct kern_env_io io = {
        .actions = actions,
        .reals = a->reals,
        .rewards = a->rewards + s * n,
        .terms = a->terms + s * n,
        .truncs = a->truncs + s * n,
        .obs = a->frame != NULL ? a->frame : to,
        .mask = a->mask != NULL ? a->mask + next * n * A : NULL,
    };

    policy_forward_step(&t->policy, t->kern, &a->step, &w, obs, a->h, n, a->reset + s * n, n);
    t->ops->sample(t->kern, &(struct kern_sample){.actions = actions,
                                                  .reals = a->reals,
                                                  .logp = a->logp + s * n,
                                                  .value = a->value + s * n,
                                                  .out = a->step.out,
                                                  .mask = a->mask != NULL ? a->mask + s * n * A : NULL,
                                                  .heads = &t->policy.heads,
                                                  .rng = a->rng,
                                                  .greedy = greedy,
                                                  .N = n});
    kern_env_step(t->kern, a->games, &io);
    normalise_apply(t, io.obs, n);
}

/* The flags of the next slot, and its observation where that is of several frames. */
static void post(struct acting *a, size_t s, size_t next)
{
    const struct policy *p = &a->t->policy;
    size_t n = a->n;

    a->t->ops->step_post(a->t->kern, &(struct kern_step_post){.rewards = a->rewards + s * n,
                                                              .reset = a->reset + next * n,
                                                              .terms = a->terms + s * n,
                                                              .truncs = a->truncs + s * n,
                                                              .hyper = a->t->hyper,
                                                              .N = n});
    frames_stack(a->t, policy_obs_at(p, a->obs, next * n), policy_obs_at(p, a->obs, s * n), a->frame,
                 a->reset + next * n, NULL, n);
}

void acting_step(struct acting *a, bool greedy)
{
    act(a, 0, 0, greedy);
}

void acting_post(struct acting *a)
{
    post(a, 0, 0);
}

/* All steps in one operation, when the device has one for this net and game; it samples. */
static bool acting_at_once(struct acting *a, bool greedy)
{
    struct trainer *t = a->t;
    struct kern_net net;
    const struct kern_rollout all = {
        .net = &net,
        .weights = t->weights,
        .params = t->params,
        .env = a->games,
        .hyper = t->hyper,
        .rng = a->rng,
        .T = a->n_kept,
        .N = a->n,
        .obs = a->obs,
        .mask = a->mask,
        .reset = a->reset,
        .actions = a->actions,
        .logp = a->logp,
        .rewards = a->rewards,
        .boot = a->boot,
        .values = a->value,
        .terms = a->terms,
        .truncs = a->truncs,
        .h = a->h,
    };

    if (greedy || t->ops->rollout == NULL || !policy_plays_at_once(&t->policy))
        return false;
    policy_fill_net(&t->policy, &net);
    return t->ops->rollout(t->kern, &all);
}

/* ACTING_STEPS steps in their slots, and the last slot to the front. */
static void play_kept(struct acting *a, bool greedy)
{
    struct trainer *t = a->t;
    size_t n = a->n, T = a->n_kept, A = t->policy.n_logits;

    if (!acting_at_once(a, greedy))
        for (size_t s = 0; s < T; s++) {
            act(a, s, s + 1, greedy);
            post(a, s, s + 1);
        }
    t->ops->copy(t->kern, a->obs, policy_obs_at(&t->policy, a->obs, T * n), n * t->policy.row_bytes);
    t->ops->copy(t->kern, a->reset, a->reset + T * n, n);
    if (a->mask != NULL)
        t->ops->copy(t->kern, a->mask, a->mask + T * n * A, n * A);
}

enum status acting_play(struct acting *a, bool greedy, struct error *err)
{
    struct kern *k = a->t->kern;

    if (a->n_kept == 1) {
        for (size_t s = 0; s < ACTING_STEPS; s++) {
            acting_step(a, greedy);
            acting_post(a);
        }
        return ST_OK;
    }
    if (!a->t->set.graphs || !kern_can_record(k) || !a->played) {
        play_kept(a, greedy);
        a->played = true; /* once without being recorded, so that libraries load what they need */
        return ST_OK;
    }
    if (a->graph == NULL) {
        TRY(kern_record_begin(k, err));
        play_kept(a, greedy);
        TRY(kern_record_end(k, &a->graph, err));
    }
    return kern_replay(k, a->graph, err);
}
