/* test_agent_words.c - the words of an agent's command, and results that wait on the disk. */
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/check.h"
#include "base/os/file.h"
#include "base/text/json.h"
#include "study/program/program_command.h"
#include "sweep/agent/agent_words.h"
#include "sweep/agent/spool.h"

static const char answer_text[] = "{\"params\": {\"Learning-Rate\": 0.001, "
                                  "\"layers\": 4, \"Seed\": 5, \"steps\": 3000000, \"opt\": \"a b\"},"
                                  " \"argv\": [\"--Learning-Rate\", \"0.001\", \"--opt\", \"a b\"],"
                                  " \"config\": {\"param\": {\"epochs\": \"3\", \"trial\": \"no\"}}}";

static const struct program_place place = {
    .config = "/t/config.ini", .dir = "/t", .study = "s", .trial = 7, .seed = 9007199254740991};

static void expect(const char *word, const char *want)
{
    JSON_LOCAL cJSON *answer = NULL;
    char **argv = NULL;

    assert_int_equal(json_parse(answer_text, strlen(answer_text), &answer, NULL), ST_OK);
    assert_int_equal(agent_words(&word, 1, answer, &place, &argv, NULL), ST_OK);
    assert_string_equal(argv[0], want);
    assert_null(argv[1]);
    program_argv_free(argv);
}

static void refused(const char *word, const char *says)
{
    JSON_LOCAL cJSON *answer = NULL;
    char **argv = NULL;

    assert_int_equal(json_parse(answer_text, strlen(answer_text), &answer, NULL), ST_OK);
    FAILS(agent_words(&word, 1, answer, &place, &argv, err), ST_USAGE, says);
    assert_null(argv);
}

TEST(words_are_filled_in)
{
    expect("train.py", "train.py");
    expect("", "");
    expect("--lr={Learning-Rate}", "--lr=0.001");
    expect("{learning_rate}{layers}", "0.0014");
    expect("{steps}", "3000000"); /* no 3e+06: it is given to programs that read a whole number */
    expect("{opt}", "a b"); /* one word, whatever is in it */
    expect("{config}:{dir}:{study}", "/t/config.ini:/t:s");
    expect("{trial}-{seed}", "7-9007199254740991"); /* of the trial, not of [param] */
    expect("{Seed}", "5"); /* only the words in small letters are of the trial */
    expect("{epochs}", "3");
    expect("{{opt}}", "{opt}");
    refused("{{x}", "{x} in the command is not a parameter"); /* an escape needs both */
    expect("awk '{ print $1 }'", "awk '{ print $1 }'");
    expect("a{2,3}", "a{2,3}");
    expect("{", "{");
    refused("{lr}", "{lr} in the command is not a parameter");
    refused("x{argv}", "must stand alone");
}

TEST(argv_is_many_words)
{
    const char *const words[] = {"python", "{argv}", "--last"};
    static const char *const want[] = {"python", "--Learning-Rate", "0.001", "--opt", "a b", "--last"};
    JSON_LOCAL cJSON *answer = NULL;
    char **argv = NULL;

    assert_int_equal(json_parse(answer_text, strlen(answer_text), &answer, NULL), ST_OK);
    assert_int_equal(agent_words(words, 3, answer, &place, &argv, NULL), ST_OK);
    for (size_t i = 0; i < COUNT(want); i++)
        assert_string_equal(argv[i], want[i]);
    assert_null(argv[COUNT(want)]);
    program_argv_free(argv);
}

static char logged[2048];

static void keep_log(void *ctx, enum log_level level, const char *line)
{
    (void)ctx, (void)level;
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", line);
}

