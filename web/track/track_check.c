/* track_check.c - the list of trackers, and checks of their settings that need no network. */
#include "base/os/file.h"
#include "web/http/http.h"
#include "web/track/track.h"

#include <strings.h>

static const struct tracker_ops *const all_ops[] = {&track_wandb_ops, &track_mlflow_ops, &track_trackio_ops,
                                                    &track_webhook_ops};

const struct tracker_ops *track_find(const char *name)
{
    for (size_t i = 0; i < COUNT(all_ops); i++)
        if (all_ops[i] != NULL && strcmp(all_ops[i]->name, name) == 0)
            return all_ops[i];
    return NULL;
}

bool track_next_word(const char **at, char *ret_word, size_t size)
{
    *at += strspn(*at, ", \t");
    if (**at == '\0')
        return false;
    size_t n = strcspn(*at, ",");
    snprintf(ret_word, size, "%.*s", (int)n, *at);
    *at += n;
    for (n = strlen(ret_word); n > 0 && strchr(" \t", ret_word[n - 1]) != NULL;)
        ret_word[--n] = '\0';
    return true;
}

static enum status check_name(const char *name, struct error *err)
{
    const char *names[COUNT(all_ops)], *near;
    char list[200] = "";
    size_t n = 0, used = 0;

    if (track_find(name) != NULL)
        return ST_OK;
    if (strcasecmp(name, "neptune") == 0)
        return FAIL(err, ST_CONFIG,
                    "neptune: the service closed on 2026-03-05; use wandb, mlflow (a server of your own) or trackio "
                    "instead, the store keeps every number meanwhile");
    for (size_t i = 0; i < COUNT(all_ops); i++)
        if (all_ops[i] != NULL) {
            names[n] = all_ops[i]->name;
            if (used < sizeof list)
                used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "", names[n]);
            n++;
        }
    near = word_nearest(name, names, n);
    return FAIL(err, ST_CONFIG, "track.trackers: no tracker '%s'; %s%s%s", name, near ? "did you mean '" : "there are ",
                near ? near : list, near ? "'?" : "");
}

static enum status check_url(const char *url, const char *key, struct error *err)
{
    char clean[OPT_STR_MAX];

    if (url[0] == '\0')
        return ST_OK;
    if (http_url_has_secret(url))
        return FAIL(err, ST_CONFIG,
                    "%s holds a password or a token, and options are kept in the store; give the address without it "
                    "and the secret by the tracker's own variable or netrc",
                    key);
    return http_url_check(url, key, clean, sizeof clean, err);
}

static enum status check_file(const char *path, const char *key, struct error *err)
{
    if (path[0] == '\0' || file_exists(path))
        return ST_OK;
    return FAIL(err, ST_CONFIG, "%s: there is no file %s", key, path);
}

enum status track_settings_check(const struct track_settings *s, struct error *err)
{
    char name[64];

    for (const char *at = s->trackers; track_next_word(&at, name, sizeof name);)
        TRY(check_name(name, err));
    TRY(check_url(s->wandb_url, "track.wandb_url", err));
    TRY(check_url(s->mlflow_url, "track.mlflow_url", err));
    TRY(check_url(s->trackio_url, "track.trackio_url", err));
    TRY(check_url(s->webhook_url, "track.webhook_url", err));
    TRY(check_file(s->ca_file, "track.ca_file", err));
    TRY(check_file(s->client_cert, "track.client_cert", err));
    return check_file(s->client_key, "track.client_key", err);
}

void track_reply_http(struct track_reply *reply, const struct http_reply *http)
{
    static const struct track_reply blank;

    *reply = blank;
    reply->retry_after_s = http->retry_after_s;
    reply->pause_s = http->pause_s;
    snprintf(reply->text, sizeof reply->text, "%s", http->text);
    switch (http->outcome) {
    case HTTP_OK:
        reply->verdict = TRACK_DONE;
        break;
    case HTTP_RETRY:
    case HTTP_CANCELLED:
        reply->verdict = TRACK_RETRY;
        break;
    case HTTP_REFUSED:
        reply->verdict = http->elsewhere || http->code == 401 || http->code == 403 ? TRACK_REFUSED : TRACK_RUN_REFUSED;
        break;
    }
}
