/* analytic.c - problems that are formulas, so that they need no data, and the list of all problems.
 *   branin-currin  2 parameters; score = -Branin, cost = exp(Currin / 3): the two trade off over the square
 *   hartmann-steps 7 parameters; score = Hartmann-6 damped by too few steps; cost = steps times a size factor
 *   rl-toy         6 parameters like a training run's: score rises with steps times an efficiency that is a bump in
 *                  each parameter, cost = steps * size^0.7 / batch^0.3, noise falls towards the best score, and high
 *                  learning rates diverge
 *   steep          5 parameters; learning is slow, then fast, then complete, and a seed is early or late: runs scatter
 *                  over half of the scores where the curve is steep and hardly on the plateau; scores lie between 0
 *                  and 1
 *   branin-currin-limit, rl-toy-memory
 *                  the same with a limit: of a wave over the square that a quarter of it keeps, away from most of the
 *                  front; of a memory that grows with network and minibatch
 *   loss           6 parameters; a validation loss, turned round: good ones lie between .01 and .1, rates that are too high
 *                  diverge over decades, noise is a factor
 *   returns        6 parameters; an episode's return grows by factors as learning continues, and its noise with it
 *   plateau        5 parameters; most of the space never learns and scores 0 of 1
 *   wide           30 parameters, of which 8 matter for the score and three for the cost
 *   whole          2 whole numbers, 480 points, much noise
 * Invariant: truth is the mean of draw over the trials that do not fail. */
#include "bench/sweep/problem.h"

#define TAU 6.283185307179586

const struct problem_entry problem_entries[] = {
    {"branin-currin", "2 parameters, formula", &problem_analytic_ops},
    {"hartmann-steps", "7 parameters, formula", &problem_analytic_ops},
    {"rl-toy", "6 parameters, formula, diverges at high learning rates", &problem_analytic_ops},
    {"steep", "5 parameters, formula, scatter where the score rises", &problem_analytic_ops},
    {"branin-currin-limit", "2 parameters, formula, a limit that a quarter of the square keeps", &problem_analytic_ops},
    {"rl-toy-memory", "6 parameters, formula, a limit of memory", &problem_analytic_ops},
    {"loss", "6 parameters, formula, a loss that diverges", &problem_analytic_ops},
    {"returns", "6 parameters, formula, scores that grow by factors", &problem_analytic_ops},
    {"plateau", "5 parameters, formula, most of it never learns", &problem_analytic_ops},
    {"wide", "30 parameters, formula, few of which matter", &problem_analytic_ops},
    {"whole", "2 whole numbers, formula", &problem_analytic_ops},
    {"lcbench-167168", "8 parameters, surrogate", &problem_lcbench_ops},
    {"lcbench-189906", "8 parameters, surrogate", &problem_lcbench_ops},
    {"lcbench-3945", "8 parameters, surrogate", &problem_lcbench_ops},
    {"lcbench-189354", "8 parameters, surrogate", &problem_lcbench_ops},
    {"arl-cc-cartpole-ppo", "10 parameters, recorded runs", &problem_table_ops},
    {"arl-cc-cartpole-dqn", "13 parameters, recorded runs", &problem_table_ops},
    {"arl-box2d-lunar-lander-dqn", "13 parameters, recorded runs", &problem_table_ops},
    {"arl-cc-pendulum-sac", "12 parameters, recorded runs", &problem_table_ops},
    {"arl-brax-halfcheetah-sac", "12 parameters, recorded runs", &problem_table_ops},
    {"arl-minigrid-door-key-ppo", "10 parameters, recorded runs", &problem_table_ops},
    {"arl-minigrid-four-rooms-ppo", "10 parameters, recorded runs", &problem_table_ops},
    {"arl-cc-mountain-car-ppo", "10 parameters, recorded runs", &problem_table_ops},
    {"trawl-pong", "10 parameters, recorded runs of this trainer", &problem_table_ops},
    {"trawl-cartpole", "10 parameters, recorded runs of this trainer", &problem_table_ops},
    {NULL, NULL, NULL},
};

double problem_normal(struct rng *rng)
{
    double a = 1.0 - rng_f64(rng), b = rng_f64(rng); /* a > 0 */
    return sqrt(-2.0 * log(a)) * cos(TAU * b);
}

static void add_param(struct space *space, const char *key, enum space_scale scale, bool is_int, double min, double max)
{
    struct space_param *p = &space->params[space->dim++];

    snprintf(p->key, sizeof p->key, "%s", key);
    p->scale = scale;
    p->is_int = is_int;
    p->min = min;
    p->max = max;
}

