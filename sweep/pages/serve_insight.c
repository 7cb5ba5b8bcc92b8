/* serve_insight.c - what the models conclude about a study, for the pages: insight, the front that they expect, slices.
 * web/ calls this from its one background thread.
 * Invariant: a model holds its own copy of the study; the store may change meanwhile. */
#include "base/mem.h"
#include "base/rng.h"
#include "study/insight_text.h"
#include "study/search.h"
#include "study/study_view.h"
#include "sweep/pages/serve_hooks.h"
#include "web/serve/serve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FRONT_RANDOM 4096 /* points over the whole space */
#define FRONT_NEAR 48 /* points around each trial of the believed front */
#define FRONT_SEEDS 64 /* such trials at most */
#define FRONT_SHOWN 60
#define SLICE_POINTS 41

struct study_model {
    struct study_view view;
    struct gp_insight insight;
    struct gp_surrogate *surrogate;
    cJSON *insight_json, *front_json;
};

/* score, cost and their intervals. */
static bool add_belief(cJSON *json, const struct study_model *m, const struct gp_belief *b)
{
    const struct gp_trial unseen = {.state = GP_TRIAL_PENDING};
    const struct trial none = {0};
    struct promise p;

    promise_make(b, &unseen, &none, m->view.study.maximize, &p);
    return json_add_f64(json, "score", p.score) && json_add_f64(json, "score_sd", b->score_sd) &&
           json_add_f64(json, "score_lo", p.lo) && json_add_f64(json, "score_hi", p.hi) &&
           json_add_f64(json, "cost", p.cost) && json_add_f64(json, "cost_lo", p.cost_lo) &&
           json_add_f64(json, "cost_hi", p.cost_hi);
}

/* Takes item. */
static bool append(cJSON *array, cJSON *item)
{
    if (array != NULL && item != NULL && cJSON_AddItemToArray(array, item))
        return true;
    cJSON_Delete(item);
    return false;
}

/* Object of a belief; NULL: out of memory. */
static cJSON *belief_json(const struct study_model *m, const struct gp_belief *b)
{
    cJSON *json = cJSON_CreateObject();

    if (json != NULL && add_belief(json, m, b))
        return json;
    cJSON_Delete(json);
    return NULL;
}

/* -- insight -- */

static cJSON *share_json(const struct gp_importance *share)
{
    cJSON *json = cJSON_CreateObject();

    if (json != NULL && json_add_f64(json, "effect", share->effect) &&
        json_add_f64(json, "effect_sd", share->effect_sd) && json_add_f64(json, "sensitivity", share->sensitivity))
        return json;
    cJSON_Delete(json);
    return NULL;
}

static bool add_param(cJSON *list, const struct study_model *m, size_t i)
{
    const struct gp_edge *edge = &m->insight.edges[i];
    cJSON *json = cJSON_CreateObject();
    bool ok = json != NULL && json_add_str(json, "key", m->view.search.space.params[i].key) &&
              json_add(json, "score", share_json(&m->insight.score[i])) &&
              json_add(json, "cost", share_json(&m->insight.cost[i])) &&
              json_add_str(json, "leans_on",
                           edge->side == 0  ? NULL
                           : edge->side < 0 ? "min"
                                            : "max") &&
              json_add_i64(json, "n_on", (int64_t)edge->n_on) &&
              json_add_i64(json, "n_front", (int64_t)edge->n_front) &&
              (edge->side != 0 ? json_add_f64(json, "try", edge->suggested) : json_add_str(json, "try", NULL));

    if (ok)
        return append(list, json);
    cJSON_Delete(json);
    return false;
}

static bool add_trial(cJSON *list, const struct study_model *m, size_t i)
{
    cJSON *json = belief_json(m, &m->insight.beliefs[i]);

    if (json != NULL && json_add_i64(json, "trial", m->view.trials[i].number) &&
        json_add_i64(json, "n_seeds", (int64_t)m->insight.beliefs[i].n_seeds))
        return append(list, json);
    cJSON_Delete(json);
    return false;
}

