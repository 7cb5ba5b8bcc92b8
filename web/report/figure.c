/* figure.c - one chart as a figure for a paper: print colours, no background, at the requested width.
 * All charts are laid out in units; the smallest letters are 12 of them high. A unit is 0.6 pt, so that these letters
 * have 7.2 pt at every width, and a wider figure has more room and no larger letters. */

#include "study/findings/comparison.h"
#include "study/view/study_insight.h"
#include "study/view/study_view.h"
#include "web/report/report_priv.h"

#define UNIT_PT 0.6
#define PNG_PIXELS (300.0 / 72.0) /* a point */

static const char figure_style[] =
    ".run{fill:none;stroke:#0b4f94;stroke-opacity:.4}.band{fill:#0b4f94;fill-opacity:.14}.second .run{stroke:#8f2d00}"
    ".second .band{fill:#8f2d00}.second .step{stroke:#8f2d00;stroke-dasharray:7 3}"
    ".other{fill:none;stroke:#777}.member{fill:none;stroke:#0b4f94;stroke-width:1.6}"
    ".chosen{fill:none;stroke:#8f2d00;stroke-width:2.4}";

static enum status missing(const struct study_view *v, const char *why, struct error *err)
{
    return FAIL(err, ST_NOTFOUND, "study %s has nothing for this figure: %s", v->study.name, why);
}

/* -- what part of the studies attains a score at a cost -- */

/* One of the three curves, as steps from where it begins. */
static void attained_steps(struct strbuf *out, const struct comparison *c, const struct axis *x, const struct axis *y,
                           int which, const char *class_name)
{
    bool begun = false;

    for (size_t k = 0; k < c->n_attained; k++) {
        const struct attained *a = &c->attained[k];
        double score = which == 0 ? a->best : which == 1 ? a->middle : a->worst;
        if (isnan(score))
            continue;
        put_xml(out, begun ? "H%gV%g" : "<path d=\"M%g %g", axis_at(x, a->cost), axis_at(y, score));
        begun = true;
    }
    if (!begun)
        return;
    put_xml(out, "H%g\" class=\"%s\"/>\n", x->to, class_name);
}

/* Between the scores of a quarter and of three quarters; down to the edge where fewer attain any. */
static void attained_band(struct strbuf *out, const struct comparison *c, const struct axis *x, const struct axis *y,
                          bool maximize)
{
    strbuf_add(out, "<path d=\"");
    for (size_t k = 0; k < c->n_attained; k++) {
        const struct attained *a = &c->attained[k];
        double left = axis_at(x, a->cost), right = k + 1 < c->n_attained ? axis_at(x, a[1].cost) : x->to;
        if (isnan(a->best))
            continue;
        put_xml(out, "M%g %gH%gV%gH%gZ", left, axis_at(y, a->best), right,
                !isnan(a->worst) ? axis_at(y, a->worst)
                : maximize       ? y->from
                                 : y->to,
                left);
    }
    strbuf_add(out, "\" class=\"band\"/>\n");
}

static void draw_attainment(struct strbuf *out, const struct comparison *c, int width, int height)
{
    const struct study_view *v = c->studies[0].view;
    double cost_lo = INFINITY, cost_hi = 0.0, lo = INFINITY, hi = -INFINITY;
    struct axis x, y;
    char text[2 * HUMAN_TEXT_MAX];

    for (size_t k = 0; k < c->n_attained; k++) { /* fmin and fmax leave NaN out */
        const struct attained *a = &c->attained[k];
        cost_lo = fmin(cost_lo, a->cost);
        cost_hi = fmax(cost_hi, a->cost);
        lo = fmin(lo, fmin(a->best, fmin(a->middle, a->worst)));
        hi = fmax(hi, fmax(a->best, fmax(a->middle, a->worst)));
    }
    axis_init(&x, SPACE_LOG, false, cost_lo, cost_hi, 50.0, width - 16.0, width < 700 ? 4 : 8);
    axis_init(&y, SPACE_LINEAR, false, lo, hi, height - 46.0, 54.0, 5);
    svg_open(out, width, height, "chart", "What part of the studies attains a score at a cost");
    svg_frame(out, &x, &y, true);
    attained_band(out, c, &x, &y, v->study.maximize);
    attained_steps(out, c, &x, &y, 0, "run");
    attained_steps(out, c, &x, &y, 2, "run");
    attained_steps(out, c, &x, &y, 1, "step");
    svg_line(out, 10.0, 14.0, 28.0, 14.0, "step");
    snprintf(text, sizeof text, "half of %zu seeds%s", c->n, width < 340 ? "" : " attain it");
    svg_text(out, 34.0, 18.0, "legend", text);
    double second = 34.0 + 6.4 * (double)strlen(text) + 12.0;
    strbuf_addf(out, "<rect x=\"%d\" y=\"8\" width=\"18\" height=\"11\" class=\"band\"/>\n", (int)second);
    svg_text(out, second + 24.0, 18.0, "legend", "1/4 to 3/4");
    svg_titles(out, v, &x, height, 10.0, 46.0, true);
    strbuf_add(out, "</svg>\n");
}

/* The first option that keeps study i from being the first study's search under another seed. */
static const char *difference(const struct comparison *c, size_t i)
{
    const cJSON *row;

    cJSON_ArrayForEach(row, c->differences)
    {
        const cJSON *values = json_get(row, "values");
        if (!comparison_may_differ(json_get_str(row, "key")) &&
            !cJSON_Compare(cJSON_GetArrayItem(values, 0), cJSON_GetArrayItem(values, (int)i), true))
            return json_get_str(row, "key");
    }
    return NULL;
}

