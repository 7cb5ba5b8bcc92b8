/* served.c - which controller runs a study: its row has whether it should run, the controller of the store whether it
 * does. */
#include "sweep/control/served.h"
#include "sweep/control/socket/control_client.h"

#define PATIENCE_S 3 /* with a controller that is stopped */

/* In PostgreSQL the locks of studies are the answer; NULL: the server gives none. */
static cJSON *names_of_locks(const char *store_path)
{
    MEM_LOCAL struct held_study *held = NULL;
    AT_END(store_close_at) struct store *store = NULL;
    struct error ignored = {0};
    cJSON *names = NULL;
    size_t n = 0;

    if (store_open_reader(&store, store_path, &ignored) == ST_OK &&
        store_studies_held(store, true, &held, &n, &ignored) == ST_OK) {
        names = cJSON_CreateArray();
        for (size_t i = 0; i < n; i++)
            cJSON_AddItemToArray(names, cJSON_CreateString(held[i].name));
    }
    return names;
}

void served_ask(const char *store_path, struct served *ret_served)
{
    JSON_LOCAL cJSON *answer = NULL;
    struct error ignored = {0};
    bool reached;
    int64_t pid;

    *ret_served = (struct served){.held = store_is_held(store_path, NULL, &pid)};
    if (store_is_address(store_path)) {
        ret_served->names = names_of_locks(store_path);
        return;
    }
    if (!ret_served->held)
        return;
    cJSON *request = cJSON_CreateObject();
    json_add_str(request, "command", "status");
    if (control_call_within(store_path, PATIENCE_S, request, &answer, &reached, &ignored) == ST_OK)
        ret_served->names = cJSON_DetachItemFromObjectCaseSensitive(answer, "studies");
}

void served_free(struct served *served)
{
    cJSON_Delete(served->names);
    served->names = NULL;
}

const char *served_state(const struct served *served, const struct study *study, int64_t n_running)
{
    const cJSON *item;

    if (study->state != STUDY_RUNNING)
        return study_state_name(study->state);
    cJSON_ArrayForEach(item, served->names)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, study->name) == 0)
            return "running";
    }
    if (!served->held)
        return n_running > 0 ? "interrupted" : "idle";
    return served->names != NULL ? "waiting" : "running"; /* a controller of another version, or one that is busy */
}
