/* cmd_env.c - `trawl env`: its commands, of which describe and play are for programs. */
#include "envs/plugin/describe.h"
#include "envs/plugin/library.h"
#include "sweep/cli.h"
#include "sweep/cmd/env/env_commands.h"
#include "sweep/worker/worker_limits.h"

#include <signal.h>
#include <sys/prctl.h>
enum status env_keep_stdout(FILE **ret_out, struct error *err)
{
    int fd = dup(STDOUT_FILENO);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    *ret_out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (*ret_out == NULL || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return FAIL(err, ST_IO, "env: no second descriptor of stdout");
    return ST_OK;
}

void env_limit_memory(void)
{
    JSON_LOCAL cJSON *limits = cJSON_CreateObject();

    json_add_i64(limits, "memory_bytes", (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2);
    worker_limits_apply(limits);
}

static enum status describe(const char *path, const char *hex, FILE *out, struct error *err)
{
    const struct env_def *def;
    MEM_LOCAL void *settings = NULL;
    JSON_LOCAL cJSON *json = NULL;

    env_libraries_run();
    TRY(env_open(path, &def, err));
    TRY(hex != NULL ? env_settings_from_hex(hex, def->options.settings_size, &settings, err)
                    : env_default_settings(def, &settings, err));
    TRY(env_describe(def, settings, &json, err));
    MEM_LOCAL char *text = json_print(json, false);
    fprintf(out, "%s\n", text);
    return ST_OK;
}

static enum status env_describe_command(int argc, char **argv, struct error *err)
{
    const char *hex = NULL;
    FILE *out;
    const struct cli_opt opts[] = {
        {"settings", 0, CLI_TEXT, &hex, "HEX",
         "the shape under these settings: the bytes of its struct, two digits each"},
    };
    const struct cli cli = {
        .name = "env describe",
        .synopsis = "trawl env describe GAME [--settings HEX]",
        .about =
            "Prints a game's name, options, defaults and shape as a JSON object. The controller and the pages ask a\n"
            "child process for this, so that they never load a library themselves.",
        .examples = "  trawl env describe ./my_game.so\n"
                    "  trawl env describe pong",
        CLI_OPTS(opts),
        CLI_WORDS(1, 1, "a game's name, or the path of its library"),
    };

    CLI_PARSE(cli, words);
    TRY(env_keep_stdout(&out, err));
    enum status rc = describe(words.v[0], hex, out, err);
    if (fclose(out) != 0 && rc == ST_OK)
        rc = FAIL(err, ST_IO, "env describe: the answer could not be written");
    return rc;
}

static const struct {
    const char *name, *summary;
    command_fn *run;
} parts[] = {
    {"new", "write a game to start from, with a config", env_new},
    {"build", "compile a game into a library", env_build},
    {"check", "play a game at random and against its rules, and measure its speed", env_check},
    {"describe", "print a game's options and shape as JSON", env_describe_command},
    {"play", "play a checkpoint's policy, a picture a line", env_play},
};

static enum status print_help(struct error *err)
{
    puts("usage: trawl env new|build|check|describe|play ...\n\n"
         "Games of your own: a library that is built once and named by its path wherever a game's name goes.\n\n"
         "commands:");
    for (size_t i = 0; i < COUNT(parts); i++)
        printf("  %-9s %s\n", parts[i].name, parts[i].summary);
    for (size_t i = 0; i < COUNT(parts); i++) {
        char *help[] = {(char *)parts[i].name, "--help", NULL};
        puts("");
        TRY(parts[i].run(2, help, err));
    }
    return ST_OK;
}

enum status cmd_env(int argc, char **argv, struct error *err)
{
    if (argc < 2)
        return FAIL(err, ST_USAGE, "env: give new, build, check, describe or play; `trawl env --help` explains them");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help(err);
    for (size_t i = 0; i < COUNT(parts); i++)
        if (strcmp(argv[1], parts[i].name) == 0)
            return parts[i].run(argc - 1, argv + 1, err);
    return FAIL(err, ST_USAGE, "env: no command '%s'; there are new, build, check, describe and play", argv[1]);
}
