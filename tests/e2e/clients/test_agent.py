"""test_agent.py - `trawl agent`: programs of all kinds as trials of a study, beside a server or a store; stops, crashes, networks
that are away, and what a killed agent leaves."""
import http.server
import json
import os
import pathlib
import resource
import signal
import sys
import threading

import tap
from asking import OUTSIDE, Server, daemon, served, submit
from tap import end, equal, fails, is_gone, listed, rows, run, running, show, start, wait_for, write

# Reports its learning rate, and obeys the first word that its file `orders` holds.
TRAINER = """
import os, pathlib, sys, time
args = dict(zip(sys.argv[1::2], sys.argv[2::2]))
print("args", args, "gpu", os.environ.get("CUDA_VISIBLE_DEVICES"), flush=True)
print("TRAWL score=%s step=1 loss=0.5" % args["--Learning-Rate"], flush=True)
orders = pathlib.Path(__file__).with_name("orders")
try:
    word = orders.read_text()
except FileNotFoundError:
    word = ""
if word == "crash":
    print("out of everything", file=sys.stderr)
    sys.exit(3)
if word == "deaf":
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if word:
    pathlib.Path(__file__).with_name("pid").write_text(str(os.getpid()))
n = 1
while word and orders.exists():
    n += 1
    print("TRAWL score=%s step=%d" % (args["--Learning-Rate"], n), flush=True)
    time.sleep(0.05)
print("TRAWL score=%s step=1000 cost=2.5" % args["--Learning-Rate"], flush=True)
"""


def command(folder, text=TRAINER):
    return ["--", sys.executable, write(folder, "train.py", text), "{argv}"]


def agent(folder, place, *more, words=None, **env):
    return start("agent", place, "a", "--spool", folder / "spool", "--dir", folder / "runs", *more,
                 *(words or command(folder)), env={**os.environ, **env})


def finished(process, code=0):
    return end(process, code=code)[1]


def running_program(folder):
    """The process id of the program that waits for its orders."""
    pid = int(wait_for(lambda: (folder / "pid").exists() and (folder / "pid").read_text()))
    (folder / "pid").unlink()
    return pid


def test_a_study_from_its_first_trial_to_its_last(folder):
    for place in ("server", "store"):
        here = folder / place
        here.mkdir()
        with served(here, trials=6) as (s, store):
            (here / "orders").write_text("wait")
            process = agent(here, s.url if place == "server" else store, "--jobs", 3)
            wait_for(lambda: len(running(store)) == 3, process)
            (here / "orders").unlink()
            finished(process)
            t = show(store, "a")["trials"]
            equal([x["state"] for x in t], ["done"] * 6)
            for x in t:
                equal((x["score"], x["cost_s"], x["env_steps"]), (x["params"]["param.learning_rate"], 2.5, 1000))
            equal(len({x["device"] for x in t}), 3)
            equal(list((here / "spool").iterdir()), [])
            log = (here / "runs" / "0" / "output.log").read_text()
            assert "'--epochs': '3'" in log and "gpu None" in log, log
            ini = (here / "runs" / "0" / "config.ini").read_text()
            assert "epochs = 3" in ini, ini
            last = "/api/v1/studies/a/trials/5/curves?metrics=score,loss"  # it began without orders
            curve = s.wait(last, lambda x: len(x["curves"]["score"]["env_steps"]) == 2)["curves"]
            equal((curve["score"]["env_steps"], curve["loss"]["value"]), ([1, 1000], [0.5]))


def test_each_gpu_has_its_own(folder):
    with served(folder, trials=8) as (s, store):
        finished(agent(folder, s.url, "--devices", "cuda:0,cuda:1", CUDA_VISIBLE_DEVICES="5,7"))
        seen = {(x["device"].rsplit(":", 1)[1], (folder / "runs" / str(x["number"]) / "output.log").read_text().split("gpu ")[1].split()[0])
                for x in show(store, "a")["trials"]}
        assert seen <= {("0", "5"), ("1", "7")} and seen, seen


