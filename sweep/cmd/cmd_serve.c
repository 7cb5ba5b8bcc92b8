/* cmd_serve.c - `trawl serve`: pages and API over a store, until a signal. It only reads the store. */
#include "base/os/file.h"
#include "base/text/json.h"
#include "store/store.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "sweep/control/ask/ask_forward.h"
#include "sweep/control/command/control_command.h"
#include "sweep/control/command/control_send.h"
#include "sweep/signals.h"
#include "web/serve/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define TOKEN_FILE_MAX 256

struct serve_cmd {
    const char *store_path, *bind, *token_file, *hosts, *open;
    int64_t port;
    bool control, no_token;
    char *token, *host_words; /* owned */
};

/* A token that stays when the server is started again; only its owner may read it. */
static enum status make_token_file(const char *path, struct error *err)
{
    char text[SERVE_TOKEN_MAX + 1];

    TRY(serve_make_token(text, err));
    strcat(text, "\n");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
        int os = errno;
        if (fd >= 0) {
            (void)unlink(path); /* a part of it is not a token */
            close(fd);
        }
        return FAIL(err, ST_IO, "serve: the token could not be written to %s (%s); give --token-file another path",
                    path, strerror(os));
    }
    close(fd);
    return ST_OK;
}

static enum status read_token(struct serve_cmd *c, struct error *err)
{
    size_t n = 0;

    if (c->token_file == NULL)
        return ST_OK;
    if (c->no_token)
        return FAIL(err, ST_USAGE, "serve: --no-token and --token-file are both given; leave one out");
    if (access(c->token_file, F_OK) != 0)
        TRY(make_token_file(c->token_file, err));
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
    for (char *word = strtok_r(c->host_words, ", ", &rest); word != NULL; word = strtok_r(NULL, ", ", &rest)) {
        if (set->n_hosts == SERVE_HOSTS_MAX)
            return FAIL(err, ST_USAGE, "serve: --host names more than %d hosts", SERVE_HOSTS_MAX);
        set->hosts[set->n_hosts++] = word;
    }
    return ST_OK;
}

