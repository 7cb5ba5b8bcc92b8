"""test_serve.py - `trawl serve` for clients of all kinds: every endpoint over a study of 1000 trials, caching, events, access, and
requests that are malformed, oversized, slow or hostile. Speaks HTTP by http.client and by bare sockets."""

import contextlib
import gzip
import http.client
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.parse

import tap

MAKE_STUDY = os.environ["MAKE_STUDY"]
EVIL = '<script>alert(1)</script>"\'&/..%'
S = "/api/v1/studies/big"


def make_study(store, name, trials, running=0):
    subprocess.run([MAKE_STUDY, str(store), name, str(trials), str(running)], check=True)


class Server:
    def __init__(self, process, url, err):
        self.process, self.url, self.err = process, url, err
        self.port = int(re.search(r":(\d+)/", url).group(1))

    def ask(self, path, method="GET", body=None, host=None, **headers):
        """Status, headers, body; names of headers have '_' for '-'."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=tap.PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            connection.putheader("Host", host or "localhost:%d" % self.port)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, dict((k.lower(), v) for k, v in answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path, want=200, **headers):
        status, head, body = self.ask(path, **headers)
        assert status == want, "%s: %d, not %d: %r" % (path, status, want, body[:500])
        return json.loads(body) if head["content-type"].startswith("application/json") else body

    def fails(self, path, want, says, **more):
        status, head, body = self.ask(path, **more)
        answer = json.loads(body)
        assert status == want and says in answer["error"] + " " + (answer["hint"] or ""), (status, answer)
        hardened(head)
        return answer

    def model(self, path):
        tap.wait_for(lambda: self.ask(path)[0] == 200 and self.get(path)["model"] == "ready", self.process)
        return self.get(path)

    def raw(self, data, wait=tap.PATIENCE_S):
        """All bytes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as s:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                s.sendall(data)
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while True:
                    part = s.recv(65536)
                    if not part:
                        break
                    got += part
            return got


@contextlib.contextmanager
def serving(store, *args, env=None):
    process = tap.start("serve", "--store", store, "--port", "0", *args, env=env)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://"), (url, process.stderr.read() if process.poll() is not None else "")
        server = Server(process, url, None)
        yield server
        assert process.poll() is None, "the server ended: %s" % process.stderr.read()
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        server_err = process.communicate(timeout=tap.PATIENCE_S)[1]
    tap.equal(process.returncode, 0)
    assert "ERROR: " not in server_err and "WARNING: " not in server_err, server_err  # of a sanitizer


big_store = None


def big(folder):
    """A store with a study of 1000 trials, made once; the test gets a copy."""
    global big_store
    if big_store is None:
        big_store = folder.parent / ("trawl-serve-%d.db" % os.getpid())
        make_study(big_store, "big", 1000)
    shutil.copy(big_store, folder / "s.db")
    return folder / "s.db"


def near(a, b):
    """Equal up to the 15th digit of a number."""
    tap.equal(list(a), list(b))
    for key in a:
        same = a[key] == b[key] or (isinstance(a[key], float) and abs(a[key] - b[key]) <= 1e-14 * abs(a[key]))
        assert same, "%s: %r is not %r" % (key, a[key], b[key])


def hardened(head):
    csp = head["content-security-policy"]
    assert "script-src 'self'" in csp and "unsafe" not in csp and "frame-ancestors 'none'" in csp, csp
    assert head["x-content-type-options"] == "nosniff" and head["referrer-policy"] == "no-referrer"


# -- endpoints --

def test_every_address_of_the_description(folder):
    """Each path of openapi.json answers with its type, and the numbers equal those of `trawl show`."""
    with serving(big(folder)) as s:
        paths = s.get("/api/v1/openapi.json")["paths"]
        assert len(paths) >= 20, sorted(paths)
        for path, methods in paths.items():
            if "get" not in methods or path.endswith(("/events", "/play")):
                continue
            real = path.replace("{study}", "big").replace("{trial}", "3").replace("{file}", "app.js")
            real = real.replace("{folder}/app.js", "charts/vega.js")
            query = "?param=train.gamma" if path.endswith("/slice") else ""
            status, head, body = s.ask(real + query)
            want = (200, 202) if "model" in path or path.endswith("insight") else (200, 303) if path == "/login" else (200,)
            assert status in want, (real, status, body[:300])
            if not path.endswith("/report"):
                hardened(head)
            if status == 200 and head["content-type"] == "application/json":
                json.loads(body)


def test_versions_and_studies(folder):
    store = big(folder)
    with serving(store) as s:
        version = s.get("/api/v1/version")
        assert version["store"] == "s.db" and version["store_ok"] and version["control"] is False and version["csrf"] is None
        studies = s.get("/api/v1/studies")["studies"]
        shown = tap.show(store, "big")
        tap.equal(len(studies), 1)
        one = s.get(S)
        same = ("counts", "best_score", "best_lo", "best_hi", "best_seeds", "best_run_score")
        for field, want in [("trials", 1000), ("knee_trial", shown["study"]["knee"]), ("best_trial", shown["study"]["best"]),
                            ("env", "squared"), ("cost_unit", "s"), ("direction", "maximize"), *((k, shown["study"][k]) for k in same)]:
            tap.equal(one[field], want)
            tap.equal(studies[0][field], want)
        tap.equal([p["key"] for p in one["space"]["params"]], [p["key"] for p in shown["study"]["space"]["params"]])
        near(one["reference"], shown["study"]["reference"])


