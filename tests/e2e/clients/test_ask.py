"""test_ask.py - trials that are trained elsewhere: ask, report, tell, enqueue and add over HTTP, with clients that repeat themselves,
fall silent or come late, and with a controller and a server that are killed in between."""
import json
import math
import signal
import socket
import threading

import asking
import serve_client
import tap
from asking import OUTSIDE, Server, daemon
from tap import end, equal, listed, rows, run, running, show, start, wait_for, write
from trawl_client import Refused, Study

# Nobody here plays: clients make the scores up.
ASKED = tap.TINY + """
[sweep]
method = sobol
devices = none
lease_s = 60
confirm = 0
""" + tap.SPACE + """
[sweep.policy.hidden_size]
min = 4
max = 16
[sweep.train.optimizer]
values = adam, muon
"""


def served(folder, text=ASKED, trials=20):
    return asking.served(folder, text, trials)


def submit(folder, store):
    asking.submit(folder, store, ASKED)


def trial_of(store, number):
    return show(store, "a")["trials"][number]


def test_two_clients_ask_and_tell(folder):
    with served(folder, trials=3) as (s, store):
        a, b = s.ask("a"), s.ask("b")
        equal((a["trial"], b["trial"], a["again"], a["attempt"]), (0, 1, False, 1))
        again = s.ask("a")
        equal((again["trial"], again["again"], again["lease"]), (0, True, a["lease"]))
        equal(set(a["params"]), {"train.learning_rate", "train.gamma", "policy.hidden_size", "train.optimizer"})
        equal(a["config"]["train"]["gamma"], a["params"]["train.gamma"])
        equal(a["argv"][:2], ["--train.learning_rate", "%g" % a["params"]["train.learning_rate"]])
        assert "seed = %d\n" % a["seed"] in a["ini"] and a["seed"] != b["seed"], a["ini"]
        equal((a["metric"], a["goal"], a["cost_unit"], a["state"]), ("perf", "maximize", "s", "running"))
        equal(s.tell(a, score=0.5, cost=2, step=100, metrics={"perf": 0.5}), {"trial": 0, "counted": True, "late": False, "again": False})
        equal(s.tell(b, state="failed", reason="no GPU", log="Traceback"), {"trial": 1, "counted": True, "late": False, "again": False})
        c = s.ask("a")
        equal((c["trial"], c["again"]), (2, False))
        equal(s.tell(c, score=0.25), {"trial": 2, "counted": True, "late": False, "again": False})  # its cost: the time since ask
        wait_for(lambda: listed(store)["state"] == "ended")
        equal(s.ok("a/trials:ask", {"client": "a"})["state"], "ended")
        t = show(store, "a")["trials"]
        equal([x["state"] for x in t], ["done", "failed", "done"])
        equal((t[0]["score"], t[0]["cost_s"], t[0]["env_steps"], t[1]["reason"]), (0.5, 2, 100, "no GPU"))
        assert t[2]["cost_s"] > 0, t[2]
        equal(s.wait("/api/v1/studies/a/trials/0/curves?metrics=perf")["curves"]["perf"]["value"], [0.5])


def test_what_is_said_twice_counts_once(folder):
    with served(folder) as (s, store):
        a = s.ask("a")
        first = s.report(a, step=10, cost=1, metrics={"perf": 0.125}, seq=1)
        equal((first["stop"], first["repeat"], first["seconds"]), (False, False, 60))
        equal(s.report(a, step=10, cost=1, metrics={"perf": 0.75}, seq=1)["repeat"], True)
        equal(s.report(a, step=9, cost=1, metrics={"perf": 0.75}, seq=0)["repeat"], True)
        equal(s.report(a, step=20, cost=2, metrics={"perf": 0.25}, seq=2)["repeat"], False)
        for again in (False, True, True):
            equal(s.tell(a, score=0.5, cost=2), {"trial": 0, "counted": True, "late": False, "again": again})
        status, answer = s.post("a/trials/0:tell", {"lease": a["lease"]["token"], "score": 0.75, "cost": 2})
        equal(status, 409)
        assert "never changes" in answer["error"], answer
        equal(s.report(a, step=30, metrics={"perf": 1})["stop"], True)
        equal(trial_of(store, 0)["score"], 0.5)
        curve = s.wait("/api/v1/studies/a/trials/0/curves?metrics=perf", lambda x: len(x["curves"]["perf"]["value"]) == 2)["curves"]["perf"]
        equal((curve["env_steps"], curve["value"], curve["wall_s"]), ([10, 20], [0.125, 0.25], [1, 2]))


