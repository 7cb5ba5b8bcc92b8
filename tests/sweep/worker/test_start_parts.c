/* test_start_parts.c - the parts of a start are printed in lines that fit a terminal, whatever their number. */
#include "sweep/worker/start_parts.h"

#include "tests/unit_test.h"

static char *printed(const struct start_parts *parts)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    start_parts_print(parts, file);
    fclose(file);
    return text;
}

TEST(parts_of_a_millisecond_and_more_are_printed)
{
    struct start_parts parts = {.n = 3, .rows = {{"process", 0.0425}, {"config", 0.0004}, {"trainer", 0.00326}}};
    MEM_LOCAL char *text = printed(&parts);

    assert_string_equal(text, "started in 46.2 ms: process 42.5 ms, trainer 3.26 ms\n");
}

TEST(lines_fit_80_columns)
{
    for (size_t n = 1; n <= START_PARTS_MAX; n++)
        for (size_t name = 1; name <= 12; name++) {
            struct start_parts parts = {.n = n};
            size_t n_seen = 0;

            for (size_t i = 0; i < n; i++)
                parts.rows[i] = (struct kern_part){&"a long name."[12 - name], 0.0425};
            char *text = printed(&parts);

            for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                assert_true(strlen(line) <= 80);
                for (const char *at = line; (at = strstr(at, " 42.5 ms")); at++)
                    n_seen++;
            }
            assert_int_equal(n_seen, n == 1 ? 2 : n); /* the sum of one part reads the same */
            free(text);
        }
}

TEST_PROGRAM("start_parts")
