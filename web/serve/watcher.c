/* watcher.c - the watcher: one thread that looks at the store twice a second for all clients, keeps what was read up to
 * date and publishes what changed; and the pulse, one that sends each stream how old the last look is, and ends
 * connections that take too long.
 *
 * Invariants: (1) SQLite is asked for changes (data_version) before anything is read; a store that is not written
 * costs a few cheap queries each time; (2) a store that vanishes, is replaced or cannot be read is an event and not an
 * end: what was read last stays visible until there is something newer; (3) the data lock is held for memory alone: the
 * store is read before it is taken, events are published after it is free; (4) of a file that was replaced, or changed
 * while no process had the store, nothing that was read before is trusted: it is read again from the first trial on. */
#include "web/serve/serve_priv.h"

#include "base/text/json.h"
#include "gp/gp.h"
#include "study/view/promise.h"
#include "web/serve/events.h"
#include "web/serve/data/page_study.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define ADVICE_REST 9 /* times what the advice on a study took */
#define LOOK_MS 500
#define PULSE_MS 1000 /* pages take a server that is silent for 3.5 s for gone */
#define NEWS_MAX 4096 /* of one look; more: clients read everything again */

/* What a look found, published after the lock is free. */
struct news {
    const char *type;
    char *study; /* owned */
    cJSON *json;
};

struct watch {
    struct serve *s;
    struct store *store; /* NULL: cannot be read at the moment */
    off_t size; /* of the file, and the time of its last change, as of the last look that trusted it */
    struct timespec written;
    int64_t data_version;
    struct news *news; /* (n_news) */
    size_t n_news;
    bool too_much;
};

static int64_t now_ms(void)
{
    return (int64_t)(clock_mono_s() * 1e3);
}

static void watch_free(struct watch *w)
{
    store_close(w->store);
    mem_free(w->news);
    mem_free(w);
}

static void notify(struct watch *w, const char *type, const char *study, cJSON *json)
{
    if (w->n_news == NEWS_MAX) {
        w->too_much = true;
        cJSON_Delete(json);
        return;
    }
    w->news[w->n_news++] = (struct news){type, study != NULL ? mem_strdup(study) : NULL, json};
}

static void publish(struct watch *w)
{
    for (size_t i = 0; i < w->n_news; i++) {
        if (w->too_much)
            cJSON_Delete(w->news[i].json);
        else
            events_publish(w->s->events, w->news[i].type, w->news[i].study, w->news[i].json);
        mem_free(w->news[i].study);
    }
    if (w->too_much)
        events_publish(w->s->events, "reset", NULL, cJSON_CreateObject());
    w->n_news = 0;
    w->too_much = false;
}

static cJSON *about(const char *study, int64_t version)
{
    cJSON *json = cJSON_CreateObject();

    if (study != NULL)
        json_add_str(json, "study", study);
    json_add_i64(json, "version", version);
    return json;
}

static cJSON *study_news(const struct page_study *p, bool has_writer)
{
    cJSON *json = about(p->view.study.name, p->version);
    struct promise best = {.score = NAN};

    if (p->best < p->view.n)
        study_view_promise(&p->view, p->best, &best);
    json_add_str(json, "state", page_study_state(p, has_writer));
    json_add(json, "counts", page_study_counts(p));
    json_add_f64(json, "hypervolume", p->hypervolume);
    json_add_f64(json, "best_score", best.score);
    json_add_f64(json, "cost_s", p->cost_s);
    return json;
}

static cJSON *trial_news(const struct page_study *p, size_t i)
{
    const struct trial *t = &p->view.trials[i];
    cJSON *json = about(p->view.study.name, p->version);

    json_add_i64(json, "trial", t->number);
    json_add_str(json, "state", trial_state_name(t->state));
    json_add_f64(json, "score", t->score);
    json_add_f64(json, "cost", study_view_trial_cost(&p->view, t));
    json_add_str(json, "reason", t->reason);
    return json;
}

static cJSON *progress_news(const struct page_study *p, size_t i)
{
    const struct last_report *live = &p->live[i];
    cJSON *json = about(p->view.study.name, p->version);

    json_add_i64(json, "trial", (int64_t)i);
    json_add_i64(json, "env_steps", live->env_steps);
    json_add_f64(json, "wall_s", live->wall_s);
    json_add_f64(json, "score", live->score);
    return json;
}

/* What has changed in a study that was updated to its version; n_before: trials it had. */
static void notify_changes(struct watch *w, const struct page_study *p, const enum trial_state *before, size_t n_before)
{
    const struct study_view *v = &p->view;

    for (size_t i = 0; i < v->n; i++) {
        if (p->changed[i] != p->version)
            continue;
        if (i >= n_before || v->trials[i].state != before[i])
            notify(w, "trial", v->study.name, trial_news(p, i));
        else if (v->trials[i].state == TRIAL_RUNNING)
            notify(w, "progress", v->study.name, progress_news(p, i));
    }
    notify(w, "study", v->study.name, study_news(p, w->s->has_writer));
}

