/* iterate.c - one iteration (a rollout and its updates) handed to the device, and what came of it taken back later.
 * A CPU runs operations as they are called, so everything is known when an iteration returns. A GPU has a queue:
 * iteration i + 1 is handed over before the host looks at what i left (statistics, episode logs, number of updates:
 * struct report), so that the device never waits for the host. Both pieces of an iteration are recorded once for each
 * shape and replayed; what changes from one iteration to the next lies in device memory (struct kern_hyper, random
 * streams). The last rollout of a run may be shorter than the others, so that it ends at the steps asked for; it is not
 * recorded. Invariants: (1) at most issued_max iterations are issued and not collected, each has its slot, and they are
 * collected in order, so nothing is lost or counted twice; (2) count holds what was collected, n_issued what was handed
 * over; (3) the first run of a piece is not recorded, so that libraries load what they need. */
#include "trainer/trainer_priv.h"

#include <inttypes.h>

#define PROFILE_FIRST 2 /* the first iteration with a profile: the pieces have run and been recorded */
#define PROFILE_EVERY 64
#define COMPARE_EVERY 64 /* iterations after which the weights of ranks are compared */

/* ---- the profile ---- */

void trainer_phase_begin(struct trainer *t)
{
    if (t->direct)
        t->mark_ns = clock_mono_ns();
    else
        trainer_phase(t, PHASE_COUNT);
}

void trainer_phase(struct trainer *t, enum train_phase phase)
{
    struct marks *m = t->marking;

    if (t->direct) {
        uint64_t now = clock_mono_ns();
        t->count.phase_s[phase] += 1e-9 * (double)(now - t->mark_ns);
        t->mark_ns = now;
    } else if (m != NULL && m->n < MARKS_MAX) {
        t->ops->mark(t->kern, t->mark_times + m->first + m->n);
        m->phases[m->n++] = (uint8_t)phase;
    }
}

/* Seconds of each phase within one piece. When there were more phases than marks, those seen stand for all of it. */
static void marks_sum(const struct marks *m, const uint64_t *times, double phase_s[PHASE_COUNT])
{
    for (size_t i = 1; i < m->n; i++)
        if (m->phases[i] < PHASE_COUNT && times[m->first + i] > times[m->first + i - 1])
            phase_s[m->phases[i]] += 1e-9 * (double)(times[m->first + i] - times[m->first + i - 1]);
}

/* Time that passed while iterations ended goes to the phases as the last profiled iteration had them; what that leaves
 * is "other". */
void trainer_profile_settle(struct trainer *t)
{
    double sum = 0.0, n = (double)t->unsettled_n, passed_s = t->count.wall_s - t->settled_wall_s, share;

    for (int i = 0; i < PHASE_OTHER; i++)
        sum += n * t->profile_s[i];
    if (t->direct || !(sum > 0.0))
        return;
    share = fmin(1.0, passed_s / sum);
    for (int i = 0; i < PHASE_OTHER; i++)
        t->count.phase_s[i] += share * n * t->profile_s[i];
    t->unsettled_n = 0;
    t->settled_wall_s = t->count.wall_s;
}

/* ---- pieces ---- */

static enum status piece_play(struct trainer *t, enum piece piece, int64_t n_minibatches, struct error *err)
{
    if (piece == PIECE_UPDATE)
        return update_run(t, n_minibatches, err);
    TRY(rollout_run(t, err));
    t->ops->env_log_take(t->kern, t->env, &t->report->logs[t->rank]);
    if (t->n_ranks > 1)
        t->ops->exchange(t->kern,
                         &(struct kern_exchange){.rows = t->report->logs, .row_bytes = sizeof t->report->logs[0]});
    return ST_OK;
}

static struct recording *recording_find(struct trainer *t, enum piece piece, int64_t n_minibatches, bool profiled)
{
    for (size_t i = 0; i < RECORDINGS_MAX; i++) {
        struct recording *r = &t->recordings[i];
        if (r->graph != NULL && r->piece == piece && r->n_minibatches == n_minibatches && r->profiled == profiled)
            return r;
    }
    return NULL;
}

