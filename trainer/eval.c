/* eval.c - plays whole episodes with the policy as it is, on games of its own.
 * All instances are played as one batch, whose logs are kept apart: each counts its first k episodes and no more, which
 * keeps games that end early from being counted more often than games that last. A game that has its k plays on, uncounted,
 * until all have theirs.
 * Invariant: nothing of the training state is touched but scratch. */
#include "trainer/acting.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define STEPS_BETWEEN_LOOKS 16 /* on a device: to ask whether all have their episodes costs a wait */

struct eval_run {
    struct trainer *t;
    size_t n_games;
    double quota; /* episodes to count of each instance */
    struct acting play;
    struct env_log *kept; /* (n_games) device: episodes counted so far */
    struct env_log *logs; /* (n_games) kept on the host, owned */
    int64_t *n_open; /* device: games that still owe episodes */
};

static enum status eval_open(struct eval_run *e, int64_t seed, struct error *err)
{
    plan_add(&e->play.plan, &e->n_open, "evaluation count", sizeof(int64_t), 1, 1, 1);
    plan_add(&e->play.plan, &e->kept, "evaluation logs", sizeof(struct env_log), e->n_games, 1, 1);
    e->logs = mem_array(e->n_games, sizeof *e->logs);
    if (e->logs == NULL)
        return FAIL(err, ST_NOMEM, "no memory to evaluate %zu games; lower the number of agents", e->n_games);
    return acting_open(&e->play, e->t, e->n_games, seed, "the number of agents", err);
}

static void eval_close(struct eval_run *e)
{
    acting_close(&e->play);
    mem_free(e->logs);
}

static void eval_step(struct eval_run *e, bool greedy)
{
    acting_step(&e->play, greedy);
    e->t->ops->env_log_keep(e->t->kern, e->play.games, e->kept, e->n_open, e->quota);
    acting_go_on(&e->play);
}

/* Plays until every game has its episodes, at most max_steps decisions. */
static enum status eval_play(struct eval_run *e, const struct eval_settings *set, struct error *err)
{
    struct kern *k = e->t->kern;
    int64_t n_open = 1, look = e->t->direct ? 1 : STEPS_BETWEEN_LOOKS;

    for (int64_t s = 0; n_open > 0 && s < set->max_steps; s++) {
        eval_step(e, set->greedy);
        if ((s + 1) % look == 0)
            TRY(kern_download(k, &n_open, e->n_open, sizeof n_open, err));
    }
    return kern_download(k, e->logs, e->kept, e->n_games * sizeof *e->logs, err);
}

static void eval_sum(const struct eval_run *e, struct eval_result *ret_result)
{
    struct env_log sum = {0};
    double mean = 0.0, square = 0.0, n = 0.0;

    for (size_t i = 0; i < e->n_games; i++) {
        env_log_sum(&sum, &e->logs[i]);
        if (e->logs[i].episodes > 0.0) {
            double perf = e->logs[i].perf / e->logs[i].episodes;
            mean += perf;
            square += perf * perf;
            n += 1.0;
        }
    }
    *ret_result = (struct eval_result){
        .score = NAN, .perf = NAN, .ep_return = NAN, .ep_length = NAN, .episodes = sum.episodes, .perf_std = NAN};
    if (sum.episodes > 0.0) {
        ret_result->score = sum.score / sum.episodes;
        ret_result->perf = sum.perf / sum.episodes;
        ret_result->ep_return = sum.ep_return / sum.episodes;
        ret_result->ep_length = sum.ep_length / sum.episodes;
        ret_result->perf_std = sqrt(fmax(0.0, square / n - (mean / n) * (mean / n)));
    }
}

enum status trainer_eval(struct trainer *t, const struct eval_settings *settings, struct eval_result *ret_result,
                         struct error *err)
{
    struct eval_run e = {.t = t};
    int64_t n_agents = t->shape.n_agents;
    enum status rc;

    if (settings->episodes < 1 || settings->agents < 1 || settings->max_steps < 1)
        return FAIL(err, ST_USAGE,
                    "evaluation of %" PRId64 " episodes by %" PRId64 " agents in %" PRId64
                    " steps; each must be at least 1",
                    settings->episodes, settings->agents, settings->max_steps);
    size_t n = (size_t)(settings->agents < settings->episodes ? settings->agents : settings->episodes);
    e.n_games = (n + (size_t)n_agents - 1) / (size_t)n_agents;
    e.quota = ceil((double)settings->episodes / (double)e.n_games);
    TRY(trainer_sync(t, err));
    rc = eval_open(&e, settings->seed, err);
    if (rc == ST_OK)
        rc = eval_play(&e, settings, err);
    if (rc == ST_OK)
        eval_sum(&e, ret_result);
    eval_close(&e);
    return rc;
}
