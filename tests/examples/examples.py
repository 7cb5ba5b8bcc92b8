#!/usr/bin/env python3
"""examples.py - every example trains and sweeps, at a small size, and its ranges hold no invalid corner. Speaks TAP.

usage: tests/examples/examples.py EXAMPLES TRAWL
"""

import configparser
import glob
import itertools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

examples, trawl = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class Skip(Exception):
    """A compiler that is not there."""


def run(*arguments, codes=(0,)):
    done = subprocess.run([trawl, *arguments], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode in codes, f"trawl {' '.join(arguments)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}"
    return done.stdout


def sweep_sections(path):
    """{key: its section} of the searched parameters."""
    ini = configparser.ConfigParser(inline_comment_prefixes=(";", "#"), interpolation=None)
    ini.read(path)
    return {name[len("sweep."):]: ini[name] for name in ini.sections() if name.startswith("sweep.")}


def rollout(path, **sizes):
    """Steps of one rollout, the shortest training that there is."""
    ini = configparser.ConfigParser(inline_comment_prefixes=(";", "#"), interpolation=None)
    ini.read(path)
    size = {"total_agents": 128, "horizon": 32, **ini["train"], **sizes}
    return int(size["total_agents"]) * int(size["horizon"])


def check_train(path):
    steps = rollout(path)
    result = json.loads(run("train", path, "--json", "--quiet", "--train.total_timesteps", str(steps)))
    assert result["env_steps"] == steps, result
    assert result["steps_per_s"] > 0 and result["cost_s"] > 0, result


def check_corners(path):
    """Sizes must fit together at both ends of their ranges, in every combination."""
    sizes = {key: (section["min"], section["max"]) for key, section in sweep_sections(path).items()
             if key.split(".")[1] in ("horizon", "minibatch_size", "total_agents", "hidden_size", "num_layers")}
    for corner in itertools.product(*sizes.values()):
        options = [word for key, value in zip(sizes, corner) for word in (f"--{key}", value)]
        steps = rollout(path, **{key.split(".")[1]: value for key, value in zip(sizes, corner)})
        run("train", path, "--json", "--quiet", "--train.total_timesteps", str(steps), *options)


def check_sweep(path):
    """The file's own space, but for the length of a training."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    sections = sweep_sections(path)
    largest = {key.split(".")[1]: sections[key]["max"] for key in sections if key.endswith(("horizon", "total_agents"))}
    most = rollout(path, **largest)  # so that all shapes of the space can be run
    small, n = re.subn(r"(\[sweep\.train\.total_timesteps\][^\[]*?)min *= *\S+(\s+)max *= *\S+",
                       rf"\g<1>min = {most}\2max = {2 * most}", text)
    assert n == 1, "no range of total_timesteps to make small"
    with tempfile.TemporaryDirectory(dir=os.path.dirname(path) if "name = ./" in text else None) as folder:
        small = small.replace("name = ./", "name = ../")
        config, store = os.path.join(folder, "small.ini"), os.path.join(folder, "small.db")
        with open(config, "w", encoding="utf-8") as file:
            file.write(small)
        # 1: none of the trials is done, see below
        run("sweep", config, "--store", store, "--name", "small", "--trials", "3", codes=(0, 1))
        shown = json.loads(run("show", "small", "--store", store, "--json"))
    assert len(shown["trials"]) == 3, shown
    want = set(sweep_sections(path))
    for trial in shown["trials"]:
        assert set(trial["params"]) == want, f"searched {sorted(trial['params'])}, the file says {sorted(want)}"
        # so short a training may end no episode: that is a failed trial with its reason, not a crash
        assert trial["state"] in ("done", "failed"), trial
        assert trial["state"] == "done" or "episode" in trial["reason"], trial
        assert trial["state"] == "failed" or math.isfinite(trial["score"]), trial


def check_gym(path):
    """Its options and values exist; it trains where a Python has its packages, which tools/nightly does."""
    config = run("train", path, "--print-config")
    assert "\nname = gym:" in config, config


def build(name, library):
    """An example of examples/plugin/; its language's compiler may be missing."""
    source = os.path.join(examples, "plugin", name)
    compiler = {".h": "cc", ".cc": "c++", ".rs": "rustc"}[os.path.splitext(name)[1]]
    if shutil.which(compiler) is None:
        raise Skip(f"no {compiler}")
    run("env", "build", source, "-o", library)


def check_plugin(name):
    """It builds, has no faults, and learns."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "game.so")
        build(name, library)
        out = run("env", "check", library, "--steps", "500")
        assert "FAULT" not in out and "speed" in out, out
        result = json.loads(run("train", library, "--json", "--quiet", "--train.total_timesteps", "1M"))
        assert result["perf"] > 0.9, result
        if name == "gap.h":  # with its config, which names the library beside it
            os.rename(library, os.path.join(folder, "gap.so"))
            shutil.copy(os.path.join(examples, "plugin", "gap.ini"), folder)
            check_train(os.path.join(folder, "gap.ini"))
            check_sweep(os.path.join(folder, "gap.ini"))


def check_front(name):
    """It builds, and has no faults."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "game.so")
        run("env", "build", os.path.join(examples, "fronts", name), "-o", library, "--gpu", "no")
        out = run("env", "check", library, "--steps", "500")
        assert "FAULT" not in out and "speed" in out, out


def check_panic():
    """A game in Rust that panics: its message is in what a failed trial keeps of its output."""
    if shutil.which("rustc") is None:
        raise Skip("no rustc")
    with tempfile.TemporaryDirectory() as folder:
        source, library, store = (os.path.join(folder, name) for name in ("lamp.rs", "lamp.so", "s.db"))
        with open(os.path.join(examples, "plugin", "lamp.rs"), encoding="utf-8") as file:
            text = file.read()
        begin = "fn light(state: &mut State) {\n"
        assert begin in text
        with open(source, "w", encoding="utf-8") as file:
            file.write(text.replace(begin, begin + '    if state.done == 3 { panic!("the lamp is broken"); }\n'))
        run("env", "build", source, "-o", library)
        config = os.path.join(folder, "s.ini")
        with open(config, "w", encoding="utf-8") as file:
            file.write("[env]\nname = %s\n[train]\ndevice = cpu\n[sweep]\ndevices = cpu\n[sweep.train.learning_rate]\n" % library)
        done = subprocess.run([trawl, "sweep", config, "--store", store, "--name", "a", "--trials", "1", "-q"], capture_output=True, text=True)
        assert done.returncode == 1 and "signal 6" in done.stderr, done.stderr
        trial = json.loads(run("show", "a", "--store", store, "--json"))["trials"][0]
        assert "the lamp is broken" in trial["log_tail"], trial["log_tail"]


def check_exception():
    """A game in C++ that throws: the exception is in its trial's reason."""
    with tempfile.TemporaryDirectory() as folder:
        source, library, store, config = (os.path.join(folder, name) for name in ("tunnel.cc", "tunnel.so", "s.db", "s.ini"))
        with open(os.path.join(examples, "plugin", "tunnel.cc"), encoding="utf-8") as file:
            text = file.read()
        begin = "    obs[0] = (float)game.place / 16.0f;\n"
        assert begin in text
        with open(source, "w", encoding="utf-8") as file:
            file.write("#include <stdexcept>\n" + text.replace(begin, begin + '    if (game.steps == 3) throw std::runtime_error("it has fallen in");\n'))
        run("env", "build", source, "-o", library)
        with open(config, "w", encoding="utf-8") as file:
            file.write("[env]\nname = %s\n[train]\ndevice = cpu\nthreads = 1\n[sweep]\ndevices = cpu\n[sweep.train.learning_rate]\n" % library)
        done = subprocess.run([trawl, "sweep", config, "--store", store, "--name", "a", "--trials", "1", "-q"], capture_output=True, text=True)
        assert done.returncode == 1, done.stderr
        reason = json.loads(run("show", "a", "--store", store, "--json"))["trials"][0]["reason"]
        assert "signal 6" in reason and "std::runtime_error" in reason and reason.endswith("what():  it has fallen in"), reason


def check_policy():
    """A policy outside Trawl takes the likeliest actions, line by line."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint, program = os.path.join(folder, "it.ckpt"), os.path.join(folder, "run_policy")
        policy, samples = os.path.join(folder, "it.safetensors"), os.path.join(folder, "it.jsonl")
        run("train", "cartpole", "--quiet", "--train.total_timesteps", "8192", "-o", checkpoint)
        run("export", checkpoint, "-o", policy, "--samples", samples)
        subprocess.run(["cc", "-std=c99", "-Wall", "-Werror", "-I", os.path.join(os.path.dirname(examples), "trainer", "export"), "-o",
                        program, os.path.join(examples, "policy", "run_policy.c"), "-lm"], check=True)
        with open(samples, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        text = "".join("\n" * line["begins"] + " ".join(map(repr, line["obs"])) + "\n" for line in lines)
        done = subprocess.run([program, policy], input=text, capture_output=True, text=True, check=True)
        assert done.stdout.split() == [str(int(line["columns"][1] > line["columns"][0])) for line in lines], done.stdout


def main():
    paths = sorted(glob.glob(os.path.join(examples, "*.ini")) + glob.glob(os.path.join(examples, "fast-gpu", "*.ini")))
    cases = [(f"plugin/{name} builds and learns", lambda name=name: check_plugin(name)) for name in ("gap.h", "tunnel.cc", "lamp.rs")]
    for name in sorted(name for name in os.listdir(os.path.join(examples, "fronts")) if name.endswith(".h")):  # others make tables
        cases.append((f"fronts/{name} builds", lambda name=name: check_front(name)))
    cases.append(("plugin/lamp.rs: a panic is seen", check_panic))
    cases.append(("plugin/tunnel.cc: an exception is the reason", check_exception))
    cases.append(("policy/run_policy.c runs a policy without Trawl", check_policy))
    for path in sorted(glob.glob(os.path.join(examples, "gym", "*.ini"))):
        cases.append((f"{os.path.relpath(path, examples)} is a config", lambda path=path: check_gym(path)))
    for path in paths:
        name = os.path.relpath(path, examples)
        cases.append((f"{name} trains", lambda path=path: check_train(path)))
        if sweep_sections(path):
            cases.append((f"{name}: every corner of its sizes trains", lambda path=path: check_corners(path)))
            cases.append((f"{name} sweeps", lambda path=path: check_sweep(path)))
    print(f"1..{len(cases)}", flush=True)
    failed = 0 if paths else 1
    for number, (name, check) in enumerate(cases, 1):
        try:
            check()
            print(f"ok {number} - {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {name} # SKIP {reason}", flush=True)
        except Exception as error:  # a case that breaks is a case that failed
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            for line in f"{type(error).__name__}: {error}".splitlines():
                print(f"# {line}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
