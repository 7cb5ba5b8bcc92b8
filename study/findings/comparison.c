/* comparison.c - several studies side by side.
 * Invariants: (1) every hypervolume is to one reference, the worst of the studies'; (2) a study's part in what is
 * attained is its believed front: one lucky run attains nothing. */
#include "study/findings/comparison.h"

#include "study/findings/believed.h"
#include "study/view/promise.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"

static enum status check(struct study_view *const *views, size_t n, struct error *err)
{
    const struct study_view *a = views[0];

    if (n < 2 || n > COMPARISON_MAX)
        return FAIL(err, ST_USAGE, "compare: %zu studies; 2 to %d can be compared", n, COMPARISON_MAX);
    for (size_t i = 0; i < n; i++) {
        const struct study_view *b = views[i];
        if (strcmp(a->study.metric, b->study.metric) != 0 || a->study.maximize != b->study.maximize)
            return FAIL(err, ST_USAGE,
                        "compare: %s has %s %s and %s has %s %s; only scores of one kind can be compared",
                        a->study.name, study_direction(&a->study), a->study.metric, b->study.name,
                        study_direction(&b->study), b->study.metric);
        if (a->search.cost != b->search.cost)
            return FAIL(err, ST_USAGE, "compare: costs are counted in %s by %s and otherwise by %s (sweep.cost)",
                        study_cost_unit(a->search.cost), a->study.name, b->study.name);
        if (!outcomes_same_third(&a->search.outcomes, &b->search.outcomes))
            return FAIL(err, ST_USAGE, "compare: %s and %s have different third objectives (sweep.objective)",
                        a->study.name, b->study.name);
        if (study_view_best_run(b) == b->n)
            return FAIL(err, ST_NOTFOUND, "compare: %s has no finished trial%s yet", b->study.name,
                        b->search.outcomes.n_limits > 0 ? " that keeps its limits" : "");
    }
    return ST_OK;
}

/* ---- fronts ---- */

static int by_point_cost(const void *pa, const void *pb)
{
    const struct compared_point *a = pa, *b = pb;

    return a->cost != b->cost ? (a->cost > b->cost) - (a->cost < b->cost)
                              : (a->trial > b->trial) - (a->trial < b->trial);
}

static void fill_front(struct compared *c)
{
    const struct study_view *v = c->view;

    c->front = mem_array(v->n, sizeof *c->front);
    for (size_t i = 0; i < v->n; i++) {
        struct promise p;
        if (!v->on_front[i])
            continue;
        study_view_promise(v, i, &p);
        c->front[c->n_front++] = (struct compared_point){i, p.cost, p.score, p.lo, p.hi, p.n_seeds};
    }
    if (c->n_front > 1)
        qsort(c->front, c->n_front, sizeof *c->front, by_point_cost);
}

/* ---- configs ---- */

bool comparison_may_differ(const char *key)
{
    static const char *const keys[] = {"sweep.seed",   "train.seed",    "sweep.trial_seed",
                                       "train.device", "train.threads", "train.vector_units"};

    for (size_t i = 0; i < COUNT(keys); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return sweep_option_is_apart(key);
}

static const char *value_text(const cJSON *config, const char *section, const char *key, char buf[NUM_TEXT_MAX])
{
    const cJSON *value = json_get(json_get(config, section), key);

    return cJSON_IsString(value) || cJSON_IsRaw(value) ? value->valuestring
           : cJSON_IsBool(value)                       ? (cJSON_IsTrue(value) ? "true" : "false")
           : cJSON_IsNumber(value)                     ? num_format_f64(value->valuedouble, buf)
                                                       : NULL;
}

/* A row of the differences, where the texts (n) differ (NULL: the study has none); who is no longer of one group. */
static void compare_texts(struct comparison *c, const char *key, const char *const *texts,
                          bool (*differ)[COMPARISON_MAX])
{
    bool any = false;

    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < i; k++) {
            const char *a = texts[i], *b = texts[k];
            bool same = a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
            any = any || !same;
            differ[i][k] = differ[i][k] || (!same && !comparison_may_differ(key));
        }
    if (!any)
        return;
    cJSON *row = cJSON_CreateObject(), *values;
    json_add_str(row, "key", key);
    values = cJSON_AddArrayToObject(row, "values");
    for (size_t i = 0; i < c->n; i++)
        cJSON_AddItemToArray(values, texts[i] != NULL ? cJSON_CreateString(texts[i]) : cJSON_CreateNull());
    cJSON_AddItemToArray(c->differences, row);
}

static void compare_option(struct comparison *c, cJSON *const *configs, const char *section, const char *key,
                           bool (*differ)[COMPARISON_MAX])
{
    char path[2 * CONFIG_KEY_MAX], buf[COMPARISON_MAX][NUM_TEXT_MAX];
    const char *texts[COMPARISON_MAX];

    snprintf(path, sizeof path, "%.90s.%.90s", section, key);
    for (size_t i = 0; i < c->n; i++)
        texts[i] = value_text(configs[i], section, key, buf[i]);
    compare_texts(c, path, texts, differ);
}

