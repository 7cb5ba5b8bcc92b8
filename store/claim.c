/* claim.c - nodes: programs that take trials of a store by themselves, wherever a connection to it reaches.
 *
 * Invariants: (1) a claim takes a trial from the queue and opens its lease in one transaction, so each attempt has one
 * node; (2) the lease of a node ends by the database's clock alone, in the transaction that compares it with until_ms:
 * a node that is slow and a lease that is kept at the last moment cannot cross; (3) whatever a node writes of a trial,
 * it writes with its open lease, or it is a late result (store_lease_finish_late). */
#include "store/store_priv.h"

#include "base/mem.h"

#include <stdio.h>
#include <string.h>

#define FORGET_S 86400 /* nodes that were killed leave their row for a day */

bool lease_is_of_node(const struct lease *lease)
{
    return strncmp(lease->token, NODE_TOKEN, strlen(NODE_TOKEN)) == 0;
}

/* The database's clock: the one clock of all nodes. */
static enum status clock_ms(struct store *store, int64_t *ret_now_ms, struct error *err)
{
    struct db_stmt *stmt;
    int step;

    TRY(store_sql(store, SQL_NOW, &stmt, err));
    TRY(store_sql_step(store, stmt, &step, "reading the database's clock", err));
    *ret_now_ms = db_i64(stmt, 0);
    db_reset(stmt);
    return ST_OK;
}

/* Within a transaction. */
static enum status set_node(struct store *store, struct node *node, const char *what, struct error *err)
{
    int64_t now_ms = 0;
    struct db_stmt *stmt;
    int step;

    TRY(clock_ms(store, &now_ms, err));
    TRY(store_sql(store, SQL_NODE_SET, &stmt, err));
    db_bind_text(stmt, 1, node->name);
    db_bind_text(stmt, 2, node->host);
    db_bind_text(stmt, 3, node->device);
    db_bind_text(stmt, 4, node->job);
    db_bind_i64(stmt, 5, node->slots);
    db_bind_i64(stmt, 6, now_ms);
    db_bind_text(stmt, 7, node->meets);
    TRY(store_sql_step(store, stmt, &step, what, err));
    node->started_ms = db_i64(stmt, 0);
    node->beat_ms = now_ms;
    db_reset(stmt);
    TRY(store_sql(store, SQL_NODE_TRIM, &stmt, err));
    db_bind_i64(stmt, 1, now_ms - FORGET_S * 1000LL);
    return store_sql_run(store, stmt, what, err);
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
    struct db_stmt *stmt;
    enum status rc;

    TRY(store_begin(store, what, err));
    rc = store_sql(store, SQL_NODE_DELETE, &stmt, err);
    if (rc == ST_OK) {
        db_bind_text(stmt, 1, name);
        rc = store_sql_run(store, stmt, what, err);
    }
    return store_end(store, rc, what, err);
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
    enum status rc;
    int step;

    TRY(store_sql(store, SQL_NODE_TRIALS, &stmt, err));
    db_bind_i64(stmt, 1, study_id);
    while ((rc = store_sql_step(store, stmt, &step, "counting the trials of nodes", err)) == ST_OK && step == DB_ROW) {
        const char *client = db_text(stmt, 0);
        struct node *node = client != NULL ? node_of(nodes, n, client) : NULL;
        if (node == NULL)
            continue;
        node->n_running += db_i64(stmt, 1);
        node->n_done += db_i64(stmt, 2);
    }
    db_reset(stmt);
    return rc;
}

enum status store_node_list(struct store *store, int64_t study_id, struct node **ret_nodes, size_t *ret_n,
                            struct error *err)
{
    struct node *nodes = NULL;
    size_t n = 0, cap = 0;
    int64_t now_ms = 0;
    struct db_stmt *stmt;
    enum status rc;
    int step;