def test_silence_puts_back_once_then_loses(folder):
    """And whatever comes late is kept beside the trial."""
    with served(folder, ASKED.replace("lease_s = 60", "lease_s = 1")) as (s, store):
        a = s.ask("a")
        wait_for(lambda: trial_of(store, 0)["state"] == "queued")
        equal(s.report(a, step=1)["seconds"], 0)
        b = s.ask("b")
        equal((b["trial"], b["attempt"]), (0, 2))
        equal(s.tell(a, score=0.9, cost=1), {"trial": 0, "counted": False, "late": True, "again": False})
        equal(s.tell(a, score=0.9, cost=1), {"trial": 0, "counted": False, "late": True, "again": True})
        equal(s.post("a/trials/0:tell", {"lease": a["lease"]["token"], "score": 0.8})[0], 409)
        wait_for(lambda: trial_of(store, 0)["state"] == "lost")
        c = s.ask("c")
        assert c["trial"] != 0, c
        equal(s.tell(b, score=0.7, cost=1)["late"], True)
        t = trial_of(store, 0)
        equal((t["state"], t["score"]), ("lost", None))
        leases = s.wait("/api/v1/studies/a/trials/0/leases")["leases"]
        equal([(x["client"], x["state"], x["late"], x["result"]["score"]) for x in leases],
              [("a", "expired", True, 0.9), ("b", "expired", True, 0.7)])
        assert not any("token" in x for x in leases), leases


def test_a_trial_is_given_back(folder):
    with served(folder) as (s, store):
        a = s.ask("a")
        equal(s.tell(a, state="queued")["counted"], False)
        equal(s.tell(a, state="queued")["again"], True)
        for n in (2, 3, 4):  # that is not silence: it never makes the trial lost
            b = s.ask("b%d" % n)
            equal((b["trial"], b["attempt"]), (0, n))
            s.tell(b, state="queued")
        equal(trial_of(store, 0)["state"], "queued")


def test_enqueue_and_add(folder):
    with served(folder) as (s, store):
        first = s.ask("a")
        point = {"train.gamma": 0.9, "train.optimizer": "muon", "policy.hidden_size": 16}
        n = s.ok("a/trials:enqueue", {"params": point})
        equal(s.ok("a/trials:enqueue", {"params": point}), {"trial": n["trial"], "again": True})
        t = s.ask("b")
        equal(t["trial"], n["trial"])
        equal({k: t["params"][k] for k in point}, point)
        equal(t["params"]["train.learning_rate"], 0.015)  # its start value
        assert s.ok("a/trials:enqueue", {"params": point})["again"] is False  # a second seed of it
        done = s.ok("a/trials:add", {"params": {"train.gamma": 0.85}, "score": 0.5, "cost": 3, "step": 7, "key": "row 1"})
        equal(s.ok("a/trials:add", {"params": {"train.gamma": 0.85}, "score": 0.5, "cost": 3, "step": 7, "key": "row 1"}),
              {"trial": done["trial"], "again": True})
        s.ok("a/trials:add", {"params": {"train.gamma": 0.86}, "state": "failed", "reason": "diverged"})
        x = trial_of(store, done["trial"])
        equal((x["state"], x["origin"], x["score"], x["cost_s"], x["env_steps"]), ("done", "added", 0.5, 3, 7))
        s.wait("/api/v1/studies/a/front", lambda x: [p["trial"] for p in x["points"]] == [done["trial"]])
        equal(first["trial"], 0)
        # a part of that run: one value is smaller, the run pays for it
        shorter = {"train.gamma": 0.85, "train.learning_rate": 0.001}
        held = s.ok("a/trials:add", {"params": shorter, "score": 0.25, "cost": 1, "branch_of": done["trial"]})
        equal(trial_of(store, held["trial"])["origin"], "branch %d" % done["trial"])
        for point, of, code, says in ((shorter, held["trial"], 400, "a branch itself"), (shorter, 99, 404, "no trial 99"),
                                      ({**shorter, "train.gamma": 0.84}, done["trial"], 400, "2 of its values differ"),
                                      ({"train.gamma": 0.86}, done["trial"], 400, "1 of its values differ")):
            answer = s.post("a/trials:add", {"params": point, "score": 0.2, "cost": 1, "branch_of": of})
            assert answer[0] == code and says in str(answer[1]), answer
        answer = s.post("a/trials:add", {"params": shorter, "score": 0.2, "cost": 3.5, "branch_of": done["trial"]})
        assert answer[0] == 400 and "it costs 3.5, and trial %d 3 in all" % done["trial"] in str(answer[1]), answer


