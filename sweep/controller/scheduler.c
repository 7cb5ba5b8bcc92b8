/* scheduler.c - the event loop: workers, slots, and which study's trial a free slot takes.
 *
 * A round: start workers that are needed, give free slots their trials, ask for proposals, wait for whatever comes
 * first (a worker's message, log or death, a proposal, a watched fd, a signal, a fifth of a second), take it in, look
 * after the workers' health, end studies that have had enough. */
#include "sweep/controller/scheduler.h"

#include "study/space/trial_check.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/controller/trial/checkpoints.h"
#include "sweep/controller/device_fits.h"
#include "sweep/launch/devices.h"
#include "sweep/controller/trial/flight.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/store_watch.h"
#include "sweep/supervise/supervise.h"
#include "sweep/controller/trial/track_rows.h"
#include "sweep/launch/slurm_nodes.h"
#include "sweep/proposals/proposer.h"
#include "sweep/signals.h"

#include <sys/eventfd.h>

#define TICK_MS 200
#define STARTS_MAX 8 /* trials started in a round: no message is read and no proposal asked for meanwhile */

enum status scheduler_create(struct scheduler **ret_scheduler, const struct devices *devices, struct error *err)
{
    struct scheduler *s = mem_alloc(sizeof *s);
    enum status rc = workers_create(&s->workers, devices, err);
    size_t n_slots = 0;

