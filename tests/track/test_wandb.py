#!/usr/bin/env python3
"""test_wandb.py - W&B's client, the uploader and `trawl sync` against a strict fake that fails on request; cases that all trackers
share are in test_trackers.py.

The expected data are read from the outbox itself, before anything is sent. Usage: test_wandb.py TRAWL [NAME ...]; speaks TAP."""
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import ssl
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e"))
import tap  # noqa: E402
from tap import equal, fails, run, write  # noqa: E402

import servers  # noqa: E402
from fake_wandb import KEY, FakeWandb  # noqa: E402
from faults import BlackHole, Certificates, ConnectProxy  # noqa: E402
from waiting import SWEEP, Waiting, Wandb, number  # noqa: E402

# A trial that does not end by itself, with no more reports than a slow machine can send.
ENDLESS = SWEEP.replace("8192", "1G").replace("log_interval_s = 0", "log_interval_s = 0.05")
TRACK = ["--track", "wandb", "--track.interval_s", "0.1", "--track.requests_per_minute", "100000", "--track.flush_s", "200"]


def environment(home, url=None, key=KEY, **more):
    """The tests' own environment: no variable of the machine's trackers, no proxy."""
    ours = {"WANDB_BASE_URL": url, "WANDB_API_KEY": key}
    return servers.clean_env(home, **{name: value for name, value in ours.items() if value}, **more)


def test_sync_tells_everything_once(folder):
    waiting = Waiting(folder, Wandb)
    with FakeWandb() as fake:
        waiting.sync(fake)
        waiting.check(fake)
        n = len(fake.requests)
        before = {name: list(r.history) for name, r in fake.runs.items()}
        waiting.sync(fake)
        equal(len(fake.requests), n)
        equal({name: list(r.history) for name, r in fake.runs.items()}, before)
        run_ = fake.run(waiting.key + "-0")
        equal((run_.display_name, run_.group, run_.job_type, run_.project), ("first-0", "first", "train", "trawl"))
        equal(run_.config["env"]["value"]["name"], "squared")
        equal(run_.config["trawl"]["value"]["number"], 0)
        assert run_.config["_wandb"]["value"]["t"], "W&B's own client takes runs without t for unstarted ones"
        equal(run_.summary["result/state"], "done")
        equal(run_.summary["result/env_steps"], 8192)
        study = fake.run(waiting.key + "-study")
        equal(study.job_type, "study")
        assert {"config.ini", "report.html"} <= set(study.files), sorted(study.files)
        assert set(study.uploaded) == set(study.files), (study.uploaded, sorted(study.files))
        last = [row for row in study.rows() if "study/front" in row][-1]
        front = [row.json for row in waiting.rows if row.type == "front"][-1]
        for name in ("study/hypervolume", "study/cost_s", "study/best_score"):  # with every digit
            equal((study.summary[name], last[name]), (front[name[6:]],) * 2)
        for row in study.rows():
            for value in row.values():
                if isinstance(value, dict):
                    equal(value["sha256"], hashlib.sha256(study.files[value["path"]]).hexdigest())
        table = json.loads(study.files[last["study/front"]["path"]])
        equal(table["columns"][:3], ["trial", "cost", "perf"])
        equal(len(table["data"]), last["study/front"]["nrows"])
        picture = [row for row in study.rows() if "study/picture" in row][-1]["study/picture"]
        assert b"<svg" in study.files[picture["path"]] and len(study.files[picture["path"]]) == picture["size"]
        documented(fake)
        assert last["study/trials"] == 3 and "study/hypervolume" in last, last


def documented(fake):
    """docs/metrics.md has every number that is sent."""
    docs = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text()
    names = {name for r in fake.runs.values() for row in [*r.rows(), r.summary] for name in row if not name.startswith("_")}
    names |= {name.replace("system.", "system/") for r in fake.runs.values() for line in r.events
              for name in json.loads(line) if not name.startswith("_")}
    equal(sorted(name for name in names if "| `%s` |" % name not in docs), [])
    assert len(names) > 30, names


def test_tags_are_sent_whole_and_once(folder):
    long, edge = "x" * 65, "y" * 64
    store = folder / "s.db"
    with FakeWandb() as fake:
        _, err = run("sweep", write(folder, "s.ini", SWEEP), "--store", store, "--name", "a", "--trials", 1, *TRACK, "--track.tags",
                     "one, two,one,%s" % edge, env=environment(folder, fake.url, WANDB_TAGS="two , three," + long))
        equal(fake.broken, [])
        for run_ in fake.runs.values():
            equal(run_.tags, ["one", "two", edge, "three"])
        equal(err.count("has 65 characters, 64 are allowed"), 1)


