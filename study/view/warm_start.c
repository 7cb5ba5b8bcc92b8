/* warm_start.c - trials of another study of the store as evidence for a new one (`trawl sweep --from STUDY`), also when
 * the space has changed: a range that became narrower or wider, a parameter that is searched now and was not, or no
 * longer is. Settings that are fixed in both studies are compared. Those that decide on learning must be near;
 * otherwise the study is refused, with a list. Of another game, or of one with other settings, scores are in another
 * unit, and what was fixed does not matter: gp/ takes points of such a study's front where own runs rank points alike.
 * A parameter of the new space may have had any value: it is in the point.
 * Invariant: only trials that were done when the new study was created count, so a resumed study sees the same ones. */
#include "study/view/warm_start.h"

#include "base/config/opt.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/version.h"

#define FAR                                                                                                            \
    0.15 /* of the old range: a trial with such another value of a parameter that is now fixed teaches nothing */

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
    return s->opts[i] != NULL && search_read_number(s->opts[i], text, ret) && isfinite(*ret);
}

/* Trial t of the other study, whose config is parsed, as a point of the new space; false: it has none. teaches: its
 * scores count, so that what is fixed now must have been near. */
static bool translate(const struct study_view *old, size_t t, const struct search *search, const struct config *config,
                      bool teaches, double *ret_x)
{
    const struct search *theirs = &old->search;
    char text[OPT_STR_MAX];
    double fixed;

    for (size_t i = 0; i < search->space.dim; i++) {
        const char *key = search->space.params[i].key;
        size_t k = search_find(theirs, key);
        const char *value = k < theirs->space.dim ? text : config_peek(old->setup->config, key);
        if (k < theirs->space.dim)
            search_value_text(theirs, k, old->x[t][k], text, sizeof text);
        if (value == NULL && !teaches) /* that study knew no such option */
            value = config_peek(config, key);
        if (value == NULL || !value_of(search, i, value, &ret_x[i]))
            return false;
    }
    for (size_t k = 0; teaches && k < theirs->space.dim; k++) { /* searched then, fixed now */
        const struct space_param *p = &theirs->space.params[k];
        const char *value = config_peek(config, p->key);
        double x = old->x[t][k];
        if (search_find(search, p->key) < search->space.dim || value == NULL)
            continue;
        if (!value_of(theirs, k, value, &fixed))
            return false;
        bool is_game = strncmp(p->key, "env.", 4) == 0;
        if (p->scale == SPACE_CATEGORICAL || is_game ? x != fixed : !(fabs(space_unit_distance(p, x, fixed)) <= FAR))
            return false;
    }
    return true;
}

enum difference { DIFFERENCE_NONE, DIFFERENCE_NEAR, DIFFERENCE_FAR };

