/* propose.c - what the next trials of a study are: new points, or configs again under a fresh seed. */
#include "sweep/proposals/propose.h"

#include "study/view/study_view.h"

/* The config to run again under a fresh seed; history->n: none. stuck: no new point is left. */
static size_t choose_again(const struct space *space, const struct gp_history *history, const struct confirm_plan *plan,
                           bool stuck, struct gp_insight *advice, const char **ret_origin)
{
    struct gp_history own = *history;
    size_t i = own.n;

    own.n_other = 0; /* advice is of this study's runs alone, as every reader gives it */
    if (advice->n == 0)
        gp_beliefs_init(advice, space, &own);
    *ret_origin = SEED_ORIGIN;
    if (plan->seeds > 1)
        i = gp_seed_next(space, advice, &own, plan->seeds);
    if (i < own.n)
        return i;
    *ret_origin = CONFIRM_ORIGIN;
    if (plan->target == TARGET_CONFIRM)
        i = gp_confirm_next(advice, &own, GP_CONFIRM_BEST);
    if (i < own.n || (plan->turn < CONFIRM_FIRST && !stuck))
        return i;
    i = gp_confirm_next(advice, &own,
                        plan->turn == CONFIRM_LAST  ? GP_CONFIRM_LAST
                        : plan->turn == CONFIRM_END ? GP_CONFIRM_END
                                                    : GP_CONFIRM_DOUBTFUL);
    return i < own.n && own.trials[i].cost <= plan->cost_left ? i : own.n;
}

/* What is being proposed, with what was already. */
struct batch {
    const struct space *space;
    struct gp_history history; /* with the suggestions so far as pending trials */
    struct gp_trial *trials; /* (history.n, and room for the batch) */
    struct confirm_plan plan; /* of what is left */
    struct proposal *ret;
};

/* Trial i is run again. What is known of its point holds for the new run, which stands on no front. */
static void add_again(struct batch *b, size_t i, const char *origin)
{
    struct proposal *ret = b->ret;
    struct suggestion *s = &ret->suggestions[ret->n++];
    struct gp_insight *advice = &ret->advice;
    size_t n = b->history.n++;

    *s = (struct suggestion){0};
    snprintf(s->origin, sizeof s->origin, "%s", origin);
    memcpy(s->x, b->trials[i].x, b->space->dim * sizeof *s->x);
    b->trials[n] = (struct gp_trial){.x = s->x, .state = GP_TRIAL_PENDING};
    if (advice->beliefs != NULL) {
        advice->beliefs = mem_grow(advice->beliefs, n, n + 1, sizeof *advice->beliefs);
        advice->beliefs[n] = advice->beliefs[i];
        advice->beliefs[n].on_front = false;
        advice->point = mem_grow(advice->point, n, n + 1, sizeof *advice->point);
        advice->point[n] = advice->point[i];
    }
    if (advice->recommended == n) /* none */
        advice->recommended = n + 1;
    if (strcmp(origin, CONFIRM_ORIGIN) != 0)
        return;
    b->plan.cost_left -= b->trials[i].cost;
    if (b->plan.turn == CONFIRM_FIRST && --b->plan.again == 0)
        b->plan.turn = CONFIRM_IF_STUCK;
}

/* Configs that are run again, as many as are due. */
static void propose_again(struct batch *b, size_t n)
{
    const char *origin;

    while (b->ret->n < n && (b->plan.seeds > 1 || b->plan.turn >= CONFIRM_FIRST || b->plan.target != TARGET_FAR)) {
        size_t i = choose_again(b->space, &b->history, &b->plan, false, &b->ret->advice, &origin);
        if (i == b->history.n)
            break;
        add_again(b, i, origin);
    }
}

/* New points for the rest; where none is left, a config again. */
static enum status propose_new(struct batch *b, struct suggester *suggester, int64_t number, size_t n,
                               struct error *err)
{
    struct proposal *ret = b->ret;
    struct suggestion *first = &ret->suggestions[ret->n];
    struct error why = {0};
    const char *origin = NULL;
    size_t made = 0, i = b->history.n;
    enum status rc = suggester_batch(suggester, &b->history, number, n - ret->n, first, &made, &why);

    if (rc == ST_OK && strcmp(first->origin, "default") == 0) /* the suggester's start, which is not the config */
        snprintf(first->origin, sizeof first->origin, "start");
    ret->n += made;
    if (rc == ST_OK || (rc == ST_LIMIT && ret->n > 0))
        return ST_OK;
    if (rc == ST_LIMIT && b->plan.turn != CONFIRM_NO)
        i = choose_again(b->space, &b->history, &b->plan, true, &ret->advice, &origin);
    if (i == b->history.n)
        return FAIL(err, rc, "%s", why.text);
    add_again(b, i, origin);
    return ST_OK;
}

enum status propose(struct suggester *suggester, const struct space *space, const struct gp_history *history,
                    int64_t number, const struct confirm_plan *plan, size_t n, struct proposal *ret, struct error *err)
{
    struct batch b = {.space = space, .history = *history, .plan = *plan, .ret = ret};
    enum status rc = ST_OK;

    b.trials = mem_array(history->n + n, sizeof *b.trials);
    if (history->n > 0)
        memcpy(b.trials, history->trials, history->n * sizeof *b.trials);
    b.history.trials = b.trials;
    propose_again(&b, n);
    if (ret->n < n)
        rc = propose_new(&b, suggester, number, n, err);
    if (ret->advice.recommended > history->n)
        ret->advice.recommended = history->n;
    mem_free(b.trials);
    return rc;
}
