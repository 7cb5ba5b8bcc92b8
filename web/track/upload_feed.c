/* upload_feed.c - the thread that feeds one tracker.
 *
 * One request at a time: the run that has waited longest is next. Before rows are sent, their range is claimed in the
 * store: a later send (after a lost reply, a crash, by `trawl sync`) sends the same rows. After an answer the position
 * moves and rows that all trackers have are removed, in one transaction. During an outage of the tracker all its runs
 * wait (full jitter, at least the time that the server asks for). An attempt from zero gets its own run: no curve is
 * made of two attempts. A run that is refused gets no more rows, other runs continue. After a refused login every row
 * is kept for `trawl sync`. */
#include "web/track/upload_priv.h"

#define READ_EVERY_S 1.0 /* between reads of the outbox */
#define STORE_RETRY_S 5.0
#define THIN_MAX_MS 60000
#define THIN_AFTER 4 /* times in a row that the server asked to wait: it is the volume, not a moment */
#define ATTEMPT_KEY "anew" /* in a run's state: the run's attempt, when it began from zero */
#define BURST_S 10.0 /* seconds of the budget that may be spent at once */

/* -- the outbox -- */

static struct feed_run *find_run(struct feeder *f, int64_t trial_id)
{
    for (size_t i = f->n_runs; i-- > 0;) /* new rows are mostly of new runs */
        if (f->runs[i].trial_id == trial_id)
            return &f->runs[i];
    return NULL;
}

static void forget_run(struct feeder *f, struct feed_run *run)
{
    tracker_position_free(&run->position);
    cJSON_Delete(run->state);
    *run = f->runs[--f->n_runs];
}

static enum status read_outbox(struct feeder *f, struct error *err)
{
    MEM_LOCAL struct outbox_run *runs = NULL;
    size_t n = 0;
    int64_t last_id;
    enum status rc = store_outbox_runs(f->store, f->uploader->study_id, f->seen_id, &runs, &n, &last_id, err);

    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        struct feed_run *run = find_run(f, runs[i].trial_id);
        if (run == NULL) {
            MEM_ROOM(f->runs, f->n_runs, f->cap_runs);
            run = &f->runs[f->n_runs++];
            *run = (struct feed_run){.trial_id = runs[i].trial_id, .number = runs[i].number};
        }
        run->last_id = runs[i].last_id;
    }
    if (rc == ST_OK)
        f->seen_id = last_id;
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
        return FAIL(err, ST_CORRUPT,
                    "the state of %s for trial id %lld is not a JSON object; restore a copy of the store", f->ops->name,
                    (long long)run->trial_id);
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
    pthread_mutex_lock(&f->uploader->lock);
    bool first = skipped > 0 && f->counts.skipped == 0;
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
static void note_outage(struct feeder *f, const struct track_reply *reply)
{
    double wait_s = http_backoff_s(&f->rng, f->attempt, reply->retry_after_s);

    bool report = f->attempt >= 2 && !f->logged_down && !f->closing; /* a short outage is not worth a line */

    f->logged_down = f->logged_down || report;
    if (report)
        log_warn("%s: %s; its rows wait in the store, continuing", f->ops->name, reply->text);
    else
        log_debug("%s: %s; next try in %.1f s", f->ops->name, reply->text, wait_s);
    /* Only a tracker that keeps asking for less gets less: after an outage everything is sent. `trawl sync` never
     * thins. */
    if (reply->retry_after_s > 0 && f->attempt >= THIN_AFTER && !f->drain)
        f->thin_ms = f->thin_ms == 0 ? 1000 : f->thin_ms * 2 < THIN_MAX_MS ? f->thin_ms * 2 : THIN_MAX_MS;
    f->attempt++;
    f->next_s = clock_mono_s() + wait_s;
    set_trouble(f, true, false, reply->text);
}

static void note_recovery(struct feeder *f, const struct track_reply *reply)
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

