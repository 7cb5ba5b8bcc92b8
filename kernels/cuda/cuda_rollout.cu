/* cuda_rollout.cu - a whole rollout in one launch: network, sampling and games of a tile of agents for T steps.
 *
 * Agents are independent of each other, so no step needs a meeting of the whole device. A CTA keeps the weights in shared
 * memory. Each of its groups of H / 16 warps owns a tile of 8, 16 or 32 agents for good: observations, activations,
 * recurrent states and games lie in shared memory and go to global memory only as what the update needs. Groups meet at
 * barriers of their own, so that one plays its games while another multiplies matrices.
 *
 * Warp w of a group owns the hidden units [16 w, 16 w + 16): their rows of the encoder and of all three gates, so that
 * the MinGRU cell stays in its registers. For heads and games the agents are spread over the warps instead: few lanes
 * of each warp play, which keeps games in different branches from waiting for each other.
 *
 * Invariants: (1) every number is that of the single operations, sums in another order: activations and gates are rounded
 * to bf16 where those store them; (2) the order of a sum depends neither on the tile nor on the number of groups;
 * (3) games are compiled without contraction (-fmad=false), as everywhere. */
#include "kernels/cuda/cuda_rollout.cuh"

#include "kernels/cuda/cuda_env.cuh"
#include "kernels/cuda/cuda_mma.cuh"

#include <string.h>

#define ROLLOUT_THREADS 512 /* of a CTA at most */
#define ROLLOUT_OUT 8 /* policy outputs at most: they are half of a block's rows */
#define ROLLOUT_SHARED ((size_t)227 << 10)
#define ROLLOUT_SETTINGS 64

enum rollout_game {
#define ROLLOUT_GAME(game, row_size) ROLLOUT_##game,
    CUDA_ENV_GAMES(ROLLOUT_GAME)
#undef ROLLOUT_GAME
        ROLLOUT_GAMES
};

/* Offsets in shared memory, bytes: of the CTA, then within a group. */
struct rollout_shared {
    uint32_t encoder, core, heads, bias, heads_bias, groups, group_bytes;
    uint32_t obs, x, h, out, games, reset;
};

struct rollout_args {
    struct rollout_shared at;
    const __nv_bfloat16 *encoder_w, *encoder_b, *core_w[KERN_MAX_LAYERS], *core_b[KERN_MAX_LAYERS];
    const float *heads_w, *heads_b;
    const struct kern_hyper *hyper;
    struct rng *rng;
    unsigned *ticket;
    unsigned char *states; /* (N) instances of state_size bytes */
    struct env_log *logs;
    __nv_bfloat16 *obs;
    uint8_t *reset, *terms, *truncs;
    int32_t *actions;
    float *logp, *rewards, *boot, *values, *h;
    size_t N;
    int T, D, obs_steps /* fragments of D columns */, n_layers, n_out, n_groups, game, state_size;
    uint32_t D_inverse; /* ceil(2^32 / D); 0: D is 1 */
    bool mingru, may_truncate;
    enum kern_act act;
    alignas(16) unsigned char settings[ROLLOUT_SETTINGS];
};

/* ---- games: one lane plays one agent ---- */

struct rollout_played {
    float reward, score, perf;
    uint32_t flags; /* 1: terminated, 2: truncated */
};

template <class G>
__device__ __noinline__ struct rollout_played rollout_play_game(const void *settings, void *game, int32_t action,
                                                                __nv_bfloat16 *final_row)
{
    typename G::instance it = *(typename G::instance *)game;
    struct rollout_played played;
    struct env_step step;
    uint8_t term, trunc;

    G::play((const typename G::settings *)settings, &it, &action, &played.reward, &term, &trunc, &step);
    if (trunc)
        cuda_env_row<G, __nv_bfloat16>((const typename G::settings *)settings, &it, final_row);
    *(typename G::instance *)game = it;
    played.score = step.score;
    played.perf = step.perf;
    played.flags = (uint32_t)term | (uint32_t)trunc << 1;
    return played;
}

template <class G>
__device__ __noinline__ void rollout_next_game(const void *settings, void *game, struct env_log *log,
                                               struct rollout_played played, __nv_bfloat16 *row)
{
    typename G::instance it = *(typename G::instance *)game;