WRONG = [
    ("trials:ask", {}, 400, "'client' is missing"),
    ("trials:ask", {"client": 7}, 400, "'client' must be a text"),
    ("trials:ask", {"client": ""}, 400, "0 bytes"),
    ("trials:ask", {"client": "x" * 200}, 400, "200 bytes"),
    ("trials:ask", {"client": "a\nb"}, 400, "control character"),
    ("trials:ask", {"client": "a", "clients": 1}, 400, "no field 'clients'"),
    ("trials:ask", '{"client": "a", "client": "b"}', 400, "twice"),
    ("trials:ask", "[]", 400, "not a JSON object"),
    ("trials:ask", "{", 400, "not a JSON object"),
    ("trials/0:report", {"step": 1}, 400, "'lease' is missing"),
    ("trials/0:report", {"lease": "nonsense"}, 404, "never leased"),
    ("trials/1:report", {"lease": "TOKEN"}, 404, "trial 1 of a was never leased"),
    ("trials/x:report", {"lease": "TOKEN"}, 400, "is not a trial"),
    ("trials/0:report", {"lease": "TOKEN", "metrics": {"perf": 1}}, 400, "need their step"),
    ("trials/0:report", {"lease": "TOKEN", "step": -1}, 400, "a whole number from 0"),
    ("trials/0:report", {"lease": "TOKEN", "step": 1.5}, 400, "a whole number from 0"),
    ("trials/0:report", {"lease": "TOKEN", "step": 1, "metrics": {"perf": "high"}}, 400, "an object of numbers"),
    ("trials/0:report", {"lease": "TOKEN", "cost": "inf"}, 400, "a finite number"),
    ("trials/0:report", {"lease": "TOKEN", "cost": -1}, 400, "below 0"),
    ("trials/0:tell", {"lease": "TOKEN"}, 400, "needs its score"),
    ("trials/0:tell", {"lease": "TOKEN", "score": "nan"}, 400, "a finite number"),
    ("trials/0:tell", {"lease": "TOKEN", "state": "great", "score": 1}, 400, "done, failed and stopped"),
    ("trials/0:tell", {"lease": "TOKEN", "score": 1, "cost": -1}, 400, "below 0"),
    ("trials:enqueue", {}, 400, "'params' is missing"),
    ("trials:enqueue", {"params": {"train.gama": 0.9}}, 400, "searches no 'train.gama'"),
    ("trials:enqueue", {"params": {"train.gamma": 0.5}}, 400, "from 0.8 to 0.99"),
    ("trials:enqueue", {"params": {"train.gamma": "high"}}, 400, "not a number in that range"),
    ("trials:enqueue", {"params": {"train.optimizer": "sgd"}}, 400, "adam, muon"),
    ("trials:enqueue", {"params": {"policy.hidden_size": 5}}, 400, "the nearest is 4"),
    ("trials:add", {"params": {}, "score": 1}, 400, "needs its cost"),
    ("trials:add", {"params": {}, "cost": 1}, 400, "needs its score"),
    ("trials:add", {"params": {"train.gamma": 2}, "score": 1, "cost": 1}, 400, "from 0.8 to 0.99"),
    ("trials:add", {"params": {}, "score": 1, "cost": 1, "key": ""}, 400, "0 bytes"),
]


