/* connect4.h - Connect Four against a negamax opponent. (public)
 * 7 columns of 6 cells; a stone falls to the lowest empty cell of its column. Four in a row, upright, level or
 * slanting, win; a full board is a draw. An episode begins with `opening` random stones, the first player's first, none
 * of which wins; the agent moves first or second, each equally likely. A decision is the agent's stone, then the
 * opponent's. The opponent looks `opponent_depth` stones ahead: it takes the earliest win that it can force, else puts
 * off a loss as long as it can; of equally good columns each is equally likely. Depth 0 is a random player.
 * Observation: the cells in rows from the top, 1 the agent's, -1 the opponent's, 0 empty. Actions: a column, full ones
 * are masked (one that is full or does not exist: the first that is not). Reward: 1 for a win, -1 for a loss, 0 for a
 * draw. score = reward, perf = 1 for a win, else 0: the win rate. */
#ifndef ENVS_CONNECT4_H
#define ENVS_CONNECT4_H

#include "envs/env.h"

#define CONNECT4_ROWS 6
#define CONNECT4_COLS 7
#define CONNECT4_CELLS 42
#define CONNECT4_BOTTOMS 0x40810204081ull /* the lowest cell of each column */
#define CONNECT4_BOARD (CONNECT4_BOTTOMS * 0x3f)
#define CONNECT4_DEPTH_MAX 8
#define CONNECT4_WIN 100 /* of negamax: a win now; later ones are worth less */

struct connect4_settings {
    int64_t opponent_depth; /* 0..CONNECT4_DEPTH_MAX */
    int64_t opening;
};

/* Stones as bits: bit 7 column + row, rows from the bottom; the seventh bit of a column stays 0. */
struct connect4_state {
    struct rng rng;
    uint64_t own, other; /* the agent's stones, the opponent's */
    int32_t stones;
    int32_t unused; /* no padding: whole states compare as bytes */
};

ENV_FN void connect4_shape(const struct connect4_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = CONNECT4_CELLS;
    ret_shape->channels = 1;
    ret_shape->height = CONNECT4_ROWS;
    ret_shape->width = CONNECT4_COLS;
    ret_shape->head_sizes[0] = CONNECT4_COLS;
    ret_shape->has_mask = true;
}

/* ---- the board ---- */

ENV_FN bool connect4_is_full(uint64_t stones, int col)
{
    return (stones >> (7 * col + CONNECT4_ROWS - 1) & 1) != 0;
}

/* The bit at which a stone in this column comes to lie. */
ENV_FN uint64_t connect4_drop(uint64_t stones, int col)
{
    uint64_t bottom = (uint64_t)1 << (7 * col), column = (uint64_t)0x3f << (7 * col);
    return ((stones & column) + bottom) & column;
}

ENV_FN bool connect4_wins(uint64_t mine)
{
    const int ways[4] = {1, 7, 6, 8}; /* upright, level, slanting down, slanting up */
    for (int i = 0; i < 4; i++) {
        uint64_t pairs = mine & mine >> ways[i];
        if ((pairs & pairs >> 2 * ways[i]) != 0)
            return true;
    }
    return false;
}

/* The cells that would complete a four: those next to three in a row, or between two and one. */
ENV_FN uint64_t connect4_threats(uint64_t mine)
{
    uint64_t cells = mine << 1 & mine << 2 & mine << 3;

    for (int way = 6; way <= 8; way++) {
        uint64_t above = mine << way & mine << 2 * way, below = mine >> way & mine >> 2 * way;
        cells |= above & (mine << 3 * way | mine >> way);
        cells |= below & (mine >> 3 * way | mine << way);
    }
    return cells & CONNECT4_BOARD;
}

/* The cells at which the next stone comes to lie, one for each column that is not full. */
ENV_FN uint64_t connect4_open(uint64_t all)
{
    return (all + CONNECT4_BOTTOMS) & CONNECT4_BOARD;
}

/* ---- the opponent ---- */

/* A position of the search: the player to move has not lost, and may put a stone on `cells`. */
struct connect4_level {
    uint64_t mine, theirs, cells;
    int alpha, beta, best;
};

