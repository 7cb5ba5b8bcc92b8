"""test_serve_live.py - `trawl serve` over a store that grows, goes away, is replaced or written over; streams of events."""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import sqlite3
import threading

import tap
from serve_client import S, make_study, Server, serving, big, Stream, control


def test_events_of_a_growing_store(folder):
    store = folder / "s.db"
    make_study(store, "one", 3)
    with serving(store) as s:
        stream, only = Stream(s), Stream(s, "?study=two")
        tap.equal(stream.next()[0], "hello")
        before = s.get("/api/v1/studies")["version"]
        make_study(store, "two", 6, running=2)
        stream.until("studies")
        seen = stream.until("study", study="two")
        running = "/api/v1/studies/two/trials?state=running&fields=number,live_score,env_steps"
        two = s.wait("/api/v1/studies/two", lambda a: a["trials"] == 6 and a["state"] == "interrupted")  # running, while make_study had the lock
        tap.equal(two["counts"]["running"], 2)
        rows = s.wait(running, lambda a: all(row[1] is not None for row in a["rows"]))["rows"]  # the last trial's curve comes after its row
        assert s.get("/api/v1/studies")["version"] > before
        assert [r[0] for r in rows] == [4, 5] and all(r[1] > 0 and r[2] > 0 for r in rows), rows
        only.until("hello")
        tap.equal(only.until("study")[1]["study"], "two")
        only.close()
        stream.close()
        back = Stream(s, Last_Event_ID=seen[2])
        tap.equal(back.next()[0], "hello")
        back.close()
        lost = Stream(s, Last_Event_ID="1-1")
        tap.equal([lost.next()[0], lost.next()[0]], ["reset", "hello"])
        lost.close()
        for bad in ("", "x", "-", "99999999999999999999-1", "1-99999999999999999999"):
            Stream(s, Last_Event_ID=bad).close()


def test_a_sweep_is_followed_live(folder):
    config = tap.write(folder, "c.ini", "[env]\nname = squared\n[train]\ntotal_timesteps = 20000\n[sweep]\nmethod = random\n"
                       "[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.03\n")
    with serving(folder / "s.db") as s:
        tap.equal(s.get("/api/v1/version")["store_ok"], False)
        tap.equal(s.get("/api/v1/studies")["studies"], [])
        s.fails("/api/v1/studies/live", 503, "no store")
        stream = Stream(s)
        tap.run("sweep", config, "--store", folder / "s.db", "--name", "live", "--trials", "3")
        ended = stream.until("study", study="live", state="ended")  # may come with the look that finds the store
        tap.equal(ended[1]["counts"]["done"], 3)
        s.wait("/api/v1/studies/live/trials?fields=state", lambda a: a["rows"] == [["done"]] * 3)
        stream.close()


def test_a_store_that_goes_and_comes(folder):
    store = folder / "s.db"
    make_study(store, "one", 3)
    make_study(folder / "other.db", "two", 2)
    with serving(store) as s:
        stream = Stream(s)
        os.rename(store, folder / "gone.db")
        stream.until("store", ok=False)
        tap.equal(s.get("/api/v1/version")["store_ok"], False)
        assert s.get("/api/v1/studies")["studies"][0]["name"] == "one", "what was read stays visible"
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(str(store) + suffix)
        os.rename(folder / "other.db", store)
        stream.until("store", ok=True)
        tap.equal([x["name"] for x in s.get("/api/v1/studies")["studies"]], ["two"])
        tap.equal(s.get("/api/v1/studies/two/trials/1")["trial"]["number"], 1)
        s.fails("/api/v1/studies/one", 404, "no study 'one'")
        stream.close()


def overwrite(path, data):
    """In place: the file keeps its inode."""
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def test_a_store_that_is_damaged_at_the_start_is_shown(folder):
    store = folder / "s.db"
    make_study(store, "big", 8)
    db = sqlite3.connect(str(store), isolation_level=None)
    db.execute("PRAGMA writable_schema = 1")
    root = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'trial'").fetchone()[0]
    page = db.execute("PRAGMA page_size").fetchone()[0]
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    whole = store.read_bytes()
    overwrite(store, whole[:(root - 1) * page] + b"\xff" * page + whole[root * page:])
    with serving(store) as s:
        said = s.wait("/api/v1/version", lambda a: a["store_error"])["store_error"]
        assert "damaged" in said, said
        overwrite(store, whole)
        s.wait("/api/v1/studies/big", lambda a: a["trials"] == 8)


