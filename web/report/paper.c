/* paper.c - the report on paper: A4 pages as SVG, one after another.
 *
 * Flow: a cursor runs down the page; a function that draws asks for room first (need) and gets a new page when there is
 * none. A chart is never cut; the table of the front is cut into blocks of columns, with its head on each. */
#include "web/report/report_priv.h"

#include "base/text/duration.h"

#include "study/view/resume_command.h"
#include "study/view/study_view.h"
#include "study/version.h"

#define MARGIN 42.0
#define INNER (PAGE_WIDTH - 2.0 * MARGIN)
#define BOTTOM (PAGE_HEIGHT - 48.0)
#define COLUMNS 7 /* trials beside each other in the table of the front */
#define FRONT_SHOWN 28 /* trials of the front in the table; more are counted */
#define FIXED_ROWS 8 /* of that table, above the parameters */
#define LINE_CHARS 112 /* of small text on a line */

struct pages {
    const struct report *report;
    struct strbuf *done; /* (n_done) finished pages, owned */
    size_t n_done, cap_done;
    struct strbuf svg; /* the page being drawn, owned */
    double y;
};

static void page_open(struct pages *p)
{
    char text[160];

    p->y = MARGIN + 4.0;
    strbuf_init(&p->svg, 256u << 20);
    strbuf_addf(&p->svg,
                "<svg xmlns=\"" NS_SVG "\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" class=\"chart\">\n<style>",
                PAGE_WIDTH, PAGE_HEIGHT, PAGE_WIDTH, PAGE_HEIGHT);
    report_style_flat(&p->svg);
    strbuf_add(&p->svg, ".chart .h1{font-size:22px;font-weight:600;fill:#000}.chart .h2{font-size:13px;font-weight:600;"
                        "fill:#000}.chart .body{font-size:8.5px}.chart .big{font-size:16px;font-weight:600;fill:#000}"
                        ".chart .cell{font-size:7.5px;fill:#000}.chart .head{font-size:7.5px;font-weight:600}"
                        ".chart .code{font:8.5px \"Liberation Mono\",\"DejaVu Sans Mono\",monospace;fill:#000}"
                        ".chart .caption{font-size:9px;font-weight:600;fill:#000}</style>\n");
    strbuf_addf(&p->svg, "<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", PAGE_WIDTH, PAGE_HEIGHT);
    svg_line(&p->svg, MARGIN, PAGE_HEIGHT - 34.0, PAGE_WIDTH - MARGIN, PAGE_HEIGHT - 34.0, "grid");
    snprintf(text, sizeof text, "%.60s, %.60s", p->report->view->study.name, program_text);
    svg_text(&p->svg, MARGIN, PAGE_HEIGHT - 22.0, "body", text);
    snprintf(text, sizeof text, "page %zu", p->n_done + 1);
    svg_text(&p->svg, PAGE_WIDTH - MARGIN, PAGE_HEIGHT - 22.0, "body end", text);
}

static void page_close(struct pages *p)
{
    strbuf_add(&p->svg, "</svg>\n");
    MEM_ROOM(p->done, p->n_done, p->cap_done);
    p->done[p->n_done++] = p->svg;
}

static void need(struct pages *p, double height)
{
    if (p->y + height <= BOTTOM)
        return;
    page_close(p);
    page_open(p);
}

static void heading(struct pages *p, const char *text, double with)
{
    need(p, 30.0 + with);
    p->y += 24.0;
    svg_text(&p->svg, MARGIN, p->y, "h2", text);
    p->y += 8.0;
}

static void line(struct pages *p, const char *class_name, const char *text)
{
    need(p, 13.0);
    p->y += 12.0;
    svg_text(&p->svg, MARGIN, p->y, class_name, text);
}

