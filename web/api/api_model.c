/* api_model.c - what the models conclude: /insight, /model/front, /model/next, /model/slice, /model/contour. Nothing is
 * computed here but the last two, which take milliseconds; see serve/models.c. */
#include "base/text/json.h"
#include "web/serve/models.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"
#include "web/serve/data/study_model.h"

#include <microhttpd.h>

/* Version of the study's last change that matters to models. */
static enum status study_now(struct serve *s, const struct request *r, int64_t *ret_settled, struct error *err)
{
    struct page_study *p = serve_lock_study(s, r->study, err);

    if (p == NULL)
        return err->status;
    *ret_settled = p->settled;
    serve_unlock(s);
    return ST_OK;
}

/* Under the models' lock: the answer is head and body (taken), or the head alone when there is no model. */
static void answer_model(const struct request *r, enum model_state state, const struct model_entry *e, cJSON *body,
                         struct strbuf *out)
{
    cJSON *json = cJSON_CreateObject();

    r->answer->no_store = state != MODEL_READY;
    if (state == MODEL_COMPUTING)
        r->answer->status = MHD_HTTP_ACCEPTED;
    json_add_str(json, "study", r->study);
    json_add_str(json, "model", model_state_name(state));
    if (e != NULL && e->version > 0)
        json_add_i64(json, "model_version", e->version);
    else
        json_add_str(json, "model_version", NULL);
    json_add_str(json, "note", e != NULL && e->note[0] != '\0' ? e->note : NULL);
    while (body != NULL && body->child != NULL) {
        cJSON *item = cJSON_DetachItemViaPointer(body, body->child);
        cJSON_AddItemToObject(json, item->string, item);
    }
    cJSON_Delete(body);
    api_put_json(out, json);
}

/* of: one of study_model's bodies. */
static enum status answer_part(struct serve *s, const struct request *r, cJSON *of(const struct study_model *),
                               struct strbuf *out, struct error *err)
{
    struct model_entry *e;
    int64_t settled = 0;
    cJSON *body = NULL;

    TRY(study_now(s, r, &settled, err));
    enum model_state state = models_lock(s->models, r->study, settled, &e);
    if (state >= MODEL_STALE)
        body = of(e->model);
    answer_model(r, state, e, body, out);
    models_unlock(s->models);
    return ST_OK;
}

enum status api_insight(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    return answer_part(s, r, study_model_insight, out, err);
}

enum status api_model_front(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    return answer_part(s, r, study_model_front, out, err);
}

enum status api_model_next(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    return answer_part(s, r, study_model_next, out, err);
}

/* What a slice or a contour goes over and through. */
struct place {
    const char *param, *y; /* y NULL: a slice */
    int64_t trial; /* beyond the study's trials: there is none of the kind that was asked for yet */
    int64_t settled;
};

static enum status find_at(const struct page_study *p, const char *at, int64_t *ret_trial, struct error *err)
{
    if (at == NULL || strcmp(at, "recommended") == 0 || strcmp(at, "best") == 0)
        *ret_trial = (int64_t)p->best;
    else if (strcmp(at, "best-run") == 0)
        *ret_trial = (int64_t)p->best_run;
    else if (strcmp(at, "knee") == 0) /* no bend: as `trawl export --pick knee` */
        *ret_trial = (int64_t)(p->knee == p->view.n ? p->best : p->knee);
    else if (!num_parse_i64(at, ret_trial) || *ret_trial < 0)
        return FAIL(err, ST_USAGE, "at is '%.40s'; give a trial's number, best, best-run, knee or recommended", at);
    else if (*ret_trial >= (int64_t)p->view.n)
        return FAIL(err, ST_NOTFOUND, "%s has no trial %lld; it has %zu", p->view.study.name, (long long)*ret_trial,
                    p->view.n);
    return ST_OK;
}

/* Whatever the model's state is: what cannot be answered is refused before one is computed. */
static enum status find_place(const struct page_study *p, const struct request *r, struct place *place,
                              struct error *err)
{
    size_t x, y;

    TRY(search_find_given(&p->view.search, place->y != NULL ? "x" : "param", place->param, &x, err));
    if (place->y != NULL)
        TRY(search_find_given(&p->view.search, "y", place->y, &y, err));
    if (place->y != NULL && x == y)
        return FAIL(err, ST_USAGE, "x and y are both %.60s; name two parameters", place->y);
    place->settled = p->settled;
    return find_at(p, target_query(&r->target, "at"), &place->trial, err);
}

static enum status answer_place(struct serve *s, const struct request *r, const char *param, const char *y,
                                struct strbuf *out, struct error *err)
{
    struct page_study *p = serve_lock_study(s, r->study, err);
    struct place place = {.param = param, .y = y};
    struct model_entry *e;
    cJSON *body = NULL;

    if (p == NULL)
        return err->status;
    enum status rc = find_place(p, r, &place, err);
    serve_unlock(s);
    TRY(rc);
    enum model_state state = models_lock(s->models, r->study, place.settled, &e);
    if (state >= MODEL_STALE)
        rc = y != NULL ? study_model_contour(e->model, param, y, place.trial, &body, err)
                       : study_model_slice(e->model, param, place.trial, &body, err);
    if (rc == ST_OK)
        answer_model(r, state, e, body, out);
    models_unlock(s->models);
    return rc;
}

enum status api_model_slice(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const char *param = target_query(&r->target, "param");

    if (param == NULL)
        return FAIL(err, ST_USAGE, "no param; name a searched parameter, `space` of the study lists them");
    return answer_place(s, r, param, NULL, out, err);
}

enum status api_model_contour(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const char *x = target_query(&r->target, "x"), *y = target_query(&r->target, "y");

    if (x == NULL || y == NULL)
        return FAIL(err, ST_USAGE, "no %s; name two searched parameters, x and y, `space` of the study lists them",
                    x == NULL ? "x" : "y");
    return answer_place(s, r, x, y, out, err);
}
