/* ask_form.c - the requests of ask/tell: one row a field. docs/http-api.md explains them in order of use. */
#include "web/api/ask_form.h"

#define LEASE                                                                                                          \
    {                                                                                                                  \
        "lease", ASK_STR, true, "the token of ask"                                                                     \
    }
#define PARAMS                                                                                                         \
    {                                                                                                                  \
        "params", ASK_OBJECT, true, "values of searched parameters by name; one left out has its start value"          \
    }

const struct ask_form ask_forms[ASK_VERBS] = {
    [ASK_ASK] = {.verb = "ask",
                 .summary = "Takes the next trial, or the one that this client has already",
                 .body = {{"client", ASK_STR, true, "a name of its own for each trial that runs at a time"}},
                 .answer = {{"trial", ASK_INT, false, "its number; null: none now, see wait_s and state"},
                            {"wait_s", ASK_NUM, false, "without a trial: ask again after this time"},
                            {"state", ASK_STR, true, "of the study: running, paused or ended; after ended none comes"},
                            {"reason", ASK_STR, false, "why there is no trial"},
                            {"again", ASK_BOOL, false, "the client had this trial already"},
                            {"attempt", ASK_INT, false, "of the trial, from 1"},
                            {"seed", ASK_INT, false, "for the program's random numbers"},
                            {"env", ASK_STR, false, "the game, in a study of several (sweep.envs)"},
                            {"params", ASK_OBJECT, false,
                             "the searched parameters by name; one without effect is left out"},
                            {"argv", ASK_STRS, false, "the same as --name and value"},
                            {"config", ASK_OBJECT, false, "the whole config as sections"},
                            {"ini", ASK_STR, false, "the whole config as a file"},
                            {"metric", ASK_STR, false, "what score is"},
                            {"goal", ASK_STR, false, "maximize or minimize"},
                            {"needs", ASK_STRS, false, "metrics that the limits and the third objective need"},
                            {"cost_unit", ASK_STR, false, "s, steps or own"},
                            {"lease", ASK_OBJECT, false, "token, and the seconds in which to report"}}},
    [ASK_REPORT] = {.verb = "report",
                    .of_trial = true,
                    .summary = "Keeps the lease, stores metrics, and answers whether to stop",
                    .body = {LEASE,
                             {"step", ASK_INT, false, "steps so far; needed with metrics"},
                             {"cost", ASK_NUM, false, "so far, in cost_unit; left out: the time since ask"},
                             {"metrics", ASK_NUMS, false, "numbers by name; the study's metric is its curve"},
                             {"seq", ASK_INT, false, "rises with each report; one that does not rise is a repeat"}},
                    .answer = {{"stop", ASK_BOOL, true, "the program is to end and to give what it has"},
                               {"reason", ASK_STR, false, "why"},
                               {"repeat", ASK_BOOL, true, "seq was not new: nothing was stored"},
                               {"seconds", ASK_NUM, true, "in which to report again; 0: the lease has ended"}}},
    [ASK_TELL] = {.verb = "tell",
                  .of_trial = true,
                  .summary = "The result; the same again is answered as the first time",
                  .body = {LEASE,
                           {"state", ASK_STR, false, "done, failed, stopped, or queued: give it back (done)"},
                           {"score", ASK_NUM, false, "needed when done"},
                           {"cost", ASK_NUM, false, "of all, in cost_unit; left out: the time since ask"},
                           {"step", ASK_INT, false, "steps of all"},
                           {"reason", ASK_STR, false, "why it failed or was stopped"},
                           {"log", ASK_STR, false, "the last lines of the program"},
                           {"metrics", ASK_NUMS, false, "last numbers by name; needs step"}},
                  .answer = {{"trial", ASK_INT, true, "its number"},
                             {"counted", ASK_BOOL, true, "it is the trial's result"},
                             {"late", ASK_BOOL, true, "the lease had ended: the result is kept beside the trial"},
                             {"again", ASK_BOOL, true, "this result was there before"},
                             {"reason", ASK_STR, false, "why the result counts as failed, though it is done"},
                             {"warning", ASK_STR, false, "what is odd about a result that counts all the same"}}},
    [ASK_ENQUEUE] = {.verb = "enqueue",
                     .summary = "Tries these values next",
                     .body = {PARAMS},
                     .answer = {{"trial", ASK_INT, true, "its number"},
                                {"again", ASK_BOOL, true, "these values were enqueued before and still wait"}}},
    [ASK_ADD] = {.verb = "add",
                 .summary = "Adds a trial that was trained elsewhere; it teaches the models like any other",
                 .body = {PARAMS,
                          {"state", ASK_STR, false, "done, failed or stopped (done)"},
                          {"score", ASK_NUM, false, "needed when done"},
                          {"cost", ASK_NUM, false, "in cost_unit; needed when done"},
                          {"step", ASK_INT, false, "steps of all"},
                          {"seed", ASK_INT, false, "that it ran under (0)"},
                          {"env", ASK_STR, false, "the game; needed in a study of several"},
                          {"score_se", ASK_NUM, false, "standard error of the score; with eval_episodes"},
                          {"eval_episodes", ASK_INT, false, "that the score is the mean of"},
                          {"branch_of", ASK_INT, false, "the trial whose run it is a part of, which pays for it"},
                          {"reason", ASK_STR, false, "why it failed or was stopped"},
                          {"metrics", ASK_NUMS, false, "numbers by name that limits and third objective need"},
                          {"client", ASK_STR, false, "where it comes from"},
                          {"key", ASK_STR, false, "a name of its own: a request that is sent twice adds one trial"}},
                 .answer = {{"trial", ASK_INT, true, "its number"},
                            {"again", ASK_BOOL, true, "a trial of this key was there"}}},
};

