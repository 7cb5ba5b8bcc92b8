/* cli.c - options of one command out of a table, its --help, and small helpers of the command line.
 * Invariant: an option that the table does not know is an error that names the nearest one. */
#include "sweep/cli.h"

#include "store/store.h"

#include "base/config/config.h"
#include "base/os/file.h"
#include "base/text/duration.h"
#include "study/version.h"
#include "trainer/trainer.h"

#include <sys/stat.h>

static void print_help(const struct cli *cli)
{
    printf("usage: %s\n\n%s\n\noptions:\n", cli->synopsis, cli->about);
    for (size_t i = 0; i < cli->n_opts; i++) {
        const struct cli_opt *o = &cli->opts[i];
        char left[64];
        int n = o->letter ? snprintf(left, sizeof left, "-%c, ", o->letter) : 0;
        snprintf(left + n, sizeof left - (size_t)n, "--%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        printf("  %-24s %s\n", left, o->help);
    }
    printf("  %-24s %s\n\nexamples:\n%s\n", "-h, --help", "this text", cli->examples);
}

static enum status no_such_option(const struct cli *cli, const struct config *config, const char *name, bool is_long,
                                  struct error *err)
{
    const char *names[32];
    char key[CONFIG_KEY_MAX];
    size_t n = cli->n_opts < 32 ? cli->n_opts : 32;

    if (!is_long)
        return FAIL(err, ST_USAGE, "%s: no option '-%s'; `trawl %s --help` lists all", cli->name, name, cli->name);
    for (size_t i = 0; i < n; i++)
        names[i] = cli->opts[i].name;
    if (config != NULL && config_find_named(config, name, key))
        return FAIL(err, ST_USAGE, "%s: no option '--%s'; did you mean '--%s', the config's?", cli->name, name, key);
    const char *near = word_nearest(name, names, n);
    if (strcmp(name, "store") == 0)
        return FAIL(err, ST_USAGE, "%s: no option '--store', the store is one of its words; usage: %s", cli->name,
                    cli->synopsis);
    if (near != NULL)
        return FAIL(err, ST_USAGE, "%s: no option '--%s'; did you mean '--%s'? `trawl %s --help` lists all", cli->name,
                    name, near, cli->name);
    return FAIL(err, ST_USAGE, "%s: no option '--%s'; `trawl %s --help` lists all", cli->name, name, cli->name);
}

static enum status store_value(const struct cli *cli, const struct cli_opt *o, const char *value, struct error *err)
{
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)o->ret = true;
        return ST_OK;
    case CLI_TEXT:
    case CLI_STORE:
        if (value[0] == '\0')
            return FAIL(err, ST_USAGE, "%s: --%s is empty; give %s", cli->name, o->name, o->arg);
        *(const char **)o->ret = value;
        return o->kind == CLI_STORE ? store_address_check(value, err) : ST_OK;
    case CLI_INT:
        if (!num_parse_i64(value, (int64_t *)o->ret) || *(int64_t *)o->ret < 0)
            return FAIL(err, ST_USAGE, "%s: --%s is '%s', a whole number from 0 to 9.2e18 is needed", cli->name,
                        o->name, value);
        return ST_OK;
    case CLI_SECONDS:
        if (!parse_seconds(value, (double *)o->ret))
            return FAIL(err, ST_USAGE, "%s: --%s is '%s', a time is needed, like 90s, 30m or 2h", cli->name, o->name,
                        value);
        return ST_OK;
    }
    return FAIL(err, ST_INTERNAL, "%s: option kind %d", cli->name, (int)o->kind);
}

/* One option at argv[*i]; moves *i past its value. */
static enum status take_option(const struct cli *cli, const struct config *config, int argc, char **argv, int *i,
                               struct error *err)
{
    const char *text = argv[*i], *value = NULL;
    bool is_long = text[1] == '-';
    char name[WORD_MAX];
    size_t n = is_long ? strcspn(text + 2, "=") : 1;

    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text + (is_long ? 2 : 1));
    if (is_long && text[2 + n] == '=')
        value = text + 2 + n + 1;
    else if (!is_long && text[2] != '\0')
        value = text + 2;
    for (size_t k = 0; k < cli->n_opts; k++) {
        const struct cli_opt *o = &cli->opts[k];
        if (is_long ? strcmp(o->name, name) != 0 : o->letter != name[0])
            continue;
        if (o->kind == CLI_FLAG && value != NULL)
            return FAIL(err, ST_USAGE, "%s: --%s takes no value", cli->name, o->name);
        if (o->kind != CLI_FLAG && value == NULL) {
            if (*i + 1 >= argc)
                return FAIL(err, ST_USAGE, "%s: --%s needs a value: --%s %s", cli->name, o->name, o->name, o->arg);
            value = argv[++*i];
        }
        return store_value(cli, o, value, err);
    }
    return no_such_option(cli, config, name, is_long, err);
}