def test_a_crash_is_a_failed_trial(folder):
    with served(folder, OUTSIDE.replace("[sweep]\n", "[sweep]\nmax_failures = 3\n")) as (s, store):
        (folder / "orders").write_text("crash")
        finished(agent(folder, s.url))
        t = show(store, "a")["trials"]
        equal({x["state"] for x in t[:3]}, {"failed"})
        equal(t[0]["reason"], "ended with exit code 3: out of everything")
        equal(listed(store)["state"], "ended")


def test_a_program_that_is_not_here(folder):
    """One machine without it ends no study: its trial is for the others."""
    with served(folder, OUTSIDE, trials=2) as (s, store):
        err = finished(agent(folder, s.url, words=["--", "./no-such-program", "{argv}"]), code=1)
        assert "./no-such-program: No such file" in err, err
        equal({t["state"] for t in show(store, "a")["trials"]}, {"queued"})
        finished(agent(folder, s.url + "study/a?token=abc&view=front#top"))  # an address as a browser shows it
        equal([t["state"] for t in show(store, "a")["trials"]], ["done"] * 2)


def test_a_stop_ends_the_program(folder):
    """A budget that is spent stops by SIGTERM, SIGKILL ends one that does not listen, and nothing is left of either."""
    for word in ("wait", "deaf"):
        here = folder / word
        here.mkdir()
        with served(here) as (s, store):
            (here / "orders").write_text(word)
            process = agent(here, s.url, "--grace", "0.3s")
            pid = running_program(here)
            run("stop", "a", "--store", store)
            wait_for(lambda: is_gone(pid), process)
            finished(process)
            leases = s.wait("/api/v1/studies/a/trials/0/leases", lambda x: x["leases"][0]["result"] is not None)["leases"]
            equal([(x["state"], x["late"], x["result"]["state"]) for x in leases], [("returned", True, "stopped")])


def test_control_c_gives_trials_back(folder):
    with served(folder) as (s, store):
        (folder / "orders").write_text("wait")
        process = agent(folder, s.url)
        pid = running_program(folder)
        process.send_signal(signal.SIGINT)
        finished(process, 130)
        assert is_gone(pid)
        equal(show(store, "a")["trials"][0]["state"], "queued")
        (folder / "orders").unlink()
        finished(agent(folder, s.url))
        equal(show(store, "a")["trials"][0]["attempt"], 2)


def test_nothing_outlives_a_killed_agent(folder):
    """And one that comes back under its name gets its own trial again."""
    with served(folder, trials=3) as (s, store):
        (folder / "orders").write_text("wait")
        process = agent(folder, s.url, "--name", "mine")
        pid = running_program(folder)
        end(process, signal.SIGKILL, -9)
        wait_for(lambda: is_gone(pid))
        (folder / "orders").unlink()
        finished(agent(folder, s.url, "--name", "mine"))
        equal([(x["state"], x["attempt"]) for x in show(store, "a")["trials"]], [("done", 1)] * 3)


def test_a_result_outlives_the_network(folder):
    """The server goes away while the program runs; the agent is stopped; another one tells what the first one has left."""
    with served(folder, trials=4) as (s, store):
        (folder / "orders").write_text("wait")
        process = agent(folder, s.url, "--name", "one")
        running_program(folder)
        end(s.process, signal.SIGKILL, -9)
        (folder / "orders").unlink()
        wait_for(lambda: list((folder / "spool").glob("*.json")), process)
        end(process, signal.SIGKILL, -9)
        s.process = Server(store, port=s.port).process
        finished(agent(folder, s.url, "--name", "two"))
        t = show(store, "a")["trials"]
        equal([x["state"] for x in t], ["done"] * 4)
        equal((t[0]["device"], t[0]["attempt"], t[0]["env_steps"]), ("one", 1, 1000))
        equal(list((folder / "spool").iterdir()), [])


