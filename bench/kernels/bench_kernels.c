/* bench_kernels.c - `trawl-bench kernels`: time of every operation at the shapes of a training, beside what its bytes
 * and flops would take at the rates of one large copy and one large matrix product, measured in the same run.
 * A device that records runs an operation many times in one graph, between two marks of its own clock: what is timed is
 * what the operation costs inside a recorded loop. Elsewhere it is called as often, directly. */
#include "bench/kernels/kernel_bench_ops.h"

#include "bench/bench_commands.h"
#include "study/setup/setup.h"
#include "study/version.h"
#include "sweep/cli.h"

#define MAX_REPEATS BENCH_MAX_REPEATS
#define MAX_CALLS 512 /* of an operation between two marks */
#define COPY_BYTES_GPU ((size_t)512 << 20)
#define COPY_BYTES_CPU ((size_t)64 << 20)
#define GEMM_GPU 8192
#define GEMM_CPU 1024

struct kb_options {
    const char *env, *device, *precision;
    int64_t agents, horizon, minibatch, width, threads, repeats, sets;
    double seconds;
    bool json;
};

/* What is repeated between two marks: an operation, or one of the two ceilings. */
struct kb_work {
    const struct kb_op *op; /* NULL: copy or product */
    bool is_product;
    void *mem[3];
    size_t n; /* bytes of the copy, side of the product */
};

struct kb_result {
    struct bench_spread ns; /* of one call */
    bool measured;
};

static void work_call(struct kb *b, const struct kb_work *w, size_t i)
{
    if (w->op != NULL)
        w->op->run(b, &b->sets[i % b->n_sets]);
    else if (w->is_product)
        b->ops->linear_forward(
            b->kern,
            &(struct kern_linear){.y = w->mem[0], .x = w->mem[1], .w = w->mem[2], .M = w->n, .N = w->n, .K = w->n});
    else
        b->ops->copy(b->kern, w->mem[0], w->mem[1], w->n);
}

static void work_calls(struct kb *b, const struct kb_work *w, size_t calls)
{
    b->ops->mark(b->kern, &b->marks[0]);
    for (size_t i = 0; i < calls; i++)
        work_call(b, w, i);
    b->ops->mark(b->kern, &b->marks[1]);
}

/* Nanoseconds between the marks of one round of calls. */
static enum status work_round(struct kb *b, const struct kb_work *w, size_t calls, struct kern_graph *graph,
                              double *ret_ns, struct error *err)
{
    uint64_t marks[2];

    if (graph != NULL)
        TRY(kern_replay(b->kern, graph, err));
    else
        work_calls(b, w, calls);
    TRY(kern_download(b->kern, marks, b->marks, sizeof marks, err));
    *ret_ns = (double)(marks[1] - marks[0]);
    return ST_OK;
}

/* Repeats rounds of as many calls as take about `seconds` together. */
static enum status work_measure(struct kb *b, const struct kb_work *w, int64_t repeats, double seconds,
                                struct bench_spread *ret_ns, struct error *err)
{
    struct kern_graph *graph = NULL;
    double ns, values[MAX_REPEATS];

    TRY(work_round(b, w, 1, NULL, &ns, err)); /* warm: libraries load what they need */
    TRY(work_round(b, w, b->n_sets, NULL, &ns, err));
    ns = ns / (double)b->n_sets + 1.0;
    ns = seconds * 1e9 / (double)repeats / ns;
    size_t calls = ns < 1.0 ? 1 : ns > MAX_CALLS ? MAX_CALLS : (size_t)ns;
    if (kern_can_record(b->kern)) {
        TRY(kern_record_begin(b->kern, err));
        work_calls(b, w, calls);
        TRY(kern_record_end(b->kern, &graph, err));
    }
    enum status rc = work_round(b, w, calls, graph, &ns, err);
    for (int64_t i = 0; rc == ST_OK && i < repeats; i++) {
        rc = work_round(b, w, calls, graph, &values[i], err);
        values[i] /= (double)calls;
    }
    kern_graph_destroy(b->kern, graph);
    if (rc == ST_OK)
        *ret_ns = bench_spread_of(values, repeats);
    return rc;
}

