/* test_player.c - what is watched is the policy that was evaluated: a player's first episodes are those of an
 * evaluation with the same checkpoint and seed, and the same seed is the same game. */
#include "trainer_test.h"

enum { EPISODES = 5, STEPS_MAX = 200000 };

static const char *const games[] = {"cartpole", "squared", "memory", "pong", "breakout"};

static struct player *open_player(struct setup *s, const char *checkpoint, int64_t seed, bool greedy)
{
    struct player *p = NULL;
    OK(player_create(&p, s->kern, s->def, s->env, &s->policy, &s->train, checkpoint, seed, greedy, err));
    return p;
}

/* Means over the player's first episodes, as an evaluation gives them. */
static struct eval_result watch(struct player *p)
{
    struct eval_result r = {0};
    struct player_frame f;
    double steps = 0;

    for (int64_t i = 0; i < STEPS_MAX && r.episodes < EPISODES; i++) {
        OK(player_step(p, &f, err));
        steps++;
        assert_true(f.step == i + 1);
        if (!f.ended)
            continue;
        assert_true(f.ep_length == steps);
        steps = 0;
        r.episodes++;
        r.score += f.score / EPISODES;
        r.perf += f.perf / EPISODES;
        r.ep_return += f.ep_return / EPISODES;
        r.ep_length += f.ep_length / EPISODES;
    }
    return r;
}

static void assert_near(const char *game, const char *what, double a, double b)
{
    if (!(fabs(a - b) <= 1e-5 * fmax(1.0, fabs(b))))
        fail_msg("%s: the player's %s is %.9g, the evaluation's %.9g", game, what, a, b);
}

static void check_game(const char *name, bool greedy)
{
    struct eval_settings e = {.episodes = EPISODES, .agents = 1, .seed = 11, .max_steps = STEPS_MAX, .greedy = greedy};
    struct eval_result want, seen;
    SETUP s;
    TEMP_FILE(path);

    setup_game(&s, name, 1);
    struct trainer *t = setup_trainer(&s);
    iterate(t, 6);
    OK(trainer_save(t, path, "", err));
    OK(trainer_eval(t, &e, &want, err));
    trainer_destroy(t);
    if (want.episodes != EPISODES || want.unfinished > 0) /* a beginner's game that does not end shows nothing */
        fail_msg("%s: %lld episodes in %d steps", name, (long long)want.episodes, STEPS_MAX);
    struct player *p = open_player(&s, path, e.seed, greedy);
    seen = watch(p);
    player_destroy(p);
    assert_true(seen.episodes == EPISODES);
    assert_near(name, "score", seen.score, want.score);
    assert_near(name, "perf", seen.perf, want.perf);
    assert_near(name, "return", seen.ep_return, want.ep_return);
    assert_near(name, "length", seen.ep_length, want.ep_length);
}

TEST(plays_what_was_evaluated)
{
    for (size_t i = 0; i < COUNT(games); i++)
        check_game(games[i], false);
    check_game("cartpole", true);
    check_game("pong", true);
}

TEST(seed_is_the_game)
{
    SETUP s;
    struct player *p[3];
    struct player_frame f[3];
    TEMP_FILE(path);
    bool differs = false;

    setup_game(&s, "breakout", 1);
    struct trainer *t = setup_trainer(&s);
    OK(trainer_save(t, path, "", err));
    trainer_destroy(t);
    for (int k = 0; k < 3; k++)
        p[k] = open_player(&s, path, k < 2 ? 4 : 5, false);
    for (int i = 0; i < 300; i++) {
        for (int k = 0; k < 3; k++)
            OK(player_step(p[k], &f[k], err));
        assert_memory_equal(player_state(p[0]), player_state(p[1]), s.def->state_size);
        differs = differs || memcmp(player_state(p[0]), player_state(p[2]), s.def->state_size) != 0;
    }
    assert_true(differs);
    for (int k = 0; k < 3; k++)
        player_destroy(p[k]);
}

TEST(refuses)
{
    SETUP s;
    struct player *p = NULL;
    struct error why = {0};
    TEMP_FILE(path); /* empty: no checkpoint */

    setup_game(&s, "cartpole", 1);
    assert_int_not_equal(player_create(&p, s.kern, s.def, s.env, &s.policy, &s.train, path, 1, true, &why), ST_OK);
    assert_null(p);
    assert_non_null(strstr(why.text, path));
    struct trainer *t = setup_trainer(&s);
    OK(trainer_save(t, path, "", err));
    trainer_destroy(t);
    s.policy.hidden_size *= 2; /* weights of another size */
    assert_int_not_equal(player_create(&p, s.kern, s.def, s.env, &s.policy, &s.train, path, 1, true, NULL), ST_OK);
    assert_null(p);
}

TEST_PROGRAM("player")
