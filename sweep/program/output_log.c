/* output_log.c - a program's output in a file: its first OUTPUT_HEAD_BYTES as they come, and at the end the last
 * OUTPUT_TAIL_BYTES of what came after. A disk that is full costs the file, never the trial. */
#include "sweep/program/output_log.h"

#include <fcntl.h>

enum status output_log_open(struct output_log *log, const char *path, struct error *err)
{
    *log = (struct output_log){.fd = -1};
    if (path != NULL) {
        log->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (log->fd < 0)
            return FAIL(err, ST_IO, "%s: cannot be written: %s", path, strerror(errno));
    }
    log->tail = mem_alloc(OUTPUT_TAIL_BYTES);
    log->line = mem_alloc(OUTPUT_LINE_BYTES);
    return ST_OK;
}

static void write_file(struct output_log *log, const char *bytes, size_t n)
{
    while (log->fd >= 0 && n > 0) {
        ssize_t done = write(log->fd, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            log_warn("the output of the program is no longer kept: %s", strerror(errno));
            close(log->fd);
            log->fd = -1;
            return;
        }
        bytes += done;
        n -= (size_t)done;
    }
}

void output_log_add(struct output_log *log, const char *bytes, size_t n)
{
    if (log->n < OUTPUT_HEAD_BYTES)
        write_file(log, bytes, n < OUTPUT_HEAD_BYTES - log->n ? n : (size_t)(OUTPUT_HEAD_BYTES - log->n));
    for (size_t i = 0; i < n;) {
        size_t at = (size_t)((log->n + i) % OUTPUT_TAIL_BYTES), fits = OUTPUT_TAIL_BYTES - at;
        fits = fits < n - i ? fits : n - i;
        memcpy(log->tail + at, bytes + i, fits);
        i += fits;
    }
    log->n += n;
}

bool output_log_line(struct output_log *log, const char *bytes, size_t n, size_t *at, const char **ret_line,
                     size_t *ret_n)
{
    while (*at < n) {
        char c = bytes[(*at)++];
        if (c != '\n' && c != '\r') {
            if (log->n_line < OUTPUT_LINE_BYTES)
                log->line[log->n_line++] = c;
            log->too_long = log->too_long || log->n_line == OUTPUT_LINE_BYTES;
            continue;
        }
        *ret_line = log->line;
        *ret_n = log->n_line;
        log->n_line = 0;
        if (*ret_n > 0 && *ret_n < OUTPUT_LINE_BYTES)
            return true;
    }
    return false;
}

const char *output_log_rest(const struct output_log *log, size_t *ret_n)
{
    *ret_n = log->n_line < OUTPUT_LINE_BYTES ? log->n_line : 0;
    return log->line;
}

void output_log_printable(char *text, size_t n)
{
    size_t to = 0;

    n = words_drop_escapes(text, n);
    for (size_t i = 0; i < n;) {
        size_t len = utf8_length(text + i, n - i);
        bool is_control = len == 1 ? text[i] == 0x7f || (text[i] < ' ' && text[i] != '\n' && text[i] != '\t')
                                   : len == 2 && text[i] == '\xc2' && (unsigned char)text[i + 1] < 0xa0;
        if (text[i] == '\r') {
            if (i + 1 < n && text[i + 1] != '\n')
                text[to++] = '\n';
            i++;
        } else if (len == 0 || is_control) {
            text[to++] = '?';
            i += len > 0 ? len : 1;
        } else {
            memmove(text + to, text + i, len);
            to += len;
            i += len;
        }
    }
    while (to > 0 && text[to - 1] == '\n')
        to--;
    text[to] = '\0';
}

void output_log_last(const struct output_log *log, char ret_text[OUTPUT_LAST_BYTES + 1])
{
    size_t n = log->n < OUTPUT_LAST_BYTES ? (size_t)log->n : OUTPUT_LAST_BYTES;
    char *newline;

    for (size_t i = 0; i < n; i++)
        ret_text[i] = log->tail[(log->n - n + i) % OUTPUT_TAIL_BYTES];
    output_log_printable(ret_text, n);
    if (log->n > OUTPUT_LAST_BYTES &&
        (newline = strchr(ret_text, '\n')) != NULL) /* the first line lacks its beginning */
        memmove(ret_text, newline + 1, strlen(newline + 1) + 1);
}

void output_log_close(struct output_log *log)
{
    if (log->tail == NULL)
        return;
    if (log->n > OUTPUT_HEAD_BYTES) {
        uint64_t after = log->n - OUTPUT_HEAD_BYTES, kept = after < OUTPUT_TAIL_BYTES ? after : OUTPUT_TAIL_BYTES;
        size_t from = (size_t)((log->n - kept) % OUTPUT_TAIL_BYTES);
        size_t first = kept < OUTPUT_TAIL_BYTES - from ? (size_t)kept : OUTPUT_TAIL_BYTES - from;
        char text[80];
        snprintf(text, sizeof text, "\n[... %llu bytes of output are left out ...]\n",
                 (unsigned long long)(after - kept));
        if (after > kept)
            write_file(log, text, strlen(text));
        write_file(log, log->tail + from, first);
        write_file(log, log->tail, (size_t)kept - first);
    }
    if (log->fd >= 0)
        close(log->fd);
    mem_free(log->tail);
    mem_free(log->line);
    *log = (struct output_log){.fd = -1};
}
