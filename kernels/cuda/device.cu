/* device.cu - the CUDA backend: one stream on one device, its memory, transfers, recorded graphs, and the tables of
 * operations in f32 and bf16.
 * Invariants: (1) everything a launcher needs (handles, workspace, partial sums) exists from open to close; (2) memory
 * comes from the device's pool, which keeps what is freed, so that a trial after a trial allocates nothing from the
 * driver; (3) after a failure every later call reports it: the context is lost and the process has to end. */
#include "kernels/cuda/common.h"
#include "kernels/cuda/ptx.cuh"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "base/os/clock.h"
#include "kernels/ranks_priv.h"
#ifdef __cplusplus
}
#endif

#define CUDA_PATIENCE_S 120.0
#define WAIT_SPIN_S 200e-6 /* a wait that ends sooner burns the core; one that lasts gives it away between looks */
#define WAIT_NAP_US 20

extern "C" void cuda_fail(struct kern *k, const char *what, const char *why)
{
    struct cuda *cuda = cuda_of(k);

    if (cuda->failed[0] == '\0')
        snprintf(cuda->failed, sizeof cuda->failed, "%s: %s", what, why);
}

extern "C" void cuda_launched(struct kern *k, const char *what)
{
    cudaError_t code = cudaGetLastError();

    if (code != cudaSuccess)
        cuda_fail(k, what, cudaGetErrorString(code));
}

extern "C" void cuda_kernel_prepare(struct kern *k, const void *kernel, const char *what)
{
    struct cuda *cuda = cuda_of(k);
    cudaFuncAttributes made = {};

    for (size_t i = 0; i < cuda->n_kernels; i++)
        if (cuda->kernels[i] == kernel)
            return;
    cuda_check(k, cudaFuncGetAttributes(&made, kernel), what);
    cuda_check(k,
               cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    (int)(cuda->shared_max - made.sharedSizeBytes)),
               what);
    if (cuda->n_kernels < CUDA_KERNELS_MAX) /* more would be prepared at each launch */
        cuda->kernels[cuda->n_kernels++] = kernel;
}

static enum status cuda_report(struct kern *kern, struct error *err)
{
    struct cuda *cuda = cuda_of(kern);

    if (cuda->failed[0] == '\0')
        return ST_OK;
    return FAIL(err, ST_DEVICE, "%s failed in %s; this process cannot use the GPU any more", kern->name, cuda->failed);
}

/* ---- open and close ---- */

/* Travels as a kernel's argument. */
struct small_bytes {
    unsigned char b[KERN_SMALL_UPLOAD];
};

__global__ static void small_upload_k(unsigned char *dst, const __grid_constant__ struct small_bytes bytes, int n)
{
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        dst[i] = bytes.b[i];
}

static enum status cuda_open_failed(struct error *err, int ordinal, const char *what, const char *why)
{
    cudaGetLastError(); /* not for the next launch of this thread to find */
    return FAIL(err, ST_DEVICE, "opening CUDA device %d: %s: %s; see `trawl doctor`, or use train.device = cpu",
                ordinal, what, why);
}

static void cuda_close(struct kern *kern)
{
    struct cuda *cuda = cuda_of(kern);

    cuda_lt_wait(cuda->lt, cuda->failed[0] != '\0');
    if (cuda->failed[0] != '\0') { /* a hung device would keep us here for ever; the process has to end anyway */
        mem_free(cuda);
        return;
    }
    cuda_convs_destroy(cuda->convs);
    cuda_matmuls_destroy(cuda->matmuls);
    if (cuda->tickets != NULL)
        cudaFree(cuda->tickets);
    if (cuda->partials != NULL)
        cudaFree(cuda->partials);
    if (cuda->workspace != NULL)
        cudaFree(cuda->workspace);
    if (cuda->solo != NULL)
        cudaStreamDestroy(cuda->solo);
    if (cuda->forked != NULL)
        cudaEventDestroy(cuda->forked);
    if (cuda->joined != NULL)
        cudaEventDestroy(cuda->joined);
    if (cuda->beside.stream != NULL)
        cudaStreamDestroy(cuda->beside.stream);
    if (cuda->stream != NULL)
        cudaStreamDestroy(cuda->stream);
    mem_free(cuda);
}

