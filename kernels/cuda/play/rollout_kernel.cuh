/* rollout_kernel.cuh - the kernel of a rollout in one launch (private to kernels/cuda; rollout.cu says how it works).
 * Its includer has the games, ENV_GAMES. */
#ifndef KERNELS_CUDA_ROLLOUT_KERNEL_CUH
#define KERNELS_CUDA_ROLLOUT_KERNEL_CUH

#include "kernels/cuda/play/rollout_net.cuh"

#define ROLLOUT_THREADS 512 /* of a CTA at most */

template <int H, int NT>
__device__ static inline rollout_group<H, NT> rollout_place(const struct rollout_args &a, unsigned char *shared)
{
    rollout_group<H, NT> s;

    /* The shuffle tells the compiler that a warp agrees on this: warpgroups multiply in what it holds for one path. */
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
    s.index = warp / s.warps;
    s.warp = warp % s.warps;
    s.thread = threadIdx.x % s.threads;
    s.lane = threadIdx.x % 32;
    s.first = ((size_t)blockIdx.x * (size_t)a.n_groups + (size_t)s.index) * (size_t)s.agents;
    s.n = s.first >= a.N ? 0 : a.N - s.first < (size_t)s.agents ? (int)(a.N - s.first) : s.agents;
    unsigned char *base = shared + a.at.groups + (uint32_t)s.index * a.at.group_bytes;
    s.rows = (__nv_bfloat16 *)(base + a.at.rows);
    s.obs = base + a.at.obs;
    s.x = base + a.at.x;
    s.h = (float4 *)(base + a.at.h);
    s.out = (float *)(base + a.at.out) + s.warp * s.out_blocks * MMA_TOKENS * ROLLOUT_OUT;
    s.games = base + a.at.games;
    s.reset = base + a.at.reset;
    return s;
}

/* Recurrent states between global memory (L, N, H) and s.h. */
template <int H, int NT>
__device__ static inline void rollout_move_h(const struct rollout_args &a, const rollout_group<H, NT> &s, bool store)
{
    const int unit = s.warp * MMA_ROWS + s.lane / 4;

    for (int l = 0; l < a.n_layers && a.mingru; l++)
        for (int n = 0; n < NT; n++) {
            float *mine = (float *)&s.h[(l * NT + n) * s.threads + s.thread];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                int agent = n * MMA_TOKENS + s.lane % 4 * 2 + i % 2;
                float *there = a.h + ((size_t)l * a.N + s.first + (size_t)agent) * H + unit + i / 2 * 8;
                if (store && agent < s.n)
                    *there = mine[i];
                else if (!store)
                    mine[i] = agent < s.n ? *there : 0.0f;
            }
        }
}

/* Instances between global memory and s.games; in 8 bytes, which every instance is a multiple of. */
template <int H, int NT>
__device__ static inline void rollout_move_games(const struct rollout_args &a, const rollout_group<H, NT> &s,
                                                 bool store)
{
    uint64_t *there = (uint64_t *)(a.states + s.first * (size_t)a.state_size), *here = (uint64_t *)s.games;

    for (int i = s.thread; i < s.n * a.state_size / 8; i += s.threads) {
        if (store)
            there[i] = here[i];
        else
            here[i] = there[i];
    }
}

template <int H, int NT>
__device__ static inline void rollout_begin(const struct rollout_args &a, const rollout_group<H, NT> &s)
{
    const __nv_bfloat16 *obs = a.obs + s.first * (size_t)a.D;

    for (int i = s.thread; i < s.n * a.D; i += s.threads)
        s.rows[i] = obs[i];
    for (int i = s.thread; i < s.agents * a.obs_steps * MMA_K / 8; i += s.threads)
        ((uint4 *)s.obs)[i] = make_uint4(0, 0, 0, 0); /* agents that do not exist, too */
    for (int i = s.thread; i < s.agents; i += s.threads)
        s.reset[i] = i < s.n ? a.reset[s.first + (size_t)i] : 0;
    rollout_move_h(a, s, false);
    rollout_move_games(a, s, false);
}

