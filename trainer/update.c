/* update.c - the updates of one rollout: pick segments, gather, forward, advantage, loss, backward, optimiser.
 * The segments of a minibatch are shared out to the device's lanes, and a lane takes its own in blocks that fit its
 * cache: first all gather and go forward, then, once the advantages' mean is known, all compute loss and gradient. The
 * gradients of blocks add up in order, then those of lanes. Invariants: (1) with vtrace the ratio of a segment is 1 at
 * its first use and then that of its last use, of this rollout; advantages are computed again before any segment is
 * used again; (2) shuffled segments are taken without repetition until all were used, then shuffled again; (3) a
 * minibatch that is not finite or passes target_kl changes no weight. */
#include "trainer/trainer_priv.h"

#include "base/pool.h"

void update_plan(struct trainer *t)
{
    struct minibatch *m = &t->mb;
    struct plan *plan = &t->plan;
    size_t N = t->n_agents, T = t->horizon, B = t->n_segments, D = t->policy.obs_size;
    size_t S = t->policy.state_size, L = t->policy.recurrent ? t->policy.n_layers : 0;

    plan_add(plan, &m->perm, "segment order", sizeof(int32_t), N, 1, 1);
    plan_add(plan, &m->idx, "picked segments", sizeof(int32_t), B, 1, 1);
    plan_add(plan, &m->weight, "segment weights", sizeof(float), B, 1, 1);
    plan_add(plan, &m->obs, "minibatch observations", t->ops->act_size, T, B, D);
    plan_add(plan, &m->h0, "minibatch states", sizeof(float), L, B, S);
    plan_add(plan, &m->logp, "minibatch log-probabilities", sizeof(float), T, B, 1);
    plan_add(plan, &m->values, "minibatch values", sizeof(float), T + 1, B, 1);
    plan_add(plan, &m->adv, "minibatch advantages", sizeof(float), T, B, 1);
    plan_add(plan, &m->ret, "minibatch returns", sizeof(float), T, B, 1);
    plan_add(plan, &m->mean_std, "advantage mean and deviation", sizeof(float), 2, 1, 1);
    if (t->shape.has_mask)
        plan_add(plan, &m->mask, "minibatch masks", 1, T, B, t->policy.n_logits);
    plan_add(plan, &m->reset, "minibatch resets", 1, T, B, 1);
    plan_add(plan, &m->actions, "minibatch actions", sizeof(int32_t), T, B, (size_t)t->shape.n_heads);
}

void update_advantage(struct trainer *t)
{
    struct rollout *r = &t->roll;

    t->ops->advantage(t->kern, r->adv, r->ret, r->rewards, r->values, r->boot, r->terms, r->truncs,
                      t->set.vtrace ? r->log_ratio : NULL, t->hyper, t->horizon, t->n_agents);
}

/* ---- lanes and blocks ---- */

size_t update_block_segments(const struct kern *kern, size_t T, size_t B)
{
    size_t tokens = kern_block_tokens(kern), n_lanes = kern_n_lanes(kern);
    size_t of_lane = (B + n_lanes - 1) / n_lanes, n = (tokens + T - 1) / T;

    return tokens == 0 || n > of_lane ? of_lane : n;
}

struct block update_block_first(const struct trainer *t, size_t lane)
{
    struct block none = {0};

    pool_part(t->n_segments, 1, lane, t->n_lanes, &none.from, &none.end);
    return update_block_next(t, none);
}

struct block update_block_next(const struct trainer *t, struct block b)
{
    size_t from = b.from + b.n, left = b.end - from;
    return (struct block){.from = from, .n = left < t->n_block ? left : t->n_block, .end = b.end};
}

#define EACH_BLOCK(t, lane, b)                                                                                         \
    for (struct block b = update_block_first((t), (lane)); (b).n > 0; (b) = update_block_next((t), (b)))

/* ---- forward ---- */

