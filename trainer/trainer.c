/* trainer.c - life of a trainer: checks, memory, the loop of rollouts and updates, reports and the result.
 * Invariants: (1) nothing large is allocated before every setting was checked and the memory need was compared with
 * the device; (2) nothing is allocated between iterations; (3) after a numeric failure the trainer refuses to be
 * saved, so a good checkpoint is never replaced by a bad one. */
#include "trainer/trainer_priv.h"

#include <inttypes.h>

#define SHUFFLE_STEPS_MAX (1 << 24) /* as many as a GPU shuffles */
#define LOWER "train.total_agents, train.horizon, train.minibatch_size or policy.hidden_size"

/* ---- checks ---- */

static enum status check_policy(const struct policy_settings *p, struct error *err)
{
    if (p->hidden_size < 1 || p->hidden_size > 65536)
        return FAIL(err, ST_CONFIG,
                    "policy.hidden_size is %" PRId64 ", it must be 1 to 65536; 64 is usual for small games",
                    p->hidden_size);
    if (p->num_layers < 0 || p->num_layers > POLICY_MAX_LAYERS)
        return FAIL(err, ST_CONFIG, "policy.num_layers is %" PRId64 ", it must be 0 to %d", p->num_layers,
                    POLICY_MAX_LAYERS);
    if (p->core < POLICY_CORE_NONE || p->core > POLICY_CORE_LSTM)
        return FAIL(err, ST_CONFIG, "policy.core is %d, it must be none, mlp, mingru or lstm", p->core);
    if (p->value_bins < 0 || p->value_bins > KERN_MAX_BINS || p->value_bins == 1 || p->value_bins == 2)
        return FAIL(err, ST_CONFIG,
                    "policy.value_bins is %" PRId64 ", it must be 0 (the value is a number) or 3 to %d; 51 is usual",
                    p->value_bins, KERN_MAX_BINS);
    if (p->value_bins > 0 && p->value_max < 1)
        return FAIL(err, ST_CONFIG, "policy.value_max is %" PRId64 ", it must be at least 1", p->value_max);
    if (p->activation < KERN_ACT_NONE || p->activation > KERN_ACT_TANH)
        return FAIL(err, ST_CONFIG, "policy.activation is %d, it must be none, relu or tanh", p->activation);
    if (p->encoder_activation < POLICY_ACTIVATION_AUTO || p->encoder_activation > POLICY_ACTIVATION_TANH)
        return FAIL(err, ST_CONFIG, "policy.encoder_activation is %d, it must be auto, none, relu or tanh",
                    p->encoder_activation);
    return ST_OK;
}

static enum status check_obs(const struct policy_settings *p, const struct env_def *def, const struct env_shape *shape,
                             struct error *err)
{
    int64_t frames = p->frame_stack > 0 ? p->frame_stack : 1;

    if (p->frame_stack < 0 || p->frame_stack > TRAIN_FRAMES_MAX)
        return FAIL(err, ST_CONFIG, "env.frame_stack is %" PRId64 ", it must be 1 to %d", p->frame_stack,
                    TRAIN_FRAMES_MAX);
    if ((int64_t)shape->obs_size > INT32_MAX / frames)
        return FAIL(err, ST_CONFIG, "env.frame_stack %" PRId64 " of %d numbers are beyond 2^31 - 1; lower it", frames,
                    shape->obs_size);
    if (p->norm_obs && shape->u8 && shape->n_floats == 0)
        return FAIL(
            err, ST_CONFIG,
            "policy.norm_obs is true, but %s shows nothing but bytes: they are stored as bytes, and the network gets "
            "them divided by %g; normalised ones would need four times the memory; set it to false, or let the game "
            "show 32-bit floats",
            def->name, (double)shape->byte_scale);
    return ST_OK;
}

/* The agents and the segments of a minibatch are dealt out evenly. */
static enum status check_devices(const struct train_settings *s, const struct env_shape *shape, struct error *err)
{
    int64_t n = s->devices > 0 ? s->devices : 1, games = s->total_agents / shape->n_agents;
    bool by_steps = s->shuffle == TRAIN_SHUFFLE_STEPS;
    int64_t steps = by_steps ? 1 : s->horizon, segments = s->minibatch_size / steps;