def test_workers_get_neither_keys_nor_sockets(folder):
    """Workers run games of other people."""
    with FakeWandb() as fake:
        env = environment(folder, fake.url, HTTPS_PROXY="http://user:word@127.0.0.1:9", HF_TOKEN="hf_secret")
        env["NO_PROXY"] = "127.0.0.1"
        inherited = os.open(folder, os.O_RDONLY)  # as a library's that is not close-on-exec
        os.set_inheritable(inherited, True)
        process = tap.start("sweep", write(folder, "s.ini", ENDLESS), "--store", folder / "s.db", "--name", "a", "--trials", 1,
                            *TRACK, env=env, close_fds=False)
        os.close(inherited)
        tap.wait_for(fake.has_points, process)
        (worker,) = tap.children(process.pid)
        told = pathlib.Path("/proc/%d/environ" % worker).read_text()
        for word in (KEY, "hf_secret", "user:word"):
            assert word in pathlib.Path("/proc/%d/environ" % process.pid).read_text() and word not in told, word

        def targets(pid):
            """Its open files; one may be closed meanwhile."""
            found = set()
            for path in pathlib.Path("/proc/%d/fd" % pid).iterdir():
                with contextlib.suppress(FileNotFoundError):
                    found.add(os.readlink(path))
            return {target for target in found if not target.startswith(("/proc/", "/sys/"))}  # what each looks up for itself

        shared = targets(worker) & targets(process.pid)
        assert str(folder) in targets(process.pid), targets(process.pid)
        equal(shared - {"/dev/null", os.readlink("/proc/%d/fd/2" % worker)}, set())  # the pipe of its log
        process.terminate()
        process.communicate(timeout=tap.PATIENCE_S)


def test_a_wish_for_years_of_silence(folder):
    """The wait of a wrong Retry-After is bounded."""
    waiting = Waiting(folder, Wandb, trials=1)
    with FakeWandb() as fake:
        fake.fail("status", code=429, retry_after=99999999)
        err = waiting.sync(fake, code=1, timeout="15s", TRAWL_DEBUG="1")
        waits = [float(s) for s in re.findall(r"next try in ([0-9.]+) s", err)]
        assert waits and max(waits) <= 600 * 1.5, err


def test_redirect_to_the_same_host_is_followed(folder):
    waiting = Waiting(folder, Wandb)
    with FakeWandb() as fake:
        fake.fail("redirect", to="", times=3)
        waiting.sync(fake)
        waiting.check(fake)


def test_bad_login_is_told_and_costs_nothing(folder):
    config = write(folder, "sweep.ini", SWEEP)
    wrong = "f" * 40
    with FakeWandb() as fake:
        env = environment(folder, fake.url, wrong)
        said = run("sweep", config, "--store", folder / "s.db", "--name", "first", "--trials", 2, *TRACK, env=env)[1]
        equal(said.count("wandb refuses"), 1)
        assert "key from WANDB_API_KEY" in said and "trawl sync" in said, said
        assert wrong not in said, said
        message = fails("sweep", config, "--store", folder / "t.db", "--name", "first", "--trials", 2, *TRACK,
                        "--track.strict", "true", env=env, code=2, says=["wandb", "permission denied"])
        assert wrong not in message, message
        run("sweep", config, "--store", folder / "t.db", "--name", "first", "--trials", 2, env=env)
        run("sync", "--store", folder / "s.db", env=environment(folder, fake.url))
        equal(len([r for r in fake.runs.values() if r.state == "finished"]), 3)


def test_keys_that_cannot_be_right(folder):
    config = write(folder, "sweep.ini", SWEEP)
    sweep = ["sweep", config, "--store", folder / "s.db", "--name", "first", *TRACK]
    for key, word in (("short", "40 or more"), ("0" * 39 + "\n1", "blank, a quote"), (None, "no API key")):
        message = fails(*sweep, env=environment(folder, "http://127.0.0.1:9", key), code=2, says=word)
        assert "0000" not in message, message
    fails(*sweep, env=environment(folder, "http://user:secret@127.0.0.1:9"), code=2, says="password")
    fails(*sweep, "--track.wandb_url", "http://u:secret@h", env=environment(folder), code=2, says="track.wandb_url")
    # none of them has taken the name of the study
    run(*sweep, "--trials", 2, "--track.offline", "true", env=environment(folder, "http://127.0.0.1:9", None))


