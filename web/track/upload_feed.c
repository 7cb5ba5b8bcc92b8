/* upload_feed.c - the thread that feeds one tracker.
 *
 * One request at a time: the run that has waited longest is next. Before rows are sent their range is claimed in the
 * store, so that whoever sends again (after a lost reply, a crash, in `trawl sync`) sends the same rows; after an
 * answer the position moves and rows that all trackers have got are removed, in one transaction. An outage of the
 * tracker makes all its runs wait (full jitter, at least what the server asks for); an attempt from zero gets a run of
 * its own, so that no curve is made of two attempts; a run that is refused for good is given up alone; a refused login
 * keeps every row for `trawl sync`. */
#include "web/track/upload_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "web/track/track_util.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define LOOK_S 1.0 /* between looks at the outbox */
#define STORE_RETRY_S 5.0
#define THIN_MAX_MS 60000
#define THIN_AFTER 4 /* times in a row that the server asked to wait: it is the volume, not a moment */
#define ANEW_KEY "anew" /* in a run's state: the attempt that it is of, when that began from zero */
#define BURST_S 10.0 /* of the budget may be spent at once */

/* -- the outbox -- */

static struct feed_run *find_run(struct feeder *f, int64_t trial_id)
{
    for (size_t i = f->n_runs; i-- > 0;) /* new rows are mostly of new runs */
        if (f->runs[i].trial_id == trial_id)
            return &f->runs[i];
    return NULL;
}

static enum status add_run(struct feeder *f, const struct outbox_run *from, struct error *err)
{
    if (!MEM_ROOM(f->runs, f->n_runs, f->cap_runs))
        return FAIL(err, ST_NOMEM, "out of memory for the runs of %s", f->ops->name);
    f->runs[f->n_runs++] =
        (struct feed_run){.trial_id = from->trial_id, .number = from->number, .last_id = from->last_id};
    return ST_OK;
}

static void forget_run(struct feeder *f, struct feed_run *run)
{
    tracker_position_free(&run->position);
    cJSON_Delete(run->state);
    *run = f->runs[--f->n_runs];
}

static enum status look(struct feeder *f, struct error *err)
{
    struct outbox_run *runs = NULL;
    size_t n = 0;
    int64_t last_id;
    enum status rc = store_outbox_runs(f->store, f->uploader->study_id, f->seen_id, &runs, &n, &last_id, err);

    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        struct feed_run *run = find_run(f, runs[i].trial_id);
        if (run != NULL)
            run->last_id = runs[i].last_id;
        else
            rc = add_run(f, &runs[i], err);
    }
    if (rc == ST_OK)
        f->seen_id = last_id;
    mem_free(runs);
    return rc;
}

static enum status load_run(struct feeder *f, struct feed_run *run, struct error *err)
{
    struct error bad = {0};

    if (run->loaded)
        return ST_OK;
    TRY(store_tracker_position(f->store, f->uploader->study_id, f->ops->name, run->trial_id, &run->position, err));
    if (json_parse(run->position.state, strlen(run->position.state), &run->state, &bad) != ST_OK ||
        !cJSON_IsObject(run->state)) {
        cJSON_Delete(run->state);
        run->state = NULL;
        tracker_position_free(&run->position);
        return FAIL(err, ST_CORRUPT, "what %s keeps of trial id %lld is no JSON object; restore a copy of the store",
                    f->ops->name, (long long)run->trial_id);
    }
    run->loaded = true;
    return ST_OK;
}

static bool waits(const struct feed_run *run)
{
    return !run->loaded || run->position.acked_id < run->last_id;
}

/* -- answers -- */

static void set_trouble(struct feeder *f, bool down, bool refused, const char *text)
{
    pthread_mutex_lock(&f->uploader->lock);
    f->counts.down = down;
    f->counts.refused = refused;
    snprintf(f->counts.text, sizeof f->counts.text, "%s", text);
    pthread_mutex_unlock(&f->uploader->lock);
}