    if (s->devices < 0 || n > KERN_RANKS_MAX)
        return FAIL(err, ST_CONFIG, "train.devices is %" PRId64 ", it must be 1 to %d", s->devices, KERN_RANKS_MAX);
    if (games % n != 0)
        return FAIL(err, ST_CONFIG,
                    "train.total_agents %" PRId64 " is %" PRId64 " game%s of %d agent%s, which train.devices %" PRId64
                    " cannot share evenly; try total_agents %" PRId64,
                    s->total_agents, games, games == 1 ? "" : "s", shape->n_agents, shape->n_agents == 1 ? "" : "s", n,
                    (games / n + 1) * n * shape->n_agents);
    if (segments % n != 0 && by_steps)
        return FAIL(err, ST_CONFIG,
                    "train.minibatch_size %" PRId64
                    " (single steps, by train.shuffle) is not a multiple of train.devices %" PRId64
                    ", which share it evenly; try minibatch_size %" PRId64,
                    s->minibatch_size, n, (segments / n + 1) * n);
    if (segments % n != 0)
        return FAIL(err, ST_CONFIG,
                    "train.minibatch_size %" PRId64 " is %" PRId64 " segment%s of train.horizon %" PRId64
                    " step%s, which train.devices %" PRId64 " cannot share evenly; try minibatch_size %" PRId64,
                    s->minibatch_size, segments, segments == 1 ? "" : "s", steps, steps == 1 ? "" : "s", n,
                    (segments / n + 1) * n * steps);
    return ST_OK;
}

/* A rollout is made of segments, and a minibatch of some of them. */
static enum status check_minibatch(const struct train_settings *s, const struct policy_settings *policy,
                                   struct error *err)
{
    bool memory = policy->num_layers > 0 && (policy->core == POLICY_CORE_MINGRU || policy->core == POLICY_CORE_LSTM);
    int64_t most = INT32_MAX / s->horizon < s->total_agents ? INT32_MAX : s->total_agents * s->horizon;

    if (s->shuffle == TRAIN_SHUFFLE_STEPS) {
        if (memory)
            return FAIL(err, ST_CONFIG,
                        "train.shuffle is steps, but policy.core %s is trained on segments, whose steps follow each "
                        "other; set train.shuffle = segments",
                        policy->core == POLICY_CORE_LSTM ? "lstm" : "mingru");
        if (most > SHUFFLE_STEPS_MAX)
            return FAIL(err, ST_CONFIG,
                        "train.shuffle is steps, and a rollout has %" PRId64 " of train.total_agents %" PRId64
                        " times train.horizon %" PRId64 "; lower them to at most %d together, or set train.shuffle = "
                        "segments",
                        most, s->total_agents, s->horizon, SHUFFLE_STEPS_MAX);
        if (s->minibatch_size > most)
            return FAIL(err, ST_CONFIG,
                        "train.minibatch_size %" PRId64 " is more than a rollout of train.total_agents %" PRId64
                        " times train.horizon %" PRId64 " steps; lower it to at most %" PRId64,
                        s->minibatch_size, s->total_agents, s->horizon, most);
        return ST_OK;
    }
    if (s->minibatch_size % s->horizon != 0)
        return FAIL(err, ST_CONFIG,
                    "train.minibatch_size %" PRId64 " is not a multiple of train.horizon %" PRId64 "; try %" PRId64,
                    s->minibatch_size, s->horizon, (s->minibatch_size / s->horizon + 1) * s->horizon);
    if (s->minibatch_size / s->horizon > s->total_agents)
        return FAIL(err, ST_CONFIG,
                    "train.minibatch_size %" PRId64 " is %" PRId64 " segments of train.horizon %" PRId64
                    " step%s, more than train.total_agents %" PRId64 "; lower minibatch_size to at most %" PRId64
                    " or raise total_agents",
                    s->minibatch_size, s->minibatch_size / s->horizon, s->horizon, s->horizon == 1 ? "" : "s",
                    s->total_agents, s->total_agents * s->horizon);
    return ST_OK;
}

