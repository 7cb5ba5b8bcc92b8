/* track_rows.c - turns the events of a sweep into rows of the outbox (web/track/track.h defines them), and a Stop on a
 * tracker's page into a question that the scheduler asks.
 *
 * Threads: all but on_stop_pressed is called by the scheduler's thread. Nothing here waits for a network, but for
 * track_rows_close. Failures of the store are failures of the sweep, like those of the trial's own rows. */
#include "sweep/controller/trial/track_rows.h"

#include "study/findings/believed.h"
#include "study/setup/setup.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/launch/proto.h"
#include "web/report/report.h"

#define LEAVE_S 3600 /* of a study that has ended, for its last rows; then they are for `trawl sync` */
#define FRONT_EVERY_S 10
#define COUNT_EVERY_S 30
#define SYSTEM_EVERY_S 15
#define STOPS_MAX 64
#define SYSTEMS_MAX 64
#define FILE_MAX_BYTES (4u << 20)

struct stop_asked {
    int64_t trial_id;
    char tracker[24];
};

struct track_rows {
    struct store *store;
    struct uploader *uploader;
    int64_t study_id;
    char study_name[128], trackers[OPT_STR_MAX];
    bool offline, single;
    const struct study *study; /* until it is left */
    const struct setup *setup;
    double left_s; /* when it was left; 0: not */
    char *text; /* of the last row */
    bool full; /* trackers lag so far that reports are left out for them */
    double counted_s; /* when the rows that wait were counted last; 0: never */
    int64_t n_since; /* rows since then */
    double front_s; /* when the last front was reported; 0: never */
    int64_t fronts; /* trials in it */
    struct {
        int64_t trial_id;
        double at_s;
    } systems[SYSTEMS_MAX]; /* when memory was last reported; a ring */
    size_t next_system;
    pthread_mutex_t lock; /* guards the two below, which the trackers' threads write */
    struct stop_asked stops[STOPS_MAX];
    size_t n_stops;
};

/* Called by a tracker's thread. */
static void on_stop_pressed(void *ctx, int64_t trial_id, const char *tracker)
{
    struct track_rows *h = ctx;
    bool known = false;

    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_stops; i++)
        known = known || h->stops[i].trial_id == trial_id;
    if (!known && h->n_stops < STOPS_MAX) {
        h->stops[h->n_stops] = (struct stop_asked){.trial_id = trial_id};
        snprintf(h->stops[h->n_stops].tracker, sizeof h->stops[0].tracker, "%s", tracker);
        h->n_stops++;
    }
    pthread_mutex_unlock(&h->lock);
}

bool track_rows_stop(struct track_rows *h, int64_t trial_id, char *ret_why, size_t size)
{
    bool found = false;

    if (h == NULL)
        return false;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n_stops && !found; i++) {
        found = h->stops[i].trial_id == trial_id;
        if (found) {
            snprintf(ret_why, size, "stopped on the page of %s", h->stops[i].tracker);
            h->stops[i] = h->stops[--h->n_stops];
        }
    }
    pthread_mutex_unlock(&h->lock);
    return found;
}

static void wake(struct track_rows *h)
{
    if (h->uploader != NULL)
        uploader_wake(h->uploader);
}

/* Takes json; the text is kept until the next row. */
static const char *row_text(struct track_rows *h, cJSON *json)
{
    mem_free(h->text);
    h->text = json_print(json, false);
    cJSON_Delete(json);
    wake(h);
    return h->text;
}

static enum status add_row(struct track_rows *h, int64_t trial_id, cJSON *json, struct error *err)
{
    const char *text = row_text(h, json);
    enum status rc;

    STORE_INSIST(rc, h->store, err, store_outbox_add(h->store, h->study_id, trial_id, text, err));
    return rc;
}

/* May a dispensable row be added? A tracker that is away for long must not fill the disk. */
static bool outbox_has_space(struct track_rows *h)
{
    int64_t most = h->setup->track.outbox_rows, n;
    double now_s = clock_mono_s();
    struct error why = {0};
    bool was = h->full;

    if (most == 0 || (h->counted_s > 0 && ++h->n_since < 1 + most / 20 && now_s - h->counted_s < COUNT_EVERY_S))
        return !h->full;
    h->counted_s = now_s;
    h->n_since = 0;
    if (store_outbox_count(h->store, h->study_id, NULL, &n, &why) != ST_OK)
        return !h->full;
    h->full = n >= (h->full ? most - most / 10 : most);
    if (h->full && !was)
        log_warn(
            "%s: %lld rows wait for %s, as many as track.outbox_rows allows; reports are left out there until some are "
            "sent, results are not, and the store keeps everything, continuing",
            h->study_name, (long long)n, h->trackers);
    if (was && !h->full)
        log_info("%s: %s get every report again", h->study_name, h->trackers);
    return !h->full;
}

