/* game.c - one game and a policy that plays it, for a page without a server (trawl report --site). Compiled to
 * WebAssembly once for each built-in game: -DGAME_HEADER='"envs/games/pong.h"' -DGAME=pong.
 * The page (web/assets/wasm.js) puts settings and a policy of safetensors into memory and calls, in this order:
 * game_room for each, game_open, then game_step and game_draw for each decision. Memory is never freed: the page begins
 * again with a new instance. Same bytes as the native game: only IEEE operations, no contraction. */
#include GAME_HEADER
#include "trainer/export/trawl_policy.h"
#define ENV_GAME GAME
#define ENV_GAME_PLAIN
#include "envs/env_loop.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define OF_GAME(suffix) PASTE(GAME, suffix)
#define EXPORT(name) __attribute__((export_name(name), visibility("default")))
#define PAGE_BYTES 65536u

/* The page's: one shape of the picture; text is "" but for ENV_TEXT. */
__attribute__((import_name("mark"))) void page_mark(int kind, double a, double b, double c, double d, double e,
                                                    int align, int colour, const char *text);

/* -- the C library's -- */

extern unsigned char __heap_base;
static size_t used; /* bytes after __heap_base */

void *calloc(size_t n, size_t size)
{
    size_t at = (size_t)&__heap_base + used, bytes = (n * size + 15) / 16 * 16, has = __builtin_wasm_memory_size(0);

    if (at + bytes > has * PAGE_BYTES &&
        __builtin_wasm_memory_grow(0, (at + bytes - has * PAGE_BYTES + PAGE_BYTES - 1) / PAGE_BYTES) == (size_t)-1)
        return NULL;
    used += bytes;
    return (void *)at; /* new pages are zeros */
}

void *malloc(size_t n)
{
    return calloc(n, 1);
}

int memcmp(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;

    for (; n > 0; n--, x++, y++)
        if (*x != *y)
            return *x - *y;
    return 0;
}

size_t strlen(const char *text)
{
    size_t n = 0;

    while (text[n] != '\0')
        n++;
    return n;
}

char *strstr(const char *text, const char *part)
{
    for (size_t n = strlen(part); *text != '\0'; text++)
        if (memcmp(text, part, n) == 0)
            return (char *)(size_t)text;
    return NULL;
}

enum status error_set(struct error *err, enum status status, const char *fmt, ...)
{
    (void)err, (void)fmt;
    return status;
}

/* -- the game -- */

static struct OF_GAME(_settings) settings;
static struct OF_GAME(_instance) game;
static struct env_shape shape;
static struct env_log played;
static struct env_picture picture;
static struct trawl_policy policy;
static struct rng draws; /* of the policy */
static float *obs, *state, *out, *reals, *rewards, *actions_of_one;
static int32_t *actions;
static uint8_t *mask, *bytes, *terms, *truncs;

EXPORT("game_room") void *game_room(size_t n)
{
    return calloc(n, 1);
}

EXPORT("game_settings_bytes") size_t game_settings_bytes(void)
{
    return sizeof settings;
}

static void observe(void)
{
    size_t n = (size_t)shape.n_agents * (size_t)shape.obs_size;

    OF_GAME(_observe_range)(&settings, &game, shape.u8 ? (float *)(void *)bytes : obs, mask, 0, 1);
    for (size_t i = 0; shape.u8 && i < n; i++)
        obs[i] = bytes[i];
}

