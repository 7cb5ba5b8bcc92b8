/* maze_turns.h - the rules of PufferLib's maze in Trawl's form, so that fronts.py can play it on a GPU:
 * trawl env build maze_turns.h
 *
 * One of 8192 mazes, each made from its number: a tree of corridors that grows from one cell, in the maze's own share
 * of steps from the cell that it reached last, otherwise from any. Sides are 5 to 45 cells, each odd number nearly
 * equally likely. The agent begins at the top left; the goal is at the bottom right: reward 1, and the episode ends.
 * After two decisions for each cell it is cut. Actions: 0 stay, 1 forward, 2 left, 3 right, 4 back, as seen in the
 * direction of the last attempt to move.
 * Observation: 121 numbers, the 11x11 cells around the agent: 0 open, 1 wall, 3 goal, 6 the agent. Three things are
 * strange and kept, since PufferLib's agents see them: outside the top and the left is open; below a maze lie rows of
 * those that were made before it; and places are sums of cosines in f32, so an agent that is a rounding error away from
 * its cell, as nearly always, sees a row or a column less.
 * perf = score = reward.
 *
 * To make a maze takes a thousand times as long as a step, so each is made once and kept in a table. It depends on
 * its number alone: whoever needs one that is missing makes it, and two who make it at once write the same. */
#ifndef MAZE_TURNS_H
#define MAZE_TURNS_H

#include "trawl_env.h"

#define MAZE_TURNS_MAZES 8192
#define MAZE_TURNS_SIDE 47 /* of the field; mazes are smaller */
#define MAZE_TURNS_ROWS 46 /* of the table: of the largest maze, and one for what lies below */
#define MAZE_TURNS_BELOW 45
#define MAZE_TURNS_CELLS 22 /* cells of two odd coordinates, of the largest maze in each direction */
#define MAZE_TURNS_VIEW 11
#define MAZE_TURNS_OBS 128 /* seven zeros at the end: tensor cores read rows of eights */
#define MAZE_TURNS_PI 3.14159265358979323846f

struct maze_turns_settings {
    int64_t unused; /* the form wants an option */
};

struct maze_turns_state {
    struct rng rng;
    float x, y, direction;
    int32_t maze, steps, moved;
};

ENV_FN void maze_turns_shape(const struct maze_turns_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = MAZE_TURNS_OBS;
    ret_shape->head_sizes[0] = 5;
    ret_shape->may_truncate = true;
}

/* ---- the mazes ---- */

/* Bit x of row y: the cell is open. Row 0 has none: its bit 63 says that the maze is there, bits 48 to 55 its side. Row
 * 45: 16 bits for each of the four rows below the maze, the maze that the row is of, and 1; 0: none. */
#ifdef __CUDACC__
static __device__ uint64_t maze_turns_device[MAZE_TURNS_MAZES][MAZE_TURNS_ROWS];
static __device__ unsigned int maze_turns_device_made;
#endif
static uint64_t maze_turns_host[MAZE_TURNS_MAZES][MAZE_TURNS_ROWS];
static unsigned int maze_turns_host_made;

ENV_FN uint64_t *maze_turns_table(int maze)
{
#ifdef __CUDA_ARCH__
    return maze_turns_device[maze];
#else
    return maze_turns_host[maze];
#endif
}

/* What a block of a GPU has cached may be older, since the end of one maze shares a line with the next. */
ENV_FN uint64_t maze_turns_load(const uint64_t *at)
{
#ifdef __CUDA_ARCH__
    return *(const volatile uint64_t *)at;
#else
    return __atomic_load_n(at, __ATOMIC_ACQUIRE);
#endif
}

ENV_FN void maze_turns_store(uint64_t *at, uint64_t value)
{
#ifdef __CUDA_ARCH__
    *(volatile uint64_t *)at = value;
#else
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
#endif
}

/* The next maze that nobody has begun; MAZE_TURNS_MAZES or more: there is none. */
ENV_FN unsigned int maze_turns_ticket(void)
{
#ifdef __CUDA_ARCH__
    return atomicAdd(&maze_turns_device_made, 1u);
#else
    return __atomic_fetch_add(&maze_turns_host_made, 1u, __ATOMIC_RELAXED);
#endif
}

