/* program_command.c - the words of a command, filled in. */
#include "study/program/program_command.h"

#include "base/config/config.h"
#include "study/program/program_settings.h"

#include <ctype.h>

#define COMMAND_KEY "sweep.command"
#define ARG_MAX_BYTES (1u << 20) /* of the command, filled in */
#define WORDS_MAX 1024

static size_t name_bytes(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
}

enum command_brace command_brace(const char *at, size_t *ret_n)
{
    *ret_n = 0;
    if (at[0] != '{')
        return COMMAND_TEXT;
    if (at[1] == '{' && (*ret_n = name_bytes(at + 2)) > 0 && strncmp(at + 2 + *ret_n, "}}", 2) == 0)
        return COMMAND_ESCAPED;
    *ret_n = name_bytes(at + 1);
    return *ret_n > 0 && at[1 + *ret_n] == '}' && !isdigit((unsigned char)at[1]) ? COMMAND_NAME : COMMAND_TEXT;
}

bool program_place_add(const struct program_place *place, const char *name, size_t n, struct strbuf *out)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"config", place->config}, {"dir", place->dir}, {"study", place->study}, {"env", place->env}};
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"trial", place->trial}, {"seed", place->seed}};

    for (size_t i = 0; i < COUNT(texts); i++)
        if (strlen(texts[i].name) == n && memcmp(texts[i].name, name, n) == 0) {
            bool is_env = strcmp(texts[i].name, "env") == 0; /* without games it may be a parameter's name */
            if (is_env && (place->env == NULL || place->env[0] == '\0'))
                return false;
            strbuf_add(out, texts[i].text != NULL ? texts[i].text : "");
            return true;
        }
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (strlen(numbers[i].name) == n && memcmp(numbers[i].name, name, n) == 0) {
            strbuf_addf(out, "%lld", (long long)numbers[i].value);
            return true;
        }
    return false;
}

const char *program_param_text(const struct config *config, const struct opt_def *def)
{
    char key[2 * CONFIG_KEY_MAX];

    snprintf(key, sizeof key, PROGRAM_SECTION ".%s", def->key);
    return config_peek(config, key);
}

struct filler {
    const struct config *config;
    const struct program_params *params;
    const struct program_place *place;
    struct strbuf word; /* at work */
    bool is_word; /* the word has begun; it may be empty: "" */
    bool is_plain; /* and it stands in the command as it is: no quote, no {NAME} */
    char **argv; /* (n + 1), owned */
    size_t n;
};

#define COMMAND_FAIL(f, fmt, ...)                                                                                      \
    FAIL(err, ST_CONFIG, "%s: sweep.command: " fmt, config_origin((f)->config, COMMAND_KEY), __VA_ARGS__)

/* "|" and the like reached the program as an argument, most likely unnoticed. */
static enum status check_no_shell(const struct filler *f, struct error *err)
{
    const char *word = f->word.text;
    size_t n = name_bytes(word);

    if (strchr("|&;<>", word[0]) != NULL || strncmp(word, "2>", 2) == 0)
        return COMMAND_FAIL(
            f,
            "\"%.40s\" is for a shell, and no shell is involved; write sh -c '...' around it, or quotes "
            "around a word that the program gets as it is",
            word);
    if (strncmp(word, "~/", 2) == 0 || (word[0] == '$' && name_bytes(word + 1) > 0))
        return COMMAND_FAIL(
            f,
            "\"%.80s\" is for a shell, and no shell is involved; write the path or the value itself, or "
            "quotes around a word that the program gets as it is",
            word);
    if (f->n == 0 && n > 0 && word[n] == '=')
        return COMMAND_FAIL(f, "\"%.80s\" names no program, and no shell is involved; write env before it", word);
    return ST_OK;
}

static enum status end_word(struct filler *f, struct error *err)
{
    bool is_plain = f->is_plain;

    f->is_plain = true;
    if (!f->is_word)
        return ST_OK;
    if (is_plain && f->word.len > 0)
        TRY(check_no_shell(f, err));
    if (f->n == WORDS_MAX)
        return COMMAND_FAIL(f, "more than %d words", WORDS_MAX);
    f->argv[f->n++] = mem_strdup(f->word.text);
    f->word.len = 0;
    f->word.text[0] = '\0';
    f->is_word = false;
    return ST_OK;
}

/* All parameters, each as two words. */
static enum status fill_argv(struct filler *f, struct error *err)
{
    if (f->is_word)
        return COMMAND_FAIL(f, "%s stands for several words and must stand alone", "{argv}");
    for (size_t i = 0; i < f->params->table.n_defs; i++) {
        const struct opt_def *def = &f->params->table.defs[i];
        const char *value = program_param_text(f->config, def);
        if (value == NULL || value[0] == '\0')
            continue;
        f->is_word = true;
        strbuf_addf(&f->word, "--%s", def->written);
        TRY(end_word(f, err));
        f->is_word = true;
        f->is_plain = false;
        strbuf_add(&f->word, value);
        TRY(end_word(f, err));
    }
    return ST_OK;
}

