/* routes.c - every address that this server answers, in one table: it finds the handler, refuses parameters that it
 * does not know, and is what /api/v1/openapi.json is written from. */
#include "web/serve/routes.h"

#include "web/serve/events.h"
#include "web/serve/playing.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"
#include "web/serve/mhd.h"

#define V1 "api/v1/"
#define STUDY V1 "studies/{study}"
#define TRIAL STUDY "/trials/{trial}"
#define PICK_PARAMS "rule,budget_s,score,trial"

const struct route serve_routes[] = {
    {V1 "version", "", ROUTE_FRESH, api_version, "Program, store, and what this server may do", NULL},
    {V1 "openapi.json", "", ROUTE_FRESH, api_openapi, "This description", NULL},
    {V1 "events", "study", ROUTE_STREAM, NULL, "What changes in the store, as server-sent events", "text/event-stream"},
    {V1 "studies", "", ROUTE_CACHED, api_studies, "All studies with state, progress and best", NULL},
    {STUDY, "", ROUTE_CACHED, api_study, "One study with space, reference point and config", NULL},
    {STUDY "/trials", "offset,limit,sort,order,state,front,fields,since", ROUTE_CACHED, api_trials,
     "Trials as columns and rows", NULL},
    {STUDY "/front", "", ROUTE_MODEL, api_front, "The front, with the model's intervals", NULL},
    {STUDY "/insight", "", ROUTE_MODEL, api_insight, "Recommended trial, importance, bounds leaned on", NULL},
    {STUDY "/model/front", "", ROUTE_MODEL, api_model_front, "The front that the model predicts", NULL},
    {STUDY "/model/slice", "param,at", ROUTE_MODEL, api_model_slice, "Score and cost along one parameter", NULL},
    {STUDY "/model/contour", "x,y,at", ROUTE_MODEL, api_model_contour, "Score and cost over two parameters", NULL},
    {STUDY "/model/next", "", ROUTE_MODEL, api_model_next, "What the search would try next, and why", NULL},
    {STUDY "/pick", PICK_PARAMS, ROUTE_MODEL, api_pick, "The trial for a budget or a score", NULL},
    {STUDY "/export", PICK_PARAMS ",format", ROUTE_CACHED, api_export, "A trial's config, as `trawl export` writes it",
     "text/plain; charset=utf-8"},
    {STUDY "/report", "format", ROUTE_SLOW, api_report, "The report of `trawl report`", "text/html; charset=utf-8"},
    {STUDY "/control", "", ROUTE_POST, api_control, "Pause, continue, stop, add trials (only with --control)", NULL},
    {STUDY "/briefing", "since_ms", ROUTE_MODEL, api_briefing, "Gained, to take, failed, and whether to continue",
     NULL},
    {STUDY "/calibration", "", ROUTE_SLOW, api_calibration, "Fresh seeds against what was predicted before", NULL},
    {STUDY "/lanes", "", ROUTE_FRESH, api_lanes, "What runs now on which device, and when it ends", NULL},
    {V1 "compare", "studies", ROUTE_SLOW, api_compare, "Several studies to one reference", NULL},
    {STUDY "/hypervolume", "points", ROUTE_CACHED, api_hypervolume, "Hypervolume over trials and time", NULL},
    {STUDY "/timeline", "", ROUTE_CACHED, api_timeline, "Which device ran what, when", NULL},
    {STUDY "/trials:ask", "", ROUTE_CLIENT, api_client, "Takes the next trial, to train it elsewhere", NULL},
    {STUDY "/trials:enqueue", "", ROUTE_CLIENT, api_client, "Tries these values next", NULL},
    {STUDY "/trials:add", "", ROUTE_CLIENT, api_client, "Adds a trial that was trained elsewhere", NULL},
    {TRIAL ":report", "", ROUTE_CLIENT, api_client, "Metrics of a leased trial; answers whether to stop", NULL},
    {TRIAL ":tell", "", ROUTE_CLIENT, api_client, "The result of a leased trial", NULL},
    {TRIAL, "against", ROUTE_CACHED, api_trial, "One trial: all of it, its config with origin and differences", NULL},
    {TRIAL "/curves", "metrics,points", ROUTE_CACHED, api_curves, "Learning curves, thinned", NULL},
    {TRIAL "/log", "bytes", ROUTE_FRESH, api_log, "The end of its log", NULL},
    {TRIAL "/seeds", "", ROUTE_CACHED, api_seeds, "All runs of its config, their means and bands", NULL},
    {TRIAL "/leases", "", ROUTE_FRESH, api_leases,
     "Which clients had it, and the results that they sent, late ones too", NULL},
    {TRIAL "/play", "seed,greedy,fps,csrf", ROUTE_STREAM, NULL, "Its policy playing, as server-sent events",
     "text/event-stream"},
    {"login", "next", ROUTE_FORM, page_login, "The form that takes the token", "text/html; charset=utf-8"},
    {"assets/{folder}/{file}", "", ROUTE_CACHED, page_asset, "An embedded file", "application/octet-stream"},
    {"assets/{file}", "", ROUTE_CACHED, page_asset, "An embedded file", "application/octet-stream"},
};
const size_t serve_n_routes = COUNT(serve_routes);

