/* search_depends.c - parameters that have an effect only while another option has certain values (a row's `depends`).
 * A parameter whose condition the config can never meet is not searched; one that depends on another parameter of the
 * space becomes conditional on it. */
#include "study/space/search_depends.h"

#include "base/config/opt.h"
#include "study/space/search.h"
#include "study/space/search_expr.h"
#include "study/setup/setup.h"

/* A condition on parameter j of the space; where it is met only for some values, they are noted in p. */
static enum search_effect of_parent(const struct search *s, size_t j, const struct config_condition *c,
                                    struct space_param *p)
{
    const struct space_param *parent = &s->space.params[j];
    uint64_t met = 0;
    size_t n = 0;

    for (size_t k = 0; k < parent->n_choices; k++)
        if (config_condition_holds(c, s->opts[j], s->choices[j][k])) {
            met |= UINT64_C(1) << k;
            n++;
        }
    if (parent->scale == SPACE_CATEGORICAL) {
        p->parent_choices = met;
        p->parent = j;
        return n == parent->n_choices ? EFFECT_ALWAYS : n == 0 ? EFFECT_NEVER : EFFECT_SOMETIMES;
    }
    p->parent = j;
    p->parent_min = nextafter(c->above, INFINITY);
    p->parent_max = INFINITY;
    if (!c->is_above || parent->min > c->above) /* no range of ours is one of a few numbers */
        return EFFECT_ALWAYS;
    return parent->max > c->above ? EFFECT_SOMETIMES : EFFECT_NEVER;
}

/* One condition of parameter i; where it is met for some points only, the parent is noted in p. */
static enum search_effect of_condition(const struct search *s, const struct setup *setup,
                                       const struct config_condition *c, struct space_param *p)
{
    size_t j = search_find(s, c->key);
    const struct opt_def *opt = config_find_opt(setup->config, c->key);

    if (opt == NULL)
        return EFFECT_ALWAYS;
    if (j < s->space.dim)
        return of_parent(s, j, c, p);
    return config_condition_holds(c, opt, config_peek(setup->config, c->key)) ? EFFECT_ALWAYS : EFFECT_NEVER;
}

/* Of parameter i; *ret_condition: one that is not met, or not always. A parameter has one parent: of several conditions
 * on the space that are all needed the first is kept, of several that are each enough none. */
static enum search_effect find_effect(const struct search *s, const struct setup *setup, size_t i,
                                      struct space_param *p, struct config_condition *ret_condition)
{
    bool any = config_depends_on_any(s->opts[i]);
    const char *at = s->opts[i]->depends;
    enum search_effect effect = EFFECT_ALWAYS;
    size_t n = 0, n_sometimes = 0;
    struct config_condition c;

    while (config_condition_next(&at, &c)) {
        struct space_param noted = *p;
        enum search_effect this = of_condition(s, setup, &c, &noted);
        if (this == (any ? EFFECT_ALWAYS : EFFECT_NEVER)) {
            *ret_condition = c;
            return this;
        }
        if (n++ == 0 || (this == EFFECT_SOMETIMES && n_sometimes == 0)) {
            *ret_condition = c;
            *p = noted;
            effect = this;
        }
        n_sometimes += this == EFFECT_SOMETIMES;
    }
    return any && n_sometimes > 1 ? EFFECT_ALWAYS : effect;
}

static void remove_param(struct search *s, size_t i)
{
    size_t n = s->space.dim - i - 1;

    for (size_t k = 0; k < SEARCH_MAX_CHOICES; k++)
        mem_free(s->choices[i][k]);
    memmove(&s->space.params[i], &s->space.params[i + 1], n * sizeof s->space.params[0]);
    memmove(&s->choices[i], &s->choices[i + 1], n * sizeof s->choices[0]);
    memmove(&s->opts[i], &s->opts[i + 1], n * sizeof s->opts[0]);
    s->space.dim--;
    memset(&s->space.params[s->space.dim], 0, sizeof s->space.params[0]);
    memset(&s->choices[s->space.dim], 0, sizeof s->choices[0]);
}

