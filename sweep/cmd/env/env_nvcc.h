/* env_nvcc.h - the GPU half of `trawl env build`: a game's header compiled by nvcc, with the device code of this
 * program's own games around it (kernels/cuda/play/library_device.cuh). One thread. */
#pragma once

#include "base/base.h"

/* The nvcc that NVCC names, or that of PATH, or of /usr/local/cuda. ST_NOTFOUND: there is none, or this program was
 * built without CUDA and could not run what nvcc makes; err says which. */
enum status env_nvcc_find(char ret_path[PATH_MAX], struct error *err) MUST_USE;
/* NAME of the header becomes FOLDER/device.o; FOLDER has the headers of `trawl env build`. flags: those of the
 * user's. */
enum status env_nvcc_compile(const char *nvcc, const char *header, const char *name, const char *folder,
                             const char *flags, struct error *err) MUST_USE;
/* FOLDER/glue.o and FOLDER/device.o become a library, with a CUDA runtime of its own inside. */
enum status env_nvcc_link(const char *nvcc, const char *folder, const char *out, const char *flags,
                          struct error *err) MUST_USE;
