/* control_client.c - one request to the controller of a store, and its answer.
 * Invariant: it waits at most ANSWER_S, or the caller's limit, for the controller. */
#include "sweep/control/socket/control_client.h"
#include "sweep/control/socket/control_address.h"
#include "sweep/signals.h"

#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_S 30 /* a controller answers between two events */
#define ANSWER_MAX (8u << 20)

/* ST_NOTFOUND when no controller listens at any of the store's addresses. */
static enum status connect_to(const char *store_path, int patience_s, int *ret_fd, struct error *err)
{
    struct control_address addresses[CONTROL_ADDRESSES];
    struct timeval patience = {.tv_sec = patience_s};
    size_t n = 0;

    TRY(control_addresses(store_path, addresses, &n, err));
    for (size_t i = 0; i < n; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct ucred peer;
        socklen_t size = sizeof peer;
        if (fd < 0)
            return FAIL(err, ST_IO, "cannot make a socket: %s", strerror(errno));
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (control_address_connect(&addresses[i], fd)) {
            /* An abstract name may be taken by anybody. */
            if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                (peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0)) {
                *ret_fd = fd;
                return ST_OK;
            }
        } else if (errno == EACCES) {
            close(fd);
            return FAIL(err, ST_IO, "%s belongs to another user; only the user who runs the controller may command it",
                        addresses[i].text);
        }
        close(fd);
    }
    return FAIL(err, ST_NOTFOUND, "no controller of %s is running", store_path);
}

static enum status send_text(int fd, const char *text, size_t n, struct error *err)
{
    while (n > 0) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return FAIL(err, ST_IO, "the controller does not take the request: %s", strerror(errno));
        text += sent;
        n -= (size_t)sent;
    }
    return ST_OK;
}

static enum status receive_line(int fd, struct strbuf *line, struct error *err)
{
    char buf[4096];

    for (;;) {
        ssize_t got = recv(fd, buf, sizeof buf, 0);
        if (got < 0 && errno == EINTR && !signals_stop())
            continue;
        if (got < 0 && errno == EINTR)
            return FAIL(err, ST_INTERRUPTED,
                        "interrupted while waiting for the controller, which may still carry it out");
        if (got < 0)
            return FAIL(err, ST_IO, "the controller gives no answer: %s",
                        errno == EAGAIN ? "it is silent" : strerror(errno));
        if (got == 0)
            return FAIL(err, ST_IO, "the controller ended before it answered; try again");
        char *end = memchr(buf, '\n', (size_t)got);
        strbuf_add_n(line, buf, end != NULL ? (size_t)(end - buf) : (size_t)got);
        if (end != NULL)
            return strbuf_status(line, "the controller's answer", err);
        TRY(strbuf_status(line, "the controller's answer", err));
    }
}

/* A refusal becomes our failure, with the status that it had there. */
static enum status read_answer(const struct strbuf *line, cJSON **ret_answer, struct error *err)
{
    cJSON *answer = NULL;
    bool ok = false;
    int64_t code = ST_INTERNAL;
    const char *text;

    TRY(json_parse(line->text, line->len, &answer, err));
    if (json_get_bool(answer, "ok", &ok) && ok) {
        *ret_answer = answer;
        return ST_OK;
    }
    text = json_get_str(answer, "error");
    if (!json_get_i64(answer, "code", &code) || code <= ST_OK || code > ST_INTERNAL)
        code = ST_INTERNAL;
    enum status rc =
        FAIL(err, (enum status)code, "%s", text != NULL ? text : "the controller refused and gave no reason");
    cJSON_Delete(answer);
    return rc;
}

/* By way of the store. */
static enum status mail(const char *store_path, const char *study, int patience_s, const char *text,
                        struct strbuf *line, bool *ret_reached, struct error *err)
{
    MEM_LOCAL char *answer = NULL;

    TRY(store_mail_call(store_path, study, text, patience_s, signals_stop, &answer, ret_reached, err));
    strbuf_add(line, answer);
    return strbuf_status(line, "the controller's answer", err);
}

enum status control_call_within(const char *store_path, int patience_s, cJSON *request, cJSON **ret_answer,
                                bool *ret_reached, struct error *err)
{
    char study[128];
    MEM_LOCAL char *text = json_print(request, false);
    const char *named = json_get_str(request, "study");
    struct error why = {0};
    int fd = -1;

    *ret_answer = NULL;
    *ret_reached = false;
    snprintf(study, sizeof study, "%s", named != NULL ? named : "");
    cJSON_Delete(request);
    STRBUF(line, ANSWER_MAX);
    enum status rc = connect_to(store_path, patience_s, &fd, &why);
    *ret_reached = fd >= 0;
    THEN(rc, send_text(fd, text, strlen(text), &why));
    THEN(rc, send_text(fd, "\n", 1, &why));
    THEN(rc, receive_line(fd, &line, &why));
    THEN(rc, read_answer(&line, ret_answer, &why));
    /* Its controller is on another machine, or is not the one that listens here. */
    if ((rc == ST_NOTFOUND && fd < 0) || rc == ST_BUSY) {
        if (store_is_address(store_path)) {
            error_clear(&why);
            strbuf_clear(&line);
            rc = mail(store_path, study[0] != '\0' ? study : NULL, patience_s, text, &line, ret_reached, &why);
            THEN(rc, read_answer(&line, ret_answer, &why));
        }
    }
    if (rc != ST_OK)
        error_set(err, rc, "%s", why.text);
    if (fd >= 0)
        close(fd);
    return rc;
}

enum status control_call(const char *store_path, cJSON *request, cJSON **ret_answer, bool *ret_reached,
                         struct error *err)
{
    return control_call_within(store_path, ANSWER_S, request, ret_answer, ret_reached, err);
}