static void set_asking(struct feeder *f, bool asking)
{
    pthread_mutex_lock(&f->uploader->lock);
    f->counts.asking = asking;
    pthread_mutex_unlock(&f->uploader->lock);
}

static void count(struct feeder *f, int64_t sent, int64_t skipped, int64_t refused_runs)
{
    bool first;

    pthread_mutex_lock(&f->uploader->lock);
    first = skipped > 0 && f->counts.skipped == 0;
    f->counts.sent += sent;
    f->counts.skipped += skipped;
    f->counts.refused_runs += refused_runs;
    pthread_mutex_unlock(&f->uploader->lock);
    if (first)
        log_warn("%s cannot hold some rows or values, they are left out there and stay in the store; further ones are "
                 "counted only, continuing",
                 f->ops->name);
}

/* An outage is logged once when it begins and once when it ends. */
static void fell_silent(struct feeder *f, const struct track_reply *reply)
{
    double wait_s = http_backoff_s(&f->rng, f->attempt, reply->retry_after_s);

    bool report = f->attempt >= 2 && !f->logged_down && !f->closing; /* short troubles are not worth a line */

    f->logged_down = f->logged_down || report;
    if (report)
        log_warn("%s: %s; what it is to get waits in the store, continuing", f->ops->name, reply->text);
    else
        log_debug("%s: %s; next try in %.1f s", f->ops->name, reply->text, wait_s);
    /* Only a tracker that keeps asking for less gets less: after an outage everything is sent. `trawl sync` takes the
     * time that it needs. */
    if (reply->retry_after_s > 0 && f->attempt >= THIN_AFTER && !f->drain)
        f->thin_ms = f->thin_ms == 0 ? 1000 : f->thin_ms * 2 < THIN_MAX_MS ? f->thin_ms * 2 : THIN_MAX_MS;
    f->attempt++;
    f->next_s = clock_mono_s() + wait_s;
    set_trouble(f, true, false, reply->text);
}

static void came_back(struct feeder *f, const struct track_reply *reply)
{
    int64_t usual_ms = (int64_t)(f->uploader->settings.thin_s * 1e3);

    if (f->logged_down)
        log_info("%s answers again", f->ops->name);
    if (f->attempt > 0)
        set_trouble(f, false, false, "");
    f->logged_down = false;
    f->attempt = 0;
    f->thin_ms = f->thin_ms / 2 > usual_ms && f->thin_ms / 2 >= 1000 ? f->thin_ms / 2 : usual_ms;
    if (reply->pause_s > 0)
        f->next_s = clock_mono_s() + reply->pause_s;
}

static void turned_away(struct feeder *f, const struct track_reply *reply)
{
    log_warn("%s refuses: %s; what it is to get stays in the store, `trawl sync` sends it once that is fixed; "
             "training continues",
             f->ops->name, reply->text);
    set_trouble(f, false, true, reply->text);
}

static void spend(struct feeder *f, const struct track_reply *reply)
{
    f->tokens -= reply->n_requests > 0 ? (double)reply->n_requests : 1;
}

/* Seconds until the budget has room for one more request. */
static double budget_wait(struct feeder *f, double now_s)
{
    int64_t own = f->uploader->settings.requests_per_minute;
    double per_s = (double)(own > 0 ? own : f->ops->requests_per_minute) / 60.0, most = fmax(2, per_s * BURST_S);

    if (per_s <= 0)
        return 0;
    f->tokens = fmin(most, f->tokens + (f->tokens_s > 0 ? (now_s - f->tokens_s) * per_s : most));
    f->tokens_s = now_s;
    return f->tokens >= 1 ? 0 : (1 - f->tokens) / per_s;
}

/* -- sending -- */

