/* train_track.c - one training alone as a run of the trackers, by the means of a sweep: a study's row with one trial
 * holds settings and outbox, track_rows.h writes the rows and feeds the uploader, `trawl sync` sends the rest.
 *
 * Invariants: (1) the trial's row is running while this process trains and queued otherwise, never finished, so that a
 * training that resumes from the checkpoint continues the same run; (2) the study has ended from the start, so that no
 * daemon runs it; (3) a store that this command made for itself is removed when everything is sent and no checkpoint
 * can be resumed; (4) no failure here ends a training that has begun. */
#include "sweep/cmd/train_track.h"

#include "base/os/file.h"
#include "base/os/machine.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/cli.h"
#include "sweep/control/command/submit.h"
#include "sweep/controller/trial/track_rows.h"
#include "web/track/track.h"

#include <ctype.h>

#define PATH_BYTES 4096
#define NAME_BYTES 101
#define SAVED_BYTES (2 * PATH_BYTES + 64)
#define SAVED_AS ", saved as "
#define INTERRUPTED_FLUSH_S 10.0 /* the user is waiting for the prompt */

struct train_track {
    char path[PATH_BYTES];
    bool made, own; /* the file was made by this command; and its name is ours */
    bool keeps; /* a checkpoint may continue the run */
    bool broken; /* the store failed: nothing more is reported */
    bool stopped;
    const struct setup *setup; /* borrowed */
    struct store *store;
    struct study study;
    struct trial trial;
    struct track_rows *rows;
    int64_t env_steps;
};

/* Beside the checkpoint that is resumed, if there is one; else beside the one that is saved. */
static bool find_path(const struct train_track_options *o, char *ret_path, size_t size)
{
    int n = -1;
    const char *here = ""; /* "a:b.ckpt" would be an address */

    if (o->resume != NULL || o->checkpoint != NULL)
        here = store_address_check(o->resume != NULL ? o->resume : o->checkpoint, NULL) != ST_OK ? "./" : "";
    if (o->store_path != NULL)
        n = snprintf(ret_path, size, "%s", o->store_path);
    else if (o->resume != NULL && (n = snprintf(ret_path, size, "%s%s.track.db", here, o->resume)) > 0 &&
             (size_t)n < size && file_exists(ret_path))
        return true;
    else if (o->checkpoint != NULL)
        n = snprintf(ret_path, size, "%s%s.track.db", here, o->checkpoint);
    else
        n = snprintf(ret_path, size, "trawl-train-%lld-%ld.track.db", (long long)clock_utc_ms(), (long)getpid());
    return n > 0 && (size_t)n < size;
}

/* "runs/pong-7.ckpt" -> "pong-7": what may stand in a study's name. */
static void base_name(const struct train_track_options *o, const struct setup *setup, char ret_name[NAME_BYTES])
{
    const char *from = o->resume != NULL ? o->resume : o->checkpoint;
    size_t n = 0;

    from = from != NULL ? file_name(from) : NULL;
    for (; from != NULL && *from != '\0' && (n == 0 || *from != '.') && n < NAME_BYTES - 8; from++) {
        bool plain = isalnum((unsigned char)*from) || *from == '_' || (n > 0 && *from == '-');
        if (plain || n > 0)
            ret_name[n++] = plain ? *from : '_';
    }
    ret_name[n] = '\0';
    if (n == 0)
        snprintf(ret_name, NAME_BYTES, "%.90s", setup->env->name);
}

/* Is name "base" or "base-2", "base-3", ...? */
static bool is_of(const char *name, const char *base)
{
    size_t n = strlen(base);

    if (strncmp(name, base, n) != 0)
        return false;
    return name[n] == '\0' ||
           (name[n] == '-' && name[n + 1] != '\0' && strspn(name + n + 1, "0123456789") == strlen(name + n + 1));
}

static enum status check_store(struct store *store, struct error *err)
{
    struct study *studies = NULL;
    size_t n = 0;
    enum status rc = store_study_list(store, &studies, &n, err);

