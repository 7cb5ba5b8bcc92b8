/* draw.h - a game as a picture: a short list of shapes that are painted in order. Host only. (public; part of
 * trawl_env.h) Coordinates are the game's own, y downwards, inside width x height. Colours are roles, so that a
 * page paints them by its theme. */
#ifndef ENVS_DRAW_H
#define ENVS_DRAW_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define ENV_PICTURE_MAX 256 /* shapes; what does not fit is left out */
#define ENV_TEXT_MAX 48

enum env_colour {
    ENV_BACKGROUND,
    ENV_FOREGROUND,
    ENV_OWN, /* what the policy moves */
    ENV_OPPONENT,
    ENV_GOAL,
    ENV_RAMP, /* six steps of one ramp: ENV_RAMP + 0..5 */
    ENV_FAINT = ENV_RAMP + 6, /* lines of a grid */
    ENV_COLOURS
};

enum env_shape_kind { ENV_RECT, ENV_CIRCLE, ENV_LINE, ENV_TEXT };

struct env_mark {
    enum env_shape_kind kind;
    double a[5]; /* rect: x y w h; circle: x y radius; line: x1 y1 x2 y2 width; text: x, y of its baseline, size */
    int align; /* text: -1 begins at x, 0 has its middle there, 1 ends there */
    enum env_colour colour;
    char text[ENV_TEXT_MAX];
};

struct env_picture {
    double width, height;
    size_t n;
    struct env_mark marks[ENV_PICTURE_MAX];
};

/* The next shape; what does not fit is drawn into one that nothing shows. */
static inline struct env_mark *env_draw_mark(struct env_picture *p, enum env_shape_kind kind, enum env_colour colour)
{
    static __thread struct env_mark spare;
    struct env_mark *mark = p->n < ENV_PICTURE_MAX ? &p->marks[p->n++] : &spare;

    mark->kind = kind;
    mark->colour = colour;
    return mark;
}

static inline void env_draw_rect(struct env_picture *p, double x, double y, double w, double h, enum env_colour colour)
{
    struct env_mark *m = env_draw_mark(p, ENV_RECT, colour);
    m->a[0] = x;
    m->a[1] = y;
    m->a[2] = w;
    m->a[3] = h;
}

static inline void env_draw_circle(struct env_picture *p, double x, double y, double radius, enum env_colour colour)
{
    struct env_mark *m = env_draw_mark(p, ENV_CIRCLE, colour);
    m->a[0] = x;
    m->a[1] = y;
    m->a[2] = radius;
}

static inline void env_draw_line(struct env_picture *p, double x1, double y1, double x2, double y2, double width,
                                 enum env_colour colour)
{
    struct env_mark *m = env_draw_mark(p, ENV_LINE, colour);
    m->a[0] = x1;
    m->a[1] = y1;
    m->a[2] = x2;
    m->a[3] = y2;
    m->a[4] = width;
}

/* align: -1 begins at x, 0 has its middle there, 1 ends there. No quotes, no backslashes. */
__attribute__((format(printf, 6, 7))) static inline void env_draw_text(struct env_picture *p, double x, double y,
                                                                       double size, int align, const char *fmt, ...)
{
    struct env_mark *m = env_draw_mark(p, ENV_TEXT, ENV_FOREGROUND);
    va_list args;

    m->a[0] = x;
    m->a[1] = y;
    m->a[2] = size;
    m->align = align;
    va_start(args, fmt);
    vsnprintf(m->text, sizeof m->text, fmt, args);
    va_end(args);
}

#endif
