/* wandb_files.c - small files of a W&B run: a request returns an address, the bytes are put there without our login,
 * and the run then lists the file. A front is a table file and a page with its picture; a line of the history names
 * them. */
#include "web/track/wandb.h"

#include <openssl/evp.h>

#define HEADERS_MAX 16
#define FILE_TRIES 2 /* an expired address is requested again */

static const char create_files[] =
    "mutation CreateRunFiles($entity: String!, $project: String!, $run: String!, $files: [String!]!) { "
    "createRunFiles(input: {entityName: $entity, projectName: $project, runName: $run, files: $files}) { "
    "runID uploadHeaders files { name uploadUrl } } }";

static cJSON *file_variables(const struct track_run *run, const char *name)
{
    cJSON *variables = cJSON_CreateObject();

    json_add_str(variables, "entity", json_get_str(run->state, "entity"));
    json_add_str(variables, "project", json_get_str(run->state, "project"));
    json_add_str(variables, "run", wandb_run_id(run));
    json_add(variables, "files", cJSON_CreateStringArray(&name, 1));
    return variables;
}

/* PUT of the bytes to the address in answer, which is on another host and gets no login. */
static void put_bytes(struct wandb *w, const cJSON *answer, const char *mime, const char *bytes, size_t n,
                      struct track_reply *reply)
{
    const cJSON *made = json_get(answer, "createRunFiles"), *item;
    const cJSON *file = cJSON_GetArrayItem(json_get(made, "files"), 0);
    const char *to = json_get_str(file, "uploadUrl"), *headers[HEADERS_MAX + 1];
    char url[2048], *copy[HEADERS_MAX];
    size_t n_headers = 0;

    if (to == NULL) {
        *reply = (struct track_reply){.verdict = TRACK_RUN_REFUSED};
        snprintf(reply->text, sizeof reply->text, "the server gave no address for a file");
        return;
    }
    snprintf(url, sizeof url, "%s%s", to[0] == '/' ? w->settings.base_url : "", to);
    cJSON_ArrayForEach(item, json_get(made, "uploadHeaders"))
    {
        if (cJSON_IsString(item) && n_headers < HEADERS_MAX && strpbrk(item->valuestring, "\r\n") == NULL) {
            copy[n_headers] = mem_strdup(item->valuestring); /* the next request frees the answer */
            headers[n_headers] = copy[n_headers];
            n_headers++;
        }
    }
    headers[n_headers] = NULL; /* without headers too: no login */
    track_client_send(&w->c,
                      (struct http_request){.method = "PUT",
                                            .url = url,
                                            .headers = headers,
                                            .n_headers = n_headers,
                                            .body = bytes,
                                            .n_body = n,
                                            .content_type = mime,
                                            .timeout_s = w->settings.stream_timeout_s},
                      reply);
    for (size_t i = 0; i < n_headers; i++)
        mem_free(copy[i]);
}

void wandb_file_send(struct wandb *w, struct track_run *run, const char *name, const char *mime, const char *bytes,
                     size_t n, struct track_reply *reply)
{
    int64_t n_requests = 0;

    for (int i = 0; i < FILE_TRIES; i++) {
        const cJSON *answer = wandb_graphql(w, "CreateRunFiles", create_files, file_variables(run, name), reply);
        n_requests++;
        if (answer == NULL)
            break;
        put_bytes(w, answer, mime, bytes, n, reply);
        n_requests++;
        if (w->c.reply.code != 403) /* else it has expired meanwhile */
            break;
    }
    if (reply->verdict == TRACK_REFUSED) /* by the place for files, not for the login */
        reply->verdict = TRACK_RUN_REFUSED;
    if (reply->verdict == TRACK_DONE) {
        cJSON *body = cJSON_CreateObject();
        json_add(body, "uploaded", cJSON_CreateStringArray(&name, 1));
        wandb_stream(w, run, body, reply);
        n_requests++;
    }
    reply->n_requests = n_requests;
}

