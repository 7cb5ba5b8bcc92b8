/* cmd_agent.c - `trawl agent`: trains trials of a study with any program, on any machine that reaches its server. */
#include "base/os/file.h"
#include "store/store.h"
#include "study/setup/setup.h"
#include "sweep/agent/agent.h"
#include "sweep/agent/agent_settings.h"
#include "sweep/agent/spool.h"
#include "sweep/cmd/commands.h"
#include "sweep/launch/devices.h"
#include "sweep/signals.h"

#define TOKEN_FILE_MAX 256
#define TOKEN_VARIABLE "TRAWL_TOKEN"

struct agent_cmd {
    const char *name, *devices, *token_file, *spool, *dir;
    int64_t jobs;
    double limit_s, grace_s;
    char *token; /* owned */
    char spool_path[PATH_MAX], dir_path[PATH_MAX];
    struct agent_slot *slots; /* owned */
    size_t n_slots;
    struct agent_settings set;
};

/* The file's first word, or the variable, which programs that are started do not see. */
static enum status read_token(struct agent_cmd *c, struct error *err)
{
    const char *variable = getenv(TOKEN_VARIABLE);
    size_t n = 0;

    if (c->token_file != NULL) {
        TRY(file_read_all(c->token_file, TOKEN_FILE_MAX, &c->token, &n, err));
        c->token[strcspn(c->token, " \t\r\n")] = '\0';
    } else if (variable != NULL && variable[0] != '\0') {
        c->token = mem_strdup(variable);
    }
    (void)unsetenv(TOKEN_VARIABLE);
    return ST_OK;
}

static void add_slot(struct agent_cmd *c, const char *device, int64_t k, int gpu)
{
    struct agent_slot *slot = &c->slots[c->n_slots++];
    char part[48] = "", number[24] = "";

    if (device[0] != '\0')
        snprintf(part, sizeof part, "/%s", device);
    if (c->jobs > 1)
        snprintf(number, sizeof number, "/%lld", (long long)k);
    snprintf(slot->client, sizeof slot->client, "%.60s%s%s", c->name, part, number);
    slot->gpu = gpu;
}

/* jobs slots for each device, or jobs alone. */
static enum status make_slots(struct agent_cmd *c, struct error *err)
{
    struct sweep_settings asked = {.runs_per_device = 1, .worker_memory = "0", .is_program = true};
    MEM_LOCAL struct devices *devices = mem_alloc(sizeof *devices);
    enum status rc = ST_OK;

    if (c->devices != NULL) {
        snprintf(asked.devices, sizeof asked.devices, "%s", c->devices);
        rc = devices_parse(&asked, KERN_AUTO, devices, err);
    }
    for (size_t i = 0; rc == ST_OK && i < devices->n; i++)
        if (devices->v[i].place != PLACE_HERE)
            rc = FAIL(err, ST_USAGE, "agent: %s is another machine; start an agent there", devices->v[i].label);
    size_t n = c->devices != NULL && devices->n > 0 ? devices->n : 1;
    if (rc == ST_OK && n * (size_t)c->jobs > AGENT_SLOTS_MAX)
        rc = FAIL(err, ST_USAGE, "agent: %zu programs at a time; %d are allowed", n * (size_t)c->jobs, AGENT_SLOTS_MAX);
    c->slots = mem_array(AGENT_SLOTS_MAX, sizeof *c->slots);
    for (size_t i = 0; rc == ST_OK && i < n; i++) {
        const char *device = devices->n > 0 ? devices->v[i].label : "";
        int gpu = strncmp(device, "cuda:", 5) == 0 ? (int)strtol(device + 5, NULL, 10) : -1;
        for (int64_t k = 0; k < c->jobs; k++)
            add_slot(c, device, k, gpu);
    }
    return rc;
}

static void default_name(char *buf, size_t size)
{
    char host[64] = "";

    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "host");
    snprintf(buf, size, "%.48s-%d", host, (int)getpid());
}

static enum status run(struct agent_cmd *c, const struct cli_words *words, struct error *err)
{
    struct agent_settings *set = &c->set;

    set->study = words->v[1];
    set->slots = c->slots;
    set->n_slots = c->n_slots;
    set->limit_s = c->limit_s;
    set->grace_s = c->grace_s;
    if (c->spool == NULL)
        TRY(spool_default(c->spool_path, sizeof c->spool_path, err));
    set->spool = c->spool != NULL ? c->spool : c->spool_path;
    TRY(spool_open(set->spool, err));
    snprintf(c->dir_path, sizeof c->dir_path, "%.200s.runs", words->v[1]);
    set->dir = c->dir != NULL ? c->dir : c->dir_path;
    TRY(ask_place_parse(words->v[0], c->token, &set->place, err));
    if (set->place.store[0] != '\0' && !store_may_exist(set->place.store))
        return FAIL(err, ST_USAGE, "agent: %s is neither the address of a server (http://HOST:PORT) nor a store",
                    set->place.store);
    signals_catch();
    return agent_run(set, err);
}

