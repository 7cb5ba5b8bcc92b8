#!/usr/bin/env python3
"""test_train.py - `trawl train --track`: one training is one run of each tracker, sent through its own outbox. Usage:
test_train.py TRAWL [NAME ...]; speaks TAP."""
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import tap  # noqa: E402
from tap import equal, fails, run, write  # noqa: E402

import servers  # noqa: E402
from fake_wandb import KEY, FakeWandb  # noqa: E402
from faults import BlackHole  # noqa: E402
from waiting import KINDS, Webhook  # noqa: E402

CONFIG = tap.TINY.replace("total_timesteps = 4096", "total_timesteps = 8192\nlog_interval_s = 0")
STEPS = list(range(256, 8193, 256))  # of 16 agents times 16 steps, a report after each
FAST = ["--track.interval_s", "0.1", "--track.requests_per_minute", "100000", "--track.flush_s", "200"]
TRACK = ["--track", ",".join(kind.name for kind in KINDS)]


class All:
    """Every tracker's fake, each with a login."""

    def __init__(self):
        self.each = [kind.fake() for kind in KINDS]
        self.mlflow, self.trackio, self.webhook, self.wandb = self.each

    def __enter__(self):
        for fake in self.each:
            fake.start()
        return self

    def __exit__(self, *exc):
        for fake in self.each:
            fake.stop()

    def env(self, home):
        return servers.clean_env(home, **{name: value for kind, fake in zip(KINDS, self.each) for name, value in kind.env(fake).items()})

    def check(self, name, steps, score=None):
        """Each tracker has one run, with each of these steps once and no others."""
        for fake in self.each:
            equal(fake.broken, [])
        (got,) = self.wandb.runs.values()
        equal((got.display_name, got.group, got.job_type, got.state, got.exitcode), (name, None, "train", "finished", 0))
        equal([row["_step"] for row in got.rows()], steps)
        equal(got.config["env"]["value"]["name"], "squared")
        assert got.files["config.ini"].startswith(b"[env]\n") and set(got.uploaded) == {"config.ini"}, got.files
        (run_,) = self.mlflow.runs.values()
        equal((run_.name, run_.status, run_.params["env.name"], run_.tags["job_type"]), (name, "FINISHED", "squared", "train"))
        assert "mlflow.parentRunId" not in run_.tags and "group" not in run_.tags, run_.tags
        equal([e["name"] for e in self.mlflow.experiments.values()], ["trawl"])
        equal(sorted({point[1] for point in run_.metrics["train/lr"]}), steps)
        rows = list(self.trackio.rows.values())
        equal({row["run"] for row in rows}, {name})
        equal(sorted(row["step"] for row in rows if "train/lr" in row["metrics"]), steps)
        (config,) = self.trackio.configs.values()
        assert config["env.name"] == "squared" and "_Group" not in config, config
        equal(sorted(event["env_steps"] for event in self.webhook.of_type("metrics")), steps)
        equal([event["state"] for event in self.webhook.of_type("result")], ["done"])
        if score is not None:
            equal((got.summary["result/score"], self.webhook.of_type("result")[0]["score"]), (score, score))


def wandb_env(home, fake, **more):
    return servers.clean_env(home, WANDB_API_KEY=KEY, WANDB_BASE_URL=fake.url, **more)


def rows_left(store):
    return tap.rows(store, "SELECT count(*) FROM outbox")[0][0]


def test_one_training_is_one_run(folder):
    """Sent to all four; the outbox's file is removed, since all rows were sent; no secret is left anywhere."""
    config = write(folder, "my.ini", CONFIG)
    with All() as trackers:
        process = tap.start("train", config, *TRACK, *FAST, "--json", cwd=folder,
                            env=trackers.env(folder))
        seen = []

        def look():
            seen.append(pathlib.Path("/proc/%d/cmdline" % process.pid).read_bytes())
            seen.extend(p.read_bytes() for p in folder.glob("*.track.db*"))
        out, err = tap.communicate_watched(process, look)
        equal(process.returncode, 0)
        trackers.check("squared", STEPS, json.loads(out)["score"])
        equal(sorted(p.name for p in folder.iterdir() if p.suffix != ".ini" and not p.name.startswith(".")), [])
        texts = [out.encode(), err.encode(), *seen] + [r.body for fake in trackers.each for r in fake.requests]
        for secret in (KEY, "pass-word-of-ann", trackers.trackio.token, Webhook.secret, "path-that-is-a-secret"):
            assert not any(secret.encode() in text for text in texts), secret


