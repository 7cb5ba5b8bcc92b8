"""Trials that other programs left: W&B's table as its page exports it, PufferLib's logs, Optuna's storage.

The cases with Optuna's own files need its package: of `tools/test --servers`, or of the Python that TRAWL_OPTUNA names."""
import json
import sqlite3
import subprocess

import tap
from tap import TINY_SWEEP, equal, fails, run, show, write

AGENTS = TINY_SWEEP.replace("method = sobol", "method = sobol\nmetric = score") + tap.space("""
train.total_agents: min = 16; max = 4096
policy.core: values = none, mingru, lstm
""")
CHOICES = TINY_SWEEP.replace("method = sobol", "method = sobol\nmetric = score") + """
[sweep.policy.core]
values = none, mingru, lstm

[sweep.train.anneal_lr]
values = false, true
"""
# As a table of runs leaves W&B's page: all in quotes, "-" for no note, a name of the config's for each column.
WANDB = '''"Name","State","Notes","User","Tags","Created","Runtime","Sweep","train.learning_rate","train.gamma","policy.hidden_size","policy.core","train.anneal_lr","eval/return","score"
"swept-sweep-3","finished","-","me","","2026-01-03T10:00:00.000Z","61","q1w2","0.02","0.95","16","mingru","true","7.5","0.75"
"odd-sweep-2","finished","-","me","","2026-01-03T09:00:00.000Z","59.5","q1w2","1e-2","0.9","8","lstm","False","NaN","NaN"
"dark-sweep-1","crashed","-","me","","2026-01-03T08:00:00.000Z","9","q1w2","0.03","0.99","4","none","true","","0.5"
"new-sweep-0","running","-","me","","2026-01-03T07:00:00.000Z","5","q1w2","0.03","0.99","4","none","true","0.1","0.1"
'''


def outcome(store, study):
    return [(t["state"], t["score"], t["cost_s"], t["env_steps"]) for t in show(store, study)["trials"]]


def test_the_table_of_wandb(folder):
    config, store = write(folder, "sweep.ini", CHOICES), folder / "s.db"
    table = write(folder, "wandb_export.csv", WANDB)
    out = run("import", table, "--study", "w", "--config", config, "--store", store, "--json")[0]
    equal(json.loads(out), {"study": "w", "added": 3, "there_before": 0, "repeated": 0, "left_out": 1, "other_games": 0})
    equal(outcome(store, "w"), [("done", 0.75, 61, 0), ("failed", None, 59.5, 0), ("failed", 0.5, 9, 0)])
    trials = show(store, "w")["trials"]
    equal(trials[0]["params"], {"train.learning_rate": 0.02, "train.gamma": 0.95, "policy.hidden_size": 16,
                                "policy.core": "mingru", "train.anneal_lr": "true"})
    equal((trials[1]["params"]["train.anneal_lr"], trials[1]["reason"]), ("false", "its score is not a finite number, or too large"))
    run("import", table, "--study", "other", "--config", config, "--store", store, "--score", "eval/return")
    equal(outcome(store, "other")[0], ("done", 7.5, 61, 0))
    fails("import", table, "--study", "x", "--config", config, "--store", store, "--score", "eval/retrun", code=2,
          says=("trial 1 of the file", "no column 'eval/retrun'"))
    fails("import", write(folder, "w.csv", WANDB.replace('"mingru"', '"transformer"')), "--study", "x", "--config", config,
          "--store", store, code=2, says=("trial 1 of the file", "policy.core", "none, mingru, lstm"))


def log(folder, name, metrics, **changes):
    """A log as PufferLib 4.0 leaves it: the whole config and thinned curves."""
    options = {"package": "ocean", "env_name": "squared", "seed": 73, "wandb": False, "tag": None,
               "vec": {"total_agents": 512, "num_buffers": 2}, "env": {"size": 11},
               "policy": {"hidden_size": 16, "num_layers": 1}, "torch": {"network": "MinGRU"},
               "train": {"learning_rate": 0.015, "gamma": 0.95, "seed": 42, "total_timesteps": 1e6, "use_rnn": True},
               "sweep": {"metric": "score", "train": {"learning_rate": {"min": 1e-5, "max": 0.1}}}}
    options.update(changes)
    options["metrics"] = metrics
    folder.mkdir(exist_ok=True)
    return write(folder, name, json.dumps(options))  # Python's: with NaN


