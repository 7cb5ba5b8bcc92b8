"""The controller under faults: each write, fsync, allocation and start of a process fails once; a full and a slow disk, a
wall clock that jumps, a machine that sleeps. What was finished is there afterwards, once, and --resume goes on.

TRAWL_FAULT_TRIES: how many calls of each kind fail (30; "all" in the nightly run).
"""
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import tap
from tap import TINY_SWEEP, equal, run, show, start, trials_now, wait_for, write

TRIES = os.environ.get("TRAWL_FAULT_TRIES", "30")
N_TRIALS = 4


def shim():
    path = os.environ.get("TRAWL_FAULTY", "")
    if not os.path.exists(path):
        raise tap.Skip("the library to preload is not built")
    return path


def sweep(folder, config, store, fault, name="a"):
    """A sweep under a fault. Gives its exit code, its words and the number of calls of that kind."""
    count = folder / "count"
    count.unlink(missing_ok=True)
    there = subprocess.run([tap.TRAWL, "show", name, "--store", str(store)], capture_output=True).returncode == 0
    where = ["--resume", name] if there else [str(config), "--name", name]
    done = subprocess.run([tap.TRAWL, "sweep", *where, "--store", str(store), "--trials", str(N_TRIALS), "-q"],
                          capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": shim(), "FAULTY": fault, "FAULTY_COUNT": str(count)})
    return done.returncode, done.stderr, int(count.read_text()) if count.exists() else 0


def finished(store):
    """Finished rows as SQLite itself reads them; the file must be whole."""
    if not store.exists() or store.stat().st_size == 0:
        return {}
    db = sqlite3.connect("file:%s?mode=ro" % store, uri=True)
    try:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'trial'").fetchone():
            return {}
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        equal(db.execute("SELECT number FROM trial GROUP BY study_id, number HAVING count(*) > 1").fetchall(), [])
        return {r[0]: r for r in db.execute("SELECT * FROM trial WHERE state IN ('done', 'stopped', 'failed')")}
    finally:
        db.close()


def every_call_fails_once(folder, kind):
    config = write(folder, "s.ini", TINY_SWEEP.replace("method = sobol", "method = sobol\nmax_failures = 0"))
    code, err, total = sweep(folder, config, folder / "count.db", kind + ":0")
    equal(code, 0)
    assert total > 0, "nothing of this kind is ever called"
    wanted = range(1, total + 1)
    if TRIES != "all" and total > int(TRIES):
        wanted = sorted(random.Random(5).sample(wanted, int(TRIES)))
    n_failed = 0
    for nth in wanted:
        store = folder / ("%d.db" % nth)
        code, err, _ = sweep(folder, config, store, "%s:%d" % (kind, nth))
        assert code in (0, 1, 2), "%s call %d: ended by signal %d: %s" % (kind, nth, -code, err)
        assert code == 0 or tap.errors(err), "%s call %d: failed without a word" % (kind, nth)
        n_failed += code != 0
        before = finished(store)
        code, err, _ = sweep(folder, config, store, "none:0")  # the fault is over
        equal((code, nth), (0, nth))
        after = finished(store)
        for key, row in before.items():
            equal(after[key], row)
        trials = show(store, "a")["trials"]
        equal([t["number"] for t in trials], list(range(N_TRIALS)))
        for path in folder.glob("%d.db*" % nth):
            path.unlink()
    print("# %s: %d calls in a sweep, %d of them failed in turn, %d sweeps ended with a message" % (
        kind, total, len(wanted), n_failed))


def test_every_write_fails_once(folder):
    every_call_fails_once(folder, "write")


def test_every_fsync_fails_once(folder):
    every_call_fails_once(folder, "fsync")


def test_every_allocation_fails_once(folder):
    every_call_fails_once(folder, "malloc")


def test_every_start_of_a_process_fails_once(folder):
    every_call_fails_once(folder, "fork")


def test_a_slow_disk(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    equal(sweep(folder, config, store, "slow:15")[0], 0)
    equal([t["state"] for t in show(store, "a")["trials"]], ["done"] * N_TRIALS)


def test_a_clock_that_jumps(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    code, _, n = sweep(folder, config, store, "clock:86400")
    equal(code, 0)
    assert n > 10
    trials = show(store, "a")["trials"]
    equal([t["state"] for t in trials], ["done"] * N_TRIALS)
    assert all(0 < t["cost_s"] < 60 for t in trials), trials  # durations come from another clock


def test_a_full_disk(folder):
    if os.geteuid() != 0:
        raise tap.Skip("a small file system needs root")
    small = folder / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)], capture_output=True).returncode:
        raise tap.Skip("no file system can be mounted here")
    try:
        config, store = write(folder, "s.ini", TINY_SWEEP), small / "s.db"
        (small / "ballast").write_bytes(b"x" * (600 << 10))
        done = subprocess.run([tap.TRAWL, "sweep", str(config), "--store", str(store), "--name", "a", "--trials", "2000",
                               "-q"], capture_output=True, text=True, timeout=300)
        equal(done.returncode, 1)
        assert "disk is full" in done.stderr, done.stderr
        before = finished(store)
        assert len(before) > 5, before
        (small / "ballast").unlink()
        total = max(len(before), len(trials_now(store, "a"))) + 3
        run("sweep", "--resume", "a", "--store", store, "--trials", total, "-q")
        after = finished(store)
        for key, row in before.items():
            equal(after[key], row)
        equal(len(show(store, "a")["trials"]), total)
        print("# the disk was full after %d trials" % len(before))
    finally:
        subprocess.run(["umount", "-l", str(small)])


def test_the_machine_sleeps(folder):
    """Stopped and continued, as suspend and resume do: nobody takes the others for dead."""
    store = folder / "s.db"
    text = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 200k")
    process = start("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", 6)
    wait_for(lambda: any(t["state"] == "done" for t in trials_now(store, "a")), process)
    everybody = [process.pid, *tap.children(process.pid)]
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(6)
    for pid in reversed(everybody):
        os.kill(pid, signal.SIGCONT)
    process.communicate(timeout=120)
    equal(process.returncode, 0)
    equal([(t["state"], t["attempt"]) for t in show(store, "a")["trials"]], [("done", 1)] * 6)


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
