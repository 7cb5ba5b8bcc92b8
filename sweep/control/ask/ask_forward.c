/* ask_forward.c - asks the controller, over the socket beside the store. */
#include "sweep/control/ask/ask_forward.h"

#include "store/store.h"
#include "sweep/control/ask/ask_request.h"
#include "sweep/control/socket/control_client.h"
#include "web/api/ask_form.h"

#define SHORT_WAIT_S 0.25 /* longer ones are for the client */

/* Without a controller: a study that has ended needs none. */
static enum status no_controller(const char *store_path, enum ask_verb verb, const char *name, cJSON **ret_answer,
                                 struct error *err)
{
    struct store *store = NULL;
    AT_END(study_free) struct study study = {0};
    struct error ignored = {0};
    bool ended = false;

    if (verb == ASK_ASK && store_open_reader(&store, store_path, &ignored) == ST_OK &&
        store_study_find(store, name, &study, &ignored) == ST_OK && study.state == STUDY_ENDED) {
        ended = true;
        *ret_answer = cJSON_CreateObject();
        json_add_str(*ret_answer, "state", "ended");
        cJSON_AddNullToObject(*ret_answer, "trial");
        json_add_f64(*ret_answer, "wait_s", 1);
        json_add_str(*ret_answer, "reason", study.end_text);
    }
    store_close(store);
    return ended ? ST_OK
                 : FAIL(err, ST_BUSY, "no controller of %s runs now; start `trawl daemon --store %s`, then try again",
                        store_path, store_path);
}

static enum status ask_once(const char *store_path, enum ask_verb verb, const char *study, int64_t trial,
                            const cJSON *body, cJSON **ret_answer, struct error *err)
{
    cJSON *request = cJSON_CreateObject(), *answer = NULL;
    struct error why = {0};
    bool reached = false;

    json_add_str(request, "command", ASK_COMMAND);
    json_add_str(request, "verb", ask_forms[verb].verb);
    json_add_str(request, "study", study);
    if (trial >= 0)
        json_add_i64(request, "trial", trial);
    json_add(request, "body", cJSON_Duplicate(body, true));
    enum status rc = control_call(store_path, request, &answer, &reached, &why);
    if (rc == ST_NOTFOUND && !reached)
        return no_controller(store_path, verb, study, ret_answer, err);
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", why.text);
    *ret_answer = cJSON_DetachItemFromObjectCaseSensitive(answer, "answer");
    cJSON_Delete(answer);
    return *ret_answer != NULL
               ? ST_OK
               : FAIL(err, ST_VERSION, "the controller of %s is of another version; restart it", store_path);
}

enum status ask_forward(const char *store_path, const char *verb, const char *study, int64_t trial, const cJSON *body,
                        cJSON **ret_answer, struct error *err)
{
    double until_s = clock_mono_s() + FORWARD_WAIT_S, wait_s;
    enum ask_verb v = ask_verb_find(verb);

    *ret_answer = NULL;
    if (v == ASK_VERBS)
        return FAIL(err, ST_USAGE, "there is no request '%.40s'", verb);
    for (;;) {
        TRY(ask_once(store_path, v, study, trial, body, ret_answer, err));
        bool waits = v == ASK_ASK && cJSON_IsNull(json_get(*ret_answer, "trial")) &&
                     json_get_f64(*ret_answer, "wait_s", &wait_s) && wait_s <= SHORT_WAIT_S;
        if (!waits || clock_mono_s() + wait_s > until_s)
            return ST_OK;
        cJSON_Delete(*ret_answer);
        *ret_answer = NULL;
        (void)usleep((useconds_t)(wait_s * 1e6));
    }
}
