/* leases.c - trials that clients outside train: given, reported on, finished, taken back.
 * Invariants: (1) ss->leases are the open leases of the study in the store; (2) their trials are running in the view;
 * (3) a lease ends once: reported, expired or returned. */
#include "sweep/controller/leases.h"

#include "study/setup/setup.h"
#include "sweep/controller/trial/checkpoints.h"
#include "sweep/controller/trial/course.h"
#include "sweep/controller/nodes.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/trial/track_rows.h"

#include <sys/random.h>

#define TOKEN_BYTES 16
#define SHORT_PROPOSAL_S 0.02 /* a client may wait for such a one */
#define MAY_WAIT 0.03 /* share of the asks that may find no trial in the queue */

void leases_free(struct leases *l)
{
    for (size_t k = 0; k < l->n; k++)
        lease_free(&l->v[k].lease);
    mem_free(l->v);
    *l = (struct leases){0};
}

static double lease_s(const struct sched_study *ss)
{
    return ss->setup->sweep.lease_s;
}

struct held *leases_append(struct sched_study *ss, const struct lease *lease, size_t i)
{
    struct leases *l = &ss->leases;
    double now_s = clock_mono_s();

    MEM_ROOM(l->v, l->n, l->cap);
    l->v[l->n] = (struct held){.lease = *lease, .i = i, .from_s = now_s, .until_s = now_s + lease_s(ss), .cost_s = NAN};
    return &l->v[l->n++];
}

enum status leases_begin(struct sched_study *ss, struct error *err)
{
    struct lease *open = NULL;
    size_t n = 0;

    TRY(store_lease_list_open(ss->store, ss->view.study.id, &open, &n, err));
    for (size_t k = 0; k < n; k++)
        leases_append(ss, &open[k], (size_t)open[k].number)->from_s -= /* with what it owns */
            fmax((double)(clock_utc_ms() - open[k].given_ms) / 1000.0, 0);
    mem_free(open);
    return ST_OK;
}

struct held *leases_of_trial(struct sched_study *ss, int64_t number)
{
    for (size_t k = 0; k < ss->leases.n; k++)
        if (ss->leases.v[k].lease.number == number)
            return &ss->leases.v[k];
    return NULL;
}

double leases_elapsed_s(const struct held *h)
{
    return clock_mono_s() - h->from_s;
}

static double cost_so_far(const struct held *h)
{
    return isfinite(h->cost_s) ? h->cost_s : leases_elapsed_s(h);
}

double leases_running_s(const struct sched_study *ss)
{
    double sum = 0;

    for (size_t k = 0; k < ss->leases.n; k++)
        sum += cost_so_far(&ss->leases.v[k]);
    return sum;
}

/* Asks come at random, r of them in the time of a proposal: the chance that k trials in the queue are all taken before
 * the next one is there is about r^k. A client alone asks when it has sent its result, and its proposal is to know that
 * result. */
size_t leases_ahead(const struct sched_study *ss)
{
    double propose_s, trial_s, r, n = (double)ss->leases.n + 1;

    if (ss->leases.n < 2 || !sched_study_means(ss, true, &propose_s, &trial_s) || propose_s < SHORT_PROPOSAL_S)
        return 0;
    r = n * propose_s / trial_s;
    return (size_t)(r < 1 ? fmin(fmax(ceil(log(MAY_WAIT) / log(r)), 1), n) : n);
}

enum status lease_make_token(struct lease *lease, const char *prefix, struct error *err)
{
    unsigned char bytes[TOKEN_BYTES];
    const size_t size = sizeof lease->token;
    size_t n = (size_t)snprintf(lease->token, size, "%s", prefix);

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return FAIL(err, ST_IO, "the system gives no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        n += (size_t)snprintf(lease->token + n, size - n, "%02x", bytes[i]);
    return ST_OK;
}

/* The trial's config may name a device of this controller. With a checkpoint it stays: only that config continues from
 * it. */
static enum status forget_device(struct sched_study *ss, struct trial *t, struct error *err)
{
    bool there;

    if (setup_is_program(ss->setup))
        return ST_OK;
    TRY(checkpoint_to_resume(ss->store, ss->view.study.name, t, t->attempt, &there, err));
    return there ? ST_OK : sched_study_settle(ss, t, NULL, err);
}

/* The trial is the client's now. */
static enum status give(struct sched_study *ss, size_t i, const char *client, struct held **ret_held, struct error *err)
{
    struct trial *t = &ss->view.trials[i];
    struct lease lease = {.trial_id = t->id, .study_id = t->study_id, .number = t->number};
    enum status rc;

    TRY(lease_make_token(&lease, "", err));
    snprintf(lease.client, sizeof lease.client, "%s", client);
    TRY(forget_device(ss, t, err));
    lease.until_ms = clock_utc_ms() + (int64_t)(1000 * lease_s(ss));
    STORE_INSIST(rc, ss->store, err, store_lease_give(ss->store, &lease, err));
    TRY(rc);
    t->state = TRIAL_RUNNING;
    t->started_ms = lease.given_ms;
    t->attempt = lease.attempt;
    mem_set_text(&t->device, client);
    mem_set_text(&t->slot, client);
    ss->n_queued--;
    ss->n_started++;
    *ret_held = leases_append(ss, &lease, i);
    return track_rows_start(ss->track, t, t->attempt > 1, err);
}

enum status leases_give(struct sched_study *ss, const char *client, struct held **ret_held, bool *ret_again,
                        struct error *err)
{
    struct error why = {0};
    size_t i;

