/* conv.cu - convolutions through cuDNN, channels last.
 * Invariants: (1) cuDNN is opened by the first convolution, and asked for an algorithm once for each shape; only those
 * that always give the same bytes and whose memory fits the workspace are taken; (2) rows for which there is none, or
 * of more than 2^31 numbers, go in pieces, in order; (3) f32 is f32: no TF32. Gradients of weights are bf16 where
 * activations are, which cuDNN asks for: they are summed in f32, rounded once, and added to the f32 gradient. */
#include <cudnn.h>

#include "kernels/cuda/nets/linear.h"
#include "kernels/cuda/nets/widen.h"
#include "kernels/cuda/number.h"

#define CONVS_MAX 64
#define BLOCK 256
#define PIECE_NUMBERS ((size_t)1 << 30) /* of the larger of x and y */

struct conv_key {
    struct kern_conv shape;
    size_t M;
    enum kern_act act;
    bool is_bf16;
};

/* What can be asked of a shape; each is chosen when it is first asked for. */
enum conv_op { CONV_FORWARD, CONV_DW, CONV_DX, CONV_OPS_N };
enum choice { CHOICE_OPEN, CHOICE_MADE, CHOICE_NONE };

struct conv_entry {
    struct conv_key key;
    cudnnTensorDescriptor_t x, y, b;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    cudnnActivationDescriptor_t act;
    enum choice made[CONV_OPS_N];
    int refused[CONV_OPS_N]; /* how many of those that may be taken have failed since */
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdFilterAlgo_t dw;
    cudnnConvolutionBwdDataAlgo_t dx;
};

struct cuda_convs {
    cudnnHandle_t dnn;
    size_t n, next;
    struct conv_entry entries[CONVS_MAX];
};

static bool check_dnn(struct kern *k, cudnnStatus_t code, const char *what)
{
    if (code == CUDNN_STATUS_SUCCESS)
        return true;
    cuda_fail(k, what, cudnnGetErrorString(code));
    return false;
}

/* ---- what is kept ---- */

static void entry_close(struct conv_entry *e)
{
    cudnnDestroyTensorDescriptor(e->x);
    cudnnDestroyTensorDescriptor(e->y);
    cudnnDestroyTensorDescriptor(e->b);
    cudnnDestroyFilterDescriptor(e->w);
    cudnnDestroyConvolutionDescriptor(e->conv);
    cudnnDestroyActivationDescriptor(e->act);
}

void cuda_convs_destroy(struct cuda_convs *convs)
{
    if (convs == NULL)
        return;
    for (size_t i = 0; i < convs->n; i++)
        entry_close(&convs->entries[i]);
    cudnnDestroy(convs->dnn);
    mem_free(convs);
}

static struct cuda_convs *convs_of(struct kern *k)
{
    struct cuda *cuda = cuda_of(k);
    struct cuda_convs *convs = cuda->convs;

    if (convs != NULL)
        return convs;
    convs = (struct cuda_convs *)mem_alloc(sizeof *convs);
    if (!check_dnn(k, cudnnCreate(&convs->dnn), "opening cuDNN")) {
        mem_free(convs);
        return NULL;
    }
    check_dnn(k, cudnnSetStream(convs->dnn, cuda->stream), "opening cuDNN");
    cuda->convs = convs;
    return convs;
}

