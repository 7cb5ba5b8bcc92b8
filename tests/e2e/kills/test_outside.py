"""Events from outside: other programs' locks on the store, signals of batch systems, workers that are killed or frozen."""
import os
import signal
import sqlite3
import sys
import time

import tap
from tap import TINY_SWEEP, children, end, equal, gated, open_gate, rows, run, running, show, start, wait_for, write

LONG_SWEEP = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G").replace("threads = 1", "threads = 1\nlog_interval_s = 0.1")


def curve(store):
    return rows(store, "SELECT env_steps, wall_s FROM metric JOIN metric_name ON id = name_id WHERE trial_id = 1 AND name = 'train/lr' ORDER BY env_steps")


def trials(store, columns):
    return rows(store, "SELECT %s FROM trial ORDER BY number" % columns)


class Locked:
    """Another program that holds the store's write lock."""

    def __init__(self, store):
        self.db = sqlite3.connect(store, timeout=tap.PATIENCE_S, isolation_level=None)
        self.db.execute("BEGIN IMMEDIATE")

    def let_go(self):
        self.db.execute("ROLLBACK")
        self.db.close()


def logged(words, *args):
    """A sweep whose messages go to a file."""
    with open(words, "w") as out:
        process = tap.subprocess.Popen([tap.TRAWL, "sweep", *map(str, args)], stdin=tap.subprocess.DEVNULL,
                                       stdout=tap.subprocess.DEVNULL, stderr=out)
    tap.started.append(process)
    return process


def test_a_sweep_waits_for_another_programs_lock(folder):
    store, words = folder / "s.db", folder / "words"
    config = write(folder, "s.ini", gated(folder))
    process = logged(words, config, "--store", store, "--name", "b", "--trials", 2)
    wait_for(lambda: curve(store), process)
    other = Locked(store)
    wait_for(lambda: "keeps the store locked" in words.read_text(), process)
    tap.fails("pause", "b", "--store", store, code=1, says="another program keeps the store locked")
    time.sleep(10)  # an end of ten seconds was the end of the sweep
    equal(process.poll(), None)
    open_gate(folder)
    other.let_go()
    equal(process.wait(tap.PATIENCE_S), 0)
    assert "no longer locked" in words.read_text(), words.read_text()
    equal([(t["state"], t["attempt"]) for t in show(store, "b")["trials"]], [("done", 1)] * 2)


def test_what_ends_a_locked_sweep_saves_first(folder):
    store, words = folder / "s.db", folder / "words"
    config = write(folder, "s.ini", LONG_SWEEP)
    process = logged(words, config, "--store", store, "--name", "a", "--trials", 2)
    wait_for(lambda: len(curve(store)) > 1, process)  # some of it is stored
    worker = children(process.pid)[0]
    other = Locked(store)
    wait_for(lambda: "keeps the store locked" in words.read_text(), process)
    process.send_signal(signal.SIGTERM)
    equal(process.wait(tap.PATIENCE_S), 1)
    assert "another program kept the file locked" in words.read_text(), words.read_text()
    assert tap.is_gone(worker)
    equal([path.name for path in (folder / "s.db.checkpoints").iterdir()], ["a-0.ckpt"])
    other.let_go()
    before = curve(store)
    assert before
    process = start("sweep", "--resume", "a", "--store", store, "-q")  # and goes on from there, though no row names the file
    wait_for(lambda: len(curve(store)) > len(before) + 2, process)
    after = curve(store)
    equal(after[:len(before)], before)
    equal(trials(store, "attempt"), [(2,)])
    end(process, signal.SIGTERM, 130)


# A trial that keeps the store of the sweep locked, until it is to stop.
LOCKER = """
import signal, sqlite3, sys, time
stops = []
signal.signal(signal.SIGTERM, lambda *_: stops.append(1))
db = sqlite3.connect(sys.argv[1], timeout=240, isolation_level=None)
db.execute("BEGIN IMMEDIATE")
step = 0
while not stops:
    step += 1
    print("TRAWL score=1 step=%d" % step, flush=True)
    time.sleep(0.1)
db.execute("ROLLBACK")
"""