def test_the_charts(folder):
    """Vega for the pages; the server draws the front too."""
    with serving(big(folder)) as s:
        status, head, body = s.ask("/assets/vega.js")
        tap.equal(status, 200)
        assert head["content-type"].startswith("text/javascript") and len(body) > 100000, head
        status, head, body = s.ask(S + "/report?format=svg")
        tap.equal(status, 200)
        assert head["content-type"].startswith("image/svg+xml") and b"<svg" in body[:200], head


def test_lists_of_trials(folder):
    store = big(folder)
    with serving(store) as s:
        shown = tap.show(store, "big")["trials"]
        all_rows = s.get(S + "/trials?limit=20000&fields=number,state,score,cost,on_front,params")
        tap.equal(len(all_rows["rows"]), 1000)
        keys = all_rows["columns"][5:]
        for row, trial in zip(all_rows["rows"], shown):
            tap.equal([row[0], row[1], row[4]], [trial["number"], trial["state"], trial["on_front"]])
            near({"score": row[2]}, {"score": trial["score"]})
            near(dict(zip(keys, row[5:])), trial["params"])
        pages, at = [], 0
        while at is not None:
            page = s.get(S + "/trials?limit=333&offset=%d&fields=number" % at)
            pages += [row[0] for row in page["rows"]]
            at = page["next_offset"]
        tap.equal(pages, list(range(1000)))
        best = s.get(S + "/trials?sort=score&order=desc&fields=score,number&limit=1000")["rows"]
        scores = [row[0] for row in best if row[0] is not None]
        tap.equal(scores, sorted(scores, reverse=True))
        assert all(row[0] is None for row in best[len(scores):]) and len(scores) < 1000
        failed = s.get(S + "/trials?state=failed,stopped&fields=state&limit=1000")
        tap.equal(failed["total"], sum(t["state"] in ("failed", "stopped") for t in shown))
        front = s.get(S + "/trials?front=1&fields=number&limit=1000")
        tap.equal([r[0] for r in front["rows"]], [t["number"] for t in shown if t["on_front"]])
        tap.equal(s.get(S + "/trials?since=%d" % all_rows["version"])["total"], 0)
        for query, says in [("limit=0", "limit"), ("limit=20001", "limit"), ("offset=-1", "offset"), ("sort=nothing", "no column"),
                            ("order=up", "asc or desc"), ("state=bad", "'bad'"), ("fields=x", "no column 'x'"), ("fields=", "fields"),
                            ("front=2", "1 or 0"), ("nothing=1", "no parameter"), ("limit=1&limit=2", "twice"), ("limit", "limit")]:
            s.fails(S + "/trials?" + query, 400, says)


def test_one_trial(folder):
    store = big(folder)
    with serving(store) as s:
        trial = s.get(S + "/trials/8?against=9")
        shown = tap.show(store, "big")["trials"][8]
        near({"score": trial["trial"]["score"]}, {"score": shown["score"]})
        near(trial["params"], shown["params"])
        config = {row["key"]: row for row in trial["config"]}
        near({"v": float(config["train.gamma"]["value"])}, {"v": shown["params"]["train.gamma"]})
        tap.equal(config["train.gamma"]["origin"], "searched")
        tap.equal(config["train.horizon"]["origin"], "default")
        tap.equal(config["train.horizon"]["differs"], False)
        near({"v": float(config["train.gamma"]["against"])}, {"v": tap.show(store, "big")["trials"][9]["params"]["train.gamma"]})
        tap.equal(trial["metrics"], ["perf", "score", "steps_per_s", "train/policy_loss"])
        tap.equal(trial["checkpoint"], None)
        tap.equal(trial["can_play"], False)
        curves = s.get(S + "/trials/8/curves?metrics=perf,train/policy_loss&points=4")
        tap.equal(len(curves["curves"]["perf"]["value"]), 4)
        tap.equal(curves["curves"]["perf"]["env_steps"][-1], s.get(S + "/trials/8/curves")["curves"]["perf"]["env_steps"][-1])
        tap.equal(s.get(S + "/trials/8/curves?metrics=none")["curves"]["none"]["value"], [])
        log = s.get(S + "/trials/7/log?bytes=10")
        assert log["available"] and log["truncated"] and len(log["text"]) == 10, log
        tap.equal(s.get(S + "/trials/8/log")["available"], False)
        for path, says in [("/trials/1000", "no trial 1000"), ("/trials/8?against=5000", "no trial 5000")]:
            s.fails(S + path, 404, says)
        for path in ("/trials/x", "/trials/-1", "/trials/1.5", "/trials/8?against=x", "/trials/99999999999999999999"):
            s.fails(S + path, 400, "")


def test_exports_are_those_of_the_command(folder):
    store = big(folder)
    shown = tap.show(store, "big")["trials"]
    rules = {"rule=knee": "knee", "budget_s=12.5": "cost<=12.5", "score=0.5": "score>=0.5", "trial=3": "trial=3", "": "best"}
    with serving(store) as s:
        for query, rule in rules.items():
            for kind in ("ini", "json", "args"):
                status, headers, got = s.ask(S + "/export?format=%s&%s" % (kind, query))
                want = subprocess.run([tap.TRAWL, "export", "big", "--store", str(store), "--pick", rule, "--format", kind],
                                      capture_output=True, check=True).stdout
                tap.equal((status, got, headers["content-disposition"][:26]), (200, want, 'attachment; filename="big-'))
            picked = s.get(S + "/pick?" + query)
            tap.equal(picked["rule"], rule)
            tap.equal(*([row[k] for k in ("n_seeds", "score_mean", "score_lo", "cost_mean")] for row in (picked, shown[picked["trial"]])))
            assert picked["train_command"].startswith("trawl train squared ")
            words = shlex.split(picked["export_command"])  # runs as it is in any folder; `want` is that of --format args
            assert want in subprocess.run([tap.TRAWL, *words[1:], "--format", "args"], cwd="/", capture_output=True, check=True).stdout
        tap.equal(shlex.split(s.get(S)["resume_command"])[2:6], ["--resume", "big", "--store", str(store.resolve())])
        s.fails(S + "/pick?budget_s=0.0001", 404, "no finished trial")
        s.fails(S + "/pick?rule=none", 400, "not known")
        s.fails(S + "/pick?rule=best&trial=3", 400, "both")
        s.fails(S + "/export?format=xml", 400, "xml")
        _, headers, html = s.ask(S + "/report?format=html")
        assert b"<svg" in html and "sandbox" in headers["content-security-policy"]
        want = subprocess.run([tap.TRAWL, "report", "big", "--store", str(store), "--format", "csv"], capture_output=True, check=True)
        tap.equal(s.ask(S + "/report?format=csv")[2], want.stdout)


