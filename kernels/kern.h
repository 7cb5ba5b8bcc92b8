/* kern.h - a device: its memory, shards, recordings, and games on it. Included by kernels.h, which has its operations.
 * What a device may be asked is a row of struct kern_device; the calls below hand it on. */
#pragma once

#include "kernels/kernels.h"

enum kern_kind { KERN_AUTO, KERN_CPU, KERN_CUDA };
enum kern_precision { KERN_F32, KERN_BF16 };

#define KERN_SMALL_LAYER 128 /* units of a layer that a GPU multiplies without a library, in bf16 */
struct kern_settings {
    enum kern_kind kind; /* KERN_AUTO: the fastest that this build has and that answers */
    bool large_layers; /* CUDA: cuBLASLt will be needed, and is opened while the device is; else by who needs it */
    size_t n_threads; /* CPU: 0 = one per core the process may use */
    int ordinal; /* CUDA: which device, as the runtime counts them */
    int n_ordinals; /* CUDA: how many from it on a training may use together; 0: all */
    double patience_s; /* a GPU that finishes nothing for this long is taken for hung; 0: 120 s */
};

/* A backend: its functions, and its tables of operations. cpu/ is always there, cuda/ in builds with the toolkit. */
#define KERN_NAME_MAX 256
/* What kern_open does, in order, and the seconds that each part took. */
#define KERN_PARTS_MAX 4
struct kern_part {
    const char *name; /* "driver"; static */
    double s;
};
typedef void kern_shard_fn(void *ctx, struct kern *shard, size_t i_shard);
struct kern_slot;
struct kern_graph;
struct kern_device;
struct kern_ranks;

struct kern {
    const struct kern_device *device;
    const struct kern_ops *ops; /* of the precision in force */
    void *impl; /* struct cpu for cpu_device; owned by the backend from open to close */
    size_t n_threads;
    size_t memory_bytes;
    size_t block_tokens; /* see kern_block_tokens */
    char name[KERN_NAME_MAX];
    char vector_units[64];
    struct kern_part parts[KERN_PARTS_MAX];
    size_t n_parts;
    struct kern_settings settings; /* it was opened with */
    struct kern_ranks *ranks; /* borrowed; NULL: it trains alone */
    size_t rank; /* among them */
    bool lost; /* a thread that uses it hangs (kern_is_lost) */
};

struct kern_device {
    enum kern_kind kind;
    const struct kern_ops *ops[KERN_BF16 + 1]; /* by enum kern_precision; NULL: none */
    /* Fills kern->impl, name, n_threads, memory_bytes; on failure nothing is left. */
    enum status (*open)(struct kern *kern, const struct kern_settings *settings, struct error *err);
    void (*close)(struct kern *kern);
    size_t (*memory_bytes)(const struct kern *kern); /* NULL: kern->memory_bytes */
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
    size_t (*n_shards)(const struct kern *kern);
    size_t (*conv_scratch_bytes)(const struct kern *kern, const struct kern_conv *conv); /* NULL: 0 */
    size_t (*wide_bytes)(const struct kern *kern);
    void (*each_shard)(struct kern *kern, kern_shard_fn *fn, void *ctx);
    /* kern_fork, kern_aside, kern_join; NULL where operations are done in order */
    void (*fork)(struct kern *kern);
    void (*aside)(struct kern *kern, bool on);
    void (*join)(struct kern *kern);
    /* Recording; all NULL where the device cannot. */
    enum status (*record_begin)(struct kern *kern, struct error *err);
    enum status (*record_end)(struct kern *kern, struct kern_graph **ret_graph, struct error *err);
    enum status (*replay)(struct kern *kern, struct kern_graph *graph, struct error *err);
    void (*graph_destroy)(struct kern *kern, struct kern_graph *graph);
    /* kern_use, kern_ranks_join and leave; NULL: nothing is to be done. */
    enum status (*use)(struct kern *kern, struct error *err);
    enum status (*ranks_join)(struct kern *kern, struct error *err);
    void (*ranks_leave)(struct kern *kern);

