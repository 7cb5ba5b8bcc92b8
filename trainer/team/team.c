/* team.c - several devices train one policy (train.devices): a rank for each, with a trainer, a device and a thread of
 * its own. Ranks of other hosts have a team there, which does what this one is asked for (hosts.h). Each rank plays its
 * share of the agents and takes its share of every minibatch out of them; what one device computes over all of them
 * (gradient, advantages' mean and deviation, statistics, what observations and rewards are normalised by, logs) the
 * ranks exchange within their operations (kern_ops->exchange), so each rank makes the same step.
 *
 * The caller's thread uses rank 0's trainer between calls, and hands the ranks one function at a time, which it waits
 * for. While it waits it looks for a rank that the others wait for in vain: such a rank is named, the others are let
 * go, and the team is lost: nothing of it is freed, since the thread that hangs may still use it (kern_is_lost).
 * Invariants: (1) ranks run the same functions in the same order, so that their exchanges meet; (2) a failure that not
 * all ranks have ends the team: there is no further function but the last one, which frees; (3) the team's lock is held
 * for short, and within it at most that of struct kern_ranks. */
#include "trainer/trainer_priv.h"
#include "trainer/team/hosts.h"

#include "base/os/pool.h"

#include <signal.h>

#define LOOK_S 0.1 /* how often it is looked for a rank that hangs */
#define STEP_MAX_S 0.5 /* of a wait that one look adds: time in which the process stood still is not a wait */
#define FIRST_HOST_S 2.0 /* that the first host gets to name the host for which it waits */
#define LET_GO_S 2.0 /* that ranks get to come back after they were let go */

struct rank;
typedef enum status team_fn(void *ctx, struct rank *rank, struct error *err);

struct rank {
    struct team *team;
    size_t index; /* among the ranks of all hosts */
    pthread_t thread;
    struct kern *kern; /* owned, but for the first one's */
    bool joined; /* the others, by its kern */
    struct trainer *t;
    /* of the function that was handed over last */
    bool done;
    bool let_go; /* it failed because another rank did */
    enum status rc;
    struct error err;
    double waited_s; /* the caller's: for how long the rank has been waiting for others, or done */
};

struct team {
    size_t n; /* ranks of this process, */
    size_t n_all, first; /* and of all, and the first one here */
    struct train_hosts *hosts; /* borrowed; NULL: there is no other process */
    const struct host_call *call; /* what the other hosts do meanwhile; NULL: nothing */
    struct kern_ranks *meeting;
    double timeout_s;
    pthread_mutex_t lock; /* guards what follows, and done, rc and err of ranks */
    pthread_cond_t handed, ended;
    team_fn *fn;
    void *ctx;
    bool meets; /* within the function ranks wait for each other */
    uint64_t n_handed;
    size_t n_done, n_failed, first_failed; /* first_failed: where n_failed > 0 */
    bool quit;
    bool opened; /* devices have been given work */
    bool over, lost; /* no more functions; a thread does not come back, or the devices are of no use */
    struct error why; /* it is over */
    struct rank ranks[];
};

/* ---- a rank's thread ---- */

static void rank_call(struct rank *r, team_fn *fn, void *ctx)
{
    struct team *team = r->team;
    struct error err = {0};
    enum status rc = fn(ctx, r, &err);

    pthread_mutex_lock(&team->lock);
    r->let_go = rc == ST_OK && team->meets && kern_ranks_aborted(team->meeting);
    if (r->let_go)
        rc = FAIL(&err, ST_DEVICE, "another rank failed%s%s", kern_ranks_why(team->meeting)[0] != '\0' ? ": " : "",
                  kern_ranks_why(team->meeting));
    r->rc = rc;
    r->err = err;
    r->done = true;
    if (rc != ST_OK && team->n_failed++ == 0)
        team->first_failed = (size_t)(r - team->ranks);
    if (rc != ST_OK && rc != ST_NUMERIC && team->meets) /* the others may wait for it */
        kern_ranks_abort(team->meeting);
    team->n_done++;
    pthread_cond_signal(&team->ended);
    pthread_mutex_unlock(&team->lock);
}

