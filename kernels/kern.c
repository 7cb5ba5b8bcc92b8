/* kern.c - opens a device and hands each public call to its backend.
 * Invariants: (1) a struct kern has a backend from open to close; (2) what a failed call returns through ret_x is NULL. */
#include "kernels/kern_priv.h"

#include <cblas.h>
#include <stdio.h>

#include "base/mem.h"

/* The backend of a kind; the reason why there is none in err. */
static enum status kern_find_device(enum kern_kind kind, const struct kern_device **ret_device, struct error *err)
{
    char reason[512];

    *ret_device = &cpu_device;
    if (kind == KERN_CPU)
        return ST_OK;
    if (!kern_cuda_available(reason, sizeof reason)) {
        if (kind == KERN_AUTO)
            return ST_OK;
        return FAIL(err, ST_DEVICE, "no CUDA device: %s; use train.device = cpu, or mend it and ask `trawl doctor`",
                    reason);
    }
#ifdef TRAWL_HAVE_CUDA
    *ret_device = &cuda_device;
#endif
    return ST_OK;
}

enum status kern_open(struct kern **ret_kern, const struct kern_settings *settings, struct error *err)
{
    const struct kern_device *device;
    struct kern *kern;
    enum status rc;

    *ret_kern = NULL;
    TRY(kern_find_device(settings->kind, &device, err));
    openblas_set_num_threads(
        1); /* the pool's workers call it, each for its own part, and the trainer for small factors */
    kern = mem_alloc(sizeof *kern);
    if (kern == NULL)
        return FAIL(err, ST_NOMEM, "opening the device: out of memory");
    kern->device = device;
    kern->ops = device->ops[KERN_F32];
    rc = device->open(kern, settings, err);
    if (rc != ST_OK) {
        mem_free(kern);
        return rc;
    }
    *ret_kern = kern;
    return ST_OK;
}

void kern_close(struct kern *kern)
{
    if (kern == NULL)
        return;
    kern->device->close(kern);
    mem_free(kern);
}

const struct kern_ops *kern_ops(const struct kern *kern)
{
    return kern->ops;
}

enum status kern_precision_set(struct kern *kern, enum kern_precision precision, struct error *err)
{
    if (kern->device->ops[precision] == NULL)
        return FAIL(err, ST_CONFIG, "train.precision is bf16, but %s computes in f32 only; use auto or f32",
                    kern->name);
    kern->ops = kern->device->ops[precision];
    return ST_OK;
}

enum kern_kind kern_kind(const struct kern *kern)
{
    return kern->device->kind;
}

const char *kern_device_name(const struct kern *kern)
{
    return kern->name;
}

size_t kern_n_threads(const struct kern *kern)
{
    return kern->n_threads;
}

size_t kern_conv_scratch_bytes(const struct kern *kern, const struct kern_conv *conv)
{
    return kern->device->conv_scratch_bytes == NULL ? 0 : kern->device->conv_scratch_bytes(kern, conv);
}

size_t kern_n_lanes(const struct kern *kern)
{
    return kern->device->n_lanes(kern);
}

void kern_each_lane(struct kern *kern, kern_lane_fn *fn, void *ctx)
{
    kern->device->each_lane(kern, fn, ctx);
}

size_t kern_block_tokens(const struct kern *kern)
{
    return kern->block_tokens;
}

size_t kern_memory_bytes(const struct kern *kern)
{
    return kern->device->memory_bytes != NULL ? kern->device->memory_bytes(kern) : kern->memory_bytes;
}

size_t kern_memory_total_bytes(const struct kern *kern)
{
    return kern->memory_bytes;
}

size_t kern_memory_held_bytes(const struct kern *kern)
{
    return kern->device->memory_held_bytes != NULL ? kern->device->memory_held_bytes(kern) : 0;
}

bool kern_cuda_available(char *ret_reason, size_t size)
{
#ifdef TRAWL_HAVE_CUDA
    return cuda_probe(ret_reason, size);
#else
    snprintf(ret_reason, size,
             "this build was made without the CUDA toolkit; install nvcc, then meson setup -Dcuda=enabled");
    return false;
#endif
}

int kern_cuda_count(void)
{
#ifdef TRAWL_HAVE_CUDA
    return cuda_count();
#else
    return 0;
#endif
}

size_t kern_cuda_facts(struct kern_fact *ret_facts, size_t n_max)
{
#ifdef TRAWL_HAVE_CUDA
    return cuda_facts(ret_facts, n_max);
#else
    (void)ret_facts, (void)n_max;
    return 0;
#endif
}