/* Words after "--" are the program's. */
static int find_command(int argc, char **argv)
{
    int i = 1;

    while (i < argc && strcmp(argv[i], "--") != 0)
        i++;
    return i;
}

enum status cmd_agent(int argc, char **argv, struct error *err)
{
    char name[80];
    MEM_LOCAL struct agent_cmd *c = mem_alloc(sizeof *c);
    struct cli_words words;
    int end = find_command(argc, argv);
    const struct cli_opt opts[] = {
        {"jobs", 'j', CLI_INT, &c->jobs, "N", "programs at a time, for each of --devices (1)"},
        {"devices", 0, CLI_TEXT, &c->devices, "LIST",
         "GPUs, each for its own programs by CUDA_VISIBLE_DEVICES: cuda:all, or cuda:0,cuda:1"},
        {"name", 0, CLI_TEXT, &c->name, "NAME",
         "under which the study knows this agent (HOST-PID); one that comes back under its name gets its trials again"},
        {"token-file", 0, CLI_TEXT, &c->token_file, "FILE",
         "its first word is the server's token (" TOKEN_VARIABLE " of the environment, or ?token= of the address)"},
        {"dir", 0, CLI_TEXT, &c->dir, "DIR", "parent folder of the trials' folders (STUDY.runs)"},
        {"spool", 0, CLI_TEXT, &c->spool, "DIR",
         "folder of results that are not acknowledged yet (~/.local/state/trawl/agent)"},
        {"trial-time", 0, CLI_SECONDS, &c->limit_s, "TIME",
         "end a program that has run this long; its trial has "
         "failed"},
        {"grace", 0, CLI_SECONDS, &c->grace_s, "TIME",
         "time between SIGTERM and SIGKILL when a program is stopped "
         "(5s)"},
    };
    const struct cli cli = {
        .name = "agent",
        .synopsis = "trawl agent URL|STORE STUDY [--jobs N] [--devices LIST] -- PROGRAM {argv} ...",
        .about =
            "Trains trials of a study with a program of yours: asks the server (`trawl serve --control`), or the\n"
            "controller of a store on this machine, for a trial, starts the program, passes on what it reports\n"
            "(lines `TRAWL score=0.5 step=100`, docs/own-trainer.md), sends the result, and asks again, until\n"
            "the study has ended. {argv} stands for all parameters as --name value, {NAME} for one, {config} for a\n"
            "file with all of them. When the network is down the program keeps running, and its result waits on the "
            "disk.\n"
            "Ctrl-C stops the programs and gives their trials back.",
        .examples = "  trawl agent http://gpu1:8080 first -- python train.py {argv}\n"
                    "  trawl agent my.db first --jobs 4 -- ./train --lr {lr} --out {dir}\n"
                    "  trawl agent http://gpu1:8080 first --devices cuda:all --token-file token.txt -- python train.py "
                    "{argv}",
        CLI_OPTS(opts),
        CLI_WORDS(2, 2, "the address of a server or a store, and a study"),
    };

    default_name(name, sizeof name);
    *c = (struct agent_cmd){.name = name, .jobs = 1, .grace_s = 5};
    enum status rc = cli_parse(&cli, end, argv, &words, err);
    if (rc == ST_OK && !words.help) {
        c->set.words = (const char *const *)(argv + (end < argc ? end + 1 : end));
        c->set.n_words = end < argc ? (size_t)(argc - end - 1) : 0;
        if (c->set.n_words == 0)
            rc = FAIL(err, ST_USAGE,
                      "agent: give a program after --: trawl agent %s %s -- python train.py "
                      "{argv}",
                      words.v[0], words.v[1]);
        else if (c->jobs < 1 || c->jobs > AGENT_SLOTS_MAX)
            rc = FAIL(err, ST_USAGE, "agent: --jobs is %lld; 1 to %d are allowed", (long long)c->jobs, AGENT_SLOTS_MAX);
        THEN(rc, read_token(c, err));
        THEN(rc, make_slots(c, err));
        THEN(rc, run(c, &words, err));
    }
    mem_free(c->token);
    mem_free(c->slots);
    return rc;
}
