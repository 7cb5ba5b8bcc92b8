/* solo_learn.cuh - the updates of a training that one block makes alone (private to kernels/cuda/solo): what
 * trainer/update.c does with single operations, in the same order. */
#ifndef KERNELS_CUDA_SOLO_LEARN_CUH
#define KERNELS_CUDA_SOLO_LEARN_CUH

#include "kernels/cuda/learn/advantage.cuh"
#include "kernels/cuda/solo/solo_net.cuh"

/* What the block shares beside its dynamic memory. */
struct solo_state {
    struct kern_stats stats; /* of the iteration */
    double loss[SOLO_WARPS][P_COUNT], total[P_COUNT], scratch[2][SOLO_WARPS];
    float mean_std[2];
    bool off; /* the optimiser does nothing */
    struct loss of_loss; /* of any chunk */
};

__device__ static inline void solo_advantage(const struct solo_args &a, const struct solo_turn &turn)
{
    const struct kern_advantage in = {.T = (size_t)turn.T,
                                      .N = (size_t)a.N,
                                      .rewards = a.rewards,
                                      .values = a.values,
                                      .boot = a.boot,
                                      .terms = a.terms,
                                      .truncs = a.truncs,
                                      .log_ratio = a.vtrace ? a.log_ratio : NULL,
                                      .hyper = &turn.hyper,
                                      .adv = a.adv,
                                      .ret = a.ret};

    for (int group = 0; group * ADVANTAGE_AGENTS < a.N; group++)
        advantage_agents(in, (size_t)group);
    __syncthreads();
}

/* perm: as the operation segments_shuffle draws it; the stream advances. */
__device__ static inline void solo_shuffle(const struct solo_args &a, const struct solo &s)
{
    const struct rng rng = *a.rng_segments;
    uint32_t *keys = (uint32_t *)s.partial;

    for (int i = threadIdx.x; i < a.N; i += SOLO_BLOCK)
        keys[i] = rng_philox(rng.key, rng.counter + (uint64_t)i, 0).v[0];
    __syncthreads();
    for (int i = threadIdx.x; i < a.N; i += SOLO_BLOCK) {
        int rank = 0;
        for (int j = 0; j < a.N; j++)
            rank += keys[j] < keys[i] || (keys[j] == keys[i] && j < i);
        a.perm[rank] = i;
    }
    if (threadIdx.x == 0)
        a.rng_segments->counter = rng.counter + (uint64_t)a.N;
    __syncthreads();
}

/* Mean and deviation of the minibatch's advantages; ends with a barrier. */
__device__ static inline void solo_mean_std(const struct solo_args &a, struct solo_state &state, const int32_t *idx,
                                            int T)
{
    const double shift = (double)a.adv[idx[0]], n = (double)T * a.B;
    double sum = 0.0, square = 0.0;

    for (int i = threadIdx.x; i < T * a.B; i += SOLO_BLOCK) {
        double d = (double)a.adv[i / a.B * a.N + idx[i % a.B]] - shift;
        sum += d;
        square += d * d;
    }
    sum = num_block_sum(sum, state.scratch[0]);
    square = num_block_sum(square, state.scratch[1]);
    if (threadIdx.x == 0) {
        double mean = sum / n, variance = square / n - mean * mean;
        state.mean_std[0] = (float)(shift + mean);
        state.mean_std[1] = (float)sqrt(variance < 0.0 ? 0.0 : variance); /* NaN stays NaN */
    }
    __syncthreads();
}

/* Tokens [first, first + n) of the minibatch into shared memory, time by time. */
__device__ static inline void solo_gather(const struct solo_args &a, const struct solo &s, const int32_t *idx,
                                          int first, int n)
{
    int32_t *from = (int32_t *)s.partial;

    for (int i = threadIdx.x; i < n; i += SOLO_BLOCK) {
        const int token = first + i, at = token / a.B * a.N + idx[token % a.B];
        from[i] = at;
        s.action[i] = a.actions[at];
        s.logp[i] = a.logp[at];
        s.adv[i] = a.adv[at];
        s.ret[i] = a.ret[at];
        s.value[i] = a.values[at];
    }
    __syncthreads();
    if (a.D % 2 == 0) {
        const int half = a.D / 2;
#pragma unroll 4
        for (int i = threadIdx.x; i < n * half; i += SOLO_BLOCK)
            *(uint32_t *)(s.x + i / half * s.ldx + i % half * 2) =
                *(const uint32_t *)(a.obs + (size_t)from[i / half] * a.D + i % half * 2);
    } else {
#pragma unroll 4
        for (int i = threadIdx.x; i < n * a.D; i += SOLO_BLOCK)
            s.x[i / a.D * s.ldx + i % a.D] = a.obs[(size_t)from[i / a.D] * a.D + i % a.D];
    }
}

