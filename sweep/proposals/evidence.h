/* evidence.h - which results each proposal of a study had seen: kept with the trial that was proposed, so that the same
 * proposals can be made again although results came in any order. A struct evidence belongs to a study in memory; one
 * thread. */
#pragma once

#include "base/text/json.h"
#include "sweep/proposals/confirm.h"

struct study_view;

/* What is known of a trial: bits. */
enum { EVIDENCE_ENDED = 1, EVIDENCE_DROPPED = 2 };

/* What a proposal had seen, as a trial's `seen` states it:
 * {"trials": N, "ended": [..]?, "dropped": [..]?, "counted": [..]?, "turn", "target", "seeds", "cost_left"?, "again"?,
 * "place"?, "of"?, "space": {..}?}
 *
 * trials: how many there were; ended: numbers of trials whose ends no proposal before had seen; dropped, counted: left
 * out by people since then, or taken in again; turn to again: struct confirm_plan; place, of: its index among the
 * proposals that were asked for together, and their number; space: of the first one, and wherever it is another one
 * than that of the proposal before. */
struct evidence_entry {
    size_t n_trials;
    struct confirm_plan plan;
    size_t place, of; /* 0 of 1: it was asked for alone */
    char *space; /* owned; NULL: as before */
};
void evidence_entry_free(struct evidence_entry *entry);

struct evidence {
    unsigned char *known; /* (n_known) of each trial, to the proposal that was stored last; beyond: nothing */
    unsigned char *asked; /* (n_asked) the same of the proposal that is being made */
    size_t n_known, n_asked, cap_known, cap_asked;
    bool new_space, asked_space; /* no stored proposal is of the present space; is the one that is being made */
    struct confirm_plan plan; /* of the proposals that are being made */
    size_t n_of; /* their number */
    char *text; /* of the first of them; NULL: none */
};
void evidence_free(struct evidence *e);
/* Reads what the stored proposals of a loaded study saw. */
enum status evidence_load(struct evidence *e, const struct study_view *view, struct error *err) MUST_USE;
/* n proposals are asked for. */
void evidence_ask(struct evidence *e, const struct study_view *view, const struct confirm_plan *plan, size_t n);
char *evidence_text(const struct evidence *e, size_t place); /* of one of them; the caller's */
void evidence_stored(struct evidence *e); /* the first of them has become a trial, with its text */
/* Applies a trial's text to what was known before it. ST_CORRUPT. */
enum status evidence_read(struct evidence *e, const char *text, struct evidence_entry *ret_entry,
                          struct error *err) MUST_USE;
