/* rollout.cu - a whole rollout in one launch: network, sampling and games of a tile of agents for T steps.
 *
 * Agents are independent of each other, so no step needs a meeting of the whole device. A CTA keeps the weights in
 * shared memory. Each of its groups of H / 16 warps owns a tile of 8, 16 or 32 agents for good: observations,
 * activations, recurrent states and games lie in shared memory and go to global memory only as what the update needs.
 * Groups meet at barriers of their own, so that one plays its games while another multiplies matrices. The network of a
 * tile is in rollout_net.cuh, acting and playing in rollout_game.cuh, the kernel itself in rollout_kernel.cuh.
 *
 * Invariants: (1) a rollout is the same, to the byte, whatever the tile and the number of groups; (2) games are
 * compiled without contraction (-fmad=false), as everywhere. */
#include "kernels/cuda/play/rollout.cuh"

#include "kernels/cuda/play/env.cuh"

#include "generated/games.h"

#include "kernels/cuda/play/rollout_kernel.cuh"

#include <string.h>

#define ROLLOUT_SHARED ((size_t)227 << 10) /* what Hopper has for a CTA */

/* Agents of a multiprocessor up to which tiles of 8 are taken, and of 16; more: of 32. Narrow nets (32 units): four
 * small groups were fastest. Table "tile x groups" in bench/notes/cuda.md. */
#define TILE_8_AGENTS 8
#define TILE_8_AGENTS_NARROW 32
#define TILE_16_AGENTS 32
#define NARROW_UNITS 32

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
    const size_t seen = (size_t)a->obs_steps * MMA_K;
    const size_t out_rows = played > MMA_TOKENS ? played : MMA_TOKENS;
    uint32_t n = 0, in_group = 0;

    at->encoder = rollout_take(&n, warps * (size_t)a->obs_steps * 32 * sizeof(uint4));
    at->core = rollout_take(&n, L * (a->mingru ? 3 : 1) * warps * steps * 32 * sizeof(uint4));
    at->heads = rollout_take(&n, steps * 64 * sizeof(uint4));
    at->bias = rollout_take(&n, (a->mingru ? 1 : 1 + L) * H * sizeof(float));
    at->heads_bias = rollout_take(&n, ROLLOUT_OUT * sizeof(float));
    at->groups = n;
    at->rows = rollout_take(&in_group, agents * (size_t)a->D * sizeof(__nv_bfloat16));
    at->obs = rollout_take(&in_group, agents * (seen > H ? seen : H) * sizeof(__nv_bfloat16));
    at->x = rollout_take(&in_group, agents * H * sizeof(__nv_bfloat16));
    at->h = rollout_take(&in_group, a->mingru ? L * agents * H * sizeof(float) : 0);
    at->out = rollout_take(&in_group, warps * out_rows * ROLLOUT_OUT * sizeof(float));
    at->games = rollout_take(&in_group, agents * (size_t)a->state_size);
    at->reset = rollout_take(&in_group, agents);
    at->group_bytes = in_group;
    return (size_t)n + (size_t)a->n_groups * in_group;
}

int cuda_rollout_game(const struct cuda_env *env)
{
    if (env->game != NULL && env->game->rollout != NULL)
        return 0;
    if (env->game == NULL || env_find(env->def->name) != env->def)
        return ROLLOUT_GAMES;
#define ROLLOUT_GAME(game)                                                                                             \
    if (cuda_env_tiles<cuda_game_##game>::yes && strcmp(env->def->name, #game) == 0)                                   \
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

    a->game = cuda_rollout_game(env);
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
    a->first = r->first;
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

    if (!rollout_fill(&a, r) || rollout_kernel_at<>(H, 1) == NULL)
        return false;
    a.ticket = cuda->tickets;
    a.n_groups = n_groups;
    if (n_blocks == 0 && !rollout_choose(&a, H, cuda->n_sm, &n_blocks))
        return false;
    const size_t shared = rollout_lay(&a, H, (size_t)n_blocks);
    if (shared > ROLLOUT_SHARED || a.n_groups > rollout_groups_max(H))
        return false;
    const size_t agents = (size_t)(n_blocks * MMA_TOKENS * a.n_groups);
    const unsigned n_ctas = (unsigned)((a.N + agents - 1) / agents);
    const struct env_device *game = cuda_env_of(r->env)->game;

    if (game->rollout != NULL) {
        cudaError_t code = game->rollout(&a, H, n_blocks, n_ctas, cuda->shared_max, shared, cuda->stream);
        if (code == cudaErrorNotSupported)
            return false;
        cuda_check(k, code, "rollout");
        return true;
    }
    rollout_kernel *kernel = rollout_kernel_at<>(H, n_blocks);
    if (cuda->made_for != 90) /* not Hopper: nothing is in it */
        return false;
    cuda_kernel_prepare(k, (const void *)kernel, "rollout");
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
