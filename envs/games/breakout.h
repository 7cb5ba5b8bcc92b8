/* breakout.h - clear two walls of bricks with a ball and a paddle. (public)
 * Field 576x330 px, y downwards, frames of 1/60 s, `frameskip` of them per decision. Paddle 62x8 with its top at y =
 * 312, 620 px/s. Ball 32x32. Bricks 32x12, 6 rows x 18 columns from y = 50; rows give 7, 7, 4, 4, 1, 1 points: 432 per
 * wall. The wall is built again once, at the first paddle hit after 432 points; the game ends at 864 points or with the
 * loss of the sixth ball. Ball speed 256 px/s, 64 more at every fourth paddle hit up to 448; a brick of the top three
 * rows: 448.
 *
 * What the rules leave open, and what was chosen:
 *  - A new ball waits above the paddle's middle with its top at y = 135; it is launched by itself, downwards, at the
 *    beginning of the next frame. Paddle (middle, full width), speed (256) and hit count start again with every ball.
 *    The observation's "balls fired" is 1 while a ball flies and 0 while it waits.
 *  - A speed change applies at once, in the direction of flight; the fourth hit's own bounce is already faster.
 *  - The paddle shrinks at the top wall about its middle.
 *  - Only the paddle's top face returns the ball. Angle: -45 degrees (to the left) at its left end to +45 at the right,
 *    proportional to where the ball's middle is; beyond the ends the angle of the end.
 *  - One brick per contact: of several hit at once, the one that the ball's middle is nearest to.
 *  - A ball is lost once its top has passed the paddle's bottom (y >= 320). A frame moves paddle, then ball.
 *
 * Collisions are exact sweeps: bricks are cells of a grid, so the ball's leading edges can only touch something where
 * they cross a grid line. A frame walks from crossing to crossing in order of time; at each one the cells entered there
 * are looked up. Invariant: the ball overlaps no brick, no wall, and no edge has crossed a line that was not looked up
 * (positions are clamped to the next line against rounding). Cost: nothing where no line is crossed.
 *
 * Observation, 118 values: paddle x / 576, y / 330, ball x / 576, y / 330, vx / 512, vy / 512 (px per frame), fired /
 * 5, score / 864, spare balls / 5, paddle width / 62, 108 flags (row by row, 1 = brick destroyed). Actions: 0 stay, 1
 * left, 2 right (anything else: stay). Reward: points. score = points, perf = points / 864. */
#ifndef ENVS_BREAKOUT_H
#define ENVS_BREAKOUT_H

#include "envs/env.h"
#include "envs/env_math.h"

#define BREAKOUT_ROWS 6
#define BREAKOUT_COLS 18
#define BREAKOUT_HEAD 10 /* observations before the flags */
#define BREAKOUT_OBS (BREAKOUT_HEAD + BREAKOUT_ROWS * BREAKOUT_COLS)
#define BREAKOUT_WIDTH 576.0f
#define BREAKOUT_HEIGHT 330.0f
#define BREAKOUT_PADDLE_WIDTH 62.0f
#define BREAKOUT_PADDLE_HEIGHT 8.0f
#define BREAKOUT_PADDLE_Y (BREAKOUT_HEIGHT - 18.0f)
#define BREAKOUT_PADDLE_STEP (620.0f / 60.0f) /* px per frame */
#define BREAKOUT_BALL 32.0f
#define BREAKOUT_BALL_Y 135.0f /* of a waiting ball */
#define BREAKOUT_BRICK_W 32.0f
#define BREAKOUT_BRICK_H 12.0f
#define BREAKOUT_BRICK_Y 50.0f /* top of the first row */
#define BREAKOUT_SPEED_MIN 256.0f
#define BREAKOUT_SPEED_STEP 64.0f
#define BREAKOUT_SPEED_MAX 448.0f
#define BREAKOUT_BALLS 5
#define BREAKOUT_WALL_POINTS 432
#define BREAKOUT_FULL_ROW ((1u << BREAKOUT_COLS) - 1u)
#define BREAKOUT_LAUNCH_SIN 0.8229838658936564f /* of pi / 3.25 */
#define BREAKOUT_LAUNCH_COS 0.5680647467311558f

struct breakout_settings {
    int64_t frameskip; /* frames per decision */
};

