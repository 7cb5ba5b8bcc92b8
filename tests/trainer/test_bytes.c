/* test_bytes.c - observations that are bytes, or bytes and floats, against the same ones as floats: a quarter of the
 * memory and the same training, to the byte; a grid with a list beside it; observations of several frames, and what
 * they let a policy learn. */
#include "trainer_test.h"

/* ---- a game in three forms: a dot that walks over a grid of two channels, and a list of three numbers ----
 * Even instances are truncated after 3 steps, odd ones end after 5. */

enum { SIDE = 4, GRID = SIDE * SIDE * 2, LIST = 3, OBS = GRID + LIST };
static const float SCALE = 1.0f / 50.0f;
enum form { FLOATS, BYTES, MIXED };
static bool with_list = true, dark = false; /* dark: the grid is all 0 */
static int n_mixed = LIST; /* of the form MIXED: numbers of the list that are floats, the last ones */

struct dot_settings {
    int64_t unused;
};
struct dot_state {
    struct rng rng;
    int64_t steps, id, at;
};

static enum status dot_shape(const struct env_def *def, const void *settings, struct env_shape *shape,
                             struct error *err)
{
    (void)settings, (void)err;
    *shape = (struct env_shape){.obs_size = with_list ? OBS : GRID,
                                .channels = 2,
                                .height = SIDE,
                                .width = SIDE,
                                .n_agents = 1,
                                .n_heads = 1,
                                .head_sizes = {3},
                                .may_truncate = true,
                                .u8 = strcmp(def->name, "dot_floats") != 0,
                                .n_floats = strcmp(def->name, "dot_mixed") == 0 ? n_mixed : 0,
                                .byte_scale = 50.0f};
    return ST_OK;
}

static void dot_look(const struct dot_state *s, uint8_t *bytes)
{
    memset(bytes, 0, OBS);
    bytes[2 * s->at] = 50;
    bytes[2 * s->at + 1] = (uint8_t)(10 * s->steps);
    if (dark)
        memset(bytes, 0, GRID);
    bytes[GRID] = (uint8_t)s->steps;
    bytes[GRID + 1] = (uint8_t)(s->id % 7);
    bytes[GRID + 2] = 33;
}

/* Observation i of obs, in the form that obs has. */
static void dot_write(const struct dot_state *s, float *obs, size_t i, enum form form)
{
    size_t n = with_list ? OBS : GRID, floats = form == FLOATS ? n : form == MIXED ? (size_t)n_mixed : 0;
    uint8_t bytes[OBS],
        *row = (uint8_t *)obs + i * (form == FLOATS ? n * 4 : (n - floats + 3) / 4 * 4 * (floats > 0) + 4 * floats);

    dot_look(s, bytes);
    if (form == BYTES)
        row = (uint8_t *)obs + i * n;
    memcpy(row, bytes, n - floats);
    for (size_t j = n - floats; j < n; j++)
        env_floats(row, n - floats)[j - (n - floats)] = (float)bytes[j] * SCALE;
}

static void dot_reset_range(const void *settings, void *states, struct rng root, size_t from, size_t to)
{
    struct dot_state *s = states;
    (void)settings;
    for (size_t i = from; i < to; i++)
        s[i] = (struct dot_state){.rng = rng_split(root, i), .id = (int64_t)i, .at = (int64_t)i % (SIDE * SIDE)};
}

static void dot_step(void *states, struct env_log *logs, const struct env_io *io, size_t from, size_t to,
                     enum form form)
{
    for (size_t i = from; i < to; i++) {
        struct dot_state *s = (struct dot_state *)states + i;
        bool odd = s->id % 2 == 1, end = ++s->steps == (odd ? 5 : 3);

        s->at = (s->at + io->actions[i] * 3 + 1) % (SIDE * SIDE);
        io->rewards[i] = s->at < SIDE ? 1.0f : -0.1f;
        io->terms[i] = end && odd;
        io->truncs[i] = end && !odd;
        if (io->truncs[i])
            dot_write(s, io->final_obs, i, form);
        if (end) {
            logs[i].episodes += 1.0;
            s->steps = 0;
            s->at = (int64_t)rng_below(&s->rng, SIDE * SIDE);
        }
        dot_write(s, io->obs, i, form);
    }
}

