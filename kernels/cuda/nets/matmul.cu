/* matmul.cu - matrix products through cuBLASLt, whose heuristic is asked once for each shape, and what it chose is kept
 * on disk by card, driver and library (kernels/plan_file.h): the first question of a process costs 70 ms.
 * Invariants: (1) a product seen before costs no search: its descriptors and algorithm are kept by value, the oldest
 * entry gives way when all are taken; (2) only schemes with a fixed order of sums are allowed, so that the same shape
 * gives the same bytes; (3) what cuBLASLt does not take (bf16 rows of odd length) goes to a plain kernel. cuBLASLt is
 * column-major: c^T = op(b)^T op(a)^T, so a and b change places and nothing is transposed. */
#include "kernels/cuda/nets/matmul.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/blas_lt.h"
#include "kernels/cuda/number.h"

extern "C" {
#include "kernels/plan_file.h"
}

#define MATMULS_MAX 128
#define TILE 32 /* of the plain kernel: TILE x TILE numbers of c for TILE x 8 threads */
#define TILE_Y 8

struct matmul_key {
    size_t m, n, k;
    uint32_t align; /* smallest alignment of any pointer, 1-256 bytes */
    uint8_t a_t, b_t, bias, in_bf16, out_bf16, adds, pad[2];
    uint32_t batch;
    uint64_t stride; /* from one product of a batch to the next, which the layouts have */
};

/* What cuBLASLt chose; on disk as it is here. */
struct matmul_plan {
    uint64_t found; /* 0: it has nothing for this product */
    uint64_t workspace;
    cublasLtMatmulAlgo_t algo;
};

struct matmul_entry {
    struct matmul_key key;
    struct matmul_plan plan;
    bool from_disk; /* not tried by this process */
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t a, b, c;
};

struct cuda_matmuls {
    struct plan_file *plans; /* NULL: nothing was chosen yet, or there is no place for it */
    bool asked; /* for that place */
    size_t n, next;
    struct matmul_entry entries[MATMULS_MAX];
};

struct cuda_matmuls *cuda_matmuls_create(void)
{
    return (struct cuda_matmuls *)mem_alloc(sizeof(struct cuda_matmuls));
}

void cuda_matmuls_destroy(struct cuda_matmuls *m)
{
    if (m == NULL)
        return;
    if (m->plans != NULL)
        plan_file_save(m->plans);
    plan_file_close(m->plans);
    mem_free(m);
}

/* ---- the plain kernel ---- */

template <typename In, typename Out>
static __global__ void plain_matmul_k(Out *c /* (m, n) */, const In *a, const In *b, const Out *bias, const Out *old,
                                      int m, int n, int k, int a_row, int a_col, int b_row, int b_col, float alpha,
                                      float beta)
{
    __shared__ float as[TILE][TILE + 1], bs[TILE][TILE + 1];
    int row0 = (int)blockIdx.x * TILE, col0 = (int)blockIdx.y * TILE, x = (int)threadIdx.x, y0 = (int)threadIdx.y;
    float sum[TILE / TILE_Y] = {0};

    for (int k0 = 0; k0 < k; k0 += TILE) {
        for (int y = y0; y < TILE; y += TILE_Y) {
            as[y][x] =
                row0 + y < m && k0 + x < k ? num_f32(a[(size_t)(row0 + y) * a_row + (size_t)(k0 + x) * a_col]) : 0.0f;
            bs[y][x] =
                k0 + y < k && col0 + x < n ? num_f32(b[(size_t)(k0 + y) * b_row + (size_t)(col0 + x) * b_col]) : 0.0f;
        }
        __syncthreads();
#pragma unroll 8
        for (int kk = 0; kk < TILE; kk++)
#pragma unroll
            for (int i = 0; i < TILE / TILE_Y; i++)
                sum[i] += as[y0 + i * TILE_Y][kk] * bs[kk][x];
        __syncthreads();
    }
    for (int i = 0; i < TILE / TILE_Y; i++) {
        int row = row0 + y0 + i * TILE_Y, col = col0 + x;
        if (row >= m || col >= n)
            continue;
        Out *to = &c[(size_t)row * n + col];
        float v = alpha * sum[i] + (bias != NULL ? num_f32(bias[col]) : 0.0f);
        if (beta != 0.0f)
            v += beta * num_f32(old[(size_t)row * n + col]);
        num_set(to, v);
    }
}

