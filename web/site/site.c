/* site.c - a folder with the pages of `trawl serve` and the answers that they need, as the server itself gives them.
 *
 *   index.html, assets/pages.js ...   the pages, as one script: a module does not load from disk
 *   data/site.js                      version, list of studies, folders
 *   data/sN/study.js, trials.js ...   answers of a study by their address
 *   data/sN/trials/K.js               a hundred trials each: config, curves, seeds, log
 *   data/sN/models/AT.js              slices and maps of two parameters through a trial: a pick, or one of the front
 *   data/sN/play/N.js                 a policy, or what it played
 *   games/NAME.js                     a game as WebAssembly, for the policies */
#include "web/site/site.h"

#include "base/text/base64.h"
#include "base/os/file.h"
#include "web/serve/answer_cache.h"
#include "web/text/put.h"
#include "web/serve/routes.h"
#include "web/serve/serve.h"
#include "web/site/site_priv.h"

#include <microhttpd.h>
#include <sys/stat.h>

#define MODEL_WAIT_MS 50
#define FRONT_PAIRS_MAX 400 /* maps through trials of the front, some 15 KB each */

/* -- files -- */

static enum status make_dir(const struct site *w, const char *name, struct error *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", w->set->dir, name);
    return file_make_folders(path, 0777, err);
}

/* Writes DIR/NAME. */
static enum status write_file(struct site *w, const char *name, const char *bytes, size_t n, struct error *err)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", w->set->dir, name);
    w->written.n_files++;
    w->written.n_bytes += n;
    return file_write_all(path, bytes, n, err);
}

enum status site_data(struct site *w, const char *name, const char *json, struct error *err)
{
    char path[96];
    STRBUF(out, SITE_MAX_BYTES);

    snprintf(path, sizeof path, "data/%s.js", name);
    strbuf_addf(&out, "trawlData(\"%s\",", name);
    strbuf_add(&out, json);
    strbuf_add(&out, ");\n");
    TRY(strbuf_status(&out, path, err));
    return write_file(w, path, out.text, out.len, err);
}

/* -- answers -- */

/* Every byte by its number: a study may be named "..". */
static void put_encoded(struct strbuf *uri, const char *text)
{
    for (; *text != '\0'; text++)
        strbuf_addf(uri, "%%%02X", (unsigned char)*text);
}

static enum status take(struct site *w, const char *uri, struct strbuf *out, struct error *err)
{
    for (;;) {
        struct answer *a;
        TRY(serve_answer(w->serve, uri, &a, err));
        bool computing = a->status == MHD_HTTP_ACCEPTED;
        size_t n = a->n;
        while (n > 0 && a->bytes[n - 1] == '\n')
            n--;
        if (!computing)
            strbuf_add_n(out, a->bytes, n);
        answer_release(a);
        if (!computing)
            return strbuf_status(out, uri, err);
        (void)usleep(1000 * MODEL_WAIT_MS);
    }
}

enum status site_take(struct site *w, const char *tail, struct strbuf *out, struct error *err)
{
    STRBUF(uri, 8192);

    strbuf_add(&uri, "/api/v1/studies/");
    put_encoded(&uri, w->study);
    strbuf_add(&uri, tail);
    TRY(strbuf_status(&uri, "an address", err));
    return take(w, uri.text, out, err);
}

void site_add(struct site *w, const char *key, const char *tail, struct strbuf *out)
{
    struct error err = {0};
    STRBUF(answer, SITE_MAX_BYTES);

    if (out->text[out->len - 1] != '{')
        strbuf_add(out, ",\n");
    put_json(out, "%s:", key);
    if (site_take(w, tail, &answer, &err) == ST_OK)
        strbuf_add(out, answer.text);
    else
        put_json(out, "{'refused':%s}", err.text);
}

cJSON *site_json(struct site *w, const char *tail)
{
    cJSON *json = NULL;
    STRBUF(text, SITE_MAX_BYTES);

    if (site_take(w, tail, &text, NULL) != ST_OK || json_parse(text.text, text.len, &json, NULL) != ST_OK)
        json = NULL;
    return json;
}

