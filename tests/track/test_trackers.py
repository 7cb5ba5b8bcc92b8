#!/usr/bin/env python3
"""test_trackers.py - all trackers against strict fakes that fail on request: in the end every number has arrived once.
Usage: test_trackers.py TRAWL [NAME ...]; speaks TAP."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import tap  # noqa: E402
from tap import equal, fails, run  # noqa: E402

import servers  # noqa: E402
from fake_wandb import KEY  # noqa: E402
from faults import BlackHole, Certificates, Elsewhere  # noqa: E402
from waiting import KINDS, SWEEP, Mlflow, Trackio, Waiting, Wandb, Webhook, fakes_of  # noqa: E402


def sick(folder, *faults, kinds=KINDS, **more):
    """Syncs while each fake fails the requests with its numbers; then everything has arrived once. Returns the fakes."""
    gone = []
    for kind in kinds:
        at = folder / kind.name
        at.mkdir()
        waiting = Waiting(at, kind)
        with kind.fake() as fake:
            for name, options in faults:
                fake.fail(name, **{"match": kind.match, **options})
            err = waiting.sync(fake, timeout="60s", **more)
            equal(fake.pending_faults(), 0)
            waiting.check(fake)
            equal(err.count(kind.name + " answers again"), err.count("rows wait in the store, continuing"))
            gone.append(fake)
    return gone


def test_everything_is_sent_once(folder):
    waiting = Waiting(folder, *KINDS)
    with fakes_of(*KINDS) as fakes:
        waiting.sync(*fakes)
        waiting.check(*fakes)
        n = [len(fake.requests) for fake in fakes]
        waiting.sync(*fakes)
        equal([len(fake.requests) for fake in fakes], n)
        equal([kind.repeats(fake) for kind, fake in zip(KINDS, fakes)], [0] * len(KINDS))


def test_attempts_are_runs_of_their_own(folder):
    """A trial that is killed without a checkpoint begins again from zero: no tracker's curve is made of both attempts."""
    waiting = Waiting.of(folder, *KINDS)
    config = tap.write(folder, "s.ini", tap.gated(folder).replace("1000000\nlog_interval_s = 0.1", "256K\nlog_interval_s = 0"))
    options = ["--store", waiting.store, "--track", ",".join(kind.name for kind in KINDS), "--track.offline", "true",
               "--track.interval_s", "0.1", "--track.requests_per_minute", "100000"]
    env = servers.clean_env(folder)
    process = tap.start("sweep", config, "--name", "first", "--trials", 2, *options, env=env)
    tap.wait_for(lambda: tap.rows(waiting.store, "SELECT 1 FROM outbox WHERE trial_id = 1 LIMIT 1 OFFSET 5"), process)
    tap.end(process, signal.SIGKILL, -9)
    tap.open_gate(folder)
    run("sweep", "--resume", "first", "--store", waiting.store, env=env)
    equal([t["attempt"] for t in tap.show(waiting.store, "first")["trials"]], [2, 1])
    waiting.read()
    equal(waiting.over, {waiting.key + "-0"})
    with fakes_of(*KINDS) as fakes:
        mlflow = fakes[KINDS.index(Mlflow)]
        waiting.sync(*fakes)
        waiting.check(*fakes)
        names = {run_.tags["trawl.run"]: run_.name for run_ in mlflow.runs.values()}
        equal(names[waiting.key + "-0-a2"], "first-0-a2")
        (second,) = [run_ for run_ in mlflow.runs.values() if run_.name == "first-0-a2"]
        equal(min(step for _, step, _ in second.metrics["train/lr"]), 256)  # from its first step on


