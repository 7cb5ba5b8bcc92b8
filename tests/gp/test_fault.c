/* test_fault.c - every allocation that gp/ makes fails once: each becomes ST_NOMEM with a text, and nothing leaks. */
#include <cblas.h>

#include "base/fault.h"
#include "tests/gp/gp_test.h"

#define N 14

/* Calls fn with the first, second, ... allocation failing until one run meets no fault. */
static void each_fault(enum status (*fn)(void *ctx, struct error *err), void *ctx, int least)
{
    int nth = 1;
    for (;; nth++) {
        struct error err = {0};
        fault_arm(FAULT_MALLOC, nth);
        enum status rc = fn(ctx, &err);
        bool fired = fault_disarm(FAULT_MALLOC);
        assert_int_equal(rc, fired ? ST_NOMEM : ST_OK);
        assert_true(!fired || strstr(err.text, "memory") != NULL);
        if (!fired)
            break;
    }
    if (nth <= least)
        fail_msg("only %d allocations", nth - 1);
}

struct call {
    struct space space;
    struct gp_trial trials[N];
    double xs[N][SPACE_MAX_DIM];
    struct gp_history history;
    enum suggest_method method;
    bool on_front[N];
};

static enum status suggest_once(void *ctx, struct error *err)
{
    struct call *c = ctx;
    struct suggest_settings settings = {.method = c->method};
    struct suggester *s = NULL;
    struct suggestion suggestion;
    enum status rc = suggester_create(&s, &c->space, &settings, err);
    if (rc == ST_OK)
        rc = suggester_next(s, &c->history, N, &suggestion, err);
    suggester_destroy(s);
    return rc;
}

static enum status front_once(void *ctx, struct error *err)
{
    struct call *c = ctx;
    return pareto_front(&c->history, NULL, c->on_front, err);
}

static enum status volume_once(void *ctx, struct error *err)
{
    struct call *c = ctx;
    struct pareto_ref ref = {100.0, -10.0};
    double volume = pareto_hypervolume(&c->history, &ref);
    return isnan(volume) ? error_set(err, ST_NOMEM, "memory") : ST_OK; /* NaN is how it tells */
}

static enum status curve_once(void *ctx, struct error *err)
{
    struct call *c = ctx;
    struct pareto_ref ref = {100.0, -10.0};
    size_t counts[] = {0, 3, N};
    double volumes[3];
    return pareto_hypervolume_curve(&c->history, &ref, counts, 3, volumes, err);
}

static enum status noisy_front_once(void *ctx, struct error *err)
{
    struct call *c = ctx;
    return pareto_front(&c->history, &(struct pareto_noise){0}, c->on_front, err);
}

static enum status advice_once(void *ctx, struct error *err)
{
    struct call *c = ctx;
    struct gp_insight in;
    struct gp_picked picked;
    size_t i;
    enum status rc = gp_beliefs_init(&in, &c->space, &c->history, err);
    if (rc == ST_OK)
        rc = gp_pick(&in, &c->history, GP_KNEE, 0.0, &picked, err);
    if (rc == ST_OK)
        rc = gp_confirm_next(&in, &c->history, &(struct gp_confirm_settings){0}, &i, err);
    gp_insight_free(&in);
    return rc;
}

static void test_each_allocation(void **state)
{
    (void)state;
    static struct call c;
    c.space = unit_space(3);
    c.history = (struct gp_history){.n = N, .trials = c.trials};
    struct rng r = rng_seed(1);
    for (size_t k = 0; k < N; k++) {
        for (size_t i = 0; i < 3; i++)
            c.xs[k][i] = rng_f64(&r);
        enum gp_trial_state s = k == 5 ? GP_TRIAL_PENDING : k == 6 ? GP_TRIAL_FAILED : GP_TRIAL_DONE;
        c.trials[k] = (struct gp_trial){c.xs[k], s, rng_f64(&r), 1.0 + rng_f64(&r), 0.0};
    }
    c.method = SUGGEST_PARETO;
    each_fault(suggest_once, &c, 30);
    c.method = SUGGEST_SOBOL;
    each_fault(suggest_once, &c, 3);
    c.method = SUGGEST_RANDOM;
    each_fault(suggest_once, &c, 3);
    each_fault(front_once, &c, 1);
    each_fault(noisy_front_once, &c, 1);
    each_fault(advice_once, &c, 20);
    each_fault(volume_once, &c, 1);
    each_fault(curve_once, &c, 1);
}

int main(void)
{
    openblas_set_num_threads(1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};
    return cmocka_run_group_tests_name("gp.fault", tests, NULL, NULL);
}
