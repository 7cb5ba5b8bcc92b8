/* env_side.c - batches for `trawl env check`. */
#include "sweep/cmd/env/env_side.h"
#include "sweep/game_output.h"

#define GUARD_BYTES 64
#define GUARD 0xa5

/* A tensor of the block at *at; what follows it is a guard. */
static void *take(struct env_side *s, size_t *at, size_t bytes)
{
    char *tensor = s->block + *at;

    *at += bytes;
    memset(s->block + *at, GUARD, GUARD_BYTES);
    *at += GUARD_BYTES + (16 - bytes % 16) % 16;
    return tensor;
}

/* Between the bytes and the f32 of a row nothing is written, and rows compare as bytes. */
static void clear_unused(struct env_side *s)
{
    size_t n_floats = (size_t)s->shape.n_floats, n_bytes = (size_t)s->shape.obs_size - n_floats;
    size_t row = env_row_bytes(&s->shape);

    for (size_t a = 0; n_floats > 0 && a < s->n_agents; a++) {
        memset((char *)s->obs + a * row + n_bytes, 0, row - n_floats * sizeof(float) - n_bytes);
        memset((char *)s->final_obs + a * row + n_bytes, 0, row - n_floats * sizeof(float) - n_bytes);
    }
}

bool env_side_open(struct env_side *s, const struct env_def *def, const void *settings, size_t n_envs, uint64_t seed,
                   uint8_t fill)
{
    struct error err = {0};
    size_t at = 0, rows;

    *s = (struct env_side){0};
    if (env_def_check(def, settings, n_envs, &s->shape, &err) != ST_OK ||
        env_batch_create(&s->batch, def, settings, n_envs, rng_seed(seed), &err) != ST_OK) {
        fprintf(game_output_result(), "FAULT  %s\n", err.text);
        return false;
    }
    rows = s->n_agents = n_envs * (size_t)s->shape.n_agents;
    s->n_actions = rows * (size_t)s->shape.n_heads;
    s->obs_bytes = rows * env_row_bytes(&s->shape);
    for (int h = 0; s->shape.has_mask && h < s->shape.n_heads; h++)
        s->mask_width += (size_t)s->shape.head_sizes[h];
    s->actions = mem_array(s->n_actions, sizeof *s->actions);
    s->reals = mem_array(s->n_actions, sizeof *s->reals);
    s->block_bytes = 2 * s->obs_bytes + rows * (sizeof(float) + 2 + s->mask_width) + 6 * 2 * GUARD_BYTES;
    s->block = mem_alloc(s->block_bytes);
    memset(s->block, fill, s->block_bytes);
    s->obs = take(s, &at, s->obs_bytes);
    s->final_obs = take(s, &at, s->obs_bytes);
    s->rewards = take(s, &at, rows * sizeof(float));
    s->terms = take(s, &at, rows);
    s->truncs = take(s, &at, rows);
    s->mask = s->mask_width > 0 ? take(s, &at, rows * s->mask_width) : NULL;
    s->io = (struct env_io){.actions = s->actions,
                            .reals = s->reals,
                            .rewards = s->rewards,
                            .terms = s->terms,
                            .truncs = s->truncs,
                            .obs = s->obs,
                            .final_obs = s->final_obs,
                            .mask = s->mask};
    clear_unused(s);
    return true;
}

void env_side_close(struct env_side *s)
{
    env_batch_destroy(s->batch);
    mem_free(s->actions);
    mem_free(s->reals);
    mem_free(s->block);
    *s = (struct env_side){0};
}

void env_side_reset(struct env_side *s, struct pool *pool)
{
    env_batch_reset(s->batch, pool, s->obs, s->mask);
    memset(s->rewards, 0, s->n_agents * sizeof *s->rewards);
    memset(s->terms, 0, s->n_agents);
    memset(s->truncs, 0, s->n_agents);
}

void env_side_spoil(struct env_side *s)
{
    memset(s->obs, 0xff, s->obs_bytes);
    memset(s->final_obs, 0xff, s->obs_bytes);
    clear_unused(s);
    memset(s->rewards, 0xff, s->n_agents * sizeof *s->rewards);
    memset(s->terms, 0xff, s->n_agents);
    memset(s->truncs, 0xff, s->n_agents);
    if (s->mask != NULL)
        memset(s->mask, 0, s->n_agents * s->mask_width);
}

void env_side_step(struct env_side *s, struct pool *pool)
{
    env_batch_step(s->batch, pool, &s->io);
}

void env_side_allow(struct env_side *s)
{
    size_t H = (size_t)s->shape.n_heads;

    for (size_t a = 0; s->mask != NULL && a < s->n_agents; a++) {
        const uint8_t *mask = s->mask + a * s->mask_width;
        for (size_t h = 0; h < H; h++) {
            int32_t size = s->shape.head_sizes[h], *choice = &s->actions[a * H + h];
            for (int32_t tries = 0; mask[*choice] == 0 && tries < size; tries++)
                *choice = (*choice + 1) % size;
            mask += size;
        }
    }
}

