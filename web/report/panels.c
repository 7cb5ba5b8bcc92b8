/* panels.c - the small charts: hypervolume over trials, best score over cost spent, a strip per parameter. */
#include "web/report/report_priv.h"
#include "study/view/study_view.h"

#define PANEL_WIDTH 460
#define PANEL_HEIGHT 240
#define STRIP_WIDTH 300
#define STRIP_HEIGHT 190

void draw_hypervolume(struct strbuf *out, const struct report *report)
{
    struct axis x, y;
    double hi = 0.0;

    for (size_t i = 0; i < report->n_hv; i++)
        hi = fmax(hi, report->hv[i]);
    axis_init(&x, SPACE_LINEAR, false, 0.0, (double)report->view->n, 58.0, PANEL_WIDTH - 12.0, 6);
    x.lo = 0.0; /* no margin at the left: nothing is negative */
    axis_init(&y, SPACE_LINEAR, false, 0.0, hi > 0.0 ? hi : 1.0, PANEL_HEIGHT - 40.0, 16.0, 5);
    y.lo = 0.0;
    svg_open(out, PANEL_WIDTH, PANEL_HEIGHT, "chart", "Hypervolume of the front over trials");
    svg_frame(out, &x, &y, false);
    if (hi > 0.0) {
        put_xml(out, "<path d=\"M%g %g", axis_at(&x, 0.0), axis_at(&y, 0.0));
        for (size_t i = 0; i < report->n_hv; i++)
            put_xml(out, "H%gV%g", axis_at(&x, (double)report->hv_trials[i]), axis_at(&y, report->hv[i]));
        strbuf_add(out, "\" class=\"step\"/>\n");
    } else {
        svg_text(out, (x.from + x.to) / 2.0, (y.from + y.to) / 2.0, "empty mid", "Nothing beyond the reference yet.");
    }
    svg_text(out, x.to, PANEL_HEIGHT - 4.0, "title end", "trials");
    strbuf_add(out, "</svg>\n");
}

/* In order of trial number: the best score found, as it is expected now, over the time spent by then. */
void draw_best_by_cost(struct strbuf *out, const struct report *report)
{
    const struct study_view *v = report->view;
    struct axis x, y;
    double spent = 0.0, best = NAN;

    axis_init(&x, SPACE_LINEAR, true, 0.0, report->total_cost_s > 0.0 ? report->total_cost_s : 1.0, 58.0,
              PANEL_WIDTH - 12.0, 4);
    x.lo = 0.0;
    axis_init(&y, SPACE_LINEAR, false, report->score_lo, report->score_hi, PANEL_HEIGHT - 40.0, 16.0, 5);
    svg_open(out, PANEL_WIDTH, PANEL_HEIGHT, "chart", "Best expected score over the cost spent");
    svg_frame(out, &x, &y, false);
    if (report->n_plotted > 0) {
        strbuf_add(out, "<path d=\"");
        for (size_t i = 0; i < v->n; i++) {
            const struct trial *trial = &v->trials[i];
            if (trial->state >= TRIAL_DONE && isfinite(trial->cost_s) && trial->cost_s > 0.0)
                spent += trial->cost_s;
            double score = report->promises[i].score; /* of its one run, where nothing is known */
            if (!report->plotted[i] || !study_better(&v->study, score, best))
                continue;
            put_xml(out, isnan(best) ? "M%g %g" : "H%gV%g", axis_at(&x, spent), axis_at(&y, score));
            best = score;
        }
        put_xml(out, "H%g\" class=\"step\"/>\n", axis_at(&x, spent));
    } else {
        svg_text(out, (x.from + x.to) / 2.0, (y.from + y.to) / 2.0, "empty mid", "No trial is done yet.");
    }
    svg_text(out, x.to, PANEL_HEIGHT - 4.0, "title end", "time spent on trials");
    strbuf_add(out, "</svg>\n");
}

/* Categories: one tick for each, by its name, also where no trial has it. */
static void category_ticks(struct axis *axis, const struct search *search, size_t param)
{
    axis->n_ticks = 0;
    for (size_t c = 0; c < search->space.params[param].n_choices && axis->n_ticks < AXIS_MAX_TICKS; c++) {
        snprintf(axis->labels[axis->n_ticks], HUMAN_TEXT_MAX, "%.24s", search->choices[param][c]);
        axis->ticks[axis->n_ticks++] = (double)c;
    }
}

void axis_of_param(struct axis *axis, const struct search *search, size_t param, double from, double to)
{
    const struct space_param *p = &search->space.params[param];

    axis_init(axis, p->scale, false, p->min, p->max, from, to, 4);
    if (p->scale == SPACE_CATEGORICAL) {
        axis->lo = -0.5;
        axis->hi = fmax((double)p->n_choices, 1.0) - 0.5;
        category_ticks(axis, search, param);
    }
}