def test_key_from_netrc_by_host_and_port(folder):
    waiting = Waiting(folder, Wandb)
    with FakeWandb() as fake:
        netrc = write(folder, ".netrc", "machine 127.0.0.1 login user password %s\n"
                      "machine 127.0.0.1:%d\n  login user\n  password %s\n" % ("e" * 40, fake.port, KEY))
        netrc.chmod(0o644)
        said = waiting.sync(fake, WANDB_API_KEY=None)
        assert "others may read it" in said and KEY not in said, said
        waiting.check(fake)


def test_other_names_that_are_refused(folder):
    config = write(folder, "sweep.ini", SWEEP)
    sweep = ["sweep", config, "--store", folder / "s.db", "--name", "first"]
    fails(*sweep, "--track", "neptune", code=2, says=["closed on 2026-03-05", "wandb", "mlflow", "trackio"])
    fails(*sweep, "--track", "wandbb", code=2, says="did you mean 'wandb'")
    assert not (folder / "s.db").exists()


def test_offline_opens_no_socket(folder):
    config = write(folder, "sweep.ini", SWEEP)
    with FakeWandb() as fake:
        for name, args, more in (("a", ["--track.offline", "true"], {}), ("b", [], {"WANDB_MODE": "offline"})):
            said = run("sweep", config, "--store", folder / (name + ".db"), "--name", name, "--trials", 2, *TRACK, *args,
                       env=environment(folder, fake.url, **more))[1]
            assert name == "b" or "trawl sync" in said, said
        equal(fake.requests, [])
        run("sync", "--store", folder / "b.db", env=environment(folder, fake.url, WANDB_MODE="offline"))
        equal(len(fake.runs), 3)
        run("sweep", config, "--store", folder / "c.db", "--name", "c", "--trials", 2, *TRACK,
            env=environment(folder, fake.url, WANDB_MODE="disabled"))
        equal(len(fake.runs), 3)
        equal(tap.rows(folder / "c.db", "SELECT count(*) FROM outbox"), [(0,)])


def test_sweep_killed_while_it_runs(folder):
    """The next sweep sends the rows that a killed sweep left; a trial that runs again from zero has its own run."""
    config = write(folder, "sweep.ini", SWEEP.replace("8192", "65536"))
    store = folder / "s.db"
    with FakeWandb() as fake:
        env = environment(folder, fake.url)
        process = tap.start("sweep", config, "--store", store, "--name", "first", "--trials", 4, *TRACK, env=env)
        tap.wait_for(lambda: sum(len(r.history) for r in list(fake.runs.values())) > 60, process)
        process.kill()
        process.communicate()
        audit = sqlite3.connect(store)
        audit.execute("CREATE TABLE audit AS SELECT id, study_id, trial_id, payload, created_ms FROM outbox")
        audit.execute("CREATE TRIGGER audit_ AFTER INSERT ON outbox BEGIN INSERT INTO audit VALUES (new.id, new.study_id, "
                      "new.trial_id, new.payload, new.created_ms); END")
        audit.commit()
        audit.close()
        run("sweep", "--resume", "first", "--store", store, env=env)
        equal(fake.broken, [])
        db = sqlite3.connect(store)
        equal(db.execute("SELECT count(*) FROM outbox").fetchone(), (0,))
        key = db.execute("SELECT key FROM tracker").fetchone()[0]
        for number_ in range(4):
            name = "%s-%d" % (key, number_)
            for payload, in db.execute("SELECT a.payload FROM audit a JOIN trial t ON t.id = a.trial_id WHERE t.number = ? "
                                       "ORDER BY a.id", (number_,)):
                row = json.loads(payload)
                if row.get("anew"):
                    equal((fake.run(name).state, fake.run(name).summary["result/state"]), ("failed", "lost"))
                    name = "%s-%d-a%d" % (key, number_, row["attempt"])
                if row["type"] == "metrics":
                    told = [line for line in fake.run(name).rows() if line["_step"] == row["env_steps"]]
                    equal([line["train/lr"] for line in told], [number(row["values"]["train/lr"])])
            steps = [line["_step"] for line in fake.run(name).rows()]
            equal((fake.run(name).state, steps[0], steps[-1]), ("finished", 256, 65536))


