/* play.c - one study on a problem, in virtual time, and its measures.
 * A trial lasts as long as its cost; with K in parallel, the next proposal is asked for when the first of the K ends,
 * and sees the others as pending; from 17 on a few at a time, as the controller does. Measures are taken on true
 * values, in the order in which trials ended.
 * Invariants: (1) a method sees drawn outcomes of ended trials only; (2) the outcome of trial k is drawn from the
 * stream (seed, k), so that methods of one seed are paired; (3) no wall clock enters anything but the latencies. */
#include "bench/sweep/play.h"
#include "gp/gp_priv.h"

#define UNSEEN 20 /* draws that judge the recommended point */
#define APART 1.1 /* as in study/space/branches.c */

enum { STREAM_DRAW = 1, STREAM_UNSEEN };

void play_init(struct play *study, const struct problem *problem, const char *method, uint64_t seed, size_t max_trials,
               size_t parallel)
{
    size_t dim = problem->space.dim;

    *study = (struct play){.problem = problem,
                           .method = method,
                           .seed = seed,
                           .max_trials = max_trials,
                           .parallel = parallel,
                           .scale = 1.0};
    study->trials = mem_array(max_trials, sizeof *study->trials);
    study->order = mem_array(max_trials, sizeof *study->order);
    study->x = mem_array2(max_trials, dim, sizeof *study->x);
    study->latency_s = mem_array(max_trials, sizeof *study->latency_s);
    study->row = mem_array(max_trials, sizeof *study->row);
}

void play_free(struct play *study)
{
    mem_free(study->trials);
    mem_free(study->order);
    mem_free(study->x);
    mem_free(study->latency_s);
    mem_free(study->row);
    *study = (struct play){0};
}

/* What run `number` gave at x: at its own point, or at one with a shorter length, which is then a part of its
 * course. */
static void draw(const struct play *study, size_t number, const double *x, struct outcome *ret)
{
    struct rng rng = rng_split(rng_split(rng_seed(study->seed), STREAM_DRAW), number);

    study->problem->ops->draw(study->problem, x, &rng, ret);
    ret->score = study->offset + study->scale * ret->score;
}

void play_start(struct play *study, const double *x, double now)
{
    size_t number = study->n_started++, dim = study->problem->space.dim;
    struct play_trial *t = &study->trials[number];

    t->x = study->x + number * dim;
    memcpy(t->x, x, dim * sizeof *x);
    draw(study, number, x, &t->seen);
    t->start = now;
    t->end = now + t->seen.cost;
}

/* What came of a trial that models proposed, against what they expected of one run. */
static void compare(struct play_trial *t, const struct suggestion *proposed)
{
    t->is_predicted = proposed->has_prediction && !t->seen.failed;
    if (!t->is_predicted)
        return;
    t->score_z = (t->seen.score - proposed->score_mean) / proposed->score_sd;
    t->cost_z = (log(t->seen.cost) - proposed->log_cost_mean) / proposed->log_cost_sd;
}

size_t play_branches(const struct play *study, size_t number, double *ret_x, struct outcome *ret_seen)
{
    const struct space *space = &study->problem->space;
    const double *x = study->trials[number].x;
    size_t steps = space_steps_param(space), n = 0, dim = space->dim;
    double last = 0.0, least = steps < dim ? space->params[steps].min : 0.0;

    for (size_t k = 0; k < study->branches && steps < dim; k++) {
        double *at = ret_x + n * dim;
        double length = least * pow(x[steps] / least, (double)k / (double)study->branches);
        memcpy(at, x, dim * sizeof *x);
        at[steps] = space->params[steps].is_int ? ceil(length) : length;
        if (at[steps] > x[steps] / APART || at[steps] < APART * last)
            continue;
        last = at[steps];
        draw(study, number, at, &ret_seen[n]);
        n += !ret_seen[n].failed;
    }
    return n;
}

/* The trial that ends first among those under way; of equals the lower number. */
static size_t first_to_end(const struct play *study, const struct gp_trial *rows)
{
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < study->n_started; i++)
        if (rows[study->row[i]].state == GP_TRIAL_PENDING &&
            (first == SIZE_MAX || study->trials[i].end < study->trials[first].end))
            first = i;
    return first;
}

