/* api_openapi.c - /api/v1/openapi.json: OpenAPI 3.0, written from the table of routes, so that it cannot forget one.
 * What the answers mean stands in docs/http-api.md. */
#include "base/text/json.h"
#include "web/api/answer_schema.h"
#include "web/api/ask_form.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"

struct param_text {
    const char *name, *type, *text;
};
static const struct param_text param_texts[] = {
    {"offset", "integer", "rows to leave out"},
    {"limit", "integer", "rows to give, at most 20000"},
    {"sort", "string", "a column"},
    {"order", "string", "asc or desc"},
    {"state", "string", "states with commas between"},
    {"front", "boolean", "only trials on the front"},
    {"fields", "string", "columns with commas between; params: all parameters"},
    {"since", "integer", "only what changed after this version"},
    {"since_ms", "integer", "time of the last visit, UTC milliseconds"},
    {"studies", "string", "names as a JSON array"},
    {"points", "integer", "at most this number of points"},
    {"metrics", "string", "names with commas between"},
    {"bytes", "integer", "at most this number of bytes of its end"},
    {"against", "integer", "a trial to compare with"},
    {"study", "string", "only events of this study"},
    {"rule", "string", "best, best-run, knee, cost<=X, score>=X, trial=N"},
    {"budget_s", "number", "the best score that costs no more"},
    {"score", "number", "the cheapest that is at least as good"},
    {"trial", "integer", "a trial's number"},
    {"format", "string", "of the file"},
    {"param", "string", "a key of the space"},
    {"x", "string", "a key of the space"},
    {"y", "string", "another key of the space"},
    {"at", "string", "a trial's number, best, best-run, knee or recommended"},
    {"seed", "integer", "of the games"},
    {"greedy", "boolean", "the likeliest action instead of sampling"},
    {"fps", "integer", "decisions a second"},
    {"csrf", "string", "of /api/v1/version; browsers need it"},
};

static void add_param(cJSON *list, const char *name, const char *where, const char *type, const char *text)
{
    cJSON *p = cJSON_CreateObject();

    json_add_str(p, "name", name);
    json_add_str(p, "in", where);
    json_add_bool(p, "required", strcmp(where, "path") == 0);
    json_add_str(p, "description", text);
    json_add_str(cJSON_AddObjectToObject(p, "schema"), "type", type);
    cJSON_AddItemToArray(list, p);
}

static void add_params(cJSON *list, const struct route *route)
{
    if (strstr(route->path, "{study}") != NULL)
        add_param(list, "study", "path", "string", "the study's name");
    if (strstr(route->path, "{trial}") != NULL)
        add_param(list, "trial", "path", "integer", "the trial's number");
    if (strstr(route->path, "{folder}") != NULL)
        add_param(list, "folder", "path", "string", "the file's folder");
    if (strstr(route->path, "{file}") != NULL)
        add_param(list, "file", "path", "string", "the file's name");
    for (size_t i = 0; i < COUNT(param_texts); i++)
        if (list_has(route->params, param_texts[i].name))
            add_param(list, param_texts[i].name, "query", param_texts[i].type, param_texts[i].text);
}

/* schema: taken; NULL: none. */
static void add_answer(cJSON *responses, const char *status, const char *text, const char *type, cJSON *schema)
{
    cJSON *answer = cJSON_AddObjectToObject(responses, status), *content;

    json_add_str(answer, "description", text);
    content = cJSON_AddObjectToObject(cJSON_AddObjectToObject(answer, "content"), type);
    json_add(content, "schema", schema);
}

