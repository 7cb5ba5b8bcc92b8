/* spool.h - results on the disk until they are acknowledged, one file each. Several threads and processes may use one
 * folder: a result that two of them send counts once. Plain functions. */
#pragma once

#include "base/base.h"
#include "base/text/json.h"

struct spooled {
    int64_t trial;
    cJSON *body; /* of the `tell` request; owned */
    char path[PATH_MAX]; /* of its file */
};
/* $XDG_STATE_HOME/trawl/agent, or ~/.local/state/trawl/agent. */
enum status spool_default(char *buf, size_t size, struct error *err) MUST_USE;
/* Makes the folder, for its owner alone: a result holds the token of its lease. */
enum status spool_open(const char *dir, struct error *err) MUST_USE;
/* On the disk when it returns. place: where it is to be sent, without a secret; ret_path: (PATH_MAX). */
enum status spool_put(const char *dir, const char *place, const char *study, int64_t trial, const cJSON *body,
                      char *ret_path, struct error *err) MUST_USE;
/* Those of this place and study that wait; *ret_list: spool_list_free. A file that is damaged is left with a
 * warning. */
enum status spool_list(const char *dir, const char *place, const char *study, struct spooled **ret_list, size_t *ret_n,
                       struct error *err) MUST_USE;
void spool_list_free(struct spooled *list, size_t n);
void spool_done(const char *path); /* acknowledged */
void spool_refused(const char *path); /* kept under another name, for a person */
