/* rollout.c - plays T steps of N agents with the current policy and keeps what the updates need.
 * Invariants: (1) V_T is computed from o_T, so every step gets a real advantage; (2) the value after a truncation is
 * V(last observation before the reset) with the recurrent state as it was then; (3) h is carried from rollout to
 * rollout, zeroed exactly where reset is 1, and h0 keeps it as training sequences need it. */
#include "trainer/trainer_priv.h"

void rollout_plan(struct trainer *t)
{
    struct rollout *r = &t->roll;
    struct plan *plan = &t->plan;
    size_t N = t->n_agents, T = t->horizon, D = t->policy.obs_size, S = t->policy.state_size;
    size_t L = t->policy.recurrent ? t->policy.n_layers : 0, heads = (size_t)t->shape.n_heads, a = t->policy.obs_bytes;

    plan_add(plan, &r->obs, "rollout observations", a, T + 1, N, D);
    if (t->policy.n_frames > 1) {
        plan_add(plan, &r->frame, "frames", a, N, t->policy.frame_size, 1);
        plan_add(plan, &r->final_frame, "last frames", a, N, t->policy.frame_size, 1);
    }
    if (t->shape.has_mask)
        plan_add(plan, &r->mask, "rollout masks", 1, T + 1, N, t->policy.n_logits);
    plan_add(plan, &r->reset, "rollout resets", 1, T + 1, N, 1);
    plan_add(plan, &r->actions, "rollout actions", sizeof(int32_t), T, N, heads);
    if (t->policy.heads.n_reals > 0)
        plan_add(plan, &r->reals, "a step's actions", sizeof(float), N, heads, 1);
    plan_add(plan, &r->logp, "rollout log-probabilities", sizeof(float), T, N, 1);
    plan_add(plan, &r->values, "rollout values", sizeof(float), T + 1, N, 1);
    plan_add(plan, &r->boot, "rollout bootstraps", sizeof(float), T, N, 1);
    plan_add(plan, &r->rewards, "rollout rewards", sizeof(float), T, N, 1);
    plan_add(plan, &r->terms, "rollout terminations", 1, T, N, 1);
    plan_add(plan, &r->truncs, "rollout truncations", 1, T, N, 1);
    plan_add(plan, &r->adv, "rollout advantages", sizeof(float), T, N, 1);
    plan_add(plan, &r->ret, "rollout returns", sizeof(float), T, N, 1);
    if (t->set.vtrace)
        plan_add(plan, &r->log_ratio, "rollout ratios", sizeof(float), T, N, 1);
    plan_add(plan, &r->prob, "segment priorities", sizeof(float), N, 1, 1);
    plan_add(plan, &r->h, "recurrent state", sizeof(float), L, N, S);
    plan_add(plan, &r->h0, "recurrent state at the start", sizeof(float), L, N, S);
    plan_add(plan, &r->h_tmp, "recurrent state of bootstraps", sizeof(float), L, N, S);
    plan_add(plan, &r->final_obs, "last observations", a, N, D, 1);
    plan_add(plan, &r->pack_obs, "packed observations", a, N, D, 1);
    plan_add(plan, &r->n_packed, "packed count", sizeof(int64_t), 1, 1, 1);
    plan_add(plan, &r->tmp_value, "bootstrap values", sizeof(float), N, 1, 1);
    plan_add(plan, &r->tmp_logp, "bootstrap log-probabilities", sizeof(float), N, 1, 1);
    plan_add(plan, &r->tmp_actions, "bootstrap actions", sizeof(int32_t), N, heads, 1);
    plan_add(plan, &r->no_reset, "zero resets", 1, N, 1, 1);
}

/* ---- observations of several frames ---- */

void frames_stack(struct trainer *t, void *dst, const void *old, const void *frame, const uint8_t *reset,
                  const uint8_t *only, size_t n)
{
    const struct policy *p = &t->policy;
    size_t pixels = (size_t)t->shape.height * (size_t)t->shape.width, channels = (size_t)t->shape.channels;

    if (p->n_frames == 1)
        return;
    t->ops->frames_stack(t->kern, &(struct kern_frames){.N = n,
                                                        .k = p->n_frames,
                                                        .pixels = pixels,
                                                        .channels = channels,
                                                        .list = p->frame_size - pixels * channels,
                                                        .number_bytes = p->obs_bytes,
                                                        .frame = frame,
                                                        .old = old,
                                                        .dst = dst,
                                                        .reset = reset,
                                                        .only = only});
}

