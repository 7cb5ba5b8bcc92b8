/* draw.h - a game as a picture: a short list of shapes that whoever shows it paints in order. Host only. (public)
 * Coordinates are the game's own, y downwards, inside width x height. Colours are roles, so that the one who paints
 * chooses by theme. */
#ifndef ENVS_DRAW_H
#define ENVS_DRAW_H

#include <stddef.h>

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

struct env_def;
/* The picture of one instance (its state_size bytes, as a save has them first). */
void env_draw(const struct env_def *def, const void *settings, const void *state, struct env_picture *ret_picture);

#endif
