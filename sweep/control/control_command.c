/* control_command.c - stop, pause, continue, add, priority, retry: what they are on the wire and what they do to a
 * study's row. The row comes first and the running controller follows it, so that a crash in between loses nothing. */
#include "sweep/control/control_command.h"

#include "base/duration.h"
#include "base/json.h"
#include "base/status.h"
#include "store/store.h"
#include "study/limits.h"
#include "study/setup.h"
#include "study/study_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[CONTROL_KINDS] = {"stop", "pause", "continue", "add", "priority", "retry"};

const char *control_kind_name(enum control_kind kind)
{
    return (unsigned)kind < CONTROL_KINDS ? kind_names[kind] : "unknown";
}

cJSON *control_command_to_json(const struct control_command *c)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "command", control_kind_name(c->kind));
    json_add_str(json, "study", c->study);
    json_add_bool(json, "now", c->now);
    json_add_i64(json, "trials", c->trials);
    json_add_f64(json, "budget_s", c->budget_s);
    json_add_i64(json, "priority", c->priority);
    json_add_i64(json, "trial", c->trial);
    return json;
}

enum status control_command_from_json(const cJSON *json, struct control_command *ret_command, struct error *err)
{
    struct control_command c = {.trial = -1};
    const char *word = json_get_str(json, "command"), *study = json_get_str(json, "study");
    int kind = 0;

    while (kind < CONTROL_KINDS && (word == NULL || strcmp(word, kind_names[kind]) != 0))
        kind++;
    if (kind == CONTROL_KINDS)
        return FAIL(err, ST_USAGE, "the controller knows no command '%.40s'; is it of another version?",
                    word != NULL ? word : "");
    if (study == NULL || study[0] == '\0' || strlen(study) >= sizeof c.study)
        return FAIL(err, ST_USAGE, "the command names no study");
    c.kind = (enum control_kind)kind;
    snprintf(c.study, sizeof c.study, "%s", study);
    TRY(json_take_i64(json, "trials", &c.trials, err));
    TRY(json_take_i64(json, "priority", &c.priority, err));
    TRY(json_take_i64(json, "trial", &c.trial, err));
    TRY(json_take_bool(json, "now", &c.now, err));
    TRY(json_take_f64(json, "budget_s", &c.budget_s, err));
    if (c.trials < 0 || c.trials > SWEEP_TRIALS_MAX || !(c.budget_s >= 0) || !isfinite(c.budget_s))
        return FAIL(err, ST_USAGE, "%s: the amounts are out of range", control_kind_name(c.kind));
    if (c.kind == CONTROL_ADD && c.trials == 0 && c.budget_s == 0)
        return FAIL(err, ST_USAGE, "add: how much? --trials N or --budget TIME");
    if (c.kind == CONTROL_PRIORITY && cJSON_GetObjectItemCaseSensitive(json, "priority") == NULL)
        return FAIL(err, ST_USAGE, "priority: the number 'priority' is missing, 1 to %d are possible",
                    STUDY_PRIORITY_MAX);
    if (c.kind == CONTROL_PRIORITY && (c.priority < 1 || c.priority > STUDY_PRIORITY_MAX))
        return FAIL(err, ST_USAGE, "priority: %lld is not possible, 1 to %d are", (long long)c.priority,
                    STUDY_PRIORITY_MAX);
    if (c.kind == CONTROL_RETRY && c.trial < 0)
        return FAIL(err, ST_USAGE, "retry: which trial? --trial N; `trawl show %s` lists them", c.study);
    *ret_command = c;
    return ST_OK;
}

static enum status set_state(struct store *store, struct study *study, enum study_state state, const char *rule,
                             const char *text, struct error *err)
{
    TRY(store_study_set_state(store, study->id, state, rule, text, err));
    study->state = state;
    return ST_OK;
}

static enum status apply_stop(struct store *store, struct study *study, char *text, size_t size, struct error *err)
{
    if (study->state == STUDY_ENDED)
        return FAIL(err, ST_USAGE, "stop: the study %s has ended already: %s", study->name,
                    study->end_text != NULL ? study->end_text : study->end_rule);
    snprintf(text, size, "study %s is stopped; `trawl continue %s` resumes it", study->name, study->name);
    return set_state(store, study, STUDY_ENDED, "user", "stopped by `trawl stop`", err);
}

