/* search_widen.c - a stored space and the one that a resumed study asks for: the same, or wider.
 * Invariant: every point of the stored space is one of the result, with the same numbers: parameters and choices keep
 * their order, new choices come last. */
#include "study/space/search_widen.h"

#include "study/space/search.h"

#define INSTEAD                                                                                                        \
    "; ranges of a study become only wider: leave the config out to continue with its own, or start a new study "      \
    "with "                                                                                                            \
    "--name NEW --from OLD, which learns from the trials of the old one"

static size_t find_text(const struct search *s, size_t i, const char *text)
{
    size_t k = 0;

    while (k < s->space.params[i].n_choices && strcmp(s->choices[i][k], text) != 0)
        k++;
    return k;
}

/* Appends the choices of parameter i that only parameter j of want has. */
static enum status widen_choices(struct search *s, size_t i, const struct search *want, size_t j, bool *ret_wider,
                                 struct error *err)
{
    struct space_param *p = &s->space.params[i];

    for (size_t k = 0; k < p->n_choices; k++)
        if (find_text(want, j, s->choices[i][k]) == want->space.params[j].n_choices)
            return FAIL(err, ST_CONFIG, "%s: the study also has %s, which the config leaves out" INSTEAD, p->key,
                        s->choices[i][k]);
    for (size_t k = 0; k < want->space.params[j].n_choices; k++) {
        if (find_text(s, i, want->choices[j][k]) < p->n_choices)
            continue;
        if (p->n_choices == SEARCH_MAX_CHOICES)
            return FAIL(err, ST_CONFIG, "%s has more than %d values", p->key, SEARCH_MAX_CHOICES);
        s->choices[i][p->n_choices++] = mem_strdup(want->choices[j][k]);
        p->max = (double)(p->n_choices - 1);
        *ret_wider = true;
    }
    return ST_OK;
}

static enum status widen_range(struct space_param *p, const struct space_param *want, bool *ret_wider,
                               struct error *err)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX], want_lo[NUM_TEXT_MAX], want_hi[NUM_TEXT_MAX];

    if (want->min > p->min || want->max < p->max)
        return FAIL(err, ST_CONFIG, "%s: the study searches %s to %s, the config only %s to %s" INSTEAD, p->key,
                    num_format_f64(p->min, lo), num_format_f64(p->max, hi), num_format_f64(want->min, want_lo),
                    num_format_f64(want->max, want_hi));
    *ret_wider = *ret_wider || want->min < p->min || want->max > p->max;
    p->min = want->min;
    p->max = want->max;
    return ST_OK;
}

/* The condition of parameter i is that of j in want; a new choice of its parent may meet it too. */
static enum status widen_condition(struct search *s, size_t i, const struct search *want, size_t j, struct error *err)
{
    struct space_param *p = &s->space.params[i];
    const struct space_param *w = &want->space.params[j];
    uint64_t met = 0;

    if (p->is_conditional != w->is_conditional ||
        (p->is_conditional && strcmp(s->space.params[p->parent].key, want->space.params[w->parent].key) != 0))
        return FAIL(err, ST_CONFIG, "%s depends on another option than in the study" INSTEAD, p->key);
    if (p->is_conditional && s->space.params[p->parent].scale != SPACE_CATEGORICAL &&
        (p->parent_min != w->parent_min || p->parent_max != w->parent_max))
        return FAIL(err, ST_CONFIG, "%s depends on other values of %s than in the study" INSTEAD, p->key,
                    s->space.params[p->parent].key);
    if (!p->is_conditional || s->space.params[p->parent].scale != SPACE_CATEGORICAL)
        return ST_OK;
    for (size_t k = 0; k < s->space.params[p->parent].n_choices; k++)
        met |= (w->parent_choices >> find_text(want, w->parent, s->choices[p->parent][k]) & 1) << k;
    p->parent_choices = met;
    return ST_OK;
}

/* A grid of steps stays where it is. */
static bool same_scale(const struct space_param *a, const struct space_param *b)
{
    double shift = a->step > 0.0 ? (a->min - b->min) / a->step : 0.0;

    return a->scale == b->scale && a->is_int == b->is_int && a->is_ordered == b->is_ordered && a->step == b->step &&
           fabs(shift - rint(shift)) < 1e-9;
}

/* Bounds may move: what was measured is judged again. Other metrics were not kept of the trials so far. */
static enum status take_outcomes(struct outcomes *o, const struct outcomes *want, bool *ret_changed, struct error *err)
{
    if (!outcomes_same_third(o, want))
        return FAIL(err, ST_CONFIG, "the config has another third objective (sweep.objective) than the study" INSTEAD);
    if (o->n_limits != want->n_limits)
        return FAIL(err, ST_CONFIG, "the config has %zu limits, the study has %zu" INSTEAD, want->n_limits,
                    o->n_limits);
    for (size_t k = 0; k < o->n_limits; k++) {
        const struct gp_limit *a = &o->bounds[k], *b = &want->bounds[k];
        if (strcmp(o->metrics[k], want->metrics[k]) != 0)
            return FAIL(err, ST_CONFIG, "[sweep.limit.%s] bounds %s, in the study %s" INSTEAD, want->names[k],
                        want->metrics[k], o->metrics[k]);
        *ret_changed = *ret_changed || a->min != b->min || a->max != b->max;
    }
    *o = *want;
    return ST_OK;
}

