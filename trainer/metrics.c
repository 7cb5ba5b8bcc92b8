/* metrics.c - the table of every logged number, and the sums they are made of.
 * docs/metrics.md shows this table; tests/trainer compares them. */
#include "trainer/trainer_priv.h"

#define PERF_ROUNDING 1e-6

#define ROW_F(f, name_, unit_, help_)                                                                                  \
    {                                                                                                                  \
        .name = name_, .offset = offsetof(struct train_metrics, f), .is_int = false, .unit = unit_, .help = help_      \
    }
#define ROW_I(f, name_, unit_, help_)                                                                                  \
    {                                                                                                                  \
        .name = name_, .offset = offsetof(struct train_metrics, f), .is_int = true, .unit = unit_, .help = help_       \
    }
#define ROW_CLOCK(f, name_, unit_, help_)                                                                              \
    {                                                                                                                  \
        .name = name_, .offset = offsetof(struct train_metrics, f), .is_int = false, .by_clock = true, .unit = unit_,  \
        .help = help_                                                                                                  \
    }
#define ROW_PHASE(i, name_, help_) ROW_CLOCK(phase_s[i], "profile/" name_, "s", help_)

const struct train_metric_def train_metric_defs[] = {
    ROW_I(env_steps, "env_steps", "steps", "Agent decisions since training began"),
    ROW_I(updates, "updates", "minibatches", "Optimiser steps since training began"),
    ROW_CLOCK(wall_s, "wall_s", "s", "Wall time of training, over resumes"),
    ROW_CLOCK(steps_per_s, "steps_per_s", "steps/s", "Agent decisions per second since the last report"),
    ROW_F(episodes, "episodes", "episodes", "Episodes that ended since the last report"),
    ROW_F(score, "score", "game", "Mean score of those episodes, in the game's own unit"),
    ROW_F(perf, "perf", "0..1", "Mean performance of those episodes"),
    ROW_F(ep_return, "ep_return", "reward", "Mean sum of unclipped rewards of those episodes"),
    ROW_F(ep_length, "ep_length", "steps", "Mean length of those episodes"),
    ROW_F(window_score, "train/score", "game",
          "Mean score of the episodes that ended in the last tenth of the steps so far"),
    ROW_F(window_perf, "train/perf", "0..1", "Mean performance of those episodes"),
    ROW_F(window_ep_return, "train/ep_return", "reward", "Mean sum of unclipped rewards of those episodes"),
    ROW_F(window_ep_length, "train/ep_length", "steps", "Mean length of those episodes"),
    ROW_F(policy_loss, "train/policy_loss", "1",
          "Mean clipped policy loss of the samples trained since the last report"),
    ROW_F(
        value_loss, "train/value_loss", "reward^2",
        "Mean clipped value loss, half the squared error, before vf_coef; of a value of bins the cross entropy (nat)"),
    ROW_F(entropy, "train/entropy", "nat", "Mean entropy of the policy, summed over action heads"),
    ROW_F(approx_kl, "train/approx_kl", "nat",
          "Mean of ratio - 1 - log ratio: how far the policy moved from the one that played"),
    ROW_F(clip_fraction, "train/clip_fraction", "0..1", "Share of samples whose ratio lies outside 1 +- clip_coef"),
    ROW_F(explained_variance, "train/explained_variance", "1",
          "1 - var(return - value) / var(return); 1 is perfect, 0 is a constant"),
    ROW_F(grad_norm, "train/grad_norm", "1", "Mean global norm of the gradient before clipping"),
    ROW_F(lr, "train/lr", "1/update", "Step size of the last updates, after annealing"),
    ROW_I(memory, "memory", "bytes",
          "Memory of the device that the training plans: weights, optimiser, rollout, games, evaluation"),
    ROW_PHASE(PHASE_ENV, "env", "Seconds spent stepping games since training began"),
    ROW_PHASE(PHASE_FORWARD, "forward", "Seconds in the policy while playing: forward passes, sampling, bootstraps"),
    ROW_PHASE(PHASE_COPY, "copy", "Seconds moving data: carrying state over, gathering minibatches"),
    ROW_PHASE(PHASE_ADVANTAGE, "advantage", "Seconds computing advantages and segment priorities"),
    ROW_PHASE(PHASE_LOSS, "loss", "Seconds in the training forward pass, the loss and the backward pass"),
    ROW_PHASE(PHASE_OPTIMISER, "optimiser", "Seconds in the optimiser"),
    ROW_PHASE(PHASE_OTHER, "other", "Seconds in everything else: logs, reports, schedules"),
    ROW_CLOCK(outside, "profile/outside", "0..1",
              "Share of the time, since training began or was resumed, in which Python stepped the game"),
};
const size_t train_n_metric_defs = COUNT(train_metric_defs);

