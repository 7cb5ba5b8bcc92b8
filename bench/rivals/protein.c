/* protein.c - the method `protein`: PufferLib 4.0's sweep logic as publicly described, written from that, to be
 * measured against. Ten Sobol points with the number of steps held low; then two Gaussian processes (score, ln cost)
 * and the best of many random points round the front by mean score * (1 - |t - cost|), where t walks a shuffled list
 * of target costs. No variance is used, running and failed trials are ignored, a repeat overwrites the earlier one: as
 * described.
 * Where the description leaves room:
 * - the parameter of the steps is the first whose key ends in total_timesteps, total_steps, steps or epoch;
 * - "near -0.8": -0.8 +- 0.05 uniform; "reduced steps": lower by up to 0.5, uniform;
 * - "pruned front": from its expensive end on, points whose gain in scaled score is less than half their rise in scaled
 *   cost over the point before are dropped, until one is not;
 * - targets .16 ... 1: .16 .32 .48 .64 .80 1, their noise of sd 0.05;
 * - the kernel: linear + Matern-3/2, lengths start at ln 2 in the box [-1, 1]; noise prior LogNormal(ln 0.01, 0.5);
 * - Adam's state is kept between calls there. Here a proposal is a function of the history: each call makes the 50
 *   steps from the start, with a step size of 1e-3 times the number of calls so far (at most 50), the same travel;
 * - its extra points along learning curves and its early stop are not here: a history has one result a trial;
 * - where an all-discrete space leaves only tried candidates, the next free Sobol point is taken.
 * Invariant: nothing is kept between calls. */
#include "bench/rivals/rivals.h"

#include "base/mem.h"
#include "base/text/num.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_DESIGN 10
#define MAX_ROWS 750
#define PER_CENTRE 256
#define N_TOP 5
#define HALF_WIDTH 0.5
#define ADAM_STEPS 50
#define ADAM_SIZE 1e-3
#define MAX_TRAVEL_CALLS 50
#define BLOCK 256

static const double targets[] = {0.16, 0.32, 0.48, 0.64, 0.80, 1.0};
#define N_TARGETS (sizeof targets / sizeof *targets)

struct row {
    double v[SPACE_MAX_DIM]; /* in the box */
    double score, cost; /* scaled: min-max; (ln cost - min) / (97 % quantile - min) */
    double log_cost;
};

struct protein {
    const struct space *space;
    size_t steps; /* parameter of the steps; dim: none */
    struct row *rows;
    size_t n;
    double cost_min, cost_span; /* of ln cost */
    struct rng rng;
};

static double clip(double v)
{
    return v < -1.0 ? -1.0 : v > 1.0 ? 1.0 : v;
}

/* The finished trials, a later one in place of an earlier one at the same point. */
static void collect(struct protein *p, const struct gp_history *history)
{
    p->rows = mem_array(history->n, sizeof *p->rows);
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i];
        size_t at = 0;
        double v[SPACE_MAX_DIM];
        if (t->state != GP_TRIAL_DONE && t->state != GP_TRIAL_STOPPED)
            continue;
        rival_to_box(p->space, t->x, v);
        while (at < p->n && memcmp(p->rows[at].v, v, p->space->dim * sizeof *v) != 0)
            at++;
        memcpy(p->rows[at].v, v, p->space->dim * sizeof *v);
        p->rows[at].score = t->score;
        p->rows[at].log_cost = log(t->cost);
        p->n += at == p->n;
    }
}

static void scale(struct protein *p)
{
    double lo = INFINITY, hi = -INFINITY, *costs = mem_array(p->n, sizeof *costs);
    for (size_t i = 0; i < p->n; i++) {
        lo = fmin(lo, p->rows[i].score);
        hi = fmax(hi, p->rows[i].score);
        costs[i] = p->rows[i].log_cost;
    }
    num_sort(costs, p->n);
    p->cost_min = costs[0];
    p->cost_span = fmax(costs[(size_t)(0.97 * (double)(p->n - 1) + 0.5)] - costs[0], 1e-9);
    mem_free(costs);
    for (size_t i = 0; i < p->n; i++) {
        struct row *r = &p->rows[i];
        r->score = hi > lo ? r->score / (hi - lo) - lo / (hi - lo) : 0.5;
        r->cost = (r->log_cost - p->cost_min) / p->cost_span;
    }
}

