/* setup.c - the resolved config of a run: the game's defaults, file, command line, foreign names.
 * Invariants: (1) a finished setup's structs agree with its config's texts; (2) a derived setup differs from its base
 * only in the overrides and in having no sweep sections. */
#include "study/setup/setup.h"

#include "base/text/duration.h"
#include "base/os/file.h"
#include "envs/plugin/env_config.h"
#include "envs/plugin/library.h"
#include "envs/gym/gym.h"
#include "store/store.h"
#include "study/program/program_command.h"

#define INI_MAX_BYTES (1u << 20)

static enum status setup_create_tables(struct setup **ret_setup, bool with_sweep, struct error *err)
{
    struct setup *setup = mem_alloc(sizeof *setup);
    enum status rc;

    setup->has_sweep = with_sweep;
    setup->config = config_create();
    if ((rc = config_add_table(setup->config, &env_opt_table, err)) != ST_OK ||
        (rc = config_add_table(setup->config, &policy_opt_table, err)) != ST_OK ||
        (rc = config_add_table(setup->config, &train_opt_table, err)) != ST_OK ||
        (with_sweep && (rc = config_add_table(setup->config, &sweep_opt_table, err)) != ST_OK) ||
        (with_sweep && (rc = config_add_table(setup->config, &program_opt_table, err)) != ST_OK) ||
        (with_sweep && (rc = config_add_table(setup->config, &track_opt_table, err)) != ST_OK)) {
        setup_destroy(setup);
        return rc;
    }
    *ret_setup = setup;
    return ST_OK;
}

enum status setup_create(struct setup **ret_setup, struct error *err)
{
    return setup_create_tables(ret_setup, true, err);
}

void setup_destroy(struct setup *setup)
{
    if (setup == NULL)
        return;
    config_destroy(setup->config);
    for (size_t k = 0; k < SWEEP_ENVS_MAX; k++)
        setup_destroy(setup->games[k]);
    sweep_envs_free(&setup->envs);
    dialect_end(&setup->dialect);
    program_params_free(&setup->params);
    mem_free(setup->env_settings);
    mem_free(setup);
}

enum status setup_load(struct setup *setup, const char *word, struct error *err)
{
    char hint[ENV_HINT_MAX];

    if (env_find(word) != NULL || env_is_gym(word))
        return config_set(setup->config, CONFIG_FILE, "env.name", word, "command line", err);
    if (env_is_library(word))
        return env_config_set_library(setup->config, word, err);
    if (checkpoint_is_one(word))
        return FAIL(
            err, ST_USAGE,
            "%s is a checkpoint and no config: `trawl train --resume %s` continues its training, `trawl eval %s` "
            "plays it",
            word, SHELL_WORD(word), SHELL_WORD(word));
    if (!word_ends_in(word, ".py") && (file_exists(word) || strchr(word, '/') != NULL || word_ends_in(word, ".ini")))
        return config_load_file(setup->config, word, err);
    return FAIL(err, ST_CONFIG, "'%s' is neither a game nor a config%s", word, env_hint(word, hint));
}

enum status setup_load_all(struct setup *setup, const char *const *words, int n, struct error *err)
{
    const char *game = NULL;

    for (int i = 0; i < n; i++) {
        bool is_game = env_find(words[i]) != NULL || env_is_outside(words[i]);
        if (is_game && game != NULL)
            return FAIL(err, ST_USAGE, "two games are named, %s and %s; one is trained at a time", game, words[i]);
        game = is_game ? words[i] : game;
        TRY(setup_load(setup, words[i], err));
    }
    return ST_OK;
}

/* Options of the third objective, which belong together. */
static enum status take_objective(struct setup *setup, struct error *err)
{
    const struct sweep_settings *s = &setup->sweep;
    struct outcomes *o = &setup->outcomes;

    if (strlen(s->objective) >= sizeof o->third)
        return FAIL(err, ST_CONFIG, "%s: sweep.objective is longer than %zu letters",
                    config_origin(setup->config, "sweep.objective"), sizeof o->third - 1);
    if (s->objective[0] != '\0' && strcmp(s->objective, s->metric) == 0)
        return FAIL(err, ST_CONFIG, "%s: sweep.objective is '%s', which is the score already (sweep.metric)",
                    config_origin(setup->config, "sweep.objective"), s->objective);
    snprintf(o->third, sizeof o->third, "%s", s->objective);
    o->third_max = s->objective_goal == 1;
    o->third_log = s->objective_scale == 1;
    return ST_OK;
}