struct breakout_state {
    struct rng rng;
    float paddle_x, paddle_width;
    float ball_x, ball_y; /* top left corner */
    float dir_x, dir_y; /* direction of flight, length 1 */
    float speed; /* px/s */
    int32_t fired; /* 1 while the ball flies */
    int32_t balls; /* spare balls; -1: the game is over */
    int32_t hits; /* paddle hits of this ball */
    int32_t points;
    int32_t walls; /* built so far, 1 or 2 */
    uint32_t bricks[BREAKOUT_ROWS]; /* bit c of row r: brick stands */
};

ENV_FN void breakout_shape(const struct breakout_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = BREAKOUT_OBS;
    ret_shape->head_sizes[0] = 3;
}

/* -- the life of a ball -- */
ENV_FN void breakout_new_ball(struct breakout_state *state)
{
    state->paddle_width = BREAKOUT_PADDLE_WIDTH;
    state->paddle_x = (BREAKOUT_WIDTH - BREAKOUT_PADDLE_WIDTH) / 2.0f;
    state->ball_x = (BREAKOUT_WIDTH - BREAKOUT_BALL) / 2.0f;
    state->ball_y = BREAKOUT_BALL_Y;
    state->dir_x = 0.0f;
    state->dir_y = 0.0f;
    state->speed = BREAKOUT_SPEED_MIN;
    state->fired = 0;
    state->hits = 0;
}

ENV_FN void breakout_new_wall(struct breakout_state *state)
{
    ENV_UNROLL
    for (int r = 0; r < BREAKOUT_ROWS; r++)
        state->bricks[r] = BREAKOUT_FULL_ROW;
    state->walls++;
}

ENV_FN void breakout_reset(const struct breakout_settings *settings, struct breakout_state *state)
{
    state->balls = BREAKOUT_BALLS;
    state->points = 0;
    state->walls = 0;
    breakout_new_wall(state);
    breakout_new_ball(state);
}

ENV_FN void breakout_launch(struct breakout_state *state)
{
    state->fired = 1;
    state->dir_x = rng_below(&state->rng, 2) ? BREAKOUT_LAUNCH_SIN : -BREAKOUT_LAUNCH_SIN;
    state->dir_y = BREAKOUT_LAUNCH_COS;
}

ENV_FN float breakout_pace(const struct breakout_state *state) /* px per frame */
{
    return env_div_const(state->speed, 60.0f);
}

/* -- what the ball touches -- */
/* Access to a row that is not known before it runs. On the device every row is looked at, for an array with a computed
 * index cannot stay in registers, nor can the struct around it. */
ENV_FN uint32_t breakout_row(const struct breakout_state *state, int row)
{
#ifdef __CUDA_ARCH__
    uint32_t bricks = 0;
    ENV_UNROLL
    for (int r = 0; r < BREAKOUT_ROWS; r++)
        bricks = r == row ? state->bricks[r] : bricks;
    return bricks;
#else
    return state->bricks[row];
#endif
}

ENV_FN void breakout_hit_brick(struct breakout_state *state, int row, int col)
{
#ifdef __CUDA_ARCH__
    ENV_UNROLL
    for (int r = 0; r < BREAKOUT_ROWS; r++)
        state->bricks[r] &= ~((uint32_t)(r == row) << col);
#else
    state->bricks[row] &= ~(1u << col);
#endif
    state->points += row < 2 ? 7 : row < 4 ? 4 : 1;
    if (row < 3)
        state->speed = BREAKOUT_SPEED_MAX;
}

/* An upper or lower edge enters `row`, in columns first..last (at most two). True: it hit a brick. */
ENV_FN bool breakout_enter_row(struct breakout_state *state, int row, int first, int last)
{
    uint32_t standing = breakout_row(state, row);
    bool left = (standing >> first & 1u) != 0, right = last != first && (standing >> last & 1u) != 0;
    if (!left && !right)
        return false;
    /* The middle is in the left column while the ball is over less than half of the right one. */
    bool middle_left = state->ball_x - BREAKOUT_BRICK_W * (float)first < BREAKOUT_BRICK_W / 2.0f;
    breakout_hit_brick(state, row, left && (middle_left || !right) ? first : last);
    return true;
}