static cJSON *row_begin(const char *type)
{
    cJSON *json = cJSON_CreateObject();

    json_add_str(json, "type", type);
    return json;
}

static cJSON *tags_json(const struct track_rows *h)
{
    cJSON *tags = cJSON_CreateArray();
    char tag[OPT_STR_MAX];

    for (const char *at = h->setup->track.tags; track_next_word(&at, tag, sizeof tag);)
        cJSON_AddItemToArray(tags, cJSON_CreateString(tag));
    return tags;
}

/* {"train": {"gamma": 0.99, ...}, ...} of an ini text. Keys that look like secrets (there are none of ours) are left
 * out. */
static cJSON *config_json(const char *ini)
{
    struct setup *setup = NULL;
    cJSON *json = NULL;
    struct error none = {0};

    if (setup_from_text(&setup, "trial", ini, &none) == ST_OK)
        json = setup_to_json(setup);
    setup_destroy(setup);
    cJSON_DeleteItemFromObjectCaseSensitive(json, "sweep"); /* belongs to the study, and is reported there */
    cJSON_DeleteItemFromObjectCaseSensitive(json, "track");
    return json;
}

static cJSON *params_json(const char *params)
{
    struct error none = {0};
    cJSON *json = NULL;

    return json_parse(params, strlen(params), &json, &none) == ST_OK ? json : NULL;
}

enum status track_rows_start(struct track_rows *h, const struct trial *t, bool from_zero, struct error *err)
{
    char name[160];

    if (h == NULL)
        return ST_OK;
    if (h->single)
        snprintf(name, sizeof name, "%.100s", h->study->name);
    else if (from_zero)
        snprintf(name, sizeof name, "%.100s-%lld-a%lld", h->study->name, (long long)t->number, (long long)t->attempt);
    else
        snprintf(name, sizeof name, "%.100s-%lld", h->study->name, (long long)t->number);
    cJSON *json = row_begin("start");
    if (from_zero)
        json_add_bool(json, "anew", true);
    json_add_i64(json, "attempt", t->attempt);
    json_add_i64(json, "number", t->number);
    json_add_str(json, "name", name);
    if (!h->single)
        json_add_str(json, "group", h->study->name);
    json_add_str(json, "origin", t->origin);
    json_add_i64(json, "seed", t->seed);
    json_add_str(json, "device", t->device != NULL ? t->device : "");
    json_add_str(json, "env", h->setup->env->name);
    json_add_str(json, "metric", h->study->metric);
    json_add_str(json, "program", program_text);
    json_add(json, "tags", tags_json(h));
    json_add(json, "config", config_json(t->config)); /* NULL: one of another version is left out */
    json_add(json, "params", params_json(t->params));
    return add_row(h, t->id, json, err);
}

char *track_rows_metrics_text(const struct metric_report *report)
{
    const struct metric_point *first = &report->points[0];
    char number[NUM_TEXT_MAX];
    STRBUF(text, PROTO_MAX_BYTES * 2);

    strbuf_addf(&text, "{\"type\":\"metrics\",\"env_steps\":%lld,\"wall_s\":%s,\"values\":{",
                (long long)first->env_steps, isfinite(first->wall_s) ? num_format_f64(first->wall_s, number) : "0");
    for (size_t i = 0; i < report->n; i++) {
        const char *quote = isfinite(report->points[i].value) ? "" : "\""; /* as json_add_f64_any writes it */
        strbuf_add(&text, i > 0 ? "," : "");
        json_write_str(&text, report->points[i].name);
        strbuf_addf(&text, ":%s%s%s", quote, num_format_f64(report->points[i].value, number), quote);
    }
    strbuf_add(&text, "}}");
    char *row = strbuf_take(&text);
    return row;
}

char *track_rows_metrics(struct track_rows *h, const struct metric_report *report)
{
    if (h == NULL || !outbox_has_space(h))
        return NULL;
    wake(h);
    return track_rows_metrics_text(report);
}