def test_models(folder):
    store = big(folder)
    with serving(store) as s:
        first = s.ask(S + "/insight")
        assert first[0] == 202 and first[1]["retry-after"] == "1", first
        assert s.get("/api/v1/studies")["studies"], "other requests wait for a model"
        insight = s.model(S + "/insight")
        told = tap.show(store, "big")["insight"]
        tap.equal(insight["recommended"]["trial"], told["recommended"])
        tap.equal(insight["score_noise_sd"], told["score_noise_sd"])
        tap.equal([(p["key"], p["score"]["effect"]) for p in insight["params"]],
                  [(p["key"], p["score"]["effect"]) for p in told["params"]])
        best = insight["recommended"]
        assert best["score_lo"] < best["score"] < best["score_hi"] and best["cost_lo"] < best["cost"] < best["cost_hi"]
        front = s.get(S + "/model/front")["points"]
        assert len(front) > 3 and all(a["cost"] < b["cost"] and a["score"] < b["score"] for a, b in zip(front, front[1:]))
        tap.equal(sorted(front[0]["params"]), sorted(p["key"] for p in s.get(S)["space"]["params"]))
        points = s.get(S + "/front")["points"]
        tap.equal({p["trial"] for p in points}, {t["number"] for t in tap.show(store, "big")["trials"] if t["on_front"]})
        assert all(p["score_lo"] < p["score_hi"] and p["cost_lo"] < p["cost_hi"] for p in points)
        for at in ("", "&at=best", "&at=knee", "&at=5", "&at=recommended"):
            cut = s.get(S + "/model/slice?param=train.learning_rate" + at)
            values = [p["value"] for p in cut["points"]]
            assert values == sorted(values) and len(values) > 20
            tap.equal([values[0], values[-1]], [0.001, 0.03])
        tap.equal([p["value"] for p in s.get(S + "/model/slice?param=train.optimizer")["points"]], ["adam", "muon"])
        s.fails(S + "/model/slice", 400, "param")
        s.fails(S + "/model/slice?param=x", 400, "not searched")
        s.fails(S + "/model/slice?param=train.gamma&at=x", 400, "wanted")
        s.fails(S + "/model/slice?param=train.gamma&at=5000", 404, "5000")


def test_caching(folder):
    with serving(big(folder)) as s:
        for path in (S + "/trials?limit=500", "/", "/assets/app.js", "/api/v1/studies"):
            status, head, plain = s.ask(path)
            tap.equal(s.ask(path, method="HEAD")[2], b"")
            tap.equal(s.ask(path, method="HEAD")[1]["content-length"], str(len(plain)))
            zipped = s.ask(path, Accept_Encoding="br, gzip;q=0.5")
            if len(plain) > 600:
                tap.equal(zipped[1]["content-encoding"], "gzip")
                tap.equal(gzip.decompress(zipped[2]), plain)
            assert "content-encoding" not in s.ask(path, Accept_Encoding="gzip;q=0")[1]
            again = s.ask(path, If_None_Match='"x", W/' + head["etag"])
            tap.equal((again[0], again[2], again[1]["etag"]), (304, b"", head["etag"]))
            tap.equal(s.ask(path, If_None_Match='"other"')[0], 200)


# -- a living store --

