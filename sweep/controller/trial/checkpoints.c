/* checkpoints.c - checkpoints from which trials resume, and those of finished trials that are kept.
 *
 * They lie in STORE.checkpoints/STUDY-NUMBER.ckpt, written by the workers. While a trial runs there is one only if it
 * was stopped or has run for sweep.checkpoint_interval_s; when it has ended, its file stays if sweep.keep allows it.
 * Invariants: (1) a row of the store names a file only after it was written whole; (2) a failed checkpoint costs time
 * and never a result: it is logged and the sweep continues. */
#include "sweep/controller/trial/checkpoints.h"

#include "study/setup/setup.h"
#include "sweep/controller/sched_study.h"

#include <dirent.h>
#include <sys/stat.h>

#define WHOLE ".ckpt"
#define HALF ".ckpt.tmp." /* as trainer_save names it, followed by the process */
#define KEEP_LAST 3 /* of the trials that ended last, on the front or not */

/* By the store's real path: a store that is reached by two names has one folder. */
void checkpoints_folder(const char *store_path, char *buf)
{
    char real[PATH_MAX];

    snprintf(buf, PATH_MAX, "%.*s.checkpoints", PATH_MAX - 20, store_beside(store_path, real));
}

void checkpoint_file(const char *store_path, const char *study, int64_t number, char *buf)
{
    char folder[PATH_MAX];

    checkpoints_folder(store_path, folder);
    snprintf(buf, PATH_MAX, "%.*s/%.100s-%lld" WHOLE, PATH_MAX - 140, folder, study, (long long)number);
}

void checkpoint_path(const struct sched_study *ss, const struct trial *trial, char *buf)
{
    checkpoint_file(store_path(ss->store), ss->view.study.name, trial->number, buf);
}

/* The number in "STUDY-NUMBER.ckpt"; -1: another study's file or none of ours. suffix: WHOLE
 * or HALF. */
static int64_t number_of(const char *name, const char *study, const char *suffix)
{
    size_t n = strlen(study);
    char *end;
    long long number;

    if (strncmp(name, study, n) != 0 || name[n] != '-' || name[n + 1] < '0' || name[n + 1] > '9')
        return -1;
    number = strtoll(name + n + 1, &end, 10);
    if (strncmp(end, suffix, strlen(suffix)) != 0)
        return -1;
    return strcmp(suffix, HALF) == 0 || end[strlen(suffix)] == '\0' ? number : -1;
}

/* The files of a study, as next_file finds them one by one. */
struct files {
    const char *store_path, *study, *suffix;
    DIR *dir;
    char folder[PATH_MAX], path[2 * PATH_MAX];
    int64_t number; /* of the trial */
};

/* False: no more; nothing is open then. */
static bool next_file(struct files *f)
{
    const struct dirent *entry;

    if (f->dir == NULL) {
        checkpoints_folder(f->store_path, f->folder);
        f->dir = opendir(f->folder);
    }
    while (f->dir != NULL && (entry = readdir(f->dir)) != NULL) {
        snprintf(f->path, sizeof f->path, "%s/%s", f->folder, entry->d_name);
        if ((f->number = number_of(entry->d_name, f->study, f->suffix)) >= 0)
            return true;
    }
    if (f->dir != NULL)
        closedir(f->dir);
    return false;
}

/* Files that a worker was writing when it was killed; no worker of the study runs now. */
static void remove_halves(const struct sched_study *ss)
{
    struct files f = {.store_path = store_path(ss->store), .study = ss->view.study.name, .suffix = HALF};

    while (next_file(&f))
        (void)unlink(f.path);
}

void checkpoints_begin(struct sched_study *ss)
{
    char folder[PATH_MAX];

    checkpoints_folder(store_path(ss->store), folder);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        log_warn("%s: no folder for checkpoints (%s), stopped trials will start from zero, continuing", folder,
                 strerror(errno));
    remove_halves(ss);
}

