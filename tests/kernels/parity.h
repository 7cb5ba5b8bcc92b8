/* parity.h - one operation on two devices with the same inputs: the CPU, which is the reference, and a GPU.
 * A case lists its tensors with random contents, and then calls the operation on pointers that belong to either device.
 * Activations are f32 on the CPU; with bf16 on the GPU the inputs are rounded to bf16 first, so that only the operation
 * itself is compared. Outputs begin as NaN (all bits set). On the GPU the operation runs three times from the same
 * start, the last time recorded and replayed, and has to leave the same bytes each time. */
#pragma once

#include "tests/kernels/kern_test.h"

#define PARITY_MAX_BUFS 48
#define PARITY_MAX_CASES 64
#define PARITY_F32 1e-5
#define PARITY_BF16 2e-2

enum buf_kind { BUF_F32, BUF_ACT, BUF_I32, BUF_BYTES, BUF_STATS };
enum buf_role { BUF_IN, BUF_OUT, BUF_INOUT, BUF_SCRATCH };

struct buf {
    const char *name;
    enum buf_kind kind;
    enum buf_role role;
    size_t n; /* numbers, or bytes of BUF_BYTES */
    size_t shift; /* numbers by which it is off the alignment of device memory */
    double tolerance; /* 0: the precision's */
    void *start; /* as the CPU has it; owned */
    void *cpu, *got, *again; /* what the devices made of it, as each has it; owned */
    void *mem, *dev; /* device memory, owned; the first number in it */
};

/* What an operation is called with: a pointer for each buffer, in the order they were added. */
struct call {
    void *p[PARITY_MAX_BUFS];
    const size_t *s; /* the case's sizes */
    struct kern_heads heads;
    const struct kern_tensor *tensors;
    size_t n_tensors;
};

struct parity {
    struct kern *cpu, *gpu;
    struct rng rng;
    bool bf16;
    char where[128];
    struct buf bufs[PARITY_MAX_BUFS];
    size_t n_bufs;
    struct call call;
};

struct parity_case {
    const char *name;
    size_t op; /* offset in struct kern_ops */
    bool has_acts; /* differs with the precision */
    void (*make)(struct parity *p, const size_t *s);
    void (*run)(struct kern *k, const struct call *c);
    size_t shapes[32][5]; /* ends at a row that begins with 0 */
};

/* ---- buffers ---- */

TEST_UNUSED static size_t buf_host_bytes(const struct buf *b)
{
    switch (b->kind) {
    case BUF_F32:
    case BUF_ACT:
    case BUF_I32:
        return b->n * 4;
    case BUF_STATS:
        return b->n * sizeof(struct kern_stats);
    case BUF_BYTES:
        break;
    }
    return b->n;
}

TEST_UNUSED static size_t buf_dev_bytes(const struct parity *p, const struct buf *b)
{
    return b->kind == BUF_ACT && p->bf16 ? b->n * 2 : buf_host_bytes(b);
}

TEST_UNUSED static void *parity_add(struct parity *p, const char *name, enum buf_kind kind, enum buf_role role,
                                    size_t n)
{
    struct buf *b = &p->bufs[p->n_bufs++];

    assert_true(p->n_bufs <= PARITY_MAX_BUFS);
    *b = (struct buf){.name = name, .kind = kind, .role = role, .n = n};
    size_t bytes = buf_host_bytes(b);
    b->start = test_alloc(bytes + 1, 1);
    b->cpu = test_alloc(bytes + 1, 1);
    b->got = test_alloc(bytes + 1, 1);
    b->again = test_alloc(bytes + 1, 1);
    if (role == BUF_OUT)
        memset(b->start, 0xff, bytes);
    return b->start;
}

/* A tensor that is absent: the operation gets NULL. */
TEST_UNUSED static void parity_none(struct parity *p)
{
    p->bufs[p->n_bufs++] = (struct buf){.name = "none"};
}

