/* study_insight.c - what the models conclude about a study beyond its beliefs: how much each parameter matters, and the
 * bounds at which the front lies and that could be wider. */
#include "study/view/study_insight.h"

#include "base/config/opt.h"
#include "base/rng.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/space/trial_check.h"

#define RUN_TRIES 2000
#define EFFECT_MIN 0.05 /* share of the variance of score or ln cost */
#define ADVICE_DIGITS 4 /* of a bound to try, unless it needs more to lie where it must */

/* Would a section take x as its bound on this side, and would it search more than before? */
static bool is_wider(const struct space_param *p, const struct opt_def *opt, int side, double x)
{
    bool positive = p->scale == SPACE_LOG || p->scale == SPACE_POW2 || p->scale == SPACE_LOGIT;

    return x >= opt->min && x <= opt->max && (side < 0 ? x < p->min : x > p->max) && !(positive && x <= 0.0) &&
           !(p->scale == SPACE_LOGIT && x >= 1.0);
}

bool insight_bound(const struct space_param *p, const struct opt_def *opt, int side, double *x)
{
    double limit = side < 0 ? opt->min : opt->max, rounded;
    bool clamped = side < 0 ? *x < limit : *x > limit;
    char text[NUM_TEXT_MAX];

    if (clamped)
        *x = limit;
    if (p->scale == SPACE_POW2) {
        if (side < 0 && p->is_int)
            *x = fmax(*x, 1.0);
        *x = *x > 0.0 ? exp2(side < 0 ? ceil(log2(*x)) : floor(log2(*x))) : 0.0;
    } else if (p->is_int) {
        *x = side < 0 ? ceil(*x) : floor(*x);
        if (p->scale == SPACE_LOG)
            *x = fmax(*x, 1.0);
    }
    if (!is_wider(p, opt, side, *x))
        return false;
    for (int digits = ADVICE_DIGITS; !clamped && p->scale != SPACE_POW2 && digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, *x);
        if (num_parse_f64(text, &rounded) && is_wider(p, opt, side, rounded)) {
            *x = rounded;
            break;
        }
    }
    return true;
}

/* With parameter i as far out as its edge suggests, is there a trial that can be run? */
static bool can_be_run(struct trial_check *check, const struct search *search, size_t i, const struct gp_edge *edge)
{
    struct space wider = search->space;
    struct rng rng = rng_seed(1);
    double u[SPACE_MAX_DIM] = {0}, x[SPACE_MAX_DIM];

    *(edge->side < 0 ? &wider.params[i].min : &wider.params[i].max) = edge->suggested;
    for (int t = 0; t < RUN_TRIES; t++) {
        for (size_t k = 0; k < wider.dim; k++)
            u[k] = rng_f64(&rng);
        space_from_unit(&wider, u, x);
        x[i] = edge->suggested;
        if (trial_check_point(check, x, NULL) == ST_OK)
            return true;
    }
    return false;
}

/* A parameter that changes next to nothing leans on its bound by chance. Without a measured effect every one may
 * matter. */
static bool matters(const struct gp_insight *in, size_t i)
{
    bool measured = in->score_note == NULL && in->cost_note == NULL;

    return !measured || in->score[i].effect >= EFFECT_MIN || in->cost[i].effect >= EFFECT_MIN;
}

/* An edge that no study can follow is none: the option ends there, or no trial beyond could be run; nor is one of a
 * parameter that does not matter. */
static enum status drop_edges(struct study_view *v, struct gp_insight *in, struct error *err)
{
    struct setup *setup;

    TRY(study_view_setup(v, &setup, err));
    TRY(search_bind(&v->search, setup, err));
    struct trial_check *check = trial_check_create(setup, &v->search);
    if (trial_check_require(check, setup, err) != ST_OK) {
        trial_check_destroy(check);
        return ST_CONFIG;
    }
    for (size_t i = 0; i < v->search.space.dim; i++) {
        struct gp_edge *e = &in->edges[i];
        if (e->side != 0 &&
            !(matters(in, i) && insight_bound(&v->search.space.params[i], v->search.opts[i], e->side, &e->suggested) &&
              can_be_run(check, &v->search, i, e)))
            *e = (struct gp_edge){0};
    }
    trial_check_destroy(check);
    return ST_OK;
}

enum status study_view_insight(struct study_view *v, struct error *err)
{
    struct gp_insight insight;

    if (v->has_insight && v->advice.n == v->n && !v->advice_stale)
        return ST_OK;
    TRY(study_view_check_points(v, err));
    gp_insight_init(&insight, &v->search.space, &v->history, (uint64_t)v->study.seed);
    if (drop_edges(v, &insight, NULL) != ST_OK) /* a study of a program that had other options */
        memset(insight.edges, 0, sizeof insight.edges);
    study_view_take_advice(v, &insight);
    v->has_insight = true;
    v->advice_stale = false;
    return ST_OK;
}