/* glibc's rand_r. */
ENV_FN int32_t maze_turns_rand(uint32_t *seed)
{
    uint32_t value = 0;

    for (int i = 0; i < 3; i++) {
        *seed = *seed * 1103515245u + 12345u;
        value = value << 10 ^ (*seed >> 16) % (i == 0 ? 2048u : 1024u);
    }
    return (int32_t)value;
}

/* Its seed for maze `maze` in the list of sides and shares, which takes two draws, six steps, for each. */
ENV_FN uint32_t maze_turns_seed(int maze)
{
    uint32_t seed = 42, factor = 1103515245u, sum = 12345u;

    for (unsigned int n = 6u * (unsigned int)maze; n > 0; n >>= 1) {
        seed = (n & 1) != 0 ? seed * factor + sum : seed;
        sum = sum * factor + sum;
        factor *= factor;
    }
    return seed;
}

ENV_FN int maze_turns_side(uint32_t *seed)
{
    return (5 + maze_turns_rand(seed) % (MAZE_TURNS_SIDE - 5) - 1) | 1;
}

/* The maze that wrote the row last before `maze` did not, and 1; 0: none. */
ENV_FN uint64_t maze_turns_owner(int maze, int row)
{
    if (row >= MAZE_TURNS_BELOW)
        return 0;
    for (int before = maze - 1; before >= 0; before--) {
        uint32_t seed = maze_turns_seed(before);
        if (maze_turns_side(&seed) > row)
            return (uint64_t)before + 1;
    }
    return 0;
}

#ifdef __CUDACC__
#define MAZE_TURNS_APART __host__ __device__ __noinline__ static
#else
#define MAZE_TURNS_APART __attribute__((noinline)) static
#endif

MAZE_TURNS_APART void maze_turns_make(int maze)
{
    uint64_t rows[MAZE_TURNS_ROWS], *table = maze_turns_table(maze);
    uint32_t in_tree[MAZE_TURNS_CELLS], seed = maze_turns_seed(maze), draws = (uint32_t)maze;
    uint16_t list[MAZE_TURNS_CELLS * MAZE_TURNS_CELLS];
    const int side = maze_turns_side(&seed), half = side / 2;
    const float last = 1000.0f * ((float)maze_turns_rand(&seed) / 2147483648.0f);
    uint32_t ways =
        0x3210; /* four directions, four bits each: left, down, right, up; their order stays from cell to cell */
    int n = 1;

    for (int y = 0; y < MAZE_TURNS_ROWS; y++)
        rows[y] = 0;
    for (int i = 0; i < half; i++) {
        in_tree[i] = 0;
        rows[2 * i + 1] = 0xaaaaaaaaaaaull & (((uint64_t)1 << side) - 1);
    }
    const int first_x = maze_turns_rand(&draws) % (side - 1) / 2, first_y = maze_turns_rand(&draws) % (side - 1) / 2;
    in_tree[first_y] |= 1u << first_x;
    list[0] = (uint16_t)(first_y * half + first_x);
    while (n > 0) {
        if ((float)(maze_turns_rand(&draws) % 1000) > last) {
            const int i = maze_turns_rand(&draws) % n;
            const uint16_t cell = list[n - 1];
            list[n - 1] = list[i];
            list[i] = cell;
        }
        const int x = list[n - 1] % half, y = list[n - 1] / half;
        for (int i = 0; i < 4; i++) {
            const int a = 4 * i, b = 4 * (i + maze_turns_rand(&draws) % (4 - i));
            const uint32_t both = (ways >> a ^ ways >> b) & 15u;
            ways ^= a == b ? 0 : both << a | both << b;
        }
        bool grown = false;
        for (int i = 0; i < 4 && !grown; i++) {
            const uint32_t way = ways >> 4 * i & 15u;
            const int dx = (way == 2) - (way == 0), dy = (way == 1) - (way == 3), to_x = x + dx, to_y = y + dy;
            if (to_x < 0 || to_x >= half || to_y < 0 || to_y >= half || (in_tree[to_y] >> to_x & 1) != 0)
                continue;
            in_tree[to_y] |= 1u << to_x;
            rows[2 * y + 1 + dy] |= (uint64_t)1 << (2 * x + 1 + dx);
            list[n++] = (uint16_t)(to_y * half + to_x);
            grown = true;
        }
        n -= !grown;
    }
    for (int i = 0; i < 4; i++)
        rows[MAZE_TURNS_BELOW] |= maze_turns_owner(maze, side + i) << 16 * i;
    for (int y = MAZE_TURNS_ROWS - 1; y > 0; y--)
        maze_turns_store(&table[y], rows[y]);
#ifdef __CUDA_ARCH__
    __threadfence();
#endif
    maze_turns_store(&table[0], (uint64_t)1 << 63 | (uint64_t)side << 48);
}

