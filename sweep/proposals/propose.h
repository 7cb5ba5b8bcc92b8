/* propose.h - one proposal from what is known: the same inputs give the same bytes, in the proposer's thread and in a replay.
 * Plain functions; one thread for each suggester. */
#ifndef SWEEP_PROPOSALS_PROPOSE_H
#define SWEEP_PROPOSALS_PROPOSE_H

#include <stdint.h>

#include "base/status.h"
#include "gp/gp.h"
#include "sweep/proposals/confirm.h"

struct setup;
struct study_view;
struct trial_check;

struct proposal {
    struct suggestion suggestion; /* origin SEED_ORIGIN or CONFIRM_ORIGIN: a config again under a fresh seed */
    double seconds; /* time that the proposal took */
    struct gp_insight advice; /* n 0: it was not needed; else of the history in the question */
    enum status status; /* of suggester_next */
};

/* check (borrowed): what may be proposed. */
struct suggest_settings propose_settings(const struct setup *setup, struct trial_check *check);
/* What names the next proposal: how many points were proposed. Further runs take no numbers: every second or fourth
 * point of an even sequence alone would be anything but even. */
int64_t propose_number(const struct study_view *view);
/* Fills suggestion and advice (the caller's) of a zeroed proposal. ST_LIMIT: no point is left to try. */
enum status propose(struct suggester *suggester, const struct space *space, const struct gp_history *history,
                    int64_t number, const struct confirm_plan *plan, struct proposal *ret_proposal,
                    struct error *err) MUST_USE;

#endif
