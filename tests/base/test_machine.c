/* test_machine.c - quotas of groups of processes, in folders that look like cgroup v2. */
#include "base/os/machine.h"

#include <sys/stat.h>

#include "tests/check.h"

static char root[TEMP_FOLDER_MAX];

static void put(const char *name, const char *text)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static struct machine_quota read_at(const char *group)
{
    struct machine_quota quota;
    char path[160];

    snprintf(path, sizeof path, "%s%s", root, group);
    machine_quota_read(root, path, &quota);
    return quota;
}

static int make_groups(void **state)
{
    static const char *const groups[] = {"/box", "/box/job", "/box/free"};
    char path[160];

    (void)state;
    temp_folder_make(root);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", root, groups[i]);
        assert_int_equal(mkdir(path, 0755), 0);
    }
    put("box/cpu.max", "250000 100000\n");
    put("box/memory.max", "8589934592\n");
    put("box/job/cpu.max", "max 100000\n");
    put("box/job/memory.max", "1073741824\n");
    put("box/free/cpu.max", "400000 100000\n");
    put("box/free/memory.max", "max\n");
    return 0;
}

static int remove_groups(void **state)
{
    (void)state;
    temp_folder_remove(root);
    return 0;
}

TEST(the_smallest_on_the_way_up_counts)
{
    assert_true(read_at("/box/job").cores == 2.5); /* its own is none, the box has 2.5 */
    assert_int_equal(read_at("/box/job").memory_bytes, 1073741824);
    assert_true(read_at("/box/free").cores == 2.5); /* 4 of a box of 2.5 */
    assert_true(read_at("/box/free").memory_bytes == 8589934592);
    assert_true(read_at("/").cores == 0);
    assert_int_equal(read_at("").memory_bytes, 0);
    assert_true(read_at("/box/gone").cores == 2.5); /* a group that is not there has its parent's */
}

/* A container sees its own group as the root. */
TEST(the_root_itself_may_be_limited)
{
    put("cpu.max", "50000 100000\n");
    put("memory.max", "268435456\n");
    assert_true(read_at("/").cores == 0.5);
    assert_true(read_at("").cores == 0.5);
    assert_int_equal(read_at("/box/job").memory_bytes, 268435456);
    put("cpu.max", "nonsense\n");
    put("memory.max", "");
    assert_true(read_at("").cores == 0);
    assert_int_equal(read_at("").memory_bytes, 0);
}

TEST(this_machine_has_something)
{
    char group[1024];

    machine_group(group, sizeof group);
    assert_int_equal(strncmp(group, "/sys/fs/cgroup", 14), 0);
    assert_true(machine_cores() >= 1);
    assert_true(machine_memory_bytes() > 0);
}

TEST_PROGRAM_WITH("base machine", make_groups, remove_groups)