static bool build_insight(struct study_model *m)
{
    const struct gp_insight *in = &m->insight;
    cJSON *json = m->insight_json = cJSON_CreateObject(), *best = NULL, *list;
    bool ok = json != NULL && json_add_f64(json, "score_noise_sd", in->score_noise_sd) &&
              json_add_str(json, "score_note", in->score_note) && json_add_str(json, "cost_note", in->cost_note);

    if (ok && in->recommended < m->view.n) {
        best = belief_json(m, &in->beliefs[in->recommended]);
        ok = best != NULL && json_add_i64(best, "trial", m->view.trials[in->recommended].number) &&
             json_add_i64(best, "n_seeds", (int64_t)in->beliefs[in->recommended].n_seeds);
        ok = json_add(json, "recommended", best) && ok;
    } else if (ok) {
        ok = json_add_str(json, "recommended", NULL);
    }
    list = ok ? cJSON_AddArrayToObject(json, "params") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < m->view.search.space.dim; i++)
        ok = add_param(list, m, i);
    list = ok ? cJSON_AddArrayToObject(json, "front") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < m->view.n; i++)
        ok = !gp_is_shown_on_front(in, i) || add_trial(list, m, i);
    return ok;
}

/* -- the front that the models expect -- */

struct guess {
    struct gp_belief belief;
    const double *x;
};

/* Points over the space, and around the trials that are believed to be on the front. */
static size_t fill_points(const struct study_model *m, double *x)
{
    const struct space *space = &m->view.search.space;
    struct rng rng = rng_seed((uint64_t)m->view.study.seed);
    size_t n = 0, seeds = 0;
    double u[SPACE_MAX_DIM], near[SPACE_MAX_DIM];

    for (; n < FRONT_RANDOM; n++) {
        for (size_t k = 0; k < space->dim; k++)
            u[k] = rng_f64(&rng);
        space_from_unit(space, u, x + n * space->dim);
    }
    for (size_t i = 0; i < m->view.n && seeds < FRONT_SEEDS; i++) {
        if (!m->insight.beliefs[i].on_front)
            continue;
        seeds++;
        memcpy(x + n * space->dim, m->view.x[i], space->dim * sizeof *x);
        n++;
        space_to_unit(space, m->view.x[i], u);
        for (size_t j = 0; j < FRONT_NEAR; j++, n++) {
            double reach = j % 3 == 0 ? 0.3 : j % 3 == 1 ? 0.1 : 0.03;
            for (size_t k = 0; k < space->dim; k++)
                near[k] = fmin(1.0, fmax(0.0, u[k] + reach * (2.0 * rng_f64(&rng) - 1.0)));
            space_from_unit(space, near, x + n * space->dim);
        }
    }
    return n;
}

static int by_cost(const void *pa, const void *pb)
{
    const struct guess *a = pa, *b = pb;
    double ca = a->belief.log_cost, cb = b->belief.log_cost;

    return ca != cb ? (ca > cb) - (ca < cb) : (a->belief.score < b->belief.score) - (a->belief.score > b->belief.score);
}

/* Keeps the front of n guesses, thinned to FRONT_SHOWN by their place in ln cost; how many. */
static size_t keep_front(struct guess *guesses, size_t n)
{
    size_t kept = 0, shown = 0;
    double best = -INFINITY, step;

    qsort(guesses, n, sizeof *guesses, by_cost);
    for (size_t i = 0; i < n; i++)
        if (guesses[i].belief.score > best) {
            best = guesses[i].belief.score;
            guesses[kept++] = guesses[i];
        }
    if (kept <= FRONT_SHOWN)
        return kept;
    step = (guesses[kept - 1].belief.log_cost - guesses[0].belief.log_cost) / FRONT_SHOWN;
    for (size_t i = 0; i < kept; i++) /* the last of each step: the best score at that cost */
        if (i + 1 == kept || floor((guesses[i + 1].belief.log_cost - guesses[0].belief.log_cost) / step) >
                                 floor((guesses[i].belief.log_cost - guesses[0].belief.log_cost) / step))
            guesses[shown++] = guesses[i];
    return shown;
}

