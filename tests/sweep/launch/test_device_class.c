/* test_device_class.c - the kind of a device by its name, and by what its seconds count. */

#include "sweep/launch/device_class.h"
#include "tests/check.h"

TEST(names_become_kinds)
{
    static const char *const rows[][2] = {
        {"AMD EPYC (2 threads, Haswell)", "AMD EPYC (Haswell)"},
        {"AMD EPYC (1 thread, Haswell)", "AMD EPYC (Haswell)"},
        {"Intel(R) Xeon(R) CPU @ 2.20GHz (16 threads, SkylakeX)", "Intel(R) Xeon(R) CPU @ 2.20GHz (SkylakeX)"},
        {"AMD EPYC (4 threads)", "AMD EPYC"},
        {"NVIDIA H200 (700 W, 1980 MHz)", "NVIDIA H200 (700 W, 1980 MHz)"},
        {"NVIDIA H200", "NVIDIA H200"},
        {"", ""},
    };
    char kind[DEVICE_CLASS_MAX];

    for (size_t i = 0; i < COUNT(rows); i++) {
        device_class_of(rows[i][0], kind);
        assert_string_equal(kind, rows[i][1]);
    }
}

TEST(a_second_counts_by_its_device)
{
    static const char list[] = "NVIDIA H200 (700=1, NVIDIA H200=0.9, AMD=0.25";

    assert_float_equal(device_costs_factor("alike", "AMD EPYC"), 1, 0);
    assert_float_equal(device_costs_factor("any", "AMD EPYC"), 1, 0);
    assert_float_equal(device_costs_factor(list, "NVIDIA H200 (700 W, 1980 MHz)"), 1, 0);
    assert_float_equal(device_costs_factor(list, "NVIDIA H200 (450 W, 1980 MHz)"), 0.9, 0);
    assert_float_equal(device_costs_factor(list, "AMD EPYC (Haswell)"), 0.25, 0);
    assert_true(isnan(device_costs_factor(list, "Intel")));
    OK(device_costs_check(list, err));
    OK(device_costs_check("any", err));
}

TEST(wrong_lists_name_the_option)
{
    static const char *const wrong[] = {
        "", " , ", "some", "=2", "A100=", "A100=fast", "A100=0", "A100=-1", "A100=nan", "H200=1,A100"};

    for (size_t i = 0; i < COUNT(wrong); i++)
        FAILS(device_costs_check(wrong[i], err), ST_CONFIG, "sweep.device_costs");
}

TEST_PROGRAM("sweep/device_class")
