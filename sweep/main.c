/* main.c - the program: finds the subcommand, runs it, prints its one error line and gives the exit code. */
#include "sweep/sweep.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"

struct command {
    const char *name, *summary;
    command_fn *run;
};

static const struct command commands[] = {
    {"train", "train one policy on a game", cmd_train},
    {"eval", "play a checkpoint's policy and report its score", cmd_eval},
    {"sweep", "search hyper-parameters for the front of cost and score", cmd_sweep},
    {"ls", "list the studies of a store", cmd_ls},
    {"show", "show a study and its trials", cmd_show},
    {"report", "write a study's report (html, svg, csv, json)", cmd_report},
    {"export", "write a trial's config, ready to train", cmd_export},
    {"envs", "list the games, their observations, actions and options", cmd_envs},
    {"bench", "measure games and training on this machine", cmd_bench},
    {"doctor", "check this machine and build", cmd_doctor},
};
#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(void)
{
    puts("trawl finds which training runs are worth their cost: it trains policies by PPO, searches their\n"
         "hyper-parameters for the best score at every cost, and gives the best back as config files.\n\n"
         "usage: trawl COMMAND [options]\n\ncommands:");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].summary);
    puts("\n`trawl COMMAND --help` explains a command. A first run:\n"
         "  trawl train cartpole\n"
         "  trawl sweep examples/quickstart.ini --store my.db --name first --trials 24\n"
         "  trawl export first --store my.db --pick best -o best.ini && trawl train best.ini\n\n"
         "exit codes: 0 done, 1 failed, 2 wrong usage or config, 130 interrupted");
}

static const struct command *find_command(const char *name, struct error *err)
{
    static const struct command hidden[] = {{"worker", "", cmd_worker}, {"reference", "", cmd_reference}};
    const char *names[N_COMMANDS];
    const char *near;

    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
        names[i] = commands[i].name;
    }
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (strcmp(hidden[i].name, name) == 0)
            return &hidden[i];
    near = word_nearest(name, names, N_COMMANDS);
    if (near != NULL)
        (void)FAIL(err, ST_USAGE, "no command '%s'; did you mean '%s'? `trawl --help` lists all", name, near);
    else
        (void)FAIL(err, ST_USAGE, "no command '%s'; `trawl --help` lists all", name);
    return NULL;
}

static enum status dispatch(int argc, char **argv, struct error *err)
{
    const struct command *command;

    if (argc < 2)
        return FAIL(err, ST_USAGE, "no command given; `trawl --help` lists them");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        return ST_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts(program_text);
        return ST_OK;
    }
    command = find_command(argv[1], err);
    return command == NULL ? ST_USAGE : command->run(argc - 1, argv + 1, err);
}

int main(int argc, char **argv)
{
    struct error err = {0};
    enum status rc;

    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, reported once below */
    rc = dispatch(argc, argv, &err);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        if (rc == ST_OK && errno != EPIPE)
            rc = FAIL(&err, ST_IO, "stdout: %s; the output is not complete", strerror(errno));
        else if (rc == ST_OK)
            rc = ST_IO;
    }
    if (rc != ST_OK && err.text[0] != '\0')
        fprintf(stderr, "trawl: %s\n", err.text);
    return status_exit_code(rc);
}
