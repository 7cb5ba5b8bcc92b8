/* test_continuous.c - training of actions that are numbers: what stays fixed, what is saved, and that it learns. */
#include "tests/plain_game.h"
#include "tests/trainer/trainer_test.h"

static void pendulum_open(struct setup *s, size_t n_threads)
{
    setup_open(s, env_find("pendulum"), n_threads);
    s->policy.hidden_size = 32;
    s->policy.num_layers = 1;
    s->policy.activation = KERN_ACT_TANH;
    s->train.total_agents = 32;
    s->train.horizon = 64;
    s->train.minibatch_size = 512;
    s->train.total_timesteps = 32 * 64 * 8;
    s->train.optimizer = TRAIN_ADAM;
    s->train.learning_rate = 0.003;
}

/* Weights and bias of the log-deviation: the row before the value's. */
static const float *std_row(const struct trainer *t, float *ret_bias)
{
    const struct policy *p = &t->policy;
    *ret_bias = t->params[p->tensors[p->n_tensors - 1].offset + 1];
    return t->params + p->tensors[p->n_tensors - 2].offset + p->width;
}

/* std = fixed is one learned number; state depends on the observation; both start at action_std_init, and the first
 * minibatch has ratios of 1 and the entropy of that deviation. */
TEST(deviations_are_learned)
{
    for (int std = POLICY_STD_FIXED; std <= POLICY_STD_STATE; std++)
        for (int optimizer = 0; optimizer < 2; optimizer++) {
            SETUP s;
            struct train_metrics m;
            float bias, sum = 0.0f;

            pendulum_open(&s, 2);
            s.policy.action_std = std;
            s.policy.action_std_init = 0.5;
            s.train.optimizer = optimizer == 0 ? TRAIN_ADAM : TRAIN_MUON;
            s.train.replay_ratio = 0.25; /* one minibatch for each rollout */
            TRAINER *t = setup_trainer(&s);
            const float *row = std_row(t, &bias);
            assert_float_equal(bias, log(0.5), 1e-6);
            OK(trainer_iterate(t, err));
            OK(trainer_sync(t, err));
            trainer_get_metrics(t, &m);
            assert_float_equal(m.approx_kl, 0.0, 1e-6);
            assert_float_equal(m.entropy, 0.5 * log(2 * M_PI * M_E) + log(0.5), std == POLICY_STD_FIXED ? 1e-6 : 0.05);
            for (int i = 0; i < 5; i++)
                OK(trainer_iterate(t, err));
            OK(trainer_sync(t, err));
            row = std_row(t, &bias);
            assert_true(bias != logf(0.5f));
            for (size_t i = 0; i < t->policy.width; i++)
                sum += fabsf(row[i]);
            assert_true(std == POLICY_STD_FIXED ? sum == 0.0f : sum > 1e-3f);
        }
}

/* Normalised or not: a run that is saved and loaded half-way ends with the same bytes, and its weights alone play as
 * they do in it. A checkpoint of other bounds or deviations is refused with the option's name. */
static void check_resume(bool norm)
{
    SETUP s;
    struct eval_settings eval = {.episodes = 16, .max_steps = 400, .greedy = true};
    struct eval_result score, again;
    TEMP_FILE(path);

    pendulum_open(&s, 2);
    s.policy.action_bounds = POLICY_BOUNDS_TANH;
    s.policy.norm_obs = s.train.scale_reward = norm;
    TRAINER *whole = setup_trainer(&s), *first = setup_trainer(&s), *second = setup_trainer(&s);
    iterate(whole, 6);
    iterate(first, 3);
    OK(trainer_save(first, path, "", err));
    OK(trainer_load(second, path, err));
    iterate(second, 3);
    assert_same_weights(whole, second);
    OK(trainer_eval(first, &eval, &score, err));
    s.train.total_agents = 8;
    s.train.horizon = 16;
    s.train.minibatch_size = 64;
    TRAINER *smaller = setup_trainer(&s);
    OK(trainer_load_weights(smaller, path, err));
    OK(trainer_eval(smaller, &eval, &again, err));
    assert_true(score.score == again.score);
    s.train.total_agents = 32;
    s.policy.action_bounds = POLICY_BOUNDS_CLIP;
    TRAINER *other = setup_trainer(&s);
    FAILS(trainer_load(other, path, err), ST_CONFIG, "--policy.action_bounds tanh");
}

TEST(a_run_resumes)
{
    check_resume(false);
    check_resume(true);
}

/* After a few rollouts observations have a mean near 0 and a deviation near 1, and so have discounted rewards by their
 * scale; the game's own numbers have not. */
TEST(observations_and_rewards_are_normalised)
{
    SETUP s;
    const float *obs;

    pendulum_open(&s, 2);
    s.train.learning_rate = 0.0; /* the same policy throughout */
    for (int norm = 0; norm < 2; norm++) {
        double squares = 0.0, rewards = 0.0;
        s.policy.norm_obs = s.train.scale_reward = norm == 1;
        struct trainer *t = setup_trainer(&s);
        for (int i = 0; i < 8; i++)
            OK(trainer_iterate(t, err));
        size_t n = t->n_agents * t->horizon;
        obs = t->roll.obs;
        for (size_t i = 0; i < n; i++) {
            squares += (double)(obs[3 * i + 2] * obs[3 * i + 2]) / (double)n;
            rewards -= (double)t->roll.rewards[i] / (double)n;
        }
        if (norm == 0)
            assert_true(squares > 3.0 && rewards > 3.0);
        else
            assert_true(squares > 0.5 && squares < 2.0 && rewards > 0.01 && rewards < 1.0);
        trainer_destroy(t);
    }
}

