#!/usr/bin/env python3
"""test_asked.py - what is asked is what runs: steps, the space that is searched, and what other trials may teach."""
import json
import sys

import tap
from tap import TINY, equal, fails, run, write


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


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