/* Is the value known without a look further? A win now; nothing within `depth` stones; two threats of the
 * other's, or no cells but those below a threat. What is left in level->cells meets a threat, and makes room for
 * none. */
ENV_FN bool connect4_settle(struct connect4_level *level, int depth, int *ret_value)
{
    const uint64_t open = connect4_open(level->mine | level->theirs), threats = connect4_threats(level->theirs);
    const uint64_t forced = open & threats;

    level->cells = (forced != 0 ? forced : open) & ~(threats >> 1);
    if (open != 0 && depth > 0 && (connect4_threats(level->mine) & open) != 0)
        *ret_value = CONNECT4_WIN - 1;
    else if (open == 0 || depth < 2)
        *ret_value = 0;
    else if ((forced & (forced - 1)) != 0 || level->cells == 0)
        *ret_value = -CONNECT4_WIN + 2;
    else if (depth == 2)
        *ret_value = 0;
    else
        return false;
    return true;
}

/* What the player to move makes of a position in which nobody has won: CONNECT4_WIN less a stone for each that
 * comes before a forced win, the negative of that for a loss, 0 beyond `depth` stones. Alpha-beta without
 * recursion: a level for each stone, but for the last two, which connect4_settle knows. On a GPU that is what
 * counts: positions of a depth of 4 need one level. */
ENV_FN int connect4_value(uint64_t mine, uint64_t theirs, int depth)
{
    struct connect4_level level[CONNECT4_DEPTH_MAX - 1];
    int at = 0, value;

    level[0].mine = mine;
    level[0].theirs = theirs;
    level[0].alpha = level[0].best = -2 * CONNECT4_WIN;
    level[0].beta = 2 * CONNECT4_WIN;
    if (connect4_settle(&level[0], depth, &value))
        return value;
    for (;;) {
        struct connect4_level *here = &level[at], next;
        if (here->cells == 0 || here->alpha >= here->beta) { /* done: its value is one of the level above */
            value = here->best;
            if (at == 0)
                return value;
            here = &level[--at];
        } else {
            const uint64_t cell = here->cells & (~here->cells + 1);
            here->cells ^= cell;
            next.mine = here->theirs;
            next.theirs = here->mine | cell;
            if (!connect4_settle(&next, depth - at - 1, &value)) {
                next.alpha = -here->beta - 1; /* values move by one on their way up: one more on either side */
                next.beta = -here->alpha + 1;
                next.best = -2 * CONNECT4_WIN;
                level[++at] = next;
                continue;
            }
        }
        value = value > 0 ? -value + 1 : value < 0 ? -value - 1 : 0; /* a stone later, the other's view */
        here->best = value > here->best ? value : here->best;
        here->alpha = value > here->alpha ? value : here->alpha;
    }
}

/* A column for the player with the stones `mine`: the best, at random among equals. */
ENV_FN int connect4_choose(struct rng *rng, uint64_t mine, uint64_t theirs, int depth)
{
    int best = -3 * CONNECT4_WIN, chosen = 0;
    uint32_t n = 0;

    for (int col = 0; col < CONNECT4_COLS; col++) {
        if (connect4_is_full(mine | theirs, col))
            continue;
        const uint64_t next = mine | connect4_drop(mine | theirs, col);
        int value = 0;
        if (depth > 0)
            value = connect4_wins(next) ? CONNECT4_WIN : -connect4_value(theirs, next, depth - 1);
        n = value > best ? 1 : value == best ? n + 1 : n;
        if (value > best || (value == best && rng_below(rng, n) == 0))
            chosen = col;
        best = value > best ? value : best;
    }
    return chosen;
}

/* ---- the game ---- */

ENV_FN void connect4_opponent(const struct connect4_settings *settings, struct connect4_state *s)
{
    int col = connect4_choose(&s->rng, s->other, s->own, (int)settings->opponent_depth);
    s->other |= connect4_drop(s->own | s->other, col);
    s->stones++;
}

