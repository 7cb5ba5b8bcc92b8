/* draw.c - one function for each game: its state as a picture. */
#include "envs/draw.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "envs/games/breakout.h"
#include "envs/games/cartpole.h"
#include "envs/envs.h"
#include "envs/games/memory.h"
#include "envs/games/pong.h"
#include "envs/games/squared.h"

static struct env_mark *add(struct env_picture *p, enum env_shape_kind kind, enum env_colour colour)
{
    static _Thread_local struct env_mark spare; /* of what does not fit */

    struct env_mark *mark = p->n < ENV_PICTURE_MAX ? &p->marks[p->n++] : &spare;
    mark->kind = kind;
    mark->colour = colour;
    return mark;
}

static void rect(struct env_picture *p, double x, double y, double w, double h, enum env_colour colour)
{
    struct env_mark *m = add(p, ENV_RECT, colour);
    m->a[0] = x;
    m->a[1] = y;
    m->a[2] = w;
    m->a[3] = h;
}

static void circle(struct env_picture *p, double x, double y, double radius, enum env_colour colour)
{
    struct env_mark *m = add(p, ENV_CIRCLE, colour);
    m->a[0] = x;
    m->a[1] = y;
    m->a[2] = radius;
}

static void line(struct env_picture *p, double x1, double y1, double x2, double y2, double width,
                 enum env_colour colour)
{
    struct env_mark *m = add(p, ENV_LINE, colour);
    m->a[0] = x1;
    m->a[1] = y1;
    m->a[2] = x2;
    m->a[3] = y2;
    m->a[4] = width;
}

__attribute__((format(printf, 6, 7))) static void text(struct env_picture *p, double x, double y, double size,
                                                       int align, const char *fmt, ...)
{
    struct env_mark *m = add(p, ENV_TEXT, ENV_FOREGROUND);
    va_list args;

    m->a[0] = x;
    m->a[1] = y;
    m->a[2] = size;
    m->align = align;
    va_start(args, fmt);
    vsnprintf(m->text, sizeof m->text, fmt, args);
    va_end(args);
}

static void draw_breakout(const void *settings, const void *state, struct env_picture *p)
{
    const struct breakout_state *s = state;

    (void)settings;
    p->width = BREAKOUT_WIDTH;
    p->height = BREAKOUT_HEIGHT;
    for (int r = 0; r < BREAKOUT_ROWS; r++)
        for (int c = 0; c < BREAKOUT_COLS; c++)
            if (s->bricks[r] >> c & 1u)
                rect(p, c * (double)BREAKOUT_BRICK_W + 1, (double)BREAKOUT_BRICK_Y + r * (double)BREAKOUT_BRICK_H + 1,
                     (double)BREAKOUT_BRICK_W - 2, (double)BREAKOUT_BRICK_H - 2, (enum env_colour)(ENV_RAMP + r));
    rect(p, (double)s->paddle_x, (double)BREAKOUT_PADDLE_Y, (double)s->paddle_width, (double)BREAKOUT_PADDLE_HEIGHT,
         ENV_OWN);
    rect(p, (double)s->ball_x, (double)s->ball_y, (double)BREAKOUT_BALL, (double)BREAKOUT_BALL, ENV_GOAL);
    text(p, 8, 30, 20, -1, "%d points", (int)s->points);
    text(p, p->width - 8, 30, 20, 1, "%d balls left", s->balls > 0 ? (int)s->balls : 0);
}

