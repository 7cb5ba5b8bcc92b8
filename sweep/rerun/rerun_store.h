/* rerun_store.h - runs under fresh seeds become trials of the study, where front, models and pages have them. */
#pragma once

#include "base/base.h"

struct rerun;

/* Stores the runs that are not stored yet, by the store's controller, or in the store where none runs. Fills
 * rerun->stored; a failure leaves those before it. */
enum status rerun_store(struct rerun *rerun, struct error *err) MUST_USE;