enum ask_verb ask_verb_find(const char *verb)
{
    int i = 0;

    while (i < ASK_VERBS && (verb == NULL || strcmp(verb, ask_forms[i].verb) != 0))
        i++;
    return (enum ask_verb)i;
}

static bool all_numbers(const cJSON *object)
{
    const cJSON *item;
    double value;

    cJSON_ArrayForEach(item, object)
    {
        if (item->string == NULL || item->string[0] == '\0' || !json_get_f64(object, item->string, &value))
            return false;
    }
    return true;
}

/* What is wanted in its place; NULL: it fits. */
static const char *misfit(const cJSON *body, const struct ask_field *field, const cJSON *value)
{
    int64_t i;
    double number;

    switch (field->type) {
    case ASK_STR:
        return cJSON_IsString(value) ? NULL : "a text";
    case ASK_NUM:
        return json_get_f64(body, field->name, &number) && isfinite(number) ? NULL : "a finite number";
    case ASK_INT:
        return json_get_i64(body, field->name, &i) && i >= 0 ? NULL : "a whole number from 0";
    case ASK_BOOL:
        return cJSON_IsBool(value) ? NULL : "true or false";
    case ASK_NUMS:
        return cJSON_IsObject(value) && all_numbers(value) ? NULL : "an object of numbers";
    case ASK_OBJECT:
        return cJSON_IsObject(value) ? NULL : "an object";
    case ASK_STRS:
        break;
    }
    return "nothing";
}

static const struct ask_field *field_of(const struct ask_form *form, const char *name)
{
    for (size_t i = 0; i < ASK_FIELDS_MAX && form->body[i].name != NULL; i++)
        if (name != NULL && strcmp(form->body[i].name, name) == 0)
            return &form->body[i];
    return NULL;
}

enum status ask_body_check(enum ask_verb verb, const cJSON *body, struct error *err)
{
    const struct ask_form *form = &ask_forms[verb];
    const cJSON *item;

    if (!cJSON_IsObject(body))
        return FAIL(err, ST_USAGE, "%s: the body is not a JSON object", form->verb);
    cJSON_ArrayForEach(item, body)
    {
        const struct ask_field *field = field_of(form, item->string);
        if (field == NULL)
            return FAIL(err, ST_USAGE, "%s: there is no field '%.60s'; docs/http-api.md lists them", form->verb,
                        item->string);
        if (json_get(body, item->string) != item)
            return FAIL(err, ST_USAGE, "%s: the field '%.60s' is given twice", form->verb, item->string);
        const char *wanted = cJSON_IsNull(item) ? NULL : misfit(body, field, item);
        if (wanted != NULL)
            return FAIL(err, ST_USAGE, "%s: '%s' must be %s (%s)", form->verb, field->name, wanted, field->text);
    }
    for (size_t i = 0; i < ASK_FIELDS_MAX && form->body[i].name != NULL; i++) {
        const cJSON *value = json_get(body, form->body[i].name);
        if (form->body[i].required && (value == NULL || cJSON_IsNull(value)))
            return FAIL(err, ST_USAGE, "%s: '%s' is missing (%s)", form->verb, form->body[i].name, form->body[i].text);
    }
    return ST_OK;
}
