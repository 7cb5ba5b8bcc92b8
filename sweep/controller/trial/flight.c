/* flight.c - one trial in flight: messages of its worker, how it is stopped, what is recorded.
 * Invariants: (1) a message about another trial or attempt than the one in flight changes nothing; (2) every fact is
 * stored as soon as it is known, a result with the others of its round, and is reported afterwards, so that a kill
 * loses nothing that was seen; (3) a flight ends exactly once. */
#include "sweep/controller/trial/flight.h"

#include "base/text/json.h"
#include "envs/plugin/library.h"
#include "study/space/branches.h"
#include "study/view/checkpoint_label.h"
#include "study/setup/outcomes.h"
#include "study/setup/setup.h"
#include "sweep/controller/trial/checkpoints.h"
#include "sweep/controller/trial/course.h"
#include "sweep/launch/device_class.h"
#include "sweep/controller/trial/overrun.h"
#include "sweep/controller/trial/reports.h"
#include "sweep/controller/trial/run_message.h"
#include "sweep/controller/share.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/trial/track_rows.h"
#include "sweep/launch/file_chunks.h"
#include "sweep/launch/proto.h"

#define MAX_LOSSES 2 /* workers killed or frozen from outside under a trial, after which it runs again */
#define MAX_DEATHS 3 /* workers that died under a trial, unless another trial is known to be guilty */

static struct trial *trial_of(const struct flight *f)
{
    return &f->ss->view.trials[f->i];
}

/* A trial that cannot be sent to a worker fails at once, and no worker is to blame. */
static void refuse(struct flight *f, const char *why)
{
    f->result.result = (struct trial_result){
        .state = TRIAL_FAILED, .score = NAN, .perf = NAN, .cost_s = 0, .device_s = NAN, .env_steps = 0};
    snprintf(f->result.reason, sizeof f->result.reason, "%.500s", why);
    f->ended = true;
}

static enum status settle_config(struct sched_study *ss, struct trial *t, const struct worker *w, struct error *err)
{
    const struct run_device device = {w->kind, w->vector_units, w->threads};
    const bool same = ss->kind[0] != '\0' && strcmp(w->kind, ss->kind) == 0;

    /* Proposed since then and never started, it names this device already: parsing and writing it again would cost more
     * than the rest. */
    if (same && t->attempt == 0 && (size_t)t->number >= ss->kind_from)
        return ST_OK;
    if (!same && strcmp(w->kind, "cuda") == 0 && !setup_is_program(ss->setup)) { /* a CPU has more to settle */
        snprintf(ss->kind, sizeof ss->kind, "%s", w->kind);
        ss->kind_from = ss->view.n;
    }
    return sched_study_settle(ss, t, &device, err);
}

enum status flight_start(struct slot *slot, struct sched_study *ss, size_t i, double hang_s, double now_s,
                         struct error *err)
{
    struct worker *w = slot->worker;
    struct trial *t = &ss->view.trials[i];
    struct flight *f;
    struct error gone = {0};
    bool resume = false;
    char path[PATH_MAX];
    enum status rc;

    TRY(checkpoint_to_resume(ss->store, ss->view.study.name, t, t->attempt, &resume, err));
    if (!resume) /* a checkpoint names the config that it was made with */
        TRY(settle_config(ss, t, w, err));
    STORE_INSIST(rc, ss->store, err,
                 resume ? store_trial_resume(ss->store, t->id, w->device, slot->name, err)
                        : store_trial_start(ss->store, t->id, w->device, slot->name, err));
    TRY(rc);
    mem_set_text(&t->device, w->device);
    mem_set_text(&t->slot, slot->name);
    t->state = TRIAL_RUNNING;
    t->started_ms = clock_utc_ms();
    t->attempt++;
    f = mem_alloc(sizeof *f);
    f->ss = ss;
    f->i = i;
    f->slot = slot;
    f->charged_s = f->start_s = now_s;
    f->score = f->trained_cost_s = NAN;
    f->resumed = resume;
    f->cost_factor = device_costs_scale(ss->setup->sweep.device_costs, w->device_class);
    ss->n_queued--;
    ss->n_flights++;
    ss->n_started++;
    slot->flight = f;
    TRY(track_rows_start(ss->track, t, !resume && t->attempt > 1, err));
    checkpoint_path(ss, t, path);
    cJSON *message = run_message(&ss->view, t, store_path(ss->store), path, resume);
    if (slot_run(slot, t->id, t->attempt, hang_s, message, now_s, &gone) != ST_OK)
        refuse(f, gone.text);
    return ST_OK;
}

