"""test_outcomes.py - limits of outcomes and a third objective, from the config to the files that leave a study: programs, clients of
ask/tell, and Trawl's own trainer."""
import csv
import io
import json
import sqlite3

import asking
import tap
from tap import equal, fails, run, show, wait_for, write

# Score, cost and memory follow from x and y; the best scores need the most memory.
CONFIG = """
[sweep]
command = sh train.sh {argv}
trials = %(trials)d
devices = cpu
confirm = 0
objective = memory
%(more)s

[sweep.limit.mem]
metric = %(metric)s
max = %(max)s
""" + tap.space("""
x: type = float; min = 0; max = 1
y: type = float; min = 0; max = 1
""")
TRAIN = r"""
while [ $# -gt 1 ]; do case $1 in --x) x=$2 ;; --y) y=$2 ;; esac; shift 2; done
awk -v x=$x -v y=$y 'BEGIN { print "TRAWL memory=9999 score=0 step=1"
  printf "TRAWL score=%.9f step=100 cost=%.9f memory=%.9f\n", x + y, 1 + 5 * x, 100 * (1 + 3 * y) }'
"""


def config(folder, trials=12, metric="memory", max="250", more=""):
    write(folder, "train.sh", TRAIN)
    return write(folder, "own.ini", CONFIG % {"trials": trials, "metric": metric, "max": max, "more": more})


def sweep(folder, code=0, **more):
    return run("sweep", config(folder, **more), "--store", folder / "own.db", "--name", "own", "-q", code=code)


def memory(trial):
    return trial["outcomes"]["memory"]


def dominates(a, b):
    a, b = [(t["cost_s"], -t["score"], memory(t)) for t in (a, b)]
    return all(x <= y for x, y in zip(a, b)) and a != b


def test_a_program(folder):
    sweep(folder)
    store = folder / "own.db"
    study = show(store, "own")
    trials = study["trials"]
    equal([t["state"] for t in trials], ["done"] * 12)
    for t in trials:
        equal(round(memory(t), 6), round(100 * (1 + 3 * t["params"]["param.y"]), 6))  # the last report's, not the first's
        equal(t["feasible"], memory(t) <= 250)
        assert t["feasible"] or not t["on_front"], t
    broken, kept = ([t for t in trials if t["feasible"] is k] for k in (False, True))
    assert broken and kept
    assert trials[study["study"]["best"]]["feasible"]
    front = [t for t in kept if not any(dominates(o, t) for o in kept)]
    assert {t["number"] for t in trials if t["on_front"]} <= {t["number"] for t in front}
    equal(study["study"]["space"]["limits"], [{"name": "mem", "metric": "memory", "max": 250}])
    equal(study["study"]["space"]["objective"], {"metric": "memory", "goal": "minimize", "scale": "linear"})
    text = run("show", "own", "--store", store)[0]
    assert f"{len(broken)} infeasible" in text and "also: minimize memory; memory <= 250" in text, text
    assert "above the 250 of [sweep.limit.mem]" in text, text
    assert "front of cost, score and memory" in run("show", "own", "--front", "--store", store)[0]
    for rule in ("best", "best-run", "knee"):
        first = run("export", "own", "--store", store, "--pick", rule)[0].splitlines()[0]
        assert trials[int(first.split()[2])]["feasible"], first
    worst = broken[0]["number"]
    assert "it breaks a limit" in run("export", "own", "--store", store, "--pick", f"trial={worst}")[0]
    rows = list(csv.DictReader(io.StringIO(run("report", "own", "--store", store, "-f", "csv")[0])))
    equal([r["feasible"] for r in rows], ["true" if t["feasible"] else "false" for t in trials])
    equal([float(r["outcome.memory"]) for r in rows], [memory(t) for t in trials])
    made = folder / "optuna.db"
    run("export", "own", "--store", store, "--format", "optuna", "-o", made)
    with sqlite3.connect(made) as db:
        equal([d for (d,) in db.execute("SELECT direction FROM study_directions ORDER BY objective")], ["MAXIMIZE", "MINIMIZE", "MINIMIZE"])
        equal([v for (v,) in db.execute("SELECT value FROM trial_values WHERE objective = 2 ORDER BY trial_id")], [memory(t) for t in trials])
        over = [json.loads(v)[0] for (v,) in db.execute("SELECT value_json FROM trial_system_attributes WHERE key = 'constraints' ORDER BY trial_id")]
        equal([v <= 0 for v in over], [t["feasible"] for t in trials])
    # a table brings its outcomes along
    write(folder, "out.csv", run("report", "own", "--store", store, "-f", "csv")[0])
    run("import", folder / "out.csv", "--study", "copy", "--config", folder / "own.ini", "--store", store)
    copy = show(store, "copy")["trials"]
    equal([(t["feasible"], memory(t)) for t in copy], [(t["feasible"], memory(t)) for t in trials])
    text = run("report", "own", "--store", store, "-f", "html")[0]
    assert f"{len(broken)} infeasible (minimize memory; memory &lt;= 250)" in text and "<th>memory" in text
    volumes = [s["hypervolume"] for s in json.loads(run("compare", "own", "copy", "--store", store, "--json")[0])["studies"]]
    assert volumes[0] > 0 and abs(volumes[0] - volumes[1]) < 1e-6 * volumes[0], volumes
    # bounds move with a resumed study, and what was measured is judged again
    run("sweep", config(folder, max="1000", trials=13), "--resume", "own", "--store", store, "-q")
    equal({t["feasible"] for t in show(store, "own")["trials"]}, {True})
    fails("sweep", config(folder, metric="cost", trials=14), "--resume", "own", "--store", store, code=2,
          says=["[sweep.limit.mem] bounds cost, in the study memory"])


