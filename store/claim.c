/* claim.c - nodes: programs that take trials of a store by themselves, wherever a connection to it reaches.
 *
 * Invariants: (1) a claim takes a trial from the queue and opens its lease in one transaction, so each attempt has one
 * node; (2) the lease of a node ends by the database's clock alone, in the transaction that compares it with until_ms:
 * a node that is slow and a lease that is kept at the last moment cannot cross; (3) whatever a node writes of a trial,
 * it writes with its open lease, or it is a late result (store_lease_finish_late). */
#include "store/store_priv.h"

#define FORGET_S 86400 /* nodes that were killed leave their row for a day */
#define STOOD_STILL_S 5 /* between two looks at silent nodes */
#define SPARED_MAX_S 60 /* of sparing_s: whoever is slow at every look would spare silent nodes for ever */

bool lease_is_of_node(const struct lease *lease)
{
    return strncmp(lease->token, NODE_TOKEN, strlen(NODE_TOKEN)) == 0;
}

/* The database's clock: the one clock of all nodes. */
static enum status clock_ms(struct store *store, int64_t *ret_now_ms, struct error *err)
{
    return store_sql_i64(store, SQL_NOW, NO_VALUES, "reading the database's clock", ret_now_ms, err);
}

/* Within a transaction. */
static enum status set_node(struct store *store, struct node *node, const char *what, struct error *err)
{
    int64_t now_ms = 0;

    TRY(clock_ms(store, &now_ms, err));
    TRY(store_sql_i64(store, SQL_NODE_SET,
                      VALUES(val_text(node->name), val_text(node->host), val_text(node->device), val_text(node->job),
                             val_i64(node->slots), val_i64(now_ms), val_text(node->meets)),
                      what, &node->started_ms, err));
    node->beat_ms = now_ms;
    return store_sql_run(store, SQL_NODE_TRIM, VALUES(val_i64(now_ms - FORGET_S * 1000LL)), what, err);
}

enum status store_node_beat(struct store *store, struct node *node, struct error *err)
{
    static const char what[] = "recording a node's sign of life";

    TRY(store_begin(store, what, err));
    return store_end(store, set_node(store, node, what, err), what, err);
}

enum status store_node_forget(struct store *store, const char *name, struct error *err)
{
    static const char what[] = "removing a node";

    TRY(store_begin(store, what, err));
    return store_end(store, store_sql_run(store, SQL_NODE_DELETE, VALUES(val_text(name)), what, err), what, err);
}

static void take_text(struct db_stmt *stmt, int at, char *buf, size_t size)
{
    const char *text = db_text(stmt, at);

    snprintf(buf, size, "%s", text != NULL ? text : "");
}

/* The node that a client is a slot of ("NAME/DEVICE", "NAME/DEVICE/LANE"); NULL: none of them. */
static struct node *node_of(struct node *nodes, size_t n, const char *client)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(nodes[i].name);
        if (strncmp(client, nodes[i].name, length) == 0 && client[length] == '/')
            return &nodes[i];
    }
    return NULL;
}

static enum status count_trials(struct store *store, int64_t study_id, struct node *nodes, size_t n, struct error *err)
{
    struct db_stmt *stmt;
    enum status rc = ST_OK;

    TRY(store_sql(store, SQL_NODE_TRIALS, VALUES(val_i64(study_id)), &stmt, err));
    while (store_sql_next(store, stmt, "counting the trials of nodes", &rc, err)) {
        const char *client = db_text(stmt, 0);
        struct node *node = client != NULL ? node_of(nodes, n, client) : NULL;
        if (node == NULL)
            continue;
        node->n_running += db_i64(stmt, 1);
        node->n_done += db_i64(stmt, 2);
    }
    return rc;
}

enum status store_node_list(struct store *store, int64_t study_id, struct node **ret_nodes, size_t *ret_n,
                            struct error *err)
{
    size_t cap = 0;
    int64_t now_ms = 0;
    struct db_stmt *stmt;
    enum status rc = ST_OK;