class Stream:
    """Events of an open stream, as (type, data, id)."""

    def __init__(self, server, query="", **headers):
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=tap.PATIENCE_S)
        self.connection.request("GET", "/api/v1/events" + query, headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200 and self.answer.getheader("Content-Type") == "text/event-stream"

    def next(self):
        event = {}
        while True:
            line = self.answer.readline().decode().rstrip("\n")
            if line == "" and "event" in event:
                return event["event"], json.loads(event["data"]), event.get("id")
            if ": " in line and not line.startswith(":"):
                key, value = line.split(": ", 1)
                event[key] = value

    def until(self, kind, **fields):
        while True:
            event = self.next()
            if event[0] == kind and all(event[1].get(k) == v for k, v in fields.items()):
                return event

    def close(self):
        self.connection.close()


def test_events_of_a_growing_store(folder):
    store = folder / "s.db"
    make_study(store, "one", 3)
    with serving(store) as s:
        stream, only = Stream(s), Stream(s, "?study=two")
        tap.equal(stream.next()[0], "hello")
        before = s.get("/api/v1/studies")["version"]
        make_study(store, "two", 6, running=2)
        stream.until("studies")
        seen = stream.until("study", study="two")
        running = "/api/v1/studies/two/trials?state=running&fields=number,live_score,env_steps"
        tap.wait_for(lambda: s.ask("/api/v1/studies/two")[0] == 200 and s.get("/api/v1/studies/two")["trials"] == 6 and
                     all(row[1] is not None for row in s.get(running)["rows"]))  # the last trial's curve comes after its row
        assert s.get("/api/v1/studies")["version"] > before
        two = s.get("/api/v1/studies/two")
        tap.equal((two["counts"]["running"], two["state"]), (2, "interrupted"))
        rows = s.get(running)["rows"]
        assert [r[0] for r in rows] == [4, 5] and all(r[1] > 0 and r[2] > 0 for r in rows), rows
        only.until("hello")
        tap.equal(only.until("study")[1]["study"], "two")
        only.close()
        stream.close()
        back = Stream(s, Last_Event_ID=seen[2])
        tap.equal(back.next()[0], "hello")
        back.close()
        lost = Stream(s, Last_Event_ID="1-1")
        tap.equal([lost.next()[0], lost.next()[0]], ["reset", "hello"])
        lost.close()
        for bad in ("", "x", "-", "99999999999999999999-1", "1-99999999999999999999"):
            Stream(s, Last_Event_ID=bad).close()


def test_a_sweep_is_followed_live(folder):
    config = tap.write(folder, "c.ini", "[env]\nname = squared\n[train]\ntotal_timesteps = 20000\n[sweep]\nmethod = random\n"
                       "[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.03\n")
    with serving(folder / "s.db") as s:
        tap.equal(s.get("/api/v1/version")["store_ok"], False)
        tap.equal(s.get("/api/v1/studies")["studies"], [])
        s.fails("/api/v1/studies/live", 503, "no store")
        stream = Stream(s)
        tap.run("sweep", config, "--store", folder / "s.db", "--name", "live", "--trials", "3")
        ended = stream.until("study", study="live", state="finished")  # may come with the look that finds the store
        tap.equal(ended[1]["counts"]["done"], 3)
        tap.equal(s.get("/api/v1/studies/live/trials?fields=state")["rows"], [["done"]] * 3)
        stream.close()


def test_a_store_that_goes_and_comes(folder):
    store = folder / "s.db"
    make_study(store, "one", 3)
    make_study(folder / "other.db", "two", 2)
    with serving(store) as s:
        stream = Stream(s)
        os.rename(store, folder / "gone.db")
        stream.until("store", ok=False)
        tap.equal(s.get("/api/v1/version")["store_ok"], False)
        assert s.get("/api/v1/studies")["studies"][0]["name"] == "one", "what was read stays visible"
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(str(store) + suffix)
        os.rename(folder / "other.db", store)
        stream.until("store", ok=True)
        tap.equal([x["name"] for x in s.get("/api/v1/studies")["studies"]], ["two"])
        tap.equal(s.get("/api/v1/studies/two/trials/1")["trial"]["number"], 1)
        s.fails("/api/v1/studies/one", 404, "no study 'one'")
        stream.close()
    tap.write(folder, "bad.db", "this is no store")
    with serving(folder / "bad.db") as s:
        assert "not a Trawl store" in s.get("/api/v1/version")["store_error"]


def overwrite(path, data):
    """In place: the file keeps its inode."""
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


def test_what_is_no_longer_the_store_is_noticed(folder):
    """A file that keeps its name and its inode, and gets another content, or loses its log."""
    store = folder / "s.db"
    make_study(store, "big", 8)
    older = folder / "older.db"
    tap.run("backup", store, older)
    whole = older.read_bytes()
    db = sqlite3.connect(str(older), isolation_level=None)  # as a backup of an earlier hour: same study, other results
    db.execute("PRAGMA journal_mode = DELETE")
    db.execute("DELETE FROM metric WHERE trial_id IN (SELECT id FROM trial WHERE number > 4)")
    db.execute("DELETE FROM curve_sum WHERE trial_id IN (SELECT id FROM trial WHERE number > 4)")
    db.execute("DELETE FROM trial WHERE number > 4")
    db.close()
    with serving(store) as s:
        tap.equal(s.get("/api/v1/studies/big")["trials"], 8)
        tap.equal(s.get(S + "/trials?fields=number")["total"], 8)
        stream = Stream(s)
        overwrite(store, b"this is no store\n" * 1000)
        said = stream.until("store", ok=False)[1]["error"]
        assert "s.db" in said, said
        assert s.get("/api/v1/version")["store_error"] == said
        tap.equal(s.get("/api/v1/studies/big")["trials"], 8)  # what was read stays
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(str(store) + suffix)
        overwrite(store, older.read_bytes())
        stream.until("store", ok=True)
        tap.wait_for(lambda: s.get("/api/v1/studies/big")["trials"] == 5, s.process)
        tap.equal(s.get(S + "/trials?fields=number")["total"], 5)
        other = folder / "new.db"  # the same path, another file, between two looks
        other.write_bytes(whole)
        os.rename(other, store)
        tap.wait_for(lambda: s.get("/api/v1/studies/big")["trials"] == 8, s.process)
        stream.close()


def locks_on(process, path):
    """POSIX locks that the process holds on the file."""
    inode = str(os.stat(path).st_ino)
    lines = pathlib.Path("/proc/locks").read_text().split("\n")
    return [line for line in lines if "POSIX" in line and line.split()[4] == str(process.pid) and line.split()[5].split(":")[2] == inode]


def test_the_server_keeps_its_locks_and_its_log(folder):
    """A process that opens and closes the file beside SQLite drops SQLite's locks; the next controller then deletes the log that the
    server reads, and what comes later is never seen."""
    config = tap.write(folder, "c.ini", tap.TINY_SWEEP)
    store = folder / "s.db"
    sweep = lambda *more: tap.run("sweep", *more, "--store", store, "-q")
    sweep(config, "--name", "big", "--trials", 2)
    with serving(store, "--control") as s:
        assert locks_on(s.process, store), "the server's reader has no lock"
        log = os.stat(str(store) + "-wal").st_ino
        for path in ("/studies", "/studies/big", "/studies/big/trials/1", "/studies/big/trials/1/curves", "/studies/big/trials/1/log",
                     "/studies/big/pick", "/studies/big/export", "/studies/big/report", "/studies/big/trials/1/leases"):
            tap.equal(s.ask("/api/v1" + path)[0], 200)
            assert locks_on(s.process, store), "no lock after " + path
        csrf = s.get("/api/v1/version")["csrf"]
        tap.equal(control(s, b'{"action": "add", "trials": 2}', csrf)[0], 200)
        assert locks_on(s.process, store), "no lock after a change"
        for i, more in enumerate(((config, "--name", "two", "--trials", 2), ("--resume", "big", "--trials", 4), ("--resume", "two", "--trials", 5), (config, "--name", "three", "--trials", 1))):
            sweep(*more)
            tap.equal(os.stat(str(store) + "-wal").st_ino, log)  # nobody deletes the log that the server has open
            name, n = [("two", 2), ("big", 4), ("two", 5), ("three", 1)][i]
            tap.wait_for(lambda: s.ask("/api/v1/studies/" + name)[0] == 200 and s.get("/api/v1/studies/" + name)["counts"]["done"] == n, s.process)


def test_names_are_inert(folder):
    store = folder / "s.db"
    make_study(store, EVIL, 12)
    path = "/api/v1/studies/" + urllib.parse.quote(EVIL, safe="")
    with serving(store) as s:
        tap.equal(s.get("/api/v1/studies")["studies"][0]["name"], EVIL)
        for part in ("", "/trials", "/front", "/trials/7", "/trials/7/log", "/pick", "/hypervolume", "/timeline", "/nothing"):
            status, head, body = s.ask(path + part)
            assert b"<" not in body, (part, body[:300])
            assert head["content-type"] == "application/json"
            hardened(head)
        name = s.ask(path + "/export")[1]["content-disposition"]
        assert re.fullmatch(r'attachment; filename="[A-Za-z0-9_-]+\.ini"', name), name
        assert b"<script>alert" not in s.ask(path + "/report?format=html")[2]


# -- a policy that plays --

GAMES = ["breakout", "cartpole", "memory", "pong", "squared"]


def test_a_policy_plays(folder):
    """Each game: a trial with a checkpoint streams pictures; the message for one without gives advice."""
    store = folder / "s.db"
    for game in GAMES:
        config = tap.write(folder, game + ".ini", "[env]\nname = %s\n[policy]\nhidden_size = 8\n[train]\ntotal_agents = 16\n"
                           "horizon = 16\nminibatch_size = 256\ntotal_timesteps = 512\nthreads = 1\ndevice = cpu\n[sweep]\n"
                           "method = random\n[sweep.train.learning_rate]\nmin = 0.001\nmax = 0.03\n" % game)
        tap.run("train", config, "-o", folder / (game + ".ckpt"))
    db_trials(store, folder)
    with serving(store) as s:
        for number, game in enumerate(GAMES):
            begin, frames = watch(s, "/api/v1/studies/games/trials/%d/play?fps=120&seed=3" % number, 12)
            tap.equal(begin["env"], game)
            for frame in frames:
                assert frame["draw"], frame
                for mark in frame["draw"]:
                    assert mark[0] in "rclt" and len(mark) == {"r": 6, "c": 5, "l": 7, "t": 7}[mark[0]], mark
                    assert all(-100 <= x <= 1000 for x in mark[1:] if not isinstance(x, str)), mark
            tap.equal([f["step"] for f in frames], list(range(1, 13)))
            tap.equal(watch(s, "/api/v1/studies/games/trials/%d/play?fps=120&seed=3" % number, 12)[1], frames)
        s.fails("/api/v1/studies/games/trials/5/play", 404, "no checkpoint")
        s.fails("/api/v1/studies/games/trials/6/play", 404, "not there any more")
        s.fails("/api/v1/studies/games/trials/0/play?fps=0", 400, "fps")
        _, events = watch_all(s, "/api/v1/studies/games/trials/7/play")
        assert events[-1][0] == "end" and "checkpoint" in events[-1][1]["reason"], events
        one = "/api/v1/studies/games/trials/0/play?fps=1"
        many = [open_play(s, one) for _ in range(4)]
        for i in range(4):  # a stream that its client left is noticed when it next has something to say
            tap.wait_for(lambda: many[i][1].status == 200 or many.__setitem__(i, open_play(s, one)))
            many[i][1].readline()
        s.fails("/api/v1/studies/games/trials/0/play", 503, "play already")
        for connection, _ in many:
            connection.close()


def db_trials(store, folder):
    """A study `games`: trial i has the checkpoint of game i; then a trial without one, one with a removed file, one with a broken file."""
    make_study(store, "games", 8)
    tap.write(folder, "bad.ckpt", "no checkpoint at all")
    paths = [str(folder / (g + ".ckpt")) for g in GAMES] + [None, str(folder / "gone.ckpt"), str(folder / "bad.ckpt")]
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        db.execute("DROP TRIGGER trial_finished_is_final")
        for number, path in enumerate(paths):
            (row,) = db.execute("SELECT id FROM trial WHERE number = ?", (number,)).fetchone()
            if number < len(GAMES):
                config = pathlib.Path(folder, GAMES[number] + ".ini").read_text().split("[sweep]")[0]
                db.execute("UPDATE trial SET config = ?, checksum = NULL WHERE id = ?", (config, row))
            if path:
                db.execute("INSERT INTO checkpoint (trial_id, env_steps, path, created_ms) VALUES (?, 512, ?, 1)", (row, path))


def open_play(s, path):
    connection = http.client.HTTPConnection("127.0.0.1", s.port, timeout=tap.PATIENCE_S)
    connection.request("GET", path)
    return connection, connection.getresponse()


def events_of(answer):
    kind = None
    for line in answer:
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line[7:]
        elif line.startswith("data: "):
            yield kind, json.loads(line[6:])


def watch(s, path, n):
    connection, answer = open_play(s, path)
    begin, frames = None, []
    for kind, data in events_of(answer):
        if kind == "begin":
            begin = data
        elif kind == "frame":
            frames.append(data)
        else:
            assert kind == "episode", (kind, data)
        if len(frames) == n:
            break
    connection.close()
    return begin, frames


def watch_all(s, path):
    connection, answer = open_play(s, path)
    events = list(events_of(answer))
    connection.close()
    return answer.status, events


# -- access --

def test_hosts(folder):
    with serving(big(folder), "--host", "trawl.example,other.example") as s:
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8080", "trawl.example", "other.example:443"):
            tap.equal(s.ask("/api/v1/version", host=host)[0], 200)
        for host in ("evil.example", "localhost.evil.example", "localhost:", "localhost:x", "127.0.0.1.evil.example", "[::1", "[::1]x",
                     "10.0.0.1", "a" * 300, "localhost@evil.example", "trawl.example."):
            s.fails("/api/v1/version", 403, "Host", host=host)
        assert s.raw(b"GET /api/v1/version HTTP/1.0\r\n\r\n").split(b" ")[1] in (b"403", b"400")
        assert s.raw(b"GET /api/v1/version HTTP/1.1\r\nConnection: close\r\n\r\n").split(b" ")[1] in (b"403", b"400")


def test_a_token_is_needed_elsewhere(folder):
    store = big(folder)
    with serving(store, "--bind", "0.0.0.0") as s:
        token = re.search(r"token=([0-9a-f]{48})", s.url).group(1)
        s.fails("/api/v1/studies", 401, "token")
        for bad in ("", token[:-1], token + "0", token.upper() + "x", "Bearer", "0" * 48):
            tap.equal(s.ask("/api/v1/studies", Authorization="Bearer " + bad)[0], 401)
            tap.equal(s.ask("/api/v1/studies", Cookie="trawl_%d=%s" % (s.port, bad))[0], 401)
        for path in ("/", "/study/big", "/assets/app.js", "/api/v1/events", S + "/export"):
            tap.equal(s.ask(path)[0], 401)
        tap.equal(s.ask("/api/v1/studies?token=" + token)[0], 401)
        assert b"<form" in s.ask("/")[2]
        tap.equal(s.ask("/?token=" + token[:-1] + "x")[0], 401)
        status, head, _ = s.ask("/?token=" + token)
        assert status == 303 and head["location"] == "/" and "HttpOnly" in head["set-cookie"] and "SameSite=Strict" in head["set-cookie"]
        cookie = head["set-cookie"].split(";")[0]
        tap.equal(s.ask("/api/v1/studies", Cookie="a=b; " + cookie)[0], 200)
        tap.equal(s.ask("/api/v1/studies", Authorization="Bearer " + token)[0], 200)
        tap.equal(s.ask("/api/v1/studies", Authorization="Bearer " + token, host="evil.example")[0], 403)
        tap.equal(s.ask("/api/v1/studies", Authorization="Bearer " + token, host="192.0.2.7:80")[0], 200)
        form = s.ask("/login", method="POST", body=b"token=" + token.encode())
        assert form[0] == 303 and form[1]["set-cookie"].split(";")[0] == cookie
        tap.equal(s.ask("/login", method="POST", body=b"token=no")[0], 401)
        tap.equal(s.ask("/login", method="POST", body=b"\xff" * 5000)[0], 401)
    own = tap.write(folder, "token", "correct-horse-battery\n")
    with serving(store, "--bind", "0.0.0.0", "--token-file", own) as s:
        assert "token" not in s.url
        tap.equal(s.ask("/api/v1/studies", Authorization="Bearer correct-horse-battery")[0], 200)
    tap.fails("serve", "--store", store, "--token-file", tap.write(folder, "short", "abc"), code=2, says=("16", "openssl"))


def control(s, body, csrf, **more):
    headers = {"Content_Type": "application/json", "Origin": "http://localhost:%d" % s.port, "X_Trawl_Csrf": csrf}
    headers.update(more)
    status, _, answer = s.ask(S + "/control", method="POST", body=body, **{k: v for k, v in headers.items() if v is not None})
    return status, json.loads(answer)


def test_control(folder):
    store = big(folder)
    with serving(store) as s:
        tap.equal(control(s, b'{"action": "pause"}', "x")[0], 403)
    with serving(store, "--control") as s:
        csrf = s.get("/api/v1/version")["csrf"]
        good = b'{"action": "add", "trials": 5}'
        for more in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": None}, {"X_Trawl_Csrf": None},
                     {"X_Trawl_Csrf": csrf[:-1]}, {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
                     {"Origin": "http://localhost:%d.evil.example" % s.port}):
            tap.equal(control(s, good, csrf, **more)[0], 403)
        tap.equal(control(s, good, csrf, Content_Type="text/plain")[0], 415)
        tap.equal(s.get(S)["trials_max"], 1000)
        status, answer = control(s, good, csrf, Sec_Fetch_Site="same-origin")
        assert status == 200 and answer["ok"], answer
        tap.wait_for(lambda: s.get(S)["trials_max"] == 1005)
        for body in (b"", b"[]", b"{", b"{}", b'{"action": "explode"}', b'{"action": 3}', b'{"action": "add"}',
                     b'{"action": "add", "trials": -1}', b'{"action": "add", "trials": 1e300}', b"\xff" * 100, b"[" * 60000):
            status, answer = control(s, body, csrf)
            assert status == 400 and answer["error"], (body[:30], status, answer)
        for body, word in ((b'{"action": "add", "trials": "x"}', "trials is no whole number"),
                           (b'{"action": "add", "trials": 1, "budget_s": "1h"}', "budget_s is no number"),
                           (b'{"action": "add", "trials": "5"}', "trials is no whole number that fits; a number is written without"),
                           (b'{"action": "add", "trials": 1, "budget_s": "60"}', "budget_s is no number; a number is written without"),
                           (b'{"action": "stop\\u0000x"}', "\\u0000"),
                           (b'{"action": "priority", "priority": 2.5}', "priority is no whole number"),
                           (b'{"action": "priority"}', "'priority' is missing"),
                           (b'{"action": "add", "trials": 1, "trials": 2}', "'trials' is given twice"),
                           (b'{"action": "explode"}', "'explode'; pause, continue, stop, add, priority and retry"),
                           (b'{"action": "add", "trails": 5}', "add takes no field 'trails'"),
                           (b'{"action": "pause", "trials": 5}', "pause takes no field 'trials'"),
                           (b'{"action": "pause", "now": "yes"}', "now is neither"),
                           (b'{"action": "pause", "study": "other"}', "no field 'study'")):
            status, answer = control(s, body, csrf)
            assert status == 400 and word in "%(error)s; %(hint)s" % {"hint": "", **answer}, (body, status, answer)
        tap.equal(control(s, b"x" * 70000, csrf)[0], 413)
        tap.equal(control(s, b'{"action": "pause"}', csrf)[0], 200)
        tap.wait_for(lambda: s.get(S)["state"] == "paused")
        tap.equal(control(s, b'{"action": "pause"}', csrf)[0], 409)
        tap.equal(s.ask(S + "/control")[0], 405)


def test_methods_and_paths(folder):
    with serving(big(folder)) as s:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"):
            status, head, _ = s.ask(S, method=method, body=b"")
            assert status == 405 and head["allow"] == "GET, HEAD", (method, status)
        for path in ("/nothing", "/api", "/api/v1", "/api/v1/", "/api/v2/studies", S + "/", S + "//trials", "/assets", "/assets/",
                     "/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/assets/..%2f..%2fetc%2fpasswd", "/../../etc/passwd",
                     "/assets/charts", "/assets/%00", "/assets/app.js%00.png", "/%", "/%zz", "/%ff", "/a/b/c/d/e/f/g/h/i/j", "//",
                     "/api/v1/studies/%2e%2e", "/assets//etc/passwd", "/.git/config", "/assets/charts/../app.js"):
            status, head, body = s.ask(path)
            assert status in (400, 404) and json.loads(body)["error"], (path, status, body[:200])
            assert b"root:" not in body
        for path in ("/", "/study/big", "/study/x/y?z=1", "/compare?a=1", "/index.html"):
            assert s.ask(path)[0] == 200 and s.ask(path)[1]["content-type"].startswith("text/html"), path


def test_malformed_and_oversized_requests(folder):
    with serving(big(folder)) as s:
        host = b"Host: localhost\r\nConnection: close\r\n"
        for data in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\x00\xff\x16\x03\x01" * 50, b"GET / HTTP/9.9\r\n" + host + b"\r\n",
                     b"GET /\x01\x02 HTTP/1.1\r\n" + host + b"\r\n", b"G" * 100000,
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n" + host + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 100000 + b"\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"".join(b"X%d: y\r\n" % i for i in range(5000)) + b"\r\n",
                     b"GET / HTTP/1.1\r\n" + host + b"Content-Length: -5\r\n\r\n",
                     b"POST /login HTTP/1.1\r\n" + host + b"Content-Length: 99999999999999999999\r\n\r\n",
                     b"POST /login HTTP/1.1\r\n" + host + b"Content-Length: 70000\r\n\r\n" + b"x" * 70000,
                     b"POST /login HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
                     b"POST /login HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\n" + b"8000\r\n" + b"x" * 32768 + b"\r\n" +
                     b"8000\r\n" + b"x" * 32768 + b"\r\n" + b"8000\r\n" + b"x" * 32768 + b"\r\n0\r\n\r\n",
                     b"GET /api/v1/studies?" + b"a=1&" * 50 + b" HTTP/1.1\r\n" + host + b"\r\n",
                     b"GET /api/v1/studies?" + b"a" * 5000 + b" HTTP/1.1\r\n" + host + b"\r\n"):
            with socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) as c:
                with contextlib.suppress(OSError):
                    c.sendall(data)
                    c.shutdown(socket.SHUT_WR)
                got = b""
                with contextlib.suppress(OSError):
                    while part := c.recv(65536):
                        got += part
            assert got == b"" or re.match(rb"HTTP/1\.[01] 4\d\d |HTTP/1\.[01] 50[15] ", got) or b" 200 OK" in got[:20] or \
                b" 303 " in got[:20], (data[:60], got[:200])
            if b"70000\r\n" in data or len(data) > 90000:
                assert b" 200 " not in got[:20], data[:60]
        tap.equal(s.ask("/api/v1/studies")[0], 200)


