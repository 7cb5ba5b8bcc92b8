/* controller_socket.c - what a running controller does when it is talked to.
 * Invariant: the store's row is changed first, then what runs follows it; a crash in between loses nothing. */
#include "sweep/control/controller_socket.h"

#include "base/json.h"
#include "base/status.h"
#include "store/store.h"
#include "study/search.h"
#include "study/search_widen.h"
#include "sweep/control/control_command.h"
#include "sweep/control/control_server.h"
#include "sweep/control/status_json.h"
#include "sweep/control/submit.h"
#include "sweep/controller/disk_full.h"
#include "sweep/controller/limits.h"
#include "sweep/controller/proposer.h"
#include "sweep/controller/scheduler.h"
#include "sweep/controller/study_run.h"
#include "sweep/signals.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"

/* ---- studies and their places ---- */

/* A study that is paused, with nothing in flight, needs no place: `trawl continue` takes it up again from the store. */
static bool free_a_place(struct live *live)
{
    struct scheduler *s = live->sched;

    for (size_t i = 0; i < s->n_studies; i++) {
        struct study_run *run = s->studies[i];
        if (run->state != STUDY_RUN_PAUSED || run->n_flights > 0 || proposer_is_busy(run->proposer))
            continue;
        scheduler_remove(s, run);
        study_run_destroy(run);
        return true;
    }
    return false;
}

enum status live_add(struct live *live, const char *name, struct error *err)
{
    struct study_run *run = NULL;
    enum status rc;

    if (live->daemon && live->sched->n_studies == SCHED_MAX_STUDIES && !free_a_place(live)) {
        live->waiting = true;
        scheduler_tell(live->sched, "%s waits its turn", name);
        return ST_OK;
    }
    TRY(study_run_open(&run, live->store, name, err));
    rc = scheduler_add(live->sched, run, err);
    if (rc != ST_OK)
        study_run_destroy(run);
    return rc;
}

/* It does not seem to run: who continues it when the cause is mended is told what it was. */
static void leave_alone(struct live *live, const struct study *study, const struct error *why)
{
    struct error ignored = {0};

    log_warn("%s is left alone, paused: %s", study->name, why->text);
    if (store_study_set_state(live->store, study->id, STUDY_PAUSED, "error", why->text, &ignored) != ST_OK)
        log_warn("%s, continuing", ignored.text);
}

enum status live_take_studies(struct live *live, size_t *ret_n, struct error *err)
{
    struct study *studies = NULL;
    size_t n = 0;
    enum status rc = store_study_list(live->store, &studies, &n, err);

    *ret_n = 0;
    live->waiting = false;
    for (size_t i = 0; rc == ST_OK && i < n && !live->waiting; i++) { /* the oldest first */
        struct error why = {0};
        if (studies[i].state != STUDY_RUNNING || scheduler_find(live->sched, studies[i].name) != NULL)
            continue;
        if (live_add(live, studies[i].name, &why) == ST_OK)
            *ret_n += !live->waiting;
        else if (!signals_stop()) /* else the next daemon takes it */
            leave_alone(live, &studies[i], &why);
    }
    study_list_free(studies, n);
    return rc;
}

void live_take_turns(struct live *live)
{
    struct error why = {0};
    size_t n;

    if (!live->waiting || live->sched->stopping || live->sched->n_waits > 1 || live->sched->lock_told)
        return;
    if (live->sched->n_studies == SCHED_MAX_STUDIES && !free_a_place(live))
        return;
    if (live_take_studies(live, &n, &why) != ST_OK) {
        log_warn("%s; studies that wait their turn are looked for again, continuing", why.text);
        live->waiting = true;
    }
}

static void say_it_waits(const struct live *live, const char *name, char *text, size_t size)
{
    size_t n = strlen(text);

    if (live->waiting && scheduler_find(live->sched, name) == NULL)
        snprintf(text + n, size - n, "; it waits its turn, %d studies run", SCHED_MAX_STUDIES);
}