def test_wrong_requests_change_nothing(folder):
    with served(folder) as (s, store):
        a = s.ask("a")
        before = show(store, "a")["trials"][0]
        for path, body, want, says in WRONG:
            text = json.dumps(body) if not isinstance(body, str) else body
            status, answer = s.post("a/" + path, text.replace("TOKEN", a["lease"]["token"]))
            said = answer["error"] + "; " + (answer["hint"] or "")
            assert status == want and says in said, (path, body, status, said)
        _, answer = s.post("a/trials/0:report", {"lease": "x", "step": -1})
        equal(answer, {"error": "report: 'step' must be a whole number from 0 (steps so far; needed with metrics)", "hint": None})
        status, answer = s.post("nobody/trials:ask", {"client": "a"})
        assert status == 404 and "no study 'nobody'" in answer["error"], answer
        equal(s.post("a/trials:dance", {})[0], 404)
        wait_for(lambda: s.post("a/trials/0", {})[0] == 405)
        equal(s.post("a/trials:ask", {"client": "a"}, Content_Type="text/plain")[0], 415)
        equal(s.post("a/trials:ask", {"client": "a"}, Origin="http://evil.example")[0], 403)
        equal(s.post("a/trials:ask", {"client": "a"}, Sec_Fetch_Site="cross-site")[0], 403)
        equal(s.post("a/trials:ask", {"client": "a"}, Cookie="x=1")[0], 403)
        equal(s.post("a/trials:ask", '{"client": "%s"}' % ("x" * 70000))[0], 413)
        equal(show(store, "a")["trials"][0], before)
        equal(s.tell(a, score=1, cost=1)["counted"], True)
        described = s.wait("/api/v1/openapi.json")["paths"]
        tell = described["/api/v1/studies/{study}/trials/{trial}:tell"]["post"]
        schema = tell["requestBody"]["content"]["application/json"]["schema"]
        equal((schema["required"], schema["properties"]["score"]["type"]), (["lease"], "number"))
        assert {"200", "400", "404", "409", "503"} <= set(tell["responses"]), tell["responses"]


def test_who_may_ask(folder):
    store = folder / "s.db"
    controller = daemon(store)
    submit(folder, store)
    reader = serve_client.Server(store)
    equal(reader.request("/api/v1/studies/a/trials:ask", "POST", b'{"client": "a"}', Content_Type="application/json")[0], 403)
    reader.end()
    open_server = Server(store, "--bind", "0.0.0.0")
    equal(open_server.post("a/trials:ask", {"client": "a"})[0], 401)
    equal(open_server.post("a/trials:ask", {"client": "a"}, Authorization="Bearer wrong-token-of-24-bytes")[0], 401)
    equal(open_server.ok("a/trials:ask", {"client": "a"}, Authorization="Bearer " + open_server.token)["trial"], 0)
    open_server.end()
    end(controller, signal.SIGTERM)
    alone = Server(store)  # nobody runs the store now
    status, answer = alone.post("a/trials:ask", {"client": "a"})
    equal(status, 503)
    assert "no controller" in answer["error"] and "trawl daemon" in answer["hint"], answer
    alone.end()


def test_nothing_is_lost_by_restarts(folder):
    """The controller and the server are killed while two clients train."""
    store = folder / "s.db"
    controller = daemon(store)
    s = Server(store)
    submit(folder, store)
    a, b = s.ask("a"), s.ask("b")
    s.report(a, step=10, metrics={"perf": 0.1}, seq=5)
    for victim in (controller, s.process):
        end(victim, signal.SIGKILL, -9)
    s = Server(store)
    equal(s.post("a/trials/0:tell", {"lease": a["lease"]["token"], "score": 0.5, "cost": 1})[0], 503)
    controller = daemon(store)
    wait_for(lambda: s.post("a/trials:ask", {"client": "a"})[0] == 200)  # its socket listens before it serves the studies
    again = s.ask("a")
    equal((again["trial"], again["again"], again["lease"]["token"]), (0, True, a["lease"]["token"]))
    equal(s.report(a, step=10, metrics={"perf": 0.9}, seq=5)["repeat"], True)
    equal(s.tell(a, score=0.5, cost=1)["counted"], True)
    end(controller, signal.SIGKILL, -9)
    daemon(store)
    wait_for(lambda: s.post("a/trials:ask", {"client": "b"})[0] == 200)
    equal(s.tell(a, score=0.5, cost=1)["again"], True)
    equal(s.tell(b, score=0.25, cost=1)["counted"], True)
    t = show(store, "a")["trials"]
    equal([(x["state"], x["score"], x["attempt"]) for x in t[:2]], [("done", 0.5, 1), ("done", 0.25, 1)])
    equal(rows(store, "SELECT count(*) FROM lease WHERE state = 'reported'"), [(2,)])
    run("check", store)


