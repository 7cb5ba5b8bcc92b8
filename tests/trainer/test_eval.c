/* test_eval.c - the evaluation against a slow count of its own, on a game whose episodes are known beforehand; what it
 * leaves alone; the window that a run's other metrics are taken over. */
#include "tests/plain_game.h"
#include "trainer_test.h"

/* ---- a game made for this: an episode lasts 1 or 40 steps, whatever is done; its score is its length less 3 ---- */

struct lots_settings {
    int64_t unused;
};
struct lots_state {
    struct rng rng;
    int64_t length, steps;
};

static int64_t draw_length(struct rng *rng)
{
    return rng_u32(rng) % 2 == 0 ? 1 : 40;
}

ENV_FN void lots_shape(const struct lots_settings *settings, struct env_shape *shape)
{
    (void)settings;
    *shape = (struct env_shape){.obs_size = 1, .n_agents = 1, .n_heads = 1, .head_sizes = {2}};
}

ENV_FN void lots_reset(const struct lots_settings *settings, struct lots_state *s)
{
    (void)settings;
    s->length = draw_length(&s->rng);
    s->steps = 0;
}

ENV_FN void lots_step(const struct lots_settings *settings, struct lots_state *s, const int32_t *actions,
                      struct env_step *step)
{
    (void)settings;
    (void)actions;
    s->steps++;
    step->rewards[0] = 0.5f;
    step->ended = s->steps == s->length;
    step->score = (float)(s->steps - 3);
    step->perf = (float)s->steps / 40.0f;
}

ENV_OBS_FN void lots_observe(const struct lots_settings *settings, const struct lots_state *s, int agent, env_obs *obs)
{
    (void)settings;
    (void)agent;
    obs[0] = (float)s->steps / 40.0f;
}

#define ENV_GAME lots
#define ENV_GAME_PLAIN
#include "envs/env_loop.h"
PLAIN_GAME(lots, "short or long by lot", offsetof(struct lots_instance, track));

/* ---- a game of two agents that end alone: one lives for 2 decisions and scores 1, one for 50 and scores 9 ---- */

struct pair_settings {
    int64_t unused;
};
struct pair_state {
    struct rng rng;
    struct env_track tracks[2];
    int64_t steps[2];
};

ENV_FN void pair_shape(const struct pair_settings *settings, struct env_shape *shape)
{
    (void)settings;
    *shape = (struct env_shape){.obs_size = 1, .n_agents = 2, .n_heads = 1, .head_sizes = {2}, .agents_end = true};
}

ENV_FN void pair_respawn(const struct pair_settings *settings, struct pair_state *s, int agent)
{
    (void)settings;
    s->steps[agent] = 0;
}

ENV_FN void pair_reset(const struct pair_settings *settings, struct pair_state *s)
{
    for (int a = 0; a < 2; a++)
        pair_respawn(settings, s, a);
}

ENV_FN struct env_track *pair_track(struct pair_state *s, int agent)
{
    return &s->tracks[agent];
}

ENV_FN void pair_step(const struct pair_settings *settings, struct pair_state *s, const int32_t *actions,
                      struct env_step *step)
{
    (void)settings;
    (void)actions;
    for (int a = 0; a < 2; a++) {
        step->rewards[a] = 0.25f;
        step->terms[a] = ++s->steps[a] == (a == 0 ? 2 : 50);
        s->tracks[a].score = a == 0 ? 1.0f : 9.0f;
    }
}

ENV_OBS_FN void pair_observe(const struct pair_settings *settings, const struct pair_state *s, int agent, env_obs *obs)
{
    (void)settings;
    obs[0] = (float)s->steps[agent] / 50.0f;
}

#undef ENV_GAME
#define ENV_GAME pair
#define ENV_GAME_AGENTS_END
#define ENV_GAME_PLAIN
#include "envs/env_loop.h"
PLAIN_GAME(pair, "one lives long", 0);

/* ---- the slow count: every game by itself, episode by episode ---- */

struct count {
    double mean[4], se[4]; /* score, perf, return, length */
    int64_t episodes, unfinished, finished;
};

static struct count count_slowly(const struct trainer *t, int64_t seed, int n_games, int quota, int64_t max_steps)
{
    struct rng games = rng_split(rng_split(rng_split(t->root, STREAM_EVAL), (uint64_t)seed), STREAM_ENV);
    struct count c = {0};
    double(*value)[4] = calloc((size_t)n_games, sizeof *value);