def test_mutated_requests(folder):
    """Real requests with bytes changed, doubled, cut out and moved, the same ones each time; the sanitizers' build runs this too."""
    rng = random.Random(7)
    spice = [b"%", b"%00", b"%2e%2e", b"..", b"/", b"//", b"?", b"&", b"=", b"#", b"\r\n", b"\n", b"\0", b"\xff\xfe", b" ", b":", b"-1", b"1e999",
             b"99999999999999999999", b"nan", b"*", b",", b"\"", b"{", b"chunked", b"a" * 300]
    with serving(big(folder)) as s:
        seeds = [b"GET %s HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip;q=0.5, *\r\nIf-None-Match: \"0\", W/\"1\"\r\nCookie: a=b; c=d\r\n\r\n" % path.encode()
                 for path in (S + "/trials?offset=1&limit=5&sort=score&order=desc&fields=number,params&state=done&since=0", S + "/pick?budget_s=20",
                              S + "/model/slice?param=train.gamma&at=knee", S + "/trials/3/curves?metrics=perf&points=50", S + "/trials/3?against=4",
                              "/assets/charts/front.js", "/study/a%20b?f=cost:1:2", "/?token=abc")]
        seeds.append(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 9\r\n\r\ntoken=abc")
        for k in range(300):
            data = bytearray(seeds[k % len(seeds)])
            for _ in range(rng.randint(1, 5)):
                at, n = rng.randrange(len(data)), rng.randint(1, 12)
                kind = rng.randrange(5)
                if kind == 0:
                    data[at] = rng.randrange(256)
                elif kind == 1:
                    data[at:at + n] = b""
                elif kind == 2:
                    data[at:at] = rng.choice(spice)
                elif kind == 3:
                    data[at:at] = data[at:at + n] * rng.randint(1, 40)
                else:
                    to = rng.randrange(len(data))
                    data[to:to] = data[at:at + n]
            with socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) as c:
                got = b""
                c.settimeout(0.4)  # one that waits for more is left alone
                with contextlib.suppress(OSError):
                    c.sendall(bytes(data))
                    c.shutdown(socket.SHUT_WR)
                    while part := c.recv(65536):
                        got += part
            assert got == b"" or re.match(rb"HTTP/1\.[01] (200|206|303|304|4\d\d|501|503|505) ", got), (bytes(data), got[:200])
        tap.equal(s.ask("/api/v1/studies")[0], 200)


