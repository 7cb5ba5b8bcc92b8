/* control_address.c - the names under which the controller of a store listens.
 * Invariant: two programs that mean the same store, by whatever path, find the same names. */
#include "sweep/control/socket/control_address.h"

#include "base/hash.h"

#include <fcntl.h>

#define BY_FOLDER "/proc/self/fd/%d/%s" /* the kernel's short name of a long path whose folder is open */
#define BY_FOLDER_BYTES (sizeof "/proc/self/fd//" + 10)

/* False when even the file's name is too long for a socket. */
static bool set_path(struct control_address *a, const char *path)
{
    size_t n = strlen(path);
    const char *slash = strrchr(path, '/');

    if (n >= sizeof a->path || slash == NULL)
        return false;
    if (n >= sizeof a->sun.sun_path && strlen(slash + 1) + BY_FOLDER_BYTES >= sizeof a->sun.sun_path)
        return false;
    memset(a, 0, sizeof *a);
    memcpy(a->path, path, n + 1);
    snprintf(a->text, sizeof a->text, "%s", path);
    return true;
}

/* What bind and connect take: *ret_folder (-1: none) must stay open until they are done, then the caller closes it. */
static bool open_address(const struct control_address *a, struct sockaddr_un *ret_sun, socklen_t *ret_size,
                         int *ret_folder)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(a->path, '/');

    *ret_folder = -1;
    *ret_sun = a->sun;
    *ret_size = a->size;
    if (a->is_abstract)
        return true;
    ret_sun->sun_family = AF_UNIX;
    if (strlen(a->path) < sizeof ret_sun->sun_path) {
        memcpy(ret_sun->sun_path, a->path, strlen(a->path) + 1);
    } else {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - a->path), a->path);
        *ret_folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (*ret_folder < 0)
            return false;
        snprintf(ret_sun->sun_path, sizeof ret_sun->sun_path, BY_FOLDER, *ret_folder, slash + 1);
    }
    *ret_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(ret_sun->sun_path) + 1);
    return true;
}

static bool use(const struct control_address *a, int fd, bool binds)
{
    struct sockaddr_un sun;
    socklen_t size;
    int folder, why;
    bool ok = open_address(a, &sun, &size, &folder) && (binds ? bind(fd, (const struct sockaddr *)&sun, size)
                                                              : connect(fd, (const struct sockaddr *)&sun, size)) == 0;

    why = errno;
    if (folder >= 0)
        close(folder);
    errno = why;
    return ok;
}

bool control_address_bind(const struct control_address *a, int fd)
{
    return use(a, fd, true);
}

bool control_address_connect(const struct control_address *a, int fd)
{
    return use(a, fd, false);
}

static void set_abstract(struct control_address *a, const char *name)
{
    size_t n = strlen(name);

    memset(a, 0, sizeof *a);
    a->sun.sun_family = AF_UNIX;
    memcpy(a->sun.sun_path + 1, name, n); /* after a NUL: no file */
    a->size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
    a->is_abstract = true;
    snprintf(a->text, sizeof a->text, "@%s", name);
}

enum status control_addresses(const char *store_path, struct control_address ret_addresses[CONTROL_ADDRESSES],
                              size_t *ret_n, struct error *err)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char real[PATH_MAX], name[PATH_MAX + 64], abstract[64];

    *ret_n = 0;
    if (store_beside(store_path, real) != real)
        return FAIL(err, errno == ENOENT ? ST_NOTFOUND : ST_IO, "%s: %s; check --store", store_path,
                    errno == ENOENT ? "there is no such store" : strerror(errno));
    uint64_t id = hash_text(real);
    snprintf(name, sizeof name, "%s.sock", real);
    if (set_path(&ret_addresses[*ret_n], name))
        ++*ret_n;
    if (runtime != NULL && runtime[0] == '/' && strlen(runtime) < PATH_MAX) {
        snprintf(name, sizeof name, "%s/trawl-%016llx.sock", runtime, (unsigned long long)id);
        if (set_path(&ret_addresses[*ret_n], name))
            ++*ret_n;
    }
    snprintf(abstract, sizeof abstract, "trawl-%ld-%016llx", (long)geteuid(), (unsigned long long)id);
    set_abstract(&ret_addresses[(*ret_n)++], abstract);
    return ST_OK;
}
