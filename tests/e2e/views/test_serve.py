"""test_serve.py - `trawl serve`: every endpoint over a study of 1000 trials, caching, and policies that play."""

import contextlib
import gzip
import json
import pathlib
import re
import shlex
import sqlite3
import subprocess
import urllib.parse

import tap
from serve_client import S, make_study, serving, big, hardened, open_play, watch, watch_all

EVIL = '<script>alert(1)</script>"\'&/..%'


def test_what_a_study_has_found(folder):
    with serving(big(folder)) as s:
        s_ = "/api/v1/studies/big"
        rows = s.get(s_ + "/trials?limit=20000&fields=number,state,score,n_seeds,expected,expected_lo,expected_hi")["rows"]
        done = [r for r in rows if r[1] == "done"]
        seeds = s.get(s_ + "/trials/%d/seeds" % done[0][0])
        tap.equal([(r[0], r[3]) for r in seeds["rows"]], [(done[0][0], done[0][2])])  # each config ran once
        tap.equal((seeds["all"]["n"], seeds["all"]["iqm"], seeds["all"]["sd"], seeds["fresh"]["n"]), (1, done[0][2], None, 0))
        s.wait(s_ + "/front", lambda a: a["model"] == "ready")
        rows = s.get(s_ + "/trials?limit=20000&fields=state,n_seeds,expected,expected_lo,expected_hi")["rows"]
        assert all(n == 1 and lo <= mean <= hi and 0 <= lo and hi <= 1 for state, n, mean, lo, hi in rows if state == "done"), rows[:5]
        briefing = s.get(s_ + "/briefing?since_ms=1")
        failed = [r for r in rows if r[0] in ("failed", "lost")]
        tap.equal((briefing["failures"]["trials"], briefing["gained"]["done"]), (len(failed), len(done)))
        tap.equal(briefing["take"]["trial"], s.get(s_)["best_trial"])
        hv = s.get(s_ + "/hypervolume?points=50")
        last = dict(zip(hv["columns"], hv["rows"][-1]))
        assert abs(briefing["gained"]["hypervolume"] - last["expected_hypervolume"]) < 1e-9, (briefing, last)
        tap.equal(s.get(s_ + "/calibration")["rows"], [])
        lanes = s.get(s_ + "/lanes")
        tap.equal((lanes["running"], lanes["left_s"], sorted(x["slot"] for x in lanes["slots"])), ([], None, ["cpu/0", "cpu/1"]))
        for query, status, words in (("", 400, "JSON array"), ("?studies=big", 400, "JSON array"), ("?studies=%5B%22big%22%5D", 400, "2 to 16"),
                                     ("?studies=%5B1,2%5D", 400, "not a name"), ("?studies=%5B%22big%22,%22gone%22%5D", 404, "no study 'gone'")):
            s.fails("/api/v1/compare" + query, status, words)
        s.fails(s_ + "/trials/99999/seeds", 404, "no trial 99999")
        s.fails(s_ + "/briefing?since_ms=-1", 400, "since_ms")


def near(a, b):
    """Equal up to the 15th digit of a number."""
    tap.equal(list(a), list(b))
    for key in a:
        same = a[key] == b[key] or (isinstance(a[key], float) and abs(a[key] - b[key]) <= 1e-14 * abs(a[key]))
        assert same, "%s: %r is not %r" % (key, a[key], b[key])


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
            query = "?param=train.gamma" if path.endswith("/slice") else "?x=train.gamma&y=train.optimizer" if path.endswith("/contour") else "?studies=%5B%22big%22,%22big%22%5D" if path.endswith("/compare") else ""
            status, head, body = s.request(real + query)
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
        assert version["store"] == "s.db" and version["store_ok"] and version["control"] is False
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
        status, head, body = s.request("/assets/vega.js")
        tap.equal(status, 200)
        assert head["content-type"].startswith("text/javascript") and len(body) > 100000, head
        status, head, body = s.request(S + "/report?format=svg")
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
        best = s.get(S + "/trials?sort=Score&order=desc&fields=score,number&limit=1000")["rows"]
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
                status, headers, got = s.request(S + "/export?format=%s&%s" % (kind, query))
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
        _, headers, html = s.request(S + "/report?format=html")
        assert b"<svg" in html and "sandbox" in headers["content-security-policy"]
        want = subprocess.run([tap.TRAWL, "report", "big", "--store", str(store), "--format", "csv"], capture_output=True, check=True)
        tap.equal(s.request(S + "/report?format=csv")[2], want.stdout)


