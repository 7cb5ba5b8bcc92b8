/* cmd_launch.c - `trawl launch check`: tries the way to other machines, and names what is wrong with each. */
#include "base/text/json.h"
#include "study/setup/setup.h"
#include "sweep/cmd/commands.h"
#include "sweep/launch/devices.h"
#include "sweep/launch/probe.h"
#include "sweep/launch/remote_devices.h"

struct tally {
    size_t n, n_bad;
    cJSON *list; /* NULL: lines for people */
};

static void print_probe(const struct device_spec *spec, const struct probe *p, struct tally *tally)
{
    bool good = p->why.status == ST_OK;

    tally->n++;
    tally->n_bad += !good;
    if (tally->list != NULL) {
        cJSON *json = cJSON_CreateObject();
        json_add_str(json, "device", spec->label);
        json_add_bool(json, "ok", good);
        json_add_str(json, "host", p->host[0] != '\0' ? p->host : NULL);
        json_add_str(json, "opened", p->device[0] != '\0' ? p->device : NULL);
        if (p->gpus >= 0)
            json_add_i64(json, "gpus", p->gpus);
        if (p->cores >= 0)
            json_add_i64(json, "cores", p->cores);
        json_add_f64(json, "greeting_s", p->greeting_s);
        json_add_str(json, "reason", good ? NULL : p->why.text);
        cJSON_AddItemToArray(tally->list, json);
    } else if (good) {
        printf("%s: ok, %s: %lld GPU%s, %lld core%s; opened %s; greeting after %.2f s\n", spec->label, p->host,
               (long long)p->gpus, p->gpus == 1 ? "" : "s", (long long)p->cores, p->cores == 1 ? "" : "s", p->device,
               p->greeting_s);
    } else {
        printf("%s: FAILS: %s\n", spec->label, p->why.text);
    }
    fflush(stdout);
}

/* One worker of the word; those after the first are the same way. */
static enum status check_word(const char *word, struct setup *setup, double patience_s, struct tally *tally,
                              struct error *err)
{
    struct sweep_settings *settings = &setup->sweep;
    MEM_LOCAL struct devices *devices = mem_alloc(sizeof *devices);
    MEM_LOCAL struct probe *probe = mem_alloc(sizeof *probe);

    snprintf(settings->devices, sizeof settings->devices, "%s%s", remote_devices_is_word(word) ? "" : "ssh:", word);
    TRY(devices_parse(settings, setup->train.device, devices, err));
    probe_host(&devices->v[0], true, patience_s, probe);
    print_probe(&devices->v[0], probe, tally);
    return ST_OK;
}

static enum status check(const struct cli_words *words, struct setup *setup, double patience_s, bool as_json,
                         struct error *err)
{
    struct tally tally = {.list = as_json ? cJSON_CreateArray() : NULL};
    enum status rc = setup_load(setup, "cartpole", err); /* the game only makes the config whole */

    THEN(rc, setup_finish(setup, err));
    for (int i = 1; rc == ST_OK && i < words->n; i++)
        rc = check_word(words->v[i], setup, patience_s, &tally, err);
    if (rc != ST_OK) {
        cJSON_Delete(tally.list);
        return rc;
    }
    if (as_json)
        cli_print_json(tally.list);
    if (tally.n_bad > 0)
        return FAIL(err, ST_IO, "launch check: %zu of %zu cannot run a worker", tally.n_bad, tally.n);
    return ST_OK;
}

enum status cmd_launch(int argc, char **argv, struct error *err)
{
    bool json = false;
    double patience_s = 60;
    AT_END(setup_destroy_at) struct setup *setup = NULL;
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"patience", 0, CLI_SECONDS, &patience_s, "TIME", "how long to wait for each answer (60 s)"},
        {"json", 0, CLI_FLAG, &json, NULL, "print a JSON array"},
    };
    const struct cli cli = {
        .name = "launch",
        .synopsis = "trawl launch check HOST|DEVICE ... [--patience TIME] [--json]",
        .about = "Tests whether a sweep can have workers there: logs in, starts the program, compares versions, opens "
                 "a\ndevice, and ends it again. A bare HOST is ssh:HOST; DEVICE is a word of sweep.devices: "
                 "ssh:HOST/cuda:1,\n"
                 "slurm:gpu=1, or 'cmd:COMMAND' (docs/many-machines.md). Options like --sweep.ssh and\n"
                 "--sweep.remote-program hold as in a sweep. Exit code 1: one of them fails.",
        .examples = "  trawl launch check gpu1 gpu2\n"
                    "  trawl launch check slurm:gpu=1/partition=short\n"
                    "  trawl launch check 'cmd:docker run -i --gpus all trawl trawl worker --stdio'",
        CLI_OPTS(opts),
        CLI_WORDS(2, CLI_MAX_WORDS, "the word check and hosts or devices"),
    };

    TRY(setup_create(&setup, err));
    TRY(config_take_args(setup->config, &argc, argv, err));
    TRY(cli_parse(&cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    if (strcmp(words.v[0], "check") != 0)
        return FAIL(err, ST_USAGE, "launch: '%s' is unknown; use `trawl launch check HOST ...`", words.v[0]);
    return check(&words, setup, patience_s, json, err);
}