static enum status cuda_open(struct kern *kern, const struct kern_settings *settings, struct error *err)
{
    struct cuda *cuda = (struct cuda *)mem_alloc(sizeof *cuda);
    double from_s = clock_mono_s();
    uint64_t keep = UINT64_MAX;
    struct cudaFuncAttributes made;
    struct cudaDeviceProp prop;
    cudaError_t code;

    kern->impl = cuda;
    cuda->ordinal = settings->ordinal;
    cuda->n_threads = settings->n_threads;
    cuda->lt = cuda_lt_start(cuda->ordinal, settings->large_layers);
    code = cudaSetDevice(cuda->ordinal);
    kern_part_end(kern, "context", &from_s);
    if (code == cudaSuccess)
        code = cudaGetDeviceProperties(&prop, cuda->ordinal);
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&cuda->stream, cudaStreamNonBlocking, -1); /* before `solo` */
    if (code == cudaSuccess)
        code = cudaStreamCreateWithPriority(&cuda->beside.stream, cudaStreamNonBlocking, 0);
    if (code == cudaSuccess)
        code = cudaEventCreateWithFlags(&cuda->forked, cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = cudaEventCreateWithFlags(&cuda->joined, cudaEventDisableTiming);
    if (code == cudaSuccess)
        code = cudaDeviceGetDefaultMemPool(&cuda->pool, cuda->ordinal);
    if (code == cudaSuccess)
        code = cudaMemPoolSetAttribute(cuda->pool, cudaMemPoolAttrReleaseThreshold, &keep);
    if (code == cudaSuccess)
        code = cudaMalloc(&cuda->workspace, CUDA_WORKSPACE_BYTES);
    if (code == cudaSuccess) /* NaN, should anything be read before it is written */
        code = cudaMemsetAsync(cuda->workspace, 0xff, CUDA_WORKSPACE_BYTES, cuda->stream);
    if (code == cudaSuccess)
        code = cudaMalloc(&cuda->partials, 2 * CUDA_PARTIALS_BYTES);
    if (code == cudaSuccess)
        code = cudaMalloc(&cuda->tickets, 2 * CUDA_TICKETS * sizeof *cuda->tickets);
    if (code == cudaSuccess)
        code = cudaMemsetAsync(cuda->tickets, 0, 2 * CUDA_TICKETS * sizeof *cuda->tickets, cuda->stream);
    if (code == cudaSuccess)
        code = cudaFuncGetAttributes(&made, small_upload_k);
    kern_part_end(kern, "memory", &from_s);
    if (code != cudaSuccess) {
        cuda_close(kern);
        return cuda_open_failed(err, settings->ordinal, cudaGetErrorName(code), cudaGetErrorString(code));
    }
    cuda->beside.partials = (char *)cuda->partials + CUDA_PARTIALS_BYTES;
    cuda->beside.tickets = cuda->tickets + CUDA_TICKETS;
    cuda->matmuls = cuda_matmuls_create();
    cuda->n_sm = prop.multiProcessorCount;
    cuda->made_for = made.binaryVersion;
    cuda->has_clusters = prop.major >= 9;
    cuda->shared_max = prop.sharedMemPerBlockOptin;
    cuda->patience_s = settings->patience_s > 0.0 ? settings->patience_s : CUDA_PATIENCE_S;
    kern->n_threads = 1;
    kern->memory_bytes = prop.totalGlobalMem;
    kern->block_tokens = 0;
    snprintf(cuda->card, sizeof cuda->card, "%s", prop.name);
    snprintf(kern->name, sizeof kern->name, "%.200s%s", prop.name, cuda_lt_limits(cuda->lt));
    kern_part_end(kern, "name", &from_s);
    return ST_OK;
}