static const struct train_metric_def *find_metric(const char *name)
{
    for (size_t i = 0; i < train_n_metric_defs; i++)
        if (strcmp(train_metric_defs[i].name, name) == 0)
            return &train_metric_defs[i];
    return NULL;
}

static enum status check_time(const struct setup *setup, const char *key, const char *text, struct error *err)
{
    double s;

    if (strcmp(text, "0") == 0 || parse_seconds(text, &s))
        return ST_OK;
    return FAIL(err, ST_CONFIG, "%s: %s is '%s', a time is needed, like 90s, 30m or 2h, or 0 for none",
                config_origin(setup->config, key), key, text);
}

/* An own cost takes the place of the device's seconds in a trial's row. */
static enum status check_own_cost(const struct setup *setup, struct error *err)
{
    const char *cost = config_peek(setup->config, "sweep.cost");

    if (cost == NULL || strcmp(cost, "own") != 0)
        return ST_OK;
    if (!setup->sweep.is_program)
        return FAIL(
            err, ST_CONFIG,
            "%s: sweep.cost = own is what a program reports (sweep.command, or clients of sweep.devices = none); "
            "Trawl's own trainer has wall, device and env_steps",
            config_origin(setup->config, "sweep.cost"));
    return strcmp(setup->sweep.device_time, "0") == 0
               ? ST_OK
               : FAIL(err, ST_CONFIG,
                      "%s: sweep.device_time does not go with sweep.cost = own; use sweep.budget or wall_time",
                      config_origin(setup->config, "sweep.device_time"));
}

static enum status check_limits(const struct setup *setup, struct error *err)
{
    double value;

    TRY(check_own_cost(setup, err));

    TRY(check_time(setup, "sweep.budget", setup->sweep.budget, err));
    TRY(check_time(setup, "sweep.wall_time", setup->sweep.wall_time, err));
    TRY(check_time(setup, "sweep.device_time", setup->sweep.device_time, err));
    if (!parse_seconds(setup->sweep.gain_window, &value))
        return FAIL(err, ST_CONFIG, "%s: sweep.gain_window is '%s', a time is needed, like 30m or 2h",
                    config_origin(setup->config, "sweep.gain_window"), setup->sweep.gain_window);
    if (setup->sweep.target[0] != '\0' && !num_parse_f64(setup->sweep.target, &value))
        return FAIL(err, ST_CONFIG, "%s: sweep.target is '%s', a number is needed, or nothing for no target",
                    config_origin(setup->config, "sweep.target"), setup->sweep.target);
    return ST_OK;
}

/* A program has names of its own; Trawl's trainer logs what docs/metrics.md lists, and the game's own numbers. key and
 * origin: of the setting. */
static enum status check_logged(const struct setup *setup, const char *key, const char *name, const char *origin,
                                struct error *err)
{
    const char *names[128], *near, *own;
    char list[1200] = "";
    size_t n = 0, used = 0;

    if (env_is_gym(setup->env->name))
        gym_name_numbers(setup->env, setup->env_settings);
    for (; n < train_metrics_count(setup->env) && n < 128; n++) {
        names[n] = train_metrics_name(setup->env, n);
        if (strcmp(names[n], name) == 0)
            return ST_OK;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "", names[n]);
    }
    own = strstr(list, "env/");
    if (strncmp(name, "env/", 4) == 0)
        return FAIL(err, ST_CONFIG, "%s: %s is '%s', which %s does not log; %s%s%s", origin, key, name,
                    setup->env->name, own != NULL ? "of its own it has " : "it has no numbers of its own",
                    own != NULL ? own : "",
                    env_is_gym(setup->env->name) ? "; env.info names those of its info that are logged" : "");
    near = word_nearest(name, names, n);
    return FAIL(err, ST_CONFIG, "%s: %s is '%s', which no run logs; %s%s%s", origin, key, name,
                near ? "did you mean '" : "there are ", near ? near : list, near ? "'?" : "");
}

static enum status check_outcomes(const struct setup *setup, struct error *err)
{
    const struct outcomes *o = &setup->outcomes;
    char key[2 * OUTCOME_NAME_MAX];