/* 0: it can be played. Else the policy is none, or of another game. */
EXPORT("game_open")
int game_open(const void *own_settings, const void *file, size_t n_file, uint32_t seed)
{
    struct rng root = {seed, 0};

    memcpy(&settings, own_settings, sizeof settings);
    if (OF_GAME(_check_shape)(NULL, &settings, &shape, NULL) != ST_OK || trawl_policy_open(&policy, file, n_file) != 0)
        return 1;
    if (policy.obs_size != (size_t)shape.obs_size || policy.n_heads != (size_t)shape.n_heads)
        return 2; /* a stack of frames: not played here */
    size_t agents = (size_t)shape.n_agents;
    size_t n = agents * (size_t)shape.obs_size;
    obs = calloc(n, sizeof *obs);
    bytes = calloc(n, 1);
    state = calloc(agents * policy.state_size + 1, sizeof *state);
    out = calloc(policy.n_out, sizeof *out);
    mask = shape.has_mask ? calloc(agents * policy.n_columns, 1) : NULL;
    actions = calloc(agents * policy.n_heads, sizeof *actions);
    reals = calloc(agents * policy.n_heads, sizeof *reals);
    actions_of_one = calloc(policy.n_heads, sizeof *actions_of_one);
    rewards = calloc(agents, sizeof *rewards);
    terms = calloc(agents, 1);
    truncs = calloc(agents, 1);
    if (!truncs)
        return 3;
    OF_GAME(_reset_range)(&settings, &game, rng_split(root, 0), 0, 1);
    draws = rng_split(root, 1);
    observe();
    return 0;
}

static float uniform(void)
{
    struct rng_block b = rng_philox(draws.key, draws.counter++, 0);

    return (float)(b.v[0] >> 8) * 0x1p-24f;
}

/* The policy's columns for an observation, from a fresh state: for those who compare it with another program. */
EXPORT("game_forward") const float *game_forward(const float *given, int begins)
{
    if (begins)
        memset(state, 0, policy.state_size * sizeof *state);
    trawl_policy_forward(&policy, state, given, out);
    return out;
}

/* A decision of all agents; the mean reward. */
EXPORT("game_step") double game_step(int greedy)
{
    size_t agents = (size_t)shape.n_agents, heads = policy.n_heads;
    float given[2 * TRAWL_POLICY_HEADS];
    double sum = 0;
    const struct env_io io = {.actions = actions,
                              .reals = reals,
                              .rewards = rewards,
                              .terms = terms,
                              .truncs = truncs,
                              .obs = shape.u8 ? (float *)(void *)bytes : obs,
                              .mask = mask};

    for (size_t a = 0; a < agents; a++) {
        for (size_t i = 0; i < 2 * heads; i++)
            given[i] = uniform();
        trawl_policy_forward(&policy, state + a * policy.state_size, obs + a * policy.obs_size, out);
        trawl_policy_act(&policy, out, mask ? mask + a * policy.n_columns : NULL, greedy ? NULL : given,
                         actions_of_one);
        for (size_t h = 0; h < heads; h++) {
            actions[a * heads + h] = (int32_t)actions_of_one[h];
            reals[a * heads + h] = actions_of_one[h];
        }
    }
    OF_GAME(_step_range)(&settings, &game, &played, &io, 0, 1);
    observe();
    for (size_t a = 0; a < agents; a++) {
        sum += (double)rewards[a] / (double)agents;
        if (terms[a] || truncs[a])
            memset(state + a * policy.state_size, 0, policy.state_size * sizeof *state);
    }
    return sum;
}

/* Sums over finished episodes, as struct env_log: how many, their score, their perf. */
EXPORT("game_episodes") double game_episodes(void)
{
    return played.episodes;
}
EXPORT("game_score") double game_score(void)
{
    return played.score;
}
EXPORT("game_perf") double game_perf(void)
{
    return played.perf;
}

/* Calls page_mark for each shape. */
EXPORT("game_draw") void game_draw(void)
{
    picture.n = 0;
    OF_GAME(_draw)(&settings, &game.state, &picture);
    for (size_t i = 0; i < picture.n; i++) {
        const struct env_mark *m = &picture.marks[i];
        page_mark((int)m->kind, m->a[0], m->a[1], m->a[2], m->a[3], m->a[4], m->align, (int)m->colour, m->text);
    }
}
EXPORT("game_width") double game_width(void)
{
    return picture.width;
}
EXPORT("game_height") double game_height(void)
{
    return picture.height;
}
