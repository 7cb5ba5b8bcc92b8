"""A trial's score is its policy's: evaluations at the end of runs, the window of other metrics, the inputs of a trial's bytes,
and the owner of a checkpoint."""
import json
import math
import os
import signal
import zlib

from tap import TINY, TINY_SWEEP, change, end, equal, fails, gated, open_gate, rows, run, show, start, wait_for, write

# Many agents and few steps: 128 of each, of episodes that last 200.
BREAKOUT = """
[env]
name = breakout
[policy]
hidden_size = 32
[train]
device = cpu
threads = 1
total_agents = 1024
horizon = 32
minibatch_size = 4096
total_timesteps = 131072
[sweep]
method = sobol
[sweep.train.gamma]
min = 0.9
max = 0.99
"""
CARTPOLE = """
[env]
name = cartpole
[train]
device = cpu
threads = 1
total_timesteps = 200k
[sweep]
method = sobol
[sweep.train.gamma]
min = 0.98
max = 0.99
"""


def trials(store, name="a"):
    return show(store, name)["trials"]


def score_is_the_policys(folder, text, metric):
    """The scores of a trial, of its exported config trained again, and of another evaluation of that policy are equal."""
    store = folder / "s.db"
    run("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", 1, "-q", "--sweep.metric", metric)
    trial = trials(store)[0]
    equal((trial["eval_episodes"], trial["eval_unfinished"]), (256, 0))
    assert trial["eval_s"] > 0 and trial["start_s"] > 0 and trial["score_se"] > 0, trial
    run("export", "a", "--store", store, "--pick", "trial=0", "-o", folder / "e.ini")
    head = (folder / "e.ini").read_text()
    assert "in a warm worker" in head and "from process start" in head and "+-" in head, head[:600]
    again = json.loads(run("train", folder / "e.ini", "-q", "--json", "-o", folder / "p.ckpt")[0])
    equal((again[metric], again[metric + "_se"], again["env_steps"]), (trial["score"], trial["score_se"], trial["env_steps"]))
    other = json.loads(run("eval", folder / "p.ckpt", "--episodes", 1024, "--json")[0])
    error = math.hypot(trial["score_se"], other[metric + "_se"])
    assert other[metric] != trial["score"] and abs(other[metric] - trial["score"]) < 5 * error, (trial, other)
    return again["train"][metric], trial["score"], error


def test_breakouts_score_is_the_policys(folder):
    trained, evaluated, error = score_is_the_policys(folder, BREAKOUT, "score")
    assert trained < evaluated - 5 * error, (trained, evaluated, error)  # those that ended within 128 steps


def test_cartpoles_score_is_the_policys(folder):
    score_is_the_policys(folder, CARTPOLE, "ep_length")


def test_an_evaluation_that_no_episode_ends_in(folder):
    text = TINY.replace("squared\nn = 1", "memory\nlength = 1000")
    out, _ = run("train", write(folder, "t.ini", text), "-q", "--train.eval_max_steps", 60, "-o", folder / "p.ckpt")
    assert "0 of 256 episodes ended within 64 steps" in out, out
    out, err = run("eval", folder / "p.ckpt", "--episodes", 8, "--max-steps", 32)
    assert "8 of 8 episodes had not ended after 32 steps" in err, err
    process = start("eval", folder / "p.ckpt", "--max-steps", "1G", "--episodes", 1000000, "--env.length", 1000000)
    while "evaluating: 0 of" not in process.stderr.readline():  # it says that it is alive
        pass
    end(process, signal.SIGINT, 130)


