/* wandb_run.c - a run of W&B: made, continued by its id, made again when its id was deleted or the server forgot it.
 *
 * State of a run: {"id", "entity", "project" (the server's names), "started_ms", "lines", "events" (lines sent),
 * "step" (of the study's last line: each line has its own step), "summary" (whole, as W&B needs it), "shown", "group"
 * (its names for people), "after_step" (last step of a run that existed before), "generation" (a deleted run id is
 * never used again), "remade" (the server forgot the run, and nothing was sent since)}. */
#include "web/track/wandb.h"

#define TAG_MAX 64

static const char query_resume[] =
    "query RunResumeStatus($project: String, $entity: String, $name: String!) { model(name: $project, entityName: "
    "$entity) { bucket(name: $name, missingOk: true) { id name historyLineCount eventsLineCount historyTail } } }";

static const char upsert_run[] =
    "mutation UpsertBucket($id: String, $name: String, $project: String, $entity: String, $groupName: String, "
    "$description: String, $displayName: String, $notes: String, $config: JSONString, $summaryMetrics: JSONString, "
    "$jobType: String, $tags: [String!], $state: String, $sweep: String, $host: String, $program: String) { "
    "upsertBucket(input: {id: $id, name: $name, modelName: $project, entityName: $entity, groupName: $groupName, "
    "description: $description, displayName: $displayName, notes: $notes, config: $config, "
    "summaryMetrics: $summaryMetrics, jobType: $jobType, tags: $tags, state: $state, sweep: $sweep, host: $host, "
    "jobProgram: $program}) { "
    "bucket { id name displayName sweepName historyLineCount project { name entity { name } } } inserted } }";

/* -- state -- */

const char *wandb_run_id(const struct track_run *run)
{
    const char *id = json_get_str(run->state, "id");
    return id != NULL ? id : run->key;
}

int64_t wandb_state_i64(const struct track_run *run, const char *key, int64_t otherwise)
{
    (void)json_get_i64(run->state, key, &otherwise);
    return otherwise;
}

void wandb_state_set_i64(struct track_run *run, const char *key, int64_t value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, key);
    json_add_i64(run->state, key, value);
}

/* -- making it -- */

/* Adds a tag once. A tag that W&B would refuse is left out: half of it would be another tag. */
static void add_tag(cJSON *tags, struct wandb *w, const char *text, size_t n)
{
    char tag[TAG_MAX + 1];
    const cJSON *there;

    if (n > TAG_MAX && !w->logged_tag) {
        w->logged_tag = true;
        log_warn("wandb: the tag '%.*s...' has %zu characters, %d are allowed; it is left out there, continuing", 40,
                 text, n, TAG_MAX);
    }
    if (n == 0 || n > TAG_MAX)
        return;
    snprintf(tag, sizeof tag, "%.*s", (int)n, text);
    cJSON_ArrayForEach(there, tags) if (strcmp(there->valuestring, tag) == 0) return;
    cJSON_AddItemToArray(tags, cJSON_CreateString(tag));
}

static void add_tags(cJSON *variables, struct wandb *w, const struct track_row *row)
{
    cJSON *tags = cJSON_AddArrayToObject(variables, "tags");
    const cJSON *item;

    cJSON_ArrayForEach(item, json_get(row->json, "tags")) if (cJSON_IsString(item))
        add_tag(tags, w, item->valuestring, strlen(item->valuestring));
    for (const char *at = w->settings.env_tags; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, ","), used = n, skip = strspn(at, " \t");
        skip = skip < n ? skip : n;
        while (used > skip && (at[used - 1] == ' ' || at[used - 1] == '\t'))
            used--;
        add_tag(tags, w, at + skip, used - skip);
        at += at[n] == ',' ? n + 1 : n;
    }
}

