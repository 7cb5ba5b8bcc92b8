/* trial_folders.c - where programs of a study's trials write, and what becomes of it.
 * Invariant: nothing outside STORE.runs/STUDY is removed: links are removed, and not followed. */
#include "sweep/program/trial_folders.h"

#include "store/store.h"

#include <ftw.h>

#define OPEN_FOLDERS 16 /* of a walk at a time */

/* By the store's real path: a store that is reached by two names has one folder. study NULL: the folder of all. */
static void study_folder(const char *store_path, const char *study, char *buf)
{
    char real[PATH_MAX];

    snprintf(buf, TRIAL_FOLDER_MAX, "%.*s.runs%s%.160s", TRIAL_FOLDER_MAX - 220, store_beside(store_path, real),
             study != NULL ? "/" : "", study != NULL ? study : "");
}

void trial_folder_path(const char *store_path, const char *study, int64_t number, char *buf)
{
    study_folder(store_path, study, buf);
    size_t n = strlen(buf);
    snprintf(buf + n, TRIAL_FOLDER_MAX - n, "/%lld", (long long)number);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    (void)info;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void trial_folders_rename(const char *store_path, const char *from, const char *to)
{
    char then[TRIAL_FOLDER_MAX], now[TRIAL_FOLDER_MAX];

    study_folder(store_path, from, then);
    study_folder(store_path, to, now);
    if ((to != NULL ? rename(then, now) : nftw(then, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS)) != 0 &&
        errno != ENOENT)
        log_warn("%s: cannot be %s (%s), continuing", then, to != NULL ? "renamed" : "removed", strerror(errno));
    study_folder(store_path, NULL, now);
    (void)rmdir(now); /* when it is empty */
}
