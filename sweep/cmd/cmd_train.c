/* cmd_train.c - `trawl train`: one training run, shown as it goes, with checkpoints and resume.
 * Invariants: (1) stdout holds the result alone; (2) a run that is asked to stop saves its checkpoint first. */
#include "base/text/duration.h"
#include "base/os/file.h"
#include "base/text/json.h"
#include "envs/plugin/library.h"
#include "study/view/checkpoint_label.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/cmd/curve_log.h"
#include "sweep/worker/start_parts.h"
#include "sweep/cmd/train_program.h"
#include "sweep/cmd/train_track.h"
#include "sweep/game_output.h"
#include "sweep/show/dashboard.h"
#include "sweep/signals.h"
#include "sweep/term.h"
#include "sweep/worker/evaluate.h"
#include "sweep/worker/session.h"

#define HOSTS_SAVE_S 60.0 /* between checkpoints of several hosts, where the config has none */

struct train_cmd {
    const char *checkpoint, *resume, *from_policy;
    const char *trackers, *store_path, *name, *log_dir; /* --track, --store, --name, --log-dir */
    const char *listen; /* --listen */
    int64_t n_hosts;
    struct train_hosts *hosts; /* NULL: this one alone */
    bool json, quiet, print_config;
    struct setup *setup;
    struct session session;
    struct dashboard dashboard;
    char *config_text, *label; /* label: config_text as checkpoints have it */
    double last_save_s;
    const char *last; /* the checkpoint that a training which fails continues from; NULL: there is none */
    bool saved; /* the last save, with the whole training, was made; else save_err has why not */
    struct error save_err;
    struct train_result result;
    const char *left_by; /* the host of --hosts that asked for its end; NULL: none did */
    struct eval_result eval; /* stopped: there is none */
    struct start_parts start; /* from the start of the process to the first iteration */
    struct train_track *track;
    struct curve_log *curves;
};

static bool on_metrics(void *ctx, const struct train_metrics *m)
{
    struct train_cmd *t = ctx;
    double every_s = t->setup->train.checkpoint_interval_s;

    if (every_s == 0 && t->n_hosts > 1) /* more machines, more that can be lost */
        every_s = HOSTS_SAVE_S;
    if (!t->quiet)
        dashboard_report(&t->dashboard, m);
    curve_log_add(t->curves, m);
    train_track_metrics(t->track, m, (int64_t)kern_memory_held_bytes(t->session.kern));
    if (t->checkpoint != NULL && every_s > 0 && clock_mono_s() - t->last_save_s >= every_s) {
        t->last_save_s = clock_mono_s();
        if (trainer_save(t->session.trainer, t->checkpoint, t->label, &t->save_err) == ST_OK) {
            t->last = t->checkpoint;
        } else {
            log_warn("%s; training continues, the next save is in %g s", t->save_err.text, every_s);
            error_clear(&t->save_err);
        }
    }
    return true;
}

static bool should_stop(void *ctx)
{
    struct train_cmd *t = ctx;

    return signals_stop() || train_track_stopped(t->track) || train_hosts_leaving(t->hosts) != NULL;
}

/* It ended by a signal to this host or to another one. */
static bool interrupted(const struct train_cmd *t)
{
    return signals_stop() || t->left_by != NULL;
}

/* Means over the last episodes of training. */
static cJSON *window_json(const struct train_result *r)
{
    cJSON *json = cJSON_CreateObject();

    json_add_f64(json, "score", r->window.score);
    json_add_f64(json, "perf", r->window.perf);
    json_add_f64(json, "ep_return", r->window.ep_return);
    json_add_f64(json, "ep_length", r->window.ep_length);
    json_add_f64(json, "episodes", r->window.episodes);
    return json;
}

