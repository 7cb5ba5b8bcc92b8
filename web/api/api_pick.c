/* api_pick.c - the trial for a budget or a score, and its config: /pick, /export, /report, /control. The rules and the
 * bytes are those of the command line. */
#include "base/text/json.h"
#include "study/view/export.h"
#include "web/report/report.h"
#include "web/text/put.h"
#include "web/serve/routes.h"
#include "web/serve/serve_priv.h"
#include "web/serve/data/page_study.h"

#define RULE_MAX 96

/* The rule that the query asks for, as `trawl export --pick` takes it. */
static enum status read_rule(const struct request *r, bool maximize, char rule[RULE_MAX], struct error *err)
{
    static const char *const names[] = {"rule", "budget_s", "score", "trial"};
    const char *given = NULL, *text = NULL;
    char number[NUM_TEXT_MAX];
    int64_t trial = 0;
    double value = 0;

    snprintf(rule, RULE_MAX, "best");
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *found = target_query(&r->target, names[i]);
        if (found != NULL && given != NULL)
            return FAIL(err, ST_USAGE, "both %s and %s are given; give one of rule, budget_s, score and trial", given,
                        names[i]);
        given = found != NULL ? names[i] : given;
        text = found != NULL ? found : text;
    }
    if (given == NULL)
        return ST_OK;
    if (strcmp(given, "rule") == 0) {
        if (snprintf(rule, RULE_MAX, "%s", text) >= RULE_MAX)
            return FAIL(err, ST_USAGE, "the rule is too long; best, knee, cost<=X, score>=X and trial=N are known");
        return ST_OK;
    }
    if (strcmp(given, "trial") == 0) {
        TRY(target_i64(&r->target, "trial", 0, INT32_MAX, &trial, err));
        snprintf(rule, RULE_MAX, "trial=%lld", (long long)trial);
        return ST_OK;
    }
    TRY(target_f64(&r->target, given, &value, err));
    snprintf(rule, RULE_MAX, "%s%s",
             strcmp(given, "budget_s") == 0 ? "cost<="
             : maximize                     ? "score>="
                                            : "score<=",
             num_format_f64(value, number));
    return ST_OK;
}

struct picked {
    char rule[RULE_MAX];
    size_t trial;
    const char *note; /* static; NULL: none */
    struct promise promise;
};

static void put_pick(const struct page_study *p, const struct picked *picked, bool supported, struct strbuf *out)
{
    const struct trial *t = &p->view.trials[picked->trial];
    char text[PROMISE_TEXT_MAX];

    put_json(out,
             "{'study':%s,'version':%lld,'rule':%s,'trial':%zu,'state':%s,'score':%g,'cost':%g,'cost_s':%g,'model':%s,",
             p->view.study.name, (long long)p->version, picked->rule, picked->trial, trial_state_name(t->state),
             t->score, study_view_trial_cost(&p->view, t), t->cost_s, page_study_advice_state(p));
    put_promise(out, &picked->promise);
    put_json(out, ",'promise':%s", promise_text(&picked->promise, text));
    put_json(out, ",'cost_text':%s,'supported':%i,'note':%s,'params':",
             promise_cost_text(&picked->promise, p->view.search.cost, text), supported, picked->note);
    page_study_put_params(p, picked->trial, out);
}

/* Picks; with `out`, what is known of the trial goes there. */
static enum status pick(struct serve *s, const struct request *r, struct picked *ret, struct strbuf *out,
                        struct error *err)
{
    struct page_study *p = serve_lock_study(s, r->study, err);
    struct gp_picked found = {0};

    if (p == NULL)
        return err->status;
    enum status rc = read_rule(r, p->view.study.maximize, ret->rule, err);
    THEN(rc, export_pick(&p->view, ret->rule, &found, err));
    if (rc == ST_OK) {
        ret->trial = found.i;
        ret->note = found.note;
        study_view_promise(&p->view, found.i, &ret->promise);
    }
    if (rc == ST_OK && out != NULL)
        put_pick(p, ret, found.supported, out);
    serve_unlock(s);
    return rc;
}

/* The trial with its config, read now. */
static enum status read_trial(struct serve *s, const struct request *r, const struct picked *picked,
                              struct study *ret_study, struct trial *ret_trial, struct error *err)
{
    AT_END(serve_reader_give) struct reader reader = {0};

    TRY(serve_reader_take(s, &reader, err));
    TRY(store_study_find(reader.store, r->study, ret_study, err));
    return store_trial_find(reader.store, ret_study->id, (int64_t)picked->trial, ret_trial, err);
}