/* A study whose space was widened counts as another, so that its trials are read again. */
static bool is_same(const struct study *a, const struct study *b)
{
    return a->id == b->id && a->created_ms == b->created_ms && strcmp(a->name, b->name) == 0 &&
           strcmp(a->space, b->space) == 0;
}

/* Its place among the studies that were read; n_studies: it was not. */
static size_t find_study(const struct serve *s, const struct study *study)
{
    size_t i = 0;

    while (i < s->n_studies && !is_same(&s->studies[i]->view.study, study))
        i++;
    return i;
}

static enum status update_one(struct watch *w, struct page_study *p, struct study *study, struct error *err)
{
    struct serve *s = w->s;
    int64_t version = atomic_load(&s->version) + 1;
    size_t n_before = p->view.n;
    bool changed = false;
    struct page_news news;

    TRY(page_study_read(p, w->store, study, &news, err));
    MEM_LOCAL enum trial_state *before = mem_array(n_before, sizeof *before);
    for (size_t i = 0; i < n_before; i++)
        before[i] = p->view.trials[i].state;
    pthread_rwlock_wrlock(&s->data);
    page_study_apply(p, &news, version, &changed);
    pthread_rwlock_unlock(&s->data);
    if (changed) {
        atomic_store(&s->version, version);
        notify_changes(w, p, before, n_before);
    }
    return ST_OK;
}

static enum status add_one(struct watch *w, struct study *study, struct error *err)
{
    struct serve *s = w->s;
    struct page_study *p = NULL;
    int64_t version = atomic_load(&s->version) + 1;

    TRY(page_study_create(&p, w->store, study, version, err));
    p->has_controller = s->has_writer; /* until look_at_writer finds out */
    pthread_rwlock_wrlock(&s->data);
    MEM_ROOM(s->studies, s->n_studies, s->cap_studies);
    s->studies[s->n_studies++] = p;
    atomic_store(&s->version, version);
    pthread_rwlock_unlock(&s->data);
    notify(w, "studies", NULL, about(NULL, version));
    notify(w, "study", p->view.study.name, study_news(p, s->has_writer));
    return ST_OK;
}

/* Studies that are not in the store any more. */
static void drop_missing(struct watch *w, const struct study *studies, size_t n)
{
    struct serve *s = w->s;
    size_t kept = 0;

    pthread_rwlock_wrlock(&s->data);
    for (size_t k = 0; k < s->n_studies; k++) {
        struct page_study *p = s->studies[k];
        bool there = false;
        for (size_t i = 0; i < n && !there; i++)
            there = is_same(&studies[i], &p->view.study);
        if (there)
            s->studies[kept++] = p;
        else
            page_study_free(p);
    }
    bool dropped = kept < s->n_studies;
    s->n_studies = kept;
    if (dropped)
        atomic_fetch_add(&s->version, 1);
    pthread_rwlock_unlock(&s->data);
    if (dropped)
        notify(w, "studies", NULL, about(NULL, atomic_load(&s->version)));
}

/* Replaces what is known of a study by what is in the store now, where that is something else. Takes study. */
static enum status trust_again(struct watch *w, size_t at, struct study *study, struct error *err)
{
    struct serve *s = w->s;
    struct page_study *p = s->studies[at], *now = NULL;
    struct study newest;
    int64_t version;

    if (store_study_find(w->store, study->name, &newest, NULL) == ST_OK)
        (void)!update_one(w, p, &newest, NULL);
    version = atomic_load(&s->version) + 1;
    TRY(page_study_create(&now, w->store, study, version, err));
    now->has_controller = p->has_controller;
    if (page_study_is_same(p, now)) {
        page_study_free(now);
        return ST_OK;
    }
    pthread_rwlock_wrlock(&s->data);
    s->studies[at] = now;
    atomic_store(&s->version, version);
    pthread_rwlock_unlock(&s->data);
    page_study_free(p);
    notify(w, "study", now->view.study.name, study_news(now, s->has_writer));
    return ST_OK;
}

/* All studies of the store; fresh: what was read before is of another file, or may be. */
static enum status read_all(struct watch *w, bool fresh, struct error *err)
{
    struct study *studies = NULL;
    size_t n = 0;
    enum status rc = store_study_list(w->store, &studies, &n, err);