const char *train_phase_name(enum train_phase phase)
{
    static const char *const names[PHASE_COUNT] = {"env", "forward", "copy", "advantage", "loss", "optimiser", "other"};
    return (unsigned)phase < PHASE_COUNT ? names[phase] : "unknown";
}

double train_metric_value(const struct train_metrics *metrics, size_t i)
{
    const char *at = (const char *)metrics + train_metric_defs[i].offset;
    int64_t whole;
    double value;

    if (train_metric_defs[i].is_int) {
        memcpy(&whole, at, sizeof whole);
        return (double)whole;
    }
    memcpy(&value, at, sizeof value);
    return value;
}

size_t train_metrics_count(const struct env_def *env)
{
    return train_n_metric_defs + (env != NULL ? env->n_numbers : 0);
}

const char *train_metrics_name(const struct env_def *env, size_t i)
{
    return i < train_n_metric_defs ? train_metric_defs[i].name : env->number_names[i - train_n_metric_defs];
}

double train_metrics_value(const struct train_metrics *metrics, size_t i)
{
    return i < train_n_metric_defs ? train_metric_value(metrics, i) : metrics->numbers[i - train_n_metric_defs];
}

void stats_add(struct kern_stats *sum, const struct kern_stats *stats)
{
    sum->n_tokens += stats->n_tokens;
    sum->n_minibatches += stats->n_minibatches;
    sum->policy_loss += stats->policy_loss;
    sum->value_loss += stats->value_loss;
    sum->entropy += stats->entropy;
    sum->approx_kl += stats->approx_kl;
    sum->clip_fraction += stats->clip_fraction;
    sum->ret_sum += stats->ret_sum;
    sum->ret_sq += stats->ret_sq;
    sum->err_sum += stats->err_sum;
    sum->err_sq += stats->err_sq;
    sum->grad_norm += stats->grad_norm;
}

/* A bucket holds per_bucket iterations. When all are full, neighbours are merged and buckets hold twice as many. */
void window_add(struct window *w, int64_t env_steps, int64_t updates, const struct env_log *log,
                const struct kern_stats *stats)
{
    if (w->n == 0 || w->in_last == w->per_bucket) {
        if (w->n == WINDOW_MAX) {
            for (size_t i = 0; i < WINDOW_MAX / 2; i++) {
                struct window_bucket merged = w->buckets[2 * i + 1];
                env_log_sum(&merged.log, &w->buckets[2 * i].log);
                stats_add(&merged.stats, &w->buckets[2 * i].stats);
                w->buckets[i] = merged;
            }
            w->n = WINDOW_MAX / 2;
            w->per_bucket *= 2;
        }
        w->per_bucket = w->per_bucket > 0 ? w->per_bucket : 1;
        w->buckets[w->n++] = (struct window_bucket){0};
        w->in_last = 0;
    }
    struct window_bucket *last = &w->buckets[w->n - 1];
    last->env_steps = env_steps;
    last->updates = updates;
    env_log_sum(&last->log, log);
    stats_add(&last->stats, stats);
    w->in_last++;
}

/* Episodes that ended and updates that were made in the last tenth of env_steps, each widened bucket by bucket until
 * there is one. */
