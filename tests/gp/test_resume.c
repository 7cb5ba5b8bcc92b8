/* test_resume.c - a suggester that was made again at any trial, as after a kill and a resume, gives the same bytes as
 * one that lived through the study; and proposals leave no memory behind. */
#include <malloc.h>

#include <cblas.h>

#include "tests/gp/gp_test.h"

#define N_MAX 420
#define WORKERS 5

static struct gp_trial trials[N_MAX];
static double xs[N_MAX][SPACE_MAX_DIM];

/* An outcome that depends on the point and the trial's number; a few fail and a few are stopped. */
static void finish(const struct space *space, size_t i)
{
    double u[SPACE_MAX_DIM], sum = 0.0;
    struct rng r = rng_split(rng_seed(3), i);
    space_to_unit(space, xs[i], u);
    for (size_t k = 0; k < space->dim; k++)
        sum -= (u[k] - 0.6) * (u[k] - 0.6);
    trials[i].state = i % 11 == 4 ? GP_TRIAL_FAILED : i % 13 == 7 ? GP_TRIAL_STOPPED : GP_TRIAL_DONE;
    trials[i].score = sum + 0.2 * rng_f64(&r);
    trials[i].cost = exp(3.0 * u[0] + 0.1 * rng_f64(&r));
}

/* WORKERS at once; which of them ends next is drawn, so that trials end out of order. */
static void play(const struct space *space, size_t n_trials, double max_cost)
{
    SUGGESTER *lived = suggester_of(space, (struct suggest_settings){.seed = 11, .max_cost = max_cost});
    struct rng r = rng_seed(9);
    size_t running[WORKERS], n_running = 0;
    for (size_t number = 0; number < n_trials; number++) {
        if (n_running == WORKERS) {
            size_t which = rng_f64(&r) < 0.7 ? rng_below(&r, 2) : rng_below(&r, WORKERS);
            finish(space, running[which]);
            memmove(running + which, running + which + 1, (WORKERS - 1 - which) * sizeof *running);
            n_running--;
        }
        struct suggestion a = suggester_ask(lived, trials, number, number);
        if (number % 3 == 0 || number > n_trials - 4) {
            SUGGESTER *fresh = suggester_of(space, (struct suggest_settings){.seed = 11, .max_cost = max_cost});
            struct suggestion b = suggester_ask(fresh, trials, number, number);
            assert_memory_equal(&a, &b, sizeof a);
        }
        memcpy(xs[number], a.x, sizeof a.x);
        trials[number] = (struct gp_trial){.x = xs[number], .state = GP_TRIAL_PENDING};
        running[n_running++] = number;
    }
}

TEST(made_anew_it_says_the_same)
{
    struct space space = mixed_space();
    play(&space, 130, 0.0);
    space = unit_space(2);
    play(&space, 60, 5.0);
}

/* Histories that share nothing, one after the other, through the same suggester. */
TEST(another_history_in_between)
{
    struct space space = unit_space(3);
    SUGGESTER *lived = suggester_of(&space, (struct suggest_settings){.seed = 11, .max_cost = 0.0});
    for (int turn = 0; turn < 4; turn++) {
        size_t n = turn % 2 ? 35 : 34;
        struct rng r = rng_seed((uint64_t)(turn / 2));
        for (size_t i = 0; i < n; i++) {
            for (size_t k = 0; k < 3; k++)
                xs[i][k] = rng_f64(&r);
            trials[i].x = xs[i];
            finish(&space, i);
        }
        SUGGESTER *fresh = suggester_of(&space, (struct suggest_settings){.seed = 11, .max_cost = 0.0});
        struct suggestion a = suggester_ask(lived, trials, n, n), b = suggester_ask(fresh, trials, n, n);
        assert_memory_equal(&a, &b, sizeof a);
    }
}

/* 2,000 proposals over a history that changes. */
TEST(memory_stays_flat)
{
    struct space space = {.dim = 2};
    space.params[0] = param_of("test.a", SPACE_LINEAR, true, 1, 12);
    space.params[1] = param_of("test.b", SPACE_LINEAR, true, 1, 12);
    SUGGESTER *s = suggester_of(&space, (struct suggest_settings){.seed = 11, .max_cost = 0.0});
    size_t in_use = 0;
    for (size_t i = 0; i < 14; i++) {
        xs[i][0] = (double)(1 + i * 5 % 12);
        xs[i][1] = (double)(1 + i);
        trials[i] =
            (struct gp_trial){.x = xs[i], .state = GP_TRIAL_DONE, .score = (double)(i % 5), .cost = 1.0 + (double)i};
    }
    for (size_t number = 14; number < 2014; number++) {
        if (number % 50 == 0)
            trials[number / 50 % 14].score += 0.25;
        suggester_ask(s, trials, 8 + number % 6, number);
        struct mallinfo2 now = mallinfo2();
        if (number == 114)
            in_use = now.uordblks + now.hblkhd;
        if (number > 114 && now.uordblks + now.hblkhd > in_use + 65536)
            fail_msg("%zu bytes in use at proposal 100, %zu at %zu", in_use, now.uordblks + now.hblkhd, number - 14);
    }
}

int main(void)
{
    openblas_set_num_threads(1);
    return run_cases("gp.resume", NULL, NULL);
}