def test_outcomes_go_along(folder):
    """With reruns, and into other studies."""
    sweep(folder, trials=4)
    store = folder / "own.db"
    again = ("rerun", "own", "--trial", 0, "--store", store, "--seeds")
    run(*again, 2, "-q")
    # the last value that was reported, also where the last report has none
    write(folder, "train.sh", TRAIN.replace("memory=9999 score=0", "memory=9999 score=0\\nTRAWL memory=77 score=0").replace(" memory=%.9f", " loss=%.9f"))
    out, _ = run(*again, 1)
    assert "1 run is now in the store, as trials 6 to 6" in out, out
    trials = show(store, "own")["trials"]
    equal([(t["state"], memory(t)) for t in trials[4:]], [("done", memory(trials[0]))] * 2 + [("done", 77)])
    # what could not be stored is printed, and no success
    write(folder, "train.sh", "echo TRAWL score=1 step=1 cost=1")
    out, err = run(*again, 1, code=1)
    assert "1 of 1 runs are not in the store: add: no memory: [sweep.limit.mem] needs it in metrics" in err, err
    assert "interval of the mean" in out and "now in the store" not in out, out
    run("export", "own", "--store", store, "-o", folder / "out.jsonl")
    for file, more in ((folder / "out.jsonl", ()), (store, ("--from", "own"))):
        other = folder / ("%d.db" % len(more))
        run("import", file, *more, "--study", "copy", "--store", other)
        equal([(t["state"], t["score"], memory(t)) for t in show(other, "copy")["trials"]], [(t["state"], t["score"], memory(t)) for t in trials])


def test_a_metric_that_nobody_reports(folder):
    sweep(folder, code=2, metric="memry")
    trials = show(folder / "own.db", "own")["trials"]
    equal([t["state"] for t in trials], ["failed"])  # the first one ends the study
    assert trials[0]["reason"].startswith("no memry: [sweep.limit.mem] needs it, and the run reported cost, memory, score"), trials


