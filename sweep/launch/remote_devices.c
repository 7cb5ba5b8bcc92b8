/* remote_devices.c - workers on other machines, as commands: a worker speaks on the stdin and stdout of whatever starts
 * it, so that ssh, srun or any other program is its network.
 *
 *   ssh:HOST            every GPU of the host, else its CPU       ssh:HOST/cuda:all, /cuda:2, /cpu, /cpu*4
 *   slurm:gpu=1*16      up to 16 jobs by srun                     slurm:KEY=VALUE/KEY=VALUE*N
 *   cmd:COMMAND         a command that is a worker                cmd*4:COMMAND
 *
 * Invariant: whatever is put into a command for a shell holds no character that a shell gives a meaning, but for the
 * user's own commands (sweep.ssh, sweep.remote_program, cmd:). */
#include "sweep/launch/remote_devices.h"

#include "study/setup/setup.h"
#include "sweep/launch/devices.h"
#include "sweep/launch/probe.h"

#define SSH_OPTIONS                                                                                                    \
    "-T -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 -o LogLevel=ERROR"
#define SRUN_OPTIONS "--ntasks=1 --nodes=1 --job-name=trawl --signal=USR1@60 --kill-on-bad-exit=1"
#define PROBE_S 30 /* how long a host may take to report its GPUs */

bool remote_devices_is_command(const char *text)
{
    return strncmp(text, "cmd:", 4) == 0 || strncmp(text, "cmd*", 4) == 0;
}

bool remote_devices_is_word(const char *text)
{
    return strncmp(text, "ssh:", 4) == 0 || strncmp(text, "slurm", 5) == 0 || remote_devices_is_command(text);
}

static bool only(const char *text, const char *more)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    for (; *text != '\0'; text++)
        if (strchr(plain, *text) == NULL && strchr(more, *text) == NULL)
            return false;
    return true;
}

/* "...*N" */
static enum status take_count(char *word, int64_t *ret_n, struct error *err)
{
    char *star = strrchr(word, '*'), *end;

    *ret_n = 1;
    if (star == NULL)
        return ST_OK;
    *ret_n = strtoll(star + 1, &end, 10);
    if (end == star + 1 || *end != '\0' || *ret_n < 1 || *ret_n > WORKERS_MAX)
        return FAIL(err, ST_CONFIG, "sweep.devices: '%.60s' ends with no number of workers from 1 to %d", word,
                    WORKERS_MAX);
    *star = '\0';
    return ST_OK;
}

static enum status set_command(struct device_spec *spec, const char *text, struct error *err)
{
    if (strlen(text) >= sizeof spec->command)
        return FAIL(err, ST_CONFIG, "sweep.devices: the command of %s is longer than %zu bytes", spec->label,
                    sizeof spec->command - 1);
    snprintf(spec->command, sizeof spec->command, "%s", text);
    return ST_OK;
}

/* n workers that share the cores of one host. */
static enum status add_shares(struct devices *d, const struct device_spec *model, int64_t n, struct error *err)
{
    for (int64_t i = 0; i < n; i++) {
        struct device_spec spec = *model;
        if (n > 1) {
            snprintf(spec.label, sizeof spec.label, "%.90s/%d", model->label, (int)i);
            spec.share = (int)i;
            spec.n_shares = (int)n;
        }
        TRY(devices_add(d, &spec, err));
    }
    return ST_OK;
}

/* n workers by the same command, each wherever that puts it. */
static enum status add_numbered(struct devices *d, const struct device_spec *model, int64_t n, struct error *err)
{
    int64_t from = 0;

    for (size_t i = 0; i < d->n; i++)
        from += d->v[i].place == model->place;
    for (int64_t i = from; i < from + n; i++) {
        struct device_spec spec = *model;
        snprintf(spec.label, sizeof spec.label, "%.20s/%lld", model->host, (long long)i);
        TRY(devices_add(d, &spec, err));
    }
    return ST_OK;
}

static bool is_gpu(const char *name)
{
    int first, n;

    return device_gpus(name, &first, &n) && strlen(name) < 14;
}

