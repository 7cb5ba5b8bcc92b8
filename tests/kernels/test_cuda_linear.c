/* test_cuda_linear.c - layers, moves and optimisers of the CUDA tables against the CPU's on random inputs: f32 within
 * 1e-5, bf16 (whose CPU inputs are rounded to bf16 first) within 2e-2, what is exact exactly. Skipped without a GPU. */
#include "tests/kernels/kern_test.h"

static struct kern *cpu, *gpu;
static bool is_bf16;
static struct rng random_stream;

#define C_OPS kern_ops(cpu)
#define G_OPS kern_ops(gpu)

static double tolerance(void)
{
    return is_bf16 ? 2e-2 : 1e-5;
}

/* ---- numbers that lie on both sides ---- */

struct both {
    size_t n, shift; /* shift: numbers before the first, so that pointers need not be aligned */
    bool act;
    float *c; /* (n) on the host */
    void *mem, *g; /* on the device */
};

static void both_upload(struct both *b)
{
    size_t size = b->act && is_bf16 ? 2 : 4;
    struct error err = {0};
    uint16_t *half = NEW(uint16_t, b->n);
    if (size == 2)
        for (size_t i = 0; i < b->n; i++) {
            half[i] = bf16_bits(b->c[i]);
            b->c[i] = bf16_value(half[i]);
        }
    must(kern_upload(gpu, b->g, size == 2 ? (void *)half : b->c, b->n * size, &err), &err);
    must(kern_sync(gpu, &err), &err);
    mem_free(half);
}

static struct both both_new(size_t n, bool act, size_t shift, float scale)
{
    struct error err = {0};
    struct both b = {.n = n, .shift = shift, .act = act};
    b.c = test_normal(&random_stream, n, scale);
    must(kern_alloc(gpu, &b.mem, (n + shift + 8) * 4, "test", &err), &err);
    b.g = (char *)b.mem + shift * (act && is_bf16 ? 2 : 4);
    both_upload(&b);
    return b;
}
#define ACT(n) both_new((n), true, shift, 1.0f)
#define F32(n) both_new((n), false, 0, 1.0f)

static float *both_download(const struct both *b)
{
    float *got = NEW(float, b->n);
    struct error err = {0};
    if (b->act && is_bf16) {
        uint16_t *half = NEW(uint16_t, b->n);
        must(kern_download(gpu, half, b->g, b->n * 2, &err), &err);
        for (size_t i = 0; i < b->n; i++)
            got[i] = bf16_value(half[i]);
        mem_free(half);
    } else {
        must(kern_download(gpu, got, b->g, b->n * 4, &err), &err);
    }
    return got;
}

static void both_check(const char *what, const struct both *b, double tol)
{
    float *got = both_download(b);
    double *want = test_f64(b->c, b->n);
    check_close(what, got, want, b->n, tol);
    mem_free(got), mem_free(want);
}

static void both_free(struct both *b)
{
    kern_free(gpu, b->mem);
    mem_free(b->c);
}

/* ---- layers ---- */

