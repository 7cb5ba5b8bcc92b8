/* cmd_join.c - `trawl join`: this host's devices take part in a training that another host leads. */
#include "study/setup/setup.h"
#include "store/store.h"
#include "study/version.h"
#include "sweep/game_output.h"
#include "sweep/cmd/commands.h"
#include "sweep/long_wait.h"
#include "sweep/launch/device_spec.h"
#include "sweep/worker/session.h"
#include "sweep/signals.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define SIGNAL_LOOK_S 0.2

struct join_cmd {
    const char *devices, *store;
    double patience_s; /* for the first host's answer */
    bool if_wanted;
    struct session session;
    struct train_hosts *hosts;
};

/* The GPUs that it offers; 0: this host has none, or is to train on its CPU. */
static enum status find_gpus(struct join_cmd *c, int *ret_n, struct error *err)
{
    char reason[256];

    *ret_n = 0;
    if (strcmp(c->devices, "cpu") == 0)
        return ST_OK;
    if (strcmp(c->devices, "all") == 0) {
        *ret_n = kern_cuda_available(reason, sizeof reason) ? kern_cuda_count() : 0;
        return ST_OK;
    }
    if (!device_gpus(c->devices, &c->session.ordinal, &c->session.n_gpus))
        return FAIL(err, ST_USAGE, "join: --devices %s; all, cpu, cuda:NUMBER or cuda:FIRST-LAST are allowed",
                    c->devices);
    if (!kern_cuda_available(reason, sizeof reason))
        return FAIL(err, ST_DEVICE, "join: --devices %s: %s", c->devices, reason);
    *ret_n = c->session.n_gpus;
    return ST_OK;
}

/* The first host's config, without the policy that it begins from: that comes with its bytes. */
static enum status read_config(const char *text, struct setup **ret_setup, struct error *err)
{
    TRY(setup_create(ret_setup, err));
    enum status rc = config_load_text((*ret_setup)->config, "the first host's config", text, err);
    THEN(rc, config_set((*ret_setup)->config, CONFIG_COMMAND, "train.from_policy", "", "join", err));
    return rc == ST_OK ? setup_finish(*ret_setup, err) : rc;
}

static enum status open_device(struct join_cmd *c, struct setup *setup, const struct train_part *part,
                               struct error *err)
{
    setup->train.device = (int)part->kind;
    setup->train.threads = part->kind == KERN_CPU ? (int64_t)(part->n_threads * part->n_all) : setup->train.threads;
    c->session.ranks_here = (int64_t)part->n;
    if (c->session.kern == NULL)
        session_expect_one(setup);
    return session_open_device(&c->session, setup, err);
}

static enum status follow(struct join_cmd *c, const char *config, const struct train_part *part, struct error *err)
{
    AT_END(setup_destroy_at) struct setup *setup = NULL;
    struct error why = {0};
    enum status rc = read_config(config, &setup, &why);

    THEN(rc, open_device(c, setup, part, &why));
    if (rc == ST_OK) {
        log_info("%s: ranks %zu to %zu of %zu on %s", setup->env->name, part->first, part->first + part->n - 1,
                 part->n_all, kern_device_name(c->session.kern));
        rc = train_follow(c->hosts, c->session.kern, setup->env, setup->env_settings, &setup->policy, &setup->train,
                          signals_stop, err);
    } else if (train_hosts_refuse(c->hosts, &why, err) == ST_OK) {
        rc = FAIL(err, ST_DEVICE, "this host cannot take part: %s", why.text); /* in this training; maybe in others */
    }
    return rc;
}

static enum status run(struct join_cmd *c, const char *where, struct error *err)
{
    struct train_part part;
    bool trained = false;
    char *config = NULL;
    int n_gpus;

    TRY(find_gpus(c, &n_gpus, err));
    signals_catch();
    enum status rc = train_hosts_join(&c->hosts, where, program_text, n_gpus, c->patience_s, err);
    if ((rc == ST_IO || rc == ST_BUSY) && c->if_wanted) {
        error_clear(err);
        return ST_OK;
    }
    if (rc == ST_OK)
        log_info("this host takes part, and waits for %.*s to begin", (int)strcspn(where, "/"), where);
    while (rc == ST_OK) {
        while (!train_hosts_called(c->hosts, SIGNAL_LOOK_S) && !signals_stop())
            ;
        if (signals_stop())
            return FAIL(err, ST_INTERRUPTED, "interrupted%s",
                        trained ? "; the first host has ended its training and reports what is saved" : "");
        rc = train_hosts_next(c->hosts, &config, &part, err);
        if (config == NULL)
            break;
        rc = follow(c, config, &part, err);
        trained = rc == ST_OK;
        mem_free(config);
    }
    return rc;
}

/* ---- for the nodes of a store ---- */

#define LOOK_S 1 /* at which nodes there are */
#define NODE_PATIENCE_S "3" /* a node that answers later has no use for us now */
#define N_AVOIDED 64
#define NOT_WANTED_S 5.0 /* a process that ended well within this was of no use to the node */
#define AVOID_MIN_S 2
#define AVOID_MAX_S 600

/* An address where a training has failed. */
struct avoided {
    char where[NODE_MEETS_MAX];
    double until_s, pause_s;
};

/* One training of a node, or a node that has no use for this host, in a process of its own: a device can be lost with
 * it. Returns its exit code. */
static int try_node(const struct join_cmd *c, const char *where)
{
    pid_t pid = fork();
    bool asked = false;
    int status = 0;

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        execl("/proc/self/exe", "trawl", "join", where, "--if-wanted", "--devices", c->devices, "--patience",
              NODE_PATIENCE_S, (char *)NULL);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        if (signals_stop() && !asked) /* once: a second signal ends it at once */
            (void)kill(pid, SIGTERM);
        asked = signals_stop();
        usleep(50000);
    }
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The place of an address, or the one to use for it. */
static struct avoided *find_avoided(struct avoided *v, const char *where)
{
    struct avoided *oldest = v;

