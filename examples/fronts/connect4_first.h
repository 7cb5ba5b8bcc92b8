/* connect4_first.h - Connect Four by the rules of PufferLib's game, so that fronts.py can play it on a GPU:
 * trawl env build connect4_first.h
 *
 * 7 columns of 6 cells. The agent moves first, on an empty board; a stone on a full column loses, so no game is drawn.
 * The opponent wins where it can, answers a first stone in column 3 or 4 (of 0 to 6) with the column left of it, and
 * else takes the column with the least sum over what may follow: the agent's stone, 100 if it wins; the opponent's, -10
 * if it wins; the agent's, 1 if it wins; of equal columns one at random. The program's own connect4 has a stronger
 * opponent, which tells a forced win from a likely one, and who moves first is drawn.
 * Observation: the cells, 1 the agent's, -1 the opponent's. Reward and score: 1 for a win, -1 for a loss. perf = 1 for
 * a win. */
#ifndef CONNECT4_FIRST_H
#define CONNECT4_FIRST_H

#include "trawl_env.h"

#define BOTTOMS 0x40810204081ull /* of a board of bits: bit 7 column + row; the seventh of a column stays 0 */
#define BOARD (BOTTOMS * 0x3f)

struct connect4_first_settings {
    int64_t unused; /* the form wants an option */
};

struct connect4_first_state {
    struct rng rng;
    uint64_t own, other;
};

ENV_FN void connect4_first_shape(const struct connect4_first_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = 42;
    ret_shape->n_agents = 1;
    ret_shape->n_heads = 1;
    ret_shape->head_sizes[0] = 7;
}

ENV_FN void connect4_first_reset(const struct connect4_first_settings *settings, struct connect4_first_state *state)
{
    state->own = state->other = 0;
}

/* Where the next stone of each column comes to lie. */
ENV_FN uint64_t connect4_first_open(uint64_t stones)
{
    return (stones + BOTTOMS) & BOARD;
}

ENV_FN uint64_t connect4_first_cell(uint64_t stones, int column)
{
    return connect4_first_open(stones) & ((uint64_t)0x3f << 7 * column);
}

/* The cells that complete four in a row. */
ENV_FN uint64_t connect4_first_completing(uint64_t mine)
{
    uint64_t cells = mine << 1 & mine << 2 & mine << 3; /* upright: only from above */

    for (int way = 6; way <= 8; way++) {
        uint64_t two_below = mine << way & mine << 2 * way, two_above = mine >> way & mine >> 2 * way;
        cells |= two_below & (mine << 3 * way | mine >> way);
        cells |= two_above & (mine >> 3 * way | mine << way);
    }
    return cells & BOARD;
}

ENV_FN int connect4_first_count(uint64_t cells)
{
    int n = 0;
    for (; cells != 0; cells &= cells - 1)
        n++;
    return n;
}

/* The opponent's sum over what may follow its stone. */
ENV_FN int connect4_first_sum(uint64_t own, uint64_t other)
{
    const uint64_t open = connect4_first_open(own | other), wins = connect4_first_completing(own) & open;
    const uint64_t others = connect4_first_completing(other);
    int sum = 100 * connect4_first_count(wins);

    for (uint64_t left = open & ~wins; left != 0; left &= left - 1) {
        const uint64_t cell = left & (~left + 1), next = own | cell;
        const uint64_t open2 = connect4_first_open(next | other), mine = connect4_first_completing(next);
        sum -= 10 * connect4_first_count(others & open2);
        for (uint64_t left2 = open2 & ~others; left2 != 0; left2 &= left2 - 1) {
            const uint64_t cell2 = left2 & (~left2 + 1);
            sum += connect4_first_count(mine & connect4_first_open(next | other | cell2));
        }
    }
    return sum;
}

/* A column that is not full. */
ENV_FN int connect4_first_answer(struct rng *rng, uint64_t own, uint64_t other)
{
    int least = 0, chosen = 0, n = 0;

    for (int column = 3; column <= 4; column++)
        if (own == (uint64_t)1 << 7 * column && other == 0)
            return column - 1;
    for (int column = 0; column < 7; column++)
        if ((connect4_first_completing(other) & connect4_first_cell(own | other, column)) != 0)
            return column;
    for (int column = 0; column < 7; column++) {
        const uint64_t cell = connect4_first_cell(own | other, column);
        if (cell == 0)
            continue;
        const int sum = connect4_first_sum(own, other | cell);
        const bool better = n == 0 || sum < least;
        n = better ? 1 : sum == least ? n + 1 : n;
        if (better || (sum == least && rng_below(rng, (uint32_t)n) == 0))
            chosen = column;
        least = better ? sum : least;
    }
    return chosen;
}

ENV_FN void connect4_first_step(const struct connect4_first_settings *settings, struct connect4_first_state *state,
                                const int32_t *actions, struct env_step *step)
{
    const int column = actions[0] >= 0 && actions[0] < 7 ? actions[0] : 0;
    const uint64_t cell = connect4_first_cell(state->own | state->other, column);
    const bool won = (connect4_first_completing(state->own) & cell) != 0;
    bool lost = cell == 0;

    state->own |= cell;
    if (!won && !lost) { /* the agent moves first, so there is room */
        const int answer = connect4_first_answer(&state->rng, state->own, state->other);
        const uint64_t reply = connect4_first_cell(state->own | state->other, answer);
        lost = (connect4_first_completing(state->other) & reply) != 0;
        state->other |= reply;
    }
    step->ended = won || lost;
    step->rewards[0] = won ? 1.0f : lost ? -1.0f : 0.0f;
    step->score = step->rewards[0];
    step->perf = won ? 1.0f : 0.0f;
}

ENV_OBS_FN void connect4_first_observe(const struct connect4_first_settings *settings,
                                       const struct connect4_first_state *state, int agent, env_obs *obs)
{
    for (int i = 0; i < 42; i++) {
        const int bit = i + i / 6;
        obs[i] = (float)((int)(state->own >> bit & 1) - (int)(state->other >> bit & 1));
    }
}

ENV_GPU(connect4_first, env_gpu_rows<42>)

#ifndef __CUDACC__
static const struct opt_def connect4_first_options[] = {
    OPT_ROW_INT(struct connect4_first_settings, unused, "0", 0, 0, OPT_FIXED, 0, 0, "", "Has no effect."),
};
static const struct env_about connect4_first_about = {"Connect Four against the opponent of PufferLib's game", NULL, 0};

static inline void connect4_first_draw(const struct connect4_first_settings *settings,
                                       const struct connect4_first_state *state, struct env_picture *p)
{
    p->width = 7;
    p->height = 6;
    for (int bit = 0; bit < 49; bit++)
        if (bit % 7 < 6)
            env_draw_circle(p, bit / 7 + 0.5, 5.5 - bit % 7, 0.4,
                            state->own >> bit & 1     ? ENV_OWN
                            : state->other >> bit & 1 ? ENV_OPPONENT
                                                      : ENV_FAINT);
}
#endif

#endif
