/* gif_movie.c - see gif_movie.h. */
#include "web/serve/gif_movie.h"

#ifdef TRAWL_GIF
#include <gif_lib.h>

#define PALETTE 256
#define BIN_BITS 5 /* of each channel */
#define N_BINS (1 << (3 * BIN_BITS))

struct bin { /* colours of the same upper bits */
    uint32_t colour; /* of more than half of its pixels, where one is */
    int votes, n_pixels, index; /* index: in the palette */
};

struct gif_movie {
    GifFileType *file;
    int width, height, delay; /* of a frame, in 1/100 s */
    struct bin bins[N_BINS]; /* of the part that is written */
    int used[N_BINS], n_used; /* bins with pixels, those with most of them first once there is a palette */
    uint32_t *before; /* (height, width) owned; of the last frame */
    uint8_t *row; /* (width) owned */
    long n_frames;
};

struct part { /* of a frame: columns [x0, x1) of rows [y0, y1) */
    int x0, y0, x1, y1;
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

static int bin_of(uint32_t rgb)
{
    const uint32_t low = 8 - BIN_BITS, mask = (1u << BIN_BITS) - 1;

    return (int)((rgb >> (16 + low) & mask) << 2 * BIN_BITS | (rgb >> (8 + low) & mask) << BIN_BITS |
                 (rgb >> low & mask));
}

static void count_colours(struct gif_movie *g, const uint32_t *pixels, struct part part)
{
    memset(g->bins, 0, sizeof g->bins);
    g->n_used = 0;
    for (int y = part.y0; y < part.y1; y++)
        for (int x = part.x0; x < part.x1; x++) {
            uint32_t rgb = pixels[y * g->width + x];
            struct bin *bin = &g->bins[bin_of(rgb)];
            if (bin->n_pixels++ == 0)
                g->used[g->n_used++] = bin_of(rgb);
            if (bin->votes == 0)
                bin->colour = rgb;
            bin->votes += bin->colour == rgb ? 1 : -1;
        }
}

static int more_pixels(const void *a, const void *b, void *bins)
{
    const int *i = a, *j = b;
    int n = ((const struct bin *)bins)[*i].n_pixels, m = ((const struct bin *)bins)[*j].n_pixels;

    return n != m ? (n < m) - (n > m) : (*i > *j) - (*i < *j);
}

static long distance(uint32_t a, uint32_t b)
{
    long sum = 0;
    for (int shift = 0; shift < 24; shift += 8) {
        long d = (long)(a >> shift & 255) - (long)(b >> shift & 255);
        sum += d * d;
    }
    return sum;
}

/* A colour for each bin, or for the 256 that have most pixels; the others take the nearest of those. The caller frees
 * the palette, whose size is a power of 2. */
static ColorMapObject *make_palette(struct gif_movie *g, const uint32_t *pixels, struct part part)
{
    int n, size = 2;

    count_colours(g, pixels, part);
    qsort_r(g->used, (size_t)g->n_used, sizeof *g->used, more_pixels, g->bins);
    n = g->n_used < PALETTE ? g->n_used : PALETTE;
    while (size < n)
        size *= 2;
    ColorMapObject *map = GifMakeMapObject(size, NULL);
    if (map == NULL)
        mem_refused(0);
    for (int i = 0; i < g->n_used; i++) {
        struct bin *bin = &g->bins[g->used[i]];
        bin->index = i < n ? i : 0;
        for (int j = 1; i >= n && j < n; j++)
            if (distance(bin->colour, g->bins[g->used[j]].colour) <
                distance(bin->colour, g->bins[g->used[bin->index]].colour))
                bin->index = j;
        if (i < n)
            map->Colors[i] = (GifColorType){.Red = (GifByteType)(bin->colour >> 16),
                                            .Green = (GifByteType)(bin->colour >> 8),
                                            .Blue = (GifByteType)bin->colour};
    }
    return map;
}

enum status gif_movie_create(struct gif_movie **ret_gif, struct strbuf *out, int width, int height, int fps,
                             struct error *err)
{
    struct gif_movie *g = mem_alloc(sizeof *g);
    int code = 0;

