/* env_check_gpu.c - a game on host and GPU by the same actions. */
#include "sweep/cmd/env/env_check_gpu.h"

#include "envs/envs.h"
#include "envs/plugin/library.h"
#include "kernels/kernels.h"
#include "sweep/cmd/env/env_side.h"
#include "sweep/game_output.h"

#define PLAYED_ENVS 999 /* more than a block has, and no multiple of one; */
#define PLAYED_AGENTS 30000 /* fewer, where they have many agents */
#define SPEED_AGENTS 32768
#define SPEED_STEPS 200

/* A batch on the GPU; all tensors are device memory, owned. */
struct gpu_side {
    struct kern *kern;
    struct kern_env *env;
    struct env_shape shape;
    size_t n_envs, n_agents, n_actions, mask_width, obs_bytes;
    struct kern_env_io io;
    int32_t *actions;
    float *reals;
};

static enum status side_memory(struct gpu_side *s, struct error *err)
{
    const size_t A = s->n_agents;

    TRY(kern_alloc(s->kern, (void **)&s->actions, s->n_actions * sizeof *s->actions, "actions", err));
    TRY(kern_alloc(s->kern, (void **)&s->reals, s->n_actions * sizeof *s->reals, "actions", err));
    TRY(kern_alloc(s->kern, &s->io.obs, s->obs_bytes, "observations", err));
    TRY(kern_alloc(s->kern, &s->io.final_obs, s->obs_bytes, "observations", err));
    TRY(kern_alloc(s->kern, (void **)&s->io.rewards, A * sizeof(float), "rewards", err));
    TRY(kern_alloc(s->kern, (void **)&s->io.terms, A, "flags", err));
    TRY(kern_alloc(s->kern, (void **)&s->io.truncs, A, "flags", err));
    if (s->mask_width > 0)
        TRY(kern_alloc(s->kern, (void **)&s->io.mask, A * s->mask_width, "masks", err));
    s->io.actions = s->actions;
    s->io.reals = s->reals;
    return ST_OK;
}

static enum status side_open(struct gpu_side *s, struct kern *kern, const struct env_def *def, const void *settings,
                             size_t n_envs, uint64_t seed, struct error *err)
{
    *s = (struct gpu_side){.kern = kern, .n_envs = n_envs};
    TRY(env_def_check(def, settings, n_envs, &s->shape, err));
    s->n_agents = n_envs * (size_t)s->shape.n_agents;
    s->n_actions = s->n_agents * (size_t)s->shape.n_heads;
    s->obs_bytes = s->n_agents * env_row_bytes(&s->shape);
    for (int h = 0; s->shape.has_mask && h < s->shape.n_heads; h++)
        s->mask_width += (size_t)s->shape.head_sizes[h];
    TRY(kern_env_create(kern, &s->env, def, settings, n_envs, rng_seed(seed), err));
    return side_memory(s, err);
}

static void side_close(struct gpu_side *s)
{
    void *const all[] = {s->actions,    s->reals,    s->io.obs,    s->io.final_obs,
                         s->io.rewards, s->io.terms, s->io.truncs, s->io.mask};

    for (size_t i = 0; i < COUNT(all); i++)
        kern_free(s->kern, all[i]);
    kern_env_destroy(s->kern, s->env);
}

static enum status side_act(struct gpu_side *s, const struct env_side *host, struct error *err)
{
    TRY(kern_upload(s->kern, s->actions, host->actions, s->n_actions * sizeof *s->actions, err));
    TRY(kern_upload(s->kern, s->reals, host->reals, s->n_actions * sizeof *s->reals, err));
    return kern_sync(s->kern, err);
}

/* ---- the same bytes ---- */

static enum status same(struct gpu_side *s, const void *device, const void *host, size_t bytes, const char *what,
                        const char **ret_differs, struct error *err)
{
    MEM_LOCAL char *copy = mem_alloc(bytes);

    TRY(kern_download(s->kern, copy, device, bytes, err));
    if (memcmp(copy, host, bytes) != 0)
        *ret_differs = what;
    return ST_OK;
}

