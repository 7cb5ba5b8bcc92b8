/* cmd_sweep.c - `trawl sweep`: starts a study or resumes one, and runs it.
 * Invariants: (1) everything that can be wrong with the config is found before the store is touched; (2) a resumed
 * study keeps its config, space and method: only its limits and the devices that it runs on may change, and ranges may
 * become wider. */
#include "base/text/duration.h"
#include "study/setup/limits.h"
#include "study/space/search_widen.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/handover.h"
#include "sweep/control/command/submit.h"
#include "sweep/launch/devices.h"
#include "sweep/launch/remote_devices.h"
#include "sweep/launch/slurm_nodes.h"
#include "sweep/controller/sched_study.h"
#include "sweep/controller/trial/track_rows.h"
#include "sweep/show/study_json.h"
#include "sweep/show/summary.h"
#include "sweep/signals.h"

#define INTERRUPTED_FLUSH_S 10 /* the user is waiting for the prompt */

/* --trials, --budget and the like are short for options of the config. *ret_any: one was given. */
static enum status set_shorthands(const struct sweep_cmd *s, bool *ret_any, struct error *err)
{
    const struct {
        const char *name, *key, *text; /* text NULL: the number */
        int64_t number; /* -1: not given */
    } words[] = {{"--trials", "sweep.trials", NULL, s->trials},
                 {"--seed", "sweep.seed", NULL, s->seed},
                 {"--runs-per-device", "sweep.runs_per_device", NULL, s->runs_per_device},
                 {"--budget", "sweep.budget", s->budget, -1},
                 {"--wall-time", "sweep.wall_time", s->wall_time, -1},
                 {"--target", "sweep.target", s->target, -1},
                 {"--devices", "sweep.devices", s->devices, -1},
                 {"--track", "track.trackers", s->track, -1}};
    char number[32];

    *ret_any = false;
    for (size_t i = 0; i < COUNT(words); i++) {
        if (words[i].text == NULL && words[i].number < 0)
            continue;
        snprintf(number, sizeof number, "%lld", (long long)words[i].number);
        TRY(config_set(s->setup->config, CONFIG_COMMAND, words[i].key, words[i].text != NULL ? words[i].text : number,
                       words[i].name, err));
        *ret_any = true;
    }
    return ST_OK;
}

/* Was the option named in the command, by itself or by a shorthand? */
static bool is_given(const struct sweep_cmd *s, const char *key)
{
    const char *origin = config_origin(s->setup->config, key);

    return origin != NULL && (strcmp(origin, "command line") == 0 || strncmp(origin, "--", 2) == 0);
}

void sweep_new_limits(const struct sweep_cmd *s, struct limits *ret)
{
    struct limits want;

    *ret = s->ss->view.study.limits;
    if (!s->has_config)
        return;
    limits_from_settings(&s->setup->sweep, &want);
    if (is_given(s, "sweep.trials"))
        ret->trials_max = want.trials_max;
    if (is_given(s, "sweep.budget"))
        ret->budget_s = want.budget_s;
    if (is_given(s, "sweep.wall_time"))
        ret->wall_max_s = want.wall_max_s;
    if (is_given(s, "sweep.device_time"))
        ret->device_max_s = want.device_max_s;
    if (is_given(s, "sweep.min_gain"))
        ret->gain_min = want.gain_min;
    if (is_given(s, "sweep.target")) {
        ret->has_target = want.has_target;
        ret->target_score = want.target_score;
    }
}

/* The stored study, with its lock: where another controller has that, it waits if it is to. */
static enum status open_study(struct sweep_cmd *s, const char *name, struct error *err)
{
    struct error why = {0};
    enum status rc = sched_study_open(&s->ss, s->store, name, &why);