const char *track_rows_result(struct track_rows *h, const struct trial_result *r)
{
    if (h == NULL)
        return NULL;
    cJSON *json = row_begin("result");
    json_add_str(json, "state", trial_state_name(r->state));
    json_add_f64_any(json, "score", r->score);
    if (h->setup == NULL || !setup_is_program(h->setup)) /* which has a score and no perf */
        json_add_f64_any(json, "perf", r->perf);
    json_add_f64_any(json, "cost_s", r->cost_s);
    json_add_f64_any(json, "device_s", r->device_s);
    json_add_i64(json, "env_steps", r->env_steps);
    json_add_str(json, "reason", r->reason);
    return row_text(h, json);
}

enum status track_rows_system(struct track_rows *h, int64_t trial_id, int64_t env_steps, int64_t memory_bytes,
                              int64_t device_memory_bytes, struct error *err)
{
    double now_s = clock_mono_s();

    if (h == NULL || memory_bytes <= 0 || !outbox_has_space(h))
        return ST_OK;
    for (size_t i = 0; i < SYSTEMS_MAX; i++)
        if (h->systems[i].trial_id == trial_id && now_s - h->systems[i].at_s < SYSTEM_EVERY_S)
            return ST_OK;
    h->systems[h->next_system].trial_id = trial_id;
    h->systems[h->next_system].at_s = now_s;
    h->next_system = (h->next_system + 1) % SYSTEMS_MAX;
    cJSON *json = row_begin("system");
    json_add_i64(json, "env_steps", env_steps);
    cJSON *values = cJSON_AddObjectToObject(json, "values");
    json_add_i64(values, "system/memory_bytes", memory_bytes);
    if (device_memory_bytes > 0)
        json_add_i64(values, "system/device_memory_bytes", device_memory_bytes);
    return add_row(h, trial_id, json, err);
}

enum status track_rows_pause(struct track_rows *h, int64_t trial_id, int64_t env_steps, struct error *err)
{
    if (h == NULL)
        return ST_OK;
    cJSON *json = row_begin("pause");
    json_add_i64(json, "env_steps", env_steps);
    return add_row(h, trial_id, json, err);
}

/* -- the study -- */

static enum status study_row(struct track_rows *h, struct error *err)
{
    const struct study *s = h->study;
    cJSON *json = row_begin("study");

    json_add_str(json, "name", s->name);
    json_add_str(json, "group", s->name);
    json_add_str(json, "method", s->method);
    json_add_str(json, "metric", s->metric);
    json_add_str(json, "goal", s->maximize ? "maximize" : "minimize");
    json_add_i64(json, "seed", s->seed);
    json_add_str(json, "env", h->setup->env->name);
    json_add_str(json, "program", program_text);
    json_add(json, "tags", tags_json(h));
    json_add(json, "space", params_json(s->space));
    json_add(json, "config", config_json(s->config));
    return add_row(h, 0, json, err);
}

enum status track_rows_file(struct track_rows *h, int64_t trial_id, const char *name, const char *mime,
                            const char *text, struct error *err)
{
    if (h == NULL || !h->setup->track.files || strlen(text) > FILE_MAX_BYTES)
        return ST_OK;
    cJSON *json = row_begin("file");
    json_add_str(json, "name", name);
    json_add_str(json, "mime", mime);
    json_add_str(json, "text", text);
    return add_row(h, trial_id, json, err);
}

/* A study that was begun with trackers continues without them when their settings are no longer there (a daemon
 * that was started without the variables, a night after a reboot): rows wait for `trawl sync`. */
static enum status create_uploader(struct track_rows *h, const struct uploader_options *options, struct error *err)
{
    struct uploader_options offline = *options;
    struct track_settings settings = *options->settings;
    struct error why = {0};
    char **names = NULL;
    size_t n = 0;
    enum status rc = store_tracker_names(h->store, options->study_id, &names, &n, err);

    store_names_free(names, n);
    THEN(rc, uploader_create(&h->uploader, options, &why));
    if (rc == ST_CONFIG && n > 0 && !settings.strict) {
        log_warn("%s; reports to the trackers wait in the store for `trawl sync`, continuing", why.text);
        settings.offline = true;
        offline.settings = &settings;
        return uploader_create(&h->uploader, &offline, err);
    }
    return rc == ST_OK || why.status == ST_OK ? rc : FAIL(err, rc, "%s", why.text);
}

static struct track_rows *create_rows(struct store *store, const struct study *study, const struct setup *setup)
{
    struct track_rows *h = mem_alloc(sizeof *h);

    pthread_mutex_init(&h->lock, NULL);
    h->store = store;
    h->study = study;
    h->setup = setup;
    h->study_id = study->id;
    h->offline = setup->track.offline;
    snprintf(h->study_name, sizeof h->study_name, "%.120s", study->name);
    snprintf(h->trackers, sizeof h->trackers, "%s", setup->track.trackers);
    return h;
}

