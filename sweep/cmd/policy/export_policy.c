/* export_policy.c - see export_policy.h. */
#include "sweep/cmd/policy/export_policy.h"

#include "base/os/file.h"
#include "envs/plugin/library.h"
#include "study/setup/setup.h"
#include "sweep/cli.h"

#define POLICY_MAX_BYTES (((size_t)1 << 31) - 1) /* of a message of Protocol Buffers */
#define SAMPLE_STEPS 64
#define SAMPLE_SEED 1

struct checkpoint_player {
    struct setup *setup; /* owned, as all */
    struct kern *kern;
    struct player *player;
};

static const char *const words[] = {
    [POLICY_ONNX] = "onnx", [POLICY_SAFETENSORS] = "safetensors", [POLICY_HEADER] = "header"};
static const char *const suffixes[] = {
    [POLICY_ONNX] = ".onnx", [POLICY_SAFETENSORS] = ".safetensors", [POLICY_HEADER] = ".h"};

static enum status find_form(const char *format, const char *path, enum policy_form *ret_form, struct error *err)
{
    for (int i = 0; i < 3; i++) {
        bool ends = path != NULL && word_ends_in(path, suffixes[i]);
        *ret_form = (enum policy_form)i;
        if (format != NULL ? strcmp(format, words[i]) == 0 : ends)
            return ST_OK;
    }
    if (format != NULL)
        return FAIL(err, ST_USAGE,
                    "export: --format is '%s'; a checkpoint's policy is written as onnx, safetensors or header",
                    format);
    return FAIL(err, ST_USAGE,
                "export: %s is a checkpoint's policy in which form? end its name in .onnx, .safetensors or .h, or give "
                "--format onnx, safetensors or header",
                path != NULL ? path : "stdout");
}

bool export_asks_policy(const char *format, const char *path)
{
    enum policy_form form;
    return (format != NULL || path != NULL) && find_form(format, path, &form, NULL) == ST_OK;
}

/* The file's name without folder and suffix. */
static void base_name(const char *path, char *buf, size_t size)
{
    snprintf(buf, size, "%s", file_name(path));
    buf[strcspn(buf, ".")] = '\0';
}

static enum status write_policy(struct checkpoint_player *p, enum policy_form form, const char *checkpoint,
                                const char *path, struct error *err)
{
    char name[64];

    base_name(path != NULL ? path : checkpoint, name, sizeof name);
    STRBUF(out, POLICY_MAX_BYTES);
    TRY(trainer_export(player_trainer(p->player), form, name, &out, err));
    if (path != NULL) {
        TRY(file_write_all(path, out.text, out.len, err));
        fprintf(stderr, "wrote the policy of %s for %s to %s, %zu bytes\n", checkpoint, p->setup->env->name, path,
                out.len);
    } else if (fwrite(out.text, 1, out.len, stdout) != out.len) {
        return FAIL(err, ST_IO, "export: the policy could not be written to stdout");
    }
    return ST_OK;
}

static enum status write_samples(struct checkpoint_player *p, const char *path, struct error *err)
{
    enum status rc = ST_OK;
    STRBUF(out, POLICY_MAX_BYTES);

    for (int i = 0; rc == ST_OK && i < SAMPLE_STEPS; i++)
        rc = player_trace(p->player, &out, err);
    THEN(rc, file_write_all(path, out.text, out.len, err));
    return rc;
}

/* The checkpoint's policy on one game of its own, on the CPU. Closed also after a failure. */
static enum status open_player(struct checkpoint_player *p, const char *checkpoint, struct error *err)
{
    const struct kern_settings cpu = {.kind = KERN_CPU, .n_threads = 1};
    MEM_LOCAL char *text = NULL;

    env_libraries_run();
    TRY(setup_create(&p->setup, err));
    TRY(checkpoint_read_config(checkpoint, &text, err));
    TRY(config_load_text(p->setup->config, checkpoint, text, err));
    TRY(setup_finish(p->setup, err));
    p->setup->train.precision = TRAIN_PRECISION_AUTO; /* trained on whatever, played on a CPU */
    TRY(kern_open(&p->kern, &cpu, err));
    return player_create(&p->player, p->kern, p->setup->env, p->setup->env_settings, &p->setup->policy,
                         &p->setup->train, checkpoint, SAMPLE_SEED, false, err);
}

static void close_player(struct checkpoint_player *p)
{
    player_destroy(p->player);
    kern_close(p->kern);
    setup_destroy(p->setup);
}

enum status export_policy(const char *checkpoint, const char *format, const char *path, const char *samples,
                          struct error *err)
{
    struct checkpoint_player p = {0};
    enum policy_form form;

    TRY(find_form(format, path, &form, err));
    if (path != NULL)
        TRY(check_output(path, OUTPUT_OTHER, &checkpoint, 1, err));
    if (samples != NULL)
        TRY(check_output(samples, OUTPUT_OTHER, (const char *const[]){checkpoint, path}, 2, err));
    enum status rc = open_player(&p, checkpoint, err);
    THEN(rc, write_policy(&p, form, checkpoint, path, err));
    if (rc == ST_OK && samples != NULL)
        rc = write_samples(&p, samples, err);
    close_player(&p);
    return rc;
}
