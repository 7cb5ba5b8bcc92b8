/* update.c - the updates of one rollout: pick segments, gather, forward, advantage, loss, backward, optimiser.
 * A minibatch goes through gather, network and loss in blocks of segments that fit the device's cache; the gradients of
 * the blocks add up, in order. Each block is time-major on its own.
 * Invariants: (1) without vtrace advantages come from the whole rollout once, with it from the current ratios of each
 * minibatch; (2) shuffled segments are taken without repetition until all were used, then shuffled anew; (3) a
 * minibatch that is not finite or passes target_kl changes no weight. */
#include "trainer/trainer_priv.h"

#include "base/clock.h"

void update_plan(struct trainer *t)
{
    struct minibatch *m = &t->mb;
    struct plan *plan = &t->plan;
    size_t N = t->n_agents, T = t->horizon, B = t->n_segments, D = t->policy.obs_size, H = t->policy.width;
    size_t L = t->policy.recurrent ? t->policy.n_layers : 0;

    plan_add(plan, &m->perm, "segment order", sizeof(int32_t), N, 1, 1);
    plan_add(plan, &m->idx, "picked segments", sizeof(int32_t), B, 1, 1);
    plan_add(plan, &m->weight, "segment weights", sizeof(float), B, 1, 1);
    plan_add(plan, &m->obs, "minibatch observations", sizeof(float), T, B, D);
    plan_add(plan, &m->h0, "minibatch states", sizeof(float), L, B, H);
    plan_add(plan, &m->logp, "minibatch log-probabilities", sizeof(float), T, B, 1);
    plan_add(plan, &m->values, "minibatch values", sizeof(float), T + 1, B, 1);
    plan_add(plan, &m->boot, "minibatch bootstraps", sizeof(float), T, B, 1);
    plan_add(plan, &m->rewards, "minibatch rewards", sizeof(float), T, B, 1);
    plan_add(plan, &m->adv, "minibatch advantages", sizeof(float), T, B, 1);
    plan_add(plan, &m->ret, "minibatch returns", sizeof(float), T, B, 1);
    plan_add(plan, &m->ratio, "minibatch ratios", sizeof(float), T, B, 1);
    plan_add(plan, &m->mean_std, "advantage mean and deviation", sizeof(float), 2, 1, 1);
    if (t->shape.has_mask)
        plan_add(plan, &m->mask, "minibatch masks", 1, T, B, t->policy.n_logits);
    plan_add(plan, &m->reset, "minibatch resets", 1, T, B, 1);
    plan_add(plan, &m->terms, "minibatch terminations", 1, T, B, 1);
    plan_add(plan, &m->truncs, "minibatch truncations", 1, T, B, 1);
    plan_add(plan, &m->actions, "minibatch actions", sizeof(int32_t), T, B, (size_t)t->shape.n_heads);
}

void update_advantage(struct trainer *t)
{
    struct rollout *r = &t->roll;

    t->ops->advantage(t->kern, r->adv, r->ret, r->rewards, r->values, r->boot, r->terms, r->truncs, NULL, t->hyper,
                      t->horizon, t->n_agents);
}

size_t update_block_segments(const struct kern *kern, size_t T, size_t B)
{
    size_t tokens = kern_block_tokens(kern), n_threads = kern_n_threads(kern), n = (tokens + T - 1) / T;

    if (tokens == 0)
        return B;
    n = n < n_threads ? n_threads : n;
    return n < B ? n : B;
}

/* Segments [from, from + n) of the minibatch; n is 0 behind the last. */
struct block {
    size_t from, n;
};

static struct block block_at(const struct trainer *t, size_t from)
{
    size_t left = t->n_segments - from;
    return (struct block){.from = from, .n = left < t->n_block ? left : t->n_block};
}

#define EACH_BLOCK(t, b) for (struct block b = block_at((t), 0); (b).n > 0; (b) = block_at((t), (b).from + (b).n))