/* Bytes per second of a copy (read and written) and flops per second of a product. */
static enum status measure_ceilings(struct kb *b, double *ret_copy, double *ret_product, struct error *err)
{
    bool is_gpu = kern_kind(b->kern) == KERN_CUDA;
    size_t bytes = is_gpu ? COPY_BYTES_GPU : COPY_BYTES_CPU, side = is_gpu ? GEMM_GPU : GEMM_CPU;
    struct kb_work copy = {.n = bytes}, product = {.is_product = true, .n = side};
    struct bench_spread ns;

    for (int i = 0; i < 2; i++)
        product.mem[1 + i] = copy.mem[i] = kb_alloc(b, bytes); /* zeros: a product of them takes as long */
    product.mem[0] = kb_alloc(b, side * side * b->ops->act_size);
    TRY(work_measure(b, &copy, 5, 0.2, &ns, err));
    *ret_copy = 2.0 * (double)bytes / ns.min * 1e9;
    TRY(work_measure(b, &product, 5, 0.3, &ns, err));
    *ret_product = 2.0 * (double)side * (double)side * (double)side / ns.min * 1e9;
    return ST_OK;
}

static bool has_row(const struct kb *b, size_t row)
{
    void *op;
    memcpy(&op, (const char *)b->ops + row, sizeof op);
    return op != NULL;
}

static enum status measure_ops(struct kb *b, const struct kb_options *o, struct kb_result *results, struct error *err)
{
    for (size_t i = 0; i < kb_n_ops; i++) {
        struct kb_work work = {.op = &kb_ops[i]};
        if (!has_row(b, kb_ops[i].row))
            continue;
        TRY(work_measure(b, &work, o->repeats, o->seconds, &results[i].ns, err));
        results[i].measured = true;
    }
    return ST_OK;
}

/* Share of the time that bytes and flops need at the ceilings. */
static double roofline(const struct kb *b, size_t i, double ns, double copy, double product)
{
    double bytes_ns = kb_ops[i].bytes(b) / copy * 1e9;
    double flops_ns = kb_ops[i].flops == NULL ? 0.0 : kb_ops[i].flops(b) / product * 1e9;

    return (bytes_ns > flops_ns ? bytes_ns : flops_ns) / ns;
}

static void print_results(const struct kb *b, const struct kb_options *o, const struct kb_result *results, double copy,
                          double product)
{
    const struct kb_shape *z = &b->shape;

    printf("%s, %s; %s with MinGRU %zux1, %zu agents, minibatches of %zu x %zu\n", kern_device_name(b->kern),
           b->ops->name, o->env, z->H, z->N, z->T, z->B);
    printf("copy %.0f GB/s, product %.2f TFLOP/s; commit %s\n", copy * 1e-9, product * 1e-12, program_commit);
    printf("%-28s %10s %21s %9s %9s %8s %8s %6s\n", "operation", "us", "(lowest highest)", "MB", "MFLOP", "GB/s",
           "TFLOP/s", "roof");
    for (size_t i = 0; i < kb_n_ops; i++) {
        const struct bench_spread *ns = &results[i].ns;
        double bytes = kb_ops[i].bytes(b), flops = kb_ops[i].flops == NULL ? 0.0 : kb_ops[i].flops(b);
        if (!results[i].measured) {
            printf("%-28s not on this device\n", kb_ops[i].name);
            continue;
        }
        printf("%-28s %10.2f %10.2f %10.2f %9.3f %9.1f %8.0f %8.2f %5.0f%%\n", kb_ops[i].name, ns->median * 1e-3,
               ns->min * 1e-3, ns->max * 1e-3, bytes * 1e-6, flops * 1e-6, bytes / ns->median,
               flops / ns->median * 1e-3, 100.0 * roofline(b, i, ns->median, copy, product));
    }
}