    *ret_nodes = NULL;
    *ret_n = 0;
    TRY(clock_ms(store, &now_ms, err));
    TRY(store_sql(store, SQL_NODE_LIST, &stmt, err));
    db_bind_i64(stmt, 1, now_ms - (study_id != 0 ? FORGET_S : NODE_SILENT_S) * 1000LL);
    while ((rc = store_sql_step(store, stmt, &step, "listing the nodes", err)) == ST_OK && step == DB_ROW) {
        MEM_ROOM(nodes, n, cap);
        struct node *node = &nodes[n++];
        *node = (struct node){.slots = db_i64(stmt, 4), .started_ms = db_i64(stmt, 5), .beat_ms = db_i64(stmt, 6)};
        node->silent_s = (double)(now_ms - node->beat_ms) / 1e3;
        take_text(stmt, 0, node->name, sizeof node->name);
        take_text(stmt, 1, node->host, sizeof node->host);
        take_text(stmt, 2, node->device, sizeof node->device);
        take_text(stmt, 3, node->job, sizeof node->job);
        take_text(stmt, 7, node->meets, sizeof node->meets);
    }
    db_reset(stmt);
    if (rc == ST_OK && study_id != 0)
        rc = count_trials(store, study_id, nodes, n, err);
    if (rc != ST_OK) {
        mem_free(nodes);
        return rc;
    }
    *ret_nodes = nodes;
    *ret_n = n;
    return ST_OK;
}

/* Within a transaction. */
static enum status claim(struct store *store, int64_t study_id, int64_t lease_ms, struct lease *lease,
                         struct error *err)
{
    struct db_stmt *stmt;
    int step;

    TRY(store_sql(store, SQL_TRIAL_QUEUED, &stmt, err));
    db_bind_i64(stmt, 1, study_id);
    TRY(store_sql_step(store, stmt, &step, "looking for a queued trial", err));
    if (step == DB_ROW) {
        lease->trial_id = db_i64(stmt, 0);
        lease->number = db_i64(stmt, 1);
        lease->study_id = study_id;
    }
    db_reset(stmt);
    if (step != DB_ROW)
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
    return store_end(store, claim(store, study_id, lease_ms, lease, err), what, err);
}

/* Within a transaction. */
static enum status keep(struct store *store, int64_t lease_id, int64_t lease_ms, char *stop, const char *what,
                        struct error *err)
{
    int64_t now_ms = 0;
    struct db_stmt *stmt;
    int step;

    TRY(clock_ms(store, &now_ms, err));
    TRY(store_sql(store, SQL_LEASE_KEEP, &stmt, err));
    db_bind_i64(stmt, 1, lease_id);
    db_bind_i64(stmt, 2, now_ms + lease_ms);
    TRY(store_lease_change(store, stmt, lease_id, what, err));
    TRY(store_sql(store, SQL_LEASE_STOP_TEXT, &stmt, err));
    db_bind_i64(stmt, 1, lease_id);
    TRY(store_sql_step(store, stmt, &step, what, err));
    take_text(stmt, 0, stop, ERROR_TEXT_MAX);
    db_reset(stmt);
    return ST_OK;
}

enum status store_lease_keep(struct store *store, int64_t lease_id, int64_t lease_ms,
                             const struct metric_report *report, char *stop, struct error *err)
{
    static const char what[] = "keeping a lease";
    enum status rc;

    stop[0] = '\0';
    TRY(store_begin(store, what, err));
    rc = keep(store, lease_id, lease_ms, stop, what, err);
    if (rc == ST_OK && report != NULL)
        rc = store_report_part(store, report, err);
    return store_end(store, rc, what, err);
}

enum status store_lease_set_config(struct store *store, const struct lease *lease, const char *config,
                                   struct error *err)
{
    static const char what[] = "completing a trial's config";
    struct db_stmt *stmt;
    enum status rc;