#define DOT(FORM, KIND)                                                                                                \
    static void FORM##_observe(const void *settings, const void *states, float *obs, uint8_t *mask, size_t from,       \
                               size_t to)                                                                              \
    {                                                                                                                  \
        (void)settings, (void)mask;                                                                                    \
        for (size_t i = from; i < to; i++)                                                                             \
            dot_write((const struct dot_state *)states + i, obs, i, KIND);                                             \
    }                                                                                                                  \
    static void FORM##_step(const void *settings, void *states, struct env_log *logs, const struct env_io *io,         \
                            size_t from, size_t to)                                                                    \
    {                                                                                                                  \
        (void)settings;                                                                                                \
        dot_step(states, logs, io, from, to, KIND);                                                                    \
    }                                                                                                                  \
    static const struct env_def FORM##_def = {                                                                         \
        .api_version = ENV_API_VERSION,                                                                                \
        .name = #FORM,                                                                                                 \
        .about = &dot_about,                                                                                           \
        .options = {.section = "env", .title = "Dot", .settings_size = sizeof(struct dot_settings)},                   \
        .state_size = sizeof(struct dot_state),                                                                        \
        .shape = dot_shape,                                                                                            \
        .reset_range = dot_reset_range,                                                                                \
        .observe_range = FORM##_observe,                                                                               \
        .step_range = FORM##_step,                                                                                     \
    }
static const struct env_about dot_about = {"a dot on a grid", NULL, 0};
DOT(dot_bytes, BYTES);
DOT(dot_floats, FLOATS);
DOT(dot_mixed, MIXED);

static void dot_open(struct setup *s, enum form form)
{
    setup_open(s, form == FLOATS ? &dot_floats_def : form == BYTES ? &dot_bytes_def : &dot_mixed_def, 2);
}

static size_t planned(const struct trainer *t, const char *what)
{
    for (size_t i = 0; i < t->plan.n; i++)
        if (strcmp(t->plan.items[i].what, what) == 0)
            return t->plan.items[i].bytes;
    fail_msg("nothing is planned for %s", what);
    return 0;
}

TEST(a_quarter_of_the_memory)
{
    static const char *const what[] = {"rollout observations", "minibatch observations"};
    struct setup s[2];
    struct trainer *t[2];

    for (int bytes = 0; bytes < 2; bytes++) {
        dot_open(&s[bytes], bytes != 0 ? BYTES : FLOATS);
        t[bytes] = setup_trainer(&s[bytes]);
    }
    assert_int_equal(planned(t[1], what[0]), 9 * 12 * OBS); /* (T + 1) N numbers of one byte */
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(planned(t[0], what[i]), 4 * planned(t[1], what[i]));
    for (int bytes = 0; bytes < 2; bytes++) {
        trainer_destroy(t[bytes]);
        setup_close(&s[bytes]);
    }
    for (n_mixed = 1; n_mixed <= LIST; n_mixed++) { /* bytes, those left out up to a multiple of 4, then f32 */
        SETUP mixed;
        dot_open(&mixed, MIXED);
        TRAINER *of = setup_trainer(&mixed);
        assert_int_equal(planned(of, what[0]),
                         9 * 12 * ((size_t)(n_mixed == LIST ? GRID : GRID + 4) + 4 * (size_t)n_mixed));
    }
    n_mixed = LIST;
}

/* Encoder, list, frames and core in turn. */
static void variant_of(struct setup *s, int variant)
{
    s->policy.encoder = variant % 2 == 0 ? POLICY_ENCODER_LINEAR : POLICY_ENCODER_CONV;
    s->policy.conv_channels = 8;
    s->policy.frame_stack = variant >= 2 ? 3 : 1;
    s->policy.core = variant >= 4 ? POLICY_CORE_MINGRU : POLICY_CORE_MLP;
}

static void check_same(enum form form, int variant, double e3b_coef, bool norm_obs)
{
    const enum form forms[2] = {FLOATS, form};
    struct setup s[2];
    struct trainer *t[2];

    for (int i = 0; i < 2; i++) {
        dot_open(&s[i], forms[i]);
        variant_of(&s[i], variant);
        s[i].train.e3b_coef = e3b_coef;
        s[i].policy.norm_obs = norm_obs;
        t[i] = setup_trainer(&s[i]);
        iterate(t[i], 4);
    }
    assert_same_weights(t[0], t[1]);
    for (int i = 0; i < 2; i++) {
        trainer_destroy(t[i]);
        setup_close(&s[i]);
    }
}

