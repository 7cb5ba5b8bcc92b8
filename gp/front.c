/* front.c - the Pareto front of (cost, score) or (cost, score, third), its hypervolume, reference and knee.
 * Cost and third lower and score higher is better; only finished trials that keep their limits (DONE) count. Areas are
 * in (ln cost, score), volumes in (ln cost, score, third). Everything is one sort by (cost, -score, third, number) and
 * one walk: O(n log n), and O(n front) with a third objective. */
#include "gp/gp_priv.h"

#include "base/text/num.h"

#define REF_MARGIN 0.1 /* of their range, added on the bad side */

bool gp_is_feasible(const struct gp_history *history, const double *outcomes)
{
    for (size_t k = 0; k < history->n_limits; k++)
        if (!(outcomes[k] >= history->limits[k].min && outcomes[k] <= history->limits[k].max))
            return false;
    return true;
}

struct front_point {
    double cost, score, third; /* third 0: there is none */
    size_t index;
};

static int compare_points(const void *va, const void *vb)
{
    const struct front_point *a = va, *b = vb;
    if (a->cost != b->cost)
        return a->cost < b->cost ? -1 : 1;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->third != b->third)
        return a->third < b->third ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Does none of these, which cost no more, dominate p? */
static bool is_new(const struct front_point *front, size_t n, bool has_third, const struct front_point *p)
{
    if (!has_third) /* scores rise with cost */
        return n == 0 || p->score > front[n - 1].score;
    for (size_t i = n; i-- > 0;)
        if (front[i].score >= p->score && front[i].third <= p->third)
            return false;
    return true;
}

/* The front by rising cost (and, without a third objective, rising score) at the head of an owned array. among (n): of
 * these alone; NULL: of all. */
static struct front_point *front_points(const struct gp_history *history, const bool *among, size_t *ret_n)
{
    struct front_point *points = mem_array(history->n, sizeof *points);
    size_t n = 0, n_front = 0;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i];
        double third = history->has_third ? t->third : 0.0;
        if ((among == NULL || among[i]) && t->state == GP_TRIAL_DONE && isfinite(t->score) && isfinite(t->cost) &&
            isfinite(third))
            points[n++] = (struct front_point){t->cost, t->score, third, i};
    }
    qsort(points, n, sizeof *points, compare_points);
    for (size_t i = 0; i < n; i++)
        if (is_new(points, n_front, history->has_third, &points[i]))
            points[n_front++] = points[i];
    *ret_n = n_front;
    return points;
}

size_t pareto_front_order(const struct gp_history *history, size_t *ret_order)
{
    struct gp_history flat = *history;
    size_t n;
    flat.has_third = false;
    MEM_LOCAL struct front_point *points = front_points(&flat, NULL, &n);
    for (size_t i = 0; i < n; i++)
        ret_order[n - 1 - i] = points[i].index;
    return n;
}

/* ---- with noise ---- */

struct noisy_point {
    double log_cost, score, third, cost_var, third_var;
    size_t index, n_seeds;
    bool out; /* another one covers it, and is not covered by it */
};

static int by_cost(const void *va, const void *vb)
{
    const struct noisy_point *a = va, *b = vb;
    if (a->log_cost != b->log_cost)
        return a->log_cost < b->log_cost ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int by_score(const void *va, const void *vb)
{
    const struct noisy_point *a = va, *b = vb;
    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    return by_cost(a, b);
}

/* The better supported first. */
static int by_support(const void *va, const void *vb)
{
    const struct noisy_point *a = va, *b = vb;
    if (a->n_seeds != b->n_seeds)
        return a->n_seeds > b->n_seeds ? -1 : 1;
    return by_cost(a, b);
}

/* b costs no more, as far as is known, and scores no less. */
static bool covers(const struct noisy_point *b, const struct noisy_point *a)
{
    return b->log_cost <= a->log_cost + sqrt(a->cost_var + b->cost_var) && b->score >= a->score &&
           b->third <= a->third + sqrt(a->third_var + b->third_var);
}

static double variance(const double *sd, size_t i)
{
    return sd && sd[i] > 0.0 ? sd[i] * sd[i] : 0.0;
}

static size_t load_noisy(const struct gp_history *history, const struct pareto_noise *noise, struct noisy_point *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++) {
        const struct gp_trial *t = &history->trials[i];
        double third = history->has_third ? t->third : 0.0;
        if (t->state == GP_TRIAL_DONE && isfinite(t->score) && isfinite(t->cost) && t->cost > 0.0 && isfinite(third))
            ret[n++] = (struct noisy_point){.log_cost = log(t->cost),
                                            .score = t->score,
                                            .third = third,
                                            .cost_var = variance(noise->log_cost_sd, i),
                                            .third_var = history->has_third ? variance(noise->third_sd, i) : 0.0,
                                            .index = i,
                                            .n_seeds = noise->n_seeds ? noise->n_seeds[i] : 1};
    }
    return n;
}

