/* mlflow_settings.c - reads MLflow's settings from [track], the environment, ~/.mlflow/credentials and netrc.
 * No message holds a secret. */
#include "web/track/mlflow.h"

#include <strings.h>

static bool is_true(const char *text)
{
    return text != NULL && (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

static enum status copy(char *ret, size_t size, const char *text, const char *origin, struct error *err)
{
    if (strlen(text) >= size)
        return FAIL(err, ST_CONFIG, "mlflow: %s has more than %zu bytes", origin, size - 1);
    snprintf(ret, size, "%s", text);
    return ST_OK;
}

static enum status read_url(const struct track_settings *track, struct mlflow_settings *s, char *user, char *password,
                            const char **ret_origin, struct error *err)
{
    const char *origin = track->mlflow_url[0] != '\0' ? "track.mlflow_url" : "MLFLOW_TRACKING_URI";
    const char *url = track->mlflow_url[0] != '\0' ? track->mlflow_url : track_env("MLFLOW_TRACKING_URI");

    *ret_origin = origin;
    if (url == NULL)
        return FAIL(err, ST_CONFIG,
                    "mlflow: there is no address; start `mlflow server` and set MLFLOW_TRACKING_URI (or "
                    "track.mlflow_url) to it, for example http://127.0.0.1:5000");
    if (strncasecmp(url, "databricks", 10) == 0 || strncasecmp(url, "uc:", 3) == 0)
        return FAIL(err, ST_CONFIG,
                    "mlflow: %s names a profile of Databricks, which only its own client can read; give "
                    "https://HOST and a token in MLFLOW_TRACKING_TOKEN",
                    origin);
    if (strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0)
        return FAIL(
            err, ST_CONFIG,
            "mlflow: %s is a file or a database, not a server; start `mlflow server --backend-store-uri ...` on "
            "it and give its http:// address",
            origin);
    return track_url_login(url, origin, s->url, sizeof s->url, user, password, TRACK_SECRET_MAX, err);
}

/* ~/.mlflow/credentials, then netrc. */
static void find_login(struct mlflow_settings *s, char *user, char *password)
{
    const char *home = track_env("HOME");
    char path[1024], host[OPT_STR_MAX];

    snprintf(path, sizeof path, "%s/.mlflow/credentials", home != NULL ? home : "");
    if (home != NULL && track_ini_value(path, "mlflow", "mlflow_tracking_username", user, TRACK_SECRET_MAX)) {
        if (!track_ini_value(path, "mlflow", "mlflow_tracking_password", password, TRACK_SECRET_MAX))
            password[0] = '\0';
        s->auth_source = "~/.mlflow/credentials";
        return;
    }
    user[0] = '\0';
    for (int with_port = 1; with_port >= 0; with_port--) {
        track_url_host(s->url, with_port, host, sizeof host);
        if (netrc_find(host, user, TRACK_SECRET_MAX, password, TRACK_SECRET_MAX)) {
            s->auth_source = "netrc";
            return;
        }
    }
    user[0] = '\0';
}

static enum status read_auth(struct mlflow_settings *s, char *user, char *password, const char *url_origin,
                             char *ret_auth, size_t size, struct error *err)
{
    const char *env_user = track_env("MLFLOW_TRACKING_USERNAME"), *token = track_env("MLFLOW_TRACKING_TOKEN");
    const char *env_password = track_env("MLFLOW_TRACKING_PASSWORD");

    s->auth_source = "nowhere";
    if (env_user != NULL && env_password != NULL) {
        TRY(copy(user, TRACK_SECRET_MAX, env_user, "MLFLOW_TRACKING_USERNAME", err));
        TRY(copy(password, TRACK_SECRET_MAX, env_password, "MLFLOW_TRACKING_PASSWORD", err));
        s->auth_source = "MLFLOW_TRACKING_USERNAME";
    } else if (token != NULL) {
        if (token[strcspn(token, " \t\r\n\"'")] != '\0')
            return FAIL(err, ST_CONFIG, "mlflow: MLFLOW_TRACKING_TOKEN holds a blank, a quote or a line's end");
        TRY(copy(s->secrets[1], TRACK_SECRET_MAX, token, "MLFLOW_TRACKING_TOKEN", err));
        snprintf(ret_auth, size, "Authorization: Bearer %s", token);
        s->auth_source = "MLFLOW_TRACKING_TOKEN";
        return ST_OK;
    } else if (user[0] != '\0') {
        s->auth_source = url_origin;
    } else {
        find_login(s, user, password);
    }
    if (user[0] == '\0')
        return ST_OK;
    TRY(copy(s->secrets[0], TRACK_SECRET_MAX, password, "the password", err));
    track_basic_auth(ret_auth, size, user, password);
    return ST_OK;
}

static enum status read_experiment(const struct track_settings *track, const char *study, struct mlflow_settings *s,
                                   struct error *err)
{
    const char *id = track_env("MLFLOW_EXPERIMENT_ID"), *name = track_env("MLFLOW_EXPERIMENT_NAME");

    if (track->project[0] == '\0' && id != NULL && id[strspn(id, "0123456789")] != '\0')
        return FAIL(err, ST_CONFIG, "MLFLOW_EXPERIMENT_ID is '%.80s', a number is needed", id);
    if (track->project[0] == '\0' && id != NULL)
        return copy(s->experiment_id, sizeof s->experiment_id, id, "MLFLOW_EXPERIMENT_ID", err);
    if (track->project[0] != '\0')
        name = track->project;
    return copy(s->experiment, sizeof s->experiment, name != NULL ? name : study, "the experiment's name", err);
}

enum status mlflow_settings_read(const struct track_settings *track, const char *study, struct mlflow_settings *s,
                                 char *ret_auth, size_t auth_size, struct error *err)
{
    const char *timeout = track_env("MLFLOW_HTTP_REQUEST_TIMEOUT"), *ca = track_env("MLFLOW_TRACKING_SERVER_CERT_PATH"),
               *cert = track_env("MLFLOW_TRACKING_CLIENT_CERT_PATH"), *origin;
    char user[TRACK_SECRET_MAX], password[TRACK_SECRET_MAX];

    *s = (struct mlflow_settings){.timeout_s = 30};
    if (is_true(track_env("MLFLOW_TRACKING_AWS_SIGV4")))
        return FAIL(err, ST_CONFIG,
                    "mlflow: MLFLOW_TRACKING_AWS_SIGV4 is not supported; put a proxy that signs before the server");
    if (timeout != NULL && (!num_parse_f64(timeout, &s->timeout_s) || s->timeout_s <= 0))
        return FAIL(err, ST_CONFIG, "MLFLOW_HTTP_REQUEST_TIMEOUT is '%.40s', seconds are needed", timeout);
    s->insecure = is_true(track_env("MLFLOW_TRACKING_INSECURE_TLS"));
    enum status rc = copy(s->ca_file, sizeof s->ca_file,
                          track->ca_file[0] != '\0' ? track->ca_file
                          : ca != NULL              ? ca
                                                    : "",
                          "MLFLOW_TRACKING_SERVER_CERT_PATH", err);
    THEN(rc, copy(s->client_cert, sizeof s->client_cert,
                  track->client_cert[0] != '\0' ? track->client_cert
                  : cert != NULL                ? cert
                                                : "",
                  "MLFLOW_TRACKING_CLIENT_CERT_PATH", err));
    THEN(rc, read_experiment(track, study, s, err));
    THEN(rc, read_url(track, s, user, password, &origin, err));
    THEN(rc, read_auth(s, user, password, origin, ret_auth, auth_size, err));
    explicit_bzero(user, sizeof user);
    explicit_bzero(password, sizeof password);
    return rc;
}
