/* solo_net.cuh - the policy network of a training that one block makes alone: layers forward and back for a chunk of
 * tokens in shared memory (private to kernels/cuda/solo).
 *
 * Layers are products on tensor cores of bf16 numbers with f32 sums; a warp makes tiles of 16 rows. Activations of a
 * token, and weights of an output unit, are rows of shared memory, 16 bytes longer than their numbers, so that the rows
 * of a block of 8 x 8 meet in no bank. Heads are f32. Gradients are summed up in global memory, chunk by chunk, each
 * number by one thread.
 * Invariant: the order of a sum follows from the shape alone. */
#ifndef KERNELS_CUDA_SOLO_NET_CUH
#define KERNELS_CUDA_SOLO_NET_CUH

#include "kernels/cuda/learn/loss.cuh"
#include "kernels/cuda/learn/muon.h"
#include "kernels/cuda/nets/mma.cuh"
#include "kernels/cuda/play/env.cuh"

#include "generated/games.h"

#include "kernels/cuda/play/rollout_game.cuh"

#define SOLO_BLOCK MUON_BLOCK
#define SOLO_WARPS (SOLO_BLOCK / CUDA_WARP)
#define SOLO_LAYERS 4 /* core layers at most */
#define SOLO_WIDTH 128 /* units of a layer at most */
#define SOLO_TENSORS (2 * (SOLO_LAYERS + 2))
#define SOLO_SETTINGS 64
#define SOLO_GROUP 128 /* threads that make Muon's step of a small matrix */
#define SOLO_PARTIALS 2048
#define SOLO_PAD 8 /* numbers after each row */
#define SOLO_ROWS 16 /* of a tile */

/* Offsets in shared memory, bytes. */
struct solo_shared {
    uint32_t encoder, core, bias, heads, heads_bias; /* weights */
    uint32_t x, y, dy, out, dout, logp, adv, ret, value, action, partial; /* of a chunk */
};

/* What each iteration has of its own. */
struct solo_turn {
    struct kern_hyper hyper;
    int T, n_minibatches;
};

struct solo_args {
    struct solo_shared at;
    float *params, *m, *v, *grads, *norm;
    __nv_bfloat16 *weights; /* (n_params) */
    int64_t *step;
    struct kern_stats *stats;
    struct env_log *log;
    struct rng *rng_sample, *rng_segments;
    unsigned char *states; /* (N) instances of state_size bytes */
    struct env_log *logs;
    __nv_bfloat16 *obs;
    uint8_t *reset, *terms, *truncs;
    int32_t *actions, *perm;
    float *logp, *rewards, *boot, *values, *adv, *ret, *log_ratio;
    const unsigned char *report;
    unsigned char *reports; /* (n_turns, report_bytes), then (n_turns) u64: nanoseconds; host memory */
    uint32_t report_bytes;
    struct muon_item items[SOLO_TENSORS]; /* matrices, then vectors */
    uint32_t n_items, n_matrices, muon_bytes; /* of a matrix, where groups of threads have one each; else 0 */
    uint32_t encoder_w, encoder_b, core_w[SOLO_LAYERS], core_b[SOLO_LAYERS], heads_w, heads_b; /* in params */
    int n_params, N, T, B; /* T: of a full rollout */
    int D, Dp, H, L, n_out; /* Dp: D padded to whole tiles */
    int chunk, play_chunk; /* tokens at a time in updates, agents at a time in play */
    int game, state_size;
    bool may_truncate, muon, vtrace;
    enum kern_act encoder_act, act;
    struct kern_heads heads_of;
    alignas(16) unsigned char settings[SOLO_SETTINGS];
    int n_turns;
    struct solo_turn turns[KERN_SOLO_MAX];
};

/* Pointers into the block's shared memory. */
struct solo {
    __nv_bfloat16 *encoder, *core[SOLO_LAYERS]; /* (H, Dp + pad), (H, H + pad) */
    float *bias; /* (1 + L, H) */
    float *heads, *heads_bias; /* (n_out, H), (n_out) */
    __nv_bfloat16 *x; /* (chunk, Dp + pad): observations, 0 beyond D */
    __nv_bfloat16 *y[SOLO_LAYERS + 1]; /* (chunk, H + pad): of the encoder and of each core layer */
    __nv_bfloat16 *dy; /* (2, chunk, H + pad); while playing: rows of observations (play_chunk, D) */
    float *out, *dout; /* (chunk, n_out) */
    float *logp, *adv, *ret, *value; /* (chunk) */
    int32_t *action; /* (chunk) */
    float *partial; /* (SOLO_PARTIALS) */
    int ldx, ldh, warp, lane;
};

