"""`trawl rerun`: the same bytes with the stored seed, mean and spread with fresh ones."""
import itertools
import json
import math
import os
import re
import signal
import statistics

from tap import TINY_SWEEP, change, end, equal, rows, fails, run, show, start, write


def make(folder, text=TINY_SWEEP, **more):
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", 4, "-q", **more)
    return store


def rerun(store, number, *args, code=0):
    return json.loads(run("rerun", "a", "--trial", number, "--store", store, "--json", *args, code=code)[0])


def test_the_stored_seed_gives_the_same_bytes(folder):
    store = make(folder)
    trials = show(store, "a")["trials"]
    for t in trials:
        result = rerun(store, t["number"])
        equal(result["same"], True)
        equal(result["now"]["score"], t["score"])
        equal(result["now"]["env_steps"], t["env_steps"])
        equal(result["seed"], t["seed"])
        equal(result["now"]["device"], result["stored"]["device"])
    out, _ = run("rerun", "a", "--trial", 1, "--store", store, "-o", folder / "p.ckpt")
    assert "equal" in out and "DIFFERENT" not in out, out
    assert json.loads(run("eval", folder / "p.ckpt", "--episodes", 4, "--json")[0])["episodes"] >= 4
    equal(show(store, "a")["trials"], trials)  # the store was only read


def test_another_result_is_told(folder):
    store = make(folder)
    change(store, "UPDATE trial SET score = score + 0.001, checksum = NULL, device = 'Abacus (1 thread, wood)' WHERE number = 2")
    said = fails("rerun", "a", "--trial", 2, "--store", store, code=1, says=("trial 2 of a", "another device"))
    assert "please report" not in said
    equal(rerun(store, 2, code=1)["same"], False)
    change_back = show(store, "a")["trials"][1]
    equal(rerun(store, 1)["now"]["score"], change_back["score"])


def test_another_trials_checkpoint_is_not_compared(folder):
    store = make(folder, TINY_SWEEP.replace("[sweep]\n", "[sweep]\nkeep = all\n"))
    kept = folder / "s.db.checkpoints"
    equal(rerun(store, 1)["weights_equal"], True)
    (kept / "a-1.ckpt").write_bytes((kept / "a-2.ckpt").read_bytes())
    out, err = run("rerun", "a", "--trial", 1, "--store", store, "--json")
    assert "is the checkpoint of trial 2 of the study a" in err and "not of trial 1" in err, err
    equal((json.loads(out)["same"], json.loads(out)["weights_equal"]), (True, None))


def test_many_seeds_give_mean_and_interval(folder):
    store = make(folder)
    result = rerun(store, 1, "--seeds", 5, "--no-store")
    equal((result["cost_unit"], result["cost"]), ("s", result["cost_s"]))
    runs, stored = result["runs"], show(store, "a")["trials"][1]
    equal(len({r["seed"] for r in runs} | {stored["seed"]}), 6)  # fresh ones
    for key in ("score", "cost_s"):
        values = [r[key] for r in runs]
        mean, sd = statistics.mean(values), statistics.stdev(values)
        half = 2.7764451051977934 * sd / math.sqrt(5)  # Student's t, 4 degrees of freedom, 97.5 %
        for name, want in (("mean", mean), ("sd", sd), ("mean_lo", mean - half), ("mean_hi", mean + half)):
            assert math.isclose(result[key][name], want, rel_tol=1e-9, abs_tol=1e-12), (key, name, result[key], want)
    equal(result["better"], sum(r["score"] > stored["score"] for r in runs))
    half = 2.7764451051977934 * statistics.stdev([r["score"] for r in runs]) * math.sqrt(1.2)
    usual = abs(stored["score"] - result["score"]["mean"]) <= half
    assert (result["verdict"] == "usual") == usual, result
    again = rerun(store, 1, "--seeds", 5, "--no-store")
    equal([r["score"] for r in again["runs"]], [r["score"] for r in runs])  # the same fresh seeds
    change(store, "UPDATE trial SET score = 1e6, checksum = NULL WHERE number = 1")
    out, _ = run("rerun", "a", "--trial", 1, "--store", store, "--seeds", 3, "-q")
    assert "count on the mean" in out, out
    out, _ = run("rerun", "a", "--trial", 1, "--store", store, "--seeds", 1, "-q")
    assert "nan" not in out and "at least two seeds" in out, out


def test_fresh_runs_are_trials_of_the_study(folder):
    store = make(folder)
    before = show(store, "a")["trials"][1]
    result = rerun(store, 1, "--seeds", 3)
    trials = show(store, "a")["trials"]
    equal([r["trial"] for r in result["runs"]], [4, 5, 6])
    for r in result["runs"]:
        t = trials[r["trial"]]
        equal((t["params"], t["seed"], t["score"], t["env_steps"], t["state"]), (before["params"], r["seed"], r["score"], r["env_steps"], "done"))
        equal(rerun(store, r["trial"])["same"], True)  # its config and seed give the same bytes again
    equal(trials[1]["n_seeds"], 4)
    middle = sorted(r["score"] for r in result["runs"])
    assert math.isclose(result["score"]["iqm"], (0.25 * middle[0] + middle[1] + 0.25 * middle[2]) / 1.5, rel_tol=1e-9)
    more = rerun(store, 1, "--seeds", 2)  # further seeds, not the same again
    equal(len({r["seed"] for r in result["runs"] + more["runs"]} | {before["seed"]}), 6)
    equal(len(show(store, "a")["trials"]), 9)
    run("confirm", "a", 1, "--seeds", 2, "--store", store)  # more than the limit of 4 trials are there: it rises by 2 from these
    run("try", "a", "--train.gamma", 0.9, "--store", store)
    equal([t["state"] for t in show(store, "a")["trials"][9:]], ["queued"] * 3)
    equal(show(store, "a")["study"]["trials_max"], 12)
    (folder / "s.db").chmod(0o400)
    if not os.access(store, os.W_OK):
        _, err = run("rerun", "a", "--trial", 1, "--store", store, "--seeds", 1, "--json", code=1)
        assert "are not in the store" in err, err


