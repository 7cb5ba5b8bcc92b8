/* track_settings.c - the rows of the [track] options. */
#include "study/setup/track_settings.h"

static const struct opt_def track_defs[] = {
    OPT_ROW_STR(struct track_settings, trackers, "",
                "Names the experiment trackers that get all reports, with commas: " TRACKER_NAMES "; short: --track."),
    OPT_ROW_BOOL(struct track_settings, offline, "false",
                 "Keeps reports to trackers in the store until `trawl sync`; no connection is made."),
    OPT_ROW_BOOL(struct track_settings, strict, "false",
                 "Ends the command when a tracker refuses the login at the start; else the refusal is logged and "
                 "training continues."),
    OPT_ROW_STR(
        struct track_settings, project, "",
        "Names the project (W&B, Trackio) or experiment (MLflow); empty: the tracker's own variable, else trawl or, in "
        "MLflow, the study's name."),
    OPT_ROW_STR(struct track_settings, entity, "", "Names the W&B user or team; empty: the login's default."),
    OPT_ROW_STR(struct track_settings, tags, "", "Puts these tags on every run, with commas."),
    OPT_ROW_STR(struct track_settings, notes, "", "Describes the study to readers of the tracker."),
    OPT_ROW_FLOAT(struct track_settings, interval_s, "15", 0.1, 3600, OPT_FIXED, 0, 0, "s",
                  "Waits at least this long between two posts of one run."),
    OPT_ROW_FLOAT(
        struct track_settings, beat_s, "30", 0.1, 240, OPT_FIXED, 0, 0, "s",
        "Sends W&B a heartbeat of a run that has reported nothing for this long; without one W&B shows it as crashed "
        "after about 5 minutes."),
    OPT_ROW_FLOAT(struct track_settings, thin_s, "0", 0, 3600, OPT_FIXED, 0, 0, "s",
                  "Sends at most one report of each run in this time, the last one; 0: all."),
    OPT_ROW_INT(struct track_settings, requests_per_minute, "0", 0, 100000, OPT_FIXED, 0, 0, "1/min",
                "Bounds the requests to one tracker over all runs; 0: what suits the tracker."),
    OPT_ROW_INT(struct track_settings, outbox_rows, "1000000", 0, INT64_C(1000000000000), OPT_FIXED, 0, 0, "rows",
                "Bounds the rows of a study that wait in the store for trackers (about 1 GB at the default); beyond "
                "it trackers miss reports but still get starts, results and the final front; 0: no bound."),
    OPT_ROW_FLOAT(struct track_settings, flush_s, "30", 0, 3600, OPT_FIXED, 0, 0, "s",
                  "Lets the end of the command wait this long for uploads; `trawl sync` sends the rest."),
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
    .n_defs = COUNT(track_defs),
    .settings_size = sizeof(struct track_settings),
};