static void gather_block(struct trainer *t, struct kern *k, const int32_t *idx, struct block b)
{
    struct rollout *r = &t->roll;
    struct minibatch *m = &t->mb;
    size_t N = t->n_agents, T = t->horizon, f = sizeof(float), at = b.from * T, D = t->policy.obs_size;
    size_t n_heads = (size_t)t->shape.n_heads, A = t->policy.n_logits, L = t->policy.n_layers, S = t->policy.state_size;
    struct kern_gather items[KERN_MAX_GATHER];
    size_t n = 0;

    items[n++] = (struct kern_gather){act_at(t->ops, m->obs, at * D), r->obs, D * t->ops->act_size, T};
    items[n++] = (struct kern_gather){m->reset + at, r->reset, 1, T};
    items[n++] = (struct kern_gather){m->actions + at * n_heads, r->actions, n_heads * sizeof(int32_t), T};
    items[n++] = (struct kern_gather){m->logp + at, r->logp, f, T};
    items[n++] = (struct kern_gather){m->values + at + b.from, r->values, f, T + 1};
    if (r->mask != NULL)
        items[n++] = (struct kern_gather){m->mask + at * A, r->mask, A, T};
    if (t->policy.recurrent)
        items[n++] = (struct kern_gather){m->h0 + b.from * L * S, r->h0, S * f, L};
    items[n++] = (struct kern_gather){m->adv + at, r->adv, f, T};
    items[n++] = (struct kern_gather){m->ret + at, r->ret, f, T};
    t->ops->gather(k, items, n, idx + b.from, N, b.n);
}

/* (L, n, S) of the block; without a recurrent core there is none. */
static float *block_h0(const struct trainer *t, struct block b)
{
    return t->policy.recurrent ? t->mb.h0 + b.from * t->policy.n_layers * t->policy.state_size : NULL;
}

struct pass_job {
    struct trainer *t;
    const int32_t *idx; /* (B) */
    const float *weight; /* (B) or NULL */
    bool keep; /* the ratios */
};

/* Lane 0 keeps the profile. */
static void phase_of_lane(struct trainer *t, size_t lane, enum train_phase phase)
{
    if (lane == 0)
        trainer_phase(t, phase);
}

static void forward_lane(void *ctx, struct kern *k, size_t lane)
{
    const struct pass_job *job = (const struct pass_job *)ctx;
    struct trainer *t = job->t;
    const struct policy *p = &t->policy;
    struct policy_weights w = trainer_weights(t);

    EACH_BLOCK(t, lane, b)
    {
        size_t at = b.from * t->horizon;
        struct policy_pass pass = policy_pass_at(p, &t->pass, at, lane);
        gather_block(t, k, job->idx, b);
        phase_of_lane(t, lane, PHASE_COPY);
        policy_forward(p, k, &pass, &w, act_at(t->ops, t->mb.obs, at * p->obs_size), block_h0(t, b), t->mb.reset + at,
                       t->horizon, b.n);
        phase_of_lane(t, lane, PHASE_LOSS);
    }
}

void update_forward(struct trainer *t, const int32_t *idx)
{
    struct pass_job job = {.t = t, .idx = idx};
    kern_each_lane(t->kern, forward_lane, &job);
}

/* ---- loss and gradient ---- */

static void backward_lane(void *ctx, struct kern *k, size_t lane)
{
    const struct pass_job *job = (const struct pass_job *)ctx;
    struct trainer *t = job->t;
    const struct policy *p = &t->policy;
    struct minibatch *m = &t->mb;
    struct policy_weights w = trainer_weights(t);
    float *grads = t->grads + lane * p->n_params;
    size_t T = t->horizon, n_done = 0;

    EACH_BLOCK(t, lane, b)
    {
        size_t at = b.from * T;
        struct policy_pass pass = policy_pass_at(p, &t->pass, at, lane);
        t->ops->ppo_loss(k, pass.dout, t->lane_stats + lane, pass.out, m->actions + at * (size_t)t->shape.n_heads,
                         m->logp + at, m->adv + at, m->ret + at, m->values + at + b.from,
                         job->weight == NULL ? NULL : job->weight + b.from, m->mean_std,
                         m->mask == NULL ? NULL : m->mask + at * p->n_logits, &p->heads, t->hyper, T, b.n,
                         t->n_segments);
        if (job->keep)
            t->ops->segments_keep(k, t->roll.log_ratio, pass.out, m->actions + at * (size_t)t->shape.n_heads,
                                  m->logp + at, m->mask == NULL ? NULL : m->mask + at * p->n_logits, &p->heads,
                                  job->idx + b.from, b.from > 0, t->n_agents, T, b.n);
        policy_backward(p, k, &pass, &w, grads, act_at(t->ops, m->obs, at * p->obs_size), block_h0(t, b), m->reset + at,
                        T, b.n, n_done > 0);
        n_done += b.n;
    }
    if (n_done == 0) /* more lanes than segments */
        t->ops->zero(k, grads, p->n_params * sizeof *grads);
}

