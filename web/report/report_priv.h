/* report_priv.h - what the files of the report share: the view (what is plotted, computed once), texts, drawing. */
#pragma once

#include "base/text/human.h"
#include "base/text/json.h"
#include "web/report/report.h"
#include "gp/gp.h"
#include "store/store.h"
#include "study/findings/briefing.h"
#include "web/text/put.h"

struct promise;
struct search;
struct strbuf;
struct study_view;

#define NS_SVG "http://www.w3.org/2000/svg" /* a name, never fetched */

/* -- what is shown: report_data.c -- */

/* Trials are indices into view->trials. "Plotted" is a done trial with finite score and positive finite cost. */
struct report {
    const struct study_view *view; /* borrowed */
    const char *store_path; /* for the commands that the page suggests; NULL: left out */
    size_t n_state[TRIAL_STATES];
    cJSON **params; /* (n) parsed, owned; NULL where a trial has none */
    bool *plotted; /* (n), owned */
    size_t n_plotted;
    struct promise *promises; /* (n) what is expected of each, owned */
    size_t *front; /* (n_front) by rising cost as expected, owned */
    size_t n_front;
    size_t knee, best; /* by gp_pick; n when there is none */
    double score_lo, score_hi; /* plotted range; far worse scores are drawn at its edge */
    size_t n_beyond; /* how many those are */
    double cost_lo, cost_hi; /* of all plotted trials and of failed ones with a cost */
    double total_cost_s; /* of all finished trials */
    double propose_median_s, propose_max_s; /* that choosing a trial took; NaN when unknown */
    int64_t first_ms, last_ms; /* first created, last finished; 0: none */
    size_t n_hv; /* points of the hypervolume curve */
    size_t *hv_trials; /* (n_hv) trials counted so far, owned */
    double *hv; /* (n_hv) of what is believed, where it is known; owned */
    struct briefing briefing;
};
enum status report_init(struct report *ret_report, const struct study_view *view, const char *store_path,
                        struct error *err) MUST_USE;
void report_free(struct report *report);
size_t report_pick(const struct study_view *view, enum gp_rule rule); /* GP_BEST or GP_KNEE; n: none */
void report_promise(const struct study_view *view, size_t i, struct promise *ret_promise); /* of trial i */
bool report_has_beliefs(const struct study_view *view); /* in all trials */
bool report_has_insight(const struct study_view *view); /* importance and edges too */

/* -- texts: report_text.c; each fits HUMAN_TEXT_MAX and is returned in buf -- */
const char *text_cost(const struct study_view *v, double cost, char buf[HUMAN_TEXT_MAX]); /* duration, or steps */
/* A parameter's name in at most that many letters (below 40): without its section where it is longer, then cut. */
const char *text_key(const char *key, size_t letters, char buf[HUMAN_TEXT_MAX]);

/* "BEFORE", the study's name, its store, "AFTER" as one command of the shell. */
void report_command(struct strbuf *out, const struct report *report, const char *before, const char *after);

/* -- axes: axis.c -- */
#define AXIS_MAX_TICKS 16

struct axis {
    enum space_scale scale;
    bool is_time; /* seconds, labelled s, min, h */
    double lo, hi; /* values at both ends, lo < hi */
    double from, to; /* where those lie in the drawing */
    size_t n_ticks;
    double ticks[AXIS_MAX_TICKS];
    char labels[AXIS_MAX_TICKS][HUMAN_TEXT_MAX];
};
/* Widens lo..hi a little (equal ends a lot) and chooses up to n_ticks ticks. */
void axis_init(struct axis *axis, enum space_scale scale, bool is_time, double lo, double hi, double from, double to,
               size_t n_ticks);
double axis_at(const struct axis *axis, double value); /* position, inside from..to */

/* -- drawing: svg.c, panels.c; classes are styled by report_style -- */
extern const char report_style_colors[]; /* CSS: the variables, for light, dark and print */
extern const char report_style_chart[]; /* CSS of the charts */
extern const char report_style_page[]; /* CSS of the page */
void report_style_flat(struct strbuf *out); /* CSS of the charts with print's colours put in, for render.c */

