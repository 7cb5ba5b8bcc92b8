/* raster.c - see raster.h. */
#include "sweep/cmd/policy/raster.h"

#include "base/os/late.h"

#include <cairo.h>

#define SIDE_MAX 640

#define CAIRO_EACH(F)                                                                                                  \
    F(cairo_, arc)                                                                                                     \
    F(cairo_, create)                                                                                                  \
    F(cairo_, destroy)                                                                                                 \
    F(cairo_, fill)                                                                                                    \
    F(cairo_, identity_matrix)                                                                                         \
    F(cairo_, image_surface_create)                                                                                    \
    F(cairo_, image_surface_get_data)                                                                                  \
    F(cairo_, image_surface_get_stride)                                                                                \
    F(cairo_, line_to)                                                                                                 \
    F(cairo_, move_to)                                                                                                 \
    F(cairo_, new_sub_path)                                                                                            \
    F(cairo_, paint)                                                                                                   \
    F(cairo_, rectangle)                                                                                               \
    F(cairo_, scale)                                                                                                   \
    F(cairo_, select_font_face)                                                                                        \
    F(cairo_, set_font_size)                                                                                           \
    F(cairo_, set_line_width)                                                                                          \
    F(cairo_, set_source_rgb)                                                                                          \
    F(cairo_, show_text)                                                                                               \
    F(cairo_, status)                                                                                                  \
    F(cairo_, status_to_string)                                                                                        \
    F(cairo_, stroke)                                                                                                  \
    F(cairo_, surface_destroy)                                                                                         \
    F(cairo_, surface_flush)                                                                                           \
    F(cairo_, text_extents)
static struct {
    CAIRO_EACH(LATE_CALL)
} cairo;
static struct late_library libcairo = {"libcairo.so.2", "libcairo2", CAIRO_EACH(LATE_NAME), &cairo, false, NULL};

struct raster {
    int width, height;
    double scale; /* pixels of a picture's unit */
    cairo_surface_t *surface;
    cairo_t *cairo;
};

/* --game-0 to --game-11 of web/assets/style.css. */
static const uint32_t colours[ENV_COLOURS] = {0xf1f3f5, 0x2b3138, 0x0b64b8, 0xc2410c, 0x00755e, 0x7a1f5c,
                                              0xb3363f, 0xd9752b, 0xe0b03a, 0x5a9a4a, 0x2f7fb5, 0xd3d7db};

static int even_side(double side)
{
    int n = 2 * (int)lround(side / 2);
    return n < 2 ? 2 : n;
}

enum status raster_open(struct error *err)
{
    return late_open(&libcairo, err);
}

enum status raster_create(struct raster **ret_raster, double width, double height, struct error *err)
{
    TRY(raster_open(err));

    struct raster *r = mem_alloc(sizeof *r);

    r->scale = SIDE_MAX / fmax(width, height);
    r->width = even_side(width * r->scale);
    r->height = even_side(height * r->scale);
    r->surface = cairo.image_surface_create(CAIRO_FORMAT_RGB24, r->width, r->height);
    r->cairo = cairo.create(r->surface);
    if (cairo.status(r->cairo) != CAIRO_STATUS_SUCCESS ||
        cairo.image_surface_get_stride(r->surface) != r->width * (int)sizeof(uint32_t)) {
        enum status rc = FAIL(err, ST_INTERNAL, "a picture of %d x %d pixels cannot be drawn: %s", r->width, r->height,
                              cairo.status_to_string(cairo.status(r->cairo)));
        raster_destroy(r);
        return rc;
    }
    cairo.select_font_face(r->cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
    *ret_raster = r;
    return ST_OK;
}

void raster_destroy(struct raster *r)
{
    if (r == NULL)
        return;
    cairo.destroy(r->cairo);
    cairo.surface_destroy(r->surface);
    mem_free(r);
}

static void set_colour(cairo_t *c, enum env_colour colour)
{
    uint32_t rgb = colours[(int)colour >= 0 && colour < ENV_COLOURS ? colour : ENV_FOREGROUND];
    cairo.set_source_rgb(c, (rgb >> 16) / 255.0, (rgb >> 8 & 255) / 255.0, (rgb & 255) / 255.0);
}

static void draw_text(cairo_t *c, const struct env_mark *m)
{
    cairo_text_extents_t size;

    cairo.set_font_size(c, m->a[2]);
    cairo.text_extents(c, m->text, &size);
    cairo.move_to(c, m->a[0] - 0.5 * (m->align + 1) * size.x_advance, m->a[1]);
    cairo.show_text(c, m->text);
}

static void draw_mark(cairo_t *c, const struct env_mark *m)
{
    set_colour(c, m->colour);
    switch (m->kind) {
    case ENV_RECT:
        cairo.rectangle(c, m->a[0], m->a[1], m->a[2], m->a[3]);
        cairo.fill(c);
        break;
    case ENV_CIRCLE:
        cairo.new_sub_path(c);
        cairo.arc(c, m->a[0], m->a[1], fmax(m->a[2], 0), 0, 2 * M_PI);
        cairo.fill(c);
        break;
    case ENV_LINE:
        cairo.move_to(c, m->a[0], m->a[1]);
        cairo.line_to(c, m->a[2], m->a[3]);
        cairo.set_line_width(c, m->a[4]);
        cairo.stroke(c);
        break;
    case ENV_TEXT:
        draw_text(c, m);
        break;
    }
}

void raster_draw(struct raster *r, const struct env_picture *picture)
{
    cairo_t *c = r->cairo;

    cairo.identity_matrix(c);
    set_colour(c, ENV_BACKGROUND);
    cairo.paint(c);
    cairo.scale(c, r->scale, r->scale);
    for (size_t i = 0; i < picture->n; i++)
        draw_mark(c, &picture->marks[i]);
    cairo.surface_flush(r->surface);
}

const uint32_t *raster_pixels(const struct raster *r, int *ret_width, int *ret_height)
{
    *ret_width = r->width;
    *ret_height = r->height;
    return (const uint32_t *)(const void *)cairo.image_surface_get_data(r->surface);
}
