"""Budgets and stop rules: each ends its study, and the store names the rule."""
import re
import signal

from tap import TINY, TINY_SWEEP, change, end, equal, fails, listed, rows, run, running, show, space, start, wait_for, write


def ended_by(folder, rule, *args, text=TINY_SWEEP):
    store = folder / ("%s.db" % rule)
    run("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "-q", *args)
    row = listed(store)
    equal((row["state"], row["end_rule"]), ("ended", rule))
    assert rule in run("show", "a", "--store", store)[0]
    return store, row


def test_wall_time(folder):
    text = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G")
    store, row = ended_by(folder, "wall_time", "--wall-time", "10s", text=text)  # a slow start of the worker is part of it
    trials = show(store, "a")["trials"]
    equal([t["state"] for t in trials], ["stopped"])
    assert "wall_time" in trials[0]["reason"], trials
    _, err = run("sweep", "--resume", "a", "--store", store, "-q")  # a total over all runs of the controller
    assert "wall_time" in err, err
    equal(len(show(store, "a")["trials"]), 1)
    run("sweep", "--resume", "a", "--store", store, "-q", "--wall-time", "24s")
    equal(len(show(store, "a")["trials"]), 2)


def test_what_waits_is_told_and_used_later(folder):
    """An interrupted trial, or one proposed ahead, stays in the queue of a study that its budget has ended."""
    store = folder / "s.db"
    text = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G")
    process = start("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", 3)
    wait_for(lambda: running(store), process)
    end(process, signal.SIGTERM, 130)
    stopped = show(store, "a")["trials"][0]
    change(store, "UPDATE study SET trials_max = 0, checksum = NULL")  # the budget is counted from trials that have ended: one has
    change(store, "INSERT INTO trial (study_id, number, state, params, config, origin, seed, attempt, cost_s, score, created_ms) "
           "SELECT study_id, 1, 'done', params, config, origin, seed, 1, 1000.0, 0.1, created_ms FROM trial")
    out, _ = run("sweep", "--resume", "a", "--store", store, "--budget", "1s", "-q")
    assert "1 done, 0 failed, 0 stopped, 1 waiting" in out and "ended (budget)" in out, out
    equal([t["state"] for t in show(store, "a")["trials"]], ["queued", "done"])
    before, = rows(store, "SELECT lost_s FROM study")[0]  # what it trained before counts
    run("sweep", "--resume", "a", "--store", store, "--budget", "%fs" % (1008 + before), "-q")
    trials = show(store, "a")["trials"]
    equal((len(trials), trials[0]["params"], trials[0]["attempt"]), (2, stopped["params"], 2))
    equal([t["state"] for t in trials], ["stopped", "done"])  # it ran until the larger budget was spent


def test_device_time(folder):
    store, _ = ended_by(folder, "device_time", "--sweep.device_time", "1s")
    out, _ = run("sweep", "--resume", "a", "--store", store, folder / "s.ini", "--sweep.device_time", "2s", "-q")
    assert int(re.search(r"CONFIG --sweep\.device_time (\d+)s$", out.rstrip())[1]) >= 4, out  # more where the machine stood still in a trial


def test_target(folder):
    """The first run reaches the target, but one run does not end the study: its config runs again, and its expected score decides."""
    store, row = ended_by(folder, "target", "--target", "-1000", "--trials", "60")
    trials = show(store, "a")["trials"]
    assert "is expected, from 2 runs (target -1000)" in row["end_text"], row
    assert any(t["origin"] == "confirm" for t in trials), trials
    run("sweep", "--resume", "a", "--store", store, "-q", "--target", "1e9", "--trials", len(trials) + 2)
    equal((listed(store)["end_rule"], listed(store)["trials"]), ("trials", len(trials) + 2))
    text = TINY_SWEEP.replace("method = sobol", "method = sobol\ngoal = minimize\nconfirm = 0")
    lower = folder / "lower"
    lower.mkdir()
    _, row = ended_by(lower, "target", "--target", "1000", "--trials", "60", text=text)
    assert "is expected, from 1 run (target 1000)" in row["end_text"], row


def test_values_that_no_trial_can_have_are_named(folder):
    """At the start and where the study ends for want of points."""
    text = TINY.replace("squared\nn = 1", "trash_pickup") + space("env.agents: values = 3, 1")
    store, says = folder / "s.db", r"with these values: env\.agents = 3 \(.* 16 is not a multiple of the 3 agents"
    _, err = run("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "-q", "--trials", 3, "--sweep.seeds", 1)
    assert re.search("warning: no point that can be run was found " + says, err), err
    equal((listed(store)["state"], listed(store)["end_rule"]), ("ended", "space"))
    assert re.search("no new point.*; none " + says, run("show", "a", "--store", store)[0]), run("show", "a", "--store", store)[0]
    assert all(trial["params"]["env.agents"] == "1" for trial in show(store, "a")["trials"])


def test_hypervolume_that_comes_to_rest(folder):
    text = TINY_SWEEP.replace("method = sobol", "method = random").replace("total_timesteps = 4096", "total_timesteps = 512")
    store, row = ended_by(folder, "min_gain", "--sweep.min_gain", "1e6", "--sweep.gain_window", "4s", text=text)
    assert "come to rest" in row["end_text"], row
    assert len(show(store, "a")["trials"]) >= 20  # ten within the window, ten before


def test_a_cap_on_the_cost_that_no_trial_keeps_is_told(folder):
    config, store = write(folder, "s.ini", TINY_SWEEP), folder / "s.db"
    for name, cap, told in (("a", "1e-9", True), ("b", "1e9", False)):
        out, err = run("sweep", config, "--store", store, "--name", name, "--trials", 5, "-q", "--sweep.n_init", 2,
                       "--sweep.max_cost", cap)
        # While it runs: once, of the first trial that may know costs.
        equal(re.findall(r"warning: (\w+: trial \d+) cost .*, more than sweep\.max_cost \(1e-06 ms\)", err), ["a: trial 2"] if told else [])
        for text in (out, run("show", name, "--store", store)[0]):
            equal("no trial so far cost less than sweep.max_cost" in text, told)


def test_bad_input(folder):
    config = write(folder, "s.ini", TINY_SWEEP)
    for args, says in ((("--wall-time", "x"), "--wall-time"), (("--target", "x"), "--target"),
                       (("--sweep.device_time", "x"), "sweep.device_time"), (("--sweep.gain_window", "0"), "gain_window"),
                       (("--sweep.target", "high"), "sweep.target"), (("--sweep.priority", "0"), "sweep.priority")):
        fails("sweep", config, "--store", folder / "s.db", "--name", "a", *args, code=2, says=says)
    assert not (folder / "s.db").exists()
