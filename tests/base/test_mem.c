/* test_mem.c - what the allocator gives, and how a process ends that gets nothing. */
#include <sys/wait.h>
#include "tests/unit_test.h"
#include "base/fault.h"

TEST(blocks_are_zeroed_and_aligned)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 100000, (size_t)5 << 20};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        unsigned char *block = mem_alloc(sizes[i]);
        assert_int_equal((uintptr_t)block % MEM_ALIGN, 0);
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(block[at], 0);
        memset(block, 0xa5, sizes[i]); /* the next block of this size must be zeroed again */
        mem_free(block);
    }
}

TEST(arrays_grow_and_keep_what_they_hold)
{
    size_t n = 0, cap = 0;
    MEM_LOCAL int *numbers = NULL;

    for (; n < 1000; n++) {
        MEM_ROOM(numbers, n, cap);
        numbers[n] = (int)n;
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(numbers[i], i);
}

TEST(a_refusal_is_null_where_it_may_be)
{
    assert_null(mem_try_alloc(SIZE_MAX));
    assert_null(mem_try_array(SIZE_MAX / 2, 3)); /* the product does not fit */
    fault_arm(FAULT_TRY_MALLOC, 1);
    assert_null(mem_try_alloc(1));
    assert_true(fault_disarm(FAULT_TRY_MALLOC));
}

static void too_large(void)
{
    mem_free(mem_array2(SIZE_MAX / 2, 3, 8));
}

static void refused(void)
{
    fault_arm(FAULT_MALLOC, 1);
    mem_free(mem_strdup("text"));
}

/* Runs fn in a child: it must end with exit code 1 and this message. */
static void check_ends(void (*fn)(void), const char *message)
{
    char text[512] = "";
    int fds[2], status;

    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        fn();
        _exit(0);
    }
    close(fds[1]);
    assert_true(read(fds[0], text, sizeof text - 1) > 0);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_non_null(strstr(text, message));
}

TEST(a_refusal_ends_the_process)
{
    check_ends(too_large, "out of memory");
    check_ends(refused, "a block of 5 bytes");
}

TEST_PROGRAM("mem")