static void run_for_tracker(const struct feeder *f, const struct feed_run *run, struct track_run *ret)
{
    int64_t attempt = 0;

    *ret = (struct track_run){.trial_id = run->trial_id, .number = run->number, .state = run->state};
    if (json_get_i64(run->state, ANEW_KEY, &attempt))
        snprintf(ret->key, sizeof ret->key, "%s-%lld-a%lld", f->uploader->key, (long long)run->number,
                 (long long)attempt);
    else if (run->trial_id == 0)
        snprintf(ret->key, sizeof ret->key, "%s-study", f->uploader->key);
    else
        snprintf(ret->key, sizeof ret->key, "%s-%lld", f->uploader->key, (long long)run->number);
}

/* The position as it is now, with the tracker's state. */
static enum status commit(struct feeder *f, struct feed_run *run, struct error *err)
{
    char *state = json_print(run->state, false);

    if (state == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the position of %s", f->ops->name);
    mem_free(run->position.state);
    run->position.state = state;
    return store_tracker_commit(f->store, f->uploader->study_id, f->ops->name, run->trial_id, &run->position, err);
}

/* Is the payload the start of an attempt that begins from zero? Cheaply: it stands at the front of a short text. */
static bool begins_anew(const struct outbox_row *row)
{
    static const char front[] = "{\"type\":\"start\",\"anew\":true,";

    return strncmp(row->payload, front, sizeof front - 1) == 0;
}

/* An attempt from zero is a batch of its own: its first row alone, and not with rows of the attempt before. */
static void cut_at_attempt(struct outbox_list *list)
{
    size_t n = 1;

    while (n < list->n && !begins_anew(&list->rows[0]) && !begins_anew(&list->rows[n]))
        n++;
    for (; list->n > n; list->n--)
        mem_free(list->rows[list->n - 1].payload);
}

/* The rows to send next, claimed. *ret_n 0: there are none. The very first row of a run goes alone, so that what the
 * server made for it is in the store before anything is hung on it. */
static enum status claim(struct feeder *f, struct feed_run *run, struct batch *batch, size_t *ret_n, struct error *err)
{
    struct tracker_position *p = &run->position;
    bool again = p->claimed_id > p->acked_id;
    struct outbox_list list;

    *ret_n = 0;
    TRY(store_outbox_read(f->store, f->uploader->study_id, run->trial_id, p->acked_id,
                          again ? p->claimed_id : INT64_MAX,
                          again               ? INT32_MAX
                          : p->sent_rows == 0 ? 1
                                              : f->ops->rows_max,
                          again ? SIZE_MAX / 2 : f->ops->bytes_max, &list, err));
    if (list.n == 0)
        return ST_OK;
    cut_at_attempt(&list);
    if (!again) {
        p->claimed_id = list.rows[list.n - 1].id;
        p->thin_ms = f->thin_ms;
        enum status rc = commit(f, run, err);
        if (rc != ST_OK) {
            p->claimed_id = p->acked_id;
            outbox_list_free(&list);
            return rc;
        }
    }
    *ret_n = list.n;
    return batch_make(batch, &list, p->last_step, p->thin_ms, err);
}

/* What the acknowledged rows say of the run's life. */
static void note_end(struct tracker_position *p, const struct track_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].type == TRACK_ROW_START || rows[i].type == TRACK_ROW_STUDY)
            p->ended = false;
        else if (rows[i].type == TRACK_ROW_RESULT || rows[i].type == TRACK_ROW_STUDY_END ||
                 rows[i].type == TRACK_ROW_PAUSE)
            p->ended = true;
    }
}

