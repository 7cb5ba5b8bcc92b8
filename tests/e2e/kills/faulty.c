/* faulty.c - preloaded into a controller (LD_PRELOAD): the nth write, read, open, send, fsync, allocation or start of a
 * process fails once, the disk is slow, the wall clock jumps, or the machine was suspended for N seconds as soon as
 * FAULTY_ASLEEP=FILE is there. FAULTY="KIND:N" says which; FAULTY_COUNT=FILE gets the
 * number of calls at the end. FAULTY="site:SITE:N" fails the nth allocation of one place in the program (call_sites.h),
 * of none when N is 0; then the file gets the list of places.
 * "quota" is a write too, for which it is the user's share of the disk that is full.
 * FAULTY="power:0" keeps of each file what its last sync has made sure of, as FILE.synced: what is left of it when the
 * power fails. FAULTY_FS=NUMBER: every file lies on a file system of that kind (statfs).
 * Counted is what happens in main(): a library that dies while it starts, for want of memory (CUDA's do), is not a fault
 * of ours. Workers, which inherit the environment, are left alone. */
#include "call_sites.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum kind { NONE, WRITE, FSYNC, MALLOC, FORK, SLOW, CLOCK, SITE, POWER, READ, OPEN, SEND, SLEEP, QUOTA };

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static enum kind kind;
static long nth;
static uint64_t site;
static int no_room; /* what a write that fails says */
static atomic_long calls;
static char count_path[512];

#define REAL(f) (__extension__(__typeof__(&f)) dlsym(RTLD_NEXT, #f))

__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {"",     "write", "fsync", "malloc", "fork", "slow",  "clock",
                                        "site", "power", "read",  "open",   "send", "sleep", "quota"};
    const char *text = getenv("FAULTY"), *path = getenv("FAULTY_COUNT");
    char line[256] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;

    close(fd);
    if (text == NULL || (n > 0 && memmem(line, (size_t)n, "\0worker", 8) != NULL)) /* argv[1] of a worker */
        return;
    for (int k = 1; k <= QUOTA; k++)
        if (strncmp(text, names[k], strlen(names[k])) == 0 && text[strlen(names[k])] == ':') {
            if (k == SITE)
                site = strtoull(text + strlen("site:"), NULL, 16);
            nth = atol(strrchr(text, ':') + 1);
            kind = k == QUOTA ? WRITE : (enum kind)k;
            no_room = k == QUOTA ? EDQUOT : ENOSPC;
        }
    if (path != NULL)
        snprintf(count_path, sizeof count_path, "%s", path);
}

__attribute__((destructor)) static void end(void)
{
    char text[32];
    int fd = count_path[0] != '\0' ? open(count_path, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
    int n = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));

    enum kind was = kind;

    kind = NONE;
    if (was == SITE && fd >= 0)
        sites_write(fd);
    else if (fd >= 0 && write(fd, text, (size_t)n) != n)
        _exit(99);
}

typedef int main_fn(int, char **, char **);
static main_fn *real_main;
static int in_main;

static int counted_main(int argc, char **argv, char **environment)
{
    in_main = 1;
    int code = real_main(argc, argv, environment);
    in_main = 0;
    return code;
}

