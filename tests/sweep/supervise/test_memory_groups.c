/* test_memory_groups.c - what is written to a group of cgroup v2, in a folder that looks like one; and a real group,
 * where this process has one for itself. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/check.h"
#include "sweep/supervise/memory_groups.h"

static char folder[TEMP_FOLDER_MAX], self[32];

static void put(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void holds(const char *name, const char *text)
{
    char path[128], buf[128] = "";

    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(buf, sizeof buf, file));
    fclose(file);
    assert_string_equal(buf, text);
}

static void child(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(mkdir(path, 0755), 0);
}

static int set_up(void **state)
{
    (void)state;
    temp_folder_make(folder);
    snprintf(self, sizeof self, "%ld\n", (long)getpid());
    put("cgroup.controllers", "cpu memory pids\n");
    put("cgroup.procs", self);
    put("cgroup.subtree_control", "");
    child("controller");
    put("controller/cgroup.procs", "");
    child("worker-cpu-2");
    put("worker-cpu-2/cgroup.procs", "");
    put("worker-cpu-2/memory.max", "max\n");
    put("worker-cpu-2/memory.events", "low 0\noom 2\noom_kill 0\noom_group_kill 0\n");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    temp_folder_remove(folder);
    return 0;
}

TEST_WITH(each_worker_has_a_group, set_up, tear_down)
{
    struct memory_groups g;

    memory_groups_open(&g, folder);
    assert_true(g.on);
    holds("controller/cgroup.procs", self);
    holds("cgroup.subtree_control", "+memory");
    assert_true(memory_groups_add(&g, "cpu/2", 4711, 2500000000));
    holds("worker-cpu-2/memory.max", "2500000000\n");
    holds("worker-cpu-2/cgroup.procs", "4711\n");
    assert_false(memory_groups_remove(&g, "cpu/2"));
    put("worker-cpu-2/memory.events", "low 0\noom 2\noom_kill 1\n");
    assert_true(memory_groups_remove(&g, "cpu/2"));
    assert_false(memory_groups_add(&g, "cpu/2", 4711, 0)); /* no limit is wanted */
    memory_groups_close(&g);
    holds("cgroup.procs", self);
    assert_false(g.on);
    assert_false(memory_groups_add(&g, "cpu/2", 4711, 1000));
}

static void refuses(const char *says)
{
    struct memory_groups g;

    memory_groups_open(&g, folder);
    assert_false(g.on);
    assert_non_null(strstr(g.why_not, says));
}

TEST_WITH(a_group_that_is_not_ours_alone_is_left, set_up, tear_down)
{
    put("cgroup.procs", "1\n");
    refuses("alone");
    put("cgroup.procs", "");
    refuses("alone");
    put("cgroup.controllers", "cpu memory_other\n");
    refuses("no cgroup v2");
    holds("worker-cpu-2/memory.max", "max\n");
}

TEST(a_real_group)
{
    struct memory_groups g;

    memory_groups_open(&g, NULL);
    if (!g.on) {
        print_message("# SKIPPED, cgroups untested here: %s (%s)\n", g.why_not, g.root);
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    bool added = memory_groups_add(&g, "test", pid, 100 << 20);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_true(added);
    assert_false(memory_groups_remove(&g, "test"));
    memory_groups_close(&g);
    assert_true(memory_groups_look(&g, NULL)); /* as it was */
}

TEST_PROGRAM("sweep/memory_groups")
