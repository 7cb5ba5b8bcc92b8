/* widen.cu - rows of bytes, or rows with other numbers between them, as a product wants its input. Bound by memory;
 * rows that lie close together are read 8 bytes at a time. */
#include "kernels/cuda/nets/widen.h"

#include "kernels/cuda/number.h"

#define BLOCK 256
#define WIDE 8 /* bytes of a thread where rows lie close together */

static __device__ __forceinline__ float source_number(uint8_t x, float scale)
{
    return (float)x * scale;
}
static __device__ __forceinline__ float source_number(float x, float)
{
    return x;
}
static __device__ __forceinline__ float source_number(bf16 x, float)
{
    return __bfloat162float(x);
}

template <typename In, typename T>
static __global__ void widen_k(T *to /* (rows, n) */, const In *x, size_t rows, size_t n, size_t row, float scale)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;

    if (i >= rows * n)
        return;
    size_t r = i / n;
    num_set(&to[i], source_number(x[r * row + (i - r * n)], scale));
}

template <typename T> static __global__ void widen_close_k(T *to, const uint8_t *x, size_t n, float scale)
{
    size_t i = ((size_t)blockIdx.x * BLOCK + threadIdx.x) * WIDE;

    if (i >= n)
        return;
    uint2 bytes = *(const uint2 *)(x + i);
    float y[WIDE];
#pragma unroll
    for (int j = 0; j < WIDE; j++)
        y[j] = source_number((uint8_t)((j < 4 ? bytes.x : bytes.y) >> j % 4 * 8), scale);
    num_store<WIDE>(to + i, y);
}

size_t cuda_wide_rows(struct kern *k, const struct kern_source *source, size_t n, bool is_bf16)
{
    size_t rows = CUDA_WIDE_BYTES / (n * (is_bf16 ? sizeof(bf16) : sizeof(float)));

    if (source->row == 0)
        return SIZE_MAX;
    if (rows == 0)
        cuda_fail(k, "widening observations", "one has more numbers than the buffer holds; lower env.frame_stack");
    return rows;
}

template <typename T>
static void widen(struct kern *k, const struct kern_source *s, const void *x, size_t at, size_t rows, size_t n)
{
    unsigned grid = cuda_ceil_div(rows * n, BLOCK);
    const size_t first = at * s->row + s->first;
    const uint8_t *bytes = (const uint8_t *)x + first;
    cudaStream_t stream = cuda_of(k)->stream;
    T *to = (T *)s->wide;

    if (s->bytes && s->row == n && rows * n % WIDE == 0 && (uintptr_t)bytes % WIDE == 0)
        widen_close_k<T><<<cuda_ceil_div(rows * n, BLOCK * WIDE), BLOCK, 0, stream>>>(to, bytes, rows * n, s->scale);
    else if (s->bytes)
        widen_k<uint8_t, T><<<grid, BLOCK, 0, stream>>>(to, bytes, rows, n, s->row, s->scale);
    else
        widen_k<T, T><<<grid, BLOCK, 0, stream>>>(to, (const T *)x + first, rows, n, s->row, 1.0f);
    cuda_launched(k, "widening observations");
}

const void *cuda_widen(struct kern *k, const struct kern_source *source, const void *x, size_t at, size_t rows,
                       size_t n, bool is_bf16)
{
    if (source->row == 0)
        return (const char *)x + at * n * (is_bf16 ? sizeof(bf16) : sizeof(float));
    if (rows > 0 && n > 0 && is_bf16)
        widen<bf16>(k, source, x, at, rows, n);
    else if (rows > 0 && n > 0)
        widen<float>(k, source, x, at, rows, n);
    return source->wide;
}
