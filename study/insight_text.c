/* insight_text.c - what the models conclude about a study, for `trawl show`: the recommended trial, the importance of
 * each parameter, bounds at which the front lies. Text goes to stdout, scores in the study's own direction. */
#include "study/insight_text.h"

#include "base/config/opt.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "study/export.h"
#include "study/setup.h"
#include "study/study_view.h"
#include "study/trial_check.h"
#include "study/version.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RUN_TRIES 2000
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

/* Edges that no study can follow are none: the option ends there, or no trial beyond could be run. */
static enum status drop_edges(struct gp_insight *in, const struct study_view *v, struct search *search,
                              struct error *err)
{
    struct setup *setup = NULL;
    struct trial_check *check = NULL;
    enum status rc = setup_from_text(&setup, "study", v->study.config, err);

    if (rc == ST_OK)
        rc = search_bind(search, setup, err);
    if (rc == ST_OK)
        rc = trial_check_create(&check, setup, search, err);
    for (size_t i = 0; rc == ST_OK && i < search->space.dim; i++) {
        struct gp_edge *e = &in->edges[i];
        if (e->side != 0 && !(insight_bound(&search->space.params[i], search->opts[i], e->side, &e->suggested) &&
                              can_be_run(check, search, i, e)))
            *e = (struct gp_edge){0};
    }
    trial_check_destroy(check);
    setup_destroy(setup);
    return rc;
}

enum status insight_init(struct gp_insight *ret, const struct study_view *v, struct error *err)
{
    struct search *search = mem_alloc(sizeof *search);
    struct error why = {0};

    memset(ret, 0, sizeof *ret);
    if (search == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the insight into a study");
    *search = v->search; /* borrows its texts */
    enum status rc = gp_insight_init(ret, &v->search.space, &v->history, (uint64_t)v->study.seed, err);
    if (rc == ST_OK && drop_edges(ret, v, search, &why) != ST_OK) /* a study of a program that had other options */
        memset(ret->edges, 0, sizeof ret->edges);
    mem_free(search);
    return rc;
}

static void print_recommended(const struct study_view *v, const struct gp_insight *in)
{
    char text[PROMISE_TEXT_MAX], cost[PROMISE_TEXT_MAX];
    struct promise p;

    if (in->recommended >= v->n)
        return;
    export_promise(&v->study, in, &v->history, &v->trials[in->recommended], in->recommended, &p);
    printf("recommended: trial %lld, %s %s at a cost of %s (one run varies by +- %.2g)\n",
           (long long)v->trials[in->recommended].number, v->study.metric, promise_text(&p, text),
           promise_cost_text(&p, v->search.cost, cost), p.noise_sd);
}

static void effect_text(const struct gp_importance *importance, char buf[32])
{
    snprintf(buf, 32, "%3.0f %% +- %.0f", 100.0 * importance->effect, 100.0 * importance->effect_sd);
}

static void print_importance(const struct study_view *v, const struct gp_insight *in)
{
    char score[32], cost[32];

    printf("share of the variance that a parameter explains by itself:\n");
    printf("%-32s %14s %14s\n", "parameter", v->study.metric, "ln cost");
    for (size_t i = 0; i < v->search.space.dim; i++) {
        effect_text(&in->score[i], score);
        effect_text(&in->cost[i], cost);
        printf("%-32s %14s %14s\n", v->search.space.params[i].key, score, cost);
    }
    if (in->score_note != NULL)
        printf("(%s: %s)\n", v->study.metric, in->score_note);
    if (in->cost_note != NULL)
        printf("(cost: %s)\n", in->cost_note);
}

static void print_edges(const struct study_view *v, const struct gp_insight *in, const char *store_path)
{
    struct strbuf command;
    bool any = false;

    strbuf_init(&command, OUTPUT_MAX_BYTES);
    strbuf_addf(&command, "trawl sweep --resume %s --store ", v->study.name);
    strbuf_add_shell(&command, store_path);
    strbuf_addf(&command, " --trials %zu", 2 * v->n);
    for (size_t i = 0; i < v->search.space.dim; i++) {
        const struct space_param *p = &v->search.space.params[i];
        const struct gp_edge *e = &in->edges[i];
        char bound[NUM_TEXT_MAX], suggested[NUM_TEXT_MAX]; /* exact: 0.99999 must not read 1 */
        if (e->side == 0)
            continue;
        printf("%s: %zu of %zu trials that the model expects on the front lie at its %s bound %s; try %s = %s\n",
               p->key, e->n_on, e->n_front, e->side < 0 ? "lower" : "upper",
               num_format_f64(e->side < 0 ? p->min : p->max, bound), e->side < 0 ? "min" : "max",
               num_format_f64(e->suggested, suggested));
        strbuf_addf(&command, " --sweep.%s.%s %s", p->key, e->side < 0 ? "min" : "max", suggested);
        any = true;
    }
    if (any && command.text != NULL)
        printf("to search there too, with all trials so far:\n  %s\n", command.text);
    strbuf_free(&command);
}

enum status insight_print(const struct study_view *v, const char *store_path, struct error *err)
{
    struct gp_insight in;

