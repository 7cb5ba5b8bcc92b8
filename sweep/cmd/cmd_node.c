/* cmd_node.c - `trawl node`: trains trials of a store on this machine's devices, without a connection to its
 * controller. */
#include "base/os/file.h"
#include "store/store.h"
#include "study/setup/setup.h"
#include "sweep/agent/node.h"
#include "sweep/agent/spool.h"
#include "sweep/cmd/commands.h"
#include "sweep/launch/devices.h"
#include "sweep/signals.h"

struct node_cmd {
    const char *store, *devices, *name, *spool, *listen;
    int64_t runs_per_device, hosts;
    double idle_s;
    struct devices *devs; /* owned */
    char default_name[64], spool_path[PATH_MAX], job[64];
    struct node_settings set;
};

static enum status find_devices(struct node_cmd *c, struct error *err)
{
    struct sweep_settings asked = {.runs_per_device = c->runs_per_device, .worker_memory = "0"};

    snprintf(asked.devices, sizeof asked.devices, "%s", c->devices);
    TRY(devices_parse(&asked, KERN_AUTO, c->devs, err));
    for (size_t i = 0; i < c->devs->n; i++)
        if (c->devs->v[i].place != PLACE_HERE)
            return FAIL(err, ST_USAGE, "node: %s is another machine; start a node there", c->devs->v[i].label);
    if (c->devs->n == 0)
        return FAIL(err, ST_USAGE, "node: --devices %s names no device", c->devices);
    if (c->hosts == 1)
        return c->listen[0] == '\0' ? ST_OK
                                    : FAIL(err, ST_USAGE, "node: --listen is where hosts join; give --hosts too");
    if (c->hosts < 1 || c->hosts > KERN_HOSTS_MAX || c->devs->n > 1 || c->runs_per_device > 1)
        return FAIL(
            err, ST_USAGE,
            "node: --hosts %lld; 2 to %d train together, with one device or group of each (--devices cuda:0-3) and "
            "one trial at a time",
            (long long)c->hosts, KERN_HOSTS_MAX);
    c->devs->v[0].hosts = (int)c->hosts;
    snprintf(c->devs->v[0].listen, sizeof c->devs->v[0].listen, "%s", c->listen);
    return ST_OK;
}

/* "night_3" of an array, "12" of a job alone: what its batch system calls it. */
static void find_job(struct node_cmd *c)
{
    const char *array = getenv("SLURM_ARRAY_JOB_ID"), *task = getenv("SLURM_ARRAY_TASK_ID"),
               *job = getenv("SLURM_JOB_ID");

    if (array != NULL && task != NULL)
        snprintf(c->job, sizeof c->job, "%.40s_%.20s", array, task);
    else if (job != NULL)
        snprintf(c->job, sizeof c->job, "%.60s", job);
}

static enum status run(struct node_cmd *c, struct error *err)
{
    char host[48] = "";

    TRY(find_devices(c, err));
    find_job(c);
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        snprintf(host, sizeof host, "host");
    snprintf(c->default_name, sizeof c->default_name, "%.40s-%d", host, (int)getpid());
    if (c->spool == NULL)
        TRY(spool_default(c->spool_path, sizeof c->spool_path, err));
    c->set = (struct node_settings){.store = c->store,
                                    .name = c->name != NULL ? c->name : c->default_name,
                                    .spool = c->spool != NULL ? c->spool : c->spool_path,
                                    .job = c->job,
                                    .devices = c->devs,
                                    .idle_s = c->idle_s};
    if (!store_may_exist(c->set.store))
        return FAIL(err, ST_NOTFOUND, "there is no store at %s; check --store, or start one with `trawl sweep`",
                    c->set.store);
    TRY(spool_open(c->set.spool, err));
    signals_catch();
    return node_run(&c->set, err);
}

enum status cmd_node(int argc, char **argv, struct error *err)
{
    MEM_LOCAL struct node_cmd *c = mem_alloc(sizeof *c);
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &c->store, "STORE", "the store (trawl.db)"},
        {"devices", 0, CLI_TEXT, &c->devices, "LIST",
         "devices of this machine: all, cpu, cuda:all, or cuda:0,cuda:1 (all)"},
        {"runs-per-device", 0, CLI_INT, &c->runs_per_device, "N", "trials at a time on each device (1)"},
        {"hosts", 0, CLI_INT, &c->hosts, "N",
         "train a trial of more train.devices than this host has with N - 1 others, where `trawl join --store` runs "
         "(1)"},
        {"listen", 0, CLI_TEXT, &c->listen, "ADDRESS",
         "of this host, where these reach it, with :PORT or a free port; :PORT alone too (its name)"},
        {"name", 0, CLI_TEXT, &c->name, "NAME", "under which the store knows this node (HOST-PID)"},
        {"idle", 0, CLI_SECONDS, &c->idle_s, "TIME", "end after this long without a trial (never)"},
        {"spool", 0, CLI_TEXT, &c->spool, "DIR",
         "folder of results that are not in the store yet (~/.local/state/trawl/agent)"},
    };
    const struct cli cli = {
        .name = "node",
        .synopsis = "trawl node [--store STORE] [--devices LIST] [--runs-per-device N] [--idle TIME]",
        .about =
            "Trains trials on this machine's devices for any study of the store that waits: takes a queued\n"
            "trial, trains it as a worker of `trawl sweep` would, writes its curve and its result into the store,\n"
            "and takes the next. It needs only the store; a controller (`trawl daemon`, `trawl sweep`)\n"
            "proposes the trials, here or elsewhere. While the store cannot be reached the trials keep running "
            "and\ntheir results wait on the disk; a trial whose node is silent for sweep.lease_s is queued again, and\n"
            "what that node reports later is kept and not counted. A signal saves the trials, gives them back and\n"
            "ends the node.",
        .examples =
            "  trawl node --store postgresql://db/night --devices cuda:0-3 --hosts 2   # 8 GPUs with a host that "
            "joins\n"
            "  trawl daemon --store night.db --devices none --detach && trawl node --store night.db --devices all\n"
            "  trawl node --store night.db --devices cuda:all --runs-per-device 2 --idle 10m",
        CLI_OPTS(opts),
    };

    c->store = "trawl.db";
    c->devices = "all";
    c->runs_per_device = c->hosts = 1;
    c->listen = "";
    c->devs = mem_alloc(sizeof *c->devs);
    enum status rc = cli_parse(&cli, argc, argv, &words, err);
    if (rc == ST_OK && !words.help && (c->runs_per_device < 1 || c->runs_per_device > SWEEP_LANES_MAX))
        rc = FAIL(err, ST_USAGE, "node: --runs-per-device is %lld; 1 to %d are allowed", (long long)c->runs_per_device,
                  SWEEP_LANES_MAX);
    if (rc == ST_OK && !words.help)
        rc = run(c, err);
    mem_free(c->devs);
    return rc;
}
