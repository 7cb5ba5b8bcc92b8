/* clock.h - durations come from the monotonic clock, points in time are UTC milliseconds. */
#pragma once

#include <pthread.h>
#include <stdint.h>
#include <time.h>

uint64_t clock_mono_ns(void); /* never goes back; for durations only */
double clock_mono_s(void);
double clock_boot_s(void); /* the same, with the time for which the machine was suspended */
int64_t clock_utc_ms(void); /* since 1970-01-01T00:00:00Z; may jump */

/* Counts from now on how often this process was continued after a stop (SIGSTOP, Ctrl-Z), by a handler of SIGCONT. */
void clock_watch_stops(void);
unsigned clock_stops(void); /* so far; any thread */

/* For pthread_cond_timedwait: a condition on the monotonic clock (pthread_cond_destroy), a deadline on it. */
void clock_cond_init(pthread_cond_t *cond);
struct timespec clock_timespec(double mono_s);
