/* insight.c - what the models say about a study, for `trawl show`: the trial to take, how much each parameter matters,
 * bounds that the front leans on. Everything stands on stdout, scores in the study's own direction. */
#include "sweep/control.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

static double own_score(const struct study_view *v, double score)
{
    return v->study.maximize ? score : -score;
}

static void print_recommended(const struct study_view *v, const struct gp_insight *in)
{
    const struct gp_belief *b;
    char cost[32];

    if (in->recommended >= v->n)
        return;
    b = &in->beliefs[in->recommended];
    printf("recommended: trial %lld, expected %s %.4g +- %.2g at a cost of %s (one run varies by +- %.2g)\n",
           (long long)v->trials[in->recommended].number, v->study.metric, own_score(v, b->score), b->score_sd,
           study_view_cost_text(v, exp(b->log_cost), cost), in->score_noise_sd);
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

static void print_edges(const struct study_view *v, const struct gp_insight *in)
{
    for (size_t i = 0; i < v->search.space.dim; i++) {
        const struct space_param *p = &v->search.space.params[i];
        const struct gp_edge *e = &in->edges[i];
        char bound[64], suggested[64];
        if (e->side == 0)
            continue;
        search_show(&v->search, i, e->side < 0 ? p->min : p->max, bound, sizeof bound);
        if (p->is_int || p->scale == SPACE_POW2)
            search_show(&v->search, i, e->suggested, suggested, sizeof suggested);
        else
            snprintf(suggested, sizeof suggested, "%.7g", e->suggested); /* 0.99999 must not read 1 */
        printf("%s: %zu of %zu trials that the model expects on the front lie at its %s bound %s; try %s = %s\n",
               p->key, e->n_on, e->n_front, e->side < 0 ? "lower" : "upper", bound, e->side < 0 ? "min" : "max",
               suggested);
    }
}

enum status insight_print(const struct study_view *v, struct error *err)
{
    struct gp_insight in;

    TRY(gp_insight_init(&in, &v->search.space, &v->history, (uint64_t)v->study.seed, err));
    if (in.note != NULL) {
        printf("no recommendation yet: %s\n", in.note);
    } else {
        print_recommended(v, &in);
        print_importance(v, &in);
        print_edges(v, &in);
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
    bool ok = json != NULL && json_add_i64(json, "trial", v->trials[i].number) &&
              json_add_f64(json, "score", own_score(v, b->score)) && json_add_f64(json, "score_sd", b->score_sd) &&
              json_add_f64(json, "cost", exp(b->log_cost)) && json_add_f64(json, "log_cost_sd", b->log_cost_sd);

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
    enum status rc = gp_insight_init(&in, &v->search.space, &v->history, (uint64_t)v->study.seed, err);
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
            if (in.beliefs[i].on_front)
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
