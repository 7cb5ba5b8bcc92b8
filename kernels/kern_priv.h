/* kern_priv.h - what a backend gives to kern.c (private to kernels/).
 *
 * A backend is one struct kern_device: the functions that kern_open, kern_alloc, kern_env_create and so on call, beside
 * its table of operations. kern.c picks the backend; it knows nothing of threads or streams.
 *   cpu/   cpu_device, always there
 *   cuda/  cuda_device, in builds with the CUDA toolkit; probe.cu answers `trawl doctor`
 * A backend keeps its own data in kern->impl. */
#ifndef KERNELS_KERN_PRIV_H
#define KERNELS_KERN_PRIV_H

#include "kernels/kernels.h"

/* Muon's scratch: sides are padded to a multiple of KERN_MUON_PAD, X X^T comes in KERN_MUON_SPLITS parts. */
#define KERN_MUON_PAD 64
#define KERN_MUON_SPLITS 4

extern const struct kern_device cpu_device;

#ifdef TRAWL_HAVE_CUDA
/* cuda/probe.cu: true when a device answers; text is its description, or the reason why none does. */
bool cuda_probe(char *ret_text, size_t size);
int cuda_count(void);
size_t cuda_facts(struct kern_fact *ret_facts, size_t n_max); /* cuda/facts.cu */
extern const struct kern_device cuda_device; /* cuda/device.cu */
#endif

#endif
