/* gif_movie.c - see gif_movie.h. */
#include "sweep/cmd/policy/gif_movie.h"

#include "base/text/strbuf.h"
#include "sweep/cmd/policy/raster.h"

#include <gif_lib.h>

#define PALETTE 256
#define STEPS 3 /* between two colours */
#define NEAREST_BITS 5 /* of each channel, of the table of nearest colours */

struct gif_movie {
    GifFileType *file;
    int width, height, delay; /* of a frame, in 1/100 s */
    uint32_t palette[PALETTE];
    int n_colours;
    int16_t nearest[1 << (3 * NEAREST_BITS)]; /* of a colour's upper bits; -1: not looked for yet */
    uint32_t *before; /* (height, width) owned; of the last frame */
    uint8_t *row; /* (width) owned */
    long n_frames;
};

static int write_bytes(GifFileType *file, const GifByteType *bytes, int n)
{
    struct strbuf *out = (struct strbuf *)file->UserData;

    strbuf_add_n(out, (const char *)bytes, (size_t)n);
    return out->status == ST_OK ? n : 0;
}

static enum status gif_fail(const struct gif_movie *g, struct error *err)
{
    const char *why = g->file != NULL ? GifErrorString(g->file->Error) : NULL;
    return FAIL(err, ST_LIMIT,
                "frame %ld of the GIF could not be written: %s; a shorter one (--video-steps) or an mp4 "
                "may fit",
                g->n_frames, why != NULL ? why : "unknown");
}

static uint32_t mix(uint32_t a, uint32_t b, int step)
{
    uint32_t out = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        int x = (int)(a >> shift & 255), y = (int)(b >> shift & 255);
        out |= (uint32_t)(x + (y - x) * step / (STEPS + 1)) << shift;
    }
    return out;
}

static void fill_palette(struct gif_movie *g)
{
    for (int i = 0; i < ENV_COLOURS; i++)
        g->palette[g->n_colours++] = raster_colours[i];
    for (int i = 0; i < ENV_COLOURS; i++)
        for (int j = 0; j < i; j++)
            for (int step = 1; step <= STEPS && g->n_colours < PALETTE; step++)
                g->palette[g->n_colours++] = mix(raster_colours[i], raster_colours[j], step);
    memset(g->nearest, 0xff, sizeof g->nearest);
}

static int find_nearest(const struct gif_movie *g, uint32_t rgb)
{
    int best = 0;
    long least = -1;

    for (int i = 0; i < g->n_colours; i++) {
        long far = 0;
        for (int shift = 0; shift < 24; shift += 8) {
            long d = (long)(rgb >> shift & 255) - (long)(g->palette[i] >> shift & 255);
            far += d * d;
        }
        if (least < 0 || far < least)
            least = far, best = i;
    }
    return best;
}

static uint8_t colour_index(struct gif_movie *g, uint32_t rgb)
{
    uint32_t low = 8 - NEAREST_BITS;
    uint32_t at = (rgb >> (16 + low) & 31) << 10 | (rgb >> (8 + low) & 31) << 5 | (rgb >> low & 31);

    if (g->nearest[at] < 0)
        g->nearest[at] = (int16_t)find_nearest(g, rgb);
    return (uint8_t)g->nearest[at];
}

enum status gif_movie_create(struct gif_movie **ret_gif, struct strbuf *out, int width, int height, int fps,
                             struct error *err)
{
    struct gif_movie *g = mem_alloc(sizeof *g);
    GifColorType colours[PALETTE] = {{0}};
    ColorMapObject *map;
    int code = 0;

    *ret_gif = g;
    g->width = width;
    g->height = height;
    g->delay = 100 / fps;
    g->before = mem_array2((size_t)height, (size_t)width, sizeof *g->before);
    g->row = mem_array((size_t)width, 1);
    fill_palette(g);
    for (int i = 0; i < g->n_colours; i++)
        colours[i] = (GifColorType){.Red = (GifByteType)(g->palette[i] >> 16),
                                    .Green = (GifByteType)(g->palette[i] >> 8),
                                    .Blue = (GifByteType)g->palette[i]};
    g->file = EGifOpen(out, write_bytes, &code);
    map = GifMakeMapObject(PALETTE, colours);
    if (g->file == NULL || map == NULL)
        mem_refused(0);
    EGifSetGifVersion(g->file, true); /* 89a, for delays */
    code = EGifPutScreenDesc(g->file, width, height, 8, 0, map);
    GifFreeMapObject(map);
    if (code != GIF_OK || EGifPutExtensionLeader(g->file, APPLICATION_EXT_FUNC_CODE) != GIF_OK ||
        EGifPutExtensionBlock(g->file, 11, "NETSCAPE2.0") != GIF_OK ||
        EGifPutExtensionBlock(g->file, 3, "\1\0\0") != GIF_OK || /* again and again */
        EGifPutExtensionTrailer(g->file) != GIF_OK)
        return gif_fail(g, err);
    return ST_OK;
}

/* The rectangle outside of which the frame is as the one before; at least a pixel. */
static void changed_part(const struct gif_movie *g, const uint32_t *pixels, int *x0, int *y0, int *x1, int *y1)
{
    *x0 = *y0 = 0, *x1 = *y1 = 1;
    if (g->n_frames == 0) {
        *x1 = g->width, *y1 = g->height;
        return;
    }
    for (int y = 0, any = 0; y < g->height; y++)
        for (int x = 0; x < g->width; x++) {
            int at = y * g->width + x;
            if (pixels[at] == g->before[at])
                continue;
            *x0 = !any || x < *x0 ? x : *x0;
            *x1 = !any || x >= *x1 ? x + 1 : *x1;
            *y0 = any ? *y0 : y;
            *y1 = y + 1;
            any = 1;
        }
}

enum status gif_movie_add(struct gif_movie *g, const uint32_t *pixels, struct error *err)
{
    GraphicsControlBlock control = {
        .DisposalMode = DISPOSE_DO_NOT, .DelayTime = g->delay, .TransparentColor = NO_TRANSPARENT_COLOR};
    GifByteType extension[4];
    size_t n = EGifGCBToExtension(&control, extension);
    int x0, y0, x1, y1;

    changed_part(g, pixels, &x0, &y0, &x1, &y1);
    if (EGifPutExtension(g->file, GRAPHICS_EXT_FUNC_CODE, (int)n, extension) != GIF_OK ||
        EGifPutImageDesc(g->file, x0, y0, x1 - x0, y1 - y0, false, NULL) != GIF_OK)
        return gif_fail(g, err);
    for (int y = y0; y < y1; y++) {
        for (int x = x0; x < x1; x++)
            g->row[x - x0] = colour_index(g, pixels[y * g->width + x]);
        if (EGifPutLine(g->file, g->row, x1 - x0) != GIF_OK)
            return gif_fail(g, err);
    }
    memcpy(g->before, pixels, (size_t)g->width * (size_t)g->height * sizeof *pixels);
    g->n_frames++;
    return ST_OK;
}

enum status gif_movie_finish(struct gif_movie *g, struct error *err)
{
    int code = 0, closed = EGifCloseFile(g->file, &code); /* which frees it in any case */

    g->file = NULL;
    return closed == GIF_OK ? ST_OK : gif_fail(g, err);
}

void gif_movie_destroy(struct gif_movie *g)
{
    int code;

    if (g == NULL)
        return;
    if (g->file != NULL)
        (void)EGifCloseFile(g->file, &code);
    mem_free(g->before);
    mem_free(g->row);
    mem_free(g);
}
