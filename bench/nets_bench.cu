/* nets_bench.cu - recurrent and convolutional layers on the GPU: an LSTM's training pass and single step, beside them
 * cuDNN's LSTM on the same shape, which knows no resets within a sequence; convolutions forward and backward.
 * usage: nets_bench lstm [H [T [B]]] | nets_bench conv [SIDE [CHANNELS [M]]]
 * One line for each: microseconds, and nanoseconds per token. Passes are recorded once and replayed; best of RUNS. */
#include <cuda_runtime.h>
#include <cudnn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern "C" {
#include "kernels/kernels.h"
}

enum { RUNS = 8, REPLAYS = 20 };

struct bench {
    struct kern *k;
    const struct kern_ops *ops;
    size_t T, B, H, M, act;
    void *x, *gates, *out, *h_prev, *c_prev, *dout, *dx, *w_ih, *w_hh, *b; /* act */
    float *state, *dstate, *dw_ih, *dw_hh, *db;
    uint8_t *reset;
    struct kern_conv conv;
};

static void stop(const char *what, const char *why)
{
    fprintf(stderr, "nets_bench: %s: %s\n", what, why);
    exit(1);
}

static void must(enum status rc, const struct error *err)
{
    if (rc != ST_OK)
        stop("device", err->text);
}

static void *get(struct bench *b, size_t bytes)
{
    struct error err = {};
    void *p;
    must(kern_alloc(b->k, &p, bytes, "bench", &err), &err);
    return p;
}

/* (n) numbers in [-scale, scale] of the activation type. */
static void *get_numbers(struct bench *b, size_t n, float scale, struct rng *rng)
{
    struct error err = {};
    float *host = (float *)malloc(n * sizeof *host);
    void *p = get(b, n * b->act), *wide = get(b, n * sizeof *host);

    for (size_t i = 0; i < n; i++)
        host[i] = (2.0f * rng_f32(rng) - 1.0f) * scale;
    must(kern_upload(b->k, b->act == 4 ? p : wide, host, n * sizeof *host, &err), &err);
    if (b->act != 4)
        b->ops->weights_cast(b->k, p, (const float *)wide, n);
    must(kern_sync(b->k, &err), &err);
    kern_free(b->k, wide);
    free(host);
    return p;
}

typedef void part_fn(struct bench *b);

/* The tensors of both directions; an operation takes what it names. */
static struct kern_lstm lstm_of(const struct bench *b)
{
    struct kern_lstm l = {};
    l.T = b->T, l.B = b->B, l.H = b->H;
    l.gates = b->gates, l.w_hh = b->w_hh, l.reset = b->reset, l.state = b->state;
    l.out = b->out, l.h_prev = b->h_prev, l.c_prev = b->c_prev;
    l.dout = b->dout, l.dstate = b->dstate;
    return l;
}

static struct kern_conv_layer conv_of(const struct bench *b)
{
    struct kern_conv_layer l = {};
    l.shape = &b->conv, l.M = b->M, l.act = KERN_ACT_RELU;
    l.x = b->x, l.w = b->w_ih, l.b = b->b, l.y = b->out;
    l.dy = b->dout, l.dx = b->dx, l.dw = b->dw_ih, l.db = b->db;
    return l;
}

static struct kern_linear gates_of(const struct bench *b, size_t M)
{
    struct kern_linear l = {};
    l.M = M, l.N = 4 * b->H, l.K = b->H;
    l.x = b->x, l.w = b->w_ih, l.b = b->b, l.y = b->gates;
    l.dy = b->gates, l.dx = b->dx, l.dw = b->dw_ih, l.db = b->db;
    return l;
}

static void part_inputs(struct bench *b)
{
    const struct kern_linear l = gates_of(b, b->M);
    b->ops->linear_forward(b->k, &l);
}
static void part_forward(struct bench *b)
{
    const struct kern_lstm l = lstm_of(b);
    b->ops->lstm_forward(b->k, &l);
}
static void part_backward(struct bench *b)
{
    const struct kern_lstm l = lstm_of(b);
    b->ops->lstm_backward(b->k, &l);
}
static void part_weights(struct bench *b)
{
    const struct kern_linear input = gates_of(b, b->M);
    struct kern_linear hidden = input;
    hidden.x = b->h_prev, hidden.w = b->w_hh;
    hidden.dx = NULL, hidden.dw = b->dw_hh, hidden.db = NULL;
    b->ops->linear_backward(b->k, &hidden);
    b->ops->linear_backward(b->k, &input);
}
static void part_all(struct bench *b)
{
    part_inputs(b), part_forward(b), part_backward(b), part_weights(b);
}
static void part_cell(struct bench *b)
{
    const struct kern_lstm l = lstm_of(b);
    b->ops->lstm_step(b->k, &l);
}
static void part_step(struct bench *b) /* all M rows as agents of one step */
{
    const struct kern_linear l = gates_of(b, b->B);
    b->ops->linear_forward(b->k, &l);
    part_cell(b);
}

