/* url.c - addresses and waiting times: the parts of the HTTP client that use no network. */
#include "web/http/curl.h"
#include "web/http/http.h"

#include <strings.h>

#define BACKOFF_MAX_S 60.0

double http_backoff_s(struct rng *rng, int attempt, double retry_after_s)
{
    double cap_s = attempt >= 6 ? BACKOFF_MAX_S : fmin(BACKOFF_MAX_S, ldexp(1.0, attempt));

    /* The server's wait is kept in full; the jitter in addition spreads the retries of many clients. */
    return fmax(0, retry_after_s) + rng_f64(rng) * cap_s;
}

bool http_retry_after(const char *text, double now_s, double *ret_s)
{
    double seconds;

    if (num_parse_f64(text, &seconds)) {
        if (seconds < 0)
            return false;
        *ret_s = seconds;
        return true;
    }
    time_t at = curl_open(NULL) == ST_OK ? curl.getdate(text, NULL) : (time_t)-1;
    if (at == (time_t)-1)
        return false;
    *ret_s = fmax(0, (double)at - now_s);
    return true;
}

const char *http_url_shown(const char *url, char *buf, size_t size)
{
    static const CURLUPart hidden[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY,
                                       CURLUPART_FRAGMENT};
    CURLU *u = curl_open(NULL) == ST_OK ? curl.url() : NULL;
    char *shown = NULL;

    snprintf(buf, size, "an invalid address");
    if (u != NULL && curl.url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
        for (size_t i = 0; i < COUNT(hidden); i++)
            curl.url_set(u, hidden[i], NULL, 0);
        if (curl.url_get(u, CURLUPART_URL, &shown, 0) == CURLUE_OK)
            snprintf(buf, size, "%s", shown);
        curl.free(shown);
    } else if (url[0] == '/') { /* the target of a redirect may be only a path */
        snprintf(buf, size, "%.*s", (int)strcspn(url, "?#"), url);
    }
    if (u != NULL)
        curl.url_cleanup(u);
    return buf;
}

bool http_url_has_secret(const char *url)
{
    CURLU *u = curl_open(NULL) == ST_OK ? curl.url() : NULL;
    char *part = NULL;
    bool has = false;

    if (u != NULL && curl.url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK) {
        has = curl.url_get(u, CURLUPART_USER, &part, 0) == CURLUE_OK;
        curl.free(part);
        part = NULL;
        if (!has && curl.url_get(u, CURLUPART_QUERY, &part, 0) == CURLUE_OK)
            has = strcasestr(part, "token") != NULL || strcasestr(part, "key") != NULL ||
                  strcasestr(part, "secret") != NULL || strcasestr(part, "password") != NULL ||
                  strcasestr(part, "sig") != NULL;
        curl.free(part);
    }
    if (u != NULL)
        curl.url_cleanup(u);
    return has;
}

enum status http_url_check(const char *url, const char *origin, char *ret_url, size_t size, struct error *err)
{
    char shown[ERROR_TEXT_MAX / 2];

    TRY(curl_open(err));

    CURLU *u = curl.url();
    char *host = NULL;
    size_t n = strlen(url);
    bool ok = (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) && u != NULL &&
              curl.url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl.url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] != '\0';

    for (const char *c = url; ok && *c != '\0'; c++)
        ok = (unsigned char)*c > 0x20 && *c != 0x7f;
    curl.free(host);
    curl.url_cleanup(u);
    if (!ok)
        return FAIL(err, ST_CONFIG,
                    "%s: '%s' is not an http or https address; one like https://host:port/path is needed", origin,
                    http_url_shown(url, shown, sizeof shown));
    while (n > 0 && url[n - 1] == '/')
        n--;
    if (n >= size)
        return FAIL(err, ST_CONFIG, "%s: the address has %zu bytes, up to %zu are allowed", origin, n, size - 1);
    memcpy(ret_url, url, n);
    ret_url[n] = '\0';
    return ST_OK;
}

void http_escape(struct strbuf *sb, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-._~", c) != NULL;
        if (plain)
            strbuf_add_n(sb, text, 1);
        else
            strbuf_addf(sb, "%%%02X", c);
    }
}
