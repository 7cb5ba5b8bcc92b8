/* routes.h - the table of paths, and the functions that answer them.
 * A route_fn writes its body into `out` and sets the headers in r->answer; what it fails with becomes a status of HTTP
 * and a JSON message. r and all that it points to are the caller's. */
#pragma once

#include <microhttpd.h>

#include "base/text/json.h"
#include "web/serve/request.h"

struct answer;
struct serve;
struct strbuf;
struct page_study;

struct request {
    const char *uri; /* as it came: "/study/a%20b?tab=trials" */
    struct target target;
    const char *study; /* of the path, or NULL */
    int64_t trial; /* of the path, or -1 */
    struct MHD_Connection *connection;
    cJSON *body; /* of a POST; borrowed */
    struct answer *answer; /* its status and headers */
    const char *form; /* body of a ROUTE_FORM's POST; NULL: GET */
    int64_t settled; /* settled of the study */
    int64_t version; /* s->version when the request came: what the answer may be kept for */
};

typedef enum status route_fn(struct serve *s, const struct request *r, struct strbuf *out, struct error *err);

enum route_kind {
    ROUTE_CACHED, /* kept until the data change */
    ROUTE_MODEL, /* kept until the data or the model change */
    ROUTE_SLOW, /* like ROUTE_CACHED, made by a thread of its own while the connection is suspended; one at a time */
    ROUTE_FRESH, /* made again each time */
    ROUTE_STREAM, /* server-sent events; run is NULL, serve_stream_open distinguishes the two */
    ROUTE_POST, /* changes something; from pages */
    ROUTE_CLIENT, /* the same from programs, by a thread of its own while the connection is suspended */
    ROUTE_FORM /* GET and POST of a form, changes nothing but the client's cookie */
};

struct route {
    const char *path; /* "api/v1/studies/{study}/trials/{trial}" */
    const char *params; /* "offset,limit": all that it takes */
    enum route_kind kind;
    route_fn *run;
    const char *summary;
    const char *type; /* of the answer; NULL: JSON */
};
enum status serve_stream_open(struct serve *s, const struct request *r, struct MHD_Response **ret_response,
                              struct error *err) MUST_USE;
extern const struct route serve_routes[];
extern const size_t serve_n_routes;
/* The route of a path; study and trial of r are filled. ST_NOTFOUND; ST_USAGE for a parameter it does not take. */
enum status route_find(struct serve *s, struct request *r, const struct route **ret_route, struct error *err) MUST_USE;

route_fn api_version, api_studies, api_study, api_openapi; /* api_study.c */
route_fn api_trials, api_front, api_hypervolume, api_timeline; /* api_trials.c */
route_fn api_trial, api_curves, api_log; /* api_trial.c */
route_fn api_insight, api_model_front, api_model_next, api_model_slice, api_model_contour; /* api_model.c */
route_fn api_briefing, api_calibration, api_seeds, api_lanes, api_compare; /* api_findings.c */
route_fn api_pick, api_export, api_report, api_control; /* api_pick.c */
route_fn api_client, api_leases; /* api_client.c */
route_fn page_index, page_asset, page_login; /* pages.c */

/* A page for people that says what failed; hint: NULL is fine. */
void page_failure(struct strbuf *out, int status, const char *error, const char *hint);
void api_put_json(struct strbuf *out, cJSON *json); /* the JSON, which is taken, as the body */
void api_put_train_command(struct strbuf *out, struct strbuf *line); /* without the last newline; NULL: null */
/* "export_command", `trawl export` of this rule from any directory, and the end of the answer. */
void api_put_export_command(const struct serve *s, const char *study, const char *rule, struct strbuf *out);
/* Columns of /trials; those from api_n_columns() on are the parameters. */
int api_n_columns(void);
const char *api_column_name(const struct page_study *p, int column);
void api_put_column(const struct page_study *p, size_t i, int column, struct strbuf *out);

/* Embedded files, made by embed.py at build time. */
struct asset {
    const char *name, *type;
    const unsigned char *bytes; /* gzip, as everything that speaks HTTP reads it */
    size_t n, n_plain;
};
extern const struct asset serve_assets[];
extern const size_t serve_n_assets;
const struct asset *asset_find(const char *name); /* NULL: none */
char *asset_text(const struct asset *asset); /* (n_plain) the caller's; NULL: it is broken */
