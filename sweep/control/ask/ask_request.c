/* ask_request.c - ask, report, tell, enqueue and add in the controller: JSON in, the leases' calls, JSON out.
 * Invariant: whatever comes from a socket is checked before anything changes. */
#include "sweep/control/ask/ask_request.h"

#include "study/setup/setup.h"
#include "sweep/control/ask/ask_points.h"
#include "sweep/control/ask/ask_trial.h"
#include "sweep/controller/trial/reports.h"
#include "sweep/controller/sched_study.h"
#include "sweep/proposals/proposer.h"
#include "web/api/ask_form.h"

#define WAIT_PROPOSAL_S 0.02
#define WAIT_S 1.0 /* for a trial that others give back, or a study that continues */
#define WAIT_PAUSED_S 5.0

struct ask { /* one request */
    struct store *store;
    struct scheduler *sched;
    bool waiting; /* studies of the store wait their turn */
    enum ask_verb verb;
    const char *name; /* of the study */
    int64_t number; /* of the trial; -1 */
    const cJSON *body;
    struct sched_study *ss; /* NULL: the controller does not run this study */
    struct study study; /* its row, only without ss; owned */
    struct lease lease; /* of report and tell; owned */
    cJSON *out;
};

/* -- ask -- */

static enum status check_client(const char *client, struct error *err)
{
    size_t n = strlen(client);

    for (size_t i = 0; i < n; i++)
        if ((unsigned char)client[i] < ' ' || client[i] == 0x7f)
            return FAIL(err, ST_USAGE, "ask: the client's name holds a control character; use letters and digits");
    if (n == 0 || n >= LEASE_CLIENT_MAX)
        return FAIL(err, ST_USAGE, "ask: the client's name has %zu bytes; 1 to %d are allowed", n,
                    LEASE_CLIENT_MAX - 1);
    return ST_OK;
}

static void put_none(cJSON *out, const char *state, double wait_s, const char *reason)
{
    json_add_str(out, "state", state);
    cJSON_AddNullToObject(out, "trial");
    json_add_f64(out, "wait_s", wait_s);
    json_add_str(out, "reason", reason);
}

static void no_trial(const struct ask *a)
{
    const struct sched_study *ss = a->ss;
    char text[160];

    if (ss->end.rule != NULL && ss->state >= SCHED_STUDY_ENDING) {
        put_none(a->out, "ended", WAIT_S, ss->end.text);
    } else if (ss->state == SCHED_STUDY_PAUSED) {
        put_none(a->out, "paused", WAIT_PAUSED_S, "the study is paused; `trawl continue` resumes it");
    } else if (ss->state != SCHED_STUDY_ACTIVE) {
        put_none(a->out, "running", WAIT_S, "the controller is about to end");
    } else if (proposer_is_busy(ss->proposer)) {
        put_none(a->out, "running", WAIT_PROPOSAL_S, "the next trial is being chosen");
    } else {
        snprintf(text, sizeof text, "no trial is left to give; %zu are being trained", ss->n_flights + ss->leases.n);
        put_none(a->out, "running", WAIT_S, text);
    }
}

/* The study is not among those that this controller runs. */
static enum status ask_elsewhere(const struct ask *a, struct error *err)
{
    const struct study *study = &a->study;

    if (study->state == STUDY_ENDED)
        put_none(a->out, "ended", WAIT_S, study->end_text);
    else if (study->state == STUDY_PAUSED)
        put_none(a->out, "paused", WAIT_PAUSED_S, "the study is paused; `trawl continue` resumes it");
    else if (a->waiting)
        put_none(a->out, "running", WAIT_PAUSED_S, "the study waits its turn, the daemon runs as many as it can");
    else
        return FAIL(err, ST_EXISTS,
                    "%s: the controller that holds the store runs another study; `trawl daemon` would run both",
                    study->name);
    return ST_OK;
}

static enum status on_ask(struct ask *a, struct error *err)
{
    const char *client = json_get_str(a->body, "client");
    struct scheduler *s = a->sched;
    struct held *held = NULL;
    bool again = false;

