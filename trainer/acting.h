/* acting.h - a trainer's policy on games of its own: what an evaluation and a player have in common.
 * Invariant: nothing of the training state is touched but scratch; same weights, seed and choice of greedy, same games. */
#ifndef TRAINER_ACTING_H
#define TRAINER_ACTING_H

#include "trainer/trainer_priv.h"

struct acting {
    struct trainer *t; /* borrowed */
    size_t n; /* agents of all games */
    struct plan plan;
    struct policy_step step;
    struct kern_env *games; /* owned */
    void *obs; /* (n, D) act */
    float *h, *rewards, *logp, *value;
    int32_t *actions;
    uint8_t *mask, *terms, *truncs, *reset;
    struct rng *rng;
};

/* a is zeroed, but what the caller needs on the device may be in its plan; lower: what makes it smaller. acting_close also
 * after a failure. */
enum status acting_open(struct acting *a, struct trainer *t, size_t n_games, int64_t seed, const char *lower,
                        struct error *err) MUST_USE;
void acting_close(struct acting *a);
/* One decision of all agents. rewards, terms and truncs are as the games gave them until acting_go_on. */
void acting_step(struct acting *a, bool greedy);
void acting_go_on(struct acting *a);

#endif
