/* test_rivals.c - protein: its model against finite differences and known values, and the behaviour that its
 * description states, on small cases. */
#include "bench/rivals/rivals.h"

#include "tests/gp/gp_test.h"

#define N_TRIALS 40

struct play {
    struct gp_trial trials[N_TRIALS];
    double x[N_TRIALS][SPACE_MAX_DIM];
    char origin[N_TRIALS][32];
    size_t n;
};

static struct space small_space(void)
{
    struct space space = {.dim = 3};
    space.params[0] = param_of("train.total_timesteps", SPACE_LOG, false, 1e4, 1e6);
    space.params[1] = param_of("train.learning_rate", SPACE_LOG, false, 1e-4, 1e-1);
    space.params[2] = param_of("train.gamma", SPACE_LOGIT, false, 0.9, 0.999);
    return space;
}

/* Best at a learning rate of 1e-2; more steps help; cost is the steps. */
static void judge(const double *x, struct gp_trial *t)
{
    double z = log10(x[1]) + 2.0;
    t->state = GP_TRIAL_DONE;
    t->score = exp(-z * z) * (1.0 - exp(-x[0] / 2e5));
    t->cost = 1e-3 * x[0];
}

static void ask(struct suggester *s, struct play *p, struct suggestion *ret)
{
    struct gp_history history = {.n = p->n, .trials = p->trials};
    OK(protein_next(s, &history, (int64_t)p->n, ret, err));
}

static void play_on(struct suggester *s, struct play *p, size_t n)
{
    struct suggestion a;
    while (p->n < n) {
        ask(s, p, &a);
        memcpy(p->x[p->n], a.x, sizeof a.x);
        strcpy(p->origin[p->n], a.origin);
        judge(a.x, &p->trials[p->n]);
        p->trials[p->n].x = p->x[p->n];
        p->n++;
    }
}

static void check_point(const struct space *space, const double *x)
{
    double snapped[SPACE_MAX_DIM];
    memcpy(snapped, x, space->dim * sizeof *x);
    space_snap(space, snapped);
    for (size_t i = 0; i < space->dim; i++) {
        assert_true(x[i] >= space->params[i].min && x[i] <= space->params[i].max);
        assert_near(x[i], snapped[i], 1e-12 * fabs(x[i]));
    }
}

static struct suggester *sobol_of(const struct space *space, double max_cost)
{
    return suggester_of(space, (struct suggest_settings){.method = SUGGEST_SOBOL, .seed = 3, .max_cost = max_cost});
}

TEST(model_gradient)
{
    struct rival_gp gp;
    struct rng rng = rng_seed(2);
    double g[RIVAL_MAX_THETA], unused[RIVAL_MAX_THETA];
    rival_gp_init(&gp, 3, 12, 0.5);
    for (int i = 0; i < 12; i++) {
        double x[3] = {2 * rng_f64(&rng) - 1, 2 * rng_f64(&rng) - 1, 2 * rng_f64(&rng) - 1};
        rival_gp_add(&gp, x, sin(2 * x[0]) + 0.3 * x[1] + 0.05 * rival_normal(&rng));
    }
    double value = rival_gp_objective(&gp, g);
    for (size_t i = 0; i < 6; i++) {
        double at = gp.theta[i], h = 1e-5;
        gp.theta[i] = at + h;
        double up = rival_gp_objective(&gp, unused);
        gp.theta[i] = at - h;
        double down = rival_gp_objective(&gp, unused);
        gp.theta[i] = at;
        assert_near(g[i], (up - down) / (2 * h), 1e-4 * (1 + fabs(g[i])));
    }
    rival_gp_fit(&gp, 50, 1e-2);
    assert_true(rival_gp_objective(&gp, g) < value);
    rival_gp_free(&gp);
}

TEST(model_predicts)
{
    struct rival_gp gp;
    double at[2] = {0.0, 0.9}, mean[2], x = 0.0;
    rival_gp_init(&gp, 1, 2, 0.3);
    rival_gp_add(&gp, &x, 2.0);
    OK(rival_gp_factor(&gp, err));
    rival_gp_predict(&gp, at, 2, mean);
    /* one row at 0: mean k(x) y / (1 + noise), k = (1 + a) exp(-a), a = sqrt3 |x| / 0.3 */
    double a = sqrt(3.0) * 0.9 / 0.3, k = (1 + a) * exp(-a), noisy = 1.01 + 1e-8;
    assert_near(mean[0], 2.0 / noisy, 1e-9);
    assert_near(mean[1], 2.0 * k / noisy, 1e-9);
    rival_gp_free(&gp);
}

