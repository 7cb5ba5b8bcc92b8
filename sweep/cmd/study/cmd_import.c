/* cmd_import.c - `trawl import`: trials that a file holds become trials of a study.
 * Invariants: (1) every row is understood before the first is added; (2) what is imported twice is there once; (3) a
 * branch stays a branch of its run, and where that has no result, whose cost is unknown then, it is a trial like
 * others. */
#include "base/text/json.h"
#include "study/setup/setup.h"
#include "sweep/cmd/commands.h"
#include "sweep/cmd/study/import_file.h"
#include "sweep/cmd/study/import_row.h"
#include "sweep/control/ask/ask_forward.h"
#include "sweep/control/ask/ask_points.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/command/control_send.h"
#include "sweep/control/command/submit.h"
#include "sweep/controller/sched_study.h"

struct import_cmd {
    const char *path, *store_path, *study, *config, *from;
    struct import_columns columns;
    bool json;
    struct import_file file;
    cJSON *bodies; /* an array: what is to be added, null for a row without a result */
    int64_t *runs; /* (rows) the row whose run a branch is a part of; -1: no branch */
    int64_t *numbers; /* (rows) of the trials that they became, or were before; -1 */
    int64_t n_trials; /* of the study, before */
    int64_t n_added, n_before, n_repeated, n_unfinished, n_elsewhere, n_lengths;
};

/* A new study by the description in the file, or by a config. */
static enum status make_submission(const struct import_cmd *c, struct submission *ret, struct error *err)
{
    if (c->config != NULL) {
        AT_END(setup_destroy_at) struct setup *setup = NULL;
        TRY(setup_create(&setup, err));
        TRY(setup_load(setup, c->config, err));
        setup->searches = true;
        TRY(setup_finish(setup, err));
        return submission_make(setup, c->study, NULL, ret, err);
    }
    if (c->file.study == NULL)
        return FAIL(
            err, ST_USAGE,
            "import: %s has no study %s, and %s has no description of one; --config FILE.ini gives its config and "
            "the ranges of its search",
            c->store_path, c->study, c->path);
    JSON_LOCAL cJSON *json = cJSON_Duplicate(c->file.study, true);
    JSON_LOCAL cJSON *space = cJSON_DetachItemFromObjectCaseSensitive(json, "space");
    const char *direction = json_get_str(json, "direction");
    cJSON_DeleteItemFromObjectCaseSensitive(space, "from"); /* a study of the other store */
    MEM_LOCAL char *text = json_print(space, false);
    cJSON_DeleteItemFromObjectCaseSensitive(json, "trials_max");
    cJSON_DeleteItemFromObjectCaseSensitive(json, "budget_s");
    json_add_str(json, "study", c->study);
    json_add_str(json, "space", text);
    json_add_bool(json, "maximize", direction == NULL || strcmp(direction, "minimize") != 0);
    return submission_from_json(json, ret, err);
}

/* The study is there, or is made, at rest. */
static enum status ensure_study(const struct import_cmd *c, struct error *err)
{
    AT_END(submission_free) struct submission submission = {0};
    struct store *store = NULL;
    struct study study = {0};
    struct error why = {0};
    enum status rc;

    if (store_may_exist(c->store_path)) {
        TRY(store_open_reader(&store, c->store_path, err));
        rc = store_study_find(store, c->study, &study, &why);
        store_close(store);
        study_free(&study);
        if (rc == ST_OK && c->config != NULL)
            log_info("%s already has the study '%s': the trials are read by its stored config, and %s is not used",
                     c->store_path, c->study, c->config);
        if (rc != ST_NOTFOUND)
            return rc == ST_OK ? ST_OK : FAIL(err, rc, "%s", why.text);
    }
    TRY(study_name_check("import: --study", c->study, err));
    TRY(make_submission(c, &submission, err));
    rc = store_open_controller(&store, c->store_path, err);
    THEN(rc, store_study_create(store, &submission.study, err));
    THEN(rc, store_study_set_state(store, submission.study.id, STUDY_ENDED, "user",
                                   "imported by `trawl import`; `trawl continue` resumes it", err));
    store_close(store);
    return rc;
}