/* As a method sees an ended trial. */
static struct gp_trial ended(const struct play *study, size_t number)
{
    const struct outcome *seen = &study->trials[number].seen;
    bool kept = !study->sees_limit || problem_is_kept(study->problem, seen);

    return (struct gp_trial){.x = study->trials[number].x,
                             .state = seen->failed ? GP_TRIAL_FAILED
                                      : kept       ? GP_TRIAL_DONE
                                                   : GP_TRIAL_INFEASIBLE,
                             .score = seen->score,
                             .cost = seen->cost,
                             .is_start = study->trials[number].is_start,
                             .outcomes = {seen->limited}};
}

static struct gp_history history_of(const struct play *study, const struct gp_trial *trials, size_t n)
{
    return (struct gp_history){
        .n = n, .trials = trials, .n_limits = study->sees_limit, .limits = &study->problem->limit};
}

/* The finished trials of another study, as `trawl sweep --from` gives them. */
static void take_source(const struct play *source, struct gp_history *history, struct gp_trial **ret_trials)
{
    struct gp_trial *trials = mem_array(source->n_done, sizeof *trials);

    for (size_t i = 0; i < source->n_done; i++) {
        const struct outcome *seen = &source->trials[i].seen;
        if (!seen->failed)
            trials[history->n_other++] = (struct gp_trial){
                .x = source->trials[i].x, .state = GP_TRIAL_DONE, .score = seen->score, .cost = seen->cost};
    }
    history->other = *ret_trials = trials;
}

/* Rows of what ended run `number` held on its way; x: their memory, (branches, dim) a run. */
static void add_branches(const struct play *study, size_t number, double *x, struct gp_history *history,
                         struct gp_trial *rows)
{
    size_t dim = study->problem->space.dim;
    MEM_LOCAL struct outcome *seen = mem_array(study->branches + 1, sizeof *seen);
    double *own = x + number * study->branches * dim;
    size_t n = play_branches(study, number, own, seen);

    for (size_t k = 0; k < n; k++)
        rows[history->n++] = (struct gp_trial){.x = own + k * dim,
                                               .state = GP_TRIAL_DONE,
                                               .score = seen[k].score,
                                               .cost = seen[k].cost,
                                               .is_branch = true};
}

/* As many proposals as a controller asks for with that number of workers. */
static enum status ask(const struct play *study, struct suggester *suggester, const struct gp_history *history,
                       struct suggestion *ret, size_t *ret_n, struct error *err)
{
    size_t under_way = study->n_started - study->n_done, left = study->max_trials - study->n_started;
    size_t n = suggester_batch_size(study->parallel, study->parallel - under_way);

    return suggester_batch(suggester, history, (int64_t)study->n_started, n < left ? n : left, ret, ret_n, err);
}

enum status play_run(struct play *study, struct play_method method, struct error *err)
{
    struct suggest_settings settings = {.method = method.own, .seed = study->seed};
    struct suggester *suggester = NULL;
    MEM_LOCAL struct gp_trial *rows = mem_array2(study->max_trials, 1 + study->branches, sizeof *rows);
    MEM_LOCAL double *branch_x =
        mem_array2(study->max_trials * study->branches, study->problem->space.dim, sizeof *branch_x);
    MEM_LOCAL struct gp_trial *taught = NULL;
    struct gp_history history;
    struct suggestion ahead[SUGGEST_BATCH_MAX]; /* made and not yet started, from at_ahead to before n_ahead */
    size_t n_ahead = 0, at_ahead = 0;
    enum status rc = ST_OK;
    double now = 0.0;