static enum status settle(struct feeder *f, struct feed_run *run, const struct batch *b,
                          const struct track_reply *reply, struct error *err)
{
    struct tracker_position *p = &run->position;
    size_t n_done = reply->verdict == TRACK_DONE || reply->verdict == TRACK_RUN_REFUSED ? b->n : reply->n_done;

    if (n_done > b->n)
        n_done = b->n;
    note_end(p, b->rows, n_done);
    if (n_done == b->n) {
        p->acked_id = p->claimed_id;
        p->last_step = b->last_step;
    } else if (n_done > 0) {
        p->acked_id = b->rows[n_done].id - 1; /* what was left out in between needs no request either */
        p->last_step = b->steps_after[n_done - 1];
    }
    if (reply->verdict == TRACK_RUN_REFUSED) {
        mem_free(p->refused);
        p->refused = mem_strdup(reply->text);
        p->ended = true;
        log_warn("%s will not take run %lld: %s; it is given up there and stays in the store, continuing", f->ops->name,
                 (long long)run->number, reply->text);
        count(f, 0, (int64_t)b->n, 1);
    } else {
        p->sent_rows += (int64_t)n_done;
        count(f, (int64_t)n_done, reply->n_skipped, 0);
    }
    return commit(f, run, err);
}

/* Rows of a run that was given up: nobody waits for them. */
static enum status pass_over(struct feeder *f, struct feed_run *run, struct error *err)
{
    run->position.acked_id = run->position.claimed_id = run->last_id;
    return commit(f, run, err);
}

static void heard(struct feeder *f, const struct feed_run *run, const struct track_reply *reply)
{
    spend(f, reply);
    if (reply->stop && f->uploader->on_stop != NULL && run->trial_id != 0)
        f->uploader->on_stop(f->uploader->ctx, run->trial_id, f->ops->name);
    if (reply->verdict == TRACK_RETRY)
        fell_silent(f, reply);
    else if (reply->verdict == TRACK_REFUSED)
        turned_away(f, reply);
    else
        came_back(f, reply);
}

void feeder_greeted(struct feeder *f)
{
    const char *page = f->ops->page != NULL ? f->ops->page(f->self) : "";

    f->greeted = true;
    if (page[0] != '\0' && !f->drain)
        log_info("%s: %s", f->ops->name, page);
}

static enum status greet(struct feeder *f)
{
    struct track_reply reply = {.verdict = TRACK_DONE};

    if (f->greeted || f->ops->hello == NULL)
        return ST_OK;
    f->ops->hello(f->self, &reply);
    spend(f, &reply);
    if (reply.verdict == TRACK_RETRY) {
        fell_silent(f, &reply);
    } else if (reply.verdict == TRACK_DONE) {
        came_back(f, &reply);
        feeder_greeted(f);
    } else {
        turned_away(f, &reply);
    }
    return ST_OK;
}

static bool begins(const struct batch *batch)
{
    return batch->n > 0 && (batch->rows[0].type == TRACK_ROW_START || batch->rows[0].type == TRACK_ROW_STUDY);
}

/* The run of the attempt before is ended, and everything about it is let go of: the next row makes another
 * run. False: not now. */
static bool turn_over(struct feeder *f, struct feed_run *run, struct batch *batch, struct track_reply *reply)
{
    int64_t attempt = 0;
    cJSON *state = cJSON_CreateObject(), *over = cJSON_CreateObject();
    struct track_run as_told;
    bool ok = state != NULL && json_get_i64(batch->rows[0].json, "attempt", &attempt) &&
              json_add_i64(state, ANEW_KEY, attempt) && over != NULL && json_add_str(over, "type", "result") &&
              json_add_str(over, "state", "lost") &&
              json_add_str(over, "reason", "its program ended; the trial began again from zero, in a run of its own") &&
              json_add_i64(over, "env_steps", run->position.last_step > 0 ? run->position.last_step : 0);

    if (!ok)
        track_refuse(reply, TRACK_RETRY, "out of memory for a run");
    if (ok) {
        const struct track_row row = {.id = batch->rows[0].id,
                                      .ms = batch->rows[0].ms,
                                      .type = TRACK_ROW_RESULT,
                                      .env_steps = run->position.last_step,
                                      .json = over};
        run_for_tracker(f, run, &as_told);
        f->ops->send(f->self, &as_told, &row, 1, reply);
        run->state = as_told.state;
        ok = reply->verdict == TRACK_DONE || reply->verdict == TRACK_RUN_REFUSED;
    }
    cJSON_Delete(over);
    heard(f, run, reply);
    if (!ok) {
        cJSON_Delete(state);
        return false;
    }
    cJSON_Delete(run->state);
    run->state = state;
    run->position.sent_rows = 0;
    run->position.last_step = batch->last_step = batch->steps_after[0] = -1;
    run->position.ended = false;
    *reply = (struct track_reply){.verdict = TRACK_DONE};
    return true;
}