static enum status check_train(const struct train_settings *s, const struct policy_settings *policy,
                               const struct env_def *def, const struct env_shape *shape, struct error *err)
{
    if (s->total_timesteps < 1)
        return FAIL(err, ST_CONFIG, "train.total_timesteps is %" PRId64 ", it must be at least 1", s->total_timesteps);
    if (s->total_agents < 1 || s->horizon < 1 || s->minibatch_size < 1)
        return FAIL(err, ST_CONFIG,
                    "train.total_agents is %" PRId64 ", train.horizon %" PRId64 ", train.minibatch_size %" PRId64
                    "; each must be at least 1",
                    s->total_agents, s->horizon, s->minibatch_size);
    TRY(check_minibatch(s, policy, err));
    if (s->minibatch_size > INT32_MAX || s->total_agents > INT32_MAX)
        return FAIL(err, ST_CONFIG,
                    "train.minibatch_size %" PRId64 " or train.total_agents %" PRId64 " is beyond 2^31 - 1; lower it",
                    s->minibatch_size, s->total_agents);
    if (s->total_agents % shape->n_agents != 0)
        return FAIL(err, ST_CONFIG,
                    "train.total_agents %" PRId64 " is not a multiple of the %d agents of one %s game; try %" PRId64,
                    s->total_agents, shape->n_agents, def->name,
                    (s->total_agents / shape->n_agents + 1) * shape->n_agents);
    TRY(check_devices(s, shape, err));
    if (s->total_timesteps / s->horizon < s->total_agents)
        return FAIL(err, ST_CONFIG,
                    "train.total_timesteps %" PRId64 " is less than one rollout of train.total_agents %" PRId64
                    " x train.horizon %" PRId64 " steps; lower total_agents or horizon, or raise total_timesteps to "
                    "at least their product",
                    s->total_timesteps, s->total_agents, s->horizon);
    if (s->replay_ratio > 0.0 && s->replay_rounding == TRAIN_ROUNDING_FLOOR &&
        schedule_mean_minibatches(s, (size_t)s->horizon) < 1.0)
        return FAIL(
            err, ST_CONFIG,
            "train.replay_ratio %g of a rollout of %" PRId64 " steps is less than one minibatch of %" PRId64
            ", so with train.replay_rounding floor nothing would be trained; lower minibatch_size, or take carry",
            s->replay_ratio, s->total_agents * s->horizon, s->minibatch_size);
    if (s->minibatch_size == 1 && s->norm_adv && s->replay_ratio > 0.0)
        return FAIL(err, ST_CONFIG,
                    "train.minibatch_size 1 with train.norm_adv true: an advantage less its own mean is 0, so nothing "
                    "would be learned; raise minibatch_size or set norm_adv to false");
    if (s->eval_episodes < 1 || s->eval_max_steps < 1)
        return FAIL(err, ST_CONFIG,
                    "train.eval_episodes is %" PRId64 ", train.eval_max_steps %" PRId64 "; each must be at least 1",
                    s->eval_episodes, s->eval_max_steps);
    if (s->e3b_coef > 0.0 && !(s->e3b_scale > 0.0))
        return FAIL(err, ST_CONFIG, "train.e3b_scale is %g, it must be above 0; 1 is usual", s->e3b_scale);
    if (!(s->replay_ratio >= 0.0 && s->replay_ratio <= 1e6))
        return FAIL(err, ST_CONFIG, "train.replay_ratio is %g, it must be 0 to 1000000", s->replay_ratio);
    return ST_OK;
}

/* The measured rule of docs/cuda.md: bf16 wherever the device has it. */
static enum status choose_precision(const struct train_settings *s, struct kern *kern, struct error *err)
{
    bool bf16 = s->precision == TRAIN_BF16 || (s->precision == TRAIN_PRECISION_AUTO && kern_kind(kern) == KERN_CUDA);
    return kern_precision_set(kern, bf16 ? KERN_BF16 : KERN_F32, err);
}

/* ---- life cycle ---- */

