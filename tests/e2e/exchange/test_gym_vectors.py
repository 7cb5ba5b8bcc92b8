"""Environments of Gymnasium that step many instances at a time, and those of EnvPool: what a step gives in each way of resetting,
bytes beside numbers, and faults. The Python is that of test_gym.py.
"""
import json
import os
import struct
import subprocess

import tap
from tap import equal, fails, run, write
from test_gym import PYTHON, ROOT, TINY, Bridge, mine, need

# Instances that count: the observation is (episode, step of it), an episode has `length` steps and ends by the rules or by a
# time limit. In each of the three ways in which a vector environment may begin the next one.
COUNTING = '''
import gymnasium, numpy as np
from gymnasium import spaces


class Count(gymnasium.vector.VectorEnv):
    def __init__(self, num_envs=1, mode="SAME_STEP", length=4, cut=False, seen=False, fault=""):
        self.fault = fault
        self.num_envs, self.mode, self.length, self.cut = num_envs, mode, length, cut
        self.metadata = {"autoreset_mode": mode if fault == "word" else gymnasium.vector.AutoresetMode[mode]} if fault != "unsaid" else {}
        self.single_observation_space = spaces.Dict({"at": spaces.Box(-1, 1e6, (2,), np.float32), "even": spaces.Discrete(2)})
        self.seen = seen  # beside the numbers: a strip of three bytes, the first of which counts the steps; last observations one by one, as Gymnasium's
        if seen:
            self.single_observation_space["seen"] = spaces.Box(0, 255, (3,), np.uint8)
        self.single_action_space = spaces.Tuple((spaces.Discrete(3, start=5), spaces.Box(-2, 2, (1,), np.float32)))

    def look(self):
        seen = np.stack([self.at[:, 1].astype(np.uint8)] + [np.full(self.num_envs, k, np.uint8) for k in (7, 8)], 1)
        return {"at": self.at.copy(), "even": self.at[:, 1].astype(int) % 2, **({"seen": seen} if self.seen else {})}

    def begin(self, which):
        self.at[which, 0] += 1
        self.at[which, 1] = 0

    def reset(self, *, seed=None, options=None):
        if options:
            self.begin(options["reset_mask"])
        else:
            self.at, self.over = np.zeros((self.num_envs, 2), np.float32), np.zeros(self.num_envs, bool)
        return self.look(), {}

    def step(self, actions):
        choices, numbers = actions
        assert choices.shape == (self.num_envs,) and ((choices >= 5) & (choices < 8)).all(), choices
        assert numbers.shape == (self.num_envs, 1) and numbers.dtype == np.float32 and (abs(numbers) <= 2).all(), numbers
        again, info = self.over, {}
        self.begin(again)
        self.at[~again, 1] += 1
        over = self.at[:, 1] == self.length
        none = np.zeros(self.num_envs, bool)
        self.over = over if self.mode == "NEXT_STEP" else none
        if self.mode == "SAME_STEP" and over.any():
            last = self.look()
            info["final_obs"] = last if not self.seen else np.array([{key: last[key][i] for key in last} for i in range(self.num_envs)])
            self.begin(over)
        rewards = np.where(again, 0.0, 1.0)
        if self.fault in ("short", "one"):
            return {key: x[:1 if self.fault == "one" else -1] for key, x in self.look().items()}, rewards, over, none, info
        if self.fault == "letters":
            return {key: x.astype(str) for key, x in self.look().items()}, rewards, over, none, info
        if self.fault == "choice":
            return {**self.look(), "even": np.full(self.num_envs, -1)}, rewards, over, none, info
        if self.fault.startswith("reward"):
            wrong = {"reward": 1.0, "reward one": rewards[:1], "reward text": rewards.astype(str), "reward none": rewards.astype(object)}[self.fault]
            return self.look(), wrong, over, none, info
        if self.fault.startswith("end"):
            wrong = {"end": False, "end one": over[:1], "end half": over * 0.5}[self.fault]
            return self.look(), rewards, *((wrong, none) if self.cut else (over, wrong)), info
        if self.fault == "four":
            return self.look(), rewards, over, info
        return self.look(), rewards[:, None] if self.seen else rewards, none if self.cut else over, over if self.cut else none, info


gymnasium.register("Count-v0", entry_point="counting:None", vector_entry_point=Count)
'''


