/* test_cli.c - command lines, times, and the messages between controller and worker. */
#include <signal.h>
#include <sys/socket.h>

#include "base/text/duration.h"
#include "base/fault.h"
#include "base/text/json.h"
#include "sweep/cli.h"
#include "sweep/launch/proto.h"
#include "sweep/supervise/worker_process.h"
#include "tests/check.h"

TEST(times_are_read_and_shown)
{
    static const struct {
        const char *text;
        double s;
    } good[] = {{"90", 90}, {"90s", 90}, {"1.5m", 90}, {"2h", 7200}, {"1d", 86400}, {"0.25", 0.25}};
    static const char *const bad[] = {"", "h", "2 hours", "-1s", "0", "0s", "nan", "inf", "2hh", "1,5h", "1e99d"};
    char buf[32];
    double s;

    for (size_t i = 0; i < COUNT(good); i++) {
        assert_true(parse_seconds(good[i].text, &s));
        assert_true(s == good[i].s);
    }
    for (size_t i = 0; i < COUNT(bad); i++)
        if (parse_seconds(bad[i], &s))
            fail_msg("'%s' was read as %g s", bad[i], s);
    assert_string_equal(format_seconds(0.0351, buf), "35.1 ms");
    assert_string_equal(format_seconds(4.24, buf), "4.24 s");
    assert_string_equal(format_seconds(99.4, buf), "99.4 s");
    assert_string_equal(format_seconds(185, buf), "3m 05s");
    assert_string_equal(format_seconds(3599.7, buf), "1h");
    assert_string_equal(format_seconds(3720, buf), "1h 02m");
    assert_string_equal(format_seconds(183600, buf), "2d 03h");
    assert_string_equal(format_seconds(NAN, buf), "?");
    assert_string_equal(format_seconds(INFINITY, buf), "?");
}

struct parsed {
    bool flag;
    const char *text;
    int64_t number;
    double seconds;
    struct cli_words words;
};

static enum status parse(struct parsed *p, char **argv, struct error *err)
{
    const struct cli_opt opts[] = {
        {"json", 0, CLI_FLAG, &p->flag, NULL, ""},
        {"store", 's', CLI_TEXT, &p->text, "FILE", ""},
        {"trials", 'n', CLI_INT, &p->number, "N", ""},
        {"time", 0, CLI_SECONDS, &p->seconds, "TIME", ""},
    };
    const struct cli cli = {.name = "x",
                            .synopsis = "trawl x A",
                            .opts = opts,
                            .n_opts = 4,
                            .min_words = 1,
                            .max_words = 2,
                            .words_text = "a thing"};
    int argc = 0;

    memset(p, 0, sizeof *p);
    while (argv[argc] != NULL)
        argc++;
    return cli_parse(&cli, argc, argv, &p->words, err);
}

#define ARGV(...)                                                                                                      \
    (char *[])                                                                                                         \
    {                                                                                                                  \
        "x", __VA_ARGS__, NULL                                                                                         \
    }

TEST(command_lines)
{
    struct parsed p;

    OK(parse(&p, ARGV("a", "--json", "--store", "f.db", "-n", "12", "--time=2m", "b"), err));
    assert_true(p.flag);
    assert_string_equal(p.text, "f.db");
    assert_int_equal(p.number, 12);
    assert_true(p.seconds == 120);
    assert_int_equal(p.words.n, 2);
    assert_string_equal(p.words.v[1], "b");
    OK(parse(&p, ARGV("-sf.db", "--", "--json"), err));
    assert_string_equal(p.text, "f.db");
    assert_false(p.flag);
    assert_string_equal(p.words.v[0], "--json");
    OK(parse(&p, ARGV("--", "--help"), err));
    assert_false(p.words.help);
    assert_string_equal(p.words.v[0], "--help");
    OK(parse(&p, ARGV("-"), err)); /* a lone dash is a word */
    FAILS(parse(&p, ARGV("--json"), err), ST_USAGE, "missing: a thing");
    FAILS(parse(&p, ARGV("a", "b", "c"), err), ST_USAGE, "'c'");
    FAILS(parse(&p, ARGV("a", "--jsn"), err), ST_USAGE, "--json");
    FAILS(parse(&p, ARGV("a", "--zzzzzz"), err), ST_USAGE, "--help");
    FAILS(parse(&p, ARGV("a", "--json=1"), err), ST_USAGE, "no value");
    FAILS(parse(&p, ARGV("a", "--store"), err), ST_USAGE, "needs a value");
    FAILS(parse(&p, ARGV("a", "--store", ""), err), ST_USAGE, "empty");
    FAILS(parse(&p, ARGV("a", "--trials", "many"), err), ST_USAGE, "'many'");
    FAILS(parse(&p, ARGV("a", "--trials", "-1"), err), ST_USAGE, "'-1'");
    FAILS(parse(&p, ARGV("a", "-q"), err), ST_USAGE, "'-q'");
}

/* ---- messages ---- */

