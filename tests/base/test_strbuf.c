/* test_strbuf.c - limits, breaking and taking of string buffers; errors that are kept and cut. */

#include "tests/check.h"

TEST(grows_to_its_limit_and_no_further)
{
    STRBUF(sb, 1000);
    struct error why = {0};

    assert_string_equal(sb.text, "");
    for (int i = 0; i < 200; i++)
        strbuf_addf(&sb, "%05d", i);
    assert_int_equal(sb.len, 1000);
    OK(strbuf_status(&sb, "text", err));
    strbuf_add(&sb, "");
    OK(strbuf_status(&sb, "text", err));
    strbuf_add(&sb, "x");
    assert_int_equal(strbuf_status(&sb, "text", &why), ST_LIMIT);
    assert_non_null(strstr(why.text, "text"));
    assert_non_null(strstr(why.text, "1000"));
    assert_int_equal(sb.len, 1000); /* broken, but what it holds is whole */
    assert_memory_equal(sb.text + 995, "00199", 6);
    assert_null(strbuf_take(&sb));
    strbuf_clear(&sb);
    strbuf_add_n(&sb, "abc", 2);
    assert_string_equal(sb.text, "ab");
}

TEST(stays_broken_after_a_failed_append)
{
    STRBUF(sb, 4);

    strbuf_add(&sb, "12345");
    strbuf_add(&sb, "1");
    strbuf_addf(&sb, "%d", 2);
    assert_string_equal(sb.text, "");
    assert_int_equal(strbuf_status(&sb, "x", NULL), ST_LIMIT);
}

TEST(a_taken_text_is_the_callers)
{
    STRBUF(sb, SIZE_MAX - 1);

    char *text = strbuf_take(&sb);
    assert_string_equal(text, "");
    mem_free(text);
    strbuf_add(&sb, "hello");
    text = strbuf_take(&sb);
    assert_string_equal(text, "hello");
    assert_string_equal(sb.text, "");
    mem_free(text);
}

TEST(shell_words_are_quoted_when_they_must_be)
{
    static const char *const cases[][2] = {
        {"runs/a-1.db", "runs/a-1.db"}, {"my runs.db", "'my runs.db'"}, {"it's;rm", "'it'\\''s;rm'"}, {"", "''"}};
    STRBUF(sb, 100);

    for (size_t i = 0; i < COUNT(cases); i++) {
        strbuf_clear(&sb);
        assert_string_equal(SHELL_WORD(cases[i][0]), cases[i][1]);
        strbuf_add_shell(&sb, cases[i][0]);
        assert_string_equal(sb.text, cases[i][1]);
    }
}

TEST(the_first_error_wins_and_long_ones_are_cut)
{
    struct error err = {0};
    char longer[3 * ERROR_TEXT_MAX];

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
    error_clear(&err);
    assert_int_equal(FAIL(&err, ST_IO, "x.ini: '%s' is not a game; name another", longer), ST_IO);
    assert_int_equal(error_prefix(&err, "sweep %s", longer), ST_IO);
    assert_memory_equal(err.text, "sweep aaa", 9); /* where and what to do are kept, the middle goes */
    assert_string_equal(err.text + strlen(err.text) - strlen("' is not a game; name another"),
                        "' is not a game; name another");
    for (size_t at = 0; at + 2 < sizeof longer; at += 2)
        memcpy(longer + at, "\xc3\xa9", 2);
    longer[sizeof longer - 2] = '\0';
    for (int before = 0; before < 4; before++) {
        error_clear(&err);
        assert_int_equal(FAIL(&err, ST_IO, "%.*s%s", before, "abcd", longer), ST_IO);
        for (size_t at = 0, n; err.text[at] != '\0'; at += n)
            assert_true((n = utf8_length(err.text + at, strlen(err.text + at))) > 0);
    }
    error_clear(&err);
    assert_int_equal(FAIL(&err, ST_IO, "a\033[31mb\n\tc%c", 127), ST_IO);
    assert_string_equal(err.text, "a?[31mb\n\tc\177");
}

TEST_PROGRAM("strbuf")
