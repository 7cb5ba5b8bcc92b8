"""Several trials at a time in one worker: the same bytes as alone; each is stopped, fails and is resumed separately.

The tests play the controller. Tests named cuda need a GPU and are skipped with a reason without one.
"""
import os
import re
import signal

import tap
import worker
from tap import TRAWL, equal

BASE = """
[env]
name = %(env)s

[policy]
core = mingru
hidden_size = %(width)d
num_layers = 1

[train]
total_agents = 32
horizon = 16
minibatch_size = 128
replay_ratio = 1.3
total_timesteps = %(steps)d
learning_rate = 0.003
seed = %(seed)d
threads = 1
device = %(device)s
log_interval_s = 0.05
"""


def config(seed=1, steps=512 * 40, env="cartpole", width=16, device="cpu"):
    return BASE % {"seed": seed, "steps": steps, "env": env, "width": width, "device": device}


def opened(device, lanes, **more):
    w = worker.Worker(TRAWL, config(device=device.split(":")[0]), lanes=lanes, device=device, **more)
    if w.reason is not None and device != "cpu":
        assert "TRAWL_REQUIRE_GPU" not in os.environ, w.reason
        raise tap.Skip(w.reason)
    equal(w.reason, None)
    equal(w.hello["lanes"], lanes)
    return w


TRIALS = [dict(seed=seed, env=env, width=width) for seed, env, width in
          ((1, "cartpole", 16), (2, "memory", 16), (3, "cartpole", 24), (4, "squared", 16), (5, "cartpole", 16),
           (6, "memory", 8), (7, "cartpole", 16))]
# Of a checkpoint, what a run's bytes are; counters and window hold times too.
EXACT = ("weights", "moment1", "moment2", "optimiser_step", "rng_sample", "rng_segments", "window", "env", "reset", "state")


def exact(path):
    sections = worker.checkpoint_sections(path)
    return {name: sections[name] for name in EXACT if name in sections}


def final(result):
    """The numbers of a result that do not depend on time."""
    assert result["state"] == "done", result
    return {k: result[k] for k in ("score", "score_se", "perf", "env_steps", "eval_episodes", "eval_unfinished")}


def train_all(device, lanes, folder, trials):
    """Trial -> (numbers, bytes); one trial at a time on each lane."""
    w = opened(device, lanes)
    waiting, got = list(range(len(trials))), {}
    def give():
        i = waiting.pop(0)
        w.run(i, config(device=device.split(":")[0], **trials[i]), checkpoint_path=str(folder / ("%d.ckpt" % i)),
              checkpoint_end=True)
    for _ in range(min(lanes, len(waiting))):
        give()
    while len(w.results) < len(trials):
        w.wait(lambda m: m["type"] == "result")
        if waiting:
            give()
    for i in range(len(trials)):
        got[i] = (final(w.results[i]), exact(folder / ("%d.ckpt" % i)), w.results[i])
    equal(w.close(), 0)
    return got


def same_alone_and_together(device, folder, trials):
    alone = train_all(device, 1, folder, trials)
    together = train_all(device, 4, folder, trials)
    for i in range(len(trials)):
        equal(alone[i][0], together[i][0])
        assert alone[i][1] == together[i][1], "trial %d: %s" % (
            i, [name for name in alone[i][1] if alone[i][1][name] != together[i][1][name]])
        equal(alone[i][2]["cost_method"], "wall")


def stop_one(device, folder):
    """One of three is stopped with a checkpoint, and continues in another worker with the same bytes."""
    kind = device.split(":")[0]
    long = config(seed=9, steps=512 * 800, device=kind)
    w = opened(device, 3)
    for i in (2, 3):
        w.run(i, config(seed=i, device=kind))
    w.send(type="stop", trial=99, checkpoint=True)  # nobody's
    attempt, stopped = 0, {"state": "done"}
    while stopped["state"] == "done":  # again, where it had ended before it heard that it was to stop
        attempt += 1
        w.results.pop(1, None)
        w.run(1, long, attempt, checkpoint_path=str(folder / "a.ckpt"))
        w.wait(lambda m: m["type"] == "metrics" and (m["trial"], m["attempt"]) == (1, attempt))
        w.send(type="stop", trial=1, checkpoint=True)
        stopped = w.result(1)
    equal((stopped["state"], stopped["checkpoint"]), ("stopped", str(folder / "a.ckpt")))
    equal([m["path"] for m in w.messages("checkpoint", 1)], [str(folder / "a.ckpt")])
    assert 0 < stopped["env_steps"] < 512 * 800, stopped
    equal([w.result(i)["state"] for i in (2, 3)], ["done", "done"])
    w.run(1, long, attempt + 1, resume_from=str(folder / "a.ckpt"), checkpoint_path=str(folder / "b.ckpt"),
          checkpoint_end=True)
    w.run(4, long, checkpoint_path=str(folder / "c.ckpt"), checkpoint_end=True)
    w.results.pop(1)
    equal(w.wait(lambda m: m["type"] == "training" and m["trial"] == 1 and m["attempt"] == attempt + 1)["env_steps"],
          stopped["env_steps"])
    resumed, straight = w.result(1), w.result(4)
    equal(final(resumed), final(straight))
    assert exact(folder / "b.ckpt") == exact(folder / "c.ckpt")
    assert resumed["cost_s"] > stopped["cost_s"] > 0, (resumed, stopped)
    equal(w.close(), 0)


