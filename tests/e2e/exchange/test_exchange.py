"""Trials that leave a store and come into one: CSV, JSON lines, another store, a tracker's table, a storage of Optuna's.

The case with Optuna needs its package: of `tools/test --servers`, or of the Python that TRAWL_OPTUNA names."""
import csv
import io
import json
import sqlite3
import subprocess
import urllib.request

import tap
from tap import TINY_SWEEP, equal, fails, run, show, write

COSTS = TINY_SWEEP + "\n[sweep.train.total_timesteps]\nmin = 1024\nmax = 8192\n"  # a front has more than one trial
ASK_OPTUNA = """
import json, sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.load_study(study_name=sys.argv[2], storage='sqlite:///' + sys.argv[1])
print(json.dumps({'names': study.metric_names, 'directions': [d.name for d in study.directions],
    'front': sorted(t.number for t in study.best_trials), 'values': [t.values for t in study.trials],
    'states': [t.state.name for t in study.trials], 'params': [t.params for t in study.trials],
    'dropped': [t.user_attrs.get('dropped') for t in study.trials]}))
study.tell(study.ask(), [1.0, 2.0])  # Optuna can go on with it
"""


def sweep(folder, trials=12):
    """A study with a trial that is dropped and one in the queue."""
    config = write(folder, "sweep.ini", COSTS)
    store = folder / "s.db"
    run("sweep", config, "--store", store, "--name", "a", "--trials", trials, "--seed", 3, "-q")
    run("try", "a", "--train.gamma", 0.9, "--store", store)
    run("drop", "a", 4, "--reason", "=it's \"odd\", they say", "--store", store)
    return store


def facts(store, name, n):
    """What models and front make of the first trials."""
    trials = show(store, name)["trials"]
    equal(len(trials), n)
    keys = ("state", "params", "score", "cost_s", "env_steps", "seed", "score_se", "eval_episodes", "dropped", "on_front",
            "score_mean", "score_lo", "score_hi", "n_seeds")
    return [{k: t[k] for k in keys} for t in trials]


def test_a_study_comes_back_from_csv_with_its_front(folder):
    store, new = sweep(folder), folder / "new.db"
    before = facts(store, "a", 13)[:12]
    assert 0 < sum(t["on_front"] for t in before) < 12, before
    out, err = run("export", "a", "--store", store, "-o", folder / "a.csv")
    assert out == "" and "wrote 13 trials" in err, err
    rows = list(csv.DictReader(io.StringIO((folder / "a.csv").read_text())))
    equal([r["number"] for r in rows], [str(i) for i in range(13)])
    done = ("import", folder / "a.csv", "--study", "b", "--config", folder / "sweep.ini", "--store", new, "--json")
    equal(json.loads(run(*done)[0]), {"study": "b", "added": 12, "there_before": 0, "repeated": 0, "left_out": 1, "other_games": 0})
    equal(facts(new, "b", 12), before)
    equal(json.loads(run(*done)[0]), {"study": "b", "added": 0, "there_before": 12, "repeated": 0, "left_out": 1, "other_games": 0})
    run("check", new)
    assert "imported by `trawl import`" in run("show", "b", "--store", new)[0]
    run("export", "b", "--store", new, "-o", folder / "b.csv")  # and again
    run("import", folder / "b.csv", "--study", "c", "--config", folder / "sweep.ini", "--store", new)
    equal(facts(new, "c", 12), before)


def test_json_lines_and_stores_describe_their_study(folder):
    store, new = sweep(folder), folder / "new.db"
    before = facts(store, "a", 13)[:12]
    lines, _ = run("export", "a", "--store", store, "--format", "jsonl")
    write(folder, "a.jsonl", lines)
    equal([list(json.loads(line))[:1] for line in lines.splitlines()][:2], [["study"], ["number"]])
    run("import", folder / "a.jsonl", "--study", "lines", "--store", new)
    equal(facts(new, "lines", 12), before)
    run("import", store, "--study", "stored", "--store", new)
    equal(facts(new, "stored", 12), before)
    run("continue", "stored", "--store", new)
    run("sweep", "--resume", "stored", "--store", new, "--trials", 14, "-q")
    equal([t["state"] for t in show(new, "stored")["trials"]], ["done"] * 14)
    fails("import", new, "--study", "x", "--store", store, code=2, says=("has 2 studies", "--from NAME"))
    run("import", new, "--from", "lines", "--study", "x", "--store", store)
    equal(facts(store, "x", 12), before)