    for (size_t k = 0; k < o->n_limits; k++) {
        snprintf(key, sizeof key, "the metric of [sweep.limit.%s]", o->names[k]);
        TRY(check_logged(setup, key, o->metrics[k], o->origins[k], err));
    }
    return o->third[0] == '\0'
               ? ST_OK
               : check_logged(setup, "sweep.objective", o->third, config_origin(setup->config, "sweep.objective"), err);
}

static enum status check_metric(const struct setup *setup, struct error *err)
{
    const struct train_metric_def *metric = find_metric(setup->sweep.metric);

    if (metric != NULL && metric->by_clock)
        return FAIL(
            err, ST_CONFIG,
            "%s: sweep.metric is '%s', which differs from run to run of the same config and seed; search by perf, "
            "and by time with sweep.cost",
            config_origin(setup->config, "sweep.metric"), setup->sweep.metric);
    TRY(check_outcomes(setup, err));
    return check_logged(setup, "sweep.metric", setup->sweep.metric, config_origin(setup->config, "sweep.metric"), err);
}

static enum status check_perf(const struct setup *setup, const char *metric, const char *origin, struct error *err)
{
    if (!env_is_gym(setup->env->name) || gym_has_range(setup->env_settings) || strstr(metric, "perf") == NULL)
        return ST_OK;
    return FAIL(
        err, ST_CONFIG,
        "%s: sweep.metric is %s, which is unknown for %s: env.score_min and env.score_max name the returns that "
        "are perf 0 and 1; or search by score",
        origin, metric, setup->env->name);
}

/* A parameter with a single value is not searched: the config has that value. */
static enum status take_fixed(struct setup *setup, struct error *err)
{
    struct config *config = setup->config;
    size_t n = 0;

    for (size_t i = 0; i < config_n_sweep_params(config); i++) {
        const struct config_sweep_param *p = config_sweep_param(config, i);
        if (p->fixed == NULL)
            continue;
        log_info("%s: %s is not searched, it is %s in all trials", p->origin, p->key, p->fixed);
        TRY(config_set(config, CONFIG_COMMAND, p->key, p->fixed, p->origin, err));
        n++;
    }
    return n > 0 ? config_resolve(config, err) : ST_OK;
}

/* Of the config file that names the command; without one, the present folder. */
static enum status set_directory(struct setup *setup, struct error *err)
{
    const char *given = config_peek(setup->config, "sweep.directory"),
               *origin = config_origin(setup->config, "sweep.command");
    char folder[PATH_MAX], path[2 * PATH_MAX], real[PATH_MAX];

    file_folder(origin, folder, sizeof folder);
    if (given[0] == '/') /* of a stored trial, maybe read on another machine */
        return ST_OK;
    snprintf(path, sizeof path, "%s/%s", folder, given);
    if (realpath(path, real) == NULL)
        return FAIL(err, ST_CONFIG, "%s: no folder %s to start the program in (%s); set sweep.directory", origin, path,
                    strerror(errno));
    if (strlen(real) >= OPT_STR_MAX)
        return FAIL(err, ST_CONFIG, "%s: the path of the folder %.80s... is too long", origin, real);
    return config_set(setup->config, CONFIG_COMMAND, "sweep.directory", real, origin, err);
}

/* train.from_policy as workers in other folders find it. */
static enum status set_policy_path(struct setup *setup, struct error *err)
{
    const char *given = setup->train.from_policy, *origin = config_origin(setup->config, "train.from_policy");
    char path[PATH_MAX], real[PATH_MAX];

    if (given[0] == '\0' || given[0] == '/')
        return ST_OK;
    snprintf(path, sizeof path, "%.*s%s", (int)(file_name(origin) - origin), origin, given);
    if (realpath(path, real) == NULL)
        return FAIL(err, ST_CONFIG, "%s: train.from_policy: no checkpoint %s (%s)", origin, path, strerror(errno));
    if (strlen(real) >= OPT_STR_MAX)
        return FAIL(err, ST_CONFIG, "%s: the path of train.from_policy %.80s... is too long", origin, real);
    TRY(config_set(setup->config, CONFIG_COMMAND, "train.from_policy", real, origin, err));
    TRY(config_resolve(setup->config, err));
    return config_fill(setup->config, &train_opt_table, &setup->train, err);
}

static enum status check_command(const struct setup *setup, struct error *err)
{
    const struct program_place nowhere = {.env = setup->envs.n > 0 ? setup->envs.names[0] : setup->program.trial_env};
    char **argv = NULL;