__device__ static inline struct solo solo_place(const struct solo_args &a, unsigned char *shared)
{
    const struct solo_shared &at = a.at;
    struct solo s;

    s.ldx = a.Dp + SOLO_PAD;
    s.ldh = a.H + SOLO_PAD;
    s.warp = (int)threadIdx.x / CUDA_WARP;
    s.lane = (int)threadIdx.x % CUDA_WARP;
    s.encoder = (__nv_bfloat16 *)(shared + at.encoder);
    s.x = (__nv_bfloat16 *)(shared + at.x);
#pragma unroll
    for (int l = 0; l < SOLO_LAYERS; l++)
        s.core[l] = (__nv_bfloat16 *)(shared + at.core) + l * a.H * s.ldh;
#pragma unroll
    for (int l = 0; l <= SOLO_LAYERS; l++)
        s.y[l] = (__nv_bfloat16 *)(shared + at.y) + l * a.chunk * s.ldh;
    s.dy = (__nv_bfloat16 *)(shared + at.dy);
    s.bias = (float *)(shared + at.bias);
    s.heads = (float *)(shared + at.heads);
    s.heads_bias = (float *)(shared + at.heads_bias);
    s.out = (float *)(shared + at.out);
    s.dout = (float *)(shared + at.dout);
    s.logp = (float *)(shared + at.logp);
    s.adv = (float *)(shared + at.adv);
    s.ret = (float *)(shared + at.ret);
    s.value = (float *)(shared + at.value);
    s.action = (int32_t *)(shared + at.action);
    s.partial = (float *)(shared + at.partial);
    return s;
}

/* All weights from params, and x cleared: Muon may have had the memory. Ends with a barrier. */
__device__ static inline void solo_load_weights(const struct solo_args &a, const struct solo &s)
{
    for (int i = threadIdx.x; i < a.H * a.Dp; i += SOLO_BLOCK) {
        int row = i / a.Dp, col = i % a.Dp;
        s.encoder[row * s.ldx + col] = __float2bfloat16(col < a.D ? a.params[a.encoder_w + row * a.D + col] : 0.0f);
    }
    for (int l = 0; l < a.L; l++)
        for (int i = threadIdx.x; i < a.H * a.H; i += SOLO_BLOCK)
            s.core[l][i / a.H * s.ldh + i % a.H] = __float2bfloat16(a.params[a.core_w[l] + i]);
    for (int i = threadIdx.x; i < (1 + a.L) * a.H; i += SOLO_BLOCK) {
        uint32_t from = i < a.H ? a.encoder_b : a.core_b[i / a.H - 1];
        s.bias[i] = __bfloat162float(__float2bfloat16(a.params[from + i % a.H]));
    }
    for (int i = threadIdx.x; i < a.n_out * a.H; i += SOLO_BLOCK)
        s.heads[i] = a.params[a.heads_w + i];
    if ((int)threadIdx.x < a.n_out)
        s.heads_bias[threadIdx.x] = a.params[a.heads_b + threadIdx.x];
    for (int i = threadIdx.x; i < a.chunk * s.ldx / 8; i += SOLO_BLOCK)
        ((uint4 *)s.x)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads();
}

/* ---- products ---- */

/* store(m, n, c, d): numbers (m, n) and (m, n + 1) of a b, where a is (M, K), or (K, M) if A_TURNED, and b is (N, K),
 * or (K, N) if B_TURNED; M, N and K whole tiles of 16. Called by all warps; a tile has 8 BLOCKS columns. */