enum status track_rows_open_quiet(struct track_rows **ret_rows, struct store *store, const struct study *study,
                                  const struct setup *setup, struct error *err)
{
    char **names = NULL;
    size_t n = 0;

    *ret_rows = NULL;
    if (setup->track.trackers[0] == '\0')
        return ST_OK;
    TRY(store_tracker_names(store, study->id, &names, &n, err));
    store_names_free(names, n);
    if (n > 0)
        *ret_rows = create_rows(store, study, setup);
    return ST_OK;
}

static enum status open_rows(struct track_rows **ret_rows, struct store *store, const struct study *study,
                             const struct setup *setup, bool single, struct error *err)
{
    *ret_rows = NULL;
    if (setup->track.trackers[0] == '\0')
        return ST_OK;
    TRY(track_settings_check(&setup->track, err));
    struct track_rows *h = create_rows(store, study, setup);
    h->single = single;
    const struct uploader_options options = {.store_path = store_path(store),
                                             .study_id = study->id,
                                             .study = study->name,
                                             .settings = &setup->track,
                                             .program = program_text,
                                             .single = single,
                                             .on_stop = on_stop_pressed,
                                             .ctx = h};
    enum status rc = create_uploader(h, &options, err);
    if (rc == ST_OK && !uploader_wants_rows(h->uploader)) {
        (void)track_rows_close(h, NULL, NULL, 0);
        return ST_OK;
    }
    if (rc == ST_OK && !single)
        rc = study_row(h, err);
    if (rc == ST_OK && !single)
        rc = track_rows_file(h, 0, "config.ini", "text/plain", study->config, err);
    if (rc != ST_OK) {
        (void)track_rows_close(h, NULL, NULL, 0);
        return rc;
    }
    *ret_rows = h;
    return ST_OK;
}

enum status track_rows_open(struct track_rows **ret_rows, struct store *store, const struct study *study,
                            const struct setup *setup, struct error *err)
{
    return open_rows(ret_rows, store, study, setup, false, err);
}

enum status track_rows_open_single(struct track_rows **ret_rows, struct store *store, const struct study *study,
                                   const struct setup *setup, struct error *err)
{
    return open_rows(ret_rows, store, study, setup, true, err);
}

static cJSON *cell(double value)
{
    return isfinite(value) ? cJSON_CreateNumber(value) : cJSON_CreateNull();
}

/* [trial, cost, score, param, ...] of trial i. */
static cJSON *front_cells(const struct study_view *v, size_t i)
{
    cJSON *row = cJSON_CreateArray();
    char text[OPT_STR_MAX];

    cJSON_AddItemToArray(row, cell((double)v->trials[i].number));
    cJSON_AddItemToArray(row, cell(study_view_trial_cost(v, &v->trials[i])));
    cJSON_AddItemToArray(row, cell(v->trials[i].score));
    for (size_t p = 0; p < v->search.space.dim; p++) {
        search_show(&v->search, p, v->x[i][p], text, sizeof text);
        cJSON_AddItemToArray(row, cJSON_CreateString(text));
    }
    return row;
}

static cJSON *front_json(const struct study_view *v)
{
    cJSON *json = row_begin("front"), *columns = cJSON_CreateArray(), *rows = cJSON_CreateArray();
    size_t best = study_view_best_run(v);

    cJSON_AddItemToArray(columns, cJSON_CreateString("trial"));
    cJSON_AddItemToArray(columns, cJSON_CreateString("cost"));
    cJSON_AddItemToArray(columns, cJSON_CreateString(v->study.metric));
    for (size_t p = 0; p < v->search.space.dim; p++)
        cJSON_AddItemToArray(columns, cJSON_CreateString(v->search.space.params[p].key));
    for (size_t i = 0; i < v->n; i++)
        if (v->on_front[i])
            cJSON_AddItemToArray(rows, front_cells(v, i));
    json_add_i64(json, "trials", study_view_count(v, TRIAL_DONE));
    json_add_f64_any(json, "hypervolume", believed_volume(v, &v->ref, BELIEVED_NOW));
    json_add_f64_any(json, "cost_s", study_view_cost(v));
    json_add_f64_any(json, "best_score", best < v->n ? study_view_run_score(v, best) : (double)NAN);
    json_add(json, "columns", columns);
    json_add(json, "rows", rows);
    return json;
}

