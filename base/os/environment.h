/* environment.h - the environment that Trawl gives to programs that are not its own. */
#pragma once

/* For exec: our environment without the variables that may hold a login to a tracker, a database or a proxy; before
 * them `first`, unless it is NULL. The texts are borrowed, the array is the caller's (mem_free). */
char **environment_public(const char *first);
