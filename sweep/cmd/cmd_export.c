/* cmd_export.c - `trawl export`: one trial's whole config, so that `trawl train` repeats it with the same seed; or all
 * trials of a study, for other programs and `trawl import`; or the policy of a checkpoint.
 * Invariant: what is written trains unchanged; it is never half of a file. */
#include "base/os/file.h"
#include "base/text/json.h"
#include "study/exchange/curve_files.h"
#include "study/exchange/optuna.h"
#include "study/view/export.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/cmd/policy/export_policy.h"
#include "trainer/trainer.h"
#include "web/report/report.h"

/* What is promised, to stderr; where it was seen once, how to confirm it. */
static void print_promise(const struct study_view *v, const struct trial *t, const struct export_reason *why,
                          const char *store_file, const char *path)
{
    char text[PROMISE_TEXT_MAX], cost[PROMISE_TEXT_MAX];

    fprintf(stderr, "wrote the config of trial %lld of %s to %s\n%s %s, cost %s\n", (long long)t->number, v->study.name,
            path, v->study.metric, promise_text(&why->promise, text),
            promise_cost_text(&why->promise, v->search.cost, cost));
    if (why->note != NULL)
        fprintf(stderr, "note: %s\n", why->note);
    if (why->promise.n_seeds >= 2)
        return;
    STRBUF(store, OUTPUT_MAX_BYTES);
    strbuf_add_shell(&store, store_file);
    fprintf(stderr, "unconfirmed; to run it under fresh seeds: trawl rerun %s --store %s --trial %lld --seeds %d\n",
            v->study.name, store.text, (long long)t->number, GP_PROMISE_SEEDS);
}

static enum status export_trial(const char *store, const char *study, const char *rule, enum export_format format,
                                const char *path, struct error *err)
{
    AT_END(study_view_free) struct study_view view = {0};
    struct export_reason why = {.rule = rule};
    struct gp_picked picked = {0};
    STRBUF(out, OUTPUT_MAX_BYTES);

    TRY(study_view_open(store, study, &view, err));
    TRY(study_view_advise(&view, err));
    if (export_pick(&view, rule, &picked, err) != ST_OK)
        return error_prefix(err, "export");
    why.note = picked.note;
    why.store_path = view.store_path;
    study_view_promise(&view, picked.i, &why.promise);
    TRY(export_build(&view.study, &view.trials[picked.i], &why, format, &out, err));
    if (path != NULL) {
        TRY(file_write_all(path, out.text, out.len, err));
        print_promise(&view, &view.trials[picked.i], &why, store, path);
    } else {
        fwrite(out.text, 1, out.len, stdout);
    }
    return ST_OK;
}

/* The policy of the trial that the rule picks, from the checkpoint that it left. */
static enum status export_trial_policy(const char *store_path, const char *study, const char *rule, const char *format,
                                       const char *path, const char *samples, struct error *err)
{
    STUDY_VIEW(view);
    struct gp_picked picked = {0};
    AT_END(store_close_at) struct store *store = NULL;
    MEM_LOCAL char *checkpoint = NULL;

    TRY(study_view_open(store_path, study, view, err));
    TRY(study_view_advise(view, err));
    if (export_pick(view, rule, &picked, err) != ST_OK)
        return error_prefix(err, "export");
    const struct trial *trial = &view->trials[picked.i];
    if (trial->state < TRIAL_DONE) /* its checkpoint is of a part of its training */
        return FAIL(err, ST_USAGE, "export: trial %lld of %s is %s; only one that has ended has a policy to export",
                    (long long)trial->number, study, trial_state_name(trial->state));
    TRY(store_open_reader(&store, store_path, err));
    TRY(store_checkpoint_path(store, trial->id, &checkpoint, err));
    if (checkpoint == NULL)
        return FAIL(err, ST_NOTFOUND,
                    "trial %lld of %s left no checkpoint, so its policy cannot be exported; %strain it again: trawl "
                    "export %s --store %s --pick trial=%lld -o it.ini && trawl train it.ini "
                    "-o it.ckpt",
                    (long long)trial->number, study,
                    trial_is_branch(trial, NULL) ? "" : "sweep with sweep.keep = front or all, or ", SHELL_WORD(study),
                    SHELL_WORD(store_path), (long long)trial->number);
    return export_policy(checkpoint, format, path, samples, err);
}

/* A line for the study, a line for each trial. */
static enum status add_jsonl(const struct study_view *v, struct strbuf *out, struct error *err)
{
    JSON_LOCAL cJSON *json = NULL;
    const cJSON *item;

    TRY(report_to_json(v, &json, err));
    JSON_LOCAL cJSON *study = cJSON_CreateObject();
    json_add(study, "study", cJSON_DetachItemFromObjectCaseSensitive(json, "study"));
    char *text = json_print(study, false);
    strbuf_addf(out, "%s\n", text);
    mem_free(text);
    cJSON_ArrayForEach(item, json_get(json, "trials"))
    {
        text = json_print(item, false);
        strbuf_addf(out, "%s\n", text);
        mem_free(text);
    }
    return strbuf_status(out, "the trials", err);
}

static enum status export_all(const char *store, const char *study, enum export_format format, const char *path,
                              struct error *err)
{
    STUDY_VIEW(v);
    bool is_text = format == EXPORT_CSV || format == EXPORT_JSONL;
    size_t n = 0;
    STRBUF(out, OUTPUT_MAX_BYTES);