static cJSON *result_json(const struct train_cmd *t)
{
    const struct train_result *r = &t->result;
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "env", t->setup->env->name);
    if (!t->eval.stopped)
        evaluate_add_json(json, t->setup->env, &t->eval);
    json_add(json, "train", window_json(r));
    json_add_i64(json, "env_steps", r->env_steps);
    json_add_i64(json, "updates", r->window.updates);
    json_add_f64(json, "cost_s", r->cost_s);
    json_add_f64(json, "start_s", start_parts_sum_s(&t->start));
    json_add(json, "start", start_parts_json(&t->start));
    json_add_f64(json, "first_s", r->first_s);
    json_add_f64(json, "recording_s", r->recording_s);
    json_add_f64(json, "steps_per_s", r->window.steps_per_s);
    json_add_i64(json, "n_params", r->n_params);
    json_add_i64(json, "seed", t->setup->train.seed);
    json_add_bool(json, "stopped", r->stopped || interrupted(t));
    json_add_str(json, "device", kern_device_name(t->session.kern));
    json_add_str(json, "checkpoint", t->saved ? t->checkpoint : NULL);
    json_add_str(json, "program", program_text);
    json_add(json, "profile", session_profile_json(r->window.phase_s));
    json_add_f64(json, "outside", r->window.outside);
    return json;
}

static void print_result(const struct train_cmd *t)
{
    const struct train_result *r = &t->result;
    char a[NUM_TEXT_MAX], b[NUM_TEXT_MAX], s[32], whole[32];

    if (!t->eval.stopped)
        evaluate_print(t->setup->env, &t->eval);
    if (!(r->window.episodes > 0))
        printf("in training: no episode ended in the %s steps of each agent;\n"
               "  train longer, with fewer agents, or limit the length of an episode\n",
               num_format_short((double)r->env_steps / (double)t->setup->train.total_agents, a));
    else
        printf("in training: score %.6g  perf %s  (mean of its last %.0f episodes)\n", r->window.score,
               evaluate_perf_text(r->window.perf, a), r->window.episodes);
    printf("%s steps in %s, %s from process start, %s steps/s, seed %lld\n", num_format_short((double)r->env_steps, a),
           format_seconds(r->cost_s, s), format_seconds(start_parts_sum_s(&t->start) + r->cost_s, whole),
           num_format_short(r->window.steps_per_s, b), (long long)t->setup->train.seed);
    start_parts_print(&t->start, stdout);
    if (isfinite(r->window.outside))
        printf("Python stepped the environment in %.0f %% of that time\n", 100 * r->window.outside);
    if (t->saved)
        printf("checkpoint %s; `trawl eval %s` plays it\n", t->checkpoint, SHELL_WORD(t->checkpoint));
}

/* A resumed run that has nothing left to do. */
static void log_finished(const struct train_cmd *t)
{
    const struct train_settings *set = &t->setup->train;
    struct train_metrics metrics;
    char steps[NUM_TEXT_MAX], end[NUM_TEXT_MAX];

    trainer_get_metrics(t->session.trainer, &metrics);
    if (set->max_seconds > 0 && metrics.wall_s >= set->max_seconds)
        log_info("%s has trained for %.3g s and is at its end by train.max_seconds; more than %g, or 0, continues it",
                 t->resume, metrics.wall_s, set->max_seconds);
    if (set->total_timesteps - metrics.env_steps < set->total_agents) /* no step of each is left */
        log_info("%s is at its end, with %s steps of %s; a larger --train.total_timesteps continues it", t->resume,
                 num_format_short((double)metrics.env_steps, steps),
                 num_format_short((double)set->total_timesteps, end));
}

/* What the trackers get last; what they have not got then is for `trawl sync`. */
static void report_end(struct train_cmd *t, enum status rc, const struct error *err)
{
    bool by_page = train_track_stopped(t->track);

    if (rc != ST_OK)
        train_track_result(t->track, TRIAL_FAILED, NULL, NULL, err != NULL ? err->text : NULL);
    else if (interrupted(t) && t->saved)
        train_track_pause(t->track);
    else if (interrupted(t) || by_page)
        train_track_result(t->track, TRIAL_STOPPED, &t->result, &t->eval,
                           by_page ? "stopped on its page" : "interrupted");
    else
        train_track_result(t->track, TRIAL_DONE, &t->result, &t->eval, NULL);
    train_track_close(t->track, signals_stop());
    t->track = NULL;
}

