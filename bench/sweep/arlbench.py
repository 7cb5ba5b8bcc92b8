#!/usr/bin/env python3
"""arlbench.py - turns landscapes of ARLBench (256 Sobol configs x 10 seeds x 10 checkpoints) into tables for
`trawl-bench sweep`.

usage: arlbench.py FOLDER_WITH_CSV_XZ OUTPUT_DIR     (needs numpy)

The number of env steps becomes a parameter, train.total_steps, of log scale over the ten checkpoints. Parameters that
count only with a switch on (replay priorities, target network) keep their own columns; where the switch is off they are
set to the middle of their range, here and in the program.

Cost: the landscapes carry no times. runtimes.csv has the runtimes of 288 random configs of each pair of algorithm and
game, but not the configs. So cost = (0.1 + 0.9 * steps / max steps) * median runtime * exp(sd * z) to a good
approximation, where sd is the spread of the log runtimes (inter-quartile range / 1.35, at most 0.8) and z a standardised
score of what is known to drive the time: fewer, larger minibatches are cheaper for PPO; larger replay batches and
prioritised sampling are more expensive for DQN and SAC. Noise of 10 %.
"""
import csv
import lzma
import math
import os
import sys

if "--help" in sys.argv:
    sys.exit(print(__doc__))  # also where numpy is missing
import numpy as np  # noqa: E402

import tables  # noqa: E402

GAMES = {"cc_cartpole": "CartPole-v1", "cc_mountain_car": "MountainCar-v0", "cc_pendulum": "Pendulum-v1",
         "box2d_lunar_lander": "LunarLander-v2", "brax_halfcheetah": "halfcheetah",
         "minigrid_door_key": "MiniGrid-DoorKey-5x5", "minigrid_four_rooms": "MiniGrid-FourRooms"}

# column: (scale, low, high, whole); low and high None: the data's own range
PLAIN = {
    "clip_eps": ("linear", 0, 0.5, False), "ent_coef": ("linear", 0, 0.5, False),
    "gae_lambda": ("linear", 0.8, 0.9999, False), "learning_rate": ("log", 1e-6, 0.1, False),
    "max_grad_norm": ("linear", 0, 1, False), "minibatch_size": ("pow2", None, None, True),
    "vf_clip_eps": ("linear", 0, 0.5, False), "vf_coef": ("linear", 0, 1, False),
    "buffer_batch_size": ("pow2", None, None, True), "buffer_size": ("log", None, None, True),
    "initial_epsilon": ("linear", 0.5, 1, False), "learning_starts": ("log", None, None, True),
    "target_epsilon": ("linear", 0.001, 0.2, False), "reward_scale": ("log", 0.1, 10, False),
}
SWITCHES = ("normalize_advantage", "buffer_prio_sampling", "use_target_network")
CONDITIONAL = {"buffer_alpha": ("buffer_prio_sampling", "linear", 0, 1, False),
               "buffer_beta": ("buffer_prio_sampling", "linear", 0, 1, False),
               "buffer_epsilon": ("buffer_prio_sampling", "log", None, None, False),
               "target_update_interval": ("use_target_network", "log", 1, 100, True),
               "tau": ("use_target_network", "linear", 0.01, 1, False)}


def read(path):
    with lzma.open(path, "rt") as file:
        return list(csv.DictReader(file))


def runtimes(folder):
    times = {}
    for row in read(os.path.join(folder, "runtimes.csv.xz")):
        if row["runtime"]:
            times.setdefault((row["algorithm"], row["environment"]), []).append(float(row["runtime"]))
    return times


def number(text):
    return {"True": 1.0, "False": 0.0, "": math.nan}.get(text) if text in ("True", "False", "") else float(text)