static void gather_block(struct trainer *t, const int32_t *idx, struct block b)
{
    const struct kern_ops *ops = t->ops;
    struct rollout *r = &t->roll;
    struct minibatch *m = &t->mb;
    struct kern *k = t->kern;
    size_t N = t->n_agents, T = t->horizon, f = sizeof(float), at = b.from * T, D = t->policy.obs_size;
    size_t n_heads = (size_t)t->shape.n_heads, A = t->policy.n_logits, L = t->policy.n_layers, H = t->policy.width;

    idx += b.from;
    ops->gather(k, m->obs + at * D, r->obs, idx, D * f, T, N, b.n);
    ops->gather(k, m->reset + at, r->reset, idx, 1, T, N, b.n);
    ops->gather(k, m->actions + at * n_heads, r->actions, idx, n_heads * sizeof(int32_t), T, N, b.n);
    ops->gather(k, m->logp + at, r->logp, idx, f, T, N, b.n);
    ops->gather(k, m->values + at + b.from, r->values, idx, f, T + 1, N, b.n);
    if (r->mask != NULL)
        ops->gather(k, m->mask + at * A, r->mask, idx, A, T, N, b.n);
    if (t->policy.recurrent)
        ops->gather(k, m->h0 + b.from * L * H, r->h0, idx, H * f, L, N, b.n);
    if (t->set.vtrace) {
        ops->gather(k, m->rewards + at, r->rewards, idx, f, T, N, b.n);
        ops->gather(k, m->boot + at, r->boot, idx, f, T, N, b.n);
        ops->gather(k, m->terms + at, r->terms, idx, 1, T, N, b.n);
        ops->gather(k, m->truncs + at, r->truncs, idx, 1, T, N, b.n);
    } else {
        ops->gather(k, m->adv + at, r->adv, idx, f, T, N, b.n);
        ops->gather(k, m->ret + at, r->ret, idx, f, T, N, b.n);
    }
}

/* (L, n, H) of the block; without a recurrent core there is none. */
static const float *block_h0(const struct trainer *t, struct block b)
{
    return t->policy.recurrent ? t->mb.h0 + b.from * t->policy.n_layers * t->policy.width : NULL;
}

void update_gather(struct trainer *t, const int32_t *idx)
{
    EACH_BLOCK(t, b)
    gather_block(t, idx, b);
}

void update_forward(struct trainer *t)
{
    const struct policy *p = &t->policy;

    EACH_BLOCK(t, b)
    {
        size_t at = b.from * t->horizon;
        struct policy_pass pass = policy_pass_at(p, &t->pass, at);
        policy_forward(p, t->kern, &pass, t->params, t->mb.obs + at * p->obs_size, block_h0(t, b), t->mb.reset + at,
                       t->horizon, b.n);
    }
}

static void update_vtrace(struct trainer *t)
{
    struct minibatch *m = &t->mb;
    size_t T = t->horizon;

    t->ops->ratio(t->kern, m->ratio, t->pass.out, m->actions, m->logp, m->mask, &t->policy.heads, T * t->n_segments);
    EACH_BLOCK(t, b)
    {
        size_t at = b.from * T;
        t->ops->advantage(t->kern, m->adv + at, m->ret + at, m->rewards + at, m->values + at + b.from, m->boot + at,
                          m->terms + at, m->truncs + at, m->ratio + at, t->hyper, T, b.n);
    }
}

void update_loss(struct trainer *t, const float *weight)
{
    struct minibatch *m = &t->mb;
    size_t T = t->horizon, O = t->policy.n_out, n_heads = (size_t)t->shape.n_heads;

    if (t->set.norm_adv)
        t->ops->mean_std(t->kern, m->mean_std, m->adv, T * t->n_segments);
    EACH_BLOCK(t, b)
    {
        size_t at = b.from * T;
        t->ops->ppo_loss(t->kern, t->pass.dout + at * O, t->stats, t->pass.out + at * O, m->actions + at * n_heads,
                         m->logp + at, m->adv + at, m->ret + at, m->values + at + b.from,
                         weight == NULL ? NULL : weight + b.from, m->mean_std,
                         m->mask == NULL ? NULL : m->mask + at * t->policy.n_logits, &t->policy.heads, t->hyper, T, b.n,
                         b.from, t->n_segments);
    }
}

void update_backward(struct trainer *t)
{
    const struct policy *p = &t->policy;

    EACH_BLOCK(t, b)
    {
        size_t at = b.from * t->horizon;
        struct policy_pass pass = policy_pass_at(p, &t->pass, at);
        policy_backward(p, t->kern, &pass, t->params, t->grads, t->mb.obs + at * p->obs_size, block_h0(t, b),
                        t->mb.reset + at, t->horizon, b.n, b.from > 0);
    }
    t->ops->grad_norm(t->kern, t->norm, t->stats, t->grads, t->policy.n_params);
}

