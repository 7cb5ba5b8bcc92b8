/* slurm_nodes.h - sweep.launcher = slurm: keeps as many jobs of Slurm as the waiting trials want, each a `trawl node`
 * of the store. The jobs outlive the controller and are found again by their name. The scheduler's thread; no call
 * waits. */
#pragma once

#include "base/base.h"

struct slurm_nodes;
struct sweep_settings;

/* NULL in *ret_nodes: sweep.launcher is none. study: of a sweep, whose jobs in a shared database are apart from those
 * of other controllers; "": a daemon's. */
enum status slurm_nodes_create(struct slurm_nodes **ret_nodes, const struct sweep_settings *settings,
                               const char *store_path, const char *study, struct error *err) MUST_USE;
/* Called now and then. n_trials: that run on nodes or could. NULL is fine. */
void slurm_nodes_round(struct slurm_nodes *nodes, int64_t n_trials, double now_s);
void slurm_nodes_destroy(struct slurm_nodes *nodes); /* cancels the jobs that have not begun; NULL is fine */
