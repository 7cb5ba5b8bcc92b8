"""sweep.branches: shorter runs that a long one holds are trials of their own, and a training by their config gives the same."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import asking
import tap
from tap import TINY_SWEEP, end, equal, fails, open_gate, run, show, start, wait_for, write

LENGTHS = "\n[sweep.train.total_timesteps]\nmin = 512\nmax = 16384\n"
SWEEP = TINY_SWEEP.replace("device = cpu", "device = cpu\ndecay_steps = 1000\neval_episodes = 32").replace(
    "total_timesteps = 4096", "total_timesteps = 8192").replace("[sweep]", "[sweep]\nbranches = 3\nconfirm = 0") + LENGTHS


def branches_of(trials, number):
    return [t for t in trials if t["origin"] == "branch %d" % number]


def test_a_branch_is_the_shorter_run(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", SWEEP), "--store", store, "--name", "a", "--trials", 4, "-q")
    study = show(store, "a")
    trials = study["trials"]
    runs = [t for t in trials if not t["origin"].startswith("branch")]
    equal(len(runs), 4)  # --trials counts runs
    first = branches_of(trials, 0)
    equal([t["env_steps"] for t in first], [512, 1536, 3328])  # rollouts of 256 steps at 512 * 16^(k/3)
    assert all(t["state"] == "done" and t["seed"] == runs[0]["seed"] and t["params"]["train.total_timesteps"] == t["env_steps"] for t in first)
    costs = [t["cost_s"] for t in first] + [runs[0]["cost_s"]]
    equal(costs, sorted(costs))
    equal({k: v for k, v in first[0]["params"].items() if k != "train.total_timesteps"},
          {k: v for k, v in runs[0]["params"].items() if k != "train.total_timesteps"})
    for t in first + branches_of(trials, runs[-1]["number"]):
        run("export", "a", "--store", store, "--pick", "trial=%d" % t["number"], "-o", folder / "t.ini")
        alone = json.loads(run("train", folder / "t.ini", "--json", "-q")[0])
        equal((alone["env_steps"], alone["perf"], alone["ep_length"]), (t["env_steps"], t["score"], alone["ep_length"]))
    assert "; 4 runs of 4," in run("show", "a", "--store", store)[0]
    run("check", store)
    run("replay", "a", "--store", store)
    run("sweep", "--resume", "a", "--store", store, "--trials", 6, "-q")
    equal(len([t for t in show(store, "a")["trials"] if not t["origin"].startswith("branch")]), 6)


def test_with_lanes_too(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", SWEEP), "--store", store, "--name", "a", "--trials", 4, "-q", "--sweep.runs_per_device", 2, "--sweep.cost",
        "env_steps")
    trials = show(store, "a")["trials"]
    for number in (t["number"] for t in trials if not t["origin"].startswith("branch")):
        steps = [t["env_steps"] for t in branches_of(trials, number)]
        equal(steps, sorted(set(steps)))
    equal(len(branches_of(trials, 0)), 3)


def test_kills_leave_each_branch_once(folder):
    store = folder / "s.db"
    slow = SWEEP.replace("max = 16384", "max = 4194304").replace("total_timesteps = 8192", "total_timesteps = 1000000")
    words = ["--store", store, "-q"]
    begin = [tap.TRAWL, "sweep", str(write(folder, "s.ini", slow)), "--name", "a", "--trials", "3", *map(str, words)]
    for delay in (0.4, 0.7, 1.0, 1.3):
        process = subprocess.Popen(begin, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if tap.rows(store, "SELECT 1 FROM study"):  # a kill may come before there is one
            begin = [tap.TRAWL, "sweep", "--resume", "a", *map(str, words)]
    run(*begin[1:])
    trials = show(store, "a")["trials"]
    runs = [t for t in trials if not t["origin"].startswith("branch")]
    equal([t["state"] for t in runs], ["done"] * 3)
    for t in runs:
        steps = [b["env_steps"] for b in branches_of(trials, t["number"])]
        equal(steps, sorted(set(steps)))
        assert t["number"] > 0 or len(steps) == 3, steps
    equal(tap.rows(store, "SELECT origin, env_steps FROM trial WHERE origin LIKE 'branch %' GROUP BY 1, 2 HAVING count(*) > 1"), [])
    run("check", store)


def test_a_budget_counts_a_run_once(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", SWEEP), "--store", store, "--name", "a", "--trials", 3, "-q")
    study = show(store, "a")
    spent = sum(t["cost_s"] for t in study["trials"] if not t["origin"].startswith("branch"))
    listed = json.loads(run("ls", "--store", store, "--json")[0])
    assert abs(listed[0]["cost_s"] - spent) < 1e-6, (listed, spent)


def test_an_evaluation_is_no_cost_and_begins_again_where_it_was_stopped(folder):
    """The first evaluation lasts longer than the budget, in which all of the training fits: from its 1,000th step on the trial is behind the gate."""
    store, header, reached = folder / "s.db", folder / "apples.h", folder / "reached"
    tap.gated(folder)
    text = header.read_text()
    for old, new in (("++n % 64 == 0 &&", '++n %% 64 == 0 && n > 1000 && (n > 1024 || close(creat("%s", 0600)) == 0) &&' % reached),
                     ("extern int access", "extern int creat(const char *, unsigned), close(int), access"),
                     ("step->ended = state->apple_y == 2 * settings->width - 1;", "step->ended = state->apple_y == 50000;")):
        equal(text.count(old), 1)
        text = text.replace(old, new)
    header.write_text(text)
    run("env", "build", "apples.h", "--gpu", "no", cwd=folder)
    config = SWEEP.replace("name = squared\nn = 1\n", "name = %s\n" % (folder / "apples.so")).replace(
        "eval_episodes = 32", "eval_episodes = 8\neval_max_steps = 100000").replace("branches = 3", "branches = 2")
    process = start("sweep", write(folder, "s.ini", config), "--store", store, "--name", "a", "--trials", 1, "--budget", "5s", "-q")
    wait_for(reached.exists, process)
    time.sleep(6)
    end(process, signal.SIGINT, 130)
    open_gate(folder)
    run("sweep", "--resume", "a", "--store", store, "-q")
    trials = show(store, "a")["trials"]
    equal([(t["state"], t["env_steps"]) for t in trials], [("done", 8192), ("done", 512), ("done", 2048)])
    equal(trials[0]["attempt"], 2)
    assert all(t["cost_s"] < 5 for t in trials), trials


def test_imported_branches_stay_branches(folder):
    store, there = folder / "s.db", folder / "t.db"
    run("sweep", write(folder, "s.ini", SWEEP), "--store", store, "--name", "a", "--trials", 3, "-q")
    old = show(store, "a")["trials"]
    run("report", "a", "--store", store, "-o", folder / "a.csv")
    head, *rows = (folder / "a.csv").read_text().splitlines()
    run_0 = next(r for r in rows if r.startswith("0,"))
    for name, text in (("all", [head, *reversed(rows)]), ("less", [head] + [r for r in rows if r != run_0])):
        write(folder, name + ".csv", "\n".join(text) + "\n")
        for times in range(2):
            run("import", folder / (name + ".csv"), "--study", name, "--config", folder / "s.ini", "--store", there)
    run("import", store, "--from", "a", "--study", "theirs", "--store", there)

    def course(trials):  # points of each run, by its seed
        runs = {t["number"]: (t["seed"], t["env_steps"]) for t in trials if not t["origin"].startswith("branch ")}
        return sorted((runs[int(t["origin"].split()[1])], t["seed"], t["env_steps"], t["score"], t["cost_s"])
                      for t in trials if t["origin"].startswith("branch "))

    for name in ("all", "theirs"):
        new = show(there, name)
        equal(course(new["trials"]), course(old))
        equal(len(new["trials"]), len(old))
        assert "; 3 runs of " in run("show", name, "--store", there)[0]
    # without their run nobody paid for its branches: they are trials like others
    less = show(there, "less")["trials"]
    equal(sorted(t["env_steps"] for t in less if t["seed"] == old[0]["seed"] and t["origin"] == "added"), [512, 1536, 3328])
    equal(len(course(less)), len(course(old)) - 3)
    row = next(r for r in rows if ",branch " in r)
    number = row.split(",")[0]
    own = re.sub(",branch [0-9]+", ",branch " + number, row)
    fails("import", write(folder, "own.csv", head + "\n" + own + "\n"), "--study", "all", "--store", there, code=1,
          says="trial %s is a branch of itself" % number)
    # where lengths are not searched they would be the run's own point
    short = SWEEP.replace(LENGTHS, "").replace("branches = 3\n", "")
    said = run("import", store, "--study", "short", "--config", write(folder, "short.ini", short), "--store", there)[0]
    assert "%d branches were left out" % len(course(old)) in said, said


def test_a_branch_has_no_checkpoint_to_continue_from(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", SWEEP), "--store", store, "--name", "a", "--trials", 1, "-q", "--sweep.keep", "all")
    said = fails("extend", "a", 1, "--steps", "2x", "--store", store, code=2, says=("trial 1 of a is a branch of trial 0", "extend trial 0"))
    assert "sweep.keep" not in said, said
    said = fails("export", "a", "--pick", "trial=1", "-o", folder / "p.onnx", "--store", store, code=1, says="left no checkpoint")
    assert "sweep.keep" not in said, said
    run("extend", "a", 0, "--steps", "2x", "--store", store)


def test_what_cannot_have_branches(folder):
    store = folder / "s.db"
    for change, says in ((lambda s: s.replace("decay_steps = 1000", ""), "set train.decay_steps"),
                         (lambda s: s.replace(LENGTHS, ""), "add [sweep.train.total_timesteps]"),
                         (lambda s: s.replace("branches = 3", "branches = 3\nseeds = 2"), "sweep.branches and sweep.seeds"),
                         (lambda s: s.replace("branches = 3", "branches = 17"), "sweep.branches"),
                         (lambda s: s.replace("decay_steps = 1000", "decay_steps = 1000\nmax_seconds = 3"), "no train.max_seconds")):
        fails("sweep", write(folder, "bad.ini", change(SWEEP)), "--store", store, "--name", "b", "-q", code=2, says=says)
        assert not store.exists() or "b " not in run("ls", "--store", store)[0]
    for more, says in (("", "set sweep.branches_length"), ("branches_length = y\n", "'y', which the study does not search"),
                       ("branches_length = x\nseeds = 2\n", "sweep.branches and sweep.seeds"),
                       ("branches_length = x\ncost = own\n", "set another sweep.cost"),
                       ("branches_length = x\nobjective = size:min\n", "drop the limits and the third objective")):
        program = "[sweep]\ncommand = true\nbranches = 2\n" + more + "[sweep.x]\ntype = float\nmin = 1\nmax = 2\n"
        fails("sweep", write(folder, "bad.ini", program), "--store", store, "--name", "b", "-q", code=2, says=says)
    program = "[sweep]\ncommand = true\nbranches = 2\nbranches_length = lr\n[sweep.lr]\ntype = float\nmin = 0.001\nmax = 1.5\n"
    fails("sweep", write(folder, "bad.ini", program), "--store", store, "--name", "b", "-q", code=2, says="the range of lr ends at 1.5")


PROGRAM = """
[sweep]
command = %s train.py {argv}
method = sobol
devices = cpu
confirm = 0
branches = 3
branches_length = Total_Steps
""" + tap.space("""
rate: type = float; min = 0.1; max = 1
total-steps: type = int; min = 20; max = 160
""")
TRAINER = """
import sys
argv = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for step in range(7, int(argv["--total-steps"]) + 1, 7):
    print(f"TRAWL score={float(argv['--rate']) * step} step={step}", flush=True)