template <typename In, typename Out> static void plain_matmul(struct kern *k, const struct cuda_matmul *p)
{
    dim3 grid(cuda_ceil_div(p->m, TILE), cuda_ceil_div(p->n, TILE)); /* y holds 65535: m may be all tokens */
    int a_row = p->a_t ? 1 : (int)p->k, a_col = p->a_t ? (int)p->m : 1;
    int b_row = p->b_t ? 1 : (int)p->n, b_col = p->b_t ? (int)p->k : 1;

    for (size_t at = 0, i = 0; i == 0 || i < p->batch; i++, at += p->stride)
        plain_matmul_k<In, Out><<<grid, dim3(TILE, TILE_Y), 0, cuda_of(k)->stream>>>(
            (Out *)p->c + at, (const In *)p->a + at, (const In *)p->b + at, (const Out *)p->bias,
            (const Out *)(p->add != NULL ? p->add : p->c) + at, (int)p->m, (int)p->n, (int)p->k, a_row, a_col, b_row,
            b_col, p->alpha != 0.0f ? p->alpha : 1.0f, p->beta);
    cuda_launched(k, "plain_matmul");
}

/* ---- cuBLASLt ---- */

static void check(struct kern *k, cublasStatus_t code, const char *what)
{
    if (code != CUBLAS_STATUS_SUCCESS)
        cuda_fail(k, what, blas_lt.GetStatusString(code));
}

static uint32_t alignment(const void *p)
{
    uintptr_t at = (uintptr_t)p | 256;
    return (uint32_t)(at & (~at + 1));
}

static struct matmul_key matmul_key_of(const struct cuda_matmul *p)
{
    struct matmul_key key;
    uint32_t align = alignment(p->a) | alignment(p->b) | alignment(p->c);

    if (p->bias != NULL)
        align |= alignment(p->bias);
    if (p->add != NULL)
        align |= alignment(p->add);
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.m = p->m, key.n = p->n, key.k = p->k;
    key.align = align & (~align + 1);
    key.a_t = p->a_t, key.b_t = p->b_t, key.bias = p->bias != NULL;
    key.in_bf16 = p->in_bf16, key.out_bf16 = p->out_bf16, key.adds = p->beta != 0.0f;
    key.batch = (uint32_t)p->batch, key.stride = p->stride;
    return key;
}

static cublasStatus_t layout_set(cublasLtMatrixLayoutOpaque_t *layout, bool is_bf16, size_t rows, size_t cols,
                                 const struct cuda_matmul *p)
{
    cublasStatus_t code = blas_lt.MatrixLayoutInit_internal(layout, sizeof *layout, is_bf16 ? CUDA_R_16BF : CUDA_R_32F,
                                                            cols, rows, (int64_t)cols);
    int32_t n = (int32_t)p->batch;
    int64_t stride = (int64_t)p->stride;

    if (code == CUBLAS_STATUS_SUCCESS && n > 1)
        code = blas_lt.MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &n, sizeof n);
    if (code == CUBLAS_STATUS_SUCCESS && n > 1)
        code = blas_lt.MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                                sizeof stride);
    return code;
}

static cublasStatus_t desc_set(cublasLtMatmulDescOpaque_t *desc, const struct cuda_matmul *p)
{
    cublasOperation_t a_op = p->a_t ? CUBLAS_OP_T : CUBLAS_OP_N, b_op = p->b_t ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = p->bias != NULL ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    cublasComputeType_t compute = p->in_bf16 ? CUBLAS_COMPUTE_32F : CUBLAS_COMPUTE_32F_PEDANTIC;
    cublasStatus_t code = blas_lt.MatmulDescInit_internal(desc, sizeof *desc, compute, CUDA_R_32F);

    if (code == CUBLAS_STATUS_SUCCESS) /* the places of a and b are exchanged */
        code = blas_lt.MatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &b_op, sizeof b_op);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas_lt.MatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &a_op, sizeof a_op);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas_lt.MatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas_lt.MatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias);
    return code;
}

static cublasStatus_t preference_set(cublasLtMatmulPreference_t preference, uint32_t align)
{
    static const cublasLtMatmulPreferenceAttributes_t which[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    size_t workspace = CUDA_WORKSPACE_BYTES;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasStatus_t code = blas_lt.MatmulPreferenceInit_internal(preference, sizeof *preference);

    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas_lt.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                    sizeof workspace);

    if (code == CUBLAS_STATUS_SUCCESS)
        code = blas_lt.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                                    sizeof schemes);
    for (size_t i = 0; i < sizeof which / sizeof which[0] && code == CUBLAS_STATUS_SUCCESS; i++)
        code = blas_lt.MatmulPreferenceSetAttribute(preference, which[i], &align, sizeof align);
    return code;
}

/* Asks cuBLASLt; found stays 0 when it has no algorithm. */
static void matmul_search(struct kern *k, struct matmul_entry *e)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t result;
    int n_results = 0;
    cublasStatus_t code = preference_set(&preference, e->key.align);

    check(k, code, "describing a matrix product");
    memset(&e->plan, 0, sizeof e->plan); /* compared and kept as bytes */
    e->from_disk = false;
    if (code != CUBLAS_STATUS_SUCCESS)
        return;
    code = blas_lt.MatmulAlgoGetHeuristic(blas_lt_of(k), &e->desc, &e->a, &e->b, &e->c, &e->c, &preference, 1, &result,
                                          &n_results);
    if (code == CUBLAS_STATUS_SUCCESS && n_results > 0 && result.state == CUBLAS_STATUS_SUCCESS) {
        e->plan.algo = result.algo;
        e->plan.workspace = result.workspaceSize;
        e->plan.found = 1;
    }
    if (cuda_of(k)->matmuls->plans != NULL)
        plan_file_add(cuda_of(k)->matmuls->plans, &e->key, &e->plan);
}

