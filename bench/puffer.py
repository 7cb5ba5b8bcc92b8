#!/usr/bin/env python3
"""puffer.py - what becomes of the games of a tree of PufferLib 4.0, ocean/NAME/binding.c with config/NAME.ini.

usage: bench/puffer.py TRAWL games TREE --out bench/results/puffer-games.csv [--steps 100000]
       bench/puffer.py TRAWL learning TREE LIBRARIES [GAME ...] --out bench/results/puffer-learning.csv [--seconds 40] [--seed 1] [--device auto]

games     each game with a native binding (vecenv.h): does it build, pass `trawl env check`, load its config, train? Trained with
          Trawl's defaults and 64 hidden units for --steps steps; perf is that of the evaluation at the end. Nothing of the tree is kept.
learning  trains with the published configs, each for a limited time, one after another. LIBRARIES has NAME.so as `trawl env build
          TREE/ocean/NAME` makes it. perf is of an evaluation after training; seconds are of training, without start and evaluation.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

import measure

GIVEN = {"squared_continuous": ["--env.size", "5"]}  # options of games whose config the tree lacks
LIFELONG = ["enduro"]  # perf counts since a game was made: that of the training's last tenth, as an evaluation plays new ones


def trawl(args, words, timeout):
    try:
        done = subprocess.run([args.trawl, *words], capture_output=True, text=True, timeout=timeout, cwd=args.tree, check=False,
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


def build_and_try(args, game, folder):
    row = {"game": game, "builds": "no", "check": "", "steps_per_s": "", "config": "", "trains": "", "perf": "", "note": ""}
    library = os.path.join(folder, game + ".so")
    code, out, err = trawl(args, ["env", "build", os.path.join(args.tree, "ocean", game), "-o", library], 300)
    row["builds"] = "yes" if os.path.exists(library) else "no"
    if code != 0:
        row["note"] = first_error(out, err, args.tree)
        return row
    code, out, err = trawl(args, ["env", "check", library, *GIVEN.get(game, [])], 200)
    row["check"] = "passes" if code == 0 else "actions are numbers" if "is a number" in err else "faults"
    speed = re.search(r"^speed  (\S+)", out, re.M)
    row["steps_per_s"] = f"{float(speed.group(1)):.0f}" if speed else ""
    notes = [first_error(out, err, folder + "/")] if code != 0 else []
    loads, out, err = trawl(args, ["train", library, os.path.join(args.tree, "config", game + ".ini"), "--print-config"], 60)
    row["config"] = "loads" if loads == 0 else "refused"
    notes += ["config: " + first_error(out, err, args.tree + "/")] if loads != 0 else []
    code, out, err = trawl(args, ["env", "describe", library], 60)
    agents = json.loads(out)["shape"]["n_agents"] if code == 0 else 1
    total = max(agents, 256 // agents * agents)
    code, out, err = trawl(args, ["train", library, *GIVEN.get(game, []), "--json", "-q", "--train.total_timesteps", str(args.steps), "--train.total_agents", str(total),
                                  "--train.minibatch_size", str(total * 32), "--policy.hidden_size", "64", "--train.eval_max_steps", "1000"], 120)
    row["trains"] = "yes" if code == 0 else "no"
    if code == 0:
        perf = json.loads(out)["perf"]  # None: no episode ended, or the game does not say
        row["perf"] = "" if perf is None else f"{perf:.4f}"
    elif row["check"] == "passes":
        notes.append("training: " + first_error("", err, folder + "/"))
    row["note"] = "; ".join(notes)
    return row


def learn(args, game):
    row = {"game": game, "perf": "", "score": "", "seconds": "", "steps_m": "", "m_steps_per_s": "", "process_s": "", "note": ""}
    begin = time.monotonic()
    code, out, err = trawl(args, ["train", os.path.join(args.libraries, game + ".so"), os.path.join(args.tree, "config", game + ".ini"),
                                  "--train.seed", str(args.seed), "--train.max_seconds", str(args.seconds), "--train.device", args.device,
                                  "--train.eval_episodes", "300", "--train.eval_max_steps", "20000", "--json", "-q"], args.seconds + 60)
    row["process_s"] = f"{time.monotonic() - begin:.1f}"
    if code != 0:
        row["note"] = first_error("", err, args.tree + "/")
        return row
    result = json.loads(out)
    wall, steps = float(result["cost_s"]), float(result["env_steps"])
    scored = result["train"] if game in LIFELONG else result
    return row | {"perf": f"{float(scored['perf']):.4f}", "score": f"{float(scored['score']):.4g}", "seconds": f"{wall:.2f}",
                  "steps_m": f"{steps / 1e6:.2f}", "m_steps_per_s": f"{steps / wall / 1e6:.2f}"}


def main():
    parser = measure.parser(__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    games, learning = commands.add_parser("games"), commands.add_parser("learning")
    for command in (games, learning):
        command.add_argument("tree", type=os.path.abspath)
        command.add_argument("--out", required=True)
    games.add_argument("--steps", type=int, default=100000)
    learning.add_argument("libraries", type=os.path.abspath)
    learning.add_argument("games", nargs="*")
    learning.add_argument("--seconds", type=int, default=40)
    learning.add_argument("--seed", type=int, default=1)
    learning.add_argument("--device", default="auto")
    args = parser.parse_args()
    about, rows = measure.place(args.trawl), []
    if args.what == "games":
        names = sorted(os.path.basename(os.path.dirname(path)) for path in glob.glob(os.path.join(args.tree, "ocean", "*", "binding.c"))
                       if "vecenv.h" in open(path, encoding="utf-8").read())
    else:
        names = args.games or sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(args.libraries, "*.so")))
    with tempfile.TemporaryDirectory() as folder:
        for game in names:
            rows.append(build_and_try(args, game, folder) if args.what == "games" else learn(args, game))
            print(",".join(rows[-1].values()), file=sys.stderr, flush=True)
            measure.result_table.write(args.out, about, rows)


if __name__ == "__main__":
    main()
