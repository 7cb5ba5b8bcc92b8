/* ask_client.c - a request of ask/tell by HTTP, or over the socket beside a store. */
#include "sweep/agent/ask_client.h"

#include "sweep/agent/ask_store.h"
#include "sweep/control/ask/ask_forward.h"

#define TIMEOUT_S 20 /* a server answers an ask within 2 s */
#define URL_MAX 4096

struct ask_client {
    const struct ask_place *place;
    char *study; /* owned */
    struct http *http; /* NULL: a store */
    struct ask_store *direct; /* NULL: the store's controller answers */
    struct http_reply reply;
    char authorization[160];
};

enum status ask_place_parse(const char *text, const char *token, struct ask_place *ret, struct error *err)
{
    const char *query = strchr(text, '?'), *own = query != NULL ? strstr(query, "token=") : NULL;
    const char *page = strstr(text, "/study/");
    size_t n = strcspn(text, "?#"), n_token = token != NULL ? strlen(token) : 0;
    char base[sizeof ret->url];

    *ret = (struct ask_place){0};
    if (strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) {
        if (strlen(text) >= sizeof ret->store)
            return FAIL(err, ST_USAGE, "agent: the path of the store is too long");
        snprintf(ret->store, sizeof ret->store, "%s", text);
        return ST_OK;
    }
    if (token == NULL && own != NULL) {
        token = own + strlen("token=");
        n_token = strcspn(token, "&#");
    }
    if (n_token >= sizeof ret->token)
        return FAIL(err, ST_USAGE, "agent: the token is longer than any that `trawl serve` makes");
    snprintf(ret->token, sizeof ret->token, "%.*s", (int)n_token, token != NULL ? token : "");
    if (page != NULL && page < text + n) /* copied from a browser that shows the study */
        n = (size_t)(page - text);
    snprintf(base, sizeof base, "%.*s", (int)n, text);
    return http_url_check(base, "agent", ret->url, sizeof ret->url, err);
}

enum status ask_client_create(struct ask_client **ret_client, const struct ask_place *place, const char *study,
                              struct http_cancel *cancel, struct error *err)
{
    const struct http_settings settings = {.connect_s = TIMEOUT_S, .timeout_s = TIMEOUT_S, .cancel = cancel};
    struct ask_client *c = mem_alloc(sizeof *c);
    enum status rc = ST_OK;

    c->place = place;
    c->study = mem_strdup(study);
    http_reply_init(&c->reply);
    if (place->direct)
        c->direct = ask_store_create(place->store);
    if (place->url[0] != '\0')
        rc = http_create(&c->http, &settings, err);
    if (rc == ST_OK && c->http != NULL && place->token[0] != '\0')
        rc = http_hide(c->http, place->token, err);
    if (rc != ST_OK) {
        ask_client_destroy(c);
        return rc;
    }
    snprintf(c->authorization, sizeof c->authorization, "Authorization: Bearer %s", place->token);
    *ret_client = c;
    return ST_OK;
}

void ask_client_destroy(struct ask_client *c)
{
    if (c == NULL)
        return;
    http_destroy(c->http);
    ask_store_destroy(c->direct);
    http_reply_free(&c->reply);
    explicit_bzero(c->authorization, sizeof c->authorization);
    mem_free(c->study);
    mem_free(c);
}

static enum ask_outcome call_store(struct ask_client *c, const char *verb, int64_t trial, const cJSON *body,
                                   cJSON **ret_answer, char *text)
{
    struct error why = {0};

    switch (ask_forward(c->place->store, verb, c->study, trial, body, ret_answer, &why)) {
    case ST_OK:
        return ASK_DONE;
    case ST_USAGE:
    case ST_CONFIG:
    case ST_NOTFOUND:
    case ST_EXISTS:
    case ST_VERSION:
        memcpy(text, why.text, ERROR_TEXT_MAX);
        return ASK_REFUSED;
    default:
        memcpy(text, why.text, ERROR_TEXT_MAX);
        return ASK_AGAIN;
    }
}

/* What our server reports about it, instead of the whole body. */
static void explain(const struct http_reply *reply, char *text)
{
    const char *error = reply->json != NULL ? json_get_str(reply->json, "error") : NULL;
    const char *hint = reply->json != NULL ? json_get_str(reply->json, "hint") : NULL;

    if (error != NULL)
        snprintf(text, ERROR_TEXT_MAX, "%.500s%s%.300s", error, hint != NULL ? "; " : "", hint != NULL ? hint : "");
    else
        snprintf(text, ERROR_TEXT_MAX, "%.900s", reply->text);
}

static enum ask_outcome call_server(struct ask_client *c, const char *verb, int64_t trial, const cJSON *body,
                                    cJSON **ret_answer, double *ret_wait_s, char *text)
{
    const char *headers[] = {c->authorization};
    MEM_LOCAL char *bytes = json_print(body, false);
    struct http_request request = {.method = "POST",
                                   .headers = headers,
                                   .n_headers = c->place->token[0] != '\0',
                                   .body = bytes,
                                   .n_body = strlen(bytes),
                                   .want_json = true};
    STRBUF(url, URL_MAX);

    strbuf_addf(&url, "%s/api/v1/studies/", c->place->url);
    http_escape(&url, c->study);
    if (trial >= 0)
        strbuf_addf(&url, "/trials/%lld:%s", (long long)trial, verb);
    else
        strbuf_addf(&url, "/trials:%s", verb);
    request.url = url.text;
    http_send(c->http, &request, &c->reply);
    *ret_wait_s = c->reply.retry_after_s;
    if (c->reply.outcome == HTTP_OK) {
        *ret_answer = c->reply.json;
        c->reply.json = NULL;
        return ASK_DONE;
    }
    explain(&c->reply, text);
    if (c->reply.code == 401 || c->reply.code == 403)
        return ASK_DENIED;
    /* a page, a redirect or a missing certificate is a network that is not the server's yet */
    return c->reply.outcome == HTTP_REFUSED && !c->reply.elsewhere ? ASK_REFUSED : ASK_AGAIN;
}

enum ask_outcome ask_client_call(struct ask_client *c, const char *verb, int64_t trial, const cJSON *body,
                                 cJSON **ret_answer, double *ret_wait_s, char *text)
{
    *ret_answer = NULL;
    *ret_wait_s = 0;
    text[0] = '\0';
    if (c->direct != NULL)
        return ask_store_call(c->direct, verb, body, ret_answer, text);
    return c->http != NULL ? call_server(c, verb, trial, body, ret_answer, ret_wait_s, text)
                           : call_store(c, verb, trial, body, ret_answer, text);
}
