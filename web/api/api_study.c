/* api_study.c - the server itself and the studies: /version, /studies, /studies/NAME, /openapi.json. */
#include "base/text/json.h"
#include "web/text/put.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"

void api_put_json(struct strbuf *out, cJSON *json)
{
    MEM_LOCAL char *text = json_print(json, false);

    cJSON_Delete(json);
    put_json_text(out, text);
    strbuf_add(out, "\n");
}

enum status api_version(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const char *slash = store_is_address(s->set.store_path) ? NULL : strrchr(s->set.store_path, '/');
    cJSON *json = cJSON_CreateObject();
    char problem[ERROR_TEXT_MAX], store[PATH_MAX];

    (void)r;
    (void)err;
    pthread_rwlock_rdlock(&s->data);
    memcpy(problem, s->store_error, sizeof problem);
    pthread_rwlock_unlock(&s->data);
    r->answer->no_store = true;
    json_add_str(json, "program", s->set.program);
    json_add_str(json, "version", s->set.version);
    json_add_str(json, "commit", s->set.commit);
    json_add_i64(json, "api", 1);
    json_add_str(json, "store", slash != NULL ? slash + 1 : s->set.store_path);
    json_add_str(json, "store_path", serve_store_path(s, store));
    json_add_bool(json, "store_ok", problem[0] == '\0');
    json_add_str(json, "store_error", problem[0] != '\0' ? problem : NULL);
    json_add_i64(json, "data_version", atomic_load(&s->version));
    json_add_bool(json, "control", s->set.control != NULL);
    json_add_str(json, "csrf", s->csrf);
    json_add_i64(json, "now_ms", clock_utc_ms());
    api_put_json(out, json);
    return ST_OK;
}

enum status api_studies(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    cJSON *json = cJSON_CreateObject(), *list;

    (void)err;
    pthread_rwlock_rdlock(&s->data);
    json_add_i64(json, "version", r->version);
    json_add_str(json, "store_error", s->store_error[0] != '\0' ? s->store_error : NULL);
    list = cJSON_AddArrayToObject(json, "studies");
    for (size_t i = 0; i < s->n_studies; i++)
        cJSON_AddItemToArray(list, page_study_summary(s->studies[i], s->has_writer));
    pthread_rwlock_unlock(&s->data);
    api_put_json(out, json);
    return ST_OK;
}

/* The stored space with the names of the other answers. */
static enum status space_json(const struct page_study *p, cJSON **ret_space, struct error *err)
{
    cJSON *param, *when;
    size_t k = 0;

    TRY(json_parse(p->view.study.space, strlen(p->view.study.space), ret_space, err));
    cJSON_ArrayForEach(param, json_get(*ret_space, "params"))
    {
        const struct space_param *own = &p->view.search.space.params[k];
        cJSON_SetValuestring(json_get(param, "key"), page_param_name(&p->view.search, k));
        when = json_get(param, "when");
        if (when != NULL)
            cJSON_SetValuestring(json_get(when, "key"), page_param_name(&p->view.search, own->parent));
        k++;
    }
    return ST_OK;
}

enum status api_study(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const struct page_study *p = serve_lock_study(s, r->study, err);
    cJSON *json, *space = NULL, *reference;

    if (p == NULL)
        return err->status;
    json = page_study_summary(p, s->has_writer);
    enum status rc = space_json(p, &space, err);
    json_add(json, "space", space);
    reference = cJSON_AddObjectToObject(json, "reference");
    json_add_f64(reference, "cost", p->view.ref.cost);
    json_add_f64(reference, "score", study_view_score(&p->view, p->view.ref.score));
    json_add_str(json, "config", p->view.study.config);
    serve_unlock(s);
    api_put_json(out, json);
    return rc;
}
