/* environment.c - the variables of a process that trains, and runs games that are not ours. */
#include "base/os/environment.h"
#include "base/base.h"

#include <strings.h>

extern char **environ;

/* "NAME=VALUE": may it hold a login of a tracker, a database or a proxy? */
static bool is_private(const char *assignment)
{
    static const char *const begins[] = {"WANDB_", "MLFLOW_", "TRACKIO_", "HF_", "TRAWL_WEBHOOK_", "NETRC=", "PGPASS"};
    size_t n = strcspn(assignment, "=");

    for (size_t i = 0; i < COUNT(begins); i++)
        if (strncmp(assignment, begins[i], strlen(begins[i])) == 0)
            return true;
    return n >= 6 && strncasecmp(assignment + n - 6, "_proxy", 6) == 0;
}

char **environment_public(const char *first)
{
    size_t n = 0, n_kept = first != NULL;
    char **kept;

    while (environ[n] != NULL)
        n++;
    kept = mem_array(n_kept + n + 1, sizeof *kept);
    kept[0] = (char *)first;
    for (size_t i = 0; i < n; i++)
        if (!is_private(environ[i]))
            kept[n_kept++] = environ[i];
    return kept; /* zeroed: it ends with NULL */
}
