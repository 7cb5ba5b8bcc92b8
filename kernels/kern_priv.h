/* kern_priv.h - what a backend gives to kern.c (private to kernels/).
 *
 * A backend is one struct kern_device: the functions behind kern_open, kern_alloc, kern_env_create and so on, beside its
 * table of operations. kern.c picks the backend; it knows nothing of threads or streams.
 *   cpu/   cpu_device, always there
 *   cuda/  cuda_device, in builds with the CUDA toolkit; probe.cu answers `trawl doctor`
 * A backend keeps its own data behind kern->impl. */
#ifndef KERNELS_KERN_PRIV_H
#define KERNELS_KERN_PRIV_H

#include "kernels/kernels.h"

#define KERN_NAME_MAX 256
/* Muon's scratch: sides are padded to a multiple of KERN_MUON_PAD, X X^T comes in KERN_MUON_SPLITS parts. */
#define KERN_MUON_PAD 64
#define KERN_MUON_SPLITS 4

struct kern {
    const struct kern_device *device;
    const struct kern_ops *ops; /* of the precision in force */
    void *impl; /* struct cpu for cpu_device; owned by the backend from open to close */
    size_t n_threads;
    size_t memory_bytes;
    size_t block_tokens; /* see kern_block_tokens */
    char name[KERN_NAME_MAX];
};

struct kern_device {
    enum kern_kind kind;
    const struct kern_ops *ops[KERN_BF16 + 1]; /* by enum kern_precision; NULL: none */
    /* Fills kern->impl, name, n_threads, memory_bytes; on failure leaves nothing behind. */
    enum status (*open)(struct kern *kern, const struct kern_settings *settings, struct error *err);
    void (*close)(struct kern *kern);
    size_t (*memory_bytes)(const struct kern *kern); /* NULL: kern->memory_bytes says it */
    size_t (*memory_held_bytes)(const struct kern *kern); /* NULL: 0 */
    void *(*alloc)(struct kern *kern, size_t bytes); /* zeroed; NULL: does not fit */
    void (*free)(struct kern *kern, void *mem);
    enum status (*upload)(struct kern *kern, void *dst, const void *src, size_t bytes, struct error *err);
    enum status (*download)(struct kern *kern, void *dst, const void *src, size_t bytes, struct error *err);
    enum status (*sync)(struct kern *kern, struct error *err);
    bool (*is_lost)(const struct kern *kern); /* NULL: never */
    enum status (*slot_create)(struct kern *kern, struct kern_slot **ret_slot, size_t bytes, struct error *err);
    void (*slot_destroy)(struct kern *kern, struct kern_slot *slot);
    enum status (*slot_take)(struct kern *kern, struct kern_slot *slot, const void *src, struct error *err);
    enum status (*slot_wait)(struct kern *kern, struct kern_slot *slot, const void **ret_bytes, struct error *err);
    size_t (*n_lanes)(const struct kern *kern);
    size_t (*conv_scratch_bytes)(const struct kern *kern, const struct kern_conv *conv); /* NULL: 0 */
    void (*each_lane)(struct kern *kern, kern_lane_fn *fn, void *ctx);
    /* Recording; all NULL where the device cannot. */
    enum status (*record_begin)(struct kern *kern, struct error *err);
    enum status (*record_end)(struct kern *kern, struct kern_graph **ret_graph, struct error *err);
    enum status (*replay)(struct kern *kern, struct kern_graph *graph, struct error *err);
    void (*graph_destroy)(struct kern *kern, struct kern_graph *graph);

    enum status (*env_create)(struct kern *kern, struct kern_env **ret_env, const struct env_def *def,
                              const void *settings, size_t n_envs, struct rng root, struct error *err);
    void (*env_destroy)(struct kern *kern, struct kern_env *env);
    enum status (*env_restart)(struct kern *kern, struct kern_env *env, struct rng root, struct error *err);
    enum status (*env_take_log)(struct kern *kern, struct kern_env *env, struct env_log *ret_log, struct error *err);
    size_t (*env_state_bytes)(const struct kern_env *env);
    enum status (*env_save)(struct kern *kern, struct kern_env *env, void *bytes, struct error *err);
    enum status (*env_load)(struct kern *kern, struct kern_env *env, const void *bytes, struct error *err);
};

/* Every backend's struct kern_env begins with this, so that a batch finds its way without a struct kern. */
struct kern_env {
    const struct kern_device *device;
};

extern const struct kern_device cpu_device;

#ifdef TRAWL_HAVE_CUDA
/* cuda/probe.cu: true when a device answers; text is its description, or the reason why none does. */
bool cuda_probe(char *ret_text, size_t size);
int cuda_count(void);
size_t cuda_facts(struct kern_fact *ret_facts, size_t n_max); /* cuda/facts.cu */
extern const struct kern_device cuda_device; /* cuda/cuda_device.cu */
#endif

#endif
