/* control_remark.c - what people write of a study and its trials, a study's name, and the trash.
 * Invariant: no trial changes; checkpoints, the folders of programs and the studies that learn from it follow the name
 * of a study. */
#include "sweep/control/command/control_remark.h"

#include "base/text/json.h"
#include "store/store.h"
#include "sweep/control/command/control_command.h"
#include "sweep/controller/trial/checkpoints.h"
#include "sweep/program/trial_folders.h"

#define TAGS_MAX 2000

static enum status apply_drop(struct store *store, const struct control_command *c, const struct study *study,
                              char *text, size_t size, struct error *err)
{
    struct trial t = {0};
    enum status rc;

    TRY(store_trial_find(store, study->id, c->trial, &t, err));
    if (t.state == TRIAL_QUEUED || t.state == TRIAL_RUNNING)
        rc = FAIL(err, ST_USAGE, "drop: trial %lld of %s is %s; only one that has ended can be dropped",
                  (long long)t.number, study->name, trial_state_name(t.state));
    else if (c->undo && t.dropped == NULL)
        rc = FAIL(err, ST_USAGE, "drop: trial %lld of %s is not dropped", (long long)t.number, study->name);
    else
        rc = store_trial_mark(store, t.id, c->undo ? NULL : c->text, t.note, t.tags, err);
    trial_free(&t);
    TRY(rc);
    snprintf(text, size,
             c->undo ? "trial %lld of %s counts again" : "trial %lld of %s is dropped: models and front ignore it",
             (long long)c->trial, study->name);
    return ST_OK;
}

/* tags without tag; owned, NULL: none are left. */
static char *without_tag(const char *tags, const char *tag)
{
    STRBUF(out, TAGS_MAX);

    for (const char *at = tags != NULL ? tags : ""; *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (n != strlen(tag) || strncmp(at, tag, n) != 0)
            strbuf_addf(&out, "%s%.*s", out.len > 0 ? "," : "", (int)n, at);
        at += n + (at[n] == ',');
    }
    char *left = out.len > 0 ? mem_strdup(out.text) : NULL;
    return left;
}

/* The tags after the command; owned, NULL: none. */
static enum status change_tags(const struct control_command *c, const char *tags, char **ret_tags, struct error *err)
{
    char *rest = without_tag(tags, c->text);
    bool has_it = strlen(rest != NULL ? rest : "") != strlen(tags != NULL ? tags : "");

    *ret_tags = rest;
    if (c->undo)
        return has_it ? ST_OK : FAIL(err, ST_USAGE, "tag: there is no tag '%s'", c->text);
    STRBUF(out, TAGS_MAX);
    strbuf_addf(&out, "%s%s%s", rest != NULL ? rest : "", rest != NULL ? "," : "", c->text);
    mem_free(rest);
    *ret_tags = mem_strdup(out.text);
    return strbuf_status(&out, "the tags", err);
}

/* A note or a tag, of a trial or of the study. */
static enum status apply_words(struct store *store, const struct control_command *c, const struct study *study,
                               char *text, size_t size, struct error *err)
{
    bool is_note = c->kind == CONTROL_NOTE, of_trial = c->trial >= 0;
    char number[32] = "", *tags = NULL;
    struct trial t = {0};
    const char *note;
    enum status rc = of_trial ? store_trial_find(store, study->id, c->trial, &t, err) : ST_OK;

    TRY(rc);
    note = is_note ? (c->text[0] != '\0' ? c->text : NULL) : of_trial ? t.note : study->note;
    if (is_note)
        tags = of_trial ? t.tags : study->tags;
    else
        rc = change_tags(c, of_trial ? t.tags : study->tags, &tags, err);
    THEN(rc, of_trial ? store_trial_mark(store, t.id, t.dropped, note, tags, err)
                      : store_study_remark(store, study->id, note, tags, err));
    if (!is_note)
        mem_free(tags);
    trial_free(&t);
    TRY(rc);
    if (of_trial)
        snprintf(number, sizeof number, "trial %lld of ", (long long)c->trial);
    snprintf(text, size, "%s%s: %s %s", number, study->name, is_note ? "note" : "tag",
             is_note && note == NULL ? "removed"
             : c->undo               ? "removed"
                                     : "written");
    return ST_OK;
}

/* Clients outside may have trials of a study that no controller runs. */
static enum status check_no_client(struct store *store, const struct control_command *c, const struct study *study,
                                   struct error *err)
{
    struct lease *leases = NULL;
    size_t n = 0;

