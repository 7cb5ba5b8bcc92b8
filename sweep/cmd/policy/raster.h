/* raster.h - a game's picture as pixels, drawn by cairo in the pages' light colours. Owns its pixels; one thread. */
#pragma once

#include "base/base.h"
#include "envs/draw.h"

struct raster;
enum status raster_open(struct error *err) MUST_USE; /* cairo, which raster_create opens too */
/* Of pictures of this size, as large as fits 640 x 640 and of even sides. */
enum status raster_create(struct raster **ret_raster, double width, double height, struct error *err) MUST_USE;
void raster_destroy(struct raster *raster); /* NULL is fine */
void raster_draw(struct raster *raster, const struct env_picture *picture);
/* (height, width) 0x00RRGGBB without gaps between rows, of the last picture; the raster's. */
const uint32_t *raster_pixels(const struct raster *raster, int *ret_width, int *ret_height);
