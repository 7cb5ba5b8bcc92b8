/* site_priv.h - what the files of web/site/ share: a site that is being written. */
#pragma once

#include "base/text/json.h"
#include "web/site/site.h"

struct serve;

#define SITE_MAX_BYTES (256u << 20) /* of one file */

struct site {
    const struct site_settings *set;
    struct serve *serve; /* owned; it has read the store once */
    struct site_written written;
    const char *study; /* now */
    char folder[24]; /* of the study in data/: "s0" */
};

/* data/NAME.js of a JSON text. */
enum status site_data(struct site *w, const char *name, const char *json, struct error *err) MUST_USE;
/* The server's answer to GET /api/v1/studies/STUDY<tail>, appended; waits for a model. */
enum status site_take(struct site *w, const char *tail, struct strbuf *out, struct error *err) MUST_USE;
/* Appends "tail":answer, with a comma unless it is the first of an object; what the server refuses becomes {"refused":
 * text}. */
void site_add(struct site *w, const char *key, const char *tail, struct strbuf *out);
/* The answer as JSON; NULL: refused. Caller deletes it. */
cJSON *site_json(struct site *w, const char *tail);

/* Pages and data of all its trials; front: a JSON answer to /front, study: to the study itself. */
enum status site_trials(struct site *w, const cJSON *study, const cJSON *front, struct error *err) MUST_USE;