static void trainer_plan(struct trainer *t)
{
    struct plan *plan = &t->plan;
    size_t n = t->policy.n_params, T = trainer_segment_steps(t);

    plan_add(plan, &t->params, "weights", sizeof(float), n, 1, 1);
    if (t->ops->act_size != sizeof(float))
        plan_add(plan, &t->weights, "weights of layers", t->ops->act_size, n, 1, 1);
    plan_add(plan, &t->grads, "gradients", sizeof(float), t->n_shards, n, 1);
    plan_add(plan, &t->moment1, "first moments", sizeof(float), n, 1, 1);
    if (t->set.optimizer == TRAIN_ADAM)
        plan_add(plan, &t->moment2, "second moments", sizeof(float), n, 1, 1);
    if (t->set.optimizer == TRAIN_MUON)
        plan_add(plan, &t->muon_scratch, "optimiser scratch", 1,
                 kern_muon_scratch_bytes(t->policy.tensors, t->policy.n_tensors), 1, 1);
    plan_add(plan, &t->norm, "gradient norm", sizeof(float), 1, 1, 1);
    plan_add(plan, &t->hyper, "hyper-parameters", sizeof(struct kern_hyper), 1, 1, 1);
    plan_add(plan, &t->report, "statistics", report_bytes(t->n_ranks), 1, 1, 1);
    plan_add(plan, &t->mark_times, "profile", sizeof(uint64_t), PIECE_COUNT, MARKS_MAX, 1);
    plan_add(plan, &t->shard_stats, "statistics of shards", sizeof(struct kern_stats), t->n_ranks, t->n_shards, 1);
    plan_add(plan, &t->rng_sample, "random stream", sizeof(struct rng), 1, 1, 1);
    plan_add(plan, &t->rng_tmp, "random stream", sizeof(struct rng), 1, 1, 1);
    plan_add(plan, &t->rng_segments, "random stream", sizeof(struct rng), 1, 1, 1);
    plan_add(plan, NULL, "games", t->def->state_size + sizeof(struct env_log), t->n_envs, 1, 1);
    plan_add(plan, NULL, "evaluation", eval_bytes(t), 1, 1, 1);
    rollout_plan(t);
    normalise_plan(t);
    novelty_plan(t);
    update_plan(t);
    policy_plan_step(&t->policy, &t->step, plan, t->n_agents);
    policy_plan_pass(&t->policy, &t->pass, plan, T * t->n_segments, T * t->n_block, t->n_shards);
}

/* Weights, streams and first observations. */
static enum status trainer_start(struct trainer *t, struct error *err)
{
    struct rng sample = rng_split(t->root, STREAM_SAMPLE), segments = rng_split(t->root, STREAM_SEGMENTS);
    size_t n = t->policy.n_params, last = t->horizon * t->n_agents;
    float *params = mem_try_array(n, sizeof *params);
    void *obs, *first;

    segments.counter = t->first_segment; /* draw i of an order belongs to segment i of all ranks */
    if (params == NULL)
        return FAIL(err, ST_NOMEM, "no memory to initialise %zu weights; lower policy.hidden_size", n);
    for (size_t i = 0; i < ENV_MAX_NUMBERS; i++)
        t->numbers[i] = NAN;
    policy_fill_params(&t->policy, rng_split(t->root, STREAM_INIT), params);
    enum status rc = kern_upload(t->kern, t->params, params, n * sizeof *params, err);
    THEN(rc, kern_upload(t->kern, t->rng_sample, &sample, sizeof sample, err));
    THEN(rc, kern_upload(t->kern, t->rng_segments, &segments, sizeof segments, err));
    if (rc == ST_OK)
        rc = kern_sync(t->kern, err); /* uploads may still read from here */
    mem_free(params);
    if (rc != ST_OK)
        return rc;
    trainer_weights_cast(t);
    TRY(novelty_start(t, err));
    obs = policy_obs_at(&t->policy, t->roll.obs, last);
    first = t->roll.frame != NULL ? t->roll.frame : obs;
    t->ops->env_reset(t->kern, t->env, first, t->roll.mask != NULL ? t->roll.mask + last * t->policy.n_logits : NULL);
    normalise_freeze(t); /* of no row: everything stays as it is, within the limits */
    normalise_add(t, first, t->n_agents);
    normalise_apply(t, first, t->n_agents);
    frames_stack(t, obs, NULL, first, NULL, NULL, t->n_agents);
    return ST_OK;
}

/* Where bytes and f32 are widened, a stack has the lists of both side by side in each frame; where they are not, those
 * of bytes and those of f32. */
static enum status check_device(const struct kern *kern, const struct env_def *def, const struct env_shape *shape,
                                const struct policy_settings *policy, struct error *err)
{
    int list = shape->obs_size - shape->n_floats - shape->channels * shape->height * shape->width;

    if (kern_kind(kern) == KERN_CUDA && shape->n_floats > 0 && list > 0 && policy->frame_stack > 1)
        return FAIL(err, ST_CONFIG,
                    "env.frame_stack is %" PRId64
                    ", but %s shows numbers beside a list of %d bytes, which a GPU does not "
                    "stack; train it with --train.device cpu, or without frame_stack",
                    policy->frame_stack, def->name, list);
    return ST_OK;
}

