/* update.c - the updates of one rollout: pick segments, gather, forward, advantage, loss, backward, optimiser.
 * The segments of a minibatch are shared out to the device's shards, and a shard takes its own in blocks that fit its
 * cache: first all gather and go forward, then, once the advantages' mean is known, all compute loss and gradient. The
 * gradients of blocks add up in order, then those of shards, then those of ranks: each rank takes its share of a
 * minibatch out of its own segments, in the order that the whole run's stream gives them. Invariants: (1) with vtrace
 * the ratio of a segment is 1 at its first use and then that of its last use, of this rollout; advantages are computed
 * again before any segment is used again; (2) shuffled segments are taken without repetition until all were used, then
 * shuffled again; (3) a minibatch that is not finite or passes target_kl changes no weight. */
#include "trainer/trainer_priv.h"

#include "base/os/pool.h"

void update_plan(struct trainer *t)
{
    struct minibatch *m = &t->mb;
    struct plan *plan = &t->plan;
    size_t N = trainer_segments(t), T = trainer_segment_steps(t), B = t->n_segments;
    size_t S = t->policy.state_size, L = t->policy.recurrent ? t->policy.n_layers : 0;

    plan_add(plan, &m->perm, "segment order", sizeof(int32_t), N, 1, 1);
    plan_add(plan, &m->idx, "picked segments", sizeof(int32_t), B, 1, 1);
    plan_add(plan, &m->weight, "segment weights", sizeof(float), B, 1, 1);
    plan_add(plan, &m->obs, "minibatch observations", t->policy.row_bytes, T, B, 1);
    plan_add(plan, &m->h0, "minibatch states", sizeof(float), L, B, S);
    plan_add(plan, &m->logp, "minibatch log-probabilities", sizeof(float), T, B, 1);
    plan_add(plan, &m->values, "minibatch values", sizeof(float), T, B, 1);
    plan_add(plan, &m->adv, "minibatch advantages", sizeof(float), T, B, 1);
    plan_add(plan, &m->ret, "minibatch returns", sizeof(float), T, B, 1);
    plan_add(plan, &m->mean_std, "advantage mean and deviation", sizeof(float), 2, 1, 1);
    if (t->n_ranks > 1)
        plan_add(plan, &m->mean_std_parts, "advantage mean and deviation of ranks", sizeof(float), t->n_ranks, 2, 1);
    if (t->shape.has_mask)
        plan_add(plan, &m->mask, "minibatch masks", 1, T, B, t->policy.n_logits);
    plan_add(plan, &m->reset, "minibatch resets", 1, T, B, 1);
    plan_add(plan, &m->actions, "minibatch actions", sizeof(int32_t), T, B, (size_t)t->shape.n_heads);
}

void update_advantage(struct trainer *t)
{
    struct rollout *r = &t->roll;

    t->ops->advantage(t->kern, &(struct kern_advantage){.adv = r->adv,
                                                        .ret = r->ret,
                                                        .rewards = r->rewards,
                                                        .values = r->values,
                                                        .boot = r->boot,
                                                        .terms = r->terms,
                                                        .truncs = r->truncs,
                                                        .log_ratio = t->set.vtrace ? r->log_ratio : NULL,
                                                        .hyper = t->hyper,
                                                        .T = t->horizon,
                                                        .N = t->n_agents});
}

/* ---- shards and blocks ---- */

size_t update_block_segments(const struct kern *kern, size_t T, size_t B)
{
    size_t tokens = kern_block_tokens(kern), n_shards = kern_n_shards(kern);
    size_t of_shard = (B + n_shards - 1) / n_shards, n = (tokens + T - 1) / T;

    return tokens == 0 || n > of_shard ? of_shard : n;
}

struct block update_block_first(const struct trainer *t, size_t shard)
{
    struct block none = {0};

    pool_part(t->n_segments, 1, shard, t->n_shards, &none.from, &none.end);
    return update_block_next(t, none);
}

