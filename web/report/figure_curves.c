/* figure_curves.c - learning curves of the recommended configs: each run of the config of the best and of the knee, and with
 * three runs or more their middle and quartiles, over env steps or seconds. */
#include "web/report/report_priv.h"

#include "study/findings/seed_stats.h"
#include "study/view/study_view.h"

#define GRID 80 /* places at which the runs of a config are compared */
#define BAND_RUNS 3

struct run {
    struct curve_point *points; /* (n) those with a finite value; owned */
    size_t n;
};
struct group { /* the runs of one config */
    const char *what;
    size_t trial; /* the first of them */
    struct run *runs; /* (n) owned */
    size_t n;
};
struct curves {
    struct group groups[2]; /* (n) */
    size_t n;
    bool over_seconds;
    struct axis x, y;
};

static double place(const struct curves *c, const struct curve_point *p)
{
    return c->over_seconds ? p->wall_s : (double)p->env_steps;
}

/* Finished runs of trial i's config that have a curve of the study's metric. */
static enum status load_group(struct store *store, const struct study_view *v, size_t i, const char *what,
                              struct curves *c, struct error *err)
{
    struct group *g = &c->groups[c->n++];

    *g = (struct group){.what = what, .trial = i, .runs = mem_array(v->n, sizeof *g->runs)};
    for (size_t k = 0; k < v->n; k++) {
        struct run run = {NULL, 0};
        size_t n = 0;
        if (v->trials[k].state != TRIAL_DONE || (k != i && !study_view_same_point(v, i, k)))
            continue;
        TRY(store_curve(store, v->trials[k].id, v->study.metric, &run.points, &n, err));
        for (size_t p = 0; p < n; p++)
            if (isfinite(run.points[p].value) && isfinite(place(c, &run.points[p])))
                run.points[run.n++] = run.points[p];
        if (run.n > 1)
            g->runs[g->n++] = run;
        else
            mem_free(run.points);
    }
    return ST_OK;
}

static void free_curves(struct curves *c)
{
    for (size_t i = 0; i < c->n; i++) {
        for (size_t k = 0; k < c->groups[i].n; k++)
            mem_free(c->groups[i].runs[k].points);
        mem_free(c->groups[i].runs);
    }
}

/* The run's value at a place inside of it, linear between its points. */
static double value_at(const struct curves *c, const struct run *run, double at)
{
    size_t k = 1;

    while (k + 1 < run->n && place(c, &run->points[k]) < at)
        k++;
    double from = place(c, &run->points[k - 1]), to = place(c, &run->points[k]);
    double share = to > from ? fmin(fmax((at - from) / (to - from), 0.0), 1.0) : 1.0;
    return run->points[k - 1].value + share * (run->points[k].value - run->points[k - 1].value);
}

static void path(struct strbuf *out, const struct curves *c, const double *x, const double *y, size_t n)
{
    for (size_t k = 0; k < n; k++)
        put_xml(out, k == 0 ? "M%g %g" : "L%g %g", axis_at(&c->x, x[k]), axis_at(&c->y, y[k]));
}

/* Middle and quartiles where all runs have values. */
static void draw_band(struct strbuf *out, const struct curves *c, const struct group *g)
{
    double from = -INFINITY, to = INFINITY, x[2 * GRID], edge[2 * GRID], middle[GRID];
    MEM_LOCAL double *values = mem_array(g->n, sizeof *values);
    struct seed_stats stats;

    for (size_t k = 0; k < g->n; k++) {
        from = fmax(from, place(c, &g->runs[k].points[0]));
        to = fmin(to, place(c, &g->runs[k].points[g->runs[k].n - 1]));
    }
    for (size_t i = 0; i < GRID; i++) {
        x[i] = x[2 * GRID - 1 - i] = from + (to - from) * (double)i / (GRID - 1);
        for (size_t k = 0; k < g->n; k++)
            values[k] = value_at(c, &g->runs[k], x[i]);
        seed_stats(values, g->n, &stats);
        edge[i] = stats.high;
        edge[2 * GRID - 1 - i] = stats.low;
        middle[i] = stats.middle;
    }
    if (!(to > from))
        return;
    strbuf_add(out, "<path d=\"");
    path(out, c, x, edge, (size_t)2 * GRID);
    strbuf_add(out, "Z\" class=\"band\"/>\n<path d=\"");
    path(out, c, x, middle, GRID);
    strbuf_add(out, "\" class=\"step\"/>\n");
}