static enum status add_ssh(struct devices *d, char *word, const struct sweep_settings *settings, struct error *err)
{
    struct device_spec spec = {.place = PLACE_SSH, .lanes = 1};
    char *host = word + 4, *device = strchr(host, '/'), text[DEVICE_COMMAND_MAX];
    int64_t n;

    TRY(take_count(word, &n, err));
    if (strpbrk(settings->remote_program, "'\"\\$`;&|<>\n") != NULL) /* it passes two shells */
        return FAIL(err, ST_CONFIG,
                    "sweep.remote_program is '%.100s', with a character that a shell reads; use a path without",
                    settings->remote_program);
    if (device != NULL)
        *device++ = '\0';
    else
        device = "auto";
    if (*host == '\0' || *host == '-' || strlen(host) >= sizeof spec.host || !only(host, "@:%[]"))
        return FAIL(err, ST_CONFIG,
                    "sweep.devices: '%.60s' names no host; use ssh:HOST/DEVICE with a name that `ssh HOST` knows",
                    word);
    if (strcmp(device, "cuda") == 0)
        device = "cuda:0";
    spec.expand = strcmp(device, "auto") == 0 || strcmp(device, "cuda:all") == 0;
    if (!spec.expand && strcmp(device, "cpu") != 0 && !is_gpu(device))
        return FAIL(
            err, ST_CONFIG,
            "sweep.devices: '%.40s' is not a device of %s; use auto, cpu, cuda:all, one like cuda:0, or cuda:0-3",
            device, host);
    if (n > 1 && strcmp(device, "cpu") != 0)
        return FAIL(err, ST_CONFIG, "sweep.devices: several workers share one device of %s; use sweep.runs_per_device",
                    host);
    if (is_gpu(device))
        spec.lanes = (int)settings->runs_per_device;
    snprintf(spec.host, sizeof spec.host, "%s", host);
    snprintf(spec.name, sizeof spec.name, "%s", strcmp(device, "cuda:all") == 0 ? "cuda:0" : device);
    snprintf(spec.label, sizeof spec.label, "ssh:%s/%.16s", host, device);
    snprintf(text, sizeof text, "exec %.500s " SSH_OPTIONS " %s 'exec sh -c \"%.500s worker --stdio; exit \\$?\"'",
             settings->ssh, host, settings->remote_program);
    TRY(set_command(&spec, text, err));
    return add_shares(d, &spec, n, err);
}

enum status slurm_options_read(char *text, const char *option, struct strbuf *sb, bool *ret_gpu, struct error *err)
{
    char *rest = NULL;

    *ret_gpu = false;
    for (char *word = strtok_r(text, "/", &rest); word != NULL; word = strtok_r(NULL, "/", &rest)) {
        char *value = strchr(word, '=');
        if (value == NULL || value == word || *word == '-' || value[1] == '\0' || !only(word, "=:@+"))
            return FAIL(err, ST_CONFIG,
                        "%s: '%.60s' is not a Slurm option of the form KEY=VALUE; an example: "
                        "slurm:gpu=1/partition=long/time=8:00:00*16",
                        option, word);
        *value++ = '\0';
        if (strcmp(word, "gpu") != 0) {
            strbuf_addf(sb, " --%s=%s", word, value);
            continue;
        }
        if (strcmp(value, "1") != 0)
            return FAIL(err, ST_CONFIG, "%s: slurm:gpu=%.20s: a worker uses one GPU; use gpu=1, and *N for N of them",
                        option, value);
        strbuf_addf(sb, " --gres=gpu:1");
        *ret_gpu = true;
    }
    return ST_OK;
}

static enum status add_slurm(struct devices *d, char *word, const struct sweep_settings *settings, struct error *err)
{
    struct device_spec spec = {.place = PLACE_SLURM, .lanes = 1, .host = "slurm", .label = "slurm"};
    int64_t n;
    bool gpu = false;

