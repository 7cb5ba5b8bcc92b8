"""Many trials at a time, with the real program: four slots on two cores, a worker that is killed or stopped beside others,
a device that does not open, a trial that needs too much memory."""
import os
import pathlib
import signal
import subprocess

import tap
from tap import TINY, TINY_SWEEP, Skip, children, end, equal, fails, rows, run, running, show, start, trials_now, wait_for, write

LONG_SWEEP = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G").replace("threads = 1", "threads = 1\nlog_interval_s = 0.1")
GREEDY = TINY.replace("core = none", "core = mlp") + """
[sweep]
method = sobol
worker_memory = 1200M
""" + tap.space("""
train.learning_rate: min = 0.001; max = 0.1
policy.hidden_size: distribution = categorical; values = 8, 8192
""")


CROWD = ("--sweep.cost", "env_steps")  # more trials than cores may run at a time


def test_four_slots(folder):
    store = folder / "s.db"
    config = write(folder, "s.ini", TINY_SWEEP.replace("4096", "100k"))
    process = start("sweep", config, "--store", store, "--name", "a", "--trials", 100000, "--runs-per-device", 4, "-q",
                    *CROWD)
    names = ["cpu/0", "cpu/1", "cpu/2", "cpu/3"]
    done = lambda: [t for t in trials_now(store, "a") if t["state"] == "done"]
    wait_for(lambda: len(done()) >= 16 and {t["slot"] for t in done()} == set(names), process)
    run("pause", "a", "--store", store)  # what runs may end
    wait_for(lambda: not running(store), process)
    run("stop", "a", "--store", store)
    end(process)
    study = show(store, "a")
    trials = [t for t in study["trials"] if t["state"] != "queued"]  # some may wait, proposed ahead
    equal([t["number"] for t in trials], list(range(len(trials))))
    equal({t["state"] for t in trials}, {"done"})
    equal({t["attempt"] for t in trials}, {1})
    slots = study["timeline"]["slots"]
    equal([s["slot"] for s in slots], names)
    equal(sum(s["trials"] for s in slots), len(trials))
    for s in slots:  # the store's times are whole milliseconds
        assert 0 < s["training_s"] <= s["busy_s"] + 0.002 * s["trials"], s
        assert s["busy_s"] <= study["timeline"]["whole_s"] + 0.01, s
    out, _ = run("show", "a", "--store", store, "--timeline")
    equal(len([line for line in out.splitlines() if line.startswith("cpu/") and "|" in line]), 4)
    assert all(len(line) <= 80 for line in out.splitlines()), out


