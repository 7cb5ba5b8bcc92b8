/* next_trials.c - see next_trials.h. What a controller adds to this is chance: fresh seeds of configs on the front take
 * their turn between proposals, and trials that end meanwhile change what is known. */
#include "study/findings/next_trials.h"

#include "base/text/human.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/space/trial_check.h"

/* The best that the front is believed to reach at this cost, higher is better; -INFINITY: every member costs more. */
static double front_at(const struct study_view *v, double log_cost)
{
    double best = -INFINITY;

    for (size_t i = 0; i < v->n; i++) {
        const struct gp_belief *b = v->on_front[i] ? study_view_belief(v, i) : NULL;
        if (b != NULL && b->log_cost <= log_cost)
            best = fmax(best, b->score);
    }
    return best;
}

static void explain(const struct study_view *v, struct next_trial *t)
{
    const struct suggestion *s = &t->suggestion;
    const struct gp_belief *b = &t->belief;
    char score[HUMAN_TEXT_MAX], front[HUMAN_TEXT_MAX], cost[32];

    if (strcmp(s->origin, "default") == 0) {
        snprintf(t->why, NEXT_WHY_MAX, "the values of the config itself, from which the search starts");
    } else if (!s->has_prediction) {
        snprintf(t->why, NEXT_WHY_MAX, "%s",
                 strcmp(s->origin, "random") == 0 ? "drawn at random, as the method says"
                                                  : "a point of the design that covers the space evenly");
    } else {
        double best = front_at(v, b->log_cost);
        study_view_cost_text(v, exp(b->log_cost), cost);
        text_number(study_view_score(v, b->score), score);
        if (best == -INFINITY)
            snprintf(t->why, NEXT_WHY_MAX,
                     "cheaper than all of the front: %.40s of %s expected for %s, where there is nothing yet",
                     v->study.metric, score, cost);
        else
            snprintf(t->why, NEXT_WHY_MAX,
                     "of all points it is expected to widen the front most: %.40s of %s expected for %s, where the "
                     "front has %s; its chance to beat that is %.0f %%",
                     v->study.metric, score, cost, text_number(study_view_score(v, best), front),
                     50 * erfc((best - b->score) / (b->score_sd * sqrt(2.0))));
    }
}

struct suggest_settings next_settings(const struct setup *setup, struct trial_check *check)
{
    const struct sweep_settings *s = &setup->sweep;

    return (struct suggest_settings){.method = (enum suggest_method)s->method,
                                     .seed = (uint64_t)s->seed,
                                     .n_init = (size_t)s->n_init,
                                     .max_cost = s->max_cost,
                                     .allowed = trial_check_allows,
                                     .allowed_ctx = check};
}

int64_t next_number(const struct study_view *v)
{
    int64_t n = (int64_t)v->n;

    for (size_t i = 0; i < v->n; i++)
        n -= trial_is_further(&v->trials[i]);
    return n;
}

static enum status propose(const struct study_view *v, struct gp_surrogate *surrogate,
                           const struct suggest_settings *settings, struct next_trial *ret, size_t *ret_n,
                           struct error *err)
{
    MEM_LOCAL struct gp_trial *rows = mem_array(v->n + NEXT_TRIALS, sizeof *rows);
    struct gp_history history = v->history;
    struct suggester *suggester = NULL;
    int64_t number = next_number(v);
    enum status rc = suggester_create(&suggester, &v->search.space, settings, err);

    if (v->n > 0)
        memcpy(rows, v->history.trials, v->n * sizeof *rows);
    history.trials = rows;
    for (; rc == ST_OK && *ret_n < NEXT_TRIALS; history.n++) {
        rc = suggester_next(suggester, &history, number++, &ret[*ret_n].suggestion, err);
        if (rc != ST_OK)
            break;
        gp_surrogate_predict(surrogate, ret[*ret_n].suggestion.x, 1, &ret[*ret_n].belief);
        explain(v, &ret[*ret_n]);
        rows[history.n] = (struct gp_trial){.x = ret[*ret_n].suggestion.x, .state = GP_TRIAL_PENDING};
        ++*ret_n;
    }
    suggester_destroy(suggester);
    return rc;
}

size_t next_trials(struct study_view *v, struct gp_surrogate *surrogate, struct next_trial *ret, struct error *err)
{
    struct setup *setup = NULL;
    struct trial_check *check = NULL;
    size_t n = 0;
    enum status rc = study_view_setup(v, &setup, err);

    THEN(rc, search_bind(&v->search, setup, err));
    if (rc == ST_OK) {
        check = trial_check_create(setup, &v->search);
        rc = trial_check_require(check, setup, err);
    }
    if (rc == ST_OK) {
        struct suggest_settings settings = next_settings(setup, check);
        rc = propose(v, surrogate, &settings, ret, &n, err);
    }
    trial_check_destroy(check);
    return n; /* fewer than asked for: the space is exhausted, and err names that */
}
