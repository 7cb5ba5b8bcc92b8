/* test_small.c - rules of squared and memory. */
#include "envs_test.h"

#include "envs/games/memory.h"
#include "envs/games/squared.h"

/* -- squared -- */
ONE_GAME(walk, squared)

static void walk_open(struct walk *w, int64_t n, uint64_t seed)
{
    *w = (struct walk){.settings.n = n, .s.rng = rng_seed(seed)};
    squared_reset(&w->settings, &w->s);
}

TEST(squared_observation)
{
    for (int64_t n = 1; n <= SQUARED_N_MAX; n += 3) {
        for (uint64_t seed = 0; seed < 50; seed++) {
            struct walk w;
            walk_open(&w, n, seed);
            struct env_shape shape = {0};
            squared_shape(&w.settings, &shape);
            int side = 2 * (int)n + 1;
            assert_int_equal(shape.obs_size, side * side);
            float obs[(2 * SQUARED_N_MAX + 1) * (2 * SQUARED_N_MAX + 1)];
            squared_observe(&w.settings, &w.s, 0, obs);
            int agents = 0, targets = 0;
            for (int i = 0; i < side * side; i++) {
                int row = i / side, col = i % side;
                if (obs[i] == 1.0f) {
                    agents++;
                    assert_true(row == n && col == n);
                } else if (obs[i] == -1.0f) {
                    targets++;
                    assert_true(row == 0 || col == 0 || row == side - 1 || col == side - 1);
                } else {
                    assert_true(obs[i] == 0.0f);
                }
            }
            assert_true(agents == 1 && targets == 1);
        }
    }
}

/* Every border cell is a target, about equally often. */
TEST(squared_targets)
{
    int count[11][11] = {{0}};
    struct walk w;
    walk_open(&w, 5, 3);
    for (int i = 0; i < 40000; i++) {
        squared_reset(&w.settings, &w.s);
        count[w.s.target_row][w.s.target_col]++;
    }
    for (int r = 0; r < 11; r++)
        for (int c = 0; c < 11; c++) {
            bool border = r == 0 || c == 0 || r == 10 || c == 10;
            assert_true(border ? count[r][c] > 800 && count[r][c] < 1200 : count[r][c] == 0);
        }
}

TEST(squared_actions_and_edges)
{
    static const int move[5][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
    for (int32_t action = 0; action < 5; action++) {
        struct walk w;
        walk_open(&w, 5, 1);
        w.s.target_row = 0; /* out of the way of straight lines */
        w.s.target_col = 0;
        for (int i = 1; i <= 15; i++) {
            walk_turn(&w, action);
            assert_int_equal(w.s.row, 5 + i * move[action][0]);
            assert_int_equal(w.s.col, 5 + i * move[action][1]);
            bool ends = action == 0 ? i == 15 : i == 6; /* 3n steps, or one step beyond the border */
            assert_int_equal(w.step.ended, ends);
            assert_false(w.step.truncated);
            assert_true(w.reward == (ends ? -1.0f : 0.0f));
            if (ends) {
                assert_true(w.step.perf == 0.0f && w.step.score == -1.0f);
                break;
            }
        }
    }
}

TEST(squared_target)
{
    struct walk w;
    walk_open(&w, 5, 1);
    w.s.target_row = 3;
    w.s.target_col = 10;
    for (int i = 0; i < 8; i++) { /* 8 idle steps, then 7 to the target: the 15th = 3n-th step still counts */
        walk_turn(&w, 0);
        assert_false(w.step.ended);
    }
    for (int i = 0; i < 7; i++) {
        assert_false(w.step.ended);
        walk_turn(&w, i < 2 ? 1 : 4);
    }
    assert_true(w.step.ended && !w.step.truncated);
    assert_true(w.reward == 1.0f && w.step.perf == 1.0f);
}

/* A policy that walks to the target always wins: perf is the success rate. */
TEST(squared_success_rate)
{
    const struct env_def *def = env_find("squared");
    MEM_LOCAL void *settings = test_settings(def);
    TEST_BATCH t;
    test_batch_open(&t, def, settings, 21, 5);
    env_batch_reset(t.batch, NULL, t.obs, NULL);
    for (int step = 0; step < 500; step++) {
        for (int i = 0; i < 21; i++) {
            const struct squared_state *s = test_batch_state(&t, (size_t)i);
            t.actions[i] = s->row > s->target_row ? 1 : s->row < s->target_row ? 2 : s->col > s->target_col ? 3 : 4;
        }
        env_batch_step(t.batch, NULL, &t.io);
    }
    struct env_log log;
    env_batch_take_log(t.batch, &log);
    assert_true(log.episodes > 1000.0 && log.perf == log.episodes && log.ep_return == log.episodes);
    assert_true(log.ep_length / log.episodes <= 10.0);
}

/* -- memory -- */
TEST(memory_rules)
{
    int cues = 0;
    for (int64_t length = 1; length <= 20; length++) {
        for (uint64_t seed = 0; seed < 40; seed++) {
            struct memory_settings settings = {.length = length};
            struct memory_state state = {.rng = rng_seed(seed)};
            struct rng rng = rng_seed(seed + 100);
            float reward, obs;
            struct env_step step = {.rewards = &reward};
            memory_reset(&settings, &state);
            memory_observe(&settings, &state, 0, &obs);
            assert_true(obs == 1.0f || obs == -1.0f);
            cues += obs == 1.0f;
            float cue = obs;
            int32_t answer = (int32_t)(seed % 2);
            for (int64_t i = 0; i <= length; i++) { /* one decision at the cue, `length` at zeros */
                int32_t action = i == length ? answer : (int32_t)rng_below(&rng, 2);
                assert_false(step.ended);
                memory_step(&settings, &state, &action, &step);
                memory_observe(&settings, &state, 0, &obs);
                assert_true(obs == 0.0f);
                if (i < length)
                    assert_true(reward == 0.0f);
            }
            assert_true(step.ended && !step.truncated);
            bool right = answer == (cue == 1.0f);
            assert_true(reward == (right ? 1.0f : 0.0f) && step.perf == reward && step.score == reward);
        }
    }
    assert_true(cues > 300 && cues < 500);
}

/* Remembering the cue always wins; answering without it wins half. */
TEST(memory_success_rate)
{
    const struct env_def *def = env_find("memory");
    MEM_LOCAL void *settings = test_settings(def);
    for (int remembers = 0; remembers < 2; remembers++) {
        TEST_BATCH t;
        int32_t kept[33] = {0};
        test_batch_open(&t, def, settings, 33, 5);
        env_batch_reset(t.batch, NULL, t.obs, NULL);
        for (int step = 0; step < 1000; step++) {
            for (int i = 0; i < 33; i++) {
                if (remembers && t.obs[i] != 0.0f)
                    kept[i] = t.obs[i] == 1.0f;
                t.actions[i] = kept[i];
            }
            env_batch_step(t.batch, NULL, &t.io);
        }
        struct env_log log;
        env_batch_take_log(t.batch, &log);
        double rate = log.perf / log.episodes;
        assert_true(log.episodes == 33.0 * 200.0);
        assert_true(remembers ? rate == 1.0 : rate > 0.46 && rate < 0.54);
    }
}

TEST_PROGRAM("squared and memory")