def test_what_is_no_longer_the_store_is_noticed(folder):
    """A file that keeps its name and its inode, and gets another content, or loses its log."""
    store = folder / "s.db"
    make_study(store, "big", 8)
    older = folder / "older.db"
    tap.run("backup", store, older)
    whole = older.read_bytes()
    db = sqlite3.connect(str(older), isolation_level=None)  # as a backup of an earlier hour: same study, other results
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("DELETE FROM metric WHERE trial_id IN (SELECT id FROM trial WHERE number > 4)")
    db.execute("DELETE FROM curve_sum WHERE trial_id IN (SELECT id FROM trial WHERE number > 4)")
    db.execute("DELETE FROM trial WHERE number > 4")
    db.close()
    with serving(store) as s:
        tap.equal(s.get("/api/v1/studies/big")["trials"], 8)
        tap.equal(s.get(S + "/trials?fields=number")["total"], 8)
        stream = Stream(s)
        overwrite(store, b"this is not a store\n" * 1000)
        said = stream.until("store", ok=False)[1]["error"]
        assert "s.db" in said, said
        assert s.get("/api/v1/version")["store_error"] == said
        tap.equal(s.get("/api/v1/studies/big")["trials"], 8)  # what was read stays
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(str(store) + suffix)
        overwrite(store, older.read_bytes())
        stream.until("store", ok=True)
        s.wait("/api/v1/studies/big", lambda a: a["trials"] == 5)
        tap.equal(s.get(S + "/trials?fields=number")["total"], 5)
        other = folder / "new.db"  # the same path, another file, between two looks
        other.write_bytes(whole)
        os.rename(other, store)
        s.wait("/api/v1/studies/big", lambda a: a["trials"] == 8)
        stream.close()


def locks_on(process, path):
    """Does the process hold a POSIX lock on the file? A list of more than a page may lack some, when locks of others come and go as it is read."""
    held = re.compile(r" POSIX .* %d \S+:%d " % (process.pid, os.stat(path).st_ino))
    return any(held.search(pathlib.Path("/proc/locks").read_text()) for _ in range(20))


def test_the_server_keeps_its_locks_and_its_log(folder):
    """A process that opens and closes the file beside SQLite drops SQLite's locks; the next controller then deletes the log that the
    server reads, and what comes later is never seen."""
    config = tap.write(folder, "c.ini", tap.TINY_SWEEP)
    store = folder / "s.db"
    sweep = lambda *more: tap.run("sweep", *more, "--store", store, "-q")
    sweep(config, "--name", "big", "--trials", 2)
    with serving(store, "--control") as s:
        assert locks_on(s.process, store), "the server's reader has no lock"
        log = os.stat(str(store) + "-wal").st_ino
        for path in ("/studies", "/studies/big", "/studies/big/trials/1", "/studies/big/trials/1/curves", "/studies/big/trials/1/log",
                     "/studies/big/pick", "/studies/big/export", "/studies/big/report", "/studies/big/trials/1/leases"):
            tap.equal(s.request("/api/v1" + path)[0], 200)
            assert locks_on(s.process, store), "no lock after " + path
        csrf = s.get("/api/v1/version")["csrf"]
        tap.equal(control(s, b'{"action": "add", "trials": 2}', csrf)[0], 200)
        assert locks_on(s.process, store), "no lock after a change"
        for i, more in enumerate(((config, "--name", "two", "--trials", 2), ("--resume", "big", "--trials", 4), ("--resume", "two", "--trials", 5), (config, "--name", "three", "--trials", 1))):
            sweep(*more)
            tap.equal(os.stat(str(store) + "-wal").st_ino, log)  # nobody deletes the log that the server has open
            name, n = [("two", 2), ("big", 4), ("two", 5), ("three", 1)][i]
            s.wait("/api/v1/studies/" + name, lambda a: a["counts"]["done"] == n)


def test_an_open_stream_does_not_keep_the_server(folder):
    s = Server(big(folder))
    streams = [Stream(s) for _ in range(5)]
    for stream in streams:
        stream.next()
    s.end()
    for stream in streams:
        stream.close()


def test_a_report_that_is_asked_for_at_the_end_does_not_abort(folder):
    store = big(folder)
    for _ in range(4):
        s = Server(store)
        asked = threading.Event()

        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException):
                while True:
                    if s.request(S + "/report")[0] in (200, 503):
                        asked.set()

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for t in askers:
            t.start()
        assert asked.wait(tap.PATIENCE_S)
        _, err = tap.end(s.process, signal.SIGTERM)
        for t in askers:
            t.join()
        assert "suspended" not in err, err
