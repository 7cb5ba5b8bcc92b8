#!/usr/bin/env python3
"""schedules.py - what a schedule costs: the score after T steps of hold-and-decay beside the cosine.

Every game x budget x schedule x learning rate x seed is trained by `trawl train` and evaluated on --episodes whole
episodes; rows that the CSV file has already are not run again. `--table FILE` prints, for each game and budget, each
schedule's mean at its own best rate, and its distance to the cosine's.

usage: schedules.py TRAWL OUT.csv --games squared,pong --jobs 2 [--limit-s 300]
       schedules.py TRAWL OUT.csv --games breakout-gpu --schedules cosine=1/2/4,adam-tail30=0.03/0.1/0.3
"""
import collections
import concurrent.futures
import csv
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import time

import measure
from measure import result_table

ROOT = pathlib.Path(measure.ROOT)
SCHEDULES = {
    "cosine": {},
    "hold": {"decay_share": 0},
    "tail15": {"decay_share": 0.15},
    "tail30": {"decay_share": 0.3},
    "tail50": {"decay_share": 0.5},
}
# what else is tuned for holding: less entropy and clipping, one minibatch a rollout, adam
CHANGES = {
    "ent3": {"ent_coef": 0.003},
    "ent1": {"ent_coef": 0.001},
    "clip2": {"clip_coef": 0.2},
    "mb128": {"minibatch_size": 131072},
    "adam": {"optimizer": "adam", "beta1": 0.9},
}
# an anytime schedule: the rate is divided by (1 + steps / decay_steps)^2, decay_steps a share of the game's smallest budget
for parts in (8, 4, 2, 1):
    CHANGES["sq%d" % parts] = {"decay_steps": 1 / parts}
GAMES = {  # config, budgets in steps
    "squared": ("squared", [300e3, 600e3, 1200e3, 2500e3]),
    "cartpole": ("cartpole", [125e3, 250e3, 500e3, 1000e3]),
    "memory": ("memory", [125e3, 250e3, 500e3, 1000e3]),
    "pendulum": ("pendulum", [250e3, 500e3, 1000e3]),
    "mountain_car": ("mountain_car", [250e3, 500e3, 1000e3]),
    "pong": ("pong", [1e6, 2e6, 3e6, 4e6]),
    "pong-gpu": ("pong-gpu", [2e6, 4e6, 8e6, 12e6]),
    "breakout-gpu": ("breakout-gpu", [40e6, 60e6, 90e6, 130e6]),
}
FIELDS = ["game", "steps", "schedule", "rate", "seed", "perf", "score", "cost_s", "device"]


def changes_of(schedule, smallest):
    """The options of a schedule's name: its parts, joined by -."""
    options = {}
    for part in schedule.split("-"):
        options.update(SCHEDULES[part] if part in SCHEDULES else CHANGES[part])
    if "decay_steps" in options:
        options["decay_steps"] *= smallest
    return options


def rate_of(config):
    for line in (ROOT / "examples" / (config + ".ini")).read_text().splitlines():
        if line.startswith("learning_rate"):
            return float(line.split("=")[1])
    return 0.015


def train(trawl, run, options):
    game, steps, schedule, factor, seed = run
    config = GAMES[game][0]
    args = [trawl, "train", "examples/%s.ini" % config, "--json", "--quiet", "--train.total_timesteps", "%d" % steps,
            "--train.seed", str(seed), "--train.learning_rate", repr(rate_of(config) * factor), "--train.eval_episodes",
            str(options.episodes)]
    for key, value in changes_of(schedule, GAMES[game][1][0]).items():
        args += ["--train." + key, str(value)]
    if options.threads:
        args += ["--train.threads", str(options.threads)]
    done = subprocess.run(args, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        return run, None, done.stderr[-300:]
    return run, json.loads(done.stdout), ""


def key_of(row):
    return row["game"], float(row["steps"]), row["schedule"], float(row["rate"]), int(row["seed"])


def table(rows):
    cells = collections.defaultdict(list)
    for r in rows:
        cells[r["game"], float(r["steps"]), r["schedule"], float(r["rate"])].append(float(r["perf"]))
    schedules = list(dict.fromkeys(r["schedule"] for r in rows))
    print("%-13s %9s " % ("game", "steps") + " ".join("%13s" % s for s in schedules))
    losses = collections.defaultdict(list)
    for game, steps in sorted({(g, s) for g, s, _, _ in cells}):
        line, best = "%-13s %9.3g " % (game, steps), {}
        for schedule in schedules:
            means = {f: statistics.mean(v) for (g, s, c, f), v in cells.items() if (g, s, c) == (game, steps, schedule)}
            if means:
                best[schedule] = max(means.values())
                if "cosine" in best:
                    losses[schedule].append(best["cosine"] - best[schedule])
                line += "%7.3f x%-4g " % (best[schedule], max(means, key=means.get))
            else:
                line += "%14s" % ""
        print(line)
    print("loss, mean " + " ".join("%s %.3f (worst %.3f)" % (s, statistics.mean(v), max(v)) for s, v in losses.items() if v))


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--games", default="squared,cartpole")
    parser.add_argument("--schedules", default=",".join(SCHEDULES))
    parser.add_argument("--factors", default="0.25,0.5,1,2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--limit-s", type=float, default=1e9)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    rows = list(result_table.unfold(result_table.read(options.out)))
    if options.table:
        return table(rows)
    known = {key_of(r) for r in rows}
    runs = [r for seed in range(1, options.seeds + 1) for game in options.games.split(",")
            for name, _, own in (s.partition("=") for s in options.schedules.split(","))
            for r in itertools.product([game], GAMES[game][1], [name],
                                       map(float, own.split("/") if own else options.factors.split(",")), [seed])]
    runs = [r for r in runs if r not in known]
    from_s, trawl = time.monotonic(), options.trawl
    with options.out.open("a", newline="") as file, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()
        limited = lambda r: train(trawl, r, options) if time.monotonic() - from_s < options.limit_s else (r, None, None)
        for run, result, why in pool.map(limited, runs):
            if why:
                print("failed:", run, why)
            if result:
                writer.writerow(dict(zip(FIELDS, (*run, result["perf"], result["score"], result["cost_s"],
                                                  result["device"]))))
                file.flush()
    rows = list(result_table.unfold(result_table.read(options.out)))
    result_table.write(str(options.out), " ".join(sys.argv), result_table.fold(rows, FIELDS[:3]))
    table(rows)


if __name__ == "__main__":
    main()