template <int H, int NT>
__global__ void __launch_bounds__(ROLLOUT_THREADS, 1) rollout_k(const __grid_constant__ struct rollout_args a)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL /* elsewhere nothing: see cuda_rollout_tiled */
    extern __shared__ __align__(128) unsigned char shared[];
    const rollout_group<H, NT> s = rollout_place<H, NT>(a, shared);
    const struct rng root = *a.rng;

    rollout_load_weights<H>(a, shared);
    if (s.n > 0)
        rollout_begin(a, s);
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        if (atomicInc(a.ticket, gridDim.x - 1) == gridDim.x - 1) /* every CTA has read the counter */
            a.rng->counter = root.counter + (uint64_t)a.T;
    }
    if (s.n == 0)
        return;
    rollout_spread(a, s);
    rollout_sync(s);

    /* A lane that draws has one agent; the others of the warp draw for it ahead: one block of random numbers a lane. */
    const int local = s.warp * s.played + s.lane % s.played, ahead = 32 / s.played;
    const size_t agent = s.first + (size_t)local;
    const float clip = a.hyper->reward_clip;
    const float *out = s.out + (local % (s.out_blocks * MMA_TOKENS)) * ROLLOUT_OUT;
    struct rng stream = rng_split(root, a.first + agent);
    struct rollout_seat seat;
    float draws = 0.0f;

    seat.settings = a.settings;
    seat.game = s.games + local * a.state_size;
    seat.log = a.logs + agent;
    seat.row = s.rows + local * a.D;
    seat.rows = s.rows + s.warp * s.played * a.D;
    seat.plays = s.lane < s.played && local < s.n;
    for (int t = 0;; t++) {
        const size_t at = (size_t)t * a.N + agent;
        struct rollout_played played;
        float logp = 0.0f;
        int action = 0;

        if (t > 0)
            rollout_store_rows(a, s, t);
        rollout_heads(a, s, shared, rollout_forward(a, s, shared, t < a.T, true));
        if (seat.plays)
            a.values[at] = out[a.n_out - 1];
        if (t == a.T)
            break;
        if (t % ahead == 0) {
            stream.counter = root.counter + (uint64_t)(t + s.lane / s.played);
            draws = rng_f32(&stream);
        }
        float u = __shfl_sync(0xffffffffu, draws, t % ahead * s.played + s.lane % s.played);
        if (seat.plays)
            action = rollout_sample(out, a.n_out - 1, u, &logp);
        __syncwarp();
        played = rollout_step(a.game, seat, action);
        if (seat.plays) {
            a.actions[at] = action;
            a.logp[at] = logp;
            a.rewards[at] = rollout_clip(played.reward, clip);
            a.terms[at] = (uint8_t)(played.flags & 1u);
            a.truncs[at] = (uint8_t)(played.flags >> 1);
            a.reset[at + a.N] = played.flags != 0;
            s.reset[local] = played.flags != 0;
        }
        __syncwarp();
        rollout_spread(a, s);
        /* value after the episode: of the last observation */
        if (a.may_truncate && rollout_any(s, (played.flags & 2u) != 0)) {
            struct rollout_seat cut = seat;
            cut.plays = (played.flags & 2u) != 0;
            rollout_heads(a, s, shared, rollout_forward(a, s, shared, false, false));
            if (cut.plays)
                a.boot[at] = out[a.n_out - 1];
            __syncwarp();
            rollout_next(a.game, cut, played);
            __syncwarp();
            rollout_spread(a, s);
        }
        rollout_sync(s);
    }
    rollout_move_h(a, s, true);
    rollout_move_games(a, s, true);
    if (s.thread == 0)
        ptx_bulk_wait();
#else
    (void)a;
#endif
}

typedef void rollout_kernel(const struct rollout_args a);

template <int H> static rollout_kernel *rollout_kernel_of(int n_blocks)
{
    return n_blocks == 1 ? rollout_k<H, 1> : n_blocks == 2 ? rollout_k<H, 2> : rollout_k<H, 4>;
}

/* A template, so that a game that fits no tile makes no kernels. */
template <class = void> static rollout_kernel *rollout_kernel_at(size_t H, int n_blocks)
{
    switch (H) {
    case 32:
        return rollout_kernel_of<32>(n_blocks);
    case 64:
        return rollout_kernel_of<64>(n_blocks);
    case 128:
        return rollout_kernel_of<128>(n_blocks);
    case 256:
        return rollout_kernel_of<256>(n_blocks);
    }
    return NULL;
}

#endif
