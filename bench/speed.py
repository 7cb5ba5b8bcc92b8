#!/usr/bin/env python3
"""speed.py - steps a second of games and of whole trainings, on one core and on two, against the machine's SGEMM.

usage: bench/speed.py [--build DIR] [--repeats N] [--out FILE]

Each number is the median of --repeats runs, bound to its cores by taskset. "Share of SGEMM" is that of `trawl bench train`: the rate
of the matrix products that a training step needs, over the rate of one large product on the same cores.
"""

import argparse
import os
import sys

import measure

ENVS = {"breakout": 5e6, "pong": 20e6, "cartpole": 20e6, "squared": None, "memory": None}  # aim, steps/s on one core
TRAIN = "bench/configs/breakout-128.ini"
TRAIN_AIM = 100e3  # steps/s on one core
SCALE_AIM = 1.8  # two cores over one


def bench(arguments, cpus, what):
    return measure.run_json(["taskset", "-c", ",".join(map(str, cpus)), f"{arguments.build}/sweep/trawl", "bench", *what,
                             "--repeats", str(arguments.repeats), "--json"])


def rates_of(run, name):
    return {"median": run[name], "min": run[name + "_min"], "max": run[name + "_max"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", help="CSV file for all runs")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    sets = [cores[:1]] + ([cores[:2]] if len(cores) > 1 else [])
    place, rows = measure.place(f"{arguments.build}/sweep/trawl"), []

    print("| game, one core | steps/s, median (range) | aim |\n|---|---|---|")
    for name, aim in ENVS.items():
        rates = rates_of(bench(arguments, sets[0], ["env", name]), "steps_per_s_per_core")
        rows.append({"what": f"env {name}", "cores": 1, **rates})
        print(f"| {name} | {rates['median'] / 1e6:.1f} M ({rates['min'] / 1e6:.1f} to {rates['max'] / 1e6:.1f}) | "
              f"{f'{aim / 1e6:.0f} M' if aim else ''} |", flush=True)

    print(f"\n| {TRAIN} | steps/s, median (range) | aim | SGEMM, GFLOP/s | share of SGEMM |\n|---|---|---|---|---|")
    first = None
    for cpus in sets:
        run = bench(arguments, cpus, ["train", TRAIN, "--train.threads", str(len(cpus))])
        rates = rates_of(run, "steps_per_s")
        aim = TRAIN_AIM if first is None else SCALE_AIM * first
        first = first or rates["median"]
        rows.append({"what": "train", "cores": len(cpus), **rates, "sgemm_gflops": run["sgemm_gflops"],
                     "share_of_sgemm": run["sgemm_share"], "over_one_core": rates["median"] / first})
        print(f"| {len(cpus)} core{'s' * (len(cpus) > 1)} | {rates['median'] / 1e3:.0f} k ({rates['min'] / 1e3:.0f} to {rates['max'] / 1e3:.0f}) | "
              f"{aim / 1e3:.0f} k | {run['sgemm_gflops']:.0f} | {100 * run['sgemm_share']:.0f} % |", flush=True)
    if arguments.out:
        measure.result_table.write(arguments.out, place, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