static enum status send_run(struct feeder *f, struct feed_run *run, struct error *err)
{
    struct track_reply reply = {.verdict = TRACK_DONE};
    struct track_run as_told;
    struct batch batch = {0};
    size_t n;
    enum status rc;

    TRY(load_run(f, run, err));
    if (run->position.refused != NULL)
        return pass_over(f, run, err);
    TRY(claim(f, run, &batch, &n, err));
    if (n == 0) { /* known already, or removed with its trial */
        run->position.acked_id = run->last_id;
        return ST_OK;
    }
    if (run->position.sent_rows > 0 && batch.n > 0 && begins_anew(&batch.list.rows[0])) {
        if (!turn_over(f, run, &batch, &reply)) {
            batch_free(&batch);
            return ST_OK;
        }
        rc = commit(f, run, err);
        if (rc != ST_OK) {
            batch_free(&batch);
            return rc;
        }
    }
    run_for_tracker(f, run, &as_told);
    if (run->position.sent_rows == 0 && !begins(&batch)) /* the tracker came later: it has no run to hang this on */
        batch.n = 0;
    if (batch.n > 0) {
        f->ops->send(f->self, &as_told, batch.rows, batch.n, &reply);
        run->state = as_told.state;
        run->sent_s = run->spoke_s = clock_mono_s();
        heard(f, run, &reply);
    }
    rc = settle(f, run, &batch, &reply, err);
    batch_free(&batch);
    return rc;
}

static void beat_run(struct feeder *f, struct feed_run *run)
{
    struct track_reply reply = {.verdict = TRACK_DONE};
    struct track_run as_told;

    run_for_tracker(f, run, &as_told);
    f->ops->beat(f->self, &as_told, &reply);
    run->state = as_told.state;
    run->spoke_s = clock_mono_s();
    if (reply.verdict == TRACK_RUN_REFUSED)
        reply.verdict = TRACK_DONE; /* the next rows will meet it */
    heard(f, run, &reply);
}

/* -- the loop -- */

static double due_s(const struct feeder *f, const struct feed_run *run)
{
    return run->sent_s == 0 ? 0 : run->sent_s + (f->hurry ? 0 : f->uploader->settings.interval_s);
}

static bool beats(const struct feeder *f, const struct feed_run *run)
{
    return f->ops->beat != NULL && run->loaded && run->sent_s > 0 && !run->position.ended &&
           run->position.refused == NULL;
}

/* The run that has waited longest, NULL when none has anything; *ret_due_s: when something is to be done. */
static struct feed_run *next_run(struct feeder *f, bool *ret_beat, double *ret_due_s)
{
    struct feed_run *next = NULL;

    *ret_due_s = INFINITY;
    for (size_t i = 0; i < f->n_runs; i++) {
        struct feed_run *run = &f->runs[i];
        bool has_rows = waits(run);
        double at_s = INFINITY;
        if (has_rows)
            at_s = due_s(f, run);
        else if (!f->hurry && beats(f, run))
            at_s = run->spoke_s + f->uploader->settings.beat_s;
        if (at_s < *ret_due_s) {
            *ret_due_s = at_s;
            *ret_beat = !has_rows;
            next = run;
        }
    }
    return next;
}

