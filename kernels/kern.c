/* kern.c - opens a device and hands each public call to its backend.
 * Invariants: (1) a struct kern has a backend from open to close; (2) what a failed call returns through ret_x is
 * NULL. */
#include "base/base.h"
#include "kernels/kern_priv.h"

#include <cblas.h>

/* The backend of a kind; the reason why there is none in err. */
static enum status kern_find_device(const struct kern_settings *settings, const struct kern_device **ret_device,
                                    struct error *err)
{
    const enum kern_kind kind = settings->kind;
    char reason[512];

    *ret_device = &cpu_device;
    if (kind == KERN_CPU)
        return ST_OK;
#ifdef TRAWL_HAVE_CUDA
    if (settings->large_layers)
        cuda_open_ahead();
#endif
    if (!kern_cuda_available(reason, sizeof reason)) {
        if (kind == KERN_AUTO)
            return ST_OK;
        return FAIL(err, ST_DEVICE, "no CUDA device: %s; use train.device = cpu, or fix it and ask `trawl doctor`",
                    reason);
    }
#ifdef TRAWL_HAVE_CUDA
    *ret_device = &cuda_device;
#endif
    return ST_OK;
}

void kern_part_end(struct kern *kern, const char *name, double *from_s)
{
    double now_s = clock_mono_s();

    if (kern->n_parts < KERN_PARTS_MAX)
        kern->parts[kern->n_parts++] = (struct kern_part){name, now_s - *from_s};
    *from_s = now_s;
}

void kern_expect_streams(int n)
{
    char text[16];

    snprintf(text, sizeof text, "%d", n);
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", text, 0);
}

enum status kern_open(struct kern **ret_kern, const struct kern_settings *settings, struct error *err)
{
    const struct kern_device *device;
    double from_s = clock_mono_s();
    struct kern *kern;

    *ret_kern = NULL;
    TRY(kern_find_device(settings, &device, err));
    openblas_set_num_threads(
        1); /* the pool's workers call it, each for its own part, and the trainer for small factors */
    kern = mem_alloc(sizeof *kern);
    kern->device = device;
    kern->ops = device->ops[KERN_F32];
    kern->settings = *settings;
    kern_part_end(kern, "driver", &from_s);
    enum status rc = device->open(kern, settings, err);
    if (rc != ST_OK) {
        mem_free(kern);
        return rc;
    }
    *ret_kern = kern;
    return ST_OK;
}

void kern_close(struct kern *kern)
{
    if (kern == NULL || kern->lost) /* lost: a thread may still use it */
        return;
    kern->device->close(kern);
    mem_free(kern);
}

enum status kern_precision_set(struct kern *kern, enum kern_precision precision, struct error *err)
{
    if (kern->device->ops[precision] == NULL)
        return FAIL(err, ST_CONFIG, "train.precision is bf16, but %s computes in f32 only; use auto or f32",
                    kern->name);
    kern->ops = kern->device->ops[precision];
    return ST_OK;
}

bool kern_cuda_available(char *ret_reason, size_t size)
{
#ifdef TRAWL_HAVE_CUDA
    return cuda_probe(ret_reason, size);
#else
    snprintf(
        ret_reason, size,
        "this build has no CUDA backend: nvcc was missing or -Dcuda=disabled was given; make one with `meson setup "
        "build-gpu -Dcuda=enabled -Dtests=false`");
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

const char *kern_env_device_text(void)
{
#ifdef TRAWL_HAVE_CUDA
    return cuda_env_device_text;
#else
    return NULL;
#endif
}

const char *kern_env_device_flags(void)
{
#ifdef TRAWL_HAVE_CUDA
    return TRAWL_GPU_WORDS;
#else
    return NULL;
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

/* X and the next X, X X^T in parts and its polynomial, of every matrix and padded: a GPU works on all at the same
 * time. */
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

void kern_heads_init(struct kern_heads *heads, const struct env_shape *shape, bool squash)
{
    *heads = (struct kern_heads){.n_heads = shape->n_heads, .squash = squash};
    for (int j = 0; j < shape->n_heads; j++) {
        bool real = shape->head_sizes[j] == 0;
        heads->sizes[j] = shape->head_sizes[j];
        heads->low[j] = shape->low[j];
        heads->high[j] = shape->high[j];
        heads->n_reals += real;
        heads->n_logits += real ? 2 : shape->head_sizes[j];
    }
}
