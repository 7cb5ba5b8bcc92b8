/* proto.c - messages between controller and worker: one JSON object a line over a stream socket, length bounded.
 * Invariants: (1) a message is sent whole or the connection is given up; (2) a peer that sends a longer line or no JSON
 * is a bug or a stranger, and an error. */
#include "sweep/control.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

enum status proto_create(struct proto *proto, int fd, struct error *err)
{
    memset(proto, 0, sizeof *proto);
    proto->fd = fd;
    proto->buf = mem_alloc(PROTO_MAX_BYTES);
    return proto->buf != NULL ? ST_OK : FAIL(err, ST_NOMEM, "out of memory for the worker's messages");
}

void proto_destroy(struct proto *proto)
{
    if (proto->buf == NULL)
        return;
    close(proto->fd);
    mem_free(proto->buf);
    memset(proto, 0, sizeof *proto);
}

cJSON *proto_message(const char *type)
{
    cJSON *json = cJSON_CreateObject();

    if (json != NULL && !json_add_str(json, "type", type)) {
        cJSON_Delete(json);
        return NULL;
    }
    return json;
}

static enum status send_all(int fd, const char *bytes, size_t n, struct error *err)
{
    while (n > 0) {
        ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return FAIL(err, ST_IO, "the other process does not take messages: %s", strerror(errno));
        bytes += sent;
        n -= (size_t)sent;
    }
    return ST_OK;
}

enum status proto_send(struct proto *proto, cJSON *message, struct error *err)
{
    char *text = message != NULL ? json_print(message, false) : NULL;
    size_t n = text != NULL ? strlen(text) : 0;
    enum status rc;

    cJSON_Delete(message);
    if (text == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for a message");
    if (n + 1 > PROTO_MAX_BYTES) {
        rc = FAIL(err, ST_LIMIT, "a message of %zu bytes is too long (at most %u)", n, PROTO_MAX_BYTES);
    } else {
        rc = send_all(proto->fd, text, n, err);
        if (rc == ST_OK)
            rc = send_all(proto->fd, "\n", 1, err);
    }
    mem_free(text);
    return rc;
}

/* Takes the first whole line out of the buffer, if there is one. */
static enum status take_line(struct proto *proto, cJSON **ret_message, struct error *err)
{
    char *end;
    size_t n;

    proto->n -= proto->n_line;
    memmove(proto->buf, proto->buf + proto->n_line, proto->n);
    proto->n_line = 0;
    end = memchr(proto->buf, '\n', proto->n);
    if (end == NULL) {
        if (proto->n == PROTO_MAX_BYTES)
            return FAIL(err, ST_CORRUPT, "a message is longer than %u bytes", PROTO_MAX_BYTES);
        return ST_OK;
    }
    n = (size_t)(end - proto->buf);
    proto->n_line = n + 1;
    return json_parse(proto->buf, n, ret_message, err);
}

enum status proto_receive(struct proto *proto, int timeout_ms, cJSON **ret_message, struct error *err)
{
    struct pollfd pfd = {.fd = proto->fd, .events = POLLIN};
    ssize_t got;

    *ret_message = NULL;
    TRY(take_line(proto, ret_message, err));
    if (*ret_message != NULL || proto->closed || poll(&pfd, 1, timeout_ms) <= 0)
        return ST_OK;
    got = recv(proto->fd, proto->buf + proto->n, PROTO_MAX_BYTES - proto->n, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return ST_OK;
    if (got <= 0) {
        proto->closed = true; /* reset counts as closed: the reaper tells why */
        return ST_OK;
    }
    proto->n += (size_t)got;
    return take_line(proto, ret_message, err);
}
