"""`trawl node`: nodes take trials of a store by themselves. Controller, nodes and workers are killed at random: no result is lost or doubled, and
the proposals can be made again. A node that fell silent has its trial taken away, and what it reports then is kept as late; results
wait on the disk while the store is locked; a signal saves trials and gives them back.

TRAWL_NODE_KILLS: number of kills (24).
"""
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import time

import tap
from tap import TINY_SWEEP, equal, run, write
import postgres

N_KILLS = int(os.environ.get("TRAWL_NODE_KILLS", 24))
PARETO = TINY_SWEEP.replace("method = sobol", "method = pareto\nlease_s = 2\ncheckpoint_interval_s = 0.2") + """
[sweep.train.total_timesteps]
distribution = log
min = 2048
max = 262144
"""
LONG = PARETO.replace("min = 2048\nmax = 262144", "min = 40M\nmax = 80M").replace("total_timesteps = 4096", "total_timesteps = 50M")


def query(store, what, *values):
    db = sqlite3.connect("file:%s?mode=ro" % store, uri=True, timeout=tap.PATIENCE_S)
    try:
        return db.execute(what, values).fetchall()
    except sqlite3.OperationalError:
        return []
    finally:
        db.close()


def wait_for(what, condition):
    end = time.monotonic() + tap.PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "never came: " + what
        time.sleep(0.01)