def test_a_damaged_row_is_not_sent(folder):
    waiting = Waiting(folder, Mlflow, trials=1)
    ((at,),) = waiting.sql("SELECT id FROM outbox WHERE json_extract(payload, '$.type') = 'metrics' ORDER BY id LIMIT 1 OFFSET 5")
    waiting.sql("UPDATE outbox SET payload = replace(payload, '0', '1') WHERE id = ?", (at,))  # as no Trawl did
    with Mlflow.fake() as fake:
        said = waiting.sync(fake, code=1)
        assert "row %d of the trackers' outbox is damaged" % at in said.splitlines()[-1], said
        equal(waiting.sql("SELECT count(*) FROM outbox WHERE id = ?", (at,)), [(1,)])


def test_the_outbox_to_a_dead_tracker_is_bounded(folder):
    """Reports are left out, which is reported once; starts, results and the end are sent when the tracker is back."""
    waiting, config = Waiting.of(folder, Mlflow), tap.write(folder, "s.ini", SWEEP.replace("8192", "64K"))
    url = "http://127.0.0.1:9"  # nobody listens
    _, err = run("sweep", config, "--store", waiting.store, "--name", "first", "--trials", 4, "-q", "--track", "mlflow",
                 "--track.outbox_rows", 100, "--track.flush_s", 0, env=servers.clean_env(folder, MLFLOW_TRACKING_URI=url))
    equal(err.count("as many as track.outbox_rows allows"), 1)
    waiting.read()
    types = [row.type for row in waiting.rows]
    assert 100 <= len(types) < 200, len(types)  # the reports of one look at a worker, up to 64, are one transaction
    equal([types.count(type_) for type_ in ("start", "result", "study", "study_end")], [4, 4, 1, 1])
    points = run("check", waiting.store, "--json")[0]
    assert json.loads(points)["points"] > 4 * 20 * 24, points  # the store has every report
    with Mlflow.fake() as fake:
        waiting.sync(fake)
        waiting.check(fake)


def test_a_program_as_the_trainer(folder):
    """Its own metrics under its own names; what it does not have (perf) is left out."""
    tap.write(folder, "train.sh", "for i in 1 2 3; do echo \"TRAWL score=0.$i step=$i own/loss=$2\"; done\n")
    config = tap.write(folder, "s.ini", "[sweep]\ncommand = sh train.sh {argv}\ntrials = 3\nconfirm = 0\n"
                                        "[sweep.Lr]\ntype = float\nmin = 1\nmax = 2\n")
    with Mlflow.fake() as mlflow, Trackio.fake() as trackio, Webhook.fake() as webhook:
        env = {**Mlflow.env(mlflow), **Trackio.env(trackio), **Webhook.env(webhook)}
        run("sweep", config, "--store", folder / "s.db", "--name", "first", "--track", "mlflow,trackio,webhook",
            "--track.flush_s", 200, env=servers.clean_env(folder, **env))
        for fake in (mlflow, trackio, webhook):
            equal(fake.broken, [])
        for trial in tap.show(folder / "s.db", "first")["trials"]:
            (child,) = mlflow.runs_named("first-%d" % trial["number"])
            values = mlflow.values(child)
            lr = trial["params"]["param.lr"]
            equal((values["result/score", 3], values["own/loss", 1], float(child.params["param.lr"])), ([0.3], [lr], lr))
            assert not any("perf" in name for name, _ in values), values
        equal([event["score"] for event in webhook.of_type("result")], [0.3] * 3)


