/* html.c - the page: summary, front, progress, table of the front, parameters, what to do next.
 * Self-contained: no script, no font, no address. Whatever came from a study or config is escaped. */
#include "web/report/report_priv.h"

#include "base/text/duration.h"

#include "study/view/resume_command.h"
#include "study/view/study_view.h"
#include "study/version.h"

void html_begin(struct strbuf *out, const char *title, const char *kind, const char *style)
{
    put_xml(out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
            "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n"
            "<title>%s \xe2\x80\x93 %s</title>\n",
            title, kind);
    strbuf_addf(out, "<style>%s%s%s%s</style>\n</head>\n<body>\n<main>\n", report_style_colors, report_style_chart,
                report_style_page, style);
}

void html_end(struct strbuf *out)
{
    put_xml(out, "<footer>Written by %s.</footer>\n</main>\n</body>\n</html>\n", program_text);
}

static void tile(struct strbuf *out, const char *value, const char *text)
{
    put_xml(out, "<div class=\"tile\"><b>%s</b><span>%s</span></div>\n", value, text);
}

/* "cost of the best in a warm worker, 0.55 s from process start" */
static const char *cost_words(const struct report *report, size_t i, const char *what, char buf[2 * PROMISE_TEXT_MAX])
{
    const struct promise *p = &report->promises[i];
    char a[HUMAN_TEXT_MAX];

    if (report->view->search.cost == SEARCH_COST_WALL && isfinite(p->start_s))
        snprintf(buf, 2 * PROMISE_TEXT_MAX, "cost of %s in a warm worker, %s from process start", what,
                 format_seconds(p->cost + p->start_s, a));
    else
        snprintf(buf, 2 * PROMISE_TEXT_MAX, "cost of %s", what);
    return buf;
}

/* What is expected of a pick comes first, then how sure that is. */
static void pick_tiles(struct strbuf *out, const struct report *report, size_t i, const char *what)
{
    const struct study_view *v = report->view;
    char a[HUMAN_TEXT_MAX], b[PROMISE_TEXT_MAX], text[2 * PROMISE_TEXT_MAX];

    if (i >= v->n)
        return;
    const struct promise *p = &report->promises[i];
    if (p->is_known)
        snprintf(text, sizeof text, "expected %s of the %s (trial %lld), 95 %%: %s", v->study.metric, what,
                 (long long)v->trials[i].number, promise_interval_text(p, b));
    else
        snprintf(text, sizeof text, "%s of %s (trial %lld)", v->study.metric, what, (long long)v->trials[i].number);
    put_xml(out, "<div class=\"tile\"><b>%e</b><span>%s</span><span class=\"seen%s\">%s</span></div>\n", p->score, text,
            p->n_seeds > 1 ? "" : " once", promise_seeds_text(p, b));
    tile(out, text_cost(v, p->cost, a), cost_words(report, i, what, text));
}

static void add_count(struct strbuf *out, size_t n, const char *word)
{
    if (n > 0)
        strbuf_addf(out, ", %zu %s", n, word);
}

static void write_summary(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;
    const struct study *study = &v->study;
    char a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX], also[600];

    put_xml(out, "<h1>%s</h1>\n<p>%zu trial%s: %zu done", study->name, v->n, v->n == 1 ? "" : "s",
            report->n_state[TRIAL_DONE]);
    add_count(out, report->n_state[TRIAL_FAILED], "failed");
    add_count(out, report->n_state[TRIAL_STOPPED], "stopped early");
    add_count(out, report->n_state[TRIAL_LOST], "lost");
    add_count(out, report->n_state[TRIAL_RUNNING], "running");
    add_count(out, report->n_state[TRIAL_QUEUED], "queued");
    put_xml(out, ". %zu on the front of cost against %s", report->n_front, study->metric);
    if (study_view_has_third(v))
        put_xml(out, " and %s", v->search.outcomes.third);
    if (v->search.outcomes.n_limits > 0)
        strbuf_addf(out, ", %zu infeasible", study_view_count_infeasible(v));
    outcomes_text(&v->search.outcomes, also, sizeof also);
    if (also[0] != '\0')
        put_xml(out, " (%s)", also);
    put_xml(out, ".</p>\n<p class=\"soft small\">Method %s, seed %lld, %s is better. Started %s", study->method,
            (long long)study->seed, study->maximize ? "higher" : "lower",
            text_time(study->created_ms > 0 ? study->created_ms : report->first_ms, a));
    if (report->last_ms > 0)
        put_xml(out, ", last trial %s", text_time(report->last_ms, a));
    put_xml(out, ". %s.", study->program);
    if (isfinite(report->propose_median_s))
        put_xml(out, " Choosing a trial took %s (median), at most %s.", format_seconds(report->propose_median_s, a),
                format_seconds(report->propose_max_s, b));
    strbuf_add(out, "</p>\n<div class=\"tiles\">\n");
    pick_tiles(out, report, report->best, "best");
    if (report->knee != report->best)
        pick_tiles(out, report, report->knee, "knee");
    tile(out, format_seconds(report->total_cost_s, a), "spent on all trials");
    strbuf_add(out, "</div>\n");
}

