/* program_run.h - one run of a program that trains something: start, reports, limits, stop, end. A struct program_run
 * owns the process, the log and the queue of reports (program_run_destroy, which kills what is left); one thread at a
 * time. For a worker's lane, for `trawl train` and `trawl rerun`, and for whoever else starts programs. */
#pragma once

#include "sweep/program/metric_lines.h"
#include "sweep/program/output_log.h"

struct program_job {
    char *const *argv; /* NULL-terminated; borrowed for program_run_start alone, like all of a job */
    const char *directory; /* to start in */
    const char *const *env; /* (n_env) "NAME=value", instead of or besides our own */
    size_t n_env;
    const char *log_path; /* its output, bounded; NULL: not kept */
    const char *metrics_path; /* JSON lines that it may write, emptied at the start; NULL: none */
    const char *metric; /* whose last value is the score */
    double limit_s; /* it is stopped after this long, and has failed; 0: never */
    double grace_s; /* between SIGTERM and SIGKILL */
    bool echo; /* pass its output on to our stderr */
    bool needs_step; /* the study's cost is its steps: without one the run has failed */
    bool own_cost; /* it is what the program reports, in a unit of its own: without it the run has failed */
};

struct program_report {
    double step; /* as reported; without that the number of the report, from 1 */
    double cost; /* so far: as reported, else seconds since its start */
    double wall_s; /* since its start: as reported, unless the cost has a unit of its own */
    struct metric_line line;
};

enum program_outcome { PROGRAM_DONE, PROGRAM_STOPPED, PROGRAM_FAILED };
const char *program_outcome_name(enum program_outcome outcome); /* as of a trial: done, stopped, failed */

struct program_end {
    enum program_outcome outcome;
    char reason[600]; /* why it failed; "": it did not */
    bool not_started; /* it failed since there is no such program here, or no such folder */
    double score; /* NaN: none */
    double cost, wall_s; /* cost: as reported last, else wall_s */
    bool cost_reported;
    int64_t step; /* of the last report */
    char last_lines[OUTPUT_LAST_BYTES + 1]; /* of its output, printable */
};

struct program_run;
enum status program_run_start(struct program_run **ret_run, const struct program_job *job, struct error *err) MUST_USE;
/* Waits at most timeout_ms for anything to happen. True: the program and all that it started has ended. */
bool program_run_wait(struct program_run *run, int timeout_ms);
/* The next report, oldest first; false: none. Of more than a few each second some are left out, never the last one. */
bool program_run_report(struct program_run *run, struct program_report *ret_report);
/* SIGTERM to its process group, after grace_s SIGKILL to all that it started. Again: nothing. */
void program_run_stop(struct program_run *run);
/* After program_run_wait gave true. */
void program_run_end(const struct program_run *run, struct program_end *ret_end);
void program_run_destroy(struct program_run *run); /* NULL is fine */
