#!/usr/bin/env python3
"""kills.py - kill -9 of controller, standby, node, worker, postgres, slurmd and sshd at random moments: is a result lost or doubled,
does a device stay idle?

usage: bench/workers/kills.py TRAWL [--kills N] [--seed S] [--pause S] [--steps N] [--keep]

One study in PostgreSQL, whose server is killed too. Two daemons, one of which stands by, with a worker by ssh to this machine (without
sshd: neither that nor its kills); two nodes that this script starts, and two that the daemon's launcher keeps in a real Slurm on this
machine (without Slurm: neither those nor kills of slurmd). Whatever was killed or ended is started again; Slurm and the launcher see to
their nodes. Trials take a second, a lease 2 s: an hour of a cluster in minutes.

Checked: what was a result once stays as it was; each trial has one result; each result that a node reported is stored, as result or as
late; no lease stays open; the proposals can be made again; `trawl check` finds nothing. Printed besides: for each device the longest time
without a trial (it counts as idle from the moment when its node or its worker was killed), by ssh the longest between two results; and the
longest time without a controller, with and without times in which the server was killed.
"""
import argparse
import collections
import getpass
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests" / "e2e"), str(HERE / "tests" / "e2e" / "kills"), str(HERE / "tests" / "store")]
import loopback_slurm  # noqa: E402
import loopback_ssh  # noqa: E402
import postgres  # noqa: E402
import tap  # noqa: E402

# Trials of some seconds, so that proposals, one at a time, keep four devices busy.
CONFIG = tap.TINY_SWEEP.replace("method = sobol", "method = pareto\nlease_s = 2\ncheckpoint_interval_s = 0.2\ndevice_costs = any").replace(
    "total_timesteps = 4096", "total_timesteps = %s")
IDLE_MAX_S = 40
TAKEOVER_S = 5  # until a daemon that was killed is started again, at most
OPEN = "SELECT application_name FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted)"