/* A left or right edge enters `col`, in rows first..last (clipped to the wall here). True: it hit a brick. */
ENV_FN bool breakout_enter_col(struct breakout_state *state, int col, int first, int last)
{
    if (last < 0 || first >= BREAKOUT_ROWS)
        return false;
    uint32_t standing = 0; /* bit r: the brick of row r */
    ENV_UNROLL
    for (int r = 0; r < BREAKOUT_ROWS; r++)
        standing |= (state->bricks[r] >> col & 1u) << r;
    int best = -1;
    float middle = state->ball_y + BREAKOUT_BALL / 2.0f - (BREAKOUT_BRICK_Y + BREAKOUT_BRICK_H / 2.0f);
    float best_distance = 0.0f;
    for (int r = first < 0 ? 0 : first; r <= last && r < BREAKOUT_ROWS; r++) {
        if (!(standing >> r & 1u))
            continue;
        float distance = middle - BREAKOUT_BRICK_H * (float)r;
        distance = distance < 0.0f ? -distance : distance;
        if (best < 0 || distance < best_distance) {
            best = r;
            best_distance = distance;
        }
    }
    if (best >= 0)
        breakout_hit_brick(state, best, col);
    return best >= 0;
}

/* The ball's lower edge is on the paddle's level, going down. False: it passes the paddle's ends. */
ENV_FN bool breakout_reach_paddle(struct breakout_state *state)
{
    if (!(state->ball_x + BREAKOUT_BALL > state->paddle_x && state->ball_x < state->paddle_x + state->paddle_width))
        return false;
    float at = (state->ball_x + BREAKOUT_BALL / 2.0f - state->paddle_x) / state->paddle_width;
    at = at < 0.0f ? 0.0f : at > 1.0f ? 1.0f : at;
    double sine, cosine;
    env_sincos(((double)at - 0.5) * (ENV_PI / 2.0), &sine, &cosine);
    state->dir_x = (float)sine;
    state->dir_y = -(float)cosine;
    state->hits++;
    if (state->hits % 4 == 0 && state->speed < BREAKOUT_SPEED_MAX)
        state->speed += BREAKOUT_SPEED_STEP;
    if (state->points == BREAKOUT_WALL_POINTS && state->walls == 1)
        breakout_new_wall(state);
    return true;
}

ENV_FN void breakout_reach_top(struct breakout_state *state)
{
    state->dir_y = -state->dir_y;
    if (state->paddle_width == BREAKOUT_PADDLE_WIDTH) {
        state->paddle_width = BREAKOUT_PADDLE_WIDTH / 2.0f;
        state->paddle_x += BREAKOUT_PADDLE_WIDTH / 4.0f;
    }
}

/* -- lines: where an edge can touch something --
 * A column is as wide as the ball, so both edges of a ball at x cross lines together, at x = 32 k. Rows are looked at
 * in terms of ball_y. What rounds here is exact enough: a position next to a line never rounds onto it. On a line, an
 * edge belongs to the ball's side of it. */
#define BREAKOUT_ROW_BELOW BREAKOUT_ROWS /* between the bricks and the paddle's level */
#define BREAKOUT_ROW_LOST (BREAKOUT_ROWS + 1) /* below the paddle's level */
#define BREAKOUT_EVENTS_MAX 32 /* per frame; a frame has room for a handful */

/* Row of the upper edge, -1 for all above the first. */
ENV_FN int breakout_top_row(float ball_y)
{
    int below = env_floor(ball_y - BREAKOUT_BRICK_Y); /* whole pixels: lines are whole */
    if (below < 0)
        return -1;
    return below < BREAKOUT_ROWS * (int)BREAKOUT_BRICK_H ? below / (int)BREAKOUT_BRICK_H : BREAKOUT_ROW_BELOW;
}

/* Row of the lower edge, likewise. */
ENV_FN int breakout_bottom_row(float ball_y)
{
    int below = env_ceil(ball_y - (BREAKOUT_BRICK_Y - BREAKOUT_BALL));
    if (below <= BREAKOUT_ROWS * (int)BREAKOUT_BRICK_H)
        return below <= 0 ? -1 : (below - 1) / (int)BREAKOUT_BRICK_H;
    return ball_y <= BREAKOUT_PADDLE_Y - BREAKOUT_BALL ? BREAKOUT_ROW_BELOW : BREAKOUT_ROW_LOST;
}

/* ball_y at which the upper edge leaves `row` upwards; above the first row comes the top wall. */
ENV_FN float breakout_line_up(int row)
{
    return row < 0 ? 0.0f : BREAKOUT_BRICK_Y + BREAKOUT_BRICK_H * (float)row;
}