static void *rank_main(void *arg)
{
    struct rank *r = (struct rank *)arg;
    struct team *team = r->team;
    uint64_t n_called = 0;
    team_fn *fn;
    void *ctx;

    for (;;) {
        pthread_mutex_lock(&team->lock);
        while (team->n_handed == n_called && !team->quit)
            pthread_cond_wait(&team->handed, &team->lock);
        fn = team->n_handed == n_called ? NULL : team->fn;
        ctx = team->ctx;
        n_called = team->n_handed;
        pthread_mutex_unlock(&team->lock);
        if (fn == NULL)
            return NULL;
        rank_call(r, fn, ctx);
    }
}

/* ---- a function for all of them ---- */

static bool rank_waits(const struct team *team, const struct rank *r)
{
    return r->done || kern_ranks_waited_s(team->meeting, r->index) > 0.0;
}

/* With the lock held: brings the ranks' waits up to date; true: one of them has waited too long for others. Where all
 * ranks of a host that follows wait, the first host has longer: it waits too, and knows for which host. */
static bool waits_look(struct team *team, double passed_s)
{
    bool all_wait = true;
    double longest_s = 0.0;

    passed_s = passed_s < STEP_MAX_S ? passed_s : STEP_MAX_S;
    for (size_t i = 0; i < team->n; i++) {
        struct rank *r = &team->ranks[i];
        double now_s = r->done ? r->waited_s + passed_s : kern_ranks_waited_s(team->meeting, r->index);
        double sum_s = r->waited_s + passed_s;
        r->waited_s = sum_s < now_s ? sum_s : now_s;
        longest_s = r->waited_s > longest_s ? r->waited_s : longest_s;
        all_wait = all_wait && rank_waits(team, r);
    }
    return longest_s > team->timeout_s + (all_wait && team->hosts != NULL && team->hosts->own > 0 ? FIRST_HOST_S : 0.0);
}

/* With the lock held: names the ranks that the others wait for. */
static void hang_text(struct team *team, char *text, size_t size)
{
    size_t n_hung = 0, used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < team->n && used < size; i++)
        if (!rank_waits(team, &team->ranks[i]))
            used += (size_t)snprintf(text + used, size - used, "%s%zu", n_hung++ > 0 ? " and " : "rank ",
                                     team->ranks[i].index);
    if (n_hung == 0 && team->hosts != NULL)
        hosts_missing_text(team->hosts, kern_ranks_awaited(team->meeting), text, size);
    if (n_hung == 0 && team->hosts != NULL)
        snprintf(text + strlen(text), size - strlen(text), " not come back");
    else if (n_hung == 0)
        snprintf(text, size, "no device of ranks 0 to %zu has finished anything", team->n - 1);
    else
        snprintf(text + used, size - used, " %s not come back", n_hung > 1 ? "have" : "has");
}

/* With the lock held: the other hosts' answers, and whether they are there; one that failed ends the waits here. */
static void hosts_watch(struct team *team)
{
    struct error why = {0};
    bool let_go = false;

    hosts_turn_away(team->hosts);
    if (team->call != NULL && team->why.status == ST_OK && hosts_look(team->hosts, 0, team->call, &why) != ST_OK)
        FAIL(&team->why, ST_DEVICE, "%s", why.text);
    if (team->call != NULL && team->why.status == ST_OK && hosts_failure(team->hosts, &why, &let_go) &&
        why.status != ST_NUMERIC) {
        team->why = why;
        team->hosts->let_go = let_go;
    }
    if (team->why.status != ST_OK)
        kern_ranks_abort(team->meeting);
}

