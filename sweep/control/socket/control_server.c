/* control_server.c - the controller's side of the socket beside the store.
 * Invariants: (1) only the user who runs the controller, and root, are served; (2) no call waits: a client that is slow
 * to write is read when it has written, one that is slow to read loses its connection; (3) on bytes that are not a request
 * the sender gets an error and is dropped; (4) a new client is always accepted: when all places are taken, it gets the
 * place of the client that has been silent for longest. */
#include "sweep/control/socket/control_server.h"
#include "sweep/control/socket/control_address.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define READ_BYTES 4096
#define BACKLOG 64

struct client {
    int fd; /* -1: free */
    char *buf; /* (cap) owned; what has come of a line */
    size_t n, cap;
    uint64_t heard; /* when it last sent something, or connected: the server's count of such events */
};

struct control_server {
    int fd, epoll;
    struct control_address address;
    ino_t inode; /* of the socket's file, so that another's is never removed */
    control_fn *fn;
    void *ctx;
    struct client clients[CONTROL_CLIENTS_MAX];
    uint64_t n_heard;
};

static bool watch(struct control_server *s, int fd, uint32_t index)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = index};

    return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* An existing socket file is stale: the store's lock is ours. Any other file is left alone. */
static bool clear_path(const struct control_address *a)
{
    struct stat st;

    if (a->is_abstract || lstat(a->path, &st) != 0)
        return true;
    return S_ISSOCK(st.st_mode) && unlink(a->path) == 0;
}

static bool listen_at(struct control_server *s, const struct control_address *a)
{
    struct stat st;

    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0)
        return false;
    /* The mode is set before there is a file, so that at no moment anybody else can connect. */
    if (fchmod(s->fd, S_IRUSR | S_IWUSR) == 0 && clear_path(a) && control_address_bind(a, s->fd) &&
        (a->is_abstract || (chmod(a->path, S_IRUSR | S_IWUSR) == 0 && stat(a->path, &st) == 0)) &&
        listen(s->fd, BACKLOG) == 0) {
        s->address = *a;
        s->inode = a->is_abstract ? 0 : st.st_ino;
        return true;
    }
    log_debug("no control socket at %s: %s", a->text, strerror(errno));
    close(s->fd);
    s->fd = -1;
    return false;
}

enum status control_server_create(struct control_server **ret_server, const char *store_path, control_fn *fn, void *ctx,
                                  struct error *err)
{
    struct control_address addresses[CONTROL_ADDRESSES];
    struct control_server *s = NULL;
    size_t n = 0, i = 0;

    TRY(control_addresses(store_path, addresses, &n, err));
    s = mem_alloc(sizeof *s);
    s->fd = -1;
    s->fn = fn;
    s->ctx = ctx;
    for (size_t k = 0; k < CONTROL_CLIENTS_MAX; k++)
        s->clients[k].fd = -1;
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    while (s->epoll >= 0 && i < n && !listen_at(s, &addresses[i]))
        i++;
    if (s->fd < 0 || !watch(s, s->fd, CONTROL_CLIENTS_MAX)) {
        enum status rc =
            FAIL(err, ST_IO, "%s: no socket for commands can be made beside it: %s", store_path, strerror(errno));
        control_server_destroy(s);
        return rc;
    }
    *ret_server = s;
    return ST_OK;
}

static void drop(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd); /* which also ends its watch */
    mem_free(c->buf);
    *c = (struct client){.fd = -1};
}

void control_server_destroy(struct control_server *s)
{
    struct stat st;

    if (s == NULL)
        return;
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX; i++)
        drop(&s->clients[i]);
    if (s->fd >= 0) {
        if (!s->address.is_abstract && lstat(s->address.path, &st) == 0 && st.st_ino == s->inode)
            unlink(s->address.path);
        close(s->fd);
    }
    if (s->epoll >= 0)
        close(s->epoll);
    mem_free(s);
}

int control_server_fd(const struct control_server *s)
{
    return s->epoll;
}

const char *control_server_address(const struct control_server *s)
{
    return s->address.text;
}