static enum status apply_pause(struct store *store, const struct control_command *c, struct study *study, char *text,
                               size_t size, struct error *err)
{
    if (study->state == STUDY_ENDED)
        return FAIL(err, ST_USAGE, "pause: the study %s has ended: %s", study->name,
                    study->end_text != NULL ? study->end_text : study->end_rule);
    if (study->state == STUDY_PAUSED && !c->now)
        return FAIL(err, ST_USAGE, "pause: the study %s is paused already; `trawl continue %s` resumes it", study->name,
                    study->name);
    snprintf(text, size, "study %s is paused: %s; `trawl continue %s` resumes it", study->name,
             c->now ? "its running trials go back into the queue" : "running trials end, no new ones begin",
             study->name);
    return set_state(store, study, STUDY_PAUSED, "user", "paused by `trawl pause`", err);
}

/* Is the limit that ended the study unchanged? Then `continue` would end it again at once. */
static bool ended_by_limit(const struct study *study)
{
    static const char *const limits[] = {"trials", "budget", "wall_time", "device_time", "target", "min_gain", "space"};

    for (size_t i = 0; study->end_rule != NULL && i < sizeof limits / sizeof limits[0]; i++)
        if (strcmp(study->end_rule, limits[i]) == 0)
            return true;
    return false;
}

static enum status apply_continue(struct store *store, struct study *study, char *text, size_t size, struct error *err)
{
    if (study->state == STUDY_RUNNING)
        return FAIL(err, ST_USAGE, "continue: the study %s is neither paused nor ended", study->name);
    if (study->state == STUDY_ENDED && ended_by_limit(study))
        return FAIL(err, ST_USAGE,
                    "continue: the study %s has ended: %s; raise its limit with `trawl add %s --trials N` or --budget "
                    "TIME, or `trawl sweep --resume %s` with new limits",
                    study->name, study->end_text != NULL ? study->end_text : study->end_rule, study->name, study->name);
    snprintf(text, size, "study %s continues", study->name);
    return set_state(store, study, STUDY_RUNNING, NULL, NULL, err);
}

/* Appends why a study does not continue although its limit was raised. */
static void append_still_ended(const struct study *study, char *text, size_t size)
{
    size_t n = strlen(text);
    const char *what = study->state == STUDY_PAUSED                                      ? "paused"
                       : study->end_rule != NULL && strcmp(study->end_rule, "user") == 0 ? "stopped"
                                                                                         : "ended";

    if (study->state == STUDY_ENDED && ended_by_limit(study))
        snprintf(text + n, size - n, "; it stays ended by another limit: %s",
                 study->end_text != NULL ? study->end_text : study->end_rule);
    else if (study->state != STUDY_RUNNING)
        snprintf(text + n, size - n, "; it is %s: `trawl continue %s` resumes it", what, study->name);
}

static enum status apply_add(struct store *store, const struct control_command *c, struct study *study, char *text,
                             size_t size, struct error *err)
{
    char budget[32], more[32], trials_text[96] = "", budget_text[128] = "";
    bool revives = study->state == STUDY_ENDED && study->end_rule != NULL &&
                   ((c->trials > 0 && strcmp(study->end_rule, "trials") == 0) ||
                    (c->budget_s > 0 && strcmp(study->end_rule, "budget") == 0));
    struct limits want = study->limits;

    if (c->trials > 0 && want.trials_max == 0)
        return FAIL(err, ST_USAGE, "add: the study %s has no limit of trials to add to; %s", study->name,
                    want.budget_s > 0 ? "it has a budget: --budget TIME" : "`trawl sweep --resume` gives it one");
    if (c->budget_s > 0 && want.budget_s == 0)
        return FAIL(err, ST_USAGE, "add: the study %s has no budget to add to; %s", study->name,
                    want.trials_max > 0 ? "it has a limit of trials: --trials N"
                                        : "`trawl sweep --resume` gives it one");
    if (c->trials > 0) {
        int64_t n;
        TRY(limits_count_trials(store, study, &n, err));
        want.trials_max = (n > want.trials_max ? n : want.trials_max) + c->trials; /* "more" is more than there are */
    }
    if (want.trials_max > SWEEP_TRIALS_MAX)
        return FAIL(err, ST_USAGE, "add: the study %s would have more than %d trials", study->name, SWEEP_TRIALS_MAX);
    want.budget_s += c->budget_s;
    TRY(limits_change(store, study, &want, err));
    if (revives)
        TRY(set_state(store, study, STUDY_RUNNING, NULL, NULL, err));
    if (c->trials > 0)
        snprintf(trials_text, sizeof trials_text, ": %lld trials more, %lld in all", (long long)c->trials,
                 (long long)study->limits.trials_max);
    if (c->budget_s > 0)
        snprintf(budget_text, sizeof budget_text, "%s %s of training more, %s in all", c->trials > 0 ? "," : ":",
                 format_seconds(c->budget_s, more), format_seconds(study->limits.budget_s, budget));
    snprintf(text, size, "study %s%s%s%s", study->name, trials_text, budget_text, revives ? "; it continues" : "");
    if (!revives)
        append_still_ended(study, text, size);
    return ST_OK;
}

