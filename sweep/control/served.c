/* served.c - which controller runs a study: its row has whether it should run, the controller of the store whether it
 * does. */
#include "sweep/control/served.h"

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"
#include "sweep/control/control_client.h"

#include <string.h>

#define PATIENCE_S 3 /* with a controller that is stopped */

void served_ask(const char *store_path, struct served *ret_served)
{
    cJSON *request, *answer = NULL;
    struct error ignored = {0};
    bool reached;
    int64_t pid;

    *ret_served = (struct served){.held = store_is_held(store_path, &pid)};
    if (!ret_served->held)
        return;
    request = cJSON_CreateObject();
    json_add_str(request, "command", "status");
    if (control_call_within(store_path, PATIENCE_S, request, &answer, &reached, &ignored) == ST_OK)
        ret_served->names = cJSON_DetachItemFromObjectCaseSensitive(answer, "studies");
    cJSON_Delete(answer);
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
    if (!served->held)
        return n_running > 0 ? "interrupted" : "idle";
    cJSON_ArrayForEach(item, served->names)
    {
        if (cJSON_IsString(item) && strcmp(item->valuestring, study->name) == 0)
            return "running";
    }
    return served->names != NULL ? "waiting" : "running"; /* a controller of another version, or one that is busy */
}
