/* nccl.cu - ranks on GPUs: sums and rows between the devices of one training by NCCL, a communicator for each device
 * and its thread. The library is loaded when devices first join, so that a program which uses one device does without
 * it. Its work goes to the device's stream like any other and is recorded into graphs with it.
 * Invariant: a rank's communicator is made only when all ranks of its process have loaded the library. */
#include "kernels/cuda/common.h"

#include <stdio.h>
#include <string.h>

extern "C" {
#include "kernels/ranks_priv.h"
}

#ifdef TRAWL_HAVE_NCCL

#include <dlfcn.h>
#include <nccl.h>
#include <stdlib.h>

#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
#define LIBRARY "libnccl.so." TEXT(NCCL_MAJOR)
#define MULTICAST "NCCL_NVLS_ENABLE" /* NVLink's: a partition of a host may lack it, and NCCL then fails or hangs */

#define NCCL_EACH(F)                                                                                                   \
    F(GetUniqueId)                                                                                                     \
    F(CommInitRank)                                                                                                    \
    F(CommDestroy)                                                                                                     \
    F(GroupStart)                                                                                                      \
    F(GroupEnd)                                                                                                        \
    F(AllReduce)                                                                                                       \
    F(AllGather)                                                                                                       \
    F(GetVersion)                                                                                                      \
    F(GetErrorString)

struct cuda_nccl {
#define MEMBER(name) decltype(&nccl##name) name;
    NCCL_EACH(MEMBER)
#undef MEMBER
    ncclComm_t comm; /* NULL: none was made */
};

static_assert(sizeof(ncclUniqueId) <= KERN_RANKS_ID_MAX, "the id has a place in struct kern_ranks");

static enum status nccl_load(struct cuda_nccl *nccl, struct error *err)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *at;

    if (library == NULL) /* where it was when this program was built */
        library = dlopen(TEXT(TRAWL_CUDA_LIBRARIES) "/" LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return FAIL(
            err, ST_DEVICE,
            "train.devices on GPUs needs NCCL: %s; install it (NVIDIA's package libnccl2), or set train.devices "
            "to 1",
            dlerror());
#define TAKE(name)                                                                                                     \
    at = dlsym(library, "nccl" #name);                                                                                 \
    if (at == NULL)                                                                                                    \
        return FAIL(err, ST_DEVICE, LIBRARY " has no nccl" #name "; install the package libnccl2 again");              \
    memcpy(&nccl->name, &at, sizeof at);
    NCCL_EACH(TAKE)
#undef TAKE
    return ST_OK;
}

extern "C" void cuda_nccl_fact(char *ret_text, size_t size)
{
    struct cuda_nccl nccl = {};
    struct error why = {};
    int version = 0;

    if (nccl_load(&nccl, &why) != ST_OK)
        snprintf(ret_text, size, "not found: %s", why.text);
    else if (nccl.GetVersion(&version) != ncclSuccess)
        snprintf(ret_text, size, "found, but it names no version");
    else
        snprintf(ret_text, size, "%d.%d.%d, joins the GPUs of train.devices", version / 10000, version / 100 % 100,
                 version % 100);
}

static enum status nccl_report(const struct cuda_nccl *nccl, ncclResult_t code, const char *what, struct error *err)
{
    if (code == ncclSuccess)
        return ST_OK;
    return FAIL(err, ST_DEVICE, "NCCL: %s: %s; NCCL_DEBUG=WARN in the environment makes it say why", what,
                nccl->GetErrorString(code));
}

static enum status nccl_open(struct kern *kern, struct cuda_nccl *nccl, struct error *err)
{
    struct kern_ranks *ranks = kern->ranks;
    ncclUniqueId id;

    TRY(nccl_load(nccl, err));
    if (!kern_ranks_meet(ranks, kern->rank))
        return FAIL(err, ST_DEVICE, "another rank failed to start");
    if (kern->rank == 0) {
        setenv(MULTICAST, "0", 0); /* the other ranks wait; a value of the user's stays */
        TRY(nccl_report(nccl, nccl->GetUniqueId(&id), "making an id", err));
        memcpy(kern_ranks_id(ranks), &id, sizeof id);
    }
    if (!kern_ranks_share_id(ranks, kern->rank))
        return FAIL(err, ST_DEVICE, "another rank failed to start");
    memcpy(&id, kern_ranks_id(ranks), sizeof id);
    kern_ranks_wait(ranks, kern->rank, true); /* until all have called it */
    TRY(nccl_report(nccl, nccl->CommInitRank(&nccl->comm, (int)kern_ranks_count(ranks), id, (int)kern->rank),
                    "joining the devices", err));
    kern_ranks_wait(ranks, kern->rank, false);
    return ST_OK;
}

enum status cuda_ranks_join(struct kern *kern, struct error *err)
{
    struct cuda_nccl *nccl = (struct cuda_nccl *)mem_alloc(sizeof *nccl);
    enum status rc = nccl_open(kern, nccl, err);

    if (rc != ST_OK) {
        mem_free(nccl);
        return rc;
    }
    cuda_of(kern)->nccl = nccl;
    return ST_OK;
}

void cuda_ranks_leave(struct kern *kern)
{
    struct cuda *cuda = cuda_of(kern);

    if (cuda->nccl == NULL)
        return;
    if (cuda->failed[0] == '\0') {
        cuda_check(kern, cudaStreamSynchronize(cuda->stream), "waiting for the device");
        cuda->nccl->CommDestroy(cuda->nccl->comm);
    }
    mem_free(cuda->nccl);
    cuda->nccl = NULL;
}

static void exchanged(struct kern *k, ncclResult_t code)
{
    if (code != ncclSuccess)
        cuda_fail(k, "exchange", cuda_of(k)->nccl->GetErrorString(code));
}

void cuda_exchange(struct kern *k, const struct kern_exchange *e)
{
    struct cuda *cuda = cuda_of(k);
    struct cuda_nccl *nccl = cuda->nccl;

    if (kern_ranks_aborted(k->ranks))
        return;
    exchanged(k, nccl->GroupStart());
    if (e->n > 0)
        exchanged(k, nccl->AllReduce(e->sum, e->sum, e->n, ncclFloat32, ncclSum, nccl->comm, cuda->stream));
    if (e->row_bytes > 0)
        exchanged(k, nccl->AllGather((char *)e->rows + k->rank * e->row_bytes, e->rows, e->row_bytes, ncclUint8,
                                     nccl->comm, cuda->stream));
    exchanged(k, nccl->GroupEnd());
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