static bool entry_open(struct kern *k, struct conv_entry *e)
{
    const struct kern_conv *s = &e->key.shape;
    cudnnDataType_t type = e->key.is_bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
    cudnnActivationMode_t mode = e->key.act == KERN_ACT_RELU ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY;
    int M = (int)e->key.M, in = (int)s->in, out = (int)s->out, pad = (int)s->pad, stride = (int)s->stride;
    int height = (int)kern_conv_height(s), width = (int)kern_conv_width(s), kernel = (int)s->kernel;
    const cudnnTensorFormat_t last = CUDNN_TENSOR_NHWC;

    if (cudnnCreateTensorDescriptor(&e->x) != CUDNN_STATUS_SUCCESS ||
        cudnnCreateTensorDescriptor(&e->y) != CUDNN_STATUS_SUCCESS ||
        cudnnCreateTensorDescriptor(&e->b) != CUDNN_STATUS_SUCCESS ||
        cudnnCreateFilterDescriptor(&e->w) != CUDNN_STATUS_SUCCESS ||
        cudnnCreateConvolutionDescriptor(&e->conv) != CUDNN_STATUS_SUCCESS ||
        cudnnCreateActivationDescriptor(&e->act) != CUDNN_STATUS_SUCCESS) {
        cuda_fail(k, "cuDNN's descriptors", "out of memory");
        return false;
    }
    return check_dnn(k, cudnnSetTensor4dDescriptor(e->x, last, type, M, in, (int)s->height, (int)s->width), "conv x") &&
           check_dnn(k, cudnnSetTensor4dDescriptor(e->y, last, type, M, out, height, width), "conv y") &&
           check_dnn(k, cudnnSetTensor4dDescriptor(e->b, last, type, 1, out, 1, 1), "conv b") &&
           check_dnn(k, cudnnSetFilter4dDescriptor(e->w, type, last, out, in, kernel, kernel), "conv w") &&
           check_dnn(k,
                     cudnnSetConvolution2dDescriptor(e->conv, pad, pad, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION,
                                                     CUDNN_DATA_FLOAT),
                     "conv") &&
           check_dnn(k, cudnnSetConvolutionMathType(e->conv, e->key.is_bf16 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH),
                     "conv") &&
           check_dnn(k, cudnnSetActivationDescriptor(e->act, mode, CUDNN_PROPAGATE_NAN, 0.0), "conv activation");
}

static bool key_equal(const struct conv_key *a, const struct conv_key *b)
{
    const struct kern_conv *s = &a->shape, *t = &b->shape;
    return a->M == b->M && a->act == b->act && a->is_bf16 == b->is_bf16 && s->height == t->height &&
           s->width == t->width && s->in == t->in && s->out == t->out && s->kernel == t->kernel &&
           s->stride == t->stride && s->pad == t->pad;
}

static struct conv_entry *entry_of(struct kern *k, const struct conv_key *key)
{
    struct cuda_convs *convs = convs_of(k);
    struct conv_entry *e;

    for (size_t i = 0; convs != NULL && i < convs->n; i++)
        if (key_equal(&convs->entries[i].key, key))
            return &convs->entries[i];
    if (convs == NULL)
        return NULL;
    e = &convs->entries[convs->next];
    if (convs->next < convs->n)
        entry_close(e);
    else
        convs->n++;
    convs->next = (convs->next + 1) % CONVS_MAX;
    *e = (struct conv_entry){};
    e->key = *key;
    return entry_open(k, e) ? e : NULL;
}

/* ---- choices ---- */

/* The fastest by cuDNN's own reckoning of those that may be taken, without the first `refused`. */
template <typename Perf, typename Algo> static enum choice choose(Algo *ret_algo, const Perf *perf, int n, int refused)
{
    for (int i = 0; i < n; i++)
        if (perf[i].status == CUDNN_STATUS_SUCCESS && perf[i].determinism == CUDNN_DETERMINISTIC &&
            perf[i].memory <= CUDA_WORKSPACE_BYTES && refused-- == 0) {
            *ret_algo = perf[i].algo;
            return CHOICE_MADE;
        }
    return CHOICE_NONE;
}

