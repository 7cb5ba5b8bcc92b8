#!/usr/bin/env python3
"""Do picks keep their promise? Sweeps each game, exports best, knee, cost<=X and score>=Y, trains each of the four files under
fresh seeds, and counts how many have the mean of those runs inside the 95 % interval that the export stated. And how many
proposals of these studies came out inside the interval that was predicted of them (--seeds 0: that alone).

    bench/studies/picks.py build/sweep/trawl -o picks.csv      minutes on two cores

X is the middle of the front's expected costs (geometric), Y the lower end of the interval of the member that is nearest to it.
"""
import collections
import json
import math
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure  # noqa: E402

COMMON = """
[sweep]
method = pareto
metric = perf
[sweep.train.learning_rate]
min = 0.0003
max = 0.1
[sweep.train.ent_coef]
min = 1e-4
max = 0.05
[sweep.train.gamma]
min = 0.9
max = 0.999
"""
GAMES = {  # game, policy and range of steps: trials of a tenth of a second to some seconds on one core
    "cartpole": ("", "core = mlp\nnum_layers = 1\nhidden_size = 32", "total_agents = 64\nhorizon = 32\nminibatch_size = 512\nreplay_ratio = 4", (20e3, 500e3)),
    "squared": ("n = 3", "core = mlp\nnum_layers = 1\nhidden_size = 32", "total_agents = 64\nhorizon = 64\nminibatch_size = 1024", (20e3, 800e3)),
    "memory": ("length = 3", "core = mingru\nnum_layers = 1\nhidden_size = 32", "total_agents = 128\nhorizon = 32\nminibatch_size = 1024\nreplay_ratio = 2", (50e3, 1e6)),
    "pong": ("frameskip = 8", "core = mlp\nnum_layers = 1\nhidden_size = 64", "total_agents = 128\nhorizon = 32\nminibatch_size = 2048\nreplay_ratio = 2", (200e3, 3e6)),
    "breakout": ("frameskip = 4", "core = mlp\nnum_layers = 1\nhidden_size = 32", "total_agents = 64\nhorizon = 64\nminibatch_size = 1024\nreplay_ratio = 2", (100e3, 1e6)),
}
FRESH_SEED = 1_000_000_007  # the first: far from what a study draws for its trials


def write_config(path, game):
    env, policy, train, (least, most) = GAMES[game]
    with open(path, "w", encoding="utf-8") as out:
        out.write(f"[env]\nname = {game}\n{env}\n[policy]\n{policy}\n[train]\n{train}\nthreads = 1\ndevice = cpu\n"
                  f"total_timesteps = {math.sqrt(least * most):.0f}\n{COMMON}"
                  f"[sweep.train.total_timesteps]\nmin = {least:.0f}\nmax = {most:.0f}\n")


def rules_of(trials):
    """best, knee, and a cost and a score from the middle of the front."""
    front = sorted((t for t in trials if t["on_front"]), key=lambda t: t["cost_mean"])
    cost = math.sqrt(front[0]["cost_mean"] * front[-1]["cost_mean"])
    middle = min(front, key=lambda t: abs(math.log(t["cost_mean"] / cost)))
    return ["best", "knee", f"cost<={max(cost, front[0]['cost_s'], front[0]['cost_mean']):.4g}", f"score>={middle['score_lo']:.4g}"]


def check(trawl, store, study, rule, seeds):
    ini = store + ".ini"
    measure.export(trawl, store, study, rule, ini)
    pick = measure.run_json([trawl, "export", study, "--store", store, "--pick", rule, "--format", "json"])
    fresh = [measure.run_json([trawl, "train", ini, "--json", "-q", "--train.seed", str(FRESH_SEED + k)])["perf"] for k in range(seeds)]
    mean = sum(fresh) / seeds
    return {"pick": rule, "trial": pick["trial"], "seen": pick["n_seeds"], "promised": pick["score_mean"], "lo": pick["score_lo"],
            "hi": pick["score_hi"], "fresh_mean": mean, "fresh_min": min(fresh), "fresh_max": max(fresh),
            "its_run": pick["score"], "kept": int(pick["score_lo"] <= mean <= pick["score_hi"])}


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("-o", "--output", help="a CSV table; none: stdout alone")
    parser.add_argument("--games", default=",".join(GAMES))
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=5, help="fresh seeds of a pick; 0: no picks")
    parser.add_argument("--seed", type=int, default=1, help="of the studies")
    parser.add_argument("--confirm", default="0.2", help="sweep.confirm")
    options = parser.parse_args()
    trawl, where, rows, predicted = options.trawl, measure.place(options.trawl), [], collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for game in options.games.split(","):
            config, store = os.path.join(folder, game + ".conf.ini"), os.path.join(folder, game + ".db")
            write_config(config, game)
            trials = measure.sweep(trawl, config, store, game, "--trials", str(options.trials), "--seed", str(options.seed),
                                   "--sweep.confirm", options.confirm)
            predictions = measure.run_json([trawl, "show", game, "--store", store, "--json"])["predictions"]
            predicted.update({key: predictions[key] for key in ("trials", "scores_inside", "costs_inside")})
            for rule in rules_of(trials) if options.seeds > 0 else []:
                rows.append({"game": game, **check(trawl, store, game, rule, options.seeds)})
                print(json.dumps(rows[-1]), flush=True)
    if options.output:
        measure.result_table.write(options.output, where, rows)
    print(f"{sum(r['kept'] for r in rows)} of {len(rows)} picks keep their stated 95 % interval; of {predicted['trials']} proposals "
          f"{predicted['scores_inside']} scores and {predicted['costs_inside']} costs lay in theirs")


if __name__ == "__main__":
    main()
