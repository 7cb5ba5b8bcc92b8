/* probe.cu - is there an NVIDIA device that answers? For `trawl doctor`.
 * The runtime is linked statically and opens the driver's libcuda itself when first asked, so that the program starts
 * on a machine that has neither driver nor device. Touches no context: asking costs no device memory. */
#include <cuda_runtime_api.h>

#include <stddef.h>
#include <stdio.h>

extern "C" bool cuda_probe(char *ret_text, size_t size);
extern "C" int cuda_count(void);

static const int built_for[] = {TRAWL_GPU_SMS}; /* compute capabilities, 90 for 9.0 */

/* Device code runs on the same major version from its minor version on. */
static bool has_code_for(const struct cudaDeviceProp *prop)
{
    for (size_t i = 0; i < sizeof built_for / sizeof built_for[0]; i++)
        if (built_for[i] / 10 == prop->major && built_for[i] % 10 <= prop->minor)
            return true;
    return false;
}

static void version_text(char buf[16], int version)
{
    snprintf(buf, 16, "%d.%d", version / 1000, version % 1000 / 10);
}

/* The reason of a failure, with what to do about it. */
static void explain(char *ret_text, size_t size, cudaError_t code, int driver, int runtime)
{
    char have[16], need[16];

    version_text(have, driver);
    version_text(need, runtime);
    if (driver == 0)
        snprintf(ret_text, size, "no NVIDIA driver on this machine (built with CUDA %s); install one to use a GPU",
                 need);
    else if (code == cudaErrorInsufficientDriver)
        snprintf(ret_text, size, "the NVIDIA driver supports CUDA %s, this build needs %s; update the driver", have,
                 need);
    else if (code == cudaErrorNoDevice)
        snprintf(ret_text, size, "a driver for CUDA %s but no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES", have);
    else
        snprintf(ret_text, size, "the GPU does not answer: %s (%s); check nvidia-smi", cudaGetErrorString(code),
                 cudaGetErrorName(code));
}

int cuda_count(void)
{
    int count = 0;

    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

bool cuda_probe(char *ret_text, size_t size)
{
    char have[16], need[16];
    struct cudaDeviceProp prop;
    int driver = 0, runtime = 0, count = 0;
    cudaError_t code;

    cudaRuntimeGetVersion(&runtime);
    code = cudaDriverGetVersion(&driver); /* 0: no driver */
    if (code == cudaSuccess)
        code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && count == 0)
        code = cudaErrorNoDevice;
    if (code == cudaSuccess)
        code = cudaGetDeviceProperties(&prop, 0);
    if (code != cudaSuccess) {
        explain(ret_text, size, code, driver, runtime);
        return false;
    }
    if (!has_code_for(&prop)) {
        snprintf(ret_text, size,
                 "%s has compute capability %d.%d, this build has code for sm_%d; build it with "
                 "meson setup -Dgpu_arch=sm_%d%d",
                 prop.name, prop.major, prop.minor, built_for[0], prop.major, prop.minor);
        return false;
    }
    version_text(have, driver);
    version_text(need, runtime);
    snprintf(ret_text, size, "%s, compute capability %d.%d, %.1f GB, driver CUDA %s, runtime %s, %d device%s",
             prop.name, prop.major, prop.minor, (double)prop.totalGlobalMem / 1e9, have, need, count,
             count == 1 ? "" : "s");
    return true;
}
