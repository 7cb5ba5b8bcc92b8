/* slurm_nodes.c - arrays of nodes in Slurm.
 *
 *   look (squeue) --too few--> submit (sbatch --array) --.
 *     ^  '--------too many jobs that wait--> cancel -----'-> look again
 *
 * Invariants: (1) Slurm is asked what there is each time, and nothing about jobs is kept: a controller that was killed
 * has forgotten nothing; (2) only jobs that have not begun are cancelled: a node without a trial ends by itself, and
 * one with a trial keeps it. */
#include "sweep/launch/slurm_nodes.h"

#include "base/os/environment.h"
#include "base/hash.h"
#include "store/store.h"
#include "study/setup/setup.h"
#include "sweep/launch/remote_devices.h"

#include <ctype.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#define COMMAND_MAX 8192
#define LOOK_S 5
#define TROUBLE_S 10 /* after a command of Slurm's failed */
#define IDLE_S 60 /* after which a node without a trial ends */
#define NOTICE_S 60 /* before a job's time is over: it saves */
/* The node is a step of its job: Slurm warns steps before it takes a preempted job's machine, and not the script. */
#define STEP "exec srun --quiet ${SLURM_CPUS_PER_TASK:+--cpus-per-task=$SLURM_CPUS_PER_TASK}"
#define OUTPUT_MAX 262144
#define ARRAY_MAX 1000 /* Slurm's usual limit of one array */

enum step { STEP_NONE, STEP_LOOK, STEP_ACT };

struct slurm_nodes {
    char name[40]; /* of the jobs: the same for all controllers that follow each other */
    char *submit; /* sbatch, but for --array; owned */
    char *node; /* what a job runs; owned */
    int64_t max, trials_per_node;
    enum step step;
    pid_t pid;
    int fd; /* the command's output */
    struct strbuf out; /* while a command runs */
    int64_t n_trials;
    double next_s;
    bool trouble; /* it was logged that Slurm does not answer */
};

static enum status read_words(struct slurm_nodes *n, const struct sweep_settings *set, const char *store,
                              struct error *err)
{
    char *text = mem_strdup(set->launcher), *star = strrchr(text, '*'), *end = NULL;
    struct strbuf sb;
    bool gpu = false;
    enum status rc = ST_OK;

    n->max = 1;
    if (star != NULL) {
        *star = '\0';
        n->max = strtoll(star + 1, &end, 10);
    }
    if (strncmp(text, "slurm", 5) != 0 || (text[5] != '\0' && text[5] != ':') || n->max < 1 || n->max > 10000 ||
        (end != NULL && *end != '\0'))
        rc = FAIL(err, ST_CONFIG,
                  "sweep.launcher is '%.60s'; use none, or slurm:KEY=VALUE/KEY=VALUE*N with options of sbatch and up "
                  "to N jobs: slurm:gpu=1/partition=long/time=4:00:00*16",
                  set->launcher);
    strbuf_init(&sb, COMMAND_MAX);
    strbuf_addf(&sb, "sbatch --parsable --requeue --signal=USR1@%d --job-name=%s --output=/dev/null", NOTICE_S,
                n->name);
    if (rc == ST_OK && text[5] == ':')
        rc = slurm_options_read(text + 6, "sweep.launcher", &sb, &gpu, err);
    THEN(rc, strbuf_status(&sb, "the command of a Slurm job", err));
    n->submit = strbuf_take(&sb);
    strbuf_init(&sb, COMMAND_MAX);
    strbuf_addf(&sb, STEP " %s node --store %s --devices %s --runs-per-device %lld --idle %ds", set->remote_program,
                SHELL_WORD(store), gpu ? "cuda:all" : "cpu", (long long)set->runs_per_device, IDLE_S);
    n->node = strbuf_take(&sb);
    n->trials_per_node = set->runs_per_device;
    mem_free(text);
    return rc;
}

enum status slurm_nodes_create(struct slurm_nodes **ret, const struct sweep_settings *set, const char *store_path,
                               const char *study, struct error *err)
{
    char real[PATH_MAX];
    const char *path = realpath(store_path, real) != NULL ? real : store_path;
    struct slurm_nodes *n;

    *ret = NULL;
    if (strcmp(set->launcher, "none") == 0)
        return ST_OK;
    n = mem_alloc(sizeof *n);
    n->fd = -1;
    uint64_t hash = hash_text(path) ^ (store_is_address(path) && study[0] != '\0' ? hash_text(study) : 0);
    snprintf(n->name, sizeof n->name, "trawl-%08x", (unsigned)hash);
    enum status rc = read_words(n, set, path, err);
    if (rc == ST_OK && !store_is_address(store_path))
        log_warn("sweep.launcher: %s is a file, so nodes on other machines must not use it; a store in PostgreSQL is "
                 "for those (docs/many-machines.md), continuing",
                 store_path);
    if (rc != ST_OK) {
        slurm_nodes_destroy(n);
        return rc;
    }
    *ret = n;
    return ST_OK;
}

