/* svg.c - drawing in SVG, and the chart that the report is about: the front of cost against score.
 *
 * Marks differ by shape and not by colour alone: front points are large and filled on a step line, dominated ones small
 * rings, failed trials crosses and stopped ones open triangles in a lane below the plot. */
#include "web/report/report_priv.h"

#include "study/view/study_view.h"

#define LABELS_MAX 64

void svg_open(struct strbuf *out, int width, int height, const char *class_name, const char *label)
{
    put_xml(out, "<svg xmlns=\"" NS_SVG "\" viewBox=\"0 0 %d %d\" class=\"%s\" role=\"img\" aria-label=\"%s\">\n",
            width, height, class_name, label);
}

void svg_text(struct strbuf *out, double x, double y, const char *class_name, const char *text)
{
    put_xml(out, "<text x=\"%g\" y=\"%g\" class=\"%s\">%s</text>\n", x, y, class_name, text);
}

void svg_line(struct strbuf *out, double x1, double y1, double x2, double y2, const char *class_name)
{
    put_xml(out, "<path d=\"M%g %gL%g %g\" class=\"%s\"/>\n", x1, y1, x2, y2, class_name);
}

void svg_frame(struct strbuf *out, const struct axis *x, const struct axis *y, bool grid_x)
{
    for (size_t i = 0; i < y->n_ticks; i++) {
        double at = axis_at(y, y->ticks[i]);
        svg_line(out, x->from, at, x->to, at, "grid");
        svg_text(out, x->from - 8.0, at + 4.0, "tick end", y->labels[i]);
    }
    for (size_t i = 0; i < x->n_ticks; i++) {
        double at = axis_at(x, x->ticks[i]);
        svg_line(out, at, grid_x ? y->to : y->from, at, y->from + 4.0, "grid");
        bool at_edge = at + 3.7 * (double)strlen(x->labels[i]) > x->to + 12.0; /* half its width */
        svg_text(out, at_edge ? x->to + 11.0 : at, y->from + 18.0, at_edge ? "tick end" : "tick mid", x->labels[i]);
    }
    svg_line(out, x->from, y->from, x->to, y->from, "axis");
}

void svg_titles(struct strbuf *out, const struct study_view *v, const struct axis *x, int height, double metric_x,
                double metric_y, bool name_seconds)
{
    char text[2 * HUMAN_TEXT_MAX];

    svg_text(out, x->to, height - 8.0, "title end",
             v->search.cost == SEARCH_COST_STEPS                  ? "env steps of a trial, log scale"
             : name_seconds && study_cost_is_time(v->search.cost) ? "cost of a trial in seconds, log scale"
                                                                  : "cost of a trial, log scale");
    svg_text(out, metric_x, metric_y, "title", svg_metric(v, text));
}

const char *svg_metric(const struct study_view *v, char buf[2 * HUMAN_TEXT_MAX])
{
    snprintf(buf, 2 * HUMAN_TEXT_MAX, "%.60s (%s is better)", v->study.metric, v->study.maximize ? "higher" : "lower");
    return buf;
}

/* -- the front -- */

struct front_chart {
    const struct report *report;
    enum front_layout layout;
    int width, height;
    struct axis x, y;
    double left; /* where the plot begins */
    double lane_y; /* middle of the lane of trials without a score */
    bool has_lane;
};

/* A mark at x, y; its element stays open: "<path transform=... class=..." */
static void begin_mark(struct strbuf *out, double x, double y, const char *class_name, const char *path)
{
    put_xml(out, "<path transform=\"translate(%g %g)\" class=\"%s\" d=\"%s\"", x, y, class_name, path);
}

