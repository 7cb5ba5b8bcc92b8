/* wandb.h - types and functions shared by the files of the W&B client. */
#pragma once

#include "web/track/track_util.h"

#define WANDB_KEY_MAX 256
#define WANDB_NAME_MAX 256

enum wandb_resume { WANDB_RESUME_ALLOW, WANDB_RESUME_MUST, WANDB_RESUME_NEVER };

struct wandb_settings {
    char base_url[OPT_STR_MAX]; /* no slash at the end */
    char app_url[OPT_STR_MAX];
    char api_key[WANDB_KEY_MAX]; /* a secret */
    const char *key_source; /* "WANDB_API_KEY", "netrc" */
    char entity[WANDB_NAME_MAX], project[WANDB_NAME_MAX], job_type[WANDB_NAME_MAX];
    char run_id[WANDB_NAME_MAX], run_name[WANDB_NAME_MAX], run_group[WANDB_NAME_MAX]; /* for a single training; "" */
    enum wandb_resume resume; /* may run_id exist already? */
    const char *env_tags; /* from WANDB_TAGS, in addition to track.tags, which are in the rows; NULL */
    char notes[OPT_STR_MAX];
    char username[WANDB_NAME_MAX], email[WANDB_NAME_MAX]; /* the person for whom a service's key acts */
    char proxy[OPT_STR_MAX];
    double timeout_s, stream_timeout_s; /* of a GraphQL request; of one with data */
    bool insecure;
    enum track_mode mode;
};
/* [track], environment, settings files, netrc. A missing key is an error unless the mode is not online. */
enum status wandb_settings_read(const struct track_settings *track, struct wandb_settings *ret_settings,
                                struct error *err) MUST_USE;

struct wandb {
    struct track_client c;
    struct wandb_settings settings;
    char entity[WANDB_NAME_MAX]; /* owner of the runs; "" until the login returned it */
    bool conflict; /* the last upsert was answered with 409 */
    bool logged_tag; /* it was logged that a tag is too long */
};

/* -- wandb_lines.c: texts of the file stream -- */

/* {"_step": ..., "score": NaN}: non-finite numbers as W&B needs them in the text of a line. Also merges the values
 * into summary. */
void wandb_history_line(struct strbuf *sb, const struct track_row *row, const cJSON *values, int64_t step,
                        int64_t started_ms, cJSON *summary);
void wandb_event_line(struct strbuf *sb, const struct track_row *row, int64_t started_ms);
/* {"train": {"value": {...}}, ..., "_wandb": ...} of a "start" or "study" row, as text. */
void wandb_config_text(struct strbuf *sb, const struct wandb *w, const struct track_row *row);

/* -- wandb_files.c -- */

/* Uploads a small file of the run and lists it in the run. */
void wandb_file_send(struct wandb *w, struct track_run *run, const char *name, const char *mime, const char *bytes,
                     size_t n, struct track_reply *reply);
/* Files and the history line of a "front" row. */
void wandb_front_send(struct wandb *w, struct track_run *run, const struct track_row *row, struct track_reply *reply);
/* A picture as a page that W&B shows beside the curves, and the history line that names it. */
void wandb_picture_send(struct wandb *w, struct track_run *run, const struct track_row *row, const char *svg,
                        struct track_reply *reply);

/* -- wandb.c -- */

/* POST of one GraphQL operation; variables is taken. The answer's "data" is borrowed from w->reply; NULL unless
 * DONE. */
const cJSON *wandb_graphql(struct wandb *w, const char *operation, const char *query, cJSON *variables,
                           struct track_reply *reply);
/* Finds or makes the run, by run->state or its key, as "start" and "study" rows describe it. */
void wandb_run_start(struct wandb *w, struct track_run *run, const struct track_row *row, struct track_reply *reply);
/* The server no longer knows the run: makes it again, once. */
void wandb_run_remake(struct wandb *w, struct track_run *run, struct track_reply *reply);
/* Sends one line of the history at a step, or at the first free step after it (W&B's client never sends two lines of
 * one step), with the summary. Takes values. */
void wandb_line_send(struct wandb *w, struct track_run *run, const struct track_row *row, cJSON *values, int64_t step,
                     struct track_reply *reply);
/* Takes body. */
void wandb_stream(struct wandb *w, struct track_run *run, cJSON *body, struct track_reply *reply);
const char *wandb_run_id(const struct track_run *run);
int64_t wandb_state_i64(const struct track_run *run, const char *key, int64_t otherwise);
void wandb_state_set_i64(struct track_run *run, const char *key, int64_t value);
