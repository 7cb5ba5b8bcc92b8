/* signals.h - a clean stop on SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2. State of the process; any thread may
 * ask. */
#pragma once

#include "base/base.h"

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 ask to stop; another two seconds later or more ends the program at once. */
void signals_catch(void);
bool signals_stop(void); /* has a signal asked to stop? */

/* Saves what can be saved while another thread hangs, and writes what became of it. */
typedef void signals_last_fn(void *ctx, char *ret_text, size_t size);
/* The same as signals_catch for a program that plays games in its own thread, which may loop for ever: when nobody has
 * called signals_stop for 10 s after the first request (and for three times its longest pause so far), a thread calls
 * fn (may be NULL) and ends the program. For the whole process, once; ctx lives as long. */
void signals_bound(signals_last_fn *fn, void *ctx);