static void tooltip(struct strbuf *out, const struct front_chart *chart, size_t i)
{
    const struct report *report = chart->report;
    const struct study_view *v = report->view;
    const struct trial *trial = &v->trials[i];
    double cost = study_view_trial_cost(v, trial);
    char text[PROMISE_TEXT_MAX], broken[300];

    if (chart->layout == FRONT_PRINT)
        return;
    put_xml(out, "<title>trial %lld, %s", (long long)trial->number, trial_state_name(trial->state));
    if (!isnan(trial->score))
        put_xml(out, "\nscore %e in its run", trial->score);
    if (v->on_front[i] && report->promises[i].is_known)
        put_xml(out, "\nexpected %s", promise_text(&report->promises[i], text));
    if (!isnan(cost))
        put_xml(out, "\ncost %s", text_cost(v, cost, text));
    if (trial->env_steps > 0 && v->search.cost != SEARCH_COST_STEPS)
        put_xml(out, "\n%e env steps", (double)trial->env_steps);
    if (isfinite(study_view_third(v, i)))
        put_xml(out, "\n%s %e", v->search.outcomes.third, study_view_third(v, i));
    if (trial->reason != NULL)
        put_xml(out, "\n%s", trial->reason);
    study_view_explain_limit(v, i, broken, sizeof broken);
    if (broken[0] != '\0')
        put_xml(out, "\ninfeasible: %s", broken);
    strbuf_add(out, "</title>");
}

static void draw_dominated(struct strbuf *out, const struct front_chart *chart)
{
    const struct report *report = chart->report;
    const struct study_view *v = report->view;

    strbuf_addf(out, "<g class=\"dominated%s\">\n", report->n_plotted > 1000 ? " dense" : "");
    for (size_t i = 0; i < v->n; i++) {
        const struct trial *trial = &v->trials[i];
        if (!report->plotted[i] || (v->on_front[i] && !report->promises[i].is_known))
            continue;
        put_xml(out, "<circle cx=\"%g\" cy=\"%g\" r=\"3.5\"", axis_at(&chart->x, study_view_trial_cost(v, trial)),
                axis_at(&chart->y, trial->score));
        strbuf_add(out, v->on_front[i] ? " class=\"own\">" : study_view_breaks_limit(v, i) ? " class=\"over\">" : ">");
        if (chart->layout != FRONT_NARROW) /* a phone has no pointer that hovers */
            tooltip(out, chart, i);
        strbuf_add(out, "</circle>\n");
    }
    strbuf_add(out, "</g>\n");
}

/* Where trial i of the front stands: at what is expected of it. */
static double front_x(const struct front_chart *chart, size_t i)
{
    return axis_at(&chart->x, chart->report->promises[i].cost);
}

static double front_y(const struct front_chart *chart, size_t i)
{
    return axis_at(&chart->y, chart->report->promises[i].score);
}

/* Steps: the best score at each cost. */
static void draw_steps(struct strbuf *out, const struct front_chart *chart, bool area)
{
    const struct report *report = chart->report;
    double worst = report->view->study.maximize ? chart->y.from : chart->y.to;
    bool begun = false;
    double best = 0.0;

    put_xml(out, "<path d=\"M%g %g", front_x(chart, report->front[0]), worst);
    for (size_t i = 0; i < report->n_front; i++) { /* the recommended trial may be no member: it makes no step down */
        double at = front_y(chart, report->front[i]);
        if (begun && (report->view->study.maximize ? at >= best : at <= best))
            continue;
        begun = true;
        best = at;
        put_xml(out, "H%gV%g", front_x(chart, report->front[i]), at);
    }
    put_xml(out, "H%g", chart->x.to);
    if (area)
        put_xml(out, "V%gZ", worst);
    put_xml(out, "\" class=\"%s\"/>\n", area ? "reach" : "step");
}

struct box {
    double x0, x1, y0, y1;
};

static bool overlaps(const struct box *boxes, size_t n, const struct box *box)
{
    for (size_t i = 0; i < n; i++)
        if (box->x0 < boxes[i].x1 && boxes[i].x0 < box->x1 && box->y0 < boxes[i].y1 && boxes[i].y0 < box->y1)
            return true;
    return false;
}

/* Labels beside front points where there is room: best and knee first, then the others by cost. */
static void draw_labels(struct strbuf *out, const struct front_chart *chart)
{
    const struct report *report = chart->report;
    struct box boxes[LABELS_MAX];
    size_t n = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < report->n_front && n < LABELS_MAX; i++) {
            size_t at = report->front[i];
            bool special = at == report->best || at == report->knee;
            if (special != (pass == 0))
                continue;
            char text[HUMAN_TEXT_MAX];
            snprintf(text, sizeof text, "%s#%lld",
                     at == report->best && at == report->knee ? "best, knee "
                     : at == report->best                     ? "best "
                     : at == report->knee                     ? "knee "
                                                              : "",
                     (long long)report->view->trials[at].number);
            double x = front_x(chart, at), y = front_y(chart, at);
            double width = 7.2 * (double)strlen(text), above = report->view->study.maximize ? -10.0 : 20.0;
            double left = x - 8.0 - width < chart->x.from + 2.0 ? chart->x.from + 2.0 : x - 8.0 - width;
            struct box box = {left, left + width, y + above - 11.0, y + above + 3.0};
            if (overlaps(boxes, n, &box))
                continue;
            boxes[n++] = box;
            svg_text(out, left + width, y + above, special ? "label end strong" : "label end", text);
        }
    }
}