    if (played.flags != 0) {
        struct env_step step = {};
        step.score = played.score;
        step.perf = played.perf;
        G::end((const typename G::settings *)settings, &it, log, &step);
        *(typename G::instance *)game = it;
    }
    cuda_env_row<G, __nv_bfloat16>((const typename G::settings *)settings, &it, row);
}

__device__ static inline struct rollout_played rollout_play(const struct rollout_args &a, void *game, int32_t action,
                                                            __nv_bfloat16 *final_row)
{
    switch (a.game) {
#define ROLLOUT_GAME(name, row_size)                                                                                   \
    case ROLLOUT_##name:                                                                                               \
        return rollout_play_game<cuda_game_##name>(a.settings, game, action, final_row);
        CUDA_ENV_GAMES(ROLLOUT_GAME)
#undef ROLLOUT_GAME
    }
    return {};
}

/* After a step: begins the next episode where one ended; row: what the next decision sees. */
__device__ static inline void rollout_next(const struct rollout_args &a, void *game, struct env_log *log,
                                           struct rollout_played played, __nv_bfloat16 *row)
{
    switch (a.game) {
#define ROLLOUT_GAME(name, row_size)                                                                                   \
    case ROLLOUT_##name:                                                                                               \
        rollout_next_game<cuda_game_##name>(a.settings, game, log, played, row);                                       \
        break;
        CUDA_ENV_GAMES(ROLLOUT_GAME)
#undef ROLLOUT_GAME
    }
}

/* ---- the network ---- */

/* A group's place, the same in all its threads but for thread, warp and lane. */
template <int H, int NT> struct rollout_group {
    static const int threads = 2 * H, warps = H / MMA_ROWS, agents = NT * MMA_TOKENS;
    static const int played = agents > warps ? agents / warps : 1; /* agents whose games a warp plays */
    static const int out_blocks =
        played > MMA_TOKENS ? played / MMA_TOKENS : 1; /* of outputs that it computes for them */
    static const int x_stride = H + MMA_PAD;
    int index, thread, warp, lane;
    size_t first; /* of its agents */
    int n; /* agents that exist: the last tile may be cut */
    __nv_bfloat16 *obs, *x; /* (agents, obs_stride), (2, agents, x_stride) */
    float4 *h; /* (n_layers, NT, threads): a lane's elements of a block */
    float *out; /* (out_blocks * 8, ROLLOUT_OUT) of this warp */
    unsigned char *games;
    uint8_t *reset; /* (agents) */
    int obs_stride;
};

template <int H, int NT> __device__ static inline void rollout_sync(const rollout_group<H, NT> &s)
{
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(s.index + 1), "n"(2 * H) : "memory");
}

/* Does any thread of the group say so? */
template <int H, int NT> __device__ static inline bool rollout_any(const rollout_group<H, NT> &s, bool mine)
{
    uint32_t any;

    asm volatile(
        "{ .reg .pred p, q; setp.ne.u32 p, %1, 0; barrier.cta.red.aligned.or.pred q, %2, %3, p; selp.u32 %0, 1, 0, q; }"
        : "=r"(any)
        : "r"((uint32_t)mine), "r"(s.index + 1), "n"(2 * H)
        : "memory");
    return any != 0;
}

__device__ static inline float rollout_act(float x, enum kern_act act)
{
    return act == KERN_ACT_RELU ? (x < 0.0f ? 0.0f : x) : act == KERN_ACT_TANH ? tanhf(x) : x;
}

__device__ static inline float rollout_exp2_capped(float x) /* NaN stays NaN */
{
    float y;
    asm("min.NaN.f32 %0, %1, 0f42200000;" : "=f"(x) : "f"(x)); /* 40 */
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* The MinGRU cell. Its three sigmoids share one reciprocal: the special function unit is what bounds it. e^-x is cut off at
 * 2^40, so that the product of three stays finite; the sigmoid is then 1e-12. Returns out; *h is carried. */
__device__ static inline float rollout_cell(float a, float g, float p, float x, float *h)
{
    const float log2e = 1.44269504f;
    float ea = 1.0f + rollout_exp2_capped(-log2e * a);
    float eg = 1.0f + rollout_exp2_capped(-log2e * g);
    float ep = 1.0f + rollout_exp2_capped(-log2e * p);
    float gp = eg * ep, r;

    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(ea * gp));
    float ra = r * ea;
    float c = a >= 0.0f ? a + 0.5f : r * gp;
    float now = fmaf(ra * ep, c - *h, *h);
    *h = now;
    return fmaf(ra * eg, now - x, x);
}

