/* playing.c - streams of a policy that plays: one thread for each steps the game in its time, the connection takes what
 * is ready.
 *
 * Invariants: (1) the thread never touches the connection but to resume it, under `lock`; (2) a client that takes
 * nothing makes the game wait, not the memory grow; (3) the thread is joined before its stream is freed. */
#include "web/serve/playing.h"

#include "base/text/base64.h"
#include "store/store.h"
#include "web/text/put.h"
#include "web/serve/policy_play.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/mhd.h"

#include <sys/eventfd.h>
#include <sys/stat.h>

#define PLAYS_MAX 4
#define PENDING_MAX (64u << 10) /* bytes that wait for the client before it gets another event */
#define EVENT_MAX (2u << 20) /* bytes of one; an image of noise has 800 KB */
#define RECORD_BYTES (8u << 20) /* of what is recorded: of large images fewer are */
#define PLAY_S 3600 /* a stream ends then */
#define FPS 15

struct play {
    struct plays *plays;
    struct MHD_Connection *connection;
    struct play *next;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t change;
    struct strbuf out;
    size_t sent;
    bool suspended, closing, ended;
    /* the thread's */
    struct trial trial; /* owned */
    char *checkpoint; /* owned */
    int stop_fd; /* an eventfd, written when `closing` is set: it may wait for a child; owned */
    int64_t seed, fps;
    bool greedy;
};

struct plays {
    pthread_mutex_t lock; /* guards the list */
    struct play *first;
    size_t n;
    bool ended;
};