/* A finished row never changes: the same config and seed become a new trial, and the limit of trials rises by one. */
static enum status copy_trial(struct store *store, const struct study *study, const struct trial *old,
                              struct trial *ret, struct error *err)
{
    *ret = (struct trial){.study_id = study->id,
                          .params = old->params,
                          .config = old->config,
                          .origin = (char *)"retry", /* all borrowed */
                          .seed = old->seed,
                          .propose_s = NAN};
    return store_trial_create(store, ret, err);
}

/* The same config and seed are the same run: a second one would count as a second seed. */
static enum status check_not_again(struct store *store, const struct study *study, const struct trial *old,
                                   struct error *err)
{
    struct trial *trials;
    size_t n;
    enum status rc = ST_OK;

    TRY(store_trial_list(store, study->id, &trials, &n, err));
    for (size_t i = 0; i < n && rc == ST_OK; i++) {
        const struct trial *t = &trials[i];
        bool counts = t->state != TRIAL_FAILED && t->state != TRIAL_STOPPED && t->state != TRIAL_LOST;
        if (counts && t->seed == old->seed && strcmp(t->config, old->config) == 0)
            rc = FAIL(err, ST_USAGE, "retry: trial %lld of %s was given again already, as trial %lld, which is %s",
                      (long long)old->number, study->name, (long long)t->number, trial_state_name(t->state));
    }
    trial_list_free(trials, n);
    return rc;
}

static enum status apply_retry(struct store *store, const struct control_command *c, struct study *study, char *text,
                               size_t size, struct error *err)
{
    bool revives = study->state == STUDY_ENDED && study->end_rule != NULL &&
                   (strcmp(study->end_rule, "trials") == 0 || strcmp(study->end_rule, "failures") == 0);
    struct trial old = {0}, again = {0};
    enum status rc;

    TRY(store_trial_find(store, study->id, c->trial, &old, err));
    if (old.state != TRIAL_FAILED && old.state != TRIAL_STOPPED && old.state != TRIAL_LOST)
        rc = FAIL(err, ST_USAGE, "retry: trial %lld of %s is %s; only one that failed or was stopped runs again",
                  (long long)c->trial, study->name, trial_state_name(old.state));
    else if (study->limits.trials_max >= SWEEP_TRIALS_MAX)
        rc = FAIL(err, ST_USAGE, "retry: the study %s would have more than %d trials", study->name, SWEEP_TRIALS_MAX);
    else
        rc = check_not_again(store, study, &old, err);
    if (rc == ST_OK)
        rc = copy_trial(store, study, &old, &again, err);
    trial_free(&old);
    TRY(rc);
    struct limits want = study->limits;
    want.trials_max += want.trials_max > 0;
    TRY(limits_change(store, study, &want, err));
    if (revives)
        TRY(set_state(store, study, STUDY_RUNNING, NULL, NULL, err));
    snprintf(text, size, "trial %lld of %s runs again, as trial %lld%s", (long long)c->trial, study->name,
             (long long)again.number, revives ? "; the study continues" : "");
    if (!revives)
        append_still_ended(study, text, size);
    return ST_OK;
}

enum status control_command_apply(struct store *store, const struct control_command *c, struct study *study,
                                  char *ret_text, size_t size, struct error *err)
{
    if (strcmp(study->method, TRAIN_TRACK_METHOD) == 0) /* a daemon would take it up and fail */
        return FAIL(err, ST_USAGE,
                    "%s: %s is a training alone, which waits here for `trawl sync`; `trawl train --resume` its "
                    "checkpoint to continue",
                    control_kind_name(c->kind), study->name);
    switch (c->kind) {
    case CONTROL_STOP:
        return apply_stop(store, study, ret_text, size, err);
    case CONTROL_PAUSE:
        return apply_pause(store, c, study, ret_text, size, err);
    case CONTROL_CONTINUE:
        return apply_continue(store, study, ret_text, size, err);
    case CONTROL_ADD:
        return apply_add(store, c, study, ret_text, size, err);
    case CONTROL_PRIORITY:
        TRY(store_study_set_priority(store, study->id, c->priority, err));
        study->limits.priority = c->priority;
        snprintf(ret_text, size, "study %s has priority %lld", study->name, (long long)c->priority);
        return ST_OK;
    case CONTROL_RETRY:
        return apply_retry(store, c, study, ret_text, size, err);
    case CONTROL_KINDS:
        break;
    }
    return FAIL(err, ST_INTERNAL, "no such command");
}
