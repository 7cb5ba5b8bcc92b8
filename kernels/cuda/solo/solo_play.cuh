/* solo_play.cuh - the rollout of a training that one block makes alone (private to kernels/cuda/solo).
 * Agents are taken in chunks; each has some threads of one warp for its heads, and then one thread that plays its game,
 * which lies in global memory. Actions are drawn as by the sample operation. */
#ifndef KERNELS_CUDA_SOLO_PLAY_CUH
#define KERNELS_CUDA_SOLO_PLAY_CUH

#include "kernels/cuda/solo/solo_net.cuh"

/* s.x = rows (n, D) of global memory. */
__device__ static inline void solo_load_rows(const struct solo_args &a, const struct solo &s, const __nv_bfloat16 *rows,
                                             int n)
{
    if (a.D % 2 == 0) {
        const int half = a.D / 2;
        for (int i = threadIdx.x; i < n * half; i += SOLO_BLOCK)
            *(uint32_t *)(s.x + i / half * s.ldx + i % half * 2) = ((const uint32_t *)rows)[i];
    } else {
        for (int i = threadIdx.x; i < n * a.D; i += SOLO_BLOCK)
            s.x[i / a.D * s.ldx + i % a.D] = rows[i];
    }
}

/* The warp's rows [from, to) of s.dy to s.x, and to global memory. */
__device__ static inline void solo_spread(const struct solo_args &a, const struct solo &s, int from, int to)
{
    for (int i = from * a.D + s.lane; i < to * a.D; i += CUDA_WARP)
        s.x[i / a.D * s.ldx + i % a.D] = s.dy[i];
}

__device__ static inline void solo_store_rows(const struct solo_args &a, const struct solo &s, __nv_bfloat16 *rows,
                                              int from, int to)
{
    for (int i = from * a.D + s.lane; i < to * a.D; i += CUDA_WARP)
        rows[i] = s.dy[i];
}

/* Step t of agents [first, first + n); at t == T only their values. s.x has their observations if `kept`, and then gets
 * the next ones. */
__device__ static inline void solo_step(const struct solo_args &a, const struct solo &s, struct rng root, int T, int t,
                                        int first, int n, bool kept, float clip)
{
    const int each = SOLO_BLOCK / a.play_chunk, played = CUDA_WARP / each; /* threads of an agent, agents of a warp */
    const int from = s.warp * played, left = n - from, to = from + (left < 0 ? 0 : left < played ? left : played);
    const int local = from + s.lane, agent = first + local, at = t * a.N + agent;
    const float *out = s.out + local * a.n_out;
    struct rollout_played now;
    struct rollout_seat seat;
    float logp = 0.0f;
    int action = 0;

    if (!kept || t == 0) {
        __syncthreads();
        solo_load_rows(a, s, a.obs + ((size_t)t * a.N + first) * a.D, n);
    }
    solo_forward(a, s, n);
    solo_heads(a, s, n, each);
    seat.settings = a.settings;
    seat.game = a.states + (size_t)agent * a.state_size;
    seat.log = a.logs + agent;
    seat.row = s.dy + local * a.D;
    seat.rows = s.dy + from * a.D;
    seat.plays = local < to;
    if (seat.plays)
        a.values[at] = out[a.n_out - 1];
    if (t == T)
        return;
    if (seat.plays) {
        struct rng stream = rng_split(root, (uint64_t)agent);
        stream.counter = root.counter + (uint64_t)t;
        action = rollout_sample(out, a.n_out - 1, rng_f32(&stream), &logp);
    }
    __syncwarp();
    now = rollout_step(a.game, seat, action);
    if (seat.plays) {
        a.actions[at] = action;
        a.logp[at] = logp;
        a.rewards[at] = rollout_clip(now.reward, clip);
        a.terms[at] = (uint8_t)(now.flags & 1u);
        a.truncs[at] = (uint8_t)(now.flags >> 1);
        a.reset[at + a.N] = now.flags != 0;
    }
    __syncwarp();
    if (a.may_truncate && __syncthreads_or((now.flags & 2u) != 0)) { /* the value of the last observation */
        solo_spread(a, s, from, to);
        solo_forward(a, s, n);
        solo_heads(a, s, n, each);
        seat.plays = (now.flags & 2u) != 0;
        if (seat.plays)
            a.boot[at] = out[a.n_out - 1];
        __syncwarp();
        rollout_next(a.game, seat, now);
        __syncwarp();
    }
    solo_store_rows(a, s, a.obs + ((size_t)(t + 1) * a.N + first) * a.D, from, to);
    if (kept)
        solo_spread(a, s, from, to);
}

/* Observations and resets of slot `from` to slot `to`; ends with a barrier. */
__device__ static inline void solo_move_slot(const struct solo_args &a, int to, int from)
{
    const int n = a.N * a.D;

    __syncthreads();
    for (int i = threadIdx.x; i < n; i += SOLO_BLOCK)
        a.obs[(size_t)to * n + i] = a.obs[(size_t)from * n + i];
    for (int i = threadIdx.x; i < a.N; i += SOLO_BLOCK)
        a.reset[(size_t)to * a.N + i] = a.reset[(size_t)from * a.N + i];
    __syncthreads();
}

/* *a.log = sum of the games' logs, a warp for each number of them; the logs are cleared. */
__device__ static inline void solo_take_logs(const struct solo_args &a, const struct solo &s)
{
    const int numbers = offsetof(struct env_log, limit) / sizeof(double);

    for (int n = s.warp; n < numbers; n += SOLO_WARPS) {
        double sum = 0.0;
        for (int i = s.lane; i < a.N; i += CUDA_WARP) {
            double *number = (double *)(a.logs + i) + n;
            sum += *number;
            *number = 0.0;
        }
        sum = num_warp_sum(sum);
        if (s.lane == 0)
            ((double *)a.log)[n] = sum;
    }
}

/* T steps of all agents. */
__device__ static inline void solo_play(const struct solo_args &a, const struct solo &s, const struct solo_turn &turn)
{
    const struct rng root = *a.rng_sample;
    const bool kept = a.N <= a.play_chunk;

    solo_move_slot(a, 0, a.T);
    for (int t = 0; t <= turn.T; t++)
        for (int first = 0; first < a.N; first += a.play_chunk)
            solo_step(a, s, root, turn.T, t, first, a.N - first < a.play_chunk ? a.N - first : a.play_chunk, kept,
                      turn.hyper.reward_clip);
    if (threadIdx.x == 0)
        a.rng_sample->counter = root.counter + (uint64_t)turn.T;
    if (turn.T != a.T) /* a short one: the next one, of a resumed run, begins where it ended */
        solo_move_slot(a, a.T, turn.T);
    __syncthreads();
    solo_take_logs(a, s);
    __syncthreads();
}

#endif
