/* answer_schema.c - the forms of the API's answers, written short:
 *   s text, i whole number, b bool, n number (null where unknown, "inf" or "-inf" where infinite), * anything
 *   [form] array, {name:form name~:form} object (~ may be missing), {*:form} object of any names, form? may be null
 * tests/e2e/views/test_schemas.py compares every answer of a running server with them. Answers may get more fields. */
#include "web/api/answer_schema.h"
#include "base/base.h"

#define V1 "api/v1/"
#define STUDY V1 "studies/{study}"
#define TRIAL STUDY "/trials/{trial}"

#define PROMISE                                                                                                        \
    "n_seeds:i score_mean:n score_lo:n score_hi:n seeds_mean:n cost_mean:n cost_lo:n cost_hi:n score_noise_sd:n "      \
    "start_s:n"
#define BELIEF "score:n score_sd:n score_lo:n score_hi:n cost:n cost_lo:n cost_hi:n"
#define OF_MODEL "study:s model:s model_version:i? note:s?"
#define REFERENCE "reference:{cost:n score:n}"
#define SUMMARY                                                                                                        \
    "name:s state:s end_rule:s? end_text:s? method:s metric:s direction:s env:s? cost_unit:s counts:{queued:i "        \
    "running:i done:i stopped:i failed:i lost:i} trials:i trials_max:n budget_s:n wall_max_s:n wall_used_s:n "         \
    "device_max_s:n target_score:n priority:i cost_s:n best_trial:i? best_score:n best_lo:n best_hi:n best_seeds:n "   \
    "best_run_trial:i? best_run_score:n knee_trial:i? confirming:i n_front:i hypervolume:n devices:[s] seed:i "        \
    "program:s? note:s? tags:s? created_ms:n started_ms:n finished_ms:n promise_seeds:i resume_command:s? version:i"
#define COLUMNS                                                                                                        \
    "number:i state:s score:n perf:n cost:n cost_s:n device_s:n env_steps:n on_front:b origin:s? seed:n attempt:n "    \
    "deaths:i losses:i "                                                                                               \
    "device:s? slot:s? cost_method:s? reason:s? created_ms:n started_ms:n finished_ms:n live_score:n live_s:n "        \
    "score_se:n eval_episodes:n eval_unfinished:n eval_s:n start_s:n program:s? vector_units:s? dropped:s? note:s? "   \
    "tags:s? expected:n expected_lo:n expected_hi:n n_seeds:n env:s? objective:n infeasible:s?"
#define EFFECT "{effect:n effect_sd:n sensitivity:n}"
#define RUNS "{n:i mean:n sd:n mean_lo:n mean_hi:n iqm:n iqm_lo:n iqm_hi:n low:n middle:n high:n min:n max:n}"
#define AXIS "{param:s scale:s value:* values:[*]}"

