/* call_sites.c - a table of call stacks that are cut at a fixed depth.
 * Invariants: (1) nothing here allocates, for it runs inside malloc: the unwinder of libgcc reads tables that are
 * mapped already (backtrace() of the C library would load a library at its first call); (2) rows are only added, under
 * the lock. */
#include "call_sites.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#define SITES_DEPTH 8 /* measured: see docs/reliability.md */
#define SITES_MAX (1 << 14) /* a power of two */

struct frame {
    const char *module; /* its loader's, for the process's life */
    uintptr_t offset; /* of the return address */
};

struct site {
    uint64_t hash; /* 0: free */
    long count;
    int n_frames;
    struct frame frames[SITES_DEPTH];
};

struct stack {
    struct frame frames[SITES_DEPTH];
    int n;
};

static struct site table[SITES_MAX];
static int order[SITES_MAX], n_sites; /* places in the table by first call */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of these */
static __thread bool inside __attribute__((tls_model("initial-exec"))); /* another model may allocate */

static const struct link_map *module_of(const void *address)
{
    struct dl_find_object found;

    return _dl_find_object((void *)address, &found) == 0 ? found.dlfo_link_map : NULL;
}

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *ctx)
{
    struct stack *stack = ctx;
    uintptr_t address = _Unwind_GetIP(context);
    const struct link_map *module = module_of((const void *)(address - 1)); /* within the call */

    if (module == NULL || stack->n == SITES_DEPTH)
        return _URC_END_OF_STACK;
    if (module != module_of(table)) /* not this library's own */
        stack->frames[stack->n++] = (struct frame){module->l_name, address - module->l_addr};
    return _URC_NO_REASON;
}

/* FNV-1a over 64 bits. */
static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    for (const unsigned char *p = bytes; n > 0; n--, p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h;
}

static uint64_t hash_stack(const struct stack *stack)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (int i = 0; i < stack->n; i++) {
        h = mix(h, stack->frames[i].module, strlen(stack->frames[i].module));
        h = mix(h, &stack->frames[i].offset, sizeof stack->frames[i].offset);
    }
    return h != 0 ? h : 1;
}

/* Under the lock. */
static struct site *find(uint64_t hash, const struct stack *stack)
{
    size_t at = hash & (SITES_MAX - 1);

    while (table[at].hash != 0 && table[at].hash != hash)
        at = (at + 1) & (SITES_MAX - 1);
    if (table[at].hash == 0) {
        if (n_sites == SITES_MAX - 1)
            abort(); /* make the table larger */
        table[at].hash = hash;
        table[at].n_frames = stack->n;
        memcpy(table[at].frames, stack->frames, sizeof stack->frames);
        order[n_sites++] = (int)at;
    }
    return &table[at];
}

long sites_count(uint64_t *ret_site)
{
    struct stack stack = {.n = 0};
    long count;

    if (inside)
        return 0;
    inside = true;
    _Unwind_Backtrace(take_frame, &stack);
    *ret_site = hash_stack(&stack);
    pthread_mutex_lock(&lock);
    count = ++find(*ret_site, &stack)->count;
    pthread_mutex_unlock(&lock);
    inside = false;
    return count;
}

void sites_write(int fd)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_sites; i++) {
        const struct site *site = &table[order[i]];
        dprintf(fd, "%016llx %ld", (unsigned long long)site->hash, site->count);
        for (int k = 0; k < site->n_frames; k++)
            dprintf(fd, " %s+0x%lx", site->frames[k].module[0] != '\0' ? site->frames[k].module : "trawl",
                    (unsigned long)site->frames[k].offset);
        dprintf(fd, "\n");
    }
    pthread_mutex_unlock(&lock);
}
