"""test_ask_soak.py - 8 agents and 2 Python clients train a study while agents, server and controller are killed at random and the
server stalls: every result that was reported is there once, none is doubled, and the study completes.

TRAWL_ASK_TRIALS in the environment: how many trials (40; tools/nightly: 200). TRAWL_ASK_SLOW: how many times longer each takes
(1: 0.4 s; tools/nightly: 6), so that more of them are hit. TRAWL_ASK_SEED: of the killer."""
import collections
import json
import os
import random
import signal
import sys
import threading
import time

import tap
from asking import OUTSIDE, Server, daemon, submit
from tap import end, equal, listed, rows, run, show, write
from trawl_client import Study

TRIALS = int(os.environ.get("TRAWL_ASK_TRIALS", "40"))
SEED = int(os.environ.get("TRAWL_ASK_SEED", str(time.time_ns() % 1000000)))
SLOW = float(os.environ.get("TRAWL_ASK_SLOW", "1"))
AGENTS, CLIENTS, LEASE_S = 8, 2, 3

# Each run has a score that no other has, and leaves it beside the trial's number before it is reported.
TRAINER = """
import os, pathlib, random, sys, time
score = random.random()
with open(pathlib.Path(__file__).with_name("ledger"), "a") as f:
    f.write("%s %r\\n" % (os.environ["TRAWL_TRIAL"], score))
for step in range(1, random.randint(2, 6)):
    print("TRAWL score=%r step=%d cost=%d" % (score, step, step), flush=True)
    time.sleep(%r * random.uniform(0.02, 0.15))
"""


class Chaos:
    """Starts everything, kills it at random, starts it again."""

    def __init__(self, folder):
        self.folder, self.store, self.random = folder, folder / "s.db", random.Random(SEED)
        self.counts = collections.Counter()
        self.controller, self.server = daemon(self.store), Server(self.store)
        self.port = self.server.port
        write(folder, "train.py", TRAINER.replace("%r *", "%r *" % SLOW))
        submit(folder, self.store, OUTSIDE.replace("lease_s = 60", "lease_s = %d" % LEASE_S), TRIALS)
        self.agents = [self.agent(i) for i in range(AGENTS)]

    def agent(self, i):
        """Half of them come back under their names, the others as strangers."""
        name = ["--name", "agent%d" % i] if i % 2 else []
        log = open(self.folder / ("agent%d.log" % i), "ab")
        process = tap.subprocess.Popen(
            [tap.TRAWL, "agent", "http://127.0.0.1:%d" % self.port, "a", "--spool", str(self.folder / "spool"), "--dir",
             str(self.folder / "runs"), *name, "--", sys.executable, str(self.folder / "train.py"), "{argv}"],
            stdin=tap.subprocess.DEVNULL, stdout=log, stderr=log)
        tap.started.append(process)
        return process

    def hurt(self):
        what = self.random.choices(["agent", "server", "controller", "stall"], [6, 2, 2, 2])[0]
        self.counts[what] += 1
        if what == "agent":
            i = self.random.randrange(AGENTS)
            self.agents[i].kill()
            self.agents[i].wait()
            self.agents[i] = self.agent(i)
        elif what == "server":
            end(self.server.process, signal.SIGKILL, -9)
            self.server = Server(self.store, port=self.port)
        elif what == "controller":
            end(self.controller, signal.SIGKILL, -9)
            self.controller = daemon(self.store)
        else:
            self.server.process.send_signal(signal.SIGSTOP)
            time.sleep(self.random.uniform(0.2, 1.5 * LEASE_S))
            self.server.process.send_signal(signal.SIGCONT)

    def may_hurt(self):
        """About once for each trial that is done: a slow machine would lose most of them."""
        n_done, = rows(self.store, "SELECT count(*) FROM trial WHERE state = 'done'")[0]
        return sum(self.counts.values()) < n_done + 5 or listed(self.store)["state"] == "ended"

    def run_until_ended(self):
        deadline = time.monotonic() + max(tap.PATIENCE_S, 10 * SLOW * TRIALS)
        while listed(self.store)["state"] != "ended":
            assert time.monotonic() < deadline, "the study does not end: %s" % show(self.store, "a")["study"]["counts"]
            self.hurt()
            time.sleep(self.random.uniform(0.05, 0.4))
            tap.wait_for(self.may_hurt)
        for process in self.agents:  # those that still run find that it has ended, and tell what waits
            process.wait(timeout=tap.PATIENCE_S)
        last = self.agent(0)
        last.wait(timeout=tap.PATIENCE_S)
        equal(last.returncode, 0)

    def end(self):
        self.server.end()
        end(self.controller, signal.SIGTERM)


def client(port, name, reported, errors):
    """Told: (trial, score, counted) of what the server has acknowledged."""
    try:
        for trial in Study("http://127.0.0.1:%d" % port, "a", client=name).trials():
            score = random.random()
            time.sleep(random.uniform(0.05, 0.4))
            trial.report(1, score=score)
            reported.append((trial.number, score, trial.tell(score, cost=1.0)["counted"]))
    except Exception as e:  # pylint: disable=broad-except
        errors.append(e)


def check(folder, store, reported):
    leases = rows(store, "SELECT t.number, l.state, l.result FROM lease AS l JOIN trial AS t ON t.id = l.trial_id")
    trials = show(store, "a")["trials"]
    equal(len(trials), TRIALS)
    assert {t["state"] for t in trials} <= {"done", "lost"}, collections.Counter(t["state"] for t in trials)
    done = {t["number"]: t["score"] for t in trials if t["state"] == "done"}
    counted = collections.Counter(number for number, state, _ in leases if state == "reported")
    equal(counted, collections.Counter(done.keys()))  # one result for each, no result without its trial
    for number, state, text in leases:
        assert state != "open", (number, state)
        if state == "reported":
            equal(json.loads(text)["score"], done[number])
    scores = collections.Counter(done.values())
    equal(max(scores.values()), 1)
    ledger = collections.defaultdict(set)
    for line in (folder / "ledger").read_text().splitlines():
        ledger[int(line.split()[0])].add(float(line.split()[1]))
    own = collections.defaultdict(set)
    late = {(n, json.loads(text).get("score")) for n, state, text in leases if text is not None and state != "reported"}
    for number, score, is_counted in reported:
        own[number].add(score)
        if is_counted:
            equal(done[number], score)
        else:
            assert (number, score) in late, (number, score)
    for number, score in done.items():
        assert score in ledger[number] | own[number], (number, score)
    equal([p.name for p in (folder / "spool").iterdir() if ".tmp." not in p.name], [])  # a killed agent may leave half a file
    run("check", store)
    return len(done), TRIALS - len(done), len(late)


def test_kills_and_stalls(folder):
    chaos = Chaos(folder)
    reported, errors = [], []
    threads = [threading.Thread(target=client, args=(chaos.port, "python%d" % i, reported, errors)) for i in range(CLIENTS)]
    for t in threads:
        t.start()
    begun = time.monotonic()
    try:
        chaos.run_until_ended()
    except Exception:
        print("# seed %d" % SEED)
        raise
    for t in threads:
        t.join(tap.PATIENCE_S)
    equal(errors, [])
    n_done, n_lost, n_late = check(folder, chaos.store, reported)
    chaos.end()
    print("# seed %d: %d trials done, %d lost, %d late results kept; killed: %s; %.0f s" % (
        SEED, n_done, n_lost, n_late, ", ".join("%s %d" % x for x in sorted(chaos.counts.items())), time.monotonic() - begun))
    assert n_done > TRIALS / 2 and chaos.counts, (n_done, chaos.counts)