/* Its config in a format of `trawl export`. */
static enum status put_export(struct serve *s, const struct request *r, const struct picked *picked,
                              enum export_format format, struct strbuf *out, struct error *err)
{
    struct export_reason why = {picked->rule, picked->note, NULL, picked->promise};
    char store[PATH_MAX];
    AT_END(study_free) struct study study = {0};
    AT_END(trial_free) struct trial trial = {0};

    TRY(read_trial(s, r, picked, &study, &trial, err));
    why.store_path = serve_store_path(s, store);
    return export_build(&study, &trial, &why, format, out, err);
}

enum status api_pick(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    struct picked picked = {0};

    TRY(pick(s, r, &picked, out, err));
    STRBUF(line, SERVE_BODY_BYTES);
    bool ok = put_export(s, r, &picked, EXPORT_ARGS, &line, NULL) == ST_OK;
    api_put_train_command(out, ok ? &line : NULL);
    api_put_export_command(s, r->study, picked.rule, out);
    return ST_OK;
}

/* attachment; a name of plain characters, whatever the study is called. */
static char *disposition(const char *study, const char *what, const char *suffix)
{
    STRBUF(text, 1024);

    strbuf_add(&text, "attachment; filename=\"");
    for (const char *c = study; *c != '\0' && text.len < 120; c++) {
        bool plain =
            (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-' || *c == '_';
        strbuf_add_n(&text, plain ? c : "_", 1);
    }
    strbuf_addf(&text, "%s.%s\"", what, suffix);
    char *taken = strbuf_take(&text);
    return taken;
}

enum status api_export(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    const char *format = target_query(&r->target, "format");
    static const char *const suffixes[] = {[EXPORT_INI] = "ini", [EXPORT_JSON] = "json", [EXPORT_ARGS] = "sh"};
    struct picked picked = {0};
    enum export_format kind;
    char what[32];

    if (format != NULL && !list_has("ini,json,args", format))
        return FAIL(err, ST_USAGE, "format is '%.20s'; ini, json and args are known", format);
    TRY(export_find_format(format, NULL, &kind, err));
    TRY(pick(s, r, &picked, NULL, err));
    TRY(put_export(s, r, &picked, kind, out, err));
    snprintf(what, sizeof what, "-%zu", picked.trial);
    r->answer->type = kind == EXPORT_JSON ? "application/json" : "text/plain; charset=utf-8";
    r->answer->disposition = disposition(r->study, what, suffixes[kind]);
    return ST_OK;
}

/* -- /report -- */

static enum status write_report(const struct serve *s, const char *study, enum report_format format, struct strbuf *out,
                                struct error *err)
{
    STUDY_VIEW(view);

    TRY(study_view_open(s->set.store_path, study, view, err));
    return report_write_whole(view, format, out, err);
}

enum status api_report(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    static const struct {
        const char *name, *type;
        enum report_format format;
    } formats[] = {{"html", "text/html; charset=utf-8", REPORT_HTML},
                   {"svg", "image/svg+xml", REPORT_SVG},
                   {"csv", "text/csv; charset=utf-8", REPORT_CSV},
                   {"json", "application/json", REPORT_JSON},
                   {"pdf", "application/pdf", REPORT_PDF},
                   {"png", "image/png", REPORT_PNG}};
    const char *name = target_query(&r->target, "format");
    size_t i = 0, n = COUNT(formats);

    while (i < n && name != NULL && strcmp(formats[i].name, name) != 0)
        i++;
    if (i == n)
        return FAIL(err, ST_USAGE, "format is '%.20s'; html, svg, csv, json, pdf and png are known", name);
    TRY(write_report(s, r->study, formats[i].format, out, err));
    r->answer->type = formats[i].type;
    /* The report has its style inside, and no script. */
    r->answer->csp =
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'; sandbox";
    if (formats[i].format != REPORT_HTML && formats[i].format != REPORT_SVG)
        r->answer->disposition = disposition(r->study, "", formats[i].name);
    return ST_OK;
}

/* -- /control -- */

enum status api_control(struct serve *s, const struct request *r, struct strbuf *out, struct error *err)
{
    MEM_LOCAL char *message = NULL;

    r->answer->no_store = true;
    if (json_get_str(r->body, "action") == NULL)
        return FAIL(err, ST_USAGE,
                    "the body has no action; pause, continue, stop, add, priority, retry and confirm are known");
    TRY(s->set.control(s->set.store_path, r->study, r->body, &message, err));
    put_json(out, "{'ok':%i,'message':%s}\n", true, message);
    return ST_OK;
}
