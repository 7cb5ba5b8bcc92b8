/* program_command.h - a command that trains a trial: {argv}, {NAME} and {config} in its words, for [sweep] command and
 * for `trawl agent` (docs/own-trainer.md). Plain functions. */
#pragma once

#include "base/base.h"

struct config;
struct opt_def;
struct program_params;
struct strbuf;

/* What the words of a command stand for, besides the parameters. Borrowed. */
struct program_place {
    const char *config, *dir, *study, *env; /* {config} {dir} {study} {env}; NULL: "", and no {env} */
    int64_t trial, seed; /* {trial} {seed} */
};
/* The command as words: split at blanks, '...' and "..." kept together, then {argv}, {NAME} and the rest filled in;
 * a parameter without a text is left out of {argv}. NULL-terminated; caller: program_argv_free. */
enum status program_argv(const struct config *config, const struct program_params *params,
                         const struct program_place *place, char ***ret_argv, struct error *err) MUST_USE;
void program_argv_free(char **argv); /* NULL is fine */
/* Logs each parameter of the search that the command passes to the program by no word. */
void program_warn_unpassed(const struct config *config, const struct program_params *params);

/* The parts that an agent needs, whose command the shell has split already. */
enum command_brace {
    COMMAND_TEXT, /* the character stands for itself */
    COMMAND_NAME, /* {NAME} */
    COMMAND_ESCAPED /* {{NAME}}, which is the text {NAME} */
};
/* What begins at `at`; *ret_n: bytes of NAME. */
enum command_brace command_brace(const char *at, size_t *ret_n);
/* Appends what the name (n bytes) of a place stands for; false: it is none of a place. */
bool program_place_add(const struct program_place *place, const char *name, size_t n, struct strbuf *out);
/* The value of a program's parameter, borrowed; "" or NULL: none. */
const char *program_param_text(const struct config *config, const struct opt_def *def);
