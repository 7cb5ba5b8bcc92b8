/* log_file.c - a rotating log file as the sink of the log.
 * Invariants: (1) logging never fails the program: what cannot be written (a full disk) is dropped, and the next line
 * tries again; (2) at most n_keep old files of about max_bytes exist. The sink is called under the log's lock, one at a
 * time. */
#include "sweep/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#define LINE_MAX_BYTES 2400

struct log_file {
    char *path; /* owned */
    int fd;
    int64_t size, max_bytes, n_keep;
};

static int open_append(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644); /* a pipe without a reader fails */
}

/* PATH.2 -> PATH.3, PATH.1 -> PATH.2, PATH -> PATH.1; then a new PATH. */
static void rotate(struct log_file *l)
{
    char from[4200], to[4200];

    for (int64_t k = l->n_keep; k > 0; k--) {
        snprintf(to, sizeof to, "%s.%lld", l->path, (long long)k);
        if (k > 1)
            snprintf(from, sizeof from, "%s.%lld", l->path, (long long)(k - 1));
        else
            snprintf(from, sizeof from, "%s", l->path);
        (void)rename(from, to); /* not there: nothing to move */
    }
    if (l->n_keep == 0)
        (void)unlink(l->path);
    int fd = open_append(l->path);
    if (fd < 0)
        return; /* the old one, by whatever name it has now, is better than none */
    dup2(fd, l->fd); /* the same number: others hold it */
    close(fd);
    l->size = 0;
}

static void sink(void *ctx, enum log_level level, const char *line)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    struct log_file *l = ctx;
    char text[LINE_MAX_BYTES], when[32] = "";
    int64_t now_ms = clock_utc_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;

    if (gmtime_r(&seconds, &tm) != NULL)
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    int n = snprintf(text, sizeof text, "%s.%03dZ %s: %s\n", when, (int)(now_ms % 1000), names[level], line);
    if (n < 0)
        return;
    if ((size_t)n >= sizeof text) {
        n = (int)sizeof text - 1;
        text[n - 1] = '\n';
    }
    if (l->size + n > l->max_bytes && l->size > 0)
        rotate(l);
    if (write(l->fd, text, (size_t)n) == n)
        l->size += n;
}

enum status log_file_open(struct log_file **ret_log, const char *path, int64_t max_bytes, int64_t n_keep,
                          struct error *err)
{
    struct log_file *l = mem_alloc(sizeof *l);
    struct stat st;

    l->path = mem_strdup(path);
    l->max_bytes = max_bytes;
    l->n_keep = n_keep;
    l->fd = strlen(path) < 4096 ? open_append(path) : -1;
    if (l->fd < 0 || fstat(l->fd, &st) != 0) {
        enum status rc = FAIL(err, ST_IO, "%s: the log cannot be written: %s", path, strerror(errno));
        mem_free(l->path);
        mem_free(l);
        return rc;
    }
    l->size = st.st_size;
    log_set_sink(sink, l);
    *ret_log = l;
    return ST_OK;
}

void log_file_close(struct log_file *l)
{
    if (l == NULL)
        return;
    log_set_sink(NULL, NULL);
    close(l->fd);
    mem_free(l->path);
    mem_free(l);
}