TEST_UNUSED static float *parity_normal(struct parity *p, const char *name, enum buf_kind kind, enum buf_role role,
                                        size_t n, float scale)
{
    float *x = (float *)parity_add(p, name, kind, role, n);
    MEM_LOCAL float *random = test_normal(&p->rng, n, scale);

    for (size_t i = 0; i < n; i++)
        x[i] = kind == BUF_ACT && p->bf16 ? bf16_value(bf16_bits(random[i])) : random[i];
    return x;
}

/* What an operation writes (NaN before), or adds to. */
TEST_UNUSED static void parity_result(struct parity *p, const char *name, enum buf_kind kind, size_t n, bool adds)
{
    if (adds)
        parity_normal(p, name, kind, BUF_INOUT, n, 1.0f);
    else
        parity_add(p, name, kind, BUF_OUT, n);
}

TEST_UNUSED static uint8_t *parity_flags(struct parity *p, const char *name, size_t n, float prob)
{
    uint8_t *x = (uint8_t *)parity_add(p, name, BUF_BYTES, BUF_IN, n);
    MEM_LOCAL uint8_t *random = test_flags(&p->rng, n, prob);

    memcpy(x, random, n);
    return x;
}

TEST_UNUSED static void parity_bytes(struct parity *p, const char *name, enum buf_role role, const void *bytes,
                                     size_t n)
{
    memcpy(parity_add(p, name, BUF_BYTES, role, n), bytes, n);
}

/* The tensor added last lies where a row of odd length would put it. */
TEST_UNUSED static void parity_shift(struct parity *p, size_t numbers)
{
    p->bufs[p->n_bufs - 1].shift = numbers;
}

/* All activations do. */
TEST_UNUSED static void parity_shift_acts(struct parity *p, size_t numbers)
{
    for (size_t i = 0; i < p->n_bufs; i++)
        p->bufs[i].shift = p->bufs[i].kind == BUF_ACT ? numbers : p->bufs[i].shift;
}

/* The tensor added last is computed in f32, whatever the precision. */
TEST_UNUSED static void parity_f32(struct parity *p)
{
    p->bufs[p->n_bufs - 1].tolerance = PARITY_F32;
}

/* ---- running ---- */

#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        error_clear(&err);                                                                                             \
        if ((call) != ST_OK)                                                                                           \
            fail_msg("%s: %s", p->where, err.text);                                                                    \
    } while (0)

TEST_UNUSED static void parity_run_cpu(struct parity *p, const struct parity_case *c)
{
    struct error err = {0};

    for (size_t i = 0; i < p->n_bufs; i++) {
        struct buf *b = &p->bufs[i];
        if (b->start != NULL)
            memcpy(b->cpu, b->start, buf_host_bytes(b));
        p->call.p[i] = b->cpu;
    }
    c->run(p->cpu, &p->call);
    MUST(kern_sync(p->cpu, &err));
}

TEST_UNUSED static void parity_upload(struct parity *p)
{
    struct error err = {0};

    for (size_t i = 0; i < p->n_bufs; i++) {
        struct buf *b = &p->bufs[i];
        const void *from = b->start;
        uint16_t *packed = NULL;

        if (b->start == NULL)
            continue;
        if (b->kind == BUF_ACT && p->bf16) {
            packed = NEW(uint16_t, b->n + 1);
            for (size_t j = 0; j < b->n; j++)
                packed[j] = bf16_bits(((const float *)b->start)[j]);
            from = packed;
        }
        MUST(kern_upload(p->gpu, b->dev, from, buf_dev_bytes(p, b), &err));
        MUST(kern_sync(p->gpu, &err));
        mem_free(packed);
    }
}

/* What the GPU holds into got or again, and everything of the two the same when it is the second. */
TEST_UNUSED static void parity_download(struct parity *p, bool again, const char *what)
{
    struct error err = {0};

    for (size_t i = 0; i < p->n_bufs; i++) {
        struct buf *b = &p->bufs[i];
        size_t bytes = buf_dev_bytes(p, b);

        if (b->start == NULL || b->role == BUF_SCRATCH)
            continue;
        MUST(kern_download(p->gpu, again ? b->again : b->got, b->dev, bytes, &err));
        if (again && memcmp(b->again, b->got, bytes) != 0)
            fail_msg("%s: %s: %s has other bytes than the first time", p->where, what, b->name);
    }
}