static enum status take_metrics(struct flight *f, const cJSON *message, struct reports *reports, double now_s,
                                struct error *err)
{
    struct metric_report report;

    if (!report_parse(message, f->slot->trial_id, f->cost_factor, &report))
        return ST_OK; /* of another program: nothing to keep */
    const double wall_s = report.points[0].wall_s;
    for (size_t i = 0; i < report.n; i++)
        if (strcmp(report.points[i].name, f->ss->view.study.metric) == 0)
            f->score = report.points[i].value;
    f->reported_s = wall_s;
    if (f->resumed)
        f->saved_s = fmax(wall_s - f->cost_factor * (now_s - f->start_s), 0);
    f->resumed = false;
    report.outbox_json = track_rows_metrics(f->ss->track, &report);
    TRY(reports_add(reports, f->ss->store, &report, err));
    TRY(course_take(f->ss, f->i, &report, wall_s, reports, err));
    TRY(flight_alive(f, now_s, err));
    return ST_OK;
}

/* A shorter run that this one holds becomes a trial; once, whatever attempt comes by. The run continues. */
static enum status take_branch(struct flight *f, const cJSON *message, double now_s, struct error *err)
{
    double eval_s = json_f64_or(message, "eval_s", 0);
    if (f->looked_s > 0) /* messages that waited for the store arrive together */
        f->start_s += fmax(now_s - f->looked_s, isfinite(eval_s) ? eval_s : 0);
    f->looked_s = 0;
    return course_take_branch(f->ss, f->i, message, f->cost_factor, err);
}

/* Its worker could not take the checkpoint: what the curve has is not of the run that begins now. */
static enum status begin_again(struct flight *f, const char *reason, struct error *err)
{
    enum status rc;

    f->resumed = false;
    log_warn("%s: trial %lld begins again: %s", f->ss->view.study.name, (long long)trial_of(f)->number,
             reason != NULL ? reason : "its checkpoint cannot be taken");
    STORE_INSIST(rc, f->ss->store, err, store_trial_clear(f->ss->store, f->slot->trial_id, err));
    return rc;
}

/* ---- checkpoints of a remote worker ---- */

/* It asks for the next bytes of its checkpoint. */
static void send_chunk(struct flight *f, const cJSON *message)
{
    cJSON *json = proto_message("chunk");
    struct error why = {0};
    int64_t next, size;
    char path[PATH_MAX];

    checkpoint_path(f->ss, trial_of(f), path);
    int64_t at = json_i64_or(message, "at", 0);
    json_add_i64(json, "trial", f->slot->trial_id);
    json_add_i64(json, "attempt", f->slot->attempt);
    if (file_chunk_add(json, path, at, &next, &size, &why) != ST_OK)
        json_add_str(json, "reason", why.text);
    worker_send(f->slot->worker, json);
}

static void take_chunk(struct flight *f, const cJSON *message)
{
    char path[PATH_MAX];
    struct error why = {0};

    checkpoint_path(f->ss, trial_of(f), path);
    if (f->upload == NULL)
        f->upload = mem_alloc(sizeof *f->upload);
    f->uploaded = false;
    if (file_make_folder_of(path, 0777, &why) != ST_OK ||
        file_chunk_take(f->upload, path, message, &f->uploaded, &why) != ST_OK)
        log_warn("%s: a checkpoint of trial %lld did not arrive: %s; the one before counts, continuing",
                 f->ss->view.study.name, (long long)trial_of(f)->number, why.text);
}