    if (program_is_outside(setup->config))
        return ST_OK;
    TRY(program_argv(setup->config, &setup->params, &nowhere, &argv, err));
    program_argv_free(argv);
    return ST_OK;
}

/* The options of Trawl's own trainer make place for those of the program. */
static enum status finish_program(struct setup *setup, struct error *err)
{
    struct config *config = setup->config;

    setup->env = &program_env;
    if (program_is_outside(config)) /* which a trial's own config, without [sweep] devices, does not show otherwise */
        TRY(config_set(config, CONFIG_COMMAND, "sweep.command", PROGRAM_NONE, "sweep.devices = none", err));
    TRY(program_refuse_trainer(config, err));
    TRY(program_params_make(&setup->params, config, err));
    config_clear_tables(config);
    TRY(config_add_table(config, &setup->params.table, err));
    if (setup->has_sweep) {
        TRY(config_add_table(config, &sweep_opt_table, err));
        TRY(config_add_table(config, &track_opt_table, err));
        if (strcmp(config_origin(config, "sweep.metric"), "default") == 0)
            TRY(config_set(config, CONFIG_ENV, "sweep.metric", PROGRAM_METRIC, "a program's default", err));
    }
    TRY(config_add_table(config, &program_opt_table, err));
    TRY(set_directory(setup, err));
    TRY(config_resolve(config, err));
    if (setup->searches)
        TRY(take_fixed(setup, err));
    TRY(config_fill(config, &program_opt_table, &setup->program, err));
    TRY(check_time(setup, "sweep.trial_time", setup->program.trial_time, err));
    TRY(check_command(setup, err));
    if (!setup->has_sweep)
        return ST_OK;
    TRY(config_fill(config, &sweep_opt_table, &setup->sweep, err));
    setup->sweep.is_program = true;
    TRY(take_objective(setup, err));
    TRY(config_fill(config, &track_opt_table, &setup->track, err));
    return check_limits(setup, err);
}

/* The perf of a Gymnasium environment is unknown unless its range is named: a sweep then goes by score. */
static enum status default_metric(struct setup *setup, struct error *err)
{
    if (!setup->has_sweep || setup->envs.n > 0 || !env_is_gym(setup->env->name) || gym_has_range(setup->env_settings) ||
        strcmp(config_origin(setup->config, "sweep.metric"), "default") != 0)
        return ST_OK;
    TRY(config_set(setup->config, CONFIG_ENV, "sweep.metric", "score",
                   "the default without env.score_min and env.score_max", err));
    return config_resolve(setup->config, err);
}

/* The default number of agents fits the game: as many instances as hold it. */
static enum status default_agents(struct setup *setup, struct error *err)
{
    struct env_shape shape = {0};
    struct error unfit = {0}; /* reported where the settings are checked */
    char text[32];

    if (strcmp(config_origin(setup->config, "train.total_agents"), "default") != 0 || env_is_gym(setup->env->name) ||
        env_def_check(setup->env, setup->env_settings, 1, &shape, &unfit) != ST_OK ||
        setup->train.total_agents % shape.n_agents == 0)
        return ST_OK;
    snprintf(text, sizeof text, "%lld", (long long)((setup->train.total_agents / shape.n_agents + 1) * shape.n_agents));
    TRY(config_set(setup->config, CONFIG_ENV, "train.total_agents", text, "the default, for the agents of the game",
                   err));
    TRY(config_resolve(setup->config, err));
    return config_fill(setup->config, &train_opt_table, &setup->train, err);
}

/* PufferLib's metrics are numbers of the game, named without "env/", in 3.0 with "environment/". */
static enum status own_metric(struct setup *setup, struct error *err)
{
    size_t at = dialect_find(setup->config, "sweep.metric");
    const char *metric = dialect_get(setup->config, "sweep.metric");
    char own[OPT_STR_MAX];

    if (setup->dialect.version == DIALECT_NONE || metric == NULL || find_metric(metric) != NULL)
        return ST_OK;
    snprintf(own, sizeof own, "env/%s", metric + (strncmp(metric, "environment/", 12) == 0 ? 12 : 0));
    for (size_t i = 0; i < setup->env->n_numbers; i++)
        if (strcmp(setup->env->number_names[i], own) == 0) {
            dialect_note(&setup->dialect.changed, "sweep.metric = %s is read as %s", metric, own);
            return config_edit(setup->config, at, NULL, own, err);
        }
    if (!setup->searches && setup->dialect.has_env_name && config_item(setup->config, at).text > 0) {
        dialect_note(&setup->dialect.changed,
                     "sweep.metric = %s is left out (the game logs no such number; a sweep needs one)", metric);
        config_remove(setup->config, at);
    }
    return ST_OK;
}

