"""Stops and deaths: Ctrl-C, SIGTERM, a worker that dies, budgets, and resuming afterwards."""
import json
import os
import re
import signal
import time

import tap
from tap import TINY, TINY_SWEEP, children, end, equal, fails, gated, open_gate, rows, run, running, show, start, wait_for, write

LONG_SWEEP = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G").replace("threads = 1", "threads = 1\nlog_interval_s = 0.1")


def test_interrupted_training_saves_and_goes_on(folder):
    config = write(folder, "t.ini", TINY)
    ckpt = folder / "t.ckpt"
    for number in (signal.SIGINT, signal.SIGTERM):
        process = start("train", config, "-o", ckpt, "--json", "--train.total_timesteps", "1G", "--train.log_interval_s", 0.05)
        while "steps" not in process.stderr.readline():
            assert process.poll() is None
        out, err = end(process, number, 130)
        result = json.loads(out)
        assert result["stopped"] and 0 < result["env_steps"] < 10**9
        assert "--resume" in tap.errors(err)[0]
        more = result["env_steps"] + 4096
        out, _ = run("train", "--resume", ckpt, "--json", "-q", "--train.total_timesteps", more)
        assert json.loads(out)["env_steps"] >= more
        ckpt.unlink()


def test_finished_training_says_what_goes_on(folder):
    ckpt = folder / "t.ckpt"
    run("train", write(folder, "t.ini", TINY), "-q", "-o", ckpt)
    _, err = run("train", "--resume", ckpt, "-q")
    assert "a larger --train.total_timesteps continues it" in err, err
    _, err = run("train", "--resume", ckpt, "-q", "--train.total_timesteps", "20k")
    equal(err, "")
    _, err = run("train", "--resume", ckpt, "-q", "--train.total_timesteps", "30k", "--train.max_seconds", "1e-6")
    assert "at its end by train.max_seconds; more than 1e-06, or 0, continues it" in err and "total_timesteps" not in err, err


def test_time_left_of_a_budget_is_told(folder):
    config = write(folder, "s.ini", TINY_SWEEP)
    _, err = run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 2, "--budget", "1h")
    lines = [line for line in err.splitlines() if " done " in line]
    assert len(lines) == 2 and "left ?" not in err, err


def test_interrupted_training_without_checkpoint_says_so(folder):
    process = start("train", write(folder, "t.ini", TINY), "--train.total_timesteps", "1G", "--train.log_interval_s", 0.05)
    while "steps" not in process.stderr.readline():
        assert process.poll() is None
    _, err = end(process, signal.SIGINT, 130)
    assert "nothing was saved" in err


def test_checkpoints_are_written_on_the_way(folder):
    ckpt = folder / "t.ckpt"
    process = start("train", write(folder, "t.ini", TINY), "-o", ckpt, "--train.total_timesteps", "1G", "--train.log_interval_s", 0.05,
                    "--train.checkpoint_interval_s", 0.1)
    wait_for(ckpt.exists, process)
    end(process, signal.SIGKILL, -9)
    assert json.loads(run("eval", ckpt, "--episodes", 4, "--json")[0])["episodes"] >= 4


def test_interrupted_sweep_goes_on_as_if_never_stopped(folder):
    text = gated(folder, confirm=0).replace("1000000", "250k")  # what is confirmed depends on costs; many trials, of 250 s while the gate is shut
    config, store = write(folder, "s.ini", text), folder / "s.db"
    open_gate(folder)
    run("sweep", config, "--store", folder / "whole.db", "--name", "a", "--trials", 6, "--seed", 4, "-q")
    run("sweep", config, "--store", store, "--name", "a", "--trials", 1, "--seed", 4, "-q")
    (folder / "gate").unlink()
    process = start("sweep", "--resume", "a", "--store", store, "--trials", 6)
    wait_for(lambda: rows(store, "SELECT 1 FROM metric WHERE trial_id = 2"), process)
    out, err = end(process, signal.SIGINT, 130)
    open_gate(folder)
    assert "--resume a" in tap.errors(err)[0] and "trawl sweep --resume a" in out
    trials = show(store, "a")["trials"]
    assert not [t for t in trials if t["state"] == "running"], trials
    run("sweep", "--resume", "a", "--store", store, "-q")
    whole, parts = show(folder / "whole.db", "a")["trials"], show(store, "a")["trials"]
    for key in ("number", "params", "seed", "score", "state", "env_steps", "origin"):
        equal([t[key] for t in parts], [t[key] for t in whole])
    equal(len(parts), 6)  # a total, not six more
    _, err = run("sweep", "--resume", "a", "--store", store, "-q")
    assert "has its 6 trials; a larger --trials continues it" in err, err
    equal(len(show(store, "a")["trials"]), 6)
    run("sweep", "--resume", "a", "--store", store, "-q", "--trials", 8)
    equal([t["state"] for t in show(store, "a")["trials"]], ["done"] * 8)


