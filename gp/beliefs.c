/* beliefs.c - what to believe of each tried point: the score to expect of it with an interval, all its runs and the
 * model of all others taken together. The model gives the expected score f ~ N(m, s^2), own runs among its rows; s is
 * stated DOUBT times as wide, since the model takes its hyper-parameters as known, and points are looked at because
 * they came out well. With the noise v of a run, the mean of GP_PROMISE_SEEDS fresh runs is m plus a Student t, of the
 * degrees of freedom that v has, times sqrt(s^2 + v / GP_PROMISE_SEEDS).
 *
 * While no config has been repeated, the data hardly tell noise between seeds from differences between configs, and the
 * most probable noise is far too small. So m, s and v are averages over BELIEFS_LEVELS levels of noise. At each the
 * lengths are fitted again, and model_noise.c learns how noise depends on the score; a level weighs what the data and a
 * log-normal prior say of it. Repeats sharpen the weights, and with them the intervals. DOUBT, MODEL_NOISE_RUNS and the
 * prior were set by `trawl-bench promise` (bench/notes/controller.md). Invariant: runs of one point have one belief,
 * and its first finished trial stands for it on the front. */
#include "gp/pareto_priv.h"

#include "base/text/num.h"

#include <gsl/gsl_cdf.h>

#define DOUBT 1.5
#define NOISE_MEDIAN 0.07 /* of the range of a score: the noise between seeds before anything is known */
#define NOISE_LOG_SD 1.0 /* of its logarithm: 95 % between a hundredth and half of the range */
#define SPREADS 3.0 /* standard deviations of the scores that stand for their range, where that is unknown */
#define LEVEL_STEP 1.0 /* between levels, of the logarithm */
#define LEVEL_MIDDLE 3.0 /* the level of the median */
#define LEVEL_EVALS 10 /* of the likelihood, from the lengths of the fit in which the noise is free, */
#define LEVEL_ROWS 192 /* on this many rows */
#define COVERAGE 0.95
#define MISS_SCALE 2.0 /* results scatter by this many sd, as proposals lie where the models promise most: */
#define MISS_RUNS 4.0 /* believed before the first result, as firmly as after this many */

static double within(const struct gp_history *history, double score)
{
    return history->has_score_bounds ? fmin(fmax(score, history->score_min), history->score_max) : score;
}

/* A point whose runs were too far below all others for the models, which learned a higher score in their place: by its
 * runs alone. spread: of all scores. */
static void believe_runs(const struct warp *warp, const struct mean_ss *own, double spread, double *ret_freedom,
                         struct gp_belief *b)
{
    b->noise_sd = own->n > 1.0 ? sqrt(own->ss / (own->n - 1.0)) : spread;
    b->score_sd = fmax(warp_sd_from(warp, b->score, b->score_sd), b->noise_sd / sqrt(own->n));
    b->score = own->mean;
    *ret_freedom = fmax(own->n - 1.0, 1.0);
}

/* From the models' units, which warp tells, to scores. freedom: degrees of it that the noise is known by. */
static void state_interval(const struct gp_history *history, const struct warp *warp, const struct mean_ss *own,
                           double freedom, struct gp_belief *b)
{
    double t = gsl_cdf_tdist_Pinv(0.5 + 0.5 * COVERAGE, freedom);
    double half = t * sqrt(b->score_sd * b->score_sd + b->noise_sd * b->noise_sd / GP_PROMISE_SEEDS);
    b->n_seeds = (size_t)(own->n + 0.5);
    b->mean = own->n > 0.0 ? own->mean : NAN;
    b->lo = within(history, warp_from(warp, b->score - half));
    b->hi = within(history, warp_from(warp, b->score + half));
    b->score_sd = warp_sd_from(warp, b->score, b->score_sd);
    b->noise_sd = warp_sd_from(warp, b->score, b->noise_sd);
    b->score = within(history, warp_from(warp, b->score));
}

double gp_miss_95(double sum_sq, size_t n)
{
    double freedom = MISS_RUNS + (double)n;
    return gsl_cdf_tdist_Pinv(0.5 + 0.5 * COVERAGE, freedom) *
           sqrt((MISS_RUNS * MISS_SCALE * MISS_SCALE + sum_sq) / freedom);
}

/* Standard deviation of a run's noise at level k, and minus the log of its prior. */
static double noise_level(const struct pareto_search *s, const struct gp_history *history, size_t k,
                          double *ret_penalty)
{
    double z = ((double)k - LEVEL_MIDDLE) * LEVEL_STEP;
    double range = history->has_score_bounds ? history->score_max - history->score_min : SPREADS * s->score.y_sd;
    *ret_penalty = 0.5 * z * z / (NOISE_LOG_SD * NOISE_LOG_SD);
    return NOISE_MEDIAN * range * exp(z);
}