void draw_strip(struct strbuf *out, const struct report *report, size_t param)
{
    const struct study_view *v = report->view;
    const struct space_param *p = &v->search.space.params[param];
    struct axis x, y;
    char label[SPACE_KEY_MAX + 32];

    snprintf(label, sizeof label, "Score against %s", search_param_name(p->key));
    axis_of_param(&x, &v->search, param, 48.0, STRIP_WIDTH - 12.0);
    axis_init(&y, SPACE_LINEAR, false, report->score_lo, report->score_hi, STRIP_HEIGHT - 26.0, 12.0, 4);
    svg_open(out, STRIP_WIDTH, STRIP_HEIGHT, "chart strip", label);
    svg_frame(out, &x, &y, false);
    strbuf_add(out, "<path d=\"");
    for (size_t i = 0; i < v->n; i++) {
        if (!report->plotted[i] || v->on_front[i])
            continue;
        put_xml(out, "M%g %gh0", axis_at(&x, v->gp[i].x[param]), axis_at(&y, v->trials[i].score));
    }
    strbuf_add(out, "\" class=\"dots\"/>\n");
    for (size_t i = 0; i < report->n_front; i++) {
        const struct trial *trial = &v->trials[report->front[i]];
        put_xml(out, "<circle cx=\"%g\" cy=\"%g\" r=\"4.5\" class=\"front\"><title>trial %lld</title></circle>\n",
                axis_at(&x, v->gp[report->front[i]].x[param]), axis_at(&y, trial->score), (long long)trial->number);
    }
    strbuf_add(out, "</svg>\n");
}

/* Two bars a parameter: filled for the score, an outline for the cost. */
void draw_importance(struct strbuf *out, const struct report *report, int width, const char *title)
{
    const struct study_view *v = report->view;
    const struct space *space = &v->search.space;
    int left = width < 480 ? width * 2 / 5 : 190, key_letters = (left - 4) / 7 < 39 ? (left - 4) / 7 : 39;
    int height = (int)space->dim * IMPORTANCE_ROW + IMPORTANCE_REST;
    struct axis x;
    char text[HUMAN_TEXT_MAX];

    axis_init(&x, SPACE_LINEAR, false, 0.0, 1.0, left, width < 480 ? width - 20 : width - 60, 1);
    x.lo = 0.0;
    x.hi = 1.0;
    x.n_ticks = 0;
    svg_open(out, width, height + (title != NULL ? IMPORTANCE_TITLE : 0),
             title != NULL ? "chart"
             : width < 480 ? "chart narrow"
                           : "chart wide",
             "How much each parameter matters for score and cost");
    strbuf_addf(out, "<rect x=\"%d\" y=\"7\" width=\"14\" height=\"9\" class=\"bar\"/>\n", left);
    svg_text(out, left + 20.0, 16.0, "legend", "score");
    strbuf_addf(out, "<rect x=\"%d\" y=\"7\" width=\"14\" height=\"9\" class=\"bar cost\"/>\n", left + 72);
    svg_text(out, left + 92.0, 16.0, "legend", "cost");
    if (title != NULL)
        svg_text(out, width - 8.0, height + IMPORTANCE_TITLE - 10.0, "title end", title);
    for (int percent = 0; percent <= 100; percent += 25) {
        double at = axis_at(&x, percent / 100.0);
        svg_line(out, at, 26.0, at, (double)height - 30.0, "grid");
        snprintf(text, sizeof text, "%d %%", percent);
        if (width >= 300 || percent % 50 == 0)
            svg_text(out, at, (double)height - 12.0, "tick mid", text);
    }
    for (size_t k = 0; k < space->dim; k++) {
        double y = 32.0 + (double)k * IMPORTANCE_ROW;
        char key[HUMAN_TEXT_MAX];
        text_key(search_param_name(space->params[k].key), (size_t)key_letters, key);
        svg_text(out, left - 8.0, y + 14.0, "tick end", key);
        for (int side = 0; side < 2; side++) {
            const struct gp_importance *imp = side == 0 ? &v->advice.score[k] : &v->advice.cost[k];
            double effect = isfinite(imp->effect) ? imp->effect : 0.0,
                   sd = isfinite(imp->effect_sd) ? imp->effect_sd : 0.0;
            double top = y + side * 11.0;
            put_xml(out, "<rect x=\"%d\" y=\"%g\" width=\"%g\" height=\"9\" class=\"bar%s\"/>\n", left, top,
                    axis_at(&x, effect) - x.from, side == 0 ? "" : " cost");
            svg_line(out, axis_at(&x, effect - 2.0 * sd), top + 4.5, axis_at(&x, effect + 2.0 * sd), top + 4.5,
                     "whisker");
        }
    }
    strbuf_add(out, "</svg>\n");
}
