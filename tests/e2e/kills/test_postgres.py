"""A store in PostgreSQL: the same studies as in a file, a standby that takes over, a server that goes away in the middle of a
sweep, whole stores moved both ways. The server is a real one of the test's own, on a Unix socket.

TRAWL_PG_KILLS: number of kills of controller, worker and server at random (12; 300 in the nightly run).
"""
import atexit
import http.server
import json
import os
import pathlib
import random
import re
import signal
import sqlite3
import subprocess
import threading
import time

import tap
from tap import TINY_SWEEP, end, equal, fails, n_done, run, running, show, start, wait_for, write
import postgres
import serve_client

N_KILLS = int(os.environ.get("TRAWL_PG_KILLS", 12))
TIMELESS = ["--sweep.cost", "env_steps", "--sweep.confirm", 0]  # which trial is confirmed depends on what each cost, in seconds
LONG = TINY_SWEEP.replace("total_timesteps = 4096", "total_timesteps = 50k")
servers = []


def database(folder, name):
    """The address of a fresh database; files beside it lie in folder."""
    if postgres.MISSING:
        raise tap.Skip(postgres.MISSING)
    if not servers:
        servers.append(postgres.Postgres())
        atexit.register(servers[0].close)
    os.environ["XDG_DATA_HOME"] = str(folder)
    return servers[0].database(name)


def ask(store, sql):
    return servers[0].sql("SET search_path = trawl; " + sql, re.search(r"/(\w+)\?", store).group(1))


def settled(store, name):
    """What a study found, without the clock."""
    return [(t["number"], t["state"], t["params"], t["score"], t["env_steps"]) for t in show(store, name)["trials"]]


def test_a_study_is_that_of_a_file(folder):
    store, config = database(folder, "same"), write(folder, "s.ini", TINY_SWEEP)
    for at in (store, folder / "s.db"):
        run("sweep", config, "--store", at, "--name", "a", "--trials", 5, "--seed", 3, "-q", *TIMELESS)
    equal(settled(store, "a"), settled(folder / "s.db", "a"))
    assert "is whole" in run("check", store)[0]
    assert "5 trials of 5" in run("show", "a", "--store", store)[0]
    equal([s["name"] for s in json.loads(run("ls", "--store", store, "--json")[0])], ["a"])
    run("report", "a", "--store", store, "-o", folder / "a.html")
    run("export", "a", "--pick", "best", "--store", store, "-o", folder / "best.ini")
    run("rerun", "a", "--trial", 2, "--store", store)
    run("rerun", "a", "--trial", 2, "--seeds", 2, "--store", store)
    run("replay", "a", "--store", store)
    for words in (["note", "a", "good"], ["tag", "a", "x"], ["drop", "a", 1, "--reason", "odd"], ["rename", "a", "b"], ["add", "b", "--trials", 1],
                  ["stop", "b"]):
        run(*words, "--store", store)
    run("sweep", "--resume", "b", "--trials", 9, "--store", store, "-q")
    run("rm", "b", "--store", store)
    run("gc", "--store", store)
    equal(ask(store, "SELECT (SELECT count(*) FROM trial), (SELECT count(*) FROM metric)"), [["0", "0"]])
    run("backup", store, folder / "b.db")
    for command in (["ls"], ["sweep", write(folder, "n.ini", TINY_SWEEP), "--name", "a"]):
        fails(*command, "--store", store + "&dbname=none_such", code=1,
              says=['database "none_such" does not exist', "createdb -h %s" % servers[0].folder, "template0 none_such"])
    fails("ls", "--store", store + "&user=nobody", code=1, says=["the server refuses the connection", 'role "nobody" does not exist'])


