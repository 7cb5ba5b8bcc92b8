/* share.h - whose turn it is among those that share devices by weight: fair queueing by what each has used.
 *
 * Each has an account of device time over weight. Who waits for a device and has the smallest account is next. Fair is from
 * the moment that somebody waits: who comes, or comes back, begins at the smallest account of those that wait already, and is
 * owed nothing for the time before. Nothing here looks at a clock. */
#ifndef SWEEP_CONTROLLER_SHARE_H
#define SWEEP_CONTROLLER_SHARE_H

#include <stdbool.h>
#include <stddef.h>

struct share {
    double used; /* device time over weight; 0 is an account like any other */
    bool waits; /* could take a device now, or has one and could take more */
};

/* Where the accounts of those that wait have come to; kept while nobody waits, so that the next begins there. */
struct share_mark {
    double used;
};

/* Seconds of a device, used at this weight. */
void share_charge(struct share *share, double seconds, double weight);
/* Does shares[i] wait? Called for each whenever it may have changed, before share_next. */
void share_look(struct share *const *shares, size_t n, size_t i, bool waits, struct share_mark *mark);
/* Who waits, was not passed over and has used least, the first of equals; n: nobody. */
size_t share_next(struct share *const *shares, size_t n, const bool *passed);

#endif