CURVES = {"agent_steps": [2e5, 5e5, 999424], "uptime": [0.5, 1.2, 2.25], "env/score": [0.1, 0.6, 0.875],
          "env/perf": [0.1, 0.6, 0.8], "SPS": [4e5, 4e5, 4e5], "loss/policy": [0.1, float("nan"), 0.1]}


def test_failed_rows_have_a_reason(folder):
    """The file's own, or else the word by which the file calls them."""
    head = "State,score,cost,train.learning_rate,train.gamma,policy.hidden_size,reason\n"
    rows = ("crashed,,2,0.01,0.9,8,the driver hung\n", "crashed,,2,0.02,0.9,8,\n", "killed,,,0.03,0.9,8,\n", "pruned,,1,0.04,0.9,8,\n", "finished,1,2,0.05,0.9,8,\n")
    args = ("--study", "w", "--config", write(folder, "sweep.ini", tap.TINY_SWEEP), "--store", folder / "s.db")
    run("import", write(folder, "w.csv", head + "".join(rows)), *args)
    without = " in the file that was imported, without a reason"
    equal([(t["state"], t["reason"]) for t in show(folder / "s.db", "w")["trials"]],
          [("failed", "the driver hung"), ("failed", "crashed" + without), ("failed", "killed" + without), ("stopped", "pruned" + without), ("done", None)])
    assert "5 were there before" in run("import", folder / "w.csv", *args)[0]


def test_what_is_there_is_counted_apart_from_what_repeats(folder):
    """A study's own trials too, however they come back; a second run of one config and seed is another trial, by its cost."""
    config, store, table = write(folder, "s.ini", tap.TINY_SWEEP), folder / "s.db", folder / "a.csv"
    run("sweep", config, "--store", store, "--name", "a", "--trials", 3, "-q")
    counts = lambda path, study, *more: [json.loads(run("import", path, "--study", study, "--store", store, "--json", *more)[0])[key]
                                         for key in ("added", "there_before", "repeated")]
    for name in ("a.csv", "a.jsonl"):
        run("export", "a", "--store", store, "-o", folder / name)
        equal(counts(folder / name, "a"), [0, 3, 0])
    head, *rows = table.read_text().splitlines(keepends=True)
    again = rows[0].split(",")
    again[head.split(",").index("cost_s")] = "77"
    more = write(folder, "more.csv", head + rows[0] + ",".join(again) + rows[0])
    out = run("import", more, "--study", "a", "--store", store)[0]
    assert "1 trial of" in out and "2 were there before" in out, out
    out = run("import", more, "--study", "b", "--config", config, "--store", store)[0]
    assert "2 trials of" in out and "1 repeats another row of the file" in out, out
    equal(len(show(store, "a")["trials"]), 4)


def test_a_folder_of_pufferlib_logs(folder):
    config, store, logs = write(folder, "sweep.ini", AGENTS), folder / "s.db", folder / "logs"
    log(logs, "b.json", CURVES)
    log(logs, "c.json", dict(CURVES, **{"env/score": [0.1, 0.2, float("nan")]}), vec={"num_envs": 4},
        env={"num_envs": 32}, torch={"network": "LSTM"})
    log(logs, "d.json", {}, status="pending")
    write(logs, "notes.txt", "no log")
    old = {"learning_rate": 0.02, "gamma": 0.9, "bptt_horizon": 64, "adam_beta1": 0.95}
    log(logs, "a.json", CURVES, train=old, rnn_name="Recurrent", torch={}, rnn={"hidden_size": 8}, policy={})
    args = ("--config", config, "--store", store)
    out = run("import", logs, "--study", "p", *args, "--json")[0]
    equal(json.loads(out), {"study": "p", "added": 3, "there_before": 0, "repeated": 0, "left_out": 1, "other_games": 0})
    equal(outcome(store, "p"), [("done", 0.875, 2.25, 999424), ("done", 0.875, 2.25, 999424), ("failed", None, 2.25, 999424)])
    both = {"train.gamma": 0.95, "policy.hidden_size": 16, "train.learning_rate": 0.015}
    equal([t["params"] for t in show(store, "p")["trials"]],
          [{"train.learning_rate": 0.02, "train.gamma": 0.9, "policy.hidden_size": 8, "train.total_agents": 512,
            "policy.core": "lstm"}, {**both, "train.total_agents": 512, "policy.core": "mingru"},
           {**both, "train.total_agents": 128, "policy.core": "lstm"}])
    run("import", logs / "b.json", "--study", "one", *args, "--score", "env/perf", "--cost", "agent_steps")
    equal(outcome(store, "one"), [("done", 0.8, 999424, 999424)])
    fails("import", folder, "--study", "q", *args, code=2, says="no file that ends in .json")
    write(logs, "e.json", '{"some": "thing"}')
    fails("import", logs, "--study", "q", *args, code=1, says=("e.json", "not a log of PufferLib's"))
    write(logs, "e.json", '{"metrics": {"uptime": [1')
    fails("import", logs, "--study", "q", *args, code=1, says=("e.json", "JSON"))
    fails("import", folder / "none", "--study", "q", *args, code=1, says="none")


