/* uploader.c - the life of the threads that feed a study's trackers.
 *
 * Threads: the caller creates, wakes and closes; each feeder's thread owns its store connection, its tracker and its
 * runs. They share the lock and the cancel time. Signals go to the caller's threads. */
#include "web/track/upload_priv.h"

#include "base/os/pool.h"
#include <signal.h>

#define LOGIN_S 10.0 /* a strict start waits this long for a login */
#define ABORT_S 1.0 /* a cancelled request ends within this time, which is part of the deadline */
#define LINGER_S 3.0 /* after the deadline, for a thread that is inside the operating system */

static void copy_options(struct uploader *up, const struct uploader_options *o)
{
    up->study_id = o->study_id;
    up->settings = *o->settings;
    up->on_stop = o->on_stop;
    up->ctx = o->ctx;
    up->drain = o->drain;
    up->single = o->single;
    up->store_path = mem_strdup(o->store_path);
    up->study = mem_strdup(o->study);
    up->program = mem_strdup(o->program);
}

/* Adds a tracker named in [track]; offline trackers are registered and not fed. */
static enum status add_tracker(struct uploader *up, struct store *store, const char *name, struct error *err)
{
    struct feeder *f = &up->feeders[up->n_feeders];
    enum track_mode mode = TRACK_ONLINE;
    const struct track_open open = {.settings = &up->settings,
                                    .study = up->study,
                                    .key = up->key,
                                    .program = up->program,
                                    .single = up->single,
                                    .cancel = &up->cancel,
                                    .ret_mode = &mode};

    *f = (struct feeder){.uploader = up, .ops = track_find(name), .thin_ms = (int64_t)(up->settings.thin_s * 1e3)};
    if (f->ops == NULL)
        return FAIL(err, ST_CONFIG, "track.trackers: no tracker '%s'", name);
    if (up->n_feeders == UPLOAD_TRACKERS_MAX)
        return FAIL(err, ST_CONFIG, "track.trackers: more than %d", UPLOAD_TRACKERS_MAX);
    if (!up->settings.offline || up->drain)
        TRY(f->ops->open(&f->self, &open, err));
    else
        mode = TRACK_OFFLINE;
    if (mode == TRACK_DISABLED || (mode == TRACK_OFFLINE && !up->drain)) {
        if (f->self != NULL)
            f->ops->close(f->self);
        if (mode == TRACK_DISABLED)
            return ST_OK;
        up->n_registered++;
        return store_tracker_register(store, up->study_id, name, up->key, err);
    }
    up->n_registered++;
    f->rng = rng_split(rng_seed(clock_mono_ns()), up->n_feeders);
    up->n_feeders++; /* from here on uploader_close frees it */
    TRY(store_tracker_register(store, up->study_id, name, up->key, err));
    return store_open_second(&f->store, up->store_path, err);
}

static enum status log_in(const struct tracker_ops *ops, void *self, struct http_cancel *cancel, struct error *err)
{
    struct track_reply reply = {.verdict = TRACK_DONE};

    if (ops->login == NULL)
        return ST_OK;
    atomic_store(&cancel->deadline_ms, (int_least64_t)((clock_mono_s() + LOGIN_S) * 1e3));
    ops->login(self, &reply);
    atomic_store(&cancel->deadline_ms, 0);
    if (reply.verdict == TRACK_DONE)
        return ST_OK;
    return FAIL(err, reply.verdict == TRACK_RETRY ? ST_IO : ST_CONFIG,
                "%s: %s; fix it, or continue without it by track.strict = false", ops->name, reply.text);
}

enum status uploader_check(const struct track_settings *settings, const char *study, bool single, const char *program,
                           struct error *err)
{
    struct http_cancel cancel = {0};
    char name[64];

    TRY(track_settings_check(settings, err));
    for (const char *at = settings->trackers; !settings->offline && track_next_word(&at, name, sizeof name);) {
        const struct tracker_ops *ops = track_find(name); /* the check above knows it */
        enum track_mode mode = TRACK_ONLINE;
        const struct track_open open = {.settings = settings,
                                        .study = study,
                                        .key = "",
                                        .program = program,
                                        .single = single,
                                        .cancel = &cancel,
                                        .ret_mode = &mode};
        void *self = NULL;
        TRY(ops->open(&self, &open, err));
        enum status rc = settings->strict && mode == TRACK_ONLINE ? log_in(ops, self, &cancel, err) : ST_OK;
        ops->close(self);
        TRY(rc);
    }
    return ST_OK;
}

static enum status start(struct uploader *up, struct error *err)
{
    sigset_t before;
    int rc = 0;

    pool_block_signals(&before);
    for (size_t i = 0; i < up->n_feeders && rc == 0; i++) {
        rc = pthread_create(&up->feeders[i].thread, NULL, feeder_main, &up->feeders[i]);
        up->feeders[i].started = rc == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? ST_OK : FAIL(err, ST_IO, "cannot start the thread of a tracker: %s", strerror(rc));
}

enum status uploader_create(struct uploader **ret_uploader, const struct uploader_options *options, struct error *err)
{
    struct uploader *up = mem_alloc(sizeof *up);
    struct store *store = NULL;
    char name[64];