static void part_conv(struct bench *b)
{
    const struct kern_conv_layer l = conv_of(b);
    b->ops->conv_forward(b->k, &l);
}
static void part_conv_back(struct bench *b)
{
    const struct kern_conv_layer l = conv_of(b);
    b->ops->conv_backward(b->k, &l);
}

static double time_part(struct bench *b, part_fn *fn)
{
    struct error err = {};
    struct kern_graph *graph = NULL;
    double best = 1e30;
    fn(b);
    must(kern_sync(b->k, &err), &err);
    must(kern_record_begin(b->k, &err), &err);
    for (int i = 0; i < REPLAYS; i++)
        fn(b);
    must(kern_record_end(b->k, &graph, &err), &err);
    for (int run = 0; run < RUNS; run++) {
        float ms;
        must(kern_sync(b->k, &err), &err);
        struct timespec t0, t1;
        clock_gettime(CLOCK_MONOTONIC, &t0);
        must(kern_replay(b->k, graph, &err), &err);
        must(kern_sync(b->k, &err), &err);
        clock_gettime(CLOCK_MONOTONIC, &t1);
        ms = (float)((t1.tv_sec - t0.tv_sec) * 1e3 + (t1.tv_nsec - t0.tv_nsec) * 1e-6);
        best = ms / REPLAYS * 1e3 < best ? ms / REPLAYS * 1e3 : best;
    }
    kern_graph_destroy(b->k, graph);
    return best;
}

static void bench_ours(const char *name, enum kern_precision precision, size_t T, size_t B, size_t H)
{
    struct kern_settings settings = {};
    struct error err = {};
    struct rng rng = rng_seed(1);
    struct bench b = {};

    settings.kind = KERN_CUDA;
    must(kern_open(&b.k, &settings, &err), &err);
    must(kern_precision_set(b.k, precision, &err), &err);
    b.ops = kern_ops(b.k);
    b.act = b.ops->act_size;
    b.T = T, b.B = B, b.H = H, b.M = T * B;
    float scale = 1.0f / sqrtf((float)H);
    b.x = get_numbers(&b, b.M * H, 1.0f, &rng), b.dout = get_numbers(&b, b.M * H, 1.0f, &rng);
    b.w_ih = get_numbers(&b, 4 * H * H, scale, &rng), b.w_hh = get_numbers(&b, 4 * H * H, scale, &rng);
    b.b = get_numbers(&b, 4 * H, 1.0f, &rng);
    b.gates = get(&b, b.M * 4 * H * b.act), b.out = get(&b, b.M * H * b.act), b.dx = get(&b, b.M * H * b.act);
    b.h_prev = get(&b, b.M * H * b.act), b.c_prev = get(&b, b.M * H * b.act);
    b.state = (float *)get(&b, B * 2 * H * 4), b.dstate = (float *)get(&b, B * 2 * H * 4);
    b.dw_ih = (float *)get(&b, 4 * H * H * 4), b.dw_hh = (float *)get(&b, 4 * H * H * 4);
    b.db = (float *)get(&b, 4 * H * 4), b.reset = (uint8_t *)get(&b, b.M);
    static const struct {
        const char *name;
        part_fn *fn;
    } parts[] = {{"inputs", part_inputs},    {"forward", part_forward}, {"backward", part_backward},
                 {"weights", part_weights},  {"all", part_all},         {"step", part_step},
                 {"cell of step", part_cell}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bool step = i >= 5;
        if (step != (T == 1))
            continue;
        double us = time_part(&b, parts[i].fn);
        printf("%-12s T %4zu B %5zu H %4zu  %-12s %9.1f us  %7.3f ns/token\n", name, T, B, H, parts[i].name, us,
               us * 1e3 / (double)b.M);
    }
    fflush(stdout);
    kern_close(b.k);
}