def test_four_lanes_give_the_bytes_of_one(folder):
    same_alone_and_together("cpu", folder, TRIALS)


def test_cuda_four_lanes_give_the_bytes_of_one(folder):
    same_alone_and_together("cuda:0", folder, TRIALS)


def test_one_is_stopped_and_resumed(folder):
    stop_one("cpu", folder)


def test_cuda_one_is_stopped_and_resumed(folder):
    stop_one("cuda:0", folder)


def test_one_fails(folder):
    w = opened("cpu", 3)
    w.run(1, config(seed=1, steps=512 * 400))
    w.run(2, config(seed=2).replace("horizon = 16", "horizon = 17"))  # minibatch_size no multiple of it
    w.run(3, config(seed=3).replace("learning_rate = 0.003", "learning_rate = 1e30"))
    equal(w.result(2)["state"], "failed")
    assert "horizon" in w.result(2)["reason"], w.result(2)
    assert w.result(3)["state"] in ("failed", "done")
    w.run(4, "this is not a config")
    equal(w.result(4)["state"], "failed")
    w.run(5, config(seed=5))
    equal((w.result(5)["state"], w.result(1)["state"]), ("done", "done"))
    assert all(not r["lost"] for r in w.results.values())
    equal(w.close(), 0)


def test_no_lane_is_free(folder):
    w = opened("cpu", 2)
    for i in (1, 2, 3):
        w.run(i, config(seed=i, steps=512 * 1000000))
    refused = w.result(3)
    equal(refused["state"], "failed")
    assert "no lane" in refused["reason"], refused
    w.send(type="stop", trial=1, checkpoint=False)
    w.send(type="stop", trial=2)
    equal([w.result(i)["state"] for i in (1, 2)], ["stopped", "stopped"])
    assert "checkpoint" not in w.result(1)
    equal(w.close(), 0)


def test_heartbeat_shows_progress(folder):
    w = opened("cpu", 2)
    w.run(1, config(seed=1, steps=512 * 1000000))
    first = w.wait(lambda m: m["type"] == "alive" and m["lanes"])
    a = first["lanes"][0]
    later = w.wait(lambda m: m["type"] == "alive" and m["lanes"] and m["lanes"][0]["iterations"] > a["iterations"])
    for beat in (first, later):
        equal([(lane["trial"], lane["attempt"]) for lane in beat["lanes"]], [(1, 1)])
        assert beat["memory_bytes"] > 1 << 20 and beat["device_memory_bytes"] == 0, beat
    assert later["lanes"][0]["env_steps"] > a["env_steps"], (first, later)
    w.send(type="stop", trial=1)
    equal(w.result(1)["state"], "stopped")
    equal(w.close(), 0)


def test_cost_is_calibrated_beside_others(folder):
    w = opened("cpu", 2)
    w.process.send_signal(signal.SIGSTOP)  # it finds both together, however late this process sends the second
    for i in (1, 2):
        w.run(i, config(seed=i, steps=512 * 600))
    w.process.send_signal(signal.SIGCONT)
    for i in (1, 2):
        r = w.result(i)
        equal((r["state"], r["cost_method"]), ("done", "calibrated"))
        assert r["cost_s"] > 0 and r["wall_s"] > 0, r
    equal(w.close(), 0)


def test_checkpoints_by_time(folder):
    """kill -9 costs the training after the last checkpoint; a short trial writes none."""
    path, long = folder / "long.ckpt", config(seed=4, steps=512 * 1000)
    w = opened("cpu", 2)
    w.run(2, config(seed=2, steps=512), checkpoint_path=str(folder / "short.ckpt"), checkpoint_every_s=60)
    equal(w.result(2)["state"], "done")  # first: the checkpoints of the long one are waited for as they come
    w.run(1, long, checkpoint_path=str(path), checkpoint_every_s=0.05)
    for _ in range(2):
        w.wait(lambda m: m["type"] == "checkpoint" and m["trial"] == 1)
    w.process.send_signal(signal.SIGKILL)
    w.process.wait()
    equal(w.messages("checkpoint", 2), [])
    # The kill may come while the next checkpoint is written beside the last.
    equal(sorted(p.name for p in folder.iterdir() if ".tmp." not in p.name), ["long.ckpt"])
    w = opened("cpu", 1)
    w.run(1, long, attempt=2, resume_from=str(path), checkpoint_path=str(folder / "b.ckpt"), checkpoint_end=True)
    assert w.wait(lambda m: m["type"] == "training")["env_steps"] > 0
    resumed = w.result(1)
    w.run(3, long, checkpoint_path=str(folder / "c.ckpt"), checkpoint_end=True)
    equal(final(resumed), final(w.result(3)))
    assert exact(folder / "b.ckpt") == exact(folder / "c.ckpt")
    equal(w.close(), 0)


