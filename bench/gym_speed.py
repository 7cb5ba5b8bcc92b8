#!/usr/bin/env python3
"""gym_speed.py - steps a second of Gymnasium's and EnvPool's environments: stepped by Trawl's Python processes, and by their own loops.

usage: bench/gym_speed.py TRAWL PYTHON --out bench/results/gym.csv [--rounds 5] [--seconds 1]

PYTHON has gymnasium, and the packages of the environments: one whose package it lacks is left out. All are stepped alone, under random actions: Trawl's by
`trawl bench env` (the batch that a training steps, without a policy; a process for each core or all but one, of a vector environment or a pool one, or two
where it shows images),
Gymnasium's SyncVectorEnv and AsyncVectorEnv (shared memory, a process for each environment), of a vector environment (--env.vector) and of EnvPool the loop over
their own step. A round measures all one after another; the table has the best round of each, since other programs on the machine only ever slow one down.
How much of a training's time is left for the policy while Python steps is another question (bench/notes/own-games.md).
"""

import json
import subprocess

import measure

CASES = [("CartPole-v1", 8), ("CartPole-v1", 32), ("CartPole-v1", 128), ("minigrid:MiniGrid-Empty-8x8-v0", 32), ("HalfCheetah-v5", 32),
         ("ale_py:ALE/Pong-v5", 8)]
# stepped by a package's own vector environment: name, instances, kind
OWN = [("gym:CartPole-v1", 128, "vector"), ("gym:ale_py:ALE/Pong-v5", 8, "vector"), ("envpool:CartPole-v1", 128, "pool"), ("envpool:Pong-v5", 8, "pool"),
       ("envpool:HalfCheetah-v4", 32, "pool")]

THEIRS = """
import json, sys, time
import gymnasium
kind, game, n, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
def make():
    return gymnasium.make(game, disable_env_checker=True)
if __name__ == "__main__":
    made = [make] * n
    if kind == "pool":
        import envpool, numpy
        envs = envpool.make(game.partition(":")[2], env_type="gymnasium", num_envs=n, seed=1)
        envs.action_space.seed(1)
        envs.reset()
        actions = [numpy.stack([envs.action_space.sample() for _ in range(n)]) for _ in range(64)]
    else:
        shared = "minigrid" not in game  # whose missions cannot be shared
        envs = gymnasium.make_vec(game.partition(":")[2], num_envs=n, vectorization_mode="vector_entry_point") if kind == "vector" else \
            gymnasium.vector.SyncVectorEnv(made) if kind == "sync" else gymnasium.vector.AsyncVectorEnv(made, shared_memory=shared)
        envs.action_space.seed(1)
        envs.reset(seed=1)
        actions = [envs.action_space.sample() for _ in range(64)]
    steps, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        envs.step(actions[steps % 64])
        steps += 1
    spent = time.perf_counter() - begun
    envs.close()
    print(json.dumps(steps * n / spent))
"""


def ours(args, game, n, *words):
    return measure.run_json([args.trawl, "bench", "env", game, *words, "--env.python", args.python, "--envs", str(n), "--repeats", "1", "--seconds",
                             f"{args.seconds}s", "--json"])["steps_per_s"]


def theirs(args, kind, game, n):
    done = subprocess.run([args.python, "-c", THEIRS, kind, game, str(n), str(args.seconds)], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True)
    return json.loads(done.stdout)


def best_of(args, ours_name, kinds, game, n, *words):
    """The best round of Trawl and of each kind of theirs; None where a package is missing."""
    try:
        theirs(args, kinds[0], game, n)
    except subprocess.CalledProcessError:
        print(f"{game}: not installed, left out")
        return None
    rounds = [(ours(args, ours_name, n, *words), *(theirs(args, kind, game, n) for kind in kinds)) for _ in range(args.rounds)]
    return [max(values) for values in zip(*rounds)]


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("python")
    parser.add_argument("--out", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    args = parser.parse_args()
    about, rows, own = measure.place(args.trawl), [], []
    for game, n in CASES:
        if best := best_of(args, "gym:" + game, ("sync", "async"), game, n):
            mine, sync, at_once = best
            rows.append({"env": game, "instances": n, "trawl_steps_per_s": mine, "sync_steps_per_s": sync, "async_steps_per_s": at_once,
                         "trawl_over_sync": mine / sync, "trawl_over_async": mine / at_once})
            print(rows[-1], flush=True)
    for game, n, kind in OWN:
        if best := best_of(args, game, (kind,), game, n, *(["--env.vector", "true"] if kind == "vector" else [])):
            own.append({"env": game, "instances": n, "trawl_steps_per_s": best[0], "own_steps_per_s": best[1], "trawl_over_own": best[0] / best[1]})
            print(own[-1], flush=True)
    measure.result_table.write(args.out.replace(".csv", "-vector.csv"), about, own)
    measure.result_table.write(args.out, about, rows)


if __name__ == "__main__":
    main()