enum status search_widen(struct search *stored, const struct search *want, bool *ret_wider, struct error *err)
{
    *ret_wider = false;
    for (size_t j = 0; j < want->space.dim; j++)
        if (search_find(stored, want->space.params[j].key) == stored->space.dim)
            return FAIL(err, ST_CONFIG, "the config searches %s, the study does not" INSTEAD,
                        want->space.params[j].key);
    if (want->cost != stored->cost)
        return FAIL(err, ST_CONFIG, "the config counts another cost (sweep.cost) than the study" INSTEAD);
    TRY(take_outcomes(&stored->outcomes, &want->outcomes, ret_wider, err));
    for (size_t i = 0; i < stored->space.dim; i++) {
        struct space_param *p = &stored->space.params[i];
        size_t j = search_find(want, p->key);
        if (j == want->space.dim)
            return FAIL(err, ST_CONFIG, "the study searches %s, the config does not" INSTEAD, p->key);
        if (!same_scale(&want->space.params[j], p))
            return FAIL(err, ST_CONFIG, "%s is searched on another scale (distribution) than in the study" INSTEAD,
                        p->key);
        TRY(p->scale == SPACE_CATEGORICAL ? widen_choices(stored, i, want, j, ret_wider, err)
                                          : widen_range(p, &want->space.params[j], ret_wider, err));
    }
    for (size_t i = 0; i < stored->space.dim; i++)
        TRY(widen_condition(stored, i, want, search_find(want, stored->space.params[i].key), err));
    return ST_OK;
}

static const char *distribution(const struct space_param *p)
{
    switch (p->scale) {
    case SPACE_LOG:
        return "log";
    case SPACE_LOGIT:
        return "logit";
    case SPACE_POW2:
        return "pow2";
    case SPACE_CATEGORICAL:
        return "categorical";
    case SPACE_LINEAR:
        break;
    }
    return p->is_int ? "int" : "linear";
}

/* Of a program's parameter. */
static const char *type_of(const struct space_param *p)
{
    return p->scale == SPACE_CATEGORICAL ? "categorical" : p->is_int ? "int" : "float";
}

static void add_condition(const struct search *s, const struct space_param *p, struct strbuf *out)
{
    const struct space_param *parent = &s->space.params[p->parent];
    char number[NUM_TEXT_MAX];
    const char *between = "";

    if (!p->is_conditional)
        return;
    strbuf_add(out, "when = ");
    for (size_t k = 0; parent->scale == SPACE_CATEGORICAL && k < parent->n_choices; k++)
        if (p->parent_choices >> k & 1) {
            strbuf_addf(out, "%s%s == %s", between, parent->key, s->choices[p->parent][k]);
            between = " or ";
        }
    if (parent->scale != SPACE_CATEGORICAL && isfinite(p->parent_min)) {
        strbuf_addf(out, "%s >= %s", parent->key, num_format_f64(p->parent_min, number));
        between = " and ";
    }
    if (parent->scale != SPACE_CATEGORICAL && isfinite(p->parent_max))
        strbuf_addf(out, "%s%s <= %s", between, parent->key, num_format_f64(p->parent_max, number));
    strbuf_add(out, "\n");
}

void search_to_ini(const struct search *search, struct strbuf *out)
{
    char number[NUM_TEXT_MAX];

    for (size_t i = 0; i < search->space.dim; i++) {
        const struct space_param *p = &search->space.params[i];
        strbuf_addf(out, "\n[sweep.%s]\ndistribution = %s\n", p->key, distribution(p));
        if (search_param_name(p->key) != p->key)
            strbuf_addf(out, "type = %s\n", type_of(p));
        add_condition(search, p, out);
        if (p->scale == SPACE_CATEGORICAL) {
            strbuf_add(out, "values = ");
            for (size_t k = 0; k < p->n_choices; k++)
                strbuf_addf(out, "%s%s", k > 0 ? ", " : "", search->choices[i][k]);
            strbuf_add(out, p->is_ordered ? "\nordered = true\n" : "\n");
            continue;
        }
        strbuf_addf(out, "min = %s\n", num_format_f64(p->min, number));
        strbuf_addf(out, "max = %s\n", num_format_f64(p->max, number));
        if (p->has_init)
            strbuf_addf(out, "mean = %s\n", num_format_f64(p->init, number));
        if (p->step > 0.0)
            strbuf_addf(out, "step = %s\n", num_format_f64(p->step, number));
    }
}
