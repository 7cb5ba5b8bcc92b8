/* briefing.h - the briefing of a study: what was gained since the last visit, the recommended trial, why it
 * ended, what failed and where, and whether more of the search is worth its time. A struct briefing owns its failures;
 * it reads a view with advice (study_view_advise). Any thread. */
#pragma once

#include "base/text/json.h"
#include "study/findings/believed.h"
#include "study/findings/gain.h"
#include "study/findings/failures.h"
#include "study/view/promise.h"

struct strbuf;
struct study_view;

/* One advice for all readers, so that no two contradict each other. */
enum briefing_next {
    BRIEFING_EARLY, /* too little is known to advise */
    BRIEFING_WIDEN, /* the front leans on a bound of a parameter that matters, or the space is exhausted */
    BRIEFING_CONTINUE,
    BRIEFING_STOP,
};
#define BRIEFING_WORTH 0.01 /* of the hypervolume: what as much work again must be expected to add */

struct briefing {
    int64_t since_ms; /* 0: all of the study */
    size_t n_done, n_failed, n_confirmed; /* that ended since; n_confirmed: of n_done, fresh seeds of a config */
    double volume_before, volume; /* of what is believed, against the study's reference */
    size_t best, best_before; /* view->n: none; best_before: of what had a result by since_ms */
    struct promise promise, promise_before; /* of best and best_before */
    struct failures failures;
    struct gain_expected growth;
    struct gp_edge edges[SPACE_MAX_DIM]; /* bounds that the front leans on; side 0: none */
    enum briefing_next next;
};
/* since_ms: the last visit, UTC; 0: there was none. insight: with edges (study_view_insight), also of fewer trials than
 * the view has; NULL: bounds are not known. */
void briefing_make(const struct study_view *view, const struct gp_insight *insight, int64_t since_ms,
                   struct briefing *ret_briefing);
void briefing_free(struct briefing *briefing);
/* Sentences, one a call; nothing is added where there is nothing to state. */
void briefing_take_text(const struct study_view *view, const struct briefing *briefing, struct strbuf *out);
void briefing_next_text(const struct study_view *view, const struct briefing *briefing, struct strbuf *out);
/* To stdout, for `trawl show`. */
void briefing_print(const struct study_view *view, const struct briefing *briefing);
cJSON *briefing_to_json(const struct study_view *view, const struct briefing *briefing);
