"""Environments of Gymnasium: real ones and the user's own, by train, sweep, eval and rerun; what they break costs a trial.

The Python that has gymnasium: TRAWL_GYM_PYTHON, else that of tools/test --servers, else python3. Tests that need one are
skipped without it.
"""
import functools
import json
import os
import re
import shlex
import subprocess
import sys

import tap
from tap import equal, fails, run, show, write

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SERVERS = os.environ.get("TRAWL_SERVERS", "")
PYTHON = os.environ.get("TRAWL_GYM_PYTHON") or (os.path.join(SERVERS, "bin", "python") if SERVERS else "python3")

# An environment whose faults its arguments choose. The observation is the number that has to be guessed: 1 for the same choice.
MINE = '''
import os, random, time
import gymnasium, numpy as np
from gymnasium import spaces


class Guess(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, fault="", after=300, length=8):
        self.fault, self.after, self.length, self.steps = fault, after, length, 0
        if fault == "make":
            raise RuntimeError("the board is missing")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.look(), {}

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
            if self.fault == "old":
                return obs, reward, ended, {}
            if self.fault == "print":
                print("a line for the terminal")
        return obs, reward, ended, False, {}


gymnasium.register("Guess-v3", entry_point=Guess)


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

class Many(Mixed):
    def __init__(self, n=9, choices=2):
        self.action_space = spaces.MultiDiscrete([choices] * n)
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
'''
TINY = ["--train.total_timesteps", "8k", "--train.total_agents", "8", "--train.horizon", "16", "--train.minibatch_size", "128",
        "--train.eval_episodes", "8", "--train.device", "cpu", "--train.threads", "1", "--policy.hidden_size", "8"]


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
    """A registered id and a class of a module; the same seed gives the same bytes, by the number of processes too."""
    python = mine(folder)
    scores = []
    for game, processes in (("gym:boards:Guess", 1), ("gym:boards:Guess-v3", 3)):
        out, _ = run("train", game, *python, *TINY, "--train.total_timesteps", "30k", "--env.processes", processes, "--json", "-q",
                     "-o", folder / ("%d.ckpt" % processes), cwd=folder)
        scores.append(json.loads(out)["score"])
    assert scores[0] > 7, scores
    equal(scores[0], scores[1])
    text = [run("eval", folder / ("%d.ckpt" % n), "--episodes", 8, "--json", cwd="/")[0] for n in (1, 3)]
    equal(*[json.loads(t)["score"] for t in text])
    assert json.loads(text[0])["perf"] == "nan", text
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