/* ---- memory and transfers ---- */

/* Free on the device, and what the pool holds for us. */
static size_t cuda_memory_bytes(const struct kern *kern)
{
    struct cuda *cuda = cuda_of(kern);
    size_t unused = 0, all = 0;
    uint64_t reserved = 0, used = 0;

    if (cudaMemGetInfo(&unused, &all) != cudaSuccess ||
        cudaMemPoolGetAttribute(cuda->pool, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess ||
        cudaMemPoolGetAttribute(cuda->pool, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess) {
        cudaGetLastError();
        return kern->memory_bytes;
    }
    return unused + (size_t)(reserved - used);
}

/* The pool is the process's, however many lanes have opened the device; each lane has its own workspace. */
static size_t cuda_memory_held_bytes(const struct kern *kern)
{
    uint64_t reserved = 0;

    if (cudaMemPoolGetAttribute(cuda_of(kern)->pool, cudaMemPoolAttrReservedMemCurrent, &reserved) != cudaSuccess)
        cudaGetLastError();
    return (size_t)reserved;
}

static void *cuda_alloc(struct kern *kern, size_t bytes)
{
    struct cuda *cuda = cuda_of(kern);
    void *mem = NULL;

    bytes = bytes > 0 ? bytes : 1;
    if (cudaMallocFromPoolAsync(&mem, bytes, cuda->pool, cuda->stream) != cudaSuccess) {
        cudaGetLastError(); /* not sticky: too large is for the caller to report */
        return NULL;
    }
    cuda_check(kern, cudaMemsetAsync(mem, 0, bytes, cuda->stream), "zeroing memory");
    return mem;
}

static void cuda_free(struct kern *kern, void *mem)
{
    if (cuda_of(kern)->failed[0] != '\0')
        return;
    cuda_check(kern, cudaFreeAsync(mem, cuda_of(kern)->stream), "freeing memory");
}

/* Waits for the event, else (NULL) for everything. Looks in place of a blind wait, so that a kernel that never ends is
 * noticed, also one that waits for another rank's. */
static void cuda_look(struct kern *kern, cudaEvent_t event, const char *what)
{
    struct cuda *cuda = cuda_of(kern);
    double start_s = clock_mono_s(), passed_s;
    char why[96];

    while (cuda->failed[0] == '\0') {
        cudaError_t code = event != NULL ? cudaEventQuery(event) : cudaStreamQuery(cuda->stream);
        if (code != cudaErrorNotReady) {
            cuda_check(kern, code, what);
            cudaGetLastError(); /* "not ready" counts as the last error, which is no launch's */
            return;
        }
        passed_s = clock_mono_s() - start_s;
        if (passed_s > cuda->patience_s) {
            snprintf(why, sizeof why, "nothing has finished for %.3g s; a kernel hangs", passed_s);
            cuda_fail(kern, what, why);
        }
        if (kern->ranks != NULL && kern_ranks_aborted(kern->ranks))
            cuda_fail(kern, what, "another rank failed, for which it waited");
        if (passed_s > WAIT_SPIN_S)
            usleep(WAIT_NAP_US);
    }
}

static void cuda_wait(struct kern *kern, cudaEvent_t event, const char *what)
{
    if (kern->ranks != NULL)
        kern_ranks_wait(kern->ranks, kern->rank, true);
    cuda_look(kern, event, what);
    if (kern->ranks != NULL)
        kern_ranks_wait(kern->ranks, kern->rank, false);
}

static enum status cuda_use(struct kern *kern, struct error *err)
{
    cuda_check(kern, cudaSetDevice(cuda_of(kern)->ordinal), "choosing the device");
    return cuda_report(kern, err);
}

static bool cuda_is_lost(const struct kern *kern)
{
    return cuda_of(kern)->failed[0] != '\0';
}

static enum status cuda_sync(struct kern *kern, struct error *err)
{
    cuda_wait(kern, NULL, "waiting for the device");
    return cuda_report(kern, err);
}

static enum status cuda_upload(struct kern *kern, void *dst, const void *src, size_t bytes, struct error *err)
{
    cudaStream_t stream = cuda_of(kern)->stream;
    struct small_bytes small;

    if (bytes > KERN_SMALL_UPLOAD) {
        cuda_check(kern, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyHostToDevice, stream), "upload");
    } else if (bytes > 0) {
        memcpy(small.b, src, bytes);
        small_upload_k<<<1, 128, 0, stream>>>((unsigned char *)dst, small, (int)bytes);
        cuda_launched(kern, "upload");
    }
    return cuda_report(kern, err);
}

static enum status cuda_download(struct kern *kern, void *dst, const void *src, size_t bytes, struct error *err)
{
    if (bytes > 0)
        cuda_check(kern, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDeviceToHost, cuda_of(kern)->stream), "download");
    return cuda_sync(kern, err);
}

