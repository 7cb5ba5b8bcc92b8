/* signals.c - SIGINT, SIGTERM and SIGHUP ask for a clean stop; the second one ends the program at once.
 * A SIGHUP that the caller ignores stays ignored: a sweep under nohup outlives its terminal. */
#include "sweep/sweep.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t n_signals;

static void on_signal(int number)
{
    (void)number;
    if (++n_signals < 2)
        return;
    term_emergency();
    _exit(130);
}

void signals_catch(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART: poll and read return at once */
    struct sigaction before;

    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (numbers[i] != SIGHUP || sigaction(SIGHUP, NULL, &before) != 0 || before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

bool signals_stop(void)
{
    return n_signals > 0;
}
