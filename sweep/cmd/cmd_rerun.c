/* cmd_rerun.c - `trawl rerun`: trains a trial's stored config again, with its own seed to see the same bytes, or with
 * fresh seeds to see how much of its score was luck. Here: words in, what is loaded. */
#include "base/os/file.h"
#include "study/view/checkpoint_label.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "sweep/game_output.h"
#include "sweep/cmd/commands.h"
#include "sweep/rerun/rerun_show.h"
#include "sweep/rerun/rerun_store.h"
#include "sweep/rerun/rerun_train.h"
#include "sweep/worker/session.h"

#define SEEDS_MAX 1000
#define SEEDS_NOT_GIVEN (-1) /* no user can give it */

/* A CPU run's bytes depend on its number of threads. Where the config leaves that to the machine, the stored device
 * names their number: "Intel(R) Xeon(R) ... (2 threads, SkylakeX)". */
static enum status keep_threads(struct rerun *r, struct error *err)
{
    const char *at = r->trial.device != NULL ? strrchr(r->trial.device, '(') : NULL;
    struct setup_override override = {.key = "train.threads"};
    struct setup *setup = NULL;
    unsigned n;

    if (r->setup->train.threads != 0 || at == NULL || sscanf(at, "(%u thread", &n) != 1 || n == 0)
        return ST_OK;
    snprintf(override.value, sizeof override.value, "%u", n);
    TRY(setup_derive(r->setup, &override, 1, "stored device", &setup, err));
    setup_destroy(r->setup);
    r->setup = setup;
    return ST_OK;
}

/* How the study counts costs, and which outcomes it needs. */
static enum status load_search(struct rerun *r, struct error *err)
{
    AT_END(search_destroy_at) struct search *search = search_create();

    TRY(search_from_json(r->study.space, search, err));
    r->cost_kind = search->cost;
    r->outcomes = search->outcomes;
    return ST_OK;
}

/* Seeds under which the study has the trial's config. */
static enum status load_seeds(struct rerun *r, struct store *store, struct error *err)
{
    struct trial *trials;
    size_t n;

    TRY(store_trial_list(store, r->study.id, &trials, &n, err));
    r->had_seeds = mem_array(n, sizeof *r->had_seeds);
    for (size_t i = 0; i < n; i++)
        if (trials[i].params != NULL && r->trial.params != NULL && strcmp(trials[i].params, r->trial.params) == 0)
            r->had_seeds[r->n_had++] = trials[i].seed;
    trial_list_free(trials, n);
    return ST_OK;
}

static enum status load(struct rerun *r, const char *name, struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;

    TRY(store_open_reader(&store, r->store_path, err));
    TRY(store_study_find(store, name, &r->study, err));
    if (strcmp(r->study.method, TRAIN_TRACK_METHOD) == 0)
        return FAIL(err, ST_USAGE,
                    "rerun: %s is a training alone, whose result is not in the store; train its config again", name);
    TRY(load_search(r, err));
    TRY(store_trial_find(store, r->study.id, r->number, &r->trial, err));
    if (r->trial.state < TRIAL_DONE)
        return FAIL(err, ST_USAGE,
                    "rerun: trial %lld of %s is %s; only one that has ended has a result to compare with",
                    (long long)r->number, name, trial_state_name(r->trial.state));
    TRY(store_checkpoint_path(store, r->trial.id, &r->checkpoint, err));
    if (r->n_seeds > 0)
        TRY(load_seeds(r, store, err));
    TRY(trial_setup(&r->trial, &r->setup, err));
    return keep_threads(r, err);
}

/* Weights can be compared with the trial's own checkpoint alone. */
static void check_checkpoint(struct rerun *r)
{
    char owner[CHECKPOINT_LABEL_MAX], ours[CHECKPOINT_LABEL_MAX], maker[CHECKPOINT_LABEL_MAX];
    bool exists = r->checkpoint != NULL && file_exists(r->checkpoint), is_other;

    if (r->checkpoint == NULL)
        return;
    checkpoint_owner(&r->study, &r->trial, ours, sizeof ours);
    is_other = exists && checkpoint_read_label(r->checkpoint, owner, maker, sizeof owner, NULL) == ST_OK &&
               owner[0] != '\0' && strcmp(owner, ours) != 0;
    if (exists && !is_other)
        return;
    if (is_other)
        log_warn("%s is the checkpoint of %s, not of %s; weights are not compared", r->checkpoint, owner, ours);
    else
        log_warn("the trial's checkpoint %s is gone, so its weights are not compared", r->checkpoint);
    mem_free(r->checkpoint);
    r->checkpoint = NULL;
}

static void warn_of_extended(const struct rerun *r)
{
    int64_t from;

    if (trial_extends(&r->trial, &from))
        log_warn(
            "trial %lld of %s extends trial %lld from its checkpoint; it is trained from the start here, which gives "
            "the same only where nothing is annealed",
            (long long)r->trial.number, r->study.name, (long long)from);
}

/* Stores the runs that are not stored yet. */
static enum status keep(struct rerun *r, struct error *err)
{
    struct error why = {0};

    if (r->no_store || r->n_seeds == 0 || r->trial.state != TRIAL_DONE)
        return ST_OK;
    if (rerun_store(r, &why) == ST_OK)
        return ST_OK;
    /* No fault of the command line, whatever the status of adding says. */
    return FAIL(err, ST_IO, "rerun: %zu of %zu runs are not in the store: %s", r->n - r->n_stored, r->n, why.text);
}