    enum status (*env_create)(struct kern *kern, struct kern_env **ret_env, const struct env_def *def,
                              const void *settings, size_t n_envs, struct rng root, struct error *err);
    void (*env_destroy)(struct kern *kern, struct kern_env *env);
    enum status (*env_restart)(struct kern *kern, struct kern_env *env, struct rng root, struct error *err);
    enum status (*env_take_log)(struct kern *kern, struct kern_env *env, struct env_log *ret_log, struct error *err);
    double (*env_outside_s)(const struct kern_env *env);
    enum status (*env_take_numbers)(struct kern *kern, struct kern_env *env, double *ret_sums, double *ret_episodes,
                                    struct error *err);
    size_t (*env_state_bytes)(const struct kern_env *env);
    enum status (*env_save)(struct kern *kern, struct kern_env *env, void *bytes, struct error *err);
    enum status (*env_load)(struct kern *kern, struct kern_env *env, const void *bytes, struct error *err);
};

/* Every backend's struct kern_env begins with this, so that a batch finds its way without a struct kern. A step may be
 * done in parts, see kern_ops->env_begin: part p has the agents from part_from[p] to part_from[p + 1]. */
#define KERN_ENV_PARTS 2
struct kern_env {
    const struct kern_device *device;
    size_t n_parts; /* 1 to KERN_ENV_PARTS */
    size_t part_from[KERN_ENV_PARTS + 1];
};

/* How many streams of a GPU this process will use at a time: the driver makes as many hardware queues when it is first
 * asked for anything, each of which costs 8 ms, and 4 ms when the process ends; its own choice is 8. What the user has
 * set (CUDA_DEVICE_MAX_CONNECTIONS) stays. Sets a variable of the environment: before there are other threads. */
void kern_expect_streams(int n);
enum status kern_open(struct kern **ret_kern, const struct kern_settings *settings, struct error *err) MUST_USE;
void kern_close(struct kern *kern); /* NULL is fine */
/* From now on it is the calling thread that uses this device, and no other one of its kind. */
static inline MUST_USE enum status kern_use(struct kern *kern, struct error *err)
{
    return kern->device->use == NULL ? ST_OK : kern->device->use(kern, err);
}
/* of the precision in force */
static inline const struct kern_ops *kern_ops(const struct kern *kern)
{
    return kern->ops;
}
/* F32 after kern_open. ST_CONFIG when the device has no such operations. Not between record_begin and record_end. */
enum status kern_precision_set(struct kern *kern, enum kern_precision precision, struct error *err) MUST_USE;
static inline enum kern_kind kern_kind(const struct kern *kern)
{
    return kern->device->kind;
}
/* "Intel(R) Xeon(R) ... (2 threads)" */
static inline const char *kern_device_name(const struct kern *kern)
{
    return kern->name;
}
/* Beside threads, what the bytes of a CPU's results depend on: the vector units that OpenBLAS and this build use,
 * "SkylakeX+avx512". "" on a GPU, whose name is enough. */
static inline const char *kern_vector_units(const struct kern *kern)
{
    return kern->vector_units;
}

static inline size_t kern_n_threads(const struct kern *kern)
{
    return kern->n_threads;
}
/* Was this build made with CUDA, and does a device answer? Text for `trawl doctor`: the reason when not. */
bool kern_cuda_available(char *ret_reason, size_t size);
int kern_cuda_count(void); /* devices that this build can use; opens none */
/* What a game of a user's is compiled with for a GPU (cuda/play/library_device.cuh), and the words that nvcc needs:
 * those of this build. NULL: it was made without CUDA. */
const char *kern_env_device_text(void);
const char *kern_env_device_flags(void);
/* What there is of CUDA, a row each for driver, libraries and devices; returns how many. Opens the devices. */
struct kern_fact {
    char key[24], text[232];
};
size_t kern_cuda_facts(struct kern_fact *ret_facts /* (n_max) */, size_t n_max);
/* Of any number of rows; by the device's precision in force. A shard needs as much of its own. */
static inline size_t kern_conv_scratch_bytes(const struct kern *kern, const struct kern_conv *conv)
{
    return kern->device->conv_scratch_bytes == NULL ? 0 : kern->device->conv_scratch_bytes(kern, conv);
}
/* struct kern_source's wide, of all the device's threads; a shard needs its part of it. */
static inline size_t kern_wide_bytes(const struct kern *kern)
{
    return kern->device->wide_bytes(kern);
}
size_t kern_muon_scratch_bytes(const struct kern_tensor *tensors, size_t n_tensors);
/* Shards run operations independently of each other: each is a struct kern over the same memory. A CPU has a shard for
 * each thread, whose operations use that thread alone; a GPU has one shard, itself. Work that is given to shards in
 * whole pieces (segments of a minibatch, through all layers) meets once at the end, where single operations meet after
 * each. */
