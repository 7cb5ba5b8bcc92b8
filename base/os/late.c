/* late.c - see late.h. Invariant: once `open` is set, the pointers never change. */
#include "base/os/late.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER; /* held for this file's own lines alone */

static enum status take_calls(struct late_library *library, struct error *err)
{
    void *handle = dlopen(library->file, RTLD_LAZY | RTLD_LOCAL);
    char *call = library->calls, path[PATH_MAX];

    if (handle == NULL && library->folder != NULL) {
        snprintf(path, sizeof path, "%s/%s", library->folder, library->file);
        handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    }
    if (handle == NULL)
        return FAIL(err, ST_IO, "%s cannot be opened (%s); install the package %s", library->file, dlerror(),
                    library->package);
    for (const char *name = library->names; *name != '\0'; name += strlen(name) + 1, call += sizeof(void *)) {
        void *at = dlsym(handle, name);
        if (at == NULL)
            return FAIL(err, ST_IO,
                        "%s has no %s; install the package %s of the release that this program was built for",
                        library->file, name, library->package);
        memcpy(call, &at, sizeof at);
    }
    __atomic_store_n(&library->open, true, __ATOMIC_RELEASE);
    return ST_OK;
}

enum status late_open(struct late_library *library, struct error *err)
{
    enum status rc = ST_OK;

    if (__atomic_load_n(&library->open, __ATOMIC_ACQUIRE))
        return ST_OK;
    pthread_mutex_lock(&opening);
    if (!library->open)
        rc = take_calls(library, err);
    pthread_mutex_unlock(&opening);
    return rc;
}