/* With the lock held: waits for all ranks, or for those that come back once one is found to hang. */
static void team_wait(struct team *team)
{
    double last_s = clock_mono_s(), until_s = 0.0; /* until: 0 while nothing has failed */
    char hung[512];

    while (team->n_done < team->n && !(until_s > 0.0 && clock_mono_s() > until_s)) {
        struct timespec look = clock_timespec(clock_mono_s() + LOOK_S);
        (void)pthread_cond_timedwait(&team->ended, &team->lock, &look);
        double now_s = clock_mono_s();
        if (until_s == 0.0 && team->meets)
            hosts_watch(team);
        if (until_s == 0.0 && waits_look(team, now_s - last_s)) {
            hang_text(team, hung, sizeof hung);
            FAIL(&team->why, ST_DEVICE,
                 "%s for %.3g s, while the others of %zu waited (train.rank_timeout_s): a game or a device "
                 "hangs",
                 hung, team->timeout_s, team->n_all);
            kern_ranks_abort(team->meeting);
        }
        if (until_s == 0.0 && kern_ranks_aborted(team->meeting))
            until_s = now_s + LET_GO_S;
        last_s = now_s;
    }
    team->lost = team->lost || team->n_done < team->n;
}

/* With the lock held, after team_wait: the first failure, or of those that all have met the one that was found earliest
 * on the way of the numbers. */
static enum status team_result(struct team *team, struct error *err)
{
    struct rank *first = team->n_failed > 0 ? &team->ranks[team->first_failed] : NULL;
    struct error why = team->why; /* a hang */

    for (size_t i = 0; first != NULL && first->rc == ST_NUMERIC && team->n_done == team->n && i < team->n; i++)
        if (team->ranks[i].rc == ST_NUMERIC && team->ranks[i].t->n_looked < first->t->n_looked)
            first = &team->ranks[i];
    if (first != NULL && why.status == ST_OK && team->hosts != NULL)
        team->hosts->let_go = first->let_go;
    if (first != NULL)
        FAIL(&why, first->rc, "rank %zu of %zu: %s", first->index, team->n_all, first->err.text);
    if (kern_ranks_aborted(team->meeting)) {
        team->over = true;
        team->lost = team->lost || (team->opened && kern_kind(team->ranks[0].kern) != KERN_CPU); /* it waits for ever */
    }
    team->over = team->over || (team->n_failed > 0 && team->n_failed < team->n);
    if (team->over)
        team->why = why;
    if (team->lost)
        team->ranks[0].kern->lost = true;
    return why.status == ST_OK ? ST_OK : FAIL(err, why.status, "%s", why.text);
}

/* meets: fn exchanges something. */
static enum status team_run(struct team *team, team_fn *fn, void *ctx, bool meets, struct error *err)
{
    enum status rc;

    pthread_mutex_lock(&team->lock);
    for (size_t i = 0; i < team->n; i++) {
        struct rank *r = &team->ranks[i];
        r->done = false;
        r->rc = ST_OK;
        r->waited_s = 0.0;
    }
    team->n_done = team->n_failed = 0;
    team->meets = meets;
    team->fn = fn;
    team->ctx = ctx;
    team->n_handed++;
    pthread_cond_broadcast(&team->handed);
    team_wait(team);
    rc = team_result(team, err);
    pthread_mutex_unlock(&team->lock);
    return rc;
}

struct ranks_job {
    rank_fn *fn;
    void *ctx;
};

static enum status run_one(void *ctx, struct rank *r, struct error *err)
{
    const struct ranks_job *job = (const struct ranks_job *)ctx;

    return job->fn(job->ctx, r->t, err);
}

static enum status run_for_all(struct trainer *t, rank_fn *fn, void *ctx, bool meets, struct error *err)
{
    struct ranks_job job = {.fn = fn, .ctx = ctx};

    if (t->team == NULL)
        return fn(ctx, t, err);
    if (t->team->over)
        return FAIL(err, t->team->why.status, "training had ended: %s", t->team->why.text);
    return team_run(t->team, run_one, &job, meets, err);
}

enum status ranks_run(struct trainer *t, rank_fn *fn, void *ctx, struct error *err)
{
    return run_for_all(t, fn, ctx, false, err);
}

enum status ranks_meet(struct trainer *t, rank_fn *fn, void *ctx, struct error *err)
{
    return run_for_all(t, fn, ctx, true, err);
}

/* ---- the same on other hosts ---- */

static rank_fn rank_params;

