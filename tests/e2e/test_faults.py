"""The controller under faults: each write, fsync, allocation and start of a process fails once; a full and a slow disk, a
wall clock that jumps, a machine that sleeps. What was finished is there afterwards, once, and --resume goes on.

TRAWL_FAULT_TRIES: how many calls of each kind fail (30; "all" in the nightly run).
"""
import contextlib
import json
import os
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


def sweep(folder, config, store, fault, name="a", trials=N_TRIALS):
    """A sweep under a fault. Gives its exit code, its words and the number of calls of that kind."""
    count = folder / "count"
    count.unlink(missing_ok=True)
    where = ["--resume", name] if has_study(store, name) else [str(config), "--name", name]
    done = subprocess.run([tap.TRAWL, "sweep", *where, "--store", str(store), "--trials", str(trials), "-q"],
                          capture_output=True, text=True, timeout=600,
                          env={**os.environ, "LD_PRELOAD": shim(), "FAULTY": fault, "FAULTY_COUNT": str(count)})
    return done.returncode, done.stderr, int(count.read_text()) if count.exists() else 0


@contextlib.contextmanager
def reading(store):
    """The store as SQLite itself reads it; None when it has no tables yet. The file must be whole."""
    if not store.exists() or store.stat().st_size == 0:
        yield None
        return
    db = sqlite3.connect("file:%s?mode=ro" % store, uri=True)
    try:
        equal(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        there = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'trial'").fetchone()
        yield db if there else None
    finally:
        db.close()


def has_study(store, name):
    with reading(store) as db:
        return db is not None and db.execute("SELECT 1 FROM study WHERE name = ?", (name,)).fetchone() is not None


def finished(store):
    """Its finished rows, every column of them."""
    with reading(store) as db:
        if db is None:
            return {}
        equal(db.execute("SELECT number FROM trial GROUP BY study_id, number HAVING count(*) > 1").fetchall(), [])
        return {r[0]: r for r in db.execute("SELECT * FROM trial WHERE state IN ('done', 'stopped', 'failed')")}


def numbers(store):
    with reading(store) as db:
        return [n for (n,) in db.execute("SELECT number FROM trial ORDER BY number")]


def remove(store):
    for path in store.parent.glob(store.name + "*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def every_call_fails_once(folder, kind, begun, trials):
    """Of a sweep of `trials`, whose study has `begun` of them already; 0: that makes its store."""
    config = write(folder, "s.ini", TINY_SWEEP.replace("method = sobol", "method = sobol\nmax_failures = 0").replace(
        "total_timesteps = 4096", "total_timesteps = 512"))
    before_all = folder / "before.db"
    if begun > 0:
        run("sweep", config, "--store", before_all, "--name", "a", "--trials", begun, "-q")

    def begin(name):
        store = folder / name
        if begun > 0:
            shutil.copy(before_all, store)
        return store

    code, err, total = sweep(folder, config, begin("count.db"), kind + ":0", trials=trials)
    equal(code, 0)
    assert total > 0, "nothing of this kind is ever called"
    wanted = range(1, total + 1)
    if TRIES != "all" and total > int(TRIES):
        wanted = sorted(random.Random(5).sample(wanted, int(TRIES)))
    n_failed, n_hit = 0, 0
    for k, nth in enumerate(wanted):
        store = begin("%d.db" % nth)
        code, err, n = sweep(folder, config, store, "%s:%d" % (kind, nth), trials=trials)
        assert code in (0, 1, 2), "%s call %d: ended by signal %d: %s" % (kind, nth, -code, err)
        assert code == 0 or tap.errors(err), "%s call %d: failed without a word" % (kind, nth)
        n_failed += code != 0
        n_hit += n >= nth  # how many calls there are varies a little
        before = finished(store)
        code, err, _ = sweep(folder, config, store, "none:0", trials=trials)  # the fault is over
        equal((code, nth), (0, nth))
        after = finished(store)
        for key, row in before.items():
            equal(after[key], row)
        equal(numbers(store), list(range(trials)))
        remove(store)
        if k % 500 == 499:
            print("# %s: %d of %d" % (kind, k + 1, len(wanted)), flush=True)
    print("# %s, %s: %d calls in a sweep, %d of them failed in turn (%d tried), %d sweeps ended with a message" % (
        kind, "a study that goes on" if begun > 0 else "a new store", total, n_hit, len(wanted), n_failed))
    assert n_hit > 0


def test_every_write_fails_once(folder):
    every_call_fails_once(folder, "write", 0, N_TRIALS)


def test_every_fsync_fails_once(folder):
    every_call_fails_once(folder, "fsync", 0, N_TRIALS)


def test_every_start_of_a_process_fails_once(folder):
    every_call_fails_once(folder, "fork", 0, N_TRIALS)


def test_every_allocation_fails_once(folder):
    every_call_fails_once(folder, "malloc", 2, N_TRIALS)


def test_every_allocation_of_a_new_store_fails_once(folder):
    every_call_fails_once(folder, "malloc", 0, 1)


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
        assert "disk is full" in done.stderr and "trawl sweep --resume a --store" in done.stderr, done.stderr
        row = json.loads(run("ls", "--store", store, "--json")[0])[0]
        assert row["now"] in ("interrupted", "paused", "idle"), row  # not running: nobody is there
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
    text = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1M")
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
