/* main.c - the program: finds the subcommand, runs it, prints its one error line and gives the exit code. */
#include "envs/plugin/library.h"
#include "store/store.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/program/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

struct command {
    const char *name, *summary;
    command_fn *run;
};

static const struct command commands[] = {
    {"train", "train one policy on a game", cmd_train},
    {"join", "lend this host's devices to a training elsewhere", cmd_join},
    {"eval", "play a checkpoint's policy and report its score", cmd_eval},
    {"sweep", "search hyper-parameters for the front of cost and score", cmd_sweep},
    {"ls", "list the studies of a store", cmd_ls},
    {"show", "show a study and its trials", cmd_show},
    {"diff", "show how two trials of a study differ", cmd_diff},
    {"compare", "compare two studies", cmd_compare},
    {"report", "write a study's report (html, pdf, png, svg, csv, json)", cmd_report},
    {"serve", "show studies live in a browser, and as a JSON API", cmd_serve},
    {"export", "write a trial's config, ready to train, or all trials", cmd_export},
    {"import", "add trials of a file or another store to a study", cmd_import},
    {"daemon", "run all studies of a store in the background", cmd_daemon},
    {"agent", "train trials of a study elsewhere, with any program", cmd_agent},
    {"node", "train trials of a store on this machine's devices", cmd_node},
    {"launch", "test whether other machines can run workers", cmd_launch},
    {"stop", "end a study now; it can be continued later", cmd_control},
    {"pause", "pause a study", cmd_control},
    {"continue", "resume a paused or stopped study", cmd_control},
    {"add", "give a study more trials or more time", cmd_control},
    {"priority", "set a study's share of the devices", cmd_control},
    {"retry", "run a failed trial once more", cmd_control},
    {"confirm", "queue a config under fresh seeds", cmd_control},
    {"extend", "train a finished trial for more steps, from its checkpoint", cmd_control},
    {"try", "queue a config of your own as a study's next trial", cmd_try},
    {"drop", "make models and front ignore a trial", cmd_control},
    {"note", "write a note on a study or a trial", cmd_control},
    {"tag", "tag a study or a trial", cmd_control},
    {"rename", "give a study another name", cmd_control},
    {"rm", "move a study to the trash", cmd_control},
    {"gc", "empty a store's trash", cmd_gc},
    {"rerun", "train a trial again: the same bytes, or many seeds", cmd_rerun},
    {"replay", "make a study's proposals again: are they the same?", cmd_replay},
    {"sync", "send experiment trackers the rows that they lack", cmd_sync},
    {"env", "make, build and check games of your own", cmd_env},
    {"envs", "list the games, their observations, actions and options", cmd_envs},
    {"bench", "measure games and training on this machine", cmd_bench},
    {"check", "check all of a store against its checksums", cmd_check},
    {"backup", "copy a store, also while it is in use", cmd_backup},
    {"migrate", "move a store between a file and PostgreSQL", cmd_migrate},
    {"doctor", "check this machine and build", cmd_doctor},
};

static void print_help(void)
{
    puts("trawl finds which training runs are worth their cost: it trains policies by PPO, searches "
         "their\nhyper-parameters for the best score at every cost, and writes the best as config files.\n\n"
         "usage: trawl COMMAND [options]\n\ncommands:");
    for (size_t i = 0; i < COUNT(commands); i++)
        printf("  %-8s %s\n", commands[i].name, commands[i].summary);
    puts("\n`trawl COMMAND --help` explains a command. A first run:\n"
         "  trawl train cartpole\n"
         "  trawl sweep examples/quickstart.ini --store my.db --name first --trials 24\n"
         "  trawl export first --store my.db --pick best -o best.ini && trawl train best.ini\n\n"
         "exit codes: 0 done, 1 failed, 2 wrong usage or config, 130 interrupted\n"
         "TRAWL_DEBUG in the environment: logs in detail");
}