/* Weights, biases and heads from global memory, by all threads of the CTA. */
template <int H> __device__ static inline void rollout_load_weights(const struct rollout_args &a, unsigned char *shared)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n_warps = blockDim.x / 32;
    const int steps = H / MMA_K, gates = a.mingru ? 3 : 1;
    uint4 *encoder = (uint4 *)(shared + a.at.encoder), *core = (uint4 *)(shared + a.at.core);
    uint4 *heads = (uint4 *)(shared + a.at.heads);
    float *bias = (float *)(shared + a.at.bias), *heads_bias = (float *)(shared + a.at.heads_bias);

#pragma unroll 4
    for (int i = warp; i < H / MMA_ROWS * a.obs_steps; i += n_warps)
        encoder[i * 32 + lane] =
            mma_fragment(a.encoder_w, (size_t)(i / a.obs_steps * MMA_ROWS), i % a.obs_steps * MMA_K, a.D, lane);
    for (int l = 0; l < a.n_layers; l++) /* (warp, gate, step) */
#pragma unroll 4
        for (int i = warp; i < H / MMA_ROWS * gates * steps; i += n_warps) {
            int unit = i / (gates * steps) * MMA_ROWS, gate = i / steps % gates;
            core[(l * (H / MMA_ROWS) * gates * steps + i) * 32 + lane] =
                mma_fragment(a.core_w[l], (size_t)(gate * H + unit), i % steps * MMA_K, H, lane);
        }
    for (int i = threadIdx.x; i < H; i += blockDim.x)
        bias[i] = __bfloat162float(a.encoder_b[i]);
    for (int l = 0; l < a.n_layers && !a.mingru; l++)
        for (int i = threadIdx.x; i < H; i += blockDim.x)
            bias[(1 + l) * H + i] = __bfloat162float(a.core_b[l][i]);

    /* Heads in f32: a weight is the sum of three bf16. Rows 0-7 of a fragment: first parts, 8-15: second; then third. */
    for (int i = threadIdx.x; i < steps * 32; i += blockDim.x) {
        uint4 high = make_uint4(0, 0, 0, 0), low = make_uint4(0, 0, 0, 0);
        for (int j = 0; j < 4; j++) {
            int out = i % 32 / 4, col = i / 32 * MMA_K + i % 4 * 2 + j % 2 + j / 2 * 8;
            float w = out < a.n_out ? a.heads_w[(size_t)out * H + col] : 0.0f;
            __nv_bfloat16 first = __float2bfloat16_rn(w);
            __nv_bfloat16 second = __float2bfloat16_rn(w - __bfloat162float(first));
            __nv_bfloat16 third = __float2bfloat16_rn(w - __bfloat162float(first) - __bfloat162float(second));
            uint32_t shift = j % 2 * 16;
            *(j < 2 ? &high.x : &high.z) |= (uint32_t)__bfloat16_as_ushort(first) << shift;
            *(j < 2 ? &high.y : &high.w) |= (uint32_t)__bfloat16_as_ushort(second) << shift;
            *(j < 2 ? &low.x : &low.z) |= (uint32_t)__bfloat16_as_ushort(third) << shift;
        }
        heads[i / 32 * 64 + i % 32] = high;
        heads[i / 32 * 64 + 32 + i % 32] = low;
    }
    if (threadIdx.x < ROLLOUT_OUT)
        heads_bias[threadIdx.x] = (int)threadIdx.x < a.n_out ? a.heads_b[threadIdx.x] : 0.0f;
}

