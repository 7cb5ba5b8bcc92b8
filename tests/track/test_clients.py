#!/usr/bin/env python3
"""test_clients.py - the official clients do whole runs against our fakes, which shows that the fakes behave like real servers.

usage: test_clients.py TRAWL [NAME ...]; speaks TAP. Needs the environment of `tools/test --servers`."""
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import tap  # noqa: E402
from tap import Skip, equal  # noqa: E402

import servers  # noqa: E402
from fake_mlflow import FakeMlflow  # noqa: E402
from fake_trackio import FakeTrackio  # noqa: E402
from fake_wandb import KEY, FakeWandb  # noqa: E402


def need_clients():
    if servers.missing():
        raise Skip(servers.missing())


def check_mlflow(fake, folder, **env):
    out = servers.client("client_mlflow.py", folder, MLFLOW_TRACKING_URI=fake.url, **env)
    said = json.loads(out.splitlines()[-1])
    equal(fake.broken, [])
    run = fake.runs[said["run_id"]]
    equal(run.statuses, ["RUNNING", "FINISHED"])
    equal(run.params, {"train.lr": "0.01", "env.name": "breakout"})
    equal(run.tags["group"], "proof")
    seen = fake.values(run)
    equal([seen["score", step] for step in range(6)], [[0.0], [1 / 3], [2 / 3], [1.0], [4 / 3], [math.inf]])
    assert math.isnan(seen["train/loss", 2][0])
    equal(said["history"], [[step, repr(seen["score", step][0])] for step in range(6)])
    equal(list(fake.files.values()), [b"[train]\nlr = 0.01\n"])
    return run


def test_mlflow_client_against_the_fake(folder):
    need_clients()
    with FakeMlflow(prefix="/behind/a/path", auth="ann:secret") as fake:
        run = check_mlflow(fake, folder, MLFLOW_TRACKING_USERNAME="ann", MLFLOW_TRACKING_PASSWORD="secret")
        equal(run.repeats, 0)


def test_mlflow_client_against_the_fake_in_trouble(folder):
    need_clients()
    with FakeMlflow() as fake:
        fake.fail("status", code=503, match="log-batch")
        fake.fail("status", code=429, retry_after=1, match="get-by-name")
        fake.fail("commit_then_drop", match="log-metric")
        run = check_mlflow(fake, folder)
        equal(fake.pending_faults(), 0)
        assert run.repeats > 0, "the client was to send the batch again whose reply was lost"


def test_trackio_client_against_the_fake(folder):
    need_clients()
    with FakeTrackio() as fake:
        servers.client("client_trackio.py", folder, TRACKIO_SERVER_URL=fake.url + "?write_token=" + fake.token,
                       TRACKIO_DIR=folder / "trackio")
        equal(fake.broken, [])
        rows = sorted(fake.rows.values(), key=lambda row: row["step"])
        equal([row["metrics"]["score"] for row in rows], [step / 3 for step in range(5)])
        assert math.isnan(rows[2]["metrics"]["train/loss"])
        equal([config["lr"] for config in fake.configs.values()], [0.01])


def check_wandb(fake, folder):
    out = servers.client("client_wandb.py", folder, WANDB_BASE_URL=fake.url, WANDB_API_KEY=KEY)
    said = json.loads(out.splitlines()[-1])
    equal(fake.broken, [])
    run = fake.run(said["id"])
    equal((run.state, run.exitcode, run.group, run.job_type, run.display_name), ("finished", 0, "study", "train", "proof-1"))
    equal((run.config["train"]["value"], sorted(run.tags)), ({"lr": 0.01}, ["a", "b"]))
    rows = run.rows()
    equal([row["_step"] for row in rows], [step * 100 for step in range(6)])
    equal([row["score"] for row in rows], [0, 1 / 3, 2 / 3, 1, 4 / 3, math.inf])
    assert math.isnan(rows[2]["train/loss"])
    equal((run.summary["score"], run.summary["_step"]), (math.inf, 500))
    equal(run.files["note.txt"], b"kept with the run\n")
    assert "note.txt" in run.uploaded
    return run


def test_wandb_client_against_the_fake(folder):
    need_clients()
    with FakeWandb() as fake:
        equal(check_wandb(fake, folder).overwritten, 0)


def test_wandb_client_against_the_fake_in_trouble(folder):
    need_clients()
    with FakeWandb() as fake:
        fake.fail("status", code=503, match="file_stream")
        fake.fail("status", code=429, retry_after=1, match="graphql")
        stream = fake.file_stream

        def first(*args):
            """Its first post holds only the summary: the replies to the next posts, with lines, are lost."""
            fake.file_stream = stream
            fake.fail("commit_then_drop", times=2, match="file_stream")
            return stream(*args)
        fake.file_stream = first
        run = check_wandb(fake, folder)
        equal(fake.pending_faults(), 0)
        assert run.overwritten > 0, "the client was to send lines again at their places"


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