    while (rc == ST_BUSY && s->standby) {
        log_info("standing by: %.*s", (int)strcspn(why.text, ";"), why.text); /* without what to do */
        signals_catch();
        TRY(store_stand_by(s->store_path, name, signals_stop, err));
        error_clear(&why);
        rc = sched_study_open(&s->ss, s->store, name, &why);
        if (rc == ST_OK)
            log_info("%s: the controller of %s has ended; this one continues it", s->store_path, name);
    }
    return rc == ST_OK ? ST_OK : error_set(err, rc, "%s", why.text);
}

/* The scheduler with the devices that the study asks for. */
static enum status take_devices(struct sweep_cmd *s, const struct setup *setup, const struct search *search,
                                struct error *err)
{
    MEM_LOCAL struct devices *devices = mem_alloc(sizeof *devices);

    TRY(devices_parse(&setup->sweep, setup->train.device, devices, err));
    TRY(remote_devices_expand(devices, &setup->sweep, err));
    TRY(scheduler_create(&s->sched, devices, err));
    TRY(scheduler_check(s->sched, setup, search, err));
    s->sched->hang_timeout_s = setup->sweep.hang_timeout_s;
    return ST_OK;
}

static enum status begin_study(struct sweep_cmd *s, struct error *err)
{
    AT_END(submission_free) struct submission submission = {0};
    AT_END(search_destroy_at) struct search *search = search_create();

    TRY(submission_make(s->setup, s->name, s->from, &submission, err));
    TRY(search_from_json(submission.study.space, search, err));
    TRY(search_bind(search, s->setup, err));
    TRY(take_devices(s, s->setup, search, err)); /* a study of which no trial can run is not stored */
    if (s->from != NULL && !store_may_exist(s->store_path))
        return FAIL(err, ST_NOTFOUND, "%s: no such store, so there is no study %s to learn from; check --store",
                    s->store_path, s->from);
    TRY(store_open_controller(&s->store, s->store_path, err));
    TRY(slurm_nodes_create(&s->sched->launcher, &s->setup->sweep, store_path(s->store), s->name, err));
    TRY(submission_store(s->store, &submission, err));
    return open_study(s, s->name, err);
}

/* "1e-8" and "0.00000001" are the same value. */
static bool same_value(const struct opt_def *opt, const char *a, const char *b)
{
    double x, y;

    if (opt->type != OPT_STR && config_parse_value(opt, a, &x, NULL) == ST_OK &&
        config_parse_value(opt, b, &y, NULL) == ST_OK)
        return x == y;
    return strcmp(a, b) == 0;
}

/* Limits, and what belongs to the machine rather than to the study. */
static bool may_change(const char *key)
{
    return sweep_option_is_apart(key) || strcmp(key, "sweep.trial_time") == 0 || strcmp(key, "sweep.grace_s") == 0 ||
           strcmp(key, "sweep.device_costs") == 0;
}

/* The space of the given config against that of the study. */
static enum status check_space(const struct sweep_cmd *s, struct search *ret_wider, bool *ret_is_wider,
                               struct error *err)
{
    AT_END(search_destroy_at) struct search *want = search_create();

    TRY(search_from_setup(s->setup, want, err));
    TRY(search_from_json(s->ss->view.study.space, ret_wider, err));
    TRY(search_bind(ret_wider, s->ss->setup, err));
    return search_widen(ret_wider, want, ret_is_wider, err);
}

static bool is_searched(const struct search *search, const char *key)
{
    return search_find(search, key) < search->space.dim;
}

/* A program's study continues with the parameters that it was begun with; those that are searched are compared with the
 * space. */
