/* ask_store.c - trials, reports and results, straight in a store.
 *
 * Invariants: (1) of a trial nothing is written but with its open lease, or as a late result; (2) every call may come
 * again: a result that was stored is acknowledged; (3) after a failure of the store the connection is made again, and
 * what it knew is read again. */
#include "sweep/agent/ask_store.h"

#include "base/rng.h"
#include "store/store.h"
#include "study/setup/setup.h"
#include "sweep/agent/store_study.h"
#include "sweep/controller/trial/checkpoints.h"
#include "sweep/launch/device_class.h"
#include "sweep/controller/trial/reports.h"
#include "sweep/controller/leases.h"
#include "sweep/controller/trial/run_message.h"
#include "sweep/controller/trial/track_rows.h"
#include "sweep/launch/device_spec.h"

#define WAIT_S 0.3 /* until a node without a trial looks again */
#define HINT_WAIT_S 1 /* the same where a store hints at a new trial */
#define LOOK_S 2 /* until it looks though nothing seems to have changed */
#define MISS_S                                                                                                         \
    0.1 /* how long a hint waits after one that came to nothing; twice as long after each more, up to LOOK_S */
#define LOCKED_S 2 /* wait for another program's lock on the store, until the call fails and comes again */

struct ask_store {
    const char *path;
    struct store *store; /* NULL: not connected */
    bool lost; /* a connection failed: other nodes' too, perhaps */
    struct store_studies studies;
    struct lease claimed; /* a trial that is ours, and whose answer is not made yet; id 0: none */
    int64_t version; /* of the store when no trial was found last; -1: none */
    bool listens; /* for hints: while it has no trial */
    bool hinted; /* the store has hinted at a new trial since the last look at it */
    double asked_s; /* the last look */
    double miss_s; /* until hints count again after it: many idle clients wake for each trial, and one gets it */
    struct rng rng;
    char device_class[DEVICE_CLASS_MAX]; /* of the worker that asked last */
};

struct ask_store *ask_store_create(const char *path)
{
    struct ask_store *c = mem_alloc(sizeof *c);

    c->path = path;
    c->version = -1;
    c->rng = rng_seed((uint64_t)clock_mono_ns() ^ (uint64_t)(uintptr_t)c);
    return c;
}

static void disconnect(struct ask_store *c)
{
    store_studies_free(&c->studies);
    store_close(c->store);
    c->store = NULL;
    c->lost = true;
    c->listens = false;
    c->version = -1;
}

void ask_store_destroy(struct ask_store *c)
{
    if (c == NULL)
        return;
    disconnect(c);
    mem_free(c);
}

static const char *text_of(const cJSON *json, const char *key)
{
    const char *text = json_get_str(json, key);

    return text != NULL ? text : "";
}

static int64_t lease_ms(const struct store_study *s)
{
    return (int64_t)(1000 * s->view.setup->sweep.lease_s);
}

/* ---- ask ---- */

/* The trial is ours: from its checkpoint, or from its beginning. */
static enum status prepare(struct ask_store *c, struct store_study *s, const struct lease *lease, const cJSON *device,
                           struct trial *t, char *checkpoint, bool *ret_resume, struct error *err)
{
    char *config = NULL;

    TRY(store_trial_find(c->store, s->view.study.id, lease->number, t, err));
    checkpoint_file(c->path, s->view.study.name, t->number, checkpoint);
    TRY(checkpoint_to_resume(c->store, s->view.study.name, t, t->attempt - 1, ret_resume, err));
    if (*ret_resume)
        return ST_OK;
    if (t->attempt > 1)
        TRY(store_trial_clear(c->store, t->id, err));
    int64_t threads = json_i64_or(device, "threads", 0);
    const struct run_device on = {text_of(device, "kind"), text_of(device, "vector_units"), threads};
    TRY(run_config_settle(&s->view, t, &on, &config, err));
    enum status rc = config != NULL ? store_lease_set_config(c->store, lease, config, err) : ST_OK;
    if (config != NULL) {
        mem_free(t->config);
        t->config = config;
    }
    return rc;
}

static enum status claim(struct ask_store *c, struct store_study *s, const cJSON *body, struct error *err)
{
    struct lease lease = {0};

    snprintf(lease.client, sizeof lease.client, "%s", text_of(body, "client"));
    TRY(lease_make_token(&lease, NODE_TOKEN, err));
    TRY(store_lease_claim(c->store, s->view.study.id, lease_ms(s), &lease, err));
    c->claimed = lease;
    return ST_OK;
}