static void note_refusal(struct feeder *f, const struct track_reply *reply)
{
    log_warn("%s refuses: %s; its rows stay in the store, `trawl sync` sends them once that is fixed; training "
             "continues",
             f->ops->name, reply->text);
    set_trouble(f, false, true, reply->text);
}

static void spend(struct feeder *f, const struct track_reply *reply)
{
    f->tokens -= reply->n_requests > 0 ? (double)reply->n_requests : 1;
}

/* Seconds until the budget allows one more request. */
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
    if (json_get_i64(run->state, ATTEMPT_KEY, &attempt))
        snprintf(ret->key, sizeof ret->key, "%s-%lld-a%lld", f->uploader->key, (long long)run->number,
                 (long long)attempt);
    else if (run->trial_id == 0)
        snprintf(ret->key, sizeof ret->key, "%s-study", f->uploader->key);
    else
        snprintf(ret->key, sizeof ret->key, "%s-%lld", f->uploader->key, (long long)run->number);
}

/* Writes the position with the tracker's state. */
static enum status commit(struct feeder *f, struct feed_run *run, struct error *err)
{
    mem_free(run->position.state);
    run->position.state = json_print(run->state, false);
    return store_tracker_commit(f->store, f->uploader->study_id, f->ops->name, run->trial_id, &run->position, err);
}

/* The rows to send next, claimed. *ret_any false: no rows. The first row of a run is sent alone: the ids that the
 * server made for it are then in the store before other rows refer to them. */
static enum status claim(struct feeder *f, struct feed_run *run, struct batch *batch, bool *ret_any, struct error *err)
{
    struct tracker_position *p = &run->position;
    bool again = p->claimed_id > p->acked_id;
    struct outbox_list list;

    *ret_any = false;
    TRY(store_outbox_read(f->store, f->uploader->study_id, run->trial_id, p->acked_id,
                          again ? p->claimed_id : INT64_MAX,
                          again               ? INT32_MAX
                          : p->sent_rows == 0 ? 1
                                              : f->ops->rows_max,
                          again ? SIZE_MAX / 2 : f->ops->bytes_max, &list, err));
    if (list.n == 0)
        return ST_OK;
    *ret_any = true;
    batch_read(batch, &list);
    int64_t last_id = batch_cut_at_attempt(batch);
    if (!again) {
        p->claimed_id = last_id;
        p->thin_ms = f->thin_ms;
        enum status rc = commit(f, run, err);
        if (rc != ST_OK) {
            p->claimed_id = p->acked_id;
            batch_free(batch);
            return rc;
        }
    }
    batch_choose(batch, p->last_step, p->thin_ms);
    return ST_OK;
}

/* Has the run ended after the acknowledged rows? */
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
        p->acked_id = b->rows[n_done].id - 1; /* rows left out in between need no request either */
        p->last_step = b->steps_after[n_done - 1];
    }
    if (reply->verdict == TRACK_RUN_REFUSED) {
        mem_free(p->refused);
        p->refused = mem_strdup(reply->text);
        p->ended = true;
        log_warn("%s refuses run %lld: %s; the run gets no more rows there and stays in the store, continuing",
                 f->ops->name, (long long)run->number, reply->text);
        count(f, 0, (int64_t)b->n, 1);
    } else {
        p->sent_rows += (int64_t)n_done;
        count(f, (int64_t)n_done, reply->n_skipped, 0);
    }
    return commit(f, run, err);
}

/* Rows of a refused run are not sent. */
static enum status skip_rows(struct feeder *f, struct feed_run *run, struct error *err)
{
    run->position.acked_id = run->position.claimed_id = run->last_id;
    return commit(f, run, err);
}

static void note_reply(struct feeder *f, const struct feed_run *run, const struct track_reply *reply)
{
    spend(f, reply);
    if (reply->stop && f->uploader->on_stop != NULL && run->trial_id != 0)
        f->uploader->on_stop(f->uploader->ctx, run->trial_id, f->ops->name);
    if (reply->verdict == TRACK_RETRY)
        note_outage(f, reply);
    else if (reply->verdict == TRACK_REFUSED)
        note_refusal(f, reply);
    else
        note_recovery(f, reply);
}