/* Loss and gradient of a chunk's outputs; statistics are added to sums. keep: its ratios, for their next use. */
__device__ static inline void solo_loss(const struct solo_args &a, const struct solo &s, const struct solo_state &state,
                                        int n, bool keep, double (&sums)[P_COUNT])
{
    const int each = SOLO_BLOCK / a.chunk, token = (int)threadIdx.x / each;
    const struct loss &l = state.of_loss;

    if ((int)threadIdx.x % each == 0 && token < n) {
        float log_sum[HEADS_KEPT];
        loss_token(s.dout + token * a.n_out, sums, l, NULL, (size_t)token);
        if (keep)
            a.log_ratio[((const int32_t *)s.partial)[token]] =
                token_logp(a.heads_of, s.out + token * a.n_out, NULL, s.action + token, log_sum) - s.logp[token];
    }
}

/* The minibatch's end before its optimiser step: statistics and the norm of its gradient; ends with a barrier. */
__device__ static inline void solo_judge(const struct solo_args &a, struct solo_state &state,
                                         const struct solo_turn &turn)
{
    struct kern_stats *stats = &state.stats;
    const double n = (double)turn.T * a.B;
    double sum = 0.0;

    if (threadIdx.x < P_COUNT) {
        double total = 0.0;
        for (int w = 0; w < SOLO_WARPS; w++)
            total += state.loss[w][threadIdx.x];
        state.total[threadIdx.x] = total;
    }
    for (int i = threadIdx.x; i < a.n_params; i += SOLO_BLOCK)
        sum += (double)a.grads[i] * (double)a.grads[i];
    sum = num_block_sum(sum, state.scratch[0]); /* its barrier shows the totals too */
    if (threadIdx.x == 0) {
        const double norm = sqrt(sum);
        const bool is_finite = isfinite((float)norm) && loss_is_finite(state.total, n);
        *a.norm = is_finite ? (float)norm : NAN;
        if (stats->stop == 0) {
            stats->n_minibatches += 1.0;
            stats->last_kl = 0.0;
            loss_add(stats, state.total, n, n);
            stats->stop = turn.hyper.target_kl > 0.0f && stats->last_kl > (double)turn.hyper.target_kl;
        }
        if (stats->stop == 0 && is_finite)
            stats->grad_norm += norm;
        else if (stats->stop == 0)
            stats->nonfinite++;
        state.off = !is_finite || stats->stop != 0;
    }
    __syncthreads();
}

/* A step of a matrix by the block, or by a group of its threads. */
template <int THREADS>
__device__ static inline void solo_muon_matrix(const struct muon_step &step, const struct muon_item &t,
                                               unsigned char *shared)
{
    struct muon_part p;

    muon_part_place(&p, &t, 0, shared);
    const double sum = muon_sum<THREADS>(muon_part_load<THREADS>(&p, &step, &t));
    const float inv = sum > 0.0 ? (float)(1.0 / sqrt(sum)) : 0.0f;
    for (uint32_t i = muon_thread<THREADS>(); i < p.rows * p.cp; i += THREADS)
        p.x[i / p.cp * p.ld + i % p.cp] *= inv;
    muon_sync<THREADS>();
    for (int i = 0; i < MUON_STEPS; i++) {
        muon_part_gram<THREADS>(&p, p.s);
        muon_sync<THREADS>();
        muon_part_mirror<THREADS>(&p);
        muon_part_turn<THREADS>(&p, muon_coef[i]);
    }
    muon_part_store<THREADS>(&p, &step, &t);
    muon_sync<THREADS>();
}

