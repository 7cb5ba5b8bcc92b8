/* rollout_net.cuh - the policy of one tile of agents within a rollout kernel (private to rollout.cu).
 *
 * Warp w of a group owns the hidden units [16 w, 16 w + 16): their rows of the encoder and of all three gates, so that
 * the MinGRU cell stays in its registers. From 64 units on a group is one or more warpgroups, which multiply straight
 * from shared memory; a group of 32 units has two warps, which multiply on their own (mma.cuh).
 * For heads and games the agents are spread over the warps instead: warp w plays `played` of them, from w * played.
 *
 * Invariants: (1) every number is that of the single operations, sums in another order: activations and gates are
 * rounded to bf16 where those store them; (2) the order of a sum depends neither on the tile nor on the number of
 * groups. */
#ifndef KERNELS_CUDA_ROLLOUT_NET_CUH
#define KERNELS_CUDA_ROLLOUT_NET_CUH

#include "kernels/cuda/gates.cuh"
#include "kernels/cuda/nets/mma.cuh"
#include "kernels/cuda/play/rollout_game.cuh"

#define ROLLOUT_SETTINGS 64

/* Offsets in shared memory, bytes: of the CTA, then within a group. */
struct rollout_shared {
    uint32_t encoder, core, heads, bias, heads_bias, groups, group_bytes;
    uint32_t rows, obs, x, h, out, games, reset;
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
    size_t N, first; /* as of struct kern_rollout */
    int T, D, obs_steps /* of MMA_K columns */, n_layers, n_out, n_groups, game, state_size;
    uint32_t pieces_inverse; /* ceil(2^32 / (2 obs_steps)) */
    bool mingru, may_truncate;
    enum kern_act encoder_act, act;
    alignas(16) unsigned char settings[ROLLOUT_SETTINGS];
};

/* Of all that a library's device code shares with the program. */
#define ENV_DEVICE_LAYOUT                                                                                              \
    ((uint32_t)(sizeof(struct rollout_args) + 3 * offsetof(struct rollout_args, ticket) +                              \
                5 * offsetof(struct rollout_args, settings) + 7 * sizeof(struct env_device_call) +                     \
                11 * sizeof(struct kern_env_io) + 13 * sizeof(struct env_log) + 17 * sizeof(struct kern_hyper) +       \
                19 * sizeof(struct env_device) + 23 * sizeof(struct env_shape)))

/* A group's place, the same in all its threads but for thread, warp and lane. Tensors marked "blocks" are those of
 * mma.cuh. */
template <int H, int NT> struct rollout_group {
    static const int threads = 2 * H, warps = H / MMA_ROWS, agents = NT * MMA_TOKENS;
    static const int played = agents > warps ? agents / warps : 1;
    static const int out_blocks = played > MMA_TOKENS ? played / MMA_TOKENS : 1; /* of outputs, for what a warp plays */
    int index, thread, warp, lane;
    size_t first; /* of its agents */
    int n; /* agents that exist: the last tile may be cut */
    __nv_bfloat16 *rows; /* (agents, D): observations as in global memory */
    unsigned char *obs, *x; /* (agents, K) or (agents, H) blocks, (agents, H) blocks: layers write one and the other */
    float4 *h; /* (n_layers, NT, threads): a lane's elements of a block */
    float *out; /* (out_blocks * 8, ROLLOUT_OUT) of this warp */
    unsigned char *games;
    uint8_t *reset; /* (agents) */
};

template <int H, int NT> __device__ static inline void rollout_sync(const rollout_group<H, NT> &s)
{
    ptx_barrier<2 * H>(s.index + 1);
}

/* Does any thread of the group say so? */
template <int H, int NT> __device__ static inline bool rollout_any(const rollout_group<H, NT> &s, bool mine)
{
    return __any_sync(0xffffffffu,
                      ptx_barrier_any<2 * H>(s.index + 1, mine)); /* all say the same; the compiler has to know */
}