/* {"columns": [...], "data": [[...]]} of a "front" row; mem_free. NULL: the row has none. */
static char *table_text(const cJSON *front)
{
    JSON_LOCAL cJSON *table = cJSON_CreateObject();
    char *text = NULL;

    if (cJSON_AddItemReferenceToObject(table, "columns", json_get(front, "columns")) &&
        cJSON_AddItemReferenceToObject(table, "data", json_get(front, "rows")))
        text = json_print(table, false);
    return text;
}

/* W&B's description of a file that a line names. */
static cJSON *media(cJSON *values, const char *name, const char *type, const char *path, const char *bytes, size_t n)
{
    cJSON *file = cJSON_AddObjectToObject(values, name);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int n_digest = 0;
    char hex[2 * EVP_MAX_MD_SIZE + 1] = "";

    if (EVP_Digest(bytes, n, digest, &n_digest, EVP_sha256(), NULL) != 1)
        n_digest = 0;
    for (unsigned int i = 0; i < n_digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    json_add_str(file, "_type", type);
    json_add_str(file, "path", path);
    json_add_str(file, "sha256", hex);
    json_add_i64(file, "size", (int64_t)n);
    return file;
}

/* The numbers of a front as a line of the study's history; text: of the table file at path, NULL: none. */
static cJSON *front_values(const cJSON *front, const char *path, const char *text)
{
    cJSON *values = cJSON_CreateObject();

    for (size_t i = 0; track_front_names[i].sent != NULL; i++) {
        double value;
        if (json_get_f64(front, track_front_names[i].key, &value))
            json_add_f64_any(values, track_front_names[i].sent, value);
    }
    if (text != NULL) {
        cJSON *table = media(values, "study/front", "table-file", path, text, strlen(text));
        json_add_i64(table, "ncols", cJSON_GetArraySize(json_get(front, "columns")));
        json_add_i64(table, "nrows", cJSON_GetArraySize(json_get(front, "rows")));
    }
    return values;
}

void wandb_front_send(struct wandb *w, struct track_run *run, const struct track_row *row, struct track_reply *reply)
{
    char path[96];
    int64_t n_requests;
    MEM_LOCAL char *table = w->c.track->files ? table_text(row->json) : NULL;
    bool has_table = false;

    int64_t trials = json_i64_or(row->json, "trials", 0);
    snprintf(path, sizeof path, "media/table/study/front_%lld.table.json", (long long)trials);
    *reply = (struct track_reply){.verdict = TRACK_DONE};
    if (table != NULL) {
        wandb_file_send(w, run, path, "application/json", table, strlen(table), reply);
        has_table = reply->verdict == TRACK_DONE;
    }
    n_requests = reply->n_requests;
    if (reply->verdict != TRACK_RETRY) { /* a refused table does not hold up the numbers */
        wandb_line_send(w, run, row, front_values(row->json, path, has_table ? table : NULL), trials, reply);
        reply->n_requests = n_requests + 1;
    }
}

void wandb_picture_send(struct wandb *w, struct track_run *run, const struct track_row *row, const char *svg,
                        struct track_reply *reply)
{
    int64_t step = wandb_state_i64(run, "step", 0), n_requests;
    char path[96];
    STRBUF(page, 8u << 20);

    strbuf_add(&page, "<!doctype html><meta charset=\"utf-8\"><body style=\"margin:0\">");
    strbuf_add(&page, svg);
    snprintf(path, sizeof path, "media/html/study/picture_%lld.html", (long long)row->id);
    wandb_file_send(w, run, path, "text/html", page.text, page.len, reply);
    n_requests = reply->n_requests;
    if (reply->verdict == TRACK_DONE) {
        cJSON *values = cJSON_CreateObject();
        (void)media(values, "study/picture", "html-file", path, page.text, page.len);
        wandb_line_send(w, run, row, values, step, reply);
        reply->n_requests = n_requests + 1;
    }
}