static enum status picture_row(struct track_rows *h, const struct study_view *v, enum report_format format,
                               const char *name, const char *mime, struct error *err)
{
    struct error why = {0};
    enum status rc = ST_OK;

    if (!h->setup->track.files || study_view_count(v, TRIAL_DONE) == 0)
        return ST_OK;
    STRBUF(out, FILE_MAX_BYTES);
    if (report_write(v, NULL, format, &out, &why) == ST_OK && out.status == ST_OK)
        rc = track_rows_file(h, 0, name, mime, out.text, err);
    else
        log_debug("no %s for the trackers: %s", name, why.text);
    return rc;
}

static enum status front_rows(struct track_rows *h, const struct study_view *v, struct error *err)
{
    h->front_s = clock_mono_s();
    h->fronts = study_view_count(v, TRIAL_DONE);
    TRY(add_row(h, 0, front_json(v), err));
    return picture_row(h, v, REPORT_SVG, "front.svg", "image/svg+xml", err);
}

enum status track_rows_front(struct track_rows *h, const struct study_view *v, struct error *err)
{
    if (h == NULL || (h->front_s > 0 && clock_mono_s() - h->front_s < FRONT_EVERY_S) ||
        study_view_count(v, TRIAL_DONE) == h->fronts || !outbox_has_space(h))
        return ST_OK;
    return front_rows(h, v, err);
}

/* From the store: a run's view has forgotten what its ended trials were made of (forget_texts, sched_study.c). */
static enum status report_row(struct track_rows *h, const struct study_view *v, struct error *err)
{
    struct error why = {0};
    AT_END(study_view_free) struct study_view whole = {0};

    if (study_view_load(h->store, v->study.name, &whole, &why) != ST_OK) {
        log_debug("no report.html for the trackers: %s", why.text);
        return ST_OK;
    }
    return picture_row(h, &whole, REPORT_HTML, "report.html", "text/html", err);
}

static enum status last_rows(struct track_rows *h, const struct study_view *v, const char *reason, struct error *err)
{
    if (study_view_count(v, TRIAL_DONE) != h->fronts)
        TRY(front_rows(h, v, err));
    TRY(report_row(h, v, err));
    cJSON *json = row_begin("study_end");
    json_add_str(json, "reason", reason);
    json_add_i64(json, "trials", study_view_count(v, TRIAL_DONE));
    return add_row(h, 0, json, err);
}

static void log_rest(const struct track_rows *h, const struct upload_counts *counts, double seconds)
{
    if (counts->waiting == 0)
        return;
    STRBUF(command, 4096);
    strbuf_add(&command, "trawl sync --store ");
    strbuf_add_shell(&command, store_path(h->store));
    if (h->offline)
        log_info("%s: %lld row(s) for %s wait in the store; `%s` sends them", h->study_name, (long long)counts->waiting,
                 h->trackers, command.text);
    else
        log_warn("%s: %lld row(s) for %s were not sent in %.0f s%s%s; they wait in the store, `%s` sends them",
                 h->study_name, (long long)counts->waiting, h->trackers, seconds, counts->text[0] != '\0' ? ": " : "",
                 counts->text, command.text);
}

int64_t track_rows_study(const struct track_rows *h)
{
    return h->study_id;
}

void track_rows_leave(struct track_rows *h, const struct study_view *v, const char *reason)
{
    struct error err = {0};

    if (last_rows(h, v, reason, &err) != ST_OK)
        log_warn("the trackers will miss the study's end: %s", err.text);
    h->study = NULL;
    h->setup = NULL;
    h->left_s = clock_mono_s();
    uploader_hurry(h->uploader);
}

bool track_rows_left(struct track_rows *h)
{
    struct upload_counts counts;

    uploader_counts(h->uploader, &counts);
    return counts.idle || clock_mono_s() - h->left_s > LEAVE_S;
}

bool track_rows_close(struct track_rows *h, const struct study_view *v, const char *reason, double seconds)
{
    struct upload_counts counts = {0};
    struct error err = {0};
    bool logs = v != NULL || (h != NULL && (h->left_s > 0 || h->single));

    if (h == NULL)
        return true;
    if (v != NULL && last_rows(h, v, reason, &err) != ST_OK)
        log_warn("the trackers will miss the study's end: %s", err.text);
    if (h->uploader != NULL)
        uploader_close(h->uploader, seconds, &counts);
    if (logs)
        log_rest(h, &counts, h->left_s > 0 ? clock_mono_s() - h->left_s : seconds);
    pthread_mutex_destroy(&h->lock);
    mem_free(h->text);
    mem_free(h);
    return counts.waiting == 0;
}
