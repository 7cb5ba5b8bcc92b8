/* controller_socket.c - how a running controller answers requests.
 * Invariant: the store's row is changed first, then the running study follows it; a crash in between loses nothing. */
#include "sweep/control/controller_socket.h"

#include "base/text/json.h"
#include "study/setup/limits.h"
#include "study/space/search_widen.h"
#include "sweep/control/ask/ask_request.h"
#include "sweep/control/command/control_apply.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/socket/control_server.h"
#include "sweep/control/status_json.h"
#include "sweep/control/command/submit.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/store_watch.h"
#include "sweep/proposals/proposer.h"
#include "sweep/signals.h"

#include <sys/timerfd.h>

#define MAIL_NS 500000000 /* between two looks for requests that come through the store */
#define MAILS_AT_A_TIME 16
#define FREE_LOOK_S 1 /* between two looks for studies without a controller */

/* ---- studies and their places ---- */

/* A study that is paused, with nothing in flight, needs no place: `trawl continue` takes it up again from the store. */
static bool free_place(struct controller_socket *sock, struct sched_study *ss)
{
    if (ss->state != SCHED_STUDY_PAUSED || ss->n_flights > 0 || ss->leases.n > 0 || proposer_is_busy(ss->proposer))
        return false;
    scheduler_remove(sock->sched, ss);
    sched_study_destroy(ss);
    return true;
}

static bool free_study_slot(struct controller_socket *sock)
{
    for (size_t i = 0; i < sock->sched->n_studies; i++)
        if (free_place(sock, sock->sched->studies[i]))
            return true;
    return false;
}

/* Before a study gets another name, or goes. */
static enum status check_not_run(struct controller_socket *sock, const struct control_command *c, struct error *err)
{
    struct sched_study *ss = scheduler_find(sock->sched, c->study);
    bool asks = c->kind == CONTROL_RENAME || c->kind == CONTROL_RM || c->kind == CONTROL_PURGE;

    if (!asks || ss == NULL || (sock->daemon && free_place(sock, ss)))
        return ST_OK;
    return FAIL(err, ST_USAGE, "%s: the study %s is running; `trawl stop %s` first, or wait until it ends",
                control_kind_name(c->kind), c->study, c->study);
}

/* What people note on a trial counts at once. */
static enum status take_drop(struct sched_study *ss, int64_t number, struct error *err)
{
    struct study_view *v = &ss->view;
    struct trial t = {0};
    size_t i = (size_t)number;

    if (i >= v->n)
        return ST_OK;
    TRY(store_trial_find(ss->store, v->study.id, number, &t, err));
    mem_free(v->trials[i].dropped);
    v->trials[i].dropped = t.dropped;
    t.dropped = NULL;
    trial_free(&t);
    study_view_update(v, i);
    return ST_OK;
}

/* Opens a study of the store and gives it to the scheduler. In a daemon that serves SCHED_MAX_STUDIES already the study
 * waits its turn (sock->waiting, and scheduler_find does not find it). */
static enum status add_study(struct controller_socket *sock, const char *name, struct error *err)
{
    struct sched_study *ss = NULL;

    if (sock->daemon && sock->sched->n_studies == SCHED_MAX_STUDIES && !free_study_slot(sock)) {
        sock->waiting = true;
        event_ring_add(&sock->sched->workers.events, "%s waits its turn", name);
        return ST_OK;
    }
    TRY(sched_study_open(&ss, sock->store, name, err));
    enum status rc = scheduler_add(sock->sched, ss, err);
    if (rc != ST_OK)
        sched_study_destroy(ss);
    return rc;
}

/* Marks the study as paused with the cause, which `trawl show` reports until the cause is fixed. */
static void pause_with_error(struct controller_socket *sock, const struct study *study, const struct error *why)
{
    struct error ignored = {0};

    log_warn("%s is left alone, paused: %s", study->name, why->text);
    if (store_study_set_state(sock->store, study->id, STUDY_PAUSED, "error", why->text, &ignored) != ST_OK)
        log_warn("%s, continuing", ignored.text);
}

enum status controller_socket_take_studies(struct controller_socket *sock, size_t *ret_n, struct error *err)
{
    struct study *studies = NULL;
    size_t n = 0;
    enum status rc = store_study_list(sock->store, &studies, &n, err);

