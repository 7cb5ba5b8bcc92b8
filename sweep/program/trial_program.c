/* trial_program.c - what a program finds when it is started for a trial (docs/own-trainer.md): {argv} and the other
 * words, TRAWL_TRIAL, TRAWL_ATTEMPT, TRAWL_STUDY, TRAWL_SEED, TRAWL_ENV, TRAWL_CONFIG, TRAWL_DIR, TRAWL_METRICS,
 * CUDA_VISIBLE_DEVICES. */
#include "sweep/program/trial_program.h"

#include "base/text/duration.h"
#include "base/os/file.h"
#include "study/program/program_command.h"
#include "study/setup/setup.h"
#include "sweep/program/program_run.h"

#define ENV_MAX 10
#define ENV_BYTES (PATH_MAX + 64)
#define GPUS_MAX 64

struct trial_place {
    char dir[PATH_MAX], config[PATH_MAX], log[PATH_MAX], metrics[PATH_MAX];
    char env[ENV_MAX][ENV_BYTES];
    const char *names[ENV_MAX];
    size_t n_env;
};

static enum status fill_place(struct trial_place *p, const char *dir, struct error *err)
{
    char real[PATH_MAX];

    TRY(file_make_folders(dir, 0777, err));
    if (realpath(dir, real) == NULL || strlen(real) + 32 > sizeof p->dir)
        return FAIL(err, ST_IO, "%s: the folder of a trial is gone, or its path is too long", dir);
    snprintf(p->dir, sizeof p->dir, "%s", real);
    snprintf(p->config, sizeof p->config, "%.*s/config.ini", PATH_MAX - 32, real);
    snprintf(p->log, sizeof p->log, "%.*s/output.log", PATH_MAX - 32, real);
    snprintf(p->metrics, sizeof p->metrics, "%.*s/metrics.jsonl", PATH_MAX - 32, real);
    return ST_OK;
}

/* "2" of CUDA_VISIBLE_DEVICES = 5,2 for the GPU 1 that we see. */
static void gpu_name(int gpu, char *buf, size_t size)
{
    const char *seen = getenv("CUDA_VISIBLE_DEVICES");

    snprintf(buf, size, "%d", gpu);
    for (int i = 0; seen != NULL && *seen != '\0'; i++) {
        size_t n = strcspn(seen, ",");
        if (i == gpu)
            snprintf(buf, size, "%.*s", (int)n, seen);
        seen += n + (seen[n] == ',');
    }
}

static void add_env(struct trial_place *p, const char *name, const char *value)
{
    char text[ENV_BYTES];

    snprintf(text, sizeof text, "%s=%s", name, value);
    memcpy(p->env[p->n_env], text, sizeof text);
    p->names[p->n_env] = p->env[p->n_env];
    p->n_env++;
}

static void add_number(struct trial_place *p, const char *name, int64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%lld", (long long)value);
    add_env(p, name, text);
}

static void fill_env(struct trial_place *p, const struct trial_folder *f)
{
    char gpus[64 * GPUS_MAX] = "";

    add_number(p, "TRAWL_TRIAL", f->number);
    add_number(p, "TRAWL_ATTEMPT", f->attempt);
    add_env(p, "TRAWL_STUDY", f->study != NULL ? f->study : "");
    add_number(p, "TRAWL_SEED", f->seed);
    if (f->env != NULL && f->env[0] != '\0')
        add_env(p, "TRAWL_ENV", f->env);
    add_env(p, "TRAWL_CONFIG", p->config);
    add_env(p, "TRAWL_DIR", p->dir);
    add_env(p, "TRAWL_METRICS", p->metrics);
    add_env(p, "PYTHONUNBUFFERED", "1"); /* else reports come when the program ends */
    if (f->gpu < 0)
        return;
    for (int i = 0; i < GPUS_MAX && i < (f->n_gpus > 1 ? f->n_gpus : 1); i++) {
        size_t n = strlen(gpus);
        if (i > 0)
            gpus[n++] = ',';
        gpu_name(f->gpu + i, gpus + n, sizeof gpus - n);
    }
    add_env(p, "CUDA_VISIBLE_DEVICES", gpus);
}

enum status trial_place_make(struct trial_place **ret_place, const struct trial_folder *f, struct error *err)
{
    struct trial_place *p = mem_alloc(sizeof *p);
    enum status rc = fill_place(p, f->dir, err);

    THEN(rc, file_write_all(p->config, f->config, strlen(f->config), err));
    if (rc != ST_OK) {
        mem_free(p);
        return rc;
    }
    fill_env(p, f);
    *ret_place = p;
    return ST_OK;
}

void trial_place_free(struct trial_place *place)
{
    mem_free(place);
}

const char *trial_place_dir(const struct trial_place *place)
{
    return place->dir;
}

const char *trial_place_config(const struct trial_place *place)
{
    return place->config;
}

enum status trial_place_start(const struct trial_place *p, const struct program_job *job, struct program_run **ret_run,
                              struct error *err)
{
    struct program_job placed = *job;

    placed.env = p->names;
    placed.n_env = p->n_env;
    placed.log_path = p->log;
    placed.metrics_path = p->metrics;
    return program_run_start(ret_run, &placed, err);
}

enum status trial_program_start(const struct trial_program *t, struct program_run **ret_run, struct error *err)
{
    const struct program_settings *program = &t->setup->program;
    const struct trial_folder folder = {.dir = t->dir,
                                        .config = t->config,
                                        .study = t->study,
                                        .number = t->number,
                                        .attempt = t->attempt,
                                        .seed = program->trial_seed,
                                        .env = program->trial_env,
                                        .gpu = t->gpu,
                                        .n_gpus = t->n_gpus};
    struct program_job job = {.directory = program->directory,
                              .metric = t->metric,
                              .grace_s = program->grace_s,
                              .echo = t->echo,
                              .needs_step = t->needs_step,
                              .own_cost = t->own_cost};
    struct trial_place *place = NULL;
    char **argv = NULL;

    if (program_is_outside(t->setup->config))
        return FAIL(err, ST_CONFIG,
                    "there is no sweep.command: the study's trials are trained by clients elsewhere "
                    "(`trawl agent`); name a program with --sweep.command 'PROGRAM {argv}'");
    (void)parse_seconds(program->trial_time, &job.limit_s);
    TRY(trial_place_make(&place, &folder, err));
    const struct program_place words = {.config = place->config,
                                        .dir = place->dir,
                                        .study = t->study,
                                        .env = program->trial_env,
                                        .trial = t->number,
                                        .seed = program->trial_seed};
    enum status rc = program_argv(t->setup->config, &t->setup->params, &words, &argv, err);
    job.argv = argv;
    THEN(rc, trial_place_start(place, &job, ret_run, err));
    program_argv_free(argv);
    trial_place_free(place);
    return rc;
}