/* What earlier processes chose. A choice depends on nothing that is not named here or in a key. */
static struct plan_file *plans_of(struct kern *k)
{
    struct cuda *cuda = cuda_of(k);
    char about[PLAN_ABOUT_MAX], path[PATH_MAX];
    int driver = 0;

    if (cuda->matmuls->asked)
        return cuda->matmuls->plans;
    cuda->matmuls->asked = true;
    if (cudaDriverGetVersion(&driver) != cudaSuccess)
        return NULL;
    snprintf(about, sizeof about, "products 2; %.120s, %d SMs; driver %d; cublasLt %zu; workspace %zu", cuda->card,
             cuda->n_sm, driver, blas_lt.GetVersion(), CUDA_WORKSPACE_BYTES);
    if (plan_file_path("products", about, path, sizeof path))
        cuda->matmuls->plans = plan_file_open(path, about, sizeof(struct matmul_key), sizeof(struct matmul_plan));
    return cuda->matmuls->plans;
}

/* Fills the entry for a shape not seen before. */
static void matmul_choose(struct kern *k, struct matmul_entry *e, const struct cuda_matmul *p)
{
    struct plan_file *plans = plans_of(k);
    const void *known = plans != NULL ? plan_file_find(plans, &e->key) : NULL;
    cublasStatus_t code = desc_set(&e->desc, p);

    e->plan.found = 0;
    if (code == CUBLAS_STATUS_SUCCESS)
        code = layout_set(&e->a, p->in_bf16, p->b_t ? p->n : p->k, p->b_t ? p->k : p->n, p);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = layout_set(&e->b, p->in_bf16, p->a_t ? p->k : p->m, p->a_t ? p->m : p->k, p);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = layout_set(&e->c, p->out_bf16, p->m, p->n, p);
    check(k, code, "describing a matrix product");
    e->from_disk = known != NULL;
    if (known != NULL)
        memcpy(&e->plan, known, sizeof e->plan);
    else if (code == CUBLAS_STATUS_SUCCESS)
        matmul_search(k, e);
}

static struct matmul_entry *matmul_find(struct kern *k, const struct cuda_matmul *p)
{
    struct cuda_matmuls *all = cuda_of(k)->matmuls;
    struct matmul_key key = matmul_key_of(p);
    struct matmul_entry *e;

    for (size_t i = 0; i < all->n; i++)
        if (memcmp(&all->entries[i].key, &key, sizeof key) == 0)
            return &all->entries[i];
    e = &all->entries[all->next];
    all->next = (all->next + 1) % MATMULS_MAX;
    all->n += all->n < MATMULS_MAX;
    e->key = key;
    matmul_choose(k, e, p);
    return e;
}

static cublasStatus_t matmul_launch(struct cuda *cuda, cublasLtHandle_t handle, struct matmul_entry *e,
                                    const struct cuda_matmul *p)
{
    float alpha = p->alpha != 0.0f ? p->alpha : 1.0f;
    cublasStatus_t code = CUBLAS_STATUS_SUCCESS;

    if (p->bias != NULL)
        code = blas_lt.MatmulDescSetAttribute(&e->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias, sizeof p->bias);
    if (code == CUBLAS_STATUS_SUCCESS)
        code =
            blas_lt.Matmul(handle, &e->desc, &alpha, p->b, &e->a, p->a, &e->b, &p->beta, p->add != NULL ? p->add : p->c,
                           &e->c, p->c, &e->c, &e->plan.algo, cuda->workspace, e->plan.workspace, cuda->stream);
    return code;
}

void cuda_matmul_run(struct kern *k, const struct cuda_matmul *p)
{
    const cublasLtHandle_t handle = blas_lt_of(k);
    struct matmul_entry *e;
    cublasStatus_t code;

    if (handle == NULL)
        return;
    e = matmul_find(k, p);
    if (!e->plan.found) {
        if (p->in_bf16 && p->out_bf16)
            plain_matmul<bf16, bf16>(k, p);
        else if (p->in_bf16)
            plain_matmul<bf16, float>(k, p);
        else
            plain_matmul<float, float>(k, p);
        return;
    }
    code = matmul_launch(cuda_of(k), handle, e, p);
    if (code != CUBLAS_STATUS_SUCCESS && e->from_disk) { /* refused, and nothing was launched: it is chosen again */
        matmul_search(k, e);
        cuda_matmul_run(k, p);
        return;
    }
    e->from_disk = false;
    check(k, code, "a matrix product");
}