    for (size_t i = 0; rc == ST_OK && i < n; i++)
        if (strcmp(studies[i].method, TRAIN_TRACK_METHOD) != 0)
            rc = FAIL(
                err, ST_USAGE,
                "train: %s holds the sweep %s; a training's reports to the trackers wait in a file without sweeps, "
                "give another one to --store",
                store_path(store), studies[i].name);
    study_list_free(studies, n);
    return rc;
}

enum status train_track_check(const struct setup *setup, const struct train_track_options *o, struct error *err)
{
    char path[PATH_BYTES];

    if (setup->track.trackers[0] == '\0')
        return o->store_path == NULL && o->name == NULL
                   ? ST_OK
                   : FAIL(err, ST_USAGE, "train: --store and --name are for trackers; name some with --track");
    if (o->name != NULL)
        TRY(study_name_check("train: --name", o->name, err));
    if (!find_path(o, path, sizeof path))
        return FAIL(err, ST_USAGE, "train: the path of the store is too long");
    TRY(check_writable(path, err));
    return uploader_check(&setup->track, o->name != NULL ? o->name : setup->env->name, true, program_text, err);
}

/* The study's row has where the run's checkpoint lies, by which --resume finds the run. */
static void saved_text(const char *checkpoint, char *ret_text, size_t size)
{
    char dir[PATH_BYTES], real[PATH_BYTES];

    snprintf(ret_text, size, "a training alone");
    if (checkpoint == NULL)
        return;
    file_folder(checkpoint, dir, sizeof dir);
    if (realpath(dir, real) != NULL)
        snprintf(ret_text, size, "a training alone" SAVED_AS "%s/%s", strcmp(real, "/") == 0 ? "" : real,
                 file_name(checkpoint));
}

/* Its checkpoint still lies where it was saved: another one is not its own, whatever the names. */
static bool is_there(const struct study *study)
{
    const char *path = study->end_text != NULL ? strstr(study->end_text, SAVED_AS) : NULL;

    return path != NULL && file_exists(path + strlen(SAVED_AS));
}

/* The study through which the run was reported before: the newest of that name (whole), or the newest that was saved as
 * the checkpoint; where that was moved, the newest of its name. */
static enum status find_study(struct train_track *t, const char *name, bool whole, const char *checkpoint,
                              bool *ret_found, struct error *err)
{
    char saved[SAVED_BYTES];
    struct study *studies = NULL;
    size_t n = 0, found;
    enum status rc = ST_OK;

    *ret_found = false;
    TRY(store_study_list(t->store, &studies, &n, err));
    saved_text(checkpoint, saved, sizeof saved);
    found = n;
    for (size_t i = n; i-- > 0 && found == n;)
        if (whole ? strcmp(studies[i].name, name) == 0
                  : studies[i].end_text != NULL && strcmp(studies[i].end_text, saved) == 0)
            found = i;
    for (size_t i = n; !whole && i-- > 0 && found == n;)
        if (is_of(studies[i].name, name) && !is_there(&studies[i]))
            found = i;
    if (found < n)
        rc = store_study_find(t->store, studies[found].name, &t->study, err);
    *ret_found = found < n && rc == ST_OK;
    study_list_free(studies, n);
    return rc;
}

static enum status make_study(struct train_track *t, const char *base, bool may_number, const char *config_text,
                              struct error *err)
{
    struct study *s = &t->study;
    struct error taken = {0};
    char name[NAME_BYTES + 24];
    enum status rc = ST_EXISTS;

