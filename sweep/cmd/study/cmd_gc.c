/* cmd_gc.c - `trawl gc`: empties the trash of a store. */
#include "base/os/clock.h"
#include "base/text/json.h"
#include "base/status.h"
#include "store/store.h"
#include "sweep/cli.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/command/control_send.h"

#include <stdio.h>
#include <string.h>

static enum status read_trash(const char *path, struct study **ret_studies, size_t *ret_n, struct error *err)
{
    struct store *store = NULL;

    TRY(store_open_reader(&store, path, err));
    enum status rc = store_trash_list(store, ret_studies, ret_n, err);
    store_close(store);
    return rc;
}

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

enum status cmd_gc(int argc, char **argv, struct error *err)
{
    const char *path = "trawl.db";
    double older_s = 0;
    bool json = false, dry_run = false;
    struct cli_words words;
    struct study *studies = NULL;
    size_t n = 0, n_gone = 0;
    char before[160];
    cJSON *names;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &path, "FILE", "the store (trawl.db)"},
        {"older", 0, CLI_SECONDS, &older_s, "TIME", "only what has been in the trash for longer, like 30m or 72h"},
        {"dry-run", 0, CLI_FLAG, &dry_run, NULL, "only list it"},
        {"json", 0, CLI_FLAG, &json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "gc",
        .synopsis = "trawl gc [--older TIME] [--dry-run] [--store FILE] [--json]",
        .about =
            "Empties the trash of a store: studies that `trawl rm` put there are deleted with their trials, curves,\n"
            "checkpoints and the folders of their programs (STORE.runs/NAME), for good. The store uses their space\n"
            "for what comes next; a copy by `trawl backup` is as small as what is left.",
        .examples = "  trawl gc --dry-run --store my.db\n"
                    "  trawl gc --older 72h --store my.db",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .words_text = "",
    };

    TRY(cli_parse(&cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    TRY(read_trash(path, &studies, &n, err));
    enum status rc = ST_OK;
    names = cJSON_CreateArray();
    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        if ((double)(clock_utc_ms() - studies[i].trashed_ms) < 1000 * older_s)
            continue;
        if (!dry_run)
            rc = purge(path, &studies[i], err);
        if (rc != ST_OK)
            break;
        const char *name = name_before(&studies[i], before);
        cJSON_AddItemToArray(names, cJSON_CreateString(name));
        n_gone++;
        if (!json)
            printf("study %s %s\n", name, dry_run ? "would be removed" : "is removed");
    }
    if (rc == ST_OK && !json && n_gone == 0)
        printf("nothing in the trash of %s%s\n", path, older_s > 0 ? " for that long" : "");
    if (rc == ST_OK && json) {
        cJSON *object = cJSON_CreateObject();
        json_add_bool(object, "dry_run", dry_run);
        json_add(object, "removed", names);
        names = NULL;
        cli_print_json(object);
    }
    cJSON_Delete(names);
    study_list_free(studies, n);
    return rc;
}
