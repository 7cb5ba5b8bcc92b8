/* agent.c - the main thread of `trawl agent`: starts a program for each trial that a slot's thread was given, listens
 * to it, stops it, and hands its result to that thread. It never waits for the network. */
#include "sweep/agent/agent.h"

#include "study/program/program_command.h"
#include "sweep/agent/agent_job.h"
#include "sweep/agent/agent_settings.h"
#include "sweep/agent/agent_words.h"
#include "sweep/program/program_run.h"
#include "sweep/program/trial_program.h"
#include "sweep/signals.h"

#define LOOK_NS 20000000

struct agent {
    const struct agent_settings *set;
    struct agent_job *jobs; /* (n_slots) */
    struct http_cancel cancel;
    struct program_report *report; /* room for one */
    bool quitting;
    struct error err;
};

static bool has_unit(const struct agent_job *job, const char *wanted)
{
    const char *unit = json_get_str(job->answer, "cost_unit");

    return unit != NULL && strcmp(unit, wanted) == 0;
}

static bool counts_steps(const struct agent_job *job)
{
    return has_unit(job, "steps");
}

static cJSON *result_of(const struct agent_job *job, const char *state, const char *reason)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "lease", agent_job_token(job));
    json_add_str(json, "state", state);
    if (reason != NULL && reason[0] != '\0')
        json_add_str(json, "reason", reason);
    return json;
}

static enum status start_program(struct agent *a, struct agent_job *job, struct error *err)
{
    const struct agent_settings *set = a->set;
    const char *ini = json_get_str(job->answer, "ini"), *metric = json_get_str(job->answer, "metric");
    struct trial_folder folder = {.config = ini != NULL ? ini : "",
                                  .study = set->study,
                                  .number = agent_job_number(job, "trial"),
                                  .attempt = agent_job_number(job, "attempt"),
                                  .seed = agent_job_number(job, "seed"),
                                  .env = json_get_str(job->answer, "env"),
                                  .gpu = job->slot->gpu};
    struct program_job start = {.directory = ".",
                                .metric = metric != NULL ? metric : "score",
                                .limit_s = set->limit_s,
                                .grace_s = set->grace_s,
                                .needs_step = counts_steps(job),
                                .own_cost = has_unit(job, "own")};
    struct trial_place *place = NULL;
    char dir[PATH_MAX], **argv = NULL;

    snprintf(dir, sizeof dir, "%.*s/%lld", PATH_MAX - 32, set->dir, (long long)folder.number);
    folder.dir = dir;
    TRY(trial_place_make(&place, &folder, err));
    const struct program_place words = {.config = trial_place_config(place),
                                        .dir = trial_place_dir(place),
                                        .study = set->study,
                                        .env = folder.env,
                                        .trial = folder.number,
                                        .seed = folder.seed};
    enum status rc = agent_words(set->words, set->n_words, job->answer, &words, &argv, err);
    if (rc == ST_OK) {
        start.argv = argv;
        rc = trial_place_start(place, &start, &job->run, err);
    }
    program_argv_free(argv);
    trial_place_free(place);
    return rc;
}

/* With the lock. What no trial can be started with, a command that fits none or a program that is not here, ends the
 * agent: its trial is for others. */
static void begin(struct agent *a, struct agent_job *job)
{
    long long number = (long long)agent_job_number(job, "trial");
    struct error why = {0};
    enum status rc = job->stop ? ST_INTERRUPTED : start_program(a, job, &why);

    job->seq = 1000 * clock_utc_ms(); /* above those of an agent before this one */
    if (rc == ST_OK) {
        log_info("%s: trial %lld starts", job->slot->client, number);
        job->state = JOB_RUNS;
        return;
    }
    if (rc == ST_USAGE || rc == ST_IO) {
        (void)FAIL(&a->err, rc, "%s", why.text);
        agent_job_end(job, result_of(job, "queued", NULL));
    } else {
        agent_job_end(job, result_of(job, rc == ST_INTERRUPTED ? "queued" : "failed", why.text));
    }
}

