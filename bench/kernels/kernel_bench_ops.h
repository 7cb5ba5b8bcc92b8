/* kernel_bench_ops.h - what the two files of `trawl-bench kernels` share: the tensors of a setting, and its
 * operations. */
#pragma once

#include "kernels/kernels.h"
#include "sweep/cmd/bench/bench.h"

/* The setting: a MinGRU policy of one layer, N agents that act, minibatches of T steps of B agents. */
struct kb_shape {
    size_t N, T, B, M; /* M = T B tokens */
    size_t D, H, A, O; /* observation, width, logits, logits and value */
    size_t n_params;
    bool has_mask;
    struct kern_heads heads;
};

/* One copy of every tensor, in device memory; operations take copies in turn, so that big ones do not come from the
 * cache that the run before has filled. */
struct kb_set {
    void *obs, *obs_all, *enc, *gates, *out, *h_seq, *denc, *dout, *dgates; /* act; (M, ...), obs_all (T, N, D) */
    void *w; /* act (n_params) */
    float *params, *grad, *m, *v, *h, *h0, *pol, *dpol; /* f32; h (N, H), h0 (B, H), pol, dpol (max(N, M), O) */
    float *logp, *logp_all, *adv, *ret, *value, *boot, *ratio, *weight, *mean_std, *rewards; /* max(N, M) or (T, N) */
    float *known, *projection; /* of novelty: (N, features, features), (D + 1, features) */
    int32_t *actions, *actions_all;
    uint8_t *reset, *terms, *truncs, *mask;
};

struct kb {
    struct kern *kern;
    const struct kern_ops *ops;
    struct kb_shape shape;
    struct kb_set *sets; /* (n_sets), owned, as what they point to */
    size_t n_sets;
    /* Shared by the sets */
    struct kern_hyper *hyper;
    struct kern_stats *stats, *part;
    struct rng *rng;
    int32_t *perm, *idx;
    float *prob, *norm;
    void *scratch; /* of Muon */
    int64_t *step;
    uint64_t *marks; /* (2) */
    struct kern_tensor tensors[5];
    void **owned; /* every piece of device memory above */
    size_t n_owned, max_owned;
};

struct kb_op {
    const char *name;
    size_t row; /* offset in struct kern_ops, to see whether this device has it */
    void (*run)(struct kb *b, const struct kb_set *s);
    double (*bytes)(const struct kb *b); /* read and written at least, each once */
    double (*flops)(const struct kb *b); /* of matrix products; NULL: none */
};

extern const struct kb_op kb_ops[];
extern const size_t kb_n_ops;

/* Tensors with random contents; kern, shape and n_sets are set. Without memory the program ends with a message. */
void kb_create(struct kb *b);
void kb_destroy(struct kb *b); /* not the device */
void *kb_alloc(struct kb *b, size_t bytes); /* device memory that lives as long as b */
