/* go_greedy.h - Go on 9x9 by the rules of PufferLib's game, so that fronts.py can play it on a GPU:
 * trawl env build go_greedy.h
 *
 * An instance keeps one colour, each equally likely; black begins. A decision is one colour's, so every second
 * one is the opponent's and the action has no effect in it. A stone may not leave its own group without a liberty, nor
 * restore by taking the board of before the other's last stone; an agent that tries stays to move. A game ends after
 * 243 decisions, or when the opponent has no move (the next one then begins with white), never by passing.
 * The opponent tries, in the order of the points: a liberty of one of the agent's groups that has one, or of its own
 * that has one; then of the agent's that have two, three, four; else a random legal point. Which liberty of a group
 * depends on its root, the stone that represents it: of two groups that join, the one with the higher rank gives it, of
 * equal ones the older; the first liberty is that which a search from the root meets. The program's own go has another
 * opponent, masks, and counts both moves as one decision.
 * Observation: bytes, own stones, the opponent's, both before the last stone, own colour is white, it is the agent's
 * turn (still 0 after the opponent's stone, as there). Action: 0 passes, else a point. Reward: for passing, an illegal
 * stone, each stone that is taken or lost; 1 or -1 at the end. score = own points less the opponent's by stones and
 * surrounded regions, 7.5 more for white; perf = 1 for a win. */
#ifndef GO_GREEDY_H
#define GO_GREEDY_H

#include "trawl_env.h"

#define GO_POINTS 81
#define GO_OBS (4 * GO_POINTS + 4) /* two zeros at the end: tensor cores read rows of eights */
#define GO_DECISIONS 243
#define GO_KOMI 7.5f
#define GO_LEFT_LO 0x40201008040201ull /* the points of the first column: seven rows of nine bits, and two */
#define GO_LEFT_HI 0x201ull
#define GO_ALL_LO 0x7fffffffffffffffull
#define GO_ALL_HI 0x3ffffull

struct go_greedy_settings {
    double reward_move_pass, reward_move_invalid, reward_player_capture, reward_opponent_capture;
};

struct go_points { /* a set */
    uint64_t lo, hi;
};

struct go_board {
    struct go_points black, white;
};

struct go_greedy_state {
    struct rng rng;
    struct go_board now, before; /* before the last stone */
    uint8_t parent[GO_POINTS],
        rank[GO_POINTS]; /* of a stone: the one that leads to its group's root; a root is its own */
    uint8_t decisions, is_white, white_moves,
        shown_white; /* the agent's colour; whose turn it is; as the observation has it */
    uint8_t white_begins, unused; /* no padding: whole states compare as bytes */
};

ENV_FN void go_greedy_shape(const struct go_greedy_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = GO_OBS;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1.0f;
    ret_shape->head_sizes[0] = GO_POINTS + 1;
}

/* ---- sets of points ---- */

ENV_FN struct go_points go_point(int at)
{
    const struct go_points p = {at < 63 ? (uint64_t)1 << at : 0, at < 63 ? 0 : (uint64_t)1 << (at - 63)};
    return p;
}

ENV_FN struct go_points go_or(struct go_points a, struct go_points b)
{
    const struct go_points p = {a.lo | b.lo, a.hi | b.hi};
    return p;
}

ENV_FN struct go_points go_and(struct go_points a, struct go_points b)
{
    const struct go_points p = {a.lo & b.lo, a.hi & b.hi};
    return p;
}

ENV_FN struct go_points go_less(struct go_points a, struct go_points b)
{
    const struct go_points p = {a.lo & ~b.lo, a.hi & ~b.hi};
    return p;
}

ENV_FN bool go_is_empty(struct go_points a)
{
    return (a.lo | a.hi) == 0;
}