    TRY(insight_init(&in, v, err));
    if (in.note != NULL) {
        printf("no recommendation yet: %s\n", in.note);
    } else {
        print_recommended(v, &in);
        print_importance(v, &in);
        print_edges(v, &in, store_path);
    }
    gp_insight_free(&in);
    return ST_OK;
}

static cJSON *importance_json(const struct gp_importance *importance)
{
    cJSON *json = cJSON_CreateObject();

    if (json != NULL &&
        !(json_add_f64(json, "effect", importance->effect) && json_add_f64(json, "effect_sd", importance->effect_sd) &&
          json_add_f64(json, "sensitivity", importance->sensitivity))) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static cJSON *param_json(const struct study_view *v, const struct gp_insight *in, size_t i)
{
    const struct gp_edge *e = &in->edges[i];
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "key", v->search.space.params[i].key) &&
              json_add(json, "score", importance_json(&in->score[i])) &&
              json_add(json, "cost", importance_json(&in->cost[i]));

    if (ok && e->side != 0)
        ok = json_add_str(json, "leans_on", e->side < 0 ? "min" : "max") && json_add_f64(json, "try", e->suggested);
    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static cJSON *belief_json(const struct study_view *v, const struct gp_insight *in, size_t i)
{
    const struct gp_belief *b = &in->beliefs[i];
    cJSON *json = cJSON_CreateObject();
    struct promise p;

    export_promise(&v->study, in, &v->history, &v->trials[i], i, &p);
    bool ok = json != NULL && json_add_i64(json, "trial", v->trials[i].number) &&
              json_add_f64(json, "score", p.score) && json_add_f64(json, "score_sd", b->score_sd) &&
              json_add_f64(json, "score_lo", p.lo) && json_add_f64(json, "score_hi", p.hi) &&
              json_add_i64(json, "n_seeds", (int64_t)p.n_seeds) && json_add_f64(json, "cost", p.cost) &&
              json_add_f64(json, "log_cost_sd", b->log_cost_sd);

    if (!ok) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

enum status insight_to_json(const struct study_view *v, cJSON **ret_json, struct error *err)
{
    cJSON *json = cJSON_CreateObject(), *params, *front;
    struct gp_insight in;
    bool ok = json != NULL;

    *ret_json = NULL;
    enum status rc = insight_init(&in, v, err);
    if (rc != ST_OK) {
        cJSON_Delete(json);
        return rc;
    }
    if (ok && in.note != NULL) {
        ok = json_add_str(json, "note", in.note);
    } else if (ok) {
        params = cJSON_CreateArray();
        front = cJSON_CreateArray();
        ok = json_add_i64(json, "recommended", v->trials[in.recommended].number) &&
             json_add_f64(json, "score_noise_sd", in.score_noise_sd);
        ok = json_add(json, "params", params) && ok;
        ok = json_add(json, "front", front) && ok;
        for (size_t i = 0; ok && i < v->search.space.dim; i++)
            ok = cJSON_AddItemToArray(params, param_json(v, &in, i));
        for (size_t i = 0; ok && i < v->n; i++)
            if (gp_is_shown_on_front(&in, i))
                ok = cJSON_AddItemToArray(front, belief_json(v, &in, i));
    }
    gp_insight_free(&in);
    if (!ok) {
        cJSON_Delete(json);
        return FAIL(err, ST_NOMEM, "out of memory for the insight into a study");
    }
    *ret_json = json;
    return ST_OK;
}
