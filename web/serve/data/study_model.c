/* study_model.c - what the models conclude about a study, for the pages: insight, the front that they expect, slices.
 * Invariant: a model holds its own copy of the study; the store may change meanwhile. */
#include "web/serve/data/study_model.h"

#include "base/rng.h"
#include "study/findings/next_trials.h"
#include "study/view/insight_text.h"
#include "study/view/promise.h"
#include "study/view/study_insight.h"
#include "web/serve/data/page_study.h"

#define FRONT_RANDOM 4096 /* points over the whole space */
#define FRONT_NEAR 48 /* points around each trial of the believed front */
#define FRONT_SEEDS 64 /* such trials at most */
#define FRONT_SHOWN 60
#define SLICE_POINTS 41
#define CONTOUR_POINTS 25 /* of an axis */

struct study_model {
    struct study_view view;
    struct gp_surrogate *surrogate; /* NULL: view.advice.note has the reason */
    cJSON *insight, *front, *next; /* without the study's name and version */
};

/* Object of a belief: score, cost and their intervals. */
static cJSON *belief_json(const struct study_model *m, const struct gp_belief *b)
{
    const struct gp_trial unseen = {.state = GP_TRIAL_PENDING};
    const struct trial none = {0};
    cJSON *json = cJSON_CreateObject();
    struct promise p;

    promise_make(b, &unseen, &none, m->view.study.maximize, &p);
    json_add_f64(json, "score", p.score);
    json_add_f64(json, "score_sd", b->score_sd);
    json_add_f64(json, "score_lo", p.lo);
    json_add_f64(json, "score_hi", p.hi);
    json_add_f64(json, "cost", p.cost);
    json_add_f64(json, "cost_lo", p.cost_lo);
    json_add_f64(json, "cost_hi", p.cost_hi);
    return json;
}

/* -- insight -- */

static cJSON *param_json(const struct study_model *m, size_t i)
{
    const struct gp_insight *in = &m->view.advice;
    const struct gp_edge *edge = &in->edges[i];
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "key", page_param_name(&m->view.search, i));
    json_add(json, "score", importance_json(&in->score[i]));
    json_add(json, "cost", importance_json(&in->cost[i]));
    json_add_str(json, "leans_on", edge->side == 0 ? NULL : edge->side < 0 ? "min" : "max");
    json_add_i64(json, "n_on", (int64_t)edge->n_on);
    json_add_i64(json, "n_front", (int64_t)edge->n_front);
    if (edge->side != 0)
        json_add_f64(json, "try", edge->suggested);
    else
        json_add_str(json, "try", NULL);
    return json;
}

static cJSON *trial_json(const struct study_model *m, size_t i)
{
    const struct gp_belief *b = &m->view.advice.beliefs[i];
    cJSON *json = belief_json(m, b);

    json_add_i64(json, "trial", m->view.trials[i].number);
    json_add_i64(json, "n_seeds", (int64_t)b->n_seeds);
    return json;
}

static void build_insight(struct study_model *m)
{
    const struct gp_insight *in = &m->view.advice;
    cJSON *json = m->insight = cJSON_CreateObject(), *list;

    json_add_f64(json, "score_noise_sd", in->score_noise_sd);
    json_add_str(json, "score_note", in->score_note);
    json_add_str(json, "cost_note", in->cost_note);
    if (in->recommended < m->view.n)
        json_add(json, "recommended", trial_json(m, in->recommended));
    else
        json_add_str(json, "recommended", NULL);
    list = cJSON_AddArrayToObject(json, "params");
    for (size_t i = 0; i < m->view.search.space.dim; i++)
        cJSON_AddItemToArray(list, param_json(m, i));
    list = cJSON_AddArrayToObject(json, "front");
    for (size_t i = 0; i < m->view.n; i++)
        if (m->view.on_front[i])
            cJSON_AddItemToArray(list, trial_json(m, i));
}

/* -- the front that the models expect -- */

#define FEASIBLE_MIN 0.5 /* chance to keep the limits of what may stand on it */

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
        if (!m->view.advice.beliefs[i].on_front)
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

static void add_value(cJSON *json, const char *key, const struct study_model *m, size_t k, double x)
{
    if (m->view.search.space.params[k].scale == SPACE_CATEGORICAL)
        json_add_str(json, key, m->view.search.choices[k][(size_t)x]);
    else
        json_add_f64(json, key, x);
}

