/* compiler.c - a compiler's command line, and running it. */
#include "sweep/cmd/env/compiler.h"
#include "base/text/strbuf.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

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

void compiler_add_flags(struct compiler *c, const char *words, const char *letters)
{
    while (words != NULL && *words != '\0') {
        char word[1024];
        size_t n = strcspn(words, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, words);
        if (n > 0 && (letters == NULL || (n > 1 && word[0] == '-' && strchr(letters, word[1]) != NULL)))
            compiler_add(c, "", word);
        words += n + (words[n] == ' ');
    }
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
    return FAIL(err, ST_CONFIG, "env build: %s could not compile it; what it reported stands above", c->words[0]);
}

void compiler_free(struct compiler *c)
{
    for (size_t i = 0; i < c->n; i++)
        mem_free(c->words[i]);
    *c = (struct compiler){.n = 0};
}