/* What fresh runs of a member's config are expected to keep. */
static void draw_intervals(struct strbuf *out, const struct front_chart *chart)
{
    for (size_t i = 0; i < chart->report->n_front; i++) {
        size_t at = chart->report->front[i];
        const struct promise *p = &chart->report->promises[at];
        if (!isfinite(p->lo) || !isfinite(p->hi))
            continue;
        double x = front_x(chart, at), lo = axis_at(&chart->y, p->lo), hi = axis_at(&chart->y, p->hi);
        svg_line(out, x, lo, x, hi, "interval");
        svg_line(out, x - 4.0, lo, x + 4.0, lo, "interval"); /* caps: the front's own line may cover the rest */
        svg_line(out, x - 4.0, hi, x + 4.0, hi, "interval");
    }
}

/* The member's rank in the third objective: the smallest number 3.5, the largest 9. */
static double third_radius(const struct report *report, size_t i)
{
    double own = study_view_expected_third(report->view, i);
    size_t below = 0;

    for (size_t k = 0; k < report->n_front; k++)
        below += study_view_expected_third(report->view, report->front[k]) < own;
    return 3.5 + 5.5 * (double)below / fmax((double)report->n_front - 1.0, 1.0);
}

/* A member seen once is open, a confirmed one filled. */
static void draw_front_points(struct strbuf *out, const struct front_chart *chart)
{
    const struct report *report = chart->report;

    for (size_t i = 0; i < report->n_front; i++) {
        size_t at = report->front[i];
        bool special = at == report->best || at == report->knee;
        put_xml(out, "<circle cx=\"%g\" cy=\"%g\" r=\"%g\" class=\"front%s\">", front_x(chart, at), front_y(chart, at),
                study_view_has_third(report->view) ? third_radius(report, at)
                : special                          ? 7.0
                                                   : 5.5,
                report->promises[at].n_seeds > 1 ? "" : " once");
        tooltip(out, chart, at);
        strbuf_add(out, "</circle>\n");
    }
}

static const char cross_path[] = "M-4-4L4 4M-4 4L4-4", triangle_path[] = "M-4.5-3.5H4.5L0 4.5Z";

static void draw_lane(struct strbuf *out, const struct front_chart *chart)
{
    const struct study_view *v = chart->report->view;

    for (size_t i = 0; i < v->n; i++) {
        const struct trial *trial = &v->trials[i];
        bool stopped = trial->state == TRIAL_STOPPED;
        if (!(stopped || trial->state == TRIAL_FAILED || trial->state == TRIAL_LOST))
            continue;
        double cost = study_view_trial_cost(v, &v->trials[i]),
               x = cost > 0.0 ? axis_at(&chart->x, cost) : chart->x.from;
        begin_mark(out, x, chart->lane_y, stopped ? "stopped" : "failed", stopped ? triangle_path : cross_path);
        strbuf_add(out, ">");
        tooltip(out, chart, i);
        strbuf_add(out, "</path>\n");
    }
}

/* Where an item of this many letters goes: on the next line when this one is full. */
static void legend_place(const struct front_chart *chart, double *x, double *y, size_t letters)
{
    if (*x > chart->left && *x + 15.0 + 6.9 * (double)letters > chart->width) {
        *x = chart->layout == FRONT_PRINT ? 10.0 : chart->left;
        *y += 18.0;
    }
}

