/* plot.c - the front in a terminal: braille dots (2 x 4 in a cell) where the locale has them, else ASCII.
 * Invariant: a cell shows the most important of what falls into it: best, front, stairs of the front, other trials. */
#include "sweep/show/plot.h"

#include "study/view/study_view.h"
#include "sweep/term.h"

#define ROWS_MAX 40
#define COLUMNS_MAX 160
#define LABEL 9 /* columns of the score's labels */
#define DOTS_X 2
#define DOTS_Y 4

enum mark { MARK_NONE, MARK_TRIAL, MARK_STAIRS, MARK_FRONT, MARK_BEST };

struct canvas {
    int rows, columns;
    double lo[2], hi[2]; /* log cost, score (higher is better) */
    unsigned char mark[ROWS_MAX][COLUMNS_MAX];
    unsigned char dots[ROWS_MAX][COLUMNS_MAX]; /* braille bits */
};

static bool find_range(const struct study_view *v, struct canvas *c)
{
    bool any = false;

    for (size_t i = 0; i < v->n; i++) {
        double p[2] = {log(v->gp[i].cost), v->gp[i].score};
        if (v->gp[i].state != GP_TRIAL_DONE)
            continue;
        for (int k = 0; k < 2; k++) {
            c->lo[k] = any ? fmin(c->lo[k], p[k]) : p[k];
            c->hi[k] = any ? fmax(c->hi[k], p[k]) : p[k];
        }
        any = true;
    }
    return any;
}

static int at(double value, double lo, double hi, int n)
{
    return hi > lo ? (int)((value - lo) / (hi - lo) * (n - 1) + 0.5) : n / 2;
}

/* Sets one dot; x and y in dots, y from above. */
static void put(struct canvas *c, int x, int y, enum mark mark)
{
    static const unsigned char bits[DOTS_Y][DOTS_X] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    int column = x / DOTS_X, row = y / DOTS_Y;

    if (column < 0 || column >= c->columns || row < 0 || row >= c->rows)
        return;
    c->dots[row][column] |= bits[y % DOTS_Y][x % DOTS_X];
    if (c->mark[row][column] < mark)
        c->mark[row][column] = (unsigned char)mark;
}

static int dot_x(const struct canvas *c, double log_cost)
{
    return at(log_cost, c->lo[0], c->hi[0], c->columns * DOTS_X);
}

static int dot_y(const struct canvas *c, double score)
{
    return c->rows * DOTS_Y - 1 - at(score, c->lo[1], c->hi[1], c->rows * DOTS_Y);
}

/* Right from each point of the front until the next begins, then up to it. */
static void draw_stairs(struct canvas *c, const struct study_view *v)
{
    for (size_t i = 0; i < v->n; i++) {
        size_t next = v->n;
        if (!v->on_front[i])
            continue;
        for (size_t k = 0; k < v->n; k++)
            if (v->on_front[k] && v->gp[k].cost > v->gp[i].cost && (next == v->n || v->gp[k].cost < v->gp[next].cost))
                next = k;
        int x = dot_x(c, log(v->gp[i].cost));
        int y = dot_y(c, v->gp[i].score);
        int x_end = next < v->n ? dot_x(c, log(v->gp[next].cost)) : c->columns * DOTS_X - 1;
        int y_end = next < v->n ? dot_y(c, v->gp[next].score) : y;
        for (; x < x_end; x++)
            put(c, x, y, MARK_STAIRS);
        for (; y > y_end; y--)
            put(c, x_end, y, MARK_STAIRS);
    }
}

static void draw(struct canvas *c, const struct study_view *v)
{
    size_t best = study_view_pick(v, GP_BEST);

    draw_stairs(c, v);
    for (size_t i = 0; i < v->n; i++)
        if (v->gp[i].state == GP_TRIAL_DONE)
            put(c, dot_x(c, log(v->gp[i].cost)), dot_y(c, v->gp[i].score),
                i == best        ? MARK_BEST
                : v->on_front[i] ? MARK_FRONT
                                 : MARK_TRIAL);
}

