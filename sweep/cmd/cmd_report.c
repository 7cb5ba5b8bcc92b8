/* cmd_report.c - `trawl report`: a study's report as a file, written whole or not at all. */
#include "base/os/file.h"
#include "study/view/study_view.h"
#include "study/version.h"
#include "sweep/cmd/commands.h"
#include "web/report/report.h"
#include "web/site/site.h"

#include <strings.h>

static const char *const format_names[] = {
    [REPORT_HTML] = "html", [REPORT_SVG] = "svg", [REPORT_CSV] = "csv", [REPORT_JSON] = "json",
    [REPORT_PDF] = "pdf",   [REPORT_PNG] = "png", [REPORT_TEX] = "tex"};
static const char *const figure_names[] = {[FIGURE_FRONT] = "front",
                                           [FIGURE_CURVES] = "curves",
                                           [FIGURE_IMPORTANCE] = "importance",
                                           [FIGURE_ATTAINMENT] = "attainment",
                                           [FIGURE_PARALLEL] = "parallel"};

struct request {
    const char *store_path, *path; /* path: NULL: standard output */
    enum report_format format;
    bool is_figure;
    struct figure figure;
};

static enum status find_format(const char *name, const char *path, const char *usual, enum report_format *ret_format,
                               struct error *err)
{
    const char *dot = path != NULL ? strrchr(path, '.') : NULL;
    const char *wanted = name != NULL ? name : dot != NULL ? dot + 1 : usual;

    for (size_t i = 0; i < COUNT(format_names); i++)
        if (strcasecmp(format_names[i], wanted) == 0) {
            *ret_format = (enum report_format)i;
            return ST_OK;
        }
    if (name == NULL)
        return FAIL(err, ST_USAGE,
                    "report: %s does not end in .html, .pdf, .png, .svg, .tex, .csv or .json; give --format", path);
    return FAIL(err, ST_USAGE, "report: --format is '%s'; html, pdf, png, svg, tex, csv and json are known", name);
}

/* "3.3in", "84mm", "8.4cm" or "240pt". */
static enum status parse_width(const char *text, double *ret_pt, struct error *err)
{
    static const struct {
        const char *name;
        double pt;
    } units[] = {{"in", 72.0}, {"mm", 72.0 / 25.4}, {"cm", 72.0 / 2.54}, {"pt", 1.0}};
    size_t n = strlen(text);
    char number[64];
    double value;

    for (size_t i = 0; i < COUNT(units); i++) {
        if (n < 3 || n - 2 >= sizeof number || strcmp(text + n - 2, units[i].name) != 0)
            continue;
        snprintf(number, sizeof number, "%.*s", (int)n - 2, text);
        if (!num_parse_f64(number, &value))
            break;
        *ret_pt = value * units[i].pt;
        if (*ret_pt >= FIGURE_MIN_PT && *ret_pt <= FIGURE_MAX_PT)
            return ST_OK;
        return FAIL(err, ST_USAGE, "report: --width is %s; 2in (51mm) to 20in (508mm) are drawn", text);
    }
    return FAIL(err, ST_USAGE, "report: --width is '%s'; a length with its unit is needed: 3.3in, 84mm, 8.4cm or 240pt",
                text);
}

static enum status find_figure(const char *name, const char *width, const char *over, int n_studies,
                               struct figure *ret_figure, struct error *err)
{
    size_t kind = 0;

    while (kind < COUNT(figure_names) && strcasecmp(figure_names[kind], name) != 0)
        kind++;
    if (kind == COUNT(figure_names))
        return FAIL(err, ST_USAGE,
                    "report: --figure is '%s'; front, curves, importance, attainment and parallel are known", name);
    ret_figure->kind = (enum report_figure)kind;
    TRY(parse_width(width != NULL ? width : "3.3in", &ret_figure->width_pt, err));
    if (over != NULL && ret_figure->kind != FIGURE_CURVES)
        return FAIL(err, ST_USAGE, "report: --over applies to --figure curves only; leave it out");
    if (over != NULL && strcmp(over, "steps") != 0 && strcmp(over, "seconds") != 0)
        return FAIL(err, ST_USAGE, "report: --over is '%s'; steps or seconds", over);
    ret_figure->over_seconds = over != NULL && strcmp(over, "seconds") == 0;
    if (n_studies > 1 && ret_figure->kind != FIGURE_ATTAINMENT)
        return FAIL(err, ST_USAGE,
                    "report: --figure %s shows one study, but %d are named; only attainment takes several",
                    figure_names[kind], n_studies);
    return ST_OK;
}

