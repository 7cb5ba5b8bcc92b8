"""`trawl node`: nodes take trials of a store by themselves. Controller, nodes and workers are killed at random: no result is lost or doubled, and
the proposals can be made again. A node that fell silent has its trial taken away, and what it reports then is kept as late; results
wait on the disk while the store is locked; a signal saves trials and gives them back.

TRAWL_NODE_KILLS: number of kills (24).
"""
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import time

import tap
from tap import TINY_SWEEP, children, end, equal, gated, open_gate, rows, run, wait_for, write
import postgres

SLOTS = min(2, len(os.sched_getaffinity(0)))
N_KILLS = int(os.environ.get("TRAWL_NODE_KILLS", 24))
LENGTHS = """
[sweep.train.total_timesteps]
distribution = log
min = 2048
max = 262144
"""
PARETO = TINY_SWEEP.replace("method = sobol", "method = pareto\nlease_s = 2\ncheckpoint_interval_s = 0.2") + LENGTHS


def background(folder, name, *words):
    log = open(folder / (name + ".log"), "ab")
    process = subprocess.Popen([tap.TRAWL, *map(str, words)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    log.close()
    tap.started.append(process)
    return process


def controller(store):
    return tap.daemon(store, "--devices", "none")


def node(folder, store, name, *more):
    return background(folder, name, "node", "--store", store, "--devices", "cpu", "--name", name, "--spool", folder / "spool", *more)


def submit(folder, text, trials):
    store = folder / "s.db"
    process = controller(store)
    background(folder, "sweep", "sweep", write(folder, "a.ini", text), "--name", "a", "--trials", trials, "--seed", 3, "--store", store)
    wait_for(lambda: rows(store, "SELECT 1 FROM study"))
    return store, process


def ticks(pid):
    """The time of the processor that it has used, in 1/100 s."""
    return sum(int(text[11]) + int(text[12]) for text in tap.threads(pid))


def is_idle(pid):
    """Has no thread of the process run, or waited for a processor or a disk, for half a second, but for a sign of life?"""
    before, waited = ticks(pid), 0
    for _ in range(10):
        time.sleep(0.05)
        waited += any(text[0] in "RD" for text in tap.threads(pid))
    return waited <= 1 and ticks(pid) <= before + 1


def cut_off(process, store):
    """Stops a node while it holds no lock of the store: what a machine leaves that lost its network."""
    while True:
        os.kill(process.pid, signal.SIGSTOP)
        wait_for(lambda: all(text[0] == "T" for text in tap.threads(process.pid)))
        try:
            with contextlib.closing(sqlite3.connect(store, timeout=5, isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")
            return
        except sqlite3.OperationalError:  # the lock was the node's, and would be for ever
            os.kill(process.pid, signal.SIGCONT)


def ended(store):
    return rows(store, "SELECT number, state, score, attempt FROM trial WHERE state IN ('done', 'stopped', 'failed') ORDER BY 1")


def shown(store):
    """The nodes, as `trawl show` has them."""
    return json.loads(run("show", "a", "--store", store, "--json")[0])["nodes"]


def test_an_idle_node_says_what_it_waits_for(folder):
    store = folder / "s.db"
    run("sweep", write(folder, "a.ini", TINY_SWEEP), "--name", "a", "--trials", 1, "-q", "--store", store)
    process, log = node(folder, store, "one"), folder / "one.log"
    wait_for(lambda: "waiting for a study of %s that runs" % store in log.read_text(), process)
    run("add", "a", "--trials", 1, "--store", store)
    wait_for(lambda: "waiting for trials of %s" % store in log.read_text(), process)
    end(process, signal.SIGTERM, 130)


def test_kills_lose_and_double_nothing(folder):
    chance = random.Random(7)
    n_trials = 4 * N_KILLS  # more than end before the last kill
    store, daemon = submit(folder, PARETO, n_trials)
    nodes = {name: node(folder, store, name, "--runs-per-device", SLOTS) for name in ("one", "two")}
    seen, kills = {}, {"controller": 0, "node": 0, "worker": 0}
    kinds = [list(kills)[k % 3] for k in range(N_KILLS)]
    chance.shuffle(kinds)
    for kind in kinds:
        time.sleep(chance.uniform(0.05, 0.5))
        for number, *rest in ended(store):  # what was there stays as it was
            equal(seen.setdefault(number, rest), rest)
        if len(seen) > n_trials * 3 // 4:  # on a busy machine: a node that is started when the study has ended has no study to begin with
            break
        kills[kind] += 1
        if kind == "controller":
            end(daemon, signal.SIGKILL, -9)
            daemon = controller(store)
        elif kind == "node":
            name = chance.choice(list(nodes))
            end(nodes[name], signal.SIGKILL, -9)
            nodes[name] = node(folder, store, name, "--runs-per-device", SLOTS)
        else:
            victims = [pid for n in nodes.values() for pid in children(n.pid)]
            for pid in victims[:1]:
                tap.kill(pid)
    assert all(kills.values()), kills
    wait_for(lambda: rows(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    now = {number: rest for number, *rest in ended(store)}
    for number, rest in seen.items():
        equal(now[number], rest)
    equal(rows(store, "SELECT count(*), count(DISTINCT number) FROM trial"), [(n_trials, n_trials)])
    states = dict(rows(store, "SELECT state, count(*) FROM trial GROUP BY 1"))
    equal(set(states) - {"done", "failed", "lost"}, set())  # lost: two nodes were killed under it
    twice = rows(store, "SELECT trial_id, count(*) FROM lease WHERE state = 'reported' GROUP BY 1 HAVING count(*) > 1")
    equal(twice, [])  # one result each
    equal(states["done"] + states.get("failed", 0), rows(store, "SELECT count(*) FROM lease WHERE state = 'reported'")[0][0])
    equal(rows(store, "SELECT count(*) FROM lease WHERE state = 'open'"), [(0,)])
    found = json.loads(run("replay", "a", "--store", store, "--json")[0])
    equal((found["differences"], found["unrecorded"]), ([], 0))
    run("check", store)
    n_results = rows(store, "SELECT count(*) FROM lease WHERE state = 'reported'")[0][0]
    wait_for(lambda: [n["state"] for n in shown(store)] == ["idle", "idle"])
    equal(([n["name"] for n in shown(store)], sum(n["done"] for n in shown(store))), (["one", "two"], n_results))
    assert {(n["slots"], n["running"], n["job"]) for n in shown(store)} == {(SLOTS, 0, None)}, shown(store)
    assert all(n["host"] and n["device"] and n["started_ms"] <= n["beat_ms"] for n in shown(store)), shown(store)
    assert "\none  " in run("show", "a", "--store", store)[0]
    for n in nodes.values():
        end(n, signal.SIGTERM, 130)
    equal(rows(store, "SELECT name FROM node"), [])


def test_a_stolen_attempt_is_kept_as_late(folder):
    text = gated(folder, method="pareto", lease_s=6) + LENGTHS.replace("min = 2048\nmax = 262144", "min = 900k\nmax = 1M")
    # with a message for each report the worker would wait for the node to read them
    store, _ = submit(folder, text.replace("log_interval_s = 0.1", "log_interval_s = 3"), 2)
    first = node(folder, store, "first")
    wait_for(lambda: rows(store, "SELECT 1 FROM metric"), first)
    worker, = children(first.pid)
    cut_off(first, store)  # its worker trains on
    taken = rows(store, "SELECT trial_id FROM lease WHERE state IN ('open', 'expired')")
    equal((len(taken), ended(store)), (1, []))
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE state = 'expired'"))
    open_gate(folder)
    second = node(folder, store, "second")
    wait_for(lambda: rows(store, "SELECT 1 FROM trial WHERE state = 'done'"))
    wait_for(lambda: is_idle(worker))
    os.kill(first.pid, signal.SIGCONT)
    wait_for(lambda: rows(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE state = 'expired' AND result IS NOT NULL"))
    equal(rows(store, "SELECT count(*) FROM lease WHERE state = 'reported'"), [(2,)])
    late = json.loads(rows(store, "SELECT result FROM lease WHERE state = 'expired'")[0][0])
    equal(late["type"], "result")
    equal(rows(store, "SELECT attempt, losses FROM trial WHERE id = ?", taken[0][0]), [(2, 1)])
    end(second, signal.SIGTERM, 130)


def test_results_wait_on_the_disk_while_the_store_is_locked(folder):
    store, _ = submit(folder, gated(folder, lease_s=600), 2)
    lock = sqlite3.connect(store, timeout=tap.PATIENCE_S, isolation_level=None)
    first = node(folder, store, "first")
    wait_for(lambda: "starts" in (folder / "first.log").read_text())
    lock.execute("BEGIN IMMEDIATE")
    open_gate(folder)
    spool = folder / "spool"
    wait_for(lambda: any(p.suffix == ".json" for p in spool.iterdir()) if spool.exists() else False)
    before = len(ended(store))
    end(first, signal.SIGKILL, -9)
    lock.execute("ROLLBACK")
    lock.close()
    second = node(folder, store, "second")  # reports what the first one left
    wait_for(lambda: len(ended(store)) > before)
    wait_for(lambda: rows(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    wait_for(lambda: not list(spool.iterdir()), second)  # what was acknowledged is removed after that
    equal(rows(store, "SELECT count(*) FROM lease WHERE state = 'reported'"), [(2,)])
    equal(rows(store, "SELECT count(*) FROM lease WHERE state = 'expired'"), [(0,)])  # nothing was trained twice
    end(second, signal.SIGTERM, 130)


def test_a_device_that_a_study_does_not_take_is_reported(folder):
    store, _ = submit(folder, PARETO.replace("lease_s = 2", "lease_s = 2\ndevice_costs = NVIDIA H200=1"), 2)
    first = node(folder, store, "first")
    wait_for(lambda: "run on what sweep.device_costs names" in (folder / "first.log").read_text(), first)
    equal(rows(store, "SELECT count(*) FROM lease"), [(0,)])
    end(first, signal.SIGTERM, 130)


def test_signals_save_and_give_back(folder):
    store, _ = submit(folder, gated(folder, lease_s=60, checkpoint_interval_s=0.2), 1)
    first = node(folder, store, "first")
    wait_for(lambda: rows(store, "SELECT 1 FROM metric"))
    wait_for(lambda: rows(store, "SELECT 1 FROM checkpoint"))
    end(first, signal.SIGUSR1, 130)
    equal(rows(store, "SELECT state, attempt, deaths, losses FROM trial"), [("queued", 1, 0, 0)])
    equal(rows(store, "SELECT state FROM lease"), [("returned",)])
    steps, = rows(store, "SELECT max(env_steps) FROM metric")[0]
    second = node(folder, store, "second")
    wait_for(lambda: rows(store, "SELECT 1 FROM metric WHERE env_steps > ?", steps))
    equal(rows(store, "SELECT state, attempt FROM trial"), [("running", 2)])
    assert rows(store, "SELECT 1 FROM metric WHERE env_steps <= ?", steps), "the curve of the first attempt is kept"
    run("stop", "a", "--store", store)  # recalls it: the node stops it, and the study rests
    wait_for(lambda: rows(store, "SELECT 1 FROM trial WHERE state = 'queued'"))
    wait_for(lambda: "is to stop" in (folder / "second.log").read_text())
    end(second, signal.SIGTERM, 130)


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
        wait_for(lambda: subprocess.run([tap.TRAWL, "show", "a", "--store", store], capture_output=True).returncode == 0)
        nodes = [node(folder, store, name, "--runs-per-device", SLOTS) for name in ("one", "two")]
        done = lambda: int(ask("SELECT count(*) FROM trial WHERE state = 'done'")[0][0])
        for until in (4, 10):
            wait_for(lambda: done() >= until)
            server.stop(signal.SIGKILL)
            time.sleep(chance.uniform(0.3, 1))
            server.start()
        end(nodes[0], signal.SIGKILL, -9)
        nodes[0] = node(folder, store, "one", "--runs-per-device", SLOTS)
        equal(sweep.wait(tap.PATIENCE_S), 0)
        equal(ask("SELECT count(*), count(DISTINCT number) FROM trial WHERE state IN ('done', 'failed', 'lost')"), [["24", "24"]])
        equal(ask("SELECT trial_id FROM lease WHERE state = 'reported' GROUP BY 1 HAVING count(*) > 1"), [])
        found = json.loads(run("replay", "a", "--store", store, "--json")[0])
        equal((found["differences"], found["unrecorded"]), ([], 0))
        for one in nodes:
            end(one, signal.SIGTERM, 130)
    finally:
        server.close()


def test_an_outage_longer_than_a_lease_costs_no_trial(folder):
    """Neither the controller nor a node that waits for a trial ends the lease before the node that has it could report."""
    if postgres.MISSING:
        raise tap.Skip(postgres.MISSING)
    os.environ["XDG_DATA_HOME"] = str(folder)
    server = postgres.Postgres()
    try:
        store = server.database("nodes")
        ask = lambda what: server.sql("SET search_path = trawl; " + what, "nodes")
        sweep = background(folder, "sweep", "sweep", write(folder, "a.ini", gated(folder, lease_s=600)), "--name", "a", "--trials", 1, "--store", store,
                           "--devices", "none")
        wait_for(lambda: subprocess.run([tap.TRAWL, "show", "a", "--store", store], capture_output=True).returncode == 0)
        nodes = [node(folder, store, name) for name in ("one", "two")]
        wait_for(lambda: all("is ready" in (folder / (name + ".log")).read_text() for name in ("one", "two")))
        wait_for(lambda: ask("SELECT 1 FROM lease"))
        server.stop(signal.SIGKILL)
        server.change_stopped("UPDATE trawl.lease SET until_ms = 1, checksum = NULL", "nodes")  # as if the ten minutes were over
        time.sleep(6)
        server.start()
        wait_for(lambda: ask("SELECT 1 FROM lease WHERE until_ms > 1 OR state != 'open'"))
        open_gate(folder)
        equal(sweep.wait(tap.PATIENCE_S), 0)
        equal(ask("SELECT state, attempt FROM lease"), [["reported", "1"]])
        for one in nodes:
            end(one, signal.SIGTERM, 130)
    finally:
        server.close()


def test_branches_come_with_a_result(folder):
    """Also where the controller was killed before it saw the result."""
    text = gated(folder, method="pareto", branches=2, lease_s=60).replace("device = cpu", "device = cpu\ndecay_steps = 1000")
    store, daemon = submit(folder, text + LENGTHS.replace("min = 2048\nmax = 262144", "min = 500k\nmax = 1M"), 3)
    branches = lambda: rows(store, "SELECT origin FROM trial WHERE origin LIKE 'branch %' AND state = 'done'")
    node(folder, store, "n")
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE state = 'open'"))
    end(daemon, signal.SIGKILL, -9)
    open_gate(folder)
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE state = 'reported' AND token LIKE 'node-%'"))
    equal(branches(), [])
    controller(store)
    wait_for(lambda: rows(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    runs = rows(store, "SELECT number FROM trial WHERE origin NOT LIKE 'branch %' AND state = 'done'")
    kept = rows(store, "SELECT trial.number, json_array_length(branches) FROM lease JOIN trial ON trial.id = trial_id "
                        "WHERE token LIKE 'node-%' AND lease.state = 'reported'")
    assert len(runs) == 3 and any(n for _, n in kept), kept  # the shortest run of the space has none
    equal(sorted(branches()), sorted(("branch %d" % number,) for number, n in kept for _ in range(n or 0)))
    equal(json.loads(run("replay", "a", "--store", store, "--json")[0])["differences"], [])
    run("check", store)


def test_branches_of_a_preempted_attempt_stay(folder):
    """With no controller, and while one looks; the attempt that continues adds none twice."""
    text = gated(folder, method="pareto", branches=2, lease_s=60).replace("device = cpu", "device = cpu\ndecay_steps = 1000\neval_episodes = 16")
    text = text.replace("total_timesteps = 1000000", "total_timesteps = 300k")
    store, daemon = submit(folder, text + LENGTHS.replace("min = 2048\nmax = 262144", "min = 256\nmax = 300k"), 1)
    first = node(folder, store, "n")
    branches = lambda: rows(store, "SELECT env_steps FROM trial WHERE origin = 'branch 0' AND state = 'done' ORDER BY 1")
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE state = 'open'"))
    end(daemon, signal.SIGKILL, -9)
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE json_array_length(branches) > 0"))
    end(first, signal.SIGTERM, 130)
    kept = rows(store, "SELECT json_array_length(branches) FROM lease WHERE state = 'returned'")[0][0]
    known = len(branches())  # the daemon may have been killed after it saw the first
    assert known <= kept, (known, kept)
    controller(store)
    wait_for(lambda: len(branches()) == kept)
    second = node(folder, store, "n")
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE state = 'open' AND attempt = 2"))
    wait_for(lambda: len(branches()) == 2)
    equal(rows(store, "SELECT state FROM trial WHERE number = 0"), [("running",)])  # it is seen before the run has ended
    end(second, signal.SIGTERM, 130)
    equal(len(set(branches())), 2)
    run("check", store)


def edit(store, sql, *values):
    with contextlib.closing(sqlite3.connect(store, timeout=tap.PATIENCE_S)) as db, db:
        db.execute(sql, values)


def test_a_study_continues_past_a_lost_attempt(folder):
    """Its controller and its node are killed, and the lease is over before the next controller looks: what the attempt had of branches is taken
    in, and more trials follow."""
    text = PARETO.replace("method = pareto\nlease_s = 2", "method = pareto\nlease_s = 60\nbranches = 2").replace("device = cpu", "device = cpu\ndecay_steps = 1000")
    store, daemon = submit(folder, text.replace("min = 2048\nmax = 262144", "min = 16384\nmax = 1M").replace("= 4096", "= 1M"), 3)
    first = node(folder, store, "first")
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE json_array_length(branches) > 0"))
    end(daemon, signal.SIGKILL, -9)
    end(first, signal.SIGKILL, -9)
    edit(store, "UPDATE lease SET until_ms = 1, checksum = NULL WHERE state = 'open'")  # as if the minute were over
    controller(store)
    node(folder, store, "second")
    wait_for(lambda: rows(store, "SELECT 1 FROM study WHERE state = 'ended'"))
    equal(rows(store, "SELECT count(*) FROM trial WHERE origin NOT LIKE 'branch %' AND state = 'done'"), [(3,)])
    run("check", store)


def test_trials_that_end_while_the_controller_looks(folder):
    """Short ones with branches: some end between two of its queries, with and without a lease that it knew."""
    text = PARETO.replace("method = pareto\nlease_s = 2", "method = sobol\nlease_s = 60\nbranches = 2").replace("device = cpu", "device = cpu\ndecay_steps = 1000")
    store, daemon = submit(folder, text.replace("max = 262144", "max = 8192"), 80)  # a node that a busy machine holds up loses none
    node(folder, store, "one", "--runs-per-device", SLOTS)
    wait_for(lambda: rows(store, "SELECT 1 FROM study WHERE state = 'ended'"), daemon)
    equal(rows(store, "SELECT count(*) FROM trial WHERE origin NOT LIKE 'branch %' AND state = 'done'"), [(80,)])


def test_a_lease_of_a_node_that_is_gone_takes_no_place_of_another(folder):
    store, _ = submit(folder, gated(folder, lease_s=1000), 9)
    first = node(folder, store, "first")
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE state = 'open'"))
    end(first, signal.SIGKILL, -9)
    edit(store, "DELETE FROM node")  # as if it had been silent for long
    node(folder, store, "second")
    wait_for(lambda: rows(store, "SELECT 1 FROM lease WHERE client LIKE 'second/%'"))
    equal(rows(store, "SELECT count(*) FROM lease WHERE state = 'open' AND client LIKE 'first/%'"), [(1,)])