/* "0.001 to 0.1" or "adam, muon"; NULL: the study does not search it. The caller frees buf. */
static const char *range_text(const struct search *s, const char *key, struct strbuf *buf)
{
    size_t k = search_find(s, key);
    const struct space_param *p = &s->space.params[k];
    char lo[64], hi[64];

    strbuf_init(buf, 1 << 12);
    if (k == s->space.dim)
        return NULL;
    search_show(s, k, p->min, lo, sizeof lo);
    search_show(s, k, p->max, hi, sizeof hi);
    if (p->scale != SPACE_CATEGORICAL)
        strbuf_addf(buf, "%s to %s", lo, hi);
    for (size_t i = 0; p->scale == SPACE_CATEGORICAL && i < p->n_choices; i++)
        strbuf_addf(buf, "%s%s", i > 0 ? ", " : "", s->choices[k][i]);
    return buf->text;
}

/* What they search. */
static void compare_spaces(struct comparison *c, bool (*differ)[COMPARISON_MAX])
{
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->studies[i].view->search.space.dim; k++) {
            const char *key = c->studies[i].view->search.space.params[k].key, *texts[COMPARISON_MAX];
            struct strbuf bufs[COMPARISON_MAX];
            char path[SPACE_KEY_MAX + 8];
            bool seen = false;
            for (size_t j = 0; j < i; j++)
                seen = seen || search_find(&c->studies[j].view->search, key) < c->studies[j].view->search.space.dim;
            if (seen)
                continue;
            snprintf(path, sizeof path, "sweep.%s", key);
            for (size_t j = 0; j < c->n; j++)
                texts[j] = range_text(&c->studies[j].view->search, key, &bufs[j]);
            compare_texts(c, path, texts, differ);
            for (size_t j = 0; j < c->n; j++)
                strbuf_free(&bufs[j]);
        }
}

/* Has no study of the group its seed? */
static bool is_new_seed(const struct comparison *c, size_t group, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (c->studies[k].group == group && c->studies[k].view->study.seed == c->studies[i].view->study.seed)
            return false;
    return true;
}

/* Every option that the first study with it names. */
static void compare_configs(struct comparison *c, cJSON *const *configs)
{
    bool differ[COMPARISON_MAX][COMPARISON_MAX] = {{false}};
    const cJSON *section, *value;
    char buf[NUM_TEXT_MAX];

    for (size_t i = 0; i < c->n; i++)
        cJSON_ArrayForEach(section, configs[i])
        {
            cJSON_ArrayForEach(value, section)
            {
                bool seen = false;
                for (size_t k = 0; k < i; k++)
                    seen = seen || value_text(configs[k], section->string, value->string, buf) != NULL;
                if (!seen)
                    compare_option(c, configs, section->string, value->string, differ);
            }
        }
    compare_spaces(c, differ);
    for (size_t i = 0; i < c->n; i++) {
        c->studies[i].group = i;
        for (size_t k = i; k-- > 0;)
            if (c->studies[k].group == k && !differ[i][k] && is_new_seed(c, k, i))
                c->studies[i].group = k;
    }
}

static enum status load_configs(struct comparison *c, struct error *err)
{
    cJSON *configs[COMPARISON_MAX] = {NULL};
    enum status rc = ST_OK;

    for (size_t i = 0; i < c->n && rc == ST_OK; i++) {
        struct setup *setup;
        rc = study_view_setup(c->studies[i].view, &setup, err);
        if (rc == ST_OK)
            configs[i] = config_to_json(setup->config);
    }
    c->differences = cJSON_CreateArray();
    if (rc == ST_OK)
        compare_configs(c, configs);
    for (size_t i = 0; i < c->n; i++)
        cJSON_Delete(configs[i]);
    return rc;
}

/* ---- what is attained ---- */

/* The best score at a cost or below; -INFINITY: none. Higher is better. */
static double attained_by(const struct compared *c, double cost)
{
    double best = -INFINITY;

    for (size_t i = 0; i < c->n_front && c->front[i].cost <= cost; i++)
        best = fmax(best, c->view->study.maximize ? c->front[i].score : -c->front[i].score);
    return best;
}

/* scores: (n) ascending. That which a share of the studies attains or exceeds, in the study's direction. */
static double reached(const struct study_view *v, const double *scores, size_t n, double share)
{
    double score = scores[n - (size_t)ceil(share * (double)n)];

    return isfinite(score) ? study_view_score(v, score) : NAN;
}

static void attain_group(struct comparison *c, size_t group)
{
    double scores[COMPARISON_MAX];
    size_t n_costs = 0, n = 0;

    for (size_t i = 0; i < c->n; i++)
        if (c->studies[i].group == group) {
            n++;
            n_costs += c->studies[i].n_front;
        }
    if (n < 2)
        return;
    MEM_LOCAL double *costs = mem_array(n_costs, sizeof *costs);
    n_costs = 0;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; c->studies[i].group == group && k < c->studies[i].n_front; k++)
            costs[n_costs++] = c->studies[i].front[k].cost;
    num_sort(costs, n_costs);
    c->attained = mem_grow(c->attained, c->n_attained, c->n_attained + n_costs, sizeof *c->attained);
    for (size_t k = 0; k < n_costs; k++) {
        const struct study_view *v = c->studies[group].view;
        size_t m = 0;
        for (size_t i = 0; i < c->n; i++)
            if (c->studies[i].group == group)
                scores[m++] = attained_by(&c->studies[i], costs[k]);
        num_sort(scores, m);
        c->attained[c->n_attained++] = (struct attained){group, costs[k], reached(v, scores, m, 0.25),
                                                         reached(v, scores, m, 0.5), reached(v, scores, m, 0.75)};
    }
}

