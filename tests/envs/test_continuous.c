/* test_continuous.c - games whose action is a number: pendulum and mountain_car_continuous along trajectories that a
 * Python program computed from Gymnasium's published equations, and their rules at the edges. */
#include "envs_test.h"

#include "envs/games/mountain_car_continuous.h"
#include "envs/games/pendulum.h"

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.17g, expected %.17g", got, want);
}

TEST(sincos_of_any_angle)
{
    struct rng rng = rng_seed(3);
    for (int i = 0; i < 200000; i++) {
        double x = (i < 100000 ? 20.0 : 1e6) * (2.0 * rng_f64(&rng) - 1.0), s, c;
        env_sincos_any(x, &s, &c);
        near(s, sin(x), 2.3e-16);
        near(c, cos(x), 2.3e-16);
    }
    assert_true(env_floor_f64(-2.0) == -2.0 && env_floor_f64(-2.5) == -3.0 && env_floor_f64(2.5) == 2.0);
}

/* ---- pendulum ---- */

struct pendulum {
    struct pendulum_settings settings;
    struct pendulum_state state;
    struct env_step step;
    float torque, reward;
};

static void pendulum_open(struct pendulum *p, double theta, double theta_dot)
{
    *p = (struct pendulum){.settings.max_steps = 200};
    p->state.rng = rng_seed(1);
    pendulum_reset(&p->settings, &p->state);
    p->state.theta = theta;
    p->state.theta_dot = theta_dot;
}

static void pendulum_turn(struct pendulum *p, double torque)
{
    p->torque = (float)torque;
    p->step = (struct env_step){.reals = &p->torque, .rewards = &p->reward};
    pendulum_step(&p->settings, &p->state, NULL, &p->step);
}

/* From angle 2.5 and velocity -0.75, torque 3 sin(0.7 t) at step t; the tolerance is that of a torque in f32. */
TEST(pendulum_trajectory)
{
    static const struct {
        int step;
        double theta, theta_dot, reward, sum;
    } rows[] = {
        {1, 2.484942705403898, -0.30114589192203256, -6.30625, -6.30625},
        {10, 3.319369536307224, 1.8283449573880959, -9.689950282109105, -80.08038803502193},
        {40, 2.944381346982277, 2.700417896572895, -8.36125455505978, -307.5312425185837},
        {120, 3.6128707385603827, -1.1434613444465282, -6.94599791108295, -933.8448352412679},
    };
    struct pendulum p;
    int t = 0;
    pendulum_open(&p, 2.5, -0.75);
    for (size_t i = 0; i < 4; i++) {
        for (; t < rows[i].step; t++)
            pendulum_turn(&p, 3.0 * sin(0.7 * t));
        near(p.state.theta, rows[i].theta, 2e-6);
        near(p.state.theta_dot, rows[i].theta_dot, 2e-6);
        near((double)p.reward, rows[i].reward, 1e-5);
        near((double)p.step.score, rows[i].sum, 1e-4);
    }
}

TEST(pendulum_rules)
{
    struct pendulum p;
    float obs[3];
    pendulum_open(&p, M_PI / 2, 7.9); /* faster than 8 by the motor: held at 8 */
    pendulum_turn(&p, 50.0);
    assert_true(p.state.theta_dot == 8.0);
    near((double)p.reward, -(M_PI * M_PI / 4 + 0.1 * 7.9 * 7.9 + 0.001 * 4.0), 1e-6); /* torque 2, not 50 */
    pendulum_observe(&p.settings, &p.state, 0, obs);
    near((double)obs[0], cos(M_PI / 2 + 0.4), 1e-7);
    near((double)obs[1], sin(M_PI / 2 + 0.4), 1e-7);
    assert_true(obs[2] == 8.0f);
    pendulum_open(&p, 9.0 * M_PI + 0.5, 0.0); /* several turns: the angle is what is left, -pi + 0.5 */
    pendulum_turn(&p, 0.0);
    near((double)p.reward, -(M_PI - 0.5) * (M_PI - 0.5), 1e-5);
    pendulum_open(&p, 0.0, 0.0); /* upright and left alone: it stays there, 200 steps, with nothing to pay */
    for (int t = 1; t <= 200; t++) {
        pendulum_turn(&p, 0.0);
        assert_false(p.step.ended);
        assert_int_equal(p.step.truncated, t == 200);
    }
    assert_true(p.step.score == 0.0f && p.step.perf == 1.0f);
    double low = 9.0, high = -9.0;
    for (int i = 0; i < 2000; i++) {
        pendulum_reset(&p.settings, &p.state);
        low = fmin(low, p.state.theta), high = fmax(high, p.state.theta);
        assert_true(fabs(p.state.theta) <= M_PI && fabs(p.state.theta_dot) <= 1.0);
    }
    assert_true(low < -3.1 && high > 3.1);
}

