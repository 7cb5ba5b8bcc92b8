/* nccl.cu - ranks on GPUs: sums and rows between the devices of one training by NCCL, a communicator for each device
 * and its thread. The library is loaded when devices first join, so that a program which uses one device does without
 * it. Its work goes to the device's stream like any other and is recorded into graphs with it.
 * Invariant: a rank's communicator is made only when all ranks of its process have loaded the library. */
#include "kernels/cuda/common.h"

#include <stdio.h>
#include <string.h>

extern "C" {
#include "base/os/late.h"
#include "kernels/ranks_priv.h"
}

#ifdef TRAWL_HAVE_NCCL

#include <nccl.h>
#include <stdlib.h>

#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
#define MULTICAST "NCCL_NVLS_ENABLE" /* NVLink's: a partition of a host may lack it, and NCCL then fails or hangs */

#define NCCL_EACH(F)                                                                                                   \
    F(nccl, GetUniqueId)                                                                                               \
    F(nccl, CommInitRank)                                                                                              \
    F(nccl, CommDestroy)                                                                                               \
    F(nccl, GroupStart)                                                                                                \
    F(nccl, GroupEnd)                                                                                                  \
    F(nccl, AllReduce)                                                                                                 \
    F(nccl, AllGather)                                                                                                 \
    F(nccl, GetVersion)                                                                                                \
    F(nccl, GetErrorString)

static struct {
    NCCL_EACH(LATE_CALL)
} nccl;
static struct late_library library = {"libnccl.so." TEXT(NCCL_MAJOR), "libnccl2", NCCL_EACH(LATE_NAME), &nccl, false,
                                      TEXT(TRAWL_CUDA_LIBRARIES)};

static_assert(sizeof(ncclUniqueId) <= KERN_RANKS_ID_MAX, "the id has a place in struct kern_ranks");

extern "C" void cuda_nccl_fact(char *ret_text, size_t size)
{
    struct error why = {};
    int version = 0;

    if (late_open(&library, &why) != ST_OK)
        snprintf(ret_text, size, "not found: %s", why.text);
    else if (nccl.GetVersion(&version) != ncclSuccess)
        snprintf(ret_text, size, "found, but it names no version");
    else
        snprintf(ret_text, size, "%d.%d.%d, joins the GPUs of train.devices", version / 10000, version / 100 % 100,
                 version % 100);
}

static enum status nccl_report(ncclResult_t code, const char *what, struct error *err)
{
    if (code == ncclSuccess)
        return ST_OK;
    return FAIL(err, ST_DEVICE, "NCCL: %s: %s; NCCL_DEBUG=WARN in the environment makes it say why", what,
                nccl.GetErrorString(code));
}

enum status cuda_ranks_join(struct kern *kern, struct error *err)
{
    struct kern_ranks *ranks = kern->ranks;
    struct error why = {};
    ncclComm_t comm;
    ncclUniqueId id;

    if (late_open(&library, &why) != ST_OK)
        return FAIL(err, ST_DEVICE, "train.devices on GPUs needs NCCL: %s, or set train.devices to 1", why.text);
    if (!kern_ranks_meet(ranks, kern->rank))
        return FAIL(err, ST_DEVICE, "another rank failed to start");
    if (kern->rank == 0) {
        setenv(MULTICAST, "0", 0); /* the other ranks wait; a value of the user's stays */
        TRY(nccl_report(nccl.GetUniqueId(&id), "making an id", err));
        memcpy(kern_ranks_id(ranks), &id, sizeof id);
    }
    if (!kern_ranks_share_id(ranks, kern->rank))
        return FAIL(err, ST_DEVICE, "another rank failed to start");
    memcpy(&id, kern_ranks_id(ranks), sizeof id);
    kern_ranks_wait(ranks, kern->rank, true); /* until all have called it */
    TRY(nccl_report(nccl.CommInitRank(&comm, (int)kern_ranks_count(ranks), id, (int)kern->rank), "joining the devices",
                    err));
    kern_ranks_wait(ranks, kern->rank, false);
    cuda_of(kern)->nccl = comm;
    return ST_OK;
}

void cuda_ranks_leave(struct kern *kern)
{
    struct cuda *cuda = cuda_of(kern);

    if (cuda->nccl == NULL)
        return;
    if (cuda->failed[0] == '\0') {
        cuda_check(kern, cudaStreamSynchronize(cuda->stream), "waiting for the device");
        nccl.CommDestroy(cuda->nccl);
    }
    cuda->nccl = NULL;
}

static void exchanged(struct kern *k, ncclResult_t code)
{
    if (code != ncclSuccess)
        cuda_fail(k, "exchange", nccl.GetErrorString(code));
}

void cuda_exchange(struct kern *k, const struct kern_exchange *e)
{
    struct cuda *cuda = cuda_of(k);

    if (kern_ranks_aborted(k->ranks))
        return;
    exchanged(k, nccl.GroupStart());
    if (e->n > 0)
        exchanged(k, nccl.AllReduce(e->sum, e->sum, e->n, ncclFloat32, ncclSum, cuda->nccl, cuda->stream));
    if (e->row_bytes > 0)
        exchanged(k, nccl.AllGather((char *)e->rows + k->rank * e->row_bytes, e->rows, e->row_bytes, ncclUint8,
                                    cuda->nccl, cuda->stream));
    exchanged(k, nccl.GroupEnd());
    cuda->unchained = true; /* NCCL may have made the stream wait for others */
}

#else

extern "C" void cuda_nccl_fact(char *ret_text, size_t size)
{
    snprintf(ret_text, size, "not used: built without nccl.h (it joins the GPUs of train.devices)");
}

enum status cuda_ranks_join(struct kern *kern, struct error *err)
{
    (void)kern;
    return FAIL(err, ST_DEVICE,
                "train.devices on GPUs needs NCCL, and this program was built without its header nccl.h; install "
                "NVIDIA's package libnccl-dev and build it again, or set train.devices to 1");
}

void cuda_ranks_leave(struct kern *kern)
{
    (void)kern;
}

void cuda_exchange(struct kern *k, const struct kern_exchange *e)
{
    (void)e;
    cuda_fail(k, "exchange", "this program was built without NCCL");
}

#endif
