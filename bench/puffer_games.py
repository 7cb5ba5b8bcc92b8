#!/usr/bin/env python3
"""puffer_games.py - what becomes of each game of a tree of PufferLib 4.0: does it build, pass `trawl env check`, load its config, train?

usage: bench/puffer_games.py TREE [--trawl build/sweep/trawl] [--steps 100000] --out bench/results/puffer-games.csv

TREE has ocean/NAME/binding.c and config/NAME.ini; its games are those ported to the native binding (OBS_TENSOR_T). A game is
trained with Trawl's defaults and 64 hidden units for --steps steps, to see that it trains; perf is that of the evaluation at the end. Nothing of the tree
is kept.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile


# options of games whose config the tree lacks
GIVEN = {"squared_continuous": ["--env.size", "5"]}


def trawl(args, words, timeout, cwd):
    try:
        done = subprocess.run([args.trawl, *words], capture_output=True, text=True, timeout=timeout, cwd=cwd, check=False,
                              stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return -1, "", f"trawl: not done within {timeout} s"


def first_error(out, err, where):
    faults = [line[7:] for line in out.splitlines() if line.startswith("FAULT")]
    lines = [re.sub(r"^.*?: error: ", "", line) for line in err.splitlines() if ": error: " in line]
    lines += [line[7:] for line in err.splitlines() if line.startswith("trawl: ") and not line.startswith(("trawl: info", "trawl: warning"))]
    text = (faults or lines or ["?"])[0].split("; there are ")[0]
    text = re.sub(r"(.{20,}?)( \1)+.*", r"\1", text)  # a library's log, the same line many times
    return text.replace(where, "").replace('"', "'").replace(",", ";")[:160]


def one(args, game, folder):
    row = {"game": game, "builds": "no", "check": "", "steps_per_s": "", "config": "", "trains": "", "perf": "", "note": ""}
    library = os.path.join(folder, game + ".so")
    code, out, err = trawl(args, ["env", "build", os.path.join(args.tree, "ocean", game), "-o", library], 300, args.tree)
    row["builds"] = "yes" if os.path.exists(library) else "no"
    if code != 0:
        row["note"] = first_error(out, err, args.tree)
        return row
    code, out, err = trawl(args, ["env", "check", library, *GIVEN.get(game, [])], 200, args.tree)
    row["check"] = "passes" if code == 0 else "actions are numbers" if "is a number" in err else "faults"
    speed = re.search(r"^speed  (\S+)", out, re.M)
    row["steps_per_s"] = f"{float(speed.group(1)):.0f}" if speed else ""
    if code != 0:
        row["note"] = first_error(out, err, folder + "/")
    config = os.path.join(args.tree, "config", game + ".ini")
    loads, out, err = trawl(args, ["train", library, config, "--print-config"], 60, args.tree)
    row["config"] = "loads" if loads == 0 else "refused"
    if loads != 0:
        row["note"] += ("; " if row["note"] else "") + "config: " + first_error(out, err, args.tree + "/")
    code, out, err = trawl(args, ["env", "describe", library], 60, args.tree)
    agents = json.loads(out)["shape"]["n_agents"] if code == 0 else 1
    total = max(agents, 256 // agents * agents)
    code, out, err = trawl(args, ["train", library, *GIVEN.get(game, []), "--json", "-q", "--train.total_timesteps", str(args.steps), "--train.total_agents", str(total),
                                  "--train.minibatch_size", str(total * 32), "--policy.hidden_size", "64", "--train.eval_max_steps", "1000"], 120, args.tree)
    row["trains"] = "yes" if code == 0 else "no"
    if code == 0:
        row["perf"] = f"{float(json.loads(out)['perf']):.4f}"
    elif row["check"] == "passes":
        row["note"] += ("; " if row["note"] else "") + "training: " + first_error("", err, folder + "/")
    return row


def machine():
    cpu = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    name = re.search(r"^Model name:\s*(.*)$", cpu, re.M).group(1)
    return f"{name}, {os.cpu_count()} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("tree")
    parser.add_argument("--trawl", default="build/sweep/trawl")
    parser.add_argument("--steps", type=int, default=100000)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    args.tree, args.trawl = os.path.abspath(args.tree), os.path.abspath(args.trawl)
    games = sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(args.tree, "ocean", "*", "binding.c"))
                   if "OBS_TENSOR_T" in open(path, encoding="utf-8").read())
    version = subprocess.run([args.trawl, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for game in games:
            rows.append(one(args, game, folder))
            print(",".join(rows[-1].values()), file=sys.stderr, flush=True)
    with open(args.out, "w", encoding="utf-8") as file:
        file.write(f"# {machine()}; {version}; bench/puffer_games.py on the games ported to PufferLib 4.0's native binding, "
                   f"{args.steps} steps each\n")
        file.write(",".join(rows[0]) + "\n")
        for row in rows:
            file.write(",".join(row.values()) + "\n")


if __name__ == "__main__":
    main()
