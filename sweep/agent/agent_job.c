/* agent_job.c - the thread of a slot: everything that waits for the network.
 * Invariants: (1) a result is in the spool before the study gets it, and leaves it when it is acknowledged; (2) while
 * the server cannot be reached the program runs on: its reports wait, the oldest are dropped; (3) whatever is sent may
 * be sent again. */
#include "sweep/agent/agent_job.h"

#include "sweep/agent/spool.h"
#include "web/http/http.h"

#define BACKOFF_MAX 2 /* 2^2 s between two tries at most: the device is idle meanwhile */
#define LAST_TRIES_S 10 /* for a result, once the agent is to end */
#define LAST_CALLS_S 12 /* until the last requests are cut off then */
#define BEATS 3 /* reports in the time that a lease lasts */

/* Waits until something changes, or for this time. With the lock. */
static void wait_for(struct agent_job *job, double seconds)
{
    struct timespec until = clock_timespec(clock_mono_s() + seconds);

    (void)pthread_cond_timedwait(&job->changed, &job->lock, &until);
}

/* False: the agent is to end. */
static bool pause_for(struct agent_job *job, double seconds)
{
    double end_s = clock_mono_s() + seconds;

    pthread_mutex_lock(&job->lock);
    while (!job->quit && clock_mono_s() < end_s)
        wait_for(job, end_s - clock_mono_s());
    bool quit = job->quit;
    pthread_mutex_unlock(&job->lock);
    return !quit;
}

static double backoff_s(struct agent_job *job, int attempt, double wait_s)
{
    return http_backoff_s(&job->rng, attempt < BACKOFF_MAX ? attempt : BACKOFF_MAX, wait_s);
}

static void note_trouble(struct agent_job *job, int attempt, const char *text)
{
    if (attempt == 0)
        log_warn("%s: %s; trying again", job->slot->client, text);
}

static void over(struct agent_job *job, enum status rc, const char *text)
{
    pthread_mutex_lock(&job->lock);
    job->state = JOB_OVER;
    if (rc != ST_OK)
        (void)FAIL(&job->err, rc, "%s", text);
    pthread_mutex_unlock(&job->lock);
}

/* -- ask -- */

/* What is asked with, once a trial may be asked for; NULL: the agent is to end. */
static cJSON *ask_body(struct agent_job *job)
{
    cJSON *body = NULL;

    pthread_mutex_lock(&job->lock);
    while (job->held && !job->quit)
        wait_for(job, 1);
    if (!job->quit) {
        body = cJSON_CreateObject();
        json_add_str(body, "client", job->slot->client);
        if (job->device != NULL)
            json_add(body, "device", cJSON_Duplicate(job->device, true));
    }
    pthread_mutex_unlock(&job->lock);
    return body;
}

/* True: there is a trial, and it is the main thread's. */
static bool ask(struct agent_job *job)
{
    cJSON *body = NULL, *answer = NULL;
    char text[ERROR_TEXT_MAX];
    bool given = false, goes_on = true;
    double wait_s;

    for (int attempt = 0; goes_on && !given;) {
        cJSON_Delete(body);
        if ((body = ask_body(job)) == NULL)
            return false;
        job->kept_s = clock_boot_s();
        enum ask_outcome outcome = ask_client_call(job->client, "ask", -1, body, &answer, &wait_s, text);
        if (outcome == ASK_REFUSED || outcome == ASK_DENIED) {
            over(job, ST_USAGE, text);
            goes_on = false;
        } else if (outcome == ASK_AGAIN) {
            note_trouble(job, attempt, text);
            goes_on = pause_for(job, backoff_s(job, attempt++, wait_s));
        } else if (cJSON_IsNumber(json_get(answer, "trial"))) {
            given = true;
        } else {
            const char *state = json_get_str(answer, "state");
            attempt = 0;
            goes_on = state == NULL || strcmp(state, "ended") != 0;
            if (!goes_on && job->slot == &job->set->slots[0])
                log_info("the study %s has ended: %s", job->set->study,
                         json_get_str(answer, "reason") != NULL ? json_get_str(answer, "reason") : "no trial is left");
            if (!json_get_f64(answer, "wait_s", &wait_s) || !(wait_s >= 0.01 && wait_s <= 60))
                wait_s = 1;
            goes_on = goes_on && pause_for(job, wait_s);
            cJSON_Delete(answer);
            answer = NULL;
        }
    }
    cJSON_Delete(body);
    if (!given)
        return false;
    pthread_mutex_lock(&job->lock);
    job->answer = answer;
    job->stop = job->quit;
    job->stop_why[0] = '\0';
    job->state = JOB_GIVEN;
    pthread_mutex_unlock(&job->lock);
    return true;
}