static void draw_cartpole(const void *settings, const void *state, struct env_picture *p)
{
    const struct cartpole_state *s = state;
    const double scale = 100, cart_w = 60, cart_h = 30, pole = 125, ground = 220;
    double x, y = ground - cart_h;

    (void)settings;
    p->width = 2 * scale * CARTPOLE_X_LIMIT + 80;
    p->height = 260;
    x = p->width / 2 + scale * s->x;
    line(p, 0, ground, p->width, ground, 2, ENV_FOREGROUND);
    for (int side = -1; side <= 1; side += 2)
        line(p, p->width / 2 + side * scale * CARTPOLE_X_LIMIT, ground - 12,
             p->width / 2 + side * scale * CARTPOLE_X_LIMIT, ground + 12, 2, ENV_FAINT);
    rect(p, x - cart_w / 2, y, cart_w, cart_h, ENV_OWN);
    line(p, x, y, x + pole * sin(s->theta), y - pole * cos(s->theta), 10, ENV_GOAL);
    circle(p, x, y, 5, ENV_FOREGROUND);
    text(p, 10, 24, 16, -1, "%lld steps", (long long)s->steps);
}

static void draw_memory(const void *settings, const void *state, struct env_picture *p)
{
    const struct memory_settings *set = settings;
    const struct memory_state *s = state;
    double length = (double)set->length, done = (double)s->steps / length;

    p->width = 360;
    p->height = 160;
    text(p, 180, 34, 18, 0, s->steps == 0 ? "the cue" : s->steps < set->length ? "silence" : "the answer?");
    if (s->steps == 0)
        text(p, 180, 92, 40, 0, "%+d", (int)s->cue);
    else
        circle(p, 180, 78, s->steps < set->length ? 6 : 16, s->steps < set->length ? ENV_FAINT : ENV_GOAL);
    rect(p, 20, 126, 320, 10, ENV_FAINT);
    rect(p, 20, 126, 320 * (done < 1 ? done : 1), 10, ENV_OWN);
}

static void draw_pong(const void *settings, const void *state, struct env_picture *p)
{
    const struct pong_state *s = state;
    const double paddle = 20;

    (void)settings;
    p->width = PONG_WIDTH + 2 * paddle;
    p->height = PONG_HEIGHT;
    for (int i = 0; i < 16; i++)
        line(p, p->width / 2, i * 40.0 + 10, p->width / 2, i * 40.0 + 30, 2, ENV_FAINT);
    text(p, p->width / 2 - 30, 50, 36, 1, "%d", (int)s->opponent_points);
    text(p, p->width / 2 + 30, 50, 36, -1, "%d", (int)s->own_points);
    rect(p, 0, s->opponent_y, paddle, PONG_PADDLE_HEIGHT, ENV_OPPONENT);
    rect(p, paddle + PONG_WIDTH, s->own_y, paddle, PONG_PADDLE_HEIGHT, ENV_OWN);
    rect(p, paddle + s->ball_x, s->ball_y, PONG_BALL, PONG_BALL, ENV_GOAL);
}

static void draw_squared(const void *settings, const void *state, struct env_picture *p)
{
    const struct squared_settings *set = settings;
    const struct squared_state *s = state;
    int side = 2 * (int)set->n + 1;
    double cell = 440.0 / side;

    p->width = p->height = 440;
    for (int i = 0; i <= side; i++) {
        line(p, 0, i * cell, 440, i * cell, 1, ENV_FAINT);
        line(p, i * cell, 0, i * cell, 440, 1, ENV_FAINT);
    }
    rect(p, s->target_col * cell, s->target_row * cell, cell, cell, ENV_GOAL);
    circle(p, (s->col + 0.5) * cell, (s->row + 0.5) * cell, 0.4 * cell, ENV_OWN);
}

static const struct {
    const char *name;
    void (*draw)(const void *settings, const void *state, struct env_picture *picture);
} painters[] = {{"breakout", draw_breakout},
                {"cartpole", draw_cartpole},
                {"memory", draw_memory},
                {"pong", draw_pong},
                {"squared", draw_squared}};

void env_draw(const struct env_def *def, const void *settings, const void *state, struct env_picture *ret_picture)
{
    *ret_picture = (struct env_picture){.width = 320, .height = 120};
    for (size_t i = 0; i < sizeof painters / sizeof painters[0]; i++)
        if (strcmp(painters[i].name, def->name) == 0) {
            painters[i].draw(settings, state, ret_picture);
            return;
        }
    text(ret_picture, 160, 64, 16, 0, "no picture of %.20s", def->name);
}