    TRY(study_view_open(store, study, v, err));
    if (format == EXPORT_OPTUNA)
        TRY(optuna_write(v, path, err));
    else if (format == EXPORT_CURVES)
        TRY(curve_files_write(v, path, &n, err));
    else {
        TRY(study_view_advise(v, err));
        TRY(format == EXPORT_CSV ? report_write(v, NULL, REPORT_CSV, &out, err) : add_jsonl(v, &out, err));
    }
    if (is_text && path != NULL)
        TRY(file_write_all(path, out.text, out.len, err));
    else if (is_text)
        fwrite(out.text, 1, out.len, stdout);
    if (path != NULL)
        fprintf(stderr, "wrote %s%zu trial%s of %s to %s\n", is_text || format == EXPORT_OPTUNA ? "" : "the curves of ",
                format == EXPORT_CURVES ? n : v->n, PLURAL(format == EXPORT_CURVES ? n : v->n), v->study.name, path);
    return ST_OK;
}

enum status cmd_export(int argc, char **argv, struct error *err)
{
    const char *store_path = "trawl.db", *path = NULL, *format_name = NULL, *rule = NULL, *samples = NULL;
    enum export_format format = EXPORT_INI;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &store_path, "FILE", "the store: a file, or postgresql://HOST/DATABASE (trawl.db)"},
        {"pick", 'p', CLI_TEXT, &rule, "RULE", "best, best-run, knee, 'cost<=SECONDS', 'score>=X' or trial=N (best)"},
        {"output", 'o', CLI_TEXT, &path, "FILE", "where to write; - or none: stdout"},
        {"format", 'f', CLI_TEXT, &format_name, "FORMAT",
         "of one trial: ini, args (a command line) or json (for other programs); of all: csv, jsonl, optuna, "
         "curves (ini); of a policy: onnx, safetensors, header (by FILE's suffix)"},
        {"samples", 0, CLI_TEXT, &samples, "FILE",
         "of a policy: also write 64 of its decisions with the observations, to check another program against"},
    };
    const struct cli cli = {
        .name = "export",
        .synopsis =
            "trawl export NAME [--pick RULE] [--format ini|json|args|csv|jsonl|optuna|curves] [-o FILE] "
            "[--store FILE]\n       trawl export CHECKPOINT|NAME -o FILE.onnx|FILE.safetensors|FILE.h [--samples FILE]",
        .about =
            "Writes the whole config of one trial; `trawl train` runs it unchanged, with the trial's seed. The rules:\n"
            "  best           what the models of all runs together recommend, not one lucky run\n"
            "  best-run       the best score of one run\n"
            "  knee           where the front bends: more cost than this buys little score\n"
            "  cost<=SECONDS  the best score at no more than this cost (also 30m, 2h), in the unit of sweep.cost\n"
            "  score>=X       the cheapest at least this good (score<=X when the study minimizes)\n"
            "  trial=N        this one\n"
            "All trials of a study: csv has a header line, jsonl a first line with the study, its config and space; "
            "`trawl import`\nreads both. optuna is an SQLite storage for optuna-dashboard and Optuna, with score and "
            "cost as objectives;\ncurves is a folder with the learning curves of each trial, as an event file for "
            "TensorBoard, CSV and JSON lines.\n"
            "Of a checkpoint, or of a trial that kept one (sweep.keep), it writes the policy, for programs\n"
            "without Trawl (docs/export.md): as an ONNX graph, as plain numbers with their names, or as a C header\n"
            "that needs no library.",
        .examples = "  trawl export first --store my.db --pick best -o best.ini && trawl train best.ini\n"
                    "  trawl export first --store my.db --pick 'cost<=30' --format args\n"
                    "  trawl export first --store my.db -o first.csv\n"
                    "  trawl export first --format optuna -o optuna.db && optuna-dashboard sqlite:///optuna.db\n"
                    "  trawl export first --format curves -o curves && tensorboard --logdir curves\n"
                    "  trawl export cartpole.ckpt -o cartpole.onnx\n"
                    "  trawl export first --pick best -o first.onnx",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a study's name (`trawl ls` lists them), or a checkpoint"),
    };

    CLI_PARSE(cli, words);
    if (path != NULL && strcmp(path, "-") == 0) /* as elsewhere: standard output */
        path = NULL;
    /* A study named like a checkpoint would be a strange one: a file that is not there is named as such. */
    if (checkpoint_is_one(words.v[0]) || word_ends_in(words.v[0], ".ckpt"))
        return rule == NULL
                   ? export_policy(words.v[0], format_name, path, samples, err)
                   : FAIL(err, ST_USAGE, "export: %s is a checkpoint; --pick is for a study's trials", words.v[0]);
    if (export_asks_policy(format_name, path))
        return export_trial_policy(store_path, words.v[0], rule != NULL ? rule : "best", format_name, path, samples,
                                   err);
    if (samples != NULL)
        return FAIL(err, ST_USAGE, "export: --samples is for a policy: -o FILE.onnx, FILE.safetensors or FILE.h");
    if (export_find_format(format_name, path, &format, err) != ST_OK)
        return error_prefix(err, "export");
    if (path != NULL && format != EXPORT_CURVES)
        TRY(check_output(path, format == EXPORT_INI ? OUTPUT_CONFIG : OUTPUT_OTHER, NULL, 0, err));
    if (format >= EXPORT_CSV) {
        if (rule != NULL)
            return FAIL(err, ST_USAGE, "export: --pick is for one trial; %s has all of them",
                        format_name != NULL ? format_name : path);
        if (format == EXPORT_OPTUNA && path == NULL)
            return FAIL(err, ST_USAGE, "export: a storage of Optuna is a file; name it with -o");
        if (format == EXPORT_CURVES && path == NULL)
            return FAIL(err, ST_USAGE, "export: curves are a folder; name it with -o");
        return export_all(store_path, words.v[0], format, path, err);
    }
    return export_trial(store_path, words.v[0], rule != NULL ? rule : "best", format, path, err);
}