def test_an_online_sweep(folder):
    config = tap.write(folder, "s.ini", tap.TINY_SWEEP)
    with Mlflow.fake() as mlflow, Trackio.fake() as trackio, Webhook.fake() as webhook:
        env = {**Mlflow.env(mlflow), **Trackio.env(trackio), **Webhook.env(webhook)}
        run("sweep", config, "--store", folder / "s.db", "--name", "first", "--trials", 4, "--track",
            "mlflow,trackio,webhook", "--track.tags", "fast,team=vision", "--track.flush_s", 200, env=servers.clean_env(folder, **env))
        for fake in (mlflow, trackio, webhook):
            equal(fake.broken, [])
        trials = tap.show(folder / "s.db", "first")["trials"]
        for trial in trials:
            name = "first-%d" % trial["number"]
            (child,) = mlflow.runs_named(name)
            equal(mlflow.values(child)["result/score", trial["env_steps"]], [trial["score"]])
            equal(float(child.params["train.gamma"]), trial["params"]["train.gamma"])
            equal((child.tags["fast"], child.tags["team"]), ("true", "vision"))
            (parent,) = mlflow.runs_named("first")
            equal(child.tags["mlflow.parentRunId"], parent.id)
            rows = [row for row in trackio.rows.values() if row["run"] == name]
            equal([row["metrics"]["result/score"] for row in rows if "result/state" in row["metrics"]], [trial["score"]])
        equal(sorted(event["score"] for event in webhook.of_type("result")), sorted(t["score"] for t in trials))
        equal(len(mlflow.runs), 5)
        files = {path.rsplit("/", 1)[1]: data for path, data in mlflow.files.items()}
        equal(set(files), {"config.ini", "front.json", "front.svg", "report.html"})
        assert b"<td></td>" not in files["report.html"], "the front's trials stand there with their parameters"
        equal(json.loads(files["front.json"])["columns"][:3], ["trial", "cost", "perf"])
        equal([e["name"] for e in mlflow.experiments.values()], ["first"])
        fronts = [row["metrics"]["study/front"] for row in trackio.rows.values() if "study/front" in row["metrics"]]
        assert fronts and fronts[-1]["_type"] == "trackio.markdown" and "| trial | cost | perf |" in fronts[-1]["_value"]
        config = trackio.configs["trawl", next(r["run_id"] for r in trackio.rows.values() if r["run"] == "first-0")]
        equal((config["env.name"], config["_Group"], config["trawl.number"]), ("squared", "first", 0))


def test_too_many_requests(folder):
    sick(folder, ("status", {"code": 429, "retry_after": 1}), ("status", {"code": 429, "retry_after_date": 2}),
         ("status", {"code": 429}))


def test_server_errors_come_in_bursts(folder):
    sick(folder, ("status", {"code": 503, "times": 2}), ("status", {"code": 500}), ("status", {"code": 502}))


def test_lost_replies(folder):
    fakes = sick(folder, ("commit_then_drop", {"times": 2}), ("half", {"times": 1}), ("drop", {"times": 1}),
                 ("commit_then_drop", {"times": 1, "match": ""}))
    for kind, fake in zip(KINDS, fakes):
        assert kind.repeats(fake) > 0 or kind is Mlflow, "rows were not sent again"


def test_wandb_gets_lines_again_at_their_places(folder):
    (fake,) = sick(folder, ("commit_then_drop", {"times": 2}), ("commit_then_drop", {"match": "graphql"}),
                   ("half", {"match": "graphql"}), ("half", {"match": "file_stream"}), ("drop", {"match": ""}), kinds=[Wandb])
    assert Wandb.repeats(fake) > 0


def test_mlflow_makes_no_ghost_runs(folder):
    (fake,) = sick(folder, ("commit_then_drop", {"times": 3, "match": "runs/create"}),
                   ("half", {"match": "runs/create"}), ("commit_then_drop", {"match": "experiments/create"}),
                   ("half", {"match": "runs/update"}), ("commit_then_drop", {"match": "runs/update"}), kinds=[Mlflow])
    equal((len(fake.runs), len(fake.experiments)), (4, 1))


def test_a_login_page_in_the_middle(folder):
    sick(folder, ("html", {"times": 1, "match": "runs/search"}), kinds=[Mlflow])
    sick(folder, ("html", {"times": 1}), kinds=[Trackio])
    sick(folder, ("html", {"times": 2, "match": "file_stream"}), kinds=[Wandb])


