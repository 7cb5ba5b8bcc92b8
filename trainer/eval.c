/* eval.c - plays whole episodes with the policy as it is, on games of its own.
 * All instances are played as one batch. The log of each is limited to its first k episodes, which keeps games that end
 * early from being counted more often than games that last; where agents end alone, each agent has its share of k, for
 * the same reason. A game that has its k plays on, uncounted, until all have theirs or have played max_steps; an
 * episode that is unfinished then counts with what it has. Every game weighs the same: a mean is the mean of the games'
 * means, and its standard error comes from their spread. Invariant: nothing of the training state is touched but
 * scratch. */
#include "trainer/acting.h"

#include <inttypes.h>

#define GAMES_MAX 1024 /* at a time, when the caller leaves it to us */

struct eval_run {
    struct trainer *t;
    const struct eval_settings *set;
    size_t n_games;
    double quota; /* episodes to count of each game */
    int64_t limit, steps; /* decisions of each agent: at most, so far */
    struct acting play;
    char *state; /* of all games and their logs, on the host, owned */
    size_t state_bytes;
    int64_t finished; /* episodes, of n_games * quota */
};

static size_t eval_games(const struct trainer *t, int64_t episodes, int64_t agents)
{
    size_t per_game = (size_t)t->shape.n_agents;
    int64_t most = agents > 0 ? agents : GAMES_MAX;
    size_t n = (size_t)(most < episodes ? most : episodes);

    return (n + per_game - 1) / per_game;
}

size_t eval_bytes(struct trainer *t)
{
    return acting_bytes(t, eval_games(t, t->set.eval_episodes, 0));
}

/* ---- the games' logs, in the state that was saved ---- */

static struct env_log log_of(const struct eval_run *e, size_t i)
{
    struct env_log log;

    memcpy(&log, e->state + e->state_bytes - (e->n_games - i) * sizeof log, sizeof log);
    return log;
}

/* What game i did in the episodes that count: sums. *ret_cut: the last of them is unfinished. */
static struct env_log game_sum(const struct eval_run *e, size_t i, bool *ret_cut)
{
    const struct env_def *def = e->t->def;
    struct env_log log = log_of(e, i);
    struct env_track track = {0};

    if (log.episodes < e->quota && def->track_at != 0)
        memcpy(&track, e->state + i * def->state_size + def->track_at, sizeof track);
    *ret_cut = track.ep_length > 0.0;
    log.limit = 0.0;
    if (*ret_cut)
        env_log_add(&log, &track, track.score, track.perf);
    log_bound_perf(e->t, &log);
    return log;
}

static enum status eval_look(struct eval_run *e, int64_t *ret_open, struct error *err)
{
    double sum = 0.0;

    TRY(kern_env_save(e->t->kern, e->play.games, e->state, err));
    *ret_open = 0;
    for (size_t i = 0; i < e->n_games; i++) {
        double n = log_of(e, i).episodes;
        sum += n;
        *ret_open += n < e->quota;
    }
    e->finished = (int64_t)sum;
    return ST_OK;
}

/* ---- playing ---- */

static enum status eval_limit_logs(struct eval_run *e, struct error *err)
{
    const struct env_log log = {.limit = e->quota};

    TRY(kern_env_save(e->t->kern, e->play.games, e->state, err));
    for (size_t i = 0; i < e->n_games; i++)
        memcpy(e->state + e->state_bytes - (e->n_games - i) * sizeof log, &log, sizeof log);
    TRY(kern_env_load(e->t->kern, e->play.games, e->state, err));
    return kern_sync(e->t->kern, err); /* the upload may still read from state */
}

static enum status eval_open(struct eval_run *e, struct error *err)
{
    TRY(acting_open(&e->play, e->t, e->n_games, e->set->seed, true,
                    e->set->agents > 0 ? "the number of agents" : "train.eval_episodes", err));
    e->state_bytes = kern_env_state_bytes(e->play.games);
    e->state = mem_try_alloc(e->state_bytes);
    if (e->state == NULL)
        return FAIL(err, ST_NOMEM, "no memory to evaluate %zu games; lower the number of episodes", e->n_games);
    return eval_limit_logs(e, err);
}

static void eval_close(struct eval_run *e)
{
    acting_close(&e->play);
    mem_free(e->state);
}

/* Is it to continue? */
static bool eval_tell(const struct eval_run *e)
{
    const struct eval_progress progress = {.steps = e->steps,
                                           .max_steps = e->limit,
                                           .finished = e->finished,
                                           .episodes = (int64_t)e->n_games * (int64_t)e->quota};

    return e->set->on_progress == NULL || e->set->on_progress(e->set->ctx, &progress);
}

/* Lets the trials go first that wait to be alone on the device. All iterations are collected. Returns the seconds that
 * it took. */
static double eval_turn(const struct eval_run *e)
{
    const struct train_gate *gate = e->set->gate;
    double from_s = clock_mono_s();

    if (gate == NULL || !gate->wanted(gate->ctx))
        return 0.0;
    gate->leave(gate->ctx);
    gate->enter(gate->ctx, false);
    return clock_mono_s() - from_s;
}

