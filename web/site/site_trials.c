/* site_trials.c - the pages of a site's trials: a hundred in a file, policies in files of their own.
 * So that a study of 10,000 trials stays of some 50 MB: a value of a config that is as in trial 0 is the number of its
 * row there, and all metrics are kept of the trials that people look at; of the others the study's metric. */
#include "web/text/put.h"
#include "web/serve/playing.h"
#include "web/site/site_priv.h"

#define CHUNK 100 /* trials of a file; site.js knows it too */
#define SMALL 200 /* a study of no more trials keeps all metrics of each */
#define POINTS 200
#define FEW_POINTS 60 /* of the study's metric alone */
#define METRICS_AT_ONCE 30 /* as many curves as one answer has */
#define FRAMES 450 /* half a minute */

struct trials {
    struct site *w;
    bool *special; /* (n) on the front, a pick, or a run of such a config; owned */
    size_t n;
    cJSON *first; /* config of trial 0; owned */
};

static void mark(struct trials *t, const cJSON *object, const char *key)
{
    int64_t i = -1;

    if (json_get_i64(object, key, &i) && i >= 0 && i < (int64_t)t->n)
        t->special[i] = true;
}

static void mark_special(struct trials *t, const cJSON *study, const cJSON *front)
{
    const cJSON *point, *run;

    cJSON_ArrayForEach(point, json_get(front, "points")) mark(t, point, "trial");
    mark(t, front, "best_trial");
    mark(t, front, "knee_trial");
    mark(t, study, "best_run_trial");
    for (size_t i = 0, n = t->n; i < n; i++) {
        char tail[48];
        if (!t->special[i])
            continue;
        snprintf(tail, sizeof tail, "/trials/%zu/seeds", i);
        cJSON *seeds = site_json(t->w, tail);
        cJSON_ArrayForEach(run, json_get(seeds, "rows"))
        {
            const cJSON *number = cJSON_GetArrayItem(run, 0);
            if (cJSON_IsNumber(number) && number->valuedouble < (double)t->n)
                t->special[(size_t)number->valuedouble] = true;
        }
        cJSON_Delete(seeds);
    }
}

/* Rows of the config that are as in trial 0 become numbers. */
static void shorten(struct trials *t, cJSON *trial)
{
    cJSON *config = json_get(trial, "config"), *row, *next, *first;
    int k = 0;

    if (t->first == NULL) {
        t->first = cJSON_Duplicate(config, true);
        return;
    }
    first = t->first->child;
    for (row = config != NULL ? config->child : NULL; row != NULL && first != NULL;
         row = next, first = first->next, k++) {
        next = row->next;
        if (cJSON_Compare(row, first, true))
            cJSON_ReplaceItemViaPointer(config, row, cJSON_CreateNumber(k));
    }
}

/* "curves": {name: curve}, of all names or of the study's metric. */
static void add_curves(struct trials *t, size_t i, const cJSON *names, bool all, struct strbuf *out)
{
    const cJSON *name = names != NULL ? names->child : NULL;
    const char *begin = "";
    STRBUF(tail, 1u << 14);

    strbuf_add(out, ",\"curves\":{");
    while (name != NULL) {
        int n = 0;
        strbuf_clear(&tail);
        strbuf_addf(&tail, "/trials/%zu/curves?points=%d", i, all ? POINTS : FEW_POINTS);
        for (; all && name != NULL && n < METRICS_AT_ONCE; name = name->next, n++)
            strbuf_addf(&tail, "%s%s", n > 0 ? "," : "&metrics=", name->valuestring);
        cJSON *answer = site_json(t->w, tail.text);
        cJSON *curves = json_get(answer, "curves");
        if (curves != NULL && curves->child != NULL) {
            char *text = json_print(curves, false);
            strbuf_add(out, begin);
            strbuf_add_n(out, text + 1, strlen(text) - 2);
            begin = ",";
            mem_free(text);
        }
        cJSON_Delete(answer);
        name = all ? name : NULL;
    }
    strbuf_add(out, "}");
}

