/* test_config_bad.c - what does not load: every message says where, what was found and what to do. */

#include "config_test.h"

/* The whole message, or its beginning when want ends in "...". */
static void assert_message(const char *got, const char *want)
{
    size_t n = strlen(want);
    bool open_end = n > 3 && strcmp(want + n - 3, "...") == 0;

    if (open_end ? strncmp(got, want, n - 3) != 0 : strcmp(got, want) != 0)
        fail_msg("message: %s\n  wanted: %s", got, want);
}

static void assert_bad(const char *text, const char *want)
{
    CONFIG *config = NULL;
    struct error err = {0};

    if (try_config(&config, text, NULL, &err) != ST_CONFIG)
        fail_msg("not refused (status %s): %s", status_name(err.status), text);
    assert_message(err.text, want);
}

TEST(unknown_names_get_the_nearest)
{
    assert_bad("[train]\n; x\nlearning_rat = 1\n",
               "x.ini:3: unknown key train.learning_rat; did you mean train.learning_rate?");
    assert_bad("[train]\ngmama = 1\n", "x.ini:2: unknown key train.gmama; did you mean train.gamma?");
    assert_bad("[policy]\ngamma = 1\n", "x.ini:2: unknown key policy.gamma; did you mean train.gamma?");
    assert_bad("[train]\nzzzzzz = 1\n", "x.ini:2: unknown key train.zzzzzz; --help lists the known keys");
    assert_bad("[trian]\ngamma = 1\n", "x.ini:1: unknown section [trian]; did you mean [train]?");
    assert_bad("\n[nothing_like_it]\n", "x.ini:2: unknown section [nothing_like_it]; --help lists the known ones");
    assert_bad("[sweep]\ntrails = 3\n", "x.ini:2: unknown key sweep.trails; did you mean sweep.trials?");
}

/* One message has them all: a section with all it holds, keys, sections and fields of a sweep. */
TEST(unknown_names_come_all_at_once)
{
    char text[4000] = "[train]\n", want[ERROR_TEXT_MAX] = "";
    CONFIG *config = NULL;
    struct error err = {0};

    assert_bad("[train]\ngmama = 1\nhorizon = 0\n[nothing_like_it]\na = 1\nb = 2\n[sweep.train.gamma]\nmni = 0.5\n"
               "[sweep.train.zzzzzz]\nmin = 1\n",
               "4 names are unknown:\n"
               "  x.ini:2: unknown key train.gmama; did you mean train.gamma?\n"
               "  x.ini:4: unknown section [nothing_like_it]; --help lists the known ones\n"
               "  x.ini:8: unknown key sweep.train.gamma.mni; did you mean min?\n"
               "  x.ini:9: [sweep.train.zzzzzz] sweeps unknown key train.zzzzzz; --help lists the known keys");
    for (int i = 0; i < 20; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "zzzzzzzzz%d = 1\n", i);
    assert_int_equal(try_config(&config, text, NULL, &err), ST_CONFIG);
    for (int i = 0; i < 20; i++) {
        snprintf(want, sizeof want, "x.ini:%d: unknown key train.zzzzzzzzz%d;", i + 2, i);
        if (strstr(err.text, want) == NULL)
            fail_msg("%s is missing in: %s", want, err.text);
    }
    config_destroy(config);
    for (int i = 20; i < 90; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "zzzzzzzzz%d = 1\n", i);
    error_clear(&err);
    assert_int_equal(try_config(&config, text, NULL, &err), ST_CONFIG);
    assert_memory_equal(err.text, "90 names are unknown:\n", 22);
    assert_non_null(strstr(err.text, " more"));
}

