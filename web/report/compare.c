/* compare.c - two or more studies as one page: their fronts in one chart, their results, the differences between their
 * configs. */

#include "base/text/json.h"
#include "study/findings/comparison.h"
#include "study/view/study_view.h"
#include "web/report/report_priv.h"

#define COLORS 6

/* Distinct with every kind of colour blindness; from the seventh on their lines are broken. */
static const char style[] =
    ":root{--s0:#0b64b8;--s1:#c2410c;--s2:#00755e;--s3:#a34a8b;--s4:#8a6100;--s5:#2b8cc4}"
    "@media(prefers-color-scheme:dark){:root{--s0:#5cb3ff;--s1:#ff9561;--s2:#3fcfae;--s3:#e79bd0;--s4:#e5c05a;--s5:#"
    "9fd6f5}}"
    ".study path{fill:none;stroke-width:2;stroke-linejoin:round}.study .range{stroke-width:1.6;stroke-opacity:.5}"
    ".study circle{stroke:var(--card);stroke-width:1.5}.study.broken .front{stroke-dasharray:7 4}"
    ".c0 path{stroke:var(--s0)}.c0 circle{fill:var(--s0)}.c1 path{stroke:var(--s1)}.c1 circle{fill:var(--s1)}"
    ".c2 path{stroke:var(--s2)}.c2 circle{fill:var(--s2)}.c3 path{stroke:var(--s3)}.c3 circle{fill:var(--s3)}"
    ".c4 path{stroke:var(--s4)}.c4 circle{fill:var(--s4)}.c5 path{stroke:var(--s5)}.c5 circle{fill:var(--s5)}"
    ".study .front{fill:none}";

struct chart {
    const struct comparison *c;
    int width;
    struct axis x, y;
};

static void find_ranges(const struct comparison *c, double *lo, double *hi, double *cost_lo, double *cost_hi)
{
    *lo = *cost_lo = INFINITY;
    *hi = *cost_hi = -INFINITY;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->studies[i].n_front; k++) {
            const struct compared_point *p = &c->studies[i].front[k];
            *lo = fmin(*lo, fmin(p->score, p->lo)); /* fmin and fmax leave NaN out */
            *hi = fmax(*hi, fmax(p->score, p->hi));
            *cost_lo = fmin(*cost_lo, p->cost);
            *cost_hi = fmax(*cost_hi, p->cost);
        }
}

/* The best score at each cost: a step up at each member. */
static void draw_steps(struct strbuf *out, const struct chart *chart, const struct compared *s)
{
    for (size_t k = 0; k < s->n_front; k++) {
        put_xml(out, k == 0 ? "<path class=\"front\" d=\"M%g %g" : "H%gV%g", axis_at(&chart->x, s->front[k].cost),
                axis_at(&chart->y, s->front[k].score));
    }
    if (s->n_front > 0)
        put_xml(out, "H%g\"/>\n", chart->x.to);
}

static void draw_point(struct strbuf *out, const struct chart *chart, const struct compared *s,
                       const struct compared_point *p)
{
    bool has_range = isfinite(p->lo) && isfinite(p->hi);
    char text[HUMAN_TEXT_MAX];
    double x = axis_at(&chart->x, p->cost);

    if (has_range)
        svg_line(out, x, axis_at(&chart->y, p->lo), x, axis_at(&chart->y, p->hi), "range");
    put_xml(out, "<circle r=\"5\" cx=\"%g\" cy=\"%g\"><title>%s, trial %lld: %e at %s", x, axis_at(&chart->y, p->score),
            s->view->study.name, (long long)s->view->trials[p->trial].number, p->score,
            text_cost(s->view, p->cost, text));
    if (has_range)
        put_xml(out, ", 95 %% %e to %e", p->lo, p->hi);
    strbuf_add(out, "</title></circle>\n");
}

static void draw_study(struct strbuf *out, const struct chart *chart, size_t i)
{
    const struct compared *s = &chart->c->studies[i];

    strbuf_addf(out, "<g class=\"study c%zu%s\">\n", i % COLORS, i < COLORS ? "" : " broken");
    draw_steps(out, chart, s);
    for (size_t k = 0; k < s->n_front; k++)
        draw_point(out, chart, s, &s->front[k]);
    strbuf_add(out, "</g>\n");
}

