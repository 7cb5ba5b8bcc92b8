"""trawl extend: a finished trial is trained for more steps from its kept checkpoint, as a trial of its own."""
import json
import signal

import tap
from tap import TINY_SWEEP, equal, fails, rows, run, show, write

# Without annealing a training that is extended gives the bytes of one that was that long from the start.
SAME = TINY_SWEEP.replace("device = cpu", "device = cpu\nanneal_lr = false\nlog_interval_s = 0")
SEARCHED = SAME + "\n[sweep.train.total_timesteps]\nmin = 1024\nmax = 16384\n"


def sweep(folder, text=SAME, trials=3, keep="all"):
    store = folder / "s.db"
    run("sweep", write(folder, "sweep.ini", text), "--store", store, "--name", "a", "--trials", trials, "--seed", 3, "-q",
        "--sweep.keep", keep)
    return store


def curve(store, number, name="score"):
    return rows(store, "SELECT m.env_steps, m.value FROM metric AS m JOIN metric_name AS n ON n.id = m.name_id JOIN trial AS t ON "
                "t.id = m.trial_id WHERE n.name = ? AND t.number = ? ORDER BY m.env_steps", name, number)


def trained_from_the_start(folder, store, number):
    """The result of the trial's config in a training of its own."""
    run("export", "a", "--store", store, "--pick", "trial=%d" % number, "-o", folder / "t.ini")
    return json.loads(run("train", folder / "t.ini", "--json", "-q")[0])


def test_an_extended_trial_is_one_that_was_that_long_from_the_start(folder):
    store = sweep(folder)
    at = ("--store", store)
    old = show(store, "a")["trials"][1]
    out, _ = run("extend", "a", 1, "--steps", "2x", *at)
    for words in ("trial 1 of a continues as trial 3, from 4.096k steps to 8.192k steps", "models and front leave it out",
                  "the study continues", "no controller runs it"):
        assert words in out, out
    queued = show(store, "a")["trials"][3]
    equal((queued["state"], queued["origin"], queued["seed"], queued["params"]), ("queued", "extends 1", old["seed"], old["params"]))
    before = curve(store, 1)
    equal(curve(store, 3), before)
    for command in (("export", "a", "--pick", "trial=3", "-o", folder / "x.onnx"), ("rerun", "a", "--trial", 3)):
        fails(*command, *at, code=2, says="trial 3 of a is queued; only one that has ended has")  # its checkpoint is trial 1's
    equal((folder / "x.onnx").exists(), False)
    run("sweep", "--resume", "a", *at, "-q")
    new = show(store, "a")["trials"][3]
    equal((new["state"], new["env_steps"], new["attempt"]), ("done", 8192, 1))
    assert new["cost_s"] > old["cost_s"], (new["cost_s"], old["cost_s"])
    points = curve(store, 3, "train/policy_loss")
    equal(points[:len(curve(store, 1, "train/policy_loss"))], curve(store, 1, "train/policy_loss"))
    equal((points[-1][0], len(points)), (8192, 2 * len(curve(store, 1, "train/policy_loss"))))
    whole = trained_from_the_start(folder, store, 3)
    equal((new["score"], new["env_steps"]), (whole["perf"], whole["env_steps"]))  # the study's metric is perf
    equal(show(store, "a")["trials"][1], old)
    # the study does not search the number of steps: a second seed it is not
    equal((new["dropped"], new["on_front"]), ("trained for more steps than the study searches", False))
    run("drop", "a", 3, "--undo", *at)
    equal(show(store, "a")["trials"][3]["dropped"], None)
    run("check", store)


def test_it_counts_where_the_steps_are_searched(folder):
    store = sweep(folder, SEARCHED)
    at = ("--store", store)
    old = show(store, "a")["trials"][0]
    equal(old["params"]["train.total_timesteps"], 4096)
    done = json.loads(run("extend", "a", "--trial", 0, "--steps", "8_192", *at, "--json")[0])
    equal((done["command"], done["done_by"]), ("extend", "store"))
    run("extend", "a", 0, "--steps", "8x", *at)  # beyond the range
    run("sweep", "--resume", "a", *at, "-q")
    trials = show(store, "a")["trials"]
    equal([t["params"]["train.total_timesteps"] for t in trials[3:]], [8192, 32768])
    equal([(t["state"], t["env_steps"], t["dropped"] is None) for t in trials[3:]], [("done", 8192, True), ("done", 32768, False)])
    equal(trials[3]["score"], trained_from_the_start(folder, store, 3)["perf"])
    run("extend", "a", 3, "--steps", "1.5x", *at)  # an extended trial has a checkpoint too
    run("sweep", "--resume", "a", *at, "-q")
    equal([(t["state"], t["env_steps"], t["origin"]) for t in show(store, "a")["trials"][5:]], [("done", 12288, "extends 3")])