    for (size_t i = 0; i < N_AVOIDED; i++) {
        if (strcmp(v[i].where, where) == 0)
            return &v[i];
        if (v[i].until_s < oldest->until_s)
            oldest = &v[i];
    }
    return oldest;
}

/* A training that this host could not take part in, or that broke, is left alone for a while that doubles each time;
 * one that refuses this host's build, for good: a process of another build has another address. false: this host was of
 * no use. */
static bool serve_node(const struct join_cmd *c, struct avoided *avoided, const char *where)
{
    struct avoided *a = find_avoided(avoided, where);
    bool again = strcmp(a->where, where) == 0;
    double begun_s = clock_mono_s();

    if (again && begun_s < a->until_s)
        return false;
    int code = try_node(c, where);
    if (code == 0) {
        if (again)
            *a = (struct avoided){0};
        return clock_mono_s() - begun_s > NOT_WANTED_S;
    }
    if (code == status_exit_code(ST_CONFIG))
        a->pause_s = INFINITY;
    else
        a->pause_s = again ? fmin(2 * a->pause_s, AVOID_MAX_S) : AVOID_MIN_S;
    a->until_s = clock_mono_s() + a->pause_s;
    snprintf(a->where, sizeof a->where, "%s", where);
    return false;
}

/* Until a signal. */
static enum status serve_nodes(const struct join_cmd *c, struct error *err)
{
    struct store *store = NULL;
    struct avoided avoided[N_AVOIDED] = {0};
    struct node *nodes = NULL;
    size_t n = 0;
    bool away = false;
    struct long_wait wait;

    if (!store_may_exist(c->store))
        return FAIL(err, ST_NOTFOUND, "there is no store at %s; check --store, or start one with `trawl sweep`",
                    c->store);
    TRY(store_open_second(&store, c->store, err));
    signals_catch();
    long_wait_begin(&wait);
    log_info("waiting for a node of %s that was started with --hosts", c->store);
    while (!signals_stop()) {
        struct error why = {0};
        if (store == NULL)
            (void)!store_open_second(&store, c->store, &why);
        if (store != NULL && store_node_list(store, 0, &nodes, &n, &why) != ST_OK) {
            store_close(store);
            store = NULL;
            n = 0;
        }
        if (store == NULL && !away)
            log_warn("%s; trying again every %d s", why.text, LOOK_S);
        away = store == NULL;
        for (size_t i = 0; i < n && !signals_stop(); i++)
            if (nodes[i].meets[0] != '\0' && serve_node(c, avoided, nodes[i].meets))
                long_wait_begin(&wait);
        long_wait_report(&wait, "no node has had a use for this host");
        mem_free(nodes);
        nodes = NULL;
        n = 0;
        for (int i = 0; i < 10 && !signals_stop(); i++)
            usleep(LOOK_S * 100000);
    }
    store_close(store);
    return FAIL(err, ST_INTERRUPTED, "stopped");
}

enum status cmd_join(int argc, char **argv, struct error *err)
{
    struct join_cmd c = {.devices = "all", .patience_s = 20};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"devices", 0, CLI_TEXT, &c.devices, "LIST",
         "devices of this host: all, cpu, cuda:1 or cuda:0-3 (all GPUs, else its CPU)"},
        {"store", 0, CLI_STORE, &c.store, "STORE",
         "instead of HOST:PORT/SECRET: for every node of this store that was started with --hosts, until a signal"},
        {"patience", 0, CLI_SECONDS, &c.patience_s, "TIME", "how long the first host may take to answer (20s)"},
        {"if-wanted", 0, CLI_FLAG, &c.if_wanted, NULL,
         "end without an error where the first host does not answer or needs nobody (--store does this for each node)"},
    };
    const struct cli cli = {
        .name = "join",
        .synopsis = "trawl join HOST:PORT/SECRET [--devices LIST]\n       trawl join --store STORE [--devices LIST]",
        .about =
            "Gives this host's devices to a training that another host leads: `trawl train --hosts N` prints the\n"
            "line to run here, and waits for it; a `trawl node --hosts N` writes it into its store. Config, "
            "weights\nand checkpoints come from that host; curve and result appear there. Both hosts need the same "
            "build of trawl,\n"
            "and a game of your own needs its files on both. The command ends with the training; Ctrl-C has the first\n"
            "host save and end it. The connection is not encrypted: use a network that you trust.",
        .examples = "  trawl train pong --train.devices 8 --hosts 2            # on the first host, with four GPUs\n"
                    "  trawl join node1:40217/6e0c...                          # on the second, with four more\n"
                    "  trawl join --store postgresql://db/night --devices cuda:0-3",
        CLI_OPTS(opts),
        CLI_WORDS(0, 1, "the HOST:PORT/SECRET that the first host prints"),
    };
    enum status rc = cli_parse(&cli, argc, argv, &words, err);

    if (rc == ST_OK && !words.help && (c.store != NULL) == (words.n > 0))
        rc = FAIL(err, ST_USAGE, "join: give the HOST:PORT/SECRET that the first host prints, or --store");
    if (rc == ST_OK && !words.help) {
        if (c.store == NULL) /* else it plays in processes of their own */
            game_output_begin("join", NULL);
        rc = c.store != NULL ? serve_nodes(&c, err) : run(&c, words.v[0], err);
        game_output_end(rc != ST_OK);
    }
    session_close(&c.session);
    train_hosts_close(c.hosts);
    return rc;
}
