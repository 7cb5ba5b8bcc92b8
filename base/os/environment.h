/* environment.h - the environment that Trawl gives to programs that are not its own. */
#pragma once

/* For exec: our environment without the variables that may hold a login to a tracker, a database or a proxy. The texts
 * are borrowed, the array is the caller's (mem_free). */
char **environment_public(void);