/* Starts a shell command, whose output is read round by round. */
static void begin(struct slurm_nodes *n, enum step step, const char *command)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    int fds[2], rc;

    if (pipe2(fds, O_CLOEXEC) != 0)
        return;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
    posix_spawn_file_actions_adddup2(&actions, fds[1], 2);
    MEM_LOCAL char **env = environment_public(NULL);
    rc = posix_spawn(&n->pid, "/bin/sh", &actions, NULL, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[1]);
    if (rc != 0) {
        close(fds[0]);
        return;
    }
    n->fd = fds[0];
    (void)fcntl(n->fd, F_SETFL, O_NONBLOCK);
    strbuf_init(&n->out, OUTPUT_MAX);
    n->step = step;
}

static void fail(struct slurm_nodes *n, const char *text, double now_s)
{
    if (!n->trouble)
        log_warn("Slurm does not do as it is asked (%.*s); trying again every %d s, continuing",
                 text != NULL ? (int)strcspn(text, "\n") : 9, text != NULL ? text : "no answer", TROUBLE_S);
    n->trouble = true;
    n->next_s = now_s + TROUBLE_S;
}

/* By what squeue printed, "ID STATE" in each line. */
static void act(struct slurm_nodes *n, const char *text, double now_s)
{
    int64_t n_jobs = 0, n_waiting = 0, wanted = (n->n_trials + n->trials_per_node - 1) / n->trials_per_node;
    struct strbuf command;

    wanted = n->n_trials > n->max * n->trials_per_node ? n->max : wanted;
    strbuf_init(&command, OUTPUT_MAX);
    strbuf_add(&command, "scancel");
    for (const char *line = text; line != NULL && *line != '\0';) {
        char id[64], state[16];
        if (isdigit((unsigned char)*line) && sscanf(line, "%63s %15s", id, state) == 2) {
            n_jobs++;
            if (strcmp(state, "PD") == 0 && n_jobs > wanted) { /* the last ones of the queue */
                n_waiting++;
                strbuf_addf(&command, " %s", id);
            }
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    n->next_s = now_s + LOOK_S;
    if (n_jobs < wanted) {
        int64_t more = wanted - n_jobs < ARRAY_MAX ? wanted - n_jobs : ARRAY_MAX;
        strbuf_free(&command);
        strbuf_init(&command, OUTPUT_MAX);
        strbuf_addf(&command, "%s --array=1-%lld --wrap ", n->submit, (long long)more);
        strbuf_add_shell(&command, n->node);
        log_info("submitting to Slurm: nodes %lld, beside the %lld that run or wait", (long long)more,
                 (long long)n_jobs);
        begin(n, STEP_ACT, command.text);
    } else if (n_waiting > 0) {
        log_info("%lld nodes that wait in Slurm's queue are cancelled: no trial waits for them", (long long)n_waiting);
        begin(n, STEP_ACT, command.text);
    }
    strbuf_free(&command);
}

/* Has the command ended? */
static bool collect(struct slurm_nodes *n, int *ret_state)
{
    char buf[4096];
    ssize_t got;

    while ((got = read(n->fd, buf, sizeof buf)) > 0)
        strbuf_add_n(&n->out, buf, (size_t)got);
    if (waitpid(n->pid, ret_state, WNOHANG) != n->pid)
        return false;
    while ((got = read(n->fd, buf, sizeof buf)) > 0)
        strbuf_add_n(&n->out, buf, (size_t)got);
    close(n->fd);
    n->fd = -1;
    n->pid = 0;
    return true;
}

void slurm_nodes_round(struct slurm_nodes *n, int64_t n_trials, double now_s)
{
    char command[160];
    int state = 0;

    if (n == NULL)
        return;
    n->n_trials = n_trials;
    if (n->step == STEP_NONE && now_s >= n->next_s) {
        snprintf(command, sizeof command, "squeue -h -r --me -n %s -t PD,CF,R,CG,S -S t,i -o '%%i %%t'", n->name);
        begin(n, STEP_LOOK, command);
    }
    if (n->step == STEP_NONE || !collect(n, &state))
        return;
    MEM_LOCAL char *text = strbuf_take(&n->out);
    enum step was = n->step;
    n->step = STEP_NONE;
    if (!WIFEXITED(state) || WEXITSTATUS(state) != 0)
        fail(n, text, now_s);
    else if (was == STEP_LOOK)
        act(n, text, now_s);
    else
        n->next_s = now_s + 1;
}

void slurm_nodes_destroy(struct slurm_nodes *n)
{
    char command[160];
    int state;

    if (n == NULL)
        return;
    if (n->pid > 0) {
        (void)waitpid(n->pid, &state, 0);
        strbuf_free(&n->out);
    }
    if (n->fd >= 0)
        close(n->fd);
    n->fd = -1;
    n->pid = 0;
    if (n->node != NULL) {
        snprintf(command, sizeof command, "scancel --me --name=%s --state=PENDING", n->name);
        begin(n, STEP_ACT, command);
        if (n->pid > 0) {
            (void)waitpid(n->pid, &state, 0);
            strbuf_free(&n->out);
            close(n->fd);
        }
    }
    mem_free(n->submit);
    mem_free(n->node);
    mem_free(n);
}
