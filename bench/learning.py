#!/usr/bin/env python3
"""learning.py - trains the examples with several seeds and says whether they learn what they should, in time.

usage: bench/learning.py [--trawl FILE] [--seeds N] [--threads N] [--out FILE] [CASE ...]

Prints one Markdown row a case and writes all runs as JSON to --out. The wall time that counts is the run's own cost_s, the
worst of the seeds. Exit code 1 when a case misses its target.
"""

import argparse
import json
import sys
import time

import measure

# name: config, further options, lowest and highest median perf that is right, seconds that each run may take
CASES = {
    "cartpole": ("examples/cartpole.ini", [], 0.95, 1.0, 30),
    "squared": ("examples/squared.ini", [], 0.95, 1.0, 30),
    "memory": ("examples/memory.ini", [], 0.95, 1.0, 60),
    "memory-no-core": ("examples/memory.ini", ["--policy.core", "none"], 0.45, 0.55, 60),
    "pong": ("examples/pong.ini", [], 0.9, 1.0, 600),
    "breakout": ("examples/breakout.ini", [], 0.5, 1.0, 1200),
}


def run_case(arguments, name):
    config, options, low, high, limit_s = CASES[name]
    runs = []
    for seed in range(1, arguments.seeds + 1):
        command = [arguments.trawl, "train", config, "--json", "--train.seed", str(seed), *options]
        if arguments.threads:
            command += ["--train.threads", str(arguments.threads)]
        run = measure.run_json(command)
        runs.append({"seed": seed, **{key: run[key] for key in ("score", "perf", "env_steps", "cost_s", "steps_per_s")}})
        print(f"{name} seed {seed}: perf {run['perf']:.3f} in {run['cost_s']:.1f} s", file=sys.stderr)
    perf = measure.spread([run["perf"] for run in runs])
    cost = measure.spread([run["cost_s"] for run in runs])
    return {"case": name, "config": config, "options": options, "perf": perf, "cost_s": cost,
            "steps_per_s": measure.spread([run["steps_per_s"] for run in runs]),
            "target": {"perf": [low, high], "seconds": limit_s},
            "met": low <= perf["median"] <= high and cost["max"] <= limit_s, "runs": runs}


def row(case):
    low, high = case["target"]["perf"]
    target = f"at least {low}" if high == 1.0 else f"{low} to {high}"
    return (f"| {case['case']} | {case['perf']['median']:.3f} ({case['perf']['min']:.3f} to {case['perf']['max']:.3f}) | "
            f"{target} | {case['cost_s']['median']:.1f} ({case['cost_s']['max']:.1f}) | {case['target']['seconds']} | "
            f"{case['runs'][0]['env_steps'] / 1e6:.2f} M | {case['steps_per_s']['median'] / 1e3:.0f} k | "
            f"{'yes' if case['met'] else '**no**'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trawl", default="build/sweep/trawl")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="0: as the config says")
    parser.add_argument("--out", help="JSON file for all runs")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown or arguments.seeds < 1:
        parser.error(f"unknown case {unknown[0]}; there are {', '.join(CASES)}" if unknown else "--seeds must be 1 or more")

    result = {"what": "learning", "date": time.strftime("%Y-%m-%d", time.gmtime()), **measure.place(arguments.trawl),
              "cases": []}
    print("| case | perf, median of seeds (range) | target | seconds, median (worst) | allowed | steps | steps/s | met |")
    print("|---|---|---|---|---|---|---|---|")
    for name in arguments.cases or CASES:
        result["cases"].append(run_case(arguments, name))
        print(row(result["cases"][-1]), flush=True)
        if arguments.out:
            with open(arguments.out, "w", encoding="utf-8") as file:
                json.dump(result, file, indent=1)
                file.write("\n")
    return 0 if all(case["met"] for case in result["cases"]) else 1


if __name__ == "__main__":
    sys.exit(main())