    if (rc == ST_OK)
        drop_missing(w, studies, n);
    for (size_t i = 0; i < n && rc == ST_OK; i++) {
        size_t at = find_study(w->s, &studies[i]);
        struct error why = {0};
        if (at == w->s->n_studies)
            rc = add_one(w, &studies[i], &why);
        else if (fresh)
            rc = trust_again(w, at, &studies[i], &why);
        else
            rc = update_one(w, w->s->studies[at], &studies[i], &why);
        if (rc != ST_OK)
            error_set(err, rc, "%s", why.text);
    }
    study_list_free(studies, n);
    return rc;
}

/* Advice on the studies that have news; after t seconds of that a study rests 9 t, so that it takes a tenth of a core
 * at most. A study that cannot be judged is shown by its single runs. */
static void advise_all(struct watch *w)
{
    struct serve *s = w->s;

    for (size_t i = 0; i < s->n_studies; i++) { /* only this thread writes them */
        struct page_study *p = s->studies[i];
        struct gp_insight advice;
        struct error why = {0};
        double begin_s = clock_mono_s();
        int64_t version = atomic_load(&s->version) + 1;
        if (!page_study_wants_advice(p, begin_s))
            continue;
        if (study_view_compute_advice(&p->view, &advice, &why) != ST_OK) {
            log_debug("no advice on %s: %s", p->view.study.name, why.text);
            advice = (struct gp_insight){.n = p->view.n, .recommended = p->view.n, .note = "the trials cannot be read"};
        }
        pthread_rwlock_wrlock(&s->data);
        page_study_take_advice(p, &advice, version);
        double end_s = clock_mono_s();
        p->advice_rest_s = end_s + ADVICE_REST * (end_s - begin_s);
        pthread_rwlock_unlock(&s->data);
        atomic_store(&s->version, version);
        notify(w, "study", p->view.study.name, study_news(p, s->has_writer));
    }
}

static void set_store_error(struct watch *w, const char *text)
{
    struct serve *s = w->s;

    pthread_rwlock_wrlock(&s->data);
    bool any = s->n_studies > 0;
    bool changed = strcmp(s->store_error, text) != 0;
    if (changed) {
        snprintf(s->store_error, sizeof s->store_error, "%s", text);
        atomic_fetch_add(&s->version, 1);
    }
    pthread_rwlock_unlock(&s->data);
    if (!changed)
        return;
    if (text[0] != '\0')
        log_warn("%s; looking again every %d ms, until then the pages %s", text, LOOK_MS,
                 any ? "show what was read before" : "have no study");
    cJSON *json = cJSON_CreateObject();
    json_add_i64(json, "version", atomic_load(&s->version));
    json_add_bool(json, "ok", text[0] == '\0');
    json_add_str(json, "error", text[0] != '\0' ? text : NULL);
    notify(w, "store", NULL, json);
}

static void forget_store(struct watch *w)
{
    struct serve *s = w->s;

    store_close(w->store);
    w->store = NULL;
    pthread_mutex_lock(&s->readers.lock);
    s->readers.generation++;
    while (s->readers.n > 0)
        store_close(s->readers.idle[--s->readers.n]);
    pthread_mutex_unlock(&s->readers.lock);
}

/* Has the file changed? Noted: it is as it should be. */
static bool has_changed(struct watch *w, bool note)
{
    struct stat st;
    bool changed;

    if (store_is_address(w->s->set.store_path) || stat(w->s->set.store_path, &st) != 0)
        return false;
    changed =
        st.st_size != w->size || st.st_mtim.tv_sec != w->written.tv_sec || st.st_mtim.tv_nsec != w->written.tv_nsec;
    if (note) {
        w->size = st.st_size;
        w->written = st.st_mtim;
    }
    return changed;
}

/* A file that is not the one that was opened, or holds what no controller has written. What its controller writes is
 * its own business, and changes data_version. */
static bool is_another(struct watch *w)
{
    struct error why = {0};

    if (store_reader_check(w->store, &why) != ST_OK) {
        log_debug("%s; opening it again", why.text);
        return true;
    }
    if (store_has_writer(w->store)) {
        (void)has_changed(w, true);
        return false;
    }
    return has_changed(w, false);
}

/* Opens the store when it is not open, or when another file is at its path now. *ret_fresh: it was opened just now. */
static enum status look_at_file(struct watch *w, bool *ret_fresh, struct error *err)
{
    struct stat st;

    *ret_fresh = false;
    if (w->store != NULL && is_another(w))
        forget_store(w);
    if (w->store != NULL)
        return ST_OK;
    if (!store_is_address(w->s->set.store_path) && stat(w->s->set.store_path, &st) != 0)
        return FAIL(err, ST_IO, "there is no store at %s (%s)", w->s->set.store_path, strerror(errno));
    (void)has_changed(w, true);
    TRY(store_open_reader(&w->store, w->s->set.store_path, err));
    w->data_version = -1;
    *ret_fresh = true;
    return store_reader_check(w->store, err);
}

