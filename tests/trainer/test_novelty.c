/* test_novelty.c - train.e3b_coef: a reward that chance never finds is found, scores stay the game's own, runs
 * resume. */
#include "tests/plain_game.h"
#include "tests/trainer/trainer_test.h"

/* A corridor: steps left or right from its closed end, by an action that a sign at each cell names; the reward, 1, lies
 * at the other end, and each step towards it costs 0.01. A walk by chance, or always the same action, gets some 8 cells
 * far in an episode. */
enum { CORRIDOR_LENGTH = 40, CORRIDOR_STEPS = 80 };
struct corridor_settings {
    int64_t unused;
};
struct corridor_state {
    struct rng rng;
    int32_t at, steps;
};

ENV_FN void corridor_shape(const struct corridor_settings *settings, struct env_shape *ret_shape)
{
    (void)settings;
    *ret_shape = (struct env_shape){.obs_size = 2, .n_agents = 1, .n_heads = 1, .head_sizes = {2}};
}

ENV_FN int corridor_sign(const struct corridor_state *state)
{
    return state->at / 3 % 2;
}

ENV_FN void corridor_reset(const struct corridor_settings *settings, struct corridor_state *state)
{
    (void)settings;
    state->at = state->steps = 0;
}

ENV_FN void corridor_step(const struct corridor_settings *settings, struct corridor_state *state,
                          const int32_t *actions, struct env_step *step)
{
    bool right = actions[0] == corridor_sign(state);

    (void)settings;
    state->at += right ? 1 : state->at > 0 ? -1 : 0;
    state->steps++;
    step->rewards[0] = state->at == CORRIDOR_LENGTH ? 1.0f : right ? -0.01f : 0.0f;
    step->ended = state->at == CORRIDOR_LENGTH || state->steps == CORRIDOR_STEPS;
    step->score = step->perf = state->at == CORRIDOR_LENGTH ? 1.0f : 0.0f;
}

ENV_OBS_FN void corridor_observe(const struct corridor_settings *settings, const struct corridor_state *state,
                                 int agent, env_obs *obs)
{
    (void)settings;
    (void)agent;
    obs[0] = (float)state->at / 10.0f;
    obs[1] = corridor_sign(state) == 1 ? 0.5f : -0.5f;
}

#define ENV_GAME corridor
#define ENV_GAME_PLAIN
#include "envs/env_loop.h"
PLAIN_GAME(corridor, "a reward at the far end", offsetof(struct corridor_instance, track));

static void corridor_open(struct setup *s, double e3b_coef)
{
    setup_open(s, &corridor_def, 2);
    s->policy.hidden_size = 32;
    s->policy.num_layers = 1;
    s->train.total_agents = 32;
    s->train.horizon = 32;
    s->train.minibatch_size = 256;
    s->train.total_timesteps = UNDER_TSAN ? 32 * 32 * 2 : 150000; /* there its threads pass every layer, and no more */
    s->train.learning_rate = 0.01;
    s->train.replay_ratio = 2;
    s->train.e3b_coef = e3b_coef;
    s->train.e3b_scale = 0.3;
}

static struct eval_result trained(double e3b_coef, struct train_result *ret_result)
{
    struct eval_settings eval = {.episodes = 64, .max_steps = 1000};
    struct eval_result score;
    struct setup s;

    corridor_open(&s, e3b_coef);
    struct trainer *t = setup_trainer(&s);
    OK(trainer_run(t, NULL, ret_result, err));
    OK(trainer_eval(t, &eval, &score, err));
    trainer_destroy(t);
    setup_close(&s);
    printf("# e3b_coef %g: perf %.3f\n", e3b_coef, score.perf);
    return score;
}

/* With the bonus the far end is reached in nearly every episode, without it in none. The bonus is in no return: that
 * of the shortest way is 1 - 39 * 0.01. */
TEST(a_far_reward_is_found)
{
    struct train_result result;
    struct eval_result without = trained(0.0, &result), with = trained(0.1, &result);

    if (UNDER_TSAN)
        return;
    assert_true(without.perf == 0.0);
    assert_true(with.perf > 0.9);
    assert_true(with.ep_return > 0.3 && with.ep_return < 0.6101);
    assert_true(result.window.ep_return < 0.6101);
}

/* Saved and loaded half-way, within episodes: the same bytes, also into a trainer of another seed. */
TEST(a_run_resumes)
{
    SETUP s;
    TEMP_FILE(path);

    corridor_open(&s, 0.1);
    TRAINER *whole = setup_trainer(&s);
    iterate(whole, 1);
    OK(trainer_save(whole, path, "", err));
    iterate(whole, 2);
    s.train.seed += 1;
    TRAINER *half = setup_trainer(&s);
    OK(trainer_load(half, path, err));
    iterate(half, 2);
    assert_same_weights(whole, half);
}

TEST_PROGRAM("novelty")
