/* warm_start.c - what another study of the store teaches a new one (`trawl sweep --from STUDY`), also when the space has
 * changed: a range that became narrower or wider, a parameter that is searched now and was not, or no longer is.
 * Invariant: only trials that were done when the new study was created count, so a resumed study sees the same ones. */
#include "sweep/control.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

#define FAR                                                                                                            \
    0.15 /* of the old range: a trial with such another value of a parameter that is now fixed teaches nothing */

/* The other study and its config. */
struct teacher {
    struct study_view view;
    struct setup *setup;
};

static enum status load_setup(const struct study *study, struct setup **ret_setup, struct error *err)
{
    TRY(setup_create(ret_setup, err));
    TRY(config_load_text((*ret_setup)->config, study->name, study->config, err));
    return setup_finish(*ret_setup, err);
}

static size_t find_param(const struct search *s, const char *key)
{
    size_t i = 0;

    while (i < s->space.dim && strcmp(s->space.params[i].key, key) != 0)
        i++;
    return i;
}

static bool choice_of(const struct search *s, size_t i, const char *text, double *ret)
{
    for (size_t k = 0; k < s->space.params[i].n_choices; k++)
        if (strcmp(s->choices[i][k], text) == 0) {
            *ret = (double)k;
            return true;
        }
    return false;
}

static bool value_of(const struct search *s, size_t i, const char *text, double *ret)
{
    if (s->space.params[i].scale == SPACE_CATEGORICAL)
        return choice_of(s, i, text, ret);
    return s->opts[i] != NULL && config_parse_value(s->opts[i], text, ret, NULL) == ST_OK && isfinite(*ret);
}

/* Trial t of the teacher as a point of the new space; false: it has none. */
static bool translate(const struct teacher *old, size_t t, const struct search *search, const struct config *config,
                      double *ret_x)
{
    const struct search *theirs = &old->view.search;
    char text[OPT_STR_MAX];
    double fixed;

    for (size_t i = 0; i < search->space.dim; i++) {
        const char *key = search->space.params[i].key;
        size_t k = find_param(theirs, key);
        const char *value = k < theirs->space.dim ? text : config_peek(old->setup->config, key);
        if (k < theirs->space.dim)
            search_value_text(theirs, k, old->view.x[t][k], text, sizeof text);
        if (value == NULL || !value_of(search, i, value, &ret_x[i]))
            return false;
    }
    for (size_t k = 0; k < theirs->space.dim; k++) { /* searched then, fixed now */
        const struct space_param *p = &theirs->space.params[k];
        const char *value = config_peek(config, p->key);
        double x = old->view.x[t][k];
        if (find_param(search, p->key) < search->space.dim || value == NULL)
            continue;
        if (!value_of(theirs, k, value, &fixed))
            return false;
        if (p->scale == SPACE_CATEGORICAL ? x != fixed : fabs(space_unit_distance(p, x, fixed)) > FAR)
            return false;
    }
    return true;
}

enum status warm_start_check(struct store *store, const char *from, const struct setup *setup, struct error *err)
{
    struct teacher old = {0};
    enum status rc = store_study_find(store, from, &old.view.study, err);

    if (rc == ST_OK)
        rc = load_setup(&old.view.study, &old.setup, err);
    if (rc == ST_OK && old.setup->env != setup->env)
        rc = FAIL(err, ST_CONFIG, "--from %s: that study trains on %s, this one on %s; scores cannot be compared", from,
                  old.setup->env->name, setup->env->name);
    if (rc == ST_OK && (strcmp(old.view.study.metric, setup->sweep.metric) != 0 ||
                        old.view.study.maximize != (setup->sweep.goal == 0)))
        rc = FAIL(err, ST_CONFIG, "--from %s: that study has sweep.metric = %s and sweep.goal = %s; give the same here",
                  from, old.view.study.metric, old.view.study.maximize ? "maximize" : "minimize");
    study_free(&old.view.study);
    setup_destroy(old.setup);
    return rc;
}

static enum status take_trials(const struct teacher *old, const struct setup *setup, struct study_view *view,
                               struct error *err)
{
    size_t n = old->view.n, dim = view->search.space.dim;

    view->other = mem_array(n > 0 ? n : 1, sizeof *view->other);
    view->other_x = mem_array2(n > 0 ? n : 1, dim, sizeof *view->other_x);
    if (view->other == NULL || view->other_x == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the trials of %s", old->view.study.name);
    for (size_t t = 0; t < n; t++) {
        const struct gp_trial *gp = &old->view.gp[t];
        double *x = view->other_x + view->history.n_other * dim;
        double cost = study_view_trial_cost(view, &old->view.trials[t]);
        if (gp->state != GP_TRIAL_DONE || !(cost > 0) || old->view.trials[t].finished_ms > view->study.created_ms ||
            !translate(old, t, &view->search, setup->config, x))
            continue;
        view->other[view->history.n_other++] =
            (struct gp_trial){.x = x, .state = GP_TRIAL_DONE, .score = gp->score, .cost = cost};
    }
    view->history.other = view->other;
    return ST_OK;
}

enum status warm_start_load(struct store *store, const struct setup *setup, struct study_view *view, struct error *err)
{
    struct teacher old = {0};
    enum status rc;

    if (view->search.from[0] == '\0')
        return ST_OK;
    rc = study_view_load(store, view->search.from, &old.view, err);
    if (rc != ST_OK)
        return error_prefix(err, "--from %s", view->search.from);
    rc = load_setup(&old.view.study, &old.setup, err);
    if (rc == ST_OK)
        rc = search_bind(&old.view.search, old.setup, err);
    if (rc == ST_OK)
        rc = take_trials(&old, setup, view, err);
    if (rc == ST_OK)
        log_info("%zu of %lld finished trials of %s teach this study", view->history.n_other,
                 (long long)study_view_count(&old.view, TRIAL_DONE), old.view.study.name);
    study_view_free(&old.view);
    setup_destroy(old.setup);
    return rc;
}
