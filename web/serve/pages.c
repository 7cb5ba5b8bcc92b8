/* pages.c - what is no API: the page, its assets, the form that takes the token. */
#include "web/serve/serve_priv.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "web/serve/answer_cache.h"
#include "web/serve/request.h"
#include "web/serve/routes.h"

#include <microhttpd.h>
#include <zlib.h>
#include <stdio.h>
#include <string.h>

#define COOKIE_DAYS 30

static const struct asset *asset_find(const char *name)
{
    for (size_t i = 0; i < serve_n_assets; i++)
        if (strcmp(serve_assets[i].name, name) == 0)
            return &serve_assets[i];
    return NULL;
}

/* Puts the asset, plain and compressed, into the answer. */
static enum status put_asset(const struct asset *asset, struct answer *answer, struct strbuf *out, struct error *err)
{
    z_stream z = {.next_in = (Bytef *)(void *)(uintptr_t)asset->bytes, .avail_in = (uInt)asset->n};
    char *plain = mem_alloc(asset->n_plain + 1), *gzip = mem_alloc(asset->n);
    int rc = Z_MEM_ERROR;

    if (inflateInit2(&z, 15 + 16) == Z_OK) {
        z.next_out = (Bytef *)plain;
        z.avail_out = (uInt)asset->n_plain;
        rc = inflate(&z, Z_FINISH);
        inflateEnd(&z);
    }
    if (rc != Z_STREAM_END || z.total_out != asset->n_plain) {
        mem_free(plain);
        mem_free(gzip);
        return FAIL(err, ST_NOMEM, "out of memory for %s", asset->name);
    }
    memcpy(gzip, asset->bytes, asset->n);
    (void)out;
    answer->type = asset->type;
    answer->bytes = plain;
    answer->n = asset->n_plain;
    answer->gzip = gzip;
    answer->n_gzip = asset->n;
    snprintf(answer->etag, sizeof answer->etag, "\"%08lx-%zx\"", crc32(0, asset->bytes, (uInt)asset->n), asset->n);
    return ST_OK;
}

enum status page_asset(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                       struct error *err)
{
    const struct asset *asset;
    char name[256];

    (void)s;
    if (r->target.n_segments == 2)
        snprintf(name, sizeof name, "%s", r->target.segments[1]);
    else
        snprintf(name, sizeof name, "%s/%s", r->target.segments[1], r->target.segments[2]);
    asset = asset_find(name);
    if (asset == NULL)
        return FAIL(err, ST_NOTFOUND, "no asset '%.60s'; / is the page", name);
    return put_asset(asset, answer, out, err);
}

static void set_cookie(const struct serve *s, struct answer *answer, const char *token)
{
    struct strbuf text;
    char name[32];

    serve_cookie_name(s, name, sizeof name);
    strbuf_init(&text, 512);
    strbuf_addf(&text, "%s=%s; Path=/; Max-Age=%d; HttpOnly; SameSite=Strict", name, token, COOKIE_DAYS * 86400);
    answer->cookie = strbuf_take(&text);
    strbuf_free(&text);
    answer->location = mem_strdup("/");
    answer->status = MHD_HTTP_SEE_OTHER;
    answer->no_store = true;
}

static void put_login(struct strbuf *out, bool wrong)
{
    strbuf_add(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Trawl: token</title>\n"
                    "<meta name=\"viewport\" content=\"width=device-width\"></head>\n<body><main><h1>Trawl</h1>\n");
    if (wrong)
        strbuf_add(out, "<p role=\"alert\"><strong>That is not the token.</strong></p>\n");
    strbuf_add(out,
               "<p>This server needs the token that <code>trawl serve</code> printed when it began.</p>\n"
               "<form method=\"post\" action=\"/login\"><label>Token <input type=\"password\" name=\"token\" required "
               "autofocus autocomplete=\"current-password\" size=\"50\"></label> <button>Go in</button></form>\n"
               "</main></body></html>\n");
}

enum status page_login(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                       struct error *err)
{
    char token[SERVE_TOKEN_MAX + 1] = "";

    (void)err;
    answer->no_store = true;
    if (s->token[0] == '\0') {
        answer->status = MHD_HTTP_SEE_OTHER;
        answer->location = mem_strdup("/");
        return ST_OK;
    }
    if (r->form != NULL && strncmp(r->form, "token=", 6) == 0)
        snprintf(token, sizeof token, "%.*s", (int)strcspn(r->form + 6, "&\r\n"), r->form + 6);
    if (r->form != NULL && token_equal(s->token, token)) {
        set_cookie(s, answer, token);
        return ST_OK;
    }
    answer->status = MHD_HTTP_UNAUTHORIZED;
    put_login(out, r->form != NULL);
    return ST_OK;
}

enum status page_index(struct serve *s, const struct request *r, struct answer *answer, struct strbuf *out,
                       struct error *err)
{
    const struct asset *asset = asset_find("index.html");
    const char *token = target_query(&r->target, "token");

    if (token != NULL && s->token[0] != '\0') {
        if (token_equal(s->token, token)) {
            set_cookie(s, answer, token);
            return ST_OK;
        }
        answer->status = MHD_HTTP_UNAUTHORIZED;
        answer->no_store = true;
        put_login(out, true);
        return ST_OK;
    }
    if (asset == NULL)
        return FAIL(err, ST_NOTFOUND, "this program was built without pages; the API is at /api/v1/");
    return put_asset(asset, answer, out, err);
}
