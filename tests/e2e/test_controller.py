"""The controller's data: other studies and their spaces, and the kind of cost in the config."""
import os
import re
import time

from tap import TINY, TINY_SWEEP, equal, fails, run, show, space, write

PARETO = TINY_SWEEP.replace("method = sobol", "method = pareto")
NARROW = TINY + """
[sweep.train.learning_rate]
min = 0.005
max = 0.2

[sweep.train.clip_coef]

[sweep.policy.hidden_size]
min = 4
max = 16
"""  # wider, one more parameter; gamma is fixed


def sweep(folder, name, config, *more, store="s.db"):
    return run("sweep", write(folder, name + ".ini", config), "--store", folder / store, "--name", name, *more)


def test_from_another_study_with_another_space(folder):
    sweep(folder, "old", TINY_SWEEP, "--trials", 24, "-q")
    _, err = sweep(folder, "new", NARROW, "--from", "old", "--trials", 3, "--sweep.n_init", 4)
    assert "finished trials of old teach this study" in err, err
    origins = [t["origin"] for t in show(folder / "s.db", "new")["trials"]]
    assert origins[0] == "default" and "ehvi" in origins, origins  # before the design of four ends: old was confirmed
    # also under another name and from the trash; when it is removed, the study continues without it
    for n, steps, text in ((4, (), "finished trials of old teach"), (5, (("rename", "old", "first"), ("rm", "first")), "finished trials of first~1 teach"),
                           (6, (("rm", "first", "--undo"),), "finished trials of first teach"),
                           (7, (("rm", "first"), ("gc",)), "--from first: that study has been removed from the store")):
        for step in steps:
            run(*step, "--store", folder / "s.db")
        _, err = run("sweep", "--resume", "new", "--store", folder / "s.db", "--trials", n)
        assert text in err, (n, err)
        equal(len(show(folder / "s.db", "new")["trials"]), n)


def test_from_another_game(folder):
    """Its scores say nothing here: configs of its front are tried when runs of this study rank configs alike."""
    write(folder, "train.sh", """x=$(echo "$*" | sed 's/.*--x \\([^ ]*\\).*/\\1/')
awk -v x=$x -v g=$TRAWL_ENV 'BEGIN { printf "TRAWL score=%.6f cost=%.6f\\n", (g ~ /old/ ? 100 : 1) * x * (2 - x), 1 + x }'
""")
    config = "[sweep]\ncommand = sh train.sh {argv}\nmethod = pareto\ndevices = cpu\nconfirm = 0\nenvs = %s\n" + space("x: type = float; min = 0; max = 1")
    sweep(folder, "old", config % "old1, old2", "--trials", 32, "-q")
    _, err = sweep(folder, "new", config % "a, b", "--from", "old", "--trials", 14, "--sweep.n_init", 7, "--sweep.seed", 2)
    assert "16 of 32 finished trials of old, of another game, give configs to try once" in err, err
    first = [t for t in show(folder / "s.db", "new")["trials"] if t["origin"] != "env"]
    front = [t["params"] for t in show(folder / "s.db", "old")["trials"]]  # a higher score costs more there: all of them
    equal([(t["origin"] == "from", t["params"] in front) for t in first[1:]], [(False, False)] * 3 + [(True, True)] * 3)
    _, err = run("sweep", "--resume", "new", "--store", folder / "s.db", "--trials", 16)
    assert "of another game, give configs to try once" in err, err
    run("replay", "new", "--store", folder / "s.db")  # each proposal again, to the byte


def test_from_what_cannot_teach(folder):
    sweep(folder, "old", TINY_SWEEP, "--trials", 1, "-q")
    config, store = write(folder, "a.ini", TINY_SWEEP), folder / "s.db"
    fails("sweep", config, "--store", store, "--name", "a", "--from", "nothing", code=1, says="nothing")
    fails("sweep", config, "--store", store, "--name", "a", "--from", "old", "--sweep.metric", "score", code=2, says="sweep.metric")
    fails("sweep", config, "--store", folder / "none.db", "--name", "a", "--from", "old", code=1, says="no such store")
    fails("sweep", "--resume", "old", "--store", store, "--from", "old", code=2, says="--from")
    equal(len(show(store, "old")["trials"]), 1)


def test_cost_in_env_steps(folder):
    sweep(folder, "steps", PARETO, "--trials", 12, "-q", "--sweep.cost", "env_steps")
    study = show(folder / "s.db", "steps")
    equal({t["env_steps"] for t in study["trials"]}, {4096})
    for param in study["insight"]["params"]:
        equal(param["cost"]["effect"], 0)  # all trials take the same steps, whatever the clock says
    out, _ = run("show", "steps", "--store", folder / "s.db")
    assert re.search(r"at a cost of 4\S* steps", out), out
    equal(len(re.findall(r"^ *\d+[ *] done .* 4.096k steps ", out, re.M)), 12)  # and of every trial


def test_times_are_not_of_the_place(folder):
    run("sweep", write(folder, "a.ini", TINY_SWEEP), "--store", folder / "s.db", "--name", "a", "--trials", 2, "-q",
        env={**os.environ, "TZ": "AAA-5:45"})
    store = folder / "s.db"
    for args in (["ls"], ["show", "a"], ["show", "a", "--timeline"], ["show", "a", "--json"]):
        here, there = (run(*args, "--store", store, env={**os.environ, "TZ": tz})[0] for tz in ("UTC0", "BBB+9"))
        equal(there, here)
    assert abs(show(store, "a")["trials"][0]["created_ms"] / 1e3 - time.time()) < 600  # UTC in the store


def test_show_says_what_was_learned(folder):
    sweep(folder, "a", PARETO, "--trials", 12, "-q")
    shown = show(folder / "s.db", "a")
    insight = shown["insight"]
    assert 0 <= insight["recommended"] < 12 and len(insight["front"]) >= 1, insight
    for param in insight["params"]:
        assert 0 <= param["score"]["effect"] <= 1 and 0 <= param["cost"]["effect"] <= 1, param
    out, _ = run("show", "a", "--store", folder / "s.db")
    assert "Take trial" in out and "share of the variance" in out, out
    begun = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(shown["study"]["created_ms"] / 1000))
    assert f" since {begun}." in out, (begun, out)  # not 12 hours ago, when there was no study
    sweep(folder, "b", PARETO, "--trials", 1, "-q")
    equal(show(folder / "s.db", "b")["insight"]["note"], "too few finished trials for an estimate")
