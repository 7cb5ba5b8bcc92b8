"""Workers on other machines: over a real ssh on loopback, and by any command. Their trials have the same bytes as here, a worker
that is sent away continues elsewhere, and kill -9 of controller, ssh or worker loses and doubles nothing.

TRAWL_REMOTE_KILLS: number of kills (12; 300 in the nightly run).
"""
import json
import os
import pathlib
import random
import re
import resource
import signal
import time

import loopback_ssh
import tap
import test_kill
from tap import TINY_SWEEP, end, equal, fails, gated, open_gate, rows, run, show, start, wait_for, write

N_KILLS = int(os.environ.get("TRAWL_REMOTE_KILLS", 12))
STDIO = "%s worker --stdio" % tap.TRAWL


def remote_workers(folder):
    """Processes `trawl worker --stdio` whose files are below folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                env = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[1:3] == [b"worker", b"--stdio"] and b"TMPDIR=%s" % str(folder).encode() in env:
                found.append(int(entry.name))
    return found


def with_tmp(folder):
    """TMPDIR travels to the workers, which marks them as this test's."""
    return dict(os.environ, TMPDIR=str(folder))


def curves(store):
    """What each trial learned, without the clock."""
    return rows(store, "SELECT number, state, score, perf, env_steps FROM trial ORDER BY number")


def test_trials_over_ssh_have_the_bytes_of_here(folder):
    sshd = loopback_ssh.Sshd(folder)
    config = write(folder, "s.ini", TINY_SWEEP.replace("[sweep]\n", "[sweep]\nconfirm = 0\n"))  # what is confirmed depends on costs
    _, words = run("sweep", config, "--store", folder / "far.db", "--name", "a", "--trials", 8, "--devices",
                   "ssh:node1/cpu, ssh:node2/cpu", *sshd.options(), env=with_tmp(folder))
    run("sweep", config, "--store", folder / "here.db", "--name", "a", "--trials", 8, "--devices", "cpu")
    equal(curves(folder / "far.db"), curves(folder / "here.db"))
    slots = {t["slot"] for t in show(folder / "far.db", "a")["trials"]}
    assert slots <= {"ssh:node1/cpu", "ssh:node2/cpu"} and slots, slots
    wait_for(lambda: not remote_workers(folder))
    equal(list(folder.glob("trawl-worker-*")), [])


def test_a_host_gives_its_cpu_where_it_has_no_gpu(folder):
    sshd = loopback_ssh.Sshd(folder)
    config = write(folder, "s.ini", TINY_SWEEP)
    env = dict(with_tmp(folder), CUDA_VISIBLE_DEVICES="")
    run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 3, "--devices", "ssh:node1",
        *sshd.options(), env=env)
    slots = {t["slot"] for t in show(folder / "s.db", "a")["trials"]}
    assert all(s.startswith("ssh:node1/") for s in slots), slots


def test_launch_check_names_what_is_wrong(folder):
    sshd = loopback_ssh.Sshd(folder)
    out, _ = run("launch", "check", "ssh:node1/cpu", *sshd.options())
    assert out.startswith("ssh:node1/cpu: ok, "), out
    old = write(folder, "old", "#!/bin/sh\necho Welcome to the old node\necho '{\"type\": \"greeting\", \"version\": 3, \"program\": "
                "\"trawl 0.0.9 (old)\", \"schema\": 2, \"host\": \"attic\"}'\nsleep 60\n")
    old.chmod(0o755)
    quitter = write(folder, "quitter", "#!/bin/sh\necho no such licence >&2\nexit 3\n")
    quitter.chmod(0o755)
    ssh = ["--sweep.ssh", sshd.ssh]
    for words, says in ((["node1", *ssh, "--sweep.remote-program", "/nowhere/trawl"], "sweep.remote_program"),
                        (["node1", *ssh, "--sweep.remote-program", old], "trawl 0.0.9 (old)"),
                        (["node1", *ssh, "--sweep.remote-program", old], "use the same build"),
                        (["cmd:%s" % quitter], "no such licence"),
                        (["cmd:sleep 60", "--patience", "1"], "no greeting within 1 s"),
                        (["cmd:cat"], "no greeting"),
                        (["nowhere.invalid", "--sweep.ssh", sshd.ssh], "ssh cannot log in"),
                        (["node1/cuda:77", *sshd.options()], "cuda:77")):
        more = [] if "--patience" in words else ["--patience", "20" if words[0] != "cmd:cat" else "1"]
        out, stderr = run("launch", "check", *words, *more, code=1)
        assert "FAILS" in out and says in out, (words, out)
        assert "1 of 1 cannot run a worker" in stderr, stderr
    rows = json.loads(run("launch", "check", "ssh:node1/cpu", "cmd:false", *sshd.options(), "--json", code=1)[0])
    equal([row["ok"] for row in rows], [True, False])
    fails("launch", "check", "ssh:a;b", code=2, says="no host")
    fails("launch", "start", "node1", code=2, says="launch check")