struct block update_block_next(const struct trainer *t, struct block b)
{
    size_t from = b.from + b.n, left = b.end - from;
    return (struct block){.from = from, .n = left < t->n_block ? left : t->n_block, .end = b.end};
}

#define EACH_BLOCK(t, shard, b)                                                                                        \
    for (struct block b = update_block_first((t), (shard)); (b).n > 0; (b) = update_block_next((t), (b)))

/* ---- forward ---- */

/* The segments of a minibatch. */
struct picked {
    const int32_t *idx; /* (B) */
    const float *weight; /* (B) or NULL */
    bool is_gathered;
};

static void gather_block(struct trainer *t, struct kern *k, const struct picked *from, struct block b)
{
    struct rollout *r = &t->roll;
    struct minibatch *m = &t->mb;
    size_t N = trainer_segments(t), T = trainer_segment_steps(t), f = sizeof(float), at = b.from * T;
    size_t n_heads = (size_t)t->shape.n_heads, A = t->policy.n_logits, L = t->policy.n_layers, S = t->policy.state_size;
    struct kern_gather_item items[KERN_MAX_GATHER];
    size_t n = 0;

    items[n++] = (struct kern_gather_item){policy_obs_at(&t->policy, m->obs, at), r->obs, t->policy.row_bytes, T};
    items[n++] = (struct kern_gather_item){m->reset + at, r->reset, 1, T};
    items[n++] = (struct kern_gather_item){m->actions + at * n_heads, r->actions, n_heads * sizeof(int32_t), T};
    items[n++] = (struct kern_gather_item){m->logp + at, r->logp, f, T};
    items[n++] = (struct kern_gather_item){m->values + at, r->values, f, T};
    if (r->mask != NULL)
        items[n++] = (struct kern_gather_item){m->mask + at * A, r->mask, A, T};
    if (t->policy.recurrent)
        items[n++] = (struct kern_gather_item){m->h0 + b.from * L * S, r->h0, S * f, L};
    items[n++] = (struct kern_gather_item){m->adv + at, r->adv, f, T};
    items[n++] = (struct kern_gather_item){m->ret + at, r->ret, f, T};
    t->ops->gather(k, &(struct kern_gather){.items = items, .n_items = n, .idx = from->idx + b.from, .N = N, .B = b.n});
}

/* (L, n, S) of the block; without a recurrent core there is none. */
static float *block_h0(const struct trainer *t, struct block b)
{
    return t->policy.recurrent ? t->mb.h0 + b.from * t->policy.n_layers * t->policy.state_size : NULL;
}

struct pass_job {
    struct trainer *t;
    const struct picked *of;
};

/* Shard 0 keeps the profile. */
static void phase_of_shard(struct trainer *t, size_t shard, enum train_phase phase)
{
    if (shard == 0)
        trainer_phase(t, phase);
}

static void forward_shard(void *ctx, struct kern *k, size_t shard)
{
    const struct pass_job *job = (const struct pass_job *)ctx;
    struct trainer *t = job->t;
    const struct policy *p = &t->policy;
    struct policy_weights w = trainer_weights(t);

    EACH_BLOCK(t, shard, b)
    {
        size_t T = trainer_segment_steps(t), at = b.from * T;
        struct policy_pass pass = policy_pass_at(p, &t->pass, at, shard);
        if (!job->of->is_gathered)
            gather_block(t, k, job->of, b);
        phase_of_shard(t, shard, PHASE_COPY);
        policy_forward(p, k, &pass, &w, policy_obs_at(p, t->mb.obs, at), block_h0(t, b), t->mb.reset + at, T, b.n);
        phase_of_shard(t, shard, PHASE_LOSS);
    }
}

static void minibatch_forward(struct trainer *t, const struct picked *of)
{
    struct pass_job job = {.t = t, .of = of};
    kern_each_shard(t->kern, forward_shard, &job);
}

void update_forward(struct trainer *t, const int32_t *idx)
{
    minibatch_forward(t, &(struct picked){.idx = idx});
}