/* Everything that follows from the settings alone. */
static void trainer_describe(struct trainer *t, struct kern *kern, const struct env_def *def, const void *env_settings,
                             const struct env_shape *shape, const struct policy_settings *policy,
                             const struct train_settings *train, size_t rank)
{
    t->n_ranks = train->devices > 1 ? (size_t)train->devices : 1;
    t->rank = rank;
    t->kern = kern;
    t->ops = kern_ops(kern);
    t->def = def;
    t->shape = *shape;
    if (shape->n_floats > 0 && kern_kind(kern) == KERN_CUDA)
        t->shape.u8 = false; /* widened by the host */
    t->set = *train;
    t->n_agents = (size_t)train->total_agents / t->n_ranks;
    t->first_agent = rank * t->n_agents;
    t->horizon = t->horizon_full = (size_t)train->horizon;
    t->direct = kern_kind(kern) == KERN_CPU;
    t->n_segments = (size_t)train->minibatch_size / trainer_segment_steps(t) / t->n_ranks;
    t->first_segment = rank * trainer_segments(t);
    t->n_shards = kern_n_shards(kern);
    t->n_block = update_block_segments(kern, trainer_segment_steps(t), t->n_segments);
    t->n_envs = t->n_agents / (size_t)shape->n_agents;
    t->root = rng_seed((uint64_t)train->seed);
    policy_init(&t->policy, kern, policy, &t->shape);
    schedule_hyper(&t->set, 0, &t->host_hyper);
    t->env_settings = mem_alloc(def->options.settings_size);
    memcpy(t->env_settings, env_settings, def->options.settings_size);
}

/* The games' streams. A built-in game counts its instances from root.counter on, so that ranks play what one device
 * would; others, which may be older than that, have streams of each rank's own. */
static struct rng env_root(const struct trainer *t)
{
    struct rng root = rng_split(t->root, STREAM_ENV);

    if (t->rank == 0)
        return root;
    if (env_find(t->def->name) != t->def)
        return rng_split(root, (uint64_t)1 << 32 | t->rank);
    root.counter = t->rank * t->n_envs;
    return root;
}

/* Device memory and games of a trainer that was described and planned. */
static enum status trainer_build(struct trainer *t, struct error *err)
{
    TRY(kern_env_create(t->kern, &t->env, t->def, t->env_settings, t->n_envs, env_root(t), err));
    TRY(plan_alloc(&t->plan, t->kern, err));
    if (t->ops->act_size == sizeof(float))
        t->weights = t->params;
    t->stats = &t->report->stats;
    t->opt_step = &t->report->opt_step;
    for (int i = 0; i < ISSUED_MAX; i++)
        TRY(kern_slot_create(t->kern, &t->issued[i].report, report_bytes(t->n_ranks), err));
    TRY(solo_open(t, err));
    return kern_slot_create(t->kern, &t->times_slot, PIECE_COUNT * MARKS_MAX * sizeof(uint64_t), err);
}

/* As new, with the settings of `like`: memory, games, slots and recordings stay. */
static enum status trainer_renew(struct trainer *t, const struct trainer *like, struct error *err)
{
    t->set = like->set;
    t->root = like->root;
    t->host_hyper = like->host_hyper;
    memset(&t->count, 0, sizeof t->count);
    memset(&t->window, 0, sizeof t->window);
    memset(t->profile_s, 0, sizeof t->profile_s);
    t->n_issued = t->n_collected = 0;
    solo_forget(t);
    t->settled_wall_s = t->begun_wall_s = 0.0;
    t->unsettled_n = 0;
    t->lr = 0.0f;
    t->first_s = t->recording_s = 0.0;
    t->cost = (struct cost){0};
    t->running = t->failed = false;
    plan_clear(&t->plan, t->kern);
    return kern_env_restart(t->kern, t->env, env_root(t), err);
}

