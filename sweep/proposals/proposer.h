/* proposer.h - the suggester of a study in a thread of its own. All calls come from the scheduler's thread; an answer
 * wakes it through wake_fd. The proposer owns its suggester and its copy of the history. */
#pragma once

#include "gp/gp.h"

struct confirm_plan;
struct proposal;
struct proposer;

enum status proposer_create(struct proposer **ret_proposer, const struct space *space,
                            const struct suggest_settings *settings, int wake_fd, struct error *err) MUST_USE;
void proposer_destroy(struct proposer *proposer); /* waits for a proposal that is being made */
/* Asks for n proposals. The history is copied, but for the points, which must stay valid. One question at a time. */
void proposer_ask(struct proposer *proposer, const struct gp_history *history, int64_t number,
                  const struct confirm_plan *plan, size_t n);
bool proposer_is_busy(const struct proposer *proposer);
/* False: not yet. The advice becomes the caller's (gp_insight_free). */
bool proposer_take(struct proposer *proposer, struct proposal *ret_proposal, struct error *err);