static bool is_allowed(int fd)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static void take_client(struct control_server *s)
{
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    size_t place = 0;

    if (fd < 0)
        return;
    if (!is_allowed(fd)) {
        close(fd);
        return;
    }
    for (size_t i = 0; i < CONTROL_CLIENTS_MAX && s->clients[place].fd >= 0; i++)
        if (s->clients[i].fd < 0 || s->clients[i].heard < s->clients[place].heard)
            place = i;
    drop(&s->clients[place]);
    if (!watch(s, fd, (uint32_t)place)) {
        close(fd);
        return;
    }
    s->clients[place].fd = fd;
    s->clients[place].heard = ++s->n_heard;
}

/* False: the client has to go. text: owned. */
static bool send_line(struct client *c, char *text)
{
    size_t n = strlen(text);

    text[n] = '\n'; /* the NUL's place; sent by length */
    bool ok = send(c->fd, text, n + 1, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(n + 1);
    mem_free(text);
    return ok;
}

char *control_server_answer(control_fn *fn, void *ctx, const char *line, size_t n)
{
    cJSON *answer = cJSON_CreateObject();
    JSON_LOCAL cJSON *request = NULL;
    struct error why = {0};
    char *text;

    enum status rc = json_parse(line, n, &request, &why);
    if (rc == ST_OK && !cJSON_IsObject(request))
        rc = FAIL(&why, ST_CORRUPT, "a request is one JSON object in a line");
    THEN(rc, fn(ctx, request, answer, &why));
    if (rc != ST_OK) { /* whatever the answer holds so far is not an answer */
        cJSON_Delete(answer);
        answer = cJSON_CreateObject();
        json_add_str(answer, "status", status_name(rc));
        json_add_i64(answer, "code", (int64_t)rc);
        json_add_str(answer, "error", why.text);
    }
    json_add_bool(answer, "ok", rc == ST_OK);
    text = json_print(answer, false);
    cJSON_Delete(answer);
    return text;
}

/* Every whole line of the buffer; false: the client has to go. */
static bool answer_lines(struct control_server *s, struct client *c)
{
    char *end;

    while (c->n > 0 && (end = memchr(c->buf, '\n', c->n)) != NULL) {
        size_t n = (size_t)(end - c->buf);
        if (!send_line(c, control_server_answer(s->fn, s->ctx, c->buf, n)))
            return false;
        c->n -= n + 1;
        memmove(c->buf, end + 1, c->n);
    }
    return true;
}

/* Space in the buffer; false: the request is too long. */
static bool grow_buffer(struct client *c)
{
    size_t cap = c->cap == 0 ? READ_BYTES : 2 * c->cap;

    if (c->n < c->cap)
        return true;
    if (cap > CONTROL_REQUEST_MAX)
        return false;
    c->buf = mem_grow(c->buf, c->cap, cap, 1);
    c->cap = cap;
    return true;
}

/* One read for each time that it is ready, so that no client can keep the controller busy. */
static void read_client(struct control_server *s, struct client *c)
{
    if (!grow_buffer(c)) {
        cJSON *answer = cJSON_CreateObject();
        json_add_bool(answer, "ok", false);
        json_add_str(answer, "status", "limit");
        json_add_i64(answer, "code", ST_LIMIT);
        json_add_str(answer, "error", "the request is too long");
        (void)send_line(c, json_print(answer, false));
        cJSON_Delete(answer);
        drop(c);
        return;
    }
    ssize_t got = recv(c->fd, c->buf + c->n, c->cap - c->n, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        drop(c);
        return;
    }
    c->n += (size_t)got;
    c->heard = ++s->n_heard;
    if (!answer_lines(s, c))
        drop(c);
}

void control_server_serve(struct control_server *s)
{
    struct epoll_event events[CONTROL_CLIENTS_MAX + 1];
    int n = epoll_wait(s->epoll, events, CONTROL_CLIENTS_MAX + 1, 0);

    for (int i = 0; i < n; i++) {
        uint32_t index = events[i].data.u32;
        if (index == CONTROL_CLIENTS_MAX)
            take_client(s);
        else if (index < CONTROL_CLIENTS_MAX && s->clients[index].fd >= 0)
            read_client(s, &s->clients[index]);
    }
}