static void build_front(struct study_model *m)
{
    size_t n = FRONT_RANDOM + FRONT_SEEDS * (FRONT_NEAR + 1), dim = m->view.search.space.dim;
    MEM_LOCAL double *x = mem_array2(n, dim, sizeof *x);
    MEM_LOCAL struct gp_belief *beliefs = mem_array(n, sizeof *beliefs);
    MEM_LOCAL struct guess *guesses = mem_array(n, sizeof *guesses);
    size_t n_guesses = 0;

    m->front = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(m->front, "points");
    n = fill_points(m, x);
    gp_surrogate_predict(m->surrogate, x, n, beliefs);
    for (size_t i = 0; i < n; i++)
        if (beliefs[i].feasible >= FEASIBLE_MIN)
            guesses[n_guesses++] = (struct guess){beliefs[i], x + i * dim};
    n = keep_front(guesses, n_guesses);
    for (size_t i = 0; i < n; i++) {
        cJSON *json = belief_json(m, &guesses[i].belief), *params = cJSON_AddObjectToObject(json, "params");
        for (size_t k = 0; k < dim; k++)
            add_value(params, page_param_name(&m->view.search, k), m, k, guesses[i].x[k]);
        cJSON_AddItemToArray(list, json);
    }
}

/* -- what comes next -- */

static void build_next(struct study_model *m)
{
    MEM_LOCAL struct next_trial *trials = mem_array(NEXT_TRIALS, sizeof *trials);
    struct error why = {0};
    size_t n = next_trials(&m->view, m->surrogate, trials, &why);

    m->next = cJSON_CreateObject();
    json_add_str(m->next, "why_none", n > 0 ? NULL : why.text);
    cJSON *list = cJSON_AddArrayToObject(m->next, "points");
    for (size_t i = 0; i < n; i++) {
        cJSON *json = belief_json(m, &trials[i].belief), *params = cJSON_AddObjectToObject(json, "params");
        json_add_str(json, "origin", trials[i].suggestion.origin);
        json_add_str(json, "why", trials[i].why);
        for (size_t k = 0; k < m->view.search.space.dim; k++)
            add_value(params, page_param_name(&m->view.search, k), m, k, trials[i].suggestion.x[k]);
        cJSON_AddItemToArray(list, json);
    }
}

/* -- a model -- */

void study_model_destroy(struct study_model *m)
{
    if (m == NULL)
        return;
    gp_surrogate_destroy(m->surrogate);
    study_view_free(&m->view);
    cJSON_Delete(m->insight);
    cJSON_Delete(m->front);
    cJSON_Delete(m->next);
    mem_free(m);
}

static enum status compute(struct study_model *m, const char *store_path, const char *study, struct error *err)
{
    TRY(study_view_open(store_path, study, &m->view, err));
    TRY(study_view_insight(&m->view, err));
    if (m->view.advice.note != NULL)
        return ST_OK;
    TRY(gp_surrogate_create(&m->surrogate, &m->view.search.space, &m->view.history, err));
    build_insight(m);
    build_front(m);
    build_next(m);
    return ST_OK;
}

enum status study_model_create(struct study_model **ret_model, const char *store_path, const char *study,
                               struct error *err)
{
    struct study_model *m = mem_alloc(sizeof *m);
    enum status rc = compute(m, store_path, study, err);

    *ret_model = NULL;
    if (rc != ST_OK) {
        study_model_destroy(m);
        return rc;
    }
    *ret_model = m;
    return ST_OK;
}

const struct study_view *study_model_view(const struct study_model *m)
{
    return &m->view;
}

const char *study_model_note(const struct study_model *m)
{
    return m->view.advice.note;
}

cJSON *study_model_insight(const struct study_model *m)
{
    return cJSON_Duplicate(m->insight, true);
}

cJSON *study_model_next(const struct study_model *m)
{
    return cJSON_Duplicate(m->next, true);
}

