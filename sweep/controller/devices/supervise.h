/* supervise.h - the health of workers: finds hung ones, delays restarts, quarantines devices. Acts on workers of the
 * scheduler, in its thread; nothing here fails. */
#ifndef SWEEP_CONTROLLER_SUPERVISE_H
#define SWEEP_CONTROLLER_SUPERVISE_H

#include <stdbool.h>

struct scheduler;
struct worker;

void supervise_round(struct scheduler *s); /* finds and kills workers that hang or do not stop */
void supervise_death(struct scheduler *s, struct worker *worker, const char *how); /* back-off, quarantine */
bool supervise_may_start(const struct scheduler *s, const struct worker *worker);
void supervise_started(struct worker *worker);
void supervise_slept(struct scheduler *s, double gap_s); /* the program was suspended: no worker is to blame */
void supervise_success(struct worker *worker); /* a trial ended as it should */
bool supervise_is_quarantined(const struct worker *worker); /* it, or its host */
bool supervise_all_quarantined(const struct scheduler *s);

#endif
