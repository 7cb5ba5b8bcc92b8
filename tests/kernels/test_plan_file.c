/* test_plan_file.c - the file of choices: what is kept, and all that makes it count as empty. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit_test.h"
#include "base/os/file.h"
#include "kernels/plan_file.h"

#define ABOUT "card A; driver 1; library 1"

struct key {
    uint64_t m, n;
};
struct plan {
    uint64_t choice;
    char name[24];
};

static char folder[256], path[512];

static struct plan_file *open_file(const char *about)
{
    return plan_file_open(path, about, sizeof(struct key), sizeof(struct plan));
}

/* The plan of a key is known from the key. */
static void add(struct plan_file *file, uint64_t m)
{
    struct key key = {m, m + 1};
    struct plan plan = {.choice = m * m};

    snprintf(plan.name, sizeof plan.name, "plan %d", (int)m);
    plan_file_add(file, &key, &plan);
}

static bool has(const struct plan_file *file, uint64_t m)
{
    struct key key = {m, m + 1};
    const void *found = plan_file_find(file, &key);
    struct plan plan;
    char name[24];

    if (found == NULL)
        return false;
    memcpy(&plan, found, sizeof plan);
    snprintf(name, sizeof name, "plan %d", (int)m);
    assert_int_equal(plan.choice, m * m);
    assert_string_equal(plan.name, name);
    return true;
}

static void write_plans(const char *about, uint64_t from, uint64_t to)
{
    struct plan_file *file = open_file(about);

    for (uint64_t m = from; m < to; m++)
        add(file, m);
    plan_file_save(file);
    plan_file_close(file);
}

static size_t count(const char *about, uint64_t to)
{
    struct plan_file *file = open_file(about);
    size_t n = 0;

    for (uint64_t m = 0; m < to; m++)
        n += has(file, m);
    plan_file_close(file);
    return n;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/trawl-plans-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/new/folders/a.plans", folder);
    return 0;
}

static int tear_down(void **state)
{
    char command[600];

    (void)state;
    snprintf(command, sizeof command, "chmod -R u+w '%s' && rm -r '%s'", folder, folder);
    return system(command);
}

TEST_WITH(keeps_plans_for_the_next_process, set_up, tear_down)
{
    assert_int_equal(count(ABOUT, 100), 0);
    assert_false(file_exists(path)); /* nothing was added */
    write_plans(ABOUT, 0, 70);
    assert_int_equal(count(ABOUT, 100), 70);
    write_plans(ABOUT, 50, 100);
    assert_int_equal(count(ABOUT, 100), 100);
}

TEST_WITH(a_plan_is_replaced, set_up, tear_down)
{
    struct plan_file *file = open_file(ABOUT);
    struct key key = {5, 6};
    struct plan wrong = {.choice = 7};
    plan_file_add(file, &key, &wrong);
    add(file, 5);
    assert_true(has(file, 5));
    plan_file_save(file);
    plan_file_close(file);
    assert_int_equal(count(ABOUT, 10), 1);
}

TEST_WITH(another_version_or_size_is_empty_and_replaces, set_up, tear_down)
{
    write_plans(ABOUT, 0, 10);
    assert_int_equal(count("card A; driver 2; library 1", 100), 0);
    struct plan_file *file = plan_file_open(path, ABOUT, sizeof(struct key), sizeof(struct plan) + 8);
    assert_null(plan_file_find(file, &(struct key){1, 2}));
    plan_file_close(file);
    assert_int_equal(count(ABOUT, 100), 10); /* reading alone changes nothing */
    write_plans("card B", 20, 22);
    assert_int_equal(count("card B", 100), 2);
    assert_int_equal(count(ABOUT, 100), 0);
}

static void write_bytes(const char *bytes, size_t n)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

TEST_WITH(every_damaged_byte_is_noticed, set_up, tear_down)
{
    MEM_LOCAL char *bytes = NULL;
    size_t n = 0;
    write_plans(ABOUT, 0, 5);
    assert_int_equal(file_read_all(path, 1 << 20, &bytes, &n, NULL), ST_OK);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 0x10;
        write_bytes(bytes, n);
        assert_int_equal(count(ABOUT, 10), 0);
        bytes[i] ^= 0x10;
    }
    for (size_t cut = 0; cut < n; cut += 7) {
        write_bytes(bytes, cut);
        assert_int_equal(count(ABOUT, 10), 0);
    }
    write_plans(ABOUT, 3, 5); /* over the damage */
    assert_int_equal(count(ABOUT, 10), 2);
}

TEST_WITH(what_cannot_be_read_or_written_is_no_failure, set_up, tear_down)
{
    write_plans(ABOUT, 0, 2);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* a folder where the file should be */
    assert_int_equal(count(ABOUT, 10), 0);
    write_plans(ABOUT, 0, 2);
    assert_int_equal(count(ABOUT, 10), 0);
    snprintf(path, sizeof path, "/proc/no such folder/a.plans");
    write_plans(ABOUT, 0, 2);
    assert_int_equal(count(ABOUT, 10), 0);
}

/* Each of many processes adds its own plans and saves several times: the file is whole at each look. */
TEST_WITH(writers_at_the_same_time_leave_a_whole_file, set_up, tear_down)
{
    enum { WRITERS = 8, EACH = 20 };
    for (int w = 0; w < WRITERS; w++)
        if (fork() == 0) {
            struct plan_file *file = open_file(ABOUT);
            for (int i = 0; i < EACH; i++) {
                add(file, (uint64_t)(w * EACH + i));
                plan_file_save(file);
            }
            _exit(0);
        }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_true(count(ABOUT, WRITERS * EACH) >= EACH); /* at least those of the last to write */
    write_plans(ABOUT, 0, WRITERS * EACH);
    assert_int_equal(count(ABOUT, WRITERS * EACH), WRITERS * EACH);
}

TEST_WITH(the_oldest_give_way, set_up, tear_down)
{
    write_plans(ABOUT, 0, PLANS_MAX);
    write_plans(ABOUT, PLANS_MAX, PLANS_MAX + 3);
    assert_int_equal(count(ABOUT, PLANS_MAX + 3), PLANS_MAX);
    assert_int_equal(count(ABOUT, 3), 0);
}

TEST(its_place_follows_the_environment)
{
    char a[256], b[256], small[16];
    assert_int_equal(setenv("XDG_CACHE_HOME", "/c", 1), 0);
    assert_true(plan_file_path("products", "one", a, sizeof a));
    assert_memory_equal(a, "/c/trawl/products-", strlen("/c/trawl/products-"));
    assert_true(plan_file_path("products", "two", b, sizeof b));
    assert_string_not_equal(a, b);
    assert_false(plan_file_path("products", "one", small, sizeof small));
    assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0); /* to be ignored, by its specification */
    assert_int_equal(setenv("HOME", "/h", 1), 0);
    assert_true(plan_file_path("products", "one", a, sizeof a));
    assert_memory_equal(a, "/h/.cache/trawl/products-", strlen("/h/.cache/trawl/products-"));
    assert_int_equal(unsetenv("HOME"), 0);
    assert_false(plan_file_path("products", "one", a, sizeof a));
}

TEST_PROGRAM("kernels/plan_file")
