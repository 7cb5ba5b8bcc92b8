/* control_apply.c - stop, pause, continue, add, priority, retry, confirm, extend and try: what they do to a study's
 * row; control_remark.c has those that change no run. The row comes first and the running controller follows it, so
 * that a crash in between loses nothing. */
#include "sweep/control/command/control_apply.h"

#include "base/text/duration.h"
#include "base/text/json.h"
#include "study/setup/limits.h"
#include "study/setup/setup.h"
#include "sweep/control/ask/ask_points.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/command/control_extend.h"
#include "sweep/control/command/control_remark.h"
#include "sweep/controller/sched_study.h"

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

    for (size_t i = 0; study->end_rule != NULL && i < COUNT(limits); i++)
        if (strcmp(study->end_rule, limits[i]) == 0)
            return true;
    return false;
}

/* Only a higher limit of the kind that has ended it, or wider ranges, let it continue. */
static enum status fail_ended(const struct study *study, struct error *err)
{
    bool by_trials = strcmp(study->end_rule, "trials") == 0, by_budget = strcmp(study->end_rule, "budget") == 0;

    return FAIL(err, ST_USAGE, "continue: the study %s has ended: %s; `trawl %s %s%s` %s", study->name,
                study->end_text != NULL ? study->end_text : study->end_rule,
                by_trials || by_budget ? "add" : "sweep --resume", study->name,
                by_trials   ? " --trials N"
                : by_budget ? " --budget TIME"
                            : "",
                by_trials || by_budget                  ? "raises the limit"
                : strcmp(study->end_rule, "space") == 0 ? "with wider ranges continues it"
                                                        : "with another limit continues it");
}

static enum status apply_continue(struct store *store, struct study *study, char *text, size_t size, struct error *err)
{
    if (study->state == STUDY_RUNNING)
        return FAIL(err, ST_USAGE, "continue: the study %s is neither paused nor ended", study->name);
    if (study->state == STUDY_ENDED && ended_by_limit(study))
        return fail_ended(study, err);
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
        snprintf(text + n, size - n, "; the study stays ended: %s (`trawl add %s` raises a limit)",
                 study->end_text != NULL ? study->end_text : study->end_rule, study->name);
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
        TRY(limits_count_trials(store, study, false, &n, err));
        want.trials_max = (n > want.trials_max ? n : want.trials_max) + c->trials; /* "more" is more than there are */
    }
    if (want.trials_max > SWEEP_TRIALS_MAX)
        return FAIL(err, ST_USAGE, "add: the study %s would have more than %d trials", study->name, SWEEP_TRIALS_MAX);
    want.budget_s += c->budget_s;
    TRY(limits_change(store, study, &want, err));
    if (revives)
        TRY(set_state(store, study, STUDY_RUNNING, NULL, NULL, err));
    if (c->trials > 0)
        snprintf(trials_text, sizeof trials_text, ": %lld more trial%s, %lld in all", (long long)c->trials,
                 c->trials == 1 ? "" : "s", (long long)study->limits.trials_max);
    if (c->budget_s > 0)
        snprintf(budget_text, sizeof budget_text, "%s %s more training, %s in all", c->trials > 0 ? "," : ":",
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
            rc = FAIL(err, ST_USAGE, "retry: trial %lld of %s was already retried, as trial %lld, which is %s",
                      (long long)old->number, study->name, (long long)t->number, trial_state_name(t->state));
    }
    trial_list_free(trials, n);
    return rc;
}

/* A person has queued n runs: the limit rises by them, each on every game, and a study that ended there continues. A
 * study may have had more runs than its limit before: those that `trawl rerun` and clients added. */
static enum status allow_more(struct store *store, struct study *study, int64_t n, bool *ret_revived, struct error *err)
{
    struct limits want = study->limits;
    int64_t runs;

    TRY(limits_count_trials(store, study, false, &runs, err));
    *ret_revived = study->state == STUDY_ENDED && study->end_rule != NULL &&
                   (strcmp(study->end_rule, "trials") == 0 || strcmp(study->end_rule, "failures") == 0);
    if (want.trials_max > 0)
        want.trials_max =
            (runs - n > want.trials_max ? runs - n : want.trials_max) + n * (int64_t)search_n_games(study->space);
    TRY(limits_change(store, study, &want, err));
    return *ret_revived ? set_state(store, study, STUDY_RUNNING, NULL, NULL, err) : ST_OK;
}

static enum status check_space_left(const char *command, const struct study *study, struct error *err)
{
    return study->limits.trials_max < SWEEP_TRIALS_MAX
               ? ST_OK
               : FAIL(err, ST_USAGE, "%s: the study %s would have more than %d trials", command, study->name,
                      SWEEP_TRIALS_MAX);
}