TEST(values_out_of_range_or_type)
{
    assert_bad("[train]\ngamma = 1.5\n", "x.ini:2: train.gamma is 1.5, allowed is 0 to 1");
    assert_bad("[train]\nhorizon = 0\n", "x.ini:2: train.horizon is 0, allowed is 1 to 100000");
    assert_bad("[train]\ngamma = high\n", "x.ini:2: train.gamma is \"high\", a number is needed");
    assert_bad("[train]\ngamma =\n", "x.ini:2: train.gamma is \"\", a number is needed");
    assert_bad("[train]\ngamma = 0,9\n",
               "x.ini:2: train.gamma is \"0,9\", a number is needed (its decimal mark is a point)");
    assert_bad("[train]\ngamma = nan\n", "x.ini:2: train.gamma is \"nan\", a number is needed");
    assert_bad("[train]\nhorizon = 1.5\n", "x.ini:2: train.horizon is 1.5, a whole number is needed");
    assert_bad("[train]\nhorizon = 1e30\n", "x.ini:2: train.horizon is 1e30, a whole number is needed...");
    assert_bad("[train]\nanneal_lr = maybe\n", "x.ini:2: train.anneal_lr is \"maybe\", true or false is needed");
    assert_bad("[train]\noptimizer = adma\n",
               "x.ini:2: train.optimizer is \"adma\", allowed is one of adam, muon; did you mean adam? (Update rule.)");
    assert_bad("[train]\noptimizer = lamb8888\n",
               "x.ini:2: train.optimizer is \"lamb8888\", allowed is one of adam, muon (Update rule.)");
}

TEST(repeats_are_contradictions)
{
    assert_bad("[train]\ngamma=1\n[policy]\n[train]\n",
               "x.ini:4: section [train] was opened before at x.ini:1; merge the two");
    assert_bad("[train]\ngamma = 1\ngamma = 1\n", "x.ini:3: train.gamma was set before at x.ini:2; keep one of them");
    assert_bad("[train]\nGamma = 1\ngamma = 1\n", "x.ini:3: train.gamma was set before at x.ini:2; keep one of them");
}

TEST(lines_that_are_no_ini)
{
    char longer[4000];

    assert_bad("gamma = 1\n", "x.ini:1: key gamma precedes the first [section]; put it into one");
    assert_bad("[train]\ngamma = 1\ngamma 2\n", "x.ini:3: no [section] and no key = value...");
    assert_bad("[train]\nwhat\n[nothing_like_it\n", "x.ini:2: no [section]..."); /* the first of two wins */
    assert_bad("[train\n", "x.ini:1: a section line is not of the form [section]");
    assert_bad("[]\n", "x.ini:1: a section line is not of the form [section]");
    assert_bad("[train] x\n", "x.ini:1: a section line is not of the form [section]");
    assert_bad("[train]\n= 1\n", "x.ini:2: nothing precedes the '='; write key = value");
    assert_bad("[policy]\nnote = \"open\n", "x.ini:2: the quotes of policy.note do not match...");
    assert_bad("[policy]\nnote = \"a\" b \"c\"\n", "x.ini:2: the quotes of policy.note do not match...");
    snprintf(longer, sizeof longer, "[policy]\nnote = %01200d\n", 1);
    assert_bad(longer, "x.ini:2: policy.note has 1200 bytes, at most 1023 are allowed");
    snprintf(longer, sizeof longer, "[%0200d]\n", 1);
    assert_bad(longer, "x.ini:1: ...");
    snprintf(longer, sizeof longer, "[policy]\n%0120d = 1\n", 1);
    assert_bad(longer, "x.ini:2: the name 0000000000...");
}

TEST(a_long_comment_is_fine)
{
    char text[4000];

    snprintf(text, sizeof text, "[train]\n; %0900d\ngamma = 0.5 ; %0900d\n", 1, 1);
    CONFIG *config = good_config(text, NULL);
    assert_string_equal(config_peek(config, "train.gamma"), "0.5");
    assert_string_equal(config_origin(config, "train.gamma"), "x.ini:3");
}

