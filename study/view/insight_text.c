/* insight_text.c - what the models conclude about a study, for `trawl show`: the importance of each parameter, bounds
 * at which the front lies. Text goes to stdout, scores in the study's own direction. */
#include "study/view/insight_text.h"
#include "study/view/promise.h"
#include "study/view/resume_command.h"
#include "study/view/study_insight.h"
#include "study/view/study_view.h"
#include "study/version.h"

static void effect_text(const struct gp_importance *importance, char buf[32])
{
    snprintf(buf, 32, "%3.0f %% +- %.0f", 100.0 * importance->effect, 100.0 * importance->effect_sd);
}

static void print_importance(const struct study_view *v)
{
    const struct gp_insight *in = &v->advice;
    char score[32], cost[32];

    printf("share of the variance that each parameter explains alone:\n");
    printf("%-32s %14s %14s\n", "parameter", v->study.metric, "ln cost");
    for (size_t i = 0; i < v->search.space.dim; i++) {
        effect_text(&in->score[i], score);
        effect_text(&in->cost[i], cost);
        printf("%-32s %14s %14s\n", search_param_name(v->search.space.params[i].key), score, cost);
    }
    if (in->score_note != NULL)
        printf("(%s: %s)\n", v->study.metric, in->score_note);
    if (in->cost_note != NULL)
        printf("(cost: %s)\n", in->cost_note);
}

static void print_edges(const struct study_view *v, const char *store_path)
{
    bool any = false;
    STRBUF(command, OUTPUT_MAX_BYTES);

    study_resume_command(v, store_path, &command);
    for (size_t i = 0; i < v->search.space.dim; i++) {
        const struct space_param *p = &v->search.space.params[i];
        const struct gp_edge *e = &v->advice.edges[i];
        char bound[NUM_TEXT_MAX], suggested[NUM_TEXT_MAX]; /* exact: 0.99999 must not read 1 */
        if (e->side == 0)
            continue;
        printf("%s: %zu of %zu trials that the model expects on the front lie at its %s bound %s; try %s = %s\n",
               search_param_name(p->key), e->n_on, e->n_front, e->side < 0 ? "lower" : "upper",
               num_format_f64(e->side < 0 ? p->min : p->max, bound), e->side < 0 ? "min" : "max",
               num_format_f64(e->suggested, suggested));
        strbuf_addf(&command, " --sweep.%s.%s %s", p->key, e->side < 0 ? "min" : "max", suggested);
        any = true;
    }
    if (any)
        printf("to search there too, with all trials so far:\n  %s\n", command.text);
}

enum status insight_print(struct study_view *v, const char *store_path, struct error *err)
{
    TRY(study_view_insight(v, err));
    if (v->advice.note != NULL) {
        printf("no recommendation yet: %s\n", v->advice.note);
        return ST_OK;
    }
    print_importance(v);
    print_edges(v, store_path);
    return ST_OK;
}

cJSON *importance_json(const struct gp_importance *importance)
{
    cJSON *json = cJSON_CreateObject();

    json_add_f64(json, "effect", importance->effect);
    json_add_f64(json, "effect_sd", importance->effect_sd);
    json_add_f64(json, "sensitivity", importance->sensitivity);
    return json;
}

static cJSON *param_json(const struct study_view *v, size_t i)
{
    const struct gp_edge *e = &v->advice.edges[i];
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "key", v->search.space.params[i].key);
    json_add(json, "score", importance_json(&v->advice.score[i]));
    json_add(json, "cost", importance_json(&v->advice.cost[i]));
    if (e->side != 0) {
        json_add_str(json, "leans_on", e->side < 0 ? "min" : "max");
        json_add_f64(json, "try", e->suggested);
    }
    return json;
}

static cJSON *belief_json(const struct study_view *v, size_t i)
{
    const struct gp_belief *b = &v->advice.beliefs[i];
    cJSON *json = cJSON_CreateObject();
    struct promise p;

    study_view_promise(v, i, &p);
    json_add_i64(json, "trial", v->trials[i].number);
    json_add_f64(json, "score", p.score);
    json_add_f64(json, "score_sd", b->score_sd);
    json_add_f64(json, "score_lo", p.lo);
    json_add_f64(json, "score_hi", p.hi);
    json_add_i64(json, "n_seeds", (int64_t)p.n_seeds);
    json_add_f64(json, "cost", p.cost);
    json_add_f64(json, "log_cost_sd", b->log_cost_sd);
    return json;
}

enum status insight_to_json(struct study_view *v, cJSON **ret_json, struct error *err)
{
    cJSON *json, *params, *front;

    TRY(study_view_insight(v, err));
    *ret_json = json = cJSON_CreateObject();
    if (v->advice.note != NULL) {
        json_add_str(json, "note", v->advice.note);
        return ST_OK;
    }
    if (v->advice.recommended < v->n)
        json_add_i64(json, "recommended", v->trials[v->advice.recommended].number);
    else /* no trial keeps all limits */
        json_add_str(json, "recommended", NULL);
    json_add_f64(json, "score_noise_sd", v->advice.score_noise_sd);
    params = cJSON_AddArrayToObject(json, "params");
    front = cJSON_AddArrayToObject(json, "front");
    for (size_t i = 0; i < v->search.space.dim; i++)
        cJSON_AddItemToArray(params, param_json(v, i));
    for (size_t i = 0; i < v->n; i++)
        if (v->on_front[i])
            cJSON_AddItemToArray(front, belief_json(v, i));
    return ST_OK;
}