def test_a_stop_during_a_lock_is_an_interrupt(folder):
    """The lock ends while the sweep, which has given it up, waits for its trial; then the sweep writes the reason of its end."""
    store, words = folder / "s.db", folder / "words"
    command = "%s %s %s" % (sys.executable, write(folder, "locker.py", LOCKER), store)
    config = write(folder, "s.ini", "[sweep]\ncommand = %s\nmethod = random\ndevices = cpu\n" % command + tap.space("lr: type = float; min = 0; max = 1"))
    process = logged(words, config, "--store", store, "--name", "a", "--trials", 2)
    wait_for(lambda: "keeps the store locked" in words.read_text(), process)
    process.send_signal(signal.SIGTERM)
    equal(process.wait(tap.PATIENCE_S), 1)
    assert "it is still locked; running trials save" in words.read_text(), words.read_text()
    equal(rows(store, "SELECT state, end_rule FROM study"), [("paused", "interrupted")])


def test_one_event_of_two_signals_is_one_request(folder):
    """The sweep is stopped until both have come: it takes one right after the other."""
    for i, numbers in enumerate(((signal.SIGINT, signal.SIGTERM), (signal.SIGHUP, signal.SIGTERM), (signal.SIGUSR1, signal.SIGTERM),
                                 (signal.SIGUSR2,))):
        store = folder / ("%d.db" % i)
        process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--trials", 2, start_new_session=True)
        worker_of(process, store, 0)
        os.killpg(process.pid, signal.SIGSTOP)
        wait_for(lambda: all(text[0] == "T" for text in tap.threads(process.pid)))
        for number in (*numbers, signal.SIGCONT):
            os.killpg(process.pid, number)  # workers hear it too
        _, err = end(process, code=130)
        assert "interrupted" in err, err
        equal(rows(store, "SELECT state FROM study"), [("paused",)])
        equal(trials(store, "state, attempt, losses, deaths"), [("queued", 1, 0, 0)])
        assert (folder / ("%d.db.checkpoints" % i) / "a-0.ckpt").exists()


def worker_of(process, store, number, attempt=1):
    """The only worker, once it runs this trial; a trial that runs has one."""
    wait_for(lambda: [(t["number"], t["attempt"]) for t in running(store)] == [(number, attempt)], process)
    worker, = children(process.pid)
    return worker


def test_killed_from_outside_a_trial_runs_again(folder):
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--trials", 3, "--runs-per-device", 1)
    for attempt in (1, 2):
        os.kill(worker_of(process, store, 0, attempt), signal.SIGKILL)
    worker = worker_of(process, store, 0, 3)
    equal(trials(store, "number, state, losses"), [(0, "running", 2)])
    os.kill(worker, signal.SIGKILL)
    worker_of(process, store, 1)
    end(process, signal.SIGINT, 130)
    first = show(store, "a")["trials"][0]
    equal((first["state"], first["attempt"], first["losses"], first["deaths"]), ("failed", 3, 2, 0))
    assert "ended from outside 3 times" in first["reason"] and "signal 9" in first["reason"], first


def test_a_worker_that_is_frozen_at_once_is_replaced(folder):
    """Stopped at the start of its first trial: silence counts from the beginning."""
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--trials", 2, "--sweep.hang_timeout_s", 0)
    worker = worker_of(process, store, 0)
    os.kill(worker, signal.SIGSTOP)
    wait_for(lambda: tap.is_gone(worker), process)  # after 30 s
    wait_for(lambda: trials(store, "state, attempt, losses, deaths") == [("running", 2, 1, 0)], process)
    end(process, signal.SIGINT, 130)


