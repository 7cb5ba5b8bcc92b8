/* lock.c - at most one writing process per store.
 *
 * The lock is an flock on PATH.lock: the kernel drops it when the process dies, in whatever way, and a left-over file
 * never blocks another process. The file holds the owner's pid for messages only. A clean close removes it; a process
 * that gets the lock checks that the path still names the locked file, since the owner may have removed it in between.
 * The lock is at the real path of the store: no symbolic link leads past it, also one whose target does not exist yet.
 * A lock file can be removed under its owner, and the next program would lock a new one. The owner therefore also binds
 * an abstract socket, named by the store's directory and name, which nobody can remove; it ends with the process,
 * too. */
#include "store/store_priv.h"

#include "base/os/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define LOCK_TRIES 20
#define LOOK_TRIES 3 /* a process that only checks (store_file_is_held) holds the lock for microseconds */
#define LOOK_WAIT_US 20000
#define LINKS_MAX 40 /* the kernel's limit */

static enum status open_failed(struct store *store, struct error *err)
{
    int os = errno;
    char dir[PATH_MAX];

    file_folder(store->lock_path, dir, sizeof dir);
    if (os == ENOSPC || os == EDQUOT)
        return FAIL(err, ST_IO, "%s: the disk is full; free some space and try again", store->lock_path);
    if (os == ENXIO)
        return FAIL(err, ST_IO, "%s is not a file (a pipe or a device); remove it", store->lock_path);
    if (os == ENOTDIR || (os == ENOENT && !file_exists(dir))) /* in /proc, no file can be created */
        return FAIL(err, ST_IO,
                    "%s cannot be created: its directory does not exist; create it or give another path to --store",
                    store->path);
    return FAIL(err, ST_IO, "%s cannot be created (%s); give --store a path that you may write to", store->lock_path,
                strerror(os));
}

static enum status lock_refused(struct store *store, int fd, struct error *err)
{
    int os = errno;
    char pid[24] = "";

    if (os != EWOULDBLOCK)
        return FAIL(err, ST_IO,
                    "%s cannot be locked (%s): network file systems often cannot; put the store on a local disk",
                    store->lock_path, strerror(os));
    ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
    pid[n > 0 ? n : 0] = '\0';
    pid[strcspn(pid, "\n")] = '\0';
    return FAIL(err, ST_BUSY,
                "%s is in use by another sweep or daemon (process %s); wait for it, stop it, or give another path to "
                "--store. Reading commands work meanwhile",
                store->path, pid[0] != '\0' ? pid : "unknown");
}

/* path is a symbolic link: writes its target into buf, as seen from the link's directory. */
static bool follow_link(const char *path, char buf[PATH_MAX])
{
    char target[PATH_MAX];
    const char *slash = strrchr(path, '/');
    ssize_t n = readlink(path, target, sizeof target - 1);
    int dir = slash != NULL ? (int)(slash - path) + 1 : 0, used;

    if (n <= 0)
        return false;
    target[n] = '\0';
    used =
        target[0] == '/' ? snprintf(buf, PATH_MAX, "%s", target) : snprintf(buf, PATH_MAX, "%.*s%s", dir, path, target);
    return used > 0 && used < PATH_MAX;
}

