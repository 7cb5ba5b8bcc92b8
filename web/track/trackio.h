/* trackio.h - types and functions shared by the files of the Trackio client. */
#pragma once

#include "web/track/track_util.h"

#define TRACKIO_PROJECT_MAX 128

struct trackio_settings {
    char url[OPT_STR_MAX]; /* no slash at the end, no token */
    char project[TRACKIO_PROJECT_MAX + 1];
    char token[TRACK_SECRET_MAX]; /* a secret */
    const char *token_source; /* "TRACKIO_WRITE_TOKEN", for messages */
    bool is_space; /* on Hugging Face: the login is theirs */
};
/* [track] and environment. */
enum status trackio_settings_read(const struct track_settings *track, struct trackio_settings *ret_settings,
                                  struct error *err) MUST_USE;

struct trackio {
    struct track_client c;
    struct trackio_settings settings;
};

/* -- trackio_rows.c: rows of the outbox as Trackio's, into t->body -- */

/* The last step that was sent, from run->state. */
int64_t trackio_last_step(const struct track_run *run);
/* Adds one row of bulk_log, with a comma where it needs one; moves *step. False: Trackio has no place for the row. */
bool trackio_add_row(struct trackio *t, struct track_run *run, const struct track_row *row, int64_t *step);
/* The body of bulk_alert for a trial that failed or was lost: Trackio has no state of a run. False: there is nothing to
 * alert of. */
bool trackio_make_alert(struct trackio *t, const struct track_run *run, const struct track_row *row);
