/* tower_climb.h - the rules of PufferLib's tower_climb in Trawl's form, so that fronts.py can play it on a GPU:
 * trawl env build tower_climb.h
 *
 * A figure climbs a heap of blocks to the goal, a cell that lies above a block's side; whoever stands on it has won.
 * Cells are counted by rows of ten, ten rows a floor, ten floors. A step against a block climbs it, one over an edge
 * goes down one block or hangs from the edge where there is none; who hangs moves along it, around corners, up again,
 * or lets go, and falls to the next block or out of the game. Of the six choices 0 to 3 turn and go (right, down, left,
 * up), 4 grabs the block ahead or lets go of it, 5 falls. A grabbed block is pushed, with all that stand in a row with
 * it, or pulled, also over an edge, where the figure then hangs. A block stays where one of the five cells below and
 * beside it has a block, and else falls; a figure on whom one comes to lie is dead. An episode ends at the goal, with
 * death or after 60 decisions.
 * Observation: bytes, 5 floors x 5 rows x 9 cells around (1 block, 2 goal, 3 figure), facing, hanging, holding. Reward:
 * 1 at the goal, -1 for death, and those of the options. score = floors climbed, perf = 1 at the goal. */
#ifndef TOWER_CLIMB_H
#define TOWER_CLIMB_H

#include "trawl_env.h"

#define TOWER_OBS 232 /* four zeros at the end: tensor cores read rows of eights */
#define TOWER_FLOOR 100
#define TOWER_CELLS 1000
#define TOWER_DECISIONS 60
#define TOWER_LEVELS 24576 /* of which some 20,000 are played */
#define TOWER_FALLING 128 /* blocks that one push lets fall; not more than a dozen were seen */

enum tower_result { TOWER_ILLEGAL, TOWER_DONE, TOWER_DEAD };

struct tower_climb_settings {
    double reward_climb_row, reward_fall_row, reward_illegal_move, reward_move_block;
};

struct tower_climb_state {
    struct rng rng;
    uint32_t blocks[32]; /* a bit for each cell */
    int16_t at, goal, held; /* cells; held -1: nothing */
    uint8_t facing, hanging;
    uint8_t floors, decisions;
    uint8_t unused[6]; /* no padding: whole states compare as bytes */
};

ENV_FN void tower_climb_shape(const struct tower_climb_settings *settings, struct env_shape *ret_shape)
{
    ret_shape->obs_size = TOWER_OBS;
    ret_shape->u8 = true;
    ret_shape->byte_scale = 1.0f;
    ret_shape->head_sizes[0] = 6;
}

/* ---- cells ---- */

ENV_FN bool tower_is_cell(int cell)
{
    return cell >= 0 && cell < TOWER_CELLS;
}

ENV_FN bool tower_has(const struct tower_climb_state *s, int cell)
{
    return tower_is_cell(cell) && (s->blocks[cell / 32] >> cell % 32 & 1) != 0;
}

ENV_FN void tower_put(struct tower_climb_state *s, int cell, bool block)
{
    if (tower_is_cell(cell))
        s->blocks[cell / 32] = (s->blocks[cell / 32] & ~((uint32_t)1 << cell % 32)) | (uint32_t)block << cell % 32;
}

/* From a cell to the next: right, down, left, up. */
ENV_FN int tower_way(int direction)
{
    const int along = 1 - (direction & 2);
    return (direction & 1) != 0 ? 10 * along : along;
}

ENV_FN bool tower_is_stable(const struct tower_climb_state *s, int cell)
{
    const int below = cell - TOWER_FLOOR;
    return tower_has(s, below) || tower_has(s, below - 1) || tower_has(s, below + 1) || tower_has(s, below - 10) ||
           tower_has(s, below + 10);
}

/* ---- blocks that fall ---- */

struct tower_queue {
    int16_t cells[TOWER_FALLING];
    int n;
};

ENV_FN void tower_queue_add(struct tower_queue *queue, int cell)
{
    if (queue->n < TOWER_FALLING)
        queue->cells[queue->n++] = (int16_t)cell;
}

/* Those above and beside a cell that has become empty. */
ENV_FN void tower_loosen(const struct tower_climb_state *s, int cell, struct tower_queue *queue)
{
    const int beside[5] = {0, -1, 1, -10, 10};

    for (int i = 0; i < 5; i++) {
        const int above = cell + TOWER_FLOOR + beside[i];
        if (tower_is_cell(above) && (tower_has(s, above) || above == s->goal) && !tower_is_stable(s, above))
            tower_queue_add(queue, above);
    }
}

