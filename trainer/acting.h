/* acting.h - a trainer's policy on games of its own: what an evaluation and a player have in common.
 * Invariant: nothing of the training state is touched but scratch; same weights, seed and choice of greedy, same
 * games. */
#pragma once

#include "trainer/trainer_priv.h"

#define ACTING_STEPS 32 /* that acting_play plays */

/* T steps are kept (n_kept), each in a slot; with one they overwrite each other. obs, mask and reset have a slot more,
 * for what comes before the next decision. */
struct acting {
    struct trainer *t; /* borrowed */
    size_t n; /* agents of all games */
    size_t n_kept; /* T: 1, or ACTING_STEPS where a device plays them in one go */
    struct plan plan;
    struct policy_step step;
    struct kern_env *games; /* owned */
    void *obs; /* (T + 1, n), policy.row_bytes each */
    void *frame; /* (n) of policy.frame_bytes, of the step where an observation is several frames; else NULL */
    float *h; /* (L, n, S) */
    float *rewards, *logp, *value, *boot; /* (T, n); value: (T + 1, n) */
    int32_t *actions; /* (T, n, n_heads) */
    float *reals; /* (n, n_heads) of the step; NULL when every action is a choice */
    uint8_t *mask, *terms, *truncs, *reset;
    struct rng *rng;
    struct kern_graph *graph; /* of acting_play, once it has been recorded; owned */
    bool played;
};

/* a is zeroed, but what the caller needs on the device may be in its plan; at_once: for acting_play, on a device that
 * has a queue; lower: what makes it smaller. acting_close also after a failure. */
enum status acting_open(struct acting *a, struct trainer *t, size_t n_games, int64_t seed, bool at_once,
                        const char *lower, struct error *err) MUST_USE;
void acting_close(struct acting *a);
size_t acting_bytes(struct trainer *t, size_t n_games); /* device memory that acting_open for acting_play takes */
/* One decision of all agents. rewards, terms and truncs are as the games gave them until acting_post. */
void acting_step(struct acting *a, bool greedy);
void acting_post(struct acting *a);
/* ACTING_STEPS decisions of all agents; the same choice of greedy each time. May return before they are made. */
enum status acting_play(struct acting *a, bool greedy, struct error *err) MUST_USE;