class Cluster:
    def __init__(self, args):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="trawl-kills-"))
        (self.folder / "bin").mkdir()
        self.trawl = self.folder / "bin" / "trawl"  # a copy, whose processes are ours alone
        shutil.copy(args.trawl, self.trawl)
        self.chance = random.Random(args.seed)
        self.server = postgres.Postgres()
        self.store = self.server.database("kills")
        self.env = dict(os.environ, XDG_DATA_HOME=str(self.folder / "data"), XDG_STATE_HOME=str(self.folder / "state"))
        self.slurm, self.sshd = self.begin_loopback()
        self.begun_s = time.time()
        self.n_revived = 0
        self.back_s = {}  # when daemons that were killed start again
        self.looks = [(0, True)]  # (when, has the study a controller; None: the server does not answer)
        self.watches = True
        self.ours = {}  # processes by name
        self.cuts = collections.defaultdict(list)  # of a node: when it or its worker was killed
        self.seen = {}

    def start(self, args):
        for name in ("one", "two"):
            self.start_daemon(name)
        self.ask_until(OPEN)
        (self.folder / "a.ini").write_text(CONFIG % args.steps)
        self.begin("sweep", "sweep", self.folder / "a.ini", "--name", "a", "--trials", 1000000, "--seed", 3)
        self.ask_until("SELECT 1 FROM trawl.study")
        self.ours.pop("sweep").kill()  # the daemon has it
        for name in ("node1", "node2"):
            self.start_node(name)
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    def begin_loopback(self):
        made = []
        for make in (loopback_slurm.Slurm, lambda: loopback_ssh.Sshd(self.folder)):
            try:
                made.append(make())
            except tap.Skip as why:
                print("without a part: %s" % why, flush=True)
                made.append(None)
        if made[0]:
            self.env.update({key: made[0].env[key] for key in ("SLURM_CONF", "PATH")})
        return made

    def watch(self):
        while self.watches:
            found = self.ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted")
            self.looks.append((time.time(), found[0][0] != "0" if found else None))
            time.sleep(0.3)

    def without_controller(self):
        """The longest time, and the longest without those in which the server was away."""
        longest, quiet, since_s, away = 0, 0, None, False
        for at, held in self.looks[1:]:
            if held:
                if since_s is not None:
                    longest, quiet = max(longest, at - since_s), quiet if away else max(quiet, at - since_s)
                since_s, away = None, False
            else:
                since_s, away = since_s or at, away or held is None
        return longest, quiet

    def begin(self, name, *words):
        process = subprocess.Popen([self.trawl, *map(str, words), "--store", self.store], env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        threading.Thread(target=self.log, args=(name, process.stdout)).start()
        self.ours[name] = process

    def log(self, name, lines):
        for line in lines:
            self.note(name, line.rstrip())

    def note(self, name, text):
        with open(self.folder / "log", "a") as log:
            log.write("%.1f %s: %s\n" % (time.time() - self.begun_s, name, text))

    def start_daemon(self, name):
        more = ["--sweep.remote-program", self.trawl]
        more += ["--sweep.launcher", "slurm:cpus-per-task=1*2"] if self.slurm else []
        more += ["--devices", "ssh:node1/cpu", "--sweep.ssh", self.sshd.ssh] if self.sshd else ["--devices", "none"]
        self.begin("daemon-" + name, "daemon", *more)

    def start_node(self, name):
        self.begin(name, "node", "--devices", "cpu", "--name", name, "--spool", self.folder / "spool")

    def ask(self, text):
        """Rows; none while the server is away."""
        try:
            return self.server.sql(text, "kills")
        except RuntimeError:
            return []

    def ask_until(self, text, patience_s=120):
        end = time.monotonic() + patience_s
        while not (rows := self.ask(text)):
            assert time.monotonic() < end, "never came: " + text
            time.sleep(0.1)
        return rows

    def processes(self, word):
        """Our processes `trawl WORD`, here and in jobs, with their parents."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[0].decode() == str(self.trawl) and words[1].decode() == word or \
                        os.readlink(entry / "exe") == str(self.trawl) and words[1].decode() == word:
                    found[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError, ValueError):
                pass
        return found

    def node_name(self, pid):
        names = [name for name, process in self.ours.items() if process.pid == pid]
        return names[0] if names else "%s-%d" % (os.uname().nodename, pid)

    def holders(self):
        return {int(row[0].split()[1]) for row in self.ask(OPEN) if row[0].startswith("trawl ")}

    def kill_daemon(self, holds):
        held = self.holders()
        names = [n for n, p in self.ours.items() if n.startswith("daemon-") and p.poll() is None and (p.pid in held) == holds]
        if not names:
            return False
        self.ours[names[0]].kill()
        self.ours[names[0]].wait()
        self.back_s[names[0]] = time.time() + self.chance.uniform(0, TAKEOVER_S)  # the same again, or the one that stands by
        return True

    def kill_controller(self):
        return self.kill_daemon(True)

    def kill_standby(self):
        return self.kill_daemon(False)

    def kill_node(self):
        nodes = sorted(self.processes("node"))
        if not nodes:
            return False
        pid = self.chance.choice(nodes)
        name = self.node_name(pid)
        self.cuts[name].append(time.time())
        os.kill(pid, signal.SIGKILL)
        if name in self.ours:
            self.ours[name].wait()
            time.sleep(self.chance.uniform(0, 0.5))
            self.start_node(name)
        return True

    def kill_worker(self):
        workers = sorted(self.processes("worker").items())
        if not workers:
            return False
        pid, parent = self.chance.choice(workers)
        self.cuts[self.node_name(parent)].append(time.time())
        os.kill(pid, signal.SIGKILL)
        return True

    def kill_postgres(self):
        self.server.stop(signal.SIGKILL)
        time.sleep(self.chance.uniform(0, 1))
        self.server.start()
        return True

    def kill_slurmd(self):
        self.slurm.processes["slurmd"].kill()
        self.slurm.processes["slurmd"].wait()
        time.sleep(self.chance.uniform(0, 0.5))
        self.slurm.begin("slurmd", "-D")
        return True

    def kill_sshd(self):
        if self.chance.random() < 0.5:  # a session
            sessions = tap.children(self.sshd.process.pid)
            if not sessions:
                return False
            os.kill(self.chance.choice(sessions), signal.SIGKILL)
            return True
        self.sshd.process.kill()
        self.sshd.process.wait()
        time.sleep(self.chance.uniform(0, 0.5))
        self.sshd.process = subprocess.Popen(self.sshd.process.args, stdin=subprocess.DEVNULL, stdout=self.sshd.log, stderr=self.sshd.log,
                                             start_new_session=True)
        return True

    def revive(self):
        """Daemons that were killed; and what began while the server was away, or lost its place to another, and ended."""
        for name in [n for n, p in self.ours.items() if p.poll() is not None and time.time() > self.back_s.get(n, 0)]:
            self.n_revived += self.back_s.pop(name, None) is None
            (self.start_node if name.startswith("node") else self.start_daemon)(name.split("-")[-1])

    def look(self):
        """What was a result stays as it was."""
        for number, *rest in self.ask("SELECT number, state, score, cost_s, attempt FROM trawl.trial WHERE state IN ('done', 'failed')"):
            assert self.seen.setdefault(number, rest) == rest, (number, self.seen[number], rest)

    def kill_all(self, n, pause_s):
        kinds = ["controller", "standby", "node", "worker", "postgres"] + (["slurmd"] if self.slurm else []) + (["sshd"] if self.sshd else [])
        plan = [kinds[k % len(kinds)] for k in range(n)]
        self.chance.shuffle(plan)
        done = collections.Counter()
        for k, kind in enumerate(plan):
            time.sleep(self.chance.uniform(0, 2 * pause_s))
            self.revive()
            while not getattr(self, "kill_" + kind)():  # nothing of the kind lives just now
                time.sleep(0.2)
                self.revive()
            done[kind] += 1
            self.note("kill", kind)
            if k % 20 == 19:
                self.look()
                print("%d kills, %d results" % (k + 1, len(self.seen)), file=sys.stderr, flush=True)
        return done

    def end(self):
        """The study ends; trials that run are given back or finished."""
        self.back_s = dict.fromkeys(self.back_s, 0)
        self.revive()
        stopped_s = time.time()
        for _ in range(20):
            if subprocess.run([self.trawl, "stop", "a", "--store", self.store], capture_output=True, env=self.env).returncode == 0:
                break
            time.sleep(1)
        self.ask_until("SELECT 1 FROM trawl.study WHERE state = 'ended'")
        end = time.monotonic() + 60
        while list((self.folder / "spool").glob("*.json")) and time.monotonic() < end:
            time.sleep(0.2)
        for name in ("node1", "node2"):
            self.ours[name].terminate()
        for name in ("node1", "node2"):
            self.ours[name].wait(120)
        return stopped_s

    def close(self, keep):
        self.watches = False
        for process in self.ours.values():
            if process.poll() is None:
                process.terminate()
                process.wait(60)
        if self.slurm:
            self.slurm.end()
        if self.sshd:
            self.sshd.process.terminate()
            self.sshd.process.wait()
        self.server.close()
        if keep:
            print("kept: %s/log" % self.folder)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def longest_below(intervals, n, from_s, to_s):
    """The longest time within which fewer than n intervals were open at once, and when it began."""
    edges = sorted([(a, 1) for a, b in intervals] + [(b, -1) for a, b in intervals])
    count, below_s, worst = 0, from_s, (0, from_s)
    for at, change in edges:
        if not from_s <= at <= to_s:
            count += change
            continue
        if count < n:
            worst = max(worst, (at - below_s, below_s))
        count += change
        below_s = at if count < n and count - change >= n else below_s
    return max(worst, (to_s - below_s, below_s)) if count < n else worst


def idle(cluster, stopped_s):
    """{device: (the longest time without a trial, when it began)}; Slurm's devices are the jobs that the launcher keeps."""
    busy = collections.defaultdict(list)
    for client, given, ended in cluster.ask("SELECT client, given_ms, coalesce(ended_ms, 0) FROM trawl.lease ORDER BY given_ms"):
        node, begin, end = client.split("/")[0], int(given) / 1000, int(ended) / 1000 if ended != "0" else stopped_s
        cut = [at for at in cluster.cuts[node] if at > begin]
        busy[node if node in cluster.ours else "slurm"].append((begin, max(begin, min([end] + cut))))
    found = {}
    for name in ("node1", "node2"):
        found[name] = longest_below(busy[name], 1, busy[name][0][0], stopped_s)
    if cluster.sshd:
        ends = [int(row[0]) / 1000 for row in cluster.ask("SELECT finished_ms FROM trawl.trial WHERE slot LIKE 'ssh:%' AND finished_ms > 0 ORDER BY 1")]
        found["ssh, between results"] = max([(b - a, a) for a, b in zip(ends, ends[1:] + [stopped_s])], default=(stopped_s, 0))
    for n in (1, 2) if cluster.slurm else ():
        found["slurm, %d of 2" % n] = longest_below(busy["slurm"], n, busy["slurm"][0][0], stopped_s)
    return found


def check(cluster):
    """Faults, as texts."""
    ask, faults = cluster.ask, []
    cluster.look()
    n, distinct = ask("SELECT count(*), count(DISTINCT number) FROM trawl.trial")[0]
    if n != distinct:
        faults.append("%s trials with %s numbers" % (n, distinct))
    twice = ask("SELECT trial_id FROM trawl.lease WHERE state = 'reported' GROUP BY 1 HAVING count(*) > 1")
    if twice:
        faults.append("trials with two results: %s" % twice)
    results = int(ask("SELECT count(*) FROM trawl.lease WHERE state = 'reported'")[0][0])
    ended = int(ask("SELECT count(*) FROM trawl.trial WHERE state IN ('done', 'failed', 'stopped') AND coalesce(slot, '') NOT LIKE 'ssh:%'")[0][0])
    if results != ended:
        faults.append("%d results of leases, %d trials of nodes with one" % (results, ended))
    left = [p.name for p in (cluster.folder / "spool").glob("*") if p.suffix != ".tmp"]
    if left:
        faults.append("results that no one took: %s" % left)
    replay = json.loads(subprocess.run([cluster.trawl, "replay", "a", "--store", cluster.store, "--json"], capture_output=True,
                                       text=True, env=cluster.env).stdout)
    if replay["differences"] or replay["unrecorded"]:
        faults.append("replay: %s" % replay)
    done = subprocess.run([cluster.trawl, "check", cluster.store], capture_output=True, text=True, env=cluster.env)
    if done.returncode != 0:
        faults.append("check: " + done.stdout + done.stderr)
    return faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trawl")
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between two kills")
    parser.add_argument("--steps", default="1M", help="of a trial")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    cluster = Cluster(args)
    try:
        begun_s = cluster.begun_s
        cluster.start(args)
        cluster.ask_until("SELECT 1 FROM trawl.trial WHERE state = 'done' LIMIT 1")
        load = os.getloadavg()[0]
        kills = cluster.kill_all(args.kills, args.pause)
        stopped_s = cluster.end()
        cluster.watches = False
        cluster.watcher.join()
        faults = check(cluster)
        times = idle(cluster, stopped_s)
        states = dict(cluster.ask("SELECT state, count(*) FROM trawl.trial GROUP BY 1"))
        leases = dict(cluster.ask("SELECT state, count(*) FROM trawl.lease GROUP BY 1"))
        print("kills: %s, in %.0f s, as %s, load %.0f to %.0f; ended by themselves and started again: %d" % (
            ", ".join("%s %d" % item for item in sorted(kills.items())), stopped_s - begun_s, getpass.getuser(), load, os.getloadavg()[0],
            cluster.n_revived))
        print("longest time without a controller: %.1f s; while the server answered: %.1f s" % cluster.without_controller())
        print("trials: %s" % ", ".join("%s %s" % item for item in sorted(states.items())))
        print("leases: %s" % ", ".join("%s %s" % item for item in sorted(leases.items())))
        print("longest time without a trial: %s" % ", ".join("%s %.1f s" % (name, s) for name, (s, _) in times.items()))
        faults += ["%s was idle for %.1f s from %.1f s on" % (name, s, at - begun_s) for name, (s, at) in times.items()
                   if s > IDLE_MAX_S and "between" not in name]
        print("faults: %s" % ("; ".join(faults) or "none"))
    finally:
        cluster.close(args.keep)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