def test_a_login_page_at_the_start(folder):
    for kind in KINDS:
        at = folder / kind.name
        at.mkdir()
        waiting = Waiting(at, kind)
        n = waiting.left()
        with kind.fake() as fake:
            fake.fail("html", times=100)
            said = waiting.sync(fake, code=1)
            assert "web page" in said, said
            equal((waiting.left(), len(fake.requests)), (n, 1))
            fake.heal()
            waiting.sync(fake)
            waiting.check(fake)


def test_a_redirect_to_another_host_gets_nothing(folder):
    for kind in KINDS:
        at = folder / kind.name
        at.mkdir()
        waiting = Waiting(at, kind)
        with kind.fake() as fake, Elsewhere() as elsewhere:
            fake.fail("redirect", to=elsewhere.url, times=100)
            said = waiting.sync(fake, code=1)
            assert "redirects to" in said, said
            equal(elsewhere.requests, [])
            fake.heal()
            waiting.sync(fake)
            waiting.check(fake)


def test_silence_at_the_end(folder):
    """A sweep waits for silent trackers no longer than track.flush_s; nothing is lost by that."""
    config = tap.write(folder, "s.ini", tap.TINY_SWEEP)
    store = folder / "s.db"
    with BlackHole() as hole:
        env = {"MLFLOW_TRACKING_URI": hole.url, "TRACKIO_SERVER_URL": hole.url, "TRACKIO_WRITE_TOKEN": "t" * 20,
               "TRAWL_WEBHOOK_URL": hole.url, "MLFLOW_HTTP_REQUEST_TIMEOUT": 3600, "WANDB_HTTP_TIMEOUT": 3600, **Wandb.env(hole)}
        said = run("sweep", config, "--store", store, "--name", "first", "--trials", 2, "--track",
                   ",".join(kind.name for kind in KINDS), "--track.flush_s", "1", env=servers.clean_env(folder, **env))[1]
        assert "were not sent in 1 s" in said and "trawl sync" in said, said
    equal([trial["state"] for trial in tap.show(store, "first")["trials"]], ["done"] * 2)
    waiting = Waiting.of(folder, *KINDS)
    waiting.read()
    with fakes_of(*KINDS) as fakes:
        waiting.sync(*fakes)
        waiting.check(*fakes)


def test_slow_replies(folder):
    for kind, login in ((Mlflow, "runs/search"), (Wandb, "graphql")):
        sick(folder, ("black_hole", {}), ("trickle", {"match": login}), kinds=[kind], MLFLOW_HTTP_REQUEST_TIMEOUT=2, WANDB_HTTP_TIMEOUT=2)


def test_certificates(folder):
    certificates = Certificates(folder / "pem")
    waiting = Waiting(folder, *KINDS)

    for pair in (certificates.self_signed, certificates.expired, certificates.good):
        trusted = {} if pair is certificates.good else {"SSL_CERT_FILE": certificates.ca}
        with fakes_of(*KINDS, tls=pair) as bad:
            said = waiting.sync(*bad, code=1, **trusted)
            assert said.count("certificate") >= len(KINDS) and "track.ca_file" in said, said
            assert pair is not certificates.expired or "expired" in said, said
            equal([fake.requests for fake in bad], [[]] * len(KINDS))
    with fakes_of(*KINDS, tls=certificates.good) as good:
        waiting.sync(*good, SSL_CERT_FILE=certificates.ca)
        waiting.check(*good)


