/* replay.c - makes the proposals of a stored study again.
 *
 * A second view of the study begins empty. Before each proposal it gets the trials that there were, as waiting ones,
 * and the ends of those that the proposal had seen: so models, fronts and games of a config are judged by the code that
 * judged them when the study ran.
 * Invariant: nothing of a trial but its values is in that view before a proposal has seen its end. */
#include "sweep/proposals/replay.h"

#include "study/findings/next_trials.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/space/trial_check.h"
#include "study/view/warm_start.h"
#include "sweep/proposals/evidence.h"
#include "sweep/proposals/propose.h"

struct replay {
    struct study_view view; /* as the proposals saw it */
    struct trial *trials; /* (n) as they are stored */
    size_t n, at;
    unsigned char *shown; /* (n) bits of evidence.h: what the view shows */
    struct evidence evidence;
    struct setup *setup; /* the view's */
    struct trial_check *check;
    struct suggester *suggester;
    struct proposal made; /* those that were asked for together, of which the next trial may be one */
    char *now_params; /* of the last answer */
};

/* The space from here on. */
static enum status take_space(struct replay *r, const char *text, struct error *err)
{
    AT_END(search_destroy_at) struct search *search = search_create();

    TRY(search_from_json(text, search, err));
    TRY(search_bind(search, r->setup, err));
    suggester_destroy(r->suggester);
    r->suggester = NULL;
    struct suggest_settings settings = next_settings(r->setup, r->check);
    TRY(suggester_create(&r->suggester, &search->space, &settings, err));
    search_free(&r->view.search);
    r->view.search = *search;
    memset(search, 0, sizeof *search);
    mem_free(r->view.study.space);
    r->view.study.space = mem_strdup(text);
    study_view_judge(&r->view);
    return ST_OK;
}

static enum status load(struct replay *r, struct store *store, const char *name, struct error *err)
{
    struct study study;

    TRY(store_study_find(store, name, &study, err));
    enum status rc = store_trial_list(store, study.id, &r->trials, &r->n, err);
    THEN(rc, study_view_begin(&study, store_path(store), &r->view, err));
    study_free(&study); /* empty where the view took it */
    TRY(rc);
    r->shown = mem_array(r->n + 1, sizeof *r->shown);
    TRY(study_view_setup(&r->view, &r->setup, err));
    TRY(search_bind(&r->view.search, r->setup, err));
    TRY(warm_start_load(store, r->setup, &r->view, err));
    r->check = trial_check_create(r->setup, &r->view.search);
    TRY(trial_check_require(r->check, r->setup, err));
    return ST_OK; /* the first proposal has its space */
}

enum status replay_open(struct replay **ret_replay, struct store *store, const char *study, struct error *err)
{
    struct replay *r = mem_alloc(sizeof *r);
    enum status rc = load(r, store, study, err);

    if (rc != ST_OK) {
        replay_close(r);
        return rc;
    }
    *ret_replay = r;
    return ST_OK;
}

void replay_close(struct replay *r)
{
    if (r == NULL)
        return;
    suggester_destroy(r->suggester);
    trial_check_destroy(r->check);
    evidence_free(&r->evidence);
    study_view_free(&r->view);
    trial_list_free(r->trials, r->n);
    mem_free(r->shown);
    mem_free(r->now_params);
    gp_insight_free(&r->made.advice);
    mem_free(r);
}

/* The view gets trial i, of which nothing is known yet. */
static enum status append(struct replay *r, size_t i, struct error *err)
{
    const struct trial *t = &r->trials[i];
    double x[SPACE_MAX_DIM];
    struct trial waiting = {.id = t->id,
                            .study_id = t->study_id,
                            .number = t->number,
                            .state = TRIAL_QUEUED,
                            .seed = t->seed,
                            .score = NAN,
                            .perf = NAN,
                            .cost_s = NAN,
                            .device_s = NAN,
                            .score_se = NAN,
                            .eval_s = NAN,
                            .start_s = NAN,
                            .propose_s = NAN};

    TRY(search_point(&r->view.search, t->params, x, err));
    waiting.params = mem_strdup(t->params);
    waiting.origin = mem_strdup(t->origin);
    study_view_append(&r->view, &waiting, x);
    return ST_OK;
}

static enum status show_end(struct replay *r, size_t i, struct error *err)
{
    const struct trial *from = &r->trials[i];
    struct trial *t = &r->view.trials[i];

