#!/usr/bin/env python3
"""fronts.py - a front of each game from one short sweep, trained again under fresh seeds, beside a published front.

usage: bench/studies/fronts.py TRAWL PUBLISHED.csv GAME=CONFIG[,LIBRARY.so] ... -o OUT.csv [--seconds 60] [--seeds 5] [--points 6] [--levels OUT2.csv]

PUBLISHED.csv has the columns env, perf and seconds (of training, one run each). CONFIG is a sweep's; with LIBRARY.so the game is
that library's. Each game is swept for --seconds of wall time on the device that is there, --lanes runs at a time; --points
members of its front, evenly spread by score, are trained --seeds times, one process after another. OUT.csv has a row for each member: medians of seconds
from process start to the end of training, and of perf. For each perf of the published front that row of ours is sought which
reaches it soonest; OUT2.csv has a row for each game: at how many of those levels ours is sooner, and what is reached at all.
"""
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure  # noqa: E402

FRESH_SEED = 1_000_000_007


def published_front(path, game):
    """(seconds, perf) of a game, those that nothing else beats, cheapest first."""
    with open(path, encoding="utf-8") as table:
        rows = [r for r in csv.DictReader(line for line in table if not line.startswith("#")) if r["env"] == game]
    front, best = [], float("-inf")
    for seconds, perf in sorted((float(r["seconds"]), float(r["perf"])) for r in rows):
        if perf > best:
            best = perf
            front.append((seconds, perf))
    return front


def spread(members, n):
    """n of the members of a front, cheapest first, evenly spread by score, the best among them."""
    if len(members) <= n:
        return members
    low, high = members[0]["score"], members[-1]["score"]
    marks = [low + (high - low) * (i + 1) / n for i in range(n)]
    nearest = {min(range(len(members)), key=lambda j: abs(members[j]["score"] - mark)) for mark in marks}
    return [members[j] for j in sorted(nearest)]


def train(trawl, ini, seed):
    begin = time.monotonic()
    run = measure.run_json([trawl, "train", ini, "--json", "-q", "--train.seed", str(seed)])
    return time.monotonic() - begin - run["eval_s"], run["perf"], run["env_steps"]


def sweep(args, folder, game, config, library):
    """Members of the front of one sweep."""
    store = os.path.join(folder, game + ".db")
    words = ["--env.name", os.path.abspath(library)] if library else []
    done = subprocess.run([args.trawl, "sweep", config, "--store", store, "--name", game, "--wall-time", f"{args.seconds}s", "--sweep.trials", "0",
                           "--sweep.budget", "100h", "--sweep.runs_per_device", str(args.lanes), "-q", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        return store, None, 0, done.stderr.strip().split("\n")[-1]
    trials = measure.run_json([args.trawl, "show", game, "--store", store, "--json"])["trials"]
    return store, sorted((t for t in trials if t["on_front"]), key=lambda t: t["cost_s"]), len(trials), ""


def one(args, folder, game, config, library):
    rows = []
    store, front, n_trials, fault = sweep(args, folder, game, config, library)
    if front is None:
        print(f"{game}: {fault}", file=sys.stderr)
        return rows
    for member in spread(front, args.points):
        ini = os.path.join(folder, f"{game}-{member['number']}.ini")
        measure.export(args.trawl, store, game, f"trial={member['number']}", ini)
        runs = [train(args.trawl, ini, FRESH_SEED + k) for k in range(args.seeds)]
        rows.append({"game": game, "trials": n_trials, "trial": member["number"], "seconds": f"{statistics.median(r[0] for r in runs):.3f}",
                     "perf": f"{statistics.median(r[1] for r in runs):.4f}", "perf_low": f"{min(r[1] for r in runs):.4f}",
                     "perf_high": f"{max(r[1] for r in runs):.4f}", "steps_m": f"{runs[0][2] / 1e6:.2f}", "promised": f"{member['score_mean']:.4f}"})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def beside(published, rows):
    """Levels of the published front, how many of them ours reaches, and how many sooner."""
    ours = [(float(r["seconds"]), float(r["perf"])) for r in rows]
    reached = sooner = 0
    for seconds, perf in published:
        mine = min((s for s, p in ours if p >= perf), default=None)
        reached += mine is not None
        sooner += mine is not None and mine <= seconds
    return {"levels": len(published), "reached": reached, "sooner": sooner, "published_best": published[-1][1] if published else "",
            "published_s": published[-1][0] if published else "", "best": max((p for _, p in ours), default=""),
            "best_s": max(ours, key=lambda o: o[1])[0] if ours else ""}


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("published")
    parser.add_argument("games", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--levels", required=True)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--points", type=int, default=6)
    parser.add_argument("--lanes", type=int, default=1)
    args = parser.parse_args()
    where, rows, levels = measure.place(args.trawl), [], []
    with tempfile.TemporaryDirectory() as folder:
        for word in args.games:
            game, _, config = word.partition("=")
            config, _, library = config.partition(",")
            mine = one(args, folder, game, config, library)
            rows += mine
            if mine:
                levels.append({"game": game, **beside(published_front(args.published, game), mine)})
                print(json.dumps(levels[-1]), flush=True)
            measure.result_table.write(args.output, where, rows)
            measure.result_table.write(args.levels, where, levels)


if __name__ == "__main__":
    main()