/* ---- loss and gradient ---- */

static struct kern_loss block_loss(const struct pass_job *job, const struct policy_pass *pass, size_t shard,
                                   struct block b)
{
    const struct trainer *t = job->t;
    const struct minibatch *m = &t->mb;
    size_t T = trainer_segment_steps(t), at = b.from * T;

    return (struct kern_loss){
        .T = T,
        .B = b.n,
        .B_all = t->n_segments * t->n_ranks,
        .heads = &t->policy.heads,
        .hyper = t->hyper,
        .out = pass->out,
        .actions = m->actions + at * (size_t)t->shape.n_heads,
        .mask = m->mask == NULL ? NULL : m->mask + at * t->policy.n_logits,
        .old_logp = m->logp + at,
        .old_value = m->values + at,
        .adv = m->adv + at,
        .ret = m->ret + at,
        .weight = job->of->weight == NULL ? NULL : job->of->weight + b.from,
        .mean_std = m->mean_std,
        .dout = pass->dout,
        .part = t->shard_stats + t->rank * t->n_shards + shard,
        .idx = job->of->idx + b.from,
        .has_before = b.from > 0,
        .log_ratio = t->roll.log_ratio,
        .N = trainer_segments(t),
    };
}

static void loss_shard(void *ctx, struct kern *k, size_t shard)
{
    const struct pass_job *job = (const struct pass_job *)ctx;
    struct trainer *t = job->t;

    EACH_BLOCK(t, shard, b)
    {
        struct policy_pass pass = policy_pass_at(&t->policy, &t->pass, b.from * trainer_segment_steps(t), shard);
        const struct kern_loss loss = block_loss(job, &pass, shard, b);
        t->ops->ppo_loss(k, &loss);
    }
}

static void keep_shard(void *ctx, struct kern *k, size_t shard)
{
    const struct pass_job *job = (const struct pass_job *)ctx;
    struct trainer *t = job->t;

    EACH_BLOCK(t, shard, b)
    {
        struct policy_pass pass = policy_pass_at(&t->policy, &t->pass, b.from * trainer_segment_steps(t), shard);
        const struct kern_loss loss = block_loss(job, &pass, shard, b);
        t->ops->segments_keep(k, &loss);
    }
}

static void backward_shard(void *ctx, struct kern *k, size_t shard)
{
    const struct pass_job *job = (const struct pass_job *)ctx;
    struct trainer *t = job->t;
    const struct policy *p = &t->policy;
    struct policy_weights w = trainer_weights(t);
    float *grads = t->grads + shard * p->n_params;
    size_t T = trainer_segment_steps(t), n_done = 0;

    EACH_BLOCK(t, shard, b)
    {
        size_t at = b.from * T;
        struct policy_pass pass = policy_pass_at(p, &t->pass, at, shard);
        policy_backward(p, k, &pass, &w, grads, policy_obs_at(p, t->mb.obs, at), block_h0(t, b), t->mb.reset + at, T,
                        b.n, n_done > 0);
        n_done += b.n;
    }
    if (n_done == 0) /* more shards than segments */
        t->ops->zero(k, grads, p->n_params * sizeof *grads);
}

/* Of the minibatch's advantages, those of all ranks. */
static void update_mean_std(struct trainer *t)
{
    float *parts = t->mb.mean_std_parts, *own = parts == NULL ? t->mb.mean_std : parts + 2 * t->rank;

    t->ops->mean_std(t->kern, own, t->mb.adv, trainer_segment_steps(t) * t->n_segments);
    if (parts == NULL)
        return;
    t->ops->exchange(t->kern, &(struct kern_exchange){.rows = parts, .row_bytes = 2 * sizeof *parts});
    t->ops->mean_std_join(t->kern, t->mb.mean_std, parts, t->n_ranks);
}