static const struct command *find_command(const char *name, struct error *err)
{
    static const struct command hidden[] = {{"worker", "", cmd_worker}, {"reference", "", cmd_reference}};
    const char *names[COUNT(commands)];

    for (size_t i = 0; i < COUNT(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
        names[i] = commands[i].name;
    }
    for (size_t i = 0; i < COUNT(hidden); i++)
        if (strcmp(hidden[i].name, name) == 0)
            return &hidden[i];
    const char *near = word_nearest(name, names, COUNT(commands));
    if (near != NULL)
        (void)FAIL(err, ST_USAGE, "no command '%s'; did you mean '%s'? `trawl --help` lists all", name, near);
    else
        (void)FAIL(err, ST_USAGE, "no command '%s'; `trawl --help` lists all", name);
    return NULL;
}

/* `trawl reference --man`: trawl(1), which is the help of every command as it prints it itself. */
static enum status print_man(struct error *err)
{
    enum status rc = ST_OK;

    printf(".TH TRAWL 1 \"\" \"%s\"\n.SH NAME\ntrawl \\- tune reinforcement learning: the front of cost and score\n"
           ".SH SYNOPSIS\n.B trawl\n.I COMMAND\n[options]\n.SH DESCRIPTION\n.nf\n.eo\n",
           program_text);
    print_help();
    for (size_t i = 0; rc == ST_OK && i < COUNT(commands); i++) {
        char name[32], *help[] = {name, "--help", NULL};
        snprintf(name, sizeof name, "%s", commands[i].name);
        printf(".ec\n.fi\n.SH \"trawl %s\"\n.nf\n.eo\n", name);
        rc = commands[i].run(2, help, err);
    }
    puts(".ec\n.fi");
    return rc;
}

/* Does the command play games in this process? Then a library's game is loaded here; elsewhere it is only described. */
static bool plays_games(const struct command *command)
{
    static command_fn *const plays[] = {cmd_train, cmd_join, cmd_eval, cmd_rerun, cmd_bench, cmd_worker};
    bool found = false;

    for (size_t i = 0; i < COUNT(plays); i++)
        found = found || plays[i] == command->run;
    return found;
}

static enum status dispatch(int argc, char **argv, struct error *err)
{
    const struct command *command;

    if (argc < 2)
        return FAIL(err, ST_USAGE, "no command given; `trawl --help` lists them");
    if (strcmp(argv[1], "help") == 0 && argc > 2) { /* help COMMAND is COMMAND --help */
        char *help[] = {argv[2], "--help", NULL};
        command = find_command(argv[2], err);
        return command == NULL ? ST_USAGE : command->run(2, help, err);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_help();
        return ST_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts(program_text);
        return ST_OK;
    }
    if (strcmp(argv[1], "reference") == 0 && argc == 3 && strcmp(argv[2], "--man") == 0)
        return print_man(err);
    command = find_command(argv[1], err);
    if (command == NULL)
        return ST_USAGE;
    if (!plays_games(command))
        return command->run(argc - 1, argv + 1, err);
    bool inherited = guard_has_children();
    if (!inherited)
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* of what a game forks, also of what leaves its parent */
    env_libraries_run();
    enum status rc = command->run(argc - 1, argv + 1, err);
    if (!inherited)
        guard_sweep_up(); /* what a game has forked ends with it */
    return rc;
}

/* A standard stream that the caller closed becomes one that cannot be written, lest a store or a checkpoint get its
 * number and messages land inside. */
static void hold_standard_streams(void)
{
    int fd;

    do {
        fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

/* Has the reader of stdout gone, as in `trawl ls | head -1`? That needs no words. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

static enum status flush_output(enum status rc, struct error *err)
{
    bool failed_before = ferror(stdout) != 0;
    /* errno belongs to the last call alone */
    const char *why = fflush(stdout) != 0 ? strerror(errno) : "a write failed";

    if (rc != ST_OK || (!failed_before && !ferror(stdout)))
        return rc;
    if (reader_is_gone())
        return ST_IO;
    return FAIL(err, ST_IO, "stdout: %s; the output is not complete", why);
}

int main(int argc, char **argv)
{
    struct error err = {0};

    hold_standard_streams();
    if (getenv("TRAWL_DEBUG") != NULL)
        log_set_level(LOG_LEVEL_DEBUG);
    store_sqlite_log();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, reported once below */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that may not grow (ulimit -f) */
    clock_watch_stops();
    enum status rc = flush_output(dispatch(argc, argv, &err), &err);
    env_libraries_leave();
    if (rc != ST_OK && err.text[0] != '\0')
        fprintf(stderr, "trawl: %s\n", err.text);
    if (rc == ST_DEVICE)
        _exit(status_exit_code(rc)); /* the driver's own end of the process may wait for a device that hangs */
    return status_exit_code(rc);
}