    *s = (struct study){.maximize = true,
                        .seed = t->setup->train.seed,
                        .limits.trials_max = 1,
                        .state = STUDY_ENDED,
                        .config = mem_strdup(config_text),
                        .space = mem_strdup("{\"params\":[]}"),
                        .method = mem_strdup(TRAIN_TRACK_METHOD),
                        .metric = mem_strdup(t->setup->sweep.metric),
                        .program = mem_strdup(program_text)};
    for (int64_t i = 1; rc == ST_EXISTS && (i == 1 || may_number); i++) {
        snprintf(name, sizeof name, i == 1 ? "%s" : "%s-%lld", base, (long long)i);
        mem_free(s->name);
        s->name = mem_strdup(name);
        error_clear(&taken);
        rc = store_study_create(t->store, s, &taken);
    }
    if (rc == ST_EXISTS)
        return FAIL(err, ST_EXISTS, "train: %s has a run %s already; give another --name, or --resume its checkpoint",
                    t->path, base);
    return rc == ST_OK ? ST_OK : FAIL(err, rc, "%s", taken.text);
}

/* The trial's row, running. */
static enum status make_trial(struct train_track *t, bool old, const char *config_text, const char *device,
                              struct error *err)
{
    struct trial *trial = &t->trial;
    int64_t n;

    if (old) {
        TRY(store_trials_recover(t->store, t->study.id, true, &n, err));
        TRY(store_trial_find(t->store, t->study.id, 0, trial, err));
        mem_free(trial->config);
        trial->config = mem_strdup(config_text); /* as it is now: steps may have been added */
    } else {
        *trial = (struct trial){.study_id = t->study.id,
                                .seed = t->setup->train.seed,
                                .params = mem_strdup("{}"),
                                .config = mem_strdup(config_text),
                                .origin = mem_strdup(TRAIN_TRACK_METHOD)};
        TRY(store_trial_create(t->store, trial, err));
    }
    TRY(store_trial_resume(t->store, trial->id, device, NULL, err));
    trial->attempt++;
    mem_free(trial->device);
    trial->device = mem_strdup(device);
    return ST_OK;
}

static enum status open_store(struct train_track *t, const struct train_track_options *o, const char *config_text,
                              const char *device, struct error *err)
{
    char base[NAME_BYTES], saved[SAVED_BYTES];
    bool old = false;

    TRY(store_open_writer(&t->store, t->path, err));
    TRY(check_store(t->store, err));
    base_name(o, t->setup, base);
    if (o->name != NULL)
        snprintf(base, sizeof base, "%s", o->name);
    if (o->resume != NULL)
        TRY(find_study(t, base, o->name != NULL, o->resume, &old, err));
    if (!old)
        TRY(make_study(t, base, o->name == NULL, config_text, err));
    saved_text(o->checkpoint, saved, sizeof saved);
    TRY(store_study_set_state(t->store, t->study.id, STUDY_ENDED, TRAIN_TRACK_METHOD, saved, err));
    return make_trial(t, old, config_text, device, err);
}

static void free_track(struct train_track *t, bool remove)
{
    char log[PATH_BYTES + 8];

    store_close(t->store);
    if (remove) {
        unlink(t->path);
        for (int i = 0; i < 2; i++) { /* files of a connection that was not closed */
            snprintf(log, sizeof log, "%s%s", t->path, i == 0 ? "-wal" : "-shm");
            unlink(log);
        }
    }
    trial_free(&t->trial);
    study_free(&t->study);
    mem_free(t);
}

enum status train_track_open(struct train_track **ret_track, const struct setup *setup, const char *config_text,
                             const char *device, const struct train_track_options *o, struct error *err)
{
    struct train_track *t;
    enum status rc;

    *ret_track = NULL;
    if (setup->track.trackers[0] == '\0')
        return ST_OK;
    t = mem_alloc(sizeof *t);
    t->setup = setup;
    t->own = o->store_path == NULL;
    t->keeps = o->checkpoint != NULL;
    rc =
        find_path(o, t->path, sizeof t->path) ? ST_OK : FAIL(err, ST_USAGE, "train: the path of the store is too long");
    t->made = rc == ST_OK && !file_exists(t->path);
    THEN(rc, open_store(t, o, config_text, device, err));
    THEN(rc, track_rows_open_single(&t->rows, t->store, &t->study, setup, err));
    if (rc == ST_OK && t->rows != NULL)
        rc = track_rows_start(t->rows, &t->trial, false, err);
    if (rc == ST_OK && t->rows != NULL)
        rc = track_rows_file(t->rows, t->trial.id, "config.ini", "text/plain", config_text, err);
    if (rc != ST_OK || t->rows == NULL) { /* NULL: all are disabled by their own variables */
        (void)track_rows_close(t->rows, NULL, NULL, 0);
        free_track(t, t->made && t->own);
        return rc;
    }
    *ret_track = t;
    return ST_OK;
}