def test_confirming_is_queued(folder):
    store = make(folder)
    out, _ = run("confirm", "a", 2, "--seeds", 3, "--store", store)
    assert "the config of trial 2 of a is queued under 3 fresh seeds; the study continues" in out, out
    run("sweep", "--resume", "a", "--store", store, "-q")
    trials = show(store, "a")["trials"]
    equal([(t["origin"], t["state"], t["params"] == trials[2]["params"]) for t in trials[4:]], [("confirm", "done", True)] * 3)
    equal(len({t["seed"] for t in trials}), 7)
    equal(trials[2]["n_seeds"], 4)
    for n in (0, 101):
        fails("confirm", "a", 2, "--seeds", n, "--store", store, code=2, says=("%d runs" % n, "1 to 100"))
    equal(len(show(store, "a")["trials"]), 7)
    assert "under 5 fresh seeds" in run("confirm", "a", 2, "--store", store)[0]
    fails("confirm", "a", "--store", store, code=2, says="which trial")


def test_short_trials_have_whole_curves(folder):
    store = make(folder, TINY_SWEEP.replace("4096", "300k"))
    for cost_s, points in rows(store, "SELECT t.cost_s, (SELECT COUNT(DISTINCT env_steps) FROM metric m WHERE m.trial_id = t.id) FROM trial t"):
        assert points >= min(5, cost_s / 0.05), (cost_s, points)  # by log_interval_s alone it would be one; while the machine stands still no point is written


def test_the_cost_is_the_studys(folder):
    store = make(folder, TINY_SWEEP.replace("method = sobol", "method = sobol\ncost = env_steps"))
    steps = show(store, "a")["trials"][1]["env_steps"]
    result = rerun(store, 1, "--seeds", 3)
    equal((result["cost_unit"], result["cost"]["mean"], result["cost"]["sd"]), ("steps", steps, 0))
    assert 0 < result["cost_s"]["mean"] < 60, result
    out, err = run("rerun", "a", "--trial", 1, "--store", store, "--seeds", 2)
    assert "cost (steps)" in out and "%d" % steps in out and err.count("cost 4.096k steps") == 2, (out, err)
    out, _ = run("rerun", "a", "--trial", 1, "--store", store)
    equal([line.split()[1:] for line in out.splitlines() if line.startswith("cost ")], [["4.096k", "steps", "4.096k", "steps"]])


def test_threads_are_those_of_the_stored_run(folder):
    store = make(folder, TINY_SWEEP.replace("threads = 1", "threads = 0"))
    device = show(store, "a")["trials"][0]["device"]  # of an older store: the config leaves the threads to the machine
    change(store, "UPDATE trial SET checksum = NULL, config = replace(config, 'threads = ', 'threads = 0 ;'), device = '%s'" %
           re.sub(r"\(\d+ threads?", "(1 thread", device))
    result = json.loads(start("rerun", "a", "--trial", 0, "--store", store, "--json").communicate()[0])
    assert "(1 thread," in result["now"]["device"], result


def test_a_stopped_trial_is_repeated_up_to_its_end(folder):
    store = folder / "s.db"
    text = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 1G")
    run("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--budget", "1s", "-q")
    trial = show(store, "a")["trials"][0]
    equal(trial["state"], "stopped")
    result = rerun(store, 0)
    equal((result["now"]["env_steps"], result["now"]["score"]), (trial["env_steps"], trial["score"]))


def test_a_killed_rerun_has_stored_the_runs_that_it_printed(folder):
    store = make(folder, TINY_SWEEP.replace("4096", "100k"))
    process = start("rerun", "a", "--trial", 0, "--store", store, "--seeds", 1000)
    said = (re.search(r"seed (\d+)", line) for line in process.stderr)  # a slow evaluation reports its progress between them
    printed = [found.group(1) for found in itertools.islice(filter(None, said), 2)]
    end(process, signal.SIGKILL, -9)
    kept = show(store, "a")["trials"][4:]
    equal([str(t["seed"]) for t in kept[:2]], printed)
    equal({t["state"] for t in kept}, {"done"})
    equal(rerun(store, kept[0]["number"])["same"], True)


def test_an_interrupt_tells_what_was_trained(folder):
    store = make(folder, TINY_SWEEP.replace("4096", "100k"))
    process = start("rerun", "a", "--trial", 0, "--store", store, "--seeds", 1000)
    for _ in range(2):
        process.stderr.readline()
    out, err = end(process, signal.SIGINT, 130)
    assert "mean" in out and "interrupted after" in err, (out, err)


def test_bad_input(folder):
    store = make(folder)
    fails("rerun", "a", "--store", store, code=2, says="--trial N")
    fails("rerun", "a", "--trial", 99, "--store", store, code=1, says="no trial 99")
    fails("rerun", "b", "--trial", 0, "--store", store, code=1, says="no study 'b'")
    fails("rerun", "a", "--trial", 0, "--seeds", 0, "--store", store, code=2, says=("--seeds is 0", "1 to 1000"))
    fails("rerun", "a", "--trial", 0, "--seeds", 5000, "--store", store, code=2, says="--seeds")
    fails("rerun", "a", "--trial", 0, "--seeds", 5, "-o", folder / "x", "--store", store, code=2, says="-o")
    fails("rerun", "a", "--trial", 0, "--store", folder / "none.db", code=1, says="no store")
