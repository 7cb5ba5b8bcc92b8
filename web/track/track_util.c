/* track_util.c - JSON texts with exact numbers, logins and flat configs for the clients of trackers. */
#include "web/track/track_util.h"

#include "web/http/curl.h"

#include <openssl/evp.h>
#include <stdarg.h>

#define KEY_MAX 512

const struct track_front_name track_front_names[] = {{"study/trials", "trials"},
                                                     {"study/hypervolume", "hypervolume"},
                                                     {"study/cost_s", "cost_s"},
                                                     {"study/best_score", "best_score"},
                                                     {NULL, NULL}};
const struct track_front_name track_result_names[] = {
    {"result/score", "score"},       {"result/perf", "perf"},           {"result/cost_s", "cost_s"},
    {"result/device_s", "device_s"}, {"result/env_steps", "env_steps"}, {NULL, NULL}};

/* -- JSON -- */

static void add_number(struct strbuf *sb, double value, bool bare)
{
    char buf[NUM_TEXT_MAX];
    const char *quote = bare ? "" : "\"";

    if (isfinite(value))
        strbuf_add(sb, num_format_f64(value, buf));
    else
        strbuf_addf(sb, "%s%s%s", quote, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", quote);
}

void track_json_number(struct strbuf *sb, double value)
{
    add_number(sb, value, false);
}

void track_json_bare_number(struct strbuf *sb, double value)
{
    add_number(sb, value, true);
}

bool track_json_is_number(const cJSON *item, double *ret_value)
{
    if (cJSON_IsNumber(item)) {
        *ret_value = item->valuedouble;
        return true;
    }
    if (cJSON_IsRaw(item)) /* a large integer of json_add_i64 */
        return num_parse_f64(item->valuestring, ret_value);
    return cJSON_IsString(item) && num_parse_f64_any(item->valuestring, ret_value) && !isfinite(*ret_value);
}

static void add_value(struct strbuf *sb, const cJSON *json, bool bare)
{
    const cJSON *item;
    const char *between = "";
    double value;

    if (track_json_is_number(json, &value)) {
        add_number(sb, value, bare);
    } else if (cJSON_IsString(json)) {
        json_write_str(sb, json->valuestring);
    } else if (cJSON_IsObject(json) || cJSON_IsArray(json)) {
        strbuf_add(sb, cJSON_IsObject(json) ? "{" : "[");
        cJSON_ArrayForEach(item, json)
        {
            strbuf_add(sb, between);
            between = ",";
            if (cJSON_IsObject(json)) {
                json_write_str(sb, item->string);
                strbuf_add(sb, ":");
            }
            add_value(sb, item, bare);
        }
        strbuf_add(sb, cJSON_IsObject(json) ? "}" : "]");
    } else if (cJSON_IsRaw(json)) {
        strbuf_add(sb, json->valuestring);
    } else {
        strbuf_add(sb, cJSON_IsTrue(json) ? "true" : cJSON_IsFalse(json) ? "false" : "null");
    }
}

void track_json_value(struct strbuf *sb, const cJSON *json)
{
    add_value(sb, json, false);
}

void track_json_bare_value(struct strbuf *sb, const cJSON *json)
{
    add_value(sb, json, true);
}

/* -- configs -- */

static void flatten_leaf(const cJSON *item, const char *key, track_flat_fn *each, void *ctx)
{
    struct strbuf text;
    char buf[NUM_TEXT_MAX];

    if (cJSON_IsString(item)) {
        each(ctx, key, item->valuestring);
    } else if (cJSON_IsNumber(item)) {
        each(ctx, key, num_format_f64(item->valuedouble, buf));
    } else {
        strbuf_init(&text, 1u << 20);
        track_json_value(&text, item);
        if (text.status == ST_OK)
            each(ctx, key, text.text);
        strbuf_free(&text);
    }
}

static void flatten_into(const cJSON *object, char *key, size_t used, track_flat_fn *each, void *ctx)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, object)
    {
        int n = snprintf(key + used, KEY_MAX - used, "%s%s", used > 0 ? "." : "", item->string);
        if (n < 0 || (size_t)n >= KEY_MAX - used)
            continue;
        if (cJSON_IsObject(item))
            flatten_into(item, key, used + (size_t)n, each, ctx);
        else
            flatten_leaf(item, key, each, ctx);
    }
    key[used] = '\0';
}

void track_flatten(const cJSON *object, track_flat_fn *each, void *ctx)
{
    char key[KEY_MAX] = "";

    if (cJSON_IsObject(object))
        flatten_into(object, key, 0, each, ctx);
}

/* -- settings -- */

