/* bench_env.c - steps per second of a game alone under random actions, on the host's threads or on a GPU.
 * A repeat plays the same few sets of actions in turn through the table of operations, as a rollout does: on a GPU
 * recorded as one graph, observations written in the type of the precision. */
#include "study/setup/setup.h"
#include "sweep/cli.h"
#include "sweep/cmd/bench/bench.h"

#define N_ACTION_SETS 16 /* random actions made before the clock starts, used in turn */

struct env_bench {
    struct kern *kern;
    struct kern_env *env;
    struct kern_graph *graph; /* of one round through the sets; NULL where nothing is recorded */
    struct kern_env_io io;
    int32_t *actions; /* (N_ACTION_SETS, A, n_heads) device, like reals */
    float *reals;
    size_t agents, n_heads;
};

static void env_bench_free(struct env_bench *b)
{
    if (b->kern == NULL)
        return;
    kern_graph_destroy(b->kern, b->graph);
    kern_env_destroy(b->kern, b->env);
    kern_free(b->kern, b->actions);
    kern_free(b->kern, b->reals);
    kern_free(b->kern, b->io.rewards);
    kern_free(b->kern, b->io.terms);
    kern_free(b->kern, b->io.truncs);
    kern_free(b->kern, b->io.obs);
    kern_free(b->kern, b->io.final_obs);
    kern_free(b->kern, b->io.mask);
    kern_close(b->kern);
}

static enum status env_bench_open(struct env_bench *b, const struct bench *options, struct error *err)
{
    struct kern_settings settings = {.kind = KERN_CPU, .n_threads = (size_t)options->threads};
    bool bf16 = strcmp(options->precision, "bf16") == 0;

    if (strcmp(options->device, "cuda") == 0)
        settings.kind = KERN_CUDA;
    else if (strcmp(options->device, "cpu") != 0)
        return FAIL(err, ST_USAGE, "bench: --device is '%s'; cpu or cuda", options->device);
    if (!bf16 && strcmp(options->precision, "f32") != 0)
        return FAIL(err, ST_USAGE, "bench: --precision is '%s'; f32 or bf16", options->precision);
    TRY(kern_open(&b->kern, &settings, err));
    return kern_precision_set(b->kern, bf16 ? KERN_BF16 : KERN_F32, err);
}

/* The tensors of a step. */
static enum status env_bench_alloc(struct env_bench *b, const struct env_shape *shape, struct error *err)
{
    struct kern *k = b->kern;
    size_t obs_bytes = b->agents * (size_t)shape->obs_size * kern_ops(k)->act_size, logits = 0;

    for (int h = 0; shape->has_mask && h < shape->n_heads; h++)
        logits += (size_t)shape->head_sizes[h];
    TRY(kern_alloc(k, (void **)&b->actions, N_ACTION_SETS * b->agents * b->n_heads * sizeof *b->actions, "actions",
                   err));
    TRY(kern_alloc(k, (void **)&b->reals, N_ACTION_SETS * b->agents * b->n_heads * sizeof *b->reals, "actions", err));
    TRY(kern_alloc(k, (void **)&b->io.rewards, b->agents * sizeof *b->io.rewards, "rewards", err));
    TRY(kern_alloc(k, (void **)&b->io.terms, b->agents, "terminations", err));
    TRY(kern_alloc(k, (void **)&b->io.truncs, b->agents, "truncations", err));
    TRY(kern_alloc(k, &b->io.obs, obs_bytes, "observations", err));
    TRY(kern_alloc(k, &b->io.final_obs, obs_bytes, "last observations", err));
    if (logits > 0)
        TRY(kern_alloc(k, (void **)&b->io.mask, b->agents * logits, "masks", err));
    return ST_OK;
}

static enum status env_bench_draw_actions(struct env_bench *b, const struct env_shape *shape, struct error *err)
{
    size_t n = N_ACTION_SETS * b->agents * b->n_heads;
    MEM_LOCAL int32_t *actions = mem_array(n, sizeof *actions);
    MEM_LOCAL float *reals = mem_array(n, sizeof *reals);
    struct rng rng = rng_seed(1);

    for (size_t i = 0; i < n; i++) {
        size_t h = i % b->n_heads;
        actions[i] = (int32_t)rng_below(&rng, (uint32_t)shape->head_sizes[h]);
        reals[i] = shape->low[h] + rng_f32(&rng) * (shape->high[h] - shape->low[h]);
    }
    TRY(kern_upload(b->kern, b->actions, actions, n * sizeof *actions, err));
    TRY(kern_upload(b->kern, b->reals, reals, n * sizeof *reals, err));
    return kern_sync(b->kern, err);
}

