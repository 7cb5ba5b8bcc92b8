/* cpu_conv.c - convolutions: the patches under the kernel are laid out as rows (im2col), then it is a linear layer, one
 * sgemm for a few grids at a time whose patches stay in the cache. Rows p of a patch matrix are (token, y, x) of the
 * output, columns (ky, kx, channel): the order of a filter in w. Every worker has its own patches in scratch and its
 * own tokens (y, dx) or filters (dw, db), so nothing is added up between workers: the order of each sum depends on
 * nothing but sizes and thread count. */
#include "base/base.h"
#include "kernels/cpu/cpu_priv.h"

#define PATCH_FLOATS ((size_t)1 << 17) /* of a worker, 512 kB: half an L2 cache; at least one grid's */
#define FILTER_GRAIN 4

struct conv {
    const struct kern_conv *shape;
    size_t P, K; /* patches of a grid (= pixels of the output), numbers of a patch */
    size_t n_chunk; /* grids at a time */
    const struct kern_conv_layer *l; /* its scratch: (workers, n_chunk * P, K) */
};

static struct conv conv_of(const struct kern_conv *shape, const struct kern_conv_layer *l)
{
    struct conv c = {.shape = shape, .l = l};
    c.P = kern_conv_height(shape) * kern_conv_width(shape);
    c.K = shape->kernel * shape->kernel * shape->in;
    c.n_chunk = PATCH_FLOATS / (c.P * c.K);
    c.n_chunk = c.n_chunk > 0 ? c.n_chunk : 1;
    return c;
}

size_t cpu_conv_scratch_bytes(const struct kern *k, const struct kern_conv *shape)
{
    struct conv c = conv_of(shape, NULL);
    return k->n_threads * c.n_chunk * c.P * c.K * sizeof(float);
}

static float *patches_of(const struct conv *c, size_t worker)
{
    return (float *)c->l->scratch + worker * c->n_chunk * c->P * c->K;
}

/* The part [*ret_from, *ret_to) of a kernel's taps that lies within n numbers when the first lies at `at`. */
static void taps_inside(ptrdiff_t at, size_t n, size_t kernel, size_t *ret_from, size_t *ret_to)
{
    ptrdiff_t to = (ptrdiff_t)n - at;
    *ret_from = at < 0 ? (size_t)-at : 0;
    *ret_to = to < 0 ? 0 : (size_t)to < kernel ? (size_t)to : kernel;
    if (*ret_from > *ret_to)
        *ret_from = *ret_to;
}

/* One row of numbers of a grid, at number `at` of x. */
static void take_numbers(float *to, const struct kern_source *from, const float *x, size_t at, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)(const void *)x + at;

    if (from->row == 0 || !from->bytes) {
        memcpy(to, x + at, n * sizeof *to);
        return;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = (float)bytes[i] * from->scale;
}

/* Walks the patches of n grids. From x into patches, or (into_x) adding patches to x, which is 0 before. */
static void patches_move(const struct conv *c, float *patches, float *x, size_t n, bool into_x)
{
    const struct kern_conv *s = c->shape;
    const struct kern_source *source = &c->l->from;
    size_t width = kern_conv_width(s), row = s->kernel * s->in, line = s->width * s->in;
    bool bytes = source->row > 0 && source->bytes;
    size_t each = source->row > 0 ? source->row : s->height * line; /* numbers from grid to grid, as x has them */

    for (size_t p = 0; p < n * c->P; p++) {
        size_t token = p / c->P, at = p % c->P, left, right;
        ptrdiff_t y0 = (ptrdiff_t)(at / width * s->stride) - (ptrdiff_t)s->pad;
        ptrdiff_t x0 = (ptrdiff_t)(at % width * s->stride) - (ptrdiff_t)s->pad;
        size_t grid = token * (bytes ? cpu_source_row_bytes(source) : each);
        float *patch = patches + p * c->K;

        taps_inside(x0, s->width, s->kernel, &left, &right);
        for (size_t ky = 0; ky < s->kernel; ky++, patch += row) {
            ptrdiff_t y = y0 + (ptrdiff_t)ky;
            bool inside = y >= 0 && y < (ptrdiff_t)s->height && left < right;
            size_t from = inside ? grid + (size_t)y * line + (size_t)(x0 + (ptrdiff_t)left) * s->in : 0;
            size_t n_inside = (right - left) * s->in;

            if (into_x) {
                for (size_t i = 0; inside && i < n_inside; i++)
                    x[from + i] += patch[left * s->in + i];
                continue;
            }
            if (n_inside < row || !inside)
                memset(patch, 0, row * sizeof *patch);
            if (inside)
                take_numbers(patch + left * s->in, source, x, from, n_inside);
        }
    }
}

