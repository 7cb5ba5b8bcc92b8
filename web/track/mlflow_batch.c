/* mlflow_batch.c - metrics, parameters and tags of one runs/log-batch, and refusals of it.
 *
 * Invariants: (1) a batch is within the limits of all servers of the last years; (2) the same entries make the same
 * body in all parts of the server's key (key, time stamp, step, value): a resend changes nothing; (3) one bad entry is
 * left out alone, not with its batch. */
#include "web/track/mlflow.h"

#define TEXT_MAX (MLFLOW_BODY_MAX)
#define ENTRY_BYTES 128 /* bytes of a metric besides its key: digits, names, punctuation */
#define BAD_MAX 64 /* entries refused one by one before the whole run counts as refused */
#define CUT_MARK " [cut]"

struct entry {
    enum mlflow_kind kind;
    size_t key_at, value_at; /* in text */
    double value;
    int64_t ms, step;
};

struct mlflow_batch {
    struct entry entries[MLFLOW_METRICS_MAX];
    size_t n, n_params, n_tags, n_keys;
    size_t keys_at[MLFLOW_KEYS_MAX]; /* different keys of metrics */
    size_t bytes; /* upper bound of the body's size */
    struct strbuf text, body;
    int64_t n_bad; /* entries left out in this send */
};

struct mlflow_batch *mlflow_batch_create(void)
{
    struct mlflow_batch *b = mem_alloc(sizeof *b);

    strbuf_init(&b->text, TEXT_MAX);
    strbuf_init(&b->body, 2 * MLFLOW_BODY_MAX);
    return b;
}

void mlflow_batch_destroy(struct mlflow_batch *b)
{
    if (b == NULL)
        return;
    strbuf_free(&b->text);
    strbuf_free(&b->body);
    mem_free(b);
}

void mlflow_batch_clear(struct mlflow_batch *b)
{
    b->n = b->n_params = b->n_tags = b->n_keys = b->bytes = 0;
    strbuf_clear(&b->text);
}

void mlflow_key(struct strbuf *sb, const char *key)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. ";
    bool at_start = true; /* at the start of a part between slashes */

    for (const char *c = key; *c != '\0'; c++) {
        bool bad_slash = *c == '/' && (at_start || c[1] == '\0');
        bool only_dots = at_start && *c == '.' && c[strspn(c, ".")] != '\0' ? c[strspn(c, ".")] == '/' : false;
        if (at_start && *c == '.' && c[strspn(c, ".")] == '\0')
            only_dots = true;
        at_start = *c == '/';
        if ((strchr(plain, *c) != NULL && !only_dots) || (*c == '/' && !bad_slash))
            strbuf_add_n(sb, c, 1);
        else
            strbuf_addf(sb, "_x%02x_", (unsigned)(unsigned char)*c);
    }
}

static bool key_known(const struct mlflow_batch *b, const char *key)
{
    for (size_t i = 0; i < b->n_keys; i++)
        if (strcmp(b->text.text + b->keys_at[i], key) == 0)
            return true;
    return false;
}

/* Adds the text and its NUL; returns its place. */
static size_t keep(struct mlflow_batch *b, const char *text)
{
    size_t at = b->text.len;

    strbuf_add(&b->text, text);
    strbuf_add_n(&b->text, "", 1);
    return at;
}

bool mlflow_batch_metric(struct mlflow_batch *b, const char *key, double value, int64_t ms, int64_t step)
{
    size_t bytes = ENTRY_BYTES + strlen(key) * 5;
    bool known = key_known(b, key);

    if (b->n == MLFLOW_METRICS_MAX || b->bytes + bytes > MLFLOW_BODY_MAX || (!known && b->n_keys == MLFLOW_KEYS_MAX))
        return false;
    size_t at = keep(b, key);
    if (!known)
        b->keys_at[b->n_keys++] = at;
    b->entries[b->n++] = (struct entry){.kind = MLFLOW_METRIC, .key_at = at, .value = value, .ms = ms, .step = step};
    b->bytes += bytes;
    return true;
}

bool mlflow_batch_text(struct mlflow_batch *b, enum mlflow_kind kind, const char *key, const char *value)
{
    size_t *n = kind == MLFLOW_PARAM ? &b->n_params : &b->n_tags;
    size_t max = kind == MLFLOW_PARAM ? MLFLOW_PARAM_VALUE_MAX : MLFLOW_TAG_VALUE_MAX, size = strlen(value);
    size_t bytes = ENTRY_BYTES + strlen(key) * 5 + (size < max ? size : max) * 6;

    if (b->n == MLFLOW_METRICS_MAX || *n == MLFLOW_PARAMS_MAX || b->bytes + bytes > MLFLOW_BODY_MAX)
        return false;
    struct entry *e = &b->entries[b->n++];
    *e = (struct entry){.kind = kind, .key_at = keep(b, key), .value_at = b->text.len};
    if (size <= max) {
        keep(b, value);
    } else {
        size_t cut = max - strlen(CUT_MARK);
        while (cut > 0 && ((unsigned char)value[cut] & 0xc0) == 0x80) /* not inside a character */
            cut--;
        strbuf_add_n(&b->text, value, cut);
        keep(b, CUT_MARK);
    }
    b->bytes += bytes;
    (*n)++;
    return true;
}

