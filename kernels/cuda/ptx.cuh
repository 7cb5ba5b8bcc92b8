/* ptx.cuh - the instructions that CUDA C++ has no words for, a function each; nothing else in kernels/cuda has inline
 * PTX.
 *
 * Products on tensor cores: sum (16 rows, 8 columns) += a (16 rows, K) b (K, 8 columns) by one warp. Each operand is
 * made of 8 x 8 blocks, of which lane 4 g + t has row g, columns 2t and 2t + 1 (in one register where they are bf16). A
 * block of b is held the other way round: g counts its columns, t its rows, which are k.
 *
 *     a block                              a (K = 16)                b                sum
 *       column 0   1   2   3   4   5   6   7           k 0-7   8-15                columns              columns
 *     row 0  | lane 0| lane 1| lane 2| lane 3|       +-------+-------+        k    +-------+          +-----------+
 *         1  | lane 4| lane 5| lane 6| lane 7|  0-7  |  a0   |  a2   |       0-7   |  b0   |     0-7  | s[0] s[1] |
 *         .  |   .   |   .   |   .   |   .   |       +-------+-------+             +-------+          +-----------+
 *         7  |lane 28|lane 29|lane 30|lane 31|  8-15 |  a1   |  a3   |       8-15  |  b1   |     8-15 | s[2] s[3] |
 *                                                    +-------+-------+             +-------+          +-----------+
 *
 * With TF32 K is 8, and a register is one number: a0 (g, t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4);
 * b0 (t, g), b1 (t + 4, g). A warpgroup (4 warps) takes 64 rows, 16 to each warp, and N / 8 blocks of columns: sum[n]
 * of a lane is as above, of block n; its operands lie in shared memory. */
#ifndef KERNELS_CUDA_PTX_CUH
#define KERNELS_CUDA_PTX_CUH

#include <stdint.h>

/* As instructions address shared memory. */
__device__ static inline uint32_t ptx_shared(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

/* The first thing in a kernel that cuda_chain launches, before any access to global memory: waits until the kernel
 * before has ended and what it wrote can be seen. No block may leave without it: the kernel after this one relies on
 * it for all that came before. */
__device__ static inline void ptx_chained(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- products of one warp ---- */

__device__ static inline void ptx_mma_bf16(float *sum, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                           uint32_t b1)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

__device__ static inline void ptx_mma_tf32(float *sum, const uint32_t *a, const uint32_t *b)
{
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* Four bf16 blocks from shared memory, whose rows of 16 bytes begin at the addresses of lanes 0-7, 8-15, 16-23,
 * 24-31. */
__device__ static inline void ptx_load_blocks(uint32_t *x, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
}

/* The transposes of four blocks. */
__device__ static inline void ptx_load_blocks_turned(uint32_t *x, uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at)
                 : "memory");
}

/* The transposes of two bf16 blocks, to rows that begin at the addresses of lanes 0-7, 8-15. */
__device__ static inline void ptx_store_transposed(uint32_t at, uint32_t y0, uint32_t y1)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(at), "r"(y0), "r"(y1)
                 : "memory");
}

/* ---- products of a warpgroup: fence, adds, commit, wait ---- */

__device__ static inline void ptx_wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/* sum += w (64 rows, 16 columns) x (8 N tokens, 16 columns)^T, both named by the descriptors of their blocks. */
__device__ static inline void ptx_wgmma_add(float (&s)[1][4], uint64_t w, uint64_t x)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3])
                 : "l"(w), "l"(x));
}

__device__ static inline void ptx_wgmma_add(float (&s)[2][4], uint64_t w, uint64_t x)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, 1, 1, 1, 0, 0;"
                 : "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3]), "+f"(s[1][0]), "+f"(s[1][1]),
                   "+f"(s[1][2]), "+f"(s[1][3])
                 : "l"(w), "l"(x));
}

__device__ static inline void ptx_wgmma_add(float (&s)[4][4], uint64_t w, uint64_t x)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, 0, 0;"
                 : "+f"(s[0][0]), "+f"(s[0][1]), "+f"(s[0][2]), "+f"(s[0][3]), "+f"(s[1][0]), "+f"(s[1][1]),
                   "+f"(s[1][2]), "+f"(s[1][3]), "+f"(s[2][0]), "+f"(s[2][1]), "+f"(s[2][2]), "+f"(s[2][3]),
                   "+f"(s[3][0]), "+f"(s[3][1]), "+f"(s[3][2]), "+f"(s[3][3])
                 : "l"(w), "l"(x));
}

