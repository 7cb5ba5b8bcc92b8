/* gif_movie.h - frames as an animated GIF in memory, by giflib; without it at the build creating one fails. Only what differs from the frame before is written, with a
 * palette of its own: up to 256 colours, all of them where no two have the same upper 5 bits of each channel. */
#pragma once

#include "base/base.h"

struct gif_movie;
struct strbuf;
/* out gets the bytes; it outlives the movie. */
enum status gif_movie_create(struct gif_movie **ret_gif, struct strbuf *out, int width, int height, int fps,
                             struct error *err) MUST_USE;
enum status gif_movie_add(struct gif_movie *gif, const uint32_t *pixels, struct error *err) MUST_USE;
enum status gif_movie_finish(struct gif_movie *gif, struct error *err) MUST_USE; /* out is whole */
void gif_movie_destroy(struct gif_movie *gif); /* NULL is fine */
