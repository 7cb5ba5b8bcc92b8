/* go.h - Go on up to 9x9 points against a fixed opponent. (public)
 * Black moves first; the agent has either colour, each equally likely. Stones of a colour that touch along lines are
 * a group, and the empty points next to it its liberties. A move takes off the other colour's groups that it leaves
 * without a liberty. Illegal is a move that leaves its own group without one, and (ko) one that takes back at once a
 * single stone which has just taken one. Two passes in a row end the game, or 3 n n moves. The points of a colour
 * are its stones and the empty regions that touch no other colour; white has `komi` more; the colour with more has
 * won (area scoring, Tromp-Taylor).
 * The opponent takes the largest group that it can take; else it saves one of its groups that has one liberty, if it
 * has more after the move; else, `aggression` of the time, it takes a liberty of one of the agent's groups that has
 * the fewest; else it plays a random point; no such move fills an eye of its own. It passes where it has none, and
 * after a pass if it has won then.
 * Observation: bytes, (n, n, 7) planes of own stones by the liberties of their group, 1, 2, more; the opponent's by
 * the same; the point that ko forbids; then a list of two: own colour is black, the opponent has just passed.
 * Actions: a point, in rows from the top, or n n to pass; illegal ones are masked (and pass). Reward: 1 for a win,
 * -1 for a loss, and `capture_reward` for each stone that is taken, less the same for each that is lost. score = own
 * points less the opponent's, perf = 1 for a win, else 0. */
#ifndef ENVS_GO_H
#define ENVS_GO_H

#include "envs/env.h"

#define GO_SIDE_MAX 9
#define GO_STRIDE (GO_SIDE_MAX + 2) /* from a cell to the one below: points and an edge around them */
#define GO_CELLS (GO_STRIDE * GO_STRIDE)
#define GO_PLANES 7

enum go_colour { GO_EMPTY, GO_OWN, GO_OTHER, GO_EDGE };

struct go_settings {
    int64_t size;
    double komi, aggression, capture_reward;
};

struct go_state {
    struct rng rng;
    int32_t n; /* the board's side */
    int32_t moves, passes; /* passes in a row */
    int32_t ko; /* the cell that is forbidden to the next mover; -1: none */
    int32_t black; /* enum go_colour */
    uint8_t cells[GO_CELLS]; /* enum go_colour; rows from the top */
    uint8_t group[GO_CELLS]; /* of a stone: its group's first cell; of others 0 */
    uint8_t liberties[GO_CELLS]; /* of the group whose first cell this is */
    uint8_t unused; /* no padding: whole states compare as bytes */
};

ENV_FN void go_shape(const struct go_settings *settings, struct env_shape *ret_shape)
{
    const int n = (int)settings->size;

    ret_shape->obs_size = n * n * GO_PLANES + 2;
    ret_shape->channels = GO_PLANES;
    ret_shape->height = ret_shape->width = n;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1.0f;
    ret_shape->head_sizes[0] = n * n + 1;
    ret_shape->has_mask = true;
}

/* ---- the board ---- */

/* From a cell to the next in direction 0..3. */
ENV_FN int go_way(int direction)
{
    const int ways[4] = {-GO_STRIDE, GO_STRIDE, -1, 1};
    return ways[direction];
}

/* The cell of an action's point. */
ENV_FN int go_cell(const struct go_state *s, int action)
{
    return (action / s->n + 1) * GO_STRIDE + action % s->n + 1;
}

ENV_FN bool go_is_stone(const struct go_state *s, int cell)
{
    return s->cells[cell] == GO_OWN || s->cells[cell] == GO_OTHER;
}

/* Groups and liberties of the board as it is. */
ENV_FN void go_find_groups(struct go_state *s)
{
    uint8_t seen[GO_CELLS], list[GO_CELLS]; /* seen by the group with this first cell; its stones */

    for (int i = 0; i < GO_CELLS; i++)
        seen[i] = s->group[i] = s->liberties[i] = 0;
    for (int first = 0; first < GO_CELLS; first++) {
        int n = 1;
        if (!go_is_stone(s, first) || s->group[first] != 0)
            continue;
        list[0] = s->group[first] = (uint8_t)first;
        for (int i = 0; i < n; i++)
            for (int d = 0; d < 4; d++) {
                const int to = list[i] + go_way(d);
                if (s->cells[to] == GO_EMPTY && seen[to] != first) {
                    seen[to] = (uint8_t)first;
                    s->liberties[first]++;
                } else if (s->cells[to] == s->cells[first] && s->group[to] == 0) {
                    s->group[to] = (uint8_t)first;
                    list[n++] = (uint8_t)to;
                }
            }
    }
}

ENV_FN int go_liberties(const struct go_state *s, int stone)
{
    return s->liberties[s->group[stone]];
}