static enum status derive(const struct setup *base, const char *env, const struct setup_override *overrides, size_t n,
                          const char *origin, struct setup **ret_setup, struct error *err);

/* The list of sweep.envs; env.name is one of it, the first where none is named. */
static enum status take_envs(struct setup *setup, struct error *err)
{
    const char *text = setup->has_sweep ? config_peek(setup->config, "sweep.envs") : NULL, *name;
    const char *origin = config_origin(setup->config, "sweep.envs");

    if (text == NULL || text[0] == '\0')
        return ST_OK;
    TRY(sweep_envs_parse(text, origin, &setup->envs, err));
    if (program_is_named(setup->config))
        return ST_OK;
    for (size_t k = 0; k < setup->envs.n; k++)
        if (env_is_library(setup->envs.names[k]) && setup->envs.names[k][0] != '/')
            return FAIL(err, ST_CONFIG, "%s: sweep.envs names the library %s; give its whole path, from / on", origin,
                        setup->envs.names[k]);
    name = config_peek(setup->config, "env.name");
    if (name == NULL || name[0] == '\0')
        return config_set(setup->config, CONFIG_FILE, "env.name", setup->envs.names[0], origin, err);
    if (sweep_envs_find(&setup->envs, name) == setup->envs.n)
        return FAIL(err, ST_CONFIG, "%s: env.name is %s, which sweep.envs (%s) does not name; leave one of them out",
                    config_origin(setup->config, "env.name"), name, origin);
    return ST_OK;
}

/* Setups of the other games, and what all of them have to have in common. */
static enum status make_games(struct setup *setup, struct error *err)
{
    char hint[ENV_HINT_MAX];
    const char *origin = config_origin(setup->config, "sweep.envs"), *own = config_peek(setup->config, "env.name");
    const struct train_metric_def *metric = find_metric(setup->sweep.metric);

    if (setup->envs.n > 0 && (metric == NULL || strcmp(metric->unit, "0..1") != 0))
        return FAIL(err, ST_CONFIG,
                    "%s: sweep.metric is %s, whose scale differs from game to game; with sweep.envs take perf, which "
                    "is 0 to 1 in each",
                    config_origin(setup->config, "sweep.metric"), setup->sweep.metric);
    for (size_t i = 0; setup->envs.n > 0 && i < config_n_sweep_params(setup->config); i++) {
        const struct config_sweep_param *p = config_sweep_param(setup->config, i);
        if (strncmp(p->key, "env.", 4) == 0)
            return FAIL(err, ST_CONFIG, "%s: %s is an option of one game, and sweep.envs names several; drop it",
                        p->origin, p->key);
    }
    for (size_t k = 0; k < setup->envs.n; k++) {
        const char *name = setup->envs.names[k];
        if (strcmp(name, own) == 0)
            continue;
        if (env_find(name) == NULL && !env_is_outside(name))
            return FAIL(err, ST_CONFIG, "%s: sweep.envs: '%s' is not a game%s", origin, name, env_hint(name, hint));
        TRY(derive(setup, name, NULL, 0, origin, &setup->games[k], err));
        TRY(check_perf(setup->games[k], setup->sweep.metric, origin, err));
    }
    return ST_OK;
}

/* A game with an option of that name does it itself. */
static bool stacks_frames(const struct env_def *env)
{
    for (size_t i = 0; i < env->options.n_defs; i++)
        if (strcmp(env->options.defs[i].key, frames_opt_table.defs[0].key) == 0)
            return true;
    return false;
}

static enum status finish(struct setup *setup, struct error *err)
{
    struct frames_settings frames = {.frame_stack = 1};