static bool is_among(const struct held_study *list, size_t n, int64_t id)
{
    for (size_t i = 0; i < n; i++)
        if (list[i].id == id)
            return true;
    return false;
}

/* Which studies have a controller. Only this thread writes that. */
static void look_at_writer(struct watch *w)
{
    struct serve *s = w->s;
    bool held = w->store != NULL && store_has_writer(w->store), shared = store_is_address(s->set.store_path);
    bool changed = held != s->has_writer;
    MEM_LOCAL struct held_study *list = NULL;
    struct error ignored = {0};
    size_t n = 0;

    if (held && shared)
        (void)!store_studies_held(w->store, true, &list, &n, &ignored);
    for (size_t i = 0; i < s->n_studies; i++) {
        struct page_study *p = s->studies[i];
        bool has = shared ? is_among(list, n, p->view.study.id) : held;
        if (has == p->has_controller && !changed)
            continue;
        pthread_rwlock_wrlock(&s->data);
        s->has_writer = held;
        p->has_controller = has;
        p->version = atomic_fetch_add(&s->version, 1) + 1;
        pthread_rwlock_unlock(&s->data);
        notify(w, "study", p->view.study.name, study_news(p, held));
    }
    pthread_rwlock_wrlock(&s->data);
    s->has_writer = held;
    pthread_rwlock_unlock(&s->data);
}

static void look(struct watch *w)
{
    struct error err = {0};
    bool fresh = false;
    int64_t data_version = 0;
    enum status rc = look_at_file(w, &fresh, &err);

    THEN(rc, store_data_version(w->store, &data_version, &err));
    if (rc == ST_OK && (fresh || data_version != w->data_version)) {
        rc = read_all(w, fresh, &err);
        w->data_version = rc == ST_OK ? data_version : -1;
    }
    if (rc == ST_OK)
        atomic_store(&w->s->looked_ms, now_ms());
    advise_all(w);
    if (rc != ST_OK && w->store != NULL)
        forget_store(w);
    look_at_writer(w);
    set_store_error(w, rc == ST_OK ? "" : err.text);
    publish(w);
}

/* Ends connections that take too long to send a request or to receive an answer: after shutdown, libmicrohttpd sees an
 * end. */
static void end_slow(struct serve *s, int64_t now_ms)
{
    pthread_mutex_lock(&s->conns_lock);
    for (struct conn *c = s->conns; c != NULL; c = c->next)
        if (c->deadline_ms > 0 && now_ms > c->deadline_ms) {
            shutdown(c->fd, SHUT_RDWR);
            c->deadline_ms = 0;
        }
    pthread_mutex_unlock(&s->conns_lock);
}

/* Sleeps for that long; true: the server ends. */
static bool rest(struct serve *s, int ms)
{
    struct pollfd fd = {.fd = s->wake[0], .events = POLLIN}; /* never read: it ends the sleep of both threads */

    (void)poll(&fd, 1, ms);
    return atomic_load(&s->stopping);
}

static void *watch_run(void *ctx)
{
    struct watch *w = ctx;

    while (!rest(w->s, LOOK_MS))
        look(w);
    watch_free(w);
    return NULL;
}

static void *pulse_run(void *ctx)
{
    struct serve *s = ctx;

    while (!rest(s, PULSE_MS)) {
        int64_t at_ms = now_ms();
        events_pulse(s->events, atomic_load(&s->version), (double)(at_ms - atomic_load(&s->looked_ms)) / 1e3);
        end_slow(s, at_ms);
    }
    return NULL;
}

static struct watch *watch_create(struct serve *s)
{
    struct watch *w = mem_alloc(sizeof *w);

    w->news = mem_array(NEWS_MAX, sizeof *w->news);
    w->s = s;
    look(w);
    return w;
}

void watch_once(struct serve *s)
{
    watch_free(watch_create(s));
}

enum status watch_start(struct serve *s, struct error *err)
{
    struct watch *w = watch_create(s);

    if (pthread_create(&s->watcher, NULL, watch_run, w) != 0) {
        watch_free(w);
        return FAIL(err, ST_IO, "the watcher's thread did not start; the system's limit of threads may be reached");
    }
    s->has_watcher = true;
    if (pthread_create(&s->pulse, NULL, pulse_run, s) != 0)
        return FAIL(err, ST_IO, "the pulse's thread did not start; the system's limit of threads may be reached");
    s->has_pulse = true;
    return ST_OK;
}

void watch_stop(struct serve *s)
{
    if (s->has_watcher || s->has_pulse)
        (void)!write(s->wake[1], "x", 1);
    if (s->has_watcher)
        pthread_join(s->watcher, NULL);
    if (s->has_pulse)
        pthread_join(s->pulse, NULL);
    s->has_watcher = s->has_pulse = false;
}