static enum status take_checkpoint(struct flight *f, const cJSON *message, double now_s, struct error *err)
{
    bool remote = f->slot->worker->spec.place != PLACE_HERE;
    const char *path = json_get_str(message, "path");
    int64_t env_steps = 0;
    char ours[PATH_MAX];
    enum status rc;

    if (path == NULL || !json_get_i64(message, "env_steps", &env_steps) || (remote && !f->uploaded))
        return ST_OK;
    if (remote) { /* path is of another machine */
        checkpoint_path(f->ss, trial_of(f), ours);
        path = ours;
    }
    f->uploaded = false;
    STORE_INSIST(rc, f->ss->store, err, store_checkpoint_add(f->ss->store, f->slot->trial_id, env_steps, path, err));
    f->saved_s = flight_cost_s(f, now_s);
    return rc;
}

enum status flight_message(struct flight *f, const cJSON *message, struct reports *reports, double now_s,
                           struct error *err)
{
    const char *type = json_get_str(message, "type"), *needed[OUTCOMES_MAX];

    if (type != NULL && strcmp(type, "metrics") == 0)
        return take_metrics(f, message, reports, now_s, err);
    if (type != NULL && strcmp(type, "training") == 0) {
        f->start_s = now_s; /* only training counts as cost, so a budget is cut by its clock */
    } else if (type != NULL && strcmp(type, "again") == 0) {
        TRY(reports_flush(reports, err));
        return begin_again(f, json_get_str(message, "reason"), err);
    } else if (type != NULL && strcmp(type, "evaluating") == 0 && cJSON_IsTrue(json_get(message, "branch"))) {
        f->looked_s = now_s;
    } else if (type != NULL && strcmp(type, "evaluating") == 0) {
        (void)json_get_f64(message, "cost_s", &f->trained_cost_s);
        f->trained_cost_s *= f->cost_factor;
    } else if (type != NULL && strcmp(type, "fetch") == 0) {
        send_chunk(f, message);
    } else if (type != NULL && strcmp(type, "chunk") == 0) {
        take_chunk(f, message);
    } else if (type != NULL && strcmp(type, "checkpoint") == 0) {
        TRY(reports_flush(reports, err));
        return take_checkpoint(f, message, now_s, err);
    } else if (type != NULL && strcmp(type, "branch") == 0) {
        TRY(reports_flush(reports, err));
        return take_branch(f, message, now_s, err);
    } else if (type != NULL && strcmp(type, "result") == 0) {
        run_result_read(&f->result, message, f->ss->view.study.metric, f->cost_factor);
        if (cJSON_IsTrue(json_get(message, "other_game"))) {
            /* no fault of the trial: it is queued again */
            f->result.result.state = TRIAL_STOPPED;
            if (f->ss->err.status == ST_OK)
                (void)FAIL(&f->ss->err, ST_VERSION, "%s", f->result.reason);
        }
        f->ended = true;
        slot_free(f->slot, now_s); /* if its worker dies now, this trial is none of those that it ran */
        if (outcomes_needed(&f->ss->view.search.outcomes, needed) > 0) /* its last reports may have them */
            TRY(reports_flush(reports, err));
        TRY(run_result_settle(&f->result, &f->ss->view, f->ss->store, f->slot->trial_id, message, err));
    }
    return ST_OK;
}

double flight_cost_s(const struct flight *f, double now_s)
{
    double alone_s = fmax(f->cost_factor * ((f->looked_s > 0 ? f->looked_s : now_s) - f->start_s),
                          f->reported_s); /* reported: with what it had before it was stopped */

    if (isfinite(f->trained_cost_s))
        return f->trained_cost_s;
    return f->slot->worker->spec.lanes > 1 ? f->reported_s : alone_s;
}

double flight_at_risk_s(const struct flight *f, double now_s)
{
    return f->slot->trains ? fmax(flight_cost_s(f, now_s) - f->saved_s, 0) : 0;
}