template <bool A_TURNED, bool B_TURNED, int BLOCKS, class F>
__device__ static inline void solo_tiles(const struct solo &s, const __nv_bfloat16 *a, int lda, const __nv_bfloat16 *b,
                                         int ldb, int M, int N, int K, F store)
{
    const int across = N / (8 * BLOCKS), n_tiles = M / SOLO_ROWS * across;
    const int low = s.lane % 16, high = s.lane / 16 * 8; /* rows then columns of the four blocks */
    const int inner = s.lane % 8 + s.lane / 16 * 8, outer = s.lane / 8 % 2 * 8; /* columns then rows */

    for (int tile = s.warp; tile < n_tiles; tile += SOLO_WARPS) {
        const int m0 = tile / across * SOLO_ROWS, n0 = tile % across * (8 * BLOCKS);
        uint32_t a_at = ptx_shared(A_TURNED ? a + inner * lda + m0 + outer : a + (m0 + low) * lda + high);
        uint32_t b_at = ptx_shared(B_TURNED ? b + low * ldb + n0 + high : b + (n0 + inner) * ldb + outer);
        const uint32_t a_step = A_TURNED ? 32 * (uint32_t)lda : 32, b_step = B_TURNED ? 32 * (uint32_t)ldb : 32;
        const uint32_t b_next = B_TURNED ? 32 : 32 * (uint32_t)ldb;
        float sum[BLOCKS][4] = {};

#pragma unroll 2
        for (int k = 0; k < K; k += 16, a_at += a_step, b_at += b_step) {
            uint32_t x[4];
            if (A_TURNED)
                ptx_load_blocks_turned(x, a_at);
            else
                ptx_load_blocks(x, a_at);
#pragma unroll
            for (int n = 0; n < BLOCKS; n += 2) {
                uint32_t w[4];
                if (B_TURNED)
                    ptx_load_blocks_turned(w, b_at + (uint32_t)(n / 2) * b_next);
                else
                    ptx_load_blocks(w, b_at + (uint32_t)(n / 2) * b_next);
                ptx_mma_bf16(sum[n], x[0], x[1], x[2], x[3], w[0], w[1]);
                ptx_mma_bf16(sum[n + 1], x[0], x[1], x[2], x[3], w[2], w[3]);
            }
        }
        const int g = s.lane / 4, t = s.lane % 4 * 2;
#pragma unroll
        for (int n = 0; n < BLOCKS; n++) {
            store(m0 + g, n0 + n * 8 + t, sum[n][0], sum[n][1]);
            store(m0 + g + 8, n0 + n * 8 + t, sum[n][2], sum[n][3]);
        }
    }
}

template <bool A_TURNED, bool B_TURNED, class F>
__device__ static inline void solo_product(const struct solo &s, const __nv_bfloat16 *a, int lda,
                                           const __nv_bfloat16 *b, int ldb, int M, int N, int K, F store)
{
    if (N % 32 == 0)
        solo_tiles<A_TURNED, B_TURNED, 4>(s, a, lda, b, ldb, M, N, K, store);
    else
        solo_tiles<A_TURNED, B_TURNED, 2>(s, a, lda, b, ldb, M, N, K, store);
}

/* ---- forward ---- */

__device__ static inline float solo_act(float x, enum kern_act act)
{
    return act == KERN_ACT_RELU ? (x < 0.0f ? 0.0f : x) : act == KERN_ACT_TANH ? tanhf(x) : x;
}

__device__ static inline void solo_layer(const struct solo &s, const __nv_bfloat16 *x, int ldx, const __nv_bfloat16 *w,
                                         const float *bias, __nv_bfloat16 *y, int M, int H, int K, enum kern_act act)
{
    const int ldh = s.ldh;

    solo_product<false, false>(s, x, ldx, w, ldx, M, H, K, [=](int m, int n, float c, float d) {
        *(uint32_t *)(y + m * ldh + n) = mma_pack(solo_act(c + bias[n], act), solo_act(d + bias[n + 1], act));
    });
}

/* s.y of s.x for tokens [0, n), up to whole tiles; barriers before and after. */
__device__ static inline void solo_forward(const struct solo_args &a, const struct solo &s, int n)
{
    const int M = (n + SOLO_ROWS - 1) / SOLO_ROWS * SOLO_ROWS;

    __syncthreads();
    solo_layer(s, s.x, s.ldx, s.encoder, s.bias, s.y[0], M, a.H, a.Dp, a.encoder_act);
#pragma unroll
    for (int l = 0; l < SOLO_LAYERS; l++)
        if (l < a.L) {
            __syncthreads();
            solo_layer(s, s.y[l], s.ldh, s.core[l], s.bias + (1 + l) * a.H, s.y[l + 1], M, a.H, a.H, a.act);
        }
    __syncthreads();
}

