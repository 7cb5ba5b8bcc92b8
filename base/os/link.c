/* link.c - see link.h. */
#include "base/os/link.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#define PROBE_AFTER_S 5 /* without a byte: is the peer's machine still there? */
#define PROBES 5

static enum status find(const char *host, int port, bool passive, struct addrinfo **ret, struct error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | (passive ? AI_PASSIVE : 0)};
    char text[12];

    snprintf(text, sizeof text, "%d", port);
    if (host == NULL)
        hints.ai_family = AF_INET;
    int failed = getaddrinfo(host, text, &hints, ret);
    if (failed != 0 || *ret == NULL)
        return FAIL(err, ST_IO, "no machine has the name %s (%s)", host, gai_strerror(failed));
    return ST_OK;
}

enum status link_listen(const char *host, int port, int *ret_fd, int *ret_port, struct error *err)
{
    struct sockaddr_storage at = {0};
    struct addrinfo *info = NULL;
    socklen_t size = sizeof at;
    int on = 1, fd;

    TRY(find(host, port, true, &info, err));
    fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&at, &size) != 0) {
        int os = errno;
        if (fd >= 0)
            close(fd);
        freeaddrinfo(info);
        return FAIL(err, ST_IO, "cannot listen at %s, port %d (%s)", host != NULL ? host : "this machine", port,
                    strerror(os));
    }
    freeaddrinfo(info);
    *ret_fd = fd;
    *ret_port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)(void *)&at)->sin6_port
                                               : ((struct sockaddr_in *)(void *)&at)->sin_port);
    return ST_OK;
}

/* Small messages go at once, and a machine that vanished is noticed. */
static void prepare(int fd)
{
    int on = 1, idle_s = PROBE_AFTER_S, each_s = (LINK_DEAD_S - PROBE_AFTER_S) / PROBES, n = PROBES;
    unsigned dead_ms = LINK_DEAD_S * 1000;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &each_s, sizeof each_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &n, sizeof n);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &dead_ms, sizeof dead_ms);
}

static bool is_ready(int fd, short events, double wait_s)
{
    struct pollfd look = {.fd = fd, .events = events};

    return poll(&look, 1, (int)ceil(1e3 * wait_s)) > 0;
}

bool link_has_news(int fd, double wait_s)
{
    return is_ready(fd, POLLIN, wait_s);
}

enum status link_accept(int listener, double wait_s, int *ret_fd, struct error *err)
{
    *ret_fd = -1;
    if (!is_ready(listener, POLLIN, wait_s))
        return ST_OK;
    *ret_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (*ret_fd < 0)
        return errno == EINTR || errno == ECONNABORTED
                   ? ST_OK
                   : FAIL(err, ST_IO, "cannot take a connection (%s)", strerror(errno));
    prepare(*ret_fd);
    return ST_OK;
}

/* 0, or what is wrong. */
static int connect_to(int fd, const struct addrinfo *info, double wait_s)
{
    socklen_t size = sizeof(int);
    int os = 0;

    if (connect(fd, info->ai_addr, info->ai_addrlen) != 0) {
        if (errno != EINPROGRESS && errno != EINTR)
            return errno;
        if (!is_ready(fd, POLLOUT, wait_s))
            return ETIMEDOUT;
        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &os, &size) != 0)
            return errno;
    }
    return os;
}

enum status link_connect(const char *host, int port, double wait_s, int *ret_fd, struct error *err)
{
    struct addrinfo *info = NULL;
    int os = ENOENT, fd = -1;

    TRY(find(host, port, false, &info, err));
    for (const struct addrinfo *at = info; at != NULL && os != 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        os = fd >= 0 ? connect_to(fd, at, wait_s) : errno;
        if (os != 0 && fd >= 0)
            close(fd);
    }
    freeaddrinfo(info);
    if (os != 0)
        return FAIL(err, ST_IO, "cannot reach %s, port %d (%s)", host, port, strerror(os));
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    prepare(fd);
    *ret_fd = fd;
    return ST_OK;
}

static enum status ended(ssize_t got, struct error *err)
{
    if (got == 0 || errno == ECONNRESET || errno == EPIPE)
        return FAIL(err, ST_IO, "the other end has closed the connection");
    if (errno == EAGAIN || errno == ETIMEDOUT)
        return FAIL(err, ST_IO, "nothing came");
    return FAIL(err, ST_IO, "%s", strerror(errno));
}

enum status link_send(int fd, const void *bytes, size_t n, struct error *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ended(got, err);
        at += (size_t)got;
    }
    return ST_OK;
}

enum status link_receive(int fd, void *bytes, size_t n, struct error *err)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = recv(fd, (char *)bytes + at, n - at, MSG_WAITALL);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return ended(got, err);
        at += (size_t)got;
    }
    return ST_OK;
}

void link_set_patience(int fd, double seconds)
{
    struct timeval wait = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)(1e6 * (seconds - floor(seconds)))};

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
}