    *ret_n = 0;
    sock->waiting = false;
    for (size_t i = 0; rc == ST_OK && i < n && !sock->waiting; i++) { /* the oldest first */
        struct error why = {0};
        if (studies[i].state != STUDY_RUNNING || scheduler_find(sock->sched, studies[i].name) != NULL)
            continue;
        enum status added = add_study(sock, studies[i].name, &why);
        if (added == ST_OK)
            *ret_n += !sock->waiting;
        else if (added != ST_BUSY && !signals_stop()) /* else another controller has it, or the next daemon takes it */
            pause_with_error(sock, &studies[i], &why);
    }
    study_list_free(studies, n);
    return rc;
}

/* Since when a study of PostgreSQL that is to run is seen without a controller. */
static double free_since_s(const struct controller_socket *sock, int64_t id, double now_s)
{
    for (size_t i = 0; i < sock->n_free; i++)
        if (sock->free[i].id == id)
            return sock->free[i].since_s;
    return now_s;
}

static void take_free(struct controller_socket *sock, const struct held_study *found)
{
    AT_END(study_free) struct study study = {0};
    struct error why = {0};
    enum status rc = store_study_find(sock->store, found->name, &study, &why);

    THEN(rc, add_study(sock, found->name, &why));
    if (rc == ST_OK)
        log_info("%s had no controller; it continues here", found->name);
    else if (rc != ST_BUSY && study.id != 0)
        pause_with_error(sock, &study, &why);
}

/* Studies of sweeps that share the database and were killed: a daemon is the standby of them all. */
static void take_studies_without_controller(struct controller_socket *sock)
{
    struct held_study *found = NULL;
    struct error ignored = {0};
    struct study_without without[SCHED_MAX_STUDIES];
    size_t n = 0, n_without = 0;

    if (!store_is_address(store_path(sock->store)) || clock_mono_s() - sock->looked_s < FREE_LOOK_S)
        return;

    enum status rc = store_studies_held(sock->store, false, &found, &n, &ignored);
    double now_s = sock->looked_s = clock_mono_s(); /* after the look, which may have waited for the database */
    if (rc != ST_OK) {
        sock->n_free = 0; /* the time in which nothing was seen does not count */
        return;
    }
    for (size_t i = 0; i < n && n_without < SCHED_MAX_STUDIES && !sock->waiting; i++) {
        double since_s = free_since_s(sock, found[i].id, now_s);
        if (scheduler_find(sock->sched, found[i].name) != NULL)
            continue;
        if (now_s - since_s >= STORE_FREE_S)
            take_free(sock, &found[i]);
        else
            without[n_without++] = (struct study_without){found[i].id, since_s};
    }
    memcpy(sock->free, without, n_without * sizeof *without);
    sock->n_free = n_without;
    mem_free(found);
}

void controller_socket_take_turns(struct controller_socket *sock)
{
    struct error why = {0};
    size_t n;

    if (sock->sched->stopping || sock->sched->n_waits > 1 || sock->sched->lock_reported)
        return;
    take_studies_without_controller(sock);
    if (!sock->waiting)
        return;
    if (sock->sched->n_studies == SCHED_MAX_STUDIES && !free_study_slot(sock))
        return;
    if (controller_socket_take_studies(sock, &n, &why) != ST_OK) {
        log_warn("%s; studies that wait their turn are looked for again, continuing", why.text);
        sock->waiting = true;
    }
}

static void append_waiting(const struct controller_socket *sock, const char *name, char *text, size_t size)
{
    size_t n = strlen(text);

    if (sock->waiting && scheduler_find(sock->sched, name) == NULL)
        snprintf(text + n, size - n, "; it waits its turn, %d studies run", SCHED_MAX_STUDIES);
}

