/* stop.c - should a run be ended early? Learned from the curves of finished runs, free of scale and shift.
 * At progress t (share of its steps) the run has the score s. Finished runs j had s_j at t and ended at S_j; the line
 * S = a + b s through them, with the spread about it, makes a Student t of where this run ends. It is of no use when it
 * ends below what the front already has for its cost, (elapsed / t) by then. It is stopped when the chance of more is
 * below STOP_CHANCE and no finished run that was as low at t has come so far.
 * Invariant: an affine change of all scores changes no verdict. */
#include "gp/gp.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <string.h>

#define SPREAD_MIN 0.02 /* of the finals' own standard deviation: lines through few points look too good */

/* Score at progress t by straight lines between reports; false: no report so early. */
static bool score_at(const struct gp_curve *curve, double t, double *ret)
{
    const struct gp_curve_point *p = curve->points;
    for (size_t i = 0; i < curve->n; i++)
        if (p[i].progress >= t) {
            if (i == 0 && p[i].progress > t)
                return false;
            double width = i > 0 ? p[i].progress - p[i - 1].progress : 0.0;
            double w = width > 0.0 ? (p[i].progress - t) / width : 0.0;
            *ret = w > 0.0 ? w * p[i - 1].score + (1.0 - w) * p[i].score : p[i].score;
            return isfinite(*ret);
        }
    return false;
}

void gp_stop_judge(const struct gp_curve *finished, size_t n, const struct gp_stop_now *now, struct gp_verdict *ret)
{
    double mean_s = 0.0, mean_f = 0.0, ss = 0.0, sf = 0.0, ff = 0.0, known = 0.0, s, level = -INFINITY,
           best = -INFINITY;

    *ret = (struct gp_verdict){.chance = 1.0, .level = -INFINITY};
    if (!(now->progress >= STOP_PROGRESS_MIN && now->progress <= STOP_PROGRESS_MAX) || !isfinite(now->score) ||
        !(now->cost > 0.0))
        return;
    ret->final_cost = now->cost / now->progress;
    for (size_t j = 0; j < n; j++) {
        const struct gp_curve *c = &finished[j];
        if (c->cost <= ret->final_cost)
            level = fmax(level, c->score);
        if (!score_at(c, now->progress, &s))
            continue;
        known += 1.0;
        double ds = s - mean_s, df = c->score - mean_f; /* running means and sums of products */
        mean_s += ds / known;
        mean_f += df / known;
        ss += ds * (s - mean_s);
        sf += ds * (c->score - mean_f);
        ff += df * (c->score - mean_f);
        if (s <= now->score)
            best = fmax(best, c->score);
    }
    ret->n_known = (size_t)known;
    ret->level = level;
    if (known < STOP_CURVES_MIN || !isfinite(level))
        return; /* too little to learn from, or nothing so cheap has finished */
    double slope = ss > 0.0 ? sf / ss : 0.0, rest = fmax(ff - slope * sf, 0.0), d = now->score - mean_s;
    double spread = sqrt(rest / (known - 2.0)), floor_ = SPREAD_MIN * sqrt(ff / (known - 1.0));
    ret->final_mean = mean_f + slope * d;
    ret->final_sd = fmax(spread, floor_) * sqrt(1.0 + 1.0 / known + (ss > 0.0 ? d * d / ss : 0.0));
    if (!(ret->final_sd > 0.0))
        return; /* all finals are equal: no run is better than another */
    ret->chance = gsl_cdf_tdist_Q((level - ret->final_mean) / ret->final_sd, known - 2.0);
    ret->stop = ret->chance < STOP_CHANCE && best < level;
}
