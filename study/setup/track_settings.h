/* track_settings.h - the [track] options: which trackers a study reports to, and how. Plain values. */
#pragma once

#include "base/base.h"
#include "base/config/opt.h"

#define TRACKER_NAMES "wandb, mlflow, trackio, webhook" /* for help; web/track/track_check.c has the trackers */

struct track_settings {
    char trackers[OPT_STR_MAX]; /* "wandb,mlflow"; "": none */
    bool offline; /* rows stay in the store for `trawl sync`; no socket is opened */
    bool strict; /* a tracker that refuses at the start ends the command */
    char project[OPT_STR_MAX]; /* "": the tracker's own variable, else "trawl" */
    char entity[OPT_STR_MAX]; /* W&B */
    char tags[OPT_STR_MAX]; /* commas */
    char notes[OPT_STR_MAX];
    double interval_s; /* between posts of one run */
    double beat_s; /* an open run sends a heartbeat after this long without a post, where the tracker has heartbeats */
    double thin_s; /* at most one row of metrics of a run in this time; 0: all */
    int64_t requests_per_minute; /* of one tracker, over all runs; 0: the tracker's own */
    int64_t outbox_rows; /* rows of a study that may wait for trackers; 0: any number */
    double flush_s; /* how long the end of the command may wait for uploads */
    bool files; /* config, report and picture too */
    char wandb_url[OPT_STR_MAX], mlflow_url[OPT_STR_MAX], trackio_url[OPT_STR_MAX], webhook_url[OPT_STR_MAX];
    char ca_file[OPT_STR_MAX], client_cert[OPT_STR_MAX], client_key[OPT_STR_MAX];
};
extern const struct opt_table track_opt_table;