def test_rows_of_another_game(folder):
    config, store, logs = write(folder, "sweep.ini", AGENTS), folder / "s.db", folder / "logs"
    args = ("--config", config, "--store", store)
    log(logs, "a.json", CURVES, env_name="puffer_squared")
    log(logs, "b.json", CURVES, env_name="breakout")
    log(logs, "c.json", dict(CURVES, uptime=[1, 2, 3]), env_name="puffer_cartpole squared")
    out = run("import", logs, "--study", "p", *args, "--json")[0]
    equal(json.loads(out), {"study": "p", "added": 2, "there_before": 0, "repeated": 0, "left_out": 1, "other_games": 1})
    table = write(folder, "t.csv", "env,score,cost,%s\nsquared,1,2,0.01,0.9,8\ncartpole,2,2,0.01,0.9,8\n,3,2,0.01,0.9,8\none,4,2,0.01,0.9,8\n"
                  % "learning_rate,gamma,hidden_size")
    write(folder, "one.ini", TINY_SWEEP)
    out = run("import", table, "--study", "one", "--config", folder / "one.ini", "--store", store)[0]
    assert out.startswith("2 trials of") and "; 2 of another game were left out" in out, out
    equal([t["score"] for t in show(store, "one")["trials"]], [1, 3])
    # a study of several games takes those
    write(folder, "two.ini", TINY_SWEEP.replace("name = squared\nn = 1\n", "").replace("method = sobol", "method = sobol\nenvs = squared, cartpole\nmetric = perf"))
    write(folder, "t.csv", table.read_text().replace(",3,2,0.01,0.9,8\n", "puffer_cartpole,3,2,0.01,0.9,8\n"))
    out = run("import", table, "--study", "two", "--config", folder / "two.ini", "--store", store)[0]
    assert "; 1 of another game was left out" in out, out
    equal([(t["env"], t["score"]) for t in show(store, "two")["trials"]], [("squared", 1), ("cartpole", 2), ("cartpole", 3)])


def exported(folder):
    """A study's storage as Trawl writes it."""
    store, made = folder / "s.db", folder / "optuna.db"
    run("sweep", write(folder, "choices.ini", CHOICES.replace("metric = score", "")), "--store", store, "--name", "a", "--trials", 8,
        "--seed", 3, "-q")
    run("try", "a", "--train.gamma", 0.9, "--store", store)
    run("drop", "a", 2, "--reason", "odd", "--store", store)
    run("export", "a", "--store", store, "--format", "optuna", "-o", made)
    return store, made


