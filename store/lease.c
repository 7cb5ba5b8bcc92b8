/* lease.c - leases: a client that trains elsewhere has one attempt of a trial until it reports the result or is silent
 * for too long.
 *
 *   open -> reported   its result is the trial's
 *     |---> expired    silent: the trial is queued again, after LEASES_OF_TRIAL of its leases lost
 *     '---> returned   given back, or recalled: the trial is queued again
 *   expired, returned: a result that comes now is kept in the lease and changes no trial
 *
 * Invariants: (1) a trial has at most one open lease, and is running while it has; (2) a change of a lease's state and
 * that of its trial are one transaction, with the states that both may come from in its WHERE; (3) a lease is never
 * removed, and its result is written once. When a client's lease ends is the controller's decision, by its own
 * clock: until_ms is for people. A node's lease ends by until_ms and the database's clock (claim.c). */
#include "store/store_priv.h"

static const char *const state_names[LEASE_STATES] = {"open", "reported", "expired", "returned"};

const char *lease_state_name(enum lease_state state)
{
    return (unsigned)state < LEASE_STATES ? state_names[state] : "unknown";
}

void lease_free(struct lease *lease)
{
    if (lease == NULL)
        return;
    mem_free(lease->result);
    mem_free(lease->branches);
    *lease = (struct lease){0};
}

void lease_list_free(struct lease *leases, size_t n)
{
    for (size_t i = 0; i < n; i++)
        lease_free(&leases[i]);
    mem_free(leases);
}

/* Columns: the trial's study and number, then lease.*. lease is overwritten; whole or empty afterwards. */
static enum status read_lease(struct store *store, struct db_stmt *stmt, struct lease *lease, struct error *err)
{
    const char *client = db_text(stmt, 5);
    const char *token = db_text(stmt, 6), *word = db_text(stmt, 7);
    size_t state = word_index(state_names, LEASE_STATES, word);
    char what[96];

    *lease = (struct lease){.study_id = db_i64(stmt, 0), .number = db_i64(stmt, 1)};
    if (store_row_sound(stmt) == STORE_DAMAGED || state == LEASE_STATES || client == NULL || token == NULL) {
        snprintf(what, sizeof what, "a lease of the trial with id %lld", (long long)db_i64(stmt, 3));
        return store_damaged(store, what, err);
    }
    lease->result = db_copy_text(stmt, 12);
    lease->branches = db_copy_text(stmt, 15);
    lease->id = db_i64(stmt, 2);
    lease->trial_id = db_i64(stmt, 3);
    lease->attempt = db_i64(stmt, 4);
    snprintf(lease->client, sizeof lease->client, "%s", client);
    snprintf(lease->token, sizeof lease->token, "%s", token);
    lease->state = (enum lease_state)state;
    lease->given_ms = db_i64(stmt, 8);
    lease->until_ms = db_i64(stmt, 9);
    lease->ended_ms = db_i64(stmt, 10); /* NULL reads as 0 */
    lease->seq = db_i64(stmt, 11);
    return ST_OK;
}

enum status store_lease_find(struct store *store, const char *token, struct lease *ret_lease, struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    *ret_lease = (struct lease){0};
    TRY(store_sql_row(store, SQL_LEASE_BY_TOKEN, VALUES(val_text(token)), "reading a lease", &stmt, &there, err));
    enum status rc = there ? read_lease(store, stmt, ret_lease, err)
                           : FAIL(err, ST_NOTFOUND, "%s: there is no such lease", store->path);
    db_reset(stmt);
    return rc;
}

static enum status list(struct store *store, enum store_sql sql, int64_t id, struct lease **ret_leases, size_t *ret_n,
                        struct error *err)
{
    size_t cap = 0;
    enum status rc = ST_OK;
    struct db_stmt *stmt;

    *ret_leases = NULL;
    *ret_n = 0;
    TRY(store_sql(store, sql, VALUES(val_i64(id)), &stmt, err));
    while (store_sql_next(store, stmt, "listing the leases", &rc, err)) {
        MEM_ROOM(*ret_leases, *ret_n, cap);
        rc = read_lease(store, stmt, &(*ret_leases)[*ret_n], err);
        *ret_n += rc == ST_OK;
    }
    if (rc != ST_OK) {
        lease_list_free(*ret_leases, *ret_n);
        *ret_leases = NULL;
        *ret_n = 0;
    }
    return rc;
}

