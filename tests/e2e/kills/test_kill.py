"""kill -9 of controller, worker or both at random moments of a running sweep, and other events from outside: another program's
lock on the store, frozen workers, two signals of one event, a store that is removed. No reported or finished trial is lost
or changed, and in the end every trial is done.

TRAWL_KILLS: number of kills (50; 1000 in the nightly run).
"""
import os
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time

import tap
from tap import TINY_SWEEP, equal, run, running, trials_now, write

N_KILLS = int(os.environ.get("TRAWL_KILLS", 50))
FINISHED = ("done", "stopped", "failed")
# How each round ends, out of 20. The last three end the controller otherwise than by kill -9.
KINDS = ["controller"] * 4 + ["worker"] * 4 + ["both"] * 4 + ["locked"] * 3 + ["frozen"] * 2 + ["signals"] * 2 + ["taken"]
for _number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(_number, signal.SIG_DFL)  # a sweep under nohup would ignore them, as it should
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)

NUMBER = 2  # of the columns of a trial


def finished_rows(store):
    """Every column of every finished trial and its curve, read by SQLite itself."""
    if not store.exists():
        return {}
    db = tap.reader(store)
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


def hold_lock(store, seconds):
    """Another program that keeps the store locked for this time. Returns its thread."""
    other = sqlite3.connect(store, timeout=tap.PATIENCE_S, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    def let_go():
        time.sleep(seconds)
        other.execute("ROLLBACK")
        other.close()
    thread = threading.Thread(target=let_go)
    thread.start()
    return thread


class Sweep:
    """One controller, from its start to its end."""

    def __init__(self, folder, moments):
        self.folder, self.store, self.words, self.moments = folder, folder / "s.db", folder / "words", moments

    def begin(self):
        there = subprocess.run([tap.TRAWL, "show", "a", "--store", str(self.store)], capture_output=True).returncode == 0
        where = ["--resume", "a"] if there else [self.folder / "s.ini", "--name", "a"]
        with open(self.words, "w") as out:
            self.process = subprocess.Popen(
                [tap.TRAWL, "sweep", *map(str, where), "--store", str(self.store), "--trials", "100000", *self.devices()],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True, env=self.env())
        self.workers = []

    def devices(self):
        return []

    def env(self):
        return None

    def told(self):
        """Trials that it has reported as done."""
        return {int(n) for n in re.findall(r"trial (\d+) done", self.words.read_text())}

    def works(self):
        """Waits until trials start and end, also on a slow machine."""
        tap.wait_for(self.told, self.process)
        time.sleep(self.moments.uniform(0, 0.5))

    def end(self, kind):
        """Ends it in this way; returns the way."""
        self.workers = tap.children(self.process.pid)
        equal(self.process.poll(), None)
        getattr(self, kind)()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        for pid in self.workers:
            tap.wait_for(lambda: tap.is_gone(pid))  # a worker does not outlive its controller, not even a frozen one

    def goes_on(self):
        """The sweep continues by itself, with other workers."""
        time.sleep(self.moments.uniform(0, 0.4))
        equal(self.process.poll(), None)
        self.workers += tap.children(self.process.pid)

    def controller(self):
        pass

    def worker(self):
        for pid in self.workers:
            tap.kill(pid)
        self.goes_on()

    def both(self):
        for pid in self.workers:
            tap.kill(pid)

    def locked(self):
        """Killed while another program holds the lock, or after that."""
        thread = hold_lock(self.store, self.moments.uniform(0.1, 3))
        for pid in self.workers[:self.moments.randint(0, 1)]:
            tap.kill(pid)
        time.sleep(self.moments.uniform(0, 1.5))
        if self.moments.random() < 0.5:
            thread.join()
            before = len(self.told())
            tap.wait_for(lambda: len(self.told()) > before, self.process)  # what waited for the lock comes
        self.goes_on()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        thread.join()

    def freeze(self, seconds):
        for pid in self.workers:
            tap.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)

    def frozen_for_long(self):
        """Frozen until the controller counts them as lost and starts others."""
        self.freeze(0)
        for pid in self.workers:
            tap.wait_for(lambda: tap.is_gone(pid), self.process)
        before = len(self.told())
        tap.wait_for(lambda: len(self.told()) > before, self.process)
        self.goes_on()

    def frozen(self):
        self.freeze(self.moments.uniform(0, 1.5))
        if self.moments.random() < 0.5:
            for pid in self.workers:
                tap.kill(pid, signal.SIGCONT)
            self.goes_on()

    def signals(self):
        """One event that sends two signals: the sweep ends as after one, and no process is left."""
        begun = time.monotonic()
        for number in (self.moments.choice(SIGNALS), self.moments.choice(SIGNALS)):
            os.killpg(self.process.pid, number)
            time.sleep(self.moments.choice((0, 0, 0.01, 0.1)))
        is_one = time.monotonic() - begun < 2  # else a busy machine has made two requests of it, and the second ends the sweep at once
        equal(self.process.wait(tap.PATIENCE_S), 130)
        if is_one:
            equal(running(self.store), [])

    def taken(self):
        """The store is removed; the controller's rescue file takes its place."""
        for name in ("s.db", "s.db-wal", "s.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        equal(self.process.wait(tap.PATIENCE_S), 1)
        rescue, = self.folder.glob("trawl-rescue-*.db")
        for name in ("s.db-wal", "s.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        rescue.rename(self.store)


def all_end_done(store, n):
    """Retries trials whose workers were killed three times until all are done."""
    run("sweep", "--resume", "a", "--store", store, "--trials", n, "-q")
    trials = trials_now(store, "a")
    equal([t["number"] for t in trials], list(range(n)))
    failed = [t for t in trials if t["state"] != "done"]
    assert all(t["state"] == "failed" and "ended from outside 3 times" in t["reason"] for t in failed), failed
    for t in failed:
        run("retry", "a", "--trial", t["number"], "--store", store)
    if failed:
        run("sweep", "--resume", "a", "--store", store, "-q")
    again = trials_now(store, "a")[n:]
    equal([t["params"] for t in again], [t["params"] for t in failed])
    equal({t["state"] for t in again} | {"done"}, {"done"})
    return len(failed)


def test_kills_and_worse_at_random_moments(folder):
    seed = int(os.environ.get("TRAWL_KILL_SEED", int.from_bytes(os.urandom(4), "big")))
    print("# random moments of seed %d" % seed)
    moments = random.Random(seed)
    write(folder, "s.ini", TINY_SWEEP.replace("threads = 1", "threads = 1\nlog_interval_s = 0").replace(
        "method = sobol", "method = sobol\nmax_failures = 0"))
    store, seen, told, kinds = folder / "s.db", {}, set(), dict.fromkeys(KINDS, 0)
    begun = time.monotonic()

    def report(started):
        print("# %d rounds (%s), %d trials finished, %d told, %.0f s" % (
            started, ", ".join("%s %d" % k for k in kinds.items()), len(seen), len(told), time.monotonic() - begun), flush=True)
    for started in range(N_KILLS):
        sweep, kind = Sweep(folder, moments), moments.choice(KINDS)
        if started % 100 == 99:  # 30 s of silence: not every time
            kind = "frozen_for_long"
        kinds[kind] = kinds.get(kind, 0) + 1
        sweep.begin()
        if kind in ("controller", "worker", "both") and moments.random() < 0.5:
            time.sleep(moments.uniform(0, 0.3))  # while it begins
        else:
            sweep.works()
        sweep.end(kind)
        told |= sweep.told()
        rows = finished_rows(store)
        for key, row in seen.items():
            equal(rows.get(key), row)
        seen = rows
        assert told <= {row[0][NUMBER] for row in rows.values()}, "told and lost: %s" % (told - {row[0][NUMBER] for row in rows.values()})
        if started % 100 == 99:
            report(started + 1)
    report(N_KILLS)
    assert len(seen) > 10, "the kills came too early to test anything"
    n_failed = all_end_done(store, len(trials_now(store, "a")) + 5)
    print("# all done, %d of them tried again" % n_failed)
    rows = finished_rows(store)
    for key, row in seen.items():
        equal(rows[key], row)
