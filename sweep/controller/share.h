/* share.h - whose turn it is among studies that share devices by weight: fair queueing by what each has used.
 *
 * Each study has an account of device time over weight. Of those that wait for a device the one with the smallest
 * account is next. Fairness begins when a study starts to wait: one that comes, or comes back, begins at the smallest
 * account of those that wait already, and is owed nothing for the time before. Plain values; nothing here reads a
 * clock. */
#pragma once

#include "base/base.h"

struct share {
    double used; /* device time over weight; 0 is an account like any other */
    bool waits; /* could take a device now, or has one and could take more */
};

/* The level of the accounts of those that wait; kept while none waits, so that the next one begins there. */
struct share_mark {
    double used;
};

/* Adds seconds of a device, used at this weight. */
void share_charge(struct share *share, double seconds, double weight);
/* Records whether shares[i] waits. Called for each share that may have changed, before share_next. */
void share_look(struct share *const *shares, size_t n, size_t i, bool waits, struct share_mark *mark);
/* The share that waits, was not passed over and has used least, the first of equals; n: none. */
size_t share_next(struct share *const *shares, size_t n, const bool *passed);
