/* agent_job.h - one slot of an agent: its thread asks, reports and tells; the agent's main thread runs the program. What
 * both use is guarded by lock. */
#ifndef SWEEP_AGENT_AGENT_JOB_H
#define SWEEP_AGENT_AGENT_JOB_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "base/rng.h"
#include "base/status.h"
#include "sweep/agent/agent_settings.h"

struct ask_client;
struct program_run;

enum job_state {
    JOB_ASKS, /* the thread's: no trial */
    JOB_GIVEN, /* main: is to start the program of answer */
    JOB_RUNS, /* main: the program runs; the thread reports */
    JOB_ENDED, /* the thread's: it tells result */
    JOB_OVER /* nobody's: the thread has ended, or is about to */
};

struct agent_job {
    const struct agent_settings *set;
    const struct agent_slot *slot;
    struct ask_client *client; /* the thread's, like rng */
    struct rng rng;
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
    cJSON *result; /* the body of tell; owned */
    struct error err; /* why it is over; ST_OK: the study has ended */

    struct program_run *run; /* main's, like seq */
    int64_t seq; /* of the next report */
};

enum status agent_job_start(struct agent_job *job, const struct agent_settings *set, const struct agent_slot *slot,
                            uint64_t seed, struct http_cancel *cancel, struct error *err) MUST_USE;
const char *agent_job_token(const struct agent_job *job); /* of the lease of its trial */
/* A number of the answer of ask: "trial", "attempt", "seed"; 0: it has none. */
int64_t agent_job_number(const struct agent_job *job, const char *key);
void agent_job_join(struct agent_job *job); /* after JOB_OVER or job->quit; a zeroed one is fine */

#endif
