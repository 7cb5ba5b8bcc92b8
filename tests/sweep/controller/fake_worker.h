/* fake_worker.h - a worker that trains nothing and goes wrong as its device's name says, for tests of the scheduler. */
#pragma once

/* "ok"; "refuse": does not open; "quit": ends before it greets; or, at the trial of number N, "crash@N", "hang@N"
 * (alive, without progress), "mute@N" (says nothing any more, the first time), "killed@N" (by signal 9), "lost@N" (its
 * device is gone), "garbage@N" (no message), "stubborn@N" (does not stop). "long": trials take for ever, "expensive"
 * and "cheap": they claim to cost much or nothing. */
int fake_worker_main(void);