static struct train_track_options track_options(const struct train_cmd *t)
{
    return (struct train_track_options){
        .store_path = t->store_path, .name = t->name, .checkpoint = t->checkpoint, .resume = t->resume};
}

/* What a run that has ended is worth. */
static enum status evaluate_policy(struct train_cmd *t, struct error *err)
{
    struct eval_settings settings;

    eval_settings_of(&t->setup->train, &settings);
    return evaluate(t->session.trainer, &settings, t->quiet, &t->eval, err);
}

/* The game hangs, so that the training cannot be saved: its policy is. */
static void save_policy(void *ctx, char *ret_text, size_t size)
{
    const struct train_cmd *t = ctx;
    char path[1024];
    struct error err = {0};

    if (t->saved)
        snprintf(ret_text, size, "the training is saved in %s", t->checkpoint);
    else if (t->checkpoint == NULL)
        snprintf(ret_text, size, "nothing was saved (no -o FILE was given)");
    else if (snprintf(path, sizeof path, "%s.policy", t->checkpoint) >= (int)sizeof path ||
             trainer_save_policy(t->session.trainer, path, t->label, &err) != ST_OK)
        snprintf(ret_text, size, "nothing was saved: %s", err.text);
    else
        snprintf(ret_text, size, "its policy is saved in %s: `trawl eval` plays it, --from-policy begins from it",
                 path);
}

/* The maker that its checkpoints name; a resumed run logs what is different now. */
static enum status label_checkpoints(struct train_cmd *t, struct error *err)
{
    char owner[CHECKPOINT_LABEL_MAX], before[CHECKPOINT_LABEL_MAX] = "", maker[CHECKPOINT_LABEL_MAX];

    if (t->resume != NULL)
        TRY(checkpoint_read_label(t->resume, owner, before, sizeof before, err));
    checkpoint_maker(kern_device_name(t->session.kern), before, maker, sizeof maker);
    if (before[0] != '\0' && strcmp(maker, before) != 0)
        log_warn(
            "%s was made by %s; what follows is made by %s on %s, so the bytes are not those of one build or device",
            t->resume, before, program_text, kern_device_name(t->session.kern));
    return checkpoint_label(NULL, maker, t->config_text, &t->label, err);
}

static bool stop_waiting(void *ctx)
{
    (void)ctx;
    return signals_stop();
}

/* Waits for the other hosts of --hosts, for as long as it takes. */
static enum status gather_hosts(struct train_cmd *t, struct error *err)
{
    int64_t devices = t->setup->train.devices;

    if (devices < t->n_hosts)
        return FAIL(err, ST_USAGE,
                    "train: --hosts %lld, but train.devices is %lld: each host has one device of them at least",
                    (long long)t->n_hosts, (long long)devices);
    TRY(trainer_check(t->setup->env, t->setup->env_settings, &t->setup->policy, &t->setup->train,
                      err)); /* before the wait */
    TRY(train_hosts_listen(&t->hosts, (size_t)t->n_hosts, t->listen, program_text, err));
    fprintf(term_err(), "waiting for %lld other host%s; run there:\n  trawl join %s\n", (long long)t->n_hosts - 1,
            t->n_hosts > 2 ? "s" : "", train_hosts_where(t->hosts));
    t->session.by_hand = true;
    return session_gather(&t->session, t->hosts, devices, stop_waiting, NULL, err);
}

/* How it has ended, where that is not the end of a training that is whole and saved. */
static enum status end_text(const struct train_cmd *t, struct error *err)
{
    const char *by = t->left_by != NULL ? " by host " : "", *host = t->left_by != NULL ? t->left_by : "";

    if (t->checkpoint != NULL && !t->saved)
        return FAIL(err, interrupted(t) ? ST_INTERRUPTED : t->save_err.status,
                    "%sthe result is printed, but the checkpoint could not be saved: %s%s",
                    interrupted(t) ? "interrupted; " : "", t->save_err.text,
                    file_exists(t->checkpoint) ? "; what the file had before is kept" : "");
    if (!interrupted(t))
        return ST_OK;
    if (t->saved)
        return FAIL(err, ST_INTERRUPTED,
                    "interrupted%s%s; the checkpoint is saved, continue with `trawl train --resume %s`", by, host,
                    SHELL_WORD(t->checkpoint));
    return FAIL(err, ST_INTERRUPTED, "interrupted%s%s; nothing was saved (no -o FILE was given)", by, host);
}

