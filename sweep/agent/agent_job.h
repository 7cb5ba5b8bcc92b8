/* agent_job.h - one slot of an agent: its thread asks for trials and sends reports and results; the agent's main thread
 * runs the program. What both use is guarded by lock. */
#pragma once

#include "base/text/json.h"
#include "base/rng.h"
#include "sweep/agent/agent_settings.h"

struct ask_client;
struct program_run;

#define AGENT_REPORTS_MAX 1024 /* that wait for the server or the store */

enum job_state {
    JOB_ASKS, /* the thread's: no trial */
    JOB_GIVEN, /* main: is to start the program of answer */
    JOB_RUNS, /* main: the program runs; the thread reports */
    JOB_ENDED, /* the thread's: it sends the result */
    JOB_OVER /* nobody's: the thread has ended, or is about to */
};

struct agent_job {
    const struct agent_settings *set;
    const struct agent_slot *slot;
    struct ask_client *client; /* the thread's, like rng */
    struct rng rng;
    double kept_s; /* when its lease was asked for, or kept, last (clock_boot_s); the thread's */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum job_state state;
    bool quit; /* give the trial back, ask for no other */
    bool stop; /* the program is to end */
    bool held; /* no trial may be asked for: there is nothing that could train it now */
    cJSON *device; /* what is asked with: the device that is there; NULL: nothing; owned */
    char stop_why[ERROR_TEXT_MAX]; /* with stop: the study's reason; "": the trial is to continue elsewhere */
    cJSON *answer; /* of ask, until the result is reported; owned */
    cJSON *reports; /* a list that waits; owned */
    cJSON *result; /* the body of the trial's `tell` request; owned */
    struct error err; /* why it is over; ST_OK: the study has ended */

    struct program_run *run; /* main's, like seq */
    int64_t seq; /* of the next report */
};

/* A job that could not be started is over, and agent_jobs_free counts it. */
enum status agent_job_start(struct agent_job *job, const struct agent_settings *set, const struct agent_slot *slot,
                            uint64_t seed, struct http_cancel *cancel, struct error *err) MUST_USE;
const char *agent_job_token(const struct agent_job *job); /* of the lease of its trial */
/* A number of the answer of ask: "trial", "attempt", "seed"; 0: it has none. */
int64_t agent_job_number(const struct agent_job *job, const char *key);
/* With the lock. A report waits to be sent (takes body; its lease is added), and past AGENT_REPORTS_MAX the oldest is
 * dropped. */
void agent_job_report(struct agent_job *job, cJSON *body);
/* With the lock. The trial has ended on this side, and the thread sends the result, which it takes. */
void agent_job_end(struct agent_job *job, cJSON *result);
/* All n, whose requests share cancel, give their trials back and ask for no others; what they still send is cut off
 * after some seconds. */
void agent_jobs_quit(struct agent_job *jobs, size_t n, struct http_cancel *cancel);
/* Have their threads ended? The first failure becomes *err, where there is none yet. */
bool agent_jobs_are_over(struct agent_job *jobs, size_t n, struct error *err);
/* Waits for the threads, which agent_jobs_quit was called for or which are over. */
void agent_jobs_free(struct agent_job *jobs, size_t n_started);