TEST(sweep_sections_are_checked)
{
    assert_bad("[sweep.train.learning_rat]\n",
               "x.ini:1: [sweep.train.learning_rat] sweeps unknown key train.learning_rat; did you mean "
               "train.learning_rate?");
    assert_bad("[sweep.gamma]\nmin = 0\n", "x.ini:1: [sweep.gamma] names no parameter; write [sweep.SECTION.KEY]");
    assert_bad("[sweep.train.gamma]\nmni = 0.5\n", "x.ini:2: unknown key sweep.train.gamma.mni; did you mean min?");
    assert_bad("[sweep.train.gamma]\nlowest_value = 0.5\n",
               "x.ini:2: unknown key sweep.train.gamma.lowest_value; a sweep section knows type, ...");
    assert_bad("[sweep.train.gamma]\ndistribution = log_nromal\n",
               "x.ini:2: unknown distribution \"log_nromal\" of train.gamma; did you mean log_normal?");
    assert_bad("[sweep.train.learning_rate]\ndistribution = log_normal\nmin = 0\n",
               "x.ini:3: sweep.train.learning_rate.min is 0, a log range needs > 0; try 1e-6");
    assert_bad("[sweep.train.gamma]\nmax = 1\n",
               "x.ini:2: sweep.train.gamma.max is 1, a logit range needs < 1; try 0.9999");
    assert_bad("[sweep.train.gamma]\nmax = 1.5\n", "x.ini:2: sweep.train.gamma.max is 1.5, allowed is 0 to 1");
    assert_bad("[sweep.train.gamma]\nmin = 0.95\nmax = 0.9\n",
               "x.ini:2: sweep.train.gamma has min 0.95 and max 0.9; min must be below max, or equal to keep it fixed");
    assert_bad("[sweep.train.gamma]\nmin = low\n", "x.ini:2: sweep.train.gamma.min is \"low\", a number is needed");
    assert_bad("[sweep.train.gamma]\nmean = 0.1\nmin = 0.8\n",
               "x.ini:2: sweep.train.gamma.mean is 0.1, a number from 0.8 to ...");
    assert_bad("[sweep.train.gamma]\nscale = wide\n",
               "x.ini:2: sweep.train.gamma.scale is wide, auto, time or a number...");
    assert_bad("[sweep.train.seed]\n",
               "x.ini:1: train.seed has no usual range to sweep; write distribution, min and max");
    assert_bad("[sweep.train.seed]\ndistribution = log\nmin = 1\n",
               "x.ini:1: train.seed has no usual range to sweep; write distribution, min and max");
    assert_bad("[sweep.train.optimizer]\nvalues = adam, moun\n",
               "x.ini:2: sweep.train.optimizer.values is \"moun\", allowed is one of adam, muon; did you mean muon? "
               "(Update rule.)");
    assert_bad("[sweep.train.optimizer]\nmin = adam\n", "x.ini:2: train.optimizer is categorical and has no min...");
    assert_bad("[sweep.train.optimizer]\ndistribution = uniform\n", "x.ini:2: train.optimizer is not a number...");
    assert_bad("[sweep.train.horizon]\nvalues = 8,,16\n", "x.ini:2: sweep.train.horizon.values has an empty...");
    assert_bad("[sweep.train.horizon]\ndistribution = int\nvalues = 8, 16\n",
               "x.ini:3: values of train.horizon belong to distribution = categorical");
#define IS_TEXT "env.name is a text, which cannot be searched; drop the section"
    assert_bad("[sweep.env.name]\n", "x.ini:1: " IS_TEXT);
    assert_bad("[sweep.env.name]\nmin = 1\nmax = 2\n", "x.ini:1: " IS_TEXT);
    assert_bad("[sweep.env.name]\ndistribution = categorical\n", "x.ini:1: " IS_TEXT);
    assert_bad("[sweep.env.name]\nvalues = a, b\nmin = 1\n", "x.ini:1: " IS_TEXT);
    assert_bad("[sweep.env.name]\nvalues = a, b\n", "x.ini:1: " IS_TEXT);
}

