#!/usr/bin/env python3
"""ablations.py - trains the games with one choice of the algorithm changed at a time, several seeds each, and says what each
choice is worth.

usage: bench/ablations.py run [--warm-bench FILE] [--out FILE] [--seeds N] [--gpu-jobs N] [--cpu-jobs N] [--limit SECONDS]
                              [--only "GAME[:VARIANT];..."]
       bench/ablations.py table FILE ...

run    trains, and writes a CSV row for each seed: game, variant, seed, perf at the end, env steps, seconds of training, and
       the steps and seconds after which perf first was 0.95 (empty: never). Games marked cuda share the GPU, --gpu-jobs at a
       time; the others have a CPU thread each, --cpu-jobs at a time. What --limit cuts off has no rows.
table  prints the table of docs/ablations.md from such files: median perf (lowest), how many seeds passed 0.95, and after how
       many steps the median of these did.
"""

import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import threading
import time

import measure

PASSES = 0.95


def train(**options):
    return [word for key, value in options.items() for word in (f"--train.{key}", str(value))]


def policy(**options):
    return [word for key, value in options.items() for word in (f"--policy.{key}", str(value))]


# variant: options, in the order of what is wanted first
VARIANTS = {
    "as it is": [],
    "no V-trace": train(vtrace="false"),
    "encoder none": policy(encoder_activation="none"),
    "encoder relu": policy(encoder_activation="relu"),
    "encoder tanh": policy(encoder_activation="tanh"),
    "priorities off": train(prio_alpha=0),
    "priorities .1": train(prio_alpha=0.1, prio_beta0=0.8),
    "priorities .8": train(prio_alpha=0.8, prio_beta0=0.2),
    "advantages not normalised": train(norm_adv="false"),
    "value clip off": train(vf_clip_coef=0),
    "value clip .2": train(vf_clip_coef=0.2),
    "value clip 1.2": train(vf_clip_coef=1.2),
    "the other optimiser": [],
    "the other optimiser, a third of the rate": [],
    "core none": policy(core="none"),
    "core none, encoder none": policy(core="none", encoder_activation="none"),
    "core mlp": policy(core="mlp"),
    "core mlp, encoder none": policy(core="mlp", encoder_activation="none"),
    "core mingru": policy(core="mingru"),
    "core mingru, encoder relu": policy(core="mingru", encoder_activation="relu"),
    "core lstm": policy(core="lstm"),
    "core lstm, encoder relu": policy(core="lstm", encoder_activation="relu"),
    "value of 51 bins": policy(value_bins=51),
    "E3B .01": train(e3b_coef=0.01),
    "E3B .1": train(e3b_coef=0.1),
}
ADDED = ["as it is", "value of 51 bins", "E3B .01", "E3B .1"]
ESSENTIAL = ["as it is", "no V-trace", "encoder none", "encoder relu"]

# game: config, device, learning rate of the other optimiser, further options, variants (None: all), those that the config is
GAMES = {
    "eq-breakout": ("bench/configs/eq-breakout.ini", "cuda", 0.003, [], None,
                    ["encoder none", "priorities .1", "value clip 1.2", "core mingru"]),
    "breakout-gpu": ("examples/breakout-gpu.ini", "cuda", 0.003, train(total_timesteps="60M"), ESSENTIAL, ["encoder none"]),
    "breakout": ("examples/breakout.ini", "cuda", 0.004, [], ESSENTIAL, ["encoder none"]),
    "pong-gpu": ("examples/pong-gpu.ini", "cuda", 0.003, [], None, ["encoder none", "priorities off", "core mingru"]),
    "pong": ("examples/pong.ini", "cpu", 0.003, [], ESSENTIAL + ADDED[1:], ["encoder relu"]),
    "squared": ("examples/squared.ini", "cpu", 0.005, [], None,
                ["encoder relu", "priorities off", "value clip off", "core mlp", "core mlp, encoder none"]),
    "memory": ("examples/memory.ini", "cpu", 0.003, [], None,
               ["encoder none", "priorities off", "value clip off", "core mingru"]),
    "cartpole": ("examples/cartpole.ini", "cpu", 0.003, [], None,
                 ["encoder relu", "priorities off", "value clip off", "core mlp", "core mlp, encoder none"]),
    "mountain_car": ("examples/mountain_car.ini", "cpu", 0.003, [], ADDED, []),
    "mountain_car, deviation 1": ("examples/mountain_car.ini", "cpu", 0.003, policy(action_std_init=1), ADDED, []),
    "pendulum": ("examples/pendulum.ini", "cpu", 0.003, [], ADDED, []),
}