enum status cli_parse(const struct cli *cli, int argc, char **argv, struct cli_words *ret_words, struct error *err)
{
    return cli_parse_beside(cli, NULL, argc, argv, ret_words, err);
}

enum status cli_parse_beside(const struct cli *cli, const struct config *config, int argc, char **argv,
                             struct cli_words *ret_words, struct error *err)
{
    bool words_only = false;

    memset(ret_words, 0, sizeof *ret_words);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(cli);
            ret_words->help = true;
            return ST_OK;
        }
    for (int i = 1; i < argc; i++) { /* before any message can show a password */
        const char *value = strchr(argv[i], '=');
        value = argv[i][0] == '-' && value != NULL ? value + 1 : argv[i];
        if (store_is_address(value))
            TRY(store_address_check(value, err));
    }
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '\0') {
            return FAIL(err, ST_USAGE, "%s: one of the arguments is an empty word; usage: %s", cli->name,
                        cli->synopsis);
        } else if (!words_only && strcmp(argv[i], "--") == 0) {
            words_only = true;
        } else if (!words_only && argv[i][0] == '-' && argv[i][1] != '\0') {
            TRY(take_option(cli, config, argc, argv, &i, err));
        } else {
            if (ret_words->n >= cli->max_words)
                return FAIL(err, ST_USAGE, "%s: '%s' is one word too many; usage: %s", cli->name, argv[i],
                            cli->synopsis);
            ret_words->v[ret_words->n++] = argv[i];
        }
    }
    if (ret_words->n < cli->min_words)
        return FAIL(err, ST_USAGE, "%s: missing: %s; usage: %s", cli->name, cli->words_text, cli->synopsis);
    return ST_OK;
}

void cli_print_json(cJSON *json)
{
    MEM_LOCAL char *text = json_print(json, false);

    puts(text); /* main.c finds a stdout that is full or closed */
    cJSON_Delete(json);
}

enum status cli_print_options(const struct config *config, const char *section, struct error *err)
{
    STRBUF(sb, OUTPUT_MAX_BYTES);

    TRY(config_write_help(config, section, &sb, err));
    TRY(strbuf_status(&sb, "the help text", err));
    printf("\noptions of the config, as --section.key value or in a file under [section] (a-b is a_b):\n%s", sb.text);
    return ST_OK;
}

enum status check_writable(const char *path, struct error *err)
{
    char dir[PATH_MAX];
    struct stat st;

    if (store_is_address(path))
        return store_address_check(path, err);
    if (strlen(path) >= sizeof dir)
        return FAIL(err, ST_IO, "%.60s...: the path is too long", path);
    file_folder(path, dir, sizeof dir);
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return FAIL(err, ST_IO, "%s is a directory; name a file", path);
    if (access(dir, W_OK | X_OK) != 0)
        return FAIL(err, ST_IO, "%s: cannot write into %s: %s; choose another place", path, dir, strerror(errno));
    return ST_OK;
}

bool cli_is_same_file(const char *a, const char *b)
{
    char dir_a[PATH_MAX], dir_b[PATH_MAX];
    struct stat st_a, st_b;
    bool a_exists = stat(a, &st_a) == 0, b_exists = stat(b, &st_b) == 0;

    if (a_exists != b_exists)
        return false;
    if (a_exists)
        return S_ISREG(st_a.st_mode) && st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
    file_folder(a, dir_a, sizeof dir_a);
    file_folder(b, dir_b, sizeof dir_b);
    return strcmp(file_name(a), file_name(b)) == 0 && stat(dir_a, &st_a) == 0 && stat(dir_b, &st_b) == 0 &&
           st_a.st_dev == st_b.st_dev && st_a.st_ino == st_b.st_ino;
}

static bool is_store(const char *path)
{
    static const char begin[] = "SQLite format 3"; /* with its NUL */
    char bytes[sizeof begin] = "";
    FILE *file = fopen(path, "rbe");
    size_t n = file != NULL ? fread(bytes, 1, sizeof bytes, file) : 0;

    if (file != NULL)
        fclose(file);
    return n == sizeof bytes && memcmp(bytes, begin, n) == 0;
}

enum status check_output(const char *path, enum output_kind kind, const char *const *others, size_t n,
                         struct error *err)
{
    struct stat st;
    const char *what = NULL;

    TRY(check_writable(path, err));
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
        if (is_store(path))
            what = "store";
        else if (kind != OUTPUT_CHECKPOINT && checkpoint_is_one(path))
            what = "checkpoint";
        else if (kind != OUTPUT_CONFIG && word_ends_in(path, ".ini"))
            what = "config";
    }
    if (what != NULL)
        return FAIL(err, ST_USAGE, "%s is a %s and would be written over; name another file", path, what);
    for (size_t i = 0; i < n; i++)
        if (others[i] != NULL && cli_is_same_file(path, others[i]))
            return FAIL(err, ST_USAGE,
                        "%s: the output would be written over %s, which the same command reads or writes too; name "
                        "another file",
                        path, others[i]);
    return ST_OK;
}
