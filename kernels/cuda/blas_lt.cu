/* blas_lt.cu - see blas_lt.h. Each device is opened once a process, for all of its lanes: asking NVML takes tens of
 * milliseconds. Invariant: until the thread has posted `named` it alone touches the limits; `lock` guards the rest. */
#include "kernels/cuda/blas_lt.h"

#include <pthread.h>
#include <semaphore.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "kernels/card_limits.h"
#ifdef __cplusplus
}
#endif

#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x

struct blas_lt blas_lt;
static struct late_library library = {"libcublasLt.so." TEXT(CUBLAS_VER_MAJOR),
                                      "libcublas",
                                      BLAS_LT_EACH(LATE_NAME),
                                      &blas_lt,
                                      false,
                                      TEXT(TRAWL_CUDA_LIBRARIES)};

struct cuda_lt {
    struct cuda_lt *next;
    cublasLtHandle_t handle;
    pthread_t thread;
    sem_t named;
    int ordinal;
    bool running, ahead;
    char pci[32], limits[48];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_lt *opened; /* until the process ends, as cuBLASLt itself */

enum status blas_lt_open(struct error *err)
{
    return late_open(&library, err);
}

static void *open_library(void *unused)
{
    (void)unused;
    (void)!blas_lt_open(NULL); /* whoever needs it calls this again and gets the error */
    return NULL;
}

static void open_library_ahead(void)
{
    pthread_t thread;
    int driver = 0;

    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
        return;
    if (pthread_create(&thread, NULL, open_library, NULL) == 0)
        pthread_detach(thread);
}

extern "C" void cuda_open_ahead(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, open_library_ahead);
}

/* ---- the thread ---- */

static void *load(void *at)
{
    struct cuda_lt *own = (struct cuda_lt *)at;

    card_limits(own->pci, own->limits, sizeof own->limits);
    sem_post(&own->named);
    return own->ahead ? open_library(NULL) : NULL;
}

/* With the lock held. */
static struct cuda_lt *start(int ordinal, bool ahead)
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

extern "C" struct cuda_lt *cuda_lt_start(int ordinal, bool ahead)
{
    struct cuda_lt *own;

    pthread_mutex_lock(&lock);
    for (own = opened; own != NULL && own->ordinal != ordinal;)
        own = own->next;
    if (own == NULL)
        own = start(ordinal, ahead);
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
static cublasLtHandle_t open_handle(struct kern *k, struct cuda_lt *own)
{
    struct error err = {};
    cublasStatus_t code;

    if (own->handle != NULL)
        return own->handle;
    wait_loaded(own);
    if (blas_lt_open(&err) != ST_OK) {
        cuda_fail(k, "opening cuBLASLt", err.text);
        return NULL;
    }
    code = blas_lt.Create(&own->handle);
    if (code != CUBLAS_STATUS_SUCCESS) {
        cuda_fail(k, "opening cuBLASLt", blas_lt.GetStatusString(code));
        own->handle = NULL;
    }
    return own->handle;
}

cublasLtHandle_t blas_lt_of(struct kern *k)
{
    cublasLtHandle_t handle;

    pthread_mutex_lock(&lock);
    handle = open_handle(k, cuda_of(k)->lt);
    pthread_mutex_unlock(&lock);
    return handle;
}

extern "C" void cuda_lt_wait(struct cuda_lt *own, bool lost)
{
    if (lost)
        return;
    pthread_mutex_lock(&lock);
    wait_loaded(own); /* a process does not end in the middle of it */
    pthread_mutex_unlock(&lock);
}
