/* test_confirm.c - how much of a budget goes into runs under fresh seeds, and when: studies played out with a plan that
 * is always followed, by trials, by seconds and by time; nothing is trained. */
#include <sys/eventfd.h>

#include "tests/check.h"
#include "study/setup/setup.h"
#include "sweep/proposals/confirm.h"
#include "sweep/proposals/propose.h"
#include "sweep/proposals/proposer.h"
#include "sweep/controller/sched_study.h"

#define MAX 400

struct played {
    struct study_view view;
    struct trial trials[MAX];
    struct gp_trial rows[MAX];
    double *x[MAX], values[MAX];
    size_t n_confirm, n_even; /* n_even: of them, in the first half */
    double confirm_s, all_s;
    enum confirm_turn last;
};

/* One trial more; a confirming one runs the config of the first and costs twice as much as others. */
static void play_trial(struct played *p, const struct confirm_plan *plan, double cost_s)
{
    size_t i = p->view.n++;
    bool confirm = plan->turn >= CONFIRM_FIRST;
    struct trial *t = &p->trials[i];

    *t = (struct trial){.number = (int64_t)i, .state = TRIAL_DONE, .score = 1, .device_s = cost_s};
    t->origin = (char *)(confirm ? CONFIRM_ORIGIN : "ehvi");
    t->cost_s = confirm ? 2 * cost_s : cost_s;
    p->values[i] = confirm ? p->values[0] : (double)i;
    p->x[i] = &p->values[i];
    p->rows[i] = (struct gp_trial){.x = p->x[i], .state = GP_TRIAL_DONE, .score = 1, .cost = t->cost_s};
    p->n_confirm += confirm;
    p->confirm_s += confirm ? t->cost_s : 0;
    p->all_s += t->cost_s;
    p->last = plan->turn;
}

static struct played *begin(void)
{
    struct played *p = calloc(1, sizeof *p);

    assert_non_null(p);
    p->view.search.space.dim = 1;
    p->view.trials = p->trials;
    p->view.gp = p->rows;
    p->view.x = p->x;
    return p;
}

/* A study of n trials spends its share of them, half of it on the way, and ends with such a run. */
TEST(by_trials)
{
    static const struct {
        int64_t n;
        double share;
        size_t confirm;
    } cases[] = {{4, 0.2, 0}, {5, 0.2, 1}, {24, 0.2, 4}, {100, 0.2, 20}, {100, 0.5, 50}, {300, 0.05, 15}, {40, 0, 0}};

    for (size_t c = 0; c < COUNT(cases); c++) {
        struct sweep_settings settings = {.confirm = cases[c].share};
        struct played *p = begin();
        struct confirm_plan plan;
        size_t half = 0;
        p->view.study.limits.trials_max = cases[c].n;
        for (int64_t i = 0; i < cases[c].n; i++) {
            confirm_plan_make(&p->view, &settings, 0, 0, &plan);
            play_trial(p, &plan, 1 + (double)(i % 7));
            half = i == cases[c].n / 2 ? p->n_confirm : half;
        }
        assert_int_equal(p->n_confirm, cases[c].confirm);
        if (p->n_confirm > 0)
            assert_int_equal(p->last, CONFIRM_LAST);
        if (cases[c].n >= 100) /* on the way, and evenly */
            assert_in_range(half, p->n_confirm / 5, p->n_confirm / 3);
        free(p);
    }
}

/* How many may be proposed together: never past the start of the end's share; then a quarter of what is left, since the
 * next ones are to confirm what these find. */
TEST(batches_of_the_end_get_smaller)
{
    static const size_t together[][2] = {{0, 64}, {40, 40}, {79, 1}, {80, 5}, {90, 2}, {97, 1}, {98, 1}};
    struct sweep_settings settings = {.confirm = 0.2};
    struct confirm_plan plan = {.turn = CONFIRM_NO};
    MEM_LOCAL struct played *p = begin();

    p->view.study.limits.trials_max = 100;
    for (size_t i = 0; i < COUNT(together); i++) {
        while (p->view.n < together[i][0])
            play_trial(p, &(struct confirm_plan){.turn = CONFIRM_NO}, 1);
        confirm_plan_make(&p->view, &settings, 0, 0, &plan);
        assert_int_equal(plan.at_once, together[i][1]);
    }
}