def test_a_failed_trial_is_tried_again_as_another(folder):
    text = LONG_SWEEP.replace("[sweep]\n", "[sweep]\ncost = env_steps\n")  # two run at a time, also on one core
    store, config = folder / "s.db", write(folder, "s.ini", text)
    process = start("sweep", config, "--store", store, "--name", "a", "--trials", 3)
    for number in (0, 1):
        os.kill(worker_of(process, store, number), signal.SIGABRT)
    worker_of(process, store, 2)
    same = "params, config, seed"
    failed = trials(store, "*")[:2]
    tap.fails("retry", "a", "--trial", 2, "--store", store, code=2, says="trial 2 of a is running")
    tap.fails("retry", "a", "--trial", 9, "--store", store, code=1, says="no trial 9")
    tap.fails("retry", "a", "--store", store, code=2, says="trawl retry a N")
    out, _ = run("retry", "a", "--trial", 0, "--store", store)  # said to the sweep
    assert "runs again, as trial 3" in out, out
    again = "trial 0 of a was already retried, as trial 3, which is queued"  # one seed twice would pass for two seeds
    tap.fails("retry", "a", "--trial", 0, "--store", store, code=2, says=again)
    end(process, signal.SIGINT, 130)
    tap.fails("retry", "a", "--trial", 0, "--store", store, code=2, says=again)
    out, _ = run("retry", "a", "--trial", 1, "--store", store)  # written to the store
    assert "as trial 4" in out and "no controller runs it" in out, out
    equal(rows(store, "SELECT trials_max FROM study"), [(5,)])
    equal(trials(store, "*")[:2], failed)
    values = trials(store, same)
    equal(values[3:], values[:2])
    equal(trials(store, "state, origin")[3:], [("queued", "retry")] * 2)
    process = start("sweep", "--resume", "a", "--store", store, "--runs-per-device", 2, "-q")  # trials 2 and 3 run
    wait_for(lambda: [t["number"] for t in running(store)] == [2, 3], process)
    run("stop", "a", "--store", store)
    end(process, code=1)  # no trial is done
    equal([t["state"] for t in show(store, "a")["trials"]], ["failed", "failed", "queued", "queued", "queued"])


def test_pipes_in_the_way_hold_nobody_up(folder):
    """Pipes at the paths of the lock and of a checkpoint."""
    store, config = folder / "s.db", write(folder, "s.ini", LONG_SWEEP)
    os.mkfifo(folder / "s.db.lock")
    tap.fails("sweep", config, "--store", store, "--name", "a", code=1, says="s.db.lock")
    (folder / "s.db.lock").unlink()
    process = start("sweep", config, "--store", store, "--name", "a", "--trials", 1)
    worker_of(process, store, 0)
    end(process, signal.SIGTERM, 130)
    ckpt = folder / "s.db.checkpoints" / "a-0.ckpt"
    ckpt.unlink()
    os.mkfifo(ckpt)
    words = folder / "words"
    process = logged(words, "--resume", "a", "--store", store)
    wait_for(lambda: "is not a file but a pipe" in words.read_text() or "is gone" in words.read_text(), process)
    worker_of(process, store, 0, 2)
    end(process, signal.SIGTERM, 130)


def test_an_inherited_limit_of_memory_is_told(folder):
    if any(name in open(tap.TRAWL, "rb").read() for name in (b"__asan_init", b"__tsan_init")):
        raise tap.Skip("a sanitizer maps more than any limit")
    if b"cudaMalloc" in open(tap.TRAWL, "rb").read():
        raise tap.Skip("CUDA's libraries alone need more address space than this limit")
    done = tap.subprocess.run("ulimit -v 300000; exec '%s' sweep '%s' --store '%s' --name a --trials 1 -q" % (
        tap.TRAWL, write(folder, "s.ini", TINY_SWEEP), folder / "s.db"), shell=True, capture_output=True, text=True)
    equal(done.returncode, 1)
    assert "ulimit -v" in done.stderr and "worker_memory" not in done.stderr, done.stderr


def test_crash_loops_count(folder):
    """A controller that is killed repeatedly still reaches the end of its budget and of its time."""
    for limit, column, rule in (("--budget", "lost_s", "budget"), ("--wall-time", "wall_used_s", "wall_time")):
        store = folder / (rule + ".db")
        words = ["sweep", write(folder, "s.ini", LONG_SWEEP), "--name", "a", limit, "7s", "-q"]
        used = lambda: max([0, *(value or 0 for value, in rows(store, "SELECT %s FROM study" % column))])
        counted, process = 0, start(*words, "--store", store)
        while wait_for(lambda: process.poll() is not None or used() > counted) and process.poll() is None:  # each life adds something
            process.kill()
            process.communicate(timeout=tap.PATIENCE_S)
            counted = used()
            process = start("sweep", "--resume", "a", "-q", "--store", store)
        end(process)
        equal(rows(store, "SELECT end_rule FROM study"), [(rule,)])
        assert counted > 0
