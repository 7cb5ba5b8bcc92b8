/* card_limits.c - power limit and clock of a GPU, from libnvidia-ml, which comes with the driver and not with the
 * toolkit: so it is opened at run time and declared here.
 * Invariant: whatever is missing or fails there gives an empty text, and no other effect. */
#include "kernels/card_limits.h"
#include "base/base.h"

#include <dlfcn.h>

#define NVML_CLOCK_SM 1

typedef int nvml_init_fn(void);
typedef int nvml_handle_fn(const char *pci, void **ret_device);
typedef int nvml_power_fn(void *device, unsigned *ret_milliwatts);
typedef int nvml_clock_fn(void *device, int type, unsigned *ret_mhz);

/* The address of a function of the library, as one. */
#define TAKE(fn, name)                                                                                                 \
    do {                                                                                                               \
        void *at_ = dlsym(library, name);                                                                              \
        memcpy(&(fn), &at_, sizeof at_);                                                                               \
    } while (0)

static void read_limits(void *library, const char *pci, char *buf, size_t size)
{
    nvml_init_fn *init, *leave;
    nvml_handle_fn *handle;
    nvml_power_fn *power;
    nvml_clock_fn *clock;
    unsigned milliwatts = 0, mhz = 0;
    void *device = NULL;

    TAKE(init, "nvmlInit_v2");
    TAKE(leave, "nvmlShutdown");
    TAKE(handle, "nvmlDeviceGetHandleByPciBusId_v2");
    TAKE(power, "nvmlDeviceGetEnforcedPowerLimit");
    TAKE(clock, "nvmlDeviceGetMaxClockInfo");
    if (init == NULL || leave == NULL || handle == NULL || power == NULL || clock == NULL || init() != 0)
        return;
    if (handle(pci, &device) == 0 && power(device, &milliwatts) == 0 && clock(device, NVML_CLOCK_SM, &mhz) == 0)
        snprintf(buf, size, " (%u W, %u MHz)", (milliwatts + 500) / 1000, mhz);
    (void)leave();
}

void card_limits(const char *pci, char *buf, size_t size)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

    buf[0] = '\0';
    if (library == NULL)
        return;
    read_limits(library, pci, buf, size);
    dlclose(library);
}