static enum status check_same_params(const struct sweep_cmd *s, const struct opt_table *stored,
                                     const struct opt_table *now, struct error *err)
{
    char key[CONFIG_KEY_MAX];
    size_t k;

    for (size_t i = 0; i < now->n_defs; i++) {
        for (k = 0; k < stored->n_defs && strcmp(stored->defs[k].key, now->defs[i].key) != 0;)
            k++;
        snprintf(key, sizeof key, PROGRAM_SECTION ".%.80s", now->defs[i].key);
        if (k == stored->n_defs && now->defs[i].type == OPT_STR)
            return FAIL(err, ST_CONFIG,
                        "%s: the study %s was begun without %s; drop it, or start a new study with --name",
                        config_origin(s->setup->config, key), s->resume, key);
    }
    for (k = 0; k < stored->n_defs; k++) {
        snprintf(key, sizeof key, PROGRAM_SECTION ".%.80s", stored->defs[k].key);
        if (config_peek(s->setup->config, key) == NULL && !is_searched(&s->ss->view.search, key))
            return FAIL(
                err, ST_CONFIG,
                "the study %s was begun with %s = %s, which the config lacks; add it, or start a new study with "
                "--name",
                s->resume, key, config_peek(s->ss->setup->config, key));
    }
    return ST_OK;
}

enum status sweep_check_same(const struct sweep_cmd *s, struct search *ret_wider, bool *ret_is_wider, struct error *err)
{
    const struct setup *stored = s->ss->setup;
    const struct opt_table *tables[SETUP_TRIAL_TABLES + 1];
    size_t n_tables = setup_trial_tables(stored, tables);

    tables[n_tables++] = &sweep_opt_table;
    if (s->setup->env != stored->env)
        return FAIL(err, ST_CONFIG, "the study %s trains on %s, not on %s; start a new study with --name", s->resume,
                    stored->env->name, s->setup->env->name);
    for (size_t t = 0; t < n_tables; t++)
        for (size_t i = 0; i < tables[t]->n_defs; i++) {
            char key[CONFIG_KEY_MAX];
            snprintf(key, sizeof key, "%s.%s", tables[t]->section, tables[t]->defs[i].key);
            if (may_change(key) || (stored->sweep.is_program && is_searched(&s->ss->view.search, key)))
                continue; /* where a program's range starts may follow from the range */
            const char *ours = config_peek(s->setup->config, key);
            const char *theirs = config_peek(stored->config, key);
            if (ours != NULL && theirs != NULL && !same_value(&tables[t]->defs[i], ours, theirs))
                return FAIL(err, ST_CONFIG,
                            "%s: %s is %s, the study %s was begun with %s; leave it, or start a new study with --name",
                            config_origin(s->setup->config, key), key, ours[0] != '\0' ? ours : "empty", s->resume,
                            theirs[0] != '\0' ? theirs : "none");
        }
    TRY(check_same_params(s, &stored->params.table, &s->setup->params.table, err));
    return check_space(s, ret_wider, ret_is_wider, err);
}

/* The study's own config and ranges, for options of the command that change some of them. */
static enum status load_stored(struct sweep_cmd *s, struct error *err)
{
    AT_END(store_close_at) struct store *reader = NULL;
    AT_END(study_free) struct study study = {0};
    AT_END(search_destroy_at) struct search *search = search_create();
    char name[160];
    enum status rc = store_open_reader(&reader, s->store_path, err);
    STRBUF(text, OUTPUT_MAX_BYTES);

    if (rc == ST_VERSION) { /* an older store: opened for writing it is brought up to date */
        error_clear(err);
        rc = store_open_controller(&reader, s->store_path, err);
    }
    TRY(rc);
    TRY(store_study_find(reader, s->resume, &study, err));
    TRY(search_from_json(study.space, search, err));
    strbuf_add(&text, study.config);
    search_to_ini(search, &text);
    TRY(strbuf_status(&text, "the study's config", err));
    snprintf(name, sizeof name, "study %.120s", s->resume);
    return config_load_text(s->setup->config, name, text.text, err);
}