    *ret_nodes = NULL;
    *ret_n = 0;
    TRY(clock_ms(store, &now_ms, err));
    int64_t since_ms = now_ms - (study_id != 0 ? FORGET_S : NODE_SILENT_S) * 1000LL;
    TRY(store_sql(store, SQL_NODE_LIST, VALUES(val_i64(since_ms)), &stmt, err));
    while (store_sql_next(store, stmt, "listing the nodes", &rc, err)) {
        MEM_ROOM(*ret_nodes, *ret_n, cap);
        struct node *node = &(*ret_nodes)[(*ret_n)++];
        *node = (struct node){.slots = db_i64(stmt, 4), .started_ms = db_i64(stmt, 5), .beat_ms = db_i64(stmt, 6)};
        node->silent_s = (double)(now_ms - node->beat_ms) / 1e3;
        take_text(stmt, 0, node->name, sizeof node->name);
        take_text(stmt, 1, node->host, sizeof node->host);
        take_text(stmt, 2, node->device, sizeof node->device);
        take_text(stmt, 3, node->job, sizeof node->job);
        take_text(stmt, 7, node->meets, sizeof node->meets);
    }
    if (rc == ST_OK && study_id != 0)
        rc = count_trials(store, study_id, *ret_nodes, *ret_n, err);
    if (rc != ST_OK) {
        mem_free(*ret_nodes);
        *ret_nodes = NULL;
        *ret_n = 0;
    }
    return rc;
}

/* Within a transaction. */
static enum status claim(struct store *store, int64_t study_id, int64_t lease_ms, struct lease *lease,
                         struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    TRY(store_sql_row(store, SQL_TRIAL_QUEUED, VALUES(val_i64(study_id)), "looking for a queued trial", &stmt, &there,
                      err));
    if (there) {
        lease->trial_id = db_i64(stmt, 0);
        lease->number = db_i64(stmt, 1);
        lease->study_id = study_id;
    }
    db_reset(stmt);
    if (!there)
        return FAIL(err, ST_NOTFOUND, "%s: no trial is queued", store->path);
    TRY(clock_ms(store, &lease->given_ms, err));
    lease->until_ms = lease->given_ms + lease_ms;
    return store_lease_give_part(store, lease, false, err);
}

enum status store_lease_claim(struct store *store, int64_t study_id, int64_t lease_ms, struct lease *lease,
                              struct error *err)
{
    static const char what[] = "claiming a trial";

    if (!lease_is_of_node(lease))
        return FAIL(err, ST_INTERNAL, "%s: the token of a node's lease begins with " NODE_TOKEN, store->path);
    TRY(store_begin_synced(store, what, err));
    TRY(store_end(store, claim(store, study_id, lease_ms, lease, err), what, err));
    store->looked_s = 0; /* while it trains, a node does not look */
    return ST_OK;
}

/* Within a transaction. */
static enum status keep(struct store *store, int64_t lease_id, int64_t lease_ms, char *stop, const char *what,
                        struct error *err)
{
    int64_t now_ms = 0;
    struct db_stmt *stmt;
    bool there;

    TRY(clock_ms(store, &now_ms, err));
    TRY(store_lease_change(store, SQL_LEASE_KEEP, VALUES(val_i64(lease_id), val_i64(now_ms + lease_ms)), what, err));
    TRY(store_sql_row(store, SQL_LEASE_STOP_TEXT, VALUES(val_i64(lease_id)), what, &stmt, &there, err));
    take_text(stmt, 0, stop, ERROR_TEXT_MAX);
    db_reset(stmt);
    return ST_OK;
}

enum status store_lease_keep(struct store *store, int64_t lease_id, int64_t lease_ms,
                             const struct metric_report *report, char *stop, struct error *err)
{
    static const char what[] = "keeping a lease";

    stop[0] = '\0';
    TRY(store_begin(store, what, err));
    enum status rc = keep(store, lease_id, lease_ms, stop, what, err);
    if (rc == ST_OK && report != NULL)
        rc = store_report_part(store, report, err);
    return store_end(store, rc, what, err);
}

enum status store_lease_set_config(struct store *store, const struct lease *lease, const char *config,
                                   struct error *err)
{
    static const char what[] = "completing a trial's config";