static cJSON *run_variables(struct wandb *w, const struct track_run *run, const struct track_row *row)
{
    const char *name = json_get_str(row->json, "name"), *group = json_get_str(row->json, "group");
    cJSON *v = cJSON_CreateObject();
    char shown[300];

    if (run->trial_id == 0)
        snprintf(shown, sizeof shown, "%s (study)", w->c.study);
    else if (w->settings.run_name[0] != '\0' && w->c.single)
        snprintf(shown, sizeof shown, "%s", w->settings.run_name);
    else
        snprintf(shown, sizeof shown, "%s", name != NULL ? name : run->key);
    if (w->c.single)
        group = w->settings.run_group[0] != '\0' ? w->settings.run_group : NULL;
    else if (group == NULL)
        group = w->c.study;
    STRBUF(config, 15u << 20);
    wandb_config_text(&config, w, row);
    json_add_str(v, "name", wandb_run_id(run));
    json_add_str(v, "project", w->settings.project);
    if (group != NULL)
        json_add_str(v, "groupName", group);
    json_add_str(v, "displayName", shown);
    if (config.status == ST_OK) /* never longer in practice */
        json_add_str(v, "config", config.text);
    json_add_str(v, "jobType", run->trial_id == 0 ? "study" : w->settings.job_type);
    json_add_str(v, "state", "running");
    json_add_str(v, "program", "trawl");
    add_tags(v, w, row);
    if (w->entity[0] != '\0')
        json_add_str(v, "entity", w->entity);
    if (w->settings.notes[0] != '\0')
        json_add_str(v, "notes", w->settings.notes);
    return v;
}

/* An id that was deleted on the page cannot be used again: its second refusal makes a new id. */
static void meet_conflict(struct wandb *w, struct track_run *run, struct track_reply *reply)
{
    int64_t generation = wandb_state_i64(run, "generation", 0);
    char id[sizeof run->key + 24];

    reply->verdict = TRACK_RETRY;
    if (!w->conflict) {
        w->conflict = true; /* perhaps a race inside the server */
        return;
    }
    w->conflict = false;
    snprintf(id, sizeof id, "%s-g%lld", run->key, (long long)generation + 1);
    log_warn("wandb: run %s was deleted on the page and its id cannot be used again; its data go to %s from now on, "
             "continuing",
             wandb_run_id(run), id);
    track_state_set(run, "id", id);
    wandb_state_set_i64(run, "generation", generation + 1);
    wandb_state_set_i64(run, "lines", 0);
    wandb_state_set_i64(run, "events", 0);
}

/* Notes id, project and entity from the answer of an upsert. */
static bool note_place(struct wandb *w, struct track_run *run, const cJSON *bucket)
{
    const cJSON *project = json_get(bucket, "project");
    const char *id = json_get_str(bucket, "name"), *name = json_get_str(project, "name"),
               *entity = json_get_str(json_get(project, "entity"), "name");

    if (bucket == NULL)
        return false;
    if (id != NULL)
        track_state_set(run, "id", id);
    track_state_set(run, "project", name != NULL ? name : w->settings.project);
    track_state_set(run, "entity", entity != NULL ? entity : w->entity);
    return true;
}

/* Sends the upsert; NULL: reply has the failure. */
static const cJSON *upsert(struct wandb *w, struct track_run *run, cJSON *variables, struct track_reply *reply)
{
    const cJSON *data = wandb_graphql(w, "UpsertBucket", upsert_run, variables, reply), *answer;

    if (data == NULL) {
        if (w->c.reply.code == 409)
            meet_conflict(w, run, reply);
        return NULL;
    }
    w->conflict = false;
    answer = json_get(data, "upsertBucket");
    if (!note_place(w, run, json_get(answer, "bucket"))) {
        track_refuse(reply, TRACK_RETRY, "UpsertBucket: the answer names no run");
        return NULL;
    }
    return answer;
}

/* The step of W&B's last line, from a JSON list of JSON texts. */
static bool tail_step(const char *tail, int64_t *ret_step)
{
    cJSON *lines = tail != NULL ? cJSON_Parse(tail) : NULL,
          *last = cJSON_GetArrayItem(lines, cJSON_GetArraySize(lines) - 1),
          *line = cJSON_IsString(last) ? cJSON_Parse(last->valuestring) : NULL;
    bool found = json_get_i64(line, "_step", ret_step);

    cJSON_Delete(line);
    cJSON_Delete(lines);
    return found;
}