TEST_UNUSED static void parity_compare_stats(const struct parity *p, const struct buf *b, double tolerance)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct kern_stats *got = (const struct kern_stats *)b->got + i,
                                *want = (const struct kern_stats *)b->cpu + i;
        const double *x = (const double *)got, *y = (const double *)want;
        char name[192];

        for (size_t j = 0; j < offsetof(struct kern_stats, nonfinite) / sizeof(double); j++) {
            snprintf(name, sizeof name, "%s: %s[%zu], number %zu", p->where, b->name, i, j);
            if (isfinite(y[j]))
                check_number(name, x[j], y[j], tolerance);
            else if (isfinite(x[j]))
                fail_msg("%s is %g, want %g", name, x[j], y[j]);
        }
        if (got->nonfinite != want->nonfinite || got->stop != want->stop)
            fail_msg("%s: %s: nonfinite, stop are %d, %d, want %d, %d", p->where, b->name, got->nonfinite, got->stop,
                     want->nonfinite, want->stop);
    }
}

/* Close as a whole; what is not finite in the reference is not finite here, and nowhere else. */
TEST_UNUSED static void parity_compare_floats(const struct parity *p, const struct buf *b, double tolerance)
{
    MEM_LOCAL float *got = NEW(float, b->n + 1);
    MEM_LOCAL double *want = NEW(double, b->n + 1);
    char name[192];
    size_t n = 0;

    snprintf(name, sizeof name, "%s: %s", p->where, b->name);
    for (size_t i = 0; i < b->n; i++) {
        float y = ((const float *)b->cpu)[i];
        float x =
            b->kind == BUF_ACT && p->bf16 ? bf16_value(((const uint16_t *)b->got)[i]) : ((const float *)b->got)[i];
        if (!isfinite(y)) {
            if (isfinite(x))
                fail_msg("%s[%zu] is %g, want %g", name, i, (double)x, (double)y);
            continue;
        }
        got[n] = x;
        want[n++] = (double)y;
    }
    check_close(name, got, want, n, tolerance);
}

TEST_UNUSED static void parity_compare(const struct parity *p)
{
    for (size_t i = 0; i < p->n_bufs; i++) {
        const struct buf *b = &p->bufs[i];
        double tolerance = b->tolerance > 0.0 ? b->tolerance : p->bf16 ? PARITY_BF16 : PARITY_F32;
        if (b->start == NULL || b->role == BUF_SCRATCH)
            continue;
        switch (b->kind) {
        case BUF_F32:
        case BUF_ACT:
            parity_compare_floats(p, b, tolerance);
            break;
        case BUF_STATS:
            parity_compare_stats(p, b, tolerance);
            break;
        case BUF_I32:
        case BUF_BYTES:
            for (size_t j = 0; j < buf_host_bytes(b); j++)
                if (((const uint8_t *)b->got)[j] != ((const uint8_t *)b->cpu)[j])
                    fail_msg("%s: %s differs at byte %zu of %zu", p->where, b->name, j, buf_host_bytes(b));
            break;
        }
    }
}

TEST_UNUSED static void parity_run(struct parity *p, const struct parity_case *c, const size_t *s)
{
    struct error err = {0};
    struct kern_graph *graph;

    p->n_bufs = 0;
    p->call = (struct call){.s = s};
    p->rng = rng_split(rng_seed(s[0] * 131 + s[1] * 17 + s[2]), c->op);
    c->make(p, s);
    parity_run_cpu(p, c);
    for (size_t i = 0; i < p->n_bufs; i++) {
        struct buf *b = &p->bufs[i];
        if (b->start != NULL) {
            size_t before = b->n == 0 ? 0 : b->shift * (buf_dev_bytes(p, b) / b->n);
            MUST(kern_alloc(p->gpu, &b->mem, buf_dev_bytes(p, b) + before, b->name, &err));
            b->dev = (char *)b->mem + before;
        }
        p->call.p[i] = b->dev;
    }
    for (int round = 0; round < 2; round++) {
        parity_upload(p);
        c->run(p->gpu, &p->call);
        parity_download(p, round > 0, "the second time");
    }
    parity_upload(p);
    MUST(kern_record_begin(p->gpu, &err));
    c->run(p->gpu, &p->call);
    MUST(kern_record_end(p->gpu, &graph, &err));
    MUST(kern_replay(p->gpu, graph, &err));
    parity_download(p, true, "replayed");
    kern_graph_destroy(p->gpu, graph);
    parity_compare(p);
    for (size_t i = 0; i < p->n_bufs; i++) {
        struct buf *b = &p->bufs[i];
        kern_free(p->gpu, b->mem);
        mem_free(b->start), mem_free(b->cpu), mem_free(b->got), mem_free(b->again);
    }
}

