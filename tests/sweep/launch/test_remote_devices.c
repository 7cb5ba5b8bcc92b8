/* test_remote_devices.c - what the words of sweep.devices for other machines become, and what is refused. */

#include "study/setup/setup.h"
#include "sweep/launch/devices.h"
#include "tests/check.h"

static struct sweep_settings settings(const char *devices)
{
    struct sweep_settings s = {
        .runs_per_device = 1, .worker_memory = "auto", .ssh = "ssh", .remote_program = "/opt/trawl"};

    snprintf(s.devices, sizeof s.devices, "%s", devices);
    return s;
}

static void is(const struct device_spec *spec, const char *label, const char *name, enum device_place place)
{
    assert_string_equal(spec->label, label);
    assert_string_equal(spec->name, name);
    assert_int_equal(spec->place, place);
}

TEST(hosts_jobs_and_commands_in_one_list)
{
    MEM_LOCAL struct devices *d = mem_alloc(sizeof *d);
    struct sweep_settings s =
        settings("cuda:0, ssh:me@gpu2/cuda:3 ssh:gpu3/cuda:all,slurm:gpu=1/partition=long/time=8:00:00*2, slurm, "
                 "cmd*2:docker run -i image, with commas");

    s.runs_per_device = 3;
    OK(devices_parse(&s, 0, d, err));
    assert_int_equal(d->n, 8);
    is(&d->v[0], "cuda:0", "cuda:0", PLACE_HERE);
    assert_string_equal(d->v[0].command, "");
    is(&d->v[1], "ssh:me@gpu2/cuda:3", "cuda:3", PLACE_SSH);
    assert_string_equal(d->v[1].host, "me@gpu2");
    assert_int_equal(d->v[1].lanes, 3);
    assert_non_null(strstr(d->v[1].command, "exec ssh -T"));
    assert_non_null(strstr(d->v[1].command, " me@gpu2 'exec sh -c \"/opt/trawl worker --stdio; exit \\$?\"'"));
    assert_true(d->v[2].expand && !d->v[1].expand);
    is(&d->v[3], "slurm/0", "cuda:0", PLACE_SLURM);
    is(&d->v[4], "slurm/1", "cuda:0", PLACE_SLURM);
    assert_non_null(strstr(d->v[4].command, " --gres=gpu:1 --partition=long --time=8:00:00 /opt/trawl worker"));
    assert_non_null(strstr(d->v[4].command, "--signal=USR1@60"));
    is(&d->v[5], "slurm/2", "cpu", PLACE_SLURM);
    assert_null(strstr(d->v[5].command, "gpu"));
    is(&d->v[6], "cmd/0", "auto", PLACE_COMMAND);
    assert_string_equal(d->v[7].command, "docker run -i image, with commas");
}

TEST(workers_on_one_cpu_share_its_cores)
{
    MEM_LOCAL struct devices *d = mem_alloc(sizeof *d);
    struct sweep_settings s = settings("ssh:gpu2/cpu*3");

    OK(devices_parse(&s, 0, d, err));
    assert_int_equal(d->n, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(d->v[i].share, i);
        assert_int_equal(d->v[i].n_shares, 3);
        assert_int_equal(d->v[i].memory_bytes, 0); /* this machine's memory is not a measure of that one's */
        assert_string_equal(d->v[i].cores, ""); /* nor are its cores */
    }
    assert_string_equal(d->v[2].label, "ssh:gpu2/cpu/2");
}

TEST(what_a_shell_could_read_is_refused)
{
    static const char *const wrong[][2] = {
        {"ssh:", "no host"},
        {"ssh:-oProxyCommand=x", "no host"},
        {"ssh:a;reboot", "no host"},
        {"ssh:$(x)/cpu", "no host"},
        {"ssh:a'b", "no host"},
        {"ssh:gpu2/tpu", "'tpu' is not a device"},
        {"ssh:gpu2/cuda:", "'cuda:' is not a device"},
        {"ssh:gpu2/cuda:0*2", "runs_per_device"},
        {"ssh:gpu2/cpu*0", "number of workers"},
        {"ssh:gpu2/cpu*many", "number of workers"},
        {"ssh:gpu2/cpu,ssh:gpu2/cpu", "twice"},
        {"slurm:gpu=2", "uses one GPU"},
        {"slurm:gpu", "KEY=VALUE"},
        {"slurm:time=1;x=2", "KEY=VALUE"},
        {"slurm:--wrap=x", "KEY=VALUE"},
        {"slurm:gpu=1*100000", "number of workers"},
        {"slurmy", "is not a device"},
        {"cmd:", "no command"},
        {"cmd*3", "no command"},
    };
    MEM_LOCAL struct devices *d = mem_alloc(sizeof *d);

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct sweep_settings s = settings(wrong[i][0]);
        FAILS(devices_parse(&s, 0, d, err), ST_CONFIG, "sweep.devices");
        FAILS(devices_parse(&s, 0, d, err), ST_CONFIG, wrong[i][1]);
    }
    struct sweep_settings s = settings("ssh:gpu2/cpu");
    strcpy(s.remote_program, "trawl'; reboot");
    FAILS(devices_parse(&s, 0, d, err), ST_CONFIG, "sweep.remote_program");
}

TEST_PROGRAM("sweep/remote_devices")