/* Makes room by dropping what is kept, the oldest first. */
static enum status trainer_build_new(struct trainer *t, struct trainer_cache *cache, struct error *err)
{
    trainer_plan(t);
    while (!plan_fits(&t->plan, t->kern) && cache != NULL &&
           (trainer_cache_drop_oldest(cache) || (plan_could_fit(&t->plan, t->kern) && trainer_cache_wait(cache))))
        ;
    TRY(plan_check(&t->plan, t->kern, LOWER, err));
    return trainer_build(t, err);
}

/* Without a device or memory. */
static enum status trainer_check_shape(const struct env_def *def, const void *env_settings,
                                       const struct policy_settings *policy, const struct train_settings *train,
                                       struct env_shape *ret_shape, struct error *err)
{
    *ret_shape = (struct env_shape){0};
    TRY(check_policy(policy, err));
    TRY(env_def_check(def, env_settings, 1, ret_shape, err));
    TRY(policy_check_encoder(policy, def->name, ret_shape, err));
    TRY(check_obs(policy, def, ret_shape, err));
    return check_train(train, policy, def, ret_shape, err);
}

enum status trainer_check(const struct env_def *def, const void *env_settings, const struct policy_settings *policy,
                          const struct train_settings *train, struct error *err)
{
    struct env_shape shape;

    return trainer_check_shape(def, env_settings, policy, train, &shape, err);
}

enum status rank_create(struct trainer **ret_trainer, struct trainer_cache *cache, struct kern *kern,
                        const struct env_def *def, const void *env_settings, const struct policy_settings *policy,
                        const struct train_settings *train, size_t rank, struct error *err)
{
    struct trainer *t, *kept = NULL;
    struct env_shape shape;
    enum status rc;

    *ret_trainer = NULL;
    TRY(trainer_check_shape(def, env_settings, policy, train, &shape, err));
    TRY(check_device(kern, def, &shape, policy, err));
    TRY(choose_precision(train, kern, err));
    t = mem_alloc(sizeof *t);
    trainer_describe(t, kern, def, env_settings, &shape, policy, train, rank);
    if (cache != NULL)
        kept = trainer_cache_take(cache, t);
    if (kept != NULL) {
        rc = trainer_renew(kept, t, err);
        trainer_free(t);
        t = kept;
    } else {
        rc = trainer_build_new(t, cache, err);
    }
    THEN(rc, trainer_start(t, err));
    if (rc != ST_OK) {
        trainer_free(t);
        return rc;
    }
    t->home = cache;
    *ret_trainer = t;
    return ST_OK;
}

/* Several devices keep nothing: the others are closed when their training ends. */
enum status trainer_create_cached(struct trainer **ret_trainer, struct trainer_cache *cache, struct kern *kern,
                                  const struct env_def *def, const void *env_settings,
                                  const struct policy_settings *policy, const struct train_settings *train,
                                  struct error *err)
{
    *ret_trainer = NULL;
    if (train->devices <= 1)
        return rank_create(ret_trainer, cache, kern, def, env_settings, policy, train, 0, err);
    TRY(trainer_check(def, env_settings, policy, train, err));
    return team_create(ret_trainer, &(struct hosted){0}, kern, def, env_settings, policy, train, err);
}

enum status trainer_create_on(struct trainer **ret_trainer, struct train_hosts *hosts, const char *config,
                              struct kern *kern, const struct env_def *def, const void *env_settings,
                              const struct policy_settings *policy, const struct train_settings *train,
                              struct error *err)
{
    const struct hosted on = {.hosts = hosts, .config = config};

    *ret_trainer = NULL;
    TRY(trainer_check(def, env_settings, policy, train, err));
    return team_create(ret_trainer, &on, kern, def, env_settings, policy, train, err);
}

enum status trainer_create(struct trainer **ret_trainer, struct kern *kern, const struct env_def *def,
                           const void *env_settings, const struct policy_settings *policy,
                           const struct train_settings *train, struct error *err)
{
    return trainer_create_cached(ret_trainer, NULL, kern, def, env_settings, policy, train, err);
}

void trainer_free(struct trainer *t)
{
    if (t == NULL)
        return;
    recordings_free(t);
    for (int i = 0; i < ISSUED_MAX; i++)
        kern_slot_destroy(t->kern, t->issued[i].report);
    kern_slot_destroy(t->kern, t->times_slot);
    solo_close(t);
    plan_free(&t->plan, t->kern);
    kern_env_destroy(t->kern, t->env);
    mem_free(t->env_settings);
    mem_free(t);
}