    assert_non_null(value);
    for (int i = 0; i < n_games; i++) {
        struct rng rng = rng_split(games, (uint64_t)i);
        int64_t left = max_steps;
        int k = 0;
        for (; k < quota && left > 0; k++) {
            int64_t length = draw_length(&rng), played = length < left ? length : left;
            left -= played;
            value[i][0] += (double)(played - 3);
            value[i][1] += (double)((float)played / 40.0f);
            value[i][2] += 0.5 * (double)played;
            value[i][3] += (double)played;
            c.finished += played == length;
            c.unfinished += played < length;
        }
        c.episodes += k;
        for (int m = 0; m < 4; m++)
            c.mean[m] += (value[i][m] /= k) / n_games;
    }
    for (int m = 0; m < 4; m++) {
        for (int i = 0; i < n_games; i++)
            c.se[m] += pow(value[i][m] - c.mean[m], 2.0) / (n_games - 1) / n_games;
        c.se[m] = sqrt(c.se[m]);
    }
    free(value);
    return c;
}

struct watch {
    int n_asked, stop_at;
    struct eval_progress last;
};

static bool watch_progress(void *ctx, const struct eval_progress *p)
{
    struct watch *w = ctx;

    assert_true(p->steps > w->last.steps && p->finished >= w->last.finished && p->steps <= p->max_steps);
    w->last = *p;
    return ++w->n_asked != w->stop_at;
}

static void check_count(struct trainer *t, int n_games, int quota, int64_t max_steps)
{
    struct watch w = {0};
    struct eval_settings e = {.episodes = (int64_t)n_games * quota,
                              .agents = n_games,
                              .seed = 5,
                              .max_steps = max_steps,
                              .ctx = &w,
                              .on_progress = watch_progress};
    struct count want = count_slowly(t, e.seed, n_games, quota, max_steps);
    struct eval_result r;

    OK(trainer_eval(t, &e, &r, err));
    const double mean[4] = {r.score, r.perf, r.ep_return, r.ep_length};
    const double se[4] = {r.score_se, r.perf_se, r.ep_return_se, r.ep_length_se};
    for (int m = 0; m < 4; m++) {
        assert_float_equal(mean[m], want.mean[m], 1e-5 * fabs(want.mean[m]));
        assert_float_equal(se[m], want.se[m], 1e-5 * want.se[m]);
    }
    assert_int_equal(r.episodes, want.episodes);
    assert_int_equal(r.unfinished, want.unfinished);
    assert_int_equal(w.last.finished, want.finished);
    assert_int_equal(w.last.episodes, n_games * quota);
    assert_false(r.stopped);
}

TEST(counts)
{
    SETUP s;

    setup_open(&s, &lots_def, 2);
    TRAINER *t = setup_trainer(&s);
    check_count(t, 300, 1, 100000);
    check_count(t, 64, 7, 100000);
    check_count(t, 300, 1, 32); /* the long ones do not end */
    check_count(t, 50, 4, 96);
}

/* What training says favours the short: of the episodes that end, nearly all did at once. */
TEST(training_is_biased)
{
    struct eval_settings e;
    struct eval_result r;
    struct train_result trained;
    SETUP s;

    setup_open(&s, &lots_def, 1);
    s.train.total_timesteps = 96; /* 8 steps of each agent */
    TRAINER *t = setup_trainer(&s);
    OK(trainer_run(t, NULL, &trained, err));
    eval_settings_of(&s.train, &e);
    OK(trainer_eval(t, &e, &r, err));
    assert_true(trained.window.ep_length == 1.0);
    assert_int_equal(r.episodes, 256);
    assert_float_equal(r.ep_length, 20.5, 5.0);
    double se;
    assert_true(train_outcome(&trained, &r, "ep_length", &se) == r.ep_length && se == r.ep_length_se);
    assert_true(train_outcome(&trained, &r, "train/ep_length", &se) == 1.0 && isnan(se));
    assert_true(train_outcome(&trained, NULL, "ep_length", &se) == 1.0 && isnan(se));
    r.stopped = true;
    assert_true(train_outcome(&trained, &r, "ep_length", &se) == 1.0 && isnan(se));
    assert_true(isnan(train_outcome(&trained, &r, "no/such", &se)));
}

static void assert_same_result(struct eval_result a, struct eval_result b)
{
    a.eval_s = b.eval_s = 0.0;
    assert_memory_equal(&a, &b, sizeof a);
}

TEST(leaves_training_alone)
{
    static const int cores[] = {POLICY_CORE_MLP, POLICY_CORE_MINGRU, POLICY_CORE_LSTM};
    struct eval_settings e = {.episodes = 40, .agents = 10, .seed = 3, .max_steps = 100000};
    struct eval_result r, again;

    for (size_t i = 0; i < COUNT(cores); i++) {
        SETUP s;
        setup_game(&s, "cartpole", 2);
        s.policy.core = cores[i];
        TRAINER *t = setup_trainer(&s), *other = setup_trainer(&s);
        iterate(t, 1);
        iterate(other, 1);
        OK(trainer_eval(t, &e, &r, err));
        OK(trainer_eval(t, &e, &again, err));
        assert_int_equal(r.episodes, 40);
        assert_same_result(r, again);
        assert_true(r.score > 8.0 && r.score < 100.0 && r.perf_se > 0.0);
        iterate(t, 2);
        iterate(other, 2);
        assert_same_weights(t, other);
        OK(trainer_eval(other, &e, &again, err)); /* and with no evaluation before */
        OK(trainer_eval(t, &e, &r, err));
        assert_same_result(r, again);
    }
}