static void linear_case(size_t M, size_t N, size_t K, enum kern_act act, bool bias, bool add, size_t shift)
{
    struct both x = ACT(M * K), w = both_new(N * K, true, shift, 0.2f), b = ACT(N), y = ACT(M * N), dy = ACT(M * N);
    struct both dx = ACT(M * K), dw = F32(N * K), db = F32(N);
    char what[200];

    snprintf(what, sizeof what, "%s M %zu N %zu K %zu act %d bias %d add %d shift %zu", G_OPS->name, M, N, K, act, bias,
             add, shift);
    struct kern_linear c = {.M = M, .N = N, .K = K, .act = act, .add_dx = add, .add_dw = add}, g = c;
    c.x = x.c, c.w = w.c, c.b = bias ? b.c : NULL, c.y = y.c;
    g.x = x.g, g.w = w.g, g.b = bias ? b.g : NULL, g.y = y.g;
    c.dy = dy.c, c.dx = dx.c, c.dw = dw.c, c.db = bias ? db.c : NULL;
    g.dy = dy.g, g.dx = dx.g, g.dw = dw.g, g.db = bias ? db.g : NULL;
    C_OPS->linear_forward(cpu, &c);
    G_OPS->linear_forward(gpu, &g);
    both_check(what, &y, tolerance());
    both_upload(&y); /* the same outputs on the way back: relu's gradient jumps */
    C_OPS->linear_backward(cpu, &c);
    G_OPS->linear_backward(gpu, &g);
    both_check(what, &dy, tolerance());
    both_check(what, &dx, tolerance());
    both_check(what, &dw, tolerance());
    both_check(what, &db, tolerance());
    c.dx = g.dx = NULL, c.db = g.db = NULL;
    c.act = g.act = KERN_ACT_NONE;
    c.add_dw = g.add_dw = false;
    C_OPS->linear_backward(cpu, &c);
    G_OPS->linear_backward(gpu, &g);
    both_check(what, &dw, tolerance());
    both_free(&x), both_free(&w), both_free(&b), both_free(&y), both_free(&dy), both_free(&dx), both_free(&dw);
    both_free(&db);
}

