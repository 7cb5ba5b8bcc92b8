/* rollout.c - plays T steps of N agents with the current policy and keeps what the updates need.
 * Invariants: (1) V_T is computed from o_T, so every step gets a real advantage; (2) the value after a truncation is
 * V(last observation before the reset) with the recurrent state as it was then; (3) h is carried from rollout to
 * rollout, zeroed exactly where reset is 1, and h0 keeps it as training sequences need it. */
#include "trainer/trainer_priv.h"

void rollout_plan(struct trainer *t)
{
    struct rollout *r = &t->roll;
    struct plan *plan = &t->plan;
    size_t N = t->n_agents, T = t->horizon, S = t->policy.state_size;
    size_t L = t->policy.recurrent ? t->policy.n_layers : 0, heads = (size_t)t->shape.n_heads,
           row = t->policy.row_bytes;

    plan_add(plan, &r->obs, "rollout observations", row, T + 1, N, 1);
    if (t->policy.n_frames > 1) {
        plan_add(plan, &r->frame, "frames", t->policy.frame_bytes, N, 1, 1);
        plan_add(plan, &r->final_frame, "last frames", t->policy.frame_bytes, N, 1, 1);
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
    plan_add(plan, &r->prob, "segment priorities", sizeof(float), trainer_segments(t), 1, 1);
    plan_add(plan, &r->h, "recurrent state", sizeof(float), L, N, S);
    plan_add(plan, &r->h0, "recurrent state at the start", sizeof(float), L, N, S);
    plan_add(plan, &r->h_tmp, "recurrent state of bootstraps", sizeof(float), L, N, S);
    plan_add(plan, &r->final_obs, "last observations", row, N, 1, 1);
    plan_add(plan, &r->pack_obs, "packed observations", row, N, 1, 1);
    plan_add(plan, &r->n_packed, "packed count", sizeof(int64_t), 1, 1, 1);
    plan_add(plan, &r->tmp_value, "bootstrap values", sizeof(float), N, 1, 1);
    plan_add(plan, &r->tmp_logp, "bootstrap log-probabilities", sizeof(float), N, 1, 1);
    plan_add(plan, &r->tmp_actions, "bootstrap actions", sizeof(int32_t), N, heads, 1);
    plan_add(plan, &r->no_reset, "zero resets", 1, N, 1, 1);
}

/* ---- observations of several frames ---- */

size_t frames_place(const struct trainer *t, size_t j, size_t f)
{
    const struct policy *p = &t->policy;
    size_t k = p->n_frames, channels = (size_t)t->shape.channels, grid = p->grid_size / k;
    size_t floats = t->shape.u8 ? p->n_floats : 0, list = p->frame_size - grid - floats;

    if (j < grid)
        return j / channels * channels * k + f * channels + j % channels;
    if (j < grid + list)
        return grid * k + f * list + (j - grid);
    return (grid + list) * k + f * floats + (j - grid - list);
}

void frames_stack(struct trainer *t, void *dst, const void *old, const void *frame, const uint8_t *reset,
                  const uint8_t *only, size_t n)
{
    const struct policy *p = &t->policy;
    size_t pixels = (size_t)t->shape.height * (size_t)t->shape.width, channels = (size_t)t->shape.channels;
    size_t n_floats = t->shape.u8 ? p->n_floats : 0; /* in rows of bytes: a list of their own */
    size_t frame_at = p->frame_bytes - n_floats * sizeof(float),
           at = p->row_bytes - n_floats * p->n_frames * sizeof(float);
    struct kern_frames stack = {.N = n,
                                .k = p->n_frames,
                                .pixels = pixels,
                                .channels = channels,
                                .list = p->frame_size - n_floats - pixels * channels,
                                .number_bytes = t->shape.u8 ? 1 : t->ops->act_size,
                                .frame_row = n_floats > 0 ? p->frame_bytes : 0,
                                .row = n_floats > 0 ? p->row_bytes : 0,
                                .frame = frame,
                                .old = old,
                                .dst = dst,
                                .reset = reset,
                                .only = only};

    if (p->n_frames == 1)
        return;
    t->ops->frames_stack(t->kern, &stack);
    if (n_floats == 0)
        return;
    stack.pixels = stack.channels = 0;
    stack.list = n_floats;
    stack.number_bytes = sizeof(float);
    stack.frame = (const char *)frame + frame_at;
    stack.old = old != NULL ? (const char *)old + at : NULL;
    stack.dst = (char *)dst + at;
    t->ops->frames_stack(t->kern, &stack);
}

/* ---- one step ---- */

/* value (n) of obs (n, D) with the states in h_tmp from agent `from` on, which advance; the actions go nowhere. */
static void rollout_value(struct trainer *t, float *value, const void *obs, const uint8_t *reset, size_t from, size_t n)
{
    struct rollout *r = &t->roll;
    struct policy_weights w = trainer_weights(t);

    policy_forward_step(&t->policy, t->kern, &t->step, &w, obs, r->h_tmp + from * t->policy.state_size, t->n_agents,
                        reset, n);
    t->ops->sample(t->kern, &(struct kern_sample){.actions = r->tmp_actions,
                                                  .logp = r->tmp_logp,
                                                  .value = value,
                                                  .out = t->step.out,
                                                  .heads = &t->policy.heads,
                                                  .rng = t->rng_tmp,
                                                  .greedy = true,
                                                  .N = n});
}

/* dst (L, N, S) of the agents [from, from + n) = their states. */
static void rollout_keep_state(struct trainer *t, float *dst, size_t from, size_t n)
{
    size_t S = t->policy.state_size, L = t->policy.recurrent ? t->policy.n_layers : 0, layer = t->n_agents * S;

    if (n == t->n_agents && L > 0) { /* all layers lie side by side */
        t->ops->copy(t->kern, dst, t->roll.h, L * layer * sizeof(float));
        return;
    }
    for (size_t l = 0; l < L; l++)
        t->ops->copy(t->kern, dst + l * layer + from * S, t->roll.h + l * layer + from * S, n * S * sizeof(float));
}

/* boot[step] of those of the agents [from, from + N) that step truncated: only these go through the network, which
 * needs their count here. */
static enum status rollout_bootstrap_some(struct trainer *t, size_t step, size_t from, size_t N, struct error *err)
{
    struct rollout *r = &t->roll;
    size_t S = t->policy.state_size, layer = t->n_agents * S, at = step * t->n_agents + from;
    const uint8_t *truncs = r->truncs + at;
    int64_t n = 0;

    t->ops->pack_rows(t->kern, &(struct kern_pack){.dst = r->pack_obs,
                                                   .n_packed = r->n_packed,
                                                   .src = policy_obs_at(&t->policy, r->final_obs, from),
                                                   .flag = truncs,
                                                   .row_bytes = t->policy.row_bytes,
                                                   .N = N});
    TRY(kern_download(t->kern, &n, r->n_packed, sizeof n, err));
    if (n == 0)
        return ST_OK;
    for (size_t l = 0; t->policy.recurrent && l < t->policy.n_layers; l++)
        t->ops->pack_rows(t->kern, &(struct kern_pack){.dst = r->h_tmp + l * layer,
                                                       .n_packed = r->n_packed,
                                                       .src = r->h + l * layer + from * S,
                                                       .flag = truncs,
                                                       .row_bytes = S * sizeof(float),
                                                       .N = N});
    rollout_value(t, r->tmp_value, r->pack_obs, r->no_reset, 0, (size_t)n);
    t->ops->unpack_rows(
        t->kern, &(struct kern_pack){
                     .dst = r->boot + at, .src = r->tmp_value, .flag = truncs, .row_bytes = sizeof(float), .N = N});
    return ST_OK;
}

/* The same without a count: all agents [from, from + n) go through the network. Where truncs is 0, boot is not looked
 * at. */
static void rollout_bootstrap_all(struct trainer *t, size_t step, size_t from, size_t n)
{
    struct rollout *r = &t->roll;

    rollout_keep_state(t, r->h_tmp, from, n);
    rollout_value(t, r->boot + step * t->n_agents + from, policy_obs_at(&t->policy, r->final_obs, from), r->no_reset,
                  from, n);
}

/* What comes before a decision, from one slot of time to another. */
static void rollout_move_slot(struct trainer *t, size_t to, size_t from)
{
    struct rollout *r = &t->roll;
    size_t N = t->n_agents, A = t->policy.n_logits;

    t->ops->copy(t->kern, policy_obs_at(&t->policy, r->obs, to * N), policy_obs_at(&t->policy, r->obs, from * N),
                 N * t->policy.row_bytes);
    t->ops->copy(t->kern, r->reset + to * N, r->reset + from * N, N);
    if (r->mask != NULL)
        t->ops->copy(t->kern, r->mask + to * N * A, r->mask + from * N * A, N * A);
}

static void rollout_begin(struct trainer *t)
{
    rollout_move_slot(t, 0, t->horizon_full);
    rollout_keep_state(t, t->roll.h0, 0, t->n_agents);
    normalise_join(t);
    normalise_freeze(t);
}

/* What step s of the game reads and writes. */
static struct kern_env_io rollout_io(struct trainer *t, size_t s)
{
    struct rollout *r = &t->roll;
    size_t N = t->n_agents, at = s * N;

    return (struct kern_env_io){
        .actions = r->actions + at * (size_t)t->shape.n_heads,
        .reals = r->reals,
        .rewards = r->rewards + at,
        .terms = r->terms + at,
        .truncs = r->truncs + at,
        .obs = r->frame != NULL ? r->frame : policy_obs_at(&t->policy, r->obs, at + N),
        .final_obs = r->frame != NULL ? r->final_frame : r->final_obs,
        .mask = r->mask != NULL ? r->mask + (at + N) * t->policy.n_logits : NULL,
    };
}

/* The actions of part `part` of the agents at step s; the game begins to play them. */
static void rollout_decide(struct trainer *t, size_t s, size_t part)
{
    struct rollout *r = &t->roll;
    struct policy_weights w = trainer_weights(t);
    size_t from = t->env->part_from[part], n = t->env->part_from[part + 1] - from, at = s * t->n_agents + from;
    size_t heads = (size_t)t->shape.n_heads;
    struct kern_env_io io = rollout_io(t, s);

    policy_forward_step(&t->policy, t->kern, &t->step, &w, policy_obs_at(&t->policy, r->obs, at),
                        r->h + from * t->policy.state_size, t->n_agents, r->reset + at, n);
    t->ops->sample(t->kern, &(struct kern_sample){.actions = r->actions + at * heads,
                                                  .reals = r->reals != NULL ? r->reals + from * heads : NULL,
                                                  .logp = r->logp + at,
                                                  .value = r->values + at,
                                                  .out = t->step.out,
                                                  .mask = r->mask != NULL ? r->mask + at * t->policy.n_logits : NULL,
                                                  .heads = &t->policy.heads,
                                                  .rng = t->rng_sample,
                                                  .first = t->first_agent + from,
                                                  .partial = part + 1 < t->env->n_parts,
                                                  .N = n});
    trainer_phase(t, PHASE_FORWARD);
    t->ops->env_begin(t->kern, t->env, &io, part);
}

/* What step s of the game gave the part, made ready for its next decision. */
static enum status rollout_receive(struct trainer *t, size_t s, size_t part, struct error *err)
{
    struct rollout *r = &t->roll;
    const struct policy *p = &t->policy;
    size_t N = t->n_agents, from = t->env->part_from[part], n = t->env->part_from[part + 1] - from, at = s * N + from;
    struct kern_env_io io = rollout_io(t, s);
    void *obs = policy_obs_at(p, r->obs, at), *next = policy_obs_at(p, obs, N);
    void *seen = (char *)io.obs + from * p->frame_bytes, *final_obs = (char *)io.final_obs + from * p->frame_bytes;
    uint8_t *reset = r->reset + at + N;

    t->ops->env_wait(t->kern, t->env, part);
    normalise_add(t, seen, n);
    normalise_apply(t, seen, n);
    if (t->shape.may_truncate)
        normalise_apply(t, final_obs, n);
    t->ops->step_post(t->kern, &(struct kern_step_post){.rewards = io.rewards + from,
                                                        .reset = reset,
                                                        .terms = io.terms + from,
                                                        .truncs = io.truncs + from,
                                                        .hyper = t->hyper,
                                                        .N = n});
    frames_stack(t, next, obs, seen, reset, NULL, n);
    if (t->shape.may_truncate)
        frames_stack(t, policy_obs_at(p, r->final_obs, from), obs, final_obs, NULL, io.truncs + from, n);
    trainer_phase(t, PHASE_ENV);
    if (t->shape.may_truncate && t->direct)
        TRY(rollout_bootstrap_some(t, s, from, n, err));
    else if (t->shape.may_truncate)
        rollout_bootstrap_all(t, s, from, n);
    trainer_phase(t, PHASE_FORWARD);
    return ST_OK;
}

/* Step by step, by single operations. Of a game in parts one part is decided while the host plays another. */
static enum status rollout_by_parts(struct trainer *t, struct error *err)
{
    for (size_t s = 0; s <= t->horizon; s++)
        for (size_t part = 0; part < t->env->n_parts; part++) {
            if (s > 0)
                TRY(rollout_receive(t, s - 1, part, err));
            if (s < t->horizon)
                rollout_decide(t, s, part);
        }
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
        .first = t->first_agent,
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
    size_t N = t->n_agents, T = t->horizon;

    trainer_phase_begin(t);
    rollout_begin(t);
    trainer_phase(t, PHASE_COPY);
    if (!rollout_at_once(t)) {
        TRY(rollout_by_parts(t, err));
        rollout_keep_state(t, r->h_tmp, 0, N);
        rollout_value(t, r->values + T * N, policy_obs_at(&t->policy, r->obs, T * N), r->reset + T * N, 0, N);
    }
    normalise_rewards(t);
    novelty_add(t);
    if (T != t->horizon_full) /* a short one: the next one, of a resumed run, begins where it ended */
        rollout_move_slot(t, t->horizon_full, T);
    trainer_phase(t, PHASE_FORWARD);
    return ST_OK;
}
