/* card_limits.h - what a GPU is allowed to do: two cards of one name differ in speed by their power limits and
 * clocks. */
#pragma once

#include <stddef.h>

/* " (700 W, 1980 MHz)": the power limit in force and the highest clock, by the driver's library (NVML); "" where it
 * cannot be had. pci: the card's bus id, as the CUDA runtime writes it. */
void card_limits(const char *pci, char *buf, size_t size);