/* Leaves those that no cheaper one outscores. p by rising cost. */
static size_t drop_beaten(struct noisy_point *p, size_t n)
{
    double top = -INFINITY;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(p[i].score < top))
            p[kept++] = p[i];
        top = fmax(top, p[i].score);
    }
    return kept;
}

/* What is out covers nothing: else each of a row of points, a little more expensive and better than the one before it,
 * would put that out, and only the most expensive would be left. */
static void noisy_front(struct noisy_point *p, size_t n, bool has_third, bool *ret_on_front)
{
    qsort(p, n, sizeof *p, by_cost);
    if (!has_third)
        n = drop_beaten(p, n);
    qsort(p, n, sizeof *p, by_score);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n && p[j].score >= p[i].score && !p[i].out; j++)
            p[i].out = !p[j].out && covers(&p[j], &p[i]) && !covers(&p[i], &p[j]);
    qsort(p, n, sizeof *p, by_support);
    for (size_t i = 0; i < n; i++) { /* what is left is level or apart; of those that are level the first stays */
        bool stays = !p[i].out;
        for (size_t j = 0; j < i && stays; j++)
            stays = !(ret_on_front[p[j].index] && covers(&p[j], &p[i]));
        ret_on_front[p[i].index] = stays;
    }
}

void pareto_front(const struct gp_history *history, const struct pareto_noise *noise, bool *ret_on_front)
{
    for (size_t i = 0; i < history->n; i++)
        ret_on_front[i] = false;
    if (noise != NULL) {
        struct noisy_point *noisy = mem_array(history->n, sizeof *noisy);
        noisy_front(noisy, load_noisy(history, noise, noisy), history->has_third, ret_on_front);
        mem_free(noisy);
        return;
    }
    size_t n;
    MEM_LOCAL struct front_point *points = front_points(history, NULL, &n);
    for (size_t i = 0; i < n; i++)
        ret_on_front[points[i].index] = true;
}

void pareto_front_add(const struct gp_history *history, size_t i, bool *on_front)
{
    size_t n;
    on_front[i] = true;
    MEM_LOCAL struct front_point *points = front_points(history, on_front, &n);
    memset(on_front, 0, history->n * sizeof *on_front);
    for (size_t k = 0; k < n; k++)
        on_front[points[k].index] = true;
}

/* A tenth of the range; where there is none, of the value. */
static double margin(double lo, double hi)
{
    double range = REF_MARGIN * (hi - lo);
    return range > 0.0 ? range : lo != 0.0 ? REF_MARGIN * fabs(lo) : REF_MARGIN;
}