static const struct {
    rank_fn *fn;
    bool meets;
} calls[] = {
    [RANK_ITERATE] = {rank_iterate_for, true},
    [RANK_SYNC] = {rank_sync_each, false},
    [RANK_PARAMS] = {rank_params, false},
    [RANK_JOIN_SUMS] = {rank_join_sums, true},
    [RANK_PACK] = {rank_pack, false},
    [RANK_LOAD] = {rank_load, false},
    [RANK_LOAD_WEIGHTS] = {rank_load_weights, false},
    [RANK_BEGIN_FROM] = {rank_begin_from, false},
    [RANK_NUMBERS] = {rank_numbers, false},
};

/* The hosts are not one training any more. lost: one of them is gone or silent. */
static enum status hosts_end(struct team *team, const struct error *why, bool lost, struct error *err)
{
    team->hosts->lost = lost;
    pthread_mutex_lock(&team->lock);
    team->over = true;
    team->lost = team->lost || (team->opened && kern_kind(team->ranks[0].kern) != KERN_CPU); /* NCCL waits for ever */
    team->ranks[0].kern->lost = team->ranks[0].kern->lost || team->lost;
    error_clear(&team->why);
    FAIL(&team->why, why->status, "%s", why->text);
    pthread_mutex_unlock(&team->lock);
    hosts_break(team->hosts);
    return FAIL(err, why->status, "%s", why->text);
}

/* Waits for the answers of the other hosts, for a while; why: of the first that failed or is missing. */
static enum status await_answers(struct team *team, double patience_s, struct error *why)
{
    double until_s = clock_mono_s() + patience_s;

    while (!hosts_have_answered(team->hosts)) {
        struct error gone = {0};
        if (hosts_look(team->hosts, LOOK_S, team->call, &gone) != ST_OK)
            return FAIL(why, ST_DEVICE, "%s", gone.text);
        if (clock_mono_s() > until_s && !hosts_have_answered(team->hosts)) {
            char missing[512];
            hosts_missing_text(team->hosts, -1, missing, sizeof missing);
            return FAIL(why, ST_DEVICE, "%s not answered for %.3g s (train.rank_timeout_s)", missing, patience_s);
        }
    }
    return ST_OK;
}

/* What the ranks here have done (rc, own) and what the others answer. That all fail alike, of a damaged file for
 * example, ends the call and not the training. */
static enum status settle(struct team *team, enum status rc, const struct error *own, struct error *err)
{
    struct error why = {0}, theirs = {0};
    bool aborted = kern_ranks_aborted(team->meeting), let_go = false;
    enum status awaited = await_answers(team, aborted ? LET_GO_S : team->timeout_s, &why);
    bool failed = hosts_failure(team->hosts, &theirs, &let_go), lost = awaited != ST_OK;

    if (rc == ST_OK && !lost && !failed)
        return ST_OK;
    if (rc != ST_OK && !team->hosts->let_go) {
        if (!aborted && !lost && failed)
            return FAIL(err, own->status, "%s", own->text);
        return hosts_end(team, own, lost, err);
    }
    if (failed && (!lost || !let_go))
        return hosts_end(team, &theirs, lost, err);
    return hosts_end(team, lost ? &why : own, lost, err);
}

/* call: what the other hosts have been asked for; fn: the same here. */
static enum status run_with_hosts(struct team *team, const struct host_call *call, team_fn *fn, void *ctx,
                                  struct error *err)
{
    struct error own = {0};

    team->call = call;
    enum status rc = team_run(team, fn, ctx, call->meets, &own);
    rc = settle(team, rc, &own, err);
    team->call = NULL;
    return rc;
}

/* Asks the other hosts, and waits for no answer. */
static enum status ask_hosts(struct team *team, const struct host_call *call, const char *text, const void *in,
                             struct error *err)
{
    struct error gone = {0}, why = {0};

    if (hosts_call(team->hosts, call, text, in, &gone) == ST_OK)
        return ST_OK;
    FAIL(&why, ST_DEVICE, "%s", gone.text);
    return hosts_end(team, &why, true, err);
}