class Stalling(http.server.BaseHTTPRequestHandler):
    """Between agent and server: every third answer is lost, every fifth is a page instead of JSON."""
    target, n = None, 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Stalling.n += 1
        if Stalling.n % 5 == 0:
            self.send_response(503)
            self.end_headers()
            self.wfile.write(b"<html>down for maintenance</html>")
            return
        status, answer = self.target.post(self.path.split("/studies/")[1], body)
        if Stalling.n % 3 == 0:
            self.close_connection = True  # it was carried out, and nobody hears of it
            return
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args):
        pass


def test_lost_answers_double_nothing(folder):
    with served(folder, trials=6) as (s, store):
        Stalling.target = s
        proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stalling)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        finished(agent(folder, "http://127.0.0.1:%d" % proxy.server_port, "--jobs", 2))
        proxy.shutdown()
        equal([(x["state"], x["attempt"]) for x in show(store, "a")["trials"]], [("done", 1)] * 6)
        equal(rows(store, "SELECT count(*), count(DISTINCT trial_id) FROM lease"), [(6, 6)])


def test_tokens(folder):
    store = folder / "s.db"
    controller = daemon(store)
    s = Server(store, "--bind", "0.0.0.0")
    submit(folder, store, OUTSIDE, trials=2)
    here = "http://127.0.0.1:%d" % s.port
    fails("agent", here, "a", "--spool", folder / "spool", *command(folder), code=2, says="token")
    write(folder, "t.txt", s.token + "\n")
    log = folder / "env"
    words = ["--", "sh", "-c", "env > %s; echo TRAWL score=1 cost=1" % log]
    finished(agent(folder, here, "--token-file", folder / "t.txt", words=words, TRAWL_TOKEN="wrong"))
    assert "TRAWL_TRIAL=" in log.read_text() and "TRAWL_TOKEN" not in log.read_text()
    equal([x["state"] for x in show(store, "a")["trials"]], ["done"] * 2)
    spooled = "".join(p.read_text() for p in (folder / "spool").iterdir())
    assert s.token not in spooled
    s.end()
    end(controller, signal.SIGTERM)


def test_a_slot_that_cannot_begin_ends_the_agent(folder):
    for sanitizer in (b"__asan_init", b"__tsan_init"):
        if sanitizer in pathlib.Path(tap.TRAWL).read_bytes():
            raise tap.Skip("a sanitizer needs the address space that this test takes from threads")

    def no_stack_fits():
        resource.setrlimit(resource.RLIMIT_STACK, (1 << 46, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    fails("agent", "http://127.0.0.1:9", "a", "--jobs", 2, "--spool", folder / "spool", "--", "true", code=1, preexec_fn=no_stack_fits,
          env=dict(os.environ, OPENBLAS_NUM_THREADS="1"), says="cannot start a thread")


def test_wrong_usage(folder):
    with served(folder, trials=2) as (s, store):
        spool = ["--spool", folder / "spool"]
        for words, says in ((["agent"], "the address of a server or a store"), (["agent", s.url, "a"], "give a program after --"),
                            (["agent", s.url, "a", "--"], "give a program after --"),
                            (["agent", s.url, "a", "--jobs", "0", "--", "true"], "--jobs is 0"),
                            (["agent", s.url, "a", "--devices", "gpu", "--", "true"], "is not a device"),
                            (["agent", folder / "no.db", "a", *spool, "--", "true"], "neither the address of a server"),
                            (["agent", s.url, "b", *spool, "--", "true"], "no study 'b'"),
                            (["agent", s.url, "a", *spool, "--", "true", "{lr}"], "{lr} in the command is not a parameter"),
                            (["agent", s.url, "a", *spool, "--", "true", "x{argv}"], "must stand alone")):
            message = fails(*words, code=2, cwd=folder, says=says)
            assert "trawl: " in message
        equal(show(store, "a")["trials"][0]["state"], "queued")  # whatever was asked for was given back
        assert all(x["losses"] == 0 for x in show(store, "a")["trials"] if "losses" in x)