def test_models(folder):
    store = big(folder)
    with serving(store) as s:
        # before there is a model: what it could not answer is refused at once, and asks for none
        for wrong, word in (("contour?x=train.gamma", "no y"), ("contour?x=train.gamma&y=train.gamma", "name two parameters"), ("contour?x=nope&y=train.gamma", "x: the study searches no 'nope'"),
                            ("contour?x=train.gamma&y=nope", "y: the study searches no 'nope'"), ("contour?x=train.gamma&y=train.optimizer&at=x", "give a trial's number"),
                            ("slice?param=x%20%C3%B1", "param: the study searches no 'x ñ' it searches train.total_timesteps, "), ("slice?param=train.gamma&at=-1", "give a trial's number")):
            s.fails(S + "/model/" + wrong, 400, word)
        s.fails(S + "/model/contour?x=train.gamma&y=train.optimizer&at=5000", 404, "5000")
        first = s.request(S + "/insight")
        assert first[0] == 202 and first[1]["retry-after"] == "1", first
        assert s.get("/api/v1/studies")["studies"], "other requests wait for a model"
        insight = s.wait(S + "/insight", lambda a: a["model"] == "ready")
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
            cut = s.get(S + "/model/slice?param=Train.Learning-Rate" + at)
            values = [p["value"] for p in cut["points"]]
            assert values == sorted(values) and len(values) > 20
            tap.equal([values[0], values[-1]], [0.001, 0.03])
        tap.equal([p["value"] for p in s.get(S + "/model/slice?param=train.optimizer")["points"]], ["adam", "muon"])
        s.fails(S + "/model/slice", 400, "param")
        grid = s.get(S + "/model/contour?x=train.optimizer&y=train.gamma")
        tap.equal(grid["x"]["values"], ["adam", "muon"])
        tap.equal(len(grid["score"]), 2 * len(grid["y"]["values"]))
        tap.equal(len(s.get(S + "/model/next")["points"]), 3)
        s.fails(S + "/model/slice?param=train.gamma&at=5000", 404, "5000")


def test_caching(folder):
    with serving(big(folder)) as s:
        for path in (S + "/trials?limit=500", "/", "/assets/app.js", "/api/v1/studies"):
            status, head, plain = s.request(path)
            tap.equal(s.request(path, method="HEAD")[2], b"")
            tap.equal(s.request(path, method="HEAD")[1]["content-length"], str(len(plain)))
            zipped = s.request(path, Accept_Encoding="br, gzip;q=0.5")
            if len(plain) > 600:
                tap.equal(zipped[1]["content-encoding"], "gzip")
                tap.equal(gzip.decompress(zipped[2]), plain)
            assert "content-encoding" not in s.request(path, Accept_Encoding="gzip;q=0")[1]
            again = s.request(path, If_None_Match='"x", W/' + head["etag"])
            tap.equal((again[0], again[2], again[1]["etag"]), (304, b"", head["etag"]))
            tap.equal(s.request(path, If_None_Match='"other"')[0], 200)


def test_names_are_inert(folder):
    store = folder / "s.db"
    make_study(store, EVIL, 12)
    path = "/api/v1/studies/" + urllib.parse.quote(EVIL, safe="")
    with serving(store) as s:
        tap.equal(s.get("/api/v1/studies")["studies"][0]["name"], EVIL)
        for part in ("", "/trials", "/front", "/trials/7", "/trials/7/log", "/pick", "/hypervolume", "/timeline", "/nothing"):
            status, head, body = s.request(path + part)
            assert b"<" not in body, (part, body[:300])
            assert head["content-type"] == "application/json"
            hardened(head)
        name = s.request(path + "/export")[1]["content-disposition"]
        assert re.fullmatch(r'attachment; filename="[A-Za-z0-9_-]+\.ini"', name), name
        assert b"<script>alert" not in s.request(path + "/report?format=html")[2]


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
        url = "/api/v1/studies/games/trials/0/play?csrf="
        for browser in ({"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-origin"}, {"Origin": "http://evil.example"}, {"Cookie": "a=b"}):
            for csrf in ("", "x", s.get("/api/v1/version")["csrf"][:-1]):
                s.fails(url + csrf, 403, "csrf", **browser)
        connection, answer = open_play(s, url + s.get("/api/v1/version")["csrf"], {"Cookie": "a=b"})
        tap.equal(answer.status, 200)
        connection.close()
        s.fails("/api/v1/studies/games/trials/5/play", 404, "no checkpoint")
        s.fails("/api/v1/studies/games/trials/6/play", 404, "no longer exists")
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
