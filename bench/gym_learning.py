#!/usr/bin/env python3
"""gym_learning.py - what the examples of examples/gym/ learn, beside published bands, as a table.

usage: bench/gym_learning.py TRAWL PYTHON --out FILE.csv [--seeds 3] [--only NAME ...] [--processes 1] [--jobs 1]

PYTHON has gymnasium[mujoco], minigrid and ale-py; an environment that it lacks is a failure. Trained on one CPU thread; the score is the mean return of
an evaluation by the trained policy, which draws its actions, over the seeds; the mean of the last tenth of training stands beside it. The bands of MuJoCo are
CleanRL's, of ppo_continuous_action.py after 1M steps (docs/benchmark in its repository: mean and deviation of its seeds, whose
returns are those of training's last 100 episodes). MiniGrid counts as solved from 0.9. Pong rises: a policy that plays at random
loses by 20.7 points of 21 (deviation 0.6). Exit code 1: a score lies below its band.
"""

import concurrent.futures
import os
import statistics
import sys

import measure

EXAMPLES = os.path.join(measure.ROOT, "examples", "gym")
# name, example, options, seeds at most, lowest score, what it is taken from
CASES = [("InvertedPendulum-v4", "hopper.ini", ["--env.name", "gym:InvertedPendulum-v4"], 9, 963.09 - 22.20, "CleanRL 963.09 +- 22.20"),
         ("Hopper-v4", "hopper.ini", [], 9, 2382.86 - 271.74, "CleanRL 2382.86 +- 271.74"),
         ("HalfCheetah-v4", "half_cheetah.ini", [], 9, 1442.64 - 46.03, "CleanRL 1442.64 +- 46.03"),
         ("MiniGrid-Empty-5x5-v0", "minigrid.ini", ["--env.name", "gym:minigrid:MiniGrid-Empty-5x5-v0", "--train.total_timesteps", "100k"], 9, 0.9,
          "solved"),
         ("MiniGrid-DoorKey-5x5-v0", "minigrid.ini", [], 9, 0.9, "solved"),
         ("Pong-v5", "pong.ini", [], 1, -18.0, "above random play, -20.7")]


def train(args, case, seed):
    return measure.run_json([args.trawl, "train", os.path.join(EXAMPLES, case[1]), *case[2], "--env.python", args.python, "--env.processes",
                             str(args.processes), "--train.device", "cpu", "--train.threads", "1", "--train.seed", str(seed), "--json", "-q"])


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("python")
    parser.add_argument("--out", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help=", ".join(case[0] for case in CASES))
    parser.add_argument("--processes", type=int, default=1, help="Python processes of a training")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time; each takes a core for Trawl and one for each of its processes")
    args = parser.parse_args()
    unknown = set(args.only) - {case[0] for case in CASES}
    if unknown or args.seeds < 1 or args.jobs < 1:
        parser.error(f"there is no case {min(unknown)}" if unknown else "--seeds and --jobs must be 1 or more")
    about, rows, missed = measure.place(args.trawl), [], []
    cases = [case for case in CASES if not args.only or case[0] in args.only]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        trainings = {case[0]: [pool.submit(train, args, case, seed) for seed in range(1, min(args.seeds, case[3]) + 1)] for case in cases}
        for name, _, _, _, least, source in cases:
            try:
                runs = [training.result() for training in trainings[name]]
            except SystemExit as error:
                print(f"{name}: {error}", file=sys.stderr, flush=True)
                missed.append(name)
                continue
            scores = [float(run["score"]) for run in runs]
            rows.append({"env": name, "steps": runs[0]["env_steps"], "seeds": len(runs), "score": statistics.mean(scores), "lowest": min(scores),
                         "highest": max(scores), "training": statistics.mean(float(run["train"]["score"]) for run in runs),
                         "seconds": statistics.mean(float(run["cost_s"]) for run in runs), "band_from": least, "band": source})
            print(rows[-1], flush=True)
            measure.result_table.write(args.out, about, rows)
            if not rows[-1]["score"] >= least:
                missed.append(name)
    if missed:
        sys.exit("not learned, or below their bands: " + ", ".join(missed))


if __name__ == "__main__":
    main()