static inline size_t kern_n_shards(const struct kern *kern)
{
    return kern->device->n_shards(kern);
}
/* Runs fn in every shard at the same time, shard 0 in the caller's thread; returns when all are done. */
static inline void kern_each_shard(struct kern *kern, kern_shard_fn *fn, void *ctx)
{
    kern->device->each_shard(kern, fn, ctx);
}
/* Tokens that a shard should take through all layers at a time, so that activations stay in its cache; 0: all of
 * them. */
static inline size_t kern_block_tokens(const struct kern *kern)
{
    return kern->block_tokens;
}
/* What a new run could have: all of a machine's memory, on a GPU what is free now, with what this process has given
 * back. 0: not known. */
static inline size_t kern_memory_bytes(const struct kern *kern)
{
    return kern->device->memory_bytes != NULL ? kern->device->memory_bytes(kern) : kern->memory_bytes;
}
/* the machine's or the GPU's, free or not; 0: not known */
static inline size_t kern_memory_total_bytes(const struct kern *kern)
{
    return kern->memory_bytes;
}
/* Device memory that this process holds on a GPU, used or kept for later; 0 on a CPU. */
static inline size_t kern_memory_held_bytes(const struct kern *kern)
{
    return kern->device->memory_held_bytes != NULL ? kern->device->memory_held_bytes(kern) : 0;
}

enum status kern_alloc(struct kern *kern, void **ret_mem, size_t bytes, const char *what,
                       struct error *err) MUST_USE; /* zeroed */
static inline void kern_free(struct kern *kern, void *mem)
{
    if (mem != NULL)
        kern->device->free(kern, mem);
}
/* Ordered. May return early, then src has to stay until the next kern_sync; up to KERN_SMALL_UPLOAD bytes it need
 * not. */
#define KERN_SMALL_UPLOAD 1024
static inline MUST_USE enum status kern_upload(struct kern *kern, void *dst, const void *src, size_t bytes,
                                               struct error *err)
{
    return kern->device->upload(kern, dst, src, bytes, err);
}
/* waits */
static inline MUST_USE enum status kern_download(struct kern *kern, void *dst, const void *src, size_t bytes,
                                                 struct error *err)
{
    return kern->device->download(kern, dst, src, bytes, err);
}
/* waits; reports what failed since the last one */
static inline MUST_USE enum status kern_sync(struct kern *kern, struct error *err)
{
    return kern->device->sync(kern, err);
}

/* Has a failure made the device useless to this process? Then every call fails; the process has to end, at best by
 * _exit. */
static inline bool kern_is_lost(const struct kern *kern)
{
    return kern->lost || (kern->device->is_lost != NULL && kern->device->is_lost(kern));
}

/* A slot keeps a copy of device memory as it was at a point in the order of operations, without a wait
 * there. */
struct kern_slot;
static inline MUST_USE enum status kern_slot_create(struct kern *kern, struct kern_slot **ret_slot, size_t bytes,
                                                    struct error *err)
{
    *ret_slot = NULL;
    return kern->device->slot_create(kern, ret_slot, bytes, err);
}
/* NULL is fine */
static inline void kern_slot_destroy(struct kern *kern, struct kern_slot *slot)
{
    if (slot != NULL)
        kern->device->slot_destroy(kern, slot);
}
/* the slot's size; returns early; what it held is overwritten */
static inline MUST_USE enum status kern_slot_take(struct kern *kern, struct kern_slot *slot, const void *src,
                                                  struct error *err)
{
    return kern->device->slot_take(kern, slot, src, err);
}
/* *ret_bytes: what the last kern_slot_take copied, aligned to 16 bytes, valid until the next; waits for it. */
static inline MUST_USE enum status kern_slot_wait(struct kern *kern, struct kern_slot *slot, const void **ret_bytes,
                                                  struct error *err)
{
    *ret_bytes = NULL;
    return kern->device->slot_wait(kern, slot, ret_bytes, err);
}