static const struct {
    const char *path, *form;
} forms[] = {
    {V1 "version", "{program:s version:s commit:s api:i store:s store_path:s store_ok:b store_error:s? data_version:i "
                   "control:b csrf:s now_ms:i}"},
    {V1 "openapi.json", "{openapi:s info:{title:s version:s description:s} paths:{*:{*:*}}}"},
    {V1 "studies", "{version:i store_error:s? studies:[{" SUMMARY "}]}"},
    {STUDY, "{" SUMMARY " space:{params:[{key:s scale:s}]} " REFERENCE " config:s}"},
    {STUDY "/trials", "{study:s version:i total:i offset:i limit:i next_offset:i? columns:[s] rows:[[*]]}"},
    {STUDY "/front", "{study:s version:i cost_unit:s direction:s knee_trial:i? best_trial:i? " REFERENCE
                     " model:s note:s? points:[{trial:i cost:n score:n " PROMISE " objective~:n}]}"},
    {STUDY "/insight",
     "{" OF_MODEL " score_noise_sd~:n score_note~:s? cost_note~:s? recommended~:{trial:i n_seeds:i " BELIEF
     "}? params~:[{key:s score:" EFFECT " cost:" EFFECT
     " leans_on:s? n_on:i n_front:i try:n}] front~:[{trial:i n_seeds:i " BELIEF "}]}"},
    {STUDY "/model/front", "{" OF_MODEL " points~:[{" BELIEF " params:{*:*}}]}"},
    {STUDY "/model/next", "{" OF_MODEL " why_none~:s? points~:[{" BELIEF " params:{*:*} origin:s why:s}]}"},
    {STUDY "/model/slice", "{" OF_MODEL " param~:s scale~:s at~:i value~:* points~:[{" BELIEF " value:*}]}"},
    {STUDY "/model/contour",
     "{" OF_MODEL " at~:i x~:" AXIS " y~:" AXIS " score~:[n] score_lo~:[n] score_hi~:[n] cost~:[n]}"},
    {STUDY "/pick", "{study:s version:i rule:s trial:i state:s score:n cost:n cost_s:n model:s " PROMISE
                    " promise:s cost_text:s supported:b note:s? params:{*:*} train_command:s? export_command:s}"},
    {STUDY "/briefing",
     "{study:s model:s gained:{since_ms:n done:i confirmed:i failed:i hypervolume_before:n hypervolume:n "
     "best_before:i? "
     "text:s?} take:{trial:i? text:s? command:s? confirm_command:s? n_seeds:i} failures:{trials:i reasons:[{reason:s "
     "trials:i first:i}] other:i rules:[s] ini:s?} next:{advice:s work_s:n ahead_s:n expected_share:n text:s "
     "command:s?}}"},
    {STUDY "/calibration",
     "{study:s inside:i left_out:i columns:[s] rows:[[n]] proposals~:{trials:i scores_inside:i costs_inside:i "
     "score_z:n cost_z:n score_width:n cost_width:n text:s}?}"},
    {STUDY "/lanes",
     "{study:s state:s now_ms:i left_s:n running:[{trial:i slot:s? device:s? origin:s? started_ms:n attempt:i "
     "env_steps:n wall_s:n score:n expected:n expected_lo:n expected_hi:n n_seeds:n left_s:n curve:[[n]]}] "
     "slots:[{slot:s? trials:i busy_s:n idle_s:n training_s:n}] nodes:[{name:s host:s device:s job:s? state:s slots:i "
     "running:i done:i started_ms:n beat_ms:n silent_s:n}]}"},
    {V1 "compare",
     "{metric:s direction:s cost_unit:s " REFERENCE " studies:[{study:s group:s seed:i trials:i cost_s:n hypervolume:n "
     "best_trial~:i best_score~:n best_lo~:n best_hi~:n best_seeds~:i front:[{trial:i cost:n score:n lo:n hi:n "
     "n_seeds:i}]}] attained:[{group:s cost:n by_quarter:n by_half:n by_three_quarters:n}] differences:[{key:s "
     "values:[s?]}]}"},
    {STUDY "/hypervolume", "{study:s version:i " REFERENCE " columns:[s] rows:[[n]]}"},
    {STUDY "/timeline", "{study:s version:i from_ms:n to_ms:n devices:[{device:s? columns:[s] rows:[[*]]}]}"},
    {TRIAL,
     "{study:s version:i trial:{" COLUMNS "} params:{*:*} belief:{" PROMISE
     "} config:[{key:s value:s? default:s? origin:s differs:b against~:s?}] against:i? train_command:s? metrics:[s] "
     "checkpoint:{path:s exists:b bytes:n}? can_play:b play_note:s? export_command:s}"},
    {TRIAL "/curves", "{study:s trial:i names:[s] curves:{*:{env_steps:[n] wall_s:[n] value:[n]}}}"},
    {TRIAL "/log", "{trial:i available:b bytes:i truncated:b note:s? text:s}"},
    {TRIAL "/seeds", "{study:s trial:i columns:[s] rows:[[*]] all:" RUNS " fresh:" RUNS "}"},
    {TRIAL "/leases", "{trial:i leases:[{*:*}]}"},
    {STUDY "/control", "{ok:b message:s}"},
};

static cJSON *parse(const char **at);

static cJSON *typed(const char *type)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "type", type);
    return json;
}

/* A number, or null, or an infinite one as text. */
static cJSON *number(void)
{
    cJSON *json = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(json, "oneOf"), *real = typed("number"),
          *text = typed("string"), *words = cJSON_AddArrayToObject(text, "enum");

    json_add_bool(real, "nullable", true);
    cJSON_AddItemToArray(words, cJSON_CreateString("inf"));
    cJSON_AddItemToArray(words, cJSON_CreateString("-inf"));
    cJSON_AddItemToArray(list, real);
    cJSON_AddItemToArray(list, text);
    return json;
}

/* After "{": members, and what ends them. */
static cJSON *object(const char **at)
{
    cJSON *json = typed("object"), *members = cJSON_CreateObject(), *needed = cJSON_CreateArray();

    while (**at != '}') {
        char name[48];
        size_t n = strcspn(*at, ":~");
        bool may_lack = (*at)[n] == '~';
        snprintf(name, sizeof name, "%.*s", (int)n, *at);
        *at += n + 1 + may_lack;
        if (strcmp(name, "*") == 0)
            json_add(json, "additionalProperties", parse(at));
        else
            json_add(members, name, parse(at));
        if (!may_lack && strcmp(name, "*") != 0)
            cJSON_AddItemToArray(needed, cJSON_CreateString(name));
        *at += strspn(*at, " ");
    }
    ++*at;
    json_add(json, "properties", members);
    if (cJSON_GetArraySize(needed) > 0)
        json_add(json, "required", needed);
    else
        cJSON_Delete(needed);
    return json;
}

static cJSON *parse(const char **at)
{
    cJSON *json = NULL;

    switch (*(*at)++) {
    case 's':
        json = typed("string");
        break;
    case 'i':
        json = typed("integer");
        break;
    case 'b':
        json = typed("boolean");
        break;
    case 'n':
        json = number();
        break;
    case '{':
        json = object(at);
        break;
    case '[':
        json = typed("array");
        json_add(json, "items", parse(at));
        ++*at; /* "]" */
        break;
    default: /* "*" */
        json = cJSON_CreateObject();
        break;
    }
    if (**at == '?') {
        json_add_bool(json, "nullable", true);
        ++*at;
    }
    return json;
}

cJSON *answer_schema(const char *path)
{
    for (size_t i = 0; i < COUNT(forms); i++)
        if (strcmp(forms[i].path, path) == 0) {
            const char *at = forms[i].form;
            return parse(&at);
        }
    return NULL;
}

cJSON *answer_schema_failure(void)
{
    const char *at = "{error:s hint:s?}";

    return parse(&at);
}