static void make_pair(struct proto *a, struct proto *b)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    proto_create(a, fds[0], fds[0]);
    proto_create(b, fds[1], fds[1]);
}

TEST(messages_arrive_whole_and_in_order)
{
    struct proto a, b;
    cJSON *message;
    int64_t n = 0;

    make_pair(&a, &b);
    for (int i = 0; i < 3; i++) {
        message = proto_message("metrics");
        json_add_i64(message, "n", i);
        json_add_f64(message, "x", NAN);
        OK(proto_send(&a, message, err));
    }
    assert_int_equal(write(a.out_fd, "{\"type\": \"ha", 12), 12);
    for (int i = 0; i < 3; i++) {
        OK(proto_receive(&b, 1000, &message, err));
        assert_non_null(message);
        assert_string_equal(json_get_str(message, "type"), "metrics");
        assert_true(json_get_i64(message, "n", &n) && n == i);
        cJSON_Delete(message);
    }
    OK(proto_receive(&b, 0, &message, err));
    assert_null(message); /* half a line is not a message */
    assert_int_equal(write(a.out_fd, "lf\"}\n", 5), 5);
    OK(proto_receive(&b, 1000, &message, err));
    assert_string_equal(json_get_str(message, "type"), "half");
    cJSON_Delete(message);
    proto_destroy(&a);
    OK(proto_receive(&b, 1000, &message, err));
    assert_null(message);
    assert_true(b.closed);
    FAILS(proto_send(&b, proto_message("x"), err), ST_IO, "does not take");
    proto_destroy(&b);
}

/* What came while nobody listened, many times what a socket or one message may hold. */
TEST(what_was_taken_in_comes_first)
{
    static char padding[4096];
    struct proto a, b;
    cJSON *message;
    int64_t n = 0;

    memset(padding, 'x', sizeof padding - 1);
    make_pair(&a, &b);
    for (int i = 0; i < 1000; i++) {
        message = proto_message("metrics");
        json_add_i64(message, "n", i);
        json_add_str(message, "x", padding);
        OK(proto_send(&a, message, err));
        if (i == 10) { /* it does not disturb the message that is being looked at */
            OK(proto_receive(&b, 1000, &message, err));
            cJSON_Delete(message);
        }
        if (i % 10 == 9)
            proto_take_in(&b);
    }
    assert_int_equal(b.buf[b.at + b.n_line - 1], '\n');
    for (int i = 1; i < 1000; i++) {
        OK(proto_receive(&b, 0, &message, err));
        assert_true(message != NULL && json_get_i64(message, "n", &n) && n == i);
        assert_string_equal(json_get_str(message, "x"), padding);
        cJSON_Delete(message);
    }
    proto_destroy(&a);
    proto_take_in(&b);
    OK(proto_receive(&b, 1000, &message, err));
    assert_true(message == NULL && b.closed);
    proto_destroy(&b);
}

/* A process that is stopped takes nothing: who sends to it is not held up. */
TEST(who_takes_nothing_is_given_up)
{
    struct proto a, b;
    struct error why = {0};
    enum status rc = ST_OK;
    int n = 0;

    make_pair(&a, &b);
    a.send_ms = 50;
    while (rc == ST_OK && n++ < 1000000)
        rc = proto_send(&a, proto_message("run"), &why);
    assert_int_equal(rc, ST_BUSY);
    assert_non_null(strstr(why.text, "took no messages"));
    proto_destroy(&a);
    proto_destroy(&b);
}

TEST(strangers_are_refused)
{
    static char flood[4096];
    struct proto a, b;
    cJSON *message = NULL;
    struct error err = {0};
    enum status rc = ST_OK;

    make_pair(&a, &b);
    assert_int_equal(write(a.out_fd, "GET / HTTP/1.1\r\n", 16), 16);
    assert_int_equal(proto_receive(&b, 1000, &message, &err), ST_CORRUPT);
    assert_null(message);
    memset(flood, 'x', sizeof flood);
    error_clear(&err);
    for (size_t sent = 0; rc == ST_OK && sent < 2 * (size_t)PROTO_MAX_BYTES; sent += sizeof flood) {
        assert_int_equal(send(a.out_fd, flood, sizeof flood, 0), sizeof flood);
        rc = proto_receive(&b, 0, &message, &err);
        assert_null(message);
    }
    assert_int_equal(rc, ST_CORRUPT); /* bounded: it does not grow for ever */
    proto_destroy(&a);
    proto_destroy(&b);
}

TEST(no_fork_no_worker)
{
    static struct worker worker; /* zeroed */

    fault_arm(FAULT_FORK, 1);
    FAILS(worker_spawn(&worker, err), ST_IO, "cannot start a worker");
    assert_true(fault_disarm(FAULT_FORK));
    assert_int_equal(worker.pid, 0);
    assert_null(worker.proto.buf);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* as in the program */
    (void)argv;
    if (argc > 1)
        return 2; /* started as a worker of its own, it would run itself for ever */
    return run_cases("cli", NULL, NULL);
}