/* A cell that is listed twice gives a second block, as there. false: the goal would fall, and then all stays. */
ENV_FN bool tower_fall(struct tower_climb_state *s, struct tower_queue *queue)
{
    for (int i = 0; i < queue->n; i++) {
        const int from = queue->cells[i];
        int to = from;
        if (from == s->goal)
            return false;
        tower_put(s, from, false);
        while (to >= TOWER_FLOOR && !tower_is_stable(s, to))
            to -= TOWER_FLOOR;
        if (to >= TOWER_FLOOR)
            tower_put(s, to, true);
        tower_loosen(s, from, queue);
    }
    return true;
}

ENV_FN bool tower_push(struct tower_climb_state *s, int first, int way)
{
    struct tower_queue queue;
    int n = 1;

    queue.n = 0;
    while (n < 10 && tower_has(s, first + n * way))
        n++;
    for (int i = 0; i < n; i++) {
        const int cell = first + i * way, x = cell % 10, z = cell % TOWER_FLOOR / 10;
        if (i == 0)
            tower_put(s, cell, false);
        if ((x == 0 && way == -1) || (x == 9 && way == 1) || (z == 0 && way == -10) || (z == 9 && way == 10))
            continue; /* over the edge: it is gone */
        tower_put(s, cell + way, true);
        tower_queue_add(&queue, cell + way);
    }
    s->held = -1;
    for (int i = 0; i < n; i++)
        tower_loosen(s, first + i * way, &queue);
    return tower_fall(s, &queue);
}

ENV_FN bool tower_pull(struct tower_climb_state *s, int block, int way)
{
    struct tower_queue queue;
    const int back = s->at + way, below = back - TOWER_FLOOR;

    queue.n = 0;
    if (tower_has(s, back))
        return false;
    if (tower_has(s, block)) {
        const bool walks = tower_has(s, below);
        tower_put(s, block, false);
        tower_put(s, s->at, true);
        s->held = walks ? s->at : -1;
        s->at = (int16_t)(walks ? back : below);
        s->hanging = s->hanging || !walks;
    }
    tower_loosen(s, block, &queue);
    return tower_fall(s, &queue);
}

/* ---- the figure ---- */

ENV_FN enum tower_result tower_stand(const struct tower_climb_settings *settings, struct tower_climb_state *s,
                                     int action, float *reward)
{
    const int next = s->at + tower_way(action), above = s->at + TOWER_FLOOR, climbed = next + TOWER_FLOOR;

    if (action != s->facing) {
        s->facing = (uint8_t)action;
        return TOWER_DONE;
    }
    if (tower_has(s, next) || next == s->goal) {
        if (!tower_is_cell(above) || !tower_is_cell(climbed) || tower_has(s, above) || tower_has(s, climbed) ||
            above == s->goal || climbed == s->goal)
            return TOWER_ILLEGAL;
        if (above / TOWER_FLOOR - 2 > s->floors) {
            s->floors = (uint8_t)(above / TOWER_FLOOR - 2);
            *reward = (float)settings->reward_climb_row;
        }
        s->at = (int16_t)climbed;
        return TOWER_DONE;
    }
    if (tower_has(s, next - TOWER_FLOOR)) {
        s->at = (int16_t)next;
        return TOWER_DONE;
    }
    if (next < TOWER_FLOOR)
        return TOWER_ILLEGAL;
    *reward = (float)settings->reward_fall_row;
    s->at = (int16_t)(next - TOWER_FLOOR);
    if (!tower_has(s, next - 2 * TOWER_FLOOR)) {
        s->facing = (uint8_t)((s->facing + 2) % 4);
        s->hanging = 1;
    }
    return TOWER_DONE;
}

ENV_FN enum tower_result tower_hang(struct tower_climb_state *s, int action)
{
    const int ahead = s->at + tower_way(s->facing), side = (s->facing + (action == 2 ? 3 : 1)) % 4;
    const int path = s->at + tower_way(side), corner = ahead + tower_way(side);
    const int x = s->at % 10, z = s->at % TOWER_FLOOR / 10, way = tower_way(s->facing);

    if (action == 3) {
        const int above = s->at + TOWER_FLOOR, to = ahead + TOWER_FLOOR;
        if (!tower_is_cell(above) || !tower_is_cell(to) || tower_has(s, above) || tower_has(s, to))
            return TOWER_ILLEGAL;
        s->at = (int16_t)to;
        s->hanging = 0;
        return TOWER_DONE;
    }
    if (action == 1)
        return TOWER_ILLEGAL;
    if (tower_has(s, corner) && tower_is_cell(path) && !tower_has(s, path)) { /* along the edge */
        if (!tower_is_cell(path + TOWER_FLOOR) || tower_has(s, path + TOWER_FLOOR))
            return TOWER_ILLEGAL;
        s->at = (int16_t)path;
        return TOWER_DONE;
    }
    if (tower_has(s, path)) { /* an inner corner */
        s->facing = (uint8_t)side;
        return TOWER_DONE;
    }
    if (tower_has(s, corner) || (way == 1 && x == 9) || (way == -1 && x == 0) || (way == 10 && z == 9) ||
        (way == -10 && z == 0) || tower_has(s, corner + TOWER_FLOOR))
        return TOWER_ILLEGAL;
    s->at = (int16_t)corner; /* an outer one */
    s->facing = (uint8_t)((side + 2) % 4);
    return TOWER_DONE;
}