/* The tile's observations to slot `slot` of the global tensor: whole rows, so one piece of memory. */
template <int H, int NT>
__device__ static inline void rollout_store_obs(const struct rollout_args &a, const rollout_group<H, NT> &s, int slot)
{
    __nv_bfloat16 *dst = a.obs + ((size_t)slot * a.N + s.first) * (size_t)a.D;
    const int total = s.n * a.D;

    if (a.D % 2 == 0 && (uintptr_t)dst % 16 == 0 && total % 8 == 0) {
        for (int e = s.thread * 8; e < total; e += s.threads * 8) {
            int row = (int)__umulhi((uint32_t)e, a.D_inverse), col = e - row * a.D;
            uint32_t w[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                w[i] = *(const uint32_t *)(s.obs + row * s.obs_stride + col);
                col += 2;
                if (col == a.D) {
                    col = 0;
                    row++;
                }
            }
            *(uint4 *)(dst + e) = make_uint4(w[0], w[1], w[2], w[3]);
        }
    } else {
        for (int e = s.thread; e < total; e += s.threads) {
            int row = a.D == 1 ? e : (int)__umulhi((uint32_t)e, a.D_inverse);
            dst[e] = s.obs[row * s.obs_stride + e - row * a.D];
        }
    }
}

/* One MinGRU layer from the tile's activations x. own: this warp's 16 units of the tile's activations, as stored. */
template <int H, int NT>
__device__ static inline void rollout_mingru(const struct rollout_args &a, const rollout_group<H, NT> &s,
                                             const uint4 *w, float4 *h, const __nv_bfloat16 *x, uint32_t (&own)[NT][2],
                                             bool keep, bool may_reset)
{
    float sum[3][NT][4] = {};

    mma_tile<3, NT>(sum, w, mma_load_at(x, s.x_stride, s.lane), s.x_stride, H / MMA_K, s.lane);
#pragma unroll
    for (int n = 0; n < NT; n++) {
        uint32_t ended = may_reset ? *(const uint16_t *)(s.reset + n * MMA_TOKENS + s.lane % 4 * 2) : 0;
        float4 was = h[n * s.threads + s.thread];
        float state[4] = {ended & 0xffu ? 0.0f : was.x, ended & 0xff00u ? 0.0f : was.y, ended & 0xffu ? 0.0f : was.z,
                          ended & 0xff00u ? 0.0f : was.w};
        float y[4];
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
            uint32_t ga = mma_pack(sum[0][n][i], sum[0][n][i + 1]), gg = mma_pack(sum[1][n][i], sum[1][n][i + 1]);
            uint32_t gp = mma_pack(sum[2][n][i], sum[2][n][i + 1]);
            y[i] = rollout_cell(mma_low(ga), mma_low(gg), mma_low(gp), mma_low(own[n][i / 2]), &state[i]);
            y[i + 1] = rollout_cell(mma_high(ga), mma_high(gg), mma_high(gp), mma_high(own[n][i / 2]), &state[i + 1]);
        }
        if (keep)
            h[n * s.threads + s.thread] = make_float4(state[0], state[1], state[2], state[3]);
        own[n][0] = mma_pack(y[0], y[1]);
        own[n][1] = mma_pack(y[2], y[3]);
    }
}

template <int H, int NT>
__device__ static inline void rollout_linear(const struct rollout_args &a, const rollout_group<H, NT> &s,
                                             const uint4 *w, const float *bias, const __nv_bfloat16 *x, int stride,
                                             int k_steps, uint32_t (&own)[NT][2])
{
    float sum[1][NT][4] = {};
    float low = bias[s.warp * MMA_ROWS + s.lane / 4], high = bias[s.warp * MMA_ROWS + s.lane / 4 + 8];

    mma_tile<1, NT>(sum, w, mma_load_at(x, stride, s.lane), stride, k_steps, s.lane);
#pragma unroll
    for (int n = 0; n < NT; n++) {
        own[n][0] = mma_pack(rollout_act(sum[0][n][0] + low, a.act), rollout_act(sum[0][n][1] + low, a.act));
        own[n][1] = mma_pack(rollout_act(sum[0][n][2] + high, a.act), rollout_act(sum[0][n][3] + high, a.act));
    }
}