/* Seconds are shared like trials: the share is never passed by more than rounding, also by runs that cost more than
 * others. */
TEST(by_seconds)
{
    struct sweep_settings settings = {.confirm = 0.2};

    for (int device = 0; device < 2; device++) {
        struct played *p = begin();
        struct confirm_plan plan;
        double budget_s = 600, spent_s = 0;
        *(device ? &p->view.study.limits.device_max_s : &p->view.study.limits.budget_s) = budget_s;
        while (spent_s < budget_s) {
            confirm_plan_make(&p->view, &settings, 0, 0, &plan);
            if (plan.turn >= CONFIRM_FIRST && 2 * 6.0 > plan.cost_left) /* as the proposer does */
                plan.turn = CONFIRM_NO;
            play_trial(p, &plan, 6);
            spent_s = 0;
            for (size_t i = 0; i < p->view.n; i++)
                spent_s += device ? p->trials[i].device_s : p->trials[i].cost_s;
        }
        double share = 0;
        for (size_t i = 0; i < p->view.n; i++)
            share += !trial_is_confirming(&p->trials[i]) ? 0 : device ? p->trials[i].device_s : p->trials[i].cost_s;
        assert_true(share <= 0.2 * budget_s && share >= 0.15 * budget_s);
        free(p);
    }
}

/* By the clock: the last part of the time confirms, and the share of training that it took is bounded. */
TEST(by_time)
{
    struct sweep_settings settings = {.confirm = 0.2};
    MEM_LOCAL struct played *p = begin();
    struct confirm_plan plan;
    double wall_s = 0;

    p->view.study.limits.wall_max_s = 1000;
    while (wall_s < 1000) {
        confirm_plan_make(&p->view, &settings, 0, wall_s, &plan);
        play_trial(p, &plan, 4);
        wall_s = p->all_s * 1.25;
    }
    assert_true(p->confirm_s <= 0.21 * p->all_s && p->confirm_s >= 0.15 * p->all_s);
    assert_true(p->last >= CONFIRM_END);
}

/* Without an end in sight the share is one of what there is, at any time. */
TEST(without_end)
{
    struct sweep_settings settings = {.confirm = 0.25};
    MEM_LOCAL struct played *p = begin();
    struct confirm_plan plan;

    while (p->view.n < MAX) {
        confirm_plan_make(&p->view, &settings, 0, 0, &plan);
        play_trial(p, &plan, 1);
        assert_true((double)p->n_confirm <= 0.25 * (double)p->view.n);
    }
    assert_true((double)p->n_confirm > 0.2 * MAX);
    assert_true(p->last < CONFIRM_END);
}

/* Runs under way count as made, by what their config has cost before: many slots do not pass the share together. */
TEST(runs_under_way_count)
{
    struct sweep_settings settings = {.confirm = 0.2};
    MEM_LOCAL struct played *p = begin();
    struct confirm_plan plan = {.turn = CONFIRM_NO};
    size_t n = 0;

    p->view.study.limits.budget_s = 100;
    for (int i = 0; i < 20; i++)
        play_trial(p, &plan, 4); /* 80 of 100 s are spent, the last 20 are the share */
    for (; n < 20; n++) {
        confirm_plan_make(&p->view, &settings, 0, 0, &plan);
        if (plan.turn < CONFIRM_FIRST)
            break;
        play_trial(p, &plan, 4);
        p->trials[p->view.n - 1].state = TRIAL_RUNNING;
        p->trials[p->view.n - 1].cost_s = NAN;
        p->rows[p->view.n - 1].state = GP_TRIAL_PENDING;
    }
    assert_int_equal(n, 5); /* of 4 s each */
}

