/* cmd_control.c - `trawl stop`, `pause`, `continue`, `add`, `priority` and `retry`: sent to the running controller of
 * the store, or written to the store where none runs.
 * Invariant: the answer names which of the two it was. */
#include "base/duration.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "store/store.h"
#include "sweep/cli.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/control_client.h"
#include "sweep/control/control_command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HANDOVER_TRIES 50 /* a controller that has just begun or is about to end: its lock and its socket differ */
#define HANDOVER_WAIT_US 100000

struct control_cmd {
    struct control_command command;
    const char *store_path, *budget;
    bool json;
    const struct cli *cli;
};

/* No controller: the store itself. */
static enum status write_store(const char *path, const struct control_command *c, char *ret_text, size_t size,
                               struct error *err)
{
    struct store *store = NULL;
    struct study study = {0};
    enum status rc = store_open_writer(&store, path, err);

    if (rc == ST_OK)
        rc = store_study_find(store, c->study, &study, err);
    if (rc == ST_OK)
        rc = control_command_apply(store, c, &study, ret_text, size, err);
    study_free(&study);
    store_close(store);
    return rc;
}

static enum status ask_controller(const char *path, const struct control_command *c, char *ret_text, size_t size,
                                  bool *ret_reached, struct error *err)
{
    cJSON *answer = NULL;
    const char *text;

    TRY(control_call(path, control_command_to_json(c), &answer, ret_reached, err));
    text = json_get_str(answer, "text");
    snprintf(ret_text, size, "%s", text != NULL ? text : "done");
    cJSON_Delete(answer);
    return ST_OK;
}

enum status control_carry_out(const char *path, const struct control_command *c, char *ret_text, size_t size,
                              bool *ret_by_controller, struct error *err)
{
    enum status rc = ST_NOTFOUND;
    int64_t pid = 0;

    for (int i = 0; i < HANDOVER_TRIES; i++) {
        struct error why = {0};
        bool reached = false;
        *ret_by_controller = store_is_held(path, &pid);
        rc = *ret_by_controller ? ask_controller(path, c, ret_text, size, &reached, &why)
                                : write_store(path, c, ret_text, size, &why);
        /* else it listens not yet or no more, or took the lock just now */
        if (*ret_by_controller ? rc == ST_OK || reached : rc != ST_BUSY)
            return rc == ST_OK ? ST_OK : FAIL(err, rc, "%s", why.text);
        usleep(HANDOVER_WAIT_US);
    }
    return FAIL(err, ST_BUSY,
                "%s is held by process %lld, which listens to no commands (a sweep of another version, or one that "
                "hangs); stop it with Ctrl-C or `kill %lld`, then try again",
                path, (long long)pid, (long long)pid);
}

static void print_answer(const struct control_cmd *c, const char *text, bool by_controller)
{
    cJSON *json;

    if (!c->json) {
        printf("%s\n", text);
        if (!by_controller && c->command.kind != CONTROL_STOP && c->command.kind != CONTROL_PAUSE)
            printf("written to %s; no controller runs it now: `trawl sweep --resume %s --store %s` or `trawl daemon` "
                   "does\n",
                   c->store_path, c->command.study, SHELL_WORD(c->store_path));
        else if (!by_controller)
            printf("written to %s; no controller was running\n", c->store_path);
        return;
    }
    json = cJSON_CreateObject();
    json_add_str(json, "command", control_kind_name(c->command.kind));
    json_add_str(json, "study", c->command.study);
    json_add_str(json, "text", text);
    json_add_str(json, "done_by", by_controller ? "controller" : "store");
    cli_print_json(json);
}

static enum status run(struct control_cmd *c, int argc, char **argv, struct error *err)
{
    struct control_command checked;
    struct cli_words words;
    char text[512] = "";
    bool by_controller = false;
    cJSON *json;
    enum status rc;