__device__ static inline const __nv_bfloat16 *solo_last(const struct solo_args &a, const struct solo &s)
{
    return s.y[0] + a.L * a.chunk * s.ldh;
}

/* s.out of the last layer; `each` threads in a row share a token: token threadIdx.x / each. Seen by the warp. */
__device__ static inline void solo_heads(const struct solo_args &a, const struct solo &s, int n, int each)
{
    const int token = (int)threadIdx.x / each, part = (int)threadIdx.x % each;
    const __nv_bfloat16 *y = solo_last(a, s) + token * s.ldh;
    float sum[ROLLOUT_OUT] = {};

    if (token < n)
        for (int k = part * 8; k < a.H; k += each * 8) {
            float x[8];
            num_load<8>(x, y + k);
#pragma unroll
            for (int o = 0; o < ROLLOUT_OUT; o++) {
                float w[8];
                if (o >= a.n_out)
                    break;
                num_load<8>(w, s.heads + o * a.H + k);
#pragma unroll
                for (int i = 0; i < 8; i++)
                    sum[o] = fmaf(x[i], w[i], sum[o]);
            }
        }
    for (int d = each / 2; d > 0; d /= 2)
#pragma unroll
        for (int o = 0; o < ROLLOUT_OUT; o++)
            sum[o] += __shfl_xor_sync(0xffffffffu, sum[o], d);
    if (part == 0 && token < n)
#pragma unroll
        for (int o = 0; o < ROLLOUT_OUT; o++)
            if (o < a.n_out)
                s.out[token * a.n_out + o] = sum[o] + s.heads_bias[o];
    __syncwarp();
}

/* ---- backward ---- */

/* The derivative of an activation, from its result. */
__device__ static inline float solo_slope(float y, enum kern_act act)
{
    return act == KERN_ACT_RELU ? (y > 0.0f ? 1.0f : 0.0f) : act == KERN_ACT_TANH ? 1.0f - y * y : 1.0f;
}

/* to (+)= the columns' sums of dy (n, ld), in two halves with a barrier between them. */
__device__ static inline void solo_columns(const struct solo &s, const __nv_bfloat16 *dy, int n, int H)
{
    const int parts = SOLO_BLOCK / H, col = (int)threadIdx.x % H, part = (int)threadIdx.x / H;
    float sum = 0.0f;

    if (part < parts)
        for (int i = part; i < n; i += parts)
            sum += __bfloat162float(dy[i * s.ldh + col]);
    s.partial[threadIdx.x] = sum;
}

__device__ static inline void solo_columns_end(const struct solo &s, float *to, int H, bool first)
{
    const int parts = SOLO_BLOCK / H, col = (int)threadIdx.x;
    float sum = 0.0f;

    if (col >= H)
        return;
    for (int p = 0; p < parts; p++)
        sum += s.partial[p * H + col];
    to[col] = first ? sum : to[col] + sum;
}