/* ball_y at which the lower edge leaves `row` downwards: into a row, onto the paddle's level, or never. */
ENV_FN float breakout_line_down(int row)
{
    if (row < BREAKOUT_ROWS)
        return BREAKOUT_BRICK_Y - BREAKOUT_BALL + BREAKOUT_BRICK_H * (float)(row + 1);
    return row == BREAKOUT_ROW_BELOW ? BREAKOUT_PADDLE_Y - BREAKOUT_BALL : 4.0f * BREAKOUT_HEIGHT;
}

/* Straight flight until the end of the frame or to the first contact. Takes the rest of the frame, returns what is left
 * of it (0: done). */
ENV_FN float breakout_fly(struct breakout_state *state, float rest, int *events)
{
    float vx = state->dir_x * breakout_pace(state), vy = state->dir_y * breakout_pace(state);
    bool right = vx >= 0.0f, down = vy >= 0.0f;
    int col = right ? env_ceil(state->ball_x / BREAKOUT_BRICK_W) : env_floor(state->ball_x / BREAKOUT_BRICK_W);
    int row = down ? breakout_bottom_row(state->ball_y) : breakout_top_row(state->ball_y);

    for (; *events < BREAKOUT_EVENTS_MAX; ++*events) {
        float line_x = BREAKOUT_BRICK_W * (float)col;
        float line_y = down ? breakout_line_down(row) : breakout_line_up(row);
        float x = state->ball_x + vx * rest, y = state->ball_y + vy * rest;
        bool cross_x = right ? x > line_x : x < line_x, cross_y = down ? y > line_y : y < line_y;
        if (!cross_x && !cross_y) {
            state->ball_x = x;
            state->ball_y = y;
            return 0.0f;
        }
        float time_x = cross_x ? env_div(line_x - state->ball_x, vx) : 2.0f;
        float time_y = cross_y ? env_div(line_y - state->ball_y, vy) : 2.0f;
        float time = time_x <= time_y ? time_x : time_y;
        rest = rest > time ? rest - time : 0.0f;

        if (time_x <= time_y) { /* a side edge enters the next column */
            y = state->ball_y + vy * time;
            state->ball_y = (down ? y > line_y : y < line_y) ? line_y : y;
            state->ball_x = line_x;
            col += right ? 1 : -1;
            int first = down ? breakout_top_row(state->ball_y) : row;
            int last = down ? row : breakout_bottom_row(state->ball_y);
            if (col < 0 || col >= BREAKOUT_COLS || breakout_enter_col(state, col, first, last)) {
                state->dir_x = -state->dir_x;
                return rest;
            }
        } else { /* the upper or lower edge enters the next row */
            x = state->ball_x + vx * time;
            state->ball_x = (right ? x > line_x : x < line_x) ? line_x : x;
            state->ball_y = line_y;
            if (!down && row < 0) {
                breakout_reach_top(state);
                return rest;
            }
            row += down ? 1 : -1;
            if (row == BREAKOUT_ROW_LOST) {
                if (breakout_reach_paddle(state))
                    return rest;
                continue;
            }
            int first = right ? env_floor(state->ball_x / BREAKOUT_BRICK_W) : col;
            int last = right ? col : env_ceil(state->ball_x / BREAKOUT_BRICK_W);
            if (row >= 0 && row < BREAKOUT_ROWS && breakout_enter_row(state, row, first, last)) {
                state->dir_y = -state->dir_y;
                return rest;
            }
        }
    }
    return 0.0f;
}

/* One frame of flight. */
ENV_FN void breakout_move_ball(struct breakout_state *state)
{
    float x = state->ball_x + state->dir_x * breakout_pace(state);
    float y = state->ball_y + state->dir_y * breakout_pace(state);
    const float open_top = BREAKOUT_BRICK_Y + BREAKOUT_BRICK_H * BREAKOUT_ROWS;
    const float open_bottom = BREAKOUT_PADDLE_Y - BREAKOUT_BALL;
    if (state->ball_y >= open_top && y >= open_top && state->ball_y <= open_bottom && y <= open_bottom && x >= 0.0f &&
        x <= BREAKOUT_WIDTH - BREAKOUT_BALL) { /* nothing but air on the way */
        state->ball_x = x;
        state->ball_y = y;
        return;
    }
    float rest = 1.0f;
    int events = 0;
    while (rest > 0.0f && events < BREAKOUT_EVENTS_MAX) {
        rest = breakout_fly(state, rest, &events);
        events++;
    }
}

