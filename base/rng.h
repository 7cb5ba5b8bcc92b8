/* rng.h - counter-based random numbers, the same stream on host and device.
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A stream is a key and
 * a counter, both plain values: copy it to fork, save it to resume. Draw i of a stream is a pure function of
 * (key, i), so a batch of agents draws in parallel with key = rng_split(parent, agent) and one shared counter.
 * C and CUDA subset: no state outside the struct, no libc. */
#pragma once

#include <stdint.h>

#ifdef __CUDACC__
#define RNG_FN __host__ __device__ static inline
#else
#define RNG_FN static inline
#endif

struct rng {
    uint64_t key; /* which stream */
    uint64_t counter; /* draws made so far */
};

struct rng_block {
    uint32_t v[4];
};

/* The raw function: 10 rounds on a 128-bit counter. */
RNG_FN struct rng_block rng_philox(uint64_t key, uint64_t ctr_lo, uint64_t ctr_hi)
{
    struct rng_block b;
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    b.v[0] = (uint32_t)ctr_lo;
    b.v[1] = (uint32_t)(ctr_lo >> 32);
    b.v[2] = (uint32_t)ctr_hi;
    b.v[3] = (uint32_t)(ctr_hi >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * b.v[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * b.v[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ b.v[1] ^ k0;
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ b.v[3] ^ k1;
        b.v[1] = (uint32_t)p1;
        b.v[3] = (uint32_t)p0;
        b.v[0] = n0;
        b.v[2] = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return b;
}

/* A child stream: same parent and label, same child; children of different labels are independent.
 * Does not advance the parent. */
RNG_FN struct rng rng_split(struct rng parent, uint64_t label)
{
    struct rng child;
    struct rng_block b = rng_philox(parent.key, label, 0x73706C6974ull); /* "split": apart from draws (0) */
    child.key = (uint64_t)b.v[0] | (uint64_t)b.v[1] << 32;
    child.counter = 0;
    return child;
}

RNG_FN struct rng rng_seed(uint64_t seed)
{
    struct rng root;
    root.key = seed;
    root.counter = 0;
    return rng_split(root, 0x747261776Cull);
}

RNG_FN uint32_t rng_u32(struct rng *r)
{
    return rng_philox(r->key, r->counter++, 0).v[0];
}

RNG_FN uint64_t rng_u64(struct rng *r)
{
    struct rng_block b = rng_philox(r->key, r->counter++, 0);
    return (uint64_t)b.v[0] | (uint64_t)b.v[1] << 32;
}

RNG_FN float rng_f32(struct rng *r) /* uniform in [0, 1), 24 bits */
{
    return (float)(rng_u32(r) >> 8) * (1.0f / 16777216.0f);
}

RNG_FN double rng_f64(struct rng *r) /* uniform in [0, 1), 53 bits */
{
    return (double)(rng_u64(r) >> 11) * (1.0 / 9007199254740992.0);
}

/* Uniform in [0, n), n >= 1; bias below n / 2^32 (multiply-shift), small enough for games and shuffles. */
RNG_FN uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t)((uint64_t)rng_u32(r) * n >> 32);
}
