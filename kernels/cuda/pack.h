/* pack.h - numbers of either activation type that move as one. */
#ifndef KERNELS_CUDA_PACK_H
#define KERNELS_CUDA_PACK_H

#include "kernels/cuda/number.h"

template <int BYTES> struct raw_bytes;
template <> struct raw_bytes<2> {
    typedef unsigned short type;
};
template <> struct raw_bytes<4> {
    typedef unsigned type;
};
template <> struct raw_bytes<8> {
    typedef uint2 type;
};
template <> struct raw_bytes<16> {
    typedef uint4 type;
};

template <typename T, int V> struct pack {
    typename raw_bytes<sizeof(T) * V>::type raw;
};

template <typename T, int V> static __device__ __forceinline__ pack<T, V> pack_load(const T *p)
{
    pack<T, V> x;
    x.raw = *(const typename raw_bytes<sizeof(T) * V>::type *)p;
    return x;
}

template <typename T, int V> static __device__ __forceinline__ void pack_open(float (&y)[V], const pack<T, V> &x)
{
    T part[V];
    memcpy(part, &x.raw, sizeof part);
#pragma unroll
    for (int v = 0; v < V; v++)
        y[v] = num_f32(part[v]);
}

template <typename T, int V> static __device__ __forceinline__ void pack_store(T *p, const float (&y)[V])
{
    typename raw_bytes<sizeof(T) * V>::type raw;
    T part[V];
#pragma unroll
    for (int v = 0; v < V; v++)
        num_set(&part[v], y[v]);
    memcpy(&raw, part, sizeof raw);
    *(typename raw_bytes<sizeof(T) * V>::type *)p = raw;
}

/* May every pointer be read in packs of this many bytes? Rows are H numbers apart, so H has to be a multiple too. */
static inline bool packs_fit(size_t bytes, const void *const *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((uintptr_t)p[i] % bytes != 0)
            return false;
    return true;
}

#endif