    TRY(check_client(client, err));
    if (a->ss == NULL)
        return ask_elsewhere(a, err);
    TRY(leases_give(a->ss, client, &held, &again, err));
    if (held == NULL) {
        TRY(sched_study_ask(a->ss, s, err)); /* the first trial is there at once */
        TRY(leases_give(a->ss, client, &held, &again, err));
    }
    if (held == NULL) {
        no_trial(a);
        return ST_OK;
    }
    return ask_trial_put(a->ss, held, again, a->out, err);
}

/* -- report -- */

/* The lease of the request, which is of its trial. */
static enum status find_lease(struct ask *a, struct error *err)
{
    const char *token = json_get_str(a->body, "lease");
    int64_t study_id = a->ss != NULL ? a->ss->view.study.id : a->study.id;
    enum status rc = store_lease_find(a->store, token, &a->lease, err);

    if (rc == ST_NOTFOUND || (rc == ST_OK && (a->lease.study_id != study_id || a->lease.number != a->number))) {
        if (err != NULL)
            error_clear(err);
        return FAIL(err, ST_NOTFOUND, "%s: trial %lld of %s was never leased under this token; take `lease` of ask",
                    ask_forms[a->verb].verb, (long long)a->number, a->name);
    }
    return rc;
}

static void put_report(cJSON *out, const char *stop, bool repeat, double seconds)
{
    json_add_bool(out, "stop", stop != NULL);
    json_add_str(out, "reason", stop);
    json_add_bool(out, "repeat", repeat);
    json_add_f64(out, "seconds", seconds);
}

/* A metric message as workers send them, of the numbers in the body. *ret_n 0: there are none. */
static enum status read_points(const struct ask *a, double wall_s, struct metric_report *ret, struct error *err)
{
    const cJSON *metrics = json_get(a->body, "metrics");
    int64_t step = 0;

    *ret = (struct metric_report){0};
    if (!cJSON_IsObject(metrics) || metrics->child == NULL)
        return ST_OK;
    if (!json_get_i64(a->body, "step", &step))
        return FAIL(err, ST_USAGE, "%s: metrics need their step", ask_forms[a->verb].verb);
    JSON_LOCAL cJSON *message = cJSON_CreateObject();
    json_add_i64(message, "env_steps", step);
    json_add_f64(message, "wall_s", wall_s);
    cJSON_AddItemReferenceToObject(message, "values", (cJSON *)metrics);
    (void)report_parse(message, a->lease.trial_id, 1, ret);
    return ST_OK;
}

/* held: the open lease, where this controller has it. */
static double elapsed_s(const struct lease *lease, const struct held *held)
{
    return held != NULL && held->lease.id == lease->id ? leases_elapsed_s(held)
                                                       : fmax((double)(clock_utc_ms() - lease->given_ms) / 1000.0, 0);
}

static enum status on_report(struct ask *a, struct error *err)
{
    struct held *held = a->ss != NULL ? leases_of_trial(a->ss, a->number) : NULL;
    struct metric_report report = {0};
    double wall_s;
    char gone[64];

    TRY(find_lease(a, err));
    double cost = json_f64_or(a->body, "cost", NAN);
    int64_t seq = json_i64_or(a->body, "seq", -1);
    if (cost < 0)
        return FAIL(err, ST_USAGE, "report: the cost is %g; it cannot be below 0", cost);
    if (a->lease.state != LEASE_OPEN) {
        snprintf(gone, sizeof gone, "the lease is over: %s", lease_state_name(a->lease.state));
        put_report(a->out, gone, false, 0);
        return ST_OK;
    }
    if (held == NULL || held->lease.id != a->lease.id) { /* the study waits; its leases do not end meanwhile */
        put_report(a->out, a->study.state == STUDY_ENDED ? a->study.end_text : NULL, false, WAIT_PAUSED_S);
        return ST_OK;
    }
    bool repeat = seq >= 0 && seq <= held->lease.seq;
    wall_s = isfinite(cost) && study_cost_is_time(a->ss->view.search.cost) ? cost : elapsed_s(&a->lease, held);
    TRY(read_points(a, wall_s, &report, err));
    enum status rc = leases_report(a->ss, held, seq, wall_s, report.n > 0 && !repeat ? &report : NULL, err);
    mem_free((void *)report.points);
    if (rc == ST_OK)
        put_report(a->out, held->stop[0] != '\0' ? held->stop : NULL, repeat, a->ss->setup->sweep.lease_s);
    return rc;
}