/* Each part is begun again when it is done, as a rollout does whose policy takes no time. */
static void env_bench_round(struct env_bench *b)
{
    const struct kern_ops *ops = kern_ops(b->kern);

    for (int i = 0; i <= N_ACTION_SETS; i++) {
        b->io.actions = b->actions + (size_t)i * b->agents * b->n_heads;
        b->io.reals = b->reals + (size_t)i * b->agents * b->n_heads;
        for (size_t part = 0; part < b->env->n_parts; part++) {
            if (i > 0)
                ops->env_wait(b->kern, b->env, part);
            if (i < N_ACTION_SETS)
                ops->env_begin(b->kern, b->env, &b->io, part);
        }
    }
}

static enum status env_bench_create(struct env_bench *b, const struct bench *options, struct error *err)
{
    const struct setup *setup = options->setup;
    struct env_shape shape;

    TRY(env_def_check(setup->env, setup->env_settings, (size_t)options->envs, &shape, err));
    b->agents = (size_t)options->envs * (size_t)shape.n_agents;
    b->n_heads = (size_t)shape.n_heads;
    TRY(env_bench_open(b, options, err));
    TRY(kern_env_create(b->kern, &b->env, setup->env, setup->env_settings, (size_t)options->envs, rng_seed(1), err));
    TRY(env_bench_alloc(b, &shape, err));
    TRY(env_bench_draw_actions(b, &shape, err));
    kern_ops(b->kern)->env_reset(b->kern, b->env, b->io.obs, b->io.mask);
    env_bench_round(b);
    TRY(kern_sync(b->kern, err));
    if (!kern_can_record(b->kern))
        return ST_OK;
    TRY(kern_record_begin(b->kern, err));
    env_bench_round(b);
    return kern_record_end(b->kern, &b->graph, err);
}

/* Agent steps per second over about `seconds`: rounds are given to the device in growing numbers between two looks at
 * the clock, so that waiting for it costs nothing that counts. */
static enum status env_bench_run(struct env_bench *b, double seconds, double *ret_rate, struct error *err)
{
    double start = clock_mono_s(), now, before = start;
    size_t steps = 0, rounds = 1;

    do {
        for (size_t i = 0; i < rounds; i++) {
            if (b->graph != NULL)
                TRY(kern_replay(b->kern, b->graph, err));
            else
                env_bench_round(b);
        }
        TRY(kern_sync(b->kern, err));
        steps += rounds * N_ACTION_SETS * b->agents;
        now = clock_mono_s();
        if (now - before < 0.05 * seconds)
            rounds *= 2;
        before = now;
    } while (now - start < seconds);
    *ret_rate = (double)steps / (now - start);
    return ST_OK;
}

static void print_env(const struct bench *o, const struct env_bench *b, const struct bench_spread *rate)
{
    size_t threads = kern_n_threads(b->kern);
    struct bench_spread per_core = {rate->median / (double)threads, rate->min / (double)threads,
                                    rate->max / (double)threads};
    const char *where = kern_device_name(b->kern);
    char text[NUM_TEXT_MAX], low[NUM_TEXT_MAX], high[NUM_TEXT_MAX];

    if (!o->json) {
        printf("%s: %s steps/s on %s (%s to %s over %lld repeats, %lld games, %s)\n", o->setup->env->name,
               num_format_short(rate->median, text), where, num_format_short(rate->min, low),
               num_format_short(rate->max, high), (long long)o->repeats, (long long)o->envs, o->precision);
        return;
    }
    cJSON *json = cJSON_CreateObject();
    json_add_str(json, "bench", "env");
    json_add_str(json, "env", o->setup->env->name);
    json_add_str(json, "precision", o->precision);
    bench_add_spread(json, "steps_per_s", rate);
    if (kern_kind(b->kern) == KERN_CPU)
        bench_add_spread(json, "steps_per_s_per_core", &per_core);
    json_add_i64(json, "threads", (int64_t)threads);
    json_add_i64(json, "envs", o->envs);
    json_add_i64(json, "repeats", o->repeats);
    json_add_f64(json, "seconds", o->seconds);
    bench_add_machine(json, where);
    cli_print_json(json);
}

enum status bench_env(const struct bench *o, struct error *err)
{
    AT_END(env_bench_free) struct env_bench b = {0};
    double rates[BENCH_MAX_REPEATS], warm;

    TRY(env_bench_create(&b, o, err));
    TRY(env_bench_run(&b, 0.1 * o->seconds, &warm, err));
    for (int64_t i = 0; i < o->repeats; i++)
        TRY(env_bench_run(&b, o->seconds, &rates[i], err));
    struct bench_spread rate = bench_spread_of(rates, o->repeats);
    print_env(o, &b, &rate);
    return ST_OK;
}