/* The place of the recording that was not used for longest. */
static struct recording *recording_place(struct trainer *t)
{
    struct recording *r = &t->recordings[0];

    for (size_t i = 1; i < RECORDINGS_MAX; i++)
        if (t->recordings[i].used < r->used)
            r = &t->recordings[i];
    kern_graph_destroy(t->kern, r->graph);
    *r = (struct recording){0};
    return r;
}

static enum status recording_make(struct trainer *t, struct recording *r, struct error *err)
{
    double from_s = clock_mono_s();

    TRY(kern_record_begin(t->kern, err));
    t->marking = r->profiled ? &r->marks : NULL;
    enum status rc = piece_play(t, r->piece, r->n_minibatches, err);
    t->marking = NULL;
    if (kern_record_end(t->kern, &r->graph, err) != ST_OK && rc == ST_OK)
        rc = ST_DEVICE;
    t->recording_s += clock_mono_s() - from_s;
    return rc;
}

/* Runs a piece; *ret_marks: where its times will be, NULL when it has none. */
static enum status piece_run(struct trainer *t, enum piece piece, int64_t n_minibatches, bool profiled,
                             const struct marks **ret_marks, struct error *err)
{
    *ret_marks = NULL;
    if (!t->set.graphs || !kern_can_record(t->kern) || !t->played[piece] || t->horizon != t->horizon_full) {
        if (profiled) {
            t->plain_marks[piece].first = piece * MARKS_MAX;
            t->plain_marks[piece].n = 0;
            t->marking = &t->plain_marks[piece];
        }
        *ret_marks = t->marking;
        enum status rc = piece_play(t, piece, n_minibatches, err);
        t->marking = NULL;
        t->played[piece] = t->played[piece] || piece == PIECE_ROLLOUT || n_minibatches > 0;
        return rc;
    }
    struct recording *r = recording_find(t, piece, n_minibatches, profiled);
    if (r == NULL) {
        r = recording_place(t);
        *r = (struct recording){.piece = piece,
                                .n_minibatches = n_minibatches,
                                .profiled = profiled,
                                .marks = {.first = piece * MARKS_MAX}};
        TRY(recording_make(t, r, err));
        t->n_recorded++;
    }
    r->used = ++t->recording_clock;
    *ret_marks = profiled ? &r->marks : NULL;
    return kern_replay(t->kern, r->graph, err);
}

void recordings_free(struct trainer *t)
{
    for (size_t i = 0; i < RECORDINGS_MAX; i++) {
        kern_graph_destroy(t->kern, t->recordings[i].graph);
        t->recordings[i].graph = NULL;
    }
}

/* ---- a training by one block of the device ---- */

/* Up to KERN_SOLO_MAX iterations become a job, one launch, and are looked at one by one. How they are shared out among
 * jobs changes no byte. There is one job at a time: a launch after another one of its stream would hold up those of
 * other trainings that share a queue of the driver with it. */

static void solo_fill(const struct trainer *t, const struct kern_net *net, struct kern_solo *ret)
{
    const struct rollout *r = &t->roll;

    *ret = (struct kern_solo){
        .net = net,
        .tensors = t->policy.tensors,
        .n_tensors = t->policy.n_tensors,
        .n_params = t->policy.n_params,
        .env = t->env,
        .params = t->params,
        .m = t->moment1,
        .v = t->moment2,
        .grads = t->grads,
        .norm = t->norm,
        .weights = t->weights,
        .step = t->opt_step,
        .stats = t->stats,
        .log = t->report->logs,
        .rng_sample = t->rng_sample,
        .rng_segments = t->rng_segments,
        .T = t->horizon_full,
        .N = t->n_agents,
        .B = t->n_segments,
        .obs = r->obs,
        .reset = r->reset,
        .terms = r->terms,
        .truncs = r->truncs,
        .actions = r->actions,
        .perm = t->mb.perm,
        .logp = r->logp,
        .rewards = r->rewards,
        .boot = r->boot,
        .values = r->values,
        .adv = r->adv,
        .ret = r->ret,
        .log_ratio = t->set.vtrace ? r->log_ratio : NULL,
        .report = t->report,
        .report_bytes = report_bytes(1),
    };
}