def columns(rows):
    """Names, params and natural values by run of one landscape."""
    names = [c[len("hp_config."):] for c in rows[0] if c.startswith("hp_config.")]
    names.sort(key=lambda name: name in CONDITIONAL)  # parents first
    by_run = {int(r["run_id"]): r for r in rows}
    x = np.array([[number(by_run[k]["hp_config." + n]) for n in names] for k in sorted(by_run)])
    params = []
    for j, name in enumerate(names):
        if name in SWITCHES:
            params.append(tables.param("train." + name, "categorical", 0, 1, choices=2))
            continue
        parent, value, fill = -1, 0.0, 0.0
        scale, low, high, whole = PLAIN[name] if name in PLAIN else CONDITIONAL[name][1:]
        if low is None:
            low, high = float(np.nanmin(x[:, j])), float(np.nanmax(x[:, j]))
        if name in CONDITIONAL:
            parent, value = names.index(CONDITIONAL[name][0]), 1.0
            fill = math.sqrt(low * high) if scale == "log" else 0.5 * (low + high)
            fill = round(fill) if whole else fill
            x[np.isnan(x[:, j]), j] = fill
        params.append(tables.param("train." + name, scale, low, high, whole, parent=parent, parent_value=value, fill=fill))
    return names, params, x


def drivers(names):
    """Weight of each parameter in the log of the time, before it is standardised."""
    weight = {"minibatch_size": -1.0, "buffer_batch_size": 1.0, "buffer_prio_sampling": 0.5}
    return np.array([weight.get(n, 0.0) for n in names])


def convert(folder, name, times, output):
    rows = read(os.path.join(folder, name + ".csv.xz"))
    names, params, x = columns(rows)
    algorithm, game = name.rsplit("_", 1)[1].upper(), GAMES[name.rsplit("_", 1)[0]]
    checkpoints = sorted({float(r["budget"]) for r in rows})
    runs, seeds = sorted({int(r["run_id"]) for r in rows}), sorted({int(r["seed"]) for r in rows})
    y = np.full((len(runs), len(seeds), len(checkpoints)), np.nan)
    for r in rows:
        if r["performance"]:
            y[runs.index(int(r["run_id"])), seeds.index(int(r["seed"])), checkpoints.index(float(r["budget"]))] = float(
                r["performance"])
    log_time = np.log(times.get((algorithm, game)) or times[("SAC", game)])
    q = np.quantile(log_time, [0.25, 0.5, 0.75])
    sd = min((q[2] - q[0]) / 1.35, 0.8)
    weight = drivers(names)
    index = tables.unit(params, x) @ weight
    weight = weight * sd / index.std()
    ratio = checkpoints[-1] / checkpoints[0]
    start = 0.1 * math.exp(q[1])
    params.append(tables.param("train.total_steps", "log", checkpoints[0], checkpoints[-1], True))
    x = np.column_stack([x, np.full(len(x), checkpoints[-1])])
    linear = [*weight, math.log(ratio)]
    const = math.log(0.9 * math.exp(q[1])) - math.log(ratio) - (tables.unit(params[:-1], x[:, :-1]) @ weight).mean()
    dim = len(params)
    header = {"params": params, "checkpoints": checkpoints, "budget": dim - 1, "trees": 200, "min_leaf": 1,
              "cost": {"start": start, "const": const, "linear": linear, "quadratic": [0.0] * (dim * dim), "sd": 0.1}}
    tables.write(os.path.join(output, "arl-" + name.replace("_", "-") + ".tbl"), header, x, y)
    print(f"{name}: {dim} parameters, {len(runs)} configs x {len(seeds)} seeds, {np.isnan(y).mean():.2%} failed, "
          f"runtime {math.exp(q[1]):.0f} s x/: {math.exp(sd):.2f}")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    folder, output = sys.argv[1:]
    os.makedirs(output, exist_ok=True)
    times = runtimes(folder)
    for file in sorted(os.listdir(folder)):
        if file.endswith(".csv.xz") and not file.startswith("runtimes"):
            convert(folder, file[:-len(".csv.xz")], times, output)


if __name__ == "__main__":
    main()
