#!/usr/bin/env python3
"""score.py - time to score on a GPU: how long a process takes from its start until its policy is good.

usage: bench/score.py measure [--trawl FILE] [--seeds N] [--first-seed N] [--configs DIR] [--warm-bench FILE] [--out CSV] [CASE ...]
       bench/score.py tune --out DIR [--trawl FILE] [--warm-bench FILE] [--wall-time S] [--lanes N] [--seeds N] [CASE ...]

measure  trains the configs of examples/fast-gpu/, or of --configs, with N seeds (10) from --first-seed (1) on, each in a process of its
         own: seconds from the start of the process until the policy is trained (start_s + cost_s of `trawl train --json`), and until
         the process has ended, without its evaluation. The policy then plays 10,000 episodes in the same process. With --warm-bench
         the same seeds once more as trials of a process that lives on. The first process is not counted: it fills the page cache
         and the cache of plans.
tune     sweeps a config of examples/fast-gpu/ over SEARCHED for S seconds (60), trains the cheapest promising configs of its front
         with N seeds, and writes the cheapest that reaches the perf with nine seeds of ten to DIR/CASE.ini. The stores stay in DIR.

Prints Markdown tables. Exit code 1 when a case misses its aim.
"""

import os
import statistics
import sys
import time

import measure

# seconds from process start until the policy is trained, median: the aim
CASES = {"breakout": 0.8, "pong": 0.5, "cartpole": 0.35, "memory": 0.35, "squared": 0.35}
SEARCHED = {  # by tune: distribution, min, max
    "breakout": {"policy.hidden_size": "pow2 16 64", "policy.num_layers": "linear 1 2", "train.total_timesteps": "log 30M 120M",
                 "train.learning_rate": "log 0.03 0.3", "train.gamma": "logit 0.9 0.97", "train.gae_lambda": "logit 0.97 0.999",
                 "train.ent_coef": "log 2e-4 1e-2", "train.clip_coef": "linear 0.4 1.2", "train.vf_coef": "log 2 15",
                 "train.replay_ratio": "log 0.2 1", "train.minibatch_size": "pow2 32768 262144", "train.total_agents": "pow2 1024 4096"},
    "pong": {"policy.hidden_size": "pow2 32 64", "policy.num_layers": "linear 1 3", "train.total_timesteps": "log 1M 4M",
             "train.learning_rate": "log 0.1 0.6", "train.gamma": "logit 0.9 0.98", "train.gae_lambda": "logit 0.7 0.95",
             "train.ent_coef": "log 2e-3 5e-2", "train.clip_coef": "linear 0.5 1.5", "train.vf_coef": "log 0.2 2",
             "train.replay_ratio": "log 0.5 2", "train.minibatch_size": "pow2 4096 32768", "train.total_agents": "pow2 128 1024"},
    "cartpole": {"train.total_timesteps": "log 200k 1M", "train.learning_rate": "log 0.02 0.2", "train.gamma": "logit 0.95 0.995",
                 "train.gae_lambda": "logit 0.95 0.999", "train.ent_coef": "log 1e-6 1e-3", "train.clip_coef": "linear 0.3 1",
                 "train.vf_coef": "log 0.5 4", "train.replay_ratio": "log 0.3 2", "train.minibatch_size": "pow2 1024 16384",
                 "train.total_agents": "pow2 512 4096"},
    "memory": {"train.total_timesteps": "log 150k 1M", "train.learning_rate": "log 0.05 0.5", "train.ent_coef": "log 1e-2 2e-1",
               "train.replay_ratio": "log 2 10", "train.minibatch_size": "pow2 8192 65536", "train.total_agents": "pow2 512 4096"},
    "squared": {"policy.hidden_size": "pow2 64 128", "train.total_timesteps": "log 1M 4M", "train.learning_rate": "log 0.05 0.4",
                "train.gae_lambda": "logit 0.98 0.9995", "train.ent_coef": "log 3e-3 5e-2", "train.clip_coef": "linear 0.3 1.2",
                "train.vf_coef": "log 0.02 0.5", "train.replay_ratio": "log 0.5 2", "train.minibatch_size": "pow2 8192 65536",
                "train.total_agents": "pow2 512 4096"},
}
PERF = 0.95
EPISODES = 10000
EVAL_STEPS = 1000000  # of an agent, which plays ten episodes after each other: none is cut off
CANDIDATES = 8  # that are trained again, at most
PROMISING = 0.93  # the score that a candidate's sweep expects of it
FEW_SEEDS = 3
GOOD_SHARE = 0.9  # of the seeds
PARTS = ("process", "driver", "context", "trainer")


def bench_file(*names):
    """A file of the repository, or beside this script in a folder that was carried elsewhere."""
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.join(base, *names) for base in (os.path.join(here, ".."), here)]
    return next((path for path in paths if os.path.exists(path)), paths[0])


def run_seed(arguments, config, seed):
    begin = time.monotonic()
    run = measure.run_json([arguments.trawl, "train", config, "--quiet", "--json", "--train.seed", str(seed),
                            "--train.eval_episodes", str(EPISODES), "--train.eval_max_steps", str(EVAL_STEPS)])
    whole_s = time.monotonic() - begin
    row = {"seed": seed, "trained_s": run["start_s"] + run["cost_s"], "ended_s": whole_s - run["eval_s"],
           "start_s": run["start_s"], "cost_s": run["cost_s"], "first_s": run["first_s"], "recording_s": run["recording_s"],
           "eval_s": run["eval_s"], "perf": run["perf"], "env_steps": run["env_steps"], "device": run["device"]}
    return row | {f"{part}_s": run["start"].get(f"{part}_s") for part in PARTS}