enum status solo_open(struct trainer *t, struct error *err)
{
    struct kern_solo all;
    struct kern_net net;

    if (!t->set.population || t->ops->solo == NULL || !policy_plays_at_once(&t->policy) || t->set.prio_alpha > 0.0 ||
        t->set.scale_reward || t->set.e3b_coef > 0.0 || t->direct || t->n_ranks > 1 ||
        t->set.shuffle == TRAIN_SHUFFLE_STEPS || t->policy.n_nets > 1)
        return ST_OK;
    policy_fill_net(&t->policy, &net);
    solo_fill(t, &net, &all);
    if (!t->ops->solo(t->kern, &all))
        return ST_OK;
    return kern_slot_create(t->kern, &t->solo.slot, KERN_SOLO_BYTES(report_bytes(1)), err);
}

void solo_forget(struct trainer *t)
{
    const void *bytes;

    if (t->solo.launched) /* it writes memory that is about to have another use */
        (void)!kern_slot_wait(t->kern, t->solo.slot, &bytes, NULL);
    t->solo.n = t->solo.n_collected = 0;
    t->solo.launched = false;
}

void solo_close(struct trainer *t)
{
    solo_forget(t);
    kern_slot_destroy(t->kern, t->solo.slot);
}

static enum status solo_launch(struct trainer *t, struct error *err)
{
    struct solo *solo = &t->solo;
    struct kern_solo job;
    struct kern_net net;

    policy_fill_net(&t->policy, &net);
    solo_fill(t, &net, &job);
    job.slot = solo->slot;
    job.n = solo->n;
    memcpy(job.turns, solo->turns, sizeof job.turns);
    TRY(kern_sync(t->kern, err)); /* a job is in no order with other work */
    if (!t->ops->solo(t->kern, &job))
        return FAIL(err, ST_DEVICE, "%s no longer trains this", kern_device_name(t->kern));
    solo->launched = true;
    return ST_OK;
}

static enum status solo_issue(struct trainer *t, int64_t n_minibatches, struct error *err)
{
    struct solo *solo = &t->solo;

    solo->turns[solo->n++] =
        (struct kern_solo_turn){.hyper = t->host_hyper, .T = t->horizon, .n_minibatches = n_minibatches};
    return solo->n == KERN_SOLO_MAX ? solo_launch(t, err) : ST_OK;
}

/* What the oldest iteration that was not looked at left, with its time by the block's clock. */
static enum status solo_collect(struct trainer *t, struct report *ret_report, struct env_log *ret_log,
                                double *ret_seconds, struct error *err)
{
    struct solo *solo = &t->solo;
    const void *bytes;

    if (!solo->launched)
        TRY(solo_launch(t, err));
    TRY(kern_slot_wait(t->kern, solo->slot, &bytes, err));
    const char *report = (const char *)bytes + solo->n_collected * report_bytes(1);
    const uint64_t *ns = (const uint64_t *)((const char *)bytes + KERN_SOLO_MAX * report_bytes(1));
    memcpy(ret_report, report, sizeof *ret_report);
    memcpy(ret_log, report + sizeof *ret_report, sizeof *ret_log);
    *ret_seconds = 1e-9 * (double)ns[solo->n_collected];
    if (++solo->n_collected == solo->n) {
        solo->n = solo->n_collected = 0;
        solo->launched = false;
    }
    return ST_OK;
}

/* ---- one iteration ---- */

/* How many iterations may be issued and not collected. */
static uint64_t issued_max(const struct trainer *t)
{
    return t->solo.slot != NULL ? KERN_SOLO_MAX : ISSUED_MAX;
}

