/* api_client.c - POST trials:ask, trials/N:report and the like: what programs that train elsewhere send. The server
 * only passes them to the controller; ask_form.c has their fields. GET trials/N/leases shows what came of them. */
#include "base/text/json.h"
#include "store/store.h"
#include "web/api/ask_form.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"

enum status api_client(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const char *verb = strrchr(r->target.segments[r->target.n_segments - 1], ':') + 1; /* the route has one */
    cJSON *json = NULL;

    r->answer->no_store = true;
    TRY(ask_body_check(ask_verb_find(verb), r->body, err));
    TRY(s->set.ask(s->set.store_path, verb, r->study, r->trial, r->body, &json, err));
    api_put_json(out, json);
    return ST_OK;
}

/* Without the token, which is its client's alone. */
static cJSON *lease_json(const struct lease *l)
{
    cJSON *json = cJSON_CreateObject(), *result = NULL;

    json_add_str(json, "client", l->client);
    json_add_str(json, "state", lease_state_name(l->state));
    json_add_i64(json, "attempt", l->attempt);
    json_add_i64(json, "given_ms", l->given_ms);
    json_add_i64(json, "until_ms", l->until_ms);
    if (l->ended_ms != 0)
        json_add_i64(json, "ended_ms", l->ended_ms);
    else
        cJSON_AddNullToObject(json, "ended_ms");
    if (l->result == NULL || json_parse(l->result, strlen(l->result), &result, NULL) != ST_OK)
        result = cJSON_CreateNull();
    json_add(json, "result", result);
    json_add_bool(json, "late", l->result != NULL && l->state != LEASE_REPORTED);
    return json;
}

enum status api_leases(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    AT_END(serve_reader_give) struct reader reader = {0};
    AT_END(study_free) struct study study = {0};
    AT_END(trial_free) struct trial trial = {0};
    struct lease *leases = NULL;
    size_t n = 0;

    r->answer->no_store = true;
    TRY(serve_reader_take(s, &reader, err));
    TRY(store_study_find(reader.store, r->study, &study, err));
    TRY(store_trial_find(reader.store, study.id, r->trial, &trial, err));
    TRY(store_lease_list(reader.store, trial.id, &leases, &n, err));
    cJSON *json = cJSON_CreateObject(), *list;
    json_add_i64(json, "trial", r->trial);
    list = cJSON_AddArrayToObject(json, "leases");
    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, lease_json(&leases[i]));
    api_put_json(out, json);
    lease_list_free(leases, n);
    return ST_OK;
}