/* ---- one step ---- */

/* value (n) of obs (n, D) with the states in h_tmp, which advance; the actions go nowhere. */
static void rollout_value(struct trainer *t, float *value, const void *obs, const uint8_t *reset, size_t n)
{
    struct rollout *r = &t->roll;
    struct policy_weights w = trainer_weights(t);

    policy_forward_step(&t->policy, t->kern, &t->step, &w, obs, r->h_tmp, t->n_agents, reset, n);
    t->ops->sample(t->kern, &(struct kern_sample){.actions = r->tmp_actions,
                                                  .logp = r->tmp_logp,
                                                  .value = value,
                                                  .out = t->step.out,
                                                  .heads = &t->policy.heads,
                                                  .rng = t->rng_tmp,
                                                  .greedy = true,
                                                  .N = n});
}

static void rollout_keep_state(struct trainer *t, float *dst)
{
    if (t->policy.recurrent)
        t->ops->copy(t->kern, dst, t->roll.h, t->policy.n_layers * t->n_agents * t->policy.state_size * sizeof(float));
}

/* boot[step] of the agents that step truncated: only these go through the network, which needs their count here. */
static enum status rollout_bootstrap_some(struct trainer *t, size_t step, struct error *err)
{
    struct rollout *r = &t->roll;
    size_t N = t->n_agents, S = t->policy.state_size;
    const uint8_t *truncs = r->truncs + step * N;
    int64_t n = 0;

    t->ops->pack_rows(t->kern, &(struct kern_pack){.dst = r->pack_obs,
                                                   .n_packed = r->n_packed,
                                                   .src = r->final_obs,
                                                   .flag = truncs,
                                                   .row_bytes = t->policy.obs_size * t->policy.obs_bytes,
                                                   .N = N});
    TRY(kern_download(t->kern, &n, r->n_packed, sizeof n, err));
    if (n == 0)
        return ST_OK;
    for (size_t l = 0; t->policy.recurrent && l < t->policy.n_layers; l++)
        t->ops->pack_rows(t->kern, &(struct kern_pack){.dst = r->h_tmp + l * N * S,
                                                       .n_packed = r->n_packed,
                                                       .src = r->h + l * N * S,
                                                       .flag = truncs,
                                                       .row_bytes = S * sizeof(float),
                                                       .N = N});
    rollout_value(t, r->tmp_value, r->pack_obs, r->no_reset, (size_t)n);
    t->ops->unpack_rows(
        t->kern,
        &(struct kern_pack){
            .dst = r->boot + step * N, .src = r->tmp_value, .flag = truncs, .row_bytes = sizeof(float), .N = N});
    return ST_OK;
}

/* The same without a count: all agents go through the network. Where truncs is 0, boot is not looked at. */
static void rollout_bootstrap_all(struct trainer *t, size_t step)
{
    struct rollout *r = &t->roll;

    rollout_keep_state(t, r->h_tmp);
    rollout_value(t, r->boot + step * t->n_agents, r->final_obs, r->no_reset, t->n_agents);
}

/* What comes before a decision, from one slot of time to another. */
static void rollout_move_slot(struct trainer *t, size_t to, size_t from)
{
    struct rollout *r = &t->roll;
    size_t N = t->n_agents, D = t->policy.obs_size, A = t->policy.n_logits;

    t->ops->copy(t->kern, policy_obs_at(&t->policy, r->obs, to * N * D),
                 policy_obs_at(&t->policy, r->obs, from * N * D), N * D * t->policy.obs_bytes);
    t->ops->copy(t->kern, r->reset + to * N, r->reset + from * N, N);
    if (r->mask != NULL)
        t->ops->copy(t->kern, r->mask + to * N * A, r->mask + from * N * A, N * A);
}

static void rollout_begin(struct trainer *t)
{
    rollout_move_slot(t, 0, t->horizon_full);
    rollout_keep_state(t, t->roll.h0);
    normalise_freeze(t);
}