    *ret_held = NULL;
    *ret_again = false;
    for (size_t k = 0; k < ss->leases.n; k++)
        if (strcmp(ss->leases.v[k].lease.client, client) == 0 && !ss->leases.v[k].recall) {
            *ret_held = &ss->leases.v[k];
            *ret_again = true;
            return leases_report(ss, *ret_held, -1, NAN, NULL, err);
        }
    if (!sched_study_take(ss, NULL, &i))
        return ST_OK;
    enum status rc = give(ss, i, client, ret_held, &why);
    if (rc == ST_EXISTS && nodes_took(ss, i))
        return ST_OK;
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", why.text);
    log_debug("%s: trial %zu is leased to %s", ss->view.study.name, i, client);
    return ST_OK;
}

enum status leases_report(struct sched_study *ss, struct held *h, int64_t seq, double cost_s,
                          struct metric_report *report, struct error *err)
{
    int64_t until_ms = clock_utc_ms() + (int64_t)(1000 * lease_s(ss));
    MEM_LOCAL char *row = report != NULL ? track_rows_metrics(ss->track, report) : NULL;
    enum status rc;

    if (report != NULL)
        report->outbox_json = row;
    STORE_INSIST(rc, ss->store, err, store_lease_extend(ss->store, h->lease.id, until_ms, seq, report, err));
    TRY(rc);
    h->lease.seq = seq > h->lease.seq ? seq : h->lease.seq;
    h->lease.until_ms = until_ms;
    h->until_s = clock_mono_s() + lease_s(ss); /* the round may have begun long ago: its writes may wait */
    if (isfinite(cost_s))
        h->cost_s = cost_s;
    if (h->stop[0] == '\0')
        (void)track_rows_stop(ss->track, h->lease.trial_id, h->stop, sizeof h->stop);
    return report != NULL ? course_take(ss, h->i, report, cost_s, NULL, err) : ST_OK;
}

void leases_forget(struct sched_study *ss, struct held *h)
{
    struct leases *l = &ss->leases;

    lease_free(&h->lease);
    *h = l->v[--l->n];
}

enum status leases_finish(struct scheduler *s, struct sched_study *ss, struct held *h,
                          const struct trial_result *result, const char *result_json, struct error *err)
{
    size_t i = h->i;
    const char *row = track_rows_result(ss->track, result);
    enum status rc;

    STORE_INSIST(rc, ss->store, err, store_lease_finish(ss->store, h->lease.id, result, result_json, row, err));
    TRY(rc);
    leases_forget(ss, h);
    TRY(sched_study_take_result(ss, i, result, err));
    sched_study_report_end(ss, s, i);
    return ST_OK;
}

enum status leases_end(struct scheduler *s, struct sched_study *ss, struct held *h, enum lease_state state,
                       struct error *err)
{
    size_t i = h->i;
    struct trial *t = &ss->view.trials[i];
    enum trial_state after;
    struct error why = {0};
    enum status rc;

    STORE_INSIST(rc, ss->store, &why, store_lease_end(ss->store, h->lease.id, state, &after, &why));
    if (rc == ST_EXISTS && lease_is_of_node(&h->lease)) { /* it has ended by itself: the next look finds that */
        h->recall = false;
        return ST_OK;
    }
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", why.text);
    if (state == LEASE_EXPIRED)
        log_info("%s: %s was silent for longer than sweep.lease_s (%g s): trial %lld is %s", ss->view.study.name,
                 h->lease.client, lease_s(ss), (long long)t->number,
                 after == TRIAL_QUEUED ? "queued again" : "given up as lost");
    ss->view.study.lost_s += cost_so_far(h);
    ss->risk_moved = true;
    leases_forget(ss, h);
    t->state = after;
    t->losses += state == LEASE_EXPIRED && after == TRIAL_QUEUED;
    if (after == TRIAL_QUEUED) {
        ss->n_queued++;
        TRY(track_rows_pause(ss->track, t->id, t->env_steps, err));
        study_view_update(&ss->view, i);
    } else {
        t->finished_ms = clock_utc_ms();
        mem_set_text(&t->reason, LEASE_LOST_REASON);
        TRY(sched_study_recorded(ss, i, err));
    }
    sched_study_report_end(ss, s, i);
    return ST_OK;
}

void leases_recall(struct sched_study *ss)
{
    for (size_t k = 0; k < ss->leases.n; k++)
        ss->leases.v[k].recall = true;
}

void leases_ask_stop(struct sched_study *ss, const char *why)
{
    for (size_t k = 0; k < ss->leases.n; k++) {
        struct held *h = &ss->leases.v[k];
        struct error text = {0};
        if (h->stop[0] != '\0')
            continue;
        snprintf(h->stop, sizeof h->stop, "%s", why);
        if (lease_is_of_node(&h->lease) && store_lease_ask_stop(ss->store, h->lease.id, why, &text) != ST_OK)
            log_debug("%s", text.text); /* it has ended meanwhile */
    }
}

void leases_slept(struct sched_study *ss, double seconds)
{
    double most_s = clock_mono_s() + lease_s(ss); /* one that was given or extended since then is whole */

    for (size_t k = 0; k < ss->leases.n; k++)
        ss->leases.v[k].until_s = fmin(ss->leases.v[k].until_s + seconds, most_s);
}

enum status leases_round(struct scheduler *s, struct sched_study *ss, struct error *err)
{
    for (size_t k = ss->leases.n; k-- > 0;) { /* the last takes the place of one that ends */
        struct held *h = &ss->leases.v[k];
        bool silent = s->now_s > h->until_s && !lease_is_of_node(&h->lease); /* those: store_leases_expire */
        if (h->recall || silent)
            TRY(leases_end(s, ss, h, h->recall ? LEASE_RETURNED : LEASE_EXPIRED, err));
    }
    return ST_OK;
}
