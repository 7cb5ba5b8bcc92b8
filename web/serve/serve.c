/* serve.c - the life of `trawl serve`: the socket, tokens, the watcher, the HTTP server, and their end in reverse;
 * connections to the store that requests share. */
#include "web/serve/serve.h"

#include "web/serve/events.h"
#include "web/serve/models.h"
#include "web/serve/playing.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"
#include "web/serve/mhd.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* The address that a server without --bind has. */
static bool is_usual(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) == INADDR_LOOPBACK;
    return address->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

static enum status listen_at(const struct addrinfo *info, const char *host, int port, int *ret_fd, struct error *err)
{
    int on = 1, fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return FAIL(err, ST_IO, "no socket for %s (%s)", host, strerror(errno));
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, 512) != 0) {
        int os = errno;
        close(fd);
        if (os == EADDRINUSE)
            return FAIL(
                err, ST_EXISTS,
                "port %d of %s is in use, perhaps by another `trawl serve`; give another --port, or --port 0 for "
                "any free one",
                port, host);
        if (os == EACCES)
            return FAIL(err, ST_IO, "port %d of %s may not be used by this user; give a --port of 1024 or more", port,
                        host);
        return FAIL(err, ST_IO, "cannot listen on %s port %d (%s); check --bind and --port", host, port, strerror(os));
    }
    *ret_fd = fd;
    return ST_OK;
}

static int port_of(int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t n = sizeof at;

    if (getsockname(fd, (struct sockaddr *)(void *)&at, &n) != 0)
        return 0;
    return ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&at)->sin6_port
                                          : ((struct sockaddr_in *)(void *)&at)->sin_port);
}

/* The listening socket; *ret_open: it is at another address than the usual one. */
static enum status open_socket(struct serve *s, int *ret_fd, bool *ret_v6, bool *ret_open, struct error *err)
{
    const char *host = s->set.bind != NULL ? s->set.bind : "127.0.0.1";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *info = NULL;
    char port[12];

    snprintf(port, sizeof port, "%d", s->set.port);
    int failed = getaddrinfo(host, port, &hints, &info);
    if (failed != 0 || info == NULL)
        return FAIL(err, ST_USAGE, "--bind %s is not an address of this machine (%s); try 127.0.0.1 or 0.0.0.0", host,
                    gai_strerror(failed));
    *ret_v6 = info->ai_family == AF_INET6;
    *ret_open = !is_usual(info->ai_addr);
    enum status rc = listen_at(info, host, s->set.port, ret_fd, err);
    freeaddrinfo(info);
    if (rc == ST_OK)
        s->port = port_of(*ret_fd);
    return rc;
}

/* All that needs no socket and no thread. */
static struct serve *begin(const struct serve_settings *settings)
{
    struct serve *s = mem_alloc(sizeof *s);

    s->set = *settings;
    s->wake[0] = s->wake[1] = -1;
    atomic_init(&s->version, clock_utc_ms());
    atomic_init(&s->looked_ms, (int64_t)(clock_mono_s() * 1e3));
    atomic_init(&s->stopping, false);
    atomic_init(&s->slow_busy, false);
    atomic_init(&s->n_client_jobs, 0);
    pthread_rwlock_init(&s->data, NULL);
    pthread_mutex_init(&s->conns_lock, NULL);
    pthread_mutex_init(&s->readers.lock, NULL);
    cache_init(&s->cache);
    s->events = events_create();
    s->plays = plays_create();
    return s;
}

enum status serve_create(struct serve **ret_serve, const struct serve_settings *settings, struct error *err)
{
    struct serve *s = begin(settings);
    int fd = -1;
    bool is_v6 = false, is_open = false;

    *ret_serve = NULL;
    enum status rc = open_socket(s, &fd, &is_v6, &is_open, err);
    THEN(rc, access_set(s, is_open, err));
    if (rc == ST_OK && pipe(s->wake) != 0)
        rc = FAIL(err, ST_IO, "no pipe for the watcher (%s)", strerror(errno));
    THEN(rc, models_create(&s->models, s, err));
    THEN(rc, watch_start(s, err));
    THEN(rc, serve_http_start(s, fd, is_v6, err));
    if (rc != ST_OK) {
        if (fd >= 0)
            close(fd); /* not libmicrohttpd's yet */
        serve_destroy(s);
        return rc;
    }
    *ret_serve = s;
    return ST_OK;
}

