/* test_metric_lines.c - what a program's lines report, and what is shown of its output. */

#include "tests/unit_test.h"
#include "sweep/program/metric_lines.h"
#include "sweep/program/output_log.h"

static double value_of(const struct metric_line *line, const char *name)
{
    for (size_t i = 0; i < line->n; i++)
        if (strcmp(line->metrics[i].name, name) == 0)
            return line->metrics[i].value;
    return NAN;
}

/* want NaN: the line has no score. */
static void expect_score(const char *text, double want)
{
    struct metric_line line;

    (void)metric_line_read(text, strlen(text), "score", &line);
    double score = value_of(&line, "score");
    if (score != want && !(isnan(score) && isnan(want)))
        fail_msg("\"%s\": %g instead of %g", text, score, want);
}

TEST(a_report)
{
    static const char text[] = "TRAWL score=0.91 step=1000 cost=12.5 val/loss=-3e-2";
    struct metric_line line;

    assert_true(metric_line_read(text, strlen(text), "score", &line));
    assert_int_equal(line.n, 2);
    assert_true(value_of(&line, "score") == 0.91 && value_of(&line, "val/loss") == -0.03);
    assert_true(line.step == 1000 && line.cost == 12.5);
    assert_true(metric_line_read("TRAWL cost=nan", strlen("TRAWL cost=nan"), "score", &line));
    assert_true(line.has_cost && isnan(line.cost));
    assert_true(metric_line_read("TRAWL score=1", strlen("TRAWL score=1"), "score", &line) && !line.has_cost);
    expect_score("TRAWL score=1 score=2", 2);
    expect_score("TRAWL\tscore=1.5E-3\tx", 1.5e-3);
    expect_score("TRAWL score=-inf", -INFINITY);
}

/* What people, loggers, progress bars and terminals make of it. */
TEST(other_text_around_it)
{
    expect_score("TRAWL score=0.5, step=3; x=1", 0.5);
    expect_score("INFO:root:TRAWL score=0.5", 0.5);
    expect_score(" 50%|##   | 5/10 [00:01<00:01, 3it/s]TRAWL score=0.5", 0.5);
    expect_score("\033[32mTRAWL score=0.5\033[0m", 0.5);
    expect_score("\033[1;31mINFO\033[0m \033[KTRAWL \033[1mscore=0.5\033[m", 0.5);
    expect_score("\xef\xbb\xbfTRAWL score=0.5", 0.5);
    expect_score("TRAWL score=1 TRAWL score=2", 2);
}

TEST(no_report)
{
    static const char *const lines[] = {"",
                                        "TRAWL",
                                        "TRAWL ",
                                        "TRAWLER score=1",
                                        "xTRAWL score=1",
                                        "print(\"TRAWL score=1 step=2\")",
                                        "print a line like `TRAWL score=0.5` please",
                                        "TRAWL score=0,5",
                                        "TRAWL score = 0.5",
                                        "TRAWL score: 0.5",
                                        "TRAWL score=[9.]",
                                        "TRAWL score=0x10",
                                        "TRAWL score=",
                                        "\033[",
                                        "\033[TRAWL score=1"};

    for (size_t i = 0; i < COUNT(lines); i++)
        expect_score(lines[i], NAN);
    assert_true(metric_line_is_marked("TRAWL score = 0.5", 17));
    assert_false(metric_line_is_marked("`TRAWL score=0.5`", 17));
}

/* However many metrics a report has, the score is one of those that are kept. */
TEST(more_metrics_than_places)
{
    struct metric_line line;
    STRBUF(text, 1 << 16);
    STRBUF(json, 1 << 16);

    strbuf_add(&text, "TRAWL");
    strbuf_add(&json, "{");
    for (int i = 0; i < METRICS_MAX + 5; i++) {
        strbuf_addf(&text, " m%d=%d", i, i);
        strbuf_addf(&json, "\"m%d\": %d, ", i, i);
    }
    strbuf_add(&text, " score=7 last=1");
    strbuf_add(&json, "\"score\": 8, \"last\": 1}");
    assert_true(metric_line_read(text.text, text.len, "score", &line));
    assert_int_equal(line.n, METRICS_MAX);
    assert_true(value_of(&line, "score") == 7 && value_of(&line, "m0") == 0 && isnan(value_of(&line, "last")));
    assert_true(metric_json_read(json.text, json.len, "score", &line));
    assert_true(value_of(&line, "score") == 8 && isnan(value_of(&line, "last")));
}

static void expect_text(const char *output, size_t n, const char *want)
{
    MEM_LOCAL char *text = mem_alloc(n + 1);

    memcpy(text, output, n);
    output_log_printable(text, n);
    assert_string_equal(text, want);
}

TEST(output_as_text)
{
    expect_text("ошибка 日本\n", strlen("ошибка 日本\n"), "ошибка 日本");
    expect_text("a\xff\xc2\x85\0b\x7f", 7, "a???b?");
    expect_text("\033[31mred\033[0m\r\n 1%\r 2%\r", strlen("\033[31mred\033[0m\r\n 1%\r 2%\r"), "red\n 1%\n 2%");
    expect_text("cut \xe6\x97", 6, "cut ??");
    expect_text("", 0, "");
}

TEST_PROGRAM("metric-lines")
