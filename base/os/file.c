/* file.c - whole-file reads and atomic writes. */
#include "base/os/file.h"

#include "base/fault.h"

#include <zlib.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#define TEMP ".tmp."
#define LEFT_S 60 /* a temporary file of a process that has ended is removed from this age on */
#define LOOK_MS 100 /* for a pipe's writer */
#define FILE_FIRST_BYTES 65536 /* first buffer for a pipe or a file of /proc, whose size is not known */

void file_folder(const char *path, char *buf, size_t size)
{
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        snprintf(buf, size, ".");
    else
        snprintf(buf, size, "%.*s", slash == path ? 1 : (int)(slash - path), path);
}

const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static int write_bytes(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        if (fault_hit(FAULT_WRITE)) {
            errno = ENOSPC;
            return -1;
        }
        ssize_t did = write(fd, bytes, n < SSIZE_MAX ? n : SSIZE_MAX);
        if (did < 0 && errno == EINTR)
            continue;
        if (did < 0)
            return -1;
        bytes += did;
        n -= (size_t)did;
    }
    return 0;
}

static int sync_fd(int fd)
{
    if (fault_hit(FAULT_FSYNC)) {
        errno = EIO;
        return -1;
    }
    return fsync(fd);
}

/* Makes the rename itself durable. Not every file system can; the file is whole either way. */
static void sync_parent(const char *path)
{
    char dir[PATH_MAX];

    file_folder(path, dir, sizeof dir);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        close(fd);
    }
}

static enum status write_special(const char *path, const void *bytes, size_t n, struct error *err)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe that nobody reads is nothing to wait for */
    enum status rc = ST_OK;

    if (fd < 0)
        return FAIL(err, ST_IO, "%s: cannot be opened for writing: %s", path,
                    errno == ENXIO ? "it is a pipe that nobody reads" : strerror(errno));
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (write_bytes(fd, bytes, n) != 0)
        rc = FAIL(err, ST_IO, "%s: cannot write %zu bytes: %s", path, n, strerror(errno));
    close(fd);
    return rc;
}

/* Removes "PATH.tmp.PID" of processes that were killed while they wrote. A process that is not found may run in another
 * container: young files are left alone. */
static void remove_left(const char *path)
{
    char folder[PATH_MAX];
    const char *name = file_name(path);
    size_t n = strlen(name);
    const struct dirent *entry;

    file_folder(path, folder, sizeof folder);
    DIR *dir = opendir(folder);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        struct stat st;
        char *end;
        if (strncmp(entry->d_name, name, n) != 0 || strncmp(entry->d_name + n, TEMP, strlen(TEMP)) != 0)
            continue;
        long pid = strtol(entry->d_name + n + strlen(TEMP), &end, 10);
        if (*end == '\0' && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH &&
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - st.st_mtime > LEFT_S)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir != NULL)
        closedir(dir);
}

enum status file_writer_begin(struct file_writer *w, const char *path, struct error *err)
{
    w->path = path;
    remove_left(path);
    int len = snprintf(w->temp, sizeof w->temp, "%s" TEMP "%ld", path, (long)getpid());
    if (len < 0 || (size_t)len >= sizeof w->temp)
        return FAIL(err, ST_IO, "%.64s...: the path is too long, the limit is %d bytes", path, PATH_MAX - 16);
    w->fd = open(w->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    w->open = w->fd >= 0;
    return w->open ? ST_OK
                   : FAIL(err, ST_IO, "%s: cannot be written: %s; check that the folder exists and may be written to",
                          path, strerror(errno));
}

void file_writer_drop(struct file_writer *w)
{
    if (!w->open)
        return;
    if (w->fd >= 0)
        close(w->fd);
    unlink(w->temp);
    w->open = false;
}

static enum status fail_writer(struct file_writer *w, const char *what, struct error *err)
{
    enum status rc = FAIL(err, ST_IO, "%s: cannot %s: %s; what was there is unchanged", w->path, what, strerror(errno));

    file_writer_drop(w);
    return rc;
}

enum status file_writer_add(struct file_writer *w, const void *bytes, size_t n, struct error *err)
{
    char what[48];

