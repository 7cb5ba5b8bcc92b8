/* render.c - pictures and paper from the report's own SVG, by librsvg and cairo.
 * A build without librsvg has the same functions; they report that. */
#include "web/report/report_priv.h"

#ifdef TRAWL_RSVG

#include "base/os/late.h"

#include <cairo-pdf.h>
#include <librsvg/rsvg.h>

#define DRAW_EACH(F)                                                                                                   \
    F(, cairo_create)                                                                                                  \
    F(, cairo_destroy)                                                                                                 \
    F(, cairo_image_surface_create)                                                                                    \
    F(, cairo_paint)                                                                                                   \
    F(, cairo_pdf_surface_create_for_stream)                                                                           \
    F(, cairo_pdf_surface_set_metadata)                                                                                \
    F(, cairo_scale)                                                                                                   \
    F(, cairo_set_source_rgb)                                                                                          \
    F(, cairo_show_page)                                                                                               \
    F(, cairo_status)                                                                                                  \
    F(, cairo_status_to_string)                                                                                        \
    F(, cairo_surface_destroy)                                                                                         \
    F(, cairo_surface_finish)                                                                                          \
    F(, cairo_surface_status)                                                                                          \
    F(, cairo_surface_write_to_png_stream)                                                                             \
    F(, g_error_free)                                                                                                  \
    F(, g_memory_input_stream_new_from_data)                                                                           \
    F(, g_object_unref)                                                                                                \
    F(, rsvg_handle_new_from_stream_sync)                                                                              \
    F(, rsvg_handle_render_document)
static struct { /* cairo and GLib are libraries that librsvg itself needs, so it brings their functions */
    DRAW_EACH(LATE_CALL)
} draw;
static struct late_library librsvg = {"librsvg-2.so.2", "librsvg2-2", DRAW_EACH(LATE_NAME), &draw, false, NULL};

enum status report_render_open(struct error *err)
{
    return late_open(&librsvg, err);
}

static cairo_status_t collect(void *context, const unsigned char *bytes, unsigned int n)
{
    struct strbuf *out = context;

    strbuf_add_n(out, (const char *)bytes, n);
    return out->status == ST_OK ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

static enum status cairo_ok(cairo_status_t status, const struct strbuf *out, struct error *err)
{
    if (out->status != ST_OK)
        return strbuf_status(out, "the report", err);
    if (status == CAIRO_STATUS_NO_MEMORY)
        return FAIL(err, ST_NOMEM, "no memory to draw the report");
    return status == CAIRO_STATUS_SUCCESS
               ? ST_OK
               : FAIL(err, ST_INTERNAL, "cairo could not draw the report: %s", draw.cairo_status_to_string(status));
}

/* Draws one SVG over width x height of the context's units. */
static enum status draw_svg(cairo_t *cr, const struct strbuf *svg, double width, double height, struct error *err)
{
    RsvgRectangle viewport = {0.0, 0.0, width, height};
    GError *problem = NULL;
    enum status rc = ST_OK;
    GInputStream *stream = draw.g_memory_input_stream_new_from_data(svg->text, (gssize)svg->len, NULL);
    /* unlimited: a chart of 10,000 trials has more elements than librsvg lets pass from strangers */
    RsvgHandle *handle =
        draw.rsvg_handle_new_from_stream_sync(stream, NULL, RSVG_HANDLE_FLAG_UNLIMITED, NULL, &problem);

    if (handle == NULL || !draw.rsvg_handle_render_document(handle, cr, &viewport, &problem))
        rc = FAIL(err, ST_INTERNAL, "librsvg could not draw the report: %s",
                  problem != NULL ? problem->message : "no reason given");
    if (problem != NULL)
        draw.g_error_free(problem);
    if (handle != NULL)
        draw.g_object_unref(handle);
    draw.g_object_unref(stream);
    return rc;
}

enum status render_png(struct strbuf *out, const struct strbuf *svg, double width, double height, double pixels,
                       struct error *err)
{
    TRY(report_render_open(err));

    cairo_surface_t *surface =
        draw.cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)round(width * pixels), (int)round(height * pixels));
    cairo_t *cr = draw.cairo_create(surface);

    draw.cairo_set_source_rgb(cr, 1.0, 1.0, 1.0);
    draw.cairo_paint(cr);
    draw.cairo_scale(cr, pixels, pixels);
    enum status rc = draw_svg(cr, svg, width, height, err);
    THEN(rc, cairo_ok(draw.cairo_status(cr), out, err));
    THEN(rc, cairo_ok(draw.cairo_surface_write_to_png_stream(surface, collect, out), out, err));
    draw.cairo_destroy(cr);
    draw.cairo_surface_destroy(surface);
    return rc;
}

/* Pages of one size, each an SVG. */
enum status render_pdf(struct strbuf *out, const struct strbuf *pages, size_t n, double width, double height,
                       const char *title, struct error *err)
{
    TRY(report_render_open(err));

    cairo_surface_t *surface = draw.cairo_pdf_surface_create_for_stream(collect, out, width, height);
    cairo_t *cr = draw.cairo_create(surface);
    enum status rc = ST_OK;

    draw.cairo_pdf_surface_set_metadata(surface, CAIRO_PDF_METADATA_TITLE, title);
    for (size_t i = 0; i < n && rc == ST_OK; i++) {
        rc = draw_svg(cr, &pages[i], width, height, err);
        draw.cairo_show_page(cr);
    }
    draw.cairo_destroy(cr);
    draw.cairo_surface_finish(surface);
    THEN(rc, cairo_ok(draw.cairo_surface_status(surface), out, err));
    draw.cairo_surface_destroy(surface);
    return rc;
}

#else

enum status report_render_open(struct error *err)
{
    return FAIL(
        err, ST_USAGE,
        "this trawl was built without librsvg, which draws PDF and PNG: install librsvg2-dev and build again, or "
        "write .html (a browser prints it) or .svg");
}

enum status render_png(struct strbuf *out, const struct strbuf *svg, double width, double height, double pixels,
                       struct error *err)
{
    (void)out, (void)svg, (void)width, (void)height, (void)pixels;
    return report_render_open(err);
}

enum status render_pdf(struct strbuf *out, const struct strbuf *pages, size_t n, double width, double height,
                       const char *title, struct error *err)
{
    (void)out, (void)pages, (void)n, (void)width, (void)height, (void)title;
    return report_render_open(err);
}

#endif
