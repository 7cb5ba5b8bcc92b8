#!/usr/bin/env python3
"""puffer_learning.py - trains PufferLib's games with their published configs, each for a limited time, and prints a table.

usage: bench/puffer_learning.py TREE LIBRARIES [GAME ...] [--trawl build/sweep/trawl] [--seconds 40] [--seed 1] [--device auto] --out FILE.csv

TREE has config/NAME.ini, LIBRARIES has NAME.so as `trawl env build TREE/ocean/NAME` makes it. perf is of an evaluation after training;
seconds are of training, without start and evaluation. Games are trained one after another.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import result_table  # noqa: E402


def one(args, game):
    command = [args.trawl, "train", os.path.join(args.libraries, game + ".so"), os.path.join(args.tree, "config", game + ".ini"),
               "--train.seed", str(args.seed), "--train.max_seconds", str(args.seconds), "--train.device", args.device,
               "--train.eval_episodes", "300", "--train.eval_max_steps", "20000", "--json", "-q"]
    row = {"game": game, "perf": "", "score": "", "seconds": "", "steps_m": "", "m_steps_per_s": "", "process_s": "", "note": ""}
    begin = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=args.seconds + 60, check=False, stdin=subprocess.DEVNULL,
                              cwd=args.tree)
    except subprocess.TimeoutExpired:
        row["note"] = "not done in time"
        return row
    row["process_s"] = f"{time.monotonic() - begin:.1f}"
    if done.returncode != 0:
        lines = [line[7:] for line in done.stderr.splitlines() if line.startswith("trawl: ")]
        row["note"] = (lines or ["?"])[-1].replace(args.tree + "/", "").replace(",", ";")[:120]
        return row
    result = json.loads(done.stdout)
    wall, steps = float(result["cost_s"]), float(result["env_steps"])
    row.update(perf=f"{float(result['perf']):.4f}", score=f"{float(result['score']):.4g}", seconds=f"{wall:.2f}",
               steps_m=f"{steps / 1e6:.2f}", m_steps_per_s=f"{steps / wall / 1e6:.2f}")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("tree")
    parser.add_argument("libraries")
    parser.add_argument("games", nargs="*")
    parser.add_argument("--trawl", default="build/sweep/trawl")
    parser.add_argument("--seconds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    args.tree, args.libraries, args.trawl = map(os.path.abspath, (args.tree, args.libraries, args.trawl))
    games = args.games or sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(args.libraries, "*.so")))
    rows = []
    for game in games:
        rows.append(one(args, game))
        print(",".join(rows[-1].values()), file=sys.stderr, flush=True)
    version = subprocess.run([args.trawl, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    result_table.write(args.out, f"{version}; bench/puffer_learning.py, published configs, at most {args.seconds} s of training each, seed "
                       f"{args.seed}, --device {args.device}", rows)


if __name__ == "__main__":
    main()