enum status kern_alloc(struct kern *kern, void **ret_mem, size_t bytes, const char *what, struct error *err)
{
    *ret_mem = kern->device->alloc(kern, bytes);
    if (*ret_mem == NULL)
        return FAIL(
            err, ST_NOMEM,
            "%s needs %.1f MB and does not fit on %s; lower train.total_agents, train.horizon or policy.hidden_size",
            what, (double)bytes / 1e6, kern->name);
    return ST_OK;
}

void kern_free(struct kern *kern, void *mem)
{
    if (mem != NULL)
        kern->device->free(kern, mem);
}

enum status kern_upload(struct kern *kern, void *dst, const void *src, size_t bytes, struct error *err)
{
    return kern->device->upload(kern, dst, src, bytes, err);
}

enum status kern_download(struct kern *kern, void *dst, const void *src, size_t bytes, struct error *err)
{
    return kern->device->download(kern, dst, src, bytes, err);
}

enum status kern_sync(struct kern *kern, struct error *err)
{
    return kern->device->sync(kern, err);
}

bool kern_is_lost(const struct kern *kern)
{
    return kern->device->is_lost != NULL && kern->device->is_lost(kern);
}

enum status kern_slot_create(struct kern *kern, struct kern_slot **ret_slot, size_t bytes, struct error *err)
{
    *ret_slot = NULL;
    return kern->device->slot_create(kern, ret_slot, bytes, err);
}

void kern_slot_destroy(struct kern *kern, struct kern_slot *slot)
{
    if (slot != NULL)
        kern->device->slot_destroy(kern, slot);
}

enum status kern_slot_take(struct kern *kern, struct kern_slot *slot, const void *src, struct error *err)
{
    return kern->device->slot_take(kern, slot, src, err);
}

enum status kern_slot_wait(struct kern *kern, struct kern_slot *slot, const void **ret_bytes, struct error *err)
{
    *ret_bytes = NULL;
    return kern->device->slot_wait(kern, slot, ret_bytes, err);
}

bool kern_can_record(const struct kern *kern)
{
    return kern->device->record_begin != NULL;
}

enum status kern_record_begin(struct kern *kern, struct error *err)
{
    return kern->device->record_begin(kern, err);
}

enum status kern_record_end(struct kern *kern, struct kern_graph **ret_graph, struct error *err)
{
    *ret_graph = NULL;
    return kern->device->record_end(kern, ret_graph, err);
}

enum status kern_replay(struct kern *kern, struct kern_graph *graph, struct error *err)
{
    return kern->device->replay(kern, graph, err);
}

void kern_graph_destroy(struct kern *kern, struct kern_graph *graph)
{
    if (graph != NULL)
        kern->device->graph_destroy(kern, graph);
}

enum status kern_env_create(struct kern *kern, struct kern_env **ret_env, const struct env_def *def,
                            const void *settings, size_t n_envs, struct rng root, struct error *err)
{
    *ret_env = NULL;
    return kern->device->env_create(kern, ret_env, def, settings, n_envs, root, err);
}

void kern_env_destroy(struct kern *kern, struct kern_env *env)
{
    if (env != NULL)
        env->device->env_destroy(kern, env);
}

enum status kern_env_restart(struct kern *kern, struct kern_env *env, struct rng root, struct error *err)
{
    return env->device->env_restart(kern, env, root, err);
}

enum status kern_env_take_log(struct kern *kern, struct kern_env *env, struct env_log *ret_log, struct error *err)
{
    return env->device->env_take_log(kern, env, ret_log, err);
}

size_t kern_env_state_bytes(const struct kern_env *env)
{
    return env->device->env_state_bytes(env);
}

enum status kern_env_save(struct kern *kern, struct kern_env *env, void *bytes, struct error *err)
{
    return env->device->env_save(kern, env, bytes, err);
}

enum status kern_env_load(struct kern *kern, struct kern_env *env, const void *bytes, struct error *err)
{
    return env->device->env_load(kern, env, bytes, err);
}

/* X and the next X, X X^T in parts and its polynomial, of every matrix and padded: a GPU works on all at the same time. */
size_t kern_muon_scratch_bytes(const struct kern_tensor *tensors, size_t n_tensors)
{
    size_t need = 1;

    for (size_t i = 0; i < n_tensors; i++) {
        size_t rows = (tensors[i].rows + KERN_MUON_PAD - 1) / KERN_MUON_PAD * KERN_MUON_PAD;
        size_t cols = (tensors[i].cols + KERN_MUON_PAD - 1) / KERN_MUON_PAD * KERN_MUON_PAD;
        size_t side = rows < cols ? rows : cols;
        if (tensors[i].is_matrix)
            need += 2 * rows * cols + (KERN_MUON_SPLITS + 1) * side * side;
    }
    return need * sizeof(float);
}