    s->wake_fd = -1;
    if (rc == ST_OK && (s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        rc = FAIL(err, ST_IO, "cannot make an eventfd: %s", strerror(errno));
    if (rc != ST_OK) {
        workers_destroy(&s->workers);
        mem_free(s);
        return rc;
    }
    s->fds = mem_array(2 * devices->n + SCHED_MAX_WATCHES + 2, sizeof *s->fds);
    for (size_t i = 0; i < s->workers.n; i++)
        n_slots += (size_t)s->workers.v[i].spec.lanes;
    s->ended = mem_array(n_slots, sizeof *s->ended);
    s->crowded = devices->crowded;
    s->now_s = s->workers.now_s;
    *ret_scheduler = s;
    return ST_OK;
}

/* Closes the trackers of removed studies once all is sent (study_id 0), or those of one study in any case: only one
 * uploader may feed its trackers. */
static void end_leaving(struct scheduler *s, int64_t study_id, bool all)
{
    for (size_t i = s->n_leaving; i-- > 0;) {
        struct track_rows *h = s->leaving[i];
        if (!all && (study_id != 0 ? track_rows_study(h) != study_id : !track_rows_left(h)))
            continue;
        track_rows_close(h, NULL, NULL, all ? LAST_UPLOADS_S : 0);
        s->leaving[i] = s->leaving[--s->n_leaving];
    }
}

void scheduler_destroy(struct scheduler *s)
{
    if (s == NULL)
        return;
    end_leaving(s, 0, true);
    workers_stop(s->workers.v, s->workers.n);
    EACH_SLOT (&s->workers, slot)
        flight_forget(slot->flight); /* after a failure; found as running when resumed */
    for (size_t i = 0; i < s->n_studies; i++) { /* its thread writes to wake_fd */
        proposer_destroy(s->studies[i]->proposer);
        s->studies[i]->proposer = NULL;
        checkpoints_end(s->studies[i]);
    }
    slurm_nodes_destroy(s->launcher);
    workers_destroy(&s->workers);
    close(s->wake_fd);
    mem_free(s->fds);
    mem_free(s->ended);
    mem_free(s);
}

/* ---- studies ---- */

enum status scheduler_check(const struct scheduler *s, const struct setup *setup, const struct search *search,
                            struct error *err)
{
    if (setup_is_program(setup))
        return ST_OK;
    if (s->crowded && study_cost_is_time(search->cost))
        return FAIL(err, ST_CONFIG,
                    "more trials at a time than cores (--runs-per-device) are for studies with sweep.cost = env_steps; "
                    "this one's cost is time");
    for (size_t i = 0; i < s->workers.n; i++)
        TRY(devices_check_width(&s->workers.v[i].spec, search, setup->train.devices, err));
    return ST_OK;
}

enum status scheduler_add(struct scheduler *s, struct sched_study *ss, struct error *err)
{
    if (s->n_studies == SCHED_MAX_STUDIES)
        return FAIL(err, ST_LIMIT, "%d studies run already; add this one when one of them has ended",
                    SCHED_MAX_STUDIES);
    if (scheduler_check(s, ss->setup, &ss->view.search, err) != ST_OK)
        return error_prefix(err, "%s", ss->view.study.name);
    end_leaving(s, ss->view.study.id, false);
    s->store = ss->store;
    TRY(sched_study_begin(ss, s->wake_fd, err));
    s->studies[s->n_studies++] = ss;
    return ST_OK;
}

void scheduler_remove(struct scheduler *s, struct sched_study *ss)
{
    size_t i = 0;

    while (i < s->n_studies && s->studies[i] != ss)
        i++;
    if (i == s->n_studies)
        return;
    proposer_destroy(ss->proposer);
    ss->proposer = NULL;
    if (ss->track != NULL && s->n_leaving < SCHED_MAX_STUDIES) {
        track_rows_leave(ss->track, &ss->view, ss->end.text);
        s->leaving[s->n_leaving++] = ss->track;
        ss->track = NULL;
    }
    s->n_studies--;
    memmove(&s->studies[i], &s->studies[i + 1], (s->n_studies - i) * sizeof *s->studies);
}

struct sched_study *scheduler_find(const struct scheduler *s, const char *name)
{
    for (size_t i = 0; i < s->n_studies; i++)
        if (strcmp(s->studies[i]->view.study.name, name) == 0)
            return s->studies[i];
    return NULL;
}

void scheduler_pause(struct scheduler *s, struct sched_study *ss, bool paused)
{
    if (ss->state != SCHED_STUDY_ACTIVE && ss->state != SCHED_STUDY_PAUSED)
        return;
    ss->state = paused ? SCHED_STUDY_PAUSED : SCHED_STUDY_ACTIVE;
    event_ring_add(&s->workers.events, "%s: %s", ss->view.study.name, paused ? "paused" : "continues");
}

static void stop_flights(struct scheduler *s, const struct sched_study *ss, enum flight_stop why)
{
    EACH_SLOT (&s->workers, slot)
        if (slot->flight != NULL && (ss == NULL || slot->flight->ss == ss))
            flight_ask_stop(slot->flight, why, s->now_s);
}

void scheduler_recall(struct scheduler *s, struct sched_study *ss)
{
    stop_flights(s, ss, FLIGHT_REQUEUE);
    leases_recall(ss);
}

void scheduler_resume(struct scheduler *s, struct sched_study *ss)
{
    if (ss->state == SCHED_STUDY_PAUSED) {
        scheduler_pause(s, ss, false);
    } else if (ss->state == SCHED_STUDY_ENDING && !s->stopping) {
        ss->state = SCHED_STUDY_ACTIVE;
        ss->end = (struct study_end){0};
        ss->failures = 0;
        error_clear(&ss->err);
        event_ring_add(&s->workers.events, "%s: continues", ss->view.study.name);
    }
}

static void begin_end(struct scheduler *s, struct sched_study *ss, const char *rule, const char *text)
{
    ss->end.rule = rule;
    if (text != ss->end.text)
        snprintf(ss->end.text, sizeof ss->end.text, "%.*s", (int)sizeof ss->end.text - 1, text);
    ss->state = SCHED_STUDY_ENDING;
    event_ring_add(&s->workers.events, "%s: ends, %s", ss->view.study.name, ss->end.text);
}

void scheduler_end(struct scheduler *s, struct sched_study *ss, const char *text)
{
    if (ss->state == SCHED_STUDY_ENDED)
        return;
    if (ss->state != SCHED_STUDY_ENDING)
        begin_end(s, ss, "user", text);
    scheduler_recall(s, ss);
}

void scheduler_stop(struct scheduler *s)
{
    if (s->stopping)
        return;
    s->stopping = s->workers.stopping = true;
    stop_flights(s, NULL, FLIGHT_REQUEUE);
    for (size_t i = 0; i < s->n_studies; i++)
        if (s->studies[i]->state != SCHED_STUDY_ENDED)
            s->studies[i]->state = SCHED_STUDY_ENDING; /* end.rule stays: none, if it was to continue */
}

static void end_used_up(struct scheduler *s, struct sched_study *ss)
{
    STRBUF(unused, OUTPUT_MAX_BYTES);
    STRBUF(text, OUTPUT_MAX_BYTES);

    trial_check_unused(&ss->view.search, ss->setup, &unused);
    strbuf_addf(&text, "no new point of the search space that can be run was found%s%s",
                unused.len > 0 ? "; none with these values: " : "", unused.text);
    begin_end(s, ss, "space", text.text);
}

/* Has the study had enough? */
static void check_end(struct scheduler *s, struct sched_study *ss)
{
    struct study_end end;

    if (ss->err.status != ST_OK && ss->state != SCHED_STUDY_ENDING) {
        begin_end(s, ss, ss->err.status == ST_VERSION ? NULL : "failures", ss->err.text);
        scheduler_recall(s, ss);
    }
    if (ss->state != SCHED_STUDY_ACTIVE && ss->state != SCHED_STUDY_PAUSED)
        return;
    stop_rules_check(ss, sched_study_running_s(ss, s), s->now_s, &end);
    if (end.rule != NULL) {
        begin_end(s, ss, end.rule, end.text);
        stop_flights(s, ss, FLIGHT_LIMIT);
        leases_ask_stop(ss, end.text);
    } else if (ss->state == SCHED_STUDY_ACTIVE && sched_study_wants(ss) == 0 && ss->n_flights == 0 &&
               ss->leases.n == 0 && !ss->lease_unseen) {
        snprintf(end.text, sizeof end.text, "the study has its %zu trial%s", study_view_n_runs(&ss->view),
                 PLURAL(study_view_n_runs(&ss->view)));
        if (ss->used_up)
            end_used_up(s, ss);
        else
            begin_end(s, ss, "trials", end.text);
    }
}

static enum status end_study(struct scheduler *s, struct sched_study *ss, struct error *err)
{
    TRY(stop_rules_tick(ss, 0, s->now_s, true, err));
    ss->state = SCHED_STUDY_ENDED;
    if (ss->end.rule != NULL)
        TRY(sched_study_set_state(ss, STUDY_ENDED, ss->end.rule, ss->end.text, err));
    else if (ss->err.status == ST_VERSION)
        TRY(sched_study_set_state(ss, STUDY_PAUSED, "error", ss->err.text, err));
    if (s->listener.on_study_end != NULL)
        s->listener.on_study_end(s->listener.ctx, ss);
    return ST_OK;
}

/* A study that will be resumed first takes the proposal that is being made: it was made without the trials in flight,
 * and a later one would know them. Clients outside keep their trials when the program ends. */
static bool may_end(const struct scheduler *s, const struct sched_study *ss)
{
    return ss->state == SCHED_STUDY_ENDING && ss->n_flights == 0 &&
           ((ss->leases.n == 0 && !ss->lease_unseen) || s->stopping) &&
           (ss->end.rule != NULL || !proposer_is_busy(ss->proposer));
}

static enum status end_studies(struct scheduler *s, struct error *err)
{
    for (size_t i = s->n_studies; i-- > 0;) { /* the listener may remove it */
        if (s->studies[i]->state == SCHED_STUDY_ENDED)
            continue;
        TRY(stop_rules_tick(s->studies[i], sched_study_at_risk_s(s->studies[i], s), s->now_s, false, err));
        check_end(s, s->studies[i]);
    }
    for (size_t i = s->n_studies; i-- > 0;)
        if (may_end(s, s->studies[i]))
            TRY(end_study(s, s->studies[i], err));
    return ST_OK;
}

/* ---- slots ---- */

double slot_utilisation(const struct scheduler *s, const struct slot *slot)
{
    double busy_s = slot->busy_s + (slot->runs ? s->now_s - slot->given_s : 0);

    return slot->since_s > 0 && s->now_s > slot->since_s ? busy_s / (s->now_s - slot->since_s) : 0.0 / 0.0;
}

/* The device time of its flights so far, of run NULL: of all studies. */
void scheduler_settle(struct scheduler *s, struct sched_study *ss)
{
    EACH_SLOT (&s->workers, slot) {
        struct flight *f = slot->flight;
        if (f == NULL || (ss != NULL && f->ss != ss))
            continue;
        share_charge(&f->ss->share, s->now_s - f->charged_s, (double)f->ss->view.study.limits.priority);
        f->charged_s = s->now_s;
    }
}

/* The accounts of all studies, up to now. */
static void update_shares(struct scheduler *s, struct share *ret_shares[SCHED_MAX_STUDIES])
{
    for (size_t i = 0; i < s->n_studies; i++)
        ret_shares[i] = &s->studies[i]->share;
    for (int begin = 0; begin < 2; begin++) /* a new share is measured by those that still wait */
        for (size_t i = 0; i < s->n_studies; i++)
            if ((sched_study_wants_slots(s->studies[i]) > 0) == (begin != 0))
                share_look(ret_shares, s->n_studies, i, begin != 0, &s->shared);
}

/* Does some open device take trials of both? */
static bool share_a_device(const struct scheduler *s, const struct sched_study *a, const struct sched_study *b)
{
    for (size_t i = 0; i < s->workers.n; i++) {
        const struct worker *w = &s->workers.v[i];
        if (w->state == WORKER_READY && device_class_fits(s, a, w) && device_class_fits(s, b, w))
            return true;
    }
    return false;
}

size_t scheduler_part(const struct scheduler *s, const struct sched_study *ss, size_t n)
{
    int64_t own = ss->view.study.limits.priority, all = own;

    for (size_t i = 0; i < s->n_studies; i++)
        if (s->studies[i] != ss && sched_study_wants_slots(s->studies[i]) > 0 && share_a_device(s, ss, s->studies[i]))
            all += s->studies[i]->view.study.limits.priority;
    n = (n * (size_t)own + (size_t)all - 1) / (size_t)all;
    return n > 0 ? n : 1;
}

static enum status start_trial(struct scheduler *s, struct slot *slot, struct sched_study *ss, size_t i,
                               struct error *err)
{
    struct error why = {0};

    device_class_settle(ss, slot->worker);
    enum status rc = flight_start(slot, ss, i, s->hang_timeout_s, s->now_s, &why);
    if (rc == ST_EXISTS && slot->flight == NULL && nodes_took(ss, i))
        return ST_OK;
    if (rc != ST_OK)
        return FAIL(err, rc, "%s", why.text);
    if (s->listener.on_trial_start != NULL)
        s->listener.on_trial_start(s->listener.ctx, slot->flight);
    return slot->flight->ended ? flights_end(&slot->flight, 1, s, err) : ST_OK;
}

/* The next trial for a free slot, of the study that has had least. It waits for that study's proposal if it must: else
 * a study whose proposals take longer would never get its share. */
static enum status fill_slot(struct scheduler *s, struct slot *slot, struct error *err)
{
    bool tried[SCHED_MAX_STUDIES] = {false};
    struct share *shares[SCHED_MAX_STUDIES];

    for (size_t i = 0; i < s->n_studies; i++)
        tried[i] = !device_class_fits(s, s->studies[i], slot->worker);
    update_shares(s, shares);
    for (size_t round = 0; round < s->n_studies; round++) {
        size_t best = share_next(shares, s->n_studies, tried), i;
        if (best == s->n_studies)
            return ST_OK;
        tried[best] = true;
        if (sched_study_take(s->studies[best], slot->worker, &i))
            return start_trial(s, slot, s->studies[best], i, err);
        TRY(sched_study_ask(s->studies[best], s, err));
        if (sched_study_take(s->studies[best], slot->worker, &i)) /* it was there at once */
            return start_trial(s, slot, s->studies[best], i, err);
        if (proposer_is_busy(s->studies[best]->proposer))
            return ST_OK;
    }
    return ST_OK;
}

/* Some study that waits may use its device. */
static bool fits_any(const struct scheduler *s, const struct worker *w)
{
    for (size_t i = 0; i < s->n_studies; i++)
        if (sched_study_wants_slots(s->studies[i]) > 0 && device_class_fits(s, s->studies[i], w))
            return true;
    return false;
}

/* Workers are started for trials that could run now and have no slot. */
static void start_workers(struct scheduler *s)
{
    int64_t wants = 0, idle = 0;

    for (size_t i = 0; i < s->n_studies; i++) {
        int64_t n = sched_study_wants_slots(s->studies[i]);
        wants = n > INT64_MAX - wants ? INT64_MAX : wants + n;
    }
    EACH_SLOT (&s->workers, slot)
        idle += slot->flight == NULL && !slot->worker->leaving &&
                (slot->worker->state == WORKER_STARTING ||
                 (slot->worker->state == WORKER_READY && fits_any(s, slot->worker)));
    workers_start(&s->workers, wants - idle);
}

/* Asks for the proposals that the slots left for the next round need, and those that should wait in the queue. */
static enum status ask_ahead(struct scheduler *s, struct sched_study *ss, struct error *err)
{
    size_t n_left = 0, n_all = ss->leases.n;

    EACH_SLOT (&s->workers, slot) {
        if (!device_class_fits(s, ss, slot->worker))
            continue;
        bool left = s->n_left > 0 && slot->flight == NULL && worker_takes_trials(slot->worker);
        n_left += left;
        n_all += left || slot->flight != NULL;
    }
    size_t ahead = sched_study_lacks(ss, s, n_all, n_left) + sched_study_ahead(ss, scheduler_part(s, ss, n_all));
    bool short_of = ss->n_queued < ahead || ss->n_queued < leases_ahead(ss);
    bool node_waits = ss->n_queued < (size_t)s->nodes.waiting;

    return node_waits || (ss->n_flights + ss->leases.n > 0 && short_of) ? sched_study_ask(ss, s, err) : ST_OK;
}

static enum status fill_slots(struct scheduler *s, struct error *err)
{
    size_t n_started = 0;

    s->n_left = 0;
    if (s->stopping)
        return ST_OK;
    scheduler_settle(s, NULL);
    start_workers(s);
    EACH_SLOT (&s->workers, slot) {
        if (slot->flight != NULL || !worker_takes_trials(slot->worker))
            continue;
        if (n_started == STARTS_MAX) {
            s->n_left++;
            continue;
        }
        device_class_report(s, slot->worker);
        TRY(fill_slot(s, slot, err));
        n_started += slot->flight != NULL;
    }
    for (size_t i = 0; i < s->n_studies; i++)
        TRY(ask_ahead(s, s->studies[i], err));
    return ST_OK;
}

/* ---- events ---- */

/* What this round has brought so far is stored; nothing of it has been reported before. */
static enum status store_round(struct scheduler *s, struct error *err)
{
    size_t n = s->n_ended;

    s->n_ended = 0; /* a failure ends the program */
    TRY(reports_flush(&s->reports, err));
    return flights_end(s->ended, n, s, err);
}

/* What workers open their devices for: a study that waits, or, when all have enough by now, any. */
static void choose_config(struct scheduler *s)
{
    const struct sched_study *chosen = s->n_studies > 0 ? s->studies[0] : NULL;

    for (size_t i = s->n_studies; i-- > 0;)
        if (sched_study_wants_slots(s->studies[i]) > 0)
            chosen = s->studies[i];
    s->workers.config = chosen != NULL ? chosen->view.study.config : NULL;
    s->workers.config_of = chosen != NULL ? chosen->view.study.id : 0;
}

/* No trial of that study can run: check_end pauses it. */
static void take_other_game(struct scheduler *s, int64_t study_id, const char *why)
{
    for (size_t i = 0; i < s->n_studies; i++) {
        struct sched_study *ss = s->studies[i];
        if (ss->view.study.id == study_id && ss->state != SCHED_STUDY_ENDED && ss->err.status == ST_OK)
            (void)FAIL(&ss->err, ST_VERSION, "%s", why);
    }
}

static enum status on_event(struct scheduler *s, const struct workers_event *e, struct error *err)
{
    switch (e->type) {
    case WORKERS_READY:
        return ST_OK;
    case WORKERS_ALIVE:
        for (int lane = 0; lane < e->worker->spec.lanes; lane++)
            if (e->worker->slots[lane].flight != NULL)
                TRY(flight_alive(e->worker->slots[lane].flight, s->now_s, err));
        return ST_OK;
    case WORKERS_MESSAGE:
        TRY(flight_message(e->slot->flight, e->message, &s->reports, s->now_s, err));
        if (e->slot->flight->ended)
            s->ended[s->n_ended++] = e->slot->flight;
        return ST_OK;
    case WORKERS_TRIAL_DIED:
        TRY(store_round(s, err));
        return flight_died(e->slot->flight, s, e->guilt, e->how, err);
    case WORKERS_OTHER_GAME:
        take_other_game(s, e->worker->config_of, e->how);
        return ST_OK;
    }
    return ST_OK;
}

static enum status take_worker_events(struct scheduler *s, struct error *err)
{
    struct error second = {0}; /* the first failure counts */
    struct workers_event e;
    enum status rc = ST_OK, stored;

    choose_config(s);
    s->workers.stays = s->stay;
    while (rc == ST_OK && workers_next(&s->workers, &e))
        rc = on_event(s, &e, err);
    stored = store_round(s, rc == ST_OK ? err : &second);
    return rc != ST_OK ? rc : stored;
}

enum status scheduler_watch(struct scheduler *s, int fd, sched_fd_fn *fn, void *ctx, struct error *err)
{
    if (s->n_watches == SCHED_MAX_WATCHES)
        return FAIL(err, ST_LIMIT, "more than %d connections at a time", SCHED_MAX_WATCHES);
    s->watches[s->n_watches++] = (struct sched_watch){fd, fn, ctx};
    return ST_OK;
}

void scheduler_unwatch(struct scheduler *s, int fd)
{
    for (size_t i = 0; i < s->n_watches; i++)
        if (s->watches[i].fd == fd) {
            s->watches[i] = s->watches[--s->n_watches];
            return;
        }
}

/* Waits for something; which is then found by looking at all. */
static enum status wait_events(struct scheduler *s, struct error *err)
{
    struct pollfd *fds = s->fds;
    size_t n = 0, n_watched;
    int timeout_ms = s->n_left > 0 ? 0 : TICK_MS;
    uint64_t count;

    for (size_t i = 0; i < s->n_watches; i++)
        fds[n++] = (struct pollfd){.fd = s->watches[i].fd, .events = POLLIN};
    n_watched = n;
    fds[n++] = (struct pollfd){.fd = s->wake_fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = s->store != NULL ? store_hint_fd(s->store) : -1, .events = POLLIN};
    n = workers_poll(&s->workers, fds, n, &timeout_ms);
    if (poll(fds, (nfds_t)n, timeout_ms) < 0 && errno != EINTR)
        return FAIL(err, ST_IO, "cannot wait for the workers: %s", strerror(errno));
    while (read(s->wake_fd, &count, sizeof count) > 0)
        ;
    if (s->store != NULL && store_hint_take(s->store, STORE_HINT_MAIL) && s->on_mail != NULL)
        s->on_mail(s->mail_ctx, 0);
    for (size_t k = 0; k < n_watched; k++)
        for (size_t i = 0; fds[k].revents != 0 && i < s->n_watches; i++)
            if (s->watches[i].fd == fds[k].fd) { /* still watched */
                s->watches[i].fn(s->watches[i].ctx, fds[k].revents);
                break;
            }
    return ST_OK;
}

static enum status take_events(struct scheduler *s, struct error *err)
{
    s->now_s = clock_mono_s();
    double gap_s = workers_begin(&s->workers, s->fds, s->now_s);
    if (gap_s > 0) {
        for (size_t i = 0; i < s->n_studies; i++)
            sched_study_slept(s->studies[i], gap_s);
        event_ring_add(&s->workers.events, "the program stood still for %.0f s", gap_s);
    }
    TRY(take_worker_events(s, err));
    for (size_t i = 0; i < s->n_studies; i++)
        if (s->studies[i]->state != SCHED_STUDY_ENDED) {
            TRY(sched_study_collect(s->studies[i], err));
            TRY(leases_round(s, s->studies[i], err));
        }
    return ST_OK;
}

static bool is_done(const struct scheduler *s)
{
    if (s->stay && !s->stopping)
        return false;
    for (size_t i = 0; i < s->n_studies; i++)
        if (s->studies[i]->state != SCHED_STUDY_ENDED)
            return false;
    return true;
}

static enum status no_device_left(const struct scheduler *s, struct error *err)
{
    const struct worker *w = &s->workers.v[s->workers.n - 1];
    const char *study = s->n_studies > 0 ? s->studies[0]->view.study.name : "NAME";

    while (w > s->workers.v && w->last_death[0] == '\0') /* one of a host that another of its workers found wrong */
        w--;
    if (w->refused) /* its greeting or `hello` names the remedy */
        return FAIL(err, ST_DEVICE, "%s", w->last_death);
    return FAIL(
        err, ST_DEVICE,
        "%d worker processes died in a row, the last was %s; see `trawl doctor`, then continue with --resume %s",
        (w->health.quarantined || w->remote == NULL ? w->health.deaths : w->remote->health.deaths) + 1, w->last_death,
        study);
}

enum status scheduler_run(struct scheduler *s, struct error *err)
{
    s->now_s = s->workers.now_s = clock_mono_s();
    for (;;) {
        if (signals_stop())
            scheduler_stop(s);
        TRY(end_studies(s, err));
        if (is_done(s))
            break;
        TRY(fill_slots(s, err));
        if (supervise_all_quarantined(&s->workers) && !s->stay && !s->stopping)
            return no_device_left(s, err);
        scheduler_lock_is_free(s);
        TRY(wait_events(s, err));
        TRY(take_events(s, err));
        supervise_round(&s->workers);
        TRY(store_watch_round(s, err));
        TRY(nodes_round(s, err));
        if (s->listener.on_tick != NULL && s->now_s - s->ticked_s >= TICK_MS / 1000.0) {
            s->ticked_s = s->now_s;
            s->listener.on_tick(s->listener.ctx);
        }
        end_leaving(s, 0, false);
    }
    return store_watch_end(s, s->stopping ? ST_INTERRUPTED : ST_OK, err);
}