/* From the tile's observations to the last layer's activations, which are returned. keep: the recurrent states advance. */
template <int H, int NT>
__device__ static inline const __nv_bfloat16 *rollout_forward(const struct rollout_args &a,
                                                              const rollout_group<H, NT> &s, unsigned char *shared,
                                                              bool keep, bool may_reset)
{
    const int steps = H / MMA_K, gates = a.mingru ? 3 : 1;
    const float *bias = (const float *)(shared + a.at.bias);
    const uint4 *encoder = (const uint4 *)(shared + a.at.encoder) + s.warp * a.obs_steps * 32;
    const uint4 *core = (const uint4 *)(shared + a.at.core) + s.warp * gates * steps * 32;
    uint32_t own[NT][2];
    __nv_bfloat16 *x = s.x;

    rollout_linear<H, NT>(a, s, encoder, bias, s.obs, s.obs_stride, a.obs_steps, own);
    for (int l = 0;; l++) {
        uint32_t at = mma_store_at(x + s.warp * MMA_ROWS, s.x_stride, s.lane);
#pragma unroll
        for (int n = 0; n < NT; n++)
            mma_store(at + (uint32_t)(n * MMA_TOKENS * s.x_stride * 2), own[n][0], own[n][1]);
        rollout_sync(s);
        if (l == a.n_layers)
            return x;
        const uint4 *w = core + l * (H / MMA_ROWS) * gates * steps * 32;
        if (a.mingru)
            rollout_mingru<H, NT>(a, s, w, s.h + l * NT * s.threads, x, own, keep, may_reset);
        else
            rollout_linear<H, NT>(a, s, w, bias + (1 + l) * H, x, s.x_stride, steps, own);
        x = x == s.x ? s.x + s.agents * s.x_stride : s.x;
    }
}

/* s.out = outputs of the agents that this warp plays, and their neighbours in the block. */
template <int H, int NT>
__device__ static inline void rollout_heads(const struct rollout_args &a, const rollout_group<H, NT> &s,
                                            unsigned char *shared, const __nv_bfloat16 *x)
{
    const uint4 *heads = (const uint4 *)(shared + a.at.heads) + s.lane;
    const int first = s.warp * s.played / MMA_TOKENS * MMA_TOKENS, out = s.lane / 4, token = s.lane % 4 * 2;
    const float bias = ((const float *)(shared + a.at.heads_bias))[out];

    if (s.warp * s.played >= s.agents)
        return;
#pragma unroll
    for (int i = 0; i < s.out_blocks; i++) {
        float high[4] = {}, low[4] = {};
        uint32_t at = mma_load_at(x + (first + i * MMA_TOKENS) * s.x_stride, s.x_stride, s.lane);
#pragma unroll
        for (int k = 0; k < H / MMA_K; k += 2) {
            uint32_t b[4];
            mma_load(b, at + (uint32_t)(k * MMA_K * 2));
            mma_add(high, heads[k * 64], b[0], b[1]);
            mma_add(low, heads[k * 64 + 32], b[0], b[1]);
            mma_add(high, heads[k * 64 + 64], b[2], b[3]);
            mma_add(low, heads[k * 64 + 96], b[2], b[3]);
        }
        s.out[(i * MMA_TOKENS + token) * ROLLOUT_OUT + out] = high[0] + (high[2] + low[0]) + bias;
        s.out[(i * MMA_TOKENS + token + 1) * ROLLOUT_OUT + out] = high[1] + (high[3] + low[1]) + bias;
    }
    __syncwarp();
}

/* ---- acting ---- */

/* The choice at which the cumulative probability passes u, as the sample operation draws it; NaN is taken up. */
__device__ static inline int rollout_sample(const float *logits, int n, float u, float *ret_logp)
{
    float top = -INFINITY, sum = 0.0f, cumulative = 0.0f;
    int a = 0;

    for (int i = 0; i < n; i++)
        top = !(logits[i] <= top) ? logits[i] : top;
    for (int i = 0; i < n; i++)
        sum += expf(logits[i] - top);
    float log_sum = top + logf(sum);
    for (a = 0; a < n - 1; a++) {
        cumulative += expf(logits[a] - log_sum);
        if (cumulative > u)
            break;
    }
    *ret_logp = logits[a] - log_sum;
    return a;
}

__device__ static inline float rollout_clip(float x, float clip)
{
    if (!(clip > 0.0f))
        return x;
    x = x > clip ? clip : x;
    return x < -clip ? -clip : x;
}

/* ---- the whole ---- */

