/* supervise.h - the health of workers: finds hung ones, delays restarts, quarantines devices. In the thread of the
 * workers; nothing here fails. */
#pragma once

#include "base/base.h"

struct worker;
struct workers;

void supervise_round(struct workers *ws); /* finds and kills workers that hang or do not stop */
void supervise_death(struct workers *ws, struct worker *worker, const char *how); /* back-off, quarantine */
bool supervise_may_start(const struct workers *ws, const struct worker *worker);
void supervise_started(struct worker *worker);
void supervise_slept(struct workers *ws, double gap_s); /* the program was suspended: no worker is to blame */
void supervise_success(struct worker *worker); /* a trial ended as it should */
bool supervise_is_quarantined(const struct worker *worker); /* it, or its host */
bool supervise_all_quarantined(const struct workers *ws);