void update_backward(struct trainer *t, const int32_t *idx, const float *weight, bool keep)
{
    const struct kern_ops *ops = t->ops;
    struct pass_job job = {.t = t, .idx = idx, .weight = weight, .keep = keep};

    if (t->set.norm_adv)
        ops->mean_std(t->kern, t->mb.mean_std, t->mb.adv, t->horizon * t->n_segments);
    kern_each_lane(t->kern, backward_lane, &job);
    ops->sum_rows(t->kern, t->grads, t->n_lanes, t->policy.n_params);
    ops->minibatch_stats(t->kern, t->stats, t->lane_stats, t->n_lanes, t->hyper);
    ops->grad_norm(t->kern, t->norm, t->stats, t->grads, t->policy.n_params);
}

static void update_optimise(struct trainer *t)
{
    const struct kern_ops *ops = t->ops;
    struct kern *k = t->kern;

    if (t->set.optimizer == TRAIN_ADAM) {
        ops->adam(k, t->params, t->moment1, t->moment2, t->grads, t->norm, t->stats, t->opt_step, t->hyper,
                  t->policy.n_params);
    } else {
        ops->muon(k, t->params, t->moment1, t->grads, t->norm, t->muon_scratch, t->stats, t->hyper, t->policy.tensors,
                  t->policy.n_tensors);
    }
    ops->optimiser_tick(k, t->opt_step, t->norm, t->stats);
    trainer_weights_cast(t);
}

/* Advantages of the whole rollout, and the priorities that follow from them. */
static void update_weigh(struct trainer *t)
{
    struct rollout *r = &t->roll;

    update_advantage(t);
    if (t->set.prio_alpha > 0.0)
        t->ops->segments_priority(t->kern, r->prob, r->adv, t->hyper, t->horizon, t->n_agents);
    trainer_phase(t, PHASE_ADVANTAGE);
}

/* The next minibatch's segments, shuffled (weight NULL) or prioritised. at: segments used of the current order. again:
 * minibatches before this one have kept their ratios. */
static const int32_t *update_pick(struct trainer *t, size_t *at, bool again, const float **ret_weight)
{
    const struct kern_ops *ops = t->ops;
    struct minibatch *m = &t->mb;
    size_t N = t->n_agents, B = t->n_segments;
    const int32_t *idx;

    if (t->set.prio_alpha > 0.0) {
        if (again)
            update_weigh(t);
        ops->segments_pick(t->kern, m->idx, m->weight, t->roll.prob, t->rng_segments, t->hyper, N, B);
        *ret_weight = m->weight;
        return m->idx;
    }
    if (*at + B > N) {
        if (again)
            update_weigh(t);
        ops->segments_shuffle(t->kern, m->perm, t->rng_segments, N);
        ops->rng_advance(t->kern, t->rng_segments, N);
        *at = 0;
    }
    idx = m->perm + *at;
    *at += B;
    *ret_weight = NULL;
    return idx;
}

/* One minibatch; *ret_stop when no further one makes sense, where that can be known already. On a device it cannot: the
 * optimiser and the statistics see to it themselves that nothing more is changed or counted. */
static enum status update_minibatch(struct trainer *t, const int32_t *idx, const float *weight, bool keep,
                                    bool *ret_stop, struct error *err)
{
    struct kern_stats now;

    update_forward(t, idx);
    update_backward(t, idx, weight, keep);
    trainer_phase(t, PHASE_LOSS);
    update_optimise(t);
    trainer_phase(t, PHASE_OPTIMISER);
    if (t->direct) {
        TRY(kern_download(t->kern, &now, t->stats, sizeof now, err));
        *ret_stop = now.nonfinite > 0 || now.stop != 0;
    }
    return ST_OK;
}

enum status update_run(struct trainer *t, int64_t n_minibatches, struct error *err)
{
    int64_t n_fresh =
        t->set.prio_alpha > 0.0 ? 1 : (int64_t)(t->n_agents / t->n_segments); /* minibatches of new segments */
    bool keep = t->set.vtrace && n_minibatches > n_fresh, stop = false;
    size_t at = t->n_agents; /* nothing left of an old order: the data is new */

    trainer_phase_begin(t);
    t->ops->zero(t->kern, t->stats, sizeof *t->stats);
    if (t->set.vtrace)
        t->ops->zero(t->kern, t->roll.log_ratio, t->horizon * t->n_agents * sizeof *t->roll.log_ratio);
    update_weigh(t);
    for (int64_t i = 0; i < n_minibatches; i++) {
        const float *weight;
        const int32_t *idx =
            update_pick(t, &at, keep && i > 0, &weight); /* after a stop too: the streams advance as on a device */
        if (!stop)
            TRY(update_minibatch(t, idx, weight, keep && i + 1 < n_minibatches, &stop, err));
    }
    return ST_OK;
}
