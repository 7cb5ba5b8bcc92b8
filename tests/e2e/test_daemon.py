"""`trawl daemon`: several studies on the same devices, handed over, watched, steered, and continued after any end."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import tap
from tap import TINY_SWEEP, end, equal, fails, n_done, rows, run, running, show, start, trials_now, wait_for, write

LONG = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 50k")


def begin(folder, *args):
    store = folder / "s.db"
    return store, tap.daemon(store, "--devices", "cpu", *args)


def listed(store):
    done = subprocess.run([tap.TRAWL, "ls", "--store", str(store), "--json"], capture_output=True, text=True)
    return {row["name"]: row for row in json.loads(done.stdout)} if done.returncode == 0 else {}


def test_a_study_is_handed_over_and_watched(folder):
    store, daemon = begin(folder)
    out, err = run("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 4)
    assert "a daemon holds" in err and "4/4" in err, err
    assert "front of cost and perf" in out, out
    equal([t["state"] for t in trials_now(store, "a")], ["done"] * 4)
    equal(listed(store)["a"]["end_rule"], "trials")
    run("sweep", "--resume", "a", "--store", store, "--trials", 6, "-q")
    equal(n_done(store, "a"), 6)
    fails("sweep", "--resume", "a", "--store", store, "--trials", 5, code=2, says=("has 6 trials already", "more than 6"))
    equal(listed(store)["a"]["trials_max"], 6)
    fails("sweep", folder / "s.ini", "--store", store, "--name", "a", code=1, says=("already has a study 'a'", "--resume a"))
    fails("sweep", folder / "s.ini", "--store", store, "--name", "b", "--devices", "cpu", code=2, says="chooses the devices")
    fails("sweep", folder / "s.ini", "--resume", "a", "--store", store, "--train.gamma", 0.5, code=2, says="train.gamma")
    _, err = end(daemon, signal.SIGTERM)
    assert "a: trial 3 done" in err and "a has ended (trials)" in err, err
    assert not pathlib.Path(str(store) + ".sock").exists()


def test_ranges_become_wider_while_a_daemon_serves(folder):
    store, daemon = begin(folder)
    config = write(folder, "s.ini", TINY_SWEEP)
    highest = lambda: {p["key"]: p["max"] for p in show(store, "a")["study"]["space"]["params"]}["train.learning_rate"]
    watching = start("sweep", config, "--store", store, "--name", "a", "--trials", 60, "-q")
    wait_for(lambda: n_done(store, "a") > 2, watching)
    run("sweep", "--resume", "a", "--store", store, "--trials", 61, "-q", "--sweep.train.learning_rate.max", 0.5)  # under way, most likely
    equal((highest(), n_done(store, "a")), (0.5, 61))
    end(watching)
    run("sweep", "--resume", "a", "--store", store, "--trials", 80, "-q", "--sweep.train.learning_rate.max", 2)  # it has ended
    equal((highest(), n_done(store, "a")), (2, 80))
    rates = [t["params"]["train.learning_rate"] for t in show(store, "a")["trials"]]
    assert max(rates[61:]) > 0.5 >= max(rates[:61]), rates
    fails("sweep", "--resume", "a", "--store", store, "--trials", 90, "--sweep.train.learning_rate.max", 1, code=2, says="become only wider")
    end(daemon, signal.SIGTERM)


def test_watching_ends_the_study_goes_on(folder):
    store, daemon = begin(folder)
    watcher = start("sweep", write(folder, "s.ini", LONG), "--store", store, "--name", "a", "--trials", 100000)
    wait_for(lambda: n_done(store, "a") > 0, watcher)
    _, err = end(watcher, signal.SIGINT, 130)
    assert "the daemon continues a" in err, err
    n = n_done(store, "a")
    wait_for(lambda: n_done(store, "a") > n, daemon)
    run("stop", "a", "--store", store)
    wait_for(lambda: listed(store)["a"]["state"] == "ended", daemon)
    n = len(trials_now(store, "a"))
    run("continue", "a", "--store", store)
    wait_for(lambda: len(trials_now(store, "a")) > n, daemon)
    end(daemon, signal.SIGTERM)


def test_a_signal_while_a_study_is_handed_over_only_ends_watching(folder):
    store, daemon = begin(folder)
    config = write(folder, "s.ini", LONG)
    for k in range(8):
        watcher = start("sweep", config, "--store", store, "--name", "s%d" % k, "--trials", 100000, "-q")
        while not rows(store, "SELECT 1 FROM study WHERE name = ?", "s%d" % k):  # without a pause: the daemon's answer is on its way
            equal(watcher.poll(), None)
        end(watcher, signal.SIGINT, 130)
        run("stop", "s%d" % k, "--store", store)
    end(daemon, signal.SIGTERM)


def share_by_priority(folder, slots):
    """Two studies of priority 1 and 4 on the slots of a daemon: the device time of each, by the times in the store."""
    store, config, priority = folder / "s.db", write(folder, "s.ini", LONG), {"a": 1, "b": 4}
    for name, p in priority.items():  # both are there when the daemon begins: nobody is alone at first
        run("sweep", config, "--store", store, "--name", name, "--trials", 1, "-q", "--sweep.priority", p, "--sweep.cost", "env_steps")
        run("add", name, "--trials", 1000, "--store", store)
    _, daemon = begin(folder, "--runs-per-device", slots, "--sweep.cost", "env_steps")
    wait_for(lambda: min(n_done(store, name) for name in priority) >= 12, daemon)
    until = 1e3 * time.time()
    for name in priority:  # what runs may end
        run("pause", name, "--store", store)
    wait_for(lambda: not any(running(store, name) for name in priority), daemon)
    end(daemon, signal.SIGTERM)
    had, longest = {}, 0
    for name in priority:
        trials = [t for t in show(store, name)["trials"][1:] if t["state"] == "done" and t["started_ms"] < until]
        had[name] = sum(min(t["finished_ms"], until) - t["started_ms"] for t in trials)
        longest = max([longest] + [t["finished_ms"] - t["started_ms"] for t in trials])
    print("# %d slot(s): a had %.1f s, b %.1f s, 1 to %.2f; wanted 1 to 4" % (
        slots, had["a"] / 1e3, had["b"] / 1e3, had["b"] / had["a"]))
    behind = abs(had["a"] / priority["a"] - had["b"] / priority["b"])
    # Who was behind got the next slot, and the others too that came free at the same time.
    assert behind <= (slots + 1) * longest + 200, (had, longest)


def test_two_studies_share_one_slot_by_priority(folder):
    share_by_priority(folder, 1)


def test_two_studies_share_four_slots_by_priority(folder):
    share_by_priority(folder, 4)


def test_what_ran_goes_on_after_any_end(folder):
    store, daemon = begin(folder)
    watcher = start("sweep", write(folder, "s.ini", LONG), "--store", store, "--name", "a", "--trials", 100000)
    wait_for(lambda: n_done(store, "a") > 0, watcher)
    end(daemon, signal.SIGKILL, -9)
    _, err = end(watcher, code=1)
    assert "continues when one starts again" in err, err
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        n = n_done(store, "a")
        store, daemon = begin(folder)
        wait_for(lambda: n_done(store, "a") > n, daemon)
        end(daemon, number, -9 if number == signal.SIGKILL else 0)
    trials = trials_now(store, "a")
    equal([t["number"] for t in trials], list(range(len(trials))))
    equal(listed(store)["a"]["state"], "running")


def test_the_background(folder):
    store = folder / "s.db"
    out, _ = run("daemon", "--store", store, "--devices", "cpu", "--detach")
    pid = int(re.match(r"daemon (\d+) serves", out).group(1))
    try:
        assert "s.db.log" in out and "kill %d" % pid in out and "trawl ls --store" in out, out
        wait_for(lambda: "serving" in (folder / "s.db.log").read_text())
        log = (folder / "s.db.log").read_text()
        for second in (["--detach"], ["--detach", "--log", folder / "other.log"], ["--log", folder / "s.db.log"]):
            fails("daemon", "--store", store, *second, code=1, says="in use by another sweep or daemon (process %d)" % pid)
        equal((folder / "s.db.log").read_text(), log)
        assert not (folder / "other.log").exists()
        run("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 3, "-q", "--sweep.cost", "env_steps")
        equal(n_done(store, "a"), 3)
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: tap.is_gone(pid))
    log = (folder / "s.db.log").read_text().splitlines()
    assert any(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info: a: trial 2 done, .*, cost \S+ steps", line) for line in log), log
    assert "asked to stop" in log[-1], log


def test_log_files_rotate(folder):
    store, log = folder / "s.db", folder / "d.log"
    log.write_text("x" * (1 << 20))
    pathlib.Path(str(log) + ".1").write_text("old")
    _, daemon = begin(folder, "--log", log, "--log-mb", 1, "--log-keep", 2)
    end(daemon, signal.SIGTERM)
    equal(pathlib.Path(str(log) + ".1").stat().st_size, 1 << 20)
    equal(pathlib.Path(str(log) + ".2").read_text(), "old")
    assert "serving" in log.read_text()


def test_systemd_unit(folder):
    tool = shutil.which("systemd-analyze")
    if tool is None:
        raise tap.Skip("no systemd-analyze here")
    unit = pathlib.Path(__file__).parents[2] / "examples" / "trawl@.service"
    text = unit.read_text().replace("%h/.local/bin/trawl", tap.TRAWL)
    copy = write(folder, "trawl@x.service", text)
    done = subprocess.run([tool, "verify", "--user", str(copy)], capture_output=True, text=True,
                          env={**os.environ, "XDG_RUNTIME_DIR": str(folder)})
    assert done.returncode == 0 and not done.stderr.strip(), done


def test_bad_input(folder):
    fails("daemon", "--store", folder / "none" / "s.db", code=1, says="cannot write")
    fails("daemon", "--store", folder / "s.db", "--devices", "tpu", code=2, says="tpu")
    fails("daemon", "--store", folder / "s.db", "--log-mb", 0, code=2, says="--log-mb")
    fails("daemon", "x", "--store", folder / "s.db", code=2)
    fails("daemon", "--store", folder / "s.db", "--devices", "tpu", "--detach", code=2, says="tpu")
    assert not (folder / "s.db").exists()


def test_studies_beyond_the_places_wait_their_turn(folder):
    """64 studies are served at a time. All of 70 end, although some studies between them are paused, which need no place."""
    store, n = folder / "s.db", 70
    run("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "s0", "--trials", 1, "-q")
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(study)") if row[1] not in ("id", "name", "state", "trials_max", "end_rule", "end_text", "checksum")]
        for i in range(1, n):
            db.execute("INSERT INTO study (name, state, trials_max, %s) SELECT ?, ?, 2, %s FROM study WHERE name = 's0'"
                       % (", ".join(columns), ", ".join(columns)), ("s%d" % i, "running" if i <= 66 else "paused"))
    _, daemon = begin(folder)
    for i in range(67, n):  # they come on the way
        run("continue", "s%d" % i, "--store", store)
    run("sweep", folder / "s.ini", "--store", store, "--name", "last", "--trials", 2, "-q")

    wait_for(lambda: rows(store, "SELECT DISTINCT state FROM study") == [("ended",)], daemon)
    _, err = end(daemon, signal.SIGTERM)
    assert "64 studies continue, others wait their turn" in err, err
    equal(rows(store, "SELECT count(*), min(state), max(state) FROM trial"), [(1 + 2 * n, "done", "done")])
    equal(rows(store, "SELECT DISTINCT end_rule FROM study"), [("trials",)])
