/* memory_groups.c - a cgroup (v2) for each worker, that limits its real use of the machine's memory, its device's
 * driver included.
 * Invariants: (1) only a group that is the controller's alone is divided, as a systemd unit with Delegate=yes is: no
 * other process is ever moved or limited; (2) a failure here costs the group, never the worker: it keeps to its own
 * limit (worker_limits.c). */
#include "sweep/supervise/memory_groups.h"

#include "base/os/machine.h"

#include <fcntl.h>
#include <sys/stat.h>

#define CONTROLLER "controller" /* the child that the controller itself moves to: only leaves may hold processes */

static bool read_text(const struct memory_groups *g, const char *name, char *buf, size_t size)
{
    char path[sizeof g->root + 96];

    snprintf(path, sizeof path, "%s/%s", g->root, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n >= 0;
}

/* False: errno has the reason. */
static bool write_text(const struct memory_groups *g, const char *name, const char *text)
{
    char path[sizeof g->root + 96];

    snprintf(path, sizeof path, "%s/%s", g->root, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    int why = errno;
    if (fd >= 0)
        close(fd);
    if (!ok)
        log_debug("%s: '%s' cannot be written: %s", path, text, strerror(why));
    errno = why;
    return ok;
}

static bool has_word(char *text, const char *word)
{
    char *rest = NULL;

    for (char *at = strtok_r(text, " \n", &rest); at != NULL; at = strtok_r(NULL, " \n", &rest))
        if (strcmp(at, word) == 0)
            return true;
    return false;
}

bool memory_groups_look(struct memory_groups *g, const char *root)
{
    char text[4096], self[32];

    *g = (struct memory_groups){.root = ""};
    if (root != NULL)
        snprintf(g->root, sizeof g->root, "%s", root);
    else
        machine_group(g->root, sizeof g->root);
    snprintf(self, sizeof self, "%ld\n", (long)getpid());
    if (!read_text(g, "cgroup.controllers", text, sizeof text) || !has_word(text, "memory"))
        snprintf(g->why_not, sizeof g->why_not, "no cgroup v2 with a memory controller here");
    else if (!read_text(g, "cgroup.procs", text, sizeof text) || strcmp(text, self) != 0)
        snprintf(g->why_not, sizeof g->why_not, "its cgroup is not this process' alone");
    else if (!write_text(g, "cgroup.procs", self))
        snprintf(g->why_not, sizeof g->why_not, "its cgroup is not delegated to this user");
    return g->why_not[0] == '\0';
}

static void child_path(const struct memory_groups *g, const char *child, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", g->root, child);
}

void memory_groups_open(struct memory_groups *g, const char *root)
{
    char path[sizeof g->root + 96], self[32];

    if (!memory_groups_look(g, root))
        return;
    snprintf(self, sizeof self, "%ld\n", (long)getpid());
    child_path(g, CONTROLLER, path, sizeof path);
    if ((mkdir(path, 0755) == 0 || errno == EEXIST) && write_text(g, CONTROLLER "/cgroup.procs", self) &&
        write_text(g, "cgroup.subtree_control", "+memory")) {
        g->on = true;
        return;
    }
    snprintf(g->why_not, sizeof g->why_not, "its cgroup cannot be divided: %.80s", strerror(errno));
    g->on = true;
    memory_groups_close(g);
}

void memory_groups_close(struct memory_groups *g)
{
    char path[sizeof g->root + 96], self[32];

    if (!g->on)
        return;
    g->on = false;
    snprintf(self, sizeof self, "%ld\n", (long)getpid());
    child_path(g, CONTROLLER, path, sizeof path);
    (void)!write_text(g, "cgroup.subtree_control", "-memory");
    (void)!write_text(g, "cgroup.procs", self);
    if (rmdir(path) != 0)
        log_debug("%s: %s", path, strerror(errno));
}

/* "cpu/2" becomes "worker-cpu-2". */
static void group_name(const char *label, char buf[48])
{
    snprintf(buf, 48, "worker-%.40s", label);
    for (char *at = buf; *at != '\0'; at++)
        if (*at == '/' || *at == ':')
            *at = '-';
}

bool memory_groups_add(const struct memory_groups *g, const char *label, pid_t pid, int64_t bytes)
{
    char name[48], path[sizeof g->root + 96], file[80], text[32];

    if (!g->on || bytes <= 0)
        return false;
    group_name(label, name);
    child_path(g, name, path, sizeof path);
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return false;
    snprintf(file, sizeof file, "%s/memory.max", name);
    snprintf(text, sizeof text, "%lld\n", (long long)bytes);
    if (!write_text(g, file, text))
        return false;
    snprintf(file, sizeof file, "%s/cgroup.procs", name);
    snprintf(text, sizeof text, "%ld\n", (long)pid);
    return write_text(g, file, text);
}

bool memory_groups_remove(const struct memory_groups *g, const char *label)
{
    char name[48], path[sizeof g->root + 96], file[80], text[512];

    if (!g->on)
        return false;
    group_name(label, name);
    snprintf(file, sizeof file, "%s/memory.events", name);
    const char *kills = read_text(g, file, text, sizeof text) ? strstr(text, "oom_kill ") : NULL;
    child_path(g, name, path, sizeof path);
    if (rmdir(path) != 0)
        log_debug("%s: %s", path, strerror(errno));
    return kills != NULL && strtoll(kills + strlen("oom_kill "), NULL, 10) > 0;
}