/* -- report -- */

int64_t agent_job_number(const struct agent_job *job, const char *key)
{
    int64_t number = json_i64_or(job->answer, key, 0);
    return number;
}

static int64_t trial_of(const struct agent_job *job)
{
    return agent_job_number(job, "trial");
}

const char *agent_job_token(const struct agent_job *job)
{
    return json_get_str(json_get(job->answer, "lease"), "token");
}

static double beat_s(const struct agent_job *job)
{
    double seconds = json_f64_or(json_get(job->answer, "lease"), "seconds", 60);
    return fmax(seconds / BEATS, 0.2);
}

/* by_study: that is how the trial ends; else another has it. */
static void ask_stop(struct agent_job *job, const char *why, bool by_study)
{
    pthread_mutex_lock(&job->lock);
    if (!job->stop) {
        log_info("%s: trial %lld is to stop: %s", job->slot->client, (long long)trial_of(job), why);
        snprintf(job->stop_why, sizeof job->stop_why, "%s", by_study ? why : "");
    }
    job->stop = true;
    pthread_mutex_unlock(&job->lock);
}

static void take_report_answer(struct agent_job *job, const cJSON *answer)
{
    const char *reason = json_get_str(answer, "reason");
    bool stop = false;

    if (json_get_bool(answer, "stop", &stop) && stop)
        ask_stop(job, reason != NULL ? reason : "the study asks for it", true);
}

/* One try. False: it was not answered. */
static bool report(struct agent_job *job, const cJSON *body, double *ret_wait_s, char *text)
{
    cJSON *answer = NULL;

    switch (ask_client_call(job->client, "report", trial_of(job), body, &answer, ret_wait_s, text)) {
    case ASK_DONE:
        take_report_answer(job, answer);
        cJSON_Delete(answer);
        return true;
    case ASK_REFUSED: /* it is not ours any more */
        ask_stop(job, text, false);
        return true;
    case ASK_DENIED:
    case ASK_AGAIN:
        break;
    }
    return false;
}

/* Sends what waits, and a sign of life now and then, until the program has ended. After a suspension it is due at once:
 * the lease does not stand still. */
static void report_until_end(struct agent_job *job)
{
    double wait_s = 0, retry_s = 0;
    char text[ERROR_TEXT_MAX];
    int attempt = 0;

    pthread_mutex_lock(&job->lock);
    while (job->state != JOB_ENDED) {
        double now_s = clock_boot_s(), next_s = job->kept_s + beat_s(job);
        bool waits = cJSON_GetArraySize(job->reports) > 0;
        if (now_s < retry_s || (!waits && now_s < next_s)) {
            wait_for(job, fmin(fmax(retry_s, waits ? 0 : next_s) - now_s, 1));
            continue;
        }
        cJSON *body = waits ? cJSON_DetachItemFromArray(job->reports, 0) : cJSON_CreateObject();
        pthread_mutex_unlock(&job->lock);
        if (!waits)
            json_add_str(body, "lease", agent_job_token(job));
        bool answered = report(job, body, &wait_s, text);
        if (answered) {
            attempt = 0;
            job->kept_s = now_s;
        } else {
            note_trouble(job, attempt, text);
            retry_s = clock_boot_s() + fmin(backoff_s(job, attempt++, wait_s), beat_s(job));
        }
        pthread_mutex_lock(&job->lock);
        if (!answered && waits) {
            cJSON_InsertItemInArray(job->reports, 0, body);
            body = NULL;
        }
        cJSON_Delete(body);
    }
    pthread_mutex_unlock(&job->lock);
}