TEST(bytes_train_as_floats_do)
{
    for (int list = 0; list < 2; list++)
        for (int variant = 0; variant < 6; variant++) {
            with_list = list != 0;
            check_same(BYTES, variant, variant % 3 == 0 ? 0.1 : 0.0, false);
            if (with_list)
                check_same(MIXED, variant, variant % 3 == 0 ? 0.1 : 0.0, false);
        }
    for (n_mixed = 1; n_mixed < LIST; n_mixed++) /* bytes beside the grid too */
        for (int variant = 0; variant < 2; variant++)
            check_same(MIXED, variant, 0.1, false);
    n_mixed = LIST;
}

/* For a device that has no rows of both: the batch gives floats, by parts too, and of truncated episodes the last
 * ones. */
TEST(a_batch_widens)
{
    static const struct env_def *const defs[2] = {&dot_mixed_def, &dot_floats_def};
    struct dot_settings settings = {0};
    struct env_batch *batch[2];
    float obs[2][6 * OBS], final_obs[2][6 * OBS], rewards[6];
    uint8_t terms[6], truncs[6];
    int32_t actions[6];

    for (n_mixed = 2; n_mixed <= LIST; n_mixed++) {
        for (int i = 0; i < 2; i++) {
            OK(env_batch_create(&batch[i], defs[i], &settings, 6, rng_seed(3), err));
            if (i == 0)
                OK(env_batch_widen(batch[i], err));
            env_batch_reset(batch[i], NULL, obs[i], NULL);
        }
        assert_memory_equal(obs[0], obs[1], sizeof obs[0]);
        for (int t = 0; t < 7; t++) {
            for (int i = 0; i < 2; i++) {
                const struct env_io io = {.actions = actions,
                                          .rewards = rewards,
                                          .terms = terms,
                                          .truncs = truncs,
                                          .obs = obs[i],
                                          .final_obs = final_obs[i]};
                for (int a = 0; a < 6; a++)
                    actions[a] = (a + t) % 3;
                env_batch_end_part(batch[i], NULL, &io, 0, 4);
                env_batch_end_part(batch[i], NULL, &io, 4, 6);
                for (int a = 0; a < 6; a++) /* of others nothing is promised */
                    memset(final_obs[i] + a * OBS, 0, truncs[a] ? 0 : OBS * sizeof(float));
            }
            assert_memory_equal(obs[0], obs[1], sizeof obs[0]);
            assert_memory_equal(final_obs[0], final_obs[1], sizeof final_obs[0]);
            env_batch_observe(batch[0], NULL, obs[0], NULL);
            assert_memory_equal(obs[0], obs[1], sizeof obs[0]);
        }
        for (int i = 0; i < 2; i++)
            env_batch_destroy(batch[i]);
    }
    n_mixed = LIST;
}

/* What is not a byte is normalised as where nothing is: against a grid of zeros, which stay 0. Bytes are not touched. */
TEST(the_floats_are_normalised)
{
    SETUP s;
    const uint8_t *obs;

    dark = true;
    for (int variant = 0; variant < 6; variant++)
        check_same(MIXED, variant, 0.0, true);
    dark = false;
    dot_open(&s, MIXED);
    s.policy.norm_obs = true;
    TRAINER *t = setup_trainer(&s);
    iterate(t, 3);
    OK(rollout_run(t, err));
    obs = t->roll.obs;
    for (size_t row = 0; row < 9 * 12; row++, obs += GRID + 4 * LIST) {
        float last = ((const float *)(const void *)(obs + GRID))[LIST - 1]; /* always 33: its mean */
        int dots = 0;
        for (int cell = 0; cell < SIDE * SIDE; cell++)
            dots += obs[2 * cell] == 50;
        assert_int_equal(dots, 1);
        assert_true(fabsf(last) < 1e-3f);
    }
}

