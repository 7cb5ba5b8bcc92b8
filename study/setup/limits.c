/* limits.c - when a study ends: the same limits in a config, a request and a store's row. */
#include "study/setup/limits.h"

#include "base/text/duration.h"
#include "store/store.h"
#include "study/setup/setup.h"

#define DEFAULT_TRIALS 100

static double seconds(const char *text)
{
    double value;

    return parse_seconds(text, &value) ? value : 0;
}

void limits_from_settings(const struct sweep_settings *s, struct limits *ret)
{
    double target;

    *ret = (struct limits){.trials_max = s->trials,
                           .budget_s = seconds(s->budget),
                           .wall_max_s = seconds(s->wall_time),
                           .device_max_s = seconds(s->device_time),
                           .gain_min = s->min_gain,
                           .priority = s->priority};
    ret->has_target = num_parse_f64(s->target, &target);
    ret->target_score = ret->has_target ? target : 0;
}

void limits_default(struct limits *l)
{
    if (l->trials_max == 0 && l->budget_s == 0 && l->wall_max_s == 0 && l->device_max_s == 0 && !l->has_target &&
        l->gain_min == 0)
        l->trials_max = DEFAULT_TRIALS;
}

void limits_add_json(cJSON *json, const struct limits *l)
{
    json_add_i64(json, "trials_max", l->trials_max);
    json_add_f64(json, "budget_s", l->budget_s);
    json_add_f64(json, "wall_max_s", l->wall_max_s);
    json_add_f64(json, "device_max_s", l->device_max_s);
    json_add_bool(json, "has_target", l->has_target);
    json_add_f64(json, "target_score", l->target_score);
    json_add_f64(json, "gain_min", l->gain_min);
    json_add_i64(json, "priority", l->priority);
}

enum status limits_take_json(const cJSON *json, struct limits *limits, struct error *err)
{
    struct limits l = *limits;

    TRY(json_take_i64(json, "trials_max", &l.trials_max, err));
    TRY(json_take_f64(json, "budget_s", &l.budget_s, err));
    TRY(json_take_f64(json, "wall_max_s", &l.wall_max_s, err));
    TRY(json_take_f64(json, "device_max_s", &l.device_max_s, err));
    TRY(json_take_bool(json, "has_target", &l.has_target, err));
    TRY(json_take_f64(json, "target_score", &l.target_score, err));
    TRY(json_take_f64(json, "gain_min", &l.gain_min, err));
    TRY(json_take_i64(json, "priority", &l.priority, err));
    const double amounts[] = {l.budget_s, l.wall_max_s, l.device_max_s, l.gain_min};
    bool ok = l.trials_max >= 0 && l.trials_max <= SWEEP_TRIALS_MAX && isfinite(l.target_score) && l.priority >= 1 &&
              l.priority <= STUDY_PRIORITY_MAX;
    for (size_t i = 0; i < COUNT(amounts); i++)
        ok = ok && amounts[i] >= 0 && isfinite(amounts[i]);
    if (!ok)
        return FAIL(
            err, ST_USAGE,
            "the study's limits are out of range: at most %d trials, times and gain 0 or more, priority 1 to %d",
            SWEEP_TRIALS_MAX, STUDY_PRIORITY_MAX);
    *limits = l;
    return ST_OK;
}

bool limits_target_is_met(const struct study *study, double score)
{
    const struct limits *l = &study->limits;

    return l->has_target && (study->maximize ? score >= l->target_score : score <= l->target_score);
}

enum status limits_count_trials(struct store *store, const struct study *study, bool branches_too, int64_t *ret_n,
                                struct error *err)
{
    struct study_counts counts;

    TRY(store_study_counts(store, study, &counts, err));
    *ret_n = branches_too ? 0 : -counts.branches;
    for (int i = 0; i < TRIAL_STATES; i++)
        *ret_n += counts.n[i];
    return ST_OK;
}

enum status limits_check(struct store *store, const struct study *study, const struct limits *want, struct error *err)
{
    int64_t n;

    if (want->trials_max == 0 || want->trials_max == study->limits.trials_max) /* the old limit may stay */
        return ST_OK;
    TRY(limits_count_trials(store, study, false, &n, err));
    if (want->trials_max >= n)
        return ST_OK;
    return FAIL(
        err, ST_USAGE,
        "sweep: the study %s has %lld trial%s already, and --trials (%lld) is the number in all: give more than "
        "%lld, or leave it out",
        study->name, (long long)n, PLURAL(n), (long long)want->trials_max, (long long)n);
}

enum status limits_change(struct store *store, struct study *study, const struct limits *want, struct error *err)
{
    TRY(limits_check(store, study, want, err));
    study->limits = *want;
    limits_default(&study->limits);
    return store_study_set_limits(store, study, err);
}
