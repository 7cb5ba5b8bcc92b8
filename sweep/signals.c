/* signals.c - SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 ask for a clean stop; a second request ends the program at
 * once. Batch systems send the last two before they end a job. One event may send several signals (`timeout` signals
 * its child and then its group, a terminal that closes sends SIGHUP twice): what comes within ONE_EVENT_S of the first
 * is the same request. A SIGHUP, SIGUSR1 or SIGUSR2 that the caller ignores stays ignored: a sweep under nohup outlives
 * its terminal.
 * A game of the user's that loops for ever keeps the thread that would obey: signals_bound starts a thread which waits
 * for the request and ends the program when nobody asks for it any more. */
#include "sweep/signals.h"

#include "sweep/term.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

#define ONE_EVENT_S 2
#define NAP_MS 100
#define PATIENCE_MS 10000
#define GAPS 3 /* times the longest time between two questions: slow is not hung */
#define SAVE_PATIENCE_S 20

static volatile sig_atomic_t stopped;
static struct timespec first; /* the first request; written before stopped is set, with every signal blocked */
static sem_t requested; /* posted with the first request */
static atomic_bool bounded; /* signals_bound was called */
static atomic_int outcome; /* of the first request, which is decided once */
enum { OPEN, OBEYED, ENDING };
static atomic_int_fast64_t asked_ms, gap_ms; /* the last question, and the longest time between two */
static signals_last_fn *last_fn;
static void *last_ctx;

static void on_signal(int number)
{
    struct timespec now;

    (void)number;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* async-signal-safe */
    if (!stopped) {
        first = now;
        stopped = 1;
        if (atomic_load(&bounded))
            sem_post(&requested);
        return;
    }
    if (now.tv_sec - first.tv_sec < ONE_EVENT_S ||
        (now.tv_sec - first.tv_sec == ONE_EVENT_S && now.tv_nsec < first.tv_nsec))
        return;
    term_emergency();
    _exit(130);
}

void signals_catch(void)
{
    static const struct {
        int number;
        bool may_stay_ignored;
    } caught[] = {{SIGINT, false}, {SIGTERM, false}, {SIGHUP, true}, {SIGUSR1, true}, {SIGUSR2, true}};
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: poll and read return at once */
    struct sigaction before;

    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < COUNT(caught); i++)
        if (!caught[i].may_stay_ignored || sigaction(caught[i].number, NULL, &before) != 0 ||
            before.sa_handler != SIG_IGN)
            sigaction(caught[i].number, &action, NULL);
}

/* What signals_stop knows of a program that is bounded: how long it leaves between two questions. */
static void note_question(void)
{
    int_fast64_t now_ms = (int_fast64_t)(clock_mono_ns() / 1000000), before_ms = atomic_exchange(&asked_ms, now_ms);

    if (before_ms > 0 && now_ms - before_ms > atomic_load(&gap_ms))
        atomic_store(&gap_ms, now_ms - before_ms);
}

/* Is this how the request ends? */
static bool decide(int how)
{
    int before = OPEN;

    return atomic_compare_exchange_strong(&outcome, &before, how) || before == how;
}

bool signals_stop(void)
{
    if (atomic_load(&bounded))
        note_question();
    if (stopped == 0)
        return false;
    if (!decide(OBEYED))
        for (;;)
            pause(); /* too late: the program ends */
    return true;
}

/* Time is counted in naps, so that a program which stood still is not blamed for it. */
static void *bound_main(void *arg)
{
    char what[1024] = "";
    const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    int_fast64_t waited_ms = 0;

    (void)arg;
    while (sem_wait(&requested) != 0 && errno == EINTR)
        ;
    for (; waited_ms < PATIENCE_MS || waited_ms < GAPS * atomic_load(&gap_ms); waited_ms += NAP_MS) {
        if (atomic_load(&outcome) == OBEYED)
            return NULL;
        nanosleep(&nap, NULL);
    }
    if (!decide(ENDING))
        return NULL;
    alarm(SAVE_PATIENCE_S); /* another request: saving may hang too */
    if (last_fn != NULL)
        last_fn(last_ctx, what, sizeof what);
    term_emergency();
    fprintf(term_err(), "trawl: interrupted, and ended: the game has not come back for %lld s%s%s\n",
            (long long)(waited_ms / 1000), what[0] != '\0' ? "; " : "", what);
    _exit(130);
}

void signals_bound(signals_last_fn *fn, void *ctx)
{
    struct sigaction action = {.sa_handler = on_signal};
    pthread_t thread;

    if (atomic_load(&bounded))
        return;
    last_fn = fn;
    last_ctx = ctx;
    sigfillset(&action.sa_mask);
    sigaction(SIGALRM, &action, NULL);
    sem_init(&requested, 0, 0);
    if (pthread_create(&thread, NULL, bound_main, NULL) == 0) { /* else the second signal ends it */
        pthread_detach(thread);
        atomic_store(&bounded, true);
    }
    signals_catch();
}