static void legend_item(struct strbuf *out, const struct front_chart *chart, double *x, double *at_y, const char *mark,
                        const char *text)
{
    legend_place(chart, x, at_y, strlen(text));
    double y = *at_y;
    if (strncmp(mark, "front", 5) == 0 || strcmp(mark, "dominated") == 0 || strcmp(mark, "over") == 0) {
        put_xml(out, "<g class=\"%s\"><circle cx=\"%g\" cy=\"%g\" r=\"%s\" class=\"%s\"/></g>\n",
                mark[0] == 'o' ? "dominated" : mark, *x + 5.0, y - 4.5, mark[0] == 'f' ? "5.5" : "3.5",
                mark[0] == 'd' ? "dot" : mark);
    } else {
        begin_mark(out, *x + 5.0, y - 4.5, mark, mark[0] == 's' ? triangle_path : cross_path);
        strbuf_add(out, "/>\n");
    }
    svg_text(out, *x + 15.0, y, "legend", text);
    *x += 15.0 + 6.9 * (double)strlen(text) + 16.0;
}

/* Returns the base of its last line. */
static double draw_legend(struct strbuf *out, const struct front_chart *chart)
{
    const struct report *report = chart->report;
    const size_t *n = report->n_state;
    char text[HUMAN_TEXT_MAX];
    bool print = chart->layout == FRONT_PRINT, narrow = chart->layout == FRONT_NARROW || print;
    double x = print ? 10.0 : chart->left,
           y = chart->layout == FRONT_ALONE || chart->layout == FRONT_FLAT ? 56.0 : 18.0;

    snprintf(text, sizeof text, narrow ? "front" : "on the front (%zu)", report->n_front);
    legend_item(out, chart, &x, &y, "front", text);
    size_t n_once = 0;
    for (size_t i = 0; i < report->n_front; i++)
        n_once += report->promises[report->front[i]].n_seeds < 2;
    if (n_once > 0 && report_has_beliefs(report->view)) {
        snprintf(text, sizeof text, print ? "seen once" : narrow ? "once" : "seen once (%zu)", n_once);
        legend_item(out, chart, &x, &y, "front once", text);
    }
    size_t n_over = study_view_count_infeasible(report->view);
    if (report->n_plotted > report->n_front + n_over) {
        snprintf(text, sizeof text, narrow ? "others" : "other runs (%zu)",
                 report->n_plotted - report->n_front - n_over);
        legend_item(out, chart, &x, &y, "dominated", text);
    }
    if (n_over > 0) {
        snprintf(text, sizeof text, narrow ? "infeasible" : "infeasible (%zu)", n_over);
        legend_item(out, chart, &x, &y, "over", text);
    }
    if (study_view_has_third(report->view) && (print || !narrow)) {
        snprintf(text, sizeof text, "larger: more %.40s", report->view->search.outcomes.third);
        legend_item(out, chart, &x, &y, "front", text);
    }
    if (n[TRIAL_STOPPED] > 0) {
        snprintf(text, sizeof text, narrow ? "stopped" : "stopped early (%zu)", n[TRIAL_STOPPED]);
        legend_item(out, chart, &x, &y, "stopped", text);
    }
    if (report_has_beliefs(report->view) && report->n_front > 0 && (print || !narrow)) {
        legend_place(chart, &x, &y, strlen("fresh seeds, 95 %"));
        svg_line(out, x + 5.0, y - 10.0, x + 5.0, y + 1.0, "interval");
        svg_text(out, x + 12.0, y, "legend", "fresh seeds, 95 %");
        x += 12.0 + 6.9 * (double)strlen("fresh seeds, 95 %") + 16.0;
    }
    if (n[TRIAL_FAILED] + n[TRIAL_LOST] > 0) {
        snprintf(text, sizeof text, narrow ? "failed" : "failed or lost (%zu)", n[TRIAL_FAILED] + n[TRIAL_LOST]);
        legend_item(out, chart, &x, &y, "failed", text);
    }
    return y;
}

static void draw_axis_titles(struct strbuf *out, const struct front_chart *chart)
{
    const struct report *report = chart->report;
    char text[2 * HUMAN_TEXT_MAX];

    svg_titles(out, report->view, &chart->x, chart->height, chart->x.from - (chart->left < 62.0 ? 40.0 : 52.0),
               chart->y.to - (chart->layout == FRONT_PRINT ? 16.0 : 8.0), chart->layout == FRONT_PRINT);
    if (report->n_beyond > 0) {
        snprintf(text, sizeof text, "%zu far worse, drawn at the edge", report->n_beyond);
        svg_text(out, chart->x.to, report->view->study.maximize ? chart->y.from - 6.0 : chart->y.to + 12.0, "note end",
                 text);
    }
}

