/* events.c - server-sent events: a ring of the last events, and streams that wait for the next.
 *
 * A stream without news is suspended, and costs no thread; publishing resumes all of them. Event ids are
 * "BOOT-NUMBER", so that one of an earlier server is recognised. Invariants: (1) a stream is suspended and resumed only
 * under the lock, and never twice; (2) a stream reads the ring at its own pace: one that is a whole ring late
 * gets `reset` and continues with what comes next; (3) the ring's texts are bounded. */
#include "web/serve/events.h"

#include "web/text/put.h"
#include "web/serve/mhd.h"
#include "web/serve/serve_priv.h"
#include <inttypes.h>

#define RING 1024
#define STREAMS_MAX 256
#define STREAM_BLOCK 4096

struct event {
    char *text; /* the whole event as it is sent; owned */
    char *study; /* NULL: of all */
};

struct stream {
    struct events *events;
    struct MHD_Connection *connection;
    struct stream *next;
    char *study; /* NULL: all */
    int64_t at; /* number of the next event to send */
    bool suspended, beat;
    struct strbuf out; /* what is being sent */
    size_t sent; /* of out */
};

struct events {
    pthread_mutex_t lock; /* guards all below */
    struct event ring[RING]; /* event number i at i % RING */
    int64_t next; /* number of the event to come */
    int64_t boot_ms;
    int64_t version; /* of all studies, and the age of the last look at the store: as of the last pulse */
    double age_s;
    struct stream *streams;
    size_t n_streams;
    bool ended;
};

struct events *events_create(void)
{
    struct events *e = mem_alloc(sizeof *e);

    pthread_mutex_init(&e->lock, NULL);
    e->boot_ms = clock_utc_ms();
    return e;
}

void events_destroy(struct events *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < RING; i++) {
        mem_free(e->ring[i].text);
        mem_free(e->ring[i].study);
    }
    pthread_mutex_destroy(&e->lock);
    mem_free(e);
}

/* Under the lock. */
static void wake(struct stream *s)
{
    if (!s->suspended)
        return;
    s->suspended = false;
    mhd.resume_connection(s->connection);
}

static void wake_all(struct events *e)
{
    for (struct stream *s = e->streams; s != NULL; s = s->next)
        wake(s);
}

void events_publish(struct events *e, const char *type, const char *study, cJSON *json)
{
    MEM_LOCAL char *data = json_print(json, false);

    cJSON_Delete(json);
    STRBUF(text, SERVE_BODY_BYTES);
    pthread_mutex_lock(&e->lock);
    strbuf_addf(&text, "id: %" PRId64 "-%" PRId64 "\nevent: %s\ndata: %s\n\n", e->boot_ms, e->next, type, data);
    struct event *event = &e->ring[e->next % RING];
    mem_free(event->text);
    mem_free(event->study);
    event->text = strbuf_take(&text);
    event->study = study != NULL ? mem_strdup(study) : NULL;
    e->next++;
    wake_all(e);
    pthread_mutex_unlock(&e->lock);
}

void events_pulse(struct events *e, int64_t version, double age_s)
{
    pthread_mutex_lock(&e->lock);
    e->version = version;
    e->age_s = age_s;
    for (struct stream *s = e->streams; s != NULL; s = s->next)
        s->beat = true;
    wake_all(e);
    pthread_mutex_unlock(&e->lock);
}

void events_end(struct events *e)
{
    if (e == NULL)
        return;
    pthread_mutex_lock(&e->lock);
    e->ended = true;
    wake_all(e);
    pthread_mutex_unlock(&e->lock);
}

/* Under the lock: fills out with what the stream has not got yet. */
static void collect(struct stream *s)
{
    struct events *e = s->events;

    strbuf_clear(&s->out);
    s->sent = 0;
    if (s->at < e->next - RING) {
        s->at = e->next;
        strbuf_addf(&s->out, "id: %" PRId64 "-%" PRId64 "\nevent: reset\ndata: {}\n\n", e->boot_ms, e->next - 1);
    }
    for (; s->at < e->next && s->out.len < SERVE_BODY_BYTES; s->at++) {
        const struct event *event = &e->ring[s->at % RING];
        if (event->text != NULL && (s->study == NULL || event->study == NULL || strcmp(s->study, event->study) == 0))
            strbuf_add(&s->out, event->text);
    }
    if (s->beat)
        strbuf_addf(&s->out, "event: pulse\ndata: {\"version\":%" PRId64 ",\"age_s\":%.1f}\n\n", e->version, e->age_s);
    s->beat = false;
}

