/* figure_parallel.c - every trial as a line through its parameters, cost and score. The axes lie one below the other,
 * so that any number of them fits a column of a paper with their names in full size. */
#include "web/report/report_priv.h"
#include "study/view/study_view.h"

#define ROW 40
#define TOP 34
#define OTHER_OPACITY 0.35

int parallel_height(const struct report *report)
{
    return TOP + ((int)report->view->search.space.dim + 2) * ROW;
}

/* Axis k: a parameter, then cost, then score. */
static void row_axis(const struct report *report, size_t k, double from, double to, struct axis *axis)
{
    const struct space *space = &report->view->search.space;

    if (k == space->dim) {
        axis_init(axis, SPACE_LOG, false, report->cost_lo, report->cost_hi, from, to, 4);
    } else if (k > space->dim) {
        axis_init(axis, SPACE_LINEAR, false, report->score_lo, report->score_hi, from, to, 4);
    } else {
        axis_of_param(axis, &report->view->search, k, from, to);
    }
}

static double row_y(size_t k)
{
    return TOP + 6.0 + (double)(k * ROW);
}

/* A point of trial i on axis k: what is expected, for members of the front. */
static double row_value(const struct report *report, size_t i, size_t k)
{
    const struct study_view *v = report->view;

    if (k < v->search.space.dim)
        return v->gp[i].x[k];
    if (k == v->search.space.dim)
        return v->on_front[i] ? report->promises[i].cost : study_view_trial_cost(v, &v->trials[i]);
    return v->on_front[i] ? report->promises[i].score : v->trials[i].score;
}

static void draw_trial(struct strbuf *out, const struct report *report, size_t i, const struct axis *axes)
{
    size_t n = report->view->search.space.dim + 2;

    strbuf_add(out, "<path d=\"");
    for (size_t k = 0; k < n; k++)
        put_xml(out, k == 0 ? "M%g %g" : "L%g %g", axis_at(&axes[k], row_value(report, i, k)), row_y(k));
    strbuf_addf(out, "\" class=\"%s\"/>\n",
                i == report->best           ? "chosen"
                : report->view->on_front[i] ? "member"
                                            : "other");
}

static void draw_row(struct strbuf *out, const struct report *report, size_t k, const struct axis *axis)
{
    const struct study_view *v = report->view;
    char key[HUMAN_TEXT_MAX], text[2 * HUMAN_TEXT_MAX];
    double y = row_y(k);

    if (k < v->search.space.dim)
        text_key(search_param_name(v->search.space.params[k].key), (size_t)((axis->from - 12.0) / 7.0), text);
    else if (k == v->search.space.dim)
        snprintf(text, sizeof text, "cost%s",
                 v->search.cost == SEARCH_COST_STEPS  ? ", env steps"
                 : study_cost_is_time(v->search.cost) ? ", seconds"
                                                      : "");
    else
        snprintf(text, sizeof text, "%s", text_key(v->study.metric, (size_t)((axis->from - 12.0) / 7.0), key));
    svg_text(out, axis->from - 10.0, y + 4.0, "title end", text);
    svg_line(out, axis->from, y, axis->to, y, "axis");
    for (size_t t = 0; t < axis->n_ticks; t++) {
        double at = axis_at(axis, axis->ticks[t]);
        svg_line(out, at, y - 3.0, at, y + 3.0, "axis");
        svg_text(out, at, y + 16.0, "label mid", axis->labels[t]);
    }
}

void draw_parallel(struct strbuf *out, const struct report *report, int width, int height)
{
    const struct study_view *v = report->view;
    size_t n = v->search.space.dim + 2;
    double from = width < 480 ? width * 0.4 : 190.0, to = width - 24.0;
    struct axis axes[SPACE_MAX_DIM + 2];

    for (size_t k = 0; k < n; k++)
        row_axis(report, k, from, to, &axes[k]);
    svg_open(out, width, height, "chart", "Parameters, cost and score of every trial");
    for (int pass = 0; pass < 3; pass++) { /* the best on top; thousands of others leave their density to be seen */
        double opacity = pass > 0 ? 1.0 : fmin(fmax(40.0 / (double)report->n_plotted, 0.03), OTHER_OPACITY);
        put_xml(out, "<g stroke-opacity=\"%e\">\n", opacity);
        for (size_t i = 0; i < v->n; i++)
            if (report->plotted[i] && pass == (i == report->best ? 2 : v->on_front[i] ? 1 : 0))
                draw_trial(out, report, i, axes);
        strbuf_add(out, "</g>\n");
    }
    for (size_t k = 0; k < n; k++)
        draw_row(out, report, k, &axes[k]);
    svg_line(out, 10.0, 13.0, 28.0, 13.0, "chosen");
    svg_text(out, 34.0, 17.0, "legend", "best");
    svg_line(out, 80.0, 13.0, 98.0, 13.0, "member");
    svg_text(out, 104.0, 17.0, "legend", "front");
    put_xml(out, "<g stroke-opacity=\"%e\">", OTHER_OPACITY);
    svg_line(out, 154.0, 13.0, 172.0, 13.0, "other");
    strbuf_add(out, "</g>\n");
    svg_text(out, 178.0, 17.0, "legend", "others");
    strbuf_add(out, "</svg>\n");
}