/* -- the game -- */
ENV_FN void breakout_step(const struct breakout_settings *settings, struct breakout_state *state,
                          const int32_t *actions, struct env_step *step)
{
    const int32_t before = state->points;
    float paddle_step = BREAKOUT_PADDLE_STEP * (float)((actions[0] == 2) - (actions[0] == 1));
    bool over = false;
    for (int64_t frame = 0; frame < settings->frameskip && !over; frame++) {
        float x = state->paddle_x + paddle_step, x_max = BREAKOUT_WIDTH - state->paddle_width;
        x = x < 0.0f ? 0.0f : x;
        state->paddle_x = x > x_max ? x_max : x;
        if (!state->fired)
            breakout_launch(state);
        breakout_move_ball(state);
        if (state->ball_y >= BREAKOUT_PADDLE_Y + BREAKOUT_PADDLE_HEIGHT) {
            state->balls--;
            if (state->balls >= 0)
                breakout_new_ball(state);
        }
        over = state->balls < 0 || state->points == 2 * BREAKOUT_WALL_POINTS;
    }
    step->rewards[0] = (float)(state->points - before);
    step->ended = over;
    step->score = (float)state->points;
    step->perf = (float)state->points / (2.0f * BREAKOUT_WALL_POINTS);
}

/* The flags of the observation: 108 bits in 4 words, lowest first, 1 = destroyed. Words of 32 so that they can be
 * written a vector at a time. */
ENV_FN void breakout_flag_words(const struct breakout_state *state, uint32_t words[4])
{
    const uint32_t *b = state->bricks;
    words[0] = ~(b[0] | b[1] << 18);
    words[1] = ~(b[1] >> 14 | b[2] << 4 | b[3] << 22);
    words[2] = ~(b[3] >> 10 | b[4] << 8 | b[5] << 26);
    words[3] = ~(b[5] >> 6);
}

/* The observation before the flags. */
ENV_OBS_FN void breakout_observe_head(const struct breakout_state *state, env_obs *obs)
{
    obs[0] = env_div_const(state->paddle_x, BREAKOUT_WIDTH);
    obs[1] = BREAKOUT_PADDLE_Y / BREAKOUT_HEIGHT;
    obs[2] = env_div_const(state->ball_x, BREAKOUT_WIDTH);
    obs[3] = env_div_const(state->ball_y, BREAKOUT_HEIGHT);
    obs[4] = state->dir_x * breakout_pace(state) / 512.0f;
    obs[5] = state->dir_y * breakout_pace(state) / 512.0f;
    obs[6] = env_div_const((float)state->fired, 5.0f);
    obs[7] = env_div_const((float)state->points, 2.0f * BREAKOUT_WALL_POINTS);
    obs[8] = env_div_const((float)state->balls, (float)BREAKOUT_BALLS);
    obs[9] = env_div_const(state->paddle_width, BREAKOUT_PADDLE_WIDTH);
}

ENV_OBS_FN void breakout_observe(const struct breakout_settings *settings, const struct breakout_state *state,
                                 int agent, env_obs *obs)
{
    breakout_observe_head(state, obs);

    uint32_t words[4];
    breakout_flag_words(state, words);
    env_obs *flags = obs + BREAKOUT_HEAD;
    for (int w = 0; w < 3; w++)
        for (int i = 0; i < 32; i++)
            flags[32 * w + i] = (float)(int32_t)(words[w] >> i & 1u);
    for (int i = 0; i < 12; i++)
        flags[96 + i] = (float)(int32_t)(words[3] >> i & 1u);
}

/* -- on a GPU: in bf16 everything is written two values at a time, by one thread or by many -- */
#ifdef __CUDACC__
#define BREAKOUT_HEAD_PAIRS (BREAKOUT_HEAD / 2)
#define BREAKOUT_FLAG_PAIRS (BREAKOUT_ROWS * BREAKOUT_COLS / 2)

struct breakout_gpu : env_gpu_rows<BREAKOUT_OBS> {
    enum { packs = 1 };
    struct rest { /* what a lane leaves of its row for the whole warp to write: its flags */
        uint32_t words[4];
    };

    /* The flags of the lowest two bits; 0x3f80 is 1.0. */
    __device__ static inline uint32_t flags(uint32_t two)
    {
        return ((two & 1u) ? 0x3f80u : 0u) | ((two & 2u) ? 0x3f800000u : 0u);
    }

