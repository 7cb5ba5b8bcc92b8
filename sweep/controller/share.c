/* share.c - accounts of device time, see share.h.
 * Invariant: among those that wait without a break, the accounts differ by no more than what one flight of each device
 * adds. */
#include "sweep/controller/share.h"

void share_charge(struct share *share, double seconds, double weight)
{
    share->used += seconds / weight;
}

/* The smallest account of those that wait, but for one; INFINITY: none waits. */
static double least(struct share *const *shares, size_t n, size_t but)
{
    double used = INFINITY;

    for (size_t i = 0; i < n; i++)
        if (i != but && shares[i]->waits)
            used = fmin(used, shares[i]->used);
    return used;
}

void share_look(struct share *const *shares, size_t n, size_t i, bool waits, struct share_mark *mark)
{
    double others = least(shares, n, i), all = shares[i]->waits ? fmin(others, shares[i]->used) : others;

    if (isfinite(all))
        mark->used = fmax(mark->used, all);
    if (waits && !shares[i]->waits)
        shares[i]->used = fmax(shares[i]->used, isfinite(others) ? others : mark->used);
    shares[i]->waits = waits;
}

size_t share_next(struct share *const *shares, size_t n, const bool *passed)
{
    size_t best = n;

    for (size_t i = 0; i < n; i++)
        if (shares[i]->waits && !passed[i] && (best == n || shares[i]->used < shares[best]->used))
            best = i;
    return best;
}