/* ---- which config: the proposer's thread asked directly ---- */

#define POINTS 12

struct asked {
    struct space space;
    double x[2 * POINTS][1];
    struct gp_trial trials[2 * POINTS];
    struct gp_history history;
    struct proposer *proposer;
    int wake_fd;
    size_t n_advised; /* trials of the last answer's advice */
};

/* Scores rise with x and bend at 8; cost is 1 to 12. Levels: points of a finite space, 0: all numbers. */
static struct asked *ask_begin(double levels)
{
    struct asked *a = calloc(1, sizeof *a);
    const struct suggest_settings settings = {.method = SUGGEST_RANDOM, .seed = 7};

    assert_non_null(a);
    a->space.dim = 1;
    a->space.params[0] = (struct space_param){
        .key = "train.x", .scale = SPACE_LINEAR, .is_int = levels > 0, .min = 1, .max = levels > 0 ? levels : POINTS};
    for (size_t i = 0; i < POINTS; i++) {
        a->x[i][0] = (double)(i + 1);
        a->trials[i] = (struct gp_trial){.x = a->x[i],
                                         .state = GP_TRIAL_DONE,
                                         .score = fmin((double)(i + 1), 8) + 0.01 * (double)i,
                                         .cost = (double)(i + 1)};
    }
    a->history = (struct gp_history){.n = POINTS, .trials = a->trials};
    a->wake_fd = eventfd(0, EFD_CLOEXEC);
    assert_true(a->wake_fd >= 0);
    OK(proposer_create(&a->proposer, &a->space, &settings, a->wake_fd, err));
    return a;
}

static void ask_end(struct asked *a)
{
    proposer_destroy(a->proposer);
    close(a->wake_fd);
    free(a);
}

static enum status ask_for(struct asked *a, struct confirm_plan plan, size_t n_wanted, struct proposal *ret)
{
    struct error why = {0};
    uint64_t n;

    proposer_ask(a->proposer, &a->history, (int64_t)a->history.n, &plan, n_wanted);
    assert_int_equal(read(a->wake_fd, &n, sizeof n), sizeof n);
    assert_true(proposer_take(a->proposer, ret, &why));
    a->n_advised = ret->advice.n;
    gp_insight_free(&ret->advice);
    return ret->status;
}

static enum status ask_plan(struct asked *a, struct confirm_plan plan, struct proposal *ret)
{
    return ask_for(a, plan, 1, ret);
}

static enum status ask_near(struct asked *a, enum confirm_turn turn, enum confirm_target target, double cost_left,
                            struct proposal *ret)
{
    return ask_plan(a, (struct confirm_plan){.turn = turn, .target = target, .cost_left = cost_left}, ret);
}

static enum status ask(struct asked *a, enum confirm_turn turn, double cost_left, struct proposal *ret)
{
    return ask_near(a, turn, TARGET_FAR, cost_left, ret);
}

/* One more run of x, done or under way. */
static void add_run(struct asked *a, double x, bool done)
{
    size_t i = a->history.n++;

    a->x[i][0] = x;
    a->trials[i] = (struct gp_trial){.x = a->x[i],
                                     .state = done ? GP_TRIAL_DONE : GP_TRIAL_PENDING,
                                     .score = a->trials[(size_t)x - 1].score,
                                     .cost = x};
}

static double pick_of(const struct asked *a, enum gp_rule rule)
{
    AT_END(gp_insight_free) struct gp_insight advice = {0};

    gp_beliefs_init(&advice, &a->space, &a->history);
    struct gp_picked picked = gp_pick(&advice, &a->history, rule, 0);
    return picked.i < a->history.n ? a->trials[picked.i].x[0] : (double)NAN;
}

