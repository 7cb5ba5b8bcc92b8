/* test_cost.c - runs that share a device: what the gate sees, what is counted, and that neither changes a byte. */
#include "trainer_test.h"

#define NAP_US 300
#define POINTS_MAX 8192

/* A gate that is always open, and counts the trials that come through. */
struct watch {
    struct trainer *t;
    bool inside, alone, wants_always;
    int n_alone, n_shared, n_wrong;
    double saves_s;
    struct train_gate gate;
    int64_t n_points;
    double wall_s[POINTS_MAX], iteration_s[POINTS_MAX]; /* of each report */
    bool shared[POINTS_MAX];
    const char *save_to;
};

static void watch_enter(void *ctx, bool alone)
{
    struct watch *w = ctx;

    w->n_wrong += w->inside || w->t->n_issued != w->t->n_collected;
    w->inside = true;
    w->alone = alone;
    *(alone ? &w->n_alone : &w->n_shared) += 1;
    usleep(NAP_US);
}

static void watch_leave(void *ctx)
{
    struct watch *w = ctx;

    w->n_wrong += !w->inside || (!w->t->failed && w->t->n_issued != w->t->n_collected);
    w->inside = false;
}

static bool watch_wanted(void *ctx)
{
    struct watch *w = ctx;
    return w->wants_always;
}

static bool watch_metrics(void *ctx, const struct train_metrics *m)
{
    struct watch *w = ctx;

    if (w->n_points < POINTS_MAX) {
        w->wall_s[w->n_points] = m->wall_s;
        w->iteration_s[w->n_points] = w->t->cost.iteration_s;
        w->shared[w->n_points++] = w->inside && !w->alone;
    }
    if (w->save_to != NULL) {
        double start_s = clock_mono_s();
        OK(trainer_save(w->t, w->save_to, "", err));
        w->saves_s += clock_mono_s() - start_s;
    }
    return true;
}

static struct train_callbacks watch_callbacks(struct watch *w, struct trainer *t)
{
    *w = (struct watch){.t = t, .wants_always = w->wants_always, .save_to = w->save_to};
    w->gate = (struct train_gate){.ctx = w, .enter = watch_enter, .leave = watch_leave, .wanted = watch_wanted};
    return (struct train_callbacks){.ctx = w, .gate = &w->gate, .on_metrics = watch_metrics};
}

static void setup_long(struct setup *s)
{
    setup_game(s, "squared", 1);
    s->train.total_timesteps = 96 * (UNDER_TSAN ? 300 : 1500);
    s->train.replay_ratio = 1.4; /* 4 or 5 minibatches */
    s->train.log_interval_s = 0.0; /* every iteration */
}

/* Queued: as on a device that is handed work ahead. */
static void run_watched(bool queued, bool wants_always)
{
    static struct watch w;
    struct train_result alone, watched;
    SETUP s;
    double first = 0.0;

    setup_long(&s);
    TRAINER *a = setup_trainer(&s), *b = setup_trainer(&s);
    a->direct = b->direct = !queued;
    OK(trainer_run(a, NULL, &alone, err));
    assert_false(alone.cost_calibrated);
    w.wants_always = wants_always;
    struct train_callbacks callbacks = watch_callbacks(&w, b);
    OK(trainer_run(b, &callbacks, &watched, err));
    assert_same_weights(a, b);
    assert_int_equal(alone.env_steps, watched.env_steps);
    assert_int_equal(alone.window.updates, watched.window.updates);
    assert_true(watched.cost_calibrated);
    assert_int_equal(w.n_wrong, 0);
    assert_false(w.inside);
    assert_true(w.n_alone >= 1 && w.n_shared >= 1);
    assert_true(wants_always || w.n_shared <= w.n_alone); /* no trial asked: it leaves only for its own windows */
    assert_true(!wants_always || w.n_shared > 10); /* what each of these costs is checked below, without a clock */
    for (int64_t i = 1; i < w.n_points; i++) { /* each iteration that is shared adds what the window says */
        assert_true(w.wall_s[i] >= w.wall_s[i - 1]);
        if (!w.shared[i] || !w.shared[i - 1] || w.iteration_s[i] != w.iteration_s[i - 1])
            continue;
        first = w.iteration_s[i];
        if (fabs(w.wall_s[i] - w.wall_s[i - 1] - first) > 1e-9)
            fail_msg("point %lld: %.9g s are counted for an iteration of %.9g s", (long long)i,
                     w.wall_s[i] - w.wall_s[i - 1], first);
    }
    assert_true(first > 0.0);
}

