/* warp.c - a monotone map of a study's scores that compresses a long tail, for the models: of losses that diverge, or of
 * returns that grow by factors, the tail decides mean and spread, and a Gaussian process sees no difference between all
 * others. With x = (score - median) / spread, z = x on the side of the shorter tail, and sign(x) ln(1 + |x|) on the
 * other, once that is TAILS times as long; the spread is the length of the shorter. The way back is straight beyond the
 * farthest score: there an interval of two spreads more would be a factor of e^2 at each.
 * Invariant: the unit of the score does not matter. */
#include "gp/model/observations_priv.h"

#include "base/text/num.h"

#define SCORES_MIN 6
#define TAILS 8.0 /* from the median to the 10 and 90 % quantiles */
#define LEAST 1e-12 /* of the median: a spread below it is rounding */
#define VALUE_MAX 500.0 /* nothing lies so far out, and e to its power is a number */

double warp_to(const struct warp *w, double score)
{
    if (w->tail == 0.0)
        return score;
    double x = (score - w->middle) / w->spread;
    return x * w->tail > 0.0 ? w->tail * log1p(fabs(x)) : x;
}

double warp_from(const struct warp *w, double value)
{
    if (w->tail == 0.0)
        return value;
    double x = value, far = fmin(fabs(value), VALUE_MAX), seen = fmin(far, w->last);
    if (value * w->tail > 0.0)
        x = w->tail * (expm1(seen) + (far - seen) * exp(seen));
    return w->middle + w->spread * x;
}

double warp_sd_to(const struct warp *w, double score, double sd)
{
    return w->tail == 0.0 ? sd : 0.5 * (warp_to(w, score + sd) - warp_to(w, score - sd));
}

double warp_sd_from(const struct warp *w, double value, double sd)
{
    return w->tail == 0.0 ? sd : 0.5 * (warp_from(w, value + sd) - warp_from(w, value - sd));
}

void warp_reaches(struct warp *w, double score)
{
    w->last = fmax(w->last, w->tail * warp_to(w, score));
}

struct warp warp_of(double *scores, size_t n)
{
    struct warp ret = {0};
    if (n < SCORES_MIN)
        return ret;
    num_sort(scores, n);
    ret.middle = scores[n / 2];
    double above = scores[n - 1 - n / 10] - ret.middle, below = ret.middle - scores[n / 10];
    ret.spread = fmin(above, below);
    if (ret.spread > LEAST * fabs(ret.middle) && fmax(above, below) > TAILS * ret.spread)
        ret.tail = below > above ? -1.0 : 1.0;
    warp_reaches(&ret, scores[ret.tail < 0.0 ? 0 : n - 1]);
    return ret;
}