void window_sum(const struct window *w, int64_t env_steps, struct window_sum *s)
{
    bool more_log = true, more_stats = true;

    *s = (struct window_sum){0};
    for (int64_t i = w->n - 1; i >= 0 && (more_log || more_stats); i--) {
        const struct window_bucket *before = i > 0 ? &w->buckets[i - 1] : NULL;
        bool is_tenth = env_steps - (before != NULL ? before->env_steps : 0) >= env_steps / 10;
        if (more_log)
            env_log_sum(&s->log, &w->buckets[i].log);
        if (more_stats) {
            stats_add(&s->stats, &w->buckets[i].stats);
            s->updates += w->buckets[i].updates - (before != NULL ? before->updates : 0);
        }
        more_log = more_log && !(is_tenth && s->log.episodes > 0.0);
        more_stats = more_stats && !(is_tenth && s->stats.n_minibatches > 0.0);
    }
}

static double ratio_or_nan(double sum, double n)
{
    return n > 0.0 ? sum / n : NAN;
}

void log_bound_perf(struct trainer *t, struct env_log *log)
{
    double perf = log->perf / log->episodes, bounded = fmin(1.0, fmax(0.0, perf));

    if (!(log->episodes > 0.0) || isnan(perf) || perf == bounded)
        return;
    log->perf = bounded * log->episodes;
    if (fabs(perf - bounded) <= PERF_ROUNDING || t->perf_outside)
        return;
    t->perf_outside = true;
    if (t->rank == 0)
        log_warn(
            "env %s: perf is %g on average; it has to lie in [0, 1], and counts as %g (`trawl env check` checks it)",
            t->def->name, perf, bounded);
}

/* What is a mean over episodes (log) and over updates (sums). */
static void metrics_fill_means(struct train_metrics *m, const struct env_log *log, const struct kern_stats *s,
                               int64_t updates)
{
    double n = s->n_tokens;
    double var_ret = ratio_or_nan(s->ret_sq, n) - pow(ratio_or_nan(s->ret_sum, n), 2.0);
    double var_err = ratio_or_nan(s->err_sq, n) - pow(ratio_or_nan(s->err_sum, n), 2.0);

    m->episodes = log->episodes;
    m->score = ratio_or_nan(log->score, log->episodes);
    m->perf = ratio_or_nan(log->perf, log->episodes);
    m->ep_return = ratio_or_nan(log->ep_return, log->episodes);
    m->ep_length = ratio_or_nan(log->ep_length, log->episodes);
    m->policy_loss = ratio_or_nan(s->policy_loss, n);
    m->value_loss = ratio_or_nan(s->value_loss, n);
    m->entropy = ratio_or_nan(s->entropy, n);
    m->approx_kl = ratio_or_nan(s->approx_kl, n);
    m->clip_fraction = ratio_or_nan(s->clip_fraction, n);
    m->explained_variance = var_ret > 0.0 ? 1.0 - var_err / var_ret : NAN;
    m->grad_norm = ratio_or_nan(s->grad_norm, (double)updates);
}

/* What counts from the beginning, and what is now. */
static void metrics_fill_totals(struct trainer *t, struct train_metrics *m)
{
    const struct trainer_counters *c = &t->count;
    double known_s = 0.0;

    trainer_profile_settle(t);
    m->env = t->def;
    for (size_t i = 0; i < ENV_MAX_NUMBERS; i++)
        m->numbers[i] = NAN;
    m->env_steps = c->env_steps;
    m->updates = c->updates;
    m->wall_s = c->wall_s;
    m->lr = (double)t->lr;
    m->memory = (int64_t)t->plan.total;
    for (int i = 0; i < PHASE_OTHER; i++) {
        m->phase_s[i] = c->phase_s[i];
        known_s += c->phase_s[i];
    }
    m->phase_s[PHASE_OTHER] = fmax(0.0, c->wall_s - known_s);
    m->outside = NAN;
    if (t->def->outside_s != NULL && c->wall_s > t->begun_wall_s)
        m->outside = fmin(1.0, kern_env_outside_s(t->env) / (c->wall_s - t->begun_wall_s));
}