static void copy_limits(struct study *to, const struct study *from)
{
    to->trials_max = from->trials_max;
    to->budget_s = from->budget_s;
    to->wall_max_s = from->wall_max_s;
    to->device_max_s = from->device_max_s;
    to->has_target = from->has_target;
    to->target_score = from->target_score;
    to->gain_min = from->gain_min;
    to->priority = from->priority;
    to->state = from->state;
}

/* What runs follows the row; study is the row as the command left it. */
static enum status follow_row(struct live *live, const struct control_command *c, const struct study *study,
                              struct error *err)
{
    struct study_run *run = scheduler_find(live->sched, study->name);

    if (run == NULL || run->state == STUDY_RUN_ENDED) {
        bool starts = study->state == STUDY_RUNNING &&
                      (c->kind == CONTROL_CONTINUE || c->kind == CONTROL_ADD || c->kind == CONTROL_RETRY);
        if (starts && live->daemon && run == NULL)
            return live_add(live, study->name, err);
        return ST_OK;
    }
    scheduler_settle(live->sched, run);
    copy_limits(&run->view.study, study);
    switch (c->kind) {
    case CONTROL_STOP:
        scheduler_end(live->sched, run, true, "user", "stopped by `trawl stop`");
        break;
    case CONTROL_PAUSE:
        scheduler_pause(live->sched, run, true);
        if (c->now)
            scheduler_recall(live->sched, run);
        break;
    case CONTROL_RETRY:
        TRY(study_run_adopt(run, err));
        if (study->state == STUDY_RUNNING)
            scheduler_go_on(live->sched, run);
        break;
    case CONTROL_CONTINUE:
    case CONTROL_ADD:
        if (study->state == STUDY_RUNNING)
            scheduler_go_on(live->sched, run);
        break;
    case CONTROL_PRIORITY:
    case CONTROL_KINDS:
        break;
    }
    return ST_OK;
}

static enum status on_command(struct live *live, const cJSON *request, cJSON *answer, struct error *err)
{
    struct control_command command;
    struct study study = {0};
    char text[512] = "";
    enum status rc;

    TRY(control_command_from_json(request, &command, err));
    TRY(store_study_find(live->store, command.study, &study, err));
    rc = control_command_apply(live->store, &command, &study, text, sizeof text, err);
    if (rc == ST_OK)
        rc = follow_row(live, &command, &study, err);
    if (rc == ST_OK && study.state == STUDY_RUNNING)
        say_it_waits(live, command.study, text, sizeof text);
    if (rc == ST_OK && !live->daemon && scheduler_find(live->sched, command.study) == NULL) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n,
                 "; written to the store: the sweep that holds it runs another study, `trawl daemon` would run both");
    }
    if (rc == ST_OK && !json_add_str(answer, "text", text))
        rc = FAIL(err, ST_NOMEM, "out of memory for an answer");
    if (rc == ST_OK)
        log_debug("%s", text);
    study_free(&study);
    return rc;
}

static enum status on_status(struct live *live, const cJSON *request, cJSON *answer, struct error *err)
{
    const char *name = json_get_str(request, "study");
    struct sweep_status status;
    struct study_run *run = name != NULL ? scheduler_find(live->sched, name) : NULL;
    cJSON *json, *names = cJSON_CreateArray();
    bool ok = names != NULL;

    live_status_take(live->sched, run, &status);
    status.daemon = live->daemon;
    json = live_status_to_json(&status);
    for (size_t i = 0; ok && i < live->sched->n_studies; i++)
        if (live->sched->studies[i]->state != STUDY_RUN_ENDED)
            ok = cJSON_AddItemToArray(names, cJSON_CreateString(live->sched->studies[i]->view.study.name));
    ok = json_add(answer, "live", json) && ok;
    ok = json_add(answer, "studies", names) && ok; /* that it serves */
    return ok ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for an answer");
}