static void linear_is_as_on_the_cpu(void **state)
{
    static const size_t shapes[][3] = {{256, 128, 118}, {300, 384, 128},  {1000, 32, 8},    {77, 64, 4},
                                       {129, 96, 32},   {1, 128, 118},    {65, 33, 17},     {257, 7, 5},
                                       {64, 192, 64},   {2048, 128, 128}, {4096, 512, 256}, {500, 128, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int act = test_is_short() ? KERN_ACT_TANH : KERN_ACT_NONE; act <= KERN_ACT_TANH; act++)
            linear_case(shapes[i][0], shapes[i][1], shapes[i][2], (enum kern_act)act,
                        act != KERN_ACT_NONE || i % 2 == 0, act == KERN_ACT_RELU, 0);
    linear_case(130, 128, 118, KERN_ACT_RELU, true, true, 1);
    linear_case(130, 64, 24, KERN_ACT_TANH, true, false, 3);
}

/* Terms of a column sum may cancel: what is allowed is a share of the sums of their sizes, or of the sums themselves. */
static double column_tolerance(const float *x, size_t M, size_t O, const float *sums)
{
    double sizes = 0.0, is = 0.0;

    for (size_t o = 0; o < O; o++) {
        double size = 0.0;
        for (size_t i = 0; i < M; i++)
            size += fabs((double)x[i * O + o]);
        sizes += size * size;
        is += (double)sums[o] * (double)sums[o];
    }
    return sizes > 100.0 * is ? 1e-6 * sqrt(sizes / is) : 1e-5;
}

static void heads_case(size_t M, size_t O, size_t H, bool add, size_t shift)
{
    struct both x = ACT(M * H), w = F32(O * H), b = F32(O), out = F32(M * O), dout = F32(M * O), dx = ACT(M * H);
    struct both dw = F32(O * H), db = F32(O);
    char what[200];

    snprintf(what, sizeof what, "heads %s M %zu O %zu H %zu add %d", G_OPS->name, M, O, H, add);
    struct kern_heads_layer c = {.M = M, .O = O, .H = H, .add_dw = add}, g = c;
    c.x = x.c, c.w = w.c, c.b = b.c, c.out = out.c, c.dout = dout.c, c.dx = dx.c, c.dw = dw.c, c.db = db.c;
    g.x = x.g, g.w = w.g, g.b = b.g, g.out = out.g, g.dout = dout.g, g.dx = dx.g, g.dw = dw.g, g.db = db.g;
    C_OPS->heads_forward(cpu, &c);
    G_OPS->heads_forward(gpu, &g);
    both_check(what, &out, 1e-5); /* f32 throughout: inputs are the same */
    C_OPS->heads_backward(cpu, &c);
    G_OPS->heads_backward(gpu, &g);
    both_check(what, &dx, tolerance());
    both_check(what, &dw, 1e-5);
    both_check(what, &db, column_tolerance(dout.c, M, O, db.c));
    c.dx = g.dx = NULL;
    c.add_dw = g.add_dw = !add;
    C_OPS->heads_backward(cpu, &c);
    G_OPS->heads_backward(gpu, &g);
    both_check(what, &dw, 1e-5);
    both_free(&x), both_free(&w), both_free(&b), both_free(&out), both_free(&dout), both_free(&dx), both_free(&dw);
    both_free(&db);
}

static void heads_are_as_on_the_cpu(void **state)
{
    static const size_t widths[] = {1, 7, 32, 64, 96, 128, 200, 512};
    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        for (size_t O = 1; O < 24; O += test_is_short() ? 9 : 1 + O / 8)
            heads_case(i % 2 == 0 ? 1000 : 333, O, widths[i], O % 2 == 0, O == 5 ? 1 : 0);
    heads_case(1, 4, 128, false, 0);
    if (!test_is_short())
        heads_case(16384, 4, 128, false, 0);
}

/* ---- moves ---- */

static void gather_is_exact(void **state)
{
    static const size_t row_bytes[] = {1, 2, 3, 4, 8, 12, 16, 33, 236, 256, 472};
    enum { T = 7, N = 53, B = 31, ITEMS = sizeof row_bytes / sizeof row_bytes[0] };
    struct kern_gather_item c[ITEMS], g[ITEMS];
    int32_t idx[B];
    (void)state;
    for (int i = 0; i < B; i++)
        idx[i] = (int32_t)(rng_u32(&random_stream) % N);
    for (size_t i = 0; i < ITEMS; i++) {
        size_t times = T + i % 2, bytes = times * N * row_bytes[i];
        uint8_t *src = NEW(uint8_t, bytes);
        for (size_t j = 0; j < bytes; j++)
            src[j] = (uint8_t)rng_u32(&random_stream);
        c[i] = (struct kern_gather_item){test_alloc(times * B, row_bytes[i]), src, row_bytes[i], times};
        g[i] = (struct kern_gather_item){test_device_bytes(gpu, src, times * B * row_bytes[i]),
                                         test_device_bytes(gpu, src, bytes), row_bytes[i], times};
    }
    void *g_idx = test_device_bytes(gpu, idx, sizeof idx);
    C_OPS->gather(cpu, &(struct kern_gather){.items = c, .n_items = ITEMS, .idx = idx, .N = N, .B = B});
    G_OPS->gather(gpu,
                  &(struct kern_gather){.items = g, .n_items = ITEMS, .idx = (const int32_t *)g_idx, .N = N, .B = B});
    for (size_t i = 0; i < ITEMS; i++) {
        size_t bytes = c[i].T * B * row_bytes[i];
        void *got = test_host_bytes(gpu, g[i].dst, bytes);
        assert_memory_equal(got, c[i].dst, bytes);
        mem_free(got), mem_free(c[i].dst), mem_free((void *)(uintptr_t)c[i].src);
        kern_free(gpu, g[i].dst), kern_free(gpu, (void *)(uintptr_t)g[i].src);
    }
    kern_free(gpu, g_idx);
}

static void pack_case(size_t N, size_t row_bytes, float p)
{
    uint8_t *flag = test_flags(&random_stream, N, p), *src = test_flags(&random_stream, N * row_bytes, 0.5f);
    uint8_t *packed = NEW(uint8_t, N * row_bytes), *back = NEW(uint8_t, N * row_bytes);
    void *g_flag = test_device_bytes(gpu, flag, N), *g_src = test_device_bytes(gpu, src, N * row_bytes);
    void *g_packed = test_device_bytes(gpu, packed, N * row_bytes),
         *g_back = test_device_bytes(gpu, back, N * row_bytes), *got;
    int64_t n, *g_n = (int64_t *)test_device_bytes(gpu, &(int64_t){-1}, sizeof n), *got_n;

    C_OPS->pack_rows(cpu, &(struct kern_pack){
                              .dst = packed, .n_packed = &n, .src = src, .flag = flag, .row_bytes = row_bytes, .N = N});
    C_OPS->unpack_rows(cpu,
                       &(struct kern_pack){.dst = back, .src = packed, .flag = flag, .row_bytes = row_bytes, .N = N});
    G_OPS->pack_rows(gpu, &(struct kern_pack){.dst = g_packed,
                                              .n_packed = g_n,
                                              .src = g_src,
                                              .flag = (const uint8_t *)g_flag,
                                              .row_bytes = row_bytes,
                                              .N = N});
    G_OPS->unpack_rows(
        gpu, &(struct kern_pack){
                 .dst = g_back, .src = g_packed, .flag = (const uint8_t *)g_flag, .row_bytes = row_bytes, .N = N});
    got_n = (int64_t *)test_host_bytes(gpu, g_n, sizeof n);
    assert_int_equal(*got_n, n);
    got = test_host_bytes(gpu, g_packed, N * row_bytes);
    assert_memory_equal(got, packed, N * row_bytes);
    mem_free(got);
    got = test_host_bytes(gpu, g_back, N * row_bytes);
    assert_memory_equal(got, back, N * row_bytes);
    mem_free(got), mem_free(got_n), mem_free(flag), mem_free(src), mem_free(packed), mem_free(back);
    kern_free(gpu, g_flag), kern_free(gpu, g_src), kern_free(gpu, g_packed), kern_free(gpu, g_back),
        kern_free(gpu, g_n);
}

static void packing_keeps_the_order(void **state)
{
    (void)state;
    for (size_t row_bytes = 1; row_bytes < (test_is_short() ? 60 : 600); row_bytes = row_bytes * 3 + 1)
        for (float p = 0.0f; p <= 1.0f; p += 0.25f)
            pack_case(1 + (size_t)(p * 4000.0f), row_bytes, p);
    pack_case(5000, 256, 0.01f);
}

static void plain_moves(void **state)
{
    (void)state;
    for (size_t n = 1; n < 50000; n = n * 7 + 3)
        for (size_t shift = 0; shift < 2; shift++) {
            struct both a = both_new(n, true, shift, 1.0f), b = both_new(n, true, 1 - shift, 1.0f), p = F32(n);
            size_t size = is_bf16 ? 2 : 4;
            G_OPS->copy(gpu, b.g, a.g, n * size);
            memcpy(b.c, a.c, n * sizeof *a.c);
            both_check("copy", &b, 0.0);
            G_OPS->zero(gpu, b.g, (n - 1) * size);
            memset(b.c, 0, (n - 1) * sizeof *b.c);
            both_check("zero", &b, 0.0);
            if (is_bf16) {
                G_OPS->weights_cast(gpu, b.g, (const float *)p.g, n);
                for (size_t i = 0; i < n; i++)
                    b.c[i] = bf16_value(bf16_bits(p.c[i]));
                both_check("weights_cast", &b, 0.0);
            }
            both_free(&a), both_free(&b), both_free(&p);
        }
    for (size_t rows = 1; rows < 5; rows++) {
        struct both x = F32(rows * 777);
        C_OPS->sum_rows(cpu, x.c, rows, 777);
        G_OPS->sum_rows(gpu, (float *)x.g, rows, 777);
        both_check("sum_rows", &x, 0.0);
        both_free(&x);
    }
}

/* ---- optimisers ---- */

/* A network's tensors one after another. */
static size_t tensors_of(struct kern_tensor *tensors, const size_t (*shapes)[2], size_t n)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        tensors[i] = (struct kern_tensor){at, shapes[i][0], shapes[i][1], shapes[i][1] > 1 || shapes[i][0] == 1};
        at += shapes[i][0] * shapes[i][1];
    }
    return at;
}

