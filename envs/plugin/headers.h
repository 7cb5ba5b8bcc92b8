/* headers.h - what `trawl env build` compiles with, held by the program: trawl_env.h, and headers with the names that
 * PufferLib's games include. Made by make_header.py. */
#pragma once

#include <stddef.h>

struct env_header {
    const char *name; /* "trawl_env.h"; may have folders */
    const char *text;
};
extern const struct env_header env_headers[];
extern const size_t env_n_headers;