TEST(best_and_knee_come_first_at_the_end)
{
    struct asked *a = ask_begin(0);
    struct proposal p;

    double best = pick_of(a, GP_BEST);
    assert_int_equal(ask(a, CONFIRM_END, INFINITY, &p), ST_OK);
    assert_string_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    assert_true(p.suggestions[0].x[0] == best);
    add_run(a, best, false); /* under way: it counts as made, and the knee is next where there is one */
    double knee = pick_of(a, GP_KNEE);
    assert_int_equal(ask(a, CONFIRM_END, INFINITY, &p), ST_OK);
    assert_string_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    if (!isnan(knee) && knee != best)
        assert_true(p.suggestions[0].x[0] == knee);
    ask_end(a);
}

/* With best and knee confirmed, the last runs go to what would be the best if the best fell; then to the best again. */
TEST(the_last_runs_try_the_runner_up)
{
    struct asked *a = ask_begin(0);
    struct proposal p;

    double best = pick_of(a, GP_BEST), knee = pick_of(a, GP_KNEE);
    add_run(a, best, true);
    if (!isnan(knee) && knee != best)
        add_run(a, knee, true);
    assert_int_equal(ask(a, CONFIRM_LAST, INFINITY, &p), ST_OK);
    assert_string_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    assert_true(p.suggestions[0].x[0] != best && p.suggestions[0].x[0] >= 7); /* of the plateau, the best seen once */
    ask_end(a);
}

TEST(what_costs_more_than_is_left_is_not_run_again)
{
    struct asked *a = ask_begin(0);
    struct proposal p;

    assert_int_equal(ask(a, CONFIRM_END, pick_of(a, GP_BEST) - 0.5, &p), ST_OK);
    assert_string_not_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    assert_int_equal(ask(a, CONFIRM_NO, INFINITY, &p), ST_OK);
    assert_string_not_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    ask_end(a);
}

/* Of proposals that are asked for together as many confirm as there is room for, each as if it had been asked for after
 * those before it; the rest are new. */
TEST(a_batch_confirms_as_one_after_another)
{
    struct asked *a = ask_begin(0);
    const struct confirm_plan plan = {.turn = CONFIRM_FIRST, .cost_left = INFINITY, .again = 3};
    struct proposal all, one;

    assert_int_equal(ask_for(a, plan, 8, &all), ST_OK);
    assert_int_equal(all.n, 8);
    assert_int_equal(a->n_advised, POINTS);
    for (size_t k = 0; k < 3; k++) {
        assert_int_equal(ask_plan(a, plan, &one), ST_OK);
        assert_string_equal(one.suggestions[0].origin, CONFIRM_ORIGIN);
        assert_string_equal(all.suggestions[k].origin, CONFIRM_ORIGIN);
        assert_true(all.suggestions[k].x[0] == one.suggestions[0].x[0]);
        add_run(a, one.suggestions[0].x[0], false);
    }
    for (size_t k = 3; k < 8; k++)
        assert_string_equal(all.suggestions[k].origin, "random");
    ask_end(a);
}

/* Beside many others the runs on the way are looked for once in as many results; at the end nothing waits. */
TEST(batches_look_for_what_to_confirm_once_a_generation)
{
    static const struct {
        enum confirm_turn turn, then;
        size_t n, n_since, n_busy;
    } of[] = {
        {CONFIRM_FIRST, CONFIRM_FIRST, 1, 0, 4},    {CONFIRM_FIRST, CONFIRM_IF_STUCK, 2, 7, 8},
        {CONFIRM_FIRST, CONFIRM_FIRST, 2, 8, 8},    {CONFIRM_FIRST, CONFIRM_IF_STUCK, 16, 16, 64},
        {CONFIRM_FIRST, CONFIRM_FIRST, 16, 80, 64}, {CONFIRM_IF_STUCK, CONFIRM_IF_STUCK, 16, 80, 64},
        {CONFIRM_END, CONFIRM_END, 16, 0, 64},      {CONFIRM_LAST, CONFIRM_LAST, 2, 0, 64},
        {CONFIRM_NO, CONFIRM_NO, 16, 80, 64},
    };

    for (size_t k = 0; k < COUNT(of); k++) {
        struct confirm_plan plan = {.turn = of[k].turn};
        assert_int_equal(confirm_plan_spread(&plan, of[k].n, of[k].n_since, of[k].n_busy), of[k].then >= CONFIRM_FIRST);
        assert_int_equal(plan.turn, of[k].then);
    }
}