/* The answer for the claimed trial. A call that fails here comes again: the trial is still ours. */
static enum status answer_claim(struct ask_store *c, const cJSON *body, cJSON **ret_answer, struct error *err)
{
    const cJSON *device = json_get(body, "device");
    const struct lease lease = c->claimed;
    struct store_study *s = NULL;
    AT_END(trial_free) struct trial trial = {0};
    char checkpoint[PATH_MAX], stop[ERROR_TEXT_MAX];
    bool resume = false;
    enum status rc = store_studies_find(&c->studies, c->store, lease.study_id, &s, err);

    THEN(rc, store_lease_keep(c->store, lease.id, lease_ms(s), NULL, stop, err));
    THEN(rc, prepare(c, s, &lease, device, &trial, checkpoint, &resume, err));
    THEN(rc, track_rows_start(s->rows, &trial, !resume && trial.attempt > 1, err));
    if (rc == ST_OK) {
        cJSON *answer = cJSON_CreateObject(), *right = cJSON_AddObjectToObject(answer, "lease");
        json_add_i64(answer, "trial", trial.number);
        json_add_i64(answer, "attempt", trial.attempt);
        json_add_i64(answer, "id", trial.id);
        json_add_str(answer, "study", s->view.study.name);
        json_add_str(right, "token", lease.token);
        json_add_f64(right, "seconds", s->view.setup->sweep.lease_s);
        json_add_f64(answer, "hang_s", s->view.setup->sweep.hang_timeout_s);
        json_add(answer, "run", run_message(&s->view, &trial, c->path, checkpoint, resume));
        *ret_answer = answer;
    }
    if (rc == ST_OK || rc == ST_EXISTS || rc == ST_NOTFOUND) /* answered, or it was taken away */
        c->claimed = (struct lease){0};
    return rc;
}

/* Where the store hints at new trials it waits here. */
static cJSON *wait_answer(struct ask_store *c)
{
    cJSON *answer = cJSON_CreateObject();
    bool hints = store_hint_fd(c->store) >= 0;

    if (hints && !c->hinted)
        c->hinted = store_hint_wait(c->store, STORE_HINT_TRIALS, HINT_WAIT_S);
    json_add_str(answer, "state", "running");
    json_add_f64(answer, "wait_s",
                 c->hinted ? fmax(c->asked_s + c->miss_s - clock_mono_s(), 0.01)
                 : hints   ? 0.01
                           : WAIT_S);
    return answer;
}

static enum status ask(struct ask_store *c, const cJSON *body, cJSON **ret_answer, struct error *err)
{
    int64_t version = 0, n_expired;
    double now_s = clock_mono_s();
    const cJSON *device = json_get(body, "device");
    struct store_study *order[STORE_STUDIES_MAX];
    struct device_spec spec = {0};
    size_t n = 0;

    snprintf(spec.name, sizeof spec.name, "%s", text_of(device, "spec"));
    snprintf(spec.label, sizeof spec.label, "%s", spec.name);
    int64_t hosts = json_i64_or(device, "hosts", 0);
    spec.hosts = (int)hosts;
    snprintf(c->device_class, sizeof c->device_class, "%s", text_of(device, "class"));
    if (c->claimed.id != 0)
        return answer_claim(c, body, ret_answer, err);
    if (!c->listens)
        TRY(store_listen(c->store, STORE_HINT_TRIALS, err));
    c->listens = true;
    c->hinted = store_hint_take(c->store, STORE_HINT_TRIALS) || c->hinted;
    bool news = c->hinted && now_s - c->asked_s >= c->miss_s;
    if (store_hint_fd(c->store) < 0) {
        TRY(store_data_version(c->store, &version, err));
        news = version != c->version;
    }
    if (news || now_s - c->asked_s > LOOK_S) { /* the hint may fail: now and then it looks anyway */
        c->asked_s = now_s;
        c->miss_s = c->hinted ? fmin(2 * c->miss_s + MISS_S * rng_f64(&c->rng), LOOK_S) : 0;
        c->hinted = false;
        TRY(store_leases_expire(c->store, &n_expired, err));
        TRY(store_studies_order(&c->studies, c->store, &spec, c->device_class, order, &n, err));
        for (size_t i = 0; i < n; i++) {
            struct error none = {0};
            enum status rc = claim(c, order[i], body, &none);
            if (rc == ST_OK) {
                c->miss_s = 0;
                c->listens = false;
                store_unlisten(c->store);
                return answer_claim(c, body, ret_answer, err);
            }
            if (rc != ST_NOTFOUND)
                return FAIL(err, rc, "%s", none.text);
        }
        c->version = version;
    }
    *ret_answer = wait_answer(c);
    return ST_OK;
}

