/* signals.h - a clean stop on SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2. State of the process; any thread may
 * ask. */
#ifndef SWEEP_SIGNALS_H
#define SWEEP_SIGNALS_H

#include <stdbool.h>

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 ask to stop; another two seconds later or more ends the program at once. */
void signals_catch(void);
bool signals_stop(void); /* has a signal asked to stop? */

#endif