/* What is learned beside a grid comes through the list's own weights. */
TEST(the_list_is_read)
{
    SETUP s;
    size_t at = SIZE_MAX, n, moved = 0;

    dot_open(&s, BYTES);
    variant_of(&s, 1);
    TRAINER *t = setup_trainer(&s);
    for (size_t i = 0; i < t->policy.n_tensors; i++)
        if (strcmp(t->policy.names[i], "encoder.list") == 0)
            at = i;
    assert_true(at != SIZE_MAX);
    n = t->policy.tensors[at].rows * t->policy.tensors[at].cols;
    assert_int_equal(n, 16 * LIST);
    float *before = params_copy(t);
    iterate(t, 2);
    float *after = params_copy(t);
    for (size_t i = 0; i < n; i++)
        moved += before[t->policy.tensors[at].offset + i] != after[t->policy.tensors[at].offset + i];
    assert_true(moved > n / 2);
    free(before), free(after);
}

/* ---- frames ---- */

/* Frames of a slot hold the steps t - 2, t - 1, t of the episode, its first one repeated. */
static void check_frames(const uint8_t *obs, size_t i, int newest)
{
    const uint8_t *list = obs + i * 3 * OBS + 3 * GRID;

    for (int f = 0; f < 3; f++) {
        int steps = newest - 2 + f;
        if (list[f * LIST] != (steps > 0 ? steps : 0) || list[f * LIST + 1] != i % 7)
            fail_msg("agent %zu, frame %d shows step %d, the newest %d", i, f, list[f * LIST], newest);
    }
}

TEST(stacks_of_a_rollout)
{
    SETUP s;

    dot_open(&s, BYTES);
    s.policy.frame_stack = 3;
    s.train.horizon = 9; /* even instances are truncated by its last step */
    s.train.minibatch_size = 36;
    s.train.total_timesteps = 9 * 12 * 10;
    TRAINER *t = setup_trainer(&s);
    OK(rollout_run(t, err));
    const uint8_t *obs = t->roll.obs, *final_obs = t->roll.final_obs;
    for (size_t slot = 0; slot <= 9; slot++)
        for (size_t i = 0; i < 12; i++)
            check_frames(obs + slot * 12 * 3 * OBS, i, (int)(slot % (i % 2 == 1 ? 5 : 3)));
    for (size_t i = 0; i < 12; i += 2)
        check_frames(final_obs, i, 3);
}

TEST(a_run_of_frames_resumes)
{
    TEMP_FILE(path);

    for (int bytes = 0; bytes < 2; bytes++) {
        SETUP s;
        dot_open(&s, bytes != 0 ? MIXED : FLOATS);
        variant_of(&s, 3);
        TRAINER *a = setup_trainer(&s);
        struct trainer *b = setup_trainer(&s);
        iterate(a, 3);
        OK(trainer_save(a, path, "", err));
        iterate(a, 2);
        OK(trainer_load(b, path, err));
        iterate(b, 2);
        assert_same_weights(a, b);
        trainer_destroy(b);
        s.policy.frame_stack = 2;
        TRAINER *other = setup_trainer(&s);
        FAILS(trainer_load(other, path, err), ST_CONFIG, "env.frame_stack");
    }
}

/* A cue that was shown four steps before the answer: five frames still hold it, three do not. */
TEST(frames_are_a_memory)
{
    for (int64_t frames = 3; frames <= 5; frames += 2) {
        struct eval_settings eval = {.episodes = 256, .max_steps = 1000, .greedy = false};
        struct train_result result;
        struct eval_result score;
        SETUP s;

        setup_game(&s, "memory", 2);
        s.policy.frame_stack = frames;
        s.policy.num_layers = 1;
        s.train.total_agents = 64;
        s.train.horizon = 10;
        s.train.minibatch_size = 320;
        s.train.total_timesteps = 64000;
        s.train.learning_rate = 0.02;
        TRAINER *t = setup_trainer(&s);
        OK(trainer_run(t, NULL, &result, err));
        OK(trainer_eval(t, &eval, &score, err));
        printf("# %d frames: perf %.3f\n", (int)frames, score.perf);
        assert_true(frames == 5 ? score.perf > 0.95 : score.perf < 0.65);
    }
}

TEST(refused)
{
    SETUP s;

    dot_open(&s, BYTES);
    s.policy.norm_obs = true;
    FAILS(trainer_check(s.def, s.env, &s.policy, &s.train, err), ST_CONFIG, "shows nothing but bytes");
    s.policy.norm_obs = false;
    s.policy.frame_stack = 65;
    FAILS(trainer_check(s.def, s.env, &s.policy, &s.train, err), ST_CONFIG, "env.frame_stack is 65");
}

TEST_PROGRAM("bytes")
