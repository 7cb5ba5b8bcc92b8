/* import_file.c - reads the trials that a file holds as rows, from whichever program it is. */
#include "sweep/cmd/study/import_file.h"

#include "base/os/file.h"
#include "study/exchange/csv.h"
#include "study/exchange/optuna_read.h"
#include "study/exchange/puffer_log.h"
#include "study/view/study_view.h"
#include "web/report/report.h"

#include <sys/stat.h>
#include <dirent.h>
#include <linux/limits.h>

#define FILE_MAX_BYTES (512u << 20)

void import_file_free(struct import_file *file)
{
    cJSON_Delete(file->study);
    cJSON_Delete(file->rows);
    *file = (struct import_file){0};
}

/* The only study of a store. */
static enum status only_study(const char *path, char *ret_name, size_t size, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;
    struct study *studies = NULL;
    size_t n = 0;

    TRY(store_open_reader(&store, path, err));
    enum status rc = store_study_list(store, &studies, &n, err);
    if (rc == ST_OK && n != 1)
        rc = FAIL(err, ST_USAGE, "import: %s has %zu studies; which one? --from NAME (`trawl ls --store %s`)", path, n,
                  path);
    if (rc == ST_OK)
        snprintf(ret_name, size, "%s", studies[0].name);
    study_list_free(studies, n);
    return rc;
}

static enum status read_store(const char *path, const char *from, struct import_file *ret, struct error *err)
{
    STUDY_VIEW(v);
    char name[160] = "";
    JSON_LOCAL cJSON *json = NULL;

    if (from != NULL)
        snprintf(name, sizeof name, "%s", from);
    else
        TRY(only_study(path, name, sizeof name, err));
    TRY(study_view_open(path, name, v, err));
    TRY(report_to_json(v, &json, err));
    ret->study = cJSON_DetachItemFromObjectCaseSensitive(json, "study");
    ret->rows = cJSON_DetachItemFromObjectCaseSensitive(json, "trials");
    return ST_OK;
}

/* A line of JSON lines: the study's description, or a trial's row. Takes json. */
static bool take_line(cJSON *json, struct import_file *ret)
{
    bool is_object = cJSON_IsObject(json);

    if (puffer_is_log(json)) {
        cJSON_AddItemToArray(ret->rows, puffer_log_row(json));
        cJSON_Delete(json);
        return true;
    }
    cJSON *study = cJSON_DetachItemFromObjectCaseSensitive(json, "study");
    if (cJSON_IsObject(study) && ret->study == NULL) {
        ret->study = study;
        cJSON_Delete(json);
        return true;
    }
    cJSON_Delete(study);
    if (is_object)
        cJSON_AddItemToArray(ret->rows, json);
    else
        cJSON_Delete(json);
    return is_object;
}

static enum status read_jsonl(const char *text, struct import_file *ret, struct error *err)
{
    size_t line = 1;

    ret->rows = cJSON_CreateArray();
    for (const char *at = text; *at != '\0'; line++) {
        size_t n = strcspn(at, "\n");
        cJSON *json = NULL;
        if (n > 0 && puffer_log_parse(at, n, &json, err) != ST_OK)
            return error_prefix(err, "line %zu", line);
        if (n > 0 && !take_line(json, ret))
            return FAIL(err, ST_CORRUPT, "line %zu: an object is needed for each trial", line);
        at += n + (at[n] == '\n');
    }
    return ST_OK;
}

/* ---- a folder of PufferLib's ---- */

static enum status read_log(const char *path, cJSON *rows, struct error *err)
{
    JSON_LOCAL cJSON *log = NULL;
    MEM_LOCAL char *text = NULL;
    size_t n = 0;