/* Small text over as many lines as it takes, broken at spaces. */
static void paragraph(struct pages *p, const char *text)
{
    char part[LINE_CHARS + 1];

    while (*text != '\0') {
        size_t n = strlen(text);
        if (n > LINE_CHARS) {
            for (n = LINE_CHARS; n > 0 && text[n] != ' '; n--)
                ;
            for (n = n > 0 ? n : LINE_CHARS; n > 1 && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
                ; /* never inside a character */
        }
        snprintf(part, sizeof part, "%.*s", (int)n, text);
        line(p, "body", part);
        text += n;
        text += strspn(text, " ");
    }
}

/* A chart of `width` x `height` of its own units, drawn by the caller between the two. */
static void frame_open(struct pages *p, double x, double y, double w, double width, double height)
{
    put_xml(&p->svg, "<svg x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %d %d\">\n", x, y, w,
            w * height / width, (int)width, (int)height);
}

static void frame_close(struct pages *p)
{
    strbuf_add(&p->svg, "</svg>\n");
}

/* What is expected of best and knee, and how sure that is. */
static void write_tiles(struct pages *p)
{
    const struct report *report = p->report;
    const struct study_view *v = report->view;
    char a[HUMAN_TEXT_MAX], text[2 * PROMISE_TEXT_MAX], words[PROMISE_TEXT_MAX];
    double step = INNER / 3.0, x = MARGIN;

    p->y += 30.0;
    for (int i = 0; i < 3; i++) {
        size_t at = i == 0 ? report->best : report->knee;
        const struct promise *promise = at < v->n ? &report->promises[at] : NULL;
        if (i < 2 && (promise == NULL || (i == 1 && at == report->best)))
            continue;
        svg_text(&p->svg, x, p->y, "big",
                 i == 2 ? format_seconds(report->total_cost_s, a) : text_number(promise->score, a));
        if (i == 2) {
            svg_text(&p->svg, x, p->y + 12.0, "body", "spent on all trials");
            continue;
        }
        snprintf(text, sizeof text, "%s, trial %lld: %s%s", i == 0 ? "best" : "knee", (long long)v->trials[at].number,
                 promise->is_known ? "95 % " : "one run",
                 promise->is_known ? promise_interval_text(promise, words) : "");
        svg_text(&p->svg, x, p->y + 12.0, "body", text);
        svg_text(&p->svg, x, p->y + 22.0, "body", promise_seeds_text(promise, words));
        snprintf(text, sizeof text, "cost %s", promise_cost_text(promise, v->search.cost, words));
        svg_text(&p->svg, x, p->y + 32.0, "body", text);
        x += step;
    }
    p->y += 40.0;
}

static void write_first(struct pages *p)
{
    const struct report *report = p->report;
    const struct study_view *v = report->view;
    char text[512], a[HUMAN_TEXT_MAX], b[HUMAN_TEXT_MAX];

    p->y += 16.0;
    snprintf(text, sizeof text, "%.48s%s", v->study.name, strlen(v->study.name) > 48 ? "..." : "");
    svg_text(&p->svg, MARGIN, p->y, "h1", text);
    p->y += 4.0;
    snprintf(text, sizeof text,
             "%zu trial%s: %zu done, %zu failed or lost, %zu stopped early; %zu on the front of cost against %.60s (%s "
             "is better).",
             v->n, PLURAL(v->n), report->n_state[TRIAL_DONE],
             report->n_state[TRIAL_FAILED] + report->n_state[TRIAL_LOST], report->n_state[TRIAL_STOPPED],
             report->n_front, v->study.metric, v->study.maximize ? "higher" : "lower");
    paragraph(p, text);
    snprintf(text, sizeof text, "Method %.40s, seed %lld. Started %s, last trial %s.", v->study.method,
             (long long)v->study.seed, text_time(v->study.created_ms > 0 ? v->study.created_ms : report->first_ms, a),
             text_time(report->last_ms, b));
    paragraph(p, text);
    write_tiles(p);
    frame_open(p, MARGIN, p->y, INNER, 960.0, 480.0);
    draw_front(&p->svg, report, FRONT_WIDE);
    frame_close(p);
    p->y += INNER * 0.5 + 4.0;
}

/* -- the table of the front: parameters down, trials across -- */

static void cell(struct pages *p, double x, const char *class_name, const char *text)
{
    svg_text(&p->svg, x, p->y, class_name, text);
}

static void table_row(struct pages *p, const char *label)
{
    p->y += 11.5;
    svg_line(&p->svg, MARGIN, p->y + 3.0, PAGE_WIDTH - MARGIN, p->y + 3.0, "grid");
    cell(p, MARGIN, "head", label);
}

static const char *fixed_row(const struct report *report, size_t at, int row, char buf[2 * HUMAN_TEXT_MAX])
{
    const struct trial *trial = &report->view->trials[at];
    const struct promise *promise = &report->promises[at];
    char a[HUMAN_TEXT_MAX];

    if (row == 0)
        snprintf(buf, 2 * HUMAN_TEXT_MAX, "#%lld%s%s", (long long)trial->number, at == report->best ? " best" : "",
                 at == report->knee ? " knee" : "");
    else if (row == 2)
        text_number(promise->lo, buf);
    else if (row == 3)
        text_number(promise->hi, buf);
    else if (row == 5 && promise->n_seeds > 1)
        snprintf(buf, 2 * HUMAN_TEXT_MAX, "%zu seeds", promise->n_seeds);
    else if (row == 5)
        snprintf(buf, 2 * HUMAN_TEXT_MAX, "once");
    else
        snprintf(buf, 2 * HUMAN_TEXT_MAX, "%s",
                 row == 1   ? text_number(promise->score, a)
                 : row == 4 ? text_number(trial->score, a)
                 : row == 6 ? text_cost(report->view, promise->cost, a)
                            : text_number((double)trial->env_steps, a));
    return buf;
}

static void table_block(struct pages *p, size_t from, size_t n)
{
    static const char *const rows[] = {"trial", "expected score", "95 % from", "to", "score of its run",
                                       "seen",  "cost",           "env steps"};
    const struct report *report = p->report;
    const struct space *space = &report->view->search.space;
    double first = MARGIN + 176.0, step = (PAGE_WIDTH - MARGIN - first) / (COLUMNS - 1);
    char buf[2 * HUMAN_TEXT_MAX], label[64];

    need(p, 11.5 * (double)(space->dim + FIXED_ROWS) + 8.0);
    for (int row = 0; row < FIXED_ROWS; row++) {
        if ((row == 2 || row == 3 || row == 4) && !report_has_beliefs(report->view))
            continue;
        table_row(p, rows[row]);
        for (size_t i = 0; i < n; i++)
            cell(p, first + step * (double)i, row == 0 ? "head end" : "cell end",
                 fixed_row(report, report->front[from + i], row, buf));
    }
    STRBUF(value, 1 << 16);
    for (size_t k = 0; k < space->dim; k++) {
        snprintf(label, sizeof label, "%.32s", search_param_name(space->params[k].key));
        table_row(p, label);
        for (size_t i = 0; i < n; i++) {
            strbuf_clear(&value);
            report_param_text(&value, report, report->front[from + i], k);
            snprintf(buf, 16, "%s", value.text);
            cell(p, first + step * (double)i, "cell end", buf);
        }
    }
    if (value.status != ST_OK)
        p->svg.status = value.status;
    p->y += 10.0;
}

static void write_table(struct pages *p)
{
    size_t n = p->report->n_front < FRONT_SHOWN ? p->report->n_front : FRONT_SHOWN;
    char text[160];

    if (n == 0)
        return;
    heading(p, "Trials on the front", 11.5 * (double)(p->report->view->search.space.dim + FIXED_ROWS) + 22.0);
    for (size_t from = 0; from < n; from += COLUMNS)
        table_block(p, from, n - from < COLUMNS ? n - from : COLUMNS);
    if (n < p->report->n_front) {
        snprintf(text, sizeof text,
                 "%zu more expensive ones are left out here; the HTML report and --format csv have them all.",
                 p->report->n_front - n);
        paragraph(p, text);
    }
}

static void write_charts(struct pages *p)
{
    const struct report *report = p->report;
    const struct space *space = &report->view->search.space;
    double half = (INNER - 16.0) / 2.0, third = (INNER - 24.0) / 3.0;

    heading(p, "Progress", half * 240.0 / 460.0 + 20.0);
    svg_text(&p->svg, MARGIN, p->y + 9.0, "caption", "Hypervolume over trials");
    svg_text(&p->svg, MARGIN + half + 16.0, p->y + 9.0, "caption", "Best config over cost spent, as expected");
    frame_open(p, MARGIN, p->y + 12.0, half, 460.0, 240.0);
    draw_hypervolume(&p->svg, report);
    frame_close(p);
    frame_open(p, MARGIN + half + 16.0, p->y + 12.0, half, 460.0, 240.0);
    draw_best_by_cost(&p->svg, report);
    frame_close(p);
    p->y += half * 240.0 / 460.0 + 16.0;
    if (report_has_insight(report->view) && space->dim > 0) {
        double height = (double)space->dim * 34.0 + 60.0, width = 0.8 * INNER;
        if (width * height / 700.0 > BOTTOM - MARGIN - 60.0) /* very many parameters: smaller, on one page */
            width = 700.0 * (BOTTOM - MARGIN - 60.0) / height;
        heading(p, "What matters: share of variance that each parameter explains alone", width * height / 700.0);
        frame_open(p, MARGIN, p->y, width, 700.0, height);
        draw_importance(&p->svg, report, 700, NULL);
        frame_close(p);
        p->y += width * height / 700.0;
    }
    if (space->dim == 0 || report->n_plotted == 0)
        return;
    heading(p, "Score against each parameter", third * 190.0 / 300.0 + 16.0);
    for (size_t k = 0; k < space->dim; k++) {
        double x = MARGIN + (double)(k % 3) * (third + 12.0);
        if (k % 3 == 0) {
            p->y += k > 0 ? third * 190.0 / 300.0 + 18.0 : 0.0;
            need(p, third * 190.0 / 300.0 + 18.0);
        }
        svg_text(&p->svg, x, p->y + 9.0, "caption", search_param_name(space->params[k].key));
        frame_open(p, x, p->y + 11.0, third, 300.0, 190.0);
        draw_strip(&p->svg, report, k);
        frame_close(p);
    }
    p->y += third * 190.0 / 300.0 + 18.0;
}

static void write_next(struct pages *p)
{
    heading(p, "What to do next", 60.0);
    STRBUF(command, 1 << 16);
    if (p->report->n_front > 0) {
        report_command(&command, p->report, "trawl export ", " --pick knee -o knee.ini");
        line(p, "code", command.text);
        line(p, "code", "trawl train knee.ini");
        strbuf_clear(&command);
        report_command(&command, p->report, "trawl export ", " --pick best -o best.ini");
        line(p, "code", command.text);
        line(p, "code", "trawl train best.ini");
        strbuf_clear(&command);
    }
    study_resume_command(p->report->view, p->report->store_path, &command);
    line(p, "code", command.text);
    if (command.status != ST_OK)
        p->svg.status = command.status;
}

enum status report_write_pages(const struct report *report, struct strbuf **ret_pages, size_t *ret_n, struct error *err)
{
    struct pages p = {.report = report};
    enum status rc = ST_OK;

    page_open(&p);
    write_first(&p);
    write_next(&p);
    write_table(&p);
    write_charts(&p);
    page_close(&p);
    for (size_t i = 0; i < p.n_done && rc == ST_OK; i++)
        rc = strbuf_status(&p.done[i], "a page of the report", err);
    *ret_pages = p.done;
    *ret_n = p.n_done;
    return rc;
}
