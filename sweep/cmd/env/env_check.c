/* env_check.c - `trawl env check`: plays a game in a child process and looks for what would spoil a training: numbers
 * that are none, games that differ from themselves, instances that know of each other, states that do not save.
 * Each check plays batches of its own; the first fault of a check ends it. */
#include "base/text/json.h"
#include "base/config/config.h"
#include "base/os/pool.h"
#include "envs/envs.h"
#include "envs/gym/gym.h"
#include "envs/plugin/library.h"
#include "sweep/cli.h"
#include "sweep/cmd/env/env_check_gpu.h"
#include "sweep/cmd/env/env_side.h"
#include "sweep/cmd/env/env_commands.h"
#include "sweep/program/guard.h"
#include "sweep/game_output.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CHECK_ENVS 7
#define EXIT_DONE 99 /* of the child: all checks are done, without a fault */
#define EXIT_REPORTED 90 /* and its own exit code: it has said why; below: a game has ended it */
#define SPEED_AGENTS 1024
#define LARGE_OBS 1000.0f /* a network learns badly from larger ones */
#define LARGE_REWARD 1000.0f /* the same of the sums of rewards that it estimates */

struct check {
    struct config *config; /* of the options of the game */
    const struct env_def *def;
    void *settings;
    int64_t steps, seconds, seed;
    int n_faults;
    double check_end_s; /* a slow game is checked for fewer steps */
};

#define N_CHECKS 7

static void begin(struct check *c)
{
    c->check_end_s = clock_mono_s() + (double)c->seconds / (2 * N_CHECKS);
}

/* Is there a step t to do in the check that runs? At least 20, then as many as fit in its share of the time. */
static bool more(const struct check *c, int64_t t)
{
    return t < c->steps && (t < 20 || clock_mono_s() < c->check_end_s);
}

/* ---- the checks: each returns false after printing what is wrong ---- */