/* Last observations are there only where an episode was cut. */
static enum status same_last(struct gpu_side *s, const struct env_side *host, const char **ret_differs,
                             struct error *err)
{
    const size_t row = s->obs_bytes / s->n_agents;
    MEM_LOCAL char *copy = mem_alloc(s->obs_bytes);
    enum status rc = kern_download(s->kern, copy, s->io.final_obs, s->obs_bytes, err);

    for (size_t a = 0; rc == ST_OK && a < s->n_agents; a++)
        if (host->truncs[a] != 0 && memcmp(copy + a * row, (const char *)host->final_obs + a * row, row) != 0)
            *ret_differs = "last observations";
    return rc;
}

static enum status same_step(struct gpu_side *s, const struct env_side *host, bool stepped, const char **ret_differs,
                             struct error *err)
{
    const size_t A = s->n_agents;

    TRY(same(s, s->io.obs, host->obs, s->obs_bytes, "observations", ret_differs, err));
    if (s->mask_width > 0)
        TRY(same(s, s->io.mask, host->mask, A * s->mask_width, "masks", ret_differs, err));
    if (!stepped)
        return ST_OK;
    TRY(same(s, s->io.rewards, host->rewards, A * sizeof(float), "rewards", ret_differs, err));
    TRY(same(s, s->io.terms, host->terms, A, "terminations", ret_differs, err));
    TRY(same(s, s->io.truncs, host->truncs, A, "truncations", ret_differs, err));
    return same_last(s, host, ret_differs, err);
}

/* Both play by the same actions, from where they are. */
static enum status play_on(struct gpu_side *s, struct env_side *host, int64_t steps, double seconds, struct rng *rng,
                           int64_t *ret_t, const char **ret_differs, struct error *err)
{
    const double end_s = clock_mono_s() + seconds;

    for (*ret_t = 0; *ret_differs == NULL && *ret_t < steps && (*ret_t < 20 || clock_mono_s() < end_s); ++*ret_t) {
        env_side_random(host, rng);
        TRY(side_act(s, host, err));
        env_side_step(host, NULL);
        kern_env_step(s->kern, s->env, &s->io);
        TRY(same_step(s, host, true, ret_differs, err));
    }
    return ST_OK;
}

/* A state saved on the GPU continues the same game on the host, and its logs are those of the host. What lies between
 * the members of a state may differ. */
static enum status same_state(struct gpu_side *s, struct env_side *host, struct rng *rng, const char **ret_differs,
                              struct error *err)
{
    const size_t n = env_batch_state_bytes(host->batch), logs = s->n_envs * sizeof(struct env_log);
    MEM_LOCAL char *b = mem_alloc(n), *a = mem_alloc(n);
    enum status rc = kern_env_save(s->kern, s->env, a, err);
    int64_t t;

    env_batch_save(host->batch, b);
    if (rc == ST_OK && memcmp(a + n - logs, b + n - logs, logs) != 0)
        *ret_differs = "logs";
    if (rc == ST_OK && *ret_differs == NULL) {
        env_batch_load(host->batch, a);
        rc = play_on(s, host, 20, 0.0, rng, &t, ret_differs, err);
    }
    return rc;
}

static enum status play_both(struct gpu_side *s, struct env_side *host, int64_t steps, double seconds, struct rng *rng,
                             int64_t *ret_t, const char **ret_differs, struct error *err)
{
    env_side_reset(host, NULL);
    kern_ops(s->kern)->env_reset(s->kern, s->env, s->io.obs, s->io.mask);
    TRY(same_step(s, host, false, ret_differs, err));
    TRY(play_on(s, host, steps, seconds, rng, ret_t, ret_differs, err));
    return *ret_differs == NULL ? same_state(s, host, rng, ret_differs, err) : ST_OK;
}

/* ---- speed ---- */

static enum status time_steps(struct kern *kern, const struct env_def *def, const void *settings, struct rng *rng,
                              struct error *err)
{
    struct gpu_side s = {0};
    struct env_side host;
    struct env_shape shape;

