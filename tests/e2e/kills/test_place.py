"""A store that is removed, or gets a second controller, while a sweep writes it: reported results are never lost."""
import contextlib
import fcntl
import json
import os
import re
import signal
import sqlite3
import time

import tap
from tap import TINY_SWEEP, end, equal, errors, fails, n_done, run, show, start, trials_now, wait_for, write


def begin(folder, store):
    """A sweep that has some trials done and many left."""
    sweep = start("sweep", write(folder, "a.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 100000,
                  "--json")
    wait_for(lambda: n_done(store) >= 3, sweep)
    return sweep


def ends_with_rescue(sweep, folder):
    """The sweep fails, names the rescue file, and the file has all reported results. Returns the file."""
    out, err = end(sweep, code=1)
    lines = errors(err)
    assert any("while the store was in use" in line for line in lines), err
    rescue = re.search(r"every result is in (\S+trawl-rescue-\S+\.db)", lines[-1]).group(1)
    equal(os.path.dirname(os.path.realpath(rescue)), str(folder.resolve()))
    told = {t["number"]: t["score"] for t in json.loads(out)["trials"] if t["state"] == "done"}
    kept = {t["number"]: t["score"] for t in show(rescue, "a")["trials"] if t["state"] == "done"}
    equal(told, kept)
    assert len(kept) >= 3
    return rescue


def test_removed(folder):
    store = folder / "s.db"
    sweep = begin(folder, store)
    before = {t["number"] for t in trials_now(store, "a") if t["state"] == "done"}
    for name in ("s.db", "s.db-wal", "s.db-shm"):
        os.unlink(folder / name)
    rescue = ends_with_rescue(sweep, folder)
    assert before <= {t["number"] for t in show(rescue, "a")["trials"] if t["state"] == "done"}
    os.rename(rescue, store)  # as the message says
    n = len(show(store, "a")["trials"])
    run("sweep", "--resume", "a", "--store", store, "--trials", n + 2, "-q")
    equal([t["number"] for t in show(store, "a")["trials"]], list(range(n + 2)))


def test_moved(folder):
    store, away = folder / "s.db", folder / "away"
    sweep = begin(folder, store)
    away.mkdir()
    os.rename(store, away / "s.db")
    ends_with_rescue(sweep, folder)


def test_replaced(folder):
    run("sweep", write(folder, "b.ini", TINY_SWEEP), "--store", folder / "other.db", "--name", "b", "--trials", 1, "-q")
    store = folder / "s.db"
    sweep = begin(folder, store)
    os.rename(folder / "other.db", store)
    ends_with_rescue(sweep, folder)
    for suffix in ("-wal", "-shm"):  # of the store that was there
        (folder / ("s.db" + suffix)).unlink(missing_ok=True)
    equal(tap.rows(store, "SELECT name FROM study"), [("b",)])  # untouched


def test_written_over(folder):
    """`cp other.db s.db`: name and inode stay, the content is another store."""
    run("sweep", write(folder, "b.ini", TINY_SWEEP), "--store", folder / "other.db", "--name", "b", "--trials", 1, "-q")
    store = folder / "s.db"
    sweep = begin(folder, store)
    wait_for(lambda: store.stat().st_size > 200000, sweep)
    err, begun = None, time.monotonic()
    while err is None:
        store.write_bytes((folder / "other.db").read_bytes())  # while all of the store is in its log, the copy is undone
        try:
            _, err = sweep.communicate(timeout=5)
        except tap.subprocess.TimeoutExpired:
            assert time.monotonic() - begun < tap.PATIENCE_S
    equal(sweep.returncode, 1)
    said = errors(err)[-1]
    assert "was overwritten while the store was in use" in said and "trawl-rescue-" in said, err
    equal([t["number"] for t in show(store, "b")["trials"]], [0])  # it is what was put there, whole
    run("check", store)


def test_another_program_may_fold_the_log(folder):
    """A database browser's checkpoint changes the file and does no harm."""
    store = folder / "s.db"
    sweep = begin(folder, store)
    for _ in range(5):
        with contextlib.closing(sqlite3.connect(store, timeout=tap.PATIENCE_S)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        n = n_done(store)
        wait_for(lambda: n_done(store) > n + 20, sweep)
    assert "while the store was in use" not in end(sweep, signal.SIGTERM, 130)[1]
    run("check", store)


def test_the_log_alone_is_removed(folder):
    sweep = begin(folder, folder / "s.db")
    os.unlink(folder / "s.db-wal")
    ends_with_rescue(sweep, folder)


def test_removed_just_before_the_end(folder):
    """Between the last look and the end: such a sweep ended with exit code 0 and no store."""
    store = folder / "s.db"
    sweep = start("sweep", write(folder, "a.ini", tap.gated(folder)), "--store", store, "--name", "a", "--trials", 1, "--json")
    wait_for(lambda: store.exists() and [t["state"] for t in trials_now(store, "a")] == ["running"], sweep)
    for name in ("s.db", "s.db-wal", "s.db-shm"):
        (folder / name).unlink()
    tap.open_gate(folder)
    lines = errors(end(sweep, code=1)[1])
    assert "was removed or moved while the store was in use" in lines[-1], lines
    rescue = re.search(r"every result is in (\S+trawl-rescue-\S+\.db)", lines[-1]).group(1)
    equal(len(show(rescue, "a")["trials"]), 1)


def test_a_lock_file_that_was_removed_is_taken_again(folder):
    store = folder / "s.db"
    sweep = begin(folder, store)
    os.unlink(folder / "s.db.lock")
    wait_for(lambda: (folder / "s.db.lock").exists() and (folder / "s.db.lock").read_text(), sweep)  # its number is written once it has the lock
    _, err = run("sync", "--store", store, code=1)
    assert "process %d" % sweep.pid in err, err
    _, err = end(sweep, signal.SIGTERM, 130)
    assert "its lock file was removed; the store is locked again" in err, err


def test_whoever_lost_the_lock_writes_no_more(folder):
    """Its lock file is removed and another program takes the lock before the controller's next check."""
    store, lock = folder / "s.db", folder / "s.db.lock"
    sweep = begin(folder, store)
    ours = os.open(folder / "mine", os.O_CREAT | os.O_RDWR)
    os.write(ours, b"4711\n")
    fcntl.flock(ours, fcntl.LOCK_EX)
    os.rename(folder / "mine", lock)  # removed and taken, in one instant
    _, err = end(sweep, code=1)
    assert "in use by another sweep or daemon (process 4711)" in errors(err)[-1], err
    assert lock.exists()  # it is not its own any more
    states = {t["state"] for t in show(store, "a")["trials"]}
    assert "done" in states and "lost" not in states, states
    os.close(ours)
    n = len(show(store, "a")["trials"])
    run("sweep", "--resume", "a", "--store", store, "--trials", n + 1, "-q")


def test_one_controller_whatever_the_name(folder):
    """Dangling links, links of links and hard links do not lead past the lock."""
    store, config = folder / "s.db", write(folder, "a.ini", TINY_SWEEP)
    (folder / "d").mkdir()
    os.symlink("../s.db", folder / "d" / "one.db")
    os.symlink("d/one.db", folder / "two.db")
    sweep = begin(folder, folder / "two.db")  # it pointed to nothing
    assert store.is_file() and not store.is_symlink()
    pid = str(sweep.pid)
    for name in ("s.db", "d/one.db", "two.db"):
        _, err = run("sync", "--store", folder / name, code=1)
        assert "process " + pid in err, err
    end(sweep, signal.SIGTERM, 130)
    os.link(store, folder / "hard.db")
    for name in ("s.db", "hard.db"):
        fails("sweep", "--resume", "a", "--store", folder / name, code=1, says=["2 names (hard links)", "copy"])
        fails("ls", "--store", folder / name, code=1, says="2 names (hard links)")
    os.unlink(folder / "hard.db")
    run("ls", "--store", store)


def test_a_pipe_for_a_store(folder):
    write(folder, "a.ini", TINY_SWEEP)
    os.mkfifo(folder / "p.db")
    fails("sweep", folder / "a.ini", "--store", folder / "p.db", "--name", "a", code=1, says="is not a file")