/* What a formula gives at a point. */
struct moments {
    double score, sd, cost, p_fail;
    double limited; /* what the problem's limit bounds */
    double lead; /* steep: how far past the middle of its rise a run is; loss: the loss without noise */
};

/* ---- Branin and Currin (both to be minimised in their usual form) ---- */

static void branin_currin_space(struct space *space)
{
    add_param(space, "x.a", SPACE_LINEAR, false, 0.0, 1.0);
    add_param(space, "x.b", SPACE_LINEAR, false, 0.0, 1.0);
}

static void branin_currin(const double *x, struct moments *ret)
{
    double a = 15.0 * x[0] - 5.0, b = 15.0 * x[1], t = b - 5.1 / (TAU / 2 * TAU * 2) * a * a + 10.0 / TAU * a - 6.0;
    double branin = t * t + 10.0 * (1.0 - 1.0 / (4.0 * TAU)) * cos(a) + 10.0;
    double factor = x[1] > 1e-9 ? 1.0 - exp(-0.5 / x[1]) : 1.0;
    double currin = factor * (2300 * x[0] * x[0] * x[0] + 1900 * x[0] * x[0] + 2092 * x[0] + 60) /
                    (100 * x[0] * x[0] * x[0] + 500 * x[0] * x[0] + 4 * x[0] + 20);
    *ret = (struct moments){.score = -branin, .sd = 2.0, .cost = exp(currin / 3.0)};
}

/* The first inequality of Gardner et al. 2014, cos(2 x) cos(y) - sin(2 x) sin(y) = cos(2 x + y), on [0, 6]^2. */
static void branin_currin_limit(const double *x, struct moments *ret)
{
    branin_currin(x, ret);
    ret->limited = cos(12.0 * x[0] + 6.0 * x[1]);
}

/* ---- Hartmann-6 with steps ---- */

static void hartmann_space(struct space *space)
{
    static const char *const names[] = {"x.a", "x.b", "x.c", "x.d", "x.e", "x.f"};

    for (int i = 0; i < 6; i++)
        add_param(space, names[i], SPACE_LINEAR, false, 0.0, 1.0);
    add_param(space, "train.steps", SPACE_LOG, false, 1e4, 1e7);
}

