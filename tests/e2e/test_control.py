"""stop, pause, continue, add and priority: the store alone, and a running controller."""
import json
import os
import shlex
import signal
import subprocess
import time

import tap
from tap import TINY_SWEEP, change, end, equal, fails, listed, run, running, show, start, trials_now, wait_for, write


def make(folder, *args):
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 2, "-q", *args)
    return store


def test_a_study_without_controller_is_changed_in_the_store(folder):
    store = make(folder)
    out, _ = run("priority", "a", 7, "--store", store)
    assert "has priority 7" in out and "no controller runs it now" in out, out
    equal(listed(store)["priority"], 7)
    out, _ = run("add", "a", "--trials", 3, "--store", store)
    assert "3 more trials, 5 in all" in out, out
    equal((listed(store)["trials_max"], listed(store)["state"]), (5, "running"))
    change(store, "UPDATE study SET trials_max = 1, checksum = NULL")  # which the study has passed: what is added is on top of the trials
    out, _ = run("add", "a", "--trials", 3, "--store", store)
    assert "3 more trials, 5 in all" in out, out
    out, _ = run("pause", "a", "--store", store)
    equal(listed(store)["state"], "paused")
    fails("pause", "a", "--store", store, code=2, says="paused already")
    run("continue", "a", "--store", store)
    equal(listed(store)["state"], "running")
    fails("continue", "a", "--store", store, code=2, says="neither paused nor ended")
    answer = json.loads(run("stop", "a", "--store", store, "--json")[0])
    equal((answer["command"], answer["study"], answer["done_by"]), ("stop", "a", "store"))
    equal((listed(store)["state"], listed(store)["end_rule"]), ("ended", "user"))
    fails("stop", "a", "--store", store, code=2, says="has ended already")
    out, _ = run("add", "a", "--trials", 1, "--store", store)
    assert "it is stopped: `trawl continue a --store %s` resumes it" % store in out, out
    out, _ = run("show", "a", "--store", store)
    assert "state ended (user): stopped by `trawl stop`, priority 7" in out, out


LONG = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 100k")


def states(store):
    return [t["state"] for t in trials_now(store, "a")]


def begin(folder, text=LONG, trials=100000):
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", trials)
    wait_for(lambda: "done" in states(store), process)
    return store, process


def test_continue_names_what_ended_a_study(folder):
    """What it prints lets the study continue, whichever limit had ended it."""
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    for name, options, more in (("trials", ("--trials", 2), "--trials"), ("budget", ("--budget", "0.01s"), "--budget")):
        run("sweep", config, "--store", store, "--name", name, *options, "-q")
        message = fails("continue", name, "--store", store, code=2, says="`trawl add %s %s " % (name, more))
        trials = [t for t in show(store, name)["trials"] if t["state"] != "queued"]  # one may have been proposed ahead
        time_more = " %.6fs " % (sum(t["cost_s"] for t in trials) + 0.03)  # a slow machine spends more than a budget
        command = shlex.split(message.split("`")[1].replace(" N ", " 2 ").replace(" TIME ", time_more))
        run(*command[1:])
        run("sweep", "--resume", name, "--store", store, "-q")
        assert len([t for t in show(store, name)["trials"] if t["state"] != "queued"]) > len(trials), name
    run("sweep", config, "--store", store, "--name", "target", "--sweep.target", 0.0001, "-q")
    fails("continue", "target", "--store", store, code=2, says=["`trawl sweep --resume target", "with another limit"])


def test_a_running_study_obeys(folder):
    store, process = begin(folder)
    answer = json.loads(run("pause", "a", "--store", store, "--json")[0])
    equal(answer["done_by"], "controller")
    equal(listed(store)["state"], "paused")
    wait_for(lambda: "running" not in states(store), process)
    begun = lambda: [s for s in states(store) if s != "queued"]  # a proposal that was on its way may still come
    n = len(begun())
    time.sleep(0.5)
    equal(len(begun()), n)
    out, _ = run("continue", "a", "--store", store)
    assert "no controller" not in out, out
    wait_for(lambda: states(store).count("done") > n + 2, process)
    run("priority", "a", 5, "--store", store)
    equal(listed(store)["priority"], 5)
    fails("continue", "a", "--store", store, code=2, says="neither paused nor ended")
    fails("pause", "b", "--store", store, code=1, says="no study 'b'")
    run("stop", "a", "--store", store)
    out, _ = end(process)
    assert out.rstrip().endswith("trawl sweep --resume a --store %s" % store), out  # its limits are as good as before
    equal((listed(store)["state"], listed(store)["end_rule"]), ("ended", "user"))
    assert "running" not in states(store)
    assert not (folder / "s.db.sock").exists()