    TRY(cli_parse(c->cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    if (strlen(words.v[0]) >= sizeof c->command.study)
        return FAIL(err, ST_USAGE, "%s: no study has a name that long", c->cli->name);
    snprintf(c->command.study, sizeof c->command.study, "%s", words.v[0]);
    if (c->budget != NULL && !parse_seconds(c->budget, &c->command.budget_s))
        return FAIL(err, ST_USAGE, "%s: --budget is '%s', a time is needed, like 90s, 30m or 2h", c->cli->name,
                    c->budget);
    if (c->command.kind == CONTROL_PRIORITY && !num_parse_i64(words.v[1], &c->command.priority))
        return FAIL(err, ST_USAGE, "priority: '%s' is no whole number, 1 to %d are possible", words.v[1],
                    STUDY_PRIORITY_MAX);
    json = control_command_to_json(&c->command); /* the same checks on both sides */
    rc = control_command_from_json(json, &checked, err);
    cJSON_Delete(json);
    TRY(rc);
    if (access(c->store_path, F_OK) != 0)
        return FAIL(err, ST_NOTFOUND, "%s: no such store; check --store", c->store_path);
    TRY(control_carry_out(c->store_path, &c->command, text, sizeof text, &by_controller, err));
    print_answer(c, text, by_controller);
    return ST_OK;
}

/* ---- the commands: what all have in common, and a row for each ---- */

#define OPTS_MAX 4

static const struct control_text {
    const char *synopsis, *about, *examples;
} control_texts[CONTROL_KINDS] = {
    [CONTROL_STOP] =
        {"trawl stop NAME [--store FILE] [--json]",
         "Ends a study at once: its running trials go back into the queue and keep their checkpoints, other\n"
         "studies of the same controller continue. No finished trial is lost; `trawl continue` resumes the study.",
         "  trawl stop first --store my.db"},
    [CONTROL_PAUSE] =
        {"trawl pause NAME [--now] [--store FILE] [--json]",
         "Lets a study rest: its running trials end, no new ones begin, until `trawl continue`. With --now the\n"
         "running trials go back into the queue at once, to give the devices free.",
         "  trawl pause first --store my.db --now"},
    [CONTROL_CONTINUE] =
        {"trawl continue NAME [--store FILE] [--json]",
         "Resumes a study that was paused or stopped. One that ended at a limit needs a higher one first:\n"
         "`trawl add`.",
         "  trawl continue first --store my.db"},
    [CONTROL_ADD] = {"trawl add NAME --trials N | --budget TIME [--store FILE] [--json]",
                     "Raises a limit of a study, also while it runs. A study that had ended at this limit continues.",
                     "  trawl add first --store my.db --trials 50\n"
                     "  trawl add first --store my.db --budget 2h"},
    [CONTROL_PRIORITY] =
        {"trawl priority NAME N [--store FILE] [--json]",
         "Sets a study's share of the devices, 1 to 100: where two studies share them, one of priority 3 gets\n"
         "three times the device time of one of priority 1. New studies have 1.",
         "  trawl priority first 3 --store my.db"},
    [CONTROL_RETRY] =
        {"trawl retry NAME --trial N [--store FILE] [--json]",
         "Runs a trial that failed or was stopped once more: its config and seed become a new trial at the end of the\n"
         "study, whose limit of trials rises by one. The old row stays as it is. A study that had ended at its limit "
         "of\n"
         "trials, or with too many failures, continues.",
         "  trawl retry first --trial 17 --store my.db"},
};

static enum status control_main(enum control_kind kind, int argc, char **argv, struct error *err)
{
    struct control_cmd c = {.command = {.kind = kind, .trial = -1}, .store_path = "trawl.db"};
    struct cli_opt opts[OPTS_MAX] = {{"store", 0, CLI_TEXT, &c.store_path, "FILE", "the store (trawl.db)"},
                                     {"json", 0, CLI_FLAG, &c.json, NULL, "print one JSON object"}};
    const struct control_text *text = &control_texts[kind];
    bool with_number = kind == CONTROL_PRIORITY;
    struct cli cli = {
        .name = control_kind_name(kind),
        .synopsis = text->synopsis,
        .about = text->about,
        .examples = text->examples,
        .opts = opts,
        .n_opts = 2,
        .min_words = with_number ? 2 : 1,
        .max_words = with_number ? 2 : 1,
        .words_text = with_number ? "a study's name or its new priority" : "a study's name (`trawl ls` lists them)",
    };

    if (kind == CONTROL_PAUSE)
        opts[cli.n_opts++] =
            (struct cli_opt){"now", 0, CLI_FLAG, &c.command.now, NULL, "do not wait for the running trials"};
    if (kind == CONTROL_ADD) {
        opts[cli.n_opts++] = (struct cli_opt){"trials", 0, CLI_INT, &c.command.trials, "N", "this many trials more"};
        opts[cli.n_opts++] =
            (struct cli_opt){"budget", 0, CLI_TEXT, &c.budget, "TIME", "this much training more: 90s, 30m, 2h"};
    }
    if (kind == CONTROL_RETRY)
        opts[cli.n_opts++] =
            (struct cli_opt){"trial", 0, CLI_INT, &c.command.trial, "N", "its number, as `trawl show` lists it"};
    c.cli = &cli;
    return run(&c, argc, argv, err);
}

enum status cmd_stop(int argc, char **argv, struct error *err)
{
    return control_main(CONTROL_STOP, argc, argv, err);
}

enum status cmd_pause(int argc, char **argv, struct error *err)
{
    return control_main(CONTROL_PAUSE, argc, argv, err);
}

enum status cmd_continue(int argc, char **argv, struct error *err)
{
    return control_main(CONTROL_CONTINUE, argc, argv, err);
}

enum status cmd_add(int argc, char **argv, struct error *err)
{
    return control_main(CONTROL_ADD, argc, argv, err);
}

enum status cmd_priority(int argc, char **argv, struct error *err)
{
    return control_main(CONTROL_PRIORITY, argc, argv, err);
}

enum status cmd_retry(int argc, char **argv, struct error *err)
{
    return control_main(CONTROL_RETRY, argc, argv, err);
}