static enum status check_format(const struct request *r, struct error *err)
{
    bool drawn = r->format == REPORT_SVG || r->format == REPORT_PDF || r->format == REPORT_PNG;

    if (!r->is_figure && r->format == REPORT_TEX)
        return FAIL(err, ST_USAGE, "report: tex is the table of the front; add --figure front");
    if (!r->is_figure || drawn || (r->format == REPORT_TEX && r->figure.kind == FIGURE_FRONT))
        return ST_OK;
    return FAIL(err, ST_USAGE, "report: a figure of %s is svg, pdf or png%s, and not %s", figure_names[r->figure.kind],
                r->figure.kind == FIGURE_FRONT ? " (or tex, a table)" : "", format_names[r->format]);
}

static enum status make(const struct request *r, struct study_view *const *views, size_t n, struct strbuf *out,
                        struct error *err)
{
    return r->is_figure ? report_write_figure(views, n, &r->figure, out, err)
                        : report_write_whole(views[0], r->format, out, err);
}

static enum status write_report(const struct request *r, const struct cli_words *words, struct error *err)
{
    struct study_view *views[CLI_MAX_WORDS];
    size_t n = 0;
    enum status rc = ST_OK;

    if ((r->format == REPORT_PDF || r->format == REPORT_PNG) && r->path == NULL && isatty(STDOUT_FILENO))
        return FAIL(err, ST_USAGE, "report: %s cannot be shown in a terminal; give -o report.%s",
                    format_names[r->format], format_names[r->format]);
    for (; n < (size_t)words->n && rc == ST_OK; n++) {
        views[n] = mem_alloc(sizeof *views[n]); /* large */
        rc = study_view_open(r->store_path, words->v[n], views[n], err);
    }
    STRBUF(out, OUTPUT_MAX_BYTES);
    THEN(rc, make(r, views, n, &out, err));
    if (rc == ST_OK && r->path != NULL)
        rc = file_write_all(r->path, out.text, out.len, err);
    else if (rc == ST_OK)
        fwrite(out.text, 1, out.len, stdout);
    if (rc == ST_OK && r->path != NULL)
        fprintf(stderr, "wrote %s (%zu bytes)\n", r->path, out.len);
    while (n-- > 0) {
        study_view_free(views[n]);
        mem_free(views[n]);
    }
    return rc;
}

/* The studies as a folder of pages: those that are named, no more. */
static enum status write_site(const char *dir, const char *store_path, const struct cli_words *words, struct error *err)
{
    const char *names[CLI_MAX_WORDS];
    struct site_settings set = {.store_path = store_path,
                                .dir = dir,
                                .studies = names,
                                .program = program_text,
                                .version = program_version,
                                .commit = program_commit};
    struct site_written done;
    struct store *store;

    TRY(store_open_reader(&store, store_path, err));
    enum status rc = ST_OK;
    for (int i = 0; i < words->n && rc == ST_OK; i++) { /* each once */
        struct study study;
        rc = store_study_find(store, words->v[i], &study, err); /* whose failure lists those that there are */
        study_free(&study);
        if (word_index(names, set.n_studies, words->v[i]) == set.n_studies)
            names[set.n_studies++] = words->v[i];
    }
    store_close(store);
    TRY(rc);
    TRY(site_write(&set, &done, err));
    fprintf(
        stderr,
        "wrote %s/index.html with %zu files (%.1f MB, %zu policies that play); open it, or copy the folder to any web "
        "server\n",
        dir, done.n_files, (double)done.n_bytes / 1e6, done.n_games);
    return ST_OK;
}

