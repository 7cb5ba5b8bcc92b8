/* rollout_game.cuh - acting and playing within a rollout kernel: one lane for each agent (private to rollout.cu).
 * A game's code is a function of its own, so that the kernel around it is made once for all games. All lanes of a warp
 * call it together: `plays` says which have an agent, and rows of observations are written by all of them. */
#ifndef KERNELS_CUDA_ROLLOUT_GAME_CUH
#define KERNELS_CUDA_ROLLOUT_GAME_CUH

#include "kernels/cuda/play/env_game.cuh"

#define ROLLOUT_OUT 8 /* policy outputs at most: they are half of a block's rows */

ENV_GAMES(CUDA_ENV_GAME)

enum rollout_game {
#define ROLLOUT_GAME(game) ROLLOUT_##game,
    ENV_GAMES(ROLLOUT_GAME)
#undef ROLLOUT_GAME
        ROLLOUT_GAMES
};

/* ---- acting ---- */

/* The choice among n <= MOST logits at which the cumulative probability passes u, as the sample operation draws it. */
template <int MOST> __device__ static inline int rollout_draw(const float *logits, int n, float u, float *ret_logp)
{
    float x[MOST], top = -INFINITY, sum = 0.0f, cumulative = 0.0f;
    int a = n - 1;

#pragma unroll
    for (int i = 0; i < MOST; i++) {
        x[i] = i < n ? logits[i] : 0.0f;
        top = i < n && !(x[i] <= top) ? x[i] : top; /* NaN is taken up */
    }
#pragma unroll
    for (int i = 0; i < MOST; i++)
        sum += i < n ? expf(x[i] - top) : 0.0f;
    const float log_sum = top + logf(sum);
#pragma unroll
    for (int i = 0; i < MOST - 1; i++) {
        cumulative += i < n ? expf(x[i] - log_sum) : 0.0f;
        a = i < a && cumulative > u ? i : a;
    }
    float chosen = x[0];
#pragma unroll
    for (int i = 1; i < MOST; i++)
        chosen = a == i ? x[i] : chosen;
    *ret_logp = chosen - log_sum;
    return a;
}

__device__ static inline int rollout_sample(const float *logits, int n, float u, float *ret_logp)
{
    return n <= 3 ? rollout_draw<3>(logits, n, u, ret_logp) : rollout_draw<ROLLOUT_OUT - 1>(logits, n, u, ret_logp);
}

__device__ static inline float rollout_clip(float x, float clip)
{
    if (!(clip > 0.0f))
        return x;
    x = x > clip ? clip : x;
    return x < -clip ? -clip : x;
}

/* ---- rows of observations ---- */

template <class G>
__device__ static inline void rollout_row_begin(const typename G::settings *settings, const typename G::instance *it,
                                                __nv_bfloat16 *row, typename G::gpu::rest *rest)
{
    if constexpr (G::gpu::packs)
        G::gpu::row_begin(&it->state, (uint32_t *)row, rest);
    else
        cuda_env_row<G, __nv_bfloat16>(settings, it, row);
}

/* rows: of the warp's agents, `size` elements each; who: lanes that began theirs. */
template <class G>
__device__ static inline void rollout_row_finish(__nv_bfloat16 *rows, uint32_t who, const typename G::gpu::rest *rest)
{
    if constexpr (G::gpu::packs)
        G::gpu::row_finish(rows, who, rest);
}

/* ---- playing ---- */

struct rollout_played {
    float reward, score, perf;
    uint32_t flags; /* 1: terminated, 2: truncated */
};

/* One lane's place. */
struct rollout_seat {
    const void *settings;
    void *game; /* its instance, in shared memory */
    struct env_log *log;
    __nv_bfloat16 *row, *rows; /* its observation; that of the warp's first agent */
    bool plays;
};

/* Instances are copied 8 bytes at a time: they are aligned to that wherever they lie. */
template <class I> __device__ static inline void rollout_copy(I *to, const I *from)
{
    static_assert(sizeof(I) % 8 == 0, "an instance is a multiple of 8 bytes");
    uint64_t bytes[sizeof(I) / 8];

#pragma unroll
    for (int i = 0; i < (int)(sizeof(I) / 8); i++)
        bytes[i] = ((const uint64_t *)from)[i];
    memcpy(to, bytes, sizeof(I));
}

template <class I> __device__ static inline void rollout_copy_back(I *to, const I *from)
{
    uint64_t bytes[sizeof(I) / 8];

    memcpy(bytes, from, sizeof(I));
#pragma unroll
    for (int i = 0; i < (int)(sizeof(I) / 8); i++)
        ((uint64_t *)to)[i] = bytes[i];
}

/* A step; where an episode ended, the next one begins. A truncated one does not end yet: its row is the last
 * observation, and rollout_next_game continues. */
template <class G>
__device__ __noinline__ struct rollout_played rollout_step_game(struct rollout_seat seat, int32_t action)
{
    const typename G::settings *settings = (const typename G::settings *)seat.settings;
    struct rollout_played played = {};
    typename G::gpu::rest rest = {};

    if (seat.plays) {
        typename G::instance it;
        struct env_step step;
        uint8_t term, trunc;
        rollout_copy(&it, (const typename G::instance *)seat.game);
        G::play(settings, &it, &action, NULL, &played.reward, &term, &trunc, &step);
        if (term)
            G::end(settings, &it, seat.log, &step);
        rollout_copy_back((typename G::instance *)seat.game, &it);
        rollout_row_begin<G>(settings, &it, seat.row, &rest);
        played.score = step.score;
        played.perf = step.perf;
        played.flags = (uint32_t)term | (uint32_t)trunc << 1;
    }
    rollout_row_finish<G>(seat.rows, __ballot_sync(0xffffffffu, seat.plays), &rest);
    return played;
}

/* The next episode after a truncated one. */
template <class G>
__device__ __noinline__ void rollout_next_game(struct rollout_seat seat, struct rollout_played played)
{
    const typename G::settings *settings = (const typename G::settings *)seat.settings;
    typename G::gpu::rest rest = {};

    if (seat.plays) {
        typename G::instance it;
        struct env_step step = {};
        step.score = played.score;
        step.perf = played.perf;
        rollout_copy(&it, (const typename G::instance *)seat.game);
        G::end(settings, &it, seat.log, &step);
        rollout_copy_back((typename G::instance *)seat.game, &it);
        rollout_row_begin<G>(settings, &it, seat.row, &rest);
    }
    rollout_row_finish<G>(seat.rows, __ballot_sync(0xffffffffu, seat.plays), &rest);
}

__device__ static inline struct rollout_played rollout_step(int game, struct rollout_seat seat, int32_t action)
{
    switch (game) {
#define ROLLOUT_GAME(name)                                                                                             \
    case ROLLOUT_##name:                                                                                               \
        if constexpr (cuda_env_tiles<cuda_game_##name>::yes)                                                           \
            return rollout_step_game<cuda_game_##name>(seat, action);                                                  \
        break;
        ENV_GAMES(ROLLOUT_GAME)
#undef ROLLOUT_GAME
    }
    return {};
}

__device__ static inline void rollout_next(int game, struct rollout_seat seat, struct rollout_played played)
{
    switch (game) {
#define ROLLOUT_GAME(name)                                                                                             \
    case ROLLOUT_##name:                                                                                               \
        if constexpr (cuda_env_tiles<cuda_game_##name>::yes)                                                           \
            rollout_next_game<cuda_game_##name>(seat, played);                                                         \
        break;
        ENV_GAMES(ROLLOUT_GAME)
#undef ROLLOUT_GAME
    }
}

#endif