/* The machine's part of the config, and its trackers, are those of today. */
static void take_machine(struct sweep_cmd *s)
{
    struct sweep_settings *to = &s->ss->setup->sweep;
    const struct sweep_settings *from = &s->setup->sweep;

    memcpy(to->devices, from->devices, sizeof to->devices);
    memcpy(to->device_costs, from->device_costs, sizeof to->device_costs);
    memcpy(to->launcher, from->launcher, sizeof to->launcher);
    memcpy(to->ssh, from->ssh, sizeof to->ssh);
    memcpy(to->remote_program, from->remote_program, sizeof to->remote_program);
    memcpy(to->worker_memory, from->worker_memory, sizeof to->worker_memory);
    to->runs_per_device = from->runs_per_device;
    to->hang_timeout_s = from->hang_timeout_s;
    s->ss->setup->track = s->setup->track;
}

static enum status take_space(struct sweep_cmd *s, struct error *err)
{
    AT_END(search_destroy_at) struct search *wider = search_create();
    bool is_wider = false;

    TRY(sweep_check_same(s, wider, &is_wider, err));
    if (is_wider) {
        TRY(sched_study_take_space(s->ss, wider, err));
        log_info("the study's ranges are wider now; its trials count as before");
    }
    return ST_OK;
}

static enum status resume_study(struct sweep_cmd *s, struct error *err)
{
    struct limits want;

    TRY(store_open_controller(&s->store, s->store_path, err));
    TRY(open_study(s, s->resume, err));
    if (s->has_config) {
        TRY(take_space(s, err));
        take_machine(s);
    }
    TRY(take_devices(s, s->ss->setup, &s->ss->view.search, err));
    TRY(slurm_nodes_create(&s->sched->launcher, &s->ss->setup->sweep, store_path(s->store), s->resume, err));
    sweep_new_limits(s, &want);
    return limits_change(s->store, &s->ss->view.study, &want, err);
}

/* A study whose trials have all failed is a failure, with the reason. */
enum status sweep_check_any_done(const struct study_view *v, struct error *err)
{
    size_t i = v->n;

    if (study_view_count(v, TRIAL_DONE) > 0 || study_view_count(v, TRIAL_FAILED) == 0)
        return ST_OK;
    while (v->trials[i - 1].state != TRIAL_FAILED)
        i--;
    return FAIL(err, ST_LIMIT, "no trial of %s is done, %lld failed, the last because: %s", v->study.name,
                (long long)study_view_count(v, TRIAL_FAILED),
                v->trials[i - 1].reason != NULL ? v->trials[i - 1].reason : "it gave no reason");
}

/* A limit that leaves a resumed study nothing to do. */
static void log_nothing_done(const struct sched_study *ss)
{
    if (ss->n_started > 0 || ss->end.rule == NULL)
        return;
    if (strcmp(ss->end.rule, "trials") == 0 || strcmp(ss->end.rule, "budget") == 0)
        log_info("%s; a larger --%s continues it", ss->end.text, ss->end.rule);
    else
        log_info("%s", ss->end.text);
}

/* A study that was interrupted or failed is not resumed by the next daemon, but only by a command. */
static void leave_paused(struct sweep_cmd *s, enum status rc, const struct error *err)
{
    struct error why = {0};
    bool interrupted = rc == ST_INTERRUPTED || signals_stop(); /* also while it waited for a lock or for space */

    if (s->ss->end.rule == NULL &&
        sched_study_set_state(s->ss, STUDY_PAUSED, interrupted ? "interrupted" : "error",
                              interrupted ? "interrupted; --resume continues it" : err->text, &why) != ST_OK)
        log_debug("%s", why.text);
}

static enum status schedule(struct sweep_cmd *s, struct error *err)
{
    const struct setup *setup = s->ss->setup;