ENV_FN const uint64_t *maze_turns_rows(int maze)
{
    const uint64_t *rows = maze_turns_table(maze);

    if ((maze_turns_load(&rows[0]) >> 63) == 0)
        maze_turns_make(maze);
    return rows;
}

ENV_FN int maze_turns_side_of(const uint64_t *rows)
{
    return (int)(maze_turns_load(&rows[0]) >> 48 & 63);
}

/* ---- the game ---- */

ENV_FN void maze_turns_reset(const struct maze_turns_settings *settings, struct maze_turns_state *s)
{
    unsigned int maze;

    if (s->rng.counter == 0) /* a new instance: the instances share the work of making all mazes */
        while ((maze = maze_turns_ticket()) < MAZE_TURNS_MAZES)
            maze_turns_make((int)maze);
    s->maze = (int32_t)rng_below(&s->rng, MAZE_TURNS_MAZES);
    s->x = s->y = 1.0f;
    s->direction = 0.0f;
    s->steps = s->moved = 0;
    maze_turns_rows(s->maze);
}

/* Directions are quarter turns in f32 and off by a rounding error: what their cosine and sine round to. */
ENV_FN void maze_turns_way(float direction, float *ret_dx, float *ret_dy)
{
    const double quarter = ENV_PI / 2.0, turns = (double)direction / quarter;
    const int way = (int)(turns + 0.5);
    const float rest = (float)((double)direction - (double)way * quarter);

    *ret_dx = way == 0 || way == 4 ? 1.0f : way == 1 ? -rest : way == 2 ? -1.0f : rest;
    *ret_dy = way == 0 || way == 4 ? rest : way == 1 ? 1.0f : way == 2 ? -rest : -1.0f;
}

ENV_FN void maze_turns_step(const struct maze_turns_settings *settings, struct maze_turns_state *s,
                            const int32_t *actions, struct env_step *step)
{
    const double half = (double)(MAZE_TURNS_PI / 2.0f), pi = (double)MAZE_TURNS_PI;
    const uint64_t *rows = maze_turns_rows(s->maze);
    const int side = maze_turns_side_of(rows), act = actions[0];
    bool found = false;

    s->steps++;
    if (act >= 1 && act <= 4) {
        float direction = s->direction, dx, dy;
        direction = act == 2   ? (float)((double)direction - half)
                    : act == 3 ? (float)((double)direction + half)
                    : act == 4 ? (float)((double)direction + pi)
                               : direction;
        if (direction < 0.0f)
            direction = (float)((double)direction + 2.0 * pi);
        else if ((double)direction >= 2.0 * pi)
            direction = (float)((double)direction - 2.0 * pi);
        s->direction = direction;
        maze_turns_way(direction, &dx, &dy);
        const float x = s->x + dx, y = s->y + dy;
        const int to_x = (int)(x + 0.5f), to_y = (int)(y + 0.5f);
        if ((maze_turns_load(&rows[to_y]) >> to_x & 1) != 0) {
            s->x = x;
            s->y = y;
            s->moved = 1;
            found = to_x == side - 2 && to_y == side - 2;
        }
    }
    step->ended = found;
    step->truncated = !found && s->steps >= 2 * side * side;
    step->rewards[0] = step->score = step->perf = found ? 1.0f : 0.0f;
}

