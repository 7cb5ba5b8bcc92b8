/* bench_commands.h - the commands of trawl-bench. argv[0] is the command's name; results go to stdout. */
#pragma once

#include "base/base.h"

enum status bench_kernels(int argc, char **argv, struct error *err) MUST_USE; /* bench/kernels/bench_kernels.c */
enum status bench_sweep(int argc, char **argv, struct error *err) MUST_USE; /* bench/sweep/bench_sweep.c */
enum status bench_front(int argc, char **argv, struct error *err) MUST_USE; /* bench/sweep/bench_sweep.c */
enum status bench_promise(int argc, char **argv, struct error *err) MUST_USE; /* bench/sweep/bench_promise.c */
enum status bench_evaluate(int argc, char **argv, struct error *err) MUST_USE; /* bench/sweep/bench_evaluate.c */