/* -- one study -- */

/* Ends the object, writes the file and frees the text. */
static enum status end_file(struct site *w, const char *name, struct strbuf *out, enum status rc, struct error *err)
{
    char path[96];

    strbuf_add(out, "}");
    snprintf(path, sizeof path, "%s/%s", w->folder, name);
    THEN(rc, strbuf_status(out, path, err));
    THEN(rc, site_data(w, path, out->text, err));
    strbuf_free(out);
    return rc;
}

static void begin_file(struct strbuf *out)
{
    strbuf_init(out, SITE_MAX_BYTES);
    strbuf_add(out, "{");
}

/* Answers without a parameter, and the picks. */
static enum status write_study(struct site *w, const cJSON *front, struct error *err)
{
    static const char *const tails[] = {"",
                                        "/front",
                                        "/insight",
                                        "/model/front",
                                        "/model/next",
                                        "/briefing",
                                        "/calibration",
                                        "/lanes",
                                        "/hypervolume?points=240",
                                        "/timeline",
                                        "/pick?rule=best",
                                        "/pick?rule=best-run",
                                        "/pick?rule=knee"};
    const cJSON *point;
    struct strbuf out;

    begin_file(&out);
    for (size_t i = 0; i < COUNT(tails); i++)
        site_add(w, tails[i], tails[i], &out);
    cJSON_ArrayForEach(point, json_get(front, "points"))
    {
        char tail[48];
        int64_t trial = json_i64_or(point, "trial", 0);
        snprintf(tail, sizeof tail, "/pick?rule=trial%%3D%lld", (long long)trial);
        site_add(w, tail, tail, &out);
    }
    return end_file(w, "study", &out, ST_OK, err);
}

/* What study_data.js reads of every trial, as many rows as one answer has at a time. */
static enum status write_columns(struct site *w, struct error *err)
{
    struct strbuf out;
    int64_t offset = 0;
    enum status rc = ST_OK;

    begin_file(&out);
    STRBUF(page, SITE_MAX_BYTES);
    while (offset >= 0 && rc == ST_OK) {
        char tail[512];
        cJSON *json = NULL;
        snprintf(
            tail, sizeof tail,
            "/trials?limit=20000&offset=%lld&fields=number,state,score,cost,cost_s,env_steps,on_front,origin,device,"
            "reason,seed,started_ms,finished_ms,live_score,live_s,dropped,note,tags,env,objective,infeasible,"
            "expected,expected_lo,expected_hi,n_seeds,params",
            (long long)offset);
        strbuf_clear(&page);
        rc = site_take(w, tail, &page, err);
        strbuf_addf(&out, "%s\"%lld\":", offset > 0 ? ",\n" : "", (long long)offset);
        strbuf_add(&out, page.text);
        THEN(rc, json_parse(page.text, page.len, &json, err));
        offset = -1;
        (void)json_get_i64(json, "next_offset", &offset);
        cJSON_Delete(json);
    }
    return end_file(w, "trials", &out, rc, err);
}

/* Through one trial: along each parameter, and over each pair of them. place: as `at` of the API has it. */
static enum status write_place(struct site *w, const cJSON *params, const char *place, bool has_pairs,
                               struct error *err)
{
    char tail[512], key[256], name[64];
    const cJSON *a, *b;
    struct strbuf out;

    begin_file(&out);
    cJSON_ArrayForEach(a, params)
    {
        const char *x = json_get_str(a, "key");
        snprintf(tail, sizeof tail, "/model/slice?param=%s&at=%s", x, place);
        site_add(w, x, tail, &out);
        for (b = has_pairs ? a->next : NULL; b != NULL; b = b->next) {
            const char *y = json_get_str(b, "key");
            snprintf(key, sizeof key, "%s %s", x, y);
            snprintf(tail, sizeof tail, "/model/contour?x=%s&y=%s&at=%s", x, y, place);
            site_add(w, key, tail, &out);
        }
    }
    snprintf(name, sizeof name, "models/%s", place);
    return end_file(w, name, &out, ST_OK, err);
}

