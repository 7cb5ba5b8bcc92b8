/* pages.c - everything but the API: the page, its assets, the form that takes the token, failures for people. */
#include "web/serve/serve_priv.h"

#include "web/serve/routes.h"
#include "web/text/put.h"

#include <microhttpd.h>
#include <zlib.h>

#define COOKIE_DAYS 30

const struct asset *asset_find(const char *name)
{
    for (size_t i = 0; i < serve_n_assets; i++)
        if (strcmp(serve_assets[i].name, name) == 0)
            return &serve_assets[i];
    return NULL;
}

char *asset_text(const struct asset *asset)
{
    z_stream z = {.next_in = (Bytef *)(void *)(uintptr_t)asset->bytes, .avail_in = (uInt)asset->n};
    char *plain = mem_alloc(asset->n_plain + 1);
    int rc = Z_MEM_ERROR;

    if (inflateInit2(&z, 15 + 16) == Z_OK) {
        z.next_out = (Bytef *)plain;
        z.avail_out = (uInt)asset->n_plain;
        rc = inflate(&z, Z_FINISH);
        inflateEnd(&z);
    }
    if (rc == Z_STREAM_END && z.total_out == asset->n_plain)
        return plain;
    mem_free(plain);
    return NULL;
}

/* Puts the asset, plain and compressed, into the answer. */
static enum status put_asset(const struct asset *asset, struct answer *answer, struct error *err)
{
    char *plain = asset_text(asset), *gzip;

    if (plain == NULL)
        return FAIL(err, ST_NOMEM, "out of memory for %s", asset->name);
    gzip = mem_alloc(asset->n);
    memcpy(gzip, asset->bytes, asset->n);
    answer->type = asset->type;
    answer->bytes = plain;
    answer->n = asset->n_plain;
    answer->gzip = gzip;
    answer->n_gzip = asset->n;
    snprintf(answer->etag, sizeof answer->etag, "\"%08lx-%zx\"", crc32(0, asset->bytes, (uInt)asset->n), asset->n);
    return ST_OK;
}

enum status page_asset(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    char name[256];

    (void)s;
    (void)out;
    if (r->target.n_segments == 2)
        snprintf(name, sizeof name, "%s", r->target.segments[1]);
    else
        snprintf(name, sizeof name, "%s/%s", r->target.segments[1], r->target.segments[2]);
    const struct asset *asset = asset_find(name);
    if (asset == NULL)
        return FAIL(err, ST_NOTFOUND, "no asset '%.60s'; / is the page", name);
    return put_asset(asset, r->answer, err);
}

/* -- pages without script -- */

static void begin_page(struct strbuf *out, const char *title)
{
    put_xml(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\n<title>%s – Trawl</title>\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            "<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<link rel=\"icon\" href=\"/assets/icon.svg\" type=\"image/svg+xml\">\n"
            "<link rel=\"stylesheet\" href=\"/assets/style.css\"></head>\n<body>\n<header class=\"top\">"
            "<a class=\"brand\" href=\"/\"><img src=\"/assets/icon.svg\" width=\"22\" height=\"22\" alt=\"\"> "
            "Trawl</a></header>\n<main class=\"plain\"><section class=\"card\">\n<h1>%s</h1>\n",
            title, title);
}

static void end_page(struct strbuf *out)
{
    strbuf_add(out, "</section></main>\n</body>\n</html>\n");
}

void page_failure(struct strbuf *out, int status, const char *error, const char *hint)
{
    begin_page(out, status == MHD_HTTP_NOT_FOUND ? "Not found" : "This did not work");
    put_xml(out, "<p>%s.</p>\n", error);
    if (hint != NULL)
        put_xml(out, "<p class=\"soft\">%s.</p>\n", hint);
    strbuf_add(out, "<p><a class=\"button\" href=\"/\">All studies</a></p>\n");
    end_page(out);
}

