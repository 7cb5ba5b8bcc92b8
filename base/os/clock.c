/* clock.c - the monotonic and the UTC clock. */
#include "base/os/clock.h"

#include <math.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_uint n_stops; /* a signal's handler has nowhere else to count */

uint64_t clock_mono_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

double clock_mono_s(void)
{
    return (double)clock_mono_ns() * 1e-9;
}

double clock_boot_s(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

int64_t clock_utc_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void on_continue(int number)
{
    (void)number;
    atomic_fetch_add(&n_stops, 1);
}

void clock_watch_stops(void)
{
    struct sigaction action = {.sa_handler = on_continue, .sa_flags = SA_RESTART};

    sigfillset(&action.sa_mask);
    sigaction(SIGCONT, &action, NULL);
}

unsigned clock_stops(void)
{
    return atomic_load(&n_stops);
}

void clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t clock;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &clock);
    pthread_condattr_destroy(&clock);
}

struct timespec clock_timespec(double mono_s)
{
    return (struct timespec){.tv_sec = (time_t)mono_s, .tv_nsec = (long)(fmod(mono_s, 1.0) * 1e9)};
}