static enum status on_submit(struct live *live, const cJSON *request, cJSON *answer, struct error *err)
{
    struct submission submission;
    char text[256];
    enum status rc;

    TRY(submission_from_json(request, &submission, err));
    rc = submission_store(live->store, &submission, err);
    if (rc == ST_OK) {
        struct error why = {0};
        rc = live_add(live, submission.study.name, &why);
        if (rc != ST_OK) { /* the row stays, so that nothing is lost; it waits until somebody mends the cause */
            leave_alone(live, &submission.study, &why);
            (void)FAIL(err, rc, "%s", why.text);
        }
    }
    snprintf(text, sizeof text, "the daemon has study %s", submission.study.name);
    say_it_waits(live, submission.study.name, text, sizeof text);
    if (rc == ST_OK && !json_add_str(answer, "text", text))
        rc = FAIL(err, ST_NOMEM, "out of memory for an answer");
    submission_free(&submission);
    return rc;
}

/* A new limit of trials must leave room, and be known before anything changes; the old one may stand. */
static enum status check_trials(struct live *live, const struct study *study, int64_t before, struct error *err)
{
    int64_t n;

    if (study->trials_max == before)
        return ST_OK;
    TRY(study_limits_count_trials(live->store, study, &n, err));
    return study_limits_check_trials(study->name, study->trials_max, n, err);
}

/* Wider ranges for a study that is served or not; run: NULL when not. */
static enum status take_space(struct live *live, struct study_run *run, const struct study *study, const char *text,
                              struct error *err)
{
    struct search *want = mem_alloc(sizeof *want), *stored = mem_alloc(sizeof *stored);
    char *json = NULL;
    bool is_wider;
    enum status rc = want != NULL && stored != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for a search space");

    if (rc == ST_OK)
        rc = search_from_json(text, want, err);
    if (rc == ST_OK)
        rc = search_from_json(study->space, stored, err);
    if (rc == ST_OK)
        rc = search_widen(stored, want, &is_wider, err);
    if (rc == ST_OK && run != NULL)
        rc = search_bind(stored, run->setup, err);
    if (rc == ST_OK && run != NULL)
        rc = study_run_take_space(run, stored, err);
    else if (rc == ST_OK)
        rc = search_to_json(stored, &json, err);
    if (json != NULL)
        rc = store_study_set_space(live->store, study->id, json, err);
    if (want != NULL)
        search_free(want);
    if (stored != NULL)
        search_free(stored);
    mem_free(want);
    mem_free(stored);
    mem_free(json);
    return rc;
}

/* New limits and off it goes; the limits are totals, and those that are absent stay. */
static enum status on_resume(struct live *live, const cJSON *request, cJSON *answer, struct error *err)
{
    const char *name = json_get_str(request, "study");
    struct study_run *run = name != NULL ? scheduler_find(live->sched, name) : NULL;
    struct study study = {0};
    char text[128] = "it goes on";
    int64_t before;
    enum status rc;

    if (name == NULL)
        return FAIL(err, ST_USAGE, "the request names no study");
    TRY(store_study_find(live->store, name, &study, err));
    before = study.trials_max;
    rc = submission_take_limits(request, &study, err);
    if (rc == ST_OK)
        rc = check_trials(live, &study, before, err);
    if (rc == ST_OK && json_get_str(request, "space") != NULL)
        rc = take_space(live, run, &study, json_get_str(request, "space"), err);
    if (rc != ST_OK) {
        study_free(&study);
        return rc;
    }
    study_limits_default(&study);
    rc = store_study_set_limits(live->store, &study, err);
    if (rc == ST_OK)
        rc = store_study_set_state(live->store, study.id, STUDY_RUNNING, NULL, NULL, err);
    study.state = STUDY_RUNNING;
    if (rc == ST_OK && run == NULL)
        rc = live_add(live, name, err);
    else if (rc == ST_OK) {
        scheduler_settle(live->sched, run);
        copy_limits(&run->view.study, &study);
        scheduler_go_on(live->sched, run);
    }
    if (rc == ST_OK)
        say_it_waits(live, name, text, sizeof text);
    if (rc == ST_OK && !json_add_str(answer, "text", text))
        rc = FAIL(err, ST_NOMEM, "out of memory for an answer");
    study_free(&study);
    return rc;
}