/* One step by single operations. */
static enum status rollout_step(struct trainer *t, size_t s, struct error *err)
{
    struct rollout *r = &t->roll;
    struct kern *k = t->kern;
    struct policy_weights w = trainer_weights(t);
    size_t N = t->n_agents, D = t->policy.obs_size, A = t->policy.n_logits, heads = (size_t)t->shape.n_heads;
    size_t at = s * N;
    void *obs = policy_obs_at(&t->policy, r->obs, at * D), *next = policy_obs_at(&t->policy, obs, N * D);
    uint8_t *mask = r->mask != NULL ? r->mask + at * A : NULL;
    struct kern_env_io io = {
        .actions = r->actions + at * heads,
        .reals = r->reals,
        .rewards = r->rewards + at,
        .terms = r->terms + at,
        .truncs = r->truncs + at,
        .obs = r->frame != NULL ? r->frame : next,
        .final_obs = r->frame != NULL ? r->final_frame : r->final_obs,
        .mask = mask != NULL ? mask + N * A : NULL,
    };

    policy_forward_step(&t->policy, k, &t->step, &w, obs, r->h, N, r->reset + at, N);
    t->ops->sample(k, &(struct kern_sample){.actions = r->actions + at * heads,
                                            .reals = r->reals,
                                            .logp = r->logp + at,
                                            .value = r->values + at,
                                            .out = t->step.out,
                                            .mask = mask,
                                            .heads = &t->policy.heads,
                                            .rng = t->rng_sample,
                                            .N = N});
    trainer_phase(t, PHASE_FORWARD);
    t->ops->env_step(k, t->env, &io);
    normalise_add(t, io.obs, N);
    normalise_apply(t, io.obs, N);
    if (t->shape.may_truncate)
        normalise_apply(t, io.final_obs, N);
    t->ops->step_post(k, &(struct kern_step_post){.rewards = io.rewards,
                                                  .reset = r->reset + at + N,
                                                  .terms = io.terms,
                                                  .truncs = io.truncs,
                                                  .hyper = t->hyper,
                                                  .N = N});
    frames_stack(t, next, obs, io.obs, r->reset + at + N, NULL, N);
    if (t->shape.may_truncate)
        frames_stack(t, r->final_obs, obs, io.final_obs, NULL, io.truncs, N);
    trainer_phase(t, PHASE_ENV);
    if (t->shape.may_truncate && t->direct)
        TRY(rollout_bootstrap_some(t, s, err));
    else if (t->shape.may_truncate)
        rollout_bootstrap_all(t, s);
    trainer_phase(t, PHASE_FORWARD);
    return ST_OK;
}

/* All steps in one operation, when the device has one for this net and game. */
static bool rollout_at_once(struct trainer *t)
{
    struct rollout *r = &t->roll;
    struct kern_net net;
    const struct kern_rollout all = {
        .net = &net,
        .weights = t->weights,
        .params = t->params,
        .env = t->env,
        .hyper = t->hyper,
        .rng = t->rng_sample,
        .T = t->horizon,
        .N = t->n_agents,
        .obs = r->obs,
        .mask = r->mask,
        .reset = r->reset,
        .actions = r->actions,
        .logp = r->logp,
        .rewards = r->rewards,
        .boot = r->boot,
        .values = r->values,
        .terms = r->terms,
        .truncs = r->truncs,
        .h = r->h,
    };

    policy_fill_net(&t->policy, &net);
    return t->ops->rollout != NULL && policy_plays_at_once(&t->policy) && t->ops->rollout(t->kern, &all);
}

enum status rollout_run(struct trainer *t, struct error *err)
{
    struct rollout *r = &t->roll;
    size_t N = t->n_agents, T = t->horizon, D = t->policy.obs_size;

    trainer_phase_begin(t);
    rollout_begin(t);
    trainer_phase(t, PHASE_COPY);
    if (!rollout_at_once(t)) {
        for (size_t s = 0; s < T; s++)
            TRY(rollout_step(t, s, err));
        rollout_keep_state(t, r->h_tmp);
        rollout_value(t, r->values + T * N, policy_obs_at(&t->policy, r->obs, T * N * D), r->reset + T * N, N);
    }
    normalise_rewards(t);
    novelty_add(t);
    if (T != t->horizon_full) /* a short one: the next one, of a resumed run, begins where it ended */
        rollout_move_slot(t, t->horizon_full, T);
    trainer_phase(t, PHASE_FORWARD);
    return ST_OK;
}
