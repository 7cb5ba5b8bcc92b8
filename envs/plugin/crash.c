/* crash.c - a game that divides by zero or follows a wild pointer takes the process with it: before that, one line says
 * which game was loaded and where it was. SIGABRT is not caught: who aborts has said why.
 * Invariants: (1) the handler calls nothing that locks or allocates; (2) the signal kills the process as before; (3) a
 * handler that is there already stays (a sanitizer's). */
#include "envs/plugin/crash.h"
#include "base/base.h"

#include <link.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PLACES_MAX 16
#define STACK_BYTES 65536

struct place {
    const char *path;
    uintptr_t base, end;
};

static struct place places[PLACES_MAX];
static atomic_size_t n_places; /* those below it are whole */
static _Atomic(const char *) newest; /* being loaded, or loaded last */

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "Segmentation fault"},
               {SIGBUS, "Bus error"},
               {SIGFPE, "Floating point exception"},
               {SIGILL, "Illegal instruction"}};

static uintptr_t counter_of(const void *context)
{
#if defined(__x86_64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

static void report(int number, siginfo_t *info, void *context)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    const char *name = "?", *path = atomic_load(&newest);
    uintptr_t at = counter_of(context);
    char line[2 * PATH_MAX + 256];
    int n = 0;

    (void)info;
    for (size_t i = 0; i < COUNT(signals); i++)
        if (signals[i].number == number)
            name = signals[i].name;
    for (size_t i = atomic_load(&n_places); i-- > 0 && n == 0;)
        if (at >= places[i].base && at < places[i].end)
            n = snprintf(line, sizeof line,
                         CRASH_LINE "%d (%s) in the game %s: `addr2line -f -e %s 0x%zx` names the function\n", number,
                         name, places[i].path, places[i].path, (size_t)(at - places[i].base));
    if (n == 0)
        n = snprintf(
            line, sizeof line,
            CRASH_LINE
            "%d (%s) outside of the code of the game %s, which may have called it; `trawl env check` plays it\n",
            number, name, path);
    if (!atomic_flag_test_and_set(&reported))
        n = (int)write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
    signal(number, SIG_DFL);
    raise(number); /* once this returns */
}

/* A stack that has overflowed has no room for the handler; in other threads such a crash prints no line. */
static void own_stack(void)
{
    stack_t stack = {.ss_size = STACK_BYTES};

    stack.ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp != MAP_FAILED)
        (void)sigaltstack(&stack, NULL);
}

void crash_begin(const char *path)
{
    if (atomic_exchange(&newest, path) != NULL)
        return;
    own_stack();
    for (size_t i = 0; i < COUNT(signals); i++) {
        struct sigaction old, catch = {.sa_sigaction = report, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        if (sigaction(signals[i].number, NULL, &old) == 0 && (old.sa_flags & SA_SIGINFO) == 0 &&
            old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i].number, &catch, NULL);
    }
}

static int find_end(struct dl_phdr_info *info, size_t size, void *data)
{
    struct place *place = data;

    (void)size;
    if (info->dlpi_addr != place->base)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            place->end < place->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz)
            place->end = place->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    return 1;
}

void crash_opened(const char *path, void *handle)
{
    size_t n = atomic_load(&n_places);
    struct link_map *map;

    if (n == PLACES_MAX || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
        return;
    places[n] = (struct place){path, map->l_addr, 0};
    if (dl_iterate_phdr(find_end, &places[n]) == 1)
        atomic_store(&n_places, n + 1);
}