enum status serve_open(struct serve **ret_serve, const struct serve_settings *settings, struct error *err)
{
    struct serve *s = begin(settings);
    enum status rc = models_create(&s->models, s, err);

    *ret_serve = NULL;
    watch_once(s);
    if (rc == ST_OK && s->store_error[0] != '\0')
        rc = FAIL(err, ST_IO, "%s", s->store_error);
    if (rc != ST_OK) {
        serve_destroy(s);
        return rc;
    }
    *ret_serve = s;
    return ST_OK;
}

void serve_destroy(struct serve *s)
{
    if (s == NULL)
        return;
    atomic_store(&s->stopping, true);
    events_end(s->events);
    plays_end(s->plays);
    watch_stop(s);
    /* their connections are suspended, which libmicrohttpd cannot stop */
    while (atomic_load(&s->slow_busy) || atomic_load(&s->n_client_jobs) > 0)
        (void)usleep(10000);
    if (s->daemon != NULL)
        mhd.stop_daemon(s->daemon); /* closes the socket, waits for its threads */
    models_destroy(s->models);
    plays_destroy(s->plays);
    events_destroy(s->events);
    cache_free(&s->cache);
    for (size_t i = 0; i < s->n_studies; i++)
        page_study_free(s->studies[i]);
    mem_free(s->studies);
    while (s->readers.n > 0)
        store_close(s->readers.idle[--s->readers.n]);
    for (int i = 0; i < 2; i++)
        if (s->wake[i] >= 0)
            close(s->wake[i]);
    pthread_mutex_destroy(&s->readers.lock);
    pthread_mutex_destroy(&s->conns_lock);
    pthread_rwlock_destroy(&s->data);
    mem_free(s);
}

int serve_port(const struct serve *s)
{
    return s->port;
}

/* -- what was read -- */

static void fail_missing(struct serve *s, const char *name, struct error *err)
{
    const char *names[64];
    size_t n = 0;

    if (s->store_error[0] != '\0') {
        (void)FAIL(err, ST_BUSY, "%s", s->store_error);
        return;
    }
    for (; n < s->n_studies && n < COUNT(names); n++)
        names[n] = s->studies[n]->view.study.name;
    const char *near = word_nearest(name, names, n);
    if (near != NULL)
        (void)FAIL(err, ST_NOTFOUND, "no study '%.100s'; did you mean '%.100s'?", name, near);
    else
        (void)FAIL(err, ST_NOTFOUND, "no study '%.100s'; /api/v1/studies lists them", name);
}

struct page_study *serve_lock_study(struct serve *s, const char *name, struct error *err)
{
    pthread_rwlock_rdlock(&s->data);
    for (size_t i = 0; i < s->n_studies; i++)
        if (strcmp(s->studies[i]->view.study.name, name) == 0)
            return s->studies[i];
    fail_missing(s, name, err);
    pthread_rwlock_unlock(&s->data);
    return NULL;
}

void serve_unlock(struct serve *s)
{
    pthread_rwlock_unlock(&s->data);
}

/* -- connections to the store -- */

const char *serve_store_path(const struct serve *s, char buf[PATH_MAX])
{
    if (realpath(s->set.store_path, buf) == NULL) /* not there now */
        snprintf(buf, PATH_MAX, "%s", s->set.store_path);
    return buf;
}

enum status serve_reader_take(struct serve *s, struct reader *ret_reader, struct error *err)
{
    *ret_reader = (struct reader){.serve = s};
    pthread_mutex_lock(&s->readers.lock);
    ret_reader->generation = s->readers.generation;
    if (s->readers.n > 0)
        ret_reader->store = s->readers.idle[--s->readers.n];
    pthread_mutex_unlock(&s->readers.lock);
    return ret_reader->store != NULL ? ST_OK : store_open_reader(&ret_reader->store, s->set.store_path, err);
}

void serve_reader_give(struct reader *reader)
{
    if (reader->store == NULL)
        return;
    struct readers *kept = &reader->serve->readers;
    pthread_mutex_lock(&kept->lock);
    if (reader->generation == kept->generation && kept->n < SERVE_READERS) {
        kept->idle[kept->n++] = reader->store;
        reader->store = NULL;
    }
    pthread_mutex_unlock(&kept->lock);
    store_close(reader->store);
    reader->store = NULL;
}
