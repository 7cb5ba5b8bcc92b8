#!/usr/bin/env python3
"""Do picks keep their intervals, with the real trainer? A short sweep of each game, picks by best, knee, cost<= and score>=, and each
pick trained again under 5 fresh seeds: does the mean of those lie in the 95 % interval that `trawl export` states?

    bench/promise.py build/sweep/trawl FOLDER [--trials 40] [--games cartpole,squared,memory,pong,breakout] [--seed 1]

One line a pick, then the count. `trawl-bench promise` does the same on problems of which the truth is known, many times."""
import argparse
import json
import math
import pathlib
import subprocess

# What is searched: the length, the learning rate and gamma, in a size that a CPU trains in a second or so.
GAMES = {
    "cartpole": ("total_agents = 64\nhorizon = 32\nminibatch_size = 512\noptimizer = adam\nreplay_ratio = 4", 20e3, 500e3, 3e-4, 3e-2),
    "squared": ("total_agents = 128\nhorizon = 32\nminibatch_size = 1024", 50e3, 1e6, 1e-3, 1e-1),
    "memory": ("total_agents = 128\nhorizon = 32\nminibatch_size = 1024\noptimizer = adam", 50e3, 1e6, 3e-4, 3e-2),
    "pong": ("total_agents = 128\nhorizon = 32\nminibatch_size = 1024", 200e3, 3e6, 1e-3, 1e-1),
    "breakout": ("total_agents = 128\nhorizon = 32\nminibatch_size = 1024", 200e3, 3e6, 1e-3, 1e-1),
}
CORES = {"memory": "mingru"}


def config(game, trials, seed):
    train, steps_min, steps_max, lr_min, lr_max = GAMES[game]
    middle = int(math.sqrt(steps_min * steps_max))
    return f"""[env]
name = {game}
[policy]
core = {CORES.get(game, "mlp")}
num_layers = 1
hidden_size = 32
[train]
{train}
threads = 1
device = cpu
total_timesteps = {middle}
learning_rate = {math.sqrt(lr_min * lr_max):.4g}
seed = {seed}
[sweep]
metric = perf
trials = {trials}
[sweep.train.total_timesteps]
distribution = log
min = {int(steps_min)}
max = {int(steps_max)}
[sweep.train.learning_rate]
distribution = log
min = {lr_min}
max = {lr_max}
[sweep.train.gamma]
distribution = logit
min = 0.9
max = 0.999
"""


def run(trawl, *args):
    done = subprocess.run([trawl, *map(str, args)], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def rules(trawl, store, game):
    """best and knee, and bounds that cut the stated front in the middle."""
    front = json.loads(run(trawl, "show", game, "--store", store, "--json"))["insight"]["front"]
    costs, scores = [b["cost"] for b in front], [b["score"] for b in front]
    cost = math.sqrt(min(costs) * max(costs))
    score = min(scores) + 0.7 * (max(scores) - min(scores))
    return ["best", "knee", f"cost<={cost:.4g}", f"score>={score:.4g}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trawl")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--games", default=",".join(GAMES))
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    store, n, n_kept = args.folder / "promise.db", 0, 0
    for game in args.games.split(","):
        ini = args.folder / f"{game}.ini"
        ini.write_text(config(game, args.trials, args.seed))
        if run(args.trawl, "sweep", ini, "--store", store, "--name", game) is None:
            raise SystemExit(f"{game}: the sweep failed; see `{args.trawl} sweep {ini} --store {store}`")
        for rule in rules(args.trawl, store, game):
            text = run(args.trawl, "export", game, "--store", store, "--pick", rule, "--format", "json")
            if text is None:
                print(f"{game:9} {rule:16} no such pick", flush=True)
                continue
            pick = json.loads(text)
            again = json.loads(run(args.trawl, "rerun", game, "--store", store, "--trial", pick["trial"], "--seeds", 5, "--no-store", "--json", "-q"))
            mean, lo, hi = again["score"]["mean"], pick["score_lo"], pick["score_hi"]
            kept = lo <= mean <= hi
            n, n_kept = n + 1, n_kept + kept
            print(f"{game:9} {rule:16} trial {pick['trial']:3}  {pick['n_seeds']} seeds  stated {pick['score_mean']:.4f}, {lo:.4f} to {hi:.4f}"
                  f"  fresh {again['score']['min']:.4f} to {again['score']['max']:.4f}, mean {mean:.4f}  {'kept' if kept else 'BROKEN'}", flush=True)
    print(f"{n_kept} of {n} picks kept their interval")


if __name__ == "__main__":
    main()