/* Random play pays about -1200, a good controller -150. */
static double trained_score(int std, int bounds, bool norm)
{
    AT_END(setup_close) struct setup s = {0};
    struct train_result result;
    struct eval_settings eval = {.episodes = 128, .max_steps = 400, .greedy = true};
    struct eval_result score;

    pendulum_open(&s, 2);
    s.policy.hidden_size = 64;
    s.policy.action_std = std;
    s.policy.action_bounds = bounds;
    s.policy.norm_obs = s.train.scale_reward = norm;
    s.train.total_agents = 64;
    s.train.horizon = 128;
    s.train.minibatch_size = 1024;
    s.train.total_timesteps = UNDER_TSAN ? 64 * 128 : 600000; /* there its threads pass every layer, and no more */
    s.train.optimizer = TRAIN_MUON;
    s.train.learning_rate = 0.01;
    s.train.gamma = 0.95;
    s.train.gae_lambda = 0.9;
    s.train.ent_coef = 0.0;
    s.train.replay_ratio = 8;
    s.train.vf_coef = norm ? 0.5 : 0.1;
    s.train.max_grad_norm = 0.5;
    struct trainer *t = setup_trainer(&s);
    OK(trainer_run(t, NULL, &result, err));
    OK(trainer_eval(t, &eval, &score, err));
    trainer_destroy(t);
    return score.score;
}

TEST(pendulum_is_learned)
{
    for (int bounds = POLICY_BOUNDS_CLIP; bounds <= POLICY_BOUNDS_TANH; bounds++) {
        double score = trained_score(bounds == POLICY_BOUNDS_CLIP ? POLICY_STD_FIXED : POLICY_STD_STATE, bounds,
                                     bounds == POLICY_BOUNDS_TANH);
        printf("# score %.0f\n", score);
        assert_true(score > (UNDER_TSAN ? -2000.0 : -250.0)); /* -2000: below any policy */
    }
}

/* ---- a choice and two numbers in one action ---- */

/* One decision: a cue of -1 or 1, to be answered by choice 0 or 1, by 1 + cue (of -1 to 3) and by -10 cue (of -20 to
 * 20). The numbers are off by 1 and 10, their widths / 4, when the cue is not looked at. */
struct aim_settings {
    int64_t unused;
};
struct aim_state {
    struct rng rng;
    float cue;
};

ENV_FN void aim_shape(const struct aim_settings *settings, struct env_shape *ret_shape)
{
    (void)settings;
    *ret_shape = (struct env_shape){.obs_size = 1,
                                    .n_agents = 1,
                                    .n_heads = 3,
                                    .head_sizes = {0, 2, 0},
                                    .low = {-1.0f, 0.0f, -20.0f},
                                    .high = {3.0f, 0.0f, 20.0f}};
}

ENV_FN void aim_reset(const struct aim_settings *settings, struct aim_state *state)
{
    (void)settings;
    state->cue = rng_below(&state->rng, 2) == 0 ? -1.0f : 1.0f;
}

ENV_FN void aim_step(const struct aim_settings *settings, struct aim_state *state, const int32_t *actions,
                     struct env_step *step)
{
    float off = fabsf(step->reals[0] - (1.0f + state->cue)) / 4.0f;

    (void)settings;
    off += fabsf(step->reals[2] + 10.0f * state->cue) / 40.0f;
    off += actions[1] == (state->cue > 0.0f) ? 0.0f : 1.0f;
    step->rewards[0] = -off;
    step->ended = true;
    step->score = -off;
    step->perf = off < 1.0f ? 1.0f - off : 0.0f;
}

ENV_OBS_FN void aim_observe(const struct aim_settings *settings, const struct aim_state *state, int agent, env_obs *obs)
{
    (void)settings;
    (void)agent;
    obs[0] = state->cue;
}

#define ENV_GAME aim
#define ENV_GAME_PLAIN
#include "envs/env_loop.h"
PLAIN_GAME(aim, "answers a cue by a choice and two numbers", offsetof(struct aim_instance, track));

TEST(choices_and_numbers_are_learned_together)
{
    for (int bounds = POLICY_BOUNDS_CLIP; bounds <= POLICY_BOUNDS_TANH; bounds++) {
        struct eval_settings eval = {.episodes = 128, .max_steps = 100, .greedy = true};
        struct train_result result;
        struct eval_result score;
        SETUP s;

        setup_open(&s, &aim_def, 2);
        s.policy.action_bounds = bounds;
        s.train.total_agents = 64;
        s.train.horizon = 8;
        s.train.minibatch_size = 256;
        s.train.total_timesteps = 60000;
        s.train.learning_rate = 0.01;
        s.train.replay_ratio = 4;
        TRAINER *t = setup_trainer(&s);
        OK(trainer_eval(t, &eval, &score, err));
        assert_true(score.perf < 0.6); /* nothing is known of the cue */
        OK(trainer_run(t, NULL, &result, err));
        OK(trainer_eval(t, &eval, &score, err));
        printf("# perf %.3f\n", score.perf);
        assert_true(score.perf > 0.95);
    }
}

TEST_PROGRAM("continuous")
