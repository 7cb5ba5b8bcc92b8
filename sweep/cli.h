/* cli.h - words and options of one command, its --help, and small helpers of the command line. Texts are borrowed from
 * argv; one thread. What the user typed wrong is ST_USAGE. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct config;

enum cli_kind { CLI_FLAG, CLI_TEXT, CLI_STORE, CLI_INT, CLI_SECONDS };

struct cli_opt {
    const char *name; /* "store": --store */
    char letter; /* 'o': also -o; 0: none */
    enum cli_kind kind;
    void *ret; /* bool *, const char **, int64_t *, double * (seconds) */
    const char *arg; /* "FILE"; NULL for a flag */
    const char *help;
};

#define CLI_MAX_WORDS 16

struct cli {
    const char *name; /* "train" */
    const char *synopsis; /* "trawl train ENV|CONFIG [--section.key value ...]" */
    const char *about; /* what it does, a few lines */
    const char *examples; /* lines, indented by two */
    const struct cli_opt *opts;
    size_t n_opts;
    int min_words, max_words;
    const char *words_text; /* what the words are, for messages: "a game or a config file"; NULL: none are needed */
};
#define CLI_OPTS(table) .opts = (table), .n_opts = sizeof(table) / sizeof *(table)
#define CLI_WORDS(min, max, text) .min_words = (min), .max_words = (max), .words_text = (text)

struct cli_words {
    const char *v[CLI_MAX_WORDS];
    int n;
    bool help; /* --help was given and printed: return ST_OK at once */
};

/* Words and options after argv[0]; options of the config ("--train.seed 3") must have been taken out before. */
enum status cli_parse(const struct cli *cli, int argc, char **argv, struct cli_words *ret_words,
                      struct error *err) MUST_USE;
/* In a command's function: declares `words`, and leaves with a usage error or after --help. */
#define CLI_PARSE(cli, words)                                                                                          \
    struct cli_words words;                                                                                            \
    TRY(cli_parse(&(cli), argc, argv, &words, err));                                                                   \
    if (words.help)                                                                                                    \
    return ST_OK
/* The same of a command that takes the config's options too: a name that is one without its section gets a hint. */
enum status cli_parse_beside(const struct cli *cli, const struct config *config, int argc, char **argv,
                             struct cli_words *ret_words, struct error *err) MUST_USE;
/* Prints a JSON value (taken) to stdout, as one line. */
void cli_print_json(cJSON *json);
/* Prints the help of the options of a section (NULL: of all), after a command's own help. */
enum status cli_print_options(const struct config *config, const char *section, struct error *err) MUST_USE;
/* Does PATH's directory exist, and can it be written? Asked before hours of work, not after. */
enum status check_writable(const char *path, struct error *err) MUST_USE;
/* By whatever names; of files that are not there yet, their folders are compared. */
bool cli_is_same_file(const char *a, const char *b);
enum output_kind { OUTPUT_CONFIG, OUTPUT_CHECKPOINT, OUTPUT_OTHER };
/* Also refuses a path at which a store, or a checkpoint or config (.ini) by a file of another kind, would be
 * overwritten; and one that is the same file as one of the n others, which the command reads or also writes (NULL
 * entries are left out). */
enum status check_output(const char *path, enum output_kind kind, const char *const *others, size_t n,
                         struct error *err) MUST_USE;
