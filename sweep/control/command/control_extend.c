/* control_extend.c - `trawl extend`.
 *
 * A finished row never changes: the longer training is a trial of its own, with the config and seed of the old one but
 * for train.total_timesteps, its curve so far, and its checkpoint under a new label. It begins like a trial that was
 * stopped in the middle. Its score, cost and steps are those of the whole training.
 * Invariant: the checkpoint is on the disk before the row that names it. */
#include "sweep/control/command/control_extend.h"
#include "study/space/branches.h"
#include "study/view/checkpoint_label.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "sweep/controller/trial/checkpoints.h"

struct extension {
    struct study_view view;
    const struct trial *old; /* in view */
    int64_t steps; /* in all */
    bool counts; /* for models and front */
    char *params, *config; /* of the new trial, owned */
    char from[PATH_MAX], to[PATH_MAX]; /* checkpoints */
};

static enum status check_old(const struct extension *e, struct error *err)
{
    const char *name = e->view.study.name;
    const struct trial *t = e->old;
    int64_t run;

    if (t->state != TRIAL_DONE)
        return FAIL(err, ST_USAGE, "extend: trial %lld of %s is %s; only one that is done is extended%s",
                    (long long)t->number, name, trial_state_name(t->state),
                    t->state == TRIAL_FAILED || t->state == TRIAL_STOPPED ? " (`trawl retry` runs it again)" : "");
    if (access(e->from, R_OK) == 0)
        return ST_OK;
    if (trial_is_branch(t, &run))
        return FAIL(err, ST_USAGE,
                    "extend: trial %lld of %s is a branch of trial %lld, and branches have no checkpoint: extend trial "
                    "%lld, or let `trawl try` train its config from the start",
                    (long long)t->number, name, (long long)run, (long long)run);
    return FAIL(
        err, ST_USAGE,
        "extend: trial %lld of %s has no checkpoint (%s): sweep.keep = none (the default) keeps none, front keeps "
        "those of the front and of the last trials, all keeps every one; `trawl try` trains its config from the start",
        (long long)t->number, name, e->from);
}

/* "2x" or "20M". */
static enum status read_steps(const char *text, int64_t trained_for, int64_t *ret_steps, struct error *err)
{
    size_t n = strlen(text);
    char factor_text[32];
    double factor;

    if (n > 1 && n < sizeof factor_text && text[n - 1] == 'x') {
        snprintf(factor_text, sizeof factor_text, "%.*s", (int)n - 1, text);
        if (num_parse_f64(factor_text, &factor) && factor > 0 && factor * (double)trained_for < 9e15) {
            *ret_steps = (int64_t)llround(factor * (double)trained_for);
            return ST_OK;
        }
    }
    return num_parse_i64(text, ret_steps)
               ? ST_OK
               : FAIL(err, ST_USAGE,
                      "extend: --steps is '%.40s'; a factor (2x) or a number of env steps (20M) is needed", text);
}

/* The new trial's parameters, and whether it is a point of the study's space: elsewhere it would pass for a second seed
 * of the old one's config. */
static enum status make_params(struct extension *e, struct error *err)
{
    const struct search *s = &e->view.search;
    size_t k = search_find(s, BRANCHES_STEPS_KEY);

    if (k == s->space.dim) {
        e->params = mem_strdup(e->old->params);
        return ST_OK;
    }
    e->counts = (double)e->steps >= s->space.params[k].min && (double)e->steps <= s->space.params[k].max;
    return branches_params(e->old->params, BRANCHES_STEPS_KEY, e->steps, &e->params, err);
}

static enum status make_config(struct extension *e, const char *steps, struct error *err)
{
    AT_END(setup_destroy_at) struct setup *setup = NULL;

    TRY(trial_setup(e->old, &setup, err));
    enum status rc =
        setup_is_program(setup)
            ? FAIL(err, ST_USAGE,
                   "extend: the trials of %s are trained by a program, which decides how it continues; `trawl try %s "
                   "--trial %lld` with another value queues a new one",
                   e->view.study.name, e->view.study.name, (long long)e->old->number)
            : read_steps(steps, setup->train.total_timesteps, &e->steps, err);
    if (rc == ST_OK && e->steps <= e->old->env_steps)
        rc = FAIL(err, ST_USAGE,
                  "extend: trial %lld of %s has trained for %lld steps; --steps is the new total, more than that",
                  (long long)e->old->number, e->view.study.name, (long long)e->old->env_steps);
    THEN(rc, branches_config(setup, BRANCHES_STEPS_KEY, e->steps, "trawl extend", &e->config, err));
    return rc;
}

