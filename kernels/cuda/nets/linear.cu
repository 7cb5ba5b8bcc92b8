/* linear.cu - linear layers. Small ones in bf16 have products of our own, which do all of it (products.h). Else the
 * products are cuBLASLt's (matmul.h) and the bias goes with them; the activation is a kernel of its own (cuBLASLt's own
 * relu makes 0 of a NaN in bf16), and so are the gradient before it and the column sums of db, over dy. Invariant: db
 * is added up in a fixed order: each block a stripe of rows, then the stripes one after another. */
#include "kernels/cuda/nets/linear.h"
#include "kernels/cuda/nets/matmul.h"
#include "kernels/cuda/nets/products.h"
#include "kernels/cuda/nets/widen.h"
#include "kernels/cuda/number.h"

#define BLOCK 256
#define STRIPES 256 /* of rows, at most: columns of "backward" in the layer table of bench/notes/cuda.md */

/* ---- forward ---- */

template <typename T, int V> static __global__ void act_k(T *y, size_t n, enum kern_act act)
{
    size_t i = ((size_t)blockIdx.x * BLOCK + threadIdx.x) * V;
    float x[V];

    if (i >= n)
        return;
    num_load<V>(x, y + i);
#pragma unroll
    for (int j = 0; j < V; j++)
        x[j] = act == KERN_ACT_TANH ? tanhf(x[j]) : x[j] < 0.0f ? 0.0f : x[j]; /* NaN stays NaN */
    num_store<V>(y + i, x);
}

template <typename T> static void act_in_place(struct kern *k, T *y, size_t n, enum kern_act act)
{
    cudaStream_t stream = cuda_of(k)->stream;

    if (act == KERN_ACT_NONE)
        return;
    if (n % 8 == 0 && ((uintptr_t)y & 15) == 0)
        act_k<T, 8><<<cuda_ceil_div(n, 8 * BLOCK), BLOCK, 0, stream>>>(y, n, act);
    else
        act_k<T, 1><<<cuda_ceil_div(n, BLOCK), BLOCK, 0, stream>>>(y, n, act);
    cuda_launched(k, "activation");
}

template <typename T> static void linear_forward(struct kern *k, const struct kern_linear *l)
{
    struct cuda_matmul p = {};
    const bool is_bf16 = sizeof(T) == 2;
    const size_t most = cuda_wide_rows(k, &l->from, l->K, is_bf16);
    const bool small = is_bf16 && products_fit(l);

    if (l->M == 0 || most == 0)
        return;
    p.b = l->w, p.bias = l->b;
    p.n = l->N, p.k = l->K;
    p.b_t = true;
    p.in_bf16 = p.out_bf16 = is_bf16;
    p.beta = l->add_y ? 1.0f : 0.0f;
    for (size_t at = 0; at < l->M; at += p.m) {
        p.m = l->M - at < most ? l->M - at : most;
        p.a = cuda_widen(k, &l->from, l->x, at, p.m, l->K, is_bf16);
        p.c = (T *)l->y + at * l->N;
        if (small)
            products_forward(k, l, p.a, at, p.m);
        else
            cuda_matmul_run(k, &p);
    }
    if (!small)
        act_in_place<T>(k, (T *)l->y, l->M * l->N, l->act);
}

void cuda_layer_act(struct kern *k, void *y, size_t n, enum kern_act act, bool is_bf16)
{
    if (is_bf16)
        act_in_place<bf16>(k, (bf16 *)y, n, act);
    else
        act_in_place<float>(k, (float *)y, n, act);
}

/* ---- backward ---- */

/* dy *= act'(y) and, where partials is not NULL, the column sums of each stripe of rows into partials (gridDim.y, N).
 * A thread has V columns; blockDim.y rows go side by side. */
template <typename T, int V>
static __global__ void act_gradient_k(T *dy /* (M, N) */, const T *y /* (M, N) */, float *partials, size_t M, size_t N,
                                      size_t stripe, enum kern_act act)
{
    __shared__ float sums[BLOCK * V];
    size_t col = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * V, from = blockIdx.y * stripe;
    size_t end = from + stripe < M ? from + stripe : M;
    float sum[V] = {0};

    for (size_t row = from + threadIdx.y; row < end && col < N; row += blockDim.y) {
        float d[V], out[V];
        num_load<V>(d, dy + row * N + col);
        if (act != KERN_ACT_NONE) {
            num_load<V>(out, y + row * N + col);
#pragma unroll
            for (int j = 0; j < V; j++)
                d[j] = act == KERN_ACT_TANH ? d[j] * (1.0f - out[j] * out[j]) : out[j] > 0.0f ? d[j] : 0.0f;
            num_store<V>(dy + row * N + col, d);
        }
#pragma unroll
        for (int j = 0; j < V; j++)
            sum[j] += d[j];
    }
    if (partials == NULL)
        return;
#pragma unroll
    for (int j = 0; j < V; j++)
        sums[(threadIdx.y * blockDim.x + threadIdx.x) * V + j] = sum[j];
    __syncthreads();
    if (threadIdx.y > 0 || col >= N)
        return;
    for (unsigned i = 1; i < blockDim.y; i++)
#pragma unroll
        for (int j = 0; j < V; j++)
            sum[j] += sums[(i * blockDim.x + threadIdx.x) * V + j];
#pragma unroll
    for (int j = 0; j < V; j++)
        partials[blockIdx.y * N + col + j] = sum[j];
}