static void add_cell(const struct canvas *c, int row, int column, bool unicode, struct strbuf *out)
{
    static const char *const ascii[] = {" ", ".", "-", "o", "*"};
    unsigned char dots = c->dots[row][column];
    enum mark mark = (enum mark)c->mark[row][column];
    char braille[4] = {(char)0xe2, (char)(0xa0 | dots >> 6), (char)(0x80 | (dots & 0x3f)), '\0'};

    if (!unicode || mark == MARK_NONE)
        strbuf_add(out, ascii[mark]);
    else
        strbuf_add(out, mark == MARK_BEST ? "\xe2\x97\x86" : mark == MARK_FRONT ? "\xe2\x97\x8f" : braille);
}

static void add_rows(const struct canvas *c, const struct study_view *v, const struct term_style *style,
                     struct strbuf *out)
{
    static const enum term_color colors[] = {COLOR_NONE, COLOR_DIM, COLOR_DIM, COLOR_GOOD, COLOR_BEST};
    double sign = v->study.maximize ? 1 : -1;

    for (int r = 0; r < c->rows; r++) {
        enum term_color now = COLOR_NONE;
        if (r == 0 || r == c->rows - 1 || (r == c->rows / 2 && c->rows >= 7))
            strbuf_addf(out, "%*.4g ", LABEL - 1,
                        sign * (c->hi[1] + (c->lo[1] - c->hi[1]) * (double)r / (c->rows > 1 ? c->rows - 1 : 1)));
        else
            strbuf_addf(out, "%*s", LABEL, "");
        strbuf_add(out, style->unicode ? "\xe2\x94\x82" : "|");
        for (int k = 0; k < c->columns; k++) {
            enum term_color color = colors[c->mark[r][k]];
            if (c->mark[r][k] == MARK_STAIRS)
                color = COLOR_GOOD;
            if (color != now)
                strbuf_add(out, term_paint(style, color));
            now = color;
            add_cell(c, r, k, style->unicode, out);
        }
        if (now != COLOR_NONE)
            strbuf_add(out, term_paint(style, COLOR_NONE));
        strbuf_add(out, "\n");
    }
}

static void add_axis(const struct canvas *c, const struct study_view *v, const struct term_style *style,
                     struct strbuf *out)
{
    char lo[32], mid[32], hi[32], line[COLUMNS_MAX + 64];

    strbuf_addf(out, "%*.*s %s", LABEL - 1, LABEL - 1, v->study.metric, style->unicode ? "\xe2\x94\x94" : "+");
    for (int k = 0; k < c->columns; k++)
        strbuf_add(out, style->unicode ? "\xe2\x94\x80" : "-");
    study_view_cost_text(v, exp(c->lo[0]), lo);
    study_view_cost_text(v, exp((c->lo[0] + c->hi[0]) / 2), mid);
    study_view_cost_text(v, exp(c->hi[0]), hi);
    int left = c->columns / 2 - (int)strlen(lo) - (int)strlen(mid) / 2;
    int right = c->columns - c->columns / 2 - (int)strlen(hi) - ((int)strlen(mid) + 1) / 2;
    if (left < 1 || right < 1)
        snprintf(line, sizeof line, "%s%*s%s", lo, c->columns - (int)strlen(lo) - (int)strlen(hi), "", hi);
    else
        snprintf(line, sizeof line, "%s%*s%s%*s%s", lo, left, "", mid, right, "", hi);
    strbuf_addf(out, "\n%*s  %s\n", LABEL - 1, "cost", line);
}

void plot_front(const struct study_view *v, const struct term_style *style, int rows, struct strbuf *out)
{
    struct canvas c = {.rows = rows < ROWS_MAX ? rows : ROWS_MAX, .columns = style->width - LABEL - 3};

    if (c.columns > COLUMNS_MAX)
        c.columns = COLUMNS_MAX;
    if (c.columns < 8 || c.rows < 2 || !find_range(v, &c))
        return;
    draw(&c, v);
    add_rows(&c, v, style, out);
    add_axis(&c, v, style, out);
}
