/* curve_chart.c - learning curves as a picture: what tools/gpu-check wrote as curves-GAME.json, drawn as the report draws.
 *
 * usage: build/bench/curve_chart CURVES.json >CURVES.svg
 * The object has "game" and "series", each with "name", "steps", "mean", "low" and "high" of the same length. Two series
 * differ by the line too, not by colour alone. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os/file.h"
#include "base/text/json.h"
#include "base/mem.h"
#include "web/report/report_priv.h"

#define WIDTH 960
#define HEIGHT 480
#define SERIES_MAX 2
#define FILE_MAX_BYTES ((size_t)16 << 20)

static const char style[] = ".s0,.s1{fill:none;stroke-width:2;stroke-linejoin:round}.s0{stroke:var(--main)}"
                            ".s1{stroke:var(--bad);stroke-dasharray:6 3}.b0{fill:var(--main);fill-opacity:.14}"
                            ".b1{fill:var(--bad);fill-opacity:.14}";

static double number_at(const cJSON *series, const char *key, int i)
{
    const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(series, key), i);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

static int n_points(const cJSON *series)
{
    return cJSON_GetArraySize(cJSON_GetObjectItem(series, "steps"));
}

/* From `from` in steps of `by`, n points; a point without a number is passed over. Returns how many were drawn. */
static int add_path(struct strbuf *out, const cJSON *series, const char *key, int from, int by, int n,
                    const struct axis *x, const struct axis *y, bool begins)
{
    int drawn = 0;

    for (int i = from; n > 0; n--, i += by) {
        double value = number_at(series, key, i);
        if (isnan(value))
            continue;
        strbuf_add(out, begins && drawn == 0 ? "M" : "L");
        svg_number(out, axis_at(x, number_at(series, "steps", i)));
        strbuf_add(out, " ");
        svg_number(out, axis_at(y, value));
        drawn++;
    }
    return drawn;
}

static void draw_series(struct strbuf *out, const cJSON *series, int which, const struct axis *x, const struct axis *y)
{
    int n = n_points(series);

    strbuf_add(out, "<path d=\"");
    if (add_path(out, series, "high", 0, 1, n, x, y, true) > 0 &&
        add_path(out, series, "low", n - 1, -1, n, x, y, false) > 0)
        strbuf_add(out, "Z");
    strbuf_addf(out, "\" class=\"b%d\"/>\n<path d=\"", which);
    add_path(out, series, "mean", 0, 1, n, x, y, true);
    strbuf_addf(out, "\" class=\"s%d\"/>\n", which);
}

static enum status draw(struct strbuf *out, const cJSON *curves, struct error *err)
{
    const cJSON *all = cJSON_GetObjectItem(curves, "series"), *series;
    const char *game = json_get_str(curves, "game");
    double last = 0.0, label_x = 120.0;
    struct axis x, y;
    int which = 0;

    cJSON_ArrayForEach(series, all) last = fmax(last, number_at(series, "steps", n_points(series) - 1));
    if (game == NULL || !(last > 0.0) || cJSON_GetArraySize(all) > SERIES_MAX)
        return FAIL(err, ST_CORRUPT, "no curves: \"game\" and 1 to %d \"series\" with \"steps\" are needed",
                    SERIES_MAX);
    axis_init(&x, SPACE_LINEAR, false, 0.0, last, 62.0, WIDTH - 16.0, 8);
    axis_init(&y, SPACE_LINEAR, false, 0.0, 1.0, HEIGHT - 46.0, 92.0, 6);
    svg_open(out, WIDTH, HEIGHT, "chart alone", game);
    strbuf_addf(out, "<style>%s%s%s</style>\n<rect width=\"%d\" height=\"%d\" class=\"paper\"/>\n", report_style_colors,
                report_style_chart, style, WIDTH, HEIGHT);
    svg_text(out, 20.0, 28.0, "headline", game);
    svg_text(out, 62.0, 84.0, "title", "perf: mean, lowest and highest of the seeds");
    svg_text(out, x.to, HEIGHT - 8.0, "title end", "env steps");
    svg_frame(out, &x, &y, false);
    cJSON_ArrayForEach(series, all)
    {
        const char *name = json_get_str(series, "name"), class_name[] = {'s', (char)('0' + which), '\0'};
        draw_series(out, series, which++, &x, &y);
        svg_line(out, label_x, 52.0, label_x + 26.0, 52.0, class_name);
        svg_text(out, label_x + 34.0, 56.0, "legend", name != NULL ? name : "");
        label_x += 160.0;
    }
    strbuf_add(out, "</svg>\n");
    return ST_OK;
}

int main(int argc, char **argv)
{
    struct strbuf out;
    struct error err = {0};
    cJSON *curves = NULL;
    char *text = NULL;
    size_t n = 0;
    enum status rc;

    if (argc != 2) {
        fprintf(stderr, "usage: curve_chart CURVES.json >CURVES.svg\n");
        return 2;
    }
    strbuf_init(&out, FILE_MAX_BYTES);
    rc = file_read_all(argv[1], FILE_MAX_BYTES, &text, &n, &err);
    if (rc == ST_OK)
        rc = json_parse(text, n, &curves, &err);
    if (rc == ST_OK)
        rc = draw(&out, curves, &err);
    if (rc == ST_OK)
        rc = strbuf_status(&out, "a chart", &err);
    if (rc == ST_OK) {
        char *svg = strbuf_take(&out);
        fputs(svg, stdout);
        mem_free(svg);
    } else
        fprintf(stderr, "curve_chart: %s: %s\n", argv[1], err.text);
    cJSON_Delete(curves);
    mem_free(text);
    strbuf_free(&out);
    return rc == ST_OK ? 0 : 1;
}