def test_sync_tells_what_is_left(folder):
    """Offline, then sync, then sync again: the same code as in a sweep."""
    config = write(folder, "my.ini", CONFIG + "[track]\ntrackers = wandb,mlflow,trackio,webhook\noffline = true\n")
    checkpoint = folder / "pong-7.ckpt"
    said = run("train", config, "-o", checkpoint, "--quiet", env=servers.clean_env(folder))[1]
    store = folder / "pong-7.ckpt.track.db"
    assert "trawl sync --store" in said and str(store) in said, said
    assert rows_left(store) > len(STEPS), rows_left(store)
    with All() as trackers:
        run("sync", "--store", store, env=trackers.env(folder))
        trackers.check("pong-7", STEPS)
        n = [len(fake.requests) for fake in trackers.each]
        run("sync", "--store", store, env=trackers.env(folder))
        equal([len(fake.requests) for fake in trackers.each], n)
        equal(rows_left(store), 0)


def test_resume_goes_on_in_the_same_run(folder):
    config = write(folder, "my.ini", CONFIG)
    checkpoint = folder / "my.ckpt"
    with All() as trackers:
        env = trackers.env(folder)
        run("train", config, "-o", checkpoint, *TRACK, *FAST, "--quiet", env=env)
        trackers.check("my", STEPS)
        run("train", "--resume", checkpoint, "--train.total_timesteps", 10240, "--quiet", env=env)
        trackers.webhook.events = {at: e for at, e in trackers.webhook.events.items()
                                   if e["type"] != "result" or e["env_steps"] == 10240}
        trackers.check("my", STEPS + list(range(8448, 10241, 256)))


def test_resume_takes_its_own_run_of_a_store(folder):
    """Names are not unique: "my-2" is the run of another checkpoint here, and could be the second of my.ckpt."""
    config = write(folder, "my.ini", CONFIG)
    track = ["--track", "webhook", "--store", folder / "all.db", "--quiet"]
    names = {}  # run id -> its number, in order of beginning
    with All() as trackers:
        env = trackers.env(folder)

        def ends(resumed, *options):
            """The run that this training continued or made."""
            n = len(trackers.webhook.events)
            run("train", *(["--resume", resumed, "--train.total_timesteps", 10240] if resumed else [config, *FAST]),
                *options, *track, env=env)
            (key,) = [at[0] for at, e in list(trackers.webhook.events.items())[n:] if e["type"] == "result"]
            return names.setdefault(key, len(names) + 1)

        equal([ends(None, "-o", folder / name) for name in ("my.ckpt", "my-2.ckpt")], [1, 2])
        equal(ends(folder / "my.ckpt"), 1)
        equal(ends(None, "-o", folder / "my.ckpt"), 3)
        equal(ends(folder / "my.ckpt"), 3)
        (folder / "moved").mkdir()
        (folder / "my-2.ckpt").rename(folder / "moved" / "my-2.ckpt")
        equal(ends(folder / "moved" / "my-2.ckpt"), 2)
    for words in (["continue", "my"], ["add", "my", "--trials", 5], ["stop", "my"], ["priority", "my", 3],
                  ["rerun", "my", "--trial", 0]):
        fails(*words, "--store", folder / "all.db", code=2, says="a training alone")  # no daemon takes it up


def test_killed_and_synced(folder):
    """kill -9 in the middle: sync sends the reported rows, once."""
    config = write(folder, "my.ini", CONFIG.replace("8192", "1G"))
    with FakeWandb() as fake:
        env = wandb_env(folder, fake)
        process = tap.start("train", config, "--track", "wandb", *FAST, "--quiet", "--track.thin_s", "0", cwd=folder,
                            env=env)
        tap.wait_for(fake.has_points, process)
        process.kill()
        process.communicate()
        (store,) = folder.glob("trawl-train-*.track.db")
        last = tap.rows(store, "SELECT max(json_extract(payload, '$.env_steps')) FROM outbox")[0][0]
        run("sync", "--store", store, env=env)
        equal(fake.broken, [])
        (got,) = fake.runs.values()
        equal([row["_step"] for row in got.rows()], list(range(256, (last or got.rows()[-1]["_step"]) + 1, 256)))
        equal(rows_left(store), 0)


def test_stop_on_the_page(folder):
    config = write(folder, "my.ini", CONFIG.replace("8192", "1G").replace("log_interval_s = 0", "log_interval_s = 0.05"))
    with FakeWandb() as fake:
        process = tap.start("train", config, "--track", "wandb", *FAST, "-o", folder / "my.ckpt", "--json", cwd=folder,
                            env=wandb_env(folder, fake))
        tap.wait_for(fake.has_points, process)
        fake.stop_run(next(iter(fake.runs)))
        out, err = process.communicate(timeout=tap.PATIENCE_S)
        equal(process.returncode, 0)
        assert "stopped on the page of wandb" in err and json.loads(out)["stopped"], (out, err)
        (got,) = fake.runs.values()
        equal((got.state, got.summary["result/state"]), ("finished", "stopped"))
        assert (folder / "my.ckpt").exists()


