/* serve_hooks.h - what `trawl serve` gives to web/: everything that needs the game, the config or the models. */
#ifndef SWEEP_SERVE_HOOKS_H
#define SWEEP_SERVE_HOOKS_H

#include "sweep/control.h"

struct serve_ctx { /* read-only once the server runs */
    const char *store_path;
};
void serve_hooks_fill(struct serve_hooks *ret_hooks, struct serve_ctx *ctx);

#endif