    TRY(file_read_all(path, FILE_MAX_BYTES, &text, &n, err));
    enum status rc = puffer_log_parse(text, n, &log, err);
    if (rc == ST_OK && !puffer_is_log(log))
        rc = FAIL(err, ST_CORRUPT, "it is not a log of PufferLib's: there are no 'metrics' in it");
    if (rc == ST_OK)
        cJSON_AddItemToArray(rows, puffer_log_row(log));
    else
        error_prefix(err, "%s", path);
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of its .json files, sorted; the caller frees each and the list. */
static enum status list_logs(const char *path, char ***ret_names, size_t *ret_n, struct error *err)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    char **names = NULL;
    size_t n = 0, cap = 0;

    if (dir == NULL)
        return FAIL(err, ST_IO, "%s cannot be read: %s", path, strerror(errno));
    while ((entry = readdir(dir)) != NULL) {
        if (!word_ends_in(entry->d_name, ".json"))
            continue;
        MEM_ROOM(names, n, cap);
        names[n++] = mem_strdup(entry->d_name);
    }
    closedir(dir);
    if (n > 1)
        qsort((void *)names, n, sizeof *names, by_name);
    *ret_names = names;
    *ret_n = n;
    return ST_OK;
}

static enum status read_folder(const char *path, struct import_file *ret, struct error *err)
{
    char **names = NULL, file[PATH_MAX];
    size_t n = 0;
    enum status rc = ST_OK;

    ret->rows = cJSON_CreateArray();
    TRY(list_logs(path, &names, &n, err));
    if (n == 0)
        rc = FAIL(err, ST_USAGE,
                  "import: the folder %s has no file that ends in .json; PufferLib's runs of a game are in logs/GAME",
                  path);
    for (size_t i = 0; i < n; i++) {
        bool fits = snprintf(file, sizeof file, "%s/%s", path, names[i]) < (int)sizeof file;
        THEN(rc, fits ? read_log(file, ret->rows, err) : FAIL(err, ST_USAGE, "import: the path %s is too long", path));
        mem_free(names[i]);
    }
    mem_free((void *)names);
    return rc;
}

static enum status read_sqlite(const char *path, const char *from, struct import_file *ret, struct error *err)
{
    bool maximize = false;

    if (!optuna_is_storage(path))
        return read_store(path, from, ret, err);
    TRY(optuna_read(path, from, &ret->rows, &maximize, err));
    ret->direction = maximize ? "maximize" : "minimize";
    return ST_OK;
}

static enum status read_text(const char *text, size_t n, struct import_file *ret, struct error *err)
{
    if (memchr(text, '\0', n) != NULL)
        return FAIL(err, ST_CORRUPT,
                    "holds a NUL byte, so it is not text; CSV, JSON lines, a store, a storage of Optuna's "
                    "or a folder of PufferLib's logs is needed");
    TRY(text[0] == '{' ? read_jsonl(text, ret, err) : csv_parse(text, n, &ret->rows, err));
    if (ret->study == NULL && ret->rows->child == NULL)
        return FAIL(err, ST_CORRUPT,
                    "holds no trial; a CSV needs a header and a line for each, JSON lines an object for each");
    return ST_OK;
}

enum status import_file_read(const char *path, const char *from, struct import_file *ret, struct error *err)
{
    static const char sqlite[] = "SQLite format 3"; /* with its NUL */
    struct stat info;
    char *text = NULL;
    size_t n = 0;
    enum status rc;

    *ret = (struct import_file){0};
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        rc = read_folder(path, ret, err);
        if (rc != ST_OK)
            import_file_free(ret);
        return rc;
    }
    TRY(file_read_all(path, FILE_MAX_BYTES, &text, &n, err));
    if (n >= sizeof sqlite && memcmp(text, sqlite, sizeof sqlite) == 0) {
        mem_free(text);
        rc = read_sqlite(path, from, ret, err);
    } else {
        rc = read_text(text, n, ret, err);
        mem_free(text);
        if (rc != ST_OK)
            error_prefix(err, "%s", path);
    }
    if (rc != ST_OK)
        import_file_free(ret);
    return rc;
}