def test_interrupted_and_resumed(folder):
    config = write(folder, "my.ini", CONFIG.replace("8192", "1G").replace("log_interval_s = 0", "log_interval_s = 0.05"))
    with FakeWandb() as fake:
        env = wandb_env(folder, fake)
        process = tap.start("train", config, "--track", "wandb", *FAST, "-o", folder / "my.ckpt", "--quiet", env=env)
        tap.wait_for(fake.has_points, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=tap.PATIENCE_S)
        equal(process.returncode, 130)
        (got,) = fake.runs.values()
        equal((got.preempting, got.exitcode), (True, None))
        at = got.rows()[-1]["_step"]
        run("train", "--resume", folder / "my.ckpt", "--train.total_timesteps", at + 65536, "--quiet", env=env)
        equal((fake.broken, len(fake.runs), got.exitcode), ([], 1, 0))
        steps = [row["_step"] for row in got.rows()]
        assert steps == sorted(set(steps)) and steps[-1] >= at + 65536, steps


def test_a_silent_tracker_costs_its_deadline_alone(folder):
    config = write(folder, "my.ini", CONFIG)
    with BlackHole() as hole:
        said = run("train", config, "--track", "wandb", "--track.flush_s", "1", "--quiet", cwd=folder,
                   env=servers.clean_env(folder, WANDB_API_KEY=KEY, WANDB_BASE_URL=hole.url, WANDB_HTTP_TIMEOUT=3600))[1]
    (store,) = folder.glob("trawl-train-*.track.db")
    assert "were not sent in 1 s" in said and store.name in said, said
    with FakeWandb() as fake:
        run("sync", "--store", store, env=wandb_env(folder, fake))
        (got,) = fake.runs.values()
        equal([row["_step"] for row in got.rows()], STEPS)


def test_what_is_wrong_is_said_before_training(folder):
    config = write(folder, "my.ini", CONFIG)
    sweep = write(folder, "sweep.ini", tap.TINY_SWEEP)
    env = servers.clean_env(folder)
    fails("train", config, "--track", "neptune", code=2, says="closed on 2026-03-05", env=env)
    fails("train", config, "--track", "wandb", code=2, says="no API key", env=env)
    fails("train", config, "--name", "x", code=2, says="--track", env=env)
    fails("train", config, "--track", "wandb", "--name", "a/b", code=2, says="--name", env=env)
    env = servers.clean_env(folder, WANDB_API_KEY=KEY, WANDB_BASE_URL="http://127.0.0.1:9")
    run("sweep", sweep, "--store", folder / "s.db", "--name", "first", "--trials", 1, "--quiet", env=env)
    fails("train", config, "--track", "wandb", "--store", folder / "s.db", code=2, says=["holds the sweep first"], env=env)
    equal(sorted(p.name for p in folder.iterdir() if "track" in p.name), [])
    offline = ["--track", "wandb", "--track.offline", "true", "--store", folder / "t.db", "--quiet"]
    for _ in range(2):  # names are numbered when nobody gave one
        run("train", config, *offline, env=env)
    run("train", config, *offline, "--name", "mine", env=env)
    fails("train", config, *offline, "--name", "mine", code=1, says=["has a run mine already"], env=env)
    assert "mine" in run("ls", "--store", folder / "t.db")[0]
    fails("show", "mine", "--store", folder / "t.db", code=1, says=["trawl sync"])
    with FakeWandb() as fake:
        run("sync", "--store", folder / "t.db", env=wandb_env(folder, fake))
        equal(sorted(r.display_name for r in fake.runs.values()), ["mine", "squared", "squared-2"])


def test_run_ids_from_outside(folder):
    """WANDB_RUN_ID: a missing run is made, with a message, or refused with WANDB_RESUME=must; no endless retries."""
    config = write(folder, "my.ini", CONFIG)
    train = ["train", config, "--track", "wandb", *FAST, "--quiet"]
    with FakeWandb() as fake:
        env = wandb_env(folder, fake, WANDB_RUN_ID="mine", WANDB_NAME="by hand", WANDB_RUN_GROUP="these")
        said = run(*train, cwd=folder, env=env)[1]
        assert "there is no run mine in tester/trawl yet, creating it" in said, said
        got = fake.run("mine")
        equal((got.display_name, got.group, [row["_step"] for row in got.rows()]), ("by hand", "these", STEPS))
        # the same id again: behind what is there
        said = run(*train, "--train.total_timesteps", 10240, cwd=folder, env=env)[1]
        assert "run mine continues after its 32 line(s)" in said and "left out" in said, said
        equal([row["_step"] for row in got.rows()], STEPS + list(range(8448, 10241, 256)))
        said = run(*train, cwd=folder, env={**env, "WANDB_RESUME": "never"})[1]
        assert "exists already" in said and "WANDB_RESUME is never" in said, said
        equal(len(got.rows()), 40)
        said = run(*train, cwd=folder, env={**env, "WANDB_RESUME": "must", "WANDB_RUN_ID": "other"})[1]
        assert "there is no run other" in said, said
        equal((set(fake.runs), fake.broken), ({"mine"}, []))
        fails(*train, cwd=folder, code=2, says="WANDB_RESUME", env={**env, "WANDB_RESUME": "perhaps"})


if __name__ == "__main__":
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    tap.main(sys.modules[__name__])
