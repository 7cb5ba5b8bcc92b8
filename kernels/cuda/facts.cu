/* facts.cu - driver, libraries and devices for `trawl doctor`.
 * Invariant: what does not answer is left out or reported as such; nothing here fails. */
#include "kernels/cuda/blas_lt.h"

#include <cuda_runtime.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

extern "C" {
#include "kernels/kern_priv.h"
__attribute__((weak)) size_t cudnnGetVersion(void); /* there in builds that use cuDNN */
}

struct facts {
    struct kern_fact *rows;
    size_t n, n_max;
};

static void add(struct facts *f, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void add(struct facts *f, const char *key, const char *fmt, ...)
{
    va_list args;

    if (f->n == f->n_max)
        return;
    snprintf(f->rows[f->n].key, sizeof f->rows[f->n].key, "%s", key);
    va_start(args, fmt);
    vsnprintf(f->rows[f->n].text, sizeof f->rows[f->n].text, fmt, args);
    va_end(args);
    f->n++;
}

/* "580.65.06" of the kernel module's "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..." */
static bool module_version(char *ret_text, size_t size)
{
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    char line[256], *save = NULL;
    bool found = false;

    if (file == NULL)
        return false;
    if (fgets(line, sizeof line, file) != NULL)
        for (char *word = strtok_r(line, " \t\n", &save); word != NULL && !found;
             word = strtok_r(NULL, " \t\n", &save)) {
            found = word[0] >= '1' && word[0] <= '9' && strchr(word, '.') != NULL;
            if (found)
                snprintf(ret_text, size, "%s", word);
        }
    fclose(file);
    return found;
}

static void add_libraries(struct facts *f)
{
    char module[64] = "version unknown", fact[256];
    int driver = 0, runtime = 0;
    struct error why = {};

    if (cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0) {
        module_version(module, sizeof module);
        add(f, "cuda_driver", "%s, for CUDA up to %d.%d", module, driver / 1000, driver % 1000 / 10);
    } else {
        add(f, "cuda_driver", "none");
    }
    if (cudaRuntimeGetVersion(&runtime) == cudaSuccess)
        add(f, "cuda_runtime", "%d.%d", runtime / 1000, runtime % 1000 / 10);
    if (blas_lt_open(&why) == ST_OK)
        add(f, "cublas", "%zu.%zu.%zu", blas_lt.GetVersion() / 10000, blas_lt.GetVersion() / 100 % 100,
            blas_lt.GetVersion() % 100);
    else
        add(f, "cublas", "none: %s", why.text);
    if (cudnnGetVersion != NULL) {
        size_t version = cudnnGetVersion();
        add(f, "cudnn", "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    } else {
        add(f, "cudnn", "not used by this build");
    }
    cuda_nccl_fact(fact, sizeof fact);
    add(f, "nccl", "%s", fact);
}

extern "C" size_t cuda_facts(struct kern_fact *ret_facts, size_t n_max)
{
    struct facts f = {ret_facts, 0, n_max};
    int count = 0, now = 0;

    add_libraries(&f);
    if (cudaGetDeviceCount(&count) != cudaSuccess)
        count = 0;
    cudaGetDevice(&now);
    for (int i = 0; i < count; i++) {
        struct cudaDeviceProp prop;
        size_t unused = 0, all = 0;
        char key[16];

        snprintf(key, sizeof key, "gpu%d", i);
        if (cudaGetDeviceProperties(&prop, i) != cudaSuccess || cudaSetDevice(i) != cudaSuccess ||
            cudaMemGetInfo(&unused, &all) != cudaSuccess) {
            add(&f, key, "does not answer: %s", cudaGetErrorString(cudaGetLastError()));
            continue;
        }
        add(&f, key, "%s, compute capability %d.%d, %d SMs, %.1f of %.1f GiB free", prop.name, prop.major, prop.minor,
            prop.multiProcessorCount, (double)unused / (1024.0 * 1024 * 1024), (double)all / (1024.0 * 1024 * 1024));
    }
    if (count > 0)
        cudaSetDevice(now);
    return f.n;
}
