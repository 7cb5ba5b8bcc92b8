/* blas_lt.cu - see blas_lt.h. Each device is opened once a process, however many lanes it has: asking NVML takes tens of
 * milliseconds. Invariant: until the thread is joined it alone touches the functions and why, and until it has posted
 * `named` the limits; `lock` guards the rest. */
#include "kernels/cuda/blas_lt.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/card_limits.h"
#ifdef __cplusplus
}
#endif

#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
#define LIBRARY "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)

struct cuda_lt {
    struct cuda_lt *next;
    struct blas_lt lt;
    pthread_t thread;
    sem_t named;
    int ordinal;
    bool running, ahead, loaded;
    char pci[32], limits[48];
    char why[160]; /* there is no library */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_lt *opened; /* until the process ends, as cuBLASLt itself */

static void *library_open(void *unused)
{
    void *library = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

    (void)unused;
    if (library == NULL) /* where it was when this program was built */
        library = dlopen(TEXT(TRAWL_CUDA_LIBRARIES) "/" LIBRARY, RTLD_LAZY | RTLD_LOCAL);
    return library;
}

static void library_open_ahead(void)
{
    pthread_t thread;
    int driver = 0;

    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return;
    if (pthread_create(&thread, NULL, library_open, NULL) == 0)
        pthread_detach(thread);
}

extern "C" void cuda_open_ahead(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, library_open_ahead);
}

extern "C" bool blas_lt_load(struct blas_lt *lt, char *why, size_t size)
{
    void *library = library_open(NULL), *at;

    if (library == NULL) {
        snprintf(why, size, "%s", dlerror());
        return false;
    }
#define TAKE(name)                                                                                                     \
    at = dlsym(library, "cublasLt" #name);                                                                             \
    if (at == NULL) {                                                                                                  \
        snprintf(why, size, LIBRARY " has no cublasLt" #name);                                                         \
        return false;                                                                                                  \
    }                                                                                                                  \
    memcpy(&lt->name, &at, sizeof at);
    BLAS_LT_EACH(TAKE)
    return true;
}

/* ---- the thread ---- */

static void *load(void *at)
{
    struct cuda_lt *own = (struct cuda_lt *)at;

    card_limits(own->pci, own->limits, sizeof own->limits);
    sem_post(&own->named);
    own->loaded = own->ahead && blas_lt_load(&own->lt, own->why, sizeof own->why);
    return NULL;
}

/* With the lock held. */
static struct cuda_lt *begin(int ordinal, bool ahead)
{
    struct cuda_lt *own = (struct cuda_lt *)mem_alloc(sizeof *own);

    if (cudaDeviceGetPCIBusId(own->pci, sizeof own->pci, ordinal) != cudaSuccess)
        cudaGetLastError();
    sem_init(&own->named, 0, 0);
    own->ordinal = ordinal;
    own->ahead = ahead;
    own->next = opened;
    opened = own;
    own->running = pthread_create(&own->thread, NULL, load, own) == 0;
    if (!own->running)
        load(own);
    return own;
}

extern "C" struct cuda_lt *cuda_lt_begin(int ordinal, bool ahead)
{
    struct cuda_lt *own;

    pthread_mutex_lock(&lock);
    for (own = opened; own != NULL && own->ordinal != ordinal;)
        own = own->next;
    if (own == NULL)
        own = begin(ordinal, ahead);
    pthread_mutex_unlock(&lock);
    return own;
}

extern "C" const char *cuda_lt_limits(struct cuda_lt *own)
{
    while (sem_wait(&own->named) != 0) /* a signal */
        ;
    sem_post(&own->named);
    return own->limits;
}

/* With the lock held. */
static void wait_loaded(struct cuda_lt *own)
{
    if (own->running)
        pthread_join(own->thread, NULL);
    own->running = false;
}

/* With the lock held. */
static struct blas_lt *open_handle(struct kern *k, struct cuda_lt *own)
{
    cublasStatus_t code;

    if (own->lt.handle != NULL)
        return &own->lt;
    wait_loaded(own);
    if (!own->loaded)
        own->loaded = blas_lt_load(&own->lt, own->why, sizeof own->why);
    if (!own->loaded) {
        cuda_fail(k, "opening cuBLASLt", own->why);
        return NULL;
    }
    code = own->lt.Create(&own->lt.handle);
    if (code != CUBLAS_STATUS_SUCCESS) {
        cuda_fail(k, "opening cuBLASLt", own->lt.GetStatusString(code));
        own->lt.handle = NULL;
        return NULL;
    }
    return &own->lt;
}

extern "C" struct blas_lt *cuda_lt_of(struct kern *k)
{
    struct blas_lt *lt;

    pthread_mutex_lock(&lock);
    lt = open_handle(k, cuda_of(k)->lt);
    pthread_mutex_unlock(&lock);
    return lt;
}

extern "C" void cuda_lt_end(struct cuda_lt *own, bool lost)
{
    if (lost)
        return;
    pthread_mutex_lock(&lock);
    wait_loaded(own); /* a process does not end in the middle of it */
    pthread_mutex_unlock(&lock);
}