static bool add_value(cJSON *json, const char *key, const struct study_model *m, size_t k, double x)
{
    const struct space_param *p = &m->view.search.space.params[k];

    if (p->scale == SPACE_CATEGORICAL)
        return json_add_str(json, key, m->view.search.choices[k][(size_t)x]);
    return json_add_f64(json, key, x);
}

static bool add_guess(cJSON *list, const struct study_model *m, const struct guess *guess)
{
    cJSON *json = belief_json(m, &guess->belief),
          *params = json != NULL ? cJSON_AddObjectToObject(json, "params") : NULL;
    bool ok = params != NULL;

    for (size_t k = 0; ok && k < m->view.search.space.dim; k++)
        ok = add_value(params, m->view.search.space.params[k].key, m, k, guess->x[k]);
    if (ok)
        return append(list, json);
    cJSON_Delete(json);
    return false;
}

static enum status build_front(struct study_model *m, struct error *err)
{
    size_t n = FRONT_RANDOM + FRONT_SEEDS * (FRONT_NEAR + 1), dim = m->view.search.space.dim;
    double *x = mem_array2(n, dim, sizeof *x);
    struct gp_belief *beliefs = mem_array(n, sizeof *beliefs);
    struct guess *guesses = mem_array(n, sizeof *guesses);
    cJSON *list = NULL;
    bool ok = x != NULL && beliefs != NULL && guesses != NULL;

    m->front_json = cJSON_CreateObject();
    list = ok && m->front_json != NULL ? cJSON_AddArrayToObject(m->front_json, "points") : NULL;
    ok = list != NULL;
    if (ok) {
        n = fill_points(m, x);
        gp_surrogate_predict(m->surrogate, x, n, beliefs);
        for (size_t i = 0; i < n; i++)
            guesses[i] = (struct guess){beliefs[i], x + i * dim};
        n = keep_front(guesses, n);
    }
    for (size_t i = 0; ok && i < n; i++)
        ok = add_guess(list, m, &guesses[i]);
    mem_free(x);
    mem_free(beliefs);
    mem_free(guesses);
    return ok ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for the predicted front");
}

/* -- hooks -- */

void serve_model_destroy(void *model)
{
    struct study_model *m = model;

    if (m == NULL)
        return;
    gp_surrogate_destroy(m->surrogate);
    gp_insight_free(&m->insight);
    study_view_free(&m->view);
    cJSON_Delete(m->insight_json);
    cJSON_Delete(m->front_json);
    mem_free(m);
}

static enum status compute(struct study_model *m, const char *store_path, const char *study, struct error *err)
{
    struct store *store = NULL;
    const struct space *space = &m->view.search.space;
    enum status rc = store_open_reader(&store, store_path, err);

    if (rc == ST_OK)
        rc = study_view_load(store, study, &m->view, err);
    store_close(store);
    if (rc == ST_OK)
        rc = insight_init(&m->insight, &m->view, err);
    if (rc != ST_OK || m->insight.note != NULL)
        return rc;
    TRY(gp_surrogate_create(&m->surrogate, space, &m->view.history, err));
    if (!build_insight(m))
        return FAIL(err, ST_NOMEM, "out of memory for the insight into a study");
    return build_front(m, err);
}

enum status serve_model_create(void *ctx, const char *study, void **ret_model, struct serve_model *ret_what,
                               struct error *err)
{
    const struct serve_ctx *c = ctx;
    struct study_model *m = mem_alloc(sizeof *m);
    enum status rc;