/* Through the picks, and through every trial of the front: over pairs too, as long as these are not too many. */
static enum status write_models(struct site *w, const cJSON *study, const cJSON *front, struct error *err)
{
    static const char *const places[] = {"recommended", "best-run", "knee"};
    const cJSON *params = json_get(json_get(study, "space"), "params");
    const cJSON *points = json_get(front, "points"), *point;
    int n = cJSON_GetArraySize(params), n_pairs = n * (n - 1) / 2 * cJSON_GetArraySize(points);

    for (size_t i = 0; i < COUNT(places); i++)
        TRY(write_place(w, params, places[i], true, err));
    cJSON_ArrayForEach(point, points)
    {
        char place[24];
        int64_t trial = json_i64_or(point, "trial", 0);
        snprintf(place, sizeof place, "%lld", (long long)trial);
        TRY(write_place(w, params, place, n_pairs <= FRONT_PAIRS_MAX, err));
    }
    return ST_OK;
}

static enum status write_one(struct site *w, size_t i, struct error *err)
{
    static const char *const folders[] = {"trials", "play", "models"};
    char path[64];

    w->study = w->set->studies[i];
    snprintf(w->folder, sizeof w->folder, "s%zu", i);
    for (size_t k = 0; k < COUNT(folders); k++) {
        snprintf(path, sizeof path, "data/%s/%s", w->folder, folders[k]);
        TRY(make_dir(w, path, err));
    }
    JSON_LOCAL cJSON *study = site_json(w, ""), *front = site_json(w, "/front");
    if (study == NULL || front == NULL)
        return FAIL(err, ST_NOTFOUND, "report: no study '%.100s'; `trawl ls` lists them", w->study);
    TRY(write_study(w, front, err));
    TRY(write_columns(w, err));
    TRY(write_models(w, study, front, err));
    return site_trials(w, study, front, err);
}

/* -- what all have in common -- */

static bool is_wanted(const struct site *w, const char *name)
{
    for (size_t i = 0; i < w->set->n_studies; i++)
        if (strcmp(w->set->studies[i], name) == 0)
            return true;
    return false;
}

/* The list of studies, of those that are here. */
static enum status put_studies(struct site *w, struct strbuf *out, struct error *err)
{
    cJSON *json = NULL, *list, *item, *next;
    STRBUF(text, SITE_MAX_BYTES);

    TRY(take(w, "/api/v1/studies", &text, err));
    TRY(json_parse(text.text, text.len, &json, err));
    list = json_get(json, "studies");
    for (item = list != NULL ? list->child : NULL; item != NULL; item = next) {
        next = item->next;
        if (!is_wanted(w, json_get_str(item, "name")))
            cJSON_Delete(cJSON_DetachItemViaPointer(list, item));
    }
    api_put_json(out, json);
    return ST_OK;
}

/* Several studies to one reference, or why they do not compare. */
static void put_compare(struct site *w, struct strbuf *out)
{
    struct error err = {0};
    size_t from = out->len;
    STRBUF(names, 1u << 16);
    STRBUF(uri, 1u << 18);

    for (size_t i = 0; i < w->set->n_studies; i++) {
        strbuf_add(&names, i > 0 ? "," : "[");
        json_write_str(&names, w->set->studies[i]);
    }
    strbuf_add(&names, "]");
    strbuf_add(&uri, "/api/v1/compare?studies=");
    put_encoded(&uri, names.text);
    if (w->set->n_studies < 2)
        strbuf_add(out, "null");
    else if (take(w, uri.text, out, &err) != ST_OK) {
        out->len = from;
        put_json(out, "{'refused':%s}", err.text);
    }
}

static enum status write_index(struct site *w, struct error *err)
{
    STRBUF(out, SITE_MAX_BYTES);