def test_slow_clients_do_not_hold_others_up(folder):
    with serving(big(folder)) as s:
        slow = [socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) for _ in range(60)]
        for c in slow:
            c.sendall(b"GET / HT")
        readers = [socket.create_connection(("127.0.0.1", s.port), timeout=tap.PATIENCE_S) for _ in range(20)]
        for c in readers: # they ask for a lot and take none of it
            c.sendall(b"GET %s/trials?limit=20000&fields=params,number HTTP/1.1\r\nHost: localhost\r\n\r\n" % S.encode() * 20)
        for _ in range(20):
            tap.equal(s.ask("/api/v1/studies")[0], 200)
        ended = threading.Event()

        def drip():  # a byte now and then, for ever
            with contextlib.suppress(OSError):
                while not ended.is_set():
                    slow[0].sendall(b"x")
                    time.sleep(0.5)

        dripper = threading.Thread(target=drip)
        dripper.start()
        try:
            for c in slow:  # the request's time is limited, bytes that come in do not lengthen it
                c.settimeout(tap.PATIENCE_S)
                with contextlib.suppress(ConnectionResetError):
                    assert c.recv(1000) == b""
        finally:
            ended.set()
            dripper.join()
        for c in slow + readers:
            c.close()
        tap.equal(s.ask("/api/v1/studies")[0], 200)