    *ret_uploader = NULL;
    pthread_mutex_init(&up->lock, NULL);
    clock_cond_init(&up->changed);
    copy_options(up, options);
    enum status rc = store_open_second(&store, up->store_path, err);
    for (const char *at = options->settings->trackers; rc == ST_OK && track_next_word(&at, name, sizeof name);)
        rc = add_tracker(up, store, name, err);
    store_close(store);
    for (size_t i = 0; rc == ST_OK && up->settings.strict && i < up->n_feeders; i++) {
        rc = log_in(up->feeders[i].ops, up->feeders[i].self, &up->cancel, err);
        if (rc == ST_OK)
            feeder_logged_in(&up->feeders[i]);
    }
    THEN(rc, start(up, err));
    if (rc != ST_OK) {
        uploader_close(up, 0, NULL);
        return rc;
    }
    *ret_uploader = up;
    return ST_OK;
}

bool uploader_wants_rows(const struct uploader *up)
{
    return up != NULL && up->n_registered > 0;
}

void uploader_wake(struct uploader *up)
{
    if (up == NULL)
        return;
    pthread_mutex_lock(&up->lock);
    up->wakes++;
    pthread_cond_broadcast(&up->changed);
    pthread_mutex_unlock(&up->lock);
}

void uploader_hurry(struct uploader *up)
{
    if (up == NULL)
        return;
    pthread_mutex_lock(&up->lock);
    up->drain = true;
    for (size_t i = 0; i < up->n_feeders; i++)
        up->feeders[i].counts.idle = false; /* until it has read the outbox again */
    up->wakes++;
    pthread_cond_broadcast(&up->changed);
    pthread_mutex_unlock(&up->lock);
}

void uploader_counts(struct uploader *up, struct upload_counts *ret_counts)
{
    *ret_counts = (struct upload_counts){.idle = true};
    if (up == NULL)
        return;
    ret_counts->answers = atomic_load(&up->cancel.answers);
    pthread_mutex_lock(&up->lock);
    for (size_t i = 0; i < up->n_feeders; i++) {
        const struct upload_counts *c = &up->feeders[i].counts;
        ret_counts->sent += c->sent;
        ret_counts->skipped += c->skipped;
        ret_counts->refused_runs += c->refused_runs;
        ret_counts->idle = ret_counts->idle && (c->idle || c->refused);
        ret_counts->down = ret_counts->down || c->down;
        ret_counts->asking = ret_counts->asking || c->asking;
        ret_counts->refused = ret_counts->refused || c->refused;
        if (c->down || c->refused)
            snprintf(ret_counts->text, sizeof ret_counts->text, "%s: %s", up->feeders[i].ops->name, c->text);
    }
    pthread_mutex_unlock(&up->lock);
}

/* The largest number of rows that a tracker lacks. */
static int64_t count_waiting(struct uploader *up)
{
    AT_END(store_close_at) struct store *store = NULL;
    struct error none = {0};
    int64_t most = 0, n;
    char name[64];

    if (store_open_second(&store, up->store_path, &none) != ST_OK)
        return 0;
    for (const char *at = up->settings.trackers; track_next_word(&at, name, sizeof name);)
        if (store_outbox_count(store, up->study_id, name, &n, &none) == ST_OK && n > most)
            most = n;
    return most;
}

/* False: the thread is stuck in the operating system; its memory must stay. */
static bool join(struct feeder *f, double deadline_s)
{
    struct timespec at;
    double left_s = deadline_s + LINGER_S - clock_mono_s();

    if (!f->started)
        return true;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += left_s > 0 ? (time_t)left_s + 1 : 1;
    if (pthread_timedjoin_np(f->thread, NULL, &at) == 0)
        return true;
    log_warn("the thread of %s does not end and is abandoned", f->ops->name);
    return false;
}

void uploader_close(struct uploader *up, double seconds, struct upload_counts *ret_counts)
{
    double deadline_s = clock_mono_s() + seconds - fmin(ABORT_S, seconds * 0.3);
    bool all = true;

    if (ret_counts != NULL)
        *ret_counts = (struct upload_counts){.idle = true};
    if (up == NULL)
        return;
    atomic_store(&up->cancel.deadline_ms, (int_least64_t)(deadline_s * 1e3) | 1); /* never 0, which is "none" */
    pthread_mutex_lock(&up->lock);
    up->closing = true;
    up->deadline_s = deadline_s;
    pthread_cond_broadcast(&up->changed);
    pthread_mutex_unlock(&up->lock);
    for (size_t i = 0; i < up->n_feeders; i++)
        all = join(&up->feeders[i], deadline_s) && all;
    if (ret_counts != NULL) {
        uploader_counts(up, ret_counts);
        ret_counts->waiting = count_waiting(up);
    }
    if (!all)
        return;
    for (size_t i = 0; i < up->n_feeders; i++)
        feeder_free(&up->feeders[i]);
    pthread_cond_destroy(&up->changed);
    pthread_mutex_destroy(&up->lock);
    mem_free(up->store_path);
    mem_free(up->study);
    mem_free(up->program);
    mem_free(up);
}