/* Of the grids [at, at + n) of the layer's x. */
static void patches_take(const struct conv *c, float *patches, size_t at, size_t n)
{
    const struct kern_conv *s = c->shape;
    const struct kern_source *from = &c->l->from;
    size_t row = from->row > 0 ? cpu_source_row_bytes(from) : s->height * s->width * s->in * sizeof(float);
    const char *x = (const char *)c->l->x + at * row;

    patches_move(c, patches, (float *)(uintptr_t)x, n, false); /* which only reads x */
}

#define EACH_CHUNK(c, at, n, from, to)                                                                                 \
    for (size_t at = (from), n; n = (to)-at < (c)->n_chunk ? (to)-at : (c)->n_chunk, at < (to); at += n)

static size_t grid_numbers(const struct kern_conv *s)
{
    return s->height * s->width * s->in;
}

static void forward_part(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct conv *c = (const struct conv *)ctx;
    const struct kern_conv_layer *l = c->l;
    size_t N = c->shape->out;
    float *patches = patches_of(c, worker);

    EACH_CHUNK(c, at, n, from, to)
    {
        float *y = (float *)l->y + at * c->P * N;
        patches_take(c, patches, at, n);
        cpu_gemm(false, true, n * c->P, N, c->K, 1.0f, patches, c->K, l->w, c->K, 0.0f, y, N);
        cpu_bias_act(y, l->b, n * c->P, N, l->act);
    }
}

void cpu_conv_forward(struct kern *k, const struct kern_conv_layer *l)
{
    struct conv c = conv_of(l->shape, l);
    cpu_run(k, l->M, 1, forward_part, &c);
}

/* Tokens [from, to): dy before the activation, and dx. */
static void backward_tokens(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct conv *c = (const struct conv *)ctx;
    const struct kern_conv_layer *l = c->l;
    size_t N = c->shape->out, grid = grid_numbers(c->shape);
    float *patches = patches_of(c, worker);

    EACH_CHUNK(c, at, n, from, to)
    {
        float *dy = (float *)l->dy + at * c->P * N, *dx = (float *)l->dx + at * grid;
        if (l->act != KERN_ACT_NONE)
            cpu_act_gradient(dy, (const float *)l->y + at * c->P * N, n * c->P * N, l->act);
        if (l->dx == NULL)
            continue;
        memset(dx, 0, n * grid * sizeof *dx);
        cpu_gemm(false, false, n * c->P, c->K, N, 1.0f, dy, N, l->w, c->K, 0.0f, patches, c->K);
        patches_move(c, patches, dx, n, true);
    }
}

/* Filters [from, to): dw and db over all tokens. */
static void backward_filters(void *ctx, size_t worker, size_t from, size_t to)
{
    const struct conv *c = (const struct conv *)ctx;
    const struct kern_conv_layer *l = c->l;
    size_t N = c->shape->out;
    float *patches = patches_of(c, worker);

    if (from == to)
        return;
    for (size_t j = from; j < to && !l->add_dw; j++) {
        memset(l->dw + j * c->K, 0, c->K * sizeof *l->dw);
        l->db[j] = 0.0f;
    }
    EACH_CHUNK(c, at, n, 0, l->M)
    {
        const float *dy = (const float *)l->dy + at * c->P * N;
        patches_take(c, patches, at, n);
        cpu_gemm(true, false, to - from, c->K, n * c->P, 1.0f, dy + from, N, patches, c->K, 1.0f, l->dw + from * c->K,
                 c->K);
        for (size_t p = 0; p < n * c->P; p++)
            for (size_t j = from; j < to; j++)
                l->db[j] += dy[p * N + j];
    }
}

void cpu_conv_backward(struct kern *k, const struct kern_conv_layer *l)
{
    struct conv c = conv_of(l->shape, l);
    cpu_run(k, l->M, 1, backward_tokens, &c);
    cpu_run(k, l->shape->out, FILTER_GRAIN, backward_filters, &c);
}