/* A step may cancel a weight nearly to 0: what is allowed is a share of the weights before or after, whichever is more. */
static double step_tolerance(const float *before, const float *after, size_t n)
{
    double was = 0.0, is = 0.0;

    for (size_t i = 0; i < n; i++) {
        was += (double)before[i] * (double)before[i];
        is += (double)after[i] * (double)after[i];
    }
    return 1e-5 * (was > is ? sqrt(was / is) : 1.0);
}

static void optimiser_case(bool muon, const struct kern_tensor *tensors, size_t n_tensors, size_t n, float low_rank)
{
    struct kern_hyper h = {
        .lr = 0.05f, .beta1 = 0.8f, .beta2 = 0.99f, .eps = 1e-6f, .weight_decay = 0.02f, .max_grad_norm = 0.7f};
    struct both w = F32(n), m = both_new(n, false, 0, 0.1f), v = both_new(n, false, 0, 0.0f), g = F32(n);
    struct kern_stats stats = {0}, *g_stats = (struct kern_stats *)test_device_bytes(gpu, &stats, sizeof stats), *got;
    struct kern_hyper *g_h = (struct kern_hyper *)test_device_bytes(gpu, &h, sizeof h);
    float norm = 0.0f, *g_norm = (float *)test_device_bytes(gpu, &norm, sizeof norm);
    int64_t step = 0, *g_step = (int64_t *)test_device_bytes(gpu, &step, sizeof step), *got_step;
    size_t scratch = kern_muon_scratch_bytes(tensors, n_tensors);
    void *c_scratch = test_alloc(scratch, 1), *zeros = test_alloc(scratch, 1),
         *g_scratch = test_device_bytes(gpu, zeros, scratch);
    float *before = test_alloc(n, sizeof *before);

    struct kern_optimiser on_c = {.n = n, .tensors = tensors, .n_tensors = n_tensors}, on_g = on_c;
    on_c.w = w.c, on_c.m = m.c, on_c.v = v.c, on_c.g = g.c, on_c.norm = &norm, on_c.stats = &stats, on_c.hyper = &h;
    on_g.w = w.g, on_g.m = m.g, on_g.v = v.g, on_g.g = g.g, on_g.norm = g_norm, on_g.stats = g_stats, on_g.hyper = g_h;
    on_c.step = &step, on_c.scratch = c_scratch;
    on_g.step = g_step, on_g.scratch = g_scratch;
    memcpy(before, w.c, n * sizeof *before);
    for (int i = 0; i < 3; i++) {
        for (size_t j = 0; j < n; j++)
            g.c[j] = g.c[j] * (i == 1 ? 1e-3f : 0.1f) + low_rank * (float)(j % 13);
        both_upload(&g);
        C_OPS->grad_norm(cpu, &norm, &stats, g.c, n);
        G_OPS->grad_norm(gpu, g_norm, g_stats, (const float *)g.g, n);
        if (muon) {
            C_OPS->muon(cpu, &on_c);
            G_OPS->muon(gpu, &on_g);
        } else {
            C_OPS->adam(cpu, &on_c);
            G_OPS->adam(gpu, &on_g);
        }
        C_OPS->optimiser_tick(cpu, &step, &norm, &stats);
        G_OPS->optimiser_tick(gpu, g_step, g_norm, g_stats);
    }
    both_check(muon ? "muon m" : "adam m", &m, 1e-6);
    both_check("v", &v, 1e-5);
    for (size_t i = 0; i < n_tensors; i++) {
        size_t at = tensors[i].offset;
        struct both part = {.n = tensors[i].rows * tensors[i].cols, .c = w.c + at, .g = (float *)w.g + at};
        char what[100];
        snprintf(what, sizeof what, "%s w %zu x %zu", muon ? "muon" : "adam", tensors[i].rows, tensors[i].cols);
        both_check(what, &part, step_tolerance(before + at, part.c, part.n));
    }
    mem_free(before);
    got = (struct kern_stats *)test_host_bytes(gpu, g_stats, sizeof stats);
    got_step = (int64_t *)test_host_bytes(gpu, g_step, sizeof step);
    check_number("grad_norm", got->grad_norm, stats.grad_norm, 1e-9);
    assert_int_equal(*got_step, step);
    mem_free(got), mem_free(got_step), mem_free(c_scratch), mem_free(zeros);
    both_free(&w), both_free(&m), both_free(&v), both_free(&g);
    kern_free(gpu, g_stats), kern_free(gpu, g_h), kern_free(gpu, g_norm), kern_free(gpu, g_step);
    kern_free(gpu, g_scratch);
}