static enum status check_not_again(const struct extension *e, struct error *err)
{
    for (size_t i = 0; i < e->view.n; i++) {
        const struct trial *t = &e->view.trials[i];
        bool counts = t->state == TRIAL_QUEUED || t->state == TRIAL_RUNNING || t->state == TRIAL_DONE;
        if (counts && t->seed == e->old->seed && strcmp(t->config, e->config) == 0)
            return FAIL(err, ST_USAGE,
                        "extend: trial %lld of %s was extended to %lld steps already, as trial %lld, which is %s",
                        (long long)e->old->number, e->view.study.name, (long long)e->steps, (long long)t->number,
                        trial_state_name(t->state));
    }
    return ST_OK;
}

/* The old one's bytes, as the new trial's own. */
static enum status write_checkpoint(const struct extension *e, const struct trial *trial, struct error *err)
{
    char owner[CHECKPOINT_LABEL_MAX], maker[CHECKPOINT_LABEL_MAX];
    MEM_LOCAL char *text = NULL;

    TRY(checkpoint_read_label(e->from, owner, maker, sizeof owner, err));
    checkpoint_owner(&e->view.study, trial, owner, sizeof owner);
    TRY(checkpoint_label(owner, maker, trial->config, &text, err));
    return checkpoint_copy(e->from, e->to, text, err);
}

static enum status make_trial(struct extension *e, struct store *store, struct trial *trial, struct error *err)
{
    char origin[64];

    snprintf(origin, sizeof origin, EXTENDS_ORIGIN " %lld", (long long)e->old->number);
    *trial = (struct trial){.study_id = e->view.study.id,
                            .number = (int64_t)e->view.n,
                            .params = e->params,
                            .config = e->config,
                            .origin = origin, /* all borrowed */
                            .seed = e->old->seed,
                            .propose_s = NAN,
                            .dropped = e->counts ? NULL : (char *)"trained for more steps than the study searches"};
    TRY(write_checkpoint(e, trial, err));
    enum status rc = store_trial_extend(store, trial, e->old->id, e->old->env_steps, e->to, err);
    trial->origin = NULL;
    if (rc != ST_OK)
        (void)unlink(e->to);
    return rc;
}

static enum status extend(struct extension *e, struct store *store, int64_t number, const char *steps,
                          struct trial *ret_trial, struct error *err)
{
    size_t i;

    TRY(study_view_find(&e->view, number, &i, err));
    e->old = &e->view.trials[i];
    checkpoint_file(store_path(store), e->view.study.name, number, e->from);
    checkpoint_file(store_path(store), e->view.study.name, (int64_t)e->view.n, e->to);
    TRY(make_config(e, steps, err));
    TRY(check_old(e, err));
    TRY(check_not_again(e, err));
    TRY(make_params(e, err));
    return make_trial(e, store, ret_trial, err);
}

enum status control_extend(struct store *store, const struct study *study, int64_t number, const char *steps,
                           char *ret_text, size_t size, struct error *err)
{
    MEM_LOCAL struct extension *e = mem_alloc(sizeof *e); /* large */
    struct trial trial = {0};
    char from[32], to[32];
    enum status rc = study_view_load(store, study->name, &e->view, err);

    THEN(rc, extend(e, store, number, steps, &trial, err));
    if (rc == ST_OK)
        snprintf(ret_text, size, "trial %lld of %s continues as trial %lld, from %s to %s%s", (long long)number,
                 study->name, (long long)trial.number,
                 study_cost_text(SEARCH_COST_STEPS, (double)e->old->env_steps, from),
                 study_cost_text(SEARCH_COST_STEPS, (double)e->steps, to),
                 e->counts ? "" : "; models and front leave it out, since the study does not search that many");
    mem_free(e->params);
    mem_free(e->config);
    study_view_free(&e->view);
    return rc;
}
