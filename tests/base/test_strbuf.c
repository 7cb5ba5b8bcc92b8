/* test_strbuf.c - limits, breaking and taking of string buffers; errors that are kept and cut. */
#include "base/strbuf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/mem.h"

static void grows_to_its_limit_and_no_further(void **state)
{
    struct strbuf sb;
    struct error err = {0};

    (void)state;
    strbuf_init(&sb, 1000);
    assert_string_equal(sb.text, "");
    for (int i = 0; i < 200; i++)
        strbuf_addf(&sb, "%05d", i);
    assert_int_equal(sb.len, 1000);
    assert_int_equal(strbuf_status(&sb, "text", &err), ST_OK);
    strbuf_add(&sb, "");
    assert_int_equal(strbuf_status(&sb, "text", &err), ST_OK);
    strbuf_add(&sb, "x");
    assert_int_equal(strbuf_status(&sb, "text", &err), ST_LIMIT);
    assert_non_null(strstr(err.text, "text"));
    assert_non_null(strstr(err.text, "1000"));
    assert_int_equal(sb.len, 1000); /* broken, but what it holds is whole */
    assert_memory_equal(sb.text + 995, "00199", 6);
    assert_null(strbuf_take(&sb));
    strbuf_clear(&sb);
    strbuf_add_n(&sb, "abc", 2);
    assert_string_equal(sb.text, "ab");
    strbuf_free(&sb);
}

static void stays_broken_after_a_failed_append(void **state)
{
    struct strbuf sb;

    (void)state;
    strbuf_init(&sb, 4);
    strbuf_add(&sb, "12345");
    strbuf_add(&sb, "1");
    strbuf_addf(&sb, "%d", 2);
    assert_string_equal(sb.text, "");
    assert_int_equal(strbuf_status(&sb, "x", NULL), ST_LIMIT);
    strbuf_free(&sb);
}

static void a_taken_text_is_the_callers(void **state)
{
    struct strbuf sb;
    char *text;

    (void)state;
    strbuf_init(&sb, SIZE_MAX - 1);
    text = strbuf_take(&sb);
    assert_string_equal(text, "");
    mem_free(text);
    strbuf_add(&sb, "hello");
    text = strbuf_take(&sb);
    assert_string_equal(text, "hello");
    assert_string_equal(sb.text, "");
    mem_free(text);
    strbuf_free(&sb);
}

static void shell_words_are_quoted_when_they_must_be(void **state)
{
    static const char *const cases[][2] = {
        {"runs/a-1.db", "runs/a-1.db"}, {"my runs.db", "'my runs.db'"}, {"it's;rm", "'it'\\''s;rm'"}, {"", "''"}};
    struct strbuf sb;

    (void)state;
    strbuf_init(&sb, 100);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        strbuf_clear(&sb);
        assert_string_equal(SHELL_WORD(cases[i][0]), cases[i][1]);
        strbuf_add_shell(&sb, cases[i][0]);
        assert_string_equal(sb.text, cases[i][1]);
    }
    strbuf_free(&sb);
}

static void out_of_memory_breaks_it(void **state)
{
    struct strbuf sb;
    struct error err = {0};

    (void)state;
    strbuf_init(&sb, 1 << 20);
    strbuf_add(&sb, "kept");
    fault_arm(FAULT_MALLOC, 1);
    for (int i = 0; i < 1000; i++)
        strbuf_add(&sb, "0123456789");
    assert_true(fault_disarm(FAULT_MALLOC));
    assert_int_equal(strbuf_status(&sb, "text", &err), ST_NOMEM);
    assert_memory_equal(sb.text, "kept", 4);
    assert_int_equal(strlen(sb.text), sb.len);
    strbuf_free(&sb);
    fault_arm(FAULT_MALLOC, 1);
    assert_null(strbuf_take(&sb));
    assert_true(fault_disarm(FAULT_MALLOC));
}

static void the_first_error_wins_and_long_ones_are_cut(void **state)
{
    struct error err = {0};
    char longer[3 * ERROR_TEXT_MAX];

    (void)state;
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(FAIL(&err, ST_IO, "%s", "first"), ST_IO);
    assert_int_equal(FAIL(&err, ST_NOMEM, "%s", "second"), ST_NOMEM);
    assert_string_equal(err.text, "first");
    assert_int_equal(err.status, ST_IO);
    assert_int_equal(error_prefix(&err, "at %d", 5), ST_IO);
    assert_string_equal(err.text, "at 5: first");
    error_clear(&err);
    assert_int_equal(FAIL(&err, ST_CONFIG, "%s", longer), ST_CONFIG);
    assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 1);
    assert_int_equal(FAIL(NULL, ST_CONFIG, "%s", longer), ST_CONFIG);
}

static void sizes_that_overflow_are_refused(void **state)
{
    void *block = mem_alloc(0);

    (void)state;
    assert_non_null(block);
    mem_free(block);
    assert_null(mem_alloc(SIZE_MAX));
    assert_null(mem_array(SIZE_MAX / 2, 3));
    assert_null(mem_array2((size_t)1 << 40, (size_t)1 << 40, 8));
    block = mem_array(3, 5);
    assert_int_equal((uintptr_t)block % MEM_ALIGN, 0);
    for (int i = 0; i < 15; i++)
        assert_int_equal(((unsigned char *)block)[i], 0);
    mem_free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_to_its_limit_and_no_further),
        cmocka_unit_test(stays_broken_after_a_failed_append),
        cmocka_unit_test(a_taken_text_is_the_callers),
        cmocka_unit_test(shell_words_are_quoted_when_they_must_be),
        cmocka_unit_test(out_of_memory_breaks_it),
        cmocka_unit_test(the_first_error_wins_and_long_ones_are_cut),
        cmocka_unit_test(sizes_that_overflow_are_refused),
    };
    return cmocka_run_group_tests_name("strbuf", tests, NULL, NULL);
}