static void adam_is_as_on_the_cpu(void **state)
{
    (void)state;
    for (size_t n = 1; n < (test_is_short() ? 5000 : 200000); n = n * 9 + 4) {
        struct kern_tensor all = {.rows = n, .cols = 1};
        optimiser_case(false, &all, 1, n, 0.0f);
    }
}

static void muon_is_as_on_the_cpu(void **state)
{
    static const size_t breakout[][2] = {{128, 118}, {128, 1}, {384, 128}, {4, 128}, {4, 1}};
    static const size_t small[][2] = {{32, 8}, {32, 1}, {96, 32}, {96, 32}, {96, 32}, {96, 32}, {3, 32}, {3, 1}};
    static const size_t odd[][2] = {{31, 90}, {90, 31}, {1, 17}, {17, 2}, {5, 128}, {1, 1}, {33, 1}, {64, 64}};
    static const size_t large[][2] = {{256, 118}, {256, 1}, {768, 256}, {768, 256}, {20, 256}, {20, 1}};
    static const size_t larger[][2] = {{512, 118}, {512, 1}, {1536, 512}, {200, 300}, {301, 199}, {7, 512}, {7, 1}};
    static const size_t(*const nets[])[2] = {breakout, small, odd, large, larger};
    static const size_t n_shapes[] = {5, 8, 8, 6, 7};
    struct kern_tensor tensors[KERN_MAX_TENSORS];
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof nets[0] - (test_is_short() ? 1 : 0); i++) {
        size_t n = tensors_of(tensors, nets[i], n_shapes[i]);
        optimiser_case(true, tensors, n_shapes[i], n, 0.0f);
        optimiser_case(true, tensors, n_shapes[i], n, 0.02f);
    }
}