/* Of the machine or of what is reported, not of what is learned. */
static bool is_machine(const char *key)
{
    static const char *const keys[] = {"train.seed",
                                       "train.max_seconds",
                                       "train.device",
                                       "train.threads",
                                       "train.precision",
                                       "train.graphs",
                                       "train.device_timeout_s",
                                       "train.log_interval_s",
                                       "train.checkpoint_interval_s"};

    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* How far apart two values are: on the option's usual range, where it has one, else by their ratio. */
static enum difference how_far(const struct opt_def *opt, double a, double b)
{
    static const enum space_scale scales[] = {
        [OPT_LINEAR] = SPACE_LINEAR, [OPT_LOG] = SPACE_LOG, [OPT_LOGIT] = SPACE_LOGIT, [OPT_POW2] = SPACE_POW2};
    struct space_param p = {.min = opt->sweep_min, .max = opt->sweep_max};

    if (opt->type != OPT_INT && opt->type != OPT_FLOAT)
        return DIFFERENCE_FAR;
    if (opt->sweep_factor > 1.0)
        return fabs(log(b / a)) <= FAR * 2 * log(opt->sweep_factor) ? DIFFERENCE_NEAR : DIFFERENCE_FAR;
    if (opt->scale == OPT_FIXED || opt->scale == OPT_CATEGORICAL) /* 0 is mostly "off": no ratio is near that */
        return a > 0 && b > 0 && a <= 2 * b && b <= 2 * a ? DIFFERENCE_NEAR : DIFFERENCE_FAR;
    p.scale = scales[opt->scale];
    return fabs(space_unit_distance(&p, a, b)) <= FAR ? DIFFERENCE_NEAR : DIFFERENCE_FAR;
}

/* Of a program nothing is known but the texts: its command, and the fixed parameters of two studies. */
static enum difference program_difference(const struct opt_def *opt, const char *key, const char *then, const char *now)
{
    bool is_param = search_param_name(key) != key;
    double a, b;

    if ((!is_param && strcmp(key, "sweep.command") != 0) || strcmp(then, now) == 0)
        return DIFFERENCE_NONE;
    if (!search_read_number(opt, then, &a) || !search_read_number(opt, now, &b))
        return DIFFERENCE_FAR;
    return a == b ? DIFFERENCE_NONE : how_far(&(struct opt_def){.type = OPT_FLOAT}, a, b);
}

static enum difference difference(const struct config *theirs, const struct config *ours, const struct opt_table *table,
                                  const struct opt_def *opt, const char *key)
{
    const char *then = config_peek(theirs, key), *now = config_peek(ours, key);
    double a, b;

    if (then != NULL && now != NULL && program_is_named(ours))
        return program_difference(opt, key, then, now);
    if (opt->type == OPT_STR || is_machine(key) || then == NULL || now == NULL ||
        config_parse_value(opt, then, &a, NULL) != ST_OK || config_parse_value(opt, now, &b, NULL) != ST_OK || a == b)
        return DIFFERENCE_NONE;
    if (strcmp(table->section, "env") == 0)
        return DIFFERENCE_FAR; /* another game */
    if (!config_has_effect(theirs, opt) && !config_has_effect(ours, opt))
        return DIFFERENCE_NONE;
    return how_far(opt, a, b);
}

/* Another game, several of them, or another setting of the game that is fixed in both studies. */
static bool is_another_game(const struct study_view *old, const struct setup *theirs, const struct setup *setup,
                            const struct search *search)
{
    const struct opt_table *tables[SETUP_TRIAL_TABLES];
    size_t n_tables = setup_trial_tables(setup, tables);

    if (theirs->env != setup->env || !sweep_envs_equal(&old->search.envs, &setup->envs))
        return true;
    for (size_t t = 0; t < n_tables; t++)
        for (size_t i = 0; strcmp(tables[t]->section, "env") == 0 && i < tables[t]->n_defs; i++) {
            char key[CONFIG_KEY_MAX];
            snprintf(key, sizeof key, "env.%s", tables[t]->defs[i].key);
            if (search_find(search, key) == search->space.dim &&
                search_find(&old->search, key) == old->search.space.dim &&
                difference(theirs->config, setup->config, tables[t], &tables[t]->defs[i], key) != DIFFERENCE_NONE)
                return true;
        }
    return false;
}

/* What is fixed in both studies. */
static enum status compare_fixed(const char *from, const struct study_view *old, const struct setup *setup,
                                 const struct search *search, struct error *err)
{
    const struct opt_table *tables[SETUP_TRIAL_TABLES];
    size_t n_tables = setup_trial_tables(setup, tables);
    const struct config *theirs = old->setup->config, *ours = setup->config;
    STRBUF(far, OUTPUT_MAX_BYTES);
    STRBUF(near, OUTPUT_MAX_BYTES);

    for (size_t t = 0; t < n_tables; t++)
        for (size_t i = 0; i < tables[t]->n_defs; i++) {
            char key[CONFIG_KEY_MAX];
            snprintf(key, sizeof key, "%s.%s", tables[t]->section, tables[t]->defs[i].key);
            if (search_find(search, key) < search->space.dim || search_find(&old->search, key) < old->search.space.dim)
                continue;
            enum difference d = difference(theirs, ours, tables[t], &tables[t]->defs[i], key);
            struct strbuf *list = d == DIFFERENCE_FAR ? &far : &near;
            if (d != DIFFERENCE_NONE)
                strbuf_addf(list, "%s%s is %s there and %s here", list->len > 0 ? ", " : "", key,
                            config_peek(theirs, key), config_peek(ours, key));
        }
    TRY(strbuf_status(&far, "a list of options", err));
    TRY(strbuf_status(&near, "a list of options", err));
    if (far.len > 0)
        return FAIL(err, ST_CONFIG,
                    "--from %s: its trials are poor evidence for this study: %s; set the same here, or search it with "
                    "a section [sweep.SECTION.KEY] whose range holds both",
                    from, far.text);
    if (near.len > 0)
        log_warn("--from %s: its trials count as near ones: %s", from, near.text);
    return ST_OK;
}

enum status warm_start_check(struct store *store, const char *from, const struct setup *setup,
                             const struct search *search, struct error *err)
{
    AT_END(study_view_free) struct study_view old = {0};
    struct setup *theirs = NULL;
    struct study study;

    TRY(store_study_find(store, from, &study, err));
    TRY(study_view_begin(&study, store_path(store), &old, err));
    TRY(study_view_setup(&old, &theirs, err));
    if (is_another_game(&old, theirs, setup, search)) {
        log_info("--from %s: scores of another game, or of other settings of it, cannot be compared: this study tries "
                 "configs of its front once its own runs rank configs as that study does",
                 from);
        return ST_OK;
    }
    if (strcmp(old.study.metric, setup->sweep.metric) != 0 || old.study.maximize != (setup->sweep.goal == 0))
        return FAIL(err, ST_CONFIG,
                    "--from %s: that study has sweep.metric = %s and sweep.goal = %s; give the same here", from,
                    old.study.metric, study_direction(&old.study));
    return compare_fixed(from, &old, setup, search, err);
}

static bool inside(const struct space *space, const double *x)
{
    for (size_t i = 0; i < space->dim; i++)
        if (!(x[i] >= space->params[i].min && x[i] <= space->params[i].max))
            return false;
    return true;
}

/* Of another game: as far as they can be run here. */
static void take_trials(const struct study_view *old, const struct setup *setup, struct study_view *view)
{
    size_t dim = view->search.space.dim;
    bool teaches = !view->history.other_game;

    view->other = mem_array(old->n, sizeof *view->other);
    view->other_x = mem_array2(old->n, dim, sizeof *view->other_x);
    for (size_t t = 0; t < old->n; t++) {
        const struct gp_trial *gp = &old->gp[t];
        double *x = view->other_x + view->history.n_other * dim;
        double cost = study_view_trial_cost(view, &old->trials[t]);
        bool done = gp->state == GP_TRIAL_DONE || (teaches && gp->state == GP_TRIAL_INFEASIBLE); /* of its own limits */
        if (old->search.envs.n > 0 && old->search.cost == view->search.cost)
            cost = gp->cost; /* over all games */
        if (!done || !(cost > 0) || old->trials[t].finished_ms > view->study.created_ms ||
            !translate(old, t, &view->search, setup->config, teaches, x) ||
            !(teaches || inside(&view->search.space, x)))
            continue;
        view->other[view->history.n_other++] =
            (struct gp_trial){.x = x, .state = GP_TRIAL_DONE, .score = gp->score, .cost = cost};
    }
    view->history.other = view->other;
}

enum status warm_start_load(struct store *store, const struct setup *setup, struct study_view *view, struct error *err)
{
    AT_END(study_view_free) struct study_view old = {0};
    struct setup *theirs;

    if (view->search.from[0] == '\0')
        return ST_OK;
    enum status rc = study_view_load(store, view->search.from, &old, err);
    if (rc == ST_NOTFOUND) {
        error_clear(err);
        log_warn("--from %.*s: that study has been removed from the store; this one continues without its trials",
                 (int)strcspn(view->search.from, "~"), view->search.from);
        return ST_OK;
    }
    if (rc != ST_OK)
        return error_prefix(err, "--from %s", view->search.from);
    rc = study_view_setup(&old, &theirs, err);
    THEN(rc, search_bind(&old.search, theirs, err));
    if (rc == ST_OK) {
        view->history.other_game = is_another_game(&old, theirs, setup, &view->search);
        take_trials(&old, setup, view);
        log_info(
            view->history.other_game
                ? "%zu of %lld finished trials of %s, of another game, give configs to try once own runs rank alike"
                : "%zu of %lld finished trials of %s teach this study once its own runs confirm them",
            view->history.n_other, (long long)study_view_count(&old, TRIAL_DONE), old.study.name);
    }
    return rc;
}
