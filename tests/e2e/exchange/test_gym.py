"""Environments of Gymnasium: real ones and the user's own, by train, sweep, eval and rerun; what they break costs a trial.

The Python that has gymnasium: TRAWL_GYM_PYTHON, else that of tools/test --servers, else python3. Tests that need one are
skipped without it.
"""
import functools
import json
import mmap
import os
import re
import select
import shlex
import socket
import struct
import subprocess

import tap
from tap import equal, fails, run, show, write

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
SERVERS = os.environ.get("TRAWL_SERVERS", "")
PYTHON = os.environ.get("TRAWL_GYM_PYTHON") or (os.path.join(SERVERS, "bin", "python") if SERVERS else "python3")

# An environment whose faults its arguments choose. The observation is the number that has to be guessed: 1 for the same choice.
MINE = '''
import fractions, multiprocessing, os, random, subprocess, time
import gymnasium, numpy as np
from gymnasium import spaces


class Guess(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, fault="", after=300, length=8):
        self.fault, self.after, self.length, self.steps = fault, after, length, 0
        if fault == "make":
            raise RuntimeError("the board is missing")
        if fault == "child":
            subprocess.Popen(["sh", "-c", "sleep 300; : child of " + __file__])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return (self.look(), {}) if self.fault != "again" or self.steps < self.after else self.look()

    def look(self):
        self.right = int(self.np_random.integers(2))
        return np.array([1.0, -1.0] if self.right else [-1.0, 1.0], np.float32)

    def step(self, action):
        self.at += 1
        self.steps += 1
        reward, ended = float(action == self.right), self.at == self.length
        obs = self.look()
        if self.fault and self.steps == self.after:
            if self.fault == "raise":
                raise ValueError("the board broke")
            if self.fault == "exit":
                os._exit(7)
            if self.fault == "crash":
                import ctypes
                ctypes.string_at(0)
            if self.fault == "hang":
                time.sleep(10000)
            if self.fault == "shape":
                obs = np.zeros(3, np.float32)
            if self.fault == "nan":
                obs[1] = np.nan
            if self.fault == "reward":
                reward = float("inf")
            if self.fault == "rewards":
                reward = np.array([reward, 0.5])
            if self.fault == "text":
                reward = "1.5"
            if self.fault == "no reward":
                reward = None
            if self.fault == "fraction":
                reward = fractions.Fraction(1, 2)
            if self.fault == "end":
                return obs, reward, "False", False, {}
            if self.fault == "cut":
                return obs, reward, False, {"a": True}, {}
            if self.fault == "letters":
                obs = np.array(["1", "2"])
            if self.fault == "complex":
                obs = obs * 1j
            if self.fault == "old":
                return obs, reward, ended, {}
            if self.fault == "flag":
                return obs, reward, np.array([False, True]), False, {}
            if self.fault == "none":
                obs = None
            if self.fault == "fork":
                os.fork()
            if self.fault == "pool":
                with multiprocessing.get_context("fork").Pool(1) as pool:  # ended by SIGTERM
                    pool.map(abs, [1])
            if self.fault == "mute":
                os.close(2)
                raise ValueError("nobody hears")
            if self.fault == "long":
                reward = 10**400
            if self.fault == "wide":
                raise ValueError("the board " + chr(0) + " " + chr(228) * 10000)
            if self.fault == "group":
                raise ExceptionGroup("both", [ValueError("the board"), ValueError("the pieces")])
            if self.fault == "print":
                print("a line for the terminal")
        if self.fault == "large":
            reward *= 1e5
        if self.fault == "one":  # as environments for a vector of one give it
            reward = np.array([reward])
        return obs, reward, ended, False, {"steps": self.steps, "board": {"right": np.float32("nan" if self.fault == "info" else self.right)}}


    def close(self):
        if self.fault == "close":
            raise RuntimeError("the lid is stuck")


class Plain:  # with what is needed alone
    observation_space, action_space = Guess.observation_space, Guess.action_space

    def __init__(self):
        board = Guess()
        self.reset, self.step = board.reset, board.step


gymnasium.register("Guess-v3", entry_point=Guess)


class Parallel:  # of several agents, as PettingZoo has them
    possible_agents = ["a", "b"]

    def observation_space(self, agent):
        return spaces.Discrete(2)


class Shaped(Guess):
    def __init__(self, size):
        super().__init__()


class Missing(Guess):
    def __init__(self):
        import no_such


class Bound(Guess):
    def __init__(self, low, high):
        super().__init__()
        self.action_space = spaces.Box(float(low), float(high), (2,), np.float64)

    def step(self, action):
        assert self.action_space.contains(action), action
        return super().step(0)


class Echo(Guess):
    """What it is given is what it observes."""
    observation_space = spaces.Box(-9, 9, (4,), np.float64)
    action_space = spaces.Tuple((spaces.Discrete(3, start=1), spaces.Box(-2, 2, (1,), np.int32)))

    def look(self):
        return np.zeros(4)

    def step(self, action):
        assert self.action_space.contains(action), action
        return np.array([action[0].item(), action[1][0], 0, 0]), 0.0, False, False, {}


def vector():
    return gymnasium.make_vec("CartPole-v1", num_envs=2)


def nothing():
    return None


class Wide(Guess):
    observation_space = spaces.Discrete(10**6)


class Mixed(gymnasium.Env):
    """Observations and actions of every kind; it checks that what comes back is in its space."""
    observation_space = spaces.Dict({
        "text": spaces.Text(8), "seen": spaces.Box(0, 255, (2, 2, 1), np.uint8), "turn": spaces.Discrete(3, start=5),
        "pair": spaces.Tuple((spaces.MultiBinary(2), spaces.MultiDiscrete([2, 3])))})
    action_space = spaces.Dict({"go": spaces.Discrete(3, start=-1), "arms": spaces.MultiDiscrete([2, 4]), "on": spaces.MultiBinary(1)})

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n = 0
        return self.look(), {}

    def look(self):
        return {"text": "hello", "seen": np.full((2, 2, 1), 51 * (self.n % 6), np.uint8), "turn": 5 + self.n % 3,
                "pair": (np.array([1, 0], np.int8), np.array([1, self.n % 3]))}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.n += 1
        return self.look(), 1.0, False, self.n == 6, {}
'''
MINE += '''

class Partial(Mixed):
    def look(self):
        return {key: part for key, part in super().look().items() if key != "turn" or self.n < 3}


class Many(Mixed):
    def __init__(self, n=9, choices=2):
        self.action_space = spaces.MultiDiscrete(choices if isinstance(choices, list) else [choices] * n)
'''
MINE += '''

class Shown(Guess):
    """The same shown as an image: the left or the right half is bright; told, a number says which, and the image is dark."""
    def __init__(self, told=False, floats=False):
        super().__init__()
        self.told = told
        image = spaces.Box(0, 255, (3, 8, 8), np.uint8)
        number = spaces.Box(0, 255, (2,), np.float32 if floats else np.uint8)
        self.observation_space = spaces.Dict({"number": number, "image": image}) if told else image

    def look(self):
        super().look()
        image = np.zeros((3, 8, 8), np.uint8)
        if self.told:
            number = np.array([self.right, 1], self.observation_space["number"].dtype)
            return {"number": number * 200 if number.dtype == np.uint8 else number, "image": image}
        image[1, :, 4:] = 200 * self.right
        image[1, :, :4] = 200 * (1 - self.right)
        return image


class Told(Shown):
    def __init__(self):
        super().__init__(told=True, floats=True)


class Scaled(Shown):
    def look(self):
        return super().look() / 255
'''
TINY = ["--train.total_timesteps", "8k", "--train.total_agents", "8", "--train.horizon", "16", "--train.minibatch_size", "128",
        "--train.eval_episodes", "8", "--train.device", "cpu", "--train.threads", "1", "--policy.hidden_size", "8"]


