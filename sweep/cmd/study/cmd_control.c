/* cmd_control.c - commands on a study that go to its controller, or to the store where none runs: `trawl stop`,
 * `pause`, `continue`, `add`, `priority`, `retry`, `confirm`, `extend`, `drop`, `rename`, `note`, `tag` and `rm`. A row
 * of the table for each. */
#include "base/text/duration.h"
#include "gp/gp.h"
#include "store/store.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/command/control_send.h"

#define OPTS_MAX 4

struct control_cmd {
    struct control_command command;
    const char *store_path, *budget, *reason, *steps;
    bool json;
};

#define STUDY_WORD "a study's name (`trawl ls` lists them)"

static const struct control_text {
    const char *synopsis, *about, *examples;
    int min_words, max_words;
    const char *words_text;
} control_texts[CONTROL_KINDS] = {
    [CONTROL_STOP] =
        {"trawl stop NAME [--store FILE] [--json]",
         "Ends a study at once: its running trials go back into the queue and keep their checkpoints, other\n"
         "studies of the same controller continue. No finished trial is lost; `trawl continue` resumes the study.",
         "  trawl stop first --store my.db\n"
         "  trawl stop first --store my.db && trawl report first --store my.db -o report.html",
         1, 1, STUDY_WORD},
    [CONTROL_PAUSE] =
        {"trawl pause NAME [--now] [--store FILE] [--json]",
         "Pauses a study: its running trials end, and no new ones begin until `trawl continue`. With --now the\n"
         "running trials go back into the queue at once, to free the devices.",
         "  trawl pause first --store my.db\n"
         "  trawl pause first --store my.db --now",
         1, 1, STUDY_WORD},
    [CONTROL_CONTINUE] =
        {"trawl continue NAME [--store FILE] [--json]",
         "Resumes a study that was paused or stopped. One that ended at a limit needs a higher limit\n(`trawl add`) "
         "to continue.",
         "  trawl continue first --store my.db\n"
         "  trawl continue first --store my.db --json",
         1, 1, STUDY_WORD},
    [CONTROL_ADD] = {"trawl add NAME --trials N | --budget TIME [--store FILE] [--json]",
                     "Raises a limit of a study, also while it runs. A study that had ended at this limit continues.",
                     "  trawl add first --store my.db --trials 50\n"
                     "  trawl add first --store my.db --budget 2h",
                     1, 1, STUDY_WORD},
    [CONTROL_PRIORITY] =
        {"trawl priority NAME N [--store FILE] [--json]",
         "Sets a study's share of the devices, 1 to 100: where two studies share them, one of priority 3 gets\n"
         "three times the device time of one of priority 1. New studies have 1.",
         "  trawl priority first 3 --store my.db\n"
         "  trawl priority first 1 --store my.db           # the default",
         2, 2, "a study's name or its new priority"},
    [CONTROL_RETRY] =
        {"trawl retry NAME N [--store FILE] [--json]",
         "Runs a trial that failed or was stopped once more: its config and seed become a new trial at the end of the\n"
         "study, whose limit of trials rises by one. The old row stays as it is. A study that had ended at its limit\n"
         "of trials, or with too many failures, continues.",
         "  trawl retry first 17 --store my.db\n"
         "  trawl retry first --trial 17 --json",
         1, 2, STUDY_WORD},
    [CONTROL_CONFIRM] =
        {"trawl confirm NAME N [--seeds K] [--store FILE] [--json]",
         "Queues the config of a finished trial under fresh seeds (5), to see whether its score was luck; the\nlimit "
         "of trials rises by that number, and a study that had ended at it continues. `trawl rerun --seeds` trains\n"
         "them at once, here.",
         "  trawl confirm first 17 --store my.db\n"
         "  trawl confirm first 17 --seeds 10",
         1, 2, STUDY_WORD},
    [CONTROL_EXTEND] =
        {"trawl extend NAME N --steps FACTORx|TOTAL [--store FILE] [--json]",
         "Trains a finished trial for longer: a new trial begins at its kept checkpoint, with its curve so far, and\n"
         "ends at the new total of steps. Its score, steps and cost are those of the whole training, also in the\n"
         "study's budget; its learning rate is annealed over the new total. The limit of trials rises by one.\n"
         "sweep.keep decides which trials keep their checkpoints. If the study does not "
         "search\ntrain.total_timesteps, or not that far, models and front ignore the new trial, since it would "
         "count as\na second seed; `trawl drop --undo` makes it count.",
         "  trawl extend first 17 --steps 2x --store my.db\n"
         "  trawl extend first --trial 17 --steps 20M --json",
         1, 2, STUDY_WORD},
    [CONTROL_DROP] =
        {"trawl drop NAME N --reason TEXT | --undo [--store FILE] [--json]",
         "Makes the models and the front of a study ignore a trial that has ended, for a reason that pages "
         "and\n`trawl show` display: its machine was busy, its metric was wrong. Nothing is deleted, its cost "
         "still\ncounts and its config is not proposed again (`trawl try` queues it). --undo makes it count again.",
         "  trawl drop first 17 --reason 'the machine was busy' --store my.db\n"
         "  trawl drop first 17 --undo --store my.db",
         2, 2, "a study's name or a trial's number"},
    [CONTROL_RENAME] =
        {"trawl rename NAME NEW [--store FILE] [--json]",
         "Gives a study another name, with its checkpoints and the folders of its programs. No controller "
         "may be running it.\n"
         "Runs in trackers keep their names.",
         "  trawl rename first pong-wide --store my.db\n"
         "  trawl rename old new",
         2, 2, "a study's name or its new name"},
    [CONTROL_NOTE] =
        {"trawl note NAME [N] TEXT [--store FILE] [--json]",
         "Writes a note on a study, or on its trial N, for `trawl show`, pages and JSON. It replaces an earlier note;\n"
         "--undo instead of TEXT removes it.",
         "  trawl note first 'with the old reward' --store my.db\n"
         "  trawl note first 17 'diverged after 2M steps' --store my.db",
         1, 3, "a study's name or the text"},
    [CONTROL_TAG] = {"trawl tag NAME [N] TAG [--undo] [--store FILE] [--json]",
                     "Adds a tag, one word, to a study or to its trial N; --undo removes it.",
                     "  trawl tag first paper --store my.db\n"
                     "  trawl tag first 17 odd --undo --store my.db",
                     2, 3, "a study's name or the tag"},
    [CONTROL_RM] = {"trawl rm NAME [--undo] [--store FILE] [--json]",
                    "Moves a study to the trash of its store, under the name NAME~ID, which frees its name. A study "
                    "that runs is refused.\n"
                    "--undo restores the newest of that name; `trawl gc` empties the trash.",
                    "  trawl rm first --store my.db\n"
                    "  trawl rm first --undo --store my.db",
                    1, 1, STUDY_WORD},
};

