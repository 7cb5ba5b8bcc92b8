#!/usr/bin/env python3
"""many_workers.py - what a controller with many workers costs: workers that sleep (sleeping_worker.c), a store in SQLite or PostgreSQL.

usage: bench/workers/many_workers.py BUILD [--workers N ...] [--lanes N] [--trial-s S] [--seconds S] [--method M] [--after N] [--postgres]
       bench/workers/many_workers.py BUILD --config FILE [--device cuda:0] ...      lanes of a device that trains, where FILE has the space
One row for each N, with as many trials at a time as they have lanes: CPU time of the controller, by /proc, over the time after all workers are there
(or after N results), which a busy machine changes less than results a second.
"""
import argparse
import collections
import os
import pathlib
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "store"))
import postgres  # noqa: E402

CONFIG = """[env]
name = squared
[train]
device = cpu
[sweep.train.learning_rate]
min = 0.0001
max = 0.1
[sweep.train.gamma]
min = 0.8
max = 0.999
[sweep.train.horizon]
min = 16
max = 128
"""


def cpu_s(pid):
    """Of the process, and of each of its threads by name."""
    per, by_name = os.sysconf("SC_CLK_TCK"), collections.Counter()
    for task in pathlib.Path("/proc/%d/task" % pid).iterdir():
        text = (task / "stat").read_text()
        name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
        by_name[name] += (int(rest[11]) + int(rest[12])) / per
    return by_name


class Store:
    """An empty one: a file in the folder, or a database of a server of its own."""

    def __init__(self, folder, in_postgres):
        self.server = postgres.Postgres() if in_postgres else None
        self.address = self.server.database("many") if in_postgres else str(folder / "s.db")

    def count(self):
        """Trials by state; before there is a table, none."""
        what = "SELECT state, count(*) FROM %strial GROUP BY 1"
        try:
            if self.server:
                return {state: int(n) for state, n in self.server.sql(what % "trawl.", "many")}
            with sqlite3.connect("file:%s?mode=ro" % self.address, uri=True, timeout=60) as db:
                return dict(db.execute(what % "").fetchall())
        except (RuntimeError, sqlite3.OperationalError):
            return {}

    def close(self):
        if self.server:
            self.server.close()


def measure(build, n_workers, args):
    """After 1.5 trial times: by then trials end and begin at all times."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="trawl-many-"))
    config = args.config or folder / "s.ini"
    if not args.config:
        config.write_text(CONFIG)
    devices = args.device if args.config else "cmd*%d:exec %s/bench/sleeping_worker %g" % (n_workers, build, args.trial_s)
    store, n, after = Store(folder, args.postgres), n_workers * args.lanes, args.after
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([build + "/sweep/trawl", "sweep", str(config), "--store", store.address, "--name", "a", "--trials", "1000000", "-q",
                                    "--sweep.method", args.method, "--runs-per-device", str(args.lanes), "--devices", devices],
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    begun = time.monotonic()
    while time.monotonic() - begun < 300:
        states = store.count()
        if states.get("done", 0) >= after if after else states.get("running", 0) >= 0.9 * n:
            break
        if process.poll() is not None:
            raise SystemExit((folder / "log").read_text())
        time.sleep(0.5)
    filled = time.monotonic() - begun
    time.sleep(1 if args.config else 1.5 * args.trial_s)
    before, done, from_s = cpu_s(process.pid), store.count().get("done", 0), time.monotonic()
    time.sleep(args.seconds)
    took = time.monotonic() - from_s
    after_s, states = cpu_s(process.pid), store.count()
    results = states.get("done", 0) - done
    used = {name: after_s[name] - before[name] for name in after_s}
    rss = int(next(line for line in open("/proc/%d/status" % process.pid) if line.startswith("VmRSS")).split()[1]) / 1024
    threads = ", ".join("%s %.2f" % (name, 1e3 * s / max(results, 1)) for name, s in sorted(used.items(), key=lambda item: -item[1])[:4] if s > 0)
    print("| %d | %.1f | %d to %d | %.1f | %.1f %% | %s | %d of %d | %.0f |" % (
        n, filled, done, done + results, results / took, 100 * sum(used.values()) / took, threads, states.get("running", 0), n, rss), flush=True)
    process.send_signal(signal.SIGINT)
    process.wait(120)
    store.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--workers", type=int, nargs="+", default=[8, 100, 500])
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--trial-s", type=float, default=60)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--method", default="sobol")
    parser.add_argument("--after", type=int, default=0)
    parser.add_argument("--config")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--postgres", action="store_true")
    args = parser.parse_args()
    print("| slots | s until then | results | results/s | controller, of one core | ms of CPU a result, by thread | running at the end | MB |\n"
          "|---|---|---|---|---|---|---|---|")
    for n in args.workers:
        measure(os.path.abspath(args.build), n, args)


if __name__ == "__main__":
    main()
