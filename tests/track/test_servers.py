#!/usr/bin/env python3
"""test_servers.py - against real servers of MLflow and Trackio on loopback: a sweep's numbers are read back value for value,
while servers are killed and started again and after Trawl itself was killed. usage: test_servers.py TRAWL [NAME ...]; speaks
TAP. Needs the environment of `tools/test --servers`."""
import math
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import tap  # noqa: E402
from tap import equal, run  # noqa: E402

import servers  # noqa: E402
from waiting import SWEEP, Mlflow, Trackio, Waiting  # noqa: E402

TRIALS = 20
FLOAT_MAX = 1.7976931348623157e308


def spelt(value):
    """As a text in which NaN is equal to NaN; MLflow's tables hold the largest double instead of infinity, and no -0."""
    return repr(max(-FLOAT_MAX, min(FLOAT_MAX, value)) + 0.0) if not math.isnan(value) else "nan"


class RealMlflow(Mlflow):
    @staticmethod
    def env(server):
        return {"MLFLOW_TRACKING_URI": server.url}

    @staticmethod
    def read(server, study):
        """{run key: sorted [(name, ms, step, value)]}, duplicates too."""
        found = {}
        for one in server.runs(study):
            tags = {tag["key"]: tag["value"] for tag in one["data"]["tags"]}
            assert tags["trawl.run"] not in found, "two runs are %s" % tags["trawl.run"]
            points = []
            for metric in one["data"].get("metrics", []):
                page = server.api("GET", "metrics/get-history", run_id=one["info"]["run_id"], metric_key=metric["key"])
                assert "next_page_token" not in page
                points += [(m["key"], int(m["timestamp"]), int(m["step"]), spelt(float(m["value"]))) for m in page["metrics"]]
            found[tags["trawl.run"]] = sorted(points)
        return found

    @staticmethod
    def wanted(waiting):
        want = {}
        for row in waiting.rows:
            values, step = row.values()
            want.setdefault(row.run, set()).update((name, row.ms, step, spelt(v)) for name, v in values.items())
        return {key: sorted(points) for key, points in want.items()}


class RealTrackio(Trackio):
    @staticmethod
    def env(server):
        return {"TRACKIO_SERVER_URL": server.url, "TRACKIO_WRITE_TOKEN": server.token}

    @staticmethod
    def read(server, key):
        """{run key: sorted [(log id, step, {name: value})]} of one study."""
        found = {}
        for row in server.rows("trawl"):
            if row["run_id"].startswith(key + "-"):
                values = {k: repr(float(v)) for k, v in row["metrics"].items() if isinstance(v, (int, float))}
                values.pop("attempt", None)
                found.setdefault(row["run_id"], []).append((row["log_id"], row["step"] if values else 0,
                                                            sorted(values.items())))
        return {run_: sorted(rows) for run_, rows in found.items()}

    @staticmethod
    def wanted(waiting):
        want = {}
        for row in waiting.rows:
            values, step = row.values()
            if row.type != "file":
                want.setdefault(row.run, []).append(("%s:%d" % (row.run, row.id), step if values else 0,
                                                     sorted((k, repr(v)) for k, v in values.items())))
        return {run_: sorted(rows) for run_, rows in want.items()}


KINDS = (RealMlflow, RealTrackio)


def compare(got, want, whole=True):
    """Equal lists; whole False: each element must be wanted, and occur once."""
    if whole:
        equal(sorted(got), sorted(want))
    for key, rows in got.items():
        missing = [row for row in want[key] if row not in rows] if whole else []
        many = [row for row in rows if row not in want[key]]
        assert not missing and not many, "%s: missing %s, too many %s" % (key, missing[:3], many[:3])
        assert all(a != b for a, b in zip(rows, rows[1:])), "%s holds something twice" % key
    return sum(map(len, got.values()))


def read_back(waiting, mlflow, trackio, whole=True):
    """Compares both servers with the sent rows; returns their counts."""
    return (compare(RealMlflow.read(mlflow, "first"), RealMlflow.wanted(waiting), whole),
            compare(RealTrackio.read(trackio, waiting.key), RealTrackio.wanted(waiting), whole))


def some_counts(waiting, mlflow, trackio):
    """The counts so far, possibly 0; all values so far are right."""
    try:
        return read_back(waiting, mlflow, trackio, whole=False)
    except urllib.error.HTTPError as missing:
        equal(missing.code, 404)  # the experiment
        return 0, 0


def need_servers():
    if servers.missing():
        raise tap.Skip(servers.missing())