/* Returns the base of its last line. */
static double draw_legend(struct strbuf *out, const struct chart *chart, double left)
{
    double x = left, y = 20;

    for (size_t i = 0; i < chart->c->n; i++) {
        char text[64];
        snprintf(text, sizeof text, "%.*s", chart->width < 700 ? 24 : 40, chart->c->studies[i].view->study.name);
        if (x > left && x + 30 + 7.2 * (double)strlen(text) > chart->width) {
            x = left;
            y += 18;
        }
        put_xml(out, "<g class=\"study c%zu%s\">", i % COLORS, i < COLORS ? "" : " broken");
        svg_line(out, x, y - 4, x + 20, y - 4, "front");
        strbuf_add(out, "</g>");
        svg_text(out, x + 26, y, "legend", text);
        x += 44 + 7.2 * (double)strlen(text);
    }
    return y;
}

static void draw_chart(struct strbuf *out, const struct comparison *c, int width, int height)
{
    const struct study_view *v = c->studies[0].view;
    double lo, hi, cost_lo, cost_hi, left = width < 700 ? 50 : 62;
    struct chart chart = {.c = c, .width = width};
    STRBUF(legend, 1u << 16);

    double top = draw_legend(&legend, &chart, left) + 28.0;
    find_ranges(c, &lo, &hi, &cost_lo, &cost_hi);
    axis_init(&chart.x, SPACE_LOG, study_cost_is_time(v->search.cost), cost_lo, cost_hi, left, width - 16,
              width < 700 ? 4 : 8);
    axis_init(&chart.y, SPACE_LINEAR, false, lo, hi, height - 46, top + 14, 6);
    svg_open(out, width, height, width < 700 ? "chart narrow" : "chart wide",
             "The fronts of the studies, cost against score");
    svg_frame(out, &chart.x, &chart.y, true);
    for (size_t i = 0; i < c->n; i++)
        draw_study(out, &chart, i);
    strbuf_add(out, legend.text);
    svg_titles(out, v, &chart.x, height, 10, top + 4, false);
    strbuf_add(out, "</svg>\n");
}

static void write_head_row(struct strbuf *out, const struct comparison *c)
{
    strbuf_add(out, "<div class=\"scroll\"><table>\n<thead><tr><th></th>");
    for (size_t i = 0; i < c->n; i++)
        put_xml(out, "<th>%s</th>", c->studies[i].view->study.name);
    strbuf_add(out, "</tr></thead>\n<tbody>\n");
}

static void write_cell(struct strbuf *out, const char *text)
{
    put_xml(out, "<td>%s</td>", text != NULL ? text : "\xe2\x80\x93");
}

static void write_rows(struct strbuf *out, const struct comparison *c, const struct report_row *rows, size_t n)
{
    strbuf_add(out, "<h2>Results</h2>\n");
    write_head_row(out, c);
    for (size_t k = 0; k < n; k++) {
        strbuf_add(out, "<tr>");
        write_cell(out, rows[k].what);
        for (size_t i = 0; i < c->n; i++)
            write_cell(out, rows[k].texts[i]);
        strbuf_add(out, "</tr>\n");
    }
    strbuf_add(out, "</tbody>\n</table></div>\n");
}

static void write_differences(struct strbuf *out, const struct comparison *c)
{
    const cJSON *row, *value;

    strbuf_add(out, "<h2>Differences between their configs</h2>\n");
    if (c->differences->child == NULL) {
        strbuf_add(out, "<p>None.</p>\n");
        return;
    }
    write_head_row(out, c);
    cJSON_ArrayForEach(row, c->differences)
    {
        strbuf_add(out, "<tr>");
        write_cell(out, json_get_str(row, "key"));
        cJSON_ArrayForEach(value, json_get(row, "values"))
            write_cell(out, cJSON_IsString(value) ? value->valuestring : NULL);
        strbuf_add(out, "</tr>\n");
    }
    strbuf_add(out, "</tbody>\n</table></div>\n");
}

enum status report_write_comparison(struct strbuf *out, const struct comparison *c, const struct report_row *rows,
                                    size_t n, struct error *err)
{
    STRBUF(title, 1u << 16);

    for (size_t i = 0; i < c->n; i++) {
        strbuf_add(&title, i == 0 ? "" : ", ");
        strbuf_add(&title, c->studies[i].view->study.name);
    }
    html_begin(out, title.text, "Trawl comparison", style);
    strbuf_add(out, "<h1>");
    for (size_t i = 0; i < c->n; i++)
        put_xml(out, i == 0 ? "%s" : i + 1 < c->n ? ", %s" : " and %s", c->studies[i].view->study.name);
    strbuf_add(out, "</h1>\n<p class=\"soft small\">The front of each study as its models expect it of fresh runs; the "
                    "lines at its members are intervals of 95 %.</p>\n<div class=\"card\">\n");
    draw_chart(out, c, 960, 480);
    draw_chart(out, c, 400, 380);
    strbuf_add(out, "</div>\n");
    write_rows(out, c, rows, n);
    write_differences(out, c);
    html_end(out);
    return strbuf_status(out, "the comparison", err);
}
