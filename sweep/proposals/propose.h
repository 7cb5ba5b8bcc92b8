/* propose.h - the next proposals from what is known: the same inputs give the same bytes, in the proposer's thread and
 * in a replay. Plain functions; one thread for each suggester. */
#pragma once

#include "gp/gp.h"
#include "sweep/proposals/confirm.h"

struct proposal {
    /* (n) origin SEED_ORIGIN or CONFIRM_ORIGIN: a config again under a fresh seed; these come first */
    struct suggestion suggestions[SUGGEST_BATCH_MAX];
    size_t n;
    double seconds; /* time that all of them took */
    struct gp_insight advice; /* n 0: it was not needed; else of the history in the question */
    enum status status; /* of propose */
};

/* Up to n <= SUGGEST_BATCH_MAX suggestions, each with those before it as pending trials, and the advice (the caller's)
 * of a zeroed proposal. They depend on n. ST_LIMIT: no point is left to try. */
enum status propose(struct suggester *suggester, const struct space *space, const struct gp_history *history,
                    int64_t number, const struct confirm_plan *plan, size_t n, struct proposal *ret_proposal,
                    struct error *err) MUST_USE;
