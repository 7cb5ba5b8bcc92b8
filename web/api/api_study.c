/* api_study.c - the server itself and the studies: /version, /studies, /studies/NAME, /openapi.json. */
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "store/store.h"
#include "web/serve/answer_cache.h"
#include "web/serve/json_text.h"
#include "web/serve/routes.h"
#include "web/serve/serve.h"
#include "web/serve/serve_priv.h"
#include "web/serve/served_study.h"

#include <string.h>

/* The JSON as the body; taken, NULL: out of memory. */
enum status api_put_json(struct strbuf *out, cJSON *json, struct error *err)
{
    char *text = json != NULL ? json_print(json, false) : NULL;

    cJSON_Delete(json);
    if (text == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for an answer");
    put_json_text(out, text);
    strbuf_add(out, "\n");
    mem_free(text);
    return ST_OK;
}

enum status api_version(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                        struct error *err)
{
    const char *slash = strrchr(s->set.store_path, '/');
    cJSON *json = cJSON_CreateObject();
    char problem[ERROR_TEXT_MAX];

    (void)r;
    pthread_rwlock_rdlock(&s->data);
    memcpy(problem, s->store_error, sizeof problem);
    pthread_rwlock_unlock(&s->data);
    answer->no_store = true;
    bool ok =
        json != NULL && json_add_str(json, "program", s->set.program) &&
        json_add_str(json, "version", s->set.version) && json_add_str(json, "commit", s->set.commit) &&
        json_add_i64(json, "api", 1) && json_add_str(json, "store", slash != NULL ? slash + 1 : s->set.store_path) &&
        json_add_bool(json, "store_ok", problem[0] == '\0') &&
        json_add_str(json, "store_error", problem[0] != '\0' ? problem : NULL) &&
        json_add_bool(json, "control", s->set.control) && json_add_str(json, "csrf", s->set.control ? s->csrf : NULL) &&
        json_add_i64(json, "now_ms", clock_utc_ms());
    if (!ok) {
        cJSON_Delete(json);
        json = NULL;
    }
    return api_put_json(out, json, err);
}

enum status api_studies(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                        struct error *err)
{
    cJSON *json = cJSON_CreateObject(), *list = NULL;
    bool ok;

    (void)answer;
    pthread_rwlock_rdlock(&s->data);
    ok = json != NULL && json_add_i64(json, "version", r->version) &&
         json_add_str(json, "store_error", s->store_error[0] != '\0' ? s->store_error : NULL);
    list = ok ? cJSON_AddArrayToObject(json, "studies") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < s->n_views; i++) {
        cJSON *item = view_summary(s->views[i], s->has_writer);
        ok = item != NULL && cJSON_AddItemToArray(list, item);
    }
    pthread_rwlock_unlock(&s->data);
    if (!ok) {
        cJSON_Delete(json);
        json = NULL;
    }
    return api_put_json(out, json, err);
}

static bool add_reference(cJSON *json, const struct view *v)
{
    cJSON *reference = cJSON_CreateObject();
    bool ok = reference != NULL && add_number(reference, "cost", v->ref.cost) &&
              add_number(reference, "score", view_score(v, v->ref.score));

    if (ok)
        return json_add(json, "reference", reference);
    cJSON_Delete(reference);
    return false;
}

enum status api_study(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                      struct error *err)
{
    struct view *v = serve_lock_view(s, r->study, err);
    cJSON *json;

    (void)answer;
    if (v == NULL)
        return err->status;
    json = view_summary(v, s->has_writer);
    bool ok = json != NULL && json_add(json, "space", cJSON_Duplicate(v->space, true)) && add_reference(json, v) &&
              json_add_str(json, "config", v->study.config);
    serve_unlock(s);
    if (!ok) {
        cJSON_Delete(json);
        json = NULL;
    }
    return api_put_json(out, json, err);
}