enum status store_lease_list_open(struct store *store, int64_t study_id, struct lease **ret_leases, size_t *ret_n,
                                  struct error *err)
{
    return list(store, SQL_LEASE_OPEN, study_id, ret_leases, ret_n, err);
}

enum status store_lease_list(struct store *store, int64_t trial_id, struct lease **ret_leases, size_t *ret_n,
                             struct error *err)
{
    return list(store, SQL_LEASE_OF_TRIAL, trial_id, ret_leases, ret_n, err);
}

/* A part of a transaction, before the trial starts; fills id and attempt. ended_ms 0: it is open. */
static enum status insert(struct store *store, struct lease *lease, const char *result_json, struct error *err)
{
    static const char what[] = "recording a lease";
    struct db_stmt *stmt;
    bool there;

    TRY(store_sql_row(store, SQL_LEASE_INSERT,
                      VALUES(val_i64(lease->trial_id), val_text(lease->client), val_text(lease->token),
                             val_text(state_names[lease->state]), val_i64(lease->given_ms), val_i64(lease->until_ms),
                             lease->ended_ms != 0 ? val_i64(lease->ended_ms) : val_text(NULL), val_text(result_json)),
                      what, &stmt, &there, err));
    lease->id = db_i64(stmt, 0);
    lease->attempt = db_i64(stmt, 1);
    db_reset(stmt);
    if (!there)
        return FAIL(err, ST_EXISTS, "%s: the trial with id %lld is not in the queue", store->path,
                    (long long)lease->trial_id);
    return store_row_seal(store, SQL_LEASE_ROW, lease->id, err);
}

enum status store_lease_give_part(struct store *store, struct lease *lease, bool fresh, struct error *err)
{
    lease->state = LEASE_OPEN;
    lease->ended_ms = 0;
    lease->seq = -1;
    store_hint(store, STORE_HINT_RESULTS);
    TRY(insert(store, lease, NULL, err));
    return store_trial_start_part(store, lease->trial_id, lease->client, lease->client, fresh, err);
}

enum status store_lease_give(struct store *store, struct lease *lease, struct error *err)
{
    static const char what[] = "giving a lease";

    lease->given_ms = clock_utc_ms();
    TRY(store_begin_synced(store, what, err));
    enum status rc = store_lease_give_part(store, lease, true, err);
    return store_end(store, rc, what, err);
}

enum status store_lease_change(struct store *store, enum store_sql id, struct db_values values, const char *what,
                               struct error *err)
{
    int64_t lease_id = values.v[0].i64, n = 0;

    TRY(store_row_check(store, SQL_LEASE_ROW, lease_id, err));
    TRY(store_sql_change(store, id, values, what, &n, err));
    if (n == 0)
        return FAIL(err, ST_EXISTS, "%s: %s: the lease has ended, or has its result already", store->path, what);
    return store_row_seal(store, SQL_LEASE_ROW, lease_id, err);
}

enum status store_lease_extend(struct store *store, int64_t lease_id, int64_t until_ms, int64_t seq,
                               const struct metric_report *report, struct error *err)
{
    static const char what[] = "extending a lease";

    TRY(store_begin_late(store, what, err));
    enum status rc = store_lease_change(store, SQL_LEASE_EXTEND,
                                        VALUES(val_i64(lease_id), val_i64(until_ms), val_i64(seq)), what, err);
    if (rc == ST_OK && report != NULL)
        rc = store_report_part(store, report, err);
    return store_end(store, rc, what, err);
}

/* The trial of a lease. */
static enum status trial_of(struct store *store, int64_t lease_id, int64_t *ret_trial_id, struct error *err)
{
    struct db_stmt *stmt;
    bool there;

    TRY(store_sql_row(store, SQL_LEASE_ROW, VALUES(val_i64(lease_id)), "reading a lease", &stmt, &there, err));
    *ret_trial_id = db_i64(stmt, 1);
    db_reset(stmt);
    return there ? ST_OK : FAIL(err, ST_NOTFOUND, "%s has no lease with id %lld", store->path, (long long)lease_id);
}