/* How many may still wait after another one has been issued. */
static uint64_t may_wait(const struct trainer *t)
{
    if (t->direct || t->solo.launched)
        return 0;
    return t->solo.slot != NULL ? KERN_SOLO_MAX : ISSUED_MAX - 1;
}

static enum status iteration_issue(struct trainer *t, struct error *err)
{
    struct issued *f = &t->issued[t->n_issued % issued_max(t)];
    int64_t n_minibatches = schedule_minibatches(&t->set, t->horizon, &t->count.minibatch_carry);
    bool profiled = !t->direct && t->n_issued % PROFILE_EVERY == PROFILE_FIRST;

    schedule_hyper(&t->set, trainer_issued_steps(t), &t->host_hyper);
    f->lr = t->host_hyper.lr;
    f->carry = t->count.minibatch_carry;
    f->env_steps = (int64_t)(t->n_ranks * t->n_agents * t->horizon);
    if (t->solo.slot != NULL) {
        t->n_issued++;
        return solo_issue(t, n_minibatches, err);
    }
    TRY(kern_upload(t->kern, t->hyper, &t->host_hyper, sizeof t->host_hyper, err));
    TRY(piece_run(t, PIECE_ROLLOUT, 0, profiled, &f->marks[PIECE_ROLLOUT], err));
    TRY(piece_run(t, PIECE_UPDATE, n_minibatches, profiled, &f->marks[PIECE_UPDATE], err));
    TRY(kern_slot_take(t->kern, f->report, t->report, err));
    if (profiled)
        TRY(kern_slot_take(t->kern, t->times_slot, t->mark_times, err));
    t->n_issued++;
    return ST_OK;
}

static enum status profile_collect(struct trainer *t, const struct issued *f, struct error *err)
{
    double phase_s[PHASE_COUNT] = {0};
    const void *times;

    if (f->marks[PIECE_ROLLOUT] == NULL || f->marks[PIECE_UPDATE] == NULL)
        return ST_OK;
    TRY(kern_slot_wait(t->kern, t->times_slot, &times, err));
    for (int i = 0; i < PIECE_COUNT; i++)
        marks_sum(f->marks[i], (const uint64_t *)times, phase_s);
    trainer_profile_settle(t);
    memcpy(t->profile_s, phase_s, sizeof t->profile_s);
    return ST_OK;
}

/* Looks at the oldest iteration that was issued and not collected. */
static enum status iteration_collect(struct trainer *t, struct error *err)
{
    const struct issued *f = &t->issued[t->n_collected % issued_max(t)];
    struct env_log log = {0}, of_rank;
    struct report report;
    const void *bytes;
    double block_s = 0.0;

    if (t->solo.slot != NULL) {
        TRY(solo_collect(t, &report, &log, &block_s, err));
    } else {
        TRY(kern_slot_wait(t->kern, f->report, &bytes, err));
        memcpy(&report, bytes, sizeof report);
        for (size_t r = 0; r < t->n_ranks; r++) {
            memcpy(&of_rank, (const char *)bytes + report_bytes(r), sizeof of_rank);
            env_log_sum(&log, &of_rank);
        }
        TRY(profile_collect(t, f, err));
    }
    log_bound_perf(t, &log);
    t->n_collected++;
    t->count.env_steps += f->env_steps;
    t->count.updates = report.opt_step;
    t->lr = f->lr;
    stats_add(&t->count.stats, &report.stats);
    env_log_sum(&t->count.log, &log);
    window_add(&t->window, t->count.env_steps, t->count.updates, &log, &report.stats);
    t->unsettled_n++;
    trainer_tick(t);
    if (t->cost.state == COST_SHARED && t->solo.slot != NULL)
        t->count.wall_s += t->cost.iteration_s = block_s / (double)t->cost.gate->n_runs;
    else if (t->cost.state == COST_SHARED)
        t->count.wall_s +=
            t->cost.iteration_s * (double)f->env_steps / (double)(t->n_ranks * t->n_agents * t->horizon_full);
    t->cost.seen_wall_s = t->count.wall_s;
    t->cost.seen_carry = f->carry;
    if (report.stats.nonfinite > 0) {
        t->failed = true;
        TRY(kern_sync(t->kern, err)); /* what was handed over since still changes the tensors */
        return numeric_diagnose(t, err);
    }
    return ST_OK;
}