    TRY(env_def_check(def, settings, 1, &shape, err));
    const size_t n = (size_t)(SPEED_AGENTS / shape.n_agents > 0 ? SPEED_AGENTS / shape.n_agents : 1);
    if (!env_side_open(&host, def, settings, n, 1, 1))
        return FAIL(err, ST_NOMEM, "no batch of %zu instances", n);
    env_side_reset(&host, NULL); /* for its masks */
    env_side_random(&host, rng);
    enum status rc = side_open(&s, kern, def, settings, n, 1, err);
    THEN(rc, side_act(&s, &host, err));
    if (rc == ST_OK) {
        kern_ops(kern)->env_reset(kern, s.env, s.io.obs, s.io.mask);
        for (int i = 0; i < 20; i++)
            kern_env_step(kern, s.env, &s.io);
        rc = kern_sync(kern, err);
    }
    double begun = clock_mono_s();
    for (int i = 0; rc == ST_OK && i < SPEED_STEPS; i++)
        kern_env_step(kern, s.env, &s.io);
    THEN(rc, kern_sync(kern, err));
    if (rc == ST_OK)
        fprintf(game_output_result(), "speed  %.3g steps/s on %s (%zu agents, one action held, stepping alone)\n",
                (double)s.n_agents * SPEED_STEPS / (clock_mono_s() - begun), kern_device_name(kern), s.n_agents);
    side_close(&s);
    env_side_close(&host);
    return rc;
}

/* ---- the check ---- */

static bool has_device_code(const struct env_def *def)
{
    return env_library_device(def) != NULL || env_find(def->name) == def;
}

bool env_check_gpu(const struct env_def *def, const void *settings, int64_t steps, uint64_t seed, double seconds)
{
    struct kern_settings where = {.kind = KERN_CUDA};
    struct rng rng = rng_seed(seed);
    struct kern *kern = NULL;
    struct gpu_side s = {0};
    struct env_side host = {0};
    const char *differs = NULL;
    struct env_shape shape;
    struct error err = {0};
    char reason[256];
    size_t n = PLAYED_ENVS;
    int64_t t = 0;

    if (!has_device_code(def))
        return true;
    if (!kern_cuda_available(reason, sizeof reason)) {
        if (env_library_device(def) != NULL)
            fprintf(game_output_result(), "note   its GPU code was not played: %s\n", reason);
        return true;
    }
    enum status rc = env_def_check(def, settings, 1, &shape, &err);
    if (rc == ST_OK && shape.n_floats > 0) /* the host steps it, and the GPU gets numbers alone */
        return true;
    while (rc == ST_OK && n > 1 && n * (size_t)shape.n_agents > PLAYED_AGENTS)
        n /= 2;
    THEN(rc, kern_open(&kern, &where, &err));
    THEN(rc, side_open(&s, kern, def, settings, n, 7, &err));
    if (rc == ST_OK && !env_side_open(&host, def, settings, n, 7, 7))
        rc = FAIL(&err, ST_NOMEM, "no batch of %zu instances", n);
    THEN(rc, play_both(&s, &host, steps, seconds, &rng, &t, &differs, &err));
    if (rc != ST_OK)
        fprintf(game_output_result(), "FAULT  on the GPU: %s\n", err.text);
    else if (differs != NULL)
        fprintf(
            game_output_result(),
            "FAULT  the GPU plays another game: %s differ after %lld steps; is there arithmetic other than + - * / and "
            "sqrt (env_math.h has sine and cosine)?\n",
            differs, (long long)t);
    else
        fprintf(game_output_result(), "ok     %lld steps of %zu instances on the GPU: the same bytes as on the host\n",
                (long long)t, n);
    side_close(&s);
    env_side_close(&host);
    if (rc == ST_OK && differs == NULL && (rc = time_steps(kern, def, settings, &rng, &err)) != ST_OK)
        fprintf(game_output_result(), "FAULT  on the GPU: %s\n", err.text);
    kern_close(kern);
    return rc == ST_OK && differs == NULL;
}
