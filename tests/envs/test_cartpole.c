/* test_cartpole.c - cartpole against Gymnasium's published equations, written here a second time with libm. */
#include "envs_test.h"

#include "envs/games/cartpole.h"

/* -- the equations of CartPole-v1, from Florian's correction of Barto, Sutton and Anderson -- */
struct reference {
    double x, v, angle, spin;
};

static struct reference reference_next(struct reference s, int action)
{
    const double g = 9.8, m_cart = 1.0, m_pole = 0.1, half_length = 0.5, tau = 0.02;
    const double total = m_pole + m_cart, m_l = m_pole * half_length;
    double force = action == 1 ? 10.0 : -10.0, c = cos(s.angle), n = sin(s.angle);
    double temp = (force + m_l * (s.spin * s.spin) * n) / total;
    double spin_acc = (g * n - c * temp) / (half_length * (4.0 / 3.0 - m_pole * (c * c) / total));
    double acc = temp - m_l * spin_acc * c / total;
    struct reference next = {s.x + tau * s.v, s.v + tau * acc, s.angle + tau * s.spin, s.spin + tau * spin_acc};
    return next;
}

static bool reference_out(struct reference s)
{
    double limit = 12 * 2 * M_PI / 360;
    return s.x < -2.4 || s.x > 2.4 || s.angle < -limit || s.angle > limit;
}

static double distance(struct reference r, const struct cartpole_state *s)
{
    double d = fabs(r.x - s->x);
    d = fmax(d, fabs(r.v - s->x_dot));
    d = fmax(d, fabs(r.angle - s->theta));
    return fmax(d, fabs(r.spin - s->theta_dot));
}

static struct reference reference_from(const struct cartpole_state *s)
{
    struct reference r = {s->x, s->x_dot, s->theta, s->theta_dot};
    return r;
}

ONE_GAME(one, cartpole)

static void one_open(struct one *o, uint64_t seed)
{
    *o = (struct one){.settings.max_steps = 500, .s.rng = rng_seed(seed)};
    cartpole_reset(&o->settings, &o->s);
}

TEST(sincos)
{
    for (int i = -20000; i <= 20000; i++) {
        double x = ENV_PI / 4 * i / 20000, s, c;
        env_sincos(x, &s, &c);
        assert_true(fabs(s - sin(x)) <= fabs(sin(x)) * 2.3e-16);
        assert_true(fabs(c - cos(x)) <= 2.3e-16);
    }
}

/* Random play, to the end of every episode. */
TEST(random_episodes)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        struct one o;
        one_open(&o, seed);
        struct rng rng = rng_seed(seed + 1000000);
        struct reference r = reference_from(&o.s);
        double start[4] = {r.x, r.v, r.angle, r.spin};
        for (int i = 0; i < 4; i++)
            assert_true(start[i] >= -0.05 && start[i] < 0.05);
        do {
            int32_t action = (int32_t)rng_below(&rng, 2);
            r = reference_next(r, action);
            one_turn(&o, action);
            assert_true(distance(r, &o.s) < 1e-5);
            assert_int_equal(o.step.ended, reference_out(r));
            assert_true(o.reward == 1.0f);
            float obs[4];
            cartpole_observe(&o.settings, &o.s, 0, obs);
            assert_true(obs[0] == (float)o.s.x && obs[1] == (float)o.s.x_dot);
            assert_true(obs[2] == (float)o.s.theta && obs[3] == (float)o.s.theta_dot);
        } while (!o.step.ended);
        assert_false(o.step.truncated);
        assert_true(o.step.score == (float)o.s.steps);
        assert_true(o.step.perf == (float)o.s.steps / 500.0f);
    }
}

/* A controller that balances: the action list comes from the reference, and the game must follow it. The dynamics
 * double any difference every 9 steps, so a last bit of sine or cosine would show as more than 1e-5 some 330 steps
 * later: whole episodes agree only because both sides round alike. */
static int balance(struct reference s)
{
    return s.angle + 0.5 * s.spin + 0.05 * s.x + 0.1 * s.v > 0.0;
}

TEST(long_episodes)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct one o;
        one_open(&o, seed);
        struct reference r = reference_from(&o.s);
        for (int t = 1; t <= 500; t++) {
            int action = balance(r);
            struct reference single = reference_next(reference_from(&o.s), action);
            r = reference_next(r, action);
            one_turn(&o, action);
            assert_true(distance(single, &o.s) < 1e-14);
            assert_true(distance(r, &o.s) < 1e-5);
            if (o.step.ended)
                break;
            assert_int_equal(o.step.truncated, t == 500);
        }
    }
}

/* 500 steps: truncated, not terminated, with the old episode's observation kept and perf 1. */
TEST(truncation)
{
    const struct env_def *def = env_find("cartpole");
    MEM_LOCAL void *settings = test_settings(def);
    TEST_BATCH t;
    test_batch_open(&t, def, settings, 3, 5);
    env_batch_reset(t.batch, NULL, t.obs, NULL);
    float before[12];
    for (int step = 1; step <= 500; step++) {
        const float *o = t.obs;
        for (int i = 0; i < 3; i++, o += 4) {
            struct reference s = {(double)o[0], (double)o[1], (double)o[2], (double)o[3]};
            t.actions[i] = balance(s);
        }
        memcpy(before, t.obs, sizeof before);
        env_batch_step(t.batch, NULL, &t.io);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(t.terms[i], 0);
            assert_int_equal(t.truncs[i], step == 500);
        }
    }
    for (int i = 0; i < 3; i++) {
        const float *last = t.final_obs + 4 * i, *fresh = t.obs + 4 * i, *old = before + 4 * i;
        assert_true(fabsf(last[0] - (old[0] + 0.02f * old[1])) < 1e-5f);
        assert_true(fabsf(last[2] - (old[2] + 0.02f * old[3])) < 1e-5f);
        for (int k = 0; k < 4; k++)
            assert_true(fabsf(fresh[k]) <= 0.05f);
    }
    struct env_log log;
    env_batch_take_log(t.batch, &log);
    assert_true(log.episodes == 3.0 && log.score == 1500.0 && log.perf == 3.0);
    assert_true(log.ep_return == 1500.0 && log.ep_length == 1500.0);
}

/* Each limit ends an episode on its own; a step that reaches 500 and falls is a termination alone. */
TEST(limits)
{
    static const struct {
        double x, v, angle, spin;
        bool ends;
    } cases[] = {
        {2.39, 1.0, 0.0, 0.0, true},    {-2.39, -1.0, 0.0, 0.0, true},    {2.39, 0.4, 0.0, 0.0, false},
        {0.0, 0.0, 0.209, 0.1, true},   {0.0, 0.0, -0.209, -0.1, true},   {0.0, 0.0, 0.209, 0.01, false},
        {-2.39, -0.4, 0.0, 0.0, false}, {0.0, 0.0, -0.209, -0.01, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int action = 0; action < 2; action++)
            for (int last = 0; last < 2; last++) {
                struct one o;
                one_open(&o, 1);
                o.s.x = cases[i].x;
                o.s.x_dot = cases[i].v;
                o.s.theta = cases[i].angle;
                o.s.theta_dot = cases[i].spin;
                o.s.steps = last ? 499 : 10;
                one_turn(&o, action);
                assert_int_equal(o.step.ended, cases[i].ends);
                assert_int_equal(o.step.truncated, last && !cases[i].ends);
            }
}

TEST_PROGRAM("cartpole")
