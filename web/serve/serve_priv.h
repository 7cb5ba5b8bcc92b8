/* serve_priv.h - what the files of `trawl serve` share.
 *
 * Threads: libmicrohttpd's few (they answer requests), the watcher (watcher.c: looks at the store twice a second,
 * publishes events), the pulse (same file: sends streams the age of that look, ends requests that take too long), the
 * modeller (models.c), one for each policy that plays (playing.c). Locks, never two at a time: `data` (the studies as
 * last read; the watcher writes, all read), `cache.lock`, `events.lock`, `readers.lock`, `models.lock`,
 * `conns.lock`. */
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>

#include "web/serve/answer_cache.h"
#include "web/serve/serve.h"

struct events;
struct models;
struct page_study;
struct plays;
struct store;

#define SERVE_THREADS 4
#define SERVE_CONNECTIONS 512
#define SERVE_HEADER_BYTES (32u << 10) /* request line and headers */
#define SERVE_BODY_BYTES (64u << 10) /* of a POST */
#define SERVE_REQUEST_S 20 /* for the first request to arrive in full */
#define SERVE_ANSWER_S 120 /* for an answer to be taken */
#define SERVE_IDLE_S 60 /* for the next request */
#define SERVE_CLIENT_JOBS 48 /* at a time; fewer than the places that the controller's socket has */
#define SERVE_REPLY_BYTES (256u << 20)
#define SERVE_TOKEN_BYTES 24 /* random bytes of a token */

#define SERVE_READERS 4
struct readers { /* open connections to the store that no request uses at the moment */
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
    char ticket[SERVE_TOKEN_MAX]; /* opens one browser, once; has_ticket: not used yet */
    atomic_bool has_ticket;
    char csrf[SERVE_TOKEN_MAX];

    pthread_rwlock_t data; /* guards what follows */
    struct page_study **studies; /* (n_studies) owned, in order of id */
    size_t n_studies, cap_studies;
    char store_error[ERROR_TEXT_MAX]; /* "": it can be read */
    bool has_writer;

    atomic_llong version; /* of all studies: rises with every change */
    atomic_llong looked_ms; /* monotonic: the last time that the store was found as it was read */
    atomic_bool stopping;
    atomic_bool slow_busy; /* a ROUTE_SLOW is being answered */
    atomic_int n_client_jobs; /* ROUTE_CLIENTs that are being answered */
    struct cache cache;
    struct readers readers;
    struct events *events;
    struct models *models;
    struct plays *plays;

    pthread_mutex_t conns_lock;
    struct conn *conns;

    pthread_t watcher, pulse;
    bool has_watcher, has_pulse;
    int wake[2]; /* pipe that ends the sleep of both */
};

/* The study of that name, with `data` read-locked; NULL: unlocked, ST_NOTFOUND with the near ones. */
struct page_study *serve_lock_study(struct serve *s, const char *name, struct error *err);
void serve_unlock(struct serve *s);
const char *serve_store_path(const struct serve *s, char buf[PATH_MAX]); /* absolute; buf */
/* A connection to the store for this thread, until it is given back: AT_END(serve_reader_give) struct reader r = {0}. */
struct reader {
    struct serve *serve; /* whose it is */
    struct store *store; /* NULL: none */
    int64_t generation;
};
enum status serve_reader_take(struct serve *s, struct reader *ret_reader, struct error *err) MUST_USE;
void serve_reader_give(struct reader *reader);

/* access.c. is_open: listens at another address than 127.0.0.1. */
enum status access_set(struct serve *s, bool is_open, struct error *err) MUST_USE;
bool access_is_token(struct serve *s, const char *text); /* the token, or the ticket, which is good once */
void access_cookie_name(const struct serve *s, char *buf, size_t size);

enum status serve_http_start(struct serve *s, int listen_fd, bool is_v6, struct error *err) MUST_USE;

enum status watch_start(struct serve *s, struct error *err) MUST_USE; /* has looked once when it returns */
void watch_once(struct serve *s); /* looks, without a thread: what was read stays */
void watch_stop(struct serve *s);