    TRY(scheduler_add(s->sched, s->ss, err));
    TRY(sched_study_set_state(s->ss, STUDY_RUNNING, NULL, NULL, err));
    controller_socket_open(&s->socket, s->store, s->sched, false);
    if (s->ss->no_workers && !s->quiet)
        log_info("its trials are for %s%s%sclients: `trawl agent %s %s -- PROGRAM {argv}`, or by HTTP `trawl serve "
                 "--store %s --control`",
                 setup_is_program(setup) ? "" : "nodes: `trawl node --store ",
                 setup_is_program(setup) ? "" : SHELL_WORD(s->store_path), setup_is_program(setup) ? "" : "`, and ",
                 SHELL_WORD(s->store_path), s->ss->view.study.name, SHELL_WORD(s->store_path));
    progress_begin(&s->progress, s->sched, s->ss, s->quiet);
    enum status rc = scheduler_run(s->sched, err);
    progress_end(&s->progress);
    controller_socket_close(&s->socket);
    if (rc == ST_OK && s->ss->err.status != ST_OK)
        rc = FAIL(err, s->ss->err.status, "%s", s->ss->err.text);
    log_nothing_done(s->ss);
    if (s->ss->track != NULL && study_view_advise(&s->ss->view, NULL) != ST_OK)
        log_debug("the report for the trackers is without the models' conclusions");
    track_rows_close(s->ss->track, &s->ss->view, rc == ST_INTERRUPTED ? "interrupted" : s->ss->end.text,
                     rc == ST_INTERRUPTED ? fmin(setup->track.flush_s, INTERRUPTED_FLUSH_S) : setup->track.flush_s);
    s->ss->track = NULL;
    scheduler_destroy(s->sched);
    s->sched = NULL;
    return rc;
}

/* The whole study, with the texts that the controller has freed. */
static enum status print_json(struct sweep_cmd *s, struct error *err)
{
    AT_END(study_view_free) struct study_view view = {0};

    TRY(study_view_load(s->store, s->ss->view.study.name, &view, err));
    return study_view_print_json(&view, s->store_path, err);
}

/* Adds the command that resumes the study to a failure that does not name it. */
static enum status add_resume(const struct sweep_cmd *s, enum status rc, struct error *err)
{
    char text[ERROR_TEXT_MAX];

    if (rc == ST_OK || err == NULL || strstr(err->text, "--resume") != NULL)
        return rc;
    snprintf(text, sizeof text, "%s", err->text);
    STRBUF(store, OUTPUT_MAX_BYTES);
    strbuf_add_shell(&store, s->store_path);
    error_clear(err);
    rc = FAIL(err, rc, "%s; continue with `trawl sweep --resume %s --store %s`", text, s->ss->view.study.name,
              store.text);
    return rc;
}

static enum status run_study(struct sweep_cmd *s, struct error *err)
{
    const struct study_view *v = &s->ss->view;

    signals_catch();
    enum status rc = schedule(s, err);
    if (rc != ST_OK && v->study.state == STUDY_RUNNING)
        leave_paused(s, rc, err);
    if (rc == ST_INTERRUPTED)
        (void)FAIL(err, rc, "interrupted");
    rc = add_resume(s, rc, err);
    if (s->json) {
        struct error print_err = {0};
        if (print_json(s, &print_err) != ST_OK && rc == ST_OK)
            rc = FAIL(err, print_err.status, "%s", print_err.text);
    } else {
        struct error print_err = {0};
        if (progress_print_summary(&s->ss->view, s->store_path, &print_err) != ST_OK && rc == ST_OK)
            rc = FAIL(err, print_err.status, "%s", print_err.text);
    }
    THEN(rc, sweep_check_any_done(v, err));
    return rc;
}

static enum status check_time(const char *name, const char *text, struct error *err)
{
    double seconds;

    if (text == NULL || strcmp(text, "0") == 0 || parse_seconds(text, &seconds))
        return ST_OK;
    return FAIL(err, ST_USAGE, "sweep: --%s is '%s', a time is needed, like 90s, 30m or 2h, or 0 for none", name, text);
}

static enum status check_usage(struct sweep_cmd *s, const struct cli_words *words, struct error *err)
{
    double target;

