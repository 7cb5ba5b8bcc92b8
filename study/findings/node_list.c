/* node_list.c - one row for each node: where it is, what it has, when it was heard last. */
#include "study/findings/node_list.h"

#include "base/text/duration.h"
#include "store/store.h"

static const char *state_of(const struct node *node)
{
    return node->silent_s > NODE_SILENT_S ? "silent"
           : node->n_running > 0          ? "training"
           : node->slots > 0              ? "idle"
                                          : "starting";
}

enum status node_list_to_json(struct store *store, int64_t study_id, cJSON **ret_json)
{
    MEM_LOCAL struct node *nodes = NULL;
    size_t n = 0;

    TRY(store_node_list(store, study_id, &nodes, &n, NULL));
    *ret_json = cJSON_CreateArray();
    for (size_t i = 0; i < n; i++) {
        const struct node *node = &nodes[i];
        cJSON *row = cJSON_CreateObject();
        json_add_str(row, "name", node->name);
        json_add_str(row, "host", node->host);
        json_add_str(row, "device", node->device);
        json_add_str(row, "job", node->job[0] != '\0' ? node->job : NULL);
        json_add_str(row, "state", state_of(node));
        json_add_i64(row, "slots", node->slots);
        json_add_i64(row, "running", node->n_running);
        json_add_i64(row, "done", node->n_done);
        json_add_i64(row, "started_ms", node->started_ms);
        json_add_i64(row, "beat_ms", node->beat_ms);
        json_add_f64(row, "silent_s", node->silent_s);
        cJSON_AddItemToArray(*ret_json, row);
    }
    return ST_OK;
}

enum status node_list_print(struct store *store, int64_t study_id, struct error *err)
{
    MEM_LOCAL struct node *nodes = NULL;
    size_t n = 0;

    TRY(store_node_list(store, study_id, &nodes, &n, err));
    if (n > 0)
        printf("\n%-24s %-9s %5s %7s %5s %12s  %s\n", "node", "state", "slots", "running", "done", "heard before",
               "host, device");
    for (size_t i = 0; i < n; i++) {
        const struct node *node = &nodes[i];
        char heard[32];
        printf("%-24s %-9s %5lld %7lld %5lld %12s  %s, %s%s%s\n", node->name, state_of(node), (long long)node->slots,
               (long long)node->n_running, (long long)node->n_done, format_seconds(node->silent_s, heard), node->host,
               node->device[0] != '\0' ? node->device : "no device yet", node->job[0] != '\0' ? ", job " : "",
               node->job);
    }
    return ST_OK;
}