/* What runs follows the row; study is the row as the command left it. */
static enum status follow_row(struct controller_socket *sock, const struct control_command *c,
                              const struct study *study, struct error *err)
{
    struct sched_study *ss = scheduler_find(sock->sched, study->name);

    if (ss == NULL || ss->state == SCHED_STUDY_ENDED) {
        bool starts = study->state == STUDY_RUNNING &&
                      (c->kind == CONTROL_CONTINUE || c->kind == CONTROL_ADD || c->kind == CONTROL_RETRY ||
                       c->kind == CONTROL_CONFIRM || c->kind == CONTROL_EXTEND || c->kind == CONTROL_TRY);
        if (starts && sock->daemon && ss == NULL)
            return add_study(sock, study->name, err);
        return ST_OK;
    }
    scheduler_settle(sock->sched, ss);
    ss->view.study.limits = study->limits;
    ss->view.study.state = study->state;
    switch (c->kind) {
    case CONTROL_STOP:
        scheduler_end(sock->sched, ss, "stopped by `trawl stop`");
        break;
    case CONTROL_PAUSE:
        scheduler_pause(sock->sched, ss, true);
        if (c->now)
            scheduler_recall(sock->sched, ss);
        break;
    case CONTROL_RETRY:
    case CONTROL_CONFIRM:
    case CONTROL_EXTEND:
    case CONTROL_TRY:
        TRY(sched_study_adopt(ss, err));
        if (study->state == STUDY_RUNNING)
            scheduler_resume(sock->sched, ss);
        break;
    case CONTROL_CONTINUE:
    case CONTROL_ADD:
        if (study->state == STUDY_RUNNING)
            scheduler_resume(sock->sched, ss);
        break;
    case CONTROL_DROP:
        return take_drop(ss, c->trial, err);
    case CONTROL_PRIORITY:
    case CONTROL_RENAME:
    case CONTROL_NOTE:
    case CONTROL_TAG:
    case CONTROL_RM:
    case CONTROL_PURGE:
    case CONTROL_KINDS:
        break;
    }
    return ST_OK;
}

static enum status on_command(struct controller_socket *sock, const cJSON *request, cJSON *answer, struct error *err)
{
    struct control_command command;
    AT_END(study_free) struct study study = {0};
    char text[512] = "";

    TRY(control_command_from_json(request, &command, err));
    TRY(check_not_run(sock, &command, err));
    TRY(store_study_find(sock->store, command.study, &study, err));
    TRY(control_command_apply(sock->store, &command, &study, text, sizeof text, err));
    TRY(follow_row(sock, &command, &study, err));
    if (study.state == STUDY_RUNNING)
        append_waiting(sock, command.study, text, sizeof text);
    if (!sock->daemon && command.kind <= CONTROL_TRY && scheduler_find(sock->sched, command.study) == NULL) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n,
                 "; written to the store: the sweep that holds it runs another study, `trawl daemon` would run both");
    }
    json_add_str(answer, "text", text);
    log_debug("%s", text);
    return ST_OK;
}

static void on_status(struct controller_socket *sock, const cJSON *request, cJSON *answer)
{
    const char *name = json_get_str(request, "study");
    struct sweep_status status;
    struct sched_study *ss = name != NULL ? scheduler_find(sock->sched, name) : NULL;
    cJSON *names = cJSON_CreateArray();

    sweep_status_take(sock->sched, ss, &status);
    status.daemon = sock->daemon;
    for (size_t i = 0; i < sock->sched->n_studies; i++)
        if (sock->sched->studies[i]->state != SCHED_STUDY_ENDED)
            cJSON_AddItemToArray(names, cJSON_CreateString(sock->sched->studies[i]->view.study.name));
    json_add(answer, "live", sweep_status_to_json(&status));
    json_add(answer, "studies", names); /* that it serves */
}

static enum status on_submit(struct controller_socket *sock, const cJSON *request, cJSON *answer, struct error *err)
{
    AT_END(submission_free) struct submission submission = {0};
    char text[256];

    TRY(submission_from_json(request, &submission, err));
    enum status rc = submission_store(sock->store, &submission, err);
    if (rc == ST_OK) {
        struct error why = {0};
        rc = add_study(sock, submission.study.name, &why);
        if (rc != ST_OK) { /* the row stays, so that nothing is lost; it waits until the cause is fixed */
            pause_with_error(sock, &submission.study, &why);
            (void)FAIL(err, rc, "%s", why.text);
        }
    }
    snprintf(text, sizeof text, "the daemon has study %s", submission.study.name);
    append_waiting(sock, submission.study.name, text, sizeof text);
    json_add_str(answer, "text", text);
    return rc;
}