ENV_FN bool go_is_legal(const struct go_state *s, int at, uint8_t mover)
{
    if (s->cells[at] != GO_EMPTY || at == s->ko)
        return false;
    for (int d = 0; d < 4; d++) {
        const int to = at + go_way(d);
        if (s->cells[to] == GO_EMPTY || (go_is_stone(s, to) && (s->cells[to] == mover) == (go_liberties(s, to) > 1)))
            return true; /* a liberty, a group of its own that keeps one, a group that is taken */
    }
    return false;
}

/* Takes a group off; the number of its stones, and one of them. */
ENV_FN int go_take(struct go_state *s, uint8_t group, int *ret_stone)
{
    int taken = 0;

    for (int i = 0; i < GO_CELLS; i++)
        if (go_is_stone(s, i) && s->group[i] == group) {
            s->cells[i] = GO_EMPTY;
            *ret_stone = i;
            taken++;
        }
    return taken;
}

/* Puts a stone on a legal point; the number of stones that it takes. */
ENV_FN int go_put(struct go_state *s, int at, uint8_t mover)
{
    int taken = 0, last = -1;
    bool alone = true;

    for (int d = 0; d < 4; d++) {
        const int to = at + go_way(d);
        alone = alone && s->cells[to] != mover;
        if (go_is_stone(s, to) && s->cells[to] != mover && go_liberties(s, to) == 1)
            taken += go_take(s, s->group[to], &last);
    }
    s->cells[at] = mover;
    go_find_groups(s);
    s->ko = taken == 1 && alone && go_liberties(s, at) == 1 ? last : -1;
    s->passes = 0;
    s->moves++;
    return taken;
}

ENV_FN void go_pass(struct go_state *s)
{
    s->ko = -1;
    s->passes++;
    s->moves++;
}

/* Own points less the opponent's: of each point which colours it reaches over empty ones. */
ENV_FN double go_score(const struct go_settings *settings, const struct go_state *s)
{
    uint8_t reach[GO_CELLS]; /* 1 own, 2 the opponent's, 3 both */
    bool more = true;
    int sum = 0;

    for (int i = 0; i < GO_CELLS; i++)
        reach[i] = go_is_stone(s, i) ? s->cells[i] : 0;
    while (more) {
        more = false;
        for (int k = 0; k < 2 * GO_CELLS; k++) { /* forth and back */
            const int i = k < GO_CELLS ? k : 2 * GO_CELLS - 1 - k;
            uint8_t all = reach[i];
            for (int d = 0; d < 4 && s->cells[i] == GO_EMPTY; d++)
                all |= reach[i + go_way(d)];
            more = more || all != reach[i];
            reach[i] = all;
        }
    }
    for (int i = 0; i < GO_CELLS; i++)
        sum += (reach[i] == 1) - (reach[i] == 2);
    return (double)sum + (s->black == GO_OWN ? -settings->komi : settings->komi);
}

/* ---- the opponent ---- */

/* How many stones a move of the opponent's would take. */
ENV_FN int go_would_take(const struct go_state *s, int at)
{
    int taken = 0;

    for (int i = 0; i < GO_CELLS; i++) {
        bool beside = false;
        for (int d = 0; d < 4 && s->cells[i] == GO_OWN && go_liberties(s, i) == 1; d++)
            beside = beside || (s->cells[at + go_way(d)] == GO_OWN && s->group[at + go_way(d)] == s->group[i]);
        taken += beside;
    }
    return taken;
}

/* How much the opponent likes a legal move: 1000 and more takes, 500 saves, above 0 attacks; -1: an eye of its own. */
ENV_FN int go_like(const struct go_state *s, int at, bool attacks)
{
    int empty = 0, fewest = 100, closed = 0;
    bool in_atari = false, joins = false;

    for (int d = 0; d < 4; d++) {
        const int to = at + go_way(d), liberties = go_is_stone(s, to) ? go_liberties(s, to) : 0;
        empty += s->cells[to] == GO_EMPTY;
        closed += s->cells[to] == GO_EDGE || s->cells[to] == GO_OTHER;
        in_atari = in_atari || (s->cells[to] == GO_OTHER && liberties == 1);
        joins = joins || (s->cells[to] == GO_OTHER && liberties > 2);
        if (s->cells[to] == GO_OWN && liberties < fewest)
            fewest = liberties;
    }
    if (fewest == 1)
        return 1000 + go_would_take(s, at);
    if (in_atari && (empty > 1 || joins))
        return 500;
    return closed == 4 ? -1 : attacks && fewest < 100 ? 100 - fewest : 0;
}

/* The best move, at random among equals; it takes stones, or passes. Returns how many it has taken. */
ENV_FN int go_opponent(const struct go_settings *settings, struct go_state *s)
{
    const bool attacks = rng_f64(&s->rng) < settings->aggression;
    const bool has_won = s->passes > 0 && go_score(settings, s) < 0.0;
    int best = -1, chosen = -1;
    uint32_t equal = 0;

    for (int at = 0; at < GO_CELLS && !has_won; at++) {
        const int like = go_is_legal(s, at, GO_OTHER) ? go_like(s, at, attacks) : -1;
        if (like < 0 || like < best)
            continue;
        equal = like > best ? 1 : equal + 1;
        if (like > best || rng_below(&s->rng, equal) == 0)
            chosen = at;
        best = like;
    }
    if (chosen >= 0)
        return go_put(s, chosen, GO_OTHER);
    go_pass(s);
    return 0;
}