static enum status run_training(struct train_cmd *t, struct error *err)
{
    struct train_callbacks callbacks = {.ctx = t, .on_metrics = on_metrics, .should_stop = should_stop};
    struct train_track_options tracking = track_options(t);

    TRY(setup_to_ini(t->setup, &t->config_text, err));
    start_parts_end(&t->start, "config");
    if (t->n_hosts != 1) {
        signals_catch();
        TRY(gather_hosts(t, err));
    }
    game_output_begin("train", t->setup->env);
    TRY(session_open(&t->session, t->setup, err));
    start_parts_session(&t->start, &t->session);
    if (t->resume != NULL) {
        TRY(trainer_load(t->session.trainer, t->resume, err));
        t->last = t->resume;
        log_finished(t);
    } else {
        TRY(session_begin(&t->session, t->setup, err));
    }
    TRY(label_checkpoints(t, err));
    if (t->log_dir != NULL)
        TRY(curve_log_open(&t->curves, t->setup->env, t->log_dir, t->resume != NULL, err));
    signals_bound(save_policy, t);
    TRY(train_track_open(&t->track, t->setup, t->config_text, kern_device_name(t->session.kern), &tracking, err));
    if (!t->quiet)
        dashboard_begin(&t->dashboard, t->setup->env->name, kern_device_name(t->session.kern), &t->setup->train);
    t->last_save_s = clock_mono_s();
    start_parts_end(&t->start, "reports");
    enum status rc = trainer_run(t->session.trainer, &callbacks, &t->result, err);
    t->left_by = rc == ST_OK && t->result.stopped ? train_hosts_leaving(t->hosts) : NULL;
    if (!t->quiet)
        dashboard_end(&t->dashboard);
    if (rc == ST_OK && t->checkpoint != NULL)
        t->saved = trainer_save(t->session.trainer, t->checkpoint, t->label, &t->save_err) == ST_OK;
    if (rc == ST_OK && !t->result.stopped)
        rc = evaluate_policy(t, err);
    report_end(t, rc, err);
    game_output_end(rc != ST_OK);
    if (rc != ST_OK)
        return rc;
    if (t->json)
        cli_print_json(result_json(t));
    else
        print_result(t);
    return end_text(t, err);
}

/* A resumed run continues the random streams of its checkpoint: another seed would be given and not used. */
static enum status check_seed(const struct train_cmd *t, const char *text, struct error *err)
{
    const char *given = config_peek(t->setup->config, "train.seed"), *own;
    AT_END(setup_destroy_at) struct setup *setup = NULL;

    if (strcmp(config_origin(t->setup->config, "train.seed"), "default") == 0)
        return ST_OK;
    TRY(setup_create(&setup, err));
    enum status rc = config_load_text(setup->config, t->resume, text, err);
    own = rc == ST_OK ? config_peek(setup->config, "train.seed") : NULL;
    if (own != NULL && strcmp(given, own) != 0)
        rc = FAIL(err, ST_USAGE,
                  "train: --train.seed %s, but %s continues the random streams of its seed %s; leave --train.seed out, "
                  "or begin a new run with it",
                  given, t->resume, own);
    return rc;
}

/* The config of the run: the word, or what the checkpoint holds. */
static enum status load_config(struct train_cmd *t, const struct cli_words *words, struct error *err)
{
    char *text = NULL;