static void assert_bad_args(const char *const *args, enum status want_status, const char *want)
{
    CONFIG *config = NULL;
    struct error err = {0};

    assert_int_equal(try_config(&config, NULL, args, &err), want_status);
    assert_message(err.text, want);
}

/* One run of the program shows all values and ranges that have to change, in the order of the file. */
TEST(all_bad_values_and_ranges_at_once)
{
    assert_bad(
        "[train]\nhorizon = 0\n[sweep.train.gamma]\nmin = 0.9\nmax = 0.5\n"
        "[sweep.train.horizon]\ndistribution = sideways\n[sweep.train.learning_rate]\n"
        "distribution = log\nmin = -1\nmax = 1\n",
        "4 values or ranges are not possible:\n"
        "  x.ini:2: train.horizon is 0, allowed is 1 to 100000\n"
        "  x.ini:4: sweep.train.gamma has min 0.9 and max 0.5; min must be below max, or equal to keep it fixed\n"
        "  x.ini:7: unknown distribution \"sideways\" of train.horizon; known are uniform, int_uniform, "
        "uniform_pow2, log_normal, logit_normal, linear, int, pow2, log, logit, categorical\n"
        "  x.ini:10: sweep.train.learning_rate.min is -1, allowed is 0 to 1");
}

TEST(bad_arguments)
{
    char longer[OPT_STR_MAX + 32];

    assert_bad_args((const char *const[]){"--train.learning-rat", "1", NULL}, ST_CONFIG,
                    "command line: unknown key train.learning_rat; did you mean train.learning_rate?");
    assert_bad_args((const char *const[]){"--train.gamma=2", NULL}, ST_CONFIG,
                    "command line: train.gamma is 2, allowed is 0 to 1");
    assert_bad_args((const char *const[]){"--train.gamma", NULL}, ST_USAGE,
                    "command line: --train.gamma needs a value; write --train.gamma VALUE");
    assert_bad_args((const char *const[]){"--train.gamma", "--train.seed", "1", NULL}, ST_USAGE,
                    "command line: --train.gamma needs a value; write --train.gamma VALUE");
    assert_bad_args((const char *const[]){"--.gamma", "1", NULL}, ST_CONFIG,
                    "command line: \".gamma\" is not a key...");
    assert_bad_args((const char *const[]){"--train.", "1", NULL}, ST_CONFIG,
                    "command line: \"train.\" is not a key...");
    snprintf(longer, sizeof longer, "--policy.note=%0*d", OPT_STR_MAX, 1);
    assert_bad_args((const char *const[]){longer, NULL}, ST_CONFIG,
                    "command line: policy.note has 1024 bytes, at most 1023 are allowed");
    assert_bad_args((const char *const[]){"--policy.note=a\nb", NULL}, ST_CONFIG,
                    "command line: policy.note holds a control character...");
    snprintf(longer, sizeof longer, "--train.%0200d", 1);
    assert_bad_args((const char *const[]){longer, "1", NULL}, ST_USAGE, "command line: the name --train.000...");
}

/* Loads n bytes as a file; the message, with the path replaced by FILE. */
static void assert_bad_file(const char *bytes, size_t n, const char *want)
{
    char path[] = "/tmp/trawl-test-config-XXXXXX";
    int fd = mkstemp(path);
    CONFIG *config = NULL;
    struct error err = {0};

    assert_true(fd >= 0);
    ssize_t did = write(fd, bytes, n);
    close(fd);
    assert_int_equal(did, n);
    assert_int_equal(new_config(&config, NULL), ST_OK);
    assert_int_equal(config_load_file(config, path, &err), ST_CONFIG);
    unlink(path);
    assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
    assert_message(err.text + strlen(path), want);
}