/* The row of the trial that has this number in the file; -1: none that has a result. */
static int64_t find_run(const struct import_cmd *c, int64_t number)
{
    const cJSON *row = c->file.rows->child, *body = c->bodies->child;

    for (int64_t i = 0; row != NULL && body != NULL; i++, row = row->next, body = body->next) {
        const char *text = import_row_text(row, "number");
        int64_t own = -1;
        if ((json_get_i64(row, "number", &own) || (text != NULL && num_parse_i64(text, &own))) && own == number)
            return cJSON_IsNull(body) ? -1 : i;
    }
    return -1;
}

/* Parameters in which two bodies differ. */
static size_t n_different(const cJSON *a, const cJSON *b)
{
    const cJSON *theirs = json_get(b, "params"), *value;
    size_t n = 0;

    cJSON_ArrayForEach(value, json_get(a, "params")) n += !cJSON_Compare(value, json_get(theirs, value->string), true);
    return n;
}

/* Which rows are branches of which. One that differs from its run in nothing that is searched here is left out. */
static enum status find_runs(struct import_cmd *c, struct error *err)
{
    const cJSON *row = c->file.rows->child;
    int64_t number;

    c->runs = mem_array((size_t)cJSON_GetArraySize(c->bodies) + 1, sizeof *c->runs);
    for (int i = 0; row != NULL; i++, row = row->next) {
        cJSON *body = cJSON_GetArrayItem(c->bodies, i);
        c->runs[i] = !cJSON_IsNull(body) && import_row_is_branch(row, &number) ? find_run(c, number) : -1;
        if (c->runs[i] < 0)
            continue;
        if (c->runs[i] == i)
            return FAIL(
                err, ST_CORRUPT,
                "import: %s, trial %d of the file: its origin says that trial %lld is a branch of itself; correct "
                "the number, or leave it out",
                c->path, i + 1, (long long)number);
        size_t n = n_different(body, cJSON_GetArrayItem(c->bodies, (int)c->runs[i]));
        if (n > 1)
            return FAIL(err, ST_CORRUPT,
                        "import: %s, trial %d of the file: it is a branch of trial %lld, which differs from it in more "
                        "than its length; leave it out",
                        c->path, i + 1, (long long)number);
        if (n == 0) {
            cJSON_ReplaceItemInArray(c->bodies, i, cJSON_CreateNull());
            c->n_lengths++;
        }
    }
    return ST_OK;
}

static enum status make_bodies(struct import_cmd *c, struct error *err)
{
    STUDY_VIEW(v);
    enum status rc = ST_OK;
    struct setup *setup;
    const cJSON *row;
    size_t n = 0;

    TRY(study_view_open(c->store_path, c->study, v, err));
    TRY(study_view_setup(v, &setup, err));
    if (c->file.direction != NULL && c->columns.score == NULL &&
        strcmp(c->file.direction, study_direction(&v->study)) != 0)
        return FAIL(err, ST_USAGE,
                    "import: %s has scores to %s, and the study %s is to %s them; set sweep.goal, or name another "
                    "objective with --score",
                    c->path, c->file.direction, c->study, study_direction(&v->study));
    c->bodies = cJSON_CreateArray();
    c->numbers = mem_array((size_t)cJSON_GetArraySize(c->file.rows) + 1, sizeof *c->numbers);
    c->n_trials = (int64_t)v->n;
    for (row = c->file.rows->child; rc == ST_OK && row != NULL; row = row->next) {
        cJSON *body = NULL;
        bool elsewhere = import_row_is_elsewhere(v, row);
        c->numbers[n++] = -1;
        c->n_elsewhere += elsewhere;
        if (!elsewhere)
            rc = import_row_body(v, row, &c->columns, &body, err);
        if (rc == ST_OK && body != NULL && (rc = ask_add_check(&v->search, body, err)) != ST_OK)
            cJSON_Delete(body);
        if (rc != ST_OK)
            error_prefix(err, "import: %s, trial %zu of the file", c->path, n);
        else
            cJSON_AddItemToArray(c->bodies, body != NULL ? body : cJSON_CreateNull());
        c->n_before += rc == ST_OK && body != NULL && import_row_is_there(v, body, &c->numbers[n - 1]);
        c->n_unfinished += rc == ST_OK && body == NULL && !elsewhere;
    }
    return rc == ST_OK ? find_runs(c, err) : rc;
}