enum status ranks_call(struct trainer *t, enum rank_call which, const struct rank_args *args, struct error *err)
{
    struct ranks_job job = {.fn = calls[which].fn, .ctx = (void *)(uintptr_t)args};
    struct host_call call = {.call = (int32_t)which,
                             .meets = calls[which].meets,
                             .text_bytes = args->text != NULL ? strlen(args->text) + 1 : 0,
                             .in_bytes = args->in_bytes,
                             .out_bytes = args->out_bytes};
    struct team *team = t->team;

    if (team == NULL || team->hosts == NULL || team->over)
        return run_for_all(t, job.fn, job.ctx, call.meets, err);
    TRY(ask_hosts(team, &call, args->text, args->in, err));
    TRY(run_with_hosts(team, &call, run_one, &job, err));
    hosts_take_out(team->hosts, args->out, args->out_bytes);
    return ST_OK;
}

/* ---- the same weights ---- */

static enum status rank_params(void *ctx, struct trainer *t, struct error *err)
{
    float *params = rank_out((const struct rank_args *)ctx, t);

    TRY(rank_sync(t, err));
    return kern_download(t->kern, params, t->params, t->policy.n_params * sizeof *params, err);
}

enum status ranks_compare(struct trainer *t, struct error *err)
{
    size_t n = t->policy.n_params;

    if (t->team == NULL)
        return ST_OK;
    MEM_LOCAL float *params = mem_try_array(t->n_ranks, n * sizeof *params);
    if (params == NULL)
        return FAIL(err, ST_NOMEM, "no memory to compare %zu weights of %zu ranks", n, t->n_ranks);
    enum status rc =
        ranks_call(t, RANK_PARAMS, &(struct rank_args){.out = params, .out_bytes = n * sizeof *params}, err);
    for (size_t r = 1; r < t->n_ranks && rc == ST_OK; r++)
        for (size_t i = 0; i < n && rc == ST_OK; i++)
            if (memcmp(&params[r * n + i], &params[i], sizeof *params) != 0)
                rc = FAIL(err, ST_DEVICE,
                          "rank %zu has weight %zu as %.9g, rank 0 as %.9g, after update %lld: devices that made the "
                          "same steps differ; one of them computes wrongly, or training has a fault",
                          r, i, (double)params[r * n + i], (double)params[i], (long long)t->count.updates);
    t->failed = t->failed || rc == ST_DEVICE;
    return rc;
}

/* ---- life ---- */

struct opening {
    const struct env_def *def;
    const void *env_settings;
    const struct policy_settings *policy;
    const struct train_settings *train;
};

static enum status open_rank(void *ctx, struct rank *r, struct error *err)
{
    const struct opening *o = (const struct opening *)ctx;
    const struct team *team = r->team;
    struct kern_settings settings = team->ranks[0].kern->settings;

    if (r != &team->ranks[0]) {
        settings.kind = kern_kind(team->ranks[0].kern); /* which auto may have found */
        settings.ordinal += (int)(r->index - team->first);
        TRY(kern_open(&r->kern, &settings, err));
    }
    TRY(kern_use(r->kern, err));
    TRY(kern_ranks_join(r->kern, team->meeting, r->index, err));
    r->joined = true;
    return rank_create(&r->t, NULL, r->kern, o->def, o->env_settings, o->policy, o->train, r->index, err);
}

static enum status close_rank(void *ctx, struct rank *r, struct error *err)
{
    (void)ctx, (void)err;
    trainer_free(r->t);
    if (r->joined)
        kern_ranks_leave(r->kern);
    if (r != &r->team->ranks[0])
        kern_close(r->kern);
    return ST_OK;
}

static void team_free(struct team *team)
{
    pthread_cond_destroy(&team->ended);
    pthread_cond_destroy(&team->handed);
    pthread_mutex_destroy(&team->lock);
    kern_ranks_destroy(team->meeting);
    mem_free(team);
}

/* Ends the first n threads. */
static void threads_end(struct team *team, size_t n)
{
    pthread_mutex_lock(&team->lock);
    team->quit = true;
    pthread_cond_broadcast(&team->handed);
    pthread_mutex_unlock(&team->lock);
    for (size_t i = 0; i < n; i++)
        pthread_join(team->ranks[i].thread, NULL);
}