static enum status check_one_search(const struct comparison *c, struct error *err)
{
    for (size_t i = 1; i < c->n; i++) {
        const struct study *a = &c->studies[0].view->study, *b = &c->studies[i].view->study;
        const char *key = difference(c, i);
        if (c->studies[i].group == 0)
            continue;
        if (key == NULL) /* what remains */
            return FAIL(err, ST_USAGE,
                        "attainment is over seeds of one search: %s has the seed %lld of an earlier study in the list; "
                        "leave one of them out, or sweep again with another --sweep.seed",
                        b->name, (long long)b->seed);
        return FAIL(err, ST_USAGE,
                    "attainment is over seeds of one search: %s and %s also differ in %s; `trawl compare %s %s -o "
                    "both.html` draws studies that differ",
                    a->name, b->name, key, a->name, b->name);
    }
    return ST_OK;
}

static enum status attainment(struct strbuf *out, struct study_view *const *views, size_t n, int width, int height,
                              struct error *err)
{
    if (n < 2)
        return FAIL(err, ST_USAGE,
                    "attainment is over seeds of one search: name two studies or more that differ in sweep.seed alone "
                    "(trawl report A B C --figure attainment)");
    for (size_t i = 0; i < n; i++)
        TRY(study_view_advise(views[i], err));
    COMPARISON(c);
    TRY(comparison_make(views, n, c, err));
    TRY(check_one_search(c, err));
    if (c->n_attained == 0)
        return missing(views[0], "no study has a front yet", err);
    draw_attainment(out, c, width, height);
    return ST_OK;
}

/* -- the file -- */

/* Draws the chart; *ret_height in its units. */
static enum status draw_chart(struct strbuf *out, const struct report *report, const struct figure *figure, int width,
                              int *ret_height, struct error *err)
{
    const struct study_view *v = report->view;
    bool is_importance = figure->kind == FIGURE_IMPORTANCE;

    if (is_importance && !report_has_insight(v))
        return missing(v, v->advice.note != NULL ? v->advice.note : "no model of it yet", err);
    if (!is_importance && report->n_plotted == 0)
        return missing(v, "no trial is done yet", err);
    switch (figure->kind) {
    case FIGURE_CURVES:
        return draw_curves(out, report, figure->over_seconds, width, *ret_height, err);
    case FIGURE_IMPORTANCE:
        *ret_height = (int)v->search.space.dim * IMPORTANCE_ROW + IMPORTANCE_REST + IMPORTANCE_TITLE;
        draw_importance(out, report, width, "share of variance explained");
        break;
    case FIGURE_PARALLEL:
        *ret_height = parallel_height(report);
        draw_parallel(out, report, width, *ret_height);
        break;
    default:
        draw_front_sized(out, report, FRONT_PRINT, width, *ret_height);
    }
    return ST_OK;
}

static enum status draw_study(struct strbuf *out, struct study_view *view, const struct figure *figure, int width,
                              int *ret_height, struct error *err)
{
    struct report report;
    enum status rc = ST_OK;

    TRY(figure->kind == FIGURE_IMPORTANCE ? study_view_insight(view, err) : study_view_advise(view, err));
    TRY(report_init(&report, view, NULL, err));
    if (figure->format != REPORT_TEX)
        rc = draw_chart(out, &report, figure, width, ret_height, err);
    else if (report.n_front == 0)
        rc = missing(view, "no trial is done yet", err);
    else
        report_write_tex(out, &report);
    report_free(&report);
    return rc;
}

enum status report_write_figure(struct study_view *const *views, size_t n, const struct figure *figure,
                                struct strbuf *out, struct error *err)
{
    int width = (int)round(figure->width_pt / UNIT_PT), height = width > 760 ? 500 : 130 + width / 2;
    enum status rc;
    STRBUF(chart, 256u << 20);
    STRBUF(svg, 256u << 20);

    if (figure->kind == FIGURE_ATTAINMENT)
        rc = attainment(&chart, views, n, width, height, err);
    else
        rc = draw_study(&chart, views[0], figure, width, &height, err);
    THEN(rc, strbuf_status(&chart, "the figure", err));
    double height_pt = figure->width_pt * height / width;
    if (rc == ST_OK) {
        put_xml(&svg, "<svg xmlns=\"" NS_SVG "\" viewBox=\"0 0 %d %d\" width=\"%ept\" height=\"%ept\">\n<style>", width,
                height, figure->width_pt, height_pt);
        report_style_flat(&svg);
        strbuf_addf(&svg, "%s</style>\n%s</svg>\n", figure_style, chart.text);
        rc = strbuf_status(&svg, "the figure", err);
    }
    if (rc == ST_OK && figure->format == REPORT_PDF)
        rc = render_pdf(out, &svg, 1, figure->width_pt, height_pt, views[0]->study.name, err);
    else if (rc == ST_OK && figure->format == REPORT_PNG)
        rc = render_png(out, &svg, figure->width_pt, height_pt, PNG_PIXELS, err);
    else if (rc == ST_OK)
        strbuf_add(out, figure->format == REPORT_TEX ? chart.text : svg.text);
    return rc == ST_OK ? strbuf_status(out, "the figure", err) : rc;
}