def test_bad_checkpoint_starts_again(folder):
    (folder / "bad.ckpt").write_bytes(b"TRAWLCKP and then nothing of use")
    with open(folder / "log", "w") as log:
        w = opened("cpu", 1, stderr=log)
        for i, path in enumerate(("bad.ckpt", "none.ckpt")):
            w.run(i, config(seed=3), resume_from=str(folder / path))
            equal(w.result(i)["state"], "done")
        w.run(7, config(seed=3))
        equal(final(w.result(7)), final(w.result(0)))
        equal([(m["trial"], path in m["reason"]) for m, path in zip(w.messages("again"), ("bad.ckpt", "none.ckpt"))],
              [(0, True), (1, True)])
        equal(w.close(), 0)


def test_controller_goes(folder):
    w = opened("cpu", 4)
    for i in range(4):
        w.run(i, config(seed=i + 1, steps=512 * 1000000))
    w.wait(lambda m: m["type"] == "metrics")
    w.socket.close()
    equal(w.process.wait(tap.PATIENCE_S), 0)


def test_signals_are_for_the_controller(folder):
    w = opened("cpu", 1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        w.process.send_signal(number)
    w.run(1, config())
    equal(w.result(1)["state"], "done")
    equal(w.close(), 0)


def test_what_cannot_be_opened(folder):
    core = min(os.sched_getaffinity(0))
    w = opened("cpu", 1, cores=str(core), memory_bytes=2 << 30)
    equal(os.sched_getaffinity(w.process.pid), {core})
    w.run(1, config())
    equal(w.result(1)["state"], "done")
    for more, says in ((dict(device="tpu"), "tpu"), (dict(lanes=0), "runs on one device"),
                       (dict(lanes=129), "runs on one device")):
        w = worker.Worker(TRAWL, config(), **more)
        assert w.reason is not None and says in w.reason, w.hello
        w.run(1, config())
        equal(w.result(1)["state"], "failed")


def large(agents, steps, device="cuda", seed=1):
    return config(seed=seed, steps=steps, env="breakout", device=device).replace(
        "total_agents = 32", "total_agents = %d" % agents).replace("minibatch_size = 128", "minibatch_size = 65536")


def test_cuda_memory_is_waited_for(folder):
    """Each of three trials needs more than half of the device: one after another they all train."""
    w = opened("cuda:0", 3)
    def wide(agents, seed=1):  # much memory and little to compute
        return large(agents, agents * 16, seed=seed).replace("name = breakout", "name = squared\nn = 31").replace(
            "replay_ratio = 1.3", "replay_ratio = 0.05")
    w.run(0, wide(1 << 21))
    refused = w.result(0)
    equal(refused["state"], "failed")
    need, free = (float(n) * {"GB": 1.0, "TB": 1000.0}[unit] for n, unit in
                  re.findall(r"(?:needs|has) (?:NVIDIA [^,]* has )?([0-9.e+]+) ([GT]B)", refused["reason"])[:2])
    agents = int((1 << 21) * 0.6 * free / need) // 4096 * 4096
    for i in (1, 2, 3):
        w.run(i, wide(agents, seed=i))
    for i in (1, 2, 3):
        assert w.result(i)["state"] == "done", w.result(i)
    w.run(4, config(device="cuda"))
    equal(w.result(4)["state"], "done")
    print("# %.0f of %.0f GB each" % (0.6 * free, free))
    equal(w.close(), 0)


def lose_device(folder, lanes):
    """A timeout shorter than an iteration: the device seems to hang."""
    log = open(folder / ("log%d" % lanes), "w")
    w = worker.Worker(TRAWL, config(device="cuda") + "device_timeout_s = 0.2\n", lanes=lanes, device="cuda:0", stderr=log)
    if w.reason is not None:
        raise tap.Skip(w.reason)
    for i in range(lanes):
        w.run(i, large(1 << 21, 1 << 40, seed=i + 1))
    return w, folder / ("log%d" % lanes)


def test_cuda_lost_device_of_one(folder):
    w, log = lose_device(folder, 1)
    r = w.result(0)
    equal((r["state"], r["lost"]), ("failed", True))
    assert "hangs" in r["reason"], r
    equal(w.process.wait(tap.PATIENCE_S), 1)


def test_cuda_lost_device_of_several(folder):
    w, log = lose_device(folder, 3)
    equal(w.process.wait(tap.PATIENCE_S), 1)
    while (m := w.receive(1)) is not None:
        assert m["type"] != "result", m
    assert "hangs" in log.read_text(), log.read_text()