/* A browser at the page, where there is a display; failing is not a failure. */
static void open_browser(const char *url)
{
    if (getenv("DISPLAY") == NULL && getenv("WAYLAND_DISPLAY") == NULL)
        return;
    pid_t pid = fork();
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

/* Pages wait for a store that is not there yet, and report one that is damaged; but what is not a store at the start never
 * becomes one. */
static enum status check_store(const char *path, struct error *err)
{
    struct store *store = NULL;
    struct error why = {0};
    struct stat st;
    enum status rc = store_open_blind(&store, path, true, &why);

    store_close(store);
    if (rc == ST_CORRUPT || (rc != ST_OK && stat(path, &st) == 0 && !S_ISREG(st.st_mode)))
        return FAIL(err, rc, "%s", why.text);
    return ST_OK;
}

static void print_address(const struct serve_cmd *c, const struct serve *serve)
{
    const char *token = serve_token(serve), *host = c->bind != NULL ? c->bind : "127.0.0.1";
    const char *shown = c->token == NULL ? token : "", *ticket = serve_ticket(serve);
    char url[256];

    printf("http://%s:%d/%s%s\n", host, serve_port(serve), shown[0] != '\0' ? "?token=" : "", shown);
    fflush(stdout);
    fprintf(stderr, "serving %s at the address above%s; Ctrl-C ends it\n", c->store_path,
            c->control ? ", which may also steer sweeps" : "");
    if (token[0] != '\0' && c->bind == NULL && c->token != NULL)
        fprintf(stderr,
                "--token-file is given, so every request needs its token; a browser asks for it once, programs send "
                "'Authorization: Bearer TOKEN'\n");
    else if (token[0] != '\0' && c->bind == NULL)
        fprintf(
            stderr,
            "other users of this machine may not read the store, so every request needs the token in the address; a "
            "browser that opens the address once keeps it, programs send 'Authorization: Bearer TOKEN' (--no-token "
            "lets all users in)\n");
    else if (token[0] != '\0')
        fprintf(stderr,
                "others can reach it: every request needs the token%s. The traffic is not encrypted; for that keep the "
                "default address and put a reverse proxy with TLS before it (--host NAME lets its name in)\n",
                c->token != NULL ? " of --token-file" : ", which is shown this once");
    snprintf(url, sizeof url, "http://%s:%d/%s%s", host, serve_port(serve), ticket[0] != '\0' ? "?token=" : "", ticket);
    if (strcmp(c->open, "yes") == 0)
        open_browser(url);
}

/* A field that is misspelt or belongs to another action would be ignored otherwise, and the answer be "ok". */
static enum status check_fields(const char *action, const cJSON *request, struct error *err)
{
    static const struct {
        const char *field, *action;
    } known[] = {{"now", "pause"},   {"trials", "add"},    {"budget_s", "add"},  {"priority", "priority"},
                 {"trial", "retry"}, {"trial", "confirm"}, {"trials", "confirm"}};
    const cJSON *item;

    cJSON_ArrayForEach(item, request)
    {
        size_t i = 0, n = COUNT(known);
        for (const cJSON *other = item->next; other != NULL; other = other->next)
            if (strcmp(other->string, item->string) == 0)
                return FAIL(err, ST_USAGE, "the field '%.40s' is given twice", item->string);
        if (strcmp(item->string, "action") == 0)
            continue;
        while (i < n && (strcmp(item->string, known[i].field) != 0 || strcmp(action, known[i].action) != 0))
            i++;
        if (i == n)
            return FAIL(err, ST_USAGE,
                        "%.20s takes no field '%.40s'; pause takes now, add takes trials and budget_s, priority takes "
                        "priority, retry takes trial, confirm takes trial and trials",
                        action, item->string);
    }
    return ST_OK;
}

static bool is_action(const char *action)
{
    for (int i = 0; i <= CONTROL_CONFIRM; i++) /* the later ones are for the command line */
        if (strcmp(action, control_kind_name((enum control_kind)i)) == 0)
            return true;
    return false;
}

/* What serve_control_fn says. */
static enum status steer(const char *store_path, const char *study, const cJSON *request, char **ret_message,
                         struct error *err)
{
    const char *action = json_get_str(request, "action");
    struct control_command command;
    struct error why = {0};
    char text[512], note[CONTROL_NOTE_MAX];
    bool live = false;

    *ret_message = NULL;
    if (action == NULL || !is_action(action))
        return FAIL(err, ST_USAGE,
                    "the action is '%.40s'; pause, continue, stop, add, priority, retry and confirm are known",
                    action != NULL ? action : "");
    TRY(check_fields(action, request, err));
    JSON_LOCAL cJSON *wire = cJSON_Duplicate(request, true);
    json_add_str(wire, "command", action);
    json_add_str(wire, "study", study);
    TRY(control_command_from_json(wire, &command, err));
    enum status rc = control_carry_out(store_path, &command, text, sizeof text, &live, &why);
    if (rc != ST_OK)
        return FAIL(err, rc == ST_USAGE ? ST_EXISTS : rc, "%s", why.text);
    STRBUF(message, sizeof text + CONTROL_NOTE_MAX);
    strbuf_add(&message, text);
    if (!live && control_note(&command, store_path, note)[0] != '\0')
        strbuf_addf(&message, "; %s", note);
    *ret_message = strbuf_take(&message);
    return ST_OK;
}

static enum status run_serve(struct serve_cmd *c, struct error *err)
{
    struct serve_settings set = {.store_path = c->store_path,
                                 .bind = c->bind,
                                 .port = (int)c->port,
                                 .control = c->control ? steer : NULL,
                                 .ask = c->control ? ask_forward : NULL,
                                 .program = program_text,
                                 .version = program_version,
                                 .commit = program_commit};
    struct serve *serve = NULL;

    TRY(check_store(c->store_path, err));
    TRY(read_token(c, err));
    set.token = c->token;
    set.no_token = c->no_token;
    TRY(split_hosts(c, &set, err));
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
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &c.store_path, "FILE",
         "the store: a file, or postgresql://HOST/DATABASE (trawl.db); it may come later"},
        {"port", 'p', CLI_INT, &c.port, "N", "port to listen on; 0: any free port (8080)"},
        {"bind", 0, CLI_TEXT, &c.bind, "ADDRESS", "listen there instead of 127.0.0.1; then a token is needed"},
        {"token-file", 0, CLI_TEXT, &c.token_file, "FILE",
         "its first word is the token; created if missing, so that browsers stay logged in (a new token each time)"},
        {"no-token", 0, CLI_FLAG, &c.no_token, NULL,
         "no token, even if other users of this machine may not read the store"},
        {"host", 0, CLI_TEXT, &c.hosts, "NAMES",
         "further names of this server that requests may use, separated by commas"},
        {"control", 0, CLI_FLAG, &c.control, NULL,
         "let pages pause, stop and add trials, and programs ask for trials and report results"},
        {"open", 0, CLI_TEXT, &c.open, "yes|no", "open a browser (no)"},
    };
    const struct cli cli = {
        .name = "serve",
        .synopsis = "trawl serve [--store FILE] [--port N] [--bind ADDRESS] [--control]",
        .about =
            "Shows the studies of a store in a browser, live while a sweep runs, and answers programs under /api/v1/\n"
            "(docs/http-api.md). It only reads the store, and listens on this machine alone unless --bind is given.\n"
            "If other users of the machine may not read the store (by its mode or a folder above it), the "
            "printed\naddress holds a token, which a browser keeps once it has opened it.",
        .examples = "  trawl serve --store my.db\n"
                    "  trawl serve --store my.db --port 0 --open yes\n"
                    "  trawl serve --store my.db --bind 0.0.0.0 --token-file token.txt",
        CLI_OPTS(opts),
    };

    CLI_PARSE(cli, words);
    if (c.port < 0 || c.port > 65535)
        return FAIL(err, ST_USAGE, "serve: --port is %lld; 0 to 65535 are allowed", (long long)c.port);
    if (strcmp(c.open, "yes") != 0 && strcmp(c.open, "no") != 0)
        return FAIL(err, ST_USAGE, "serve: --open is '%s'; yes or no is needed", c.open);
    enum status rc = run_serve(&c, err);
    mem_free(c.token);
    mem_free(c.host_words);
    return rc;
}