    __device__ static inline void head(const breakout_state *state, uint32_t *pairs)
    {
        float head[BREAKOUT_HEAD];

        breakout_observe_head(state, head);
#pragma unroll
        for (int i = 0; i < BREAKOUT_HEAD_PAIRS; i++) {
            __nv_bfloat162 pair = __floats2bfloat162_rn(head[2 * i], head[2 * i + 1]);
            pairs[i] = *(uint32_t *)&pair;
        }
    }

    /* A whole row, by one thread. */
    __device__ static inline void row(const breakout_state *state, uint32_t *pairs)
    {
        uint32_t words[4];

        head(state, pairs);
        breakout_flag_words(state, words);
#pragma unroll
        for (int i = 0; i < BREAKOUT_FLAG_PAIRS; i++)
            pairs[BREAKOUT_HEAD_PAIRS + i] = flags(words[i / 16] >> (i % 16 * 2));
    }

    /* What head has left of a row, by `each` threads, of which this is `thread`. */
    __device__ static inline void tail(const breakout_state *state, uint32_t *pairs, int thread, int each)
    {
        for (int p = thread; p < BREAKOUT_FLAG_PAIRS; p += each) { /* no pair is in two rows */
            const uint32_t *bricks = state->bricks;
            int brick = 2 * p, row = brick / BREAKOUT_COLS;
            pairs[BREAKOUT_HEAD_PAIRS + p] = flags(~(bricks[row] >> (brick - row * BREAKOUT_COLS)));
        }
    }

    /* Head by the lane whose game it is, flags by the warp: rows of its agents; who: lanes that began theirs. */
    __device__ static inline void row_begin(const breakout_state *state, uint32_t *pairs, rest *left)
    {
        head(state, pairs);
        breakout_flag_words(state, left->words);
    }

    __device__ static inline void row_finish(__nv_bfloat16 *rows, uint32_t who, const rest *left)
    {
        const int lane = (int)(threadIdx.x % 32);

        for (; who != 0; who &= who - 1) {
            int from = __ffs((int)who) - 1;
            uint32_t *pairs = (uint32_t *)(rows + from * BREAKOUT_OBS) + BREAKOUT_HEAD_PAIRS;
            uint32_t w[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                w[i] = __shfl_sync(0xffffffffu, left->words[i], from);
            pairs[lane] = flags((lane < 16 ? w[0] : w[1]) >> (lane % 16 * 2));
            if (lane + 32 < BREAKOUT_FLAG_PAIRS)
                pairs[lane + 32] = flags((lane < 16 ? w[2] : w[3]) >> (lane % 16 * 2));
        }
    }
};
#else
/* -- what the program shows -- */
/* Bricks give up to 7 points, losing a ball nothing: clipped, every brick is worth the same to the learner. */
static const struct env_default breakout_defaults[] = {{"train.reward_clip", "1"}};

static const struct opt_def breakout_options[] = {
    OPT_ROW_INT(struct breakout_settings, frameskip, "4", 1, 60, OPT_FIXED, 0, 0, "frames",
                "Frames of 1/60 s played per decision."),
};
static const struct env_about breakout_about = {"clear two walls of bricks with ball and paddle", breakout_defaults, 1};

static inline void breakout_draw(const struct breakout_settings *settings, const struct breakout_state *s,
                                 struct env_picture *p)
{
    p->width = BREAKOUT_WIDTH;
    p->height = BREAKOUT_HEIGHT;
    for (int r = 0; r < BREAKOUT_ROWS; r++)
        for (int c = 0; c < BREAKOUT_COLS; c++)
            if (s->bricks[r] >> c & 1u)
                env_draw_rect(p, c * (double)BREAKOUT_BRICK_W + 1,
                              (double)BREAKOUT_BRICK_Y + r * (double)BREAKOUT_BRICK_H + 1, (double)BREAKOUT_BRICK_W - 2,
                              (double)BREAKOUT_BRICK_H - 2, (enum env_colour)(ENV_RAMP + r));
    env_draw_rect(p, (double)s->paddle_x, (double)BREAKOUT_PADDLE_Y, (double)s->paddle_width,
                  (double)BREAKOUT_PADDLE_HEIGHT, ENV_OWN);
    env_draw_rect(p, (double)s->ball_x, (double)s->ball_y, (double)BREAKOUT_BALL, (double)BREAKOUT_BALL, ENV_GOAL);
    env_draw_text(p, 8, 30, 20, -1, "%d points", (int)s->points);
    env_draw_text(p, p->width - 8, 30, 20, 1, "%d balls left", s->balls > 0 ? (int)s->balls : 0);
}
#endif

#endif
