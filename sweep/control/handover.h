/* handover.h - what `trawl sweep` shares between running a study itself (cmd_sweep.c) and handing it over to a daemon
 * (handover.c). cmd_sweep.c owns and frees all that struct sweep_cmd holds; one thread. */
#pragma once

#include "store/store.h"
#include "sweep/control/controller_socket.h"
#include "sweep/show/progress.h"

struct limits;
struct scheduler;
struct search;
struct setup;
struct store;
struct sched_study;
struct study_view;

struct sweep_cmd {
    const char *store_path, *name, *resume, *budget, *wall_time, *target, *from, *devices, *track;
    int64_t trials, seed, runs_per_device;
    bool json, quiet, print_config, standby;
    bool has_config; /* setup is whole: a file was given, or options that change the study's own config */
    struct setup *setup; /* of the given config */
    struct store *store;
    struct sched_study *ss;
    struct scheduler *sched;
    struct progress progress;
    struct controller_socket socket;
};

/* The limits of an existing study, s->run, with those that the command line changes: the limits of a file are the ones
 * that it began with. */
void sweep_new_limits(const struct sweep_cmd *s, struct limits *ret_limits);
/* A config given on resume must be that of s->run, but for the limits and for ranges that are wider: then
 * *ret_is_wider, and ret_wider holds the space that it asks for. The caller: search_free. */
enum status sweep_check_same(const struct sweep_cmd *s, struct search *ret_wider, bool *ret_is_wider,
                             struct error *err) MUST_USE;
/* A study whose trials have all failed is a failure, with the reason. */
enum status sweep_check_any_done(const struct study_view *v, struct error *err) MUST_USE;

/* Does a daemon hold the store? */
bool handover_is_possible(const struct sweep_cmd *s);
enum status handover_run(struct sweep_cmd *s, struct error *err) MUST_USE;