static enum status take_trial(struct control_cmd *c, const char *word, struct error *err)
{
    if (num_parse_i64(word, &c->command.trial) && c->command.trial >= 0)
        return ST_OK;
    return FAIL(err, ST_USAGE, "%s: '%s' is not a trial number; `trawl show %s` lists them",
                control_kind_name(c->command.kind), word, c->command.study);
}

static enum status take_text(struct control_cmd *c, const char *text, struct error *err)
{
    if (strlen(text) >= sizeof c->command.text)
        return FAIL(err, ST_USAGE, "%s: the text has %zu bytes; up to %d are allowed",
                    control_kind_name(c->command.kind), strlen(text), CONTROL_TEXT_MAX - 1);
    snprintf(c->command.text, sizeof c->command.text, "%s", text);
    return ST_OK;
}

/* "first" stands for the newest study of that name in the trash, "first~3". */
static enum status find_in_trash(struct control_cmd *c, struct error *err)
{
    struct store *store = NULL;
    struct study *studies = NULL;
    size_t n = 0, length = strlen(c->command.study);
    bool found = false;

    TRY(store_open_reader(&store, c->store_path, err));
    enum status rc = store_trash_list(store, &studies, &n, err);
    for (size_t i = n; rc == ST_OK && !found && i-- > 0;) {
        const char *name = studies[i].name;
        found = strcmp(name, c->command.study) == 0 ||
                (strncmp(name, c->command.study, length) == 0 && name[length] == '~');
        if (found)
            snprintf(c->command.study, sizeof c->command.study, "%s", name);
    }
    study_list_free(studies, n);
    store_close(store);
    if (rc == ST_OK && !found)
        rc = FAIL(err, ST_NOTFOUND, "rm: the trash of %s has no study '%s'; `trawl gc --dry-run` lists what it has",
                  c->store_path, c->command.study);
    return rc;
}

/* The words after the study's name. */
static enum status take_words(struct control_cmd *c, const struct cli_words *words, struct error *err)
{
    struct control_command *command = &c->command;
    bool is_note = command->kind == CONTROL_NOTE;

    switch (command->kind) {
    case CONTROL_PRIORITY:
        return num_parse_i64(words->v[1], &command->priority)
                   ? ST_OK
                   : FAIL(err, ST_USAGE, "priority: '%s' is not a whole number, 1 to %d are allowed", words->v[1],
                          STUDY_PRIORITY_MAX);
    case CONTROL_RETRY:
    case CONTROL_CONFIRM:
    case CONTROL_EXTEND:
    case CONTROL_DROP:
        if (words->n > 1)
            TRY(take_trial(c, words->v[1], err));
        if (c->steps != NULL)
            return take_text(c, c->steps, err);
        return c->reason != NULL ? take_text(c, c->reason, err) : ST_OK;
    case CONTROL_RENAME:
        return take_text(c, words->v[1], err);
    case CONTROL_NOTE:
    case CONTROL_TAG:
        if (is_note && words->n == 1 && !command->undo)
            return FAIL(err, ST_USAGE, "note: give a text: `trawl note %s [N] TEXT`", command->study);
        if (words->n == 3 || (is_note && command->undo && words->n == 2))
            TRY(take_trial(c, words->v[1], err));
        return is_note && command->undo ? ST_OK : take_text(c, words->v[words->n - 1], err);
    case CONTROL_RM:
        return command->undo ? find_in_trash(c, err) : ST_OK;
    default:
        return ST_OK;
    }
}