def test_kill_in_the_middle_and_sync(folder):
    """kill -9 at a random moment of an upload, repeatedly; the rows that are left are sent later."""
    waiting = Waiting(folder, *KINDS)
    chance = random.Random(7)
    with fakes_of(*KINDS) as fakes:
        env = waiting.env(fakes, {})
        for _ in range(8):
            n = sum(len(fake.requests) for fake in fakes)
            process = subprocess.Popen([tap.TRAWL, "sync", "--store", str(waiting.store)], env=env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            some = chance.randrange(1, 12)
            while process.poll() is None and sum(len(fake.requests) for fake in fakes) < n + some:
                time.sleep(0.0005)
            process.send_signal(signal.SIGKILL)
            process.wait()
        waiting.sync(*fakes)
        waiting.check(*fakes)


def test_mlflow_logins(folder):
    waiting = Waiting(folder, Mlflow)
    with Mlflow.fake() as fake:
        said = waiting.sync(fake, code=1, MLFLOW_TRACKING_PASSWORD="wrong-one")
        assert "401" in said and "MLFLOW_TRACKING_USERNAME" in said and "wrong-one" not in said, said
        none = {"MLFLOW_TRACKING_USERNAME": None, "MLFLOW_TRACKING_PASSWORD": None}
        said = waiting.sync(fake, code=1, **none)
        assert "nowhere" in said, said
        (folder / ".netrc").write_text("machine 127.0.0.1:%d login ann password wrong-in-netrc\n" % fake.port)
        (folder / ".netrc").chmod(0o600)
        said = waiting.sync(fake, code=1, **none)
        assert "netrc" in said, said
        (folder / ".mlflow").mkdir()
        (folder / ".mlflow" / "credentials").write_text(
            "[mlflow]\nmlflow_tracking_username = ann\nmlflow_tracking_password = pass-word-of-ann\n")
        (folder / ".mlflow" / "credentials").chmod(0o600)
        waiting.sync(fake, **none)
        waiting.check(fake)
    with Mlflow.fake() as fake:
        at = folder / "b"
        at.mkdir()
        waiting = Waiting(at, Mlflow)
        waiting.sync(fake, MLFLOW_TRACKING_URI=fake.url.replace("://", "://ann:pass-word-of-ann@"),
                     MLFLOW_TRACKING_USERNAME=None, MLFLOW_TRACKING_PASSWORD=None)
        waiting.check(fake)
    with Mlflow.fake() as fake:
        at = folder / "c"
        at.mkdir()
        fake.auth = "Bearer token-of-a-proxy"
        waiting = Waiting(at, Mlflow)
        waiting.sync(fake, MLFLOW_TRACKING_TOKEN="token-of-a-proxy", MLFLOW_TRACKING_USERNAME=None,
                     MLFLOW_TRACKING_PASSWORD=None)
        waiting.check(fake)


def test_wrong_addresses(folder):
    config = tap.write(folder, "s.ini", tap.TINY_SWEEP)
    args = ["sweep", config, "--store", folder / "s.db", "--trials", 1, "--track"]
    names = iter("abcdefghij")

    def said(tracker, *says, **env):
        return fails(*args, tracker, "--name", next(names), code=2, says=says, env=servers.clean_env(folder, **env))

    said("mlflow", "MLFLOW_TRACKING_URI")
    said("mlflow", "a file or a database", MLFLOW_TRACKING_URI="sqlite:///ml.db")
    said("mlflow", "Databricks", MLFLOW_TRACKING_URI="databricks")
    said("mlflow", "number", MLFLOW_TRACKING_URI="http://127.0.0.1:1", MLFLOW_EXPERIMENT_ID="x")
    said("trackio", "TRACKIO_SERVER_URL")
    said("trackio", "TRACKIO_WRITE_TOKEN", TRACKIO_SERVER_URL="http://127.0.0.1:1")
    text = said("trackio", "write_token", TRACKIO_SERVER_URL="http://127.0.0.1:1?key=canary-of-a-token")
    assert "canary" not in text, text
    said("webhook", "TRAWL_WEBHOOK_URL")
    fails(*args, "mlflow", "--track.mlflow_url", "http://ann:canary@127.0.0.1:1", "--name", "z", code=2, says="password",
          env=servers.clean_env(folder))


def test_the_wrong_path_of_a_server(folder):
    waiting = Waiting(folder, Mlflow)
    with Mlflow.fake() as fake:
        said = waiting.sync(fake, code=1, MLFLOW_TRACKING_URI=fake.url + "/deeper")
        assert "no MLflow at this address" in said, said
        fake.fail("status", code=403, times=9, body="Invalid Host header - possible DNS rebinding attack detected")
        said = waiting.sync(fake, code=1)
        assert "--allowed-hosts" in said, said
        fake.heal()
        waiting.sync(fake)
        waiting.check(fake)


def test_mlflow_entries_that_it_cannot_hold(folder):
    waiting = Waiting(folder, Mlflow)
    ids = waiting.sql("SELECT id FROM outbox WHERE json_extract(payload, '$.type') = 'metrics' ORDER BY id")
    for path, value, at in (("long " * 60, 1.5, 4), ("a(b)@c:d", 2.5, 5)):
        waiting.sql("UPDATE outbox SET checksum = NULL, payload = json_set(payload, '$.values.\"%s\"', ?) WHERE id = ?" % path,
                    (value, ids[at][0]))
    with Mlflow.fake() as fake:
        said = waiting.sync(fake)
        assert "left out" in said, said
        first = [run_ for run_ in fake.runs.values() if "a_x28_b_x29__x40_c_x3a_d" in run_.metrics]
        equal([list(run_.metrics.pop("a_x28_b_x29__x40_c_x3a_d").values()) for run_ in first], [[2.5]])
        waiting.check(fake)


def test_mlflow_limits_of_a_batch(folder):
    """Rows of more different names than a batch may have, and more rows than one batch holds."""
    waiting = Waiting(folder, Mlflow)
    trial, at = waiting.sql("SELECT trial_id, max(id) FROM outbox WHERE json_extract(payload, '$.type') = 'metrics' "
                            "AND trial_id = (SELECT min(id) FROM trial)")[0]
    waiting.sql("UPDATE outbox SET checksum = NULL, payload = json_set(payload, '$.env_steps', 100000) WHERE id = ?", (at,))
    (payload,) = waiting.sql("SELECT payload FROM outbox WHERE id = ?", (at,))[0]
    row = json.loads(payload)
    row["values"].update({"wide/%d" % i: i / 7 for i in range(1234)})
    waiting.sql("UPDATE outbox SET checksum = NULL, payload = ? WHERE id = ?", (json.dumps(row), at))
    waiting.read()
    with Mlflow.fake() as fake:
        waiting.sync(fake)
        waiting.check(fake)


def test_mlflow_runs_that_go_away(folder):
    """A deleted run gets no more rows, the others continue."""
    waiting = Waiting(folder, Mlflow)
    with Mlflow.fake() as fake:
        lock = threading.Event()
        answer = fake.answer

        def delete_one(request):
            reply = answer(request)
            if request.path.endswith("runs/create") and fake.runs and not lock.is_set():
                newest = list(fake.runs.values())[-1]
                if newest.name == "first-1":
                    newest.stage = "deleted"
                    lock.set()
            return reply

        fake.answer = delete_one
        waiting.sync(fake)
        assert lock.is_set()
        equal(sorted((r.name, r.status) for r in fake.runs.values() if r.stage == "active"),
              [("first", "FINISHED"), ("first-0", "FINISHED"), ("first-2", "FINISHED")])
        equal(waiting.left(), 0)


def test_parameters_that_change_become_tags(folder):
    config = tap.write(folder, "s.ini", tap.TINY_SWEEP)
    with Mlflow.fake() as fake:
        env = servers.clean_env(folder, **Mlflow.env(fake))
        args = ["--store", folder / "s.db", "--trials"]
        run("sweep", config, "--name", "first", *args, 1, "--track", "mlflow", "--track.flush_s", 200, env=env)
        (parent,) = fake.runs_named("first")
        parent.params["train.gamma"] = "0.5"  # as another version might have sent it
        run("sweep", "--resume", "first", *args, 2, "--track", "mlflow", env=env)
        equal((parent.params["train.gamma"], parent.tags["train.gamma"]), ("0.5", "0.99"))
        equal(parent.statuses, ["RUNNING", "FINISHED", "RUNNING", "FINISHED"])
        equal(len(fake.runs), 3)


def test_files_that_the_server_does_not_take(folder):
    waiting = Waiting(folder, Mlflow)
    with Mlflow.fake() as fake:
        fake.fail("status", code=500, times=1000, match="mlflow-artifacts")
        said = waiting.sync(fake, timeout="120s")
        assert "the file is left out" in said, said
        waiting.check(fake)


def test_artifacts_elsewhere(folder):
    waiting = Waiting(folder, Mlflow)
    with Mlflow.fake(artifacts=False) as fake:
        said = waiting.sync(fake)
        equal(said.count("--artifacts-destination"), 1)
        waiting.check(fake)
        equal(fake.files, {})


def test_trackio_tokens(folder):
    waiting = Waiting(folder, Trackio)
    with Trackio.fake() as fake:
        said = waiting.sync(fake, code=1, TRACKIO_SERVER_URL=fake.url, TRACKIO_WRITE_TOKEN="canary-of-a-wrong-token")
        assert "TRACKIO_WRITE_TOKEN" in said and "canary" not in said, said
        fake.paused = True
        threading.Timer(1.5, setattr, (fake, "paused", False)).start()
        waiting.sync(fake, TRACKIO_SERVER_URL=fake.url, TRACKIO_WRITE_TOKEN=fake.token)
        waiting.check(fake)


def test_webhook_secrets(folder):
    waiting = Waiting(folder, Webhook)
    with Webhook.fake() as fake:
        said = waiting.sync(fake, code=1, TRAWL_WEBHOOK_SECRET="canary-of-a-wrong-secret")
        assert "401" in said and "canary" not in said and "path-that-is-a-secret" not in said, said
        said = waiting.sync(fake, code=1, TRAWL_WEBHOOK_URL=fake.url + "x")
        assert "404" in said and "path-that-is-a-secret" not in said, said
        waiting.sync(fake)
        waiting.check(fake)


def test_no_secret_is_kept(folder):
    """Keys, passwords, tokens and secrets of the environment are in no file, no message, no argument and no upload."""
    config = tap.write(folder, "s.ini", SWEEP)
    seen = []
    with fakes_of(*KINDS) as fakes:
        mlflow, trackio, _, wandb = fakes
        mlflow.fail("status", code=401, times=1, match="runs/update")
        wandb.fail("status", code=503, times=3, body={"error": "you said %s" % KEY}, match="file_stream")
        env = {name: value for kind, fake in zip(KINDS, fakes) for name, value in kind.env(fake).items()}
        process = tap.start("sweep", config, "--store", folder / "s.db", "--name", "first", "--trials", 2, "--track",
                            ",".join(kind.name for kind in KINDS), "--track.flush_s", 200, env=servers.clean_env(folder, **env))

        def look():
            for pid in [process.pid, *tap.children(process.pid)]:
                seen.append(pathlib.Path("/proc/%d/cmdline" % pid).read_bytes())
        out, err = tap.communicate_watched(process, look)
        equal(process.returncode, 0)
        equal(wandb.pending_faults(), 0)
        assert seen and all(fake.requests for fake in fakes)
        places = {"stdout": out.encode(), "stderr": err.encode(), "arguments": b"".join(seen),
                  "uploads": b"".join(request.body for fake in fakes for request in fake.requests),
                  "addresses": " ".join(request.target for request in wandb.requests).encode(),
                  **{str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}}
        for canary in (KEY, "pass-word-of-ann", mlflow.auth.partition(" ")[2], trackio.token, Webhook.secret, "path-that-is-a-secret"):
            for place, data in places.items():
                assert canary.encode() not in data, "%s is in %s" % (canary, place)


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        del test_certificates
    os.environ.setdefault("NO_PROXY", "127.0.0.1")
    tap.main(sys.modules[__name__])