    TRY(store_begin(store, what, err));
    enum status rc = store_trial_change(store, SQL_LEASE_CONFIG,
                                        VALUES(val_i64(lease->trial_id), val_text(config), val_i64(lease->id)),
                                        "configured by this node", what, err);
    return store_end(store, rc, what, err);
}

enum status store_lease_ask_stop(struct store *store, int64_t lease_id, const char *why, struct error *err)
{
    static const char what[] = "asking a node to end a trial";

    TRY(store_begin(store, what, err));
    enum status rc = store_lease_change(store, SQL_LEASE_STOP, VALUES(val_i64(lease_id), val_text(why)), what, err);
    return store_end(store, rc, what, err);
}

void store_leases_spare(struct store *store)
{
    store->spared_s = clock_boot_s() + NODE_SILENT_S;
}

/* To be called after the database has answered, since it is what may have been waited for. */
static bool are_spared(struct store *store)
{
    double now_s = clock_boot_s(), gap_s = store->looked_s > 0 ? now_s - store->looked_s : 0;

    if (gap_s > STOOD_STILL_S)
        store_leases_spare(store);
    store->looked_s = now_s;
    store->sparing_s += fmin(gap_s, STOOD_STILL_S);
    if (now_s < store->spared_s && store->sparing_s < SPARED_MAX_S)
        return true;
    store->sparing_s = store->spared_s = 0;
    return false;
}

static enum status expire(struct store *store, int64_t lease_id, int64_t now_ms, struct error *err)
{
    static const char what[] = "ending a node's lease";
    enum trial_state after;

    TRY(store_begin_synced(store, what, err));
    enum status rc = are_spared(store) ? FAIL(err, ST_EXISTS, "%s: the node could not report", store->path)
                                       : store_lease_change(store, SQL_LEASE_EXPIRE,
                                                            VALUES(val_i64(lease_id), val_i64(now_ms)), what, err);
    THEN(rc, store_lease_release(store, lease_id, LEASE_EXPIRED, &after, err));
    return store_end(store, rc, what, err);
}

enum status store_leases_expire(struct store *store, int64_t *ret_n, struct error *err)
{
    int64_t now_ms = 0;
    MEM_LOCAL int64_t *ids = NULL;
    size_t n = 0, cap = 0;
    struct db_stmt *stmt;
    enum status rc = ST_OK;

    *ret_n = 0;
    TRY(clock_ms(store, &now_ms, err));
    if (are_spared(store))
        return ST_OK;
    TRY(store_sql(store, SQL_LEASE_SILENT, VALUES(val_i64(now_ms)), &stmt, err));
    while (store_sql_next(store, stmt, "looking for silent nodes", &rc, err)) {
        MEM_ROOM(ids, n, cap);
        ids[n++] = db_i64(stmt, 0);
    }
    for (size_t i = 0; i < n && rc == ST_OK; i++) {
        struct error why = {0};
        rc = expire(store, ids[i], now_ms, &why);
        *ret_n += rc == ST_OK;
        if (rc == ST_EXISTS) /* kept, ended by another, or spared */
            rc = ST_OK;
        else if (rc != ST_OK)
            (void)FAIL(err, rc, "%s", why.text);
    }
    return rc;
}

enum status store_trial_heads(struct store *store, int64_t study_id, struct trial_head **ret_heads, size_t *ret_n,
                              struct error *err)
{
    size_t cap = 0;
    struct db_stmt *stmt;
    enum status rc = ST_OK;

    *ret_heads = NULL;
    *ret_n = 0;
    TRY(store_sql(store, SQL_TRIAL_HEADS, VALUES(val_i64(study_id)), &stmt, err));
    while (store_sql_next(store, stmt, "listing the trials that have not ended", &rc, err)) {
        const char *state = db_text(stmt, 2);
        MEM_ROOM(*ret_heads, *ret_n, cap);
        (*ret_heads)[(*ret_n)++] = (struct trial_head){.number = db_i64(stmt, 0),
                                                       .attempt = db_i64(stmt, 1),
                                                       .running = state != NULL && strcmp(state, "running") == 0};
    }
    if (rc != ST_OK) {
        mem_free(*ret_heads);
        *ret_heads = NULL;
        *ret_n = 0;
    }
    return rc;
}