TEST(files_that_are_no_config)
{
    char *large = malloc(CONFIG_FILE_MAX_BYTES + 1);
    CONFIG *config = NULL;
    struct error err = {0};

    assert_non_null(large);
    memset(large, '\n', CONFIG_FILE_MAX_BYTES + 1);
    assert_bad_file(large, CONFIG_FILE_MAX_BYTES + 1, ":1: larger than 1048576 bytes; this is not a config");
    for (size_t i = 0; i + 8 <= CONFIG_FILE_MAX_BYTES; i += 8)
        memcpy(large + i, "[train]\n", 8);
    assert_bad_file(large, CONFIG_FILE_MAX_BYTES, ":2: section [train] was opened before...");
    assert_bad_file("[train]\nga\0mma = 1\n", 19, ":2: holds a NUL byte; this is not a text file");
    assert_bad_file("\x7f"
                    "ELF\x02\x01\x01",
                    7, ":1: holds the control character 0x02; this is not a text file");
    free(large);
    assert_int_equal(new_config(&config, NULL), ST_OK);
    assert_int_equal(config_load_file(config, "/no/such/x.ini", &err), ST_IO);
    assert_message(err.text, "/no/such/x.ini: cannot be opened: No such file or directory");
    error_clear(&err);
    assert_int_equal(config_load_file(config, "/tmp", &err), ST_IO);
    assert_message(err.text, "/tmp: is a folder, a file is needed");
}

TEST(too_many_entries)
{
    CONFIG *config = NULL;
    struct error err = {0};
    STRBUF(text, CONFIG_FILE_MAX_BYTES);

    strbuf_add(&text, "[train]\n");
    for (int i = 0; i < 5000; i++)
        strbuf_addf(&text, "k%d = 1\n", i);
    assert_int_equal(try_config(&config, text.text, NULL, &err), ST_CONFIG);
    assert_message(err.text, "x.ini:4097: more than 4096 entries; is this a config?");
}

/* A value of a file has a stated limit, far above what any option takes. */
TEST(a_line_without_an_end_is_refused)
{
    static char text[2 * CONFIG_LINE_MAX_BYTES];
    CONFIG *config = NULL;
    struct error err = {0};

    snprintf(text, sizeof text, "[train]\nhorizon = %0*d\n", CONFIG_LINE_MAX_BYTES, 8);
    assert_int_equal(new_config(&config, NULL), ST_OK);
    assert_int_equal(config_load_text(config, "x.ini", text, NULL), ST_OK);
    assert_int_equal(strlen(config_peek(config, "train.horizon")), CONFIG_LINE_MAX_BYTES);
    config_destroy(config);
    snprintf(text, sizeof text, "[train]\nhorizon = %0*d\n", CONFIG_LINE_MAX_BYTES + 1, 8);
    assert_bad(text, "x.ini:2: the value has 65537 bytes, at most 65536 are allowed");
    config = good_config(NULL, (const char *const[]){"--policy.note=a note", NULL});
    STRBUF(out, 10);
    assert_int_equal(config_write_args(config, false, &out, &err), ST_LIMIT);
}

TEST(tables_that_contradict_are_bugs)
{
    static const struct opt_def wrong[] = {
        OPT_ROW_INT(struct sweep, trials, "0", 1, 10, OPT_FIXED, 0, 0, "", "Out of its own range."),
    };
    static const struct opt_table wrong_table = {"wrong", "Wrong", wrong, 1, sizeof(struct sweep)};
    CONFIG *config = NULL;
    struct error why = {0};

    assert_int_equal(new_config(&config, NULL), ST_OK);
    FAILS(config_add_table(config, &train_table, err), ST_INTERNAL, "train.total_timesteps");
    assert_int_equal(config_add_table(config, &wrong_table, &why), ST_CONFIG);
    assert_message(why.text, "option table: wrong.trials is 0, allowed is 1 to 10");
}

TEST_PROGRAM("config_bad")