static void write_sentence(struct strbuf *out, const struct report *report,
                           void (*text)(const struct study_view *, const struct briefing *, struct strbuf *))
{
    STRBUF(line, 1 << 16);

    text(report->view, &report->briefing, &line);
    if (line.len > 0)
        put_xml(out, "<p>%s</p>\n", line.text);
}

/* What a reader in a hurry needs: why it ended, what to take, whether to continue. */
static void write_briefing(struct strbuf *out, const struct report *report)
{
    const struct study *study = &report->view->study;

    strbuf_add(out, "<div class=\"card briefing\">\n");
    if (study->end_text != NULL)
        put_xml(out, "<p>%s: %s.</p>\n", study->state == STUDY_ENDED ? "Ended" : "Paused", study->end_text);
    write_sentence(out, report, briefing_take_text);
    write_sentence(out, report, briefing_next_text);
    for (size_t k = 0; k < report->briefing.failures.n_rules; k++) {
        struct strbuf rule;
        strbuf_init(&rule, 1 << 12);
        failure_rule_text(report->view, &report->briefing.failures.rules[k], &rule);
        put_xml(out, "<p>%s.</p>\n", rule.text);
        strbuf_free(&rule);
    }
    strbuf_add(out, "</div>\n");
}

static void write_key(struct strbuf *out, const char *key)
{
    for (const char *at = key; *at != '\0';) { /* a long key may break after its dots and underscores */
        char part[SPACE_KEY_MAX];
        size_t n = strcspn(at, "._");
        n += at[n] != '\0';
        snprintf(part, sizeof part, "%.*s", (int)n, at);
        put_xml(out, "%s<wbr>", part);
        at += n;
    }
}

static void write_front_row(struct strbuf *out, const struct report *report, size_t index)
{
    const struct study_view *v = report->view;
    const struct trial *trial = &v->trials[index];
    bool best = index == report->best, knee = index == report->knee;
    char b[HUMAN_TEXT_MAX], seeds[PROMISE_TEXT_MAX];
    const struct promise *p = &report->promises[index];

    strbuf_addf(out, "<tr%s><td>%lld%s%s</td>", best || knee ? " class=\"special\"" : "", (long long)trial->number,
                best ? "<span class=\"tag\">best</span>" : "", knee ? "<span class=\"tag\">knee</span>" : "");
    if (p->is_known)
        put_xml(out, "<td>%e</td><td>%s</td>", p->score, promise_interval_text(p, seeds));
    strbuf_addf(out, "<td%s>%s</td>", p->n_seeds > 1 ? "" : " class=\"once\"", promise_seeds_text(p, seeds));
    put_xml(out, "<td class=\"soft\">%e</td><td>%s</td>", trial->score, text_cost(v, p->cost, b));
    if (study_view_has_third(v))
        put_xml(out, "<td>%e</td>", study_view_expected_third(v, index));
    put_xml(out, "<td>%e</td>", (double)trial->env_steps);
    STRBUF(value, 1 << 16);
    for (size_t k = 0; k < v->search.space.dim && value.status == ST_OK; k++) {
        strbuf_clear(&value);
        report_param_text(&value, report, index, k);
        put_xml(out, "<td>%s</td>", value.text);
    }
    if (value.status != ST_OK)
        out->status = value.status;
    strbuf_add(out, "</tr>\n");
}