    TRY(store_begin(store, what, err));
    rc = store_sql(store, SQL_LEASE_CONFIG, &stmt, err);
    if (rc == ST_OK) {
        db_bind_i64(stmt, 1, lease->trial_id);
        db_bind_text(stmt, 2, config);
        db_bind_i64(stmt, 3, lease->id);
        rc = store_trial_change(store, stmt, lease->trial_id, "configured by this node", what, err);
    }
    return store_end(store, rc, what, err);
}

enum status store_lease_ask_stop(struct store *store, int64_t lease_id, const char *why, struct error *err)
{
    static const char what[] = "asking a node to end a trial";
    struct db_stmt *stmt;
    enum status rc;

    TRY(store_begin(store, what, err));
    rc = store_sql(store, SQL_LEASE_STOP, &stmt, err);
    if (rc == ST_OK) {
        db_bind_i64(stmt, 1, lease_id);
        db_bind_text(stmt, 2, why);
        rc = store_lease_change(store, stmt, lease_id, what, err);
    }
    return store_end(store, rc, what, err);
}

static enum status expire(struct store *store, int64_t lease_id, int64_t now_ms, struct error *err)
{
    static const char what[] = "ending a node's lease";
    enum trial_state after;
    struct db_stmt *stmt;
    enum status rc;

    TRY(store_begin_synced(store, what, err));
    rc = store_sql(store, SQL_LEASE_EXPIRE, &stmt, err);
    if (rc == ST_OK) {
        db_bind_i64(stmt, 1, lease_id);
        db_bind_i64(stmt, 2, now_ms);
        rc = store_lease_change(store, stmt, lease_id, what, err);
    }
    if (rc == ST_OK)
        rc = store_lease_release(store, lease_id, LEASE_EXPIRED, &after, err);
    return store_end(store, rc, what, err);
}

enum status store_leases_expire(struct store *store, int64_t *ret_n, struct error *err)
{
    int64_t now_ms = 0, *ids = NULL;
    size_t n = 0, cap = 0;
    struct db_stmt *stmt;
    enum status rc;
    int step;

    *ret_n = 0;
    TRY(clock_ms(store, &now_ms, err));
    TRY(store_sql(store, SQL_LEASE_SILENT, &stmt, err));
    db_bind_i64(stmt, 1, now_ms);
    while ((rc = store_sql_step(store, stmt, &step, "looking for silent nodes", err)) == ST_OK && step == DB_ROW) {
        MEM_ROOM(ids, n, cap);
        ids[n++] = db_i64(stmt, 0);
    }
    db_reset(stmt);
    for (size_t i = 0; i < n && rc == ST_OK; i++) {
        struct error why = {0};
        rc = expire(store, ids[i], now_ms, &why);
        *ret_n += rc == ST_OK;
        if (rc == ST_EXISTS) /* kept, or ended by another */
            rc = ST_OK;
        else if (rc != ST_OK)
            (void)FAIL(err, rc, "%s", why.text);
    }
    mem_free(ids);
    return rc;
}

enum status store_trial_heads(struct store *store, int64_t study_id, struct trial_head **ret_heads, size_t *ret_n,
                              struct error *err)
{
    struct trial_head *heads = NULL;
    size_t n = 0, cap = 0;
    struct db_stmt *stmt;
    enum status rc;
    int step;

    *ret_heads = NULL;
    *ret_n = 0;
    TRY(store_sql(store, SQL_TRIAL_HEADS, &stmt, err));
    db_bind_i64(stmt, 1, study_id);
    while ((rc = store_sql_step(store, stmt, &step, "listing the trials that have not ended", err)) == ST_OK &&
           step == DB_ROW) {
        const char *state = db_text(stmt, 2);
        MEM_ROOM(heads, n, cap);
        heads[n++] = (struct trial_head){.number = db_i64(stmt, 0),
                                         .attempt = db_i64(stmt, 1),
                                         .running = state != NULL && strcmp(state, "running") == 0};
    }
    db_reset(stmt);
    if (rc != ST_OK) {
        mem_free(heads);
        return rc;
    }
    *ret_heads = heads;
    *ret_n = n;
    return ST_OK;
}