/* -- results -- */

static void put_outcome(const struct ask *a, bool counted, bool late, bool again)
{
    json_add_i64(a->out, "trial", a->number);
    json_add_bool(a->out, "counted", counted);
    json_add_bool(a->out, "late", late);
    json_add_bool(a->out, "again", again);
}

/* The result that the body means, with what the study needs of it (search: its space). settled is freed by the
 * caller. */
static enum status read_result(const struct ask *a, const struct search *search, const struct held *held,
                               struct trial_result *ret_result, struct outcomes_settled *ret_settled, struct error *err)
{
    TRY(ask_result_read(a->body, ask_forms[a->verb].verb, search->cost, elapsed_s(&a->lease, held), ret_result, err));
    TRY(outcomes_settle(&search->outcomes, a->store, a->ss != NULL ? a->ss->view.study.metric : a->study.metric,
                        a->lease.trial_id, json_get(a->body, "metrics"), ret_result, ret_settled, err));
    ret_result->outcomes = ret_settled->values;
    if (ret_result->state == TRIAL_DONE && ret_settled->lacks[0] != '\0') {
        ret_result->state = TRIAL_FAILED;
        ret_result->lacks_outcome = true;
        ret_result->reason = ret_settled->lacks;
    }
    return ST_OK;
}

/* Did a branch of the trial's run, a part of it, cost more than all of it? The result counts all the same. */
static void warn_of_cost(const struct ask *a, size_t i)
{
    const struct study_view *v = &a->ss->view;
    double cost = study_view_trial_cost(v, &v->trials[i]), most = -INFINITY;
    char text[240];
    int64_t of;

    for (size_t k = 0; k < v->n; k++)
        if (trial_is_branch(&v->trials[k], &of) && of == a->number)
            most = fmax(most, study_view_trial_cost(v, &v->trials[k]));
    if (!(cost < most))
        return;
    snprintf(text, sizeof text,
             "the cost, %.6g, is below the %.6g that this run had reported before its end; it counts as it is, report "
             "the cost of the whole run",
             cost, most);
    log_warn("%s: trial %lld: %s", a->name, (long long)a->number, text);
    json_add_str(a->out, "warning", text);
}

static enum status record_result(struct ask *a, struct held *held, struct trial_result *result, const char *text,
                                 struct error *err)
{
    struct metric_report last = {0};
    enum status rc;

    TRY(read_points(a, result->cost_s, &last, err));
    result->points = last.points;
    result->n_points = last.n;
    if (held != NULL && held->lease.id == a->lease.id) {
        size_t i = held->i;
        rc = leases_finish(a->sched, a->ss, held, result, text, err);
        if (rc == ST_OK)
            warn_of_cost(a, i);
    } else {
        rc = store_lease_finish(a->store, a->lease.id, result, text, NULL, err);
    }
    mem_free((void *)last.points);
    return rc;
}

/* The result that the lease ends with, also of a study that is not run now. text: the body as it is kept. */
static enum status record(struct ask *a, const char *text, struct error *err)
{
    struct held *held = a->ss != NULL ? leases_of_trial(a->ss, a->number) : NULL;
    AT_END(search_destroy_at) struct search *stored = a->ss == NULL ? search_create() : NULL;
    struct outcomes_settled settled = {0};
    struct trial_result result;
    enum status rc = stored != NULL ? search_from_json(a->study.space, stored, err) : ST_OK;

    THEN(rc, read_result(a, stored != NULL ? stored : &a->ss->view.search, held, &result, &settled, err));
    THEN(rc, record_result(a, held, &result, text, err));
    if (rc == ST_OK) {
        put_outcome(a, true, false, false);
        if (settled.lacks[0] != '\0')
            json_add_str(a->out, "reason", settled.lacks);
    }
    mem_free(settled.values);
    return rc;
}

static enum status give_back(struct ask *a, struct error *err)
{
    struct held *held = a->ss != NULL ? leases_of_trial(a->ss, a->number) : NULL;
    enum trial_state after;

    if (held != NULL && held->lease.id == a->lease.id)
        TRY(leases_end(a->sched, a->ss, held, LEASE_RETURNED, err));
    else
        TRY(store_lease_end(a->store, a->lease.id, LEASE_RETURNED, &after, err));
    put_outcome(a, false, false, false);
    return ST_OK;
}