def test_a_storage_comes_back(folder):
    store, made = exported(folder)
    args = ("--config", folder / "choices.ini", "--store", folder / "new.db")
    out = run("import", made, "--study", "b", *args, "--json")[0]
    equal(json.loads(out), {"study": "b", "added": 8, "there_before": 0, "repeated": 0, "left_out": 1, "other_games": 0})
    keys = ("params", "score", "seed", "dropped", "state", "on_front")
    before = [{k: t[k] for k in keys} for t in show(store, "a")["trials"][:8]]
    before[2].update(score=None, state="failed")  # an Optuna trial that fails has no values
    equal([{k: t[k] for k in keys} for t in show(folder / "new.db", "b")["trials"]], before)
    # a second study in the file, and another direction
    with sqlite3.connect(made) as db:
        db.execute("INSERT INTO studies VALUES (2, 'second')")
        db.execute("INSERT INTO study_directions VALUES (3, 'MINIMIZE', 2, 0)")
        db.execute("INSERT INTO trials VALUES (100, 0, 2, 'COMPLETE', '2026-01-01 00:00:00', '2026-01-01 00:00:02.500000')")
        db.execute("INSERT INTO trial_values VALUES (100, 100, 0, 0.25, 'FINITE')")
        for i, (name, value) in enumerate((("train.gamma", 0.9), ("train.learning_rate", 0.01), ("hidden_size", 8),
                                           ("policy.core", 1), ("train.anneal_lr", 0))):
            words = {"policy.core": ["lstm", "mingru", "none"], "train.anneal_lr": [False, True]}.get(name)
            kind = {"name": "CategoricalDistribution", "attributes": {"choices": words}} if words else \
                {"name": "UniformDistribution", "attributes": {"low": 0, "high": 1}}
            db.execute("INSERT INTO trial_params VALUES (?, 100, ?, ?, ?)", (1000 + i, name, value, json.dumps(kind)))
    fails("import", made, "--study", "c", *args, code=2, says=("2 studies", "--from NAME", "a, second"))
    fails("import", made, "--study", "c", *args, "--from", "third", code=1, says=("'third'", "a, second"))
    fails("import", made, "--study", "b", *args, "--from", "second", code=2, says=("to minimize", "sweep.goal"))
    write(folder, "min.ini", CHOICES.replace("metric = score", "metric = score\ngoal = minimize"))
    run("import", made, "--study", "c", "--from", "second", "--config", folder / "min.ini", "--store", folder / "new.db")
    equal(outcome(folder / "new.db", "c"), [("done", 0.25, 2.5, 0)])
    equal(show(folder / "new.db", "c")["trials"][0]["params"]["policy.core"], "mingru")
    fails("import", made, "--study", "d", "--store", folder / "new.db", "--from", "second", code=2, says="--config FILE.ini")


MAKE_OPTUNA = """
import sys, optuna
optuna.logging.set_verbosity(optuna.logging.ERROR)
study = optuna.create_study(study_name='theirs', storage='sqlite:///' + sys.argv[1], directions=['maximize', 'minimize'],
                            sampler=optuna.samplers.RandomSampler(seed=1))
def objective(trial):
    lr = trial.suggest_float('train.learning_rate', 0.001, 0.1, log=True)
    trial.suggest_float('train.gamma', 0.8, 0.99)
    width = trial.suggest_int('policy.hidden_size', 4, 16)
    core = trial.suggest_categorical('policy.core', ['none', 'mingru', 'lstm'])
    trial.suggest_categorical('train.anneal_lr', [False, True])
    if trial.number == 3:
        raise ValueError('broken')
    return width - lr, float(width)
study.optimize(objective, n_trials=12, catch=(ValueError,))
study.ask()
import json
print(json.dumps([[t.state.name, t.params, t.values] for t in study.trials]))
"""


def test_a_storage_that_optuna_made(folder):
    python = tap.package("optuna", "TRAWL_OPTUNA")
    made = folder / "theirs.db"
    done = subprocess.run([python, "-c", MAKE_OPTUNA, made], capture_output=True, text=True, timeout=tap.PATIENCE_S)
    assert done.returncode == 0, done.stderr
    trials = [t for t in json.loads(done.stdout) if t[0] != "RUNNING"]
    run("import", made, "--study", "t", "--config", write(folder, "c.ini", CHOICES), "--store", folder / "s.db")
    got = show(folder / "s.db", "t")["trials"]
    equal(len(got), 12)
    for t, (state, params, values) in zip(got, trials):
        equal(t["state"], {"COMPLETE": "done", "FAIL": "failed"}[state])
        want = dict(params, **{"train.anneal_lr": str(params["train.anneal_lr"]).lower()})
        assert all(abs(t["params"][k] - v) < 1e-9 if isinstance(v, float) else t["params"][k] == v for k, v in want.items()), (t, want)
        equal((t["score"], t["cost_s"]), tuple(values) if values else (None, t["cost_s"]))