/* ---- weights ---- */

/* A matrix of `rows` rows of H units each (the gates) and K columns: (H / 64 or 16, rows, k_steps) tiles. */
template <int H>
__device__ static inline void rollout_load_matrix(unsigned char *to, const __nv_bfloat16 *w, int rows, int k_steps,
                                                  int K)
{
    if constexpr (H >= 64) { /* warpgroups: 16 bytes of a row at a time */
        const int n = H / 64 * rows * k_steps * 128;
#pragma unroll 4
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            int half = i % 2, row = i / 2 % 64, tile = i / 128, k = tile % k_steps, m = tile / k_steps;
            *(uint4 *)(to + tile * MMA_GROUP_TILE + (half * 8 + row / 8) * MMA_BLOCK + row % 8 * 16) =
                mma_weights(w, (size_t)(m % rows * H + m / rows * 64 + row), k * MMA_K + half * 8, K);
        }
    } else {
        const int n = H / MMA_ROWS * rows * k_steps, lane = threadIdx.x % 32;
#pragma unroll 4
        for (int i = threadIdx.x / 32; i < n; i += blockDim.x / 32) {
            int k = i % k_steps, m = i / k_steps;
            ((uint4 *)to)[i * 32 + lane] =
                mma_fragment(w, (size_t)(m % rows * H + m / rows * MMA_ROWS), k * MMA_K, K, lane);
        }
    }
}