/* Operations beside others, where the device can: those called while kern_aside is on follow what was called before the
 * last kern_fork, and each other; what is called after kern_join follows them. Until the join neither side may
 * write memory that the other one uses. Two forks may follow each other without a join between them. Not aside:
 * operations that use the workspace (layers, heads), and exchanges between ranks. */
static inline bool kern_can_fork(const struct kern *kern)
{
    return kern->device->fork != NULL;
}
static inline void kern_fork(struct kern *kern)
{
    if (kern->device->fork != NULL)
        kern->device->fork(kern);
}
static inline void kern_aside(struct kern *kern, bool on)
{
    if (kern->device->aside != NULL)
        kern->device->aside(kern, on);
}
static inline void kern_join(struct kern *kern)
{
    if (kern->device->join != NULL)
        kern->device->join(kern);
}

/* Recording: operations called between begin and end are not run but kept; each replay runs them again, in order, with
 * the same pointers and sizes and what then lies in device memory. One launch costs far less than hundreds. Only
 * where kern_can_record: a CPU runs operations directly. Run the same operations once before recording them, so that
 * libraries have loaded what they need. */
struct kern_graph;
static inline bool kern_can_record(const struct kern *kern)
{
    return kern->device->record_begin != NULL;
}
static inline MUST_USE enum status kern_record_begin(struct kern *kern, struct error *err)
{
    return kern->device->record_begin(kern, err);
}
static inline MUST_USE enum status kern_record_end(struct kern *kern, struct kern_graph **ret_graph, struct error *err)
{
    *ret_graph = NULL;
    return kern->device->record_end(kern, ret_graph, err);
}
/* returns early */
static inline MUST_USE enum status kern_replay(struct kern *kern, struct kern_graph *graph, struct error *err)
{
    return kern->device->replay(kern, graph, err);
}
/* NULL is fine */
static inline void kern_graph_destroy(struct kern *kern, struct kern_graph *graph)
{
    if (graph != NULL)
        kern->device->graph_destroy(kern, graph);
}

static inline MUST_USE enum status kern_env_create(struct kern *kern, struct kern_env **ret_env,
                                                   const struct env_def *def, const void *settings, size_t n_envs,
                                                   struct rng root, struct error *err)
{
    *ret_env = NULL;
    return kern->device->env_create(kern, ret_env, def, settings, n_envs, root, err);
}
static inline void kern_env_destroy(struct kern *kern, struct kern_env *env)
{
    if (env != NULL)
        env->device->env_destroy(kern, env);
}
/* As just created with this root, but for its state: kern_ops->env_reset has to follow. Recorded steps stay valid. */
static inline MUST_USE enum status kern_env_restart(struct kern *kern, struct kern_env *env, struct rng root,
                                                    struct error *err)
{
    return env->device->env_restart(kern, env, root, err);
}
static inline MUST_USE enum status kern_env_take_log(struct kern *kern, struct kern_env *env, struct env_log *ret_log,
                                                     struct error *err)
{
    return env->device->env_take_log(kern, env, ret_log, err);
}
/* A whole step; io as for kern_ops->env_begin. */
static inline void kern_env_step(struct kern *kern, struct kern_env *env, const struct kern_env_io *io)
{
    for (size_t part = 0; part < env->n_parts; part++)
        kern->ops->env_begin(kern, env, io, part);
    for (size_t part = 0; part < env->n_parts; part++)
        kern->ops->env_wait(kern, env, part);
}
/* env_batch_outside_s of its batch, also while it is stepped. */
static inline double kern_env_outside_s(const struct kern_env *env)
{
    return env->device->env_outside_s(env);
}
/* env_batch_take_numbers of its batch; waits */
static inline MUST_USE enum status kern_env_take_numbers(struct kern *kern, struct kern_env *env, double *ret_sums,
                                                         double *ret_episodes, struct error *err)
{
    return env->device->env_take_numbers(kern, env, ret_sums, ret_episodes, err);
}
static inline size_t kern_env_state_bytes(const struct kern_env *env)
{
    return env->device->env_state_bytes(env);
}
static inline MUST_USE enum status kern_env_save(struct kern *kern, struct kern_env *env, void *bytes,
                                                 struct error *err)
{
    return env->device->env_save(kern, env, bytes, err);
}
static inline MUST_USE enum status kern_env_load(struct kern *kern, struct kern_env *env, const void *bytes,
                                                 struct error *err)
{
    return env->device->env_load(kern, env, bytes, err);
}