    if (t->listen != NULL && t->n_hosts == 1)
        return FAIL(err, ST_USAGE, "train: --listen is where hosts join; give --hosts too");
    if (words->n > 0 && t->resume != NULL)
        return FAIL(err, ST_USAGE, "train: give a config or --resume, not both; a checkpoint holds its config");
    if (words->n == 0 && t->resume == NULL)
        return FAIL(err, ST_USAGE, "train: a game or a config file is missing; `trawl envs` lists the games");
    if (t->from_policy != NULL && t->resume != NULL)
        return FAIL(err, ST_USAGE, "train: --from-policy begins a training, --resume continues one; give one of them");
    if (t->from_policy != NULL)
        TRY(config_set(t->setup->config, CONFIG_COMMAND, "train.from_policy", t->from_policy, "--from-policy", err));
    if (t->trackers != NULL)
        TRY(config_set(t->setup->config, CONFIG_COMMAND, "track.trackers", t->trackers, "--track", err));
    if (words->n > 0) {
        TRY(setup_load_all(t->setup, words->v, words->n, err));
    } else {
        TRY(checkpoint_read_config(t->resume, &text, err));
        enum status rc = check_seed(t, text, err);
        THEN(rc, config_load_text(t->setup->config, t->resume, text, err));
        mem_free(text);
        TRY(rc);
        if (t->checkpoint == NULL)
            t->checkpoint = t->resume;
    }
    return setup_finish(t->setup, err);
}

/* The checkpoint replaces nothing that the run reads or writes, other than the checkpoint that it resumes. */
static enum status check_checkpoint(const struct train_cmd *t, const struct cli_words *words, struct error *err)
{
    const char *others[CLI_MAX_WORDS + 2];
    size_t n = 0;

    for (int i = 0; i < words->n; i++)
        if (env_find(words->v[i]) == NULL) /* a game's name is not a file */
            others[n++] = words->v[i];
    others[n++] = t->store_path;
    others[n++] = t->resume == NULL ? config_peek(t->setup->config, "train.from_policy") : NULL;
    return check_output(t->checkpoint, OUTPUT_CHECKPOINT, others, n, err);
}

/* Another program trains, and saves what it has learned. */
static enum status run_program(const struct train_cmd *t, const char *config, struct error *err)
{
    if (t->checkpoint != NULL || t->trackers != NULL || t->name != NULL || t->store_path != NULL || t->log_dir != NULL)
        return FAIL(
            err, ST_USAGE,
            "train: the config's sweep.command starts another program, which saves and reports by itself; leave "
            "-o, --track, --name, --store and --log-dir out");
    return train_program(t->setup, config, t->json, t->quiet, err);
}

/* `trawl train pong --help` shows pong's options too. */
static enum status print_options(struct setup *setup, int argc, char **argv, struct error *err)
{
    for (int i = 1; i < argc; i++)
        if (env_find(argv[i]) != NULL || env_is_outside(argv[i])) {
            const struct env_def *env;
            TRY(env_open(argv[i], &env, err));
            TRY(config_add_table(setup->config, &env->options, err));
            break;
        }
    return cli_print_options(setup->config, NULL, err);
}

/* The training is lost with a device or a host: what the user can continue from. */
static void lost_text(const struct train_cmd *t, struct error *err)
{
    const struct error why = *err;
    char hosts[40] = "";

    if (t->n_hosts > 1)
        snprintf(hosts, sizeof hosts, " --hosts %lld", (long long)t->n_hosts);
    error_clear(err);
    if (t->last != NULL)
        FAIL(err, why.status, "%s; continue from the last checkpoint with `trawl train --resume %s%s`", why.text,
             SHELL_WORD(t->last), hosts);
    else
        FAIL(err, why.status, "%s; there is no checkpoint to continue from%s", why.text,
             t->checkpoint == NULL ? " (no -o FILE was given)" : "");
}