int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(main_fn *main, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end)
{
    real_main = main;
    return REAL(__libc_start_main)(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

static int hit(enum kind of)
{
    return in_main && kind == of && atomic_fetch_add(&calls, 1) + 1 == nth;
}

static int hit_allocation(void)
{
    uint64_t here = 0;

    return kind == SITE ? in_main && sites_count(&here) == nth && here == site && nth > 0 : hit(MALLOC);
}

static void slow(void)
{
    if (kind == SLOW)
        usleep((useconds_t)nth * 1000);
}

static int is_socket(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (kind == SEND && is_socket(fd) && hit(SEND)) {
        errno = ENOBUFS;
        return -1;
    }
    if (fd > STDERR_FILENO && hit(WRITE)) {
        errno = no_room;
        return -1;
    }
    return REAL(write)(fd, bytes, n);
}

#define POSITIONED(name, offset_type)                                                                                  \
    ssize_t name(int fd, const void *bytes, size_t n, offset_type at)                                                  \
    {                                                                                                                  \
        slow();                                                                                                        \
        if (hit(WRITE)) {                                                                                              \
            errno = no_room;                                                                                           \
            return -1;                                                                                                 \
        }                                                                                                              \
        return REAL(name)(fd, bytes, n, at);                                                                           \
    }
POSITIONED(pwrite, off_t)
POSITIONED(pwrite64, off64_t)

#define FAIL_ONCE(of, code)                                                                                            \
    do {                                                                                                               \
        if (hit(of)) {                                                                                                 \
            errno = code;                                                                                              \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

ssize_t read(int fd, void *bytes, size_t n)
{
    if (fd > STDERR_FILENO)
        FAIL_ONCE(READ, EIO);
    return REAL(read)(fd, bytes, n);
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    FAIL_ONCE(READ, EIO);
    return REAL(pread)(fd, bytes, n, at);
}

ssize_t pread64(int fd, void *bytes, size_t n, off64_t at)
{
    FAIL_ONCE(READ, EIO);
    return REAL(pread64)(fd, bytes, n, at);
}

ssize_t recv(int fd, void *bytes, size_t n, int flags)
{
    FAIL_ONCE(READ, EIO);
    return REAL(recv)(fd, bytes, n, flags);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    FAIL_ONCE(SEND, ENOBUFS);
    return REAL(send)(fd, bytes, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    FAIL_ONCE(SEND, ENOBUFS);
    return REAL(sendmsg)(fd, message, flags);
}

#define OPENS(name)                                                                                                    \
    int name(const char *path, int flags, ...)                                                                         \
    {                                                                                                                  \
        va_list args;                                                                                                  \
                                                                                                                       \
        va_start(args, flags);                                                                                         \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(args, int) : 0;                            \
        va_end(args);                                                                                                  \
        FAIL_ONCE(OPEN, EMFILE);                                                                                       \
        return REAL(name)(path, flags, mode);                                                                          \
    }
OPENS(open)
OPENS(open64)

#define STATFS(name, type)                                                                                             \
    int name(const char *path, struct type *ret)                                                                       \
    {                                                                                                                  \
        const char *kind_of_fs = getenv("FAULTY_FS");                                                                  \
        int rc = REAL(name)(path, ret);                                                                                \
                                                                                                                       \
        if (rc == 0 && kind_of_fs != NULL)                                                                             \
            ret->f_type = (__typeof__(ret->f_type))strtoul(kind_of_fs, NULL, 0);                                       \
        return rc;                                                                                                     \
    }
STATFS(statfs, statfs)
STATFS(statfs64, statfs64)

/* As a whole or not at all, whenever the process is killed. */
static void keep_synced(int fd)
{
    static _Thread_local char bytes[1 << 16];
    char link[64], path[512], part[600], whole[600];
    off_t at = 0;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0)
        return;
    path[n] = '\0';
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(whole, sizeof whole, "%s.synced", path);
    int to = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    while (to >= 0 && (n = pread(fd, bytes, sizeof bytes, at)) > 0 && REAL(pwrite)(to, bytes, (size_t)n, at) == n)
        at += n;
    if (to >= 0 && close(to) == 0 && n == 0) /* of a folder nothing can be read */
        rename(part, whole);
    else
        unlink(part);
}

#define SYNC(name)                                                                                                     \
    int name(int fd)                                                                                                   \
    {                                                                                                                  \
        int rc;                                                                                                        \
                                                                                                                       \
        slow();                                                                                                        \
        if (hit(FSYNC)) {                                                                                              \
            errno = EIO;                                                                                               \
            return -1;                                                                                                 \
        }                                                                                                              \
        rc = REAL(name)(fd);                                                                                           \
        if (rc == 0 && kind == POWER)                                                                                  \
            keep_synced(fd);                                                                                           \
        return rc;                                                                                                     \
    }
SYNC(fsync)
SYNC(fdatasync)

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
                char *const argv[], char *const envp[])
{
    return hit(FORK) ? EAGAIN : REAL(posix_spawn)(pid, path, actions, attr, argv, envp);
}

#define ALLOCATE(call)                                                                                                 \
    do {                                                                                                               \
        if (hit_allocation()) {                                                                                        \
            errno = ENOMEM;                                                                                            \
            return NULL;                                                                                               \
        }                                                                                                              \
        return call;                                                                                                   \
    } while (0)

void *malloc(size_t size)
{
    ALLOCATE(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    ALLOCATE(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
    ALLOCATE(__libc_realloc(old, size));
}

void *aligned_alloc(size_t align, size_t size)
{
    ALLOCATE(__libc_memalign(align, size));
}

int posix_memalign(void **ret_block, size_t align, size_t size) /* base/mem's */
{
    if (hit_allocation())
        return ENOMEM;
    *ret_block = __libc_memalign(align, size);
    return *ret_block != NULL ? 0 : ENOMEM;
}

/* What the clocks that count a suspension are ahead by. */
static long slept_s(void)
{
    const char *path = kind == SLEEP ? getenv("FAULTY_ASLEEP") : NULL;

    return path != NULL && access(path, F_OK) == 0 ? nth : 0;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    int rc = REAL(clock_gettime)(id, ret);

    if (kind == CLOCK && id == CLOCK_REALTIME) /* a day on, two days back, and so on */
        ret->tv_sec += (atomic_fetch_add(&calls, 1) / 3 % 2 ? -1 : 1) * nth;
    if (id == CLOCK_REALTIME || id == CLOCK_BOOTTIME)
        ret->tv_sec += slept_s();
    return rc;
}

int gettimeofday(struct timeval *ret, void *zone) /* SQLite's */
{
    int rc = REAL(gettimeofday)(ret, zone);

    ret->tv_sec += slept_s();
    return rc;
}