def test_a_damaged_row_is_found(folder):
    store = database(folder, "damaged")
    run("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 3, "-q")
    ask(store, "UPDATE metric SET value = value + 1 WHERE trial_id = 2 AND name_id = (SELECT min(name_id) FROM metric)")
    ask(store, "ALTER TABLE trial DISABLE TRIGGER ALL; UPDATE trial SET cost_s = 1 WHERE number = 2")
    out, _ = run("check", store, code=1)
    assert "trial 1 of study 'a': 1 of its learning curves" in out and "trial 2 of study 'a': its row" in out, out


def test_the_server_shows_it(folder):
    store = database(folder, "shown")
    server = serve_client.Server(store)
    listed = lambda key: [s[key] for s in server.get("/api/v1/studies")["studies"]]
    sweep = start("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 6, "-q")
    wait_for(lambda: [c["done"] for c in listed("counts")] == [6], server.process)
    end(sweep)
    servers[0].restart(signal.SIGKILL)  # its connections are made again
    run("sweep", "--resume", "a", "--trials", 8, "--store", store, "-q")
    wait_for(lambda: [c["done"] for c in listed("counts")] == [8], server.process)
    endless = write(folder, "endless.ini", LONG.replace("50k", "500M"))
    killed, other = (start("sweep", endless, "--store", store, "--name", name, "-q") for name in ("b", "c"))
    wait_for(lambda: listed("state")[1:] == ["running", "running"], server.process)
    killed.kill()  # another study's controller does not hide that
    wait_for(lambda: sorted(listed("state")[1:]) == ["interrupted", "running"], server.process)
    end(other, signal.SIGINT, 130)


def test_a_tracker_gets_all_rows(folder):
    store, got = database(folder, "tracked"), []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    run("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", store, "--name", "a", "--trials", 3, "-q", "--track", "webhook",
        "--track.webhook_url", "http://127.0.0.1:%d/" % hook.server_port)
    hook.shutdown()
    equal(ask(store, "SELECT count(*) FROM outbox"), [["0"]])
    text = "".join(got)
    for number in range(3):
        assert re.search(r'"trial":\s*%d\b' % number, text), text[:500]


def test_both_ways_between_a_file_and_a_database(folder):
    store, file, config = database(folder, "moved"), folder / "a.db", write(folder, "s.ini", TINY_SWEEP)
    run("sweep", config, "--store", file, "--name", "a", "--trials", 4, "--seed", 3, "-q", *TIMELESS, "--track", "webhook",
        "--track.offline", "yes", "--track.webhook_url", "http://127.0.0.1:9/")  # nobody takes its rows
    db = sqlite3.connect(file)
    db.execute("UPDATE study SET note = CAST(x'62c3a4ff' AS TEXT), checksum = NULL")  # a byte that is not UTF-8
    db.commit()
    waits = db.execute("SELECT count(*), max(id) FROM outbox").fetchone()
    db.close()
    assert waits[0] > 4, waits
    there = json.loads(run("migrate", file, store, "--json")[0])
    equal((there["trial"]["rows"], there["outbox"]["rows"], there["study"]["changed"]), (4, waits[0], 1))
    equal(ask(store, "SELECT note FROM study"), [["b\xe4?"]])
    assert "is whole" in run("check", store)[0]
    fails("migrate", file, store, code=1, says="is not empty (studies: 1)")
    back = json.loads(run("migrate", store, folder / "b.db", "--json")[0])
    equal({t: back[t] for t in back if t != "study"}, {t: there[t] for t in there if t != "study"})
    fails("migrate", store, folder / "b.db", code=1, says="is not empty (studies: 1)")
    (folder / "link.db").symlink_to(folder / "b.db")
    for same in (store, store), (folder / "b.db", folder / "link.db"):
        fails("migrate", *same, code=2, says="are one store")
    # ids of the outbox are never used again, also when it was emptied before it moved
    run("sync", "a", "--forget", "webhook", "--timeout", "1s", "--store", store)
    equal(ask(store, "SELECT count(*) FROM outbox"), [["0"]])
    run("migrate", store, folder / "c.db")
    equal(sqlite3.connect(folder / "c.db").execute("SELECT seq FROM sqlite_sequence WHERE name = 'outbox'").fetchone(), (waits[1],))
    for at in (store, folder / "c.db"):
        run("sweep", "--resume", "a", "--trials", 7, "--store", at, "-q")
    equal(settled(store, "a"), settled(folder / "c.db", "a"))


def test_a_password_is_not_taken_and_not_shown(folder):
    for address in ("postgresql://me:hunter2@127.0.0.1:9/trawl", "postgres://127.0.0.1:9/trawl?user=me&password=hunter2",
                    "postgresql://me:hunter2@127.0.0.1:no-port/trawl"):
        for words in (["ls", "--store", address], ["sweep", "x.ini", "--name", "a", "--store=" + address], ["check", address],
                      ["migrate", folder / "no.db", address], ["serve", "--store", address], ["daemon", "--detach", "--store", address]):
            out, err = run(*words, code=2)
            assert "hunter2" not in out + err, err
            assert "pgpass" in err or "is none that PostgreSQL understands" in err, err
    fails("ls", "--store", "postgresql://127.0.0.1:9/trawl?connect_timeout=2", code=1, says="refused")


def test_a_password_file_works(folder):
    if postgres.MISSING:
        raise tap.Skip(postgres.MISSING)
    port = tap.free_port()
    with postgres.Postgres(port=port, password="hunter2"):
        address = "postgresql://trawl@127.0.0.1:%d/postgres" % port
        secret = write(folder, "pgpass", "127.0.0.1:%d:*:trawl:hunter2\n" % port)
        secret.chmod(0o600)
        env = dict(os.environ, PGPASSFILE=str(secret), XDG_DATA_HOME=str(folder), TRAWL_DEBUG="1")
        sweep = start("sweep", write(folder, "s.ini", TINY_SWEEP), "--store", address, "--name", "a", "--trials", 3, env=env)
        out, err = end(sweep)
        run("report", "a", "--store", address, "-o", folder / "a.html", env=env)
        assert "hunter2" not in out + err + (folder / "a.html").read_text(), "a password is shown"
        fails("ls", "--store", address, code=1, says="no password supplied")


def states(store):
    return {study["name"]: study["state"] for study in json.loads(run("ls", "--store", store, "--json")[0])}


def test_each_study_has_its_controller_and_standby(folder):
    store, config = database(folder, "second"), write(folder, "s.ini", LONG)
    sweep = lambda *words: start("sweep", *words, "--trials", 100000, "--store", store, "-q")
    first, second = sweep(config, "--name", "a"), sweep(config, "--name", "b")  # side by side
    for name, process in (("a", first), ("b", second)):
        wait_for(lambda: n_done(store, name) > 1, process)
    fails("sweep", "--resume", "a", "--store", store, code=1, says=("the study is in use by another sweep", "process %d on " % first.pid))
    fails("migrate", store, folder / "m.db", code=1, says="a sweep runs on")
    elsewhere = dict(os.environ, XDG_DATA_HOME=str(folder / "other"), XDG_RUNTIME_DIR=str(folder))  # finds no socket
    for env in (elsewhere, None):
        run("pause", "a", "--store", store, env=env)
        equal(states(store), {"a": "paused", "b": "running"})
        run("continue", "a", "--store", store, env=env)
        wait_for(lambda: states(store) == {"a": "running", "b": "running"}, first)
    fails("stop", "none", "--store", store, env=elsewhere, code=1, says="has no study 'none'")
    equal(ask(store, "SELECT count(*) FROM mail"), [["0"]])
    standby = sweep("--resume", "a", "--standby")
    wait_for(lambda: "standing by" in standby.stderr.readline(), standby)
    both = daemon(store)  # stands by for whatever has no controller
    run("pause", "a", "--store", store)  # its socket is here; the study is not its own
    wait_for(lambda: states(store)["a"] == "paused", first)
    run("continue", "a", "--store", store)
    end(first, signal.SIGINT, 130)  # leaves it paused: not for the daemon
    wait_for(lambda: running(store), standby)
    end(second, signal.SIGKILL, -9)
    n = n_done(store, "b")
    wait_for(lambda: "b had no controller; it continues here" in both.stderr.readline(), both)
    wait_for(lambda: n_done(store, "b") > n, both)
    equal(states(store), {"a": "running", "b": "running"})
    run("stop", "a", "--store", store)
    end(standby)
    run("stop", "b", "--store", store)
    wait_for(lambda: states(store) == {"a": "ended", "b": "ended"}, both)
    end(both, signal.SIGTERM)
    has_all_numbers(store)
    assert "is whole" in run("check", store)[0]


def daemon(store, said="serving", devices="cpu"):
    """A daemon that serves the store, or stands by."""
    process = start("daemon", "--store", store, "--devices", devices)
    wait_for(lambda: said in process.stderr.readline(), process)
    return process


def test_a_standby_takes_over_from_a_killed_daemon(folder):
    store, config = database(folder, "standby"), write(folder, "s.ini", LONG)
    first = daemon(store)
    watcher = start("sweep", config, "--store", store, "--name", "a", "--trials", 100000, "-q")
    wait_for(lambda: n_done(store, "a") > 1, first)
    second, third = daemon(store, "standing by"), daemon(store, "standing by")
    for _ in range(2):
        end(first, signal.SIGKILL, -9)
        n = n_done(store)
        wait_for(lambda: lock_holder(store) in (second.pid, third.pid))
        wait_for(lambda: n_done(store) > n)
        first = second if lock_holder(store) == second.pid else third
    has_all_numbers(store)
    assert watcher.poll() is None, watcher.communicate()  # it still watches
    run("stop", "a", "--store", store)
    end(watcher)
    end(first, signal.SIGTERM)
    assert "is whole" in run("check", store)[0]


def has_all_numbers(store):
    """None of a study is there twice, none is missing."""
    for n, last in ask(store, "SELECT count(DISTINCT number), max(number) FROM trial GROUP BY study_id"):
        equal(int(n), int(last) + 1)
    equal(ask(store, "SELECT 1 FROM trial GROUP BY study_id, number HAVING count(*) > 1"), [])


def lock_holder(store):
    rows = servers[0].sql("SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory'",
                          re.search(r"/(\w+)\?", store).group(1))
    return int(rows[0][0].split()[1]) if rows else None


def finished(store):
    """Every column of every finished trial, and the number of its points."""
    return {row[0]: row for row in ask(store, "SELECT id, md5(t::text), (SELECT count(*) FROM metric WHERE trial_id = t.id) FROM trial t "
                                              "WHERE state IN ('done', 'stopped', 'failed')")}


class Hosts:
    """Two network namespaces with a cable between them: the server's and the first daemon's."""

    def __init__(self):
        self.a, self.b = "trawl-%d-a" % os.getpid(), "trawl-%d-b" % os.getpid()
        for words in ("netns add {a}", "netns add {b}", "-n {a} link set lo up", "link add t{p}a netns {a} type veth peer name t{p}b netns {b}",
                      "-n {a} addr add 10.77.0.1/24 dev t{p}a", "-n {b} addr add 10.77.0.2/24 dev t{p}b", "-n {a} link set t{p}a up",
                      "-n {b} link set t{p}b up"):
            self.ip(words)

    def ip(self, words):
        line = ["ip"] + words.format(a=self.a, b=self.b, p=os.getpid() % 100000).split()
        try:
            done = subprocess.run(line, capture_output=True, text=True)
        except OSError as why:
            raise tap.Skip("no network namespaces here: %s" % why)
        if done.returncode != 0 and "del" not in line:
            self.close()
            raise tap.Skip("no network namespaces here: %s" % done.stderr.strip())

    def close(self):
        self.ip("netns del {b}")
        self.ip("netns del {a}")


def test_a_standby_takes_over_from_a_host_that_vanished(folder):
    """The cable is cut: the server hears nothing of the session's end."""
    if postgres.MISSING:
        raise tap.Skip(postgres.MISSING)
    hosts = Hosts()
    server = None
    os.environ["XDG_DATA_HOME"] = str(folder)
    try:
        server = postgres.Postgres(listen="10.77.0.1", inside=["ip", "netns", "exec", hosts.a])
        store = "postgresql://trawl@10.77.0.1/postgres"
        run("sweep", write(folder, "s.ini", LONG), "--store", server.url(), "--name", "a", "--trials", 1, "-q")
        run("add", "a", "--trials", 100000, "--store", server.url())
        words = [tap.TRAWL, "daemon", "--store", store, "--devices", "cpu"]
        first = subprocess.Popen(["ip", "netns", "exec", hosts.b, *words], stderr=subprocess.PIPE, text=True,
                                 env=dict(os.environ, XDG_DATA_HOME=str(folder / "b")))
        tap.started.append(first)
        wait_for(lambda: n_done(server.url(), "a") > 2, first)
        second = daemon(server.url(), "standing by")
        hosts.ip("-n {b} link set t{p}b down")
        holder = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND pid <> %s" % server.sql(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory'")[0][0]
        wait_for(lambda: server.sql(holder), second)  # without the limits on dead connections it would be two hours
        n = n_done(server.url(), "a")
        wait_for(lambda: n_done(server.url(), "a") > n, second)
        hosts.ip("-n {b} link set t{p}b up")  # the first is back, finds the lock taken and ends
        wait_for(lambda: first.poll() is not None)
        said = first.stderr.read()
        assert "in use by another sweep or daemon" in said or "another controller has the store now" in said, said[-2000:]
        end(second, signal.SIGTERM)
        assert "is whole" in run("check", server.url())[0]
    finally:
        for process in tap.started:
            process.kill()
        if server is not None:
            server.close()
        hosts.close()


def test_a_restart_of_the_server_is_waited_for(folder):
    store, config = database(folder, "restarted"), write(folder, "s.ini", TINY_SWEEP)
    with open(folder / "log", "w") as log:
        sweep = subprocess.Popen([tap.TRAWL, "sweep", config, "--store", store, "--name", "a", "--trials", "100000"], stdout=subprocess.DEVNULL, stderr=log)
    tap.started.append(sweep)
    said = lambda words, times: wait_for(lambda: (folder / "log").read_text().count(words) >= times, sweep)
    for i, how in enumerate((signal.SIGINT, signal.SIGKILL), 1):
        n = n_done(store, "a")
        wait_for(lambda: n_done(store, "a") > n, sweep)
        servers[0].stop(how)
        said("the database does not answer", i)
        servers[0].start()
        said("the sweep continues", i)
    run("stop", "a", "--store", store)
    equal(sweep.wait(tap.PATIENCE_S), 0)
    equal({t["state"] for t in show(store, "a")["trials"]} | {"queued"}, {"done", "queued"})
    equal({t["attempt"] for t in show(store, "a")["trials"] if t["state"] == "done"}, {1})  # none was run again
    assert "is whole" in run("check", store)[0]


def test_a_daemon_leaves_a_study_to_the_sweep_that_an_outage_cut_off(folder):
    config = write(folder, "s.ini", LONG)
    for attempt in range(5):  # on a busy machine the server may stop too late: the daemon has the study by then, as it should
        store = database(folder, "outage%d" % attempt)
        sweep = start("sweep", config, "--store", store, "--name", "a", "--trials", 100000, "-q", "--sweep.keep", "front")
        wait_for(lambda: n_done(store, "a") > 0, sweep)
        both = daemon(store)
        sweep.send_signal(signal.SIGSTOP)  # its session ends first, and the daemon sees the study without a controller
        begun = time.monotonic()
        ask(store, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'trawl %d %%'" % sweep.pid)
        time.sleep(max(0, begun + 1.2 - time.monotonic()))  # less than the 2 s that the daemon waits before it takes such a study
        servers[0].stop(signal.SIGKILL)
        in_time = time.monotonic() - begun < 2
        time.sleep(2)  # an outage that takes longer than that
        sweep.send_signal(signal.SIGCONT)
        begun = time.monotonic()
        servers[0].start()
        holds = ("SELECT 1 FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE locktype = 'advisory' "
                 "AND application_name LIKE 'trawl %d %%'" % sweep.pid)
        wait_for(lambda: ask(store, holds) or sweep.poll() is not None)
        in_time = in_time and time.monotonic() - begun < 2
        if in_time:
            break
        tap.kill(sweep.pid)
        tap.kill(both.pid)
    if not in_time:
        raise tap.Skip("the machine is too busy to stop the server and to bring it back in time")
    n = n_done(store, "a")
    wait_for(lambda: n_done(store, "a") > n + 1, sweep)
    out, _ = end(sweep, signal.SIGINT, 130)
    assert pathlib.Path(re.search("checkpoints: .* in (.*)", out)[1]).is_dir(), out
    assert "no controller" not in end(both, signal.SIGTERM)[1]


def test_a_controller_that_was_cut_off_gives_way(folder):
    """Its session ends as by a broken network, and another takes the lock before it is back."""
    store, config = database(folder, "fenced"), write(folder, "s.ini", LONG)
    first = start("sweep", config, "--store", store, "--name", "a", "--trials", 100000, "-q")
    wait_for(lambda: n_done(store, "a") > 1, first)
    os.kill(first.pid, signal.SIGSTOP)
    servers[0].sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'trawl %%'")
    second = daemon(store)
    n = n_done(store, "a")
    wait_for(lambda: n_done(store, "a") > n, second)
    os.kill(first.pid, signal.SIGCONT)
    _, err = end(first, code=1)
    assert "in use by another sweep or daemon" in err or "another controller has the store now" in err, err
    n = n_done(store, "a")
    wait_for(lambda: n_done(store, "a") > n, second)
    has_all_numbers(store)
    end(second, signal.SIGTERM)
    assert "is whole" in run("check", store)[0]


def test_a_daemon_that_was_cut_off_keeps_its_other_studies(folder):
    """Its session ends, and a sweep takes one of its two studies before it is back."""
    store, config = database(folder, "parted"), write(folder, "s.ini", LONG)
    for name in "ab":
        run("sweep", config, "--store", store, "--name", name, "--trials", 1, "-q")
        run("add", name, "--trials", 100000, "--store", store)
    both = daemon(store)
    wait_for(lambda: n_done(store, "a") > 1 and n_done(store, "b") > 1, both)
    os.kill(both.pid, signal.SIGSTOP)
    servers[0].sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'trawl %%'")
    wait_for(lambda: lock_holder(store) is None)  # the server ends a session a moment after it was asked to
    sweep = start("sweep", "--resume", "a", "--store", store, "-q", "--devices", "cpu")
    n = n_done(store, "a")
    wait_for(lambda: n_done(store, "a") > n, sweep)
    os.kill(both.pid, signal.SIGCONT)
    n = n_done(store, "b")
    wait_for(lambda: n_done(store, "b") > n + 1, both)
    n = n_done(store, "a")
    wait_for(lambda: n_done(store, "a") > n, sweep)
    end(sweep, signal.SIGINT, 130)
    _, said = end(both, signal.SIGTERM)
    assert "that study is left to it, and the daemon continues with the others" in said, said[-2000:]
    has_all_numbers(store)
    assert "is whole" in run("check", store)[0]


def test_a_trial_on_two_hosts_outlives_one_that_leaves(folder):
    """Nodes with --hosts: the trial of a host that is stopped is saved, given back and continued with the next host."""
    store, config = database(folder, "hosts"), TINY_SWEEP.replace("threads = 1", "devices = 2").replace("total_timesteps = 4096", "total_timesteps = 2G")
    daemon(store, devices="none")
    start("sweep", write(folder, "s.ini", config), "--store", store, "--name", "a", "--trials", 1, "-q")
    node = start("node", "--store", store, "--devices", "cpu", "--hosts", 2, "--listen", "127.0.0.1", "--spool", folder / "spool")
    join = "join", "--store", store, "--devices", "cpu"
    other = start(*join)
    wait_for(lambda: ask(store, "SELECT 1 FROM metric LIMIT 1"), other)
    end(other, signal.SIGTERM, 130)
    wait_for(lambda: ask(store, "SELECT 1 FROM lease WHERE state = 'returned'"), node)
    steps = int(ask(store, "SELECT max(env_steps) FROM checkpoint")[0][0])
    other = start(*join)
    wait_for(lambda: ask(store, "SELECT 1 FROM metric WHERE env_steps > %d LIMIT 1" % steps), other)
    equal(ask(store, "SELECT state FROM lease ORDER BY id"), [["returned"], ["open"]])
    end(node, signal.SIGTERM, 130)
    end(other, signal.SIGTERM, 130)


def test_kills_lose_and_double_nothing(folder):
    store, config, rng = database(folder, "killed"), write(folder, "s.ini", TINY_SWEEP), random.Random(7)
    run("sweep", config, "--store", store, "--name", "a", "--trials", 1, "-q")
    run("add", "a", "--trials", 100000, "--store", store)
    known, pair = {}, [daemon(store), daemon(store, "standing by")]
    kinds = [("controller", "worker", "server", "standby")[k % 4] for k in range(N_KILLS)]
    rng.shuffle(kinds)

    def gave_way(process):
        """On a busy machine it was not back in time after the server's restart: the other one has the store."""
        if process.poll() is None:
            return False
        said = process.stderr.read()
        assert "in use by another sweep or daemon" in said or "another controller has the store now" in said, said[-2000:]
        return True
    for kind in kinds:
        pair = [start("daemon", "--store", store, "--devices", "cpu") if gave_way(p) else p for p in pair]
        n = len(known)
        wait_for(lambda: len(finished(store)) > n + 2)
        time.sleep(rng.random() * 0.3)
        pid = lock_holder(store)
        holder = next((p for p in pair if p.pid == pid), pair[0])
        if kind == "server":
            servers[0].restart(signal.SIGKILL if rng.random() < 0.7 else signal.SIGINT)
        elif kind == "worker":
            for pid in tap.children(holder.pid)[:1]:
                tap.kill(pid)
        else:
            victim = holder if kind == "controller" else next(p for p in pair if p is not holder)
            victim.kill()
            victim.communicate(timeout=tap.PATIENCE_S)
            pair[pair.index(victim)] = start("daemon", "--store", store, "--devices", "cpu")
        now = finished(store)
        for key, row in known.items():
            equal(now.get(key), row)  # told is told, once
        known = now
    has_all_numbers(store)
    for process in reversed(pair):
        wait_for(lambda: gave_way(process) or tap.has_signal(process.pid, signal.SIGTERM, "SigCgt"))  # one that has just been started
        if process.poll() is None:
            end(process, signal.SIGTERM)
    assert "is whole" in run("check", store)[0]
