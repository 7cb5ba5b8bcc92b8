"""stop, pause, continue, add and priority: the store alone, without a controller."""
import json
import sys

import tap
from tap import TINY_SWEEP, equal, fails, run, write


def make(folder, *args):
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 2, "-q", *args)
    return store


def study(store):
    return json.loads(run("ls", "--store", store, "--json")[0])[0]


def test_a_study_without_controller_is_changed_in_the_store(folder):
    store = make(folder)
    out, _ = run("priority", "a", 7, "--store", store)
    assert "has priority 7" in out and "no controller runs it now" in out, out
    equal(study(store)["priority"], 7)
    out, _ = run("add", "a", "--trials", 3, "--store", store)
    assert "3 trials more, 5 in all" in out, out
    equal((study(store)["trials_max"], study(store)["state"]), (5, "running"))
    out, _ = run("pause", "a", "--store", store)
    equal(study(store)["state"], "paused")
    fails("pause", "a", "--store", store, code=2, says="paused already")
    run("continue", "a", "--store", store)
    equal(study(store)["state"], "running")
    fails("continue", "a", "--store", store, code=2, says="neither paused nor ended")
    answer = json.loads(run("stop", "a", "--store", store, "--json")[0])
    equal((answer["command"], answer["study"], answer["done_by"]), ("stop", "a", "store"))
    equal((study(store)["state"], study(store)["end_rule"]), ("ended", "user"))
    fails("stop", "a", "--store", store, code=2, says="has ended already")
    out, _ = run("show", "a", "--store", store)
    assert "state ended (user): stopped by `trawl stop`, priority 7" in out, out


def test_bad_input(folder):
    store = make(folder)
    fails("pause", "b", "--store", store, code=1, says=("no study 'b'", "It has: a"))
    fails("stop", "--store", store, code=2, says="study's name")
    fails("add", "a", "--store", store, code=2, says="--trials N or --budget TIME")
    fails("add", "a", "--budget", "1h", "--store", store, code=2, says="no budget to add to")
    fails("add", "a", "--budget", "x", "--store", store, code=2, says="a time is needed")
    fails("add", "a", "--trials", 10**6, "--store", store, code=2, says="more than")
    for bad in ("0", "101", "x", "1.5"):
        fails("priority", "a", bad, "--store", store, code=2, says="1 to 100")
    fails("priority", "a", "--store", store, code=2)
    fails("stop", "a", "--store", folder / "none.db", code=1, says="no such store")
    assert not (folder / "none.db").exists()
    for command in ("stop", "pause", "continue", "add", "priority"):
        assert "examples:" in run(command, "--help")[0]


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