def test_an_annealed_extension_is_no_run_from_the_start(folder):
    store = sweep(folder, SAME.replace("anneal_lr = false", "anneal_lr = true"))
    at = ("--store", store)
    run("extend", "a", 0, "--steps", "2x", *at)
    run("sweep", "--resume", "a", *at, "-q")
    _, said = run("rerun", "a", "--trial", 3, *at, code=1)
    for words in ("trial 3 of a extends trial 0 from its checkpoint", "did not come out the same: it extends trial 0"):
        assert words in said, said
    assert "please report" not in said, said
    assert "; it extends trial 0 from its checkpoint" in run("export", "a", "--pick", "trial=3", *at)[0]
    assert "extends" not in run("export", "a", "--pick", "trial=0", *at)[0] + "".join(run("rerun", "a", "--trial", 0, *at))


def test_what_cannot_be_extended(folder):
    store = sweep(folder, SAME, 8, "front")
    at = ("--store", store)
    gone = next(t["number"] for t in show(store, "a")["trials"]
                if not (folder / "s.db.checkpoints" / ("a-%d.ckpt" % t["number"])).exists())
    last = 7
    for words, says in (((), "missing"), (("a",), "which trial?"), (("a", last), "--steps 2x"), (("a", last, "--stepz", "2x"), "--steps"),
                        (("a", "x", "--steps", "2x"), "not a trial number"), (("a", last, "--steps", "twice"), "--steps is 'twice'"),
                        (("a", last, "--steps", "-2x"), "--steps is '-2x'"), (("a", last, "--steps", "1x"), "has trained for 4096 steps"),
                        (("a", last, "--steps", 4096), "has trained for 4096 steps"), (("a", gone, "--steps", "2x"), "has no checkpoint"),
                        (("a", last, "--steps", "1e30x"), "--steps is")):
        fails("extend", *words, *at, code=2, says=says)
    fails("extend", "a", 9, "--steps", "2x", *at, code=1, says="no trial 9")
    fails("extend", "b", 1, "--steps", "2x", *at, code=1, says="no study 'b'")
    equal(len(show(store, "a")["trials"]), 8)
    run("extend", "a", last, "--steps", "2x", *at)
    fails("extend", "a", last, "--steps", "8192", *at, code=2, says=("already, as trial 8", "queued"))
    fails("extend", "a", 8, "--steps", "4x", *at, code=2, says="is queued; only one that is done")
    file = folder / "s.db.checkpoints" / ("a-%d.ckpt" % last)
    file.write_bytes(file.read_bytes()[:-100])
    fails("extend", "a", last, "--steps", "3x", *at, code=1, says="cut off")
    equal((len(show(store, "a")["trials"]), (folder / "s.db.checkpoints" / "a-9.ckpt").exists()), (9, False))
    write(folder, "train.sh", "echo TRAWL score=1\n")
    own = write(folder, "own.ini", "[sweep]\ncommand = sh train.sh {argv}\ntrials = 1\n\n[sweep.x]\ntype = float\nmin = 0\nmax = 1\n")
    run("sweep", own, *at, "--name", "own", "-q")
    fails("extend", "own", 0, "--steps", "2x", *at, code=2, says=("trained by a program", "trawl try own --trial 0"))


def test_a_running_controller_extends(folder):
    store = sweep(folder)
    daemon = tap.daemon(store)
    out = json.loads(run("extend", "a", 2, "--steps", "3x", "--store", store, "--json")[0])
    equal(out["done_by"], "controller")
    tap.wait_for(lambda: show(store, "a")["trials"][3]["state"] == "done", daemon)
    new = show(store, "a")["trials"][3]
    equal((new["score"], new["env_steps"]), (trained_from_the_start(folder, store, 3)["perf"], 12288))
    tap.end(daemon, signal.SIGTERM)
