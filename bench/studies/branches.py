#!/usr/bin/env python3
"""branches.py - does a front come sooner when each run gives several of its points (sweep.branches)?

usage: bench/studies/branches.py TRAWL -o OUT.csv [--games squared,cartpole,memory] [--runs 16] [--studies 3] [--seeds 3]

Each study is run twice, with as many runs: by runs of one length each under the cosine, and with 4 branches under the schedule without
an end (train.decay_steps searched from half of the shortest run to half of the longest, rates up to 4 times as high). Cost is counted in env steps, so a busy machine changes
nothing. From each the best at three costs is exported (cost<=X) and trained under fresh seeds; a row has their mean.
"""
import json
import math
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure  # noqa: E402
import picks  # noqa: E402


def config_of(game, branches):
    env, policy, train, (least, most) = picks.GAMES[game]
    more = f"decay_steps = {math.sqrt(least * most) / 2:.0f}\n" if branches else ""
    space = picks.COMMON.replace("[sweep]", f"[sweep]\ncost = env_steps\nconfirm = 0.2\nbranches = {branches}")
    if branches:
        space = space.replace("max = 0.1\n", "max = 0.4\n", 1)
        space += f"[sweep.train.decay_steps]\ndistribution = log\nmin = {least / 2:.0f}\nmax = {most / 2:.0f}\n"
    return (f"[env]\nname = {game}\n{env}\n[policy]\n{policy}\n[train]\n{train}\nthreads = 1\ndevice = cpu\n{more}"
            f"total_timesteps = {math.sqrt(least * most):.0f}\n{space}[sweep.train.total_timesteps]\nmin = {least:.0f}\nmax = {most:.0f}\n")


def study(args, folder, game, branches, seed):
    """Env steps of all runs, and the mean perf of fresh runs of the best at each cost."""
    ini, store = os.path.join(folder, "s.ini"), os.path.join(folder, f"{game}-{branches}-{seed}.db")
    with open(ini, "w", encoding="utf-8") as out:
        out.write(config_of(game, branches))
    trials = measure.sweep(args.trawl, ini, store, "s", "--trials", str(args.runs), "--seed", str(seed))
    spent = sum(t["env_steps"] for t in trials if not t["origin"].startswith("branch"))
    least, most = picks.GAMES[game][3]
    means = []
    for k in (1, 2, 3):
        limit = least * (most / least) ** (k / 3)
        measure.export(args.trawl, store, "s", f"cost<={limit:.0f}", ini)
        runs = [measure.run_json([args.trawl, "train", ini, "--json", "-q", "--train.seed", str(picks.FRESH_SEED + i)])["perf"] for i in range(args.seeds)]
        means.append(sum(runs) / len(runs))
    return spent, means


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--games", default="squared,cartpole,memory")
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--studies", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    where, rows = measure.place(args.trawl), []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1, args.studies + 1):
            for game in args.games.split(","):
                for branches in (0, 4):
                    spent, means = study(args, folder, game, branches, seed)
                    rows.append({"game": game, "seed": seed, "branches": branches, "msteps": f"{spent / 1e6:.3f}",
                                 "perf_cheap": f"{means[0]:.4f}", "perf_middle": f"{means[1]:.4f}", "perf_full": f"{means[2]:.4f}"})
                    print(json.dumps(rows[-1]), flush=True)
                    measure.result_table.write(args.output, where, rows)


if __name__ == "__main__":
    main()