static enum status threads_begin(struct team *team, struct error *err)
{
    sigset_t old;
    size_t n = 0;
    int code = 0;

    pool_block_signals(&old);
    for (; n < team->n && code == 0; n += code == 0) {
        code = pthread_create(&team->ranks[n].thread, NULL, rank_main, &team->ranks[n]);
        if (code == 0)
            (void)pthread_setname_np(team->ranks[n].thread, "trawl-rank");
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code == 0)
        return ST_OK;
    threads_end(team, n);
    return FAIL(err, ST_NOMEM, "cannot start thread %zu of %zu devices: %s; lower train.devices", n, team->n,
                strerror(code));
}

static enum status check_there(const struct kern *kern, size_t n, struct error *err)
{
    const struct kern_settings *s = &kern->settings;

    if (kern_kind(kern) != KERN_CUDA)
        return ST_OK;
    if (s->n_ordinals > 0 && n > (size_t)s->n_ordinals)
        return FAIL(err, ST_CONFIG,
                    "train.devices is %zu, and this worker has %d GPU%s; lower it, or give workers groups of that many "
                    "by sweep.devices, like cuda:0-%zu",
                    n, s->n_ordinals, s->n_ordinals == 1 ? "" : "s", n - 1);
    if ((size_t)s->ordinal + n > (size_t)kern_cuda_count())
        return FAIL(err, ST_CONFIG, "train.devices is %zu, from GPU %d on, and this process sees %d; lower it", n,
                    s->ordinal, kern_cuda_count());
    return ST_OK;
}

/* Without devices and threads. */
static struct team *team_new(size_t n_all, struct train_hosts *hosts, double timeout_s, struct kern *kern)
{
    const struct kern_span alone = {.n = n_all}, *span = hosts != NULL ? &hosts->span : &alone;
    struct team *team = mem_alloc(sizeof *team + span->n * sizeof team->ranks[0]);

    team->n = span->n;
    team->n_all = n_all;
    team->first = span->first;
    team->hosts = hosts;
    team->timeout_s = timeout_s;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->handed, NULL);
    clock_cond_init(&team->ended);
    for (size_t i = 0; i < team->n; i++) {
        team->ranks[i].team = team;
        team->ranks[i].index = team->first + i;
    }
    team->ranks[0].kern = kern;
    return team;
}

enum status team_create(struct trainer **ret_trainer, const struct hosted *on, struct kern *kern,
                        const struct env_def *def, const void *env_settings, const struct policy_settings *policy,
                        const struct train_settings *train, struct error *err)
{
    struct opening opening = {.def = def, .env_settings = env_settings, .policy = policy, .train = train};
    static const struct host_call open = {.call = HOST_OPEN, .meets = true};
    size_t n_all = (size_t)train->devices;
    struct team *team;
    enum status rc;

    *ret_trainer = NULL;
    if (on->config != NULL)
        TRY(hosts_begin(on->hosts, n_all, kern, on->config, train->rank_timeout_s, err));
    team = team_new(n_all, on->hosts, train->rank_timeout_s, kern);
    rc = check_there(kern, team->n, err);
    THEN(rc, kern_ranks_create(&team->meeting, n_all, on->hosts != NULL ? &on->hosts->span : NULL, err));
    THEN(rc, threads_begin(team, err));
    if (rc != ST_OK) {
        if (on->config != NULL) /* one that follows answers with it */
            hosts_break(on->hosts);
        team_free(team);
        return rc;
    }
    team->call = on->hosts != NULL ? &open : NULL; /* of one that follows: it looks whether the first host is there */
    if (on->config != NULL)
        rc = ask_hosts(team, &open, NULL, NULL, err);
    THEN(rc, on->config != NULL ? run_with_hosts(team, &open, open_rank, &opening, err)
                                : team_run(team, open_rank, &opening, true, err));
    if (rc != ST_OK) {
        team->over = true;
        team_destroy(team);
        return rc;
    }
    team->opened = true;
    team->ranks[0].t->team = team;
    *ret_trainer = team->ranks[0].t;
    return ST_OK;
}

