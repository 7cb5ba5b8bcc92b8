/* test_game_log.c - the text of a process that plays games, taken as it comes. */
#include "tests/check.h"
#include "sweep/game_log.h"

static void keep(void *ctx, const char *line, bool left_out)
{
    if (!left_out)
        strbuf_addf(ctx, "%s\n", line);
}

/* A line of the program's own that comes in two parts, as the buffer fills up: it is shown once, and whole. */
TEST(a_line_in_two_parts_stays_whole)
{
    static const char first[] = "trawl: the game ended the pro", second[] = "cess\n";

    for (size_t filled = GAME_LOG_BYTES - 64; filled <= GAME_LOG_BYTES; filled += 8) {
        STRBUF(shown, 1u << 20);
        struct game_log log = {.counts = true, .who = "test", .show = keep, .ctx = &shown};
        for (size_t i = 0; i < filled; i += 8)
            game_log_add(&log, "of game\n", 8);
        game_log_add(&log, first, strlen(first));
        game_log_add(&log, second, strlen(second));
        const char *own = strstr(shown.text, "trawl: the game ended the process\n");
        assert_non_null(own);
        assert_null(strstr(own + 1, "trawl: "));
        assert_null(strstr(shown.text, "trawl: the game ended the pro\n"));
    }
}

/* A line that is longer than the buffer is shown in parts, between characters: nothing of it is lost or broken. */
TEST(a_line_without_end_is_shown_in_parts)
{
    static const char a_umlaut[] = "\xc3\xa4";
    STRBUF(shown, 1u << 20);
    struct game_log log = {.counts = true, .who = "test", .show = keep, .ctx = &shown};
    size_t n = 0;

    game_log_add(&log, "x", 1);
    for (size_t i = 0; i < 2 * 3 * GAME_LOG_BYTES; i++)
        game_log_add(&log, a_umlaut + i % 2, 1);
    game_log_show_last(&log);
    for (size_t i = 0; i < shown.len; n++) {
        size_t length = utf8_length(shown.text + i, shown.len - i);
        assert_true(length > 0);
        n -= shown.text[i] == '\n';
        i += length;
    }
    assert_int_equal(n, 1 + 3 * GAME_LOG_BYTES);
}

int main(void)
{
    return run_cases("sweep game_log", NULL, NULL);
}