def test_trials_are_added_to_a_running_study(folder):
    slow = LONG.replace("total_timesteps = 100k", "total_timesteps = 1M")
    store = folder / "s.db"
    process = start("sweep", write(folder, "s.ini", slow), "--store", store, "--name", "a", "--trials", 3)
    wait_for(lambda: "running" in states(store), process)
    (worker,) = tap.children(process.pid)
    os.kill(worker, signal.SIGSTOP)  # nothing ends meanwhile, however long it takes to say it
    answer = json.loads(run("add", "a", "--trials", 2, "--store", store, "--json")[0])
    os.kill(worker, signal.SIGCONT)
    equal(answer["done_by"], "controller")
    end(process)
    equal(states(store), ["done"] * 5)
    equal((listed(store)["trials_max"], listed(store)["end_rule"]), (5, "trials"))


def test_pause_now_frees_the_device(folder):
    store = folder / "s.db"
    text = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G")
    process = start("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", 3)
    wait_for(lambda: "running" in states(store), process)
    run("pause", "a", "--now", "--store", store)
    wait_for(lambda: "running" not in states(store), process)
    equal(states(store), ["queued"])
    run("continue", "a", "--store", store)
    wait_for(lambda: "running" in states(store), process)
    end(process, signal.SIGTERM, 130)
    equal(states(store), ["queued"])
    equal((listed(store)["state"], listed(store)["end_rule"]), ("paused", "interrupted"))


def killed_while_one_runs(store, process):
    """Kills the process, stopped so that no trial ends meanwhile; False: none ran just then."""
    process.send_signal(signal.SIGSTOP)
    if not running(store):
        process.send_signal(signal.SIGCONT)
        return False
    end(process, signal.SIGKILL, -9)
    return True


def test_a_controller_that_was_killed_leaves_a_socket_behind(folder):
    store, process = begin(folder)
    wait_for(lambda: killed_while_one_runs(store, process))
    assert (folder / "s.db.sock").exists()
    equal((listed(store)["state"], listed(store)["now"]), ("running", "interrupted"))
    assert "continues it" in next(s for s in run("show", "a", "--store", store)[0].splitlines() if s.startswith("state"))
    wait_for(lambda: subprocess.run([tap.TRAWL, "priority", "a", "3", "--store", str(store)],
                                    capture_output=True, text=True).stdout.count("no controller runs it now"))
    process = start("sweep", "--resume", "a", "--store", store)
    n = states(store).count("done")
    wait_for(lambda: states(store).count("done") > n, process)
    answer = json.loads(run("stop", "a", "--store", store, "--json")[0])
    equal(answer["done_by"], "controller")
    end(process)


def test_running_is_said_of_what_a_controller_runs(folder):
    store = make(folder)  # a, which has ended
    run("sweep", folder / "s.ini", "--store", store, "--name", "b", "--trials", 1, "-q")
    run("add", "a", "--trials", 3, "--store", store)
    now = lambda: [row["now"] for row in json.loads(run("ls", "--store", store, "--json")[0])]
    equal(now(), ["idle", "ended"])
    text = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G")
    process = start("sweep", write(folder, "c.ini", text), "--store", store, "--name", "c", "--trials", 3)
    wait_for(lambda: running(store, "c"), process)
    equal(now(), ["waiting", "ended", "running"])
    end(process, signal.SIGTERM, 130)
    equal(now(), ["idle", "ended", "paused"])


def test_a_resume_that_cannot_begin_leaves_the_study_as_it_was(folder):
    store = make(folder)
    fails("sweep", "--resume", "a", "--store", store, "--trials", 9, "--devices", "cuda:0,cuda:0", code=2, says="twice")
    equal((listed(store)["state"], listed(store)["now"], listed(store)["end_rule"]), ("ended", "ended", "trials"))


def test_bad_input(folder):
    store = make(folder)
    fails("pause", "b", "--store", store, code=1, says=("no study 'b'", "It has: a"))
    fails("stop", "--store", store, code=2, says="study's name")
    fails("add", "a", "--store", store, code=2, says="--trials N or --budget TIME")
    fails("add", "a", "--budget", "1h", "--store", store, code=2, says="no budget to add to; it has a limit of trials: --trials N")
    fails("add", "a", "--budget", "x", "--store", store, code=2, says="a time is needed")
    fails("add", "a", "--trials", 10**6, "--store", store, code=2, says="more than")
    for bad in ("0", "101", "x", "1.5"):
        fails("priority", "a", bad, "--store", store, code=2, says="1 to 100")
    fails("priority", "a", "--store", store, code=2)
    fails("stop", "a", "--store", folder / "none.db", code=1, says="no such store")
    assert not (folder / "none.db").exists()
    for command in ("stop", "pause", "continue", "add", "priority"):
        assert "examples:" in run(command, "--help")[0]