static void add_schema(cJSON *to, const struct ask_field *fields, bool is_answer)
{
    static const char *const types[] = {
        [ASK_STR] = "string",  [ASK_NUM] = "number",    [ASK_INT] = "integer", [ASK_BOOL] = "boolean",
        [ASK_NUMS] = "object", [ASK_OBJECT] = "object", [ASK_STRS] = "array"};
    cJSON *schema = cJSON_AddObjectToObject(to, "schema"), *properties, *required = cJSON_CreateArray();

    json_add_str(schema, "type", "object");
    properties = cJSON_AddObjectToObject(schema, "properties");
    for (size_t i = 0; i < ASK_FIELDS_MAX && fields[i].name != NULL; i++) {
        cJSON *p = cJSON_AddObjectToObject(properties, fields[i].name);
        json_add_str(p, "type", types[fields[i].type]);
        json_add_str(p, "description", fields[i].text);
        if (!fields[i].required)
            json_add_bool(p, "nullable", true);
        if (fields[i].type == ASK_INT)
            json_add_i64(p, "minimum", 0);
        if (fields[i].type == ASK_NUMS)
            json_add_str(cJSON_AddObjectToObject(p, "additionalProperties"), "type", "number");
        if (fields[i].type == ASK_STRS)
            json_add_str(cJSON_AddObjectToObject(p, "items"), "type", "string");
        if (fields[i].required)
            cJSON_AddItemToArray(required, cJSON_CreateString(fields[i].name));
    }
    if (cJSON_GetArraySize(required) > 0)
        json_add(schema, "required", required);
    else
        cJSON_Delete(required);
    json_add_bool(schema, "additionalProperties", is_answer); /* answers may get more fields */
}

/* The same for each of these requests. */
static void add_refusals(cJSON *responses)
{
    static const char *const refusals[][2] = {
        {"400", "a field is missing, unknown, of another type, or its value is not possible"},
        {"401", "the token is missing or wrong"},
        {"403", "the server runs without --control, or the request comes from another site"},
        {"404", "no such study, trial or lease"},
        {"409", "the state of the study or of the lease forbids it"},
        {"503", "no controller runs, or it waits; try again (Retry-After)"},
    };

    for (size_t i = 0; i < COUNT(refusals); i++)
        add_answer(responses, refusals[i][0], refusals[i][1], "application/json", answer_schema_failure());
}

static void add_client_operation(cJSON *path, const struct route *route)
{
    const struct ask_form *form = &ask_forms[ask_verb_find(strrchr(route->path, ':') + 1)];
    cJSON *op = cJSON_AddObjectToObject(path, "post"), *body, *responses, *answer;

    json_add_str(op, "summary", form->summary);
    json_add_str(op, "operationId", form->verb);
    add_params(cJSON_AddArrayToObject(op, "parameters"), route);
    body = cJSON_AddObjectToObject(op, "requestBody");
    json_add_bool(body, "required", true);
    add_schema(cJSON_AddObjectToObject(cJSON_AddObjectToObject(body, "content"), "application/json"), form->body,
               false);
    responses = cJSON_AddObjectToObject(op, "responses");
    answer = cJSON_AddObjectToObject(responses, "200");
    json_add_str(answer, "description", "the answer");
    add_schema(cJSON_AddObjectToObject(cJSON_AddObjectToObject(answer, "content"), "application/json"), form->answer,
               true);
    add_refusals(responses);
}

static void add_operation(cJSON *path, const struct route *route, const char *method)
{
    cJSON *op = cJSON_AddObjectToObject(path, method), *responses;

    json_add_str(op, "summary", route->summary);
    add_params(cJSON_AddArrayToObject(op, "parameters"), route);
    responses = cJSON_AddObjectToObject(op, "responses");
    add_answer(responses, "200", "the answer", route->type != NULL ? route->type : "application/json",
               answer_schema(route->path));
    add_answer(responses, "default", "a failure", "application/json", answer_schema_failure());
}

enum status api_openapi(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    cJSON *json = cJSON_CreateObject(), *info, *paths;
    char path[128];

    (void)r;
    (void)err;
    json_add_str(json, "openapi", "3.0.3");
    info = cJSON_AddObjectToObject(json, "info");
    json_add_str(info, "title", "Trawl");
    json_add_str(info, "version", s->set.version);
    json_add_str(info, "description", "Studies, trials and models of a Trawl store; docs/http-api.md has more.");
    paths = cJSON_AddObjectToObject(json, "paths");
    for (size_t i = 0; i < serve_n_routes; i++) {
        const struct route *route = &serve_routes[i];
        snprintf(path, sizeof path, "/%s", route->path);
        cJSON *item = cJSON_AddObjectToObject(paths, path);
        if (route->kind == ROUTE_CLIENT)
            add_client_operation(item, route);
        else if (route->kind != ROUTE_POST)
            add_operation(item, route, "get");
        if (route->kind == ROUTE_POST || route->kind == ROUTE_FORM)
            add_operation(item, route, "post");
    }
    api_put_json(out, json);
    return ST_OK;
}