def test_a_run_without_news_is_alive(folder):
    """A trial without reports for a long time: the server still gets heartbeats, or it would show the run as crashed."""
    config = write(folder, "sweep.ini", SWEEP.replace("8192", "1G").replace("log_interval_s = 0", "log_interval_s = 3600"))
    with FakeWandb() as fake:
        process = tap.start("sweep", config, "--store", folder / "s.db", "--name", "first", "--trials", 1, *TRACK,
                            "--track.beat_s", "0.2", env=environment(folder, fake.url))
        trials = lambda: [r for r in list(fake.runs.values()) if not r.name.endswith("-study")]
        tap.wait_for(lambda: any(r.beats >= 3 for r in trials()), process)
        (got,) = trials()
        equal((got.history, got.exitcode, got.state), ([], None, "running"))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=tap.PATIENCE_S)
        equal(fake.broken, [])


def test_stop_on_the_page(folder):
    config = write(folder, "sweep.ini", ENDLESS)
    store = folder / "s.db"
    with FakeWandb() as fake:
        process = tap.start("sweep", config, "--store", store, "--name", "first", "--trials", 1, *TRACK,
                            "--track.thin_s", "0.2", env=environment(folder, fake.url))
        tap.wait_for(fake.has_points, process)
        fake.stop_run(next(name for name, r in list(fake.runs.items()) if r.history))
        process.communicate(timeout=tap.PATIENCE_S)
        trial = tap.show(store, "first")["trials"][0]
        equal((trial["state"], trial["reason"]), ("stopped", "stopped on the page of wandb"))
        got = next(r for r in fake.runs.values() if r.history)
        equal((got.state, got.summary["result/state"]), ("finished", "stopped"))


def test_interrupted_and_resumed(folder):
    """Ctrl-C: the run is marked as interrupted, and continues as the same run. The trial does not end by itself: it is
    stopped on the page once it has continued."""
    config = write(folder, "sweep.ini", ENDLESS)
    store = folder / "s.db"
    with FakeWandb() as fake:
        env = environment(folder, fake.url)
        process = tap.start("sweep", config, "--store", store, "--name", "first", "--trials", 1, *TRACK,
                            "--track.thin_s", "0.2", env=env)
        tap.wait_for(lambda: any(r.history for r in list(fake.runs.values()) if r.job_type == "train"), process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=tap.PATIENCE_S)
        equal(process.returncode, 130)
        (got,) = [r for r in fake.runs.values() if r.job_type == "train"]
        assert got.preempting and got.exitcode is None, (vars(got), err)
        told = got.rows()[-1]["_step"]
        process = tap.start("sweep", "--resume", "first", "--store", store, "--track", "wandb", env=env)
        tap.wait_for(lambda: got.rows()[-1]["_step"] > told, process)
        fake.stop_run(got.name)
        _, err = process.communicate(timeout=tap.PATIENCE_S)
        equal((process.returncode, fake.broken), (0, []))
        equal(sorted(r.exitcode for r in fake.runs.values()), [0, 0])
        steps = [row["_step"] for row in got.rows()]
        assert steps == sorted(set(steps)), steps
        equal(tap.show(store, "first")["trials"][0]["state"], "stopped")


class Behind(FakeWandb):
    """A server whose requests have the host in their path (a proxy), or that is at a path of its host."""

    prefix = ""

    def answer(self, request):
        path = re.sub(r"^http://[^/]*", "", request.path)
        assert path.startswith(("/storage/", self.prefix)), request.path
        request.path = path if path.startswith("/storage/") else path[len(self.prefix):]
        return super().answer(request)


def test_proxy(folder):
    waiting = Waiting(folder, Wandb)
    with Behind() as fake:
        waiting.sync(fake, WANDB_BASE_URL="http://wandb.invalid", WANDB_HTTP_PROXY=fake.url)
        waiting.check(fake)
        assert all(r.target.startswith("http://") for r in fake.requests)