/* db = the rows of partials added in order; or is added to. */
static __global__ void add_stripes_k(float *db, const float *partials, unsigned n_stripes, size_t N, bool add)
{
    size_t col = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum;

    if (col >= N)
        return;
    sum = add ? db[col] : 0.0f;
    for (unsigned i = 0; i < n_stripes; i++)
        sum += partials[i * N + col];
    db[col] = sum;
}

template <typename T, int V>
static void act_gradient(struct kern *k, T *dy, const T *y, float *db, size_t M, size_t N, enum kern_act act,
                         bool add_dw)
{
    struct cuda *cuda = cuda_of(k);
    float *partials = (float *)cuda->workspace;
    unsigned x = 1, n_stripes;
    size_t stripe;

    while (x < 32 && x * V < N)
        x *= 2;
    stripe = cuda_ceil_div(M, STRIPES);
    stripe = stripe > BLOCK / x * 4 ? stripe : BLOCK / x * 4;
    while (cuda_ceil_div(M, stripe) * N * sizeof *partials > CUDA_WORKSPACE_BYTES)
        stripe *= 2;
    n_stripes = cuda_ceil_div(M, stripe);
    act_gradient_k<T, V><<<dim3(cuda_ceil_div(N, x * V), n_stripes), dim3(x, BLOCK / x), 0, cuda->stream>>>(
        dy, y, db == NULL ? NULL : partials, M, N, stripe, act);
    cuda_launched(k, "act_gradient");
    if (db == NULL)
        return;
    add_stripes_k<<<cuda_ceil_div(N, 64), 64, 0, cuda->stream>>>(db, partials, n_stripes, N, add_dw);
    cuda_launched(k, "add_stripes");
}

template <typename T>
static void layer_gradient(struct kern *k, T *dy, const T *y, float *db, size_t M, size_t N, enum kern_act act,
                           bool add_dw)
{
    bool wide = N % 8 == 0 && (((uintptr_t)dy | (act == KERN_ACT_NONE ? 0 : (uintptr_t)y)) & 15) == 0;

    if (act == KERN_ACT_NONE && db == NULL)
        return;
    if (wide)
        act_gradient<T, 8>(k, dy, y, db, M, N, act, add_dw);
    else
        act_gradient<T, 1>(k, dy, y, db, M, N, act, add_dw);
}

void cuda_layer_gradient(struct kern *k, void *dy, const void *y, float *db, size_t M, size_t N, enum kern_act act,
                         bool add, bool is_bf16)
{
    if (is_bf16)
        layer_gradient<bf16>(k, (bf16 *)dy, (const bf16 *)y, db, M, N, act, add);
    else
        layer_gradient<float>(k, (float *)dy, (const float *)y, db, M, N, act, add);
}

template <typename T> static void linear_backward(struct kern *k, const struct kern_linear *l)
{
    struct cuda_matmul to_dw = {}, to_dx = {};
    const bool is_bf16 = sizeof(T) == 2;
    const size_t most = cuda_wide_rows(k, &l->from, l->K, is_bf16);
    const bool small = is_bf16 && products_fit(l);

    if (l->M == 0 || most == 0)
        return;
    if (!small)
        layer_gradient<T>(k, (T *)l->dy, (const T *)l->y, l->db, l->M, l->N, l->act, l->add_dw);
    to_dw.c = l->dw;
    to_dw.m = l->N, to_dw.n = l->K;
    to_dw.a_t = true;
    to_dx.c = l->dx, to_dx.a = l->dy, to_dx.b = l->w;
    to_dx.m = l->M, to_dx.n = l->K, to_dx.k = l->N;
    to_dw.in_bf16 = to_dx.in_bf16 = to_dx.out_bf16 = is_bf16;
    to_dw.beta = l->add_dw ? 1.0f : 0.0f;
    to_dx.beta = l->add_dx ? 1.0f : 0.0f;
    for (size_t at = 0; at < l->M; at += to_dw.k) { /* one product, unless x has to be widened */
        to_dw.k = l->M - at < most ? l->M - at : most;
        to_dw.a = (const T *)l->dy + at * l->N;
        to_dw.b = cuda_widen(k, &l->from, l->x, at, to_dw.k, l->K, is_bf16);
        if (small)
            products_weight_gradient(k, l, to_dw.b, at, to_dw.k, to_dw.beta != 0.0f);
        else
            cuda_matmul_run(k, &to_dw);
        to_dw.beta = 1.0f;
    }
    if (l->dx != NULL && small)
        products_input_gradient(k, l);
    else if (l->dx != NULL)
        cuda_matmul_run(k, &to_dx);
}

CUDA_ACT_OP(linear_forward, kern_linear)
CUDA_ACT_OP(linear_backward, kern_linear)