/* What the program reported last, as far as the server can be reached. */
static void send_rest(struct agent_job *job)
{
    char text[ERROR_TEXT_MAX];
    double wait_s;
    cJSON *body;

    while ((body = cJSON_DetachItemFromArray(job->reports, 0)) != NULL) { /* the main thread is done with the trial */
        bool answered = report(job, body, &wait_s, text);
        cJSON_Delete(body);
        if (!answered)
            break;
    }
}

/* -- results -- */

/* The result in path is sent until it is acknowledged; what is refused is kept for a person. */
static void send_result(struct agent_job *job, int64_t trial, const cJSON *body, const char *path)
{
    double give_up_s = INFINITY, wait_s;
    char text[ERROR_TEXT_MAX];
    cJSON *answer = NULL;

    for (int attempt = 0;; attempt++) {
        enum ask_outcome outcome = ask_client_call(job->client, "tell", trial, body, &answer, &wait_s, text);
        if (outcome == ASK_DONE) {
            bool late = false;
            spool_done(path);
            if (json_get_bool(answer, "late", &late) && late)
                log_warn("%s: the result of trial %lld came too late and is not counted; the server keeps it",
                         job->slot->client, (long long)trial);
            if (json_get_str(answer, "warning") != NULL)
                log_warn("%s: trial %lld: %s", job->slot->client, (long long)trial, json_get_str(answer, "warning"));
            cJSON_Delete(answer);
            return;
        }
        if (outcome == ASK_REFUSED) {
            spool_refused(path);
            log_warn("%s: the result of trial %lld is refused, and kept as %s.refused: %s", job->slot->client,
                     (long long)trial, path, text);
            return;
        }
        note_trouble(job, attempt, text);
        if (!pause_for(job, backoff_s(job, attempt, wait_s))) {
            if (isinf(give_up_s))
                give_up_s = clock_mono_s() + LAST_TRIES_S;
            if (clock_mono_s() > give_up_s) {
                log_warn("%s: the result of trial %lld waits in %s; the next `trawl agent` of this study sends it",
                         job->slot->client, (long long)trial, path);
                return;
            }
            nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
        }
    }
}

/* The result is on the disk before anything else is sent, for which the network may be needed. */
static void keep_result(struct agent_job *job, char *ret_path)
{
    const struct ask_place *place = &job->set->place;
    struct error why = {0};

    if (spool_put(job->set->spool, place->url[0] != '\0' ? place->url : place->store, job->set->study, trial_of(job),
                  job->result, ret_path, &why) == ST_OK)
        return;
    log_warn("%s; the result of trial %lld is reported all the same", why.text, (long long)trial_of(job));
    ret_path[0] = '\0';
}

static void end_trial(struct agent_job *job, const char *path)
{
    send_result(job, trial_of(job), job->result, path);
    pthread_mutex_lock(&job->lock);
    cJSON_Delete(job->result);
    cJSON_Delete(job->answer);
    cJSON_Delete(job->reports);
    job->result = job->answer = NULL;
    job->reports = cJSON_CreateArray();
    if (job->state != JOB_OVER)
        job->state = JOB_ASKS;
    pthread_mutex_unlock(&job->lock);
}