static enum status finish_late(struct ask *a, const char *text, struct error *err)
{
    TRY(store_lease_finish_late(a->store, a->lease.id, text, err));
    put_outcome(a, false, true, false);
    return ST_OK;
}

static enum status finish(struct ask *a, const char *text, bool gives_back, struct error *err)
{
    bool is_open = a->lease.state == LEASE_OPEN;

    if (a->lease.result != NULL && strcmp(a->lease.result, text) == 0) {
        put_outcome(a, a->lease.state == LEASE_REPORTED, a->lease.state != LEASE_REPORTED, true);
        return ST_OK;
    }
    if (a->lease.result != NULL)
        return FAIL(err, ST_EXISTS,
                    "tell: trial %lld has another result of this lease already, which never changes: "
                    "%.200s",
                    (long long)a->number, a->lease.result);
    if (gives_back && !is_open) {
        put_outcome(a, false, false, true);
        return ST_OK;
    }
    if (gives_back)
        return give_back(a, err);
    return is_open ? record(a, text, err) : finish_late(a, text, err);
}

static enum status on_tell(struct ask *a, struct error *err)
{
    const char *state = json_get_str(a->body, "state");
    struct trial_result checked;

    TRY(find_lease(a, err));
    bool gives_back = state != NULL && strcmp(state, "queued") == 0;
    if (!gives_back) /* a late one is as whole as one that counts */
        TRY(ask_result_read(a->body, "tell", SEARCH_COST_WALL, 0, &checked, err));
    JSON_LOCAL cJSON *kept = cJSON_Duplicate(a->body, true);
    cJSON_DeleteItemFromObjectCaseSensitive(kept, "lease");
    MEM_LOCAL char *text = json_print(kept, false);
    return finish(a, text, gives_back, err);
}

/* -- dispatch -- */

static enum status serve(struct ask *a, struct error *err)
{
    switch (a->verb) {
    case ASK_ASK:
        return on_ask(a, err);
    case ASK_REPORT:
        return on_report(a, err);
    case ASK_TELL:
        return on_tell(a, err);
    case ASK_ENQUEUE:
    case ASK_ADD:
        if (a->ss == NULL || a->ss->state >= SCHED_STUDY_ENDING)
            return FAIL(err, ST_EXISTS, "%s: the study %s does not run now; `trawl continue %s` resumes it",
                        ask_forms[a->verb].verb, a->name, a->name);
        return a->verb == ASK_ADD ? ask_add(a->ss, a->body, a->out, err) : ask_enqueue(a->ss, a->body, a->out, err);
    case ASK_VERBS:
        break;
    }
    return FAIL(err, ST_INTERNAL, "no such request");
}

enum status ask_request(struct store *store, struct scheduler *sched, bool waiting, const cJSON *request, cJSON *answer,
                        struct error *err)
{
    struct ask a = {.store = store,
                    .sched = sched,
                    .waiting = waiting,
                    .verb = ask_verb_find(json_get_str(request, "verb")),
                    .name = json_get_str(request, "study"),
                    .number = -1,
                    .body = json_get(request, "body")};

    if (a.verb == ASK_VERBS || a.name == NULL)
        return FAIL(err, ST_USAGE, "a request about trials names its study and one of ask, report, tell, enqueue, add");
    TRY(ask_body_check(a.verb, a.body, err));
    if (ask_forms[a.verb].of_trial && (!json_get_i64(request, "trial", &a.number) || a.number < 0))
        return FAIL(err, ST_USAGE, "%s: which trial?", ask_forms[a.verb].verb);
    a.ss = scheduler_find(sched, a.name);
    if (a.ss != NULL && a.ss->state == SCHED_STUDY_ENDED)
        a.ss = NULL;
    if (a.ss == NULL)
        TRY(store_study_find(store, a.name, &a.study, err));
    a.out = cJSON_CreateObject();
    enum status rc = serve(&a, err);
    if (rc == ST_OK)
        json_add(answer, "answer", a.out);
    else
        cJSON_Delete(a.out);
    lease_free(&a.lease);
    study_free(&a.study);
    return rc;
}