/* Of the first k lives of all, nearly all would be the short one's. */
TEST(lives_of_each_agent)
{
    struct eval_settings e = {.episodes = 60, .seed = 3, .max_steps = 1000};
    struct eval_result r;
    SETUP s;

    setup_open(&s, &pair_def, 1);
    TRAINER *t = setup_trainer(&s);
    OK(trainer_eval(t, &e, &r, err));
    assert_int_equal(r.episodes, 60);
    assert_float_equal(r.score, 5.0, 1e-6);
    assert_float_equal(r.ep_length, 26.0, 1e-6);
    assert_float_equal(r.ep_return, 6.5, 1e-6);
    e.agents = 14; /* seven games of 60 / 7 lives each, of each agent as many */
    OK(trainer_eval(t, &e, &r, err));
    assert_int_equal(r.episodes, 70);
    assert_float_equal(r.score, 5.0, 1e-6);
}

TEST(ends)
{
    struct watch w = {.stop_at = 2};
    struct eval_settings e = {.episodes = 40, .seed = 3, .max_steps = 1000, .ctx = &w, .on_progress = watch_progress};
    struct eval_result r;
    SETUP s;

    setup_open(&s, &lots_def, 1);
    TRAINER *t = setup_trainer(&s);
    OK(trainer_eval(t, &e, &r, err));
    assert_true(r.stopped && r.steps == 64 && w.n_asked == 2);
    e = (struct eval_settings){.episodes = 1, .max_steps = 3}; /* one game has a mean and no error */
    OK(trainer_eval(t, &e, &r, err));
    assert_true(r.episodes == 1 && isfinite(r.score) && isnan(r.score_se) && r.max_steps == 32);
    e.max_steps = INT64_MAX - 1; /* no multiple of the steps between two looks lies above */
    OK(trainer_eval(t, &e, &r, err));
    assert_true(r.episodes == 1 && r.unfinished == 0 && isfinite(r.score) && r.steps > 0);
    e.episodes = 0;
    assert_int_equal(trainer_eval(t, &e, &r, NULL), ST_USAGE);
}

/* ---- the window ---- */

static bool keep_going(void *ctx, const struct train_metrics *metrics)
{
    int *n = ctx;

    (void)metrics;
    (*n)++;
    return true;
}

/* The result of a run that reports every so often, and starts again from a checkpoint after n_first iterations (0: does
 * not). */
static struct train_result run_with(struct setup *s, double log_interval_s, int n_first, int *n_reports)
{
    struct train_callbacks callbacks = {.ctx = n_reports, .on_metrics = keep_going};
    struct train_result result;

    *n_reports = 0;
    s->train.log_interval_s = log_interval_s;
    struct trainer *t = setup_trainer(s);
    if (n_first > 0) {
        TEMP_FILE(path);
        iterate(t, n_first);
        OK(trainer_save(t, path, "", err));
        trainer_destroy(t);
        t = setup_trainer(s);
        OK(trainer_load(t, path, err));
    }
    OK(trainer_run(t, &callbacks, &result, err));
    trainer_destroy(t);
    return result;
}

/* No metric that may be searched by depends on when reports were made or whether the run was cut in two. */
TEST(window_is_of_the_run)
{
    SETUP s;
    int n[3];
    double se;

    setup_game(&s, "cartpole", 1);
    struct train_result a = run_with(&s, 1e6, 0, &n[0]), b = run_with(&s, 0.0, 0, &n[1]),
                        c = run_with(&s, 1e6, 17, &n[2]);
    assert_int_equal(n[1], 40);
    assert_in_range(n[0], 1, 26); /* a curve has about 24 points at least, if the run is long enough for them */
    assert_in_range(n[2], 1, 26);
    for (size_t i = 0; i < train_n_metric_defs; i++) {
        const struct train_metric_def *def = &train_metric_defs[i];
        double want = train_outcome(&a, NULL, def->name, &se);
        if (def->by_clock)
            continue;
        assert_true(isfinite(want));
        if (train_outcome(&b, NULL, def->name, &se) != want || train_outcome(&c, NULL, def->name, &se) != want)
            fail_msg("%s depends on the reports or on a resume", def->name);
    }
    assert_true(a.window.entropy > 0.0 && a.window.entropy < 0.7); /* of two actions at most ln 2 */
    assert_true(a.window.updates == 180);
}

TEST_PROGRAM("eval")