def test_every_metric_may_be_searched_by_but_the_clock(folder):
    store = folder / "s.db"
    for metric in ("train/entropy", "train/perf", "train/explained_variance"):
        text = TINY_SWEEP.replace("method = sobol", "method = sobol\nmetric = " + metric)
        name = metric.split("/")[1]
        run("sweep", write(folder, "s.ini", text), "--store", store, "--name", name, "--trials", 2, "-q")
        for i, interval in enumerate((0, 1e6)):  # reports come after every rollout, or once
            change(store, "UPDATE trial SET checksum = NULL, config = replace(config, 'log_interval_s = 1', ?) WHERE number = ?",
                   "log_interval_s = %g" % interval, i)
            result = json.loads(run("rerun", name, "--trial", i, "--store", store, "--json")[0])
            equal((result["same"], result["now"]["score"]), (True, trials(store, name)[i]["score"]))
    for metric in ("wall_s", "steps_per_s", "profile/env"):
        text = TINY_SWEEP.replace("method = sobol", "method = sobol\nmetric = " + metric)
        fails("sweep", write(folder, "b.ini", text), "--store", folder / "b.db", "--name", "b", "--trials", 2, code=2,
              says=["sweep.metric", metric, "perf"])


def test_threads_are_the_trials(folder):
    store = folder / "s.db"
    text = CARTPOLE.replace("threads = 1\n", "threads = 0\n").replace("device = cpu\n", "").replace("200k", "50k")
    run("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", 2, "--runs-per-device", 2,
        "--devices", "cpu", "-q")
    for t in trials(store):
        config, _ = run("export", "a", "--store", store, "--pick", "trial=%d" % t["number"])
        each = max(1, len(os.sched_getaffinity(0)) // 2)
        assert "\nthreads = %d\n" % each in config and "\ndevice = cpu\n" in config, config
        assert "\nvector_units = %s\n" % t["vector_units"] in config, config
        again = json.loads(run("train", write(folder, "e.ini", config), "-q", "--json")[0])
        equal((again["perf"], again["perf_se"]), (t["score"], t["score_se"]))
        equal(json.loads(run("rerun", "a", "--store", store, "--trial", t["number"], "--json")[0])["same"], True)
    foreign = config.replace("vector_units = ", "vector_units = Abacus+")
    _, err = run("train", write(folder, "f.ini", foreign), "-q")
    assert "vector units Abacus+" in err and "same bytes cannot" in err, err


def interrupted(folder, store, n, text, begun):
    """n trials of a gated text that were stopped at the same time, each with a checkpoint, when `begun` had selected them all."""
    process = start("sweep", write(folder, "s.ini", text), "--store", store, "--name", "a", "--trials", n, "--runs-per-device", n, "-q")
    wait_for(lambda: len(rows(store, begun)) == n, process)
    end(process, signal.SIGINT, 130)
    equal([t["state"] for t in trials(store)], ["queued"] * n)
    open_gate(folder)


def two_interrupted(folder, store, threads=1):
    text = gated(folder).replace("threads = 1", "threads = %d" % threads)
    interrupted(folder, store, 2, text, "SELECT DISTINCT trial_id FROM metric")


def resume(store, slots=2):
    """Runs to the end; returns stderr."""
    return run("sweep", "--resume", "a", "--store", store, "--runs-per-device", slots, "-q")[1]


def test_a_checkpoint_belongs_to_its_trial(folder):
    store = folder / "s.db"
    two_interrupted(folder, store)
    files = [folder / "s.db.checkpoints" / ("a-%d.ckpt" % i) for i in range(2)]
    files[0].rename(folder / "x")
    files[1].rename(files[0])
    (folder / "x").rename(files[1])
    said = resume(store)
    for i in range(2):
        assert "trial %d begins again" % i in said and "is the checkpoint of trial %d of the study a" % (1 - i) in said, said
    for t in trials(store):
        equal(t["state"], "done")
        equal(json.loads(run("rerun", "a", "--store", store, "--trial", t["number"], "--json")[0])["same"], True)
    for i in (1, 2):  # one run's curve and no other's: its clock only rises
        wall = rows(store, "SELECT wall_s FROM metric WHERE trial_id = ? AND name_id = (SELECT id FROM metric_name WHERE name = 'perf') "
                    "ORDER BY env_steps", i)
        assert wall and wall == sorted(wall), wall


def test_a_missing_checkpoint_is_told_and_a_linked_store_keeps_its_own(folder):
    (folder / "far").mkdir()
    store, link = folder / "far" / "s.db", folder / "link.db"
    link.symlink_to(store)
    two_interrupted(folder, store)
    checkpoints = folder / "far" / "s.db.checkpoints"
    equal(sorted(p.name for p in checkpoints.iterdir()), ["a-0.ckpt", "a-1.ckpt"])
    (checkpoints / "a-0.ckpt").unlink()
    said = resume(link)  # the other name of the store
    assert "trial 0 begins again" in said and "a-0.ckpt" in said and "trial 1 begins again" not in said, said
    equal([t["state"] for t in trials(store)], ["done", "done"])
    for t in trials(store):
        equal(json.loads(run("rerun", "a", "--store", store, "--trial", t["number"], "--json")[0])["same"], True)


def test_a_trial_keeps_its_threads_and_names_all_who_made_it(folder):
    store = folder / "s.db"
    two_interrupted(folder, store, threads=0)
    file = folder / "s.db.checkpoints" / "a-1.ckpt"
    data = bytearray(file.read_bytes())
    at = data.index(b"made by trawl")  # as if another build had
    data[at + 8 : at + 13] = b"earlY"
    data[28:32] = zlib.crc32(data[:28] + data[32:]).to_bytes(4, "little")
    file.write_bytes(data)
    said = resume(store, slots=1)
    assert "resumed by another build or device" in said and "begins again" not in said, said
    one, two = trials(store)
    threads = "(%d thread" % max(1, len(os.sched_getaffinity(0)) // 2)
    for t in (one, two):
        equal((t["state"], threads in t["device"]), ("done", True))
    equal("then by" in one["program"], False)
    assert two["program"].startswith("earlY ") and ", then by trawl " in two["program"], two["program"]
    equal(json.loads(run("rerun", "a", "--store", store, "--trial", 0, "--json")[0])["same"], True)
    assert "; made by earlY " in run("export", "a", "--store", store, "--pick", "trial=1")[0]
    change(store, "UPDATE trial SET checksum = NULL, score = score + 1")
    fails("rerun", "a", "--store", store, "--trial", 1, code=1, says="resumed by another build")


def test_stopped_in_its_evaluation_a_trial_goes_on_there(folder):
    store = folder / "s.db"
    text = gated(folder).replace("total_timesteps = 1000000", "total_timesteps = 4096\neval_episodes = 16").replace("apples.so", "apples.so\nwidth = 10000")
    header = folder / "apples.h"  # few games of long episodes: the evaluation is asked to stop after every 32 steps of all
    header.write_text(header.read_text().replace('"7", 2, 100,', '"7", 2, 10000,'))
    run("env", "build", "apples.h", "--gpu", "no", cwd=folder)
    interrupted(folder, store, 1, text, "SELECT DISTINCT trial_id FROM metric WHERE env_steps = 4096")
    assert (folder / "s.db.checkpoints" / "a-0.ckpt").exists()
    said = resume(store)
    assert "begins again" not in said, said
    t = trials(store)[0]
    equal((t["state"], t["env_steps"], t["eval_episodes"]), ("done", 4096, 16))
    equal(json.loads(run("rerun", "a", "--store", store, "--trial", 0, "--json")[0])["same"], True)


def test_a_resumed_training_keeps_its_seed(folder):
    ckpt = folder / "t.ckpt"
    run("train", write(folder, "t.ini", TINY), "-q", "-o", ckpt, "--train.seed", 4)
    fails("train", "--resume", ckpt, "--train.seed", 9, code=2, says=["--train.seed 9", "seed 4"])
    out, err = run("train", "--resume", ckpt, "-q", "--json", "--train.seed", 4, "--train.total_timesteps", 8192)
    equal(json.loads(out)["seed"], 4)
    assert "was made by" not in err, err
    _, err = run("train", "--resume", ckpt, "-q", "--train.total_timesteps", 12288, "--train.threads", 2)
    assert "was made by trawl" in err and "(1 thread" in err, err


def test_nothing_to_learn_is_refused(folder):
    text = TINY.replace("horizon = 16", "horizon = 1").replace("minibatch_size = 256", "minibatch_size = 1")
    fails("train", write(folder, "t.ini", text), "-q", code=2, says=["minibatch_size 1", "norm_adv"])
    run("train", write(folder, "t.ini", text), "-q", "--train.norm_adv", "false")
