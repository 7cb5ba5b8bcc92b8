/* models.c - the modeller: one thread that computes what the models conclude about a study, when a client asked and the
 * study has news.
 *
 * Invariants: (1) no request waits for a computation: it gets the last one, marked stale when a newer one is due; (2)
 * it takes about a tenth of one core at most while a study runs: after a computation of t seconds a study rests 9 t, at
 * least REST_S; the thread yields to others, but not so far that it could stand still for long with the lock; (3) a
 * model is used under `lock` alone, and freed under it. */
#include "web/serve/models.h"

#include "base/text/json.h"
#include "web/serve/events.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/study_model.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#define ENTRIES 8 /* studies whose models are kept */
#define REST_S 3.0

struct models {
    struct serve *s;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t asked;
    pthread_t thread;
    bool has_thread, ended;
    struct model_entry entries[ENTRIES];
    int64_t tick;
};

static void clear(struct model_entry *e)
{
    study_model_destroy(e->model);
    mem_free(e->study);
    *e = (struct model_entry){0};
}

/* Under the lock: the study's entry, made in the place of the longest unused one when it is new. */
static struct model_entry *entry_of(struct models *m, const char *study)
{
    struct model_entry *best = NULL;

    for (size_t i = 0; i < ENTRIES; i++) {
        struct model_entry *e = &m->entries[i];
        if (e->study != NULL && strcmp(e->study, study) == 0)
            return e;
        if (!e->computing && (best == NULL || e->used < best->used))
            best = e;
    }
    if (best == NULL)
        return NULL;
    clear(best);
    best->study = mem_strdup(study);
    return best;
}

enum model_state models_lock(struct models *m, const char *study, int64_t version, struct model_entry **ret_entry)
{
    pthread_mutex_lock(&m->lock);
    struct model_entry *e = entry_of(m, study);
    *ret_entry = e;
    if (e == NULL)
        return MODEL_NONE;
    e->used = ++m->tick;
    if (e->version < version && e->wanted < version) {
        e->wanted = version;
        pthread_cond_signal(&m->asked);
    }
    if (e->version == 0)
        return MODEL_COMPUTING;
    if (e->model == NULL || study_model_note(e->model) != NULL)
        return MODEL_NONE;
    return e->version < version ? MODEL_STALE : MODEL_READY;
}

void models_unlock(struct models *m)
{
    pthread_mutex_unlock(&m->lock);
}

enum model_state models_peek(struct models *m, const char *study, int64_t version, int64_t *ret_model_version)
{
    struct model_entry *e;
    enum model_state state = models_lock(m, study, version, &e);

    *ret_model_version = e != NULL ? e->version : 0;
    models_unlock(m);
    return state;
}

static const char *const state_names[] = {
    [MODEL_NONE] = "none", [MODEL_COMPUTING] = "computing", [MODEL_STALE] = "stale", [MODEL_READY] = "ready"};

const char *model_state_name(enum model_state state)
{
    return state_names[state];
}

/* Under the lock: an entry that is due; else NULL, and how long until one is (0: none is asked for). */
static struct model_entry *next_due(struct models *m, double now_s, double *ret_wait_s)
{
    struct model_entry *best = NULL;

    *ret_wait_s = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        struct model_entry *e = &m->entries[i];
        if (e->study == NULL || e->wanted <= e->version)
            continue;
        if (e->rest_until_s > now_s)
            *ret_wait_s =
                *ret_wait_s == 0 || e->rest_until_s - now_s < *ret_wait_s ? e->rest_until_s - now_s : *ret_wait_s;
        else if (best == NULL || e->used > best->used)
            best = e;
    }
    return best;
}

static void wait_for_work(struct models *m, double wait_s)
{
    if (wait_s <= 0) {
        pthread_cond_wait(&m->asked, &m->lock);
        return;
    }
    struct timespec until = clock_timespec(clock_mono_s() + wait_s);
    pthread_cond_timedwait(&m->asked, &m->lock, &until);
}

static void notify(struct models *m, const char *study, int64_t version)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "study", study);
    json_add_i64(json, "version", version);
    events_publish(m->s->events, "model", study, json);
}

/* Computes the entry's model; called and left under the lock, which is free meanwhile. */
static void compute(struct models *m, struct model_entry *e)
{
    MEM_LOCAL char *study = mem_strdup(e->study);
    int64_t version = e->wanted;
    struct error err = {0};
    struct study_model *model = NULL;
    double begin_s = clock_mono_s();

    e->computing = true;
    pthread_mutex_unlock(&m->lock);
    enum status rc = study_model_create(&model, m->s->set.store_path, study, &err);
    double took_s = clock_mono_s() - begin_s;
    if (rc != ST_OK)
        log_debug("no model of a study: %s", err.text);
    const char *note = rc == ST_OK ? study_model_note(model) : err.text;
    pthread_mutex_lock(&m->lock);
    e->computing = false;
    e->version = version;
    e->rest_until_s = clock_mono_s() + (9 * took_s > REST_S ? 9 * took_s : REST_S);
    snprintf(e->note, sizeof e->note, "%s", note != NULL ? note : "");
    if (rc == ST_OK) {
        study_model_destroy(e->model);
        e->model = model;
    }
    pthread_mutex_unlock(&m->lock);
    notify(m, study, version);
    pthread_mutex_lock(&m->lock);
}

static void *run(void *ctx)
{
    struct models *m = ctx;

    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 5); /* of this thread alone, on Linux */
    pthread_mutex_lock(&m->lock);
    while (!m->ended) {
        double wait_s;
        struct model_entry *e = next_due(m, clock_mono_s(), &wait_s);
        if (e != NULL)
            compute(m, e);
        else
            wait_for_work(m, wait_s);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

enum status models_create(struct models **ret_models, struct serve *s, struct error *err)
{
    struct models *m = mem_alloc(sizeof *m);

    *ret_models = m;
    m->s = s;
    pthread_mutex_init(&m->lock, NULL);
    clock_cond_init(&m->asked);
    if (pthread_create(&m->thread, NULL, run, m) != 0)
        return FAIL(err, ST_IO, "the modeller's thread did not start; the system's limit of threads may be reached");
    m->has_thread = true;
    return ST_OK;
}

void models_destroy(struct models *m)
{
    if (m == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    m->ended = true;
    pthread_cond_signal(&m->asked);
    pthread_mutex_unlock(&m->lock);
    if (m->has_thread)
        pthread_join(m->thread, NULL);
    for (size_t i = 0; i < ENTRIES; i++)
        clear(&m->entries[i]);
    pthread_cond_destroy(&m->asked);
    pthread_mutex_destroy(&m->lock);
    mem_free(m);
}