static const char *empty_text(const struct report *report)
{
    size_t n_open = report->n_state[TRIAL_QUEUED] + report->n_state[TRIAL_RUNNING];

    if (report->view->n == 0)
        return "No trial yet.";
    return n_open > 0 ? "No trial is done yet." : "No trial was done: there is no front.";
}

void draw_front(struct strbuf *out, const struct report *report, enum front_layout layout)
{
    bool narrow = layout == FRONT_NARROW, alone = layout == FRONT_ALONE || layout == FRONT_FLAT;

    draw_front_sized(out, report, layout, narrow ? 400 : 960, narrow ? 380 : alone ? 540 : 480);
}

void draw_front_sized(struct strbuf *out, const struct report *report, enum front_layout layout, int width, int height)
{
    bool narrow = width < 700, flat = layout == FRONT_FLAT, alone = flat || layout == FRONT_ALONE;
    bool is_time = study_cost_is_time(report->view->search.cost) && layout != FRONT_PRINT;
    struct front_chart chart = {
        .report = report, .layout = layout, .width = width, .height = height, .left = narrow ? 50.0 : 62.0};
    double left = chart.left, bottom = (double)chart.height - 46.0;
    char label[256];
    STRBUF(legend, 1 << 20);

    double top = draw_legend(&legend, &chart) + (layout == FRONT_PRINT ? 44.0 : 36.0);

    chart.has_lane = report->n_state[TRIAL_FAILED] + report->n_state[TRIAL_STOPPED] + report->n_state[TRIAL_LOST] > 0;
    double floor_y = chart.has_lane ? bottom - 24.0 : bottom;
    chart.lane_y = bottom - 11.0;
    axis_init(&chart.x, SPACE_LOG, is_time, report->cost_lo, report->cost_hi, left, (double)chart.width - 16.0,
              narrow ? 4 : 8);
    double lo = report->score_lo, hi = report->score_hi;
    for (size_t i = 0; i < report->n_front; i++) { /* the good ends of its intervals too; fmin and fmax leave NaN out */
        const struct promise *p = &report->promises[report->front[i]];
        if (report->view->study.maximize)
            hi = fmax(hi, p->hi);
        else
            lo = fmin(lo, p->lo);
    }
    axis_init(&chart.y, SPACE_LINEAR, false, lo, hi, floor_y, top, narrow ? 5 : 6);
    snprintf(label, sizeof label, "Cost against score of %zu trial%s, %zu of them on the front", report->n_plotted,
             PLURAL(report->n_plotted), report->n_front);
    svg_open(out, chart.width, chart.height, narrow ? "chart narrow" : alone ? "chart alone" : "chart wide", label);
    if (alone) {
        strbuf_add(out, "<style>");
        if (flat)
            report_style_flat(out);
        else
            strbuf_addf(out, "%s%s", report_style_colors, report_style_chart);
        strbuf_addf(out, "</style>\n<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", chart.width, chart.height);
        snprintf(label, sizeof label, "%.120s: cost against score", report->view->study.name);
        svg_text(out, left - 52.0 + 10.0, 28.0, "headline", label);
    }
    /* x ticks stand below the lane */
    for (size_t i = 0; i < chart.x.n_ticks; i++) {
        double at = axis_at(&chart.x, chart.x.ticks[i]);
        svg_line(out, at, top, at, bottom + 4.0, "grid");
        svg_text(out, at, bottom + 19.0, "tick mid", chart.x.labels[i]);
    }
    struct axis no_ticks = chart.x;
    no_ticks.n_ticks = 0;
    svg_frame(out, &no_ticks, &chart.y, false);
    if (chart.has_lane)
        svg_line(out, chart.x.from, bottom, chart.x.to, bottom, "axis");
    if (report->n_front > 0)
        draw_steps(out, &chart, true);
    draw_dominated(out, &chart);
    draw_lane(out, &chart);
    if (report->n_front > 0) {
        draw_steps(out, &chart, false);
        draw_intervals(out, &chart);
        draw_front_points(out, &chart);
        draw_labels(out, &chart);
    } else {
        svg_text(out, (chart.x.from + chart.x.to) / 2.0, (top + floor_y) / 2.0, "empty mid", empty_text(report));
    }
    strbuf_add(out, legend.text);
    draw_axis_titles(out, &chart);
    strbuf_add(out, "</svg>\n");
}