enum status store_lease_finish(struct store *store, int64_t lease_id, const struct trial_result *result,
                               const char *result_json, const char *outbox_json, struct error *err)
{
    static const char what[] = "recording a client's result";
    int64_t trial_id = 0;

    TRY(trial_of(store, lease_id, &trial_id, err));
    TRY(store_begin_synced(store, what, err));
    enum status rc = store_lease_change(
        store, SQL_LEASE_FINISH, VALUES(val_i64(lease_id), val_text(result_json), val_i64(clock_utc_ms())), what, err);
    THEN(rc, store_trial_finish_part(store, trial_id, result, outbox_json, err));
    store_hint(store, STORE_HINT_RESULTS);
    return store_end(store, rc, what, err);
}

static enum status put_text(struct store *store, int64_t lease_id, enum store_sql sql, const char *json,
                            const char *what, struct error *err)
{
    TRY(store_begin_synced(store, what, err));
    enum status rc = store_lease_change(store, sql, VALUES(val_i64(lease_id), val_text(json)), what, err);
    store_hint(store, STORE_HINT_RESULTS);
    return store_end(store, rc, what, err);
}

enum status store_lease_finish_late(struct store *store, int64_t lease_id, const char *result_json, struct error *err)
{
    return put_text(store, lease_id, SQL_LEASE_LATE, result_json, "recording a late result", err);
}

enum status store_lease_put_branches(struct store *store, int64_t lease_id, const char *branches_json,
                                     struct error *err)
{
    return put_text(store, lease_id, SQL_LEASE_BRANCHES, branches_json, "recording branches", err);
}

enum status store_lease_release(struct store *store, int64_t lease_id, enum lease_state state,
                                enum trial_state *ret_trial_state, struct error *err)
{
    int64_t trial_id = 0, n = 0;

    TRY(trial_of(store, lease_id, &trial_id, err));
    *ret_trial_state = TRIAL_QUEUED;
    store_hint(store, STORE_HINT_RESULTS);
    if (state == LEASE_RETURNED)
        return store_trial_requeue_part(store, trial_id, REQUEUE_STOPPED, err);
    TRY(store_sql_i64(store, SQL_LEASE_EXPIRED, VALUES(val_i64(trial_id)), "counting leases", &n, err));
    if (n < LEASES_OF_TRIAL)
        return store_trial_requeue_part(store, trial_id, REQUEUE_LOST, err);
    *ret_trial_state = TRIAL_LOST;
    return store_trial_lose_part(store, trial_id, LEASE_LOST_REASON, err);
}

enum status store_lease_end(struct store *store, int64_t lease_id, enum lease_state state,
                            enum trial_state *ret_trial_state, struct error *err)
{
    static const char what[] = "ending a lease";
    enum status rc;

    if (state != LEASE_EXPIRED && state != LEASE_RETURNED)
        return FAIL(err, ST_INTERNAL, "%s: a lease does not end as %s", store->path, lease_state_name(state));
    TRY(store_begin_synced(store, what, err));
    rc =
        store_lease_change(store, SQL_LEASE_END,
                           VALUES(val_i64(lease_id), val_text(state_names[state]), val_i64(clock_utc_ms())), what, err);
    THEN(rc, store_lease_release(store, lease_id, state, ret_trial_state, err));
    return store_end(store, rc, what, err);
}

enum status store_trial_add(struct store *store, struct trial *trial, const struct trial_result *result,
                            const char *client, const char *key, const char *result_json, const char *outbox_json,
                            struct error *err)
{
    static const char what[] = "adding a result";
    struct lease lease = {.state = LEASE_REPORTED};
    struct trial made = *trial;
    enum status rc;

    rc = store_lease_find(store, key, &lease, NULL);
    lease_free(&lease);
    if (rc != ST_NOTFOUND)
        return rc != ST_OK ? FAIL(err, rc, "%s: %s: reading its key failed", store->path, what)
                           : FAIL(err, ST_EXISTS, "%s: %s: it already exists", store->path, what);
    TRY(store_begin_synced(store, what, err));
    rc = store_trial_create_part(store, &made, err);
    THEN(rc, store_trial_finish_part(store, made.id, result, outbox_json, err));
    if (rc == ST_OK) {
        lease = (struct lease){.trial_id = made.id, .state = LEASE_REPORTED, .given_ms = clock_utc_ms()};
        lease.until_ms = lease.ended_ms = lease.given_ms;
        snprintf(lease.client, sizeof lease.client, "%s", client);
        snprintf(lease.token, sizeof lease.token, "%s", key);
        rc = insert(store, &lease, result_json, err);
    }
    TRY(store_end(store, rc, what, err));
    *trial = made;
    return ST_OK;
}