def test_another_build_is_refused_with_both_versions(folder):
    old = write(folder, "old", "#!/bin/sh\necho '{\"type\": \"greeting\", \"version\": 4, \"program\": \"trawl 0.0.9 (old)\", "
                "\"schema\": 1, \"host\": \"attic\"}'\nsleep 60\n")
    config = write(folder, "s.ini", TINY_SWEEP)
    line = fails("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 2, "--devices", "cmd:sh %s" % old, code=1,
                 says=["trawl 0.0.9 (old)", "attic", run("--version")[0].strip()])
    assert "same build" in line
    # one of many that tried for all of them
    fails("sweep", config, "--store", folder / "u.db", "--name", "a", "--trials", 9, "--devices", "cmd*9:sh %s" % old, code=1,
          says="trawl 0.0.9 (old)")
    # beside one that works it is left alone, and the sweep has all its trials
    _, words = run("sweep", config, "--store", folder / "t.db", "--name", "a", "--trials", 4, "--devices", "cpu, cmd:sh %s" % old)
    equal({t["state"] for t in show(folder / "t.db", "a")["trials"]}, {"done"})


def test_stderr_is_log_with_the_hosts_name(folder):
    config = write(folder, "s.ini", TINY_SWEEP)
    _, words = run("sweep", config, "--store", folder / "s.db", "--name", "a", "--trials", 2, "--devices",
                   "cmd:echo hello >&2; echo Welcome; %s" % STDIO)
    assert re.search(r"^cmd/0: hello$", words, re.M), words
    assert "cmd/0: Welcome" in words, words
    equal({t["state"] for t in show(folder / "s.db", "a")["trials"]}, {"done"})


def test_many_workers_and_few_open_files(folder):
    """A limit of 64 that may be raised is raised; one that may not is named."""
    config = write(folder, "s.ini", TINY_SWEEP)
    args = ["--trials", 3, "--devices", "cmd*100:%s" % STDIO]
    run("sweep", config, "--store", folder / "s.db", "--name", "a", *args,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096)))
    equal({t["state"] for t in show(folder / "s.db", "a")["trials"]}, {"done"})
    fails("sweep", config, "--store", folder / "t.db", "--name", "a", *args, code=1, says=["100 workers need", "ulimit"],
          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128)))


def has_points(store):
    """Of any learning curve."""
    return rows(store, "SELECT 1 FROM metric LIMIT 1")


def struck(folder, strike, begun, interval_s, *devices):
    """A trial that strike(sweep) hits once begun() holds; it may end when it has begun again. Returns the words of the sweep."""
    config, store = write(folder, "long.ini", gated(folder, checkpoint_interval_s=interval_s)), folder / "far.db"
    process = start("sweep", config, "--store", store, "--name", "a", "--trials", 1, "--devices", *devices, env=with_tmp(folder))
    wait_for(begun, process)
    strike(process)
    wait_for(lambda: rows(store, "SELECT 1 FROM trial WHERE attempt > 1"), process)  # more than 2 where the next worker had it before its own blow
    open_gate(folder)
    _, words = end(process)
    equal([t["state"] for t in show(store, "a")["trials"]], ["done"])
    return words


def sent_away(folder, number, *devices):
    def strike(_):
        for pid in remote_workers(folder):
            tap.kill(pid, number)
    words = struck(folder, strike, lambda: has_points(folder / "far.db"), 0, *devices)
    assert "was sent away, its trials are saved" in words, words


def test_a_worker_that_is_sent_away_saves_and_the_trial_continues_elsewhere(folder):
    sshd = loopback_ssh.Sshd(folder)
    sent_away(folder, signal.SIGTERM, "ssh:node1/cpu, ssh:node2/cpu", *sshd.options())
    run("sweep", folder / "long.ini", "--store", folder / "here.db", "--name", "a", "--trials", 1, "--devices", "cpu")
    equal(curves(folder / "far.db"), curves(folder / "here.db"))  # the same bytes as if it had never been stopped


def test_a_warning_signal_is_enough(folder):
    sent_away(folder, signal.SIGUSR1, "cmd:%s" % STDIO)


def test_a_cut_connection_costs_the_time_since_the_last_checkpoint(folder):
    """kill -9 of a remote worker's machine: what it sent at the interval is what the next one resumes from."""
    sshd = loopback_ssh.Sshd(folder)

    def strike(process):
        for pid in tap.children(process.pid):
            tap.kill(pid)
    words = struck(folder, strike, lambda: list(folder.glob("far.db.checkpoints/*.ckpt")), 0.2, "ssh:node1/cpu, ssh:node2/cpu", *sshd.options())
    assert "the command that connects to it was killed" in words, words
    run("sweep", folder / "long.ini", "--store", folder / "here.db", "--name", "a", "--trials", 1, "--devices", "cpu")
    equal(curves(folder / "far.db"), curves(folder / "here.db"))


def test_checkpoints_of_finished_trials_come_home(folder):
    config = write(folder, "s.ini", TINY_SWEEP.replace("method = sobol", "method = sobol\nkeep = all"))
    for name, devices in (("far", "cmd:%s" % STDIO), ("here", "cpu")):
        run("sweep", config, "--store", folder / (name + ".db"), "--name", "a", "--trials", 3, "--devices", devices)
    here = sorted((folder / "here.db.checkpoints").iterdir())
    equal([p.name for p in here], ["a-0.ckpt", "a-1.ckpt", "a-2.ckpt"])
    for path in here:
        far = folder / "far.db.checkpoints" / path.name
        scores = [json.loads(run("eval", p, "--json")[0]) for p in (far, path)]
        equal(scores[0]["score"], scores[1]["score"])


