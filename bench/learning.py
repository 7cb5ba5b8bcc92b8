#!/usr/bin/env python3
"""learning.py - trains the examples with several seeds and says whether they learn what they should, in time.

usage: bench/learning.py [--trawl FILE] [--seeds N] [--threads N] [--jobs N] [--out FILE] [CASE ...]

Prints one Markdown row a case and writes a CSV row a run to --out. The wall time that counts is the run's own cost_s, the
worst of the seeds. Exit code 1 when a case misses its target.

--jobs N runs N seeds at a time, each on --threads cores that it has for itself (Linux).
"""

import argparse
import concurrent.futures
import os
import queue
import statistics
import sys

import measure

# name: config, further options, lowest and highest median perf that is right, seconds that each run may take
CASES = {
    "cartpole": ("examples/cartpole.ini", [], 0.95, 1.0, 30),
    "squared": ("examples/squared.ini", [], 0.95, 1.0, 30),
    "memory": ("examples/memory.ini", [], 0.95, 1.0, 30),
    "memory-no-core": ("examples/memory.ini", ["--policy.core", "none"], 0.45, 0.55, 30),
    "mountain_car": ("examples/mountain_car.ini", [], 0.9, 1.0, 60),
    "pendulum": ("examples/pendulum.ini", [], 0.939, 1.0, 60),  # a return of -200
    "pong": ("examples/pong.ini", [], 0.95, 1.0, 60),
    "breakout": ("examples/breakout.ini", [], 0.95, 1.0, 60),
}


def run_case(arguments, name):
    """Prints its row; whether it met its target, and the runs."""
    config, options, low, high, limit_s = CASES[name]
    cores = queue.Queue()  # sets of them that no run has
    usable = sorted(os.sched_getaffinity(0))
    for job in range(arguments.jobs):
        cores.put(usable if arguments.jobs == 1 else usable[job * arguments.threads:(job + 1) * arguments.threads])

    def run_seed(seed):
        own = cores.get()
        command = ["taskset", "-c", ",".join(map(str, own)), arguments.trawl, "train", config, "--json", "--quiet",
                   "--train.device", "cpu", "--train.seed", str(seed), *options]
        if arguments.threads:
            command += ["--train.threads", str(arguments.threads)]
        run = measure.run_json(command)
        cores.put(own)
        print(f"{name} seed {seed}: perf {run['perf']:.3f} in {run['cost_s']:.1f} s", file=sys.stderr)
        return {"seed": seed, **{key: run[key] for key in ("score", "perf", "env_steps", "cost_s", "steps_per_s")}}

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        runs = list(pool.map(run_seed, range(1, arguments.seeds + 1)))
    perfs, costs, rates = ([run[key] for run in runs] for key in ("perf", "cost_s", "steps_per_s"))
    perf, target = statistics.median(perfs), f"at least {low}" if high == 1.0 else f"{low} to {high}"
    met = low <= perf <= high and max(costs) <= limit_s
    print(f"| {name} | {perf:.3f} ({min(perfs):.3f} to {max(perfs):.3f}) | {target} | {statistics.median(costs):.1f} ({max(costs):.1f}) | {limit_s} | "
          f"{runs[0]['env_steps'] / 1e6:.2f} M | {statistics.median(rates) / 1e3:.0f} k | {'yes' if met else '**no**'} |", flush=True)
    return met, [{"case": name, "config": config, "options": " ".join(options), **run} for run in runs]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trawl", default="build/sweep/trawl")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="0: as the config says")
    parser.add_argument("--jobs", type=int, default=1, help="seeds at a time, each on --threads cores")
    parser.add_argument("--out", help="CSV file for all runs")
    arguments = measure.parse_cases(parser, CASES)
    if arguments.jobs < 1 or (arguments.jobs > 1 and arguments.jobs * max(1, arguments.threads) > len(os.sched_getaffinity(0))):
        parser.error("--jobs times --threads is more cores than there are")
    if arguments.jobs > 1 and arguments.threads < 1:
        parser.error("--jobs needs --threads")

    place, rows, met = measure.place(arguments.trawl), [], True
    print("| case | perf, median of seeds (range) | target | seconds, median (worst) | allowed | steps | steps/s | met |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.cases:
        good, runs = run_case(arguments, name)
        met, rows = met and good, rows + runs
        if arguments.out:
            measure.result_table.write(arguments.out, place, rows)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
