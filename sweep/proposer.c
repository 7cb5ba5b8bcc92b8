/* proposer.c - the suggester of a study in a thread of its own, so that no worker's message waits for a model.
 * Invariants: (1) a question is the thread's from proposer_ask until proposer_take returns it: nobody else touches the
 * suggester or the copied history; (2) an answer is written before the wake-up is sent. */
#include "sweep/scheduler.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

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
    struct suggestion suggestion;
    double seconds;
    enum status status;
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
        p->status = suggester_next(p->suggester, &p->history, p->number, &p->suggestion, &p->err);
        p->seconds = clock_mono_s() - begin_s;
        pthread_mutex_lock(&p->lock);
        if (p->state == PROPOSER_ASKED)
            p->state = PROPOSER_ANSWERED;
        if (write(p->wake_fd, &one, sizeof one) < 0)
            continue; /* full: it is awake */
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static enum status reserve(struct proposer *p, size_t n, struct error *err)
{
    struct gp_trial *trials;

    if (n <= p->cap)
        return ST_OK;
    trials = mem_grow(p->trials, p->cap, n, sizeof *trials);
    if (trials == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the history of %zu trials", n);
    p->trials = trials;
    p->cap = n;
    return ST_OK;
}

enum status proposer_create(struct proposer **ret_proposer, const struct space *space,
                            const struct suggest_settings *settings, size_t n_room, int wake_fd, struct error *err)
{
    struct proposer *p = mem_alloc(sizeof *p);
    enum status rc;

    if (p == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for proposals");
    p->wake_fd = wake_fd;
    rc = suggester_create(&p->suggester, space, settings, err);
    if (rc == ST_OK)
        rc = reserve(p, n_room, err);
    if (rc != ST_OK)
        goto fail;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->asked, NULL);
    int code = pthread_create(&p->thread, NULL, think, p);
    if (code != 0) {
        pthread_cond_destroy(&p->asked);
        pthread_mutex_destroy(&p->lock);
        rc = FAIL(err, ST_IO, "cannot start the thread of proposals: %s", strerror(code));
        goto fail;
    }
    *ret_proposer = p;
    return ST_OK;
fail:
    suggester_destroy(p->suggester);
    mem_free(p->trials);
    mem_free(p);
    return rc;
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
    pthread_cond_destroy(&p->asked);
    pthread_mutex_destroy(&p->lock);
    suggester_destroy(p->suggester);
    mem_free(p->trials);
    mem_free(p);
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

enum status proposer_ask(struct proposer *p, const struct gp_history *history, int64_t number, struct error *err)
{
    if (history->n > p->cap)
        TRY(reserve(p, 2 * history->n, err));
    p->history = *history;
    p->history.trials = p->trials;
    if (history->n > 0)
        memcpy(p->trials, history->trials, history->n * sizeof *p->trials);
    p->number = number;
    pthread_mutex_lock(&p->lock);
    p->state = PROPOSER_ASKED;
    pthread_cond_signal(&p->asked);
    pthread_mutex_unlock(&p->lock);
    return ST_OK;
}

bool proposer_take(struct proposer *p, struct suggestion *ret_suggestion, double *ret_seconds, enum status *ret_status,
                   struct error *err)
{
    if (state_of(p) != PROPOSER_ANSWERED)
        return false;
    *ret_suggestion = p->suggestion;
    *ret_seconds = p->seconds;
    *ret_status = p->status;
    if (p->status != ST_OK)
        (void)FAIL(err, p->status, "%s", p->err.text);
    pthread_mutex_lock(&p->lock);
    p->state = PROPOSER_IDLE;
    pthread_mutex_unlock(&p->lock);
    return true;
}