static void write_front_table(struct strbuf *out, const struct report *report)
{
    const struct space *space = &report->view->search.space;

    if (report->n_front == 0)
        return;
    strbuf_add(out,
               "<h2>Trials on the front</h2>\n<p class=\"soft small\">No other trial is both cheaper and better than "
               "any of these, within the uncertainty of their scores and costs. Expected is the estimate for a config "
               "from all trials; 95 % is the interval of the mean of ");
    strbuf_addf(out,
                "%d runs under fresh seeds.</p>\n<div class=\"scroll\"><table>\n<thead><tr>"
                "<th>trial</th>",
                GP_PROMISE_SEEDS);
    if (report_has_beliefs(report->view))
        strbuf_add(out, "<th>expected</th><th>95 %</th>");
    strbuf_add(out, "<th>seen</th><th>its run</th><th>cost</th>");
    if (study_view_has_third(report->view)) {
        strbuf_add(out, "<th>");
        write_key(out, report->view->search.outcomes.third);
        strbuf_add(out, "</th>");
    }
    strbuf_add(out, "<th>env steps</th>");
    for (size_t k = 0; k < space->dim; k++) {
        strbuf_add(out, "<th>");
        write_key(out, search_param_name(space->params[k].key));
        strbuf_add(out, "</th>");
    }
    strbuf_add(out, "</tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < report->n_front; i++)
        write_front_row(out, report, report->front[i]);
    strbuf_add(out, "</tbody>\n</table></div>\n");
}

static void write_importance(struct strbuf *out, const struct report *report)
{
    const struct gp_insight *insight = &report->view->advice;

    if (!report->view->has_insight || report->view->search.space.dim == 0)
        return;
    strbuf_add(out, "<h2>What matters</h2>\n<p class=\"soft small\">");
    if (!report_has_insight(report->view)) {
        put_xml(out, "Not known yet: %s.</p>\n", insight->note);
        return;
    }
    strbuf_add(out, "Share of the variance over the whole space that each parameter explains alone, by the model; "
                    "the thin line is two standard deviations.</p>\n<figure class=\"importance\">\n");
    draw_importance(out, report, 700, NULL);
    draw_importance(out, report, 360, NULL);
    strbuf_add(out, "</figure>\n");
    if (insight->score_note != NULL || insight->cost_note != NULL)
        put_xml(out, "<p class=\"soft small\">%s.</p>\n",
                insight->score_note != NULL ? insight->score_note : insight->cost_note);
}

/* Where the best values may lie outside of what was searched. */
static void write_advice(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;
    const struct gp_insight *insight = &v->advice;

    if (!report_has_insight(v))
        return;
    for (size_t k = 0; k < v->search.space.dim; k++) {
        const struct gp_edge *edge = &insight->edges[k];
        const struct space_param *p = &v->search.space.params[k];
        char bound[NUM_TEXT_MAX], suggested[NUM_TEXT_MAX]; /* exact: 0.99999 must not read 1 */
        if (edge->side == 0)
            continue;
        put_xml(
            out,
            "<p class=\"edge\">%s: %zu of %zu trials that the model expects on the front lie at its %s bound %s; try "
            "%s = %s: the study keeps all its trials and takes the new bound when it is continued with "
            "<code>--sweep.%s.%s %s</code>.</p>\n",
            search_param_name(p->key), edge->n_on, edge->n_front, edge->side < 0 ? "lower" : "upper",
            num_format_f64(edge->side < 0 ? p->min : p->max, bound), edge->side < 0 ? "min" : "max",
            num_format_f64(edge->suggested, suggested), p->key, edge->side < 0 ? "min" : "max", suggested);
    }
}

static void write_strips(struct strbuf *out, const struct report *report)
{
    static const char *const scales[] = {"linear", "log", "logit", "powers of two", "choices"};
    const struct space *space = &report->view->search.space;

    if (space->dim == 0 || report->n_plotted == 0)
        return;
    strbuf_add(
        out,
        "<h2>Parameters</h2>\n<p class=\"soft small\">Score against each searched parameter, over its whole range; "
        "trials on the front are filled.</p>\n<div class=\"strips\">\n");
    for (size_t k = 0; k < space->dim; k++) {
        put_xml(out, "<figure><figcaption>%s <small>%s</small></figcaption>\n", search_param_name(space->params[k].key),
                scales[space->params[k].scale]);
        draw_strip(out, report, k);
        strbuf_add(out, "</figure>\n");
    }
    strbuf_add(out, "</div>\n");
}

static void write_failures(struct strbuf *out, const struct report *report)
{
    const struct failures *f = &report->briefing.failures;

    if (f->n == 0)
        return;
    strbuf_add(out, "<h2>Why trials failed</h2>\n<ul>\n");
    for (size_t k = 0; k < f->n_reasons; k++)
        put_xml(out, "<li>%zu\xc3\x97 %s</li>\n", f->reasons[k].n, f->reasons[k].text);
    if (f->n_other > 0)
        strbuf_addf(out, "<li>%zu\xc3\x97 for other reasons</li>\n", f->n_other);
    strbuf_add(out, "</ul>\n");
    STRBUF(ini, 1 << 16);
    failures_ini(report->view, f, &ini);
    if (ini.len > 0)
        put_xml(out, "<p>Config lines that keep the next study away from these values:</p>\n<pre>%s</pre>\n", ini.text);
}

/* One command of the shell, escaped for the page. */
static void write_command(struct strbuf *out, const struct report *report, const char *before, const char *after)
{
    STRBUF(line, 1 << 16);

    report_command(&line, report, before, after);
    put_xml(out, "%s\n", line.text);
    if (line.status != ST_OK)
        out->status = line.status;
}

/* A pick that was seen once may have been luck. */
static void write_confirm(struct strbuf *out, const struct report *report)
{
    char after[80];

    if (report->best >= report->view->n || report->promises[report->best].n_seeds > 1)
        return;
    snprintf(after, sizeof after, " --trial %lld --seeds %d", (long long)report->view->trials[report->best].number,
             GP_PROMISE_SEEDS);
    strbuf_add(out, "<p>The best has been seen once. To run it under fresh seeds:</p>\n<pre>");
    write_command(out, report, "trawl rerun ", after);
    strbuf_add(out, "</pre>\n");
}

static void write_next(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;

    strbuf_add(out, "<h2>What to do next</h2>\n");
    if (report->n_front > 0) {
        strbuf_add(out,
                   report->knee < v->n
                       ? "<p>Train with the configuration of the knee, where more cost begins to buy little:</p>\n<pre>"
                       : "<p>Train with the configuration of the knee (this front has no bend, so it is the "
                         "best):</p>\n<pre>");
        write_command(out, report, "trawl export ", " --pick knee -o knee.ini");
        strbuf_add(out, "trawl train knee.ini</pre>\n<p>Or with the one expected to be the best, whatever it "
                        "costs:</p>\n<pre>");
        write_command(out, report, "trawl export ", " --pick best -o best.ini");
        strbuf_add(out, "trawl train best.ini</pre>\n");
        write_confirm(out, report);
    }
    strbuf_add(out, "<p>Continue the search (limits are totals and include existing trials):</p>\n<pre>");
    STRBUF(line, 1 << 16);
    study_resume_command(v, report->store_path, &line);
    put_xml(out, "%s\n</pre>\n", line.text);
}

void report_write_html(struct strbuf *out, const struct report *report)
{
    html_begin(out, report->view->study.name, "Trawl report", "");
    write_summary(out, report);
    write_briefing(out, report);
    strbuf_add(out, "<div class=\"card\">\n");
    draw_front(out, report, FRONT_WIDE);
    draw_front(out, report, FRONT_NARROW);
    strbuf_add(out, "</div>\n");
    write_front_table(out, report);
    write_next(out, report);
    strbuf_add(out, "<h2>Progress</h2>\n<div class=\"two\">\n<figure><figcaption>Hypervolume over trials <small>front "
                    "against its fixed reference</small></figcaption>\n");
    draw_hypervolume(out, report);
    strbuf_add(out, "</figure>\n<figure><figcaption>Best config over cost spent <small>as expected of fresh "
                    "runs</small></figcaption>\n");
    draw_best_by_cost(out, report);
    strbuf_add(out, "</figure>\n</div>\n");
    write_importance(out, report);
    write_advice(out, report);
    write_strips(out, report);
    write_failures(out, report);
    html_end(out);
}