/* ---- read-backs ---- */

struct kern_slot {
    size_t bytes;
    void *mem; /* (bytes) pinned */
    cudaEvent_t taken;
    const volatile uint64_t *flag; /* in mem; not NULL: the device sets it in place of the event */
    double begun_s, usual_s; /* when it was last expected, and how long that took before */
};

static void cuda_slot_destroy(struct kern *kern, struct kern_slot *slot)
{
    if (cuda_of(kern)->failed[0] == '\0') {
        if (slot->taken != NULL)
            cuda_check(kern, cudaEventDestroy(slot->taken), "destroying an event");
        if (slot->mem != NULL)
            cuda_check(kern, cudaFreeHost(slot->mem), "freeing pinned memory");
    }
    mem_free(slot);
}

static enum status cuda_slot_create(struct kern *kern, struct kern_slot **ret_slot, size_t bytes, struct error *err)
{
    struct kern_slot *slot = (struct kern_slot *)mem_alloc(sizeof *slot);

    slot->bytes = bytes;
    if (cudaMallocHost(&slot->mem, bytes > 0 ? bytes : 1) != cudaSuccess ||
        cudaEventCreateWithFlags(&slot->taken, cudaEventDisableTiming) != cudaSuccess) {
        cudaGetLastError();
        cuda_slot_destroy(kern, slot);
        return FAIL(err, ST_NOMEM, "no pinned host memory for %zu bytes; see ulimit -l", bytes);
    }
    *ret_slot = slot;
    return ST_OK;
}

void *cuda_slot_memory(struct kern_slot *slot)
{
    return slot->mem;
}

void cuda_slot_expect(struct kern_slot *slot, volatile uint64_t *flag)
{
    *flag = 0;
    slot->flag = flag;
    slot->begun_s = clock_mono_s();
}

static enum status cuda_slot_take(struct kern *kern, struct kern_slot *slot, const void *src, struct error *err)
{
    cudaStream_t stream = cuda_of(kern)->stream;

    cuda_check(kern, cudaMemcpyAsync(slot->mem, src, slot->bytes, cudaMemcpyDeviceToHost, stream), "read-back");
    cuda_check(kern, cudaEventRecord(slot->taken, stream), "read-back");
    return cuda_report(kern, err);
}

/* Hundreds of threads may wait at a time, each for a kernel of milliseconds: each sleeps for most of what the last one
 * took, and asks the driver, which has one lock, now and then only. */