template <int H, int NT>
__device__ static inline rollout_group<H, NT> rollout_place(const struct rollout_args &a, unsigned char *shared)
{
    rollout_group<H, NT> s;

    s.index = threadIdx.x / s.threads;
    s.thread = threadIdx.x % s.threads;
    s.warp = s.thread / 32;
    s.lane = s.thread % 32;
    s.first = ((size_t)blockIdx.x * (size_t)a.n_groups + (size_t)s.index) * (size_t)s.agents;
    s.n = s.first >= a.N ? 0 : a.N - s.first < (size_t)s.agents ? (int)(a.N - s.first) : s.agents;
    unsigned char *base = shared + a.at.groups + (uint32_t)s.index * a.at.group_bytes;
    s.obs = (__nv_bfloat16 *)(base + a.at.obs);
    s.x = (__nv_bfloat16 *)(base + a.at.x);
    s.h = (float4 *)(base + a.at.h);
    s.out = (float *)(base + a.at.out) + s.warp * s.out_blocks * MMA_TOKENS * ROLLOUT_OUT;
    s.games = base + a.at.games;
    s.reset = base + a.at.reset;
    s.obs_stride = a.obs_steps * MMA_K + MMA_PAD;
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
    for (int e = s.thread; e < s.agents * s.obs_stride; e += s.threads) {
        int row = e / s.obs_stride, col = e % s.obs_stride;
        s.obs[e] = row < s.n && col < a.D ? a.obs[(s.first + (size_t)row) * (size_t)a.D + (size_t)col]
                                          : __ushort_as_bfloat16(0);
    }
    for (int i = s.thread; i < s.agents; i += s.threads)
        s.reset[i] = i < s.n ? a.reset[s.first + (size_t)i] : 0;
    rollout_move_h(a, s, false);
    rollout_move_games(a, s, false);
}

template <int H, int NT>
__global__ void __launch_bounds__(ROLLOUT_THREADS, 1) rollout_k(const __grid_constant__ struct rollout_args a)
{
    extern __shared__ __align__(16) unsigned char shared[];
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

    /* A lane that draws has one agent; the others of the warp draw for it ahead: one block of random numbers a lane. */
    const int local = s.warp * s.played + s.lane % s.played, ahead = 32 / s.played;
    const size_t agent = s.first + (size_t)local;
    const bool plays = s.lane < s.played && local < s.n;
    struct rng stream = rng_split(root, agent);
    const float clip = a.hyper->reward_clip;
    float *out = s.out + (local % (s.out_blocks * MMA_TOKENS)) * ROLLOUT_OUT;
    __nv_bfloat16 *row = s.obs + local * s.obs_stride;
    void *game = s.games + local * a.state_size;
    float draws = 0.0f;

    for (int t = 0; t < a.T; t++) {
        const size_t at = (size_t)t * a.N + agent;
        struct rollout_played played = {};

        if (t > 0)
            rollout_store_obs(a, s, t);
        rollout_heads(a, s, shared, rollout_forward(a, s, shared, true, true));
        if (t % ahead == 0) {
            stream.counter = root.counter + (uint64_t)(t + s.lane / s.played);
            draws = rng_f32(&stream);
        }
        float u = __shfl_sync(0xffffffffu, draws, t % ahead * s.played + s.lane % s.played);
        if (plays) {
            float logp;
            int action = rollout_sample(out, a.n_out - 1, u, &logp);
            played = rollout_play(a, game, action, row);
            a.actions[at] = action;
            a.logp[at] = logp;
            a.values[at] = out[a.n_out - 1];
            a.rewards[at] = rollout_clip(played.reward, clip);
            a.terms[at] = (uint8_t)(played.flags & 1u);
            a.truncs[at] = (uint8_t)(played.flags >> 1);
            a.reset[at + a.N] = played.flags != 0;
        }
        __syncwarp();
        if (a.may_truncate && rollout_any(s, (played.flags & 2u) != 0)) {
            rollout_heads(a, s, shared, rollout_forward(a, s, shared, false, false));
            if (plays && (played.flags & 2u))
                a.boot[at] = out[a.n_out - 1];
        }
        if (plays) {
            rollout_next(a, game, a.logs + agent, played, row);
            s.reset[local] = played.flags != 0;
        }
        __syncwarp();
        rollout_sync(s);
    }
    rollout_store_obs(a, s, a.T);
    rollout_move_h(a, s, true);
    rollout_move_games(a, s, true);
    rollout_heads(a, s, shared, rollout_forward(a, s, shared, false, true));
    if (plays)
        a.values[(size_t)a.T * a.N + agent] = out[a.n_out - 1];
}