/* {name} of n bytes; after: what follows the brace. */
static enum status fill_name(struct filler *f, const char *name, size_t n, const char *after, struct error *err)
{
    if (n == strlen("argv") && memcmp(name, "argv", n) == 0) {
        TRY(fill_argv(f, err));
        return *after == '\0' || isblank((unsigned char)*after)
                   ? ST_OK
                   : COMMAND_FAIL(f, "%s stands for several words and must stand alone", "{argv}");
    }
    f->is_word = true;
    if (program_place_add(f->place, name, n, &f->word))
        return ST_OK;
    for (size_t i = 0; i < f->params->table.n_defs; i++)
        if (words_same_name(f->params->table.defs[i].key, name, n)) {
            strbuf_add(&f->word, program_param_text(f->config, &f->params->table.defs[i]));
            return ST_OK;
        }
    return COMMAND_FAIL(
        f,
        "{%.*s} is not a parameter; there are {argv}, {config}, {dir}, {study}, {trial}, {seed}, {env} and one "
        "for each [sweep.NAME] and each line of [" PROGRAM_SECTION "]; {{%.*s}} is the plain text",
        (int)n, name, (int)n, name);
}

static enum status fill(struct filler *f, const char *at, struct error *err)
{
    char quote = '\0';

    while (*at != '\0') {
        size_t n;
        enum command_brace brace = command_brace(at, &n);
        char c = *at++;
        if (quote == '\0' && isblank((unsigned char)c)) {
            TRY(end_word(f, err));
            continue;
        }
        if (c == quote || (quote == '\0' && (c == '\'' || c == '"'))) {
            quote = quote == '\0' ? c : '\0';
            f->is_word = true;
            f->is_plain = false;
            continue;
        }
        if (brace == COMMAND_NAME) {
            TRY(fill_name(f, at, n, at + n + 1, err));
            f->is_plain = false;
            at += n + 1;
            continue;
        }
        f->is_word = true;
        if (brace == COMMAND_ESCAPED) {
            strbuf_add_n(&f->word, at, n + 2);
            at += n + 3;
            continue;
        }
        strbuf_add(&f->word, (char[2]){c, '\0'});
    }
    if (quote != '\0')
        return COMMAND_FAIL(f, "a quote %c has no end", quote);
    TRY(end_word(f, err));
    TRY(strbuf_status(&f->word, "a command", err));
    return f->n > 0 ? ST_OK : COMMAND_FAIL(f, "it names %s", "no program");
}

enum status program_argv(const struct config *config, const struct program_params *params,
                         const struct program_place *place, char ***ret_argv, struct error *err)
{
    struct filler f = {.config = config, .params = params, .place = place, .is_plain = true};

    f.argv = mem_array(WORDS_MAX + 1, sizeof *f.argv);
    strbuf_init(&f.word, ARG_MAX_BYTES);
    strbuf_add(&f.word, "");
    enum status rc = fill(&f, config_peek(config, COMMAND_KEY), err);
    strbuf_free(&f.word);
    if (rc != ST_OK) {
        program_argv_free(f.argv);
        return rc;
    }
    *ret_argv = f.argv;
    return ST_OK;
}

void program_argv_free(char **argv)
{
    for (size_t i = 0; argv != NULL && argv[i] != NULL; i++)
        mem_free(argv[i]);
    mem_free(argv);
}

/* Does {argv}, {config} or {NAME} of the command take it to the program? */
static bool is_passed(const char *command, const char *name)
{
    for (const char *at = strchr(command, '{'); at != NULL; at = strchr(at + 1, '{')) {
        size_t n = name_bytes(at + 1);
        if (at[n + 1] == '}' && (words_same_name(name, at + 1, n) || words_same_name("argv", at + 1, n) ||
                                 words_same_name("config", at + 1, n)))
            return true;
    }
    return false;
}

void program_warn_unpassed(const struct config *config, const struct program_params *params)
{
    const char *command = config_peek(config, COMMAND_KEY);

    if (command == NULL || command[0] == '\0' || program_is_outside(config) || strstr(command, "TRAWL_CONFIG") != NULL)
        return;
    for (size_t i = 0; i < params->table.n_defs; i++) {
        const struct opt_def *def = &params->table.defs[i];
        if (def->type != OPT_STR && !is_passed(command, def->written))
            log_warn(
                "%s: sweep.command passes %s to the program by none of {argv}, {%s} and {config}; it finds the value "
                "only in the file that TRAWL_CONFIG names",
                config_origin(config, COMMAND_KEY), def->written, def->written);
    }
}