    TRY(outcomes_take(&setup->outcomes, setup->config, err));
    TRY(take_envs(setup, err));
    if (program_is_named(setup->config))
        return finish_program(setup, err);
    TRY(dialect_begin(&setup->dialect, setup->config, err));
    TRY(env_config_add(setup->config, &setup->env, err));
    if (!stacks_frames(setup->env))
        TRY(config_add_table(setup->config, &frames_opt_table, err));
    setup->env_settings = mem_alloc(setup->env->options.settings_size);
    /* PufferLib's options of a game are read as ours of the built-in one; a library has its own */
    TRY(dialect_translate(&setup->dialect, setup->config,
                          env_find(setup->env->name) == setup->env ? setup->env->name : "", err));
    TRY(own_metric(setup, err));
    TRY(config_resolve(setup->config, err));
    if (setup->searches)
        TRY(take_fixed(setup, err));
    TRY(config_fill(setup->config, &policy_opt_table, &setup->policy, err));
    if (!stacks_frames(setup->env))
        TRY(config_fill(setup->config, &frames_opt_table, &frames, err));
    setup->policy.frame_stack = frames.frame_stack;
    TRY(config_fill(setup->config, &train_opt_table, &setup->train, err));
    TRY(set_policy_path(setup, err));
    TRY(config_fill(setup->config, &setup->env->options, setup->env_settings, err));
    TRY(default_agents(setup, err));
    TRY(default_metric(setup, err));
    if (!setup->has_sweep)
        return ST_OK;
    TRY(config_fill(setup->config, &sweep_opt_table, &setup->sweep, err));
    TRY(take_objective(setup, err));
    TRY(config_fill(setup->config, &track_opt_table, &setup->track, err));
    TRY(check_limits(setup, err));
    TRY(check_perf(setup, setup->sweep.metric, config_origin(setup->config, "sweep.metric"), err));
    TRY(check_metric(setup, err));
    return make_games(setup, err);
}

bool setup_is_program(const struct setup *setup)
{
    return setup->env == &program_env;
}

size_t setup_trial_tables(const struct setup *setup, const struct opt_table **ret_tables)
{
    if (setup_is_program(setup)) {
        ret_tables[0] = &setup->params.table;
        ret_tables[1] = &program_opt_table;
        return 2;
    }
    ret_tables[0] = &setup->env->options;
    ret_tables[1] = &policy_opt_table;
    ret_tables[2] = &train_opt_table;
    if (stacks_frames(setup->env))
        return 3;
    ret_tables[3] = &frames_opt_table;
    return 4;
}

enum status setup_finish(struct setup *setup, struct error *err)
{
    TRY(finish(setup, err));
    return dialect_report(&setup->dialect, err);
}

/* Copies what base resolved for one table into the file layer of another config. */
static enum status copy_table(struct config *to, const struct config *from, const struct opt_table *table,
                              struct error *err)
{
    for (size_t i = 0; i < table->n_defs; i++) {
        const struct opt_def *opt = &table->defs[i];
        char key[2 * CONFIG_KEY_MAX];
        snprintf(key, sizeof key, "%s.%s", table->section, opt->written != NULL ? opt->written : opt->key);
        const char *value = config_peek(from, key);
        if (value != NULL)
            TRY(config_set(to, CONFIG_FILE, key, value, config_origin(from, key), err));
    }
    return ST_OK;
}

/* env: a game instead of base's, whose own options are then left out; NULL: base's. */
static enum status derive(const struct setup *base, const char *env, const struct setup_override *overrides, size_t n,
                          const char *origin, struct setup **ret_setup, struct error *err)
{
    const struct opt_table *tables[SETUP_TRIAL_TABLES];
    size_t n_tables = setup_trial_tables(base, tables);
    struct setup *setup = NULL;
    enum status rc = setup_create_tables(&setup, false, err);

    if (rc != ST_OK)
        return rc;
    if (env != NULL && (rc = config_set(setup->config, CONFIG_FILE, "env.name", env, origin, err)) != ST_OK)
        goto fail;
    if (env == NULL && !setup_is_program(base) &&
        ((rc = copy_table(setup->config, base->config, &env_opt_table, err)) != ST_OK ||
         (rc = copy_table(setup->config, base->config, &env_library_opt_table, err)) != ST_OK))
        goto fail;
    for (size_t t = env != NULL ? 1 : 0; t < n_tables; t++) /* the game's own is the first */
        if ((rc = copy_table(setup->config, base->config, tables[t], err)) != ST_OK)
            goto fail;
    for (size_t i = 0; i < n; i++)
        if ((rc = config_set(setup->config, CONFIG_COMMAND, overrides[i].key, overrides[i].value, origin, err)) !=
            ST_OK)
            goto fail;
    if ((rc = finish(setup, err)) != ST_OK)
        goto fail;
    *ret_setup = setup;
    return ST_OK;
fail:
    setup_destroy(setup);
    return rc;
}