def test_no_trial_keeps_the_limit(folder):
    sweep(folder, trials=6, max="10")
    study = show(folder / "own.db", "own")
    equal((study["study"]["best"], {t["on_front"] for t in study["trials"]}), (None, {False}))
    fails("export", "own", "--store", folder / "own.db", "--pick", "best", code=1, says=["keeps all limits"])
    assert "no trial keeps all limits yet" in run("show", "own", "--front", "--store", folder / "own.db")[0]
    equal(study["insight"]["recommended"], None)
    assert "6 infeasible" in run("show", "own", "--store", folder / "own.db")[0]
    assert "6 infeasible" in run("report", "own", "--store", folder / "own.db")[0]
    run("sweep", "--resume", "own", "--store", folder / "own.db", "--trials", 8, "-q")  # the models begin to choose
    equal([t["feasible"] for t in show(folder / "own.db", "own")["trials"]], [False] * 8)
    server = asking.Server(folder / "own.db")
    for path, status in (("front", 200), ("insight", 200), ("model/front", 200), ("hypervolume", 200), ("model/slice?param=param.x", 404)):
        answer = wait_for(lambda: [s for s in [server.request("/api/v1/studies/own/" + path)[0]] if s != 202])  # models take a while
        equal((path, answer), (path, [status]))
    server.end()


LIMITED = asking.OUTSIDE.replace("confirm = 0", "confirm = 0\nobjective = time") + "\n[sweep.limit.loss]\nmax = 0.5\n"


def test_clients(folder):
    with asking.served(folder, LIMITED, 4) as (s, store):
        job = s.ask("a")
        equal(job["needs"], ["loss", "time"])
        s.report(job, step=5, metrics={"loss": 0.4, "time": 3})
        s.tell(job, score=1, cost=2)  # what was reported last counts
        job = s.ask("a")
        assert "reason" not in s.tell(job, score=1, cost=2, step=1, metrics={"loss": 0.6, "time": 4})
        job = s.ask("a")
        answer = s.tell(job, score=1, cost=2, step=1, metrics={"loss": 0.6})
        equal((answer["counted"], answer["reason"]), (True, "no time: sweep.objective needs it, and the run reported nothing"))
        trials = show(store, "a")["trials"]
        equal([t["state"] for t in trials[:3]], ["done", "done", "failed"])
        equal([t.get("feasible") for t in trials[:3]], [True, False, None])
        equal(trials[0]["outcomes"], {"loss": 0.4, "time": 3})


def test_own_trainer(folder):
    text = tap.TINY + """
[sweep]
method = sobol
trials = 4
confirm = 0
objective = env_steps
objective_scale = log
[sweep.limit.memory]
max = 1k
[sweep.limit.speed]
metric = steps_per_s
min = 1
[sweep.policy.hidden_size]
min = 4
max = 16
"""
    run("sweep", write(folder, "tiny.ini", text), "--store", folder / "t.db", "--name", "t", "-q")
    trials = show(folder / "t.db", "t")["trials"]
    equal({t["feasible"] for t in trials}, {False})
    for t in trials:
        equal(t["outcomes"]["env_steps"], t["env_steps"])
        assert t["outcomes"]["memory"] > 1000 and t["outcomes"]["steps_per_s"] > 1, t
    run("rerun", "t", "--trial", 0, "--store", folder / "t.db", "--seeds", 1, "-q")
    rerun = show(folder / "t.db", "t")["trials"][len(trials)]
    equal((rerun["state"], rerun["outcomes"]["env_steps"]), ("done", rerun["env_steps"]))
    equal(rerun["outcomes"]["memory"], trials[0]["outcomes"]["memory"])
    assert rerun["outcomes"]["steps_per_s"] > 1, rerun
    sizes = {t["params"]["policy.hidden_size"]: t["outcomes"]["memory"] for t in trials}
    equal(sorted(sizes.values()), [sizes[k] for k in sorted(sizes)])  # more units, more memory
    fails("sweep", folder / "tiny.ini", "--store", folder / "t.db", "--name", "u", "--sweep.limit.memry.max", "3", code=2,
          says=["did you mean 'memory'?"])