    *ret_model = NULL;
    if (m == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the models of a study");
    rc = compute(m, c->store_path, study, err);
    if (rc != ST_OK) {
        serve_model_destroy(m);
        return rc;
    }
    *ret_what = (struct serve_model){.is_there = m->insight.beliefs != NULL,
                                     .note = m->insight.note,
                                     .insight = m->insight_json,
                                     .front = m->front_json};
    *ret_model = m;
    return ST_OK;
}

/* Values of parameter k that a slice shows, into x (SLICE_POINTS or the choices, dim), the rest as at. */
static size_t slice_points(const struct space *space, size_t k, const double *at, double *x)
{
    const struct space_param *p = &space->params[k];
    bool choices = p->scale == SPACE_CATEGORICAL;
    size_t steps = choices ? p->n_choices : SLICE_POINTS, n = 0;
    double u[SPACE_MAX_DIM];

    for (size_t i = 0; i < steps; i++) {
        double *point = x + n * space->dim;
        if (choices) {
            memcpy(point, at, space->dim * sizeof *x);
            point[k] = (double)i;
        } else {
            space_to_unit(space, at, u);
            u[k] = (double)i / (double)(steps - 1);
            space_from_unit(space, u, point);
        }
        n += n == 0 || point[k] != point[k - space->dim];
    }
    return n;
}

static enum status slice_json(struct study_model *m, size_t k, size_t trial, cJSON **ret_json, struct error *err)
{
    static const char *const scales[] = {[SPACE_LINEAR] = "linear",
                                         [SPACE_LOG] = "log",
                                         [SPACE_LOGIT] = "logit",
                                         [SPACE_POW2] = "pow2",
                                         [SPACE_CATEGORICAL] = "categorical"};
    const struct space *space = &m->view.search.space;
    double *x = mem_array2(SLICE_POINTS + SEARCH_MAX_CHOICES + 1, space->dim, sizeof *x);
    struct gp_belief beliefs[SLICE_POINTS + SEARCH_MAX_CHOICES + 1];
    cJSON *json = cJSON_CreateObject(), *list = NULL;
    size_t n = 0;
    bool ok = x != NULL && json != NULL && json_add_str(json, "param", space->params[k].key) &&
              json_add_str(json, "scale", scales[space->params[k].scale]) &&
              json_add_i64(json, "at", m->view.trials[trial].number) &&
              add_value(json, "value", m, k, m->view.x[trial][k]);

    list = ok ? cJSON_AddArrayToObject(json, "points") : NULL;
    ok = list != NULL;
    if (ok) {
        n = slice_points(space, k, m->view.x[trial], x);
        gp_surrogate_predict(m->surrogate, x, n, beliefs);
    }
    for (size_t i = 0; ok && i < n; i++) {
        cJSON *point = belief_json(m, &beliefs[i]);
        ok = point != NULL && add_value(point, "value", m, k, x[i * space->dim + k]);
        ok = append(list, point) && ok;
    }
    mem_free(x);
    if (!ok) {
        cJSON_Delete(json);
        return FAIL(err, ST_NOMEM, "out of memory for a slice");
    }
    *ret_json = json;
    return ST_OK;
}

enum status serve_model_slice(void *ctx, void *model, const char *key, int64_t trial, cJSON **ret_json,
                              struct error *err)
{
    struct study_model *m = model;

    (void)ctx;
    *ret_json = NULL;
    if (trial < 0 || trial >= (int64_t)m->view.n)
        return FAIL(err, ST_NOTFOUND, "the model knows no trial %lld yet; try again in a moment", (long long)trial);
    for (size_t k = 0; k < m->view.search.space.dim; k++)
        if (strcmp(m->view.search.space.params[k].key, key) == 0)
            return slice_json(m, k, (size_t)trial, ret_json, err);
    return FAIL(err, ST_USAGE, "param: '%.60s' is not searched by %s; `space` of the study lists what is", key,
                m->view.study.name);
}