def warm_runs(arguments, config, seeds):
    """Trials of one process; the first, with the seed before --first-seed, is not counted."""
    first = ["--train.seed", str(arguments.first_seed - 1)]
    return measure.run_json([arguments.warm_bench, "score", config, str(seeds + 1), *first])["runs"][1:]


def spread_text(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def measure_cases(arguments):
    place, rows, met = measure.place(arguments.trawl), [], True
    print("| case | steps | seconds until trained, median (range) | aim | start | training | until the process has ended | "
          "perf of 10,000 episodes | in a warm process, s | met |\n|---|---|---|---|---|---|---|---|---|---|")
    for case in arguments.cases:
        config = os.path.join(arguments.configs, f"{case}.ini")
        run_seed(arguments, config, arguments.first_seed)
        runs = [run_seed(arguments, config, arguments.first_seed + i) for i in range(arguments.seeds)]
        warm = warm_runs(arguments, config, arguments.seeds) if arguments.warm_bench else []
        column = {key: [run[key] for run in runs] for key in runs[0]}
        good = statistics.median(column["perf"]) >= PERF and statistics.median(column["trained_s"]) <= CASES[case]
        met = met and good
        print(f"| {case} | {runs[0]['env_steps'] / 1e6:.3g} M | {spread_text(column['trained_s'], 2)} | {CASES[case]:g} | "
              f"{statistics.median(column['start_s']):.2f} | {statistics.median(column['cost_s']):.2f} | "
              f"{spread_text(column['ended_s'], 2)} | {spread_text(column['perf'], 3)} | "
              f"{spread_text([run['s'] for run in warm], 2) if warm else ''} | {'yes' if good else '**no**'} |", flush=True)
        rows += [{"case": case, "how": "process", **run} for run in runs]
        rows += [{"case": case, "how": "warm", "seed": run["seed"], "cost_s": run["s"], "perf": run["perf"],
                  "env_steps": run["env_steps"]} for run in warm]
        if arguments.out:
            measure.result_table.write(arguments.out, place, rows)
    return met


def candidates_of(trials, case):
    """Those that reached the perf and are believed to, the cheapest first."""
    good = [t for t in trials if t["state"] == "done" and (t.get("score") or 0) >= PERF
            and (t.get("score_mean") or t["score"]) >= PROMISING]
    print(f"{case}: {len(trials)} trials, {len(good)} that may reach {PERF}", file=sys.stderr)
    return sorted(good, key=lambda t: t["cost_s"])[:CANDIDATES]


def tune_case(arguments, case):
    store, space = os.path.join(arguments.out, case + ".db"), os.path.join(arguments.out, case + "-space.ini")
    with open(space, "w", encoding="utf-8") as out:
        out.write("[train]\neval_episodes = 2000\n[sweep]\nmethod = pareto\nmetric = perf\nn_init = 10\n")
        for key, searched in SEARCHED[case].items():
            out.write("[sweep.%s]\ndistribution = %s\nmin = %s\nmax = %s\n" % (key, *searched.split()))
    trials = measure.sweep(arguments.trawl, os.path.join(arguments.configs, f"{case}.ini"), store, case, space,
                           "--wall-time", f"{arguments.wall_time}s", "--runs-per-device", str(arguments.lanes))
    for trial in candidates_of(trials, case):
        config = os.path.join(arguments.out, f"{case}-{trial['number']}.ini")
        measure.export(arguments.trawl, store, case, f"trial={trial['number']}", config)
        for seeds in sorted({min(FEW_SEEDS, arguments.seeds), arguments.seeds}):  # a few first: most are lucky runs
            runs = warm_runs(arguments, config, seeds)
            perfs, seconds = [run["perf"] for run in runs], [run["s"] for run in runs]
            n_good = sum(perf >= PERF for perf in perfs)
            print(f"| {case} | trial {trial['number']} | {trial['score']:.3f} in {trial['cost_s']:.3f} s | {n_good} of "
                  f"{len(runs)} | {spread_text(perfs, 3)} | {spread_text(seconds, 3)} |", flush=True)
            if n_good < GOOD_SHARE * len(runs):
                break
        else:
            os.replace(config, os.path.join(arguments.out, f"{case}.ini"))
            return True
    return False


def main():
    parser = measure.parser(__doc__, program=False)
    parser.add_argument("what", choices=["measure", "tune"])
    parser.add_argument("--trawl", default="build/sweep/trawl")
    parser.add_argument("--warm-bench", help="build/bench/warm_bench; tune needs it")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--configs", default=bench_file("examples", "fast-gpu"), help="folder with CASE.ini")
    parser.add_argument("--wall-time", type=int, default=60, help="of a sweep, seconds")
    parser.add_argument("--lanes", type=int, default=4, help="trials at a time")
    parser.add_argument("--out", help="measure: CSV file; tune: folder")
    arguments = measure.parse_cases(parser, CASES)
    if arguments.what == "measure":
        return 0 if measure_cases(arguments) else 1
    if not arguments.out or not arguments.warm_bench:
        parser.error("tune needs --out and --warm-bench")
    os.makedirs(arguments.out, exist_ok=True)
    print("| case | trial | in the sweep | good seeds | perf, median (range) | s |\n|---|---|---|---|---|---|")
    return 0 if all([tune_case(arguments, case) for case in arguments.cases]) else 1


if __name__ == "__main__":
    sys.exit(main())