/* Row or column of the field at place k of the view of an agent at `at`, as casts to whole numbers have it, of
 * two the later; -1: none. */
ENV_FN int maze_turns_seen(float at, int k)
{
    const int middle = (int)(at + 0.5f), reach = MAZE_TURNS_VIEW / 2;
    const int first = (int)(at - (float)reach), last = (int)(at + (float)reach);
    int seen = -1;

    ENV_UNROLL
    for (int i = 0; i < 2; i++) {
        const int cell = middle - reach + k + i;
        if (cell >= 0 && cell >= first && cell <= last && cell < MAZE_TURNS_SIDE &&
            (int)((float)cell - at + (float)reach) == k)
            seen = cell;
    }
    return seen;
}

ENV_OBS_FN void maze_turns_observe(const struct maze_turns_settings *settings, const struct maze_turns_state *s,
                                   int agent, env_obs *obs)
{
    const uint64_t *own = maze_turns_rows(s->maze);
    const int side = maze_turns_side_of(own), at_x = (int)(s->x + 0.5f), at_y = (int)(s->y + 0.5f);
    const bool shown = s->maze != 0 || s->moved != 0; /* maze 0 has no agent on its first cell, as there */
    int columns[MAZE_TURNS_VIEW];

    ENV_UNROLL
    for (int k = 0; k < MAZE_TURNS_VIEW; k++)
        columns[k] = maze_turns_seen(s->x, k);
    for (int i = 0; i < MAZE_TURNS_VIEW; i++) {
        const int y = maze_turns_seen(s->y, i), below = y - side;
        const uint64_t owner =
            below >= 0 ? maze_turns_load(&own[MAZE_TURNS_BELOW]) >> 16 * below & 0xffff : (uint64_t)s->maze + 1;
        const uint64_t *rows = owner == 0 || below < 0 ? own : maze_turns_rows((int)owner - 1);
        const int goal = maze_turns_side_of(rows) - 2;
        const bool nothing = y < 0 || owner == 0;
        const uint64_t open = nothing || y == 0 ? 0 : maze_turns_load(&rows[y]);
        ENV_UNROLL
        for (int k = 0; k < MAZE_TURNS_VIEW; k++) {
            const int x = columns[k];
            const bool wall = x >= 0 && !nothing && (open >> (x & 63) & 1) == 0;
            const bool is_goal = !nothing && x == goal && y == goal, is_agent = x == at_x && y == at_y && shown;
            obs[i * MAZE_TURNS_VIEW + k] = is_agent ? 6.0f : is_goal ? 3.0f : wall ? 1.0f : 0.0f;
        }
    }
    for (int i = MAZE_TURNS_VIEW * MAZE_TURNS_VIEW; i < MAZE_TURNS_OBS; i++)
        obs[i] = 0.0f;
}

ENV_GPU(maze_turns, env_gpu_rows<MAZE_TURNS_OBS>)

#ifndef __CUDACC__
static const struct opt_def maze_turns_options[] = {
    OPT_ROW_INT(struct maze_turns_settings, unused, "0", 0, 0, OPT_FIXED, 0, 0, "", "Has no effect."),
};
static const struct env_about maze_turns_about = {"the way out of one of 8192 mazes, in turns", NULL, 0};

static inline void maze_turns_draw(const struct maze_turns_settings *settings, const struct maze_turns_state *s,
                                   struct env_picture *p)
{
    float view[MAZE_TURNS_OBS];

    p->width = p->height = MAZE_TURNS_VIEW;
    maze_turns_observe(settings, s, 0, view);
    for (int i = 0; i < MAZE_TURNS_VIEW * MAZE_TURNS_VIEW; i++)
        if (view[i] > 0.0f)
            env_draw_rect(p, i % MAZE_TURNS_VIEW, i / MAZE_TURNS_VIEW, 1, 1,
                          view[i] > 5.0f   ? ENV_OWN
                          : view[i] > 2.0f ? ENV_GOAL
                                           : ENV_FAINT);
}
#endif

#endif