static enum status run(struct control_cmd *c, const struct cli *cli, int argc, char **argv, struct error *err)
{
    struct cli_words words;

    TRY(cli_parse(cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    if (strlen(words.v[0]) >= sizeof c->command.study)
        return FAIL(err, ST_USAGE, "%s: no study has a name that long", cli->name);
    snprintf(c->command.study, sizeof c->command.study, "%s", words.v[0]);
    if (c->budget != NULL && !parse_seconds(c->budget, &c->command.budget_s))
        return FAIL(err, ST_USAGE, "%s: --budget is '%s', a time is needed, like 90s, 30m or 2h", cli->name, c->budget);
    TRY(take_words(c, &words, err));
    return control_send(c->store_path, &c->command, c->json, err);
}

/* What only this command takes. */
static size_t own_options(struct control_cmd *c, struct cli_opt *opts)
{
    struct control_command *command = &c->command;

    switch (command->kind) {
    case CONTROL_PAUSE:
        opts[0] = (struct cli_opt){"now", 0, CLI_FLAG, &command->now, NULL, "do not wait for the running trials"};
        return 1;
    case CONTROL_ADD:
        opts[0] = (struct cli_opt){"trials", 0, CLI_INT, &command->trials, "N", "this many more trials"};
        opts[1] = (struct cli_opt){"budget", 0, CLI_TEXT, &c->budget, "TIME", "this much more training: 90s, 30m, 2h"};
        return 2;
    case CONTROL_RETRY:
        opts[0] = (struct cli_opt){"trial", 0, CLI_INT, &command->trial, "N", "its number, as `trawl show` lists it"};
        return 1;
    case CONTROL_CONFIRM:
        command->trials = GP_PROMISE_SEEDS;
        opts[0] = (struct cli_opt){"trial", 0, CLI_INT, &command->trial, "N", "its number, as `trawl show` lists it"};
        opts[1] = (struct cli_opt){"seeds", 0, CLI_INT, &command->trials, "K", "runs under fresh seeds (5)"};
        return 2;
    case CONTROL_EXTEND:
        opts[0] = (struct cli_opt){"trial", 0, CLI_INT, &command->trial, "N", "its number, as `trawl show` lists it"};
        opts[1] = (struct cli_opt){"steps", 0, CLI_TEXT, &c->steps, "X", "the new total: 2x, or env steps like 20M"};
        return 2;
    case CONTROL_DROP:
        opts[0] = (struct cli_opt){"reason", 0, CLI_TEXT, &c->reason, "TEXT", "why"};
        opts[1] = (struct cli_opt){"undo", 0, CLI_FLAG, &command->undo, NULL, "make it count again"};
        return 2;
    case CONTROL_NOTE:
    case CONTROL_TAG:
    case CONTROL_RM:
        opts[0] = (struct cli_opt){"undo",   0,
                                   CLI_FLAG, &command->undo,
                                   NULL,     command->kind == CONTROL_RM ? "restore it from the trash" : "remove it"};
        return 1;
    default:
        return 0;
    }
}

enum status cmd_control(int argc, char **argv, struct error *err)
{
    struct control_cmd c = {.command = {.trial = -1}, .store_path = "trawl.db"};
    enum control_kind kind = (enum control_kind)0;

    while (kind < CONTROL_KINDS && strcmp(argv[0], control_kind_name(kind)) != 0)
        kind = (enum control_kind)(kind + 1);
    if (kind == CONTROL_KINDS || control_texts[kind].synopsis == NULL)
        return FAIL(err, ST_INTERNAL, "no command '%s'", argv[0]);
    c.command.kind = kind;
    struct cli_opt opts[OPTS_MAX] = {{"store", 0, CLI_STORE, &c.store_path, "FILE", "the store (trawl.db)"},
                                     {"json", 0, CLI_FLAG, &c.json, NULL, "print one JSON object"}};
    const struct control_text *text = &control_texts[kind];
    const struct cli cli = {
        .name = argv[0],
        .synopsis = text->synopsis,
        .about = text->about,
        .examples = text->examples,
        .opts = opts,
        .n_opts = 2 + own_options(&c, opts + 2),
        .min_words = text->min_words,
        .max_words = text->max_words,
        .words_text = text->words_text,
    };

    return run(&c, &cli, argc, argv, err);
}