    if (from->state < TRIAL_DONE)
        return FAIL(err, ST_CORRUPT, "%s: a proposal had seen the end of trial %zu, which is %s", r->view.study.name, i,
                    trial_state_name(from->state));
    t->state = from->state;
    t->score = from->score;
    t->perf = from->perf;
    t->cost_s = from->cost_s;
    t->device_s = from->device_s;
    t->env_steps = from->env_steps;
    t->score_se = from->score_se;
    t->eval_episodes = from->eval_episodes;
    t->eval_unfinished = from->eval_unfinished;
    t->outcomes = from->outcomes != NULL ? mem_strdup(from->outcomes) : NULL;
    study_view_update(&r->view, i);
    return ST_OK;
}

/* The view becomes what this proposal saw. */
static enum status show(struct replay *r, const struct evidence_entry *entry, struct error *err)
{
    if (entry->n_trials > r->n)
        return FAIL(err, ST_CORRUPT, "%s: a proposal had seen %zu trials, and there are %zu", r->view.study.name,
                    entry->n_trials, r->n);
    if (entry->space != NULL)
        TRY(take_space(r, entry->space, err));
    while (r->view.n < entry->n_trials)
        TRY(append(r, r->view.n, err));
    for (size_t i = 0; i < entry->n_trials; i++) {
        unsigned char now = r->evidence.known[i], before = r->shown[i];
        struct trial *t = &r->view.trials[i];
        if ((now & EVIDENCE_ENDED) != 0 && (before & EVIDENCE_ENDED) == 0)
            TRY(show_end(r, i, err));
        if ((now & EVIDENCE_DROPPED) != (before & EVIDENCE_DROPPED)) {
            mem_free(t->dropped);
            t->dropped = (now & EVIDENCE_DROPPED) != 0 ? mem_strdup("") : NULL;
            study_view_update(&r->view, i);
        }
        r->shown[i] = now;
    }
    return ST_OK;
}

/* Proposals that were asked for together are made again at the first of them. */
static enum status make(struct replay *r, const struct evidence_entry *entry, struct error *err)
{
    if (entry->place > 0)
        return r->made.n > entry->place
                   ? ST_OK
                   : FAIL(err, ST_NOTFOUND, "only %zu of the requested proposals are made now", r->made.n);
    gp_insight_free(&r->made.advice);
    r->made = (struct proposal){0};
    return propose(r->suggester, &r->view.search.space, &r->view.history, next_number(&r->view), &entry->plan,
                   entry->of, &r->made, err);
}

static enum status again(struct replay *r, const struct trial *t, struct replayed *ret, struct error *err)
{
    struct evidence_entry entry;
    struct error why = {0};

    TRY(evidence_read(&r->evidence, t->seen, &entry, err));
    enum status rc = show(r, &entry, err);
    if (rc == ST_OK) {
        ret->outcome = REPLAY_DIFFERS;
        if (r->suggester == NULL) {
            rc = FAIL(err, ST_CORRUPT, "%s: the first proposal, trial %lld, has no search space", r->view.study.name,
                      (long long)t->number);
        } else if (make(r, &entry, &why) != ST_OK) {
            memcpy(ret->why, why.text, sizeof ret->why);
        } else {
            const struct suggestion *s = &r->made.suggestions[entry.place];
            r->now_params = search_run_json(&r->view.search, s->x, 0);
            snprintf(ret->now_origin, sizeof ret->now_origin, "%s", s->origin);
            ret->now_params = r->now_params;
            if (strcmp(r->now_params, t->params) == 0 && strcmp(ret->now_origin, t->origin) == 0)
                ret->outcome = REPLAY_SAME;
        }
    }
    evidence_entry_free(&entry);
    return rc;
}

enum status replay_next(struct replay *r, struct replayed *ret, struct error *err)
{
    *ret = (struct replayed){.number = -1};
    mem_free(r->now_params);
    r->now_params = NULL;
    if (r->at == r->n)
        return ST_OK;
    const struct trial *t = &r->trials[r->at++];
    ret->number = t->number;
    ret->origin = t->origin;
    ret->params = t->params;
    ret->outcome = t->propose_s > 0 ? REPLAY_UNRECORDED : REPLAY_GIVEN; /* NaN: it was not proposed */
    return t->seen != NULL ? again(r, t, ret, err) : ST_OK;
}