    strbuf_addf(&out, "trawlSite={\"made_ms\":%lld,\"version\":", (long long)clock_utc_ms());
    TRY(take(w, "/api/v1/version", &out, err));
    strbuf_add(&out, ",\"studies\":");
    TRY(put_studies(w, &out, err));
    strbuf_add(&out, ",\"compare\":");
    put_compare(w, &out);
    strbuf_add(&out, ",\"folders\":{");
    for (size_t i = 0; i < w->set->n_studies; i++) {
        put_json(&out, i > 0 ? ",%s:'s%zu'" : "%s:'s%zu'", w->set->studies[i], i);
    }
    strbuf_add(&out, "}};\n");
    TRY(strbuf_status(&out, "data/site.js", err));
    return write_file(w, "data/site.js", out.text, out.len, err);
}

/* A game's module as a script: a page on disk may read nothing else. */
static enum status write_game(struct site *w, const char *name, const char *bytes, size_t n, struct error *err)
{
    char path[96];
    MEM_LOCAL char *text = mem_alloc(BASE64_TEXT_BYTES(n));
    size_t n_name = strcspn(name + 6, "."); /* after "games/" */

    base64_encode(bytes, n, text);
    STRBUF(out, SITE_MAX_BYTES);
    strbuf_addf(&out, "trawlData(\"games/%.*s\",\"%s\");\n", (int)n_name, name + 6, text);
    snprintf(path, sizeof path, "data/games/%.*s.js", (int)n_name, name + 6);
    return write_file(w, path, out.text, out.len, err);
}

static enum status write_assets(struct site *w, struct error *err)
{
    static const char *const names[] = {"pages.js", "vega.js", "style.css", "icon.svg"};

    for (size_t i = 0; i < serve_n_assets; i++) {
        const struct asset *asset = &serve_assets[i];
        bool page = strcmp(asset->name, "site.html") == 0, game = strncmp(asset->name, "games/", 6) == 0, wanted = page;
        char path[96], *text;
        for (size_t k = 0; k < COUNT(names); k++)
            wanted = wanted || strcmp(asset->name, names[k]) == 0;
        if (!wanted && !(game && w->written.n_games > 0))
            continue;
        text = asset_text(asset);
        if (text == NULL)
            return FAIL(err, ST_INTERNAL, "report: the page's %s is broken in this program; build it again",
                        asset->name);
        snprintf(path, sizeof path, "assets/%s", asset->name);
        enum status rc = game ? write_game(w, asset->name, text, asset->n_plain, err)
                              : write_file(w, page ? "index.html" : path, text, asset->n_plain, err);
        mem_free(text);
        TRY(rc);
    }
    return ST_OK;
}

/* A folder that holds no site is not written into. */
static enum status check_dir(const struct site *w, struct error *err)
{
    char path[PATH_MAX];
    struct stat st;

    if (stat(w->set->dir, &st) != 0)
        return make_dir(w, "", err);
    if (!S_ISDIR(st.st_mode))
        return FAIL(err, ST_EXISTS, "report: %s is a file; --site needs a folder", w->set->dir);
    snprintf(path, sizeof path, "%s/index.html", w->set->dir);
    if (stat(path, &st) != 0)
        return ST_OK;
    snprintf(path, sizeof path, "%s/data/site.js", w->set->dir);
    return stat(path, &st) == 0
               ? ST_OK
               : FAIL(err, ST_EXISTS, "report: %s holds an index.html that no --site wrote; give another folder",
                      w->set->dir);
}

static enum status write_all(struct site *w, struct error *err)
{
    static const char *const folders[] = {"assets", "data/games"};

    TRY(check_dir(w, err));
    for (size_t i = 0; i < COUNT(folders); i++)
        TRY(make_dir(w, folders[i], err));
    for (size_t i = 0; i < w->set->n_studies; i++)
        TRY(write_one(w, i, err));
    TRY(write_index(w, err));
    return write_assets(w, err);
}

enum status site_write(const struct site_settings *settings, struct site_written *ret_written, struct error *err)
{
    struct site w = {.set = settings};
    const struct serve_settings of = {.store_path = settings->store_path,
                                      .no_token = true,
                                      .program = settings->program,
                                      .version = settings->version,
                                      .commit = settings->commit};
    enum status rc = serve_open(&w.serve, &of, err);

    THEN(rc, write_all(&w, err));
    serve_destroy(w.serve);
    *ret_written = w.written;
    return rc;
}
