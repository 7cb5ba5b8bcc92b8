#!/usr/bin/env python3
"""policies.py - steps a second of each game with each policy on a GPU, and how far each is from its floor.

usage: bench/policies.py TRAWL [--games NAME,...] [--policies 'NAME;...'] [--seconds S] [--limit S] [--device cuda] [--out CSV]

Trained with 4096 agents, horizon 64, minibatches of 32768 steps, one pass and Muon. The floor of a step is the time of the game alone
(`trawl bench env`) and of the matrix products at the card's rate (`trawl bench train`), one after the other; floor_percent is the floor
over what a step took. At --limit seconds it stops; with the same --out and build it continues there.
"""
import json
import subprocess
import time

import measure

GAMES = ["breakout", "pong", "cartpole", "memory", "squared", "connect4", "freeway", "slimevolley", "mountain_car_continuous", "pendulum",
         "minatar_breakout", "g2048", "tetris", "go", "maze", "snake", "trash_pickup"]
POLICIES = {
    "MinGRU 64x2": ["--policy.core", "mingru", "--policy.hidden_size", "64", "--policy.num_layers", "2"],
    "MinGRU 128x1": ["--policy.core", "mingru", "--policy.hidden_size", "128", "--policy.num_layers", "1"],
    "MLP 64x2": ["--policy.core", "mlp", "--policy.hidden_size", "64", "--policy.num_layers", "2"],
    "LSTM 128": ["--policy.core", "lstm", "--policy.hidden_size", "128", "--policy.num_layers", "1"],
    "conv, MinGRU 128x1": ["--policy.encoder", "conv", "--policy.core", "mingru", "--policy.hidden_size", "128", "--policy.num_layers", "1"],
}
LOOP = {"train.total_agents": 4096, "train.horizon": 64, "train.minibatch_size": 32768, "train.replay_ratio": 1, "train.optimizer": "muon"}


def bench(a, *words):
    """What `trawl bench` prints, or None and the reason."""
    done = subprocess.run([a.trawl, "bench", *words, "--seconds", f"{a.seconds}s", "--repeats", "3", "--json"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return None, (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return json.loads(done.stdout), ""


def row_of(a, game, policy, alone):
    loop = [word for key, value in LOOP.items() for word in ("--" + key, str(value))]
    run, why = bench(a, "train", game, *POLICIES[policy], *loop, "--train.device", a.device)
    if run is None:
        return {"game": game, "policy": policy, "note": why}
    rate = run["steps_per_s"]
    row = {"game": game, "policy": policy, "m_steps_per_s": rate / 1e6, "min": run["steps_per_s_min"] / 1e6, "max": run["steps_per_s_max"] / 1e6,
           "game_alone_m": alone / 1e6 if alone else None, "matrix_percent": 100 * run["sgemm_share"]}
    if alone:
        row["floor_percent"] = 100 * (rate / alone + run["sgemm_share"])
    return row | {phase + "_percent": part["percent"] for phase, part in run["profile"].items()}


def earlier(path, trawl):
    """The rows that an earlier call has measured with this build."""
    version = subprocess.run([trawl, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    rows = measure.result_table.read(path)
    return [row for row in rows if not row.get("note")] if rows and f"; {version}," in open(path, encoding="utf-8").readline() else []


def main():
    p = measure.parser(__doc__)
    p.add_argument("--games", default=",".join(GAMES))
    p.add_argument("--policies", default=";".join(POLICIES))
    p.add_argument("--seconds", type=float, default=0.1)
    p.add_argument("--limit", type=float, default=1e9)
    p.add_argument("--device", default="cuda")
    p.add_argument("--out", help="CSV file")
    a = p.parse_args()
    place, end_s = measure.place(a.trawl), time.monotonic() + a.limit
    rows = earlier(a.out, a.trawl) if a.out else []
    known = {(row["game"], row["policy"]) for row in rows}
    for game in a.games.split(","):
        left = [policy for policy in a.policies.split(";") if (game, policy) not in known]
        if not left or time.monotonic() > end_s:
            continue
        env, _ = bench(a, "env", game, "--device", a.device, "--envs", str(LOOP["train.total_agents"]))
        for policy in left:
            if time.monotonic() > end_s:
                break
            rows.append(row_of(a, game, policy, env["steps_per_s"] if env else None))
            print(measure.result_table.line(rows[-1]), flush=True)
            if a.out:
                measure.result_table.write(a.out, place, rows)


if __name__ == "__main__":
    main()
