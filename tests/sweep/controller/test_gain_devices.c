/* test_gain_devices.c - what the scheduler reckons with: how fast a study gains, and the cores and memory of its
 * devices. */
#include <sched.h>

#include "tests/check.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "sweep/launch/devices.h"
#include "study/findings/gain.h"

/* A study of one trial after the other, 100 s each, whose scores rise; before trial `stop` nobody was there for 8
 * hours. */
static void rising(struct study_view *v, size_t n, size_t stop)
{
    int64_t at_ms = 1700000000000;

    *v = (struct study_view){.n = n};
    v->trials = mem_array(n, sizeof *v->trials);
    v->gp = mem_array(n, sizeof *v->gp);
    assert_true(v->trials != NULL && v->gp != NULL);
    for (size_t i = 0; i < n; i++) {
        if (i == stop)
            at_ms += 8 * 3600 * 1000;
        v->trials[i] = (struct trial){.started_ms = at_ms, .finished_ms = at_ms + 100000, .cost_s = 95};
        at_ms += 100000;
        v->gp[i] = (struct gp_trial){.state = GP_TRIAL_DONE, .score = (double)i, .cost = 95};
    }
    v->history = (struct gp_history){.n = n, .trials = v->gp};
    v->ref = (struct pareto_ref){.cost = 100, .score = -1};
}

TEST(gain_goes_on_over_a_resume)
{
    const size_t n = 50;
    struct study_view v;
    double rates[3];

    for (int k = 0; k < 3; k++) { /* never away; away in between; all watched by one controller */
        struct gain_watch w = {0};
        rising(&v, n, k == 1 ? 30 : n);
        if (k < 2) {
            gain_watch_begin(&w, &v, 700);
            assert_float_equal(w.begun_s, 700 - 100.0 * (double)n, 1e-6);
            assert_float_equal(w.ended_s[n - 1], 700, 1e-6);
            assert_float_equal(w.ended_s[10], 700 - 100.0 * (double)(n - 11), 1e-6);
        } else {
            w.begun_s = 700 - 100.0 * (double)n;
            for (size_t i = 0; i < n; i++)
                gain_watch_note(&w, i, 700 - 100.0 * (double)(n - 1 - i));
        }
        rates[k] = gain_watch_rate(&w, &v, 2000, 700);
        assert_true(isnan(gain_watch_rate(&w, &v, 100.0 * (double)n + 1, 700))); /* longer than it has been at work */
        gain_watch_free(&w);
        mem_free(v.trials);
        mem_free(v.gp);
    }
    assert_true(isfinite(rates[0]) && rates[0] > 0);
    assert_float_equal(rates[1], rates[0], 1e-12);
    assert_float_equal(rates[2], rates[0], 1e-12);
}

TEST(core_sets_are_disjoint)
{
    MEM_LOCAL struct devices *devices = mem_alloc(sizeof *devices);
    struct sweep_settings s = {.devices = "cpu", .runs_per_device = 2, .worker_memory = "1G"};

    OK(devices_parse(&s, 0, devices, err));
    assert_int_equal(devices->n, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(devices->v[i].lanes, 1);
        assert_int_equal(devices->v[i].memory_bytes, 1000000000);
        assert_true(devices->v[i].cores[0] != '\0');
    }
    cpu_set_t ours;
    assert_int_equal(sched_getaffinity(0, sizeof ours, &ours), 0);
    if (CPU_COUNT(&ours) > 1)
        assert_string_not_equal(devices->v[0].cores, devices->v[1].cores);
    s = (struct sweep_settings){.devices = "cuda:1, cuda:3", .runs_per_device = 4, .worker_memory = "auto"};
    OK(devices_parse(&s, 0, devices, err));
    assert_int_equal(devices->n, 2);
    assert_string_equal(devices->v[1].name, "cuda:3");
    assert_int_equal(devices->v[1].lanes, 4);
    assert_int_equal(devices->v[1].memory_bytes, 0);
    strcpy(s.devices, "cuda:1,cuda:1");
    FAILS(devices_parse(&s, 0, devices, err), ST_CONFIG, "twice");
    s = (struct sweep_settings){.devices = "all", .runs_per_device = 1, .worker_memory = "auto"};
    OK(devices_parse(&s, 0, devices, err)); /* the word of `trawl node`: every GPU, else the CPU */
    assert_true(devices->n >= 1);
    strcpy(s.devices, "gpu");
    FAILS(devices_parse(&s, 0, devices, err), ST_CONFIG, "'gpu' is not a device");
    strcpy(s.devices, " ,");
    FAILS(devices_parse(&s, 0, devices, err), ST_CONFIG, "empty");
    strcpy(s.devices, "cpu");
    s.runs_per_device = 1; /* any machine has a core */
    strcpy(s.worker_memory, "much");
    FAILS(devices_parse(&s, 0, devices, err), ST_CONFIG, "'much'");
    strcpy(s.worker_memory, "1e300"); /* more than fits: it was no limit at all */
    FAILS(devices_parse(&s, 0, devices, err), ST_CONFIG, "'1e300'");
}