struct plays *plays_create(void)
{
    struct plays *p = mem_alloc(sizeof *p);

    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void plays_destroy(struct plays *p)
{
    if (p == NULL)
        return;
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

/* Under its lock. */
static void set_closing(struct play *p)
{
    p->closing = true;
    pthread_cond_signal(&p->change);
    (void)eventfd_write(p->stop_fd, 1);
}

static void close_play(struct play *p)
{
    pthread_mutex_lock(&p->lock);
    set_closing(p);
    if (p->suspended) {
        p->suspended = false;
        mhd.resume_connection(p->connection);
    }
    pthread_mutex_unlock(&p->lock);
}

void plays_end(struct plays *plays)
{
    if (plays == NULL)
        return;
    pthread_mutex_lock(&plays->lock);
    plays->ended = true;
    for (struct play *p = plays->first; p != NULL; p = p->next)
        close_play(p); /* the only place that holds two locks, always in this order */
    pthread_mutex_unlock(&plays->lock);
}

/* -- the thread -- */

/* An event for the client. Its data are the JSON text; false: closing. */
static bool emit(struct play *p, const char *type, const struct strbuf *data)
{
    pthread_mutex_lock(&p->lock);
    while (!p->closing && p->out.len - p->sent > PENDING_MAX)
        pthread_cond_wait(&p->change, &p->lock);
    bool playing = !p->closing;
    if (playing) {
        if (p->sent > 0) {
            memmove(p->out.text, p->out.text + p->sent, p->out.len - p->sent);
            p->out.len -= p->sent;
            p->out.text[p->out.len] = '\0';
            p->sent = 0;
        }
        strbuf_addf(&p->out, "event: %s\ndata: %s\n\n", type, data->status == ST_OK ? data->text : "{}");
        if (p->suspended) {
            p->suspended = false;
            mhd.resume_connection(p->connection);
        }
    }
    pthread_mutex_unlock(&p->lock);
    return playing;
}

static void emit_end(struct play *p, const char *reason)
{
    STRBUF(data, SERVE_BODY_BYTES);

    put_json(&data, "{'reason':%s}", reason);
    (void)emit(p, "end", &data);
}

/* Sleeps until the time; false: closing. */
static bool sleep_until(struct play *p, double until_s)
{
    struct timespec until = clock_timespec(until_s);

    pthread_mutex_lock(&p->lock);
    while (!p->closing && pthread_cond_timedwait(&p->change, &p->lock, &until) == 0)
        ;
    bool playing = !p->closing;
    pthread_mutex_unlock(&p->lock);
    return playing;
}

static void put_begin(struct strbuf *data, const struct policy_play *game, int64_t fps, const char *checkpoint)
{
    double width, height;

    policy_play_size(game, &width, &height);
    put_json(data, "{'env':%s,'width':%g,'height':%g,'fps':%lld,'checkpoint':%s}", policy_play_env(game), width, height,
             (long long)fps, checkpoint);
}

static void put_frame(struct strbuf *data, const struct player_frame *f, const struct strbuf *draw)
{
    strbuf_clear(data);
    put_json(data, "{'step':%lld,'episode':%lld,'score':%g,'reward':%g,'draw':", (long long)f->step,
             (long long)f->episode, f->ep_return, f->reward);
    strbuf_add(data, draw->text);
    strbuf_add(data, "}");
}

static void put_episode(struct strbuf *data, const struct player_frame *f)
{
    strbuf_clear(data);
    put_json(data, "{'episode':%lld,'score':%g,'perf':%g,'length':%g}", (long long)f->episode, f->score, f->perf,
             f->ep_length);
}

static void play_on(struct play *p, struct policy_play *game, struct strbuf *data, struct strbuf *draw)
{
    int64_t frames = PLAY_S * p->fps;
    double next_s = clock_mono_s();
    bool playing = true;

    for (int64_t i = 0; playing && i < frames; i++) {
        struct player_frame frame;
        struct error err = {0};
        strbuf_clear(draw);
        if (policy_play_step(game, draw, &frame, &err) != ST_OK) {
            emit_end(p, err.text);
            return;
        }
        put_frame(data, &frame, draw);
        playing = emit(p, "frame", data);
        if (playing && frame.ended) {
            put_episode(data, &frame);
            playing = emit(p, "episode", data);
        }
        next_s += 1.0 / (double)p->fps;
        playing = playing && sleep_until(p, next_s);
    }
    if (playing)
        emit_end(p, "an hour has passed; start again to see more");
}

static void *run(void *ctx)
{
    struct play *p = ctx;
    struct error err = {0};
    struct policy_play *game = NULL;
    STRBUF(data, EVENT_MAX);
    STRBUF(draw, EVENT_MAX);

    if (policy_play_open(&game, &p->trial, p->checkpoint, p->seed, p->greedy, p->stop_fd, &err) != ST_OK) {
        emit_end(p, err.text);
    } else {
        put_begin(&data, game, p->fps, p->checkpoint);
        if (emit(p, "begin", &data))
            play_on(p, game, &data, &draw);
    }
    policy_play_close(game);
    pthread_mutex_lock(&p->lock);
    p->ended = true;
    if (p->suspended) {
        p->suspended = false;
        mhd.resume_connection(p->connection);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* -- the connection -- */

static ssize_t give(void *ctx, uint64_t pos, char *buf, size_t max)
{
    struct play *p = ctx;

    (void)pos;
    pthread_mutex_lock(&p->lock);
    size_t n = p->out.len - p->sent;
    bool over = p->out.status != ST_OK || (n == 0 && (p->ended || p->closing));
    if (!over && n == 0) {
        p->suspended = true;
        mhd.suspend_connection(p->connection);
    }
    n = n < max ? n : max;
    memcpy(buf, p->out.text + p->sent, n);
    p->sent += n;
    pthread_cond_signal(&p->change);
    pthread_mutex_unlock(&p->lock);
    return over ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)n;
}

static void free_parts(struct play *p)
{
    strbuf_free(&p->out);
    trial_free(&p->trial);
    mem_free(p->checkpoint);
    if (p->stop_fd >= 0)
        close(p->stop_fd);
    pthread_cond_destroy(&p->change);
    pthread_mutex_destroy(&p->lock);
    mem_free(p);
}

static void play_free(void *ctx)
{
    struct play *p = ctx, **at;

    pthread_mutex_lock(&p->lock);
    set_closing(p);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    pthread_mutex_lock(&p->plays->lock);
    for (at = &p->plays->first; *at != NULL && *at != p;)
        at = &(*at)->next;
    if (*at == p) {
        *at = p->next;
        p->plays->n--;
    }
    pthread_mutex_unlock(&p->plays->lock);
    free_parts(p);
}

/* The trial with its config, and its checkpoint, which must be there. */
static enum status find_game(struct serve *s, const char *name, int64_t number, struct trial *ret_trial,
                             char **ret_checkpoint, struct error *err)
{
    AT_END(serve_reader_give) struct reader reader = {0};
    AT_END(study_free) struct study study = {0};
    struct stat st;

    TRY(serve_reader_take(s, &reader, err));
    TRY(store_study_find(reader.store, name, &study, err));
    TRY(store_trial_find(reader.store, study.id, number, ret_trial, err));
    TRY(store_checkpoint_path(reader.store, ret_trial->id, ret_checkpoint, err));
    if (*ret_checkpoint == NULL)
        return FAIL(
            err, ST_NOTFOUND,
            "trial %lld left no checkpoint, so its policy cannot play (trials of another program leave none); train it "
            "again with `trawl export` and `trawl train`, or sweep with checkpoints",
            (long long)number);
    if (stat(*ret_checkpoint, &st) != 0)
        return FAIL(err, ST_NOTFOUND, "the checkpoint %.300s of trial %lld no longer exists; train it again",
                    *ret_checkpoint, (long long)number);
    return ST_OK;
}

/* Into the list, with its thread; false: full or ending. */
static bool enter(struct play *p)
{
    struct plays *plays = p->plays;

    pthread_mutex_lock(&plays->lock);
    bool ok = plays->n < PLAYS_MAX && !plays->ended && pthread_create(&p->thread, NULL, run, p) == 0;
    if (ok) {
        p->next = plays->first;
        plays->first = p;
        plays->n++;
    }
    pthread_mutex_unlock(&plays->lock);
    return ok;
}

enum status play_response(struct serve *s, const struct request *r, struct MHD_Response **ret_response,
                          struct error *err)
{
    struct play *p = mem_alloc(sizeof *p);

    p->plays = s->plays;
    p->connection = r->connection;
    p->seed = 1;
    p->fps = FPS;
    p->stop_fd = eventfd(0, EFD_CLOEXEC);
    strbuf_init(&p->out, PENDING_MAX + 2 * EVENT_MAX);
    pthread_mutex_init(&p->lock, NULL);
    clock_cond_init(&p->change);
    enum status rc = target_i64(&r->target, "seed", 0, INT64_MAX, &p->seed, err);
    THEN(rc, target_i64(&r->target, "fps", 1, 120, &p->fps, err));
    THEN(rc, target_bool(&r->target, "greedy", &p->greedy, err));
    THEN(rc, find_game(s, r->study, r->trial, &p->trial, &p->checkpoint, err));
    if (rc == ST_OK && !enter(p))
        rc = FAIL(err, ST_BUSY, "%d policies play already; close one of those pages", PLAYS_MAX);
    if (rc != ST_OK) {
        free_parts(p);
        return rc;
    }
    *ret_response = mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, give, p, play_free);
    if (*ret_response == NULL) {
        play_free(p);
        return FAIL(err, ST_NOMEM, "out of memory for a game");
    }
    return ST_OK;
}

/* -- kept -- */

static void put_base64(struct strbuf *out, const char *key, const struct strbuf *bytes)
{
    MEM_LOCAL char *text = mem_alloc(BASE64_TEXT_BYTES(bytes->len));

    base64_encode(bytes->text, bytes->len, text);
    put_json(out, ",%s:%s", key, text);
}

/* Of a game that a page can play by itself; false: of another. */
static bool put_policy(struct policy_play *game, struct strbuf *out)
{
    char name[96];

    snprintf(name, sizeof name, "games/%s.wasm", policy_play_env(game));
    if (asset_find(name) == NULL)
        return false;
    STRBUF(policy, SERVE_REPLY_BYTES);
    STRBUF(settings, SERVE_BODY_BYTES);
    bool ok = policy_play_export(game, &policy, &settings, NULL) == ST_OK;
    if (ok) {
        put_base64(out, "policy", &policy);
        put_base64(out, "settings", &settings);
    }
    return ok;
}

enum status play_record(struct serve *s, const char *study, int64_t trial, int n_frames, struct strbuf *out,
                        struct error *err)
{
    AT_END(trial_free) struct trial row = {0};
    struct policy_play *game = NULL;
    MEM_LOCAL char *checkpoint = NULL;
    enum status rc = ST_OK;
    STRBUF(frame, EVENT_MAX);
    STRBUF(draw, EVENT_MAX);

    TRY(find_game(s, study, trial, &row, &checkpoint, err));
    TRY(policy_play_open(&game, &row, checkpoint, 1, true, -1, err));
    strbuf_add(out, "{\"begin\":");
    put_begin(out, game, FPS, checkpoint);
    n_frames = put_policy(game, out) ? 0 : n_frames;
    strbuf_add(out, ",\"frames\":[");
    for (int i = 0; rc == ST_OK && i < n_frames && out->len < RECORD_BYTES; i++) {
        struct player_frame f;
        strbuf_clear(&draw);
        rc = policy_play_step(game, &draw, &f, err);
        put_frame(&frame, &f, &draw);
        strbuf_add(out, i > 0 ? ",\n" : "");
        strbuf_add(out, frame.text);
    }
    strbuf_add(out, rc == ST_OK ? "]}" : "");
    policy_play_close(game);
    return rc;
}