static bool fault(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool fault(const char *fmt, ...)
{
    va_list args;

    fprintf(game_output_result(), "FAULT  ");
    va_start(args, fmt);
    vfprintf(game_output_result(), fmt, args);
    va_end(args);
    fprintf(game_output_result(), "\n");
    return false;
}

static bool check_random(struct check *c)
{
    struct env_side s;
    struct rng rng = rng_seed((uint64_t)c->seed);
    struct env_log log;
    struct env_largest largest = {0};
    int64_t t = 0;
    bool ok = true;

    if (!env_side_open(&s, c->def, c->settings, CHECK_ENVS, 1, 1))
        return false;
    env_side_reset(&s, NULL);
    for (begin(c); ok && more(c, t); t++) {
        env_side_random(&s, &rng);
        env_side_spoil(&s);
        env_side_step(&s, NULL);
        ok = env_side_sane(&s, t, &largest);
    }
    env_batch_take_log(s.batch, &log);
    double perf = log.episodes > 0 ? log.perf / log.episodes : 0.0;
    char text[NUM_TEXT_MAX];

    if (ok && !isnan(perf) && !(perf >= 0 && perf <= 1 + 1e-6))
        ok = fault("perf is %g on average; it has to lie in [0, 1] (a training counts the nearer end)", perf);
    if (ok && !isfinite(log.score))
        ok = fault("the score of an episode that ended is not a finite number");
    if (ok && fabsf(largest.value) > LARGE_OBS)
        fprintf(game_output_result(),
                "note   number %zu of an observation is %g, the largest of all; a network learns best from about [-1, "
                "1]: scale it in the game, or set policy.norm_obs = true\n",
                largest.number, (double)largest.value);
    if (ok && fabsf(largest.reward) > LARGE_REWARD)
        fprintf(game_output_result(),
                "note   a reward is %g, the largest of all; a network learns best from about [-1, 1]: scale it in the "
                "game, or set train.scale_reward = true\n",
                (double)largest.reward);
    if (ok && log.episodes <= 0)
        fprintf(game_output_result(),
                "ok     %lld random steps of %d instances; no episode ended within them, and score and perf are not "
                "checked: a larger %s checks longer\n",
                (long long)t, CHECK_ENVS, t < c->steps ? "--seconds" : "--steps");
    else if (ok)
        fprintf(game_output_result(),
                "ok     %lld random steps of %d instances: %.0f episodes, mean length %.1f, score %.4g, perf %s\n",
                (long long)t, CHECK_ENVS, log.episodes, log.ep_length / log.episodes, log.score / log.episodes,
                isnan(perf) ? "unknown" : num_format_short(perf, text));
    env_side_close(&s);
    return ok;
}

/* Choices at the ends of their ranges, held for a while; and, of a game in the form of the built-in ones, choices that
 * do not exist. */
static bool check_wild(struct check *c)
{
    static const int32_t odd[] = {-1, INT32_MIN, INT32_MAX, 1 << 20};
    static const float odd_reals[] = {NAN, -INFINITY, 3e38f, -1e9f};
    struct env_side s;
    struct env_largest largest = {0};
    int64_t t = 0;
    bool beyond = c->def->open == NULL, ok = true;

    if (!env_side_open(&s, c->def, c->settings, CHECK_ENVS, 1, 2))
        return false;
    env_side_reset(&s, NULL);
    for (begin(c); ok && more(c, t); t++) {
        size_t kind = (size_t)(t / 50) % (beyond ? 6 : 2);
        for (size_t i = 0; i < s.n_actions; i++) {
            size_t h = i % (size_t)s.shape.n_heads;
            s.actions[i] = kind == 0 ? 0 : kind == 1 ? s.shape.head_sizes[h] - 1 : odd[kind - 2];
            s.reals[i] = kind == 0 ? s.shape.low[h] : kind == 1 ? s.shape.high[h] : odd_reals[kind - 2];
        }
        if (kind < 2)
            env_side_allow(&s);
        env_side_spoil(&s);
        env_side_step(&s, NULL);
        ok = env_side_sane(&s, t, &largest);
    }
    if (ok)
        fprintf(game_output_result(), "ok     %lld steps of %s\n", (long long)t,
                beyond ? "held first and last choices, and of choices that do not exist"
                       : "held first and last choices");
    env_side_close(&s);
    return ok;
}

/* Two batches by the same actions: b of another number of instances or threads. */
static bool check_same(struct check *c, const char *what, const char *wrong, size_t n_b, size_t threads)
{
    struct env_side a = {0}, b = {0};
    struct pool *pool = NULL;
    struct rng rng = rng_seed((uint64_t)c->seed + 1);
    const char *differs = NULL;
    int64_t t = 0;
    bool ok = env_side_open(&a, c->def, c->settings, CHECK_ENVS, 3, 3) &&
              env_side_open(&b, c->def, c->settings, n_b, 3, 3) &&
              (threads == 1 || pool_create(&pool, threads, NULL) == ST_OK);

    if (ok) {
        env_side_reset(&a, NULL);
        env_side_reset(&b, pool);
        ok = !env_side_failed(&a, 0) && !env_side_failed(&b, 0);
        differs = env_side_differs(&a, &b);
    }
    for (begin(c); ok && differs == NULL && more(c, t); t++) {
        env_side_random(&b, &rng);
        memcpy(a.actions, b.actions, a.n_actions * sizeof *a.actions);
        memcpy(a.reals, b.reals, a.n_actions * sizeof *a.reals);
        env_side_step(&a, NULL);
        env_side_step(&b, pool);
        ok = !env_side_failed(&a, t) && !env_side_failed(&b, t);
        differs = env_side_differs(&a, &b);
    }
    if (ok && differs != NULL)
        ok = fault("%s: %s differ after %lld steps; %s", what, differs, (long long)t, wrong);
    else if (ok)
        fprintf(game_output_result(), "ok     %s\n", what);
    env_side_close(&a);
    env_side_close(&b);
    pool_destroy(pool);
    return ok;
}

static bool check_saved(struct check *c)
{
    struct env_side a = {0}, b = {0};
    struct rng rng = rng_seed((uint64_t)c->seed + 2);
    bool ok = env_side_open(&a, c->def, c->settings, CHECK_ENVS, 4, 4) &&
              env_side_open(&b, c->def, c->settings, CHECK_ENVS, 5, 5);

    if (!ok || (c->def->open != NULL && c->def->saved_bytes == NULL)) {
        if (ok)
            fprintf(game_output_result(),
                    "note   its state cannot be saved: a training that resumes plays new episodes\n");
        env_side_close(&a);
        env_side_close(&b);
        return ok;
    }
    env_side_reset(&a, NULL);
    env_side_reset(&b, NULL);
    for (int64_t t = 0; t < 101; t++) {
        env_side_random(&a, &rng);
        env_side_step(&a, NULL);
    }
    MEM_LOCAL void *bytes = mem_alloc(env_batch_state_bytes(a.batch));
    env_batch_save(a.batch, bytes);
    env_batch_load(b.batch, bytes);
    env_batch_observe(b.batch, NULL, b.obs, b.mask);
    const char *differs = memcmp(a.obs, b.obs, a.obs_bytes) != 0 ? "observations" : NULL;
    begin(c);
    for (int64_t t = 0; differs == NULL && more(c, t); t++) {
        env_side_random(&a, &rng);
        memcpy(b.actions, a.actions, a.n_actions * sizeof *a.actions);
        memcpy(b.reals, a.reals, a.n_actions * sizeof *a.reals);
        env_side_step(&a, NULL);
        env_side_step(&b, NULL);
        differs = env_side_differs(&a, &b);
    }
    if (differs != NULL)
        ok = fault("a saved state that is loaded plays on differently: %s differ; is there memory outside the state?",
                   differs);
    else
        fprintf(game_output_result(), "ok     a state that is saved and loaded continues the same game\n");
    env_side_close(&a);
    env_side_close(&b);
    return ok;
}

static bool check_speed(struct check *c)
{
    struct env_side s;
    struct rng rng = rng_seed((uint64_t)c->seed + 3);
    struct env_shape shape;
    double begun, spent = 0.0;
    int64_t steps = 0;
    bool failed = false;

    if (env_def_check(c->def, c->settings, 1, &shape, NULL) != ST_OK)
        return false;
    size_t n = (size_t)(SPEED_AGENTS / shape.n_agents > 0 ? SPEED_AGENTS / shape.n_agents : 1);
    if (!env_side_open(&s, c->def, c->settings, n, 6, 6))
        return false;
    env_side_reset(&s, NULL);
    for (int64_t t = 0; !failed && (t < 20 || spent < 0.3); t++) {
        env_side_random(&s, &rng);
        begun = clock_mono_s();
        env_side_step(&s, NULL);
        spent += clock_mono_s() - begun;
        steps += (int64_t)s.n_agents;
        failed = env_side_failed(&s, t);
    }
    if (!failed)
        fprintf(game_output_result(), "speed  %.3g steps/s on one core (%zu agents, random actions, stepping alone)\n",
                (double)steps / spent, s.n_agents);
    env_side_close(&s);
    return !failed;
}

static void run_checks(struct check *c)
{
    c->n_faults += !check_random(c);
    c->n_faults += !check_wild(c);
    c->n_faults +=
        !check_same(c, "the same seed and actions give the same game",
                    "is there randomness that is not state->rng (in Python np_random), or a clock?", CHECK_ENVS, 1);
    if (gym_shares_stream(c->def, c->settings))
        fprintf(game_output_result(),
                "note   its instances draw from one random stream: another number of them plays other games\n");
    else
        c->n_faults += !check_same(c, "more instances and threads change nothing", "do instances share memory?",
                                   2 * CHECK_ENVS + 3, 3);
    c->n_faults += !check_saved(c);
    c->n_faults += !check_speed(c);
    c->n_faults +=
        !env_check_gpu(c->def, c->settings, c->steps, (uint64_t)c->seed + 4, (double)c->seconds / (2 * N_CHECKS));
}

/* ---- the child ---- */

/* The options of the command line, and the defaults. */
static enum status fill_settings(struct check *c, struct error *err)
{
    c->settings = mem_alloc(c->def->options.settings_size);
    TRY(config_add_table(c->config, &c->def->options, err));
    TRY(config_resolve(c->config, err));
    return config_fill(c->config, &c->def->options, c->settings, err);
}

static enum status check_here(struct check *c, const char *game, struct error *err)
{
    struct env_shape shape;

    env_limit_memory();
    env_libraries_run();
    TRY(env_open(game, &c->def, err));
    TRY(fill_settings(c, err));
    TRY(env_def_check(c->def, c->settings, 1, &shape, err));
    fprintf(game_output_result(), "game   %s: %d observations, %d %s, actions", c->def->name, shape.obs_size,
            shape.n_agents, shape.n_agents == 1 ? "agent" : "agents");
    for (int h = 0; h < shape.n_heads; h++)
        if (shape.head_sizes[h] > 0)
            fprintf(game_output_result(), " %d", shape.head_sizes[h]);
        else
            fprintf(game_output_result(), " %g..%g", (double)shape.low[h], (double)shape.high[h]);
    fprintf(game_output_result(), "\n");
    run_checks(c);
    mem_free(c->settings);
    return c->n_faults == 0 ? ST_OK
                            : FAIL(err, ST_NUMERIC, "env check: %s has %d %s", game, c->n_faults,
                                   c->n_faults == 1 ? "fault" : "faults");
}

#define AT_LAST_LINE "in the check after the last line above (without a line: as it was asked for its sizes)"

/* Waits for the child at most `seconds`. */
static enum status wait_for(pid_t pid, const struct check *c, const char *game, struct error *err)
{
    double end_s = clock_mono_s() + (double)c->seconds;
    int state = 0;

    while (waitpid(pid, &state, WNOHANG) == 0) {
        if (clock_mono_s() > end_s) {
            kill(pid, SIGKILL);
            (void)waitpid(pid, &state, 0);
            return FAIL(err, ST_LIMIT,
                        "env check: %s was not done within %lld s and was killed; it hangs " AT_LAST_LINE
                        ", or is slow (--steps, --seconds)",
                        game, (long long)c->seconds);
        }
        usleep(2000);
    }
    if (WIFSIGNALED(state))
        return FAIL(err, ST_NUMERIC, "env check: %s was killed by signal %d (%s) " AT_LAST_LINE, game, WTERMSIG(state),
                    strsignal(WTERMSIG(state)));
    if (WEXITSTATUS(state) < EXIT_REPORTED) /* by exit(): with a line above that says so */
        return FAIL(err, ST_NUMERIC, "env check: %s ended the process by exit() or _exit() " AT_LAST_LINE, game);
    if (WEXITSTATUS(state) != EXIT_DONE)
        return WEXITSTATUS(state) == EXIT_REPORTED + 2 ? ST_CONFIG : ST_NUMERIC;
    return ST_OK;
}

static enum status check_in_child(struct check *c, const char *game, struct error *err)
{
    bool inherited = guard_has_children();
    enum status rc;

    game_output_begin("env check", NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* of what the game starts: nothing of it stays */
    pid_t pid = fork();
    if (pid < 0)
        return FAIL(err, ST_IO, "env check: no process for it: %s", strerror(errno));
    if (pid == 0) {
        struct error failed = {0};
        setvbuf(stdout, NULL, _IOLBF, 0);
        rc = check_here(c, game, &failed);
        if (rc != ST_OK)
            fprintf(stderr, "trawl: %s\n", failed.text);
        fflush(stdout);
        _exit(rc == ST_OK ? EXIT_DONE : EXIT_REPORTED + status_exit_code(rc));
    }
    rc = wait_for(pid, c, game, err);
    game_output_end(rc != ST_OK);
    if (!inherited)
        guard_sweep_up();
    return rc;
}

enum status env_check(int argc, char **argv, struct error *err)
{
    struct check c = {.steps = 2000, .seconds = 120, .seed = 1};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"steps", 0, CLI_INT, &c.steps, "N",
         "decisions of each check (2000; of a slow game fewer, as --seconds allows)"},
        {"seconds", 0, CLI_INT, &c.seconds, "S", "kill it after this time (120)"},
        {"seed", 0, CLI_INT, &c.seed, "N", "seeds the actions (1)"},
    };
    const struct cli cli = {
        .name = "env check",
        .synopsis = "trawl env check GAME [--env.OPTION VALUE ...] [--steps N] [--seconds S] [--seed N]",
        .about =
            "Plays a game at random, with held and with impossible choices, and reports what would spoil a training:\n"
            "observations or rewards that are not numbers, writes past its rows, the same seed giving another game,\n"
            "instances or threads that change each other, a saved state that continues differently; then its "
            "speed.\nWith a GPU, a game that has code for it is played there too: every byte is the same as on the "
            "host.\nIt runs in a child process, so a crash or a hang is a fault too. Exit code 1: there are faults.",
        .examples = "  trawl env check ./my_game.so\n"
                    "  trawl env check pong --env.frameskip 4 --steps 100000",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a game's name, or the path of its library"),
    };

    c.config = config_create();
    enum status rc = config_take_args(c.config, &argc, argv, err);
    THEN(rc, cli_parse(&cli, argc, argv, &words, err));
    if (rc == ST_OK && !words.help && (c.steps < 1 || c.seconds < 1))
        rc = FAIL(err, ST_USAGE, "env check: --steps and --seconds are at least 1");
    if (rc == ST_OK && !words.help)
        rc = check_in_child(&c, words.v[0], err);
    config_destroy(c.config);
    return rc;
}