/* Whatever lies among the results and cannot be sent is named and stays; what is sound is sent all the same. */
TEST(what_is_no_result_is_named)
{
    static const char *const odd[] = {"",
                                      "{\"place\": ",
                                      "[]",
                                      "{}",
                                      "{\"place\": \"http://h:1\", \"study\": \"s\", \"trial\": 7}",
                                      "{\"place\": \"http://h:1\", \"study\": \"s\", \"trial\": 7, \"body\": 3}",
                                      "{\"place\": \"http://h:1\", \"study\": \"s\", \"body\": {}}"};
    char dir[] = "/tmp/trawl-spool-XXXXXX", path[PATH_MAX], name[64];
    JSON_LOCAL cJSON *body = cJSON_CreateObject();
    struct spooled *list;
    size_t n;

    assert_non_null(mkdtemp(dir));
    json_add_str(body, "lease", "token-1");
    assert_int_equal(spool_put(dir, "http://h:1", "s", 7, body, path, NULL), ST_OK);
    for (size_t i = 0; i < COUNT(odd); i++) {
        snprintf(name, sizeof name, "%s/%zu-odd.told.json", dir, i);
        assert_int_equal(file_write_all(name, odd[i], strlen(odd[i]), NULL), ST_OK);
    }
    snprintf(name, sizeof name, "%s/folder.told.json", dir);
    assert_int_equal(mkdir(name, 0700), 0);
    logged[0] = '\0';
    log_set_sink(keep_log, NULL);
    assert_int_equal(spool_list(dir, "http://h:1", "s", &list, &n, NULL), ST_OK);
    log_set_sink(NULL, NULL);
    assert_int_equal(n, 1);
    spool_list_free(list, n);
    assert_non_null(strstr(logged, "folder.told.json is not a result"));
    assert_int_equal(rmdir(name), 0);
    for (size_t i = 0; i < COUNT(odd); i++) {
        snprintf(name, sizeof name, "/%zu-odd.told.json is not a result", i);
        if (strstr(logged, name) == NULL)
            fail_msg("'%s' is not named in:\n%s", odd[i], logged);
        snprintf(name, sizeof name, "%s/%zu-odd.told.json", dir, i);
        assert_int_equal(unlink(name), 0);
    }
    spool_done(path);
    assert_int_equal(rmdir(dir), 0);
}

TEST(results_wait_for_their_place)
{
    char dir[] = "/tmp/trawl-spool-XXXXXX", deep[64], path[PATH_MAX], other[PATH_MAX];
    JSON_LOCAL cJSON *body = cJSON_CreateObject();
    struct spooled *list;
    struct stat st;
    size_t n;

    assert_non_null(mkdtemp(dir));
    snprintf(deep, sizeof deep, "%s/a/b", dir);
    assert_int_equal(spool_open(deep, NULL), ST_OK);
    assert_int_equal(stat(deep, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    json_add_str(body, "lease", "token-1");
    json_add_f64(body, "score", 0.5);
    assert_int_equal(spool_put(deep, "http://h:1", "s", 7, body, path, NULL), ST_OK);
    assert_int_equal(spool_put(deep, "http://h:2", "s", 7, body, other, NULL), ST_OK); /* the same file: one lease */
    assert_string_equal(path, other);
    assert_int_equal(spool_list(deep, "http://h:1", "s", &list, &n, NULL), ST_OK);
    assert_int_equal(n, 0);
    assert_int_equal(spool_list(deep, "http://h:2", "t", &list, &n, NULL), ST_OK);
    assert_int_equal(n, 0);
    assert_int_equal(spool_list(deep, "http://h:2", "s", &list, &n, NULL), ST_OK);
    assert_int_equal(n, 1);
    assert_int_equal(list[0].trial, 7);
    assert_true(cJSON_Compare(list[0].body, body, true));
    spool_list_free(list, n);
    /* What a killed process has left half written goes after a while. */
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    char half[2][96];
    for (int i = 0; i < 2; i++) {
        snprintf(half[i], sizeof half[i], "%s/%d-x.told.json.tmp.%d", deep, i, i + 1);
        close(open(half[i], O_WRONLY | O_CREAT, 0600));
    }
    assert_int_equal(utimensat(AT_FDCWD, half[0], old, 0), 0);
    assert_int_equal(spool_list(deep, "http://h:2", "s", &list, &n, NULL), ST_OK);
    assert_int_equal(n, 1);
    spool_list_free(list, n);
    assert_int_equal(unlink(half[0]), -1);
    assert_int_equal(unlink(half[1]), 0);
    spool_refused(path);
    assert_int_equal(spool_list(deep, "http://h:2", "s", &list, &n, NULL), ST_OK);
    assert_int_equal(n, 0);
    snprintf(other, sizeof other, "%.200s.refused", path);
    assert_int_equal(unlink(other), 0); /* kept for a person */
    spool_done(path); /* that is gone already: nothing */
    assert_int_equal(rmdir(deep), 0);
    snprintf(deep, sizeof deep, "%s/a", dir);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(rmdir(dir), 0);
}

TEST_PROGRAM("agent-words")