    TRY(store_lease_list_open(store, study->id, &leases, &n, err));
    lease_list_free(leases, n);
    return n == 0 ? ST_OK
                  : FAIL(err, ST_USAGE, "%s: agents or clients have %zu trial%s of %s; wait until they are done",
                         control_kind_name(c->kind), n, PLURAL(n), study->name);
}

/* Files beside the store; to NULL: they are removed. */
static void rename_files(struct store *store, const char *from, const char *to)
{
    checkpoints_rename(store_path(store), from, to);
    trial_folders_rename(store_path(store), from, to);
}

/* A study that learns from another one (`from` of its space) names it by the name that it has now. */
static enum status rename_teacher(struct store *store, const struct study *study, const char *from, const char *to,
                                  struct error *err)
{
    cJSON *space;
    enum status rc = ST_OK;

    TRY(json_parse(study->space, strlen(study->space), &space, err));
    const char *name = json_get_str(space, "from");
    if (name != NULL && strcmp(name, from) == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(space, "from");
        json_add_str(space, "from", to);
        char *text = json_print(space, false);
        rc = store_study_set_space(store, study->id, text, err);
        mem_free(text);
    }
    cJSON_Delete(space);
    return rc;
}

/* What names a study that was `from`: files beside the store, and studies that learn from it. */
static enum status follow(struct store *store, const char *from, const char *to, struct error *err)
{
    enum status rc = ST_OK;

    rename_files(store, from, to);
    for (int in_trash = 0; in_trash < 2 && rc == ST_OK; in_trash++) {
        struct study *studies = NULL;
        size_t n = 0;
        rc = (in_trash ? store_trash_list : store_study_list)(store, &studies, &n, err);
        for (size_t i = 0; i < n && rc == ST_OK; i++)
            rc = rename_teacher(store, &studies[i], from, to, err);
        study_list_free(studies, n);
    }
    return rc;
}

static enum status apply_rename(struct store *store, const struct control_command *c, const struct study *study,
                                char *text, size_t size, struct error *err)
{
    TRY(check_no_client(store, c, study, err));
    TRY(store_study_rename(store, study->id, c->text, err));
    TRY(follow(store, study->name, c->text, err));
    snprintf(text, size, "study %s is now %.100s", study->name, c->text);
    return ST_OK;
}

static enum status apply_rm(struct store *store, const struct control_command *c, const struct study *study, char *text,
                            size_t size, struct error *err)
{
    char name[160];
    int64_t n_unsent = 0;

    if (c->undo) {
        if (study->trashed_ms == 0)
            return FAIL(err, ST_USAGE, "rm: the study %s is not in the trash", study->name);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(study->name, "~"), study->name);
        TRY(store_study_rename(store, study->id, name, err));
        TRY(follow(store, study->name, name, err));
        snprintf(text, size, "study %s is back", name);
        return ST_OK;
    }
    TRY(check_no_client(store, c, study, err));
    TRY(store_study_trash(store, study, err));
    snprintf(name, sizeof name, "%.100s~%lld", study->name, (long long)study->id);
    TRY(follow(store, study->name, name, err));
    snprintf(text, size, "study %s is in the trash; `trawl rm %s --undo` takes it back, `trawl gc` empties the trash",
             study->name, study->name);
    TRY(store_outbox_count(store, study->id, NULL, &n_unsent, err));
    if (n_unsent > 0)
        snprintf(text + strlen(text), size - strlen(text),
                 ". Its trackers have not received %lld row%s: --undo and `trawl sync %s` send them",
                 (long long)n_unsent, PLURAL(n_unsent), study->name);
    return ST_OK;
}

enum status control_remark_apply(struct store *store, const struct control_command *c, struct study *study,
                                 char *ret_text, size_t size, struct error *err)
{
    switch (c->kind) {
    case CONTROL_DROP:
        return apply_drop(store, c, study, ret_text, size, err);
    case CONTROL_RENAME:
        return apply_rename(store, c, study, ret_text, size, err);
    case CONTROL_NOTE:
    case CONTROL_TAG:
        return apply_words(store, c, study, ret_text, size, err);
    case CONTROL_RM:
        return apply_rm(store, c, study, ret_text, size, err);
    case CONTROL_PURGE:
        TRY(store_study_delete(store, study, err));
        rename_files(store, study->name, NULL);
        snprintf(ret_text, size, "study %s is removed", study->name);
        return ST_OK;
    default:
        return FAIL(err, ST_INTERNAL, "no such command");
    }
}