    study->sees_limit = study->problem->has_limit && !method.ignores_limit;
    history = history_of(study, rows, 0);
    history.other_game = study->other_game;
    if (study->source != NULL)
        take_source(study->source, &history, &taught);
    rc = suggester_create(&suggester, &study->problem->space, &settings, err);
    while (rc == ST_OK && study->n_done < study->max_trials) {
        while (study->n_started < study->max_trials && study->n_started - study->n_done < study->parallel) {
            if (at_ahead == n_ahead) {
                double start = clock_mono_s();
                rc = ask(study, suggester, &history, ahead, &n_ahead, err);
                if (rc != ST_OK)
                    goto done;
                study->latency_s[study->n_latency++] = clock_mono_s() - start;
                at_ahead = 0;
            }
            study->row[study->n_started] = history.n;
            play_start(study, ahead[at_ahead].x, now);
            study->trials[study->n_started - 1].is_start = strcmp(ahead[at_ahead].origin, SUGGEST_START_ORIGIN) == 0;
            compare(&study->trials[study->n_started - 1], &ahead[at_ahead++]);
            rows[history.n++] =
                (struct gp_trial){.x = study->trials[study->n_started - 1].x, .state = GP_TRIAL_PENDING};
        }
        size_t number = first_to_end(study, rows);
        now = study->trials[number].end;
        study->order[study->n_done++] = number;
        rows[study->row[number]] = ended(study, number);
        if (study->branches > 0)
            add_branches(study, number, branch_x, &history, rows);
    }
done:
    suggester_destroy(suggester);
    return rc;
}

/* ---- measures ---- */

static double quantile(double *values, size_t n, double q) /* sorts */
{
    if (n == 0)
        return (double)NAN;
    num_sort(values, n);
    size_t at = (size_t)(q * (double)n);
    return values[at < n ? at : n - 1];
}

static double round5(double v)
{
    return rint(v * 1e5) / 1e5;
}

/* Where a score lies between the median of random designs (0) and the best known (1). */
static double reached(const struct known *known, double score)
{
    return (score - known->ref_score) / (known->best_score - known->ref_score);
}

/* The trial that `trawl show` recommends; n_done if none. */
static size_t recommended(const struct play *study)
{
    MEM_LOCAL struct gp_trial *trials = mem_array(study->n_done > 0 ? study->n_done : 1, sizeof *trials);
    struct gp_history history = history_of(study, trials, study->n_done);
    AT_END(gp_insight_free) struct gp_insight insight = {0};

    for (size_t i = 0; i < study->n_done; i++)
        trials[i] = ended(study, i);
    gp_insight_init(&insight, &study->problem->space, &history, study->seed);
    size_t number = insight.recommended;
    return number;
}

static double mean_of_unseen(const struct play *study, size_t number)
{
    struct rng rng = rng_split(rng_seed(study->seed), STREAM_UNSEEN);
    double sum = 0.0;
    size_t n = 0;

    for (uint64_t i = 0; i < UNSEEN; i++) {
        struct rng r = rng_split(rng, i);
        struct outcome o;
        study->problem->ops->draw(study->problem, study->trials[number].x, &r, &o);
        if (!o.failed) {
            sum += o.score;
            n++;
        }
    }
    return n > 0 ? sum / (double)n : (double)NAN;
}

static void add_recommended(cJSON *json, const struct play *study, const struct known *known, double best_seen)
{
    size_t number = recommended(study);
    double mean = number < study->n_done ? mean_of_unseen(study, number) : (double)NAN;

    json_add_f64(json, "recommended_regret", round5(1.0 - reached(known, mean)));
    json_add_f64(json, "recommended_gap", round5(reached(known, best_seen) - reached(known, mean)));
}

static void add_number(cJSON *array, double value)
{
    cJSON_AddItemToArray(array, cJSON_CreateNumber(round5(value)));
}

/* The true values of what run `number` held on its way. Returns how many. */
static size_t add_branch_points(const struct play *study, size_t number, struct outcome *points)
{
    size_t dim = study->problem->space.dim;
    MEM_LOCAL double *x = mem_array2(study->branches + 1, dim, sizeof *x);
    MEM_LOCAL struct outcome *seen = mem_array(study->branches + 1, sizeof *seen);
    size_t n = play_branches(study, number, x, seen);

    study->problem->ops->truth(study->problem, n, x, points);
    return n;
}

