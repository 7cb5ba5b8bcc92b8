/* rollout.cu - a whole rollout in one launch: network, sampling and games of a tile of agents for T steps.
 *
 * Agents are independent of each other, so no step needs a meeting of the whole device. A CTA keeps the weights in
 * shared memory. Each of its groups of H / 16 warps owns a tile of 8, 16 or 32 agents for good: observations,
 * activations, recurrent states and games lie in shared memory and go to global memory only as what the update needs.
 * Groups meet at barriers of their own, so that one plays its games while another multiplies matrices. The network of a
 * tile is in rollout_net.cuh, acting and playing in rollout_game.cuh.
 *
 * Invariants: (1) a rollout is the same, to the byte, whatever the tile and the number of groups; (2) games are
 * compiled without contraction (-fmad=false), as everywhere. */
#include "kernels/cuda/play/rollout.cuh"

#include "kernels/cuda/play/rollout_net.cuh"

#include <string.h>

#define ROLLOUT_THREADS 512 /* of a CTA at most */
#define ROLLOUT_SHARED ((size_t)227 << 10) /* what Hopper has for a CTA */

/* Agents of a multiprocessor up to which tiles of 8 are taken, and of 16; more: of 32. Narrow nets (32 units): four small
 * groups were fastest. Table "tile x groups" in bench/notes/cuda.md. */
#define TILE_8_AGENTS 8
#define TILE_8_AGENTS_NARROW 32
#define TILE_16_AGENTS 32
#define NARROW_UNITS 32

/* ---- the whole ---- */

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
    struct rng stream = rng_split(root, agent);
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
    const size_t agents = n_blocks * MMA_TOKENS, warps = H / MMA_ROWS, steps = H / MMA_K;
    const size_t played = agents > warps ? agents / warps : 1, L = (size_t)a->n_layers;
    const size_t out_rows = played > MMA_TOKENS ? played : MMA_TOKENS;
    uint32_t n = 0, in_group = 0;

    at->encoder = rollout_take(&n, warps * (size_t)a->obs_steps * 32 * sizeof(uint4));
    at->core = rollout_take(&n, L * (a->mingru ? 3 : 1) * warps * steps * 32 * sizeof(uint4));
    at->heads = rollout_take(&n, steps * 64 * sizeof(uint4));
    at->bias = rollout_take(&n, (a->mingru ? 1 : 1 + L) * H * sizeof(float));
    at->heads_bias = rollout_take(&n, ROLLOUT_OUT * sizeof(float));
    at->groups = n;
    at->rows = rollout_take(&in_group, agents * (size_t)a->D * sizeof(__nv_bfloat16));
    at->obs = rollout_take(&in_group, agents * (size_t)a->obs_steps * MMA_K * sizeof(__nv_bfloat16));
    at->x = rollout_take(&in_group, 2 * agents * H * sizeof(__nv_bfloat16));
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
#define ROLLOUT_GAME(game)                                                                                             \
    if (cuda_env_tiles<cuda_game_##game>::yes && cuda_env_is(env, game))                                               \
        return ROLLOUT_##game;
    ENV_GAMES(ROLLOUT_GAME)
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
        r->mask != NULL || net->heads.n_heads != 1 || net->heads.n_reals != 0 || net->heads.n_bins != 0 ||
        net->heads.n_logits >= ROLLOUT_OUT || r->T < 1 || r->T > 1 << 20 || net->obs_size > 8192 ||
        net->n_layers > KERN_MAX_LAYERS || env->def->options.settings_size > ROLLOUT_SETTINGS ||
        env->def->state_size % 8 != 0)
        return false;
    a->N = r->N;
    a->T = (int)r->T;
    a->D = (int)net->obs_size;
    a->obs_steps = (a->D + 2 * MMA_K - 1) / (2 * MMA_K) * 2;
    a->pieces_inverse = (uint32_t)(((uint64_t)1 << 32) / (uint64_t)(2 * a->obs_steps) + 1);
    a->n_layers = net->core == KERN_CORE_NONE ? 0 : (int)net->n_layers;
    a->n_out = net->heads.n_logits + 1;
    a->mingru = net->core == KERN_CORE_MINGRU;
    a->may_truncate = env->shape.may_truncate;
    a->encoder_act = net->encoder_act;
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
    const size_t tile_8_agents = H <= NARROW_UNITS ? TILE_8_AGENTS_NARROW : TILE_8_AGENTS;
    int blocks = per_sm <= tile_8_agents ? 1 : per_sm <= TILE_16_AGENTS ? 2 : 4;

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
    struct rollout_args a = {};

    if (!rollout_fill(&a, r) || rollout_kernel_at(H, 1) == NULL)
        return false;
    a.ticket = cuda->tickets;
    a.n_groups = n_groups;
    if (n_blocks == 0 && !rollout_choose(&a, H, cuda->n_sm, &n_blocks))
        return false;
    const size_t shared = rollout_lay(&a, H, (size_t)n_blocks);
    if (shared > ROLLOUT_SHARED || a.n_groups > rollout_groups_max(H))
        return false;
    rollout_kernel *kernel = rollout_kernel_at(H, n_blocks);
    if (cuda_kernel_prepare(k, (const void *)kernel, "rollout") != 90) /* not Hopper: nothing is in it */
        return false;
    const size_t agents = (size_t)(n_blocks * MMA_TOKENS * a.n_groups);
    const unsigned n_ctas = (unsigned)((a.N + agents - 1) / agents);

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
