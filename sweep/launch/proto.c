/* proto.c - messages between controller and worker: one JSON object a line over a stream, length bounded.
 * Invariants: (1) a message is sent whole or the connection is given up; (2) a peer that sends a longer line or no JSON
 * is a bug or a stranger, and an error; but what a login prints before a remote worker begins is log. */
#include "sweep/launch/proto.h"

#include <fcntl.h>
#include <poll.h>

#define BUF_BYTES 16384 /* to begin with: a controller has many peers, and most messages are short */
#define TAKEN_IN_MAX (64u << 20) /* some half a day of a trial's messages */

void proto_create(struct proto *proto, int in_fd, int out_fd)
{
    *proto = (struct proto){.in_fd = in_fd, .out_fd = out_fd, .cap = BUF_BYTES, .buf = mem_alloc(BUF_BYTES)};
    fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
    fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
}

void proto_destroy(struct proto *proto)
{
    if (proto->buf == NULL)
        return;
    close(proto->in_fd);
    if (proto->out_fd != proto->in_fd)
        close(proto->out_fd);
    mem_free(proto->buf);
    memset(proto, 0, sizeof *proto);
}

cJSON *proto_message(const char *type)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "type", type);
    return json;
}

static enum status send_all(int fd, const char *bytes, size_t n, int patience_ms, struct error *err)
{
    while (n > 0) {
        struct pollfd pfd = {.fd = fd, .events = POLLOUT};
        ssize_t sent = write(fd, bytes, n); /* SIGPIPE is ignored everywhere */
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            if (poll(&pfd, 1, patience_ms > 0 ? patience_ms : -1) == 0)
                return FAIL(err, ST_BUSY, "killed, it took no messages for %.3g s", patience_ms / 1000.0);
            continue;
        }
        if (sent < 0)
            return FAIL(err, ST_IO, "the other process does not take messages: %s", strerror(errno));
        bytes += sent;
        n -= (size_t)sent;
    }
    return ST_OK;
}

enum status proto_send(struct proto *proto, cJSON *message, struct error *err)
{
    MEM_LOCAL char *text = json_print(message, false);
    size_t n = strlen(text);
    enum status rc;

    cJSON_Delete(message);
    if (n + 1 > PROTO_MAX_BYTES) {
        rc = FAIL(err, ST_LIMIT, "a message of %zu bytes is too long (at most %u)", n, PROTO_MAX_BYTES);
    } else {
        text[n] = '\n'; /* in one write, since each takes up its own share of the socket's buffer */
        rc = send_all(proto->out_fd, text, n + 1, proto->send_ms, err);
    }
    return rc;
}

static enum status too_long(struct error *err)
{
    return FAIL(err, ST_CORRUPT, "a message is longer than %u bytes", PROTO_MAX_BYTES);
}

static void log_chatter(const struct proto *proto, const char *line, size_t n)
{
    while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
        n--;
    if (n > 0)
        log_info("%s: %.*s", proto->chatter, (int)(n < 200 ? n : 200), line);
}

/* Takes the next whole line out of the buffer, if there is one; else what is in it begins at the front. */
static enum status take_line(struct proto *proto, cJSON **ret_message, struct error *err)
{
    for (;;) {
        proto->at += proto->n_line;
        proto->n_line = 0;
        const char *line = proto->buf + proto->at;
        const char *end = memchr(line, '\n', proto->n - proto->at);
        if (end == NULL) {
            proto->n -= proto->at;
            memmove(proto->buf, line, proto->n);
            proto->at = 0;
            return proto->n >= PROTO_MAX_BYTES ? too_long(err) : ST_OK;
        }
        proto->n_line = (size_t)(end - line) + 1;
        if (proto->n_line > PROTO_MAX_BYTES)
            return too_long(err);
        if (proto->chatter != NULL && *line != '{') {
            log_chatter(proto, line, proto->n_line);
            continue;
        }
        proto->chatter = NULL;
        return json_parse(line, proto->n_line - 1, ret_message, err);
    }
}

static void grow(struct proto *proto)
{
    proto->buf = mem_grow(proto->buf, proto->cap, 2 * proto->cap, 1);
    proto->cap *= 2;
}

enum status proto_receive(struct proto *proto, int timeout_ms, cJSON **ret_message, struct error *err)
{
    struct pollfd pfd = {.fd = proto->in_fd, .events = POLLIN};

    *ret_message = NULL;
    TRY(take_line(proto, ret_message, err));
    if (*ret_message != NULL || proto->closed || poll(&pfd, 1, timeout_ms) <= 0)
        return ST_OK;
    if (proto->n == proto->cap) /* take_line has refused a line of PROTO_MAX_BYTES */
        grow(proto);
    ssize_t got = read(proto->in_fd, proto->buf + proto->n, proto->cap - proto->n);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return ST_OK;
    if (got <= 0) {
        proto->closed = true; /* reset counts as closed: the reason comes from the reaper */
        return ST_OK;
    }
    proto->n += (size_t)got;
    return take_line(proto, ret_message, err);
}

void proto_take_in(struct proto *proto)
{
    for (;;) {
        if (proto->n == proto->cap) {
            if (proto->cap >= TAKEN_IN_MAX)
                return;
            grow(proto);
        }
        ssize_t got = read(proto->in_fd, proto->buf + proto->n, proto->cap - proto->n);
        if (got <= 0) /* nothing more, or an end, which proto_receive sees again */
            return;
        proto->n += (size_t)got;
    }
}
