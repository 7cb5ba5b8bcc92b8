#!/usr/bin/env python3
"""record.py - real trainings of Trawl over one search space, recorded as a problem for `trawl-bench sweep`.

usage: record.py run  --out trials.jsonl [--trawl PROGRAM] [--processes N] [--seconds S] [--configs 520]
       record.py pack --out DIR --trials trials.jsonl     (needs numpy; writes DIR/trawl-pong.tbl and DIR/trawl-cartpole.tbl)

`run` trains random configs of SPACE on each game, two seeds each, one thread a trial, and appends a line for each to --out: the
parameters, perf at ten shares of the run (between the reports of every 50 ms, by interpolation) and at its end, the
seconds of training. A rerun skips what the file holds.

`pack` writes the tables that bench/sweep/table.c reads: forests with 3 rows a leaf or more. The cost is a
quadratic in the mapped parameters, fitted to the log of the seconds by least squares; its residual is the noise. The
seconds of every trial follow as a third array, for people. A run's length is one of the parameters and its learning rate
is annealed over it, so a run's own course is not a shorter run: the table's checkpoints are shares of the run, and
the end counts.
"""
import argparse
import json
import math
import multiprocessing
import os
import random
import re
import subprocess
import sys
import time

SHARES = [0.1 * (k + 1) for k in range(10)]
STEPS = {"pong": (100e3, 1.5e6), "cartpole": (20e3, 500e3)}
SEEDS = 2
FIXED = {"policy.core": "mlp", "policy.num_layers": "1", "train.total_agents": "128", "train.horizon": "32",
         "train.optimizer": "muon", "train.threads": "1", "train.log_interval_s": "0.05", "train.device": "cpu"}
LINE = re.compile(r"([0-9.]+)([kMG]?) steps .*perf (\S+)")


def space(env):
    return [("train.total_timesteps", "log", *STEPS[env], True), ("train.learning_rate", "log", 1e-3, 0.1, False),
            ("train.gamma", "logit", 0.9, 0.999, False), ("train.gae_lambda", "logit", 0.6, 0.995, False),
            ("train.ent_coef", "log", 1e-5, 0.1, False), ("train.clip_coef", "linear", 0.05, 0.8, False),
            ("train.vf_coef", "linear", 0.1, 5.0, False), ("train.replay_ratio", "linear", 0.5, 4.0, False),
            ("train.minibatch_size", "pow2", 256, 4096, True), ("policy.hidden_size", "pow2", 16, 128, True)]


def draw(env, index):
    """Config `index` of a game: uniform on the mapped scale of each parameter."""
    rng, x = random.Random(f"{env} {index}"), {}
    for key, scale, low, high, whole in space(env):
        u = rng.random()
        if scale == "log":
            v = low * (high / low) ** u
        elif scale == "logit":
            a, b = math.log(low / (1 - low)), math.log(high / (1 - high))
            v = 1 / (1 + math.exp(-(a + u * (b - a))))
        elif scale == "pow2":
            a, b = int(math.log2(low)), int(math.log2(high))
            v = 2 ** (a + min(int(u * (b - a + 1)), b - a))
        else:
            v = low + u * (high - low)
        x[key] = int(round(v)) if whole else v
    return x