def background(folder, name, *words):
    log = open(folder / (name + ".log"), "ab")
    process = subprocess.Popen([tap.TRAWL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    log.close()
    tap.started.append(process)
    return process


def controller(folder, store):
    return background(folder, "daemon", "daemon", "--store", store, "--devices", "none")


def node(folder, store, name, *more):
    return background(folder, name, "node", "--store", store, "--devices", "cpu", "--name", name, "--spool", folder / "spool", *more)


def submit(folder, text, trials):
    store = folder / "s.db"
    process = controller(folder, store)
    wait_for("socket", lambda: os.path.exists(str(store) + ".sock"))
    background(folder, "sweep", "sweep", write(folder, "a.ini", text), "--name", "a", "--trials", trials, "--seed", 3, "--store", store)
    wait_for("study", lambda: query(store, "SELECT 1 FROM study"))
    return store, process


def children(pid):
    out = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [int(word) for word in out.split()]


def is_idle(pid, looks=10):
    """Has no thread of the process run, or waited for a processor, for half a second (10 looks), but for a sign of life?"""
    def threads():
        texts = [path.read_text().rsplit(")", 1)[1].split() for path in pathlib.Path("/proc/%d/task" % pid).glob("*/stat")]
        return any(text[0] == "R" for text in texts), sum(int(text[11]) + int(text[12]) for text in texts)
    before, waited = threads()[1], 0
    for _ in range(looks):
        time.sleep(0.05)
        waited += threads()[0]
    return waited <= 1 and threads()[1] <= before + 1


def kill(process, number=signal.SIGKILL):
    process.send_signal(number)
    if number == signal.SIGKILL:
        process.wait()


def ended(store):
    return query(store, "SELECT number, state, score, attempt FROM trial WHERE state IN ('done', 'stopped', 'failed') ORDER BY 1")


def shown(store):
    """The nodes, as `trawl show` has them."""
    return json.loads(run("show", "a", "--store", store, "--json")[0])["nodes"]


def test_kills_lose_and_double_nothing(folder):
    chance = random.Random(7)
    n_trials = 4 * N_KILLS  # more than end before the last kill
    store, daemon = submit(folder, PARETO, n_trials)
    nodes = {name: node(folder, store, name, "--runs-per-device", 2) for name in ("one", "two")}
    seen, kills = {}, {"controller": 0, "node": 0, "worker": 0}
    kinds = [list(kills)[k % 3] for k in range(N_KILLS)]
    chance.shuffle(kinds)
    for kind in kinds:
        time.sleep(chance.uniform(0.05, 0.5))
        for number, *rest in ended(store):  # what was there stays as it was
            equal(seen.setdefault(number, rest), rest)
        kills[kind] += 1
        if kind == "controller":
            kill(daemon)
            daemon = controller(folder, store)
        elif kind == "node":
            name = chance.choice(list(nodes))
            kill(nodes[name])
            nodes[name] = node(folder, store, name, "--runs-per-device", 2)
        else:
            victims = [pid for n in nodes.values() for pid in children(n.pid)]
            for pid in victims[:1]:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
    assert all(kills.values()), kills
    wait_for("end", lambda: query(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    rows = {number: rest for number, *rest in ended(store)}
    for number, rest in seen.items():
        equal(rows[number], rest)
    equal(query(store, "SELECT count(*), count(DISTINCT number) FROM trial"), [(n_trials, n_trials)])
    states = dict(query(store, "SELECT state, count(*) FROM trial GROUP BY 1"))
    equal(set(states) - {"done", "failed", "lost"}, set())  # lost: two nodes were killed under it
    told = query(store, "SELECT trial_id, count(*) FROM lease WHERE state = 'told' GROUP BY 1 HAVING count(*) > 1")
    equal(told, [])  # one result each
    equal(states["done"] + states.get("failed", 0), query(store, "SELECT count(*) FROM lease WHERE state = 'told'")[0][0])
    equal(query(store, "SELECT count(*) FROM lease WHERE state = 'open'"), [(0,)])
    found = json.loads(run("replay", "a", "--store", store, "--json")[0])
    equal((found["differences"], found["unrecorded"]), ([], 0))
    run("check", store)
    told = query(store, "SELECT count(*) FROM lease WHERE state = 'told'")[0][0]
    wait_for("all nodes", lambda: [n["state"] for n in shown(store)] == ["idle", "idle"])
    equal(([n["name"] for n in shown(store)], sum(n["done"] for n in shown(store))), (["one", "two"], told))
    assert {(n["slots"], n["running"], n["job"]) for n in shown(store)} == {(2, 0, None)}, shown(store)
    assert all(n["host"] and n["device"] and n["started_ms"] <= n["beat_ms"] for n in shown(store)), shown(store)
    assert "\none  " in run("show", "a", "--store", store)[0]
    for n in nodes.values():
        kill(n, signal.SIGTERM)
        equal(n.wait(tap.PATIENCE_S), 130)
    equal(query(store, "SELECT name FROM node"), [])


def test_a_stolen_attempt_is_kept_as_late(folder):
    store, _ = submit(folder, PARETO.replace("max = 262144", "max = 1200000").replace("min = 2048", "min = 1M"), 2)
    first = node(folder, store, "first")
    wait_for("start", lambda: "starts" in (folder / "first.log").read_text())
    worker, = children(first.pid)
    wait_for("training", lambda: not is_idle(worker, 2))  # "starts" is logged before the worker gets its trial
    os.kill(first.pid, signal.SIGSTOP)  # cut off from the store, while its worker trains on
    taken = query(store, "SELECT trial_id, attempt FROM lease WHERE state = 'open'")
    equal(len(taken), 1)
    wait_for("theft", lambda: query(store, "SELECT 1 FROM lease WHERE state = 'expired'"))
    second = node(folder, store, "second")
    wait_for("result", lambda: query(store, "SELECT 1 FROM trial WHERE state = 'done'"))
    wait_for("end of the first training", lambda: is_idle(worker))
    os.kill(first.pid, signal.SIGCONT)
    wait_for("end", lambda: query(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    wait_for("late result", lambda: query(store, "SELECT 1 FROM lease WHERE state = 'expired' AND told IS NOT NULL"))
    equal(query(store, "SELECT count(*) FROM lease WHERE state = 'told'"), [(2,)])
    late = json.loads(query(store, "SELECT told FROM lease WHERE state = 'expired'")[0][0])
    equal(late["type"], "result")
    equal(query(store, "SELECT attempt, losses FROM trial WHERE id = ?", taken[0][0]), [(2, 1)])
    kill(second, signal.SIGTERM)


def test_results_wait_on_the_disk_while_the_store_is_locked(folder):
    text = PARETO.replace("lease_s = 2", "lease_s = 600").replace("min = 2048\nmax = 262144", "min = 400k\nmax = 500k")
    store, _ = submit(folder, text, 2)
    lock = sqlite3.connect(store, timeout=tap.PATIENCE_S, isolation_level=None)
    first = node(folder, store, "first")
    wait_for("start", lambda: "starts" in (folder / "first.log").read_text())
    lock.execute("BEGIN IMMEDIATE")
    spool = folder / "spool"
    wait_for("spool", lambda: any(p.suffix == ".json" for p in spool.iterdir()) if spool.exists() else False)
    before = len(ended(store))
    kill(first)
    lock.execute("ROLLBACK")
    lock.close()
    second = node(folder, store, "second")  # tells what the first one left
    wait_for("result", lambda: len(ended(store)) > before)
    wait_for("end", lambda: query(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    equal([p.name for p in spool.iterdir()], [])
    equal(query(store, "SELECT count(*) FROM lease WHERE state = 'told'"), [(2,)])
    equal(query(store, "SELECT count(*) FROM lease WHERE state = 'expired'"), [(0,)])  # nothing was trained twice
    kill(second, signal.SIGTERM)


def test_signals_save_and_give_back(folder):
    store, _ = submit(folder, LONG, 1)
    first = node(folder, store, "first")
    wait_for("curve", lambda: query(store, "SELECT 1 FROM metric"))
    wait_for("checkpoint", lambda: query(store, "SELECT 1 FROM checkpoint"))
    kill(first, signal.SIGUSR1)
    equal(first.wait(tap.PATIENCE_S), 130)
    equal(query(store, "SELECT state, attempt, deaths, losses FROM trial"), [("queued", 1, 0, 0)])
    equal(query(store, "SELECT state FROM lease"), [("returned",)])
    steps = query(store, "SELECT max(env_steps) FROM metric")[0][0]
    second = node(folder, store, "second")
    wait_for("continued", lambda: query(store, "SELECT max(env_steps) FROM metric")[0][0] > steps)
    equal(query(store, "SELECT state, attempt FROM trial"), [("running", 2)])
    first_point = query(store, "SELECT min(env_steps) FROM metric")[0][0]
    assert first_point < steps, "the curve of the first attempt is kept"
    run("stop", "a", "--store", store)  # recalls it: the node stops it, and the study rests
    wait_for("recall", lambda: query(store, "SELECT 1 FROM trial WHERE state = 'queued'"))
    wait_for("stop", lambda: "is to stop" in (folder / "second.log").read_text())
    kill(second, signal.SIGTERM)
    equal(second.wait(tap.PATIENCE_S), 130)


def test_nodes_train_on_while_their_database_is_away(folder):
    if postgres.MISSING:
        raise tap.Skip(postgres.MISSING)
    os.environ["XDG_DATA_HOME"] = str(folder)
    server = postgres.Postgres()
    try:
        store, chance = server.database("nodes"), random.Random(3)
        ask = lambda what: server.sql("SET search_path = trawl; " + what, "nodes")
        sweep = background(folder, "sweep", "sweep", write(folder, "a.ini", PARETO), "--name", "a", "--trials", 24, "--seed", 3, "--store", store,
                           "--devices", "none")
        wait_for("study", lambda: subprocess.run([tap.TRAWL, "show", "a", "--store", store], capture_output=True).returncode == 0)
        nodes = [node(folder, store, name, "--runs-per-device", 2) for name in ("one", "two")]
        done = lambda: int(ask("SELECT count(*) FROM trial WHERE state = 'done'")[0][0])
        for until in (4, 10):
            wait_for("results", lambda: done() >= until)
            server.stop(signal.SIGKILL)
            time.sleep(chance.uniform(0.3, 1))
            server.start()
        kill(nodes[0])
        nodes[0] = node(folder, store, "one", "--runs-per-device", 2)
        equal(sweep.wait(tap.PATIENCE_S), 0)
        equal(ask("SELECT count(*), count(DISTINCT number) FROM trial WHERE state IN ('done', 'failed', 'lost')"), [["24", "24"]])
        equal(ask("SELECT trial_id FROM lease WHERE state = 'told' GROUP BY 1 HAVING count(*) > 1"), [])
        found = json.loads(run("replay", "a", "--store", store, "--json")[0])
        equal((found["differences"], found["unrecorded"]), ([], 0))
        for one in nodes:
            kill(one, signal.SIGTERM)
            equal(one.wait(tap.PATIENCE_S), 130)
    finally:
        server.close()


def test_branches_come_with_a_result(folder):
    """Also where the controller was killed before it saw the result."""
    text = PARETO.replace("method = pareto", "method = pareto\nbranches = 2").replace("device = cpu", "device = cpu\ndecay_steps = 1000")
    store, daemon = submit(folder, text.replace("min = 2048", "min = 131072"), 3)
    node(folder, store, "n")
    branches = lambda: query(store, "SELECT origin FROM trial WHERE origin LIKE 'branch %' AND state = 'done'")
    wait_for("a start", lambda: query(store, "SELECT 1 FROM lease WHERE state = 'open'"))
    kill(daemon)
    wait_for("a result", lambda: query(store, "SELECT 1 FROM lease WHERE state = 'told' AND token LIKE 'node-%'"))
    equal(branches(), [])
    controller(folder, store)
    wait_for("end", lambda: query(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    runs = query(store, "SELECT number FROM trial WHERE origin NOT LIKE 'branch %' AND state = 'done'")
    told = query(store, "SELECT trial.number, json_array_length(told, '$.branches') FROM lease JOIN trial ON trial.id = trial_id "
                        "WHERE token LIKE 'node-%' AND lease.state = 'told'")
    assert len(runs) == 3 and any(n for _, n in told), told  # the shortest run of the space has none
    equal(sorted(branches()), sorted(("branch %d" % number,) for number, n in told for _ in range(n or 0)))
    equal(json.loads(run("replay", "a", "--store", store, "--json")[0])["differences"], [])
    run("check", store)


def test_branches_of_a_preempted_attempt_stay(folder):
    """With no controller, and while one looks; the attempt that continues adds none twice."""
    text = LONG.replace("method = pareto", "method = pareto\nbranches = 2").replace("device = cpu", "device = cpu\ndecay_steps = 1000")
    store, daemon = submit(folder, text.replace("min = 40M", "min = 16384").replace("lease_s = 2", "lease_s = 30"), 1)
    first = node(folder, store, "n")
    branches = lambda: query(store, "SELECT env_steps FROM trial WHERE origin = 'branch 0' AND state = 'done' ORDER BY 1")
    wait_for("a start", lambda: query(store, "SELECT 1 FROM lease WHERE state = 'open'"))
    kill(daemon)
    wait_for("a branch", lambda: query(store, "SELECT 1 FROM lease WHERE json_array_length(told, '$.branches') > 0"))
    kill(first, signal.SIGTERM)
    equal(first.wait(tap.PATIENCE_S), 130)
    kept = query(store, "SELECT json_array_length(told, '$.branches') FROM lease WHERE state = 'returned'")[0][0]
    known = len(branches())  # the daemon may have been killed after it saw the first
    assert known <= kept, (known, kept)
    controller(folder, store)
    wait_for("the branches", lambda: len(branches()) == kept)
    second = node(folder, store, "n")
    wait_for("its second attempt", lambda: query(store, "SELECT 1 FROM lease WHERE state = 'open' AND attempt = 2"))
    wait_for("the other branch", lambda: len(branches()) == 2)
    equal(query(store, "SELECT state FROM trial WHERE number = 0"), [("running",)])  # it is seen before the run has ended
    kill(second, signal.SIGTERM)
    equal(second.wait(tap.PATIENCE_S), 130)
    equal(len(set(branches())), 2)
    run("check", store)