ENV_FN bool go_same(struct go_points a, struct go_points b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

ENV_FN bool go_has(struct go_points a, int at)
{
    return ((at < 63 ? a.lo >> at : a.hi >> (at - 63)) & 1) != 0;
}

ENV_FN int go_count(struct go_points a)
{
    int n = 0;

    for (; a.lo != 0; a.lo &= a.lo - 1)
        n++;
    for (; a.hi != 0; a.hi &= a.hi - 1)
        n++;
    return n;
}

ENV_FN int go_lowest_bit(uint64_t bits)
{
#ifdef __CUDA_ARCH__
    return __ffsll((long long)bits) - 1;
#else
    return __builtin_ctzll(bits);
#endif
}

/* Of a set that is not empty. */
ENV_FN int go_first(struct go_points a)
{
    return a.lo != 0 ? go_lowest_bit(a.lo) : 63 + go_lowest_bit(a.hi);
}

/* The points beside any of these. */
ENV_FN struct go_points go_beside(struct go_points a)
{
    const struct go_points left = {GO_LEFT_LO, GO_LEFT_HI};
    const struct go_points to_right = {(a.lo & ~(GO_LEFT_LO << 8)) << 1, (a.hi & ~(GO_LEFT_HI << 8)) << 1};
    const struct go_points to_left = {go_less(a, left).lo >> 1, go_less(a, left).hi >> 1};
    const struct go_points down = {(a.lo << 9) & GO_ALL_LO, ((a.hi << 9) | (a.lo >> 54)) & GO_ALL_HI};
    const struct go_points up = {(a.lo >> 9) | ((a.hi & 0x1ff) << 54), a.hi >> 9};
    return go_or(go_or(to_right, to_left), go_or(down, up));
}

/* What of `within` hangs together with the seed, which lies in it. */
ENV_FN struct go_points go_reach(struct go_points seed, struct go_points within)
{
    for (;;) {
        const struct go_points next = go_or(seed, go_and(go_beside(seed), within));
        if (go_same(next, seed))
            return seed;
        seed = next;
    }
}

ENV_FN struct go_points go_free(const struct go_board *board)
{
    const struct go_points all = {GO_ALL_LO, GO_ALL_HI};
    return go_less(all, go_or(board->black, board->white));
}

/* The point in a direction: left, right, up, down; -1: there is none. */
ENV_FN int go_next(int at, int direction)
{
    const int x = at % 9;

    if (direction < 2)
        return direction == 0 ? (x > 0 ? at - 1 : -1) : (x < 8 ? at + 1 : -1);
    return direction == 2 ? (at >= 9 ? at - 9 : -1) : (at < GO_POINTS - 9 ? at + 9 : -1);
}

/* ---- stones ---- */

ENV_FN int go_root(const struct go_greedy_state *s, int at)
{
    while (s->parent[at] != at)
        at = s->parent[at];
    return at;
}

/* The new stone's group becomes one with its neighbours'. */
ENV_FN void go_join(struct go_greedy_state *s, int at, struct go_points own)
{
    int root = at;

    s->parent[at] = (uint8_t)at;
    s->rank[at] = 0;
    for (int d = 0; d < 4; d++) {
        const int to = go_next(at, d), other = to >= 0 && go_has(own, to) ? go_root(s, to) : root;
        if (other == root)
            continue;
        if (s->rank[root] < s->rank[other]) {
            s->parent[root] = (uint8_t)other;
            root = other;
        } else {
            s->rank[root] = (uint8_t)(s->rank[root] + (s->rank[root] == s->rank[other]));
            s->parent[other] = (uint8_t)root;
        }
    }
}

/* Puts a stone on a point; how many it has taken. -1: it may not lie there, and nothing has changed. */
ENV_FN int go_put(struct go_greedy_state *s, int at, bool white)
{
    const struct go_points stone = go_point(at), old = white ? s->now.white : s->now.black;
    struct go_points own = go_or(old, stone), other = white ? s->now.black : s->now.white;
    struct go_points taken = {0, 0};
    struct go_board next = {white ? other : own, white ? own : other};

    if (go_is_empty(go_and(go_free(&s->now), stone)))
        return -1;
    const struct go_points after = go_free(&next);
    for (int d = 0; d < 4; d++) {
        const int to = go_next(at, d);
        if (to < 0 || !go_has(other, to) || go_has(taken, to))
            continue;
        const struct go_points group = go_reach(go_point(to), other);
        if (go_is_empty(go_and(go_beside(group), after)))
            taken = go_or(taken, group);
    }
    other = go_less(other, taken);
    next.black = white ? other : own;
    next.white = white ? own : other;
    if (go_is_empty(go_and(go_beside(go_reach(stone, own)), go_free(&next))))
        return -1;
    if (!go_is_empty(taken) && go_same(next.black, s->before.black) && go_same(next.white, s->before.white))
        return -1;
    s->before = s->now;
    s->now = next;
    go_join(s, at, own);
    return go_count(taken);
}

/* The agent's points less the opponent's. */
ENV_FN float go_score(const struct go_greedy_state *s)
{
    int sum = go_count(s->now.black) - go_count(s->now.white);

    for (struct go_points left = go_free(&s->now); !go_is_empty(left);) {
        const struct go_points region = go_reach(go_point(go_first(left)), go_free(&s->now)), edge = go_beside(region);
        const bool black = !go_is_empty(go_and(edge, s->now.black)), white = !go_is_empty(go_and(edge, s->now.white));
        sum += black == white ? 0 : black ? go_count(region) : -go_count(region);
        left = go_less(left, region);
    }
    return ((float)sum - GO_KOMI) * (s->is_white ? -1.0f : 1.0f);
}

/* ---- the opponent ---- */

/* The liberty that a search from the group's root, in width, meets first. */
ENV_FN int go_first_liberty(const struct go_greedy_state *s, int stone)
{
    const struct go_points own = go_has(s->now.black, stone) ? s->now.black : s->now.white, empty = go_free(&s->now);
    uint8_t queue[GO_POINTS];
    int n = 1;

    queue[0] = (uint8_t)go_root(s, stone);
    struct go_points seen = go_point(queue[0]);
    for (int i = 0; i < n; i++)
        for (int d = 0; d < 4; d++) {
            const int to = go_next(queue[i], d);
            if (to >= 0 && go_has(empty, to))
                return to;
            if (to >= 0 && go_has(own, to) && !go_has(seen, to)) {
                seen = go_or(seen, go_point(to));
                queue[n++] = (uint8_t)to;
            }
        }
    return stone; /* no group is without */
}

/* How many of the agent's stones its own stone takes; -1: it has no move. */
ENV_FN int go_answer(struct go_greedy_state *s)
{
    const bool white = !s->is_white;
    const struct go_points own = white ? s->now.white : s->now.black, empty = go_free(&s->now);
    struct go_points with[4] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}}; /* the first stones of groups with 1 to 4 liberties */

    for (struct go_points left = go_or(s->now.black, s->now.white); !go_is_empty(left);) {
        const struct go_points first = go_point(go_first(left));
        const bool mine = !go_is_empty(go_and(first, own));
        const struct go_points group = go_reach(first, (mine ? white : !white) ? s->now.white : s->now.black);
        const int liberties = go_count(go_and(go_beside(group), empty));
        for (int k = 0; k < 4; k++)
            if (liberties == k + 1 && (k == 0 || !mine))
                with[k] = go_or(with[k], first);
        left = go_less(left, group);
    }
    for (int k = 0; k < 4; k++)
        for (struct go_points left = with[k]; !go_is_empty(left);) {
            const int stone = go_first(left), taken = go_put(s, go_first_liberty(s, stone), white);
            if (taken >= 0)
                return taken;
            left = go_less(left, go_point(stone));
        }
    for (struct go_points left = empty; !go_is_empty(left);) {
        struct go_points from = left;
        for (int n = (int)rng_below(&s->rng, (uint32_t)go_count(left)); n > 0; n--)
            from = go_less(from, go_point(go_first(from)));
        const int at = go_first(from), taken = go_put(s, at, white);
        if (taken >= 0)
            return taken;
        left = go_less(left, go_point(at));
    }
    return -1;
}