/* A run whose id was given by the user: does it exist, and what was its last step? False: reply has the failure. */
static bool continue_run(struct wandb *w, struct track_run *run, struct track_reply *reply)
{
    const char *id = w->settings.run_id;
    cJSON *v = cJSON_CreateObject();
    int64_t step = 0;

    json_add_str(v, "project", w->settings.project);
    json_add_str(v, "entity", w->entity);
    json_add_str(v, "name", id);
    track_state_set(run, "id", id);
    const cJSON *data = wandb_graphql(w, "RunResumeStatus", query_resume, v, reply);
    if (data == NULL)
        return false;
    const cJSON *bucket = json_get(json_get(data, "model"), "bucket");
    if (!cJSON_IsObject(bucket) && w->settings.resume == WANDB_RESUME_MUST) {
        track_refuse(reply, TRACK_RUN_REFUSED, "there is no run %s in %s/%s (WANDB_RUN_ID), and WANDB_RESUME is must",
                     id, w->entity, w->settings.project);
        return false;
    }
    if (cJSON_IsObject(bucket) && w->settings.resume == WANDB_RESUME_NEVER) {
        track_refuse(reply, TRACK_RUN_REFUSED, "the run %s exists already (WANDB_RUN_ID), and WANDB_RESUME is never",
                     id);
        return false;
    }
    if (!cJSON_IsObject(bucket)) {
        log_info("wandb: there is no run %s in %s/%s yet, creating it", id, w->entity, w->settings.project);
        return true;
    }
    int64_t lines = json_i64_or(bucket, "historyLineCount", 0);
    int64_t events = json_i64_or(bucket, "eventsLineCount", 0);
    wandb_state_set_i64(run, "lines", lines);
    wandb_state_set_i64(run, "events", events);
    if (tail_step(json_get_str(bucket, "historyTail"), &step))
        wandb_state_set_i64(run, "after_step", step);
    log_info("wandb: run %s continues after its %lld line(s)", id, (long long)lines);
    return true;
}

void wandb_run_start(struct wandb *w, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    bool is_new = json_get(run->state, "lines") == NULL;
    int64_t lines = 0;

    if (is_new && w->c.single && w->settings.run_id[0] != '\0' && !continue_run(w, run, reply))
        return;
    cJSON *v = run_variables(w, run, row);
    track_state_set(run, "shown", json_get_str(v, "displayName")); /* for a server that forgets the run */
    if (json_get_str(v, "groupName") != NULL)
        track_state_set(run, "group", json_get_str(v, "groupName"));
    const cJSON *answer = upsert(w, run, v, reply);
    if (answer == NULL)
        return;
    if (json_get(run->state, "lines") == NULL) {
        /* A run that the server knows and this store does not: continue after its lines. */
        if (!cJSON_IsTrue(json_get(answer, "inserted")))
            (void)json_get_i64(json_get(answer, "bucket"), "historyLineCount", &lines);
        wandb_state_set_i64(run, "lines", lines);
        wandb_state_set_i64(run, "events", 0);
    }
    if (json_get(run->state, "started_ms") == NULL)
        wandb_state_set_i64(run, "started_ms", row->ms);
    if (!cJSON_IsObject(json_get(run->state, "summary")))
        cJSON_AddObjectToObject(run->state, "summary");
}

void wandb_run_remake(struct wandb *w, struct track_run *run, struct track_reply *reply)
{
    const char *shown = json_get_str(run->state, "shown"), *group = json_get_str(run->state, "group");

    if (json_get(run->state, "remade") != NULL) { /* it did not help */
        reply->verdict = TRACK_RUN_REFUSED;
        return;
    }
    log_warn("wandb: the server no longer knows run %s (another database?); it is made again and gets later rows, "
             "continuing",
             wandb_run_id(run));
    cJSON *v = cJSON_CreateObject();
    json_add_str(v, "name", wandb_run_id(run));
    json_add_str(v, "project", w->settings.project);
    json_add_str(v, "entity", json_get_str(run->state, "entity"));
    json_add_str(v, "displayName", shown);
    json_add_str(v, "groupName", group);
    json_add_str(v, "jobType", run->trial_id == 0 ? "study" : w->settings.job_type);
    json_add_str(v, "state", "running");
    *reply = (struct track_reply){.verdict = TRACK_DONE};
    if (upsert(w, run, v, reply) == NULL)
        return;
    json_add_bool(run->state, "remade", true);
    wandb_state_set_i64(run, "lines", 0);
    wandb_state_set_i64(run, "events", 0);
    track_refuse(reply, TRACK_RETRY, "the run is made again");
}