def test_no_more_trials_than_cores_where_cost_is_time(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    n = len(os.sched_getaffinity(0))  # or a container's quota
    fails("sweep", config, "--store", store, "--name", "a", "--devices", "cpu", "--runs-per-device", n + 1, code=2,
          says=("%d trials at a time on the CPU" % (n + 1), "hold each other up", "env_steps"))
    assert not store.exists()
    fails("daemon", "--store", store, "--devices", "cpu", "--runs-per-device", n + 1, code=2, says="hold each other up")
    run("sweep", config, "--store", store, "--name", "a", "--devices", "cpu", "--runs-per-device", n + 1, *CROWD, "--trials", 3, "-q")
    equal([t["state"] for t in show(store, "a")["trials"]], ["done"] * 3)
    for name, unit in (("a", "steps"), ("b", "s")):
        if name == "b":
            run("sweep", config, "--store", store, "--name", "b", "--trials", 3, "-q")
        study = show(store, name)["study"]
        equal(study["cost_unit"], unit)
        assert (study["reference"]["cost"] > 4000) == (unit == "steps"), study["reference"]  # of 4096 steps, or less than a second
        equal(sorted(study["reference"]), ["cost", "score"])
    fails("sweep", "--resume", "b", "--store", store, "--devices", "cpu", "--runs-per-device", n + 1, "--trials", 4, code=2,
          says="hold each other up")


def test_slots_of_a_cpu_share_its_cores(folder):
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--runs-per-device", 2, *CROWD)
    wait_for(lambda: len(running(store)) == 2, process)
    cores = [os.sched_getaffinity(pid) for pid in children(process.pid)]
    equal(len(cores), 2)
    if len(os.sched_getaffinity(0)) > 1:
        assert not cores[0] & cores[1], cores
    end(process, signal.SIGINT, 130)
    equal({t["state"] for t in trials_now(store, "a")}, {"queued"})


def test_a_killed_worker_leaves_the_others_alone(folder):
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--runs-per-device", 3, *CROWD)
    wait_for(lambda: len(running(store)) == 3, process)
    before = {t["number"]: t["started_ms"] for t in running(store)}
    os.kill(children(process.pid)[1], signal.SIGABRT)

    def replaced():
        trials = trials_now(store)
        return sum(t["state"] == "running" for t in trials) == 3 and len(trials) == 4 and trials
    trials = wait_for(replaced, process)
    failed = [t for t in trials if t["state"] == "failed"]
    equal(len(failed), 1)
    assert "signal 6" in failed[0]["reason"], failed
    for t in trials:  # the others never noticed
        if t["number"] in before and t["state"] == "running":
            equal((t["attempt"], t["started_ms"]), (1, before[t["number"]]))
    end(process, signal.SIGTERM, 130)
    equal({t["state"] for t in trials_now(store, "a")}, {"failed", "queued"})


def test_a_frozen_worker_is_replaced(folder):
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--runs-per-device", 2, *CROWD,
                    "--sweep.hang_timeout_s", 6)
    # Both train: what is frozen now is missed.
    wait_for(lambda: rows(store, "SELECT count(DISTINCT trial_id) FROM metric") == [(2,)], process)
    worker = children(process.pid)[0]
    os.kill(worker, signal.SIGSTOP)
    wait_for(lambda: tap.is_gone(worker), process)
    again = lambda: [t for t in trials_now(store, "a") if t["attempt"] > 1]
    states = {t["state"] for t in wait_for(again, process)}
    assert states <= {"queued", "running"}, states  # frozen from outside, which is not a fault of its own
    wait_for(lambda: len(running(store)) == 2, process)
    end(process, signal.SIGINT, 130)


