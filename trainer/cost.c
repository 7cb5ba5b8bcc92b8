/* cost.c - what a run costs. Alone on its device: the time that passes. Sharing it (train_callbacks.gate): time passes
 * for others too, so the run has the device for itself for a few iterations, takes their time, and from then on counts
 * that much for each iteration. Formulas and what it measured: docs/cuda.md.
 *
 *   wall      no gate: time counts
 *   warm      alone: time counts; libraries load, pieces are recorded, caches fill
 *   window    alone: time counts; the time of an iteration is taken
 *   shared    an iteration counts as the last window had it; time does not
 *
 * A training by one block of the device is always shared: an iteration counts as the block's own clock had it, divided
 * by the runs that share the device when all are there: so a full population costs the time that passes.
 * Where runs share a struct train_pace, the i-th window of a run is not taken while that of another run of the same
 * kind is fresh: being alone holds up all others, and a short run would be alone for a third of its time.
 *
 * Invariants: (1) the gate is held from cost_begin to cost_end, but for waits in between; (2) every iteration is
 * collected when the gate is let go; (3) wall_s never falls. */
#include "base/hash.h"
#include "trainer/trainer_priv.h"

#define WARM_QUEUED 3 /* plain, recorded, recorded with a profile */
#define WARM_DIRECT 1
#define WARM_AGAIN 1 /* others had the caches */
#define WINDOW_ITERATIONS 4
#define WINDOW_MIN_S 0.03
#define WINDOW_MAX_S 0.3
#define WINDOW_ODD 0.02 /* by so much may a window's number of minibatches differ from replay_ratio's mean */
#define WINDOWS_SPOILT_MAX 2
#define AGAIN_TIMES 4 /* the next window is when this many times the iterations have ended, */
#define AGAIN_MIN_S 0.5 /* but not before it has cost so much more, */
#define AGAIN_MAX_S 60.0 /* nor later than when it has cost so much more */
#define PACE_MAX 64 /* windows that are remembered */
#define PACE_FRESH_S 60.0

/* ---- windows of other runs ---- */

struct pace_window {
    uint64_t kind; /* pace_kind */
    double iteration_s; /* 0: free */
    double taken_s; /* by the clock */
};

struct train_pace {
    pthread_mutex_t lock; /* guards windows; never held together with another */
    struct pace_window windows[PACE_MAX];
};

struct train_pace *train_pace_create(void)
{
    struct train_pace *pace = mem_alloc(sizeof *pace);

    pthread_mutex_init(&pace->lock, NULL);
    return pace;
}

void train_pace_destroy(struct train_pace *pace)
{
    if (pace == NULL)
        return;
    pthread_mutex_destroy(&pace->lock);
    mem_free(pace);
}

/* Names everything that the work of an iteration follows from (as of same_shape in cache.c, and the number of
 * minibatches), and which window of a run it is: the time of an iteration moves while a policy learns. */
static uint64_t pace_kind(const struct trainer *t, uint64_t window)
{
    const struct train_settings *s = &t->set;
    const double numbers[] = {(double)t->n_ranks,
                              (double)t->n_agents,
                              (double)t->horizon_full,
                              (double)t->n_segments,
                              (double)s->shuffle,
                              schedule_mean_minibatches(s, t->horizon_full),
                              (double)s->optimizer,
                              (double)s->vtrace,
                              (double)s->norm_adv,
                              (double)s->scale_reward,
                              (double)s->graphs,
                              (double)(s->prio_alpha > 0),
                              (double)(s->e3b_coef > 0),
                              (double)kern_n_threads(t->kern),
                              (double)window};
    uint64_t hash = hash_text(t->def->name);

    hash = hash_bytes(hash, t->ops->name, strlen(t->ops->name));
    hash = hash_bytes(hash, numbers, sizeof numbers);
    hash = hash_bytes(hash, &t->policy.set, sizeof t->policy.set);
    return hash_bytes(hash, t->env_settings, t->def->options.settings_size);
}

static double pace_recall(const struct trainer *t, uint64_t window)
{
    struct train_pace *pace = t->cost.gate->pace;
    uint64_t kind = pace_kind(t, window);
    double iteration_s = 0.0, now_s = clock_mono_s();

    if (pace == NULL)
        return 0.0;
    pthread_mutex_lock(&pace->lock);
    for (size_t i = 0; i < PACE_MAX; i++)
        if (pace->windows[i].kind == kind && now_s - pace->windows[i].taken_s < PACE_FRESH_S)
            iteration_s = pace->windows[i].iteration_s;
    pthread_mutex_unlock(&pace->lock);
    return iteration_s;
}

/* Instead of an older one of its kind, else of the oldest. */
static void pace_keep(const struct trainer *t)
{
    struct train_pace *pace = t->cost.gate->pace;
    struct pace_window now = {pace_kind(t, t->cost.n_windows), t->cost.iteration_s, clock_mono_s()};
    size_t at = 0;

    if (pace == NULL)
        return;
    pthread_mutex_lock(&pace->lock);
    for (size_t i = 0; i < PACE_MAX; i++)
        if (pace->windows[i].taken_s < pace->windows[at].taken_s)
            at = i;
    for (size_t i = 0; i < PACE_MAX; i++)
        if (pace->windows[i].kind == now.kind)
            at = i;
    pace->windows[at] = now;
    pthread_mutex_unlock(&pace->lock);
}