/* ---- report ---- */

/* The open lease of the body, and its study. */
static enum status find_lease(struct ask_store *c, const cJSON *body, struct lease *lease, struct store_study **ret_s,
                              struct error *err)
{
    TRY(store_lease_find(c->store, text_of(body, "lease"), lease, err));
    return store_studies_find(&c->studies, c->store, lease->study_id, ret_s, err);
}

static enum status keep_metrics(struct ask_store *c, struct store_study *s, const struct lease *lease,
                                const cJSON *message, char *stop, struct error *err)
{
    double factor = device_costs_scale(s->view.setup->sweep.device_costs, c->device_class);
    struct metric_report report;

    if (!report_parse(message, lease->trial_id, factor, &report))
        return store_lease_keep(c->store, lease->id, lease_ms(s), NULL, stop, err);
    MEM_LOCAL char *row = track_rows_metrics(s->rows, &report);
    report.outbox_json = row;
    enum status rc = store_lease_keep(c->store, lease->id, lease_ms(s), &report, stop, err);
    mem_free((void *)report.points);
    return rc;
}

/* Those that a message has. */
static enum status put_branches(struct ask_store *c, const struct lease *lease, const cJSON *message, struct error *err)
{
    const cJSON *branches = json_get(message, "branches");

    if (branches == NULL)
        return ST_OK;
    MEM_LOCAL char *text = json_print(branches, false);
    return store_lease_put_branches(c->store, lease->id, text, err);
}

static enum status report(struct ask_store *c, const cJSON *body, cJSON **ret_answer, struct error *err)
{
    const cJSON *message = json_get(body, "message");
    const char *type = text_of(message, "type"), *path = json_get_str(message, "path");
    char stop[ERROR_TEXT_MAX] = "";
    struct store_study *s = NULL;
    struct lease lease = {0};
    int64_t env_steps = 0;
    enum status rc = find_lease(c, body, &lease, &s, err);

    if (rc == ST_OK && strcmp(type, "metrics") == 0)
        rc = keep_metrics(c, s, &lease, message, stop, err);
    else if (rc == ST_OK)
        rc = store_lease_keep(c->store, lease.id, lease_ms(s), NULL, stop, err);
    if (rc == ST_OK && strcmp(type, "checkpoint") == 0 && path != NULL &&
        json_get_i64(message, "env_steps", &env_steps))
        rc = store_checkpoint_add(c->store, lease.trial_id, env_steps, path, err);
    if (rc == ST_OK && strcmp(type, "again") == 0) {
        log_warn("%s: trial %lld begins again: %s", s->view.study.name, (long long)lease.number,
                 text_of(message, "reason"));
        rc = store_trial_clear(c->store, lease.trial_id, err);
    }
    THEN(rc, put_branches(c, &lease, message, err));
    lease_free(&lease);
    if (rc != ST_OK)
        return rc;
    *ret_answer = cJSON_CreateObject();
    json_add_bool(*ret_answer, "stop", stop[0] != '\0');
    if (stop[0] != '\0')
        json_add_str(*ret_answer, "reason", stop);
    return ST_OK;
}

/* ---- results ---- */

/* The trial goes back into the queue: nothing of it is a result. */
static enum status give_back(struct ask_store *c, struct store_study *s, const struct lease *lease, bool lost,
                             struct error *err)
{
    enum trial_state after;

    TRY(store_lease_end(c->store, lease->id, lost ? LEASE_EXPIRED : LEASE_RETURNED, &after, err));
    return after == TRIAL_QUEUED ? track_rows_pause(s->rows, lease->trial_id, 0, err) : ST_OK;
}

