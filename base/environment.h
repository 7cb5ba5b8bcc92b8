/* environment.h - the variables that a process of ours gives to one that is not. */
#ifndef BASE_ENVIRONMENT_H
#define BASE_ENVIRONMENT_H

/* Ours without those that may hold a login of a tracker, a database or a proxy, for exec; the texts are borrowed, the
 * array is the caller's (mem_free). */
char **environment_public(void);

#endif