const char *store_real_path(const char *path, char *buf)
{
    char at[PATH_MAX], next[PATH_MAX], dir[PATH_MAX];

    if (realpath(path, buf) != NULL)
        return buf;
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return path;
    for (int i = 0; i < LINKS_MAX && follow_link(at, next); i++)
        memcpy(at, next, sizeof at);
    file_folder(at, dir, sizeof dir);
    if (realpath(dir, next) == NULL ||
        snprintf(buf, PATH_MAX, "%s/%s", strcmp(next, "/") == 0 ? "" : next, file_name(at)) >= PATH_MAX)
        return path;
    return buf;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Binds the socket of the store's name; without such sockets, or without a directory, the flock alone must do. */
static enum status guard_take(struct store *store, struct error *err)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char dir[PATH_MAX];
    struct stat at;

    if (store->guard_fd >= 0)
        return ST_OK;
    file_folder(store->lock_path, dir, sizeof dir);
    if (stat(dir, &at) != 0)
        return ST_OK;
    int n = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "trawl-store/%jx/%jx/%s", (uintmax_t)at.st_dev,
                     (uintmax_t)at.st_ino, file_name(store->lock_path));
    if (n >= (int)sizeof name.sun_path - 1)
        n = (int)sizeof name.sun_path - 2;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return ST_OK;
    if (bind(fd, (struct sockaddr *)&name, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) == 0) {
        store->guard_fd = fd;
        return ST_OK;
    }
    bool taken = errno == EADDRINUSE;
    close(fd);
    return !taken
               ? ST_OK
               : FAIL(err, ST_BUSY,
                      "%s is in use by another sweep or daemon, whose lock file was removed; wait for it, stop it, or "
                      "give another path to --store. Reading commands work meanwhile",
                      store->path);
}

enum status store_lock_take(struct store *store, struct error *err)
{
    char text[24];

    for (int i = 0; i < LOCK_TRIES; i++) {
        struct stat held, named;
        int fd = open(store->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
        if (fd < 0)
            return open_failed(store, err);
        if (fstat(fd, &held) != 0 || !S_ISREG(held.st_mode)) { /* a pipe, opened to read and write */
            close(fd);
            errno = ENXIO;
            return open_failed(store, err);
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK && i < LOOK_TRIES) {
                close(fd);
                usleep(LOOK_WAIT_US);
                continue;
            }
            enum status rc = lock_refused(store, fd, err);
            close(fd);
            return rc;
        }
        if (stat(store->lock_path, &named) == 0 && same_file(&held, &named)) {
            enum status rc = guard_take(store, err);
            if (rc != ST_OK) {
                close(fd);
                return rc;
            }
            store->lock_fd = fd;
            int n = snprintf(text, sizeof text, "%ld\n", (long)getpid());
            /* The pid only makes a message better: a failure to write it is not a failure. */
            (void)(ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)n, 0) == n);
            return ST_OK;
        }
        close(fd);
    }
    return FAIL(err, ST_BUSY, "%s is being opened and closed by other programs all the time; try again",
                store->lock_path);
}

enum status store_lock_keep(struct store *store, bool *ret_again, struct error *err)
{
    struct stat held, named;
    int fd = store->lock_fd;

    *ret_again = false;
    if (fd < 0 || fstat(fd, &held) != 0)
        return ST_OK;
    if (stat(store->lock_path, &named) == 0 ? same_file(&held, &named) : errno != ENOENT && errno != ENOTDIR)
        return ST_OK;
    enum status rc = store_lock_take(store, err);
    if (rc != ST_OK) {
        store->lock_fd = fd;
        return rc;
    }
    close(fd);
    *ret_again = true;
    return ST_OK;
}

void store_lock_drop(struct store *store)
{
    struct stat held, named;

    if (store->lock_fd < 0)
        return;
    /* A lock file that another process has made meanwhile is left alone. */
    if (fstat(store->lock_fd, &held) == 0 && stat(store->lock_path, &named) == 0 && same_file(&held, &named))
        unlink(store->lock_path);
    close(store->lock_fd);
    store->lock_fd = -1;
    if (store->guard_fd >= 0)
        close(store->guard_fd);
    store->guard_fd = -1;
}

bool store_file_is_held(const char *path, int64_t *ret_pid)
{
    char real[PATH_MAX], lock_path[PATH_MAX + 8], text[24] = "";

    *ret_pid = 0;
    snprintf(lock_path, sizeof lock_path, "%.*s.lock", PATH_MAX, store_real_path(path, real));
    int fd = open(lock_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not wait where the file is a pipe */
    if (fd < 0)
        return false;
    /* A shared lock, dropped at once: two processes that check at the same time do not see each other. */
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (held && pread(fd, text, sizeof text - 1, 0) > 0)
        *ret_pid = strtoll(text, NULL, 10);
    close(fd);
    return held;
}