/* At most MAX_ROWS: the newest half, and a random half of the older. */
static void thin(struct protein *p)
{
    size_t half = MAX_ROWS / 2, old;
    if (p->n <= MAX_ROWS)
        return;
    old = p->n - half;
    for (size_t i = 0; i < MAX_ROWS - half; i++) {
        size_t j = i + rng_below(&p->rng, (uint32_t)(old - i));
        struct row swap = p->rows[i];
        p->rows[i] = p->rows[j];
        p->rows[j] = swap;
    }
    memmove(p->rows + (MAX_ROWS - half), p->rows + old, half * sizeof *p->rows);
    p->n = MAX_ROWS;
}

static int by_cost(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return (x->score < y->score) - (x->score > y->score);
}

static int by_score(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->score < y->score) - (x->score > y->score);
}

/* Centres (n, dim): the pruned front, then the best with fewer steps. centres has room for n + N_TOP. */
static size_t find_centres(struct protein *p, double *centres)
{
    size_t dim = p->space->dim, n = 0;
    struct row *front = mem_array(p->n, sizeof *front);
    memcpy(front, p->rows, p->n * sizeof *front);
    qsort(front, p->n, sizeof *front, by_cost);
    for (size_t i = 0; i < p->n; i++)
        if (n == 0 || front[i].score > front[n - 1].score)
            front[n++] = front[i];
    while (n > 1 && front[n - 1].score - front[n - 2].score < 0.5 * (front[n - 1].cost - front[n - 2].cost))
        n--;
    for (size_t i = 0; i < n; i++)
        memcpy(centres + i * dim, front[i].v, dim * sizeof *centres);
    memcpy(front, p->rows, p->n * sizeof *front);
    qsort(front, p->n, sizeof *front, by_score);
    for (size_t i = 0; i < p->n && i < N_TOP; i++, n++) {
        memcpy(centres + n * dim, front[i].v, dim * sizeof *centres);
        if (p->steps < dim)
            centres[n * dim + p->steps] = clip(centres[n * dim + p->steps] - 0.5 * rng_f64(&p->rng));
    }
    mem_free(front);
    return n;
}

/* The target of this trial: a list in a new order every N_TARGETS trials. */
static double target(const struct suggester *s, int64_t number, struct rng *noise)
{
    double list[N_TARGETS];
    struct rng rng = rng_split(rng_split(s->root, SUGGEST_STREAM_LOCAL), (uint64_t)number / N_TARGETS);
    memcpy(list, targets, sizeof list);
    for (size_t i = N_TARGETS - 1; i > 0; i--) {
        size_t j = rng_below(&rng, (uint32_t)(i + 1));
        double swap = list[i];
        list[i] = list[j];
        list[j] = swap;
    }
    return 1.1 * list[(uint64_t)number % N_TARGETS] + 0.05 * rival_normal(noise);
}

struct models {
    struct rival_gp score, cost;
};

static enum status fit(const struct protein *p, struct models *m, struct error *err)
{
    size_t calls = p->n > N_DESIGN ? p->n - N_DESIGN : 1, travel = calls < MAX_TRAVEL_CALLS ? calls : MAX_TRAVEL_CALLS;
    rival_gp_init(&m->score, p->space->dim, p->n, log(2.0));
    rival_gp_init(&m->cost, p->space->dim, p->n, log(2.0));
    for (size_t i = 0; i < p->n; i++) {
        rival_gp_add(&m->score, p->rows[i].v, p->rows[i].score);
        rival_gp_add(&m->cost, p->rows[i].v, p->rows[i].cost);
    }
    rival_gp_fit(&m->score, ADAM_STEPS, ADAM_SIZE * (double)travel);
    rival_gp_fit(&m->cost, ADAM_STEPS, ADAM_SIZE * (double)travel);
    TRY(rival_gp_factor(&m->score, err));
    return rival_gp_factor(&m->cost, err);
}