void feeder_logged_in(struct feeder *f)
{
    const char *page = f->ops->page != NULL ? f->ops->page(f->self) : "";

    f->logged_in = true;
    if (page[0] != '\0' && !f->drain)
        log_info("%s: %s", f->ops->name, page);
}

static void log_in(struct feeder *f)
{
    struct track_reply reply = {.verdict = TRACK_DONE};

    f->ops->login(f->self, &reply);
    spend(f, &reply);
    if (reply.verdict == TRACK_RETRY) {
        note_outage(f, &reply);
    } else if (reply.verdict == TRACK_DONE) {
        note_recovery(f, &reply);
        feeder_logged_in(f);
    } else {
        note_refusal(f, &reply);
    }
}

static bool begins(const struct batch *batch)
{
    return batch->n > 0 && (batch->rows[0].type == TRACK_ROW_START || batch->rows[0].type == TRACK_ROW_STUDY);
}

/* Ends the run of the attempt before and forgets its position: the next row makes another run. False: not now. */
static bool start_over(struct feeder *f, struct feed_run *run, struct batch *batch, struct track_reply *reply)
{
    JSON_LOCAL cJSON *end = cJSON_CreateObject();
    struct track_run sent_run;
    const struct track_row row = {.id = batch->rows[0].id,
                                  .ms = batch->rows[0].ms,
                                  .type = TRACK_ROW_RESULT,
                                  .env_steps = run->position.last_step,
                                  .json = end};

    json_add_str(end, "type", "result");
    json_add_str(end, "state", "lost");
    json_add_str(end, "reason", "its program ended; the trial began again from zero, in a run of its own");
    json_add_i64(end, "env_steps", run->position.last_step > 0 ? run->position.last_step : 0);
    run_for_tracker(f, run, &sent_run);
    f->ops->send(f->self, &sent_run, &row, 1, reply);
    run->state = sent_run.state;
    note_reply(f, run, reply);
    if (reply->verdict != TRACK_DONE && reply->verdict != TRACK_RUN_REFUSED)
        return false;
    cJSON_Delete(run->state);
    run->state = cJSON_CreateObject();
    int64_t attempt = json_i64_or(batch->rows[0].json, "attempt", 0);
    json_add_i64(run->state, ATTEMPT_KEY, attempt);
    run->position.sent_rows = 0;
    run->position.last_step = batch->last_step = batch->steps_after[0] = -1;
    run->position.ended = false;
    *reply = (struct track_reply){.verdict = TRACK_DONE};
    return true;
}

static enum status send_run(struct feeder *f, struct feed_run *run, struct error *err)
{
    struct track_reply reply = {.verdict = TRACK_DONE};
    struct track_run sent_run;
    struct batch batch = {0};
    bool any;
    enum status rc;

    TRY(load_run(f, run, err));
    if (run->position.refused != NULL)
        return skip_rows(f, run, err);
    TRY(claim(f, run, &batch, &any, err));
    if (!any) { /* known already, or removed with its trial */
        run->position.acked_id = run->last_id;
        return ST_OK;
    }
    if (run->position.sent_rows > 0 && batch.n > 0 && batch_starts_over(&batch.rows[0])) {
        rc = ST_OK;
        if (!start_over(f, run, &batch, &reply) || (rc = commit(f, run, err)) != ST_OK) {
            batch_free(&batch);
            return rc;
        }
    }
    run_for_tracker(f, run, &sent_run);
    if (run->position.sent_rows == 0 && !begins(&batch)) /* a tracker added later has no run for these rows */
        batch.n = 0;
    if (batch.n > 0) {
        f->ops->send(f->self, &sent_run, batch.rows, batch.n, &reply);
        run->state = sent_run.state;
        run->sent_s = run->spoke_s = clock_mono_s();
        note_reply(f, run, &reply);
    }
    rc = settle(f, run, &batch, &reply, err);
    batch_free(&batch);
    return rc;
}