void checkpoints_end(const struct sched_study *ss)
{
    char folder[PATH_MAX];

    checkpoints_folder(store_path(ss->store), folder);
    remove_halves(ss);
    (void)rmdir(folder); /* when it is empty */
}

enum status checkpoint_to_resume(struct store *store, const char *study, const struct trial *trial,
                                 int64_t earlier_attempts, bool *ret_there, struct error *err)
{
    char path[PATH_MAX], *stored = NULL;

    *ret_there = false;
    TRY(store_checkpoint_path(store, trial->id, &stored, err));
    if (earlier_attempts == 0 && stored == NULL) /* only one that extends another has one before its first attempt */
        return ST_OK;
    checkpoint_file(store_path(store), study, trial->number, path); /* the store may have been moved with its folder */
    /* A file without a row: its controller ended before it could write one. Whose it is, the worker reads in it. */
    *ret_there = access(path, R_OK) == 0;
    if (stored != NULL && !*ret_there)
        log_warn("%s: trial %lld begins again: its checkpoint %s cannot be read: %s", study, (long long)trial->number,
                 path, strerror(errno));
    mem_free(stored);
    return ST_OK;
}

/* Is the file of trial i wanted? */
static bool is_wanted(const struct sched_study *ss, size_t i)
{
    const struct study_view *v = &ss->view;
    int64_t n_later = 0;

    switch (v->trials[i].state) {
    case TRIAL_QUEUED:
    case TRIAL_RUNNING:
        return true;
    case TRIAL_DONE:
        break;
    default:
        return false;
    }
    if (ss->setup->sweep.keep != SWEEP_KEEP_FRONT)
        return ss->setup->sweep.keep == SWEEP_KEEP_ALL;
    if (v->on_front[i] || v->front_run[i])
        return true;
    for (size_t k = 0; k < v->n; k++)
        n_later += v->trials[k].state == TRIAL_DONE && v->trials[k].finished_ms > v->trials[i].finished_ms;
    return n_later < KEEP_LAST;
}

static enum status drop(const struct sched_study *ss, size_t i, struct error *err)
{
    char path[PATH_MAX];
    enum status rc;

    STORE_INSIST(rc, ss->store, err, store_checkpoint_forget(ss->store, ss->view.trials[i].id, err));
    TRY(rc);
    checkpoint_path(ss, &ss->view.trials[i], path);
    if (unlink(path) != 0 && errno != ENOENT)
        log_warn("%s: cannot be removed (%s), continuing", path, strerror(errno));
    return ST_OK;
}

enum status checkpoints_prune(const struct sched_study *ss, struct error *err)
{
    struct files f = {.store_path = store_path(ss->store), .study = ss->view.study.name, .suffix = WHOLE};
    enum status rc = ST_OK;

    while (next_file(&f)) /* to its end, which closes the folder */
        if (rc == ST_OK && f.number < (int64_t)ss->view.n && !is_wanted(ss, (size_t)f.number))
            rc = drop(ss, (size_t)f.number, err);
    return rc;
}

void checkpoints_rename(const char *store_path, const char *from, const char *to)
{
    struct files f = {.store_path = store_path, .study = from, .suffix = WHOLE};
    char now[2 * PATH_MAX];

    while (next_file(&f)) {
        snprintf(now, sizeof now, "%s/%.160s-%lld" WHOLE, f.folder, to != NULL ? to : "", (long long)f.number);
        if (to != NULL ? rename(f.path, now) != 0 : unlink(f.path) != 0)
            log_warn("%s: cannot be %s (%s), continuing", f.path, to != NULL ? "renamed" : "removed", strerror(errno));
    }
    (void)rmdir(f.folder); /* when it is empty */
}

void checkpoints_usage(const char *store_path, const char *study, int64_t *ret_n, double *ret_bytes)
{
    struct files f = {.store_path = store_path, .study = study, .suffix = WHOLE};
    struct stat info;

    *ret_n = 0;
    *ret_bytes = 0;
    while (next_file(&f))
        if (stat(f.path, &info) == 0) {
            (*ret_n)++;
            *ret_bytes += (double)info.st_size;
        }
}