enum status beliefs_learn(struct pareto_search *s, const struct gp_history *history, struct error *err)
{
    double top = -INFINITY, sum = 0.0, penalty;
    for (size_t k = 0; k < BELIEFS_LEVELS; k++) {
        struct model *m = &s->level[k];
        double sd = noise_level(s, history, k, &penalty) / s->score.y_sd;
        pareto_load_score(s, m);
        model_fit_at_noise(m, sd * sd, LEVEL_EVALS, LEVEL_ROWS);
        TRY(model_factor(m, err));
        TRY(model_learn_noise(m, err));
        s->weight[k] = model_evidence(m) - penalty;
        top = fmax(top, s->weight[k]);
    }
    for (size_t k = 0; k < BELIEFS_LEVELS; k++)
        sum += s->weight[k] = exp(s->weight[k] - top);
    for (size_t k = 0; k < BELIEFS_LEVELS; k++)
        s->weight[k] /= sum;
    return ST_OK;
}

/* Moments over the levels at m points: mean and standard deviation of the score, variance of a run and its degrees of
 * freedom. Standardised. */
static void predict_score(const struct pareto_search *s, const double *u, const size_t *groups, size_t m, double *cross,
                          double *ret_mean, double *ret_sd, double *ret_noise, double *ret_freedom)
{
    double mean[BELIEFS_BATCH], sd[BELIEFS_BATCH];
    for (size_t p = 0; p < m; p++)
        ret_mean[p] = ret_sd[p] = ret_noise[p] = 0.0;
    for (size_t k = 0; k < BELIEFS_LEVELS; k++) {
        double w = s->weight[k];
        model_predict(&s->level[k], u, m, cross, mean, sd);
        for (size_t p = 0; p < m; p++) {
            size_t row = groups ? s->score_row[groups[p]] : SIZE_MAX;
            ret_noise[p] += w * model_noise(&s->level[k], mean[p], row, &ret_freedom[p]);
            ret_mean[p] += w * mean[p];
            ret_sd[p] += w * (sd[p] * sd[p] + mean[p] * mean[p]);
        }
    }
    for (size_t p = 0; p < m; p++)
        ret_sd[p] = sqrt(fmax(ret_sd[p] - ret_mean[p] * ret_mean[p], 0.0));
}

void beliefs_predict(const struct pareto_search *s, const struct gp_history *history, const double *u,
                     const size_t *groups, size_t m, double *cross, struct gp_belief *ret)
{
    static const struct mean_ss none = {0};
    static const struct warp plain = {0};
    const struct warp *warp = &s->obs.warp;
    const struct mean_ss *own;
    double m1[BELIEFS_BATCH], s1[BELIEFS_BATCH], m2[BELIEFS_BATCH], s2[BELIEFS_BATCH], noise[BELIEFS_BATCH];
    double freedom[BELIEFS_BATCH], m3[BELIEFS_BATCH] = {0}, s3[BELIEFS_BATCH] = {0}, kept[BELIEFS_BATCH];
    const struct model *score = &s->score, *cost = &s->cost, *third = &s->third;
    model_predict(cost, u, m, cross, m1, s1);
    predict_score(s, u, groups, m, cross, m2, s2, noise, freedom);
    if (s->has_third)
        model_predict(&s->third, u, m, cross, m3, s3);
    pareto_log_feasible(s, u, m, cross, kept);
    for (size_t p = 0; p < m; p++) {
        ret[p] = (struct gp_belief){.score = score->y_mean + score->y_sd * m2[p],
                                    .score_sd = score->constant ? 0.0 : DOUBT * score->y_sd * s2[p],
                                    .log_cost = cost->y_mean + cost->y_sd * m1[p],
                                    .log_cost_sd = cost->constant ? 0.0 : cost->y_sd * s1[p],
                                    .third = s->has_third ? third->y_mean + third->y_sd * m3[p] : 0.0,
                                    .third_sd = s->has_third && !third->constant ? third->y_sd * s3[p] : 0.0,
                                    .feasible = exp(kept[p]),
                                    .noise_sd = score->constant ? 0.0 : score->y_sd * sqrt(noise[p])};
        own = groups ? &s->obs.done_score[groups[p]] : &none;
        bool by_runs = groups && s->obs.clipped[groups[p]];
        if (by_runs)
            believe_runs(warp, own, warp_sd_from(warp, score->y_mean, score->y_sd), &freedom[p], &ret[p]);
        state_interval(history, by_runs ? &plain : warp, own, freedom[p], &ret[p]);
    }
}

