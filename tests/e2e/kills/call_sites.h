/* call_sites.h - which places of a program have called something, and how often: for faulty.c.
 * A site is the chain of the SITES_DEPTH (call_sites.c) callers nearest to the call, each as its place in its module's
 * file, so that it is the same in every run of the same files wherever they are loaded. */
#pragma once

#include <stdint.h>

/* Counts a call by whoever called the function of this library that calls this. Gives the site and how many calls of it
 * there were until now, this one with them; 0 when this thread is in here already. Allocates nothing; any thread. */
long sites_count(uint64_t *ret_site);
/* "SITE COUNT FRAMES" lines in the order of the first calls: path+0xOFFSET of the frames, from the call outwards. */
void sites_write(int fd);