/* Random stones, by turns; a column in which one would win is left to the next. */
ENV_FN void connect4_reset(const struct connect4_settings *settings, struct connect4_state *state)
{
    bool own_turn = rng_below(&state->rng, 2) != 0;

    state->own = state->other = 0;
    state->stones = state->unused = 0;
    for (int64_t i = 0; i < settings->opening; i++) {
        int col = (int)rng_below(&state->rng, CONNECT4_COLS);
        for (int tries = 0; tries < CONNECT4_COLS; tries++, col = (col + 1) % CONNECT4_COLS) {
            uint64_t *mine = own_turn ? &state->own : &state->other, all = state->own | state->other;
            if (connect4_is_full(all, col) || connect4_wins(*mine | connect4_drop(all, col)))
                continue;
            *mine |= connect4_drop(all, col);
            state->stones++;
            own_turn = !own_turn;
            break;
        }
    }
    if (!own_turn)
        connect4_opponent(settings, state);
}

ENV_FN void connect4_step(const struct connect4_settings *settings, struct connect4_state *state,
                          const int32_t *actions, struct env_step *step)
{
    uint64_t all = state->own | state->other;
    int col = actions[0] >= 0 && actions[0] < CONNECT4_COLS ? actions[0] : 0;
    bool won, lost = false;

    for (int next = 0; next < CONNECT4_COLS && connect4_is_full(all, col); next++)
        col = next;
    state->own |= connect4_drop(all, col);
    state->stones++;
    won = connect4_wins(state->own);
    if (!won && state->stones < CONNECT4_CELLS) {
        connect4_opponent(settings, state);
        lost = connect4_wins(state->other);
    }
    step->ended = won || lost || state->stones >= CONNECT4_CELLS;
    step->rewards[0] = won ? 1.0f : lost ? -1.0f : 0.0f;
    step->score = step->rewards[0];
    step->perf = won ? 1.0f : 0.0f;
}

ENV_OBS_FN void connect4_observe(const struct connect4_settings *settings, const struct connect4_state *state,
                                 int agent, env_obs *obs)
{
    for (int cell = 0; cell < CONNECT4_CELLS; cell++) {
        int bit = 7 * (cell % CONNECT4_COLS) + CONNECT4_ROWS - 1 - cell / CONNECT4_COLS;
        obs[cell] = (float)((int)(state->own >> bit & 1) - (int)(state->other >> bit & 1));
    }
}

ENV_FN void connect4_mask(const struct connect4_settings *settings, const struct connect4_state *state, int agent,
                          uint8_t *mask)
{
    for (int col = 0; col < CONNECT4_COLS; col++)
        mask[col] = !connect4_is_full(state->own | state->other, col);
}

ENV_GPU(connect4, env_gpu_direct)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def connect4_options[] = {
    OPT_ROW_INT(struct connect4_settings, opponent_depth, "4", 0, CONNECT4_DEPTH_MAX, OPT_FIXED, 0, 0, "stones",
                "Stones that the opponent looks ahead; 0 is a random player."),
    OPT_ROW_INT(struct connect4_settings, opening, "2", 0, 5, OPT_FIXED, 0, 0, "stones",
                "Random stones with which an episode begins; with more somebody could have won already."),
};
static const struct env_about connect4_about = {"Connect Four against a negamax opponent", NULL, 0};

static inline void connect4_draw(const struct connect4_settings *settings, const struct connect4_state *s,
                                 struct env_picture *p)
{
    const double cell = 50;

    p->width = cell * CONNECT4_COLS;
    p->height = cell * CONNECT4_ROWS;
    for (int i = 0; i < CONNECT4_CELLS; i++) {
        int bit = 7 * (i % CONNECT4_COLS) + CONNECT4_ROWS - 1 - i / CONNECT4_COLS;
        enum env_colour colour = s->own >> bit & 1 ? ENV_OWN : s->other >> bit & 1 ? ENV_OPPONENT : ENV_FAINT;
        env_draw_circle(p, (i % CONNECT4_COLS + 0.5) * cell, (i / CONNECT4_COLS + 0.5) * cell, 0.42 * cell, colour);
    }
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_HAS_MASK