/* Plays until every game has its episodes, until the limit or until it is stopped. *ret_waited_s: of that time, for
 * others. */
static enum status eval_play(struct eval_run *e, bool *ret_stopped, double *ret_waited_s, struct error *err)
{
    int64_t open = 1;

    *ret_stopped = false;
    while (open > 0 && e->steps < e->limit && !*ret_stopped) {
        TRY(acting_play(&e->play, e->set->greedy, err));
        e->steps += ACTING_STEPS;
        TRY(eval_look(e, &open, err));
        *ret_stopped = !eval_tell(e);
        *ret_waited_s += eval_turn(e);
    }
    return ST_OK;
}

/* ---- the result ---- */

struct moments {
    double n, sum, square;
};

/* Mean and standard error over the games; shift keeps squares small: the first game's value. */
static void moments_end(const struct moments *m, double shift, double *ret_mean, double *ret_se)
{
    double mean = m->sum / m->n, variance = (m->square - m->n * mean * mean) / (m->n - 1.0);

    *ret_mean = m->n > 0.0 ? shift + mean : NAN;
    *ret_se = m->n > 1.0 ? sqrt((variance < 0.0 ? 0.0 : variance) / m->n) : NAN; /* NaN of what is unknown */
}

static void eval_sum(const struct eval_run *e, struct eval_result *r)
{
    double *const means[] = {&r->score, &r->perf, &r->ep_return, &r->ep_length};
    double *const errors[] = {&r->score_se, &r->perf_se, &r->ep_return_se, &r->ep_length_se};
    struct moments m[4] = {{0}};
    double shift[4] = {0};

    for (size_t i = 0; i < e->n_games; i++) {
        bool cut;
        struct env_log log = game_sum(e, i, &cut);
        const double sums[] = {log.score, log.perf, log.ep_return, log.ep_length};
        r->unfinished += cut;
        r->episodes += (int64_t)log.episodes;
        for (int k = 0; k < 4 && log.episodes > 0.0; k++) {
            double value = sums[k] / log.episodes;
            shift[k] = m[k].n > 0.0 ? shift[k] : value;
            m[k].n += 1.0;
            m[k].sum += value - shift[k];
            m[k].square += (value - shift[k]) * (value - shift[k]);
        }
    }
    for (int k = 0; k < 4; k++)
        moments_end(&m[k], shift[k], means[k], errors[k]);
}

/* The game's own numbers, over the episodes that count. */
static enum status eval_numbers(const struct eval_run *e, struct eval_result *r, struct error *err)
{
    double episodes = 0.0;

    for (size_t i = 0; i < ENV_MAX_NUMBERS; i++)
        r->numbers[i] = NAN;
    if (e->t->def->n_numbers > 0)
        TRY(kern_env_take_numbers(e->t->kern, e->play.games, r->numbers, &episodes, err));
    for (size_t i = 0; i < e->t->def->n_numbers; i++)
        r->numbers[i] = episodes > 0.0 ? r->numbers[i] / episodes : NAN;
    return ST_OK;
}

static enum status check(const struct eval_settings *s, struct error *err)
{
    if (s->episodes < 1 || s->agents < 0 || s->max_steps < 1)
        return FAIL(err, ST_USAGE,
                    "evaluation of %" PRId64 " episodes by %" PRId64 " agents in %" PRId64
                    " steps; episodes and steps must be at least 1",
                    s->episodes, s->agents, s->max_steps);
    return ST_OK;
}

void eval_settings_of(const struct train_settings *train, struct eval_settings *ret_settings)
{
    *ret_settings = (struct eval_settings){.episodes = train->eval_episodes, .max_steps = train->eval_max_steps};
}

enum status trainer_eval(struct trainer *t, const struct eval_settings *settings, struct eval_result *ret_result,
                         struct error *err)
{
    const struct train_gate *gate = settings->gate;
    struct eval_run e = {.t = t, .set = settings};
    double from_s, waited_s = 0.0;

    TRY(check(settings, err));
    TRY(trainer_sync(t, err));
    e.n_games = eval_games(t, settings->episodes, settings->agents);
    e.quota = ceil((double)settings->episodes / (double)e.n_games);
    if (t->shape.agents_end)
        e.quota = (double)t->shape.n_agents * ceil(e.quota / (double)t->shape.n_agents);
    e.limit = settings->max_steps;
    if (e.limit % ACTING_STEPS != 0 && e.limit < INT64_MAX - ACTING_STEPS)
        e.limit += ACTING_STEPS - e.limit % ACTING_STEPS;
    *ret_result = (struct eval_result){.max_steps = e.limit};
    if (gate != NULL)
        gate->enter(gate->ctx, false);
    from_s = clock_mono_s();
    enum status rc = eval_open(&e, err);
    THEN(rc, eval_play(&e, &ret_result->stopped, &waited_s, err));
    if (rc == ST_OK)
        eval_sum(&e, ret_result);
    if (rc == ST_OK && !ret_result->stopped)
        rc = eval_numbers(&e, ret_result, err);
    ret_result->steps = e.steps;
    eval_close(&e);
    ret_result->eval_s = clock_mono_s() - from_s - waited_s;
    if (gate != NULL)
        gate->leave(gate->ctx);
    return rc;
}