def test_the_table_of_a_tracker(folder):
    config, store = write(folder, "sweep.ini", TINY_SWEEP), folder / "s.db"
    head = '"Name","State","Runtime","train/learning-rate","gamma","policy.hidden_size","best"\n'
    table = head + '"one","finished","12.5","0.01","0.9","8","0.75"\n"two","crashed","3","0.02","0.95","4",""\n' \
        '"three","running","1","0.03","0.95","16",""\n'
    args = ("--study", "w", "--config", config, "--store", store)
    run("import", write(folder, "w.csv", table), *args, "--score", "best", "--cost", "Runtime")
    equal([(t["state"], t["score"], t["cost_s"], t["params"]["train.learning_rate"]) for t in show(store, "w")["trials"]],
          [("done", 0.75, 12.5, 0.01), ("failed", None, 3, 0.02)])


def test_a_file_that_is_wrong_adds_nothing(folder):
    config, store = write(folder, "sweep.ini", TINY_SWEEP), folder / "s.db"
    head = "state,score,cost,train.learning_rate,train.gamma,policy.hidden_size\n"
    good = head + "done,1,2,0.01,0.9,8\n"
    args = ("--study", "w", "--config", config, "--store", store)
    for text, words in ((head + "done,1,2,0.01,0.9\n", "fewer fields than the header's 6"),
                        (good + "done,high,2,0.01,0.9,8\n", ("trial 2", "score is 'high'")),
                        (good + "done,1,2,0.01,low,8\n", ("trial 2", "train.gamma is 'low'")),
                        (good + "done,,2,0.01,0.9,8\n", ("trial 2", "needs its score")),
                        (good + "done,1,2,0.2,0.9,8\n", ("trial 2", "searched from 0.001 to 0.1; 0.2 is not a number")),
                        (good + "odd,1,2,0.01,0.9,8\n", "state 'odd'"),
                        ("score,cost\n1,2\n", "no value of train.learning_rate"),
                        ('a,b\n"1,2\n', "a quote that does not end"), ("a,a\n1,2\n", "there twice"),
                        ('{"number": 1}\n[2]\n', "line 2"), ('{"number": \n', "line 1"),
                        ("", "holds no trial"), (head, "holds no trial"), ("[1, 2]", "holds no trial"), (good + "\0", "NUL byte")):
        done = subprocess.run([tap.TRAWL, "import", write(folder, "w.csv", text), *map(str, args)], capture_output=True, text=True)
        err = done.stderr
        assert done.returncode in (1, 2), err
        for word in [words] if isinstance(words, str) else words:
            assert word in err and "w.csv" in err, (word, err)
        assert not store.exists() or show(store, "w")["trials"] == [], text
    fails("import", folder / "none.csv", *args, code=1, says="none.csv")
    fails("import", write(folder, "w.csv", good), "--store", store, code=2, says="--study NAME")
    fails("import", folder / "w.csv", "--study", "other", "--store", store, code=2, says="--config FILE.ini")
    fails("import", folder / "w.csv", "--study", "no/name", "--config", config, "--store", store, code=2, says="no/name")
    assert "1 trial of" in run("import", folder / "w.csv", *args)[0]
    fails("import", store, "--study", "w", "--store", folder / "." / "s.db", code=2, says="holds the study w itself")
    equal(len(show(store, "w")["trials"]), 1)
    fails("export", "w", "--store", store, "--format", "csv", "--pick", "best", code=2, says="--pick is for one trial")
    fails("export", "w", "--store", store, "--format", "optuna", code=2, says="-o")
    fails("export", "w", "--store", store, "--format", "xls", code=2, says="csv, jsonl, optuna and curves")
    out = write(folder, "there.db", "x")
    fails("export", "w", "--store", store, "--format", "optuna", "-o", out, code=1, says="already exists")
    equal(out.read_text(), "x")


def test_curves_of_a_training_as_files(folder):
    config, logs = write(folder, "t.ini", tap.TINY + "log_interval_s = 0\nanneal_lr = false\n"), folder / "logs"
    run("train", config, "-q", "--log-dir", logs, "-o", folder / "t.ckpt", "--train.total_timesteps", 2048)
    rows = list(csv.DictReader(io.StringIO((logs / "metrics.csv").read_text())))
    lines = [json.loads(line) for line in (logs / "metrics.jsonl").read_text().splitlines()]
    assert len(rows) > 1, rows
    equal([{k: float(v) for k, v in row.items() if v} for row in rows], lines)
    steps = [line["env_steps"] for line in lines]
    equal((steps, steps[-1]), (sorted(set(steps)), 2048))
    run("train", "--resume", folder / "t.ckpt", "-q", "--log-dir", logs, "--train.total_timesteps", 4096)
    more = list(csv.DictReader(io.StringIO((logs / "metrics.csv").read_text())))
    equal((more[:len(rows)], float(more[-1]["env_steps"])), (rows, 4096))
    fails("train", config, "-q", "--log-dir", logs, code=1, says="already exists, from another run")
    fails("train", config, "-q", "--log-dir", config, code=1, says="t.ini")