/* Each run is in the store before it is printed; where it cannot be stored, the next run tries that once more. */
static enum status train_all(struct rerun *r, struct error *err)
{
    bool is_logged = false;

    rerun_begin(r);
    while (r->n < rerun_n_wanted(r)) {
        struct error why = {0};
        TRY(rerun_train(r, err));
        if (keep(r, &why) != ST_OK && !is_logged && r->n < rerun_n_wanted(r)) {
            log_warn("%s; the next run tries again", why.text);
            is_logged = true;
        }
        rerun_print_progress(r);
    }
    return ST_OK;
}

static enum status run(struct rerun *r, const char *name, struct error *err)
{
    enum status rc, kept = ST_OK;
    struct error why = {0};

    TRY(load(r, name, err));
    check_checkpoint(r);
    if (r->output != NULL) /* not over the weights to compare with */
        TRY(check_output(r->output, OUTPUT_CHECKPOINT, (const char *const[]){r->checkpoint}, 1, err));
    warn_of_extended(r);
    game_output_begin("rerun", r->setup->env);
    rc = train_all(r, err);
    game_output_end(rc != ST_OK);
    if (rc == ST_OK && r->n_seeds == 0)
        return rerun_print_compared(r, err);
    if (r->n > 0 && (rc == ST_OK || rc == ST_INTERRUPTED)) { /* what was trained is worth showing */
        kept = keep(r, &why);
        rerun_print_spread(r); /* also what could not be stored */
    }
    if (kept != ST_OK && rc == ST_OK)
        return FAIL(err, kept, "%s", why.text);
    if (kept != ST_OK)
        log_warn("%s", why.text);
    if (rc == ST_INTERRUPTED)
        return FAIL(err, rc, "interrupted after %zu of %lld runs", r->n, (long long)(r->n_seeds > 0 ? r->n_seeds : 1));
    return rc;
}

static enum status check_usage(const struct rerun *r, struct error *err)
{
    if (r->number < 0)
        return FAIL(err, ST_USAGE, "rerun: which trial? --trial N; `trawl show NAME` lists them");
    if (r->n_seeds != SEEDS_NOT_GIVEN && (r->n_seeds < 1 || r->n_seeds > SEEDS_MAX))
        return FAIL(err, ST_USAGE, "rerun: --seeds is %lld, 1 to %d are allowed", (long long)r->n_seeds, SEEDS_MAX);
    if (r->n_seeds > 0 && r->output != NULL)
        return FAIL(err, ST_USAGE, "rerun: -o saves the run with the stored seed; leave --seeds out");
    return ST_OK;
}

enum status cmd_rerun(int argc, char **argv, struct error *err)
{
    struct rerun r = {.store_path = "trawl.db", .number = -1, .n_seeds = SEEDS_NOT_GIVEN, .params_equal = -1};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &r.store_path, "FILE", "the store (trawl.db)"},
        {"trial", 't', CLI_INT, &r.number, "N", "the trial's number, as `trawl show` lists it"},
        {"seeds", 0, CLI_INT, &r.n_seeds, "K", "train K times with fresh seeds and print mean and spread"},
        {"no-store", 0, CLI_FLAG, &r.no_store, NULL, "only print: do not add the runs of --seeds to the study"},
        {"checkpoint", 'o', CLI_TEXT, &r.output, "FILE", "save the trained policy here (not with --seeds)"},
        {"json", 0, CLI_FLAG, &r.json, NULL, "print one JSON object"},
        {"quiet", 'q', CLI_FLAG, &r.quiet, NULL, "show no progress"},
    };
    const struct cli cli = {
        .name = "rerun",
        .synopsis = "trawl rerun NAME --trial N [--seeds K [--no-store]] [-o FILE] [--store FILE] [--json]",
        .about =
            "Trains the config of a trial again. Without --seeds: with the trial's own seed, and compares "
            "score,\nsteps and (if a checkpoint was kept) weights with the stored ones; on the same device and "
            "program\nthey are equal to the bit, and the exit code is 1 if they are not. A trial that extends another\n"
            "(`trawl extend`) is trained from the start, which may give another result. With --seeds K: K times\n"
            "with fresh seeds, for the mean of score and cost with its 95 % interval, and how typical the stored\n"
            "score is; the runs become trials of the study, so that its front and its models know them. A trial\n"
            "that was picked as the best of many was often a lucky one.",
        .examples = "  trawl rerun first --trial 17 --store my.db\n"
                    "  trawl rerun first --trial 17 --store my.db --seeds 10",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a study's name (`trawl ls` lists them)"),
    };
    enum status rc = cli_parse(&cli, argc, argv, &words, err);

    if (rc != ST_OK || words.help)
        return rc;
    rc = check_usage(&r, err);
    if (r.n_seeds == SEEDS_NOT_GIVEN)
        r.n_seeds = 0;
    THEN(rc, run(&r, words.v[0], err));
    session_close(&r.session);
    setup_destroy(r.setup);
    for (int64_t i = 0; r.runs != NULL && i < (r.n_seeds > 0 ? r.n_seeds : 1); i++)
        mem_free(r.runs[i].outcomes);
    mem_free(r.runs);
    mem_free(r.stored);
    mem_free(r.had_seeds);
    mem_free(r.checkpoint);
    trial_free(&r.trial);
    study_free(&r.study);
    return rc;
}
