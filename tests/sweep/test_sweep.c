/* test_sweep.c - the parts of sweep/ that need no process: command line, times, search spaces and messages. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/mem.h"
#include "sweep/control.h"

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        struct error err_ = {0};                                                                                       \
        struct error *err = &err_;                                                                                     \
        if ((call) != ST_OK)                                                                                           \
            fail_msg("%s: %s", #call, err_.text);                                                                      \
    } while (0)

/* The call must fail with this status and a text that holds `says`. */
#define FAILS(call, status, says)                                                                                      \
    do {                                                                                                               \
        struct error err_ = {0};                                                                                       \
        struct error *err = &err_;                                                                                     \
        assert_int_equal((call), (status));                                                                            \
        if (strstr(err_.text, (says)) == NULL)                                                                         \
            fail_msg("\"%s\" is not in \"%s\"", (says), err_.text);                                                    \
    } while (0)

static void times_are_read_and_shown(void **state)
{
    static const struct {
        const char *text;
        double s;
    } good[] = {{"90", 90}, {"90s", 90}, {"1.5m", 90}, {"2h", 7200}, {"1d", 86400}, {"0.25", 0.25}};
    static const char *const bad[] = {"", "h", "2 hours", "-1s", "0", "0s", "nan", "inf", "2hh", "1,5h", "1e99d"};
    char buf[32];
    double s;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(parse_seconds(good[i].text, &s));
        assert_true(s == good[i].s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (parse_seconds(bad[i], &s))
            fail_msg("'%s' was read as %g s", bad[i], s);
    assert_string_equal(format_seconds(0.0351, buf), "35 ms");
    assert_string_equal(format_seconds(4.24, buf), "4.2 s");
    assert_string_equal(format_seconds(99.4, buf), "99 s");
    assert_string_equal(format_seconds(185, buf), "3m 05s");
    assert_string_equal(format_seconds(3599.7, buf), "1h 00m");
    assert_string_equal(format_seconds(3720, buf), "1h 02m");
    assert_string_equal(format_seconds(183600, buf), "2d 03h");
    assert_string_equal(format_seconds(NAN, buf), "?");
    assert_string_equal(format_seconds(INFINITY, buf), "?");
}

static void nearest_names(void **state)
{
    static const char *const names[] = {"train", "eval", "sweep", "show"};

    (void)state;
    assert_string_equal(cli_nearest("trian", names, 4), "train");
    assert_string_equal(cli_nearest("shw", names, 4), "show");
    assert_string_equal(cli_nearest("sweeps", names, 4), "sweep");
    assert_null(cli_nearest("xyzzy", names, 4));
    assert_null(cli_nearest("", names, 4));
    assert_null(cli_nearest("a-very-long-word-that-is-longer-than-any-option-name-that-anybody-would-type", names, 4));
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

static void command_lines(void **state)
{
    struct parsed p;

    (void)state;
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
    OK(parse(&p, ARGV("-"), err)); /* a lone dash is a word */
    FAILS(parse(&p, ARGV("--json"), err), ST_USAGE, "a thing is missing");
    FAILS(parse(&p, ARGV("a", "b", "c"), err), ST_USAGE, "'c'");
    FAILS(parse(&p, ARGV("a", "--jsn"), err), ST_USAGE, "--json");
    FAILS(parse(&p, ARGV("a", "--zzzzzz"), err), ST_USAGE, "--help");
    FAILS(parse(&p, ARGV("a", "--json=1"), err), ST_USAGE, "no value");
    FAILS(parse(&p, ARGV("a", "--store"), err), ST_USAGE, "needs a value");
    FAILS(parse(&p, ARGV("a", "--store", ""), err), ST_USAGE, "empty");
    FAILS(parse(&p, ARGV("a", "--trials", "many"), err), ST_USAGE, "'many'");
    FAILS(parse(&p, ARGV("a", "--trials", "-1"), err), ST_USAGE, "'-1'");
    FAILS(parse(&p, ARGV("a", "-q"), err), ST_USAGE, "'--q'");
}

/* ---- search spaces ---- */

static enum status load(const char *text, struct setup **ret_setup, struct search *ret_search, struct error *err)
{
    enum status rc;

    *ret_setup = NULL;
    memset(ret_search, 0, sizeof *ret_search);
    TRY(setup_create(ret_setup, err));
    rc = config_load_text((*ret_setup)->config, "t.ini", text, err);
    if (rc == ST_OK)
        rc = setup_finish(*ret_setup, err);
    if (rc == ST_OK)
        rc = search_from_setup(*ret_setup, ret_search, err);
    if (rc != ST_OK) {
        setup_destroy(*ret_setup);
        *ret_setup = NULL;
    }
    return rc;
}

static void spaces_are_read(void **state)
{
    struct setup *setup;
    struct search s;
    const struct space_param *p;

    (void)state;
    OK(load("[env]\nname = breakout\n[train]\nlearning_rate = 0.02\n"
            "[sweep.train.learning_rate]\n"
            "[sweep.train.total_timesteps]\ndistribution = log_normal\nmin = 1M\nmax = 3e8\nmean = 2e7\n"
            "[sweep.env.frameskip]\ndistribution = int_uniform\nmin = 1\nmax = 8\n"
            "[sweep.policy.hidden_size]\ndistribution = uniform_pow2\nmin = 32\nmax = 1024\nscale = auto\n"
            "[sweep.train.gamma]\ndistribution = logit_normal\nmin = 0.8\nmax = 0.9999\nmean = 0.99\n"
            "[sweep.train.optimizer]\n"
            "[sweep.policy.core]\nvalues = mlp, mingru\n",
            &setup, &s, err));
    assert_int_equal(s.space.dim, 7);
    p = &s.space.params[0];
    assert_string_equal(p->key, "train.learning_rate");
    assert_int_equal(p->scale, SPACE_LOG);
    assert_true(p->min < p->max && p->has_init && p->init == 0.02); /* the config's own value is the first trial's */
    p = &s.space.params[1];
    assert_int_equal(p->scale, SPACE_LOG);
    assert_true(p->is_int && p->min == 1e6 && p->max == 3e8 && p->has_init && p->init == 2e7);
    p = &s.space.params[2];
    assert_int_equal(p->scale, SPACE_LINEAR);
    assert_true(p->is_int && p->has_init && p->init == 4); /* breakout's default */
    p = &s.space.params[3];
    assert_int_equal(p->scale, SPACE_POW2);
    p = &s.space.params[4];
    assert_int_equal(p->scale, SPACE_LOGIT);
    assert_true(!p->is_int && p->init == 0.99);
    p = &s.space.params[5];
    assert_int_equal(p->scale, SPACE_CATEGORICAL);
    assert_int_equal(p->n_choices, 2);
    p = &s.space.params[6];
    assert_int_equal(p->n_choices, 2);
    assert_string_equal(s.choices[6][1], "mingru");
    search_free(&s);
    setup_destroy(setup);
}

#define GAME "[env]\nname = squared\n"

static void wrong_spaces_name_the_line(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[sweep.train.learning_rate]\ndistribution = log\nmin = 0\nmax = 1\n", "t.ini:"},
        {"[sweep.train.learning_rate]\nmin = 0.1\nmax = 0.01\n", "t.ini:"},
        {"[sweep.train.gamma]\ndistribution = logit\nmin = 0.5\nmax = 1\n", "t.ini:"},
        {"[sweep.train.gamma]\nmean = 0.1\n", "t.ini:"},
        {"[sweep.train.gamma]\ndistribution = categorical\n", "values"},
        {"[sweep.train.optimizer]\nvalues = adam\n", "at least 2"},
        {"[sweep.train.optimizer]\nmin = 0\nmax = 1\n", "t.ini:"},
        {"[sweep.train.seed]\n", "train.seed"},
        {"[sweep.env.name]\n", "env.name"},
        {"", "[sweep.train.learning_rate]"},
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct setup *setup;
        struct search s;
        snprintf(text, sizeof text, GAME "%s", bad[i].text);
        FAILS(load(text, &setup, &s, err), ST_CONFIG, bad[i].says);
    }
}

static void spaces_and_points_survive_json(void **state)
{
    const char *text = GAME
        "[sweep.train.learning_rate]\n[sweep.train.optimizer]\n[sweep.train.norm_adv]\n[sweep.policy.hidden_size]\n"
        "[sweep.train.total_timesteps]\nmin = 1M\nmax = 3e7\n";
    struct setup *setup;
    struct search s, back;
    char *json, *json_back, *params, value[64];
    double x[5] = {0.1 / 3, 1, 0, 64, 12345678}, y[5];

    (void)state;
    OK(load(text, &setup, &s, err));
    OK(search_to_json(&s, &json, err));
    OK(search_from_json(json, &back, err));
    OK(search_to_json(&back, &json_back, err));
    assert_string_equal(json, json_back);
    OK(search_params_json(&s, x, &params, err));
    assert_non_null(strstr(params, "\"muon\""));
    OK(search_point(&back, params, y, err));
    assert_memory_equal(x, y, sizeof x); /* to the last bit */
    OK(search_bind(&back, setup, err));
    search_value_text(&back, 0, x[0], value, sizeof value);
    OK(config_parse_value(back.opts[0], value, &y[0], err));
    assert_true(y[0] == x[0]);
    search_value_text(&back, 2, x[2], value, sizeof value);
    assert_string_equal(value, "false");
    search_value_text(&back, 4, x[4], value, sizeof value);
    assert_string_equal(value, "12345678");
    FAILS(search_point(&back, "{}", y, err), ST_CORRUPT, "train.learning_rate");
    FAILS(search_point(&back, "{\"train.learning_rate\": \"nan\"}", y, err), ST_CORRUPT, "train.learning_rate");
    search_free(&s);
    search_free(&back);
    setup_destroy(setup);
    mem_free(json);
    mem_free(json_back);
    mem_free(params);
}

static void damaged_spaces_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"params\": []}",
        "{\"params\": [{}]}",
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"cubic\", \"int\": false, \"min\": 0, \"max\": 1}]}",
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"categorical\", \"int\": false, \"min\": 0, \"max\": 1}]}",
        "{\"params\": [{\"key\": \"a.b\", \"scale\": \"linear\", \"int\": 1, \"min\": \"x\", \"max\": 1}]}",
    };
    struct search s;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = {0};
        if (search_from_json(bad[i], &s, &err) == ST_OK)
            fail_msg("accepted: %s", bad[i]);
        assert_true(strlen(err.text) > 10);
    }
}