/* The file's texts of a config, for those who cannot ask for them. */
static void add_exports(struct trials *t, size_t i, struct strbuf *out)
{
    static const char *const formats[] = {"ini", "json", "args"};
    STRBUF(text, SITE_MAX_BYTES);

    strbuf_add(out, ",\"exports\":{");
    for (size_t k = 0, n = 0; k < COUNT(formats); k++) {
        char tail[64];
        snprintf(tail, sizeof tail, "/export?trial=%zu&format=%s", i, formats[k]);
        strbuf_clear(&text);
        if (site_take(t->w, tail, &text, NULL) != ST_OK)
            continue;
        strbuf_addf(out, "%s\"%s\":", n++ > 0 ? "," : "", formats[k]);
        strbuf_add(&text, "\n");
        put_str(out, text.text);
    }
    strbuf_add(out, "}");
}

/* The policy, in a file of its own; false: this trial's does not play. */
static bool write_play(struct trials *t, size_t i, char reason[ERROR_TEXT_MAX])
{
    struct error err = {0};
    char name[64];
    STRBUF(out, SITE_MAX_BYTES);

    snprintf(name, sizeof name, "%s/play/%zu", t->w->folder, i);
    enum status rc = play_record(t->w->serve, t->w->study, (int64_t)i, FRAMES, &out, &err);
    THEN(rc, strbuf_status(&out, "what a policy played", &err));
    THEN(rc, site_data(t->w, name, out.text, &err));
    t->w->written.n_games += rc == ST_OK;
    memcpy(reason, err.text, ERROR_TEXT_MAX);
    return rc == ST_OK;
}

static void add_trial(struct trials *t, size_t i, struct strbuf *out)
{
    char tail[48], reason[ERROR_TEXT_MAX] = "only policies of the front, of the picks and of their seeds are kept here";
    bool all = t->n <= SMALL || t->special[i];

    snprintf(tail, sizeof tail, "/trials/%zu", i);
    JSON_LOCAL cJSON *trial = site_json(t->w, tail);
    if (trial == NULL)
        return;
    shorten(t, trial);
    bool plays = json_bool_or(trial, "can_play", false);
    if (plays) {
        plays = t->special[i] && write_play(t, i, reason);
        cJSON_ReplaceItemInObject(trial, "can_play", cJSON_CreateBool(plays));
        if (!plays)
            cJSON_ReplaceItemInObject(trial, "play_note", cJSON_CreateString(reason));
    }
    MEM_LOCAL char *text = json_print(trial, false);
    strbuf_addf(out, "%s\"%zu\":{\"trial\":", out->text[out->len - 1] == '{' ? "" : ",\n", i);
    put_json_text(out, text);
    add_curves(t, i, json_get(trial, "metrics"), all, out);
    if (t->special[i])
        add_exports(t, i, out);
    snprintf(tail, sizeof tail, "/trials/%zu/seeds", i);
    site_add(t->w, "seeds", tail, out);
    snprintf(tail, sizeof tail, "/trials/%zu/log", i);
    site_add(t->w, "log", tail, out);
    strbuf_add(out, "}");
}

static enum status write_chunks(struct trials *t, struct error *err)
{
    char name[64], *text;
    STRBUF(out, SITE_MAX_BYTES);

    for (size_t from = 0; from < t->n; from += CHUNK) {
        strbuf_clear(&out);
        strbuf_add(&out, "{");
        for (size_t i = from; i < from + CHUNK && i < t->n; i++)
            add_trial(t, i, &out);
        if (from == 0) {
            text = t->first != NULL ? json_print(t->first, false) : mem_strdup("[]");
            strbuf_add(&out, out.len > 1 ? ",\n\"config\":" : "\"config\":");
            put_json_text(&out, text);
            mem_free(text);
        }
        strbuf_add(&out, "}");
        snprintf(name, sizeof name, "%s/trials/%zu", t->w->folder, from / CHUNK);
        TRY(strbuf_status(&out, name, err));
        TRY(site_data(t->w, name, out.text, err));
    }
    return ST_OK;
}

enum status site_trials(struct site *w, const cJSON *study, const cJSON *front, struct error *err)
{
    struct trials t = {.w = w};

    int64_t n = json_i64_or(study, "trials", 0);
    t.n = (size_t)n;
    t.special = mem_array(t.n + 1, sizeof *t.special);
    mark_special(&t, study, front);
    enum status rc = write_chunks(&t, err);
    cJSON_Delete(t.first);
    mem_free(t.special);
    return rc;
}
