/* warm_start.h - trials of another study that teach this one. */
#ifndef STUDY_WARM_START_H
#define STUDY_WARM_START_H

#include "base/status.h"

struct search;
struct setup;
struct store;
struct study_view;

/* Can the study `from` teach one of this setup and space? ST_CONFIG with a list of what is fixed otherwise there; a warning of what
 * is near. */
enum status warm_start_check(struct store *store, const char *from, const struct setup *setup,
                             const struct search *search, struct error *err) MUST_USE;
/* Fills history.other of a bound view from the study that it names; nothing when it names none. */
enum status warm_start_load(struct store *store, const struct setup *setup, struct study_view *view,
                            struct error *err) MUST_USE;

#endif
