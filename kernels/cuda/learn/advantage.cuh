/* advantage.cuh - advantages and returns of 32 agents by one block (private to kernels/cuda); formulas in
 * advantage.cu. */
#ifndef KERNELS_CUDA_ADVANTAGE_CUH
#define KERNELS_CUDA_ADVANTAGE_CUH

#include "kernels/cuda/number.h"

#define ADVANTAGE_AGENTS 32 /* of a block: one warp's width, so that rows are read in whole cache lines */
#define ADVANTAGE_CHUNKS 16 /* warps of a block */
#define ADVANTAGE_CHUNK_STEPS 4 /* paragraph "Advantage" in bench/notes/cuda.md */
#define ADVANTAGE_BLOCK (ADVANTAGE_AGENTS * ADVANTAGE_CHUNKS)

/* delta and k of agent i at time t, and its value. */
static __device__ __forceinline__ void advantage_step(float *ret_delta, float *ret_k, float *ret_value,
                                                      const struct kern_advantage &in, size_t t, size_t i)
{
    const struct kern_hyper *hyper = in.hyper;
    size_t N = in.N, at = t * N + i;
    float ratio = in.log_ratio == NULL ? 1.0f : expf(in.log_ratio[at]), v = in.values[at], later = in.values[at + N];
    bool term = in.terms[at] != 0, trunc = in.truncs[at] != 0;
    float rho = in.log_ratio != NULL && ratio > hyper->rho_clip ? hyper->rho_clip : ratio;
    float c = in.log_ratio != NULL && ratio > hyper->c_clip ? hyper->c_clip : ratio;

    if (trunc)
        later = in.boot[at];
    later = term ? 0.0f : later;
    *ret_delta = rho * (in.rewards[at] + hyper->gamma * later - v);
    *ret_k = term || trunc ? 0.0f : hyper->gamma * hyper->gae_lambda * c;
    *ret_value = v;
}

/* k A, where no advantage after the end of an episode counts, not even NaN. */
static __device__ __forceinline__ float carried(float k, float adv)
{
    return k == 0.0f ? 0.0f : k * adv;
}

/* Agents [32 group, 32 group + 32), by a block of ADVANTAGE_BLOCK threads. */
static __device__ __forceinline__ void advantage_agents(const struct kern_advantage &in, size_t group)
{
    const size_t Tn = in.T, N = in.N;
    __shared__ float chunk_delta[ADVANTAGE_CHUNKS][ADVANTAGE_AGENTS], chunk_k[ADVANTAGE_CHUNKS][ADVANTAGE_AGENTS];
    size_t lane = threadIdx.x % ADVANTAGE_AGENTS, chunk = threadIdx.x / ADVANTAGE_AGENTS,
           i = group * ADVANTAGE_AGENTS + lane;
    const size_t round_steps = ADVANTAGE_CHUNKS * ADVANTAGE_CHUNK_STEPS;
    float after = 0.0f; /* the advantage after this round, the same in all chunks */

    for (size_t round = (Tn + round_steps - 1) / round_steps; round-- > 0;) {
        size_t t0 = round * round_steps + chunk * ADVANTAGE_CHUNK_STEPS;
        float delta[ADVANTAGE_CHUNK_STEPS], k[ADVANTAGE_CHUNK_STEPS], value[ADVANTAGE_CHUNK_STEPS],
            sum = 0.0f, product = 1.0f, next;

#pragma unroll
        for (size_t u = 0; u < ADVANTAGE_CHUNK_STEPS; u++) {
            delta[u] = 0.0f, k[u] = 1.0f, value[u] = 0.0f; /* a step past the end passes on what comes after it */
            if (t0 + u < Tn && i < N)
                advantage_step(&delta[u], &k[u], &value[u], in, t0 + u, i);
        }
#pragma unroll
        for (size_t u = ADVANTAGE_CHUNK_STEPS; u-- > 0;) {
            sum = delta[u] + carried(k[u], sum);
            product = carried(k[u], product);
        }
        chunk_delta[chunk][lane] = sum;
        chunk_k[chunk][lane] = product;
        __syncthreads();
        next = after;
        for (size_t c = ADVANTAGE_CHUNKS; c-- > 0;) {
            if (c == chunk)
                next = after;
            after = chunk_delta[c][lane] + carried(chunk_k[c][lane], after);
        }
        __syncthreads();
#pragma unroll
        for (size_t u = ADVANTAGE_CHUNK_STEPS; u-- > 0;) {
            next = delta[u] + carried(k[u], next);
            if (t0 + u < Tn && i < N) {
                in.adv[(t0 + u) * N + i] = next;
                in.ret[(t0 + u) * N + i] = next + value[u];
            }
        }
    }
}

#endif