/* Does parameter i hang on `of`? No core has no layers, and no layers no core: of two that depend on each other the
 * first is conditional. */
static bool descends_from(const struct space *space, size_t i, size_t of)
{
    while (i != of && space->params[i].is_conditional)
        i = space->params[i].parent;
    return i == of;
}

/* The `when` of parameter i; NULL: it has none. */
static const struct config_sweep_param *when_of(const struct search *s, const struct setup *setup, size_t i)
{
    for (size_t k = 0; k < config_n_sweep_params(setup->config); k++) {
        const struct config_sweep_param *c = config_sweep_param(setup->config, k);
        if (strcmp(c->key, s->space.params[i].key) == 0)
            return c->when != NULL ? c : NULL;
    }
    return NULL;
}

/* Takes out what has no effect by its own `when`. */
static enum status drop_by_when(struct search *s, const struct setup *setup, struct strbuf *inert, struct error *err)
{
    for (size_t i = 0; i < s->space.dim;) {
        const struct config_sweep_param *c = when_of(s, setup, i);
        struct space_param scratch = s->space.params[i];
        enum search_effect effect = EFFECT_ALWAYS;
        if (c != NULL)
            TRY(search_expr_when(s, setup, i, c->when, c->when_origin, &scratch, &effect, err));
        if (effect != EFFECT_NEVER) {
            i++;
            continue;
        }
        strbuf_addf(inert, "%s%s (needs %s)", inert->len > 0 ? ", " : "", scratch.key, c->when);
        remove_param(s, i);
        i = 0;
    }
    return ST_OK;
}

/* What the writer of the config says comes before what the option's row says. */
static enum status set_condition(struct search *s, const struct setup *setup, size_t i, struct error *err)
{
    struct space_param *p = &s->space.params[i];
    const struct config_sweep_param *c = when_of(s, setup, i);
    enum search_effect effect = EFFECT_ALWAYS;
    struct config_condition condition;

    if (c != NULL)
        TRY(search_expr_when(s, setup, i, c->when, c->when_origin, p, &effect, err));
    if (effect == EFFECT_ALWAYS) {
        c = NULL;
        effect = find_effect(s, setup, i, p, &condition);
    }
    bool circle = effect == EFFECT_SOMETIMES && descends_from(&s->space, p->parent, i);
    if (circle && c != NULL)
        return FAIL(err, ST_CONFIG, "%s: %s and %s depend on each other; drop one when", c->when_origin, p->key,
                    s->space.params[p->parent].key);
    p->is_conditional = effect == EFFECT_SOMETIMES && !circle;
    return ST_OK;
}

enum status search_find_dependent(struct search *search, const struct setup *setup, struct strbuf *inert,
                                  struct error *err)
{
    struct config_condition c;

    TRY(drop_by_when(search, setup, inert, err));
    for (size_t i = 0; i < search->space.dim;) { /* one that goes may be what another depends on: from the start */
        struct space_param scratch = search->space.params[i];
        if (find_effect(search, setup, i, &scratch, &c) != EFFECT_NEVER) {
            i++;
            continue;
        }
        strbuf_addf(inert, "%s%s (needs ", inert->len > 0 ? ", " : "", scratch.key);
        if (config_depends_on_any(search->opts[i]))
            strbuf_addf(inert, "%s)", search->opts[i]->depends);
        else
            strbuf_addf(inert, "%.*s, which is %s)", (int)c.len, c.text, config_peek(setup->config, c.key));
        remove_param(search, i);
        i = 0;
    }
    for (size_t i = 0; i < search->space.dim; i++)
        TRY(set_condition(search, setup, i, err));
    return strbuf_status(inert, "the list of parameters without effect", err);
}