/* Wider ranges for a study that is served or not; run: NULL when not. */
static enum status take_space(struct controller_socket *sock, struct sched_study *ss, const struct study *study,
                              const char *text, struct error *err)
{
    AT_END(search_destroy_at) struct search *stored = search_create(), *want = search_create();
    MEM_LOCAL char *json = NULL;
    bool is_wider;
    enum status rc = search_from_json(text, want, err);

    THEN(rc, search_from_json(study->space, stored, err));
    THEN(rc, search_widen(stored, want, &is_wider, err));
    if (rc == ST_OK && ss != NULL)
        rc = search_bind(stored, ss->setup, err);
    if (rc == ST_OK && ss != NULL)
        rc = sched_study_take_space(ss, stored, err);
    else if (rc == ST_OK)
        json = search_to_json(stored);
    if (json != NULL)
        rc = store_study_set_space(sock->store, study->id, json, err);
    return rc;
}

static enum status resume(struct controller_socket *sock, const cJSON *request, struct study *study, struct error *err)
{
    struct sched_study *ss = scheduler_find(sock->sched, study->name);
    const char *space = json_get_str(request, "space");
    struct limits want = study->limits;

    TRY(limits_take_json(request, &want, err));
    TRY(limits_check(sock->store, study, &want, err)); /* before anything changes */
    if (space != NULL)
        TRY(take_space(sock, ss, study, space, err));
    TRY(limits_change(sock->store, study, &want, err));
    TRY(store_study_set_state(sock->store, study->id, STUDY_RUNNING, NULL, NULL, err));
    if (ss == NULL)
        return add_study(sock, study->name, err);
    scheduler_settle(sock->sched, ss);
    ss->view.study.limits = study->limits;
    ss->view.study.state = STUDY_RUNNING;
    scheduler_resume(sock->sched, ss);
    return ST_OK;
}

/* New limits, in all, for a study that then continues; those that the request does not give stay. */
static enum status on_resume(struct controller_socket *sock, const cJSON *request, cJSON *answer, struct error *err)
{
    const char *name = json_get_str(request, "study");
    struct study study = {0};
    char text[128] = "it continues";

    if (name == NULL)
        return FAIL(err, ST_USAGE, "the request names no study");
    TRY(store_study_find(sock->store, name, &study, err));
    enum status rc = resume(sock, request, &study, err);
    if (rc == ST_OK) {
        append_waiting(sock, name, text, sizeof text);
        json_add_str(answer, "text", text);
    }
    study_free(&study);
    return rc;
}

static enum status handle(void *ctx, const cJSON *request, cJSON *answer, struct error *err)
{
    struct controller_socket *sock = ctx;
    const char *word = json_get_str(request, "command"), *study = json_get_str(request, "study");
    bool waits = sock->sched->n_waits > 1;

    if (study != NULL && scheduler_find(sock->sched, study) == NULL && !waits && !sock->locked &&
        store_study_is_others(sock->store, study))
        return FAIL(err, ST_BUSY, "%s: another controller has the study %s", store_path(sock->store), study);
    if (word != NULL && strcmp(word, "status") == 0) {
        on_status(sock, request, answer);
        return ST_OK;
    }
    if (sock->locked)
        return FAIL(err, ST_BUSY,
                    "%s: another program keeps the store locked, and the controller waits for it; nothing was changed: "
                    "close that program (a database browser, a backup), then repeat the command",
                    store_path(sock->store));
    if (waits) /* it would come in the middle of something */
        return FAIL(err, ST_IO, "%s: the %s; nothing was changed: %s, then repeat the command", store_path(sock->store),
                    store_is_away(sock->store) ? "database does not answer, and the controller waits for it"
                                               : "disk is full, and the controller waits for space",
                    store_is_away(sock->store) ? "start it again" : "free some space");
    if (word != NULL && sock->daemon && strcmp(word, "submit") == 0)
        return on_submit(sock, request, answer, err);
    if (word != NULL && sock->daemon && strcmp(word, "resume") == 0)
        return on_resume(sock, request, answer, err);
    if (word != NULL && strcmp(word, ASK_COMMAND) == 0)
        return ask_request(sock->store, sock->sched, sock->waiting, request, answer, err);
    return on_command(sock, request, answer, err);
}

static void on_ready(void *ctx, short revents)
{
    struct controller_socket *sock = ctx;

    (void)revents;
    sock->answers = true;
    control_server_serve(sock->server);
    sock->answers = false;
}