static void beat_run(struct feeder *f, struct feed_run *run)
{
    struct track_reply reply = {.verdict = TRACK_DONE};
    struct track_run sent_run;

    run_for_tracker(f, run, &sent_run);
    f->ops->beat(f->self, &sent_run, &reply);
    run->state = sent_run.state;
    run->spoke_s = clock_mono_s();
    if (reply.verdict == TRACK_RUN_REFUSED)
        reply.verdict = TRACK_DONE; /* the next rows will be refused too */
    note_reply(f, run, &reply);
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

/* The run that has waited longest, NULL when no run has rows or a beat to send; *ret_due_s: the time to send it. */
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

/* Forgets ended runs that have no rows left. */
static void tidy(struct feeder *f)
{
    for (size_t i = f->n_runs; i-- > 0;)
        if (f->runs[i].loaded && !waits(&f->runs[i]) && (f->runs[i].position.ended || f->drain))
            forget_run(f, &f->runs[i]);
}

/* Waits until at_s, a wake or a change; false: the thread shall end. */
static bool wait_until(struct feeder *f, double at_s, bool idle)
{
    struct uploader *up = f->uploader;
    double now_s = clock_mono_s(), until_s = fmin(at_s, now_s + READ_EVERY_S);
    bool runs_on = true;
    uint64_t wakes;

    pthread_mutex_lock(&up->lock);
    wakes = up->wakes;
    /* Only a read of the outbox after the owner's last call has all its rows. */
    idle = idle && f->closing == up->closing && f->drain == up->drain;
    f->counts.idle = idle;
    if (wakes != f->seen_wakes) /* rows may have come since the read */
        until_s = now_s;
    f->seen_wakes = wakes;
    if (up->closing && (idle || f->counts.refused || now_s >= up->deadline_s))
        runs_on = false;
    if (up->closing)
        until_s = fmin(until_s, up->deadline_s);
    if (runs_on && until_s > now_s) {
        struct timespec at = clock_timespec(until_s);
        bool was_closing = up->closing;
        while (wakes == up->wakes && was_closing == up->closing &&
               pthread_cond_timedwait(&up->changed, &up->lock, &at) == 0)
            continue;
    }
    pthread_mutex_unlock(&up->lock);
    return runs_on;
}

static void read_uploader(struct feeder *f, bool *ret_refused)
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
    bool runs_on = true, logged = false;

    while (runs_on) {
        struct error err = {0};
        struct feed_run *run = NULL;
        bool refused, beat = false;
        double now_s, at_s = INFINITY;
        read_uploader(f, &refused);
        enum status rc = refused ? ST_OK : read_outbox(f, &err);
        if (rc == ST_OK && !refused)
            run = next_run(f, &beat, &at_s);
        now_s = clock_mono_s();
        if (run != NULL)
            at_s = fmax(at_s, fmax(f->next_s, now_s + budget_wait(f, now_s)));
        if (run != NULL && at_s <= now_s && rc == ST_OK) {
            set_asking(f, true);
            if (!f->logged_in && f->ops->login != NULL)
                log_in(f);
            else if (beat)
                beat_run(f, run);
            else
                rc = send_run(f, run, &err);
            set_asking(f, false);
            at_s = now_s;
        }
        if (rc == ST_CORRUPT) { /* a damaged row is not sent, and trying again does not help */
            log_warn("%s: %s; no more rows are sent there, training continues", f->ops->name, err.text);
            set_trouble(f, false, true, err.text);
        } else if (rc != ST_OK) {
            if (!logged)
                log_warn("%s: %s; trying again, training continues", f->ops->name, err.text);
            logged = true;
            at_s = now_s + STORE_RETRY_S;
            f->next_s = fmax(f->next_s, at_s);
        }
        tidy(f);
        runs_on = wait_until(f, at_s, rc == ST_OK && (refused || run == NULL || beat));
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
