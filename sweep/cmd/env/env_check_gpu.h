/* env_check_gpu.h - the part of `trawl env check` that needs a GPU. */
#pragma once

#include "base/base.h"

struct env_def;

/* Plays a game with device code on host and GPU: every byte of every step, the states and the logs are the same; then
 * its speed there. Prints what it found; false: a fault. A game without device code, and a machine without a GPU, are
 * none. */
bool env_check_gpu(const struct env_def *def, const void *settings, int64_t steps, uint64_t seed, double seconds);