/* ss NULL: a controller has the store. */
static enum status add_one(struct import_cmd *c, struct sched_study *ss, const cJSON *body, int64_t *ret_number,
                           struct error *err)
{
    JSON_LOCAL cJSON *answer = NULL;
    bool again = false;
    enum status rc;

    if (ss != NULL) {
        answer = cJSON_CreateObject();
        rc = ask_add(ss, body, answer, err);
    } else {
        rc = ask_forward(c->store_path, "add", c->study, -1, body, &answer, err);
    }
    if (rc == ST_OK) {
        (void)json_get_i64(answer, "trial", ret_number);
        (void)json_get_bool(answer, "again", &again);
        c->n_before += again && *ret_number < c->n_trials;
        c->n_repeated += again && *ret_number >= c->n_trials;
        c->n_added += !again;
    }
    return rc;
}

static enum status add_rows(struct import_cmd *c, struct sched_study *ss, bool branches, struct error *err)
{
    cJSON *body = c->bodies->child;

    for (size_t i = 0; body != NULL; i++, body = body->next) {
        if ((c->runs[i] >= 0) != branches)
            continue;
        if (cJSON_IsNull(body) || c->numbers[i] >= 0)
            continue;
        if (branches)
            json_add_i64(body, "branch_of", c->numbers[c->runs[i]]);
        if (add_one(c, ss, body, &c->numbers[i], err) != ST_OK)
            return error_prefix(err, "import: %s, trial %zu of the file", c->path, i + 1);
    }
    return ST_OK;
}

static enum status add_all(struct import_cmd *c, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;
    struct sched_study *ss = NULL;
    enum status rc = ST_OK;
    int64_t pid;

    if (!store_is_held(c->store_path, c->study, &pid)) {
        rc = store_open_controller(&store, c->store_path, err);
        THEN(rc, sched_study_open(&ss, store, c->study, err));
    }
    for (int turn = 0; rc == ST_OK && turn < 2; turn++) /* runs before their branches */
        rc = add_rows(c, ss, turn == 1, err);
    sched_study_destroy(ss);
    return rc;
}

/* What was dropped there is dropped here. */
static enum status drop_all(const struct import_cmd *c, struct error *err)
{
    const cJSON *row = c->file.rows->child;

    for (size_t i = 0; row != NULL; i++, row = row->next) {
        const char *why = import_row_text(row, "dropped");
        struct control_command command = {.kind = CONTROL_DROP, .trial = c->numbers[i]};
        char text[512];
        bool by_controller;
        if (why == NULL || c->numbers[i] < 0)
            continue;
        snprintf(command.study, sizeof command.study, "%s", c->study);
        snprintf(command.text, sizeof command.text, "%s", why);
        TRY(control_carry_out(c->store_path, &command, text, sizeof text, &by_controller, err));
    }
    return ST_OK;
}

/* Its own trials, once more, would count as further runs of their configs. */
static enum status check_is_another(const struct import_cmd *c, struct error *err)
{
    const char *name = json_get_str(c->file.study, "name");

    if (!cli_is_same_file(c->path, c->store_path) || name == NULL || strcmp(name, c->study) != 0)
        return ST_OK;
    return FAIL(err, ST_USAGE,
                "import: %s holds the study %s itself, so its trials are there; --from names another study", c->path,
                c->study);
}

static void print_more(int64_t n, const char *one, const char *many)
{
    if (n > 0)
        printf("; %lld %s", (long long)n, n == 1 ? one : many);
}