ENV_FN enum tower_result tower_let_go(struct tower_climb_state *s)
{
    int below = s->at - TOWER_FLOOR;

    while (below > TOWER_FLOOR && !tower_has(s, below))
        below -= TOWER_FLOOR;
    if (below < TOWER_FLOOR)
        return TOWER_DEAD;
    s->at = (int16_t)(below + TOWER_FLOOR);
    s->hanging = 0;
    return TOWER_DONE;
}

ENV_FN enum tower_result tower_act(const struct tower_climb_settings *settings, struct tower_climb_state *s, int action,
                                   float *reward)
{
    const int ahead = s->at + tower_way(s->facing);
    const bool free_hands = !s->hanging && s->held == -1, blocked = tower_has(s, ahead) || ahead == s->goal;
    bool moved = true;

    if (action < 4 && free_hands)
        return tower_stand(settings, s, action, reward);
    if (action < 4 && s->hanging)
        return tower_hang(s, action);
    if (action == 5)
        return free_hands ? TOWER_ILLEGAL : tower_let_go(s);
    if (action == 4) {
        const bool holds = s->held != -1;
        if (!holds && (s->hanging || !blocked))
            return TOWER_ILLEGAL;
        s->held = (int16_t)(holds ? -1 : ahead);
        return TOWER_DONE;
    }
    if (!blocked)
        return TOWER_ILLEGAL;
    if (action == s->facing)
        moved = tower_push(s, ahead, tower_way(action));
    else if (action == (s->facing + 2) % 4)
        moved = tower_pull(s, ahead, tower_way(action));
    else {
        s->facing = (uint8_t)action;
        s->held = -1;
    }
    if (tower_has(s, s->at))
        return TOWER_DEAD;
    if (moved)
        *reward = (float)settings->reward_move_block;
    return moved ? TOWER_DONE : TOWER_ILLEGAL;
}

/* ---- levels ---- */

/* Each cell of a stair is a block or not, up to the floor below the goal. Is there a start and a goal? */
ENV_FN bool tower_build(struct rng *rng, int goal_floor, struct tower_climb_state *s)
{
    int start = -1;

    for (int i = 0; i < 32; i++)
        s->blocks[i] = 0;
    s->goal = -1;
    for (int floor = 1; floor < goal_floor; floor++)
        for (int z = 8 - floor < 7 ? 8 - floor : 7; z >= 1; z--) {
            uint32_t row = rng_u32(rng);
            for (int x = 1; x < 8; x++, row >>= 1) {
                const int cell = x + 10 * z + TOWER_FLOOR * floor;
                const bool starts = start < 0 && floor == 2 && tower_has(s, cell - TOWER_FLOOR);
                tower_put(s, cell, (row & 1) != 0 && !starts);
                start = starts ? cell : start;
            }
        }
    for (int z = 9; z >= 0 && s->goal < 0; z--)
        for (int x = 0; x < 10 && s->goal < 0; x++) {
            const int cell = x + 10 * z + TOWER_FLOOR * goal_floor, below = cell - TOWER_FLOOR;
            if ((tower_has(s, below + 10) || tower_has(s, below - 1) || tower_has(s, below + 1)) &&
                (rng_below(rng, 3) == 0 || (x == 9 && z == 0)))
                s->goal = (int16_t)cell;
        }
    s->at = (int16_t)start;
    s->held = -1;
    s->facing = 3;
    s->hanging = 0;
    return start >= 0 && s->goal >= 0;
}

/* Has the shortest way to the goal 10 decisions or more, and is there one? Found out by tower_levels.c. */
ENV_FN bool tower_is_level(uint32_t number)
{
    static const uint32_t levels[TOWER_LEVELS / 32] = {
#include "tower_levels.inc"
    };
    return (levels[number / 32] >> number % 32 & 1) != 0;
}