def test_bytes_beside_numbers(folder):
    """A row is bytes, a gap up to a multiple of four, and floats, which alone are normalised: single and vector environments."""
    python = need()
    write(folder, "counting.py", COUNTING)
    bridge = Bridge(folder, 4, n_bytes=3, n_floats=4, id="counting:Count-v0", kind="vector",
                    kwargs=json.dumps({"length": 2, "cut": True, "seen": True}))
    bridge.ask(b"r")
    for step, (at, ended) in enumerate((((0, 0), False), ((0, 1), False), ((1, 0), True))):
        if step > 0:
            bridge.ask(b"s")
        for row in bridge.get("obs"):
            equal((row[:3], struct.unpack("<4f", bytes(row[4:]))), ([at[1], 7, 8], (*at, 1.0 - at[1], float(at[1]))))
        equal(bridge.get("truncs"), [int(ended)] * 4)
    for row in bridge.get("final_obs"):
        equal((row[:3], struct.unpack("<4f", bytes(row[4:]))), ([2, 7, 8], (0, 2, 1, 0)))
    bridge.close()
    mine(folder)
    environment = {**os.environ, "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
    shape = json.loads(run("env", "describe", "gym:boards:Told", cwd=folder, env=environment)[0])["shape"]
    equal([shape[key] for key in ("obs_size", "height", "width", "channels", "u8", "n_floats")], [194, 8, 8, 3, True, 2])
    out, _ = run("train", "gym:boards:Told", *python, *TINY, "--train.total_timesteps", "30k", "--policy.norm_obs", "true",
                 "--train.e3b_coef", "0.01", "--json", "-q", "-o", folder / "x.ckpt", cwd=folder)
    assert json.loads(out)["score"] > 7, out
    # outside Trawl bytes are given as numbers from 0 to 255, whatever is normalised
    run("export", folder / "x.ckpt", "-o", folder / "x.safetensors", "--samples", folder / "x.jsonl", cwd=folder)
    program = folder / "run_policy"
    subprocess.run(["cc", "-std=c99", "-I", os.path.join(ROOT, "trainer", "export"), "-o", program,
                    os.path.join(ROOT, "examples", "policy", "run_policy.c"), "-lm"], check=True)
    lines = [json.loads(line) for line in open(folder / "x.jsonl", encoding="utf-8")]
    equal({*lines[0]["obs"][:192]}, {0})
    text = "".join("\n" * line["begins"] + " ".join(map(repr, line["obs"])) + "\n" for line in lines)
    done = subprocess.run([program, folder / "x.safetensors"], input=text, capture_output=True, text=True, check=True)
    equal(done.stdout.split(), [str(int(line["columns"][1] > line["columns"][0])) for line in lines])


def test_vector_environments(folder):
    """What a step gives in each way of resetting: observations, flags, last observations."""
    python = need()
    write(folder, "counting.py", COUNTING)
    for mode, cut in (("SAME_STEP", True), ("SAME_STEP", False), ("DISABLED", True), ("NEXT_STEP", True), ("NEXT_STEP", False)):
        kwargs = json.dumps({"mode": mode, "length": 3, "cut": cut})
        bridge = Bridge(folder, 5, id="counting:Count-v0", kind="vector", kwargs=kwargs, spin_ns=50000 if cut else 0)
        bridge.ask(b"r")
        equal(bridge.get("obs"), [[0, 0, 1, 0]] * 5)
        idles, period = mode == "NEXT_STEP", 4 if mode == "NEXT_STEP" else 3
        for t in range(1, 14):
            bridge.ask(b"s")
            episode, at = (t - 1) // period, (t - 1) % period + 1
            ends, idle = at == 3, at == 4
            seen = [episode, at] if at < 3 or (ends and idles) else [episode + 1, 0]
            equal(bridge.get("obs"), [[*seen, 1 - seen[1] % 2, seen[1] % 2]] * 5)
            equal(bridge.get("rewards"), [0 if idle else 1] * 5)
            equal(bridge.get("terms"), [int(ends and not cut)] * 5)
            equal(bridge.get("truncs"), [int(ends and cut)] * 5)
            equal(bridge.late(), idles)
            if cut and ends and not idles:
                equal(bridge.get("final_obs"), [[episode, 3, 0, 1]] * 5)
        bridge.close()
        for processes in (0, 2, 3) if cut else (1,):  # a whole, each half by a process, and three at a time
            out = run("train", "gym:counting:Count-v0", "--env.vector", "true", "--env.kwargs", kwargs, *python, "--train.device", "cpu",
                      "--env.processes", processes, "--train.total_timesteps", "4k", "--json", "-q", cwd=folder)[0]
            result = json.loads(out)
            equal((result["score"], result["ep_length"], result["train"]["ep_length"]), (3, 3, 3))
    for fault, text in (("short", "observations have the shape"), ("one", "observations have the shape"), ("letters", "observations have the type <U"), ("choice", "which their space does not hold"), ("four", "expected 5, got 4")):
        fails("train", "gym:counting:Count-v0", "--env.vector", "true", "--env.kwargs", json.dumps({"fault": fault}), *python, "--train.device", "cpu", *TINY,
              code=1, cwd=folder, says=[text, "its step returned (", "a step returns (observation"])
    for fault in ("reward", "reward one", "reward text", "reward none", "end", "end one", "end half"):
        fails("train", "gym:counting:Count-v0", "--env.vector", "true", "--env.kwargs", json.dumps({"fault": fault, "cut": fault == "end half"}), *python, *TINY,
              code=1, cwd=folder, says=["rewards of the shape" if "reward" in fault else "ends of the shape", "are needed, one an instance", "a step returns (observation"])
    for fault, text in (("unsaid", "has a reward or an end in the step after one that ended an episode"), ("word", "is 'SAME_STEP'; one of gymnasium.vector")):
        fails("train", "gym:counting:Count-v0", "--env.vector", "true", "--env.kwargs", json.dumps({"fault": fault}), *python, *TINY,
              code=2, cwd=folder, says=[text, "autoreset_mode"])
    write(folder, "old.py", "import gymnasium\ngymnasium.__version__ = '0.29.1'\n")
    fails("train", "gym:old:CartPole-v1", "--env.vector", "true", *python, code=2, cwd=folder, says=["has gymnasium 0.29.1", "1.0 or later", "-m pip install -U"])
    assert "registered without a vector_entry_point" in run("train", "gym:Acrobot-v1", "--env.vector", "true", *python, code=2)[1]


def test_ales_vector_environment(folder):
    python = need()
    if subprocess.run([PYTHON, "-c", "import ale_py"], capture_output=True).returncode != 0:
        raise tap.Skip("%s has no ale_py" % PYTHON)
    out = run("train", "gym:ale_py:ALE/Pong-v5", "--env.vector", "true", *python, "--train.device", "cpu", "--train.total_agents", 8, "--train.horizon", 32,
              "--train.minibatch_size", 256, "--train.total_timesteps", "2k", "--train.eval_episodes", 2, "--train.eval_max_steps", 64, "--json", "-q",
              cwd=folder)[0]
    equal(json.loads(out)["env_steps"], 2000)


# With the interface of EnvPool (700 MB): it answers in another order than it was asked, and resets an ended instance in its next step.
POOL = '''
import numpy as np
from gymnasium import spaces


def list_all_envs():
    return ["Count-v0"]


def make(name, env_type, num_envs, seed, num_threads, length=3, inner=True):
    assert env_type == "gymnasium" and len(seed) == num_envs and 1 <= num_threads <= num_envs
    return (Inner if inner else Counting)(num_envs, np.array(seed), length)


class Counting:
    observation_space, action_space = spaces.Box(-1, 1e6, (3,), np.float32), spaces.Discrete(2)

    def __init__(self, n, seed, length):
        self.at, self.length = np.stack([0 * seed, 0 * seed, seed], 1).astype(np.float32), length

    def answer(self, ids):
        ids = np.asarray(ids, np.int32)[::-1]
        return self.at[ids], {"env_id": ids, "players": {"env_id": ids}}

    def reset(self):
        return self.answer(range(len(self.at)))

    def send(self, actions):
        assert actions.shape == (len(self.at),), actions
        ended = self.at[:, 1] == self.length
        self.at[:, 0] += ended
        self.at[:, 1] = np.where(ended, 0, self.at[:, 1] + 1)

    def recv(self):
        obs, infos = self.answer(range(len(self.at)))
        over, odd = obs[:, 1] == self.length, obs[:, 2] % 2 == 1  # instances of an odd seed are cut, others end
        return obs, obs[:, 2] * (obs[:, 1] > 0), over & ~odd, over & odd, infos

    def close(self):
        pass


class Inner(Counting):
    """With what EnvPool's classes of C++ have: arrays by number, both flags of an end in one."""
    _state_keys, _action_keys = ["info:env_id", "done", "reward", "trunc", "obs"], ["env_id", "action"]
    n_sent = 0

    def _from(self, actions):
        return [np.arange(len(self.at), dtype=np.int32), actions.astype(np.int32)]

    def send(self, actions):
        self.n_sent += 1
        assert self.n_sent == 1
        super().send(actions)

    def _send(self, given):
        assert given[1].dtype == np.int32
        super().send(given[1])

    def _recv(self):
        obs, rewards, terms, truncs, infos = self.recv()
        return [infos["env_id"], terms | truncs, rewards, truncs, obs]
'''


def test_an_environment_of_envpool(folder):
    python = need()
    write(folder, "envpool.py", POOL)
    os.environ["PYTHONPATH"] = str(folder)
    try:
        for inner in (True, False):
            bridge = Bridge(folder, 5, {"obs": 3, "final_obs": 3, "actions": 1, "reals": 1}, n_floats=3, id="Count-v0", kind="envpool",
                            kwargs=json.dumps({"inner": inner}))
            seeds = [11, 12, 13, 15, 14]
            struct.pack_into("=5Q", bridge.map, bridge.at["seeds"][0], *seeds)
            bridge.ask(b"r")
            equal(bridge.get("obs"), [[0, 0, s] for s in seeds])
            for t in range(1, 10):
                bridge.ask(b"s")
                episode, at = t // 4, t % 4
                equal(bridge.get("obs"), [[episode, at, s] for s in seeds])
                equal(bridge.get("rewards"), [s * (at > 0) for s in seeds])
                equal(bridge.get("terms"), [int(at == 3 and s % 2 == 0) for s in seeds])
                equal(bridge.get("truncs"), [int(at == 3 and s % 2 == 1) for s in seeds])
                equal(bridge.late(), True)
            bridge.close()
        result = json.loads(run("train", "envpool:Count-v0", *python, "--env.kwargs", '{"length": 4}', "--train.device", "cpu", "--train.total_timesteps", "4k",
                                "--json", "-q", cwd=folder)[0])
        equal((result["ep_length"], result["train"]["ep_length"]), (4, 4))
        assert "EnvPool has no 'Coun-v0'; did you mean Count-v0" in run("train", "envpool:Coun-v0", *python, code=2)[1]
    finally:
        del os.environ["PYTHONPATH"]