/* libmicrohttpd asks for up to max bytes; 0 while suspended. */
static ssize_t give(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct stream *s = ctx;

    (void)pos;
    if (s->sent == s->out.len) {
        pthread_mutex_lock(&s->events->lock);
        collect(s);
        if (s->out.status != ST_OK || (s->events->ended && s->out.len == 0)) {
            pthread_mutex_unlock(&s->events->lock);
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        if (s->out.len == 0) {
            s->suspended = true;
            mhd.suspend_connection(s->connection);
        }
        pthread_mutex_unlock(&s->events->lock);
    }
    size_t n = s->out.len - s->sent;
    n = n < max ? n : max;
    memcpy(buf, s->out.text + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

static void stream_free(void *ctx)
{
    struct stream *s = ctx, **at;

    pthread_mutex_lock(&s->events->lock);
    for (at = &s->events->streams; *at != NULL && *at != s;)
        at = &(*at)->next;
    if (*at == s) {
        *at = s->next;
        s->events->n_streams--;
    }
    pthread_mutex_unlock(&s->events->lock);
    strbuf_free(&s->out);
    mem_free(s->study);
    mem_free(s);
}

/* Where a client that has seen last_id continues: -1 when that is unknown. */
static int64_t resume_at(const struct events *e, const char *last_id)
{
    int64_t boot, number;
    const char *dash = strchr(last_id, '-');
    char text[NUM_TEXT_MAX];

    if (dash == NULL || dash == last_id || (size_t)(dash - last_id) >= sizeof text)
        return -1;
    memcpy(text, last_id, (size_t)(dash - last_id));
    text[dash - last_id] = '\0';
    if (!num_parse_i64(text, &boot) || !num_parse_i64(dash + 1, &number) || boot != e->boot_ms || number < 0 ||
        number >= e->next || number + 1 < e->next - RING)
        return -1;
    return number + 1;
}

static void greet(struct stream *s, const char *last_id, const char *program, int64_t version, const char *store_error)
{
    struct events *e = s->events;
    int64_t at = last_id != NULL ? resume_at(e, last_id) : e->next;

    s->at = at >= 0 ? at : e->next;
    strbuf_add(&s->out, "retry: 2000\n");
    if (at >= 0 && last_id != NULL)
        strbuf_add(&s->out, ": welcome back\n\n");
    else if (last_id != NULL)
        strbuf_addf(&s->out, "id: %" PRId64 "-%" PRId64 "\nevent: reset\ndata: {}\n\n", e->boot_ms, s->at - 1);
    strbuf_addf(&s->out, "id: %" PRId64 "-%" PRId64 "\nevent: hello\ndata: {\"version\":%lld,\"program\":", e->boot_ms,
                s->at - 1, (long long)version);
    put_json(&s->out, "%s,'store':%s}\n\n", program, store_error);
}

struct MHD_Response *events_response(struct events *e, struct MHD_Connection *connection, const char *study,
                                     const char *last_id, const char *program, int64_t version, const char *store_error)
{
    struct stream *s = mem_alloc(sizeof *s);

    s->events = e;
    s->connection = connection;
    s->study = study != NULL ? mem_strdup(study) : NULL;
    strbuf_init(&s->out, 4 * SERVE_BODY_BYTES);
    pthread_mutex_lock(&e->lock);
    bool full = e->n_streams >= STREAMS_MAX || e->ended;
    if (!full) {
        greet(s, last_id, program, version, store_error);
        s->next = e->streams;
        e->streams = s;
        e->n_streams++;
    }
    pthread_mutex_unlock(&e->lock);
    struct MHD_Response *response =
        full ? NULL : mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, give, s, stream_free);
    if (response == NULL)
        stream_free(s);
    return response;
}