/* Where a browser goes when it has the token: an address of this server, never of another. */
static const char *own_address(const char *text)
{
    const unsigned char *c = (const unsigned char *)text;

    if (text == NULL || text[0] != '/' || text[1] == '/')
        return "/";
    for (; *c != '\0'; c++)
        if (*c <= 0x20 || *c >= 0x7f || *c == '\\')
            return "/";
    return text;
}

/* The address without token=... in its query. */
static char *without_token(const char *uri)
{
    const char *at = strchr(uri, '?');
    char mark = '?', *text;
    STRBUF(out, TARGET_MAX_BYTES + 8);

    strbuf_add_n(&out, uri, at != NULL ? (size_t)(at - uri) : strlen(uri));
    while (at != NULL && *at != '\0') {
        size_t n = strcspn(++at, "&");
        if (n > 0 && strncmp(at, "token=", 6) != 0) {
            strbuf_add_n(&out, &mark, 1);
            strbuf_add_n(&out, at, n);
            mark = '&';
        }
        at += n;
    }
    text = strbuf_take(&out);
    return text;
}

static void let_in(const struct serve *s, const struct request *r, const char *next)
{
    char name[32];

    access_cookie_name(s, name, sizeof name);
    STRBUF(text, 512);
    strbuf_addf(&text, "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict", name, s->token, COOKIE_DAYS * 86400);
    r->answer->cookie = strbuf_take(&text);
    r->answer->location = mem_strdup(own_address(next));
    r->answer->status = MHD_HTTP_SEE_OTHER;
    r->answer->no_store = true;
}

static void put_login(const struct request *r, struct strbuf *out, const char *next, bool wrong)
{
    r->answer->status = MHD_HTTP_UNAUTHORIZED;
    r->answer->no_store = true;
    begin_page(out, "Token");
    if (wrong)
        strbuf_add(out, "<p role=\"alert\" class=\"warn\">That is not the token.</p>\n");
    put_xml(out,
            "<p>This server needs the token that <code>trawl serve</code> printed when it began: open the address that "
            "stands there, or put the token in here. This browser then keeps it.</p>\n"
            "<form method=\"post\" action=\"/login\"><input type=\"hidden\" name=\"next\" value=\"%s\"><label "
            "for=\"token\">Token</label><input id=\"token\" type=\"password\" name=\"token\" required autofocus "
            "autocomplete=\"current-password\"><button class=\"primary\">Continue</button></form>\n",
            own_address(next));
    end_page(out);
}

enum status page_login(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    bool here = r->target.n_segments == 1 && strcmp(r->target.segments[0], "login") == 0;
    struct target form = {0};
    const char *next = here ? target_query(&r->target, "next") : r->uri, *token = NULL;
    struct strbuf text;

    (void)err;
    r->answer->no_store = true;
    if (s->token[0] == '\0') {
        r->answer->status = MHD_HTTP_SEE_OTHER;
        r->answer->location = mem_strdup(own_address(next));
        return ST_OK;
    }
    if (r->form != NULL) { /* has the form of a query */
        strbuf_init(&text, SERVE_BODY_BYTES + 4);
        strbuf_addf(&text, "/?%s", r->form);
        if (text.status == ST_OK && target_parse(&form, text.text, NULL) == ST_OK) {
            token = target_query(&form, "token");
            next = target_query(&form, "next");
        }
        strbuf_free(&text);
    }
    if (token != NULL && access_is_token(s, token))
        let_in(s, r, next);
    else
        put_login(r, out, next, r->form != NULL);
    target_free(&form);
    return ST_OK;
}

enum status page_index(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const struct asset *asset = asset_find("index.html");
    const char *token = target_query(&r->target, "token");

    if (token != NULL && s->token[0] != '\0') {
        char *next = without_token(r->uri);
        if (access_is_token(s, token))
            let_in(s, r, next);
        else
            put_login(r, out, next, true);
        mem_free(next);
        return ST_OK;
    }
    if (asset == NULL)
        return FAIL(err, ST_NOTFOUND, "this program was built without pages; the API is at /api/v1/");
    return put_asset(asset, r->answer, err);
}