TENSORS = (("actions", "<i4", 2), ("reals", "<f4", 2), ("obs", "<f4", 4), ("final_obs", "<f4", 4), ("rewards", "<f4", 0), ("terms", "u1", 0),
           ("truncs", "u1", 0), ("seeds", "<u8", 0), ("lines", "<i8", 16))


class Bridge:
    """One process of the program's, played by hand: what it writes into the shared memory, step by step."""

    def __init__(self, folder, n, columns_of={}, n_bytes=0, n_floats=4, spin_ns=50000, **task):
        self.n, self.at, size, rows = n, {}, 0, []
        for name, dtype, columns in TENSORS:
            columns = columns_of.get(name, columns)
            if n_bytes and name in ("obs", "final_obs"):
                dtype, columns = "u1", (n_bytes + 3) // 4 * 4 + 4 * n_floats
            rows.append([name, dtype, size, n, columns])
            self.at[name] = (size, dtype, columns)
            size += 64 * (1 + n * max(columns, 1) * int(dtype[-1]) // 64)
        self.asked = 0
        self.memory, text = os.memfd_create("memory"), os.memfd_create("text")
        os.ftruncate(self.memory, size)
        self.socket, theirs = socket.socketpair()
        self.wakes_it, self.wakes_us = os.eventfd(0, os.EFD_SEMAPHORE), os.eventfd(0, os.EFD_SEMAPHORE)
        source = "".join(open(os.path.join(ROOT, "envs", "gym", name), encoding="utf-8").read() for name in ("bridge_spaces.py", "bridge.py"))
        task = {"path": str(folder), "info": "", "byte_scale": 255, "n": n, "cores": 2, "processes": 1, "process": 0, "spin_ns": spin_ns, "tensors": rows, "n_bytes": n_bytes,
                "n_floats": n_floats, **task}

        def give():
            given = [os.dup2(fd, 40 + i) for i, fd in enumerate((theirs.fileno(), self.memory, text, self.wakes_it, self.wakes_us))]
            for i, fd in enumerate(given):
                os.dup2(fd, 3 + i)
        self.process = subprocess.Popen([PYTHON, "-c", source, json.dumps(task)], pass_fds=(3, 4, 5, 6, 7), preexec_fn=give, stdin=subprocess.DEVNULL)
        theirs.close()
        self.map, self.text = mmap.mmap(self.memory, 0), text
        self.answer()

    def answer(self):
        assert self.wakes_us in select.select([self.wakes_us, self.socket], [], [])[0], os.pread(self.text, 4000, 0).decode()
        os.eventfd_read(self.wakes_us)

    def ask(self, what, first=0, end=None):
        line = self.at["lines"][0]  # struct gym_line: asked, awaited, two commands, answered
        struct.pack_into("=3q", self.map, line + 16 + 24 * (self.asked % 2), what == b"s", first, self.n if end is None else end)
        self.asked += 1
        struct.pack_into("=2q", self.map, line, self.asked, 1)
        os.eventfd_write(self.wakes_it, 1)
        self.answer()
        equal(struct.unpack_from("=q", self.map, line + 64)[0], self.asked)

    def get(self, name):
        at, dtype, columns = self.at[name]
        kind = {"<f4": "f", "u1": "B", "<i4": "i", "<u8": "Q", "<i8": "q"}[dtype]
        values = struct.unpack_from("=%d%s" % (self.n * max(columns, 1), kind), self.map, at)
        return [list(values[i * columns:(i + 1) * columns]) for i in range(self.n)] if columns else list(values)

    def late(self):
        """Are instances reset in the step after the one that ended an episode?"""
        return struct.unpack_from("=q", self.map, self.at["lines"][0] + 96)[0] == 1

    def close(self):
        self.socket.close()
        os.close(self.wakes_it), os.close(self.wakes_us)
        equal(self.process.wait(tap.PATIENCE_S), 0)


@functools.lru_cache(None)
def has_gymnasium():
    found = subprocess.run([PYTHON, "-c", "import gymnasium"], capture_output=True, text=True)
    return found.returncode == 0


def need():
    if not has_gymnasium():
        raise tap.Skip("%s has no gymnasium; TRAWL_GYM_PYTHON names a Python that has" % PYTHON)
    return ["--env.python", PYTHON]


def mine(folder):
    python = need()
    write(folder, "boards.py", MINE)
    return python


def faulty(folder, fault, code=1, game="gym:boards:Guess", more=()):
    return fails("train", game, *mine(folder), *TINY, "-q", "--env.kwargs", json.dumps({"fault": fault}), *more, code=code, cwd=folder)


def test_a_component_of_one_choice(folder):
    """Beside others it is trained with them, and it is always 0."""
    given = ["--env.kwargs", '{"choices": [1, 3, 1]}']
    out, _ = run("train", "gym:boards:Many", *mine(folder), *TINY, *given, "--json", "-q", "-o", folder / "a.ckpt", cwd=folder)
    equal(json.loads(out)["score"], 6)
    equal(json.loads(run("eval", folder / "a.ckpt", "--episodes", 2, "--json", cwd=folder)[0])["score"], 6)


def gone(folder):
    """No helper process is left that knows the folder."""
    return tap.wait_for(lambda: subprocess.run(["pgrep", "-f", str(folder) + '.*"byte_scale"'], capture_output=True).returncode == 1)


def test_cartpole_learns(folder):
    """gymnasium's own: the policy that its defaults train keeps the pole up several times as long as a random one (22 steps)."""
    out, _ = run("train", "gym:CartPole-v1", *need(), "--train.total_timesteps", "200k", "--env.score_max", 500, "--json", "-q")
    result = json.loads(out)
    assert result["score"] > 120 and abs(result["perf"] - result["score"] / 500) < 1e-3, out
    assert 0 < result["outside"] < 1, out


def test_a_users_module(folder):
    """A registered id and a class of a module; the same seed gives the same bytes, by the number of processes too, and by
    rewards that are an array of one number."""
    python = mine(folder)
    scores = []
    for game, processes in (("gym:boards:Guess", 1), ("gym:boards:Guess-v3", 3)):
        out, _ = run("train", game, *python, *TINY, "--train.total_timesteps", "30k", "--env.processes", processes, "--json", "-q",
                     "--env.kwargs", '{"fault": "%s"}' % ("one" if processes == 3 else ""), "-o", folder / ("%d.ckpt" % processes), cwd=folder)
        scores.append(json.loads(out)["score"])
    assert scores[0] > 7, scores
    equal(scores[0], scores[1])
    text = [run("eval", folder / ("%d.ckpt" % n), "--episodes", 8, "--json", cwd="/")[0] for n in (1, 3)]
    equal(*[json.loads(t)["score"] for t in text])
    assert [json.loads(text[0])[key] for key in ("perf", "perf_se")] == [None, None], text
    run("train", "--resume", folder / "1.ckpt", "--train.total_timesteps", "34k", "-q", cwd="/")
    # a config in another folder: modules and Python are found from there
    (folder / "sub").mkdir()
    write(folder / "sub", "boards.py", MINE)
    config = write(folder / "sub", "x.ini", "[env]\nname = gym:boards:Guess-v3\nkwargs = {\"length\": 3}\n")
    text, _ = run("train", config, *python, "--print-config", cwd="/")
    assert "path = %s\n" % os.path.realpath(folder / "sub") in text, text
    out, _ = run("train", config, *python, *TINY, "--json", "-q", cwd="/")
    equal(json.loads(out)["ep_length"], 3)
    gone(folder)


def test_large_rewards(folder):
    """By default their size does not matter."""
    out, _ = run("train", "gym:boards:Guess", *mine(folder), *TINY, "--train.total_timesteps", "30k", "--env.kwargs", '{"fault": "large"}', "--json", "-q",
                 cwd=folder)
    assert json.loads(out)["score"] > 7e5, out


def test_spaces_of_every_kind(folder):
    python = mine(folder)
    out, err = run("train", "gym:boards:Mixed", *python, *TINY, "--json", "-q", cwd=folder)
    equal((json.loads(out)["score"], json.loads(out)["ep_length"]), (6, 6))
    assert "['text'] (Text) is left out" in err, err
    environment = {**os.environ, "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
    shape = json.loads(run("env", "describe", "gym:boards:Mixed", cwd=folder, env=environment)[0])["shape"]
    equal((shape["obs_size"], [h["size"] for h in shape["heads"]], shape["may_truncate"]), (4 + 3 + 2 + 2 + 3, [2, 4, 3, 2], True))
    out, _ = run("env", "check", "gym:boards:Mixed", "--steps", 60, "--seconds", tap.PATIENCE_S, cwd=folder, env=environment)
    assert "FAULT" not in out and "speed" in out, out
    # bounds that no 32-bit number has, which actions reach; choices are numpy's numbers, whole numbers are the nearest ones
    run("train", "gym:boards:Bound", *python, *TINY, "-q", "--env.kwargs", '{"low": -0.1, "high": 0.1}', cwd=folder)
    bridge = Bridge(folder, 4, id="boards:Echo", kind="gym", kwargs="")
    bridge.ask(b"r")
    for i, (choice, number) in enumerate(((0, -1.6), (1, -0.4), (2, 0.6), (0, 1.4))):
        struct.pack_into("=2i", bridge.map, bridge.at["actions"][0] + 8 * i, choice, 0)
        struct.pack_into("=2f", bridge.map, bridge.at["reals"][0] + 8 * i, 0, number)
    bridge.ask(b"s")
    equal(bridge.get("obs"), [[1, -2, 0, 0], [2, 0, 0, 0], [3, 1, 0, 0], [1, 1, 0, 0]])
    bridge.close()


def test_images(folder):
    """uint8 images stay bytes, channels first or last; numbers beside an image go past the convolutions; frames are stacked."""
    python = mine(folder)
    environment = {**os.environ, "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
    shape = json.loads(run("env", "describe", "gym:boards:Shown", cwd=folder, env=environment)[0])["shape"]
    equal([shape[key] for key in ("obs_size", "height", "width", "channels", "u8", "byte_scale")], [192, 8, 8, 3, True, 255])
    out, _ = run("env", "check", "gym:boards:Shown", "--steps", 60, "--seconds", tap.PATIENCE_S, cwd=folder, env=environment)
    assert "FAULT" not in out, out
    for kwargs, more in (({}, ["--env.frame_stack", 2]), ({"told": True}, []), ({"told": True, "floats": True}, [])):
        checkpoint = folder / "x.ckpt"
        out, _ = run("train", "gym:boards:Shown", *python, *TINY, "--train.total_timesteps", "30k", "--policy.encoder", "conv",
                     "--policy.conv_channels", 8, "--policy.conv_layers", 1, "--env.kwargs", json.dumps(kwargs), *more,
                     "--json", "-q", "-o", checkpoint, cwd=folder)
        assert json.loads(out)["score"] > 7, (kwargs, out)
        again, _ = run("eval", checkpoint, "--episodes", 8, "--json", cwd="/")
        assert json.loads(again)["score"] > 7, (kwargs, again)


def test_what_it_breaks_is_said(folder):
    for fault, text, code in (("raise", "ValueError: the board broke", 1), ("exit", "ended with exit code 7", 1),
                              ("crash", "signal 11", 1), ("shape", "has the shape (3,), its space (2,)", 1),
                              ("nan", "number 1 of an observation", 1), ("reward", "a reward of instance", 1),
                              ("rewards", "its reward is array([", 2), ("text", "its reward is '1.5', of the type str", 2),
                              ("no reward", "its reward is None", 2), ("end", "its terminated is 'False', of the type str", 2),
                              ("cut", "its truncated is {'a': True}, of the type dict", 2), ("letters", "observation has the type <U1", 1),
                              ("complex", "real numbers are needed; its step returned", 1), ("long", "its reward is 1000", 2), ("mute", "ValueError: nobody hears", 1),
                              ("wide", "ValueError: the board   \u00e4\u00e4\u00e4", 1), ("group", "ExceptionGroup", 1),
                              ("old", "its step returned (array([", 1), ("flag", "its step returned (array([", 1),
                              ("none", "its step returned (None", 1), ("again", "its reset returned array([", 1), ("make", "RuntimeError: the board is missing", 1)):
        message = faulty(folder, fault, code)
        assert text in message and "gym:boards:Guess" in message, (fault, message)
        assert "<string>" not in message, message  # lines of ours
        assert ("(observation, reward, terminated, truncated, info)" in message) == (fault in ("shape", "letters", "complex", "old", "flag", "none", "again")), message
        if fault in ("raise", "crash"):
            assert "boards.py" in message and re.search(r"in the step of instance \d", message), message
    for low, high in ((0, "inf"), (-1e308, 1e308), (1, 1 + 1e-12)):
        fails("train", "gym:boards:Bound", *mine(folder), *TINY, "-q", "--env.kwargs", json.dumps({"low": low, "high": high}), code=2,
              says=["bounds", "RescaleAction"], cwd=folder)
    for name, text in (("Parallel", ["its observation_space is <bound method", "needs a wrapper"]), ("nothing", "its observation_space is None"), ("vector", "it is a vector environment of 2 instances"),
                       ("Shaped", ["missing 1 required positional argument: 'size'", "env.kwargs"])):
        fails("train", "gym:boards:" + name, *mine(folder), *TINY, "-q", code=2, says=text, cwd=folder)
    fails("train", "gym:boards:Partial", *mine(folder), *TINY, "-q", code=1, says="no key 'turn'; its step returned", cwd=folder)
    fails("train", "gym:boards:Missing", *mine(folder), *TINY, "-q", code=1, says=["No module named 'no_such'", "-m pip install"], cwd=folder)
    write(folder, "broken.py", "import boards\nboards.no_such\n")
    message = fails("train", "gym:broken:Guess", *mine(folder), *TINY, "-q", code=1, says="has no attribute 'no_such'", cwd=folder)
    assert "broken.py" in message and "<frozen" not in message.split("trawl: ")[-1], message
    fails("train", "gym:boards:Scaled", *mine(folder), *TINY, "-q", code=1, says="numbers of float64 that are not bytes", cwd=folder)
    message = faulty(folder, "hang", more=("--env.timeout_s", "3"))
    assert "no answer within 3 s" in message and "boards.py" in message and "in step" in message, message
    environment = {**os.environ, "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
    out, _ = run("env", "check", "gym:boards:Guess", "--env.kwargs", '{"fault": "raise", "after": 30}', "--steps", 60, "--seconds", tap.PATIENCE_S, code=1,
                 cwd=folder, env=environment)
    faults = [line for line in out.splitlines() if line.startswith("FAULT")]
    assert faults and all("the board broke" in line for line in faults), out
    out, err = run("train", "gym:boards:Guess", *mine(folder), *TINY, "-q", "--json", "--env.kwargs", '{"fault": "print"}', cwd=folder)
    assert json.loads(out)["env_steps"] == 8000 and "a line for the terminal" in err, (out, err)
    _, err = run("train", "gym:boards:Guess", *mine(folder), *TINY, "-q", "--env.kwargs", '{"fault": "close"}', cwd=folder)
    assert "the lid is stuck" in err and "another exception" not in err, err
    _, err = run("train", "gym:boards:Plain", *mine(folder), *TINY, "-q", cwd=folder)
    assert "Traceback" not in err, err
    for fault in ("child", "fork", "pool", "fraction"):
        run("train", "gym:boards:Guess", *mine(folder), *TINY, "-q", "--env.kwargs", json.dumps({"fault": fault}), cwd=folder)
    tap.wait_for(lambda: subprocess.run(["pgrep", "-f", "child of %s" % folder], capture_output=True).returncode == 1)
    gone(folder)


def test_wrong_names(folder):
    fails("train", "gym:", code=2, says="gym:CartPole-v1")
    fails("train", "gym:CartPole-v1", "--env.python", "no-such-python", code=2, says=["'no-such-python' cannot be started", "like venv/bin/python"])
    fails("train", "gym:CartPole-v1", "--env.python", folder, code=2, says=["%s' cannot be started" % folder, "like %s/bin/python" % folder])
    empty = write(folder, "python", "#!/bin/sh\nexec python3 -S -I \"$@\"\n")
    empty.chmod(0o755)
    fails("train", "gym:CartPole-v1", "--env.python", empty, code=2, says=["pip install gymnasium", "env.python"])
    fails("train", "gym:CartPole-v1", "pong", code=2, says="two games are named")
    python = mine(folder)
    for word in ("CartPole-v1", "boards:Guess", "boards.py"):
        fails("train", word, *python, code=2, says=["'%s' is neither a game nor a config" % word, "as gym:my_module:MyEnv"], cwd=folder)
    write(folder, "home", "#!/bin/sh\nexec '%s' \"$@\"\n" % PYTHON).chmod(0o755)
    text, _ = run("train", "gym:boards:Guess", "--env.python", "~/home", "--env.path", "~/", "--print-config", cwd="/", env={**os.environ, "HOME": str(folder)})
    assert "\npython = %s/home\npath = %s/\n" % (folder, folder) in text, text
    for game, text in (("gym:json:Guess", "json/__init__.py, register it"), ("gym:boards", "of your own: gym:MODULE:CLASS"), ("gym:CartPol-v1", "CartPole"), ("gym:nowhere:X-v0", "no module 'nowhere'"),
                       ("gym:./boards.py:Guess", "not the name of a module"), ("gym:boards.py:Guess", "without .py"),
                       ("gym:boards:Gess", "boards.py, register it"), ("gym:CartPole-v77", "CartPole")):
        fails("train", game, *python, code=2, says=text, cwd=folder)
    config = write(folder, "s.ini", "[env]\nname = gym:boards:Gess\n[sweep.train.total_timesteps]\nmin = 1M\nmax = 2M\n")
    fails("sweep", config, *python, "--store", folder / "s.db", "--name", "a", code=2, says="boards.py, register it")
    fails("train", "gym:CartPole-v1", *python, "--env.kwargs", "[1]", code=2, says="a JSON object is needed")
    fails("train", "gym:CartPole-v1", *python, "--env.kwargs", "{'a': 1}", code=2, says=["a JSON object is needed", "(Expecting property name"])
    for game in ("gym: CartPole-v1", "gym:Cart/Pole/v1"):
        fails("train", game, *python, code=2, says=["'%s' is not the id of an environment" % game[4:], "Malformed"], cwd=folder)
    for more in ([], ["--env.vector", "true"]):
        fails("train", "gym:CartPole-v1", *python, "--env.kwargs", '{"nope": 3}', *more, code=2,
              says=["unexpected keyword argument 'nope'", "env.kwargs gives it arguments"], cwd=folder)
    fails("train", "gym:CartPole-v1", *python, "--env.score_max", "-3", code=2, says="below env.score_min")
    fails("train", "gym:boards:Many", *python, "--env.kwargs", '{"n": 65}', code=2, says="65 components, at most 64", cwd=folder)
    fails("train", "gym:boards:Many", *python, "--env.kwargs", '{"n": 0}', code=2, says="there is nothing to choose", cwd=folder)
    fails("train", "gym:boards:Many", *python, "--env.kwargs", '{"n": 1, "choices": 1}', code=2, says="one choice only", cwd=folder)
    fails("train", "gym:boards:Many", *python, "--env.kwargs", '{"n": 1, "choices": 65537}', code=2, says=["65537 choices", "at most 65536"], cwd=folder)
    fails("train", "gym:boards:Wide", *python, code=2, says=["one of 1000000 values", "TransformObservation"], cwd=folder)
    fails("train", "gym:CartPole-v1", *python, "--env.nothing", "3", code=2, says="env.nothing")


def test_a_sweep(folder):
    """Searched by score where no range is named; a trial whose environment fails is lost alone; rerun gives the same bytes."""
    python = mine(folder)
    config = write(folder, "s.ini", """
[env]
name = gym:boards:Guess
kwargs = {"fault": "raise", "after": 1500}
processes = 1
[policy]
hidden_size = 8
[train]
device = cpu
threads = 1
total_agents = 8
horizon = 16
minibatch_size = 128
eval_episodes = 8
[sweep]
method = sobol
[sweep.train.total_timesteps]
values = 8k, 16k
""")
    run("sweep", config, *python, "--store", folder / "s.db", "--name", "a", "--trials", 4, "-q", cwd="/")
    study = show(folder / "s.db", "a")
    failed = [t for t in study["trials"] if t["state"] == "failed"]
    assert failed and len(failed) < 4, study["trials"]
    for trial in failed:
        assert "the board broke" in trial["reason"] and "boards.py" in trial["reason"], trial
    done = next(t for t in study["trials"] if t["state"] == "done")
    assert 0 <= done["score"] <= 8 and done["perf"] is None, done
    out, _ = run("rerun", "a", "--store", folder / "s.db", "--trial", done["number"], cwd="/")
    assert len(re.findall(r"(?:score|steps) .* equal", out)) == 2, out
    run("report", "a", "--store", folder / "s.db", "-o", folder / "a.html", cwd="/")
    os.environ.setdefault("MAKE_STUDY", "")  # which tests of another file need
    import serve_client
    with serve_client.serving(folder / "s.db") as s:
        equal([s.get(at)["env"] for at in ("/api/v1/studies/a",)] + [one["env"] for one in s.get("/api/v1/studies")["studies"]], ["gym:boards:Guess"] * 2)
    by = ["sweep", config, *python, "--store", folder / "s.db", "--trials", 1, "--env.kwargs", "{}", "-q", "--sweep.metric"]
    run(*by, "env/board.right", "--name", "info", "--env.info", "steps, board.right", cwd="/")
    trial = show(folder / "s.db", "info")["trials"][0]
    assert trial["state"] == "done" and 0 <= trial["score"] <= 1 and trial["score"] * 8 == int(trial["score"] * 8), trial
    fails(*by, "env/right", "--name", "none", "--env.info", "steps", code=2, says="it has env/steps; env.info names")
    fails("train", "gym:boards:Guess", *python, *TINY, "-q", "--env.info", "right", code=2, cwd=folder,
          says="env.info names 'right', but the info of the step that ended an episode has no such number; it has steps, board")
    assert "'board.right' of env.info is nan" in faulty(folder, "info", more=("--env.info", "steps, board.right"))
    fails("sweep", config, *python, "--store", folder / "s.db", "--name", "b", "--sweep.metric", "perf", code=2, says="env.score_max")
    gone(folder)


def test_a_searched_option_of_the_game_starts_no_more_processes(folder):
    """Of those that change no size: as many as a search of another option."""
    python = mine(folder)[1]
    write(folder, "counted", "#!/bin/sh\necho >> %s/$STARTS\nexec '%s' \"$@\"\n" % (folder, python)).chmod(0o755)
    for key, low, high in (("train.learning_rate", 0.001, 0.1), ("env.byte_scale", 1, 255)):
        config = write(folder, key + ".ini", "[env]\nname = gym:boards:Guess\nprocesses = 1\n[policy]\nhidden_size = 8\n[train]\ndevice = cpu\nthreads = 1\n"
                       "total_agents = 8\nhorizon = 16\nminibatch_size = 128\neval_episodes = 8\ntotal_timesteps = 1k\n[sweep]\nmethod = sobol\nconfirm = 0\n"
                       "[sweep.%s]\ndistribution = uniform\nmin = %g\nmax = %g\n" % (key, low, high))
        run("sweep", config, "--env.python", folder / "counted", "--store", folder / (key + ".db"), "--name", "a", "--trials", 6, "-q", cwd=folder,
            env={**os.environ, "STARTS": key})
    starts = [len((folder / key).read_text()) for key in ("train.learning_rate", "env.byte_scale")]
    assert starts[0] == starts[1] >= 12, starts


def test_the_commands_of_the_page(folder):
    """docs/own-games.md, from nothing to a finished sweep, as it stands there; trainings and sweep are shorter."""
    need()
    page = open(os.path.join(ROOT, "docs", "own-games.md"), encoding="utf-8").read()
    files = re.findall(r"`(\w+\.(?:py|ini))`:\n\n```(?:python|ini) gym\n(.*?)^```", page, re.M | re.S)
    equal(sorted(name for name, _ in files), ["corridor.ini", "corridor.py"])
    for name, text in files:
        write(folder, name, text.replace("120k", "24k").replace("40k", "8k").replace("160k", "24k"))
    lines = [line for block in re.findall(r"^```sh gym\n(.*?)^```", page, re.M | re.S) for line in block.splitlines()]
    assert len(lines) >= 4, lines
    environment = {**os.environ, "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "trawl", line
        if words[1] == "env":
            words += ["--steps", "200", "--seconds", str(tap.PATIENCE_S)]
        run(*words[1:], *(["--trials", 3, "-q"] if words[1] == "sweep" else []), cwd=folder, env=environment)
    equal([t["state"] for t in show(folder / "corridor.db", "first")["trials"]], ["done"] * 3)
