/* test_conv.c - convolutions against the plain sum in f64, their gradient against differences, threads and scratch. */
#include "tests/kernels/kern_test.h"

struct grid {
    struct kern_conv s;
    size_t M, n_x, n_y, n_w; /* numbers in all */
    float *x, *w, *b;
    double *x64, *w64, *b64, *y64;
    const float *dy; /* of loss_f64 */
    enum kern_act act;
};

static double act_f64(double x, enum kern_act act)
{
    return act == KERN_ACT_RELU ? fmax(x, 0.0) : act == KERN_ACT_TANH ? tanh(x) : x;
}

static void forward_f64(const struct grid *g, enum kern_act act)
{
    const struct kern_conv *s = &g->s;
    ptrdiff_t height = (ptrdiff_t)s->height, width = (ptrdiff_t)s->width;
    double *y = g->y64;

    for (size_t m = 0; m < g->M; m++)
        for (size_t i = 0; i < kern_conv_height(s); i++)
            for (size_t j = 0; j < kern_conv_width(s); j++)
                for (size_t o = 0; o < s->out; o++) {
                    double sum = g->b64[o];
                    for (size_t ky = 0; ky < s->kernel; ky++)
                        for (size_t kx = 0; kx < s->kernel; kx++) {
                            ptrdiff_t r = (ptrdiff_t)(i * s->stride + ky) - (ptrdiff_t)s->pad;
                            ptrdiff_t c = (ptrdiff_t)(j * s->stride + kx) - (ptrdiff_t)s->pad;
                            if (r < 0 || r >= height || c < 0 || c >= width)
                                continue;
                            for (size_t q = 0; q < s->in; q++)
                                sum += g->w64[((o * s->kernel + ky) * s->kernel + kx) * s->in + q] *
                                       g->x64[((m * s->height + (size_t)r) * s->width + (size_t)c) * s->in + q];
                        }
                    *y++ = act_f64(sum, act);
                }
}

static struct grid grid_make(size_t M, struct kern_conv s)
{
    struct rng rng = rng_seed(M * 100 + s.height * 10 + s.in);
    struct grid g = {.s = s, .M = M};
    g.n_x = M * s.height * s.width * s.in;
    g.n_y = M * kern_conv_height(&s) * kern_conv_width(&s) * s.out;
    g.n_w = s.out * s.kernel * s.kernel * s.in;
    g.x = test_normal(&rng, g.n_x, 1.0f);
    g.w = test_normal(&rng, g.n_w, 0.5f);
    g.b = test_normal(&rng, s.out, 0.5f);
    g.x64 = test_f64(g.x, g.n_x), g.w64 = test_f64(g.w, g.n_w), g.b64 = test_f64(g.b, s.out);
    g.y64 = NEW(double, g.n_y);
    return g;
}

static void *scratch_make(struct kern *k, const struct kern_conv *s)
{
    return test_alloc(kern_conv_scratch_bytes(k, s) + 1, 1);
}

static struct kern_conv_layer layer_of(const struct grid *g, void *scratch, enum kern_act act)
{
    return (struct kern_conv_layer){
        .shape = &g->s, .M = g->M, .act = act, .x = g->x, .w = g->w, .b = g->b, .scratch = scratch};
}

static const struct {
    size_t M;
    struct kern_conv s;
} shapes[] = {
    {1, {1, 1, 1, 1, 3, 1, 1}},    {3, {5, 5, 1, 7, 3, 1, 1}},
    {40, {11, 11, 8, 4, 3, 1, 1}}, /* several chunks */
    {5, {9, 4, 3, 6, 3, 2, 1}},    {2, {8, 10, 2, 5, 4, 3, 0}},
    {2, {2, 7, 3, 2, 5, 1, 2}}, /* the kernel is larger than the grid */
    {1, {64, 64, 3, 4, 3, 1, 1}}, /* one grid is a chunk and more */
};

TEST(forward_agrees_with_f64)
{
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < COUNT(shapes); i++)
            for (int act = KERN_ACT_NONE; act <= KERN_ACT_TANH; act++) {
                KERN *k = test_kern(test_threads[t]);
                struct grid g = grid_make(shapes[i].M, shapes[i].s);
                float *y = NEW(float, g.n_y);
                void *scratch = scratch_make(k, &g.s);

                forward_f64(&g, (enum kern_act)act);
                struct kern_conv_layer l = layer_of(&g, scratch, (enum kern_act)act);
                l.y = y;
                kern_ops(k)->conv_forward(k, &l);
                check_close("y", y, g.y64, g.n_y, 2e-6);
            }
}

/* sum of dy * y */
static double loss_f64(const void *of)
{
    const struct grid *g = of;
    double sum = 0.0;

    forward_f64(g, g->act);
    for (size_t i = 0; i < g->n_y; i++)
        sum += g->y64[i] * (double)g->dy[i];
    return sum;
}

