/* environment.h - the variables that a process of ours gives to one that is not. */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

#include <stdbool.h>

/* "NAME=VALUE": may it hold a tracker's or a proxy's login? Processes that run games do not get such variables. */
bool environment_is_private(const char *assignment);
/* Ours without these, for exec; the texts are borrowed, the array is the caller's (mem_free). */
char **environment_public(void);

#endif
