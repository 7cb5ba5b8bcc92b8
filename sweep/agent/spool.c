/* spool.c - results that wait for their acknowledgement.
 * Invariant: a file is whole or not there: it is written beside its name and renamed. */
#include "sweep/agent/spool.h"

#include "base/os/file.h"

#include <dirent.h>
#include <sys/stat.h>

#define FILE_MAX (1u << 20)
#define SUFFIX ".json"
#define HALF_WRITTEN                                                                                                   \
    SUFFIX ".tmp." /* by file.h, of a process that was killed in that moment; the trial is trained again */
#define HALF_WRITTEN_S 3600

enum status spool_default(char *buf, size_t size, struct error *err)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

    if (state != NULL && state[0] == '/')
        snprintf(buf, size, "%s/trawl/agent", state);
    else if (home != NULL && home[0] == '/')
        snprintf(buf, size, "%s/.local/state/trawl/agent", home);
    else
        return FAIL(err, ST_USAGE,
                    "agent: neither XDG_STATE_HOME nor HOME names a folder for results that wait; give "
                    "one with --spool DIR");
    return ST_OK;
}

enum status spool_open(const char *dir, struct error *err)
{
    struct error why = {0};

    if (strlen(dir) + 128 > PATH_MAX)
        return FAIL(err, ST_USAGE, "agent: the path of --spool is too long");
    if (file_make_folders(dir, 0700, &why) != ST_OK)
        return FAIL(err, ST_IO, "%s; results that wait need it, give another one with --spool DIR", why.text);
    if (access(dir, W_OK | X_OK) != 0)
        return FAIL(err, ST_IO,
                    "%s: the folder for results that wait cannot be written (%s); give another one with "
                    "--spool DIR",
                    dir, strerror(errno));
    return ST_OK;
}

enum status spool_put(const char *dir, const char *place, const char *study, int64_t trial, const cJSON *body,
                      char *ret_path, struct error *err)
{
    const char *token = json_get_str(body, "lease");
    JSON_LOCAL cJSON *json = cJSON_CreateObject();

    json_add_str(json, "place", place);
    json_add_str(json, "study", study);
    json_add_i64(json, "trial", trial);
    json_add(json, "body", cJSON_Duplicate(body, true));
    MEM_LOCAL char *text = json_print(json, true);
    snprintf(ret_path, PATH_MAX, "%.*s/%lld-%.40s" SUFFIX, PATH_MAX - 128, dir, (long long)trial, token);
    return file_write_all(ret_path, text, strlen(text), err);
}

static void remove_half_written(const char *path)
{
    struct stat st;

    if (strstr(path, HALF_WRITTEN) != NULL && stat(path, &st) == 0 && time(NULL) - st.st_mtime > HALF_WRITTEN_S)
        (void)unlink(path);
}

/* *ret_fits: it is of this place and study. */
static enum status read_fields(cJSON *json, const char *place, const char *study, struct spooled *ret, bool *ret_fits,
                               struct error *err)
{
    const char *is_place = json_get_str(json, "place"), *is_study = json_get_str(json, "study");
    const cJSON *body = json_get(json, "body");

    if (is_place == NULL || is_study == NULL || !json_get_i64(json, "trial", &ret->trial) || !cJSON_IsObject(body))
        return FAIL(err, ST_CORRUPT, "place, study, trial and body are needed");
    *ret_fits = strcmp(is_place, place) == 0 && strcmp(is_study, study) == 0;
    if (*ret_fits)
        ret->body = cJSON_DetachItemFromObjectCaseSensitive(json, "body");
    return ST_OK;
}

/* False: it is of another place or study, or no result. */
static bool read_result(const char *path, const char *place, const char *study, struct spooled *ret)
{
    struct error why = {0};
    JSON_LOCAL cJSON *json = NULL;
    MEM_LOCAL char *text = NULL;
    size_t n = 0;
    bool fits = false;

    enum status rc = file_read_all(path, FILE_MAX, &text, &n, &why);
    THEN(rc, json_parse(text, n, &json, &why));
    THEN(rc, read_fields(json, place, study, ret, &fits, &why));
    if (rc != ST_OK && access(path, F_OK) == 0) /* else another agent has just sent it */
        log_warn("%s is not a result that can be sent (%s); it is left as it is: repair or remove it", path, why.text);
    if (fits)
        snprintf(ret->path, sizeof ret->path, "%s", path);
    return fits;
}

enum status spool_list(const char *dir, const char *place, const char *study, struct spooled **ret_list, size_t *ret_n,
                       struct error *err)
{
    struct spooled *list = NULL, found;
    size_t n = 0, cap = 0;
    struct dirent *entry;
    char path[PATH_MAX];
    DIR *d = opendir(dir);

    *ret_list = NULL;
    *ret_n = 0;
    if (d == NULL)
        return FAIL(err, ST_IO, "%s: the folder for results that wait cannot be read: %s", dir, strerror(errno));
    while ((entry = readdir(d)) != NULL) {
        found = (struct spooled){0};
        snprintf(path, sizeof path, "%.*s/%.255s", PATH_MAX - 260, dir, entry->d_name);
        remove_half_written(path);
        if (!word_ends_in(entry->d_name, SUFFIX) || !read_result(path, place, study, &found))
            continue;
        MEM_ROOM(list, n, cap);
        list[n++] = found;
    }
    closedir(d);
    *ret_list = list;
    *ret_n = n;
    return ST_OK;
}

void spool_list_free(struct spooled *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        cJSON_Delete(list[i].body);
    mem_free(list);
}

void spool_done(const char *path)
{
    (void)unlink(path);
}

void spool_refused(const char *path)
{
    char kept[PATH_MAX + 16];

    snprintf(kept, sizeof kept, "%s.refused", path);
    (void)rename(path, kept);
}