static enum status handle(void *ctx, const cJSON *request, cJSON *answer, struct error *err)
{
    struct live *live = ctx;
    const char *word = json_get_str(request, "command");
    bool waits = live->sched->n_waits > 1;

    if (word != NULL && strcmp(word, "status") == 0)
        return on_status(live, request, answer, err);
    if (live->locked)
        return FAIL(err, ST_BUSY,
                    "%s: another program keeps the store locked, and the controller waits for it; nothing was changed: "
                    "close that program (a database browser, a backup), then say it again",
                    store_path(live->store));
    if (waits) /* it would come in the middle of something */
        return FAIL(err, ST_IO,
                    "%s: the disk is full, and the controller waits for room; nothing was changed: free some space, "
                    "then say it again",
                    store_path(live->store));
    if (word != NULL && live->daemon && strcmp(word, "submit") == 0)
        return on_submit(live, request, answer, err);
    if (word != NULL && live->daemon && strcmp(word, "resume") == 0)
        return on_resume(live, request, answer, err);
    return on_command(live, request, answer, err);
}

static void on_ready(void *ctx, short revents)
{
    struct live *live = ctx;

    (void)revents;
    live->answers = true;
    control_server_serve(live->server);
    live->answers = false;
}

/* A store_wait_fn. Meanwhile who asks is answered: how things stand, or that nothing can be done now. */
static bool wait_for_room(void *ctx, const char *path, bool has_room)
{
    struct live *live = ctx;

    if (has_room) {
        scheduler_had_room(live->sched);
        return true;
    }
    bool again = scheduler_wait_for_room(live->sched, path);
    if (live->sched->n_waits > 1 && live->server != NULL && !live->answers)
        on_ready(live, 0);
    return again;
}

/* A store_locked_fn; the same for another program's lock. */
static bool wait_for_lock(void *ctx, const char *path, double waited_s)
{
    struct live *live = ctx;
    bool again = scheduler_wait_for_lock(live->sched, path, waited_s);

    if (live->sched->lock_told && live->server != NULL && !live->answers) {
        live->locked = true;
        on_ready(live, 0);
        live->locked = false;
    }
    return again;
}

/* Whoever is told to end has waited for the lock, if it was there. */
static bool give_up(void *ctx, const char *path, double waited_s)
{
    (void)ctx, (void)path, (void)waited_s;
    return false;
}

void live_open(struct live *live, struct store *store, struct scheduler *sched, bool daemon)
{
    struct error why = {0};

    *live = (struct live){.store = store, .sched = sched, .daemon = daemon};
    store_on_full(store, wait_for_room, live);
    store_on_locked(store, wait_for_lock, live);
    if (control_server_create(&live->server, store_path(store), handle, live, &why) != ST_OK ||
        scheduler_watch(sched, control_server_fd(live->server), POLLIN, on_ready, live, &why) != ST_OK) {
        log_warn("%s; `trawl pause`, `stop` and the like do not reach this sweep, continuing", why.text);
        control_server_destroy(live->server);
        live->server = NULL;
    }
}

void live_close(struct live *live)
{
    if (live->store != NULL) {
        store_on_full(live->store, NULL, NULL);
        store_on_locked(live->store, signals_stop() ? give_up : NULL, NULL);
    }
    if (live->server != NULL && live->sched != NULL)
        scheduler_unwatch(live->sched, control_server_fd(live->server));
    control_server_destroy(live->server);
    live->server = NULL;
}
