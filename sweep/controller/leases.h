/* leases.h - trials of a study that clients outside train (docs/decisions/0013-leases.md). The open leases belong to
 * the study; the scheduler's thread. The store changes first, then the study in memory: a call that fails has changed
 * neither, or the store's own failure is reported and the same request may come again. */
#pragma once

#include "store/store.h"

struct sched_study;
struct scheduler;

struct held { /* an open lease */
    struct lease lease;
    size_t i; /* index of its trial in ss->view */
    double from_s; /* of the monotonic clock, like until_s: when the trial was given, by the best that is known */
    double until_s; /* it ends then, unless its client reports */
    double cost_s; /* seconds at the last report; NaN: none */
    bool recall; /* its trial goes back into the queue at the next round */
    char stop[ERROR_TEXT_MAX]; /* why its client is to stop; "": it is not */
};
struct leases {
    struct held *v; /* (n) owned */
    size_t n, cap;
};
/* A token that nobody can guess, after prefix. */
enum status lease_make_token(struct lease *lease, const char *prefix, struct error *err) MUST_USE;
void leases_free(struct leases *leases);
/* Loads the open leases of the store; each has a whole lease time from now, since its client could not report. */
enum status leases_begin(struct sched_study *ss, struct error *err) MUST_USE;
struct held *leases_of_trial(struct sched_study *ss, int64_t number); /* NULL: none */
/* How many trials should wait in the queue, so that a client rarely waits for a proposal; 0: the scheduler's own rule
 * for its slots is enough. */
size_t leases_ahead(const struct sched_study *ss);
/* Since the trial was given; a clock that is set does not change it. */
double leases_elapsed_s(const struct held *held);
double leases_running_s(const struct sched_study *ss); /* training of these so far */
/* The trial that the client has, or the first of the queue; *ret_held NULL: none is queued. */
enum status leases_give(struct sched_study *ss, const char *client, struct held **ret_held, bool *ret_again,
                        struct error *err) MUST_USE;
/* Extends the lease. report: NULL for none. cost_s: NaN when unknown. */
enum status leases_report(struct sched_study *ss, struct held *held, int64_t seq, double cost_s,
                          struct metric_report *report, struct error *err) MUST_USE;
/* Records the result and ends the lease; held is gone. */
enum status leases_finish(struct scheduler *s, struct sched_study *ss, struct held *held,
                          const struct trial_result *result, const char *result_json, struct error *err) MUST_USE;
struct held *leases_append(struct sched_study *ss, const struct lease *lease, size_t i);
void leases_forget(struct sched_study *ss, struct held *held); /* it has ended in the store */
/* LEASE_EXPIRED or LEASE_RETURNED; held is gone. */
enum status leases_end(struct scheduler *s, struct sched_study *ss, struct held *held, enum lease_state state,
                       struct error *err) MUST_USE;
void leases_recall(struct sched_study *ss); /* all of them, at the next round */
void leases_ask_stop(struct sched_study *ss, const char *why); /* all clients, with their next report */
void leases_slept(struct sched_study *ss, double seconds); /* the controller stood still: so much is not silence */
/* Ends the leases whose clients have been silent for too long, and those that are recalled. */
enum status leases_round(struct scheduler *s, struct sched_study *ss, struct error *err) MUST_USE;
