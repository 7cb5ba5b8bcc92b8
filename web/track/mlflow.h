/* mlflow.h - types and functions shared by the files of the MLflow client. */
#pragma once

#include "web/track/track_util.h"

#define MLFLOW_METRICS_MAX 1000 /* entries of one batch, all kinds together too */
#define MLFLOW_KEYS_MAX 100 /* different metrics of one batch: older servers fail at a resend of more */
#define MLFLOW_PARAMS_MAX 100 /* params of one batch, and as many tags */
#define MLFLOW_BODY_MAX 900000 /* servers accept 1,000,000 bytes */
#define MLFLOW_PARAM_VALUE_MAX 6000
#define MLFLOW_TAG_VALUE_MAX 5000
#define MLFLOW_ID_MAX 64

struct mlflow_settings {
    char url[OPT_STR_MAX]; /* no slash at the end, no login */
    char secrets[2][TRACK_SECRET_MAX]; /* parts of the login that must never be in a message */
    const char *auth_source; /* "MLFLOW_TRACKING_TOKEN", for messages */
    char experiment[OPT_STR_MAX * 2]; /* name; "" with an id */
    char experiment_id[MLFLOW_ID_MAX]; /* from MLFLOW_EXPERIMENT_ID; "": by name */
    char ca_file[OPT_STR_MAX], client_cert[OPT_STR_MAX];
    double timeout_s;
    bool insecure;
};
/* [track], environment, ~/.mlflow/credentials, netrc. study: its name. ret_auth: the login as a header; "": none. */
enum status mlflow_settings_read(const struct track_settings *track, const char *study,
                                 struct mlflow_settings *ret_settings, char *ret_auth, size_t auth_size,
                                 struct error *err) MUST_USE;

struct mlflow {
    struct track_client c;
    struct mlflow_settings settings;
    char experiment_id[MLFLOW_ID_MAX]; /* "": not known yet */
    char parent_id[MLFLOW_ID_MAX]; /* the study's run; "": not known yet */
    bool logged_artifacts; /* it was logged that the server does not accept files */
    struct mlflow_batch *batch;
};

/* -- mlflow_runs.c -- */

/* With the login; refusals are explained. */
void mlflow_request(struct mlflow *m, const struct http_request *request, struct track_reply *reply);
/* GET (body NULL) or POST of "runs/log-batch"; the answer is in m->reply.json. */
void mlflow_call(struct mlflow *m, const char *path, const struct strbuf *body, struct track_reply *reply);
/* Did the server answer with this error_code? */
bool mlflow_is_error(const struct mlflow *m, const char *error_code);
/* Takes over the step's verdict and adds up requests and skips; was it TRACK_DONE? */
bool mlflow_add(struct track_reply *reply, const struct track_reply *step);
/* False: reply has the reason. */
bool mlflow_ensure_experiment(struct mlflow *m, struct track_reply *reply);
bool mlflow_ensure_run(struct mlflow *m, struct track_run *run, const struct track_row *row, struct track_reply *reply);
const char *mlflow_run_id(const struct track_run *run); /* NULL: no id yet */
/* end_ms 0: the run continues. */
void mlflow_set_status(struct mlflow *m, struct track_run *run, const char *status, int64_t end_ms,
                       struct track_reply *reply);

/* -- mlflow_batch.c: entries of runs/log-batch -- */

enum mlflow_kind { MLFLOW_METRIC, MLFLOW_PARAM, MLFLOW_TAG };

struct mlflow_batch *mlflow_batch_create(void) MUST_USE;
void mlflow_batch_destroy(struct mlflow_batch *batch);
void mlflow_batch_clear(struct mlflow_batch *batch);
/* False: it is full, send it first. Keys and texts are copied. */
bool mlflow_batch_metric(struct mlflow_batch *batch, const char *key, double value, int64_t ms, int64_t step);
bool mlflow_batch_text(struct mlflow_batch *batch, enum mlflow_kind kind, const char *key, const char *value);
/* Sends and empties it. Entries that the server cannot hold are found by halving and left out (a changed parameter
 * becomes a tag); reply->n_skipped and n_requests are added to. */
void mlflow_batch_send(struct mlflow *m, struct track_run *run, struct track_reply *reply);
/* After a refusal: is the run deleted, or unknown to the server? True: reply is final. */
bool mlflow_gone(struct mlflow *m, struct track_run *run, struct track_reply *reply);
/* A key as MLflow allows it: other characters become _xHH_, and different keys stay different. */
void mlflow_key(struct strbuf *sb, const char *key);
