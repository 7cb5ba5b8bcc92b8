#!/usr/bin/env python3
"""test_asked.py - what is asked is what runs: steps, the space that is searched, and what other trials may teach."""
import json
import pathlib
import sys

import tap
from tap import TINY, equal, fails, run, show, write

SPACES = pathlib.Path(__file__).parent / "spaces"


def test_asked_steps_are_run(folder):
    config = write(folder, "t.ini", TINY)  # a rollout is 16 agents x 16 steps
    for asked, runs in ((256, 256), (257, 256), (272, 272), (5000, 4992), (4096, 4096)):
        out, _ = run("train", config, "-q", "--json", "--train.total_timesteps", asked)
        equal(json.loads(out)["env_steps"], runs)  # all but what is no step of each agent


def test_less_than_a_rollout_is_refused(folder):
    message = fails("train", write(folder, "t.ini", TINY), "--train.total_timesteps", 255, code=2, says="train.total_timesteps 255")
    for text in ("train.total_agents 16", "train.horizon 16", "lower", "raise"):
        assert text in message, message


def test_a_run_that_ended_short_is_at_its_end(folder):
    checkpoint = folder / "a.ckpt"
    run("train", write(folder, "t.ini", TINY), "-q", "-o", checkpoint, "--train.total_timesteps", 1000)
    _, err = run("train", "--resume", checkpoint, "-q", "--train.total_timesteps", 1007)
    assert "at its end" in err, err
    out, _ = run("train", "--resume", checkpoint, "-q", "--json", "--train.total_timesteps", 2000)
    equal(json.loads(out)["env_steps"], 2000)


def sweep(folder, text, name="a", trials=8, more=()):
    """The study's trials after a sweep of this config, and what stderr said."""
    config = write(folder, name + ".ini", text) if isinstance(text, str) else text
    _, err = run("sweep", config, "--store", folder / "s.db", "--name", name, "--trials", trials, "-q", *more)
    return show(folder / "s.db", name)["trials"], err


def searched(folder, name="a"):
    return {p["key"]: p for p in show(folder / "s.db", name)["study"]["space"]["params"]}


def test_no_impossible_trial_is_proposed(folder):
    # 13 of 14 points of this space cannot be run: more samples in a minibatch than in a rollout, or fewer steps than a rollout has
    trials, _ = sweep(folder, SPACES / "pl4_small.ini", trials=24)
    equal({t["state"] for t in trials}, {"done"})
    for t in trials:
        p = t["params"]
        assert p["train.total_timesteps"] - p["train.total_agents"] < t["env_steps"] <= p["train.total_timesteps"], t
        assert p["train.minibatch_size"] <= p["train.total_agents"] * p["train.horizon"] <= t["env_steps"], t


def test_usual_ranges_follow_the_config(folder):
    text = TINY + "[sweep.train.minibatch_size]\n[sweep.train.total_timesteps]\n[sweep.train.learning_rate]\n"
    trials, _ = sweep(folder, text, trials=12)
    equal({t["state"] for t in trials}, {"done"})
    space = searched(folder)
    equal([space["train.minibatch_size"][k] for k in ("min", "max")], [32, 256])  # a rollout is 256
    equal([space["train.total_timesteps"][k] for k in ("min", "max")], [512, 32768])
    equal(trials[0]["origin"], "default")
    equal(trials[0]["params"], {"train.minibatch_size": 256, "train.total_timesteps": 4096, "train.learning_rate": 0.015})


def test_the_first_trial_is_the_config_or_is_not_called_so(folder):
    sections = "[sweep.policy.hidden_size]\nmin = 4\nmax = 64\n[sweep.train.gamma]\n"
    odd = TINY.replace("hidden_size = 8", "hidden_size = 12")  # no power of two
    trials, _ = sweep(folder, odd + sections, "odd", trials=1)
    equal((trials[0]["origin"], trials[0]["params"]), ("default", {"policy.hidden_size": 12, "train.gamma": 0.99}))
    trials, err = sweep(folder, TINY.replace("hidden_size = 8", "hidden_size = 128") + sections, "out", trials=2)
    assert "policy.hidden_size = 128 lies outside the range searched, 4 to 64" in err, err
    assert all(t["origin"] != "default" for t in trials), trials
    trials, _ = sweep(folder, TINY + sections + "mean = 0.9\n", "mean", trials=1)
    equal((trials[0]["origin"], trials[0]["params"]["train.gamma"]), ("start", 0.9))


INERT = TINY.replace("threads = 1", "threads = 1\nvtrace = false") + """
[sweep.train.beta2]
[sweep.train.eps]
[sweep.train.rho_clip]
[sweep.train.prio_beta0]
[sweep.policy.conv_channels]
"""


def test_options_without_effect_are_not_searched(folder):
    message = fails("sweep", write(folder, "s.ini", INERT), "--store", folder / "s.db", "--name", "a", code=2,
                    says="nothing is left to search")
    assert not (folder / "s.db").exists()
    _, err = sweep(folder, INERT + "[sweep.train.gamma]\n", trials=2)
    lines = [line for line in err.splitlines() if "no effect" in line]
    equal(len(lines), 1)
    for text in ("train.beta2 (needs train.optimizer = adam, which is muon)", "train.eps", "train.rho_clip", "train.prio_beta0",
                 "policy.conv_channels (needs policy.encoder = conv, which is linear)"):
        assert text in message and text in lines[0], (text, message, lines)
    equal(list(searched(folder)), ["train.gamma"])


def test_an_option_is_searched_where_it_has_an_effect(folder):
    text = TINY + "[sweep]\nmethod = random\n[sweep.train.optimizer]\n[sweep.train.beta2]\n[sweep.train.gamma]\n"
    trials, err = sweep(folder, text, trials=12)
    assert "no effect" not in err, err
    equal(searched(folder)["train.beta2"]["when"], {"key": "train.optimizer", "choices": ["adam"]})
    values = {optimizer: {t["params"]["train.beta2"] for t in trials if t["params"]["train.optimizer"] == optimizer}
              for optimizer in ("adam", "muon")}
    equal(values["muon"], {0.999})  # the config's own
    assert len(values["adam"]) > 2, values


def test_equal_bounds_keep_a_value(folder):
    text = TINY + "[sweep.train.gamma]\nmin = 0.9\nmax = 0.9\n[sweep.train.optimizer]\nvalues = adam\n[sweep.train.learning_rate]\n"
    trials, err = sweep(folder, text, trials=3)
    assert "train.gamma is not searched, it is 0.9 in all trials" in err, err
    equal(list(searched(folder)), ["train.learning_rate"])
    config = run("export", "a", "--store", folder / "s.db", "--pick", "best-run")[0]
    assert "gamma = 0.9\n" in config and "optimizer = adam" in config, config
    run("sweep", folder / "a.ini", "--resume", "a", "--store", folder / "s.db", "--trials", 4, "-q")


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