__device__ static inline void solo_muon(const struct solo_args &a, struct solo_state &state,
                                        const struct solo_turn &turn, unsigned char *shared)
{
    const struct muon_step step = {a.params, a.m, a.grads, a.norm, &state.stats, &turn.hyper};
    const uint32_t group = threadIdx.x / SOLO_GROUP;

    if (a.muon_bytes > 0)
        for (uint32_t i = group; i < a.n_matrices; i += SOLO_BLOCK / SOLO_GROUP)
            solo_muon_matrix<SOLO_GROUP>(step, a.items[i], shared + group * a.muon_bytes);
    else
        for (uint32_t i = 0; i < a.n_matrices; i++)
            solo_muon_matrix<SOLO_BLOCK>(step, a.items[i], shared);
    for (uint32_t i = a.n_matrices; i < a.n_items; i++)
        muon_vector(&step, &a.items[i], threadIdx.x, SOLO_BLOCK);
}

__device__ static inline void solo_optimise(const struct solo_args &a, const struct solo &s, struct solo_state &state,
                                            const struct solo_turn &turn, unsigned char *shared)
{
    if (state.off)
        return;
    if (a.muon) {
        solo_muon(a, state, turn, shared);
    } else {
        const struct adam_rates rates = adam_rates_of(a.norm, &turn.hyper, *a.step + 1);
        for (int i = threadIdx.x; i < a.n_params; i += SOLO_BLOCK)
            adam_one(&a.params[i], &a.m[i], &a.v[i], a.grads[i], &rates);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        ++*a.step;
    solo_load_weights(a, s);
}

__device__ static inline void solo_minibatch(const struct solo_args &a, const struct solo &s, struct solo_state &state,
                                             const struct solo_turn &turn, const int32_t *idx, bool keep,
                                             unsigned char *shared)
{
    const int M = turn.T * a.B;
    double sums[P_COUNT] = {0};

    if (turn.hyper.norm_adv)
        solo_mean_std(a, state, idx, turn.T);
    for (int first = 0; first < M; first += a.chunk) {
        const int n = M - first < a.chunk ? M - first : a.chunk;
        solo_gather(a, s, idx, first, n);
        solo_forward(a, s, n);
        solo_heads(a, s, n, SOLO_BLOCK / a.chunk);
        solo_loss(a, s, state, n, keep, sums);
        __syncthreads();
        solo_backward(a, s, n, first == 0);
    }
#pragma unroll
    for (int p = 0; p < P_COUNT; p++) {
        sums[p] = num_warp_sum(sums[p]);
        if (s.lane == 0)
            state.loss[s.warp][p] = sums[p];
    }
    __syncthreads();
    solo_judge(a, state, turn);
    solo_optimise(a, s, state, turn, shared);
}

/* The updates of one rollout. */
__device__ static inline void solo_learn(const struct solo_args &a, const struct solo &s, struct solo_state &state,
                                         const struct solo_turn &turn, unsigned char *shared)
{
    const bool keep = a.vtrace && turn.n_minibatches > a.N / a.B;
    int at = a.N;

    if (threadIdx.x == 0) {
        state.stats = (struct kern_stats){};
        state.of_loss = (struct loss){.out = s.out,
                                      .old_logp = s.logp,
                                      .adv = s.adv,
                                      .ret = s.ret,
                                      .old_value = s.value,
                                      .weight = NULL,
                                      .mean_std = state.mean_std,
                                      .actions = s.action,
                                      .mask = NULL,
                                      .hyper = &turn.hyper,
                                      .heads = a.heads_of,
                                      .M = (size_t)a.chunk,
                                      .B = (size_t)a.B,
                                      .inv_m = (float)(1.0 / ((double)turn.T * a.B)),
                                      .n_all = (double)turn.T * a.B};
    }
    for (int i = threadIdx.x; i < turn.T * a.N && a.vtrace; i += SOLO_BLOCK)
        a.log_ratio[i] = 0.0f;
    __syncthreads();
    solo_advantage(a, turn);
    for (int i = 0; i < turn.n_minibatches; i++, at += a.B) {
        if (at + a.B > a.N) {
            if (keep && i > 0)
                solo_advantage(a, turn);
            solo_shuffle(a, s);
            at = 0;
        }
        if (state.stats.stop == 0) /* as everywhere, streams advance after a stop too */
            solo_minibatch(a, s, state, turn, a.perm + at, keep && i + 1 < turn.n_minibatches, shared);
    }
    __syncthreads();
    if (threadIdx.x == 0)
        *a.stats = state.stats;
}

#endif