enum status cmd_report(int argc, char **argv, struct error *err)
{
    const char *format_name = NULL, *figure_name = NULL, *width = NULL, *over = NULL, *site = NULL;
    struct request r = {.store_path = "trawl.db"};
    const struct cli_opt opts[] = {
        {"store", 0, CLI_STORE, &r.store_path, "FILE", "the store: a file, or postgresql://HOST/DATABASE (trawl.db)"},
        {"output", 'o', CLI_TEXT, &r.path, "FILE", "where to write; its suffix gives the format; - or none: stdout"},
        {"format", 'f', CLI_TEXT, &format_name, "FORMAT", "html, pdf, png, svg, tex, csv or json (html)"},
        {"figure", 0, CLI_TEXT, &figure_name, "KIND",
         "one chart for a paper: front, curves, importance, attainment, parallel"},
        {"width", 0, CLI_TEXT, &width, "LENGTH", "of the figure, with its unit: 3.3in, 84mm, 8.4cm, 240pt (3.3in)"},
        {"site", 0, CLI_TEXT, &site, "DIR",
         "a folder with the pages of `trawl serve`, read-only, that any web server or the disk alone shows"},
        {"over", 0, CLI_TEXT, &over, "AXIS", "of the figure's learning curves: steps or seconds (steps)"},
    };
    const struct cli cli = {
        .name = "report",
        .synopsis = "trawl report NAME [-o FILE] [--format html|pdf|png|svg|csv|json] [--store FILE]\n"
                    "       trawl report NAME... --figure KIND [--width LENGTH] [--format svg|pdf|png|tex] [-o FILE]\n"
                    "       trawl report NAME... --site DIR",
        .about = "Writes what a study found: the front of cost and score, hypervolume over trials and the parameters.\n"
                 "The HTML is one file that needs no network and no script; the PDF is A4 pages; PNG and SVG are the\n"
                 "chart of the front. It only reads the store.\n\n"
                 "A figure is one chart at the width of a paper's column, with letters of 7 pt or more, transparent\n"
                 "(PNG: white, 300 dots an inch): the front; the learning curves of best and knee over their seeds;\n"
                 "importance of the parameters; parallel: every trial as a line through its parameters; attainment:\n"
                 "the scores that a quarter, half and three quarters of several studies, which differ in their seed\n"
                 "alone, reach at a cost. --figure front --format tex is the front as a table of LaTeX, and a second\n"
                 "one of the search: space, compute and seeds.\n\n"
                 "--site writes the named studies as a folder: open its index.html, or copy it to any web\nserver. "
                 "The pages are those of `trawl serve` as of now. Policies of the front play in the browser:\n"
                 "built-in games by themselves, others as recorded.",
        .examples = "  trawl report first --store my.db -o report.html\n"
                    "  trawl report first --store my.db --format csv >trials.csv\n"
                    "  trawl report first --figure front --width 3.3in -o front.pdf\n"
                    "  trawl report first --figure front -o front.tex\n"
                    "  trawl report first --store my.db --site first-pages\n"
                    "  trawl report seed1 seed2 seed3 --figure attainment --width 84mm -o attainment.pdf",
        CLI_OPTS(opts),
        CLI_WORDS(1, CLI_MAX_WORDS, "a study's name (`trawl ls` lists them)"),
    };

    CLI_PARSE(cli, words);
    if (r.path != NULL && strcmp(r.path, "-") == 0) /* as elsewhere: standard output */
        r.path = NULL;
    if (site != NULL) {
        if (r.path != NULL || format_name != NULL || figure_name != NULL || width != NULL || over != NULL)
            return FAIL(err, ST_USAGE,
                        "report: --site is a whole folder; leave out -o, --format, --figure, --width and --over");
        return write_site(site, r.store_path, &words, err);
    }
    r.is_figure = figure_name != NULL;
    if (r.is_figure)
        TRY(find_figure(figure_name, width, over, words.n, &r.figure, err));
    else if (width != NULL || over != NULL)
        return FAIL(err, ST_USAGE, "report: --%s needs --figure front, curves, importance, attainment or parallel",
                    width != NULL ? "width" : "over");
    else if (words.n > 1)
        return FAIL(err, ST_USAGE, "report: a report shows one study, but %d are named; `trawl compare` compares two",
                    words.n);
    TRY(find_format(format_name, r.path, r.is_figure ? "svg" : "html", &r.format, err));
    TRY(check_format(&r, err));
    r.figure.format = r.format;
    if (r.path != NULL)
        TRY(check_output(r.path, OUTPUT_OTHER, NULL, 0, err));
    return write_report(&r, &words, err);
}