ENV_FN bool tower_set_level(struct tower_climb_state *s, uint32_t number)
{
    struct rng rng = {number, 0};
    return tower_build(&rng, 5 + (int)(number % 4), s);
}

ENV_FN void tower_climb_reset(const struct tower_climb_settings *settings, struct tower_climb_state *s)
{
    const uint32_t floor = rng_below(&s->rng, 4); /* a quarter of the levels each */
    uint32_t number;

    do
        number = 4 * rng_below(&s->rng, TOWER_LEVELS / 4) + floor;
    while (!tower_is_level(number));
    tower_set_level(s, number);
    s->floors = s->decisions = 0;
    for (int i = 0; i < 6; i++)
        s->unused[i] = 0;
}

ENV_FN void tower_climb_step(const struct tower_climb_settings *settings, struct tower_climb_state *s,
                             const int32_t *actions, struct env_step *step)
{
    const int action = actions[0] >= 0 && actions[0] < 6 ? actions[0] : 5;
    float reward = 0.0f;
    const enum tower_result result = tower_act(settings, s, action, &reward);
    const bool won = result == TOWER_DONE && s->at - TOWER_FLOOR == s->goal;

    s->decisions++;
    step->rewards[0] = won                       ? 1.0f
                       : result == TOWER_DEAD    ? -1.0f
                       : result == TOWER_ILLEGAL ? (float)settings->reward_illegal_move
                                                 : reward;
    step->ended = won || result == TOWER_DEAD || s->decisions >= TOWER_DECISIONS;
    step->score = (float)s->floors;
    step->perf = won ? 1.0f : 0.0f;
}

/* Where a window of n around a place begins. */
ENV_FN int tower_window(int place, int n)
{
    const int from = place - n / 2;
    return from < 0 ? 0 : from > 10 - n ? 10 - n : from;
}

ENV_FN void tower_climb_observe(const struct tower_climb_settings *settings, const struct tower_climb_state *s,
                                int agent, uint8_t *obs)
{
    const int y0 = tower_window(s->at / TOWER_FLOOR + 1, 5), z0 = tower_window(s->at % TOWER_FLOOR / 10, 5),
              x0 = tower_window(s->at % 10, 9);

    for (int i = 0; i < 225; i++) {
        const int cell = (y0 + i / 45) * TOWER_FLOOR + (z0 + i % 45 / 9) * 10 + x0 + i % 9;
        obs[i] = cell == s->at ? 3 : cell == s->goal ? 2 : tower_has(s, cell);
    }
    obs[225] = s->facing;
    obs[226] = s->hanging;
    obs[227] = s->held != -1;
    for (int i = 228; i < TOWER_OBS; i++)
        obs[i] = 0;
}

ENV_GPU(tower_climb, env_gpu_bytes)

#ifndef __CUDACC__
static const struct opt_def tower_climb_options[] = {
    OPT_ROW_FLOAT(struct tower_climb_settings, reward_climb_row, "0.205371", 0, 1, OPT_LINEAR, 0, 1, "",
                  "Reward for climbing to a new floor."),
    OPT_ROW_FLOAT(struct tower_climb_settings, reward_fall_row, "0", -1, 0, OPT_LINEAR, -1, 0, "",
                  "Reward for going down a floor."),
    OPT_ROW_FLOAT(struct tower_climb_settings, reward_illegal_move, "-0.00397522", -1, 0, OPT_LINEAR, -0.01, 0, "",
                  "Reward for a choice that cannot be."),
    OPT_ROW_FLOAT(struct tower_climb_settings, reward_move_block, "0", 0, 1, OPT_LINEAR, 0, 1, "",
                  "Reward for a block that is moved."),
};
static const struct env_about tower_climb_about = {"climbing a heap of blocks, and moving them to get higher", NULL, 0};

static inline void tower_climb_draw(const struct tower_climb_settings *settings, const struct tower_climb_state *s,
                                    struct env_picture *p)
{
    p->width = p->height = 10;
    for (int z = 0; z < 10; z++) /* from the front: what is nearer hides what is farther */
        for (int y = 0; y < 10; y++)
            for (int x = 0; x < 10; x++) {
                const int cell = x + 10 * z + TOWER_FLOOR * y;
                if (cell == s->at || cell == s->goal || tower_has(s, cell))
                    env_draw_rect(p, x + 0.05, 9.05 - y, 0.9, 0.9,
                                  cell == s->at     ? ENV_OWN
                                  : cell == s->goal ? ENV_OPPONENT
                                  : z % 2 == 0      ? ENV_FAINT
                                                    : ENV_FOREGROUND);
            }
}
#endif

#endif

/* for every inclusion of env_loop.h, which undefines it */
#define ENV_GAME_BYTES