    if (s->name != NULL && s->resume != NULL)
        return FAIL(err, ST_USAGE, "sweep: give --name for a new study or --resume for an old one, not both");
    if (s->name == NULL && s->resume == NULL)
        return FAIL(err, ST_USAGE, "sweep: the study needs a name: --name NAME (or --resume NAME to continue one)");
    if (s->resume != NULL && s->from != NULL)
        return FAIL(err, ST_USAGE, "sweep: a resumed study keeps what it learned from; leave --from out");
    if (s->from != NULL && strlen(s->from) > 100)
        return FAIL(err, ST_USAGE, "sweep: --from: no study has a name that long");
    if (s->resume == NULL && words->n == 0)
        return FAIL(err, ST_USAGE, "sweep: a config file is missing; `trawl sweep --help` shows an example");
    TRY(check_time("budget", s->budget, err));
    TRY(check_time("wall-time", s->wall_time, err));
    if (s->target != NULL && !num_parse_f64(s->target, &target))
        return FAIL(err, ST_USAGE, "sweep: --target is '%s', a number is needed", s->target);
    if (s->name != NULL)
        TRY(study_name_check("sweep: --name", s->name, err));
    if (s->trials > SWEEP_TRIALS_MAX)
        return FAIL(err, ST_USAGE, "sweep: --trials is %lld, 0 to %d are allowed", (long long)s->trials,
                    SWEEP_TRIALS_MAX);
    if (s->resume != NULL && words->n == 0 && s->seed >= 0)
        return FAIL(err, ST_USAGE, "sweep: a resumed study keeps its seed; leave --seed out");
    if (s->standby && !store_is_address(s->store_path))
        return FAIL(err, ST_USAGE,
                    "sweep: --standby is for stores in PostgreSQL; with a file, end the other controller");
    return check_writable(s->store_path, err);
}

static enum status run(struct sweep_cmd *s, int argc, char **argv, const struct cli *cli, struct error *err)
{
    struct cli_words words;
    bool shorthands;
    int n_before = argc;

    TRY(setup_create(&s->setup, err));
    TRY(config_take_args(s->setup->config, &argc, argv, err));
    TRY(cli_parse_beside(cli, s->setup->config, argc, argv, &words, err));
    if (words.help)
        return cli_print_options(s->setup->config, "sweep", err);
    if (s->print_config && words.n == 0)
        return FAIL(err, ST_USAGE, "sweep: --print-config needs a config file");
    if (!s->print_config)
        TRY(check_usage(s, &words, err));
    TRY(set_shorthands(s, &shorthands, err));
    s->has_config = words.n > 0 || shorthands || argc != n_before;
    if (s->resume != NULL && !store_may_exist(s->store_path))
        return FAIL(err, ST_NOTFOUND, "%s: no such store, so there is nothing to resume; check --store", s->store_path);
    if (s->has_config) {
        TRY(words.n > 0 ? setup_load_all(s->setup, words.v, words.n, err) : load_stored(s, err));
        s->setup->searches = true;
        TRY(setup_finish(s->setup, err));
        if (s->print_config)
            return setup_print(s->setup, err);
        TRY(devices_check(&s->setup->sweep, s->setup->train.device, err));
        TRY(track_settings_check(&s->setup->track, err));
    }
    if (!s->standby && handover_is_possible(s))
        return handover_run(s, err);
    TRY(s->resume != NULL ? resume_study(s, err) : begin_study(s, err));
    return run_study(s, err);
}