/* ---- launch ---- */

static uint32_t rollout_take(uint32_t *at, size_t bytes)
{
    uint32_t here = *at;
    *at += (uint32_t)((bytes + 15) / 16 * 16);
    return here;
}

/* Where everything lies; returns the bytes of shared memory in all. */
static size_t rollout_lay(struct rollout_args *a, size_t H, size_t n_blocks)
{
    struct rollout_shared *at = &a->at;
    const size_t warps = H / MMA_ROWS, agents = n_blocks * MMA_TOKENS, steps = H / MMA_K;
    const size_t played = agents > warps ? agents / warps : 1, L = (size_t)a->n_layers;
    const size_t out_rows = played > MMA_TOKENS ? played : MMA_TOKENS;
    uint32_t n = 0, in_group = 0;

    at->encoder = rollout_take(&n, warps * (size_t)a->obs_steps * 32 * sizeof(uint4));
    at->core = rollout_take(&n, L * (a->mingru ? 3 : 1) * warps * steps * 32 * sizeof(uint4));
    at->heads = rollout_take(&n, steps * 64 * sizeof(uint4));
    at->bias = rollout_take(&n, (a->mingru ? 1 : 1 + L) * H * sizeof(float));
    at->heads_bias = rollout_take(&n, ROLLOUT_OUT * sizeof(float));
    at->groups = n;
    at->obs = rollout_take(&in_group, agents * ((size_t)a->obs_steps * MMA_K + MMA_PAD) * sizeof(__nv_bfloat16));
    at->x = rollout_take(&in_group, 2 * agents * (H + MMA_PAD) * sizeof(__nv_bfloat16));
    at->h = rollout_take(&in_group, a->mingru ? L * agents * H * sizeof(float) : 0);
    at->out = rollout_take(&in_group, warps * out_rows * ROLLOUT_OUT * sizeof(float));
    at->games = rollout_take(&in_group, agents * (size_t)a->state_size);
    at->reset = rollout_take(&in_group, agents);
    at->group_bytes = in_group;
    return (size_t)n + (size_t)a->n_groups * in_group;
}

typedef void rollout_kernel(const struct rollout_args a);

template <int H> static rollout_kernel *rollout_kernel_of(int n_blocks)
{
    return n_blocks == 1 ? rollout_k<H, 1> : n_blocks == 2 ? rollout_k<H, 2> : rollout_k<H, 4>;
}

static rollout_kernel *rollout_kernel_at(size_t H, int n_blocks)
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

static int rollout_game_of(const struct cuda_env *env)
{
#define ROLLOUT_GAME(game, row_size)                                                                                   \
    if (cuda_env_is(env, game))                                                                                        \
        return ROLLOUT_##game;
    CUDA_ENV_GAMES(ROLLOUT_GAME)
#undef ROLLOUT_GAME
    return ROLLOUT_GAMES;
}