/* Logs a failure, once. */
static void note(struct train_track *t, enum status rc, const struct error *err)
{
    if (rc == ST_OK)
        return;
    log_warn("%s; nothing more of this run is reported to the trackers, training continues", err->text);
    t->broken = true;
}

/* A report with the metrics that are known, as a worker sends it. */
static enum status add_report(struct train_track *t, const struct train_metrics *m, int64_t device_memory_bytes,
                              struct error *err)
{
    MEM_LOCAL struct metric_point *points = mem_array(train_metrics_count(m->env), sizeof *points);
    struct metric_report report = {.trial_id = t->trial.id, .points = points};

    for (size_t i = 0; i < train_metrics_count(m->env); i++) {
        double value = train_metrics_value(m, i);
        if (!isnan(value))
            points[report.n++] = (struct metric_point){m->env_steps, m->wall_s, train_metrics_name(m->env, i), value};
    }
    MEM_LOCAL char *row = report.n > 0 ? track_rows_metrics(t->rows, &report) : NULL;
    if (row != NULL)
        TRY(store_outbox_add(t->store, t->study.id, t->trial.id, row, err));
    return track_rows_system(t->rows, t->trial.id, m->env_steps, (int64_t)machine_resident_bytes(), device_memory_bytes,
                             err);
}

void train_track_metrics(struct train_track *t, const struct train_metrics *m, int64_t device_memory_bytes)
{
    struct error err = {0};

    if (t == NULL || t->broken)
        return;
    t->env_steps = m->env_steps;
    note(t, add_report(t, m, device_memory_bytes, &err), &err);
}

bool train_track_stopped(struct train_track *t)
{
    char why[80];

    if (t == NULL)
        return false;
    if (!t->stopped && track_rows_stop(t->rows, t->trial.id, why, sizeof why)) {
        log_info("%s", why);
        t->stopped = true;
    }
    return t->stopped;
}

void train_track_result(struct train_track *t, enum trial_state state, const struct train_result *r,
                        const struct eval_result *eval, const char *reason)
{
    struct trial_result result = {
        .state = state, .score = NAN, .perf = NAN, .cost_s = NAN, .device_s = NAN, .reason = reason};
    struct error err = {0};
    double unused;

    if (t == NULL || t->broken)
        return;
    result.env_steps = t->env_steps;
    if (r != NULL) {
        result.score = train_outcome(r, eval, "score", &result.score_se);
        result.perf = train_outcome(r, eval, "perf", &unused);
        result.cost_s = result.device_s = r->cost_s;
        result.env_steps = r->env_steps;
    }
    const char *row = track_rows_result(t->rows, &result);
    if (row != NULL)
        note(t, store_outbox_add(t->store, t->study.id, t->trial.id, row, &err), &err);
}

void train_track_pause(struct train_track *t)
{
    struct error err = {0};

    if (t != NULL && !t->broken)
        note(t, track_rows_pause(t->rows, t->trial.id, t->env_steps, &err), &err);
}

void train_track_close(struct train_track *t, bool interrupted)
{
    struct error none = {0};

    if (t == NULL)
        return;
    double seconds = t->setup->track.flush_s;
    if (!t->broken && store_trial_requeue(t->store, t->trial.id, REQUEUE_STOPPED, &none) != ST_OK)
        log_debug("%s", none.text);
    bool all = track_rows_close(t->rows, NULL, NULL, interrupted ? fmin(seconds, INTERRUPTED_FLUSH_S) : seconds);
    free_track(t, all && t->made && t->own && !t->keeps);
}