/* Heads in f32: a weight is the sum of three bf16. Rows 0-7 of a fragment: first parts, 8-15: second; then third. */
template <int H> __device__ static inline void rollout_load_heads(const struct rollout_args &a, uint4 *heads)
{
    for (int i = threadIdx.x; i < H / MMA_K * 32; i += blockDim.x) {
        uint4 high = make_uint4(0, 0, 0, 0), low = make_uint4(0, 0, 0, 0);
#pragma unroll
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
}

/* Everything that the CTA shares, by all its threads. */
template <int H> __device__ static inline void rollout_load_weights(const struct rollout_args &a, unsigned char *shared)
{
    const int steps = H / MMA_K, gates = a.mingru ? 3 : 1;
    float *bias = (float *)(shared + a.at.bias), *heads_bias = (float *)(shared + a.at.heads_bias);

    rollout_load_matrix<H>(shared + a.at.encoder, a.encoder_w, 1, a.obs_steps, a.D);
    for (int l = 0; l < a.n_layers; l++)
        rollout_load_matrix<H>(shared + a.at.core + l * gates * H * H * 2, a.core_w[l], gates, steps, H);
    for (int i = threadIdx.x; i < H; i += blockDim.x)
        bias[i] = __bfloat162float(a.encoder_b[i]);
    for (int l = 0; l < a.n_layers && !a.mingru; l++)
        for (int i = threadIdx.x; i < H; i += blockDim.x)
            bias[(1 + l) * H + i] = __bfloat162float(a.core_b[l][i]);
    rollout_load_heads<H>(a, (uint4 *)(shared + a.at.heads));
    if (threadIdx.x < ROLLOUT_OUT)
        heads_bias[threadIdx.x] = (int)threadIdx.x < a.n_out ? a.heads_b[threadIdx.x] : 0.0f;
}

/* ---- layers ---- */

__device__ static inline float rollout_act(float x, enum kern_act act)
{
    return act == KERN_ACT_RELU ? (x < 0.0f ? 0.0f : x) : act == KERN_ACT_TANH ? tanhf(x) : x;
}

/* The MinGRU cell. Returns out; *h is carried. */
__device__ static inline float rollout_cell(float a, float g, float p, float x, float *h)
{
    float low = a, z = g, s = p, now;

    num_sigmoids(&low, &z, &s);
    now = fmaf(z, (a >= 0.0f ? a + 0.5f : low) - *h, *h);
    *h = now;
    return fmaf(s, now - x, x);
}

/* sum = this warp's units of `MT` gates: weights w (loaded by rollout_load_matrix) times the tile x. */
template <int H, int NT, int MT>
__device__ static inline void rollout_product(float (&sum)[MT][NT][4], const rollout_group<H, NT> &s,
                                              const unsigned char *w, const unsigned char *x, int k_steps)
{
    if constexpr (H >= 64)
        wgmma_tile<MT, NT>(sum, w + s.warp / 4 * MT * k_steps * MMA_GROUP_TILE, x, k_steps);
    else
        mma_tile<MT, NT>(sum, (const uint4 *)w + s.warp * MT * k_steps * 32, x, k_steps, s.lane);
}

/* own: this warp's 16 units of the tile's activations, as stored. */
template <int H, int NT>
__device__ static inline void rollout_mingru(const rollout_group<H, NT> &s, const unsigned char *w, float4 *h,
                                             const unsigned char *x, uint32_t (&own)[NT][2], bool keep, bool may_reset)
{
    float sum[3][NT][4];

    rollout_product<H, NT, 3>(sum, s, w, x, H / MMA_K);
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
__device__ static inline void rollout_linear(const rollout_group<H, NT> &s, const unsigned char *w, const float *bias,
                                             enum kern_act act, const unsigned char *x, int k_steps,
                                             uint32_t (&own)[NT][2])
{
    const float low = bias[s.warp * MMA_ROWS + s.lane / 4], high = bias[s.warp * MMA_ROWS + s.lane / 4 + 8];
    float sum[1][NT][4];

    rollout_product<H, NT, 1>(sum, s, w, x, k_steps);
#pragma unroll
    for (int n = 0; n < NT; n++) {
        own[n][0] = mma_pack(rollout_act(sum[0][n][0] + low, act), rollout_act(sum[0][n][1] + low, act));
        own[n][1] = mma_pack(rollout_act(sum[0][n][2] + high, act), rollout_act(sum[0][n][3] + high, act));
    }
}

/* From the tile's observations to the last layer's activations, which are returned. keep: the recurrent states advance.
 * After the first barrier in here, s.rows is free: it has been copied to global memory. */
template <int H, int NT>
__device__ static inline const unsigned char *rollout_forward(const struct rollout_args &a,
                                                              const rollout_group<H, NT> &s, unsigned char *shared,
                                                              bool keep, bool may_reset)
{
    const int gates = a.mingru ? 3 : 1;
    const float *bias = (const float *)(shared + a.at.bias);
    uint32_t own[NT][2];
    unsigned char *x = s.x;

    rollout_linear<H, NT>(s, shared + a.at.encoder, bias, a.encoder_act, s.obs, a.obs_steps, own);
    if (s.thread == 0)
        ptx_bulk_wait_read();
    for (int l = 0;; l++) {
        uint32_t at = mma_store_at<NT>(x, s.warp * MMA_ROWS, s.lane);
#pragma unroll
        for (int n = 0; n < NT; n++)
            ptx_store_transposed(at + (uint32_t)(n * MMA_BLOCK), own[n][0], own[n][1]);
        ptx_publish_shared();
        rollout_sync(s);
        if (l == a.n_layers)
            return x;
        const unsigned char *w = shared + a.at.core + l * gates * H * H * 2;
        if (a.mingru)
            rollout_mingru<H, NT>(s, w, s.h + l * NT * s.threads, x, own, keep, may_reset);
        else
            rollout_linear<H, NT>(s, w, bias + (1 + l) * H, a.act, x, H / MMA_K, own);
        x = x == s.x ? s.obs : s.x;
    }
}

/* s.out = outputs of the agents that this warp plays, and their neighbours in the block. */
template <int H, int NT>
__device__ static inline void rollout_heads(const struct rollout_args &a, const rollout_group<H, NT> &s,
                                            unsigned char *shared, const unsigned char *x)
{
    const uint4 *heads = (const uint4 *)(shared + a.at.heads) + s.lane;
    const int first = s.warp * s.played / MMA_TOKENS, out = s.lane / 4, token = s.lane % 4 * 2;
    const float bias = ((const float *)(shared + a.at.heads_bias))[out];

#pragma unroll
    for (int i = 0; i < s.out_blocks && s.warp * s.played < s.agents; i++) {
        float high[2][4] = {}, low[2][4] = {}; /* even and odd steps */
        uint32_t at = mma_load_at<NT>(x, s.lane) + (uint32_t)((first + i) * MMA_BLOCK);
#pragma unroll
        for (int k = 0; k < H / MMA_K; k += 2) {
            uint32_t b[4];
            ptx_load_blocks(b, at + (uint32_t)(k * 2 * NT * MMA_BLOCK));
#pragma unroll
            for (int j = 0; j < 2; j++) {
                uint4 first = heads[(k + j) * 64], third = heads[(k + j) * 64 + 32];
                ptx_mma_bf16(high[j], first.x, first.y, first.z, first.w, b[2 * j], b[2 * j + 1]);
                ptx_mma_bf16(low[j], third.x, third.y, third.z, third.w, b[2 * j], b[2 * j + 1]);
            }
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
            s.out[(i * MMA_TOKENS + token + j) * ROLLOUT_OUT + out] =
                high[0][j] + high[1][j] + (high[0][j + 2] + high[1][j + 2] + (low[0][j] + low[1][j])) + bias;
    }
    if (x == s.obs) /* where the next observations will be spread */
        rollout_sync(s);
    __syncwarp();
}

/* ---- observations ---- */

/* Rows of this warp's agents become blocks; 16 bytes at a time, zeros beyond D. */
template <int H, int NT>
__device__ static inline void rollout_spread(const struct rollout_args &a, const rollout_group<H, NT> &s)
{
    const int pieces = a.obs_steps * 2, first = s.warp * s.played, left = s.n - first;
    const int n = left < s.played ? left : s.played;

    for (int i = s.lane; i < n * pieces; i += 32) {
        int j = (int)__umulhi((uint32_t)i, a.pieces_inverse), k = i - j * pieces, agent = first + j;
        const unsigned short *row = (const unsigned short *)s.rows + agent * a.D;
        uint32_t w[4];
#pragma unroll
        for (int v = 0; v < 4; v++) {
            int col = k * 8 + v * 2;
            if (a.D % 2 == 0)
                w[v] = col < a.D ? *(const uint32_t *)(row + col) : 0;
            else
                w[v] = (col < a.D ? row[col] : 0u) | (col + 1 < a.D ? (uint32_t)row[col + 1] << 16 : 0u);
        }
        *(uint4 *)(s.obs + (k * NT + agent / MMA_TOKENS) * MMA_BLOCK + agent % MMA_TOKENS * 16) =
            make_uint4(w[0], w[1], w[2], w[3]);
    }
    ptx_publish_shared();
}

/* s.rows to slot `slot` of the global tensor, where the tile's rows are one piece of memory. Where that is aligned, one
 * thread hands it to the copy engine; rollout_forward waits for it. */
template <int H, int NT>
__device__ static inline void rollout_store_rows(const struct rollout_args &a, const rollout_group<H, NT> &s, int slot)
{
    __nv_bfloat16 *to = a.obs + ((size_t)slot * a.N + s.first) * (size_t)a.D;
    const uint32_t bytes = (uint32_t)(s.n * a.D) * 2;

    if (((uintptr_t)to | bytes) % 16 == 0) {
        if (s.thread == 0)
            ptx_bulk_store(to, s.rows, bytes);
    } else {
        for (int i = s.thread; i < s.n * a.D; i += s.threads)
            to[i] = s.rows[i];
    }
}

#endif