cJSON *study_model_front(const struct study_model *m)
{
    return cJSON_Duplicate(m->front, true);
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

static const char *const scale_names[] = {[SPACE_LINEAR] = "linear",
                                          [SPACE_LOG] = "log",
                                          [SPACE_LOGIT] = "logit",
                                          [SPACE_POW2] = "pow2",
                                          [SPACE_CATEGORICAL] = "categorical"};

static cJSON *slice_json(struct study_model *m, size_t k, size_t trial)
{
    const struct space *space = &m->view.search.space;
    MEM_LOCAL double *x = mem_array2(SLICE_POINTS + SEARCH_MAX_CHOICES + 1, space->dim, sizeof *x);
    struct gp_belief beliefs[SLICE_POINTS + SEARCH_MAX_CHOICES + 1];
    cJSON *json = cJSON_CreateObject(), *list;
    size_t n = slice_points(space, k, m->view.x[trial], x);

    json_add_str(json, "param", page_param_name(&m->view.search, k));
    json_add_str(json, "scale", scale_names[space->params[k].scale]);
    json_add_i64(json, "at", m->view.trials[trial].number);
    add_value(json, "value", m, k, m->view.x[trial][k]);
    list = cJSON_AddArrayToObject(json, "points");
    gp_surrogate_predict(m->surrogate, x, n, beliefs);
    for (size_t i = 0; i < n; i++) {
        cJSON *point = belief_json(m, &beliefs[i]);
        add_value(point, "value", m, k, x[i * space->dim + k]);
        cJSON_AddItemToArray(list, point);
    }
    return json;
}

/* The trial that a slice or contour goes through, and the parameter called key. */
static enum status find_place(const struct study_model *m, const char *key, int64_t trial, size_t *ret_k,
                              struct error *err)
{
    *ret_k = search_find(&m->view.search, key);
    if (trial < 0 || trial >= (int64_t)m->view.n || *ret_k == m->view.search.space.dim)
        return FAIL(err, ST_NOTFOUND, "the model knows no trial %lld yet; try again in a moment", (long long)trial);
    return ST_OK;
}

enum status study_model_slice(struct study_model *m, const char *key, int64_t trial, cJSON **ret_json,
                              struct error *err)
{
    size_t k = 0;

    TRY(find_place(m, key, trial, &k, err));
    *ret_json = slice_json(m, k, (size_t)trial);
    return ST_OK;
}

/* -- over two parameters -- */

/* Values of parameter k along an axis of a contour, and their places 0..1 on its scale; how many. */
static size_t axis_values(const struct study_model *m, size_t k, const double *at, double *ret_values)
{
    const struct space *space = &m->view.search.space;
    MEM_LOCAL double *x = mem_array2(SLICE_POINTS + SEARCH_MAX_CHOICES + 1, space->dim, sizeof *x);
    size_t n = slice_points(space, k, at, x), step = n > CONTOUR_POINTS ? 2 : 1, kept = 0;

    for (size_t i = 0; i < n; i += space->params[k].scale == SPACE_CATEGORICAL ? 1 : step)
        ret_values[kept++] = x[i * space->dim + k];
    return kept;
}

static void add_axis(const struct study_model *m, cJSON *json, const char *name, size_t k, const double *values,
                     size_t n, double at)
{
    cJSON *axis = cJSON_AddObjectToObject(json, name), *list;

    json_add_str(axis, "param", page_param_name(&m->view.search, k));
    json_add_str(axis, "scale", scale_names[m->view.search.space.params[k].scale]);
    add_value(axis, "value", m, k, at);
    list = cJSON_AddArrayToObject(axis, "values");
    for (size_t i = 0; i < n; i++) {
        cJSON *holder = cJSON_CreateObject();
        add_value(holder, "v", m, k, values[i]);
        cJSON_AddItemToArray(list, cJSON_DetachItemFromObject(holder, "v"));
        cJSON_Delete(holder);
    }
}

/* To five digits, which a colour does not show. */
static double rounded(double value)
{
    double scale = value != 0 ? pow(10.0, 4.0 - floor(log10(fabs(value)))) : 1.0;

    return isfinite(scale) ? rint(value * scale) / scale : value;
}

static void add_grid(const struct study_model *m, cJSON *json, const struct gp_belief *beliefs, size_t n)
{
    static const char *const names[] = {"score", "score_lo", "score_hi", "cost"};

    for (size_t k = 0; k < COUNT(names); k++) {
        cJSON *list = cJSON_AddArrayToObject(json, names[k]);
        for (size_t i = 0; i < n; i++) {
            const struct gp_trial unseen = {.state = GP_TRIAL_PENDING};
            const struct trial none = {0};
            char text[NUM_TEXT_MAX];
            struct promise p;
            promise_make(&beliefs[i], &unseen, &none, m->view.study.maximize, &p);
            double value = k == 0 ? p.score : k == 1 ? p.lo : k == 2 ? p.hi : p.cost;
            cJSON_AddItemToArray(list,
                                 cJSON_CreateRaw(isfinite(value) ? num_format_f64(rounded(value), text) : "null"));
        }
    }
}

enum status study_model_contour(struct study_model *m, const char *x_key, const char *y_key, int64_t trial,
                                cJSON **ret_json, struct error *err)
{
    const struct space *space = &m->view.search.space;
    double xs[SLICE_POINTS + SEARCH_MAX_CHOICES + 1], ys[SLICE_POINTS + SEARCH_MAX_CHOICES + 1];
    size_t kx = 0, ky = 0, nx, ny;

    TRY(find_place(m, x_key, trial, &kx, err));
    TRY(find_place(m, y_key, trial, &ky, err));
    const double *at = m->view.x[trial];
    nx = axis_values(m, kx, at, xs);
    ny = axis_values(m, ky, at, ys);
    MEM_LOCAL double *points = mem_array2(nx * ny, space->dim, sizeof *points);
    MEM_LOCAL struct gp_belief *beliefs = mem_array(nx * ny, sizeof *beliefs);
    for (size_t i = 0; i < nx * ny; i++) {
        memcpy(points + i * space->dim, at, space->dim * sizeof *points);
        points[i * space->dim + kx] = xs[i % nx];
        points[i * space->dim + ky] = ys[i / nx];
    }
    gp_surrogate_predict(m->surrogate, points, nx * ny, beliefs);
    cJSON *json = *ret_json = cJSON_CreateObject();
    json_add_i64(json, "at", m->view.trials[trial].number);
    add_axis(m, json, "x", kx, xs, nx, at[kx]);
    add_axis(m, json, "y", ky, ys, ny, at[ky]);
    add_grid(m, json, beliefs, nx * ny);
    return ST_OK;
}