static void minibatch_loss(struct trainer *t, const struct picked *of)
{
    struct pass_job job = {.t = t, .of = of};

    if (t->set.norm_adv && !(of->is_gathered && t->n_ranks == 1))
        update_mean_std(t);
    kern_each_shard(t->kern, loss_shard, &job);
}

/* The ratios that the minibatch's segments have now. */
static void minibatch_keep(struct trainer *t, const struct picked *of)
{
    struct pass_job job = {.t = t, .of = of};
    kern_each_shard(t->kern, keep_shard, &job);
}

static void minibatch_backward(struct trainer *t, const struct picked *of)
{
    const struct kern_ops *ops = t->ops;
    struct pass_job job = {.t = t, .of = of};

    kern_each_shard(t->kern, backward_shard, &job);
    ops->sum_rows(t->kern, t->grads, t->n_shards, t->policy.n_params);
    policy_mask_gradient(&t->policy, t->kern, t->grads);
    if (t->n_ranks > 1) /* each has divided by the size of the whole minibatch: the sum is its mean */
        ops->exchange(t->kern, &(struct kern_exchange){.sum = t->grads,
                                                       .n = t->policy.n_params,
                                                       .rows = t->shard_stats,
                                                       .row_bytes = t->n_shards * sizeof *t->shard_stats});
    ops->minibatch_stats(t->kern, t->stats, t->shard_stats, t->n_ranks * t->n_shards, t->hyper);
    ops->grad_norm(t->kern, t->norm, t->stats, t->grads, t->policy.n_params);
}

void update_backward(struct trainer *t, const int32_t *idx, const float *weight, bool keep)
{
    const struct picked of = {.idx = idx, .weight = weight};

    minibatch_loss(t, &of);
    if (keep)
        minibatch_keep(t, &of);
    minibatch_backward(t, &of);
}

static void update_optimise(struct trainer *t)
{
    const struct kern_ops *ops = t->ops;
    struct kern *k = t->kern;
    const struct kern_optimiser o = {
        .w = t->params,
        .m = t->moment1,
        .v = t->moment2,
        .g = t->grads,
        .norm = t->norm,
        .stats = t->stats,
        .hyper = t->hyper,
        .step = t->opt_step,
        .n = t->policy.n_params,
        .tensors = t->policy.tensors,
        .n_tensors = t->policy.n_tensors,
        .scratch = t->muon_scratch,
    };

    if (t->set.optimizer == TRAIN_ADAM)
        ops->adam(k, &o);
    else
        ops->muon(k, &o);
    ops->optimiser_tick(k, t->opt_step, t->norm, t->stats);
    trainer_weights_cast(t);
}

/* Advantages of the whole rollout, and the priorities that follow from them. */
static void update_weigh(struct trainer *t)
{
    struct rollout *r = &t->roll;

    update_advantage(t);
    if (t->set.prio_alpha > 0.0)
        t->ops->segments_priority(t->kern, &(struct kern_segments){.prob = r->prob,
                                                                   .adv = r->adv,
                                                                   .hyper = t->hyper,
                                                                   .T = trainer_segment_steps(t),
                                                                   .N = trainer_segments(t)});
}

/* From one order of segments to the next; of several ranks past what the others draw, also in a shorter rollout. */
static uint64_t update_draws(const struct trainer *t)
{
    size_t steps = trainer_segment_steps(t);

    return t->n_ranks == 1 ? trainer_segments(t) : t->n_ranks * (t->horizon_full / steps * t->n_agents);
}

/* The next minibatch's segments, shuffled (weight NULL) or prioritised. at: segments used of the current order. again:
 * minibatches before this one have kept their ratios. */
static struct picked update_pick(struct trainer *t, size_t *at, bool again)
{
    const struct kern_ops *ops = t->ops;
    struct minibatch *m = &t->mb;
    size_t N = trainer_segments(t), B = t->n_segments;
    struct picked picked = {0};