/* -- sending -- */

static void add_entry(struct strbuf *sb, const struct mlflow_batch *b, const struct entry *e)
{
    strbuf_add(sb, "{\"key\":\"");
    mlflow_key(sb, b->text.text + e->key_at);
    strbuf_add(sb, "\",\"value\":");
    if (e->kind == MLFLOW_METRIC) {
        track_json_number(sb, e->value);
        strbuf_addf(sb, ",\"timestamp\":%lld,\"step\":%lld}", (long long)e->ms, (long long)e->step);
    } else {
        json_write_str(sb, b->text.text + e->value_at);
        strbuf_add(sb, "}");
    }
}

static void make_body(struct mlflow_batch *b, const char *run_id, size_t from, size_t to)
{
    static const char *const names[] = {"metrics", "params", "tags"};

    strbuf_clear(&b->body);
    strbuf_addf(&b->body, "{\"run_id\":\"%s\"", run_id);
    for (int kind = MLFLOW_METRIC; kind <= MLFLOW_TAG; kind++) {
        const char *between = "";
        for (size_t i = from; i < to; i++) {
            if ((int)b->entries[i].kind != kind)
                continue;
            if (between[0] == '\0')
                strbuf_addf(&b->body, ",\"%s\":[", names[kind]);
            strbuf_add(&b->body, between);
            between = ",";
            add_entry(&b->body, b, &b->entries[i]);
        }
        if (between[0] != '\0')
            strbuf_add(&b->body, "]");
    }
    strbuf_add(&b->body, "}");
}

bool mlflow_gone(struct mlflow *m, struct track_run *run, struct track_reply *reply)
{
    const char *message = json_get_str(m->c.reply.json, "message");

    if (m->c.reply.code == 400 && message != NULL && strstr(message, "must be in the 'active' state") != NULL) {
        track_refuse(reply, TRACK_RUN_REFUSED, "run %s was deleted on the MLflow server; later rows stay in the store",
                     mlflow_run_id(run));
        reply->run_gone = true;
        return true;
    }
    if (m->c.reply.code == 404 && mlflow_is_error(m, "RESOURCE_DOES_NOT_EXIST")) {
        log_warn("mlflow: the server no longer knows run %s (another database?); it continues as a new run, "
                 "continuing",
                 mlflow_run_id(run));
        cJSON_DeleteItemFromObjectCaseSensitive(run->state, "run_id");
        m->experiment_id[0] = m->parent_id[0] = '\0';
        track_refuse(reply, TRACK_RETRY, "the run is made again");
        return true;
    }
    return false;
}

/* The arguments of one send, for track_send_halving. */
struct sending {
    struct mlflow *m;
    struct track_run *run;
};

static void send_range(void *ctx, size_t from, size_t to, struct track_reply *reply)
{
    const struct sending *s = ctx;
    struct mlflow_batch *b = s->m->batch;
    struct entry *e = &b->entries[from];

    make_body(b, mlflow_run_id(s->run), from, to);
    mlflow_call(s->m, "runs/log-batch", &b->body, reply);
    reply->n_requests = 1;
    if (reply->verdict != TRACK_RUN_REFUSED || mlflow_gone(s->m, s->run, reply) || to - from > 1)
        return;
    if (e->kind == MLFLOW_PARAM && s->m->c.reply.code == 400) {
        e->kind = MLFLOW_TAG; /* MLflow never changes a parameter, but a tag */
        send_range(ctx, from, to, reply);
        reply->n_requests++;
    } else if (++b->n_bad <= BAD_MAX) { /* else the verdict stays: refused */
        track_skip(reply, s->run, b->text.text + e->key_at);
    }
}

void mlflow_batch_send(struct mlflow *m, struct track_run *run, struct track_reply *reply)
{
    struct mlflow_batch *b = m->batch;
    struct sending sending = {.m = m, .run = run};
    int64_t n_requests = reply->n_requests, n_skipped = reply->n_skipped;

    if (b->n == 0)
        return;
    b->n_bad = 0;
    track_send_halving(send_range, &sending, 0, b->n, reply);
    reply->n_requests += n_requests;
    reply->n_skipped += n_skipped;
    mlflow_batch_clear(b);
}