def test_people_stop_and_pause(folder):
    with served(folder) as (s, store):
        a = s.ask("a")
        run("pause", "a", "--store", store)
        equal(s.report(a, step=1)["stop"], False)
        none = s.ok("a/trials:ask", {"client": "b"})
        equal((none["trial"], none["state"]), (None, "paused"))
        run("pause", "a", "--now", "--store", store)
        wait_for(lambda: s.report(a, step=2)["stop"])
        run("continue", "a", "--store", store)
        b = s.ask("b")
        equal((b["trial"], b["attempt"]), (0, 2))
        equal(s.tell(a, state="stopped", score=0.5)["late"], True)
        run("stop", "a", "--store", store)
        wait_for(lambda: s.report(b, step=2)["stop"])
        wait_for(lambda: s.ok("a/trials:ask", {"client": "c"})["state"] == "ended")
        equal(s.post("a/trials:enqueue", {"params": {}})[0], 409)
        equal(trial_of(store, 0)["state"], "queued")
        equal(s.tell(b, score=0.25, cost=1)["late"], True)  # of a study that nobody runs


def test_a_spent_budget_asks_to_stop(folder):
    with served(folder, ASKED.replace("[sweep]\n", "[sweep]\nbudget = 1000s\n")) as (s, store):  # far above the time that a slow machine takes between two requests
        a, b = s.ask("a"), s.ask("b")
        equal(s.report(a, step=1, cost=1)["stop"], False)
        s.tell(b, score=0.5, cost=999.5)
        def stopped():
            answer = s.report(a, step=2, cost=1)
            return answer["stop"] and answer
        answer = wait_for(stopped)
        assert "budget is spent" in answer["reason"], answer
        equal(s.tell(a, state="stopped", score=0.25, cost=1, reason=answer["reason"])["counted"], True)
        wait_for(lambda: listed(store)["state"] == "ended")
        equal([x["state"] for x in show(store, "a")["trials"][:2]], ["stopped", "done"])


def test_workers_and_clients_share_a_study(folder):
    with served(folder, ASKED.replace("devices = none\n", "devices = cpu\n").replace("= 4096", "= 3000000"), trials=6) as (s, store):
        wait_for(lambda: running(store))  # the worker's, which takes a while
        theirs = set()
        while (answer := s.ok("a/trials:ask", {"client": "a"}))["state"] != "ended":
            if answer["trial"] is not None:
                s.tell(answer, score=0.5, cost=0.01)
                theirs.add(answer["trial"])
        t = show(store, "a")["trials"]
        equal([x["state"] for x in t], ["done"] * 6)
        own = {x["number"] for x in t if x["device"] != "a"}
        assert theirs and own and theirs | own == set(range(6)) and not theirs & own, (theirs, own)


def test_a_program_of_anybodys(folder):
    """A study without a game and without a command: its parameters are the clients'."""
    with served(folder, OUTSIDE) as (s, store):
        seen = [s.ask("c%d" % i) for i in range(6)]
        for t in seen:
            equal(set(t["params"]), {"learning_rate", "layers", "opt"} | ({"momentum"} if t["params"]["opt"] == "sgd" else set()))
            equal(t["config"]["param"]["epochs"], 3)
            argv = dict(zip(t["argv"][::2], t["argv"][1::2]))
            equal(("--momentum" in argv, argv["--epochs"], argv["--opt"]), (t["params"]["opt"] == "sgd", "3", t["params"]["opt"]))
            assert abs(float(argv["--Learning-Rate"]) - t["params"]["learning_rate"]) < 1e-9, argv
        equal({t["params"]["opt"] for t in seen}, {"adam", "sgd"})
        s.ok("a/trials:enqueue", {"params": {"learning_rate": 0.05, "opt": "sgd", "momentum": 0.5}})  # as a keyword of Python
        equal(s.ask("next")["params"], {"learning_rate": 0.05, "layers": 4, "opt": "sgd", "momentum": 0.5})
        tap.fails("train", folder / "a.ini", code=2, says=["no sweep.command", "trawl agent"])
        names, at = ["learning_rate", "layers", "opt", "momentum"], "/api/v1/studies/a"
        equal([p["key"] for p in s.wait(at)["space"]["params"]], names)
        equal(s.wait(at)["space"]["params"][3]["when"]["key"], "opt")
        equal(s.wait(at + "/trials?fields=params")["columns"], names)
        equal(list(s.wait(at + "/trials/0", lambda answer: "params" in answer)["params"]), names)
        lowest = lambda: [[t["number"]] for t in sorted(show(store)["trials"], key=lambda t: (t["params"]["param.layers"], t["number"]))[:2]]
        for name in ("layers", "param.layers"):
            s.wait(at + "/trials?limit=2&fields=number&sort=" + name, lambda answer: answer["rows"] == lowest())
            equal(s.wait(at + "/model/slice?at=0&param=" + name, lambda answer: "model" in answer)["model"], "none")