/* A function of the history, which keeps inside the space, and ends nearer to the best than it began. */
TEST(common)
{
    struct space space = small_space();
    struct play a = {.n = 0}, b = {.n = 0};
    struct suggester *s = sobol_of(&space, 0.0);
    play_on(s, &a, N_TRIALS);
    suggester_destroy(s);
    for (size_t i = 0; i < N_TRIALS; i++)
        check_point(&space, a.x[i]);
    s = sobol_of(&space, 0.0);
    play_on(s, &b, 20);
    suggester_destroy(s);
    s = sobol_of(&space, 0.0); /* killed and begun again */
    play_on(s, &b, N_TRIALS);
    suggester_destroy(s);
    assert_memory_equal(a.x, b.x, sizeof a.x);
    double early = 0.0, late = 0.0;
    for (size_t i = 0; i < 10; i++) {
        early = fmax(early, a.trials[i].score);
        late = fmax(late, a.trials[N_TRIALS - 1 - i].score);
    }
    assert_true(late > early);
    assert_true(late > 0.4);
}

TEST(protein_starts_with_few_steps)
{
    struct space space = small_space();
    struct play p = {.n = 0};
    struct suggester *s = sobol_of(&space, 0.0);
    play_on(s, &p, 30);
    suggester_destroy(s);
    for (size_t i = 0; i < 30; i++) {
        double v[SPACE_MAX_DIM];
        rival_to_box(&space, p.x[i], v);
        if (i < 10)
            assert_true(fabs(v[0] + 0.8) < 0.051);
        assert_string_equal(p.origin[i], i < 10 ? "sobol" : "protein");
    }
}

/* A later run at the same point takes the place of the earlier: with the good result last, the search goes there. */
TEST(protein_overwrites_repeats)
{
    struct space space = small_space();
    struct play good = {.n = 0}, bad = {.n = 0};
    struct suggestion a, b;
    struct suggester *s = sobol_of(&space, 0.0);
    play_on(s, &good, 12);
    bad = good;
    for (size_t i = 0; i < 12; i++)
        bad.trials[i].x = bad.x[i];
    for (int k = 0; k < 2; k++) { /* two runs at one point, in either order */
        good.trials[12 + k] =
            (struct gp_trial){.x = good.x[0], .state = GP_TRIAL_DONE, .score = k == 1 ? 5.0 : 0.0, .cost = 100.0};
        bad.trials[12 + k] =
            (struct gp_trial){.x = bad.x[0], .state = GP_TRIAL_DONE, .score = k == 0 ? 5.0 : 0.0, .cost = 100.0};
    }
    good.n = bad.n = 14;
    ask(s, &good, &a);
    ask(s, &bad, &b);
    assert_true(memcmp(a.x, b.x, sizeof a.x) != 0);
    bad.trials[12].score = -3.0; /* the overwritten one does not matter, whatever it was */
    struct suggestion c;
    ask(s, &bad, &c);
    assert_memory_equal(b.x, c.x, sizeof b.x);
    suggester_destroy(s);
}

/* Pending and failed trials do not enter the model. */
TEST(who_sees_pending_and_failed)
{
    struct space space = small_space();
    for (int kind = 0; kind < 2; kind++) {
        struct play p = {.n = 0};
        struct suggestion a, b;
        struct suggester *s = sobol_of(&space, 0.0);
        play_on(s, &p, 16);
        ask(s, &p, &a);
        double near[3] = {1.02 * a.x[0], 1.02 * a.x[1], a.x[2]}; /* beside what was proposed */
        p.trials[16] = (struct gp_trial){.x = near, .state = kind ? GP_TRIAL_FAILED : GP_TRIAL_PENDING};
        struct gp_history history = {.n = 17, .trials = p.trials};
        OK(protein_next(s, &history, 16, &b, err)); /* the same number: the same random draws */
        assert_memory_equal(a.x, b.x, sizeof a.x);
        suggester_destroy(s);
    }
}

TEST(hard_histories)
{
    struct space space = small_space();
    for (int kind = 0; kind < 4; kind++) {
        struct play p = {.n = 0};
        struct suggester *s = sobol_of(&space, kind == 3 ? 20.0 : 0.0);
        struct suggestion a;
        play_on(s, &p, 20);
        for (size_t i = 0; i < 20; i++) {
            struct gp_trial *t = &p.trials[i];
            if (kind == 0)
                t->state = GP_TRIAL_FAILED;
            if (kind == 1)
                t->score = t->cost = 1.0;
            if (kind == 2)
                t->score *= i % 2 ? 1e30 : -1e30;
        }
        for (int k = 0; k < 3; k++) {
            ask(s, &p, &a);
            check_point(&space, a.x);
            memcpy(p.x[p.n], a.x, sizeof a.x);
            p.trials[p.n] = (struct gp_trial){.x = p.x[p.n], .state = GP_TRIAL_PENDING};
            p.n++;
        }
        suggester_destroy(s);
    }
}

TEST_PROGRAM("bench.rivals")
