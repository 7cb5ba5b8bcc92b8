#!/usr/bin/env python3
"""gym_learning.py - what is learned in environments of Gymnasium in a given number of steps, beside published bands, as a table.

usage: bench/gym_learning.py TRAWL PYTHON --out FILE.csv [--seeds 3] [--only NAME ...]

PYTHON has gymnasium[mujoco] and minigrid; an environment that it lacks is left out. Trained on one CPU thread and one Python process; the score is
the mean return of an evaluation after training, over the seeds. The bands are CleanRL's, of ppo_continuous_action.py after 1M steps
(docs/benchmark in its repository, mean and deviation of its seeds); MiniGrid counts as solved from 0.9. Exit code 1: a
score lies below its band.
"""

import argparse
import statistics
import sys

import measure

CONTINUOUS = ["--policy.core", "mlp", "--policy.num_layers", "1", "--policy.hidden_size", "64", "--policy.activation", "tanh", "--policy.norm_obs", "true",
              "--train.horizon", "64", "--train.total_agents", "32", "--train.minibatch_size", "64", "--train.replay_ratio", "10", "--train.optimizer", "adam",
              "--train.learning_rate", "3e-4", "--train.eps", "1e-5", "--train.vf_clip_coef", "0.2", "--train.vf_coef", "0.5", "--train.ent_coef", "0",
              "--train.max_grad_norm", "0.5", "--train.scale_reward", "true", "--train.vtrace", "false", "--train.total_timesteps", "1M",
              "--train.eval_episodes", "32"]
GRID = ["--env.byte_scale", "10", "--policy.hidden_size", "128", "--train.total_agents", "32", "--train.horizon", "64", "--train.minibatch_size", "512",
        "--train.replay_ratio", "4", "--train.learning_rate", "0.01", "--train.eval_episodes", "100"]
# name, options, lowest score, what it is taken from
CASES = [("HalfCheetah-v4", CONTINUOUS, 1442.64 - 46.03, "CleanRL 1442.64 +- 46.03"),
         ("Hopper-v4", CONTINUOUS, 2382.86 - 271.74, "CleanRL 2382.86 +- 271.74"),
         ("minigrid:MiniGrid-Empty-5x5-v0", [*GRID, "--train.total_timesteps", "100k"], 0.9, "solved"),
         ("minigrid:MiniGrid-DoorKey-5x5-v0", [*GRID, "--train.total_timesteps", "200k"], 0.9, "solved")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trawl")
    parser.add_argument("python")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    about, rows, missed = measure.place(args.trawl), [], []
    for name, options, least, source in CASES:
        if args.only and name not in args.only:
            continue
        try:
            runs = [measure.run_json([args.trawl, "train", "gym:" + name, *options, "--env.python", args.python, "--env.processes", "1", "--train.device", "cpu",
                                      "--train.threads", "1", "--train.seed", str(seed), "--json", "-q"]) for seed in range(1, args.seeds + 1)]
        except SystemExit:
            print(f"{name}: it cannot be trained here, left out")
            continue
        scores = [float(run["score"]) for run in runs]
        rows.append({"env": name, "steps": runs[0]["env_steps"], "seeds": len(runs), "score": statistics.mean(scores), "lowest": min(scores),
                     "highest": max(scores), "seconds": statistics.mean(float(run["cost_s"]) for run in runs), "band_from": least, "band": source})
        print(rows[-1], flush=True)
        if rows[-1]["score"] < least:
            missed.append(name)
    measure.result_table.write(args.out, about, rows)
    if missed:
        sys.exit("below their bands: " + ", ".join(missed))


if __name__ == "__main__":
    main()