static enum status apply_retry(struct store *store, const struct control_command *c, struct study *study, char *text,
                               size_t size, struct error *err)
{
    bool revived = false;
    struct trial old = {0}, again = {0};
    enum status rc;

    TRY(store_trial_find(store, study->id, c->trial, &old, err));
    if (old.state != TRIAL_FAILED && old.state != TRIAL_STOPPED && old.state != TRIAL_LOST)
        rc = FAIL(err, ST_USAGE, "retry: trial %lld of %s is %s; only one that failed or was stopped runs again",
                  (long long)c->trial, study->name, trial_state_name(old.state));
    else
        rc = check_space_left("retry", study, err);
    THEN(rc, check_not_again(store, study, &old, err));
    THEN(rc, copy_trial(store, study, &old, &again, err));
    trial_free(&old);
    TRY(rc);
    TRY(allow_more(store, study, 1, &revived, err));
    snprintf(text, size, "trial %lld of %s runs again, as trial %lld%s", (long long)c->trial, study->name,
             (long long)again.number, revived ? "; the study continues" : "");
    if (!revived)
        append_still_ended(study, text, size);
    return ST_OK;
}

/* A config of a finished trial, queued under fresh seeds. The new rows are adopted like those of retry. */
static enum status queue_confirming(struct store *store, const char *study, size_t trial, int64_t n, struct error *err)
{
    struct sched_study *ss = NULL;
    double x[SPACE_MAX_DIM];

    TRY(sched_study_open(&ss, store, study, err));
    memcpy(x, ss->view.x[trial], ss->view.search.space.dim * sizeof *x);
    enum status rc = study_view_check_points(&ss->view, err);
    for (int64_t i = 0; i < n && rc == ST_OK; i++)
        rc = sched_study_queue(ss, x, CONFIRM_ORIGIN, NAN, err);
    sched_study_destroy(ss);
    return rc;
}

static enum status apply_confirm(struct store *store, const struct control_command *c, struct study *study, char *text,
                                 size_t size, struct error *err)
{
    int64_t n = c->trials;
    bool revived = false;
    struct trial of = {0};

    TRY(store_trial_find(store, study->id, c->trial, &of, err));
    enum status rc = of.state == TRIAL_DONE
                         ? ST_OK
                         : FAIL(err, ST_USAGE, "confirm: trial %lld of %s is %s; only one that is done is run again",
                                (long long)c->trial, study->name, trial_state_name(of.state));
    trial_free(&of);
    TRY(rc);
    if (study->limits.trials_max + n * (int64_t)search_n_games(study->space) > SWEEP_TRIALS_MAX)
        return FAIL(err, ST_LIMIT, "confirm: a study has at most %d trials, and %s is near that", SWEEP_TRIALS_MAX,
                    study->name);
    TRY(queue_confirming(store, study->name, (size_t)c->trial, n, err));
    TRY(allow_more(store, study, n, &revived, err));
    snprintf(text, size, "the config of trial %lld of %s is queued under %lld fresh seed%s%s", (long long)c->trial,
             study->name, (long long)n, n == 1 ? "" : "s", revived ? "; the study continues" : "");
    if (!revived)
        append_still_ended(study, text, size);
    return ST_OK;
}

static enum status apply_extend(struct store *store, const struct control_command *c, struct study *study, char *text,
                                size_t size, struct error *err)
{
    bool revived = false;

    TRY(check_space_left("extend", study, err));
    TRY(control_extend(store, study, c->trial, c->text, text, size, err));
    TRY(allow_more(store, study, 1, &revived, err));
    size_t n = strlen(text);
    if (revived)
        snprintf(text + n, size - n, "; the study continues");
    else
        append_still_ended(study, text, size);
    return ST_OK;
}

static enum status apply_try(struct store *store, const struct control_command *c, struct study *study, char *text,
                             size_t size, struct error *err)
{
    JSON_LOCAL cJSON *params = cJSON_Parse(c->text);
    bool revived = false;
    int64_t number = -1;
    enum status rc = cJSON_IsObject(params) ? check_space_left("try", study, err)
                                            : FAIL(err, ST_USAGE, "try: the values are not a JSON object");

    THEN(rc, ask_points_queue(store, study->name, params, &number, err));
    TRY(rc);
    TRY(allow_more(store, study, 1, &revived, err));
    snprintf(text, size, "trial %lld of %s is the next to run%s", (long long)number, study->name,
             revived ? "; the study continues" : "");
    if (!revived)
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
    if (study->trashed_ms != 0 && c->kind != CONTROL_PURGE && !(c->kind == CONTROL_RM && c->undo))
        return FAIL(err, ST_USAGE, "%s: %s is in the trash; `trawl rm %s --undo` takes it back",
                    control_kind_name(c->kind), study->name, study->name);
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
    case CONTROL_CONFIRM:
        return apply_confirm(store, c, study, ret_text, size, err);
    case CONTROL_EXTEND:
        return apply_extend(store, c, study, ret_text, size, err);
    case CONTROL_TRY:
        return apply_try(store, c, study, ret_text, size, err);
    case CONTROL_DROP:
    case CONTROL_RENAME:
    case CONTROL_NOTE:
    case CONTROL_TAG:
    case CONTROL_RM:
    case CONTROL_PURGE:
        return control_remark_apply(store, c, study, ret_text, size, err);
    case CONTROL_KINDS:
        break;
    }
    return FAIL(err, ST_INTERNAL, "no such command");
}
