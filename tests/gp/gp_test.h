/* gp_test.h - shared by the tests of gp/: cmocka's includes and short builders of spaces and histories. */
#pragma once

#include "tests/check.h"
#include "base/rng.h"
#include "gp/gp_priv.h"

#define assert_near(a, b, tolerance)                                                                                   \
    do {                                                                                                               \
        double a_ = (a), b_ = (b);                                                                                     \
        if (!(fabs(a_ - b_) <= (tolerance)))                                                                           \
            fail_msg("%s = %.17g, %s = %.17g, differ by %g", #a, a_, #b, b_, fabs(a_ - b_));                           \
    } while (0)

/* Ones that end with the block that declares them. */
#define INSIGHT __attribute__((cleanup(gp_insight_free))) struct gp_insight
#define SUGGESTER __attribute__((cleanup(suggester_drop))) struct suggester

static inline void suggester_drop(struct suggester **s)
{
    suggester_destroy(*s);
}

static inline struct suggester *suggester_of(const struct space *space, struct suggest_settings settings)
{
    struct suggester *s = NULL;
    OK(suggester_create(&s, space, &settings, err));
    return s;
}

/* The proposal of a number after the first n trials. */
static inline struct suggestion suggester_ask(struct suggester *s, const struct gp_trial *trials, size_t n,
                                              size_t number)
{
    struct suggestion made;
    OK(suggester_next(s, &(struct gp_history){.n = n, .trials = trials}, (int64_t)number, &made, err));
    return made;
}

static inline struct space_param param_of(const char *key, enum space_scale scale, bool is_int, double min, double max)
{
    struct space_param p = {.scale = scale, .is_int = is_int, .min = min, .max = max};
    snprintf(p.key, sizeof p.key, "%s", key);
    if (scale == SPACE_CATEGORICAL)
        p.n_choices = (size_t)max + 1;
    return p;
}

static inline double noise(struct rng *r) /* N(0, 1) */
{
    double u = 1.0 - rng_f64(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * rng_f64(r));
}

/* dim linear parameters in [0, 1]. */
static inline struct space unit_space(size_t dim)
{
    struct space space = {.dim = dim};
    for (size_t i = 0; i < dim; i++) {
        space.params[i] = param_of("", SPACE_LINEAR, false, 0.0, 1.0);
        snprintf(space.params[i].key, SPACE_KEY_MAX, "test.p%zu", i);
    }
    return space;
}

/* One parameter of every kind. */
static inline struct space mixed_space(void)
{
    struct space space = {.dim = 8};
    space.params[0] = param_of("train.learning_rate", SPACE_LOG, false, 1e-5, 1e-1);
    space.params[1] = param_of("train.gamma", SPACE_LOGIT, false, 0.8, 0.9999);
    space.params[2] = param_of("train.minibatch", SPACE_POW2, true, 100, 5000);
    space.params[3] = param_of("policy.layers", SPACE_LINEAR, true, 1, 4);
    space.params[4] = param_of("policy.width", SPACE_LOG, true, 8, 512);
    space.params[5] = param_of("train.optimizer", SPACE_CATEGORICAL, false, 0, 2);
    space.params[6] = param_of("train.clip", SPACE_LINEAR, false, -1.0, 3.0);
    space.params[7] = param_of("train.momentum", SPACE_POW2, false, 0.1, 2.0);
    return space;
}