/* ---- the game ---- */

ENV_FN void go_greedy_reset(const struct go_greedy_settings *settings, struct go_greedy_state *s)
{
    const struct go_board none = {{0, 0}, {0, 0}};

    if (s->rng.counter == 0) { /* a new instance */
        s->is_white = (uint8_t)rng_below(&s->rng, 2);
        s->white_begins = 0;
    }
    s->now = s->before = none;
    for (int i = 0; i < GO_POINTS; i++)
        s->parent[i] = s->rank[i] = 0;
    s->decisions = 0;
    s->shown_white = s->unused = 0;
    s->white_moves = s->white_begins;
    s->white_begins = 0;
}

ENV_FN void go_greedy_step(const struct go_greedy_settings *settings, struct go_greedy_state *s, const int32_t *actions,
                           struct env_step *step)
{
    const int action = actions[0] >= 0 && actions[0] <= GO_POINTS ? actions[0] : 0;
    float reward = 0.0f;

    s->decisions++;
    if (s->decisions > GO_DECISIONS) {
        step->ended = true;
    } else if (s->white_moves != s->is_white) {
        const int taken = go_answer(s);
        step->ended = taken < 0;
        reward = (float)settings->reward_opponent_capture * (float)taken;
        reward = reward < -1.0f ? -1.0f : reward > 1.0f ? 1.0f : reward;
        s->white_begins = step->ended;
        s->shown_white = s->white_moves;
        s->white_moves = s->is_white;
    } else {
        const int taken = action == 0 ? 0 : go_put(s, action - 1, s->is_white);
        reward = action == 0 ? (float)settings->reward_move_pass
                 : taken < 0 ? (float)settings->reward_move_invalid
                             : (float)settings->reward_player_capture * (float)taken;
        s->white_moves = taken < 0 ? s->is_white : !s->is_white;
        s->shown_white = s->white_moves;
    }
    step->score = step->ended ? go_score(s) : 0.0f;
    step->perf = step->score > 0.0f ? 1.0f : 0.0f;
    step->rewards[0] = !step->ended ? reward : step->score > 0.0f ? 1.0f : -1.0f;
}