static void update_optimise(struct trainer *t)
{
    const struct kern_ops *ops = t->ops;
    struct kern *k = t->kern;

    if (t->set.optimizer == TRAIN_ADAM) {
        ops->adam(k, t->params, t->moment1, t->moment2, t->grads, t->norm, t->stats, t->opt_step, t->hyper,
                  t->policy.n_params);
    } else {
        for (size_t i = 0; i < t->policy.n_tensors; i++) {
            const struct policy_tensor *tensor = &t->policy.tensors[i];
            float *w = t->params + tensor->offset, *m = t->moment1 + tensor->offset;
            const float *g = t->grads + tensor->offset;

            if (tensor->is_matrix)
                ops->muon_matrix(k, w, m, g, t->norm, t->muon_scratch, t->stats, t->hyper, tensor->rows, tensor->cols);
            else
                ops->muon_vector(k, w, m, g, t->norm, t->stats, t->hyper, tensor->rows);
        }
    }
    ops->optimiser_tick(k, t->opt_step, t->norm, t->stats);
}

/* The next minibatch's segments, shuffled (weight NULL) or prioritised. at: segments used of the current order. */
static const int32_t *update_pick(struct trainer *t, size_t *at, const float **ret_weight)
{
    const struct kern_ops *ops = t->ops;
    struct minibatch *m = &t->mb;
    size_t N = t->n_agents, B = t->n_segments;
    const int32_t *idx;

    if (t->set.prio_alpha > 0.0) {
        ops->segments_pick(t->kern, m->idx, m->weight, t->roll.prob, t->rng_segments, t->hyper, N, B);
        *ret_weight = m->weight;
        return m->idx;
    }
    if (*at + B > N) {
        ops->segments_shuffle(t->kern, m->perm, t->rng_segments, N);
        ops->rng_advance(t->kern, t->rng_segments, N);
        *at = 0;
    }
    idx = m->perm + *at;
    *at += B;
    *ret_weight = NULL;
    return idx;
}

/* One minibatch; *ret_stop when no further one makes sense. */
static enum status update_minibatch(struct trainer *t, const int32_t *idx, const float *weight, uint64_t *mark,
                                    bool *ret_stop, struct error *err)
{
    bool watch_kl = t->set.target_kl > 0.0;
    struct kern_stats now;

    update_gather(t, idx);
    trainer_phase(t, PHASE_COPY, mark);
    update_forward(t);
    trainer_phase(t, PHASE_LOSS, mark);
    if (t->set.vtrace) {
        update_vtrace(t);
        trainer_phase(t, PHASE_ADVANTAGE, mark);
    }
    update_loss(t, weight);
    if (watch_kl) {
        t->ops->kl_check(t->kern, t->stats, t->hyper);
        TRY(kern_download(t->kern, &now, t->stats, sizeof now, err));
        *ret_stop = now.stop != 0;
        if (*ret_stop)
            return ST_OK;
    }
    update_backward(t);
    trainer_phase(t, PHASE_LOSS, mark);
    update_optimise(t);
    t->count.updates++;
    trainer_phase(t, PHASE_OPTIMISER, mark);
    if (kern_kind(t->kern) == KERN_CPU) { /* reading is free there: stop where it happened, for a better message */
        TRY(kern_download(t->kern, &now, t->stats, sizeof now, err));
        *ret_stop = now.nonfinite > 0;
    }
    return ST_OK;
}

enum status update_run(struct trainer *t, struct error *err)
{
    int64_t n_minibatches = schedule_minibatches(&t->set, &t->count.minibatch_carry);
    bool prioritised = t->set.prio_alpha > 0.0, stop = false;
    size_t at = t->n_agents; /* nothing left of an old order: the data is new */
    uint64_t mark = clock_mono_ns();

    t->ops->zero(t->kern, t->stats, sizeof *t->stats);
    if (!t->set.vtrace || prioritised)
        update_advantage(t);
    if (prioritised)
        t->ops->segments_priority(t->kern, t->roll.prob, t->roll.adv, t->hyper, t->horizon, t->n_agents);
    trainer_phase(t, PHASE_ADVANTAGE, &mark);
    for (int64_t i = 0; i < n_minibatches && !stop; i++) {
        const float *weight;
        const int32_t *idx = update_pick(t, &at, &weight);
        TRY(update_minibatch(t, idx, weight, &mark, &stop, err));
    }
    return kern_sync(t->kern, err);
}
