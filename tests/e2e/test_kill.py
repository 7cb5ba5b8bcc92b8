"""kill -9 of controller, worker or both at random moments of a running sweep: nothing that was finished is lost or changed.

TRAWL_KILLS: how often (50; 1000 in the nightly run).
"""
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

import tap
from tap import TINY_SWEEP, equal, run, trials_now, write

N_KILLS = int(os.environ.get("TRAWL_KILLS", 50))
FINISHED = ("done", "stopped", "failed")


def finished_rows(store):
    """Every column of every finished trial and its curve, read by SQLite itself."""
    if not store.exists():
        return {}
    db = sqlite3.connect("file:%s?mode=ro" % store, uri=True, timeout=tap.PATIENCE_S)
    try:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'trial'").fetchone():
            return {}
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        equal(db.execute("PRAGMA foreign_key_check").fetchall(), [])
        states = db.execute("SELECT state FROM trial").fetchall()
        assert all(s in FINISHED + ("queued", "running", "lost") for (s,) in states), states
        rows = {row[0]: row for row in db.execute("SELECT * FROM trial WHERE state IN ('done', 'stopped', 'failed')")}
        numbers = db.execute("SELECT study_id, number, count(*) FROM trial GROUP BY 1, 2 HAVING count(*) > 1").fetchall()
        equal(numbers, [])  # no doubles
        curves = dict(db.execute("SELECT trial_id, count(*) FROM metric GROUP BY 1").fetchall())
        return {key: (row, curves.get(key, 0)) for key, row in rows.items()}
    finally:
        db.close()


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def test_kill_9_at_random_moments(folder):
    seed = int.from_bytes(os.urandom(4), "big")
    print("# random moments of seed %d" % seed)
    moments = random.Random(seed)
    config = write(folder, "s.ini", TINY_SWEEP.replace("threads = 1", "threads = 1\nlog_interval_s = 0").replace(
        "method = sobol", "method = sobol\nmax_failures = 0"))
    store, words = folder / "s.db", folder / "words"
    seen, started, limit = {}, 0, 100000
    kinds = {"controller": 0, "worker": 0, "both": 0}
    while started < N_KILLS:
        there = subprocess.run([tap.TRAWL, "show", "a", "--store", str(store)], capture_output=True).returncode == 0
        where = ["--resume", "a"] if there else [config, "--name", "a"]
        with open(words, "w") as out:
            process = subprocess.Popen([tap.TRAWL, "sweep", *map(str, where), "--store", str(store), "--trials", str(limit)],
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        if moments.random() < 0.5:  # while it begins, or while trials come and go, however slow the machine is
            time.sleep(moments.uniform(0, 0.3))
        else:
            tap.wait_for(lambda: re.search(r"trial \d+ done", words.read_text()), process)
            time.sleep(moments.uniform(0, 0.5))
        workers = tap.children(process.pid)
        equal(process.poll(), None)
        kind = moments.choice(("controller", "worker", "both"))
        kinds[kind] += 1
        if kind != "controller":
            for pid in workers:
                kill(pid)
        if kind == "worker":  # the sweep goes on by itself, with another worker
            time.sleep(moments.uniform(0, 0.4))
            equal(process.poll(), None)
            workers += tap.children(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for pid in workers:
            tap.wait_for(lambda: tap.is_gone(pid))  # a worker does not outlive its controller
        rows = finished_rows(store)
        for key, row in seen.items():
            equal(rows.get(key), row)
        seen = rows
        started += 1
        if started % 100 == 0:
            print("# %d kills (%s), %d trials finished so far" % (
                started, ", ".join("%s %d" % k for k in kinds.items()), len(seen)), flush=True)
    print("# %d kills (%s), %d trials finished" % (started, ", ".join("%s %d" % k for k in kinds.items()), len(seen)))
    assert len(seen) > 10, "the kills came too early to test anything"
    total = len(trials_now(store, "a")) + 5
    run("sweep", "--resume", "a", "--store", store, "--trials", total, "-q")
    trials = trials_now(store, "a")
    equal([t["number"] for t in trials], list(range(total)))
    failed = [t for t in trials if t["state"] != "done"]  # only who was at work when its worker was killed
    assert all(t["state"] == "failed" and "signal 9" in t["reason"] for t in failed), failed
    assert len(failed) <= kinds["worker"] + kinds["both"], failed
    rows = finished_rows(store)
    for key, row in seen.items():
        equal(rows[key], row)


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
