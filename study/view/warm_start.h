/* warm_start.h - trials of another study of the same store as evidence for a new one. Reads the store; one
 * thread. */
#pragma once

#include "base/base.h"

struct search;
struct setup;
struct store;
struct study_view;

/* Are the trials of `from` evidence for a study of this setup and space? ST_CONFIG lists the settings that differ
 * there; a warning lists those that are near. Of another game nothing is compared. */
enum status warm_start_check(struct store *store, const char *from, const struct setup *setup,
                             const struct search *search, struct error *err) MUST_USE;
/* Fills history.other of a bound view from the study that it names; nothing when it names none. */
enum status warm_start_load(struct store *store, const struct setup *setup, struct study_view *view,
                            struct error *err) MUST_USE;
