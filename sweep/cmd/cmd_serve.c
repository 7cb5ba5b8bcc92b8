/* cmd_serve.c - `trawl serve`: pages and API over a store, until a signal. It only reads the store. */
#include "base/file.h"
#include "base/mem.h"
#include "study/version.h"
#include "sweep/cli.h"
#include "sweep/cmd/commands.h"
#include "sweep/pages/serve_hooks.h"
#include "sweep/signals.h"
#include "web/serve/serve.h"
#include "web/serve/serve_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOKEN_FILE_MAX 256

struct serve_cmd {
    const char *store_path, *bind, *token_file, *hosts, *open;
    int64_t port;
    bool control;
    char *token, *host_words; /* owned */
};

static enum status read_token(struct serve_cmd *c, struct error *err)
{
    size_t n = 0;

    if (c->token_file == NULL)
        return ST_OK;
    TRY(file_read_all(c->token_file, TOKEN_FILE_MAX, &c->token, &n, err));
    c->token[strcspn(c->token, " \t\r\n")] = '\0';
    if (strlen(c->token) < 16)
        return FAIL(err, ST_USAGE,
                    "serve: the first word of %s has %zu characters, a token needs 16; make one with "
                    "'openssl rand -hex 24'",
                    c->token_file, strlen(c->token));
    return ST_OK;
}

static enum status split_hosts(struct serve_cmd *c, struct serve_settings *set, struct error *err)
{
    char *rest = NULL;

    if (c->hosts == NULL)
        return ST_OK;
    c->host_words = mem_strdup(c->hosts);
    if (c->host_words == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for the names of --host");
    for (char *word = strtok_r(c->host_words, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest)) {
        if (set->n_hosts == SERVE_HOSTS_MAX)
            return FAIL(err, ST_USAGE, "serve: --host names more than %d hosts", SERVE_HOSTS_MAX);
        set->hosts[set->n_hosts++] = word;
    }
    return ST_OK;
}

/* A browser at the page, where there is a display; failing is no failure. */
static void open_browser(const char *url)
{
    pid_t pid;

    if (getenv("DISPLAY") == NULL && getenv("WAYLAND_DISPLAY") == NULL)
        return;
    pid = fork();
    if (pid == 0) {
        if (fork() == 0) {
            int null = open("/dev/null", O_RDWR);
            if (null >= 0) {
                dup2(null, STDOUT_FILENO);
                dup2(null, STDERR_FILENO);
            }
            execlp("xdg-open", "xdg-open", url, (char *)NULL);
        }
        _exit(0);
    }
    if (pid > 0)
        waitpid(pid, NULL, 0);
}

static void print_address(const struct serve_cmd *c, const struct serve *serve)
{
    const char *token = serve_token(serve);
    char url[256];

    snprintf(url, sizeof url, "http://%s:%d/%s%s", c->bind != NULL ? c->bind : "127.0.0.1", serve_port(serve),
             token[0] != '\0' && c->token == NULL ? "?token=" : "", c->token == NULL ? token : "");
    printf("%s\n", url);
    fflush(stdout);
    fprintf(stderr, "serving %s at the address above%s; Ctrl-C ends it\n", c->store_path,
            c->control ? ", which may also steer sweeps" : "");
    if (token[0] != '\0')
        fprintf(stderr,
                "others can reach it: every request needs the token%s. The traffic is not encrypted; for that keep the "
                "default address and put a reverse proxy with TLS before it (--host NAME lets its name in)\n",
                c->token != NULL ? " of --token-file" : ", which is shown this once");
    if (strcmp(c->open, "yes") == 0)
        open_browser(url);
}

static enum status run_serve(struct serve_cmd *c, struct error *err)
{
    struct serve_ctx ctx = {.store_path = c->store_path};
    struct serve_settings set = {.store_path = c->store_path,
                                 .bind = c->bind,
                                 .port = (int)c->port,
                                 .control = c->control,
                                 .program = program_text,
                                 .version = program_version,
                                 .commit = program_commit};
    struct serve *serve = NULL;

    TRY(read_token(c, err));
    set.token = c->token;
    TRY(split_hosts(c, &set, err));
    serve_hooks_fill(&set.hooks, &ctx);
    signals_catch();
    TRY(serve_create(&serve, &set, err));
    print_address(c, serve);
    while (!signals_stop())
        (void)poll(NULL, 0, 200); /* a signal ends it early, or comes just before: then it is seen in a moment */
    serve_destroy(serve);
    return ST_OK;
}

enum status cmd_serve(int argc, char **argv, struct error *err)
{
    struct serve_cmd c = {.store_path = "trawl.db", .port = 8080, .open = "no"};
    struct cli_words words;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_TEXT, &c.store_path, "FILE", "the store (trawl.db); it may come later"},
        {"port", 'p', CLI_INT, &c.port, "N", "where to listen; 0: any free port (8080)"},
        {"bind", 0, CLI_TEXT, &c.bind, "ADDRESS", "listen there in place of 127.0.0.1; then a token is needed"},
        {"token-file", 0, CLI_TEXT, &c.token_file, "FILE", "its first word is the token (a new one each time)"},
        {"host", 0, CLI_TEXT, &c.hosts, "NAMES",
         "more names, with commas between, that requests may call this server by"},
        {"control", 0, CLI_FLAG, &c.control, NULL, "let pages pause, stop and add trials"},
        {"open", 0, CLI_TEXT, &c.open, "yes|no", "open a browser (no)"},
    };
    const struct cli cli = {
        .name = "serve",
        .synopsis = "trawl serve [--store FILE] [--port N] [--bind ADDRESS] [--control]",
        .about =
            "Shows the studies of a store in a browser, live while a sweep runs, and answers programs under /api/v1/\n"
            "(docs/http-api.md). It only reads the store, and listens on this machine alone unless --bind is given.",
        .examples = "  trawl serve --store my.db\n"
                    "  trawl serve --store my.db --port 0 --open yes\n"
                    "  trawl serve --store my.db --bind 0.0.0.0 --token-file token.txt",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .words_text = "",
    };
    enum status rc;

    TRY(cli_parse(&cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    if (c.port < 0 || c.port > 65535)
        return FAIL(err, ST_USAGE, "serve: --port is %lld; 0 to 65535 is possible", (long long)c.port);
    if (strcmp(c.open, "yes") != 0 && strcmp(c.open, "no") != 0)
        return FAIL(err, ST_USAGE, "serve: --open is '%s'; yes or no is wanted", c.open);
    rc = run_serve(&c, err);
    mem_free(c.token);
    mem_free(c.host_words);
    return rc;
}