/* With the lock. */
static void add_report(struct agent_job *job, const struct program_report *r)
{
    cJSON *body = cJSON_CreateObject(), *metrics = cJSON_CreateObject();

    json_add_i64(body, "step", (int64_t)r->step);
    if (!counts_steps(job))
        json_add_f64(body, "cost", r->cost);
    json_add_i64(body, "seq", job->seq++);
    for (size_t i = 0; i < r->line.n; i++)
        if (isfinite(r->line.metrics[i].value))
            json_add_f64_any(metrics, r->line.metrics[i].name, r->line.metrics[i].value);
    json_add(body, "metrics", metrics);
    agent_job_report(job, body);
}

static cJSON *end_result(const struct agent *a, const struct agent_job *job, const struct program_end *end)
{
    bool given_back = (end->outcome == PROGRAM_STOPPED && a->quitting) || end->not_started;
    cJSON *json = result_of(job, given_back ? "queued" : program_outcome_name(end->outcome), end->reason);

    if (given_back)
        return json;
    if (isfinite(end->score))
        json_add_f64(json, "score", end->score);
    if (!counts_steps(job) && (end->cost_reported || !has_unit(job, "own")))
        json_add_f64(json, "cost", end->cost);
    json_add_i64(json, "step", end->step);
    if (end->outcome == PROGRAM_FAILED && end->last_lines[0] != '\0')
        json_add_str(json, "log", end->last_lines);
    return json;
}

/* With the lock. */
static void finish(struct agent *a, struct agent_job *job)
{
    MEM_LOCAL struct program_end *end = mem_alloc(sizeof *end);

    program_run_end(job->run, end);
    program_run_destroy(job->run);
    job->run = NULL;
    cJSON *result = end_result(a, job, end);
    double score = json_f64_or(result, "score", NAN);
    log_info("%s: trial %lld %s%s%.300s, score %.6g, cost %.4g", job->slot->client,
             (long long)agent_job_number(job, "trial"), json_get_str(result, "state"),
             end->reason[0] != '\0' ? ": " : "", end->reason, score, end->cost);
    if (end->not_started)
        (void)FAIL(&a->err, ST_IO, "%s", end->reason);
    agent_job_end(job, result);
}

static void step(struct agent *a, struct agent_job *job)
{
    pthread_mutex_lock(&job->lock);
    if (job->state == JOB_GIVEN)
        begin(a, job);
    if (job->state == JOB_RUNS) {
        bool ended = program_run_wait(job->run, 0);
        while (program_run_report(job->run, a->report))
            add_report(job, a->report);
        if (ended)
            finish(a, job);
        else if (job->stop)
            program_run_stop(job->run);
    }
    pthread_mutex_unlock(&job->lock);
}

enum status agent_run(const struct agent_settings *set, struct error *err)
{
    struct agent a = {.set = set};
    bool interrupted = false;
    enum status rc = ST_OK;
    size_t n = 0;

    a.jobs = mem_array(set->n_slots, sizeof *a.jobs);
    a.report = mem_alloc(sizeof *a.report);
    for (; rc == ST_OK && n < set->n_slots; n++)
        rc = agent_job_start(&a.jobs[n], set, &set->slots[n], (uint64_t)clock_utc_ms() + ((uint64_t)getpid() << 32) + n,
                             &a.cancel, err);
    a.quitting = rc != ST_OK;
    if (a.quitting)
        agent_jobs_quit(a.jobs, n, &a.cancel);
    while (!agent_jobs_are_over(a.jobs, n, &a.err)) {
        interrupted = interrupted || signals_stop();
        if (!a.quitting && (interrupted || a.err.status != ST_OK)) {
            a.quitting = true;
            agent_jobs_quit(a.jobs, n, &a.cancel);
        }
        for (size_t i = 0; i < n; i++)
            step(&a, &a.jobs[i]);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
    }
    agent_jobs_free(a.jobs, n);
    mem_free(a.report);
    if (rc == ST_OK && a.err.status != ST_OK)
        rc = FAIL(err, a.err.status, "agent: %s", a.err.text);
    return rc == ST_OK && interrupted ? FAIL(err, ST_INTERRUPTED, "stopped; trials that ran are given back") : rc;
}
