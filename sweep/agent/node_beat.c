/* node_beat.c - a node's row in its store. A store that cannot be reached is tried again at the next beat. */
#include "sweep/agent/node_beat.h"

#include "store/store.h"

#define BEAT_S 5

struct node_beat {
    const char *store_path;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows; never held together with another lock */
    pthread_cond_t changed;
    struct node node;
    bool news, ends;
};

static void beat(struct node_beat *b, struct store **store, bool *ret_fails)
{
    struct error why = {0};
    struct node node;
    enum status rc = *store == NULL ? store_open_second(store, b->store_path, &why) : ST_OK;

    pthread_mutex_lock(&b->lock);
    node = b->node;
    bool ends = b->ends;
    pthread_mutex_unlock(&b->lock);
    THEN(rc, ends ? store_node_forget(*store, node.name, &why) : store_node_beat(*store, &node, &why));
    if (rc != ST_OK) {
        store_close(*store);
        *store = NULL;
        if (!*ret_fails)
            log_warn("%s: no sign of life: %s; trying again, its trials continue", node.name, why.text);
    } else if (*ret_fails) {
        log_info("%s: the store can be reached again", node.name);
    }
    *ret_fails = rc != ST_OK;
}

static void *live(void *ctx)
{
    struct node_beat *b = ctx;
    AT_END(store_close_at) struct store *store = NULL;
    bool fails = false, ends = false;

    while (!ends) {
        beat(b, &store, &fails);
        struct timespec until = clock_timespec(clock_mono_s() + BEAT_S);
        pthread_mutex_lock(&b->lock);
        while (!b->news && !b->ends && pthread_cond_timedwait(&b->changed, &b->lock, &until) != ETIMEDOUT)
            ;
        b->news = false;
        ends = b->ends;
        pthread_mutex_unlock(&b->lock);
    }
    beat(b, &store, &fails);
    return NULL;
}

enum status node_beat_start(struct node_beat **ret_beat, const char *store, const char *name, const char *job,
                            struct error *err)
{
    struct node_beat *b = mem_alloc(sizeof *b);

    *ret_beat = NULL;
    b->store_path = store;
    snprintf(b->node.name, sizeof b->node.name, "%s", name);
    snprintf(b->node.job, sizeof b->node.job, "%s", job);
    if (gethostname(b->node.host, sizeof b->node.host - 1) != 0)
        b->node.host[0] = '\0';
    pthread_mutex_init(&b->lock, NULL);
    clock_cond_init(&b->changed);
    int code = pthread_create(&b->thread, NULL, live, b);
    if (code != 0) {
        mem_free(b);
        return FAIL(err, ST_IO, "cannot start a thread: %s", strerror(code));
    }
    *ret_beat = b;
    return ST_OK;
}

static void wake(struct node_beat *b)
{
    b->news = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
}

void node_beat_device(struct node_beat *b, const char *device, const char *meets)
{
    pthread_mutex_lock(&b->lock);
    snprintf(b->node.device, sizeof b->node.device, "%s", device);
    snprintf(b->node.meets, sizeof b->node.meets, "%s", meets);
    wake(b);
}

void node_beat_ready(struct node_beat *b, int64_t slots)
{
    pthread_mutex_lock(&b->lock);
    if (b->node.slots == slots)
        pthread_mutex_unlock(&b->lock);
    else {
        b->node.slots = slots;
        wake(b);
    }
}

void node_beat_stop(struct node_beat *b)
{
    if (b == NULL)
        return;
    pthread_mutex_lock(&b->lock);
    b->ends = true;
    wake(b);
    pthread_join(b->thread, NULL);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
    mem_free(b);
}
