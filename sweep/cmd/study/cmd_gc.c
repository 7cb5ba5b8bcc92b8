/* cmd_gc.c - `trawl gc`: empties the trash of a store. */
#include "base/text/json.h"
#include "store/store.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/command/control_send.h"

/* ret_unsent: (n) rows of each that its trackers have not got; mem_free. */
static enum status read_trash(const char *path, struct study **ret_studies, int64_t **ret_unsent, size_t *ret_n,
                              struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;

    TRY(store_open_reader(&store, path, err));
    enum status rc = store_trash_list(store, ret_studies, ret_n, err);
    *ret_unsent = mem_array(*ret_n, sizeof **ret_unsent);
    for (size_t i = 0; rc == ST_OK && i < *ret_n; i++)
        rc = store_outbox_count(store, (*ret_studies)[i].id, NULL, &(*ret_unsent)[i], err);
    return rc;
}

struct gc_cmd {
    const char *path;
    double older_s;
    bool json, dry_run, force;
};

static enum status purge(const char *path, const struct study *study, struct error *err)
{
    struct control_command command = {.kind = CONTROL_PURGE, .trial = -1};
    char text[512];
    bool by_controller;

    snprintf(command.study, sizeof command.study, "%s", study->name);
    return control_carry_out(path, &command, text, sizeof text, &by_controller, err);
}

/* In the trash it is called NAME~ID. */
static const char *name_before(const struct study *study, char buf[160])
{
    char mark[32];
    size_t n = strlen(study->name), n_mark = (size_t)snprintf(mark, sizeof mark, "~%lld", (long long)study->id);

    snprintf(buf, 160, "%s", study->name);
    if (n > n_mark && n < 160 && strcmp(buf + n - n_mark, mark) == 0)
        buf[n - n_mark] = '\0';
    return buf;
}

/* Empties what `older_s` and `force` allow; `kept` gets the names of studies whose trackers lack rows. */
static enum status empty_trash(const struct gc_cmd *gc, cJSON *removed, cJSON *kept, struct error *err)
{
    struct study *studies = NULL;
    MEM_LOCAL int64_t *unsent = NULL;
    size_t n = 0;
    char before[160];
    enum status rc = read_trash(gc->path, &studies, &unsent, &n, err);

    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        bool keep = unsent[i] > 0 && !gc->force;
        const char *name = name_before(&studies[i], before);
        if ((double)(clock_utc_ms() - studies[i].trashed_ms) < 1000 * gc->older_s)
            continue;
        if (!gc->dry_run && !keep)
            rc = purge(gc->path, &studies[i], err);
        if (rc != ST_OK)
            break;
        cJSON_AddItemToArray(keep ? kept : removed, cJSON_CreateString(name));
        if (!gc->json)
            printf("study %s %s\n", name,
                   gc->dry_run ? keep ? "would be kept" : "would be removed"
                   : keep      ? "is kept"
                               : "is removed");
        if (unsent[i] > 0)
            log_warn("%s: its trackers have not received %lld row%s%s", name, (long long)unsent[i], PLURAL(unsent[i]),
                     gc->force ? "" : "; `trawl rm NAME --undo` and `trawl sync NAME` send them, --force drops them");
    }
    study_list_free(studies, n);
    return rc;
}

enum status cmd_gc(int argc, char **argv, struct error *err)
{
    struct gc_cmd gc = {.path = "trawl.db"};
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &gc.path, "FILE", "the store (trawl.db)"},
        {"older", 0, CLI_SECONDS, &gc.older_s, "TIME", "only what has been in the trash for longer, like 30m or 72h"},
        {"dry-run", 0, CLI_FLAG, &gc.dry_run, NULL, "only list it"},
        {"force", 0, CLI_FLAG, &gc.force, NULL, "also studies with rows that their trackers have not received"},
        {"json", 0, CLI_FLAG, &gc.json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "gc",
        .synopsis = "trawl gc [--older TIME] [--dry-run] [--force] [--store FILE] [--json]",
        .about =
            "Empties the trash of a store: studies that `trawl rm` put there are deleted with their trials, curves,\n"
            "checkpoints and the folders of their programs (STORE.runs/NAME), for good. The store uses their space\n"
            "for new data; a copy by `trawl backup` is smaller. A study with rows that its trackers have "
            "not\nreceived is kept (exit code 1): `trawl rm NAME --undo` and `trawl sync NAME` send them.",
        .examples = "  trawl gc --dry-run --store my.db\n"
                    "  trawl gc --older 72h --store my.db",
        CLI_OPTS(opts),
    };

    CLI_PARSE(cli, words);
    JSON_LOCAL cJSON *object = cJSON_CreateObject();
    json_add_bool(object, "dry_run", gc.dry_run);
    cJSON *removed = cJSON_AddArrayToObject(object, "removed"), *kept = cJSON_AddArrayToObject(object, "kept");
    enum status rc = empty_trash(&gc, removed, kept, err);
    int n_kept = cJSON_GetArraySize(kept);
    if (rc == ST_OK && !gc.json && cJSON_GetArraySize(removed) + n_kept == 0)
        printf("nothing in the trash of %s%s\n", gc.path, gc.older_s > 0 ? " for that long" : "");
    if (rc == ST_OK && gc.json) {
        cli_print_json(object);
        object = NULL;
    }
    return rc == ST_OK && n_kept > 0 && !gc.dry_run
               ? FAIL(err, ST_LIMIT, "gc: %d stud%s kept, whose trackers lack rows", n_kept,
                      n_kept == 1 ? "y is" : "ies are")
               : rc;
}