TEST(direct)
{
    run_watched(false, false);
}

TEST(queued)
{
    run_watched(true, false);
}

TEST(neighbours_always_want)
{
    run_watched(true, true);
}

/* A run that ends within its first window was alone all the time. */
TEST(too_short)
{
    static struct watch w;
    struct train_result r;
    SETUP s;

    setup_long(&s);
    s.train.total_timesteps = 96 * 3;
    TRAINER *t = setup_trainer(&s);
    struct train_callbacks callbacks = watch_callbacks(&w, t);
    OK(trainer_run(t, &callbacks, &r, err));
    assert_false(r.cost_calibrated);
    assert_int_equal(w.n_alone, 1);
    assert_int_equal(w.n_shared, 0);
    assert_false(w.inside);
}

/* Runs of one kind: the first one measures for all, also where it is done after they have come. A run of another kind
 * measures for itself. */
TEST(one_measures_for_all)
{
    static struct watch w;
    struct train_pace *pace = train_pace_create();
    struct train_result first, r;
    SETUP s;

    setup_long(&s);
    for (int i = 0; i < 3; i++) {
        s.train.seed = i;
        s.train.learning_rate = 0.01 * (i + 1);
        s.train.replay_ratio = i < 2 ? 1.4 : 0.7;
        TRAINER *t = setup_trainer(&s);
        struct train_callbacks callbacks = watch_callbacks(&w, t);
        w.gate.pace = pace;
        OK(trainer_run(t, &callbacks, i == 0 ? &first : &r, err));
        assert_int_equal(w.n_wrong, 0);
        if (i == 1) {
            assert_true(w.n_points > 0 && w.shared[0]); /* later it may be alone, for a window that nobody measured */
            assert_true(r.cost_calibrated);
            if (w.n_alone == 0 && t->cost.n_windows == 1 &&
                w.n_points < POINTS_MAX) /* else a later window counts otherwise */
                assert_true(fabs(r.cost_s - (double)w.n_points * w.iteration_s[0]) < 1e-6);
        } else {
            assert_true(w.n_alone >= 1);
        }
    }
    train_pace_destroy(pace);
}

/* A run that fails gives the gate back. */
TEST(failure_leaves)
{
    static struct watch w;
    struct error failure = {0};
    struct train_result r;
    SETUP s;

    setup_long(&s);
    TRAINER *t = setup_trainer(&s);
    struct train_callbacks callbacks = watch_callbacks(&w, t);
    t->set.gamma = NAN;
    assert_int_equal(trainer_run(t, &callbacks, &r, &failure), ST_NUMERIC);
    assert_false(w.inside);
}

/* What a save takes is not counted, and the file says what was. */
TEST(saves_are_free)
{
    static struct watch w;
    struct train_result r;
    SETUP s;
    TEMP_FILE(path);

    setup_long(&s);
    s.train.total_timesteps = 96 * 100;
    w.save_to = path;
    TRAINER *t = setup_trainer(&s);
    struct train_callbacks callbacks = watch_callbacks(&w, t);
    callbacks.gate = NULL;
    double start_s = clock_mono_s();
    OK(trainer_run(t, &callbacks, &r, err));
    double all_s = clock_mono_s() - start_s;
    assert_int_equal(w.n_points, 100);
    assert_true(r.cost_s < all_s - 0.5 * w.saves_s);
    TRAINER *u = setup_trainer(&s);
    OK(trainer_load(u, path, err));
    assert_true(u->count.wall_s >= w.wall_s[99]);
    assert_same_weights(t, u);
}

TEST_PROGRAM("cost")