/* The time since the last tick. One in which the process was stopped (SIGSTOP, Ctrl-Z) counts as the mean of the
 * others: how much of it was training is not known. */
static double tick_s(struct trainer *t, uint64_t now)
{
    double passed_s = 1e-9 * (double)(now - t->clock_ns);
    unsigned stops = clock_stops();

    if (stops != t->stops) {
        t->stops = stops;
        return t->n_ticks > 0 ? fmin(passed_s, t->ticked_s / (double)t->n_ticks) : passed_s;
    }
    t->ticked_s += passed_s;
    t->n_ticks++;
    return passed_s;
}

void trainer_tick(struct trainer *t)
{
    uint64_t now = clock_mono_ns();
    double passed_s = tick_s(t, now);

    if (t->cost.state != COST_SHARED)
        t->count.wall_s += passed_s;
    t->clock_ns = now;
}

void trainer_tick_skip(struct trainer *t)
{
    t->clock_ns = clock_mono_ns();
    t->stops = clock_stops();
}

enum status rank_iterate(struct trainer *t, size_t horizon, struct error *err)
{
    double from_s = clock_mono_s();
    size_t n_segments = t->n_segments;

    if (t->failed)
        return FAIL(err, ST_NUMERIC, "training had failed at env step %" PRId64 "; start again from a checkpoint",
                    t->count.env_steps);
    if (!t->running)
        trainer_tick_skip(t);
    t->horizon = horizon;
    t->n_segments = trainer_segments(t) < n_segments ? trainer_segments(t) : n_segments;
    enum status rc = iteration_issue(t, err);
    t->horizon = t->horizon_full;
    t->n_segments = n_segments;
    TRY(rc);
    if (t->n_issued == 1)
        t->first_s = clock_mono_s() - from_s;
    while (t->n_issued - t->n_collected > may_wait(t))
        TRY(iteration_collect(t, err));
    return ST_OK;
}

enum status rank_iterate_for(void *ctx, struct trainer *t, struct error *err)
{
    size_t horizon;

    memcpy(&horizon, ((const struct rank_args *)ctx)->in, sizeof horizon);
    return rank_iterate(t, horizon, err);
}

/* A rollout of `horizon` steps and its updates. */
enum status iterate_for(struct trainer *t, size_t horizon, struct error *err)
{
    TRY(ranks_call(t, RANK_ITERATE, &(struct rank_args){.in = &horizon, .in_bytes = sizeof horizon}, err));
    return t->team != NULL && t->n_issued % COMPARE_EVERY == 0 ? ranks_compare(t, err) : ST_OK;
}

enum status trainer_iterate(struct trainer *t, struct error *err)
{
    return iterate_for(t, t->horizon_full, err);
}

enum status rank_sync(struct trainer *t, struct error *err)
{
    while (!t->failed && t->n_collected < t->n_issued)
        TRY(iteration_collect(t, err));
    trainer_profile_settle(t);
    return kern_sync(t->kern, err);
}

enum status rank_sync_each(void *ctx, struct trainer *t, struct error *err)
{
    (void)ctx;
    return rank_sync(t, err);
}

enum status trainer_sync(struct trainer *t, struct error *err)
{
    return ranks_call(t, RANK_SYNC, &(struct rank_args){0}, err);
}

int64_t trainer_issued_steps(const struct trainer *t)
{
    int64_t steps = t->count.env_steps;

    for (uint64_t i = t->n_collected; i < t->n_issued; i++)
        steps += t->issued[i % issued_max(t)].env_steps;
    return steps;
}

void trainer_get_progress(const struct trainer *t, int64_t *ret_env_steps, int64_t *ret_iterations)
{
    *ret_env_steps = t->count.env_steps;
    *ret_iterations = (int64_t)t->n_collected;
}