TEST(gradient_is_finite_differences)
{
    static const size_t few[] = {1, 3, 4, 5};
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < COUNT(few); i++) {
            enum kern_act act = i % 2 == 0 ? KERN_ACT_TANH : KERN_ACT_NONE;
            KERN *k = test_kern(test_threads[t]);
            struct grid g = grid_make(shapes[few[i]].M, shapes[few[i]].s);
            struct rng rng = rng_seed(5);
            float *dy = test_normal(&rng, g.n_y, 1.0f), *back = test_copy(dy, g.n_y), *y = NEW(float, g.n_y);
            float *dx = NEW(float, g.n_x), *dw = NEW(float, g.n_w), *db = NEW(float, g.s.out), *dw_once;
            void *scratch = scratch_make(k, &g.s);

            struct kern_conv_layer l = layer_of(&g, scratch, act);
            g.dy = dy, g.act = act;
            l.y = y;
            kern_ops(k)->conv_forward(k, &l);
            dw[0] = db[0] = dx[0] = NAN; /* whatever was there */
            l.dx = dx, l.dw = dw, l.db = db, l.dy = back;
            kern_ops(k)->conv_backward(k, &l);
            for (size_t j = 0; j < g.n_x; j += 3)
                check_number("dx", (double)dx[j], central_difference(&g.x64[j], loss_f64, &g), 1e-5);
            for (size_t j = 0; j < g.n_w; j += 2)
                check_number("dw", (double)dw[j], central_difference(&g.w64[j], loss_f64, &g), 1e-5);
            for (size_t j = 0; j < g.s.out; j++)
                check_number("db", (double)db[j], central_difference(&g.b64[j], loss_f64, &g), 1e-5);
            /* once more on top, and without dx; dy is before the activation now */
            dw_once = test_copy(dw, g.n_w);
            l.dx = NULL, l.act = KERN_ACT_NONE, l.add_dw = true;
            kern_ops(k)->conv_backward(k, &l);
            for (size_t j = 0; j < g.n_w; j++)
                check_number("dw twice", (double)dw[j], 2.0 * (double)dw_once[j], 1e-5);
        }
}

/* Grids of bytes, in rows that have other numbers at their end, give to the byte what the same grids give as floats. */
TEST(bytes_are_widened)
{
    enum { REST = 5 };
    for (size_t t = 0; t < N_THREADS; t++)
        for (size_t i = 0; i < COUNT(shapes); i++) {
            KERN *k = test_kern(test_threads[t]);
            struct grid g = grid_make(shapes[i].M, shapes[i].s);
            size_t one = g.n_x / g.M, row = one + REST;
            uint8_t *bytes = NEW(uint8_t, g.M * row);
            float *y = NEW(float, g.n_y), *y8 = NEW(float, g.n_y), *dy = NEW(float, g.n_y), *dw[2],
                  *db = NEW(float, g.s.out);
            void *scratch = scratch_make(k, &g.s), *wide = test_alloc(kern_wide_bytes(k), 1);
            struct rng rng = rng_seed(i);

            for (size_t j = 0; j < g.M * row; j++)
                bytes[j] = (uint8_t)rng_u32(&rng);
            for (size_t j = 0; j < g.n_x; j++)
                g.x[j] = (float)bytes[j / one * row + j % one] * 0.25f;
            for (int side = 0; side < 2; side++) {
                struct kern_conv_layer l = layer_of(&g, scratch, KERN_ACT_TANH);
                dw[side] = NEW(float, g.n_w);
                if (side == 1) {
                    l.x = bytes;
                    l.from = (struct kern_source){.row = row, .bytes = true, .scale = 0.25f, .wide = wide};
                }
                l.y = side == 0 ? y : y8, l.dw = dw[side], l.db = db, l.dy = dy;
                kern_ops(k)->conv_forward(k, &l);
                for (size_t j = 0; j < g.n_y; j++)
                    dy[j] = (float)(j % 7) - 3.0f;
                kern_ops(k)->conv_backward(k, &l);
            }
            assert_memory_equal(y, y8, g.n_y * sizeof *y);
            assert_memory_equal(dw[0], dw[1], g.n_w * sizeof *dw[0]);
        }
}

/* A relu that let nothing through lets nothing back. */
TEST(relu_stops_the_gradient)
{
    KERN *k = test_kern(2);
    struct grid g = grid_make(3, shapes[1].s);
    struct rng rng = rng_seed(5);
    float *dy = test_normal(&rng, g.n_y, 1.0f), *back = test_copy(dy, g.n_y), *y = NEW(float, g.n_y);
    float *dw = NEW(float, g.n_w), *db = NEW(float, g.s.out);
    void *scratch = scratch_make(k, &g.s);
    size_t n_stopped = 0;

    struct kern_conv_layer l = layer_of(&g, scratch, KERN_ACT_RELU);
    l.y = y;
    kern_ops(k)->conv_forward(k, &l);
    l.dw = dw, l.db = db, l.dy = back;
    kern_ops(k)->conv_backward(k, &l);
    for (size_t i = 0; i < g.n_y; i++) {
        assert_true(back[i] == (y[i] > 0.0f ? dy[i] : 0.0f));
        n_stopped += y[i] == 0.0f;
    }
    assert_in_range(n_stopped, g.n_y / 10, g.n_y * 9 / 10);
}

TEST_PROGRAM("conv")