static void skipped_steps_touch_nothing(void **state)
{
    static const size_t shapes[][2] = {{96, 32}, {96, 1}, {768, 256}};
    struct kern_tensor tensors[3];
    size_t n = tensors_of(tensors, shapes, 3), scratch = kern_muon_scratch_bytes(tensors, 3);
    void *zeros = test_alloc(scratch, 1), *g_scratch = test_device_bytes(gpu, zeros, scratch);
    (void)state;
    for (int stop = 0; stop < 2; stop++) {
        struct both w = F32(n), m = F32(n), v = F32(n), g = F32(n);
        struct kern_stats stats = {.stop = stop},
                          *g_stats = (struct kern_stats *)test_device_bytes(gpu, &stats, sizeof stats);
        struct kern_hyper h = {.lr = 0.1f, .beta1 = 0.9f, .beta2 = 0.9f, .eps = 1e-8f, .weight_decay = 0.1f};
        struct kern_hyper *g_h = (struct kern_hyper *)test_device_bytes(gpu, &h, sizeof h);
        int64_t step = 3, *g_step = (int64_t *)test_device_bytes(gpu, &step, sizeof step), *got_step;
        struct kern_stats *got;
        float *g_norm = (float *)test_device_bytes(gpu, &(float){0}, sizeof(float)), *got_norm;
        if (stop == 0)
            g.c[n / 2] = NAN;
        both_upload(&g);
        G_OPS->grad_norm(gpu, g_norm, g_stats, (const float *)g.g, n);
        struct kern_optimiser o = {.n = n, .tensors = tensors, .n_tensors = 3, .scratch = g_scratch};
        o.w = w.g, o.m = m.g, o.v = v.g, o.g = g.g, o.norm = g_norm, o.stats = g_stats, o.hyper = g_h, o.step = g_step;
        G_OPS->adam(gpu, &o);
        G_OPS->muon(gpu, &o);
        G_OPS->optimiser_tick(gpu, g_step, g_norm, g_stats);
        both_check("w", &w, 0.0);
        both_check("m", &m, 0.0);
        both_check("v", &v, 0.0);
        got_step = (int64_t *)test_host_bytes(gpu, g_step, sizeof step);
        got = (struct kern_stats *)test_host_bytes(gpu, g_stats, sizeof stats);
        got_norm = (float *)test_host_bytes(gpu, g_norm, sizeof(float));
        assert_int_equal(*got_step, 3);
        assert_int_equal(got->nonfinite, stop == 0);
        assert_int_equal(isnan(*got_norm) != 0, stop == 0);
        mem_free(got_step), mem_free(got), mem_free(got_norm);
        both_free(&w), both_free(&m), both_free(&v), both_free(&g);
        kern_free(gpu, g_stats), kern_free(gpu, g_h), kern_free(gpu, g_step), kern_free(gpu, g_norm);
    }
    mem_free(zeros);
    kern_free(gpu, g_scratch);
}