    *ret_gif = g;
    g->width = width;
    g->height = height;
    g->delay = 100 / fps;
    g->before = mem_array2((size_t)height, (size_t)width, sizeof *g->before);
    g->row = mem_array((size_t)width, 1);
    g->file = EGifOpen(out, write_bytes, &code);
    if (g->file == NULL)
        mem_refused(0);
    EGifSetGifVersion(g->file, true); /* 89a, for delays */
    if (EGifPutScreenDesc(g->file, width, height, 8, 0, NULL) != GIF_OK ||
        EGifPutExtensionLeader(g->file, APPLICATION_EXT_FUNC_CODE) != GIF_OK ||
        EGifPutExtensionBlock(g->file, 11, "NETSCAPE2.0") != GIF_OK ||
        EGifPutExtensionBlock(g->file, 3, "\1\0\0") != GIF_OK || /* again and again */
        EGifPutExtensionTrailer(g->file) != GIF_OK)
        return gif_fail(g, err);
    return ST_OK;
}

/* The rectangle outside of which the frame is as the one before; at least a pixel. */
static struct part changed_part(const struct gif_movie *g, const uint32_t *pixels)
{
    struct part p = {0, 0, 1, 1};
    bool any = false;

    if (g->n_frames == 0)
        return (struct part){0, 0, g->width, g->height};
    for (int y = 0; y < g->height; y++)
        for (int x = 0; x < g->width; x++) {
            int at = y * g->width + x;
            if (pixels[at] == g->before[at])
                continue;
            p.x0 = !any || x < p.x0 ? x : p.x0;
            p.x1 = !any || x >= p.x1 ? x + 1 : p.x1;
            p.y0 = any ? p.y0 : y;
            p.y1 = y + 1;
            any = true;
        }
    return p;
}

enum status gif_movie_add(struct gif_movie *g, const uint32_t *pixels, struct error *err)
{
    GraphicsControlBlock control = {
        .DisposalMode = DISPOSE_DO_NOT, .DelayTime = g->delay, .TransparentColor = NO_TRANSPARENT_COLOR};
    GifByteType extension[4];
    size_t n = EGifGCBToExtension(&control, extension);
    struct part part = changed_part(g, pixels);
    ColorMapObject *map = make_palette(g, pixels, part);
    int code = EGifPutExtension(g->file, GRAPHICS_EXT_FUNC_CODE, (int)n, extension);

    if (code == GIF_OK)
        code = EGifPutImageDesc(g->file, part.x0, part.y0, part.x1 - part.x0, part.y1 - part.y0, false, map);
    GifFreeMapObject(map);
    for (int y = part.y0; code == GIF_OK && y < part.y1; y++) {
        for (int x = part.x0; x < part.x1; x++)
            g->row[x - part.x0] = (uint8_t)g->bins[bin_of(pixels[y * g->width + x])].index;
        code = EGifPutLine(g->file, g->row, part.x1 - part.x0);
    }
    if (code != GIF_OK)
        return gif_fail(g, err);
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
#else
enum status gif_movie_create(struct gif_movie **ret_gif, struct strbuf *out, int width, int height, int fps,
                             struct error *err)
{
    (void)out, (void)width, (void)height, (void)fps;
    *ret_gif = NULL;
    return FAIL(err, ST_CONFIG, "this trawl was built without giflib; install libgif-dev and build it again");
}

enum status gif_movie_add(struct gif_movie *g, const uint32_t *pixels, struct error *err)
{
    (void)g, (void)pixels;
    return FAIL(err, ST_CONFIG, "there is no GIF");
}

enum status gif_movie_finish(struct gif_movie *g, struct error *err)
{
    return gif_movie_add(g, NULL, err);
}

void gif_movie_destroy(struct gif_movie *g)
{
    (void)g;
}
#endif