static void draw_group(struct strbuf *out, const struct curves *c, const struct group *g)
{
    bool has_band = g->n >= BAND_RUNS;

    strbuf_addf(out, "<g class=\"%s\">\n", g == &c->groups[0] ? "first" : "second");
    if (has_band)
        draw_band(out, c, g);
    for (size_t k = 0; k < g->n; k++) {
        strbuf_add(out, "<path d=\"");
        for (size_t p = 0; p < g->runs[k].n; p++) {
            const struct curve_point *at = &g->runs[k].points[p];
            put_xml(out, p > 0 ? "L%g %g" : "M%g %g", axis_at(&c->x, place(c, at)), axis_at(&c->y, at->value));
        }
        strbuf_addf(out, "\" class=\"%s\"/>\n", has_band ? "run" : "step");
    }
    strbuf_add(out, "</g>\n");
}

static void draw_legend(struct strbuf *out, const struct curves *c, const struct study_view *v, int width)
{
    char text[2 * HUMAN_TEXT_MAX];
    double y = 18.0;

    for (size_t i = 0; i < c->n; i++, y += 18.0) {
        const struct group *g = &c->groups[i];
        strbuf_addf(out, "<g class=\"%s\">", i == 0 ? "first" : "second");
        svg_line(out, 10.0, y - 4.0, 30.0, y - 4.0, "step");
        strbuf_add(out, "</g>");
        snprintf(text, sizeof text, "%s, #%lld: %s%zu seed%s", g->what, (long long)v->trials[g->trial].number,
                 g->n >= BAND_RUNS && width >= 360 ? "median, quartiles, " : "", g->n, g->n == 1 ? "" : "s");
        svg_text(out, 36.0, y, "legend", text);
    }
}

static void draw_all(struct strbuf *out, struct curves *c, const struct study_view *v, int width, int height)
{
    double lo = INFINITY, hi = -INFINITY, to = 0.0, top = 18.0 * (double)c->n + 36.0;
    char text[2 * HUMAN_TEXT_MAX];

    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->groups[i].n; k++)
            for (size_t p = 0; p < c->groups[i].runs[k].n; p++) {
                const struct curve_point *point = &c->groups[i].runs[k].points[p];
                lo = fmin(lo, point->value);
                hi = fmax(hi, point->value);
                to = fmax(to, place(c, point));
            }
    axis_init(&c->x, SPACE_LINEAR, false, 0.0, to, 50.0, width - 16.0, width < 700 ? 4 : 8);
    c->x.lo = 0.0;
    axis_init(&c->y, SPACE_LINEAR, false, lo, hi, height - 46.0, top, 5);
    svg_open(out, width, height, "chart", "Learning curves of the best config and of the knee");
    svg_frame(out, &c->x, &c->y, true);
    for (size_t i = c->n; i-- > 0;)
        draw_group(out, c, &c->groups[i]);
    draw_legend(out, c, v, width);
    svg_text(out, c->x.to, height - 8.0, "title end", c->over_seconds ? "training time in seconds" : "env steps");
    svg_text(out, 10.0, top - 8.0, "title", svg_metric(v, text));
    strbuf_add(out, "</svg>\n");
}

enum status draw_curves(struct strbuf *out, const struct report *report, bool over_seconds, int width, int height,
                        struct error *err)
{
    const struct study_view *v = report->view;
    AT_END(free_curves) struct curves c = {.over_seconds = over_seconds};
    AT_END(store_close_at) struct store *store = NULL;

    if (report->best >= v->n)
        return FAIL(err, ST_NOTFOUND, "study %s has no trial on its front, whose curve is drawn", v->study.name);
    TRY(store_open_reader(&store, v->store_path, err));
    TRY(load_group(store, v, report->best, report->knee == report->best ? "best and knee" : "best", &c, err));
    if (report->knee < v->n && report->knee != report->best)
        TRY(load_group(store, v, report->knee, "knee", &c, err));
    if (c.groups[0].n == 0)
        return FAIL(err, ST_NOTFOUND,
                    "study %s has no learning curve of %s for its best trial %lld: its runs reported that metric at "
                    "fewer than two places",
                    v->study.name, v->study.metric, (long long)v->trials[report->best].number);
    if (c.n == 2 && c.groups[1].n == 0) { /* that of the knee is not there */
        mem_free(c.groups[1].runs);
        c.n = 1;
    }
    draw_all(out, &c, v, width, height);
    return ST_OK;
}