    if (write_bytes(w->fd, bytes, n) == 0)
        return ST_OK;
    snprintf(what, sizeof what, "write %zu bytes", n);
    return fail_writer(w, what, err);
}

enum status file_writer_end(struct file_writer *w, struct error *err)
{
    if (sync_fd(w->fd) != 0)
        return fail_writer(w, "be brought to disk", err);
    int closed = close(w->fd);
    w->fd = -1;
    if (closed != 0 || rename(w->temp, w->path) != 0)
        return fail_writer(w, "be put in place", err);
    w->open = false;
    sync_parent(w->path);
    return ST_OK;
}

enum status file_write_all(const char *path, const void *bytes, size_t n, struct error *err)
{
    struct file_writer w = {0};
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return write_special(path, bytes, n, err);
    TRY(file_writer_begin(&w, path, err));
    TRY(file_writer_add(&w, bytes, n, err));
    return file_writer_end(&w, err);
}

static enum status too_large(const char *path, size_t max_bytes, struct error *err)
{
    return FAIL(err, ST_LIMIT, "%s: is larger than the limit of %zu bytes", path, max_bytes);
}

/* Reads to the end; *bytes (cap) grows as needed and is the caller's, also on failure. fd was opened without waiting for
 * a pipe's writer: there is one from the first byte, or EAGAIN, on. */
static enum status read_to_end(int fd, bool is_pipe, const char *path, size_t max_bytes, char **bytes, size_t cap,
                               size_t *ret_n, struct error *err)
{
    size_t n = 0;
    int looks = FILE_WRITER_S * 1000 / LOOK_MS;

    for (;;) {
        ssize_t did = read(fd, *bytes + n, cap - n);
        if (did < 0 && errno == EINTR)
            continue;
        if (did < 0 && errno == EAGAIN) {
            (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
            is_pipe = false;
            continue;
        }
        if (is_pipe && did == 0 && n == 0) {
            if (looks-- == 0)
                return FAIL(err, ST_IO, "%s: is a pipe that nobody writes to", path);
            (void)usleep(1000 * LOOK_MS);
            continue;
        }
        if (did < 0)
            return FAIL(err, ST_IO, "%s: cannot be read: %s", path, strerror(errno));
        n += (size_t)did;
        if (n > max_bytes)
            return too_large(path, max_bytes, err);
        if (did == 0) {
            (*bytes)[n] = '\0'; /* n < cap: read was asked for at least one byte */
            *ret_n = n;
            return ST_OK;
        }
        if (n == cap) {
            cap = cap <= max_bytes / 2 ? cap * 2 : max_bytes + 1;
            *bytes = mem_grow(*bytes, n, cap, 1);
        }
    }
}

static enum status read_file(const char *path, bool only_regular, size_t max_bytes, char **ret_bytes, size_t *ret_n,
                             struct error *err)
{
    struct stat st;
    char *bytes = NULL;
    size_t cap, n = 0;
    enum status rc;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    *ret_bytes = NULL;
    if (fd < 0)
        return FAIL(err, ST_IO, "%s: cannot be opened: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0) {
        rc = FAIL(err, ST_IO, "%s: cannot be read: %s", path, strerror(errno));
        goto done;
    }
    if (S_ISDIR(st.st_mode)) {
        rc = FAIL(err, ST_IO, "%s: is a folder, a file is needed", path);
        goto done;
    }
    if (only_regular && !S_ISREG(st.st_mode)) {
        rc = FAIL(err, ST_IO, "%s: is not a file but a pipe, a socket or a device", path);
        goto done;
    }
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > max_bytes) {
        rc = too_large(path, max_bytes, err);
        goto done;
    }
    cap = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size + 1 : FILE_FIRST_BYTES;
    if (cap > max_bytes)
        cap = max_bytes + 1;
    bytes = mem_alloc(cap);
    rc = read_to_end(fd, S_ISFIFO(st.st_mode), path, max_bytes, &bytes, cap, &n, err);

done:
    close(fd);
    if (rc != ST_OK) {
        mem_free(bytes);
        return rc;
    }
    *ret_bytes = bytes;
    *ret_n = n;
    return ST_OK;
}

enum status file_read_all(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_n, struct error *err)
{
    return read_file(path, false, max_bytes, ret_bytes, ret_n, err);
}

enum status file_read_regular(const char *path, size_t max_bytes, char **ret_bytes, size_t *ret_n, struct error *err)
{
    return read_file(path, true, max_bytes, ret_bytes, ret_n, err);
}

enum status file_make_folders(const char *path, unsigned mode, struct error *err)
{
    char part[PATH_MAX];
    size_t n = 0;

    if (strlen(path) >= sizeof part)
        return FAIL(err, ST_IO, "%s: the path is too long", path);
    while (path[n] != '\0') {
        n += path[n] == '/';
        n += strcspn(path + n, "/");
        snprintf(part, sizeof part, "%.*s", (int)n, path);
        if (mkdir(part, mode) != 0 && errno != EEXIST)
            return FAIL(err, ST_IO, "%s: the folder cannot be created: %s", part, strerror(errno));
    }
    return ST_OK;
}

enum status file_make_folder_of(const char *file, unsigned mode, struct error *err)
{
    char folder[PATH_MAX];

    file_folder(file, folder, sizeof folder);
    return file_make_folders(folder, mode, err);
}

bool file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

uint32_t file_crc32(uint32_t crc, const void *bytes, size_t n)
{
    return (uint32_t)crc32_z(crc, bytes, n);
}
