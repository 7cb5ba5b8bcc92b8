/* serve_priv.h - what the files of `trawl serve` share.
 *
 * Threads: libmicrohttpd's few (they answer requests), the watcher (serve_watch.c: looks at the store twice a second, publishes
 * events, ends requests that take too long), the modeller (serve_model.c), one for each policy that plays (serve_play.c).
 * Locks, never two at a time: `data` (the studies as last read; the watcher writes, all read), `cache.lock`, `events.lock`,
 * `readers.lock`, `models.lock`, `conns.lock`. */
#ifndef WEB_SERVE_PRIV_H
#define WEB_SERVE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <microhttpd.h>

#include "web/serve_request.h"
#include "web/web.h"

#define SERVE_THREADS 4
#define SERVE_CONNECTIONS 512
#define SERVE_HEADER_BYTES (32u << 10) /* request line and headers */
#define SERVE_BODY_BYTES (64u << 10) /* of a POST */
#define SERVE_REQUEST_S 20 /* for the first request to arrive in full */
#define SERVE_ANSWER_S 120 /* for an answer to be taken */
#define SERVE_IDLE_S 60 /* for the next request */
#define SERVE_REPLY_BYTES (256u << 20)
#define SERVE_TOKEN_BYTES 24 /* random bytes of a token */
#define SERVE_TOKEN_MAX (2 * SERVE_TOKEN_BYTES + 1)

/* ---- serve_json.c: JSON written straight into a text, for long lists ---- */

void put_str(struct strbuf *out, const char *text); /* quoted; NULL: null; invalid UTF-8 replaced; '<' escaped */
/* A JSON text with '<', '>' and '&', which can only stand in its strings, as escapes. */
void put_json_text(struct strbuf *out, const char *text);
void put_f64(struct strbuf *out, double value); /* NaN: null; infinite: "inf", "-inf" */
void put_i64(struct strbuf *out, int64_t value); /* beyond 2^53: a string */
void put_time(struct strbuf *out, int64_t ms); /* 0: null */
void put_key(struct strbuf *out,
             const char *key); /* "key": with a comma before it unless it is the first of its object */
bool add_number(cJSON *object, const char *key, double value); /* json_add_f64 with NaN as null */

/* ---- serve_study.c: one study as last read ---- */

struct live { /* of a running trial: its last report */
    int64_t env_steps;
    double wall_s, score; /* NaN: none */
};

struct view {
    struct study study;
    size_t n, cap;
    struct trial *trials; /* (n) number i at index i; without config and log_tail */
    struct gp_trial *rows; /* (n) as the front sees them; x unset */
    bool *on_front; /* (n) by advice where there is some, else by single runs */
    struct gp_insight advice; /* of the first advice.n trials */
    int64_t advised; /* version of `settled` that it is of */
    double advice_rest_s; /* monotonic: not again before */
    int64_t *changed; /* (n) version at which it last changed */
    struct live *live; /* (n) */
    double *x; /* (n, dim) values of the searched parameters, choices by index; NaN: not there */
    size_t dim;
    cJSON *space; /* {"params": [...]}; owned */
    const cJSON *params[SPACE_MAX_DIM]; /* rows of space */
    const char *keys[SPACE_MAX_DIM];
    int cost_kind; /* for the judge hook */
    bool cost_is_steps;
    struct pareto_ref ref;
    double hypervolume, cost_s;
    size_t knee, best; /* the picks of that name; n: none */
    size_t best_run; /* the best single run; n: none */
    size_t n_front, n_confirming; /* confirming: running */
    int64_t count[TRIAL_STATES];
    char env[SERVE_ENV_MAX];
    int64_t started_ms, finished_ms;
    int64_t version;
    int64_t settled; /* version in which a trial ended last: what models depend on */
};

struct serve;
void view_free(struct view *view);
/* Reads a study for the first time. */
enum status view_create(struct view **ret_view, struct serve *s, struct store *store, struct study *study,
                        int64_t version, struct error *err) MUST_USE;
/* Reads what may have changed: trials that were not final and those that are new. *ret_changed: the view is to be published under
 * `version`; study's strings are taken. */
enum status view_update(struct view *view, struct serve *s, struct store *store, struct study *study, int64_t version,
                        bool *ret_changed, struct error *err) MUST_USE;
/* What the trials together say. view_advise only reads, so it may be asked by the thread that writes views, without the
 * lock; view_take_advice wants it. */
bool view_wants_advice(const struct view *view, double now_s);
enum status view_advise(const struct view *view, const struct serve *s, struct gp_insight *ret_advice,
                        struct error *err) MUST_USE;