static void print_done(const struct import_cmd *c)
{
    if (c->json) {
        cJSON *json = cJSON_CreateObject();
        json_add_str(json, "study", c->study);
        json_add_i64(json, "added", c->n_added);
        json_add_i64(json, "there_before", c->n_before);
        json_add_i64(json, "repeated", c->n_repeated);
        json_add_i64(json, "left_out", c->n_unfinished + c->n_elsewhere + c->n_lengths);
        json_add_i64(json, "other_games", c->n_elsewhere);
        cli_print_json(json);
        return;
    }
    printf("%lld trial%s of %s %s now in the study %s", (long long)c->n_added, c->n_added == 1 ? "" : "s", c->path,
           c->n_added == 1 ? "is" : "are", c->study);
    print_more(c->n_before, "was there before", "were there before");
    print_more(c->n_repeated, "repeats another row of the file", "repeat other rows of the file");
    print_more(c->n_unfinished, "without a result (queued, running, lost) was left out",
               "without a result (queued, running, lost) were left out");
    print_more(c->n_elsewhere, "of another game was left out", "of another game were left out");
    print_more(c->n_lengths, "branch was left out, since the study does not search how long a run is",
               "branches were left out, since the study does not search how long a run is");
    printf("\n");
}

enum status cmd_import(int argc, char **argv, struct error *err)
{
    struct import_cmd c = {.store_path = "trawl.db"};
    const struct cli_opt opts[] = {
        {"study", 0, CLI_TEXT, &c.study, "NAME", "the study that gets the trials; created if missing"},
        {"config", 0, CLI_TEXT, &c.config, "FILE",
         "config and ranges of a created study (.jsonl and stores have their own)"},
        {"from", 0, CLI_TEXT, &c.from, "NAME", "which study of another store or storage (its only one)"},
        {"score", 0, CLI_TEXT, &c.columns.score, "COLUMN", "the scores (score, else the study's metric)"},
        {"cost", 0, CLI_TEXT, &c.columns.cost, "COLUMN",
         "the costs, in the study's unit (cost, else cost_s, uptime or Runtime)"},
        {"store", 0, CLI_STORE, &c.store_path, "FILE", "the store (trawl.db)"},
        {"json", 0, CLI_FLAG, &c.json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "import",
        .synopsis = "trawl import FILE --study NAME [--config FILE] [--from NAME] [--score COLUMN] [--cost COLUMN] "
                    "[--store FILE] [--json]",
        .about =
            "Adds trials of a file to a study, where they teach the models like its own. The file is CSV with a "
            "header, as\n`trawl export` or the table of a tracker (W&B: export as CSV) writes it, JSON lines, another "
            "store, an SQLite\nstorage of Optuna's, or a folder of PufferLib's logs (logs/GAME). A parameter's column "
            "has its name\n(train.learning_rate, train/learning_rate or learning_rate), or PufferLib's. A trial that "
            "is imported twice\nis kept once; curves and checkpoints are not imported.",
        .examples = "  trawl import first.csv --study again --config my.ini --store new.db\n"
                    "  trawl import their.db --from first --study theirs --store my.db\n"
                    "  trawl import wandb.csv --study mine --config my.ini --score eval/return\n"
                    "  trawl import optuna.db --study mine --config my.ini --store new.db\n"
                    "  trawl import logs/breakout --study puffer --config breakout.ini --store my.db",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a file or a folder"),
    };

    CLI_PARSE(cli, words);
    c.path = words.v[0];
    if (c.study == NULL)
        return FAIL(err, ST_USAGE, "import: give --study NAME");
    enum status rc = import_file_read(c.path, c.from, &c.file, err);
    THEN(rc, check_is_another(&c, err));
    THEN(rc, ensure_study(&c, err));
    THEN(rc, make_bodies(&c, err));
    THEN(rc, add_all(&c, err));
    THEN(rc, drop_all(&c, err));
    if (rc == ST_OK)
        print_done(&c);
    mem_free(c.numbers);
    mem_free(c.runs);
    cJSON_Delete(c.bodies);
    import_file_free(&c.file);
    return rc;
}
