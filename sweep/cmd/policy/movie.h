/* movie.h - frames of one size into a file: a GIF by giflib, an MP4 by the program ffmpeg. The file is whole or not
 * there. One thread. */
#pragma once

#include "base/base.h"

#define MOVIE_FPS 25

struct movie;
/* path ends in .gif or .mp4, which movie_check has looked at. */
enum status movie_check(const char *path, struct error *err) MUST_USE;
enum status movie_create(struct movie **ret_movie, const char *path, int width, int height, struct error *err) MUST_USE;
/* (height, width) 0x00RRGGBB */
enum status movie_add(struct movie *movie, const uint32_t *pixels, struct error *err) MUST_USE;
/* Writes the rest and closes it; destroy alone leaves no file. */
enum status movie_finish(struct movie *movie, struct error *err) MUST_USE;
void movie_destroy(struct movie *movie); /* NULL is fine */