void team_destroy(struct team *team)
{
    const struct host_call close = {.call = HOST_CLOSE};
    struct error ignored = {0};

    if (team->lost) /* a thread may still use it: it stays until the process ends */
        return;
    error_clear(&team->why);
    if (team->hosts != NULL && team->hosts->own == 0 && !team->over &&
        hosts_call(team->hosts, &close, NULL, NULL, &ignored) == ST_OK)
        (void)!run_with_hosts(team, &close, close_rank, NULL, &ignored);
    else
        (void)!team_run(team, close_rank, NULL, false, NULL);
    threads_end(team, team->n);
    team_free(team);
}

/* ---- one that follows ---- */

/* One call of the first host; *ret_closed: it was the last one of this training. */
static enum status serve(struct team *team, const struct host_call *call, const char *text, const char *in,
                         struct error *err)
{
    struct rank_args args = {.text = text, .in = in, .in_bytes = call->in_bytes, .out_bytes = call->out_bytes};
    struct ranks_job job = {.ctx = &args};
    struct error why = {0};

    if (call->call < 0 || (size_t)call->call >= COUNT(calls))
        return FAIL(err, ST_CORRUPT, "the first host asks for %d, which no rank does", (int)call->call);
    job.fn = calls[call->call].fn;
    args.first = team->first;
    args.out = mem_try_alloc(team->n * call->out_bytes + 1);
    if (args.out == NULL)
        return FAIL(err, ST_NOMEM, "no memory for %zu bytes of %zu ranks", team->n * (size_t)call->out_bytes, team->n);
    enum status rc = team_run(team, run_one, &job, calls[call->call].meets, &why);
    enum status sent = hosts_answer(team->hosts, rc, why.text, args.out, team->n * call->out_bytes, err);
    mem_free(args.out);
    return rc != ST_OK && team->over ? FAIL(err, rc, "%s", why.text) : sent;
}

/* The first host asks all whether they can take their part, and then to open or, where another one cannot, to close. */
static enum status follow_open(struct train_hosts *hosts, bool *ret_opens, struct error *err)
{
    struct host_call call = {0};
    MEM_LOCAL char *text = NULL, *in = NULL;

    TRY(hosts_answer(hosts, ST_OK, "", NULL, 0, err));
    enum status rc = hosts_next_call(hosts, &call, &text, &in, err);
    *ret_opens = call.call == HOST_OPEN;
    return rc != ST_OK || *ret_opens ? rc : hosts_answer(hosts, ST_OK, "", NULL, 0, err);
}

enum status train_follow(struct train_hosts *hosts, struct kern *kern, const struct env_def *def,
                         const void *env_settings, const struct policy_settings *policy,
                         const struct train_settings *train, bool (*should_stop)(void), struct error *err)
{
    const struct hosted on = {.hosts = hosts};
    struct error why = {0};
    struct trainer *t = NULL;
    struct host_call call;
    char *text, *in;
    bool opens = false;
    enum status rc;

    TRY(follow_open(hosts, &opens, err));
    if (!opens)
        return ST_OK;
    rc = team_create(&t, &on, kern, def, env_settings, policy, train, &why);
    if (rc != ST_OK) {
        TRY(hosts_answer(hosts, rc, why.text, NULL, 0, err));
        return FAIL(err, rc, "%s", why.text);
    }
    rc = hosts_answer(hosts, ST_OK, "", NULL, 0, err);
    for (call.call = -1; rc == ST_OK && call.call != HOST_CLOSE;) {
        rc = hosts_next_call(hosts, &call, &text, &in, err);
        hosts->leaves = should_stop != NULL && should_stop();
        if (rc == ST_OK && call.call != HOST_CLOSE)
            rc = serve(t->team, &call, text, in, err);
        mem_free(text);
        mem_free(in);
    }
    trainer_destroy(t);
    return rc == ST_OK ? hosts_answer(hosts, ST_OK, "", NULL, 0, err) : rc;
}