static cJSON *op_json(const struct kb *b, size_t i, const struct kb_result *r, double copy, double product)
{
    cJSON *json = cJSON_CreateObject();
    double bytes = kb_ops[i].bytes(b), flops = kb_ops[i].flops == NULL ? 0.0 : kb_ops[i].flops(b);
    struct bench_spread us = {r->ns.median * 1e-3, r->ns.min * 1e-3, r->ns.max * 1e-3};

    json_add_str(json, "op", kb_ops[i].name);
    bench_add_spread(json, "us", &us);
    json_add_f64(json, "bytes", bytes);
    json_add_f64(json, "flops", flops);
    json_add_f64(json, "gb_per_s", bytes / r->ns.median);
    json_add_f64(json, "tflop_per_s", flops / r->ns.median * 1e-3);
    json_add_f64(json, "roofline_share", roofline(b, i, r->ns.median, copy, product));
    return json;
}

static cJSON *results_json(const struct kb *b, const struct kb_options *o, const struct kb_result *results, double copy,
                           double product)
{
    const struct kb_shape *z = &b->shape;
    cJSON *json = cJSON_CreateObject(), *list = cJSON_CreateArray();

    for (size_t i = 0; i < kb_n_ops; i++)
        if (results[i].measured)
            cJSON_AddItemToArray(list, op_json(b, i, &results[i], copy, product));
    json_add_str(json, "bench", "kernels");
    json_add_str(json, "backend", b->ops->name);
    json_add_str(json, "env", o->env);
    json_add_i64(json, "agents", (int64_t)z->N);
    json_add_i64(json, "horizon", (int64_t)z->T);
    json_add_i64(json, "segments", (int64_t)z->B);
    json_add_i64(json, "width", (int64_t)z->H);
    json_add_i64(json, "threads", (int64_t)kern_n_threads(b->kern));
    json_add_i64(json, "repeats", o->repeats);
    json_add_i64(json, "sets", o->sets);
    json_add_f64(json, "copy_gb_per_s", copy * 1e-9);
    json_add_f64(json, "product_tflop_per_s", product * 1e-12);
    bench_add_machine(json, kern_device_name(b->kern));
    json_add(json, "ops", list);
    return json;
}

/* ---- options ---- */

static enum status shape_of(struct kb_shape *z, const struct kb_options *o, struct error *err)
{
    struct setup *setup = NULL;
    struct env_shape env = {0};

    if (o->agents < 1 || o->horizon < 1 || o->width < 1 || o->minibatch < o->horizon || o->minibatch % o->horizon != 0)
        return FAIL(err, ST_USAGE,
                    "bench kernels: --minibatch %lld has to be a multiple of --horizon %lld, and all >= 1",
                    (long long)o->minibatch, (long long)o->horizon);
    if (o->agents < o->minibatch / o->horizon)
        return FAIL(err, ST_USAGE,
                    "bench kernels: a minibatch takes %lld segments, but there are %lld agents; raise "
                    "--agents or lower --minibatch",
                    (long long)(o->minibatch / o->horizon), (long long)o->agents);
    enum status rc = setup_create(&setup, err);
    THEN(rc, setup_load(setup, o->env, err));
    THEN(rc, setup_finish(setup, err));
    THEN(rc, setup->env->shape(setup->env, setup->env_settings, &env, err));
    setup_destroy(setup);
    if (rc != ST_OK)
        return rc;
    z->N = (size_t)o->agents, z->T = (size_t)o->horizon, z->M = (size_t)o->minibatch, z->B = z->M / z->T;
    z->D = (size_t)env.obs_size, z->H = (size_t)o->width, z->has_mask = env.has_mask;
    kern_heads_init(&z->heads, &env, false);
    z->A = (size_t)z->heads.n_logits, z->O = z->A + 1;
    z->n_params = z->H * z->D + z->H + 3 * z->H * z->H + z->O * z->H + z->O;
    return ST_OK;
}

static enum status open_device(struct kern **ret_kern, const struct kb_options *o, struct error *err)
{
    struct kern_settings settings = {.kind = KERN_AUTO, .n_threads = (size_t)o->threads};
    enum kern_precision precision = strcmp(o->precision, "bf16") == 0 ? KERN_BF16 : KERN_F32;

