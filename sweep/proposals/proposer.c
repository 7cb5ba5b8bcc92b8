/* proposer.c - the suggester of a study in a thread of its own, so that no worker's message waits for a model.
 * Invariants: (1) a question is the thread's from proposer_ask until proposer_take returns it: no other thread touches
 * the suggester or the copied history; (2) an answer is written before the wake-up is sent. */
#include "sweep/proposals/proposer.h"

#include "sweep/proposals/confirm.h"
#include "sweep/proposals/propose.h"

#include <sys/eventfd.h>

#define KEPT_BYTES                                                                                                     \
    ((size_t)64 << 20) /* what the models of a proposal take and free: a fifth of its time was new pages */

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
    size_t n; /* proposals that are wanted */
    struct space space; /* never changes */
    struct confirm_plan plan;
    struct proposal proposal;
    struct error err;
};

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
        p->proposal.status =
            propose(p->suggester, &p->space, &p->history, p->number, &p->plan, p->n, &p->proposal, &p->err);
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

    TRY(suggester_create(&suggester, space, settings, err));
    mem_keep_freed(KEPT_BYTES);
    p = mem_alloc(sizeof *p);
    p->wake_fd = wake_fd;
    p->space = *space;
    p->suggester = suggester;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->asked, NULL);
    int code = pthread_create(&p->thread, NULL, think, p);
    if (code == 0) {
        (void)pthread_setname_np(p->thread, "trawl-proposer");
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

void proposer_ask(struct proposer *p, const struct gp_history *history, int64_t number, const struct confirm_plan *plan,
                  size_t n)
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
    p->n = n;
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
