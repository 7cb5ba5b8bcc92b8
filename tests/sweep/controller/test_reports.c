/* test_reports.c - a metric message becomes a report and the row of the trackers. */

#include "tests/check.h"
#include "sweep/controller/trial/reports.h"
#include "sweep/controller/trial/track_rows.h"

static bool parse(const char *text, struct metric_report *ret)
{
    JSON_LOCAL cJSON *message = NULL;

    OK(json_parse(text, strlen(text), &message, err));
    bool ok = report_parse(message, 7, 1, ret);
    return ok;
}

static void done(struct metric_report *report)
{
    mem_free((void *)report->points);
}

/* The values pass byte for byte, and the report outlives its message. */
TEST(a_row_has_the_values_as_the_worker_wrote_them)
{
    static const char values[] = "{\"score\":0.30000000000000004,\"train/lr\":3e-08,\"a \\\"b\\\"\":-0,\"sps\":123456,"
                                 "\"up\":\"inf\",\"down\":\"-inf\",\"none\":\"nan\",\"tiny\":5e-324}";
    struct metric_report report;
    char text[1024];

    snprintf(text, sizeof text,
             "{\"type\":\"metrics\",\"trial\":7,\"attempt\":1,\"env_steps\":4096,\"wall_s\":0.1,\"values\":%s}",
             values);
    assert_true(parse(text, &report));
    assert_int_equal(report.trial_id, 7);
    assert_int_equal(report.n, 8);
    assert_string_equal(report.points[2].name, "a \"b\"");
    assert_int_equal(report.points[7].env_steps, 4096);
    assert_true(report.points[4].value == (double)INFINITY && isnan(report.points[6].value));
    MEM_LOCAL char *row = track_rows_metrics_text(&report);
    snprintf(text, sizeof text, "{\"type\":\"metrics\",\"env_steps\":4096,\"wall_s\":0.1,\"values\":%s}", values);
    assert_string_equal(row, text);
    done(&report);
}

/* Any program may report more numbers than ours does, and texts among them. */
TEST(all_numbers_are_kept_and_nothing_else)
{
    struct metric_report report;
    STRBUF(text, 1 << 16);

    strbuf_add(&text, "{\"env_steps\":1,\"wall_s\":1,\"values\":{\"word\":\"high\",\"list\":[1]");
    for (int i = 0; i < 500; i++)
        strbuf_addf(&text, ",\"m%d\":%d.5", i, i);
    strbuf_add(&text, "}}");
    assert_true(parse(text.text, &report));
    assert_int_equal(report.n, 500);
    assert_string_equal(report.points[499].name, "m499");
    assert_true(report.points[499].value == 499.5);
    done(&report);
}

TEST(a_message_without_numbers_is_no_report)
{
    static const char *const texts[] = {"{\"env_steps\":1,\"wall_s\":1}",
                                        "{\"env_steps\":1,\"wall_s\":1,\"values\":{}}",
                                        "{\"env_steps\":1,\"wall_s\":1,\"values\":[1,2]}",
                                        "{\"env_steps\":1,\"wall_s\":1,\"values\":{\"a\":\"b\"}}",
                                        "{\"env_steps\":1,\"values\":{\"a\":1}}",
                                        "{\"wall_s\":1,\"values\":{\"a\":1}}"};
    struct metric_report report;

    for (size_t i = 0; i < COUNT(texts); i++)
        assert_false(parse(texts[i], &report));
}

TEST_PROGRAM("reports")