    if (strcmp(o->device, "cpu") == 0)
        settings.kind = KERN_CPU;
    else if (strcmp(o->device, "cuda") == 0)
        settings.kind = KERN_CUDA;
    else if (strcmp(o->device, "auto") != 0)
        return FAIL(err, ST_USAGE, "bench kernels: --device is '%s', auto, cpu or cuda are allowed", o->device);
    if (precision == KERN_F32 && strcmp(o->precision, "f32") != 0)
        return FAIL(err, ST_USAGE, "bench kernels: --precision is '%s', f32 or bf16 are allowed", o->precision);
    TRY(kern_open(ret_kern, &settings, err));
    enum status rc = kern_precision_set(*ret_kern, precision, err);
    if (rc != ST_OK) {
        kern_close(*ret_kern);
        *ret_kern = NULL;
    }
    return rc;
}

static enum status measure(const struct kb_options *o, struct error *err)
{
    struct kb b = {.n_sets = (size_t)o->sets};
    struct kb_result results[64] = {0};
    double copy = 0, product = 0;

    if (kb_n_ops > COUNT(results))
        return FAIL(err, ST_INTERNAL, "bench kernels: more operations than results");
    TRY(shape_of(&b.shape, o, err));
    TRY(open_device(&b.kern, o, err));
    b.ops = kern_ops(b.kern);
    kb_create(&b);
    enum status rc = measure_ceilings(&b, &copy, &product, err);
    THEN(rc, measure_ops(&b, o, results, err));
    if (rc == ST_OK && o->json)
        cli_print_json(results_json(&b, o, results, copy, product));
    else if (rc == ST_OK)
        print_results(&b, o, results, copy, product);
    kb_destroy(&b);
    kern_close(b.kern);
    return rc;
}

enum status bench_kernels(int argc, char **argv, struct error *err)
{
    struct kb_options o = {.env = "breakout",
                           .device = "auto",
                           .precision = "f32",
                           .agents = 4096,
                           .horizon = 64,
                           .minibatch = 32768,
                           .width = 128,
                           .repeats = 9,
                           .sets = 4,
                           .seconds = 0.1};
    const struct cli_opt opts[] = {
        {"env", 0, CLI_TEXT, &o.env, "NAME", "game whose observations and actions give the shapes (breakout)"},
        {"device", 0, CLI_TEXT, &o.device, "auto|cpu|cuda", "device (auto)"},
        {"precision", 0, CLI_TEXT, &o.precision, "f32|bf16", "number format of activations (f32)"},
        {"agents", 0, CLI_INT, &o.agents, "N", "agents that act (4096)"},
        {"horizon", 0, CLI_INT, &o.horizon, "T", "steps of a segment (64)"},
        {"minibatch", 0, CLI_INT, &o.minibatch, "M", "tokens of a minibatch (32768)"},
        {"width", 0, CLI_INT, &o.width, "H", "hidden size (128)"},
        {"threads", 0, CLI_INT, &o.threads, "N", "CPU: 0: one per core (0)"},
        {"repeats", 0, CLI_INT, &o.repeats, "N", "measure this often, give the median (9)"},
        {"seconds", 0, CLI_SECONDS, &o.seconds, "TIME", "for each operation, all repeats together (0.1s)"},
        {"sets", 0, CLI_INT, &o.sets, "N", "copies of all tensors, taken in turn, against warm caches (4)"},
        {"json", 0, CLI_FLAG, &o.json, NULL, "print one JSON object"},
    };
    const struct cli cli = {
        .name = "bench kernels",
        .synopsis = "trawl-bench kernels [options]",
        .about = "Times every operation of a device at the shapes of a training with one MinGRU layer, and compares it "
                 "with what\nits bytes and flops take at the rates of a large copy and a large matrix product.",
        .examples = "  trawl-bench kernels --device cpu --threads 1 --json\n"
                    "  trawl-bench kernels --device cuda --precision bf16 --agents 8192",
        CLI_OPTS(opts),
        .words_text = "no words",
    };

    CLI_PARSE(cli, words);
    if (o.repeats < 1 || o.repeats > MAX_REPEATS || o.sets < 1 || o.sets > 64 || o.threads < 0)
        return FAIL(err, ST_USAGE, "bench kernels: --repeats takes 1 to %d, --sets 1 to 64, --threads 0 or more",
                    MAX_REPEATS);
    return measure(&o, err);
}