def test_spaces_of_every_kind(folder):
    python = mine(folder)
    out, err = run("train", "gym:boards:Mixed", *python, *TINY, "--json", "-q", cwd=folder)
    equal((json.loads(out)["score"], json.loads(out)["ep_length"]), (6, 6))
    assert "['text'] (Text) is left out" in err, err
    environment = {**os.environ, "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
    shape = json.loads(run("env", "describe", "gym:boards:Mixed", cwd=folder, env=environment)[0])["shape"]
    equal((shape["obs_size"], [h["size"] for h in shape["heads"]], shape["may_truncate"]), (4 + 3 + 2 + 2 + 3, [2, 4, 3, 2], True))
    out, _ = run("env", "check", "gym:boards:Mixed", "--steps", 60, cwd=folder, env=environment)
    assert "FAULT" not in out and "speed" in out, out


def test_images(folder):
    """uint8 images stay bytes, channels first or last; numbers beside an image go past the convolutions; frames are stacked."""
    python = mine(folder)
    environment = {**os.environ, "PATH": os.path.dirname(PYTHON) + ":" + os.environ["PATH"]}
    shape = json.loads(run("env", "describe", "gym:boards:Shown", cwd=folder, env=environment)[0])["shape"]
    equal([shape[key] for key in ("obs_size", "height", "width", "channels", "u8", "byte_scale")], [192, 8, 8, 3, True, 255])
    out, _ = run("env", "check", "gym:boards:Shown", "--steps", 60, cwd=folder, env=environment)
    assert "FAULT" not in out, out
    for kwargs, more in (({}, ["--env.frame_stack", 2]), ({"told": True}, []), ({"told": True, "floats": True}, [])):
        checkpoint = folder / "x.ckpt"
        out, _ = run("train", "gym:boards:Shown", *python, *TINY, "--train.total_timesteps", "30k", "--policy.encoder", "conv",
                     "--policy.conv_channels", 8, "--policy.conv_layers", 1, "--env.kwargs", json.dumps(kwargs), *more,
                     "--json", "-q", "-o", checkpoint, cwd=folder)
        assert json.loads(out)["score"] > 7, (kwargs, out)
        again, _ = run("eval", checkpoint, "--episodes", 8, "--json", cwd="/")
        equal(json.loads(again)["score"], json.loads(out)["score"])


def test_what_it_breaks_is_said(folder):
    for fault, text, code in (("raise", "ValueError: the board broke", 1), ("exit", "ended with exit code 7", 1),
                              ("crash", "signal 11", 1), ("shape", "has the shape (3,), its space (2,)", 1),
                              ("nan", "number 1 of an observation", 1), ("reward", "a reward of instance", 1),
                              ("old", "not enough values to unpack", 1), ("make", "RuntimeError: the board is missing", 1)):
        message = faulty(folder, fault, code)
        assert text in message and "gym:boards:Guess" in message, (fault, message)
        if fault in ("raise", "crash"):
            assert "boards.py" in message and re.search(r"in the step of instance \d", message), message
    message = faulty(folder, "hang", more=("--env.timeout_s", "3"))
    assert "no answer within 3 s" in message and "boards.py" in message and "in step" in message, message
    out, err = run("train", "gym:boards:Guess", *mine(folder), *TINY, "-q", "--json", "--env.kwargs", '{"fault": "print"}', cwd=folder)
    assert json.loads(out)["env_steps"] == 8000 and "a line for the terminal" in err, (out, err)
    gone(folder)


def test_wrong_names(folder):
    fails("train", "gym:", code=2, says="gym:CartPole-v1")
    fails("train", "gym:CartPole-v1", "--env.python", "no-such-python", code=2, says=["'no-such-python' cannot be started", "env.python"])
    empty = write(folder, "python", "#!/bin/sh\nexec python3 -S -I \"$@\"\n")
    empty.chmod(0o755)
    fails("train", "gym:CartPole-v1", "--env.python", empty, code=2, says=["pip install gymnasium", "env.python"])
    fails("train", "gym:CartPole-v1", "pong", code=2, says="two games are named")
    python = mine(folder)
    for game, text in (("gym:CartPol-v1", "CartPole"), ("gym:nowhere:X-v0", "no module 'nowhere'"),
                       ("gym:boards:Gess", "does boards register it"), ("gym:CartPole-v77", "CartPole")):
        fails("train", game, *python, code=2, says=text, cwd=folder)
    fails("train", "gym:CartPole-v1", *python, "--env.kwargs", "[1]", code=2, says="a JSON object is needed")
    fails("train", "gym:CartPole-v1", *python, "--env.score_max", "-3", code=2, says="below env.score_min")
    fails("train", "gym:boards:Many", *python, code=2, says="9 components, at most 8", cwd=folder)
    fails("train", "gym:boards:Many", *python, "--env.kwargs", '{"n": 1, "choices": 1}', code=2, says="one choice only", cwd=folder)
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
    fails("sweep", config, *python, "--store", folder / "s.db", "--name", "b", "--sweep.metric", "perf", code=2, says="env.score_max")
    gone(folder)


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
            words += ["--steps", "200"]
        run(*words[1:], *(["--trials", 3, "-q"] if words[1] == "sweep" else []), cwd=folder, env=environment)
    equal([t["state"] for t in show(folder / "corridor.db", "first")["trials"]], ["done"] * 3)


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