static void cuda_look_flag(struct kern *kern, struct kern_slot *slot)
{
    struct cuda *cuda = cuda_of(kern);
    double passed_s, asked_s = 0.0;
    int naps = 0;

    for (; cuda->failed[0] == '\0' && __atomic_load_n(slot->flag, __ATOMIC_ACQUIRE) == 0; naps++) {
        passed_s = clock_mono_s() - slot->begun_s;
        if (passed_s > cuda->patience_s)
            cuda_fail(kern, "waiting for a training", "nothing has finished for too long; a kernel hangs");
        if (passed_s - asked_s > 0.05) {
            cudaError_t code = cudaStreamQuery(cuda->solo);
            asked_s = passed_s;
            if (code != cudaErrorNotReady)
                cuda_check(kern, code, "training");
            cudaGetLastError();
        }
        const double early_s = 0.95 * slot->usual_s - passed_s;
        usleep(early_s > 0.0 ? (useconds_t)(1e6 * early_s) : (useconds_t)(WAIT_NAP_US + 1e6 * passed_s / 64.0));
    }
    passed_s = clock_mono_s() - slot->begun_s;
    if (naps > 0) /* after one nap it may have ended long ago: the next wait looks earlier */
        slot->usual_s = naps > 1 ? passed_s : passed_s / 2.0;
}

static enum status cuda_slot_wait(struct kern *kern, struct kern_slot *slot, const void **ret_bytes, struct error *err)
{
    if (slot->flag != NULL)
        cuda_look_flag(kern, slot);
    else
        cuda_wait(kern, slot->taken, "waiting for a read-back");
    *ret_bytes = slot->mem;
    return cuda_report(kern, err);
}

__global__ static void mark_k(uint64_t *ns)
{
    *ns = ptx_clock_ns();
}

void cuda_mark(struct kern *k, uint64_t *ns)
{
    mark_k<<<1, 1, 0, cuda_of(k)->stream>>>(ns);
    cuda_launched(k, "mark");
}

static size_t cuda_n_shards(const struct kern *kern)
{
    (void)kern;
    return 1;
}

static void cuda_each_shard(struct kern *kern, kern_shard_fn *fn, void *ctx)
{
    fn(ctx, kern, 0);
}

/* ---- operations beside others ---- */

static void cuda_fork(struct kern *kern)
{
    struct cuda *cuda = cuda_of(kern);

    cuda_check(kern, cudaEventRecord(cuda->forked, cuda->stream), "fork");
    cuda_check(kern, cudaStreamWaitEvent(cuda->beside.stream, cuda->forked, 0), "fork");
    if (cuda->recording && cuda->has_joined) { /* what was aside before lies in the stream's past: no edges to it */
        enum cudaStreamCaptureStatus status;
        const cudaGraphNode_t *nodes = NULL;
        const cudaGraphEdgeData *edges = NULL;
        size_t n = 0;
        cuda_check(kern, cudaStreamGetCaptureInfo(cuda->stream, &status, NULL, NULL, &nodes, &edges, &n), "fork");
        cuda_check(kern,
                   cudaStreamUpdateCaptureDependencies(cuda->beside.stream, (cudaGraphNode_t *)nodes, edges, n,
                                                       cudaStreamSetCaptureDependencies),
                   "fork");
    }
    cuda->has_joined = false;
}

static void cuda_aside(struct kern *kern, bool on)
{
    struct cuda *cuda = cuda_of(kern);
    const struct cuda_beside now = {cuda->stream, cuda->partials, cuda->tickets};

    if (on == cuda->is_aside)
        return;
    cuda->unchained = true;
    cuda->stream = cuda->beside.stream;
    cuda->partials = cuda->beside.partials;
    cuda->tickets = cuda->beside.tickets;
    cuda->beside = now;
    cuda->is_aside = on;
}

static void cuda_join(struct kern *kern)
{
    struct cuda *cuda = cuda_of(kern);

    cuda_check(kern, cudaEventRecord(cuda->joined, cuda->beside.stream), "join");
    cuda_check(kern, cudaStreamWaitEvent(cuda->stream, cuda->joined, 0), "join");
    cuda->has_joined = cuda->unchained = true;
}

/* ---- recorded graphs ---- */

struct kern_graph {
    cudaGraphExec_t exec;
};

static enum status cuda_record_begin(struct kern *kern, struct error *err)
{
    struct cuda *cuda = cuda_of(kern);

