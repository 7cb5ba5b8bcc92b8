/* control_send.c - a command on a study goes to the running controller of the store, or is applied to the store where
 * none runs.
 * Invariant: the answer names which of the two it was. */
#include "sweep/control/command/control_send.h"

#include "base/text/json.h"
#include "store/store.h"
#include "sweep/cli.h"
#include "sweep/control/socket/control_client.h"
#include "sweep/control/command/control_apply.h"
#include "sweep/control/command/control_command.h"

#define HANDOVER_TRIES 50 /* a controller that has just begun or is about to end: its lock and its socket differ */
#define HANDOVER_WAIT_US 100000

/* No controller: the store itself. */
static enum status write_store(const char *path, const struct control_command *c, char *ret_text, size_t size,
                               struct error *err)
{
    AT_END(store_close_at) struct store *store = NULL;
    AT_END(study_free) struct study study = {0};
    int64_t held;

    TRY(store_open_controller(&store, path, err));
    TRY(store_study_hold(store, c->study, &held, err));
    TRY(store_study_find(store, c->study, &study, err));
    return control_command_apply(store, c, &study, ret_text, size, err);
}

static enum status ask_controller(const char *path, const struct control_command *c, char *ret_text, size_t size,
                                  bool *ret_reached, struct error *err)
{
    JSON_LOCAL cJSON *answer = NULL;

    TRY(control_call(path, control_command_to_json(c), &answer, ret_reached, err));
    const char *text = json_get_str(answer, "text");
    snprintf(ret_text, size, "%s", text != NULL ? text : "done");
    return ST_OK;
}

enum status control_carry_out(const char *path, const struct control_command *c, char *ret_text, size_t size,
                              bool *ret_by_controller, struct error *err)
{
    int64_t pid = 0;
    char who[128];

    for (int i = 0; i < HANDOVER_TRIES; i++) {
        struct error why = {0};
        bool reached = false;
        *ret_by_controller = store_is_held(path, c->study, &pid);
        enum status rc = *ret_by_controller ? ask_controller(path, c, ret_text, size, &reached, &why)
                                            : write_store(path, c, ret_text, size, &why);
        /* else it listens not yet or no more, or took the lock just now */
        if (*ret_by_controller ? rc == ST_OK || reached : rc != ST_BUSY)
            return rc == ST_OK ? ST_OK : FAIL(err, rc, "%s", why.text);
        usleep(HANDOVER_WAIT_US);
    }
    if (store_is_address(path)) {
        store_holder(path, c->study, who, sizeof who);
        return FAIL(
            err, ST_BUSY,
            "%s is held by %s, which takes no commands (it begins or ends just now, or hangs); try again, or end it",
            path, who);
    }
    return FAIL(err, ST_BUSY,
                "%s is held by process %lld, which listens to no commands (a sweep of another version, or one that "
                "hangs); stop it with Ctrl-C or `kill %lld`, then try again",
                path, (long long)pid, (long long)pid);
}

/* Is the answer whole without a word on what runs the study? */
static bool runs_nothing(enum control_kind kind)
{
    return kind == CONTROL_STOP || kind == CONTROL_PAUSE || kind > CONTROL_TRY;
}

const char *control_note(const struct control_command *c, const char *store_path, char buf[CONTROL_NOTE_MAX])
{
    if (!runs_nothing(c->kind))
        snprintf(buf, CONTROL_NOTE_MAX,
                 "written to %s; no controller runs it now: `trawl sweep --resume %s --store %s` or `trawl daemon "
                 "--store %s` does",
                 store_path, c->study, SHELL_WORD(store_path), SHELL_WORD(store_path));
    else if (c->kind <= CONTROL_TRY)
        snprintf(buf, CONTROL_NOTE_MAX, "written to %s; no controller was running", store_path);
    else
        buf[0] = '\0';
    return buf;
}

/* The answer was written where the store has no name yet; a command in it that names the study gets the store. */
static void name_store(const char *store_path, const char *study, char *text, size_t size)
{
    const char *from = text, *begin, *end;
    char word[168];
    STRBUF(out, size);

    STRBUF(command, size);
    snprintf(word, sizeof word, " %s ", study);
    while ((begin = strstr(from, "`trawl ")) != NULL && (end = strchr(begin + 1, '`')) != NULL) {
        strbuf_add_n(&out, from, (size_t)(end - from));
        strbuf_clear(&command);
        strbuf_addf(&command, "%.*s ", (int)(end - begin), begin);
        if (strstr(command.text, word) != NULL && strstr(command.text, "--store") == NULL)
            strbuf_addf(&out, " --store %s", SHELL_WORD(store_path));
        strbuf_add(&out, "`");
        from = end + 1;
    }
    strbuf_add(&out, from);
    snprintf(text, size, "%s", out.text);
}

static void print_answer(const struct control_command *c, const char *store_path, bool as_json, const char *text,
                         bool by_controller)
{
    char note[CONTROL_NOTE_MAX];

    if (!as_json) {
        printf("%s\n", text);
        if (!by_controller && control_note(c, store_path, note)[0] != '\0')
            printf("%s\n", note);
        return;
    }
    cJSON *json = cJSON_CreateObject();
    json_add_str(json, "command", control_kind_name(c->kind));
    json_add_str(json, "study", c->study);
    json_add_str(json, "text", text);
    json_add_str(json, "done_by", by_controller ? "controller" : "store");
    cli_print_json(json);
}

enum status control_send(const char *store_path, const struct control_command *command, bool as_json, struct error *err)
{
    struct control_command checked;
    char text[1024] = "";
    bool by_controller = false;
    JSON_LOCAL cJSON *json = control_command_to_json(command); /* the same checks on both sides */
    enum status rc = control_command_from_json(json, &checked, err);

    TRY(rc);
    if (!store_may_exist(store_path))
        return FAIL(err, ST_NOTFOUND, "%s: no such store; check --store", store_path);
    rc = control_carry_out(store_path, command, text, sizeof text, &by_controller, err);
    if (strcmp(store_path, "trawl.db") != 0)
        name_store(store_path, command->study, rc == ST_OK ? text : err->text,
                   rc == ST_OK ? sizeof text : sizeof err->text);
    TRY(rc);
    print_answer(command, store_path, as_json, text, by_controller);
    return ST_OK;
}
