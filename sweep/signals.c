/* signals.c - SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 ask for a clean stop; a second request ends the program at
 * once. Batch systems send the last two before they end a job. One event may send several signals (`timeout` signals
 * its child and then its group, a terminal that closes sends SIGHUP twice): what comes within ONE_EVENT_S of the first
 * is the same request. A SIGHUP, SIGUSR1 or SIGUSR2 that the caller ignores stays ignored: a sweep under nohup outlives
 * its terminal. */
#include "sweep/signals.h"

#include "sweep/term.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#define ONE_EVENT_S 2

static volatile sig_atomic_t stopped;
static struct timespec first; /* the first request; written before stopped is set, with every signal blocked */

static void on_signal(int number)
{
    struct timespec now;

    (void)number;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* async-signal-safe */
    if (!stopped) {
        first = now;
        stopped = 1;
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
    for (size_t i = 0; i < sizeof caught / sizeof caught[0]; i++)
        if (!caught[i].may_stay_ignored || sigaction(caught[i].number, NULL, &before) != 0 ||
            before.sa_handler != SIG_IGN)
            sigaction(caught[i].number, &action, NULL);
}

bool signals_stop(void)
{
    return stopped != 0;
}
