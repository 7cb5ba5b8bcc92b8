#!/usr/bin/env python3
"""test_seeds.py - studies that train each configuration under several seeds (sweep.seeds): which runs there are, what is shown of
them, and that kills, other clients and single commands change nothing of it."""
import collections
import csv
import io
import json
import statistics
import sys

import asking
import tap
from tap import equal, run, show, start, trials_now, wait_for, write

# The score rises with the cost n and falls with x; seeds scatter it by less than that.
PROGRAM = r"""
while [ $# -gt 1 ]; do case $1 in --x) x=$2 ;; --n) n=$2 ;; esac; shift 2; done
[ -n "$WAIT" ] && sleep $WAIT
awk -v x=$x -v n=$n -v seed=$TRAWL_SEED 'BEGIN { srand(seed); printf "TRAWL score=%.6f cost=%d\n", n - 20 * x + 0.1 * rand(), n }'
"""
CONFIG = """
[sweep]
command = sh train.sh {argv}
method = sobol
trials = %d
devices = cpu
runs_per_device = 2
confirm = 0
seeds = 3

[sweep.x]
type = float
min = 0
max = 1

[sweep.n]
type = int
min = 1
max = 9
"""


def configs(trials):
    """The trials of each configuration."""
    found = collections.defaultdict(list)
    for t in trials:
        found[json.dumps(t["params"])].append(t)
    return list(found.values())


def seeds_are_right(study):
    """Further seeds follow the first run, differ, and are not wasted on what a cheaper configuration beats clearly."""
    trials, n_beaten = study["trials"], 0
    for runs in configs(trials):
        assert 1 <= len(runs) <= 3 and len({t["seed"] for t in runs}) == len(runs), runs
        equal([t["origin"] for t in runs[1:]], ["seed"] * (len(runs) - 1))
        assert runs[0]["origin"] != "seed" and all(t["state"] == "done" for t in runs), runs
        for t in runs:
            equal((t["n_seeds"], round(t["seeds_mean"], 9)), (len(runs), round(statistics.mean(r["score"] for r in runs), 9)))
        equal([t["on_front"] for t in runs[1:]], [False] * (len(runs) - 1))  # the first run stands for its configuration
        beaten = [b for b in trials if b["number"] < runs[0]["number"] - 4  # ended before, with enough others for a model
                  and b["cost_s"] <= runs[0]["cost_s"] and b["score"] > runs[0]["score"] + 5]
        n_beaten += len(beaten) > 0
        assert not beaten or len(runs) == 1, (runs, beaten[0])
    assert n_beaten > 0, trials
    few = [t["number"] for t in trials if t["on_front"] and t["n_seeds"] < 3]
    assert not few or few[0] >= len(trials) - 4, few  # the study's limit came before its further seeds


def test_configs_have_their_seeds_through_kills(folder):
    store = folder / "s.db"
    write(folder, "train.sh", PROGRAM)
    config = write(folder, "own.ini", CONFIG % 24)
    process = start("sweep", config, "--store", store, "--name", "a", "-q", env={**tap.os.environ, "WAIT": "0.05"})
    for n in (4, 11):
        wait_for(lambda: sum(t["state"] == "done" for t in trials_now(store, "a")) >= n, process)
        process.kill()
        process.communicate()
        process = start("sweep", "--resume", "a", "--store", store, "-q")
    process.communicate(timeout=tap.PATIENCE_S)
    equal(process.returncode, 0)
    study = show(store, "a")
    equal(len(study["trials"]), 24)
    assert 8 < len(configs(study["trials"])) < 20, study
    seeds_are_right(study)
    rows = list(csv.DictReader(io.StringIO(run("export", "a", "--store", store, "--format", "csv")[0])))
    equal([(int(r["n_seeds"]), float(r["seeds_mean"])) for r in rows], [(t["n_seeds"], t["seeds_mean"]) for t in study["trials"]])
    text = run("export", "a", "--store", store, "--pick", "best")[0]
    assert "(3 seeds, mean" in text and "unconfirmed" not in text, text
    run("rerun", "a", "--store", store, "--trial", next(t["number"] for t in study["trials"] if t["origin"] == "seed"))  # 0: equal
    run("report", "a", "--store", store, "-o", folder / "a.html")
    assert "3 seeds" in (folder / "a.html").read_text()
    equal(run("export", "a", "--store", store, "-o", folder / "a.csv")[0], "")
    run("import", folder / "a.csv", "--study", "b", "--config", config, "--store", folder / "new.db")
    again = show(folder / "new.db", "b")["trials"]
    equal([(t["score_mean"], t["n_seeds"], t["on_front"]) for t in again], [(t["score_mean"], t["n_seeds"], t["on_front"]) for t in study["trials"]])
    run("check", store)


def test_a_single_config_has_a_mean_before_there_is_a_model(folder):
    store = folder / "s.db"
    write(folder, "train.sh", PROGRAM)
    run("sweep", write(folder, "own.ini", CONFIG % 3), "--store", store, "--name", "a", "-q")
    study = show(store, "a")
    equal(len(configs(study["trials"])), 1 if study["trials"][0]["params"] == study["trials"][1]["params"] else 2)
    for runs in configs(study["trials"]):
        equal({t["n_seeds"] for t in runs}, {len(runs)})
        equal(len({t["seeds_mean"] for t in runs}), 1)


def test_clients_get_seeds_too(folder):
    text = asking.OUTSIDE.replace("confirm = 0", "confirm = 0\nseeds = 2")
    with asking.served(folder, text, trials=8) as (server, store):
        seeds = collections.defaultdict(set)
        for k in range(8):
            trial = server.ask("c%d" % (k % 2))
            seeds[json.dumps(trial["params"])].add(trial["seed"])
            server.tell(trial, score=trial["params"]["layers"] + 0.01 * k, cost=trial["params"]["layers"])
        equal(sorted(map(len, seeds.values()))[-1], 2)
        wait_for(lambda: all(t["state"] == "done" for t in show(store, "a")["trials"]))
        for runs in configs(show(store, "a")["trials"]):
            assert len(runs) <= 2 and {t["seed"] for t in runs} == seeds[json.dumps(
                {k.split(".")[1].replace("learning_rate", "Learning-Rate"): v for k, v in runs[0]["params"].items()})], (runs, seeds)


def test_wrong_numbers_of_seeds(folder):
    write(folder, "train.sh", PROGRAM)
    for value, says in (("0", "sweep.seeds"), ("101", "sweep.seeds"), ("two", "sweep.seeds")):
        config = write(folder, "own.ini", (CONFIG % 3).replace("seeds = 3", "seeds = " + value))
        tap.fails("sweep", config, "--store", folder / "s.db", "--name", "a", code=2, says=(says, "own.ini"))


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