/* Gradients of the heads, and dy of the last layer before its activation; rows [n, M) of it are 0. */
__device__ static inline void solo_heads_backward(const struct solo_args &a, const struct solo &s, int n, int M,
                                                  bool first)
{
    const __nv_bfloat16 *y = solo_last(a, s);
    const enum kern_act act = a.L > 0 ? a.act : a.encoder_act;
    const int n_weights = a.n_out * a.H, half = a.H / 2, k = (int)threadIdx.x % half * 2,
              part = (int)threadIdx.x / half;
    float *partial = (float *)(s.dy + a.chunk * s.ldh); /* the other half of dy is not in use yet */
    int parts = a.chunk * s.ldh / 2 / n_weights;

    parts = parts < SOLO_BLOCK / half ? parts : SOLO_BLOCK / half;
    if (part < parts) {
        float low[ROLLOUT_OUT] = {}, high[ROLLOUT_OUT] = {};
        float2 w[ROLLOUT_OUT] = {};
#pragma unroll
        for (int o = 0; o < ROLLOUT_OUT; o++)
            if (o < a.n_out)
                w[o] = *(const float2 *)(s.heads + o * a.H + k);
        for (int token = part; token < M; token += parts) {
            float c = 0.0f, d = 0.0f;
            if (token < n) {
                const uint32_t pair = *(const uint32_t *)(y + token * s.ldh + k);
#pragma unroll
                for (int o = 0; o < ROLLOUT_OUT; o++) {
                    if (o >= a.n_out)
                        break;
                    const float g = s.dout[token * a.n_out + o];
                    c = fmaf(g, w[o].x, c), d = fmaf(g, w[o].y, d);
                    low[o] = fmaf(g, mma_low(pair), low[o]), high[o] = fmaf(g, mma_high(pair), high[o]);
                }
                c *= solo_slope(mma_low(pair), act);
                d *= solo_slope(mma_high(pair), act);
            }
            *(uint32_t *)(s.dy + token * s.ldh + k) = mma_pack(c, d);
        }
#pragma unroll
        for (int o = 0; o < ROLLOUT_OUT; o++)
            if (o < a.n_out)
                *(float2 *)(partial + part * n_weights + o * a.H + k) = make_float2(low[o], high[o]);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n_weights; i += SOLO_BLOCK) {
        float sum = 0.0f, *to = a.grads + a.heads_w + i;
        for (int p = 0; p < parts; p++)
            sum += partial[p * n_weights + i];
        *to = first ? sum : *to + sum;
    }
    if (s.warp < a.n_out) {
        float sum = 0.0f, *to = a.grads + a.heads_b + s.warp;
        for (int token = s.lane; token < n; token += CUDA_WARP)
            sum += s.dout[token * a.n_out + s.warp];
        sum = num_warp_sum(sum);
        if (s.lane == 0)
            *to = first ? sum : *to + sum;
    }
    __syncthreads(); /* partial is free */
}

/* dw (H, cols) (+)= dy^T x over M tokens; x has N columns, whole tiles. */
__device__ static inline void solo_weights_backward(const struct solo &s, const __nv_bfloat16 *dy,
                                                    const __nv_bfloat16 *x, int ldx, float *dw, int H, int N, int cols,
                                                    int M, bool first)
{
    solo_product<true, true>(s, dy, s.ldh, x, ldx, H, N, M, [=](int m, int n, float c, float d) {
        float *to = dw + m * cols + n;
        if (n < cols)
            to[0] = first ? c : to[0] + c;
        if (n + 1 < cols)
            to[1] = first ? d : to[1] + d;
    });
}

/* grads (+)= those of the chunk's n tokens, from s.dout; a barrier before. */
__device__ static inline void solo_backward(const struct solo_args &a, const struct solo &s, int n, bool first)
{
    const int M = (n + SOLO_ROWS - 1) / SOLO_ROWS * SOLO_ROWS, ldh = s.ldh;
    int cur = 0;

    solo_heads_backward(a, s, n, M, first);
#pragma unroll
    for (int l = SOLO_LAYERS; l >= 0; l--) {
        if (l > a.L)
            continue;
        const __nv_bfloat16 *dy = s.dy + cur * a.chunk * ldh, *x = l > 0 ? s.y[l - 1] : s.x;
        solo_columns(s, dy, n, a.H);
        if (l > 0) {
            const enum kern_act act = l > 1 ? a.act : a.encoder_act;
            __nv_bfloat16 *dx = s.dy + (cur ^ 1) * a.chunk * ldh;
            solo_product<false, true>(s, dy, ldh, s.core[l - 1], ldh, M, a.H, a.H, [=](int m, int k, float c, float d) {
                const uint32_t pair = *(const uint32_t *)(x + m * ldh + k);
                *(uint32_t *)(dx + m * ldh + k) =
                    mma_pack(c * solo_slope(mma_low(pair), act), d * solo_slope(mma_high(pair), act));
            });
            solo_weights_backward(s, dy, x, ldh, a.grads + a.core_w[l - 1], a.H, a.H, a.H, M, first);
        } else {
            solo_weights_backward(s, dy, x, s.ldx, a.grads + a.encoder_w, a.H, a.Dp, a.D, M, first);
        }
        __syncthreads();
        solo_columns_end(s, a.grads + (l > 0 ? a.core_b[l - 1] : a.encoder_b), a.H, first);
        cur ^= 1;
        __syncthreads();
    }
}

#endif