/* ---- the game ---- */

ENV_FN void go_reset(const struct go_settings *settings, struct go_state *state)
{
    state->n = (int32_t)settings->size;
    state->moves = state->passes = 0;
    state->ko = -1;
    state->black = rng_below(&state->rng, 2) == 0 ? GO_OWN : GO_OTHER;
    state->unused = 0;
    for (int i = 0; i < GO_CELLS; i++)
        state->cells[i] = GO_EDGE;
    for (int i = 0; i < state->n * state->n; i++)
        state->cells[go_cell(state, i)] = GO_EMPTY;
    go_find_groups(state);
    if (state->black == GO_OTHER)
        go_opponent(settings, state);
}

ENV_FN bool go_is_over(const struct go_state *s)
{
    return s->passes >= 2 || s->moves >= 3 * s->n * s->n;
}

ENV_FN void go_step(const struct go_settings *settings, struct go_state *s, const int32_t *actions,
                    struct env_step *step)
{
    const bool is_point = actions[0] >= 0 && actions[0] < s->n * s->n;
    const int at = is_point ? go_cell(s, actions[0]) : 0;
    int taken = 0;

    if (go_is_legal(s, at, GO_OWN))
        taken += go_put(s, at, GO_OWN);
    else
        go_pass(s);
    if (!go_is_over(s))
        taken -= go_opponent(settings, s);
    step->ended = go_is_over(s);
    const double score = step->ended ? go_score(settings, s) : 0.0;
    step->rewards[0] = (float)(settings->capture_reward * (double)taken + (score > 0.0) - (score < 0.0));
    step->score = (float)score;
    step->perf = score > 0.0 ? 1.0f : 0.0f;
}

ENV_FN void go_observe(const struct go_settings *settings, const struct go_state *s, int agent, uint8_t *obs)
{
    const int n = s->n * s->n;

    for (int i = 0; i < n; i++) {
        const int cell = go_cell(s, i), liberties = s->cells[cell] == GO_EMPTY ? 0 : go_liberties(s, cell);
        const int plane = (s->cells[cell] == GO_OTHER ? 3 : 0) + (liberties > 3 ? 3 : liberties) - 1;
        for (int k = 0; k < GO_PLANES - 1; k++)
            obs[i * GO_PLANES + k] = liberties > 0 && k == plane;
        obs[i * GO_PLANES + GO_PLANES - 1] = cell == s->ko;
    }
    obs[n * GO_PLANES] = s->black == GO_OWN;
    obs[n * GO_PLANES + 1] = s->passes > 0;
}

ENV_FN void go_mask(const struct go_settings *settings, const struct go_state *s, int agent, uint8_t *mask)
{
    for (int i = 0; i < s->n * s->n; i++)
        mask[i] = go_is_legal(s, go_cell(s, i), GO_OWN);
    mask[s->n * s->n] = 1;
}

ENV_GPU(go, env_gpu_bytes)

#ifndef __CUDACC__
/* -- what the program shows -- */
static const struct opt_def go_options[] = {
    OPT_ROW_INT(struct go_settings, size, "9", 5, GO_SIDE_MAX, OPT_FIXED, 0, 0, "points",
                "Points on each side of the board."),
    OPT_ROW_FLOAT(struct go_settings, komi, "7.5", 0, 100, OPT_FIXED, 0, 0, "points", "Extra points for white."),
    OPT_ROW_FLOAT(struct go_settings, aggression, "0.5", 0, 1, OPT_FIXED, 0, 0, "",
                  "Share of the opponent's moves that attack when nothing is to be taken or saved."),
    OPT_ROW_FLOAT(struct go_settings, capture_reward, "0", 0, 1, OPT_LINEAR, 0, 0.1, "",
                  "Reward for each stone that is taken, less the same for each that is lost."),
};
static const struct env_about go_about = {"Go on 9x9 against a fixed opponent", NULL, 0};

static inline void go_draw(const struct go_settings *settings, const struct go_state *s, struct env_picture *p)
{
    const double cell = 30, last = cell * (s->n - 0.5);

    p->width = p->height = cell * s->n;
    for (int i = 0; i < s->n; i++) {
        env_draw_line(p, cell / 2, cell * (i + 0.5), last, cell * (i + 0.5), 1, ENV_FAINT);
        env_draw_line(p, cell * (i + 0.5), cell / 2, cell * (i + 0.5), last, 1, ENV_FAINT);
    }
    for (int i = 0; i < s->n * s->n; i++)
        if (s->cells[go_cell(s, i)] != GO_EMPTY)
            env_draw_circle(p, cell * (i % s->n + 0.5), cell * (i / s->n + 0.5), 0.45 * cell,
                            s->cells[go_cell(s, i)] == GO_OWN ? ENV_OWN : ENV_OPPONENT);
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
#define ENV_GAME_HAS_MASK