/* A known controller: pump energy in until it can be caught, then hold it up. Always under -500 to pay. */
TEST(pendulum_controller)
{
    double sum = 0.0;
    struct pendulum p;
    pendulum_open(&p, 0.0, 0.0);
    for (int episode = 0; episode < 100; episode++) {
        pendulum_reset(&p.settings, &p.state);
        do {
            double a = atan2(sin(p.state.theta), cos(p.state.theta)), w = p.state.theta_dot;
            double energy = w * w / 6.0 + 5.0 * (cos(a) - 1.0); /* 0 at rest upright */
            pendulum_turn(&p, fabs(a) < 0.4 && fabs(w) < 3.0 ? -12.0 * a - 3.0 * w : w * energy < 0.0 ? 2.0 : -2.0);
        } while (!p.step.truncated);
        assert_true(p.step.score > -700.0f);
        sum += (double)p.step.score;
    }
    assert_true(sum / 100 > -300.0);
}

/* ---- mountain car ---- */

struct car {
    struct mountain_car_continuous_settings settings;
    struct mountain_car_continuous_state state;
    struct env_step step;
    float force, reward;
};

static void car_open(struct car *c, float x, float v)
{
    *c = (struct car){.settings.max_steps = 999};
    c->state.rng = rng_seed(1);
    mountain_car_continuous_reset(&c->settings, &c->state);
    c->state.x = x;
    c->state.v = v;
}

static void car_push(struct car *c, float force)
{
    c->force = force;
    c->step = (struct env_step){.reals = &c->force, .rewards = &c->reward};
    mountain_car_continuous_step(&c->settings, &c->state, NULL, &c->step);
}

/* From -0.5 at rest: force 1.5 (counts as 1) while it rolls right, -0.75 while it rolls left. */
TEST(car_trajectory)
{
    static const struct {
        int step;
        double x, v, reward, sum;
    } rows[] = {
        {1, -0.4986768364906311, 0.0013231569901108742, -0.1, -0.1},
        {30, -0.14996737241744995, 0.010990689508616924, -0.1, -3.0},
        {60, -0.5791977643966675, -0.0480794757604599, -0.05625, -5.25625},
        {108, 0.5020867586135864, 0.0640476867556572, 99.9, 90.55625},
    };
    struct car c;
    int t = 0;
    car_open(&c, -0.5f, 0.0f);
    for (size_t i = 0; i < 4; i++) {
        for (; t < rows[i].step; t++) {
            assert_false(c.step.ended);
            car_push(&c, c.state.v >= 0.0f ? 1.5f : -0.75f);
        }
        near((double)c.state.x, rows[i].x, 1e-6);
        near((double)c.state.v, rows[i].v, 1e-7);
        near((double)c.reward, rows[i].reward, 1e-5);
        near((double)c.step.score, rows[i].sum, 1e-4);
    }
    assert_true(c.step.ended && !c.step.truncated);
    near((double)c.step.perf, 0.9055625, 1e-6);
}

TEST(car_rules)
{
    struct car c;
    car_open(&c, -1.19f, -0.05f); /* the left wall stops it */
    car_push(&c, -1.0f);
    assert_true(c.state.x == -1.2f && c.state.v == 0.0f);
    car_open(&c, 0.5f, -0.03f); /* past the goal, but rolling back */
    car_push(&c, 0.0f);
    assert_true(c.state.x >= 0.45f && !c.step.ended);
    car_open(&c, -0.52f, 0.07f); /* no faster than 0.07 */
    car_push(&c, 1.0f);
    assert_true(c.state.v == 0.07f);
    car_open(&c, -0.5f, 0.0f); /* idle: it never gets there, and pays nothing */
    for (int t = 1; t <= 999; t++) {
        car_push(&c, 0.0f);
        assert_false(c.step.ended);
        assert_int_equal(c.step.truncated, t == 999);
    }
    assert_true(c.step.score == 0.0f && c.step.perf == 0.0f);
    for (int i = 0; i < 2000; i++) {
        mountain_car_continuous_reset(&c.settings, &c.state);
        assert_true(c.state.x >= -0.6f && c.state.x <= -0.4f && c.state.v == 0.0f);
    }
}

TEST_PROGRAM("continuous")
