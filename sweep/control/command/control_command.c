/* control_command.c - the commands on a study as they are on the wire. */
#include "sweep/control/command/control_command.h"

#include "gp/gp.h"
#include "study/setup/setup.h"
#include "sweep/control/command/submit.h"

#define TAG_MAX 60
#define CONFIRM_MAX 100

static const char *const kind_names[CONTROL_KINDS] = {"stop",   "pause",   "continue", "add", "priority",
                                                      "retry",  "confirm", "extend",   "try", "drop",
                                                      "rename", "note",    "tag",      "rm",  "purge"};

const char *control_kind_name(enum control_kind kind)
{
    return (unsigned)kind < CONTROL_KINDS ? kind_names[kind] : "unknown";
}

cJSON *control_command_to_json(const struct control_command *c)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "command", control_kind_name(c->kind));
    json_add_str(json, "study", c->study);
    json_add_bool(json, "now", c->now);
    json_add_i64(json, "trials", c->trials);
    json_add_f64(json, "budget_s", c->budget_s);
    json_add_i64(json, "priority", c->priority);
    json_add_i64(json, "trial", c->trial);
    json_add_bool(json, "undo", c->undo);
    json_add_str(json, "text", c->text);
    return json;
}

/* Tags are kept as "a,b". */
static enum status check_tag(const char *tag, struct error *err)
{
    if (tag[0] != '\0' && strlen(tag) <= TAG_MAX && strpbrk(tag, ", \t\n\r") == NULL)
        return ST_OK;
    return FAIL(err, ST_USAGE, "tag: '%.60s': one word without commas, up to %d bytes, makes a tag", tag, TAG_MAX);
}

/* What the commands cannot do without. */
static enum status check_needs(const struct control_command *c, struct error *err)
{
    const char *name = control_kind_name(c->kind);

    if ((c->kind == CONTROL_RETRY || c->kind == CONTROL_CONFIRM || c->kind == CONTROL_EXTEND ||
         c->kind == CONTROL_DROP) &&
        c->trial < 0)
        return FAIL(err, ST_USAGE, "%s: which trial? `trawl %s %s N`; `trawl show %s` lists them", name, name, c->study,
                    c->study);
    if (c->kind == CONTROL_EXTEND && c->text[0] == '\0')
        return FAIL(err, ST_USAGE, "extend: give --steps 2x, or a total like --steps 20M");
    if (c->kind == CONTROL_DROP && !c->undo && c->text[0] == '\0')
        return FAIL(err, ST_USAGE, "drop: why? --reason TEXT; pages and `trawl show` give it to those who ask later");
    if (c->kind == CONTROL_RENAME)
        return study_name_check("rename: new name", c->text, err);
    if (c->kind == CONTROL_TAG)
        return check_tag(c->text, err);
    return ST_OK;
}

enum status control_command_from_json(const cJSON *json, struct control_command *ret_command, struct error *err)
{
    struct control_command c = {.trial = -1};
    const char *word = json_get_str(json, "command"), *study = json_get_str(json, "study");
    const char *text = json_get_str(json, "text");
    size_t kind = word_index(kind_names, CONTROL_KINDS, word);

    if (kind == CONTROL_KINDS)
        return FAIL(err, ST_USAGE, "the controller knows no command '%.40s'; is it of another version?",
                    word != NULL ? word : "");
    if (study == NULL || study[0] == '\0' || strlen(study) >= sizeof c.study)
        return FAIL(err, ST_USAGE, "the command names no study");
    c.kind = (enum control_kind)kind;
    snprintf(c.study, sizeof c.study, "%s", study);
    if (c.kind == CONTROL_CONFIRM)
        c.trials = GP_PROMISE_SEEDS;
    TRY(json_take_i64(json, "trials", &c.trials, err));
    if (c.kind == CONTROL_CONFIRM && (c.trials < 1 || c.trials > CONFIRM_MAX))
        return FAIL(err, ST_USAGE, "confirm: %lld runs; 1 to %d are allowed", (long long)c.trials, CONFIRM_MAX);
    TRY(json_take_i64(json, "priority", &c.priority, err));
    TRY(json_take_i64(json, "trial", &c.trial, err));
    TRY(json_take_bool(json, "now", &c.now, err));
    TRY(json_take_bool(json, "undo", &c.undo, err));
    if (text != NULL && strlen(text) >= sizeof c.text)
        return FAIL(err, ST_USAGE, "%s: the text has %zu bytes; up to %d are allowed", control_kind_name(c.kind),
                    strlen(text), CONTROL_TEXT_MAX - 1);
    for (const unsigned char *at = (const unsigned char *)text; at != NULL && *at != '\0'; at++) /* for terminals */
        if ((*at < ' ' && *at != '\n' && *at != '\t') || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0)) /* C1 too */
            return FAIL(err, ST_USAGE, "%s: the text has a control character; write it in letters",
                        control_kind_name(c.kind));
    snprintf(c.text, sizeof c.text, "%s", text != NULL ? text : "");
    TRY(json_take_f64(json, "budget_s", &c.budget_s, err));
    if (c.trials < 0 || c.trials > SWEEP_TRIALS_MAX)
        return FAIL(err, ST_USAGE, "%s: %lld trials; up to %d are allowed", control_kind_name(c.kind),
                    (long long)c.trials, SWEEP_TRIALS_MAX);
    if (!(c.budget_s >= 0) || !isfinite(c.budget_s))
        return FAIL(err, ST_USAGE, "%s: a budget of %g s; 0 and above are allowed", control_kind_name(c.kind),
                    c.budget_s);
    if (c.kind == CONTROL_ADD && c.trials == 0 && c.budget_s == 0)
        return FAIL(err, ST_USAGE, "add: give --trials N or --budget TIME");
    if (c.kind == CONTROL_PRIORITY && json_get(json, "priority") == NULL)
        return FAIL(err, ST_USAGE, "priority: the number 'priority' is missing, 1 to %d are allowed",
                    STUDY_PRIORITY_MAX);
    if (c.kind == CONTROL_PRIORITY && (c.priority < 1 || c.priority > STUDY_PRIORITY_MAX))
        return FAIL(err, ST_USAGE, "priority: %lld is not allowed, 1 to %d are", (long long)c.priority,
                    STUDY_PRIORITY_MAX);
    TRY(check_needs(&c, err));
    *ret_command = c;
    return ST_OK;
}