def test_second_interrupt_ends_at_once(folder):
    for attempt in range(5):  # a busy machine may send it later than the 6 s after which the worker is killed
        store = folder / ("%d.db" % attempt)
        process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--trials", 2)
        wait_for(lambda: running(store), process)
        worker, = children(process.pid)
        os.kill(worker, signal.SIGSTOP)  # it does not obey
        process.send_signal(signal.SIGINT)
        wait_for(lambda: not tap.has_signal(process.pid, signal.SIGINT, "SigPnd", "ShdPnd"), process)
        time.sleep(2.5)  # within 2 s it would be the same request (tests/e2e/kills/test_outside.py)
        end(process, signal.SIGINT, 130)
        wait_for(lambda: tap.is_gone(worker))
        states = [t["state"] for t in show(store, "a")["trials"]]
        if states == ["running"]:
            break
    equal(states, ["running"])  # nobody waited for the worker to obey


def test_workers_that_keep_dying_stop_the_sweep(folder):
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--trials", 30)
    for number in range(5):
        wait_for(lambda: [t for t in running(store) if t["number"] == number], process)
        worker, = children(process.pid)
        os.kill(worker, signal.SIGABRT)
    _, err = end(process, code=1)
    assert "5 worker processes died in a row" in err and "signal 6" in err and "--resume a" in err, err
    equal([t["state"] for t in show(store, "a")["trials"]], ["failed"] * 5)


def test_worker_dies_with_its_controller(folder):
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", LONG_SWEEP), "--store", store, "--name", "a", "--trials", 2)
    wait_for(lambda: running(store), process)
    worker, = children(process.pid)
    end(process, signal.SIGKILL, -9)
    wait_for(lambda: tap.is_gone(worker))
    equal([t["state"] for t in show(store, "a")["trials"]], ["running"])
    config = write(folder, "short.ini", TINY_SWEEP)
    fails("sweep", config, "--resume", "a", "--store", store, code=2, says="train.total_timesteps")
    fails("sweep", "--resume", "a", "--store", store, "--seed", 7, code=2, says="keeps its seed")


def test_budget_is_a_total_and_cuts_the_last_trial(folder):
    store = folder / "s.db"
    config = write(folder, "s.ini", LONG_SWEEP)
    run("sweep", config, "--store", store, "--name", "a", "--budget", "2s", "-q")
    trials = show(store, "a")["trials"]
    equal([t["state"] for t in trials], ["stopped"])
    assert "budget" in trials[0]["reason"] and trials[0]["cost_s"] > 0, trials
    assert not trials[0]["on_front"]
    out, err = run("sweep", "--resume", "a", "--store", store, "-q")
    advised = int(re.search(r"--budget (\d+)s", out)[1])  # 4, unless the machine stood still in the trial
    assert "budget is spent" in err and advised >= 4 and advised > trials[0]["cost_s"], (out, err)
    assert "trawl export" not in out, out  # there is no best yet
    equal(len(show(store, "a")["trials"]), 1)
    more = "%ds" % (trials[0]["cost_s"] + 2)  # a busy machine may have trained for longer than it was to
    run("sweep", "--resume", "a", "--store", store, "-q", "--budget", more)
    equal([t["state"] for t in show(store, "a")["trials"]], ["stopped"] * 2)


def test_nohup_outlives_its_terminal(folder):
    config, store = write(folder, "s.ini", gated(folder)), folder / "s.db"
    process = start("sweep", config, "--store", store, "--name", "a", "--trials", 2,
                    preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    wait_for(lambda: rows(store, "SELECT 1 FROM metric"), process)
    process.send_signal(signal.SIGHUP)
    open_gate(folder)
    end(process)
    equal([t["state"] for t in show(store, "a")["trials"]], ["done"] * 2)


def test_new_limits_on_resume(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    run("sweep", config, "--store", store, "--name", "a", "--trials", 2, "-q")
    run("sweep", config, "--resume", "a", "--store", store, "--sweep.trials", 3, "-q")  # either name of the option
    equal(len(show(store, "a")["trials"]), 3)
    for args in (("--trials", 1), (config, "--sweep.trials", 2)):  # a total that has been passed
        fails("sweep", "--resume", "a", "--store", store, *args, code=2, says=("has 3 trials already", "more than 3"))
    assert "3 trials of 3" in run("show", "a", "--store", store)[0]
    out, _ = run("sweep", "--resume", "a", "--store", store, "--trials", 3, "-q")  # all there: nothing to do
    assert "--trials 6" in out and len(show(store, "a")["trials"]) == 3, out
    run("sweep", "--resume", "a", "--store", store, "--trials", 0, "--budget", 0, "-q")  # no limit at all is the default
    equal(len(show(store, "a")["trials"]), 100)
    fails("sweep", "--resume", "a", "--store", store, "--seed", 9, code=2, says="seed")
    fails("sweep", "--resume", "a", "--store", store, "--trials", 10**6 + 1, code=2, says="--trials")
