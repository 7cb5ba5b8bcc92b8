#!/usr/bin/env python3
"""slots.py - whole sweeps on 1 and on several slots: trials that end in an hour, and the time in which slots have none.

usage: bench/slots.py TRAWL [--slots 1,4] [--trials 12] [--device cpu] [--out FILE]

Each sweep trains trials of equal work (cartpole, 2M steps, one thread), the same number for each slot; the times are those of the
store, from the first trial's start to the last one's end. Idle is the share of that time, up to each slot's last trial, in
which it had none. The load of the machine is printed: beside other work the numbers say how slots compare and no more.
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

import measure

CONFIG = """
[env]
name = cartpole

[train]
total_timesteps = 2M
threads = 1
device = auto

[sweep]
method = sobol
max_failures = 0

[sweep.train.learning_rate]
min = 0.001
max = 0.1

[sweep.train.gamma]
min = 0.8
max = 0.99
"""


def sweep(trawl, device, slots, trials, folder):
    store, config = folder / ("%d.db" % slots), folder / "s.ini"
    config.write_text(CONFIG)
    before = os.getloadavg()[0]
    subprocess.run([trawl, "sweep", config, "--store", store, "--name", "a", "--trials", str(slots * trials), "-q",
                    "--devices", device, "--runs-per-device", str(slots), "--sweep.cost", "env_steps"], check=True, stdout=subprocess.DEVNULL)
    shown = json.loads(subprocess.run([trawl, "show", "a", "--store", store, "--json"], check=True, capture_output=True,
                                      text=True).stdout)
    line, done = shown["timeline"], [t for t in shown["trials"] if t["state"] == "done"]
    seconds = (max(t["finished_ms"] for t in done) - min(t["started_ms"] for t in done)) / 1e3
    busy, idle = (sum(s[k] for s in line["slots"]) for k in ("busy_s", "idle_s"))
    return {"slots": slots, "trials": len(done), "seconds": seconds, "trials_per_hour": 3600 * len(done) / seconds,
            "idle_share": idle / (busy + idle), "idle_share_worst": max(s["idle_s"] / (s["busy_s"] + s["idle_s"])
                                                                        for s in line["slots"]),
            "cost_s_mean": sum(t["cost_s"] for t in done) / len(done), "load_before": before}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("trawl")
    p.add_argument("--slots", default="1,4")
    p.add_argument("--trials", type=int, default=12)
    p.add_argument("--device", default="cpu")
    p.add_argument("--out", help="CSV file")
    a = p.parse_args()
    trawl = os.path.abspath(a.trawl)
    with tempfile.TemporaryDirectory(prefix="trawl-slots-") as folder:
        rows = [sweep(trawl, a.device, slots, a.trials, pathlib.Path(folder)) for slots in map(int, a.slots.split(","))]
    for r in rows:
        print("%d slot(s): %d trials in %.1f s, %.0f an hour (x %.2f), idle %.2f %% (worst slot %.2f %%), cost %.2f s each, load %.1f" % (
            r["slots"], r["trials"], r["seconds"], r["trials_per_hour"], r["trials_per_hour"] / rows[0]["trials_per_hour"],
            100 * r["idle_share"], 100 * r["idle_share_worst"], r["cost_s_mean"], r["load_before"]))
    if a.out:
        measure.result_table.write(a.out, measure.place(trawl), rows)


if __name__ == "__main__":
    main()