    cuda_check(kern, cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal), "recording");
    cuda->recording = true;
    return cuda_report(kern, err);
}

static enum status cuda_record_end(struct kern *kern, struct kern_graph **ret_graph, struct error *err)
{
    struct cuda *cuda = cuda_of(kern);
    struct kern_graph *graph = (struct kern_graph *)mem_alloc(sizeof *graph);
    cudaGraph_t nodes = NULL;

    cuda->recording = false;
    cuda_check(kern, cudaStreamEndCapture(cuda->stream, &nodes), "the end of recording");
    if (nodes != NULL) {
        cuda_check(kern, cudaGraphInstantiate(&graph->exec, nodes, 0), "making a graph");
        cudaGraphDestroy(nodes);
    }
    if (cuda_report(kern, err) != ST_OK) {
        mem_free(graph);
        return ST_DEVICE;
    }
    *ret_graph = graph;
    return ST_OK;
}

static enum status cuda_replay(struct kern *kern, struct kern_graph *graph, struct error *err)
{
    cuda_check(kern, cudaGraphLaunch(graph->exec, cuda_of(kern)->stream), "launching a graph");
    return cuda_report(kern, err);
}

static void cuda_graph_destroy(struct kern *kern, struct kern_graph *graph)
{
    if (cuda_of(kern)->failed[0] == '\0')
        cuda_check(kern, cudaGraphExecDestroy(graph->exec), "destroying a graph");
    mem_free(graph);
}

/* ---- tables ---- */

#define ROW(name) .name = cuda_##name,
#define ROW_F32(name) .name = cuda_##name##_f32,
#define ROW_BF16(name) .name = cuda_##name##_bf16,
static const struct kern_ops cuda_ops_f32 = {
    .name = "cuda f32", .act_size = 4, ROW_F32(weights_cast) ROW_F32(rollout) ROW_F32(solo) KERN_EACH_OP(ROW_F32, ROW)};
static size_t cuda_wide_bytes(const struct kern *k)
{
    (void)k;
    return CUDA_WIDE_BYTES;
}

static const struct kern_ops cuda_ops_bf16 = {.name = "cuda bf16",
                                              .act_size = 2,
                                              ROW_BF16(weights_cast) ROW_BF16(rollout) ROW_BF16(solo)
                                                  KERN_EACH_OP(ROW_BF16, ROW)};

extern "C" const struct kern_device cuda_device = {
    .kind = KERN_CUDA,
    .ops = {&cuda_ops_f32, &cuda_ops_bf16},
    .open = cuda_open,
    .close = cuda_close,
    .memory_bytes = cuda_memory_bytes,
    .memory_held_bytes = cuda_memory_held_bytes,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .sync = cuda_sync,
    .is_lost = cuda_is_lost,
    .slot_create = cuda_slot_create,
    .slot_destroy = cuda_slot_destroy,
    .slot_take = cuda_slot_take,
    .slot_wait = cuda_slot_wait,
    .n_shards = cuda_n_shards,
    .conv_scratch_bytes = NULL, /* it uses the workspace */
    .wide_bytes = cuda_wide_bytes,
    .each_shard = cuda_each_shard,
    .fork = cuda_fork,
    .aside = cuda_aside,
    .join = cuda_join,
    .record_begin = cuda_record_begin,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .graph_destroy = cuda_graph_destroy,
    .use = cuda_use,
    .ranks_join = cuda_ranks_join,
    .ranks_leave = cuda_ranks_leave,
    .env_create = cuda_env_create,
    .env_destroy = cuda_env_destroy,
    .env_restart = cuda_env_restart,
    .env_take_log = cuda_env_take_log,
    .env_outside_s = cuda_env_outside_s,
    .env_take_numbers = cuda_env_take_numbers,
    .env_state_bytes = cuda_env_state_bytes,
    .env_save = cuda_env_save,
    .env_load = cuda_env_load,
};
