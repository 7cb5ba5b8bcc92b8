/* signals.h - a clean stop on SIGINT, SIGTERM and SIGHUP. */
#ifndef SWEEP_SIGNALS_H
#define SWEEP_SIGNALS_H

#include <stdbool.h>

/* SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 ask to stop; another two seconds later or more ends the program at once. */
void signals_catch(void);
bool signals_stop(void); /* has one come? */

#endif
