/* compiler.c - a compiler's command line, and running it. */
#include "sweep/cmd/env/compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

void compiler_add(struct compiler *c, const char *prefix, const char *text)
{
    struct strbuf sb;

    if (c->n == COMPILER_WORDS_MAX)
        return;
    strbuf_init(&sb, 1u << 16);
    strbuf_add(&sb, prefix);
    strbuf_add(&sb, text);
    c->words[c->n++] = strbuf_take(&sb);
}

void compiler_add_words(struct compiler *c, const char *words)
{
    compiler_add_flags(c, words, NULL);
}

/* The next word of a text, with the quotes and backslashes of a shell; nothing is expanded, so that $ORIGIN arrives.
 * word has room for all of the text. *ret_open: a quote has no end. */
static bool take_word(const char **text, char *word, bool *ret_open)
{
    static const char blanks[] = " \t\n";
    const char *at = *text + strspn(*text, blanks);
    char quote = '\0';
    bool found = *at != '\0';

    for (; *at != '\0' && (quote != '\0' || strchr(blanks, *at) == NULL); at++) {
        if (quote == '\0' && (*at == '\'' || *at == '"')) {
            quote = *at;
        } else if (*at == quote) {
            quote = '\0';
        } else {
            if (*at == '\\' && at[1] != '\0' && (quote == '\0' || (quote == '"' && strchr("\"\\$`", at[1]) != NULL)))
                at++;
            *word++ = *at;
        }
    }
    *word = '\0';
    *text = at;
    *ret_open = quote != '\0';
    return found;
}

bool compiler_words_are_whole(const char *words)
{
    MEM_LOCAL char *word = mem_alloc(words != NULL ? strlen(words) + 1 : 1);
    bool open = false;

    while (words != NULL && !open && take_word(&words, word, &open))
        ;
    return !open;
}

void compiler_add_flags(struct compiler *c, const char *words, const char *letters)
{
    MEM_LOCAL char *word = mem_alloc(words != NULL ? strlen(words) + 1 : 1);
    bool open;

    while (words != NULL && take_word(&words, word, &open))
        if (letters == NULL || (word[0] == '-' && word[1] != '\0' && strchr(letters, word[1]) != NULL))
            compiler_add(c, "", word);
}

static void show_log(const char *log)
{
    char buf[4096];
    size_t got;
    FILE *file = fopen(log, "rbe");

    while (file != NULL && (got = fread(buf, 1, sizeof buf, file)) > 0)
        fwrite(buf, 1, got, stderr);
    if (file != NULL)
        fclose(file);
}

enum status compiler_run(struct compiler *c, const char *log, struct error *err)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;
    int state = 0, rc = posix_spawn_file_actions_init(&actions);

    if (rc == 0) {
        if (log != NULL) {
            posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
            posix_spawn_file_actions_adddup2(&actions, 1, 2);
        }
        rc = posix_spawnp(&pid, c->words[0], &actions, NULL, c->words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    if (rc != 0)
        return FAIL(err, ST_IO,
                    "env build: the compiler %s cannot be started: %s; CC, CXX, RUSTC and NVCC name another",
                    c->words[0], strerror(rc));
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return ST_OK;
    if (log != NULL)
        show_log(log);
    return FAIL(err, ST_CONFIG, "env build: %s could not compile it; see its report above", c->words[0]);
}

void compiler_free(struct compiler *c)
{
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->words[i]);
    *c = (struct compiler){.n = 0};
}