/* 3x3 with a border of zeros on a square grid; dx only behind a first layer, that is with more than one channel. */
static void bench_conv(const char *name, enum kern_precision precision, size_t side, size_t in, size_t out, size_t M)
{
    struct kern_settings settings = {};
    struct error err = {};
    struct rng rng = rng_seed(1);
    struct bench b = {};

    settings.kind = KERN_CUDA;
    must(kern_open(&b.k, &settings, &err), &err);
    must(kern_precision_set(b.k, precision, &err), &err);
    b.ops = kern_ops(b.k);
    b.act = b.ops->act_size;
    b.M = M;
    b.conv = (struct kern_conv){side, side, in, out, 3, 1, 1};
    size_t n_x = M * side * side * in, n_y = M * side * side * out, n_w = out * 9 * in;
    b.x = get_numbers(&b, n_x, 1.0f, &rng), b.dout = get_numbers(&b, n_y, 1.0f, &rng);
    b.w_ih = get_numbers(&b, n_w, 0.1f, &rng), b.b = get_numbers(&b, out, 0.1f, &rng);
    b.out = get(&b, n_y * b.act), b.dx = in > 1 ? get(&b, n_x * b.act) : NULL;
    b.dw_ih = (float *)get(&b, n_w * 4), b.db = (float *)get(&b, out * 4);
    double us[2] = {time_part(&b, part_conv), time_part(&b, part_conv_back)};
    double flops = 2.0 * (double)n_y * 9.0 * (double)in, bytes = (double)(n_x + n_y) * (double)b.act;
    printf("%-9s %zux%zu M %zu, %3zu -> %3zu  forward %9.1f us %6.1f TFLOP/s %5.2f TB/s  backward %9.1f us\n", name,
           side, side, M, in, out, us[0], flops / us[0] * 1e-6, bytes / us[0] * 1e-6, us[1]);
    fflush(stdout);
    kern_close(b.k);
}

/* ---- cuDNN ---- */