const char *track_env(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* One part of the URL, decoded, into ret; "" when the URL has none. */
static bool take_part(CURLU *u, CURLUPart part, char *ret, size_t size)
{
    char *text = NULL;
    bool fits = true;

    ret[0] = '\0';
    if (curl.url_get(u, part, &text, CURLU_URLDECODE) == CURLUE_OK) {
        fits = strlen(text) < size;
        snprintf(ret, size, "%s", text);
        explicit_bzero(text, strlen(text));
        curl.free(text);
    }
    curl.url_set(u, part, NULL, 0);
    return fits;
}

enum status track_url_login(const char *url, const char *origin, char *ret_url, size_t url_size, char *ret_user,
                            char *ret_password, size_t size, struct error *err)
{
    TRY(curl_open(err));

    CURLU *u = curl.url();
    char *rest = NULL;
    enum status rc;

    if (curl.url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK) {
        curl.url_cleanup(u);
        return FAIL(err, ST_CONFIG, "%s is not an address of the form http(s)://host[:port][/path]", origin);
    }
    bool fits = take_part(u, CURLUPART_USER, ret_user, size);
    fits = take_part(u, CURLUPART_PASSWORD, ret_password, size) && fits;
    if (!fits || curl.url_get(u, CURLUPART_URL, &rest, 0) != CURLUE_OK)
        rc = FAIL(err, ST_CONFIG, "%s: the address or its login is too long", origin);
    else
        rc = http_url_check(rest, origin, ret_url, url_size, err);
    curl.free(rest);
    curl.url_cleanup(u);
    return rc;
}

void track_url_host(const char *url, bool with_port, char *ret_host, size_t size)
{
    const char *host = strstr(url, "://");

    host = host != NULL ? host + 3 : url;
    snprintf(ret_host, size, "%.*s", (int)strcspn(host, with_port ? "/?" : ":/?"), host);
}

void track_basic_auth(char *ret_header, size_t size, const char *user, const char *password)
{
    static const char start[] = "Authorization: Basic ";
    unsigned char plain[TRACK_SECRET_MAX * 2 + 2], coded[sizeof plain * 4 / 3 + 8];
    int n = snprintf((char *)plain, sizeof plain, "%s:%s", user, password);

    EVP_EncodeBlock(coded, plain, n < (int)sizeof plain ? n : (int)sizeof plain - 1);
    snprintf(ret_header, size, "%s%s", start, (const char *)coded);
    explicit_bzero(plain, sizeof plain);
    explicit_bzero(coded, sizeof coded);
}

/* -- answers -- */

void track_refuse(struct track_reply *reply, enum track_verdict verdict, const char *fmt, ...)
{
    va_list args;

    reply->verdict = verdict;
    va_start(args, fmt);
    vsnprintf(reply->text, sizeof reply->text, fmt, args);
    va_end(args);
}

/* -- requests -- */

void *track_client_create(size_t size, const struct track_open *open)
{
    struct track_client *c = mem_alloc(size);

    *c = (struct track_client){.size = size,
                               .track = open->settings,
                               .study = open->study,
                               .key = open->key,
                               .program = open->program,
                               .single = open->single};
    http_reply_init(&c->reply);
    strbuf_init(&c->body, 16u << 20);
    return c;
}

enum status track_client_connect(struct track_client *c, const struct track_open *open, struct http_settings http,
                                 const char *const *secrets, size_t n, struct error *err)
{
    static const char basic[] = "Authorization: Basic ";

    if (http.ca_file == NULL)
        http.ca_file = c->track->ca_file;
    if (http.client_cert == NULL)
        http.client_cert = c->track->client_cert;
    http.client_key = c->track->client_key;
    http.user_agent = open->program;
    http.cancel = open->cancel;
    TRY(http_create(&c->http, &http, err));
    for (size_t i = 0; i < n; i++)
        TRY(http_hide(c->http, secrets[i], err));
    return strncmp(c->auth, basic, strlen(basic)) == 0 ? http_hide(c->http, c->auth + strlen(basic), err) : ST_OK;
}

void track_client_close(void *self)
{
    struct track_client *c = self;

    if (c == NULL)
        return;
    http_destroy(c->http);
    http_reply_free(&c->reply);
    strbuf_free(&c->body);
    explicit_bzero(c, c->size);
    mem_free(c);
}

const char *track_client_page(void *self)
{
    return ((struct track_client *)self)->page;
}

void track_client_send(struct track_client *c, struct http_request request, struct track_reply *reply)
{
    const char *const login[] = {c->auth};

    if (request.headers == NULL && c->auth[0] != '\0') {
        request.headers = login;
        request.n_headers = 1;
    }
    http_send(c->http, &request, &c->reply);
    track_reply_http(reply, &c->reply);
    reply->n_requests = 1;
}

void track_send_halving(track_send_fn *send, void *ctx, size_t from, size_t to, struct track_reply *reply)
{
    int64_t n_requests, n_skipped = 0;
    size_t half = from + (to - from) / 2;

    *reply = (struct track_reply){.verdict = TRACK_DONE};
    send(ctx, from, to, reply);
    if (reply->verdict != TRACK_RUN_REFUSED || reply->run_gone || to - from == 1)
        return;
    n_requests = reply->n_requests;
    for (int i = 0; i < 2; i++) {
        track_send_halving(send, ctx, i == 0 ? from : half, i == 0 ? half : to, reply);
        n_requests += reply->n_requests;
        n_skipped += reply->n_skipped;
        if (reply->verdict != TRACK_DONE)
            break;
    }
    reply->n_requests = n_requests;
    reply->n_skipped = n_skipped;
}

void track_state_set(struct track_run *run, const char *key, const char *value)
{
    cJSON_DeleteItemFromObjectCaseSensitive(run->state, key);
    json_add_str(run->state, key, value);
}

void track_skip(struct track_reply *reply, const struct track_run *run, const char *what)
{
    log_debug("%s of %s is left out: %s", what, run->key, reply->text);
    reply->verdict = TRACK_DONE;
    reply->n_skipped = 1;
}