static enum status finish_in_time(struct ask_store *c, struct store_study *s, const struct lease *lease,
                                  const cJSON *message, struct error *err)
{
    MEM_LOCAL struct run_result *run = mem_alloc(sizeof *run);
    char class[DEVICE_CLASS_MAX];
    MEM_LOCAL char *text = json_print(message, false);

    device_class_of(text_of(message, "device"), class);
    run_result_read(run, message, s->view.study.metric, device_costs_scale(s->view.setup->sweep.device_costs, class));
    if (run->result.state == TRIAL_STOPPED)
        snprintf(run->reason, sizeof run->reason, "%s", text_of(message, "reason"));
    enum status rc = run_result_settle(run, &s->view, c->store, lease->trial_id, message, err);
    if (rc == ST_OK) {
        const struct trial_result *r = run_result_texts(run);
        rc = store_lease_finish(c->store, lease->id, r, text, track_rows_result(s->rows, r), err);
    }
    mem_free(run->outcomes);
    return rc;
}

/* The lease has ended: by this result, which comes again, or before it. */
static enum status finish_late(struct ask_store *c, const cJSON *message, struct lease *lease, bool *ret_late,
                               struct error *err)
{
    char token[LEASE_TOKEN_MAX];

    snprintf(token, sizeof token, "%s", lease->token);
    lease_free(lease);
    TRY(store_lease_find(c->store, token, lease, err));
    if (lease->state == LEASE_REPORTED)
        return ST_OK;
    *ret_late = true;
    if (lease->result != NULL || message == NULL)
        return ST_OK;
    MEM_LOCAL char *text = json_print(message, false);
    return store_lease_finish_late(c->store, lease->id, text, err);
}

static enum status finish(struct ask_store *c, const cJSON *body, cJSON **ret_answer, struct error *err)
{
    const cJSON *message = json_get(body, "message");
    const char *state = json_get_str(body, "state");
    struct store_study *s = NULL;
    struct lease lease = {0};
    struct error why = {0};
    bool late = false;
    enum status rc = find_lease(c, body, &lease, &s, err);

    if (rc == ST_OK && cJSON_IsTrue(json_get(message, "other_game")))
        store_studies_leave(&c->studies, s->view.study.id, s->view.study.name, text_of(message, "reason"));
    if (rc == ST_OK) {
        rc = state != NULL ? give_back(c, s, &lease, strcmp(state, "lost") == 0, &why)
                           : put_branches(c, &lease, message, &why);
        if (rc == ST_OK && state == NULL)
            rc = finish_in_time(c, s, &lease, message, &why);
        if (rc == ST_EXISTS)
            rc = finish_late(c, state == NULL ? message : NULL, &lease, &late, err);
        else if (rc != ST_OK)
            rc = FAIL(err, rc, "%s", why.text);
    }
    lease_free(&lease);
    if (rc != ST_OK)
        return rc;
    *ret_answer = cJSON_CreateObject();
    json_add_bool(*ret_answer, "late", late && state == NULL);
    return ST_OK;
}

/* ---- a call ---- */

/* While another program has the store locked: the trial runs on meanwhile, and the call comes again. */
static bool wait_a_little(void *ctx, const char *path, double waited_s)
{
    (void)ctx;
    (void)path;
    usleep(5000);
    return waited_s < LOCKED_S;
}

static enum status call(struct ask_store *c, const char *verb, const cJSON *body, cJSON **ret_answer, struct error *err)
{
    if (c->store == NULL) {
        TRY(store_open_second(&c->store, c->path, err));
        store_on_locked(c->store, wait_a_little, NULL);
        if (c->lost)
            store_leases_spare(c->store);
    }
    return strcmp(verb, "ask") == 0      ? ask(c, body, ret_answer, err)
           : strcmp(verb, "report") == 0 ? report(c, body, ret_answer, err)
                                         : finish(c, body, ret_answer, err);
}

enum ask_outcome ask_store_call(struct ask_store *c, const char *verb, const cJSON *body, cJSON **ret_answer,
                                char *text)
{
    struct error why = {0};
    enum status rc = call(c, verb, body, ret_answer, &why);

    if (rc == ST_OK)
        return ASK_DONE;
    memcpy(text, why.text, ERROR_TEXT_MAX);
    /* no such lease, or one that has ended: another has the trial. A result that cannot be stored at all is kept for a
     * person */
    bool ended = (rc == ST_EXISTS || rc == ST_NOTFOUND) && strcmp(verb, "ask") != 0;
    if (!ended)
        disconnect(c);
    return ended || rc == ST_VERSION || rc == ST_USAGE || rc == ST_CORRUPT ? ASK_REFUSED : ASK_AGAIN;
}