enum status setup_derive(const struct setup *base, const struct setup_override *overrides, size_t n, const char *origin,
                         struct setup **ret_setup, struct error *err)
{
    return derive(base, NULL, overrides, n, origin, ret_setup, err);
}

const struct setup *setup_of_env(const struct setup *base, size_t env)
{
    return env < base->envs.n && base->games[env] != NULL ? base->games[env] : base;
}

enum status setup_from_text(struct setup **ret_setup, const char *origin, const char *text, struct error *err)
{
    struct setup *setup = NULL;
    enum status rc = setup_create(&setup, err);

    THEN(rc, config_load_text(setup->config, origin, text, err));
    THEN(rc, setup_finish(setup, err));
    if (rc != ST_OK) {
        setup_destroy(setup);
        setup = NULL;
    }
    *ret_setup = setup;
    return rc;
}

enum status trial_setup(const struct trial *trial, struct setup **ret_setup, struct error *err)
{
    AT_END(setup_destroy_at) struct setup *setup = NULL;
    char name[64];

    snprintf(name, sizeof name, "trial %lld's config", (long long)trial->number);
    TRY(setup_from_text(&setup, name, trial->config, err));
    return setup_derive(setup, NULL, 0, name, ret_setup, err); /* without the sweep's own options */
}

cJSON *setup_to_json(const struct setup *setup)
{
    cJSON *json = config_to_json(setup->config), *typed = cJSON_CreateObject();
    const cJSON *texts = json_get(json, PROGRAM_SECTION), *item;

    cJSON_ArrayForEach(item, texts) config_add_json_text(typed, item->string, item->valuestring);
    if (texts != NULL)
        cJSON_ReplaceItemInObjectCaseSensitive(json, PROGRAM_SECTION, typed);
    else
        cJSON_Delete(typed);
    return json;
}

enum status setup_to_ini(const struct setup *setup, char **ret_text, struct error *err)
{
    STRBUF(sb, INI_MAX_BYTES);

    enum status rc = config_write_ini(setup->config, false, false, &sb, err);
    if (rc == ST_OK && (setup->has_sweep || setup_is_program(setup))) /* which config_write_ini leaves out */
        rc = config_write_section(setup->config, sweep_opt_table.section, &sb, err);
    outcomes_write(&setup->outcomes, &sb);
    THEN(rc, strbuf_status(&sb, "the config's text", err));
    if (rc == ST_OK)
        *ret_text = strbuf_take(&sb);
    return rc;
}

/* The range or the choices of a parameter, in our words. */
static void add_param(struct strbuf *sb, const struct config_sweep_param *p)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];

    strbuf_addf(sb, "\n[sweep.%s]\ndistribution = %s\n", p->key,
                p->scale == OPT_LINEAR && p->is_int ? "int" : config_scale_word(p->scale));
    if (p->scale != OPT_CATEGORICAL)
        strbuf_addf(sb, "min = %s\nmax = %s\n", num_format_f64(p->min, lo), num_format_f64(p->max, hi));
    if (p->values != NULL)
        strbuf_addf(sb, "values = %s\n", p->values);
    if (p->mean != NULL)
        strbuf_addf(sb, "mean = %s\n", p->mean);
    if (p->type != NULL)
        strbuf_addf(sb, "type = %s\n", p->type);
    if (p->step > 0.0)
        strbuf_addf(sb, "step = %s\n", num_format_f64(p->step, lo));
    if (p->ordered)
        strbuf_add(sb, "ordered = true\n");
    if (p->when != NULL)
        strbuf_addf(sb, "when = %s\n", p->when);
}

enum status setup_print(const struct setup *setup, struct error *err)
{
    MEM_LOCAL char *text = NULL;
    STRBUF(sb, INI_MAX_BYTES);

    TRY(setup_to_ini(setup, &text, err));
    strbuf_add(&sb, text);
    for (size_t i = 0; i < config_n_sweep_params(setup->config); i++)
        add_param(&sb, config_sweep_param(setup->config, i));
    TRY(strbuf_status(&sb, "the config's text", err));
    fputs(sb.text, stdout);
    return ST_OK;
}