static void minibatch_ends(void **state)
{
    struct kern_stats stats = {.n_tokens = 5, .err_sq = 3}, parts[2], gone[2], *got;
    struct kern_hyper h = {.target_kl = 0.5f};
    (void)state;
    for (int i = 0; i < 2; i++)
        parts[i] =
            (struct kern_stats){.n_tokens = 1 + i, .policy_loss = 0.25, .entropy = i, .last_kl = 0.3, .err_sq = 2};
    struct kern_stats *g_stats = (struct kern_stats *)test_device_bytes(gpu, &stats, sizeof stats);
    struct kern_stats *g_parts = (struct kern_stats *)test_device_bytes(gpu, parts, sizeof parts);
    struct kern_hyper *g_h = (struct kern_hyper *)test_device_bytes(gpu, &h, sizeof h);
    C_OPS->minibatch_stats(cpu, &stats, parts, 2, &h);
    G_OPS->minibatch_stats(gpu, g_stats, g_parts, 2, g_h);
    got = (struct kern_stats *)test_host_bytes(gpu, g_stats, sizeof stats);
    assert_memory_equal(got, &stats, sizeof stats);
    assert_int_equal(got->stop, 1);
    mem_free(got);
    memset(gone, 0, sizeof gone);
    got = (struct kern_stats *)test_host_bytes(gpu, g_parts, sizeof parts);
    assert_memory_equal(got, gone, sizeof gone);
    mem_free(got);
    kern_free(gpu, g_stats), kern_free(gpu, g_parts), kern_free(gpu, g_h);
}

/* The same products and sums again give the same bytes. */
static void same_bytes_twice(void **state)
{
    enum { M = 5000, N = 128, K = 118, O = 4 };
    size_t shift = 0;
    struct both x = ACT(M * K), w = ACT(N * K), dy = ACT(M * N), dw = F32(N * K), db = F32(N), dout = F32(M * O);
    struct both dwo = F32(O * N), wo = F32(O * N), dbo = F32(O);
    float *first[3], *second[3];
    (void)state;
    for (int run = 0; run < 2; run++) {
        float **to = run == 0 ? first : second;
        G_OPS->linear_backward(
            gpu, &(struct kern_linear){.dw = dw.g, .db = db.g, .dy = dy.g, .x = x.g, .w = w.g, .M = M, .N = N, .K = K});
        G_OPS->heads_backward(
            gpu, &(struct kern_heads_layer){
                     .dw = dwo.g, .db = dbo.g, .dout = dout.g, .x = dy.g, .w = wo.g, .M = M, .O = O, .H = N});
        to[0] = both_download(&dw), to[1] = both_download(&db), to[2] = both_download(&dwo);
    }
    assert_memory_equal(first[0], second[0], N * K * sizeof(float));
    assert_memory_equal(first[1], second[1], N * sizeof(float));
    assert_memory_equal(first[2], second[2], O * N * sizeof(float));
    for (int i = 0; i < 3; i++)
        mem_free(first[i]), mem_free(second[i]);
    both_free(&x), both_free(&w), both_free(&dy), both_free(&dw), both_free(&db), both_free(&dout), both_free(&dwo);
    both_free(&wo), both_free(&dbo);
}