ENV_FN void go_greedy_observe(const struct go_greedy_settings *settings, const struct go_greedy_state *s, int agent,
                              uint8_t *obs)
{
    for (int k = 0; k < 4; k++) {
        const struct go_board board = k < 2 ? s->now : s->before;
        const struct go_points stones = (k % 2 == 0) == (s->is_white != 0) ? board.white : board.black;
        for (int i = 0; i < GO_POINTS; i++)
            obs[k * GO_POINTS + i] = go_has(stones, i);
    }
    obs[4 * GO_POINTS] = s->is_white;
    obs[4 * GO_POINTS + 1] = s->shown_white == s->is_white;
    obs[4 * GO_POINTS + 2] = obs[4 * GO_POINTS + 3] = 0;
}

ENV_GPU(go_greedy, env_gpu_bytes)

#ifndef __CUDACC__
static const struct opt_def go_greedy_options[] = {
    OPT_ROW_FLOAT(struct go_greedy_settings, reward_move_pass, "-0.518441", -1, 0, OPT_LINEAR, -1, 0, "",
                  "Reward for passing."),
    OPT_ROW_FLOAT(struct go_greedy_settings, reward_move_invalid, "-0.0864746", -1, 0, OPT_LINEAR, -1, 0, "",
                  "Reward for an illegal stone."),
    OPT_ROW_FLOAT(struct go_greedy_settings, reward_player_capture, "0.553628", 0, 1, OPT_LINEAR, 0, 1, "",
                  "Reward for each stone that is taken."),
    OPT_ROW_FLOAT(struct go_greedy_settings, reward_opponent_capture, "-0.102283", -1, 0, OPT_LINEAR, -1, 0, "",
                  "Reward for each stone that is lost."),
};
static const struct env_about go_greedy_about = {"Go on 9x9 against the opponent of PufferLib's game", NULL, 0};

static inline void go_greedy_draw(const struct go_greedy_settings *settings, const struct go_greedy_state *s,
                                  struct env_picture *p)
{
    p->width = p->height = 9;
    for (int i = 0; i < 9; i++) {
        env_draw_line(p, 0.5, i + 0.5, 8.5, i + 0.5, 0.03, ENV_FAINT);
        env_draw_line(p, i + 0.5, 0.5, i + 0.5, 8.5, 0.03, ENV_FAINT);
    }
    for (int i = 0; i < GO_POINTS; i++) {
        const bool black = go_has(s->now.black, i), white = go_has(s->now.white, i);
        if (black || white)
            env_draw_circle(p, i % 9 + 0.5, i / 9 + 0.5, 0.45, white == (s->is_white != 0) ? ENV_OWN : ENV_OPPONENT);
    }
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
