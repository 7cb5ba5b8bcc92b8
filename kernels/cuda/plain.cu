/* plain.cu - moving numbers: cast, zero, copy, sums of rows, gather of minibatch rows, packing and unpacking of
 * flagged rows, stacking of frames. Everything is bound by memory: each kernel moves the widest words that pointers and
 * row lengths allow. */
#include "kernels/cuda/number.h"

#define BLOCK 256
#define MOVE_WORDS 8 /* words that a thread has in flight */
#define MOVE_CHUNK (BLOCK * MOVE_WORDS)
#define PACK_ROWS 256 /* rows of one block, one for each thread when flags are counted */

/* Widest word, 1-16 bytes, that divides all of these. */
static unsigned word_bytes(const void *a, const void *b, size_t row_bytes)
{
    uintptr_t all = (uintptr_t)a | (uintptr_t)b | row_bytes | 16;
    return (unsigned)(all & (~all + 1));
}

/* ---- cast, zero, copy, sums ---- */

static __global__ void cast_k(bf16 *w, const float *params, size_t n, bool wide)
{
    ptx_chained();
    size_t i = ((size_t)blockIdx.x * BLOCK + threadIdx.x) * 8;
    float x[8];

    if (wide && i + 8 <= n) {
        num_load<8>(x, params + i);
        num_store<8>(w + i, x);
    } else {
        for (size_t end = i + 8 < n ? i + 8 : n; i < end; i++)
            w[i] = __float2bfloat16(params[i]);
    }
}

void cuda_weights_cast_bf16(struct kern *k, void *w, const float *params, size_t n)
{
    bool wide = word_bytes(w, params, 16) == 16;

    if (n == 0)
        return;
    cuda_chain(k, "cast", cast_k, cuda_ceil_div(n, BLOCK * 8), BLOCK, 0, (bf16 *)w, params, n, wide);
}

void cuda_weights_cast_f32(struct kern *k, void *w, const float *params, size_t n)
{
    cuda_copy(k, w, params, n * sizeof *params);
}

/* dst = src, or 0 where src is NULL; n words and, at the end, `rest` bytes. */
template <typename W> static __global__ void move_k(W *dst, const W *src, size_t n, unsigned rest)
{
    ptx_chained();
    size_t from = (size_t)blockIdx.x * MOVE_CHUNK + threadIdx.x;
    W w[MOVE_WORDS];

#pragma unroll
    for (int i = 0; i < MOVE_WORDS; i++)
        w[i] = src != NULL && from + (size_t)i * BLOCK < n ? src[from + (size_t)i * BLOCK] : W();
#pragma unroll
    for (int i = 0; i < MOVE_WORDS; i++)
        if (from + (size_t)i * BLOCK < n)
            dst[from + (size_t)i * BLOCK] = w[i];
    if (blockIdx.x == 0 && threadIdx.x < rest)
        ((char *)(dst + n))[threadIdx.x] = src == NULL ? 0 : ((const char *)(src + n))[threadIdx.x];
}

template <typename W> static void move(struct kern *k, void *dst, const void *src, size_t bytes, const char *what)
{
    size_t n = bytes / sizeof(W);
    unsigned grid = n > 0 ? cuda_ceil_div(n, MOVE_CHUNK) : 1;

    cuda_chain(k, what, move_k<W>, grid, BLOCK, 0, (W *)dst, (const W *)src, n, (unsigned)(bytes % sizeof(W)));
}

static void move_bytes(struct kern *k, void *dst, const void *src, size_t bytes, const char *what)
{
    unsigned word = word_bytes(dst, src, 16);

    if (bytes == 0)
        return;
    if (word == 16)
        move<uint4>(k, dst, src, bytes, what);
    else if (word >= 4)
        move<uint32_t>(k, dst, src, bytes, what);
    else
        move<uint8_t>(k, dst, src, bytes, what);
}

void cuda_zero(struct kern *k, void *p, size_t bytes)
{
    move_bytes(k, p, NULL, bytes, "zero");
}

/* Of n words in all, `row` to a row. */
static __global__ void zero_rows_k(uint32_t *p, size_t row, size_t stride, size_t n)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;

    if (i < n)
        p[i / row * stride + i % row] = 0;
}

void cuda_zero_rows(struct kern *k, void *p, size_t bytes, size_t stride, size_t n)
{
    size_t words = bytes / sizeof(uint32_t) * n;

    if (words == 0)
        return;
    zero_rows_k<<<cuda_ceil_div(words, BLOCK), BLOCK, 0, cuda_of(k)->stream>>>((uint32_t *)p, bytes / sizeof(uint32_t),
                                                                               stride / sizeof(uint32_t), words);
    cuda_launched(k, "zero_rows");
}

void cuda_copy(struct kern *k, void *dst, const void *src, size_t bytes)
{
    move_bytes(k, dst, src, bytes, "copy");
}

static __global__ void sum_rows_k(float *x /* (rows, n) */, size_t rows, size_t n)
{
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;

    if (i >= n)
        return;
    float sum = x[i];
    for (size_t r = 1; r < rows; r++)
        sum += x[r * n + i];
    x[i] = sum;
}