/* Of the first worker of the list that is too narrow. */
static enum status check_widths(const struct devices *devices, const struct search *search, int64_t wanted,
                                struct error *err)
{
    for (size_t i = 0; i < devices->n; i++)
        TRY(devices_check_width(&devices->v[i], search, wanted, err));
    return ST_OK;
}

/* A worker may have several GPUs, each GPU is one worker's, and a search asks for no more than the smallest group
 * has. */
TEST(groups_of_gpus)
{
    struct sweep_settings s = {.devices = "cuda:0-3, cuda:4-5,cuda:6", .runs_per_device = 1, .worker_memory = "auto"};
    MEM_LOCAL struct devices *devices = mem_alloc(sizeof *devices);
    struct search *search = search_create();
    int first, n;

    OK(devices_parse(&s, 0, devices, err));
    assert_int_equal(devices->n, 3);
    assert_string_equal(devices->v[0].name, "cuda:0-3");
    assert_true(device_gpus(devices->v[1].name, &first, &n) && first == 4 && n == 2);
    assert_true(device_gpus(devices->v[2].name, &first, &n) && first == 6 && n == 1);
    assert_false(device_gpus("cuda:3-1", &first, &n) || device_gpus("cuda:1-", &first, &n) ||
                 device_gpus("cuda:-1", &first, &n) || device_gpus("cuda:", &first, &n));
    OK(search_from_json("{\"params\": [{\"key\": \"train.devices\", \"scale\": \"pow2\", \"int\": true, \"min\": 1, "
                        "\"max\": 3}]}",
                        search, err));
    FAILS(check_widths(devices, search, 1, err), ST_CONFIG, "cuda:6 of sweep.devices has 1 GPU;");
    devices->n = 2;
    OK(check_widths(devices, search, 1, err)); /* no power of two beyond 2 is in the range */
    search->space.params[0].max = 4;
    FAILS(check_widths(devices, search, 1, err), ST_CONFIG, "up to 4, and cuda:4-5 of sweep.devices has 2 GPUs");
    search_free(search);
    OK(search_from_json("{\"params\": [{\"key\": \"train.devices\", \"scale\": \"categorical\", \"int\": false, "
                        "\"min\": 0, \"max\": 1, \"choices\": [\"4\", \"1\"]}]}",
                        search, err));
    FAILS(check_widths(devices, search, 1, err), ST_CONFIG, "up to 4");
    search_free(search);
    OK(check_widths(devices, search, 2, err));
    FAILS(check_widths(devices, search, 4, err), ST_CONFIG, "like cuda:0-3");
    search_destroy(search);
    strcpy(s.devices, "cuda:0-3,cuda:3");
    FAILS(devices_parse(&s, 0, devices, err), ST_CONFIG, "a GPU twice, in cuda:0-3 and in cuda:3");
    strcpy(s.devices, "cuda:0-1,cpu");
    s.runs_per_device = 4;
    FAILS(devices_parse(&s, 0, devices, err), ST_CONFIG, "runs_per_device 4");
}

TEST_PROGRAM("sweep gain and devices")