/* Ended runs with nothing left need no place. */
static void tidy(struct feeder *f)
{
    for (size_t i = f->n_runs; i-- > 0;)
        if (f->runs[i].loaded && !waits(&f->runs[i]) && (f->runs[i].position.ended || f->drain))
            forget_run(f, &f->runs[i]);
}

/* Waits until at_s, a wake or a change; false: it is time to end. */
static bool rest(struct feeder *f, double at_s, bool idle)
{
    struct uploader *up = f->uploader;
    double now_s = clock_mono_s(), until_s = fmin(at_s, now_s + LOOK_S);
    bool go_on = true;
    uint64_t wakes;

    pthread_mutex_lock(&up->lock);
    wakes = up->wakes;
    /* Only a look after the last word of the owner is one at all of its rows. */
    idle = idle && f->closing == up->closing && f->drain == up->drain;
    f->counts.idle = idle;
    if (wakes != f->seen_wakes) /* rows may have come since the look */
        until_s = now_s;
    f->seen_wakes = wakes;
    if (up->closing && (idle || f->counts.refused || now_s >= up->deadline_s))
        go_on = false;
    if (up->closing)
        until_s = fmin(until_s, up->deadline_s);
    if (go_on && until_s > now_s) {
        struct timespec at = {.tv_sec = (time_t)until_s, .tv_nsec = (long)(fmod(until_s, 1.0) * 1e9)};
        bool was_closing = up->closing;
        while (wakes == up->wakes && was_closing == up->closing &&
               pthread_cond_timedwait(&up->changed, &up->lock, &at) == 0)
            continue;
    }
    pthread_mutex_unlock(&up->lock);
    return go_on;
}

static void look_around(struct feeder *f, bool *ret_refused)
{
    pthread_mutex_lock(&f->uploader->lock);
    f->closing = f->uploader->closing;
    f->drain = f->uploader->drain;
    f->hurry = f->closing || f->drain;
    *ret_refused = f->counts.refused;
    pthread_mutex_unlock(&f->uploader->lock);
}

void *feeder_main(void *ctx)
{
    struct feeder *f = ctx;
    bool go_on = true, logged = false;

    while (go_on) {
        struct error err = {0};
        struct feed_run *run = NULL;
        bool refused, beat = false;
        double now_s, at_s = INFINITY;
        look_around(f, &refused);
        enum status rc = refused ? ST_OK : look(f, &err);
        if (rc == ST_OK && !refused)
            run = next_run(f, &beat, &at_s);
        now_s = clock_mono_s();
        if (run != NULL)
            at_s = fmax(at_s, fmax(f->next_s, now_s + budget_wait(f, now_s)));
        if (run != NULL && at_s <= now_s && rc == ST_OK) {
            set_asking(f, true);
            if (!f->greeted && f->ops->hello != NULL)
                rc = greet(f);
            else if (beat)
                beat_run(f, run);
            else
                rc = send_run(f, run, &err);
            set_asking(f, false);
            at_s = now_s;
        }
        if (rc == ST_CORRUPT) { /* a damaged row is not sent, and trying again does not heal it */
            log_warn("%s: %s; nothing more is sent there, training continues", f->ops->name, err.text);
            set_trouble(f, false, true, err.text);
        } else if (rc != ST_OK) {
            if (!logged)
                log_warn("%s: %s; it is tried again, training continues", f->ops->name, err.text);
            logged = true;
            at_s = now_s + STORE_RETRY_S;
            f->next_s = fmax(f->next_s, at_s);
        }
        tidy(f);
        go_on = rest(f, at_s, rc == ST_OK && (refused || run == NULL || beat));
    }
    return NULL;
}

void feeder_free(struct feeder *f)
{
    while (f->n_runs > 0)
        forget_run(f, &f->runs[f->n_runs - 1]);
    mem_free(f->runs);
    f->ops->close(f->self);
    store_close(f->store);
}