/* Regret, spent cost (in units of the reference cost) and reached score after each ended run. */
static void add_course(cJSON *json, struct play *study, const struct known *known, struct outcome *points,
                       double *ret_best)
{
    cJSON *regret = cJSON_AddArrayToObject(json, "regret"), *spent = cJSON_AddArrayToObject(json, "spent"),
          *score = cJSON_AddArrayToObject(json, "reached");
    double sum = 0.0;
    size_t n = 0, n_failed = 0, n_broken = 0;

    *ret_best = -(double)INFINITY;
    for (size_t i = 0; i < study->n_done; i++) {
        struct play_trial *t = &study->trials[study->order[i]];
        study->problem->ops->truth(study->problem, 1, t->x, &t->truth);
        sum += t->seen.cost;
        n_failed += t->seen.failed;
        n_broken += !t->seen.failed && !problem_is_kept(study->problem, &t->truth);
        if (!t->seen.failed && problem_is_kept(study->problem, &t->truth)) {
            points[n++] = t->truth;
            *ret_best = fmax(*ret_best, t->truth.score);
        }
        n += add_branch_points(study, study->order[i], points + n);
        add_number(regret, 1.0 - known_hypervolume(points, n, known) / known->hypervolume);
        add_number(spent, sum / known->ref_cost);
        cJSON_AddItemToArray(score, t->seen.failed ? cJSON_CreateNull()
                                                   : cJSON_CreateNumber(round5(reached(known, t->truth.score))));
    }
    json_add_i64(json, "failed", (int64_t)n_failed);
    json_add_i64(json, "infeasible", (int64_t)n_broken);
}

/* Is each coordinate of z inside the 95 % interval that the results before trial i's start let predict? */
static void look_inside(const struct play *study, size_t i, bool *ret_score, bool *ret_cost)
{
    const struct play_trial *t = &study->trials[i];
    double score = 0.0, cost = 0.0;
    size_t n = 0;

    for (size_t k = 0; k < study->n_started; k++) {
        const struct play_trial *before = &study->trials[k];
        if (!before->is_predicted || before->end > t->start)
            continue;
        score += before->score_z * before->score_z;
        cost += before->cost_z * before->cost_z;
        n++;
    }
    *ret_score = fabs(t->score_z) <= gp_miss_95(score, n);
    *ret_cost = fabs(t->cost_z) <= gp_miss_95(cost, n);
}

/* Of the trials that models proposed: mean deviations from what they expected, shares inside the predicted 95 %, and
 * the share of coordinates on bounds of the space. */
static void add_calibration(cJSON *json, const struct play *study)
{
    const struct space *space = &study->problem->space;
    double score_z = 0.0, cost_z = 0.0, scores_inside = 0.0, costs_inside = 0.0, on_bounds = 0.0, n = 0.0;
    bool score_inside, cost_inside;

    for (size_t i = 0; i < study->n_started; i++) {
        const struct play_trial *t = &study->trials[i];
        if (!t->is_predicted)
            continue;
        n++;
        score_z += t->score_z;
        cost_z += t->cost_z;
        look_inside(study, i, &score_inside, &cost_inside);
        scores_inside += score_inside;
        costs_inside += cost_inside;
        for (size_t c = 0; c < space->dim; c++)
            on_bounds += (t->x[c] <= space->params[c].min || t->x[c] >= space->params[c].max) / (double)space->dim;
    }
    json_add_i64(json, "predicted", (int64_t)n);
    if (n == 0.0)
        return;
    json_add_f64(json, "score_z", round5(score_z / n));
    json_add_f64(json, "cost_z", round5(cost_z / n));
    json_add_f64(json, "scores_inside", round5(scores_inside / n));
    json_add_f64(json, "costs_inside", round5(costs_inside / n));
    json_add_f64(json, "on_bounds", round5(on_bounds / n));
}

cJSON *play_measure(struct play *study, const struct known *known)
{
    cJSON *json = cJSON_CreateObject();
    MEM_LOCAL struct outcome *points = mem_array2(study->n_done, 1 + study->branches, sizeof *points);
    double best;

    json_add_str(json, "problem", study->problem->name);
    json_add_str(json, "method", study->method);
    json_add_i64(json, "seed", (int64_t)study->seed);
    json_add_i64(json, "trials", (int64_t)study->n_done);
    json_add_i64(json, "parallel", (int64_t)study->parallel);
    json_add_i64(json, "branches", (int64_t)study->branches);
    json_add_f64(json, "latency_p50_ms", 1e3 * quantile(study->latency_s, study->n_latency, 0.5));
    json_add_f64(json, "latency_p95_ms", 1e3 * quantile(study->latency_s, study->n_latency, 0.95));
    add_course(json, study, known, points, &best);
    add_recommended(json, study, known, best);
    add_calibration(json, study);
    return json;
}