def test_a_device_that_does_not_open_is_left_alone(folder):
    store = folder / "s.db"
    config = write(folder, "s.ini", TINY_SWEEP.replace("4096", "100k"))
    with open(folder / "err", "w+") as err:
        process = subprocess.Popen([tap.TRAWL, "sweep", str(config), "--store", str(store), "--name", "a", "--trials", "100000",
                                    "--devices", "cuda:63,cpu", "-q"], stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        tap.started.append(process)
        wait_for(lambda: "cuda:63 is left alone" in (folder / "err").read_text())
        n = len(trials_now(store, "a"))
        wait_for(lambda: len(trials_now(store, "a")) > n + 2)  # the others go on
        run("stop", "a", "--store", store)
        equal(process.wait(tap.PATIENCE_S), 0)
    equal({t["slot"] for t in show(store, "a")["trials"] if t["state"] != "queued"}, {"cpu"})
    message = fails("sweep", config, "--store", store, "--name", "b", "--trials", 8, "--devices", "cuda:63", code=1,
                    says="cannot open its device")
    assert "trawl doctor" in message, message
    equal(len(show(store, "b")["trials"]), 0)
    fails("sweep", config, "--store", store, "--name", "c", "--devices", "tpu", code=2, says="'tpu' is not a device")
    run("sweep", "--resume", "b", "--store", store, "--devices", "cpu", "-q")  # another machine, perhaps
    equal({t["state"] for t in show(store, "b")["trials"]}, {"done"})


def test_a_greedy_trial_fails_alone(folder):
    if b"__asan_init" in pathlib.Path(tap.TRAWL).read_bytes() or b"__tsan_init" in pathlib.Path(tap.TRAWL).read_bytes():
        raise Skip("a sanitizer maps more than any limit")
    store = folder / "s.db"
    run("sweep", write(folder, "g.ini", GREEDY), "--store", store, "--name", "a", "--trials", 8, "--runs-per-device", 2, "-q",
        "--sweep.confirm", 0, *CROWD)
    trials = show(store, "a")["trials"]
    equal({t["state"] for t in trials}, {"done", "failed"})
    for t in trials:
        equal(t["state"], "failed" if t["params"]["policy.hidden_size"] == "8192" else "done")
        if t["state"] == "failed":
            assert "does not fit" in t["reason"] and "sweep.worker_memory leaves it 1200 MB; raise it" in t["reason"], t


def test_a_limit_that_holds_no_worker_is_named(folder):
    if b"__asan_init" in pathlib.Path(tap.TRAWL).read_bytes() or b"__tsan_init" in pathlib.Path(tap.TRAWL).read_bytes():
        raise Skip("a sanitizer maps more than any limit")
    config = write(folder, "s.ini", TINY_SWEEP)
    for limit, told in (("1", "1 byte"), ("1M", "1 MB"), ("60M", "60 MB")):
        fails("sweep", config, "--store", folder / (limit + ".db"), "--name", "a", "--trials", 2, "--sweep.worker_memory", limit,
              code=1, says=("too little memory to begin with", "sweep.worker_memory leaves it " + told, "raise it",
                            "trawl sweep --resume a"))
    run("sweep", config, "--resume", "a", "--store", folder / "60M.db", "--sweep.worker_memory", "auto", "-q")
    equal({t["state"] for t in show(folder / "60M.db", "a")["trials"]}, {"done"})


def curve(store):
    return set(rows(store, "SELECT env_steps, name_id, value FROM metric"))


def test_a_killed_trial_goes_on_from_its_checkpoint(folder):
    config = write(folder, "s.ini", TINY_SWEEP.replace("4096", "2M").replace("threads = 1", "threads = 1\nlog_interval_s = 0.1"))
    run("sweep", config, "--store", folder / "whole.db", "--name", "a", "--trials", 1, "-q")
    whole = show(folder / "whole.db", "a")["trials"]
    store, place = folder / "s.db", folder / "s.db.checkpoints"
    checkpoint, seen = place / "a-0.ckpt", None
    inode = lambda: checkpoint.stat().st_ino if checkpoint.exists() else None  # each is written beside the last and takes its place
    for number in (signal.SIGKILL, signal.SIGTERM):
        where = ["--resume", "a"] if store.exists() else [config, "--name", "a", "--sweep.checkpoint_interval_s", 0.05]
        process = start("sweep", *where, "--store", store, "--trials", 1)
        wait_for(lambda: inode() not in (None, seen) and curve(store), process)
        process.send_signal(number)  # at once: a fast machine has not much left to train
        process.communicate(timeout=tap.PATIENCE_S)
        before, seen = curve(store), inode()
        assert before
    assert "a-0.ckpt" in [f.name for f in place.iterdir()]
    run("sweep", "--resume", "a", "--store", store, "-q")
    parts = show(store, "a")["trials"]
    for key in ("number", "params", "score", "env_steps", "state"):
        equal(parts[0][key], whole[0][key])
    equal(parts[0]["attempt"], 3)
    assert before <= curve(store)  # what was known of it is still there: it did not begin again
    assert not place.exists()


def test_checkpoints_of_the_front_are_kept(folder):
    store, place = folder / "s.db", folder / "s.db.checkpoints"
    config = write(folder, "s.ini", TINY_SWEEP + tap.space("train.total_timesteps: distribution = log; min = 2048; max = 16384"))
    out, _ = run("sweep", config, "--store", store, "--name", "a", "--trials", 12, "-q", "--sweep.keep", "front", *CROWD)
    trials = show(store, "a")["trials"]
    front = {t["number"] for t in trials if t["on_front"]}
    runs = {t["number"] for t in trials if not any(o["env_steps"] < t["env_steps"] and o["score"] > t["score"] for o in trials)}
    kept = {int(f.name[2:-5]) for f in place.iterdir()}
    # the sweep goes by its last advice, which may be older than the last trials, and may have believed one more to be on the front
    assert front & runs | {9, 10, 11} <= kept and len(kept - (front | runs | {9, 10, 11})) <= 2, (kept, front, runs)
    assert "checkpoints: %d, " % len(kept) in out, out
    for f in place.iterdir():
        run("eval", f, "--episodes", 2)
    run("sweep", config, "--store", folder / "t.db", "--name", "a", "--trials", 3, "-q")
    assert not (folder / "t.db.checkpoints").exists()
