/* cmd_report.c - `trawl report`: a study's report as a file, written whole or not at all. */
#include "base/file.h"
#include "base/status.h"
#include "base/strbuf.h"
#include "study/study_view.h"
#include "study/version.h"
#include "sweep/cli.h"
#include "sweep/cmd/commands.h"
#include "web/report/report.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const char *const format_names[] = {[REPORT_HTML] = "html", [REPORT_SVG] = "svg", [REPORT_CSV] = "csv",
                                           [REPORT_JSON] = "json", [REPORT_PDF] = "pdf", [REPORT_PNG] = "png"};
#define N_FORMATS (sizeof format_names / sizeof format_names[0])

static enum status find_format(const char *name, const char *path, enum report_format *ret_format, struct error *err)
{
    const char *dot = path != NULL ? strrchr(path, '.') : NULL;
    const char *wanted = name != NULL ? name : dot != NULL ? dot + 1 : "html";

    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcasecmp(format_names[i], wanted) == 0) {
            *ret_format = (enum report_format)i;
            return ST_OK;
        }
    if (name == NULL)
        return FAIL(err, ST_USAGE, "report: %s does not end in .html, .pdf, .png, .svg, .csv or .json; give --format",
                    path);
    return FAIL(err, ST_USAGE, "report: --format is '%s'; html, pdf, png, svg, csv and json are known", name);
}

static enum status write_report(const char *store_path, const char *study, enum report_format format, const char *path,
                                struct error *err)
{
    bool binary = format == REPORT_PDF || format == REPORT_PNG;
    struct study_view view;
    struct strbuf out;
    enum status rc;

    if (binary && path == NULL && isatty(STDOUT_FILENO))
        return FAIL(err, ST_USAGE, "report: %s cannot be shown in a terminal; give -o report.%s", format_names[format],
                    format_names[format]);
    TRY(study_view_open(store_path, study, &view, err));
    strbuf_init(&out, OUTPUT_MAX_BYTES);
    rc = report_write_whole(&view, format, &out, err);
    if (rc == ST_OK && path != NULL)
        rc = file_write_all(path, out.text, out.len, err);
    else if (rc == ST_OK)
        fwrite(out.text, 1, out.len, stdout);
    if (rc == ST_OK && path != NULL)
        fprintf(stderr, "wrote %s (%zu bytes)\n", path, out.len);
    strbuf_free(&out);
    study_view_free(&view);
    return rc;
}

enum status cmd_report(int argc, char **argv, struct error *err)
{
    const char *store_path = "trawl.db", *path = NULL, *format_name = NULL;
    struct cli_words words;
    enum report_format format = REPORT_HTML;
    const struct cli_opt opts[] = {
        {"store", 0, CLI_TEXT, &store_path, "FILE", "the store (trawl.db)"},
        {"output", 'o', CLI_TEXT, &path, "FILE", "where to write; its suffix gives the format; - or none: stdout"},
        {"format", 'f', CLI_TEXT, &format_name, "FORMAT", "html, pdf, png, svg, csv or json (html)"},
    };
    const struct cli cli = {
        .name = "report",
        .synopsis = "trawl report NAME [-o FILE] [--format html|pdf|png|svg|csv|json] [--store FILE]",
        .about = "Writes what a study found: the front of cost and score, hypervolume over trials and the parameters. "
                 "The HTML\n"
                 "is one file that needs no network and no script; the PDF is A4 pages; PNG and SVG are the chart of "
                 "the front. It\n"
                 "only reads the store.",
        .examples = "  trawl report first --store my.db -o report.html\n"
                    "  trawl report first --store my.db --format csv >trials.csv",
        .opts = opts,
        .n_opts = sizeof opts / sizeof opts[0],
        .min_words = 1,
        .max_words = 1,
        .words_text = "a study's name (`trawl ls` lists them)",
    };

    TRY(cli_parse(&cli, argc, argv, &words, err));
    if (words.help)
        return ST_OK;
    if (path != NULL && strcmp(path, "-") == 0) /* as elsewhere: standard output */
        path = NULL;
    TRY(find_format(format_name, path, &format, err));
    if (path != NULL)
        TRY(check_output(path, err));
    return write_report(store_path, words.v[0], format, path, err);
}