    TRY(take_count(word, &n, err));
    if (word[5] != '\0' && word[5] != ':')
        return FAIL(err, ST_CONFIG, "sweep.devices: '%.60s' is not a device; for Slurm use slurm:KEY=VALUE/KEY=VALUE*N",
                    word);
    STRBUF(sb, DEVICE_COMMAND_MAX);
    strbuf_addf(&sb, "exec srun " SRUN_OPTIONS " ${SLURM_JOB_ID:+--exact}");
    enum status rc = word[5] == '\0' ? ST_OK : slurm_options_read(word + 6, "sweep.devices", &sb, &gpu, err);
    strbuf_addf(&sb, " %s worker --stdio", settings->remote_program);
    snprintf(spec.name, sizeof spec.name, "%s", gpu ? "cuda:0" : "cpu");
    if (gpu)
        spec.lanes = (int)settings->runs_per_device;
    THEN(rc, strbuf_status(&sb, "the command of a Slurm job", err));
    THEN(rc, set_command(&spec, sb.text, err));
    return rc == ST_OK ? add_numbered(d, &spec, n, err) : rc;
}

static enum status add_command(struct devices *d, char *word, const struct sweep_settings *settings, struct error *err)
{
    struct device_spec spec = {.place = PLACE_COMMAND, .name = "auto", .host = "cmd", .label = "cmd"};
    char *command = strchr(word, ':');
    int64_t n;

    if (command == NULL)
        return FAIL(err, ST_CONFIG, "sweep.devices: '%.60s' has no command; use cmd:COMMAND or cmd*N:COMMAND", word);
    *command++ = '\0';
    TRY(take_count(word, &n, err));
    command += strspn(command, " ");
    if (*command == '\0')
        return FAIL(err, ST_CONFIG,
                    "sweep.devices: cmd: is followed by no command; an example: cmd:docker run -i trawl worker "
                    "--stdio");
    spec.lanes = (int)settings->runs_per_device;
    TRY(set_command(&spec, command, err));
    return add_numbered(d, &spec, n, err);
}

enum status remote_devices_add(struct devices *d, const char *word, const struct sweep_settings *settings,
                               struct error *err)
{
    MEM_LOCAL char *text = mem_strdup(word);
    enum status rc = strncmp(word, "ssh:", 4) == 0     ? add_ssh(d, text, settings, err)
                     : remote_devices_is_command(word) ? add_command(d, text, settings, err)
                                                       : add_slurm(d, text, settings, err);

    return rc;
}

/* ---- every device of a host ---- */

/* What an entry that means all devices of its host becomes: its GPUs, or its CPU. */
static enum status add_found(struct devices *d, const struct device_spec *from, const struct probe *found,
                             const struct sweep_settings *settings, struct error *err)
{
    struct device_spec spec = *from;

    spec.expand = false;
    if (found->gpus == 0 && strcmp(from->name, "auto") == 0) {
        snprintf(spec.name, sizeof spec.name, "cpu");
        snprintf(spec.label, sizeof spec.label, "ssh:%s/cpu", from->host);
        return add_shares(d, &spec, settings->runs_per_device, err);
    }
    spec.lanes = (int)settings->runs_per_device;
    for (int64_t i = 0; i < (found->gpus > 0 ? found->gpus : 1); i++) { /* without a GPU the worker reports why */
        snprintf(spec.name, sizeof spec.name, "cuda:%d", (int)i);
        snprintf(spec.label, sizeof spec.label, "ssh:%s/cuda:%d", from->host, (int)i);
        TRY(devices_add(d, &spec, err));
    }
    return ST_OK;
}

enum status remote_devices_expand(struct devices *d, const struct sweep_settings *settings, struct error *err)
{
    MEM_LOCAL struct devices *before = NULL;
    enum status rc = ST_OK;
    bool any = false;

    for (size_t i = 0; i < d->n; i++)
        any = any || d->v[i].expand;
    if (!any)
        return ST_OK;
    before = mem_alloc(sizeof *before);
    *before = *d;
    d->n = 0;
    MEM_LOCAL struct probe *found = mem_array(before->n, sizeof *found);
    probe_hosts(before->v, before->n, found, PROBE_S);
    for (size_t i = 0; rc == ST_OK && i < before->n; i++) {
        const struct device_spec *spec = &before->v[i];
        if (spec->expand && found[i].why.status == ST_OK) {
            rc = add_found(d, spec, &found[i], settings, err);
            continue;
        }
        if (spec->expand)
            log_warn("%s: %s; it counts as one device and is tried again, continuing", spec->label, found[i].why.text);
        rc = devices_add(d, spec, err);
    }
    return rc;
}