enum status cmd_train(int argc, char **argv, struct error *err)
{
    struct train_cmd t = {.eval = {.stopped = true}, .n_hosts = 1};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"checkpoint", 'o', CLI_TEXT, &t.checkpoint, "FILE", "save the policy and the whole training state here"},
        {"resume", 0, CLI_TEXT, &t.resume, "FILE",
         "continue from a checkpoint (saved there again unless -o names another file)"},
        {"from-policy", 0, CLI_TEXT, &t.from_policy, "FILE",
         "start from the weights of a checkpoint's policy; all else is the config's (train.from_policy)"},
        {"track", 0, CLI_TEXT, &t.trackers, "NAMES",
         "report to experiment trackers, with commas: " TRACKER_NAMES " (track.trackers)"},
        {"name", 0, CLI_TEXT, &t.name, "NAME", "the run's name with the trackers (the checkpoint's, else the game's)"},
        {"store", 0, CLI_STORE, &t.store_path, "FILE",
         "where reports wait until the trackers have them (CHECKPOINT.track.db; without -o a file that is removed once "
         "all is sent)"},
        {"log-dir", 0, CLI_TEXT, &t.log_dir, "DIR",
         "write every report there too: metrics.csv, metrics.jsonl, and event files for TensorBoard"},
        {"hosts", 0, CLI_INT, &t.n_hosts, "N",
         "train on the train.devices of N hosts together; prints the `trawl join` to run on the others, and saves each "
         "minute, if not by train.checkpoint_interval_s (1)"},
        {"listen", 0, CLI_TEXT, &t.listen, "ADDRESS",
         "of this host, where the others reach it, with :PORT or a free port; :PORT alone too (its name)"},
        {"json", 0, CLI_FLAG, &t.json, NULL, "print the result as one JSON object"},
        {"print-config", 0, CLI_FLAG, &t.print_config, NULL,
         "print every value of the run as a config, and train nothing"},
        {"quiet", 'q', CLI_FLAG, &t.quiet, NULL, "show no progress"},
    };
    const struct cli cli = {
        .name = "train",
        .synopsis = "trawl train ENV|CONFIG [CONFIG ...] [--section.key value ...] [-o FILE] [--json]",
        .about = "Trains one policy by PPO on a game, by the game's defaults or config files, of which the later one\n"
                 "wins. Ctrl-C stops cleanly and saves the checkpoint if one was requested. With --track every\n"
                 "report also goes to experiment trackers, as one run, which --resume continues; rows that they "
                 "have\nnot received at the end wait for `trawl sync --store FILE`. A config with [sweep] command, "
                 "as exported\nby a sweep of another program, starts that program once.",
        .examples = "  trawl train cartpole --train.total_timesteps 2M -o cartpole.ckpt\n"
                    "  trawl train examples/breakout.ini --train.seed 7 --json >result.json\n"
                    "  trawl train pong --from-policy easy.ckpt --train.optimizer adam -o hard.ckpt\n"
                    "  trawl train default.ini pong.ini --print-config    # configs of PufferLib, in Trawl's names\n"
                    "  trawl train pong --train.devices 8 --hosts 2   # four GPUs here, four on the host that joins\n"
                    "  trawl train pong --track wandb -o pong.ckpt    # what is not sent waits in pong.ckpt.track.db",
        CLI_OPTS(opts),
        CLI_WORDS(0, CLI_MAX_WORDS, "a game or a config file"),
    };
    enum status rc;

    start_parts_begin(&t.start);
    rc = setup_create(&t.setup, err);
    THEN(rc, config_take_args(t.setup->config, &argc, argv, err));
    THEN(rc, cli_parse_beside(&cli, t.setup->config, argc, argv, &words, err));
    if (rc == ST_OK && words.help) {
        rc = print_options(t.setup, argc, argv, err);
        goto out;
    }
    THEN(rc, load_config(&t, &words, err));
    if (rc == ST_OK && t.print_config) {
        rc = setup_print(t.setup, err);
        goto out;
    }
    if (rc == ST_OK && setup_is_program(t.setup)) {
        rc = run_program(&t, words.v[0], err);
        goto out;
    }
    if (rc == ST_OK && t.checkpoint != NULL)
        rc = check_checkpoint(&t, &words, err);
    if (rc == ST_OK) {
        struct train_track_options tracking = track_options(&t);
        rc = train_track_check(t.setup, &tracking, err);
    }
    THEN(rc, run_training(&t, err));
    if (rc == ST_DEVICE && (t.last != NULL || train_hosts_lost(t.hosts)))
        lost_text(&t, err);
out:
    game_output_end(rc != ST_OK);
    curve_log_close(t.curves);
    session_close(&t.session);
    train_hosts_close(t.hosts);
    setup_destroy(t.setup);
    mem_free(t.config_text);
    mem_free(t.label);
    return rc;
}
