/* track_settings.c - the [track] options, the list of trackers, and what can be checked without a network. */
#include "web/track.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/words.h"
#include "web/http.h"

static const struct tracker_ops *const all_ops[] = {&track_wandb_ops, &track_mlflow_ops, &track_trackio_ops,
                                                    &track_webhook_ops};

static const struct opt_def track_defs[] = {
    OPT_ROW_STR(struct track_settings, trackers, "",
                "Names the experiment trackers that are told everything, with commas: wandb, mlflow, trackio, webhook; "
                "short: --track."),
    OPT_ROW_BOOL(struct track_settings, offline, "false",
                 "Keeps what trackers are to be told in the store until `trawl sync`; no connection is made."),
    OPT_ROW_BOOL(
        struct track_settings, strict, "false",
        "Ends the command when a tracker refuses the login at the start; else it is told and training goes on."),
    OPT_ROW_STR(
        struct track_settings, project, "",
        "Names the project (W&B, Trackio) or experiment (MLflow); empty: the tracker's own variable, else trawl or, in "
        "MLflow, the study's name."),
    OPT_ROW_STR(struct track_settings, entity, "", "Names the W&B user or team; empty: the login's default."),
    OPT_ROW_STR(struct track_settings, tags, "", "Puts these tags on every run, with commas."),
    OPT_ROW_STR(struct track_settings, notes, "", "Describes the study to readers of the tracker."),
    OPT_ROW_FLOAT(struct track_settings, interval_s, "15", 0.1, 3600, OPT_FIXED, 0, 0, "s",
                  "Lies at least between two posts of one run."),
    OPT_ROW_FLOAT(
        struct track_settings, beat_s, "30", 0.1, 240, OPT_FIXED, 0, 0, "s",
        "Tells W&B that a run goes on after so long without news of it; without a word it is shown as crashed after "
        "some 5 minutes."),
    OPT_ROW_FLOAT(struct track_settings, thin_s, "0", 0, 3600, OPT_FIXED, 0, 0, "s",
                  "Sends of each run at most one report in so many seconds, the last one; 0: all."),
    OPT_ROW_INT(struct track_settings, requests_per_minute, "0", 0, 100000, OPT_FIXED, 0, 0, "1/min",
                "Bounds the requests to one tracker over all runs; 0: what suits the tracker."),
    OPT_ROW_INT(struct track_settings, outbox_rows, "1000000", 0, INT64_C(1000000000000), OPT_FIXED, 0, 0, "rows",
                "Bounds the rows of a study that wait in the store for trackers (about 1 GB at the default); past it "
                "reports are "
                "left out for trackers, while starts, results and the final front are kept; 0: no bound."),
    OPT_ROW_FLOAT(struct track_settings, flush_s, "30", 0, 3600, OPT_FIXED, 0, 0, "s",
                  "Lets the end of the command wait so long for uploads; the rest is for `trawl sync`."),
    OPT_ROW_BOOL(struct track_settings, files, "true", "Sends configs, the report and the picture of the front too."),
    OPT_ROW_STR(struct track_settings, wandb_url, "",
                "Gives W&B's address; empty: WANDB_BASE_URL, else the public one."),
    OPT_ROW_STR(struct track_settings, mlflow_url, "", "Gives MLflow's address; empty: MLFLOW_TRACKING_URI."),
    OPT_ROW_STR(struct track_settings, trackio_url, "", "Gives Trackio's address; empty: TRACKIO_SERVER_URL."),
    OPT_ROW_STR(struct track_settings, webhook_url, "", "Gives the webhook's address; empty: TRAWL_WEBHOOK_URL."),
    OPT_ROW_STR(struct track_settings, ca_file, "",
                "Names a PEM file of the authorities that sign trackers' certificates; empty: CURL_CA_BUNDLE, "
                "SSL_CERT_FILE, REQUESTS_CA_BUNDLE, else the system's."),
    OPT_ROW_STR(struct track_settings, client_cert, "", "Names a PEM file with a client certificate for trackers."),
    OPT_ROW_STR(struct track_settings, client_key, "", "Names a PEM file with that certificate's key."),
};
const struct opt_table track_opt_table = {
    .section = "track",
    .title = "Experiment trackers",
    .defs = track_defs,
    .n_defs = sizeof track_defs / sizeof track_defs[0],
    .settings_size = sizeof(struct track_settings),
};

const struct tracker_ops *track_find(const char *name)
{
    for (size_t i = 0; i < sizeof all_ops / sizeof all_ops[0]; i++)
        if (all_ops[i] != NULL && strcmp(all_ops[i]->name, name) == 0)
            return all_ops[i];
    return NULL;
}

bool track_next_word(const char **at, char *ret_word, size_t size)
{
    size_t n;

    *at += strspn(*at, ", \t");
    if (**at == '\0')
        return false;
    n = strcspn(*at, ",");
    snprintf(ret_word, size, "%.*s", (int)n, *at);
    *at += n;
    for (n = strlen(ret_word); n > 0 && strchr(" \t", ret_word[n - 1]) != NULL;)
        ret_word[--n] = '\0';
    return true;
}

bool track_env_is_private(const char *assignment)
{
    static const char *const begins[] = {"WANDB_", "MLFLOW_", "TRACKIO_", "HF_", "TRAWL_WEBHOOK_", "NETRC="};
    size_t n = strcspn(assignment, "=");

    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(assignment, begins[i], strlen(begins[i])) == 0)
            return true;
    return n >= 6 && strncasecmp(assignment + n - 6, "_proxy", 6) == 0;
}

static enum status check_name(const char *name, struct error *err)
{
    const char *names[sizeof all_ops / sizeof all_ops[0]], *near;
    char list[200] = "";
    size_t n = 0, used = 0;

    if (track_find(name) != NULL)
        return ST_OK;
    if (strcasecmp(name, "neptune") == 0)
        return FAIL(err, ST_CONFIG,
                    "neptune: the service closed on 2026-03-05; use wandb, mlflow (a server of your own) or trackio "
                    "instead, the store keeps every number meanwhile");
    for (size_t i = 0; i < sizeof all_ops / sizeof all_ops[0]; i++)
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