def course(text, total):
    """perf at SHARES of the run, from the progress lines; None before the first episode ended."""
    points = []
    for line in text.splitlines():
        found = LINE.search(line)
        if found:
            steps = float(found[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[found[2]]
            if found[3][0].isdigit():  # "-" before the first episode ended
                points.append((steps / total, float(found[3])))
    result = []
    for share in SHARES:
        before = [p for p in points if p[0] <= share]
        after = [p for p in points if p[0] > share]
        if not before:
            result.append(None)
        elif not after:
            result.append(before[-1][1])
        else:
            (a, pa), (b, pb) = before[-1], after[0]
            result.append(round(pa + (pb - pa) * (share - a) / (b - a), 5))
    return result


def run_trial(args, env, index, seed):
    x = draw(env, index)
    command = [args.trawl, "train", env, "--json", "--train.seed", str(1000 * seed + index)]
    for key, value in {**FIXED, **x}.items():
        command += ["--" + key, repr(value) if isinstance(value, float) else str(value)]
    done = subprocess.run(command, capture_output=True, text=True)
    trial = {"env": env, "index": index, "seed": seed, "x": [x[p[0]] for p in space(env)]}
    if done.returncode == 0:
        result = json.loads(done.stdout)
        trial.update(cost_s=round(result["cost_s"], 5), perf=result["perf"], steps=result["env_steps"],
                     curve=course(done.stderr, result["env_steps"]))
    else:
        trial.update(failed=done.stderr.strip()[-200:])
    return trial


def worker(args, tasks, lock, deadline):
    while time.monotonic() < deadline:
        task = tasks.get()
        if task is None:
            return
        trial = run_trial(args, *task)
        with lock, open(args.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(trial) + "\n")


def read(path):
    trials = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in file:
                trial = json.loads(line)
                trials[trial["env"], trial["index"], trial["seed"]] = trial
    return trials


def run(args):
    deadline, done = time.monotonic() + args.seconds, read(args.out)
    tasks, lock = multiprocessing.Queue(), multiprocessing.Lock()
    for index in range(args.configs):
        for env in STEPS:
            for seed in range(SEEDS):
                if (env, index, seed) not in done:
                    tasks.put((env, index, seed))
    for _ in range(args.processes):
        tasks.put(None)
    workers = [multiprocessing.Process(target=worker, args=(args, tasks, lock, deadline)) for _ in range(args.processes)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    tasks.cancel_join_thread()
    trials = read(args.out)
    print(f"{len(trials)} trials, {sum('failed' in t for t in trials.values())} failed, "
          f"{sum(t.get('cost_s', 0) for t in trials.values()):.0f} s of training in all")


def fit_cost(u, log_cost):
    """const, linear, quadratic (dim * dim, upper) and sd of the residual."""
    import numpy as np
    n, dim = u.shape
    pairs = [(i, j) for i in range(dim) for j in range(i, dim)]
    design = np.column_stack([np.ones(n), u, *[u[:, i] * u[:, j] for i, j in pairs]])
    beta, *_ = np.linalg.lstsq(design, log_cost, rcond=None)
    quadratic = np.zeros((dim, dim))
    for (i, j), value in zip(pairs, beta[1 + dim:]):
        quadratic[i, j] = value
    rest = log_cost - design @ beta
    sd = math.sqrt((rest ** 2).sum() / (n - design.shape[1]))
    print(f"  cost: R2 {1 - rest.var() / log_cost.var():.4f}, residual sd {sd:.3f}")
    return float(beta[0]), beta[1:1 + dim].tolist(), quadratic.ravel().tolist(), sd


def pack(args):
    import numpy as np
    import tables
    trials = read(args.trials)
    for env in STEPS:
        params = [tables.param(key, scale, low, high, whole) for key, scale, low, high, whole in space(env)]
        whole = [k for k in range(args.configs) if all((env, k, s) in trials for s in range(SEEDS))]
        x = np.array([trials[env, k, 0]["x"] for k in whole], float)
        y = np.full((len(whole), SEEDS, len(SHARES)), np.nan)
        cost = np.full((len(whole), SEEDS), np.nan)
        for i, k in enumerate(whole):
            for s in range(SEEDS):
                trial = trials[env, k, s]
                if "failed" in trial:
                    continue
                curve = [math.nan if v is None else v for v in trial["curve"]]
                curve[-1] = trial["perf"]
                first = next((v for v in curve if math.isfinite(v)), math.nan)
                y[i, s] = [first if not math.isfinite(v) else v for v in curve]
                cost[i, s] = trial["cost_s"]
        ok = np.isfinite(cost)
        u = tables.unit(params, x)
        print(f"{env}: {len(whole)} configs, {int((~ok).sum())} of {ok.size} trials failed, perf {np.nanquantile(y[:, :, -1], [0.1, 0.5, 0.9, 0.99])}, "
              f"sd between seeds {np.nanmean(np.abs(y[:, 0, -1] - y[:, 1, -1])) / 1.128:.3f}, seconds {np.nanquantile(cost, [0, 0.5, 1])}")
        const, linear, quadratic, sd = fit_cost(np.concatenate([u[ok[:, s]] for s in range(SEEDS)]),
                                                np.log(np.concatenate([cost[ok[:, s], s] for s in range(SEEDS)])))
        header = {"params": params, "checkpoints": SHARES, "budget": -1, "trees": 100, "min_leaf": 3,
                  "cost": {"start": 0.0, "const": const, "linear": linear, "quadratic": quadratic, "sd": sd}}
        os.makedirs(args.out, exist_ok=True)
        tables.write(os.path.join(args.out, f"trawl-{env}.tbl"), header, x, y, cost)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("what", choices=["run", "pack"])
    parser.add_argument("--trials", help="pack: what run wrote")
    parser.add_argument("--out", required=True)
    parser.add_argument("--trawl", default="build/sweep/trawl")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--configs", type=int, default=520)
    args = parser.parse_args()
    if args.what == "pack" and args.trials is None:
        sys.exit(__doc__)
    (run if args.what == "run" else pack)(args)


if __name__ == "__main__":
    main()