/* FRONT_ALONE is a file of its own; FRONT_FLAT the same without what librsvg does not know. */
/* FRONT_PRINT is for figure.c: few words, seconds on the axis, no tooltips. */
enum front_layout { FRONT_WIDE, FRONT_NARROW, FRONT_ALONE, FRONT_FLAT, FRONT_PRINT };
void draw_front(struct strbuf *out, const struct report *report, enum front_layout layout);
void draw_front_sized(struct strbuf *out, const struct report *report, enum front_layout layout, int width, int height);
void draw_hypervolume(struct strbuf *out, const struct report *report);
void draw_best_by_cost(struct strbuf *out, const struct report *report);
void draw_strip(struct strbuf *out, const struct report *report, size_t param);
/* Shares of variance with a standard deviation; only where report_has_insight. title: NULL: none, else IMPORTANCE_TITLE
 * below the axis. */
#define IMPORTANCE_ROW 34 /* height of a parameter, and of the rest */
#define IMPORTANCE_REST 60
#define IMPORTANCE_TITLE 14
void draw_importance(struct strbuf *out, const struct report *report, int width, const char *title);
/* The whole range of a searched parameter; choices by their names. */
void axis_of_param(struct axis *axis, const struct search *search, size_t param, double from, double to);

void svg_open(struct strbuf *out, int width, int height, const char *class_name, const char *label);
void svg_text(struct strbuf *out, double x, double y, const char *class_name, const char *text); /* escaped */
void svg_line(struct strbuf *out, double x1, double y1, double x2, double y2, const char *class_name);
void svg_frame(struct strbuf *out, const struct axis *x, const struct axis *y, bool grid_x);
const char *svg_metric(const struct study_view *v, char buf[2 * HUMAN_TEXT_MAX]); /* "score (higher is better)" */
/* Titles of a chart of cost against score: the cost's at the right below, the metric's at metric_x, metric_y. */
void svg_titles(struct strbuf *out, const struct study_view *v, const struct axis *x, int height, double metric_x,
                double metric_y, bool name_seconds);

/* -- pages of paper: paper.c; pictures: render.c -- */
#define PAGE_WIDTH 595 /* A4 in points */
#define PAGE_HEIGHT 842

/* The report as pages of PAGE_WIDTH x PAGE_HEIGHT, each an SVG. *ret_pages: (*ret_n) the caller's. */
enum status report_write_pages(const struct report *report, struct strbuf **ret_pages, size_t *ret_n,
                               struct error *err) MUST_USE;

/* SVGs over width x height points (1/72 in) as a file: a page each; PNG on white, with that many pixels a point. */
enum status render_pdf(struct strbuf *out, const struct strbuf *pages, size_t n, double width, double height,
                       const char *title, struct error *err) MUST_USE;
enum status render_png(struct strbuf *out, const struct strbuf *svg, double width, double height, double pixels,
                       struct error *err) MUST_USE;

/* -- figures for papers: figure.c, figure_curves.c, front_tex.c; sizes in units of the chart -- */
enum status draw_curves(struct strbuf *out, const struct report *report, bool over_seconds, int width, int height,
                        struct error *err) MUST_USE;
void draw_parallel(struct strbuf *out, const struct report *report, int width, int height);
int parallel_height(const struct report *report);
void report_write_tex(struct strbuf *out, const struct report *report);

/* -- formats: html.c, data.c -- */
void report_write_html(struct strbuf *out, const struct report *report);
/* A page's head, up to <main>; style: CSS besides the report's. And its end. */
void html_begin(struct strbuf *out, const char *title, const char *kind, const char *style);
void html_end(struct strbuf *out);
enum status report_write_csv(struct strbuf *out, const struct study_view *v, struct error *err) MUST_USE;
enum status report_write_json(struct strbuf *out, const struct study_view *v, struct error *err) MUST_USE;
/* The trial's params, parsed: ST_CORRUPT when they are not a JSON object. NULL when it has none; the caller deletes. */
enum status report_params_parse(const struct trial *trial, cJSON **ret_params, struct error *err) MUST_USE;
/* The value that trial i has of searched parameter k, for people; "-" where it has no effect. */
void report_param_text(struct strbuf *out, const struct report *report, size_t i, size_t k);