enum status view_take_advice(struct view *view, struct gp_insight *advice, int64_t version, struct error *err) MUST_USE;
const char *view_advice_state(const struct view *view); /* "ready", "stale" (trials have ended since) or "none" */
struct gp_history view_history(const struct view *view); /* of the trials that the advice is of */
void view_promise(const struct view *view, size_t i, struct promise *ret_promise);
/* n_seeds, score_mean, score_lo, score_hi, seeds_mean, cost_mean, cost_lo, cost_hi, score_noise_sd, start_s. */
void put_promise(struct strbuf *out, const struct promise *promise);
const char *view_state(const struct view *view, bool has_writer); /* "running", "waiting", ... */
cJSON *view_counts(const struct view *view); /* NULL: out of memory */
cJSON *view_summary(const struct view *view, bool has_writer); /* an element of /studies; NULL: out of memory */
double view_cost(const struct view *view, size_t i); /* as the study counts; NaN */
double view_score(const struct view *view, double row_score); /* in the study's direction */
/* The value of parameter k of trial i as JSON. */
void view_put_param(const struct view *view, size_t i, size_t k, struct strbuf *out);

/* ---- serve_cache.c: answers by address, valid for a version ---- */

struct answer { /* immutable once in the cache */
    atomic_int refs;
    int status;
    const char *type; /* static */
    char *disposition, *location, *cookie; /* headers; owned or NULL */
    char *bytes, *gzip; /* owned; gzip NULL when not worth it */
    size_t n, n_gzip;
    char etag[24]; /* with quotes; "" none */
    const char *csp; /* static; NULL: that of the pages */
    bool no_store;
    int64_t version; /* that it was made from; 0: not kept */
};
struct answer *answer_create(int status, const char *type);
void answer_release(struct answer *answer); /* NULL is fine */
/* Takes the text; gzips it when worth it, and gives it an entity tag. */
enum status answer_finish(struct answer *answer, struct strbuf *body, struct error *err) MUST_USE;

struct cache {
    pthread_mutex_t lock;
    struct cache_entry *entries; /* (CACHE_ENTRIES) */
    size_t bytes;
    int64_t tick;
};
enum status cache_init(struct cache *cache, struct error *err) MUST_USE;
void cache_free(struct cache *cache);
struct answer *cache_find(struct cache *cache, const char *key, int64_t version); /* a reference, or NULL */
void cache_keep(struct cache *cache, const char *key, struct answer *answer);

/* ---- serve_events.c: server-sent events ---- */

struct events;
enum status events_create(struct events **ret_events, struct error *err) MUST_USE;
void events_destroy(struct events *events);
/* json is taken; NULL (out of memory): nobody hears of it. study: NULL for all. */
void events_publish(struct events *events, const char *type, const char *study, cJSON *json);
void events_heartbeat(struct events *events);
void events_end(struct events *events); /* every stream ends */
/* A stream for this connection; last_id: NULL or Last-Event-ID. */
struct MHD_Response *events_response(struct events *events, struct MHD_Connection *connection, const char *study,
                                     const char *last_id, const char *program, int64_t version);

/* ---- serve.c, serve_watch.c, serve_model.c, serve_http.c ---- */

#define SERVE_READERS 4
struct readers { /* open connections to the store that nobody uses at the moment */
    pthread_mutex_t lock;
    struct store *idle[SERVE_READERS];
    size_t n;
    int64_t generation; /* of the file at the path; one of an older generation is closed when it comes back */
};

struct conn { /* a connection of a client */
    int fd;
    int64_t deadline_ms; /* monotonic: it is ended then; 0: never (a stream) */
    struct conn *next;
};

struct serve {
    struct serve_settings set;
    struct MHD_Daemon *daemon;
    int port;
    char token[SERVE_TOKEN_MAX]; /* "": none needed */
    char csrf[SERVE_TOKEN_MAX];

    pthread_rwlock_t data; /* guards what follows */
    struct view **views; /* (n_views) owned, in order of id */
    size_t n_views, cap_views;
    char store_error[ERROR_TEXT_MAX]; /* "": it can be read */
    bool has_writer;

    atomic_llong version; /* of all studies: rises with every change */
    atomic_bool stopping;
    atomic_bool slow_busy; /* a ROUTE_SLOW is being answered */
    struct cache cache;
    struct readers readers;
    struct events *events;
    struct models *models;
    struct plays *plays;

    pthread_mutex_t conns_lock;
    struct conn *conns;

    pthread_t watcher;
    bool has_watcher;
    int wake[2]; /* pipe that ends the watcher's sleep */
};

/* The study of that name, with `data` read-locked; NULL: unlocked, ST_NOTFOUND with the near ones. */
struct view *serve_lock_view(struct serve *s, const char *name, struct error *err);
void serve_unlock(struct serve *s);
/* A connection to the store for this thread, until it is given back. */
struct reader {
    struct store *store; /* NULL: none */
    int64_t generation;
};
enum status serve_reader_take(struct serve *s, struct reader *ret_reader, struct error *err) MUST_USE;
void serve_reader_give(struct serve *s, struct reader *reader);