__device__ static inline void ptx_wgmma_finish(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

/* An empty instruction that may change s, so that nothing is moved across it. */
__device__ static inline void ptx_hold(float (&s)[4])
{
    asm volatile("" : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])::"memory");
}

/* Makes this thread's writes to shared memory visible to warpgroup products and bulk copies; a barrier follows. */
__device__ static inline void ptx_publish_shared(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- copies that run while the thread works ---- */

__device__ static inline void ptx_copy16(void *shared, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(ptx_shared(shared)), "l"(from));
}

__device__ static inline void ptx_copy4(void *shared, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(ptx_shared(shared)), "l"(from));
}

/* Zeros in place of what is not there; `from` may then be anything. */
__device__ static inline void ptx_copy16_or_zero(void *shared, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(ptx_shared(shared)), "l"(from),
                 "r"(there ? 16 : 0));
}

__device__ static inline void ptx_copy4_or_zero(void *shared, const void *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(ptx_shared(shared)), "l"(from),
                 "r"(there ? 4 : 0));
}

__device__ static inline void ptx_copy_commit(void)
{
    asm volatile("cp.async.commit_group;");
}

/* All but the newest n of this thread's groups have arrived. */
template <int n> __device__ static inline void ptx_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(n));
}

/* By the copy engine, from shared to global memory; addresses and bytes are multiples of 16. */
__device__ static inline void ptx_bulk_store(void *to, const void *shared, uint32_t bytes)
{
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(ptx_shared(shared)),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/* This thread's bulk stores have read shared memory. */
__device__ static inline void ptx_bulk_wait_read(void)
{
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/* They have arrived. */
__device__ static inline void ptx_bulk_wait(void)
{
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

/* ---- barriers ---- */

/* Barrier `id` (1-15) of N threads of a block, whole warps. */
template <int N> __device__ static inline void ptx_barrier(int id)
{
    asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "n"(N) : "memory");
}

/* The same; is `mine` true in any of them? */
template <int N> __device__ static inline bool ptx_barrier_any(int id, bool mine)
{
    uint32_t any;

    asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %1, 0; barrier.cta.red.aligned.or.pred q, %2, %3, p; "
                 "selp.u32 %0, 1, 0, q; }"
                 : "=r"(any)
                 : "r"((uint32_t)mine), "r"(id), "n"(N)
                 : "memory");
    return any != 0;
}

/* All blocks of the cluster have come here, and what they wrote before can be seen. */
__device__ static inline void ptx_cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}

/* ---- the shared memory of other blocks of the cluster ---- */

/* Where block `rank` has what lies at p here. */
__device__ static inline uint32_t ptx_cluster_at(const void *p, uint32_t rank)
{
    uint32_t at;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"(ptx_shared(p)), "r"(rank));
    return at;
}

__device__ static inline float4 ptx_cluster_load(uint32_t at)
{
    float4 x;
    asm volatile("ld.shared::cluster.v4.f32 {%0,%1,%2,%3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

__device__ static inline void ptx_cluster_store(uint32_t at, uint4 x)
{
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}

__device__ static inline double ptx_cluster_load_f64(uint32_t at)
{
    double x;
    asm volatile("ld.shared::cluster.f64 %0, [%1];" : "=d"(x) : "r"(at) : "memory");
    return x;
}

/* ---- numbers of the special function unit ---- */

/* min(x, 40); NaN stays NaN. */
__device__ static inline float ptx_min_40(float x)
{
    float y;
    asm("min.NaN.f32 %0, %1, 0f42200000;" : "=f"(y) : "f"(x));
    return y;
}

__device__ static inline float ptx_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ static inline float ptx_reciprocal(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Off by 2^-11 at most, a quarter of what rounding to bf16 is. */
__device__ static inline float ptx_tanh(float x)
{
    float y;
    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* ---- the clock ---- */

__device__ static inline uint64_t ptx_clock_ns(void)
{
    uint64_t now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

#endif