/* Requests from other machines: at a hint (revents 0), or when the timer is over. */
static void on_mail(void *ctx, short revents)
{
    struct controller_socket *sock = ctx;
    struct error why = {0};
    char *request = NULL;
    uint64_t n_ticks;
    int64_t id;

    if (revents != 0 && read(sock->mail_fd, &n_ticks, sizeof n_ticks) < 0)
        return;
    for (int i = 0;
         i < MAILS_AT_A_TIME && store_mail_take(sock->store, &id, &request, &why) == ST_OK && request != NULL; i++) {
        sock->answers = true;
        char *answer = control_server_answer(handle, sock, request, strlen(request));
        sock->answers = false;
        if (store_mail_answer(sock->store, id, answer, &why) != ST_OK)
            log_warn("%s, continuing", why.text);
        mem_free(answer);
        mem_free(request);
    }
}

/* A store_wait_fn. Meanwhile requests are answered: with the state, or that nothing can be changed now. */
static bool wait_for_room(void *ctx, const char *path, bool has_room)
{
    struct controller_socket *sock = ctx;

    if (has_room) {
        scheduler_disk_is_back(sock->sched);
        return true;
    }
    sock->n_free = 0; /* a database that comes back has been free of locks; its controllers come back too */
    bool again = scheduler_wait_for_disk(sock->sched, path);
    if (sock->sched->n_waits > 1 && sock->server != NULL && !sock->answers)
        on_ready(sock, 0);
    return again;
}

/* A store_locked_fn; the same for another program's lock. */
static bool wait_for_lock(void *ctx, const char *path, double waited_s)
{
    struct controller_socket *sock = ctx;
    bool again = scheduler_wait_for_lock(sock->sched, path, waited_s);

    if (sock->sched->lock_reported && sock->server != NULL && !sock->answers) {
        sock->locked = true;
        on_ready(sock, 0);
        sock->locked = false;
    }
    return again;
}

/* A program that is asked to end has waited for the lock, if there was one. */
static bool give_up(void *ctx, const char *path, double waited_s)
{
    (void)ctx, (void)path, (void)waited_s;
    return false;
}

void controller_socket_open(struct controller_socket *sock, struct store *store, struct scheduler *sched, bool daemon)
{
    struct error why = {0};

    const struct itimerspec every = {.it_interval = {.tv_nsec = MAIL_NS}, .it_value = {.tv_nsec = MAIL_NS}};

    *sock = (struct controller_socket){.store = store, .sched = sched, .daemon = daemon, .mail_fd = -1};
    store_on_full(store, wait_for_room, sock);
    store_on_locked(store, wait_for_lock, sock);
    /* Sweeps that share a database on one machine have no sockets: they get their requests through it. */
    bool listens = daemon || !store_is_address(store_path(store));
    if (listens && (control_server_create(&sock->server, store_path(store), handle, sock, &why) != ST_OK ||
                    scheduler_watch(sched, control_server_fd(sock->server), on_ready, sock, &why) != ST_OK)) {
        log_warn("%s; `trawl pause`, `stop` and the like do not reach this sweep, continuing", why.text);
        control_server_destroy(sock->server);
        sock->server = NULL;
    }
    if (!store_is_address(store_path(store)))
        return;
    sock->mail_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (sock->mail_fd < 0 || timerfd_settime(sock->mail_fd, 0, &every, NULL) != 0 ||
        scheduler_watch(sched, sock->mail_fd, on_mail, sock, &why) != ST_OK)
        log_warn("%s: `trawl pause` and the like work on this machine alone (%s), continuing", store_path(store),
                 why.status != ST_OK ? why.text : strerror(errno));
    sched->on_mail = on_mail;
    sched->mail_ctx = sock;
    if (store_listen(store, STORE_HINT_MAIL, &why) != ST_OK || store_listen(store, STORE_HINT_RESULTS, &why) != ST_OK)
        log_debug("%s: without hints", why.text);
}

void controller_socket_close(struct controller_socket *sock)
{
    if (sock->store != NULL) {
        store_on_full(sock->store, NULL, NULL);
        store_on_locked(sock->store, signals_stop() ? give_up : NULL, NULL);
    }
    if (sock->store != NULL && sock->mail_fd >= 0) {
        if (sock->sched != NULL) {
            scheduler_unwatch(sock->sched, sock->mail_fd);
            sock->sched->on_mail = NULL;
        }
        close(sock->mail_fd);
        sock->mail_fd = -1;
    }
    if (sock->server != NULL && sock->sched != NULL)
        scheduler_unwatch(sock->sched, control_server_fd(sock->server));
    control_server_destroy(sock->server);
    sock->server = NULL;
}