/* The best candidate that was not tried; false when all were. */
static bool best_candidate(struct protein *p, const struct models *m, const double *centres, size_t n_centres,
                           double aim, double cap, const struct seen *seen, double *ret_x)
{
    size_t dim = p->space->dim;
    double v[BLOCK * SPACE_MAX_DIM], score[BLOCK], cost[BLOCK], x[SPACE_MAX_DIM], best = -INFINITY;
    bool found = false;
    for (size_t c = 0; c < n_centres; c++) {
        for (size_t i = 0; i < PER_CENTRE; i++)
            for (size_t j = 0; j < dim; j++)
                v[i * dim + j] = clip(centres[c * dim + j] + HALF_WIDTH * (2.0 * rng_f64(&p->rng) - 1.0));
        rival_gp_predict(&m->score, v, PER_CENTRE, score);
        rival_gp_predict(&m->cost, v, PER_CENTRE, cost);
        for (size_t i = 0; i < PER_CENTRE; i++) {
            double value = score[i] * (1.0 - fabs(aim - cost[i]));
            if (!(cost[i] < cap) || !(value > best))
                continue;
            rival_from_box(p->space, v + i * dim, x);
            if (seen_has(seen, x))
                continue;
            best = value;
            found = true;
            memcpy(ret_x, x, dim * sizeof *x);
        }
    }
    return found;
}

static enum status design(struct suggester *s, const struct protein *p, const struct seen *seen, int64_t number,
                          double *ret_x, struct error *err)
{
    double v[SPACE_MAX_DIM], x[SPACE_MAX_DIM];
    struct rng rng = rng_split(rng_split(s->root, (uint64_t)number), SUGGEST_STREAM_DESIGN);
    TRY(suggest_design_sobol(s, seen, number, ret_x, err));
    if (p->steps == s->space.dim || number >= N_DESIGN)
        return ST_OK;
    rival_to_box(&s->space, ret_x, v);
    v[p->steps] = -0.8 + 0.05 * (2.0 * rng_f64(&rng) - 1.0);
    rival_from_box(&s->space, v, x);
    if (!seen_has(seen, x) && suggest_is_allowed(s, x))
        memcpy(ret_x, x, s->space.dim * sizeof *x);
    return ST_OK;
}

static enum status search(struct suggester *s, struct protein *p, const struct seen *seen, int64_t number, bool *found,
                          double *ret_x, struct error *err)
{
    size_t dim = s->space.dim;
    struct models m = {0};
    double aim = target(s, number, &p->rng), cap = INFINITY;
    scale(p);
    double *centres = mem_array2(p->n + N_TOP, dim, sizeof *centres);
    thin(p);
    enum status rc = fit(p, &m, err);
    if (rc == ST_OK) {
        if (s->settings.max_cost > 0.0)
            cap = (log(s->settings.max_cost) - p->cost_min) / p->cost_span;
        size_t n = find_centres(p, centres);
        *found = best_candidate(p, &m, centres, n, aim, cap, seen, ret_x);
    }
    rival_gp_free(&m.score);
    rival_gp_free(&m.cost);
    mem_free(centres);
    return rc;
}

enum status protein_next(struct suggester *s, const struct gp_history *history, int64_t number, struct suggestion *ret,
                         struct error *err)
{
    struct protein p = {.space = &s->space,
                        .steps = space_steps_param(&s->space),
                        .rng = rng_split(rng_split(s->root, (uint64_t)number), SUGGEST_STREAM_CANDIDATES)};
    struct seen seen;
    bool found = false;
    enum status rc = ST_OK;
    *ret = (struct suggestion){.origin = "protein"};
    seen_create(&seen, &s->space, history);
    if (number >= N_DESIGN) {
        collect(&p, history);
        if (p.n >= 2)
            rc = search(s, &p, &seen, number, &found, ret->x, err);
        if (rc == ST_NUMERIC) { /* no model of these data: the design continues */
            error_clear(err);
            rc = ST_OK;
        }
    }
    if (rc == ST_OK && (!found || !suggest_is_allowed(s, ret->x))) {
        strcpy(ret->origin, "sobol");
        rc = design(s, &p, &seen, number, ret->x, err);
    }
    seen_free(&seen);
    mem_free(p.rows);
    return rc;
}