# -- the command --

def test_ports_and_usage(folder):
    store = big(folder)
    with serving(store) as s:
        tap.fails("serve", "--store", store, "--port", s.port, code=1, says=("in use", "--port 0"))
    tap.fails("serve", "--port", "70000", code=2, says="65535")
    tap.fails("serve", "--bind", "no.such.host.invalid", code=2, says="--bind")
    tap.fails("serve", "--open", "perhaps", code=2, says="yes or no")
    assert "--control" in tap.run("serve", "--help")[0]


def test_an_open_stream_does_not_keep_the_server(folder):
    process = tap.start("serve", "--store", big(folder), "--port", "0")
    s = Server(process, process.stdout.readline().strip(), None)
    streams = [Stream(s) for _ in range(5)]
    for stream in streams:
        stream.next()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=tap.PATIENCE_S)
    tap.equal(process.returncode, 0)
    for stream in streams:
        stream.close()


def test_a_report_that_is_asked_for_at_the_end_does_not_abort(folder):
    store = big(folder)
    for _ in range(4):
        process = tap.start("serve", "--store", store, "--port", "0")
        s = Server(process, process.stdout.readline().strip(), None)
        asked = threading.Event()

        def ask():
            with contextlib.suppress(OSError, http.client.HTTPException):
                while True:
                    if s.ask(S + "/report")[0] in (200, 503):
                        asked.set()

        askers = [threading.Thread(target=ask) for _ in range(4)]
        for t in askers:
            t.start()
        assert asked.wait(tap.PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        err = process.communicate(timeout=tap.PATIENCE_S)[1]
        for t in askers:
            t.join()
        tap.equal(process.returncode, 0)
        assert "suspended" not in err, err


if __name__ == "__main__":
    try:
        tap.main(sys.modules[__name__])
    finally:
        if big_store is not None:
            for suffix in ("", "-wal", "-shm", ".lock"):
                with contextlib.suppress(FileNotFoundError):
                    os.remove(str(big_store) + suffix)