def test_unlike_devices_do_not_mix_unless_their_seconds_are_weighed(folder):
    """The same CPU with fewer of its vector units stands for another card."""
    config = write(folder, "s.ini", TINY_SWEEP)
    unlike = "cmd:OPENBLAS_CORETYPE=%%s %s" % STDIO

    def kinds(name, costs, devices, *more, trials=3):
        _, words = run("sweep", *more, "--store", folder / (name + ".db"), "--devices", devices, "--sweep.device-costs", costs, *(() if "--resume" in more else ("--trials", trials)))
        return rows(folder / (name + ".db"), "SELECT device, cost_method, cost_s, device_s FROM trial"), words
    new = [config, "--name", "a"]
    names = []
    for core in ("Prescott", "Sandybridge"):  # alone, to know their names
        names.append(kinds(core, "alike", unlike % core, *new)[0][0][0])
    if names[0] == names[1]:
        raise tap.Skip("the vector units of this CPU cannot be chosen by OPENBLAS_CORETYPE: %s" % names[0])
    # the first waits for the second, so that both are there while there are trials
    both = ("cmd*2:cd %s; if mkdir first 2>/dev/null; then while [ ! -d second ]; do sleep 0.05; done; export OPENBLAS_CORETYPE=Prescott; "
            "else mkdir second; export OPENBLAS_CORETYPE=Sandybridge; fi; exec %s")

    def two(name):
        marks = folder / ("marks-" + name)
        marks.mkdir()
        return both % (marks, STDIO)
    found, words = kinds("alike", "alike", two("alike"), *new, trials=60)
    equal(len({row[0] for row in found}), 1)
    assert "their times would not compare" in words, words
    first, second = (name[:name.index(" (")] + " (" + name[name.index(", ") + 2:-1] for name in names)  # without their threads
    found, _ = kinds("weighed", "%s=1, %s=4" % (first, second), two("weighed"), *new, trials=20)
    assert {row[1] for row in found} <= {"wall", "wall x 4"}, found
    for device, method, cost_s, device_s in found:
        equal(cost_s, device_s * (4 if method == "wall x 4" else 1))
        equal("Sandybridge" in device, method == "wall x 4")
    # another machine than before: a warning, and it continues
    _, words = kinds("Prescott", "alike", unlike % "Sandybridge", "--resume", "a", "--sweep.trials", 5)
    assert "do not compare" in words, words


class Remote(test_kill.Sweep):
    """A controller with workers over ssh."""

    def __init__(self, folder, moments, sshd):
        super().__init__(folder, moments)
        self.sshd = sshd

    def devices(self):
        return ["--devices", "ssh:node1/cpu, ssh:node2/cpu, cpu", *self.sshd.options()]

    def env(self):
        return with_tmp(self.folder)

    def end(self, kind):
        getattr(self, kind)()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        wait_for(lambda: not remote_workers(self.folder))  # none outlives its controller

    def goes_on(self):
        time.sleep(self.moments.uniform(0, 0.4))
        equal(self.process.poll(), None)

    def ssh(self):
        """Every connection, or one of them."""
        ways = tap.children(self.process.pid)
        for pid in ways if self.moments.random() < 0.5 else ways[:1]:
            tap.kill(pid)
        self.goes_on()

    def worker(self):
        for pid in remote_workers(self.folder):
            tap.kill(pid, self.moments.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
        self.goes_on()


def kill_at_random(folder, cluster, kind, events, n):
    """n controllers of this kind, each ended by one of the events at a random moment: no result is lost, changed or doubled."""
    seed = int(os.environ.get("TRAWL_KILL_SEED", int.from_bytes(os.urandom(4), "big")))
    print("# random moments of seed %d" % seed)
    moments = random.Random(seed)
    write(folder, "s.ini", TINY_SWEEP.replace("method = sobol", "method = sobol\nmax_failures = 0"))
    store, seen, told = folder / "s.db", {}, set()
    for _ in range(n):
        sweep = kind(folder, moments, cluster)
        sweep.begin()
        if moments.random() < 0.3:
            time.sleep(moments.uniform(0, 1))  # while it connects
        else:
            sweep.works()
        sweep.end(moments.choice(events))
        told |= sweep.told()
        rows = test_kill.finished_rows(store)
        for key, row in seen.items():
            equal(rows.get(key), row)
        seen = rows
        assert told <= {row[0][test_kill.NUMBER] for row in rows.values()}, "told and lost"
    assert len(seen) > 5, "the kills came too early to test anything"
    print("# %d kills, %d trials finished" % (n, len(seen)))


def test_kills_at_random_moments_lose_and_double_nothing(folder):
    kill_at_random(folder, loopback_ssh.Sshd(folder), Remote, ("controller", "ssh", "worker"), N_KILLS)