def config_of(game):
    return os.path.join(measure.ROOT, GAMES[game][0])


def options_of(game, variant):
    _, device, rate, further, _, _ = GAMES[game]
    options = ["--train.device", device] + (["--train.threads", "1"] if device == "cpu" else []) + further
    if variant.startswith("the other optimiser"):
        with open(config_of(game), encoding="utf-8") as file:
            other = "muon" if "optimizer = adam" in file.read() else "adam"
        rate /= 3 if variant.endswith("rate") else 1
        return options + train(optimizer=other, learning_rate=rate, beta1=0.9)
    return options + VARIANTS[variant]


def all_jobs():
    """(game, variant), what is wanted first first."""
    return [(game, variant) for variant in VARIANTS for game, (_, _, _, _, some, same) in GAMES.items()
            if variant not in same and (some is None or variant in some)]


def rows_of(game, variant, made):
    for run in made["runs"]:
        at = next((i for i, perf in enumerate(run["curve"]) if perf >= PASSES), None)
        yield {"game": game, "variant": variant, "seed": run["seed"], "perf": run["perf"],
               "steps": int(run["steps"][-1]) if run["steps"] else "", "seconds": run["cost_s"],
               "steps_to_095": "" if at is None else int(run["steps"][at]),
               "seconds_to_095": "" if at is None else run["seconds"][at]}


class Runner:
    def __init__(self, arguments):
        self.arguments, self.lock, self.rows = arguments, threading.Lock(), []
        self.ends = time.monotonic() + arguments.limit

    def job(self, game, variant):
        left = self.ends - time.monotonic()
        command = [self.arguments.warm_bench, "curve", config_of(game), str(self.arguments.seeds), *options_of(game, variant)]
        if left <= 0:
            return
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=left, check=False)
            made, why = (json.loads(done.stdout) if done.returncode == 0 else None), done.stderr.strip()
        except subprocess.TimeoutExpired:
            made, why = None, "cut off"
        with self.lock:
            if made is None:
                print(f"{game}, {variant}: {why}", file=sys.stderr)
                return
            rows = list(rows_of(game, variant, made))
            self.rows += rows
            about = f"{made['device']}; {made['program']}; {time.strftime('%Y-%m-%d', time.gmtime())}; {' '.join(sys.argv)}"
            measure.result_table.write(self.arguments.out, about, measure.result_table.fold(self.rows, ["game", "variant"]))
            print(f"{game:13} {variant:42} {summary(rows)}", flush=True)

    def run(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(self.arguments.gpu_jobs) as gpu, \
                concurrent.futures.ThreadPoolExecutor(self.arguments.cpu_jobs) as cpu:
            for game, variant in jobs:
                (gpu if GAMES[game][1] == "cuda" else cpu).submit(self.job, game, variant)


def summary(rows):
    perfs = [float(row["perf"]) for row in rows]
    passed = [float(row["steps_to_095"]) for row in rows if row["steps_to_095"] not in ("", None)]
    text = f"{statistics.median(perfs):.3f} ({min(perfs):.3f}) {len(passed)}/{len(rows)}"
    return text + (f" {statistics.median(passed) / 1e6:.3g} M" if passed else "")


def table(paths):
    rows = []
    for path in paths:
        rows += measure.result_table.unfold(measure.result_table.read(path))
    games = [game for game in GAMES if any(row["game"] == game for row in rows)]
    print("| |" + "".join(f" {game} |" for game in games) + "\n|---|" + "---|" * len(games))
    for variant in VARIANTS:
        cells = [[row for row in rows if row["game"] == game and row["variant"] == variant] for game in games]
        if any(cells):
            print(f"| {variant} |" + "".join(f" {summary(cell) if cell else ''} |" for cell in cells))


def main():
    if len(sys.argv) > 2 and sys.argv[1] == "table":
        table(sys.argv[2:])
        return 0
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["run"])
    parser.add_argument("--warm-bench", default=os.path.join(measure.ROOT, "build", "bench", "warm_bench"))
    parser.add_argument("--out", default="ablations.csv")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--gpu-jobs", type=int, default=4)
    parser.add_argument("--cpu-jobs", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=1e6)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    asked = [word.strip().partition(":")[::2] for word in arguments.only.split(";") if word]
    jobs = [(game, variant) for game, variant in all_jobs()
            if not asked or any(g == game and (not v or v == variant) for g, v in asked)]
    Runner(arguments).run(jobs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