void serve_cookie_name(const struct serve *s, char *buf, size_t size);
enum status serve_http_start(struct serve *s, int listen_fd, bool is_v6, struct error *err) MUST_USE;

enum status watch_start(struct serve *s, struct error *err) MUST_USE; /* has looked once when it returns */
void watch_stop(struct serve *s);

/* ---- serve_model.c: models of the studies, computed by one thread ---- */

enum model_state { MODEL_NONE, MODEL_COMPUTING, MODEL_STALE, MODEL_READY };
const char *model_state_name(enum model_state state);
struct models;
struct plays;
struct model_entry {
    char *study; /* owned; NULL: free */
    int64_t version; /* of the study that it was made from (view.settled); 0: none yet */
    int64_t wanted, used;
    bool computing;
    double rest_until_s;
    void *model;
    struct serve_model what;
    char note[ERROR_TEXT_MAX];
};
enum status models_create(struct models **ret_models, struct serve *s, struct error *err) MUST_USE;
void models_destroy(struct models *models);
/* Locks the models, asks for a new one when that of `version` is not there yet; *ret_entry may be NULL. Always followed by
 * models_unlock; never with `data` locked. */
enum model_state models_lock(struct models *models, const char *study, int64_t version, struct model_entry **ret_entry);
void models_unlock(struct models *models);
/* State and version of a study's model; asks for a newer one when it is due. */
enum model_state models_peek(struct models *models, const char *study, int64_t version, int64_t *ret_model_version);

/* ---- serve_play.c: policies that play ---- */

enum status plays_create(struct plays **ret_plays, struct serve *s, struct error *err) MUST_USE;
void plays_end(struct plays *plays); /* every stream ends */
void plays_destroy(struct plays *plays); /* after the last stream is freed */
struct request;
enum status play_response(struct serve *s, const struct request *r, struct MHD_Response **ret_response,
                          struct error *err) MUST_USE;

/* ---- routes: serve_routes.c, api_*.c ---- */

struct request {
    struct target target;
    const char *study; /* of the path, or NULL */
    int64_t trial; /* of the path, or -1 */
    struct MHD_Connection *connection;
    cJSON *body; /* of a POST; borrowed */
    const char *form; /* body of a ROUTE_FORM's POST; NULL: GET */
    int64_t settled; /* view.settled of the study */
    int64_t version; /* s->version when the request came: what the answer may be kept for */
};

typedef enum status route_fn(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                             struct error *err);

enum route_kind {
    ROUTE_CACHED, /* kept until the data change */
    ROUTE_MODEL, /* kept until the data or the model change */
    ROUTE_SLOW, /* like ROUTE_CACHED, made by a thread of its own while the connection is suspended; one at a time */
    ROUTE_FRESH, /* made anew each time */
    ROUTE_STREAM, /* server-sent events; run is NULL, serve_stream_open tells them apart */
    ROUTE_POST, /* changes something */
    ROUTE_FORM /* GET and POST of a form, changes nothing but the client's cookie */
};

struct route {
    const char *path; /* "api/v1/studies/{study}/trials/{trial}" */
    const char *params; /* "offset,limit": all that it takes */
    enum route_kind kind;
    route_fn *run;
    const char *summary;
    const char *type; /* of the answer; NULL: JSON */
};
enum status serve_stream_open(struct serve *s, const struct request *r, struct MHD_Response **ret_response,
                              struct error *err) MUST_USE;
extern const struct route serve_routes[];
extern const size_t serve_n_routes;
/* The route of a path; study and trial of r are filled. ST_NOTFOUND; ST_USAGE for a parameter it does not take. */
enum status route_find(struct serve *s, struct request *r, const struct route **ret_route, struct error *err) MUST_USE;

route_fn api_version, api_studies, api_study, api_openapi; /* api_study.c */
route_fn api_trials, api_front, api_hypervolume, api_timeline; /* api_trials.c */
route_fn api_trial, api_curves, api_log; /* api_trial.c */
route_fn api_insight, api_model_front, api_model_slice; /* api_model.c */
route_fn api_pick, api_export, api_report, api_control; /* api_pick.c */
route_fn page_index, page_asset, page_login; /* serve_pages.c */

/* The JSON as the body; taken, NULL: out of memory. */
enum status api_put_json(struct strbuf *out, cJSON *json, struct error *err) MUST_USE;
/* Columns of /trials; those from api_n_columns() on are the parameters. */
int api_n_columns(void);
const char *api_column_name(const struct view *v, int column);
void api_put_column(const struct view *v, size_t i, int column, struct strbuf *out);

/* Embedded files, made by embed.py at build time. */
struct asset {
    const char *name, *type;
    const unsigned char *bytes; /* gzip, as everything that speaks HTTP reads it */
    size_t n, n_plain;
};
extern const struct asset serve_assets[];
extern const size_t serve_n_assets;

#endif