void pareto_reference(const struct gp_history *history, struct pareto_ref *ret_ref)
{
    double cost_lo = INFINITY, cost_hi = -INFINITY, score_lo = INFINITY, score_hi = -INFINITY;
    double third_lo = INFINITY, third_hi = -INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < history->n && n < PARETO_REF_TRIALS; i++) {
        const struct gp_trial *t = &history->trials[i];
        bool ended = t->state == GP_TRIAL_DONE || t->state == GP_TRIAL_INFEASIBLE;
        double third = history->has_third ? t->third : 0.0;
        if (!ended || !isfinite(t->score) || !(t->cost > 0.0) || !isfinite(t->cost) || !isfinite(third))
            continue;
        third_lo = fmin(third_lo, third);
        third_hi = fmax(third_hi, third);
        cost_lo = fmin(cost_lo, log(t->cost));
        cost_hi = fmax(cost_hi, log(t->cost));
        score_lo = fmin(score_lo, t->score);
        score_hi = fmax(score_hi, t->score);
        n++;
    }
    if (n == 0) {
        *ret_ref = (struct pareto_ref){1.0, 0.0, 0.0};
        return;
    }
    double cost_margin = REF_MARGIN * (cost_hi - cost_lo);
    *ret_ref = (struct pareto_ref){.cost = exp(cost_hi + (cost_margin > 0.0 ? cost_margin : REF_MARGIN)),
                                   .score = score_lo - margin(score_lo, score_hi),
                                   .third = history->has_third ? third_hi + margin(third_lo, third_hi) : 0.0};
}

/* Area of the points (n by rising cost) whose third is at most `third`: strips of rising score, each as wide as its
 * point is cheap. */
static double area_below(const struct front_point *points, size_t n, double third, const struct pareto_ref *ref)
{
    double area = 0.0, floor_score = ref->score, ref_cost = log(ref->cost);
    for (size_t i = 0; i < n; i++) {
        if (!(points[i].cost < ref->cost) || !(points[i].score > floor_score) || points[i].third > third)
            continue;
        area += (ref_cost - log(points[i].cost)) * (points[i].score - floor_score);
        floor_score = points[i].score;
    }
    return area;
}

/* With a third objective: slices between one value of it and the next, O(front^2). */
double pareto_hypervolume(const struct gp_history *history, const struct pareto_ref *ref)
{
    size_t n, n_levels = 0;
    MEM_LOCAL struct front_point *points = front_points(history, NULL, &n);
    if (!history->has_third)
        return area_below(points, n, 0.0, ref);
    double volume = 0.0;
    MEM_LOCAL double *levels = mem_array(n + 1, sizeof *levels);
    for (size_t i = 0; i < n; i++)
        if (points[i].third < ref->third)
            levels[n_levels++] = points[i].third;
    num_sort(levels, n_levels);
    levels[n_levels] = ref->third;
    for (size_t k = 0; k < n_levels; k++)
        if (levels[k] < levels[k + 1])
            volume += area_below(points, n, levels[k], ref) * (levels[k + 1] - levels[k]);
    return volume;
}

/* A dominated trial never matters again, so that only the front so far is looked at beside what is new. */
void pareto_hypervolume_curve(const struct gp_history *history, const struct pareto_ref *ref, const size_t *counts,
                              size_t n_counts, double *ret_volumes)
{
    MEM_LOCAL struct gp_trial *kept = mem_array(history->n, sizeof *kept); /* (n) the front so far, then what is new */
    MEM_LOCAL bool *on_front = mem_array(history->n, sizeof *on_front);
    struct gp_history small = {.trials = kept, .has_third = history->has_third};
    size_t at = 0;

    for (size_t k = 0; k < n_counts; k++) {
        for (; at < counts[k] && at < history->n; at++)
            kept[small.n++] = history->trials[at];
        pareto_front(&small, NULL, on_front);
        size_t n = 0;
        for (size_t i = 0; i < small.n; i++)
            if (on_front[i])
                kept[n++] = kept[i];
        small.n = n;
        ret_volumes[k] = pareto_hypervolume(&small, ref);
    }
}

size_t pareto_knee(const struct gp_history *history)
{
    size_t n, knee = history->n;
    struct gp_history flat = *history;
    flat.has_third = false;
    MEM_LOCAL struct front_point *points = front_points(&flat, NULL, &n);
    double best = PARETO_BEND_MIN;
    for (size_t i = 1; i + 1 < n; i++) {
        double c0 = log(points[0].cost), c1 = log(points[n - 1].cost), s0 = points[0].score, s1 = points[n - 1].score;
        /* ends are (0, 0) and (1, 1): distance above the diagonal, along the score */
        double above = (points[i].score - s0) / (s1 - s0) - (log(points[i].cost) - c0) / (c1 - c0);
        if (above > best) {
            best = above;
            knee = points[i].index;
        }
    }
    return knee;
}