/* Finished, and of a point whose mean outcomes keep all limits. */
static bool is_kept(const struct pareto_search *s, const struct gp_history *history, size_t i)
{
    return history->trials[i].state == GP_TRIAL_DONE && s->obs.feasible[s->obs.group[i]];
}

/* point[i]: the first trial of trial i's point that finished and keeps its limits, else its first. first (groups) is
 * work. */
static void find_points(const struct pareto_search *s, const struct gp_history *history, size_t *first, size_t *ret)
{
    for (size_t g = 0; g < s->obs.n; g++)
        first[g] = history->n;
    for (size_t i = 0; i < history->n; i++) {
        size_t *at = &first[s->obs.group[i]];
        if (*at == history->n || (is_kept(s, history, i) && !is_kept(s, history, *at)))
            *at = i;
    }
    for (size_t i = 0; i < history->n; i++)
        ret[i] = first[s->obs.group[i]];
}

/* One trial a point, at what is believed of it. */
static void find_front(struct gp_insight *ret, const struct gp_history *history)
{
    size_t n = history->n;
    MEM_LOCAL struct gp_trial *believed = mem_array(n, sizeof *believed);
    MEM_LOCAL double *sd = mem_array2(n, 2, sizeof *sd);
    MEM_LOCAL size_t *seeds = mem_array(n, sizeof *seeds);
    MEM_LOCAL bool *front = mem_array(n, sizeof *front);
    for (size_t i = 0; i < n; i++) {
        const struct gp_belief *b = &ret->beliefs[i];
        bool stands = ret->point[i] == i && history->trials[i].state == GP_TRIAL_DONE && !b->breaks_limit;
        believed[i] = (struct gp_trial){.state = stands ? GP_TRIAL_DONE : GP_TRIAL_PENDING,
                                        .score = b->score,
                                        .cost = exp(b->log_cost),
                                        .third = b->third};
        sd[i] = b->log_cost_sd;
        sd[n + i] = b->third_sd;
        seeds[i] = b->n_seeds;
    }
    pareto_front(&(struct gp_history){.n = n, .trials = believed, .has_third = history->has_third},
                 &(struct pareto_noise){.log_cost_sd = sd, .third_sd = sd + n, .n_seeds = seeds}, front);
    for (size_t i = 0; i < n; i++)
        ret->beliefs[i].on_front = front[i];
}

/* The middle one of the noises of the trials that finished and keep their limits; work (n). */
static double middle_noise(const struct gp_insight *in, const struct gp_history *history, double *work)
{
    size_t n = 0;
    for (size_t i = 0; i < history->n; i++)
        if (history->trials[i].state == GP_TRIAL_DONE)
            work[n++] = in->beliefs[i].noise_sd;
    num_sort(work, n);
    return work[n / 2];
}

void beliefs_init(struct gp_insight *ret, const struct pareto_search *s, const struct gp_history *history)
{
    size_t n = history->n, dim = s->space->dim;
    MEM_LOCAL double *cross = mem_array2(BELIEFS_BATCH, pareto_search_ld(s), sizeof *cross);
    MEM_LOCAL double *u = mem_array2(BELIEFS_BATCH, dim, sizeof *u);
    MEM_LOCAL double *noises = mem_array(n, sizeof *noises);
    MEM_LOCAL size_t *first = mem_array(s->obs.n, sizeof *first);
    ret->beliefs = mem_array(n, sizeof *ret->beliefs);
    ret->point = mem_array(n, sizeof *ret->point);
    for (size_t at = 0; at < n; at += BELIEFS_BATCH) {
        size_t m = n - at < BELIEFS_BATCH ? n - at : BELIEFS_BATCH;
        for (size_t p = 0; p < m; p++)
            memcpy(u + p * dim, s->obs.u + s->obs.group[at + p] * dim, dim * sizeof *u);
        beliefs_predict(s, history, u, s->obs.group + at, m, cross, ret->beliefs + at);
        for (size_t p = 0; p < m && history->n_limits > 0; p++) {
            size_t g = s->obs.group[at + p];
            ret->beliefs[at + p].breaks_limit = s->obs.done_score[g].n > 0.0 && !s->obs.feasible[g];
        }
    }
    find_points(s, history, first, ret->point);
    find_front(ret, history);
    ret->recommended = gp_pick(ret, history, GP_BEST, 0.0).i;
    ret->score_noise_sd = middle_noise(ret, history, noises);
}