/* A MinGRU cell from zero state: where a = 1/2, h is sigmoid(g); where g is large and a < 0, h is sigmoid(a); out / h is
 * sigmoid(p). All three within what num_sigmoids (number.h) promises, and NaN stays NaN. */
static void sigmoid_is_within_its_error(void **state)
{
    const double promised = 5e-7;
    const size_t H = 4096;
    struct both gates = both_new(3 * H, true, 0, 1.0f), x = both_new(H, true, 0, 0.0f), h = F32(H),
                out = both_new(H, true, 0, 0.0f);
    uint8_t one = 1;
    struct error err = {0};
    void *reset;

    (void)state;
    must(kern_alloc(gpu, &reset, 1, "reset", &err), &err);
    must(kern_upload(gpu, reset, &one, 1, &err), &err);
    for (int from_a = 0; from_a < 2; from_a++) {
        for (size_t i = 0; i < H; i++) {
            float at = 200.0f * ((float)i / (float)(H - 1) - 0.5f);
            gates.c[i] = from_a ? -fabsf(at) - 1e-3f : 0.5f;
            gates.c[H + i] = from_a ? 100.0f : at;
            gates.c[2 * H + i] = at;
        }
        gates.c[H + 77] = NAN;
        both_upload(&gates);
        G_OPS->mingru_step(gpu, &(struct kern_mingru){.out = out.g,
                                                      .state = (float *)h.g,
                                                      .gates = gates.g,
                                                      .x = x.g,
                                                      .reset = (const uint8_t *)reset,
                                                      .B = 1,
                                                      .H = H});
        float *got = both_download(&h), *shown = both_download(&out);
        for (size_t i = 0; i < H; i++) {
            double z = 1.0 / (1.0 + exp(-(double)gates.c[(from_a ? 0 : H) + i]));
            double s = 1.0 / (1.0 + exp(-(double)gates.c[2 * H + i]));
            if (i == 77) {
                assert_true(isnan(got[i]));
                continue;
            }
            assert_float_equal(got[i], z, promised);
            assert_float_equal(shown[i], s * (double)got[i], is_bf16 ? 4e-3 : 2.0 * promised);
        }
        mem_free(got), mem_free(shown);
    }
    kern_free(gpu, reset);
    both_free(&gates), both_free(&x), both_free(&h), both_free(&out);
}

/* usage: test_cuda_linear f32|bf16 [PATTERN|--list] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_as_on_the_cpu),
        cmocka_unit_test(heads_are_as_on_the_cpu),
        cmocka_unit_test(gather_is_exact),
        cmocka_unit_test(packing_keeps_the_order),
        cmocka_unit_test(plain_moves),
        cmocka_unit_test(adam_is_as_on_the_cpu),
        cmocka_unit_test(muon_is_as_on_the_cpu),
        cmocka_unit_test(skipped_steps_touch_nothing),
        cmocka_unit_test(minibatch_ends),
        cmocka_unit_test(same_bytes_twice),
        cmocka_unit_test(sigmoid_is_within_its_error),
    };
    struct kern_settings settings = {.kind = KERN_CUDA};
    struct error err = {0};
    char reason[512];
    int n_failed;

    if (test_listed(argc > 2 ? argv[2] : NULL, tests, sizeof tests / sizeof tests[0]))
        return 0;
    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    random_stream = rng_seed(20250101);
    cpu = test_kern(0);
    if (kern_open(&gpu, &settings, &err) != ST_OK) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    is_bf16 = argc > 1 && strcmp(argv[1], "bf16") == 0;
    if (kern_precision_set(gpu, is_bf16 ? KERN_BF16 : KERN_F32, &err) != ST_OK) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    n_failed = cmocka_run_group_tests_name(kern_ops(gpu)->name, tests, NULL, NULL);
    kern_close(gpu);
    kern_close(cpu);
    return n_failed;
}