/* When a small space is used up, what is left of the share still confirms; without a share the study has ended. */
TEST(a_space_that_is_used_up_is_confirmed)
{
    struct asked *a = ask_begin(POINTS);
    struct proposal p;

    assert_int_equal(ask(a, CONFIRM_NO, INFINITY, &p), ST_LIMIT);
    assert_int_equal(ask(a, CONFIRM_IF_STUCK, INFINITY, &p), ST_OK);
    assert_string_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    ask_end(a);
}

/* A run at the target is followed by another of the best config, whatever the share, and by no third. */
TEST(a_target_is_confirmed)
{
    struct asked *a = ask_begin(0);
    struct proposal p;

    double best = pick_of(a, GP_BEST);
    assert_int_equal(ask_near(a, CONFIRM_NO, TARGET_CONFIRM, 0, &p), ST_OK);
    assert_string_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    assert_true(p.suggestions[0].x[0] == best);
    add_run(a, best, true);
    if (pick_of(a, GP_BEST) == best) {
        assert_int_equal(ask_near(a, CONFIRM_NO, TARGET_CONFIRM, 0, &p), ST_OK);
        assert_string_not_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
        assert_int_equal(a->n_advised, a->history.n); /* it is known what the best is worth now */
    }
    assert_int_equal(ask_near(a, CONFIRM_NO, TARGET_ADVISE, 0, &p), ST_OK);
    assert_string_not_equal(p.suggestions[0].origin, CONFIRM_ORIGIN);
    assert_int_equal(a->n_advised, a->history.n);
    assert_int_equal(ask(a, CONFIRM_NO, 0, &p), ST_OK);
    assert_int_equal(a->n_advised, 0);
    ask_end(a);
}

/* Further seeds come before anything else and need no share; with all of them made, the study confirms and proposes. */
TEST(seeds_come_first)
{
    struct asked *a = ask_begin(POINTS);
    struct proposal p;
    const struct confirm_plan plan = {.turn = CONFIRM_END, .seeds = 2, .cost_left = 0};

    a->history.n = POINTS - 2; /* two points of the space are new */
    assert_int_equal(ask_plan(a, plan, &p), ST_OK);
    assert_string_equal(p.suggestions[0].origin, SEED_ORIGIN);
    assert_true(p.suggestions[0].x[0] ==
                1); /* the oldest; the scores have no noise, and none is beaten by a cheaper one */
    const size_t n_before = a->history.n;
    while (ask_plan(a, plan, &p), strcmp(p.suggestions[0].origin, SEED_ORIGIN) == 0) {
        assert_true(a->history.n < 2 * n_before);
        add_run(a, p.suggestions[0].x[0], false);
    }
    assert_true(p.status == ST_OK && p.suggestions[0].x[0] > POINTS - 2); /* what is confirmed costs too much */
    ask_end(a);
}

/* ---- when the target is met ---- */

static bool ends_by_target_with(struct played *p, double expected, size_t n_seeds, double confirm, int64_t seeds)
{
    struct gp_belief beliefs[4] = {[2] = {.score = expected, .n_seeds = n_seeds}};
    size_t points[4] = {0, 1, 2, 3};
    struct setup *setup = calloc(1, sizeof *setup);
    struct sched_study *ss = calloc(1, sizeof *ss);
    struct study_end end;

    assert_true(setup != NULL && ss != NULL);
    setup->sweep.confirm = confirm;
    setup->sweep.seeds = seeds;
    ss->setup = setup;
    ss->view = p->view;
    ss->view.study.metric = (char *)"score";
    ss->view.advice = (struct gp_insight){.n = 4, .beliefs = beliefs, .point = points, .recommended = 2};
    stop_rules_check(ss, 0, 0, &end);
    free(ss);
    free(setup);
    return end.rule != NULL && strcmp(end.rule, "target") == 0;
}