def single_front(trials):
    """The trials that no other beats in cost and score, as numbers."""
    done = [t for t in trials if t["state"] == "done" and t["dropped"] is None]
    return [t["number"] for t in done if not any(
        o["score"] >= t["score"] and o["cost_s"] <= t["cost_s"] and (o["score"], o["cost_s"]) != (t["score"], t["cost_s"])
        for o in done)]


def test_optuna_storage_has_every_trial(folder):
    store, made = sweep(folder), folder / "optuna.db"
    run("export", "a", "--store", store, "--format", "optuna", "-o", made)
    trials = show(store, "a")["trials"]
    with sqlite3.connect(made) as db:
        equal([row for row in db.execute("SELECT number, state FROM trials ORDER BY number")],
              [(t["number"], "FAIL" if t["dropped"] else "WAITING" if t["state"] == "queued" else "COMPLETE") for t in trials])
        equal(list(db.execute("SELECT value FROM trial_values WHERE objective = 0 ORDER BY trial_id")),
              [(t["score"],) for t in trials if t["state"] == "done" and not t["dropped"]])
        equal(db.execute("SELECT schema_version FROM version_info").fetchone(), (12,))


def test_an_optuna_storage_has_the_very_numbers(folder):
    """SQLite 3.40 reads each of these decimals as a double next to it."""
    config, store, made = write(folder, "sweep.ini", TINY_SWEEP), folder / "s.db", folder / "optuna.db"
    values = [(0.002072864, 0.001265409), (0.001424136, 0.006472987123367207), (0.00683863250115781, 0.002072864)]
    table = "score,cost,train.learning_rate,train.gamma,policy.hidden_size\n" + "".join(
        "%r,%r,0.006472987123367207,0.9,8\n" % pair for pair in values)
    run("import", write(folder, "w.csv", table), "--study", "w", "--config", config, "--store", store)
    run("export", "w", "--store", store, "--format", "optuna", "-o", made)
    with sqlite3.connect(made) as db:
        equal(list(db.execute("SELECT value FROM trial_values ORDER BY trial_id, objective")), [(x,) for pair in values for x in pair])
        equal(list(db.execute("SELECT param_value FROM trial_params WHERE param_name = 'train.learning_rate'")),
              [(0.006472987123367207,)] * 3)


def test_optuna_itself_sees_the_same_front(folder):
    python = tap.package("optuna", "TRAWL_OPTUNA")
    store, made = sweep(folder), folder / "optuna.db"
    run("export", "a", "--store", store, "--format", "optuna", "-o", made)
    trials = show(store, "a")["trials"]
    done = subprocess.run([python, "-c", ASK_OPTUNA, made, "a"], capture_output=True, text=True, timeout=tap.PATIENCE_S)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    equal((seen["names"], seen["directions"]), (["perf", "cost (s)"], ["MAXIMIZE", "MINIMIZE"]))
    equal(seen["front"], single_front(trials))
    equal(seen["params"], [t["params"] for t in trials])
    equal(seen["values"], [[t["score"], t["cost_s"]] if t["state"] == "done" and not t["dropped"] else None for t in trials])
    equal(seen["dropped"], [t["dropped"] for t in trials])


def get_json(url):
    with urllib.request.urlopen(url, timeout=tap.PATIENCE_S) as answer:
        return json.load(answer)


def test_optuna_dashboard_shows_the_same_front(folder):
    """The program as a person starts it, on a file that `trawl export` made; its page reads these two addresses."""
    program = tap.package("optuna-dashboard", "TRAWL_DASHBOARD", "optuna-dashboard")
    store, made = sweep(folder), folder / "optuna.db"
    run("export", "a", "--store", store, "--format", "optuna", "-o", made)
    port = tap.free_port()
    process = subprocess.Popen([program, "sqlite:///%s" % made, "--port", str(port), "--server", "wsgiref"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tap.started.append(process)
    url = "http://127.0.0.1:%d/api/studies" % port

    def is_up():
        try:
            return bool(get_json(url))
        except OSError:
            return False
    tap.wait_for(is_up, process)
    studies = get_json(url)["study_summaries"]
    equal([(s["study_name"], s["directions"]) for s in studies], [("a", ["maximize", "minimize"])])
    page = get_json("%s/%d" % (url, studies[0]["study_id"]))
    process.kill()
    process.wait()
    trials = show(store, "a")["trials"]
    equal(page["objective_names"], ["perf", "cost (s)"])
    equal(sorted(t["number"] for t in page["best_trials"]), single_front(trials))
    equal([t.get("values") for t in page["trials"]],
          [[t["score"], t["cost_s"]] if t["state"] == "done" and not t["dropped"] else None for t in trials])
