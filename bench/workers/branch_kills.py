#!/usr/bin/env python3
"""branch_kills.py - sweeps with branches that are killed at random instants, again and again: then each branch is trained by itself and compared.

A sweep of short runs saves its trials every 0.1 s; after a random time the controller and its workers, the controller alone, or a worker alone get a SIGKILL,
and the sweep is continued. When a study has had its share of the kills it runs to its end. Then: each run has each of its branches
once, in ascending order, and has failed only where its workers were killed too often; `trawl check` finds nothing; `trawl rerun` of each branch gives the same score, standard error and steps, to the bit.
One line of JSON a study. Exit code 1 when something differs.

usage: bench/workers/branch_kills.py TRAWL [--kills 300] [--each 15] [--seed 1]
"""
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import measure  # noqa: E402

CONFIG = """[env]
name = cartpole
[policy]
hidden_size = 16
[train]
device = cpu
threads = 1
total_timesteps = 400000
total_agents = 16
horizon = 32
minibatch_size = 512
decay_steps = 10000
eval_episodes = 256
[sweep]
method = sobol
branches = 4
confirm = 0
checkpoint_interval_s = 0.1
runs_per_device = %d
seed = %d
[sweep.train.total_timesteps]
min = 20000
max = 800000
[sweep.train.learning_rate]
min = 0.001
max = 0.05
"""


def kill(process, how):
    """True: something was there to be killed."""
    if process.poll() is not None:
        return False
    if how == "worker":
        try:
            victims = measure.children(process.pid)
            if victims:
                os.kill(victims[0], signal.SIGKILL)
            return bool(victims)
        except OSError:
            return False
    if how == "controller":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def count(store, what):
    """Rows of the store; 0 while it is not there or has no tables."""
    try:
        with sqlite3.connect("file:%s?mode=ro" % store, uri=True, timeout=20) as db:
            return db.execute("SELECT count(*) FROM " + what).fetchone()[0]
    except sqlite3.Error:
        return 0


def study(args, folder, number, n_kills, rng):
    ini, store = os.path.join(folder, "s.ini"), os.path.join(folder, "%d.db" % number)
    with open(ini, "w", encoding="ascii") as file:
        file.write(CONFIG % (rng.choice((1, 2)), rng.randrange(1 << 30)))
    at = ["--store", store, "-q"]
    begin = [args.trawl, "sweep", ini, "--name", "a", "--trials", "5", *at]
    again = [args.trawl, "sweep", "--resume", "a", *at]
    killed, while_running, process = {"all": 0, "controller": 0, "worker": 0}, 0, None
    with open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        while sum(killed.values()) < n_kills:
            if process is None or process.poll() is not None:
                if process is not None and process.returncode == 0:
                    break  # it has all of its runs
                process = subprocess.Popen(again if count(store, "study") > 0 else begin, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
                time.sleep(0.15)
            time.sleep(rng.expovariate(1 / args.wait))
            how = rng.choice(("all", "all", "controller", "worker"))
            running = count(store, "trial WHERE finished_ms IS NULL AND started_ms IS NOT NULL")
            if kill(process, how):
                killed[how] += 1
                while_running += running > 0
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        subprocess.run(again, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False)
    return compare(args, store, killed, while_running)


def compare(args, store, killed, while_running):
    wrong, branches, trials = [], 0, measure.run_json([args.trawl, "show", "a", "--store", store, "--json"])["trials"]
    of = {}
    for t in trials:
        if t["origin"].startswith("branch "):
            of.setdefault(int(t["origin"].split()[1]), []).append(t)
    for t in trials:
        if t["origin"].startswith("branch "):
            continue
        steps = [b["env_steps"] for b in of.get(t["number"], [])]
        failed = t["state"] == "failed" and "worker" in t["reason"]  # three workers were killed under it
        if not (failed or t["state"] == "done") or steps != sorted(set(steps)) or (not failed and t["env_steps"] > 25000 and not steps):
            wrong.append("trial %d is %s, its branches have %s steps" % (t["number"], t["state"], steps))
    for t in sum(of.values(), []):
        branches += 1
        done = subprocess.run([args.trawl, "rerun", "a", "--trial", str(t["number"]), "--store", store, "--json", "-q"], capture_output=True, text=True,
                              check=False)
        found = json.loads(done.stdout) if done.stdout else {"now": {}}
        if any(found["now"].get(key) != t[key] for key in ("score", "score_se", "env_steps")):
            wrong.append("trial %d: %s now, %s stored; %s" % (t["number"], found["now"], {k: t[k] for k in ("score", "score_se", "env_steps")}, done.stderr))
    if subprocess.run([args.trawl, "check", store], capture_output=True, check=False).returncode != 0:
        wrong.append("trawl check found something")
    return {"killed": killed, "while_a_trial_ran": while_running, "attempts": max(t.get("attempt") or 0 for t in trials), "branches": branches, "wrong": wrong}


def main():
    parser = measure.parser(__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--each", type=int, default=15, help="kills of one study, at most")
    parser.add_argument("--wait", type=float, default=0.5, help="mean time before a kill, in seconds")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    rng, n, total, bad = random.Random(args.seed), 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while total < args.kills:
            found = study(args, folder, n, min(args.each, args.kills - total), rng)
            n, total, bad = n + 1, total + sum(found["killed"].values()), bad + len(found["wrong"])
            print(json.dumps({"study": n, "kills": total, **found}), flush=True)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