    if (t->set.prio_alpha > 0.0) {
        if (again)
            update_weigh(t);
        ops->segments_pick(t->kern, &(struct kern_segments){.idx = m->idx,
                                                            .weight = m->weight,
                                                            .prob = t->roll.prob,
                                                            .rng = t->rng_segments,
                                                            .hyper = t->hyper,
                                                            .N = N,
                                                            .B = B});
        if (t->n_ranks > 1) /* past what the other ranks draw */
            ops->rng_advance(t->kern, t->rng_segments, update_draws(t) - 1);
        picked.idx = m->idx, picked.weight = m->weight;
        return picked;
    }
    if (*at + B > N) {
        if (again)
            update_weigh(t);
        ops->segments_shuffle(t->kern, m->perm, t->rng_segments, N);
        ops->rng_advance(t->kern, t->rng_segments, update_draws(t));
        *at = 0;
    }
    picked.idx = m->perm + *at;
    *at += B;
    return picked;
}

/* *ret_stop when no further minibatch makes sense, where that can be known already. On a device it cannot: the
 * optimiser and the statistics see to it themselves that nothing more is changed or counted. */
static enum status update_look_for_stop(struct trainer *t, bool *ret_stop, struct error *err)
{
    struct kern_stats now;

    TRY(kern_download(t->kern, &now, t->stats, sizeof now, err));
    *ret_stop = now.nonfinite > 0 || now.stop != 0;
    return ST_OK;
}

/* Beside what the device still does for the minibatch before; it has one shard and one block. */
static void update_gather(struct trainer *t, struct picked *next)
{
    gather_block(t, t->kern, next, update_block_first(t, 0));
    if (t->set.norm_adv && t->n_ranks == 1)
        update_mean_std(t);
    next->is_gathered = true;
}

/* The updates of one rollout. After the loss of a minibatch the next one's segments can be picked, and gathered once
 * the gradient has been computed: a GPU does so beside what is left of the minibatch. */
enum status update_run(struct trainer *t, int64_t n_minibatches, struct error *err)
{
    size_t N = trainer_segments(t), at = N; /* nothing left of an old order: the data is new */
    int64_t n_fresh = t->set.prio_alpha > 0.0 ? 1 : (int64_t)(N / t->n_segments); /* minibatches of new segments */
    bool keep = t->set.vtrace && n_minibatches > n_fresh, stop = false;
    struct picked next = {0};

    trainer_phase_begin(t);
    t->ops->zero(t->kern, t->stats, sizeof *t->stats);
    if (t->set.vtrace)
        t->ops->zero(t->kern, t->roll.log_ratio, t->horizon * t->n_agents * sizeof *t->roll.log_ratio);
    update_weigh(t);
    trainer_phase(t, PHASE_ADVANTAGE);
    if (n_minibatches > 0)
        next = update_pick(t, &at, false);
    for (int64_t i = 0; i < n_minibatches; i++) {
        const bool last = i + 1 == n_minibatches;
        const struct picked now = next;
        if (!stop) {
            minibatch_forward(t, &now);
            minibatch_loss(t, &now);
            trainer_phase(t, PHASE_LOSS);
        }
        if (!last) { /* after a stop too: the streams advance as on a device */
            if (keep || t->set.prio_alpha > 0.0 || at + t->n_segments > N)
                kern_fork(t->kern);
            kern_aside(t->kern, true);
            if (keep && !stop)
                minibatch_keep(t, &now);
            next = update_pick(t, &at, keep);
            kern_aside(t->kern, false);
            trainer_phase(t, PHASE_ADVANTAGE);
        }
        if (stop)
            continue;
        minibatch_backward(t, &now);
        trainer_phase(t, PHASE_LOSS);
        kern_fork(t->kern);
        update_optimise(t);
        trainer_phase(t, PHASE_OPTIMISER);
        if (!last && kern_can_fork(t->kern)) {
            kern_aside(t->kern, true);
            update_gather(t, &next);
            kern_aside(t->kern, false);
        }
        kern_join(t->kern);
        if (t->direct)
            TRY(update_look_for_stop(t, &stop, err));
    }
    return ST_OK;
}