def test_a_sweep_while_servers_are_killed(folder):
    """20 trials; the third tracker never answers: the outbox keeps every row for the comparison."""
    need_servers()
    config = tap.write(folder, "sweep.ini", SWEEP)
    store = folder / "s.db"
    waiting = Waiting.__new__(Waiting)
    waiting.folder, waiting.store, waiting.kinds = folder, store, KINDS
    with servers.Trackio(folder / "trackio") as trackio, servers.Mlflow(folder / "mlflow") as mlflow:
        env = waiting.env((mlflow, trackio), {"TRAWL_WEBHOOK_URL": "http://127.0.0.1:%d/" % tap.free_port()})
        start = [tap.TRAWL, "sweep", str(config), "--name", "first", "--track", "mlflow,trackio,webhook", "--track.interval_s",
                 "0.1", "--track.requests_per_minute", "100000", "--track.flush_s", "5", "--store", str(store), "--trials"]
        more = [tap.TRAWL, "sweep", "--resume", "first", "--track", "mlflow,trackio,webhook", "--store", str(store),
                "--trials"]
        # Before: some trials, both servers up. Then the same study goes on while they come and go.
        subprocess.run(start + ["4"], env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=tap.PATIENCE_S)
        waiting.read()
        counts = some_counts(waiting, mlflow, trackio)
        for _ in range(10):  # a slow machine needs longer than the sweep waits at its end
            if min(counts) > 0:
                break
            subprocess.run([tap.TRAWL, "sync", "--store", str(store), "--timeout", "5s"], env=env, timeout=tap.PATIENCE_S,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            counts = some_counts(waiting, mlflow, trackio)
        assert min(counts) > 0, counts
        for trials in (8, 12):
            process = subprocess.Popen(more + [str(trials)], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.4)
            mlflow.kill()
            trackio.kill()
            equal(process.wait(tap.PATIENCE_S), 0)  # training does not mind
            trackio.start()
            mlflow.start()
            waiting.read()
            some_counts(waiting, mlflow, trackio)
        subprocess.run(more + [str(TRIALS)], env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=tap.PATIENCE_S)
        waiting.read()
        run("sync", "first", "--store", store, "--forget", "webhook", env=env, timeout=300)
        counts = read_back(waiting, mlflow, trackio)
        equal(waiting.left(), 0)
        run("sync", "--store", store, env=env)
        equal(read_back(waiting, mlflow, trackio), counts)
        check_runs(store, mlflow)
        equal(len(trackio.api("get_runs_for_project", project="trawl")), TRIALS + 1)


def check_runs(store, mlflow):
    """Runs by their names, parents, states, parameters and files."""
    runs = {one["info"]["run_name"]: one for one in mlflow.runs("first")}
    equal(len(runs), TRIALS + 1)
    trials = tap.show(store, "first")["trials"]
    for trial in trials:
        one = runs["first-%d" % trial["number"]]
        tags = {tag["key"]: tag["value"] for tag in one["data"]["tags"]}
        params = {param["key"]: param["value"] for param in one["data"]["params"]}
        equal(tags["mlflow.parentRunId"], runs["first"]["info"]["run_id"])
        equal(one["info"]["status"], "FINISHED" if trial["state"] == "done" else "FAILED")
        equal(float(params["train.gamma"]), trial["params"]["train.gamma"])
        latest = {m["key"]: float(m["value"]) for m in one["data"]["metrics"]}
        equal(latest["result/score"], trial["score"])
    assert mlflow.artifact(runs["first"], "config.ini").startswith(b"[env]\n")
    assert b"</html>" in mlflow.artifact(runs["first"], "report.html")
    assert mlflow.artifact(runs["first"], "front.json").startswith(b'{"columns":["trial","cost"')


def test_kill_of_trawl_in_the_middle_of_uploads(folder):
    """20 trials with NaN and infinities wait; `trawl sync` is killed repeatedly, MLflow once; the last sync sends the rest."""
    need_servers()
    waiting = Waiting(folder, *KINDS, trials=TRIALS)
    chance = random.Random(11)
    with servers.Trackio(folder / "trackio") as trackio, servers.Mlflow(folder / "mlflow") as mlflow:
        env = waiting.env((mlflow, trackio), {})
        want = RealMlflow.wanted(waiting), RealTrackio.wanted(waiting)
        for i in range(6):
            if i == 0:  # not all can be sent before the third kill
                os.killpg(trackio.process.pid, signal.SIGSTOP)
            elif i == 3:
                os.killpg(trackio.process.pid, signal.SIGCONT)
            process = subprocess.Popen([tap.TRAWL, "sync", "--store", str(waiting.store)], env=env,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.1, 1.2))
            if i == 3:
                mlflow.kill()
                mlflow.start()
            assert process.poll() is None or i > 2, "all was sent: nothing is tested"
            process.send_signal(signal.SIGKILL)
            process.wait()
        run("sync", "--store", waiting.store, env=env, timeout=300)
        compare(RealMlflow.read(mlflow, "first"), want[0])
        n = compare(RealTrackio.read(trackio, waiting.key), want[1])
        assert n > 200, n
        equal(waiting.left(), 0)
        run("sync", "--store", waiting.store, env=env)
        compare(RealMlflow.read(mlflow, "first"), want[0])
        compare(RealTrackio.read(trackio, waiting.key), want[1])
        values = {value for rows in want[1].values() for _, _, metrics in rows for _, value in metrics}
        assert {"nan", "inf", "-inf", "0.30000000000000004", "5e-324"} <= values, "the test's own rows lack them"


if __name__ == "__main__":
    tap.main(sys.modules[__name__])