static void methods_match_gp(void **state)
{
    (void)state;
    assert_string_equal(sweep_opt_table.defs[0].key, "method");
    assert_string_equal(sweep_opt_table.defs[0].choices, suggest_method_names());
}

/* Every alias leads to an option or to nothing, never to a key that no table has. */
static void dialect_leads_somewhere(void **state)
{
    struct setup *setup;
    struct search s;

    (void)state;
    OK(load(GAME "[sweep.train.gamma]\n", &setup, &s, err));
    for (size_t i = 0; i < dialect_n_aliases; i++)
        if (dialect_aliases[i].to != NULL && config_find_opt(setup->config, dialect_aliases[i].to) == NULL)
            fail_msg("%s leads to %s, which is no option", dialect_aliases[i].from, dialect_aliases[i].to);
    for (size_t i = 0; i < dialect_n_values; i++)
        OK(config_check_value(config_find_opt(setup->config, dialect_values[i].key), dialect_values[i].key,
                              dialect_values[i].to, "here", err));
    search_free(&s);
    setup_destroy(setup);
}

/* ---- messages ---- */

static void make_pair(struct proto *a, struct proto *b)
{
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    OK(proto_create(a, fds[0], err));
    OK(proto_create(b, fds[1], err));
}

static void messages_arrive_whole_and_in_order(void **state)
{
    struct proto a, b;
    cJSON *message;
    int64_t n = 0;

    (void)state;
    make_pair(&a, &b);
    for (int i = 0; i < 3; i++) {
        message = proto_message("metrics");
        assert_true(json_add_i64(message, "n", i));
        assert_true(json_add_f64(message, "x", NAN));
        OK(proto_send(&a, message, err));
    }
    assert_int_equal(write(a.fd, "{\"type\": \"ha", 12), 12);
    for (int i = 0; i < 3; i++) {
        OK(proto_receive(&b, 1000, &message, err));
        assert_non_null(message);
        assert_string_equal(json_get_str(message, "type"), "metrics");
        assert_true(json_get_i64(message, "n", &n) && n == i);
        cJSON_Delete(message);
    }
    OK(proto_receive(&b, 0, &message, err));
    assert_null(message); /* half a line is no message */
    assert_int_equal(write(a.fd, "lf\"}\n", 5), 5);
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

static void strangers_are_refused(void **state)
{
    static char flood[4096];
    struct proto a, b;
    cJSON *message = NULL;
    struct error err = {0};
    enum status rc = ST_OK;

    (void)state;
    make_pair(&a, &b);
    assert_int_equal(write(a.fd, "GET / HTTP/1.1\r\n", 16), 16);
    assert_int_equal(proto_receive(&b, 1000, &message, &err), ST_CORRUPT);
    assert_null(message);
    memset(flood, 'x', sizeof flood);
    error_clear(&err);
    for (size_t sent = 0; rc == ST_OK && sent < 2 * (size_t)PROTO_MAX_BYTES; sent += sizeof flood) {
        assert_int_equal(send(a.fd, flood, sizeof flood, 0), sizeof flood);
        rc = proto_receive(&b, 0, &message, &err);
        assert_null(message);
    }
    assert_int_equal(rc, ST_CORRUPT); /* bounded: it does not grow for ever */
    proto_destroy(&a);
    proto_destroy(&b);
}

/* ---- faults ---- */

static void every_allocation_may_fail(void **state)
{
    const char *text = GAME "[sweep.train.gamma]\n[sweep.train.optimizer]\n";
    int n = 0;

    (void)state;
    for (bool fired = true; fired; n++) {
        struct setup *setup;
        struct search s, back;
        char *json = NULL;
        struct error err = {0};
        fault_arm(FAULT_MALLOC, n + 1);
        enum status rc = load(text, &setup, &s, &err);
        if (rc == ST_OK)
            rc = search_to_json(&s, &json, &err);
        if (rc == ST_OK && (rc = search_from_json(json, &back, &err)) == ST_OK)
            search_free(&back);
        fired = fault_disarm(FAULT_MALLOC);
        assert_int_equal(fired, rc != ST_OK);
        if (rc != ST_OK)
            assert_non_null(strstr(err.text, "memory"));
        search_free(&s);
        setup_destroy(setup);
        mem_free(json);
    }
    assert_true(n > 20);
}

static void no_fork_no_worker(void **state)
{
    struct worker worker;

    (void)state;
    fault_arm(FAULT_FORK, 1);
    FAILS(worker_start(&worker, GAME, err), ST_IO, "cannot start a worker");
    assert_true(fault_disarm(FAULT_FORK));
    assert_int_equal(worker.pid, 0);
    assert_null(worker.proto.buf);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_read_and_shown),
        cmocka_unit_test(nearest_names),
        cmocka_unit_test(command_lines),
        cmocka_unit_test(spaces_are_read),
        cmocka_unit_test(wrong_spaces_name_the_line),
        cmocka_unit_test(spaces_and_points_survive_json),
        cmocka_unit_test(damaged_spaces_are_refused),
        cmocka_unit_test(methods_match_gp),
        cmocka_unit_test(dialect_leads_somewhere),
        cmocka_unit_test(messages_arrive_whole_and_in_order),
        cmocka_unit_test(strangers_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(no_fork_no_worker),
    };

    (void)argv;
    if (argc > 1)
        return 2; /* started as a worker of its own, would it run itself for ever */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