def test_https_through_a_tunnel(folder):
    """CONNECT, and TLS with the server: the proxy gets host names and its own login, never the tracker's."""
    certificates = Certificates(folder / "certs")
    waiting = Waiting(folder, Wandb)
    login = "proxy-user:canary-of-the-proxy"
    with FakeWandb(tls=certificates.good) as fake, ConnectProxy(login) as proxy:
        through = {"WANDB_BASE_URL": "https://localhost:%d" % fake.port, "HTTPS_PROXY": proxy.address(login)}
        ours = {**through, "SSL_CERT_FILE": certificates.ca}
        said = waiting.sync(fake, code=1, timeout="15s", **through)  # not our authority
        assert "certificate" in said and "canary" not in said, said
        equal(fake.requests, [])
        said = waiting.sync(fake, code=1, timeout="15s", **{**ours, "HTTPS_PROXY": proxy.address("proxy-user:canary-that-is-wrong")})
        assert "407" in said and "canary" not in said, said
        equal(fake.requests, [])
        said = waiting.sync(fake, code=1, **{**ours, "WANDB_BASE_URL": fake.url, "NO_PROXY": "127.0.0.1,example.org",
                                             "WANDB_API_KEY": "f" * 40})  # past the proxy: the server itself refuses the key
        assert "permission denied" in said, said
        n = len(proxy.asked)
        equal((len(fake.requests), [what for what, _ in proxy.asked if what.startswith("CONNECT 127")]), (1, []))
        fake.requests.clear()
        said = waiting.sync(fake, **ours)
        waiting.check(fake)
        assert len(proxy.asked) > n and "canary" not in said, said
        equal({what for what, _ in proxy.asked},  # files go where the server says
              {"CONNECT localhost:%d" % fake.port, "CONNECT 127.0.0.1:%d" % fake.port})
        names = {name for _, headers in proxy.asked for name in headers}
        assert "authorization" not in names and "proxy-authorization" in names, names
        tunnelled = b"".join(proxy.bytes)
        assert KEY.encode() not in tunnelled and b"canary" not in tunnelled and b"upsertBucket" not in tunnelled
        assert not any(b"canary" in r.body or "proxy-authorization" in r.headers for r in fake.requests)
        assert not any(b"canary" in p.read_bytes() for p in folder.iterdir() if p.is_file())


def test_address_with_a_path(folder):
    waiting = Waiting(folder, Wandb)
    with Behind() as fake:
        fake.prefix = "/wandb/api"
        waiting.sync(fake, WANDB_BASE_URL=fake.url + "/wandb/api/")
        waiting.check(fake)


def test_client_certificate(folder):
    certificates = Certificates(folder / "certs")
    config = write(folder, "sweep.ini", SWEEP)
    with FakeWandb(tls=certificates.good) as fake:
        fake.tls.verify_mode = ssl.CERT_REQUIRED
        fake.tls.load_verify_locations(certificates.ca)
        ca = ["--track.ca_file", certificates.ca]
        ours = ["--track.client_cert", certificates.client[0], "--track.client_key", certificates.client[1]]
        env = environment(folder, fake.url)
        for name, args, n in (("without", ["--track.flush_s", "2"], 0), ("with", ours, 2)):
            run("sweep", config, "--store", folder / (name + ".db"), "--name", name, "--trials", 1, *TRACK, *ca, *args, env=env)
            equal(len(fake.runs), n)


def test_requests_share_a_budget(folder):
    """Many short runs: in any span at most the budget and one burst."""
    waiting = Waiting(folder, Wandb, trials=32)
    began = time.monotonic()
    waiting.sql("UPDATE study SET checksum = NULL, config = replace(config, 'requests_per_minute = 100000', 'requests_per_minute = 600')")
    with FakeWandb() as fake:
        waiting.sync(fake, timeout="60s")
        waiting.check(fake)
        # Each is sent after the one before it was answered: whenever this process got to look at them, `at[j] - at[i]` is no
        # shorter than the time from the sending of the one behind i to that of j.
        at = [began] + [r.at for r in fake.requests]
        assert len(at) > 120, len(at)
        for i in range(0, len(at), 10):
            for j in range(i + 1, len(at)):
                assert j - i <= 100 + 10 * (at[j] - at[i]) + 2, (i, j, at[j] - at[i])


def test_a_silent_tracker_ends_sync(folder):
    """--timeout is for silence: a request's own timeout is longer here, and slow answers are not silence."""
    waiting = Waiting(folder, Wandb)
    n = waiting.left()
    with BlackHole() as hole:
        said = waiting.sync(hole, code=1, timeout="1s", WANDB_HTTP_TIMEOUT=600)
        assert "%d row(s) are left" % n in said and "run the command again" in said, said
        process = tap.start("sync", "--store", waiting.store, "--timeout", "600s",
                            env=environment(folder, hole.url, WANDB_HTTP_TIMEOUT=600))
        tap.wait_for(lambda: (folder / "s.db.lock").exists(), process)
        time.sleep(0.5)  # by now signals are caught; if not, it ends by one all the same, with another code
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=tap.PATIENCE_S)
        assert process.returncode in (130, -signal.SIGINT), process.returncode
        equal(waiting.left(), n)
    with FakeWandb() as fake:
        answer = fake.answer

        def slow(request):
            time.sleep(0.2)
            return answer(request)
        fake.answer = slow
        before = time.monotonic()
        waiting.sync(fake, timeout="4s")
        assert time.monotonic() - before > 4, "it was to take longer than it may be silent"
        waiting.check(fake)