static enum choice choose_forward(cudnnHandle_t dnn, struct conv_entry *e)
{
    cudnnConvolutionFwdAlgoPerf_t perf[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
    int n = 0;

    if (e->key.act != KERN_ACT_RELU) { /* the only one that leaves out the activation */
        e->forward = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
        return e->refused[CONV_FORWARD] == 0 ? CHOICE_MADE : CHOICE_NONE;
    }
    if (cudnnGetConvolutionForwardAlgorithm_v7(dnn, e->x, e->w, e->conv, e->y, CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &n,
                                               perf) != CUDNN_STATUS_SUCCESS)
        return CHOICE_NONE;
    return choose(&e->forward, perf, n, e->refused[CONV_FORWARD]);
}

static enum choice choose_dw(cudnnHandle_t dnn, struct conv_entry *e)
{
    cudnnConvolutionBwdFilterAlgoPerf_t perf[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
    int n = 0;

    if (cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            dnn, e->x, e->y, e->conv, e->w, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &n, perf) != CUDNN_STATUS_SUCCESS)
        return CHOICE_NONE;
    return choose(&e->dw, perf, n, e->refused[CONV_DW]);
}

static enum choice choose_dx(cudnnHandle_t dnn, struct conv_entry *e)
{
    cudnnConvolutionBwdDataAlgoPerf_t perf[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
    int n = 0;

    if (cudnnGetConvolutionBackwardDataAlgorithm_v7(
            dnn, e->w, e->y, e->conv, e->x, CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &n, perf) != CUDNN_STATUS_SUCCESS)
        return CHOICE_NONE;
    return choose(&e->dx, perf, n, e->refused[CONV_DX]);
}

/* ---- pieces ---- */

/* The rows [at, at + rows) of M, and their entry with an algorithm for op. */
struct piece {
    size_t at, rows;
    struct conv_entry *entry;
};

/* Numbers of a row of x and of y. */
static size_t x_numbers(const struct kern_conv *s)
{
    return s->height * s->width * s->in;
}
static size_t y_numbers(const struct kern_conv *s)
{
    return kern_conv_height(s) * kern_conv_width(s) * s->out;
}

/* The next piece: as many rows as can be done at once. False: none is left, or it cannot be done. */
static bool piece_next(struct kern *k, struct piece *p, const struct kern_conv_layer *l, enum conv_op op, bool is_bf16)
{
    size_t x = x_numbers(l->shape), y = y_numbers(l->shape), most = PIECE_NUMBERS / (x > y ? x : y);
    size_t wide = cuda_wide_rows(k, &l->from, x, is_bf16);
    enum kern_act act = l->act == KERN_ACT_RELU ? l->act : KERN_ACT_NONE;

    most = wide < most ? wide : most;

    p->at += p->rows;
    for (p->rows = l->M - p->at < most ? l->M - p->at : most; p->rows > 0; p->rows /= 2) {
        struct conv_key key = {*l->shape, p->rows, act, is_bf16};
        struct conv_entry *e = entry_of(k, &key);
        if (e == NULL)
            return false;
        cudnnHandle_t dnn = cuda_of(k)->convs->dnn;
        if (e->made[op] == CHOICE_OPEN)
            e->made[op] = op == CONV_FORWARD ? choose_forward(dnn, e)
                          : op == CONV_DW    ? choose_dw(dnn, e)
                                             : choose_dx(dnn, e);
        p->entry = e;
        if (e->made[op] == CHOICE_MADE)
            return true;
    }
    if (p->at < l->M)
        cuda_fail(k, "choosing a convolution", "cuDNN has none of fixed order that fits the workspace, or refuses it");
    return false;
}

/* After the call of op for a piece. cuDNN refuses some calls whose algorithm it had offered for the shape: then nothing
 * has begun, and the piece is asked for again, with the next algorithm or fewer rows. */
static bool piece_done(struct kern *k, struct piece *p, enum conv_op op, cudnnStatus_t code, const char *what)
{
    if (code >= CUDNN_STATUS_BAD_PARAM && code < CUDNN_STATUS_INTERNAL_ERROR) { /* 2000s, 3000s: not supported */
        p->entry->refused[op]++;
        p->entry->made[op] = CHOICE_OPEN;
        p->rows = 0;
        return false;
    }
    return check_dnn(k, code, what);
}

/* ---- operations ---- */

template <typename T> static void conv_forward(struct kern *k, const struct kern_conv_layer *l)
{
    struct cuda *cuda = cuda_of(k);
    const float one = 1.0f, zero = 0.0f;
    struct piece p = {};

    while (piece_next(k, &p, l, CONV_FORWARD, sizeof(T) == 2)) {
        struct conv_entry *e = p.entry;
        const T *x = (const T *)cuda_widen(k, &l->from, l->x, p.at, p.rows, x_numbers(l->shape), sizeof(T) == 2);
        T *y = (T *)l->y + p.at * y_numbers(l->shape);
        piece_done(k, &p, CONV_FORWARD,
                   cudnnConvolutionBiasActivationForward(cuda->convs->dnn, &one, e->x, x, e->w, l->w, e->conv,
                                                         e->forward, cuda->workspace, CUDA_WORKSPACE_BYTES, &zero, e->y,
                                                         y, e->b, l->b, e->act, e->y, y),
                   "conv_forward");
    }
    if (l->act == KERN_ACT_TANH)
        cuda_layer_act(k, l->y, l->M * y_numbers(l->shape), l->act, sizeof(T) == 2);
}

static __global__ void add_bf16_k(float *to, const bf16 *from, size_t n, bool add)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    if (i < n)
        to[i] = (add ? to[i] : 0.0f) + __bfloat162float(from[i]);
}

/* dw from one piece. */
template <typename T>
static void piece_dw(struct kern *k, struct piece *p, float *dw, const T *dy, const T *x, bool add)
{
    struct cuda *cuda = cuda_of(k);
    struct conv_entry *e = p->entry;
    const struct kern_conv *s = &e->key.shape;
    size_t n = s->out * s->kernel * s->kernel * s->in;
    const float one = 1.0f, zero = 0.0f;
    bool narrow = sizeof(T) == 2;

    if (narrow && n * sizeof(T) > CUDA_PARTIALS_BYTES) {
        cuda_fail(k, "conv_backward", "more weights than its buffer holds; lower policy.conv_channels");
        return;
    }
    if (!piece_done(k, p, CONV_DW,
                    cudnnConvolutionBackwardFilter(cuda->convs->dnn, &one, e->x, x, e->y, dy, e->conv, e->dw,
                                                   cuda->workspace, CUDA_WORKSPACE_BYTES, !narrow && add ? &one : &zero,
                                                   e->w, narrow ? cuda->partials : dw),
                    "conv_backward of weights") ||
        !narrow)
        return;
    add_bf16_k<<<cuda_ceil_div(n, BLOCK), BLOCK, 0, cuda->stream>>>(dw, (const bf16 *)cuda->partials, n, add);
    cuda_launched(k, "conv_backward of weights");
}

template <typename T> static void conv_backward(struct kern *k, const struct kern_conv_layer *l)
{
    struct cuda *cuda = cuda_of(k);
    size_t n_x = x_numbers(l->shape), n_y = y_numbers(l->shape), out = l->shape->out;
    const T *dy = (const T *)l->dy;
    const float one = 1.0f, zero = 0.0f;
    bool is_bf16 = sizeof(T) == 2;
    struct piece p = {};

    cuda_layer_gradient(k, l->dy, l->y, l->db, l->M * n_y / out, out, l->act, l->add_dw, is_bf16);
    while (piece_next(k, &p, l, CONV_DW, is_bf16))
        piece_dw<T>(k, &p, l->dw, dy + p.at * n_y, (const T *)cuda_widen(k, &l->from, l->x, p.at, p.rows, n_x, is_bf16),
                    l->add_dw || p.at > 0);
    p = (struct piece){};
    while (l->dx != NULL && piece_next(k, &p, l, CONV_DX, is_bf16))
        piece_done(k, &p, CONV_DX,
                   cudnnConvolutionBackwardData(cuda->convs->dnn, &one, p.entry->w, l->w, p.entry->y, dy + p.at * n_y,
                                                p.entry->conv, p.entry->dx, cuda->workspace, CUDA_WORKSPACE_BYTES,
                                                &zero, p.entry->x, (T *)l->dx + p.at * n_x),
                   "conv_backward of the input");
}

CUDA_ACT_OP(conv_forward, kern_conv_layer)
CUDA_ACT_OP(conv_backward, kern_conv_layer)