void cuda_sum_rows(struct kern *k, float *x, size_t rows, size_t n)
{
    if (rows < 2 || n == 0)
        return;
    sum_rows_k<<<cuda_ceil_div(n, BLOCK), BLOCK, 0, cuda_of(k)->stream>>>(x, rows, n);
    cuda_launched(k, "sum_rows");
}

/* ---- gather ---- */

/* An item as a line of words: (T, B, row_words) of `word` bytes; its blocks are [first_block, next item's). */
struct gather_item {
    void *dst;
    const void *src;
    uint32_t row_words, word, first_block;
    uint64_t n_words;
};
struct gather_items {
    uint32_t n;
    struct gather_item item[KERN_MAX_GATHER];
};

template <typename W>
static __device__ void gather_words(const struct gather_item *g, uint32_t block, const int32_t *idx, uint32_t N,
                                    uint32_t B)
{
    uint64_t first = (uint64_t)block * MOVE_CHUNK;
    uint32_t rw = g->row_words, row0 = (uint32_t)(first / rw), word0 = (uint32_t)(first - (uint64_t)row0 * rw);
    uint32_t t0 = row0 / B, b0 = row0 - t0 * B;
    const W *src = (const W *)g->src;
    W *dst = (W *)g->dst;
    W w[MOVE_WORDS];

#pragma unroll
    for (int i = 0; i < MOVE_WORDS; i++) {
        uint32_t at = threadIdx.x + (uint32_t)i * BLOCK;
        if (first + at >= g->n_words)
            continue;
        uint32_t u = word0 + at, row = rw == 1 ? u : u / rw, c = u - row * rw, b = b0 + row, t = t0;
        if (b >= B) {
            uint32_t over = b / B;
            t += over;
            b -= over * B;
        }
        w[i] = src[((uint64_t)t * N + (uint32_t)idx[b]) * rw + c];
    }
#pragma unroll
    for (int i = 0; i < MOVE_WORDS; i++) {
        uint32_t at = threadIdx.x + (uint32_t)i * BLOCK;
        if (first + at < g->n_words)
            dst[first + at] = w[i];
    }
}

static __global__ void __launch_bounds__(BLOCK)
    gather_k(const __grid_constant__ struct gather_items items, const int32_t *idx /* (B) */, uint32_t N, uint32_t B)
{
    ptx_chained();
    uint32_t i = 0;

    while (i + 1 < items.n && blockIdx.x >= items.item[i + 1].first_block)
        i++;
    const struct gather_item *g = &items.item[i];
    uint32_t block = blockIdx.x - g->first_block;
    if (g->word == 16)
        gather_words<uint4>(g, block, idx, N, B);
    else if (g->word == 8)
        gather_words<uint2>(g, block, idx, N, B);
    else if (g->word == 4)
        gather_words<uint32_t>(g, block, idx, N, B);
    else if (g->word == 2)
        gather_words<uint16_t>(g, block, idx, N, B);
    else
        gather_words<uint8_t>(g, block, idx, N, B);
}

void cuda_gather(struct kern *k, const struct kern_gather *g)
{
    struct gather_items all = {};
    uint32_t n_blocks = 0;

    for (size_t i = 0; i < g->n_items; i++) {
        const struct kern_gather_item *from = &g->items[i];
        unsigned word = word_bytes(from->dst, from->src, from->row_bytes);
        uint64_t n_words = (uint64_t)from->T * g->B * (from->row_bytes / word);
        if (n_words == 0)
            continue;
        all.item[all.n++] =
            (struct gather_item){from->dst, from->src, (uint32_t)(from->row_bytes / word), word, n_blocks, n_words};
        n_blocks += cuda_ceil_div(n_words, MOVE_CHUNK);
    }
    if (n_blocks == 0)
        return;
    cuda_chain(k, "gather", gather_k, n_blocks, BLOCK, 0, all, g->idx, (uint32_t)g->N, (uint32_t)g->B);
}

/* ---- rows packed and unpacked ---- */

/* Flags set among flag[0 .. n), by the whole block. */
static __device__ uint32_t count_flags(const uint8_t *flag, size_t n)
{
    __shared__ uint32_t sums[BLOCK / CUDA_WARP];
    size_t n_wide = ((uintptr_t)flag & 15) == 0 ? n / 16 : 0;
    uint32_t count = 0;

    for (size_t i = threadIdx.x; i < n_wide; i += BLOCK) {
        uint4 f = ((const uint4 *)flag)[i];
        count += (uint32_t)(__popc(__vcmpne4(f.x, 0)) + __popc(__vcmpne4(f.y, 0)) + __popc(__vcmpne4(f.z, 0)) +
                            __popc(__vcmpne4(f.w, 0))) /
                 8;
    }
    for (size_t i = n_wide * 16 + threadIdx.x; i < n; i += BLOCK)
        count += flag[i] != 0;
    return num_block_sum(count, sums);
}