static void metrics_fill_window(const struct env_log *log, struct train_metrics *m)
{
    m->window_score = ratio_or_nan(log->score, log->episodes);
    m->window_perf = ratio_or_nan(log->perf, log->episodes);
    m->window_ep_return = ratio_or_nan(log->ep_return, log->episodes);
    m->window_ep_length = ratio_or_nan(log->ep_length, log->episodes);
}

void trainer_get_metrics(struct trainer *t, struct train_metrics *m)
{
    const struct trainer_counters *c = &t->count;
    struct window_sum sum;

    *m = (struct train_metrics){0};
    metrics_fill_totals(t, m);
    metrics_fill_means(m, &c->log, &c->stats, c->updates - c->report_updates);
    window_sum(&t->window, c->env_steps, &sum);
    metrics_fill_window(&sum.log, m);
    m->steps_per_s = ratio_or_nan((double)(c->env_steps - c->report_env_steps), c->wall_s - c->report_wall_s);
}

void metrics_of_window(struct trainer *t, struct train_metrics *m)
{
    struct window_sum sum;

    *m = (struct train_metrics){0};
    metrics_fill_totals(t, m);
    window_sum(&t->window, t->count.env_steps, &sum);
    metrics_fill_means(m, &sum.log, &sum.stats, sum.updates);
    metrics_fill_window(&sum.log, m);
    memcpy(m->numbers, t->numbers, sizeof m->numbers);
    m->steps_per_s = ratio_or_nan((double)m->env_steps, m->wall_s);
}

struct numbers {
    double sums[ENV_MAX_NUMBERS], episodes;
};

enum status rank_numbers(void *ctx, struct trainer *t, struct error *err)
{
    struct numbers *own = rank_out((const struct rank_args *)ctx, t);

    return kern_env_take_numbers(t->kern, t->env, own->sums, &own->episodes, err);
}

void metrics_take_numbers(struct trainer *t, struct train_metrics *m)
{
    struct numbers all = {0};
    struct error ignored = {0}; /* the next iteration reports it */

    if (t->def->n_numbers == 0)
        return;
    MEM_LOCAL struct numbers *of_rank = mem_array(t->n_ranks, sizeof *of_rank);
    const struct rank_args args = {.out = of_rank, .out_bytes = sizeof *of_rank};
    if (ranks_call(t, RANK_NUMBERS, &args, &ignored) == ST_OK)
        for (size_t r = 0; r < t->n_ranks; r++) {
            all.episodes += of_rank[r].episodes;
            for (size_t i = 0; i < t->def->n_numbers; i++)
                all.sums[i] += of_rank[r].sums[i];
        }
    for (size_t i = 0; i < t->def->n_numbers; i++) {
        m->numbers[i] = ratio_or_nan(all.sums[i], all.episodes);
        t->numbers[i] = isfinite(m->numbers[i]) ? m->numbers[i] : t->numbers[i];
    }
}

double train_outcome(const struct train_result *result, const struct eval_result *eval, const char *metric,
                     double *ret_se)
{
    const struct eval_result none = {.stopped = true}, *e = eval != NULL ? eval : &none;
    const struct {
        const char *name;
        double mean, se;
    } evaluated[] = {{"score", e->score, e->score_se},
                     {"perf", e->perf, e->perf_se},
                     {"ep_return", e->ep_return, e->ep_return_se},
                     {"ep_length", e->ep_length, e->ep_length_se}};

    *ret_se = NAN;
    for (size_t i = 0; !e->stopped && i < COUNT(evaluated); i++)
        if (strcmp(evaluated[i].name, metric) == 0) {
            *ret_se = evaluated[i].se;
            return evaluated[i].mean;
        }
    for (size_t i = 0; result->window.env != NULL && i < result->window.env->n_numbers; i++)
        if (strcmp(result->window.env->number_names[i], metric) == 0)
            return e->stopped ? result->window.numbers[i] : e->numbers[i];
    for (size_t i = 0; i < train_n_metric_defs; i++)
        if (strcmp(train_metric_defs[i].name, metric) == 0)
            return train_metric_value(&result->window, i);
    return NAN;
}
