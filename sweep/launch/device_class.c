/* device_class.c - kinds of devices, and lists of what a second on each counts. */
#include "sweep/launch/device_class.h"

#include "base/config/opt.h"

void device_class_of(const char *device, char buf[DEVICE_CLASS_MAX])
{
    const char *open = NULL, *rest;

    for (const char *at = strstr(device, " ("); at != NULL; at = strstr(at + 1, " ("))
        open = at;
    snprintf(buf, DEVICE_CLASS_MAX, "%s", device);
    if (open == NULL || strspn(open + 2, "0123456789") == 0 || strstr(open, " thread") == NULL)
        return;
    rest = strstr(open, ", "); /* after the number of threads, which a trial's config has */
    if (rest != NULL)
        snprintf(buf, DEVICE_CLASS_MAX, "%.*s (%s", (int)(open - device), device, rest + 2);
    else
        snprintf(buf, DEVICE_CLASS_MAX, "%.*s", (int)(open - device), device);
}

/* The next "NAME=FACTOR" of a list; false: none. */
static bool next_cost(const char **at, char name[OPT_STR_MAX], double *ret_factor)
{
    *at += strspn(*at, ", ");
    size_t n = strcspn(*at, ",");
    if (n == 0)
        return false;
    snprintf(name, OPT_STR_MAX, "%.*s", (int)n, *at);
    *at += n;
    char *equals = strrchr(name, '=');
    *ret_factor = NAN;
    if (equals == NULL || equals == name || !num_parse_f64(equals + 1, ret_factor))
        return true;
    *equals = '\0';
    return true;
}

bool device_costs_is_list(const char *text)
{
    return strcmp(text, DEVICE_COSTS_ALIKE) != 0 && strcmp(text, DEVICE_COSTS_ANY) != 0;
}

enum status device_costs_check(const char *text, struct error *err)
{
    char name[OPT_STR_MAX];
    const char *at = text;
    double factor;
    int n = 0;

    for (; device_costs_is_list(text) && next_cost(&at, name, &factor); n++)
        if (!(factor > 0 && factor <= 1e6))
            return FAIL(err, ST_CONFIG,
                        "sweep.device_costs: '%.60s' is not a NAME=FACTOR with a factor above 0; use alike, any, or a "
                        "list like "
                        "NVIDIA H200=1, NVIDIA A100=0.55",
                        name);
    if (device_costs_is_list(text) && n == 0)
        return FAIL(err, ST_CONFIG,
                    "sweep.device_costs is empty; use alike, any, or a list like NVIDIA H200=1, "
                    "NVIDIA A100=0.55");
    return ST_OK;
}

double device_costs_factor(const char *text, const char *device_class)
{
    char name[OPT_STR_MAX];
    const char *at = text;
    double factor;

    if (!device_costs_is_list(text))
        return 1;
    while (next_cost(&at, name, &factor))
        if (strncmp(device_class, name, strlen(name)) == 0)
            return factor;
    return NAN;
}

double device_costs_scale(const char *text, const char *device_class)
{
    double factor = device_costs_factor(text, device_class);

    return isnan(factor) ? 1 : factor;
}