TEST_UNUSED static bool parity_has_op(const struct kern *k, size_t op)
{
    void *row;
    memcpy(&row, (const char *)kern_ops(k) + op, sizeof row);
    return row != NULL;
}

TEST_UNUSED static struct parity parity;
TEST_UNUSED static size_t parity_largest = SIZE_MAX;

TEST_UNUSED static void agrees_with_the_cpu(void **state)
{
    const struct parity_case *c = (const struct parity_case *)*state;
    struct parity *p = &parity;
    struct error err = {0};

    for (int precision = KERN_F32; precision <= (c->has_acts ? KERN_BF16 : KERN_F32); precision++) {
        p->bf16 = precision == KERN_BF16;
        MUST(kern_precision_set(p->gpu, (enum kern_precision)precision, &err));
        if (!parity_has_op(p->gpu, c->op)) {
            print_message("# %s: the table does not have this row\n", c->name);
            skip();
        }
        for (const size_t(*s)[5] = c->shapes; (*s)[0] != 0; s++) {
            if ((*s)[0] * ((*s)[1] > 0 ? (*s)[1] : 1) > parity_largest)
                continue;
            snprintf(p->where, sizeof p->where, "%s %s (%zu, %zu, %zu, %zu)", c->name, kern_ops(p->gpu)->name, (*s)[0],
                     (*s)[1], (*s)[2], (*s)[3]);
            parity_run(p, c, *s);
        }
    }
}

#define PARITY_SHORT 10000 /* largest shape with TRAWL_TEST_SHORT */

/* Rows of a table of cases: {sizes}... of each; with another name of a test, or other functions, than the
 * operation's. */
#define PARITY_ROW_AS(name, op, acts, make, run, ...)                                                                  \
    {                                                                                                                  \
        name, offsetof(struct kern_ops, op), acts, make, run,                                                          \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define PARITY_ROW_OF(op, acts, make, run, ...) PARITY_ROW_AS(#op, op, acts, make, run, __VA_ARGS__)
#define PARITY_ROW(op, acts, ...) PARITY_ROW_OF(op, acts, op##_make, op##_run, __VA_ARGS__)

/* The main of a test program. argv[1]: as test_listed has it; argv[2]: the most rows that a shape may have. */
TEST_UNUSED static int parity_main(int argc, char **argv, const char *group, const struct parity_case *cases,
                                   size_t n_cases)
{
    struct kern_settings of_cpu = {.kind = KERN_CPU, .n_threads = 2}, of_gpu = {.kind = KERN_CUDA};
    char reason[512];
    struct error err = {0};

    for (size_t i = 0; i < n_cases; i++)
        unit_test_add(
            0, (struct CMUnitTest){cases[i].name, agrees_with_the_cpu, NULL, NULL, (void *)(uintptr_t)&cases[i]});
    if (test_listed(argc > 1 ? argv[1] : NULL))
        return 0;
    if (!kern_cuda_available(reason, sizeof reason))
        return test_no_gpu(reason);
    if (argc > 2)
        parity_largest = (size_t)strtoull(argv[2], NULL, 10);
    else if (test_is_short())
        parity_largest = PARITY_SHORT;
    if (kern_open(&parity.cpu, &of_cpu, &err) != ST_OK || kern_open(&parity.gpu, &of_gpu, &err) != ST_OK) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int failed = run_cases(group, NULL, NULL);
    kern_close(parity.gpu);
    kern_close(parity.cpu);
    return failed;
}