/* Results that an earlier agent left are reported first. */
static void send_left(struct agent_job *job)
{
    const struct ask_place *place = &job->set->place;
    struct spooled *list = NULL;
    struct error why = {0};
    size_t n = 0;

    if (spool_list(job->set->spool, place->url[0] != '\0' ? place->url : place->store, job->set->study, &list, &n,
                   &why) != ST_OK)
        log_warn("%s, continuing", why.text);
    for (size_t i = 0; i < n; i++)
        send_result(job, list[i].trial, list[i].body, list[i].path);
    spool_list_free(list, n);
}

static void *talk(void *ctx)
{
    struct agent_job *job = ctx;

    if (job->slot == &job->set->slots[0])
        send_left(job);
    while (ask(job)) {
        char path[PATH_MAX];
        report_until_end(job);
        keep_result(job, path);
        send_rest(job);
        end_trial(job, path);
        pthread_mutex_lock(&job->lock);
        bool quit = job->quit;
        pthread_mutex_unlock(&job->lock);
        if (quit)
            break;
    }
    over(job, ST_OK, "");
    return NULL;
}

enum status agent_job_start(struct agent_job *job, const struct agent_settings *set, const struct agent_slot *slot,
                            uint64_t seed, struct http_cancel *cancel, struct error *err)
{
    int code;

    *job = (struct agent_job){
        .set = set, .slot = slot, .reports = cJSON_CreateArray(), .rng = rng_seed(seed), .held = set->place.direct};
    pthread_mutex_init(&job->lock, NULL);
    clock_cond_init(&job->changed);
    enum status rc = ask_client_create(&job->client, &set->place, set->study, cancel, err);
    if (rc == ST_OK && (code = pthread_create(&job->thread, NULL, talk, job)) != 0)
        rc = FAIL(err, ST_IO, "cannot start a thread for %s: %s", slot->client, strerror(code));
    job->has_thread = rc == ST_OK;
    if (rc != ST_OK)
        job->state = JOB_OVER; /* no thread ends it */
    return rc;
}

void agent_job_report(struct agent_job *job, cJSON *body)
{
    json_add_str(body, "lease", agent_job_token(job));
    cJSON_AddItemToArray(job->reports, body);
    if (cJSON_GetArraySize(job->reports) > AGENT_REPORTS_MAX)
        cJSON_DeleteItemFromArray(job->reports, 0);
    pthread_cond_signal(&job->changed);
}

void agent_job_end(struct agent_job *job, cJSON *result)
{
    job->result = result;
    job->state = JOB_ENDED;
    pthread_cond_signal(&job->changed);
}

void agent_jobs_quit(struct agent_job *jobs, size_t n, struct http_cancel *cancel)
{
    atomic_store(&cancel->deadline_ms, (int64_t)(1000 * (clock_mono_s() + LAST_CALLS_S)));
    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&jobs[i].lock);
        jobs[i].quit = jobs[i].stop = true;
        jobs[i].stop_why[0] = '\0';
        pthread_cond_broadcast(&jobs[i].changed);
        pthread_mutex_unlock(&jobs[i].lock);
    }
}

bool agent_jobs_are_over(struct agent_job *jobs, size_t n, struct error *err)
{
    size_t n_over = 0;

    for (size_t i = 0; i < n; i++) {
        pthread_mutex_lock(&jobs[i].lock);
        n_over += jobs[i].state == JOB_OVER;
        if (err->status == ST_OK && jobs[i].err.status != ST_OK)
            *err = jobs[i].err;
        pthread_mutex_unlock(&jobs[i].lock);
    }
    return n_over == n;
}

void agent_jobs_free(struct agent_job *jobs, size_t n_started)
{
    for (size_t i = 0; i < n_started; i++) {
        struct agent_job *job = &jobs[i];
        if (job->has_thread)
            pthread_join(job->thread, NULL);
        ask_client_destroy(job->client);
        cJSON_Delete(job->answer);
        cJSON_Delete(job->reports);
        cJSON_Delete(job->result);
        cJSON_Delete(job->device);
    }
    mem_free(jobs);
}
