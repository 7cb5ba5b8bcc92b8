/* fake_nvml.c - stands for libnvidia-ml.so.1: two cards of one name, of which one is held to less power. */
#include <string.h>

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **ret_device);
int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *ret_milliwatts);
int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *ret_mhz);

static const char *const cards[] = {"00000000:04:00.0", "0000:05:00.0", "0000:06:00.0"};
static int n_open;

int nvmlInit_v2(void)
{
    n_open++;
    return 0;
}

int nvmlShutdown(void)
{
    n_open--;
    return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **ret_device)
{
    for (int i = 0; i < 3 && n_open == 1; i++)
        if (strcmp(pci, cards[i]) == 0) {
            *ret_device = (void *)&cards[i];
            return 0;
        }
    return 6; /* not found */
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *ret_milliwatts)
{
    *ret_milliwatts = device == (void *)&cards[0] ? 700000 : 449600;
    return device == (void *)&cards[2] ? 3 : 0; /* not supported */
}

int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned *ret_mhz)
{
    (void)device;
    *ret_mhz = type == 1 ? 1980 : 1;
    return 0;
}