void flight_ask_stop(struct flight *f, enum flight_stop why, double now_s)
{
    if (f->ended) /* its result is here, and its slot is free already */
        return;
    if (why == FLIGHT_REQUEUE) { /* it will run again, whatever it was to be stopped for */
        f->stop = why;
        f->slot->saves = true;
    }
    if (f->slot->asked_s > 0 || (why != FLIGHT_REQUEUE && isfinite(f->trained_cost_s)))
        return; /* trained to its end, it costs no more, and its evaluation has a limit of its own */
    f->stop = why;
    if (why == FLIGHT_LIMIT)
        snprintf(f->result.reason, sizeof f->result.reason, "%s", f->ss->end.text);
    slot_ask_stop(f->slot, why == FLIGHT_REQUEUE, now_s);
}

/* Where the whole program was stopped for a while (Ctrl-Z, a debugger), time is not a measure of what the trial costs. */
static bool overruns(struct flight *f, double now_s)
{
    const struct study_view *v = &f->ss->view;
    bool by_time = v->search.cost == SEARCH_COST_WALL || v->search.cost == SEARCH_COST_DEVICE;

    return by_time && !f->slot->slept && f->ss->setup->sweep.stop_overruns &&
           overrun_is_hopeless(v, f->i, flight_cost_s(f, now_s), f->score, f->result.reason, sizeof f->result.reason);
}

enum status flight_alive(struct flight *f, double now_s, struct error *err)
{
    const struct worker *w = f->slot->worker;

    if (f->ended)
        return ST_OK;
    TRY(track_rows_system(f->ss->track, f->slot->trial_id, f->slot->env_steps, w->memory_bytes, w->device_memory_bytes,
                          err));
    if (f->stop == FLIGHT_NO_STOP &&
        track_rows_stop(f->ss->track, f->slot->trial_id, f->result.reason, sizeof f->result.reason))
        flight_ask_stop(f, FLIGHT_EARLY, now_s);
    if (f->stop == FLIGHT_NO_STOP && f->slot->trains && overruns(f, now_s))
        flight_ask_stop(f, FLIGHT_EARLY, now_s);
    return ST_OK;
}

/* Frees the flight and its slot. */
static void flight_free(struct flight *f, double now_s)
{
    share_charge(&f->ss->share, now_s - f->charged_s, (double)f->ss->view.study.limits.priority);
    f->ss->n_flights--;
    f->ss->risk_moved = f->ss->risk_moved || f->ss->at_risk_s > 0;
    if (f->slot->runs)
        slot_free(f->slot, now_s);
    f->slot->flight = NULL;
    flight_forget(f);
}

void flight_forget(struct flight *f)
{
    if (f == NULL)
        return;
    if (f->upload != NULL)
        file_chunks_drop(f->upload);
    mem_free(f->upload);
    mem_free(f->result.outcomes);
    mem_free(f);
}

static enum status requeue(struct flight *f, enum trial_requeue why, double now_s, struct error *err)
{
    struct trial *t = trial_of(f);
    enum status rc;

    STORE_INSIST(rc, f->ss->store, err, store_trial_requeue(f->ss->store, t->id, why, err));
    TRY(rc);
    t->state = TRIAL_QUEUED;
    t->deaths += why == REQUEUE_DIED;
    t->losses += why == REQUEUE_LOST;
    f->ss->view.study.lost_s += flight_at_risk_s(f, now_s);
    f->ss->n_queued++;
    TRY(track_rows_pause(f->ss->track, t->id, f->slot->env_steps, err));
    study_view_update(&f->ss->view, f->i);
    return ST_OK;
}

/* Stopped for others' sake: it runs again. */
static bool runs_again(const struct flight *f)
{
    return f->result.result.state == TRIAL_STOPPED && f->stop != FLIGHT_LIMIT && f->stop != FLIGHT_EARLY;
}