"""


def test_a_programs_reports_are_branches(folder):
    store = folder / "s.db"
    write(folder, "train.py", TRAINER)
    run("sweep", write(folder, "s.ini", PROGRAM % sys.executable), "--store", store, "--name", "a", "--trials", 3, "-q")
    trials = show(store, "a")["trials"]
    equal(len([t for t in trials if t["origin"] == "default" or t["origin"] == "sobol"]), 3)
    equal(trials[0]["params"]["param.total_steps"], 90)
    # of 90 steps 20, 34 and 55 are wanted: the first reports there or later
    equal([t["params"]["param.total_steps"] for t in branches_of(trials, 0)], [21, 35, 56])
    for t in trials:
        if t["origin"].startswith("branch"):
            equal(t["score"], t["params"]["param.rate"] * t["env_steps"])
            equal(t["params"]["param.total_steps"], t["env_steps"])
            assert t["cost_s"] <= trials[int(t["origin"].split()[1])]["cost_s"], t
    # by itself it gives the same
    again = json.loads(run("rerun", "a", "--trial", branches_of(trials, 0)[1]["number"], "--store", store, "--json", "-q")[0])
    equal((again["same"], again["now"]["env_steps"]), (True, 35))
    run("check", store)


def test_a_clients_reports_are_branches(folder):
    with asking.served(folder, PROGRAM.replace("command = %s train.py {argv}\n", "").replace("devices = cpu", "devices = none"), 20) as (s, store):
        t = s.ask("c")
        equal(t["params"]["total_steps"], 90)
        for step, score in ((10, 0.1), (30, 0.2), (40, 0.3), (40, 0.3), (80, 0.4), (90, 0.5)):
            s.ok("a/trials/%d:report" % t["trial"], {"lease": t["lease"]["token"], "step": step, "cost": step / 10, "metrics": {"score": score}})
        said = s.tell(t, score=0.5, cost=7)
        assert said["counted"] and "the cost, 7, is below the 8 that this run had reported" in said["warning"], said
        equal(show(store, "a")["trials"][t["trial"]]["cost_s"], 7)
        found = branches_of(show(store, "a")["trials"], t["trial"])
        equal([(b["env_steps"], b["score"], b["cost_s"], b["state"]) for b in found], [(30, 0.2, 3, "done"), (40, 0.3, 4, "done"), (80, 0.4, 8, "done")])