enum status comparison_make(struct study_view *const *views, size_t n, struct comparison *ret, struct error *err)
{
    struct comparison c = {.n = n, .ref = {.score = INFINITY, .third = -INFINITY}};

    *ret = (struct comparison){0};
    TRY(check(views, n, err));
    for (size_t i = 0; i < n; i++) {
        c.studies[i].view = views[i];
        c.ref.cost = fmax(c.ref.cost, views[i]->ref.cost);
        c.ref.score = fmin(c.ref.score, views[i]->ref.score);
        c.ref.third = fmax(c.ref.third, views[i]->ref.third);
    }
    for (size_t i = 0; i < n; i++) {
        c.studies[i].volume = believed_volume(views[i], &c.ref, BELIEVED_NOW);
        c.studies[i].best = study_view_pick(views[i], GP_BEST);
        fill_front(&c.studies[i]);
    }
    enum status rc = load_configs(&c, err);
    for (size_t i = 0; i < n && rc == ST_OK; i++)
        if (c.studies[i].group == i)
            attain_group(&c, i);
    *ret = c;
    if (rc != ST_OK)
        comparison_free(ret);
    return rc;
}

void comparison_free(struct comparison *c)
{
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->studies[i].front);
    mem_free(c->attained);
    cJSON_Delete(c->differences);
    *c = (struct comparison){0};
}

/* ---- JSON ---- */

static void add_known(cJSON *json, const char *key, double value)
{
    if (isfinite(value))
        json_add_f64(json, key, value);
    else
        json_add_str(json, key, NULL);
}

static cJSON *study_json(const struct comparison *c, size_t i)
{
    const struct compared *s = &c->studies[i];
    const struct study_view *v = s->view;
    cJSON *json = cJSON_CreateObject(), *front;

    json_add_str(json, "study", v->study.name);
    json_add_str(json, "group", c->studies[s->group].view->study.name);
    json_add_i64(json, "seed", v->study.seed);
    json_add_i64(json, "trials", (int64_t)v->n);
    json_add_f64(json, "cost_s", study_view_cost(v));
    json_add_f64(json, "hypervolume", s->volume);
    if (s->best < v->n) {
        struct promise p;
        study_view_promise(v, s->best, &p);
        json_add_i64(json, "best_trial", v->trials[s->best].number);
        add_known(json, "best_score", p.score);
        add_known(json, "best_lo", p.lo);
        add_known(json, "best_hi", p.hi);
        json_add_i64(json, "best_seeds", (int64_t)p.n_seeds);
    }
    front = cJSON_AddArrayToObject(json, "front");
    for (size_t k = 0; k < s->n_front; k++) {
        const struct compared_point *p = &s->front[k];
        cJSON *point = cJSON_CreateObject();
        json_add_i64(point, "trial", (int64_t)p->trial);
        json_add_f64(point, "cost", p->cost);
        json_add_f64(point, "score", p->score);
        add_known(point, "lo", p->lo);
        add_known(point, "hi", p->hi);
        json_add_i64(point, "n_seeds", (int64_t)p->n_seeds);
        cJSON_AddItemToArray(front, point);
    }
    return json;
}

cJSON *comparison_to_json(const struct comparison *c)
{
    const struct study_view *v = c->studies[0].view;
    cJSON *json = cJSON_CreateObject(), *reference, *list;

    json_add_str(json, "metric", v->study.metric);
    json_add_str(json, "direction", study_direction(&v->study));
    json_add_str(json, "cost_unit", study_cost_unit(v->search.cost));
    reference = cJSON_AddObjectToObject(json, "reference");
    json_add_f64(reference, "cost", c->ref.cost);
    json_add_f64(reference, "score", study_view_score(v, c->ref.score));
    list = cJSON_AddArrayToObject(json, "studies");
    for (size_t i = 0; i < c->n; i++)
        cJSON_AddItemToArray(list, study_json(c, i));
    list = cJSON_AddArrayToObject(json, "attained");
    for (size_t i = 0; i < c->n_attained; i++) {
        const struct attained *a = &c->attained[i];
        cJSON *row = cJSON_CreateObject();
        json_add_str(row, "group", c->studies[a->group].view->study.name);
        json_add_f64(row, "cost", a->cost);
        add_known(row, "by_quarter", a->best);
        add_known(row, "by_half", a->middle);
        add_known(row, "by_three_quarters", a->worst);
        cJSON_AddItemToArray(list, row);
    }
    cJSON_AddItemToObject(json, "differences", cJSON_Duplicate(c->differences, true));
    return json;
}
