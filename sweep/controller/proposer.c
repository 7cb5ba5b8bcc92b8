/* proposer.c - the suggester of a study in a thread of its own, so that no worker's message waits for a model.
 * Invariants: (1) a question is the thread's from proposer_ask until proposer_take returns it: no other thread touches
 * the suggester or the copied history; (2) an answer is written before the wake-up is sent. */
#include "sweep/controller/proposer.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/status.h"
#include "gp/gp.h"
#include "study/study_view.h"
#include "sweep/controller/confirm.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum proposer_state { PROPOSER_IDLE, PROPOSER_ASKED, PROPOSER_ANSWERED, PROPOSER_ENDS };

struct proposer {
    pthread_t thread;
    pthread_mutex_t lock; /* guards state; never held together with another lock */
    pthread_cond_t asked;
    enum proposer_state state;
    int wake_fd; /* the scheduler's */
    /* by turns: the thread's while PROPOSER_ASKED, else the caller's */
    struct suggester *suggester;
    struct gp_trial *trials; /* (cap), copies */
    size_t cap;
    struct gp_history history;
    int64_t number;
    struct space space; /* never changes */
    struct confirm_plan plan;
    struct proposal proposal;
    struct error err;
};

/* Runs of trial i's config, those under way included. */
static size_t n_seeds(const struct gp_insight *advice, const struct gp_history *history, size_t i)
{
    size_t n = 0;

    for (size_t k = 0; k < history->n; k++)
        n += advice->point[k] == advice->point[i] &&
             (history->trials[k].state == GP_TRIAL_DONE || history->trials[k].state == GP_TRIAL_PENDING);
    return n;
}

/* Best or knee (of n_rules 2), if it was seen once; n: neither. A study does not end with one of them unconfirmed. */
static enum status choose_pick(struct proposer *p, const struct gp_history *own, size_t n_rules, size_t *ret_i)
{
    static const enum gp_rule rules[] = {GP_BEST, GP_KNEE};
    const struct gp_insight *advice = &p->proposal.advice;
    struct gp_picked picked;

    *ret_i = own->n;
    for (size_t k = 0; k < n_rules && *ret_i == own->n && advice->point != NULL; k++) {
        TRY(gp_pick(advice, own, rules[k], 0, &picked, &p->err));
        if (picked.i < own->n && n_seeds(advice, own, picked.i) < 2)
            *ret_i = picked.i;
    }
    return ST_OK;
}

/* The config seen once that would be the best if the best were not; n: none. With the last runs there, their scores can
 * hardly make an unconfirmed config the best. */
static size_t runner_up(const struct gp_insight *advice, const struct gp_history *own)
{
    size_t next = own->n;

    for (size_t i = 0; i < own->n && advice->beliefs != NULL; i++) {
        const struct gp_belief *b = &advice->beliefs[i], *so_far = next < own->n ? &advice->beliefs[next] : NULL;
        if (advice->point[i] != i || own->trials[i].state != GP_TRIAL_DONE || n_seeds(advice, own, i) > 1)
            continue;
        if (so_far == NULL || b->score - b->score_sd > so_far->score - so_far->score_sd)
            next = i;
    }
    return next;
}

/* The config to run again under a fresh seed; history.n: none. stuck: no new point is left. */
static enum status choose_confirm(struct proposer *p, bool stuck, size_t *ret_i)
{
    struct gp_history own = p->history;
    struct gp_insight *advice = &p->proposal.advice;
    struct gp_picked picked;

    own.n_other = 0; /* advice is of this study's runs alone, as every reader gives it */
    *ret_i = own.n;
    if (advice->n == 0)
        TRY(gp_beliefs_init(advice, &p->space, &own, &p->err));
    if (p->plan.target == TARGET_CONFIRM)
        TRY(choose_pick(p, &own, 1, ret_i));
    if (*ret_i < own.n || (p->plan.turn < CONFIRM_FIRST && !stuck))
        return ST_OK;
    if (p->plan.turn >= CONFIRM_END)
        TRY(choose_pick(p, &own, 2, ret_i));
    if (*ret_i == own.n && p->plan.turn == CONFIRM_LAST)
        *ret_i = runner_up(advice, &own);
    if (*ret_i == own.n)
        TRY(gp_confirm_next(advice, &own, &(struct gp_confirm_settings){0}, ret_i, &p->err));
    if (*ret_i == own.n && p->plan.turn == CONFIRM_LAST) {
        TRY(gp_pick(advice, &own, GP_BEST, 0, &picked, &p->err));
        *ret_i = picked.i;
    }
    if (*ret_i < own.n && own.trials[*ret_i].cost > p->plan.cost_left)
        *ret_i = own.n;
    return ST_OK;
}