/* Pages: any address below these, with any parameters, for the state of a page is in its address. */
static const struct route index_route = {"", "", ROUTE_FRESH, page_index, "The page", "text/html; charset=utf-8"};

static bool is_page(const struct target *t)
{
    return t->n_segments == 0 || strcmp(t->segments[0], "study") == 0 || strcmp(t->segments[0], "compare") == 0 ||
           (t->n_segments == 1 && strcmp(t->segments[0], "index.html") == 0);
}

/* *ret_n: bytes of the trial's number. */
static bool fits(const struct route *route, const struct target *t, const char **ret_study, const char **ret_trial,
                 size_t *ret_n, const char **ret_file)
{
    const char *at = route->path;

    for (size_t i = 0; i < t->n_segments; i++) {
        size_t len = strcspn(at, "/");
        if (len == 0)
            return false;
        if (strncmp(at, "{study}", len) == 0 && len == 7)
            *ret_study = t->segments[i];
        else if (strncmp(at, "{trial}", 7) == 0 && len >= 7) { /* "{trial}:tell" */
            size_t all = strlen(t->segments[i]), rest = len - 7;
            if (all < rest || strncmp(t->segments[i] + all - rest, at + 7, rest) != 0)
                return false;
            *ret_trial = t->segments[i];
            *ret_n = all - rest;
        } else if ((len == 6 && strncmp(at, "{file}", len) == 0) || (len == 8 && strncmp(at, "{folder}", len) == 0))
            *ret_file = t->segments[i];
        else if (strlen(t->segments[i]) != len || strncmp(at, t->segments[i], len) != 0)
            return false;
        at += len;
        if (*at == '/')
            at++;
        else if (i + 1 < t->n_segments)
            return false;
    }
    return *at == '\0';
}

static enum status check_params(const struct route *route, const struct target *t, struct error *err)
{
    for (size_t i = 0; i < t->n_query; i++)
        if (t->query[i].key[0] == '\0' || strchr(t->query[i].key, ',') != NULL ||
            !list_has(route->params, t->query[i].key))
            return FAIL(err, ST_USAGE, "no parameter '%.40s' here; %s%s", t->query[i].key,
                        route->params[0] != '\0' ? "known are " : "this address takes none", route->params);
    return ST_OK;
}

enum status route_find(struct serve *s, struct request *r, const struct route **ret_route, struct error *err)
{
    if (is_page(&r->target)) {
        *ret_route = &index_route;
        return ST_OK;
    }
    for (size_t i = 0; i < serve_n_routes; i++) {
        const char *study = NULL, *trial = NULL, *file = NULL;
        char number[24];
        size_t n = 0;
        if (!fits(&serve_routes[i], &r->target, &study, &trial, &n, &file))
            continue;
        r->study = study;
        r->version = file != NULL ? 1 : atomic_load(&s->version);
        TRY(check_params(&serve_routes[i], &r->target, err));
        snprintf(number, sizeof number, "%.*s", (int)(n < sizeof number ? n : 0), trial != NULL ? trial : "");
        if (trial != NULL && (!num_parse_i64(number, &r->trial) || r->trial < 0))
            return FAIL(err, ST_USAGE, "'%.40s' is not a trial; trials are numbered from 0", trial);
        if (study != NULL && serve_routes[i].kind != ROUTE_CLIENT) { /* those the controller finds */
            struct page_study *p = serve_lock_study(s, study, err);
            if (p == NULL)
                return err->status;
            r->version = p->version;
            r->settled = p->settled;
            serve_unlock(s);
        }
        *ret_route = &serve_routes[i];
        return ST_OK;
    }
    return FAIL(err, ST_NOTFOUND, "nothing is here; /api/v1/openapi.json lists every address, / is the page");
}

enum status serve_stream_open(struct serve *s, const struct request *r, struct MHD_Response **ret_response,
                              struct error *err)
{
    if (r->trial >= 0)
        return play_response(s, r, ret_response, err);
    char problem[ERROR_TEXT_MAX];
    const char *last = mhd.lookup_connection_value(r->connection, MHD_HEADER_KIND, "Last-Event-ID");

    pthread_rwlock_rdlock(&s->data);
    memcpy(problem, s->store_error, sizeof problem);
    pthread_rwlock_unlock(&s->data);
    *ret_response = events_response(s->events, r->connection, target_query(&r->target, "study"), last, s->set.program,
                                    atomic_load(&s->version), problem[0] != '\0' ? problem : NULL);
    return *ret_response != NULL ? ST_OK
                                 : FAIL(err, ST_BUSY, "too many event streams are open; close a page and try again");
}
