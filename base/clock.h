/* clock.h - durations come from the monotonic clock, points in time are UTC milliseconds. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_mono_ns(void); /* never goes back; for durations only */
double clock_mono_s(void);
int64_t clock_utc_ms(void); /* since 1970-01-01T00:00:00Z; may jump */

#endif