enum status cmd_sweep(int argc, char **argv, struct error *err)
{
    struct sweep_cmd s = {.store_path = "trawl.db", .trials = -1, .seed = -1, .runs_per_device = -1};
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &s.store_path, "FILE",
         "the store, created if missing: a file, or postgresql://HOST/DATABASE (trawl.db)"},
        {"standby", 0, CLI_FLAG, &s.standby, NULL, "on PostgreSQL: wait while another controller has the study"},
        {"name", 0, CLI_TEXT, &s.name, "NAME", "name of the new study"},
        {"resume", 0, CLI_TEXT, &s.resume, "NAME", "resume a study of the store, up to its limits or new ones"},
        {"from", 0, CLI_TEXT, &s.from, "STUDY",
         "learn from another study of the store; if its game differs, try configs of its front once own runs agree"},
        {"trials", 0, CLI_INT, &s.trials, "N", "end at N trials in all (sweep.trials)"},
        {"budget", 0, CLI_TEXT, &s.budget, "TIME", "end at this much training in all: 90s, 30m, 2h (sweep.budget)"},
        {"wall-time", 0, CLI_TEXT, &s.wall_time, "TIME", "end after this much time by the clock (sweep.wall_time)"},
        {"target", 0, CLI_TEXT, &s.target, "SCORE", "end when the best config is expected to reach it (sweep.target)"},
        {"devices", 0, CLI_TEXT, &s.devices, "LIST",
         "auto, cpu, cuda:0,cuda:1, ssh:HOST, slurm:gpu=1*N, cmd:COMMAND (sweep.devices)"},
        {"runs-per-device", 0, CLI_INT, &s.runs_per_device, "N", "trials at a time on each (sweep.runs_per_device)"},
        {"track", 0, CLI_TEXT, &s.track, "NAMES",
         "report to experiment trackers, with commas: " TRACKER_NAMES " (track.trackers)"},
        {"seed", 0, CLI_INT, &s.seed, "S", "seed of proposals and trials (sweep.seed)"},
        {"json", 0, CLI_FLAG, &s.json, NULL, "print the study as JSON at the end, like `trawl show --json`"},
        {"print-config", 0, CLI_FLAG, &s.print_config, NULL,
         "print every value and range as a config, and run nothing"},
        {"quiet", 'q', CLI_FLAG, &s.quiet, NULL, "show no progress"},
    };
    const struct cli cli = {
        .name = "sweep",
        .synopsis =
            "trawl sweep CONFIG --name NAME [--store FILE] [--trials N] [--budget TIME] [--section.key value ...]\n"
            "       trawl sweep --resume NAME [--store FILE] [--trials N] [--budget TIME] [--sweep.SECTION.KEY.max X "
            "...]",
        .about = "Trains repeatedly, choosing hyper-parameters that promise the best score at some cost, and keeps "
                 "every\nrun in the store. What to search is in the config, one section for each parameter:\n\n"
                 "  [sweep.train.learning_rate]     its usual range\n"
                 "  [sweep.train.gamma]             or one of your own; mean is where the first trial starts\n"
                 "  min = 0.9\n"
                 "  max = 0.999\n"
                 "  mean = 0.99\n\n"
                 "A bound that is left out follows the config's own value; min = max is not searched. Trials that "
                 "cannot be\n"
                 "run (more samples in a minibatch than in a rollout) are not proposed, nor those that sweep.require "
                 "forbids.\n\n"
                 "Besides score and cost, other logged numbers can have limits and form a third objective "
                 "(docs/controller.md):\n\n"
                 "  [sweep] objective = env_steps   minimised too\n"
                 "  [sweep.limit.memory]            trials beyond it are on no front and no pick\n"
                 "  max = 4G\n\n"
                 "Any program can be the trainer: [sweep] command = python train.py {argv}, and sections "
                 "[sweep.NAME] with a type\n"
                 "for its own parameters (docs/own-trainer.md).\n\n"
                 "Ctrl-C ends cleanly; --resume continues, also after a crash, and may widen ranges: the trials still "
                 "count.",
        .examples = "  trawl sweep examples/quickstart.ini --store my.db --name first --trials 24\n"
                    "  trawl sweep --resume first --store my.db --trials 48\n"
                    "  trawl sweep --resume first --store my.db --trials 60 --sweep.train.learning_rate.max 0.3",
        CLI_OPTS(opts),
        CLI_WORDS(0, CLI_MAX_WORDS, "a config file"),
    };
    enum status rc = run(&s, argc, argv, &cli, err);

    scheduler_destroy(s.sched);
    sched_study_destroy(s.ss);
    store_close(s.store);
    setup_destroy(s.setup);
    return rc;
}
