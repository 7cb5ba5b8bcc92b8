/* calibration.c - fresh runs against what was predicted before them. The models are pure, so that what was believed at
 * a time is computed again from the trials that had ended by then.
 * Invariant: nothing that ended after a fresh run was queued is known to the models that predict it. */
#include "study/findings/calibration.h"

#include "study/view/study_view.h"

static bool has_ended(const struct study_view *v, size_t i, int64_t by_ms)
{
    return v->trials[i].state >= TRIAL_DONE && v->trials[i].finished_ms > 0 && v->trials[i].finished_ms <= by_ms;
}

/* Had the config of trial i a result when it was queued? */
static bool is_fresh_run(const struct study_view *v, size_t i)
{
    if (v->gp[i].state != GP_TRIAL_DONE)
        return false;
    for (size_t k = 0; k < i; k++)
        if (v->gp[k].state == GP_TRIAL_DONE && has_ended(v, k, v->trials[i].created_ms) &&
            study_view_same_point(v, k, i))
            return true;
    return false;
}

/* The trials before i, as they were when it was queued; i itself is pending. */
static void then(const struct study_view *v, size_t i, struct gp_trial *rows, struct gp_history *ret)
{
    *ret = v->history;
    ret->n = i + 1;
    ret->n_other = 0;
    ret->trials = rows;
    for (size_t k = 0; k <= i; k++) {
        rows[k] = v->gp[k];
        if (k == i || !has_ended(v, k, v->trials[i].created_ms))
            rows[k].state = GP_TRIAL_PENDING;
    }
}

/* Half of the interval of one run, from that of the mean of several: the same t, with all of a run's noise. */
static double half_of_one(const struct gp_belief *b)
{
    double half = fmax(b->hi - b->score, b->score - b->lo); /* one side may be cut at what a score can be */
    double sd = sqrt(b->score_sd * b->score_sd + b->noise_sd * b->noise_sd / GP_PROMISE_SEEDS);

    return sd > 0 ? half / sd * sqrt(b->score_sd * b->score_sd + b->noise_sd * b->noise_sd) : 0;
}

static bool predict(const struct study_view *v, size_t i, const struct gp_insight *advice,
                    const struct gp_history *history, struct calibration_row *ret)
{
    if (advice->beliefs == NULL)
        return false;
    const struct gp_belief *b = &advice->beliefs[i];
    double half = half_of_one(b);
    double lo = b->score - half;
    double hi = b->score + half;
    if (history->has_score_bounds) {
        lo = fmax(lo, history->score_min);
        hi = fmin(hi, history->score_max);
    }
    *ret = (struct calibration_row){.trial = i,
                                    .n_seeds = b->n_seeds,
                                    .predicted = study_view_score(v, b->score),
                                    .lo = v->study.maximize ? lo : -hi,
                                    .hi = v->study.maximize ? hi : -lo,
                                    .score = study_view_score(v, v->gp[i].score)};
    return true;
}

void calibration_make(const struct study_view *v, struct calibration *ret)
{
    MEM_LOCAL struct gp_trial *rows = mem_array(v->n, sizeof *rows);
    size_t n = 0;
    MEM_LOCAL size_t *fresh = mem_array(v->n, sizeof *fresh);
    bool usable = study_view_check_points(v, NULL) == ST_OK;

    *ret = (struct calibration){0};
    for (size_t i = 0; usable && i < v->n; i++)
        if (is_fresh_run(v, i))
            fresh[n++] = i;
    ret->n_left_out = n > CALIBRATION_MODELS ? n - CALIBRATION_MODELS : 0;
    ret->rows = mem_array(n, sizeof *ret->rows);
    for (size_t k = ret->n_left_out; k < n; k++) {
        struct gp_history history;
        struct gp_insight advice = {0};
        struct calibration_row *row = &ret->rows[ret->n];
        then(v, fresh[k], rows, &history);
        gp_beliefs_init(&advice, &v->search.space, &history);
        if (predict(v, fresh[k], &advice, &history, row)) {
            ret->n_inside += row->score >= row->lo && row->score <= row->hi;
            ret->n++;
        }
        gp_insight_free(&advice);
    }
}

struct miss {
    int64_t created_ms, finished_ms;
    double score_z, cost_z; /* how far the result was off, in predicted standard deviations */
};

static bool find_miss(const struct study_view *v, size_t i, struct miss *ret)
{
    const struct prediction *p = &v->trials[i].predicted;

    if (!p->known || v->gp[i].state != GP_TRIAL_DONE || !(p->score_sd > 0) || !(p->log_cost_sd > 0))
        return false;
    *ret = (struct miss){.created_ms = v->trials[i].created_ms,
                         .finished_ms = v->trials[i].finished_ms,
                         .score_z = (v->gp[i].score - (v->study.maximize ? 1 : -1) * p->score) / p->score_sd,
                         .cost_z = (log(v->gp[i].cost) - p->log_cost) / p->log_cost_sd};
    return true;
}

static int by_end(const void *a, const void *b)
{
    int64_t x = ((const struct miss *)a)->finished_ms, y = ((const struct miss *)b)->finished_ms;
    return (x > y) - (x < y);
}

void foresight_make(const struct study_view *v, struct foresight *ret)
{
    MEM_LOCAL struct miss *misses = mem_array(v->n, sizeof *misses), *ended = mem_array(v->n, sizeof *ended);
    double score_sq = 0, cost_sq = 0;
    size_t n = 0, n_ended = 0;

    *ret = (struct foresight){0};
    for (size_t i = 0; i < v->n; i++)
        n += find_miss(v, i, &misses[n]);
    if (n == 0)
        return;
    memcpy(ended, misses, n * sizeof *ended);
    qsort(ended, n, sizeof *ended, by_end);
    for (size_t i = 0; i < n; i++) {
        const struct miss *m = &misses[i];
        for (; n_ended < n && ended[n_ended].finished_ms <= m->created_ms; n_ended++) {
            score_sq += ended[n_ended].score_z * ended[n_ended].score_z;
            cost_sq += ended[n_ended].cost_z * ended[n_ended].cost_z;
        }
        double score_95 = gp_miss_95(score_sq, n_ended), cost_95 = gp_miss_95(cost_sq, n_ended);
        ret->n++;
        ret->n_score += fabs(m->score_z) <= score_95;
        ret->n_cost += fabs(m->cost_z) <= cost_95;
        ret->score_z += (m->score_z - ret->score_z) / (double)ret->n;
        ret->cost_z += (m->cost_z - ret->cost_z) / (double)ret->n;
        ret->score_width += (score_95 / GP_SD_95 - ret->score_width) / (double)ret->n;
        ret->cost_width += (cost_95 / GP_SD_95 - ret->cost_width) / (double)ret->n;
    }
}

const char *foresight_text(const struct foresight *f, char buf[FORESIGHT_TEXT_MAX])
{
    buf[0] = '\0';
    if (f->n > 0)
        snprintf(buf, FORESIGHT_TEXT_MAX,
                 "of %zu proposal%s, the score of %zu and the cost of %zu lay in the predicted 95 %% interval of one "
                 "run, which is %.1f and %.1f times as wide as by the models alone; on average a score was %.1f sd %s "
                 "than expected, a cost %.1f sd %s",
                 f->n, f->n == 1 ? "" : "s", f->n_score, f->n_cost, f->score_width, f->cost_width, fabs(f->score_z),
                 f->score_z < 0 ? "worse" : "better", fabs(f->cost_z), f->cost_z < 0 ? "lower" : "higher");
    return buf;
}

void calibration_free(struct calibration *c)
{
    mem_free(c->rows);
    *c = (struct calibration){0};
}