/* Is this a net and a game for one launch? Fills all but the layout. */
static bool rollout_fill(struct rollout_args *a, const struct kern_rollout *r)
{
    const struct kern_net *net = r->net;
    const struct cuda_env *env = cuda_env_of(r->env);
    const __nv_bfloat16 *w = (const __nv_bfloat16 *)r->weights;

    a->game = rollout_game_of(env);
    if (a->game == ROLLOUT_GAMES || net->core == KERN_CORE_LSTM || env->shape.n_agents != 1 || env->shape.has_mask ||
        r->mask != NULL || net->heads.n_heads != 1 || net->heads.n_logits >= ROLLOUT_OUT || r->T < 1 ||
        r->T > 1 << 20 || net->obs_size > 8192 || net->n_layers > KERN_MAX_LAYERS ||
        env->def->options.settings_size > ROLLOUT_SETTINGS || env->def->state_size % 8 != 0)
        return false;
    a->N = r->N;
    a->T = (int)r->T;
    a->D = (int)net->obs_size;
    a->obs_steps = (a->D + 2 * MMA_K - 1) / (2 * MMA_K) * 2;
    a->D_inverse = a->D == 1 ? 0 : (uint32_t)(((uint64_t)1 << 32) / (uint64_t)a->D + 1);
    a->n_layers = net->core == KERN_CORE_NONE ? 0 : (int)net->n_layers;
    a->n_out = net->heads.n_logits + 1;
    a->mingru = net->core == KERN_CORE_MINGRU;
    a->may_truncate = env->shape.may_truncate;
    a->act = net->act;
    a->state_size = (int)env->def->state_size;
    memcpy(a->settings, env->settings, env->def->options.settings_size);
    a->encoder_w = w + net->encoder_w;
    a->encoder_b = w + net->encoder_b;
    for (int l = 0; l < a->n_layers; l++) {
        a->core_w[l] = w + net->core_w[l];
        a->core_b[l] = w + net->core_b[l];
    }
    a->heads_w = r->params + net->heads_w;
    a->heads_b = r->params + net->heads_b;
    a->hyper = r->hyper;
    a->rng = r->rng;
    a->states = (unsigned char *)env->states;
    a->logs = env->logs;
    a->obs = (__nv_bfloat16 *)r->obs;
    a->reset = r->reset;
    a->terms = r->terms;
    a->truncs = r->truncs;
    a->actions = r->actions;
    a->logp = r->logp;
    a->rewards = r->rewards;
    a->boot = r->boot;
    a->values = r->values;
    a->h = r->h;
    return true;
}

static int rollout_groups_max(size_t H)
{
    return (int)(ROLLOUT_THREADS / (2 * H));
}

/* The smallest tile that gives every multiprocessor work, two groups of it if possible: one plays, one multiplies. */
static bool rollout_choose(struct rollout_args *a, size_t H, int n_sm, int *ret_blocks)
{
    const size_t per_sm = (a->N + (size_t)n_sm - 1) / (size_t)n_sm;
    int blocks = per_sm <= 8 ? 1 : per_sm <= 32 ? 2 : 4;

    for (; blocks >= 1; blocks /= 2) {
        int most = rollout_groups_max(H);
        int want = (int)((per_sm + (size_t)blocks * 8 - 1) / ((size_t)blocks * 8));
        for (a->n_groups = want < most ? want : most; a->n_groups >= 1; a->n_groups--)
            if (rollout_lay(a, H, (size_t)blocks) <= ROLLOUT_SHARED) {
                *ret_blocks = blocks;
                return true;
            }
    }
    return false;
}

extern "C" bool cuda_rollout_tiled(struct kern *k, const struct kern_rollout *r, int n_blocks, int n_groups)
{
    struct cuda *cuda = cuda_of(k);
    const size_t H = r->net->width;
    rollout_kernel *kernel = rollout_kernel_at(H, n_blocks > 0 ? n_blocks : 1);
    struct rollout_args a = {};

    if (kernel == NULL || !rollout_fill(&a, r))
        return false;
    a.ticket = cuda->tickets;
    a.n_groups = n_groups;
    if (n_blocks == 0 && !rollout_choose(&a, H, cuda->n_sm, &n_blocks))
        return false;
    const size_t shared = rollout_lay(&a, H, (size_t)n_blocks);
    if (shared > ROLLOUT_SHARED || a.n_groups > rollout_groups_max(H))
        return false;
    kernel = rollout_kernel_at(H, n_blocks);
    const size_t agents = (size_t)(n_blocks * MMA_TOKENS * a.n_groups);
    const unsigned n_ctas = (unsigned)((a.N + agents - 1) / agents);

    /* the most there is, not what this shape takes: the attribute is the process's, and other threads launch the kernel too */
    cuda_check(k, cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)ROLLOUT_SHARED),
               "rollout");
    kernel<<<n_ctas, (unsigned)(2 * H) * (unsigned)a.n_groups, shared, cuda->stream>>>(a);
    cuda_launched(k, "rollout");
    return true;
}

extern "C" bool cuda_rollout_bf16(struct kern *k, const struct kern_rollout *r)
{
    return cuda_rollout_tiled(k, r, 0, 0);
}

/* In f32 the single operations play: their sums are exact to 1e-5, which tensor cores are not. */
extern "C" bool cuda_rollout_f32(struct kern *k, const struct kern_rollout *r)
{
    (void)k;
    (void)r;
    return false;
}