void env_side_random(struct env_side *s, struct rng *rng)
{
    for (size_t i = 0; i < s->n_actions; i++) {
        size_t h = i % (size_t)s->shape.n_heads;
        s->actions[i] = (int32_t)rng_below(rng, (uint32_t)s->shape.head_sizes[h]);
        if (s->shape.head_sizes[h] == 0)
            s->reals[i] = s->shape.low[h] + rng_f32(rng) * (s->shape.high[h] - s->shape.low[h]);
    }
    env_side_allow(s);
}

static bool guards_stand(const struct env_side *s)
{
    const struct {
        const void *tensor;
        size_t bytes;
    } all[] = {{s->obs, s->obs_bytes},  {s->final_obs, s->obs_bytes}, {s->rewards, s->n_agents * sizeof(float)},
               {s->terms, s->n_agents}, {s->truncs, s->n_agents},     {s->mask, s->n_agents * s->mask_width}};

    for (size_t i = 0; i < COUNT(all); i++)
        for (size_t k = 0; all[i].tensor != NULL && k < GUARD_BYTES; k++)
            if (((const unsigned char *)all[i].tensor + all[i].bytes)[k] != GUARD)
                return false;
    return true;
}

static bool mask_allows(const struct env_side *s, size_t agent)
{
    const uint8_t *mask = s->mask + agent * s->mask_width;

    for (int h = 0; h < s->shape.n_heads; h++) {
        bool any = false;
        for (int i = 0; i < s->shape.head_sizes[h]; i++)
            any |= *mask++ != 0;
        if (!any)
            return false;
    }
    return true;
}

/* Looks through an agent's observation in obs; false: a number is not finite. */
static bool observed(const struct env_side *s, const float *obs, size_t agent, struct env_largest *largest)
{
    size_t D = (size_t)s->shape.obs_size, i = 0;
    MEM_LOCAL float *numbers = mem_array(D, sizeof *numbers);

    env_numbers(&s->shape, (const char *)obs + agent * env_row_bytes(&s->shape), 1.0f, numbers);
    for (; i < D && isfinite(numbers[i]); i++)
        if (fabsf(numbers[i]) > fabsf(largest->value)) {
            largest->value = numbers[i];
            largest->number = i;
        }
    return i == D;
}

bool env_side_failed(const struct env_side *s, int64_t t)
{
    struct error err = {0};

    if (env_batch_failed(s->batch, &err) == ST_OK)
        return false;
    fprintf(game_output_result(), "FAULT  step %lld: %s\n", (long long)t, err.text);
    return true;
}

bool env_side_sane(const struct env_side *s, int64_t t, struct env_largest *largest)
{
    const char *wrong = NULL;
    size_t at = 0;

    if (env_side_failed(s, t)) /* it wrote nothing */
        return false;
    if (!guards_stand(s)) /* first: what was overrun is wrong as well */
        wrong = "something was written past the end of its rows; are obs_size, n_agents and the mask's width right?";
    for (size_t a = 0; wrong == NULL && a < s->n_agents; a++) {
        at = a;
        wrong = observed(s, s->obs, a, largest) ? NULL : "an observation is not a finite number, or was not written";
    }
    for (size_t a = 0; wrong == NULL && a < s->n_agents; a++) {
        at = a;
        if (!isfinite(s->rewards[a]))
            wrong = "a reward is not a finite number, or was not written";
        else if (s->terms[a] > 1 || s->truncs[a] > 1 || (s->terms[a] == 1 && s->truncs[a] == 1))
            wrong = "the flags of an end are not 0 or 1, or both are 1, or were not written";
        else if (s->truncs[a] == 1 && !s->shape.may_truncate)
            wrong = "an episode was truncated, and the shape does not say may_truncate";
        else if (s->mask != NULL && !mask_allows(s, a))
            wrong = "the mask allows no choice at all, or was not written";
        if (wrong == NULL && fabsf(s->rewards[a]) > fabsf(largest->reward))
            largest->reward = s->rewards[a];
        if (wrong == NULL && s->truncs[a] == 1 && !observed(s, s->final_obs, a, largest))
            wrong = "the last observation of a truncated episode is not a finite number, or was not written";
    }
    if (wrong == NULL)
        return true;
    fprintf(game_output_result(), "FAULT  step %lld, agent %zu: %s\n", (long long)t, at, wrong);
    return false;
}

const char *env_side_differs(const struct env_side *a, const struct env_side *b)
{
    if (memcmp(a->obs, b->obs, a->obs_bytes) != 0)
        return "observations";
    if (memcmp(a->rewards, b->rewards, a->n_agents * sizeof *a->rewards) != 0)
        return "rewards";
    if (memcmp(a->terms, b->terms, a->n_agents) != 0 || memcmp(a->truncs, b->truncs, a->n_agents) != 0)
        return "ends of episodes";
    if (a->mask != NULL && memcmp(a->mask, b->mask, a->n_agents * a->mask_width) != 0)
        return "masks";
    return NULL;
}