/* The results of those that do not run again, in one transaction. */
static enum status record(struct flight *const *flights, size_t n, struct error *err)
{
    MEM_LOCAL struct trial_end *ends = mem_array(n, sizeof *ends);
    size_t n_ends = 0;
    enum status rc = ST_OK;

    for (size_t k = 0; k < n; k++) {
        struct flight *f = flights[k];
        if (runs_again(f))
            continue;
        const struct trial_result *r = run_result_texts(&f->result);
        const char *row = track_rows_result(f->ss->track, r);
        ends[n_ends++] = (struct trial_end){trial_of(f)->id, r, row != NULL ? mem_strdup(row) : NULL};
    }
    if (n_ends > 0)
        STORE_INSIST(rc, flights[0]->ss->store, err, store_trials_finish(flights[0]->ss->store, ends, n_ends, err));
    for (size_t k = 0; k < n_ends; k++)
        mem_free((void *)ends[k].outbox_json);
    return rc;
}

/* Frees the flight and reports how its trial ended. */
static void free_and_report(struct flight *f, struct scheduler *s)
{
    struct sched_study *ss = f->ss;
    const size_t i = f->i;

    flight_free(f, s->now_s);
    sched_study_report_end(ss, s, i);
}

enum status flights_end(struct flight *const *flights, size_t n, struct scheduler *s, struct error *err)
{
    TRY(record(flights, n, err));
    for (size_t k = 0; k < n; k++) {
        struct flight *f = flights[k];
        if (runs_again(f))
            TRY(requeue(f, REQUEUE_STOPPED, s->now_s, err));
        else
            TRY(sched_study_take_result(f->ss, f->i, &f->result.result, err));
        free_and_report(f, s);
    }
    return ST_OK;
}

enum status flight_died(struct flight *f, struct scheduler *s, enum slot_guilt guilt, const char *how,
                        struct error *err)
{
    struct worker *w = f->slot->worker;
    char tail[GAME_LOG_BYTES + 1];
    enum status rc;

    if (w->spec.place == PLACE_HERE && env_library_has_changed(f->ss->view.setup->env))
        guilt = SLOT_INNOCENT; /* what is overwritten in place crashes, and no worker here opens it again */
    if (f->stop == FLIGHT_REQUEUE || guilt == SLOT_INNOCENT) {
        rc = requeue(f, REQUEUE_STOPPED, s->now_s, err);
    } else if (guilt == SLOT_SUSPECT && trial_of(f)->deaths + 1 < MAX_DEATHS) {
        rc = requeue(f, REQUEUE_DIED, s->now_s, err);
    } else if (guilt == SLOT_OUTSIDE && trial_of(f)->losses < MAX_LOSSES) {
        rc = requeue(f, REQUEUE_LOST, s->now_s, err);
    } else {
        f->result.result = (struct trial_result){.state = TRIAL_FAILED,
                                                 .score = NAN,
                                                 .perf = NAN,
                                                 .device_s = NAN,
                                                 .cost_s = flight_cost_s(f, s->now_s),
                                                 .env_steps = f->slot->env_steps};
        if (guilt == SLOT_GUILTY)
            snprintf(f->result.reason, sizeof f->result.reason, "the worker process died: %s", how);
        else if (guilt == SLOT_OUTSIDE)
            snprintf(f->result.reason, sizeof f->result.reason,
                     "its worker process was ended from outside %d times, the last time: %s; `trawl retry %s --trial "
                     "%lld` runs it again",
                     MAX_LOSSES + 1, how, f->ss->view.study.name, (long long)trial_of(f)->number);
        else
            snprintf(f->result.reason, sizeof f->result.reason,
                     "%d worker processes died while they ran it, the last: %s", MAX_DEATHS, how);
        if (worker_log_tail(w, tail) != NULL)
            snprintf(f->result.log_tail, sizeof f->result.log_tail, "%s", tail);
        return flights_end(&f, 1, s, err);
    }
    if (rc == ST_OK)
        free_and_report(f, s);
    return rc;
}