def test_steps_as_cost(folder):
    with served(folder, ASKED.replace("[sweep]\n", "[sweep]\ncost = env_steps\n")) as (s, store):
        a = s.ask("a")
        equal(a["cost_unit"], "steps")
        equal(s.post("a/trials/0:tell", {"lease": a["lease"]["token"], "score": 0.5})[0], 400)
        equal(s.tell(a, score=0.5, step=1000)["counted"], True)
        equal(trial_of(store, 0)["env_steps"], 1000)


def test_the_python_client(folder):
    """It survives a server that goes away and comes back, and runs a study to its end."""
    with served(folder, trials=12) as (s, store):
        study = Study("http://127.0.0.1:%d" % s.port, "a", client="python")
        equal(study.add({"train.gamma": 0.9}, 0.5, 1.0, key="x"), study.add({"train.gamma": 0.9}, 0.5, 1.0, key="x"))
        try:
            study.enqueue(**{"train.gamma": 3})
            raise AssertionError("not refused")
        except Refused as e:
            assert "from 0.8 to 0.99" in str(e), e
        n = 0
        for trial in study.trials():
            if n == 3:  # the port stays
                end(s.process, signal.SIGKILL, -9)
                begins = threading.Timer(0.5, lambda: setattr(s, "process", Server(store, port=s.port).process))
                begins.start()
            assert not trial.report(1, perf=0.1)
            assert trial.tell(trial.params["train.gamma"], cost=1.0)["counted"]
            n += 1
        begins.join()
        equal(n, 11)
        t = show(store, "a")["trials"]
        equal([x["state"] for x in t], ["done"] * 12)
        assert all(x["score"] == x["params"]["train.gamma"] for x in t[1:] if x["origin"] != "added"), t


def test_the_python_client_on_answers_that_end_in_the_middle(_):
    """As of a server that is killed while it answers: the request is sent again."""
    whole = b'{"state": "ended", "trial": null}'
    answers = [b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(whole), whole[:n]) for n in (9, len(whole))]
    answers[:0] = [b"", b"HTT", b"HTTP/1.1 404 Not Found\r\nContent-Length: 99\r\n\r\n{"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        def answer():
            for text in answers:
                connection, _ = server.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(text)
        threading.Thread(target=answer, daemon=True).start()
        equal(list(Study("http://127.0.0.1:%d" % server.getsockname()[1], "a").trials()), [])


def test_the_python_client_on_numbers_that_are_none(folder):
    """A loss that is NaN does not end the training, a score that is NaN fails the trial; names are such that ** takes them."""
    with served(folder, OUTSIDE, trials=2) as (s, store):
        scores = iter((math.nan, 0.5))
        for trial in Study(s.url, "a").trials():
            assert "learning_rate" in trial.params, trial.params
            assert not trial.report(1, score=0.25, loss=math.nan, other=-math.inf)
            assert trial.tell(next(scores), cost=1.0)["counted"]
        t = show(store, "a")["trials"]
        equal([(x["state"], x["reason"], x["score"]) for x in t], [("failed", "score is nan", None), ("done", None, 0.5)])


def test_an_openly_asked_sweep_of_its_own(folder):
    """`trawl sweep` with devices = none waits for clients; without a daemon, too."""
    store = folder / "s.db"
    sweep = start("sweep", write(folder, "a.ini", ASKED), "--store", store, "--name", "a", "--trials", 4)
    wait_for(lambda: rows(store, "SELECT 1 FROM study"), sweep)
    s = Server(store)
    for trial in Study("http://127.0.0.1:%d" % s.port, "a").trials():
        trial.tell(0.5, cost=1.0)
    end(sweep)
    wait_for(lambda: s.post("a/trials:ask", {"client": "a"})[1].get("state") == "ended")
    s.end()
    equal([x["state"] for x in show(store, "a")["trials"]], ["done"] * 4)