/* ---- states ---- */

static void cost_state(struct trainer *t, enum cost_state state)
{
    struct cost *c = &t->cost;

    c->state = state;
    c->from_collected = t->n_collected;
    c->from_recorded = t->n_recorded;
    c->from_wall_s = c->seen_wall_s;
    c->from_carry = c->seen_carry;
}

static void cost_enter(struct trainer *t, bool alone)
{
    const struct train_gate *gate = t->cost.gate;

    gate->enter(gate->ctx, alone);
    trainer_tick_skip(t);
    cost_state(t, alone ? COST_WARM : COST_SHARED);
}

/* The next window is when this many more iterations have ended. */
static void cost_window_done(struct trainer *t)
{
    t->cost.again_collected = AGAIN_TIMES * t->n_collected;
    t->cost.again_wall_s = t->count.wall_s;
    t->cost.n_windows++;
}

/* Takes the next window from another run; false: there is none. */
static bool cost_recall(struct trainer *t)
{
    double iteration_s = pace_recall(t, t->cost.n_windows);

    if (!(iteration_s > 0.0))
        return false;
    t->cost.iteration_s = iteration_s;
    cost_window_done(t);
    return true;
}

void cost_begin(struct trainer *t, const struct train_gate *gate)
{
    t->cost = (struct cost){.gate = gate,
                            .n_warm = t->direct ? WARM_DIRECT : WARM_QUEUED,
                            .seen_wall_s = t->count.wall_s,
                            .seen_carry = t->count.minibatch_carry};
    trainer_tick_skip(t);
    if (gate == NULL)
        return;
    if (t->solo.slot != NULL) { /* the device itself measures it */
        cost_enter(t, false);
        return;
    }
    cost_enter(t, !cost_recall(t));
    if (t->cost.state == COST_WARM && cost_recall(t)) { /* another run has measured it while this one waited */
        gate->leave(gate->ctx);
        cost_enter(t, false);
    }
}

/* All iterations collected, the gate free for others. */
static enum status cost_leave(struct trainer *t, struct error *err)
{
    TRY(trainer_sync(t, err));
    trainer_tick(t);
    t->cost.gate->leave(t->cost.gate->ctx);
    return ST_OK;
}

/* Does the window stand for the iterations to come? */
static bool window_is_enough(const struct trainer *t)
{
    const struct cost *c = &t->cost;
    double n = (double)(t->n_collected - c->from_collected), passed_s = c->seen_wall_s - c->from_wall_s;
    double mean = schedule_mean_minibatches(&t->set, t->horizon); /* minibatches of an iteration */

    if (passed_s >= WINDOW_MAX_S)
        return n >= 1.0;
    return n >= WINDOW_ITERATIONS && passed_s >= WINDOW_MIN_S &&
           fabs(c->seen_carry - c->from_carry) <= WINDOW_ODD * n * mean;
}

/* From the end of one iteration to the end of another, with the queue of a device never empty in between: what it takes
 * to fill it at the start is not part of an iteration. */
static enum status window_end(struct trainer *t, struct error *err)
{
    struct cost *c = &t->cost;

    if (t->n_recorded != c->from_recorded && c->n_spoilt < WINDOWS_SPOILT_MAX) { /* another number of minibatches */
        c->n_spoilt++;
        cost_state(t, COST_WINDOW);
        return ST_OK;
    }
    c->n_spoilt = 0;
    c->iteration_s = (c->seen_wall_s - c->from_wall_s) / (double)(t->n_collected - c->from_collected);
    pace_keep(t);
    TRY(cost_leave(t, err));
    cost_window_done(t);
    c->n_warm = WARM_AGAIN;
    cost_enter(t, false);
    return ST_OK;
}

static bool window_is_due(const struct trainer *t)
{
    const struct cost *c = &t->cost;
    double since_s = t->count.wall_s - c->again_wall_s;

    return since_s >= AGAIN_MAX_S || (since_s >= AGAIN_MIN_S && t->n_collected >= c->again_collected);
}

enum status cost_turn(struct trainer *t, struct error *err)
{
    struct cost *c = &t->cost;

    switch (c->state) {
    case COST_WALL:
        break;
    case COST_WARM:
        if (t->n_collected - c->from_collected >= c->n_warm)
            cost_state(t, COST_WINDOW);
        break;
    case COST_WINDOW:
        if (window_is_enough(t))
            return window_end(t, err);
        break;
    case COST_SHARED:
        if (t->solo.slot == NULL && window_is_due(t) && !cost_recall(t)) {
            TRY(cost_leave(t, err));
            cost_enter(t, true);
        } else if (c->gate->wanted(c->gate->ctx)) {
            TRY(cost_leave(t, err));
            cost_enter(t, false);
        }
        break;
    }
    return ST_OK;
}

void cost_end(struct trainer *t)
{
    if (t->cost.gate != NULL)
        t->cost.gate->leave(t->cost.gate->ctx);
    t->cost.gate = NULL;
    t->cost.state = COST_WALL;
}