static bool ends_by_target(struct played *p, double expected, size_t n_seeds, double confirm)
{
    return ends_by_target_with(p, expected, n_seeds, confirm, 1);
}

/* The expected score of the best config decides, not the luckiest run; where the study confirms, from two runs. */
TEST(one_lucky_run_meets_no_target)
{
    for (int minimize = 0; minimize < 2; minimize++) {
        const double sign = minimize ? -1 : 1;
        const struct confirm_plan plan = {.turn = CONFIRM_NO};
        struct sweep_settings settings = {.confirm = 0.2};
        struct confirm_plan next;
        struct played *p = begin();
        for (size_t i = 0; i < 4; i++) {
            play_trial(p, &plan, 1);
            p->rows[i].score = i == 1 ? 12 : (double)i;
            p->trials[i].score = sign * p->rows[i].score;
        }
        p->view.history = (struct gp_history){.n = 4, .trials = p->rows};
        p->view.study.maximize = !minimize;
        p->view.study.limits = (struct limits){.has_target = true, .target_score = sign * 10};
        assert_false(ends_by_target(p, 9.9, 5, 0.2)); /* run 1 is better than the target */
        assert_false(ends_by_target(p, 10.1, 1, 0.2));
        assert_true(ends_by_target(p, 10.1, 2, 0.2));
        assert_true(ends_by_target(p, 10.1, 1, 0));
        assert_false(ends_by_target(p, 9.9, 1, 0));
        assert_false(ends_by_target_with(p, 10.1, 1, 0, 2)); /* sweep.seeds: its second run has not ended */
        p->values[3] = p->values[2];
        assert_true(ends_by_target_with(p, 10.1, 2, 0, 2));
        p->rows[3].state = GP_TRIAL_PENDING;
        assert_false(ends_by_target_with(p, 10.1, 1, 0, 2));
        p->rows[3].state = GP_TRIAL_FAILED; /* it ends no other way */
        assert_true(ends_by_target_with(p, 10.1, 1, 0, 2));
        p->rows[3].state = GP_TRIAL_DONE;
        p->values[3] = 3;
        confirm_plan_make(&p->view, &settings, 0, 0, &next);
        assert_int_equal(next.target, TARGET_CONFIRM);
        settings.confirm = 0;
        confirm_plan_make(&p->view, &settings, 0, 0, &next);
        assert_int_equal(next.target, TARGET_ADVISE);
        p->view.study.limits.target_score = sign * 13; /* no run has reached it */
        assert_false(ends_by_target(p, 14, 2, 0.2));
        confirm_plan_make(&p->view, &settings, 0, 0, &next);
        assert_int_equal(next.target, TARGET_FAR);
        free(p);
    }
}

/* Training that was lost is spent: the last runs of what is left confirm. */
TEST(what_was_lost_is_spent)
{
    struct sweep_settings settings = {.confirm = 0.2};
    struct confirm_plan plan = {.turn = CONFIRM_NO};

    for (int device = 0; device < 2; device++) {
        struct played *p = begin();
        *(device ? &p->view.study.limits.device_max_s : &p->view.study.limits.budget_s) = 100;
        for (int i = 0; i < 10; i++)
            play_trial(p, &plan, 2); /* 20 of 100 s */
        confirm_plan_make(&p->view, &settings, 0, 0, &plan);
        assert_true(plan.turn < CONFIRM_END);
        p->view.study.lost_s = 70;
        confirm_plan_make(&p->view, &settings, 0, 0, &plan);
        assert_true(plan.turn >= CONFIRM_END);
        plan.turn = CONFIRM_NO;
        free(p);
    }
}

TEST_PROGRAM("confirm")