static enum status propose(struct proposer *p)
{
    struct suggestion *s = &p->proposal.suggestion;
    size_t i = p->history.n;
    enum status rc = ST_OK;

    if (p->plan.turn >= CONFIRM_FIRST || p->plan.target != TARGET_FAR)
        rc = choose_confirm(p, false, &i);
    if (rc == ST_OK && i == p->history.n) {
        rc = suggester_next(p->suggester, &p->history, p->number, s, &p->err);
        if (rc != ST_LIMIT || p->plan.turn == CONFIRM_NO)
            return rc;
        struct error used_up = p->err;
        error_clear(&p->err);
        if ((rc = choose_confirm(p, true, &i)) == ST_OK && i == p->history.n) {
            p->err = used_up;
            return ST_LIMIT;
        }
    }
    if (rc != ST_OK)
        return rc;
    *s = (struct suggestion){.origin = CONFIRM_ORIGIN};
    memcpy(s->x, p->history.trials[i].x, p->space.dim * sizeof *s->x);
    return ST_OK;
}

static void *think(void *ctx)
{
    struct proposer *p = ctx;
    const uint64_t one = 1;

    pthread_mutex_lock(&p->lock);
    while (p->state != PROPOSER_ENDS) {
        if (p->state != PROPOSER_ASKED) {
            pthread_cond_wait(&p->asked, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        double begin_s = clock_mono_s();
        error_clear(&p->err);
        p->proposal.status = propose(p);
        p->proposal.seconds = clock_mono_s() - begin_s;
        pthread_mutex_lock(&p->lock);
        if (p->state == PROPOSER_ASKED)
            p->state = PROPOSER_ANSWERED;
        if (write(p->wake_fd, &one, sizeof one) < 0)
            continue; /* full: it is awake */
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void free_proposer(struct proposer *p)
{
    pthread_cond_destroy(&p->asked);
    pthread_mutex_destroy(&p->lock);
    suggester_destroy(p->suggester);
    gp_insight_free(&p->proposal.advice);
    mem_free(p->trials);
    mem_free(p);
}

enum status proposer_create(struct proposer **ret_proposer, const struct space *space,
                            const struct suggest_settings *settings, int wake_fd, struct error *err)
{
    struct suggester *suggester = NULL;
    struct proposer *p;
    int code;

    TRY(suggester_create(&suggester, space, settings, err));
    p = mem_alloc(sizeof *p);
    p->wake_fd = wake_fd;
    p->space = *space;
    p->suggester = suggester;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->asked, NULL);
    code = pthread_create(&p->thread, NULL, think, p);
    if (code == 0) {
        *ret_proposer = p;
        return ST_OK;
    }
    free_proposer(p);
    return FAIL(err, ST_IO, "cannot start the thread of proposals: %s", strerror(code));
}

void proposer_destroy(struct proposer *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->state = PROPOSER_ENDS;
    pthread_cond_signal(&p->asked);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    free_proposer(p);
}

static enum proposer_state state_of(const struct proposer *p)
{
    struct proposer *locked = (struct proposer *)p; /* for its lock */

    pthread_mutex_lock(&locked->lock);
    enum proposer_state state = locked->state;
    pthread_mutex_unlock(&locked->lock);
    return state;
}

bool proposer_is_busy(const struct proposer *p)
{
    return state_of(p) != PROPOSER_IDLE;
}

void proposer_ask(struct proposer *p, const struct gp_history *history, int64_t number, const struct confirm_plan *plan)
{
    if (history->n > p->cap) {
        p->trials = mem_grow(p->trials, p->cap, 2 * history->n, sizeof *p->trials);
        p->cap = 2 * history->n;
    }
    p->history = *history;
    p->history.trials = p->trials;
    if (history->n > 0)
        memcpy(p->trials, history->trials, history->n * sizeof *p->trials);
    p->number = number;
    p->plan = *plan;
    p->proposal = (struct proposal){0};
    pthread_mutex_lock(&p->lock);
    p->state = PROPOSER_ASKED;
    pthread_cond_signal(&p->asked);
    pthread_mutex_unlock(&p->lock);
}

bool proposer_take(struct proposer *p, struct proposal *ret_proposal, struct error *err)
{
    if (state_of(p) != PROPOSER_ANSWERED)
        return false;
    *ret_proposal = p->proposal;
    p->proposal = (struct proposal){0};
    if (ret_proposal->status != ST_OK)
        (void)FAIL(err, ret_proposal->status, "%s", p->err.text);
    pthread_mutex_lock(&p->lock);
    p->state = PROPOSER_IDLE;
    pthread_mutex_unlock(&p->lock);
    return true;
}
