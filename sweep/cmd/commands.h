/* commands.h - the commands of trawl. Each parses argv (argv[0] is the command's name), prints data to stdout and
 * progress to stderr, and returns its one failure, which main prints. */
#pragma once

#include "sweep/cli.h"

typedef enum status command_fn(int argc, char **argv, struct error *err);
command_fn cmd_train, cmd_eval, cmd_sweep, cmd_ls, cmd_show, cmd_report, cmd_export, cmd_env, cmd_envs, cmd_bench,
    cmd_doctor, cmd_rerun, cmd_serve;
command_fn cmd_control; /* stop, pause, ..., rm: argv[0] says which */
command_fn cmd_try, cmd_gc, cmd_diff, cmd_compare, cmd_import, cmd_sync;
command_fn cmd_agent, cmd_node, cmd_join, cmd_daemon, cmd_check, cmd_backup, cmd_launch, cmd_replay, cmd_migrate;
command_fn cmd_worker; /* hidden: the process that trains for a controller */
command_fn cmd_reference; /* hidden: docs/options.md */