static void hartmann_steps(const double *x, struct moments *ret)
{
    static const double weight[4] = {1.0, 1.2, 3.0, 3.2};
    static const double a[4][6] = {
        {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
    static const double p[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                   {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                   {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                   {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
    double h = 0.0, steps = x[6];

    for (int i = 0; i < 4; i++) {
        double d = 0.0;
        for (int j = 0; j < 6; j++)
            d += a[i][j] * (x[j] - p[i][j]) * (x[j] - p[i][j]);
        h += weight[i] * exp(-d);
    }
    ret->score = h * (1.0 - exp(-pow(steps / 8e5, 0.6)));
    ret->sd = 0.05;
    ret->cost = 1e-4 * steps * exp(x[0] - 0.5 * x[3]);
    ret->p_fail = 0.0;
}

/* ---- a toy of a training run ---- */

static void rl_toy_space(struct space *space)
{
    add_param(space, "train.steps", SPACE_LOG, false, 1e5, 1e8);
    add_param(space, "train.learning_rate", SPACE_LOG, false, 1e-5, 1e-1);
    add_param(space, "train.gamma", SPACE_LOGIT, false, 0.8, 0.9999);
    add_param(space, "train.ent_coef", SPACE_LOG, false, 1e-5, 1e-1);
    add_param(space, "train.minibatch", SPACE_POW2, true, 1024, 65536);
    add_param(space, "policy.hidden", SPACE_POW2, true, 32, 1024);
}

static double bump(double at, double best, double width)
{
    double z = (at - best) / width;
    return exp(-0.5 * z * z);
}

static void rl_toy(const double *x, struct moments *ret)
{
    double lr = log10(x[1]), horizon = -log10(1.0 - x[2]), ent = log10(x[3]), batch = log2(x[4]), size = log2(x[5]);
    double best_lr = -2.6 + 0.12 * (batch - 13.0) - 0.1 * (size - 7.0); /* larger batches bear higher rates */
    double eff = bump(lr, best_lr, 0.55) * bump(horizon, 2.1, 0.7) * bump(ent, -2.8, 0.9) * bump(batch, 13.0, 2.0);
    double limit = 100.0 * (1.0 - 0.35 * exp(-0.45 * (size - 5.0))); /* small networks saturate lower */
    double reached = 1.0 - exp(-pow(x[0] * eff / 6e6, 0.7));

    ret->score = limit * reached - 4.0 * (1.0 - bump(ent, -2.8, 1.5));
    ret->sd = 0.5 + 0.06 * (100.0 - ret->score);
    ret->cost = 2e-7 * x[0] * pow(x[5], 0.7) / pow(x[4] / 1024.0, 0.3);
    ret->p_fail = 1.0 / (1.0 + exp(-(lr + 1.4) / 0.15));
}

static void rl_toy_memory(const double *x, struct moments *ret)
{
    rl_toy(x, ret);
    ret->limited = 4e3 * pow(x[5], 1.5) + 600.0 * x[4] * sqrt(x[5] / 128.0);
}

/* ---- a steep rise ---- */

#define STEEP_SEED 0.8 /* sd of a seed's lead; the rise from .12 to .88 is 4 wide */
#define STEEP_TOP 0.997
#define STEEP_NOISE 0.001

static void steep_space(struct space *space)
{
    add_param(space, "train.total_timesteps", SPACE_LOG, false, 1e6, 1e8);
    add_param(space, "train.learning_rate", SPACE_LOG, false, 1e-4, 1e-1);
    add_param(space, "train.gamma", SPACE_LOGIT, false, 0.8, 0.9999);
    add_param(space, "policy.hidden", SPACE_POW2, true, 16, 512);
    add_param(space, "train.clip", SPACE_LINEAR, false, 0.05, 0.5);
}

static double steep_score(double lead)
{
    return STEEP_TOP / (1.0 + exp(-lead));
}

static void steep(const double *x, struct moments *ret)
{
    double lr = log10(x[1]) + 2.2, horizon = -log10(1.0 - x[2]) - 2.0, size = log2(x[3]) - 6.0;
    double mean = 0.0, sq = 0.0, sum = 0.0;

    ret->lead = 3.2 * log(x[0] / 1.2e7) + 3.0 - 4.0 * lr * lr - 2.0 * horizon * horizon - 0.25 * size * size;
    for (int k = -40; k <= 40; k++) { /* over the seeds */
        double z = 0.1 * k, w = exp(-0.5 * z * z), s = steep_score(ret->lead + STEEP_SEED * z);
        sum += w;
        mean += w * s;
        sq += w * s * s;
    }
    ret->score = mean / sum;
    ret->sd = sqrt(fmax(sq / sum - ret->score * ret->score, 0.0) + STEEP_NOISE * STEEP_NOISE);
    ret->cost = 1e-7 * x[0] * pow(x[3] / 64.0, 0.3) + 0.15;
    ret->p_fail = 0.0;
}

static double steep_draw(const struct moments *m, struct rng *rng)
{
    double score = steep_score(m->lead + STEEP_SEED * problem_normal(rng));
    return fmin(fmax(score + STEEP_NOISE * problem_normal(rng), 0.0), 1.0);
}

/* ---- shapes that scores have elsewhere ---- */

#define LOSS_NOISE 0.15 /* sd of its logarithm */

static double sq(double v)
{
    return v * v;
}

static void loss_space(struct space *s)
{
    add_param(s, "x.lr", SPACE_LOG, false, 1e-5, 1.0);
    add_param(s, "x.wd", SPACE_LOG, false, 1e-6, 1e-1);
    add_param(s, "x.width", SPACE_POW2, true, 16, 512);
    add_param(s, "train.steps", SPACE_LOG, false, 1e3, 1e6);
    add_param(s, "x.mom", SPACE_LINEAR, false, 0.0, 0.99);
    add_param(s, "x.warm", SPACE_LINEAR, false, 0.0, 0.5);
}
static double loss_of(const double *x)
{
    double lr = log10(x[0]) + 2.2 + 0.5 * x[4], wd = log10(x[1]) + 3.5, w = log2(x[2]) - 4.0;
    double l = log(0.01) + 0.7 * sq(lr) + 0.15 * sq(wd) + 1.2 * exp(-0.5 * w) + 0.5 * log(1.0 + 6e5 / x[3]) +
               sq(x[4] - 0.8) + sq(x[5] - 0.1);
    return exp(l + (lr > 1.2 ? 5.0 * (lr - 1.2) : 0.0));
}
static void loss(const double *x, struct moments *ret)
{
    ret->lead = loss_of(x);
    ret->score = -ret->lead * exp(0.5 * LOSS_NOISE * LOSS_NOISE);
    ret->sd = LOSS_NOISE * ret->lead;
    ret->cost = 1e-4 * x[3] * pow(x[2] / 64.0, 0.7) + 0.1;
}
static double loss_draw(const struct moments *m, struct rng *rng)
{
    return -m->lead * exp(LOSS_NOISE * problem_normal(rng));
}

static void returns_space(struct space *s)
{
    add_param(s, "train.steps", SPACE_LOG, false, 1e5, 1e7);
    add_param(s, "x.lr", SPACE_LOG, false, 1e-5, 1e-1);
    add_param(s, "x.g", SPACE_LOGIT, false, 0.8, 0.9999);
    add_param(s, "x.ent", SPACE_LOG, false, 1e-5, 1e-1);
    add_param(s, "x.batch", SPACE_POW2, true, 256, 16384);
    add_param(s, "x.width", SPACE_POW2, true, 32, 512);
}
static void returns(const double *x, struct moments *ret)
{
    double g = 1.1 * log10(x[0] / 1e5) - 0.6 * sq(log10(x[1]) + 2.9 - 0.1 * (log2(x[4]) - 11.0)) -
               0.5 * sq(-log10(1.0 - x[2]) - 2.3) - 0.2 * sq(log10(x[3]) + 2.7) + 0.2 * (log2(x[5]) - 5.0) -
               0.05 * sq(log2(x[5]) - 8.0);
    ret->score = 10.0 * exp(2.0 * g);
    ret->sd = 0.3 * ret->score + 1.0;
    ret->cost = 2e-6 * x[0] * pow(x[5] / 128.0, 0.6) / pow(x[4] / 2048.0, 0.3) + 0.1;
}

static void plateau_space(struct space *s)
{
    add_param(s, "train.steps", SPACE_LOG, false, 1e4, 1e6);
    add_param(s, "x.lr", SPACE_LOG, false, 1e-5, 1e-1);
    add_param(s, "x.g", SPACE_LOGIT, false, 0.8, 0.9999);
    add_param(s, "x.ent", SPACE_LOG, false, 1e-5, 1e-1);
    add_param(s, "x.clip", SPACE_LINEAR, false, 0.0, 0.5);
}
static void plateau(const double *x, struct moments *ret)
{
    double lead = 0.9 * log(x[0] / 1e5) + 2.6 - 3.0 * sq(log10(x[1]) + 2.6) - 1.5 * sq(-log10(1.0 - x[2]) - 2.2) -
                  0.5 * sq(log10(x[3]) + 2.8) - 8.0 * sq(x[4] - 0.2);
    ret->score = lead > 0.0 ? tanh(0.5 * lead) : 0.0;
    ret->sd = 0.1 * sqrt(fmax(ret->score * (1.0 - ret->score), 0.0)) + 0.001;
    ret->cost = 1e-4 * x[0] + 0.3;
}
static double plateau_draw(const struct moments *m, struct rng *rng)
{
    return fmin(fmax(m->score + m->sd * problem_normal(rng), 0.0), 1.0);
}

static void wide_space(struct space *s)
{
    char key[16];

    for (int i = 0; i < 29; i++) {
        snprintf(key, sizeof key, "x.p%d", i);
        if (i % 7 == 6) {
            add_param(s, key, SPACE_CATEGORICAL, false, 0.0, 2.0);
            s->params[s->dim - 1].n_choices = 3;
        } else
            add_param(s, key, i % 3 == 1 ? SPACE_LOG : SPACE_LINEAR, i % 5 == 4, i % 5 == 4 ? 1.0 : 0.01,
                      i % 5 == 4 ? 16.0 : 1.0);
    }
    add_param(s, "train.steps", SPACE_LOG, false, 1e4, 1e6);
}
static void wide(const double *x, struct moments *ret)
{
    double lg = 1.0 + log(x[1]) / log(100.0), lg7 = 1.0 + log(x[7]) / log(100.0);
    double q = 2.5 * sq(x[0] - 0.3) + 1.5 * sq(lg - 0.7) + 1.2 * sq(x[3] - 0.8 * x[0]) + 0.004 * sq(x[14] - 10.0) +
               0.8 * sq(lg7 - 0.4) + 0.2 * (x[6] != 1.0) + 0.1 * (x[13] == 2.0);
    for (int i = 15; i < 19; i++)
        q += 0.1 * (i % 5 == 4 || i % 3 == 1 ? 0.0 : sq(x[i] - 0.5));
    ret->score = exp(-q) * (1.0 - exp(-pow(x[29] / 1.2e5, 0.6)));
    ret->sd = 0.03;
    ret->cost = 1e-4 * x[29] * (1.0 + 0.1 * x[14]) * exp(0.5 * x[0]);
}

static void whole_space(struct space *s)
{
    add_param(s, "x.n", SPACE_LINEAR, true, 1, 40);
    add_param(s, "x.m", SPACE_LINEAR, true, 1, 12);
}
static void whole(const double *x, struct moments *ret)
{
    ret->score = 10.0 * (1.0 - exp(-x[0] / 12.0)) - 0.25 * sq(x[1] - 3.0 - x[0] / 8.0);
    ret->sd = 0.6;
    ret->cost = x[0] * (1.0 + 0.1 * x[1]);
}

/* ---- the family ---- */

struct formula {
    const char *name;
    void (*space)(struct space *space);
    void (*at)(const double *x, struct moments *ret);
    double (*draw)(const struct moments *m, struct rng *rng); /* one run's score; NULL: normal */
    double min, max; /* what a score can be; both 0: anything */
    double limit_max; /* of `limited`; 0: no limit */
    double limited_sd; /* a run's noise in it */
};

static const struct formula formulas[] = {
    {.name = "branin-currin", .space = branin_currin_space, .at = branin_currin},
    {.name = "hartmann-steps", .space = hartmann_space, .at = hartmann_steps},
    {.name = "rl-toy", .space = rl_toy_space, .at = rl_toy},
    {.name = "steep", .space = steep_space, .at = steep, .draw = steep_draw, .max = 1.0},
    {.name = "loss", .space = loss_space, .at = loss, .draw = loss_draw},
    {.name = "returns", .space = returns_space, .at = returns},
    {.name = "plateau", .space = plateau_space, .at = plateau, .draw = plateau_draw, .max = 1.0},
    {.name = "wide", .space = wide_space, .at = wide},
    {.name = "whole", .space = whole_space, .at = whole},
    {.name = "branin-currin-limit",
     .space = branin_currin_space,
     .at = branin_currin_limit,
     .limit_max = -0.7,
     .limited_sd = 0.05},
    {.name = "rl-toy-memory", .space = rl_toy_space, .at = rl_toy_memory, .limit_max = 1.2e7, .limited_sd = 1e5},
};

static enum status analytic_open(struct problem *problem, const char *const *dirs, size_t n_dirs, struct error *err)
{
    (void)dirs, (void)n_dirs;
    for (size_t i = 0; i < COUNT(formulas); i++) {
        if (strcmp(formulas[i].name, problem->name) != 0)
            continue;
        problem->data = (void *)&formulas[i];
        formulas[i].space(&problem->space);
        problem->has_bounds = formulas[i].max > formulas[i].min;
        problem->score_min = formulas[i].min;
        problem->score_max = formulas[i].max;
        problem->has_limit = formulas[i].limit_max != 0.0;
        problem->limit = (struct gp_limit){-(double)INFINITY, formulas[i].limit_max};
        return ST_OK;
    }
    return FAIL(err, ST_INTERNAL, "no formula is called '%s'", problem->name);
}

static void analytic_truth(const struct problem *problem, size_t n, const double *x, struct outcome *ret)
{
    const struct formula *formula = problem->data;

    for (size_t i = 0; i < n; i++) {
        struct moments m = {0};
        formula->at(x + i * problem->space.dim, &m);
        ret[i] = (struct outcome){.score = m.score, .cost = m.cost, .limited = m.limited};
    }
}

static void analytic_draw(const struct problem *problem, const double *x, struct rng *rng, struct outcome *ret)
{
    const struct formula *formula = problem->data;
    struct moments m = {0};

    formula->at(x, &m);
    ret->failed = rng_f64(rng) < m.p_fail;
    double score = formula->draw != NULL ? formula->draw(&m, rng) : m.score + m.sd * problem_normal(rng);
    ret->score = ret->failed ? (double)NAN : score;
    ret->cost = m.cost * exp(0.05 * problem_normal(rng));
    if (ret->failed)
        ret->cost *= 0.3; /* divergence shows early */
    ret->limited = problem->has_limit ? m.limited + formula->limited_sd * problem_normal(rng) : 0.0;
}

const struct problem_ops problem_analytic_ops = {analytic_open, NULL, analytic_truth, analytic_draw};