static bool dnn_ok(cudnnStatus_t code, const char *what)
{
    if (code != CUDNN_STATUS_SUCCESS)
        printf("  %s: %s\n", what, cudnnGetErrorString(code));
    return code == CUDNN_STATUS_SUCCESS;
}
#define DNN(call)                                                                                                      \
    if (!dnn_ok(call, #call))                                                                                          \
    return

static void *device(size_t bytes)
{
    void *p = NULL;
    if (cudaMalloc(&p, bytes + 1) != cudaSuccess || cudaMemset(p, 0, bytes + 1) != cudaSuccess)
        stop("cudaMalloc", "out of memory");
    return p;
}

static void bench_cudnn(const char *name, cudnnRNNAlgo_t algo, cudnnDataType_t type, size_t T, size_t B, size_t H)
{
    cudnnHandle_t dnn;
    cudnnRNNDescriptor_t rnn;
    cudnnDropoutDescriptor_t drop;
    cudnnRNNDataDescriptor_t data;
    cudnnTensorDescriptor_t hidden;
    size_t n_states, n_weights, n_work, n_reserve, size = type == CUDNN_DATA_FLOAT ? 4 : 2;
    int dims[3] = {1, (int)B, (int)H}, strides[3] = {(int)(B * H), (int)H, 1};
    int *lengths = (int *)malloc(B * sizeof *lengths);
    cudaStream_t stream;
    float zero = 0.0f;
    cudnnMathType_t math = type == CUDNN_DATA_FLOAT ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH;

    cudaStreamCreate(&stream);
    DNN(cudnnCreate(&dnn));
    DNN(cudnnSetStream(dnn, stream));
    DNN(cudnnCreateDropoutDescriptor(&drop));
    DNN(cudnnDropoutGetStatesSize(dnn, &n_states));
    DNN(cudnnSetDropoutDescriptor(drop, dnn, 0.0f, device(n_states), n_states, 1));
    DNN(cudnnCreateRNNDescriptor(&rnn));
    DNN(cudnnSetRNNDescriptor_v8(rnn, algo, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT,
                                 type, CUDNN_DATA_FLOAT, math, (int)H, (int)H, (int)H, 1, drop, 0));
    if (algo == CUDNN_RNN_ALGO_PERSIST_DYNAMIC)
        DNN(cudnnBuildRNNDynamic(dnn, rnn, (int)B));
    for (size_t i = 0; i < B; i++)
        lengths[i] = (int)T;
    DNN(cudnnCreateRNNDataDescriptor(&data));
    DNN(cudnnSetRNNDataDescriptor(data, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, (int)T, (int)B, (int)H, lengths,
                                  &zero));
    DNN(cudnnCreateTensorDescriptor(&hidden));
    DNN(cudnnSetTensorNdDescriptor(hidden, type, 3, dims, strides));
    DNN(cudnnGetRNNWeightSpaceSize(dnn, rnn, &n_weights));
    DNN(cudnnGetRNNTempSpaceSizes(dnn, rnn, CUDNN_FWD_MODE_TRAINING, data, &n_work, &n_reserve));
    int *d_lengths = (int *)device(B * sizeof *lengths);
    cudaMemcpy(d_lengths, lengths, B * sizeof *lengths, cudaMemcpyHostToDevice);
    void *x = device(T * B * H * size), *y = device(T * B * H * size), *dx = device(T * B * H * size);
    void *dy = device(T * B * H * size), *hx = device(B * H * size), *hy = device(B * H * size);
    void *cx = device(B * H * size), *cy = device(B * H * size), *dh = device(B * H * size), *dc = device(B * H * size);
    void *w = device(n_weights), *dw = device(n_weights), *work = device(n_work), *reserve = device(n_reserve);
    double best[2] = {1e30, 1e30};

    for (int run = 0; run < RUNS + 1; run++) {
        for (int whole = 0; whole < 2; whole++) {
            cudaStreamSynchronize(stream);
            struct timespec t0, t1;
            clock_gettime(CLOCK_MONOTONIC, &t0);
            for (int i = 0; i < REPLAYS; i++) {
                DNN(cudnnRNNForward(dnn, rnn, CUDNN_FWD_MODE_TRAINING, d_lengths, data, x, data, y, hidden, hx, hy,
                                    hidden, cx, cy, n_weights, w, n_work, work, n_reserve, reserve));
                if (!whole)
                    continue;
                DNN(cudnnRNNBackwardData_v8(dnn, rnn, d_lengths, data, y, dy, data, dx, hidden, hx, NULL, dh, hidden,
                                            cx, NULL, dc, n_weights, w, n_work, work, n_reserve, reserve));
                DNN(cudnnRNNBackwardWeights_v8(dnn, rnn, CUDNN_WGRAD_MODE_ADD, d_lengths, data, x, hidden, hx, data, y,
                                               n_weights, dw, n_work, work, n_reserve, reserve));
            }
            cudaStreamSynchronize(stream);
            clock_gettime(CLOCK_MONOTONIC, &t1);
            double us = ((t1.tv_sec - t0.tv_sec) * 1e9 + (t1.tv_nsec - t0.tv_nsec)) * 1e-3 / REPLAYS;
            best[whole] = us < best[whole] ? us : best[whole];
        }
    }
    if (cudaGetLastError() != cudaSuccess)
        stop("cuDNN", "a kernel failed");
    printf("%-22s T %4zu B %5zu H %4zu  forward %9.1f us  all %9.1f us  %7.3f ns/token\n", name, T, B, H, best[0],
           best[1], best[1] * 1e3 / (double)(T * B));
    fflush(stdout);
    cudnnDestroy(dnn);
    free(lengths);
}

static void run_lstm(size_t H, size_t T, size_t B)
{
    static const struct {
        const char *name;
        cudnnRNNAlgo_t algo;
        cudnnDataType_t type;
    } all[] = {{"cudnn bf16 standard", CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_BFLOAT16},
               {"cudnn bf16 static", CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_DATA_BFLOAT16},
               {"cudnn f16 standard", CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_HALF},
               {"cudnn f16 static", CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_DATA_HALF},
               {"cudnn f32 standard", CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT},
               {"cudnn f32 static", CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_DATA_FLOAT}};

    bench_ours("cuda bf16", KERN_BF16, T, B, H);
    bench_ours("cuda f32", KERN_F32, T, B, H);
    bench_ours("cuda bf16", KERN_BF16, 1, 8192, H);
    bench_ours("cuda f32", KERN_F32, 1, 8192, H);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        bench_cudnn(all[i].name, all[i].algo, all[i].type, T, B, H);
}

static void run_conv(size_t side, size_t channels, size_t M)
{
    for (int precision = KERN_F32; precision <= KERN_BF16; precision++) {
        const char *name = precision == KERN_F32 ? "cuda f32" : "cuda bf16";
        bench_conv(name, (enum kern_precision)precision, side, 1, channels, M);
        bench_conv(name, (enum kern_precision)precision, side, channels, channels, M);
    }
}

static size_t number(int argc, char **argv, int i, size_t otherwise)
{
    return argc > i ? strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "lstm") == 0)
        run_lstm(number(argc, argv, 2, 128), number(argc, argv, 3, 64), number(argc, argv, 4, 512));
    else if (argc > 1 && strcmp(argv[1], "conv") == 0)
        run_conv(number(argc, argv, 2, 11), number(argc, argv, 3, 32), number(argc, argv, 4, 8192));
    else
        stop("usage", "nets_bench lstm [H [T [B]]] | conv [SIDE [CHANNELS [M]]]");
    return 0;
}