/* Each block counts the flags before its own rows, so that blocks need not wait for each other. */
template <typename W, bool UNPACK>
static __global__ void pack_rows_k(W *dst, int64_t *n_packed, const W *src, const uint8_t *flag, size_t row_words,
                                   size_t N)
{
    __shared__ uint16_t rows[PACK_ROWS];
    __shared__ uint32_t warp_count[PACK_ROWS / CUDA_WARP];
    size_t row0 = (size_t)blockIdx.x * PACK_ROWS, row = row0 + threadIdx.x;
    uint32_t lane = threadIdx.x % CUDA_WARP, warp = threadIdx.x / CUDA_WARP, at = 0, n = 0;
    bool set = row < N && flag[row] != 0;
    uint32_t votes = __ballot_sync(0xffffffffu, set);
    bool last = blockIdx.x == gridDim.x - 1;

    if (lane == 0)
        warp_count[warp] = (uint32_t)__popc(votes);
    __syncthreads();
    for (uint32_t i = 0; i < PACK_ROWS / CUDA_WARP; i++) {
        at += i < warp ? warp_count[i] : 0;
        n += warp_count[i];
    }
    if (set)
        rows[at + (uint32_t)__popc(votes & ((1u << lane) - 1))] = (uint16_t)threadIdx.x;
    if (n == 0 && !last) /* the same in all threads */
        return;
    size_t before = count_flags(flag, row0);
    if (!UNPACK && last && threadIdx.x == 0)
        *n_packed = (int64_t)(before + n);
    for (uint32_t i = threadIdx.x; i < n * row_words; i += PACK_ROWS) {
        size_t r = i / row_words, c = i - r * row_words;
        size_t whole = (row0 + rows[r]) * row_words + c, packed = (before + r) * row_words + c;
        if (UNPACK)
            dst[whole] = src[packed];
        else
            dst[packed] = src[whole];
    }
}

template <bool UNPACK> static void pack(struct kern *k, const struct kern_pack *p, const char *what)
{
    unsigned word = word_bytes(p->dst, p->src, p->row_bytes), grid = cuda_ceil_div(p->N > 0 ? p->N : 1, PACK_ROWS);
    cudaStream_t stream = cuda_of(k)->stream;

    if (word == 16)
        pack_rows_k<uint4, UNPACK><<<grid, PACK_ROWS, 0, stream>>>((uint4 *)p->dst, p->n_packed, (const uint4 *)p->src,
                                                                   p->flag, p->row_bytes / 16, p->N);
    else if (word >= 4)
        pack_rows_k<uint32_t, UNPACK><<<grid, PACK_ROWS, 0, stream>>>(
            (uint32_t *)p->dst, p->n_packed, (const uint32_t *)p->src, p->flag, p->row_bytes / 4, p->N);
    else
        pack_rows_k<uint8_t, UNPACK><<<grid, PACK_ROWS, 0, stream>>>(
            (uint8_t *)p->dst, p->n_packed, (const uint8_t *)p->src, p->flag, p->row_bytes, p->N);
    cuda_launched(k, what);
}

void cuda_pack_rows(struct kern *k, const struct kern_pack *p)
{
    pack<false>(k, p, "pack_rows");
}

void cuda_unpack_rows(struct kern *k, const struct kern_pack *p)
{
    pack<true>(k, p, "unpack_rows");
}

/* ---- frames ---- */

/* A thread moves one number's line of k in dst, `step` apart; dst may be old. */
template <typename W>
static __global__ void frames_k(W *dst /* (N, k * D) */, const W *old, const W *frame /* (N, D) */,
                                const uint8_t *reset, const uint8_t *only, size_t N, size_t D, size_t grid,
                                size_t channels, size_t list, size_t n_frames)
{
    size_t at = (size_t)blockIdx.x * BLOCK + threadIdx.x;

    if (at >= N * D)
        return;
    size_t row = at / D, j = at - row * D;
    if (only != NULL && only[row] == 0)
        return;
    size_t step = j < grid ? channels : list;
    size_t first = row * n_frames * D +
                   (j < grid ? j / channels * channels * n_frames + j % channels : grid * n_frames + (j - grid));
    bool begins = old == NULL || (reset != NULL && reset[row] != 0);
    W newest = frame[at];

    for (size_t t = 0; t + 1 < n_frames; t++)
        dst[first + t * step] = begins ? newest : old[first + (t + 1) * step];
    dst[first + (n_frames - 1) * step] = newest;
}

template <typename W> static void frames(struct kern *k, const struct kern_frames *f)
{
    size_t grid = f->pixels * f->channels, D = grid + f->list;

    frames_k<W><<<cuda_ceil_div(f->N * D, BLOCK), BLOCK, 0, cuda_of(k)->stream>>>(
        (W *)f->dst, (const W *)f->old, (const W *)f->frame, f->reset, f->only, f->N, D, grid,
        f->channels > 0 ? f->channels : 1, f->list, f->k);
}

void cuda_frames_stack(struct kern *k, const struct kern_frames *f)
{
    if (f->N == 0)
        return;
    if (f->number_bytes == 1)
        frames<uint8_t>(k, f);
    else if (f->number_bytes == 2)
        frames<uint16_t>(k, f);
    else
        frames<uint32_t>(k, f);
    cuda_launched(k, "frames_stack");
}