def test_a_run_that_the_server_forgot(folder):
    """Another database at the same address: the run is made again and gets the later rows, once; the others too."""
    waiting = Waiting(folder, Wandb)
    name = waiting.key + "-1"
    with FakeWandb() as fake:
        stream, box = fake.file_stream, {"at": None}

        def forgetful(entity, project, run_name, body):
            run_ = fake.runs.get(name)
            if box["at"] is None and run_name == name and "complete" in body:
                box["at"] = len(run_.history)
                del fake.runs[name]
            return stream(entity, project, run_name, body)
        fake.file_stream = forgetful
        said = waiting.sync(fake)
        equal(said.count("no longer knows run %s" % name), 1)
        got = fake.run(name)
        equal((got.state, got.exitcode, got.display_name, got.group), ("finished", 0, "first-1", "first"))
        equal((len(got.history), box["at"]), (0, len(Wandb.curves(waiting)[name])))
        equal((waiting.left(), fake.broken), (0, []))


def test_a_run_that_is_never_known(folder):
    """A server that forgets a run at once loses only that run, without delay."""
    waiting = Waiting(folder, Wandb)
    name = waiting.key + "-1"
    with FakeWandb() as fake:
        fake.fail("status", code=404, match=name + "/file_stream", times=1000)
        said = waiting.sync(fake)
        equal((said.count("refuses run 1"), waiting.left()), (1, 0))
        assert 990 < fake.pending_faults(), fake.pending_faults()
        Wandb.check_run(fake.run(waiting.key + "-2"), Wandb.curves(waiting)[waiting.key + "-2"])


def test_deleted_run(folder):
    waiting = Waiting(folder, Wandb)
    with FakeWandb() as fake:
        fake.deleted.add(waiting.key + "-1")
        said = waiting.sync(fake, timeout="60s")
        assert "was deleted on the page" in said, said
        Wandb.check_run(fake.run(waiting.key + "-1-g1"), Wandb.curves(waiting)[waiting.key + "-1"])


def test_run_that_is_never_taken(folder):
    """Only the refused run is lost."""
    waiting = Waiting(folder, Wandb)
    with FakeWandb() as fake:
        fake.fail("status", code=422, match=waiting.key + "-1/file_stream", times=100)
        said = waiting.sync(fake)
        equal(said.count("refuses run 1"), 1)
        equal(waiting.left(), 0)
        Wandb.check_run(fake.run(waiting.key + "-2"), Wandb.curves(waiting)[waiting.key + "-2"])


def test_tracker_that_came_later(folder):
    """Rows that another tracker still lacks, of a run without its first row: they cannot be sent."""
    waiting = Waiting(folder, Wandb, trials=2)
    waiting.sql("DELETE FROM outbox WHERE id = (SELECT min(o.id) FROM outbox o JOIN trial t ON t.id = o.trial_id "
                "WHERE t.number = 1)")
    with FakeWandb() as fake:
        said = waiting.sync(fake)
        assert "refuses run" not in said, said
        waiting.rows = [row for row in waiting.rows if row.run != waiting.key + "-1"]
        waiting.check(fake)


def test_thinning_keeps_the_last(folder):
    waiting = Waiting(folder, Wandb, trials=1)
    name, rows = next(iter(Wandb.curves(waiting).items()))
    waiting.sql("UPDATE study SET checksum = NULL, config = replace(config, 'thin_s = 0', 'thin_s = 3600')")
    with FakeWandb() as fake:
        waiting.sync(fake)
        got = fake.run(name)
        assert 1 <= len(got.history) < len(rows) / 2, len(got.history)
        equal(got.rows()[-1]["_step"], rows[-1][0])
        equal(waiting.left(), 0)


if __name__ == "__main__":
    if shutil.which("openssl") is None:
        del test_client_certificate, test_https_through_a_tunnel
    tap.main(sys.modules[__name__])