void trainer_destroy(struct trainer *t)
{
    if (t != NULL && t->team != NULL)
        team_destroy(t->team);
    else if (t != NULL && (t->home == NULL || !trainer_cache_give(t->home, t)))
        trainer_free(t);
}

/* ---- a run ---- */

#define POINTS_MIN 24 /* of a curve, whatever the length of the run, as far as it has iterations */
#define POINT_S 0.02 /* apart at least, unless log_interval_s asks for more: a point costs a message and a row */

/* Is a point of the curve due? By the clock, or else by how far the run is. */
static bool report_is_due(const struct trainer *t)
{
    double since_s = t->count.wall_s - t->count.report_wall_s;
    double share = (double)(t->count.env_steps - t->count.report_env_steps) / (double)t->set.total_timesteps;

    if (t->set.max_seconds > 0.0)
        share = fmax(share, since_s / t->set.max_seconds);
    return since_s >= t->set.log_interval_s || (share * POINTS_MIN >= 1.0 && since_s >= POINT_S);
}

/* One point of the curve; false: the callback asks to stop. */
static bool trainer_report(struct trainer *t, const struct train_callbacks *callbacks)
{
    struct train_metrics metrics;

    trainer_get_metrics(t, &metrics);
    metrics_take_numbers(t, &metrics);
    t->count.report_env_steps = t->count.env_steps;
    t->count.report_updates = t->count.updates;
    t->count.report_wall_s = t->count.wall_s;
    t->count.log = (struct env_log){0};
    t->count.stats = (struct kern_stats){0};
    return callbacks == NULL || callbacks->on_metrics == NULL || callbacks->on_metrics(callbacks->ctx, &metrics);
}

static void trainer_fill_result(struct trainer *t, bool stopped, struct train_result *ret_result)
{
    *ret_result = (struct train_result){
        .env_steps = t->count.env_steps,
        .cost_s = t->count.wall_s,
        .cost_calibrated = t->cost.iteration_s > 0.0,
        .first_s = t->first_s,
        .recording_s = t->recording_s,
        .n_params = (int64_t)t->policy.n_params,
        .stopped = stopped,
    };
    metrics_of_window(t, &ret_result->window);
}

enum status trainer_run(struct trainer *t, const struct train_callbacks *callbacks, struct train_result *ret_result,
                        struct error *err)
{
    enum status rc = ST_OK;
    bool stopped = false;
    size_t horizon;

    t->running = true;
    cost_begin(t, callbacks != NULL ? callbacks->gate : NULL);
    while (rc == ST_OK && !stopped && (horizon = schedule_horizon(&t->set, trainer_issued_steps(t))) > 0) {
        trainer_tick(t);
        if (callbacks != NULL && callbacks->until > 0 && trainer_issued_steps(t) >= callbacks->until)
            break;
        if (t->set.max_seconds > 0.0 && t->count.wall_s >= t->set.max_seconds)
            break;
        if (callbacks != NULL && callbacks->should_stop != NULL && callbacks->should_stop(callbacks->ctx)) {
            stopped = true;
            break;
        }
        rc = cost_turn(t, err);
        THEN(rc, iterate_for(t, horizon, err));
        if (rc == ST_OK && report_is_due(t))
            stopped = !trainer_report(t, callbacks);
    }
    THEN(rc, trainer_sync(t, err));
    THEN(rc, ranks_compare(t, err));
    trainer_tick(t);
    cost_end(t);
    if (rc == ST_OK && t->count.report_env_steps < t->count.env_steps && !trainer_report(t, callbacks))
        stopped = true;
    t->running = false;
    trainer_fill_result(t, stopped, ret_result);
    return rc;
}

/* ---- weights ---- */

void trainer_weights_cast(struct trainer *t)
{
    if (t->weights != t->params)
        t->ops->weights_cast(t->kern, t->weights, t->params, t->policy.n_params);
}

size_t trainer_n_params(const struct trainer *t)
{
    return t->policy.n_params;
}

enum status trainer_get_params(struct trainer *t, float *ret_params, struct error *err)
{
    TRY(trainer_sync(t, err));
    return kern_download(t->kern, ret_params, t->params, t->policy.n_params * sizeof *ret_params, err);
}
